//! The result: losses as functions of the lifetime, piecewise constant.

use serde::{Deserialize, Serialize};

use crate::Lifetime;

/// The loss of a path, as the mean over rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// Root of the mean squared error.
    Rmse,
    /// Mean negative log probability of the true class.
    LogLoss,
    /// Share of misclassified rows.
    Error,
    /// Mean negative log density.
    NegLogDensity,
}

impl Loss {
    /// Its name in Python and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rmse => "rmse",
            Self::LogLoss => "log_loss",
            Self::Error => "error",
            Self::NegLogDensity => "neg_log_density",
        }
    }
}

/// Losses at every lifetime: value i holds from `lifetimes[i]` up to `lifetimes[i + 1]`, the last one onwards.
///
/// `lifetimes` ascends from 0. Made by the models' `path` functions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegularizationPath {
    pub(crate) loss: Loss,
    pub(crate) lifetimes: Vec<f64>,
    pub(crate) train: Vec<f64>,
    pub(crate) validation: Vec<Vec<f64>>,
    pub(crate) leave_one_out: Option<Vec<f64>>,
    /// Standard error of the selecting loss at its minimum.
    pub(crate) standard_error: Option<f64>,
    pub(crate) is_thinned: bool,
    /// Properties of the paths of some models only; not stored in files.
    #[serde(skip)]
    pub(crate) notes: PathNotes,
}

/// Properties of the paths of some models only.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct PathNotes {
    /// Rows of each validation set outside a density's box.
    pub(crate) n_outside: Vec<usize>,
    /// The accuracy of the solution along a path of ridge regression.
    pub(crate) drift: PathDrift,
    /// Whether it was solved at chosen lifetimes instead of every cut.
    pub(crate) at_some_lifetimes: bool,
}

/// The accuracy of the solution along a path.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct PathDrift {
    /// The largest ‖Zᵀy − Aθ‖/‖y‖ along the path (too large residuals were then corrected).
    pub(crate) worst_residual: f64,
    /// How often the inverse or factor was recomputed.
    pub(crate) refreshes: usize,
}

impl RegularizationPath {
    /// The loss.
    pub fn loss(&self) -> Loss {
        self.loss
    }

    /// Where the values change, ascending from 0.
    pub fn lifetimes(&self) -> &[f64] {
        &self.lifetimes
    }

    /// Loss on the training rows.
    pub fn train(&self) -> &[f64] {
        &self.train
    }

    /// Loss on each validation set.
    pub fn validation(&self) -> &[Vec<f64>] {
        &self.validation
    }

    /// Leave-one-out loss, for densities.
    pub fn leave_one_out(&self) -> Option<&[f64]> {
        self.leave_one_out.as_deref()
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.lifetimes.len()
    }

    /// Never: a path has a value at lifetime 0.
    pub fn is_empty(&self) -> bool {
        self.lifetimes.is_empty()
    }

    /// Whether values between the listed lifetimes were dropped (never the smallest, the first or the last).
    pub fn is_thinned(&self) -> bool {
        self.is_thinned
    }

    /// How many rows of each validation set lie outside a density's box, where their density is 0; empty for other models.
    pub fn n_outside(&self) -> &[usize] {
        &self.notes.n_outside
    }

    /// Whether ridge regression was solved at chosen lifetimes instead of every cut.
    pub fn is_at_some_lifetimes(&self) -> bool {
        self.notes.at_some_lifetimes
    }

    /// The largest ‖Zᵀy − Aθ‖/‖y‖ along a path of ridge regression (too large residuals were then corrected); 0 for
    /// other models.
    pub fn worst_residual(&self) -> f64 {
        self.notes.drift.worst_residual
    }

    /// How often a path of ridge regression recomputed its inverse or factor.
    pub fn n_refreshes(&self) -> usize {
        self.notes.drift.refreshes
    }

    pub(crate) fn with_drift(mut self, drift: PathDrift, at_every_cut: bool) -> Self {
        (self.notes.drift, self.notes.at_some_lifetimes) = (drift, !at_every_cut);
        self
    }

    pub(crate) fn with_outside(mut self, n_outside: Vec<usize>) -> Self {
        self.notes.n_outside = n_outside;
        self
    }

    /// Standard error of the selecting loss at its minimum, if the model gave one.
    pub fn standard_error(&self) -> Option<f64> {
        self.standard_error
    }

    /// The curve that selects: the first validation set, else leave-one-out, else the training loss.
    pub fn selecting(&self) -> &[f64] {
        self.validation.first().or(self.leave_one_out.as_ref()).unwrap_or(&self.train)
    }

