//! What all parts of one training agree on before they see a row.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::forest::{
    ForestParams, GammaChoice, LeafModel, LifetimeChoice, MeasureChoice, Prior, RegressionParams, WeightsChoice,
};
use crate::process::{Bounds, BuiltInMeasure, Measure};
use crate::tree::Domain;
use crate::{Error, Lifetime, Points, Result};

/// Seed, root box, measure, number of trees and lifetime of a forest that is trained in parts, with what its leaves need: a
/// small value that JSON can hold, made by [`Moments::domain`](crate::Moments::domain) and given to every part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainingDomain {
    pub(crate) seed: u64,
    pub(crate) n_trees: usize,
    /// The trees of a shard, if not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trees: Option<Range<usize>>,
    pub(crate) lifetime: Lifetime,
    /// Whether a smaller lifetime is chosen on held-out rows.
    #[serde(default)]
    pub(crate) chooses_lifetime: bool,
    /// Root box in raw units.
    pub(crate) lower: Vec<f64>,
    pub(crate) upper: Vec<f64>,
    pub(crate) measure: BuiltInMeasure,
    /// The largest magnitude of each target: the unit of their sums follows from it.
    pub(crate) largest_targets: Vec<f64>,
    #[serde(default)]
    pub(crate) prior: Prior,
    #[serde(default)]
    pub(crate) leaf_model: LeafModel,
    #[serde(default)]
    pub(crate) gamma: GammaChoice,
    /// What a front end keeps with it: names of columns and classes, how rows are prepared.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) notes: BTreeMap<String, String>,
}

impl TrainingDomain {
    /// Prior, noise and κ of a regression, automatic where not given.
    #[must_use]
    pub fn prior(self, prior: Prior) -> Self {
        Self { prior, ..self }
    }

    /// How the means of cells relate in a regression.
    #[must_use]
    pub fn leaf_model(self, leaf_model: LeafModel) -> Self {
        Self { leaf_model, ..self }
    }

    /// γ of a classification or density.
    #[must_use]
    pub fn gamma(self, gamma: impl Into<GammaChoice>) -> Self {
        Self { gamma: gamma.into(), ..self }
    }

    /// Keeps a text by name, which all parts must agree on: names of columns, for example.
    #[must_use]
    pub fn note(mut self, name: &str, text: &str) -> Self {
        self.notes.insert(name.to_owned(), text.to_owned());
        self
    }

    /// The texts kept with it.
    pub fn notes(&self) -> &BTreeMap<String, String> {
        &self.notes
    }

    /// Some of the trees only, to be [joined](crate::Summary::join) with the others.
    #[must_use]
    pub fn shard(self, trees: Range<usize>) -> Self {
        Self { trees: Some(trees), ..self }
    }

    /// The domain of JSON.
    ///
    /// # Errors
    /// [`crate::ModelFileError::Parameters`] for what is no domain, and what makes no sense as one.
    pub fn from_json(json: &str) -> Result<Self> {
        let wrong =
            |e: serde_json::Error| crate::ModelFileError::Parameters { name: "domain".into(), why: e.to_string() };
        let domain: Self = serde_json::from_str(json).map_err(wrong)?;
        domain.check()?;
        Ok(domain)
    }

    /// The domain as JSON.
    ///
    /// # Errors
    /// [`crate::ModelFileError::Parameters`] for a prior that JSON cannot hold.
    pub fn to_json(&self) -> Result<String> {
        let wrong =
            |e: serde_json::Error| crate::ModelFileError::Parameters { name: "domain".into(), why: e.to_string() };
        Ok(serde_json::to_string(self).map_err(wrong)?)
    }

    /// Seed, number of trees and factors of the measure, one per dimension (none under the quantile measure).
    pub fn params(&self) -> Result<(ForestParams, Option<Vec<f64>>)> {
        let weights = match &self.measure {
            BuiltInMeasure::Uniform => Some(vec![1.0; self.n_dims()]),
            BuiltInMeasure::Weighted(weights) => Some(weights.factors().to_vec()),
            BuiltInMeasure::Quantile(_) => None,
        };
        Ok((self.forest_params()?, weights))
    }

    /// The lifetime that cells are cut until.
    pub fn lifetime(&self) -> Lifetime {
        self.lifetime
    }

