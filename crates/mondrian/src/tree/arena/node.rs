//! What a tree is made of: nodes of 32 bytes, and words that say what lies on a side of a cut.

use crate::process::{Cut, Side};
use crate::tree::arena::id::{ChainId, LeafId, NodeId};

/// What lies on one side of a cut, in 32 bits: two for the kind, thirty for a number. How a tree is stored: outside of
/// `tree/`, what lies there is a [`Child`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Link(u32);

/// A [`Link`] taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkKind {
    /// A cell that is cut: the node's number.
    Inner(NodeId),
    /// A frozen cell: the number of its one point.
    Single(u32),
    /// A cell with several points that is not cut within the lifetime: the leaf's number.
    Leaf(LeafId),
    /// A cell whose next cuts all have an empty side: the number of the [chain](crate::tree::Chain) that they are kept as.
    Chain(ChainId),
    /// A cell without points.
    Empty,
}

/// What lies on one side of a cut: the node, leaf or point that holds all training points of that side. A run of cuts
/// with an empty side in between, stored as one edge, holds the same points and has no name of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Child(Link);

/// A [`Child`] taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A cell that is cut: the node's number.
    Inner(NodeId),
    /// A frozen cell: the number of its one point.
    Single(u32),
    /// A cell with several points that is not cut within the lifetime: the leaf's number.
    Leaf(LeafId),
    /// A cell without points.
    Empty,
}

impl Child {
    /// A side without points.
    pub const EMPTY: Self = Self(Link::EMPTY);

    /// What a link leads to that is no chain.
    #[inline]
    pub(crate) fn of(link: Link) -> Self {
        debug_assert!(!matches!(link.kind(), LinkKind::Chain(_)), "a chain has no name of its own");
        Self(link)
    }

    /// A link that may be a chain: only for numbers that are replaced where it is.
    #[inline]
    pub(crate) fn unresolved(link: Link) -> Self {
        Self(link)
    }

    pub(crate) fn single(point: u32) -> Self {
        Self(Link::single(point))
    }

    pub(crate) fn inner(node: NodeId) -> Self {
        Self(Link::inner(node))
    }

    /// What it is.
    #[inline]
    pub fn kind(self) -> Kind {
        match self.0.kind() {
            LinkKind::Inner(id) => Kind::Inner(id),
            LinkKind::Single(point) => Kind::Single(point),
            LinkKind::Leaf(id) => Kind::Leaf(id),
            LinkKind::Chain(_) | LinkKind::Empty => Kind::Empty,
        }
    }

    /// The node's number if the cell is cut.
    #[inline]
    pub(crate) fn as_inner(self) -> Option<NodeId> {
        self.0.as_inner()
    }

    /// The frozen cell's point, or another number.
    #[inline]
    pub(crate) fn single_or(self, other: u32) -> u32 {
        debug_assert!(other <= MAX_NUMBER);
        (self.0.0 ^ SINGLE).min(other)
    }

    /// The node's number, or another one.
    #[inline]
    pub(crate) fn inner_or(self, other: NodeId) -> NodeId {
        debug_assert!(other.get() <= MAX_NUMBER);
        NodeId::new(self.0.0.min(other.get()))
    }
}

impl std::fmt::Debug for Child {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.kind().fmt(f)
    }
}

const TAG: u32 = 3 << 30;
const SINGLE: u32 = 1 << 30;
const LEAF: u32 = 2 << 30;
const CHAIN: u32 = 3 << 30;
/// Numbers of points, nodes, leaves and chains stay below this.
pub(crate) const MAX_NUMBER: u32 = (1 << 30) - 1;

impl Link {
    /// A side without points: the one word that the numbers leave over.
    pub(crate) const EMPTY: Self = Self(CHAIN | MAX_NUMBER);

    pub(crate) fn inner(node: NodeId) -> Self {
        debug_assert!(node.get() < MAX_NUMBER);
        Self(node.get())
    }

    pub(crate) fn single(point: u32) -> Self {
        debug_assert!(point < MAX_NUMBER);
        Self(SINGLE | point)
    }

    pub(crate) fn leaf(leaf: LeafId) -> Self {
        debug_assert!(leaf.get() < MAX_NUMBER);
        Self(LEAF | leaf.get())
    }

    pub(crate) fn chain(chain: ChainId) -> Self {
        debug_assert!(chain.get() < MAX_NUMBER);
        Self(CHAIN | chain.get())
    }

    /// What it is.
    #[inline]
    pub(crate) fn kind(self) -> LinkKind {
        let number = self.0 & !TAG;
        match self.0 & TAG {
            0 => LinkKind::Inner(NodeId::new(number)),
            SINGLE => LinkKind::Single(number),
            LEAF => LinkKind::Leaf(LeafId::new(number)),
            _ if number == MAX_NUMBER => LinkKind::Empty,
            _ => LinkKind::Chain(ChainId::new(number)),
        }
    }

    #[inline]
    pub(crate) fn to_word(self) -> u32 {
        self.0
    }

    #[inline]
    pub(crate) fn from_word(word: u32) -> Self {
        Self(word)
    }

    /// The node's number if the cell is cut.
    #[inline]
    pub(crate) fn as_inner(self) -> Option<NodeId> {
        (self.0 & TAG == 0).then_some(NodeId::new(self.0))
    }

    /// The chain's number if it is one, or the number of nothing.
    #[inline]
    pub(crate) fn as_chain_number(self) -> Option<u32> {
        (self.0 >= CHAIN).then_some(self.0 & !TAG)
    }

    /// The same where nodes are numbered from `first` on.
    #[inline]
    pub(crate) fn after(self, first: u32) -> Self {
        Self(self.0 + if self.0 & TAG == 0 { first } else { 0 })
    }

