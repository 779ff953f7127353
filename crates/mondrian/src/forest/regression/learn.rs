//! A regression forest learns, forgets and merges rows.

use std::sync::Arc;

use crate::forest::RowBatch;
use crate::forest::regression::{Core, RegressionForest, Rows};
use crate::forest::retention::{Plan, refuse_weights};
use crate::progress::{FitOptions, Progress};
use crate::select::split::gather;
use crate::{Error, Lifetime, Points, Result};

/// What becomes of arriving rows; inputs and targets of those to learn.
type Planned = (Plan, Vec<f64>, Vec<f64>);

impl RegressionForest {
    /// Learns more rows: the model becomes the one that a batch of all rows would have given.
    ///
    /// # Errors
    /// As [`crate::RegressionParams::fit`]; on error the model is as before.
    pub fn learn(&mut self, points: Points<'_>, targets: &[f64]) -> Result<()> {
        self.learn_with(points, targets, FitOptions::default())
    }

    /// As [`RegressionForest::learn`], with sample weights or a progress callback. With a callback it learns in a copy,
    /// so that nothing has changed if it is cancelled: for batches large enough to pay for one.
    ///
    /// # Errors
    /// As [`RegressionForest::learn`], and [`Error::Cancelled`]; on error the model is as before.
    pub fn learn_with(&mut self, points: Points<'_>, targets: &[f64], options: FitOptions<'_>) -> Result<()> {
        let FitOptions { weights, mut progress } = options;
        let rows = self.checked_rows(points, targets, weights)?;
        match self.core.forest.warm_up() {
            Some(_) if self.core.forest.is_fit_due(rows.points(self.n_dims())) => self.fit_again(&rows, &mut progress),
            Some(_) => {
                self.learn_rows(&rows, &mut progress)?;
                let Core { params, forest, .. } = Arc::make_mut(&mut self.core);
                let n_dims = forest.n_dims();
                forest.keep_first_rows(&params.forest, &rows.first(n_dims))
            }
            None => self.learn_rows(&rows, &mut progress),
        }
    }

    /// Learns rows of a [warm-up](crate::forest::warm_up) by a fit of all rows on their box and in their scale.
    fn fit_again(&mut self, rows: &Rows<'_>, progress: &mut Progress<'_>) -> Result<()> {
        let Core { params, forest, .. } = &*self.core;
        let Some(mut all) = forest.warm_up().cloned() else { return Ok(()) };
        all.push(&params.forest, &rows.first(self.n_dims()))?;
        let (lifetime, view) = (forest.domain().lifetime(), self.view);
        let model = Self::grown_to(params.clone(), lifetime, all.points(), all.values(), all.weights(), progress)?;
        *self = Self { view, ..model };
        Arc::make_mut(&mut self.core).forest.set_warm_up(Some(all));
        Ok(())
    }

    /// Starts the warm-up that the parameters ask for, after a first fit of these rows.
    pub(super) fn start_warm_up(&mut self, rows: &Rows<'_>) -> Result<()> {
        let Core { params, forest, .. } = Arc::make_mut(&mut self.core);
        let n_dims = forest.n_dims();
        forest.start_warm_up(&params.forest, &rows.first(n_dims))
    }

    fn checked_rows<'a>(&self, points: Points<'a>, targets: &'a [f64], weights: Option<&[f64]>) -> Result<Rows<'a>> {
        let rows = Rows::checked(points, targets, weights)?;
        points.check_width(self.n_dims())?;
        if rows.n_targets != self.n_targets() && rows.n_rows > 0 {
            let (expected, found) = (self.n_targets(), rows.n_targets);
            return Err(Error::LengthMismatch { what: "targets per row", expected, found });
        }
        Ok(rows)
    }

    pub(super) fn learn_rows(&mut self, rows: &Rows<'_>, progress: &mut Progress<'_>) -> Result<()> {
        if rows.n_rows == 0 {
            return Ok(());
        }
        let Some((plan, x, y)) = self.planned(rows)? else {
            let row_batch = self.core.forest.row_batch(rows.points(self.n_dims()))?;
            return self.take(row_batch, &rows.y, rows.weights.as_deref(), progress).map(|_| ());
        };
        self.take_held(&plan, self.core.forest.row_batch(Points::of_checked(&x, self.n_dims()))?, &y, progress)
    }

    /// What becomes of arriving rows where a rule says which are held, with the rows to learn.
    fn planned(&self, rows: &Rows<'_>) -> Result<Option<Planned>> {
        let points = rows.points(self.n_dims());
        let Some(plan) = self.core.forest.plan(points, &rows.y) else { return Ok(None) };
        refuse_weights(rows.weights.as_deref())?;
        let (x, y) = gather(points, &rows.y, &plan.learned);
        Ok(Some((plan, x, y)))
    }

    /// Learns the rows of a plan and forgets what makes room for them. On error nothing has changed.
    fn take_held(&mut self, plan: &Plan, row_batch: RowBatch, y: &[f64], progress: &mut Progress<'_>) -> Result<()> {
        if plan.learned.is_empty() {
            return Ok(());
        }
        let points = self.take(row_batch, y, None, progress)?;
        let core = Arc::make_mut(&mut self.core);
        let gone = core.forest.commit(plan, &points, y);
        let found = core.targets.find_held(&gone)?;
        core.forget_found(&found);
        Ok(())
    }

