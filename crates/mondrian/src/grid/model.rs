//! The estimator of the grid: lifetimes tuned on held-out rows, then ridge regression on the cells of all rows.

use crate::features::MondrianGrid;
use crate::grid::search::{Outcome, Search, SearchKind, SearchLimits};
use crate::grid::{GridSolution, GridState};
use crate::laplace::{LifetimesChoice, TuningParams, tune, tuned_on_path};
use crate::linalg::Threads;
use crate::process::{NodeKey, Weights};
use crate::progress::{FitOptions, Progress, Step};
use crate::ridge::by_column;
use crate::select::Trajectory;
use crate::select::split::{gather, keyed_order, spreads};
use crate::{Error, Points, Result};

/// With fewer rows than this none are held out, and the lifetimes are 1/(D · spread).
const TINY: usize = 10;

/// Parameters of [`GridRidge`].
///
/// | field | default | meaning | range |
/// | --- | --- | --- | --- |
/// | `n_grids` | 50 | grids M | ≥ 1 |
/// | `lifetimes` | auto | one per dimension, searched for or given | ≥ 0 |
/// | `alpha` | 1 | α, the report's δ²; `None` starts with that of the exact kernel and tunes it again after the search | > 0 |
/// | `search` | auto | the optimizer | |
/// | `budget` | 400 | evaluations in all, what-ifs included | |
/// | `patience` | 50 | steps without a new smallest error after which the search ends | |
/// | `search_rows` | 3000 | largest number of rows used by the search, a fifth of them held out | ≥ 10 |
/// | `fit_intercept` | true | targets are centred | |
/// | `seed` | 0 | the grids and the rows held out | |
/// | `threads` | one | for the final solve | |
#[derive(Debug, Clone, PartialEq)]
pub struct GridRidgeParams {
    /// Number of grids.
    pub n_grids: usize,
    /// Lifetimes, searched for or given.
    pub lifetimes: LifetimesChoice,
    /// α.
    pub alpha: Option<f64>,
    /// The optimizer.
    pub search: SearchKind,
    /// Evaluations in all: configurations whose validation error was computed, what-ifs included.
    pub budget: usize,
    /// Steps without a new smallest error after which the search ends.
    pub patience: usize,
    /// Largest number of rows used by the search.
    pub search_rows: usize,
    /// Whether targets are centred.
    pub fit_intercept: bool,
    /// The grids and the rows held out.
    pub seed: u64,
    /// For the final solve.
    pub threads: Threads,
}

impl Default for GridRidgeParams {
    fn default() -> Self {
        Self {
            n_grids: 50,
            lifetimes: LifetimesChoice::Auto,
            alpha: Some(1.0),
            search: SearchKind::Auto,
            budget: SearchLimits::default().budget,
            patience: SearchLimits::default().patience,
            search_rows: 3000,
            fit_intercept: true,
            seed: 0,
            threads: Threads::ONE,
        }
    }
}

impl GridRidgeParams {
    /// Number of grids M.
    #[must_use]
    pub fn n_grids(self, n_grids: usize) -> Self {
        Self { n_grids, ..self }
    }

    /// The lifetimes: searched for, or given.
    #[must_use]
    pub fn lifetimes(self, lifetimes: LifetimesChoice) -> Self {
        Self { lifetimes, ..self }
    }

    /// The optimizer.
    #[must_use]
    pub fn search(self, search: SearchKind) -> Self {
        Self { search, ..self }
    }

    /// Evaluations in all: configurations whose validation error was computed, what-ifs included.
    #[must_use]
    pub fn budget(self, budget: usize) -> Self {
        Self { budget, ..self }
    }

    /// Steps without a new smallest error after which the search ends.
    #[must_use]
    pub fn patience(self, patience: usize) -> Self {
        Self { patience, ..self }
    }

    /// Largest number of rows used by the search.
    #[must_use]
    pub fn search_rows(self, search_rows: usize) -> Self {
        Self { search_rows, ..self }
    }

    /// Whether to centre the targets.
    #[must_use]
    pub fn fit_intercept(self, fit_intercept: bool) -> Self {
        Self { fit_intercept, ..self }
    }

    /// The seed of the grids and of the rows held out.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// α, the report's δ²; `None` starts with that of the exact kernel and tunes it again after the search.
    #[must_use]
    pub fn alpha(self, alpha: impl Into<Option<f64>>) -> Self {
        Self { alpha: alpha.into(), ..self }
    }

