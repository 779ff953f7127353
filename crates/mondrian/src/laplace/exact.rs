//! Exact ridge regression with the Laplace kernel (report, chapter 3 and appendix A).

use std::sync::OnceLock;

use crate::laplace::LaplaceKernel;
use crate::linalg::{Cholesky, Into, Matrix, MatrixRef, Threads, dot, gemm};
use crate::memory;
use crate::ridge::{Centred, check_alpha, intercept_smoother};
use crate::{Error, Points, Result};

/// How [`LaplaceRidge`] is fitted.
///
/// | field | default | meaning | range |
/// | --- | --- | --- | --- |
/// | `kernel` | – | the Laplace kernel | |
/// | `alpha` | 1 | the report's δ²: noise variance over prior variance | ≥ 0; 0 interpolates and needs distinct rows |
/// | `fit_intercept` | yes | centre the targets; off gives the report's formulas exactly | |
/// | `threads` | 1 | for the Gram matrix and the factorisation | |
#[derive(Debug, Clone)]
pub struct LaplaceRidgeParams {
    kernel: LaplaceKernel,
    alpha: f64,
    fit_intercept: bool,
    threads: Threads,
}

impl LaplaceRidgeParams {
    /// δ².
    #[must_use]
    pub fn alpha(self, alpha: f64) -> Self {
        Self { alpha, ..self }
    }

    /// Whether to centre the targets.
    #[must_use]
    pub fn fit_intercept(self, fit_intercept: bool) -> Self {
        Self { fit_intercept, ..self }
    }

    /// Threads of the big calls.
    #[must_use]
    pub fn threads(self, threads: Threads) -> Self {
        Self { threads, ..self }
    }

    /// Fits one target.
    ///
    /// # Errors
    /// As for [`LaplaceRidgeParams::fit_many`].
    pub fn fit(&self, points: Points<'_>, targets: &[f64]) -> Result<LaplaceRidge> {
        self.fit_many(points, MatrixRef::new(targets, targets.len(), 1))
    }

    /// Fits several targets, one per column, with one factorisation.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for a negative `alpha`, [`Error::LengthMismatch`], [`Error::Empty`],
    /// [`Error::NotFinite`] in the targets; [`Error::NotPositiveDefinite`] if `alpha` is 0 and rows repeat, or nearly
    /// so.
    pub fn fit_many(&self, points: Points<'_>, targets: MatrixRef<'_>) -> Result<LaplaceRidge> {
        let n = points.n_rows();
        check_alpha(self.alpha, true)?;
        if n == 0 {
            return Err(Error::Empty { what: "X", rows: 0, columns: points.n_columns() });
        }
        let Centred { targets, means } = Centred::new(targets, n, self.fit_intercept)?;
        let factor = self.factor(points)?;
        let mut dual = targets.clone();
        factor.solve_in_place(dual.view_mut())?;
        let prior = |t| dot(dual.column(t), targets.column(t)).max(0.0) / n as f64;
        Ok(LaplaceRidge {
            params: self.clone(),
            rows: points.to_row_major(),
            n_dims: points.n_columns(),
            factor: OnceLock::from(factor),
            prior_variances: (0..dual.n_columns()).map(prior).collect(),
            dual,
            means,
        })
    }

    /// Of K + δ²I.
    fn factor(&self, points: Points<'_>) -> Result<Cholesky> {
        let mut gram = self.kernel.gram_lower(points, self.threads)?;
        (0..points.n_rows()).for_each(|i| gram[(i, i)] += self.alpha);
        let factor = Cholesky::new(gram, self.threads)?;
        if self.alpha == 0.0 {
            check_distinct(&factor)?;
        }
        Ok(factor)
    }
}

/// Without α a repeated row gives a pivot of zero, or of a rounding error, which must not pass for a number.
fn check_distinct(factor: &Cholesky) -> Result<()> {
    let n = factor.n_rows();
    match (0..n).find(|&i| factor.lower()[(i, i)].powi(2) <= n as f64 * f64::EPSILON) {
        Some(row) => Err(Error::NotPositiveDefinite { row }),
        None => Ok(()),
    }
}

/// Kernel ridge regression with the exact Laplace kernel; in the other view, a Gaussian process.
///
/// Keeps the training rows and an N × N factor.
///
/// ```
/// use mondrian::{LaplaceKernel, LaplaceRidge};
/// use mondrian::{Lifetime, Points};
/// let x: Vec<f64> = (0..50).map(|i| f64::from(i) / 10.0).collect();
/// let y: Vec<f64> = x.iter().map(|x| x.sin()).collect();
/// let points = Points::row_major(&x, 1)?;
/// let model = LaplaceRidge::params(LaplaceKernel::new(Lifetime::new(1.0)?)?).alpha(0.01).fit(points, &y)?;
/// let at = model.predict(Points::row_major(&[2.05], 1)?)?[(0, 0)];
/// assert!((at - 2.05_f64.sin()).abs() < 0.02);
/// assert!(model.leave_one_out_rmse()?[0] < 0.05);
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LaplaceRidge {
    params: LaplaceRidgeParams,
    rows: Vec<f64>,
    n_dims: usize,
    /// Of K + αI, made at the fit; a model assembled from its parts computes it when it is first needed.
    factor: OnceLock<Cholesky>,
    /// (K + αI)⁻¹ times the centred targets.
    dual: Matrix,
    means: Vec<f64>,
    prior_variances: Vec<f64>,
}

