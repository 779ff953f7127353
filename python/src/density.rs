//! Densities, and the classifier made of one density a class.

use mondrian::Lifetime;
use mondrian::density::{ClassPrior, DensityClassifier, DensityForest, DensityParams, GammaChoice, SelectBy};
use numpy::{PyArray1, PyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{Table, table};
use crate::errors::to_python;
use crate::model::{Shared, saved_as_bytes};
use crate::path::PyPath;
use crate::threads::{run, run_watched};
use crate::trees::{TreeArguments, weights};

fn density_params(
    py: Python<'_>,
    trees: TreeArguments,
    gamma: Option<f64>,
    margin: f64,
    select_by: &str,
) -> PyResult<DensityParams> {
    let forest = trees.params()?.map_err(|error| to_python(py, &error))?;
    let gamma = gamma.map_or(GammaChoice::Auto, GammaChoice::Value);
    let select_by = match select_by {
        "held-out" => SelectBy::HeldOut,
        "leave-one-out" => SelectBy::LeaveOneOut,
        other => return Err(PyValueError::new_err(format!("select_by is {other:?}, not a known word"))),
    };
    Ok(DensityParams { forest, gamma, margin, select_by })
}

/// A fitted density.
#[pyclass(frozen, module = "mondrian._mondrian", name = "DensityForest")]
pub(crate) struct PyDensityForest {
    model: Shared<DensityForest>,
}

saved_as_bytes!(PyDensityForest, DensityForest);

#[pymethods]
impl PyDensityForest {
    #[staticmethod]
    fn fit<'py>(
        py: Python<'py>,
        x: Table<'py>,
        trees: TreeArguments,
        gamma: Option<f64>,
        margin: f64,
        select_by: &str,
        n_threads: usize,
    ) -> PyResult<Self> {
        let params = density_params(py, trees, gamma, margin, select_by)?;
        let points = x.points().map_err(|error| to_python(py, &error))?;
        let model = run(py, n_threads, || DensityForest::fit(&params, points))?;
        Ok(Self { model: Shared::new(model) })
    }

    fn learn<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> PyResult<()> {
        let points = x.points().map_err(|error| to_python(py, &error))?;
        run(py, n_threads, || self.model.write().learn(points))
    }

    fn forget<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> PyResult<()> {
        let points = x.points().map_err(|error| to_python(py, &error))?;
        run(py, n_threads, || self.model.write().forget(points))
    }

    fn merge(&self, py: Python<'_>, other: &Self, n_threads: usize) -> PyResult<()> {
        run(py, n_threads, || {
            let theirs = other.model.read().clone();
            self.model.write().merge(&theirs)
        })
    }

    /// A copy that answers with another lifetime, at most the one its trees are grown to.
    fn at(&self, py: Python<'_>, lifetime: f64) -> PyResult<Self> {
        let view = run(py, 1, || {
            let model = self.model.read();
            let lifetime = model.at(Lifetime::new(lifetime)?)?.lifetime();
            let mut view = model.clone();
            view.set_lifetime(lifetime)?;
            Ok(view)
        })?;
        Ok(Self { model: Shared::new(view) })
    }

    fn log_density<'py>(
        &self,
        py: Python<'py>,
        x: Table<'py>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let points = x.points().map_err(|error| to_python(py, &error))?;
        Ok(PyArray1::from_vec(py, run(py, n_threads, || self.model.read().log_density(points))?))
    }

    fn leave_one_out<'py>(
        &self,
        py: Python<'py>,
        x: Table<'py>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let points = x.points().map_err(|error| to_python(py, &error))?;
        Ok(PyArray1::from_vec(py, run(py, n_threads, || self.model.read().leave_one_out(points))?))
    }

    fn leave_one_out_score(&self, py: Python<'_>, n_threads: usize) -> PyResult<f64> {
        run(py, n_threads, || Ok(self.model.read().leave_one_out_score()))
    }

    fn sample<'py>(&self, py: Python<'py>, n_rows: usize, seed: u64) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (rows, n_dims) = run(py, 1, || {
            let model = self.model.read();
            Ok((model.sample(n_rows, seed), model.forest().n_dims()))
        })?;
        table(py, rows, n_dims)
    }

    /// The path, and how many rows of each set lie outside the box.
    fn path<'py>(
        &self,
        py: Python<'py>,
        sets: Vec<Table<'py>>,
        n_threads: usize,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(PyPath, Vec<usize>)> {
        let mut validation = Vec::new();
        for x in &sets {
            validation.push(x.points().map_err(|error| to_python(py, &error))?);
        }
        let hear = |py: Python<'_>, fraction: f64| match &progress {
            None => py.check_signals(),
            Some(progress) => progress.call1((fraction,)).map(drop),
        };
        let found = run_watched(py, n_threads, hear, |watch| {
            self.model.read().path(&validation, &mut |fraction| watch.tell(fraction))
        })?;
        Ok((PyPath::new(found.path), found.n_outside))
    }

    #[getter]
    fn lifetime(&self, py: Python<'_>) -> PyResult<f64> {
        run(py, 1, || Ok(self.model.read().lifetime().get()))
    }

    fn gamma(&self, py: Python<'_>, n_threads: usize) -> PyResult<f64> {
        run(py, n_threads, || Ok(self.model.read().gamma()))
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

    /// The corners of the box.
    #[getter]
    fn bounds(&self, py: Python<'_>) -> PyResult<(Vec<f64>, Vec<f64>)> {
        run(py, 1, || {
            let model = self.model.read();
            Ok((model.bounds().lower().to_vec(), model.bounds().upper().to_vec()))
        })
    }

    #[getter]
    fn weights(&self, py: Python<'_>) -> PyResult<Option<Vec<f64>>> {
        run(py, 1, || {
            let model = self.model.read();
            Ok(weights(model.forest().measure(), model.forest().n_dims()))
        })
    }
}

