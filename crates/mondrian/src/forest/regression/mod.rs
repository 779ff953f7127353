//! Mondrian forest regression (report, chapter 2), batch and online.

mod automatic;
mod batch_predict;
mod calibration;
pub(crate) mod fixed;
mod learn;
mod leave_one_out;
mod mixture;
mod noise;
mod one_row;
mod params;
mod path;
mod posterior;
mod predict;
mod prior;
mod relevance;
mod smoother;
mod targets;
#[cfg(test)]
mod twin;

pub use params::{LeafModel, RegressionParams};
pub use path::ValidationSet;
pub use posterior::Gaussian;
pub use prior::Prior;
pub(crate) use relevance::shares;
pub use targets::{Sums, Targets};

use std::borrow::Cow;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::forest::retention::HeldRow;
use crate::forest::warm_up::FirstRows;
use crate::forest::{Forest, TreeDigest};
use crate::model_file::ModelFileError;
use crate::points::first_not_finite;
use crate::progress::Progress;
use crate::tree::Rules;
use crate::{Error, Lifetime, Points, Result};
use calibration::{Calibration, Model, RowsOf};
use prior::{FromSample, resolve, resolve_in_version_1};

/// What is learned: shared by all views and clones until one of them learns more.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) params: RegressionParams,
    pub(crate) forest: Forest<Sums>,
    pub(crate) targets: Targets,
    /// Resolved prior and noise; none after a change.
    gaussians: OnceLock<Vec<Gaussian>>,
    /// The same with any noise, which costs less to find and is enough for means.
    for_means: OnceLock<Vec<Gaussian>>,
    /// What they are found by.
    from_sample: FromSample,
    /// The noise found in the rows.
    noises: OnceLock<Vec<f64>>,
    /// Calibrations by lifetime, the last one first.
    calibrations: Mutex<Vec<(Lifetime, Calibrations)>>,
    /// Some of the rows, where the forest was finished from summaries and has none.
    sample: Option<Arc<SampledRows>>,
}

/// Points of smallest hash with all of their rows, in a forest without trees: what is left of the rows in a summary.
#[derive(Debug)]
struct SampledRows {
    forest: Forest<Sums>,
    targets: Targets,
}

/// The calibration of each target, where there are enough rows.
type Calibrations = Arc<Vec<Option<Calibration>>>;

/// What rows that were left out of a forest said of its deviations and quantiles: see [`RegressionForest::calibration`].
#[derive(Debug, Clone)]
pub struct ForestCalibration(Calibrations);

/// Lifetimes whose calibrations are kept.
const KEPT_CALIBRATIONS: usize = 4;

impl Clone for Core {
    fn clone(&self) -> Self {
        let Self { params, forest, targets, from_sample, sample, .. } = self;
        let core = Self::new(params.clone(), forest.clone(), targets.clone());
        // Without rows they cannot be found again.
        let gaussians = if forest.summary().is_some() { self.gaussians.clone() } else { OnceLock::new() };
        Self { from_sample: from_sample.clone(), gaussians, sample: sample.clone(), ..core }
    }
}

impl Core {
    fn new(params: RegressionParams, forest: Forest<Sums>, targets: Targets) -> Self {
        Self {
            params,
            forest,
            targets,
            gaussians: OnceLock::new(),
            for_means: OnceLock::new(),
            from_sample: FromSample::default(),
            noises: OnceLock::new(),
            calibrations: Mutex::default(),
            sample: None,
        }
    }

    /// Forgets rows of the targets.
    fn forget_found(&mut self, rows: &[u32]) {
        if rows.is_empty() {
            return;
        }
        let (points, changed) = self.targets.remove(rows);
        // While the store has their coordinates.
        self.touch(&points);
        self.forest.forget(&self.targets, &points);
        if changed {
            self.forest.gather(&self.targets);
        }
    }

    /// Takes note of changed rows of points, so that automatic values are found anew.
    fn touch(&mut self, points: &[u32]) {
        self.let_go();
        self.from_sample.touch(self.forest.store(), points);
    }

    /// Lets go what was found in the rows as they were.
    fn let_go(&mut self) {
        (self.gaussians, self.for_means, self.noises) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        self.calibrations = Mutex::default();
    }

    /// Lets all go that was found.
    fn touch_all(&mut self) {
        self.let_go();
        self.from_sample = FromSample::default();
    }

    /// Whether noise and calibration come from rows that are left out: not where the noise was given, nor in models of version 1.
    fn knows_rows_to_leave_out(&self) -> bool {
        self.params.prior.noise.is_none() && self.forest.domain().rules() > Rules::First
    }

