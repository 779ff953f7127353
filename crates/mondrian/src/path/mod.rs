//! Regularization paths: a model's error at every lifetime of a range, for the price of one fit (report, chapter 4).

mod builder;
mod curve;
mod picture;

pub use builder::PathBuilder;
pub use curve::{Loss, RegularizationPath};
