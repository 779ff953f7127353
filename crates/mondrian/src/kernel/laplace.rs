//! The Laplace kernel and its Gram matrices.

use rayon::prelude::*;

use super::exp::exp_minus;
use crate::dense::{Matrix, Threads, vectorise};
use crate::{Error, Lifetime, Points, Result};

/// k(x, x') = exp(−Σ_d λ_d |x_d − x'_d|), with one lifetime λ for all dimensions or one a dimension.
///
/// ```
/// use mondrian::kernel::LaplaceKernel;
/// use mondrian::{Lifetime, Points};
/// let kernel = LaplaceKernel::new(Lifetime::new(0.5)?)?;
/// let points = Points::row_major(&[0.0, 0.0, 1.0, 3.0], 2)?;
/// let gram = kernel.gram(points, Default::default())?;
/// assert!((gram[(0, 1)] - (-2.0_f64).exp()).abs() < 1e-15);
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LaplaceKernel {
    /// One number, or one a dimension.
    lifetimes: Vec<f64>,
    shared: bool,
}

impl LaplaceKernel {
    /// One lifetime for all dimensions.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] if it is infinite: the kernel is then zero between any two distinct points.
    pub fn new(lifetime: Lifetime) -> Result<Self> {
        Ok(Self { shared: true, ..Self::per_dimension(&[lifetime])? })
    }

    /// One lifetime a dimension.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] if one is infinite, [`Error::Empty`] if there is none.
    pub fn per_dimension(lifetimes: &[Lifetime]) -> Result<Self> {
        if lifetimes.is_empty() {
            return Err(Error::Empty { what: "lifetimes", rows: 0, columns: 1 });
        }
        match lifetimes.iter().find(|l| !l.is_finite()) {
            Some(l) => {
                Err(Error::InvalidParameter { name: "lifetime", value: l.get(), expected: "finite for the kernel" })
            }
            None => Ok(Self { lifetimes: lifetimes.iter().map(|l| l.get()).collect(), shared: false }),
        }
    }

    /// The lifetimes of `n_dims` dimensions.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the kernel has another number of them.
    pub fn lifetimes(&self, n_dims: usize) -> Result<Vec<f64>> {
        if self.shared {
            Ok(vec![self.lifetimes[0]; n_dims])
        } else if self.lifetimes.len() == n_dims {
            Ok(self.lifetimes.clone())
        } else {
            Err(Error::LengthMismatch { what: "lifetimes", expected: n_dims, found: self.lifetimes.len() })
        }
    }

    /// The kernel of every pair of points, both triangles.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the number of lifetimes is not the points' number of dimensions.
    pub fn gram(&self, points: Points<'_>, threads: Threads) -> Result<Matrix> {
        let mut gram = self.gram_lower(points, threads)?;
        gram.mirror_lower();
        Ok(gram)
    }

    /// The lower triangle of the Gram matrix (a little of the upper one is filled too); what a Cholesky
    /// factorisation reads, at half the price. Errors as for [`LaplaceKernel::gram`].
    pub fn gram_lower(&self, points: Points<'_>, threads: Threads) -> Result<Matrix> {
        self.fill(points, points, |column| column, threads)
    }

    /// The kernel between the points of `rows` and those of `columns`. Errors as for [`LaplaceKernel::gram`].
    pub fn cross(&self, rows: Points<'_>, columns: Points<'_>, threads: Threads) -> Result<Matrix> {
        self.fill(rows, columns, |_| 0, threads)
    }

    /// Fills columns from the row that `first_row` names (or a little above it) downwards.
    fn fill(
        &self,
        rows: Points<'_>,
        columns: Points<'_>,
        first_row: impl Fn(usize) -> usize + Sync,
        threads: Threads,
    ) -> Result<Matrix> {
        let lifetimes = self.lifetimes(rows.n_columns())?;
        columns.check_width(rows.n_columns())?;
        let n = rows.n_rows();
        let mut out = Matrix::zeros(n, columns.n_rows());
        if n == 0 || columns.n_rows() == 0 {
            return Ok(out);
        }
        let packed = PackedRows::new(rows);
        let others = columns.to_row_major();
        let strip = |(group, strip): (usize, &mut [f64])| {
            let others = &others[group * GROUP * rows.n_columns()..];
            vectorise(|| fill_strip(&packed, others, &lifetimes, first_row(group * GROUP) / TILE, strip, n));
        };
        if threads == Threads::ONE {
            out.as_mut_slice().chunks_mut(n * GROUP).enumerate().for_each(strip);
        } else {
            out.as_mut_slice().par_chunks_mut(n * GROUP).enumerate().for_each(strip);
        }
        Ok(out)
    }
}

