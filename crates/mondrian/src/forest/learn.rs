//! Where rows are learned and forgotten: the store takes them, the box widens or narrows, statistics and trees follow.

use std::sync::{OnceLock, PoisonError};

use crate::forest::warm_up::FirstBox;
use crate::forest::{Forest, LastPlaces, NodeStatistics, RowBatch, Scratch, empty_trees};
use crate::memory;
use crate::parallel::prelude::*;
use crate::process::Bounds;
use crate::progress::Progress;
use crate::tree::{Codes, Descent, Domain, Found, PointStore, Touched, Tree};
use crate::{Error, Lifetime, Points, Result};

/// Fewer insertions than this are over before another thread has woken up: each takes about a microsecond.
const WORTH_THREADS: usize = 64;

/// Trees over more points than this do not fit a near cache: where one waits for memory, others go on meanwhile.
const LARGE: usize = 4096;

/// Bytes of a tree with the statistics beside it, over those of its structure, about.
const WITH_STATISTICS: f64 = 1.4;

/// What taking rows did to the store.
#[derive(Debug, Clone, Default)]
pub(super) struct Learned {
    /// The point of each row learned.
    pub(super) points: Vec<u32>,
    /// The points that are new.
    pub(super) fresh: Vec<u32>,
    /// Whether the root box is another one now.
    is_box_new: bool,
}

impl<S: Default + Clone + Send + Sync + std::fmt::Debug> Forest<S> {
    /// Learns a batch: the store takes its rows and the box widens to hold them, the statistics take what is known of the
    /// rows, and all trees grow. The point of each row.
    ///
    /// A call with a progress callback works on a copy, so that nothing has changed when it is cancelled.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for points too far away or too many, [`Error::Cancelled`]; nothing has changed then.
    pub fn learn<L: NodeStatistics<Stats = S>>(
        &mut self,
        batch: RowBatch,
        rows: L::Rows<'_>,
        statistics: &mut L,
        progress: &mut Progress<'_>,
    ) -> Result<Vec<u32>> {
        // A copy of a forest without points costs nothing, and its first trees may be too large.
        if progress.is_none() && self.store.n_slots() > 0 {
            return self.learn_in_place(batch, rows, statistics, progress);
        }
        let (mut forest, mut next) = (self.clone(), statistics.clone());
        let points = forest.learn_in_place(batch, rows, &mut next, progress)?;
        (*self, *statistics) = (forest, next);
        Ok(points)
    }

    fn learn_in_place<L: NodeStatistics<Stats = S>>(
        &mut self,
        batch: RowBatch,
        rows: L::Rows<'_>,
        statistics: &mut L,
        progress: &mut Progress<'_>,
    ) -> Result<Vec<u32>> {
        let is_first = self.store.n_slots() == 0;
        let learned = self.take_rows(batch)?;
        let changed = statistics.take(&learned.points, rows);
        if is_first {
            self.grow_first(statistics, progress)?;
            return Ok(learned.points);
        }
        let is_gathered = self.grow(statistics, &learned, progress)?;
        if changed && !is_gathered {
            self.gather(statistics);
        }
        Ok(learned.points)
    }

    /// Takes rows away that were staged: no tree has them.
    pub(crate) fn unstage(&mut self, points: &[u32]) {
        points.iter().for_each(|point| {
            self.store.remove(*point);
        });
    }

    /// As [`Forest::learn`], with the trees left as they are until [`Forest::regrow`].
    ///
    /// # Errors
    /// [`Error::TooLarge`]; nothing has changed then.
    pub(crate) fn stage<L: NodeStatistics<Stats = S>>(
        &mut self,
        batch: RowBatch,
        rows: L::Rows<'_>,
        statistics: &mut L,
    ) -> Result<Vec<u32>> {
        let learned = self.take_rows(batch)?;
        statistics.take(&learned.points, rows);
        Ok(learned.points)
    }

