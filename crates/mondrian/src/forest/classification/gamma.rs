//! γ from the rows: leave-one-out log loss, in closed form along each row's path.
//!
//! Leaving a row out of a tree of infinite lifetime changes little. Where its point has other rows, one count of one
//! leaf; else the point's cell becomes the empty side of the cut above it, and the row sees what a point sees that leaves
//! its sibling's block at that cut. Above that only the presence of the row's own class can change, and only its own
//! probability is asked for, so a row costs O(depth). `forget` is the slow twin in the tests.

#![expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]

use crate::parallel::prelude::*;

use crate::Lifetime;
use crate::forest::Forest;
use crate::forest::classification::loss::log_loss;
use crate::forest::classification::masks::{ClassMasks, PointClasses};
use crate::forest::classification::stable::{discount, n_set, tables_and_count};
use crate::forest::classification::{TrainedTrees, subset};
use crate::forest::sample::{Followed, Pilot, SharedAutomatic};
use crate::process::{Bounds, Side};
use crate::simd::vectorise;
use crate::tree::{Kind, NodeId, Rules, Tree};

/// Points looked at: those of smallest hash.
const POINTS: usize = 4096;
/// Trees looked at.
const TREES: usize = 16;
/// Trees over the sample, at most.
const SAMPLE_TREES: usize = 64;
/// Powers of two looked at, around the linear dimension of the first root box.
const POWERS: std::ops::RangeInclusive<i32> = -6..=7;

/// What leaving rows of a sample out says.
pub(crate) type FromSample = SharedAutomatic<PointClasses, f64>;

/// The γ of smallest leave-one-out log loss over a sample of the points.
pub(crate) fn automatic(trained: &TrainedTrees, from_sample: &FromSample) -> f64 {
    let TrainedTrees { forest, classes } = trained;
    if forest.domain().rules() == Rules::First {
        return automatic_in_version_1(trained);
    }
    let best = |pilot: &Pilot<PointClasses>| {
        // The box of the sample's own rung: the first may be that of a single row.
        let grid = grid_around(pilot.forest.domain().root_box(), 2);
        if pilot.forest.store().n_points() < 2 {
            return grid[grid.len() / 2];
        }
        best_of(&grid, &leave_one_out(&pilot.forest, &pilot.labels, &grid, forest.n_trees()))
    };
    let followed = Followed { forest, labels: classes, lifetime: Lifetime::INFINITE, n_trees: SAMPLE_TREES };
    let found = from_sample.get(&followed, best);
    // A sample of what the forest holds is no larger than that, nor further away.
    found.unwrap_or_else(|_| automatic_in_version_1(trained))
}

/// Powers of two around the linear dimension of a box, every `step`-th of them.
fn grid_around(bounds: &Bounds, step: usize) -> Vec<f64> {
    let linear: f64 = bounds.linear_dimension();
    // A box of one point: no cut ever comes, and γ means nothing.
    let unit = if linear > 1e-300 && linear < 1e300 { linear } else { 1.0 };
    POWERS.step_by(step).map(|e| unit * f64::from(e).exp2()).collect()
}

/// The first γ of smallest loss.
fn best_of(grid: &[f64], losses: &[f64]) -> f64 {
    grid[(0..grid.len()).fold(0, |best, i| if losses[i] < losses[best] { i } else { best })]
}

/// γ as models of version 1 have it: from more points, by a hash of their own.
fn automatic_in_version_1(trained: &TrainedTrees) -> f64 {
    let grid = grid_around(trained.forest.domain().first_box(), 1);
    let middle = grid[grid.len() / 2];
    let points: Vec<u32> = subset::hashed(trained.forest.store()).into_iter().take(POINTS).map(|(_, p)| p).collect();
    if points.len() < 2 {
        return middle;
    }
    let Ok(part) = trained.with_points(&points, TREES) else { return middle };
    best_of(&grid, &leave_one_out(&part.forest, &part.classes, &grid, part.forest.n_trees()))
}

