//! Forests from summaries.

use std::sync::Arc;

use crate::forest::classification::{ClassificationForest, ClassificationParams, PointClasses};
use crate::forest::density::{DensityForest, DensityParams};
use crate::forest::regression::{RegressionForest, Targets};
use crate::forest::summary::part::Part;
use crate::forest::summary::sample::MOST_REPEATED;
use crate::forest::summary::{Summary, Task};
use crate::forest::{Forest, NodeStatistics};
use crate::parallel::prelude::*;
use crate::progress::Progress;
use crate::select::automatic::{CLASSIFICATION, REGRESSION};
use crate::tree::{Domain, PointStore, Tree};
use crate::{Error, Points, Result};

/// Held-out rows, fewer than which choose no lifetime.
const FEWEST: usize = 10;

impl Summary {
    /// The regression forest that a fit on all rows would have given, without the rows: it predicts, has paths and files, and
    /// refuses to learn, to forget and to be grown further.
    ///
    /// # Errors
    /// [`Error::Incompatible`] for another task or with trees missing, [`Error::NotFitted`] without rows,
    /// [`crate::ModelFileError::Inconsistent`] where the cells are not those of the domain.
    pub fn finish_regression(&self) -> Result<RegressionForest> {
        let model = self.grown_regression()?;
        if !self.can_choose() {
            return Ok(model);
        }
        let n_trees = self.domain.n_trees.min(REGRESSION.trees);
        let (x, y) = self.held_out();
        let points = Points::row_major(&x, self.domain.n_dims())?;
        let path = self.regression(&self.kept, n_trees)?.path(&[(points, &y[..])], &mut Progress::none())?;
        model.at(path.best_lifetime())
    }

    /// The classification forest that a fit on all rows would have given: as [`Summary::finish_regression`].
    ///
    /// # Errors
    /// As [`Summary::finish_regression`].
    pub fn finish_classification(&self) -> Result<ClassificationForest> {
        let model = self.grown_classification()?;
        if !self.can_choose() {
            return Ok(model);
        }
        let (x, y) = self.held_out();
        let labels: Vec<u32> = y.iter().map(|label| *label as u32).collect();
        let points = Points::row_major(&x, self.domain.n_dims())?;
        let kept = self.classification(&self.kept, self.domain.n_trees.min(CLASSIFICATION.trees))?;
        let path = kept.path(&[(points, &labels[..])], None, &mut Progress::none())?;
        model.at(path.log_loss().best_lifetime())
    }

    /// The density that a fit to all rows would have given: as [`Summary::finish_regression`].
    ///
    /// # Errors
    /// As [`Summary::finish_regression`].
    pub fn finish_density(&self) -> Result<DensityForest> {
        let mut model = self.grown_density()?;
        if !self.can_choose() {
            return Ok(model);
        }
        let (x, _) = self.held_out();
        let points = Points::row_major(&x, self.domain.n_dims())?;
        let path = self.density(&self.kept, self.domain.n_trees)?.path(&[points], &mut Progress::none())?;
        model.set_lifetime(path.best_lifetime())?;
        Ok(model)
    }

    /// As [`Summary::finish_regression`], at the largest lifetime.
    pub(crate) fn grown_regression(&self) -> Result<RegressionForest> {
        self.check_whole(matches!(self.task, Task::Regression { .. }))?;
        self.regression(&*self.whole()?, self.domain.n_trees)
    }

    /// As [`Summary::finish_classification`], at the largest lifetime.
    pub(crate) fn grown_classification(&self) -> Result<ClassificationForest> {
        self.check_whole(matches!(self.task, Task::Classification { .. }))?;
        self.classification(&*self.whole()?, self.domain.n_trees)
    }

    /// As [`Summary::finish_density`], at the largest lifetime.
    pub(crate) fn grown_density(&self) -> Result<DensityForest> {
        self.check_whole(self.task == Task::Density)?;
        self.density(&*self.whole()?, self.domain.n_trees)
    }

    /// Whether a lifetime is to be chosen and enough rows are held out.
    fn can_choose(&self) -> bool {
        self.held.is_some() && self.held_rows.rows.len() >= FEWEST && self.kept.n_rows > 0
    }

    fn check_whole(&self, is_task: bool) -> Result<()> {
        if !is_task {
            return Err(Error::Incompatible { what: "the task of the summary and that of the forest, which" });
        }
        if self.domain.trees() != (0..self.domain.n_trees) {
            return Err(Error::Incompatible { what: "a shard and all trees (join the other shards first), which" });
        }
        if self.n_rows() == 0 { Err(Error::NotFitted) } else { Ok(()) }
    }

