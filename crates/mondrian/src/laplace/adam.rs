//! Adam on fresh rows at every step (docs/design.md, "Fresh rows at every step").

use crate::parallel::prelude::*;

use crate::laplace::Slope;
use crate::laplace::objective::{Batch, Loss, rough_slope};
use crate::laplace::values::{Layout, Metric};
use crate::linalg::Threads;
use crate::process::NodeKey;
use crate::{Error, Result};

/// Rates of steps on logarithms, on R and on logit(p/2). The way from p = 1 to near 2, where smooth targets are, is 3: 80 steps
/// end before it does (kin8nm: p = 1.5).
const RATE: f64 = 0.22;
const ROTATION_RATE: f64 = 0.05;
const EXPONENT_RATE: f64 = 0.05;
const FIRST: f64 = 0.9;
const SECOND: f64 = 0.98;
/// Bounds of ln α and logit(p/2).
const ALPHA_RANGE: (f64, f64) = (-18.0, 5.0);
const EXPONENT_RANGE: (f64, f64) = (-1.5, 3.0);

/// How long a run is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schedule {
    pub(crate) steps: usize,
    pub(crate) rows: usize,
    pub(crate) pace: Pace,
}

/// Factors on the rates of steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// On logarithms.
    pub(crate) logarithms: f64,
    /// On R.
    pub(crate) rotation: f64,
    /// On logit(p/2).
    pub(crate) exponent: f64,
}

impl Pace {
    /// One factor on all of them.
    pub(crate) const fn of_all(factor: f64) -> Self {
        Self { logarithms: factor, rotation: factor, exponent: factor }
    }
}

/// Rows of each step: keyed orders of all rows, one after the other, without replacement within an order.
pub(crate) struct Pool {
    key: NodeKey,
    n_rows: usize,
    order: Vec<usize>,
    round: u64,
}

impl Pool {
    pub(crate) fn new(key: NodeKey, n_rows: usize) -> Self {
        Self { key, n_rows, order: Vec::new(), round: 0 }
    }

    /// The next `count` rows, ascending, each once.
    pub(crate) fn next(&mut self, count: usize) -> Vec<usize> {
        let count = count.min(self.n_rows);
        while self.order.len() < count {
            let key = self.key.fork(self.round);
            let mut keyed: Vec<(NodeKey, usize)> = (0..self.n_rows).map(|i| (key.fork(i as u64), i)).collect();
            keyed.sort_unstable();
            self.order.extend(keyed.into_iter().map(|(_, i)| i));
            self.round += 1;
        }
        let mut rows: Vec<usize> = self.order.drain(..count).collect();
        rows.sort_unstable();
        rows.dedup();
        rows
    }
}

/// One run: parameters, their moments and their mean over the last half of the steps.
pub(crate) struct Chain {
    pub(crate) layout: Layout,
    pub(crate) theta: Vec<f64>,
    first: Vec<f64>,
    second: Vec<f64>,
    sum: Vec<f64>,
    n_summed: usize,
    /// Whether it goes on: a run that falls behind another ends half-way.
    pub(crate) is_active: bool,
    values: Vec<f64>,
}

impl Chain {
    pub(crate) fn new(layout: Layout, theta: Vec<f64>) -> Self {
        let zeros = vec![0.0; theta.len()];
        Self {
            layout,
            first: zeros.clone(),
            second: zeros.clone(),
            sum: zeros,
            n_summed: 0,
            is_active: true,
            values: Vec::new(),
            theta,
        }
    }

    /// The mean of the last half of the steps; where it stands, if there were none.
    pub(crate) fn mean(&self) -> Vec<f64> {
        if self.n_summed == 0 {
            return self.theta.clone();
        }
        self.sum.iter().map(|s| s / self.n_summed as f64).collect()
    }

    /// Step `step` of `schedule`, counted from 1. `n_rows` is the number of all rows: the prior counts once for them.
    pub(crate) fn advance(&mut self, step: usize, schedule: Schedule, mut gradient: Vec<f64>, n_rows: usize) {
        let layout = &self.layout;
        pull(layout, &self.theta, n_rows as f64, &mut gradient);
        let mut squares: Vec<f64> = gradient.iter().map(|g| g * g).collect();
        let rotation = layout.rotation();
        if !rotation.is_empty() {
            let mean = squares[rotation.clone()].iter().sum::<f64>() / rotation.len() as f64;
            squares[rotation.clone()].fill(mean);
        }
        let decay = (2.0 * (1.0 - step as f64 / (schedule.steps + 1) as f64)).min(1.0);
        let (one, two) = (1.0 - FIRST.powi(step as i32), 1.0 - SECOND.powi(step as i32));
        for (at, (g, square)) in gradient.into_iter().zip(squares).enumerate() {
            self.first[at] = FIRST * self.first[at] + (1.0 - FIRST) * g;
            self.second[at] = SECOND * self.second[at] + (1.0 - SECOND) * square;
            let rate = if rotation.contains(&at) {
                schedule.pace.rotation * ROTATION_RATE
            } else if at == layout.exponent_at() {
                schedule.pace.exponent * EXPONENT_RATE
            } else {
                schedule.pace.logarithms * RATE
            };
            self.theta[at] -= rate * decay * (self.first[at] / one) / ((self.second[at] / two).sqrt() + 1e-5);
        }
        let (exponent, alpha) = (layout.exponent_at(), layout.alpha_at());
        if layout.alpha.is_none() {
            self.theta[alpha] = self.theta[alpha].clamp(ALPHA_RANGE.0, ALPHA_RANGE.1);
        }
        if layout.exponent.is_none() {
            self.theta[exponent] = self.theta[exponent].clamp(EXPONENT_RANGE.0, EXPONENT_RANGE.1);
        }
        if 2 * step > schedule.steps {
            self.sum.iter_mut().zip(&self.theta).for_each(|(s, t)| *s += t);
            self.n_summed += 1;
        }
    }
}

