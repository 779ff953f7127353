//! Leave-one-out errors of all rows of a small forest, for several κ at once.
//!
//! Leaving row i out of a block with n rows of weight 1 and sum S, whose parent believes a + b·yᵢ without it, gives
//! (S − yᵢ + κ(a + b·yᵢ))/(n − 1 + κ): again a number and a multiple of yᵢ, the same for all rows of the block. So a tree costs
//! one step per block, not one per row and level. [`Reader::without`], a row at a time, is the slow twin, and what rows of
//! other weights go by.

#![expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]

use crate::forest::LeafModel;
use crate::forest::regression::posterior::{BlockPath, Gaussian, Reader};
use crate::forest::regression::targets::Targets;
use crate::forest::sample::{Pilot, Pilots};
use crate::simd::vectorise;
use crate::tree::{Kind, Locator};

/// Candidates for κ: the prior counts as much as that many rows.
pub(crate) const KAPPAS: [f64; 6] = [0.01, 0.05, 0.2, 0.8, 3.2, 12.8];
/// The same with as many more of the last as make vectors of them; those are never better than it, and of equals the first is taken.
const PADDED_KAPPAS: [f64; 8] = [0.01, 0.05, 0.2, 0.8, 3.2, 12.8, 12.8, 12.8];
/// Each doubling of the number of rows lowers the error by so much of what the one before did.
const DAMPING: f64 = 0.9;

/// What leaving out every row of a small forest says of the noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Noise {
    /// The variance that makes the errors as large as predicted; none where there is nothing to leave out.
    variance: Option<f64>,
    /// The squared error over that of half as many points, and the number of rows.
    ratio: f64,
    n_rows: usize,
}

impl Noise {
    /// The noise variance of a forest of so many rows: errors go on falling as they do from half of the sample to all of it, a
    /// little less with each doubling.
    pub(crate) fn variance(&self, n_rows: usize) -> Option<f64> {
        let doublings = libm::log2((n_rows as f64 / self.n_rows as f64).max(1.0));
        let damped = (1.0 - libm::pow(DAMPING, doublings)) / (1.0 - DAMPING);
        self.variance.map(|variance| variance * libm::pow(self.ratio, damped))
    }
}

/// What is asked of the rows of a small forest.
pub(crate) struct Question {
    pub(crate) target: usize,
    pub(crate) prior_mean: Option<f64>,
    pub(crate) leaf_model: LeafModel,
    /// Trees of the forest that κ is for.
    pub(crate) n_trees: usize,
}

impl Question {
    /// The κ of small leave-one-out error among the candidates.
    pub(crate) fn kappa(&self, pilot: &Pilot<Targets>) -> f64 {
        // Taken if the rows do not speak against it: averaging M trees does part of what κ does (docs/streams.md).
        let most = 2.0 / self.n_trees as f64;
        let usual = KAPPAS.iter().rposition(|kappa| *kappa <= most).unwrap_or(0);
        // Variances decide nothing here.
        PADDED_KAPPAS[self.errors::<8, 0>(pilot, PADDED_KAPPAS).map_or(usual, |errors| chosen(&errors, usual))]
    }

    /// The noise at a κ.
    pub(crate) fn noise(&self, kappa: f64, pilots: &Pilots<'_, Targets>) -> Noise {
        let n_rows = pilots.whole.forest.store().n_rows();
        let Some(all) = self.errors::<1, 1>(pilots.whole, [kappa]) else {
            return Noise { variance: None, ratio: 1.0, n_rows };
        };
        let mean_of = |what: fn(&Error) -> f64| all.iter().map(|[e]| what(e)).sum::<f64>() / all.len() as f64;
        let square = mean_of(|e| e.square);
        // r² has mean σ²(1 + v/σ²) + spread over trees.
        let noise = (square - mean_of(|e| e.spread)) / (1.0 + mean_of(|e| e.variance));
        // A forest whose trees differ more than it errs has no noise to speak of; keep some, so that no density is a spike.
        let noise = noise.max(square * 0.05).max(f64::MIN_POSITIVE);
        let of_half = |half| self.errors::<1, 1>(half, [kappa]).unwrap_or_default();
        let halves: Vec<f64> = pilots.halves.iter().flat_map(of_half).map(|[error]| error.square).collect();
        let of_halves = halves.iter().sum::<f64>() / halves.len() as f64;
        let ratio = if of_halves > 0.0 { (square / of_halves).clamp(0.5, 1.0) } else { 1.0 };
        Noise { variance: Some(noise), ratio, n_rows }
    }

