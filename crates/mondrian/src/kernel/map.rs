//! What all feature maps have in common.

use crate::ridge::Features;
use crate::{Points, Result};

/// A map z with E[z(x)ᵀz(x')] = k(x, x').
pub trait FeatureMap {
    /// Number of dimensions of the points.
    fn n_dims(&self) -> usize;

    /// Number of features: columns of Z.
    fn n_columns(&self) -> usize;

    /// Learns the cells that `points` fall into and gives their features. Cells that were known keep their columns;
    /// new ones are added behind them.
    ///
    /// # Errors
    /// [`crate::Error::LengthMismatch`] if the number of dimensions is another; [`crate::Error::TooLarge`] when there
    /// are more cells than numbers for them.
    fn learn(&mut self, points: Points<'_>) -> Result<Features>;

    /// The features of points, without learning: an unseen cell contributes nothing.
    ///
    /// # Errors
    /// [`crate::Error::LengthMismatch`] if the number of dimensions is another.
    fn transform(&self, points: Points<'_>) -> Result<Features>;
}
