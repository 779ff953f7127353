//! Comparing and checking trees.

use crate::process::Side;
use crate::tree::arena::node::LinkKind;
use crate::tree::query::replay::Replay;
use crate::tree::{Child, Domain, Kind, Link, NodeId, PointStore, Tree};

impl Tree {
    /// The cells that hold points at a lifetime, numbered depth first.
    pub fn cell_numbers(&self, lifetime: crate::Lifetime) -> std::collections::HashMap<Child, u32> {
        let mut numbers = std::collections::HashMap::new();
        let mut todo = vec![self.root()];
        while let Some(child) = todo.pop() {
            match child.kind() {
                Kind::Inner(id) if self.node(id).time <= lifetime.get() => {
                    let [below, above] = self.children(self.node(id));
                    todo.extend([above, below]);
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

    /// Whether two trees are identical: the bits of every cut, the counts, the points of every cell, and which runs of cuts
    /// are kept as chains.
    ///
    /// Points are compared by coordinates, so the trees may belong to different stores.
    pub fn same_as(&self, store: &PointStore, other: &Self, other_store: &PointStore) -> bool {
        let mut todo = vec![(self.root, other.root)];
        while let Some((a, b)) = todo.pop() {
            let same = match (a.kind(), b.kind()) {
                (LinkKind::Inner(i), LinkKind::Inner(j)) => {
                    let (x, y) = (self.node(i), other.node(j));
                    todo.push((x.below, y.below));
                    todo.push((x.above, y.above));
                    let (cut, also) = (x.cut(), y.cut());
                    (cut.time.to_bits(), cut.location.to_bits(), cut.dim, cut.level)
                        == (also.time.to_bits(), also.location.to_bits(), also.dim, also.level)
                        && x.count == y.count
                }
                (LinkKind::Single(p), LinkKind::Single(q)) => {
                    store.point(p) == other_store.point(q) && store.multiplicity(p) == other_store.multiplicity(q)
                }
                (LinkKind::Leaf(i), LinkKind::Leaf(j)) => {
                    let (x, y) = (self.leaf(i), other.leaf(j));
                    x.count() == y.count() && sorted(store, x.points()) == sorted(other_store, y.points())
                }
                (LinkKind::Chain(i), LinkKind::Chain(j)) => {
                    todo.push((self.chain(i).end(), other.chain(j).end()));
                    self.arena.chains.is_same(i, &other.arena.chains, j)
                }
                (LinkKind::Empty, LinkKind::Empty) => true,
                _ => false,
            };
            if !same {
                return false;
            }
        }
        true
    }

    /// The same tree with every cut as a node: the slow, obvious twin of a tree with chains.
    #[must_use]
    pub fn without_chains(&self, domain: &Domain, store: &PointStore) -> Self {
        let mut plain = Self::new(self.key);
        let mut replay = Replay::on(domain.root_cell(self.key));
        let mut todo = vec![(self.root, None::<(NodeId, Side)>)];
        while let Some((child, mut parent)) = todo.pop() {
            if let LinkKind::Chain(id) = child.kind() {
                replay.start(self, store.point(self.a_point_under(self.end_of(child))), id);
                for (cut, side) in replay.by_ref() {
                    let next = plain.push_one_sided(&cut, side, self.rows_of(self.end_of(child), store));
                    plain.hang(parent, Link::inner(next));
                    parent = Some((next, side));
                }
            }
            let moved = match self.end_of(child).kind() {
                Kind::Inner(id) => {
                    let (node, new) = (*self.node(id), NodeId::next_of(&plain.arena.nodes));
                    plain.arena.nodes.push(node);
                    todo.extend([Side::Above, Side::Below].map(|side| (node.link(side), Some((new, side)))));
                    Link::inner(new)
                }
                Kind::Leaf(id) => Link::leaf(plain.arena.leaves.copy(self.leaf(id))),
                Kind::Single(_) | Kind::Empty => child,
            };
            plain.hang(parent, moved);
        }
        plain
    }

    /// Any point of a cell that holds some.
    fn a_point_under(&self, child: Child) -> u32 {
        let mut child = child;
        loop {
            match self.end_of_run(child).kind() {
                Kind::Inner(id) => child = self.child(self.node(id), Side::Below),
                Kind::Single(point) => return point,
                Kind::Leaf(id) => return self.leaf(id).points()[0],
                Kind::Empty => unreachable!("the cell holds points"),
            }
        }
    }

    /// Whether the tree is the one that its key, the domain and the store's points define: the slow, obvious check.
    pub fn is_sound(&self, domain: &Domain, store: &PointStore) -> bool {
        self.is_well_formed(store) && self.same_as(store, &Self::grown(domain, self.key, store), store)
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
                LinkKind::Inner(id) => {
                    let Some(node) = self.arena.nodes.get(id.index()) else { return false };
                    visited += 1;
                    todo.extend([Side::Below, Side::Above].map(|side| (node.link(side), node.time)));
                    visited <= self.arena.nodes.len() + self.n_chains()
                        && node.time >= birth
                        && node.location.is_finite()
                        && node.dim() < store.n_dims()
                        && self
                            .checked_rows(node.below, store)
                            .zip(self.checked_rows(node.above, store))
                            .is_some_and(|(a, b)| a.checked_add(b) == Some(node.count))
                }
                LinkKind::Leaf(id) => {
                    let Some(leaf) = self.arena.leaves.get(id) else { return false };
                    let mut rows = 0_u64;
                    leaf.points().len() > 1
                        && leaf.points().iter().all(|p| {
                            let fresh = take(*p);
                            rows += u64::from(if fresh { store.multiplicity(*p) } else { 0 });
                            fresh
                        })
                        && rows == u64::from(leaf.count())
                }
                LinkKind::Chain(id) => {
                    visited += 1;
                    let sound = self.arena.chains.is_well_formed(id, store.n_dims());
                    if sound {
                        todo.push((self.chain(id).end(), self.chain(id).last_time()));
                    }
                    sound && self.chain(id).first_time() >= birth
                }
                LinkKind::Single(point) => take(point),
                LinkKind::Empty => true,
            };
            if !sound {
                return false;
            }
        }
        seen.iter().filter(|s| **s).count() == store.n_points()
    }

    fn checked_rows(&self, child: Link, store: &PointStore) -> Option<u32> {
        // The number of a chain that is none fails by itself.
        let is_chain = |id| self.arena.chains.is_well_formed(id, store.n_dims());
        if matches!(child.kind(), LinkKind::Chain(id) if !is_chain(id)) {
            return None;
        }
        match self.end_of(child).kind() {
            Kind::Inner(id) => self.arena.nodes.get(id.index()).map(|n| n.count),
            Kind::Leaf(id) => self.arena.leaves.get(id).map(crate::tree::Leaf::count),
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
