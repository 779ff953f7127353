//! The traversal of a tree by many rows at once: they go down together and are partitioned at each cut.
//!
//! Every batch operation on a tree is a [`Visitor`] of this one traversal: cells of rows, predictions of regression and
//! classification, densities. It alone knows how a tree is stored. Rows are partitioned by quantised codes and vector
//! instructions; a run of cuts with an empty side that is stored as one edge is passed in one step by the rows that
//! stay; the cut at which another row leaves it, and the cuts of a frozen cell, are drawn again from the key. Several
//! cells are drawn from at a time (`frozen.rs`).
//!
//! The side below a cut is visited before the side above. A visitor is called for the cuts of a cell in the order of their
//! times, and of no other cell in between, except of cells whose cuts are drawn again: those
//! [wait](Visitor::put_aside) for others.

#![expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]

use crate::process::{Cell, Cut, NarrowCell, Side};
use crate::simd::partition::partition;
use crate::tree::arena::node::LinkKind;
use crate::tree::query::frozen::{Drawn, Resumed, Target, Waiting};
use crate::tree::query::replay::Replay;
use crate::tree::query::walk::Walk;
use crate::tree::{ChainId, Child, CodedRows, Domain, Link, NodeId, PointStore, Tree};

/// A cut of a cell that holds training points and rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Split<'a> {
    pub(crate) cut: Cut,
    /// The node that stores the cut; none where it was drawn again.
    pub(crate) node: Option<NodeId>,
    /// Rows of the cell; the first `n_below` of them lie below the cut.
    pub(crate) rows: &'a [u32],
    pub(crate) n_below: usize,
    /// Where the rows start in the order of all rows.
    pub(crate) start: usize,
    /// Training rows below and above, and the cell's interval in the dimension of the cut: only for a visitor that
    /// [sees every cut](Visitor::SEES_EVERY_CUT).
    pub(crate) counts: [u32; 2],
    pub(crate) interval: (f64, f64),
}

/// How rows left the training points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Exit {
    /// The time of the cut that took them away; an upper bound where the visitor does not need [times](Exits::Timed).
    pub(crate) time: f64,
    /// The smallest part of the tree that still had them.
    pub(crate) parent: Child,
}

/// What a visitor has to know about rows that leave the training points through a cut with an empty side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exits {
    /// When they leave.
    Timed,
    /// Whether they leave within the lifetime.
    Untimed,
    /// Nothing: rows that leave are treated as those that stay in the cell.
    Ignored,
}

/// What is computed on the way down.
pub(crate) trait Visitor {
    /// What is known of a cell on the way to it.
    type State: Copy;

    /// Whether every cut changes the state, those with an empty side and those of frozen cells included. Otherwise
    /// [`Visitor::cut`] is called for cuts that separate training points.
    const SEES_EVERY_CUT: bool = false;

    /// Whether rows keep their order within a cell. Otherwise only large ranges do.
    const KEEPS_ORDER: bool = false;

    /// What matters about rows that leave a cell with this state.
    fn exits(&self, state: Self::State) -> Exits;

    /// A cut; the states of both sides.
    fn cut(&mut self, split: &Split<'_>, state: Self::State) -> [Self::State; 2];

    /// A cut with an empty side, for a visitor that [sees every cut](Visitor::SEES_EVERY_CUT): the states of the side that holds
    /// training points, `full`, and of the other.
    #[inline(always)]
    fn cut_off(&mut self, split: &Split<'_>, full: Side, state: Self::State) -> [Self::State; 2] {
        let states = self.cut(split, state);
        [states[full.index()], states[full.other().index()]]
    }

    /// Rows enter a side of a cut that separates training points; the state that they go on with.
    ///
    /// The side above is entered when the rows below have come to their ends, so that what is read of it follows in memory what was
    /// read before: the nodes of a tree are stored in the order of this traversal.
    #[inline]
    fn enter(&mut self, child: Child, state: Self::State) -> Self::State {
        let _ = child;
        state
    }

    /// Rows leave the training points.
    fn leave(&mut self, rows: &[u32], exit: Exit, state: Self::State);

    /// Rows are in the cell of `child`, which is not cut any more within the lifetime.
    fn land(&mut self, rows: &[u32], child: Child, state: Self::State);

    /// Whether the cuts of the frozen cell of a point are drawn.
    fn resumes(&self, point: u32) -> bool;

    /// A cell with these rows waits for its cuts to be drawn while others are visited; the state that it waits with. No
    /// other cell with the same `slot`, which is below [`SLOTS`](crate::tree::query::frozen::SLOTS), waits meanwhile.
    fn put_aside(&mut self, rows: &[u32], state: Self::State, slot: usize) -> Self::State {
        let _ = (rows, slot);
        state
    }
}

/// A tree, rows inside its root box, and a lifetime of at most the domain's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Traversal<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) domain: &'a Domain,
    pub(crate) store: &'a PointStore,
    pub(crate) rows: &'a CodedRows<'a>,
    pub(crate) lifetime: f64,
    /// Whether cuts are drawn that the tree does not store. Without, frozen cells are taken as they stand, and only few
    /// rows may ask when they leave.
    pub(crate) draws_cuts: bool,
}

