//! The automatic lifetime: the path on held-out rows, a keyed fifth of them or all in k folds.

use crate::forest::regression::{RegressionForest, RegressionParams, Rows};
use crate::path::RegularizationPath;
use crate::progress::{FitOptions, Progress};
use crate::select::automatic::REGRESSION;
use crate::select::split::keyed_hash;
use crate::{Lifetime, Points, Result};

/// Fits with the lifetime of smallest error on held-out rows: a fifth, or all of them in k folds, chosen by a keyed hash of
/// the coordinates.
///
/// The path is that of a forest with an infinite lifetime, so the whole range is seen; with the last cut best, the
/// lifetime is infinite. At most 40 trees and 40 000 rows take part in the choice. With fewer than ten rows, or
/// nothing held out, the lifetime is infinite.
pub(crate) fn fit_auto(
    params: RegressionParams,
    points: Points<'_>,
    targets: &[f64],
    options: FitOptions<'_>,
) -> Result<RegressionForest> {
    let FitOptions { weights, mut progress } = options;
    params.forest.check()?;
    params.prior.check()?;
    let rows = Rows::checked(points, targets, weights)?;
    let lifetime = choose_lifetime(&params, &rows, points.n_columns(), &mut progress.part(0.0, 0.5))?;
    RegressionForest::grown_to(params, lifetime, points, targets, weights, &mut progress.part(0.5, 1.0))
}

fn choose_lifetime(
    params: &RegressionParams,
    rows: &Rows<'_>,
    n_dims: usize,
    progress: &mut Progress<'_>,
) -> Result<Lifetime> {
    let hashed = rows.x.chunks_exact(n_dims).map(|x| keyed_hash(params.forest.seed, x.iter().copied()));
    let rounds =
        REGRESSION.rounds(params.forest.validation, hashed.enumerate().map(|(row, hash)| (hash, row)).collect())?;
    let part = |chosen: &[usize]| {
        let t = rows.n_targets;
        let x: Vec<f64> = chosen.iter().flat_map(|r| rows.x[r * n_dims..][..n_dims].iter().copied()).collect();
        let y: Vec<f64> = chosen.iter().flat_map(|r| rows.y[r * t..][..t].iter().copied()).collect();
        let w: Option<Vec<f64>> = rows.weights.as_ref().map(|w| chosen.iter().map(|r| w[*r]).collect());
        (x, y, w)
    };
    let mut tuning = params.clone();
    tuning.forest.n_trees = tuning.forest.n_trees.min(REGRESSION.trees);
    (tuning.forest.window, tuning.forest.max_rows) = (None, None);
    let mut paths = Vec::with_capacity(rounds.len());
    let half = 0.5 / rounds.len() as f64;
    for (round, (train, held)) in rounds.iter().enumerate() {
        let at = |halves: usize| (2 * round + halves) as f64 * half;
        let ((x, y, w), (x_held, y_held, _)) = (part(train), part(held));
        let (points, tuning) = (Points::row_major(&x, n_dims)?, tuning.clone());
        let mut growing = progress.part(at(0), at(1));
        let model = RegressionForest::grown_to(tuning, Lifetime::INFINITE, points, &y, w.as_deref(), &mut growing)?;
        let held_out = (Points::row_major(&x_held, n_dims)?, y_held.as_slice());
        let path = model.path(&[held_out], &mut progress.part(at(1), at(2)))?;
        paths.push((path, held.len() as f64));
    }
    let Some(path) = RegularizationPath::pooled(&paths) else { return Ok(Lifetime::INFINITE) };
    let last = path.len() - 1;
    Ok(if path.best_index() == last { Lifetime::INFINITE } else { path.best_lifetime() })
}