    /// Takes rows into the store and widens the box to hold them. On error nothing has changed.
    pub(super) fn take_rows(&mut self, rows: RowBatch) -> Result<Learned> {
        self.check_rows("learning more rows")?;
        let is_held = rows.are_in(self.domain.root_box());
        let RowBatch { coordinates, hashes, .. } = rows;
        let wider = if is_held && self.domain.rung() == 0 { None } else { self.box_for(&coordinates)? };
        let n_dims = self.n_dims();
        let room = crate::tree::PointStore::CAPACITY - self.store.n_slots();
        if coordinates.len() / n_dims > room || self.store.n_rows() + coordinates.len() / n_dims > u32::MAX as usize {
            let expected = (self.store.n_rows() + coordinates.len() / n_dims) as f64;
            return Err(Error::TooLarge { what: "rows", expected, limit: crate::tree::PointStore::CAPACITY as f64 });
        }
        let is_box_new = wider.is_some();
        if let Some((domain, first_box)) = wider {
            (self.domain, self.first_box) = (domain, first_box);
        }
        if self.store.n_slots() == 0 {
            let points = self.store.adopt(coordinates, &hashes);
            return Ok(Learned { points, fresh: self.store.all_points(), is_box_new });
        }
        let mut learned = Learned { is_box_new, ..Learned::default() };
        self.store.reserve(coordinates.len() / n_dims);
        for (x, hash) in coordinates.chunks_exact(n_dims).zip(hashes) {
            let (point, new) = self.store.add_hashed(hash, x)?;
            learned.points.push(point);
            if new {
                learned.fresh.push(point);
            }
        }
        if let Some(sample) = self.sample.get_mut() {
            learned.fresh.iter().for_each(|point| sample.add(*point, self.store.point(*point)));
        }
        if is_box_new && self.domain.rung() == 0 {
            self.n_on_rung.clear();
        }
        if !self.n_on_rung.is_empty() {
            self.n_on_rung.resize(self.domain.rung() as usize + 1, 0);
            for point in &learned.fresh {
                self.n_on_rung[self.domain.rung_of(self.store.point(*point)) as usize] += 1;
            }
        }
        Ok(learned)
    }

    /// The domain whose root box holds all rows and the given ones, and what its first box was put around; none if it is the current one.
    ///
    /// A first box that is [due](FirstBox::is_due) is put around all rows, otherwise the box is the lowest rung of the ladder that holds them.
    /// Either way all trees are grown anew; on one box this, and every row learned afterwards, takes less time.
    fn box_for(&self, coordinates: &[f64]) -> Result<Option<(Domain, Option<FirstBox>)>> {
        let rung = self.rung_for(coordinates);
        let n_dims = self.n_dims();
        let n_rows = self.store.n_rows() + coordinates.len() / n_dims;
        if let (Some(first_box), None) = (self.first_box_left_by(&rung, n_rows), &self.warm_up) {
            let mut all: Vec<f64> = self.store.points().flat_map(|point| self.store.point(point)).copied().collect();
            all.extend_from_slice(coordinates);
            if let Some((bounds, first_box)) = first_box.around(n_rows, Points::of_checked(&all, n_dims))
                && let Ok(domain) = self.domain.on_first_box(&bounds)
            {
                return Ok(Some((domain, Some(first_box))));
            }
        }
        let rung = rung?;
        if rung == self.domain.rung() {
            return Ok(None);
        }
        let mut domain = self.domain.clone();
        domain.set_rung(rung)?;
        Ok(Some((domain, self.first_box.clone())))
    }

    /// The first box, where rows that need this rung lie outside and it [is put around](FirstBox::is_due) all of then so many rows.
    fn first_box_left_by(&self, rung: &Result<u32>, n_rows: usize) -> Option<&FirstBox> {
        // Rows too far away for the ladder are outside too.
        self.first_box.as_ref().filter(|first_box| !matches!(rung, Ok(0)) && first_box.is_due(n_rows))
    }

    /// Whether rows of a warm-up are learned by a fit of all: where [one is due](crate::forest::warm_up::WarmUp::is_due) anyway, and
    /// where after the warm-up the first box would be put around all rows.
    pub(crate) fn is_fit_due(&self, points: Points<'_>) -> bool {
        let n_rows = self.store.n_rows() + points.n_rows();
        let is_box_left =
            || self.coordinates(points).is_ok_and(|u| self.first_box_left_by(&self.rung_for(&u), n_rows).is_some());
        self.warm_up.as_ref().is_some_and(|warm_up| warm_up.is_due(points.n_rows()) || is_box_left())
    }