impl Traversal<'_> {
    /// Takes rows down the tree. They end up in an order in which the rows of every cell are a range.
    pub(crate) fn run<V: Visitor>(&self, order: &mut [u32], root: V::State, visitor: &mut V) {
        let cell = || self.domain.root_cell(self.tree.key());
        let walk = if self.draws_cuts { Walk::new(cell(), self.tree.key()) } else { Walk::Unknown };
        let mut descent = Descent {
            on: *self,
            waiting: if let Walk::Narrow(_) = walk { Some(Waiting::new()) } else { None },
            walk,
            order,
            scratch: Vec::new(),
            tasks: Vec::new(),
            visitor,
        };
        descent.run(root);
    }
}

/// Rows that wait at the upper side of a node.
#[derive(Debug, Clone, Copy)]
struct Task<S> {
    node: NodeId,
    link: Link,
    start: usize,
    end: usize,
    /// Depth of the walk at the node.
    depth: usize,
    state: S,
}

struct Descent<'a, 'v, V: Visitor> {
    on: Traversal<'a>,
    walk: Walk,
    /// Cells whose cuts are drawn together, where the walk allows it.
    waiting: Option<Waiting<'a, V::State>>,
    order: &'v mut [u32],
    scratch: Vec<u32>,
    tasks: Vec<Task<V::State>>,
    visitor: &'v mut V,
}

