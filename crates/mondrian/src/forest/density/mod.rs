//! Densities by Pólya trees on exact cells (report, appendix C).
//!
//! Each tree is a Mondrian process on a bounded box; each of its cells has a probability mass, shared out at every cut
//! by the rule of a Pólya tree (`polya.rs`); the density of a tree is mass over volume and that of a forest the average
//! over its trees. [`DensityForest`] learns rows in batch and online, forgets and merges them exactly, and is viewed at
//! any smaller lifetime; leave-one-out likelihoods cost one walk. [`DensityClassifier`] is one density per class.
//! `docs/density.md` has the reasons.

mod automatic;
mod cells;
mod classifier;
mod descent;
mod evaluate;
mod gamma;
mod learn;
mod params;
mod path;
mod polya;
mod sampling;
mod saved;
mod view;
mod way;
mod wide;

pub use crate::forest::GammaChoice;
pub(in crate::forest) use automatic::HELD_OUT;
pub use cells::DensityCell;
pub use classifier::{ClassPrior, DensityClassifier, DensityClassifierParams};
pub use params::DensityParams;
pub use view::{DensityScore, DensityView};

use std::sync::OnceLock;

use crate::forest::density::gamma::FoundGamma;
use crate::forest::{Forest, LifetimeChoice};
use crate::path::RegularizationPath;
use crate::process::{Bounds, Measure};
use crate::progress::Progress;
use crate::tree::PointStore;
use crate::{Error, Lifetime, Points, Result};

/// A density: the average over Mondrian trees of Pólya-tree densities on a bounded box.
///
/// ```
/// use mondrian::{DensityForest, Points};
///
/// let data: Vec<f64> = (0..60).map(|i| f64::from(i % 30) + 0.3 * f64::from(i % 7)).collect();
/// let density = DensityForest::params().fit(Points::row_major(&data, 1)?)?;
/// let logs = density.log_density(Points::row_major(&[15.0, 1e3], 1)?)?;
/// assert!(logs[0] > -5.0 && logs[1] == f64::NEG_INFINITY);
/// let fresh = density.sample(3, 1);
/// assert!(fresh.iter().all(|x| density.bounds().contains(&[*x])));
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct DensityForest {
    pub(crate) params: DensityParams,
    /// The root box in raw units, at first and now.
    pub(crate) first_bounds: Bounds,
    pub(crate) bounds: Bounds,
    pub(crate) forest: Forest,
    /// The view: at most the lifetime that the trees are grown to.
    pub(crate) lifetime: Lifetime,
    /// An automatic γ, computed at the first use; dropped whenever the rows change.
    pub(crate) resolved_gamma: OnceLock<f64>,
    /// The automatic γ that was computed last: the same as long as the sample is that it came from.
    found_gamma: FoundGamma,
}

impl DensityForest {
    /// Parameters, to be fitted.
    pub fn params() -> DensityParams {
        DensityParams::default()
    }

    /// A density without rows, uniform on its box; box and measure come from the first data.
    pub(crate) fn with_domain(params: &DensityParams, first: Points<'_>) -> Result<Self> {
        params.check()?;
        let bounds = params.bounds_on(first)?;
        let lifetime = match params.forest.lifetime {
            LifetimeChoice::Value(lifetime) => lifetime,
            LifetimeChoice::Auto => Lifetime::ZERO,
        };
        let mut placed = params.forest.clone();
        placed.bounds = Some(bounds.clone());
        let forest = Forest::with_domain(&placed, first, lifetime)?.storing_every_cut();
        Self::on_first_box(params.clone(), bounds, forest, lifetime)
    }

    /// A density of parts, given its first box in raw units.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for a box too wide to have a volume.
    pub(crate) fn on_first_box(
        params: DensityParams,
        first_bounds: Bounds,
        forest: Forest,
        lifetime: Lifetime,
    ) -> Result<Self> {
        let bounds = first_bounds.clone();
        let mut model = Self {
            params,
            first_bounds,
            bounds,
            forest,
            lifetime,
            resolved_gamma: OnceLock::new(),
            found_gamma: FoundGamma::default(),
        };
        model.bounds = model.bounds_at(model.forest.domain().rung())?;
        Ok(model)
    }

    /// A density without rows, whose automatic γ comes from a forest over some of them.
    pub(in crate::forest) fn finished(params: &DensityParams, bounds: &Bounds, forest: Forest, sample: Forest) -> Self {
        let lifetime = forest.domain().lifetime();
        let of = |forest, resolved_gamma| {
            let (params, first_bounds, bounds) = (params.clone(), bounds.clone(), bounds.clone());
            Self { params, first_bounds, bounds, forest, lifetime, resolved_gamma, found_gamma: FoundGamma::default() }
        };
        let gamma = of(sample.storing_every_cut(), OnceLock::new()).gamma();
        of(forest, OnceLock::from(gamma))
    }

    /// The parameters it was fitted with.
    pub fn fitted_params(&self) -> &DensityParams {
        &self.params
    }

