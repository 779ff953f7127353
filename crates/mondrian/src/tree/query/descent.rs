//! One row down a tree, a step at a time: ways down several trees can be gone in turns, so that none waits for memory while another
//! could go on.

#![expect(clippy::inline_always, reason = "a call per node would cost a fifth of the step")]

use crate::process::Side;
use crate::tree::arena::node::LinkKind;
use crate::tree::{ChainId, Link, NodeId, Tree};

/// Where a point of the root box is on its way down a tree at a lifetime.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Descent {
    /// What it has come to.
    pub(crate) link: Link,
    /// The last node on its way, and the side taken there.
    pub(crate) parent: Option<(NodeId, Side)>,
    /// When the last cut of a node on its way was made.
    pub(crate) time: f64,
    pub(crate) lifetime: f64,
}

impl Default for Descent {
    fn default() -> Self {
        Self { link: Link::EMPTY, parent: None, time: 0.0, lifetime: 0.0 }
    }
}

/// What a step came to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DescentStep {
    /// A node that separates training points, which the point has passed.
    Block(NodeId),
    /// A node with an empty side, which the point has passed on the other or come into.
    PassedNode(NodeId),
    /// A run of cuts with an empty side, which the point has passed.
    PassedChain(ChainId),
    /// The point has left the training points through a cut with an empty side.
    Left,
    /// It stays with those that it is with, or stays with a frozen point unless cuts that are not stored part them.
    Stayed,
    /// The lifetime ends inside a run of cuts one of which the point leaves by: whether it has left depends on which.
    Unclear,
}

impl DescentStep {
    /// Whether there are more steps to come.
    #[inline]
    pub(crate) fn goes_on(self) -> bool {
        matches!(self, Self::Block(_) | Self::PassedNode(_) | Self::PassedChain(_))
    }
}

impl Descent {
    /// At the root of a tree, looked at with a lifetime of at most its domain's.
    pub(crate) fn new(tree: &Tree, lifetime: f64) -> Self {
        Self { link: tree.root, lifetime, ..Self::default() }
    }

    /// The number of the node that it has come to, to ask for what is kept beside it; a larger one than any node's where it is none.
    #[inline]
    pub(crate) fn number(&self) -> usize {
        self.link.to_word() as usize
    }

    /// Goes down several trees in turns. Calls `visit` with the number of the tree, where its way has come to, and each step.
    pub(crate) fn in_turns<'a>(
        trees: impl Iterator<Item = &'a Tree>,
        lifetime: f64,
        x: &[f64],
        mut visit: impl FnMut(usize, &Self, DescentStep),
    ) {
        let mut ways: Vec<(usize, &Tree, Self)> =
            trees.enumerate().map(|(number, tree)| (number, tree, Self::new(tree, lifetime))).collect();
        let mut n_going = ways.len();
        while n_going > 0 {
            let mut at = 0;
            while at < n_going {
                let (number, tree, way) = &mut ways[at];
                let step = way.step(tree, x);
                visit(*number, way, step);
                if step.goes_on() {
                    at += 1;
                } else {
                    // Those that still go on stand first.
                    n_going -= 1;
                    ways.swap(at, n_going);
                }
            }
        }
    }

    /// As [`Descent::in_turns`], and tells nothing: what lies on the way is in the cache afterwards.
    pub(crate) fn touch<'a>(trees: impl Iterator<Item = &'a Tree>, lifetime: f64, x: &[f64]) {
        Self::in_turns(trees, lifetime, x, |_, _, _| {});
    }

    /// Goes on by a node or a run of cuts with an empty side.
    #[inline(always)]
    pub(crate) fn step(&mut self, tree: &Tree, x: &[f64]) -> DescentStep {
        match self.link.kind() {
            LinkKind::Inner(id) => {
                let node = tree.node(id);
                if node.time > self.lifetime {
                    return DescentStep::Stayed;
                }
                let side = node.side_of(x);
                (self.link, self.time, self.parent) = (node.link(side), node.time, Some((id, side)));
                tree.prefetch_node(self.link);
                if node.separates() { DescentStep::Block(id) } else { DescentStep::PassedNode(id) }
            }
            LinkKind::Chain(id) => {
                let chain = tree.chain(id);
                let is_over = chain.last_time() <= self.lifetime;
                match (tree.chain_holds(id, x), is_over) {
                    (true, true) => {
                        self.link = chain.end();
                        tree.prefetch(self.link);
                        DescentStep::PassedChain(id)
                    }
                    (true, false) => DescentStep::Stayed,
                    (false, true) => DescentStep::Left,
                    (false, false) => DescentStep::Unclear,
                }
            }
            LinkKind::Leaf(_) | LinkKind::Single(_) => DescentStep::Stayed,
            LinkKind::Empty => DescentStep::Left,
        }
    }
}
