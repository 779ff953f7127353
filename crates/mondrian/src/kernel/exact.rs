//! Exact ridge regression with the Laplace kernel (report, chapter 3 and appendix A).

use super::LaplaceKernel;
use crate::dense::{Cholesky, Into, Matrix, MatrixRef, Threads, gemm};
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

    /// Fits several targets, one a column, with one factorisation.
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
        let centred = Centred::new(targets, n, self.fit_intercept)?;
        let mut gram = self.kernel.gram_lower(points, self.threads)?;
        (0..n).for_each(|i| gram[(i, i)] += self.alpha);
        let factor = Cholesky::new(gram, self.threads)?;
        if self.alpha == 0.0 {
            check_distinct(&factor)?;
        }
        let mut dual = centred.targets.clone();
        factor.solve_in_place(dual.view_mut())?;
        Ok(LaplaceRidge {
            params: self.clone(),
            rows: points.to_row_major(),
            n_dims: points.n_columns(),
            factor,
            dual,
            centred,
        })
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
/// use mondrian::kernel::{LaplaceKernel, LaplaceRidge};
/// use mondrian::{Lifetime, Points};
/// let x: Vec<f64> = (0..50).map(|i| f64::from(i) / 10.0).collect();
/// let y: Vec<f64> = x.iter().map(|x| x.sin()).collect();
/// let points = Points::row_major(&x, 1)?;
/// let model = LaplaceRidge::params(LaplaceKernel::new(Lifetime::new(1.0)?)?).alpha(0.01).fit(points, &y)?;
/// let at = model.predict(Points::row_major(&[2.05], 1)?)?[(0, 0)];
/// assert!((at - 2.05_f64.sin()).abs() < 0.02);
/// assert!(model.leave_one_out_rmse()[0] < 0.05);
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LaplaceRidge {
    params: LaplaceRidgeParams,
    rows: Vec<f64>,
    n_dims: usize,
    /// Of K + αI.
    factor: Cholesky,
    /// (K + αI)⁻¹ times the centred targets.
    dual: Matrix,
    centred: Centred,
}

/// Query rows worked on at once: the cross-Gram block is this many columns.
const QUERY_BLOCK: usize = 256;

impl LaplaceRidge {
    /// Parameters, to be fitted.
    pub fn params(kernel: LaplaceKernel) -> LaplaceRidgeParams {
        LaplaceRidgeParams { kernel, alpha: 1.0, fit_intercept: true, threads: Threads::ONE }
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
        &self.centred.means
    }

    /// Predictions, one row a point and one column a target.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the points' number of dimensions is another.
    pub fn predict(&self, points: Points<'_>) -> Result<Matrix> {
        let mut out = Matrix::from_fn(points.n_rows(), self.n_targets(), |_, t| self.centred.means[t]);
        self.each_block(points, |first, cross| {
            let mut block = Matrix::zeros(cross.n_columns(), self.n_targets());
            gemm(1.0, cross.view().t(), &self.dual, Into::Replace, block.view_mut(), self.params.threads);
            for t in 0..self.n_targets() {
                let out = &mut out.column_mut(t)[first..];
                out.iter_mut().zip(block.column(t)).for_each(|(o, b)| *o += b);
            }
            Ok(())
        })?;
        Ok(out)
    }

    /// The variance of a new observation at each point, one column a target, in the Gaussian-process view with
    /// σ²_prior = yᵀ(K + δ²I)⁻¹y/N: σ²_prior·(1 + δ² − kᵀ(K + δ²I)⁻¹k). Subtract [`noise_variances`] for the
    /// variance of the function alone. The intercept counts as known.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the points' number of dimensions is another.
    ///
    /// [`noise_variances`]: LaplaceRidge::noise_variances
    pub fn predict_variance(&self, points: Points<'_>) -> Result<Matrix> {
        let priors = self.prior_variances();
        let mut out = Matrix::zeros(points.n_rows(), self.n_targets());
        self.each_block(points, |first, mut cross| {
            self.factor.half_solve_in_place(cross.view_mut())?;
            for q in 0..cross.n_columns() {
                let explained: f64 = cross.column(q).iter().map(|h| h * h).sum();
                for (t, prior) in priors.iter().enumerate() {
                    out[(first + q, t)] = prior * ((1.0 - explained).max(0.0) + self.alpha());
                }
            }
            Ok(())
        })?;
        Ok(out)
    }

