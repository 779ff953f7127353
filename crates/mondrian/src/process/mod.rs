//! The Mondrian process itself (report, chapter 1).

mod bounds;
mod cell;
mod gaps;
mod key;
mod measure;
mod sides;

pub use bounds::{Bounds, MAX_RUNG};
pub use cell::{Cell, Cut};
pub use key::{Draw, NodeKey, Side};
pub use measure::{BuiltInMeasure, Measure, QuantileAxis, QuantileMeasure, Weights};
pub use sides::Sides;
