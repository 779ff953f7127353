//! Forgetting points: the tree becomes the one that never saw them.

use super::insert::Touched;
use super::leaf::Leaves;
use super::node::Kind;
use super::{Child, Node, PointStore, Tree};
use crate::process::Side;

impl Tree {
    /// Takes one row of `point` away; `gone` says that it was the point's last.
    ///
    /// The store must still have the point's coordinates. An inner node holds at least two points, so what is left
    /// with one collapses upward to the highest such cell (canonical form, design section 1).
    /// `touched` receives the nodes left on the way, parents before children.
    ///
    /// # Panics
    /// If the tree does not hold the point.
    pub fn forget(&mut self, x: &[f64], point: u32, gone: bool, touched: &mut Touched) {
        touched.clear();
        let mut child = self.root;
        let mut way: Vec<(u32, Side)> = Vec::new();
        while let Some(id) = child.as_inner() {
            let node = &mut self.nodes[id as usize];
            node.count -= 1;
            let side = node.side_of(x);
            way.push((id, side));
            child = node.child(side);
        }
        let mut left = child;
        match child.kind() {
            Kind::Leaf(id) => {
                self.leaves.discount_row(id);
                if gone {
                    self.leaves.remove(id, point);
                }
                if let [last] = *self.leaves.leaf(id).points() {
                    left = Child::single(last);
                    self.leaves.end(id);
                    self.n_dead += 1;
                } else {
                    touched.leaves.push(id);
                }
            }
            Kind::Single(held) => {
                assert_eq!(held, point, "the cell holds its point");
                if gone {
                    left = Child::EMPTY;
                }
            }
            Kind::Inner(_) | Kind::Empty => unreachable!("the way ends at the point"),
        }
        self.collapse(&mut way, left);
        touched.nodes.extend(way.iter().map(|(id, _)| *id));
    }

    /// Hangs `child` at the end of the way, taking out nodes that no longer hold two points.
    fn collapse(&mut self, way: &mut Vec<(u32, Side)>, mut child: Child) {
        while let Some((id, side)) = way.pop() {
            let other = self.nodes[id as usize].child(side.other());
            let alone = match (child.kind(), other.kind()) {
                (Kind::Empty, Kind::Single(_) | Kind::Empty) => Some(other),
                (Kind::Single(_), Kind::Empty) => Some(child),
                _ => None,
            };
            if let Some(rest) = alone {
                child = rest;
                self.n_dead += 1;
            } else {
                *self.nodes[id as usize].child_mut(side) = child;
                way.push((id, side));
                return;
            }
        }
        self.root = child;
    }

    /// Whether enough is dead that [`Tree::tidy`] is worth it.
    pub fn is_untidy(&self) -> bool {
        self.n_dead > 64 && self.n_dead * 2 > self.nodes.len() + self.leaves.len()
    }

    /// Writes nodes and leaves anew, depth first, without the dead; numbers change.
    pub fn tidy(&mut self, _store: &PointStore) {
        let old_nodes = std::mem::take(&mut self.nodes);
        let old_leaves: Leaves = std::mem::take(&mut self.leaves);
        let mut todo = vec![(self.root, None::<(u32, Side)>)];
        while let Some((child, parent)) = todo.pop() {
            let moved = match child.kind() {
                Kind::Inner(id) => {
                    let node: Node = old_nodes[id as usize];
                    let new = self.nodes.len() as u32;
                    self.nodes.push(node);
                    todo.push((node.above, Some((new, Side::Above))));
                    todo.push((node.below, Some((new, Side::Below))));
                    Child::inner(new)
                }
                Kind::Leaf(id) => Child::leaf(self.leaves.copy(old_leaves.leaf(id))),
                Kind::Single(_) | Kind::Empty => child,
            };
            self.hang(parent, moved);
        }
        self.n_dead = 0;
    }
}
