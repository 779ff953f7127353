//! Coordinates quantised to sixteen bits: what growing and traversals read of most cells.
//!
//! A cell is partitioned by one coordinate of each of its points, and rows lie far apart: eight bytes that are used for every
//! line of memory that is fetched. Codes keep the order of the coordinates, so a point and a cut whose codes differ need no
//! other look; where they agree, the coordinate itself decides.
//!
//! What it buys: a tree of 60 000 images of 784 pixels takes 0.058 instead of 0.085 s (docs/benchmarks/tree.md), and the
//! vector partition and the cells grown together, which rest on it, gain as much again.

use crate::process::NarrowCell;
use crate::simd::partition::{Column, partition, partition_by_codes, partition_stable};
use crate::simd::prefetch::prefetch_row;
use crate::tree::{Domain, PointStore};

/// The codes of all points of a store, for trees on one domain.
#[derive(Debug)]
pub struct Codes {
    /// Those of a point side by side, one point after the other, and one more: see [`Column`].
    by_point: Vec<u16>,
    /// Large cells are partitioned by a column, which stays in cache, so codes are kept column by column too.
    by_dim: Vec<u16>,
    n_points: usize,
    scales: Vec<Scale>,
}

/// From coordinates of one dimension to codes; rounding keeps their order too.
#[derive(Debug, Clone, Copy)]
struct Scale {
    lowest: f64,
    factor: f64,
}

impl Scale {
    /// Codes that spread over an interval; outside it and where it is a point or endless, many coordinates share one.
    fn of(lower: f64, upper: f64) -> Self {
        Self { lowest: lower, factor: f64::from(u16::MAX) / (upper - lower) }
    }

    /// The cast saturates.
    #[inline]
    fn code(self, x: f64) -> u16 {
        ((x - self.lowest) * self.factor) as u16
    }

    /// A coordinate that is smaller than all of this code and above.
    fn below(self, code: u16) -> f64 {
        let edge = self.lowest + (f64::from(code) - 0.01) / self.factor;
        if self.code(edge) < code { edge } else { f64::NEG_INFINITY }
    }

    /// A coordinate that is larger than all of this code and below.
    fn above(self, code: u16) -> f64 {
        let edge = self.lowest + (f64::from(code) + 1.01) / self.factor;
        if self.code(edge) > code { edge } else { f64::INFINITY }
    }
}

/// Fewer points are not read by a column, of which they would use a code for every line of memory.
const LEAST_BY_COLUMN: usize = 500;
/// As many codes fill a line of memory.
const LINE: usize = 32;
/// Where those of a point take less than a line, a column is for cells of this part of all points, or more: it is read to
/// the end. And larger tables are kept once.
const NARROW_SHARE: usize = 8;
const MOST_NARROW_BYTES: usize = 16 << 20;
/// A tree saves as much as this many columns cost, in round figures: 56 where points are uniform, 470 for images
/// (docs/benchmarks/tree.md).
const DIMS_A_TREE: usize = 80;
/// A smaller store is in cache as it is.
const LEAST_BYTES: usize = 1 << 20;
/// From so many points and dimensions on, small cells grown [side by side](crate::tree::lanes) save more than codes cost.
const LEAST_POINTS: usize = 1000;
const LEAST_DIMS: usize = 4;

impl Codes {
    /// The codes of all points of a store if making them pays for so many trees.
    pub(crate) fn if_worth(domain: &Domain, store: &PointStore, n_trees: usize) -> Option<Self> {
        let is_far = size_of_val(store.coordinates()) >= LEAST_BYTES && store.n_dims() <= DIMS_A_TREE * n_trees;
        let has_lanes = (LEAST_DIMS..=NarrowCell::MOST_DIMS).contains(&store.n_dims());
        (is_far || has_lanes && store.n_points() >= LEAST_POINTS).then(|| Self::new(domain, store))
    }

    /// The codes of all points of a store.
    pub fn new(domain: &Domain, store: &PointStore) -> Self {
        Self::of_rows(domain, store.coordinates())
    }

    /// The codes of rows, row-major.
    fn of_rows(domain: &Domain, rows: &[f64]) -> Self {
        let (n_dims, root) = (domain.n_dims(), domain.root_box());
        let scales: Vec<Scale> = root.lower().iter().zip(root.upper()).map(|(lo, hi)| Scale::of(*lo, *hi)).collect();
        let (mut by_point, n_points) = (by_point(rows, &scales), rows.len() / n_dims);
        let is_worth = n_dims > LINE || n_dims > 1 && size_of_val(&by_point[..]) <= MOST_NARROW_BYTES;
        let by_dim = if is_worth { by_dim(&by_point, n_dims) } else { Vec::new() };
        by_point.push(0);
        Self { by_point, by_dim, n_points, scales }
    }

