//! Parameters of the two models with the whole tuned kernel.

use crate::laplace::{
    Cells, KernelTuning, LaplaceClassifier, LaplaceRegressor, Measure, Metric, SolverChoice, TargetMap,
};
use crate::linalg::Threads;
use crate::progress::FitOptions;
use crate::ridge::by_column;
use crate::{Error, Lifetime, Result};

/// How a [`LaplaceRegressor`] is fitted.
///
/// | name | default | meaning |
/// | --- | --- | --- |
/// | `measure` | auto | under which measure continuous inputs are cut |
/// | `metric` | auto | the form of the metric A; [`Metric::None`] is the report's kernel |
/// | `exponent`, `alpha`, `lifetimes` | tuned | given values instead |
/// | `fit_intercept` | true | targets are centred |
/// | `solver`, `max_exact_rows`, `n_neighbors` | auto, 20 000, chosen | how all rows are solved |
/// | `max_seconds` | none | when tuning ends early |
/// | `seed`, `n_threads` | 0, 1 | which rows the steps see; threads |
/// | `categorical` | none | inputs whose numbers are codes of categories |
/// | `target_map` | chosen | the map of the target; chosen by leave-one-out in the target's own units |
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LaplaceRegressorParams {
    tuning: KernelTuning,
    categorical: Vec<bool>,
    pub(crate) target_map: Option<TargetMap>,
}

/// How a [`LaplaceClassifier`] is fitted.
///
/// | name | default | meaning |
/// | --- | --- | --- |
/// | `measure` | auto | under which measure continuous inputs are cut |
/// | `metric` | auto | the form of the metric A; [`Metric::None`] is the report's kernel |
/// | `exponent`, `alpha`, `lifetimes` | tuned | given values instead |
/// | `fit_intercept` | true | targets are centred |
/// | `solver`, `max_exact_rows`, `n_neighbors` | auto, 20 000, chosen | how all rows are solved |
/// | `max_seconds` | none | when tuning ends early |
/// | `seed`, `n_threads` | 0, 1 | which rows the steps see; threads |
/// | `categorical` | none | inputs whose numbers are codes of categories |
/// | `n_classes` | the largest class + 1 | classes are 0 to this number − 1 |
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LaplaceClassifierParams {
    tuning: KernelTuning,
    categorical: Vec<bool>,
    n_classes: Option<usize>,
}

/// The builder methods that both share.
macro_rules! kernel_builder {
    ($params:ty) => {
        impl $params {
            /// All of how the kernel is tuned, for this repository's front ends and tests.
            #[doc(hidden)]
            #[must_use]
            pub fn tuning(self, tuning: KernelTuning) -> Self {
                Self { tuning, ..self }
            }

            /// Under which measure continuous inputs are cut.
            #[must_use]
            pub fn measure(mut self, measure: Measure) -> Self {
                self.tuning.measure = measure;
                self
            }

            /// The form of the metric A.
            #[must_use]
            pub fn metric(mut self, metric: Metric) -> Self {
                self.tuning.metric = metric;
                self
            }

            /// The exponent p of the metric's part, above 0 and at most 2, or `None` for tuned.
            #[must_use]
            pub fn exponent(mut self, exponent: impl Into<Option<f64>>) -> Self {
                self.tuning.exponent = exponent.into();
                self
            }

            /// α, the report's δ², or `None` for tuned.
            #[must_use]
            pub fn alpha(mut self, alpha: impl Into<Option<f64>>) -> Self {
                self.tuning.alpha = alpha.into();
                self
            }

            /// Fixed lifetimes, one per input.
            #[must_use]
            pub fn lifetimes(mut self, lifetimes: &[Lifetime]) -> Self {
                self.tuning.lifetimes = Some(lifetimes.iter().map(|lifetime| lifetime.get()).collect());
                self
            }

            /// Whether targets are centred.
            #[must_use]
            pub fn fit_intercept(mut self, fit_intercept: bool) -> Self {
                self.tuning.fit_intercept = fit_intercept;
                self
            }

            /// How all rows are solved.
            #[must_use]
            pub fn solver(mut self, solver: SolverChoice) -> Self {
                self.tuning.solver = solver;
                self
            }

            /// The most rows that an automatic solver factorises.
            #[must_use]
            pub fn max_exact_rows(mut self, max_exact_rows: usize) -> Self {
                self.tuning.max_exact_rows = max_exact_rows;
                self
            }

            /// Rows that a query is predicted from by nearest rows, or `None` for chosen.
            #[must_use]
            pub fn n_neighbors(mut self, n_neighbors: impl Into<Option<usize>>) -> Self {
                self.tuning.n_neighbors = n_neighbors.into();
                self
            }

            /// Seconds after which tuning takes no further step.
            #[must_use]
            pub fn max_seconds(mut self, max_seconds: impl Into<Option<f64>>) -> Self {
                self.tuning.max_seconds = max_seconds.into();
                self
            }

            /// Which rows the steps of the tuning see.
            #[must_use]
            pub fn seed(mut self, seed: u64) -> Self {
                self.tuning.seed = seed;
                self
            }

            /// The most threads.
            #[must_use]
            pub fn n_threads(mut self, n_threads: usize) -> Self {
                self.tuning.threads = Threads::up_to(n_threads);
                self
            }

            /// For each input whether its numbers are codes of categories; no input is if this is empty.
            #[must_use]
            pub fn categorical(self, categorical: impl Into<Vec<bool>>) -> Self {
                Self { categorical: categorical.into(), ..self }
            }

            pub(crate) fn tuned_by(&self) -> &KernelTuning {
                &self.tuning
            }

            fn categorical_of(&self, cells: Cells<'_>) -> Result<Vec<bool>> {
                let (expected, found) = (cells.n_columns(), self.categorical.len());
                match found {
                    0 => Ok(vec![false; expected]),
                    n if n == expected => Ok(self.categorical.clone()),
                    _ => Err(Error::LengthMismatch { what: "categorical inputs", expected, found }),
                }
            }
        }
    };
}

