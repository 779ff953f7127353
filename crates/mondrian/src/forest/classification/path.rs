//! Paths of a classification forest: error rate and log loss over the lifetime.
//!
//! A leaf's discount varies continuously with the lifetime, so unlike other paths this one is not piecewise constant
//! (docs/design.md, "Classification"). It holds exact samples on a grid of lifetimes, found in one walk down each tree,
//! and [`ClassificationPath::value_at`] evaluates the view at any other.

use std::sync::Arc;

use crate::forest::classification::loss::{Losses, losses};
use crate::forest::classification::masks::check_labels;
use crate::forest::classification::{ClassificationForest, GammaChoice, TrainedTrees};
use crate::path::{Loss, PathBuilder, RegularizationPath};
use crate::progress::Progress;
use crate::tree::Kind;
use crate::{Error, Lifetime, Points, Result};

/// Lifetimes of a chosen grid, 0 and the last one aside.
const GRID: usize = 40;

/// Error rate and log loss along the lifetime, and the model that they are of.
#[derive(Debug, Clone)]
pub struct ClassificationPath {
    model: ClassificationForest,
    validation: Vec<LabelledRows>,
    error: RegularizationPath,
    log_loss: RegularizationPath,
}

/// Validation rows in measure coordinates, with their classes.
#[derive(Debug, Clone)]
struct LabelledRows {
    coordinates: Vec<f64>,
    truth: Vec<(u32, u32)>,
}

