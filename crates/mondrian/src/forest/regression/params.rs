//! Parameters of a regression forest.

use serde::{Deserialize, Serialize};

use crate::forest::regression::{Prior, RegressionForest, Rows};
use crate::forest::retention::first_rows;
use crate::forest::{ForestParams, LifetimeChoice, Unseen, forest_builder};
use crate::progress::FitOptions;
use crate::select::split::gather;
use crate::{Lifetime, Points, Result};

/// How the means of cells relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeafModel {
    /// A cell's mean is drawn around its parent's (docs/design.md, "Regression").
    #[default]
    Hierarchical,
    /// The report's: every cell on its own, an empty one predicts the prior.
    Independent,
}

/// How a [`RegressionForest`] is fitted.
///
/// | name | default | meaning | range |
/// | --- | --- | --- | --- |
/// | `n_trees`, `lifetime`, `seed`, `bounds`, `measure`, `measure_weights`, `validation`, `window`, `max_rows`, `warm_up` | [`ForestParams`] | the trees and the rows held | |
/// | `prior` | automatic | prior and noise of the targets | |
/// | `leaf_model` | hierarchical | how the means of cells relate | |
/// | `unseen` | keyed | cuts that no training point has reached | |
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RegressionParams {
    /// Trees, lifetime, box, measure.
    pub forest: ForestParams,
    /// Prior and noise, automatic where not given.
    pub prior: Prior,
    /// How cells relate.
    pub leaf_model: LeafModel,
    /// How cuts that no training point has reached are treated.
    pub unseen: Unseen,
}

forest_builder!(RegressionParams, forest);

impl RegressionParams {
    /// Prior and noise, automatic where not given.
    #[must_use]
    pub fn prior(self, prior: Prior) -> Self {
        Self { prior, ..self }
    }

    /// How the means of cells relate.
    #[must_use]
    pub fn leaf_model(self, leaf_model: LeafModel) -> Self {
        Self { leaf_model, ..self }
    }

    /// How cuts that no training point has reached are treated.
    #[must_use]
    pub fn unseen(self, unseen: Unseen) -> Self {
        Self { unseen, ..self }
    }

    /// Fits a forest; `targets` is row-major, with the same number of targets for every row.
    ///
    /// # Errors
    /// [`crate::Error::Empty`] without rows of positive weight, [`crate::Error::LengthMismatch`],
    /// [`crate::Error::NotFinite`], [`crate::Error::InvalidParameter`], [`crate::Error::TooLarge`].
    pub fn fit(&self, points: Points<'_>, targets: &[f64]) -> Result<RegressionForest> {
        self.fit_with(points, targets, FitOptions::default())
    }

    /// As [`RegressionParams::fit`], with sample weights or a progress callback.
    ///
    /// # Errors
    /// As [`RegressionParams::fit`], and [`crate::Error::Cancelled`].
    pub fn fit_with(&self, points: Points<'_>, targets: &[f64], options: FitOptions<'_>) -> Result<RegressionForest> {
        let LifetimeChoice::Value(lifetime) = self.forest.lifetime else {
            if self.forest.warm_up.is_some() {
                return self.fit_at(Lifetime::INFINITE, points, targets, options);
            }
            return self.on_held(points, targets, options, |points, targets, options| {
                crate::forest::regression::automatic::fit_auto(self.clone(), points, targets, options)
            });
        };
        self.fit_at(lifetime, points, targets, options)
    }

    /// As [`RegressionParams::fit_with`], with this lifetime whatever the parameters say; automatic weights of the
    /// measure are still those of the parameters.
    ///
    /// # Errors
    /// As [`RegressionParams::fit_with`].
    pub fn fit_at(
        &self,
        lifetime: Lifetime,
        points: Points<'_>,
        targets: &[f64],
        options: FitOptions<'_>,
    ) -> Result<RegressionForest> {
        let weights = options.weights;
        let mut model = self.on_held(points, targets, options, |points, targets, mut options| {
            let (params, weights) = (self.clone(), options.weights);
            RegressionForest::grown_to(params, lifetime, points, targets, weights, &mut options.progress)
        })?;
        if self.forest.warm_up.is_some_and(|n_rows| points.n_rows() < n_rows) {
            model.start_warm_up(&Rows::checked(points, targets, weights)?)?;
        }
        Ok(model)
    }

    /// Fits to those of the rows that are held, where a rule leaves some out.
    fn on_held(
        &self,
        points: Points<'_>,
        targets: &[f64],
        options: FitOptions<'_>,
        fit: impl FnOnce(Points<'_>, &[f64], FitOptions<'_>) -> Result<RegressionForest>,
    ) -> Result<RegressionForest> {
        let Some(rows) = first_rows(&self.forest, points, targets, options.weights)? else {
            return fit(points, targets, options);
        };
        let (x, y) = gather(points, targets, &rows);
        fit(Points::row_major(&x, points.n_columns())?, &y, options)
    }
}