kernel_builder!(LaplaceRegressorParams);
kernel_builder!(LaplaceClassifierParams);

impl LaplaceRegressorParams {
    /// The map of the target; without one the best by leave-one-out in the target's own units.
    #[must_use]
    pub fn target_map(self, target_map: impl Into<Option<TargetMap>>) -> Self {
        Self { target_map: target_map.into(), ..self }
    }

    /// Tunes the kernel and solves on all rows. NaN is a missing cell; `targets` is row-major, with the same number of
    /// targets for every row.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::LengthMismatch`], [`Error::NotFinite`] in the targets, [`Error::InvalidParameter`],
    /// [`Error::NotPositiveDefinite`] if a given α is too small, [`Error::TooLarge`] beyond the memory limit.
    pub fn fit(&self, cells: Cells<'_>, targets: &[f64]) -> Result<LaplaceRegressor> {
        self.fit_with(cells, targets, FitOptions::default())
    }

    /// As [`LaplaceRegressorParams::fit`], with relative weights of the rows or a progress callback, which receives every
    /// step of the tuning.
    ///
    /// # Errors
    /// As [`LaplaceRegressorParams::fit`], and [`Error::Cancelled`].
    pub fn fit_with(&self, cells: Cells<'_>, targets: &[f64], options: FitOptions<'_>) -> Result<LaplaceRegressor> {
        let targets = by_column(cells.n_rows(), targets)?;
        LaplaceRegressor::fit_columns(None, cells, &self.categorical_of(cells)?, &targets, self, options)
    }
}

impl LaplaceClassifierParams {
    /// Number of classes, where rows of some may be missing.
    #[must_use]
    pub fn n_classes(self, n_classes: usize) -> Self {
        Self { n_classes: Some(n_classes), ..self }
    }

    /// Tunes the kernel and solves on all rows. NaN is a missing cell; classes are numbers from 0.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::LengthMismatch`], [`Error::InvalidParameter`] for a class beyond their number,
    /// [`Error::NotPositiveDefinite`] if a given α is too small, [`Error::TooLarge`] beyond the memory limit.
    pub fn fit(&self, cells: Cells<'_>, labels: &[u32]) -> Result<LaplaceClassifier> {
        self.fit_with(cells, labels, FitOptions::default())
    }

    /// As [`LaplaceClassifierParams::fit`], with relative weights of the rows or a progress callback, which receives every
    /// step of the tuning.
    ///
    /// # Errors
    /// As [`LaplaceClassifierParams::fit`], and [`Error::Cancelled`].
    pub fn fit_with(&self, cells: Cells<'_>, labels: &[u32], options: FitOptions<'_>) -> Result<LaplaceClassifier> {
        let largest = labels.iter().max().map_or(0, |class| *class as usize + 1);
        let n_classes = self.n_classes.unwrap_or(largest);
        LaplaceClassifier::fit_labels(
            None,
            cells,
            &self.categorical_of(cells)?,
            labels,
            n_classes,
            &self.tuning,
            options,
        )
    }
}
