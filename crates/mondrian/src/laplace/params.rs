//! Parameters of the two models with the whole tuned kernel.

use crate::laplace::{Cells, KernelTuning, LaplaceClassifier, LaplaceRegressor, TargetMap};
use crate::progress::FitOptions;
use crate::ridge::by_column;
use crate::{Error, Result};

/// How a [`LaplaceRegressor`] is fitted.
///
/// | name | default | meaning |
/// | --- | --- | --- |
/// | `tuning` | [`KernelTuning::default`] | how the kernel is tuned |
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
/// | `tuning` | [`KernelTuning::default`] | how the kernel is tuned |
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
            /// How the kernel is tuned, on how many threads and with which seed.
            #[must_use]
            pub fn tuning(self, tuning: KernelTuning) -> Self {
                Self { tuning, ..self }
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
