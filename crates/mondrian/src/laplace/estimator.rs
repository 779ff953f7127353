//! The estimator a newcomer should reach for first: Laplace-kernel ridge whose lifetimes and α find themselves.

use crate::features::MondrianGrid;
use crate::laplace::{LaplaceKernel, LaplaceRidge};
use crate::laplace::{Tuned, TuningParams, tune};
use crate::linalg::Threads;
use crate::process::{NodeKey, Weights};
use crate::progress::{FitOptions, Progress, Step};
use crate::ridge::KernelRidge;
use crate::ridge::grid::GridSolution;
use crate::select::Trajectory;
use crate::select::Validation;
use crate::select::split::{gather, keyed_order, spreads};
use crate::{Error, Lifetime, Points, Prediction, Result};

/// Where the lifetimes come from.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum LifetimesChoice {
    /// One per dimension, tuned.
    #[default]
    Auto,
    /// The same for all dimensions.
    Common(Lifetime),
    /// One per dimension, given.
    Each(Vec<Lifetime>),
    /// One for all dimensions in units of their standard deviations, chosen on the path of the kernel's Mondrian
    /// approximation together with an automatic α: the conclusion of the report's chapter 4. Cheaper than tuning one per
    /// dimension, and cruder.
    Path(Validation),
}

impl LifetimesChoice {
    /// The numbers, where they are given.
    pub(crate) fn given(&self, n_dims: usize) -> Option<Vec<f64>> {
        match self {
            Self::Auto | Self::Path(_) => None,
            Self::Common(lifetime) => Some(vec![lifetime.get(); n_dims]),
            Self::Each(lifetimes) => Some(lifetimes.iter().map(|lifetime| lifetime.get()).collect()),
        }
    }
}

/// Lifetimes and α by the path of the kernel's Mondrian approximation, as a trajectory of one step.
pub(crate) fn tuned_on_path(
    points: Points<'_>,
    targets: &[f64],
    validation: Validation,
    alpha: Option<f64>,
    tuning: &TuningParams,
) -> Result<Tuned> {
    let params = KernelRidge::params().seed(tuning.seed).fit_intercept(tuning.fit_intercept).validation(validation);
    let params = match alpha {
        Some(alpha) => params.alpha(alpha),
        None => params.auto_alpha(),
    };
    let choice = params.choose(points, targets)?;
    let weights = Weights::inverse_deviation(points)?;
    let lifetimes: Vec<f64> = weights.factors().iter().map(|weight| weight * choice.lifetime.get()).collect();
    let mut trajectory = Trajectory::default();
    let (alpha, error) = (choice.alpha, choice.error);
    // Too few rows to hold any out have no error, and a file has no room for one that is no number.
    if error.is_finite() {
        trajectory.push(Step { lifetimes: lifetimes.clone(), alpha, error, cost: 0.0, rows: points.n_rows() });
    }
    Ok(Tuned { lifetimes, alpha, trajectory, finished: true })
}

/// How [`LaplaceKernelRidge`] is fitted.
///
/// | field | default | meaning | range |
/// | --- | --- | --- | --- |
/// | `lifetime` | auto | λ, or one per dimension | ≥ 0 |
/// | `alpha` | `None`: tuned | α, the report's δ² | > 0 |
/// | `exact_rows` | 20 000 | the most rows solved exactly; beyond, grid features and conjugate gradients | ≥ 1 |
/// | `n_grids` | 200 | grids whose cells stand in for the exact kernel beyond that | ≥ 1 |
/// | `tuning` | see [`TuningParams`] | how automatic values are found, the intercept, seed and threads | |
#[derive(Debug, Clone, PartialEq)]
pub struct LaplaceKernelRidgeParams {
    /// The lifetimes.
    pub lifetime: LifetimesChoice,
    /// α, or `None` for tuned.
    pub alpha: Option<f64>,
    /// The most rows solved exactly: n² numbers and n³/3 flops.
    pub exact_rows: usize,
    /// Grids that stand in for the exact kernel beyond `exact_rows`.
    pub n_grids: usize,
    /// How automatic values are found. Its `lifetimes` and `alpha` are overwritten by the two above.
    pub tuning: TuningParams,
}

impl Default for LaplaceKernelRidgeParams {
    fn default() -> Self {
        Self {
            lifetime: LifetimesChoice::Auto,
            alpha: None,
            exact_rows: 20_000,
            n_grids: 200,
            tuning: TuningParams::default(),
        }
    }
}

impl LaplaceKernelRidgeParams {
    /// The lifetimes: tuned, or given.
    #[must_use]
    pub fn lifetime(self, lifetime: LifetimesChoice) -> Self {
        Self { lifetime, ..self }
    }

