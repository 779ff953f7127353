//! Mondrian forests (report, chapter 2): many trees over one store of points, batch and online.
//!
//! [`Forest`] is the structure that every model shares: trees, the points they hold, box and measure. Regression,
//! classification, density estimation and random features put [labels](NodeStatistics) on it.

mod batch;
mod bulk;
pub mod classification;
pub mod density;
mod digest;
mod params;
pub mod regression;
mod sample;
mod saved;
mod summary;

pub use batch::RowBatch;
pub use bulk::BulkBuilder;
pub use classification::{ClassificationForest, ClassificationParams, ClassificationPath};
pub use density::{
    ClassPrior, DensityClassifier, DensityClassifierParams, DensityForest, DensityParams, DensityPath, DensityScore,
    DensityView,
};
pub use digest::TreeDigest;
pub(crate) use params::forest_builder;
pub use params::{ForestParams, GammaChoice, LifetimeChoice, MeasureChoice, Unseen, WeightsChoice};
pub use regression::{
    ForestCalibration, Gaussian, LeafModel, Prior, RegressionForest, RegressionParams, Sums, Targets, ValidationSet,
};
pub use summary::{Moments, Summary, TrainingDomain};

use std::sync::{Arc, OnceLock};

use crate::parallel::prelude::*;

use sample::PointSample;

use crate::points::first_not_finite;
use crate::process::{Bounds, BuiltInMeasure, Measure};
use crate::progress::Progress;
use crate::tree::{CodedRows, Codes, Descent, Domain, Frozen, Landing, PointStore, Touched, Tree};
use crate::{Error, Lifetime, Points, Result};

/// What a model knows of its points beyond where they lie, and the statistics it keeps at each node of a tree.
pub trait NodeStatistics: Clone + Sync {
    /// Statistics of one tree, in arrays by node and by leaf number.
    type Stats: Default + Clone + Send + Sync + std::fmt::Debug;

    /// What a batch says of its rows beyond where they lie: targets or labels.
    type Rows<'a>;

    /// Takes the rows of a batch, given the point of each. Whether the statistics of all trees must be gathered anew.
    fn take(&mut self, points: &[u32], rows: Self::Rows<'_>) -> bool;

    /// The statistics of a whole tree.
    fn gather(&self, tree: &Tree, stats: &mut Self::Stats);

    /// Updates the statistics after a change, given what it touched.
    fn update(&self, tree: &Tree, touched: &Touched, stats: &mut Self::Stats);
}

/// Fewer insertions than this are over before another thread has woken up: each takes about a microsecond.
const WORTH_THREADS: usize = 64;

/// Trees over more points than this do not fit a near cache: where one waits for memory, others go on meanwhile.
const LARGE: usize = 4096;

/// No labels: structure alone.
impl NodeStatistics for () {
    type Stats = ();
    type Rows<'a> = ();

    fn take(&mut self, _: &[u32], (): ()) -> bool {
        false
    }

    fn gather(&self, _: &Tree, (): &mut ()) {}

