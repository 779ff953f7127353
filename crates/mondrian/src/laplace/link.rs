//! From scores to probabilities: z_c = β·s_c + γ·ln(softplus(κ·s_c)/κ), p = softmax(z), the three numbers chosen on
//! leave-one-out scores (docs/design.md, "Classes").

use serde::{Deserialize, Serialize};

use crate::laplace::objective::{best_temperature, softmax};
use crate::linalg::Matrix;
use crate::parallel::prelude::*;

/// The link's three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// The slope of large scores.
    pub beta: f64,
    /// The weight of the bent part.
    pub gamma: f64,
    /// Where it bends: at scores of about 1/κ.
    pub kappa: f64,
}

/// Probabilities are at least this.
const LEAST: f64 = 1e-9;
/// Rows whose losses are one sum.
const ROWS: usize = 512;
/// Evaluations of the search.
const EVALUATIONS: usize = 120;

impl Link {
    fn of_logs(u: [f64; 3]) -> Self {
        Self { beta: u[0].exp(), kappa: u[1].exp(), gamma: u[2].exp() }
    }

    fn logit(self, s: f64) -> f64 {
        let t = self.kappa * s;
        let softplus = if t > 30.0 { t } else { t.exp().ln_1p() };
        self.beta * s + self.gamma * (softplus / self.kappa + 1e-12).ln()
    }

    /// Probabilities of one row of scores; they sum to 1 and none is 0.
    pub(crate) fn probabilities(self, scores: impl Iterator<Item = f64>, out: &mut [f64]) {
        // A score beyond all training says no more than a large one.
        softmax(scores.map(|s| self.logit(if s.is_nan() { 0.0 } else { s.clamp(-1e3, 1e3) })), out);
        out.iter_mut().for_each(|p| *p = p.max(LEAST));
        let sum: f64 = out.iter().sum();
        out.iter_mut().for_each(|p| *p /= sum);
    }

    /// The mean log loss: sums of [`ROWS`] rows each, added up in their order whichever thread made them.
    pub(crate) fn loss(self, scores: &Matrix, targets: &Matrix, weights: &[f64]) -> f64 {
        let c = scores.n_columns();
        let whole: f64 = weights.iter().sum();
        let part = |first: usize| {
            let mut probabilities = vec![0.0; c];
            let mut sum = 0.0;
            for i in first..(first + ROWS).min(weights.len()) {
                self.probabilities((0..c).map(|k| scores[(i, k)]), &mut probabilities);
                let own: f64 = (0..c).map(|k| probabilities[k] * targets[(i, k)]).sum();
                sum -= weights[i] / whole * own.ln();
            }
            sum
        };
        let firsts: Vec<usize> = (0..weights.len()).step_by(ROWS).collect();
        let parts: Vec<f64> = if firsts.len() < 2 {
            firsts.into_iter().map(part).collect()
        } else {
            firsts.into_par_iter().map(part).collect()
        };
        parts.iter().sum()
    }

    /// The best link for leave-one-out scores of one-hot targets.
    pub(crate) fn fit(scores: &Matrix, targets: &Matrix, weights: &[f64]) -> Self {
        let beta = best_temperature(scores, targets, weights);
        let start = [beta.ln(), 2.5, -1.0];
        Self::of_logs(
            simplex(start, |u| Self::of_logs(u.map(|x| x.clamp(-9.0, 9.0))).loss(scores, targets, weights))
                .map(|x| x.clamp(-9.0, 9.0)),
        )
    }
}

/// The downhill simplex of Nelder and Mead, for three numbers.
fn simplex(start: [f64; 3], mut value: impl FnMut([f64; 3]) -> f64) -> [f64; 3] {
    let mut corners: Vec<([f64; 3], f64)> = Vec::new();
    corners.push((start, value(start)));
    for k in 0..3 {
        let mut corner = start;
        corner[k] += 0.5;
        corners.push((corner, value(corner)));
    }
    let mut spent = 4;
    while spent < EVALUATIONS {
        corners.sort_by(|a, b| a.1.total_cmp(&b.1));
        if corners[3].1 - corners[0].1 < 1e-7 {
            break;
        }
        let centre = [0, 1, 2].map(|k| corners[..3].iter().map(|(corner, _)| corner[k]).sum::<f64>() / 3.0);
        let worst = corners[3];
        let along = |t: f64| [0, 1, 2].map(|k| centre[k] + t * (centre[k] - worst.0[k]));
        let mut attempt = |t: f64| {
            spent += 1;
            let point = along(t);
            (point, value(point))
        };
        let reflected = attempt(1.0);
        if reflected.1 < corners[0].1 {
            let further = attempt(2.0);
            corners[3] = if further.1 < reflected.1 { further } else { reflected };
        } else if reflected.1 < corners[2].1 {
            corners[3] = reflected;
        } else {
            let nearer = if reflected.1 < worst.1 { attempt(0.5) } else { attempt(-0.5) };
            if nearer.1 < worst.1.min(reflected.1) {
                corners[3] = nearer;
            } else {
                let best = corners[0].0;
                for corner in &mut corners[1..] {
                    corner.0 = [0, 1, 2].map(|k| 0.5 * (best[k] + corner.0[k]));
                    corner.1 = value(corner.0);
                    spent += 1;
                }
            }
        }
    }
    corners.sort_by(|a, b| a.1.total_cmp(&b.1));
    corners[0].0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_minimum_and_stays_a_distribution() {
        let found = simplex([0.0; 3], |u| (u[0] - 1.0).powi(2) + (u[1] + 0.5).powi(2) + 2.0 * u[2].powi(2));
        assert!((found[0] - 1.0).abs() < 1e-2 && (found[1] + 0.5).abs() < 1e-2 && found[2].abs() < 1e-2);
        let link = Link { beta: 5.0, gamma: 0.4, kappa: 12.0 };
        let mut out = [0.0; 3];
        for scores in [[0.9, 0.05, 0.05], [1e300, -1e300, 0.0], [0.0; 3], [f64::NAN, 1.0, 0.0]] {
            link.probabilities(scores.into_iter(), &mut out);
            assert!((out.iter().sum::<f64>() - 1.0).abs() < 1e-12 && out.iter().all(|p| *p > 0.0 && p.is_finite()));
        }
    }
}
