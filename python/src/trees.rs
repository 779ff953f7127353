//! The parameters that everything with trees takes, as Python gives them: checked there, converted here.

use mondrian::forest::{ForestParams, LifetimeChoice, MeasureChoice, Unseen, WeightsChoice};
use mondrian::process::{Bounds, BuiltInMeasure, Weights};
use mondrian::{Lifetime, Result};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A dictionary with these keys.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct TreeArguments {
    n_trees: usize,
    /// `None` is automatic.
    lifetime: Option<f64>,
    seed: u64,
    lower: Option<Vec<f64>>,
    upper: Option<Vec<f64>>,
    measure: String,
    weights: WeightsArgument,
}

/// "auto", "std", "raw", or one factor a dimension.
#[derive(FromPyObject)]
enum WeightsArgument {
    Word(String),
    Given(Vec<f64>),
}

impl TreeArguments {
    pub(crate) fn params(self) -> PyResult<Result<ForestParams>> {
        let measure = match self.measure.as_str() {
            "uniform" => MeasureChoice::Uniform,
            "quantile" => MeasureChoice::Quantile,
            other => return Err(PyValueError::new_err(format!("measure is {other:?}, not a known one"))),
        };
        let weights = match self.weights {
            WeightsArgument::Given(factors) => Weights::new(factors).map(WeightsChoice::Given),
            WeightsArgument::Word(word) => match word.as_str() {
                "auto" => Ok(WeightsChoice::Auto),
                "std" => Ok(WeightsChoice::Deviation),
                "raw" => Ok(WeightsChoice::Raw),
                other => return Err(PyValueError::new_err(format!("weights is {other:?}, not a known word"))),
            },
        };
        let lifetime =
            self.lifetime.map_or(Ok(LifetimeChoice::Auto), |value| Lifetime::new(value).map(LifetimeChoice::Value));
        let bounds = match (&self.lower, &self.upper) {
            (Some(lower), Some(upper)) => Bounds::new(lower, upper).map(Some),
            _ => Ok(None),
        };
        let (n_trees, seed) = (self.n_trees, self.seed);
        Ok((|| Ok(ForestParams { n_trees, lifetime: lifetime?, seed, bounds: bounds?, measure, weights: weights? }))())
    }
}

/// How unseen cuts are treated.
pub(crate) fn unseen(word: &str) -> PyResult<Unseen> {
    match word {
        "keyed" => Ok(Unseen::Keyed),
        "integrate" => Ok(Unseen::Integrate),
        other => Err(PyValueError::new_err(format!("unseen is {other:?}, not a known word"))),
    }
}

/// The factors of a measure, one a dimension; `None` where it is no matter of factors.
pub(crate) fn weights(measure: &BuiltInMeasure, n_dims: usize) -> Option<Vec<f64>> {
    match measure {
        BuiltInMeasure::Uniform => Some(vec![1.0; n_dims]),
        BuiltInMeasure::Weighted(weights) => Some(weights.factors().to_vec()),
        BuiltInMeasure::Quantile(_) => None,
    }
}
