//! Kernel entries made on the fly: tiles in single precision, products with sums in double precision across tiles.
//!
//! Vectors are named through `simd`, so that the compiler cannot miss them; which multiplications and additions are fused is
//! written down, so the bits are the same everywhere. Which tiles are summed in which order depends on the number of rows
//! alone, so they are the same for any number of threads, too.
#![expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]

use std::sync::{Mutex, PoisonError};

use crate::parallel::prelude::*;

use crate::laplace::KernelRows;
use crate::laplace::elementary::{FAR, half_powers, powers_minus};
use crate::laplace::packed::{BLOCK, GROUPS, LANES, Lanes, PackedRows, Shape};
use crate::linalg::{Matrix, Threads};
use crate::simd::{Simd, WithSimd, with_vectors};
use crate::{Error, Result};

/// Rows that pass over a block together.
pub(crate) const AT_ONCE: usize = 4;

/// One of the vectors that the lanes are.
#[inline(always)]
pub(super) fn part_of<S: Simd>(lanes: &Lanes, part: usize) -> S::f32s {
    S::as_simd_f32s(lanes).0[part]
}

/// Distances between `N` rows, column by column, and the rows of one vector of a group, along axes and categories; and squared
/// ones along directions.
#[inline(always)]
pub(super) fn both_distances<S: Simd, const N: usize>(
    simd: S,
    shape: &Shape,
    group: &[Lanes],
    part: usize,
    rows: &[[f32; N]],
) -> ([S::f32s; N], [S::f32s; N]) {
    let (q, c) = (shape.n_axes, shape.level_weights.len());
    let mut sums = [simd.splat_f32s(0.0); N];
    for (lanes, values) in group[..q].iter().zip(&rows[..q]) {
        let x = part_of::<S>(lanes, part);
        for g in 0..N {
            let apart = simd.abs_f32s(simd.sub_f32s(x, simd.splat_f32s(values[g])));
            sums[g] = simd.add_f32s(sums[g], apart);
        }
    }
    for ((lanes, values), weight) in group[q..q + c].iter().zip(&rows[q..q + c]).zip(&shape.level_weights) {
        let x = part_of::<S>(lanes, part);
        for g in 0..N {
            let is_same = simd.equal_f32s(x, simd.splat_f32s(values[g]));
            let apart = simd.select_f32s(is_same, simd.splat_f32s(0.0), simd.splat_f32s(*weight));
            sums[g] = simd.add_f32s(sums[g], apart);
        }
    }
    let mut squares = [simd.splat_f32s(0.0); N];
    for (lanes, values) in group[q + c..].iter().zip(&rows[q + c..]) {
        let x = part_of::<S>(lanes, part);
        for g in 0..N {
            let apart = simd.sub_f32s(x, simd.splat_f32s(values[g]));
            squares[g] = simd.mul_add_f32s(apart, apart, squares[g]);
        }
    }
    (sums, squares)
}

/// Distances between `N` rows, column by column, and the rows of one vector of a group.
#[inline(always)]
fn distances<S: Simd, const N: usize>(
    simd: S,
    shape: &Shape,
    group: &[Lanes],
    part: usize,
    rows: &[[f32; N]],
) -> [S::f32s; N] {
    let (mut sums, squares) = both_distances(simd, shape, group, part, rows);
    if shape.n_directions > 0 {
        for g in 0..N {
            sums[g] = simd.add_f32s(sums[g], half_powers(simd, squares[g], shape.exponent));
        }
    }
    sums
}

/// How far a row is outside boxes in column k.
#[inline(always)]
fn outside<S: Simd>(simd: S, corners: (&[Lanes], &[Lanes]), k: usize, part: usize, row: &[[f32; 1]]) -> S::f32s {
    let x = simd.splat_f32s(row[k][0]);
    let below = simd.sub_f32s(part_of::<S>(&corners.0[k], part), x);
    let above = simd.sub_f32s(x, part_of::<S>(&corners.1[k], part));
    simd.max_f32s(simd.max_f32s(below, above), simd.splat_f32s(0.0))
}

