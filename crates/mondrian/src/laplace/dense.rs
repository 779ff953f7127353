//! Small matrices of kernel entries in double precision, for factorisations.

use crate::kernel::exp::exp_minus;
use crate::laplace::KernelRows;
use crate::linalg::Matrix;
use crate::simd::vectorise;

/// Kernel entries between the rows of `rows` and one row of another table; from row `first` on, the others are left as
/// they are.
struct Columns<'a> {
    rows: &'a KernelRows,
    /// Axes, codes and directions, each column by column.
    axes: Vec<f64>,
    levels: Vec<u32>,
    directions: Vec<f64>,
}

impl<'a> Columns<'a> {
    fn new(rows: &'a KernelRows) -> Self {
        let n = rows.n_rows();
        let turned = |table: &[f64], width: usize| (0..n * width).map(|k| table[k % n * width + k / n]).collect();
        let c = rows.n_levels();
        Self {
            rows,
            axes: turned(rows.axes(), rows.n_axes()),
            levels: (0..n * c).map(|k| rows.levels()[k % n * c + k / n]).collect(),
            directions: turned(rows.directions(), rows.n_directions()),
        }
    }

    fn fill(&self, other: &KernelRows, j: usize, first: usize, out: &mut [f64]) {
        let (n, q, c, r) = (self.rows.n_rows(), other.n_axes(), other.n_levels(), other.n_directions());
        let (axes, levels) = (&other.axes()[j * q..][..q], &other.levels()[j * c..][..c]);
        let directions = &other.directions()[j * r..][..r];
        let exponent = self.rows.exponent();
        let mut squares = vec![0.0; if r > 0 { n - first } else { 0 }];
        vectorise(
            #[inline(always)]
            || {
                let out = &mut out[first..n];
                out.fill(0.0);
                for (x, column) in axes.iter().zip(self.axes.chunks_exact(n)) {
                    out.iter_mut().zip(&column[first..]).for_each(|(o, a)| *o += (a - x).abs());
                }
                for ((code, column), weight) in
                    levels.iter().zip(self.levels.chunks_exact(n)).zip(self.rows.level_weights())
                {
                    let column = &column[first..];
                    out.iter_mut().zip(column).for_each(|(o, a)| *o += if a == code { 0.0 } else { *weight });
                }
                for (x, column) in directions.iter().zip(self.directions.chunks_exact(n)) {
                    squares.iter_mut().zip(&column[first..]).for_each(|(s, a)| *s += (a - x) * (a - x));
                }
                if exponent == 1.0 {
                    out.iter_mut().zip(&squares).for_each(|(o, s)| *o += s.sqrt());
                } else if exponent == 2.0 {
                    out.iter_mut().zip(&squares).for_each(|(o, s)| *o += s);
                } else {
                    out.iter_mut().zip(&squares).for_each(|(o, s)| *o += libm::pow(*s, 0.5 * exponent));
                }
                out.iter_mut().for_each(|o| *o = exp_minus(*o));
            },
        );
    }
}

/// The kernel of all pairs of rows, in the lower triangle; zeros above it.
pub(crate) fn gram_lower(rows: &KernelRows) -> Matrix {
    let n = rows.n_rows();
    let columns = Columns::new(rows);
    let mut gram = Matrix::zeros(n, n);
    for j in 0..n {
        columns.fill(rows, j, j, gram.column_mut(j));
    }
    gram
}

/// The kernel between the rows of one table and those of another, one column per row of `others`, into `out`.
pub(crate) fn fill_cross(rows: &KernelRows, others: &KernelRows, out: &mut [f64]) {
    let columns = Columns::new(rows);
    for (j, column) in out.chunks_exact_mut(rows.n_rows().max(1)).enumerate() {
        columns.fill(others, j, 0, column);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::NodeKey;

    #[test]
    fn entries_are_the_kernel() {
        let draw = |k: u64, n: usize| (0..n).map(|i| NodeKey::root(k, i as u64).draw(0).normal()).collect::<Vec<f64>>();
        for (n, exponent) in [(1, 1.0), (7, 1.4), (40, 2.0)] {
            let levels = draw(2, 2 * n).iter().map(|x| x.abs() as u32).collect();
            let rows = KernelRows::of_axes(draw(1, 3 * n), 3).unwrap().with_levels(levels, vec![0.3, 0.6]).unwrap();
            let rows = rows.with_directions(draw(3, 2 * n), 2, exponent).unwrap();
            let gram = gram_lower(&rows);
            let others = rows.select(&[n - 1, 0]);
            let mut cross = Matrix::zeros(n, 2);
            fill_cross(&rows, &others, cross.as_mut_slice());
            for i in 0..n {
                assert!((0..=i).all(|j| (gram[(i, j)] - rows.entry(i, j)).abs() < 1e-14));
                assert!((cross[(i, 0)] - rows.entry(i, n - 1)).abs() < 1e-14);
                assert!((cross[(i, 1)] - rows.entry(i, 0)).abs() < 1e-14);
            }
        }
    }
}