    /// α, or `None` for tuned.
    #[must_use]
    pub fn alpha(self, alpha: impl Into<Option<f64>>) -> Self {
        Self { alpha: alpha.into(), ..self }
    }

    /// The most rows solved exactly.
    #[must_use]
    pub fn exact_rows(self, exact_rows: usize) -> Self {
        Self { exact_rows, ..self }
    }

    /// Grids that stand in for the exact kernel beyond the exact rows.
    #[must_use]
    pub fn n_grids(self, n_grids: usize) -> Self {
        Self { n_grids, ..self }
    }

    /// How automatic values are found.
    #[must_use]
    pub fn tuning(self, tuning: TuningParams) -> Self {
        Self { tuning, ..self }
    }

    /// The seed.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { tuning: TuningParams { seed, ..self.tuning }, ..self }
    }

    /// Whether to centre the targets.
    #[must_use]
    pub fn fit_intercept(self, fit_intercept: bool) -> Self {
        Self { tuning: TuningParams { fit_intercept, ..self.tuning }, ..self }
    }

    /// Tunes what is automatic on some of the rows, then solves on all of them.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::Empty`], [`Error::NotFinite`] in the targets, [`Error::InvalidParameter`],
    /// [`Error::NotPositiveDefinite`] if a given α is too small.
    pub fn fit(&self, points: Points<'_>, targets: &[f64]) -> Result<LaplaceKernelRidge> {
        self.fit_with(points, targets, FitOptions::default())
    }

    /// As [`LaplaceKernelRidgeParams::fit`], with a progress callback, which receives every evaluation of the tuning.
    ///
    /// # Errors
    /// As [`LaplaceKernelRidgeParams::fit`], [`Error::NoWeights`] and [`Error::Cancelled`].
    pub fn fit_with(&self, points: Points<'_>, targets: &[f64], options: FitOptions<'_>) -> Result<LaplaceKernelRidge> {
        let mut progress = options.unweighted("Laplace kernel ridge")?;
        LaplaceKernelRidge::fitted(self, points, targets, &mut progress)
    }
}

/// Ridge regression with the exact general Laplace kernel exp(−Σ λ_d |x_d − x'_d|), λ and α tuned if asked.
///
/// ```
/// use mondrian::internals::laplace::LaplaceKernelRidge;
/// use mondrian::Points;
/// // The second input is noise.
/// let x: Vec<f64> = (0..60).flat_map(|i| [f64::from(i) / 60.0, f64::from(i * 37 % 60) / 60.0]).collect();
/// let y: Vec<f64> = x.chunks(2).map(|row| (9.0 * row[0]).sin()).collect();
/// let model = LaplaceKernelRidge::params().fit(Points::row_major(&x, 2)?, &y)?;
/// assert_eq!(model.support(0.01), [true, false]);
/// let predicted = model.predict_with_std(Points::row_major(&[0.5, 0.9], 2)?)?;
/// assert!((predicted.mean[0] - 4.5_f64.sin()).abs() < 0.1 && predicted.std[0] < 0.5);
/// # Ok::<(), mondrian::Error>(())
/// ```
///
/// Beyond [`LaplaceKernelRidgeParams::exact_rows`] the solution is on the cells of Mondrian grids, whose kernel is this
/// one in expectation; [`LaplaceKernelRidge::is_exact`] says which it is. Lifetimes and α, if both are tuned, then carry
/// a common factor: tuned ones are often so small that the kernel is 1 − Σλ|x − x'|, where only their ratio to α
/// matters, and grids need cuts to tell points apart. Standard deviations and the equivalent kernel belong to the exact
/// solution.
#[derive(Debug, Clone)]
pub struct LaplaceKernelRidge {
    pub(crate) solution: LaplaceSolution,
    pub(crate) spreads: Vec<f64>,
    pub(crate) trajectory: Trajectory,
}

/// The solution behind a [`LaplaceKernelRidge`].
#[derive(Debug, Clone)]
pub enum LaplaceSolution {
    /// With the exact kernel.
    Exact(LaplaceRidge),
    /// With the cells of grids, more rows than an exact solve can hold.
    Features(GridSolution),
}

impl LaplaceKernelRidge {
    /// Parameters, to be fitted.
    pub fn params() -> LaplaceKernelRidgeParams {
        LaplaceKernelRidgeParams::default()
    }

