//! How much each input's cuts separate the classes of rows that were left out.
//!
//! Two rows drawn from a set without putting the first one back have different classes with a probability that a cut of an irrelevant
//! input leaves as it is in expectation, however few rows the two sides have. The Gini impurity, which puts the row back, falls with every
//! cut.

use crate::parallel::prelude::*;

use crate::forest::classification::masks::{ClassMasks, PointClasses};
use crate::forest::classification::{ClassificationForest, TrainedTrees};
use crate::forest::regression::shares;
use crate::process::Side;
use crate::tree::{Child, Kind, Tree};

impl ClassificationForest {
    /// The share of each input in the impurity, the probability that a row has another class than one of its cell that was left
    /// out, that the cuts within the lifetime remove: a mean over the trees, summing to one (or all 0 where no cut removes any).
    ///
    /// An irrelevant input removes nothing in expectation; what chance leaves of it is cut off at zero after all trees were added up.
    pub fn relevance(&self) -> Vec<f64> {
        let (n_dims, lifetime) = (self.trained.forest.n_dims(), self.lifetime().get());
        let trees = self.trained.forest.trees();
        let is_summary = self.trained.forest.summary().is_some();
        let by_tree: Vec<Vec<f64>> = trees
            .par_iter()
            .map(|(tree, masks)| {
                if is_summary {
                    removed_by_cells(&self.trained, tree, masks, lifetime)
                } else {
                    removed(&self.trained, tree, lifetime)
                }
            })
            .collect();
        let mut relevance = vec![0.0; n_dims];
        for of_tree in &by_tree {
            relevance.iter_mut().zip(of_tree).for_each(|(r, t)| *r += t);
        }
        shares(relevance)
    }
}

/// The impurity that the cuts of one tree remove, by dimension.
fn removed(trained: &TrainedTrees, tree: &Tree, lifetime: f64) -> Vec<f64> {
    let TrainedTrees { forest, classes } = trained;
    let store = forest.store();
    let mut removed = vec![0.0; forest.n_dims()];
    let mut order: Vec<u32> = store.points().collect();
    let mut counts = [vec![0_u32; classes.n_classes()], vec![0; classes.n_classes()]];
    let mut todo: Vec<(Child, usize, usize)> = vec![(tree.root(), 0, order.len())];
    while let Some((child, start, end)) = todo.pop() {
        if let Kind::Inner(id) = tree.end_of_run(child).kind() {
            let node = tree.node(id);
            if node.time() > lifetime {
                continue;
            }
            let range = &mut order[start..end];
            let mut middle = 0;
            for at in 0..range.len() {
                if node.side_of(store.point(range[at])) == Side::Below {
                    range.swap(at, middle);
                    middle += 1;
                }
            }
            let before = split_impurity(classes, &range[..middle], &range[middle..], &mut counts);
            removed[node.dim()] += before;
            let [below, above] = tree.children(node);
            todo.extend([(below, start, start + middle), (above, start + middle, end)]);
        }
    }
    removed
}

/// As [`removed`] for a tree whose rows are known by their cells.
fn removed_by_cells(trained: &TrainedTrees, tree: &Tree, masks: &ClassMasks, lifetime: f64) -> Vec<f64> {
    let TrainedTrees { forest, classes } = trained;
    let mut removed = vec![0.0; forest.n_dims()];
    let mut counts = [vec![0_u32; classes.n_classes()], vec![0; classes.n_classes()]];
    let (mut todo, mut room) = (vec![tree.root()], Vec::new());
    while let Some(child) = todo.pop() {
        let Kind::Inner(id) = tree.end_of_run(child).kind() else { continue };
        let node = tree.node(id);
        if node.time() > lifetime {
            continue;
        }
        let children = tree.children(node);
        for (child, counts) in children.into_iter().zip(&mut counts) {
            counts.fill(0);
            masks.count_below(tree, classes, child, counts, &mut room);
        }
        removed[node.dim()] += gini_removed(&counts);
        todo.extend(children);
    }
    removed
}

/// Rows times impurity of two sets together, less that of each. A set of one row has that of both.
fn split_impurity(classes: &PointClasses, below: &[u32], above: &[u32], counts: &mut [Vec<u32>; 2]) -> f64 {
    for (points, counts) in [below, above].into_iter().zip(counts.iter_mut()) {
        counts.fill(0);
        for point in points {
            classes.of(*point).iter().for_each(|(k, n)| counts[*k as usize] += n);
        }
    }
    gini_removed(counts)
}

/// As [`split_impurity`], of counts by class on both sides.
fn gini_removed(counts: &[Vec<u32>; 2]) -> f64 {
    // Rows, and the share of pairs of them with different classes.
    let impurity = |count: &dyn Fn(usize) -> u32| {
        let (mut total, mut pairs) = (0.0, 0.0);
        for k in 0..counts[0].len() {
            let n = f64::from(count(k));
            total += n;
            pairs += n * (n - 1.0);
        }
        (total, (total > 1.0).then(|| 1.0 - pairs / (total * (total - 1.0))))
    };
    let Some(together) = impurity(&|k| counts[0][k] + counts[1][k]).1 else { return 0.0 };
    let removed = |side: usize| {
        let (total, alone) = impurity(&|k| counts[side][k]);
        alone.map_or(0.0, |alone| total * (together - alone))
    };
    removed(0) + removed(1)
}
