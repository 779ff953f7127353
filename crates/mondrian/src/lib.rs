//! The Mondrian process in machine learning: the process itself, forests that learn online, random
//! features of the Laplace kernel, and models whose lifetime is tuned over its whole range by one fit.
//!
//! Every random choice is a pure function of a [key](process::NodeKey): results depend on neither
//! threads, nor order of arrival, nor how far anybody looked before.

pub mod error;
pub mod features;
pub mod forest;
pub mod grid;
pub mod laplace;
pub mod lifetime;
pub mod linalg;
pub mod model_file;
pub mod normal;
pub mod path;
pub mod points;
pub mod process;
pub mod progress;
pub mod ridge;
pub mod select;
mod simd;
pub mod tree;

pub use error::{Error, Result};
pub use lifetime::Lifetime;
pub use points::Points;

/// The code in the pages runs with the tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Readme;

    #[doc = include_str!("../../../docs/process.md")]
    struct Process;

    #[doc = include_str!("../../../docs/density.md")]
    struct Density;

    #[doc = include_str!("../../../docs/grid.md")]
    struct Grid;

    #[doc = include_str!("../../../docs/classification.md")]
    struct Classification;

    #[doc = include_str!("../../../docs/regression.md")]
    struct Regression;

    #[doc = include_str!("../../../docs/paths.md")]
    struct Paths;
}
