//! The Laplace kernel and its Gram matrices.

pub(crate) mod exp;

use crate::parallel::prelude::*;

use crate::kernel::exp::exp_minus;
use crate::linalg::{Matrix, Threads};
use crate::memory;
use crate::simd::vectorise;
use crate::{Error, Lifetime, Points, Result};

/// k(x, x') = exp(−Σ_d λ_d |x_d − x'_d|), with one lifetime λ for all dimensions or one per dimension.
///
/// ```
/// use mondrian::LaplaceKernel;
/// use mondrian::{Lifetime, Points};
/// let kernel = LaplaceKernel::new(Lifetime::new(0.5)?)?;
/// let points = Points::row_major(&[0.0, 0.0, 1.0, 3.0], 2)?;
/// let gram = kernel.gram(points, Default::default())?;
/// assert!((gram[(0, 1)] - (-2.0_f64).exp()).abs() < 1e-15);
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LaplaceKernel {
    /// One number, or one per dimension.
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

    /// One lifetime per dimension.
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

    /// One lifetime per dimension, by number.
    pub(crate) fn of_numbers(lifetimes: &[f64]) -> Result<Self> {
        Self::per_dimension(&lifetimes.iter().map(|l| Lifetime::new(*l)).collect::<Result<Vec<_>>>()?)
    }

    /// The numbers: one per dimension, or a single one for all.
    pub(crate) fn numbers(&self) -> &[f64] {
        &self.lifetimes
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
    /// factorisation reads, at half the cost. Errors as for [`LaplaceKernel::gram`].
    pub fn gram_lower(&self, points: Points<'_>, threads: Threads) -> Result<Matrix> {
        self.fill(points, points, |column| column, threads)
    }

    /// The kernel between the points of `rows` and those of `columns`. Errors as for [`LaplaceKernel::gram`].
    pub fn cross(&self, rows: Points<'_>, columns: Points<'_>, threads: Threads) -> Result<Matrix> {
        self.fill(rows, columns, |_| 0, threads)
    }

    /// Fills columns from the row given by `first_row` (or a little above it) downwards.
    fn fill(
        &self,
        rows: Points<'_>,
        columns: Points<'_>,
        first_row: impl Fn(usize) -> usize + Sync,
        threads: Threads,
    ) -> Result<Matrix> {
        let packed = self.pack(rows)?;
        columns.check_width(rows.n_columns())?;
        memory::check("bytes of the kernel matrix", memory::bytes_of(rows.n_rows(), columns.n_rows()))?;
        let mut out = Matrix::zeros(rows.n_rows(), columns.n_rows());
        packed.fill(columns, 0, first_row, out.as_mut_slice(), threads);
        Ok(out)
    }

    /// Points prepared for many kernel evaluations. Errors as for [`LaplaceKernel::gram`].
    pub(crate) fn pack(&self, points: Points<'_>) -> Result<PackedRows> {
        Ok(PackedRows::new(points, &self.lifetimes(points.n_columns())?))
    }
}

/// Rows of a block: a block of points stays in the first-level cache while a strip of columns passes over it.
const BLOCK: usize = 128;
/// Columns of a strip.
const STRIP: usize = 16;

/// Points in blocks of rows, within a block dimension by dimension: every inner loop is contiguous in memory.
/// Dimensions with lifetime zero are omitted.
pub(crate) struct PackedRows {
    data: Vec<f64>,
    n_rows: usize,
    dims: Vec<usize>,
    lifetimes: Vec<f64>,
}

impl PackedRows {
    fn new(points: Points<'_>, lifetimes: &[f64]) -> Self {
        let n_rows = points.n_rows();
        let dims: Vec<usize> = (0..lifetimes.len()).filter(|d| lifetimes[*d] > 0.0).collect();
        let mut data = Vec::with_capacity(n_rows * dims.len());
        for first in (0..n_rows).step_by(BLOCK) {
            let rows = first..(first + BLOCK).min(n_rows);
            for &d in &dims {
                data.extend(rows.clone().map(|i| points.get(i, d)));
            }
        }
        let lifetimes = dims.iter().map(|d| lifetimes[*d]).collect();
        Self { data, n_rows, dims, lifetimes }
    }

    /// Kernel values of all packed points against those of `others` from number `skip` on, as many as `out` has columns
    /// for; within a column from the row that `first_row` names (or a little above it) downwards.
    pub(crate) fn fill(
        &self,
        others: Points<'_>,
        skip: usize,
        first_row: impl Fn(usize) -> usize + Sync,
        out: &mut [f64],
        threads: Threads,
    ) {
        if self.dims.is_empty() {
            // No dimension distinguishes points.
            out.fill(1.0);
            return;
        }
        let n = self.n_rows;
        let strip = |(k, strip): (usize, &mut [f64])| {
            let first = k * STRIP;
            let columns = skip + first..skip + first + strip.len() / n;
            let others: Vec<f64> = columns.flat_map(|i| self.dims.iter().map(move |&d| others.get(i, d))).collect();
            vectorise(
                #[inline(always)]
                || fill_strip(self, &others, first_row(first), strip),
            );
        };
        if threads == Threads::ONE {
            out.chunks_mut((n * STRIP).max(1)).enumerate().for_each(strip);
        } else {
            out.par_chunks_mut((n * STRIP).max(1)).enumerate().for_each(strip);
        }
    }
}

/// Up to [`STRIP`] columns of the kernel, from the block of row `first` on.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]
fn fill_strip(rows: &PackedRows, others: &[f64], first: usize, strip: &mut [f64]) {
    let (n, n_dims) = (rows.n_rows, rows.dims.len());
    for (b, block) in rows.data.chunks(BLOCK * n_dims).enumerate().skip(first / BLOCK) {
        for (column, other) in strip.chunks_exact_mut(n).zip(others.chunks_exact(n_dims)) {
            let out = &mut column[b * BLOCK..][..block.len() / n_dims];
            distances(block, other, &rows.lifetimes, out);
            for value in out {
                *value = exp_minus(*value);
            }
        }
    }
}

/// `out` ← Σ_d λ_d |x_d − x'_d| between the points of a block and one other, four dimensions per pass. Differences are
/// computed first: scaling the points beforehand would lose the low digits of coordinates far from zero.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]
fn distances(block: &[f64], other: &[f64], lifetimes: &[f64], out: &mut [f64]) {
    let n = out.len();
    let (groups, _) = other.as_chunks::<4>();
    let (scales, _) = lifetimes.as_chunks::<4>();
    out.fill(0.0);
    for ((columns, other), scale) in block.chunks_exact(4 * n).zip(groups).zip(scales) {
        let (a, rest) = columns.split_at(n);
        let (b, rest) = rest.split_at(n);
        let (c, d) = rest.split_at(n);
        for ((((o, a), b), c), d) in out.iter_mut().zip(a).zip(b).zip(c).zip(d) {
            *o += (scale[0] * (a - other[0]).abs() + scale[1] * (b - other[1]).abs())
                + (scale[2] * (c - other[2]).abs() + scale[3] * (d - other[3]).abs());
        }
    }
    for d in 4 * groups.len()..other.len() {
        for (o, x) in out.iter_mut().zip(&block[d * n..]) {
            *o += lifetimes[d] * (x - other[d]).abs();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow(x: Points<'_>, i: usize, y: Points<'_>, j: usize, lifetimes: &[f64]) -> f64 {
        (-x.row(i).zip(y.row(j)).zip(lifetimes).map(|((a, b), l)| l * (a - b).abs()).sum::<f64>()).exp()
    }

    #[test]
    fn every_entry_is_the_kernel() {
        let numbers: Vec<f64> = (0..3000).map(|i| f64::from(i * 37 % 1009) / 170.0).collect();
        let lifetimes = [0.1, 2.0, 0.0, 1.0, 0.5, 0.3];
        let kernel = LaplaceKernel::per_dimension(&lifetimes.map(|l| Lifetime::new(l).unwrap())).unwrap();
        for (n, m) in [(1, 1), (7, 3), (127, 15), (128, 16), (129, 17), (300, 40)] {
            let x = Points::row_major(&numbers[..6 * n], 6).unwrap();
            let y = Points::column_major(&numbers[100..][..6 * m], m, 6).unwrap();
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
