//! A symmetric matrix that grows and shrinks in place.

use crate::linalg::product::{Into, Threads, gemm, gemv};
use crate::linalg::{Matrix, MatrixRef, axpy};
use crate::simd::vectorise;
use crate::{Error, Result};

/// A symmetric matrix, both triangles stored, with room to grow.
///
/// Both triangles, since what is read most often is a column, and a column of one triangle is half a strided row.
#[derive(Debug, Clone)]
pub struct Symmetric {
    storage: Matrix,
    n: usize,
}

impl Symmetric {
    /// Takes a square matrix; its lower triangle counts.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if it is not square.
    pub fn new(mut matrix: Matrix) -> Result<Self> {
        let n = matrix.n_rows();
        if matrix.n_columns() != n {
            return Err(Error::LengthMismatch {
                what: "columns of a square matrix",
                expected: n,
                found: matrix.n_columns(),
            });
        }
        matrix.mirror_lower();
        Ok(Self { storage: matrix, n })
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n
    }

    /// One column, or row.
    pub fn column(&self, i: usize) -> &[f64] {
        &self.storage.column(i)[..self.n]
    }

    /// The whole, borrowed.
    pub fn view(&self) -> MatrixRef<'_> {
        self.storage.block(self.n, self.n)
    }

    /// `out` ← A`x`.
    pub fn multiply(&self, x: &[f64], out: &mut [f64]) {
        gemv(1.0, self.view(), x, Into::Replace, out);
    }

    /// An estimate from below of the largest eigenvalue's size: power steps from the heaviest column.
    pub fn norm_estimate(&self) -> f64 {
        let Some(start) = (0..self.n).max_by(|&a, &b| self.column(a)[a].abs().total_cmp(&self.column(b)[b].abs()))
        else {
            return 0.0;
        };
        let mut x = self.column(start).to_vec();
        let mut image = vec![0.0; self.n];
        let mut norm = 0.0;
        for _ in 0..4 {
            let length = norm_two(&x);
            if !(length > 0.0) {
                return 0.0;
            }
            x.iter_mut().for_each(|x| *x /= length);
            self.multiply(&x, &mut image);
            norm = norm_two(&image);
            std::mem::swap(&mut x, &mut image);
        }
        norm
    }

    /// A ← A + sign·`w``w`ᵀ. Symmetric to the last bit, since both triangles multiply the same two numbers.
    pub(crate) fn add_square(&mut self, sign: f64, w: &[f64]) {
        let n = self.n;
        vectorise(
            #[inline(always)]
            || {
                for (j, &w_j) in w.iter().enumerate() {
                    axpy(sign * w_j, w, &mut self.storage.column_mut(j)[..n]);
                }
            },
        );
    }

    /// A ← A − `u``u`ᵀ + `w``w`ᵀ in one pass over memory.
    pub(crate) fn exchange_square(&mut self, u: &[f64], w: &[f64]) {
        let n = self.n;
        vectorise(
            #[inline(always)]
            || {
                for j in 0..n {
                    let (u_j, w_j) = (u[j], w[j]);
                    for ((a, u), w) in self.storage.column_mut(j)[..n].iter_mut().zip(u).zip(w) {
                        *a += w * w_j - u * u_j;
                    }
                }
            },
        );
    }

    /// A ← A + `alpha`·`x``x`ᵀ for several columns.
    pub(crate) fn add_squares(&mut self, alpha: f64, x: MatrixRef<'_>, threads: Threads) {
        gemm(alpha, x, x.t(), Into::Add, self.storage.block_mut(self.n, self.n), threads);
    }

    /// Appends a last row and column; the last entry of `column` is the diagonal one.
    pub(crate) fn push(&mut self, column: &[f64]) {
        self.reserve(self.n + 1);
        for (j, value) in column.iter().enumerate() {
            self.storage[(self.n, j)] = *value;
            self.storage[(j, self.n)] = *value;
        }
        self.n += 1;
    }

    /// Drops row and column `i`; the last one takes its place.
    pub(crate) fn swap_remove(&mut self, i: usize) {
        let last = self.n - 1;
        for j in 0..last {
            let value = self.storage[(last, if j == i { last } else { j })];
            self.storage[(i, j)] = value;
            self.storage[(j, i)] = value;
        }
        self.n = last;
    }

    /// Drops row and column `i`; later ones move up.
    pub(crate) fn remove(&mut self, i: usize) {
        // One pass over memory: earlier columns are compacted in place, later ones while they move to the left.
        let (n, rows) = (self.n, self.storage.n_rows());
        let numbers = self.storage.as_mut_slice();
        for j in 0..i {
            numbers[j * rows..][..n].copy_within(i + 1.., i);
        }
        for j in i + 1..n {
            numbers.copy_within(j * rows..j * rows + i, (j - 1) * rows);
            numbers.copy_within(j * rows + i + 1..j * rows + n, (j - 1) * rows + i);
        }
        self.n -= 1;
    }

    /// Adds row and column `j` to row and column `i`, `excess` to the diagonal, and drops `j` as `swap_remove` does.
    pub(crate) fn merge(&mut self, i: usize, j: usize, excess: f64) {
        let mut sum: Vec<f64> = self.column(i).iter().zip(self.column(j)).map(|(a, b)| a + b).collect();
        sum[i] += sum[j] + excess;
        for (k, value) in sum.into_iter().enumerate() {
            self.storage[(k, i)] = value;
            self.storage[(i, k)] = value;
        }
        self.swap_remove(j);
    }

    fn reserve(&mut self, n: usize) {
        if n <= self.storage.n_rows() {
            return;
        }
        let capacity = n.max(self.n + self.n / 2);
        let mut larger = Matrix::zeros(capacity, capacity);
        for j in 0..self.n {
            larger.column_mut(j)[..self.n].copy_from_slice(self.column(j));
        }
        self.storage = larger;
    }
}

pub(crate) fn norm_two(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(n: usize) -> Matrix {
        Matrix::from_fn(n, n, |i, j| (10 * i.max(j) + i.min(j)) as f64)
    }

    #[test]
    fn grows_and_shrinks_like_a_copy() {
        let mut a = Symmetric::new(sample(4)).unwrap();
        a.push(&[40.0, 41.0, 42.0, 43.0, 44.0]);
        assert_eq!(a.view().to_owned(), sample(5));
        a.swap_remove(1);
        let kept = [0, 4, 2, 3];
        assert_eq!(a.view().to_owned(), Matrix::from_fn(4, 4, |i, j| sample(5)[(kept[i], kept[j])]));
        let mut b = Symmetric::new(sample(5)).unwrap();
        b.remove(1);
        let kept = [0, 2, 3, 4];
        assert_eq!(b.view().to_owned(), Matrix::from_fn(4, 4, |i, j| sample(5)[(kept[i], kept[j])]));
        let mut c = Symmetric::new(sample(3)).unwrap();
        c.merge(0, 1, 0.5);
        assert_eq!(c.view().to_owned(), Matrix::from_fn(2, 2, |i, j| [[31.5, 41.0], [41.0, 22.0]][i][j]));
        a.swap_remove(3);
        assert_eq!(a.n_rows(), 3);
    }

    #[test]
    fn estimates_the_norm_from_below() {
        let a = Symmetric::new(Matrix::from_fn(3, 3, |i, j| if i == j { [1.0, 5.0, 2.0][i] } else { 0.0 })).unwrap();
        assert!((a.norm_estimate() - 5.0).abs() < 1e-12);
    }
}