/// A lower bound of the distances between a row and the rows of boxes, in the order of operations of [`distances`]:
/// rounding keeps order, so that no rounded distance is below its rounded bound. Only p other than 1 and 2 goes through a
/// polynomial, and gets a margin.
#[inline(always)]
fn bounds<S: Simd>(
    simd: S,
    shape: &Shape,
    (lower, upper): (&[Lanes], &[Lanes]),
    part: usize,
    row: &[[f32; 1]],
) -> S::f32s {
    let (q, c) = (shape.n_axes, shape.level_weights.len());
    let zero = simd.splat_f32s(0.0);
    let mut sum = zero;
    for k in 0..q {
        sum = simd.add_f32s(sum, outside(simd, (lower, upper), k, part, row));
    }
    for k in q..q + c {
        let is_out = simd.less_than_f32s(zero, outside(simd, (lower, upper), k, part, row));
        let apart = simd.select_f32s(is_out, simd.splat_f32s(shape.level_weights[k - q]), zero);
        sum = simd.add_f32s(sum, apart);
    }
    if shape.n_directions > 0 {
        let mut squares = zero;
        for k in q + c..lower.len() {
            let apart = outside(simd, (lower, upper), k, part, row);
            squares = simd.mul_add_f32s(apart, apart, squares);
        }
        let exact = shape.exponent == 1.0 || shape.exponent == 2.0;
        let margin = simd.splat_f32s(if exact { 1.0 } else { 1.0 - 1e-5 });
        sum = simd.add_f32s(sum, simd.mul_f32s(margin, half_powers(simd, squares, shape.exponent)));
    }
    sum
}

/// Distances between one row and the rows of a block.
pub(crate) struct BlockDistances<'a> {
    pub(crate) packed: &'a PackedRows,
    pub(crate) block: usize,
    pub(crate) row: &'a [[f32; 1]],
    pub(crate) out: &'a mut [Lanes; GROUPS],
}

impl WithSimd for BlockDistances<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let shape = &self.packed.shape;
        for (group, out) in self.packed.block(self.block).chunks_exact(shape.width()).zip(self.out) {
            for (part, out) in S::as_mut_simd_f32s(out).0.iter_mut().enumerate() {
                let [found] = distances(simd, shape, group, part, self.row);
                *out = found;
            }
        }
    }
}

/// Lower bounds of the distances between one row and the rows of every block, those of absent blocks last.
pub(crate) struct BlockBounds<'a> {
    pub(crate) packed: &'a PackedRows,
    pub(crate) row: &'a [[f32; 1]],
    pub(crate) out: &'a mut Vec<Lanes>,
}

impl WithSimd for BlockBounds<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (shape, width) = (&self.packed.shape, self.packed.shape.width());
        self.out.resize(self.packed.n_blocks().div_ceil(LANES), [0.0; LANES]);
        let corners = self.packed.lower.chunks_exact(width).zip(self.packed.upper.chunks_exact(width));
        for (corners, out) in corners.zip(self.out) {
            for (part, out) in S::as_mut_simd_f32s(out).0.iter_mut().enumerate() {
                *out = bounds(simd, shape, corners, part, self.row);
            }
        }
    }
}

/// The rows of a block, [`AT_ONCE`] at a time, column by column: one array per row of four and column.
fn row_quads(packed: &PackedRows, block: usize) -> Vec<[f32; AT_ONCE]> {
    let width = packed.shape.width();
    let quads = packed.rows_of_block(block).div_ceil(AT_ONCE);
    let mut out = Vec::with_capacity(quads * width);
    for quad in 0..quads {
        let (group, lane) = (quad * AT_ONCE / LANES, quad * AT_ONCE % LANES);
        for lanes in &packed.block(block)[group * width..][..width] {
            out.push(std::array::from_fn(|g| lanes[lane + g]));
        }
    }
    out
}