    fn update(&self, _: &Tree, _: &Touched, (): &mut ()) {}
}

/// What taking rows did to the store.
#[derive(Debug, Clone, Default)]
struct Learned {
    /// The point of each row learned.
    points: Vec<u32>,
    /// The points that are new.
    fresh: Vec<u32>,
}

/// Trees over one store of points, with statistics `S` beside each tree.
#[derive(Debug, Clone)]
pub struct Forest<S = ()> {
    measure: BuiltInMeasure,
    domain: Domain,
    store: PointStore,
    trees: Vec<(Tree, S)>,
    /// How many points lie on each rung of the ladder and not on a lower one; empty until something is forgotten, and kept
    /// from then on.
    n_on_rung: Vec<u32>,
    /// The points that automatic values come from, once they were asked for.
    sample: OnceLock<PointSample>,
    /// How many points and rows there are where the store has a sample of them only.
    n_sampled_of: Option<(usize, usize)>,
    /// What the trees were grown from where the store has no rows.
    summary: Option<Arc<Summary>>,
    scratch: Scratch,
}

/// Room of each tree for learning single rows, kept so that learning the next one allocates little. A copy has none yet.
#[derive(Debug, Default)]
struct Scratch(Vec<Touched>);

impl Clone for Scratch {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<S: Default + Clone + Send + Sync + std::fmt::Debug> Forest<S> {
    /// A forest without points whose box and measure come from the first data; trees are cut until `lifetime`.
    ///
    /// # Errors
    /// [`Error::Empty`] without rows where box or measure must come from them, and what [`ForestParams::check`] refuses.
    pub fn with_domain(params: &ForestParams, first: Points<'_>, lifetime: Lifetime) -> Result<Self> {
        params.check()?;
        let measure = params.measure_on(first)?;
        let raw = match &params.bounds {
            Some(bounds) if bounds.n_dims() == first.n_columns() => bounds.clone(),
            Some(bounds) => {
                let (expected, found) = (first.n_columns(), bounds.n_dims());
                return Err(Error::LengthMismatch { what: "dimensions of the root box", expected, found });
            }
            None => Bounds::of_points(first).ok_or(Error::Empty { what: "X", rows: 0, columns: first.n_columns() })?,
        };
        let domain = Domain::new(params.seed, &in_measure(&measure, &raw)?, lifetime)?;
        let trees = empty_trees(&domain, params.n_trees);
        let store = PointStore::new(first.n_columns());
        Ok(Self {
            measure,
            store,
            domain,
            trees,
            n_on_rung: Vec::new(),
            sample: OnceLock::new(),
            n_sampled_of: None,
            summary: None,
            scratch: Scratch::default(),
        })
    }

    /// A forest of saved parts with its trees still empty; [`Forest::regrow`] grows them.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for an absurd number of trees, [`Error::Incompatible`] where the parts do not fit.
    pub fn from_parts(measure: BuiltInMeasure, domain: Domain, store: PointStore, n_trees: usize) -> Result<Self> {
        ForestParams { n_trees, ..ForestParams::default() }.check()?;
        measure.check_dims(domain.n_dims())?;
        if store.n_dims() != domain.n_dims() {
            return Err(Error::Incompatible { what: "dimensions of points and root box" });
        }
        let trees = empty_trees(&domain, n_trees);
        Ok(Self {
            measure,
            domain,
            store,
            trees,
            n_on_rung: Vec::new(),
            sample: OnceLock::new(),
            n_sampled_of: None,
            summary: None,
            scratch: Scratch::default(),
        })
    }

    /// A forest of trees that were grown from a summary, without rows. Their statistics are still to be gathered.
    pub(crate) fn of_trees(
        measure: BuiltInMeasure,
        domain: Domain,
        store: PointStore,
        trees: Vec<Tree>,
        summary: Arc<Summary>,
    ) -> Self {
        Self {
            measure,
            store,
            domain,
            trees: trees.into_iter().map(|tree| (tree, S::default())).collect(),
            n_on_rung: Vec::new(),
            sample: OnceLock::new(),
            n_sampled_of: None,
            summary: Some(summary),
            scratch: Scratch::default(),
        }
    }

    /// The same forest, with trees that keep every cut as a node: see [`Domain::storing_every_cut`]. Trees that hold points
    /// must be grown anew.
    #[must_use]
    pub(crate) fn storing_every_cut(mut self) -> Self {
        self.domain = self.domain.storing_every_cut();
        self
    }

    /// The measure.
    pub fn measure(&self) -> &BuiltInMeasure {
        &self.measure
    }

    /// Boxes, seed and terminal lifetime.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// The points.
    pub fn store(&self) -> &PointStore {
        &self.store
    }

    /// Number of trees M.
    pub fn n_trees(&self) -> usize {
        self.trees.len()
    }

    /// Number of rows learned, held or not.
    pub fn n_rows(&self) -> usize {
        self.summary.as_ref().map_or(self.store.n_rows(), |summary| summary.n_rows())
    }

    /// Number of distinct points, held or not.
    pub(crate) fn n_points(&self) -> usize {
        self.n_sampled_of.map_or(self.store.n_points(), |(n_points, _)| n_points)
    }

