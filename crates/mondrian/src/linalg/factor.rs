//! The Cholesky factor of a matrix under change (report, appendix D).

use crate::linalg::drift::Watch;
use crate::linalg::{Cholesky, Drift, Into, Matrix, Symmetric, Threads, axpy, dot, gemv};
use crate::simd::vectorise;
use crate::{Error, Result};

/// A symmetric positive definite matrix A and L with LLᵀ = A, updated together in O(n²) a change.
///
/// A failed change leaves both as they were.
///
/// ```
/// use mondrian::Matrix;
/// use mondrian::internals::linalg::{Factor, Threads};
/// let mut factor = Factor::new(Matrix::identity(2), Threads::ONE)?;
/// factor.append(&[0.5, 0.5], 1.0)?;
/// factor.remove(0)?;
/// factor.rank_one(3.0, &[1.0, 0.0])?;            // A = [4 0.5; 0.5 1]
/// let x = factor.solve(&[4.5, 1.5])?;
/// assert!((x[0] - 1.0).abs() < 1e-14 && (x[1] - 1.0).abs() < 1e-14);
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Factor {
    a: Symmetric,
    /// L in the lower triangle of the leading block; columns as long as the storage has rows.
    lower: Matrix,
    watch: Watch,
    threads: Threads,
}

/// Below this, a downdate has lost most of its digits: the new matrix is factored instead.
const LOST_PIVOT: f64 = 1e-7;

impl Factor {
    /// Factors `a`, of which the lower triangle counts.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`]; [`Error::LengthMismatch`] if it is not square.
    pub fn new(a: Matrix, threads: Threads) -> Result<Self> {
        let a = Symmetric::new(a)?;
        let lower = Cholesky::new(a.view().to_owned(), threads)?.into_lower();
        Ok(Self { a, lower, watch: Watch::default(), threads })
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.a.n_rows()
    }

    /// The matrix itself.
    pub fn matrix(&self) -> &Symmetric {
        &self.a
    }

    /// L, zeros above the diagonal.
    pub fn lower(&self) -> Matrix {
        let n = self.n_rows();
        Matrix::from_fn(n, n, |i, j| if i >= j { self.lower[(i, j)] } else { 0.0 })
    }

    /// What drift control has seen, with P = L⁻ᵀL⁻¹.
    pub fn drift(&self) -> Drift {
        self.watch.drift()
    }

    /// A⁻¹b, by two triangular solves.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`].
    pub fn solve(&self, b: &[f64]) -> Result<Vec<f64>> {
        self.check_length(b)?;
        let mut x = b.to_vec();
        self.solve_in_place(&mut x);
        Ok(x)
    }

    /// ln det A.
    pub fn log_determinant(&self) -> f64 {
        (0..self.n_rows()).map(|i| 2.0 * self.lower[(i, i)].ln()).sum()
    }

    /// Appends the row and column `b` with `d` on the diagonal: one triangular solve.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] if the matrix would not be, [`Error::LengthMismatch`].
    pub fn append(&mut self, b: &[f64], d: f64) -> Result<()> {
        self.check_length(b)?;
        let n = self.n_rows();
        let mut row = b.to_vec();
        self.forward(&mut row);
        let schur = d - dot(&row, &row);
        let mut border = b.to_vec();
        border.push(d);
        if !(schur > LOST_PIVOT * d) {
            return self.replace(|a| a.push(&border));
        }
        self.reserve(n + 1);
        for (j, value) in row.iter().enumerate() {
            self.lower[(n, j)] = *value;
        }
        self.lower[(n, n)] = schur.sqrt();
        self.a.push(&border);
        // A small pivot here is in the matrix, not in the factor: appending is as stable as a new factorisation, so it
        // is no reason for an early check.
        self.keep_watch(1.0)
    }

    /// Deletes row and column `i`; later ones move up.
    ///
    /// Without its row i, L has one entry above the diagonal in each later column; a sequence of Givens
    /// rotations of neighbouring columns restores the triangle (what LINPACK's SCHEX does).
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there is no such row.
    pub fn remove(&mut self, i: usize) -> Result<()> {
        let n = self.n_rows();
        if i >= n {
            return Err(Error::LengthMismatch { what: "rows of the matrix", expected: i + 1, found: n });
        }
        let rows = self.lower.n_rows();
        for j in 0..=i {
            self.lower.column_mut(j).copy_within(i + 1..n, i);
        }
        for k in i..n - 1 {
            let (left, right) = self.lower.as_mut_slice()[k * rows..(k + 2) * rows].split_at_mut(rows);
            // Of the next column, rows k + 1 on move up by one as well.
            right.copy_within(k + 1..n, k);
            let (x, y) = (left[k], right[k]);
            let length = x.hypot(y);
            let (c, s) = (x / length, y / length);
            vectorise(
                #[inline(always)]
                || {
                    for (x, y) in left[k..n - 1].iter_mut().zip(&mut right[k..n - 1]) {
                        (*x, *y) = (c * *x + s * *y, c * *y - s * *x);
                    }
                },
            );
        }
        self.a.remove(i);
        self.keep_watch(1.0)
    }

