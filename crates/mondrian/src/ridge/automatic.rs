//! `lifetime = auto` and `alpha = auto` of the kernel: chosen on the path, on held-out rows (report, chapter 4).

use crate::forest::LifetimeChoice;
use crate::linalg::{Matrix, MatrixRef};
use crate::path::RegularizationPath;
use crate::progress::Progress;
use crate::ridge::{KernelRidge, KernelRidgeParams, PathMethod};
use crate::select::automatic::KERNEL;
use crate::select::split::keyed_hash;
use crate::{Lifetime, Points, Result};

/// The terminal lifetime is not raised beyond this many features.
const MAX_FEATURES: usize = 2500;
/// The candidates of an automatic α: one path each, over the same trees.
const ALPHAS: [f64; 6] = [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0];

/// The choice, and its error on held-out rows if there were any.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Choice {
    pub(crate) lifetime: Lifetime,
    pub(crate) alpha: f64,
    pub(crate) error: f64,
}

/// A round of training and held-out rows.
struct Round {
    x: Vec<f64>,
    y: Matrix,
    x_held: Vec<f64>,
    y_held: Vec<f64>,
}

/// Lifetime and α of smallest error on the held-out rows, each only if it is automatic.
pub(crate) fn choose(
    params: &KernelRidgeParams,
    points: Points<'_>,
    targets: MatrixRef<'_>,
    progress: &mut Progress<'_>,
) -> Result<Choice> {
    let alphas = if params.has_auto_alpha() { ALPHAS.to_vec() } else { vec![params.ridge_params().alpha_value()] };
    let rounds = rounds(params, points, targets)?;
    match params.forest_params().lifetime {
        LifetimeChoice::Value(lifetime) => alpha_at(lifetime, &alphas, params, &rounds, progress),
        LifetimeChoice::Auto => on_the_path(&alphas, params, &rounds, points.n_columns(), progress),
    }
}

/// Without held-out rows: the middle of the candidates.
fn unjudged(lifetime: Lifetime, alphas: &[f64]) -> Choice {
    Choice { lifetime, alpha: alphas[alphas.len() / 2], error: f64::NAN }
}

/// α at a given lifetime: one fit per candidate, no path.
fn alpha_at(
    lifetime: Lifetime,
    alphas: &[f64],
    params: &KernelRidgeParams,
    rounds: &[Round],
    progress: &mut Progress<'_>,
) -> Result<Choice> {
    let mut best: Option<Choice> = None;
    for (at, &alpha) in alphas.iter().enumerate() {
        progress.report(at as f64 / alphas.len() as f64)?;
        let (mut squares, mut count) = (0.0, 0.0);
        for round in rounds {
            let predicted = round.fit(params, lifetime, alpha)?.predict(round.held()?)?;
            let n_targets = predicted.n_columns();
            let errors = round.y_held.iter().enumerate().map(|(k, y)| y - predicted[(k / n_targets, k % n_targets)]);
            squares += errors.map(|error| error * error).sum::<f64>();
            count += round.y_held.len() as f64;
        }
        let error = (squares / count).sqrt();
        if best.is_none_or(|before| error < before.error) {
            best = Some(Choice { lifetime, alpha, error });
        }
    }
    Ok(best.filter(|_| !rounds.is_empty()).unwrap_or_else(|| unjudged(lifetime, alphas)))
}

