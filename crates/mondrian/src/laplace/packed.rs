//! Rows in single precision, laid out for vector code, in an order that keeps near rows together.

use crate::parallel::prelude::*;

use crate::laplace::KernelRows;
use crate::laplace::columns::Columned;
use crate::laplace::values::Values;

/// Rows whose coordinates lie side by side: a group.
pub(crate) const LANES: usize = 16;
/// Groups of a block.
pub(crate) const GROUPS: usize = 8;
/// Rows of a block: of its rows a box is known, and between two blocks lies one tile of entries.
pub(crate) const BLOCK: usize = LANES * GROUPS;

/// One column of a group.
pub(crate) type Lanes = [f32; LANES];

/// What the columns of packed rows are, in this order: axes, categories, directions.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    pub(crate) n_axes: usize,
    /// ν in units of ln 2.
    pub(crate) level_weights: Vec<f32>,
    pub(crate) n_directions: usize,
    /// p.
    pub(crate) exponent: f32,
}

impl Shape {
    pub(crate) fn of(rows: &KernelRows) -> Self {
        Self::new(rows.n_axes(), rows.level_weights(), rows.n_directions(), rows.exponent())
    }

    fn new(n_axes: usize, level_weights: &[f64], n_directions: usize, exponent: f64) -> Self {
        let level_weights: Vec<f32> =
            level_weights.iter().map(|weight| (weight * std::f64::consts::LOG2_E) as f32).collect();
        // Rows without columns, all of them equal, get an axis of zeros.
        let is_empty = n_axes + level_weights.len() + n_directions == 0;
        Self { n_axes: n_axes.max(usize::from(is_empty)), level_weights, n_directions, exponent: exponent as f32 }
    }

    /// Columns of all kinds.
    pub(crate) fn width(&self) -> usize {
        self.n_axes + self.level_weights.len() + self.n_directions
    }
}

/// Rows in groups of `LANES`, within a group column by column; distances between them are in units of ln 2.
///
/// Coordinates are differences from a common centre, so that single precision holds them well. The last block is filled
/// up with rows of zeros, which readers of a block must leave out.
#[derive(Debug, Clone)]
pub struct PackedRows {
    pub(crate) shape: Shape,
    n_rows: usize,
    /// Of axes and directions.
    centres: Vec<f64>,
    pub(crate) groups: Vec<Lanes>,
    /// The number of the row at each place.
    order: Vec<u32>,
    /// The lower and upper corners of blocks, laid out like rows, [`LANES`] blocks per group.
    pub(crate) lower: Vec<Lanes>,
    pub(crate) upper: Vec<Lanes>,
}

impl PackedRows {
    /// Packs rows in an order in which the rows of a block are near each other.
    ///
    /// # Panics
    /// From 2³² rows on.
    pub fn new(rows: &KernelRows) -> Self {
        Self::in_order(rows, near_order(rows))
    }

    /// Packs rows in the order given: a permutation of their numbers.
    pub(crate) fn in_order(rows: &KernelRows, order: Vec<u32>) -> Self {
        assert_eq!(order.len(), rows.n_rows(), "every row once");
        Self::pack(rows, order, centres(rows))
    }

    /// Packs other rows, in their own order, about the same centre, as queries.
    pub(crate) fn pack_queries(&self, queries: &KernelRows) -> Self {
        let n = u32::try_from(queries.n_rows()).expect("fewer than 2^32 rows");
        Self::pack(queries, (0..n).collect(), self.centres.clone())
    }

