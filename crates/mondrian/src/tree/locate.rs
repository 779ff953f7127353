//! Where a point lies in a tree at a lifetime: exactly, frozen cells included.

use super::node::Kind;
use super::{Child, Ground, PointStore, Tree};
use crate::process::{Cell, Cut, Side};

/// The cell a point lies in at some lifetime.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Landing {
    /// A cell that holds training points: all those under this child.
    Seen(Child),
    /// A cell without training points, which the point came to at `time`, below the cell of `parent`.
    Unseen {
        /// The time of the cut that took the point away from the training points.
        time: f64,
        /// The smallest part of the tree that still had the point.
        parent: Child,
    },
}

/// Finds cells of points, one after the other; keeps what it needs to resume frozen cells.
#[derive(Debug)]
pub struct Locator<'a> {
    tree: &'a Tree,
    store: &'a PointStore,
    lifetime: f64,
    cell: Cell,
    way: Vec<(Cut, Side)>,
}

impl<'a> Locator<'a> {
    /// Looks at `tree` with a lifetime of at most the ground's.
    pub fn new(tree: &'a Tree, ground: &Ground, store: &'a PointStore, lifetime: crate::Lifetime) -> Self {
        let lifetime = lifetime.min(ground.lifetime()).get();
        Self { tree, store, lifetime, cell: ground.root_cell(tree.key()), way: Vec::new() }
    }

    /// The cell of a point of the root box.
    pub fn locate(&mut self, x: &[f64]) -> Landing {
        let mut child = self.tree.root();
        self.way.clear();
        let mut above = child;
        loop {
            match child.kind() {
                Kind::Inner(id) => {
                    let node = self.tree.node(id);
                    if node.time > self.lifetime {
                        return Landing::Seen(child);
                    }
                    let side = node.side_of(x);
                    self.way.push((node.cut(), side));
                    above = child;
                    child = node.child(side);
                }
                Kind::Leaf(_) => return Landing::Seen(child),
                Kind::Single(point) => return self.resume(x, point, child),
                Kind::Empty => {
                    let time = self.way.last().map_or(0.0, |(cut, _)| cut.time);
                    return Landing::Unseen { time, parent: above };
                }
            }
        }
    }

    /// The training cell that a point of the root box may share, and with what probability it does: cuts of frozen
    /// cells, which nobody looked at, are integrated over (design, section 1). An empty child where it shares none.
    pub fn locate_in_law(&mut self, x: &[f64]) -> (Child, f64) {
        let mut child = self.tree.root();
        let mut birth = 0.0;
        while let Kind::Inner(id) = child.kind() {
            let node = self.tree.node(id);
            if node.time > self.lifetime {
                return (child, 1.0);
            }
            birth = node.time;
            child = node.child(node.side_of(x));
        }
        let stays = match child.kind() {
            Kind::Single(point) => {
                let distance: f64 = x.iter().zip(self.store.point(point)).map(|(a, b)| (a - b).abs()).sum();
                if distance == 0.0 { 1.0 } else { (-(self.lifetime - birth) * distance).exp() }
            }
            _ => 1.0,
        };
        (child, stays)
    }

    /// Cuts a frozen cell on until `x` and its point part or the lifetime ends. Stores nothing.
    fn resume(&mut self, x: &[f64], point: u32, child: Child) -> Landing {
        let frozen = self.store.point(point);
        if frozen == x {
            return Landing::Seen(child);
        }
        self.cell.restart(self.tree.key());
        self.cell.jump(&self.way);
        while let Some(cut) = self.cell.next_cut_until(self.lifetime) {
            let dim = cut.dim as usize;
            let side = Side::of(x[dim], cut.location);
            if side != Side::of(frozen[dim], cut.location) {
                return Landing::Unseen { time: cut.time, parent: child };
            }
            self.cell.enter(&cut, side);
        }
        Landing::Seen(child)
    }
}