    /// The lowest rung, not below the current one, whose box holds the given rows.
    pub(super) fn rung_for(&self, coordinates: &[f64]) -> Result<u32> {
        // The usual case, and free of allocations: the box holds them already.
        if self.domain.root_box().contains_all(coordinates) {
            return Ok(self.domain.rung());
        }
        let new = Bounds::of_points(Points::row_major(coordinates, self.n_dims())?).expect("there are rows");
        Ok(self.domain.rung_holding(&new)?.max(self.domain.rung()))
    }

    /// Grows all trees by rows that [`Forest::take_rows`] took, with a report after every few trees. Whether they were grown anew, and
    /// all statistics gathered. Cancelled, some trees have grown and others not.
    pub(super) fn grow<L: NodeStatistics<Stats = S>>(
        &mut self,
        labels: &L,
        learned: &Learned,
        progress: &mut Progress<'_>,
    ) -> Result<bool> {
        // A wider box or a batch larger than what is there: planting anew is exact, and cheaper.
        if learned.is_box_new || learned.points.len() * 2 > self.store.n_rows() {
            self.regrow_with_progress(labels, progress)?;
            return Ok(true);
        }
        if let ([point], [_]) = (&learned.points[..], &learned.fresh[..])
            && self.trees.len() < WORTH_THREADS
        {
            self.grow_by_one(labels, *point);
            return Ok(false);
        }
        self.forget_places();
        let mut fresh = learned.fresh.clone();
        fresh.sort_unstable();
        let again: Vec<u32> =
            learned.points.iter().copied().filter(|point| fresh.binary_search(point).is_err()).collect();
        let Self { domain, store, trees, .. } = self;
        let learn = |(touched, batch): &mut (Touched, Vec<u32>), (tree, stats): &mut (Tree, S)| {
            for point in &again {
                tree.count_again(store, *point, touched);
                labels.update(tree, touched, stats);
            }
            batch.clone_from(&fresh);
            tree.insert(domain, store, batch, touched);
            update(labels, tree, touched, stats, store);
        };
        if learned.points.len() * trees.len() < WORTH_THREADS {
            let mut room = <(Touched, Vec<u32>)>::default();
            trees.iter_mut().for_each(|tree| learn(&mut room, tree));
            return Ok(false);
        }
        in_chunks(trees, progress, |_, some| {
            some.par_iter_mut().for_each_init(<(Touched, Vec<u32>)>::default, learn);
            Ok(())
        })?;
        Ok(false)
    }

    /// Grows all trees by a point that they do not have, on this thread.
    fn grow_by_one<L: NodeStatistics<Stats = S>>(&mut self, labels: &L, point: u32) {
        let Self { domain, store, trees, scratch: Scratch(scratch), places: LastPlaces(places), .. } = self;
        let places = places.get_mut().unwrap_or_else(PoisonError::into_inner);
        scratch.resize_with(trees.len(), Touched::default);
        let (x, lifetime) = (store.point(point), domain.lifetime().get());
        let (found, tree) = (places.found(x, lifetime), |number: usize| &trees[number].0);
        if found.is_none() {
            places.descend(tree, trees.len(), (x, lifetime), |_, _, _| {});
        }
        if found != Some(Found::Partings) {
            places.part(tree, domain, store, x);
        }
        places.forget();
        let is_large = store.n_points() > LARGE;
        for (((tree, stats), touched), place) in trees.iter_mut().zip(&mut *scratch).zip(&mut places.trees) {
            tree.insert_at(place, domain, store, point, touched);
            if is_large {
                labels.prefetch(tree, touched, stats);
            }
        }
        for ((tree, stats), touched) in trees.iter_mut().zip(scratch) {
            update(labels, tree, touched, stats, store);
        }
    }

    /// Grows all trees anew from the store.
    pub fn regrow<L: NodeStatistics<Stats = S>>(&mut self, labels: &L) {
        let outcome = self.regrow_with_progress(labels, &mut Progress::none());
        debug_assert!(outcome.is_ok(), "never cancelled");
    }

    pub(crate) fn regrow_with_progress<L: NodeStatistics<Stats = S>>(
        &mut self,
        labels: &L,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        self.regrow_each(labels, progress, None, |_, grown| Some(grown()))
    }

