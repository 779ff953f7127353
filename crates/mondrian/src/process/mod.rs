//! The Mondrian process itself (report, chapter 1).
//!
//! [`Mondrian`] is the process on a box for all times, [`Partition`] its sample up to a lifetime, [`InfiniteMondrian`]
//! the process on all of ℝ^D, [`poisson()`] the one-dimensional case. Underneath, [`NodeKey`] is the source of all
//! randomness, and `Cell` is the traversal used to grow trees on data.

pub(crate) mod axis;
pub(crate) mod bounds;
pub(crate) mod cell;
mod gaps;
mod infinite;
pub(crate) mod key;
mod logarithm;
pub(crate) mod measure;
pub(crate) mod mondrian;
mod narrow;
pub(crate) mod partition;
pub(crate) mod picture;
mod poisson;
pub(crate) mod sampling;
pub(crate) mod sides;
pub(crate) mod source;
pub(crate) mod tables;
mod walker;

pub(crate) use axis::Axis;
pub use bounds::Bounds;
pub(crate) use cell::Cell;
pub use cell::Cut;
pub(crate) use cell::{Clock, Further};
pub use infinite::InfiniteMondrian;
pub(crate) use key::Draw;
pub use key::{NodeKey, Side};
pub(crate) use logarithm::Reduced;
pub use measure::{BuiltInMeasure, Measure, QuantileMeasure, Weights};
pub use mondrian::Mondrian;
pub(crate) use narrow::{NarrowBounds, NarrowCell};
pub use partition::Partition;
pub use picture::Picture;
pub use poisson::poisson;
pub(crate) use sides::Sides;
