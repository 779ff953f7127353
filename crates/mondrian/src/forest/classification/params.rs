//! Parameters of a classification forest.

use serde::{Deserialize, Serialize};

use crate::forest::classification::{ClassificationForest, repeated};
use crate::forest::{ForestParams, GammaChoice, LifetimeChoice, Unseen, forest_builder};
use crate::progress::FitOptions;
use crate::{Error, Points, Result};

/// How a [`ClassificationForest`] is fitted.
///
/// | name | default | meaning | range |
/// | --- | --- | --- | --- |
/// | `n_trees`, `lifetime`, `seed`, `bounds`, `measure`, `measure_weights`, `validation`, `window`, `max_rows` | [`ForestParams`] | the trees and the rows held | |
/// | `gamma` | automatic | a block of duration s keeps e^{−γs} of its parent's opinion | > 0 |
/// | `unseen` | keyed | cuts that no training point has reached | |
/// | `n_classes` | the largest label plus one | classes known before any row of them | ≥ 1 |
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ClassificationParams {
    /// Trees, lifetime, box, measure.
    pub forest: ForestParams,
    /// γ.
    pub gamma: GammaChoice,
    /// How cuts that no training point has reached are treated.
    pub unseen: Unseen,
    /// Number of classes; not part of a saved model, which knows its own.
    #[serde(skip)]
    pub n_classes: Option<usize>,
}

forest_builder!(ClassificationParams, forest);

impl ClassificationParams {
    /// The rate γ, by value or [automatic](GammaChoice::Auto).
    #[must_use]
    pub fn gamma(self, gamma: impl Into<GammaChoice>) -> Self {
        Self { gamma: gamma.into(), ..self }
    }

    /// How cuts that no training point has reached are treated.
    #[must_use]
    pub fn unseen(self, unseen: Unseen) -> Self {
        Self { unseen, ..self }
    }

    /// Number of classes, where some may have no rows yet.
    #[must_use]
    pub fn n_classes(self, n_classes: usize) -> Self {
        Self { n_classes: Some(n_classes), ..self }
    }

    /// Fits a forest; labels are class numbers from 0.
    ///
    /// # Errors
    /// [`Error::Empty`] without rows, [`Error::LengthMismatch`], [`Error::InvalidParameter`] for a label that is no class
    /// number, and what the parameters refuse.
    pub fn fit(&self, points: Points<'_>, labels: &[u32]) -> Result<ClassificationForest> {
        self.fit_with(points, labels, FitOptions::default())
    }

    /// As [`ClassificationParams::fit`], with sample weights or a progress callback.
    ///
    /// The counts of the stable process are counts of rows, so a weight is a number of repetitions; rows of weight 0 are
    /// left out before box and measure are fixed.
    ///
    /// # Errors
    /// As [`ClassificationParams::fit`], [`Error::InvalidParameter`] for a weight that is no whole number ≥ 0, and
    /// [`Error::Cancelled`].
    pub fn fit_with(
        &self,
        points: Points<'_>,
        labels: &[u32],
        options: FitOptions<'_>,
    ) -> Result<ClassificationForest> {
        let weights = options.weights;
        let mut model = ClassificationForest::fitted(self, points, labels, options)?;
        if self.forest.warm_up.is_some_and(|n_rows| points.n_rows() < n_rows) {
            let Some(weights) = weights else {
                model.start_warm_up(points, labels)?;
                return Ok(model);
            };
            let (x, labels) = repeated(points, labels, weights)?;
            model.start_warm_up(Points::row_major(&x, points.n_columns())?, &labels)?;
        }
        Ok(model)
    }

    /// A forest on the box and measure of `first`, without rows yet: what online learning starts from.
    ///
    /// # Errors
    /// As [`ClassificationParams::fit`].
    pub fn unfitted(&self, first: Points<'_>) -> Result<ClassificationForest> {
        ClassificationForest::on(self, first, self.n_classes.unwrap_or(1))
    }

    /// Checks what can be checked without data.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`].
    pub fn check(&self) -> Result<()> {
        if let GammaChoice::Value(value) = self.gamma
            && !(value > 0.0 && value.is_finite())
        {
            return Err(Error::InvalidParameter { name: "gamma", value, expected: "a finite number > 0" });
        }
        if self.forest.lifetime == LifetimeChoice::Auto {
            self.forest.validation.rounds()?;
        }
        self.forest.check()
    }
}
