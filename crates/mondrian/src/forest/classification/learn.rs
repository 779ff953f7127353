//! A classification forest learns, forgets and merges rows.

use std::sync::Arc;

use crate::forest::classification::gamma::FromSample;
use crate::forest::classification::masks::{PointClasses, check_labels};
use crate::forest::classification::{ClassificationForest, TrainedTrees, classes_of, repeated};
use crate::forest::retention::{HeldRow, Plan, refuse_weights};
use crate::forest::warm_up::FirstRows;
use crate::forest::{LifetimeChoice, RowBatch};
use crate::progress::{FitOptions, Progress};
use crate::select::split::gather;
use crate::{Error, Lifetime, Points, Result};

impl ClassificationForest {
    /// Learns more rows, online. A label that no row had so far is a new class.
    ///
    /// An automatic lifetime becomes infinite: it cannot be chosen anew with every row.
    ///
    /// # Errors
    /// As [`crate::ClassificationParams::fit`]; the model is then as before.
    pub fn learn(&mut self, points: Points<'_>, labels: &[u32]) -> Result<()> {
        self.learn_with(points, labels, FitOptions::default())
    }

    /// As [`ClassificationForest::learn`], with weights as in [`crate::ClassificationParams::fit_with`] or a progress callback.
    /// With a callback it learns in a copy, so that nothing has changed if it is cancelled: for batches large enough to
    /// pay for one.
    ///
    /// # Errors
    /// As [`ClassificationForest::learn`], and [`Error::Cancelled`]; on error the model is as before.
    pub fn learn_with(&mut self, points: Points<'_>, labels: &[u32], options: FitOptions<'_>) -> Result<()> {
        let FitOptions { weights, mut progress } = options;
        self.learn_in_place(points, labels, classes_of(labels), weights, &mut progress)
    }

    /// Makes known classes that no row has had so far; fewer than there are change nothing.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for more classes than there can be; the model is then as before.
    pub fn grow_classes(&mut self, n_classes: usize) -> Result<()> {
        let n_classes = n_classes.max(self.n_classes());
        check_labels(0, &[], n_classes)?;
        if n_classes > self.n_classes() {
            let TrainedTrees { forest, classes } = Arc::make_mut(&mut self.trained);
            let n_words = classes.n_words();
            classes.set_n_classes(n_classes);
            if classes.n_words() != n_words {
                forest.gather(classes);
            }
            self.forget_automatic();
        }
        Ok(())
    }

    fn learn_in_place(
        &mut self,
        points: Points<'_>,
        labels: &[u32],
        n_classes: usize,
        weights: Option<&[f64]>,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        match weights {
            None => self.learn_rows(points, labels, n_classes, progress)?,
            Some(weights) => {
                if self.trained.forest.held().is_some() {
                    refuse_weights(Some(weights))?;
                }
                check_labels(points.n_rows(), labels, n_classes.max(self.n_classes()))?;
                let (rows, labels) = repeated(points, labels, weights)?;
                self.learn_rows(Points::row_major(&rows, points.n_columns())?, &labels, n_classes, progress)?;
            }
        }
        self.view = self.view.or(Some(Lifetime::INFINITE));
        Ok(())
    }

    pub(super) fn learn_rows(
        &mut self,
        points: Points<'_>,
        labels: &[u32],
        n_classes: usize,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let n_classes = n_classes.max(self.n_classes());
        check_labels(points.n_rows(), labels, n_classes)?;
        points.check_width(self.trained.forest.n_dims())?;
        match self.trained.forest.warm_up() {
            Some(_) if self.trained.forest.is_fit_due(points) => self.fit_again(points, labels, n_classes, progress),
            Some(_) => {
                self.learn_checked(points, labels, n_classes, progress)?;
                let forest = &mut Arc::make_mut(&mut self.trained).forest;
                let (params, values) = (&self.params.forest, as_values(labels));
                forest.keep_first_rows(params, &first(points, &values))
            }
            None => self.learn_checked(points, labels, n_classes, progress),
        }
    }

