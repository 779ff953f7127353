//! What tuning minimises: how well exact Laplace ridge with these lifetimes and this α predicts rows it has not seen,
//! as one smooth function of their logarithms, with all its derivatives.
//!
//! With K_ij = exp(−Σ_d λ_d |x_id − x_jd|), A = K + αI, P = A⁻¹ and the targets y centred (the intercept), a = Py:
//!
//! * **leave-one-out**: row i predicted by the others is off by exactly r_i = a_i/P_ii, so one factorisation gives
//!   all n errors. f = ½ ln(Σ r_i²/n).
//! * **likelihood**: minus the log marginal likelihood a row of the Gaussian process with kernel σ²(K + αI), σ² at
//!   its maximum yᵀa/n: f = ½ ln(yᵀa/n) + ln|A|/(2n).
//!
//! Both change by df = ⟨G, dA⟩ with a symmetric G. From dP = −P dA P, with w_i = r_i/P_ii and v_i = r_i²/P_ii,
//! the first has G = (P diag(v) P − ½(Pw aᵀ + a wᵀP))/Σr², the second G = P/(2n) − a aᵀ/(2yᵀa). Then
//! ∂f/∂ln λ_d = −λ_d Σ_ij G_ij K_ij |x_id − x_jd| and ∂f/∂ln α = α tr G: about six (three) times the flops of a
//! factorisation and O(n²D), however many lifetimes there are (docs/design.md, "The tuned Laplace kernel").
//!
//! Several targets share K and α: Σ r² and yᵀa run over all of them, and so do v, w aᵀ and a aᵀ.

use crate::parallel::prelude::*;

use crate::laplace::LaplaceKernel;
use crate::linalg::{Cholesky, Into, Matrix, Threads, dot, gemv, syrk_lower};
use crate::ridge::by_column;
use crate::simd::vectorise;
use crate::{Error, Points, Result};

/// What tuning minimises; see the source of the formulas in the module's documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Criterion {
    /// The leave-one-out error.
    #[default]
    LeaveOneOut,
    /// The marginal likelihood, half as expensive and smoother, but a statement about the model rather than its
    /// predictions.
    Likelihood,
}

/// A value with its derivatives in ln λ_1, …, ln λ_D, ln α.
#[derive(Debug, Clone, PartialEq)]
pub struct Slope {
    /// The value.
    pub value: f64,
    /// The derivatives.
    pub gradient: Vec<f64>,
}

/// Exact Laplace ridge on a fixed set of rows, as a function of the lifetimes and α.
///
/// ```
/// use mondrian::Points;
/// use mondrian::internals::linalg::Threads;
/// use mondrian::internals::laplace::{Criterion, Objective};
/// let x: Vec<f64> = (0..20).map(f64::from).collect();
/// let y: Vec<f64> = x.iter().map(|x| (0.3 * x).sin()).collect();
/// let objective = Objective::new(Points::row_major(&x, 1)?, &y, true, Criterion::LeaveOneOut, Threads::ONE)?;
/// let slope = objective.slope(&[-3.0, -5.0])?;                     // ln λ, ln α
/// assert!(slope.value < objective.value(&[3.0, -5.0])?);           // e³: every row alone
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Objective {
    /// The points, one column per dimension.
    columns: Matrix,
    /// One column per target, centred if there is an intercept.
    y: Matrix,
    criterion: Criterion,
    threads: Threads,
}

impl Objective {
    /// Ridge on these rows; `targets` is row-major, with the same number of targets for every row.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] between rows and targets, [`Error::Empty`] with fewer than two rows.
    pub fn new(
        points: Points<'_>,
        targets: &[f64],
        fit_intercept: bool,
        criterion: Criterion,
        threads: Threads,
    ) -> Result<Self> {
        let n = points.n_rows();
        let mut y = by_column(n, targets)?;
        if n < 2 {
            return Err(Error::Empty { what: "the rows to tune on", rows: n, columns: points.n_columns() });
        }
        let columns = Matrix::from_fn(n, points.n_columns(), |i, d| points.get(i, d));
        for t in 0..y.n_columns() {
            let mean = if fit_intercept { y.column(t).iter().sum::<f64>() / n as f64 } else { 0.0 };
            y.column_mut(t).iter_mut().for_each(|y| *y -= mean);
        }
        Ok(Self { columns, y, criterion, threads })
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.y.n_rows()
    }

