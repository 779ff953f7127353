//! One row down a tree, a step at a time: ways down several trees can be gone in turns, so that none waits for memory while another
//! could go on.

use crate::tree::arena::node::LinkKind;
use crate::tree::{Child, Link, Node, Tree};

/// Where a point of the root box is on its way down a tree at a lifetime.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Descent<'a> {
    tree: &'a Tree,
    /// What it has come to.
    pub(crate) link: Link,
    /// When the last cut on its way was made.
    pub(crate) time: f64,
    lifetime: f64,
}

/// What a step came to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DescentStep<'a> {
    /// A node that separates training points, and what lies on the point's side of it.
    Block(&'a Node, Child),
    /// Cuts with an empty side, which the point has passed.
    Passed,
    /// The point has left the training points through a cut with an empty side.
    Left,
    /// It stays with those that it is with, or stays with a frozen point unless cuts that are not stored part them.
    Stayed,
    /// The lifetime ends inside a run of cuts one of which the point leaves by: whether it has left depends on which.
    Unclear,
}

impl<'a> Descent<'a> {
    /// At the root of a tree, looked at with a lifetime of at most its domain's.
    pub(crate) fn new(tree: &'a Tree, lifetime: f64) -> Self {
        Self { tree, link: tree.root, time: 0.0, lifetime }
    }

    /// Goes down several trees in turns, and tells nothing: what lies on the way is in the cache afterwards.
    pub(crate) fn touch(trees: impl Iterator<Item = &'a Tree>, lifetime: f64, x: &[f64]) {
        let mut ways: Vec<Self> = trees.map(|tree| Self::new(tree, lifetime)).collect();
        while !ways.is_empty() {
            ways.retain_mut(|way| matches!(way.step(x), DescentStep::Block(..) | DescentStep::Passed));
        }
    }

    /// Goes on by a node or a run of cuts with an empty side.
    #[inline]
    pub(crate) fn step(&mut self, x: &[f64]) -> DescentStep<'a> {
        match self.link.kind() {
            LinkKind::Inner(id) => {
                let node = self.tree.node(id);
                if node.time > self.lifetime {
                    return DescentStep::Stayed;
                }
                (self.link, self.time) = (node.link(node.side_of(x)), node.time);
                self.tree.prefetch(self.link);
                if node.separates() {
                    DescentStep::Block(node, self.tree.end_of(self.link))
                } else {
                    DescentStep::Passed
                }
            }
            LinkKind::Chain(id) => {
                let chain = self.tree.chain(id);
                let is_over = chain.last_time() <= self.lifetime;
                match (self.tree.chain_holds(id, x), is_over) {
                    (true, true) => {
                        self.link = chain.end();
                        self.tree.prefetch(self.link);
                        DescentStep::Passed
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
