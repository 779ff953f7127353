//! A self-contained cell of few dimensions, for processing many cells at once.
//!
//! [`Cell`] is one walk, which has to return to a cell before it enters another. This is a copy of one cell, with each
//! step of the way to its next cut on its own and without a branch, so that steps of many can be done together. The
//! numbers are those of [`Cell`], bit for bit.

#![expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]

use crate::process::cell::{Cell, Clock, Cut};
use crate::process::gaps::{clamped, whole};
use crate::process::sides::{FAN, SIZE, STEPS, pick_in, replace, sum_up};
use crate::process::{Draw, NodeKey};

/// A cell of at most [`FAN`] dimensions and one clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NarrowCell {
    /// Upper bounds, then lower ones; zeros where there is no dimension.
    bounds: [f64; 2 * FAN],
    /// Lengths of the sides and their sums, as [`crate::process::Sides`] keeps a block.
    sums: [f64; SIZE],
    clock: Clock,
}

impl Default for NarrowCell {
    fn default() -> Self {
        let clock = Clock { key: NodeKey::from_bits(0), birth: 0.0 };
        Self { bounds: [0.0; 2 * FAN], sums: [0.0; SIZE], clock }
    }
}

impl NarrowCell {
    /// Dimensions that it has at most.
    pub(crate) const MOST_DIMS: usize = FAN;

    /// Whether the cells of a walk can be represented by this type.
    pub(crate) fn can_be(cell: &Cell) -> bool {
        cell.lower().len() <= FAN && cell.clocks().0.len() == 1
    }

    /// Makes it the cell that a walk is in, which [can be](NarrowCell::can_be) one.
    pub(crate) fn set(&mut self, cell: &Cell) {
        let (lower, upper) = (cell.lower(), cell.upper());
        self.clock = cell.clocks().0[0];
        self.bounds[..upper.len()].copy_from_slice(upper);
        self.bounds[FAN..][..lower.len()].copy_from_slice(lower);
        if let Some(sums) = cell.outermost_part().only_block() {
            self.sums = *sums;
            return;
        }
        for dim in 0..lower.len() {
            self.sums[FAN + dim] = whole(lower[dim], upper[dim]);
        }
        sum_up(&mut self.sums);
    }

    /// Makes it the same cell, part by part: pieces of that size are copied without a call.
    #[inline(always)]
    pub(crate) fn copy_from(&mut self, other: &Self) {
        self.bounds = other.bounds;
        self.sums = other.sums;
        self.clock = other.clock;
    }

    /// Upper and lower bounds, with zeros where there is no dimension.
    pub(crate) fn bounds(&self) -> (&[f64], &[f64]) {
        self.bounds.split_at(FAN)
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// When the cell came to be.
    #[inline(always)]
    pub(crate) fn birth(&self) -> f64 {
        self.clock.birth
    }

    /// What decides on its next cut.
    #[inline(always)]
    pub(crate) fn draw(&self) -> Draw {
        self.clock.key.draw(0)
    }

    /// Linear dimension.
    #[inline(always)]
    pub(crate) fn rate(&self) -> f64 {
        self.sums[1]
    }

    /// The dimension that a place along all sides falls into, and the place in it.
    #[inline(always)]
    pub(crate) fn pick(&self, mut at: f64) -> (usize, f64) {
        let dim = pick_in::<STEPS>(&self.sums, &mut at);
        (dim, at)
    }

    /// A place along a side as a coordinate.
    #[inline(always)]
    pub(crate) fn locate(&self, dim: usize, within: f64) -> f64 {
        let dim = dim % FAN;
        clamped(self.bounds[FAN + dim], self.bounds[dim], within)
    }

    /// Goes to one side of its next cut.
    #[inline(always)]
    pub(crate) fn enter(&mut self, cut: &Cut, side: usize) {
        let dim = cut.dim as usize % FAN;
        self.bounds[(side * FAN + dim) % (2 * FAN)] = cut.location;
        self.clock = Clock { key: self.clock.key.child_on(side), birth: cut.time };
        replace::<STEPS>(&mut self.sums, dim, whole(self.bounds[FAN + dim], self.bounds[dim]));
    }
}
