//! Leave-one-out errors of all rows of a small forest, for several κ at once.
//!
//! Leaving row i out of a block with n rows of weight 1 and sum S, whose parent believes a + b·yᵢ without it, gives
//! (S − yᵢ + κ(a + b·yᵢ))/(n − 1 + κ): again a number and a multiple of yᵢ, the same for all rows of the block. So a tree costs
//! one step per block, not one per row and level. [`Reader::without`], a row at a time, is the slow twin, and what rows of
//! other weights go by.

use crate::forest::LeafModel;
use crate::forest::regression::posterior::{BlockPath, Gaussian, Posterior, Reader};
use crate::forest::regression::targets::Targets;
use crate::forest::sample::{Pilot, Pilots};
use crate::tree::{Child, Kind, Locator};

/// Candidates for κ: the prior counts as much as that many rows.
pub(crate) const KAPPAS: [f64; 6] = [0.01, 0.05, 0.2, 0.8, 3.2, 12.8];
/// Each doubling of the number of rows lowers the error by so much of what the one before did.
const DAMPING: f64 = 0.9;

/// What leaving out every row of a small forest says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Found {
    pub(crate) kappa: f64,
    /// The noise variance that makes the errors as large as predicted; none where there is nothing to leave out.
    noise: Option<f64>,
    /// The squared error over that of half as many points, and the number of rows.
    ratio: f64,
    n_rows: usize,
}

impl Found {
    /// The noise variance of a forest of so many rows: errors go on falling as they do from half of the sample to all of it, a
    /// little less with each doubling.
    pub(crate) fn noise(&self, n_rows: usize) -> Option<f64> {
        let doublings = libm::log2((n_rows as f64 / self.n_rows as f64).max(1.0));
        let damped = (1.0 - libm::pow(DAMPING, doublings)) / (1.0 - DAMPING);
        self.noise.map(|noise| noise * libm::pow(self.ratio, damped))
    }
}

/// What is asked of the rows of a small forest.
pub(crate) struct Question<'a> {
    pub(crate) target: usize,
    pub(crate) prior_mean: Option<f64>,
    /// Candidates, ascending.
    pub(crate) kappas: &'a [f64],
    pub(crate) leaf_model: LeafModel,
    /// Trees of the forest that κ is for.
    pub(crate) n_trees: usize,
}

impl Question<'_> {
    /// The κ of small leave-one-out error among the candidates, and the noise.
    pub(crate) fn answer(&self, pilots: &Pilots<Targets>) -> Found {
        let n_rows = pilots.whole.forest.store().n_rows();
        let usual = self.usual();
        let Some(all) = self.errors(&pilots.whole, self.kappas) else {
            return Found { kappa: self.kappas[usual], noise: None, ratio: 1.0, n_rows };
        };
        let chosen = chosen(&all, usual);
        let kappa = self.kappas[chosen];
        let mean_of = |what: fn(&Error) -> f64| all.iter().map(|e| what(&e[chosen])).sum::<f64>() / all.len() as f64;
        let square = mean_of(|e| e.square);
        // r² has mean σ²(1 + v/σ²) + spread over trees.
        let noise = (square - mean_of(|e| e.spread)) / (1.0 + mean_of(|e| e.variance));
        // A forest whose trees differ more than it errs has no noise to speak of; keep some, so that no density is a spike.
        let noise = noise.max(square * 0.05).max(f64::MIN_POSITIVE);
        let of_half = |half| self.errors(half, &[kappa]).unwrap_or_default();
        let halves: Vec<f64> = pilots.halves.iter().flat_map(of_half).map(|error| error[0].square).collect();
        let of_halves = halves.iter().sum::<f64>() / halves.len() as f64;
        let ratio = if of_halves > 0.0 { (square / of_halves).clamp(0.5, 1.0) } else { 1.0 };
        Found { kappa, noise: Some(noise), ratio, n_rows }
    }

    /// The number of the κ that is taken if the rows do not speak against it: about 2/M, since averaging M trees does part of
    /// what κ does (docs/streams.md).
    fn usual(&self) -> usize {
        let most = 2.0 / self.n_trees as f64;
        self.kappas.iter().rposition(|kappa| *kappa <= most).unwrap_or(0)
    }

    /// Errors of each row at each κ in a forest of as many trees as is asked for; none for fewer than two rows. Variances are
    /// in units of the noise.
    fn errors(&self, pilot: &Pilot<Targets>, kappas: &[f64]) -> Option<Vec<Vec<Error>>> {
        let rows = Rows::of(pilot, self.target);
        let (mean, variance) = pilot.labels.moments(self.target).filter(|_| rows.values.len() >= 2)?;
        let variance = positive(mean, variance);
        let gaussian = |kappa: &f64| Gaussian {
            prior_mean: self.prior_mean.unwrap_or(mean),
            prior_variance: variance,
            noise_variance: variance,
            kappa: *kappa,
        };
        let gaussians: Vec<Gaussian> = kappas.iter().map(gaussian).collect();
        let errors = if self.leaf_model == LeafModel::Hierarchical && !pilot.labels.is_weighted() {
            shared(pilot, self.target, &rows, &gaussians)
        } else {
            one_by_one(pilot, self.target, &rows, &gaussians, self.leaf_model)
        };
        let of_many = |error: &Error| error.of_many(pilot.forest.n_trees(), self.n_trees, variance);
        Some(errors.iter().map(|errors| errors.iter().map(of_many).collect()).collect())
    }
}

