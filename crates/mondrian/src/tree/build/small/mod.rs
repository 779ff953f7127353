//! Cells of at most 32 points, grown eight at a time.
//!
//! Most nodes of a tree hold few points. One cell after the other, the processor mostly waits: for the dependent steps of a
//! draw, and for mispredicted branches, since which way points go is random. So small cells get a lane each, and a
//! [round](round) finds the next cuts of several lanes before any of them goes on. A lane grows its cell depth first, as
//! [`Grower`](crate::tree::build::Grower) would, and its nodes come out in the order that the cells went in.
//!
//! A lane keeps its points' codes dimension by dimension, and a set of points is a word with a bit for each: partitioning
//! them at a cut is one [comparison](Compare), however many are left.
//!
//! What it buys: a tree of 200 000 × 10 uniform rows takes 29 instead of 38 ms (24 %; docs/benchmarks/tree.md). Half of a
//! fit is still spent here.

#![expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]

pub(crate) mod draws;
pub(crate) mod round;

use std::collections::VecDeque;

use crate::process::{Cell, Cut, NarrowCell, Side};
use crate::simd::compare::{Compare, MOST, WithCompare, dispatch};
use crate::simd::transpose::{EIGHT, transposed};
use crate::tree::arena::chain::LEAST_CUTS;
use crate::tree::build::small::draws::ABREAST;
use crate::tree::build::small::round::Round;
use crate::tree::{Arena, ChainId, Codes, Link, LinkKind, Node, NodeId, PointStore};

/// Cells of at most so many points are grown in lanes.
pub(crate) const MOST_POINTS: usize = MOST;
/// Lanes, those that wait for their turn included.
const LANES: usize = 2 * ABREAST;
/// Cells of a lane that have several points and lie apart, at most: one is current, and the others wait.
const MOST_CELLS: usize = MOST_POINTS / 2;
/// Cells of all lanes.
const N_CELLS: usize = LANES * MOST_CELLS;
/// The link of a lane's first cell.
const ROOT: u32 = u32::MAX;

/// A small cell being grown. Numbers of nodes are the lane's own until it is done.
///
/// A link says where a cell hangs: twice the number of a node, and one more for the side above.
#[derive(Debug)]
pub(crate) struct Lane {
    /// The first of the lane's places in [`Lanes::cells`], and the current one: those before it wait.
    first: usize,
    cell: usize,
    /// The current cell's points and link.
    pub(crate) points: u32,
    link: u32,
    /// The first node of the current run of cuts with an empty side, and the run's link.
    run: u32,
    run_link: u32,
    n_nodes: u32,
    /// Larger than needed, so that a node is written whether it counts or not.
    nodes: Vec<Node>,
    chains: Vec<ChainId>,
    root: Link,
    parent: (NodeId, Side),
    /// Where in [`Lanes::grown`] it goes when it is done.
    place: usize,
}

/// What a lane has grown, until all that came before has been added to the tree.
#[derive(Debug, Default)]
struct Grown {
    nodes: Vec<Node>,
    n_nodes: u32,
    chains: Vec<ChainId>,
    /// The root and where it hangs, once they are known.
    hangs_at: Option<(Link, (NodeId, Side))>,
}

/// An index that is known to be below `N`. Reducing it is free for a power of two and spares a bounds check, with its
/// branch, in loops that run for every node. A wrong index would silently read another lane, so the builds of the tests
/// assert it.
#[inline(always)]
fn within<const N: usize>(index: usize) -> usize {
    const { assert!(N.is_power_of_two()) };
    debug_assert!(index < N, "index {index} of {N}");
    index % N
}

/// What lanes are grown with.
pub(crate) struct GrowContext<'a, R> {
    pub(crate) store: &'a PointStore,
    pub(crate) codes: &'a Codes,
    pub(crate) lifetime: f64,
    pub(crate) is_chained: bool,
    /// Number of rows of some points.
    pub(crate) rows_of: R,
}

/// All lanes. Those in use come first.
///
/// Of fixed size, all of it: a look into a vector asks for its place and length first, and there are dozens a cut.
#[derive(Debug)]
pub(crate) struct Lanes {
    lanes: [Lane; LANES],
    n_used: usize,
    /// [`MOST_CELLS`] cells a lane, with the points and links of those that wait.
    pub(crate) cells: Box<[NarrowCell; N_CELLS]>,
    waiting: [(u32, u32); N_CELLS],
    /// The points' codes, a row per dimension, and numbers.
    codes: [[i16; MOST_POINTS]; N_CELLS],
    numbers: [[u32; MOST_POINTS]; LANES],
    /// Places for what is grown; those in use, in the order that cells came in; and free ones. Only numbers of places move:
    /// moving what is grown would wait until all nodes before have reached memory.
    grown: Vec<Grown>,
    queue: VecDeque<usize>,
    free: Vec<usize>,
}

