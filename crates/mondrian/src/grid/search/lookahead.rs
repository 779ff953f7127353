//! Look-ahead search: several cuts in each direction before deciding (report, chapter 5, "Further work").

use crate::Result;
use crate::grid::Move;
use crate::grid::search::{Bench, Optimizer};

/// Evaluates up to `depth` cuts in each of the 2·D directions, doubling the depth when none is better.
#[derive(Debug, Clone, Copy)]
pub struct Lookahead {
    depth: usize,
    limit: usize,
}

impl Lookahead {
    /// Looks `depth` cuts ahead at first, and up to sixteen times as far when stuck.
    pub fn new(depth: usize) -> Self {
        Self { depth: depth.max(1), limit: depth.max(1) * 16 }
    }
}

/// The smallest error within `depth` cuts in one direction and its number of cuts; the state is restored.
fn explore(bench: &mut Bench<'_>, step: Move, depth: usize) -> Result<Option<(f64, usize)>> {
    let mut best: Option<(f64, usize)> = None;
    let mut made = 0;
    while made < depth && bench.has_budget() {
        let Some(error) = bench.make(step, false)? else { break };
        made += 1;
        if best.is_none_or(|(least, _)| error < least) {
            best = Some((error, made));
        }
    }
    let back = match step {
        Move::Raise(dim) => Move::Lower(dim),
        Move::Lower(dim) => Move::Raise(dim),
    };
    for _ in 0..made {
        bench.state.apply(back)?;
    }
    Ok(best)
}

impl Optimizer for Lookahead {
    fn step(&mut self, bench: &mut Bench<'_>) -> Result<bool> {
        let n_dims = bench.state().n_dims();
        let here = bench.state().validation_error();
        let mut best: Option<(f64, Move, usize)> = None;
        for step in (0..n_dims).flat_map(|dim| [Move::Raise(dim), Move::Lower(dim)]) {
            if let Some((error, count)) = explore(bench, step, self.depth)?
                && best.is_none_or(|(least, ..)| error < least)
            {
                best = Some((error, step, count));
            }
        }
        match best {
            Some((error, step, count)) if error < here => {
                for _ in 1..count {
                    bench.state.apply(step)?;
                }
                bench.make(step, true)?;
                Ok(true)
            }
            _ if self.depth < self.limit => {
                self.depth *= 2;
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}