    /// The box, in raw units, that all mass lies in. Rows outside a box that came from the first data widen it.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// The box in raw units at a rung of the ladder. A dimension of weight zero stays as it is.
    fn bounds_at(&self, rung: u32) -> Result<Bounds> {
        if rung == 0 {
            return Ok(self.first_bounds.clone());
        }
        let (first, measure) = (&self.first_bounds, self.forest.measure());
        let mut domain = self.forest.domain().clone();
        domain.set_rung(rung)?;
        let corner = |of_box: &[f64], of_first: &[f64]| -> Vec<f64> {
            let place = |dim: usize| if self.is_flat(dim) { of_first[dim] } else { measure.place(dim, of_box[dim]) };
            (0..of_first.len()).map(place).collect()
        };
        let root = domain.root_box();
        let (lower, upper) = (corner(root.lower(), first.lower()), corner(root.upper(), first.upper()));
        if lower.iter().zip(&upper).any(|(lower, upper)| !(upper - lower).is_finite()) {
            return Err(Error::TooLarge { what: "the box of a density", expected: f64::INFINITY, limit: f64::MAX });
        }
        Bounds::new(&lower, &upper)
    }

    /// Whether the measure sees no length along a dimension.
    fn is_flat(&self, dim: usize) -> bool {
        let (measure, first) = (self.forest.measure(), &self.first_bounds);
        measure.coordinate(dim, first.lower()[dim]) >= measure.coordinate(dim, first.upper()[dim])
    }

    /// The lifetime it answers with.
    pub fn lifetime(&self) -> Lifetime {
        self.lifetime
    }

    /// Trees and points.
    pub fn forest(&self) -> &Forest {
        &self.forest
    }

    /// Number of rows learned.
    pub fn n_rows(&self) -> usize {
        self.forest.n_rows()
    }

    /// The weight γ of the prior.
    ///
    /// An automatic one is the power of ten from 10⁻⁶ to 1 with the best mean leave-one-out log density at its own best
    /// lifetime (from 128 points on, found downhill from 10⁻³), in the first 8 trees on the points of smallest keyed hash:
    /// about twice the root of the number of rows of them, at least 128 and at most 1024. So it depends on rows, box,
    /// measure and seed, and on no lifetime: the same at every view. Without rows it is 1.
    pub fn gamma(&self) -> f64 {
        match self.params.gamma {
            GammaChoice::Value(gamma) => gamma,
            GammaChoice::Auto => *self.resolved_gamma.get_or_init(|| gamma::automatic_gamma(self)),
        }
    }

    /// The natural logarithm of the box's volume.
    pub fn log_volume(&self) -> f64 {
        self.bounds.lengths().map(libm::log).sum()
    }

    /// Refuses rows outside the box.
    pub(crate) fn check_all_inside(&self, points: Points<'_>) -> Result<()> {
        points.check_width(self.forest.n_dims())?;
        (0..points.n_rows()).try_for_each(|row| self.check_inside(points, row, |_| true))
    }

    /// Refuses a row outside the box along one of some dimensions.
    fn check_inside(&self, points: Points<'_>, row: usize, looks_at: impl Fn(usize) -> bool) -> Result<()> {
        for (column, value) in points.row(row).enumerate().filter(|(column, _)| looks_at(*column)) {
            let (lower, upper) = (self.bounds.lower()[column], self.bounds.upper()[column]);
            if !(lower <= value && value <= upper) {
                return Err(Error::OutsideBox { row, column, value, lower, upper });
            }
        }
        Ok(())
    }

    /// Grows the trees to a larger lifetime and answers with it from now on; a smaller one only changes the answers.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for an infinite lifetime.
    pub fn set_lifetime(&mut self, lifetime: Lifetime) -> Result<()> {
        check_finite(lifetime)?;
        if lifetime > self.forest.domain().lifetime() {
            self.forest.check_rows("a larger lifetime")?;
        }
        self.forest.raise_lifetime(&(), lifetime);
        self.forest.end_warm_up();
        self.lifetime = lifetime;
        Ok(())
    }

    /// Chooses the lifetime anew on the rows held now, as `forest.validation` says, and takes it. See `docs/density.md`.
    ///
    /// # Errors
    /// [`Error::NotFitted`] without rows, [`Error::WithoutRows`].
    pub fn select_lifetime(&mut self) -> Result<RegularizationPath> {
        self.forest.check_rows("choosing the lifetime anew")?;
        let path = automatic::selecting_path(self, &mut Progress::none())?;
        self.set_lifetime(path.best_lifetime())?;
        Ok(path)
    }

