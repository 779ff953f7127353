//! Where the search for a kernel starts: common factors of all inputs, and the choice of their units.

use crate::parallel::prelude::*;

use crate::laplace::columns::{Columned, Columns, Units};
use crate::laplace::objective::{Batch, Loss, rough_slope};
use crate::laplace::search::{FEW_ROWS, START_ROWS, Search, Told};
use crate::laplace::solve::judge;
use crate::laplace::values::{Layout, Metric, Values};
use crate::laplace::{DescentLimits, Slope, descend};
use crate::linalg::{Matrix, Threads};
use crate::process::NodeKey;
use crate::{Error, Result};

/// Rows of the start where there are many: its three parameters need no more.
const START_ROWS_OF_MANY: usize = 700;

/// A point to go on from, and its leave-one-out loss.
#[derive(Debug, Clone)]
pub(super) struct Start {
    pub(super) units: Units,
    pub(super) layout: Layout,
    pub(super) theta: Vec<f64>,
    pub(super) value: f64,
}

/// A kernel with common factors, and the starts it was chosen from.
pub(crate) struct Rough {
    pub(crate) columns: Columns,
    pub(crate) columned: Columned,
    pub(crate) values: Values,
    pub(super) starts: Vec<Start>,
}

impl Search<'_, '_> {
    /// The best start alone: a kernel with common factors, good enough to compare target maps with.
    pub(crate) fn rough(&mut self, targets: &Matrix) -> Result<Rough> {
        let starts = self.starts(targets)?;
        let best = starts.iter().min_by(|a, b| a.value.total_cmp(&b.value)).ok_or(Error::NotFitted)?;
        let (columns, columned) = self.columned(best.units)?;
        let values = best.layout.values(&best.theta);
        Ok(Rough { columns, columned, values, starts })
    }

    /// One common factor per term (or one for both) and α, by quasi-Newton steps on the first rows.
    ///
    /// Starts in two systems of units are compared on the rows that the ends of tuning are compared on, since those that they are found on
    /// may say nothing: on one of three seeds the first 700 rows of mnist_0_9 are separable, and on another one 2000 rows prefer the units
    /// that are worse in the end (docs/benchmarks/kernel.md, "Units at the start").
    fn starts(&mut self, targets: &Matrix) -> Result<Vec<Start>> {
        let n_rows = self.cells.n_rows();
        let n = if n_rows > FEW_ROWS { START_ROWS_OF_MANY } else { n_rows.min(START_ROWS) };
        let (first, deciding): (Vec<usize>, Vec<usize>) =
            ((0..n).collect(), (0..n_rows.min(self.params.deciding_rows)).collect());
        let given_units = self.params.lifetimes.is_some();
        let mut jobs: Vec<(usize, Layout, bool)> = Vec::new();
        let mut seen: Vec<(Units, Columns, [Batch; 2])> = Vec::new();
        for units in [Units::Each, Units::Common] {
            let (columns, columned) = self.columned(units)?;
            if seen.first().is_some_and(|(_, other, _)| *other == columns || given_units) {
                continue;
            }
            let all = self.batch(columned, targets);
            seen.push((units, columns, [all.select(&first), all.select(&deciding)]));
        }
        let metric = self.params.metric;
        for (k, (_, columns, _)) in seen.iter().enumerate() {
            let layout = self.layout(columns, metric);
            layout.check()?;
            let has_metric = layout.metric != Metric::None;
            jobs.push((k, layout.clone(), false));
            if has_metric {
                jobs.push((k, layout, true));
            }
            if has_metric && n_rows <= FEW_ROWS {
                jobs.push((k, self.layout(columns, Metric::None), false));
            }
        }
        let (loss, key, given) = (self.loss, self.key.fork(1), self.params.lifetimes.as_deref());
        let start = |(k, layout, is_tied): &(usize, Layout, bool)| -> Result<(Start, Told)> {
            let (units, columns, [batch, more]) = &seen[*k];
            let mut theta = first_parameters(columns, layout, key);
            if let Some(given) = given {
                theta[layout.axes()].copy_from_slice(&columns.logarithms(given));
            }
            let (theta, mut value, told) = common_factors(layout, &theta, *is_tied, batch, loss)?;
            if seen.len() > 1 && more.n_rows() > batch.n_rows() {
                value = judged(&layout.values(&theta), more, loss)?;
            }
            Ok((Start { units: *units, layout: layout.clone(), theta, value }, told))
        };
        let found: Vec<_> = if self.params.threads == Threads::ONE {
            jobs.iter().map(start).collect()
        } else {
            jobs.par_iter().map(start).collect()
        };
        let mut starts = Vec::new();
        for (found, job) in found.into_iter().zip(&jobs) {
            let (start, told) = found?;
            for (theta, value) in told {
                self.record(&seen[job.0].1, &start.layout, &theta, value, n)?;
            }
            starts.push(start);
        }
        Ok(starts)
    }
}

