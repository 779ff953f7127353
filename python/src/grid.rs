//! Ridge regression on Mondrian grids.

use mondrian::dense::Threads;
use mondrian::grid::search::{SearchKind, SearchLimits};
use mondrian::grid::{GridRidge, GridRidgeParams};
use mondrian::tuning::{LifetimesChoice, Step};
use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{Column, Table};
use crate::errors::to_python;
use crate::laplace::{step_dict, trajectory_dict};
use crate::model::{Shared, saved_as_bytes};
use crate::threads::{run, run_watched};

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
        other => Err(PyValueError::new_err(format!("search is {other:?}, not a known method"))),
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
        progress: Option<Bound<'py, PyAny>>,
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
        let points = x.points().map_err(|error| to_python(py, &error))?;
        let targets: &[f64] = &y;
        let hear = |py: Python<'_>, step: Step| match &progress {
            None => py.check_signals(),
            Some(progress) => progress.call1((step_dict(py, &step)?,)).map(drop),
        };
        let model = run_watched(py, n_threads, hear, |watch| {
            GridRidge::fit_with_progress(points, targets, &params, &mut |step| watch.tell(step.clone()))
        })?;
        Ok(Self { model: Shared::new(model) })
    }

    fn predict<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let points = x.points().map_err(|error| to_python(py, &error))?;
        Ok(PyArray1::from_vec(py, run(py, n_threads, || self.model.read().predict(points))?))
    }

    #[getter]
    fn lifetimes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(PyArray1::from_vec(py, run(py, 1, || Ok(self.model.read().lifetimes().to_vec()))?))
    }

    #[getter]
    fn alpha(&self, py: Python<'_>) -> PyResult<f64> {
        run(py, 1, || Ok(self.model.read().alpha()))
    }

    fn ranking(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        run(py, 1, || Ok(self.model.read().ranking()))
    }

    fn support(&self, py: Python<'_>, epsilon: f64) -> PyResult<Vec<bool>> {
        run(py, 1, || Ok(self.model.read().support(epsilon)))
    }

    fn trajectory<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let trajectory = run(py, 1, || Ok(self.model.read().trajectory().clone()))?;
        trajectory_dict(py, &trajectory)
    }
}
