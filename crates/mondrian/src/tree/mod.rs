//! The Mondrian tree: the part of a keyed process that a set of points makes worth looking at.
//!
//! A tree is a pure function of its [key](crate::process::NodeKey), the [ground](Ground) it stands on and the set of
//! points it holds (design, section 1). Nodes exist only where points lie; a cut that leaves one side
//! without points is a real node with an empty side; a cell with one point is frozen, since its key says how it
//! would go on. All coordinates here are measure coordinates (see [`crate::process::Measure`]).

mod desk;
mod forget;
mod ground;
mod grow;
mod insert;
mod leaf;
mod locate;
mod node;
mod partition;
mod parts;
mod route;
mod shape;
mod store;

pub use ground::Ground;
pub use insert::Touched;
pub use leaf::Leaf;
pub use locate::{Landing, Locator};
pub use node::{Child, Kind, Node};
pub(crate) use partition::partition;
pub use route::Frozen;
pub use store::PointStore;

use crate::process::NodeKey;
use leaf::Leaves;

/// One tree: nodes, and the points of the cells that are not cut further.
#[derive(Debug, Clone)]
pub struct Tree {
    key: NodeKey,
    root: Child,
    nodes: Vec<Node>,
    leaves: Leaves,
    /// Nodes and leaves that forgetting and regrowing left unreachable.
    n_dead: usize,
}

impl Tree {
    /// A tree without points.
    pub fn new(key: NodeKey) -> Self {
        Self { key, root: Child::EMPTY, nodes: Vec::new(), leaves: Leaves::default(), n_dead: 0 }
    }

    /// The key all its cuts follow from.
    pub fn key(&self) -> NodeKey {
        self.key
    }

    /// What the root box holds.
    pub fn root(&self) -> Child {
        self.root
    }

    /// A node by its number, as [`Child::kind`] gives it.
    #[inline]
    pub fn node(&self, id: u32) -> &Node {
        &self.nodes[id as usize]
    }

    /// A leaf by its number, as [`Child::kind`] gives it.
    #[inline]
    pub fn leaf(&self, id: u32) -> Leaf<'_> {
        self.leaves.leaf(id)
    }

    /// Number of node slots: per-node statistics are kept in arrays of this length.
    pub fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Number of leaf slots.
    pub fn n_leaves(&self) -> usize {
        self.leaves.len()
    }

    /// Node numbers in an order in which children come before parents: a parent's number is always the smaller.
    pub fn children_first(&self) -> impl Iterator<Item = u32> + use<> {
        (0..self.nodes.len() as u32).rev()
    }

    /// Bytes that the structure takes.
    pub fn n_bytes(&self) -> usize {
        size_of_val(self.nodes.as_slice()) + self.leaves.n_bytes()
    }
}
