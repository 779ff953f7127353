//! Growing the part of a tree that a set of points lies in, from the cell downwards.
//!
//! One array of point numbers is partitioned in place, depth first, with an explicit stack: depth reaches
//! thousands where points lie close. A cut costs O(points in its cell), or O(1) when the known bounds of the
//! points show that it misses them all, whatever the number of dimensions. Cuts with an empty side are written as
//! nodes, one after the other; a long run of them becomes a [chain](crate::tree::Chain) once its end is known.

pub(crate) mod parallel;
pub(crate) mod quantize;
pub(crate) mod small;
pub(crate) mod tile;

use crate::process::{Cell, Cut, NarrowCell, NodeKey, Side};
use crate::tree::arena::chain::LEAST_CUTS;
use crate::tree::build::parallel::Part;
use crate::tree::build::small::{GrowContext, Lanes, MOST_POINTS};
use crate::tree::build::tile::CodeTile;
use crate::tree::{Arena, Codes, Domain, Link, Node, NodeId, PointStore, Tree};

/// A cell still to be grown: a side of a node, and its points.
#[derive(Debug)]
struct Task {
    node: NodeId,
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

/// How a cell is grown, by the number of its points.
#[derive(Debug, Clone, Copy)]
enum Strategy {
    /// By another thread, later (`parallel.rs`).
    SetAside,
    /// Together with other small cells (`small/`), at a side of a node.
    Lane((NodeId, Side)),
    /// Two points: no array is touched.
    Pair,
    /// Its points are partitioned at every cut.
    Partition,
}

/// Grows subtrees into `arena`, which may hold others already.
#[derive(Debug)]
pub(crate) struct Grower<'a> {
    store: &'a PointStore,
    tile: CodeTile<'a>,
    lifetime: f64,
    cell: &'a mut Cell,
    pub(crate) arena: &'a mut Arena,
    is_chained: bool,
    /// Outer bounds of the current cell's points, per dimension, and the log that restores them.
    lo: Vec<f64>,
    hi: Vec<f64>,
    log: Vec<Known>,
    tasks: Vec<Task>,
    /// Every point has one row, so points count as rows.
    is_distinct: bool,
    /// Cells of at most so many points are not grown but put aside, see [`crate::tree::parts`].
    pub(crate) aside_from: usize,
    pub(crate) aside: Vec<Part>,
    /// The codes that small cells are grown from, if they are, and those being grown.
    small: Option<(&'a Codes, Box<Lanes>)>,
}

impl<'a> Grower<'a> {
    /// A grower at a cell, which adds to what is given.
    pub(crate) fn new(store: &'a PointStore, domain: &Domain, cell: &'a mut Cell, arena: &'a mut Arena) -> Self {
        Self::reading(store, None, domain, cell, arena)
    }