/// Entries between four rows and a block.
#[inline(always)]
fn strip<S: Simd>(simd: S, shape: &Shape, block: &[Lanes], quad: &[[f32; AT_ONCE]], out: &mut Strip) {
    for (group, out) in block.chunks_exact(shape.width()).zip(out) {
        for part in 0..LANES / S::F32_LANES {
            let found = distances(simd, shape, group, part, quad);
            for (out, d) in out.iter_mut().zip(found) {
                S::as_mut_simd_f32s(out).0[part] = powers_minus(simd, d);
            }
        }
    }
}

/// Entries between [`AT_ONCE`] rows and those of a block.
type Strip = [[Lanes; AT_ONCE]; GROUPS];

/// Several vectors with one number per row, in single precision and in the order of the blocks.
struct PackedVectors {
    columns: Vec<Lanes>,
    n_vectors: usize,
}

impl PackedVectors {
    /// Of block b, vector v has the groups from (b·n_vectors + v)·[`GROUPS`] on.
    fn new(packed: &PackedRows, vectors: &Matrix) -> Self {
        let n_vectors = vectors.n_columns();
        let mut columns = vec![[0.0; LANES]; packed.n_blocks() * n_vectors * GROUPS];
        for (b, numbers) in packed.order().chunks(BLOCK).enumerate() {
            for v in 0..n_vectors {
                let column = vectors.column(v);
                let groups = &mut columns[(b * n_vectors + v) * GROUPS..][..GROUPS];
                for (i, &number) in numbers.iter().enumerate() {
                    groups[i / LANES][i % LANES] = column[number as usize] as f32;
                }
            }
        }
        Self { columns, n_vectors }
    }

    fn block(&self, b: usize) -> &[Lanes] {
        let length = self.n_vectors * GROUPS;
        &self.columns[b * length..][..length]
    }
}

/// Σ_j entries·weights over a block, for each of four rows: sixteen strands, then added in halves.
#[inline(always)]
fn row_sums<S: Simd>(simd: S, entries: &Strip, weights: &[Lanes]) -> [f32; AT_ONCE] {
    let mut strands = [[0.0; LANES]; AT_ONCE];
    for part in 0..LANES / S::F32_LANES {
        let mut sums = [simd.splat_f32s(0.0); AT_ONCE];
        for (entries, weights) in entries.iter().zip(weights) {
            let w = part_of::<S>(weights, part);
            for g in 0..AT_ONCE {
                sums[g] = simd.mul_add_f32s(part_of::<S>(&entries[g], part), w, sums[g]);
            }
        }
        for (strands, sum) in strands.iter_mut().zip(sums) {
            S::as_mut_simd_f32s(strands).0[part] = sum;
        }
    }
    let mut out = [0.0; AT_ONCE];
    for (out, lanes) in out.iter_mut().zip(&mut strands) {
        for half in [8, 4, 2, 1] {
            for l in 0..half {
                lanes[l] += lanes[l + half];
            }
        }
        *out = lanes[0];
    }
    out
}

/// `back` ← `back` + Σ_g entries·weights over four rows.
#[inline(always)]
fn add_columns<S: Simd>(simd: S, entries: &Strip, weights: [f32; AT_ONCE], back: &mut [Lanes]) {
    for (entries, back) in entries.iter().zip(back) {
        for (part, back) in S::as_mut_simd_f32s(back).0.iter_mut().enumerate() {
            let [a, b, c, d] = weights.map(|w| simd.splat_f32s(w));
            let left = simd.mul_add_f32s(part_of::<S>(&entries[0], part), a, *back);
            let left = simd.mul_add_f32s(part_of::<S>(&entries[1], part), b, left);
            let right = simd.mul_f32s(part_of::<S>(&entries[2], part), c);
            let right = simd.mul_add_f32s(part_of::<S>(&entries[3], part), d, right);
            *back = simd.add_f32s(left, right);
        }
    }
}

/// The work of one tile in single precision: sums of rows in double precision, those of columns in `back`, if it is there.
struct Tile<'a> {
    packed: &'a PackedRows,
    vectors: &'a PackedVectors,
    blocks: (usize, usize),
    quads: &'a [[f32; AT_ONCE]],
    rows: &'a mut [f64],
    back: &'a mut [Lanes],
}

