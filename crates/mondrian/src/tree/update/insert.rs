//! Learning more points: the tree becomes the one that a batch of all of them would have grown.

use crate::process::{NodeKey, Side};
use crate::simd::partition::partition_by_swaps;
use crate::tree::arena::node::LinkKind;
use crate::tree::build::Grower;
use crate::tree::query::place::{Parting, is_beside};
use crate::tree::query::replay::Replay;
use crate::tree::{Domain, Kind, LeafId, Link, NodeId, Place, PointStore, Tree};

/// A stop on the way of a batch of points down the tree.
struct Task {
    child: Link,
    /// Node and side the child hangs on; none at the root. What hangs on a chain stays there.
    parent: Option<(NodeId, Side)>,
    start: usize,
    end: usize,
}

impl Tree {
    /// Adds points that the store has already and the tree has not.
    ///
    /// Each must lie in the domain's root box. `touched` receives the nodes whose cells gained points, parents before
    /// children, so that statistics can be updated bottom-up by reading it backwards.
    ///
    /// # Panics
    /// For a point outside the root box that leaves a run of cuts on a side that none of them has.
    pub fn insert(&mut self, domain: &Domain, store: &PointStore, points: &mut [u32], touched: &mut Touched) {
        touched.clear();
        match points {
            [] => return,
            [point] => return self.insert_one(domain, store, *point, touched),
            _ => touched.is_path = false,
        }
        let mut tasks = vec![Task { child: self.root, parent: None, start: 0, end: points.len() }];
        while let Some(Task { child, parent, start, end }) = tasks.pop() {
            let batch = &mut points[start..end];
            match child.kind() {
                LinkKind::Inner(id) => {
                    let node = &mut self.arena.nodes[id.index()];
                    node.count += batch.iter().map(|p| store.multiplicity(*p)).sum::<u32>();
                    touched.nodes.push(id);
                    let (dim, location) = (node.dim(), node.location);
                    let middle = start + partition_by_swaps(batch, |p| store.point(p)[dim] <= location);
                    for (start, end, side) in [(middle, end, Side::Above), (start, middle, Side::Below)] {
                        if start < end {
                            tasks.push(Task { child: node.link(side), parent: Some((id, side)), start, end });
                        }
                    }
                }
                LinkKind::Chain(id) => {
                    let n_staying = partition_by_swaps(batch, |p| self.chain_holds(id, store.point(p)));
                    if n_staying == batch.len() {
                        tasks.push(Task { child: self.chain(id).end(), parent, start, end });
                        continue;
                    }
                    // The run is split where the first point leaves it; then all come by again.
                    let mut walk = touched.walk_from_root(domain, self.key);
                    self.sink_to(&mut walk.cell, store.point(batch[0]), child);
                    let leaving = batch[n_staying..].iter().map(|p| store.point(*p));
                    walk.cell.settle();
                    walk.start_here(self, id);
                    walk.made.clear();
                    let parting = loop {
                        let (cut, side) = walk.peek().expect("a point outside the sub-box leaves at a cut of the run");
                        let leaves = leaving.clone().any(|x| is_beside(x, &cut, side));
                        if let Some(parting) = walk.pass_or_part(cut, side, leaves) {
                            break parting;
                        }
                    };
                    let (child, _) = self.split_chain(id, &mut walk, &parting, store, touched);
                    touched.walk = Some(walk);
                    self.hang(parent, child);
                    tasks.push(Task { child, parent, start, end });
                }
                LinkKind::Leaf(id) => {
                    self.arena.leaves.extend(id, batch, batch.iter().map(|p| store.multiplicity(*p)).sum());
                    touched.leaves.push(id);
                }
                LinkKind::Empty => {
                    let grown = self.grow_at(domain, store, child, batch, touched);
                    self.hang(parent, grown);
                }
                LinkKind::Single(point) => {
                    let mut all = batch.to_vec();
                    all.push(point);
                    let grown = self.grow_at(domain, store, child, &mut all, touched);
                    self.hang(parent, grown);
                }
            }
        }
    }

