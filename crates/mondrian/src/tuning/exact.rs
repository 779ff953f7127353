//! Exact ridge with the general Laplace kernel at fixed lifetimes and α: the Gaussian process it is (report, chapter 3).

use std::sync::OnceLock;

use super::gram::{gram_against, gram_lower};
use crate::dense::{Cholesky, Into, Matrix, Threads, dot, gemv};
use crate::{Error, Points, Result};

/// Queries whose kernel values are held at once.
const BLOCK: usize = 256;

/// The exact solution on n training rows: n³/3 flops and n² numbers while it is made.
///
/// Predictions are ȳ + k(x)ᵀ(K + αI)⁻¹(y − ȳ), with ȳ the intercept. As a Gaussian process with noise, the prior
/// variance is the likelihood's choice σ² = (y−ȳ)ᵀ(K + αI)⁻¹(y−ȳ)/n, and a new target at x has variance
/// σ²(1 + α − kᵀ(K + αI)⁻¹k).
#[derive(Debug, Clone)]
pub struct ExactRidge {
    pub(super) columns: Vec<Vec<f64>>,
    pub(super) lifetimes: Vec<f64>,
    pub(super) alpha: f64,
    pub(super) has_intercept: bool,
    pub(super) intercept: f64,
    pub(super) weights: Vec<f64>,
    pub(super) variance: f64,
    pub(super) threads: Threads,
    /// Made at the fit; a model put together from its parts makes it again when variances are asked for.
    pub(super) factor: OnceLock<Cholesky>,
}

impl ExactRidge {
    /// Solves on these rows.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::Empty`], [`Error::InvalidParameter`] for a lifetime or α out of range,
    /// [`Error::NotPositiveDefinite`] if α is too small for the rows.
    pub fn fit(
        points: Points<'_>,
        targets: &[f64],
        lifetimes: &[f64],
        alpha: f64,
        fit_intercept: bool,
        threads: Threads,
    ) -> Result<Self> {
        check(points, targets, lifetimes, alpha)?;
        let n = points.n_rows();
        let columns: Vec<Vec<f64>> = (0..points.n_columns()).map(|d| points.column(d).collect()).collect();
        let intercept = if fit_intercept { targets.iter().sum::<f64>() / n as f64 } else { 0.0 };
        let centred: Vec<f64> = targets.iter().map(|y| y - intercept).collect();
        let factor = factor(&columns, lifetimes, alpha, threads)?;
        let weights = factor.solve(&centred)?;
        let variance = dot(&centred, &weights).max(0.0) / n as f64;
        Ok(Self {
            columns,
            lifetimes: lifetimes.to_vec(),
            alpha,
            has_intercept: fit_intercept,
            intercept,
            weights,
            variance,
            threads,
            factor: OnceLock::from(factor),
        })
    }

    /// The lifetimes.
    pub fn lifetimes(&self) -> &[f64] {
        &self.lifetimes
    }

    /// α.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// The intercept, zero without one.
    pub fn intercept(&self) -> f64 {
        self.intercept
    }

    /// (K + αI)⁻¹(y − ȳ), one number a training row.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// σ², the prior variance that the likelihood chooses.
    pub fn variance(&self) -> f64 {
        self.variance
    }

    /// Predictions.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the width differs.
    pub fn predict(&self, points: Points<'_>) -> Result<Vec<f64>> {
        let mut predictions = Vec::with_capacity(points.n_rows());
        self.for_blocks(points, |kernel| {
            let mut out = vec![self.intercept; kernel.n_columns()];
            gemv(1.0, kernel.view().t(), &self.weights, Into::Add, &mut out);
            predictions.extend(out);
            Ok(())
        })?;
        Ok(predictions)
    }

    /// Predictions and the standard deviation of a new target there, noise included.
    ///
    /// # Errors
    /// As for [`ExactRidge::predict`].
    pub fn predict_with_std(&self, points: Points<'_>) -> Result<(Vec<f64>, Vec<f64>)> {
        let predictions = self.predict(points)?;
        let factor = self.factor()?;
        let mut deviations = Vec::with_capacity(points.n_rows());
        self.for_blocks(points, |mut kernel| {
            factor.half_solve_in_place(kernel.view_mut())?;
            for j in 0..kernel.n_columns() {
                let explained = dot(kernel.column(j), kernel.column(j)).min(1.0);
                deviations.push((self.variance * (1.0 + self.alpha - explained)).sqrt());
            }
            Ok(())
        })?;
        Ok((predictions, deviations))
    }

    /// The smoothing matrix, row-major, one row a query and one column a training row: predictions are it times y.
    ///
    /// # Errors
    /// As for [`ExactRidge::predict`].
    pub fn equivalent_kernel(&self, points: Points<'_>) -> Result<Vec<f64>> {
        let factor = self.factor()?;
        let n = self.weights.len() as f64;
        let mut smoother = Vec::with_capacity(points.n_rows() * self.weights.len());
        self.for_blocks(points, |mut kernel| {
            factor.solve_in_place(kernel.view_mut())?;
            for j in 0..kernel.n_columns() {
                // S(I − 11ᵀ/n) + 11ᵀ/n (design, section 4).
                let rest = if self.has_intercept { (1.0 - kernel.column(j).iter().sum::<f64>()) / n } else { 0.0 };
                smoother.extend(kernel.column(j).iter().map(|s| s + rest));
            }
            Ok(())
        })?;
        Ok(smoother)
    }

    fn factor(&self) -> Result<&Cholesky> {
        if let Some(factor) = self.factor.get() {
            return Ok(factor);
        }
        let made = factor(&self.columns, &self.lifetimes, self.alpha, self.threads)?;
        Ok(self.factor.get_or_init(|| made))
    }

    fn for_blocks(&self, points: Points<'_>, mut work: impl FnMut(Matrix) -> Result<()>) -> Result<()> {
        points.check_width(self.lifetimes.len())?;
        let width = points.n_columns();
        let rows = points.to_row_major();
        for block in rows.chunks(BLOCK * width) {
            let block = Points::row_major(block, width)?;
            work(gram_against(&self.columns, &self.lifetimes, block, self.threads))?;
        }
        Ok(())
    }
}

fn factor(columns: &[Vec<f64>], lifetimes: &[f64], alpha: f64, threads: Threads) -> Result<Cholesky> {
    let mut a = gram_lower(columns, lifetimes, threads);
    for i in 0..a.n_rows() {
        a[(i, i)] += alpha;
    }
    Cholesky::new(a, threads)
}

pub(super) fn check(points: Points<'_>, targets: &[f64], lifetimes: &[f64], alpha: f64) -> Result<()> {
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
    if let Some(&value) = lifetimes.iter().find(|&&l| !(l >= 0.0 && l.is_finite())) {
        return Err(Error::InvalidParameter { name: "lifetime", value, expected: "a finite number ≥ 0" });
    }
    if !(alpha > 0.0 && alpha.is_finite()) {
        return Err(Error::InvalidParameter { name: "alpha", value: alpha, expected: "a finite number > 0" });
    }
    Ok(())
}
