//! A density learns, forgets and merges rows.

use std::sync::OnceLock;

use crate::forest::density::{DensityForest, automatic};
use crate::forest::retention::{Held, HeldRow, Plan, Rule};
use crate::forest::warm_up::FirstRows;
use crate::forest::{Forest, LifetimeChoice, RowBatch};
use crate::progress::{FitOptions, Progress};
use crate::select::split::gather;
use crate::tree::{Domain, PointStore};
use crate::{Error, Points, Result};

impl DensityForest {
    /// Learns rows and chooses an automatic lifetime on them.
    pub(crate) fn learn_first(&mut self, points: Points<'_>, progress: &mut Progress<'_>) -> Result<()> {
        let is_automatic = self.params.forest.lifetime == LifetimeChoice::Auto;
        // Trees that are not cut yet are grown in no time.
        let grown = if is_automatic { 0.01 } else { 1.0 };
        self.learn_in_place(points, &mut progress.part(0.0, grown))?;
        if is_automatic {
            let path = automatic::selecting_path(self, &mut progress.part(grown, 1.0))?;
            self.set_lifetime(path.best_lifetime())?;
        }
        Ok(())
    }

    /// Learns more rows: the same model as a fit to all of them on this box with this lifetime. A box that came from the first
    /// data is widened to hold rows outside it, along the ladder of all forests (docs/design.md); one that was given stays.
    ///
    /// # Errors
    /// [`Error::OutsideBox`] naming the first row outside a given box, [`Error::TooLarge`] for one too far away,
    /// [`Error::LengthMismatch`]; nothing has changed then.
    pub fn learn(&mut self, points: Points<'_>) -> Result<()> {
        self.learn_with(points, FitOptions::default())
    }

    /// As [`DensityForest::learn`], with a progress callback: then it learns in a copy, so that nothing has changed if it
    /// is cancelled, which pays for large batches.
    ///
    /// # Errors
    /// As [`DensityForest::learn`], [`Error::NoWeights`] and [`Error::Cancelled`]; nothing has changed then.
    pub fn learn_with(&mut self, points: Points<'_>, options: FitOptions<'_>) -> Result<()> {
        let mut progress = options.unweighted("a density forest")?;
        points.check_width(self.forest.n_dims())?;
        match self.forest.warm_up() {
            Some(_) if self.forest.is_fit_due(points) => self.fit_again(points, &mut progress),
            Some(_) => {
                self.learn_in_place(points, &mut progress)?;
                self.forest.keep_first_rows(&self.params.forest, &first(points))
            }
            None => self.learn_in_place(points, &mut progress),
        }
    }

    /// Learns rows of a [warm-up](crate::forest::warm_up) by a fit of all rows: on their box, in their scale, with their lifetime.
    fn fit_again(&mut self, points: Points<'_>, progress: &mut Progress<'_>) -> Result<()> {
        let Some(mut all) = self.forest.warm_up().cloned() else { return Ok(()) };
        all.push(&self.params.forest, &first(points))?;
        let mut model = Self::with_domain(&self.params, all.points())?;
        model.learn_first(all.points(), progress)?;
        model.forest.set_warm_up(Some(all));
        *self = model;
        Ok(())
    }

    /// Starts the warm-up that the parameters ask for, after a first fit of these rows.
    pub(super) fn start_warm_up(&mut self, points: Points<'_>) -> Result<()> {
        self.forest.start_warm_up(&self.params.forest, &first(points))
    }

    fn learn_in_place(&mut self, points: Points<'_>, progress: &mut Progress<'_>) -> Result<()> {
        self.check_learnable(points)?;
        let Some(plan) = self.forest.plan(points, &[]) else {
            return self.take(self.forest.row_batch(points)?, progress).map(|_| ());
        };
        let (x, _) = gather(points, &[], &plan.learned);
        self.take_held(&plan, self.forest.row_batch(Points::of_checked(&x, points.n_columns()))?, progress)
    }

    /// Learns the rows of a plan and forgets what makes room for them. On error nothing has changed.
    fn take_held(&mut self, plan: &Plan, row_batch: RowBatch, progress: &mut Progress<'_>) -> Result<()> {
        if plan.learned.is_empty() {
            return Ok(());
        }
        let points = self.take(row_batch, progress)?;
        let gone = self.forest.commit(plan, &points, &[]);
        self.forget_held(&gone);
        Ok(())
    }

    /// Forgets rows that a rule holds no more.
    fn forget_held(&mut self, rows: &[HeldRow]) {
        let points: Vec<u32> = rows.iter().map(|(point, _)| *point).collect();
        self.forget_points(&points);
    }

    fn forget_points(&mut self, points: &[u32]) {
        self.forest.forget(&(), points);
        self.resolved_gamma = OnceLock::new();
        // The box of a lower rung lies within the one that was there.
        self.bounds = self.bounds_at(self.forest.domain().rung()).unwrap_or_else(|_| self.bounds.clone());
    }

    /// Holds the last `window` rows from now on and forgets older ones, or holds all rows with none. Rows that were learned
    /// without a window have no order; they go first.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for a window of no rows, [`Error::WithoutRows`]; nothing has changed then.
    pub fn set_window(&mut self, window: Option<usize>) -> Result<()> {
        let store = self.forest.store();
        let rows = store.points().flat_map(|p| std::iter::repeat_n((p, [].into()), store.multiplicity(p) as usize));
        let rows = rows.collect();
        let gone = self.forest.set_window(window, rows)?;
        self.forest.end_warm_up();
        self.forget_held(&gone);
        (self.params.forest.window, self.params.forest.max_rows) = (window, None);
        Ok(())
    }

