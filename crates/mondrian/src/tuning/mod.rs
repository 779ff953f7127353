//! Tuning the exact general Laplace kernel: one lifetime a dimension and α, by derivatives (report, chapter 5; design,
//! section 5).
//!
//! The kernel exp(−Σ λ_d |x_d − x'_d|) is smooth in its lifetimes, and the leave-one-out error of exact ridge on n rows
//! has a closed form. So [`Objective`] gives the error and all D + 1 derivatives for the price of six factorisations,
//! [`descend`] follows them, and [`tune`] does so on few rows first. [`LaplaceKernelRidge`] puts the result to use.

mod coordinate;
mod descent;
mod estimator;
mod objective;
pub(crate) mod rows;
mod saved;
mod trajectory;
mod tune;

pub use descent::{Descent, DescentLimits, descend};
pub(crate) use estimator::tuned_on_path;
pub use estimator::{LaplaceKernelRidge, LaplaceKernelRidgeParams, LaplaceSolution, LifetimesChoice};
pub use objective::{Criterion, Objective, Slope};
pub use trajectory::{Step, Trajectory};
pub use tune::{Method, Tuned, TuningParams, tune};
