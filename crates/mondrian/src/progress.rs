//! Progress and cancellation of long calls.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// One evaluation of a search over lifetimes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The lifetimes, one per dimension.
    pub lifetimes: Vec<f64>,
    /// α, the report's δ².
    pub alpha: f64,
    /// The error there: root mean squared, on validation rows or by leave-one-out, in the units of the target.
    pub error: f64,
    /// Estimated floating-point operations spent so far. The library reads no clock, so that runs can be compared.
    pub cost: f64,
    /// Number of training rows of the error. Only errors of steps on the same rows are comparable.
    pub rows: usize,
}

impl Step {
    /// The smallest error among the evaluations on as many rows as the last one; the first of equals.
    ///
    /// ```
    /// use mondrian::Step;
    /// let step = |(rows, error)| Step { lifetimes: vec![0.5], alpha: 1.0, error, cost: 0.0, rows };
    /// let steps: Vec<Step> = [(100, 1.0), (200, 3.0), (200, 2.0), (200, 2.5)].map(step).into();
    /// assert_eq!(Step::best(&steps).map(|step| step.error), Some(2.0));
    /// ```
    pub fn best(steps: &[Self]) -> Option<&Self> {
        let rows = steps.last()?.rows;
        let candidates = steps.iter().filter(|step| step.rows == rows);
        candidates.min_by(|a, b| a.error.total_cmp(&b.error))
    }
}

/// The argument of a progress callback.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Report<'a> {
    /// The share of work done, from 0 to 1.
    pub fraction: f64,
    /// The evaluation just made, by runs that search for lifetimes.
    pub step: Option<&'a Step>,
}

/// A progress callback: [`ControlFlow::Break`] cancels.
type Callback<'a> = dyn FnMut(Report<'_>) -> ControlFlow<()> + 'a;

/// The callback that receives reports of a long call and may cancel it. It is called from one thread.
///
/// A cancelled call returns [`Error::Cancelled`] and changes nothing.
///
/// ```
/// use std::ops::ControlFlow;
/// use mondrian::{Error, FitOptions, Points, Progress, RegressionForest};
/// let x: Vec<f64> = (0..40).map(f64::from).collect();
/// let points = Points::row_major(&x, 1)?;
/// let mut done = 0.0;
/// let mut callback = |report: mondrian::Report<'_>| {
///     done = report.fraction;
///     ControlFlow::Continue(())
/// };
/// RegressionForest::params().fit_with(points, &x, FitOptions::watched(Progress::new(&mut callback)))?;
/// assert_eq!(done, 1.0);
/// let mut cancel = |_: mondrian::Report<'_>| ControlFlow::Break(());
/// let outcome = RegressionForest::params().fit_with(points, &x, FitOptions::watched(Progress::new(&mut cancel)));
/// assert_eq!(outcome.unwrap_err(), Error::Cancelled);
/// # Ok::<(), mondrian::Error>(())
/// ```
pub struct Progress<'a> {
    callback: Option<&'a mut Callback<'a>>,
    /// The range of the callback's fraction that belongs to this run.
    from: f64,
    to: f64,
}

impl<'a> Progress<'a> {
    /// Reports to a callback.
    pub fn new(callback: &'a mut Callback<'a>) -> Self {
        Self { callback: Some(callback), from: 0.0, to: 1.0 }
    }

    /// Reports nothing and is never cancelled.
    pub const fn none() -> Self {
        Self { callback: None, from: 0.0, to: 1.0 }
    }

    /// Whether nothing is reported, so that the run cannot be cancelled.
    pub fn is_none(&self) -> bool {
        self.callback.is_none()
    }

    /// The progress of one part of this run, from one fraction of it to another.
    pub fn part(&mut self, from: f64, to: f64) -> Progress<'_> {
        let (start, length) = (self.from, self.to - self.from);
        let callback = self.callback.as_mut().map(|callback| &mut **callback as &mut Callback<'_>);
        Progress { callback, from: start + length * from, to: start + length * to }
    }

    /// Reports how much of this run is done.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if the callback cancels.
    pub fn report(&mut self, fraction: f64) -> Result<()> {
        self.report_step(fraction, None)
    }

    /// Reports an evaluation of a search, after which about this fraction is done.
    pub(crate) fn step(&mut self, fraction: f64, step: &Step) -> Result<()> {
        self.report_step(fraction, Some(step))
    }

    fn report_step(&mut self, fraction: f64, step: Option<&Step>) -> Result<()> {
        let Some(callback) = &mut self.callback else { return Ok(()) };
        let fraction = self.from + (self.to - self.from) * fraction;
        match callback(Report { fraction, step }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Cancelled),
        }
    }
}

impl Default for Progress<'_> {
    fn default() -> Self {
        Self::none()
    }
}

impl std::fmt::Debug for Progress<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { callback, from, to } = self;
        f.debug_struct("Progress").field("is_none", &callback.is_none()).field("from", from).field("to", to).finish()
    }
}

/// Options of a fit besides points and targets; [`FitOptions::default`] has none.
///
/// ```
/// use mondrian::{FitOptions, Points, RegressionForest};
/// let points = Points::row_major(&[0.0, 1.0], 1)?;
/// let options = FitOptions { weights: Some(&[1.0, 2.0]), ..FitOptions::default() };
/// let forest = RegressionForest::params().n_trees(3).fit_with(points, &[0.0, 1.0], options)?;
/// assert_eq!(forest.predict(points)?.len(), 2);
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct FitOptions<'a> {
    /// One weight ≥ 0 per row; `None` for 1 each. Models that do not support weights refuse them.
    pub weights: Option<&'a [f64]>,
    /// The callback that receives reports and may cancel.
    pub progress: Progress<'a>,
}

impl<'a> FitOptions<'a> {
    /// Rows with these weights.
    pub fn weighted(weights: &'a [f64]) -> Self {
        Self { weights: Some(weights), ..Self::default() }
    }

    /// Reports and may be cancelled.
    pub fn watched(progress: Progress<'a>) -> Self {
        Self { weights: None, progress }
    }

    /// The progress, for models that do not support weights.
    ///
    /// # Errors
    /// [`Error::NoWeights`] if weights were given.
    pub(crate) fn unweighted(self, model: &'static str) -> Result<Progress<'a>> {
        if self.weights.is_some() { Err(Error::NoWeights { model }) } else { Ok(self.progress) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_report_fractions_of_the_whole() {
        let mut fractions = Vec::new();
        let mut callback = |report: Report<'_>| {
            fractions.push(report.fraction);
            ControlFlow::Continue(())
        };
        let mut progress = Progress::new(&mut callback);
        progress.report(0.0).unwrap();
        let mut half = progress.part(0.5, 1.0);
        half.report(0.5).unwrap();
        half.part(0.5, 0.75).report(1.0).unwrap();
        progress.report(1.0).unwrap();
        assert_eq!(fractions, [0.0, 0.75, 0.875, 1.0]);
        assert!(Progress::none().is_none() && Progress::none().report(0.5).is_ok());
    }
}