impl WithSimd for Tile<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { packed, vectors, blocks: (i, j), quads, rows, back } = self;
        let (shape, width) = (&packed.shape, packed.shape.width());
        let (own, other) = (vectors.block(i), vectors.block(j));
        let mut entries = [[[0.0; LANES]; AT_ONCE]; GROUPS];
        for (first, quad) in (0..).step_by(AT_ONCE).zip(quads.chunks_exact(width)) {
            strip(simd, shape, packed.block(j), quad, &mut entries);
            for v in 0..vectors.n_vectors {
                let sums = row_sums(simd, &entries, &other[v * GROUPS..][..GROUPS]);
                for (row, sum) in rows[v * BLOCK + first..][..AT_ONCE].iter_mut().zip(sums) {
                    *row += f64::from(sum);
                }
                if !back.is_empty() {
                    let lanes = &own[v * GROUPS + first / LANES];
                    let weights = std::array::from_fn(|g| lanes[first % LANES + g]);
                    add_columns(simd, &entries, weights, &mut back[v * GROUPS..][..GROUPS]);
                }
            }
        }
    }
}

/// The products of one tile: rows of block `i` with the vectors of block `j` into `rows` and, unless both are the same
/// block, the other way round into `columns`. Both are sums, a block's vectors one after the other.
fn tile(
    packed: &PackedRows,
    vectors: &PackedVectors,
    (i, j): (usize, usize),
    quads: &[[f32; AT_ONCE]],
    rows: &mut [f64],
    columns: Option<&mut [f64]>,
) {
    let mut back = vec![[0.0; LANES]; if columns.is_some() { vectors.block(j).len() } else { 0 }];
    with_vectors(Tile { packed, vectors, blocks: (i, j), quads, rows, back: &mut back });
    if let Some(columns) = columns {
        for (sum, part) in columns.iter_mut().zip(back.as_flattened()) {
            *sum += f64::from(*part);
        }
    }
}

/// The most parts that rows are divided into for a product: their pairs are the tasks.
const PARTS: usize = 64;

impl PackedRows {
    /// K·`vectors`, with the kernel of all pairs of rows, every entry made once.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] unless there is one number per row.
    pub fn product(&self, vectors: &Matrix, threads: Threads) -> Result<Matrix> {
        check_rows(self, vectors)?;
        let packed = PackedVectors::new(self, vectors);
        let (n_blocks, n_vectors) = (self.n_blocks(), vectors.n_columns());
        let per_part = n_blocks.div_ceil(PARTS).max(1);
        let n_parts = n_blocks.div_ceil(per_part);
        let length = n_vectors * BLOCK;
        let parts: Vec<Mutex<Vec<f64>>> =
            (0..n_parts).map(|p| Mutex::new(vec![0.0; blocks_of(p, per_part, n_blocks).len() * length])).collect();
        let lock = |p: usize| parts[p].lock().unwrap_or_else(PoisonError::into_inner);
        let pair = |(a, b): (usize, usize)| {
            let (rows_of, columns_of) = (blocks_of(a, per_part, n_blocks), blocks_of(b, per_part, n_blocks));
            let mut rows = lock(a);
            let mut columns = if a == b { None } else { Some(lock(b)) };
            for (i, i_rows) in rows_of.clone().enumerate() {
                let quads = row_quads(self, i_rows);
                for (j, j_rows) in columns_of.clone().enumerate() {
                    if (a == b && j_rows < i_rows) || self.are_far(i_rows, j_rows) {
                        continue;
                    }
                    if let Some(columns) = &mut columns {
                        let (rows, columns) = (&mut rows[i * length..][..length], &mut columns[j * length..][..length]);
                        tile(self, &packed, (i_rows, j_rows), &quads, rows, Some(columns));
                    } else if i == j {
                        tile(self, &packed, (i_rows, i_rows), &quads, &mut rows[i * length..][..length], None);
                    } else {
                        let (head, tail) = rows.split_at_mut(j * length);
                        let (rows, columns) = (&mut head[i * length..][..length], &mut tail[..length]);
                        tile(self, &packed, (i_rows, j_rows), &quads, rows, Some(columns));
                    }
                }
            }
        };
        // Within a round no part is in two pairs, so a part's sums grow in the order of rounds.
        for round in rounds(n_parts) {
            if threads == Threads::ONE {
                round.into_iter().for_each(pair);
            } else {
                round.into_par_iter().for_each(pair);
            }
        }
        let mut out = Matrix::zeros(self.n_rows(), n_vectors);
        for (b, numbers) in self.order().chunks(BLOCK).enumerate() {
            let part = lock(b / per_part);
            for v in 0..n_vectors {
                let sums = &part[(b % per_part) * length + v * BLOCK..][..numbers.len()];
                for (&number, sum) in numbers.iter().zip(sums) {
                    out[(number as usize, v)] = *sum;
                }
            }
        }
        Ok(out)
    }

