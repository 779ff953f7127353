//! Coordinate search in log-lifetimes (docs/design.md, "The Mondrian grid"): factors 2.5, 0.4 and 0, one dimension
//! after the other.

use crate::Result;
use crate::grid::search::{Bench, Optimizer};

const FACTORS: [f64; 3] = [2.5, 0.4, 0.0];

/// One lifetime after the other, as long as a sweep lowers the error.
#[derive(Debug, Clone, Default)]
pub struct Coordinate {
    best: Option<(Vec<f64>, f64)>,
    dim: usize,
    factor: usize,
    improved: bool,
}

impl Optimizer for Coordinate {
    fn step(&mut self, bench: &mut Bench<'_>) -> Result<bool> {
        let Some((lifetimes, least)) = &mut self.best else {
            let start = bench.state().start();
            let error = bench.evaluate(&start)?;
            self.best = Some((start, error));
            return Ok(true);
        };
        let typical = bench.state().start()[self.dim];
        let mut trial = lifetimes.clone();
        let old = trial[self.dim];
        // A lifetime that was set to zero may become small and positive again.
        trial[self.dim] = if old == 0.0 { 0.1 * typical * FACTORS[self.factor] } else { old * FACTORS[self.factor] };
        let mut taken = false;
        if trial[self.dim] != old && typical > 0.0 {
            let error = bench.evaluate(&trial)?;
            if error < *least {
                (*lifetimes, *least) = (trial, error);
                (taken, self.improved) = (true, true);
            }
        }
        self.factor += 1;
        // A factor that lowered the error is tried again before the next dimension.
        if taken && self.factor < FACTORS.len() {
            self.factor -= 1;
        } else if taken || self.factor == FACTORS.len() {
            self.factor = 0;
            self.dim += 1;
        }
        if self.dim == bench.state().n_dims() {
            self.dim = 0;
            return Ok(std::mem::take(&mut self.improved));
        }
        Ok(true)
    }
}