    /// As [`Grower::new`] for many points, read as codes where there are any.
    pub(crate) fn reading(
        store: &'a PointStore,
        codes: Option<&'a Codes>,
        domain: &Domain,
        cell: &'a mut Cell,
        arena: &'a mut Arena,
    ) -> Self {
        let small = codes.filter(|_| NarrowCell::can_be(cell));
        Self {
            small: small.map(|codes| (codes, Box::new(Lanes::new()))),
            store,
            tile: CodeTile::new(store, codes),
            lifetime: domain.lifetime().get(),
            cell,
            arena,
            is_chained: domain.is_chained(),
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
    pub(crate) fn grow(&mut self, points: &mut [u32]) -> Link {
        if points.len() < 2 {
            return points.first().map_or(Link::EMPTY, |p| Link::single(*p));
        }
        let first_node = self.arena.nodes.len();
        let depth = self.cell.depth();
        self.forget_bounds();
        let root = self.grow_cell(points, 0, points.len(), None);
        while let Some(task) = self.tasks.pop() {
            self.tile.go_on(self.tasks.len());
            self.return_to(task.depth, task.log);
            let cut = self.arena.nodes[task.node.index()].cut();
            self.cell.enter(&cut, task.side);
            self.grow_cell(points, task.start, task.end, Some((task.node, task.side)));
        }
        self.grow_lanes(true);
        self.tile.clear();
        self.return_to(depth, 0);
        self.count_rows(first_node);
        root
    }

    /// Grows cells in lanes until few are left, or none.
    fn grow_lanes(&mut self, is_last: bool) {
        let Some((codes, lanes)) = &mut self.small else { return };
        let (store, lifetime, is_chained) = (self.store, self.lifetime, self.is_chained);
        let context = GrowContext { store, codes, lifetime, is_chained, rows_of: rows_of(store, self.is_distinct) };
        lanes.grow(&context, self.arena, is_last);
    }

    /// Puts the current cell, with few points, into a lane, and grows those that are there if they take all.
    #[inline]
    fn put_in_lane(&mut self, points: &[u32], parent: (NodeId, Side)) {
        if self.small.as_ref().is_some_and(|(_, lanes)| lanes.are_full()) {
            self.grow_lanes(false);
        }
        if let Some((codes, lanes)) = &mut self.small {
            let look_up = |number| (self.tile.point(number), self.tile.codes_of(codes, number));
            lanes.put(self.cell, parent, points, look_up);
        }
    }

    /// How the current cell is grown.
    #[inline]
    fn strategy(&self, n_points: usize, parent: Option<(NodeId, Side)>) -> Strategy {
        match parent {
            _ if n_points <= self.aside_from => Strategy::SetAside,
            Some(parent) if n_points <= MOST_POINTS && self.small.is_some() => Strategy::Lane(parent),
            _ if n_points == 2 => Strategy::Pair,
            _ => Strategy::Partition,
        }
    }

    /// Cuts the current cell until it is a leaf or its points part; both sides with several points go on the stack.
    fn grow_cell(&mut self, points: &mut [u32], start: usize, mut end: usize, parent: Option<(NodeId, Side)>) -> Link {
        let mut parent = parent;
        let mut top = None;
        // The first node of the current run of cuts with an empty side.
        let mut run = self.arena.nodes.len();
        loop {
            match self.strategy(end - start, parent) {
                Strategy::SetAside => {
                    let points = points[start..end].iter().map(|number| self.tile.point(*number)).collect();
                    self.aside.push(Part { parent, points, cell: self.cell.clone() });
                    break;
                }
                Strategy::Lane(parent) => {
                    self.put_in_lane(&points[start..end], parent);
                    break;
                }
                Strategy::Pair => {
                    self.tile.take(&mut points[start..end], self.tasks.len());
                    let child = self.grow_pair([points[start], points[start + 1]]);
                    self.attach(parent, &mut top, child);
                    break;
                }
                Strategy::Partition => self.tile.take(&mut points[start..end], self.tasks.len()),
            }
            let Some(cut) = &self.next_cut() else {
                let leaf = self.new_leaf(&points[start..end]);
                let child = self.close_run(run, Some(leaf));
                self.attach(parent, &mut top, child);
                break;
            };
            let middle = start + self.split(&mut points[start..end], cut);
            if middle == start || middle == end {
                let side = if middle == start { Side::Above } else { Side::Below };
                self.new_one_sided(cut, side, end - start);
                self.cell.enter(cut, side);
                continue;
            }
            let child = self.close_run(run, None);
            self.attach(parent, &mut top, child);
            let node = self.new_node(cut, end - start);
            let (depth, log) = (self.cell.depth(), self.log.len());
            if end - middle == 1 {
                self.arena.nodes[node.index()].above = Link::single(self.tile.point(points[middle]));
            } else {
                self.tasks.push(Task { node, side: Side::Above, start: middle, end, depth, log });
            }
            if middle - start == 1 {
                self.arena.nodes[node.index()].below = Link::single(self.tile.point(points[start]));
                break;
            }
            self.cell.enter(cut, Side::Below);
            parent = Some((node, Side::Below));
            end = middle;
            run = self.arena.nodes.len();
        }
        top.unwrap_or(Link::EMPTY)
    }

    /// Cuts the current cell until its two points part or the lifetime ends. No array is touched.
    fn grow_pair(&mut self, pair: [u32; 2]) -> Link {
        let run = self.arena.nodes.len();
        loop {
            let Some(cut) = &self.next_cut() else {
                let leaf = self.new_leaf(&pair);
                return self.close_run(run, Some(leaf));
            };
            let dim = cut.dim as usize;
            let side =
                |number: u32| if self.tile.is_below(number, dim, cut.location) { Side::Below } else { Side::Above };
            let (a, b) = (side(pair[0]), side(pair[1]));
            if a != b {
                let child = self.close_run(run, None);
                let node = self.new_node(cut, 2);
                let new = &mut self.arena.nodes[node.index()];
                *new.link_mut(a) = Link::single(self.tile.point(pair[0]));
                *new.link_mut(b) = Link::single(self.tile.point(pair[1]));
                return child;
            }
            self.new_one_sided(cut, a, 2);
            self.cell.enter(cut, a);
        }
    }

    /// Ends the run of nodes from `run` on, at the current cell, with a leaf or the node that comes next; what now stands
    /// where it starts.
    #[inline]
    fn close_run(&mut self, run: usize, leaf: Option<Link>) -> Link {
        let Arena { nodes, chains, .. } = &mut *self.arena;
        let first = Link::inner(NodeId::new(run as u32));
        if nodes.len() - run >= LEAST_CUTS && self.is_chained {
            let chain = chains.add_nodes(&nodes[run..], leaf.unwrap_or(first), &*self.cell);
            nodes.truncate(run);
            return chain;
        }
        let Some(leaf) = leaf else { return first };
        let Some(last) = nodes[run..].last_mut() else { return leaf };
        *last.link_mut(last.full_side()) = leaf;
        first
    }

    fn next_cut(&self) -> Option<Cut> {
        self.cell.next_cut_until(self.lifetime)
    }

    fn attach(&mut self, parent: Option<(NodeId, Side)>, top: &mut Option<Link>, child: Link) {
        if let Some((node, side)) = parent {
            *self.arena.nodes[node.index()].link_mut(side) = child;
        }
        top.get_or_insert(child);
    }

    #[inline]
    fn new_node(&mut self, cut: &Cut, n_points: usize) -> NodeId {
        let (id, mut node) = (NodeId::next_of(&self.arena.nodes), Node::new(cut));
        node.count = n_points as u32;
        self.arena.nodes.push(node);
        id
    }

    /// A cut that all points lie on one side of. There the next node follows, unless the run ends.
    #[inline]
    fn new_one_sided(&mut self, cut: &Cut, side: Side, n_points: usize) {
        let node = self.new_node(cut, n_points);
        *self.arena.nodes[node.index()].link_mut(side) = Link::inner(NodeId::next_of(&self.arena.nodes));
    }

    fn new_leaf(&mut self, points: &[u32]) -> Link {
        let (tile, rows_of) = (&self.tile, rows_of(self.store, self.is_distinct));
        Link::leaf(self.arena.leaves.push(points.iter().map(|number| tile.point(*number)), rows_of))
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
        let below = self.tile.part(points, dim, cut.location);
        if below == 0 || below == points.len() {
            self.learn_bounds(points, dim);
        }
        below
    }

    /// After a scan that separated nothing: bounds of the points, which make further misses free.
    fn learn_bounds(&mut self, points: &[u32], dim: usize) {
        let (lo, hi) = self.tile.range(points, dim);
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
    pub(crate) fn count_rows(&mut self, first: usize) {
        if self.is_distinct {
            return;
        }
        for id in (first..self.arena.nodes.len()).rev() {
            let node = self.arena.nodes[id];
            let [below, above] =
                [node.below, node.above].map(|link| self.arena.rows_of(self.arena.end_of(link), self.store));
            self.arena.nodes[id].count = below + above;
        }
    }
}

/// Counts the rows of points, of which each has one where all are distinct.
fn rows_of(store: &PointStore, is_distinct: bool) -> impl Fn(&[u32]) -> u32 {
    move |points| match points {
        points if is_distinct => points.len() as u32,
        points => points.iter().map(|point| store.multiplicity(*point)).sum(),
    }
}

impl Tree {
    /// The tree of all points of the store.
    pub fn grown(domain: &Domain, key: NodeKey, store: &PointStore) -> Self {
        Self::grown_by(domain, key, store, Codes::if_worth(domain, store, 1).as_ref())
    }

    /// As [`Tree::grown`], with the codes of the store's points on that domain: made once, they serve many trees.
    pub fn grown_by(domain: &Domain, key: NodeKey, store: &PointStore, codes: Option<&Codes>) -> Self {
        let mut points = store.all_points();
        let mut arena = Arena { nodes: Vec::with_capacity(points.len() + points.len() / 2), ..Arena::default() };
        let mut cell = domain.root_cell(key);
        let root = Grower::reading(store, codes, domain, &mut cell, &mut arena).grow(&mut points);
        arena.nodes.shrink_to_fit();
        arena.leaves.shrink_to_fit();
        arena.chains.shrink_to_fit();
        Self::from_arena(key, root, arena)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lifetime;
    use crate::process::Bounds;
    use crate::simd::portably;
    use crate::tree::{CodedRows, Frozen};

    /// The portable twins of all vector code grow the same trees, and find the same cells. Points come uniform and in
    /// clusters, with repeats, in few and many dimensions; on a machine without AVX2 both are the portable one.
    #[test]
    fn vectors_change_no_tree() {
        for (n_rows, n_dims) in [(3000, 5_u64), (1500, 16), (1200, 40)] {
            let uniform = |k: u64| NodeKey::root(11, k).draw(0).uniform();
            let spread = |row: u64| if row.is_multiple_of(3) { 1.0 } else { 1e-4 };
            let x = |row: u64, dim: u64| {
                uniform(row % 7 * n_dims + dim) + spread(row) * uniform(row % 900 * n_dims + dim + 99)
            };
            let rows: Vec<f64> = (0..n_rows).flat_map(|row| (0..n_dims).map(move |dim| x(row, dim))).collect();
            let n_dims = n_dims as usize;
            let bounds = Bounds::new(&vec![0.0; n_dims], &vec![2.0; n_dims]).unwrap();
            let domain = Domain::new(3, &bounds, Lifetime::new(500.0).unwrap()).unwrap();
            let mut store = PointStore::new(n_dims);
            for x in rows.chunks_exact(n_dims) {
                store.add(x).unwrap();
            }
            let grow = || Tree::grown_by(&domain, domain.tree_key(0), &store, Some(&Codes::new(&domain, &store)));
            let (tree, portable) = (grow(), portably(grow));
            assert!(tree.same_as(&store, &portable, &store), "{n_dims} dimensions");
            let queries: Vec<f64> = rows.iter().map(|x| (x + 1e-5).min(2.0)).collect();
            let route = || {
                let rows = CodedRows::new(&domain, &queries);
                tree.route(&domain, &store, &rows, domain.lifetime(), Frozen::Resumed)
            };
            assert_eq!(route(), portably(route), "{n_dims} dimensions");
        }
    }
}
