//! Parameters shared by all forests: number of trees, lifetime, measure, seed.

use serde::{Deserialize, Serialize};

use crate::process::{Bounds, BuiltInMeasure, Measure, QuantileMeasure, Weights};
use crate::select::Validation;
use crate::{Error, Lifetime, Points, Result};

/// A lifetime by value, or chosen from the data.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LifetimeChoice {
    /// Chosen on held-out data along the regularization path.
    #[default]
    Auto,
    /// This one.
    Value(Lifetime),
}

impl From<Lifetime> for LifetimeChoice {
    fn from(lifetime: Lifetime) -> Self {
        Self::Value(lifetime)
    }
}

/// Which measure the process runs under.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MeasureChoice {
    /// Length.
    #[default]
    Uniform,
    /// The first data's own distribution on each axis.
    Quantile,
    /// One's own: a table of its distribution function on each axis.
    Given(QuantileMeasure),
}

/// One factor per dimension on the measure.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WeightsChoice {
    /// 1 (raw units) for a finite lifetime by value, 1/standard deviation when it is automatic or infinite.
    #[default]
    Auto,
    /// 1/standard deviation of the first data.
    Deviation,
    /// 1: raw units.
    Raw,
    /// These.
    Given(Weights),
}

/// The rate γ of a model by value, or chosen from the data: see [`crate::ClassificationForest::gamma`] and
/// [`crate::DensityForest::gamma`].
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GammaChoice {
    /// By the leave-one-out likelihood.
    #[default]
    Auto,
    /// This one: finite and above 0.
    Value(f64),
}

impl From<f64> for GammaChoice {
    fn from(gamma: f64) -> Self {
        Self::Value(gamma)
    }
}

/// How a prediction treats cuts that no training point has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unseen {
    /// As the key says: the same answer as after growing the tree there.
    #[default]
    Keyed,
    /// Integrated over in closed form.
    Integrate,
}

/// Parameters of every forest; defaults in [`ForestParams::default`].
///
/// | name | default | meaning | range |
/// | --- | --- | --- | --- |
/// | `n_trees` | 100 | trees M | ≥ 1 |
/// | `lifetime` | automatic | the report's λ | ≥ 0, may be infinite |
/// | `seed` | 0 | all randomness follows from it | any |
/// | `bounds` | the first data's | root box, raw units | finite |
/// | `measure` | uniform | what lengths mean | |
/// | `weights` | automatic | one factor per dimension on the measure | ≥ 0 |
/// | `validation` | a held-out fifth | what an automatic lifetime is chosen on | |
/// | `window` | all | how many rows are held, the last ones | ≥ 1, not with `max_rows` |
/// | `max_rows` | all | how many rows are held, a sample that the order of arrival does not change | ≥ 1 |
/// | `warm_up` | none | how many rows of a stream fix box and weights | ≥ 1 |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForestParams {
    /// Number of trees M.
    pub n_trees: usize,
    /// Lifetime λ.
    pub lifetime: LifetimeChoice,
    /// Seed.
    pub seed: u64,
    /// Root box in raw units; the box of the first data if not given.
    pub bounds: Option<Bounds>,
    /// Measure.
    pub measure: MeasureChoice,
    /// Weights of the measure.
    pub weights: WeightsChoice,
    /// What an automatic lifetime is chosen on.
    #[serde(default, skip_serializing_if = "Validation::is_default")]
    pub validation: Validation,
    /// How many rows are held, the last ones; all if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<usize>,
    /// How many rows are held, a sample that the order of arrival does not change; all if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rows: Option<usize>,
    /// How many rows of a stream fix box and weights; those of the first call if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<usize>,
}

impl Default for ForestParams {
    fn default() -> Self {
        Self {
            n_trees: 100,
            lifetime: LifetimeChoice::Auto,
            seed: 0,
            bounds: None,
            measure: MeasureChoice::Uniform,
            weights: WeightsChoice::Auto,
            validation: Validation::HoldOut,
            window: None,
            max_rows: None,
            warm_up: None,
        }
    }
}