    /// Number of rows that the points are of, where the store has a sample of them only too.
    pub(crate) fn n_rows_in_all(&self) -> usize {
        self.n_sampled_of.map_or(self.n_rows(), |(_, n_rows)| n_rows)
    }

    /// The summary that it was finished from, if it holds no rows.
    pub(crate) fn summary(&self) -> Option<&Arc<Summary>> {
        self.summary.as_ref()
    }

    /// Refuses what cannot be done without rows.
    ///
    /// # Errors
    /// [`Error::WithoutRows`].
    pub(crate) fn check_rows(&self, what: &'static str) -> Result<()> {
        if self.summary.is_some() { Err(Error::WithoutRows { what }) } else { Ok(()) }
    }

    /// Number of dimensions.
    pub fn n_dims(&self) -> usize {
        self.domain.n_dims()
    }

    /// The trees with their statistics, in order.
    pub fn trees(&self) -> &[(Tree, S)] {
        &self.trees
    }

    /// Bytes that the trees' structure takes.
    pub fn n_bytes(&self) -> usize {
        self.trees.iter().map(|(tree, _)| tree.n_bytes()).sum()
    }

    /// Refuses a view beyond the lifetime of the trees.
    pub(crate) fn check_view(&self, lifetime: Lifetime) -> Result<()> {
        if lifetime <= self.domain.lifetime() {
            return Ok(());
        }
        let expected = "at most the lifetime that the trees are grown to (raise it first)";
        Err(Error::InvalidParameter { name: "lifetime", value: lifetime.get(), expected })
    }

    /// Lets the trees go; [`Forest::regrow`] grows them again.
    pub(crate) fn drop_trees(&mut self) {
        self.trees = empty_trees(&self.domain, self.n_trees());
    }

    /// Rows to be learned, by [`Forest::learn`].
    ///
    /// # Errors
    /// As [`Forest::coordinates`].
    pub fn row_batch(&self, points: Points<'_>) -> Result<RowBatch> {
        points.check_width(self.n_dims())?;
        let rows = RowBatch::of_points(points, &self.measure, &self.domain);
        self.check_finite(&rows.coordinates)?;
        Ok(rows)
    }

    /// As [`Forest::row_batch`], for rows that are in measure coordinates already, row-major.
    pub fn arrivals_at(&self, coordinates: Vec<f64>) -> RowBatch {
        RowBatch::of_coordinates(coordinates, &self.domain)
    }

    /// Rows in measure coordinates, row-major.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] for rows of the wrong width, [`Error::NotFinite`] where a coordinate overflows.
    pub fn coordinates(&self, points: Points<'_>) -> Result<Vec<f64>> {
        points.check_width(self.n_dims())?;
        let u = self.measure.coordinates(&points.as_row_major(), self.n_dims());
        self.check_finite(&u)?;
        Ok(u)
    }

    fn check_finite(&self, u: &[f64]) -> Result<()> {
        // What is finite stays so where the measure changes nothing.
        let first = if self.measure == BuiltInMeasure::Uniform { None } else { first_not_finite(u) };
        match first {
            None => Ok(()),
            Some(at) => {
                let (row, column, value) = (at / self.n_dims(), at % self.n_dims(), u[at]);
                Err(Error::NotFinite { what: "X in measure coordinates", row, column, value })
            }
        }
    }

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
        if progress.is_none() {
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
        let rung = self.domain.rung();
        let learned = self.take_rows(batch)?;
        let changed = statistics.take(&learned.points, rows);
        let is_gathered = self.grow(statistics, &learned, rung, progress)?;
        if changed && !is_gathered {
            self.gather(statistics);
        }
        Ok(learned.points)
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
    ) -> Result<()> {
        let learned = self.take_rows(batch)?;
        statistics.take(&learned.points, rows);
        Ok(())
    }