    /// The rows, or those of them that a summary brought.
    fn rows(&self) -> RowsOf<'_> {
        match &self.sample {
            Some(sample) => RowsOf { forest: &sample.forest, targets: &sample.targets },
            None => RowsOf { forest: &self.forest, targets: &self.targets },
        }
    }

    fn resolve(&self, with_noise: bool) -> Vec<Gaussian> {
        let Self { params: RegressionParams { prior, leaf_model, .. }, forest, targets, .. } = self;
        let in_version_1 = |target| resolve_in_version_1(prior, *leaf_model, forest, targets, target);
        if forest.domain().rules() > Rules::First {
            // A sample of what the forest holds is no larger than that, nor further away.
            if let Ok(found) = resolve(prior, *leaf_model, (forest, targets), &self.from_sample, with_noise) {
                return found;
            }
        }
        (0..targets.n_targets()).map(in_version_1).collect()
    }
}

/// A regression forest. Cloning is cheap; a clone that learns more copies first.
///
/// ```
/// use mondrian::{Points, RegressionForest};
/// let x: Vec<f64> = (0..40).map(|i| i as f64 / 40.0).collect();
/// let y: Vec<f64> = x.iter().map(|x| 3.0 * x).collect();
/// let forest = RegressionForest::params().fit(Points::row_major(&x, 1)?, &y)?;
/// let mean = forest.predict(Points::row_major(&[0.5], 1)?)?;
/// assert!((mean[0] - 1.5).abs() < 0.3);
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct RegressionForest {
    pub(crate) core: Arc<Core>,
    pub(crate) view: Lifetime,
}

impl RegressionForest {
    /// Parameters, to be fitted.
    pub fn params() -> RegressionParams {
        RegressionParams::default()
    }

    pub(crate) fn grown_to(
        params: RegressionParams,
        lifetime: Lifetime,
        points: Points<'_>,
        targets: &[f64],
        weights: Option<&[f64]>,
        progress: &mut Progress<'_>,
    ) -> Result<Self> {
        let rows = Rows::checked(points, targets, weights)?;
        if rows.n_rows == 0 {
            return Err(Error::Empty { what: "X", rows: 0, columns: points.n_columns() });
        }
        let mut model = Self::unfitted(params, lifetime, rows.points(points.n_columns()), rows.n_targets)?;
        model.learn_rows(&rows, progress)?;
        Ok(model)
    }

    /// A forest on the box and measure of `first`, without rows yet.
    pub(crate) fn unfitted(
        params: RegressionParams,
        lifetime: Lifetime,
        first: Points<'_>,
        n_targets: usize,
    ) -> Result<Self> {
        params.prior.check()?;
        let forest = Forest::with_domain(&params.forest, first, lifetime)?;
        Ok(Self { core: Arc::new(Core::new(params, forest, Targets::new(n_targets))), view: lifetime })
    }

    /// A model of saved parts; its trees are grown again.
    pub(crate) fn restored(
        params: RegressionParams,
        view: Lifetime,
        (mut forest, growth): (Forest<Sums>, TreeDigest),
        rows: &crate::forest::saved::Restored<'_>,
    ) -> Result<Self> {
        params.prior.check()?;
        rows.check(forest.store())?;
        let mut targets = Targets::new(rows.n_targets);
        targets.add(rows.points, rows.y, Some(rows.weights));
        if let Some(held) = forest.held() {
            let rows: Vec<HeldRow> = held.rows().map(|(_, row)| row.clone()).collect();
            let inconsistent = |_| ModelFileError::Inconsistent { what: "targets of the rows of a window or sample" };
            targets.find_held(&rows).map_err(inconsistent)?;
        }
        if forest.warm_up().is_some_and(|warm_up| ![0, rows.n_targets].contains(&warm_up.n_values())) {
            return Err(ModelFileError::Inconsistent { what: "targets of the first rows of a stream" }.into());
        }
        forest.regrow_as_saved(&targets, &growth)?;
        let view = view.min(forest.domain().lifetime());
        Ok(Self { core: Arc::new(Core::new(params, forest, targets)), view })
    }

    /// A model without rows, whose automatic values and calibration come from a forest without trees and targets of some of them.
    pub(crate) fn finished(
        params: RegressionParams,
        forest: Forest<Sums>,
        targets: Targets,
        sample: (Forest<Sums>, Targets),
    ) -> Self {
        let of_sample = Core::new(params.clone(), sample.0, sample.1);
        let gaussians = OnceLock::from(of_sample.resolve(true));
        let sample = Some(Arc::new(SampledRows { forest: of_sample.forest, targets: of_sample.targets }));
        let view = forest.domain().lifetime();
        Self { core: Arc::new(Core { gaussians, sample, ..Core::new(params, forest, targets) }), view }
    }

    /// Lets the trees go, unless a clone shares them.
    pub(crate) fn drop_trees(&mut self) {
        if let Some(core) = Arc::get_mut(&mut self.core) {
            core.forest.drop_trees();
        }
    }