/// One density a class; classes are numbers from 0 on, names are Python's business.
#[pyclass(frozen, module = "mondrian._mondrian", name = "DensityClassifier")]
pub(crate) struct PyDensityClassifier {
    model: Shared<DensityClassifier>,
}

saved_as_bytes!(PyDensityClassifier, DensityClassifier);

#[pymethods]
impl PyDensityClassifier {
    #[staticmethod]
    fn fit<'py>(
        py: Python<'py>,
        x: Table<'py>,
        labels: Vec<u32>,
        prior: &str,
        trees: TreeArguments,
        gamma: Option<f64>,
        margin: f64,
        select_by: &str,
        n_threads: usize,
    ) -> PyResult<Self> {
        let prior = match prior {
            "frequency" => ClassPrior::Frequency,
            "equal" => ClassPrior::Equal,
            other => return Err(PyValueError::new_err(format!("class_prior is {other:?}, not a known word"))),
        };
        let params = density_params(py, trees, gamma, margin, select_by)?;
        let points = x.points().map_err(|error| to_python(py, &error))?;
        let model = run(py, n_threads, || DensityClassifier::fit(&params, prior, points, &labels))?;
        Ok(Self { model: Shared::new(model) })
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
            Ok((model.predict_proba(points)?, model.labels().len()))
        })?;
        table(py, shares, n_classes)
    }

    /// Lifetimes of the classes' densities.
    #[getter]
    fn lifetimes(&self, py: Python<'_>) -> PyResult<Vec<f64>> {
        run(py, 1, || Ok(self.model.read().densities().map(|density| density.lifetime().get()).collect()))
    }

    fn gammas(&self, py: Python<'_>, n_threads: usize) -> PyResult<Vec<f64>> {
        run(py, n_threads, || Ok(self.model.read().densities().map(DensityForest::gamma).collect()))
    }

    #[getter]
    fn weights(&self, py: Python<'_>) -> PyResult<Option<Vec<f64>>> {
        run(py, 1, || {
            let model = self.model.read();
            let forest = model.densities().next().map(DensityForest::forest);
            Ok(forest.and_then(|forest| weights(forest.measure(), forest.n_dims())))
        })
    }
}