    /// Number of parameters: one lifetime per dimension, and α.
    pub fn n_parameters(&self) -> usize {
        self.columns.n_columns() + 1
    }

    /// Estimated floating-point operations of one [`Objective::slope`]: the unit in which trajectories count cost.
    pub fn cost(&self) -> f64 {
        let (n, d) = (self.n_rows() as f64, self.columns.n_columns() as f64);
        let cubes = match self.criterion {
            Criterion::LeaveOneOut => 2.0,
            Criterion::Likelihood => 1.0,
        };
        cubes * n * n * n + 3.5 * n * n * d
    }

    /// The value at ln λ_1, …, ln λ_D, ln α; −∞ stands for a lifetime of zero.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] if α is too small for the rows.
    pub fn value(&self, logs: &[f64]) -> Result<f64> {
        let (factor, _) = self.factor(logs)?;
        let a = self.solved(&factor)?;
        Ok(match self.criterion {
            Criterion::LeaveOneOut => {
                let p = factor.inverse();
                half_log_mean(&Matrix::from_fn(a.n_rows(), a.n_columns(), |i, t| a[(i, t)] / p[(i, i)]))
            }
            Criterion::Likelihood => self.likelihood(&factor, &a),
        })
    }

    /// The value and its derivatives; parameters and errors as for [`Objective::value`].
    pub fn slope(&self, logs: &[f64]) -> Result<Slope> {
        let n = self.n_rows();
        let (factor, kernel) = self.factor(logs)?;
        let a = self.solved(&factor)?;
        let mut p = factor.inverse();
        let (value, weights) = match self.criterion {
            Criterion::LeaveOneOut => self.leave_one_out_weights(&mut p, &a),
            Criterion::Likelihood => {
                let value = self.likelihood(&factor, &a);
                let (scale, square) = (0.5 / n as f64, -0.5 / dot(self.y.as_slice(), a.as_slice()));
                for j in 0..n {
                    p.column_mut(j).iter_mut().for_each(|g| *g *= scale);
                    for t in 0..a.n_columns() {
                        let a = a.column(t);
                        p.column_mut(j).iter_mut().zip(a).for_each(|(g, a_i)| *g += square * a_i * a[j]);
                    }
                }
                (value, p)
            }
        };
        Ok(Slope { value, gradient: self.contract(logs, &weights, &kernel) })
    }

    /// The value, and G in the lower triangle; `p` is used up.
    fn leave_one_out_weights(&self, p: &mut Matrix, a: &Matrix) -> (f64, Matrix) {
        let (n, n_targets) = (self.n_rows(), a.n_columns());
        let diagonal: Vec<f64> = (0..n).map(|i| p[(i, i)]).collect();
        let r = Matrix::from_fn(n, n_targets, |i, t| a[(i, t)] / diagonal[i]);
        let total = dot(r.as_slice(), r.as_slice()).max(f64::MIN_POSITIVE);
        let mut pw = Matrix::zeros(n, n_targets);
        for t in 0..n_targets {
            let w: Vec<f64> = r.column(t).iter().zip(&diagonal).map(|(r, p)| r / p).collect();
            gemv(1.0, &*p, &w, Into::Replace, pw.column_mut(t));
        }
        // v ≥ 0, so P diag(v) P is the square of P diag(√v): half the flops of a product.
        for j in 0..n {
            let norm = (0..n_targets).fold(0.0_f64, |norm, t| norm.hypot(r[(j, t)]));
            let root = norm / (diagonal[j] * total).sqrt();
            p.column_mut(j).iter_mut().for_each(|p| *p *= root);
        }
        let mut weights = Matrix::zeros(n, n);
        syrk_lower(1.0, &*p, Into::Replace, weights.view_mut(), self.threads);
        let half = 0.5 / total;
        for t in 0..n_targets {
            let (a, pw) = (a.column(t), pw.column(t));
            for j in 0..n {
                let (left, right) = (half * a[j], half * pw[j]);
                for (i, g) in weights.column_mut(j).iter_mut().enumerate().skip(j) {
                    *g -= pw[i] * left + a[i] * right;
                }
            }
        }
        (half_log_mean(&r), weights)
    }