    /// Bytes that the model takes: trees with their sums, points and rows.
    pub fn n_bytes(&self) -> usize {
        let Core { forest, targets, .. } = &*self.core;
        let sums: usize = forest.trees().iter().map(|(_, sums)| sums.n_bytes()).sum();
        forest.n_bytes() + sums + forest.store().n_bytes() + targets.n_bytes()
    }

    /// The model at a smaller lifetime, without retraining: what a fit with it would be.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for a lifetime beyond that of the trees: [`RegressionForest::raise_lifetime`] grows
    /// them on.
    pub fn at(&self, lifetime: Lifetime) -> Result<Self> {
        self.core.forest.check_view(lifetime)?;
        Ok(Self { core: Arc::clone(&self.core), view: lifetime })
    }

    /// Grows the trees on until a larger lifetime and looks at that.
    ///
    /// # Errors
    /// [`Error::WithoutRows`] for a forest that was finished from a summary; it is as before then.
    pub fn raise_lifetime(&mut self, lifetime: Lifetime) -> Result<()> {
        if lifetime > self.core.forest.domain().lifetime() {
            self.core.forest.check_rows("a larger lifetime")?;
            let core = Arc::make_mut(&mut self.core);
            core.forest.raise_lifetime(&core.targets, lifetime);
            core.touch_all();
        }
        self.view = lifetime;
        Ok(())
    }

    /// The model on a root box widened to hold these rows: what [`RegressionForest::path`] over them evaluates.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::TooLarge`] for rows too far away.
    pub fn widened_for(&self, points: Points<'_>) -> Result<Self> {
        self.widened_to(&[&self.core.forest.coordinates(points)?], &mut Progress::none())
    }

    /// As [`RegressionForest::widened_for`] for sets of rows in measure coordinates.
    pub(crate) fn widened_to(&self, sets: &[&[f64]], progress: &mut Progress<'_>) -> Result<Self> {
        let Core { params, forest, targets, .. } = &*self.core;
        let Some(forest) = forest.widened_with_progress(targets, sets, progress)? else { return Ok(self.clone()) };
        // Prior and noise are the model's own, from before the box moved.
        let gaussians = OnceLock::from(self.gaussians().to_vec());
        let sample = self.core.sample.clone();
        let core = Core { gaussians, sample, ..Core::new(params.clone(), forest, targets.clone()) };
        Ok(Self { core: Arc::new(core), view: self.view })
    }

    /// The lifetime looked at.
    pub fn lifetime(&self) -> Lifetime {
        self.view
    }

    /// The parameters it was fitted with.
    pub fn fitted_params(&self) -> &RegressionParams {
        &self.core.params
    }

    /// The trees and their points.
    pub fn forest(&self) -> &Forest<Sums> {
        &self.core.forest
    }

    /// The rows' targets and weights.
    pub fn targets(&self) -> &Targets {
        &self.core.targets
    }

    /// Number of dimensions.
    pub fn n_dims(&self) -> usize {
        self.core.forest.n_dims()
    }

    /// Number of targets.
    pub fn n_targets(&self) -> usize {
        self.core.targets.n_targets()
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.core.targets.n_rows()
    }

    /// Prior and noise of each target, automatic ones resolved: functions of the stored rows, the same at every view.
    pub fn gaussians(&self) -> &[Gaussian] {
        let core = &self.core;
        core.gaussians.get_or_init(|| core.resolve(true))
    }

    /// As [`RegressionForest::gaussians`], with any noise: enough for means.
    fn gaussians_for_means(&self) -> &[Gaussian] {
        let core = &self.core;
        core.gaussians.get().unwrap_or_else(|| core.for_means.get_or_init(|| core.resolve(false)))
    }

    /// The noise variance of each target, automatic ones found: what planes through near rows leave over. Where it was not given,
    /// [`RegressionForest::gaussians`] hold another number, by which the trees weigh their leaves. A forest finished from summaries
    /// looks at the rows that they brought.
    pub fn noise_variances(&self) -> &[f64] {
        let core = &self.core;
        core.noises.get_or_init(|| {
            let leaves = self.gaussians().iter().map(|gaussian| gaussian.noise_variance);
            if !core.knows_rows_to_leave_out() {
                return leaves.collect();
            }
            let whole = Self { core: Arc::clone(core), view: core.forest.domain().lifetime() };
            let rows = core.rows();
            let found = noise::noise_variances(rows.forest, rows.targets, &whole.relevance());
            leaves.zip(found).map(|(leaves, found)| found.unwrap_or(leaves)).collect()
        })
    }

