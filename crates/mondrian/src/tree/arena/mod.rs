//! What trees are built of: nodes, leaves and chains, in arrays by number.

pub(crate) mod chain;
pub(crate) mod id;
pub(crate) mod leaf;
pub(crate) mod node;
