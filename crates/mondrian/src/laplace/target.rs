//! Maps of the target: what is fitted is h⁻¹(y), what is predicted the mean of h(ẑ + e) over leave-one-out residuals e
//! (docs/design.md, "Target map").

use serde::{Deserialize, Serialize};

/// Which map of the target is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetMap {
    /// The target itself.
    #[default]
    Identity,
    /// Its square root; targets ≥ 0.
    Sqrt,
    /// Its logarithm; targets > 0.
    Log,
}

/// Residuals that a prediction is averaged over.
const QUANTILES: usize = 41;

impl TargetMap {
    /// Whether the map takes these targets.
    pub(crate) fn takes(self, targets: &[f64]) -> bool {
        match self {
            Self::Identity => true,
            Self::Sqrt => targets.iter().all(|y| *y >= 0.0),
            Self::Log => targets.iter().all(|y| *y > 0.0),
        }
    }

    /// What is fitted.
    pub(crate) fn apply(self, y: f64) -> f64 {
        match self {
            Self::Identity => y,
            Self::Sqrt => y.sqrt(),
            Self::Log => y.ln(),
        }
    }

    /// Back to the target.
    pub(crate) fn invert(self, z: f64) -> f64 {
        match self {
            Self::Identity => z,
            Self::Sqrt => z.max(0.0).powi(2),
            Self::Log => z.exp(),
        }
    }

    /// The expected target where z is predicted: the mean over what was left out.
    pub(crate) fn smear(self, z: f64, quantiles: &[f64]) -> f64 {
        if self == Self::Identity || quantiles.is_empty() {
            return self.invert(z);
        }
        quantiles.iter().map(|e| self.invert(z + e)).sum::<f64>() / quantiles.len() as f64
    }
}

/// Quantiles at (k + ½)/41 of numbers.
pub(crate) fn residual_quantiles(residuals: &[f64]) -> Vec<f64> {
    let sorted = sorted(residuals);
    (0..QUANTILES).map(|k| quantile(&sorted, (k as f64 + 0.5) / QUANTILES as f64)).collect()
}

pub(crate) fn sorted(numbers: &[f64]) -> Vec<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The quantile of sorted numbers, linear between the (i + ½)/n-th.
pub(crate) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = (share * sorted.len() as f64 - 0.5).clamp(0.0, sorted.len() as f64 - 1.0);
    let below = at.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (at - below as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_inverted_and_smeared() {
        for map in [TargetMap::Identity, TargetMap::Sqrt, TargetMap::Log] {
            assert!((map.invert(map.apply(3.7)) - 3.7).abs() < 1e-12);
            assert_eq!(map.smear(map.apply(4.0), &[]), map.invert(map.apply(4.0)));
        }
        // The mean of (z + e)² is z² + the mean of e².
        assert!((TargetMap::Sqrt.smear(3.0, &[-1.0, 1.0]) - 10.0).abs() < 1e-12);
        assert!(!TargetMap::Log.takes(&[0.0]) && TargetMap::Sqrt.takes(&[0.0]) && !TargetMap::Sqrt.takes(&[-1.0]));
        assert_eq!(quantile(&[1.0, 2.0, 3.0], 0.5), 2.0);
    }
}