    /// The code of a coordinate as a [signed number](Codes::to_signed).
    #[inline]
    pub(crate) fn signed(&self, dim: usize, x: f64) -> i16 {
        Self::to_signed(self.code(dim, x))
    }

    /// A code as a signed number of the same order: vectors of those can be compared.
    #[inline]
    pub(crate) fn to_signed(code: u16) -> i16 {
        (code ^ 0x8000).cast_signed()
    }

    /// The codes of a point.
    #[inline]
    pub(crate) fn of_point(&self, point: u32) -> &[u16] {
        let n_dims = self.scales.len();
        &self.by_point[point as usize * n_dims..][..n_dims]
    }

    /// Whether those of a point fit into a line of memory.
    pub(crate) fn are_narrow(&self) -> bool {
        self.scales.len() <= LINE
    }

    /// The codes of so many points in one dimension.
    #[inline]
    pub(crate) fn in_dim(&self, dim: usize, n_points: usize) -> Column<'_> {
        let least = if self.are_narrow() { self.n_points / NARROW_SHARE } else { 0 };
        if n_points < least.max(LEAST_BY_COLUMN) || self.by_dim.is_empty() {
            Column { codes: &self.by_point, stride: self.scales.len(), first: dim }
        } else {
            Column { codes: &self.by_dim, stride: 1, first: dim * self.n_points }
        }
    }

    /// The code of a coordinate.
    #[inline]
    pub(crate) fn code(&self, dim: usize, x: f64) -> u16 {
        self.scales[dim].code(x)
    }

    /// Bounds of coordinates with these codes, not the closest ones.
    pub(crate) fn range(&self, dim: usize, codes: impl Iterator<Item = u16>) -> (f64, f64) {
        let (least, most) = codes.fold((u16::MAX, 0), |(least, most), code| (least.min(code), most.max(code)));
        (self.scales[dim].below(least), self.scales[dim].above(most))
    }
}

/// Smaller tables of rows are in the cache nearest to the core as they are.
const LEAST_ROW_BYTES: usize = 1 << 17;

/// Fewer rows than this meet at few nodes.
const FEW: usize = 16;

/// Rows that go down trees together, with codes if there are many.
#[derive(Debug)]
pub struct CodedRows<'a> {
    rows: &'a [f64],
    n_dims: usize,
    codes: Option<Codes>,
}

impl<'a> CodedRows<'a> {
    /// Rows in measure coordinates, row-major and inside the root box.
    pub fn new(domain: &Domain, rows: &'a [f64]) -> Self {
        let n_dims = domain.n_dims();
        let is_worth = n_dims <= LINE && size_of_val(rows) >= LEAST_ROW_BYTES;
        Self { rows, n_dims, codes: is_worth.then(|| Codes::of_rows(domain, rows)) }
    }

    /// Whether they are better sent down one by one: together they would still meet at few nodes.
    pub(crate) fn are_few(&self) -> bool {
        self.n_rows() < FEW
    }

    /// Their number.
    pub fn n_rows(&self) -> usize {
        self.rows.len() / self.n_dims
    }

    /// One of them.
    #[inline]
    pub(crate) fn row(&self, row: u32) -> &'a [f64] {
        &self.rows[row as usize * self.n_dims..][..self.n_dims]
    }

    /// Asks for the memory of a row.
    #[inline]
    pub(crate) fn prefetch(&self, row: u32) {
        prefetch_row(self.rows, row as usize * self.n_dims, self.n_dims);
    }

    /// Whether a row lies below a cut.
    #[inline]
    pub(crate) fn is_below(&self, row: u32, dim: usize, location: f64) -> bool {
        self.rows[row as usize * self.n_dims + dim] <= location
    }

    /// As [`CodedRows::is_below`], read from the codes where there are any: a quarter of the memory.
    #[inline]
    pub(crate) fn is_code_below(&self, row: u32, dim: usize, location: f64) -> bool {
        let exact = |row: u32| self.is_below(row, dim, location);
        let Some(codes) = &self.codes else { return exact(row) };
        codes.in_dim(dim, 1).below(codes.code(dim, location), exact)(row)
    }

    /// Moves the rows below a cut to the front; how many there are. Few rows keep their order only if asked to.
    #[inline]
    pub(crate) fn part(
        &self,
        order: &mut [u32],
        scratch: &mut Vec<u32>,
        dim: usize,
        location: f64,
        keeps_order: bool,
    ) -> usize {
        let exact = |row: u32| self.is_below(row, dim, location);
        match &self.codes {
            _ if keeps_order => partition_stable(order, scratch, exact),
            Some(codes) => {
                partition_by_codes(order, scratch, codes.in_dim(dim, order.len()), codes.code(dim, location), exact)
            }
            None => partition(order, scratch, exact),
        }
    }

    /// Number of dimensions.
    pub(crate) fn n_dims(&self) -> usize {
        self.n_dims
    }
}

