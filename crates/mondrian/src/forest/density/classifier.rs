//! Classification by densities: one per class (report, chapter 2).

use serde::{Deserialize, Serialize};

use crate::forest::WeightsChoice;
use crate::forest::density::{DensityForest, DensityParams};
use crate::process::{BuiltInMeasure, Weights};
use crate::progress::{FitOptions, Progress};
use crate::{Error, Points, Result};

/// How probable each class is before a point is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClassPrior {
    /// As in the training rows: the rule that errs least.
    #[default]
    Frequency,
    /// All the same: the class of highest density, the report's rule.
    Equal,
}

/// How a [`DensityClassifier`] is fitted.
///
/// | name | default | meaning |
/// | --- | --- | --- |
/// | `density` | [`DensityParams::default`] | the density of each class |
/// | `equal_prior` | by frequency | how probable each class is before a point is seen |
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DensityClassifierParams {
    density: DensityParams,
    prior: ClassPrior,
}

impl DensityClassifierParams {
    /// Parameters of the density of each class.
    #[must_use]
    pub fn density(self, density: DensityParams) -> Self {
        Self { density, ..self }
    }

    /// All classes are equally probable before a point is seen, so that the class of highest density wins: the report's
    /// rule. Without it they are as probable as in the training rows, the rule that errs least.
    #[must_use]
    pub fn equal_prior(self) -> Self {
        Self { prior: ClassPrior::Equal, ..self }
    }

    /// Fits a density to the rows of each label. Box and measure come from all rows; automatic lifetimes and γ are
    /// each class's own.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] unless there is a label per row, and those of [`DensityParams::fit`].
    pub fn fit(&self, points: Points<'_>, labels: &[u32]) -> Result<DensityClassifier> {
        self.fit_with(points, labels, FitOptions::default())
    }

    /// As [`DensityClassifierParams::fit`], with a progress callback.
    ///
    /// # Errors
    /// As [`DensityClassifierParams::fit`], [`Error::NoWeights`] and [`Error::Cancelled`].
    pub fn fit_with(&self, points: Points<'_>, labels: &[u32], options: FitOptions<'_>) -> Result<DensityClassifier> {
        let mut progress = options.unweighted("a density classifier")?;
        check_labels(points, labels)?;
        if points.n_rows() == 0 {
            return Err(Error::Empty { what: "X", rows: 0, columns: points.n_columns() });
        }
        self.density.forest.check_holds_all()?;
        let domain = DensityForest::with_domain(&shared(&self.density, points)?, points)?;
        let mut classifier = DensityClassifier { prior: self.prior, domain, classes: Vec::new() };
        classifier.learn_with_progress(points, labels, &mut progress)?;
        Ok(classifier)
    }
}

/// One [`DensityForest`] a class, on one box and one measure.
///
/// ```
/// use mondrian::Points;
/// use mondrian::DensityClassifier;
///
/// let data: Vec<f64> = (0..80).map(|i| f64::from(i % 40) * 0.1 + if i < 40 { 0.0 } else { 5.0 }).collect();
/// let labels: Vec<u32> = (0..80).map(|i| u32::from(i >= 40)).collect();
/// let points = Points::row_major(&data, 1)?;
/// let classifier = DensityClassifier::params().fit(points, &labels)?;
/// assert_eq!(classifier.predict(Points::row_major(&[1.0, 7.0], 1)?)?, [0, 1]);
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct DensityClassifier {
    pub(crate) prior: ClassPrior,
    /// What a class starts from: box and measure, no rows.
    pub(crate) domain: DensityForest,
    /// NodeStatistics, ascending, each with its density.
    pub(crate) classes: Vec<(u32, DensityForest)>,
}

impl DensityClassifier {
    /// Parameters, to be fitted.
    pub fn params() -> DensityClassifierParams {
        DensityClassifierParams::default()
    }

    /// Learns more rows. A class that is there keeps its lifetime; one seen for the first time gets its own density.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::OutsideBox`]; nothing has changed then.
    pub fn learn(&mut self, points: Points<'_>, labels: &[u32]) -> Result<()> {
        self.learn_with_progress(points, labels, &mut Progress::none())
    }