    /// The model with a lifetime of at most the one its trees are grown to: no refit, the same answers as one.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for a larger one: [`DensityForest::set_lifetime`] grows the trees on.
    pub fn at(&self, lifetime: Lifetime) -> Result<DensityView<'_>> {
        self.forest.check_view(lifetime)?;
        Ok(DensityView { model: self, lifetime })
    }

    /// The view at the model's own lifetime.
    pub fn view(&self) -> DensityView<'_> {
        DensityView { model: self, lifetime: self.lifetime }
    }

    /// [`DensityView::log_density`] at the model's own lifetime.
    pub fn log_density(&self, points: Points<'_>) -> Result<Vec<f64>> {
        self.view().log_density(points)
    }

    /// [`DensityView::score`] at the model's own lifetime.
    pub fn score(&self, points: Points<'_>) -> Result<DensityScore> {
        self.view().score(points)
    }

    /// [`DensityView::leave_one_out`] at the model's own lifetime.
    pub fn leave_one_out(&self, points: Points<'_>) -> Result<Vec<f64>> {
        self.view().leave_one_out(points)
    }

    /// [`DensityView::leave_one_out_score`] at the model's own lifetime.
    pub fn leave_one_out_score(&self) -> f64 {
        self.view().leave_one_out_score()
    }

    /// [`DensityView::sample`] at the model's own lifetime.
    pub fn sample(&self, n_rows: usize, seed: u64) -> Vec<f64> {
        self.view().sample(n_rows, seed)
    }

    /// [`DensityView::cells`] at the model's own lifetime.
    pub fn cells(&self, tree: usize) -> Result<Vec<DensityCell>> {
        self.view().cells(tree)
    }

    /// Mean negative log density of the learned rows, of each validation set and of the learned rows left out one by
    /// one, at every lifetime up to the one that the trees are grown to. The box does not move: rows
    /// outside it are counted apart. A density that was finished from a summary knows the curves of validation sets only; that of
    /// the learned rows is NaN.
    ///
    /// # Errors
    /// [`Error::NotFitted`] without rows, [`Error::Empty`] for a validation set without rows in the box,
    /// [`Error::LengthMismatch`], [`Error::Cancelled`], [`Error::WithoutRows`].
    pub fn path(&self, validation: &[Points<'_>], progress: &mut Progress<'_>) -> Result<RegularizationPath> {
        if validation.is_empty() {
            self.forest.check_rows("a path without validation rows")?;
        }
        let mut sets = Vec::with_capacity(validation.len());
        let mut n_outside = Vec::with_capacity(validation.len());
        for points in validation {
            let (inside, coordinates) = self.inside(*points)?;
            n_outside.push(points.n_rows() - inside.len());
            sets.push(coordinates);
        }
        let path = path::trace(self, &sets, progress)?;
        Ok(path.with_outside(n_outside))
    }

    /// The rows that lie in the box, and their measure coordinates.
    pub(crate) fn inside(&self, points: Points<'_>) -> Result<(Vec<usize>, Vec<f64>)> {
        points.check_width(self.forest.n_dims())?;
        let (n_dims, domain) = (self.forest.n_dims(), self.forest.domain());
        if domain.rung() == 0 {
            let is_inside = |row: &usize| self.check_inside(points, *row, |_| true).is_ok();
            let rows: Vec<usize> = (0..points.n_rows()).filter(is_inside).collect();
            let raw: Vec<f64> = rows.iter().flat_map(|row| points.row(*row)).collect();
            let coordinates = self.forest.coordinates(Points::row_major(&raw, n_dims)?)?;
            return Ok((rows, coordinates));
        }
        // The corners of a widened box are round in the measure, not in raw units.
        let all = self.forest.measure().coordinates(&points.as_row_major(), n_dims);
        let flat: Vec<bool> = (0..n_dims).map(|dim| self.is_flat(dim)).collect();
        let (mut rows, mut coordinates) = (Vec::new(), Vec::new());
        for (row, u) in all.chunks_exact(n_dims).enumerate() {
            if domain.root_box().contains(u) && self.check_inside(points, row, |dim| flat[dim]).is_ok() {
                rows.push(row);
                coordinates.extend_from_slice(u);
            }
        }
        Ok((rows, coordinates))
    }

    /// How many rows each stored point has, and the points' measure coordinates.
    pub(crate) fn stored(&self) -> (Vec<u32>, Vec<f64>) {
        let store = self.forest.store();
        let rows = store.points().map(|point| store.multiplicity(point)).collect();
        (rows, store.points().flat_map(|point| store.point(point).iter().copied()).collect())
    }

    /// A model on the same domain with the same γ, without rows, with at most so many trees, grown to `lifetime`.
    pub(crate) fn emptied(&self, n_trees: usize, lifetime: Lifetime, gamma: f64) -> Result<Self> {
        let domain = self.forest.domain().with_lifetime(lifetime);
        let store = PointStore::new(self.forest.n_dims());
        let n_trees = n_trees.min(self.forest.n_trees());
        let forest = Forest::from_parts(self.forest.measure().clone(), domain, store, n_trees)?;
        let params = DensityParams { gamma: GammaChoice::Value(gamma), ..self.params.clone() };
        Self::on_first_box(params, self.first_bounds.clone(), forest, lifetime)
    }
}

/// Refuses a lifetime without end.
fn check_finite(lifetime: Lifetime) -> Result<()> {
    if lifetime.is_finite() {
        return Ok(());
    }
    let expected = "finite for a density: cells without end have no volume";
    Err(Error::InvalidParameter { name: "lifetime", value: lifetime.get(), expected })
}
