//! The search for a whole kernel: Adam on fresh rows from each of the [starts](super::starts), and a choice by leave-one-out.

use std::time::{Duration, Instant};

use crate::parallel::prelude::*;

use crate::laplace::adam::{self, Chain, Pace, Schedule};
use crate::laplace::columns::{Columned, Columns, Measure, Units};
use crate::laplace::large::{LargeOptions, SolverChoice};
use crate::laplace::model::KernelModel;
use crate::laplace::neighbor_tuning::{NeighborSchedule, tune_by_neighbors};
use crate::laplace::objective::{Batch, Loss, slope};
use crate::laplace::starts::{Rough, Start, judged};
use crate::laplace::values::{Layout, Metric, Values};
use crate::laplace::{Cells, DescentLimits, descend};
use crate::linalg::{Matrix, Threads};
use crate::memory;
use crate::process::NodeKey;
use crate::progress::{Progress, Step};
use crate::select::Trajectory;
use crate::{Error, Result};

/// How a kernel is tuned.
///
/// | field | default | meaning |
/// | --- | --- | --- |
/// | `measure` | auto | under which measure continuous inputs are cut |
/// | `metric` | auto | the form of A |
/// | `exponent` | tuned | p, 1 for the Mondrian family |
/// | `alpha` | tuned | α |
/// | `lifetimes` | tuned | one per input in its own units: then x alone, no metric, and only α is tuned |
/// | `steps` | 120 | steps of Adam |
/// | `rows` | 1000 | fresh rows per step |
/// | `deciding_rows` | 4000 | rows on which the ends of the runs are compared by leave-one-out |
/// | `fit_intercept` | true | targets are centred |
/// | `seed` | 0 | which rows |
/// | `threads` | one | runs side by side, and the factorisation of all rows; results do not depend on it |
/// | `max_seconds` | none | when steps end early; the one thing that makes results depend on the machine |
/// | `solver` | auto | how all rows are solved; see [`SolverChoice`] |
/// | `max_exact_rows` | 20 000 | the most rows that an automatic solver factorises, if their matrix fits the memory |
/// | `n_neighbors` | chosen | rows that a query is predicted from by nearest rows |
#[derive(Debug, Clone, PartialEq)]
pub struct KernelTuning {
    /// Under which measure continuous inputs are cut.
    pub measure: Measure,
    /// The form of A.
    pub metric: Metric,
    /// p, or `None` for tuned.
    pub exponent: Option<f64>,
    /// α, or `None` for tuned.
    pub alpha: Option<f64>,
    /// Fixed lifetimes, one per input.
    pub lifetimes: Option<Vec<f64>>,
    /// Steps of Adam.
    pub steps: usize,
    /// Fresh rows per step.
    pub rows: usize,
    /// Rows on which the ends of the runs are compared.
    pub deciding_rows: usize,
    /// Whether targets are centred.
    pub fit_intercept: bool,
    /// Which rows.
    pub seed: u64,
    /// Threads.
    pub threads: Threads,
    /// When steps end early.
    pub max_seconds: Option<f64>,
    /// How all rows are solved.
    pub solver: SolverChoice,
    /// The most rows that an automatic solver factorises.
    pub max_exact_rows: usize,
    /// Rows that a query is predicted from by nearest rows, or `None` for chosen.
    pub n_neighbors: Option<usize>,
}

impl Default for KernelTuning {
    fn default() -> Self {
        Self {
            measure: Measure::Auto,
            metric: Metric::Auto,
            exponent: None,
            alpha: None,
            lifetimes: None,
            steps: 120,
            rows: 1000,
            deciding_rows: 4000,
            fit_intercept: true,
            seed: 0,
            threads: Threads::ONE,
            max_seconds: None,
            solver: SolverChoice::Auto,
            max_exact_rows: 20_000,
            n_neighbors: None,
        }
    }
}

impl KernelTuning {
    /// Whether so many rows are solved by one factorisation.
    pub(crate) fn is_exact(&self, n_rows: usize) -> bool {
        let fits = n_rows <= self.max_exact_rows && memory::bytes_of(n_rows, n_rows) <= memory::limit();
        match self.solver {
            SolverChoice::Exact => true,
            SolverChoice::Auto => fits,
            SolverChoice::Cg | SolverChoice::Local => false,
        }
    }

    /// Whether tuning goes on by predicting rows from their neighbours among all rows.
    fn is_by_neighbors(&self, n_rows: usize) -> bool {
        !self.is_exact(n_rows)
            && n_rows > if self.solver == SolverChoice::Local { self.rows } else { self.max_exact_rows }
    }

