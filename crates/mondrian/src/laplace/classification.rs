//! Classification with the whole tuned kernel: one factorisation, one right-hand side per class, and a link chosen on
//! leave-one-out scores.

use serde::{Deserialize, Serialize};

use crate::laplace::Cells;
use crate::laplace::importance::importances;
use crate::laplace::link::Link;
use crate::laplace::model::{KernelModel, KeyedRows, checked_weights};
use crate::laplace::objective::Loss;
use crate::laplace::regression::{metric_of_inputs, transform};
use crate::laplace::search::{KernelTuning, Search};
use crate::laplace::solve::{Solution, solve};
use crate::linalg::{Matrix, Threads};
use crate::model_file::{Archive, ModelFileError, Saved};
use crate::process::NodeKey;
use crate::progress::Progress;
use crate::select::Trajectory;
use crate::{Error, Result};

/// What a fitted classifier is worth by leave-one-out on all rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClassWorth {
    /// The mean log loss.
    pub log_loss: f64,
    /// The share of rows whose class is the most probable one.
    pub accuracy: f64,
    /// The log loss of predicting the shares of the classes.
    pub log_loss_of_shares: f64,
}

/// Classes by ridge on one-hot targets with the tuned kernel of [`crate::laplace::LaplaceRegressor`].
///
/// ```
/// use mondrian::{Cells, KernelTuning, LaplaceClassifier};
/// let x: Vec<f64> = (0..80).map(|i| f64::from(i) / 80.0).collect();
/// let y: Vec<usize> = x.iter().map(|x| usize::from((9.0 * x).sin() > 0.0)).collect();
/// let model = LaplaceClassifier::fit(Cells::row_major(&x, 1)?, &[false], &y, 2, None, &KernelTuning::default())?;
/// let p = model.predict_proba(Cells::row_major(&[0.17], 1)?)?;
/// assert!(p[1] > 0.9 && (p[0] + p[1] - 1.0).abs() < 1e-12);
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LaplaceClassifier {
    model: KernelModel,
    link: Link,
    worth: ClassWorth,
}

