//! The search itself: from a common scale on few rows to all lifetimes on more.

mod coordinate;
mod descent;
mod objective;

pub use descent::{Descent, DescentLimits, descend};
pub use objective::{Criterion, Objective, Slope};

use crate::linalg::Threads;
use crate::process::NodeKey;
use crate::progress::{Progress, Step};
use crate::ridge::by_column;
use crate::select::Trajectory;
use crate::select::split::{gather, keyed_order, spreads};
use crate::{Error, Points, Result};

/// How lifetimes are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// Quasi-Newton descent along the exact derivatives.
    #[default]
    Gradient,
    /// One lifetime after the other, by fixed factors: many more evaluations, no derivatives, can leave small hollows.
    Coordinate,
}

/// What is tuned, on how many rows and how long.
///
/// | field | default | meaning |
/// | --- | --- | --- |
/// | `criterion` | leave-one-out | what is minimised |
/// | `method` | gradient | how |
/// | `rows` | 1000 | stages: rows used, growing; each starts where the last ended |
/// | `evaluations` | 60 | most evaluations per stage |
/// | `least_gain` | 1e-4 | a stage ends when a step gains less, in ln error |
/// | `restart` | true | later stages also descend from the common scale, and the better end counts |
/// | `lifetimes` | none | fixes the lifetimes, so that only α is tuned |
/// | `alpha` | none | fixes α |
/// | `start` | none | lifetimes and α to start from, such as the last ones of a stopped search |
/// | `fit_intercept` | true | targets are centred |
/// | `seed` | 0 | which rows |
/// | `threads` | one | for the factorisations |
#[derive(Debug, Clone, PartialEq)]
pub struct TuningParams {
    /// What is minimised.
    pub criterion: Criterion,
    /// How.
    pub method: Method,
    /// Rows used, stage by stage.
    pub rows: Vec<usize>,
    /// Most evaluations per stage.
    pub evaluations: usize,
    /// A stage ends when a step gains less, in ln error.
    pub least_gain: f64,
    /// Whether later stages also descend from the common scale: few rows of a heavy-tailed target can lead astray.
    pub restart: bool,
    /// Fixes the lifetimes.
    pub lifetimes: Option<Vec<f64>>,
    /// Fixes α.
    pub alpha: Option<f64>,
    /// Lifetimes and α to start from.
    pub start: Option<(Vec<f64>, f64)>,
    /// Whether targets are centred.
    pub fit_intercept: bool,
    /// Which rows.
    pub seed: u64,
    /// For the factorisations.
    pub threads: Threads,
}

impl Default for TuningParams {
    fn default() -> Self {
        Self {
            criterion: Criterion::default(),
            method: Method::default(),
            rows: vec![1000],
            evaluations: 60,
            least_gain: 1e-4,
            restart: true,
            lifetimes: None,
            alpha: None,
            start: None,
            fit_intercept: true,
            seed: 0,
            threads: Threads::ONE,
        }
    }
}

/// What tuning found.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuned {
    /// One lifetime per dimension; zero where the input does not help.
    pub lifetimes: Vec<f64>,
    /// α.
    pub alpha: f64,
    /// Every evaluation.
    pub trajectory: Trajectory,
    /// False if the progress callback stopped it; then the values are the best so far.
    pub finished: bool,
}

/// Lifetimes are searched within e^±… of one over the input's spread, α within these powers of e.
const LIFETIME_RANGE: (f64, f64) = (-12.0, 7.0);
const ALPHA_RANGE: (f64, f64) = (-16.0, 6.0);
/// A descent's longest step in any logarithm: a factor of four and a half.
const LONGEST_STEP: f64 = 1.5;
/// Setting lifetimes to zero may cost this much in ln error, over √n: a small part of its sampling error of 0.7/√n.
const PRUNING_PRICE: f64 = 0.02;