    /// Several targets have one σ², at its maximum over all of them.
    fn likelihood(&self, factor: &Cholesky, a: &Matrix) -> f64 {
        let n = self.n_rows() as f64;
        let fit = dot(self.y.as_slice(), a.as_slice()).max(f64::MIN_POSITIVE);
        0.5 * (fit / (n * a.n_columns() as f64)).ln() + 0.5 * factor.log_determinant() / n
    }

    /// a = Py, one column per target.
    fn solved(&self, factor: &Cholesky) -> Result<Matrix> {
        let mut a = self.y.clone();
        factor.solve_in_place(a.view_mut())?;
        Ok(a)
    }

    /// The factor of A, and K in the lower triangle.
    fn factor(&self, logs: &[f64]) -> Result<(Cholesky, Matrix)> {
        if logs.len() != self.n_parameters() {
            return Err(Error::LengthMismatch {
                what: "log-lifetimes and log-α",
                expected: self.n_parameters(),
                found: logs.len(),
            });
        }
        let lifetimes: Vec<f64> = logs[..self.columns.n_columns()].iter().map(|log| log.exp()).collect();
        let points = Points::column_major(self.columns.as_slice(), self.n_rows(), lifetimes.len())?;
        let kernel = LaplaceKernel::of_numbers(&lifetimes)?.gram_lower(points, self.threads)?;
        let mut a = kernel.clone();
        let alpha = logs[logs.len() - 1].exp();
        for i in 0..self.n_rows() {
            a[(i, i)] += alpha;
        }
        Ok((Cholesky::new(a, self.threads)?, kernel))
    }

    /// −λ_d Σ_ij G_ij K_ij |x_id − x_jd| for all d, and α tr G.
    fn contract(&self, logs: &[f64], weights: &Matrix, kernel: &Matrix) -> Vec<f64> {
        let n = self.n_rows();
        let column = |j: usize| {
            let mut products: Vec<f64> =
                weights.column(j)[j..].iter().zip(&kernel.column(j)[j..]).map(|(g, k)| g * k).collect();
            products[0] = 0.0;
            vectorise(
                #[inline(always)]
                || {
                    (0..self.columns.n_columns())
                        .map(|d| weighted_distance(&products, &self.columns.column(d)[j..]))
                        .collect::<Vec<f64>>()
                },
            )
        };
        let parts: Vec<Vec<f64>> = if self.threads == Threads::ONE {
            (0..n).map(column).collect()
        } else {
            (0..n).into_par_iter().map(column).collect()
        };
        let mut gradient = vec![0.0; self.n_parameters()];
        for part in parts {
            gradient.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
        // Both triangles count.
        gradient.iter_mut().zip(logs).for_each(|(sum, log)| *sum *= -2.0 * log.exp());
        let last = self.n_parameters() - 1;
        gradient[last] = logs[last].exp() * (0..n).map(|i| weights[(i, i)]).sum::<f64>();
        gradient
    }
}

/// ½ ln of the mean square.
fn half_log_mean(r: &Matrix) -> f64 {
    let r = r.as_slice();
    0.5 * (dot(r, r) / r.len() as f64).max(f64::MIN_POSITIVE).ln()
}

/// Σ_i w_i |x_i − x_0| in eight strands of fixed shape.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]
fn weighted_distance(w: &[f64], x: &[f64]) -> f64 {
    let first = x[0];
    let mut strands = [0.0; 8];
    let (ws, w_rest) = w.as_chunks::<8>();
    let (xs, x_rest) = x.as_chunks::<8>();
    for (w, x) in ws.iter().zip(xs) {
        for k in 0..8 {
            strands[k] += w[k] * (x[k] - first).abs();
        }
    }
    let rest: f64 = w_rest.iter().zip(x_rest).map(|(w, x)| w * (x - first).abs()).sum();
    strands.iter().sum::<f64>() + rest
}