    pub(crate) fn large_options(&self, loss: Loss) -> LargeOptions {
        let Self { solver: choice, fit_intercept: is_centred, n_neighbors, seed, threads, .. } = *self;
        LargeOptions { choice, is_centred, n_neighbors, loss, seed, threads }
    }
}

/// Up to this many rows the quasi-Newton point of the axes alone is a candidate too: below about 1500 a metric ties with it.
pub(super) const FEW_ROWS: usize = 2000;
/// Rows that a start is found on, and the axes alone.
pub(super) const START_ROWS: usize = 1000;
/// Last steps, on more rows, where there are more than twice as many rows as in a step: so many, and one per input of a full metric,
/// up to a limit of time.
const LAST_STEPS: usize = 10;
const MOST_LAST_STEPS: usize = 20;
/// Their pace. The exponent that is best for more rows may be far from that of the first steps (cpu_act: 1.0 instead of 1.2), and
/// the many numbers of R collect the noise of steps: at the same pace as the others they cost 0.3 % of cpu_act's error.
const LAST_PACE: Pace = Pace { logarithms: 0.6, rotation: 0.2, exponent: 2.4 };
/// Their pace below five times as many rows as in a step, which see each row too often for more (satimage: 2 % more log loss).
const SLOW_LAST_PACE: Pace = Pace::of_all(0.4);
/// The pace on few rows, which faster steps learn by heart (the tour's 480 rows: 4 % more error).
const FEW_ROWS_PACE: f64 = 0.68;
/// How often steps beyond the first two thirds may look at each row: on dna's 2000 rows 80 looks lowered the error of rows left out and
/// raised that of others.
const LOOKS: usize = 40;
/// The pace of steps from a kernel that was tuned before.
const RESUMED_PACE: f64 = 0.5;

/// Points that were tried, with their losses.
pub(super) type Told = Vec<(Vec<f64>, f64)>;

/// A tuned kernel.
pub(crate) struct TunedKernel {
    pub(crate) columns: Columns,
    pub(crate) values: Values,
}

/// Everything a search looks at. Rows are in their keyed order, so that the first so many are a sample.
pub(crate) struct Search<'a, 'p> {
    pub(super) params: &'a KernelTuning,
    pub(super) cells: Cells<'a>,
    categorical: &'a [bool],
    weights: Vec<f64>,
    pub(super) loss: Loss,
    /// What errors of steps are multiplied with to be in the units of the target.
    pub(crate) scale: f64,
    pub(super) key: NodeKey,
    progress: Progress<'p>,
    pub(crate) trajectory: Trajectory,
    cost: f64,
    deadline: Option<Instant>,
    /// Whether a kernel that was tuned before is gone on from.
    is_resumed: bool,
}

impl<'a, 'p> Search<'a, 'p> {
    pub(crate) fn new(
        params: &'a KernelTuning,
        cells: Cells<'a>,
        categorical: &'a [bool],
        weights: Vec<f64>,
        loss: Loss,
        progress: Progress<'p>,
    ) -> Result<Self> {
        if let Some(value) = params.max_seconds.filter(|s| !(*s >= 0.0)) {
            return Err(Error::InvalidParameter { name: "max_seconds", value, expected: "at least 0" });
        }
        if let Some(lifetimes) = &params.lifetimes {
            cells.check_width(lifetimes.len())?;
            if let Some(&value) = lifetimes.iter().find(|l| !(**l >= 0.0 && l.is_finite())) {
                return Err(Error::InvalidParameter { name: "lifetime", value, expected: "a finite number ≥ 0" });
            }
        }
        memory::check("bytes of the rows in the kernel's coordinates", bytes_of_rows(cells))?;
        let deadline = params.max_seconds.map(|s| Instant::now() + Duration::from_secs_f64(s.min(1e9)));
        Ok(Self {
            params,
            cells,
            categorical,
            weights,
            loss,
            scale: 1.0,
            key: NodeKey::root(params.seed, 0).fork(0x6164_616D),
            progress,
            trajectory: Trajectory::default(),
            cost: 0.0,
            deadline,
            is_resumed: false,
        })
    }

