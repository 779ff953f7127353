//! Automatic prior and noise: functions of the stored rows, whatever the order they came in.
//!
//! Mean and variance of the prior are those of all targets; κ and the noise come from a [sample](crate::forest::sample). The rules
//! of models from files of version 1 are kept beside them (docs/design.md, "Automatic
//! values").

use crate::parallel::prelude::*;

use crate::Result;
use crate::forest::regression::leave_one_out::{Noise, Question, positive};
use crate::forest::regression::posterior::{BlockPath, Gaussian, Posterior, Reader};
use crate::forest::regression::targets::{Sums, Targets};
use crate::forest::sample::{Followed, Pilot, SharedAutomatic};
use crate::forest::{Forest, LeafModel};
use crate::select::split::keyed_hash;
use crate::tree::Locator;

/// Rows and trees that the leave-one-out estimate looks at, at most.
const MAX_ROWS: usize = 512;
const MAX_TREES: usize = 32;
/// Candidates for κ of models of version 1.
const KAPPAS_IN_VERSION_1: [f64; 10] = [0.01, 0.03, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8];
/// Trees over the sample, at most.
const SAMPLE_TREES: usize = 8;

/// What the user fixed; the rest is automatic.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub struct Prior {
    /// Mean of the prior; automatic: the mean of the targets.
    pub mean: Option<f64>,
    /// Variance of the prior; automatic: the targets' variance.
    pub variance: Option<f64>,
    /// Variance of the noise; automatic: what makes the leave-one-out errors as large as predicted. Where it or the
    /// prior's variance is automatic, κ is the one of smallest leave-one-out error.
    pub noise: Option<f64>,
    /// How many rows the parent's mean counts as; automatic: the quotient of noise and prior variance where both are given, else
    /// the one of smallest leave-one-out error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kappa: Option<f64>,
}

impl Prior {
    /// Refuses variances that mean nothing.
    ///
    /// An infinite prior variance has nothing to say about a cell without rows, nor far from the data, so it is
    /// refused; use a large finite one.
    ///
    /// # Errors
    /// [`crate::Error::InvalidParameter`].
    pub fn check(&self) -> crate::Result<()> {
        let refuse = |name, value, expected| Err(crate::Error::InvalidParameter { name, value, expected });
        match (self.mean, self.variance, self.noise) {
            (Some(m), _, _) if !m.is_finite() => refuse("prior_mean", m, "finite"),
            (_, Some(v), _) if !(v > 0.0 && v.is_finite()) => {
                refuse("prior_variance", v, "finite and > 0 (an empty cell would have no prediction)")
            }
            (_, _, Some(n)) if !(n >= 0.0 && n.is_finite()) => refuse("noise_variance", n, "finite and ≥ 0"),
            _ => match self.kappa {
                Some(kappa) if !(kappa >= 0.0 && kappa.is_finite()) => refuse("kappa", kappa, "finite and ≥ 0"),
                _ => Ok(()),
            },
        }
    }
}

/// κ of each target, and its noise, as leaving rows of a sample out says.
pub(crate) type FromSample = SharedAutomatic<Targets, Vec<f64>, Vec<Noise>>;

/// Prior and noise of each target at the full lifetime of the forest. Means of predictions need κ alone: the noise is found where
/// `with_noise` says so, and stands for nothing else.
pub(crate) fn resolve(
    prior: &Prior,
    leaf_model: LeafModel,
    (forest, targets): (&Forest<Sums>, &Targets),
    from_sample: &FromSample,
    with_noise: bool,
) -> Result<Vec<Gaussian>> {
    let given = prior.kappa.or_else(|| Some(prior.noise? / prior.variance?));
    let n_targets = targets.n_targets();
    let question = |target| Question { target, prior_mean: prior.mean, leaf_model, n_trees: forest.n_trees() };
    let followed = Followed { forest, labels: targets, lifetime: forest.domain().lifetime(), n_trees: SAMPLE_TREES };
    let kappas = |pilot: &Pilot<Targets>| -> Vec<f64> {
        (0..n_targets).map(|target| given.unwrap_or_else(|| question(target).kappa(pilot))).collect()
    };
    let (kappas, noises) = match (given, prior.noise) {
        (_, None) if with_noise => from_sample.get_more(&followed, kappas, |kappas, pilots| {
            kappas.iter().enumerate().map(|(target, kappa)| question(target).noise(*kappa, pilots)).collect()
        })?,
        (Some(kappa), _) => (vec![kappa; n_targets], Vec::new()),
        (None, _) => (from_sample.get(&followed, kappas)?, Vec::new()),
    };
    let gaussian = |target: usize| {
        let (mean, variance) = targets.moments(target).unwrap_or((0.0, 1.0));
        let variance = positive(mean, variance);
        let found = noises.get(target).and_then(|noise| noise.variance(forest.n_rows_in_all()));
        Gaussian {
            prior_mean: prior.mean.unwrap_or(mean),
            prior_variance: prior.variance.unwrap_or(variance),
            noise_variance: prior.noise.or(found).unwrap_or(variance),
            kappa: kappas[target],
        }
    };
    Ok((0..n_targets).map(gaussian).collect())
}

