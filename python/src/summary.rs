//! Training in parts: moments, domains and summaries.

use std::collections::BTreeMap;

use mondrian::{LeafModel, Moments, Prior, Summary, TrainingDomain};
use pyo3::prelude::*;

use crate::arrays::{Column, NewTable, Table, table};
use crate::classification::PyClassificationForest;
use crate::density::PyDensityForest;
use crate::errors::{to_python, unknown};
use crate::model::bound;
use crate::regression::PyRegressionForest;
use crate::threads::run;
use crate::trees::TreeArguments;

/// The settings shared by all parts of a training.
#[pyclass(frozen, module = "mondrian._mondrian", name = "Domain")]
pub(crate) struct PyDomain {
    domain: TrainingDomain,
}

/// A dictionary with these keys; `None` is automatic.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Arguments {
    trees: TreeArguments,
    margin: f64,
    mean: Option<f64>,
    variance: Option<f64>,
    noise: Option<f64>,
    kappa: Option<f64>,
    leaf_model: String,
    gamma: Option<f64>,
    notes: BTreeMap<String, String>,
}

#[pymethods]
impl PyDomain {
    #[staticmethod]
    fn from_json(py: Python<'_>, json: &str) -> PyResult<Self> {
        let domain = TrainingDomain::from_json(json).map_err(|error| to_python(py, &error))?;
        Ok(Self { domain })
    }

    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        self.domain.to_json().map_err(|error| to_python(py, &error))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((slf.get_type().getattr("from_json")?, (slf.get().to_json(slf.py())?,)))
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.domain == other.domain
    }

    /// Some of the trees only.
    fn shard(&self, first: usize, end: usize) -> Self {
        Self { domain: self.domain.clone().shard(first..end) }
    }

    #[getter]
    fn notes(&self) -> BTreeMap<String, String> {
        self.domain.notes().clone()
    }

    #[getter]
    fn lifetime(&self) -> f64 {
        self.domain.lifetime().get()
    }

    /// Seed, number of trees, and factors of the measure if they are factors.
    #[getter]
    fn params(&self, py: Python<'_>) -> PyResult<(u64, usize, Option<Vec<f64>>)> {
        let (params, weights) = self.domain.params().map_err(|error| to_python(py, &error))?;
        Ok((params.seed, params.n_trees, weights))
    }

    #[getter]
    fn bounds(&self, py: Python<'_>) -> PyResult<(Vec<f64>, Vec<f64>)> {
        let bounds = self.domain.bounds().map_err(|error| to_python(py, &error))?;
        Ok((bounds.lower().to_vec(), bounds.upper().to_vec()))
    }
}

bound!(
    /// Exact moments of rows.
    PyMoments,
    "Moments",
    Moments
);

#[pymethods]
impl PyMoments {
    /// Targets are row-major; empty without targets.
    #[staticmethod]
    fn of<'py>(py: Python<'py>, x: Table<'py>, y: Column<'py>, n_sample: usize) -> PyResult<Self> {
        let (points, targets): (_, &[f64]) = (x.points(py)?, &y);
        Ok(run(py, 1, || Moments::with_sample(points, targets, n_sample))?.into())
    }

    fn merge(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
        self.model.merge(py, 1, &other.model, Moments::merge)
    }

    fn domain(&self, py: Python<'_>, arguments: Arguments) -> PyResult<PyDomain> {
        let leaf_model = match arguments.leaf_model.as_str() {
            "hierarchical" => LeafModel::Hierarchical,
            "independent" => LeafModel::Independent,
            other => return Err(unknown("leaf_model", other)),
        };
        let Arguments { trees, margin, mean, variance, noise, kappa, gamma, notes, .. } = arguments;
        let mut params = trees.params(py)?;
        let domain = self.model.query(py, 1, |moments| {
            if params.bounds.is_none() && margin > 0.0 {
                params.bounds = Some(moments.bounds(margin)?);
            }
            let domain = moments.domain(&params)?.leaf_model(leaf_model);
            let domain = domain.prior(Prior { mean, variance, noise, kappa });
            let domain = notes.iter().fold(domain, |domain, (name, text)| domain.note(name, text));
            let domain = if let Some(gamma) = gamma { domain.gamma(gamma) } else { domain };
            // Read back, so that the content of the JSON is what is checked.
            TrainingDomain::from_json(&domain.to_json()?)
        })?;
        Ok(PyDomain { domain })
    }

    #[getter]
    fn n_rows(&self, py: Python<'_>) -> PyResult<u64> {
        self.model.query(py, 1, |moments| Ok(moments.n_rows()))
    }

    /// Mean and standard deviation of each input.
    #[getter]
    fn mean_and_deviation(&self, py: Python<'_>) -> PyResult<Vec<(f64, f64)>> {
        self.model.query(py, 1, |moments| Ok(moments.mean_and_deviation()))
    }

    /// Smallest and largest of each input.
    #[getter]
    fn bounds(&self, py: Python<'_>) -> PyResult<(Vec<f64>, Vec<f64>)> {
        let bounds = self.model.query(py, 1, |moments| moments.bounds(0.0))?;
        Ok((bounds.lower().to_vec(), bounds.upper().to_vec()))
    }

    /// Inputs and targets of the sampled rows, side by side.
    fn sample<'py>(&self, py: Python<'py>) -> NewTable<'py, f64> {
        let (numbers, n_columns) = self.model.query(py, 1, |moments| {
            let ((x, y), n) = (moments.sample(), moments.bounds(0.0)?.n_dims());
            let t = y.len() / (x.len() / n).max(1);
            let rows = x.chunks_exact(n).enumerate();
            let numbers: Vec<f64> =
                rows.flat_map(|(at, x)| x.iter().chain(&y[at * t..(at + 1) * t]).copied()).collect();
            Ok((numbers, n + t))
        })?;
        table(py, numbers, n_columns)
    }
}

