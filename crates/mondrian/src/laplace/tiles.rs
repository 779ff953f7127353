//! Rows of the kernel in tiles, so that every inner loop runs along memory: distances, kernel values, and the sums that
//! derivatives need.

use crate::parallel::prelude::*;

use crate::kernel::exp::exp_minus;
use crate::laplace::KernelRows;
use crate::laplace::power::{log, power};
use crate::laplace::wide::{AxisSums, Lengths};
use crate::linalg::{Into, Matrix, Real, Threads, gemm};
use crate::simd::vectorise;

/// Rows of a tile.
pub(crate) const TILE: usize = 128;
/// Columns filled by one task.
const STRIP: usize = 16;
/// Columns of a tile that all rows of a task look at before they go on: 32 KB. A multiple of four.
const COLUMNS: usize = 32;
/// Sums of a product, each of every so many-th tile.
const GROUPS: usize = 4;

/// Some columns of three matrices.
type Strips<'a> = ((&'a mut [f64], &'a mut [f64]), &'a mut [f64]);

/// A batch of rows: its kernel entries and the sums over pairs of rows that derivatives need. Matrices are square, column after
/// column, and only their lower triangles count.
pub(crate) trait Pairs: Sized + Sync {
    /// What entries are.
    type Number: Real;

    fn new(rows: &KernelRows) -> Self;

    /// The entries; the same bits for any number of threads, as everything here.
    fn parts(&self, threads: Threads) -> PairParts<Self::Number>;

    /// Σ_{i>j} h_ij·|a_id − a_jd| for every axis d, then Σ h_ij·ν·1\[c ≠ c'\] for every categorical term.
    fn contract(&self, h: &[Self::Number], threads: Threads) -> Vec<f64>;

    /// h ← h∘r/s (0 where s is 0) below the diagonal, and Σ_{i>j} h·r·ln s of what h was: what derivatives of the metric and of
    /// its exponent need.
    fn metric_weights(&self, h: &mut [Self::Number], parts: &PairParts<Self::Number>, threads: Threads) -> f64;
}

/// K, squared distances s along directions and their powers r = s^(p/2); the last two are empty without directions.
///
/// The units of s and r are those of who made them.
pub(crate) struct PairParts<T> {
    pub(crate) kernel: Vec<T>,
    pub(crate) squares: Vec<T>,
    pub(crate) powers: Vec<T>,
}

impl Pairs for Tiles {
    type Number = f64;

    fn new(rows: &KernelRows) -> Self {
        Tiles::new(rows)
    }

    fn parts(&self, threads: Threads) -> PairParts<f64> {
        let (kernel, squares, powers) = self.parts_on(threads);
        PairParts { kernel: kernel.into_vec(), squares: squares.into_vec(), powers: powers.into_vec() }
    }

    fn contract(&self, h: &[f64], threads: Threads) -> Vec<f64> {
        self.contract_on(h, threads)
    }

    fn metric_weights(&self, h: &mut [f64], parts: &PairParts<f64>, threads: Threads) -> f64 {
        metric_weights(h, self.n_rows, &parts.squares, &parts.powers, threads)
    }
}

/// Rows in tiles, within a tile column by column, and once more row by row.
#[derive(Debug)]
pub(crate) struct Tiles {
    n_rows: usize,
    n_axes: usize,
    n_levels: usize,
    n_directions: usize,
    exponent: f64,
    weights: Vec<f64>,
    /// Tile by tile, the columns of axes, then codes, then directions.
    columns: Vec<f64>,
    /// Row by row the same numbers.
    rows: Vec<f64>,
    /// What makes distances of many columns quicker.
    axis_sums: Option<AxisSums>,
    lengths: Option<Lengths>,
}

impl Tiles {
    pub(crate) fn new(rows: &KernelRows) -> Self {
        let n_rows = rows.n_rows();
        let (n_axes, n_levels, n_directions) = (rows.n_axes(), rows.n_levels(), rows.n_directions());
        let width = n_axes + n_levels + n_directions;
        let mut by_row = Vec::with_capacity(n_rows * width);
        for i in 0..n_rows {
            by_row.extend_from_slice(&rows.axes()[i * n_axes..][..n_axes]);
            by_row.extend(rows.levels()[i * n_levels..][..n_levels].iter().map(|code| f64::from(*code)));
            by_row.extend_from_slice(&rows.directions()[i * n_directions..][..n_directions]);
        }
        let mut columns = Vec::with_capacity(n_rows * width);
        for first in (0..n_rows).step_by(TILE) {
            let tile = first..(first + TILE).min(n_rows);
            for d in 0..width {
                columns.extend(tile.clone().map(|i| by_row[i * width + d]));
            }
        }
        let (exponent, weights) = (rows.exponent(), rows.level_weights().to_vec());
        let (axis_sums, lengths) = (AxisSums::of(rows), Lengths::of(rows));
        Self { n_rows, n_axes, n_levels, n_directions, exponent, weights, columns, rows: by_row, axis_sums, lengths }
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.n_rows
    }

