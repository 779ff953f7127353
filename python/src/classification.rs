//! Classification forests. Classes are numbers from 0 on; their names are kept in Python.

use mondrian::FitOptions;
use mondrian::Loss;
use mondrian::{ClassificationForest, ClassificationParams, ClassificationPath, GammaChoice};
use mondrian::{Lifetime, Points, Result};
use pyo3::prelude::*;

use crate::arrays::{Column, Labelled, NewTable, NewVector, Table, Weighted, all_points, views};
use crate::model::{bound, grown_forest, with_trees};
use crate::path::PyPath;
use crate::threads::{Work, run};
use crate::trees::{TreeArguments, unseen};

/// A dictionary with these keys.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Arguments {
    trees: TreeArguments,
    n_classes: usize,
    /// `None` is automatic.
    gamma: Option<f64>,
    unseen: String,
}

bound!(
    /// A fitted forest.
    PyClassificationForest,
    "ClassificationForest",
    ClassificationForest
);
with_trees!(PyClassificationForest);
grown_forest!(ClassificationForest);

#[pymethods]
impl PyClassificationForest {
    /// Grows the trees and chooses an automatic lifetime.
    #[staticmethod]
    fn fit<'py>(py: Python<'py>, rows: Weighted<'py, u32>, arguments: Arguments, work: Work<'py>) -> PyResult<Self> {
        let gamma = arguments.gamma.map_or(GammaChoice::Auto, GammaChoice::Value);
        let (n_classes, unseen) = (arguments.n_classes, unseen(&arguments.unseen)?);
        let params =
            ClassificationParams { forest: arguments.trees.params(py)?, gamma, unseen, n_classes: Some(n_classes) };
        let (points, labels, weights) = views(py, &rows)?;
        let model = work.run(py, |mut progress| {
            let options = FitOptions { weights, progress: progress.part(0.0, 0.5) };
            let model = params.fit_with(points, labels, options)?;
            model.find_lifetime(&mut progress.part(0.5, 1.0))?;
            Ok(model)
        })?;
        Ok(model.into())
    }

    fn learn<'py>(&self, py: Python<'py>, rows: Weighted<'py, u32>, work: Work<'py>) -> PyResult<()> {
        let (points, labels, weights) = views(py, &rows)?;
        self.model.learn(py, &work, points.n_rows(), |model, mut progress| {
            model.learn_with(points, labels, FitOptions { weights, progress: progress.part(0.0, 1.0) })
        })
    }

    fn forget<'py>(&self, py: Python<'py>, x: Table<'py>, labels: Column<'py, u32>, n_threads: usize) -> PyResult<()> {
        let (points, labels): (Points<'_>, &[u32]) = (x.points(py)?, &labels);
        self.model.change(py, n_threads, |model| model.forget(points, labels))
    }

    fn merge(&self, py: Python<'_>, other: &Self, n_threads: usize) -> PyResult<()> {
        self.model.merge(py, n_threads, &other.model, ClassificationForest::merge)
    }

    /// A copy whose class i is called `numbers[i]`.
    fn renumbered(&self, py: Python<'_>, numbers: Vec<u32>, n_classes: usize) -> PyResult<Self> {
        Ok(Self { model: self.model.derived(py, |model| model.renumbered(&numbers, n_classes))? })
    }

    fn at(&self, py: Python<'_>, lifetime: f64) -> PyResult<Self> {
        Ok(Self { model: self.model.derived(py, |model| model.at(Lifetime::new(lifetime)?))? })
    }

    fn predict_proba<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> NewTable<'py, f64> {
        self.model.table_of(py, &x, n_threads, |model, points| Ok((model.predict_proba(points)?, model.n_classes())))
    }

    fn apply<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> NewTable<'py, i64> {
        self.model.table_of(py, &x, n_threads, |model, points| Ok((model.apply(points)?, model.forest().n_trees())))
    }

    fn path<'py>(
        &self,
        py: Python<'py>,
        sets: Vec<Labelled<'py, u32>>,
        lifetimes: Option<Vec<f64>>,
        work: Work<'py>,
    ) -> PyResult<PyClassificationPath> {
        let sets = all_points(py, &sets)?;
        let path = work.run(py, |mut progress| {
            let lifetimes = lifetimes
                .map(|values| values.into_iter().map(Lifetime::new).collect::<Result<Vec<_>>>())
                .transpose()?;
            self.model.read().path(&sets, lifetimes.as_deref(), &mut progress)
        })?;
        Ok(PyClassificationPath { path })
    }

    fn relevance<'py>(&self, py: Python<'py>, n_threads: usize) -> NewVector<'py> {
        self.model.vector(py, n_threads, |model| Ok(model.relevance()))
    }

    fn gamma(&self, py: Python<'_>, n_threads: usize) -> PyResult<f64> {
        self.model.query(py, n_threads, |model| Ok(model.gamma()))
    }

    #[getter]
    fn n_classes(&self, py: Python<'_>) -> PyResult<usize> {
        self.model.query(py, 1, |model| Ok(model.n_classes()))
    }
}

/// Error rate and log loss at sampled lifetimes, and exactly at any other.
#[pyclass(frozen, module = "mondrian._mondrian", name = "ClassificationPath")]
pub(crate) struct PyClassificationPath {
    path: ClassificationPath,
}

#[pymethods]
impl PyClassificationPath {
    fn error(&self) -> PyPath {
        PyPath::new(self.path.error().clone())
    }

    fn log_loss(&self) -> PyPath {
        PyPath::new(self.path.log_loss().clone())
    }

    /// `loss` is "error" or "log_loss".
    fn value_at(&self, py: Python<'_>, loss: &str, lifetime: f64, n_threads: usize) -> PyResult<f64> {
        let loss = if loss == "error" { Loss::Error } else { Loss::LogLoss };
        run(py, n_threads, || self.path.value_at(loss, Lifetime::new(lifetime)?))
    }
}