/// Total leave-one-out log loss of a forest of infinite lifetime at each γ, as it would be with `n_trees` trees like its own.
///
/// The log loss of the mean of m probabilities of variance s² exceeds that of their expectation p by s²/(2·m·p²), to second order:
/// few trees would ask for more smoothing than many.
pub(crate) fn leave_one_out(
    forest: &Forest<ClassMasks>,
    classes: &PointClasses,
    gammas: &[f64],
    n_trees: usize,
) -> Vec<f64> {
    // Where each point's first class stands among all (point, class) pairs.
    let mut starts = vec![0_usize; forest.store().n_slots() + 1];
    for point in 0..forest.store().n_slots() {
        starts[point + 1] = starts[point] + classes.of(point as u32).len();
    }
    let n_pairs = starts[starts.len() - 1];
    let losses_of = |some: &[f64]| {
        let by_tree: Vec<Vec<PerGamma>> = forest
            .trees()
            .par_iter()
            .map(|(tree, masks)| {
                let mut probabilities = vec![[0.0; LANES]; n_pairs];
                let path = Path::new(tree, masks, classes, some);
                vectorise(
                    #[inline(always)]
                    || path.run(|point, at, found| probabilities[starts[point as usize] + at] = *found),
                );
                probabilities
            })
            .collect();
        let (few, many) = (by_tree.len() as f64, n_trees as f64);
        let excess = 0.5 * (1.0 / few - 1.0 / many);
        let mut losses = vec![0.0; some.len()];
        for point in forest.store().points() {
            for (at, (_, count)) in classes.of(point).iter().enumerate() {
                let pair = starts[point as usize] + at;
                let (means, squares) = vectorise(
                    #[inline(always)]
                    || means_and_squares(by_tree.iter().map(|probabilities| &probabilities[pair])),
                );
                for ((mean, squares), loss) in means.iter().zip(squares).zip(&mut losses) {
                    let mut row = log_loss(*mean);
                    if excess > 0.0 && *mean > 0.0 {
                        row -= excess * squares / (few - 1.0).max(1.0);
                    }
                    *loss += f64::from(*count) * row;
                }
            }
        }
        losses
    };
    gammas.chunks(LANES).flat_map(losses_of).collect()
}

/// The means of probabilities over trees, and the sums of their squared relative differences from them.
#[inline(always)]
fn means_and_squares<'a>(by_tree: impl ExactSizeIterator<Item = &'a PerGamma> + Clone) -> (PerGamma, PerGamma) {
    let (mut means, mut squares, n) = ([0.0; LANES], [0.0; LANES], by_tree.len() as f64);
    for probabilities in by_tree.clone() {
        means.iter_mut().zip(probabilities).for_each(|(mean, p)| *mean += p);
    }
    means.iter_mut().for_each(|mean| *mean /= n);
    for probabilities in by_tree {
        let differences = means.iter().zip(probabilities).map(|(mean, p)| p / mean - 1.0);
        squares.iter_mut().zip(differences).for_each(|(sum, difference)| *sum += difference * difference);
    }
    (means, squares)
}

/// Candidates that are looked at together: one vector of the widest kind, or several.
const LANES: usize = 8;

/// A number per candidate; those beyond the last are not read.
type PerGamma = [f64; LANES];

/// A separating cut on the way down.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    time: f64,
    /// Classes of both sides together, and of each side counted apart.
    tables: f64,
    count: f64,
}

/// The way from the root to a block, with what leaving a row out needs.
struct Path<'a> {
    tree: &'a Tree,
    masks: &'a ClassMasks,
    classes: &'a PointClasses,
    gammas: &'a [f64],
    levels: Vec<Level>,
    /// Discounts by level.
    discounts: Vec<PerGamma>,
    /// The classes of the side not taken, by level.
    others: Vec<u64>,
    /// The probability so far.
    probability: PerGamma,
    /// By level: of which classes the probability below its cut is known, with all rows, and what it is, by class. None where there
    /// are too many classes for a word.
    known: Vec<u64>,
    full: Vec<PerGamma>,
}

/// Classes whose probabilities are kept on the way down.
const MOST_KEPT: usize = 64;

impl<'a> Path<'a> {
    fn new(tree: &'a Tree, masks: &'a ClassMasks, classes: &'a PointClasses, gammas: &'a [f64]) -> Self {
        let probability = [0.0; LANES];
        let (levels, discounts, others) = (Vec::new(), Vec::new(), Vec::new());
        let (known, full) = (Vec::new(), Vec::new());
        Self { tree, masks, classes, gammas, levels, discounts, others, probability, known, full }
    }