    /// Searches for the automatic parameters and solves on all rows. `targets` is row-major, with the same number of
    /// targets for every row; they share lifetimes and α, for which their squared errors are added.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::Empty`], [`Error::NotFinite`] in the targets, [`Error::InvalidParameter`].
    pub fn fit(&self, points: Points<'_>, targets: &[f64]) -> Result<GridRidge> {
        self.fit_with(points, targets, FitOptions::default())
    }

    /// As [`GridRidgeParams::fit`], with a progress callback, which receives every step of the search.
    ///
    /// # Errors
    /// As [`GridRidgeParams::fit`], [`Error::NoWeights`] and [`Error::Cancelled`].
    pub fn fit_with(&self, points: Points<'_>, targets: &[f64], options: FitOptions<'_>) -> Result<GridRidge> {
        let mut progress = options.unweighted("grid ridge")?;
        GridRidge::fitted(self, points, targets, &mut progress)
    }
}

/// Ridge regression on Mondrian-grid features with one lifetime per dimension.
///
/// ```
/// use mondrian::{GridRidge, Points};
/// let x: Vec<f64> = (0..200).flat_map(|i| [f64::from(i) / 200.0, f64::from(i * 83 % 200) / 200.0]).collect();
/// let y: Vec<f64> = x.chunks(2).map(|row| (9.0 * row[0]).sin()).collect();
/// let model = GridRidge::params().fit(Points::row_major(&x, 2)?, &y)?;
/// assert_eq!(model.ranking()[0], 0);
/// assert!(model.lifetimes()[0] > 10.0 * model.lifetimes()[1]);
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct GridRidge {
    pub(crate) ridge: GridSolution,
    pub(crate) trajectory: Trajectory,
    pub(crate) spreads: Vec<f64>,
}

impl GridRidge {
    /// Parameters, to be fitted.
    pub fn params() -> GridRidgeParams {
        GridRidgeParams::default()
    }

    fn fitted(
        params: &GridRidgeParams,
        points: Points<'_>,
        targets: &[f64],
        progress: &mut Progress<'_>,
    ) -> Result<Self> {
        let grid = MondrianGrid::new(params.n_grids, params.seed)?;
        let n_targets = by_column(points.n_rows(), targets)?.n_columns();
        if let Some((at, &value)) = targets.iter().enumerate().find(|(_, y)| !y.is_finite()) {
            return Err(Error::NotFinite { what: "y", row: at / n_targets, column: at % n_targets, value });
        }
        if points.n_rows() == 0 {
            return Err(Error::Empty { what: "X", rows: 0, columns: points.n_columns() });
        }
        let given = params.lifetimes.given(points.n_columns());
        let tuned = match params.lifetimes {
            LifetimesChoice::Path(validation) => {
                let tuning =
                    TuningParams { fit_intercept: params.fit_intercept, seed: params.seed, ..Default::default() };
                Some(tuned_on_path(points, targets, validation, params.alpha, &tuning)?)
            }
            _ => None,
        };
        let given = given.or(tuned.as_ref().map(|tuned| tuned.lifetimes.clone()));
        let mut alpha = match params.alpha.or(tuned.map(|tuned| tuned.alpha)) {
            Some(alpha) => alpha,
            None => exact_alpha(points, targets, given.clone(), params)?,
        };
        let mut trajectory = Trajectory::default();
        let lifetimes = match given {
            Some(lifetimes) => lifetimes,
            None if points.n_rows() < TINY => start(&spreads(points)),
            None => {
                trajectory = search(grid, points, targets, alpha, params, progress)?;
                alpha = trajectory.best().map_or(alpha, |step| step.alpha);
                trajectory.best().map_or_else(|| start(&spreads(points)), |step| step.lifetimes.clone())
            }
        };
        let ridge = GridSolution::fit(grid, points, targets, &lifetimes, alpha, params.fit_intercept, params.threads)?;
        Ok(Self { ridge, trajectory, spreads: spreads(points) })
    }

    /// The lifetimes, tuned or given. They can also be used as weights of the measure of forests and Mondrian features.
    pub fn lifetimes(&self) -> &[f64] {
        self.ridge.lifetimes()
    }

    /// α.
    pub fn alpha(&self) -> f64 {
        self.ridge.alpha()
    }

