//! A keyed sample of a forest's points, and a small forest over it: where automatic values come from.
//!
//! The points of smallest keyed hash are a function of the set of points, whatever the order they came in, and so are a small
//! forest over them and all that is found in it. In a stream of n points a sample of k changes about k·ln(n/k) times, so
//! automatic values cost little however often they are asked for (docs/streams.md).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::forest::{Forest, NodeStatistics};
use crate::process::NodeKey;
use crate::select::split::{row_key, row_keys};
use crate::tree::{Domain, PointStore};
use crate::{Lifetime, Result};

/// Points of the largest sample.
pub(crate) const MOST: usize = 1024;
/// Points that predictive distributions are calibrated on, at most.
pub(crate) const CALIBRATED: usize = 4096;
/// Of so many points there are enough for the largest sample, however many there are.
pub(crate) const ENOUGH: usize = 16 * MOST;

/// How many points samples have: about `factor` times the square root of the number of rows, in powers of two, and at least
/// `least`, if there are so many.
///
/// A sample of k among n rows changes once in n/k of them, and what is found on it then costs k steps: so much that k²/n steps per
/// row stay bounded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleSize {
    pub(crate) factor: usize,
    pub(crate) least: usize,
}

impl SampleSize {
    pub(crate) fn of(self, n_rows: usize) -> usize {
        let root = 1 << (n_rows.max(1).ilog2() / 2);
        (self.factor * root).clamp(self.least, MOST)
    }
}

/// A point's keyed hash.
pub(crate) fn sample_hash(seed: u64, x: &[f64]) -> u128 {
    row_key(sample_root(seed), x.iter().copied()).to_bits()
}

/// The key that the hashes of points begin with.
pub(crate) fn sample_root(seed: u64) -> NodeKey {
    NodeKey::root(seed, u64::from_le_bytes(*b"a sample"))
}

/// All points of a store, with hashes that begin with a key.
pub(crate) fn hashed_points(store: &PointStore, root: NodeKey) -> Vec<(u128, u32)> {
    let keys = row_keys(root, store.coordinates(), store.n_dims());
    store.points().map(|point| (keys[point as usize].to_bits(), point)).collect()
}

/// At most `n` points of smallest hash, ascending by it.
pub(crate) fn smallest_hashes(store: &PointStore, seed: u64, n: usize) -> Vec<u32> {
    let mut hashes = hashed_points(store, sample_root(seed));
    if hashes.len() > n {
        hashes.select_nth_unstable(n);
        hashes.truncate(n);
    }
    hashes.sort_unstable();
    hashes.into_iter().map(|(_, point)| point).collect()
}

/// The points of smallest hash, some more than the largest sample has, so that points can come and go.
#[derive(Debug, Clone)]
pub(crate) struct PointSample {
    /// What the hashes of points begin with.
    root: NodeKey,
    /// Hash and point.
    kept: BTreeMap<u128, u32>,
    /// All points of the store below this hash are kept.
    limit: u128,
}

impl PointSample {
    /// Looks at all points of a store.
    pub(crate) fn of(store: &PointStore, root: NodeKey) -> Self {
        let mut hashes = hashed_points(store, root);
        let mut limit = u128::MAX;
        if hashes.len() > 2 * CALIBRATED {
            let (_, last, _) = hashes.select_nth_unstable(2 * CALIBRATED);
            limit = last.0;
            hashes.truncate(2 * CALIBRATED);
        }
        Self { root, kept: hashes.into_iter().collect(), limit }
    }

    /// Takes note of a new point.
    pub(crate) fn add(&mut self, point: u32, x: &[f64]) {
        let hash = row_key(self.root, x.iter().copied()).to_bits();
        if hash >= self.limit {
            return;
        }
        self.kept.insert(hash, point);
        if self.kept.len() > 3 * CALIBRATED {
            while self.kept.len() > 2 * CALIBRATED {
                self.limit = self.kept.pop_last().map_or(self.limit, |(hash, _)| hash);
            }
        }
    }

    /// Takes note of a point that is gone. Whether the sample is still known; else it has to be looked for again.
    pub(crate) fn remove(&mut self, x: &[f64]) -> bool {
        self.kept.remove(&row_key(self.root, x.iter().copied()).to_bits());
        self.limit == u128::MAX || self.kept.len() >= CALIBRATED
    }

    /// Hashes and points of a sample of at most [`CALIBRATED`] points, ascending by hash.
    pub(crate) fn smallest(&self, n: usize) -> impl Iterator<Item = (u128, u32)> + '_ {
        self.kept.iter().take(n).map(|(hash, point)| (*hash, *point))
    }
}

/// What a model knows of its points, one point at a time.
pub(crate) trait PointLabels: NodeStatistics + Sized {
    /// How many points automatic values come from.
    const SAMPLE_SIZE: SampleSize;