/// Finds lifetimes and α for exact Laplace ridge on these rows, reporting every evaluation to `progress`, which may stop
/// it. `targets` is row-major, with the same number of targets for every row; their squared errors are added.
///
/// The order: on the first stage's rows, one common factor on all lifetimes, and α; then all lifetimes and α,
/// stage by stage; last, as many of the smallest lifetimes as cost next to nothing are set to zero.
///
/// # Errors
/// [`Error::LengthMismatch`], [`Error::InvalidParameter`] for fixed or starting values out of range, and
/// [`Error::NotPositiveDefinite`] if a fixed α is too small.
pub fn tune(points: Points<'_>, targets: &[f64], params: &TuningParams, progress: &mut Progress<'_>) -> Result<Tuned> {
    params.check(points, targets)?;
    let order = keyed_order(points, NodeKey::root(params.seed, 0).fork(0x7475_6E65));
    let mut search = Search::new(points, params, progress.part(0.0, 1.0));
    let mut logs = search.start();
    let mut common = logs.clone();
    let n = points.n_rows();
    let mut last_rows = 0;
    for (stage, &rows) in params.rows.iter().enumerate() {
        let rows = rows.clamp(2, n.max(2));
        if n < 2 || rows <= last_rows {
            break;
        }
        last_rows = rows;
        let (x, y) = gather(search.points, targets, &order[..rows]);
        let objective = search.objective(&x, &y)?;
        if stage == 0 && params.start.is_none() && params.lifetimes.is_none() {
            logs = search.common_scale(&objective, &logs)?;
        }
        if stage == 0 {
            common.clone_from(&logs);
        }
        logs = match params.method {
            Method::Gradient if stage > 0 && params.restart => search.descend_from_both(&objective, &logs, &common)?,
            Method::Gradient => search.descend(&objective, &logs)?.0,
            Method::Coordinate => search.sweep(&objective, &logs)?,
        };
        let last = stage + 1 == params.rows.len() || rows == n;
        if last && params.lifetimes.is_none() {
            logs = search.prune(&objective, &logs)?;
        }
        if search.stopped {
            break;
        }
    }
    let (lifetimes, alpha) = search.configuration(&logs);
    Ok(Tuned { lifetimes, alpha, trajectory: search.trajectory, finished: !search.stopped })
}

impl TuningParams {
    fn check(&self, points: Points<'_>, targets: &[f64]) -> Result<()> {
        by_column(points.n_rows(), targets)?;
        let started = self.start.as_ref();
        for lifetimes in self.lifetimes.iter().chain(started.map(|(lifetimes, _)| lifetimes)) {
            points.check_width(lifetimes.len())?;
            if let Some(&value) = lifetimes.iter().find(|&&l| !(l >= 0.0 && l.is_finite())) {
                return Err(Error::InvalidParameter { name: "lifetime", value, expected: "a finite number ≥ 0" });
            }
        }
        for &value in self.alpha.iter().chain(started.map(|(_, alpha)| alpha)) {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Error::InvalidParameter { name: "alpha", value, expected: "a finite number > 0" });
            }
        }
        Ok(())
    }
}

/// The state of one call of [`tune`]. Parameters are ln(λ_d·spread_d) for the inputs that vary, then ln α.
struct Search<'a> {
    points: Points<'a>,
    params: &'a TuningParams,
    progress: Progress<'a>,
    spreads: Vec<f64>,
    /// The inputs that vary and are not fixed at zero.
    active: Vec<usize>,
    lower: Vec<f64>,
    upper: Vec<f64>,
    trajectory: Trajectory,
    cost: f64,
    stopped: bool,
}

impl<'a> Search<'a> {
    fn new(points: Points<'a>, params: &'a TuningParams, progress: Progress<'a>) -> Self {
        let spreads = spreads(points);
        let fixed_at_zero = |d: usize| params.lifetimes.as_ref().is_some_and(|l| l[d] == 0.0);
        let active: Vec<usize> = (0..spreads.len()).filter(|&d| spreads[d] > 0.0 && !fixed_at_zero(d)).collect();
        let bounds = |range: (f64, f64), fixed: Option<f64>| fixed.map_or(range, |x| (x, x));
        let (lower, upper) = active
            .iter()
            .map(|&d| bounds(LIFETIME_RANGE, params.lifetimes.as_ref().map(|l| (l[d] * spreads[d]).ln())))
            .chain([bounds(ALPHA_RANGE, params.alpha.map(f64::ln))])
            .unzip();
        let trajectory = Trajectory::default();
        Self { points, params, progress, spreads, active, lower, upper, trajectory, cost: 0.0, stopped: false }
    }

