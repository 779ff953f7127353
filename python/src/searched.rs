//! Searches for lifetimes, and queries of the resulting models.

use std::ops::ControlFlow;

use mondrian::{Lifetime, Result};
use mondrian::{Progress, Step};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::table;
use crate::threads::Work;

/// The methods of a class whose field `model` is a `Shared` of a model with tuned or given lifetimes,
/// one per dimension.
macro_rules! with_search {
    ($class:ty, $model:ty, $arguments:ty) => {
        #[pyo3::pymethods]
        impl $class {
            /// Searches for parameters that are `None`, then solves.
            #[staticmethod]
            fn fit<'py>(
                py: pyo3::Python<'py>,
                rows: $crate::arrays::Labelled<'py>,
                arguments: $arguments,
                work: $crate::threads::Work<'py>,
            ) -> pyo3::PyResult<Self> {
                let (params, points) = (arguments.params(work.n_threads())?, rows.0.points(py)?);
                let targets: &[f64] = &rows.1;
                let fit = |progress: mondrian::Progress<'_>| {
                    params.fit_with(points, targets, mondrian::FitOptions::watched(progress))
                };
                $crate::searched::run_searching(py, &work, fit).map(Self::from)
            }

            fn predict<'py>(
                &self,
                py: pyo3::Python<'py>,
                x: $crate::arrays::Table<'py>,
                n_threads: usize,
            ) -> $crate::arrays::NewVector<'py> {
                self.model.vector_of(py, &x, n_threads, |model, points| model.predict(points))
            }

            #[getter]
            fn lifetimes<'py>(&self, py: pyo3::Python<'py>) -> $crate::arrays::NewVector<'py> {
                self.model.vector(py, 1, |model| Ok(model.lifetimes().to_vec()))
            }

            #[getter]
            fn n_dims(&self, py: pyo3::Python<'_>) -> pyo3::PyResult<usize> {
                self.model.query(py, 1, |model| Ok(model.lifetimes().len()))
            }

            #[getter]
            fn alpha(&self, py: pyo3::Python<'_>) -> pyo3::PyResult<f64> {
                self.model.query(py, 1, |model| Ok(model.alpha()))
            }

            /// All evaluations as a dictionary of arrays.
            fn trajectory<'py>(&self, py: pyo3::Python<'py>) -> pyo3::PyResult<pyo3::Bound<'py, pyo3::types::PyDict>> {
                let trajectory = self.model.query(py, 1, |model| Ok(model.trajectory().to_vec()))?;
                $crate::searched::trajectory_dict(py, &trajectory)
            }
        }
    };
}

pub(crate) use with_search;

/// Runs a search that reports its evaluations and can be interrupted by Ctrl-C.
pub(crate) fn run_searching<T: Send>(
    py: Python<'_>,
    work: &Work<'_>,
    search: impl FnOnce(Progress<'_>) -> Result<T> + Send,
) -> PyResult<T> {
    let to_python = |py: Python<'_>, step: Step| Ok(step_dict(py, &step)?.into_any().unbind());
    work.run_reporting(py, to_python, |watch| {
        search(Progress::new(&mut |report| match report.step {
            Some(step) => watch.report(step.clone()),
            None => ControlFlow::Continue(()),
        }))
    })
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
pub(crate) fn trajectory_dict<'py>(py: Python<'py>, steps: &[Step]) -> PyResult<Bound<'py, PyDict>> {
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

/// Lifetimes by value.
pub(crate) fn lifetimes(values: &[f64]) -> PyResult<Vec<Lifetime>> {
    let checked: Result<Vec<Lifetime>> = values.iter().map(|value| Lifetime::new(*value)).collect();
    checked.map_err(|error| Python::attach(|py| crate::errors::to_python(py, &error)))
}
