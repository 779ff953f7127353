//! Classification with the whole tuned kernel: one factorisation, one right-hand side per class, and a link chosen on
//! leave-one-out scores.

use serde::{Deserialize, Serialize};

use crate::laplace::large::{ManyRows, SolverReport};
use crate::laplace::link::Link;
use crate::laplace::model::{Forms, KernelModel, KeyedRows, checked_weights};
use crate::laplace::objective::Loss;
use crate::laplace::regression::{metric_of_inputs, transform};
use crate::laplace::search::{KernelTuning, Search, TunedKernel};
use crate::laplace::solve::{Solution, solve};
use crate::laplace::{Cells, LaplaceClassifierParams};
use crate::linalg::{Matrix, Threads};
use crate::memory;
use crate::model_file::{Archive, ModelFileError, Saved};
use crate::process::NodeKey;
use crate::progress::{FitOptions, Progress, Step};
use crate::{Error, Result};

/// What a fitted classifier is worth by leave-one-out on all rows, or a sample of 20 000 (2000 without one factorisation).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LeaveOneOutClasses {
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
/// use mondrian::{Cells, LaplaceClassifier};
/// let x: Vec<f64> = (0..80).map(|i| f64::from(i) / 80.0).collect();
/// let y: Vec<u32> = x.iter().map(|x| u32::from((9.0 * x).sin() > 0.0)).collect();
/// let model = LaplaceClassifier::params().fit(Cells::row_major(&x, 1)?, &y)?;
/// let p = model.predict_proba(Cells::row_major(&[0.17], 1)?)?;
/// assert!(p[1] > 0.9 && (p[0] + p[1] - 1.0).abs() < 1e-12);
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LaplaceClassifier {
    model: KernelModel,
    link: Link,
    worth: LeaveOneOutClasses,
}

impl LaplaceClassifier {
    /// Starts from the default parameters.
    pub fn params() -> LaplaceClassifierParams {
        LaplaceClassifierParams::default()
    }

    /// Tunes and solves, from a tuned kernel on if there is one; classes are numbers below `n_classes`.
    pub(crate) fn fit_labels(
        from: Option<&KernelModel>,
        cells: Cells<'_>,
        categorical: &[bool],
        classes: &[u32],
        n_classes: usize,
        tuning: &KernelTuning,
        options: FitOptions<'_>,
    ) -> Result<Self> {
        let FitOptions { weights, progress } = options;
        let n = cells.n_rows();
        if n == 0 || n_classes == 0 {
            return Err(Error::Empty { what: "X", rows: n, columns: cells.n_columns() });
        }
        check_classes(classes, n, n_classes)?;
        checked_weights(weights, n)?;
        let numbers = Matrix::from_column(classes.iter().map(|class| f64::from(*class)).collect());
        let KeyedRows { rows: order, weights, unit, places } = KeyedRows::new(cells, &numbers, weights, tuning.seed);
        let n = order.len();
        // Labels are the caller's: one large number makes as many classes.
        memory::check("bytes of one target per class", memory::bytes_of(n, n_classes))?;
        let is_exact = tuning.is_exact(n);
        if is_exact {
            memory::check("bytes of the kernel matrix", memory::bytes_of(n, n))?;
        }
        let table: Vec<f64> = order.iter().flat_map(|&i| cells.row(i).iter().copied()).collect();
        let cells = Cells::row_major(&table, cells.n_columns())?;
        let targets = Matrix::from_fn(n, n_classes, |i, c| f64::from(u8::from(classes[order[i]] as usize == c)));
        let mut search = Search::new(tuning, cells, categorical, weights.clone(), Loss::Log, progress)?;
        let rough = match from {
            Some(model) => search.resume(model)?,
            None => search.rough(&targets)?,
        };
        let TunedKernel { columns, values } = search.finish(rough, &targets)?;
        let trajectory = std::mem::take(&mut search.trajectory);
        drop(search);
        let rows = values.rows(&columns.apply(cells)?)?;
        let is_centred = tuning.fit_intercept;
        let solution = if is_exact {
            solve(&rows, &targets, &weights, is_centred, values.alpha, tuning.threads)?
        } else {
            ManyRows::new(&rows, &targets, &weights, values.alpha, tuning.large_options(Loss::Log)).solve()?
        };
        let key = NodeKey::root(tuning.seed, 0).fork(0x696D_706F);
        // Of the first rows, where there are many.
        let n = solution.residuals.n_rows();
        let scores = Matrix::from_fn(n, n_classes, |i, c| targets[(i, c)] - solution.residuals[(i, c)]);
        let first = Matrix::from_fn(n, n_classes, |i, c| targets[(i, c)]);
        let link = Link::fit(&scores, &first, &weights[..n]);
        let worth = worth(link, &scores, &first, &weights[..n]);
        let Solution { dual, targets: centred, centre, report, .. } = solution;
        let mut model = KernelModel {
            columns,
            values,
            rows,
            weights,
            weight_unit: unit,
            places,
            is_centred,
            centre,
            dual,
            targets: centred,
            report,
            table,
            importances: Vec::new(),
            trajectory,
            forms: Forms::default(),
        };
        model.importances = model.relevance_of_inputs(&targets, Loss::Log, key)?.shares;
        Ok(Self { model, link, worth })
    }

    /// How all rows were solved.
    pub fn solver(&self) -> &SolverReport {
        &self.model.report
    }

