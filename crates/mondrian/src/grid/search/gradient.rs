//! Quasi-Newton descent on the exact kernel, whose expectation the grid's is (docs/design.md, "The Mondrian grid").

use crate::Result;
use crate::grid::search::{Bench, Optimizer};
use crate::laplace::{TuningParams, tune};
use crate::progress::Progress;

/// Tunes the exact Laplace kernel on the training rows, then finds the best common factor on the grid.
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
            let (points, targets) = bench.state().training_rows();
            let tuned = tune(points, &targets, &params, &mut Progress::none())?;
            bench.state.cost += tuned.trajectory.cost();
            *bench.evaluations += tuned.trajectory.len();
            let error = bench.evaluate(&tuned.lifetimes)?;
            self.best = Some((tuned.lifetimes, error));
            return Ok(true);
        };
        let factor = if self.halving { 0.5 } else { 2.0 };
        let trial: Vec<f64> = lifetimes.iter().map(|lifetime| lifetime * factor).collect();
        let error = bench.evaluate(&trial)?;
        if error < *least {
            (*lifetimes, *least) = (trial, error);
            return Ok(true);
        }
        Ok(!std::mem::replace(&mut self.halving, true))
    }
}
