//! Reading a tree: where a row lands, one row at a time or many together.

pub(crate) mod descent;
pub(crate) mod frontier;
pub(crate) mod frozen;
pub(crate) mod locate;
pub(crate) mod place;
pub(crate) mod replay;
pub(crate) mod route;
pub(crate) mod traverse;
pub(crate) mod walk;
