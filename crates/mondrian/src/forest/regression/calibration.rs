//! Predictive distributions that hold as much as they say: calibrated on rows that were left out.
//!
//! Every tree can leave out a row exactly ([`Reader::without`]), so a forest tells what it would have predicted for one of its rows had it
//! never seen it. The errors of a keyed sample of the rows, each divided by the deviation that the trees predict there, are as those of
//! new rows; their quantiles replace those of the normal distribution. It is a function of the set of rows, found when a deviation or
//! a quantile is first asked for (docs/regression.md, "Intervals").

use crate::Lifetime;
use crate::forest::LeafModel;
use crate::forest::regression::posterior::{BlockPath, Gaussian, Mixture, Posterior, Reader};
use crate::forest::regression::targets::{Sums, Targets};
use crate::forest::{Forest, sample};
use crate::normal;
use crate::parallel::prelude::*;
use crate::tree::Locator;

/// Fewer rows than this say nothing about the shape of a distribution.
const FEWEST_ROWS: usize = 20;
/// Trees that leave rows out, at most. Errors of more trees are smaller by what the trees' spread over these is more than over those.
const MOST_TREES: usize = 32;
/// Points per piece of work.
const CHUNK: usize = 64;

/// How far off rows are that were left out, in predicted deviations.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Calibration {
    /// Root mean squared error over root mean predicted variance.
    scale: f64,
    /// Errors in predicted deviations, ascending, each with the share of new rows expected below it.
    errors: Vec<(f64, f64)>,
}

/// A forest with the sums of its cells, which is asked without some rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Model<'a> {
    pub(crate) forest: &'a Forest<Sums>,
    pub(crate) targets: &'a Targets,
    pub(crate) leaf_model: LeafModel,
}

/// Points and the targets of their rows: those of the forest, or a sample of them where it was finished from summaries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowsOf<'a> {
    pub(crate) forest: &'a Forest<Sums>,
    pub(crate) targets: &'a Targets,
}

/// A row without which the forest has been asked.
#[derive(Debug, Clone, Copy)]
struct LeftOut {
    error: f64,
    /// Predicted, with noise.
    variance: f64,
    /// That of the trees' means.
    spread: f64,
    weight: f64,
}

impl Calibration {
    /// The calibration of each target at a lifetime; none where there are too few rows.
    pub(crate) fn of(model: Model<'_>, rows: RowsOf<'_>, gaussians: &[Gaussian], view: Lifetime) -> Vec<Option<Self>> {
        let points: Vec<u32> = rows.forest.sample().smallest(sample::CALIBRATED).map(|(_, point)| point).collect();
        let leave_out = |target: usize| {
            let gaussian = &gaussians[target];
            let chunks: Vec<Vec<LeftOut>> = points
                .par_chunks(CHUNK)
                .map(|points| LeftOut::all_of(points, model, rows, target, gaussian, view))
                .collect();
            Self::from_rows(&chunks.concat(), model.forest.n_trees())
        };
        (0..rows.targets.n_targets()).map(leave_out).collect()
    }

    fn from_rows(rows: &[LeftOut], n_trees: usize) -> Option<Self> {
        if rows.len() < FEWEST_ROWS {
            return None;
        }
        let total: f64 = rows.iter().map(|row| row.weight).sum();
        let square: f64 = rows.iter().map(|row| row.weight * row.error * row.error).sum();
        let spread: f64 = rows.iter().map(|row| row.weight * row.spread).sum();
        let predicted: f64 = rows.iter().map(|row| row.weight * row.variance).sum();
        // Nothing to go by where all targets are the same.
        if !(square > 0.0 && predicted > 0.0 && (square / predicted).is_finite()) {
            return None;
        }
        let of_fewer = spread * (1.0 / n_trees.min(MOST_TREES) as f64 - 1.0 / n_trees as f64);
        let smaller = (1.0 - of_fewer / square).max(0.5).sqrt();
        let mut errors: Vec<(f64, f64)> =
            rows.iter().map(|row| (smaller * row.error / row.variance.sqrt(), row.weight)).collect();
        errors.sort_unstable_by(|a, b| a.partial_cmp(b).expect("errors are finite"));
        // One more row falls between any two of n with the same probability: k of n lie below a share of k/(n + 1).
        let (whole, mut below) = (total * (1.0 + 1.0 / rows.len() as f64), 0.0);
        for (_, weight) in &mut errors {
            below += *weight;
            *weight = below / whole;
        }
        Some(Self { scale: smaller * (square / predicted).sqrt(), errors })
    }