    /// As [`Tree::insert`] for a single point.
    fn insert_one(&mut self, domain: &Domain, store: &PointStore, point: u32, touched: &mut Touched) {
        let (x, mut place) = (store.point(point), Place::with_walk(touched.walk.take()));
        place.restart(self, domain.lifetime().get());
        while place.step(self, x).goes_on() {}
        place.part(self, domain, store, x);
        self.insert_at(&mut place, domain, store, point, touched);
        touched.walk = place.into_walk();
    }

    /// Adds a point that the store has already at its place, found at the domain's lifetime and down to the cut that parts it from
    /// others.
    pub(crate) fn insert_at(
        &mut self,
        place: &mut Place,
        domain: &Domain,
        store: &PointStore,
        point: u32,
        touched: &mut Touched,
    ) {
        touched.clear();
        std::mem::swap(&mut touched.nodes, &mut place.nodes);
        let (x, rows) = (store.point(point), store.multiplicity(point));
        let (child, parent) = (place.way.link, place.way.parent);
        for id in &touched.nodes {
            let node = &mut self.arena.nodes[id.index()];
            node.count += rows;
            touched.sides.push(node.side_of(x));
        }
        match child.kind() {
            LinkKind::Chain(id) => {
                let (walk, parting) = place.parts();
                let parting = parting.expect("the way goes on within the lifetime, or a cut ends it");
                let first_new = self.arena.nodes.len();
                let (top, separating) = self.split_chain(id, walk, &parting, store, touched);
                self.hang(parent, top);
                for node in &mut self.arena.nodes[first_new..=separating.index()] {
                    node.count += rows;
                }
                self.hang(Some((separating, parting.side.other())), Link::single(point));
            }
            LinkKind::Leaf(id) => {
                self.arena.leaves.extend(id, &[point], rows);
                touched.leaves.push(id);
            }
            LinkKind::Single(other) => {
                let (walk, parting) = place.parts();
                let grown = self.part_two([point, other], walk, parting.as_ref(), (domain, store), touched);
                self.hang(parent, grown);
            }
            LinkKind::Empty => self.hang(parent, Link::single(point)),
            LinkKind::Inner(_) => unreachable!("the way goes on within the lifetime"),
        }
    }

    /// Keeps the cuts of a frozen cell to the one that parts a new point from its own, or all within the lifetime; what then stands
    /// where the cell was.
    fn part_two(
        &mut self,
        [new, held]: [u32; 2],
        walk: &mut Replay,
        parting: Option<&Parting>,
        (domain, store): (&Domain, &PointStore),
        touched: &mut Touched,
    ) -> Link {
        let rows = store.multiplicity(new) + store.multiplicity(held);
        let first_new = self.arena.nodes.len();
        let leaf = parting.is_none().then(|| self.arena.leaves.push([new, held].into_iter(), |_| rows));
        touched.leaves.extend(leaf);
        let top = self.push_run(walk, rows, domain.is_chained(), leaf.map(Link::leaf));
        if let Some(Parting { cut, side, .. }) = parting {
            let node = self.push_one_sided(cut, *side, rows);
            self.hang(Some((node, *side)), Link::single(held));
            self.hang(Some((node, side.other())), Link::single(new));
        }
        touched.add_nodes(first_new, self.arena.nodes.len());
        top
    }

    /// One more row of a point that the tree has: only counts change.
    pub fn count_again(&mut self, store: &PointStore, point: u32, touched: &mut Touched) {
        touched.clear();
        let x = store.point(point);
        let mut child = self.root;
        loop {
            match child.kind() {
                LinkKind::Inner(id) => {
                    let node = &mut self.arena.nodes[id.index()];
                    node.count += 1;
                    let side = node.side_of(x);
                    touched.nodes.push(id);
                    touched.sides.push(side);
                    child = node.link(side);
                }
                LinkKind::Leaf(id) => {
                    self.arena.leaves.count_row(id);
                    touched.leaves.push(id);
                    return;
                }
                LinkKind::Chain(id) => child = self.chain(id).end(),
                LinkKind::Single(_) | LinkKind::Empty => return,
            }
        }
    }