impl ClassificationForest {
    /// Error rate and log loss on the training rows and on validation sets, at a grid of lifetimes up to that of the
    /// trees: those given, or 0, 40 numbers spread over the times at which training points part, and the last.
    ///
    /// A forest that was finished from a summary does not know its losses on the training rows: they are NaN.
    ///
    /// The root box is first widened to hold the validation rows; the model evaluated is that one. Lifetime 0 is added to
    /// a given grid that lacks it.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::InvalidParameter`] for a label that is no class or a lifetime beyond that of the
    /// trees, [`Error::Cancelled`], [`Error::WithoutRows`].
    pub fn path(
        &self,
        validation: &[(Points<'_>, &[u32])],
        lifetimes: Option<&[Lifetime]>,
        progress: &mut Progress<'_>,
    ) -> Result<ClassificationPath> {
        if validation.is_empty() {
            self.trained.forest.check_rows("a path without validation rows")?;
        }
        let mut sets = Vec::with_capacity(validation.len());
        for (points, labels) in validation {
            check_labels(points.n_rows(), labels, self.n_classes())?;
            let coordinates = self.trained.forest.coordinates(*points)?;
            sets.push(LabelledRows { coordinates, truth: labels.iter().map(|k| (*k, 1)).collect() });
        }
        let model = self.widened(&sets, &mut progress.part(0.0, 0.3))?;
        let lifetimes = model.grid(lifetimes)?;
        model.path_of(sets, &lifetimes, &mut progress.part(0.3, 1.0))
    }

    /// The same model on a root box that holds the given rows; automatic values are those from before.
    fn widened(&self, sets: &[LabelledRows], progress: &mut Progress<'_>) -> Result<Self> {
        let mut model = self.clone();
        model.params.gamma = GammaChoice::Value(self.gamma());
        let TrainedTrees { forest, classes } = &*self.trained;
        let sets: Vec<&[f64]> = sets.iter().map(|set| &set.coordinates[..]).collect();
        if let Some(forest) = forest.widened_with_progress(classes, &sets, progress)? {
            model.trained = Arc::new(TrainedTrees { forest, classes: classes.clone() });
        }
        Ok(model)
    }

    fn path_of(
        self,
        validation: Vec<LabelledRows>,
        lifetimes: &[f64],
        progress: &mut Progress<'_>,
    ) -> Result<ClassificationPath> {
        let model = self.model();
        let store = model.forest.store();
        let points: Vec<u32> = store.points().collect();
        let train: Vec<f64> = points.iter().flat_map(|p| store.point(*p)).copied().collect();
        let n_dims = model.forest.n_dims();
        let total = train.len() + validation.iter().map(|set| set.coordinates.len()).sum::<usize>();
        let mut done = 0;
        let mut advance = |n_rows: usize| {
            done += n_rows * n_dims;
            progress.report(done as f64 / total as f64)
        };
        let on_train = losses(&model, &train, |row| model.classes.of(points[row]), lifetimes, &mut advance)?;
        let mut on_validation = Vec::with_capacity(validation.len());
        for set in &validation {
            let truth = |row: usize| std::slice::from_ref(&set.truth[row]);
            on_validation.push(losses(&model, &set.coordinates, truth, lifetimes, &mut advance)?);
        }
        let curve = |loss| curve(loss, lifetimes, &on_train, &on_validation);
        let (error, log_loss) = (curve(Loss::Error), curve(Loss::LogLoss));
        Ok(ClassificationPath { model: self, validation, error, log_loss })
    }

    /// The lifetimes of a path: ascending, distinct, from 0.
    fn grid(&self, given: Option<&[Lifetime]>) -> Result<Vec<f64>> {
        let last = self.terminal_lifetime();
        let mut grid = match given {
            Some(given) => {
                if let Some(beyond) = given.iter().find(|lifetime| **lifetime > last) {
                    let expected = "at most the lifetime the trees are cut until (raise it first)";
                    return Err(Error::InvalidParameter { name: "lifetime", value: beyond.get(), expected });
                }
                given.iter().map(|lifetime| lifetime.get()).collect()
            }
            None => self.chosen_grid(),
        };
        grid.push(0.0);
        grid.sort_by(f64::total_cmp);
        grid.dedup();
        Ok(grid)
    }

    /// Geometric between the 5 % and the 95 % quantile of the times at which points part, extended by a factor of 4 both
    /// ways; the trees' own lifetime last.
    fn chosen_grid(&self) -> Vec<f64> {
        let last = self.terminal_lifetime().get();
        let mut times: Vec<f64> = Vec::new();
        for (tree, _) in self.trained.forest.trees().iter().take(16) {
            let mut todo = vec![tree.root()];
            while let Some(child) = todo.pop() {
                if let Kind::Inner(id) = child.kind() {
                    let node = tree.node(id);
                    times.extend(node.separates().then_some(node.time()));
                    todo.extend(tree.children(node));
                }
            }
        }
        times.sort_by(f64::total_cmp);
        let mut grid = vec![last];
        if let (Some(&low), Some(&high)) = (times.get(times.len() / 20), times.get(times.len() * 19 / 20)) {
            let (low, high) = (low / 4.0, (high * 4.0).min(f64::MAX));
            let step = libm::log(high / low) / (GRID - 1) as f64;
            grid.extend((0..GRID).map(|i| low * libm::exp(step * i as f64)).filter(|t| *t > 0.0 && *t < last));
        }
        grid
    }
}

fn curve(loss: Loss, lifetimes: &[f64], train: &[Losses], validation: &[Vec<Losses>]) -> RegularizationPath {
    // Without rows there is no loss.
    let value = |losses: &Losses| {
        if losses.is_empty() {
            f64::NAN
        } else if loss == Loss::Error {
            losses.error()
        } else {
            losses.log_loss()
        }
    };
    let mut path = PathBuilder::new(loss, validation.len());
    for (at, lifetime) in lifetimes.iter().enumerate() {
        let on_validation: Vec<f64> = validation.iter().map(|set| value(&set[at])).collect();
        path.push(*lifetime, value(&train[at]), &on_validation);
    }
    let (of_error, of_log_loss) =
        validation.first().map_or(train, |set| set)[path.so_far().best_index()].standard_errors();
    path.finish(Some(if loss == Loss::Error { of_error } else { of_log_loss }))
}

impl ClassificationPath {
    /// Share of rows put into a wrong class, at the sampled lifetimes.
    pub fn error(&self) -> &RegularizationPath {
        &self.error
    }

    /// Mean negative log probability of the true class, at the sampled lifetimes. Probabilities below 2⁻⁵² count as that.
    pub fn log_loss(&self) -> &RegularizationPath {
        &self.log_loss
    }

    /// The model, on the box that holds the validation rows too, at a lifetime up to that of its trees.
    ///
    /// # Errors
    /// As [`ClassificationForest::at`].
    pub fn at(&self, lifetime: Lifetime) -> Result<ClassificationForest> {
        self.model.at(lifetime)
    }

    /// Error rate or log loss at any lifetime up to that of the trees, exactly: on the first validation set, or the
    /// training rows without one.
    ///
    /// # Errors
    /// As [`ClassificationForest::at`].
    pub fn value_at(&self, loss: Loss, lifetime: Lifetime) -> Result<f64> {
        let set = self.validation.first().cloned();
        let progress = &mut Progress::none();
        let path = self.at(lifetime)?.path_of(set.into_iter().collect(), &[lifetime.get()], progress)?;
        let curve = if loss == Loss::Error { &path.error } else { &path.log_loss };
        Ok(curve.selecting()[0])
    }
}

/// The lifetimes that an automatic choice looks at.
pub(crate) fn automatic_grid(model: &ClassificationForest) -> Result<Vec<f64>> {
    model.grid(None)
}

/// The log loss of a forest at these lifetimes on rows it has not seen, given as points of another store with the same
/// coordinates.
pub(crate) fn held_out_losses(
    model: &ClassificationForest,
    coordinates: &[f64],
    truth: &[(u32, u32)],
    grid: &[f64],
    progress: &mut Progress<'_>,
) -> Result<Vec<f64>> {
    let truth_of = |row: usize| std::slice::from_ref(&truth[row]);
    let (mut done, total) = (0, truth.len());
    let mut advance = |n_rows: usize| {
        done += n_rows;
        progress.report(done as f64 / total as f64)
    };
    let losses = losses(&model.model(), coordinates, truth_of, grid, &mut advance)?;
    Ok(losses.iter().map(crate::forest::classification::loss::Losses::log_loss).collect())
}
