//! A batch of rows in single precision: all its kernel entries, and the sums over pairs that derivatives need.
//!
//! What [`Tiles`](crate::laplace::tiles::Tiles) does in double precision, its slow twin in the tests, in half the time and memory.
#![expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]

use crate::laplace::KernelRows;
use crate::laplace::elementary::{half_powers, logarithms, powers, powers_minus};
use crate::laplace::entries::{AT_ONCE, both_distances, part_of};
use crate::laplace::packed::{LANES, Lanes, Shape, Units};
use crate::laplace::tiles::{PairParts, Pairs};
use crate::linalg::{Threads, each};
use crate::simd::{Simd, WithSimd, with_vectors};

/// Columns of one task.
const STRIP: usize = 4 * AT_ONCE;

/// Rows in groups, within a group column by column; distances are in units of ln 2.
pub(crate) struct Singles {
    n_rows: usize,
    shape: Shape,
    groups: Vec<Lanes>,
    /// What squared distances are multiplied with in these units.
    unit_of_squares: f64,
}

impl Singles {
    /// Columns of rows, in groups of [`AT_ONCE`] from row `first` on: one array per column.
    fn quad(&self, first: usize) -> Vec<[f32; AT_ONCE]> {
        let (group, lane) = (first / LANES, first % LANES);
        self.group(group).iter().map(|lanes| std::array::from_fn(|g| lanes[lane + g])).collect()
    }

    fn group(&self, group: usize) -> &[Lanes] {
        let width = self.shape.width();
        &self.groups[group * width..][..width]
    }

    fn n_groups(&self) -> usize {
        self.n_rows.div_ceil(LANES)
    }
}

impl Pairs for Singles {
    type Number = f32;

    fn new(rows: &KernelRows) -> Self {
        let (shape, unit, n_rows) = (Shape::of(rows), Units::of(rows), rows.n_rows());
        let width = shape.width();
        let mut groups = vec![[0.0; LANES]; n_rows.div_ceil(LANES) * width];
        // Columns are centred as they are learned.
        let centres = vec![0.0; rows.n_axes() + rows.n_directions()];
        for i in 0..n_rows {
            let group = &mut groups[i / LANES * width..][..width];
            unit.write(rows, i, &centres, |k, value| group[k][i % LANES] = value);
        }
        Self { n_rows, shape, groups, unit_of_squares: unit.direction * unit.direction }
    }

    fn parts(&self, threads: Threads) -> PairParts<f32> {
        let n = self.n_rows;
        let mut kernel = vec![0.0; n * n];
        let m = if self.shape.n_directions > 0 { n * n } else { 0 };
        let (mut squares, mut powers) = (vec![0.0; m], vec![0.0; m]);
        let size = (n * STRIP).max(1);
        let tasks =
            kernel.chunks_mut(size).zip(strips(&mut squares, n)).zip(strips(&mut powers, n)).enumerate().collect();
        each(tasks, threads, |(k, ((kernel, squares), powers))| {
            with_vectors(Entries { rows: self, first: k * STRIP, kernel, squares, powers });
        });
        PairParts { kernel, squares, powers }
    }