    /// Learns rows of a [warm-up](crate::forest::warm_up) by a fit of all rows on their box and in their scale.
    fn fit_again(
        &mut self,
        points: Points<'_>,
        labels: &[u32],
        n_classes: usize,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let Some(mut all) = self.trained.forest.warm_up().cloned() else { return Ok(()) };
        all.push(&self.params.forest, &first(points, &as_values(labels)))?;
        let mut model = Self::on(&self.params, all.points(), n_classes)?;
        model.learn_rows(all.points(), &as_labels(all.values()), n_classes, progress)?;
        model.raise_lifetime(self.terminal_lifetime())?;
        Arc::make_mut(&mut model.trained).forest.set_warm_up(Some(all));
        *self = Self { view: self.view, ..model };
        Ok(())
    }

    /// Starts the warm-up that the parameters ask for, after a first fit of these rows.
    pub(super) fn start_warm_up(&mut self, points: Points<'_>, labels: &[u32]) -> Result<()> {
        let forest = &mut Arc::make_mut(&mut self.trained).forest;
        forest.start_warm_up(&self.params.forest, &first(points, &as_values(labels)))
    }

    fn learn_checked(
        &mut self,
        points: Points<'_>,
        labels: &[u32],
        n_classes: usize,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        if self.trained.forest.held().is_none() {
            return self.take(self.trained.forest.row_batch(points)?, labels, n_classes, progress).map(|_| ());
        }
        let Some((plan, x, labels)) = self.planned(points, labels) else { return Ok(()) };
        let row_batch = self.trained.forest.row_batch(Points::of_checked(&x, points.n_columns()))?;
        self.take_held(&plan, row_batch, &labels, n_classes, progress)
    }

    /// What becomes of arriving rows where a rule says which are held, with the rows to learn.
    fn planned(&self, points: Points<'_>, labels: &[u32]) -> Option<(Plan, Vec<f64>, Vec<u32>)> {
        let plan = self.trained.forest.plan(points, &[])?;
        let (x, _) = gather(points, &[], &plan.learned);
        let labels = plan.learned.iter().map(|row| labels[*row]).collect();
        Some((plan, x, labels))
    }

    /// Learns the rows of a plan and forgets what makes room for them. On error nothing has changed.
    fn take_held(
        &mut self,
        plan: &Plan,
        row_batch: RowBatch,
        labels: &[u32],
        n_classes: usize,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        if plan.learned.is_empty() {
            return self.grow_classes(n_classes);
        }
        let points = self.take(row_batch, labels, n_classes, progress)?;
        let gone = Arc::make_mut(&mut self.trained).forest.commit(plan, &points, &as_values(labels));
        self.forget_held(&gone);
        Ok(())
    }

    /// Forgets rows that a rule holds no more.
    fn forget_held(&mut self, rows: &[HeldRow]) {
        let (points, labels): (Vec<u32>, Vec<f64>) = rows.iter().map(|(point, class)| (*point, class[0])).unzip();
        self.forget_found(&points, &as_labels(&labels));
    }

    /// Takes rows. On error nothing has changed.
    fn take(
        &mut self,
        row_batch: RowBatch,
        labels: &[u32],
        n_classes: usize,
        progress: &mut Progress<'_>,
    ) -> Result<Vec<u32>> {
        let TrainedTrees { forest, classes } = Arc::make_mut(&mut self.trained);
        let points = forest.learn(row_batch, (labels, n_classes), classes, progress)?;
        self.from_sample.touch(forest.store(), &points);
        self.forget_automatic();
        Ok(points)
    }

    /// Takes rows into the store and leaves the trees as they are, until [`ClassificationForest::grow_staged`].
    pub(in crate::forest) fn stage(&mut self, points: Points<'_>, labels: &[u32]) -> Result<()> {
        check_labels(points.n_rows(), labels, self.n_classes())?;
        let planned = self.planned(points, labels);
        let (points, labels) = match &planned {
            Some((_, x, labels)) => (Points::of_checked(x, points.n_columns()), &labels[..]),
            None => (points, labels),
        };
        let row_batch = self.trained.forest.row_batch(points)?;
        let TrainedTrees { forest, classes } = Arc::make_mut(&mut self.trained);
        let n_classes = classes.n_classes();
        let points = forest.stage(row_batch, (labels, n_classes), classes)?;
        let Some((plan, ..)) = &planned else { return Ok(()) };
        for (point, class) in forest.commit(plan, &points, &as_values(labels)) {
            classes.remove(point, class[0] as u32);
            forest.unstage(&[point]);
        }
        Ok(())
    }

