//! Changing a tree: inserting and removing points.

pub(crate) mod insert;
pub(crate) mod remove;
mod runs;
