//! Comparing and checking trees.

use super::node::Kind;
use super::{Child, Ground, PointStore, Tree};
use crate::process::Side;

impl Tree {
    /// The cells that hold points at a lifetime, numbered depth first.
    pub fn cell_numbers(&self, lifetime: crate::Lifetime) -> std::collections::HashMap<Child, u32> {
        let mut numbers = std::collections::HashMap::new();
        let mut todo = vec![self.root];
        while let Some(child) = todo.pop() {
            match child.kind() {
                Kind::Inner(id) if self.node(id).time <= lifetime.get() => {
                    todo.extend([self.node(id).above, self.node(id).below]);
                }
                Kind::Empty => {}
                _ => {
                    let next = numbers.len() as u32;
                    numbers.insert(child, next);
                }
            }
        }
        numbers
    }

    /// Whether two trees are identical: the bits of every cut, the counts, and the points of every cell.
    ///
    /// Points are compared by coordinates, so the trees may belong to different stores.
    pub fn same_as(&self, store: &PointStore, other: &Self, other_store: &PointStore) -> bool {
        let mut todo = vec![(self.root, other.root)];
        while let Some((a, b)) = todo.pop() {
            let same = match (a.kind(), b.kind()) {
                (Kind::Inner(i), Kind::Inner(j)) => {
                    let (x, y) = (self.node(i), other.node(j));
                    todo.push((x.below, y.below));
                    todo.push((x.above, y.above));
                    let (cut, also) = (x.cut(), y.cut());
                    (cut.time.to_bits(), cut.location.to_bits(), cut.dim, cut.level)
                        == (also.time.to_bits(), also.location.to_bits(), also.dim, also.level)
                        && x.count == y.count
                }
                (Kind::Single(p), Kind::Single(q)) => {
                    store.point(p) == other_store.point(q) && store.multiplicity(p) == other_store.multiplicity(q)
                }
                (Kind::Leaf(i), Kind::Leaf(j)) => {
                    let (x, y) = (self.leaf(i), other.leaf(j));
                    x.count() == y.count() && sorted(store, x.points()) == sorted(other_store, y.points())
                }
                (Kind::Empty, Kind::Empty) => true,
                _ => false,
            };
            if !same {
                return false;
            }
        }
        true
    }

    /// Whether the tree is the one that its key, the ground and the store's points define: the slow, obvious check.
    pub fn is_sound(&self, ground: &Ground, store: &PointStore) -> bool {
        self.is_well_formed(store) && self.same_as(store, &Self::grown(ground, self.key, store), store)
    }

    /// Whether all numbers point somewhere, every stored point occurs once and counts add up; for untrusted trees.
    pub fn is_well_formed(&self, store: &PointStore) -> bool {
        let mut seen = vec![false; store.n_slots()];
        let mut visited = 0_usize;
        let mut take = |p: u32| {
            let fresh = seen.get(p as usize) == Some(&false) && store.multiplicity(p) > 0;
            if fresh {
                seen[p as usize] = true;
            }
            fresh
        };
        let mut todo = vec![(self.root, f64::NEG_INFINITY)];
        while let Some((child, birth)) = todo.pop() {
            let sound = match child.kind() {
                Kind::Inner(id) => {
                    let Some(node) = self.nodes.get(id as usize) else { return false };
                    visited += 1;
                    todo.extend([Side::Below, Side::Above].map(|side| (node.child(side), node.time)));
                    visited <= self.nodes.len()
                        && node.time >= birth
                        && node.location.is_finite()
                        && node.dim() < store.n_dims()
                        && self
                            .checked_rows(node.below, store)
                            .zip(self.checked_rows(node.above, store))
                            .is_some_and(|(a, b)| a.checked_add(b) == Some(node.count))
                }
                Kind::Leaf(id) => {
                    let Some(leaf) = self.leaves.get(id) else { return false };
                    let mut rows = 0_u64;
                    leaf.points().len() > 1
                        && leaf.points().iter().all(|p| {
                            let fresh = take(*p);
                            rows += u64::from(if fresh { store.multiplicity(*p) } else { 0 });
                            fresh
                        })
                        && rows == u64::from(leaf.count())
                }
                Kind::Single(point) => take(point),
                Kind::Empty => true,
            };
            if !sound {
                return false;
            }
        }
        seen.iter().filter(|s| **s).count() == store.n_points()
    }

    fn checked_rows(&self, child: Child, store: &PointStore) -> Option<u32> {
        match child.kind() {
            Kind::Inner(id) => self.nodes.get(id as usize).map(|n| n.count),
            Kind::Leaf(id) => self.leaves.get(id).map(super::Leaf::count),
            Kind::Single(p) => ((p as usize) < store.n_slots()).then(|| store.multiplicity(p)),
            Kind::Empty => Some(0),
        }
    }
}

fn sorted<'a>(store: &'a PointStore, points: &[u32]) -> Vec<(&'a [f64], u32)> {
    let mut rows: Vec<_> = points.iter().map(|p| (store.point(*p), store.multiplicity(*p))).collect();
    rows.sort_by(|a, b| a.partial_cmp(b).expect("stored coordinates are finite"));
    rows
}