/// Row by row.
fn by_point(coordinates: &[f64], scales: &[Scale]) -> Vec<u16> {
    let mut codes = Vec::with_capacity(coordinates.len() + 1);
    for row in coordinates.chunks_exact(scales.len().max(1)) {
        codes.extend(row.iter().zip(scales).map(|(x, scale)| scale.code(*x)));
    }
    codes
}

/// Column by column from row by row, in tiles of which every line of memory, read or written, is used to its end.
fn by_dim(by_point: &[u16], n_dims: usize) -> Vec<u16> {
    let n_points = by_point.len() / n_dims;
    let mut codes = vec![0; by_point.len() + 1];
    for (block, rows) in by_point.chunks(LINE * n_dims).enumerate() {
        for first in (0..n_dims).step_by(LINE) {
            for dim in first..(first + LINE).min(n_dims) {
                let column = &mut codes[dim * n_points + block * LINE..][..rows.len() / n_dims];
                for (code, row) in column.iter_mut().zip(rows.chunks_exact(n_dims)) {
                    *code = row[dim];
                }
            }
        }
    }
    codes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lifetime;
    use crate::process::{Bounds, NodeKey};

    /// Coordinates around an interval, its ends and their neighbours among them.
    fn around(lower: f64, upper: f64) -> Vec<f64> {
        let within = (0..2000).map(|i| lower + (upper - lower) * NodeKey::root(1, i).draw(0).uniform());
        let ends = [lower, upper, lower - 1.0, upper + 1.0, f64::MIN, f64::MAX, 0.0];
        let near = ends.iter().flat_map(|x| [x.next_down(), *x, x.next_up()]);
        let mut all: Vec<f64> = within.chain(near).filter(|x| x.is_finite()).collect();
        all.sort_unstable_by(f64::total_cmp);
        all
    }

    #[test]
    fn codes_keep_the_order_and_their_edges_bound_them() {
        let tiny = f64::MIN_POSITIVE;
        for (lower, upper) in
            [(0.0, 1.0), (-3e5, 7.5), (f64::MIN, f64::MAX), (2.0, 2.0), (0.0, tiny), (1e9, 1e9 + 1e-6)]
        {
            let scale = Scale::of(lower, upper);
            let all = around(lower, upper);
            for pair in all.windows(2) {
                assert!(scale.code(pair[0]) <= scale.code(pair[1]), "{pair:?} on [{lower}, {upper}]");
            }
            for (i, x) in all.iter().enumerate() {
                let code = scale.code(*x);
                let (below, above) = (scale.below(code), scale.above(code));
                assert!(below < *x && *x < above, "{x} on [{lower}, {upper}]");
                assert!(all[i..].iter().all(|larger| *larger > below));
                assert!(all[..i].iter().all(|smaller| *smaller < above));
            }
        }
    }

    #[test]
    fn codes_are_made_where_they_pay() {
        let is_worth = |n_points: usize, n_dims: usize, n_trees: usize| {
            let domain =
                Domain::new(0, &Bounds::new(&vec![0.0; n_dims], &vec![1.0; n_dims]).unwrap(), Lifetime::INFINITE);
            let mut store = PointStore::new(n_dims);
            for row in 0..n_points {
                let x: Vec<f64> =
                    (0..n_dims).map(|dim| NodeKey::root(2, row as u64).draw(dim as u32).uniform()).collect();
                store.add(&x).unwrap();
            }
            Codes::if_worth(&domain.unwrap(), &store, n_trees).is_some()
        };
        // Near as they are; enough for lanes, or not; narrow ones for one tree; images for the ten trees of the benchmarks, not
        // for one.
        assert!(!is_worth(100, 10, 10));
        assert!(is_worth(1000, 10, 1) && is_worth(1000, 16, 1) && !is_worth(1000, 3, 1) && !is_worth(1000, 17, 1));
        assert!(is_worth(14_000, 10, 1));
        assert!(is_worth(200, 784, 10) && !is_worth(200, 784, 1));
    }

    #[test]
    fn a_unit_interval_uses_all_codes() {
        let scale = Scale::of(0.0, 1.0);
        assert_eq!([0.0, 0.5, 1.0, 2.0, -1.0].map(|x| scale.code(x)), [0, 32767, 65535, 65535, 0]);
    }
}
