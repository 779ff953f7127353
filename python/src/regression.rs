//! Regression forests.

use mondrian::forest::{LeafModel, Prior, RegressionForest, RegressionParams};
use mondrian::{Lifetime, Points};
use numpy::{PyArray1, PyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{Column, Table, table};
use crate::errors::to_python;
use crate::model::{Shared, saved_as_bytes};
use crate::path::PyPath;
use crate::threads::{run, run_watched};
use crate::trees::{TreeArguments, unseen, weights};

/// A fitted forest. Targets of several columns come row-major.
#[pyclass(frozen, module = "mondrian._mondrian", name = "RegressionForest")]
pub(crate) struct PyRegressionForest {
    model: Shared<RegressionForest>,
}

saved_as_bytes!(PyRegressionForest, RegressionForest);

#[pymethods]
impl PyRegressionForest {
    #[staticmethod]
    fn fit<'py>(
        py: Python<'py>,
        x: Table<'py>,
        y: Column<'py>,
        sample_weight: Option<Column<'py>>,
        trees: TreeArguments,
        prior_mean: Option<f64>,
        prior_variance: Option<f64>,
        noise_variance: Option<f64>,
        leaf_model: &str,
        unseen_cuts: &str,
        n_threads: usize,
    ) -> PyResult<Self> {
        let leaf_model = match leaf_model {
            "hierarchical" => LeafModel::Hierarchical,
            "independent" => LeafModel::Independent,
            other => return Err(PyValueError::new_err(format!("leaf_model is {other:?}, not a known one"))),
        };
        let forest = trees.params()?.map_err(|error| to_python(py, &error))?;
        let prior = Prior { mean: prior_mean, variance: prior_variance, noise: noise_variance };
        let params = RegressionParams { forest, prior, leaf_model, unseen: unseen(unseen_cuts)? };
        let points = x.points().map_err(|error| to_python(py, &error))?;
        let (targets, sample_weight): (&[f64], Option<&[f64]>) = (&y, sample_weight.as_deref());
        let model = run(py, n_threads, || RegressionForest::fit(params, points, targets, sample_weight))?;
        Ok(Self { model: Shared::new(model) })
    }

    fn learn<'py>(
        &self,
        py: Python<'py>,
        x: Table<'py>,
        y: Column<'py>,
        sample_weight: Option<Column<'py>>,
        n_threads: usize,
    ) -> PyResult<()> {
        let points = x.points().map_err(|error| to_python(py, &error))?;
        let (targets, sample_weight): (&[f64], Option<&[f64]>) = (&y, sample_weight.as_deref());
        run(py, n_threads, || self.model.write().learn(points, targets, sample_weight))
    }

    fn forget<'py>(&self, py: Python<'py>, x: Table<'py>, y: Column<'py>, n_threads: usize) -> PyResult<()> {
        let points = x.points().map_err(|error| to_python(py, &error))?;
        let targets: &[f64] = &y;
        run(py, n_threads, || self.model.write().forget(points, targets))
    }

    /// Learns what another forest knows. The other is copied first (cheaply), so that a forest can be merged with itself.
    fn merge(&self, py: Python<'_>, other: &Self, n_threads: usize) -> PyResult<()> {
        run(py, n_threads, || {
            let theirs = other.model.read().clone();
            self.model.write().merge(&theirs)
        })
    }

    /// Cheap: trees are shared until one of the two learns more.
    fn at(&self, py: Python<'_>, lifetime: f64) -> PyResult<Self> {
        let view = run(py, 1, || Ok(self.model.read().at(Lifetime::new(lifetime)?)))?;
        Ok(Self { model: Shared::new(view) })
    }

    fn predict<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let points = x.points().map_err(|error| to_python(py, &error))?;
        Ok(PyArray1::from_vec(py, run(py, n_threads, || self.model.read().predict(points))?))
    }

    fn predict_with_std<'py>(
        &self,
        py: Python<'py>,
        x: Table<'py>,
        n_threads: usize,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>)> {
        let points = x.points().map_err(|error| to_python(py, &error))?;
        let found = run(py, n_threads, || self.model.read().predict_with_deviation(points))?;
        Ok((PyArray1::from_vec(py, found.mean), PyArray1::from_vec(py, found.deviation)))
    }

    fn predict_quantiles<'py>(
        &self,
        py: Python<'py>,
        x: Table<'py>,
        quantiles: Vec<f64>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let points = x.points().map_err(|error| to_python(py, &error))?;
        Ok(PyArray1::from_vec(py, run(py, n_threads, || self.model.read().predict_quantiles(points, &quantiles))?))
    }

    fn apply<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> PyResult<Bound<'py, PyArray2<i64>>> {
        let points = x.points().map_err(|error| to_python(py, &error))?;
        let (cells, n_trees) = run(py, n_threads, || {
            let model = self.model.read();
            Ok((model.apply(points)?, model.forest().n_trees()))
        })?;
        table(py, cells, n_trees)
    }

    fn equivalent_kernel<'py>(
        &self,
        py: Python<'py>,
        x: Table<'py>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let points = x.points().map_err(|error| to_python(py, &error))?;
        let (smoothing, n_rows) = run(py, n_threads, || {
            let model = self.model.read();
            Ok((model.equivalent_kernel(points)?, model.n_rows()))
        })?;
        table(py, smoothing, n_rows)
    }

    fn path<'py>(
        &self,
        py: Python<'py>,
        sets: Vec<(Table<'py>, Column<'py>)>,
        n_threads: usize,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<PyPath> {
        let mut validation: Vec<(Points<'_>, &[f64])> = Vec::new();
        for (x, y) in &sets {
            validation.push((x.points().map_err(|error| to_python(py, &error))?, y));
        }
        let hear = |py: Python<'_>, fraction: f64| match &progress {
            None => py.check_signals(),
            Some(progress) => progress.call1((fraction,)).map(drop),
        };
        let path = run_watched(py, n_threads, hear, |watch| {
            self.model.read().path(&validation, &mut |fraction| watch.tell(fraction))
        })?;
        Ok(PyPath::new(path))
    }

    fn relevance<'py>(&self, py: Python<'py>, n_threads: usize) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(PyArray1::from_vec(py, run(py, n_threads, || Ok(self.model.read().relevance()))?))
    }

    #[getter]
    fn lifetime(&self, py: Python<'_>) -> PyResult<f64> {
        run(py, 1, || Ok(self.model.read().lifetime().get()))
    }

    /// The lifetime that the trees are grown to.
    #[getter]
    fn grown(&self, py: Python<'_>) -> PyResult<f64> {
        run(py, 1, || Ok(self.model.read().forest().ground().lifetime().get()))
    }

    #[getter]
    fn n_rows(&self, py: Python<'_>) -> PyResult<usize> {
        run(py, 1, || Ok(self.model.read().n_rows()))
    }

    #[getter]
    fn n_targets(&self, py: Python<'_>) -> PyResult<usize> {
        run(py, 1, || Ok(self.model.read().n_targets()))
    }

    #[getter]
    fn n_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        run(py, 1, || Ok(self.model.read().forest().n_bytes()))
    }

    /// One factor a dimension, or `None` under the quantile measure.
    #[getter]
    fn weights(&self, py: Python<'_>) -> PyResult<Option<Vec<f64>>> {
        run(py, 1, || {
            let model = self.model.read();
            Ok(weights(model.forest().measure(), model.n_dims()))
        })
    }

    /// Mean, variance of the prior and variance of the noise, one triple a target.
    fn gaussians(&self, py: Python<'_>, n_threads: usize) -> PyResult<Vec<(f64, f64, f64)>> {
        run(py, n_threads, || {
            let model = self.model.read();
            Ok(model.gaussians().iter().map(|g| (g.prior_mean, g.prior_variance, g.noise_variance)).collect())
        })
    }
}
