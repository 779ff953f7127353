//! Rows taken in batch by batch, trees grown once at the end.
//!
//! What a table larger than a copy in memory is learned by: growing once is several times faster than inserting every batch into
//! trees that stand already, and leaves no room for growth behind. The model is the same, bit for bit (docs/design.md,
//! "Exact promises").

use crate::forest::{ClassificationForest, ClassificationParams, RegressionForest, RegressionParams};
use crate::progress::Progress;
use crate::{Lifetime, Points, Result};

/// A forest model whose rows arrive in batches and whose trees are not grown yet.
///
/// ```
/// use mondrian::internals::forest::BulkBuilder;
/// use mondrian::{FitOptions, Lifetime, Points, Progress, RegressionParams};
/// let x: Vec<f64> = (0..40).map(|i| f64::from(i) / 40.0).collect();
/// let (params, lifetime) = (RegressionParams::default(), Lifetime::new(3.0)?);
/// let all = Points::row_major(&x, 1)?;
/// let mut rows = BulkBuilder::regression(params.clone(), lifetime, all, 1)?;   // the box of all rows
/// for batch in x.chunks(7) {
///     rows.add(Points::row_major(batch, 1)?, batch, None)?;
/// }
/// let model = rows.grow(&mut Progress::none())?;
/// let whole = params.fit_at(lifetime, all, &x, FitOptions::default())?;
/// assert_eq!(model.predict(all)?, whole.predict(all)?);
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug)]
pub struct BulkBuilder<M>(M);

impl BulkBuilder<RegressionForest> {
    /// A regression forest on the box and measure of `first`, whose rows are not learned by this.
    ///
    /// # Errors
    /// As [`RegressionParams::fit`].
    pub fn regression(
        params: RegressionParams,
        lifetime: Lifetime,
        first: Points<'_>,
        n_targets: usize,
    ) -> Result<Self> {
        RegressionForest::unfitted(params, lifetime, first, n_targets).map(Self)
    }

    /// Takes rows in, as [`RegressionForest::learn`].
    ///
    /// # Errors
    /// As [`RegressionForest::learn`].
    pub fn add(&mut self, points: Points<'_>, targets: &[f64], weights: Option<&[f64]>) -> Result<()> {
        self.0.stage(points, targets, weights)
    }

    /// Grows the trees to another lifetime than the one given at first: one that the rows have chosen meanwhile.
    #[must_use]
    pub fn to_lifetime(mut self, lifetime: Lifetime) -> Self {
        self.0.stage_lifetime(lifetime);
        self
    }

    /// Grows the trees, with a report after every few.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn grow(mut self, progress: &mut Progress<'_>) -> Result<RegressionForest> {
        self.0.grow_staged(progress)?;
        Ok(self.0)
    }
}

impl BulkBuilder<ClassificationForest> {
    /// A classification forest on the box and measure of `first`, whose rows are not learned by this.
    ///
    /// # Errors
    /// As [`ClassificationParams::fit`].
    pub fn classification(params: &ClassificationParams, first: Points<'_>) -> Result<Self> {
        params.unfitted(first).map(Self)
    }

    /// Takes rows in, as [`ClassificationForest::learn`].
    ///
    /// # Errors
    /// As [`ClassificationForest::learn`].
    pub fn add(&mut self, points: Points<'_>, labels: &[u32]) -> Result<()> {
        self.0.stage(points, labels)
    }

    /// Grows the trees to another lifetime than the one given at first: one that the rows have chosen meanwhile.
    #[must_use]
    pub fn to_lifetime(mut self, lifetime: Lifetime) -> Self {
        self.0.stage_lifetime(lifetime);
        self
    }

    /// Grows the trees, with a report after every few.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn grow(mut self, progress: &mut Progress<'_>) -> Result<ClassificationForest> {
        self.0.grow_staged(progress)?;
        Ok(self.0)
    }
}