/// The builder methods of the parameters that every forest shares: for a type with a field of [`ForestParams`], or for
/// that type itself.
macro_rules! forest_builder {
    ($params:ty $(, $field:ident)?) => {
        impl $params {
            /// Number of trees M.
            #[must_use]
            pub fn n_trees(mut self, n_trees: usize) -> Self {
                self $(.$field)? .n_trees = n_trees;
                self
            }

            /// The lifetime λ, by value or [automatic](crate::LifetimeChoice::Auto).
            #[must_use]
            pub fn lifetime(mut self, lifetime: impl Into<$crate::forest::LifetimeChoice>) -> Self {
                self $(.$field)? .lifetime = lifetime.into();
                self
            }

            /// The seed: all randomness follows from it.
            #[must_use]
            pub fn seed(mut self, seed: u64) -> Self {
                self $(.$field)? .seed = seed;
                self
            }

            /// The root box in raw units, instead of the first data's.
            #[must_use]
            pub fn bounds(mut self, bounds: impl Into<Option<$crate::process::Bounds>>) -> Self {
                self $(.$field)? .bounds = bounds.into();
                self
            }

            /// What lengths mean.
            #[must_use]
            pub fn measure(mut self, measure: $crate::forest::MeasureChoice) -> Self {
                self $(.$field)? .measure = measure;
                self
            }

            /// One factor per dimension on the measure.
            #[must_use]
            pub fn measure_weights(mut self, weights: $crate::forest::WeightsChoice) -> Self {
                self $(.$field)? .weights = weights;
                self
            }

            /// What an automatic lifetime is chosen on.
            #[must_use]
            pub fn validation(mut self, validation: $crate::select::Validation) -> Self {
                self $(.$field)? .validation = validation;
                self
            }

            /// How many rows are held, the last ones: older rows are forgotten exactly. A first fit looks at no others either.
            #[must_use]
            pub fn window(mut self, n_rows: impl Into<Option<usize>>) -> Self {
                self $(.$field)? .window = n_rows.into();
                self
            }

            /// How many rows are held: those of smallest keyed hash among all that came, whatever their order. Equal rows have
            /// equal hashes and stay together.
            #[must_use]
            pub fn max_rows(mut self, n_rows: impl Into<Option<usize>>) -> Self {
                self $(.$field)? .max_rows = n_rows.into();
                self
            }

            /// For streams: how many rows fix weights and the first box. Until then the forest is fitted again whenever the number of
            /// rows has doubled, and the box has a margin around the rows; later a forest's box is put around all rows again if some
            /// leave it and there is a quarter more of them. An automatic lifetime is infinite.
            #[must_use]
            pub fn warm_up(mut self, n_rows: impl Into<Option<usize>>) -> Self {
                self $(.$field)? .warm_up = n_rows.into();
                self
            }
        }
    };
}

pub(crate) use forest_builder;

forest_builder!(ForestParams);

/// More trees than this are refused.
const MAX_TREES: usize = 1 << 24;

impl ForestParams {
    /// Checks what can be checked without data.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`].
    pub fn check(&self) -> Result<()> {
        if self.n_trees == 0 || self.n_trees > MAX_TREES {
            let value = self.n_trees as f64;
            return Err(Error::InvalidParameter { name: "n_trees", value, expected: "between 1 and 2^24" });
        }
        for (name, n_rows) in [("window", self.window), ("max_rows", self.max_rows), ("warm_up", self.warm_up)] {
            if n_rows == Some(0) {
                return Err(Error::InvalidParameter { name, value: 0.0, expected: "at least 1" });
            }
        }
        if let (Some(_), Some(max_rows)) = (self.window, self.max_rows) {
            let expected = "left out where a window is given: a forest holds its rows by one rule";
            return Err(Error::InvalidParameter { name: "max_rows", value: max_rows as f64, expected });
        }
        self.validation.check()
    }

