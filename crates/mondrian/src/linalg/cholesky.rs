//! The Cholesky factorisation of a symmetric positive definite matrix.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt;
use faer::linalg::triangular_solve;
use faer::{MatMut, Par};

use crate::linalg::blocked::Real;
use crate::linalg::{Matrix, MatrixMut, Threads};
use crate::{Error, Result};

/// L with LLᵀ = A, in the lower triangle.
///
/// ```
/// use mondrian::Matrix;
/// use mondrian::internals::linalg::{Cholesky, Threads};
/// let a = Matrix::from_fn(3, 3, |i, j| if i == j { 4.0 } else { 1.0 });
/// let factor = Cholesky::new(a, Threads::ONE)?;
/// let x = factor.solve(&[6.0, 6.0, 6.0])?;
/// assert!(x.iter().all(|x| (x - 1.0).abs() < 1e-15));
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Cholesky {
    lower: Matrix,
    threads: Threads,
}

impl Cholesky {
    /// Factors `a` in its own memory; only its lower triangle is read. `threads` holds for later solves too.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if it is not square, [`Error::NotPositiveDefinite`] if a pivot is not positive.
    pub fn new(mut a: Matrix, threads: Threads) -> Result<Self> {
        let n = a.n_rows();
        if a.n_columns() != n {
            return Err(Error::LengthMismatch {
                what: "columns of a square matrix",
                expected: n,
                found: a.n_columns(),
            });
        }
        factor_in_place(a.view_mut().faer(), threads.par()).map_err(|row| Error::NotPositiveDefinite { row })?;
        // A pivot that is NaN is not "≤ 0", so it passes faer's test.
        match (0..n).find(|&i| !(a[(i, i)] > 0.0 && a[(i, i)].is_finite())) {
            Some(row) => Err(Error::NotPositiveDefinite { row }),
            None => Ok(Self { lower: a, threads }),
        }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.lower.n_rows()
    }

    /// L in the lower triangle; the upper one holds whatever it held.
    pub fn lower(&self) -> &Matrix {
        &self.lower
    }

    /// L, to keep.
    pub fn into_lower(self) -> Matrix {
        self.lower
    }

    /// A⁻¹b.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`].
    pub fn solve(&self, b: &[f64]) -> Result<Vec<f64>> {
        let mut x = b.to_vec();
        let n = x.len();
        self.solve_in_place(MatrixMut::new(&mut x, n, 1))?;
        Ok(x)
    }

    /// `b` ← A⁻¹`b`, for all columns at once.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`].
    pub fn solve_in_place(&self, b: MatrixMut<'_>) -> Result<()> {
        self.check_rows(&b)?;
        let par = self.threads.par();
        llt::solve::solve_in_place(self.lower.view().faer(), b.faer(), par, MemStack::new(&mut []));
        Ok(())
    }

    /// `b` ← L⁻¹`b`, for all columns at once. ‖L⁻¹b‖² = bᵀA⁻¹b at half the cost of a solve.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`].
    pub fn half_solve_in_place(&self, b: MatrixMut<'_>) -> Result<()> {
        self.check_rows(&b)?;
        let par = self.threads.par();
        triangular_solve::solve_lower_triangular_in_place(self.lower.view().faer(), b.faer(), par);
        Ok(())
    }

    /// A⁻¹, both triangles.
    pub fn inverse(&self) -> Matrix {
        let mut out = self.inverse_lower();
        out.mirror_lower();
        out
    }

    /// A⁻¹ in the lower triangle, zeros above it: all that a symmetric matrix needs.
    pub fn inverse_lower(&self) -> Matrix {
        let n = self.n_rows();
        let mut out = Matrix::zeros(n, n);
        let par = self.threads.par();
        let mut memory = MemBuffer::new(llt::inverse::inverse_scratch::<f64>(n, par));
        llt::inverse::inverse(out.view_mut().faer(), self.lower.view().faer(), par, MemStack::new(&mut memory));
        out
    }

    /// ln det A.
    pub fn log_determinant(&self) -> f64 {
        (0..self.n_rows()).map(|i| 2.0 * self.lower[(i, i)].ln()).sum()
    }

    fn check_rows(&self, b: &MatrixMut<'_>) -> Result<()> {
        if b.n_rows() == self.n_rows() {
            Ok(())
        } else {
            Err(Error::LengthMismatch {
                what: "rows of the right-hand side",
                expected: self.n_rows(),
                found: b.n_rows(),
            })
        }
    }
}

/// Overwrites the lower triangle of a square block with its Cholesky factor; the number of a pivot that is not positive.
pub(crate) fn factor_in_place<T: Real>(a: MatMut<'_, T>, par: Par) -> std::result::Result<(), usize> {
    let mut memory = MemBuffer::new(llt::factor::cholesky_in_place_scratch::<T>(a.nrows(), par, faer::Spec::default()));
    llt::factor::cholesky_in_place(
        a,
        llt::factor::LltRegularization::default(),
        par,
        MemStack::new(&mut memory),
        faer::Spec::default(),
    )
    .map(|_| ())
    .map_err(|llt::factor::LltError::NonPositivePivot { index }| index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{Into, gemm};

    fn sample(n: usize) -> Matrix {
        Matrix::from_fn(n, n, |i, j| (-0.3 * i.abs_diff(j) as f64).exp() + if i == j { 0.1 } else { 0.0 })
    }

    #[test]
    fn solve_and_inverse_undo_the_matrix() {
        for n in [1, 2, 65, 200] {
            let a = sample(n);
            let factor = Cholesky::new(a.clone(), Threads::ONE).unwrap();
            let mut product = Matrix::identity(n);
            gemm(1.0, &a, &factor.inverse(), Into::Replace, product.view_mut(), Threads::ONE);
            let error = (0..n * n).map(|k| (product[(k % n, k / n)] - f64::from(u8::from(k % n == k / n))).abs());
            assert!(error.fold(0.0, f64::max) < 1e-12);
            let b: Vec<f64> = (0..n).map(|i| (i as f64 + 1.0).sin()).collect();
            let x = factor.solve(&b).unwrap();
            let residual = (0..n).map(|i| ((0..n).map(|j| a[(i, j)] * x[j]).sum::<f64>() - b[i]).abs());
            assert!(residual.fold(0.0, f64::max) < 1e-12);
            let mut half = b.clone();
            factor.half_solve_in_place(MatrixMut::new(&mut half, n, 1)).unwrap();
            let (left, right): (f64, f64) =
                (half.iter().map(|h| h * h).sum(), b.iter().zip(&x).map(|(b, x)| b * x).sum());
            assert!((left - right).abs() < 1e-12 * right);
        }
    }

    #[test]
    fn says_where_a_matrix_is_not_positive_definite() {
        let mut a = sample(5);
        a[(3, 3)] = -1.0;
        assert_eq!(Cholesky::new(a.clone(), Threads::ONE).unwrap_err(), Error::NotPositiveDefinite { row: 3 });
        a[(3, 3)] = f64::NAN;
        assert_eq!(Cholesky::new(a, Threads::ONE).unwrap_err(), Error::NotPositiveDefinite { row: 3 });
        assert!(Cholesky::new(Matrix::zeros(2, 3), Threads::ONE).is_err());
    }
}
