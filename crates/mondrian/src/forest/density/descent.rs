//! Points on their way down a tree of cuts that each change a density: the traversal that densities, leave-one-out values
//! and paths share.
//!
//! Points are queries, training points, or both. Nothing is stored in the tree: a frozen cell, one point's, is cut on
//! from its key as long as points are with it and the lifetime has not ended. A query usually parts from the point after
//! a handful of cuts; a training point is followed to the end, about D·log λ cuts. Storing those cuts would cost more
//! memory than the tree and go stale with every point learned; drawn anew they are exact whatever happened before.

#![expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]

use crate::Lifetime;
use crate::forest::Forest;
use crate::forest::density::polya::{CutOff, Split, share, shares};
use crate::process::{BuiltInMeasure, Side};
use crate::tree::{self, Child, CodedRows, Exit, Exits, PointStore, Traversal, Visitor};

/// Places of points in their order: `start..end` are in a cell, `start..middle` of them below its cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SplitRange {
    pub(crate) start: u32,
    pub(crate) middle: u32,
    pub(crate) end: u32,
}

/// What is computed from the cuts; `Value` is what is known of a cell.
pub(crate) trait Follower {
    type Value: Copy;

    /// Whether a second descent has to find the points of each cell at the same places.
    const KEEPS_ORDER: bool = false;

    /// A cut of a cell that holds points and training rows: the values of both sides.
    fn split(&mut self, split: &Split, range: SplitRange, value: Self::Value) -> [Self::Value; 2];

    /// As [`Follower::split`] where all rows are on one side, if nothing else matters about it: the values of the side that
    /// has the rows and of the other.
    #[inline(always)]
    fn cut_off(&mut self, cut: CutOff, value: Self::Value) -> Option<[Self::Value; 2]> {
        let _ = (cut, value);
        None
    }

    /// The points of a cell that is not cut any more, or that no training rows are in.
    fn rest(&mut self, value: Self::Value, points: &[u32]);
}

/// A descent into the trees of a forest, for points that are rows of `coordinates`.
#[derive(Debug)]
pub(crate) struct Descent<'a> {
    forest: &'a Forest,
    rows: CodedRows<'a>,
    lifetime: f64,
    resume_above: u32,
}

impl<'a> Descent<'a> {
    /// A descent with a lifetime of at most the domain's.
    pub(crate) fn new(forest: &'a Forest, lifetime: Lifetime, coordinates: &'a [f64]) -> Self {
        let domain = forest.domain();
        let lifetime = lifetime.min(domain.lifetime()).get();
        Self { forest, rows: CodedRows::new(domain, coordinates), lifetime, resume_above: 0 }
    }

    /// Leaves frozen cells of at most `rows` rows as they are.
    #[must_use]
    pub(crate) fn resume_above(mut self, rows: u32) -> Self {
        self.resume_above = rows;
        self
    }

    /// Takes `points` down tree `index`. They end up in an order in which every cell holds a range; a descent to a larger
    /// lifetime keeps the ranges that one to a smaller lifetime made.
    pub(crate) fn follow<F: Follower>(&self, index: usize, points: &mut [u32], value: F::Value, follower: &mut F) {
        let Self { forest, rows, lifetime, .. } = self;
        let (tree, store) = (&forest.trees()[index].0, forest.store());
        let traversal = Traversal { tree, domain: forest.domain(), store, rows, lifetime: *lifetime, draws_cuts: true };
        let mut visitor =
            DensityVisitor { follower, store, measure: forest.measure(), resume_above: self.resume_above };
        traversal.run(points, Level { value, depth: 0 }, &mut visitor);
    }
}

/// The value of a cell, and the number of cuts above it.
#[derive(Debug, Clone, Copy)]
struct Level<V> {
    value: V,
    depth: usize,
}

/// Every cut as a density sees it.
struct DensityVisitor<'a, F> {
    follower: &'a mut F,
    store: &'a PointStore,
    measure: &'a BuiltInMeasure,
    resume_above: u32,
}

impl<F: Follower> Visitor for DensityVisitor<'_, F> {
    type State = Level<F::Value>;

    const SEES_EVERY_CUT: bool = true;
    const KEEPS_ORDER: bool = F::KEEPS_ORDER;

    fn exits(&self, _: Self::State) -> Exits {
        Exits::Timed
    }

    #[inline(always)]
    fn cut(&mut self, split: &tree::Split<'_>, Level { value, depth }: Self::State) -> [Self::State; 2] {
        let (cut, start) = (&split.cut, split.start as u32);
        let interval = (split.interval.0, cut.location, split.interval.1);
        let share = shares(self.measure, cut.dim as usize, interval);
        let range = SplitRange { start, middle: start + split.n_below as u32, end: start + split.rows.len() as u32 };
        let split = Split { time: cut.time, depth, rows: split.counts, share };
        let [below, above] = self.follower.split(&split, range, value);
        [Level { value: below, depth: depth + 1 }, Level { value: above, depth: depth + 1 }]
    }

    #[inline(always)]
    fn cut_off(&mut self, split: &tree::Split<'_>, full: Side, level: Self::State) -> [Self::State; 2] {
        let (cut, Level { value, depth }) = (&split.cut, level);
        let interval = (split.interval.0, cut.location, split.interval.1);
        let share = share(self.measure, cut.dim as usize, interval, full);
        let rows = split.counts[0] + split.counts[1];
        let Some([stays, leaves]) = self.follower.cut_off(CutOff { depth, rows, share }, value) else {
            let states = self.cut(split, level);
            return [states[full.index()], states[full.other().index()]];
        };
        [Level { value: stays, depth: depth + 1 }, Level { value: leaves, depth: depth + 1 }]
    }

    #[inline]
    fn leave(&mut self, rows: &[u32], _: Exit, level: Self::State) {
        self.follower.rest(level.value, rows);
    }

    #[inline]
    fn land(&mut self, rows: &[u32], _: Child, level: Self::State) {
        self.follower.rest(level.value, rows);
    }

    #[inline]
    fn resumes(&self, point: u32) -> bool {
        self.store.multiplicity(point) > self.resume_above
    }
}