/// Query rows predicted at once: their kernel values stay in the second-level cache.
const PREDICT_BLOCK: usize = 32;
/// Query rows solved for at once.
const SOLVE_BLOCK: usize = 256;

impl LaplaceRidge {
    /// Parameters, to be fitted.
    pub fn params(kernel: LaplaceKernel) -> LaplaceRidgeParams {
        LaplaceRidgeParams { kernel, alpha: 1.0, fit_intercept: true, threads: Threads::ONE }
    }

    /// A model from its solution, as a file holds it. The caller has checked shapes and numbers.
    pub(crate) fn from_parts(
        params: LaplaceRidgeParams,
        rows: Vec<f64>,
        n_dims: usize,
        dual: Matrix,
        means: Vec<f64>,
        prior_variances: Vec<f64>,
    ) -> Self {
        Self { params, rows, n_dims, factor: OnceLock::new(), dual, means, prior_variances }
    }

    /// Whether the targets were centred.
    pub fn fits_intercept(&self) -> bool {
        self.params.fit_intercept
    }

    /// The kernel.
    pub fn kernel(&self) -> &LaplaceKernel {
        &self.params.kernel
    }

    /// δ².
    pub fn alpha(&self) -> f64 {
        self.params.alpha
    }

    /// Number of training rows.
    pub fn n_rows(&self) -> usize {
        self.dual.n_rows()
    }

    /// Number of dimensions of the points.
    pub fn n_dims(&self) -> usize {
        self.n_dims
    }

    /// Number of targets.
    pub fn n_targets(&self) -> usize {
        self.dual.n_columns()
    }