impl<'a, V: Visitor> Descent<'a, '_, V> {
    fn run(&mut self, root: V::State) {
        self.descend(self.on.tree.root, (0, self.order.len()), root);
        while let Some(task) = self.tasks.pop() {
            if self.on.draws_cuts {
                self.walk.return_to(task.depth);
                self.walk.enter(&self.on.tree.node(task.node).cut(), Side::Above);
            }
            let state = self.visitor.enter(self.on.tree.end_of(task.link), task.state);
            self.descend(task.link, (task.start, task.end), state);
        }
        self.draw_waiting(true);
    }

    /// Takes rows of a cell down. Where both sides of a cut have rows, those above wait in `tasks`.
    fn descend(&mut self, mut link: Link, (mut start, mut end): (usize, usize), mut state: V::State) {
        let tree = self.on.tree;
        while start < end {
            let id = match link.kind() {
                LinkKind::Inner(id) => id,
                LinkKind::Chain(id) => {
                    let Some(stayed) = self.pass_chain(id, (start, end), &mut state) else { return };
                    ((start, end), link) = (stayed, tree.chain(id).end());
                    continue;
                }
                _ => return self.stop(link, (start, end), state),
            };
            let node = tree.node(id);
            tree.prefetch_chain(node.below);
            tree.prefetch(node.above);
            if node.time > self.on.lifetime {
                return self.visitor.land(&self.order[start..end], Child::of(link), state);
            }
            let (dim, location) = (node.dim(), node.location);
            let order = &mut self.order[start..end];
            let n_below = match order {
                // Deep down nearly every row is alone.
                [row] => usize::from(self.on.rows.is_code_below(*row, dim, location)),
                _ => self.on.rows.part(order, &mut self.scratch, dim, location, V::KEEPS_ORDER),
            };
            let middle = start + n_below;
            let (separates, cut) = (node.separates(), node.cut());
            let mut side = if middle == start { Side::Above } else { Side::Below };
            let (counts, interval) = if V::SEES_EVERY_CUT {
                (tree.arena.counts(node, self.on.store), self.walk.interval(dim))
            } else {
                ([0; 2], (0.0, 0.0))
            };
            let rows = &self.order[start..end];
            let split = Split { cut, node: Some(id), rows, n_below, start, counts, interval };
            if separates {
                let states = self.visitor.cut(&split, state);
                state = states[side.index()];
                if middle != start && middle != end {
                    let (link, depth) = (node.above, self.walk.depth());
                    self.tasks.push(Task { node: id, link, start: middle, end, depth, state: states[1] });
                    end = middle;
                }
            } else {
                side = node.full_side();
                let states = if V::SEES_EVERY_CUT { self.visitor.cut_off(&split, side, state) } else { [state; 2] };
                // By places in an array: which side it is cannot be predicted, so a branch would cost more.
                let (ends, at) = ([start, middle, end], side.index());
                let leave = ends[1 - at]..ends[2 - at];
                if !leave.is_empty() {
                    let exit = Exit { time: node.time, parent: Child::of(link) };
                    self.visitor.leave(&self.order[leave], exit, states[1]);
                }
                (start, end, state) = (ends[at], ends[at + 1], states[0]);
                if start == end {
                    return;
                }
            }
            link = node.link(side);
            if separates {
                state = self.visitor.enter(tree.end_of(link), state);
            }
            if self.on.draws_cuts {
                self.walk.enter(&node.cut(), side);
            }
        }
    }

    /// Rows that have come to the end of the stored tree.
    fn stop(&mut self, link: Link, (start, end): (usize, usize), state: V::State) {
        let child = Child::of(link);
        match link.kind() {
            LinkKind::Single(point) if self.on.draws_cuts && self.visitor.resumes(point) => {
                let store = self.on.store;
                store.prefetch(child);
                let frozen = Resumed { child, count: store.multiplicity(point), is_point: true, start, end, state };
                self.draw(frozen, Target::Point(store.point(point)));
            }
            // Only the root: the empty side of a node is left there.
            LinkKind::Empty => self.visitor.leave(&self.order[start..end], Exit { time: 0.0, parent: child }, state),
            _ => self.visitor.land(&self.order[start..end], child, state),
        }
    }

    /// Takes rows past a chain. The range of those that come to its end, if any; the others have left, wait to be asked
    /// when they left, or have landed.
    fn pass_chain(
        &mut self,
        id: ChainId,
        (start, end): (usize, usize),
        state: &mut V::State,
    ) -> Option<(usize, usize)> {
        let (tree, rows, lifetime) = (self.on.tree, self.on.rows, self.on.lifetime);
        let chain = tree.chain(id);
        let child = Child::of(chain.end());
        if chain.first_time() > lifetime {
            self.visitor.land(&self.order[start..end], child, *state);
            return None;
        }
        if V::SEES_EVERY_CUT {
            return self.pass_cut_by_cut(id, (start, end), state);
        }
        let (exits, ends_inside) = (self.visitor.exits(*state), chain.last_time() > lifetime);
        if ends_inside && exits == Exits::Ignored {
            self.visitor.land(&self.order[start..end], child, *state);
            return None;
        }
        let holds = |row: u32| tree.chain_holds(id, rows.row(row));
        let middle = start + partition(&mut self.order[start..end], &mut self.scratch, holds);
        if middle < end {
            if exits == Exits::Timed || ends_inside {
                self.leave_chain(id, (middle, end), *state);
            } else {
                let exit = Exit { time: chain.last_time(), parent: child };
                self.visitor.leave(&self.order[middle..end], exit, *state);
            }
        }
        if ends_inside {
            self.visitor.land(&self.order[start..middle], child, *state);
            return None;
        }
        if start < middle {
            self.walk.enter_chain(&tree.arena, id);
        }
        Some((start, middle))
    }

    /// Rows that leave a chain: each of its cuts is drawn again while rows are left.
    ///
    /// The chain follows the upper corner of its last cell: cells are half-open, so that a cell below a cut has its upper
    /// bound at or below it.
    fn leave_chain(&mut self, id: ChainId, (start, end): (usize, usize), state: V::State) {
        let tree = self.on.tree;
        let resumed = Resumed { child: Child::of(tree.chain(id).end()), count: 0, is_point: false, start, end, state };
        match &self.walk {
            Walk::Narrow(walk) => {
                let mut corner = [0.0; NarrowCell::MOST_DIMS];
                corner.copy_from_slice(walk.bounds().as_slices().0);
                tree.arena.chains.move_corner(id, &mut corner);
                self.draw(resumed, Target::Corner(&corner));
            }
            Walk::Wide(cell) => {
                let mut corner = cell.upper().to_vec();
                tree.arena.chains.move_corner(id, &mut corner);
                self.draw(resumed, Target::Corner(&corner));
            }
            Walk::Unknown => {
                let mut replay = Replay::on(self.on.domain.root_cell(tree.key()));
                replay.start(tree, self.on.rows.row(self.order[start]), id);
                let corner = replay.upper_corner().to_vec();
                self.draw_from(&mut replay.cell, resumed, &corner);
            }
        }
    }

    /// As [`Descent::pass_chain`] for a visitor that sees every cut.
    fn pass_cut_by_cut(
        &mut self,
        id: ChainId,
        (start, end): (usize, usize),
        state: &mut V::State,
    ) -> Option<(usize, usize)> {
        let (tree, store) = (self.on.tree, self.on.store);
        let (chain, mut replay) = (tree.chain(id), Replay::on(self.on.domain.root_cell(tree.key())));
        replay.start(tree, self.on.rows.row(self.order[start]), id);
        let (child, corner) = (Child::of(chain.end()), replay.upper_corner().to_vec());
        let count = tree.rows_of(child, store);
        let mut resumed = Resumed { child, count, is_point: false, start, end, state: *state };
        for _ in 0..chain.n_cuts() {
            let Some(cut) = replay.cell.next_cut_until(self.on.lifetime) else {
                self.visitor.land(&self.order[resumed.start..resumed.end], child, resumed.state);
                return None;
            };
            let side = self.pass(&mut resumed, &replay.cell, &cut, &corner);
            if resumed.start == resumed.end {
                return None;
            }
            replay.cell.enter(&cut, side);
        }
        self.walk.enter_chain(&tree.arena, id);
        *state = resumed.state;
        Some((resumed.start, resumed.end))
    }

    /// Rows in `cell` pass its next cut; the side of the target.
    fn pass(&mut self, resumed: &mut Resumed<V::State>, cell: &Cell, cut: &Cut, target: &[f64]) -> Side {
        let interval = (cell.lower()[cut.dim as usize], cell.upper()[cut.dim as usize]);
        let drawn = Drawn { cut: *cut, interval, target };
        resumed.pass(drawn, self.on.rows, self.order, &mut self.scratch, self.visitor)
    }

    /// Draws the cuts of the current cell, which follow `target`, until no rows are left or the lifetime ends.
    fn draw(&mut self, resumed: Resumed<V::State>, target: Target<'a, '_>) {
        if let (Walk::Narrow(walk), Some(waiting)) = (&mut self.walk, &mut self.waiting) {
            let clock = walk.clock(&self.on.tree.arena);
            let rows = &self.order[resumed.start..resumed.end];
            self.on.rows.prefetch(rows[0]);
            waiting.put(walk.bounds(), clock, (resumed, rows), target, self.visitor);
            if waiting.is_full() {
                self.draw_waiting(false);
            }
            return;
        }
        let (Target::Point(target) | Target::Corner(target)) = target;
        let Walk::Wide(mut cell) = std::mem::replace(&mut self.walk, Walk::Unknown) else { return };
        let depth = cell.depth();
        self.draw_from(&mut cell, resumed, target);
        self.walk = Walk::Wide(cell);
        self.walk.return_to(depth);
    }

    /// Draws cuts of the cells that wait: until few are left, or none.
    fn draw_waiting(&mut self, all: bool) {
        if let Some(waiting) = &mut self.waiting {
            waiting.run(self.on.rows, self.on.lifetime, self.order, self.visitor, all);
        }
    }

    /// As [`Descent::draw`], from the cell that a walk stands in.
    fn draw_from(&mut self, cell: &mut Cell, mut resumed: Resumed<V::State>, target: &[f64]) {
        while resumed.start < resumed.end {
            let Some(cut) = cell.next_cut_until(self.on.lifetime) else {
                let rows = &self.order[resumed.start..resumed.end];
                return self.visitor.land(rows, resumed.child, resumed.state);
            };
            let side = self.pass(&mut resumed, cell, &cut, target);
            cell.enter(&cut, side);
        }
    }
}
