//! Gaussian-process optimisation in log-lifetimes by expected improvement (report, chapter 5, "Further work").
//!
//! The Gaussian process is exact, with a few hundred observations at most. Its kernel is Matérn 5/2 on log-lifetimes in
//! units of the inputs' spreads; the observations are ln error, standardised, with noise.

use crate::Result;
use crate::grid::search::{Bench, Optimizer};
use crate::linalg::{Cholesky, Matrix, Threads, dot};
use crate::process::NodeKey;

/// The box that is searched, in ln(lifetime · spread · D).
const BOX: (f64, f64) = (-7.0, 4.0);
/// Candidates per step: half anywhere in the box, half around the best.
const CANDIDATES: u32 = 512;
/// Correlation length of the observations, per √D, and the noise's share of the variance.
const LENGTH: f64 = 2.5;
const NOISE: f64 = 1e-3;

/// Models the error as a Gaussian process and evaluates the candidate of largest expected improvement.
#[derive(Debug, Clone)]
pub struct Bayes {
    key: NodeKey,
    /// Evaluated log-lifetimes, and ln error.
    tried: Vec<(Vec<f64>, f64)>,
}

impl Bayes {
    /// Candidates drawn from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { key: NodeKey::root(seed, 0).fork(0x6261_7965), tried: Vec::new() }
    }

    fn uniform(&self, candidate: u32, dim: usize) -> (f64, f64) {
        let draw = self.key.fork(self.tried.len() as u64).fork(u64::from(candidate)).draw(dim as u32);
        (draw.uniform(), draw.normal())
    }

    /// The first candidates: equal for all inputs from coarse to fine, then anywhere.
    fn opening(&self, n_dims: usize) -> Option<Vec<f64>> {
        let at = self.tried.len();
        match [0.0, -2.0, 2.0].get(at) {
            Some(&scale) => Some(vec![scale; n_dims]),
            None if at < 3 + n_dims.min(12) => {
                Some((0..n_dims).map(|dim| BOX.0 + (BOX.1 - BOX.0) * self.uniform(0, dim).0).collect())
            }
            None => None,
        }
    }

    fn candidate(&self, number: u32, n_dims: usize, best: &[f64]) -> Vec<f64> {
        let anywhere = number.is_multiple_of(2);
        // Around the best, on scales from a factor of 1.1 to one of e.
        let scale = 0.1 * 10.0_f64.powf(f64::from(number % 16) / 16.0);
        let value = |dim: usize| {
            let (uniform, normal) = self.uniform(number + 1, dim);
            if anywhere { BOX.0 + (BOX.1 - BOX.0) * uniform } else { best[dim] + scale * normal }
        };
        (0..n_dims).map(|dim| value(dim).clamp(BOX.0, BOX.1)).collect()
    }

    fn next(&self, n_dims: usize) -> Result<Vec<f64>> {
        if let Some(opening) = self.opening(n_dims) {
            return Ok(opening);
        }
        let n = self.tried.len();
        let length = LENGTH * (n_dims as f64).sqrt();
        let mean = self.tried.iter().map(|t| t.1).sum::<f64>() / n as f64;
        let spread = (self.tried.iter().map(|t| (t.1 - mean).powi(2)).sum::<f64>() / n as f64).sqrt().max(1e-12);
        let y: Vec<f64> = self.tried.iter().map(|t| (t.1 - mean) / spread).collect();
        let gram = Matrix::from_fn(n, n, |i, j| {
            matern(&self.tried[i].0, &self.tried[j].0, length) + if i == j { NOISE } else { 0.0 }
        });
        let factor = Cholesky::new(gram, Threads::ONE)?;
        let weights = factor.solve(&y)?;
        let (best, least) = self.tried.iter().zip(&y).min_by(|a, b| a.1.total_cmp(b.1)).expect("openings were tried");
        let mut chosen = (f64::NEG_INFINITY, best.0.clone());
        for number in 0..CANDIDATES {
            let point = self.candidate(number, n_dims, &best.0);
            let kernel: Vec<f64> = self.tried.iter().map(|t| matern(&t.0, &point, length)).collect();
            let expected = dot(&kernel, &weights);
            let deviation = (1.0 + NOISE - dot(&kernel, &factor.solve(&kernel)?)).max(1e-12).sqrt();
            let gain = expected_improvement(*least, expected, deviation);
            if gain > chosen.0 {
                chosen = (gain, point);
            }
        }
        Ok(chosen.1)
    }
}

impl Optimizer for Bayes {
    fn step(&mut self, bench: &mut Bench<'_>) -> Result<bool> {
        let start = bench.state().start();
        let point = self.next(start.len())?;
        let lifetimes: Vec<f64> = start.iter().zip(&point).map(|(unit, log)| unit * log.exp()).collect();
        let error = bench.evaluate(&lifetimes)?.max(f64::MIN_POSITIVE).ln();
        self.tried.push((point, error));
        Ok(true)
    }
}

fn matern(a: &[f64], b: &[f64], length: f64) -> f64 {
    let square: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
    let r = (5.0 * square).sqrt() / length;
    (1.0 + r + r * r / 3.0) * (-r).exp()
}

/// E[max(least − Y, 0)] for Y normal.
fn expected_improvement(least: f64, mean: f64, deviation: f64) -> f64 {
    let z = (least - mean) / deviation;
    let density = (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt();
    let below = 0.5 * libm::erfc(-z / std::f64::consts::SQRT_2);
    (least - mean) * below + deviation * density
}
