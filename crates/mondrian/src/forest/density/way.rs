//! The path from the root of a tree down to a cell, and back.

use crate::forest::density::polya::{Split, shares};
use crate::process::{BuiltInMeasure, Cell, Cut, Side};

/// A cell's bounds, in measure coordinates, with the cuts that led to it.
#[derive(Debug)]
pub(crate) struct CellPath {
    root: Cell,
    lower: Vec<f64>,
    upper: Vec<f64>,
    steps: Vec<(Cut, Side)>,
    replaced: Vec<f64>,
}

impl CellPath {
    pub(crate) fn new(root: Cell) -> Self {
        let (lower, upper) = (root.lower().to_vec(), root.upper().to_vec());
        Self { root, lower, upper, steps: Vec::new(), replaced: Vec::new() }
    }

    /// Cuts above the current cell.
    pub(crate) fn depth(&self) -> usize {
        self.steps.len()
    }

    pub(crate) fn lower(&self) -> &[f64] {
        &self.lower
    }

    pub(crate) fn upper(&self) -> &[f64] {
        &self.upper
    }

    /// The cut of the current cell, as a density sees it.
    #[inline]
    pub(crate) fn split(&self, measure: &BuiltInMeasure, cut: &Cut, rows: [u32; 2]) -> Split {
        let dim = cut.dim as usize;
        let interval = (self.lower[dim], cut.location, self.upper[dim]);
        Split { time: cut.time, depth: self.depth(), rows, share: shares(measure, dim, interval) }
    }

    /// The keyed walk at the current cell, for cuts that no node holds.
    pub(crate) fn cell(&self) -> Cell {
        let mut cell = self.root.clone();
        cell.jump(&self.steps);
        cell
    }

    pub(crate) fn enter(&mut self, cut: Cut, side: Side) {
        let dim = cut.dim as usize;
        let bound = match side {
            Side::Below => &mut self.upper[dim],
            Side::Above => &mut self.lower[dim],
        };
        self.replaced.push(std::mem::replace(bound, cut.location));
        self.steps.push((cut, side));
    }

    pub(crate) fn return_to(&mut self, depth: usize) {
        while self.steps.len() > depth {
            let (cut, side) = self.steps.pop().expect("the way is longer than the depth");
            let bound = self.replaced.pop().expect("one replaced bound a step");
            match side {
                Side::Below => self.upper[cut.dim as usize] = bound,
                Side::Above => self.lower[cut.dim as usize] = bound,
            }
        }
    }
}
