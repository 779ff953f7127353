//! Pólya-tree masses on the cells of a tree (report, appendix C).
//!
//! A cell at depth d that is cut passes its mass P on to its sides as εP and (1 − ε)P with the prior
//! ε ~ Beta(γ r₁ (d+1)², γ r₂ (d+1)²), where r₁ + r₂ = 1 are the sides' shares of the cell's volume. With n₁ + n₂ = n
//! rows in the sides the posterior mean of ε is (γ r₁ (d+1)² + n₁)/(γ (d+1)² + n). A density is mass over volume, so a
//! cut multiplies it by
//!
//! ```text
//! (γ (d+1)² + n₁/r₁) / (γ (d+1)² + n)
//! ```
//!
//! on side 1: no volume but the root's is ever needed, only the shares. Two things follow. In a cell without rows
//! the factor is 1 however it is cut, so empty regions are never instantiated. And if one of the rows of side 1 is left
//! out, n₁ and n become n₁ − 1 and n − 1 at every cut above it: all rows of a cell share one leave-one-out product.

use std::hint::select_unpredictable;

use crate::process::{BuiltInMeasure, Measure, Side};

/// A cut as a density sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Split {
    /// When.
    pub(crate) time: f64,
    /// Cuts above this one, those with an empty side counted.
    pub(crate) depth: usize,
    /// Rows on each side.
    pub(crate) rows: [u32; 2],
    /// Share of the cell's volume on each side.
    pub(crate) share: [f64; 2],
}

/// A cut with all rows of the cell on one side.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CutOff {
    /// Cuts above this one.
    pub(crate) depth: usize,
    /// Rows of the cell.
    pub(crate) rows: u32,
    /// Share of the cell's volume on the side that has them.
    pub(crate) share: f64,
}

/// The prior of all masses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Polya {
    pub(crate) gamma: f64,
}

impl Polya {
    /// γ (d+1)²: the rows that the prior is worth.
    #[inline]
    fn strength(self, depth: usize) -> f64 {
        let level = (depth + 1) as f64;
        self.gamma * level * level
    }

    /// The expected shares of the cell's mass that its sides get.
    pub(crate) fn masses(self, split: &Split) -> [f64; 2] {
        let strength = self.strength(split.depth);
        let total = strength + n_rows(split);
        [0, 1].map(|side| (strength * split.share[side] + f64::from(split.rows[side])) / total)
    }

    /// What the cut multiplies the density with on each side.
    #[inline]
    pub(crate) fn growth(self, split: &Split) -> [f64; 2] {
        let strength = self.strength(split.depth);
        let total = strength + n_rows(split);
        let of_side = |side: usize| (strength + crowding(split.rows[side], split.share[side])) / total;
        [of_side(0), of_side(1)]
    }

    /// [`Polya::growth`] of the side that has the rows, and of the other.
    #[inline]
    pub(crate) fn growth_of_cut_off(self, CutOff { depth, rows, share }: CutOff) -> [f64; 2] {
        let strength = self.strength(depth);
        let total = strength + f64::from(rows);
        [(strength + crowding(rows, share)) / total, strength / total]
    }

    /// The same without one of the rows of that side; 1 for a side that has none to leave out.
    #[inline]
    pub(crate) fn growth_without_one(self, split: &Split) -> [f64; 2] {
        let strength = self.strength(split.depth);
        // In this order: a cell of one row then gives exactly 1.
        let total = strength + (n_rows(split) - 1.0);
        [0, 1].map(|side| match split.rows[side] {
            0 => 1.0,
            rows => (strength + crowding(rows - 1, split.share[side])) / total,
        })
    }
}

fn n_rows(split: &Split) -> f64 {
    f64::from(split.rows[0]) + f64::from(split.rows[1])
}

/// Rows over share of the volume. A side without rows may be so thin that its share is zero.
#[inline]
fn crowding(rows: u32, share: f64) -> f64 {
    if rows == 0 { 0.0 } else { f64::from(rows) / share }
}

