//! Regression forests.

use mondrian::forest::{LeafModel, Prior, RegressionForest, RegressionParams};
use mondrian::{Lifetime, Points};
use pyo3::prelude::*;

use crate::arrays::{Column, NewTable, NewVector, NewVectors, Table, all_points};
use crate::errors::unknown;
use crate::model::{Shared, grown_forest, saved_as_bytes, with_trees};
use crate::path::PyPath;
use crate::threads::{Listener, run_heard};
use crate::trees::{TreeArguments, unseen};

/// A fitted forest. Targets of several columns come row-major.
#[pyclass(frozen, module = "mondrian._mondrian", name = "RegressionForest")]
pub(crate) struct PyRegressionForest {
    model: Shared<RegressionForest>,
}

saved_as_bytes!(PyRegressionForest, RegressionForest);
with_trees!(PyRegressionForest);

grown_forest!(RegressionForest);

#[pymethods]
impl PyRegressionForest {
    #[staticmethod]
    fn fit<'py>(
        py: Python<'py>,
        x: Table<'py>,
        y: Column<'py>,
        sample_weight: Option<Column<'py>>,
        trees: TreeArguments,
        prior: (Option<f64>, Option<f64>, Option<f64>),
        leaf_model: &str,
        unseen_cuts: &str,
        n_threads: usize,
        listener: Listener<'py>,
    ) -> PyResult<Self> {
        let leaf_model = match leaf_model {
            "hierarchical" => LeafModel::Hierarchical,
            "independent" => LeafModel::Independent,
            other => return Err(unknown("leaf_model", other)),
        };
        let prior = Prior { mean: prior.0, variance: prior.1, noise: prior.2 };
        let params = RegressionParams { forest: trees.params(py)?, prior, leaf_model, unseen: unseen(unseen_cuts)? };
        let points = x.points(py)?;
        let (targets, weights): (&[f64], Option<&[f64]>) = (&y, sample_weight.as_deref());
        let model = run_heard(py, n_threads, &listener, |progress| {
            RegressionForest::fit_with_progress(params, points, targets, weights, progress)
        })?;
        Ok(model.into())
    }

    fn learn<'py>(
        &self,
        py: Python<'py>,
        x: Table<'py>,
        y: Column<'py>,
        sample_weight: Option<Column<'py>>,
        n_threads: usize,
        listener: Listener<'py>,
    ) -> PyResult<()> {
        let points = x.points(py)?;
        let (targets, weights): (&[f64], Option<&[f64]>) = (&y, sample_weight.as_deref());
        self.model.learn(py, n_threads, &listener, points.n_rows(), |model, progress| match progress {
            None => model.learn(points, targets, weights),
            Some(progress) => model.learn_with_progress(points, targets, weights, progress),
        })
    }

    fn forget<'py>(&self, py: Python<'py>, x: Table<'py>, y: Column<'py>, n_threads: usize) -> PyResult<()> {
        let (points, targets): (Points<'_>, &[f64]) = (x.points(py)?, &y);
        self.model.change(py, n_threads, |model| model.forget(points, targets))
    }

    fn merge(&self, py: Python<'_>, other: &Self, n_threads: usize) -> PyResult<()> {
        self.model.merge(py, n_threads, &other.model, RegressionForest::merge)
    }

    /// Cheap: trees are shared until one of the two learns more.
    fn at(&self, py: Python<'_>, lifetime: f64) -> PyResult<Self> {
        Ok(Self { model: self.model.derived(py, |model| Ok(model.at(Lifetime::new(lifetime)?)))? })
    }

    fn predict<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> NewVector<'py> {
        let points = x.points(py)?;
        self.model.vector(py, n_threads, |model| model.predict(points))
    }

    fn predict_with_std<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> NewVectors<'py> {
        let points = x.points(py)?;
        self.model.two_vectors(py, n_threads, |model| {
            let found = model.predict_with_deviation(points)?;
            Ok((found.mean, found.deviation))
        })
    }

    fn predict_quantiles<'py>(
        &self,
        py: Python<'py>,
        x: Table<'py>,
        quantiles: Vec<f64>,
        n_threads: usize,
    ) -> NewVector<'py> {
        let points = x.points(py)?;
        self.model.vector(py, n_threads, |model| model.predict_quantiles(points, &quantiles))
    }

    fn apply<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> NewTable<'py, i64> {
        let points = x.points(py)?;
        self.model.table(py, n_threads, |model| Ok((model.apply(points)?, model.forest().n_trees())))
    }

    fn equivalent_kernel<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> NewTable<'py, f64> {
        let points = x.points(py)?;
        self.model.table(py, n_threads, |model| Ok((model.equivalent_kernel(points)?, model.n_rows())))
    }

    fn path<'py>(
        &self,
        py: Python<'py>,
        sets: Vec<(Table<'py>, Column<'py>)>,
        n_threads: usize,
        listener: Listener<'py>,
    ) -> PyResult<PyPath> {
        let sets = all_points(py, &sets)?;
        run_heard(py, n_threads, &listener, |progress| self.model.read().path(&sets, progress)).map(PyPath::new)
    }

    fn relevance<'py>(&self, py: Python<'py>, n_threads: usize) -> NewVector<'py> {
        self.model.vector(py, n_threads, |model| Ok(model.relevance()))
    }

    #[getter]
    fn n_targets(&self, py: Python<'_>) -> PyResult<usize> {
        self.model.ask(py, 1, |model| Ok(model.n_targets()))
    }

    /// Mean, variance of the prior and variance of the noise, one triple a target.
    fn gaussians(&self, py: Python<'_>, n_threads: usize) -> PyResult<Vec<(f64, f64, f64)>> {
        self.model.ask(py, n_threads, |model| {
            Ok(model.gaussians().iter().map(|g| (g.prior_mean, g.prior_variance, g.noise_variance)).collect())
        })
    }
}
