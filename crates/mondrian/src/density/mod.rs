//! Densities by Pólya trees on exact cells (report, appendix C).
//!
//! Each tree is a Mondrian process on a bounded box; each of its cells has a probability mass, shared out at every cut
//! by the rule of a Pólya tree (`polya.rs`); the density of a tree is mass over volume and that of a forest the average
//! over its trees. [`DensityForest`] learns rows in batch and online, forgets and merges them exactly, and is viewed at
//! any smaller lifetime; leave-one-out likelihoods cost one walk. [`DensityClassifier`] is one density a class.
//! `docs/density.md` has the reasons.

mod cells;
mod classifier;
mod descent;
mod evaluate;
mod forest;
mod params;
mod path;
mod polya;
mod sampling;
mod saved;
mod tuning;
mod view;
mod way;
mod wide;

pub use cells::DensityCell;
pub use classifier::{ClassPrior, DensityClassifier};
pub use forest::DensityForest;
pub use params::{DensityParams, GammaChoice};
pub use path::DensityPath;
pub use view::{DensityScore, DensityView};