impl Lanes {
    pub(crate) fn new() -> Self {
        const { assert!(NarrowCell::MOST_DIMS <= MOST_CELLS, "codes have as many rows as there are cells") };
        Self {
            lanes: std::array::from_fn(|k| Lane::new(k * MOST_CELLS)),
            n_used: 0,
            cells: vec![NarrowCell::default(); N_CELLS].try_into().expect("as many"),
            waiting: [(0, 0); N_CELLS],
            codes: [[0; MOST_POINTS]; N_CELLS],
            numbers: [[0; MOST_POINTS]; LANES],
            grown: Vec::new(),
            queue: VecDeque::new(),
            free: Vec::new(),
        }
    }

    pub(crate) fn are_full(&self) -> bool {
        self.n_used == LANES
    }

    /// Puts a cell with several points, each with its number and codes, into a free lane. It hangs at a side of a node.
    ///
    /// On its own: inside the walk down large cells it would take that one's registers.
    #[inline(never)]
    pub(crate) fn put<'c>(
        &mut self,
        cell: &Cell,
        parent: (NodeId, Side),
        points: &[u32],
        look_up: impl Fn(u32) -> (u32, &'c [u16]),
    ) {
        let lane = &mut self.lanes[self.n_used];
        let place = self.free.pop().unwrap_or(self.grown.len());
        if place == self.grown.len() {
            self.grown.push(Grown::default());
        }
        self.queue.push_back(place);
        lane.start(parent, points.len(), place);
        self.n_used += 1;
        self.cells[lane.first].set(cell);
        let (rows, numbers) = (&mut self.codes[lane.first..][..MOST_CELLS], &mut self.numbers[lane.first / MOST_CELLS]);
        for (some, first) in points.chunks(EIGHT).zip((0..).step_by(EIGHT)) {
            // Where there are fewer than eight, the last counts for all that are missing.
            let mut eight: [&[u16]; EIGHT] = [&[]; EIGHT];
            for k in 0..EIGHT {
                (numbers[first + k], eight[k]) = look_up(some[k.min(some.len() - 1)]);
            }
            turn(rows, first, &eight);
        }
    }

    /// Grows cells until there are too few to go on side by side, or all of them.
    pub(crate) fn grow<R: Fn(&[u32]) -> u32>(&mut self, context: &GrowContext<'_, R>, arena: &mut Arena, all: bool) {
        dispatch(Growth { lanes: self, context, arena, all });
    }