    /// As [`crate::LaplaceRegressor::learn`], for rows of known classes.
    ///
    /// # Errors
    /// [`Error::NotLocal`] for a model from a file without its rows' cells, [`Error::LengthMismatch`],
    /// [`Error::InvalidParameter`] for a class beyond their number. Nothing is changed then.
    pub fn learn(&mut self, cells: Cells<'_>, labels: &[u32]) -> Result<()> {
        self.learn_with(cells, labels, FitOptions::default())
    }

    /// As [`LaplaceClassifier::learn`], with weights of the rows.
    ///
    /// # Errors
    /// As [`LaplaceClassifier::learn`].
    #[expect(clippy::needless_pass_by_value, reason = "options are passed by value to every model")]
    pub fn learn_with(&mut self, cells: Cells<'_>, labels: &[u32], options: FitOptions<'_>) -> Result<()> {
        let (n, weights) = (cells.n_rows(), options.weights);
        check_classes(labels, n, self.n_classes())?;
        if n == 0 || weights.is_some_and(|w| w.iter().all(|w| *w == 0.0) && w.len() == n) {
            return Ok(());
        }
        checked_weights(weights, n)?;
        let targets = Matrix::from_fn(n, self.n_classes(), |i, c| f64::from(u8::from(labels[i] as usize == c)));
        self.model.append(cells, &targets, weights, Loss::Log)
    }

    /// As [`crate::laplace::LaplaceRegressor::resumed`], for the classes of this model.
    ///
    /// # Errors
    /// Those of a fit; this model is not changed.
    pub fn resumed(
        &self,
        cells: Cells<'_>,
        labels: &[u32],
        params: &LaplaceClassifierParams,
        options: FitOptions<'_>,
    ) -> Result<Self> {
        let (categorical, n_classes) = (self.model.columns.categorical(), self.n_classes());
        Self::fit_labels(Some(&self.model), cells, &categorical, labels, n_classes, params.tuned_by(), options)
    }

    /// As [`crate::laplace::LaplaceRegressor::tuned_again`].
    ///
    /// # Errors
    /// [`Error::NotLocal`] for a model that does not keep its rows, and those of a fit.
    pub fn tuned_again(&self, params: &LaplaceClassifierParams, mut progress: Progress<'_>) -> Result<Self> {
        let (cells, categorical) = self.model.cells()?;
        let (model, n_classes) = (&self.model, self.n_classes());
        let score = |i: usize, c: usize| model.targets[(i, c)] + model.centre[c];
        let class = |i: usize| (1..n_classes).fold(0, |best, c| if score(i, c) > score(i, best) { c } else { best });
        let classes: Vec<u32> = (0..model.n_rows()).map(|i| class(i) as u32).collect();
        let weights: Vec<f64> = model.weights.iter().map(|w| w * model.weight_unit).collect();
        let options = FitOptions { weights: Some(&weights), progress: progress.part(0.0, 1.0) };
        let mut again = Self::fit_labels(None, cells, &categorical, &classes, n_classes, params.tuned_by(), options)?;
        again.model.places = model.places_after(&again.model);
        Ok(again)
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
        let (n, c) = (residuals.n_rows(), self.n_classes());
        // One-hot targets again: what was centred comes back up to rounding.
        let targets = Matrix::from_fn(n, c, |i, k| (model.targets[(i, k)] + model.centre[k]).round());
        let scores = Matrix::from_fn(n, c, |i, k| targets[(i, k)] - residuals[(i, k)]);
        let link = Link::fit(&scores, &targets, &model.weights[..n]);
        let worth = worth(link, &scores, &targets, &model.weights[..n]);
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
    pub fn trajectory(&self) -> &[Step] {
        self.model.trajectory.steps()
    }

    /// What the model is worth.
    pub fn leave_one_out(&self) -> LeaveOneOutClasses {
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

fn check_classes(classes: &[u32], n_rows: usize, n_classes: usize) -> Result<()> {
    if classes.len() != n_rows {
        return Err(Error::LengthMismatch { what: "classes", expected: n_rows, found: classes.len() });
    }
    if let Some(&class) = classes.iter().find(|class| **class as usize >= n_classes) {
        let expected = "below the number of classes";
        return Err(Error::InvalidParameter { name: "a class", value: f64::from(class), expected });
    }
    Ok(())
}

fn worth(link: Link, scores: &Matrix, targets: &Matrix, weights: &[f64]) -> LeaveOneOutClasses {
    let (n, c) = (scores.n_rows(), scores.n_columns());
    let total: f64 = weights.iter().sum();
    let (mut right, mut shares) = (0.0, vec![0.0; c]);
    for i in 0..n {
        let best = (1..c).fold(0, |best, k| if scores[(i, k)] > scores[(i, best)] { k } else { best });
        right += weights[i] / total * targets[(i, best)];
        shares.iter_mut().enumerate().for_each(|(k, share)| *share += weights[i] / total * targets[(i, k)]);
    }
    let log_loss_of_shares = -shares.iter().filter(|s| **s > 0.0).map(|s| s * s.ln()).sum::<f64>();
    LeaveOneOutClasses { log_loss: link.loss(scores, targets, weights), accuracy: right, log_loss_of_shares }
}

#[derive(Serialize, Deserialize)]
struct Kept {
    link: Link,
    worth: LeaveOneOutClasses,
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
