//! The fitted model.

use crate::linalg::{Cholesky, Matrix, MatrixRef, Threads};
use crate::memory;
use crate::progress::{FitOptions, Progress};
use crate::ridge::centred::{Centred, check_alpha, intercept_smoother};
use crate::ridge::conjugate::conjugate_gradients_with_progress;
use crate::ridge::{CgOptions, Costs, Design, Features, SolveReport, Solver, conjugate_gradients};
use crate::{Error, Result};

/// Parameters of [`FeatureRidge`].
///
/// | field | default | meaning | range |
/// | --- | --- | --- | --- |
/// | `alpha` | 1 | the report's δ² | > 0 |
/// | `fit_intercept` | yes | centre the targets; off gives the report's formulas exactly | |
/// | `solver` | auto | see [`Solver`] | |
/// | `tolerance` | 1e-10 | of conjugate gradients, when chosen automatically | > 0 |
/// | `memory_limit` | 4 GiB | bytes a matrix may take when the solver is chosen automatically | |
/// | `threads` | 1 | for factorisations | |
#[derive(Debug, Clone)]
pub struct FeatureRidgeParams {
    alpha: f64,
    fit_intercept: bool,
    solver: Solver,
    options: CgOptions,
    memory_limit: f64,
    threads: Threads,
}

impl Default for FeatureRidgeParams {
    fn default() -> Self {
        Self {
            alpha: 1.0,
            fit_intercept: true,
            solver: Solver::Auto,
            options: CgOptions::default(),
            memory_limit: 4.0 * 1024.0 * 1024.0 * 1024.0,
            threads: Threads::ONE,
        }
    }
}

impl FeatureRidgeParams {
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

    /// How to solve.
    #[must_use]
    pub fn solver(self, solver: Solver) -> Self {
        Self { solver, ..self }
    }

    /// Conjugate gradients stop at ‖b − Aθ‖ ≤ `tolerance`·‖b‖.
    #[must_use]
    pub fn tolerance(self, tolerance: f64) -> Self {
        Self { options: CgOptions { tolerance, ..self.options }, ..self }
    }

    /// Largest number of steps of conjugate gradients.
    #[must_use]
    pub fn max_steps(self, max_steps: usize) -> Self {
        Self { options: CgOptions { max_steps, ..self.options }, ..self }
    }

    /// Bytes a matrix may take when the solver is chosen automatically.
    #[must_use]
    pub fn memory_limit(self, bytes: f64) -> Self {
        Self { memory_limit: bytes, ..self }
    }

    /// Threads of the factorisations.
    #[must_use]
    pub fn threads(self, threads: Threads) -> Self {
        Self { threads, ..self }
    }

    /// δ², as it was given.
    pub(crate) fn alpha_value(&self) -> f64 {
        self.alpha
    }

    /// The threads that one large product may use.
    pub(crate) fn thread_limit(&self) -> Threads {
        self.threads
    }

    /// Fits a model; `targets` is row-major, with the same number of targets for every row.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for an `alpha` that is not positive: the cells of several trees overlap, so
    /// without it the coefficients are not unique. [`Error::LengthMismatch`], [`Error::Empty`],
    /// [`Error::NotFinite`] in the targets, [`Error::NotPositiveDefinite`] when `alpha` is lost in rounding.
    pub fn fit(&self, features: Features, targets: &[f64]) -> Result<FeatureRidge> {
        self.fit_with(features, targets, FitOptions::default())
    }

    /// As [`FeatureRidgeParams::fit`], with a progress callback: conjugate gradients report every step and can be
    /// cancelled.
    ///
    /// # Errors
    /// As for [`FeatureRidgeParams::fit`], [`Error::NoWeights`] and [`Error::Cancelled`].
    pub fn fit_with(&self, features: Features, targets: &[f64], options: FitOptions<'_>) -> Result<FeatureRidge> {
        let mut progress = options.unweighted("feature ridge")?;
        let targets = by_column(features.n_rows(), targets)?;
        self.solve(features, targets.view(), &mut progress)
    }

    /// Fits several targets, one per column.
    pub(crate) fn solve(
        &self,
        features: Features,
        targets: MatrixRef<'_>,
        progress: &mut Progress<'_>,
    ) -> Result<FeatureRidge> {
        check_alpha(self.alpha, false)?;
        if features.n_rows() == 0 {
            return Err(Error::Empty { what: "X", rows: 0, columns: features.n_columns() });
        }
        let Centred { targets, means } = Centred::new(targets, features.n_rows(), self.fit_intercept)?;
        let costs = Costs::estimate(&features, self.alpha, targets.n_columns(), self.options);
        let solver = match self.solver {
            Solver::Auto => costs.choose(self.memory_limit.min(memory::limit())),
            given => given,
        };
        let kept = Kept::factor(solver, &features, self)?;
        let (theta, steps) = kept.coefficients(&features, self.alpha, &targets, progress)?;
        let residuals = residuals(&features, self.alpha, &targets, &theta);
        let prior_variances = prior_variances(&features, self.alpha, &targets, &theta);
        progress.report(1.0)?;
        let report = SolveReport { solver, residuals, steps, costs };
        Ok(FeatureRidge { params: self.clone(), features, theta, means, prior_variances, kept, report })
    }
}