    fn width(&self) -> usize {
        self.n_axes + self.n_levels + self.n_directions
    }

    pub(crate) fn row(&self, i: usize) -> &[f64] {
        &self.rows[i * self.width()..][..self.width()]
    }

    fn n_tiles(&self) -> usize {
        self.n_rows.div_ceil(TILE)
    }

    /// The columns of one tile, and how many rows it has.
    fn tile(&self, tile: usize) -> (&[f64], usize) {
        let n = TILE.min(self.n_rows - tile * TILE);
        (&self.columns[tile * TILE * self.width()..][..n * self.width()], n)
    }

    /// Distances of one tile's rows from other rows, a tile's length for each: `plain` ← Σ|a − a'| + Σν·1\[c ≠ c'\],
    /// `squares` ← ‖b − b'‖². Some columns at a time, so that they stay in the cache while all others look at them; the order of
    /// the sums does not depend on it.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]
    fn distances(&self, tile: usize, others: &[&[f64]], plain: &mut [[f64; TILE]], squares: &mut [[f64; TILE]]) {
        let (columns, n) = self.tile(tile);
        for (plain, squares) in plain.iter_mut().zip(&mut *squares).take(others.len()) {
            plain.fill(0.0);
            squares.fill(0.0);
        }
        let (axes, rest) = columns.split_at(n * self.n_axes);
        let (codes, directions) = rest.split_at(n * self.n_levels);
        let (first_code, first_direction) = (self.n_axes, self.n_axes + self.n_levels);
        if let Some(sums) = &self.axis_sums {
            for (other, plain) in others.iter().zip(&mut *plain) {
                sums.distances(axes, tile * TILE, &other[..first_code], &mut plain[..n]);
            }
        } else {
            for (c, columns) in axes.chunks(COLUMNS * n).enumerate() {
                for (other, plain) in others.iter().zip(&mut *plain) {
                    add_terms(columns, n, &other[c * COLUMNS..first_code], &mut plain[..n], f64::abs);
                }
            }
        }
        for (other, plain) in others.iter().zip(&mut *plain) {
            let codes = codes.chunks_exact(n).zip(&other[first_code..first_direction]).zip(&self.weights);
            for ((column, other), weight) in codes {
                plain.iter_mut().zip(column).for_each(|(o, a)| *o += if a == other { 0.0 } else { *weight });
            }
        }
        if let Some(lengths) = &self.lengths {
            let others: Vec<&[f64]> = others.iter().map(|other| &other[first_direction..]).collect();
            return lengths.distances(directions, tile * TILE, &others, squares);
        }
        for (c, columns) in directions.chunks(COLUMNS * n).enumerate() {
            for (other, squares) in others.iter().zip(&mut *squares) {
                add_terms(columns, n, &other[first_direction + c * COLUMNS..], &mut squares[..n], |u| u * u);
            }
        }
    }

    /// `squares` ← their power p/2.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]
    fn raise(&self, squares: &mut [f64]) {
        if self.n_directions == 0 || self.exponent == 2.0 {
            return;
        }
        let half = 0.5 * self.exponent;
        // Plain loops: a closure is compiled on its own, without the caller's instructions.
        if half == 0.5 {
            for s in squares {
                *s = s.sqrt();
            }
        } else {
            for s in squares {
                *s = power(*s, half);
            }
        }
    }

    /// Kernel values of all rows from the tile of row `first` on against one other row.
    pub(crate) fn fill_column(&self, other: &[f64], first: usize, out: &mut [f64]) {
        self.fill_columns(&[other], first, out);
    }

