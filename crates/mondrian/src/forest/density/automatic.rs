//! The automatic lifetime: along the path, on held-out points or by leave-one-out.

use crate::forest::density::DensityForest;
use crate::forest::density::path::{Curves, Trace};
use crate::path::RegularizationPath;
use crate::process::NodeKey;
use crate::progress::Progress;
use crate::select::automatic::DENSITY;
use crate::select::split::{order_of, row_key};
use crate::select::{Rounds, Validation};
use crate::{Error, Lifetime, Result};

/// The first terminal lifetime makes so many cuts per dimension in expectation.
const FIRST_CUTS: f64 = 8.0;
/// A doubling that lowers the loss by less than this share of its standard error shows that the curve has run flat.
const FLAT: f64 = 0.05;

/// The path that an automatic lifetime is chosen on.
pub(crate) fn selecting_path(model: &DensityForest, progress: &mut Progress<'_>) -> Result<RegularizationPath> {
    let (rows, coordinates) = model.stored();
    if rows.is_empty() {
        return Err(Error::NotFitted);
    }
    let n_dims = model.forest.n_dims();
    let validation = model.params.forest.validation;
    if validation == Validation::LeaveOneOut || rows.len() < DENSITY.fewest {
        let mut all = model.emptied(model.forest.n_trees(), first_lifetime(model), model.gamma())?;
        all.take_points(&coordinates, &rows)?;
        let path = turned(&mut all, &[], Curves::LeaveOneOut, progress)?;
        return Ok(path);
    }
    let order = keyed_order(&coordinates, n_dims, model.forest.domain().seed());
    let Rounds { parts, held } = validation.rounds()?;
    let (mut terminal, mut least) = (first_lifetime(model), Lifetime::INFINITE);
    let mut paths = Vec::new();
    for round in 0..held {
        let share = |done: u64| done as f64 / held as f64;
        let progress = &mut progress.part(share(round), share(round + 1));
        let place = |part: u64| (part as usize * order.len()) / parts as usize;
        let (from, to) = (place(round), place(round + 1));
        if from == to {
            continue;
        }
        let kept: Vec<usize> = order[..from].iter().chain(&order[to..]).copied().collect();
        let (training, training_rows) = select(&coordinates, &rows, &kept, n_dims);
        let mut part = model.emptied(model.forest.n_trees(), terminal, model.gamma())?;
        part.take_points(&training, &training_rows)?;
        let (validation, validation_rows) = select(&coordinates, &rows, &order[from..to], n_dims);
        let repeated = repeat(&validation, &validation_rows, n_dims);
        let count = validation_rows.iter().map(|n| f64::from(*n)).sum();
        paths.push((turned(&mut part, &[repeated], Curves::Validation, progress)?, count));
        // Later rounds go at least as far; what all have seen counts.
        terminal = part.forest.domain().lifetime();
        least = least.min(terminal);
    }
    let path = RegularizationPath::pooled(&paths).ok_or(Error::NotFitted)?;
    Ok(path.until(least).with_outside(vec![0]))
}

/// The path up to a terminal lifetime that is doubled until the selecting curve has clearly turned or run flat.
pub(super) fn turned(
    model: &mut DensityForest,
    validation: &[Vec<f64>],
    curves: Curves,
    progress: &mut Progress<'_>,
) -> Result<RegularizationPath> {
    let mut trace = Trace::new(model, validation, curves)?;
    let mut before = f64::INFINITY;
    for doubling in 0.. {
        // It is not known how often it will be doubled: each time the rest is halved.
        let before_this = 1.0 - f64::from(doubling).exp2().recip();
        let after_this = 1.0 - f64::from(doubling + 1).exp2().recip();
        trace.extend(model, &mut progress.part(before_this, after_this))?;
        let path = trace.path(model);
        let best = path.selecting()[path.best_index()];
        let is_flat = before - best < FLAT * path.standard_error().unwrap_or(0.0);
        let doubled = model.forest.domain().lifetime().get() * 2.0;
        if path.has_turned() || is_flat || doubling == DENSITY.doublings || !doubled.is_finite() {
            return Ok(path);
        }
        before = best;
        model.set_lifetime(Lifetime::new(doubled)?)?;
    }
    unreachable!("the doublings are counted")
}

/// A lifetime that makes [`FIRST_CUTS`] cuts per dimension along the way of a point across the box.
pub(super) fn first_lifetime(model: &DensityForest) -> Lifetime {
    let root = model.forest.domain().root_box();
    let lifetime = FIRST_CUTS * model.forest.n_dims() as f64 / root.linear_dimension();
    // A box that is a single point in measure coordinates is never cut: any lifetime is as good.
    Lifetime::new(lifetime).ok().filter(|lifetime| lifetime.is_finite()).unwrap_or(Lifetime::ZERO)
}

/// What the keys of rows are forked from.
pub(in crate::forest) const HELD_OUT: u64 = 0x4865_6C64_4F75_7400;

/// Points in the order of a keyed hash of their coordinates: free of order and repetition (docs/design.md, "Automatic
/// values").
fn keyed_order(coordinates: &[f64], n_dims: usize, seed: u64) -> Vec<usize> {
    let root = NodeKey::root(seed, HELD_OUT);
    order_of(coordinates.chunks_exact(n_dims).map(|x| row_key(root, x.iter().copied())))
}

fn select(coordinates: &[f64], rows: &[u32], points: &[usize], n_dims: usize) -> (Vec<f64>, Vec<u32>) {
    let of_point = |point: &usize| coordinates[point * n_dims..][..n_dims].iter().copied();
    (points.iter().flat_map(of_point).collect(), points.iter().map(|point| rows[*point]).collect())
}

fn repeat(coordinates: &[f64], rows: &[u32], n_dims: usize) -> Vec<f64> {
    let points = coordinates.chunks_exact(n_dims).zip(rows);
    points.flat_map(|(x, n)| std::iter::repeat_n(x, *n as usize).flatten().copied()).collect()
}