/// The part of a solve that later solves use again.
#[derive(Debug, Clone)]
enum Kept {
    /// Of ZᵀZ + αI.
    Primal(Cholesky),
    /// Of ZZᵀ + αI.
    Dual(Cholesky),
    /// Nothing: solve again.
    Nothing(CgOptions),
}

impl Kept {
    fn factor(solver: Solver, features: &Features, params: &FeatureRidgeParams) -> Result<Self> {
        let &FeatureRidgeParams { alpha, options, threads, .. } = params;
        let factor = |mut gram: Matrix| {
            (0..gram.n_rows()).for_each(|i| gram[(i, i)] += alpha);
            Cholesky::new(gram, threads)
        };
        let (n, c) = (features.n_rows(), features.n_columns());
        match solver {
            Solver::Primal => memory::check("bytes of the primal matrix", memory::bytes_of(c, c))?,
            Solver::Dual => memory::check("bytes of the dual matrix", memory::bytes_of(n, n))?,
            Solver::ConjugateGradients | Solver::Auto => (),
        }
        Ok(match solver {
            Solver::Primal => Self::Primal(factor(features.gram_lower(threads))?),
            Solver::Dual => Self::Dual(factor(features.dual_gram_lower(threads))?),
            Solver::ConjugateGradients | Solver::Auto => Self::Nothing(options),
        })
    }

    /// θ for all targets, and the steps it took.
    fn coefficients(
        &self,
        features: &Features,
        alpha: f64,
        targets: &Matrix,
        progress: &mut Progress<'_>,
    ) -> Result<(Matrix, usize)> {
        let (c, n_targets) = (features.n_columns(), targets.n_columns());
        let mut theta = Matrix::zeros(c, n_targets);
        if let Self::Dual(factor) = self {
            let mut dual = targets.clone();
            factor.solve_in_place(dual.view_mut())?;
            (0..n_targets).for_each(|t| features.multiply_transposed(dual.column(t), theta.column_mut(t)));
            return Ok((theta, 0));
        }
        (0..n_targets).for_each(|t| features.multiply_transposed(targets.column(t), theta.column_mut(t)));
        let mut steps = 0;
        match self {
            Self::Primal(factor) => factor.solve_in_place(theta.view_mut())?,
            Self::Nothing(options) => {
                for t in 0..n_targets {
                    let (b, share) = (theta.column(t), |t: usize| t as f64 / n_targets as f64);
                    let progress = &mut progress.part(share(t), share(t + 1));
                    let found = conjugate_gradients_with_progress(features, alpha, b, None, *options, progress)?;
                    theta.column_mut(t).copy_from_slice(&found.solution);
                    steps += found.steps;
                }
            }
            Self::Dual(_) => unreachable!("answered above"),
        }
        Ok((theta, steps))
    }

    /// (ZᵀZ + αI)⁻¹b.
    fn solve(&self, features: &Features, alpha: f64, b: &[f64]) -> Result<Vec<f64>> {
        match self {
            Self::Primal(factor) => factor.solve(b),
            Self::Dual(factor) => {
                let mut image = vec![0.0; features.n_rows()];
                features.multiply(b, &mut image);
                let mut back = vec![0.0; b.len()];
                features.multiply_transposed(&factor.solve(&image)?, &mut back);
                Ok(b.iter().zip(&back).map(|(b, z)| (b - z) / alpha).collect())
            }
            Self::Nothing(options) => Ok(conjugate_gradients(features, alpha, b, None, *options).solution),
        }
    }
}

/// Ridge regression on features.
///
/// Keeps Z and, from the direct solvers, a factor.
///
/// ```
/// use mondrian::{FeatureRidge, Features};
/// use mondrian::internals::features::CellArray;
/// // One tree, two cells with three rows and one: the report's appendix B in small.
/// let z: Features = CellArray::new(vec![0, 0, 0, 1], 4, 1, 2)?.into();
/// let model = FeatureRidge::params().alpha(0.5).fit_intercept(false).fit(z.clone(), &[1.0, 2.0, 3.0, 4.0])?;
/// let fitted = model.predict(&z)?;
/// assert!((fitted[(0, 0)] - 6.0 / 3.5).abs() < 1e-14);
/// assert!((fitted[(3, 0)] - 4.0 / 1.5).abs() < 1e-14);
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FeatureRidge {
    params: FeatureRidgeParams,
    features: Features,
    theta: Matrix,
    means: Vec<f64>,
    prior_variances: Vec<f64>,
    kept: Kept,
    report: SolveReport,
}

