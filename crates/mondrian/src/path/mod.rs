//! Regularization paths: a model's error at every lifetime of a range, at the cost of one fit (report, chapter 4).

mod builder;
mod curve;
mod picture;

pub use builder::PathBuilder;
pub use curve::{Loss, RegularizationPath};