    /// Goes on from a tuned kernel: its columns, its form of the metric and its trajectory.
    pub(crate) fn resume(&mut self, model: &KernelModel) -> Result<Rough> {
        let KernelModel { columns, values, trajectory, .. } = model;
        let columned = columns.apply(self.cells)?;
        let KernelTuning { exponent, alpha, .. } = *self.params;
        let (layout, theta) = Layout::of(values, columns.metric_inputs().len(), exponent, alpha);
        layout.check()?;
        self.is_resumed = true;
        self.trajectory = trajectory.clone();
        self.cost = trajectory.cost();
        let values = layout.values(&theta);
        let starts = vec![Start { units: Units::Each, layout, theta, value: 0.0 }];
        Ok(Rough { columns: columns.clone(), columned, values, starts })
    }

    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    pub(super) fn columned(&self, units: Units) -> Result<(Columns, Columned)> {
        let measure = if self.params.lifetimes.is_some() { Measure::Uniform } else { self.params.measure };
        let columns = Columns::learn(self.cells, self.categorical, measure, units)?;
        let columned = columns.apply(self.cells)?;
        Ok((columns, columned))
    }

    pub(super) fn batch(&self, columned: Columned, targets: &Matrix) -> Batch {
        let is_centred = self.params.fit_intercept;
        Batch { columned, targets: targets.clone(), weights: self.weights.clone(), is_centred }
    }

    pub(super) fn layout(&self, columns: &Columns, metric: Metric) -> Layout {
        let n_linear = columns.metric_inputs().len();
        let has_fixed_axes = self.params.lifetimes.is_some();
        let metric = if has_fixed_axes { Metric::None } else { metric };
        Layout {
            has_fixed_axes,
            n_axes: columns.axis_inputs().len(),
            n_levels: columns.level_inputs().len(),
            n_linear,
            metric: metric.resolved(n_linear, self.cells.n_rows()),
            exponent: self.params.exponent,
            alpha: self.params.alpha,
        }
    }

    pub(super) fn record(
        &mut self,
        columns: &Columns,
        layout: &Layout,
        theta: &[f64],
        value: f64,
        rows: usize,
    ) -> Result<()> {
        let values = layout.values(theta);
        let n = rows as f64;
        self.cost += 2.0 * n * n * n + 4.0 * n * n * (layout.n_axes + 2 * layout.n_linear) as f64;
        let error = match self.loss {
            Loss::Squared => self.scale * value.exp(),
            Loss::Log => value,
        };
        let lifetimes = lifetimes_of_inputs(columns, &values);
        let step = Step { lifetimes, alpha: values.alpha, error, cost: self.cost, rows };
        // About: how many steps there will be depends on how the starts go.
        let expected = (self.params.steps * 3 / 2 + MOST_LAST_STEPS + 60) as f64;
        let fraction = 0.9 * (self.trajectory.len() as f64 / expected).min(1.0);
        self.trajectory.push(step.clone());
        self.progress.step(fraction, &step)
    }

    /// Goes on from starts to a tuned kernel.
    pub(crate) fn finish(&mut self, rough: Rough, targets: &Matrix) -> Result<TunedKernel> {
        let n = self.cells.n_rows();
        let Rough { columns, columned, starts, .. } = rough;
        let with_metric: Vec<&Start> = starts.iter().filter(|s| s.layout.metric != Metric::None).collect();
        let main: Vec<&Start> = if with_metric.is_empty() { starts.iter().collect() } else { with_metric };
        let best = main.iter().min_by(|a, b| a.value.total_cmp(&b.value)).ok_or(Error::NotFitted)?;
        let units = best.units;
        let (columns, columned) =
            if units == Units::Each && starts.len() == 1 { (columns, columned) } else { self.columned(units)? };
        if best.layout.has_fixed_axes {
            return Ok(TunedKernel { columns, values: best.layout.values(&best.theta) });
        }
        let batch = self.batch(columned, targets);
        if self.is_resumed {
            let (layout, theta) = self.go_on(best, &columns, &batch)?;
            return Ok(TunedKernel { columns, values: layout.values(&theta) });
        }
        let (loss, threads, params) = (self.loss, self.params.threads, self.params);
        let mut chains: Vec<Chain> = main
            .iter()
            .filter(|start| start.units == units)
            .map(|start| Chain::new(start.layout.clone(), start.theta.clone()))
            .collect();
        // Where neighbours among all rows are looked at next, batches of rows only have to lead there.
        let is_by_neighbors = params.is_by_neighbors(n);
        let steps = if is_by_neighbors { params.steps.div_ceil(4) } else { steps_for(params, n) };
        let pace = Pace::of_all(if n <= FEW_ROWS { FEW_ROWS_PACE } else { 1.0 });
        let schedule = Schedule { steps, rows: params.rows, pace };
        let key = self.key.fork(2);
        self.steps(&mut chains, &columns, &batch, schedule, key)?;
        let mut candidates: Vec<(Layout, Vec<f64>)> =
            chains.iter().filter(|c| c.is_active).map(|chain| (chain.layout.clone(), chain.mean())).collect();
        // Axes alone by quasi-Newton steps: a candidate on few rows, where many parameters bring nothing.
        let axes_alone = starts.iter().find(|s| s.layout.metric == Metric::None && s.units == units);
        let is_wanted = !is_by_neighbors && (n <= FEW_ROWS || main.len() == starts.len());
        if let (Some(start), true, false) = (axes_alone, is_wanted, self.is_late()) {
            let rows: Vec<usize> = (0..n.min(START_ROWS)).collect();
            let (theta, told) = descend_all(start, &batch.select(&rows), loss, threads)?;
            for (theta, value) in told {
                self.record(&columns, &start.layout, &theta, value, rows.len())?;
            }
            candidates.push((start.layout.clone(), theta));
        }
        let (layout, theta) = self.decide(&candidates, &batch, threads)?;
        let mut last = [Chain::new(layout, theta)];
        if n > 2 * params.rows && last[0].layout.metric != Metric::None && !is_by_neighbors {
            let schedule = last_schedule(&last[0].layout, n, params.rows);
            let key = self.key.fork(3);
            self.steps(&mut last, &columns, &batch, schedule, key)?;
        }
        let [Chain { layout, .. }] = &last;
        let (layout, mut theta) = (layout.clone(), last[0].mean());
        if is_by_neighbors {
            theta = self.steps_by_neighbors(&layout, theta, &columns, &batch)?;
        }
        Ok(TunedKernel { columns, values: layout.values(&theta) })
    }

