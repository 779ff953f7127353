//! Changing runs of cuts with an empty side: chains that a point splits, and runs that forgetting joins.

use crate::process::{Cell, Cut, Side};
use crate::tree::arena::chain::{Bound, LEAST_CUTS, Run};
use crate::tree::query::place::Parting;
use crate::tree::query::replay::Replay;
use crate::tree::{ChainId, Child, Link, LinkKind, Node, NodeId, PointStore, Touched, Tree};

impl Tree {
    /// Splits a chain at the cut by which something leaves it, with the walk in front of that: a run, the cut, a run, each kept as its
    /// length says. What then stands where the chain started, and the node of the cut.
    ///
    /// The cut is a node with an empty side, where the points that leave go next. New nodes are touched; those up to it are
    /// the way there.
    pub(crate) fn split_chain(
        &mut self,
        id: ChainId,
        walk: &mut Replay,
        Parting { cut, side, n_final }: &Parting,
        store: &PointStore,
        touched: &mut Touched,
    ) -> (Link, NodeId) {
        let (chain, first_new) = (self.chain(id), self.arena.nodes.len());
        let rows = self.arena.rows_of(Child::of(chain.end()), store);
        let top = self.push_run(walk, rows, true, None);
        let node = self.push_one_sided(cut, *side, rows);
        walk.pass(cut, *side);
        let rest = if walk.n_left() as usize >= LEAST_CUTS {
            let (next, _) = walk.peek().expect("there are cuts left");
            self.arena.chains.shorten(id, chain.n_cuts() - walk.n_left(), *n_final, next.time);
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
        touched.add_nodes(first_new, self.arena.nodes.len());
        (top, node)
    }

    /// Keeps the cuts that a walk has made, each with all rows on one side, as a chain or as nodes. It ends in a leaf or in the node that
    /// is pushed next. What stands where it starts.
    pub(crate) fn push_run(&mut self, walk: &Replay, rows: u32, is_chained: bool, leaf: Option<Link>) -> Link {
        let first = Link::inner(NodeId::next_of(&self.arena.nodes));
        let (Some((first_cut, _)), Some((last_cut, _))) = (walk.made.first(), walk.made.last()) else {
            return leaf.unwrap_or(first);
        };
        if is_chained && walk.made.len() >= LEAST_CUTS {
            let (first_time, last_time) = (first_cut.time, last_cut.time);
            let run = Run { first_time, last_time, n_cuts: walk.made.len() as u32, end: leaf.unwrap_or(first) };
            return self.arena.chains.add(run, walk.made.iter().map(|(cut, side)| Bound::of(cut, *side)), &walk.cell);
        }
        for (cut, side) in &walk.made {
            self.push_one_sided(cut, *side, rows);
        }
        if let (Some(leaf), Some(last)) = (leaf, self.arena.nodes.last_mut()) {
            *last.link_mut(last.full_side()) = leaf;
        }
        first
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
