//! Simultaneous perturbation stochastic approximation in log-lifetimes (Spall 1992; report, chapter 5, "Further work").

use crate::Result;
use crate::grid::search::{Bench, Optimizer};
use crate::process::NodeKey;

/// Two evaluations per step give a descent direction in all dimensions at once.
#[derive(Debug, Clone)]
pub struct Spsa {
    key: NodeKey,
    /// ln of the lifetimes.
    logs: Option<Vec<f64>>,
    step: u32,
}

/// Gains: a_k = A0/(k + 1 + STABILITY)^0.602 and c_k = C0/(k + 1)^0.101, the exponents usual for finite runs. Errors
/// enter by their logarithm, so that the gains are dimensionless.
const A0: f64 = 6.0;
const C0: f64 = 0.4;
const STABILITY: f64 = 10.0;
/// The longest step in one logarithm.
const LONGEST: f64 = 1.0;

impl Spsa {
    /// Perturbations drawn from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { key: NodeKey::root(seed, 0).fork(0x7370_7361), logs: None, step: 0 }
    }
}

impl Optimizer for Spsa {
    fn step(&mut self, bench: &mut Bench<'_>) -> Result<bool> {
        let start = bench.state().start();
        let logs = self.logs.get_or_insert_with(|| start.iter().map(|l| l.ln()).collect());
        let k = f64::from(self.step);
        let (a, c) = (A0 / (k + 1.0 + STABILITY).powf(0.602), C0 / (k + 1.0).powf(0.101));
        let draw = |dim: usize| self.key.fork(u64::from(self.step)).draw(dim as u32).uniform();
        let signs: Vec<f64> = (0..logs.len()).map(|dim| if draw(dim) < 0.5 { 1.0 } else { -1.0 }).collect();
        let shifted =
            |by: f64| -> Vec<f64> { logs.iter().zip(&signs).map(|(log, sign)| (log + by * sign).exp()).collect() };
        let (above, below) = (bench.evaluate(&shifted(c))?, bench.evaluate(&shifted(-c))?);
        let slope = (above.max(f64::MIN_POSITIVE).ln() - below.max(f64::MIN_POSITIVE).ln()) / (2.0 * c);
        // A constant dimension starts at a lifetime of zero and stays there: ln 0 plus anything is ln 0.
        let (low, high) = (-12.0, 7.0);
        for ((log, sign), start) in logs.iter_mut().zip(&signs).zip(&start) {
            let unit = start.ln();
            *log = (*log - (a * slope * sign).clamp(-LONGEST, LONGEST)).clamp(unit + low, unit + high);
        }
        self.step += 1;
        Ok(true)
    }
}
