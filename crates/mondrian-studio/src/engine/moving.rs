//! A forest's deviations while the slider moves. Intervals are calibrated at each lifetime on rows that were left out, which takes longer
//! than a move may; so deviations of the shown rows are kept at some lifetimes, and those between are interpolated. A slider at rest asks
//! for the exact ones.

use mondrian::Lifetime;

use super::view::Said;
use super::{Model, rows_of, shown};
use crate::api::Problem;
use crate::tables::Data;

/// Lifetimes at which deviations are kept.
const LIFETIMES: usize = 25;

/// Deviations of the shown rows at some lifetimes, evenly on a logarithmic scale.
pub(crate) struct Deviations {
    from: f64,
    to: f64,
    /// By lifetime, then row.
    std: Vec<Vec<f64>>,
}

impl Deviations {
    /// Of every shown row at a lifetime: at the ends of the scale those of the ends.
    fn at(&self, lifetime: f64) -> Vec<f64> {
        let last = self.std.len() - 1;
        let step = last as f64 * (lifetime / self.from).ln() / (self.to / self.from).ln();
        // Not a number where the scale has no width; the maximum is then the first lifetime.
        let step = step.max(0.0).min(last as f64);
        let below = (step as usize).min(last.saturating_sub(1));
        let (share, above) = (step - below as f64, (below + 1).min(last));
        self.std[below].iter().zip(&self.std[above]).map(|(a, b)| a + share * (b - a)).collect()
    }
}

impl Model {
    /// Finds the deviations for moves, unless the model is removed meanwhile.
    pub(crate) fn prepare_moves(&self, data: &Data, is_cancelled: &dyn Fn() -> bool) -> Result<(), Problem> {
        let (Self::Forest { deviations, .. }, Some(curve)) = (self, self.curve()) else { return Ok(()) };
        let x = rows_of(&data.held_out, &shown(&data.held_out), data.width());
        if x.is_empty() {
            return Ok(());
        }
        let mut found = Deviations { from: curve.from, to: curve.to, std: Vec::with_capacity(LIFETIMES) };
        for step in 0..LIFETIMES {
            if is_cancelled() {
                return Ok(());
            }
            let lifetime = curve.from * (curve.to / curve.from).powf(step as f64 / (LIFETIMES - 1) as f64);
            if let Said::Numbers { std, .. } = self.say(&x, data, self.lifetime(Some(lifetime))?, true)? {
                found.std.push(std);
            }
        }
        let _ = deviations.set(found);
        Ok(())
    }

    /// Deviations of every shown row for a move to this lifetime, where they are kept.
    pub(super) fn deviations_at(&self, at: Option<Lifetime>) -> Option<Vec<f64>> {
        let Self::Forest { deviations, .. } = self else { return None };
        Some(deviations.get()?.at(at?.get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_between_kept_lifetimes_are_interpolated() {
        let kept = Deviations { from: 1.0, to: 100.0, std: vec![vec![1.0, 8.0], vec![2.0, 4.0], vec![4.0, 0.0]] };
        for (lifetime, expected) in [
            (0.5, [1.0, 8.0]),
            (1.0, [1.0, 8.0]),
            (10.0_f64.sqrt(), [1.5, 6.0]),
            (10.0, [2.0, 4.0]),
            (100.0, [4.0, 0.0]),
            (f64::INFINITY, [4.0, 0.0]),
        ] {
            let found = kept.at(lifetime);
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{lifetime}: {found:?}");
        }
        let one = Deviations { from: 2.0, to: 2.0, std: vec![vec![1.0], vec![1.0]] };
        assert_eq!(one.at(2.0), [1.0]);
    }
}