    /// The lifetime that trees will be grown to, as if it had been given; there are none yet.
    pub(in crate::forest) fn stage_lifetime(&mut self, lifetime: Lifetime) {
        Arc::make_mut(&mut self.trained).forest.set_lifetime_of_staged(lifetime);
        self.params.forest.lifetime = LifetimeChoice::Value(lifetime);
        self.view = Some(lifetime);
    }

    /// Grows all trees from the store.
    pub(in crate::forest) fn grow_staged(&mut self, progress: &mut Progress<'_>) -> Result<()> {
        let TrainedTrees { forest, classes } = Arc::make_mut(&mut self.trained);
        forest.grow_first(classes, progress)?;
        self.from_sample = FromSample::default();
        self.forget_automatic();
        Ok(())
    }

    /// Forgets rows: the model becomes the one that never saw them, except that classes stay.
    ///
    /// # Errors
    /// [`Error::UnknownRow`] for a row that was not learned with this label (or not so often); nothing is changed then.
    pub fn forget(&mut self, points: Points<'_>, labels: &[u32]) -> Result<()> {
        if labels.len() != points.n_rows() {
            return Err(Error::LengthMismatch { what: "labels", expected: points.n_rows(), found: labels.len() });
        }
        self.trained.forest.check_rows("forgetting")?;
        let coordinates = self.trained.forest.coordinates(points)?;
        let found = self.find_rows(&coordinates, labels)?;
        let forest = &mut Arc::make_mut(&mut self.trained).forest;
        if let Some(held) = forest.held_mut() {
            found.iter().zip(labels).for_each(|(point, class)| held.remove(*point, &[f64::from(*class)]));
        }
        if let Some(warm_up) = forest.warm_up_mut() {
            let rows = points.as_row_major();
            let rows = rows.chunks_exact(points.n_columns()).zip(labels);
            rows.for_each(|(x, class)| warm_up.remove(x, &[f64::from(*class)]));
        }
        self.forget_found(&found, labels);
        Ok(())
    }

    /// Forgets rows that are held.
    fn forget_found(&mut self, points: &[u32], labels: &[u32]) {
        if points.is_empty() {
            return;
        }
        let TrainedTrees { forest, classes } = Arc::make_mut(&mut self.trained);
        points.iter().zip(labels).for_each(|(point, class)| classes.remove(*point, *class));
        // While the store has their coordinates.
        self.from_sample.touch(forest.store(), points);
        forest.forget(classes, points);
        self.forget_automatic();
    }

    /// Holds the last `window` rows from now on and forgets older ones, or holds all rows with none. Rows that were learned
    /// without a window have no order; they go first. It ends a [warm-up](crate::ForestParams::warm_up).
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for a window of no rows, [`Error::WithoutRows`]; nothing has changed then.
    pub fn set_window(&mut self, window: Option<usize>) -> Result<()> {
        let TrainedTrees { forest, classes } = Arc::make_mut(&mut self.trained);
        let mut rows = Vec::with_capacity(forest.n_rows());
        for point in forest.store().points() {
            for (class, count) in classes.of(point) {
                rows.extend((0..*count).map(|_| (point, [f64::from(*class)].into())));
            }
        }
        let gone = forest.set_window(window, rows)?;
        forest.end_warm_up();
        self.forget_held(&gone);
        (self.params.forest.window, self.params.forest.max_rows) = (window, None);
        Ok(())
    }

    /// The point of each row, all rows taken together being held.
    fn find_rows(&self, coordinates: &[f64], labels: &[u32]) -> Result<Vec<u32>> {
        let TrainedTrees { forest, classes } = &*self.trained;
        let mut asked = std::collections::HashMap::new();
        let mut found = Vec::with_capacity(labels.len());
        for (row, (x, class)) in coordinates.chunks_exact(forest.n_dims()).zip(labels).enumerate() {
            let point = forest.store().find(x).ok_or(Error::UnknownRow { row })?;
            let times = asked.entry((point, *class)).or_insert(0_u32);
            *times += 1;
            if *times > classes.count(point, *class) {
                return Err(Error::UnknownRow { row });
            }
            found.push(point);
        }
        Ok(found)
    }