bound!(
    /// The statistics of rows in the trees of a domain, without the rows.
    PySummary,
    "Summary",
    Summary
);

/// A finished forest.
#[derive(IntoPyObject)]
#[expect(clippy::large_enum_variant, reason = "made once, and moved into an object of Python")]
enum Finished {
    Regression(PyRegressionForest),
    Classification(PyClassificationForest),
    Density(PyDensityForest),
}

#[pymethods]
impl PySummary {
    /// Targets come row-major.
    #[staticmethod]
    fn of_regression<'py>(
        py: Python<'py>,
        domain: &PyDomain,
        x: Table<'py>,
        y: Column<'py>,
        n_threads: usize,
    ) -> PyResult<Self> {
        let (points, targets): (_, &[f64]) = (x.points(py)?, &y);
        Ok(run(py, n_threads, || Summary::of_regression(&domain.domain, points, targets))?.into())
    }

    #[staticmethod]
    fn of_classification<'py>(
        py: Python<'py>,
        domain: &PyDomain,
        x: Table<'py>,
        labels: Column<'py, u32>,
        n_classes: usize,
        n_threads: usize,
    ) -> PyResult<Self> {
        let (points, labels): (_, &[u32]) = (x.points(py)?, &labels);
        Ok(run(py, n_threads, || Summary::of_classification(&domain.domain, points, labels, n_classes))?.into())
    }

    #[staticmethod]
    fn of_density<'py>(py: Python<'py>, domain: &PyDomain, x: Table<'py>, n_threads: usize) -> PyResult<Self> {
        let points = x.points(py)?;
        Ok(run(py, n_threads, || Summary::of_density(&domain.domain, points))?.into())
    }

    fn merge(&self, py: Python<'_>, other: &Self, n_threads: usize) -> PyResult<()> {
        self.model.merge(py, n_threads, &other.model, Summary::merge)
    }

    /// A copy with the same rows: cheaper than a round trip through bytes, which are checked.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        Ok(Self { model: self.model.derived(py, |summary| Ok(summary.clone()))? })
    }

    fn join(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
        self.model.merge(py, 1, &other.model, Summary::join)
    }

    fn finish(&self, py: Python<'_>, n_threads: usize) -> PyResult<Finished> {
        self.model.query(py, n_threads, |summary| {
            Ok(match summary.task() {
                "regression" => Finished::Regression(summary.finish_regression()?.into()),
                "classification" => Finished::Classification(summary.finish_classification()?.into()),
                _ => Finished::Density(summary.finish_density()?.into()),
            })
        })
    }

    fn domain(&self, py: Python<'_>) -> PyResult<PyDomain> {
        self.model.query(py, 1, |summary| Ok(PyDomain { domain: summary.domain().clone() }))
    }

    #[getter]
    fn task(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.model.query(py, 1, |summary| Ok(summary.task()))
    }

    #[getter]
    fn n_rows(&self, py: Python<'_>) -> PyResult<usize> {
        self.model.query(py, 1, |summary| Ok(summary.n_rows()))
    }

    #[getter]
    fn n_cells(&self, py: Python<'_>) -> PyResult<usize> {
        self.model.query(py, 1, |summary| Ok(summary.n_cells()))
    }
}