    /// From a kernel that was tuned before to a better one, or the same: slower steps on other rows than before.
    fn go_on(&mut self, start: &Start, columns: &Columns, batch: &Batch) -> Result<(Layout, Vec<f64>)> {
        let Start { layout, theta, .. } = start;
        let KernelTuning { steps, rows, threads, .. } = *self.params;
        let n = self.cells.n_rows();
        if self.params.is_by_neighbors(n) {
            return Ok((layout.clone(), self.steps_by_neighbors(layout, theta.clone(), columns, batch)?));
        }
        let key = self.key.fork(4).fork(self.trajectory.len() as u64);
        let mut chains = [Chain::new(layout.clone(), theta.clone())];
        self.steps(
            &mut chains,
            columns,
            batch,
            Schedule { steps, rows, pace: Pace::of_all(RESUMED_PACE) },
            key.fork(0),
        )?;
        if n > 2 * rows {
            chains = [Chain::new(layout.clone(), chains[0].mean())];
            let last = last_schedule(layout, n, rows);
            self.steps(&mut chains, columns, batch, last, key.fork(1))?;
        }
        // The old one comes first: nothing changes unless it helps.
        self.decide(&[(layout.clone(), theta.clone()), (layout.clone(), chains[0].mean())], batch, threads)
    }

    fn steps(
        &mut self,
        chains: &mut [Chain],
        columns: &Columns,
        batch: &Batch,
        schedule: Schedule,
        key: NodeKey,
    ) -> Result<()> {
        if self.is_late() {
            return Ok(());
        }
        let (loss, threads) = (self.loss, self.params.threads);
        let mut told = |layout: &Layout, theta: &[f64], value: f64, rows: usize| {
            self.record(columns, layout, theta, value, rows)?;
            Ok(!self.is_late())
        };
        adam::run(chains, batch, loss, schedule, key, threads, &mut told)
    }

    /// Goes on from parameters that batches of rows have given, each row of a batch predicted from its neighbours among all
    /// rows.
    fn steps_by_neighbors(
        &mut self,
        layout: &Layout,
        theta: Vec<f64>,
        columns: &Columns,
        batch: &Batch,
    ) -> Result<Vec<f64>> {
        if self.is_late() {
            return Ok(theta);
        }
        let KernelTuning { steps, rows, deciding_rows, seed, threads, .. } = *self.params;
        let steps = steps.div_ceil(2);
        let neighbors = NeighborSchedule::default().neighbors.min(rows);
        let schedule = NeighborSchedule { steps, rows, neighbors, deciding_rows, seed, threads };
        let loss = self.loss;
        let mut told = |layout: &Layout, theta: &[f64], value: f64, rows: usize| {
            self.record(columns, layout, theta, value, rows)?;
            Ok(!self.is_late())
        };
        let starts = vec![(layout.clone(), theta)];
        let (_, theta) = tune_by_neighbors(batch, loss, schedule, starts, &mut told)?;
        Ok(theta)
    }

