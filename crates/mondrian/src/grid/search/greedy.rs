//! Greedy searches (report, chapter 5, "Lifetime configuration exploration").

use crate::Result;
use crate::grid::Move;
use crate::grid::search::{Bench, Optimizer};

/// Moves to the best neighbour repeatedly.
///
/// If it only adds cuts, it takes the best cut even if that raises the error, as in the report, and is ended by
/// patience. If it also removes cuts, it stops when no neighbour is better, which is often a local minimum.
#[derive(Debug, Clone, Copy)]
pub struct Greedy {
    both: bool,
}

impl Greedy {
    /// Only adds cuts.
    pub fn increase() -> Self {
        Self { both: false }
    }

    /// Adds or removes cuts.
    pub fn both() -> Self {
        Self { both: true }
    }
}

impl Optimizer for Greedy {
    fn step(&mut self, bench: &mut Bench<'_>) -> Result<bool> {
        let n_dims = bench.state().n_dims();
        let mut moves: Vec<Move> = (0..n_dims).map(Move::Raise).collect();
        if self.both {
            moves.extend((0..n_dims).map(Move::Lower));
        }
        let errors = bench.what_if(&moves)?;
        let found = moves.iter().zip(errors).filter_map(|(step, error)| Some((*step, error?)));
        let Some((step, error)) = found.min_by(|a, b| a.1.total_cmp(&b.1)) else { return Ok(false) };
        if self.both && error >= bench.state().validation_error() {
            return Ok(false);
        }
        bench.make(step, true)?;
        Ok(true)
    }
}
