//! The Mondrian grid: one lifetime per dimension, moved without refitting (report, chapter 5; docs/design.md, "The
//! Mondrian grid").
//!
//! A grid is D independent Poisson processes, each an [`Axis`]; its cells are products of intervals. M of them give
//! [`GridFeatures`], whose kernel is the general Laplace kernel in expectation. [`GridState`] holds the ridge solution
//! at one configuration of lifetimes, updates it cut by cut, and computes the errors of neighbouring configurations;
//! [`search`] optimises them, and [`GridRidge`] is the estimator.

mod events;
mod model;
mod partition;
mod saved;
pub mod search;
mod solution;
mod state;
mod what_if;

pub use crate::features::{GridFeatures, MondrianGrid};
pub use crate::ridge::grid::{GridSolution, Solver};
pub use model::{GridRidge, GridRidgeParams};
pub use state::{GridState, Move};