    fn fitted(
        params: &LaplaceKernelRidgeParams,
        points: Points<'_>,
        targets: &[f64],
        progress: &mut Progress<'_>,
    ) -> Result<Self> {
        let lifetimes = params.lifetime.given(points.n_columns());
        // Placeholders for what is automatic, so that everything given is checked before the work starts.
        let stand_in = vec![0.0; points.n_columns()];
        check(points, targets, lifetimes.as_ref().unwrap_or(&stand_in), params.alpha.unwrap_or(1.0))?;
        let tuning = TuningParams { lifetimes: lifetimes.clone(), alpha: params.alpha, ..params.tuning.clone() };
        let tuned = match (&params.lifetime, lifetimes, params.alpha) {
            (LifetimesChoice::Path(validation), _, alpha) => {
                tuned_on_path(points, targets, *validation, alpha, &tuning)?
            }
            (_, Some(lifetimes), Some(alpha)) => {
                Tuned { lifetimes, alpha, trajectory: Trajectory::default(), finished: true }
            }
            _ => tune(points, targets, &tuning, progress)?,
        };
        if !tuned.finished {
            return Err(Error::Cancelled);
        }
        let TuningParams { fit_intercept, threads, seed, .. } = tuning;
        let Tuned { lifetimes, alpha, .. } = &tuned;
        let solution = if points.n_rows() <= params.exact_rows {
            let exact = LaplaceRidge::params(LaplaceKernel::of_numbers(lifetimes)?).alpha(*alpha);
            LaplaceSolution::Exact(exact.fit_intercept(fit_intercept).threads(threads).fit(points, targets)?)
        } else {
            let grid = MondrianGrid::new(params.n_grids, seed)?;
            // What was given stays as it was given.
            let scale = if params.lifetime == LifetimesChoice::Auto && params.alpha.is_none() {
                feature_scale(grid, points, targets, lifetimes, *alpha, fit_intercept)?
            } else {
                1.0
            };
            let scaled: Vec<f64> = lifetimes.iter().map(|lifetime| lifetime * scale).collect();
            let features = GridSolution::fit(grid, points, targets, &scaled, alpha * scale, fit_intercept, threads)?;
            LaplaceSolution::Features(features)
        };
        Ok(Self { solution, spreads: spreads(points), trajectory: tuned.trajectory })
    }

    /// The lifetimes, tuned or given.
    pub fn lifetimes(&self) -> &[f64] {
        match &self.solution {
            LaplaceSolution::Exact(exact) => exact.kernel().numbers(),
            LaplaceSolution::Features(features) => features.lifetimes(),
        }
    }

    /// α, tuned or given.
    pub fn alpha(&self) -> f64 {
        match &self.solution {
            LaplaceSolution::Exact(exact) => exact.alpha(),
            LaplaceSolution::Features(features) => features.alpha(),
        }
    }

    /// Whether the kernel is exact, or cells of grids stand in for it.
    pub fn is_exact(&self) -> bool {
        matches!(self.solution, LaplaceSolution::Exact(_))
    }

    /// The lifetimes as weights of the measure: a forest or Mondrian features under it have lifetime 1 where this
    /// model has these, so they profit from what tuning found.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] never for lifetimes that were found.
    pub fn measure_weights(&self) -> Result<Weights> {
        Weights::new(self.lifetimes().to_vec())
    }

    /// Every evaluation of the tuning; empty if nothing was tuned.
    pub fn trajectory(&self) -> &[Step] {
        self.trajectory.steps()
    }

    /// The solution behind it.
    pub fn solution(&self) -> &LaplaceSolution {
        &self.solution
    }

    fn exact(&self) -> Result<&LaplaceRidge> {
        match &self.solution {
            LaplaceSolution::Exact(exact) => Ok(exact),
            LaplaceSolution::Features(_) => Err(Error::NotExact),
        }
    }

    /// How much each input matters: λ_d times the input's mean absolute deviation, as a share of the largest.
    ///
    /// A share, because lifetimes and α can shrink together with hardly any effect on predictions: then even the most
    /// important input has a small λ.
    pub fn importances(&self) -> Vec<f64> {
        let raw: Vec<f64> = self.lifetimes().iter().zip(&self.spreads).map(|(l, s)| l * s).collect();
        let largest = raw.iter().fold(0.0, |m: f64, &i| m.max(i));
        raw.into_iter().map(|i| if largest > 0.0 { i / largest } else { 0.0 }).collect()
    }

    /// The inputs whose [importance](LaplaceKernelRidge::importances) is at least `epsilon` (report, chapter 5, with
    /// its caveat: an input that copies another may be left out although it predicts as well).
    pub fn support(&self, epsilon: f64) -> Vec<bool> {
        self.importances().into_iter().map(|i| i > 0.0 && i >= epsilon).collect()
    }