    /// Kernel values of all rows from the tile of row `first` on against some other rows, one column of as many numbers as
    /// there are rows for each. A tile is looked at by all of them while it is in the cache.
    pub(crate) fn fill_columns(&self, others: &[&[f64]], first: usize, out: &mut [f64]) {
        vectorise(
            #[inline(always)]
            || {
                let together = self.strip();
                let mut plain = vec![[0.0; TILE]; together.min(others.len())];
                let mut squares = plain.clone();
                for tile in first / TILE..self.n_tiles() {
                    let n = TILE.min(self.n_rows - tile * TILE);
                    for (k, others) in others.chunks(together).enumerate() {
                        self.distances(tile, others, &mut plain, &mut squares);
                        for (j, (plain, squares)) in plain.iter().zip(&mut squares).enumerate().take(others.len()) {
                            self.raise(&mut squares[..n]);
                            let out = &mut out[(k * together + j) * self.n_rows + tile * TILE..][..n];
                            for ((o, d), r) in out.iter_mut().zip(plain).zip(&*squares) {
                                *o = exp_minus(*d + r);
                            }
                        }
                    }
                }
            },
        );
    }

    /// Columns filled by one task: more where distances are a matrix product, whose factors are packed once per task.
    fn strip(&self) -> usize {
        if self.lengths.is_some() { TILE } else { STRIP }
    }

    /// Some rows, one after the other.
    pub(crate) fn rows_of(&self, range: std::ops::Range<usize>) -> Vec<&[f64]> {
        range.map(|i| self.row(i)).collect()
    }

    /// The lower triangle of the Gram matrix (a little of the upper one too).
    pub(crate) fn gram_lower(&self, threads: Threads) -> Matrix {
        let n = self.n_rows;
        let mut gram = Matrix::zeros(n, n);
        let strip = |(k, strip): (usize, &mut [f64])| {
            let first = k * self.strip();
            self.fill_columns(&self.rows_of(first..first + strip.len() / n), first, strip);
        };
        let size = (n * self.strip()).max(1);
        if threads == Threads::ONE {
            gram.as_mut_slice().chunks_mut(size).enumerate().for_each(strip);
        } else {
            gram.as_mut_slice().par_chunks_mut(size).enumerate().for_each(strip);
        }
        gram
    }

    /// The same in single precision, column after column.
    pub(crate) fn gram_lower_single(&self, threads: Threads) -> Vec<f32> {
        let n = self.n_rows;
        let mut gram = vec![0.0; n * n];
        let strip = |(k, strip): (usize, &mut [f32])| {
            let first = k * self.strip();
            let mut columns = vec![0.0; strip.len()];
            self.fill_columns(&self.rows_of(first..first + strip.len() / n), first, &mut columns);
            for (out, x) in strip.chunks_exact_mut(n).zip(columns.chunks_exact(n)) {
                out[first..].iter_mut().zip(&x[first..]).for_each(|(out, x)| *out = *x as f32);
            }
        };
        let size = (n * self.strip()).max(1);
        if threads == Threads::ONE {
            gram.chunks_mut(size).enumerate().for_each(strip);
        } else {
            gram.par_chunks_mut(size).enumerate().for_each(strip);
        }
        gram
    }

    /// K·x, entries made on the fly and each used twice. Sums are added up in the order of the groups, whichever thread made
    /// them.
    pub(crate) fn product(&self, x: &Matrix, threads: Threads) -> Matrix {
        let group = |g: usize| {
            let mut sum = Matrix::zeros(self.n_rows, x.n_columns());
            (g..self.n_tiles()).step_by(GROUPS).for_each(|tile| self.add_product(tile, x, &mut sum));
            sum
        };
        let sums: Vec<Matrix> = if threads == Threads::ONE {
            (0..GROUPS).map(group).collect()
        } else {
            (0..GROUPS).into_par_iter().map(group).collect()
        };
        let mut out = Matrix::zeros(self.n_rows, x.n_columns());
        for sum in &sums {
            out.as_mut_slice().iter_mut().zip(sum.as_slice()).for_each(|(o, s)| *o += s);
        }
        out
    }