    fn pack(rows: &KernelRows, order: Vec<u32>, centres: Vec<f64>) -> Self {
        let shape = Shape::of(rows);
        let (width, n_rows) = (shape.width(), rows.n_rows());
        let mut groups = vec![[0.0; LANES]; n_rows.div_ceil(BLOCK) * GROUPS * width];
        let unit = Units::of(rows);
        groups.par_chunks_mut((width * GROUPS).max(1)).zip(order.par_chunks(BLOCK)).for_each(|(block, numbers)| {
            for (group, numbers) in block.chunks_mut(width).zip(numbers.chunks(LANES)) {
                for (lane, &number) in numbers.iter().enumerate() {
                    unit.write(rows, number as usize, &centres, |k, value| group[k][lane] = value);
                }
            }
        });
        let mut packed = Self { shape, n_rows, centres, groups, order, lower: Vec::new(), upper: Vec::new() };
        packed.find_boxes();
        packed
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of blocks.
    pub(crate) fn n_blocks(&self) -> usize {
        self.n_rows.div_ceil(BLOCK)
    }

    /// The number of the row at each place.
    pub(crate) fn order(&self) -> &[u32] {
        &self.order
    }

    /// The groups of a block.
    pub(crate) fn block(&self, block: usize) -> &[Lanes] {
        let length = self.shape.width() * GROUPS;
        &self.groups[block * length..][..length]
    }

    /// How many rows a block holds.
    pub(crate) fn rows_of_block(&self, block: usize) -> usize {
        (self.n_rows - block * BLOCK).min(BLOCK)
    }

    /// The coordinates of the row at a place.
    pub(crate) fn row(&self, place: usize) -> impl Iterator<Item = f32> + '_ {
        let width = self.shape.width();
        self.groups[place / LANES * width..][..width].iter().map(move |lanes| lanes[place % LANES])
    }

    /// Finds the box of every block.
    fn find_boxes(&mut self) {
        let (width, n_blocks) = (self.shape.width(), self.n_blocks());
        let n_groups = n_blocks.div_ceil(LANES);
        // A place without a block has a box that everything is far from.
        let mut lower = vec![[f32::MAX; LANES]; n_groups * width];
        let mut upper = vec![[f32::MAX; LANES]; n_groups * width];
        let corners = lower.par_chunks_mut(width).zip(upper.par_chunks_mut(width)).enumerate();
        corners.for_each(|(g, (lower, upper))| {
            for b in g * LANES..((g + 1) * LANES).min(n_blocks) {
                let (block, n_rows) = (self.block(b), self.rows_of_block(b));
                for k in 0..width {
                    let (least, most) = range_of(block, width, k, n_rows);
                    (lower[k][b % LANES], upper[k][b % LANES]) = (least, most);
                }
            }
        });
        (self.lower, self.upper) = (lower, upper);
    }
}

/// The least and the largest number of column k among the first rows of a block.
fn range_of(block: &[Lanes], width: usize, k: usize, n_rows: usize) -> (f32, f32) {
    let (mut least, mut most) = ([f32::MAX; LANES], [f32::MIN; LANES]);
    for (g, group) in block.chunks_exact(width).enumerate().take(n_rows.div_ceil(LANES)) {
        let lanes = &group[k];
        let count = (n_rows - g * LANES).min(LANES);
        // The rows that fill up the last group repeat its first.
        for l in 0..LANES {
            let x = if l < count { lanes[l] } else { lanes[0] };
            least[l] = least[l].min(x);
            most[l] = most[l].max(x);
        }
    }
    (least.into_iter().fold(f32::MAX, f32::min), most.into_iter().fold(f32::MIN, f32::max))
}

/// Rows as columns before lifetimes and metric, packed in one order: rows under any parameters come of it by a product per
/// axis and a small matrix per row, so that tuning need not look at all rows in double precision at every step.
pub(crate) struct PackedColumns {
    n_rows: usize,
    n_axes: usize,
    n_levels: usize,
    n_linear: usize,
    groups: Vec<Lanes>,
    order: Vec<u32>,
    /// The place of each row.
    places: Vec<u32>,
}