    /// As [`Forest::regrow_with_progress`], for trees that were not there before: ends early if they would take more memory than
    /// there may be, and has then grown some.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::Cancelled`].
    pub(crate) fn grow_first<L: NodeStatistics<Stats = S>>(
        &mut self,
        labels: &L,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        self.regrow_each(labels, progress, Some(memory::limit()), |_, grown| Some(grown()))
    }

    /// Grows all trees anew from the store, as `plant` says: it is given a tree's number and what grows it. After the first few it
    /// is known how many bytes all will take.
    ///
    /// # Errors
    /// [`Error::Cancelled`], [`Error::TooLarge`] where that is more than the limit or than can be reserved.
    pub(crate) fn regrow_each<L: NodeStatistics<Stats = S>>(
        &mut self,
        labels: &L,
        progress: &mut Progress<'_>,
        limit: Option<f64>,
        plant: impl Fn(usize, &dyn Fn() -> Tree) -> Option<Tree> + Sync,
    ) -> Result<()> {
        self.forget_places();
        let Self { domain, store, trees, .. } = self;
        // Few large trees keep all threads busy only if each is grown by several.
        let grown =
            if trees.len() < crate::parallel::current_num_threads() { Tree::grown_in_parts } else { Tree::grown_by };
        let codes = Codes::if_worth(domain, store, trees.len());
        let n_trees = trees.len();
        in_chunks(trees, progress, |first, some| {
            some.par_iter_mut().enumerate().for_each(|(at, (tree, stats))| {
                let key = tree.key();
                // The old tree goes first: two at a time would be the peak of memory.
                *tree = Tree::new(key);
                if let Some(new) = plant(first + at, &|| grown(domain, key, store, codes.as_ref())) {
                    *tree = new;
                    labels.gather(tree, stats);
                }
            });
            let (Some(limit), 0) = (limit, first) else { return Ok(()) };
            let bytes: usize = some.iter().map(|(tree, _)| tree.n_bytes()).sum();
            let left = (n_trees - some.len()) as f64 / some.len() as f64;
            memory::check_within("bytes of the trees", WITH_STATISTICS * bytes as f64 * left, limit)
        })
    }

    /// Gathers the statistics of all trees anew.
    pub fn gather<L: NodeStatistics<Stats = S>>(&mut self, labels: &L) {
        self.trees.par_iter_mut().for_each(|(tree, stats)| labels.gather(tree, stats));
    }

    /// Takes one row of each given point away; all must be held. `labels` must not count the rows any more.
    pub fn forget<L: NodeStatistics<Stats = S>>(&mut self, labels: &L, points: &[u32]) {
        self.forget_places();
        self.count_rungs();
        // Which removal is a point's last is known before any tree changes.
        let mut removals: Vec<(u32, Vec<f64>, bool)> = Vec::with_capacity(points.len());
        for point in points {
            let x = self.store.point(*point).to_vec();
            let gone = self.store.remove(*point);
            if gone && !self.n_on_rung.is_empty() {
                self.n_on_rung[self.domain.rung_of(&x) as usize] -= 1;
            }
            if gone && self.sample.get_mut().is_some_and(|sample| !sample.remove(&x)) {
                self.sample = OnceLock::new();
            }
            removals.push((*point, x, gone));
        }
        let Self { domain, store, trees, scratch: Scratch(scratch), .. } = self;
        if let [(_, x, _)] = &removals[..]
            && store.n_points() > LARGE
        {
            Descent::touch(trees.iter().map(|(tree, _)| tree), f64::INFINITY, x);
        }
        let forget = |touched: &mut Touched, (tree, stats): &mut (Tree, S)| {
            for (point, x, gone) in &removals {
                tree.forget(domain, x, *point, *gone, touched);
                labels.update(tree, touched, stats);
            }
            if tree.needs_compaction() {
                tree.compact(store);
                labels.gather(tree, stats);
            }
        };
        if removals.len() * trees.len() < WORTH_THREADS {
            scratch.resize_with(trees.len(), Touched::default);
            trees.iter_mut().zip(scratch).for_each(|(tree, touched)| forget(touched, tree));
        } else {
            trees.par_iter_mut().for_each_init(Touched::default, forget);
        }
        self.narrow(labels);
    }