/// Weighted mean and variance of a target.
fn moments(targets: &Targets, target: usize) -> (f64, f64) {
    // Sorted, so that the sum does not depend on the order of arrival.
    let mut rows: Vec<(f64, f64)> = targets.rows().map(|(_, y, w)| (y[target], w)).collect();
    rows.sort_unstable_by(|a, b| a.partial_cmp(b).expect("targets are finite"));
    let total: f64 = rows.iter().map(|r| r.1).sum();
    if total <= 0.0 {
        return (0.0, 1.0);
    }
    let mean = rows.iter().map(|(y, w)| w * y).sum::<f64>() / total;
    let variance = rows.iter().map(|(y, w)| w * (y - mean).powi(2)).sum::<f64>() / total;
    (mean, variance)
}

/// Prior and noise of one target as models of version 1 have it: from all rows, in the forest itself.
pub(crate) fn resolve_in_version_1(
    prior: &Prior,
    leaf_model: LeafModel,
    forest: &Forest<Sums>,
    targets: &Targets,
    target: usize,
) -> Gaussian {
    let (mean, variance) = moments(targets, target);
    // Constant targets: any scale does, as long as it is positive.
    let variance = if variance > 0.0 { variance } else { mean.abs().max(1.0) * 1e-6 };
    let prior_mean = prior.mean.unwrap_or(mean);
    let prior_variance = prior.variance.unwrap_or(variance);
    if let (Some(prior_variance), Some(noise_variance), None) = (prior.variance, prior.noise, prior.kappa) {
        return Gaussian { prior_mean, prior_variance, noise_variance, kappa: noise_variance / prior_variance };
    }
    // Means depend on κ alone, so κ is chosen first and the noise is read off the errors that remain.
    let noise_variance = prior.noise.unwrap_or(variance);
    let candidates = KAPPAS_IN_VERSION_1.map(|kappa| Gaussian { prior_mean, prior_variance, noise_variance, kappa });
    let (chosen, noise) = best_in_version_1(&candidates, leaf_model, forest, targets, target);
    let noise_variance = prior.noise.or(noise).unwrap_or(noise_variance);
    Gaussian { noise_variance, ..chosen }
}

/// The candidate of smallest leave-one-out error over a keyed sample of rows, and the noise variance that makes its
/// errors as large as predicted.
fn best_in_version_1(
    candidates: &[Gaussian],
    leaf_model: LeafModel,
    forest: &Forest<Sums>,
    targets: &Targets,
    target: usize,
) -> (Gaussian, Option<f64>) {
    let rows = sample_rows(forest, targets, target);
    if rows.len() < 2 {
        return (candidates[candidates.len() / 2], None);
    }
    let n_trees = forest.n_trees().min(MAX_TREES);
    let errors: Vec<Vec<Loo>> = rows
        .par_iter()
        .map(|(point, y, weight)| {
            let x = forest.store().point(*point);
            candidates
                .iter()
                .map(|gaussian| {
                    let mut loo = Loo::default();
                    let mut path = BlockPath::default();
                    for (tree, sums) in &forest.trees()[..n_trees] {
                        let reader = Reader { tree, sums, targets };
                        let domain = forest.domain();
                        path.follow(&mut Locator::new(tree, domain, forest.store(), domain.lifetime()), x);
                        loo.add(reader.without(&path, *y, *weight, target, gaussian, leaf_model));
                    }
                    loo.finish(*y, n_trees)
                })
                .collect()
        })
        .collect();
    let total = |c: usize, f: fn(&Loo) -> f64| errors.iter().map(|e| f(&e[c])).sum::<f64>() / errors.len() as f64;
    let chosen =
        (0..candidates.len()).fold(0, |b, c| if total(c, |l| l.square) < total(b, |l| l.square) { c } else { b });
    // r² has mean σ²(1 + v/σ²) + spread over trees.
    let scale = candidates[chosen].noise_variance;
    let relative = if scale > 0.0 { total(chosen, |l| l.mean_variance) / scale } else { 0.0 };
    let square = total(chosen, |l| l.square);
    let noise = (square - total(chosen, |l| l.spread)) / (1.0 + relative);
    // A forest whose trees differ more than it errs has no noise to speak of; keep some, so that no density is a spike.
    (candidates[chosen], Some(noise.max(square * 0.05).max(f64::MIN_POSITIVE)))
}