    /// The root box in raw units.
    ///
    /// # Errors
    /// [`Error::InvertedBox`] and others where it is none.
    pub fn bounds(&self) -> Result<Bounds> {
        Bounds::new(&self.lower, &self.upper)
    }

    /// The trees that are summarized.
    pub(crate) fn trees(&self) -> Range<usize> {
        self.trees.clone().unwrap_or(0..self.n_trees)
    }

    /// Number of dimensions.
    pub fn n_dims(&self) -> usize {
        self.lower.len()
    }

    /// Refuses what no training can be on.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for a lifetime without end or trees that do not exist, among others.
    pub(crate) fn check(&self) -> Result<()> {
        self.forest_params()?.check()?;
        self.prior.check()?;
        check_lifetime(self.lifetime)?;
        let trees = self.trees();
        if trees.start >= trees.end || trees.end > self.n_trees {
            let expected = "a range of trees below their number, not empty";
            return Err(Error::InvalidParameter { name: "trees", value: trees.end as f64, expected });
        }
        if let Some(value) = self.largest_targets.iter().copied().find(|y| !(y.is_finite() && *y >= 0.0)) {
            return Err(Error::InvalidParameter { name: "largest_targets", value, expected: "finite and ≥ 0" });
        }
        self.tree_domain().map(|_| ())
    }

    /// What the trees stand on.
    pub(crate) fn tree_domain(&self) -> Result<Domain> {
        let raw = self.bounds()?;
        self.measure.check_dims(raw.n_dims())?;
        Domain::new(self.seed, &crate::forest::in_measure(&self.measure, &raw)?, self.lifetime)
    }

    /// The parameters that a fit on all rows would have.
    pub(crate) fn forest_params(&self) -> Result<ForestParams> {
        let (measure, weights) = match &self.measure {
            BuiltInMeasure::Uniform => (MeasureChoice::Uniform, WeightsChoice::Raw),
            BuiltInMeasure::Weighted(weights) => (MeasureChoice::Uniform, WeightsChoice::Given(weights.clone())),
            BuiltInMeasure::Quantile(_) => (MeasureChoice::Quantile, WeightsChoice::Auto),
        };
        Ok(ForestParams {
            n_trees: self.n_trees,
            lifetime: LifetimeChoice::Value(self.lifetime),
            seed: self.seed,
            bounds: Some(self.bounds()?),
            measure,
            weights,
            ..ForestParams::default()
        })
    }

    /// The parameters of a regression.
    pub(crate) fn regression_params(&self) -> Result<RegressionParams> {
        let (forest, prior, leaf_model) = (self.forest_params()?, self.prior, self.leaf_model);
        Ok(RegressionParams { forest, prior, leaf_model, ..RegressionParams::default() })
    }

    /// Refuses rows outside the root box, naming the first.
    pub(crate) fn check_inside(&self, points: Points<'_>) -> Result<()> {
        points.check_width(self.n_dims())?;
        for row in 0..points.n_rows() {
            for (column, value) in points.row(row).enumerate() {
                let (lower, upper) = (self.lower[column], self.upper[column]);
                if !(lower <= value && value <= upper) {
                    return Err(Error::OutsideBox { row, column, value, lower, upper });
                }
            }
        }
        Ok(())
    }

    /// Refuses targets larger than the unit of sums allows for.
    pub(crate) fn check_targets(&self, targets: &[f64], n_targets: usize) -> Result<()> {
        if n_targets != self.largest_targets.len() {
            let (expected, found) = (self.largest_targets.len(), n_targets);
            return Err(Error::LengthMismatch { what: "targets per row in the domain", expected, found });
        }
        let is_too_large = |(at, y): &(usize, &f64)| y.abs() > self.largest_targets[at % n_targets];
        match targets.iter().enumerate().find(is_too_large) {
            None => Ok(()),
            Some((_, y)) => Err(Error::InvalidParameter {
                name: "a target",
                value: *y,
                expected: "at most as large as any that the domain's moments saw: take them over all rows",
            }),
        }
    }
}

/// Refuses a lifetime without end: cells are cut until it.
pub(crate) fn check_lifetime(lifetime: Lifetime) -> Result<()> {
    if lifetime.is_finite() {
        return Ok(());
    }
    let expected = "finite for a summary, whose cells are cut until it";
    Err(Error::InvalidParameter { name: "lifetime", value: lifetime.get(), expected })
}