    /// Takes rows into the store and leaves the trees as they are, until [`RegressionForest::grow_staged`].
    pub(crate) fn stage(&mut self, points: Points<'_>, targets: &[f64], weights: Option<&[f64]>) -> Result<()> {
        let rows = self.checked_rows(points, targets, weights)?;
        if rows.n_rows == 0 {
            return Ok(());
        }
        let planned = self.planned(&rows)?;
        let (points, y) = match &planned {
            Some((_, x, y)) => (Points::of_checked(x, self.n_dims()), &y[..]),
            None => (rows.points(self.n_dims()), &rows.y[..]),
        };
        let row_batch = self.core.forest.row_batch(points)?;
        let Core { forest, targets, .. } = Arc::make_mut(&mut self.core);
        let points = forest.stage(row_batch, (y, rows.weights.as_deref()), targets)?;
        if let Some((plan, ..)) = &planned {
            let gone = forest.commit(plan, &points, y);
            let (points, _) = targets.remove(&targets.find_held(&gone)?);
            forest.unstage(&points);
        }
        Ok(())
    }

    /// The lifetime that trees will be grown to; there are none yet.
    pub(crate) fn stage_lifetime(&mut self, lifetime: Lifetime) {
        Arc::make_mut(&mut self.core).forest.set_lifetime_of_staged(lifetime);
        self.view = lifetime;
    }

    /// Grows all trees from the store.
    pub(crate) fn grow_staged(&mut self, progress: &mut Progress<'_>) -> Result<()> {
        let core = Arc::make_mut(&mut self.core);
        core.forest.grow_first(&core.targets, progress)?;
        core.touch_all();
        Ok(())
    }

    /// Learns checked rows. On error nothing has changed.
    fn take(
        &mut self,
        row_batch: RowBatch,
        y: &[f64],
        weights: Option<&[f64]>,
        progress: &mut Progress<'_>,
    ) -> Result<Vec<u32>> {
        let core = Arc::make_mut(&mut self.core);
        let points = core.forest.learn(row_batch, (y, weights), &mut core.targets, progress)?;
        core.touch(&points);
        Ok(points)
    }

    /// Forgets rows: the model becomes the one that never saw them.
    ///
    /// # Errors
    /// [`Error::UnknownRow`] for a row that was not learned with those targets; then nothing has changed.
    pub fn forget(&mut self, points: Points<'_>, targets: &[f64]) -> Result<()> {
        self.core.forest.check_rows("forgetting")?;
        let rows = Rows::checked(points, targets, None)?;
        let coordinates = self.core.forest.coordinates(points)?;
        let t = self.n_targets();
        if rows.n_rows > 0 && rows.n_targets != t {
            return Err(Error::LengthMismatch { what: "targets per row", expected: t, found: rows.n_targets });
        }
        let store = self.core.forest.store();
        let requests: Vec<(Option<u32>, &[f64])> =
            coordinates.chunks_exact(self.n_dims()).map(|x| store.find(x)).zip(rows.y.chunks_exact(t)).collect();
        let found = self.core.targets.find(&requests)?;
        let asked: Vec<u32> = requests.iter().filter_map(|(point, _)| *point).collect();
        let core = Arc::make_mut(&mut self.core);
        if let Some(held) = core.forest.held_mut() {
            asked.iter().zip(rows.y.chunks_exact(t)).for_each(|(point, y)| held.remove(*point, y));
        }
        if let Some(warm_up) = core.forest.warm_up_mut() {
            rows.x.chunks_exact(points.n_columns()).zip(rows.y.chunks_exact(t)).for_each(|(x, y)| warm_up.remove(x, y));
        }
        core.forget_found(&found);
        Ok(())
    }

    /// Holds the last `window` rows from now on and forgets older ones, or holds all rows with none. It ends a
    /// [warm-up](crate::ForestParams::warm_up).
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for a window of no rows, [`Error::NoWeights`] where rows have weights, [`Error::WithoutRows`];
    /// nothing has changed then.
    pub fn set_window(&mut self, window: Option<usize>) -> Result<()> {
        if window.is_some() && self.core.targets.is_weighted() {
            return refuse_weights(Some(&[]));
        }
        let core = Arc::make_mut(&mut self.core);
        let rows = core.targets.rows().map(|(point, y, _)| (point, y.into())).collect();
        let gone = core.forest.set_window(window, rows)?;
        let found = core.targets.find_held(&gone)?;
        core.forget_found(&found);
        core.forest.end_warm_up();
        (core.params.forest.window, core.params.forest.max_rows) = (window, None);
        Ok(())
    }

    /// Learns all that another forest with the same key has learned. It ends a [warm-up](crate::ForestParams::warm_up).
    ///
    /// # Errors
    /// [`Error::Incompatible`] where seeds, boxes, measures or parameters differ.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        self.core.forest.check_mergeable(&other.core.forest)?;
        if self.n_targets() != other.n_targets() {
            return Err(Error::Incompatible { what: "numbers of targets" });
        }
        if self.core.forest.domain().lifetime() != other.core.forest.domain().lifetime() {
            return Err(Error::Incompatible { what: "lifetimes" });
        }
        let (theirs, store) = (&other.core.targets, other.core.forest.store());
        if let (Some(ours), Some(held)) = (self.core.forest.held(), other.core.forest.held()) {
            let (plan, coordinates, y) = ours.plan_merge(held, store);
            let row_batch = self.core.forest.arrivals_at(coordinates);
            self.take_held(&plan, row_batch, &y, &mut Progress::none())?;
            Arc::make_mut(&mut self.core).forest.end_warm_up();
            return Ok(());
        }
        let (mut coordinates, mut y, mut w) = (Vec::new(), Vec::new(), Vec::new());
        for (point, targets, weight) in theirs.rows() {
            coordinates.extend_from_slice(store.point(point));
            y.extend_from_slice(targets);
            w.push(weight);
        }
        self.take(self.core.forest.arrivals_at(coordinates), &y, Some(&w), &mut Progress::none())?;
        Arc::make_mut(&mut self.core).forest.end_warm_up();
        Ok(())
    }
}