    fn contract(&self, h: &[f32], threads: Threads) -> Vec<f64> {
        let n = self.n_rows;
        let width = self.shape.n_axes + self.shape.level_weights.len();
        let mut parts: Vec<Vec<f64>> = vec![vec![0.0; width]; n.div_ceil(STRIP)];
        let tasks = parts.iter_mut().zip(h.chunks((n * STRIP).max(1))).enumerate().collect();
        each(tasks, threads, |(k, (sums, h))| {
            with_vectors(Sums { rows: self, first: k * STRIP, h, sums });
        });
        let mut sums = vec![0.0; width];
        for part in &parts {
            sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
        sums.iter_mut().for_each(|sum| *sum *= std::f64::consts::LN_2);
        sums
    }

    fn metric_weights(&self, h: &mut [f32], parts: &PairParts<f32>, threads: Threads) -> f64 {
        single_metric_weights(h, parts, self.n_rows, self.shape.exponent, self.unit_of_squares, threads)
    }
}

/// [`Pairs::metric_weights`] of squares that were multiplied with a unit.
pub(super) fn single_metric_weights(
    h: &mut [f32],
    parts: &PairParts<f32>,
    n: usize,
    exponent: f32,
    unit_of_squares: f64,
    threads: Threads,
) -> f64 {
    let size = (n * STRIP).max(1);
    let mut sums = vec![[0.0; 2]; n.div_ceil(STRIP)];
    let tasks = h.chunks_mut(size).zip(parts.squares.chunks(size)).zip(parts.powers.chunks(size));
    let tasks = tasks.zip(&mut sums).enumerate().collect();
    let exponent = 0.5 * exponent - 1.0;
    // r/s in the units of the rows.
    let unit = (unit_of_squares * std::f64::consts::LN_2) as f32;
    each(tasks, threads, |(k, (((h, squares), powers), sums))| {
        for (j, column) in h.chunks_exact_mut(n).enumerate() {
            let below = (k * STRIP + j + 1).min(n);
            let (s, r) = (&squares[j * n..][below..n], &powers[j * n..][below..n]);
            let found = with_vectors(Weights { h: &mut column[below..], squares: s, powers: r, exponent, unit });
            (0..2).for_each(|k| sums[k] += found[k]);
        }
    });
    let total = |k: usize| sums.iter().map(|s| s[k]).sum::<f64>();
    // ln s = ln 2·log₂ s' − ln u and r = ln 2·r' of squares s' = u·s and powers r' in these units.
    let log_unit = libm::log(unit_of_squares);
    std::f64::consts::LN_2 * (std::f64::consts::LN_2 * total(0) - log_unit * total(1))
}

/// The strips of n columns; empty ones of a matrix that is not there.
fn strips(matrix: &mut [f32], n: usize) -> Vec<&mut [f32]> {
    let mut strips: Vec<&mut [f32]> = matrix.chunks_mut((n * STRIP).max(1)).collect();
    strips.resize_with(n.div_ceil(STRIP), Default::default);
    strips
}

/// Entries of some columns, from their first row on.
struct Entries<'a> {
    rows: &'a Singles,
    first: usize,
    kernel: &'a mut [f32],
    squares: &'a mut [f32],
    powers: &'a mut [f32],
}

impl WithSimd for Entries<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rows, first, kernel, squares, powers } = self;
        let (n, shape) = (rows.n_rows, &rows.shape);
        let has_directions = !squares.is_empty();
        let count = kernel.len() / n;
        for quad in (0..count).step_by(AT_ONCE) {
            let others = rows.quad(first + quad);
            for group in (first + quad) / LANES..rows.n_groups() {
                let columns = rows.group(group);
                let mut found = [[[0.0; LANES]; AT_ONCE]; 3];
                for part in 0..LANES / S::F32_LANES {
                    let (plain, square) = both_distances(simd, shape, columns, part, &others);
                    for g in 0..AT_ONCE {
                        let mut d = plain[g];
                        if has_directions {
                            let power = half_powers(simd, square[g], shape.exponent);
                            d = simd.add_f32s(d, power);
                            S::as_mut_simd_f32s(&mut found[1][g]).0[part] = square[g];
                            S::as_mut_simd_f32s(&mut found[2][g]).0[part] = power;
                        }
                        S::as_mut_simd_f32s(&mut found[0][g]).0[part] = powers_minus(simd, d);
                    }
                }
                let length = LANES.min(n - group * LANES);
                let [entries, apart, raised] = &found;
                let columns = entries.iter().zip(apart).zip(raised).enumerate().take(count - quad);
                for (g, ((entries, apart), raised)) in columns {
                    let range = (quad + g) * n + group * LANES..(quad + g) * n + group * LANES + length;
                    kernel[range.clone()].copy_from_slice(&entries[..length]);
                    if has_directions {
                        squares[range.clone()].copy_from_slice(&apart[..length]);
                        powers[range].copy_from_slice(&raised[..length]);
                    }
                }
            }
        }
    }
}

/// Σ h·|Δ| of some columns over the rows below the diagonal, for every axis, then Σ h·ν·1\[c ≠ c'\].
struct Sums<'a> {
    rows: &'a Singles,
    first: usize,
    h: &'a [f32],
    sums: &'a mut [f64],
}

