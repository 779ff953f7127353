//! Distances between rows of many columns in double precision, most of them 0 on sparse tables as images are.
//!
//! |a − b| = a + b − 2·min(a, b): with Σa and Σb known, only columns in which both numbers are other than 0 count, if none is
//! negative. And ‖a − b‖² = ‖a‖² + ‖b‖² − 2·aᵀb: a matrix product.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

use crate::laplace::KernelRows;
use crate::laplace::columns::WIDE;

/// Squared distances below this share of ‖a‖² + ‖b‖² are summed up directly: their difference has lost too many digits.
const LOST: f64 = 1e-6;
/// Columns whose non-zero numbers are looked for together.
const CHUNK: usize = 32;

/// Sums over the columns of every row that distances along axes start from.
#[derive(Debug)]
pub(crate) struct AxisSums {
    sums: Vec<f64>,
    /// Whether a column has negative numbers: then it always counts.
    has_negative: Vec<bool>,
}

impl AxisSums {
    /// For rows of many axes, at least half of whose numbers are 0.
    pub(crate) fn of(rows: &KernelRows) -> Option<Self> {
        let (axes, q) = (rows.axes(), rows.n_axes());
        if q <= WIDE || 2 * axes.iter().filter(|x| **x == 0.0).count() < axes.len() {
            return None;
        }
        let mut has_negative = vec![false; q];
        for row in axes.chunks_exact(q) {
            has_negative.iter_mut().zip(row).for_each(|(is, x)| *is |= *x < 0.0);
        }
        let sums = axes.chunks_exact(q).map(|row| row.iter().sum()).collect();
        Some(Self { sums, has_negative })
    }

    /// Σ|a − b| between the rows of a tile, whose n numbers per column follow each other, and another row.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]
    pub(crate) fn distances(&self, columns: &[f64], first: usize, other: &[f64], out: &mut [f64]) {
        let n = out.len();
        out.fill(0.0);
        for (c, (numbers, has_negative)) in other.chunks(CHUNK).zip(self.has_negative.chunks(CHUNK)).enumerate() {
            let (mut counting, mut count) = ([0; CHUNK], 0);
            for (d, (x, has_negative)) in numbers.iter().zip(has_negative).enumerate() {
                counting[count] = d;
                count += usize::from(*x != 0.0 || *has_negative);
            }
            let column = |d: usize| &columns[(c * CHUNK + d) * n..][..n];
            let (fours, rest) = counting[..count].as_chunks::<4>();
            for d in fours {
                let (x, y) = (d.map(column), d.map(|d| numbers[d]));
                for (i, out) in out.iter_mut().enumerate() {
                    *out +=
                        (least(x[0][i], y[0]) + least(x[1][i], y[1])) + (least(x[2][i], y[2]) + least(x[3][i], y[3]));
                }
            }
            for &d in rest {
                out.iter_mut().zip(column(d)).for_each(|(out, x)| *out += least(*x, numbers[d]));
            }
        }
        let own = other.iter().sum::<f64>();
        for (out, sum) in out.iter_mut().zip(&self.sums[first..]) {
            *out = (sum + own - 2.0 * *out).max(0.0);
        }
    }
}

/// The smaller of two numbers, neither of them NaN: one instruction.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]
fn least(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// Squared lengths of every row along its directions.
#[derive(Debug)]
pub(crate) struct Lengths {
    squares: Vec<f64>,
}

impl Lengths {
    /// For rows of many directions.
    pub(crate) fn of(rows: &KernelRows) -> Option<Self> {
        let r = rows.n_directions();
        (r > WIDE).then(|| Self { squares: rows.directions().chunks_exact(r).map(squared_length).collect() })
    }

    /// ‖a − b‖² between the rows of a tile and other rows, `out` one after the other.
    pub(crate) fn distances<const N: usize>(
        &self,
        columns: &[f64],
        first: usize,
        others: &[&[f64]],
        out: &mut [[f64; N]],
    ) {
        let (r, count) = (others.first().map_or(0, |other| other.len()), others.len());
        let n = columns.len() / r.max(1);
        let right: Vec<f64> = others.iter().flat_map(|other| other.iter().copied()).collect();
        let mut products = vec![0.0; n * count];
        matmul(
            MatMut::from_column_major_slice_mut(&mut products, n, count),
            Accum::Replace,
            MatRef::from_column_major_slice(columns, n, r),
            MatRef::from_column_major_slice(&right, r, count),
            1.0,
            Par::Seq,
        );
        for ((out, products), other) in out.iter_mut().zip(products.chunks_exact(n)).zip(others) {
            let own = squared_length(other);
            for (i, (out, product)) in out.iter_mut().zip(products).enumerate() {
                let both = self.squares[first + i] + own;
                *out = both - 2.0 * product;
                if *out < LOST * both {
                    *out = columns.iter().skip(i).step_by(n).zip(*other).map(|(a, b)| (a - b) * (a - b)).sum();
                }
            }
        }
    }
}

fn squared_length(row: &[f64]) -> f64 {
    row.iter().map(|x| x * x).sum()
}

#[cfg(test)]
mod tests {
    use crate::laplace::KernelRows;
    use crate::laplace::tiles::Tiles;
    use crate::linalg::{Matrix, Threads};

    /// Rows of 70 axes, two thirds of them 0, one of them negative, and of 80 directions; two rows are equal, two nearly.
    fn rows(n: usize) -> KernelRows {
        let number = |k: usize| (k as f64 * 0.7391).sin();
        let axis = |k: usize| match (k % 70, k / 70 % 3) {
            (7, _) => 0.05 * number(k),
            (_, 0) => 0.05 * number(k).abs(),
            _ => 0.0,
        };
        let mut axes: Vec<f64> = (0..70 * n).map(|k| if k % 11 < 4 { axis(k) } else { 0.0 }).collect();
        let mut directions: Vec<f64> = (0..80 * n).map(|k| 0.1 * number(k + 17)).collect();
        axes.copy_within(0..70, 70);
        directions.copy_within(0..80, 80);
        directions.copy_within(0..80, 160);
        directions[161] += 1e-9;
        KernelRows::of_axes(axes, 70).unwrap().with_directions(directions, 80, 1.3).unwrap()
    }

    #[test]
    fn entries_of_wide_rows_are_the_definition() {
        for n in [5, 128, 200] {
            let rows = rows(n);
            let tiles = Tiles::new(&rows);
            assert!(super::AxisSums::of(&rows).is_some() && super::Lengths::of(&rows).is_some());
            let gram = tiles.gram_lower(Threads::ONE);
            assert_eq!(gram, tiles.gram_lower(Threads::up_to(2)));
            for j in 0..n {
                assert!((j..n).all(|i| (gram[(i, j)] - rows.entry(i, j)).abs() < 1e-12), "{n} {j}");
            }
            assert!((gram[(1, 0)] - rows.entry(1, 0)).abs() < 1e-15, "equal directions have no distance");
            let x = Matrix::from_fn(n, 2, |i, c| ((i + 3 * c) as f64).sin());
            let product = tiles.product(&x, Threads::up_to(2));
            for i in 0..n {
                let slow = |c: usize| (0..n).map(|j| rows.entry(i, j) * x[(j, c)]).sum::<f64>();
                assert!((0..2).all(|c| (product[(i, c)] - slow(c)).abs() < 1e-10));
            }
        }
    }
}
