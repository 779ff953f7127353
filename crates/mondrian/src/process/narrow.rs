//! A self-contained cell of few dimensions, for processing many cells at once.
//!
//! [`Cell`] is one walk, which has to return to a cell before it enters another. This is a copy of one cell, with each
//! step of the way to its next cut on its own and without a branch, so that steps of many can be done together. The
//! numbers are those of [`Cell`], bit for bit.

#![expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]

use crate::process::cell::{Cell, Clock, Cut};
use crate::process::gaps::{clamped, whole};
use crate::process::sides::{FAN, SIZE, STEPS, pick_in, replace, sum_up};
use crate::process::{Draw, NodeKey, Side};

/// Bounds of a cell of at most [`FAN`] dimensions: upper ones, then lower ones; zeros where there is no dimension.
///
/// Indices are reduced modulo the powers of two that they are below, which is free and spares a bounds check in every
/// step of a walk; that they are below is asserted in the tests' build.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NarrowBounds([f64; 2 * FAN]);

impl NarrowBounds {
    pub(crate) fn new(lower: &[f64], upper: &[f64]) -> Self {
        let mut bounds = [0.0; 2 * FAN];
        bounds[..upper.len()].copy_from_slice(upper);
        bounds[FAN..][..lower.len()].copy_from_slice(lower);
        Self(bounds)
    }

    /// The interval in one dimension.
    #[inline(always)]
    pub(crate) fn interval(&self, dim: usize) -> (f64, f64) {
        debug_assert!(dim < FAN, "a narrow cell has few dimensions");
        let dim = dim % FAN;
        (self.0[FAN + dim], self.0[dim])
    }

    /// Sets the bound that a cut gives to those on one side of it; what it was.
    #[inline(always)]
    pub(crate) fn replace(&mut self, dim: usize, side: Side, location: f64) -> f64 {
        debug_assert!(dim < FAN, "a narrow cell has few dimensions");
        std::mem::replace(&mut self.0[side as usize * FAN + dim % FAN], location)
    }

    /// Upper and lower bounds.
    #[inline(always)]
    pub(crate) fn as_slices(&self) -> (&[f64], &[f64]) {
        self.0.split_at(FAN)
    }
}

/// A cell of at most [`FAN`] dimensions and one clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NarrowCell {
    bounds: NarrowBounds,
    /// Lengths of the sides and their sums, as [`crate::process::Sides`] keeps a block.
    sums: [f64; SIZE],
    clock: Clock,
}

impl Default for NarrowCell {
    fn default() -> Self {
        let clock = Clock { key: NodeKey::from_bits(0), birth: 0.0 };
        Self { bounds: NarrowBounds([0.0; 2 * FAN]), sums: [0.0; SIZE], clock }
    }
}

impl NarrowCell {
    /// Dimensions that it has at most.
    pub(crate) const MOST_DIMS: usize = FAN;

    /// Whether the cells of a walk can be represented by this type.
    pub(crate) fn can_be(cell: &Cell) -> bool {
        cell.lower().len() <= FAN && cell.is_on_one_box()
    }

    /// Makes it the cell that a walk is in, which [can be](NarrowCell::can_be) one.
    pub(crate) fn set(&mut self, cell: &Cell) {
        let (lower, upper) = (cell.lower(), cell.upper());
        self.clock = cell.clocks().0[0];
        self.bounds = NarrowBounds::new(lower, upper);
        if let Some(sums) = cell.outermost_part().only_block() {
            self.sums = *sums;
            return;
        }
        self.sum_lengths();
    }

    /// Makes it the cell with these bounds and this clock; [`NarrowCell::sum_lengths`] must follow.
    #[inline(always)]
    pub(crate) fn set_to(&mut self, bounds: &NarrowBounds, clock: Clock) {
        (self.bounds, self.clock) = (*bounds, clock);
    }

    /// Finds the lengths of all sides from the bounds, and their sums.
    #[inline(always)]
    pub(crate) fn sum_lengths(&mut self) {
        for dim in 0..FAN {
            let (lower, upper) = self.bounds.interval(dim);
            self.sums[FAN + dim] = whole(lower, upper);
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

    pub(crate) fn bounds(&self) -> &NarrowBounds {
        &self.bounds
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
        let (lower, upper) = self.bounds.interval(dim);
        clamped(lower, upper, within)
    }

    /// Goes to one side of its next cut.
    #[inline(always)]
    pub(crate) fn enter(&mut self, cut: &Cut, side: Side) {
        let dim = cut.dim as usize;
        self.bounds.replace(dim, side, cut.location);
        self.clock = Clock { key: self.clock.key.child(side), birth: cut.time };
        let (lower, upper) = self.bounds.interval(dim);
        replace::<STEPS>(&mut self.sums, dim % FAN, whole(lower, upper));
    }
}