    /// Errors of each row at each κ in a forest of as many trees as is asked for; none for fewer than two rows. Variances are
    /// in units of the noise, and found at the first V of them: none or all.
    fn errors<const K: usize, const V: usize>(
        &self,
        pilot: &Pilot<Targets>,
        kappas: [f64; K],
    ) -> Option<Vec<[Error; K]>> {
        let rows = Rows::of(pilot, self.target);
        let (mean, variance) = pilot.labels.moments(self.target).filter(|_| rows.values.len() >= 2)?;
        let variance = positive(mean, variance);
        let gaussians = kappas.map(|kappa| Gaussian {
            prior_mean: self.prior_mean.unwrap_or(mean),
            prior_variance: variance,
            noise_variance: variance,
            kappa,
        });
        let mut errors = if self.leaf_model == LeafModel::Hierarchical && !pilot.labels.is_weighted() {
            shared::<K, V>(pilot, self.target, &rows, &gaussians)
        } else {
            one_by_one(pilot, self.target, &rows, &gaussians, self.leaf_model)
        };
        let (few, many) = (pilot.forest.n_trees(), self.n_trees);
        errors.iter_mut().flatten().for_each(|error| *error = error.of_many(few, many, variance));
        Some(errors)
    }
}

/// The candidate of smallest squared error, where what it gains on the usual one counts less two standard errors of it: few rows
/// with heavy tails say little.
fn chosen<const K: usize>(all: &[[Error; K]], usual: usize) -> usize {
    let n = all.len() as f64;
    let score = |at: usize| {
        if at == usual {
            return 0.0;
        }
        let gain = |errors: &[Error; K]| errors[at].square - errors[usual].square;
        let mean = all.iter().map(gain).sum::<f64>() / n;
        let variance = all.iter().map(|errors| (gain(errors) - mean).powi(2)).sum::<f64>() / n;
        mean + 2.0 * (variance / n).sqrt()
    };
    let scores: [f64; K] = std::array::from_fn(score);
    (0..K).fold(usual, |best, at| if scores[at] < scores[best] { at } else { best })
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
            pilot.labels.each_value_of(point, target, |y, w| values.push((point, y, w)));
        }
        Self { values, starts }
    }

    /// The rows of a point.
    fn of_point(&self, point: u32, n: u32) -> std::ops::Range<usize> {
        let start = self.starts[point as usize] as usize;
        start..start + n as usize
    }
}

/// What the trees so far believe of a row at each of K κ: sums of means, of their squares, and of variances at the first V.
#[derive(Debug, Clone, Copy)]
struct Sum<const K: usize, const V: usize> {
    mean: [f64; K],
    square: [f64; K],
    variance: [f64; V],
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

impl<const K: usize, const V: usize> Sum<K, V> {
    const ZERO: Self = Self { mean: [0.0; K], square: [0.0; K], variance: [0.0; V] };

    /// Adds means and variances. One loop for each number, so that several κ are done at once.
    #[inline(always)]
    fn add(&mut self, means: &[f64; K], variances: &[f64; V]) {
        for (sum, mean) in self.mean.iter_mut().zip(means) {
            *sum += mean;
        }
        for (sum, mean) in self.square.iter_mut().zip(means) {
            *sum += mean * mean;
        }
        for (sum, variance) in self.variance.iter_mut().zip(variances) {
            *sum += variance;
        }
    }

    fn errors(&self, y: f64, n_trees: usize) -> [Error; K] {
        let n = n_trees as f64;
        std::array::from_fn(|at| {
            let mean = self.mean[at] / n;
            let spread = (self.square[at] / n - mean * mean).max(0.0);
            let variance = self.variance.get(at).map_or(0.0, |variance| variance / n);
            Error { square: (y - mean).powi(2), variance, spread }
        })
    }
}

/// What a block believes without one of its rows, at each of K κ: a + b·y, and the variance at the first V.
#[derive(Debug, Clone, Copy)]
struct Without<const K: usize, const V: usize> {
    a: [f64; K],
    b: [f64; K],
    variance: [f64; V],
}

impl<const K: usize, const V: usize> Without<K, V> {
    fn above_root(gaussians: &[Gaussian; K]) -> Self {
        Self { a: gaussians.map(|g| g.prior_mean), b: [0.0; K], variance: [0.0; V] }
    }

    /// Of a block that keeps `n_left` rows, whose sum with all rows is given, below this one. One loop for each number: they are
    /// divisions, several of which are done at once.
    #[inline(always)]
    fn below(&self, gaussians: &[Gaussian; K], kappas: &[f64; K], n_left: f64, sum: f64) -> Self {
        let mut totals = *kappas;
        totals.iter_mut().for_each(|total| *total += n_left);
        let (mut a, mut b, mut variance) = ([0.0; K], [0.0; K], [0.0; V]);
        for at in 0..K {
            a[at] = (sum + kappas[at] * self.a[at]) / totals[at];
        }
        for at in 0..K {
            b[at] = (kappas[at] * self.b[at] - 1.0) / totals[at];
        }
        for at in 0..V {
            let shrink = kappas[at] / totals[at];
            variance[at] = gaussians[at].noise_variance / totals[at] + shrink * shrink * self.variance[at];
        }
        Self { a, b, variance }
    }