    /// Takes rows into the store and widens the box to hold them. On error nothing has changed.
    fn take_rows(&mut self, rows: RowBatch) -> Result<Learned> {
        self.check_rows("learning more rows")?;
        let is_held = rows.are_in(self.domain.root_box());
        let RowBatch { coordinates, hashes, .. } = rows;
        let rung = if is_held { self.domain.rung() } else { self.rung_for(&coordinates)? };
        let n_dims = self.n_dims();
        let room = crate::tree::PointStore::CAPACITY - self.store.n_slots();
        if coordinates.len() / n_dims > room || self.store.n_rows() + coordinates.len() / n_dims > u32::MAX as usize {
            let expected = (self.store.n_rows() + coordinates.len() / n_dims) as f64;
            return Err(Error::TooLarge { what: "rows", expected, limit: crate::tree::PointStore::CAPACITY as f64 });
        }
        self.domain.set_rung(rung)?;
        if self.store.n_slots() == 0 {
            let points = self.store.adopt(coordinates, &hashes);
            return Ok(Learned { points, fresh: self.store.all_points() });
        }
        let mut learned = Learned::default();
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
        if !self.n_on_rung.is_empty() {
            self.n_on_rung.resize(self.domain.rung() as usize + 1, 0);
            for point in &learned.fresh {
                self.n_on_rung[self.domain.rung_of(self.store.point(*point)) as usize] += 1;
            }
        }
        Ok(learned)
    }

    /// The lowest rung, not below the current one, whose box holds the given rows.
    fn rung_for(&self, coordinates: &[f64]) -> Result<u32> {
        // The usual case, and free of allocations: the box holds them already.
        if self.domain.root_box().contains_all(coordinates) {
            return Ok(self.domain.rung());
        }
        let new = Bounds::of_points(Points::row_major(coordinates, self.n_dims())?).expect("there are rows");
        Ok(self.domain.rung_holding(&new)?.max(self.domain.rung()))
    }

    /// Grows all trees by rows that [`Forest::take_rows`] took when the box was at `rung_before`, with a report after every
    /// few trees. Whether they were grown anew, and all statistics gathered. Cancelled, some trees have grown and others not.
    fn grow<L: NodeStatistics<Stats = S>>(
        &mut self,
        labels: &L,
        learned: &Learned,
        rung_before: u32,
        progress: &mut Progress<'_>,
    ) -> Result<bool> {
        // A wider box or a batch larger than what is there: planting anew is exact, and cheaper.
        if self.domain.rung() != rung_before || learned.points.len() * 2 > self.store.n_rows() {
            self.regrow_with_progress(labels, progress)?;
            return Ok(true);
        }
        if let ([point], [_]) = (&learned.points[..], &learned.fresh[..])
            && self.trees.len() < WORTH_THREADS
        {
            self.grow_by_one(labels, *point);
            return Ok(false);
        }
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
        })?;
        Ok(false)
    }

    /// Grows all trees by a point that they do not have, on this thread.
    fn grow_by_one<L: NodeStatistics<Stats = S>>(&mut self, labels: &L, point: u32) {
        let Self { domain, store, trees, scratch: Scratch(scratch), .. } = self;
        scratch.resize_with(trees.len(), Touched::default);
        Tree::insert_into_all(trees.iter_mut().map(|(tree, _)| tree).zip(&mut *scratch), domain, store, point);
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
        self.regrow_each(labels, progress, |_, grown| Some(grown()))
    }

