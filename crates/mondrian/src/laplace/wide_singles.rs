//! A batch of rows of many columns in single precision: what [`Singles`](crate::laplace::singles::Singles) does, its twin in the
//! tests, for rows of which most columns are 0 ([`wide`](crate::laplace::wide) has the two identities).
#![expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

use crate::laplace::KernelRows;
use crate::laplace::elementary::{half_powers, powers_minus};
use crate::laplace::entries::part_of;
use crate::laplace::packed::{LANES, Lanes, Units};
use crate::laplace::singles::single_metric_weights;
use crate::laplace::tiles::{PairParts, Pairs};
use crate::linalg::{Threads, each};
use crate::simd::{Simd, WithSimd, with_vectors};

/// Vectors of a block of rows.
const VECTORS: usize = 4;
/// Rows of a block, and columns of the matrices in one task.
const BLOCK: usize = VECTORS * LANES;
/// One column of a block.
type Column = [Lanes; VECTORS];

/// Squared distances below this share of ‖a‖² + ‖b‖² are summed up directly.
const LOST: f32 = 1e-3;

/// Rows in blocks, within a block column by column; distances are in units of ln 2.
pub(crate) struct WideSingles {
    n_rows: usize,
    n_axes: usize,
    n_directions: usize,
    exponent: f32,
    blocks: Vec<Column>,
    /// The axes that count of each row: those in which it is not 0, or some row is negative.
    counting: Vec<Vec<(u32, f32)>>,
    /// Σ over the axes of each row.
    sums: Vec<f32>,
    /// Row after row.
    directions: Vec<f32>,
    squared_lengths: Vec<f32>,
    unit_of_squares: f64,
}

impl WideSingles {
    fn block(&self, block: usize) -> &[Column] {
        &self.blocks[block * self.n_axes..][..self.n_axes]
    }

    fn n_blocks(&self) -> usize {
        self.n_rows.div_ceil(BLOCK)
    }

    fn direction(&self, row: usize) -> &[f32] {
        &self.directions[row * self.n_directions..][..self.n_directions]
    }

    /// Squared distances of rows from `first` on from the first [`BLOCK`] of them, column after column.
    fn squares(&self, first: usize, count: usize) -> Vec<f32> {
        let (n, r) = (self.n_rows - first, self.n_directions);
        let mut squares = vec![0.0; n * count];
        let own = &self.directions[first * r..];
        matmul(
            MatMut::from_column_major_slice_mut(&mut squares, n, count),
            Accum::Replace,
            MatRef::from_column_major_slice(own, r, n).transpose(),
            MatRef::from_column_major_slice(&own[..count * r], r, count),
            1.0,
            Par::Seq,
        );
        let lengths = &self.squared_lengths[first..];
        for (j, column) in squares.chunks_exact_mut(n).enumerate() {
            for (i, (square, length)) in column.iter_mut().zip(lengths).enumerate().skip(j) {
                let both = length + lengths[j];
                *square = both - 2.0 * *square;
                if *square < LOST * both {
                    let pairs = self.direction(first + i).iter().zip(self.direction(first + j));
                    *square = pairs.map(|(a, b)| (a - b) * (a - b)).sum();
                }
            }
        }
        squares
    }
}

impl Pairs for WideSingles {
    type Number = f32;

    /// Rows without categories.
    fn new(rows: &KernelRows) -> Self {
        let (n, q, r) = (rows.n_rows(), rows.n_axes(), rows.n_directions());
        let unit = Units::of(rows);
        let centres = vec![0.0; q + r];
        let mut blocks = vec![[[0.0; LANES]; VECTORS]; n.div_ceil(BLOCK) * q];
        let (mut table, mut directions) = (vec![0.0; n * q], vec![0.0; n * r]);
        for i in 0..n {
            let block = &mut blocks[i / BLOCK * q..][..q];
            unit.write(rows, i, &centres, |k, value| {
                if k < q {
                    block[k][i % BLOCK / LANES][i % LANES] = value;
                    table[i * q + k] = value;
                } else {
                    directions[i * r + k - q] = value;
                }
            });
        }
        let mut has_negative = vec![false; q];
        for row in table.chunks_exact(q.max(1)) {
            has_negative.iter_mut().zip(row).for_each(|(is, x)| *is |= *x < 0.0);
        }
        let counts = |row: &[f32]| {
            let all = row.iter().zip(&has_negative).enumerate();
            all.filter(|(_, (x, is))| **x != 0.0 || **is).map(|(d, (x, _))| (d as u32, *x)).collect()
        };
        let total = |numbers: &mut dyn Iterator<Item = f32>| numbers.map(f64::from).sum::<f64>() as f32;
        Self {
            n_rows: n,
            n_axes: q,
            n_directions: r,
            exponent: rows.exponent() as f32,
            blocks,
            counting: table.chunks_exact(q.max(1)).map(counts).collect(),
            sums: table.chunks_exact(q.max(1)).map(|row| total(&mut row.iter().copied())).collect(),
            squared_lengths: directions
                .chunks_exact(r.max(1))
                .map(|row| total(&mut row.iter().map(|x| x * x)))
                .collect(),
            directions,
            unit_of_squares: unit.direction * unit.direction,
        }
    }

