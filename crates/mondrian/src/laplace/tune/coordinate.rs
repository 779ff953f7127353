//! Coordinate search in log-lifetimes: no derivatives, one parameter at a time (docs/design.md, "The tuned Laplace
//! kernel").

use crate::Result;

/// Factors tried on a lifetime, the last of them zero; on α their first two.
const FACTORS: [f64; 3] = [2.5, 0.4, 0.0];
/// What a lifetime of zero comes back as, in units of the largest.
const REVIVAL: f64 = -3.0;

/// Sweeps over all parameters until a sweep brings nothing or `evaluations` are spent. The last parameter is ln α.
/// `value` gives `None` when the search is to stop.
pub(crate) fn sweep(
    mut value: impl FnMut(&[f64]) -> Result<Option<f64>>,
    start: &[f64],
    lower: &[f64],
    upper: &[f64],
    evaluations: usize,
) -> Result<Vec<f64>> {
    let mut best = start.to_vec();
    let Some(mut least) = value(&best)? else { return Ok(best) };
    let mut spent = 1;
    loop {
        let before = least;
        for i in 0..best.len() {
            let is_alpha = i + 1 == best.len();
            for factor in FACTORS {
                if lower[i] == upper[i] || is_alpha && factor == 0.0 {
                    continue;
                }
                let mut trial = best.clone();
                trial[i] = moved(&best, i, factor).map_or(f64::NEG_INFINITY, |log| log.clamp(lower[i], upper[i]));
                if trial[i] == best[i] {
                    continue;
                }
                if spent >= evaluations {
                    return Ok(best);
                }
                let Some(found) = value(&trial)? else { return Ok(best) };
                spent += 1;
                if found < least {
                    (best, least) = (trial, found);
                    break;
                }
            }
        }
        if before - least < 1e-4 {
            return Ok(best);
        }
    }
}

/// The parameter after the factor; `None` for zero.
fn moved(logs: &[f64], i: usize, factor: f64) -> Option<f64> {
    if factor == 0.0 {
        None
    } else if logs[i] == f64::NEG_INFINITY {
        let largest = logs[..logs.len() - 1].iter().fold(f64::NEG_INFINITY, |m, &l| m.max(l));
        Some(if largest.is_finite() { largest + REVIVAL } else { REVIVAL })
    } else {
        Some(logs[i] + factor.ln())
    }
}
