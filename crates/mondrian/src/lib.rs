//! The Mondrian process in machine learning: the process itself as a type, forests that learn online, random features of
//! the Laplace kernel, and models whose lifetime is tuned over its whole range by one fit.
//!
//! Every random choice is a pure function of a [key](process::NodeKey): results depend neither on threads nor on the
//! order of the rows nor on earlier queries.
//!
//! # Example
//!
//! ```
//! use mondrian::{Points, RegressionForest};
//!
//! let x: Vec<f64> = (0..200).map(|i| f64::from(i) / 50.0).collect();
//! let y: Vec<f64> = x.iter().map(|x| x.sin()).collect();
//! let mut forest = RegressionForest::params().n_trees(20).seed(7).fit(Points::row_major(&x, 1)?, &y)?;
//!
//! let prediction = forest.predict_with_std(Points::row_major(&[1.0, 1000.0], 1)?)?;
//! assert!((prediction.mean[0] - 1.0_f64.sin()).abs() < 0.1);
//! assert!(prediction.std[1] > 3.0 * prediction.std[0]);              // far from the data
//!
//! let before = forest.predict(Points::row_major(&[1.0], 1)?)?;
//! forest.learn(Points::row_major(&[2.5], 1)?, &[7.0])?;              // online, in any order
//! forest.forget(Points::row_major(&[2.5], 1)?, &[7.0])?;             // exactly
//! assert_eq!(forest.predict(Points::row_major(&[1.0], 1)?)?, before);
//! # Ok::<(), mondrian::Error>(())
//! ```
//!
//! # Models
//!
//! Every model is fitted by `Model::params()`, setters, and `fit`; [`FitOptions`] carry weights and [`Progress`].
//!
//! | for | model |
//! | --- | --- |
//! | the process: samples, restriction, extension, pictures | [`process::Mondrian`], [`process::Partition`] |
//! | regression online, with uncertainty | [`RegressionForest`] |
//! | classification online | [`ClassificationForest`] |
//! | densities, and classification by them | [`DensityForest`], [`DensityClassifier`] |
//! | the most accurate regression and classification of a table | [`LaplaceRegressor`], [`LaplaceClassifier`] |
//! | exact ridge with a given Laplace kernel | [`LaplaceRidge`] |
//! | ridge on random features, linear in the rows | [`KernelRidge`], with [`MondrianFeatures`] |
//! | other features of the kernel | [`RandomBinning`], [`RandomFourier`], [`GridFeatures`] |
//! | lifetimes searched for on a grid | [`GridRidge`] |
//! | the error at every lifetime, from one fit | `path` of a model: [`RegularizationPath`] |
//! | forests trained in parts, on many machines | [`Moments`], [`TrainingDomain`], [`Summary`] |
//! | model files | [`Saved`] |
//!
//! # Features
//!
//! - `parallel` (default): threads, by rayon. Without it everything runs on one thread and gives the same bits.
//! - `ndarray`: [`Points`] from array views, [`Matrix`] and [`Prediction`] as arrays.
//!
//! # References
//!
//! The library implements M. Balog and Y. W. Teh, *The Mondrian Process for Machine Learning* (arXiv:1507.05181), called
//! the report; its parts are cited by chapter. The process is due to D. M. Roy and Y. W. Teh, *The Mondrian Process* (NIPS
//! 2008); forests to B. Lakshminarayanan, D. M. Roy and Y. W. Teh (NIPS 2014, AISTATS 2016); aggregation over
//! their cells to J. Mourtada, S. Gaïffas and E. Scornet (*AMF*, JRSS B 2021); random features to A. Rahimi and B. Recht
//! (NIPS 2007).

// Without the feature, some items that tests and benchmarks use are unused.
#![cfg_attr(not(feature = "internals"), allow(unreachable_pub, dead_code, unused_imports))]

#[cfg(feature = "ndarray")]
mod arrays;
mod error;
mod features;
mod forest;
mod grid;
mod kernel;
mod laplace;
mod lifetime;
mod linalg;
mod memory;
mod model_file;
mod normal;
mod parallel;
mod path;
mod points;
mod prediction;
pub mod process;
mod progress;
mod ridge;
mod select;
mod simd;
mod tree;

pub use error::{Error, Result};
pub use features::{FeatureMap, Features, GridFeatures, MondrianFeatures, RandomBinning, RandomFourier};
pub use forest::{
    ClassificationForest, ClassificationParams, ClassificationPath, DensityClassifier, DensityClassifierParams,
    DensityForest, DensityParams, DensityView, ForestParams, GammaChoice, LeafModel, LifetimeChoice, MeasureChoice,
    Moments, Prior, RegressionForest, RegressionParams, Summary, TrainingDomain, Unseen, WeightsChoice,
};
pub use grid::search::SearchKind;
pub use grid::{GridRidge, GridRidgeParams};
pub use kernel::LaplaceKernel;
pub use laplace::{
    Cells, LaplaceClassifier, LaplaceClassifierParams, LaplaceRegressor, LaplaceRegressorParams, LeaveOneOut,
    LeaveOneOutClasses, Measure as KernelMeasure, Metric as KernelMetric, SolverChoice as KernelSolver, TargetMap,
};
pub use laplace::{LaplaceRidge, LaplaceRidgeParams, LifetimesChoice};
pub use lifetime::Lifetime;
pub use linalg::Matrix;
pub use memory::set_max_memory;
pub use model_file::{ModelFileError, Saved};
pub use path::{Loss, RegularizationPath};
pub use points::Points;
pub use prediction::Prediction;
pub use progress::{FitOptions, Progress, Report, Step};
pub use ridge::{FeatureRidge, FeatureRidgeParams, KernelRidge, KernelRidgeParams, PathMethod, Solver};
pub use select::Validation;

/// The internals of the models, for this repository's tests, benchmarks and front ends: they are not part of the stable
/// interface.
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals {
    pub mod features {
        pub use crate::features::*;
    }
    pub mod forest {
        pub use crate::forest::*;
    }
    pub mod grid {
        pub use crate::grid::*;
    }
    pub mod laplace {
        pub use crate::laplace::*;
    }
    pub mod linalg {
        pub use crate::linalg::*;
    }
    pub mod memory {
        pub use crate::memory::max_memory;
    }
    pub mod model_file {
        pub use crate::model_file::*;
    }
    pub mod normal {
        pub use crate::normal::*;
    }
    pub mod path {
        pub use crate::path::*;
    }
    pub mod process {
        pub use crate::process::axis::{Axis, AxisCut};
        pub use crate::process::bounds::MAX_RUNG;
        pub use crate::process::cell::Cell;
        pub use crate::process::key::Draw;
        pub use crate::process::measure::QuantileAxis;
        pub use crate::process::mondrian::MAX_EXPECTED_CELLS;
        pub use crate::process::partition::Node;
        pub use crate::process::picture::{Colour, Drawing, PathStep, Shape, Text};
        pub use crate::process::sampling::Child;
        pub use crate::process::sides::Sides;
        pub use crate::process::source::MAX_EXTENSIONS;
        pub use crate::process::tables::{CellTable, CutTable, PoissonPoint};
        pub use crate::process::*;
    }
    pub mod ridge {
        pub use crate::ridge::*;
    }
    pub mod select {
        pub use crate::select::*;
    }
    pub mod tree {
        pub use crate::tree::*;
    }
}

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

    #[doc = include_str!("../../../docs/streams.md")]
    struct Streams;
}
