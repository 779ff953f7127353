//! The report's experiments, repeated and checked.
//!
//! Each [experiment](catalogue::EXPERIMENTS) computes a [`Record`]: numbers, claims that the numbers decide, tables and
//! figures as data. The record is written as JSON; [figures](plot) and [pages](page) are made of the JSON alone. The small
//! versions run with the tests, which assert the claims.

pub mod catalogue;
pub mod context;
mod convergence;
mod density_path;
mod digits;
mod far_from_data;
mod forest_path;
mod grid_altitude;
mod grid_both_ways;
mod grid_greedy;
mod grid_toy;
mod kernel_path;
mod learning_curve;
mod online;
pub mod page;
mod path_time;
pub mod plot;
pub mod publish;
pub mod record;
mod setosa;
mod setosa_density;
mod tree_count;
mod trees;

pub use context::Context;
pub use record::Record;