    /// K(queries, rows)·`vectors`: one row of the result per query.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] unless there is one number per row, [`Error::Incompatible`] if the queries have other columns.
    pub fn cross_product(&self, queries: &KernelRows, vectors: &Matrix, threads: Threads) -> Result<Matrix> {
        check_rows(self, vectors)?;
        let queries = self.pack_queries(queries);
        if queries.shape != self.shape {
            return Err(Error::Incompatible { what: "the columns of queries and rows" });
        }
        let packed = PackedVectors::new(self, vectors);
        let n_vectors = vectors.n_columns();
        let block = |b: usize| {
            let mut sums = vec![0.0; n_vectors * BLOCK];
            let quads = row_quads(&queries, b);
            for j in 0..self.n_blocks() {
                tile(self, &packed, (0, j), &quads, &mut sums, None);
            }
            sums
        };
        let blocks: Vec<Vec<f64>> = if threads == Threads::ONE {
            (0..queries.n_blocks()).map(block).collect()
        } else {
            (0..queries.n_blocks()).into_par_iter().map(block).collect()
        };
        Ok(Matrix::from_fn(queries.n_rows(), n_vectors, |i, v| blocks[i / BLOCK][v * BLOCK + i % BLOCK]))
    }

    /// Whether all entries between two blocks are 0.
    fn are_far(&self, i: usize, j: usize) -> bool {
        let (shape, width) = (&self.shape, self.shape.width());
        let at = |corner: &[Lanes], b: usize, k: usize| corner[b / LANES * width + k][b % LANES];
        let gap = |k: usize| {
            let (below, above) =
                (at(&self.lower, j, k) - at(&self.upper, i, k), at(&self.lower, i, k) - at(&self.upper, j, k));
            below.max(above).max(0.0)
        };
        // A margin far beyond rounding: this need not be sharp.
        (0..shape.n_axes).map(gap).sum::<f32>() > FAR * 1.01
    }
}

/// Which blocks belong to a part.
fn blocks_of(part: usize, per_part: usize, n_blocks: usize) -> std::ops::Range<usize> {
    part * per_part..((part + 1) * per_part).min(n_blocks)
}

/// Every pair of parts once, each part with itself first; within a round no part is named twice (the circle method of
/// tournaments).
fn rounds(n_parts: usize) -> Vec<Vec<(usize, usize)>> {
    let even = n_parts.next_multiple_of(2);
    let mut rounds = vec![(0..n_parts).map(|p| (p, p)).collect()];
    for round in 0..even.saturating_sub(1) {
        let place = |k: usize| if k == 0 { even - 1 } else { (round + k) % (even - 1) };
        let opposite = |k: usize| (round + even - 1 - k) % (even - 1);
        let pairs = (0..even / 2).map(|k| (place(k), opposite(k)));
        rounds.push(pairs.map(|(a, b)| (a.min(b), a.max(b))).filter(|&(_, b)| b < n_parts).collect());
    }
    rounds
}

