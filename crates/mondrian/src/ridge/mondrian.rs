//! Kernel ridge regression on Mondrian features.

use crate::features::{FeatureMap, MondrianFeatures};
use crate::forest::{ForestParams, LifetimeChoice, WeightsChoice, forest_builder};
use crate::linalg::{Matrix, MatrixRef};
use crate::progress::{FitOptions, Progress};
use crate::ridge::automatic::Choice;
use crate::ridge::{FeatureRidge, FeatureRidgeParams, SolveReport};
use crate::{Lifetime, Points, Result};

/// Parameters of [`KernelRidge`].
///
/// | field | default | meaning | range |
/// | --- | --- | --- | --- |
/// | `trees` | [`ForestParams::default`] | trees, seed, box, measure; an automatic lifetime is chosen on the path, by `validation` | |
/// | `ridge` | [`FeatureRidgeParams::default`] | α, intercept, solver | |
/// | `auto_alpha` | no | α chosen together with the lifetime, from the powers of ten 1e-4 to 10 | |
#[derive(Debug, Clone, Default)]
pub struct KernelRidgeParams {
    trees: ForestParams,
    ridge: FeatureRidgeParams,
    auto_alpha: bool,
}

forest_builder!(KernelRidgeParams, trees);

impl KernelRidgeParams {
    /// All parameters of the trees.
    #[must_use]
    pub fn trees(self, trees: ForestParams) -> Self {
        Self { trees, ..self }
    }

    /// All parameters of the ridge problem.
    #[must_use]
    pub fn ridge(self, ridge: FeatureRidgeParams) -> Self {
        Self { ridge, ..self }
    }

    /// δ².
    #[must_use]
    pub fn alpha(self, alpha: f64) -> Self {
        Self { ridge: self.ridge.alpha(alpha), auto_alpha: false, ..self }
    }

    /// δ² chosen from the powers of ten 1e-4 to 10, by the path of each over the same trees: together with the lifetime
    /// if that is automatic, else at the given one.
    #[must_use]
    pub fn auto_alpha(self) -> Self {
        Self { auto_alpha: true, ..self }
    }

    /// Whether to centre the targets.
    #[must_use]
    pub fn fit_intercept(self, fit_intercept: bool) -> Self {
        Self { ridge: self.ridge.fit_intercept(fit_intercept), ..self }
    }

    /// The same with at most this many trees and this lifetime, for a choice of lifetimes.
    pub(crate) fn tuning(self, max_trees: usize, lifetime: Lifetime) -> Self {
        let n_trees = self.trees.n_trees.min(max_trees);
        self.n_trees(n_trees).lifetime(lifetime)
    }

    pub(crate) fn forest_params(&self) -> &ForestParams {
        &self.trees
    }

    pub(crate) fn ridge_params(&self) -> &FeatureRidgeParams {
        &self.ridge
    }

    pub(crate) fn has_auto_alpha(&self) -> bool {
        self.auto_alpha
    }

    fn is_automatic(&self) -> bool {
        self.trees.lifetime == LifetimeChoice::Auto || self.auto_alpha
    }

    /// The parameters with all automatic values chosen; the trees are then in units of the standard deviations of the
    /// columns, unless weights are given.
    fn resolved(&self, points: Points<'_>, targets: MatrixRef<'_>, progress: &mut Progress<'_>) -> Result<Self> {
        if !self.is_automatic() {
            return Ok(self.clone());
        }
        let mut params = self.clone();
        if params.trees.lifetime == LifetimeChoice::Auto && params.trees.weights == WeightsChoice::Auto {
            params.trees.weights = WeightsChoice::Deviation;
        }
        let choice = crate::ridge::automatic::choose(&params, points, targets, progress)?;
        Ok(params.lifetime(choice.lifetime).alpha(choice.alpha))
    }

    /// The lifetime, in units of the columns' deviations, and α that a fit would choose.
    pub(crate) fn choose(&self, points: Points<'_>, targets: &[f64]) -> Result<Choice> {
        let trees =
            ForestParams { lifetime: LifetimeChoice::Auto, weights: WeightsChoice::Deviation, ..self.trees.clone() };
        let params = Self { trees, ..self.clone() };
        crate::ridge::automatic::choose(
            &params,
            points,
            MatrixRef::new(targets, targets.len(), 1),
            &mut Progress::none(),
        )
    }

    /// Fits a model; `targets` is row-major, with the same number of targets for every row.
    ///
    /// # Errors
    /// As for [`MondrianFeatures::on`] and [`FeatureRidgeParams::fit`].
    pub fn fit(&self, points: Points<'_>, targets: &[f64]) -> Result<KernelRidge> {
        self.fit_with(points, targets, FitOptions::default())
    }

    /// As [`KernelRidgeParams::fit`], with a progress callback; a factorisation is not interrupted.
    ///
    /// # Errors
    /// As for [`KernelRidgeParams::fit`], [`crate::Error::NoWeights`] and [`crate::Error::Cancelled`].
    pub fn fit_with(&self, points: Points<'_>, targets: &[f64], options: FitOptions<'_>) -> Result<KernelRidge> {
        let mut progress = options.unweighted("kernel ridge")?;
        self.solve(points, crate::ridge::by_column(points.n_rows(), targets)?.view(), &mut progress)
    }

