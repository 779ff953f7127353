//! New points from a density.

use crate::forest::density::DensityView;
use crate::forest::density::polya::{Polya, Split};
use crate::forest::density::way::CellPath;
use crate::process::{Cell, NodeKey, Side};
use crate::tree::{Kind, Tree};

/// What the keys of samples are forked with, so that they have nothing to do with the trees' own.
const SAMPLES: u64 = 0x5361_6D70_6C65;

impl DensityView<'_> {
    /// `n_rows` independent points of the density, row-major in raw units: a function of the seed and the row's number.
    ///
    /// A tree by lot, then a side of each cut by the sides' expected masses, then a uniform point of the cell. Where a
    /// cell holds no rows the walk ends early: the expected density is uniform there.
    pub fn sample(&self, n_rows: usize, seed: u64) -> Vec<f64> {
        let key = NodeKey::root(seed, SAMPLES);
        (0..n_rows).flat_map(|row| self.sample_one(key.fork(row as u64))).collect()
    }

    fn sample_one(&self, key: NodeKey) -> Vec<f64> {
        let forest = self.model.forest();
        let lot = (key.draw(0).uniform() * forest.n_trees() as f64) as usize;
        let tree = &forest.trees()[lot.min(forest.n_trees() - 1)].0;
        let way = self.walk_down(tree, key.fork(0));
        let place = key.fork(1);
        let (lower, upper) = self.raw_bounds(&way);
        let uniform = |dim: usize| {
            let u = place.draw(dim as u32).uniform();
            (lower[dim] + u * (upper[dim] - lower[dim])).clamp(lower[dim], upper[dim])
        };
        (0..lower.len()).map(uniform).collect()
    }

    /// A random way down, by masses, to a cell that is not cut or holds no rows.
    fn walk_down(&self, tree: &Tree, key: NodeKey) -> CellPath {
        let forest = self.model.forest();
        let store = forest.store();
        let mut way = CellPath::new(forest.domain().root_cell(tree.key()));
        let mut child = tree.root();
        loop {
            match child.kind() {
                Kind::Inner(id) if tree.node(id).time() <= self.lifetime.get() => {
                    let node = tree.node(id);
                    let rows = tree.children(node).map(|child| tree.rows_of(child, store));
                    let side = self.lot(key, &way.split(forest.measure(), &node.cut(), rows));
                    way.enter(node.cut(), side);
                    child = tree.child(node, side);
                }
                Kind::Single(point) => {
                    self.walk_down_frozen(point, key, &mut way);
                    return way;
                }
                _ => return way,
            }
        }
    }

    fn walk_down_frozen(&self, point: u32, key: NodeKey, way: &mut CellPath) {
        let forest = self.model.forest();
        let n_rows = forest.store().multiplicity(point);
        let mut cell: Cell = way.cell();
        while let Some(cut) = cell.next_cut_until(self.lifetime.get()) {
            let home = Side::of(forest.store().point(point)[cut.dim as usize], cut.location);
            let rows = if home == Side::Below { [n_rows, 0] } else { [0, n_rows] };
            let side = self.lot(key, &way.split(forest.measure(), &cut, rows));
            way.enter(cut, side);
            if side != home {
                return;
            }
            cell.enter(&cut, side);
        }
    }

    /// A side by lot.
    fn lot(&self, key: NodeKey, split: &Split) -> Side {
        let masses = Polya { gamma: self.model.gamma() }.masses(split);
        let u = key.draw(split.depth as u32).uniform();
        if u < masses[Side::Below.index()] { Side::Below } else { Side::Above }
    }
}