    /// Where the search starts: all inputs alike, one together over a typical distance.
    fn start(&self) -> Vec<f64> {
        let equal = -(self.active.len().max(1) as f64).ln();
        let mut logs: Vec<f64> = match &self.params.start {
            Some((lifetimes, alpha)) => {
                let log = |&d: &usize| (lifetimes[d] * self.spreads[d]).ln();
                self.active.iter().map(log).chain([alpha.ln()]).collect()
            }
            None => self.active.iter().map(|_| equal).chain([-2.0]).collect(),
        };
        for (i, log) in logs.iter_mut().enumerate() {
            *log = log.clamp(self.lower[i], self.upper[i]);
        }
        logs
    }

    /// An objective in units of the spreads.
    fn objective(&self, x: &[f64], y: &[f64]) -> Result<Objective> {
        let width = self.points.n_columns();
        let scaled: Vec<f64> =
            x.chunks_exact(width).flat_map(|row| self.active.iter().map(|&d| row[d] / self.spreads[d])).collect();
        let TuningParams { criterion, threads, fit_intercept, .. } = *self.params;
        if self.active.is_empty() {
            // Nothing varies: the kernel is constant and only α is left. A column of zeros says so.
            let zeros = vec![0.0; x.len() / width];
            return Objective::new(Points::row_major(&zeros, 1)?, y, fit_intercept, criterion, threads);
        }
        Objective::new(Points::row_major(&scaled, self.active.len())?, y, fit_intercept, criterion, threads)
    }

    fn configuration(&self, logs: &[f64]) -> (Vec<f64>, f64) {
        let mut lifetimes = vec![0.0; self.spreads.len()];
        for (&d, log) in self.active.iter().zip(logs) {
            lifetimes[d] = log.exp() / self.spreads[d];
        }
        // Fixed values come back as they were given, not as the exponential of their logarithm.
        let lifetimes = self.params.lifetimes.clone().unwrap_or(lifetimes);
        (lifetimes, self.params.alpha.unwrap_or_else(|| logs[logs.len() - 1].exp()))
    }

    fn padded(&self, logs: &[f64]) -> Vec<f64> {
        if self.active.is_empty() { vec![f64::NEG_INFINITY, logs[0]] } else { logs.to_vec() }
    }

    fn record(&mut self, objective: &Objective, logs: &[f64], value: f64) {
        self.cost += objective.cost();
        let (lifetimes, alpha) = self.configuration(logs);
        let step = Step { lifetimes, alpha, error: value.exp(), cost: self.cost, rows: objective.n_rows() };
        // How many evaluations are still to come is not known: each step is a smaller share of what is left.
        let n_steps = self.trajectory.len() as f64;
        self.stopped |= self.progress.step(n_steps / (n_steps + 30.0), &step).is_err();
        self.trajectory.push(step);
    }

    fn value(&mut self, objective: &Objective, logs: &[f64]) -> Result<Option<f64>> {
        if self.stopped {
            return Ok(None);
        }
        let value = match objective.value(&self.padded(logs)) {
            Err(Error::NotPositiveDefinite { .. }) => f64::INFINITY,
            other => other?,
        };
        self.record(objective, logs, value);
        Ok(Some(value))
    }

    fn slope(&mut self, objective: &Objective, logs: &[f64]) -> Result<Slope> {
        if self.stopped {
            // A value that no line search accepts, so that the descent ends where it is.
            return Err(Error::Cancelled);
        }
        let mut slope = objective.slope(&self.padded(logs))?;
        if self.active.is_empty() {
            slope.gradient.remove(0);
        }
        self.record(objective, logs, slope.value);
        Ok(slope)
    }

