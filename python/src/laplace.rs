//! Ridge regression with the exact Laplace kernel.

use std::ops::ControlFlow;

use mondrian::Result;
use mondrian::dense::Threads;
use mondrian::tuning::{
    LaplaceKernelRidge, LaplaceKernelRidgeParams, LaplaceSolution, LifetimesChoice, Method, Step, Trajectory,
    TuningParams,
};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{Column, NewTable, NewVector, NewVectors, Table, table, vector};
use crate::errors::unknown;
use crate::model::{Shared, saved_as_bytes};
use crate::threads::{Listener, run_watched};
use crate::trees::ValidationArgument;

/// One a dimension, or what the approximation's path chooses on.
#[derive(FromPyObject)]
enum LifetimesArgument {
    Each(Vec<f64>),
    Path(ValidationArgument),
}

impl LifetimesArgument {
    fn choice(self) -> PyResult<LifetimesChoice> {
        Ok(match self {
            Self::Each(lifetimes) => LifetimesChoice::Each(lifetimes),
            Self::Path(validation) => LifetimesChoice::Path(validation.choice()?),
        })
    }
}

/// A fitted model.
#[pyclass(frozen, module = "mondrian._mondrian", name = "LaplaceKernelRidge")]
pub(crate) struct PyLaplaceKernelRidge {
    model: Shared<LaplaceKernelRidge>,
}

saved_as_bytes!(PyLaplaceKernelRidge, LaplaceKernelRidge);

#[pymethods]
impl PyLaplaceKernelRidge {
    /// Tunes what is `None`, then solves. `listener` is called with a dictionary an evaluation.
    #[staticmethod]
    fn fit<'py>(
        py: Python<'py>,
        x: Table<'py>,
        y: Column<'py>,
        lifetimes: Option<LifetimesArgument>,
        alpha: Option<f64>,
        search: &str,
        fit_intercept: bool,
        exact_rows: usize,
        n_grids: usize,
        seed: u64,
        n_threads: usize,
        listener: Listener<'py>,
    ) -> PyResult<Self> {
        let method = match search {
            "gradient" => Method::Gradient,
            "coordinate" => Method::Coordinate,
            other => return Err(unknown("search", other)),
        };
        let params = LaplaceKernelRidgeParams {
            lifetime: lifetimes.map_or(Ok(LifetimesChoice::Auto), LifetimesArgument::choice)?,
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
        let points = x.points(py)?;
        let targets: &[f64] = &y;
        let model = run_searching(py, n_threads, &listener, |progress| {
            LaplaceKernelRidge::fit_with_progress(points, targets, &params, progress)
        })?;
        Ok(model.into())
    }

    fn predict<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> NewVector<'py> {
        let points = x.points(py)?;
        self.model.vector(py, n_threads, |model| model.predict(points))
    }

    fn predict_with_std<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> NewVectors<'py> {
        let points = x.points(py)?;
        self.model.two_vectors(py, n_threads, |model| model.predict_with_std(points))
    }

    fn equivalent_kernel<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> NewTable<'py, f64> {
        let points = x.points(py)?;
        self.model.table(py, n_threads, |model| {
            let smoothing = model.equivalent_kernel(points)?;
            let n_rows = smoothing.len() / points.n_rows().max(1);
            Ok((smoothing, n_rows))
        })
    }

    #[getter]
    fn n_dims(&self, py: Python<'_>) -> PyResult<usize> {
        self.model.ask(py, 1, |model| Ok(model.lifetimes().len()))
    }

    #[getter]
    fn is_exact(&self, py: Python<'_>) -> PyResult<bool> {
        self.model.ask(py, 1, |model| Ok(model.is_exact()))
    }

    #[getter]
    fn lifetimes<'py>(&self, py: Python<'py>) -> NewVector<'py> {
        self.model.vector(py, 1, |model| Ok(model.lifetimes().to_vec()))
    }

    #[getter]
    fn alpha(&self, py: Python<'_>) -> PyResult<f64> {
        self.model.ask(py, 1, |model| Ok(model.alpha()))
    }

    /// Weights of the training rows and the intercept; `None` if cells of grids stand in for the kernel.
    fn solution<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyArray1<f64>>, f64)>> {
        let found = self.model.ask(py, 1, |model| {
            Ok(match model.solution() {
                LaplaceSolution::Exact(exact) => {
                    Some((exact.dual_coefficients().column(0).to_vec(), exact.intercepts()[0]))
                }
                LaplaceSolution::Features(_) => None,
            })
        })?;
        Ok(found.map(|(weights, intercept)| (vector(py, weights), intercept)))
    }

    fn importances<'py>(&self, py: Python<'py>) -> NewVector<'py> {
        self.model.vector(py, 1, |model| Ok(model.importances()))
    }

    fn trajectory<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let trajectory = self.model.ask(py, 1, |model| Ok(model.trajectory().clone()))?;
        trajectory_dict(py, &trajectory)
    }
}

/// Runs a search that reports its evaluations, open to Ctrl-C.
pub(crate) fn run_searching<T: Send>(
    py: Python<'_>,
    n_threads: usize,
    listener: &Listener<'_>,
    work: impl FnOnce(&mut dyn FnMut(&Step) -> ControlFlow<()>) -> Result<T> + Send,
) -> PyResult<T> {
    let hear = |py: Python<'_>, step: Step| match listener {
        None => py.check_signals(),
        Some(listener) => listener.call1((step_dict(py, &step)?,)).map(drop),
    };
    run_watched(py, n_threads, hear, |watch| work(&mut |step| watch.tell(step.clone())))
}

/// One evaluation as a dictionary.
fn step_dict<'py>(py: Python<'py>, step: &Step) -> PyResult<Bound<'py, PyDict>> {
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