    /// As many labels as these know, and none of them.
    fn emptied(&self) -> Self;

    /// Takes over all rows of a point of another's.
    fn copy_point(&mut self, from: &Self, theirs: u32, ours: u32);

    /// Forgets all rows of a point.
    fn clear_point(&mut self, point: u32);

    /// Whether statistics of trees that stand are of no use any more, since units have changed since this was asked.
    fn take_change(&mut self) -> bool;

    /// Takes over what others know beyond points; whether that was something new.
    fn adapt(&mut self, others: &Self) -> bool;
}

/// Which points of a sample a small forest holds.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Part {
    Whole,
    /// Those whose hash is even, or odd.
    Half(u128),
}

impl Part {
    fn has(self, hash: u128) -> bool {
        match self {
            Self::Whole => true,
            Self::Half(rest) => hash % 2 == rest,
        }
    }
}

/// A small forest over the sample of a model's points, or over half of it.
#[derive(Debug, Clone)]
pub(crate) struct Pilot<L: NodeStatistics> {
    pub(crate) forest: Forest<L::Stats>,
    pub(crate) labels: L,
    part: Part,
    /// Hash and point of all points held.
    held: BTreeMap<u128, u32>,
    /// Points of the whole sample, and the largest of their hashes, if there are points beyond.
    n_sampled: usize,
    last: Option<u128>,
    /// Hashes of points whose rows may have changed.
    changed: Vec<u128>,
}

/// The small forest over the whole sample, and those over its two halves: how errors fall with the number of points.
#[derive(Debug)]
pub(crate) struct Pilots<'a, L: NodeStatistics> {
    pub(crate) whole: &'a Pilot<L>,
    pub(crate) halves: &'a [Pilot<L>; 2],
}

impl<L: PointLabels + Clone> Pilot<L> {
    /// One without points yet, with the first trees of a forest.
    fn new(part: Part, like: &Forest<L::Stats>, labels: &L, lifetime: Lifetime, n_trees: usize) -> Result<Self> {
        let domain = like.domain();
        let first = domain.first_box().clone();
        let domain = Domain::restored_under(domain.rules(), domain.seed(), first, 0, lifetime)?;
        let n_trees = n_trees.min(like.n_trees());
        let forest = Forest::from_parts(like.measure().clone(), domain, PointStore::new(like.n_dims()), n_trees)?;
        let labels = labels.emptied();
        Ok(Self { forest, labels, part, held: BTreeMap::new(), n_sampled: 0, last: None, changed: Vec::new() })
    }

    /// Takes note of the hash of a point whose rows have changed, or that has come or gone.
    fn touch(&mut self, hash: u128) {
        // A point of the other half counts too: it moves the end of the sample.
        if self.last.is_none_or(|last| hash <= last) {
            self.changed.push(hash);
        }
    }