    /// The training points.
    #[expect(clippy::missing_panics_doc, reason = "rows were checked when fitted")]
    pub fn points(&self) -> Points<'_> {
        Points::row_major(&self.rows, self.n_dims).expect("rows were checked when fitted")
    }

    /// (K + δ²I)⁻¹ times the centred targets.
    pub fn dual_coefficients(&self) -> &Matrix {
        &self.dual
    }

    /// The mean of each target, or zeros without an intercept.
    pub fn intercepts(&self) -> &[f64] {
        &self.means
    }

    /// Predictions, one row per point and one column per target.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the points' number of dimensions is another.
    pub fn predict(&self, points: Points<'_>) -> Result<Matrix> {
        let mut out = Matrix::from_fn(points.n_rows(), self.n_targets(), |_, t| self.means[t]);
        self.each_block(points, PREDICT_BLOCK, |first, cross| {
            let mut block = Matrix::zeros(cross.n_columns(), self.n_targets());
            gemm(1.0, cross.view().t(), &self.dual, Into::Replace, block.view_mut(), Threads::ONE);
            for t in 0..self.n_targets() {
                let out = &mut out.column_mut(t)[first..];
                out.iter_mut().zip(block.column(t)).for_each(|(o, b)| *o += b);
            }
            Ok(())
        })?;
        Ok(out)
    }

    /// The variance of a new observation at each point, one column per target, in the Gaussian-process view with
    /// σ²_prior = yᵀ(K + δ²I)⁻¹y/N: σ²_prior·(1 + δ² − kᵀ(K + δ²I)⁻¹k). Subtract [`noise_variances`] for the
    /// variance of the function alone. The intercept counts as known.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the points' number of dimensions is another.
    ///
    /// [`noise_variances`]: LaplaceRidge::noise_variances
    pub fn predict_variance(&self, points: Points<'_>) -> Result<Matrix> {
        let factor = self.factor()?;
        let mut out = Matrix::zeros(points.n_rows(), self.n_targets());
        self.each_block(points, SOLVE_BLOCK, |first, cross| {
            factor.half_solve_in_place(cross.view_mut())?;
            for q in 0..cross.n_columns() {
                let explained = dot(cross.column(q), cross.column(q));
                for (t, prior) in self.prior_variances.iter().enumerate() {
                    out[(first + q, t)] = prior * ((1.0 - explained).max(0.0) + self.alpha());
                }
            }
            Ok(())
        })?;
        Ok(out)
    }

    /// σ²_prior = yᵀ(K + δ²I)⁻¹y/N of each target.
    pub fn prior_variances(&self) -> &[f64] {
        &self.prior_variances
    }

    /// σ²_noise = δ²·σ²_prior of each target.
    pub fn noise_variances(&self) -> Vec<f64> {
        self.prior_variances.iter().map(|prior| self.alpha() * prior).collect()
    }

    /// The smoothing matrix: row q holds the weights of the training targets in the prediction at point q.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the points' number of dimensions is another.
    pub fn equivalent_kernel(&self, points: Points<'_>) -> Result<Matrix> {
        let factor = self.factor()?;
        memory::check("bytes of the smoothing matrix", memory::bytes_of(points.n_rows(), self.n_rows()))?;
        let mut out = Matrix::zeros(points.n_rows(), self.n_rows());
        self.each_block(points, SOLVE_BLOCK, |first, cross| {
            factor.solve_in_place(cross.view_mut())?;
            for q in 0..cross.n_columns() {
                let weights = cross.column_mut(q);
                if self.params.fit_intercept {
                    intercept_smoother(weights);
                }
                for (i, weight) in weights.iter().enumerate() {
                    out[(first + q, i)] = *weight;
                }
            }
            Ok(())
        })?;
        Ok(out)
    }

    /// The trace of the smoothing matrix on the training rows.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] never, but for a model read from a file that was tampered with.
    pub fn degrees_of_freedom(&self) -> Result<f64> {
        let inverse = self.factor()?.inverse();
        let n = self.n_rows();
        let trace: f64 = (0..n).map(|i| inverse[(i, i)]).sum();
        let plain = n as f64 - self.alpha() * trace;
        if !self.params.fit_intercept {
            return Ok(plain);
        }
        // tr(S(I − 11ᵀ/n) + 11ᵀ/n) with S = I − α(K + αI)⁻¹.
        Ok(plain + self.alpha() * inverse.as_slice().iter().sum::<f64>() / n as f64)
    }

    /// y_i less what the model fitted without row i predicts there, in closed form: with G = K + δ²I and the mean m of
    /// the other rows, [G⁻¹(y − m1)]_i/(G⁻¹)_ii. One column per target.
    ///
    /// With an intercept and one row only there is nothing to predict from; the residual is then NaN.
    ///
    /// # Errors
    /// As for [`LaplaceRidge::degrees_of_freedom`].
    pub fn leave_one_out_residuals(&self) -> Result<Matrix> {
        let (n, inverse) = (self.n_rows(), self.factor()?.inverse());
        let ones: Vec<f64> = (0..n).map(|i| inverse.column(i).iter().sum()).collect();
        // The centred targets are (K + δ²I) times the dual coefficients: what is fitted, and the rest.
        let fitted = self.predict(self.points())?;
        Ok(Matrix::from_fn(n, self.n_targets(), |i, t| {
            let y = fitted[(i, t)] - self.means[t] + self.alpha() * self.dual[(i, t)];
            // Leaving out row i moves the mean of the centred targets from 0 to −y_i/(n − 1).
            let mean = if self.params.fit_intercept { -y / (n as f64 - 1.0) } else { 0.0 };
            (self.dual[(i, t)] - mean * ones[i]) / inverse[(i, i)]
        }))
    }

    /// The root mean square of the leave-one-out residuals of each target.
    ///
    /// # Errors
    /// As for [`LaplaceRidge::degrees_of_freedom`].
    pub fn leave_one_out_rmse(&self) -> Result<Vec<f64>> {
        let residuals = self.leave_one_out_residuals()?;
        let n = self.n_rows() as f64;
        let rmse = |t| (dot(residuals.column(t), residuals.column(t)) / n).sqrt();
        Ok((0..self.n_targets()).map(rmse).collect())
    }

    fn factor(&self) -> Result<&Cholesky> {
        if let Some(factor) = self.factor.get() {
            return Ok(factor);
        }
        let made = self.params.factor(self.points())?;
        Ok(self.factor.get_or_init(|| made))
    }

    /// Calls `work` with the first row and the cross-Gram (training rows × query rows) of each block of points.
    fn each_block(
        &self,
        points: Points<'_>,
        size: usize,
        mut work: impl FnMut(usize, &mut Matrix) -> Result<()>,
    ) -> Result<()> {
        points.check_width(self.n_dims)?;
        let packed = self.params.kernel.pack(self.points())?;
        let (n, n_queries) = (self.n_rows(), points.n_rows());
        let mut cross = Matrix::zeros(0, 0);
        for first in (0..n_queries).step_by(size) {
            let columns = size.min(n_queries - first);
            if cross.n_columns() != columns {
                cross = Matrix::zeros(n, columns);
            }
            packed.fill(points, first, |_| 0, cross.as_mut_slice(), self.params.threads);
            work(first, &mut cross)?;
        }
        Ok(())
    }
}
