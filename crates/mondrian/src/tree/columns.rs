//! Coordinates in sixteen bits, column by column: what growing reads of large cells.
//!
//! A large cell is parted by one coordinate of each of its points, and rows lie far apart: eight bytes that are used for
//! every line of memory that is fetched. Codes keep the order of the coordinates, so a point and a cut whose codes differ
//! need no other look; where they agree, the coordinate itself decides. A column of codes stays in cache.

use super::{Ground, PointStore};

/// The codes of all points of a store, for trees on one ground.
#[derive(Debug)]
pub struct Columns {
    /// One column after the other, by slot.
    codes: Vec<u16>,
    n_slots: usize,
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

/// Rows coded together: their codes in a column fill a line of memory.
const ROWS: usize = 32;
/// Dimensions coded together: a row's coordinates in them fill a line.
const DIMS: usize = 8;

/// A tree saves as much as this many columns cost, in round figures (docs/performance.md).
const DIMS_A_TREE: usize = 64;
/// A smaller store is in cache as it is.
const LEAST_BYTES: usize = 1 << 20;

impl Columns {
    /// The codes of all points of a store if making them pays for so many trees.
    pub(crate) fn if_worth(ground: &Ground, store: &PointStore, n_trees: usize) -> Option<Self> {
        let is_far = size_of_val(store.coordinates()) >= LEAST_BYTES;
        (is_far && store.n_dims() <= DIMS_A_TREE * n_trees).then(|| Self::new(ground, store))
    }

    /// The codes of all points of a store.
    pub fn new(ground: &Ground, store: &PointStore) -> Self {
        let (n_dims, n_slots) = (store.n_dims(), store.n_slots());
        let root = ground.root_box();
        let scales: Vec<Scale> = root.lower().iter().zip(root.upper()).map(|(lo, hi)| Scale::of(*lo, *hi)).collect();
        let mut codes = vec![0; n_dims * n_slots];
        // Tiles of which every line of memory, read or written, is used to its end.
        for (block, rows) in store.coordinates().chunks(ROWS * n_dims.max(1)).enumerate() {
            for (tile, scales) in scales.chunks(DIMS).enumerate() {
                for (row, x) in rows.chunks_exact(n_dims).enumerate() {
                    let slot = tile * DIMS * n_slots + block * ROWS + row;
                    for (at, (scale, x)) in scales.iter().zip(&x[tile * DIMS..]).enumerate() {
                        codes[slot + at * n_slots] = scale.code(*x);
                    }
                }
            }
        }
        Self { codes, n_slots, scales }
    }

    #[inline]
    fn column(&self, dim: usize) -> &[u16] {
        &self.codes[dim * self.n_slots..][..self.n_slots]
    }

    /// Whether points lie below a cut, as [`Side::of`](crate::process::Side::of) says; `exact` gives a coordinate.
    #[inline]
    pub(super) fn is_below(&self, dim: usize, location: f64, exact: impl Fn(u32) -> f64) -> impl Fn(u32) -> bool {
        let (column, cut) = (self.column(dim), self.scales[dim].code(location));
        move |point| {
            let code = column[point as usize];
            if code == cut { exact(point) <= location } else { code < cut }
        }
    }

    /// Bounds of some points in one dimension, not the closest ones.
    pub(super) fn range(&self, points: &[u32], dim: usize) -> (f64, f64) {
        let (column, scale) = (self.column(dim), self.scales[dim]);
        let codes = points.iter().map(|point| column[*point as usize]);
        let (least, most) = codes.fold((u16::MAX, 0), |(least, most), code| (least.min(code), most.max(code)));
        (scale.below(least), scale.above(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::NodeKey;

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
    fn a_unit_interval_uses_all_codes() {
        let scale = Scale::of(0.0, 1.0);
        assert_eq!([0.0, 0.5, 1.0, 2.0, -1.0].map(|x| scale.code(x)), [0, 32767, 65535, 65535, 0]);
    }
}