    #[inline(always)]
    fn grow_by<R>(&mut self, by: impl Compare, context: &GrowContext<'_, R>, arena: &mut Arena, all: bool)
    where
        R: Fn(&[u32]) -> u32,
    {
        let mut round = Round::default();
        while self.n_used >= if all { 1 } else { ABREAST } {
            let n = self.n_used.min(ABREAST);
            round.run(n, self, by, context.codes, context.store);
            // Backwards, so that removal by a swap with the last is safe.
            for at in (0..n).rev() {
                if self.step(at, &round, context, arena) {
                    self.finish(at, arena);
                }
            }
        }
    }

    #[inline(always)]
    pub(crate) fn lane(&self, at: usize) -> &Lane {
        &self.lanes[within::<LANES>(at)]
    }

    /// The codes of a lane's points in one dimension.
    #[inline(always)]
    pub(crate) fn codes_of(&self, lane: &Lane, dim: u32) -> &[i16; MOST_POINTS] {
        &self.codes[within::<N_CELLS>(lane.first + dim as usize)]
    }

    /// Takes a lane on to its current cell, which a cut has made; the cell's place.
    #[inline(always)]
    pub(crate) fn enter(&mut self, at: usize) -> usize {
        let lane = &self.lanes[within::<LANES>(at)];
        // The first cell is entered already.
        if let Some(node) = lane.nodes.get(lane.link as usize / 2) {
            self.cells[within::<N_CELLS>(lane.cell)].enter(&node.cut(), Side::of_bit(lane.link));
        }
        lane.cell
    }

    /// The points of a lane's current cell that lie below a cut, by their coordinates.
    #[cold]
    pub(crate) fn compare_exactly(&self, lane: &Lane, cut: &Cut, store: &PointStore) -> u32 {
        let is_below = |number: u32| store.point(number)[cut.dim as usize] <= cut.location;
        let numbers = &self.numbers[lane.first / MOST_CELLS];
        bits(lane.points).map(|k| u32::from(is_below(numbers[k])) << k).sum()
    }

    /// Cuts the current cell of a lane, or makes it a leaf, and goes on to the next; whether there is none.
    ///
    /// The outcomes of cuts are unpredictable, so the loop is branch-free and uses masks. Of the cells below and above,
    /// the one with several points is next; if both have, the one above waits; if neither has, one that waits is next.
    #[inline(always)]
    fn step<R: Fn(&[u32]) -> u32>(
        &mut self,
        at: usize,
        round: &Round,
        context: &GrowContext<'_, R>,
        arena: &mut Arena,
    ) -> bool {
        let cut = &round.cuts.cut(at);
        if !(cut.time <= context.lifetime && cut.time < f64::INFINITY) {
            return self.end(at, context, arena);
        }
        let (separates, ends) = (round.separates[at], round.ends[at]);
        let lane = &mut self.lanes[within::<LANES>(at)];
        if separates != 0 && lane.is_run_long(context.is_chained) {
            lane.chain(Link::inner(NodeId::new(lane.run)), &self.cells[lane.cell], arena);
        }
        let (id, next, slot) = (lane.n_nodes, lane.n_nodes + 1, within::<LANES>(lane.first / MOST_CELLS));
        let children = [0, 1].map(|side| {
            // An empty side has as many trailing zeros as there are points: any point will do, its mask is zero.
            let single = self.numbers[slot][round.sides[side][at].trailing_zeros() as usize % MOST_POINTS];
            let (is_single, is_several) = (round.is_single[side][at], round.is_several[side][at]);
            Link::from_word(round.children[side][at] | single & is_single | next & is_several)
        });
        lane.write(Node::with_children(cut, children, round.counts[at]));
        let has_waiting = lane.cell != lane.first;
        if ends != 0 && !has_waiting {
            return true;
        }
        let side = usize::from(round.is_several[0][at] == 0);
        let (waiting_points, waiting_link) = self.waiting[within::<N_CELLS>(lane.cell - usize::from(has_waiting))];
        self.waiting[within::<N_CELLS>(lane.cell)] = (round.sides[1][at], 2 * id + 1);
        lane.points = waiting_points & ends | round.sides[side][at] & !ends;
        lane.link = waiting_link & ends | (2 * id + side as u32) & !ends;
        lane.hang(lane.link, Link::inner(NodeId::new(next)));
        let starts_run = separates | ends;
        lane.run_link = lane.link & starts_run | lane.run_link & !starts_run;
        lane.run = next & starts_run | lane.run & !starts_run;
        if round.parts[at] != 0 {
            let (before, after) = self.cells.split_at_mut(within::<N_CELLS>(lane.cell + 1));
            if let (Some(from), Some(to)) = (before.last(), after.first_mut()) {
                to.copy_from(from);
            }
            lane.cell += 1;
        } else {
            lane.cell -= usize::from(ends != 0);
        }
        false
    }

    /// Makes the current cell of a lane a leaf and goes on to one that waits; whether there is none.
    #[inline(never)]
    fn end<R: Fn(&[u32]) -> u32>(&mut self, at: usize, context: &GrowContext<'_, R>, arena: &mut Arena) -> bool {
        let lane = &mut self.lanes[at];
        let numbers = &self.numbers[lane.first / MOST_CELLS];
        let leaf = Link::leaf(arena.leaves.push(bits(lane.points).map(|k| numbers[k]), &context.rows_of));
        if lane.is_run_long(context.is_chained) {
            lane.chain(leaf, &self.cells[lane.cell], arena);
        } else {
            lane.hang(lane.link, leaf);
        }
        if lane.cell == lane.first {
            return true;
        }
        lane.cell -= 1;
        (lane.points, lane.link) = self.waiting[lane.cell];
        lane.hang(lane.link, Link::inner(NodeId::new(lane.n_nodes)));
        (lane.run, lane.run_link) = (lane.n_nodes, lane.link);
        false
    }

    /// Frees a lane that is done, and adds to the tree what is next.
    #[inline(never)]
    fn finish(&mut self, at: usize, arena: &mut Arena) {
        let lane = &mut self.lanes[at];
        let grown = &mut self.grown[lane.place];
        std::mem::swap(&mut lane.nodes, &mut grown.nodes);
        std::mem::swap(&mut lane.chains, &mut grown.chains);
        (grown.n_nodes, grown.hangs_at) = (lane.n_nodes, Some((lane.root, lane.parent)));
        self.n_used -= 1;
        self.lanes.swap(at, self.n_used);
        while let Some(first) = self.queue.front()
            && self.grown[*first].hang(arena)
        {
            self.free.extend(self.queue.pop_front());
        }
    }
}

/// Lanes to be grown, for [`dispatch`].
struct Growth<'a, 'c, R> {
    lanes: &'a mut Lanes,
    context: &'a GrowContext<'c, R>,
    arena: &'a mut Arena,
    all: bool,
}

impl<R: Fn(&[u32]) -> u32> WithCompare for Growth<'_, '_, R> {
    #[inline(always)]
    fn call(self, by: impl Compare) {
        self.lanes.grow_by(by, self.context, self.arena, self.all);
    }
}

/// Puts the codes of eight points into rows, from place `first` on.
#[inline]
fn turn(rows: &mut [[i16; MOST_POINTS]], first: usize, codes: &[&[u16]; EIGHT]) {
    let n_dims = codes[0].len();
    if n_dims < EIGHT {
        for (k, codes) in codes.iter().enumerate() {
            for (row, code) in rows.iter_mut().zip(*codes) {
                row[first + k] = Codes::to_signed(*code);
            }
        }
        return;
    }
    // The first eight dimensions and the last, which are all.
    for start in [0, n_dims - EIGHT] {
        let mut block = [[0; EIGHT]; EIGHT];
        for (eight, codes) in block.iter_mut().zip(codes) {
            eight.copy_from_slice(&codes[start..start + EIGHT]);
        }
        let turned = transposed(block);
        for (row, eight) in rows[start..start + EIGHT].iter_mut().zip(&turned) {
            for (to, code) in row[first..first + EIGHT].iter_mut().zip(eight) {
                *to = Codes::to_signed(*code);
            }
        }
    }
}

/// The places of a word's bits.
#[inline]
pub(crate) fn bits(word: impl Into<u64>) -> impl Iterator<Item = usize> {
    let mut left = word.into();
    std::iter::from_fn(move || {
        let first = (left != 0).then(|| left.trailing_zeros() as usize);
        left &= left.wrapping_sub(1);
        first
    })
}

impl Lane {
    fn new(first: usize) -> Self {
        Self {
            first,
            cell: first,
            points: 0,
            link: ROOT,
            run: 0,
            run_link: ROOT,
            n_nodes: 0,
            nodes: Vec::new(),
            chains: Vec::new(),
            root: Link::EMPTY,
            parent: (NodeId::new(0), Side::Below),
            place: 0,
        }
    }