    /// Goes back to the lowest rung that holds all points: the forest that never saw the forgotten ones.
    fn narrow<L: NodeStatistics<Stats = S>>(&mut self, labels: &L) {
        if self.domain.rung() == 0 {
            return;
        }
        let rung = self.n_on_rung.iter().rposition(|n| *n > 0).unwrap_or(0);
        if rung < self.domain.rung() as usize {
            self.domain.set_rung(rung as u32).expect("a lower rung exists");
            self.n_on_rung.truncate(rung + 1);
            self.regrow(labels);
        }
    }

    /// Counts the points of each rung, if that has not been done and there are rungs.
    fn count_rungs(&mut self) {
        if self.domain.rung() == 0 || !self.n_on_rung.is_empty() {
            return;
        }
        self.n_on_rung = vec![0; self.domain.rung() as usize + 1];
        for point in self.store.points() {
            self.n_on_rung[self.domain.rung_of(self.store.point(point)) as usize] += 1;
        }
    }

    /// The forest on a root box widened to hold sets of rows without learning them, so that a path over them is piecewise
    /// constant; none if the box holds them already. The trees are grown anew, not copied first.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for rows too far away.
    pub fn widened_for<L: NodeStatistics<Stats = S>>(&self, labels: &L, sets: &[&[f64]]) -> Result<Option<Self>> {
        self.widened_with_progress(labels, sets, &mut Progress::none())
    }

    /// As [`Forest::widened_for`], with a report after every few trees.
    pub(crate) fn widened_with_progress<L: NodeStatistics<Stats = S>>(
        &self,
        labels: &L,
        sets: &[&[f64]],
        progress: &mut Progress<'_>,
    ) -> Result<Option<Self>> {
        let mut rung = self.domain.rung();
        for coordinates in sets {
            rung = rung.max(self.rung_for(coordinates)?);
        }
        if rung == self.domain.rung() {
            return Ok(None);
        }
        self.check_rows("a wider root box, which holds the validation rows,")?;
        let (measure, mut domain, store) = (self.measure.clone(), self.domain.clone(), self.store.clone());
        domain.set_rung(rung)?;
        let trees = empty_trees(&domain, self.n_trees());
        let mut wide = Self { held: self.held.clone(), ..Self::of_parts(measure, domain, store, trees) };
        wide.regrow_with_progress(labels, progress)?;
        Ok(Some(wide))
    }

    /// The lifetime that trees will be grown to, where rows are staged and no tree has been grown.
    pub(crate) fn set_lifetime_of_staged(&mut self, lifetime: Lifetime) {
        self.domain = self.domain.with_lifetime(lifetime);
    }

    /// Cuts all trees on until a larger lifetime. A smaller one is a view: nothing happens.
    pub fn raise_lifetime<L: NodeStatistics<Stats = S>>(&mut self, labels: &L, lifetime: Lifetime) {
        if lifetime <= self.domain.lifetime() {
            return;
        }
        self.forget_places();
        self.domain = self.domain.with_lifetime(lifetime);
        let Self { domain, store, trees, .. } = self;
        trees.par_iter_mut().for_each(|(tree, stats)| {
            tree.raise_lifetime(domain, store);
            labels.gather(tree, stats);
        });
    }
}

/// Works on a few trees at a time, given the number of the first, and reports progress between them, where it can be cancelled.
fn in_chunks<T>(
    trees: &mut [T],
    progress: &mut Progress<'_>,
    work: impl Fn(usize, &mut [T]) -> Result<()>,
) -> Result<()> {
    let (total, mut done) = (trees.len(), 0);
    // Two per thread, so that uneven trees are balanced over the threads.
    for some in trees.chunks_mut(2 * crate::parallel::current_num_threads()) {
        work(done, some)?;
        done += some.len();
        progress.report(done as f64 / total as f64)?;
    }
    Ok(())
}

/// Updates the statistics of a tree that has learned something, and compacts it: cells that points have split leave something
/// behind.
fn update<L: NodeStatistics>(labels: &L, tree: &mut Tree, touched: &Touched, stats: &mut L::Stats, store: &PointStore) {
    labels.update(tree, touched, stats);
    if tree.needs_compaction() {
        tree.compact(store);
        labels.gather(tree, stats);
    }
}