/// The candidate of smallest squared error, where what it gains on the usual one counts less two standard errors of it: few rows
/// with heavy tails say little.
fn chosen(all: &[Vec<Error>], usual: usize) -> usize {
    let n = all.len() as f64;
    let score = |at: usize| {
        if at == usual {
            return 0.0;
        }
        let gain = |errors: &Vec<Error>| errors[at].square - errors[usual].square;
        let mean = all.iter().map(gain).sum::<f64>() / n;
        let variance = all.iter().map(|errors| (gain(errors) - mean).powi(2)).sum::<f64>() / n;
        mean + 2.0 * (variance / n).sqrt()
    };
    let scores: Vec<f64> = (0..all[0].len()).map(score).collect();
    (0..scores.len()).fold(usual, |best, at| if scores[at] < scores[best] { at } else { best })
}

/// A variance for constant targets: any scale does, as long as it is positive.
pub(crate) fn positive(mean: f64, variance: f64) -> f64 {
    if variance > 0.0 { variance } else { mean.abs().max(1.0) * 1e-6 }
}

/// A row's squared error without it, the trees' mean predictive variance and the spread of their means.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Error {
    square: f64,
    variance: f64,
    spread: f64,
}

/// The rows of a small forest in the order of their points' hashes, which no order of arrival changes.
struct Rows {
    /// Point, target and weight.
    values: Vec<(u32, f64, f64)>,
    /// Where the rows of a point start, by point, if it has some.
    starts: Vec<u32>,
}

impl Rows {
    fn of(pilot: &Pilot<Targets>, target: usize) -> Self {
        let mut values = Vec::new();
        let mut starts = vec![0; pilot.forest.store().n_slots()];
        for point in pilot.points() {
            starts[point as usize] = values.len() as u32;
            values.extend(pilot.labels.values_of(point, target).iter().map(|(y, w)| (point, *y, *w)));
        }
        Self { values, starts }
    }

    /// The rows of a point.
    fn of_point(&self, point: u32, n: u32) -> std::ops::Range<usize> {
        let start = self.starts[point as usize] as usize;
        start..start + n as usize
    }
}

/// What the trees so far believe of each row at each κ: sums of means, of their squares, and of variances.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    mean: f64,
    square: f64,
    variance: f64,
}

impl Error {
    /// The error of M trees, from that of few: with spread s² between trees it is smaller by s²·(1/few − 1/M).
    fn of_many(&self, few: usize, many: usize, noise: f64) -> Self {
        let (few, many) = (few as f64, many as f64);
        // The spread about the mean of few trees is (1 − 1/few)·s².
        let spread = self.spread / (1.0 - 1.0 / few.max(2.0));
        Self {
            square: self.square - spread * (1.0 / few - 1.0 / many),
            variance: self.variance / noise,
            spread: spread * (1.0 - 1.0 / many),
        }
    }
}

impl Sum {
    fn add(&mut self, mean: f64, variance: f64) {
        self.mean += mean;
        self.square += mean * mean;
        self.variance += variance;
    }

    fn error(&self, y: f64, n_trees: usize) -> Error {
        let n = n_trees as f64;
        let mean = self.mean / n;
        let spread = (self.square / n - mean * mean).max(0.0);
        Error { square: (y - mean).powi(2), variance: self.variance / n, spread }
    }
}

/// What a block believes without one of its rows, at one κ: a + b·y, and the variance.
#[derive(Debug, Clone, Copy)]
struct Without {
    a: f64,
    b: f64,
    variance: f64,
}