    /// Calls `each(point, which of its classes, probabilities)` for all rows.
    #[inline(always)]
    fn run(mut self, mut each: impl FnMut(u32, usize, &PerGamma)) {
        let mut todo = vec![(self.tree.root(), 0_usize, None::<(NodeId, Side)>)];
        while let Some((child, depth, via)) = todo.pop() {
            self.truncate(depth);
            if let Some((id, side)) = via {
                self.take(id, side);
            }
            match self.tree.end_of_run(child).kind() {
                Kind::Inner(id) => {
                    self.push(id);
                    for side in [Side::Above, Side::Below] {
                        todo.push((self.tree.child(self.tree.node(id), side), self.levels.len(), Some((id, side))));
                    }
                }
                Kind::Single(point) => self.leave_out_each(point, &mut each),
                Kind::Leaf(id) => self.leave_out_of_leaf(self.tree.leaf(id).points(), &mut each),
                Kind::Empty => {}
            }
        }
    }

    fn truncate(&mut self, depth: usize) {
        self.levels.truncate(depth);
        self.discounts.truncate(depth);
        self.others.truncate(depth * self.classes.n_words());
    }

    /// Takes a side of the last level's node. A probability that is known there stays known: it is only asked for where the side has
    /// the class, and is the same on both sides if both have it.
    #[inline(always)]
    fn take(&mut self, id: NodeId, side: Side) {
        let start = (self.levels.len() - 1) * self.classes.n_words();
        let other = self.masks.of_sides(id)[side.other().index()];
        self.others[start..].iter_mut().zip(other).for_each(|(held, word)| *held = *word);
    }

    #[inline(always)]
    fn push(&mut self, id: NodeId) {
        let (node, [below, above]) = (self.tree.node(id), self.masks.of_sides(id));
        let (tables, count) = tables_and_count(below, above);
        self.others.extend(above);
        let before = self.levels.last().map_or(0.0, |level| level.time);
        let duration = node.time() - before;
        let mut discounts: PerGamma = [0.0; LANES];
        for (at, gamma) in self.gammas.iter().enumerate() {
            discounts[at] = match at.checked_sub(1) {
                // e^{−4γs} is (e^{−γs})⁴, which costs less.
                Some(last) if *gamma == 4.0 * self.gammas[last] => {
                    let square = discounts[last].powi(2);
                    square * square
                }
                _ => discount(*gamma, duration),
            };
        }
        self.discounts.push(discounts);
        self.levels.push(Level { time: node.time(), tables, count });
        let depth = self.levels.len();
        self.known.resize(depth, 0);
        self.known[depth - 1] = 0;
        if self.classes.n_classes() <= MOST_KEPT {
            self.full.resize(self.full.len().max(depth * self.classes.n_classes()), [0.0; LANES]);
        }
    }

    /// Whether the side not taken at a level has a class.
    fn other_has(&self, level: usize, class: u32) -> bool {
        self.others[level * self.classes.n_words() + class as usize / 64] >> (class % 64) & 1 == 1
    }

    /// Takes the probability of a class past a level's cut, given whether the side taken and the other have it.
    #[inline(always)]
    fn pass(&mut self, level: usize, taken: bool, other: bool) {
        let Level { tables, count, .. } = self.levels[level];
        let (own, table) = (f64::from(u8::from(taken) + u8::from(other)), f64::from(taken || other));
        // The class was there before; both totals lose what it no longer has.
        let (tables, count) = (tables - (1.0 - table), count - f64::from(!taken));
        for (probability, d) in self.probability.iter_mut().zip(&self.discounts[level]) {
            *probability = (own - d * table + d * tables * *probability) / count;
        }
    }

    /// Sets the probability to that of a class above a level with all rows: the same for all points of the class below, so it
    /// is kept.
    #[inline(always)]
    fn set_to_full(&mut self, level: usize, class: u32) {
        let n_classes = self.classes.n_classes();
        let is_kept = n_classes <= MOST_KEPT;
        let mut start = level;
        while start > 0 && !(is_kept && self.known[start - 1] >> class & 1 == 1) {
            start -= 1;
        }
        let place = |level: usize| level * n_classes + class as usize;
        match start.checked_sub(1) {
            None => self.probability.fill(1.0 / n_classes as f64),
            Some(above) => self.probability = self.full[place(above)],
        }
        for at in start..level {
            self.pass(at, true, self.other_has(at, class));
            if is_kept {
                self.known[at] |= 1 << class;
                self.full[place(at)] = self.probability;
            }
        }
    }

