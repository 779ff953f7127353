//! A batch of rows to learn or to look up.
//!
//! Transforms, bounds-checks and hashes rows in cache-sized blocks, so that a large table is read from memory once.

use crate::Points;
use crate::process::{Bounds, BuiltInMeasure};
use crate::tree::{Domain, hash};

/// Numbers that are worked on together: they stay in the nearest cache.
const AT_ONCE: usize = 2048;

/// Rows in measure coordinates, row-major, with their hashes and whether they lie in the root box.
#[derive(Debug, Clone)]
pub struct RowBatch {
    pub(crate) coordinates: Vec<f64>,
    /// Of each row; [`crate::tree::PointStore`] finds it by that.
    pub(crate) hashes: Vec<u64>,
    domain: Domain,
    /// Whether the domain's root box holds them all.
    are_inside: bool,
}

impl RowBatch {
    /// Rows of the width of the root box.
    pub(crate) fn of_points(points: Points<'_>, measure: &BuiltInMeasure, domain: &Domain) -> Self {
        let (rows, n_dims) = (points.as_row_major(), domain.n_dims());
        let mut all = Self::at(Vec::with_capacity(rows.len()), domain);
        for some in rows.chunks(at_once(n_dims)) {
            let start = all.coordinates.len();
            measure.add_coordinates(some, n_dims, &mut all.coordinates);
            all.look_from(start);
        }
        all
    }

    /// Rows that are in measure coordinates already.
    pub(crate) fn of_coordinates(coordinates: Vec<f64>, domain: &Domain) -> Self {
        let mut all = Self::at(coordinates, domain);
        all.look_from(0);
        all
    }

    /// Rows not yet checked, transformed or hashed.
    fn at(coordinates: Vec<f64>, domain: &Domain) -> Self {
        let hashes = Vec::with_capacity(coordinates.capacity() / domain.n_dims());
        Self { coordinates, hashes, domain: domain.clone(), are_inside: true }
    }

    /// Checks and hashes the rows whose numbers start there.
    fn look_from(&mut self, start: usize) {
        let (root, n_dims) = (self.domain.root_box(), self.domain.n_dims());
        for some in self.coordinates[start..].chunks(at_once(n_dims)) {
            self.are_inside &= root.contains_all(some);
            self.hashes.extend(some.chunks_exact(n_dims).map(hash));
        }
    }

    /// Whether all are known to lie in a root box: not if they were checked on another domain.
    pub(crate) fn are_in(&self, root: &Bounds) -> bool {
        self.are_inside && self.domain.root_box() == root
    }
}

/// A whole number of rows.
fn at_once(n_dims: usize) -> usize {
    (AT_ONCE / n_dims).max(1) * n_dims
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lifetime;
    use crate::process::{NodeKey, Weights};

    fn domain(n_dims: usize, upper: f64) -> Domain {
        let root = Bounds::new(&vec![-1.0; n_dims], &vec![upper; n_dims]).unwrap();
        Domain::new(0, &root, Lifetime::INFINITE).unwrap()
    }

    #[test]
    fn rows_arrive_as_if_each_was_looked_at_on_its_own() {
        // Some tables are several blocks, and some rows one.
        for (n_rows, n_dims) in [(0, 3), (1, 1), (700, 3), (5000, 1), (3, 5000)] {
            let x: Vec<f64> =
                (0..n_rows * n_dims).map(|i| 2.0 * NodeKey::root(4, i as u64).draw(0).uniform() - 1.0).collect();
            let (domain, points) = (domain(n_dims, 1.0), Points::row_major(&x, n_dims).unwrap());
            let halved = BuiltInMeasure::Weighted(Weights::new(vec![0.5; n_dims]).unwrap());
            for measure in [BuiltInMeasure::Uniform, halved] {
                let rows = RowBatch::of_points(points, &measure, &domain);
                assert_eq!(rows.coordinates, measure.coordinates(&x, n_dims));
                let hashes: Vec<u64> = rows.coordinates.chunks_exact(n_dims).map(hash).collect();
                assert!(rows.hashes == hashes && rows.are_in(domain.root_box()));
                let again = RowBatch::of_coordinates(rows.coordinates.clone(), &domain);
                assert!(again.coordinates == rows.coordinates && again.hashes == hashes);
                assert!(again.are_in(domain.root_box()));
            }
        }
    }

    #[test]
    fn one_number_outside_the_box_is_noticed_wherever_it_is() {
        let (domain, wider) = (domain(3, 1.0), domain(3, 2.0));
        for at in [0, 2046, 2047, 2048, 5999] {
            for outside in [-1.5, 1.0_f64.next_up()] {
                let mut x = vec![0.5; 6000];
                x[at] = outside;
                assert!(!RowBatch::of_coordinates(x, &domain).are_in(domain.root_box()));
            }
        }
        // A check on one domain does not hold for another.
        assert!(!RowBatch::of_coordinates(vec![1.5; 3], &wider).are_in(domain.root_box()));
    }
}
