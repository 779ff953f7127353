//! Random features of the Laplace kernel (report, chapters 3 and 5).
//!
//! A Mondrian process separates x from x' before time λ with probability 1 − e^{−λ‖x − x'‖₁}, so the cells of M
//! independent ones, each an indicator of value 1/√M, are features whose expected inner products are the Laplace
//! kernel. Random binning, random Fourier features and Mondrian grids approximate the same kernel. All of them
//! implement [`FeatureMap`] and are fitted with [`crate::ridge::FeatureRidge`].

mod binning;
mod cells;
mod design;
mod fourier;
pub(crate) mod grid;
mod mondrian;
pub(crate) mod numbering;
mod saved;
pub(crate) mod saved_grid;

pub use binning::RandomBinning;
pub use cells::{CellArray, Csr, UNSEEN};
pub use design::{Design, Features};
pub use fourier::RandomFourier;
pub use grid::{GridFeatures, MondrianGrid};
pub use mondrian::MondrianFeatures;

use crate::{Points, Result};

/// A map z with E[z(x)ᵀz(x')] = k(x, x').
pub trait FeatureMap {
    /// Number of dimensions of the points.
    fn n_dims(&self) -> usize;

    /// Number of features: columns of Z.
    fn n_columns(&self) -> usize;

    /// Learns the cells of `points` and returns their features. Known cells keep their columns; new ones are appended.
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
