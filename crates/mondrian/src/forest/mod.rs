//! Mondrian forests (report, chapter 2): many trees over one store of points, batch and online.
//!
//! [`Forest`] is the structure that every model shares: trees, the points they hold, box and measure. Regression,
//! classification, density estimation and random features put [labels](NodeStatistics) on it.

mod batch;
mod bulk;
pub mod classification;
pub mod density;
mod digest;
mod learn;
mod params;
pub mod regression;
mod retention;
mod sample;
mod saved;
mod summary;
mod warm_up;

pub use batch::RowBatch;
pub use bulk::BulkBuilder;
pub use classification::{ClassificationForest, ClassificationParams, ClassificationPath};
pub use density::{
    ClassPrior, DensityClassifier, DensityClassifierParams, DensityForest, DensityParams, DensityScore, DensityView,
};
pub use digest::TreeDigest;
pub(crate) use params::forest_builder;
pub use params::{ForestParams, GammaChoice, LifetimeChoice, MeasureChoice, Unseen, WeightsChoice};
pub use regression::{
    ForestCalibration, Gaussian, LeafModel, Prior, RegressionForest, RegressionParams, Sums, Targets, ValidationSet,
};
pub use summary::{Moments, Summary, TrainingDomain};

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::parallel::prelude::*;

use retention::{Held, HeldRow, Plan, Rule};
use sample::PointSample;
use warm_up::{FirstBox, FirstRows, WarmUp, stream_box};

use crate::points::first_not_finite;
use crate::process::{Bounds, BuiltInMeasure, Measure, NodeKey};
use crate::tree::{CodedRows, Domain, Frozen, Landing, Places, PointStore, Touched, Tree};
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

    /// Asks for memory that [`NodeStatistics::update`] will read and that those who touched it have not.
    fn prefetch(&self, _: &Tree, _: &Touched, _: &Self::Stats) {}
}

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
    /// The rows held, where a rule says which; none if all are.
    held: Option<Held>,
    /// The rows of a stream whose box and scale are not fixed yet.
    warm_up: Option<WarmUp>,
    /// The first box of a stream, if it may be put around more rows.
    first_box: Option<FirstBox>,
    scratch: Scratch,
    places: LastPlaces,
}

/// Where the row lies that was asked for last, kept for learning it next. A copy does not know.
#[derive(Debug, Default)]
struct LastPlaces(Mutex<Places>);