/// A row's leave-one-out result over the trees.
#[derive(Debug, Clone, Copy, Default)]
struct Loo {
    sum: f64,
    sum_squares: f64,
    mean_variance: f64,
    square: f64,
    spread: f64,
}

impl Loo {
    fn add(&mut self, posterior: Posterior) {
        self.sum += posterior.mean;
        self.sum_squares += posterior.mean * posterior.mean;
        self.mean_variance += posterior.variance;
    }

    fn finish(mut self, y: f64, n_trees: usize) -> Self {
        let n = n_trees as f64;
        let mean = self.sum / n;
        self.square = (y - mean).powi(2);
        self.spread = (self.sum_squares / n - mean * mean).max(0.0);
        self.mean_variance /= n;
        self
    }
}

impl Reader<'_> {
    /// What the tree without this row would believe at its place, in O(depth).
    ///
    /// Where the row is the last of its block, the cut above no longer separates anything: the row's place leaves
    /// the block above (docs/design.md, "Regression").
    pub(crate) fn without(
        &self,
        path: &BlockPath,
        y: f64,
        weight: f64,
        target: usize,
        gaussian: &Gaussian,
        leaf_model: LeafModel,
    ) -> Posterior {
        let rest = |child| {
            // A weight that is all of the block's, but for rounding, leaves nothing.
            let left = self.weight(child) - weight;
            if left <= 1e-12 * weight { 0.0 } else { left }
        };
        if leaf_model == LeafModel::Independent {
            let last = path.blocks[path.blocks.len() - 1].child;
            let sum = if rest(last) > 0.0 { self.sum(last, target) - weight * y } else { 0.0 };
            return Posterior::after(Posterior::above_root(gaussian), sum, rest(last), gaussian);
        }
        let mut posterior = Posterior::above_root(gaussian);
        for (depth, block) in path.blocks.iter().enumerate() {
            let left = rest(block.child);
            if left == 0.0 {
                return if depth <= 1 { Posterior::prior(gaussian) } else { posterior };
            }
            posterior = Posterior::after(posterior, self.sum(block.child, target) - weight * y, left, gaussian);
        }
        posterior
    }
}

/// A sample of rows that depends on coordinates only: those of smallest keyed hash.
fn sample_rows(forest: &Forest<Sums>, targets: &Targets, target: usize) -> Vec<(u32, f64, f64)> {
    let mut rows: Vec<(u64, u32, f64, f64)> = targets
        .rows()
        .map(|(point, y, w)| {
            (keyed_hash(forest.domain().seed(), forest.store().point(point).iter().copied()), point, y[target], w)
        })
        .collect();
    let order = |a: &(u64, u32, f64, f64), b: &(u64, u32, f64, f64)| {
        (a.0, a.2, a.3).partial_cmp(&(b.0, b.2, b.3)).expect("targets are finite")
    };
    if rows.len() > MAX_ROWS {
        rows.select_nth_unstable_by(MAX_ROWS, order);
        rows.truncate(MAX_ROWS);
    }
    rows.sort_unstable_by(order);
    rows.into_iter().map(|(_, p, y, w)| (p, y, w)).collect()
}
