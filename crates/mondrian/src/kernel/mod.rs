//! The Laplace kernel (report, chapter 3): exactly, and by random features.
//!
//! A Mondrian process separates x from x' before time λ with probability 1 − e^{−λ‖x − x'‖₁}, so the cells of M
//! independent ones, each an indicator of value 1/√M, are features whose inner products average to the Laplace
//! kernel. Random binning and random Fourier features reach the same kernel another way. All of them
//! are a [`FeatureMap`], to be fitted with [`crate::ridge::FeatureRidge`]; [`LaplaceRidge`] is what they approach.

mod auto;
mod binning;
mod exact;
mod exp;
mod features;
mod fourier;
mod laplace;
mod map;
mod numbering;
mod path;
mod ridge;
mod saved;
mod saved_maps;

pub use binning::RandomBinning;
pub use exact::{LaplaceRidge, LaplaceRidgeParams};
pub use features::MondrianFeatures;
pub use fourier::RandomFourier;
pub use laplace::LaplaceKernel;
pub use map::FeatureMap;
pub use path::{KernelPath, PathDrift, PathMethod, ValidationSet};
pub use ridge::{KernelRidge, KernelRidgeParams};

/// The code of the page runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/kernel.md")]
struct Page;