impl Clone for LastPlaces {
    fn clone(&self) -> Self {
        Self::default()
    }
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
        let empty = || Error::Empty { what: "X", rows: 0, columns: first.n_columns() };
        let (raw, margins) = match &params.bounds {
            Some(bounds) if bounds.n_dims() == first.n_columns() => (bounds.clone(), None),
            Some(bounds) => {
                let (expected, found) = (first.n_columns(), bounds.n_dims());
                return Err(Error::LengthMismatch { what: "dimensions of the root box", expected, found });
            }
            None if params.warm_up.is_some() => {
                let (raw, margins) = stream_box(first).ok_or_else(empty)?;
                (raw, Some(in_measure(&measure, &margins)?))
            }
            None => (Bounds::of_points(first).ok_or_else(empty)?, None),
        };
        let domain = Domain::new(params.seed, &in_measure(&measure, &raw)?, lifetime)?;
        let trees = empty_trees(&domain, params.n_trees);
        let store = PointStore::new(first.n_columns());
        Ok(Self {
            held: Rule::of(params).map(|rule| Held::new(rule, params.seed)),
            first_box: margins.map(|margins| FirstBox::of(first.n_rows(), margins)),
            ..Self::of_parts(measure, domain, store, trees)
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
        Ok(Self::of_parts(measure, domain, store, trees))
    }

    /// Trees over a store, and nothing found or remembered yet.
    fn of_parts(measure: BuiltInMeasure, domain: Domain, store: PointStore, trees: Vec<(Tree, S)>) -> Self {
        Self {
            measure,
            domain,
            store,
            trees,
            n_on_rung: Vec::new(),
            sample: OnceLock::new(),
            n_sampled_of: None,
            summary: None,
            held: None,
            warm_up: None,
            first_box: None,
            scratch: Scratch::default(),
            places: LastPlaces::default(),
        }
    }

    /// A forest of trees that were grown from a summary, without rows. Their statistics are still to be gathered.
    pub(crate) fn of_trees(
        measure: BuiltInMeasure,
        domain: Domain,
        store: PointStore,
        trees: Vec<Tree>,
        summary: Arc<Summary>,
    ) -> Self {
        let trees = trees.into_iter().map(|tree| (tree, S::default())).collect();
        Self { summary: Some(summary), ..Self::of_parts(measure, domain, store, trees) }
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

    /// Works with the places of the row asked for last, or with room for others while somebody else does.
    pub(crate) fn with_places<T>(&self, work: impl FnOnce(&mut Places) -> T) -> T {
        match self.places.0.try_lock() {
            Ok(mut places) => work(&mut places),
            Err(_) => work(&mut Places::default()),
        }
    }

    /// Says that the trees change, so that where the row lies that was asked for last is not known any more.
    fn forget_places(&mut self) {
        self.places.0.get_mut().unwrap_or_else(PoisonError::into_inner).forget();
    }

    /// Lets the trees go; [`Forest::regrow`] grows them again.
    pub(crate) fn drop_trees(&mut self) {
        self.forget_places();
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

    /// What becomes of arriving rows, given in raw units with what is hashed besides, where a rule says which rows are held.
    pub(crate) fn plan(&self, points: Points<'_>, values: &[f64]) -> Option<Plan> {
        let held = self.held.as_ref()?;
        Some(held.plan(points.n_rows(), &held.priorities(points, values)))
    }

    /// Takes note of a plan whose rows have been learned, given their points and values: the rows that the model must forget.
    pub(crate) fn commit(&mut self, plan: &Plan, points: &[u32], values: &[f64]) -> Vec<HeldRow> {
        self.held.as_mut().map_or_else(Vec::new, |held| held.commit(plan, points, values))
    }

    /// The rows held by a rule, if there is one.
    pub(crate) fn held(&self) -> Option<&Held> {
        self.held.as_ref()
    }

    pub(crate) fn held_mut(&mut self) -> Option<&mut Held> {
        self.held.as_mut()
    }

    /// The rows of a stream whose box and scale are not fixed yet.
    pub(crate) fn warm_up(&self) -> Option<&WarmUp> {
        self.warm_up.as_ref()
    }

    pub(crate) fn warm_up_mut(&mut self) -> Option<&mut WarmUp> {
        self.warm_up.as_mut()
    }

    /// Goes on with a warm-up, or fixes the scale if it is over.
    pub(crate) fn set_warm_up(&mut self, warm_up: Option<WarmUp>) {
        self.warm_up = warm_up.filter(|warm_up| !warm_up.is_over());
    }

    /// Fixes box and scale for good.
    pub(crate) fn end_warm_up(&mut self) {
        (self.warm_up, self.first_box) = (None, None);
    }

    /// Starts the warm-up that parameters ask for, after a first fit of these rows.
    pub(crate) fn start_warm_up(&mut self, params: &ForestParams, rows: &FirstRows<'_>) -> Result<()> {
        if let Some(mut warm_up) = WarmUp::of(params, self.n_dims()) {
            warm_up.push(params, rows)?;
            self.set_warm_up(Some(warm_up));
        }
        Ok(())
    }

    /// Keeps rows that were learned in a warm-up.
    pub(crate) fn keep_first_rows(&mut self, params: &ForestParams, rows: &FirstRows<'_>) -> Result<()> {
        self.warm_up.as_mut().map_or(Ok(()), |warm_up| warm_up.push(params, rows))
    }

    /// Takes the rows that a file says are held.
    fn hold(&mut self, held: Option<Held>) {
        self.held = held;
    }

    /// The points that automatic values come from.
    pub(crate) fn sample(&self) -> &PointSample {
        self.sample_keyed(sample::sample_root(self.domain.seed()))
    }

    /// The same, where the hashes of points begin with another key: one per kind of model.
    pub(crate) fn sample_keyed(&self, root: NodeKey) -> &PointSample {
        self.sample.get_or_init(|| PointSample::of(&self.store, root))
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
            ("numbers of rows held", self.held.as_ref().map(Held::rule) != other.held.as_ref().map(Held::rule)),
        ];
        if let Some((what, _)) = differs.iter().find(|(_, differs)| *differs) {
            return Err(Error::Incompatible { what });
        }
        match self.held.as_ref().map(Held::rule) {
            Some(Rule::Window(_)) => {
                Err(Error::Incompatible { what: "the orders of rows in windows (max_rows merges)" })
            }
            _ => Ok(()),
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

/// A box in measure coordinates.
pub(crate) fn in_measure(measure: &BuiltInMeasure, raw: &Bounds) -> Result<Bounds> {
    let map = |corner: &[f64]| -> Vec<f64> {
        corner.iter().enumerate().map(|(dim, x)| measure.coordinate(dim, *x) + 0.0).collect()
    };
    Bounds::new(&map(raw.lower()), &map(raw.upper()))
}
