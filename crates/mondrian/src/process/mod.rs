//! The Mondrian process itself (report, chapter 1).
//!
//! [`Mondrian`] is the process on a box for all times, [`Partition`] its sample up to a lifetime,
//! [`InfiniteMondrian`] the process on all of ℝ^D, [`poisson()`] the one-dimensional case. Underneath, [`NodeKey`] is
//! where all randomness comes from and [`Cell`] the walk that trees of data are grown with.

mod axis;
mod bounds;
mod cell;
mod gaps;
mod infinite;
mod key;
mod logarithm;
mod measure;
mod mondrian;
mod narrow;
mod partition;
mod picture;
mod poisson;
mod sampling;
mod sides;
mod source;
mod tables;
mod walker;

pub use axis::{Axis, AxisCut};
pub use bounds::{Bounds, MAX_RUNG};
pub use cell::{Cell, Cut};
pub(crate) use cell::{Clock, Further};
pub use infinite::InfiniteMondrian;
pub use key::{Draw, NodeKey, Side};
pub(crate) use logarithm::Reduced;
pub use measure::{BuiltInMeasure, Measure, QuantileAxis, QuantileMeasure, Weights};
pub use mondrian::{MAX_EXPECTED_CELLS, Mondrian};
pub(crate) use narrow::NarrowCell;
pub use partition::{Node, Partition};
pub use picture::{Colour, Drawing, PathStep, Picture, Shape, Text};
pub use poisson::poisson;
pub use sampling::Child;
pub use sides::Sides;
pub use source::MAX_EXTENSIONS;
pub use tables::{CellTable, CutTable, PoissonPoint};
