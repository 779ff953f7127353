//! Growing the part of a tree that a set of points lies in, from the cell downwards.
//!
//! One array of point numbers is partitioned in place, depth first, with an explicit stack: depth reaches
//! thousands where points lie close. A cut costs O(points in its cell), or O(1) when the known bounds of the
//! points show that it misses them all, whatever the number of dimensions.

use super::desk::Desk;
use super::leaf::Leaves;
use super::parts::Part;
use crate::process::{Cell, Cut, NodeKey, Side};
use crate::tree::{Child, Ground, Node, PointStore, Tree};

/// A cell still to be grown: a side of a node, and its points.
#[derive(Debug)]
struct Task {
    node: u32,
    side: Side,
    start: usize,
    end: usize,
    /// Depth of the walk at the node, and length of the log of bounds there.
    depth: usize,
    log: usize,
}

/// What is known of the points of the current cell in one dimension before it changed.
#[derive(Debug)]
struct Known {
    dim: u32,
    lo: f64,
    hi: f64,
}

/// Grows subtrees into `nodes` and `leaves`, which may hold others already.
#[derive(Debug)]
pub(crate) struct Grower<'a> {
    store: &'a PointStore,
    desk: Desk<'a>,
    lifetime: f64,
    pub(crate) cell: Cell,
    pub(crate) nodes: Vec<Node>,
    pub(super) leaves: Leaves,
    /// Outer bounds of the current cell's points, per dimension, and the log that restores them.
    lo: Vec<f64>,
    hi: Vec<f64>,
    log: Vec<Known>,
    tasks: Vec<Task>,
    /// Every point has one row, so points count as rows.
    is_distinct: bool,
    /// Cells of at most so many points are not grown but put aside, see [`super::parts`].
    pub(super) aside_from: usize,
    pub(super) aside: Vec<Part>,
}

impl<'a> Grower<'a> {
    /// A grower at the root of a tree, which adds to the given nodes and leaves.
    pub(super) fn new(
        store: &'a PointStore,
        ground: &Ground,
        cell: Cell,
        (nodes, leaves): (Vec<Node>, Leaves),
    ) -> Self {
        Self {
            store,
            desk: Desk::new(store),
            lifetime: ground.lifetime().get(),
            cell,
            nodes,
            leaves,
            lo: Vec::new(),
            hi: Vec::new(),
            log: Vec::new(),
            tasks: Vec::new(),
            is_distinct: store.n_rows() == store.n_points(),
            aside_from: 0,
            aside: Vec::new(),
        }
    }

    /// Grows the current cell with the given distinct points, and leaves the walk where it was.
    pub(crate) fn grow(&mut self, points: &mut [u32]) -> Child {
        if points.len() < 2 {
            return points.first().map_or(Child::EMPTY, |p| Child::single(*p));
        }
        let first_node = self.nodes.len();
        let depth = self.cell.depth();
        self.forget_bounds();
        let root = self.grow_cell(points, 0, points.len(), None);
        while let Some(task) = self.tasks.pop() {
            self.desk.go_on(self.tasks.len());
            self.return_to(task.depth, task.log);
            let cut = self.nodes[task.node as usize].cut();
            self.enter(&cut, task.side);
            self.grow_cell(points, task.start, task.end, Some((task.node, task.side)));
        }
        self.desk.clear();
        self.return_to(depth, 0);
        self.count_rows(first_node);
        root
    }

    /// As [`Grower::grow`] for two points, which needs no room of its own; the walk stays where they part.
    pub(crate) fn grow_two(&mut self, pair: [u32; 2]) -> Child {
        let first_node = self.nodes.len();
        let child = self.grow_pair(pair);
        self.count_rows(first_node);
        child
    }

    /// Cuts the current cell until it is a leaf or its points part; both sides with several points go on the stack.
    fn grow_cell(&mut self, points: &mut [u32], start: usize, mut end: usize, parent: Option<(u32, Side)>) -> Child {
        let mut parent = parent;
        let mut top = None;
        loop {
            if end - start <= self.aside_from {
                let points = points[start..end].iter().map(|number| self.desk.point(*number)).collect();
                self.aside.push(Part { parent, points, cell: self.cell.clone() });
                break;
            }
            self.desk.take(&mut points[start..end], self.tasks.len());
            if end - start == 2 {
                let child = self.grow_pair([points[start], points[start + 1]]);
                self.attach(parent, &mut top, child);
                break;
            }
            let Some(cut) = self.next_cut() else {
                let child = self.new_leaf(&points[start..end]);
                self.attach(parent, &mut top, child);
                break;
            };
            let node = self.new_node(&cut, end - start);
            self.attach(parent, &mut top, Child::inner(node));
            let middle = start + self.split(&mut points[start..end], &cut);
            if middle == start || middle == end {
                let side = if middle == start { Side::Above } else { Side::Below };
                self.enter(&cut, side);
                parent = Some((node, side));
                continue;
            }
            let (depth, log) = (self.cell.depth(), self.log.len());
            if end - middle == 1 {
                self.nodes[node as usize].above = Child::single(self.desk.point(points[middle]));
            } else {
                self.tasks.push(Task { node, side: Side::Above, start: middle, end, depth, log });
            }
            if middle - start == 1 {
                self.nodes[node as usize].below = Child::single(self.desk.point(points[start]));
                break;
            }
            self.enter(&cut, Side::Below);
            parent = Some((node, Side::Below));
            end = middle;
        }
        top.unwrap_or(Child::EMPTY)
    }

