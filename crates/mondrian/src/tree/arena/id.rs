//! The numbers of nodes, leaves and chains: one type each, so that none is taken for another.

use crate::tree::arena::node::Node;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(u32);

        impl $name {
            #[inline]
            pub(crate) const fn new(number: u32) -> Self {
                Self(number)
            }

            /// The number that follows this one by so many.
            #[inline]
            #[must_use]
            pub(crate) const fn plus(self, more: u32) -> Self {
                Self(self.0 + more)
            }

            /// The bare number.
            #[inline]
            pub(crate) const fn get(self) -> u32 {
                self.0
            }

            /// Its place in an array with one entry per number.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id! {
    /// The number of a node of a tree, see [`Tree::node`](crate::tree::Tree::node).
    NodeId
}
id! {
    /// The number of a leaf of a tree, see [`Tree::leaf`](crate::tree::Tree::leaf).
    LeafId
}
id! {
    /// The number of a chain: half the place of its record in the pool of words.
    ChainId
}

impl NodeId {
    /// The number that the next node of an array of nodes gets.
    #[inline]
    pub(crate) fn next_of(nodes: &[Node]) -> Self {
        Self(nodes.len() as u32)
    }
}
