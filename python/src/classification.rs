//! Classification forests. Classes are numbers from 0 on; their names are Python's business.

use mondrian::forest::classification::{ClassificationForest, ClassificationParams, ClassificationPath, GammaChoice};
use mondrian::path::Loss;
use mondrian::{Lifetime, Points};
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;

use crate::arrays::{Column, Table, table};
use crate::errors::to_python;
use crate::model::{Shared, saved_as_bytes};
use crate::path::PyPath;
use crate::threads::{run, run_watched};
use crate::trees::{TreeArguments, unseen, weights};

/// A fitted forest.
#[pyclass(frozen, module = "mondrian._mondrian", name = "ClassificationForest")]
pub(crate) struct PyClassificationForest {
    model: Shared<ClassificationForest>,
}

saved_as_bytes!(PyClassificationForest, ClassificationForest);

#[pymethods]
impl PyClassificationForest {
    #[staticmethod]
    fn fit<'py>(
        py: Python<'py>,
        x: Table<'py>,
        labels: Vec<u32>,
        n_classes: usize,
        sample_weight: Option<Column<'py>>,
        trees: TreeArguments,
        gamma: Option<f64>,
        unseen_cuts: &str,
        n_threads: usize,
    ) -> PyResult<Self> {
        let forest = trees.params()?.map_err(|error| to_python(py, &error))?;
        let gamma = gamma.map_or(GammaChoice::Auto, GammaChoice::Value);
        let params = ClassificationParams { forest, gamma, unseen: unseen(unseen_cuts)? };
        let points = x.points().map_err(|error| to_python(py, &error))?;
        let sample_weight: Option<&[f64]> = sample_weight.as_deref();
        let model =
            run(py, n_threads, || ClassificationForest::fit(params, points, &labels, n_classes, sample_weight))?;
        Ok(Self { model: Shared::new(model) })
    }

    fn learn<'py>(
        &self,
        py: Python<'py>,
        x: Table<'py>,
        labels: Vec<u32>,
        n_classes: usize,
        sample_weight: Option<Column<'py>>,
        n_threads: usize,
    ) -> PyResult<()> {
        let points = x.points().map_err(|error| to_python(py, &error))?;
        let sample_weight: Option<&[f64]> = sample_weight.as_deref();
        run(py, n_threads, || self.model.write().learn(points, &labels, n_classes, sample_weight))
    }

    fn forget<'py>(&self, py: Python<'py>, x: Table<'py>, labels: Vec<u32>, n_threads: usize) -> PyResult<()> {
        let points = x.points().map_err(|error| to_python(py, &error))?;
        run(py, n_threads, || self.model.write().forget(points, &labels))
    }

    fn merge(&self, py: Python<'_>, other: &Self, n_threads: usize) -> PyResult<()> {
        run(py, n_threads, || {
            let theirs = other.model.read().clone();
            self.model.write().merge(&theirs)
        })
    }

    /// A copy whose class i is called `numbers[i]`.
    fn renumbered(&self, py: Python<'_>, numbers: Vec<u32>, n_classes: usize) -> PyResult<Self> {
        let model = run(py, 1, || self.model.read().renumbered(&numbers, n_classes))?;
        Ok(Self { model: Shared::new(model) })
    }

    fn at(&self, py: Python<'_>, lifetime: f64) -> PyResult<Self> {
        let view = run(py, 1, || Ok(self.model.read().at(Lifetime::new(lifetime)?)))?;
        Ok(Self { model: Shared::new(view) })
    }

    fn predict_proba<'py>(
        &self,
        py: Python<'py>,
        x: Table<'py>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let points = x.points().map_err(|error| to_python(py, &error))?;
        let (shares, n_classes) = run(py, n_threads, || {
            let model = self.model.read();
            Ok((model.predict_proba(points)?, model.n_classes()))
        })?;
        table(py, shares, n_classes)
    }

    fn apply<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> PyResult<Bound<'py, PyArray2<i64>>> {
        let points = x.points().map_err(|error| to_python(py, &error))?;
        let (cells, n_trees) = run(py, n_threads, || {
            let model = self.model.read();
            Ok((model.apply(points)?, model.forest().n_trees()))
        })?;
        table(py, cells, n_trees)
    }

    fn path<'py>(
        &self,
        py: Python<'py>,
        sets: Vec<(Table<'py>, Vec<u32>)>,
        lifetimes: Option<Vec<f64>>,
        n_threads: usize,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<PyClassificationPath> {
        let mut validation: Vec<(Points<'_>, &[u32])> = Vec::new();
        for (x, labels) in &sets {
            validation.push((x.points().map_err(|error| to_python(py, &error))?, labels));
        }
        let hear = |py: Python<'_>, fraction: f64| match &progress {
            None => py.check_signals(),
            Some(progress) => progress.call1((fraction,)).map(drop),
        };
        let path = run_watched(py, n_threads, hear, |watch| {
            let lifetimes = lifetimes
                .map(|values| values.into_iter().map(Lifetime::new).collect::<mondrian::Result<Vec<_>>>())
                .transpose()?;
            self.model.read().path(&validation, lifetimes.as_deref(), &mut |fraction| watch.tell(fraction))
        })?;
        Ok(PyClassificationPath { path })
    }

    fn relevance<'py>(&self, py: Python<'py>, n_threads: usize) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(PyArray1::from_vec(py, run(py, n_threads, || Ok(self.model.read().relevance()))?))
    }

    /// Looking for an automatic one takes threads.
    fn find_lifetime(&self, py: Python<'_>, n_threads: usize) -> PyResult<f64> {
        run(py, n_threads, || Ok(self.model.read().lifetime().get()))
    }

    #[getter]
    fn lifetime(&self, py: Python<'_>) -> PyResult<f64> {
        self.find_lifetime(py, 1)
    }

    /// The lifetime that the trees are grown to.
    #[getter]
    fn grown(&self, py: Python<'_>) -> PyResult<f64> {
        run(py, 1, || Ok(self.model.read().terminal_lifetime().get()))
    }

    fn gamma(&self, py: Python<'_>, n_threads: usize) -> PyResult<f64> {
        run(py, n_threads, || Ok(self.model.read().gamma()))
    }

    #[getter]
    fn n_rows(&self, py: Python<'_>) -> PyResult<usize> {
        run(py, 1, || Ok(self.model.read().n_rows()))
    }

    #[getter]
    fn weights(&self, py: Python<'_>) -> PyResult<Option<Vec<f64>>> {
        run(py, 1, || {
            let model = self.model.read();
            Ok(weights(model.forest().measure(), model.forest().n_dims()))
        })
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