/// The leave-one-out loss of a candidate; infinite where its α is too small for these rows.
pub(super) fn judged(values: &Values, batch: &Batch, loss: Loss) -> Result<f64> {
    match judge(values, batch, loss, Threads::ONE) {
        Err(Error::NotPositiveDefinite { .. }) => Ok(f64::INFINITY),
        other => other,
    }
}

/// All inputs alike: each axis one unit over a typical distance when all are together.
fn first_parameters(columns: &Columns, layout: &Layout, key: NodeKey) -> Vec<f64> {
    let mut theta = layout.start(key);
    let (spreads, level_spreads) = columns.spreads();
    let both = if layout.metric == Metric::None { 0.0 } else { 0.7 };
    let count = (layout.n_axes + layout.n_levels).max(1) as f64;
    for (at, _) in spreads.iter().chain(level_spreads).enumerate() {
        theta[at] = -count.ln() - both;
    }
    for (k, spread) in level_spreads.iter().enumerate() {
        theta[layout.n_axes + k] -= spread.ln().min(0.0);
    }
    for at in layout.scales() {
        theta[at] = -0.5 * (2.0 * layout.n_linear as f64).ln() - both;
    }
    theta
}

/// Common factors of both terms and α by quasi-Newton steps.
fn common_factors(
    layout: &Layout,
    theta: &[f64],
    is_tied: bool,
    batch: &Batch,
    loss: Loss,
) -> Result<(Vec<f64>, f64, Told)> {
    let expand = |u: &[f64]| {
        let mut moved = theta.to_vec();
        moved[layout.axes()].iter_mut().for_each(|t| *t += u[0]);
        let other = if is_tied { u[0] } else { u[1] };
        moved[layout.scales()].iter_mut().for_each(|t| *t += other);
        if layout.alpha.is_none() {
            moved[layout.alpha_at()] = u[2];
        }
        moved
    };
    let mut told = Vec::new();
    let function = |u: &[f64]| {
        let moved = expand(u);
        let Slope { value, gradient } = rough_slope(layout, &moved, batch, loss, Threads::ONE)?;
        told.push((moved, value));
        let (a, b) = (gradient[layout.axes()].iter().sum::<f64>(), gradient[layout.scales()].iter().sum::<f64>());
        let of_alpha = gradient[layout.alpha_at()];
        Ok(Slope { value, gradient: if is_tied { vec![a + b, 0.0, of_alpha] } else { vec![a, b, of_alpha] } })
    };
    let limits = DescentLimits { evaluations: 14, least_gain: 1e-4, longest_step: 1.5 };
    let start = [0.0, 0.0, theta[layout.alpha_at()]];
    let found = descend(function, &start, &[-6.0, -6.0, -16.0], &[6.0, 6.0, 4.0], limits)?;
    Ok((expand(&found.point), found.slope.value, told))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laplace::Cells;
    use crate::laplace::search::KernelTuning;
    use crate::progress::Progress;

    /// Two inputs of different spreads whose target varies as fast along the one as along the other.
    fn table(n: usize) -> (Vec<f64>, Matrix) {
        let draw = |i: usize, k: u32| NodeKey::root(3, i as u64).draw(k).uniform();
        let x: Vec<f64> = (0..n).flat_map(|i| [draw(i, 0), 9.0 * draw(i, 1)]).collect();
        let y: Vec<f64> = x.chunks(2).map(|r| (6.0 * r[0]).sin() + (6.0 * r[1]).cos()).collect();
        (x, Matrix::from_fn(n, 1, |i, _| y[i]))
    }

    #[test]
    fn starts_are_compared_on_the_deciding_rows() {
        let (n, deciding_rows) = (FEW_ROWS + 100, 1200);
        let (x, y) = table(n);
        let params = KernelTuning { deciding_rows, ..KernelTuning::default() };
        let cells = Cells::row_major(&x, 2).unwrap();
        let weights = vec![1.0; n];
        let mut search =
            Search::new(&params, cells, &[false, false], weights, Loss::Squared, Progress::none()).unwrap();
        let Rough { starts, values, .. } = search.rough(&y).unwrap();
        assert!(starts.iter().any(|s| s.units == Units::Each) && starts.iter().any(|s| s.units == Units::Common));
        let rows: Vec<usize> = (0..deciding_rows).collect();
        let (mut best, mut least) = (None, f64::INFINITY);
        for start in &starts {
            let (_, columned) = search.columned(start.units).unwrap();
            let of_start = start.layout.values(&start.theta);
            let expected =
                judge(&of_start, &search.batch(columned, &y).select(&rows), Loss::Squared, Threads::ONE).unwrap();
            assert_eq!(start.value, expected);
            if expected < least {
                (best, least) = (Some(of_start), expected);
            }
        }
        assert_eq!(values.lifetimes, best.unwrap().lifetimes);
        // As many rows as the starts are found on: nothing more to compare on.
        let (x, y) = table(600);
        let cells = Cells::row_major(&x, 2).unwrap();
        let mut search =
            Search::new(&params, cells, &[false, false], vec![1.0; 600], Loss::Squared, Progress::none()).unwrap();
        let Rough { starts, .. } = search.rough(&y).unwrap();
        assert!(starts.iter().all(|start| start.value.is_finite()));
    }
}
