//! The Laplace kernel, exact and tuned (report, chapter 5; docs/design.md, "The tuned Laplace kernel").
//!
//! [`LaplaceRegressor`] and [`LaplaceClassifier`] tune the whole kernel
//! exp(−Σ λ|u| − Σ ν·1\[u ≠ 0\] − ‖Au‖^p): measures, categorical inputs, missing cells, a learned metric. Its parts:
//! [`Columns`] make numbers of inputs, [`KernelTuning`] says how lifetimes, metric, exponent and α are found, and
//! [`KernelRows`] are rows as the kernel sees them.
//!
//! The report's kernel exp(−Σ λ_d |x_d − x'_d|) alone: [`Objective`] gives its leave-one-out error and all D + 1
//! derivatives, [`descend`] follows them, [`tune`] does so on few rows first, and [`LaplaceKernelRidge`] uses the result.

mod adam;
mod cells;
mod classification;
mod columns;
mod conjugate;
mod elementary;
mod entries;
mod estimator;
mod exact;
mod importance;
mod large;
mod link;
mod local;
mod model;
mod neighbor_tuning;
mod neighbors;
mod objective;
mod packed;
mod params;
mod power;
mod regression;
mod rows;
mod saved;
mod search;
mod singles;
mod solve;
mod starts;
mod target;
mod target_choice;
mod tiles;
pub(crate) mod tune;
mod uncertainty;
mod values;
mod weights;
mod wide;
mod wide_singles;

pub use crate::kernel::LaplaceKernel;
pub use cells::Cells;
pub use classification::{LaplaceClassifier, LeaveOneOutClasses};
pub use columns::{Columns, Measure, WIDE};
pub use conjugate::{ConjugateOptions, ConjugateSolution, conjugate_solve};
pub(crate) use estimator::tuned_on_path;
pub use estimator::{LaplaceKernelRidge, LaplaceKernelRidgeParams, LaplaceSolution, LifetimesChoice};
pub use exact::{LaplaceRidge, LaplaceRidgeParams};
pub use large::{ConjugateReport, SolverChoice, SolverReport, SolverUsed};
pub use link::Link;
pub use local::{Kriging, LocalSettings};
pub use neighbors::Neighbors;
pub use packed::PackedRows;
pub use params::{LaplaceClassifierParams, LaplaceRegressorParams};
pub use regression::{LaplaceRegressor, LeaveOneOut};
pub use rows::{KernelRows, MOST_LEVELS};
pub use search::KernelTuning;
pub use target::TargetMap;
pub use tiles::contract;
pub use tune::{Criterion, Descent, DescentLimits, Method, Objective, Slope, Tuned, TuningParams, descend, tune};
pub use values::{AUTO_RANK, MOST_FULL, Metric};
pub use weights::{Labels, tuned_weights};
