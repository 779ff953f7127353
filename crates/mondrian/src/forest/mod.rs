//! Mondrian forests (report, chapter 2): many trees over one store of points, batch and online.
//!
//! [`Forest`] is the structure that every model shares: trees, the points they hold, box and measure. Regression,
//! classification, density estimation and random features put [labels](Labels) on it.

mod params;
mod planted;
mod saved;

pub use params::{ForestParams, LifetimeChoice, MeasureChoice, Unseen, WeightsChoice};
pub use planted::{Forest, Labels, Learned};
