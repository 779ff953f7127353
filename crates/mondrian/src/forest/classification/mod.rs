//! Classification forests: the hierarchical normalized stable process on Mondrian trees (docs/design.md,
//! "Classification").
//!
//! ```
//! use mondrian::Points;
//! use mondrian::ClassificationForest;
//!
//! let x = [0.0, 0.1, 0.2, 0.8, 0.9, 1.0];
//! let model = ClassificationForest::params().fit(Points::row_major(&x, 1)?, &[0, 0, 0, 1, 1, 1])?;
//! assert_eq!(model.predict(Points::row_major(&[0.05, 0.95], 1)?)?, [0, 1]);
//! # Ok::<(), mondrian::Error>(())
//! ```

mod automatic;
mod gamma;
mod learn;
mod loss;
mod masks;
mod one_row;
mod params;
mod path;
mod predict;
mod relevance;
mod saved;
mod stable;
mod subset;

pub use crate::forest::GammaChoice;
pub use masks::ClassMasks;
pub use params::ClassificationParams;
pub use path::ClassificationPath;

use std::sync::{Arc, OnceLock};

use crate::parallel::prelude::*;

use crate::forest::retention::{Rule, first_rows, refuse_weights};
use crate::forest::{Forest, LifetimeChoice};
use crate::progress::{FitOptions, Progress};
use crate::select::split::gather;
use crate::simd::prefetch::prefetch;
use crate::{Error, Lifetime, Points, Result};
use gamma::FromSample;
pub(in crate::forest) use masks::{PointClasses, check_labels};
use predict::{ClassModel, Rows, Sums};

/// Trees with their points' classes: what views and clones of a model share.
#[derive(Debug, Clone)]
struct TrainedTrees {
    forest: Forest<ClassMasks>,
    classes: PointClasses,
}

/// A Mondrian forest that tells classes apart.
///
/// Classes are numbers from 0; their names are kept by the caller. Clones share the trees, so a
/// snapshot costs nothing until one of the two changes.
///
/// Everything is exact (docs/design.md, "Exact promises"): [`learn`](Self::learn) in any order and in any batches,
/// [`merge`](Self::merge) and [`forget`](Self::forget) give the model that one fit of the rows would have given, bit for
/// bit, and [`at`](Self::at) gives the model fitted with a smaller lifetime. A saved model holds training rows.
#[derive(Debug, Clone)]
pub struct ClassificationForest {
    params: ClassificationParams,
    trained: Arc<TrainedTrees>,
    /// The lifetime looked at; none: automatic.
    view: Option<Lifetime>,
    gamma: OnceLock<f64>,
    /// What an automatic γ is found by.
    from_sample: FromSample,
    lifetime: OnceLock<Lifetime>,
}

impl ClassificationForest {
    /// Parameters, to be fitted.
    pub fn params() -> ClassificationParams {
        ClassificationParams::default()
    }

    pub(in crate::forest) fn fitted(
        params: &ClassificationParams,
        points: Points<'_>,
        labels: &[u32],
        options: FitOptions<'_>,
    ) -> Result<Self> {
        let n_classes = params.n_classes.unwrap_or_else(|| classes_of(labels).max(1));
        check_labels(points.n_rows(), labels, n_classes)?;
        let FitOptions { weights, mut progress } = options;
        let Some(weights) = weights else {
            if let Some(rows) = first_rows(&params.forest, points, &[], None)? {
                let (x, _) = gather(points, &[], &rows);
                let labels: Vec<u32> = rows.iter().map(|row| labels[*row]).collect();
                let (points, params) =
                    (Points::row_major(&x, points.n_columns())?, params.clone().n_classes(n_classes));
                return Self::fitted(&params, points, &labels, FitOptions::watched(progress));
            }
            let mut model = Self::on(params, points, n_classes)?;
            model.learn_rows(points, labels, n_classes, &mut progress)?;
            return Ok(model);
        };
        if Rule::of(&params.forest).is_some() {
            refuse_weights(Some(weights))?;
        }
        let (rows, labels) = repeated(points, labels, weights)?;
        let points = Points::row_major(&rows, points.n_columns())?;
        let params = params.clone().n_classes(n_classes);
        Self::fitted(&params, points, &labels, FitOptions::watched(progress))
    }