fn check_rows(packed: &PackedRows, vectors: &Matrix) -> Result<()> {
    let (expected, found) = (packed.n_rows(), vectors.n_rows());
    let what = "numbers of a vector";
    if expected == found { Ok(()) } else { Err(Error::LengthMismatch { what, expected, found }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::NodeKey;
    use crate::simd::with_256_bits;

    fn draw(seed: u64, n: usize) -> Vec<f64> {
        (0..n).map(|i| NodeKey::root(seed, i as u64).draw(0).normal()).collect()
    }

    /// Rows of every kind of column: (axes, categories, directions).
    fn sample(n: usize, (q, c, r): (usize, usize, usize), exponent: f64) -> KernelRows {
        let rows = KernelRows::without_columns(n).with_axes(draw(1, n * q), q).unwrap();
        let levels = draw(2, n * c).iter().map(|x| (2.0 * x.abs()) as u32).collect();
        let rows = rows.with_levels(levels, (0..c).map(|k| 0.3 + 0.2 * k as f64).collect()).unwrap();
        rows.with_directions(draw(3, n * r), r, exponent).unwrap()
    }

    /// A tile's sums do not depend on the width of vectors.
    #[test]
    fn tiles_are_the_same_bits_whatever_the_vectors() {
        let packed = PackedRows::new(&sample(2 * BLOCK, (3, 1, 2), 1.3));
        let vectors =
            PackedVectors::new(&packed, &Matrix::from_column_major(draw(5, 4 * BLOCK), 2 * BLOCK, 2).unwrap());
        let quads = row_quads(&packed, 0);
        let by = |run: &dyn Fn(Tile<'_>)| {
            let (mut rows, mut back) = (vec![0.0; 2 * BLOCK], vec![[0.0; LANES]; 2 * GROUPS]);
            let blocks = (0, 1);
            run(Tile { packed: &packed, vectors: &vectors, blocks, quads: &quads, rows: &mut rows, back: &mut back });
            (rows, back)
        };
        let slow = by(&|tile| tile.with_simd(pulp::Scalar));
        assert!(by(&|tile| with_vectors(tile)) == slow && by(&|tile| with_256_bits(tile)) == slow);
    }

    #[test]
    fn every_pair_of_parts_meets_once() {
        for n in [0, 1, 2, 3, 8, 13] {
            let rounds = rounds(n);
            let mut all: Vec<_> = rounds.concat();
            all.sort_unstable();
            let expected: Vec<_> = (0..n).flat_map(|a| (a..n).map(move |b| (a, b))).collect();
            assert_eq!(all, expected);
            for round in &rounds[1..] {
                let mut seen: Vec<usize> = round.iter().flat_map(|&(a, b)| [a, b]).collect();
                seen.sort_unstable();
                assert!(seen.windows(2).all(|pair| pair[0] < pair[1]));
            }
        }
    }

    #[test]
    fn products_are_those_of_slow_entries_for_any_threads() {
        let shapes = [((2, 0, 0), 1.0), ((9, 0, 0), 1.0), ((3, 2, 2), 1.4), ((0, 1, 3), 2.0), ((0, 0, 1), 1.0)];
        for (n, (shape, exponent)) in [1, 5, 129, 600, 700].into_iter().zip(shapes) {
            let rows = sample(n, shape, exponent);
            let packed = PackedRows::new(&rows);
            let vectors = Matrix::from_column_major(draw(5, 3 * n), n, 3).unwrap();
            let one = packed.product(&vectors, Threads::ONE).unwrap();
            assert_eq!(packed.product(&vectors, Threads::up_to(2)).unwrap(), one);
            let queries = sample(n + 3, shape, exponent);
            let cross = packed.cross_product(&queries, &vectors, Threads::up_to(2)).unwrap();
            assert_eq!(packed.cross_product(&queries, &vectors, Threads::ONE).unwrap(), cross);
            for v in 0..3 {
                let slow = |table: &KernelRows, i: usize| -> f64 {
                    let entry = |j: usize| (-table.distance_to(i, &rows, j)).exp();
                    (0..n).map(|j| entry(j) * vectors[(j, v)]).sum()
                };
                for i in (0..n).step_by(7) {
                    assert!((one[(i, v)] - slow(&rows, i)).abs() < 3e-6 * n as f64, "{shape:?} row {i}");
                    assert!((cross[(i, v)] - slow(&queries, i)).abs() < 3e-6 * n as f64, "{shape:?} query {i}");
                }
            }
        }
    }
}
