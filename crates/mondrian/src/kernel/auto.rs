//! `lifetime = auto` of the kernel: chosen on the path, on a held-out fifth of the rows (report, chapter 4).

use super::{KernelRidge, KernelRidgeParams, PathMethod};
use crate::dense::{Matrix, MatrixRef};
use crate::forest::keyed_hash;
use crate::path::{Progress, part_of};
use crate::{Lifetime, Points, Result};

/// Rows and trees that the choice looks at, at most.
const MAX_ROWS: usize = 3000;
const MAX_TREES: usize = 50;
/// The terminal lifetime is not raised beyond this many features.
const MAX_FEATURES: usize = 2500;
const MAX_DOUBLINGS: usize = 14;
/// With fewer rows than this, nothing is held out and the lifetime is 1 in units of the columns' deviations.
const FEWEST_ROWS: usize = 10;

/// The lifetime of smallest error on the held-out rows. The terminal lifetime starts at 1/D and is doubled until the
/// curve has clearly turned, or there are too many features to go on.
pub(super) fn choose_lifetime(
    params: &KernelRidgeParams,
    points: Points<'_>,
    targets: MatrixRef<'_>,
    progress: Progress<'_>,
) -> Result<Lifetime> {
    let (n_dims, n_targets) = (points.n_columns(), targets.n_columns());
    let seed = params.seed_of();
    let mut rows: Vec<(u64, usize)> = (0..points.n_rows().min(targets.n_rows()))
        .map(|row| (keyed_hash(seed, &points.row(row).collect::<Vec<f64>>()), row))
        .collect();
    rows.sort_unstable_by_key(|row| row.0);
    rows.truncate(MAX_ROWS);
    let (train, held): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(hash, _)| hash % 5 != 0);
    let fallback = Lifetime::new(1.0)?;
    if train.len() + held.len() < FEWEST_ROWS || held.is_empty() || train.is_empty() {
        return Ok(fallback);
    }
    let part = |rows: &[(u64, usize)]| -> Vec<f64> { rows.iter().flat_map(|(_, row)| points.row(*row)).collect() };
    let (x, x_held) = (part(&train), part(&held));
    let y = Matrix::from_fn(train.len(), n_targets, |row, t| targets.get(train[row].1, t));
    let y_held: Vec<f64> = held.iter().flat_map(|(_, row)| (0..n_targets).map(|t| targets.get(*row, t))).collect();
    let (train, held) = (Points::row_major(&x, n_dims)?, Points::row_major(&x_held, n_dims)?);
    let mut terminal = 1.0 / n_dims as f64;
    let mut best = fallback;
    for doubling in 0..MAX_DOUBLINGS {
        let share = |doublings: usize| doublings as f64 / MAX_DOUBLINGS as f64;
        let progress = &mut part_of(progress, share(doubling), share(doubling + 1));
        let model = params.clone().tuning(MAX_TREES, Lifetime::new(terminal)?).fit_many(train, y.view())?;
        if model.n_features() > MAX_FEATURES {
            break;
        }
        let path = model.path(&[(held, &y_held)], &PathMethod::Removal, progress)?.path;
        best = path.best_lifetime();
        if path.has_turned() {
            break;
        }
        terminal *= 2.0;
    }
    // A best lifetime of 0 is a constant model: rows without signal; keep a positive one, so that features exist.
    Ok(if best.get() > 0.0 { best } else { fallback.min(Lifetime::new(terminal)?) })
}

impl KernelRidge {
    /// Number of features C.
    pub fn n_features(&self) -> usize {
        self.model().coefficients().n_rows()
    }
}