impl PackedColumns {
    /// Packs columns in the order given: a permutation of the numbers of rows.
    pub(crate) fn new(columned: &Columned, order: Vec<u32>) -> Self {
        let (n_rows, n_levels) = (columned.n_rows(), columned.n_levels);
        let (n_axes, n_linear) = (columned.axes.n_columns(), columned.linear.n_columns());
        let width = n_axes + n_levels + n_linear;
        let middle = |column: &[f64]| {
            let (least, most) = column.iter().fold((f64::MAX, f64::MIN), |(l, u), x| (l.min(*x), u.max(*x)));
            if least <= most { 0.5 * least + 0.5 * most } else { 0.0 }
        };
        let columns = || (0..n_axes).map(|k| columned.axes.column(k));
        let linear = || (0..n_linear).map(|k| columned.linear.column(k));
        let centres: Vec<f64> = columns().chain(linear()).map(middle).collect();
        let mut groups = vec![[0.0; LANES]; n_rows.div_ceil(BLOCK) * GROUPS * width];
        groups.par_chunks_mut((width * GROUPS).max(1)).zip(order.par_chunks(BLOCK)).for_each(|(block, numbers)| {
            for (group, numbers) in block.chunks_mut(width).zip(numbers.chunks(LANES)) {
                for (lane, &number) in numbers.iter().enumerate() {
                    let i = number as usize;
                    for (k, column) in columns().enumerate() {
                        group[k][lane] = (column[i] - centres[k]) as f32;
                    }
                    for k in 0..n_levels {
                        group[n_axes + k][lane] = columned.levels[k * n_rows + i] as f32;
                    }
                    for (k, column) in linear().enumerate() {
                        group[n_axes + n_levels + k][lane] = (column[i] - centres[n_axes + k]) as f32;
                    }
                }
            }
        });
        let mut places = vec![0; n_rows];
        order.iter().enumerate().for_each(|(place, &number)| places[number as usize] = place as u32);
        Self { n_rows, n_axes, n_levels, n_linear, groups, order, places }
    }

    /// The place of a row.
    pub(crate) fn place_of(&self, number: usize) -> usize {
        self.places[number] as usize
    }

    /// The rows under these parameters. Their centre is not known to others: only rows among them can be queries.
    pub(crate) fn rows(&self, values: &Values) -> PackedRows {
        let unit = std::f64::consts::LOG2_E;
        let lifetimes: Vec<f32> = values.lifetimes.iter().map(|l| (l * unit) as f32).collect();
        let n_directions = values.metric.n_rows();
        let scale = libm::pow(unit, 1.0 / values.exponent);
        let metric: Vec<f32> = (0..n_directions * self.n_linear)
            .map(|k| (scale * values.metric[(k / self.n_linear, k % self.n_linear)]) as f32)
            .collect();
        let shape = Shape::new(self.n_axes, &values.level_weights, n_directions, values.exponent);
        let (from, to) = (self.n_axes + self.n_levels + self.n_linear, shape.width());
        let mut groups = vec![[0.0; LANES]; self.n_rows.div_ceil(BLOCK) * GROUPS * to];
        let one = |(out, own): (&mut [Lanes], &[Lanes])| {
            for ((out, own), lifetime) in out.iter_mut().zip(own).zip(&lifetimes) {
                *out = own.map(|x| x * lifetime);
            }
            let axes = self.n_axes + self.n_levels;
            out[self.n_axes..axes].copy_from_slice(&own[self.n_axes..axes]);
            for (out, row) in out[axes..].iter_mut().zip(metric.chunks_exact(self.n_linear.max(1))) {
                for (own, a) in own[axes..].iter().zip(row) {
                    out.iter_mut().zip(own).for_each(|(o, x)| *o += a * x);
                }
            }
        };
        if from > 0 {
            let blocks = groups.par_chunks_mut(to * GROUPS).zip(self.groups.par_chunks(from * GROUPS));
            blocks.for_each(|(out, own)| {
                crate::simd::vectorise(
                    #[inline(always)]
                    || out.chunks_exact_mut(to).zip(own.chunks_exact(from)).for_each(one),
                );
            });
        }
        let (n_rows, order, centres) = (self.n_rows, self.order.clone(), Vec::new());
        let mut packed = PackedRows { shape, n_rows, centres, groups, order, lower: Vec::new(), upper: Vec::new() };
        packed.find_boxes();
        packed
    }
}

/// Factors that bring coordinates to units of ln 2.
pub(crate) struct Units {
    pub(crate) axis: f64,
    pub(crate) direction: f64,
}

impl Units {
    pub(crate) fn of(rows: &KernelRows) -> Self {
        let axis = std::f64::consts::LOG2_E;
        // ‖s·b‖^p = s^p·‖b‖^p.
        Self { axis, direction: libm::pow(axis, 1.0 / rows.exponent()) }
    }