    /// Grows points, the first of which comes to `child`, in that cell.
    fn grow_at(
        &mut self,
        domain: &Domain,
        store: &PointStore,
        child: Link,
        points: &mut [u32],
        touched: &mut Touched,
    ) -> Link {
        if let [point] = points {
            return Link::single(*point);
        }
        let mut walk = touched.walk_from_root(domain, self.key);
        self.sink_to(&mut walk.cell, store.point(points[0]), child);
        walk.cell.settle();
        let child = self.grow_from(domain, store, &mut walk, touched, |grower| grower.grow(points));
        touched.walk = Some(walk);
        child
    }

    /// Grows something at a walk's cell; what it grew.
    fn grow_from(
        &mut self,
        domain: &Domain,
        store: &PointStore,
        walk: &mut Replay,
        touched: &mut Touched,
        grow: impl FnOnce(&mut Grower<'_>) -> Link,
    ) -> Link {
        let (n_nodes, n_leaves) = (self.arena.nodes.len(), self.arena.leaves.len());
        let child = grow(&mut Grower::new(store, domain, &mut walk.cell, &mut self.arena));
        touched.add_nodes(n_nodes, self.arena.nodes.len());
        touched.leaves.extend((n_leaves as u32..self.arena.leaves.len() as u32).map(LeafId::new));
        child
    }

    pub(crate) fn hang(&mut self, parent: Option<(NodeId, Side)>, child: Link) {
        match parent {
            None => self.root = child,
            Some((node, side)) => *self.arena.nodes[node.index()].link_mut(side) = child,
        }
    }

    /// Cuts on all leaves until a larger lifetime; `domain` has it already.
    pub fn raise_lifetime(&mut self, domain: &Domain, store: &PointStore) {
        let mut tasks = vec![(self.root, None::<(NodeId, Side)>)];
        let mut touched = Touched::default();
        while let Some((child, parent)) = tasks.pop() {
            // A leaf's first cuts may go on with the run that led to it, so that is grown again from its start.
            let end = self.end_of(child);
            let end = if domain.is_chained() { self.end_of_run(end) } else { end };
            match end.kind() {
                Kind::Inner(id) => {
                    let node = self.node(id);
                    tasks.extend([Side::Above, Side::Below].map(|side| (node.link(side), Some((id, side)))));
                }
                Kind::Leaf(id) => {
                    let mut points = self.arena.leaves.end(id);
                    self.n_dead += 1;
                    let grown = self.grow_at(domain, store, child, &mut points, &mut touched);
                    self.hang(parent, grown);
                }
                Kind::Single(_) | Kind::Empty => {}
            }
        }
        self.compact(store);
    }
}

/// The nodes and leaves that a change touched, parents before children.
#[derive(Debug, Clone, Default)]
pub struct Touched {
    /// Numbers of nodes.
    pub nodes: Vec<NodeId>,
    /// For the first nodes, those on the way of a single row: on which side of each it went, and so which one changed. The other nodes are
    /// new, or were touched by several rows: both sides may have changed.
    pub sides: Vec<Side>,
    /// Numbers of leaves.
    pub leaves: Vec<LeafId>,
    /// Whether the nodes lie on one path, so that where one has what it had, so have all above it.
    pub(crate) is_path: bool,
    /// A walk to use again, so that learning a row allocates nothing.
    pub(crate) walk: Option<Box<Replay>>,
}

impl Touched {
    pub(crate) fn clear(&mut self) {
        self.nodes.clear();
        self.sides.clear();
        self.leaves.clear();
        self.is_path = true;
    }

    /// Takes note of new nodes, those with numbers from one on to another.
    pub(crate) fn add_nodes(&mut self, first: usize, end: usize) {
        self.nodes.extend((first as u32..end as u32).map(NodeId::new));
    }

    /// A walk at the root of a tree, unsettled.
    pub(crate) fn walk_from_root(&mut self, domain: &Domain, key: NodeKey) -> Box<Replay> {
        match self.walk.take() {
            Some(mut walk) => {
                domain.restart(&mut walk.cell, key);
                walk
            }
            None => Box::new(Replay::on(domain.root_cell(key))),
        }
    }
}
