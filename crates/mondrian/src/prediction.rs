//! Predictions with uncertainty.

/// Mean and standard deviation of each prediction, row-major by target.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Predictive means.
    pub mean: Vec<f64>,
    /// Predictive standard deviations, noise included.
    pub std: Vec<f64>,
}
