//! Mondrian forests (report, chapter 2): many trees over one store of points, batch and online.
//!
//! [`Forest`] is the structure that every model shares: trees, the points they hold, box and measure. Regression,
//! classification, density estimation and random features put [labels](Labels) on it.

mod arrivals;
pub mod classification;
mod crowd;
mod fixed;
mod growth;
mod holdings;
mod mixture;
mod params;
mod planted;
mod posterior;
mod prediction;
mod regression;
mod regression_path;
mod resolve;
mod saved;
mod smoother;
mod sowing;
mod targets;
mod traveller;
#[cfg(test)]
mod twin;

pub use arrivals::Arrivals;
pub use classification::{ClassificationForest, ClassificationParams};
pub use growth::Growth;
pub use params::{ForestParams, LifetimeChoice, MeasureChoice, Unseen, WeightsChoice};
pub use planted::{Forest, Labels, Learned};
pub use posterior::Gaussian;
pub use regression::{LeafModel, Prediction, RegressionForest, RegressionParams};
pub use regression_path::ValidationSet;
pub use resolve::Prior;
pub(crate) use resolve::keyed_hash;
pub use sowing::Sowing;
pub use targets::{Sums, Targets};
