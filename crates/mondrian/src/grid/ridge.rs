//! Ridge regression on grid features at fixed lifetimes.

use super::{GridFeatures, MondrianGrid, Solver, solve};
use crate::dense::Threads;
use crate::{Error, Points, Result};

/// A fitted linear model on the cells of M grids.
///
/// ```
/// use mondrian::Points;
/// use mondrian::dense::Threads;
/// use mondrian::grid::{FeatureRidge, MondrianGrid};
/// let x: Vec<f64> = (0..50).map(|i| f64::from(i) / 10.0).collect();
/// let y: Vec<f64> = x.iter().map(|x| x.sin()).collect();
/// let points = Points::row_major(&x, 1)?;
/// let model = FeatureRidge::fit(MondrianGrid::new(200, 1)?, points, &y, &[1.0], 0.01, true, Threads::ONE)?;
/// assert!((model.predict(Points::row_major(&[2.05], 1)?)?[0] - 2.05_f64.sin()).abs() < 0.1);
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FeatureRidge {
    pub(super) features: GridFeatures,
    pub(super) theta: Vec<f64>,
    pub(super) intercept: f64,
    pub(super) alpha: f64,
    pub(super) solver: Solver,
}

impl FeatureRidge {
    /// Solves on these rows.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::Empty`], [`Error::InvalidParameter`] for a lifetime or α out of range,
    /// [`Error::TooLarge`] as for [`GridFeatures::fit`].
    pub fn fit(
        grid: MondrianGrid,
        points: Points<'_>,
        targets: &[f64],
        lifetimes: &[f64],
        alpha: f64,
        fit_intercept: bool,
        threads: Threads,
    ) -> Result<Self> {
        if targets.len() != points.n_rows() {
            return Err(Error::LengthMismatch { what: "targets", expected: points.n_rows(), found: targets.len() });
        }
        if !(alpha > 0.0 && alpha.is_finite()) {
            return Err(Error::InvalidParameter { name: "alpha", value: alpha, expected: "a finite number > 0" });
        }
        let features = GridFeatures::fit(grid, points, lifetimes)?;
        let cells = features.transform(points)?;
        let intercept = if fit_intercept { targets.iter().sum::<f64>() / targets.len() as f64 } else { 0.0 };
        let centred: Vec<f64> = targets.iter().map(|y| y - intercept).collect();
        let (theta, solver) = solve::solve(&cells, grid.n_grids(), features.n_features(), &centred, alpha, threads)?;
        Ok(Self { features, theta, intercept, alpha, solver })
    }

    /// Predictions; far from all rows they return to the intercept.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the width differs.
    pub fn predict(&self, points: Points<'_>) -> Result<Vec<f64>> {
        let cells = self.features.transform(points)?;
        let mut predictions = solve::predict(&cells, self.features.grid().n_grids(), &self.theta);
        predictions.iter_mut().for_each(|p| *p += self.intercept);
        Ok(predictions)
    }

    /// The features.
    pub fn features(&self) -> &GridFeatures {
        &self.features
    }

    /// The lifetimes.
    pub fn lifetimes(&self) -> &[f64] {
        self.features.lifetimes()
    }

    /// α.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// How the solution was found.
    pub fn solver(&self) -> Solver {
        self.solver
    }
}
