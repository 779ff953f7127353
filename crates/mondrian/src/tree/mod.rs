//! The Mondrian tree: the part of a keyed process that a set of points makes worth looking at.
//!
//! A tree is a pure function of its [key](crate::process::NodeKey), the [domain](Domain) it stands on and the set of
//! points it holds (docs/design.md, "A tree is a function of its key"). Nodes exist only where points lie; a cut that
//! leaves one side without points is a real node with an empty side, and four or more of them in a row are kept as one
//! edge, a [chain](Chain); a cell with one point is frozen, since its key says how it would go on. All coordinates here
//! are measure coordinates (see [`crate::process::Measure`]).

pub(crate) mod arena;
pub(crate) mod build;
mod check;
mod domain;
mod occupied;
pub(crate) mod query;
mod repeats;
mod store;
pub(crate) mod update;

pub use arena::chain::Chain;
pub(crate) use arena::id::ChainId;
pub use arena::id::{LeafId, NodeId};
pub use arena::leaf::Leaf;
pub use arena::node::{Child, Kind, Node};
pub(crate) use arena::node::{Link, LinkKind};
pub use build::quantize::{CodedRows, Codes};
pub(crate) use build::small::bits;
#[cfg(test)]
pub(crate) use domain::all_without_chains;
pub use domain::{Domain, Rules};
pub(crate) use occupied::{NONE as NO_CELL, OccupiedCells};
pub(crate) use query::descent::{Descent, DescentStep};
pub(crate) use query::frontier::{FrontierCut, NextCut};
pub(crate) use query::frozen::SLOTS;
pub use query::locate::{Landing, Locator};
pub(crate) use query::place::{Found, Place, Places};
pub use query::route::Frozen;
pub(crate) use query::traverse::{Exit, Exits, Split, Traversal, Visitor};
pub(crate) use repeats::hash;
pub use store::PointStore;
pub use update::insert::Touched;

use crate::process::{NodeKey, Side};
use crate::simd::prefetch::prefetch;
use arena::chain::Chains;
use arena::leaf::Leaves;

/// What trees are built of.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arena {
    nodes: Vec<Node>,
    leaves: Leaves,
    chains: Chains,
}

impl Arena {
    /// What a link leads to, past a chain.
    #[inline]
    fn end_of(&self, link: Link) -> Child {
        Child::of(if let LinkKind::Chain(id) = link.kind() { self.chains.end_of(id) } else { link })
    }

    /// Rows below and above a node's cut.
    #[inline]
    fn counts(&self, node: &Node, store: &PointStore) -> [u32; 2] {
        let below = match node.separates() {
            true => self.rows_of(self.end_of(node.below), store),
            false if node.below.is_empty() => 0,
            false => node.count,
        };
        [below, node.count - below]
    }

    /// Number of rows in a child's cell.
    fn rows_of(&self, child: Child, store: &PointStore) -> u32 {
        match child.kind() {
            Kind::Inner(id) => self.nodes[id.index()].count,
            Kind::Single(point) => store.multiplicity(point),
            Kind::Leaf(id) => self.leaves.leaf(id).count(),
            Kind::Empty => 0,
        }
    }
}

/// One tree: nodes, and the points of the cells that are not cut further.
#[derive(Debug, Clone)]
pub struct Tree {
    key: NodeKey,
    root: Link,
    arena: Arena,
    /// Nodes and leaves that nothing leads to any more.
    n_dead: usize,
    /// Whether a parent's number is always smaller than its children's.
    is_in_order: bool,
}

impl Tree {
    /// A tree without points.
    pub fn new(key: NodeKey) -> Self {
        Self::from_arena(key, Link::EMPTY, Arena::default())
    }

    fn from_arena(key: NodeKey, root: Link, arena: Arena) -> Self {
        Self { key, root, arena, n_dead: 0, is_in_order: true }
    }

    /// The key all its cuts follow from.
    pub fn key(&self) -> NodeKey {
        self.key
    }

    /// What the root box holds.
    pub fn root(&self) -> Child {
        self.end_of(self.root)
    }

    /// What lies on a side of a node's cut.
    #[inline]
    pub fn child(&self, node: &Node, side: Side) -> Child {
        self.end_of(node.link(side))
    }

    /// What lies below and above a node's cut.
    #[inline]
    pub fn children(&self, node: &Node) -> [Child; 2] {
        node.links().map(|link| self.end_of(link))
    }

    /// Asks for the memory of what a link leads to, so that it is there when a way down comes to it after others' turns.
    #[inline]
    pub(crate) fn prefetch(&self, link: Link) {
        prefetch(&self.arena.nodes, link.to_word() as usize);
        self.arena.chains.prefetch(link);
    }

    /// As [`Tree::prefetch`], for a way that comes to few chains: they are asked for by a branch, which is seldom taken.
    #[inline]
    pub(crate) fn prefetch_node(&self, link: Link) {
        prefetch(&self.arena.nodes, link.to_word() as usize);
        if link.as_chain_number().is_some() {
            self.arena.chains.prefetch(link);
        }
    }

    /// As [`Tree::prefetch`], of a chain alone.
    #[inline]
    pub(crate) fn prefetch_chain(&self, link: Link) {
        self.arena.chains.prefetch(link);
    }

