//! The cells of one tree with their masses: what a picture of a density, and the plainest check of it, need.

use crate::forest::density::DensityView;
use crate::forest::density::polya::Polya;
use crate::forest::density::way::CellPath;
use crate::process::{Measure, Side};
use crate::tree::Kind;
use crate::{Error, Result};

/// A cell of a tree's density.
#[derive(Debug, Clone, PartialEq)]
pub struct DensityCell {
    /// Lower bounds in raw units.
    pub lower: Vec<f64>,
    /// Upper bounds in raw units.
    pub upper: Vec<f64>,
    /// The expected probability mass.
    pub mass: f64,
    /// Number of learned rows in the cell.
    pub n_rows: u32,
}

impl DensityView<'_> {
    /// The cells that tree `tree` divides the box into. A region without rows is one cell, however the process
    /// would cut it: its expected density is the same everywhere.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] if there is no such tree.
    pub fn cells(&self, tree: usize) -> Result<Vec<DensityCell>> {
        let forest = self.model.forest();
        if tree >= forest.n_trees() {
            return Err(Error::InvalidParameter { name: "tree", value: tree as f64, expected: "below n_trees" });
        }
        let (structure, store) = (&forest.trees()[tree].0, forest.store());
        let polya = Polya { gamma: self.model.gamma() };
        let mut way = CellPath::new(forest.domain().root_cell(structure.key()));
        let mut cells = Vec::new();
        let mut tasks = vec![(structure.root(), None, 0, 1.0)];
        while let Some((child, step, depth, mass)) = tasks.pop() {
            way.return_to(depth);
            if let Some((cut, side)) = step {
                way.enter(cut, side);
            }
            match child.kind() {
                Kind::Inner(id) if structure.node(id).time() <= self.lifetime.get() => {
                    let node = structure.node(id);
                    let rows = structure.children(node).map(|child| structure.rows_of(child, store));
                    let masses = polya.masses(&way.split(forest.measure(), &node.cut(), rows));
                    for side in [Side::Above, Side::Below] {
                        let share = mass * masses[side.index()];
                        tasks.push((structure.child(node, side), Some((node.cut(), side)), way.depth(), share));
                    }
                }
                Kind::Single(point) => self.cells_of_single(point, mass, &mut way, &mut cells),
                _ => cells.push(self.cell(&way, mass, structure.rows_of(child, store))),
            }
        }
        Ok(cells)
    }

    /// The cells that a frozen cell is cut into along its point.
    fn cells_of_single(&self, point: u32, mut mass: f64, way: &mut CellPath, cells: &mut Vec<DensityCell>) {
        let forest = self.model.forest();
        let n_rows = forest.store().multiplicity(point);
        let polya = Polya { gamma: self.model.gamma() };
        let mut walk = way.cell();
        while let Some(cut) = walk.next_cut_until(self.lifetime.get()) {
            let side = Side::of(forest.store().point(point)[cut.dim as usize], cut.location);
            let rows = if side == Side::Below { [n_rows, 0] } else { [0, n_rows] };
            let masses = polya.masses(&way.split(forest.measure(), &cut, rows));
            way.enter(cut, side.other());
            cells.push(self.cell(way, mass * masses[side.other().index()], 0));
            way.return_to(way.depth() - 1);
            way.enter(cut, side);
            walk.enter(&cut, side);
            mass *= masses[side.index()];
        }
        cells.push(self.cell(way, mass, n_rows));
    }

    fn cell(&self, way: &CellPath, mass: f64, n_rows: u32) -> DensityCell {
        let (lower, upper) = self.raw_bounds(way);
        DensityCell { lower, upper, mass, n_rows }
    }

    /// The current cell of a way in raw units. Sides of the root box are taken as they were given: a dimension of weight
    /// zero has no other.
    pub(crate) fn raw_bounds(&self, way: &CellPath) -> (Vec<f64>, Vec<f64>) {
        let forest = self.model.forest();
        let (root, raw) = (forest.domain().root_box(), self.model.bounds());
        let place = |dim: usize, u: f64, whole: f64, given: f64| {
            let x = if u == whole { given } else { forest.measure().place(dim, u) };
            x.clamp(raw.lower()[dim], raw.upper()[dim])
        };
        let lower = (0..way.lower().len()).map(|d| place(d, way.lower()[d], root.lower()[d], raw.lower()[d]));
        let upper = (0..way.upper().len()).map(|d| place(d, way.upper()[d], root.upper()[d], raw.upper()[d]));
        (lower.collect(), upper.collect())
    }
}