    /// The points held, in the order of their hashes.
    pub(crate) fn points(&self) -> impl Iterator<Item = u32> + '_ {
        self.held.values().copied()
    }

    /// Brings it up to date with the points of a forest and their labels; whether anything has changed.
    fn follow(&mut self, forest: &Forest<L::Stats>, labels: &L) -> Result<bool> {
        if self.forest.domain().first_box() != forest.domain().first_box() {
            *self = Self::new(self.part, forest, labels, self.forest.domain().lifetime(), self.forest.n_trees())?;
        }
        let is_adapted = self.labels.adapt(labels);
        if is_adapted {
            self.forest.gather(&self.labels);
        }
        let n_points = forest.n_points();
        let n = L::SAMPLE_SIZE.of(forest.n_rows_in_all()).min(n_points);
        if self.changed.is_empty() && n == self.n_sampled {
            return Ok(is_adapted);
        }
        let whole: Vec<(u128, u32)> = forest.sample().smallest(n).collect();
        (self.n_sampled, self.last) = (n, whole.last().map(|(hash, _)| *hash).filter(|_| n < n_points));
        let sample: Vec<(u128, u32)> = whole.into_iter().filter(|(hash, _)| self.part.has(*hash)).collect();
        let mut changed = std::mem::take(&mut self.changed);
        changed.sort_unstable();
        let (gone, fresh) = self.differences(&sample, &changed);
        if gone.is_empty() && fresh.is_empty() {
            return Ok(is_adapted);
        }
        if fresh.len() * 4 > sample.len() {
            let (n_sampled, last, n_trees) = (self.n_sampled, self.last, self.forest.n_trees());
            let fresh = Self::new(self.part, forest, labels, self.forest.domain().lifetime(), n_trees)?;
            *self = Self { n_sampled, last, ..fresh };
            self.take_all(&sample, forest, labels)?;
        } else {
            self.forget_points(&gone);
            for (hash, point) in fresh {
                self.take_one(hash, point, forest, labels)?;
            }
        }
        Ok(true)
    }

    /// What is held and is not of a sample or has changed, and what is of the sample and is not held or has changed. All are
    /// ascending, so that one pass over them tells.
    fn differences(&self, sample: &[(u128, u32)], changed: &[u128]) -> (Vec<u128>, Vec<(u128, u32)>) {
        let (mut gone, mut fresh) = (Vec::new(), Vec::new());
        let mut held = self.held.keys().copied().peekable();
        for &(hash, point) in sample {
            gone.extend(std::iter::from_fn(|| held.next_if(|other| *other < hash)));
            let is_held = held.next_if_eq(&hash).is_some();
            if is_held && changed.binary_search(&hash).is_err() {
                continue;
            }
            gone.extend(is_held.then_some(hash));
            fresh.push((hash, point));
        }
        gone.extend(held);
        (gone, fresh)
    }

    fn forget_points(&mut self, gone: &[u128]) {
        for hash in gone {
            let Some(point) = self.held.remove(hash) else { continue };
            let n_rows = self.forest.store().multiplicity(point);
            self.labels.clear_point(point);
            self.forest.forget(&self.labels, &vec![point; n_rows as usize]);
            if self.labels.take_change() {
                self.forest.gather(&self.labels);
            }
        }
    }

    /// Learns all rows of a point.
    fn take_one(&mut self, hash: u128, theirs: u32, forest: &Forest<L::Stats>, labels: &L) -> Result<()> {
        let x = forest.store().point(theirs);
        let n_rows = forest.store().multiplicity(theirs) as usize;
        let learned = self.forest.take_rows(self.forest.arrivals_at(x.repeat(n_rows)))?;
        let point = learned.points[0];
        self.labels.copy_point(labels, theirs, point);
        let is_gathered = self.forest.grow(&self.labels, &learned, &mut crate::progress::Progress::none())?;
        if self.labels.take_change() && !is_gathered {
            self.forest.gather(&self.labels);
        }
        self.held.insert(hash, point);
        Ok(())
    }

    /// Learns all rows of many points, with trees grown once.
    fn take_all(&mut self, sample: &[(u128, u32)], forest: &Forest<L::Stats>, labels: &L) -> Result<()> {
        let store = forest.store();
        for (hash, theirs) in sample {
            let (x, n_rows) = (store.point(*theirs), store.multiplicity(*theirs) as usize);
            let learned = self.forest.take_rows(self.forest.arrivals_at(x.repeat(n_rows)))?;
            self.labels.copy_point(labels, *theirs, learned.points[0]);
            self.held.insert(*hash, learned.points[0]);
        }
        self.labels.take_change();
        self.forest.regrow(&self.labels);
        Ok(())
    }
}

/// Small forests that are made when they are first asked for, and what was found in them: `T` in the one over the whole sample, `U`
/// in all three. Halves cost as much as the whole, so a model that never asks for `U` has none.
#[derive(Debug, Clone)]
pub(crate) struct Automatic<L: NodeStatistics, T, U = ()> {
    whole: Option<Box<Pilot<L>>>,
    halves: Option<Box<[Pilot<L>; 2]>>,
    found: Option<T>,
    more: Option<U>,
}

impl<L: NodeStatistics, T, U> Default for Automatic<L, T, U> {
    fn default() -> Self {
        Self { whole: None, halves: None, found: None, more: None }
    }
}

/// What small forests follow: a model's forest and labels, and the lifetime and number of their trees.
pub(crate) struct Followed<'a, L: NodeStatistics> {
    pub(crate) forest: &'a Forest<L::Stats>,
    pub(crate) labels: &'a L,
    pub(crate) lifetime: Lifetime,
    pub(crate) n_trees: usize,
}

impl<L: PointLabels + Clone> Followed<'_, L> {
    fn pilot(&self, part: Part) -> Result<Pilot<L>> {
        Pilot::new(part, self.forest, self.labels, self.lifetime, self.n_trees)
    }
}