impl WithSimd for Sums<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rows, first, h, sums } = self;
        let (n, shape, q) = (rows.n_rows, &rows.shape, rows.shape.n_axes);
        let count = h.len() / n;
        let mut strands = vec![[0.0; LANES]; sums.len()];
        for quad in (0..count).step_by(AT_ONCE) {
            let others = rows.quad(first + quad);
            for group in (first + quad) / LANES..rows.n_groups() {
                let mut weights = [[0.0; LANES]; AT_ONCE];
                let end = LANES.min(n - group * LANES);
                for (g, weights) in weights.iter_mut().enumerate().take(count - quad) {
                    let from = (first + quad + g + 1).saturating_sub(group * LANES).min(end);
                    weights[from..end].copy_from_slice(&h[(quad + g) * n + group * LANES..][from..end]);
                }
                let columns = rows.group(group);
                for part in 0..LANES / S::F32_LANES {
                    let [a, b, c, d] = [0, 1, 2, 3].map(|g| part_of::<S>(&weights[g], part));
                    for ((lanes, values), strand) in columns[..q].iter().zip(&others).zip(&mut strands) {
                        let x = part_of::<S>(lanes, part);
                        let apart = |g: usize| simd.abs_f32s(simd.sub_f32s(x, simd.splat_f32s(values[g])));
                        let strand = &mut S::as_mut_simd_f32s(strand).0[part];
                        let left = simd.mul_add_f32s(b, apart(1), simd.mul_add_f32s(a, apart(0), *strand));
                        let right = simd.mul_add_f32s(d, apart(3), simd.mul_f32s(c, apart(2)));
                        *strand = simd.add_f32s(left, right);
                    }
                    let levels = columns[q..].iter().zip(&others[q..]).zip(&shape.level_weights);
                    for (((lanes, values), weight), strand) in levels.zip(&mut strands[q..]) {
                        let x = part_of::<S>(lanes, part);
                        let strand = &mut S::as_mut_simd_f32s(strand).0[part];
                        let (zero, weight) = (simd.splat_f32s(0.0), simd.splat_f32s(*weight));
                        for (g, w) in [a, b, c, d].into_iter().enumerate() {
                            let is_same = simd.equal_f32s(x, simd.splat_f32s(values[g]));
                            let apart = simd.select_f32s(is_same, zero, simd.mul_f32s(weight, w));
                            *strand = simd.add_f32s(*strand, apart);
                        }
                    }
                }
            }
            // Across quads in double precision.
            for (sum, strand) in sums.iter_mut().zip(&mut strands) {
                *sum += strand.iter().map(|x| f64::from(*x)).sum::<f64>();
                *strand = [0.0; LANES];
            }
        }
    }
}

/// h ← h·unit·s^exponent (0 where s is 0), and Σ h·r·log₂ s and Σ h·r of what h was.
struct Weights<'a> {
    h: &'a mut [f32],
    squares: &'a [f32],
    powers: &'a [f32],
    /// p/2 − 1, from −1 to 0: no power of a normal number overflows.
    exponent: f32,
    unit: f32,
}

impl WithSimd for Weights<'_> {
    type Output = [f64; 2];

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> [f64; 2] {
        let Self { h, squares, powers: raised, exponent, unit } = self;
        let mut strands = [[0.0; LANES]; 2];
        let length = h.len();
        for first in (0..length).step_by(LANES) {
            let range = first..(first + LANES).min(length);
            let mut block = [[0.0; LANES]; 3];
            // The last rows are filled up: weights of 0 add nothing.
            for (block, x) in block.iter_mut().zip([&h[range.clone()], &squares[range.clone()], &raised[range.clone()]])
            {
                block[..x.len()].copy_from_slice(x);
            }
            weights(simd, &mut block, &mut strands, exponent, unit);
            h[range.clone()].copy_from_slice(&block[0][..range.len()]);
        }
        strands.map(|strand| strand.iter().map(|x| f64::from(*x)).sum())
    }
}

/// The work of [`Weights`] on h, s and r of a group.
#[inline(always)]
fn weights<S: Simd>(simd: S, block: &mut [Lanes; 3], strands: &mut [Lanes; 2], exponent: f32, unit: f32) {
    for part in 0..LANES / S::F32_LANES {
        let (h, s, r) = (part_of::<S>(&block[0], part), part_of::<S>(&block[1], part), part_of::<S>(&block[2], part));
        let least = simd.splat_f32s(f32::MIN_POSITIVE);
        let product = simd.mul_f32s(h, r);
        let logarithm = logarithms(simd, simd.max_f32s(s, least));
        let power = powers(simd, simd.mul_f32s(simd.splat_f32s(exponent), logarithm));
        let weight = simd.mul_f32s(simd.mul_f32s(h, simd.splat_f32s(unit)), power);
        let weight = simd.select_f32s(simd.less_than_f32s(s, least), simd.splat_f32s(0.0), weight);
        S::as_mut_simd_f32s(&mut block[0]).0[part] = weight;
        let sum = &mut S::as_mut_simd_f32s(&mut strands[0]).0[part];
        *sum = simd.mul_add_f32s(product, logarithm, *sum);
        let sum = &mut S::as_mut_simd_f32s(&mut strands[1]).0[part];
        *sum = simd.add_f32s(*sum, product);
    }
}