    fn start(&mut self, parent: (NodeId, Side), n_points: usize, place: usize) {
        self.cell = self.first;
        self.points = u32::MAX >> (MOST_POINTS - n_points);
        (self.link, self.run, self.run_link) = (ROOT, 0, ROOT);
        (self.n_nodes, self.root) = (0, Link::inner(NodeId::new(0)));
        (self.parent, self.place) = (parent, place);
    }

    /// Whether the current run is kept as a chain.
    #[inline]
    fn is_run_long(&self, is_chained: bool) -> bool {
        (self.n_nodes - self.run) as usize >= LEAST_CUTS && is_chained
    }

    #[inline(always)]
    fn write(&mut self, node: Node) {
        let id = self.n_nodes as usize;
        if id == self.nodes.len() {
            self.nodes.resize(2 * id.max(MOST_POINTS), node);
        }
        self.nodes[id] = node;
        self.n_nodes += 1;
    }

    #[inline(always)]
    fn hang(&mut self, link: u32, child: Link) {
        match self.nodes.get_mut(link as usize / 2) {
            Some(node) => *node.link_at(link as usize % 2) = child,
            None => self.root = child,
        }
    }

    /// Makes the current run a chain. `cell` stands at its end.
    #[cold]
    fn chain(&mut self, end: Link, cell: &NarrowCell, arena: &mut Arena) {
        let run = &self.nodes[self.run as usize..self.n_nodes as usize];
        let chain = arena.chains.add_nodes(run, end, cell);
        if let LinkKind::Chain(id) = chain.kind() {
            self.chains.push(id);
        }
        self.n_nodes = self.run;
        self.hang(self.run_link, chain);
    }
}

impl Grown {
    /// Adds it to the tree, numbered on, if it is grown; whether it is.
    fn hang(&mut self, arena: &mut Arena) -> bool {
        let Some((root, (node, side))) = self.hangs_at.take() else { return false };
        let first = arena.nodes.len() as u32;
        let moved = |child: Link| child.after(first);
        for id in self.chains.drain(..) {
            arena.chains.set_end(id, moved(arena.chains.end_of(id)));
        }
        arena.nodes.extend(self.nodes[..self.n_nodes as usize].iter().map(|node| node.renamed(moved)));
        *arena.nodes[node.index()].link_mut(side) = moved(root);
        true
    }
}
