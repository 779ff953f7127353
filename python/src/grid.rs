//! Ridge regression on Mondrian grids.

use mondrian::dense::Threads;
use mondrian::grid::search::{SearchKind, SearchLimits};
use mondrian::grid::{GridRidge, GridRidgeParams};
use mondrian::tuning::LifetimesChoice;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{Column, NewVector, Table};
use crate::errors::unknown;
use crate::laplace::{run_searching, trajectory_dict};
use crate::model::{Shared, saved_as_bytes};
use crate::threads::Listener;

fn search_kind(word: &str) -> PyResult<SearchKind> {
    match word {
        "auto" => Ok(SearchKind::Auto),
        "greedy" => Ok(SearchKind::Greedy),
        "greedy-both" => Ok(SearchKind::GreedyBoth),
        "lookahead" => Ok(SearchKind::Lookahead),
        "coordinate" => Ok(SearchKind::Coordinate),
        "gradient" => Ok(SearchKind::Gradient),
        "spsa" => Ok(SearchKind::Spsa),
        "bayes" => Ok(SearchKind::Bayes),
        other => Err(unknown("search", other)),
    }
}

/// A fitted model.
#[pyclass(frozen, module = "mondrian._mondrian", name = "GridRidge")]
pub(crate) struct PyGridRidge {
    model: Shared<GridRidge>,
}

saved_as_bytes!(PyGridRidge, GridRidge);

#[pymethods]
impl PyGridRidge {
    #[staticmethod]
    fn fit<'py>(
        py: Python<'py>,
        x: Table<'py>,
        y: Column<'py>,
        n_grids: usize,
        lifetimes: Option<Vec<f64>>,
        alpha: Option<f64>,
        search: &str,
        budget: usize,
        patience: usize,
        search_rows: usize,
        fit_intercept: bool,
        seed: u64,
        n_threads: usize,
        listener: Listener<'py>,
    ) -> PyResult<Self> {
        let params = GridRidgeParams {
            n_grids,
            lifetimes: lifetimes.map_or(LifetimesChoice::Auto, LifetimesChoice::Each),
            alpha,
            search: search_kind(search)?,
            limits: SearchLimits { budget, patience },
            search_rows,
            fit_intercept,
            seed,
            threads: Threads::up_to(n_threads),
        };
        let points = x.points(py)?;
        let targets: &[f64] = &y;
        let model = run_searching(py, n_threads, &listener, |progress| {
            GridRidge::fit_with_progress(points, targets, &params, progress)
        })?;
        Ok(model.into())
    }

    fn predict<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> NewVector<'py> {
        let points = x.points(py)?;
        self.model.vector(py, n_threads, |model| model.predict(points))
    }

    #[getter]
    fn lifetimes<'py>(&self, py: Python<'py>) -> NewVector<'py> {
        self.model.vector(py, 1, |model| Ok(model.lifetimes().to_vec()))
    }

    #[getter]
    fn n_dims(&self, py: Python<'_>) -> PyResult<usize> {
        self.model.ask(py, 1, |model| Ok(model.lifetimes().len()))
    }

    #[getter]
    fn alpha(&self, py: Python<'_>) -> PyResult<f64> {
        self.model.ask(py, 1, |model| Ok(model.alpha()))
    }

    fn ranking(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        self.model.ask(py, 1, |model| Ok(model.ranking()))
    }

    fn support(&self, py: Python<'_>, epsilon: f64) -> PyResult<Vec<bool>> {
        self.model.ask(py, 1, |model| Ok(model.support(epsilon)))
    }

    fn trajectory<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let trajectory = self.model.ask(py, 1, |model| Ok(model.trajectory().clone()))?;
        trajectory_dict(py, &trajectory)
    }
}