    fn take(&mut self, row_batch: RowBatch, progress: &mut Progress<'_>) -> Result<Vec<u32>> {
        let bounds = self.bounds_at(self.forest.rung_for(&row_batch.coordinates)?)?;
        let points = self.forest.learn(row_batch, (), &mut (), progress)?;
        (self.bounds, self.resolved_gamma) = (bounds, OnceLock::new());
        Ok(points)
    }

    /// Refuses rows outside a box that was given, or outside any box along a dimension of weight zero.
    fn check_learnable(&self, points: Points<'_>) -> Result<()> {
        if self.params.forest.bounds.is_some() {
            return self.check_all_inside(points);
        }
        points.check_width(self.forest.n_dims())?;
        let flat: Vec<bool> = (0..self.forest.n_dims()).map(|dim| self.is_flat(dim)).collect();
        if flat.contains(&true) {
            (0..points.n_rows()).try_for_each(|row| self.check_inside(points, row, |dim| flat[dim]))?;
        }
        Ok(())
    }

    /// Learns the rows of another density with the same seed, trees, box and measure: the fit to the rows of both.
    ///
    /// # Errors
    /// [`Error::Incompatible`] saying what differs; nothing has changed then.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        self.forest.check_mergeable(&other.forest)?;
        if self.first_bounds != other.first_bounds {
            return Err(Error::Incompatible { what: "root boxes" });
        }
        if self.params.gamma != other.params.gamma {
            return Err(Error::Incompatible { what: "values of gamma" });
        }
        let store = other.forest.store();
        if let (Some(ours), Some(theirs)) = (self.forest.held(), other.forest.held()) {
            let (plan, coordinates, _) = ours.plan_merge(theirs, store);
            self.take_held(&plan, self.forest.arrivals_at(coordinates), &mut Progress::none())?;
            self.forest.end_warm_up();
            return Ok(());
        }
        let mut coordinates = Vec::with_capacity(store.n_rows() * store.n_dims());
        for point in store.points() {
            for _ in 0..store.multiplicity(point) {
                coordinates.extend_from_slice(store.point(point));
            }
        }
        self.take(self.forest.arrivals_at(coordinates), &mut Progress::none())?;
        self.forest.end_warm_up();
        Ok(())
    }

    /// Forgets rows: the model that never saw them, on this box with this lifetime.
    ///
    /// # Errors
    /// [`Error::UnknownRow`] for the first row that is not held (any more); nothing has changed then.
    pub fn forget(&mut self, points: Points<'_>) -> Result<()> {
        self.forest.check_rows("forgetting")?;
        let coordinates = self.forest.coordinates(points)?;
        let store = self.forest.store();
        let mut found = Vec::with_capacity(points.n_rows());
        let mut taken = std::collections::HashMap::new();
        for (row, x) in coordinates.chunks_exact(store.n_dims()).enumerate() {
            let point = store.find(x).ok_or(Error::UnknownRow { row })?;
            let n_taken = taken.entry(point).or_insert(0);
            *n_taken += 1;
            if *n_taken > store.multiplicity(point) {
                return Err(Error::UnknownRow { row });
            }
            found.push(point);
        }
        if let Some(held) = self.forest.held_mut() {
            found.iter().for_each(|point| held.remove(*point, &[]));
        }
        if let Some(warm_up) = self.forest.warm_up_mut() {
            points.as_row_major().chunks_exact(points.n_columns()).for_each(|x| warm_up.remove(x, &[]));
        }
        self.forget_points(&found);
        Ok(())
    }

    /// A density with the same parameters, first box and lifetime, without rows: what others are merged into.
    ///
    /// # Errors
    /// [`Error::WithoutRows`] for one that was finished from a summary.
    pub fn without_rows(&self) -> Result<Self> {
        self.forest.check_rows("a density like it")?;
        let first = self.forest.domain().first_box().clone();
        let (rules, seed) = (self.forest.domain().rules(), self.forest.domain().seed());
        let domain = Domain::restored_under(rules, seed, first, 0, self.lifetime)?;
        let store = PointStore::new(self.forest.n_dims());
        let mut forest = Forest::from_parts(self.forest.measure().clone(), domain, store, self.forest.n_trees())?;
        forest.hold(Rule::of(&self.params.forest).map(|rule| Held::new(rule, seed)));
        Self::on_first_box(self.params.clone(), self.first_bounds.clone(), forest.storing_every_cut(), self.lifetime)
    }

    /// Learns rows given in measure coordinates, each so many times.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for points repeated absurdly often: a file of a few bytes can claim billions of rows, and
    /// each would be written out here.
    pub(crate) fn take_points(&mut self, coordinates: &[f64], rows: &[u32]) -> Result<()> {
        let n_dims = self.forest.n_dims();
        let (total, limit) = (rows.iter().map(|n| u64::from(*n)).sum::<u64>(), (64 * rows.len() as u64).max(1 << 22));
        if total > limit {
            return Err(Error::TooLarge { what: "repeated rows", expected: total as f64, limit: limit as f64 });
        }
        let repeated: Vec<f64> = coordinates
            .chunks_exact(n_dims)
            .zip(rows)
            .flat_map(|(x, n)| std::iter::repeat_n(x, *n as usize).flatten().copied())
            .collect();
        self.take(self.forest.arrivals_at(repeated), &mut Progress::none()).map(|_| ())
    }
}

/// Rows as a warm-up keeps them: nothing belongs to them.
fn first(points: Points<'_>) -> FirstRows<'_> {
    FirstRows { points, values: &[], weights: None, are_values_hashed: false }
}
