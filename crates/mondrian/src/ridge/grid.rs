//! Ridge regression on grid features at fixed lifetimes.

use serde::{Deserialize, Serialize};

use crate::features::Design;
use crate::features::{GridFeatures, MondrianGrid};
use crate::linalg::{Matrix, MatrixRef, Threads};
use crate::progress::Progress;
use crate::ridge::{self, FeatureRidge, FeatureRidgeParams, SolveReport, by_column};
use crate::{Points, Result};

/// How a solution was computed, as stored in its file.
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
            ridge::Solver::ConjugateGradients | ridge::Solver::Auto => Self::ConjugateGradients {
                iterations: report.steps,
                residual: report.residuals.iter().copied().fold(0.0, f64::max),
            },
        }
    }
}

/// A fitted linear model on the cells of M grids: the part of [`FeatureRidge`] needed for predictions, without training
/// rows.
///
/// ```
/// use mondrian::Points;
/// use mondrian::internals::linalg::Threads;
/// use mondrian::internals::features::MondrianGrid;
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
    /// One column per target.
    pub(crate) theta: Matrix,
    pub(crate) intercepts: Vec<f64>,
    pub(crate) alpha: f64,
    pub(crate) solver: Solver,
}

impl GridSolution {
    /// Solves on these rows with the cheapest solver; `targets` is row-major, with the same number of them for every
    /// row.
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
        let targets = by_column(points.n_rows(), targets)?;
        let params = FeatureRidge::params().alpha(alpha).fit_intercept(fit_intercept).threads(threads);
        Self::of_columns(grid, points, targets.view(), lifetimes, &params)
    }

    /// As [`GridSolution::fit`], on one thread, for targets that are centred already, one column each.
    pub(crate) fn solved(
        grid: MondrianGrid,
        points: Points<'_>,
        targets: MatrixRef<'_>,
        lifetimes: &[f64],
        alpha: f64,
    ) -> Result<Self> {
        Self::of_columns(grid, points, targets, lifetimes, &FeatureRidge::params().alpha(alpha).fit_intercept(false))
    }

    fn of_columns(
        grid: MondrianGrid,
        points: Points<'_>,
        targets: MatrixRef<'_>,
        lifetimes: &[f64],
        params: &FeatureRidgeParams,
    ) -> Result<Self> {
        let features = GridFeatures::on(grid, points, lifetimes)?;
        let model = params.solve(features.cells(points)?.into(), targets, &mut Progress::none())?;
        let (theta, intercepts) = (model.coefficients().clone(), model.intercepts().to_vec());
        Ok(Self { features, theta, intercepts, alpha: params.alpha_value(), solver: model.report().into() })
    }

    /// Predictions, row-major if there are several targets; far from all rows they return to the intercepts.
    ///
    /// # Errors
    /// [`crate::Error::LengthMismatch`] if the width differs.
    pub fn predict(&self, points: Points<'_>) -> Result<Vec<f64>> {
        let predictions = self.predict_columns(points)?;
        Ok(if self.n_targets() == 1 { predictions } else { predictions.transposed() }.into_vec())
    }

    /// Predictions, one column per target.
    pub(crate) fn predict_columns(&self, points: Points<'_>) -> Result<Matrix> {
        let cells = self.features.cells(points)?;
        let mut predictions = Matrix::zeros(points.n_rows(), self.n_targets());
        for (t, intercept) in self.intercepts.iter().enumerate() {
            cells.multiply(self.theta.column(t), predictions.column_mut(t));
            predictions.column_mut(t).iter_mut().for_each(|p| *p += intercept);
        }
        Ok(predictions)
    }

    /// Targets per row.
    pub fn n_targets(&self) -> usize {
        self.intercepts.len()
    }

    /// The centre of each target, or zeros.
    pub fn intercepts(&self) -> &[f64] {
        &self.intercepts
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

    /// How the solution was computed.
    pub fn solver(&self) -> Solver {
        self.solver
    }
}
