//! Drift control: how far an updated factorisation may drift before it is computed anew.
//!
//! A freshly computed inverse of an n × n matrix A satisfies ‖AP − I‖ ≲ n·ε·cond(A). Updates add rounding to it,
//! and a downdate that nearly loses positive definiteness multiplies what is there. So now and then ‖(AP − I)v‖ is
//! measured for random ±1 vectors v, whose mean square is ‖AP − I‖²_F, at O(n²); when it exceeds n·ε·cond(A) the
//! factorisation is computed anew. cond(A) is estimated from below by power steps on A and on P, so the
//! bound is never too generous.

use crate::linalg::symmetric::norm_two;
use crate::process::NodeKey;

/// What drift control has seen.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Drift {
    /// How often the residual was measured.
    pub checks: usize,
    /// How often the factorisation was computed anew.
    pub refreshes: usize,
    /// The last measured ‖AP − I‖ in the Frobenius norm, by random vectors.
    pub residual: f64,
    /// n·ε·cond(A) at that time, the value it was compared with.
    pub bound: f64,
}

/// Decides when to check.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watch {
    drift: Drift,
    since: usize,
    weakest: f64,
}

/// A pivot below this makes the next check immediate: it multiplies the errors in P by its inverse.
const WEAK_PIVOT: f64 = 0.05;

impl Watch {
    pub(crate) fn drift(&self) -> Drift {
        self.drift
    }

    /// Notes an update whose pivot (the factor by which it changes the determinant) was `pivot`; true when it is time
    /// to check.
    pub(crate) fn note(&mut self, pivot: f64, n: usize) -> bool {
        self.since += 1;
        self.weakest = if self.since == 1 { pivot } else { self.weakest.min(pivot) };
        self.weakest < WEAK_PIVOT || self.since >= (n / 2).clamp(4, 32)
    }

    /// Measures and records; true when the factorisation should be computed anew.
    pub(crate) fn exceeded(&mut self, n: usize, cond: f64, residual: impl FnMut(&[f64], &mut [f64])) -> bool {
        self.since = 0;
        self.drift.checks += 1;
        self.drift.residual = probe(n, self.drift.checks as u64, residual);
        self.drift.bound = n as f64 * f64::EPSILON * cond;
        // Written so that NaN counts as exceeded.
        !(self.drift.residual <= self.drift.bound)
    }

    pub(crate) fn refreshed(&mut self) {
        self.since = 0;
        self.drift.refreshes += 1;
    }
}

/// The Frobenius norm of a matrix given by its products with vectors, from two random ±1 vectors.
pub(crate) fn probe(n: usize, round: u64, mut multiply: impl FnMut(&[f64], &mut [f64])) -> f64 {
    const PROBES: u32 = 2;
    let mut image = vec![0.0; n];
    let squares: f64 = (0..PROBES)
        .map(|p| {
            let signs = random_signs(n, round, p);
            multiply(&signs, &mut image);
            norm_two(&image).powi(2)
        })
        .sum();
    (squares / f64::from(PROBES)).sqrt()
}

fn random_signs(n: usize, round: u64, purpose: u32) -> Vec<f64> {
    let key = NodeKey::root(0x4472_6966_7400, round);
    let sign = |bits: u128, k: usize| if bits >> (k % 128) & 1 == 1 { 1.0 } else { -1.0 };
    let mut bits = 0;
    (0..n)
        .map(|k| {
            if k % 128 == 0 {
                bits = key.fork((k / 128) as u64).draw(purpose).to_bits();
            }
            sign(bits, k)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_finds_the_frobenius_norm() {
        // A diagonal matrix gives it exactly for every sign vector.
        let scale =
            |x: &[f64], out: &mut [f64]| out.iter_mut().zip(x).enumerate().for_each(|(k, (o, x))| *o = k as f64 * x);
        let exact = (0..200).map(|k| f64::from(k * k)).sum::<f64>().sqrt();
        assert!((probe(200, 1, scale) - exact).abs() < 1e-9);
        let signs = random_signs(1000, 3, 0);
        let sum: f64 = signs.iter().sum();
        // Standard deviation √1000 ≈ 32: five of them.
        assert!(sum.abs() < 160.0 && signs.iter().all(|s| s.abs() == 1.0));
    }
}
