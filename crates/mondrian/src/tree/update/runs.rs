//! Changing runs of cuts with an empty side: chains that a point splits, and runs that forgetting joins.

use crate::process::{Cell, Cut, Side};
use crate::tree::arena::chain::{Bound, LEAST_CUTS, Run};
use crate::tree::query::replay::Replay;
use crate::tree::{ChainId, Child, Link, LinkKind, Node, NodeId, PointStore, Touched, Tree};

impl Tree {
    /// Splits a chain at the first cut that takes one of the `leaving` points out of it, with the walk at its start: a
    /// run, the cut, a run, each kept as its length says. What then stands where the chain started, and the node of the cut.
    ///
    /// The cut is a node with an empty side, where the points that leave go next. New nodes are touched; those up to it are
    /// the way there.
    pub(crate) fn split_chain<'x>(
        &mut self,
        id: ChainId,
        walk: &mut Replay,
        leaving: &(impl Iterator<Item = &'x [f64]> + Clone),
        store: &PointStore,
        touched: &mut Touched,
    ) -> (Link, NodeId) {
        walk.cell.settle();
        walk.start_here(self, id);
        let (chain, first_new) = (self.chain(id), self.arena.nodes.len());
        let rows = self.arena.rows_of(Child::of(chain.end()), store);
        let leaves =
            |cut: &Cut, side: Side| leaving.clone().any(|x| Side::of(x[cut.dim as usize], cut.location) != side);
        let (mut before, mut n_final) = (std::mem::take(&mut walk.made), 0);
        before.clear();
        let last = loop {
            let (cut, side) = walk.peek().expect("a point outside the sub-box leaves at a cut of the run");
            n_final += usize::from(walk.is_final(&cut, side));
            if leaves(&cut, side) {
                break (cut, side);
            }
            walk.pass(&cut, side);
            before.push((cut, side));
        };
        let first = Link::inner(NodeId::new(first_new as u32));
        let top = if before.len() >= LEAST_CUTS {
            let (first_time, last_time) = (before[0].0.time, before[before.len() - 1].0.time);
            let run = Run { first_time, last_time, n_cuts: before.len() as u32, end: first };
            self.arena.chains.add(run, before.iter().map(|(cut, side)| Bound::of(cut, *side)), &walk.cell)
        } else {
            for (cut, side) in &before {
                self.push_one_sided(cut, *side, rows);
            }
            first
        };
        let node = self.push_one_sided(&last.0, last.1, rows);
        walk.pass(&last.0, last.1);
        let rest = if walk.n_left() as usize >= LEAST_CUTS {
            let (next, _) = walk.peek().expect("there are cuts left");
            self.arena.chains.shorten(id, chain.n_cuts() - walk.n_left(), n_final, next.time);
            Link::chain(id)
        } else {
            for (cut, side) in walk.by_ref() {
                self.push_one_sided(&cut, side, rows);
            }
            self.arena.chains.free(id);
            chain.end()
        };
        let last = self.arena.nodes.last_mut().expect("the cut that separates is a node");
        *last.link_mut(last.full_side()) = rest;
        self.is_in_order = false;
        touched.nodes.extend((first_new as u32..self.arena.nodes.len() as u32).map(NodeId::new));
        walk.made = before;
        (top, node)
    }

    /// A node with all its rows on one side, where the next node follows unless something else is hung there.
    pub(crate) fn push_one_sided(&mut self, cut: &Cut, side: Side, rows: u32) -> NodeId {
        let id = NodeId::next_of(&self.arena.nodes);
        let mut node = Node::one_sided(cut, side, Link::inner(id.plus(1)));
        node.count = rows;
        self.arena.nodes.push(node);
        id
    }

    /// Joins the run that starts at `top`, of chains and nodes in any mixture, with the walk at its start, unsettled; the
    /// chain that it becomes if it is long enough.
    pub(crate) fn join_run(&mut self, top: Link, cell: &mut Cell) -> Option<Link> {
        let (mut n_cuts, mut bounds, mut first_time, mut last_time) = (0, Vec::new(), None, 0.0);
        let (mut dead_nodes, mut dead_chains) = (0, Vec::new());
        let mut child = top;
        loop {
            match child.kind() {
                LinkKind::Inner(id) if !self.node(id).separates() => {
                    let node = *self.node(id);
                    let side = node.full_side();
                    n_cuts += 1;
                    bounds.push(Bound::of(&node.cut(), side));
                    first_time.get_or_insert(node.time);
                    last_time = node.time;
                    cell.sink(&node.cut(), side);
                    dead_nodes += 1;
                    child = node.link(side);
                }
                LinkKind::Chain(id) => {
                    let chain = self.chain(id);
                    n_cuts += chain.n_cuts();
                    bounds.extend(self.arena.chains.bounds(id));
                    first_time.get_or_insert(chain.first_time());
                    last_time = chain.last_time();
                    cell.sink_far(self.arena.chains.further(id));
                    dead_chains.push(id);
                    child = chain.end();
                }
                _ => break,
            }
        }
        let first_time = first_time.filter(|_| n_cuts as usize >= LEAST_CUTS)?;
        cell.wind();
        self.n_dead += dead_nodes;
        dead_chains.into_iter().for_each(|id| self.arena.chains.free(id));
        Some(self.arena.chains.add(Run { first_time, last_time, n_cuts, end: child }, bounds.into_iter(), &*cell))
    }
}