    /// The means for a row.
    #[inline(always)]
    fn means(&self, y: f64) -> [f64; K] {
        let mut means = [0.0; K];
        for (at, mean) in means.iter_mut().enumerate() {
            *mean = self.a[at] + self.b[at] * y;
        }
        means
    }
}

fn shared<const K: usize, const V: usize>(
    pilot: &Pilot<Targets>,
    target: usize,
    rows: &Rows,
    gaussians: &[Gaussian; K],
) -> Vec<[Error; K]> {
    let mut sums = vec![Sum::<K, V>::ZERO; rows.values.len()];
    vectorise(
        #[inline(always)]
        || add_trees(pilot, target, rows, gaussians, &mut sums),
    );
    finished(&sums, rows, pilot.forest.n_trees())
}

#[inline(always)]
fn add_trees<const K: usize, const V: usize>(
    pilot: &Pilot<Targets>,
    target: usize,
    rows: &Rows,
    gaussians: &[Gaussian; K],
    sums: &mut [Sum<K, V>],
) {
    let (store, kappas) = (pilot.forest.store(), gaussians.map(|gaussian| gaussian.kappa));
    // A row whose place leaves the root's block, or that is all of it, is told by the prior.
    let prior_means = gaussians.map(|gaussian| gaussian.prior_mean);
    let prior_variances: [f64; V] = std::array::from_fn(|at| gaussians[at].prior_variance);
    // Blocks on the way, one after the other.
    let (mut way, mut todo) = (Vec::new(), Vec::new());
    for (tree, node_sums) in pilot.forest.trees() {
        let reader = Reader { tree, sums: node_sums, targets: &pilot.labels };
        way.clear();
        way.push(Without::<K, V>::above_root(gaussians));
        todo.push((tree.root(), 1));
        while let Some((child, depth)) = todo.pop() {
            way.truncate(depth);
            let n_left = reader.weight(child) - 1.0;
            if n_left > 0.0 {
                way.push(way[depth - 1].below(gaussians, &kappas, n_left, reader.sum(child, target)));
            }
            let last = &way[way.len() - 1];
            let leave_out = |sums: &mut [Sum<K, V>], range: std::ops::Range<usize>| {
                for (slot, (_, y, _)) in sums[range.clone()].iter_mut().zip(&rows.values[range]) {
                    if n_left <= 0.0 && depth <= 2 {
                        slot.add(&prior_means, &prior_variances);
                    } else {
                        slot.add(&last.means(*y), &last.variance);
                    }
                }
            };
            match tree.end_of_run(child).kind() {
                Kind::Single(point) => leave_out(sums, rows.of_point(point, store.multiplicity(point))),
                Kind::Leaf(id) => {
                    for point in tree.leaf(id).points() {
                        leave_out(sums, rows.of_point(*point, store.multiplicity(*point)));
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
}

fn one_by_one<const K: usize>(
    pilot: &Pilot<Targets>,
    target: usize,
    rows: &Rows,
    gaussians: &[Gaussian; K],
    leaf_model: LeafModel,
) -> Vec<[Error; K]> {
    let (forest, mut way) = (&pilot.forest, BlockPath::default());
    let mut sums = vec![Sum::<K, K>::ZERO; rows.values.len()];
    for (tree, node_sums) in forest.trees() {
        let reader = Reader { tree, sums: node_sums, targets: &pilot.labels };
        let mut locator = Locator::new(tree, forest.domain(), forest.store(), forest.domain().lifetime());
        for ((point, y, weight), sum) in rows.values.iter().zip(&mut sums) {
            way.follow(&mut locator, forest.store().point(*point));
            let posteriors =
                gaussians.each_ref().map(|gaussian| reader.without(&way, *y, *weight, target, gaussian, leaf_model));
            sum.add(&posteriors.map(|posterior| posterior.mean), &posteriors.map(|posterior| posterior.variance));
        }
    }
    finished(&sums, rows, forest.n_trees())
}

fn finished<const K: usize, const V: usize>(sums: &[Sum<K, V>], rows: &Rows, n_trees: usize) -> Vec<[Error; K]> {
    sums.iter().zip(&rows.values).map(|(sum, (_, y, _))| sum.errors(*y, n_trees)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forest::RegressionParams;
    use crate::forest::sample::{Followed, SharedAutomatic};
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
            let followed = Followed { forest: &core.forest, labels: &core.targets, lifetime, n_trees: 5 };
            SharedAutomatic::<Targets, ()>::default()
                .get(&followed, |pilot| {
                    let rows = Rows::of(pilot, 0);
                    assert_eq!(rows.values.len(), y.len());
                    let gaussian =
                        |kappa| Gaussian { prior_mean: 0.3, prior_variance: 2.0, noise_variance: 0.7, kappa };
                    let gaussians = KAPPAS.map(gaussian);
                    let fast = shared::<6, 6>(pilot, 0, &rows, &gaussians);
                    let means = shared::<6, 0>(pilot, 0, &rows, &gaussians);
                    for (fast, means) in fast.iter().flatten().zip(means.iter().flatten()) {
                        assert_eq!(means.square.to_bits(), fast.square.to_bits());
                        assert_eq!(means.spread.to_bits(), fast.spread.to_bits());
                    }
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