    /// A ← A + `sigma`·`v``v`ᵀ, up (`sigma` > 0) or down.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] if A would not be any more, [`Error::LengthMismatch`].
    pub fn rank_one(&mut self, sigma: f64, v: &[f64]) -> Result<()> {
        self.check_length(v)?;
        let root = sigma.abs().sqrt();
        let step: Vec<f64> = v.iter().map(|v| v * root).collect();
        if sigma >= 0.0 {
            self.update(step.clone());
            self.a.add_square(1.0, &step);
            return self.keep_watch(1.0);
        }
        let mut angles = step.clone();
        self.forward(&mut angles);
        let pivot = 1.0 - dot(&angles, &angles);
        if !(pivot > LOST_PIVOT) {
            return self.replace(|a| a.add_square(-1.0, &step));
        }
        self.downdate(&angles, pivot.sqrt());
        self.a.add_square(-1.0, &step);
        self.keep_watch(pivot)
    }

    /// Computes L anew from A, counted in [`Drift::refreshes`].
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] if A is not, to working precision.
    pub fn refresh(&mut self) -> Result<()> {
        self.lower = Cholesky::new(self.a.view().to_owned(), self.threads)?.into_lower();
        self.watch.refreshed();
        Ok(())
    }

    /// Rotates `v` into L, column by column.
    fn update(&mut self, mut v: Vec<f64>) {
        let n = self.n_rows();
        for k in 0..n {
            let column = &mut self.lower.column_mut(k)[k..n];
            let length = column[0].hypot(v[k]);
            let (c, s) = (column[0] / length, v[k] / length);
            vectorise(
                #[inline(always)]
                || {
                    for (l, v) in column.iter_mut().zip(&mut v[k..]) {
                        (*l, *v) = (c * *l + s * *v, c * *v - s * *l);
                    }
                },
            );
        }
    }

    /// Rotates the vector with L⁻¹v = `angles` out of L, last column first, by plain rotations (as LINPACK does):
    /// stable where hyperbolic ones would not be. `rest` is √(1 − ‖angles‖²).
    fn downdate(&mut self, angles: &[f64], mut rest: f64) {
        let n = self.n_rows();
        let mut out = vec![0.0; n];
        for k in (0..n).rev() {
            let length = rest.hypot(angles[k]);
            let (c, s) = (rest / length, angles[k] / length);
            rest = length;
            let column = &mut self.lower.column_mut(k)[k..n];
            vectorise(
                #[inline(always)]
                || {
                    for (l, out) in column.iter_mut().zip(&mut out[k..]) {
                        (*l, *out) = (c * *l - s * *out, c * *out + s * *l);
                    }
                },
            );
        }
    }

    /// `x` ← L⁻¹`x`.
    fn forward(&self, x: &mut [f64]) {
        let n = x.len();
        vectorise(
            #[inline(always)]
            || {
                for k in 0..n {
                    let column = &self.lower.column(k)[k..n];
                    x[k] /= column[0];
                    let (head, tail) = x[k..].split_at_mut(1);
                    axpy(-head[0], &column[1..], tail);
                }
            },
        );
    }

    /// `x` ← L⁻ᵀL⁻¹`x`.
    fn solve_in_place(&self, x: &mut [f64]) {
        let n = x.len();
        self.forward(x);
        vectorise(
            #[inline(always)]
            || {
                for k in (0..n).rev() {
                    let column = &self.lower.column(k)[k..n];
                    x[k] = (x[k] - dot(&column[1..], &x[k + 1..])) / column[0];
                }
            },
        );
    }

    fn replace(&mut self, change: impl FnOnce(&mut Symmetric)) -> Result<()> {
        let mut a = self.a.clone();
        change(&mut a);
        self.lower = Cholesky::new(a.view().to_owned(), self.threads)?.into_lower();
        self.a = a;
        self.watch.refreshed();
        Ok(())
    }

    fn keep_watch(&mut self, pivot: f64) -> Result<()> {
        let n = self.n_rows();
        if n == 0 || !self.watch.note(pivot, n) {
            return Ok(());
        }
        let cond = self.a.norm_estimate() * self.inverse_norm_estimate();
        let mut watch = std::mem::take(&mut self.watch);
        let exceeded = watch.exceeded(n, cond, |v, out| {
            let mut x = v.to_vec();
            self.solve_in_place(&mut x);
            out.copy_from_slice(v);
            gemv(-1.0, self.a.view(), &x, Into::Add, out);
        });
        self.watch = watch;
        if exceeded { self.refresh() } else { Ok(()) }
    }

    /// ‖A⁻¹‖ from below: inverse power steps, started where a pivot is smallest.
    fn inverse_norm_estimate(&self) -> f64 {
        let n = self.n_rows();
        let start = (0..n).min_by(|&a, &b| self.lower[(a, a)].total_cmp(&self.lower[(b, b)])).unwrap_or(0);
        let mut x = vec![0.0; n];
        x[start] = 1.0;
        let mut norm = 0.0;
        for _ in 0..4 {
            self.solve_in_place(&mut x);
            norm = crate::linalg::symmetric::norm_two(&x);
            x.iter_mut().for_each(|x| *x /= norm);
        }
        norm
    }

    fn reserve(&mut self, n: usize) {
        if n <= self.lower.n_rows() {
            return;
        }
        let (old, capacity) = (self.lower.n_rows(), n.max(n + n / 2));
        let mut larger = Matrix::zeros(capacity, capacity);
        for j in 0..old {
            larger.column_mut(j)[..old].copy_from_slice(self.lower.column(j));
        }
        self.lower = larger;
    }

    fn check_length(&self, v: &[f64]) -> Result<()> {
        if v.len() == self.n_rows() {
            Ok(())
        } else {
            Err(Error::LengthMismatch { what: "length of the vector", expected: self.n_rows(), found: v.len() })
        }
    }
}