    /// Cuts the current cell until its two points part or the lifetime ends. No array is touched.
    fn grow_pair(&mut self, pair: [u32; 2]) -> Child {
        let names = pair.map(|number| self.desk.point(number));
        let mut parent = None;
        let mut top = None;
        loop {
            let Some(cut) = self.next_cut() else {
                let child = self.new_leaf(&pair);
                self.attach(parent, &mut top, child);
                break;
            };
            let node = self.new_node(&cut, 2);
            self.attach(parent, &mut top, Child::inner(node));
            let dim = cut.dim as usize;
            let [a, b] = pair.map(|number| Side::of(self.desk.row(number)[dim], cut.location));
            if a != b {
                let new = &mut self.nodes[node as usize];
                *new.child_mut(a) = Child::single(names[0]);
                *new.child_mut(b) = Child::single(names[1]);
                break;
            }
            self.cell.enter(&cut, a);
            parent = Some((node, a));
        }
        top.expect("the loop attaches at least one child")
    }

    fn next_cut(&self) -> Option<Cut> {
        self.cell.next_cut_until(self.lifetime)
    }

    fn attach(&mut self, parent: Option<(u32, Side)>, top: &mut Option<Child>, child: Child) {
        if let Some((node, side)) = parent {
            *self.nodes[node as usize].child_mut(side) = child;
        }
        top.get_or_insert(child);
    }

    #[inline]
    fn new_node(&mut self, cut: &Cut, n_points: usize) -> u32 {
        let mut node = Node::new(cut);
        node.count = n_points as u32;
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    fn new_leaf(&mut self, points: &[u32]) -> Child {
        let (desk, store, is_distinct) = (&self.desk, self.store, self.is_distinct);
        let rows_of = |points: &[u32]| match points {
            points if is_distinct => points.len() as u32,
            points => points.iter().map(|p| store.multiplicity(*p)).sum(),
        };
        Child::leaf(self.leaves.push(points.iter().map(|number| desk.point(*number)), rows_of))
    }

    /// Moves the points below the cut to the front, in order; how many there are.
    fn split(&mut self, points: &mut [u32], cut: &Cut) -> usize {
        let dim = cut.dim as usize;
        if cut.location < self.lo[dim] {
            return 0;
        }
        if cut.location >= self.hi[dim] {
            return points.len();
        }
        let below = self.desk.part(points, dim, cut.location);
        if below == 0 || below == points.len() {
            self.learn_bounds(points, dim);
        }
        below
    }

    /// After a scan that separated nothing: the exact bounds of the points, which make further misses free.
    fn learn_bounds(&mut self, points: &[u32], dim: usize) {
        let (lo, hi) = self.desk.range(points, dim);
        self.set_bounds(dim, lo, hi);
    }

    fn set_bounds(&mut self, dim: usize, lo: f64, hi: f64) {
        self.log.push(Known { dim: dim as u32, lo: self.lo[dim], hi: self.hi[dim] });
        self.lo[dim] = lo;
        self.hi[dim] = hi;
    }

    fn forget_bounds(&mut self) {
        debug_assert!(self.log.is_empty());
        for (bounds, unknown) in [(&mut self.lo, f64::NEG_INFINITY), (&mut self.hi, f64::INFINITY)] {
            bounds.clear();
            bounds.resize(self.store.n_dims(), unknown);
        }
    }

    fn enter(&mut self, cut: &Cut, side: Side) {
        self.cell.enter(cut, side);
    }

    /// Walks back up to a depth, restoring what was known of the points there.
    fn return_to(&mut self, depth: usize, log: usize) {
        while self.cell.depth() > depth {
            self.cell.leave();
        }
        for known in self.log.drain(log..).rev() {
            self.lo[known.dim as usize] = known.lo;
            self.hi[known.dim as usize] = known.hi;
        }
    }

    /// Row counts of the nodes from `first` on, children before parents: a child is always younger.
    pub(super) fn count_rows(&mut self, first: usize) {
        if self.is_distinct {
            return;
        }
        for id in (first..self.nodes.len()).rev() {
            let node = self.nodes[id];
            self.nodes[id].count = self.rows_of(node.below) + self.rows_of(node.above);
        }
    }

    fn rows_of(&self, child: Child) -> u32 {
        rows_of(child, &self.nodes, &self.leaves, self.store)
    }
}

/// Number of rows in a child's cell.
pub(super) fn rows_of(child: Child, nodes: &[Node], leaves: &Leaves, store: &PointStore) -> u32 {
    use super::node::Kind;
    match child.kind() {
        Kind::Inner(id) => nodes[id as usize].count,
        Kind::Single(point) => store.multiplicity(point),
        Kind::Leaf(id) => leaves.leaf(id).count(),
        Kind::Empty => 0,
    }
}

impl Tree {
    /// The tree of all points of the store.
    pub fn grown(ground: &Ground, key: NodeKey, store: &PointStore) -> Self {
        let mut points: Vec<u32> = store.points().collect();
        let mut grower =
            Grower::new(store, ground, ground.root_cell(key), (Vec::with_capacity(points.len()), Leaves::default()));
        let root = grower.grow(&mut points);
        let (mut nodes, mut leaves) = (grower.nodes, grower.leaves);
        nodes.shrink_to_fit();
        leaves.shrink_to_fit();
        Self { key, root, nodes, leaves, n_dead: 0 }
    }
}