    /// Runs a descent; stopped in the middle it gives the best point so far.
    fn run(
        &mut self,
        objective: &Objective,
        expand: impl Fn(&[f64]) -> Vec<f64>,
        contract: impl Fn(Slope) -> Slope,
        start: &[f64],
        bounds: (&[f64], &[f64]),
        limits: DescentLimits,
    ) -> Result<(Vec<f64>, f64)> {
        let mut best = (f64::INFINITY, start.to_vec());
        let found = descend(
            |point| {
                let slope = self.slope(objective, &expand(point))?;
                if slope.value < best.0 {
                    best = (slope.value, point.to_vec());
                }
                Ok(contract(slope))
            },
            start,
            bounds.0,
            bounds.1,
            limits,
        );
        match found {
            Ok(found) => Ok((found.point, found.slope.value)),
            Err(Error::Cancelled) => Ok((best.1, best.0)),
            Err(error) => Err(error),
        }
    }

    fn common_scale(&mut self, objective: &Objective, logs: &[f64]) -> Result<Vec<f64>> {
        let last = logs.len() - 1;
        let expand = |point: &[f64]| -> Vec<f64> {
            logs.iter().enumerate().map(|(i, log)| if i == last { point[1] } else { log + point[0] }).collect()
        };
        let contract = |slope: Slope| Slope {
            value: slope.value,
            gradient: vec![slope.gradient[..last].iter().sum(), slope.gradient[last]],
        };
        let alpha = (self.lower[last], self.upper[last]);
        let limits = DescentLimits { evaluations: 15, least_gain: 1e-3, longest_step: LONGEST_STEP };
        let (point, _) =
            self.run(objective, expand, contract, &[0.0, logs[last]], (&[-6.0, alpha.0], &[6.0, alpha.1]), limits)?;
        Ok(expand(&point))
    }

    /// Descends from two points and takes the better end.
    fn descend_from_both(&mut self, objective: &Objective, one: &[f64], other: &[f64]) -> Result<Vec<f64>> {
        let first = self.descend(objective, one)?;
        let second = self.descend(objective, other)?;
        Ok(if second.1 < first.1 { second.0 } else { first.0 })
    }

    /// Where the descent ends, with its value.
    fn descend(&mut self, objective: &Objective, logs: &[f64]) -> Result<(Vec<f64>, f64)> {
        let TuningParams { evaluations, least_gain, .. } = *self.params;
        let limits = DescentLimits { evaluations, least_gain, longest_step: LONGEST_STEP };
        let (lower, upper) = (self.lower.clone(), self.upper.clone());
        self.run(objective, <[f64]>::to_vec, |slope| slope, logs, (&lower, &upper), limits)
    }

    fn sweep(&mut self, objective: &Objective, logs: &[f64]) -> Result<Vec<f64>> {
        let (lower, upper, evaluations) = (self.lower.clone(), self.upper.clone(), self.params.evaluations);
        coordinate::sweep(|logs| self.value(objective, logs), logs, &lower, &upper, evaluations)
    }

    /// Sets the most of the smallest lifetimes to zero that cost at most [`PRUNING_PRICE`]: by halving, as the price
    /// grows with their number.
    fn prune(&mut self, objective: &Objective, logs: &[f64]) -> Result<Vec<f64>> {
        let last = logs.len() - 1;
        let mut ascending: Vec<usize> = (0..last).collect();
        ascending.sort_by(|&a, &b| logs[a].total_cmp(&logs[b]));
        let with_zeros = |count: usize| {
            let mut pruned = logs.to_vec();
            ascending[..count].iter().for_each(|&i| pruned[i] = f64::NEG_INFINITY);
            pruned
        };
        let Some(whole) = self.value(objective, logs)? else { return Ok(logs.to_vec()) };
        let price = PRUNING_PRICE / (objective.n_rows() as f64).sqrt();
        let (mut affordable, mut too_many) = (0, last + 1);
        while too_many - affordable > 1 {
            let count = affordable.midpoint(too_many);
            match self.value(objective, &with_zeros(count))? {
                Some(value) if value <= whole + price => affordable = count,
                Some(_) => too_many = count,
                None => break,
            }
        }
        Ok(with_zeros(affordable))
    }
}
