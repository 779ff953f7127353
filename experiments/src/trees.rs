//! Trees whose refits at other lifetimes are the same trees: on one box around all rows, under raw units.

use anyhow::Result;
use mondrian::process::Bounds;
use mondrian::{ForestParams, LifetimeChoice, WeightsChoice};
use mondrian::{Lifetime, Points};
use mondrian_benches::Standardised;

/// Parameters of such trees. A path widens the box to hold the validation rows; a refit has to start with that box, since
/// the box is part of a tree's key.
pub(crate) fn around(split: &Standardised, n_trees: usize, lifetime: f64, seed: u64) -> Result<ForestParams> {
    let all: Vec<f64> = split.train_x.iter().chain(&split.test_x).copied().collect();
    Ok(ForestParams {
        n_trees,
        seed,
        bounds: Bounds::of_points(Points::row_major(&all, split.n_columns)?),
        weights: WeightsChoice::Raw,
        lifetime: LifetimeChoice::Value(Lifetime::new(lifetime)?),
        ..ForestParams::default()
    })
}