    /// What rows that were left out say of the predictive distributions; none of a target whose noise was given, which is taken at
    /// its word, nor of a model from a file of version 1.
    pub(crate) fn calibrations(&self) -> Calibrations {
        let (core, view) = (&self.core, self.view.min(self.core.forest.domain().lifetime()));
        if !core.knows_rows_to_leave_out() {
            return Arc::new(vec![None; self.n_targets()]);
        }
        let lock = || core.calibrations.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = lock().iter().find(|(lifetime, _)| *lifetime == view) {
            return Arc::clone(found);
        }
        let model = Model { forest: &core.forest, targets: &core.targets, leaf_model: core.params.leaf_model };
        let found = Arc::new(Calibration::of(model, core.rows(), self.gaussians(), view));
        let mut kept = lock();
        kept.insert(0, (view, Arc::clone(&found)));
        kept.truncate(KEPT_CALIBRATIONS);
        found
    }

    /// The calibration of deviations and quantiles at this view. It is found anew after every change of the rows, which costs
    /// thousands of predictions; a stream that asks after every row can [hold on](RegressionForest::hold_calibration) to one for a while.
    pub fn calibration(&self) -> ForestCalibration {
        ForestCalibration(self.calibrations())
    }

    /// Takes deviations and quantiles from a calibration of nearly the same rows, until rows change again.
    pub fn hold_calibration(&self, calibration: &ForestCalibration) {
        let view = self.view.min(self.core.forest.domain().lifetime());
        let mut kept = self.core.calibrations.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(lifetime, _)| *lifetime != view);
        kept.insert(0, (view, Arc::clone(&calibration.0)));
        kept.truncate(KEPT_CALIBRATIONS);
    }

    /// The number of the cell of each row in each tree, row-major by tree; −1 for a cell without training rows.
    ///
    /// Cells are numbered depth first, so numbers depend on neither the order of arrival nor threads.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`].
    pub fn apply(&self, points: Points<'_>) -> Result<Vec<i64>> {
        self.core.forest.apply(points, self.view)
    }

    /// All rows as (coordinates in the measure, targets, weight), in order of arrival.
    pub fn rows(&self) -> impl Iterator<Item = (&[f64], &[f64], f64)> + '_ {
        self.core.targets.rows().map(|(point, y, w)| (self.core.forest.store().point(point), y, w))
    }
}

/// Checked rows of positive weight; copied only where some are left out or lie in another order.
pub(crate) struct Rows<'a> {
    pub(crate) n_rows: usize,
    pub(crate) n_targets: usize,
    pub(crate) x: Cow<'a, [f64]>,
    pub(crate) y: Cow<'a, [f64]>,
    pub(crate) weights: Option<Vec<f64>>,
}

impl<'a> Rows<'a> {
    pub(crate) fn checked(points: Points<'a>, targets: &'a [f64], weights: Option<&[f64]>) -> Result<Self> {
        let n = points.n_rows();
        if n == 0 {
            return Ok(Self { n_rows: 0, n_targets: 0, x: Cow::default(), y: Cow::default(), weights: None });
        }
        if targets.is_empty() || !targets.len().is_multiple_of(n) {
            return Err(Error::LengthMismatch { what: "targets", expected: n, found: targets.len() });
        }
        let t = targets.len() / n;
        if let Some(at) = first_not_finite(targets) {
            return Err(Error::NotFinite { what: "y", row: at / t, column: at % t, value: targets[at] });
        }
        let Some(weights) = weights else {
            return Ok(Self { n_rows: n, n_targets: t, x: points.as_row_major(), y: targets.into(), weights: None });
        };
        if weights.len() != n {
            return Err(Error::LengthMismatch { what: "weights", expected: n, found: weights.len() });
        }
        if let Some(row) = weights.iter().position(|w| !(*w >= 0.0 && w.is_finite())) {
            return Err(Error::InvalidParameter {
                name: "sample_weight",
                value: weights[row],
                expected: "finite and ≥ 0",
            });
        }
        // Rows of weight zero are dropped before box and measure are fixed (docs/design.md, "Automatic values").
        let kept: Vec<usize> = (0..n).filter(|row| weights[*row] > 0.0).collect();
        Ok(Self {
            n_rows: kept.len(),
            n_targets: t,
            x: kept.iter().flat_map(|row| points.row(*row)).collect(),
            y: kept.iter().flat_map(|row| targets[row * t..][..t].iter().copied()).collect(),
            weights: Some(kept.iter().map(|row| weights[*row]).collect()),
        })
    }

    pub(crate) fn points(&self, n_dims: usize) -> Points<'_> {
        Points::of_checked(&self.x, n_dims)
    }

    /// The same as rows of a warm-up.
    fn first(&self, n_dims: usize) -> FirstRows<'_> {
        let weights = self.weights.as_deref();
        FirstRows { points: self.points(n_dims), values: &self.y, weights, are_values_hashed: true }
    }
}
