//! The forest as a linear smoother: its equivalent kernel (report, appendix B).

use crate::parallel::prelude::*;

use crate::forest::regression::posterior::{BlockPath, Reader};
use crate::forest::regression::targets::Targets;
use crate::forest::regression::{LeafModel, RegressionForest};
use crate::memory;
use crate::tree::{Child, Kind, Locator, Tree};
use crate::{Points, Result};

impl RegressionForest {
    /// The smoothing matrix of target 0, row-major: one row per query, one column per training row in order of arrival.
    ///
    /// Predictions are this matrix times the targets, plus (1 − its row sum) times the prior mean: a linear smoother
    /// exactly when the prior mean is 0. A column is the weight of one training row, its sample weight included.
    ///
    /// # Errors
    /// [`crate::Error::LengthMismatch`] for rows of the wrong width, [`crate::Error::TooLarge`] beyond the memory budget.
    pub fn equivalent_kernel(&self, points: Points<'_>) -> Result<Vec<f64>> {
        self.core.forest.check_rows("the equivalent kernel")?;
        let coordinates = self.core.forest.coordinates(points)?;
        let bytes = 2.0 * memory::bytes_of(points.n_rows(), self.n_rows());
        memory::check("bytes of the smoothing matrix", bytes)?;
        let rows: Vec<(u32, f64)> = self.core.targets.rows().map(|(point, _, w)| (point, w)).collect();
        let by_row: Vec<Vec<f64>> = coordinates
            .par_chunks(self.n_dims())
            .map(|x| {
                let by_point = self.weights_by_point(x);
                rows.iter().map(|(point, weight)| by_point[*point as usize] * weight).collect()
            })
            .collect();
        Ok(by_row.concat())
    }

    /// Σ over trees of the weight that a unit of each point's rows has in the prediction at `x`, over M.
    fn weights_by_point(&self, x: &[f64]) -> Vec<f64> {
        let core = &self.core;
        let mut inside = x.to_vec();
        let distance = core.forest.domain().clamp(&mut inside);
        let mut weights = vec![0.0; core.forest.store().n_slots()];
        let mut path = BlockPath::default();
        for (tree, sums) in core.forest.trees() {
            let reader = Reader { tree, sums, targets: &core.targets };
            let shares = match core.params.leaf_model {
                LeafModel::Hierarchical => {
                    let forest = &core.forest;
                    path.follow(&mut Locator::new(tree, forest.domain(), forest.store(), self.view), &inside);
                    self.hierarchical_shares(&reader, &path, distance)
                }
                LeafModel::Independent => self.independent_shares(&reader, &inside, distance),
            };
            for (child, share) in shares {
                let share = share / core.forest.n_trees() as f64;
                each_point(tree, child, |point| weights[point as usize] += share);
            }
        }
        weights
    }

    /// The weight of each row of a block in the prediction, block by block; rows lie in several blocks.
    fn hierarchical_shares(&self, reader: &Reader<'_>, path: &BlockPath, distance: f64) -> Vec<(Child, f64)> {
        let kappa = self.gaussians()[0].kappa;
        let stays = |t: f64| if t == 0.0 || distance == 0.0 { 1.0 } else { (-distance * t).exp() };
        let n = path.blocks.len();
        if path.blocks[0].child == Child::EMPTY {
            return Vec::new();
        }
        // How likely the prediction is the posterior of block j: leaving the root block gives the prior instead.
        let mut ends: Vec<f64> = (0..n)
            .map(|j| stays(path.blocks[j].birth) - path.blocks.get(j + 1).map_or(0.0, |b| stays(b.birth)))
            .collect();
        ends[0] = match (n, path.has_left) {
            (1, false) if distance == 0.0 => 1.0,
            (1, false) => stays(self.view.get()),
            _ => 0.0,
        };
        // Block j enters the posterior of block i ≥ j with factor Π κ/(n + κ) over (j, i], over its own n + κ.
        let mut shares = Vec::with_capacity(n);
        let mut tail = 0.0;
        for j in (0..n).rev() {
            let total = reader.weight(path.blocks[j].child) + kappa;
            tail += ends[j];
            shares.push((path.blocks[j].child, tail / total));
            tail *= kappa / total;
        }
        shares
    }

    fn independent_shares(&self, reader: &Reader<'_>, x: &[f64], distance: f64) -> Vec<(Child, f64)> {
        let core = &self.core;
        let mut locator = Locator::new(reader.tree, core.forest.domain(), core.forest.store(), self.view);
        let (cell, stays) = match core.params.unseen {
            crate::forest::Unseen::Keyed => (locator.cell_of(x).unwrap_or(Child::EMPTY), 1.0),
            crate::forest::Unseen::Integrate => locator.locate_in_law(x),
        };
        if cell == Child::EMPTY {
            return Vec::new();
        }
        let stays = if distance == 0.0 { stays } else { stays * (-distance * self.view.get()).exp() };
        vec![(cell, stays / (reader.weight(cell) + self.gaussians()[0].kappa))]
    }

    /// Effective degrees of freedom: the trace of the smoothing matrix at the training rows.
    ///
    /// # Errors
    /// [`crate::Error::WithoutRows`].
    pub fn degrees_of_freedom(&self) -> Result<f64> {
        self.core.forest.check_rows("the degrees of freedom")?;
        let targets: &Targets = &self.core.targets;
        let store = self.core.forest.store();
        let trace: Vec<f64> = targets
            .rows()
            .collect::<Vec<_>>()
            .par_iter()
            .map(|(point, _, weight)| self.weights_by_point(store.point(*point))[*point as usize] * weight)
            .collect();
        Ok(trace.iter().sum())
    }
}

/// Visits every point under a child.
fn each_point(tree: &Tree, child: Child, mut visit: impl FnMut(u32)) {
    let mut todo = vec![child];
    while let Some(child) = todo.pop() {
        match child.kind() {
            Kind::Inner(id) => todo.extend(tree.children(tree.node(id))),
            Kind::Single(point) => visit(point),
            Kind::Leaf(id) => tree.leaf(id).points().iter().for_each(|p| visit(*p)),
            Kind::Empty => {}
        }
    }
}