    /// What a predicted variance, noise included, has to be multiplied by to be that of new rows' errors. Where there is nothing but
    /// the prior, it stays as it is.
    pub(crate) fn deviation(&self, prior_share: f64) -> f64 {
        self.scale + prior_share * (1.0 - self.scale)
    }

    /// The quantile of errors in predicted deviations.
    pub(crate) fn quantile(&self, p: f64) -> f64 {
        let at = self.errors.partition_point(|(_, share)| *share < p);
        let beyond = |(error, share): (f64, f64)| error + self.scale * (normal::quantile(p) - normal::quantile(share));
        let Some(next) = self.errors.get(at) else { return beyond(self.errors[at - 1]) };
        let Some(before) = at.checked_sub(1).map(|at| self.errors[at]) else { return beyond(*next) };
        before.0 + (next.0 - before.0) * ((p - before.1) / (next.1 - before.1))
    }
}

/// How much of what the trees say is the prior's own, by their own variances on average: 1 far from all rows, about 0 where rows are.
pub(crate) fn prior_share(within: f64, gaussian: &Gaussian) -> f64 {
    (within / gaussian.prior_variance).min(1.0).powi(8)
}

impl LeftOut {
    /// All rows of some points, each left out.
    fn all_of(
        points: &[u32],
        Model { forest, targets, leaf_model }: Model<'_>,
        rows_of: RowsOf<'_>,
        target: usize,
        gaussian: &Gaussian,
        view: Lifetime,
    ) -> Vec<Self> {
        let row = |point: &u32| (rows_of.forest.store().point(*point), rows_of.targets.values_of(*point, target));
        let rows: Vec<_> = points.iter().map(row).collect();
        let n_rows = rows.iter().map(|(_, values)| values.len()).sum();
        let mut mixtures = vec![(Mixture::about(gaussian.prior_mean), 0.0); n_rows];
        let (n_trees, mut path) = (forest.n_trees().min(MOST_TREES), BlockPath::default());
        for (tree, sums) in &forest.trees()[..n_trees] {
            let reader = Reader { tree, sums, targets };
            let mut locator = Locator::new(tree, forest.domain(), forest.store(), view);
            let mut mixtures = mixtures.iter_mut();
            for (x, values) in &rows {
                path.follow(&mut locator, x);
                for ((y, weight), (mixture, within)) in values.iter().zip(&mut mixtures) {
                    let posterior = reader.without(&path, *y, *weight, target, gaussian, leaf_model);
                    mixture.add(1.0 / n_trees as f64, posterior);
                    *within += posterior.variance / n_trees as f64;
                }
            }
        }
        let values = rows.iter().flat_map(|(_, values)| values);
        let left_out = |((y, weight), (mixture, within)): (&(f64, f64), (Mixture, f64))| {
            let Posterior { mean, variance } = mixture.posterior();
            let spread = (variance - within).max(0.0);
            Self { error: y - mean, variance: variance + gaussian.noise_variance, spread, weight: *weight }
        };
        values.zip(mixtures).map(left_out).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_errors_and_go_on_as_normal_ones() {
        let row = |error: f64| LeftOut { error, variance: 4.0, spread: 2.0, weight: 1.0 };
        assert_eq!(Calibration::from_rows(&[row(1.0); 19], 9), None);
        assert_eq!(Calibration::from_rows(&[row(0.0); 30], 9), None);
        let rows: Vec<LeftOut> = (1..100).map(|k| row(f64::from(k) - 50.0)).collect();
        let found = Calibration::from_rows(&rows, 32).unwrap();
        assert_eq!((found.quantile(0.5), found.quantile(0.25)), (0.0, -12.5));
        assert!((found.quantile(0.253) + 12.35).abs() < 1e-12);
        let tail = |p: f64| found.quantile(p);
        assert!(tail(0.001) < tail(0.01) && tail(0.01) == -24.5 && tail(0.999) > tail(0.99));
        let mean_square = rows.iter().map(|row| row.error * row.error).sum::<f64>() / rows.len() as f64;
        assert!((found.deviation(0.0) - (mean_square / 4.0).sqrt()).abs() < 1e-12 && found.deviation(1.0) == 1.0);
        // 64 trees are off by less than the 32 that were asked: by 2/32 − 2/64 of a square.
        let more = Calibration::from_rows(&rows, 64).unwrap();
        let smaller = (1.0 - (2.0 / 64.0) / mean_square).sqrt();
        assert!((more.quantile(0.25) / found.quantile(0.25) - smaller).abs() < 1e-12);
    }
}
