//! Regularization paths: a model's error at every lifetime of a range, at the cost of one fit (report, chapter 4).

mod builder;
mod curve;
mod picture;

pub use builder::PathBuilder;
pub use curve::{Loss, RegularizationPath};
pub(crate) use curve::{PathDrift, PathNotes};

/// Standard error of a root mean squared error over `n` rows, by the delta method: √(s²/n)/(2·RMSE), s² the sample variance
/// of the squared errors, whose squared deviations from their mean add up to `deviations`.
pub(crate) fn standard_error_of_rmse(mse: f64, deviations: f64, n: f64) -> f64 {
    let variance = deviations / (n - 1.0).max(1.0);
    if mse > 0.0 { (variance / n).sqrt() / (2.0 * mse.sqrt()) } else { 0.0 }
}
