//! Ridge regression on features (report, chapter 3; docs/design.md, "Ridge regression on Mondrian features").
//!
//! The feature matrix Z of a partition is never a general matrix: it is a [`CellArray`], one cell number per row and
//! tree. [`FeatureRidge`] minimises δ²‖θ‖² + ‖y − Zθ‖² over it, or over a dense Z, by one of three [`Solver`]s
//! chosen by estimated cost: the Cholesky factor of ZᵀZ + δ²I, that of ZZᵀ + δ²I, or preconditioned conjugate
//! gradients that only ever multiply by Z.

mod automatic;
mod centred;
mod conjugate;
pub(crate) mod grid;
mod model;
mod mondrian;
mod path;
mod saved;
mod saved_grid;
mod solver;

pub use crate::features::{CellArray, Csr, Design, Features, UNSEEN};
pub(crate) use centred::{Centred, check_alpha, intercept_smoother};
pub use conjugate::{CgOptions, CgResult, conjugate_gradients};
pub(crate) use model::by_column;
pub use model::{FeatureRidge, FeatureRidgeParams};
pub use mondrian::{KernelRidge, KernelRidgeParams};
pub use path::{PathMethod, ValidationSet};
pub use solver::{Costs, SolveReport, Solver};

/// The code of the page runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/kernel.md")]
struct Page;