    /// Adds what the columns of one tile, from its own rows on, and those below them as rows, contribute to K·x.
    fn add_product(&self, tile: usize, x: &Matrix, sum: &mut Matrix) {
        let (n, c, start) = (self.n_rows, x.n_columns(), tile * TILE);
        let width = TILE.min(n - start);
        let mut columns = Matrix::zeros(n, width);
        for (k, strip) in columns.as_mut_slice().chunks_mut(n * self.strip()).enumerate() {
            let first = start + k * self.strip();
            self.fill_columns(&self.rows_of(first..first + strip.len() / n), start, strip);
        }
        let part = |rows: std::ops::Range<usize>| Matrix::from_fn(rows.len(), c, |i, k| x[(rows.start + i, k)]);
        let below = start + width..n;
        let mut down = Matrix::zeros(n - start, c);
        gemm(
            1.0,
            columns.view().rows_from(start),
            &part(start..below.start),
            Into::Replace,
            down.view_mut(),
            Threads::ONE,
        );
        let mut across = Matrix::zeros(width, c);
        if !below.is_empty() {
            let rows = columns.view().rows_from(below.start).t();
            gemm(1.0, rows, &part(below), Into::Replace, across.view_mut(), Threads::ONE);
        }
        for k in 0..c {
            let out = &mut sum.column_mut(k)[start..];
            out.iter_mut().zip(down.column(k)).for_each(|(o, d)| *o += d);
            out.iter_mut().zip(across.column(k)).for_each(|(o, a)| *o += a);
        }
    }

    /// K, squared distances and their powers p/2 in lower triangles; the last two are empty without directions. The same bits
    /// for any number of threads.
    fn parts_on(&self, threads: Threads) -> (Matrix, Matrix, Matrix) {
        let n = self.n_rows;
        let mut kernel = Matrix::zeros(n, n);
        let m = if self.n_directions > 0 { n } else { 0 };
        let (mut squares, mut powers) = (Matrix::zeros(m, m), Matrix::zeros(m, m));
        if m == 0 {
            return (self.gram_lower(threads), squares, powers);
        }
        let size = (n * STRIP).max(1);
        let strip = |(k, ((kernel, squares), powers)): (usize, Strips<'_>)| {
            vectorise(
                #[inline(always)]
                || {
                    let mut plain = vec![[0.0; TILE]; STRIP];
                    let mut square = plain.clone();
                    let others = self.rows_of(k * STRIP..k * STRIP + kernel.len() / n);
                    for tile in k * STRIP / TILE..self.n_tiles() {
                        self.distances(tile, &others, &mut plain, &mut square);
                        let length = TILE.min(n - tile * TILE);
                        for (j, (plain, square)) in plain.iter().zip(&mut square).enumerate().take(others.len()) {
                            let range = j * n + tile * TILE..j * n + tile * TILE + length;
                            squares[range.clone()].copy_from_slice(&square[..length]);
                            self.raise(&mut square[..length]);
                            powers[range.clone()].copy_from_slice(&square[..length]);
                            for ((o, d), r) in kernel[range].iter_mut().zip(plain).zip(&*square) {
                                *o = exp_minus(*d + r);
                            }
                        }
                    }
                },
            );
        };
        let (kernels, squared, raised) = (kernel.as_mut_slice(), squares.as_mut_slice(), powers.as_mut_slice());
        if threads == Threads::ONE {
            let all = kernels.chunks_mut(size).zip(squared.chunks_mut(size)).zip(raised.chunks_mut(size));
            all.enumerate().for_each(strip);
        } else {
            let all = kernels.par_chunks_mut(size).zip(squared.par_chunks_mut(size)).zip(raised.par_chunks_mut(size));
            all.enumerate().for_each(strip);
        }
        (kernel, squares, powers)
    }

