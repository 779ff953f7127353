//! Rows on their way into a forest.
//!
//! A large table is far from where it is worked on, so all that is asked of each row is asked while it is near: where it
//! lies in measure coordinates, whether in the root box, and its hash.

use crate::Points;
use crate::process::{Bounds, BuiltInMeasure};
use crate::tree::hash;

/// Numbers that are worked on together: they stay in the nearest cache.
const AT_ONCE: usize = 2048;

/// Rows in measure coordinates, row-major, with what learning them asks first.
#[derive(Debug, Clone)]
pub struct Arrivals {
    pub(super) coordinates: Vec<f64>,
    /// Of each row; [`crate::tree::PointStore`] finds it by that.
    pub(super) hashes: Vec<u64>,
    /// Whether the root box holds them all.
    pub(super) are_inside: bool,
}

impl Arrivals {
    /// Rows of the width of the box.
    pub(super) fn of_points(points: Points<'_>, measure: &BuiltInMeasure, root: &Bounds) -> Self {
        let mut all = Self::none(points.n_rows(), root);
        let rows = points.as_row_major();
        for some in rows.chunks(at_once(root)) {
            let start = all.coordinates.len();
            measure.add_coordinates(some, root.n_dims(), &mut all.coordinates);
            look_at(&all.coordinates[start..], root, &mut all.hashes, &mut all.are_inside);
        }
        all
    }

    /// Rows that are in measure coordinates already.
    pub(super) fn of_coordinates(coordinates: Vec<f64>, root: &Bounds) -> Self {
        let mut all = Self::none(coordinates.len() / root.n_dims(), root);
        for some in coordinates.chunks(at_once(root)) {
            look_at(some, root, &mut all.hashes, &mut all.are_inside);
        }
        Self { coordinates, ..all }
    }

    fn none(n_rows: usize, root: &Bounds) -> Self {
        let coordinates = Vec::with_capacity(n_rows * root.n_dims());
        Self { coordinates, hashes: Vec::with_capacity(n_rows), are_inside: true }
    }
}

/// A whole number of rows.
fn at_once(root: &Bounds) -> usize {
    (AT_ONCE / root.n_dims()).max(1) * root.n_dims()
}

fn look_at(some: &[f64], root: &Bounds, hashes: &mut Vec<u64>, are_inside: &mut bool) {
    *are_inside &= root.contains_all(some);
    hashes.extend(some.chunks_exact(root.n_dims()).map(hash));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{NodeKey, Weights};

    #[test]
    fn rows_arrive_as_if_each_was_looked_at_on_its_own() {
        // Some tables are several blocks, and some rows one.
        for (n_rows, n_dims) in [(0, 3), (1, 1), (700, 3), (5000, 1), (3, 5000)] {
            let x: Vec<f64> =
                (0..n_rows * n_dims).map(|i| 2.0 * NodeKey::root(4, i as u64).draw(0).uniform() - 1.0).collect();
            let root = Bounds::new(&vec![-1.0; n_dims], &vec![1.0; n_dims]).unwrap();
            let halved = BuiltInMeasure::Weighted(Weights::new(vec![0.5; n_dims]).unwrap());
            for measure in [BuiltInMeasure::Uniform, halved] {
                let points = Points::row_major(&x, n_dims).unwrap();
                let rows = Arrivals::of_points(points, &measure, &root);
                assert_eq!(rows.coordinates, measure.coordinates(&x, n_dims));
                let hashes: Vec<u64> = rows.coordinates.chunks_exact(n_dims).map(hash).collect();
                assert_eq!((&rows.hashes, rows.are_inside), (&hashes, true));
                let again = Arrivals::of_coordinates(rows.coordinates.clone(), &root);
                assert_eq!((again.coordinates, again.hashes, again.are_inside), (rows.coordinates, hashes, true));
            }
        }
    }

    #[test]
    fn one_number_outside_the_box_is_noticed_wherever_it_is() {
        let root = Bounds::new(&[0.0; 3], &[1.0; 3]).unwrap();
        for at in [0, 2046, 2047, 2048, 5999] {
            for outside in [-f64::MIN_POSITIVE, 1.5] {
                let mut x = vec![0.5; 6000];
                x[at] = outside;
                assert!(!Arrivals::of_coordinates(x, &root).are_inside);
            }
        }
    }
}
