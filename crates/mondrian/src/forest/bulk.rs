//! Rows taken in batch by batch, trees grown once at the end.
//!
//! What a table larger than a copy in memory is learned by: growing once is several times faster than inserting every batch into
//! trees that stand already, and leaves no room for growth behind. The model is the same, bit for bit (docs/design.md,
//! "Exact promises").

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::forest::{
    ClassificationForest, ClassificationParams, Forest, NodeStatistics, RegressionForest, RegressionParams,
};
use crate::progress::no_progress;
use crate::tree::Tree;
use crate::{Lifetime, Points, Result};

/// A forest model whose rows arrive in batches and whose trees are not grown yet.
///
/// ```
/// use mondrian::{BulkBuilder, RegressionForest, RegressionParams};
/// use mondrian::{Lifetime, Points};
/// let x: Vec<f64> = (0..40).map(|i| f64::from(i) / 40.0).collect();
/// let (params, lifetime) = (RegressionParams::default(), Lifetime::new(3.0)?);
/// let all = Points::row_major(&x, 1)?;
/// let mut sowing = BulkBuilder::regression(params.clone(), lifetime, all, 1)?;   // the box of all rows
/// for batch in x.chunks(7) {
///     sowing.add(Points::row_major(batch, 1)?, batch, None)?;
/// }
/// let model = sowing.grow(&|_n_grown| ());
/// let whole = RegressionForest::fit_at(params, lifetime, all, &x, None)?;
/// assert_eq!(model.predict(all)?, whole.predict(all)?);
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug)]
pub struct BulkBuilder<M>(M);

impl BulkBuilder<RegressionForest> {
    /// A regression forest on the box and measure of `first`, whose rows are not learned by this.
    ///
    /// # Errors
    /// As [`RegressionForest::fit`].
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

    /// Grows the trees; `progress` is told how many have been, from any thread.
    pub fn grow(mut self, progress: &(dyn Fn(usize) + Sync)) -> RegressionForest {
        self.0.grow_staged(progress);
        self.0
    }
}

impl BulkBuilder<ClassificationForest> {
    /// A classification forest on the box and measure of `first`, whose rows are not learned by this.
    ///
    /// # Errors
    /// As [`ClassificationForest::fit`].
    pub fn classification(params: ClassificationParams, first: Points<'_>, n_classes: usize) -> Result<Self> {
        ClassificationForest::unfitted(params, first, n_classes).map(Self)
    }

    /// Takes rows in, as [`ClassificationForest::learn`].
    ///
    /// # Errors
    /// As [`ClassificationForest::learn`].
    pub fn add(&mut self, points: Points<'_>, labels: &[u32]) -> Result<()> {
        self.0.stage(points, labels)
    }

    /// Grows the trees; `progress` is told how many have been, from any thread.
    pub fn grow(mut self, progress: &(dyn Fn(usize) + Sync)) -> ClassificationForest {
        self.0.grow_staged(progress);
        self.0
    }
}

impl<S: Default + Clone + Send + Sync + std::fmt::Debug> Forest<S> {
    /// As [`Forest::regrow`], telling how many trees have been grown.
    pub(crate) fn regrow_counting<L: NodeStatistics<Stats = S>>(
        &mut self,
        labels: &L,
        progress: &(dyn Fn(usize) + Sync),
    ) {
        let n_grown = AtomicUsize::new(0);
        let counted = |_: usize, grown: &dyn Fn() -> Tree| {
            let tree = grown();
            progress(n_grown.fetch_add(1, Ordering::Relaxed) + 1);
            Some(tree)
        };
        self.regrow_each(labels, &mut no_progress(), counted).expect("never cancelled");
    }
}