    /// Refuses a rule for the rows held, for models that hold all rows.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`].
    pub(crate) fn check_holds_all(&self) -> Result<()> {
        let expected = "left out: only regression, classification and density forests choose the rows they hold";
        for (name, n_rows) in [("window", self.window), ("max_rows", self.max_rows)] {
            if let Some(n_rows) = n_rows {
                return Err(Error::InvalidParameter { name, value: n_rows as f64, expected });
            }
        }
        self.check_fixed_at_once()
    }

    /// Refuses a warm-up, for models whose box and weights come from the first call.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`].
    pub(crate) fn check_fixed_at_once(&self) -> Result<()> {
        let Some(n_rows) = self.warm_up else { return Ok(()) };
        let expected = "left out: only forests and densities have a warm-up";
        Err(Error::InvalidParameter { name: "warm_up", value: n_rows as f64, expected })
    }

    /// The measure these parameters mean on the first data.
    ///
    /// # Errors
    /// [`Error::Empty`] without rows, [`Error::LengthMismatch`] for the wrong number of weights.
    pub fn measure_on(&self, points: Points<'_>) -> Result<BuiltInMeasure> {
        let weights = match &self.weights {
            WeightsChoice::Given(weights) => Some(weights.clone()),
            WeightsChoice::Raw => None,
            WeightsChoice::Deviation => Some(Weights::inverse_deviation(points)?),
            WeightsChoice::Auto => match self.lifetime {
                LifetimeChoice::Value(lifetime) if lifetime.is_finite() => None,
                _ => Some(Weights::inverse_deviation(points)?),
            },
        };
        // Neither quantiles nor a table of one's own have the units of the data left: its deviations mean nothing to them.
        let given = if let WeightsChoice::Given(weights) = &self.weights { Some(weights) } else { None };
        match &self.measure {
            MeasureChoice::Quantile => Ok(BuiltInMeasure::Quantile(QuantileMeasure::of_points(points, given)?)),
            MeasureChoice::Given(table) => table_with(table, given, points.n_columns()),
            MeasureChoice::Uniform => {
                let measure = weights.map_or(BuiltInMeasure::Uniform, BuiltInMeasure::Weighted);
                measure.check_dims(points.n_columns())?;
                Ok(measure)
            }
        }
    }
}

/// A measure of one's own, each axis times its weight.
pub(in crate::forest) fn table_with(
    table: &QuantileMeasure,
    weights: Option<&Weights>,
    n_dims: usize,
) -> Result<BuiltInMeasure> {
    let measure = BuiltInMeasure::Quantile(weights.map_or_else(|| Ok(table.clone()), |w| table.weighted(w))?);
    measure.check_dims(n_dims)?;
    Ok(measure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn automatic_weights_follow_the_lifetime() {
        let data = [0.0, 10.0, 2.0, 30.0];
        let points = Points::row_major(&data, 2).unwrap();
        let with = |lifetime| ForestParams { lifetime, ..ForestParams::default() }.measure_on(points).unwrap();
        assert_eq!(with(LifetimeChoice::Value(Lifetime::new(3.0).unwrap())), BuiltInMeasure::Uniform);
        for lifetime in [LifetimeChoice::Auto, LifetimeChoice::Value(Lifetime::INFINITE)] {
            let BuiltInMeasure::Weighted(weights) = with(lifetime) else { panic!("weights expected") };
            assert!((weights.factors()[0] - 1.0).abs() < 1e-12 && (weights.factors()[1] - 0.1).abs() < 1e-12);
        }
    }

    #[test]
    fn refuses_absurd_numbers_of_trees() {
        for n_trees in [0, usize::MAX] {
            assert!(ForestParams { n_trees, ..ForestParams::default() }.check().is_err());
        }
    }
}