    fn parts(&self, threads: Threads) -> PairParts<f32> {
        let n = self.n_rows;
        let m = if self.n_directions > 0 { n * n } else { 0 };
        let (mut kernel, mut squares, mut powers) = (vec![0.0; n * n], vec![0.0; m], vec![0.0; m]);
        let size = (n * BLOCK).max(1);
        let mut squared: Vec<&mut [f32]> = squares.chunks_mut(size).collect();
        let mut raised: Vec<&mut [f32]> = powers.chunks_mut(size).collect();
        squared.resize_with(self.n_blocks(), Default::default);
        raised.resize_with(self.n_blocks(), Default::default);
        let tasks = kernel.chunks_mut(size).zip(squared).zip(raised).enumerate().collect();
        each(tasks, threads, |(k, ((kernel, squares), powers))| {
            let first = k * BLOCK;
            if !squares.is_empty() {
                let found = self.squares(first, kernel.len() / n);
                for (out, found) in squares.chunks_exact_mut(n).zip(found.chunks_exact(n - first)) {
                    out[first..].copy_from_slice(found);
                }
            }
            with_vectors(Entries { rows: self, first, kernel, squares, powers });
        });
        PairParts { kernel, squares, powers }
    }

    /// Σ h·|a − b| = Σ_i a_i·Σ_j h_ij − 2·Σ h·min(a, b).
    fn contract(&self, h: &[f32], threads: Threads) -> Vec<f64> {
        let (n, q) = (self.n_rows, self.n_axes);
        let mut of_rows = vec![0.0; n];
        for (j, column) in h.chunks_exact(n).enumerate() {
            let mut own = 0.0;
            for (sum, h) in of_rows[j + 1..].iter_mut().zip(&column[j + 1..]) {
                *sum += f64::from(*h);
                own += f64::from(*h);
            }
            of_rows[j] += own;
        }
        let mut parts: Vec<Vec<f64>> = vec![vec![0.0; q]; self.n_blocks()];
        let tasks = parts.iter_mut().zip(h.chunks((n * BLOCK).max(1))).enumerate().collect();
        each(tasks, threads, |(k, (sums, h))| {
            with_vectors(Sums { rows: self, first: k * BLOCK, h, sums });
        });
        let mut sums = vec![0.0; q];
        for part in &parts {
            sums.iter_mut().zip(part).for_each(|(sum, part)| *sum -= 2.0 * part);
        }
        for (counting, weight) in self.counting.iter().zip(&of_rows) {
            counting.iter().for_each(|(d, x)| sums[*d as usize] += weight * f64::from(*x));
        }
        sums.iter_mut().for_each(|sum| *sum *= std::f64::consts::LN_2);
        sums
    }

    fn metric_weights(&self, h: &mut [f32], parts: &PairParts<f32>, threads: Threads) -> f64 {
        single_metric_weights(h, parts, self.n_rows, self.exponent, self.unit_of_squares, threads)
    }
}

/// Entries of a block of columns, from their first row on; squares are known.
struct Entries<'a> {
    rows: &'a WideSingles,
    first: usize,
    kernel: &'a mut [f32],
    squares: &'a [f32],
    powers: &'a mut [f32],
}

impl WithSimd for Entries<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rows, first, kernel, squares, powers } = self;
        let n = rows.n_rows;
        for block in first / BLOCK..rows.n_blocks() {
            let columns = rows.block(block);
            let range = block * BLOCK..((block + 1) * BLOCK).min(n);
            let mut own = [[0.0; LANES]; VECTORS];
            own.as_flattened_mut()[..range.len()].copy_from_slice(&rows.sums[range.clone()]);
            for j in 0..kernel.len() / n {
                let range = j * n + range.start..j * n + range.end;
                let mut apart = [[0.0; LANES]; VECTORS];
                if let Some(squares) = squares.get(range.clone()) {
                    apart.as_flattened_mut()[..range.len()].copy_from_slice(squares);
                }
                let sum = simd.splat_f32s(rows.sums[first + j]);
                let (mut entries, mut raised) = ([[0.0; LANES]; VECTORS], [[0.0; LANES]; VECTORS]);
                for part in 0..LANES / S::F32_LANES {
                    let common = minima(simd, columns, &rows.counting[first + j], part);
                    for v in 0..VECTORS {
                        let both = simd.add_f32s(part_of::<S>(&own[v], part), sum);
                        let plain = simd.mul_add_f32s(simd.splat_f32s(-2.0), common[v], both);
                        let plain = simd.max_f32s(plain, simd.splat_f32s(0.0));
                        let power = half_powers(simd, part_of::<S>(&apart[v], part), rows.exponent);
                        S::as_mut_simd_f32s(&mut raised[v]).0[part] = power;
                        let entry = powers_minus(simd, simd.add_f32s(plain, power));
                        S::as_mut_simd_f32s(&mut entries[v]).0[part] = entry;
                    }
                }
                kernel[range.clone()].copy_from_slice(&entries.as_flattened()[..range.len()]);
                if let Some(powers) = powers.get_mut(range) {
                    let length = powers.len();
                    powers.copy_from_slice(&raised.as_flattened()[..length]);
                }
            }
        }
    }
}

