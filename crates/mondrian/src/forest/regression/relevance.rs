//! How much of the error each input's cuts remove from rows that were left out.
//!
//! A set of n rows has the variance s² about its mean, with the divisor n − 1. A cut of an input that has nothing to do with the targets
//! leaves n·s² as it is in expectation, however few rows the two sides have, which the squares about the rows' own means do not: those fall
//! with every cut. So what falls is what rows would gain that were left out, but for the cost of estimating a mean, and noise sums to about 0.

use crate::parallel::prelude::*;

use crate::forest::regression::RegressionForest;
use crate::forest::regression::targets::Targets;
use crate::tree::{Child, Kind, NodeId, Tree};

impl RegressionForest {
    /// The share of each input in the squared error that the cuts within the lifetime remove out of sample; sums to one (or all
    /// zero).
    ///
    /// An input of pure noise removes nothing in expectation; what chance leaves of it is cut off at zero after all trees were added
    /// up. A forest finished from summaries takes the shares of the same trees over the rows that they brought.
    pub fn relevance(&self) -> Vec<f64> {
        let rows = self.core.rows();
        let grown = self.core.sample.as_ref().map(|sample| {
            let mut forest = sample.forest.clone();
            forest.regrow(&sample.targets);
            forest
        });
        let forest = grown.as_ref().unwrap_or(rows.forest);
        let moments = PointMoments::of(rows.targets, forest.store().n_slots());
        let per_tree: Vec<Vec<f64>> =
            forest.trees().par_iter().map(|(tree, _)| moments.removed(tree, self.n_dims(), self.view.get())).collect();
        let mut total = vec![0.0; self.n_dims()];
        for removed in &per_tree {
            total.iter_mut().zip(removed).for_each(|(t, r)| *t += r);
        }
        shares(total)
    }
}

/// Amounts as shares of their sum, none below zero.
pub(crate) fn shares(mut amounts: Vec<f64>) -> Vec<f64> {
    amounts.iter_mut().for_each(|amount| *amount = amount.max(0.0));
    let total: f64 = amounts.iter().sum();
    if total > 0.0 {
        amounts.iter_mut().for_each(|amount| *amount /= total);
    }
    amounts
}

/// Weight, squared weights, mean and squares about the mean of some rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd)]
struct Moments {
    weight: f64,
    weight_squares: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    fn with(self, other: Self) -> Self {
        let weight = self.weight + other.weight;
        if self.weight == 0.0 || other.weight == 0.0 {
            return if self.weight == 0.0 { other } else { self };
        }
        let apart = other.mean - self.mean;
        Self {
            weight,
            weight_squares: self.weight_squares + other.weight_squares,
            mean: self.mean + apart * (other.weight / weight),
            squares: self.squares + other.squares + apart * apart * (self.weight * other.weight / weight),
        }
    }

    /// The variance, with the divisor that makes it right in expectation; none for a single row.
    fn variance(&self) -> Option<f64> {
        let divisor = self.weight - self.weight_squares / self.weight;
        (divisor > 1e-9 * self.weight).then(|| self.squares / divisor)
    }
}

/// The moments of all rows of each point, by target.
struct PointMoments {
    n_targets: usize,
    moments: Vec<Moments>,
    /// The place of each point in an order of moments: sums over a leaf run in it, whatever the order of arrival.
    rank: Vec<u32>,
}

impl PointMoments {
    fn of(targets: &Targets, n_slots: usize) -> Self {
        let n_targets = targets.n_targets();
        let mut moments = vec![Moments::default(); n_slots * n_targets];
        for point in 0..n_slots {
            for target in 0..n_targets {
                let rows = targets.values_of(point as u32, target).into_iter();
                moments[point * n_targets + target] = rows
                    .map(|(mean, weight)| Moments { weight, weight_squares: weight * weight, mean, squares: 0.0 })
                    .fold(Moments::default(), Moments::with);
            }
        }
        let of_point = |point: u32| &moments[point as usize * n_targets..][..n_targets];
        let mut order: Vec<u32> = (0..n_slots as u32).collect();
        order.sort_unstable_by(|a, b| of_point(*a).partial_cmp(of_point(*b)).expect("targets are finite"));
        let mut rank = vec![0; n_slots];
        order.iter().enumerate().for_each(|(at, point)| rank[*point as usize] = at as u32);
        Self { n_targets, moments, rank }
    }

    /// What the cuts of one tree remove, by dimension.
    fn removed(&self, tree: &Tree, n_dims: usize, lifetime: f64) -> Vec<f64> {
        enum Step {
            Down(Child),
            Join(NodeId),
        }
        let t = self.n_targets;
        let mut removed = vec![0.0; n_dims];
        // The moments of finished subtrees, those of a node's lower side below those of its upper one.
        let mut done: Vec<Moments> = Vec::new();
        let mut room = Vec::new();
        let mut todo = vec![Step::Down(tree.root())];
        while let Some(step) = todo.pop() {
            match step {
                Step::Down(child) => match tree.end_of_run(child).kind() {
                    Kind::Inner(id) => {
                        let [below, above] = tree.children(tree.node(id));
                        todo.extend([Step::Join(id), Step::Down(above), Step::Down(below)]);
                    }
                    Kind::Single(point) => done.extend_from_slice(&self.moments[point as usize * t..][..t]),
                    Kind::Leaf(id) => self.push_leaf(tree.leaf(id).points(), &mut room, &mut done),
                    Kind::Empty => done.extend(std::iter::repeat_n(Moments::default(), t)),
                },
                Step::Join(id) => {
                    let start = done.len() - 2 * t;
                    for target in 0..t {
                        let (below, above) = (done[start + target], done[start + t + target]);
                        let both = below.with(above);
                        done[start + target] = both;
                        let Some(variance) = both.variance().filter(|_| tree.node(id).time() <= lifetime) else {
                            continue;
                        };
                        let rest = |side: Moments| side.weight * (variance - side.variance().unwrap_or(variance));
                        removed[tree.node(id).dim()] += rest(below) + rest(above);
                    }
                    done.truncate(start + t);
                }
            }
        }
        removed
    }

    fn push_leaf(&self, points: &[u32], room: &mut Vec<u32>, done: &mut Vec<Moments>) {
        room.clear();
        room.extend_from_slice(points);
        room.sort_unstable_by_key(|point| self.rank[*point as usize]);
        for target in 0..self.n_targets {
            let of_point = |point: &u32| self.moments[*point as usize * self.n_targets + target];
            done.push(room.iter().map(of_point).fold(Moments::default(), Moments::with));
        }
    }
}
