//! Ridge regression on Mondrian grids.

use mondrian::LifetimesChoice;
use mondrian::SearchKind;
use mondrian::internals::linalg::Threads;
use mondrian::{GridRidge, GridRidgeParams};
use pyo3::prelude::*;

use crate::errors::unknown;
use crate::model::bound;
use crate::searched::with_search;

pub(crate) fn search_kind(word: &str) -> PyResult<SearchKind> {
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

/// A dictionary with these keys; values of `None` are tuned by the search.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Arguments {
    n_grids: usize,
    lifetimes: Option<Vec<f64>>,
    alpha: Option<f64>,
    search: String,
    budget: usize,
    patience: usize,
    search_rows: usize,
    fit_intercept: bool,
    seed: u64,
}

impl Arguments {
    fn params(self, n_threads: usize) -> PyResult<GridRidgeParams> {
        Ok(GridRidgeParams {
            n_grids: self.n_grids,
            lifetimes: match self.lifetimes {
                None => LifetimesChoice::Auto,
                Some(values) => LifetimesChoice::Each(crate::searched::lifetimes(&values)?),
            },
            alpha: self.alpha,
            search: search_kind(&self.search)?,
            budget: self.budget,
            patience: self.patience,
            search_rows: self.search_rows,
            fit_intercept: self.fit_intercept,
            seed: self.seed,
            threads: Threads::up_to(n_threads),
        })
    }
}

bound!(
    /// A fitted model.
    PyGridRidge,
    "GridRidge",
    GridRidge
);
with_search!(PyGridRidge, GridRidge, Arguments);

#[pymethods]
impl PyGridRidge {
    #[getter]
    fn n_targets(&self, py: Python<'_>) -> PyResult<usize> {
        self.model.query(py, 1, |model| Ok(model.n_targets()))
    }

    /// One number per target.
    #[getter]
    fn intercepts(&self, py: Python<'_>) -> PyResult<Vec<f64>> {
        self.model.query(py, 1, |model| Ok(model.ridge().intercepts().to_vec()))
    }

    fn ranking(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        self.model.query(py, 1, |model| Ok(model.ranking()))
    }

    fn support(&self, py: Python<'_>, epsilon: f64) -> PyResult<Vec<bool>> {
        self.model.query(py, 1, |model| Ok(model.support(epsilon)))
    }
}