fn shared(pilot: &Pilot<Targets>, target: usize, rows: &Rows, gaussians: &[Gaussian]) -> Vec<Vec<Error>> {
    let (store, k) = (pilot.forest.store(), gaussians.len());
    let mut sums = vec![Sum::default(); rows.values.len() * k];
    // Blocks on the way, one after the other.
    let mut way: Vec<Without> = Vec::new();
    for (tree, node_sums) in pilot.forest.trees() {
        let reader = Reader { tree, sums: node_sums, targets: &pilot.labels };
        way.clear();
        way.extend(gaussians.iter().map(|g| Without { a: g.prior_mean, b: 0.0, variance: 0.0 }));
        let mut todo: Vec<(Child, usize)> = vec![(tree.root(), 1)];
        while let Some((child, depth)) = todo.pop() {
            way.truncate(depth * k);
            let n_left = reader.weight(child) - 1.0;
            if n_left > 0.0 {
                let sum = reader.sum(child, target);
                for (at, gaussian) in gaussians.iter().enumerate() {
                    let (above, total) = (way[(depth - 1) * k + at], n_left + gaussian.kappa);
                    let shrink = gaussian.kappa / total;
                    way.push(Without {
                        a: (sum + gaussian.kappa * above.a) / total,
                        b: (gaussian.kappa * above.b - 1.0) / total,
                        variance: gaussian.noise_variance / total + shrink * shrink * above.variance,
                    });
                }
            }
            let mut leave_out = |range: std::ops::Range<usize>| {
                for row in range {
                    let y = rows.values[row].1;
                    for (at, gaussian) in gaussians.iter().enumerate() {
                        let slot = &mut sums[row * k + at];
                        if n_left <= 0.0 && depth <= 2 {
                            // Its place leaves the root's block then, or is all of it.
                            slot.add(gaussian.prior_mean, gaussian.prior_variance);
                            continue;
                        }
                        let Without { a, b, variance } = way[way.len() - k + at];
                        slot.add(a + b * y, variance);
                    }
                }
            };
            match tree.end_of_run(child).kind() {
                Kind::Single(point) => leave_out(rows.of_point(point, store.multiplicity(point))),
                Kind::Leaf(id) => {
                    for point in tree.leaf(id).points() {
                        leave_out(rows.of_point(*point, store.multiplicity(*point)));
                    }
                }
                Kind::Inner(id) => {
                    let [below, above] = tree.children(tree.node(id));
                    todo.extend([(above, depth + 1), (below, depth + 1)]);
                }
                Kind::Empty => {}
            }
        }
    }
    let n_trees = pilot.forest.n_trees();
    let errors = |(sums, (_, y, _)): (&[Sum], &(u32, f64, f64))| sums.iter().map(|s| s.error(*y, n_trees)).collect();
    sums.chunks_exact(k).zip(&rows.values).map(errors).collect()
}

fn one_by_one(
    pilot: &Pilot<Targets>,
    target: usize,
    rows: &Rows,
    gaussians: &[Gaussian],
    leaf_model: LeafModel,
) -> Vec<Vec<Error>> {
    let (forest, mut way) = (&pilot.forest, BlockPath::default());
    let mut sums = vec![Sum::default(); rows.values.len() * gaussians.len()];
    for (tree, node_sums) in forest.trees() {
        let reader = Reader { tree, sums: node_sums, targets: &pilot.labels };
        let mut locator = Locator::new(tree, forest.domain(), forest.store(), forest.domain().lifetime());
        for ((point, y, weight), sums) in rows.values.iter().zip(sums.chunks_exact_mut(gaussians.len())) {
            way.follow(&mut locator, forest.store().point(*point));
            for (gaussian, sum) in gaussians.iter().zip(sums) {
                let Posterior { mean, variance } = reader.without(&way, *y, *weight, target, gaussian, leaf_model);
                sum.add(mean, variance);
            }
        }
    }
    let errors = |(sums, (_, y, _)): (&[Sum], &(u32, f64, f64))| {
        sums.iter().map(|sum| sum.error(*y, forest.n_trees())).collect()
    };
    sums.chunks_exact(gaussians.len()).zip(&rows.values).map(errors).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forest::RegressionParams;
    use crate::forest::sample::SharedAutomatic;
    use crate::process::NodeKey;
    use crate::{FitOptions, Lifetime, Points};

    #[test]
    fn blocks_at_once_are_rows_one_by_one() {
        for (n, n_dims, lifetime) in [(1, 1, 3.0), (2, 1, f64::INFINITY), (70, 2, f64::INFINITY), (90, 3, 2.0)] {
            let draw = |i: u64| NodeKey::root(7, i).draw(0).uniform();
            // Every fourth row repeats the one before.
            let place = |row: u64| if row % 4 == 3 { row - 1 } else { row };
            let x: Vec<f64> = (0..n).flat_map(|r| (0..n_dims).map(move |d| draw(place(r) * 8 + d))).collect();
            let y: Vec<f64> = (0..n).map(|r| draw(1000 + r)).collect();
            let points = Points::row_major(&x, n_dims as usize).unwrap();
            let lifetime = Lifetime::new(lifetime).unwrap();
            let model = RegressionParams::default().fit_at(lifetime, points, &y, FitOptions::default()).unwrap();
            let core = &model.core;
            SharedAutomatic::<Targets, ()>::default()
                .get(&core.forest, &core.targets, lifetime, 5, |pilots| {
                    let pilot = &pilots.whole;
                    let rows = Rows::of(pilot, 0);
                    assert_eq!(rows.values.len(), y.len());
                    let gaussian =
                        |kappa| Gaussian { prior_mean: 0.3, prior_variance: 2.0, noise_variance: 0.7, kappa };
                    let gaussians: Vec<Gaussian> = KAPPAS.iter().map(|kappa| gaussian(*kappa)).collect();
                    let fast = shared(pilot, 0, &rows, &gaussians);
                    let slow = one_by_one(pilot, 0, &rows, &gaussians, LeafModel::Hierarchical);
                    for (fast, slow) in fast.iter().flatten().zip(slow.iter().flatten()) {
                        for (a, b) in
                            [(fast.square, slow.square), (fast.variance, slow.variance), (fast.spread, slow.spread)]
                        {
                            assert!((a - b).abs() <= 1e-12 * (1.0 + b), "{fast:?} {slow:?}");
                        }
                    }
                })
                .unwrap();
        }
    }
}