    /// The packed coordinates of a row, one call per column.
    pub(crate) fn write(&self, rows: &KernelRows, i: usize, centres: &[f64], mut write: impl FnMut(usize, f32)) {
        let (q, c, r) = (rows.n_axes(), rows.n_levels(), rows.n_directions());
        for (k, x) in rows.axes()[i * q..][..q].iter().enumerate() {
            write(k, ((x - centres[k]) * self.axis) as f32);
        }
        for (k, code) in rows.levels()[i * c..][..c].iter().enumerate() {
            write(q + k, *code as f32);
        }
        for (k, x) in rows.directions()[i * r..][..r].iter().enumerate() {
            write(q + c + k, ((x - centres[q + k]) * self.direction) as f32);
        }
    }
}

/// The middle of the range of each axis and direction.
fn centres(rows: &KernelRows) -> Vec<f64> {
    let middles = |table: &[f64], n: usize| -> Vec<f64> {
        let mut range = vec![(f64::INFINITY, f64::NEG_INFINITY); n];
        for row in table.chunks_exact(n.max(1)) {
            for ((least, most), x) in range.iter_mut().zip(row) {
                (*least, *most) = (least.min(*x), most.max(*x));
            }
        }
        range.into_iter().map(|(least, most)| if least <= most { 0.5 * least + 0.5 * most } else { 0.0 }).collect()
    };
    let mut centres = middles(rows.axes(), rows.n_axes());
    centres.extend(middles(rows.directions(), rows.n_directions()));
    centres
}

/// Rows at which one coordinate's spread is measured.
const SPREAD_ROWS: usize = 256;

/// An order of rows whose blocks are the leaves of a k-d tree: halves along the axis or direction of largest mean
/// deviation, at a multiple of [`BLOCK`] rows.
pub(crate) fn near_order(rows: &KernelRows) -> Vec<u32> {
    let n = u32::try_from(rows.n_rows()).expect("fewer than 2^32 rows");
    let mut order: Vec<u32> = (0..n).collect();
    halve(rows, &mut order);
    order
}

fn halve(rows: &KernelRows, part: &mut [u32]) {
    if part.len() <= BLOCK {
        return;
    }
    let width = rows.n_axes() + rows.n_directions();
    let at = |row: u32, k: usize| {
        let (row, q, r) = (row as usize, rows.n_axes(), rows.n_directions());
        if k < q { rows.axes()[row * q + k] } else { rows.directions()[row * r + k - q] }
    };
    let step = part.len().div_ceil(SPREAD_ROWS);
    let spread = |k: usize| {
        let sample = || part.iter().step_by(step).map(|&row| at(row, k));
        let mean = sample().sum::<f64>() / sample().count() as f64;
        sample().map(|x| (x - mean).abs()).sum::<f64>()
    };
    let spreads: Vec<f64> = (0..width).map(spread).collect();
    let Some(widest) = (0..width).max_by(|&a, &b| spreads[a].total_cmp(&spreads[b])) else { return };
    // Half of the blocks, rounded up: only the last block may be incomplete.
    let half = part.len().div_ceil(BLOCK).div_ceil(2) * BLOCK;
    part.select_nth_unstable_by(half, |&a, &b| at(a, widest).total_cmp(&at(b, widest)).then(a.cmp(&b)));
    let (left, right) = part.split_at_mut(half);
    crate::parallel::join(|| halve(rows, left), || halve(rows, right));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::NodeKey;

    #[test]
    fn blocks_hold_every_row_once_within_their_boxes() {
        let axes: Vec<f64> = (0..3000).map(|i| NodeKey::root(3, i).draw(0).normal()).collect();
        let rows = KernelRows::of_axes(axes, 3).unwrap();
        let packed = PackedRows::new(&rows);
        let mut seen = packed.order().to_vec();
        seen.sort_unstable();
        assert!(seen.iter().enumerate().all(|(i, row)| i == *row as usize));
        for place in 0..packed.n_rows() {
            let b = place / BLOCK;
            for (k, x) in packed.row(place).enumerate() {
                let at = b / LANES * 3 + k;
                assert!(packed.lower[at][b % LANES] <= x && x <= packed.upper[at][b % LANES]);
            }
        }
        // Near rows are together: a box is much smaller than the whole.
        let side = |b: usize| packed.upper[b / LANES * 3][b % LANES] - packed.lower[b / LANES * 3][b % LANES];
        assert!((0..packed.n_blocks()).map(side).sum::<f32>() / (packed.n_blocks() as f32) < 5.0);
    }
}