    /// A forest on the box and measure of `first`, without rows yet.
    pub(in crate::forest) fn on(params: &ClassificationParams, first: Points<'_>, n_classes: usize) -> Result<Self> {
        params.check()?;
        check_labels(0, &[], n_classes)?;
        let (terminal, view) = match params.forest.lifetime {
            LifetimeChoice::Auto => (Lifetime::INFINITE, None),
            LifetimeChoice::Value(lifetime) => (lifetime, Some(lifetime)),
        };
        let forest = Forest::with_domain(&params.forest, first, terminal)?;
        let trained = Arc::new(TrainedTrees { forest, classes: PointClasses::new(n_classes) });
        // How many classes there are is the model's to know: later rows may bring more.
        let params = ClassificationParams { n_classes: None, ..params.clone() };
        Ok(Self::of_parts(params, trained, view))
    }

    /// A model without rows, whose automatic γ comes from a forest and classes of some of them.
    pub(in crate::forest) fn finished(
        params: ClassificationParams,
        (forest, classes): (Forest<ClassMasks>, PointClasses),
        (sample, sampled): (Forest<ClassMasks>, PointClasses),
    ) -> Self {
        let gamma = match params.gamma {
            GammaChoice::Value(gamma) => gamma,
            GammaChoice::Auto => {
                gamma::automatic(&TrainedTrees { forest: sample, classes: sampled }, &FromSample::default())
            }
        };
        let view = Some(forest.domain().lifetime());
        let model = Self::of_parts(params, Arc::new(TrainedTrees { forest, classes }), view);
        Self { gamma: OnceLock::from(gamma), ..model }
    }

    fn of_parts(params: ClassificationParams, trained: Arc<TrainedTrees>, view: Option<Lifetime>) -> Self {
        let (gamma, lifetime) = (OnceLock::new(), OnceLock::new());
        Self { params, trained, view, gamma, from_sample: FromSample::default(), lifetime }
    }

    fn forget_automatic(&mut self) {
        self.gamma = OnceLock::new();
        self.lifetime = OnceLock::new();
    }

    /// All rows in measure coordinates, row-major, with their classes; none of a forest that was finished from a summary.
    pub fn rows(&self) -> (Vec<f64>, Vec<u32>) {
        let TrainedTrees { forest, classes } = &*self.trained;
        let (mut coordinates, mut labels) = (Vec::new(), Vec::new());
        for point in forest.store().points() {
            for (class, count) in classes.of(point) {
                for _ in 0..*count {
                    coordinates.extend_from_slice(forest.store().point(point));
                    labels.push(*class);
                }
            }
        }
        (coordinates, labels)
    }

    /// The forest looked at with a smaller lifetime: what a fit with it would be. Nothing is copied.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for a lifetime beyond that of the trees: [`ClassificationForest::raise_lifetime`]
    /// grows them on.
    pub fn at(&self, lifetime: Lifetime) -> Result<Self> {
        self.trained.forest.check_view(lifetime)?;
        Ok(Self { view: Some(lifetime), ..self.clone() })
    }

    /// Cuts the trees on until a larger lifetime, if it is larger, and looks at them with it.
    ///
    /// # Errors
    /// [`Error::WithoutRows`] for a forest that was finished from a summary; it is as before then.
    pub fn raise_lifetime(&mut self, lifetime: Lifetime) -> Result<()> {
        if lifetime > self.terminal_lifetime() {
            self.trained.forest.check_rows("a larger lifetime")?;
            let TrainedTrees { forest, classes } = Arc::make_mut(&mut self.trained);
            forest.raise_lifetime(classes, lifetime);
        }
        self.view = Some(lifetime);
        Ok(())
    }

    /// The lifetime the forest is looked at with: the one given, or the automatic one.
    ///
    /// An automatic lifetime is a function of the rows held: that of smallest log loss along the path of a forest grown
    /// on four fifths of the points, evaluated on the fifth that a hash of the coordinates picks; infinite where
    /// that fifth is too small to say anything.
    pub fn lifetime(&self) -> Lifetime {
        // Without a callback it cannot be cancelled, and every other error would have come when the rows were learned.
        self.find_lifetime(&mut Progress::none()).unwrap_or(Lifetime::INFINITE)
    }