impl LaplaceClassifier {
    /// Tunes on these rows and solves on all of them; classes are numbers below `n_classes`. Inputs as for
    /// [`crate::laplace::LaplaceRegressor::fit`].
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::LengthMismatch`], [`Error::InvalidParameter`] for a class that is no class.
    pub fn fit(
        cells: Cells<'_>,
        categorical: &[bool],
        classes: &[usize],
        n_classes: usize,
        weights: Option<&[f64]>,
        tuning: &KernelTuning,
    ) -> Result<Self> {
        Self::fit_with_progress(cells, categorical, classes, n_classes, weights, tuning, Progress::none())
    }

    /// The same, telling every step of the tuning to `progress`.
    ///
    /// # Errors
    /// Those of [`LaplaceClassifier::fit`], and [`Error::Cancelled`] if the callback breaks off.
    pub fn fit_with_progress(
        cells: Cells<'_>,
        categorical: &[bool],
        classes: &[usize],
        n_classes: usize,
        weights: Option<&[f64]>,
        tuning: &KernelTuning,
        progress: Progress<'_>,
    ) -> Result<Self> {
        let n = cells.n_rows();
        if classes.len() != n {
            return Err(Error::LengthMismatch { what: "classes", expected: n, found: classes.len() });
        }
        if n == 0 || n_classes == 0 {
            return Err(Error::Empty { what: "X", rows: n, columns: cells.n_columns() });
        }
        if let Some(&class) = classes.iter().find(|class| **class >= n_classes) {
            let expected = "below the number of classes";
            return Err(Error::InvalidParameter { name: "a class", value: class as f64, expected });
        }
        checked_weights(weights, n)?;
        let numbers = Matrix::from_column(classes.iter().map(|class| *class as f64).collect());
        let KeyedRows { rows: order, weights, places } = KeyedRows::new(cells, &numbers, weights, tuning.seed);
        let table: Vec<f64> = order.iter().flat_map(|&i| cells.row(i).iter().copied()).collect();
        let cells = Cells::row_major(&table, cells.n_columns())?;
        let n = order.len();
        let targets = Matrix::from_fn(n, n_classes, |i, c| f64::from(u8::from(classes[order[i]] == c)));
        let mut search = Search::new(tuning, cells, categorical, weights.clone(), Loss::Log, progress)?;
        let rough = search.rough(&targets)?;
        let kernel = search.finish(rough, &targets)?;
        let trajectory = std::mem::take(&mut search.trajectory);
        let columned = kernel.columns.apply(cells)?;
        let rows = kernel.values.rows(&columned)?;
        let is_centred = tuning.fit_intercept;
        let solution = solve(&rows, &targets, &weights, is_centred, kernel.values.alpha, tuning.threads)?;
        let key = NodeKey::root(tuning.seed, 0).fork(0x696D_706F);
        let importances =
            importances(&kernel.columns, &kernel.values, cells, &targets, &weights, Loss::Log, is_centred, key)?;
        let scores = Matrix::from_fn(n, n_classes, |i, c| targets[(i, c)] - solution.residuals[(i, c)]);
        let link = Link::fit(&scores, &targets, &weights);
        let worth = worth(link, &scores, &targets, &weights);
        let Solution { dual, targets: centred, centre, .. } = solution;
        let model = KernelModel::new(
            kernel.columns,
            kernel.values,
            rows,
            weights,
            places,
            is_centred,
            (centre, dual, centred),
            importances,
            trajectory,
        );
        Ok(Self { model, link, worth })
    }

    /// Probabilities, row-major: one column per class.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the width differs.
    pub fn predict_proba(&self, cells: Cells<'_>) -> Result<Vec<f64>> {
        let mut scores = self.model.scores(cells)?;
        let c = self.n_classes();
        let mut row = vec![0.0; c];
        for scores in scores.chunks_exact_mut(c) {
            self.link.probabilities(scores.iter().copied(), &mut row);
            scores.copy_from_slice(&row);
        }
        Ok(scores)
    }

    /// Number of classes.
    pub fn n_classes(&self) -> usize {
        self.model.n_outputs()
    }

    /// As for [`crate::laplace::LaplaceRegressor::lifetimes`].
    pub fn lifetimes(&self) -> Vec<f64> {
        self.model.lifetimes()
    }

    /// As for [`crate::laplace::LaplaceRegressor::rank_lifetimes`].
    pub fn rank_lifetimes(&self) -> Vec<f64> {
        self.model.rank_lifetimes()
    }

    /// As for [`crate::laplace::LaplaceRegressor::at_factor`]; the link is fitted anew.
    ///
    /// # Errors
    /// Those of [`crate::laplace::LaplaceRegressor::at_factor`].
    pub fn at_factor(&self, factor: f64, most_rows: usize, threads: Threads) -> Result<Self> {
        let (model, residuals) = self.model.scaled(factor, most_rows, threads)?;
        let (n, c) = (model.n_rows(), self.n_classes());
        // One-hot targets again: what was centred comes back up to rounding.
        let targets = Matrix::from_fn(n, c, |i, k| (model.targets[(i, k)] + model.centre[k]).round());
        let scores = Matrix::from_fn(n, c, |i, k| targets[(i, k)] - residuals[(i, k)]);
        let link = Link::fit(&scores, &targets, &model.weights);
        let worth = worth(link, &scores, &targets, &model.weights);
        Ok(Self { model, link, worth })
    }

    /// α.
    pub fn alpha(&self) -> f64 {
        self.model.values.alpha
    }

    /// p.
    pub fn exponent(&self) -> f64 {
        self.model.values.exponent
    }

    /// As for [`crate::laplace::LaplaceRegressor::metric`].
    pub fn metric(&self) -> Matrix {
        metric_of_inputs(&self.model)
    }

    /// What permuting each input does to the leave-one-out log loss, as a share of the largest.
    pub fn importances(&self) -> &[f64] {
        &self.model.importances
    }

    /// Every step of the tuning.
    pub fn trajectory(&self) -> &Trajectory {
        &self.model.trajectory
    }

    /// What the model is worth.
    pub fn leave_one_out(&self) -> ClassWorth {
        self.worth
    }

    /// From scores to probabilities.
    pub fn link(&self) -> Link {
        self.link
    }

    /// Number of inputs.
    pub fn n_inputs(&self) -> usize {
        self.model.columns.n_inputs()
    }

    /// Number of training rows.
    pub fn n_rows(&self) -> usize {
        self.model.n_rows()
    }

    /// As for [`crate::laplace::LaplaceRegressor::transform`].
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the width differs.
    pub fn transform(&self, cells: Cells<'_>, n_directions: usize, seed: u64) -> Result<(Vec<f64>, usize)> {
        transform(&self.model, cells, n_directions, seed)
    }
}

fn worth(link: Link, scores: &Matrix, targets: &Matrix, weights: &[f64]) -> ClassWorth {
    let (n, c) = (scores.n_rows(), scores.n_columns());
    let total: f64 = weights.iter().sum();
    let (mut right, mut shares) = (0.0, vec![0.0; c]);
    for i in 0..n {
        let best = (1..c).fold(0, |best, k| if scores[(i, k)] > scores[(i, best)] { k } else { best });
        right += weights[i] / total * targets[(i, best)];
        shares.iter_mut().enumerate().for_each(|(k, share)| *share += weights[i] / total * targets[(i, k)]);
    }
    let log_loss_of_shares = -shares.iter().filter(|s| **s > 0.0).map(|s| s * s.ln()).sum::<f64>();
    ClassWorth { log_loss: link.loss(scores, targets, weights), accuracy: right, log_loss_of_shares }
}

#[derive(Serialize, Deserialize)]
struct Kept {
    link: Link,
    worth: ClassWorth,
}

impl Saved for LaplaceClassifier {
    const KIND: &'static str = "laplace.classifier";

    fn to_archive(&self) -> Result<Archive> {
        let mut archive = Archive::new(Self::KIND);
        self.model.store(&mut archive)?;
        archive.set_params("classifier", &Kept { link: self.link, worth: self.worth })?;
        Ok(archive)
    }

    fn from_archive(archive: &Archive) -> Result<Self> {
        let model = KernelModel::restore(archive)?;
        let Kept { link, worth } = archive.params("classifier")?;
        let sound = [link.beta, link.gamma, link.kappa].iter().all(|x| *x > 0.0 && x.is_finite());
        if !sound {
            return Err(ModelFileError::Inconsistent { what: "the link of a Laplace classifier" }.into());
        }
        Ok(Self { model, link, worth })
    }
}
