//! Standard deviations of a forest while the slider moves. The leave-one-out calibration at each lifetime takes too
//! long for a move, so standard deviations of the shown rows are cached at some lifetimes and interpolated between
//! them. When the slider stops, the exact ones are computed.

use mondrian::Lifetime;

use super::view::Predicted;
use super::{Model, rows_of, shown};
use crate::api::Problem;
use crate::tables::Data;

/// Number of lifetimes at which standard deviations are cached.
const LIFETIMES: usize = 25;

/// Deviations of the shown rows at some lifetimes, evenly on a logarithmic scale.
pub(crate) struct Deviations {
    from: f64,
    to: f64,
    /// By lifetime, then row.
    std: Vec<Vec<f64>>,
}

impl Deviations {
    /// Standard deviations of every shown row at a lifetime, constant beyond the ends of the scale.
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
    /// Computes the cached standard deviations, unless the model is removed meanwhile.
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
            if let Predicted::Numbers { std, .. } = self.predict(&x, data, self.lifetime(Some(lifetime))?, true)? {
                found.std.push(std);
            }
        }
        let _ = deviations.set(found);
        Ok(())
    }

    /// Interpolated standard deviations of every shown row at this lifetime, if they are cached.
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