    /// As [`ClassificationForest::lifetime`]; looking for an automatic one can be watched and cancelled.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn find_lifetime(&self, progress: &mut Progress<'_>) -> Result<Lifetime> {
        if let Some(known) = self.view.or_else(|| self.lifetime.get().copied()) {
            return Ok(known);
        }
        let found = automatic::lifetime(self, progress)?;
        Ok(*self.lifetime.get_or_init(|| found))
    }

    /// The lifetime that the trees are cut until: views cannot go beyond it.
    pub fn terminal_lifetime(&self) -> Lifetime {
        self.trained.forest.domain().lifetime()
    }

    /// γ: the one given, or the automatic one.
    ///
    /// An automatic γ is a function of the rows held, and the same at every lifetime: of a grid of powers of two
    /// around the linear dimension of the first root box, the one of smallest leave-one-out log loss in a few trees of
    /// infinite lifetime over a keyed subset of the points.
    pub fn gamma(&self) -> f64 {
        match self.params.gamma {
            GammaChoice::Value(gamma) => gamma,
            GammaChoice::Auto => *self.gamma.get_or_init(|| gamma::automatic(&self.trained, &self.from_sample)),
        }
    }

    /// The parameters it was fitted with.
    pub fn fitted_params(&self) -> &ClassificationParams {
        &self.params
    }

    /// Number of classes K.
    pub fn n_classes(&self) -> usize {
        self.trained.classes.n_classes()
    }

    /// The trees, their points, box and measure.
    pub fn forest(&self) -> &Forest<ClassMasks> {
        &self.trained.forest
    }

    /// Number of rows held.
    pub fn n_rows(&self) -> usize {
        self.trained.forest.n_rows()
    }

    /// Bytes that trees and class bits take, the points aside.
    pub fn n_bytes(&self) -> usize {
        let forest = &self.trained.forest;
        forest.n_bytes() + forest.trees().iter().map(|(_, masks)| masks.n_bytes()).sum::<usize>()
    }

    /// The probability of each class for each row, row-major: the mean over the trees.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] for rows of the wrong width.
    pub fn predict_proba(&self, points: Points<'_>) -> Result<Vec<f64>> {
        let coordinates = self.trained.forest.coordinates(points)?;
        let lifetimes = [self.lifetime().get()];
        let (model, n_dims, n_classes) = (self.model(), self.trained.forest.n_dims(), self.n_classes());
        let mut sums = vec![0.0; points.n_rows() * n_classes];
        if points.n_rows() == 1 && model.add_one_row(&coordinates, lifetimes[0], &mut sums) {
            return Ok(sums);
        }
        // As many together as memory allows: rows share the nodes near the root.
        let n_rows =
            points.n_rows().div_ceil(crate::parallel::current_num_threads()).clamp(1, MOST_NUMBERS.div_ceil(n_classes));
        sums.par_chunks_mut(n_rows * n_classes).zip(coordinates.par_chunks(n_rows * n_dims)).for_each(
            |(sums, rows)| {
                sum_over_trees(&model, &Rows::new(model.forest, rows), &lifetimes, sums);
            },
        );
        Ok(sums)
    }

    /// The most probable class of each row; the smaller number where two are equally probable.
    ///
    /// # Errors
    /// As [`ClassificationForest::predict_proba`].
    pub fn predict(&self, points: Points<'_>) -> Result<Vec<u32>> {
        let n_classes = self.n_classes();
        Ok(self.predict_proba(points)?.chunks_exact(n_classes).map(|p| loss::most_probable(p) as u32).collect())
    }

    /// The number of each row's cell in each tree, row-major.
    ///
    /// # Errors
    /// As [`ClassificationForest::predict_proba`].
    pub fn apply(&self, points: Points<'_>) -> Result<Vec<i64>> {
        self.trained.forest.apply(points, self.lifetime())
    }

    fn model(&self) -> ClassModel<'_> {
        let TrainedTrees { forest, classes } = &*self.trained;
        ClassModel { forest, classes, gamma: self.gamma(), unseen: self.params.unseen }
    }
}

/// Sums held for a chunk of rows.
const MOST_NUMBERS: usize = 1 << 22;

/// Rows that are carried down the trees together: enough to share work, few enough that all threads have some. A
/// row's result does not depend on its company.
fn rows_per_chunk(n_rows: usize, numbers_per_row: usize) -> usize {
    let fits = MOST_NUMBERS / numbers_per_row.max(1);
    n_rows.div_ceil(8).clamp(64, 4096).min(fits.max(64))
}

/// By row, lifetime and class.
struct SumsOfRows<'a> {
    n_classes: usize,
    n_lifetimes: usize,
    sums: &'a mut [f64],
}

#[expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]
impl Sums for SumsOfRows<'_> {
    #[inline(always)]
    fn add(&mut self, row: usize, number: usize, weight: f64, distribution: &[f64]) {
        let sum = &mut self.sums[(row * self.n_lifetimes + number) * self.n_classes..][..self.n_classes];
        sum.iter_mut().zip(distribution).for_each(|(s, p)| *s += weight * p);
    }

    #[inline(always)]
    fn prefetch(&self, row: usize) {
        // Of few classes all, of many the first: hardware asks for what follows.
        let start = row * self.n_lifetimes * self.n_classes;
        for at in [0, 8, 16, 24] {
            prefetch(self.sums, start + at);
        }
    }
}

