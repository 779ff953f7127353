//! Ridge regression with the exact Laplace kernel.

use mondrian::LifetimesChoice;
use mondrian::internals::laplace::{LaplaceKernelRidge, LaplaceKernelRidgeParams, TuningParams};
use mondrian::internals::laplace::{LaplaceSolution, Method};
use mondrian::internals::linalg::Threads;
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::arrays::{NewTable, NewVector, NewVectors, Table, vector};
use crate::errors::unknown;
use crate::model::bound;
use crate::searched::with_search;
use crate::trees::ValidationArgument;

/// One per dimension, or how the approximation's path is validated.
#[derive(FromPyObject)]
enum LifetimesArgument {
    Each(Vec<f64>),
    Path(ValidationArgument),
}

impl LifetimesArgument {
    fn choice(self) -> PyResult<LifetimesChoice> {
        Ok(match self {
            Self::Each(lifetimes) => LifetimesChoice::Each(crate::searched::lifetimes(&lifetimes)?),
            Self::Path(validation) => LifetimesChoice::Path(validation.choice()?),
        })
    }
}

/// A dictionary with these keys; `None` is tuned.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Arguments {
    lifetimes: Option<LifetimesArgument>,
    alpha: Option<f64>,
    search: String,
    fit_intercept: bool,
    exact_rows: usize,
    n_grids: usize,
    seed: u64,
}

impl Arguments {
    fn params(self, n_threads: usize) -> PyResult<LaplaceKernelRidgeParams> {
        let method = match self.search.as_str() {
            "gradient" => Method::Gradient,
            "coordinate" => Method::Coordinate,
            other => return Err(unknown("search", other)),
        };
        let tuning = TuningParams {
            method,
            fit_intercept: self.fit_intercept,
            seed: self.seed,
            threads: Threads::up_to(n_threads),
            ..TuningParams::default()
        };
        let lifetime = self.lifetimes.map_or(Ok(LifetimesChoice::Auto), LifetimesArgument::choice)?;
        let (alpha, exact_rows, n_grids) = (self.alpha, self.exact_rows, self.n_grids);
        Ok(LaplaceKernelRidgeParams { lifetime, alpha, exact_rows, n_grids, tuning })
    }
}

bound!(
    /// A fitted model.
    PyLaplaceKernelRidge,
    "LaplaceKernelRidge",
    LaplaceKernelRidge
);
with_search!(PyLaplaceKernelRidge, LaplaceKernelRidge, Arguments);

#[pymethods]
impl PyLaplaceKernelRidge {
    fn predict_with_std<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> NewVectors<'py> {
        self.model.vectors_of(py, &x, n_threads, |model, points| {
            let found = model.predict_with_std(points)?;
            Ok((found.mean, found.std))
        })
    }

    fn equivalent_kernel<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> NewTable<'py, f64> {
        self.model.table_of(py, &x, n_threads, |model, points| {
            let smoothing = model.equivalent_kernel(points)?;
            let n_rows = smoothing.len() / points.n_rows().max(1);
            Ok((smoothing, n_rows))
        })
    }

    #[getter]
    fn is_exact(&self, py: Python<'_>) -> PyResult<bool> {
        self.model.query(py, 1, |model| Ok(model.is_exact()))
    }

    /// Weights of the training rows and the intercept; `None` if the kernel is approximated by cells of grids.
    fn solution<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyArray1<f64>>, f64)>> {
        let found = self.model.query(py, 1, |model| {
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
}
