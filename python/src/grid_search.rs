//! A search for the lifetimes of a grid: with progress, manual control, stop and resume.

use std::sync::{Mutex, MutexGuard, PoisonError};

use mondrian::internals::features::MondrianGrid;
use mondrian::internals::grid::search::SearchLimits;
use mondrian::internals::grid::search::{Outcome, Search};
use mondrian::internals::grid::{GridState, Move};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{Labelled, NewVector, vector};
use crate::grid::search_kind;
use crate::searched::{run_searching, trajectory_dict};
use crate::threads::{Work, run};

/// A state with its search.
#[pyclass(frozen, module = "mondrian._mondrian", name = "GridSearch")]
pub(crate) struct PyGridSearch(Mutex<Search>);

impl PyGridSearch {
    fn lock(&self) -> MutexGuard<'_, Search> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyGridSearch {
    #[new]
    fn new<'py>(
        py: Python<'py>,
        train: Labelled<'py>,
        validation: Labelled<'py>,
        n_grids: usize,
        alpha: f64,
        search: &str,
        fit_intercept: bool,
        seed: u64,
    ) -> PyResult<Self> {
        let optimizer = search_kind(search)?.optimizer(seed);
        let (x, x_validation) = (train.0.points(py)?, validation.0.points(py)?);
        let (y, y_validation): (&[f64], &[f64]) = (&train.1, &validation.1);
        run(py, 1, || {
            let grid = MondrianGrid::new(n_grids, seed)?;
            let state = GridState::new(grid, x, y, x_validation, y_validation, alpha, fit_intercept)?;
            Ok(Self(Mutex::new(Search::new(state, optimizer))))
        })
    }

    /// Runs or resumes; returns why it ended.
    fn run<'py>(&self, py: Python<'py>, budget: usize, patience: usize, work: Work<'py>) -> PyResult<&'static str> {
        let limits = SearchLimits { budget, patience };
        let outcome = run_searching(py, &work, |mut progress| self.lock().run(limits, &mut progress))?;
        Ok(match outcome {
            Outcome::Finished => "finished",
            Outcome::Budget => "budget",
            Outcome::Patience => "patience",
            Outcome::Stopped => "stopped",
        })
    }

    /// Tunes alpha at the best configuration.
    fn tune_alpha<'py>(&self, py: Python<'py>, budget: usize, work: Work<'py>) -> PyResult<()> {
        let limits = SearchLimits { budget, patience: usize::MAX };
        run_searching(py, &work, |mut progress| self.lock().tune_alpha(limits, &mut progress)).map(drop)
    }

    #[getter]
    fn alpha(&self, py: Python<'_>) -> PyResult<f64> {
        run(py, 1, || Ok(self.lock().state().alpha()))
    }

    /// The error after each move, (input, whether it is raised); `None` if there is no such cut.
    fn what_if(&self, py: Python<'_>, moves: Vec<(usize, bool)>) -> PyResult<Vec<Option<f64>>> {
        let moves: Vec<Move> = moves.into_iter().map(step).collect();
        run(py, 1, || self.lock().what_if(&moves))
    }

    fn make(&self, py: Python<'_>, input: usize, raise: bool) -> PyResult<Option<f64>> {
        run(py, 1, || self.lock().make(step((input, raise))))
    }

    fn jump(&self, py: Python<'_>, lifetimes: Vec<f64>) -> PyResult<f64> {
        run(py, 1, || self.lock().jump(&lifetimes))
    }

    #[getter]
    fn lifetimes<'py>(&self, py: Python<'py>) -> NewVector<'py> {
        Ok(vector(py, run(py, 1, || Ok(self.lock().state().lifetimes().to_vec()))?))
    }

    /// The current number of cuts per input.
    #[getter]
    fn n_cuts(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        run(py, 1, || Ok(self.lock().state().n_cuts().to_vec()))
    }

    #[getter]
    fn n_cells(&self, py: Python<'_>) -> PyResult<usize> {
        run(py, 1, || Ok(self.lock().state().n_features()))
    }

    #[getter]
    fn error(&self, py: Python<'_>) -> PyResult<f64> {
        run(py, 1, || Ok(self.lock().state().validation_error()))
    }

    #[getter]
    fn evaluations(&self, py: Python<'_>) -> PyResult<usize> {
        run(py, 1, || Ok(self.lock().evaluations()))
    }

    fn predictions<'py>(&self, py: Python<'py>) -> NewVector<'py> {
        Ok(vector(py, run(py, 1, || Ok(self.lock().state().validation_predictions()))?))
    }

    fn trajectory<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let trajectory = run(py, 1, || Ok(self.lock().trajectory().steps().to_vec()))?;
        trajectory_dict(py, &trajectory)
    }
}

fn step((input, raise): (usize, bool)) -> Move {
    if raise { Move::Raise(input) } else { Move::Lower(input) }
}