    fn learn_with_progress(&mut self, points: Points<'_>, labels: &[u32], progress: &mut Progress<'_>) -> Result<()> {
        check_labels(points, labels)?;
        self.domain.check_all_inside(points)?;
        let mut done = 0.0;
        for (label, rows) in by_label(points, labels) {
            let share = rows.len() as f64 / (points.n_rows() * points.n_columns()) as f64;
            let progress = &mut progress.part(done, done + share);
            done += share;
            let rows = Points::row_major(&rows, points.n_columns())?;
            match self.classes.binary_search_by_key(&label, |(known, _)| *known) {
                Ok(class) => self.classes[class].1.learn(rows)?,
                Err(place) => {
                    let mut density = self.domain.clone();
                    density.learn_first(rows, progress)?;
                    self.classes.insert(place, (label, density));
                }
            }
        }
        Ok(())
    }

    /// The labels, ascending: the columns of [`DensityClassifier::predict_proba`].
    pub fn labels(&self) -> Vec<u32> {
        self.classes.iter().map(|(label, _)| *label).collect()
    }

    /// The densities, in the order of the labels.
    pub fn densities(&self) -> impl Iterator<Item = &DensityForest> {
        self.classes.iter().map(|(_, density)| density)
    }

    /// The probability of each class at each row, row-major. Outside the box, where all densities are zero, it is the
    /// prior's.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] for rows of the wrong width.
    pub fn predict_proba(&self, points: Points<'_>) -> Result<Vec<f64>> {
        let n_classes = self.classes.len();
        let priors = self.log_priors();
        let logs: Vec<Vec<f64>> = self.densities().map(|density| density.log_density(points)).collect::<Result<_>>()?;
        let mut probabilities = Vec::with_capacity(points.n_rows() * n_classes);
        for row in 0..points.n_rows() {
            let inside = logs.iter().any(|log| log[row] > f64::NEG_INFINITY);
            let joint = |class: usize| if inside { logs[class][row] + priors[class] } else { priors[class] };
            let joints: Vec<f64> = (0..n_classes).map(joint).collect();
            let most = joints.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = joints.iter().map(|log| libm::exp(log - most)).collect();
            let total: f64 = weights.iter().sum();
            probabilities.extend(weights.iter().map(|w| w / total));
        }
        Ok(probabilities)
    }

    /// The most probable label at each row; the smallest of several. Errors as [`DensityClassifier::predict_proba`].
    pub fn predict(&self, points: Points<'_>) -> Result<Vec<u32>> {
        let n_classes = self.classes.len();
        let probabilities = self.predict_proba(points)?;
        let label = |row: &[f64]| {
            let best = (0..n_classes).fold(0, |best, class| if row[class] > row[best] { class } else { best });
            self.classes[best].0
        };
        Ok(probabilities.chunks_exact(n_classes).map(label).collect())
    }

    fn log_priors(&self) -> Vec<f64> {
        let total: usize = self.densities().map(DensityForest::n_rows).sum();
        let log_prior = |density: &DensityForest| match self.prior {
            ClassPrior::Equal => -libm::log(self.classes.len() as f64),
            ClassPrior::Frequency => libm::log(density.n_rows() as f64 / total as f64),
        };
        self.densities().map(log_prior).collect()
    }
}

/// The parameters with weights made of all rows, so that every class has the same.
fn shared(params: &DensityParams, points: Points<'_>) -> Result<DensityParams> {
    let mut shared = params.clone();
    shared.forest.bounds = Some(params.bounds_on(points)?);
    if let BuiltInMeasure::Weighted(weights) = params.forest.measure_on(points)? {
        shared.forest.weights = WeightsChoice::Given(Weights::new(weights.factors().to_vec())?);
    }
    Ok(shared)
}

fn check_labels(points: Points<'_>, labels: &[u32]) -> Result<()> {
    if labels.len() == points.n_rows() {
        return Ok(());
    }
    Err(Error::LengthMismatch { what: "labels", expected: points.n_rows(), found: labels.len() })
}

/// The rows of each label, row-major, labels ascending.
fn by_label(points: Points<'_>, labels: &[u32]) -> std::collections::BTreeMap<u32, Vec<f64>> {
    let mut rows = std::collections::BTreeMap::<u32, Vec<f64>>::new();
    for (row, label) in labels.iter().enumerate() {
        rows.entry(*label).or_default().extend(points.row(row));
    }
    rows
}