    /// All rows.
    fn whole(&self) -> Result<std::borrow::Cow<'_, Part>> {
        Ok(match &self.held {
            Some(held) => std::borrow::Cow::Owned(self.kept.merged(held)?),
            None => std::borrow::Cow::Borrowed(&self.kept),
        })
    }

    /// Inputs and labels of the held-out rows.
    fn held_out(&self) -> (Vec<f64>, Vec<f64>) {
        let n_dims = self.domain.n_dims();
        (self.held_rows.columns(0..n_dims), self.held_rows.columns(n_dims..n_dims + self.task.n_labels()))
    }

    fn regression(&self, part: &Part, n_trees: usize) -> Result<RegressionForest> {
        let (largest, params) = (&self.domain.largest_targets, self.domain.regression_params()?);
        let (mut counts, mut sums) = (Vec::new(), Vec::new());
        for tree in &part.trees[..n_trees] {
            counts.extend_from_slice(&tree.counts);
            if let super::cells::CellData::Sums { sums: of_tree, .. } = &tree.data {
                sums.extend_from_slice(of_tree);
            }
        }
        let targets = Targets::of_cells(largest, sums, counts, part.totals.clone(), part.n_rows);
        let forest = self.forest(part, n_trees, &targets, false)?;
        let (sample, mut sampled) = (self.sample_forest()?, Targets::new(largest.len()));
        for (number, point) in (0_u32..).zip(self.sample.looked_at()) {
            sampled.add(&vec![number; point.n_rows as usize], &point.targets, None);
        }
        sampled.take_totals(largest, part.totals.clone(), part.n_rows.max(sampled.n_rows()));
        Ok(RegressionForest::finished(params, forest, targets, (sample, sampled)))
    }

    fn classification(&self, part: &Part, n_trees: usize) -> Result<ClassificationForest> {
        let Task::Classification { n_classes } = self.task else { return Err(Error::NotFitted) };
        let (mut classes, mut sampled) = (PointClasses::new(n_classes), PointClasses::new(n_classes));
        let mut first = 0;
        for tree in &part.trees[..n_trees] {
            for cell in 0..tree.counts.len() {
                let entries = tree.data.classes_of(cell);
                entries.iter().for_each(|(class, n)| classes.add_rows(first + cell as u32, *class, *n));
            }
            first += tree.counts.len() as u32;
        }
        for (number, point) in (0_u32..).zip(self.sample.looked_at()) {
            point.classes.iter().for_each(|(class, n)| sampled.add_rows(number, *class, *n));
        }
        let params = ClassificationParams {
            forest: self.domain.forest_params()?,
            gamma: self.domain.gamma,
            ..ClassificationParams::default()
        };
        params.check()?;
        let forest = self.forest(part, n_trees, &classes, false)?;
        Ok(ClassificationForest::finished(params, (forest, classes), (self.sample_forest()?, sampled)))
    }

    fn density(&self, part: &Part, n_trees: usize) -> Result<DensityForest> {
        let forest = self.domain.forest_params()?;
        let params = DensityParams { gamma: self.domain.gamma, ..DensityParams::from(forest) };
        params.check()?;
        let forest = self.forest(part, n_trees, &(), true)?;
        Ok(DensityForest::finished(&params, &self.domain.bounds()?, forest, self.sample_forest()?))
    }

    /// The trees of cells, with statistics gathered from labels by number of cell over all trees.
    fn forest<L: NodeStatistics>(
        &self,
        part: &Part,
        n_trees: usize,
        labels: &L,
        stores_every_cut: bool,
    ) -> Result<Forest<L::Stats>> {
        let domain = self.domain.tree_domain()?;
        let domain = if stores_every_cut { domain.storing_every_cut() } else { domain };
        if let (1, Some(point)) = (self.sample.n_points(), self.sample.points.values().next()) {
            // All rows are one point: the root is frozen, as a fit has it, and what left it is not asked for.
            let rows = u32::try_from(part.n_rows).map_err(|_| super::cells::too_large())?;
            let store = PointStore::restored(domain.n_dims(), point.x.clone(), vec![rows])?;
            let trees = (0..n_trees).map(|index| Tree::grown(&domain, domain.tree_key(index), &store)).collect();
            let mut forest =
                Forest::of_trees(self.domain.measure.clone(), domain, store, trees, Arc::new(self.clone()));
            forest.gather(labels);
            return Ok(forest);
        }
        let mut first = 0_usize;
        let mut starts = Vec::with_capacity(n_trees);
        for tree in &part.trees[..n_trees] {
            starts.push((starts.len(), first as u32));
            first += tree.counts.len();
        }
        if first >= PointStore::CAPACITY {
            let limit = PointStore::CAPACITY as f64;
            return Err(Error::TooLarge { what: "cells", expected: first as f64, limit });
        }
        let grown = |(index, first): &(usize, u32)| {
            let tree = &part.trees[*index];
            tree.cells.grown(&domain, domain.tree_key(*index), &tree.counts, *first)
        };
        let trees: Vec<Result<Tree>> = starts.par_iter().map(grown).collect();
        let trees = trees.into_iter().collect::<Result<Vec<_>>>()?;
        let store = PointStore::new(domain.n_dims());
        let mut forest = Forest::of_trees(self.domain.measure.clone(), domain, store, trees, Arc::new(self.clone()));
        forest.gather(labels);
        Ok(forest)
    }

    /// A forest without trees over the sampled points, which automatic values are found by.
    fn sample_forest<S: Default + Clone + Send + Sync + std::fmt::Debug>(&self) -> Result<Forest<S>> {
        let points = || self.sample.looked_at();
        let n_rows = points().map(|point| f64::from(point.n_rows)).sum::<f64>();
        if n_rows > MOST_REPEATED {
            let what = "rows of the sampled points, which repeat (give kappa and noise, or gamma, by value)";
            return Err(Error::TooLarge { what, expected: n_rows, limit: MOST_REPEATED });
        }
        let coordinates = points().flat_map(|point| point.x.iter().copied()).collect();
        let multiplicity = points().map(|point| point.n_rows).collect();
        let store = PointStore::restored(self.domain.n_dims(), coordinates, multiplicity)?;
        let domain: Domain = self.domain.tree_domain()?;
        let mut forest = Forest::from_parts(self.domain.measure.clone(), domain, store, self.domain.n_trees)?;
        forest.n_sampled_of = Some((self.sample.n_points(), self.n_rows()));
        Ok(forest)
    }
}