/// The shares of the volume on both sides of a cut, given the cell's interval along its dimension.
#[inline]
pub(crate) fn shares(measure: &BuiltInMeasure, dim: usize, interval: (f64, f64, f64)) -> [f64; 2] {
    let (lower, cut, upper) = proportional(measure, dim, interval);
    [(cut - lower) / (upper - lower), (upper - cut) / (upper - lower)]
}

/// The share on one side.
#[inline]
pub(crate) fn share(measure: &BuiltInMeasure, dim: usize, interval: (f64, f64, f64), side: Side) -> f64 {
    let (lower, cut, upper) = proportional(measure, dim, interval);
    // Which side it is cannot be predicted.
    select_unpredictable(side == Side::Below, cut - lower, upper - cut) / (upper - lower)
}

/// An interval and a cut of it in coordinates whose differences are proportional to volumes.
///
/// Volumes are in raw units. A weight scales numerator and denominator alike; a quantile measure does not, so there the
/// three places are looked up.
#[inline]
fn proportional(measure: &BuiltInMeasure, dim: usize, interval: (f64, f64, f64)) -> (f64, f64, f64) {
    if let BuiltInMeasure::Quantile(_) = measure {
        let (lower, cut, upper) = interval;
        let (a, c, b) = (measure.place(dim, lower), measure.place(dim, cut), measure.place(dim, upper));
        // Where rounding makes two places equal, the measure coordinates still distinguish them.
        if a < c && c < b {
            return (a, c, b);
        }
    }
    interval
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masses_sum_to_one_and_growth_is_mass_over_volume() {
        let split = Split { time: 0.0, depth: 3, rows: [5, 2], share: [0.3, 0.7] };
        let polya = Polya { gamma: 0.7 };
        let (masses, growth) = (polya.masses(&split), polya.growth(&split));
        assert!((masses[0] + masses[1] - 1.0).abs() < 1e-15);
        let strength = 0.7 * 16.0;
        assert!((masses[0] - (strength * 0.3 + 5.0) / (strength + 7.0)).abs() < 1e-15);
        for side in [0, 1] {
            assert!((growth[side] - masses[side] / split.share[side]).abs() < 1e-14);
        }
        let fewer = Split { rows: [4, 2], ..split };
        assert_eq!(polya.growth_without_one(&split)[0], polya.growth(&fewer)[0]);
    }

    #[test]
    fn a_cut_off_has_the_bits_of_a_split() {
        let draw = |i: u64| crate::process::NodeKey::root(9, i).draw(0);
        for i in 0..10_000 {
            let (lower, upper) = (draw(3 * i).uniform() - 0.5, draw(3 * i).second_uniform() + 0.6);
            let cut = lower + draw(3 * i + 1).uniform() * (upper - lower);
            let (rows, depth) = ((draw(3 * i + 2).exponential() * 40.0) as u32, (i % 90) as usize);
            let polya = Polya { gamma: draw(3 * i + 1).exponential() };
            let interval = (lower, cut, upper);
            let both = shares(&BuiltInMeasure::Uniform, 0, interval);
            for full in Side::BOTH {
                let share = share(&BuiltInMeasure::Uniform, 0, interval, full);
                let mut counts = [0; 2];
                counts[full.index()] = rows;
                let growth = polya.growth(&Split { time: 0.0, depth, rows: counts, share: both });
                let found = polya.growth_of_cut_off(CutOff { depth, rows, share });
                let expected = [growth[full.index()], growth[full.other().index()]];
                assert_eq!(found.map(f64::to_bits), expected.map(f64::to_bits));
            }
        }
    }

    #[test]
    fn a_cell_without_rows_keeps_its_density() {
        let empty = Split { time: 0.0, depth: 7, rows: [0, 0], share: [0.0, 1.0] };
        assert_eq!(Polya { gamma: 2.0 }.growth(&empty), [1.0, 1.0]);
        let last = Split { rows: [0, 1], ..empty };
        assert_eq!(Polya { gamma: 2.0 }.growth_without_one(&last), [1.0, 1.0]);
    }
}