    /// Takes the rows of another forest with the same key: the forest of all rows. It ends a
    /// [warm-up](crate::ForestParams::warm_up).
    ///
    /// # Errors
    /// [`Error::Incompatible`] where seeds, numbers of trees, boxes, measures, lifetimes, γ or the treatment of unseen
    /// cuts differ; nothing is changed then.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        self.trained.forest.check_mergeable(&other.trained.forest)?;
        let differs = [
            ("lifetimes", self.view != other.view),
            ("values of gamma", self.params.gamma != other.params.gamma),
            ("treatments of unseen cuts", self.params.unseen != other.params.unseen),
        ];
        if let Some((what, _)) = differs.iter().find(|(_, differs)| *differs) {
            return Err(Error::Incompatible { what });
        }
        let n_classes = self.n_classes().max(other.n_classes());
        if let (Some(ours), Some(theirs)) = (self.trained.forest.held(), other.trained.forest.held()) {
            let (plan, coordinates, values) = ours.plan_merge(theirs, other.trained.forest.store());
            let row_batch = self.trained.forest.arrivals_at(coordinates);
            self.take_held(&plan, row_batch, &as_labels(&values), n_classes, &mut Progress::none())?;
        } else {
            let (coordinates, labels) = other.rows();
            self.take(self.trained.forest.arrivals_at(coordinates), &labels, n_classes, &mut Progress::none())?;
        }
        Arc::make_mut(&mut self.trained).forest.end_warm_up();
        let terminal = other.trained.forest.domain().lifetime();
        if terminal > self.trained.forest.domain().lifetime() {
            let TrainedTrees { forest, classes } = Arc::make_mut(&mut self.trained);
            forest.raise_lifetime(classes, terminal);
        }
        Ok(())
    }

    /// The same forest with its classes numbered anew: class k becomes `numbers[k]`. For merging forests whose callers
    /// gave classes different numbers.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] without a number for each class, [`Error::InvalidParameter`] for a number that is no
    /// class, [`Error::Incompatible`] where two classes would become one, [`Error::WithoutRows`].
    pub fn renumbered(&self, numbers: &[u32], n_classes: usize) -> Result<Self> {
        self.trained.forest.check_rows("numbering classes anew")?;
        check_labels(self.n_classes(), numbers, n_classes)?;
        let mut taken = vec![false; n_classes];
        if numbers.iter().any(|k| std::mem::replace(&mut taken[*k as usize], true)) {
            return Err(Error::Incompatible { what: "class numbers (two classes have one)" });
        }
        let mut model = self.clone();
        let TrainedTrees { forest, classes } = Arc::make_mut(&mut model.trained);
        let mut renamed = PointClasses::new(n_classes);
        for point in forest.store().points() {
            for (class, count) in classes.of(point) {
                renamed.add_rows(point, numbers[*class as usize], *count);
            }
        }
        *classes = renamed;
        if let Some(held) = forest.held_mut() {
            held.map_values(|class| f64::from(numbers[class as usize]));
        }
        if let Some(warm_up) = forest.warm_up_mut() {
            warm_up.map_values(|class| f64::from(numbers[class as usize]));
        }
        forest.gather(classes);
        model.from_sample = FromSample::default();
        model.forget_automatic();
        Ok(model)
    }
}

/// Rows of a warm-up with their classes.
fn first<'a>(points: Points<'a>, values: &'a [f64]) -> FirstRows<'a> {
    FirstRows { points, values, weights: None, are_values_hashed: false }
}

/// Labels as the values of rows held.
fn as_values(labels: &[u32]) -> Vec<f64> {
    labels.iter().map(|label| f64::from(*label)).collect()
}

fn as_labels(values: &[f64]) -> Vec<u32> {
    values.iter().map(|label| *label as u32).collect()
}
