//! Ridge regression with the exact Laplace kernel.

use mondrian::dense::Threads;
use mondrian::tuning::{
    LaplaceKernelRidge, LaplaceKernelRidgeParams, LaplaceSolution, LifetimesChoice, Method, Step, Trajectory,
    TuningParams,
};
use numpy::{PyArray1, PyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{Column, Table, table};
use crate::errors::to_python;
use crate::model::{Shared, saved_as_bytes};
use crate::threads::{run, run_watched};

/// A fitted model.
#[pyclass(frozen, module = "mondrian._mondrian", name = "LaplaceKernelRidge")]
pub(crate) struct PyLaplaceKernelRidge {
    model: Shared<LaplaceKernelRidge>,
}

saved_as_bytes!(PyLaplaceKernelRidge, LaplaceKernelRidge);

#[pymethods]
impl PyLaplaceKernelRidge {
    /// Tunes what is `None`, then solves. `progress` is called with a dictionary an evaluation.
    #[staticmethod]
    #[pyo3(signature = (x, y, lifetimes, alpha, search, fit_intercept, exact_rows, n_grids, seed, n_threads, progress))]
    fn fit<'py>(
        py: Python<'py>,
        x: Table<'py>,
        y: Column<'py>,
        lifetimes: Option<Vec<f64>>,
        alpha: Option<f64>,
        search: &str,
        fit_intercept: bool,
        exact_rows: usize,
        n_grids: usize,
        seed: u64,
        n_threads: usize,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Self> {
        let method = match search {
            "gradient" => Method::Gradient,
            "coordinate" => Method::Coordinate,
            other => return Err(PyValueError::new_err(format!("search is {other:?}, not a known method"))),
        };
        let params = LaplaceKernelRidgeParams {
            lifetime: lifetimes.map_or(LifetimesChoice::Auto, LifetimesChoice::Each),
            alpha,
            exact_rows,
            n_grids,
            tuning: TuningParams {
                method,
                fit_intercept,
                seed,
                threads: Threads::up_to(n_threads),
                ..TuningParams::default()
            },
        };
        let points = x.points().map_err(|error| to_python(py, &error))?;
        let targets: &[f64] = &y;
        let hear = |py: Python<'_>, step: Step| match &progress {
            None => py.check_signals(),
            Some(progress) => progress.call1((step_dict(py, &step)?,)).map(drop),
        };
        let model = run_watched(py, n_threads, hear, |watch| {
            LaplaceKernelRidge::fit_with_progress(points, targets, &params, &mut |step| watch.tell(step.clone()))
        })?;
        Ok(Self { model: Shared::new(model) })
    }

    fn predict<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let points = x.points().map_err(|error| to_python(py, &error))?;
        let mean = run(py, n_threads, || self.model.read().predict(points))?;
        Ok(PyArray1::from_vec(py, mean))
    }

    fn predict_with_std<'py>(
        &self,
        py: Python<'py>,
        x: Table<'py>,
        n_threads: usize,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>)> {
        let points = x.points().map_err(|error| to_python(py, &error))?;
        let (mean, std) = run(py, n_threads, || self.model.read().predict_with_std(points))?;
        Ok((PyArray1::from_vec(py, mean), PyArray1::from_vec(py, std)))
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
            let smoothing = model.equivalent_kernel(points)?;
            let n_rows = smoothing.len() / points.n_rows().max(1);
            Ok((smoothing, n_rows))
        })?;
        table(py, smoothing, n_rows)
    }

    #[getter]
    fn is_exact(&self, py: Python<'_>) -> PyResult<bool> {
        run(py, 1, || Ok(self.model.read().is_exact()))
    }

    #[getter]
    fn lifetimes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(PyArray1::from_vec(py, run(py, 1, || Ok(self.model.read().lifetimes().to_vec()))?))
    }

    #[getter]
    fn alpha(&self, py: Python<'_>) -> PyResult<f64> {
        run(py, 1, || Ok(self.model.read().alpha()))
    }

    /// Weights of the training rows and the intercept; `None` if cells of grids stand in for the kernel.
    fn solution<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyArray1<f64>>, f64)>> {
        let found = run(py, 1, || {
            Ok(match self.model.read().solution() {
                LaplaceSolution::Exact(exact) => {
                    Some((exact.dual_coefficients().column(0).to_vec(), exact.intercepts()[0]))
                }
                LaplaceSolution::Features(_) => None,
            })
        })?;
        Ok(found.map(|(weights, intercept)| (PyArray1::from_vec(py, weights), intercept)))
    }

    fn importances<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(PyArray1::from_vec(py, run(py, 1, || Ok(self.model.read().importances()))?))
    }

    fn trajectory<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let trajectory = run(py, 1, || Ok(self.model.read().trajectory().clone()))?;
        trajectory_dict(py, &trajectory)
    }
}

/// One evaluation as a dictionary.
pub(crate) fn step_dict<'py>(py: Python<'py>, step: &Step) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("lifetimes", PyArray1::from_slice(py, &step.lifetimes))?;
    dict.set_item("alpha", step.alpha)?;
    dict.set_item("error", step.error)?;
    dict.set_item("cost", step.cost)?;
    dict.set_item("rows", step.rows)?;
    Ok(dict)
}

/// All evaluations as a dictionary of arrays.
pub(crate) fn trajectory_dict<'py>(py: Python<'py>, trajectory: &Trajectory) -> PyResult<Bound<'py, PyDict>> {
    let steps = trajectory.steps();
    let dict = PyDict::new(py);
    let n_dims = steps.first().map_or(0, |step| step.lifetimes.len());
    let lifetimes = steps.iter().flat_map(|step| step.lifetimes.iter().copied()).collect();
    dict.set_item("lifetimes", table::<f64>(py, lifetimes, n_dims)?)?;
    let column = |value: fn(&Step) -> f64| PyArray1::from_vec(py, steps.iter().map(value).collect());
    dict.set_item("alpha", column(|step| step.alpha))?;
    dict.set_item("error", column(|step| step.error))?;
    dict.set_item("cost", column(|step| step.cost))?;
    let rows: Vec<u64> = steps.iter().map(|step| step.rows as u64).collect();
    dict.set_item("rows", PyArray1::from_vec(py, rows))?;
    Ok(dict)
}