    /// Whether the cell has several points or is cut with an empty side: the two kinds that are seldom met.
    #[inline]
    pub(crate) fn is_leaf_or_chain(self) -> bool {
        self.0.wrapping_sub(LEAF) < Self::EMPTY.0 - LEAF
    }

    pub(crate) fn is_empty(self) -> bool {
        self == Self::EMPTY
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.kind().fmt(f)
    }
}

/// Bits of [`Node::axis`] that hold the dimension; the rest holds the clock's level.
const DIM_BITS: u32 = 25;
/// A tree's points have fewer dimensions than this.
pub(crate) const MAX_DIMS: usize = 1 << DIM_BITS;

/// A cut cell: 32 bytes. Its key, box and birth time are not stored but found again on the way down.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Node {
    pub(crate) time: f64,
    pub(crate) location: f64,
    axis: u32,
    pub(crate) below: Link,
    pub(crate) above: Link,
    /// Rows (not points: a point counts as often as it was learned) in the cell.
    pub(crate) count: u32,
}

impl Node {
    pub(crate) fn new(cut: &Cut) -> Self {
        Self {
            time: cut.time,
            location: cut.location,
            axis: cut.level << DIM_BITS | cut.dim,
            below: Link::EMPTY,
            above: Link::EMPTY,
            count: 0,
        }
    }

    /// A cut by the innermost clock, with what lies on both sides and the number of points.
    #[inline]
    pub(crate) fn with_children(cut: &Cut, [below, above]: [Link; 2], count: u32) -> Self {
        Self { time: cut.time, location: cut.location, axis: cut.dim, below, above, count }
    }

    /// The same node with other names for what lies on its sides.
    #[inline]
    pub(crate) fn renamed(mut self, name: impl Fn(Link) -> Link) -> Self {
        (self.below, self.above) = (name(self.below), name(self.above));
        self
    }

    /// A cut with points on one side only, those of `full`.
    pub(crate) fn one_sided(cut: &Cut, side: Side, full: Link) -> Self {
        let mut node = Self::new(cut);
        *node.link_mut(side) = full;
        node
    }

    /// When the cell is cut.
    #[inline]
    pub fn time(&self) -> f64 {
        self.time
    }

    /// Where the cell is cut: coordinates ≤ this lie below.
    #[inline]
    pub fn location(&self) -> f64 {
        self.location
    }

    /// The dimension the cut is across.
    #[inline]
    pub fn dim(&self) -> usize {
        (self.axis & (MAX_DIMS as u32 - 1)) as usize
    }

    /// Number of rows in the cell.
    #[inline]
    pub fn count(&self) -> u32 {
        self.count
    }

    #[inline]
    pub(crate) fn link(&self, side: Side) -> Link {
        match side {
            Side::Below => self.below,
            Side::Above => self.above,
        }
    }

    /// What lies below and above.
    #[inline]
    pub(crate) fn links(&self) -> [Link; 2] {
        [self.below, self.above]
    }

    #[inline]
    pub(crate) fn link_mut(&mut self, side: Side) -> &mut Link {
        match side {
            Side::Below => &mut self.below,
            Side::Above => &mut self.above,
        }
    }

    /// As [`Node::child_mut`] for a side as a number.
    #[inline]
    pub(crate) fn link_at(&mut self, side: usize) -> &mut Link {
        if side == 0 { &mut self.below } else { &mut self.above }
    }

    /// The side of a point at this cut.
    #[inline]
    pub fn side_of(&self, point: &[f64]) -> Side {
        Side::of(point[self.dim()], self.location)
    }

    /// Whether both sides hold points: the cut separates training points.
    #[inline]
    pub fn separates(&self) -> bool {
        !self.below.is_empty() && !self.above.is_empty()
    }

    /// The side that holds points, of a cut that does not [separate](Node::separates).
    #[inline]
    pub fn full_side(&self) -> Side {
        if self.below.is_empty() { Side::Above } else { Side::Below }
    }

    pub(crate) fn cut(&self) -> Cut {
        Cut {
            time: self.time,
            location: self.location,
            dim: self.axis & (MAX_DIMS as u32 - 1),
            level: self.axis >> DIM_BITS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_nodes_are_compact_and_reversible() {
        assert_eq!(size_of::<Node>(), 32);
        for number in [0, 5, MAX_NUMBER - 1] {
            assert_eq!(Link::inner(NodeId::new(number)).kind(), LinkKind::Inner(NodeId::new(number)));
            assert_eq!(Link::single(number).kind(), LinkKind::Single(number));
            assert_eq!(Link::leaf(LeafId::new(number)).kind(), LinkKind::Leaf(LeafId::new(number)));
            assert_eq!(Link::chain(ChainId::new(number)).kind(), LinkKind::Chain(ChainId::new(number)));
        }
        assert_eq!(Link::EMPTY.kind(), LinkKind::Empty);
        let kinds =
            [Link::inner(NodeId::new(7)), Link::single(7), Link::leaf(LeafId::new(7)), Link::EMPTY].map(Child::of);
        assert_eq!(kinds.map(|child| child.inner_or(NodeId::new(9)).get()), [7, 9, 9, 9]);
        assert_eq!(kinds.map(|child| child.single_or(9)), [9, 7, 9, 9]);
        let kinds = [
            Link::inner(NodeId::new(7)),
            Link::single(7),
            Link::leaf(LeafId::new(7)),
            Link::chain(ChainId::new(7)),
            Link::EMPTY,
        ];
        assert_eq!(kinds.map(Link::is_leaf_or_chain), [false, false, true, true, false]);
        let cut = Cut { time: 1.5, dim: 12_345, level: 64, location: -2.0 };
        assert_eq!(Node::new(&cut).cut(), cut);
    }
}