    /// The inputs, most important first.
    pub fn ranking(&self) -> Vec<usize> {
        let importances = self.importances();
        let mut order: Vec<usize> = (0..importances.len()).collect();
        order.sort_by(|&a, &b| importances[b].total_cmp(&importances[a]));
        order
    }

    /// Predictions.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the width differs.
    pub fn predict(&self, points: Points<'_>) -> Result<Vec<f64>> {
        match &self.solution {
            LaplaceSolution::Exact(exact) => Ok(exact.predict(points)?.into_vec()),
            LaplaceSolution::Features(features) => features.predict(points),
        }
    }

    /// Predictions and the standard deviation of a new target there, noise included.
    ///
    /// # Errors
    /// As for [`LaplaceKernelRidge::predict`], and [`Error::NotExact`] if the solution is on features.
    pub fn predict_with_std(&self, points: Points<'_>) -> Result<Prediction> {
        let exact = self.exact()?;
        let variances = exact.predict_variance(points)?.into_vec();
        let mean = exact.predict(points)?.into_vec();
        Ok(Prediction { mean, std: variances.into_iter().map(f64::sqrt).collect() })
    }

    /// The smoothing matrix, row-major, one row per query and one column per training row.
    ///
    /// # Errors
    /// As for [`LaplaceKernelRidge::predict`], and [`Error::NotExact`] if the solution is on features.
    pub fn equivalent_kernel(&self, points: Points<'_>) -> Result<Vec<f64>> {
        Ok(self.exact()?.equivalent_kernel(points)?.transposed().into_vec())
    }
}

/// The most rows on which the factor is chosen.
const SCALE_ROWS: usize = 4000;

/// The power of two on lifetimes and α that predicts a held-out fifth of some rows best from grid features.
fn feature_scale(
    grid: MondrianGrid,
    points: Points<'_>,
    targets: &[f64],
    lifetimes: &[f64],
    alpha: f64,
    fit_intercept: bool,
) -> Result<f64> {
    let mut order = keyed_order(points, NodeKey::root(grid.seed(), 0).fork(0x7363_616C));
    order.truncate(SCALE_ROWS);
    let held_out = order.split_off(order.len() - order.len() / 5);
    if held_out.is_empty() {
        return Ok(1.0);
    }
    let (x, y) = gather(points, targets, &order);
    let (x_held, y_held) = gather(points, targets, &held_out);
    let (train, held) = (Points::row_major(&x, lifetimes.len())?, Points::row_major(&x_held, lifetimes.len())?);
    let error = |scale: f64| -> Result<f64> {
        let scaled: Vec<f64> = lifetimes.iter().map(|lifetime| lifetime * scale).collect();
        let model = GridSolution::fit(grid, train, &y, &scaled, alpha * scale, fit_intercept, Threads::ONE)?;
        Ok(model.predict(held)?.iter().zip(&y_held).map(|(p, y)| (p - y) * (p - y)).sum())
    };
    let mut best = (error(1.0)?, 1.0);
    loop {
        let scale = 2.0 * best.1;
        let found = error(scale)?;
        if !(found < best.0) {
            return Ok(best.1);
        }
        best = (found, scale);
    }
}

/// Refuses what no solve could use, before any work starts.
fn check(points: Points<'_>, targets: &[f64], lifetimes: &[f64], alpha: f64) -> Result<()> {
    points.check_width(lifetimes.len())?;
    if points.n_rows() == 0 {
        return Err(Error::Empty { what: "X", rows: 0, columns: points.n_columns() });
    }
    if targets.len() != points.n_rows() {
        return Err(Error::LengthMismatch { what: "targets", expected: points.n_rows(), found: targets.len() });
    }
    if let Some((row, &value)) = targets.iter().enumerate().find(|(_, y)| !y.is_finite()) {
        return Err(Error::NotFinite { what: "y", row, column: 0, value });
    }
    // Errors are sums of squares: targets for which they overflow would give predictions that are no numbers.
    if !targets.iter().map(|y| y * y).sum::<f64>().is_finite() {
        let largest = targets.iter().fold(0.0_f64, |largest, y| largest.max(y.abs()));
        return Err(Error::TooLarge { what: "the targets", expected: largest, limit: f64::MAX.sqrt() });
    }
    if let Some(&value) = lifetimes.iter().find(|&&l| !(l >= 0.0 && l.is_finite())) {
        return Err(Error::InvalidParameter { name: "lifetime", value, expected: "a finite number ≥ 0" });
    }
    if !(alpha > 0.0 && alpha.is_finite()) {
        return Err(Error::InvalidParameter { name: "alpha", value: alpha, expected: "a finite number > 0" });
    }
    Ok(())
}