/// Adds the slope of the prior, per row: R around its centre with variance 1/D, logarithms around their mean with variance 1.
pub(crate) fn pull(layout: &Layout, theta: &[f64], n_rows: f64, gradient: &mut [f64]) {
    if layout.metric == Metric::None {
        return;
    }
    for range in [layout.axes(), layout.scales()] {
        let mean = theta[range.clone()].iter().sum::<f64>() / range.len().max(1) as f64;
        for at in range {
            gradient[at] += (theta[at] - mean) / n_rows;
        }
    }
    for (k, at) in layout.rotation().enumerate() {
        gradient[at] += (theta[at] - layout.rotation_centre(k)) * layout.n_linear as f64 / n_rows;
    }
}

/// Told layout, parameters, value and rows of a step; says whether to go on.
pub(crate) type Told<'a> = dyn FnMut(&Layout, &[f64], f64, usize) -> Result<bool> + 'a;

/// Runs chains side by side on the same rows of `batch`, telling the value of each step of each chain to `told`, which may
/// stop it.
pub(crate) fn run(
    chains: &mut [Chain],
    batch: &Batch,
    loss: Loss,
    schedule: Schedule,
    key: NodeKey,
    threads: Threads,
    told: &mut Told<'_>,
) -> Result<()> {
    let n = batch.n_rows();
    let mut pool = Pool::new(key, n);
    for step in 1..=schedule.steps {
        let rows = pool.next(schedule.rows);
        let fresh = batch.select(&rows);
        let mut active: Vec<&mut Chain> = chains.iter_mut().filter(|chain| chain.is_active).collect();
        // Runs side by side on one thread each, or one run on all of them.
        let slopes: Vec<Result<Slope>> = if threads == Threads::ONE || active.len() == 1 {
            active.iter().map(|chain| rough_slope(&chain.layout, &chain.theta, &fresh, loss, threads)).collect()
        } else {
            let evaluate = |chain: &&mut Chain| rough_slope(&chain.layout, &chain.theta, &fresh, loss, Threads::ONE);
            active.par_iter().map(evaluate).collect()
        };
        let mut goes_on = true;
        for (chain, slope) in active.iter_mut().zip(slopes) {
            match slope {
                Ok(Slope { value, gradient }) if gradient.iter().all(|g| g.is_finite()) => {
                    goes_on &= told(&chain.layout, &chain.theta, value, rows.len())?;
                    chain.values.push(value);
                    chain.advance(step, schedule, gradient, n);
                }
                // Too small an α for these rows.
                Ok(_) | Err(Error::NotPositiveDefinite { .. }) => {
                    let at = chain.layout.alpha_at();
                    if let Some(alpha) = chain.layout.alpha {
                        return Err(Error::InvalidParameter { name: "alpha", value: alpha, expected: "larger" });
                    }
                    chain.theta[at] += 0.5;
                    chain.values.push(f64::NAN);
                }
                Err(error) => return Err(error),
            }
        }
        if !goes_on {
            break;
        }
        if 2 * step == schedule.steps {
            drop_those_behind(chains);
        }
    }
    Ok(())
}

/// Steps that runs are compared on half-way.
const COMPARED: usize = 20;
/// Standard errors of the difference by which a run must be behind to end. Runs that are nearer than that go on, and are
/// compared by leave-one-out at the end: which is better on the rows of a step need not be on many (cpu_act: 1 % more error by
/// ending runs that were one standard error behind).
const BEHIND: f64 = 3.0;

/// Ends runs whose values on the last steps, which saw the same rows, are worse than those of the best.
fn drop_those_behind(chains: &mut [Chain]) {
    let last: Vec<Vec<f64>> =
        chains.iter().map(|chain| chain.values[chain.values.len().saturating_sub(COMPARED)..].to_vec()).collect();
    if last.iter().any(|values| values.len() < COMPARED || values.iter().any(|v| !v.is_finite())) {
        return;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let best = (1..last.len()).fold(0, |best, k| if mean(&last[k]) < mean(&last[best]) { k } else { best });
    for (chain, values) in chains.iter_mut().zip(&last) {
        let behind: Vec<f64> = values.iter().zip(&last[best]).map(|(a, b)| a - b).collect();
        let off = mean(&behind);
        let variance = behind.iter().map(|d| (d - off).powi(2)).sum::<f64>() / (COMPARED * (COMPARED - 1)) as f64;
        chain.is_active = !(off > BEHIND * variance.sqrt());
    }
}
