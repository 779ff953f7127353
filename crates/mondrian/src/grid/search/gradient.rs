//! Quasi-Newton descent on the exact kernel, which is the expectation of the grid's (docs/design.md, "The Mondrian
//! grid").

use std::ops::ControlFlow;

use crate::Result;
use crate::grid::search::{Bench, Optimizer};
use crate::laplace::{TuningParams, tune};
use crate::progress::{Progress, Report};

/// Tunes the exact Laplace kernel on the training rows, then finds the best common factor on the grid.
///
/// Every evaluation of the exact kernel factorises its matrix again: this search refits, unlike those that change one
/// cut at a time. Its trajectory contains the errors of the grid; those of the exact kernel, by leave-one-out, are only
/// reported to the callback.
///
/// The factor is needed because M grids are not the exact kernel: at small lifetimes most grids have no cut at all,
/// while the exact kernel still distinguishes points.
#[derive(Debug, Clone, Default)]
pub struct Gradient {
    /// The best so far, and its error.
    best: Option<(Vec<f64>, f64)>,
    halving: bool,
}

impl Optimizer for Gradient {
    fn step(&mut self, bench: &mut Bench<'_>) -> Result<bool> {
        let Some((lifetimes, least)) = &mut self.best else {
            let params = TuningParams { alpha: Some(bench.state().alpha()), ..TuningParams::default() };
            // Evaluations of the exact kernel are reported and counted like any other, and end with the budget or the patience.
            let left = bench.budget.saturating_sub(*bench.evaluations + 1);
            let (before, whole) = (*bench.evaluations as f64, bench.budget.max(1) as f64);
            let (patience, progress) = (bench.patience, &mut bench.progress);
            let (mut n, mut least, mut since_least, mut stopped) = (0, f64::INFINITY, 0, false);
            let mut watch = |report: Report<'_>| {
                let Some(step) = report.step else { return ControlFlow::Continue(()) };
                n += 1;
                stopped |= progress.step(((before + n as f64) / whole).min(1.0), step).is_err();
                since_least = if step.error < least { 0 } else { since_least + 1 };
                least = least.min(step.error);
                let ends = stopped || n >= left || since_least >= patience;
                if ends { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let (points, targets) = bench.state.training_rows();
            let tuned = tune(points, &targets, &params, &mut Progress::new(&mut watch))?;
            if stopped {
                // Its state is not kept: a resumed search tunes again, with the same result.
                bench.stopped = true;
                return Ok(true);
            }
            bench.state.cost += tuned.trajectory.cost();
            *bench.evaluations += tuned.trajectory.len();
            let error = bench.evaluate(&tuned.lifetimes)?;
            self.best = Some((tuned.lifetimes, error));
            return Ok(true);
        };
        let factor = if self.halving { 0.5 } else { 2.0 };
        let trial: Vec<f64> = lifetimes.iter().map(|lifetime| lifetime * factor).collect();
        let error = bench.evaluate(&trial)?;
        // With fewer cuts than grids the error is not informative yet, and a few cuts may be worse than none: a nearly
        // constant exact kernel is tuned to such lifetimes.
        let is_sparse = !self.halving && lifetimes.iter().any(|l| *l > 0.0) && bench.state.is_sparse(&trial)?;
        if error < *least || is_sparse {
            (*lifetimes, *least) = (trial, error);
            return Ok(true);
        }
        Ok(!std::mem::replace(&mut self.halving, true))
    }
}
