//! Rows of the kernel in tiles, so that every inner loop runs along memory: distances, kernel values, and the sums that
//! derivatives need.

use crate::parallel::prelude::*;

use crate::kernel::exp::exp_minus;
use crate::laplace::KernelRows;
use crate::laplace::power::{log, power};
use crate::linalg::{Matrix, Threads};
use crate::simd::vectorise;

/// Rows of a tile.
pub(crate) const TILE: usize = 128;
/// Columns filled by one task.
const STRIP: usize = 16;

/// Some columns of three matrices.
type Strips<'a> = ((&'a mut [f64], &'a mut [f64]), &'a mut [f64]);

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
        Self { n_rows, n_axes, n_levels, n_directions, exponent, weights, columns, rows: by_row }
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

    /// Distances of one tile's rows from another row: `plain` ← Σ|a − a'| + Σν·1\[c ≠ c'\], `squares` ← ‖b − b'‖².
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]
    fn distances(&self, tile: usize, other: &[f64], plain: &mut [f64], squares: &mut [f64]) {
        let (columns, n) = self.tile(tile);
        let (plain, squares) = (&mut plain[..n], &mut squares[..n]);
        plain.fill(0.0);
        squares.fill(0.0);
        let (axes, rest) = columns.split_at(n * self.n_axes);
        let (codes, directions) = rest.split_at(n * self.n_levels);
        let (other_axes, rest) = other.split_at(self.n_axes);
        let (other_codes, other_directions) = rest.split_at(self.n_levels);
        let (groups, single) = other_axes.as_chunks::<4>();
        for (columns, other) in axes.chunks_exact(4 * n).zip(groups) {
            let (a, rest) = columns.split_at(n);
            let (b, rest) = rest.split_at(n);
            let (c, d) = rest.split_at(n);
            for ((((o, a), b), c), d) in plain.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                *o += ((a - other[0]).abs() + (b - other[1]).abs()) + ((c - other[2]).abs() + (d - other[3]).abs());
            }
        }
        for (column, other) in axes[4 * n * groups.len()..].chunks_exact(n).zip(single) {
            plain.iter_mut().zip(column).for_each(|(o, a)| *o += (a - other).abs());
        }
        for ((column, other), weight) in codes.chunks_exact(n).zip(other_codes).zip(&self.weights) {
            plain.iter_mut().zip(column).for_each(|(o, a)| *o += if a == other { 0.0 } else { *weight });
        }
        let (groups, single) = other_directions.as_chunks::<4>();
        for (columns, other) in directions.chunks_exact(4 * n).zip(groups) {
            let (a, rest) = columns.split_at(n);
            let (b, rest) = rest.split_at(n);
            let (c, d) = rest.split_at(n);
            for ((((o, a), b), c), d) in squares.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                let (a, b, c, d) = (a - other[0], b - other[1], c - other[2], d - other[3]);
                *o += (a * a + b * b) + (c * c + d * d);
            }
        }
        for (column, other) in directions[4 * n * groups.len()..].chunks_exact(n).zip(single) {
            squares.iter_mut().zip(column).for_each(|(o, a)| *o += (a - other) * (a - other));
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
        vectorise(
            #[inline(always)]
            || {
                let mut squares = [0.0; TILE];
                for tile in first / TILE..self.n_tiles() {
                    let n = TILE.min(self.n_rows - tile * TILE);
                    let out = &mut out[tile * TILE..][..n];
                    self.distances(tile, other, out, &mut squares);
                    self.raise(&mut squares[..n]);
                    for (o, r) in out.iter_mut().zip(&squares) {
                        *o = exp_minus(*o + r);
                    }
                }
            },
        );
    }

    /// The lower triangle of the Gram matrix (a little of the upper one too).
    pub(crate) fn gram_lower(&self, threads: Threads) -> Matrix {
        let n = self.n_rows;
        let mut gram = Matrix::zeros(n, n);
        let strip = |(k, strip): (usize, &mut [f64])| {
            for (j, column) in strip.chunks_exact_mut(n).enumerate() {
                let j = k * STRIP + j;
                self.fill_column(self.row(j), j, column);
            }
        };
        let size = (n * STRIP).max(1);
        if threads == Threads::ONE {
            gram.as_mut_slice().chunks_mut(size).enumerate().for_each(strip);
        } else {
            gram.as_mut_slice().par_chunks_mut(size).enumerate().for_each(strip);
        }
        gram
    }

    /// K, squared distances and their powers p/2 in lower triangles; the last two are empty without directions.
    pub(crate) fn parts(&self) -> (Matrix, Matrix, Matrix) {
        self.parts_on(Threads::ONE)
    }

    /// The same on several threads, with the same bits.
    pub(crate) fn parts_on(&self, threads: Threads) -> (Matrix, Matrix, Matrix) {
        let n = self.n_rows;
        let mut kernel = Matrix::zeros(n, n);
        let m = if self.n_directions > 0 { n } else { 0 };
        let (mut squares, mut powers) = (Matrix::zeros(m, m), Matrix::zeros(m, m));
        if m == 0 {
            return (self.gram_lower(threads), squares, powers);
        }
        let size = (n * STRIP).max(1);
        let strip = |(k, ((kernel, squares), powers)): (usize, Strips<'_>)| {
            let columns = kernel.chunks_exact_mut(n).zip(squares.chunks_exact_mut(n)).zip(powers.chunks_exact_mut(n));
            vectorise(
                #[inline(always)]
                || {
                    for (j, ((kernel, squares), powers)) in columns.enumerate() {
                        self.parts_of_column(k * STRIP + j, kernel, squares, powers);
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

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]
    fn parts_of_column(&self, j: usize, kernel: &mut [f64], squares: &mut [f64], powers: &mut [f64]) {
        let n = self.n_rows;
        let mut buffer = [0.0; TILE];
        for tile in j / TILE..self.n_tiles() {
            let range = tile * TILE..tile * TILE + TILE.min(n - tile * TILE);
            let length = range.len();
            let out = &mut kernel[range.clone()];
            self.distances(tile, self.row(j), out, &mut buffer);
            squares[range.clone()].copy_from_slice(&buffer[..length]);
            self.raise(&mut buffer[..length]);
            powers[range].copy_from_slice(&buffer[..length]);
            for (o, r) in out.iter_mut().zip(&buffer) {
                *o = exp_minus(*o + r);
            }
        }
    }

    /// Σ_{i>j} h_ij·|a_id − a_jd| for every axis d, then Σ h_ij·ν·1\[c ≠ c'\] for every categorical term. `h` is read below
    /// the diagonal.
    pub(crate) fn contract(&self, h: &Matrix) -> Vec<f64> {
        self.contract_on(h, Threads::ONE)
    }

    /// The same on several threads, with the same bits.
    pub(crate) fn contract_on(&self, h: &Matrix, threads: Threads) -> Vec<f64> {
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
    fn contract_tile(&self, h: &Matrix, tile: usize) -> Vec<f64> {
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
                    weights[from - start..length].copy_from_slice(&h.column(j + k)[from..end]);
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

/// Σ_{i>j} h_ij·|a_id − a_jd| for every axis d, then Σ h_ij·ν·1\[c ≠ c'\] for every categorical term: the sums that the
/// derivatives of a kernel need. `h` is read below the diagonal.
pub fn contract(rows: &KernelRows, h: &Matrix) -> Vec<f64> {
    Tiles::new(rows).contract(h)
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

/// h ← h∘r/s (0 where s is 0) below the diagonal, and Σ_{i>j} h·r·ln s of what h was: what derivatives of the metric and of
/// its exponent need.
pub(crate) fn metric_weights(h: &mut Matrix, squares: &Matrix, powers: &Matrix) -> f64 {
    let n = h.n_rows();
    let mut total = 0.0;
    vectorise(
        #[inline(always)]
        || {
            for j in 0..n {
                let column = &mut h.column_mut(j)[j + 1..];
                let (squares, powers) = (&squares.column(j)[j + 1..], &powers.column(j)[j + 1..]);
                let mut strands = [0.0; 8];
                for (k, ((h, s), r)) in column.iter_mut().zip(squares).zip(powers).enumerate() {
                    let safe = s.max(f64::MIN_POSITIVE);
                    let product = *h * r;
                    strands[k % 8] += product * log(safe);
                    *h = if *s < f64::MIN_POSITIVE { 0.0 } else { product / safe };
                }
                total += strands.iter().sum::<f64>();
            }
        },
    );
    total
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
            let found = Tiles::new(&rows).contract_on(&h, Threads::up_to(2));
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
