//! Ridge regression on grid features at fixed lifetimes.

use serde::{Deserialize, Serialize};

use crate::features::Design;
use crate::features::{GridFeatures, MondrianGrid};
use crate::linalg::Threads;
use crate::ridge::{self, FeatureRidge, SolveReport};
use crate::{Points, Result};

/// How a solution was found, as stored in its file.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Solver {
    /// Cholesky factorisation over the features.
    Primal,
    /// Cholesky factorisation over the rows, fewer than the features.
    Dual,
    /// Conjugate gradients, with the relative residual reached.
    ConjugateGradients {
        /// Iterations made.
        iterations: usize,
        /// ‖b − Aθ‖/‖b‖ at the end.
        residual: f64,
    },
}

impl From<&SolveReport> for Solver {
    fn from(report: &SolveReport) -> Self {
        match report.solver {
            ridge::Solver::Primal => Self::Primal,
            ridge::Solver::Dual => Self::Dual,
            ridge::Solver::ConjugateGradients(_) | ridge::Solver::Auto => {
                Self::ConjugateGradients { iterations: report.steps, residual: report.residuals[0] }
            }
        }
    }
}

/// A fitted linear model on the cells of M grids: what is kept of [`FeatureRidge`] to predict, without training rows.
///
/// ```
/// use mondrian::Points;
/// use mondrian::internals::linalg::Threads;
/// use mondrian::MondrianGrid;
/// use mondrian::internals::grid::GridSolution;
/// let x: Vec<f64> = (0..50).map(|i| f64::from(i) / 10.0).collect();
/// let y: Vec<f64> = x.iter().map(|x| x.sin()).collect();
/// let points = Points::row_major(&x, 1)?;
/// let model = GridSolution::fit(MondrianGrid::new(200, 1)?, points, &y, &[1.0], 0.01, true, Threads::ONE)?;
/// assert!((model.predict(Points::row_major(&[2.05], 1)?)?[0] - 2.05_f64.sin()).abs() < 0.1);
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct GridSolution {
    pub(crate) features: GridFeatures,
    pub(crate) theta: Vec<f64>,
    pub(crate) intercept: f64,
    pub(crate) alpha: f64,
    pub(crate) solver: Solver,
}

impl GridSolution {
    /// Solves on these rows by whichever system is cheapest.
    ///
    /// # Errors
    /// Those of [`GridFeatures::fit`] and of [`crate::ridge::FeatureRidgeParams::fit`].
    pub fn fit(
        grid: MondrianGrid,
        points: Points<'_>,
        targets: &[f64],
        lifetimes: &[f64],
        alpha: f64,
        fit_intercept: bool,
        threads: Threads,
    ) -> Result<Self> {
        let features = GridFeatures::fit(grid, points, lifetimes)?;
        let params = FeatureRidge::params().alpha(alpha).fit_intercept(fit_intercept).threads(threads);
        let model = params.fit(features.cells(points)?.into(), targets)?;
        let (theta, intercept) = (model.coefficients().column(0).to_vec(), model.intercepts()[0]);
        Ok(Self { features, theta, intercept, alpha, solver: model.report().into() })
    }

    /// Predictions; far from all rows they return to the intercept.
    ///
    /// # Errors
    /// [`crate::Error::LengthMismatch`] if the width differs.
    pub fn predict(&self, points: Points<'_>) -> Result<Vec<f64>> {
        let mut predictions = vec![0.0; points.n_rows()];
        self.features.cells(points)?.multiply(&self.theta, &mut predictions);
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
