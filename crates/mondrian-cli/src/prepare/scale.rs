//! Scaling of numbers: to standard units, to quantiles, or not at all.

use serde::{Deserialize, Serialize};

/// How numeric inputs are scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scaling {
    /// Subtract the mean, divide by the standard deviation.
    Standard,
    /// The share of smaller values: reduces the effect of outliers and skew.
    Quantile,
    /// No scaling.
    None,
}

/// Largest number of knots of a quantile map.
const KNOTS: usize = 512;

/// One column's scaling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Map {
    /// x.
    Same,
    /// (x − centre)/spread.
    Standard { centre: f64, spread: f64 },
    /// Linear between (value, rank), both increasing; beyond the ends with the average slope.
    Quantile { values: Vec<f64>, ranks: Vec<f64> },
}

impl Map {
    /// The map of a column with this mean and standard deviation, and these values (a sample of it, any order).
    pub(crate) fn new(scaling: Scaling, mean: f64, deviation: f64, sample: &[f64]) -> Self {
        match scaling {
            Scaling::None => Self::Same,
            Scaling::Standard => {
                // A constant column has no information: any spread is valid.
                let spread = if deviation > 0.0 && deviation.is_finite() { deviation } else { 1.0 };
                Self::Standard { centre: mean, spread }
            }
            Scaling::Quantile => quantiles(sample),
        }
    }

    /// The scaled number.
    pub(crate) fn apply(&self, x: f64) -> f64 {
        match self {
            Self::Same => x,
            Self::Standard { centre, spread } => (x - centre) / spread,
            Self::Quantile { values, ranks } => between(values, ranks, x),
        }
    }

    /// The number in the file's units.
    pub(crate) fn undo(&self, scaled: f64) -> f64 {
        match self {
            Self::Same => scaled,
            Self::Standard { centre, spread } => centre + spread * scaled,
            Self::Quantile { values, ranks } => between(ranks, values, scaled),
        }
    }

    /// Whether its numbers are valid: files are untrusted.
    pub(crate) fn is_sound(&self) -> bool {
        let rising = |v: &[f64]| v.windows(2).all(|w| w[0] < w[1]) && v.iter().all(|x| x.is_finite());
        match self {
            Self::Same => true,
            Self::Standard { centre, spread } => centre.is_finite() && *spread > 0.0 && spread.is_finite(),
            Self::Quantile { values, ranks } => {
                !values.is_empty() && values.len() == ranks.len() && rising(values) && rising(ranks)
            }
        }
    }
}

/// Mid-ranks in [0, 1] at distinct values, thinned to a bounded number of knots.
fn quantiles(sample: &[f64]) -> Map {
    let mut sorted = sample.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let (mut values, mut ranks) = (Vec::new(), Vec::new());
    let mut below = 0;
    for run in sorted.chunk_by(|a, b| a == b) {
        values.push(run[0]);
        ranks.push((below as f64 + run.len() as f64 / 2.0) / n);
        below += run.len();
    }
    if values.len() > KNOTS {
        let keep: Vec<usize> = (0..KNOTS).map(|k| k * (values.len() - 1) / (KNOTS - 1)).collect();
        values = keep.iter().map(|&i| values[i]).collect();
        ranks = keep.iter().map(|&i| ranks[i]).collect();
    }
    if values.is_empty() { Map::Same } else { Map::Quantile { values, ranks } }
}

/// Linear between knots of two increasing lists; outside, the slope from end to end.
fn between(from: &[f64], to: &[f64], x: f64) -> f64 {
    let last = from.len() - 1;
    let slope = if last > 0 { (to[last] - to[0]) / (from[last] - from[0]) } else { 1.0 };
    if x <= from[0] {
        return to[0] + slope * (x - from[0]);
    }
    if x >= from[last] {
        return to[last] + slope * (x - from[last]);
    }
    let above = from.partition_point(|&v| v <= x);
    let (a, b) = (above - 1, above);
    to[a] + (to[b] - to[a]) * ((x - from[a]) / (from[b] - from[a]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_and_back() {
        let sample: Vec<f64> = (0..2000).map(|i| f64::from(i % 777).powi(2)).collect();
        for scaling in [Scaling::Standard, Scaling::Quantile, Scaling::None] {
            let map = Map::new(scaling, 10.0, 4.0, &sample);
            assert!(map.is_sound());
            for x in [-5.0, 0.0, 17.0, 3000.5, 602_176.0, 1e6] {
                assert!((map.undo(map.apply(x)) - x).abs() < 1e-6 * x.abs().max(1.0), "{scaling:?} {x}");
            }
        }
    }

    #[test]
    fn quantiles_are_mid_ranks() {
        let map = Map::new(Scaling::Quantile, 0.0, 0.0, &[1.0, 1.0, 2.0, 4.0]);
        assert_eq!([1.0, 2.0, 3.0, 4.0].map(|x| map.apply(x)), [0.25, 0.625, 0.75, 0.875]);
        assert!(map.apply(100.0) > map.apply(50.0));
        assert_eq!(Map::new(Scaling::Standard, 3.0, 0.0, &[3.0]).apply(3.0), 0.0);
    }
}
