//! Learning more points: the tree becomes the one that a batch of all of them would have grown.

use super::grow::{Grower, rows_of};
use super::node::Kind;
use super::partition::partition_by_swaps;
use super::{Child, Ground, PointStore, Tree};
use crate::process::{Cell, Cut, NodeKey, Side};

/// A stop on the way of a batch of points down the tree.
struct Task {
    child: Child,
    /// Node and side the child hangs on; none at the root.
    parent: Option<(u32, Side)>,
    start: usize,
    end: usize,
    /// Steps taken when the batch stands at the parent.
    depth: usize,
}

impl Tree {
    /// Adds points that the store has already and the tree has not.
    ///
    /// Each must lie in the ground's root box. `touched` receives the nodes whose cells gained points, parents before
    /// children, so that statistics can be mended bottom-up by reading it backwards.
    pub fn insert(&mut self, ground: &Ground, store: &PointStore, points: &mut [u32], touched: &mut Touched) {
        touched.clear();
        match points {
            [] => return,
            [point] => return self.insert_one(ground, store, *point, touched),
            _ => {}
        }
        let mut tasks = vec![Task { child: self.root, parent: None, start: 0, end: points.len(), depth: 0 }];
        // The way from the root to the current task's child; replayed only where something has to be grown.
        let mut way: Vec<(Cut, Side)> = Vec::new();
        while let Some(task) = tasks.pop() {
            way.truncate(task.depth);
            if let Some((node, side)) = task.parent {
                way.push((self.nodes[node as usize].cut(), side));
            }
            let batch = &mut points[task.start..task.end];
            match task.child.kind() {
                Kind::Inner(id) => {
                    let node = &mut self.nodes[id as usize];
                    node.count += batch.iter().map(|p| store.multiplicity(*p)).sum::<u32>();
                    touched.nodes.push(id);
                    let (dim, location) = (node.dim(), node.location);
                    let middle = task.start + partition_by_swaps(batch, |p| store.point(p)[dim] <= location);
                    let depth = way.len();
                    for (start, end, side) in [(middle, task.end, Side::Above), (task.start, middle, Side::Below)] {
                        if start < end {
                            tasks.push(Task { child: node.child(side), parent: Some((id, side)), start, end, depth });
                        }
                    }
                }
                Kind::Leaf(id) => {
                    self.leaves.extend(id, batch, batch.iter().map(|p| store.multiplicity(*p)).sum());
                    touched.leaves.push(id);
                }
                Kind::Empty => {
                    let grown = self.grow_at(ground, store, &way, batch, touched);
                    self.hang(task.parent, grown);
                }
                Kind::Single(point) => {
                    let mut all = batch.to_vec();
                    all.push(point);
                    let grown = self.grow_at(ground, store, &way, &mut all, touched);
                    self.hang(task.parent, grown);
                }
            }
        }
    }

    /// As [`Tree::insert`] for a single point: one way down, on which the walk sinks along.
    fn insert_one(&mut self, ground: &Ground, store: &PointStore, point: u32, touched: &mut Touched) {
        let (x, rows) = (store.point(point), store.multiplicity(point));
        let mut cell = touched.walk_from_root(ground, self.key);
        let mut child = self.root;
        let mut parent = None;
        while let Some(id) = child.as_inner() {
            let node = &mut self.nodes[id as usize];
            node.count += rows;
            touched.nodes.push(id);
            let side = node.side_of(x);
            child = node.child(side);
            cell.sink(&node.cut(), side);
            parent = Some((id, side));
        }
        match child.kind() {
            Kind::Leaf(id) => {
                self.leaves.extend(id, &[point], rows);
                touched.leaves.push(id);
            }
            Kind::Single(other) => {
                cell.settle();
                let grown;
                (grown, cell) = self.grow_from(ground, store, cell, touched, |grower| grower.grow_two([point, other]));
                self.hang(parent, grown);
            }
            Kind::Empty => self.hang(parent, Child::single(point)),
            Kind::Inner(_) => unreachable!("the way ends below all nodes"),
        }
        touched.walk = Some(cell);
    }