/// Rows of a tile: two vectors of four numbers.
const TILE: usize = 8;
/// Columns worked on together, so that a loaded coordinate is used four times. 8 × 4 sums fill half the registers.
const GROUP: usize = 4;

/// Points in tiles of eight, within a tile dimension by dimension; the last tile repeats zeros.
struct PackedRows {
    data: Vec<f64>,
    n_dims: usize,
}

impl PackedRows {
    fn new(points: Points<'_>) -> Self {
        let (n, n_dims) = (points.n_rows(), points.n_columns());
        let mut data = vec![0.0; n.div_ceil(TILE) * TILE * n_dims];
        for i in 0..n {
            let tile = &mut data[i / TILE * TILE * n_dims..];
            for (d, x) in points.row(i).enumerate() {
                tile[d * TILE + i % TILE] = x;
            }
        }
        Self { data, n_dims }
    }
}

/// Up to four columns of the kernel, from tile `first` on.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]
fn fill_strip(rows: &PackedRows, others: &[f64], lifetimes: &[f64], first: usize, strip: &mut [f64], n: usize) {
    let n_dims = rows.n_dims;
    let width = strip.len() / n;
    // A column that is not there repeats the last one and is not written.
    let other = |k: usize| &others[k.min(width - 1) * n_dims..][..n_dims];
    let others = [other(0), other(1), other(2), other(3)];
    for (t, tile) in rows.data.chunks_exact(TILE * n_dims).enumerate().skip(first) {
        let sums = distances(tile, others, lifetimes);
        let (start, end) = (t * TILE, ((t + 1) * TILE).min(n));
        for (k, sums) in sums.iter().enumerate().take(width) {
            let values = sums.map(exp_minus);
            strip[k * n + start..k * n + end].copy_from_slice(&values[..end - start]);
        }
    }
}

/// Σ_d λ_d |x_d − x'_d| between eight points and four. Differences first: scaling the points
/// beforehand would cost a pass and the low digits of coordinates far from zero.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]
fn distances(tile: &[f64], others: [&[f64]; GROUP], lifetimes: &[f64]) -> [[f64; TILE]; GROUP] {
    let mut sums = [[0.0; TILE]; GROUP];
    let (tile, _) = tile.as_chunks::<TILE>();
    for (d, (x, lifetime)) in tile.iter().zip(lifetimes).enumerate() {
        for k in 0..GROUP {
            let other = others[k][d];
            for l in 0..TILE {
                sums[k][l] += lifetime * (x[l] - other).abs();
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow(x: Points<'_>, i: usize, y: Points<'_>, j: usize, lifetimes: &[f64]) -> f64 {
        (-x.row(i).zip(y.row(j)).zip(lifetimes).map(|((a, b), l)| l * (a - b).abs()).sum::<f64>()).exp()
    }

    #[test]
    fn every_entry_is_the_kernel() {
        let numbers: Vec<f64> = (0..300).map(|i| f64::from(i * 37 % 101) / 17.0).collect();
        let lifetimes = [0.1, 2.0, 0.0];
        let kernel = LaplaceKernel::per_dimension(&lifetimes.map(|l| Lifetime::new(l).unwrap())).unwrap();
        for (n, m) in [(1, 1), (7, 3), (8, 4), (9, 5), (33, 18)] {
            let x = Points::row_major(&numbers[..3 * n], 3).unwrap();
            let y = Points::column_major(&numbers[100..][..3 * m], m, 3).unwrap();
            for threads in [Threads::ONE, Threads::up_to(2)] {
                let cross = kernel.cross(x, y, threads).unwrap();
                let gram = kernel.gram(x, threads).unwrap();
                for i in 0..n {
                    assert!((0..m).all(|j| (cross[(i, j)] - slow(x, i, y, j, &lifetimes)).abs() < 1e-14));
                    assert!((0..n).all(|j| (gram[(i, j)] - slow(x, i, x, j, &lifetimes)).abs() < 1e-14));
                }
            }
        }
    }

    #[test]
    fn refuses_what_is_no_kernel() {
        assert!(matches!(LaplaceKernel::new(Lifetime::INFINITE), Err(Error::InvalidParameter { .. })));
        let kernel = LaplaceKernel::per_dimension(&[Lifetime::ZERO; 2]).unwrap();
        let points = Points::row_major(&[0.0; 6], 3).unwrap();
        assert!(matches!(kernel.gram(points, Threads::ONE), Err(Error::LengthMismatch { expected: 3, found: 2, .. })));
        let none = Points::row_major(&[], 2).unwrap();
        assert_eq!(kernel.gram(none, Threads::ONE).unwrap().n_rows(), 0);
    }
}
