//! Tuning the exact general Laplace kernel: one lifetime per dimension and α, by derivatives (report, chapter 5;
//! docs/design.md, "The tuned Laplace kernel").
//!
//! The kernel exp(−Σ λ_d |x_d − x'_d|) is smooth in its lifetimes, and the leave-one-out error of exact ridge on n rows
//! has a closed form. So [`Objective`] gives the error and all D + 1 derivatives for the price of six factorisations,
//! [`descend`] follows them, and [`tune`] does so on few rows first. [`LaplaceKernelRidge`] puts the result to use.

mod entries;
mod estimator;
mod exact;
pub(crate) mod exp;
mod kernel;
mod neighbors;
mod packed;
mod rows;
mod saved;
pub(crate) mod tune;

pub(crate) use estimator::tuned_on_path;
pub use estimator::{LaplaceKernelRidge, LaplaceKernelRidgeParams, LaplaceSolution, LifetimesChoice};
pub use exact::{LaplaceRidge, LaplaceRidgeParams};
pub use kernel::LaplaceKernel;
pub use neighbors::Neighbors;
pub use packed::PackedRows;
pub use rows::{KernelRows, MOST_LEVELS};
pub use tune::{Criterion, Descent, DescentLimits, Method, Objective, Slope, Tuned, TuningParams, descend, tune};
