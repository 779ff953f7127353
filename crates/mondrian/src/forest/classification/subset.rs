//! Parts of the points picked by a hash of their coordinates: free of the order of arrival and of repetition.

use std::sync::Arc;

use crate::forest::Forest;
use crate::forest::classification::TrainedTrees;
use crate::forest::classification::masks::PointClasses;
use crate::process::NodeKey;
use crate::select::split::row_key;
use crate::tree::PointStore;
use crate::{Lifetime, Result};

/// A point's hash: 128 bits that its coordinates alone decide.
pub(crate) fn hash(x: &[f64]) -> u128 {
    row_key(NodeKey::root(0x5375_6273_6574, x.len() as u64), x.iter().copied()).to_bits()
}

/// All points with their hashes, in the order of the hashes.
pub(crate) fn hashed(store: &PointStore) -> Vec<(u128, u32)> {
    let mut points: Vec<(u128, u32)> = store.points().map(|p| (hash(store.point(p)), p)).collect();
    points.sort_unstable();
    points
}

impl TrainedTrees {
    /// A forest of infinite lifetime with the first `n_trees` trees over some of the points only.
    pub(crate) fn with_points(&self, points: &[u32], n_trees: usize) -> Result<Arc<Self>> {
        let (store, mut classes) = (self.forest.store(), PointClasses::new(self.classes.n_classes()));
        let mut part = PointStore::new(store.n_dims());
        for point in points {
            for (class, count) in self.classes.of(*point) {
                for _ in 0..*count {
                    let (slot, _) = part.add(store.point(*point))?;
                    classes.add(slot, *class);
                }
            }
        }
        let domain = self.forest.domain().with_lifetime(Lifetime::INFINITE);
        let n_trees = n_trees.min(self.forest.n_trees());
        let mut forest = Forest::from_parts(self.forest.measure().clone(), domain, part, n_trees)?;
        forest.regrow(&classes);
        Ok(Arc::new(Self { forest, classes }))
    }
}
