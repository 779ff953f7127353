//! The Mondrian process itself (report, chapter 1).

mod key;
mod sides;

pub use key::{Draw, NodeKey, Side};
pub use sides::Sides;