impl FeatureRidge {
    /// Parameters, to be fitted.
    pub fn params() -> FeatureRidgeParams {
        FeatureRidgeParams::default()
    }

    /// θ, one column per target.
    pub fn coefficients(&self) -> &Matrix {
        &self.theta
    }

    /// The mean of each target, or zeros without an intercept.
    pub fn intercepts(&self) -> &[f64] {
        &self.means
    }

    /// δ².
    pub fn alpha(&self) -> f64 {
        self.params.alpha
    }

    /// Number of targets.
    pub fn n_targets(&self) -> usize {
        self.theta.n_columns()
    }

    /// Z of the training rows.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// The solver used and its residual.
    pub fn report(&self) -> &SolveReport {
        &self.report
    }

    /// Predictions, one row per point and one column per target. Cells learned after the fit count as unseen.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there are fewer columns than coefficients, or more in a dense matrix.
    pub fn predict(&self, queries: &Features) -> Result<Matrix> {
        self.check_columns(queries)?;
        let mut out = Matrix::zeros(queries.n_rows(), self.n_targets());
        for (t, mean) in self.means.iter().enumerate() {
            queries.multiply(self.theta.column(t), out.column_mut(t));
            out.column_mut(t).iter_mut().for_each(|o| *o += mean);
        }
        Ok(out)
    }

    /// The variance of a new observation, one column per target, in the Gaussian-process view:
    /// σ²_prior·(δ² + δ² zᵀ(ZᵀZ + δ²I)⁻¹z + 1 − ‖z‖²).
    ///
    /// The last term belongs to unseen cells, or points beyond the root box, where the data give no information. Minus
    /// [`FeatureRidge::noise_variances`], it is the variance of the function alone. The intercept is treated as known.
    ///
    /// # Errors
    /// As for [`FeatureRidge::predict`].
    pub fn predict_variance(&self, queries: &Features) -> Result<Matrix> {
        self.check_columns(queries)?;
        let alpha = self.alpha();
        let mut out = Matrix::zeros(queries.n_rows(), self.n_targets());
        let mut z = vec![0.0; self.theta.n_rows()];
        for q in 0..queries.n_rows() {
            queries.scatter_row(q, &mut z);
            let known: f64 = z.iter().map(|z| z * z).sum();
            let solved = self.kept.solve(&self.features, alpha, &z)?;
            let spread: f64 = z.iter().zip(&solved).map(|(z, s)| z * s).sum();
            for (t, prior) in self.prior_variances.iter().enumerate() {
                out[(q, t)] = prior * (alpha + alpha * spread.max(0.0) + (1.0 - known).max(0.0));
            }
        }
        Ok(out)
    }

    /// σ²_prior = yᵀ(ZZᵀ + δ²I)⁻¹y/N of each target.
    pub fn prior_variances(&self) -> &[f64] {
        &self.prior_variances
    }

    /// σ²_noise = δ²·σ²_prior of each target.
    pub fn noise_variances(&self) -> Vec<f64> {
        self.prior_variances.iter().map(|prior| self.alpha() * prior).collect()
    }

    /// The smoothing matrix: row q holds the weights of the training targets in the prediction at query q.
    ///
    /// # Errors
    /// As for [`FeatureRidge::predict`].
    pub fn equivalent_kernel(&self, queries: &Features) -> Result<Matrix> {
        self.check_columns(queries)?;
        let n = self.features.n_rows();
        memory::check("bytes of the smoothing matrix", 2.0 * memory::bytes_of(n, queries.n_rows()))?;
        let mut out = Matrix::zeros(n, queries.n_rows());
        let mut z = vec![0.0; self.theta.n_rows()];
        for q in 0..queries.n_rows() {
            queries.scatter_row(q, &mut z);
            let solved = self.kept.solve(&self.features, self.alpha(), &z)?;
            let weights = out.column_mut(q);
            self.features.multiply(&solved, weights);
            if self.params.fit_intercept {
                intercept_smoother(weights);
            }
        }
        Ok(out.transposed())
    }