    /// [`Pairs::contract`].
    fn contract_on(&self, h: &[f64], threads: Threads) -> Vec<f64> {
        let one = |tile: usize| {
            vectorise(
                #[inline(always)]
                || self.contract_tile(h, tile),
            )
        };
        let parts: Vec<Vec<f64>> = if threads == Threads::ONE {
            (0..self.n_tiles()).map(one).collect()
        } else {
            (0..self.n_tiles()).into_par_iter().map(one).collect()
        };
        let mut sums = vec![0.0; self.n_axes + self.n_levels];
        // In the order of the tiles, whichever thread made them.
        for part in &parts {
            sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
        sums
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]
    fn contract_tile(&self, h: &[f64], tile: usize) -> Vec<f64> {
        let n = self.n_rows;
        let mut sums = vec![0.0; self.n_axes + self.n_levels];
        let (columns, length) = self.tile(tile);
        let start = tile * TILE;
        let end = start + length;
        // Four columns of h at a time share the loads of the tile.
        for j in (0..end).step_by(4) {
            let count = (end - j).min(4);
            let mut weights = [[0.0; TILE]; 4];
            for (k, weights) in weights.iter_mut().enumerate().take(count) {
                let from = start.max(j + k + 1);
                if from < end {
                    weights[from - start..length].copy_from_slice(&h[(j + k) * n..][from..end]);
                }
            }
            // The last rows may be fewer than four: their weights are zero, so any row does.
            let rows = [0, 1, 2, 3].map(|k| self.row((j + k).min(n - 1)));
            for (d, column) in columns.chunks_exact(length).take(self.n_axes).enumerate() {
                sums[d] += four_distances(column, &weights, rows.map(|row| row[d]));
            }
            for (c, weight) in self.weights.iter().enumerate() {
                let d = self.n_axes + c;
                let column = &columns[d * length..][..length];
                let apart = (0..4).map(|k| {
                    let pairs = column.iter().zip(&weights[k]);
                    pairs.map(|(a, w)| if *a == rows[k][d] { 0.0 } else { *w }).sum::<f64>()
                });
                sums[d] += weight * apart.sum::<f64>();
            }
        }
        sums
    }
}

/// Adds f(a − a') along columns of n numbers each to `out`, four columns at a time.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]
fn add_terms(columns: &[f64], n: usize, other: &[f64], out: &mut [f64], f: impl Fn(f64) -> f64) {
    let (groups, single) = other[..columns.len() / n].as_chunks::<4>();
    for (columns, other) in columns.chunks_exact(4 * n).zip(groups) {
        let (a, rest) = columns.split_at(n);
        let (b, rest) = rest.split_at(n);
        let (c, d) = rest.split_at(n);
        for ((((o, a), b), c), d) in out.iter_mut().zip(a).zip(b).zip(c).zip(d) {
            *o += (f(a - other[0]) + f(b - other[1])) + (f(c - other[2]) + f(d - other[3]));
        }
    }
    for (column, other) in columns[4 * n * groups.len()..].chunks_exact(n).zip(single) {
        out.iter_mut().zip(column).for_each(|(o, a)| *o += f(a - other));
    }
}

/// Σ_{i>j} h_ij·|a_id − a_jd| for every axis d, then Σ h_ij·ν·1\[c ≠ c'\] for every categorical term: the sums that the
/// derivatives of a kernel need. `h` is read below the diagonal.
pub fn contract(rows: &KernelRows, h: &Matrix) -> Vec<f64> {
    Tiles::new(rows).contract_on(h.as_slice(), Threads::ONE)
}

/// Σ_k Σ_i w_ki·|x_i − y_k| in strands of fixed shape.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]
fn four_distances(x: &[f64], weights: &[[f64; TILE]; 4], y: [f64; 4]) -> f64 {
    let mut strands = [[0.0; 8]; 4];
    let (chunks, rest) = x.as_chunks::<8>();
    let w0 = weights[0].as_chunks::<8>().0;
    let w1 = weights[1].as_chunks::<8>().0;
    let w2 = weights[2].as_chunks::<8>().0;
    let w3 = weights[3].as_chunks::<8>().0;
    for (((((x, a), b), c), d), _) in chunks.iter().zip(w0).zip(w1).zip(w2).zip(w3).zip(0..) {
        for i in 0..8 {
            strands[0][i] += a[i] * (x[i] - y[0]).abs();
            strands[1][i] += b[i] * (x[i] - y[1]).abs();
            strands[2][i] += c[i] * (x[i] - y[2]).abs();
            strands[3][i] += d[i] * (x[i] - y[3]).abs();
        }
    }
    let done = 8 * chunks.len();
    let mut sum = 0.0;
    for k in 0..4 {
        sum += strands[k].iter().sum::<f64>();
        sum += rest.iter().zip(&weights[k][done..]).map(|(x, w)| w * (x - y[k]).abs()).sum::<f64>();
    }
    sum
}

/// [`Pairs::metric_weights`].
fn metric_weights(h: &mut [f64], n: usize, squares: &[f64], powers: &[f64], threads: Threads) -> f64 {
    let mut sums = vec![0.0; n.div_ceil(STRIP)];
    let strip = |(first, (strip, sum)): (usize, (&mut [f64], &mut f64))| {
        vectorise(
            #[inline(always)]
            || {
                for (j, column) in strip.chunks_exact_mut(n).enumerate() {
                    let below = first * STRIP + j + 1;
                    *sum += column_weights(
                        &mut column[below..],
                        &squares[(below - 1) * n..][below..n],
                        &powers[(below - 1) * n..][below..n],
                    );
                }
            },
        );
    };
    let parts = h.chunks_mut((n * STRIP).max(1)).zip(&mut sums).enumerate();
    if threads == Threads::ONE {
        parts.for_each(strip);
    } else {
        parts.collect::<Vec<_>>().into_par_iter().for_each(strip);
    }
    sums.iter().sum()
}

/// One column of [`metric_weights`], in eight strands of fixed shape.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]
fn column_weights(h: &mut [f64], squares: &[f64], powers: &[f64]) -> f64 {
    let mut strands = [0.0; 8];
    let (groups, rest) = h.as_chunks_mut::<8>();
    let ((s_groups, s_rest), (r_groups, r_rest)) = (squares.as_chunks::<8>(), powers.as_chunks::<8>());
    for ((h, s), r) in groups.iter_mut().zip(s_groups).zip(r_groups) {
        for k in 0..8 {
            let (weight, part) = weight(h[k], s[k], r[k]);
            h[k] = weight;
            strands[k] += part;
        }
    }
    for ((h, s), r) in rest.iter_mut().zip(s_rest).zip(r_rest) {
        let (weight, part) = weight(*h, *s, *r);
        *h = weight;
        strands[0] += part;
    }
    strands.iter().sum()
}

/// h·r/s (0 where s is 0) and h·r·ln s.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]
fn weight(h: f64, s: f64, r: f64) -> (f64, f64) {
    let (safe, product) = (s.max(f64::MIN_POSITIVE), h * r);
    (if s < f64::MIN_POSITIVE { 0.0 } else { product / safe }, product * log(safe))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(n: usize) -> KernelRows {
        let number = |k: usize| (k as f64 * 0.7391).sin();
        let rows = KernelRows::of_axes((0..5 * n).map(number).collect(), 5).unwrap();
        let codes = (0..2 * n as u32).map(|k| k * 7 % 3).collect();
        let rows = rows.with_levels(codes, vec![0.3, 0.7]).unwrap();
        rows.with_directions((0..6 * n).map(|k| number(k + 17)).collect(), 6, 1.3).unwrap()
    }

    #[test]
    fn entries_are_the_definition() {
        for n in [1, 5, 127, 128, 129, 300] {
            let rows = rows(n);
            let tiles = Tiles::new(&rows);
            for threads in [Threads::ONE, Threads::up_to(2)] {
                let gram = tiles.gram_lower(threads);
                assert!((0..n).all(|j| (j..n).all(|i| (gram[(i, j)] - rows.entry(i, j)).abs() < 1e-14)));
            }
            let single = tiles.gram_lower_single(Threads::up_to(2));
            let x = Matrix::from_fn(n, 2, |i, c| ((i + 3 * c) as f64).sin());
            let product = tiles.product(&x, Threads::ONE);
            assert_eq!(product, tiles.product(&x, Threads::up_to(2)));
            for i in 0..n {
                assert!((0..=i).all(|j| (f64::from(single[j * n + i]) - rows.entry(i, j)).abs() < 1e-7));
                let slow = |c: usize| (0..n).map(|j| rows.entry(i, j) * x[(j, c)]).sum::<f64>();
                assert!((0..2).all(|c| (product[(i, c)] - slow(c)).abs() < 1e-12));
            }
            let (kernel, squares, powers) = tiles.parts_on(Threads::up_to(2));
            assert_eq!(kernel, tiles.gram_lower(Threads::ONE));
            assert!((0..n).all(|j| (j..n).all(|i| (powers[(i, j)] - squares[(i, j)].powf(0.65)).abs() < 1e-13)));
        }
    }

    #[test]
    fn contractions_are_the_double_sum() {
        for n in [2, 6, 130, 257] {
            let rows = rows(n);
            let h = Matrix::from_fn(n, n, |i, j| ((i * 31 + j * 17) as f64).cos());
            let found = Tiles::new(&rows).contract_on(h.as_slice(), Threads::up_to(2));
            for (d, found) in found.iter().enumerate() {
                let mut slow = 0.0;
                for j in 0..n {
                    for i in j + 1..n {
                        let apart = if d < 5 {
                            (rows.axes()[i * 5 + d] - rows.axes()[j * 5 + d]).abs()
                        } else {
                            let code = |row: usize| rows.levels()[row * 2 + d - 5];
                            if code(i) == code(j) { 0.0 } else { [0.3, 0.7][d - 5] }
                        };
                        slow += h[(i, j)] * apart;
                    }
                }
                assert!((found - slow).abs() < 1e-10, "{n} {d}: {found} {slow}");
            }
        }
    }
}