    /// σ²_prior = yᵀ(K + δ²I)⁻¹y/N of each target.
    pub fn prior_variances(&self) -> Vec<f64> {
        let n = self.n_rows() as f64;
        (0..self.n_targets())
            .map(|t| {
                self.dual.column(t).iter().zip(self.centred.targets.column(t)).map(|(c, y)| c * y).sum::<f64>() / n
            })
            .collect()
    }

    /// σ²_noise = δ²·σ²_prior of each target.
    pub fn noise_variances(&self) -> Vec<f64> {
        self.prior_variances().into_iter().map(|prior| self.alpha() * prior).collect()
    }

    /// The smoothing matrix: row q holds the weights of the training targets in the prediction at point q.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the points' number of dimensions is another.
    pub fn equivalent_kernel(&self, points: Points<'_>) -> Result<Matrix> {
        let mut out = Matrix::zeros(points.n_rows(), self.n_rows());
        self.each_block(points, |first, mut cross| {
            self.factor.solve_in_place(cross.view_mut())?;
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
    pub fn degrees_of_freedom(&self) -> f64 {
        let inverse = self.factor.inverse();
        let n = self.n_rows();
        let trace: f64 = (0..n).map(|i| inverse[(i, i)]).sum();
        let plain = n as f64 - self.alpha() * trace;
        if !self.params.fit_intercept {
            return plain;
        }
        // tr(S(I − 11ᵀ/n) + 11ᵀ/n) with S = I − α(K + αI)⁻¹.
        plain + self.alpha() * inverse.as_slice().iter().sum::<f64>() / n as f64
    }

    /// y_i less what the model fitted without row i predicts there, in closed form: with G = K + δ²I and the mean m of
    /// the other rows, [G⁻¹(y − m1)]_i/(G⁻¹)_ii. One column a target.
    ///
    /// With an intercept and one row only there is nothing to predict from; the residual is then NaN.
    pub fn leave_one_out_residuals(&self) -> Matrix {
        let (n, inverse) = (self.n_rows(), self.factor.inverse());
        let ones: Vec<f64> = (0..n).map(|i| inverse.column(i).iter().sum()).collect();
        Matrix::from_fn(n, self.n_targets(), |i, t| {
            // The targets are centred already; leaving out row i moves their mean from 0 to −y_i/(n − 1).
            let mean = if self.params.fit_intercept { -self.centred.targets[(i, t)] / (n as f64 - 1.0) } else { 0.0 };
            (self.dual[(i, t)] - mean * ones[i]) / inverse[(i, i)]
        })
    }

    /// The root mean square of the leave-one-out residuals of each target.
    pub fn leave_one_out_rmse(&self) -> Vec<f64> {
        let residuals = self.leave_one_out_residuals();
        let n = self.n_rows() as f64;
        (0..self.n_targets()).map(|t| (residuals.column(t).iter().map(|r| r * r).sum::<f64>() / n).sqrt()).collect()
    }

    /// Calls `work` with the first row and the cross-Gram (training rows × query rows) of each block of points.
    fn each_block(&self, points: Points<'_>, mut work: impl FnMut(usize, Matrix) -> Result<()>) -> Result<()> {
        points.check_width(self.n_dims)?;
        for first in (0..points.n_rows()).step_by(QUERY_BLOCK) {
            let last = (first + QUERY_BLOCK).min(points.n_rows());
            let block: Vec<f64> = (first..last).flat_map(|i| points.row(i)).collect();
            let block = Points::row_major(&block, self.n_dims)?;
            work(first, self.params.kernel.cross(self.points(), block, self.params.threads)?)?;
        }
        Ok(())
    }
}