/// The mean over trees, taken in tree order, of each row's distribution at each lifetime: row, lifetime, class.
fn sum_over_trees(model: &ClassModel<'_>, rows: &Rows, lifetimes: &[f64], sums: &mut [f64]) {
    let (n_classes, n_lifetimes) = (model.classes.n_classes(), lifetimes.len());
    model.predict(rows, lifetimes, &mut SumsOfRows { n_classes, n_lifetimes, sums });
    let scale = 1.0 / model.forest.n_trees() as f64;
    sums.iter_mut().for_each(|s| *s *= scale);
}

/// Most rows that weights may unfold to.
const MAX_REPEATED: f64 = 1e8;

/// The fewest classes that these labels can be of.
fn classes_of(labels: &[u32]) -> usize {
    labels.iter().max().map_or(0, |label| *label as usize + 1)
}

/// Rows and labels, each as often as its weight says.
fn repeated(points: Points<'_>, labels: &[u32], weights: &[f64]) -> Result<(Vec<f64>, Vec<u32>)> {
    if weights.len() != points.n_rows() {
        return Err(Error::LengthMismatch { what: "weights", expected: points.n_rows(), found: weights.len() });
    }
    if let Some(value) = weights.iter().copied().find(|w| !(*w >= 0.0 && w.is_finite() && w.fract() == 0.0)) {
        let expected = "a whole number ≥ 0: classification counts rows";
        return Err(Error::InvalidParameter { name: "sample weight", value, expected });
    }
    let total: f64 = weights.iter().sum();
    if total > MAX_REPEATED {
        return Err(Error::TooLarge { what: "weighted rows", expected: total, limit: MAX_REPEATED });
    }
    let (mut rows, mut again) = (Vec::new(), Vec::new());
    for (row, (label, weight)) in labels.iter().zip(weights).enumerate() {
        for _ in 0..*weight as usize {
            rows.extend(points.row(row));
            again.push(*label);
        }
    }
    Ok((rows, again))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forest::ForestParams;
    use crate::process::NodeKey;

    #[test]
    fn a_row_on_its_own_says_what_it_says_among_others() {
        for (n, n_dims, n_classes) in [(1, 2, 2), (60, 1, 3), (90, 3, 5), (50, 6, 70)] {
            let draw = |i: usize| NodeKey::root(11, i as u64).draw(0).uniform();
            // Clusters, so that there are chains; some rows are repeated.
            let place = |row: usize, dim: usize| draw(row % 7 * 10 + dim) + 1e-4 * draw(1000 + row * 2 / 3 * 10 + dim);
            let x: Vec<f64> = (0..n * n_dims).map(|at| place(at / n_dims, at % n_dims)).collect();
            let labels: Vec<u32> = (0..n).map(|row| (draw(5000 + row) * n_classes as f64) as u32).collect();
            let points = Points::row_major(&x, n_dims).unwrap();
            for lifetime in [0.0, 0.7, 40.0, 3000.0, f64::INFINITY] {
                let lifetime = LifetimeChoice::Value(Lifetime::new(lifetime).unwrap());
                let forest = ForestParams { n_trees: 6, lifetime, ..ForestParams::default() };
                let given = Some(n_classes);
                let params = ClassificationParams { forest, n_classes: given, ..ClassificationParams::default() };
                // The first rows fix a box that others leave.
                let (first, rest) = x.split_at((n / 3).max(1) * n_dims);
                let (first_labels, rest_labels) = labels.split_at((n / 3).max(1));
                let first = Points::row_major(first, n_dims).unwrap();
                let mut model = params.fit(first, first_labels).unwrap();
                if !rest.is_empty() {
                    let rest = Points::row_major(rest, n_dims).unwrap();
                    model.learn(rest, rest_labels).unwrap();
                }
                let queries: Vec<f64> = x
                    .iter()
                    .copied()
                    .chain((0..30 * n_dims).map(|at| place(at, 0) * (1.0 + 1e-5 * draw(9000 + at))))
                    .chain((0..9 * n_dims).map(|at| 3.0 * draw(7000 + at) - 1.0))
                    .collect();
                let together = model.predict_proba(Points::row_major(&queries, n_dims).unwrap()).unwrap();
                for (row, together) in queries.chunks_exact(n_dims).zip(together.chunks_exact(n_classes)) {
                    let alone = model.predict_proba(Points::row_major(row, n_dims).unwrap()).unwrap();
                    let bits = |numbers: &[f64]| numbers.iter().map(|p| p.to_bits()).collect::<Vec<_>>();
                    assert_eq!(bits(&alone), bits(together), "{points:?} {lifetime:?}");
                }
            }
        }
    }
}