impl<L: PointLabels + Clone, T: Clone, U: Clone> Automatic<L, T, U> {
    /// Takes note of points whose rows have changed, or that have come or gone.
    pub(crate) fn touch<'a>(&mut self, points: impl Iterator<Item = &'a [f64]>) {
        let Some(whole) = &mut self.whole else { return };
        let seed = whole.forest.domain().seed();
        for hash in points.map(|x| sample_hash(seed, x)) {
            whole.touch(hash);
            self.halves.iter_mut().flat_map(|halves| halves.iter_mut()).for_each(|half| half.touch(hash));
        }
        if whole.changed.len() > 4 * MOST {
            *self = Self::default();
        } else if self.halves.as_ref().is_some_and(|halves| halves[0].changed.len() > 4 * MOST) {
            // Nobody has asked for them for long.
            (self.halves, self.more) = (None, None);
        }
    }

    /// What `find` says of the small forest over the whole sample; asked only when that has changed.
    pub(crate) fn get(&mut self, followed: &Followed<'_, L>, find: impl FnOnce(&Pilot<L>) -> T) -> Result<T> {
        let whole = match self.whole.take() {
            Some(whole) => whole,
            None => Box::new(followed.pilot(Part::Whole)?),
        };
        let whole = self.whole.insert(whole);
        if whole.follow(followed.forest, followed.labels)? {
            (self.found, self.more) = (None, None);
        }
        Ok(self.found.get_or_insert_with(|| find(whole)).clone())
    }

    /// The same, and what `more` says of it and of all three.
    pub(crate) fn get_more(
        &mut self,
        followed: &Followed<'_, L>,
        find: impl FnOnce(&Pilot<L>) -> T,
        more: impl FnOnce(&T, &Pilots<'_, L>) -> U,
    ) -> Result<(T, U)> {
        let found = self.get(followed, find)?;
        let halves = match self.halves.take() {
            Some(halves) => halves,
            None => Box::new([followed.pilot(Part::Half(0))?, followed.pilot(Part::Half(1))?]),
        };
        let halves = self.halves.insert(halves);
        for half in halves.iter_mut() {
            if half.follow(followed.forest, followed.labels)? {
                self.more = None;
            }
        }
        let whole = self.whole.as_deref().expect("it was followed");
        let more = self.more.get_or_insert_with(|| more(&found, &Pilots { whole, halves })).clone();
        Ok((found, more))
    }
}

/// What is [automatic](Automatic) behind a lock. Clones share it until one of them changes.
#[derive(Debug)]
pub(crate) struct SharedAutomatic<L: NodeStatistics, T, U = ()>(Mutex<Arc<Automatic<L, T, U>>>);

impl<L: NodeStatistics, T, U> Default for SharedAutomatic<L, T, U> {
    fn default() -> Self {
        Self(Mutex::new(Arc::default()))
    }
}

impl<L: NodeStatistics, T, U> Clone for SharedAutomatic<L, T, U> {
    fn clone(&self) -> Self {
        Self(Mutex::new(Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))))
    }
}

impl<L: PointLabels + Clone, T: Clone, U: Clone> SharedAutomatic<L, T, U>
where
    L::Stats: Clone,
{
    /// Takes note of points of a store whose rows have changed, or that have come or are about to go.
    pub(crate) fn touch(&mut self, store: &PointStore, points: &[u32]) {
        let inner = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        if inner.whole.is_some() {
            Arc::make_mut(inner).touch(points.iter().map(|point| store.point(*point)));
        }
    }

    /// As [`Automatic::get`].
    pub(crate) fn get(&self, followed: &Followed<'_, L>, find: impl FnOnce(&Pilot<L>) -> T) -> Result<T> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(&mut inner).get(followed, find)
    }

    /// As [`Automatic::get_more`].
    pub(crate) fn get_more(
        &self,
        followed: &Followed<'_, L>,
        find: impl FnOnce(&Pilot<L>) -> T,
        more: impl FnOnce(&T, &Pilots<'_, L>) -> U,
    ) -> Result<(T, U)> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(&mut inner).get_more(followed, find, more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_grow_with_the_square_root() {
        let size = SampleSize { factor: 4, least: 64 };
        let sizes = [(0, 64), (1, 64), (255, 64), (1024, 128), (4095, 128), (4096, 256), (1 << 20, 1024)];
        for (n, expected) in sizes {
            assert_eq!(size.of(n), expected, "{n}");
        }
    }

    #[test]
    fn a_sample_is_that_of_the_points_left_whatever_came_and_went() {
        let x = |i: u64| NodeKey::root(5, i).draw(0).uniform();
        let mut store = PointStore::new(1);
        let mut sample = PointSample::of(&store, sample_root(3));
        let add = |store: &mut PointStore, sample: &mut PointSample, i: u64| {
            let (point, _) = store.add(&[x(i)]).unwrap();
            sample.add(point, &[x(i)]);
        };
        (0..30_000).for_each(|i| add(&mut store, &mut sample, i));
        for i in (0..30_000).filter(|i| i % 3 != 0) {
            store.remove(store.find(&[x(i)]).unwrap());
            if !sample.remove(&[x(i)]) {
                sample = PointSample::of(&store, sample_root(3));
            }
        }
        (30_000..32_000).for_each(|i| add(&mut store, &mut sample, i));
        let hashes = |sample: &PointSample| sample.smallest(CALIBRATED).collect::<Vec<_>>();
        assert_eq!(hashes(&sample), hashes(&PointSample::of(&store, sample_root(3))));
    }
}