/// Σ min(a, b) between the rows of a block and another row, over the axes that count.
#[inline(always)]
fn minima<S: Simd>(simd: S, columns: &[Column], counting: &[(u32, f32)], part: usize) -> [S::f32s; VECTORS] {
    let mut sums = [simd.splat_f32s(0.0); VECTORS];
    for (d, x) in counting {
        let (column, x) = (&columns[*d as usize], simd.splat_f32s(*x));
        for v in 0..VECTORS {
            sums[v] = simd.add_f32s(sums[v], simd.min_f32s(part_of::<S>(&column[v], part), x));
        }
    }
    sums
}

/// Σ h·min(a, b) of a block of columns over the rows below the diagonal, for every axis.
struct Sums<'a> {
    rows: &'a WideSingles,
    first: usize,
    h: &'a [f32],
    sums: &'a mut [f64],
}

impl WithSimd for Sums<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rows, first, h, sums } = self;
        let n = rows.n_rows;
        let mut strands = vec![[0.0; LANES]; sums.len()];
        for block in first / BLOCK..rows.n_blocks() {
            let columns = rows.block(block);
            let range = block * BLOCK..((block + 1) * BLOCK).min(n);
            for j in 0..h.len() / n {
                let mut weights = [[0.0; LANES]; VECTORS];
                let from = (first + j + 1).clamp(range.start, range.end);
                weights.as_flattened_mut()[from - range.start..range.len()]
                    .copy_from_slice(&h[j * n..][from..range.end]);
                for part in 0..LANES / S::F32_LANES {
                    let weights: [S::f32s; VECTORS] = std::array::from_fn(|v| part_of::<S>(&weights[v], part));
                    for (d, x) in &rows.counting[first + j] {
                        let (column, x) = (&columns[*d as usize], simd.splat_f32s(*x));
                        let strand = &mut S::as_mut_simd_f32s(&mut strands[*d as usize]).0[part];
                        for v in 0..VECTORS {
                            let common = simd.min_f32s(part_of::<S>(&column[v], part), x);
                            *strand = simd.mul_add_f32s(weights[v], common, *strand);
                        }
                    }
                }
            }
            // Across blocks in double precision.
            for (sum, strand) in sums.iter_mut().zip(&mut strands) {
                *sum += strand.iter().map(|x| f64::from(*x)).sum::<f64>();
                *strand = [0.0; LANES];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laplace::singles::Singles;

    /// Rows of 70 axes, most of them 0 and one negative now and then, and of 20 directions; two rows are equal.
    fn rows(n: usize) -> KernelRows {
        let number = |k: usize| (k as f64 * 0.7391).sin();
        let axis = |k: usize| match k % 70 {
            7 => 0.05 * number(k),
            _ if k % 11 < 3 => 0.05 * number(k).abs(),
            _ => 0.0,
        };
        let mut axes: Vec<f64> = (0..70 * n).map(axis).collect();
        let mut directions: Vec<f64> = (0..20 * n).map(|k| 0.1 * number(k + 17)).collect();
        axes.copy_within(0..70, 70);
        directions.copy_within(0..20, 20);
        KernelRows::of_axes(axes, 70).unwrap().with_directions(directions, 20, 1.3).unwrap()
    }

    #[test]
    fn wide_rows_are_what_all_columns_say() {
        for n in [2, 63, 64, 150] {
            let rows = rows(n);
            let (wide, twin) = (WideSingles::new(&rows), Singles::new(&rows));
            let (found, expected) = (wide.parts(Threads::up_to(2)), twin.parts(Threads::ONE));
            let again = wide.parts(Threads::ONE);
            assert!(found.kernel == again.kernel && found.squares == again.squares && found.powers == again.powers);
            let lower = |k: usize| k % n > k / n;
            for k in (0..n * n).filter(|k| lower(*k)) {
                assert!((found.kernel[k] - expected.kernel[k]).abs() < 2e-6, "{n} {k}");
                assert!((found.squares[k] - expected.squares[k]).abs() < 1e-6, "{n} {k}");
                assert!((found.powers[k] - expected.powers[k]).abs() < 2e-5, "{n} {k}");
            }
            assert_eq!(found.squares[1], 0.0, "equal rows have no distance");
            let h: Vec<f32> = (0..n * n).map(|k| (k as f32 * 0.31).cos()).collect();
            let sums = wide.contract(&h, Threads::up_to(2));
            assert_eq!(sums, wide.contract(&h, Threads::ONE));
            for (a, b) in sums.iter().zip(twin.contract(&h, Threads::ONE)) {
                assert!((a - b).abs() < 1e-4 * n as f64 / 10.0, "{n}: {a} {b}");
            }
            let (mut own, mut other) = (h.clone(), h);
            let a = wide.metric_weights(&mut own, &expected, Threads::ONE);
            assert_eq!(a, twin.metric_weights(&mut other, &expected, Threads::ONE));
            assert_eq!(own, other);
        }
    }
}