    /// Fits several targets, one per column.
    pub(crate) fn solve(
        &self,
        points: Points<'_>,
        targets: MatrixRef<'_>,
        progress: &mut Progress<'_>,
    ) -> Result<KernelRidge> {
        let Self { trees, ridge, .. } = self.resolved(points, targets, &mut progress.part(0.0, 0.5))?;
        let lifetime = match trees.lifetime {
            LifetimeChoice::Value(lifetime) => lifetime,
            LifetimeChoice::Auto => unreachable!("an automatic lifetime was just chosen"),
        };
        let mut features = MondrianFeatures::on(&trees, points, lifetime)?;
        let tuned = if self.is_automatic() { 0.5 } else { 0.0 };
        let z = features.learn_with_progress(points, &mut progress.part(tuned, 0.7))?;
        let model = ridge.solve(z, targets, &mut progress.part(0.7, 1.0))?;
        Ok(KernelRidge { params: ridge, features, model, targets: targets.to_owned() })
    }
}

/// Ridge regression on Mondrian features: Laplace kernel ridge regression in time linear in the rows.
///
/// ```
/// use mondrian::KernelRidge;
/// use mondrian::{Lifetime, Points};
/// let x: Vec<f64> = (0..200).map(|i| f64::from(i) / 40.0).collect();
/// let y: Vec<f64> = x.iter().map(|x| x.sin()).collect();
/// let points = Points::row_major(&x, 1)?;
/// let model = KernelRidge::params().n_trees(100).lifetime(Lifetime::new(4.0)?).alpha(0.1).fit(points, &y)?;
/// let at = model.predict(Points::row_major(&[2.01], 1)?)?[(0, 0)];
/// assert!((at - 2.01_f64.sin()).abs() < 0.1);
/// let constant = model.at(Lifetime::ZERO)?;          // one cell per tree: the mean
/// assert!((constant.predict(points)?[(0, 0)] - y.iter().sum::<f64>() / 200.0).abs() < 1e-9);
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct KernelRidge {
    params: FeatureRidgeParams,
    features: MondrianFeatures,
    model: FeatureRidge,
    targets: Matrix,
}

impl KernelRidge {
    /// Parameters, to be fitted.
    pub fn params() -> KernelRidgeParams {
        KernelRidgeParams::default()
    }

    /// The feature map.
    pub fn features(&self) -> &MondrianFeatures {
        &self.features
    }

    /// The ridge model on the features.
    pub fn model(&self) -> &FeatureRidge {
        &self.model
    }

    /// The solver used and its residual.
    pub fn report(&self) -> &SolveReport {
        self.model.report()
    }

    /// The threads that one large product may use.
    pub(crate) fn threads(&self) -> crate::linalg::Threads {
        self.params.thread_limit()
    }

    /// The training targets, one column each.
    pub fn targets(&self) -> &Matrix {
        &self.targets
    }

    /// Predictions, one row per point and one column per target.
    ///
    /// # Errors
    /// [`crate::Error::LengthMismatch`] if the points' number of dimensions is another.
    pub fn predict(&self, points: Points<'_>) -> Result<Matrix> {
        self.model.predict(&self.features.transform(points)?)
    }

    /// The variance of a new observation at each point; see [`FeatureRidge::predict_variance`].
    ///
    /// # Errors
    /// As for [`KernelRidge::predict`].
    pub fn predict_variance(&self, points: Points<'_>) -> Result<Matrix> {
        self.model.predict_variance(&self.features.transform(points)?)
    }

    /// The smoothing matrix; see [`FeatureRidge::equivalent_kernel`].
    ///
    /// # Errors
    /// As for [`KernelRidge::predict`].
    pub fn equivalent_kernel(&self, points: Points<'_>) -> Result<Matrix> {
        self.model.equivalent_kernel(&self.features.transform(points)?)
    }

    /// The model on trees whose root box contains these rows too, as evaluated by a path over them.
    ///
    /// # Errors
    /// [`crate::Error::LengthMismatch`], [`crate::Error::TooLarge`] for rows too far away.
    pub fn widened_for(&self, points: Points<'_>) -> Result<Self> {
        let forest = self.features.forest();
        let wide = forest.widened_for(&(), &[&forest.coordinates(points)?])?;
        let forest = wide.map_or_else(|| forest.clone(), Into::into);
        let features = MondrianFeatures::of_forest(forest, self.features.rows().to_vec(), self.features.lifetime())?;
        let model = self.params.solve(features.training()?.into(), self.targets.view(), &mut Progress::none())?;
        Ok(Self { params: self.params.clone(), features, model, targets: self.targets.clone() })
    }

    /// The model fitted at a smaller lifetime on the same trees, which are not grown again.
    ///
    /// # Errors
    /// [`crate::Error::InvalidParameter`] if it is above the lifetime the trees were grown to.
    pub fn at(&self, lifetime: Lifetime) -> Result<Self> {
        Self::solved(self.params.clone(), self.features.at(lifetime)?, self.targets.view())
    }

    /// The model on features that have learned their rows already.
    pub(crate) fn solved(
        params: FeatureRidgeParams,
        features: MondrianFeatures,
        targets: MatrixRef<'_>,
    ) -> Result<Self> {
        let model = params.solve(features.training()?.into(), targets, &mut Progress::none())?;
        Ok(Self { params, features, model, targets: targets.to_owned() })
    }
}