    /// Rows that share their cell for ever: one count less of the leaf, whose discount is 0.
    fn leave_out_of_leaf(&mut self, points: &[u32], each: &mut impl FnMut(u32, usize, &PerGamma)) {
        let rows = |point: &u32| self.classes.of(*point).iter();
        let total: u32 = points.iter().flat_map(rows).map(|(_, n)| n).sum();
        for point in points {
            for (at, (class, _)) in self.classes.of(*point).iter().enumerate() {
                let same: u32 = points.iter().map(|p| self.classes.count(*p, *class)).sum();
                self.probability.fill(f64::from(same - 1) / f64::from(total - 1));
                each(*point, at, &self.probability);
            }
        }
    }

    #[inline(always)]
    fn leave_out_each(&mut self, point: u32, each: &mut impl FnMut(u32, usize, &PerGamma)) {
        match self.classes.of(point) {
            [(class, 1)] => {
                self.leave_point_out(*class);
                each(point, 0, &self.probability);
            }
            _ => self.leave_out_of_leaf(&[point], each),
        }
    }

    /// The point at the end of the path goes with its one row: it leaves its sibling's block at the last cut.
    #[inline(always)]
    fn leave_point_out(&mut self, class: u32) {
        let Some(last) = self.levels.len().checked_sub(1) else {
            self.probability.fill(1.0 / self.classes.n_classes() as f64);
            return;
        };
        // From the last level on whose other side has the class it is gone on the way down.
        let first_gone = (0..=last).rev().find(|level| self.other_has(*level, class)).unwrap_or(0);
        self.set_to_full(first_gone, class);
        for level in first_gone..last {
            self.pass(level, false, self.other_has(level, class));
        }
        let n_words = self.classes.n_words();
        let sibling = &self.others[last * n_words..][..n_words];
        let share = if self.other_has(last, class) { 1.0 / f64::from(n_set(sibling)) } else { 0.0 };
        for (probability, d) in self.probability.iter_mut().zip(&self.discounts[last]) {
            *probability = (1.0 - d) * share + d * *probability;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forest::classification::{ClassificationParams, GammaChoice};
    use crate::forest::{ForestParams, LifetimeChoice};
    use crate::process::NodeKey;
    use crate::{Lifetime, Points};

    #[test]
    fn leaving_out_in_closed_form_is_forgetting() {
        for (n, n_dims, n_classes) in [(2, 1, 2), (30, 1, 3), (40, 3, 2), (25, 4, 70)] {
            let draw = |row: u64, what: u64| NodeKey::root(row, 5).fork(what).draw(0).uniform();
            // Every fifth row repeats the one before, with a class of its own.
            let x: Vec<f64> =
                (0..n).flat_map(|r| (0..n_dims).map(move |d| draw(if r % 5 == 4 { r - 1 } else { r }, d))).collect();
            let labels: Vec<u32> = (0..n).map(|r| (draw(r, 99) * n_classes as f64) as u32).collect();
            let points = Points::row_major(&x, n_dims as usize).unwrap();
            let gammas = [0.3, 5.0];
            let lifetime = LifetimeChoice::Value(Lifetime::INFINITE);
            let forest = ForestParams { n_trees: 4, lifetime, ..ForestParams::default() };
            let fit = |gamma| {
                let params = ClassificationParams { forest: forest.clone(), gamma, ..ClassificationParams::default() };
                params.n_classes(n_classes).fit(points, &labels).unwrap()
            };
            let trained = &fit(GammaChoice::Auto).trained;
            let fast = leave_one_out(&trained.forest, &trained.classes, &gammas, trained.forest.n_trees());
            for (gamma, fast) in gammas.iter().zip(fast) {
                let model = fit(GammaChoice::Value(*gamma));
                let mut slow = 0.0;
                for row in 0..n as usize {
                    let mut without = model.clone();
                    let x = Points::row_major(points.row_slice(row).unwrap(), n_dims as usize).unwrap();
                    without.forget(x, &labels[row..=row]).unwrap();
                    slow += log_loss(without.predict_proba(x).unwrap()[labels[row] as usize]);
                }
                assert!((fast - slow).abs() <= 1e-10 * slow, "{n} rows, γ = {gamma}: {fast} {slow}");
            }
        }
    }
}