    /// Index of the smallest selecting loss; the smallest such lifetime.
    pub fn best_index(&self) -> usize {
        let curve = self.selecting();
        (0..curve.len()).fold(0, |best, i| if curve[i] < curve[best] { i } else { best })
    }

    /// The lifetime of smallest loss on the first validation set (or leave-one-out, for densities without one).
    pub fn best_lifetime(&self) -> Lifetime {
        lifetime(self.lifetimes[self.best_index()])
    }

    /// The smallest lifetime, and so the simplest model, whose loss is within one standard error of the best.
    pub fn best_lifetime_1se(&self) -> Lifetime {
        let (curve, best) = (self.selecting(), self.best_index());
        let enough = curve[best] + self.standard_error.unwrap_or(0.0);
        let first = curve.iter().position(|v| *v <= enough).unwrap_or(best);
        lifetime(self.lifetimes[first])
    }

    /// Index of the value at a lifetime.
    pub fn index_at(&self, lifetime: Lifetime) -> usize {
        self.lifetimes.partition_point(|t| *t <= lifetime.get()).max(1) - 1
    }

    /// The selecting loss at a lifetime.
    pub fn value_at(&self, lifetime: Lifetime) -> f64 {
        self.selecting()[self.index_at(lifetime)]
    }

    /// Whether the selecting loss has clearly turned before the end: its minimum lies in the first four fifths of the
    /// values or the last value exceeds it by a standard error (by 0.1 % where none is known).
    pub fn has_turned(&self) -> bool {
        let (curve, best) = (self.selecting(), self.best_index());
        let last = curve[curve.len() - 1];
        let margin = self.standard_error.unwrap_or(curve[best].abs() * 1e-3).max(f64::MIN_POSITIVE);
        best * 5 < curve.len() * 4 && last >= curve[best] || last > curve[best] + margin
    }

    /// At most `cap` values (at least 8) for plots: first, last and smallest are kept; of the rest one half is spaced
    /// evenly by number, the other evenly by the logarithm of the lifetime. Cuts are dense at large lifetimes, so with
    /// spacing by number alone a repeatedly thinned path would lose its beginning.
    #[must_use]
    pub fn thinned(&self, cap: usize) -> Self {
        let n = self.len();
        let cap = cap.max(8);
        if n <= cap {
            return self.clone();
        }
        let half = (cap - 2) / 2;
        let mut keep: Vec<usize> = (0..half).map(|i| i * (n - 1) / (half - 1)).collect();
        keep.extend(self.firsts_by_scale(half));
        keep.push(self.best_index());
        keep.push(argmin(&self.train));
        keep.sort_unstable();
        keep.dedup();
        self.kept(&keep)
    }

    /// The first value in each of at most `most` ranges of lifetimes, equal in their logarithms. The ranges nest, whatever
    /// `most` and the path's end are, so that thinning again loses nothing more than thinning once.
    fn firsts_by_scale(&self, most: usize) -> Vec<usize> {
        let positive = self.lifetimes.partition_point(|t| *t <= 0.0);
        let (Some(first), Some(last)) = (self.lifetimes.get(positive), self.lifetimes.last()) else {
            return Vec::new();
        };
        let octaves = (last / first).log2().max(f64::MIN_POSITIVE);
        // One range more than fits may be touched at the ends.
        let ranges_an_octave = ((most.saturating_sub(1)).max(1) as f64 / octaves).log2().floor().exp2();
        let range = |at: usize| (self.lifetimes[at].log2() * ranges_an_octave).floor();
        (positive..self.len()).filter(|&at| at == positive || range(at) > range(at - 1)).collect()
    }

    pub(crate) fn kept(&self, keep: &[usize]) -> Self {
        let take = |v: &[f64]| -> Vec<f64> { keep.iter().map(|i| v[*i]).collect() };
        Self {
            loss: self.loss,
            lifetimes: take(&self.lifetimes),
            train: take(&self.train),
            validation: self.validation.iter().map(|v| take(v)).collect(),
            leave_one_out: self.leave_one_out.as_deref().map(take),
            standard_error: self.standard_error,
            is_thinned: true,
            notes: self.notes.clone(),
        }
    }
}

fn argmin(curve: &[f64]) -> usize {
    (0..curve.len()).fold(0, |best, i| if curve[i] < curve[best] { i } else { best })
}

fn lifetime(value: f64) -> Lifetime {
    Lifetime::new(value).expect("a path's lifetimes are lifetimes")
}