    /// Reads the ways of a point down several trees in turns. Nothing else: the trees' nodes are then in cache when the
    /// point is learned. One tree after the other would wait for memory at every node.
    pub(crate) fn look_ahead<'a>(trees: impl Iterator<Item = &'a Self>, x: &[f64]) {
        let mut ways: Vec<(&Self, u32)> = trees.filter_map(|tree| Some((tree, tree.root.as_inner()?))).collect();
        while !ways.is_empty() {
            ways.retain_mut(|(tree, id)| {
                let node = &tree.nodes[*id as usize];
                let next = node.child(node.side_of(x)).as_inner();
                *id = next.unwrap_or(*id);
                next.is_some()
            });
        }
        // The loop ends by what it reads, so it cannot be optimised away.
    }

    /// One more row of a point that the tree has: only counts change.
    pub fn count_again(&mut self, store: &PointStore, point: u32, touched: &mut Touched) {
        touched.clear();
        let x = store.point(point);
        let mut child = self.root;
        loop {
            match child.kind() {
                Kind::Inner(id) => {
                    let node = &mut self.nodes[id as usize];
                    node.count += 1;
                    touched.nodes.push(id);
                    child = node.child(node.side_of(x));
                }
                Kind::Leaf(id) => {
                    self.leaves.count_row(id);
                    touched.leaves.push(id);
                    return;
                }
                Kind::Single(_) | Kind::Empty => return,
            }
        }
    }

    /// Grows points in the cell at the end of `way`.
    fn grow_at(
        &mut self,
        ground: &Ground,
        store: &PointStore,
        way: &[(Cut, Side)],
        points: &mut [u32],
        touched: &mut Touched,
    ) -> Child {
        if let [point] = points {
            return Child::single(*point);
        }
        let mut cell = touched.walk_from_root(ground, self.key);
        cell.jump(way);
        let (child, cell) = self.grow_from(ground, store, cell, touched, |grower| grower.grow(points));
        touched.walk = Some(cell);
        child
    }

    /// Grows something at a walk's cell; what it grew, and the walk for further use.
    fn grow_from(
        &mut self,
        ground: &Ground,
        store: &PointStore,
        cell: Cell,
        touched: &mut Touched,
        grow: impl FnOnce(&mut Grower<'_>) -> Child,
    ) -> (Child, Cell) {
        let parts = (std::mem::take(&mut self.nodes), std::mem::take(&mut self.leaves));
        let (n_nodes, n_leaves) = (parts.0.len(), parts.1.len());
        let mut grower = Grower::new(store, ground, cell, parts);
        let child = grow(&mut grower);
        let cell;
        (cell, self.nodes, self.leaves) = (grower.cell, grower.nodes, grower.leaves);
        touched.nodes.extend(n_nodes as u32..self.nodes.len() as u32);
        touched.leaves.extend(n_leaves as u32..self.leaves.len() as u32);
        (child, cell)
    }

    pub(super) fn hang(&mut self, parent: Option<(u32, Side)>, child: Child) {
        match parent {
            None => self.root = child,
            Some((node, side)) => *self.nodes[node as usize].child_mut(side) = child,
        }
    }

    /// Cuts on all leaves until a larger lifetime; `ground` has it already.
    pub fn raise_lifetime(&mut self, ground: &Ground, store: &PointStore) {
        let mut tasks = vec![(self.root, None::<(u32, Side)>, 0_usize)];
        let mut way: Vec<(Cut, Side)> = Vec::new();
        let mut touched = Touched::default();
        while let Some((child, parent, depth)) = tasks.pop() {
            way.truncate(depth);
            if let Some((node, side)) = parent {
                way.push((self.nodes[node as usize].cut(), side));
            }
            match child.kind() {
                Kind::Inner(id) => {
                    let node = self.nodes[id as usize];
                    tasks.push((node.above, Some((id, Side::Above)), way.len()));
                    tasks.push((node.below, Some((id, Side::Below)), way.len()));
                }
                Kind::Leaf(id) => {
                    let mut points = self.leaves.end(id);
                    self.n_dead += 1;
                    let grown = self.grow_at(ground, store, &way, &mut points, &mut touched);
                    self.hang(parent, grown);
                }
                Kind::Single(_) | Kind::Empty => {}
            }
        }
        self.tidy(store);
    }

    /// Rows in a child's cell.
    pub fn rows_of(&self, child: Child, store: &PointStore) -> u32 {
        rows_of(child, &self.nodes, &self.leaves, store)
    }
}

/// The nodes and leaves that a change touched, parents before children.
#[derive(Debug, Clone, Default)]
pub struct Touched {
    /// Numbers of nodes.
    pub nodes: Vec<u32>,
    /// Numbers of leaves.
    pub leaves: Vec<u32>,
    /// A walk to use again, so that learning a row allocates nothing.
    walk: Option<Cell>,
}

impl Touched {
    pub(crate) fn clear(&mut self) {
        self.nodes.clear();
        self.leaves.clear();
    }

    /// A walk at the root of a tree, unsettled.
    fn walk_from_root(&mut self, ground: &Ground, key: NodeKey) -> Cell {
        match self.walk.take() {
            Some(mut cell) => {
                ground.restart(&mut cell, key);
                cell
            }
            None => ground.root_cell(key),
        }
    }
}