    /// A node by its number, as [`Child::kind`] gives it.
    #[inline]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.arena.nodes[id.index()]
    }

    /// What lies on both sides of up to 64 nodes, and which of those may be leaves: a bit for each node, below and above.
    ///
    /// Chains and leaves are seldom met, and which sides they are cannot be predicted: all sides are read without a branch
    /// first.
    #[inline]
    pub(crate) fn children_of(&self, nodes: &[NodeId], children: &mut [[Child; 2]]) -> [u64; 2] {
        let mut seldom = [0; 2];
        for (at, (id, children)) in nodes.iter().zip(children.iter_mut()).enumerate() {
            let links = self.node(*id).links();
            for side in [0, 1] {
                seldom[side] |= u64::from(links[side].is_leaf_or_chain()) << at;
                children[side] = Child::unresolved(links[side]);
            }
        }
        for side in [0, 1] {
            for at in bits(seldom[side]) {
                children[at][side] = self.end_of(self.node(nodes[at]).links()[side]);
            }
        }
        seldom
    }

    /// A leaf by its number, as [`Child::kind`] gives it.
    #[inline]
    pub fn leaf(&self, id: LeafId) -> Leaf<'_> {
        self.arena.leaves.leaf(id)
    }

    /// A chain by its number.
    #[inline]
    pub(crate) fn chain(&self, id: ChainId) -> Chain {
        self.arena.chains.get(id)
    }

    /// Whether a point of the cell that a chain starts in is still there at its end.
    #[inline]
    pub(crate) fn chain_holds(&self, id: ChainId, x: &[f64]) -> bool {
        self.arena.chains.holds(id, x)
    }

    /// What a link leads to, past a chain: the same points, so the same statistics.
    #[inline]
    pub(crate) fn end_of(&self, link: Link) -> Child {
        self.arena.end_of(link)
    }

    /// What a run of cuts with an empty side leads to: a cut that separates points, a leaf or a frozen cell. The child
    /// itself if no such run starts there.
    pub(crate) fn end_of_run(&self, mut child: Child) -> Child {
        while let Some(id) = child.as_inner() {
            let node = self.node(id);
            if node.separates() {
                break;
            }
            child = self.child(node, node.full_side());
        }
        child
    }

    /// Number of chains.
    pub fn n_chains(&self) -> usize {
        self.arena.chains.len()
    }

    /// All chains that the root leads to, with their numbers, parents before children.
    pub fn chains(&self) -> impl Iterator<Item = (ChainId, Chain)> + '_ {
        let mut todo = vec![self.root];
        std::iter::from_fn(move || {
            while let Some(child) = todo.pop() {
                if let Some(id) = self.end_of(child).as_inner() {
                    todo.extend([self.node(id).above, self.node(id).below]);
                }
                if let LinkKind::Chain(id) = child.kind() {
                    return Some((id, self.chain(id)));
                }
            }
            None
        })
    }

    /// Rows in a child's cell.
    pub fn rows_of(&self, child: Child, store: &PointStore) -> u32 {
        self.arena.rows_of(child, store)
    }

    /// Number of node slots: per-node statistics are kept in arrays of this length.
    pub fn n_nodes(&self) -> usize {
        self.arena.nodes.len()
    }

    /// The numbers of all node slots.
    pub fn node_ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.n_nodes() as u32).map(NodeId::new)
    }

    /// The number after the last node's: the place of a zero at the end of per-node arrays.
    pub(crate) fn no_node(&self) -> NodeId {
        NodeId::next_of(&self.arena.nodes)
    }

    /// The numbers of all leaf slots.
    pub(crate) fn leaf_ids(&self) -> impl Iterator<Item = LeafId> + use<> {
        (0..self.n_leaves() as u32).map(LeafId::new)
    }

    /// Number of leaf slots.
    pub fn n_leaves(&self) -> usize {
        self.arena.leaves.len()
    }

    /// Node numbers in an order in which children come before parents.
    pub fn children_first(&self) -> impl Iterator<Item = NodeId> + use<> {
        // Splitting a chain puts new nodes above old ones; usually a parent's number is the smaller.
        let order = if self.is_in_order { None } else { Some(self.depth_first()) };
        let n = order.as_ref().map_or(self.arena.nodes.len(), Vec::len) as u32;
        (0..n).rev().map(move |at| order.as_ref().map_or(NodeId::new(at), |order| order[at as usize]))
    }

    /// The numbers of all nodes that the root leads to, parents before children.
    fn depth_first(&self) -> Vec<NodeId> {
        let (mut order, mut todo) = (Vec::with_capacity(self.arena.nodes.len()), vec![self.root]);
        while let Some(child) = todo.pop() {
            if let Some(id) = self.end_of(child).as_inner() {
                order.push(id);
                todo.extend([self.node(id).above, self.node(id).below]);
            }
        }
        order
    }

    /// Bytes that the structure takes.
    pub fn n_bytes(&self) -> usize {
        size_of_val(self.arena.nodes.as_slice()) + self.arena.leaves.n_bytes() + self.arena.chains.n_bytes()
    }
}