    /// The candidate with the least leave-one-out loss on the first rows; the first of equals.
    fn decide(&self, candidates: &[(Layout, Vec<f64>)], batch: &Batch, threads: Threads) -> Result<(Layout, Vec<f64>)> {
        if let [only] = candidates {
            return Ok(only.clone());
        }
        let rows: Vec<usize> = (0..batch.n_rows().min(self.params.deciding_rows)).collect();
        let sample = batch.select(&rows);
        let loss = self.loss;
        let value = |(layout, theta): &(Layout, Vec<f64>)| judged(&layout.values(theta), &sample, loss);
        let found: Vec<Result<f64>> = if threads == Threads::ONE {
            candidates.iter().map(value).collect()
        } else {
            candidates.par_iter().map(value).collect()
        };
        let mut best: Option<(f64, usize)> = None;
        for (k, value) in found.into_iter().enumerate() {
            let value = value?;
            if best.is_none_or(|(least, _)| value < least) {
                best = Some((value, k));
            }
        }
        best.map(|(_, k)| candidates[k].clone()).ok_or(Error::NotFitted)
    }
}

/// Steps for so many rows: two thirds of them below a number of rows that they would look at too often.
fn steps_for(params: &KernelTuning, n_rows: usize) -> usize {
    let least = params.steps - params.steps / 3;
    params.steps.min((LOOKS * n_rows / params.rows.max(1)).max(least))
}

/// The last steps on so many rows in all, for a kernel that was found by steps on `rows` of them.
fn last_schedule(layout: &Layout, n_rows: usize, rows: usize) -> Schedule {
    if n_rows < 5 * rows {
        return Schedule { steps: LAST_STEPS, rows: 2 * rows, pace: SLOW_LAST_PACE };
    }
    // A full metric has the most numbers to find, and takes few inputs, so that its steps are quick.
    let (steps, rows) = match layout.metric {
        Metric::Full => ((LAST_STEPS + layout.n_linear).min(MOST_LAST_STEPS), rows * 5 / 2),
        _ => (LAST_STEPS, 2 * rows),
    };
    Schedule { steps, rows, pace: LAST_PACE }
}

/// About the memory that rows take while a kernel is tuned: each input as axis, rank and metric column, in double and single
/// precision and in two orders; numbers, orders and targets of rows besides. An estimate by counting arrays.
fn bytes_of_rows(cells: Cells<'_>) -> f64 {
    cells.n_rows() as f64 * (160.0 * cells.n_columns() as f64 + 100.0)
}

/// All parameters of a start by quasi-Newton steps on the same rows.
fn descend_all(start: &Start, batch: &Batch, loss: Loss, threads: Threads) -> Result<(Vec<f64>, Told)> {
    let mut told = Vec::new();
    let layout = &start.layout;
    let function = |theta: &[f64]| {
        let slope = slope(layout, theta, batch, loss, threads)?;
        told.push((theta.to_vec(), slope.value));
        Ok(slope)
    };
    let (mut lower, mut upper) = (vec![-12.0; start.theta.len()], vec![7.0; start.theta.len()]);
    (lower[layout.alpha_at()], upper[layout.alpha_at()]) = (-16.0, 6.0);
    let limits = DescentLimits { evaluations: 60, least_gain: 1e-4, longest_step: 1.5 };
    let found = descend(function, &start.theta, &lower, &upper, limits)?;
    Ok((found.point, told))
}

/// The lifetime of the ranks of each input, 0 where it has no column of ranks.
pub(crate) fn rank_lifetimes_of_inputs(columns: &Columns, values: &Values) -> Vec<f64> {
    let mut lifetimes = vec![0.0; columns.n_inputs()];
    let ranked = columns.rank_axes();
    for ((input, is_ranked), lifetime) in ranked.into_iter().zip(&values.lifetimes) {
        if is_ranked {
            lifetimes[input] = *lifetime;
        }
    }
    lifetimes
}

/// The lifetime of each input in its own units; ν of a categorical one; zero for one that does not vary.
pub(crate) fn lifetimes_of_inputs(columns: &Columns, values: &Values) -> Vec<f64> {
    let mut lifetimes = vec![0.0; columns.n_inputs()];
    for ((input, unit), lifetime) in columns.axis_units().into_iter().zip(&values.lifetimes) {
        if let Some(unit) = unit {
            lifetimes[input] = lifetime / unit;
        }
    }
    for (input, weight) in columns.level_inputs().into_iter().zip(&values.level_weights) {
        lifetimes[input] = *weight;
    }
    lifetimes
}