    /// The lifetimes as weights of the measure: a forest or Mondrian features under this measure at lifetime 1 have
    /// these lifetimes, and so use the result of the search.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`], never for tuned lifetimes.
    pub fn measure_weights(&self) -> Result<Weights> {
        Weights::new(self.lifetimes().to_vec())
    }

    /// Every step of the search; empty if lifetimes were given.
    pub fn trajectory(&self) -> &[Step] {
        self.trajectory.steps()
    }

    /// The model behind it.
    pub fn ridge(&self) -> &GridSolution {
        &self.ridge
    }

    /// The inputs with λ_d ≥ ε (report, chapter 5). Its caveat: a greedy increase by chance is never undone, so an
    /// irrelevant input may have a small positive lifetime; and the unit of λ is the inverse of that of the input.
    pub fn support(&self, epsilon: f64) -> Vec<bool> {
        self.lifetimes().iter().map(|&lifetime| lifetime > 0.0 && lifetime >= epsilon).collect()
    }

    /// λ_d times the mean absolute deviation of each input: the expected number of cuts in a typical distance along it.
    pub fn relevance(&self) -> Vec<f64> {
        self.lifetimes().iter().zip(&self.spreads).map(|(lifetime, spread)| lifetime * spread).collect()
    }

    /// The inputs by [`GridRidge::relevance`], most important first.
    pub fn ranking(&self) -> Vec<usize> {
        let weight = self.relevance();
        let mut order: Vec<usize> = (0..weight.len()).collect();
        order.sort_by(|&a, &b| weight[b].total_cmp(&weight[a]));
        order
    }

    /// Targets per row.
    pub fn n_targets(&self) -> usize {
        self.ridge.n_targets()
    }

    /// Predictions, row-major if there are several targets.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the width differs.
    pub fn predict(&self, points: Points<'_>) -> Result<Vec<f64>> {
        self.ridge.predict(points)
    }
}

/// Equal in units of the inputs' spreads, with one expected cut over a typical distance; zero for a constant input.
pub(crate) fn start(spreads: &[f64]) -> Vec<f64> {
    let n = spreads.iter().filter(|s| **s > 0.0).count() as f64;
    spreads.iter().map(|&spread| if spread > 0.0 { 1.0 / (n * spread) } else { 0.0 }).collect()
}

/// Evaluations that are reserved for tuning α.
const ALPHAS: usize = 12;

fn exact_alpha(
    points: Points<'_>,
    targets: &[f64],
    lifetimes: Option<Vec<f64>>,
    params: &GridRidgeParams,
) -> Result<f64> {
    let GridRidgeParams { fit_intercept, seed, .. } = *params;
    let tuning = TuningParams { lifetimes, fit_intercept, seed, ..TuningParams::default() };
    Ok(tune(points, targets, &tuning, &mut Progress::none())?.alpha)
}

fn search(
    grid: MondrianGrid,
    points: Points<'_>,
    targets: &[f64],
    alpha: f64,
    params: &GridRidgeParams,
    progress: &mut Progress<'_>,
) -> Result<Trajectory> {
    let mut order = keyed_order(points, NodeKey::root(params.seed, 0).fork(0x686F_6C64));
    order.truncate(params.search_rows.max(TINY));
    let held_out = order.split_off(order.len() - order.len() / 5);
    let width = points.n_columns();
    let (x, y) = gather(points, targets, &order);
    let (x_held, y_held) = gather(points, targets, &held_out);
    let (train, held) = (Points::row_major(&x, width)?, Points::row_major(&x_held, width)?);
    let state = GridState::new(grid, train, &y, held, &y_held, alpha, params.fit_intercept)?;
    let mut search = Search::new(state, params.search.optimizer(params.seed));
    let kept = if params.alpha.is_none() { ALPHAS.min(params.budget / 4) } else { 0 };
    let limits = |budget| SearchLimits { budget, patience: params.patience };
    let mut outcome = search.run(limits(params.budget - kept), &mut progress.part(0.0, 0.9))?;
    if kept > 0 && outcome != Outcome::Stopped {
        outcome = search.tune_alpha(limits(params.budget), &mut progress.part(0.9, 1.0))?;
    }
    match outcome {
        Outcome::Stopped => Err(Error::Cancelled),
        _ => Ok(search.trajectory().clone()),
    }
}