/// The lifetime and, among several candidates, α. The terminal lifetime starts at 1/D and is doubled until the curve of the
/// best α has clearly turned, or the limit on features is reached.
fn on_the_path(
    alphas: &[f64],
    params: &KernelRidgeParams,
    rounds: &[Round],
    n_dims: usize,
    progress: &mut Progress<'_>,
) -> Result<Choice> {
    let one = Lifetime::new(1.0)?;
    let mut best = unjudged(one, alphas);
    if rounds.is_empty() {
        return Ok(best);
    }
    let mut terminal = 1.0 / n_dims as f64;
    for doubling in 0..KERNEL.doublings {
        let share = |done: f64| (f64::from(doubling) + done) / f64::from(KERNEL.doublings);
        let fit = |round: &Round| round.fit(params, Lifetime::new(terminal)?, 1.0);
        let models = rounds.iter().map(fit).collect::<Result<Vec<_>>>()?;
        if models.iter().any(|model| model.n_features() > MAX_FEATURES) {
            break;
        }
        let mut here: Option<(Choice, RegularizationPath)> = None;
        for (at, &alpha) in alphas.iter().enumerate() {
            let part = |done: usize| share(done as f64 / alphas.len() as f64);
            let path = pooled_path(rounds, &models, alpha, &mut progress.part(part(at), part(at + 1)))?;
            let error = path.selecting()[path.best_index()];
            if here.as_ref().is_none_or(|(before, _)| error < before.error) {
                here = Some((Choice { lifetime: path.best_lifetime(), alpha, error }, path));
            }
        }
        let Some((found, path)) = here else { break };
        best = found;
        if path.has_turned() {
            break;
        }
        terminal *= 2.0;
    }
    // A best lifetime of 0 is a constant model: rows without signal; keep a positive one, so that features exist.
    if best.lifetime == Lifetime::ZERO {
        best.lifetime = one.min(Lifetime::new(terminal)?);
    }
    Ok(best)
}

/// The rounds of held-out rows; none if there are too few rows.
fn rounds(params: &KernelRidgeParams, points: Points<'_>, targets: MatrixRef<'_>) -> Result<Vec<Round>> {
    let (trees, n_targets) = (params.forest_params(), targets.n_columns());
    let rows = 0..points.n_rows().min(targets.n_rows());
    let hashed = rows.map(|row| (keyed_hash(trees.seed, points.row(row)), row)).collect();
    let split = KERNEL.rounds(trees.validation, hashed)?;
    let part = |rows: &[usize]| -> Vec<f64> { rows.iter().flat_map(|row| points.row(*row)).collect() };
    let round = |(train, held): &(Vec<usize>, Vec<usize>)| Round {
        x: part(train),
        y: Matrix::from_fn(train.len(), n_targets, |row, t| targets.get(train[row], t)),
        x_held: part(held),
        y_held: held.iter().flat_map(|row| (0..n_targets).map(|t| targets.get(*row, t))).collect(),
    };
    Ok(split.iter().map(round).collect())
}

impl Round {
    fn n_dims(&self) -> usize {
        self.x.len() / self.y.n_rows()
    }

    fn held(&self) -> Result<Points<'_>> {
        Points::row_major(&self.x_held, self.n_dims())
    }

    fn fit(&self, params: &KernelRidgeParams, lifetime: Lifetime, alpha: f64) -> Result<KernelRidge> {
        let params = params.clone().alpha(alpha).tuning(KERNEL.trees, lifetime);
        params.solve(Points::row_major(&self.x, self.n_dims())?, self.y.view(), &mut Progress::none())
    }
}

/// The path of one α over all rounds.
fn pooled_path(
    rounds: &[Round],
    models: &[KernelRidge],
    alpha: f64,
    progress: &mut Progress<'_>,
) -> Result<RegularizationPath> {
    let mut paths = Vec::with_capacity(rounds.len());
    let share = |done: usize| done as f64 / rounds.len() as f64;
    for (at, (round, model)) in rounds.iter().zip(models).enumerate() {
        let held = round.held()?;
        let progress = &mut progress.part(share(at), share(at + 1));
        let found = model.path_with(alpha, &[(held, &round.y_held)], &PathMethod::Removal, progress)?;
        paths.push((found, held.n_rows() as f64));
    }
    Ok(RegularizationPath::pooled(&paths).expect("there are rounds"))
}

impl KernelRidge {
    /// Number of features C.
    pub fn n_features(&self) -> usize {
        self.model().coefficients().n_rows()
    }
}
