//! The report's experiments, repeated and checked.
//!
//! Each [experiment](catalogue::EXPERIMENTS) computes a [`Record`]: numbers, claims that the numbers decide, tables and
//! figures as data. The record is written as JSON; [figures](plot) and [pages](page) are made of the JSON alone. The small
//! versions run with the tests, which assert the claims.

pub mod catalogue;
pub mod context;
pub mod page;
pub mod plot;
pub mod publish;
pub mod record;
mod setosa;
mod setosa_density;

pub use context::Context;
pub use record::Record;
