//! Regression forests.

use mondrian::FitOptions;
use mondrian::{LeafModel, Prior, RegressionForest, RegressionParams};
use mondrian::{Lifetime, Points};
use pyo3::prelude::*;

use crate::arrays::{Column, Labelled, NewTable, NewVector, NewVectors, Table, Weighted, all_points, views};
use crate::errors::unknown;
use crate::model::{bound, grown_forest, with_trees};
use crate::path::PyPath;
use crate::threads::Work;
use crate::trees::{TreeArguments, unseen};

/// A dictionary with these keys; `None` is automatic.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Arguments {
    trees: TreeArguments,
    mean: Option<f64>,
    variance: Option<f64>,
    noise: Option<f64>,
    kappa: Option<f64>,
    leaf_model: String,
    unseen: String,
}

impl Arguments {
    fn params(self, py: Python<'_>) -> PyResult<RegressionParams> {
        let leaf_model = match self.leaf_model.as_str() {
            "hierarchical" => LeafModel::Hierarchical,
            "independent" => LeafModel::Independent,
            other => return Err(unknown("leaf_model", other)),
        };
        let prior = Prior { mean: self.mean, variance: self.variance, noise: self.noise, kappa: self.kappa };
        Ok(RegressionParams { forest: self.trees.params(py)?, prior, leaf_model, unseen: unseen(&self.unseen)? })
    }
}

bound!(
    /// A fitted forest. Targets of several columns come row-major.
    PyRegressionForest,
    "RegressionForest",
    RegressionForest
);
with_trees!(PyRegressionForest);
grown_forest!(RegressionForest);

#[pymethods]
impl PyRegressionForest {
    #[staticmethod]
    fn fit<'py>(py: Python<'py>, rows: Weighted<'py>, arguments: Arguments, work: Work<'py>) -> PyResult<Self> {
        let params = arguments.params(py)?;
        let (points, targets, weights) = views(py, &rows)?;
        work.run(py, |mut progress| {
            params.fit_with(points, targets, FitOptions { weights, progress: progress.part(0.0, 1.0) })
        })
        .map(Self::from)
    }

    fn learn<'py>(&self, py: Python<'py>, rows: Weighted<'py>, work: Work<'py>) -> PyResult<()> {
        let (points, targets, weights) = views(py, &rows)?;
        self.model.learn(py, &work, points.n_rows(), |model, mut progress| {
            model.learn_with(points, targets, FitOptions { weights, progress: progress.part(0.0, 1.0) })
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
        Ok(Self { model: self.model.derived(py, |model| model.at(Lifetime::new(lifetime)?))? })
    }

    fn predict<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> NewVector<'py> {
        self.model.vector_of(py, &x, n_threads, RegressionForest::predict)
    }

    /// Means at several κ, one row each; the model's own for `None`.
    fn predict_at_kappas<'py>(
        &self,
        py: Python<'py>,
        x: Table<'py>,
        kappas: Vec<Option<f64>>,
        n_threads: usize,
    ) -> NewTable<'py, f64> {
        self.model
            .table_of(py, &x, n_threads, |model, points| Ok((model.predict_at_kappas(points, &kappas)?, kappas.len())))
    }

    fn predict_with_std<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> NewVectors<'py> {
        self.model.vectors_of(py, &x, n_threads, |model, points| {
            let found = model.predict_with_std(points)?;
            Ok((found.mean, found.std))
        })
    }

    fn predict_quantiles<'py>(
        &self,
        py: Python<'py>,
        x: Table<'py>,
        quantiles: Vec<f64>,
        n_threads: usize,
    ) -> NewVector<'py> {
        self.model.vector_of(py, &x, n_threads, |model, points| model.predict_quantiles(points, &quantiles))
    }

    fn apply<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> NewTable<'py, i64> {
        self.model.table_of(py, &x, n_threads, |model, points| Ok((model.apply(points)?, model.forest().n_trees())))
    }

    fn equivalent_kernel<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> NewTable<'py, f64> {
        self.model.table_of(py, &x, n_threads, |model, points| Ok((model.equivalent_kernel(points)?, model.n_rows())))
    }

    fn path<'py>(&self, py: Python<'py>, sets: Vec<Labelled<'py>>, work: Work<'py>) -> PyResult<PyPath> {
        let sets = all_points(py, &sets)?;
        work.run(py, |mut progress| self.model.read().path(&sets, &mut progress)).map(PyPath::new)
    }

    fn relevance<'py>(&self, py: Python<'py>, n_threads: usize) -> NewVector<'py> {
        self.model.vector(py, n_threads, |model| Ok(model.relevance()))
    }

    #[getter]
    fn n_targets(&self, py: Python<'_>) -> PyResult<usize> {
        self.model.query(py, 1, |model| Ok(model.n_targets()))
    }

    /// Mean, variance of the prior, variance of the noise and κ, four numbers per target.
    fn gaussians(&self, py: Python<'_>, n_threads: usize) -> PyResult<Vec<(f64, f64, f64, f64)>> {
        self.model.query(py, n_threads, |model| {
            Ok(model.gaussians().iter().map(|g| (g.prior_mean, g.prior_variance, g.noise_variance, g.kappa)).collect())
        })
    }

    /// The variance of the noise, given or automatic, one per target.
    fn noise_variances<'py>(&self, py: Python<'py>, n_threads: usize) -> NewVector<'py> {
        self.model.vector(py, n_threads, |model| Ok(model.noise_variances().to_vec()))
    }

    fn degrees_of_freedom(&self, py: Python<'_>, n_threads: usize) -> PyResult<f64> {
        self.model.query(py, n_threads, RegressionForest::degrees_of_freedom)
    }
}