    /// The trace of the smoothing matrix on the training rows, from the kept factor or, after conjugate gradients, the
    /// smaller of the two matrices.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if neither fits into the memory limit; [`Error::NotPositiveDefinite`].
    pub fn degrees_of_freedom(&self) -> Result<f64> {
        let kept = match &self.kept {
            Kept::Nothing(_) => &self.smaller_factor()?,
            kept => kept,
        };
        let (alpha, n) = (self.alpha(), self.features.n_rows() as f64);
        let trace = |factor: &Cholesky| {
            let inverse = factor.inverse();
            let diagonal: f64 = (0..factor.n_rows()).map(|i| inverse[(i, i)]).sum();
            factor.n_rows() as f64 - alpha * diagonal
        };
        let plain = match kept {
            Kept::Primal(factor) | Kept::Dual(factor) => trace(factor),
            Kept::Nothing(_) => unreachable!("replaced above"),
        };
        if !self.params.fit_intercept {
            return Ok(plain);
        }
        // tr(S(I − 11ᵀ/n) + 11ᵀ/n) = tr S − 1ᵀS1/n + 1.
        let ones = vec![1.0; self.features.n_rows()];
        let (mut z, mut image) = (vec![0.0; self.theta.n_rows()], ones.clone());
        self.features.multiply_transposed(&ones, &mut z);
        self.features.multiply(&kept.solve(&self.features, alpha, &z)?, &mut image);
        Ok(plain - image.iter().sum::<f64>() / n + 1.0)
    }

    fn smaller_factor(&self) -> Result<Kept> {
        let (n, c) = (self.features.n_rows(), self.features.n_columns());
        let bytes = 8.0 * (n.min(c) as f64).powi(2);
        if bytes > self.params.memory_limit {
            let what = "bytes of a matrix for the degrees of freedom";
            return Err(Error::TooLarge { what, expected: bytes, limit: self.params.memory_limit });
        }
        let solver = if c <= n { Solver::Primal } else { Solver::Dual };
        Kept::factor(solver, &self.features, &self.params)
    }

    fn check_columns(&self, queries: &Features) -> Result<()> {
        let (expected, found) = (self.theta.n_rows(), queries.n_columns());
        let fits = match queries {
            Features::Cells(_) => found >= expected,
            Features::Dense(_) => found == expected,
        };
        if fits { Ok(()) } else { Err(Error::LengthMismatch { what: "columns of the features", expected, found }) }
    }
}

/// ‖Zᵀ(y − Zθ) − αθ‖/‖Zᵀy‖ of each target; if Zᵀy is only rounding error, relative to ‖Z‖‖y‖.
fn residuals(features: &Features, alpha: f64, targets: &Matrix, theta: &Matrix) -> Vec<f64> {
    let norm = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
    let size = features.column_squares().iter().sum::<f64>().sqrt();
    let (mut fitted, mut back) = (vec![0.0; features.n_rows()], vec![0.0; features.n_columns()]);
    (0..targets.n_columns())
        .map(|t| {
            let (y, theta) = (targets.column(t), theta.column(t));
            features.multiply_transposed(y, &mut back);
            let whole = size * norm(y);
            let scale = if norm(&back) > 64.0 * f64::EPSILON * whole { norm(&back) } else { whole };
            features.multiply(theta, &mut fitted);
            fitted.iter_mut().zip(y).for_each(|(f, y)| *f = y - *f);
            features.multiply_transposed(&fitted, &mut back);
            back.iter_mut().zip(theta).for_each(|(b, t)| *b -= alpha * t);
            if scale > 0.0 { norm(&back) / scale } else { norm(&back) }
        })
        .collect()
}

/// yᵀ(ZZᵀ + αI)⁻¹y/N = yᵀ(y − Zθ)/(αN).
fn prior_variances(features: &Features, alpha: f64, targets: &Matrix, theta: &Matrix) -> Vec<f64> {
    let n = features.n_rows();
    let mut fitted = vec![0.0; n];
    (0..targets.n_columns())
        .map(|t| {
            features.multiply(theta.column(t), &mut fitted);
            let y = targets.column(t);
            (y.iter().zip(&fitted).map(|(y, f)| y * (y - f)).sum::<f64>() / (alpha * n as f64)).max(0.0)
        })
        .collect()
}

/// Row-major targets as a matrix of one column per target.
pub(crate) fn by_column(n_rows: usize, targets: &[f64]) -> Result<Matrix> {
    let n_targets = (targets.len() / n_rows.max(1)).max(1);
    if targets.len() != n_rows * n_targets {
        return Err(Error::LengthMismatch { what: "targets", expected: n_rows * n_targets, found: targets.len() });
    }
    Ok(Matrix::from_fn(n_rows, n_targets, |row, target| targets[row * n_targets + target]))
}