    /// Grows all trees anew from the store, as `plant` says: it is given a tree's number and what grows it.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub(crate) fn regrow_each<L: NodeStatistics<Stats = S>>(
        &mut self,
        labels: &L,
        progress: &mut Progress<'_>,
        plant: impl Fn(usize, &dyn Fn() -> Tree) -> Option<Tree> + Sync,
    ) -> Result<()> {
        let Self { domain, store, trees, .. } = self;
        // Few large trees keep all threads busy only if each is grown by several.
        let grown =
            if trees.len() < crate::parallel::current_num_threads() { Tree::grown_in_parts } else { Tree::grown_by };
        let codes = Codes::if_worth(domain, store, trees.len());
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
        })
    }

    /// Gathers the statistics of all trees anew.
    pub fn gather<L: NodeStatistics<Stats = S>>(&mut self, labels: &L) {
        self.trees.par_iter_mut().for_each(|(tree, stats)| labels.gather(tree, stats));
    }

    /// Takes one row of each given point away; all must be held. `labels` must not count the rows any more.
    pub fn forget<L: NodeStatistics<Stats = S>>(&mut self, labels: &L, points: &[u32]) {
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

    /// The points that automatic values come from.
    pub(crate) fn sample(&self) -> &PointSample {
        self.sample.get_or_init(|| PointSample::of(&self.store, self.domain.seed()))
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
        let mut wide = Self {
            measure,
            domain,
            store,
            trees,
            n_on_rung: Vec::new(),
            sample: OnceLock::new(),
            n_sampled_of: None,
            summary: None,
            scratch: Scratch::default(),
        };
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
        self.domain = self.domain.with_lifetime(lifetime);
        let Self { domain, store, trees, .. } = self;
        trees.par_iter_mut().for_each(|(tree, stats)| {
            tree.raise_lifetime(domain, store);
            labels.gather(tree, stats);
        });
    }

    /// Refuses another forest that does not have the same key: seed, number of trees, first box and measure.
    ///
    /// # Errors
    /// [`Error::Incompatible`] saying what differs, [`Error::WithoutRows`].
    pub fn check_mergeable(&self, other: &Self) -> Result<()> {
        self.check_rows("merging forests")?;
        other.check_rows("merging forests")?;
        let differs = [
            ("seeds", self.domain.seed() != other.domain.seed()),
            ("numbers of trees", self.n_trees() != other.n_trees()),
            ("measures", self.measure != other.measure),
            ("root boxes", self.domain.first_box() != other.domain.first_box()),
            ("versions of the rules", self.domain.rules() != other.domain.rules()),
        ];
        match differs.iter().find(|(_, differs)| *differs) {
            Some((what, _)) => Err(Error::Incompatible { what }),
            None => Ok(()),
        }
    }

    /// The number of the cell of each row in each tree at a lifetime, row-major by tree; −1 for a cell without
    /// training rows. Cells are numbered depth first: numbers depend on neither order of arrival nor threads.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] for rows of the wrong width.
    pub fn apply(&self, points: Points<'_>, lifetime: Lifetime) -> Result<Vec<i64>> {
        let mut inside = self.coordinates(points)?;
        for x in inside.chunks_exact_mut(self.n_dims()) {
            self.domain.clamp(x);
        }
        let rows = CodedRows::new(&self.domain, &inside);
        let columns: Vec<Vec<i64>> = self
            .trees
            .par_iter()
            .map(|(tree, _)| {
                let numbers = tree.cell_numbers(lifetime);
                let number = |landing| match landing {
                    Landing::Seen(child) => i64::from(numbers[&child]),
                    Landing::Unseen { .. } => -1,
                };
                let landings = tree.route(&self.domain, &self.store, &rows, lifetime, Frozen::Resumed);
                landings.into_iter().map(number).collect()
            })
            .collect();
        Ok((0..points.n_rows()).flat_map(|row| columns.iter().map(move |column| column[row])).collect())
    }
}

/// Trees without points.
fn empty_trees<S: Default>(domain: &Domain, n_trees: usize) -> Vec<(Tree, S)> {
    (0..n_trees).map(|index| (Tree::new(domain.tree_key(index)), S::default())).collect()
}

/// Works on a few trees at a time, given the number of the first, and reports progress between them, where it can be cancelled.
fn in_chunks<T>(trees: &mut [T], progress: &mut Progress<'_>, work: impl Fn(usize, &mut [T])) -> Result<()> {
    let (total, mut done) = (trees.len(), 0);
    // Two per thread, so that uneven trees are balanced over the threads.
    for some in trees.chunks_mut(2 * crate::parallel::current_num_threads()) {
        work(done, some);
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

/// A box in measure coordinates.
pub(crate) fn in_measure(measure: &BuiltInMeasure, raw: &Bounds) -> Result<Bounds> {
    let map = |corner: &[f64]| -> Vec<f64> {
        corner.iter().enumerate().map(|(dim, x)| measure.coordinate(dim, *x) + 0.0).collect()
    };
    Bounds::new(&map(raw.lower()), &map(raw.upper()))
}
