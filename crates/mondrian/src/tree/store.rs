//! The distinct points of a model, stored once and shared by all its trees.
//!
//! Identical rows never part, so trees hold points, not rows, and a point knows how many rows have it.

use std::sync::OnceLock;

use hashbrown::HashTable;

use crate::points::first_not_finite;
use crate::simd::prefetch::prefetch_row;
use crate::tree::Child;
use crate::tree::repeats::{hash, repeats};
use crate::{Error, Result};

/// Distinct points in measure coordinates, with how many rows have each.
#[derive(Debug, Clone, Default)]
pub struct PointStore {
    n_dims: usize,
    /// Row-major coordinates, one row a slot; forgotten slots are reused.
    coordinates: Vec<f64>,
    multiplicity: Vec<u32>,
    free: Vec<u32>,
    n_rows: usize,
    /// Numbers of points, found by the hash of their coordinates, which is not kept. Made when a point is first sought.
    numbers: OnceLock<HashTable<u32>>,
}

impl PointStore {
    /// More distinct points than this cannot be numbered.
    pub const CAPACITY: usize = crate::tree::arena::node::MAX_NUMBER as usize;

    /// An empty store for points of `n_dims` coordinates.
    pub fn new(n_dims: usize) -> Self {
        Self { n_dims, ..Self::default() }
    }

    /// Number of dimensions.
    pub fn n_dims(&self) -> usize {
        self.n_dims
    }

    /// Number of slots, forgotten ones included: point numbers are below this.
    pub fn n_slots(&self) -> usize {
        self.multiplicity.len()
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of distinct points.
    pub fn n_points(&self) -> usize {
        self.multiplicity.len() - self.free.len()
    }

    /// Bytes taken: coordinates, multiplicities, and the table by which points are found.
    pub fn n_bytes(&self) -> usize {
        size_of_val(self.coordinates.as_slice())
            + size_of_val(self.multiplicity.as_slice())
            + self.numbers.get().map_or(0, HashTable::allocation_size)
    }

    /// A point's coordinates.
    #[inline]
    pub fn point(&self, point: u32) -> &[f64] {
        point_of(&self.coordinates, self.n_dims, point)
    }

    /// Asks for the memory of a point, if a cell is frozen with one.
    #[inline]
    pub(crate) fn prefetch(&self, cell: Child) {
        let start = cell.single_or(0) as usize * self.n_dims;
        prefetch_row(&self.coordinates, start, self.n_dims);
    }

    /// All coordinates, row-major by slot.
    #[inline]
    pub fn coordinates(&self) -> &[f64] {
        &self.coordinates
    }

    /// How many rows have this point; zero for a forgotten slot.
    #[inline]
    pub fn multiplicity(&self, point: u32) -> u32 {
        self.multiplicity[point as usize]
    }

    /// The numbers of all points, ascending.
    pub fn points(&self) -> impl Iterator<Item = u32> + Clone + '_ {
        (0..self.n_slots() as u32).filter(|p| self.multiplicity[*p as usize] > 0)
    }

    /// As [`PointStore::points`], as an array.
    pub(crate) fn all_points(&self) -> Vec<u32> {
        if self.free.is_empty() { (0..self.n_slots() as u32).collect() } else { self.points().collect() }
    }

    /// The number of a stored point.
    pub fn find(&self, coordinates: &[f64]) -> Option<u32> {
        self.find_hashed(hash(coordinates), coordinates)
    }

    fn find_hashed(&self, hash: u64, coordinates: &[f64]) -> Option<u32> {
        let numbers = self.numbers.get_or_init(|| self.numbered(0));
        numbers.find(hash, |point| self.point(*point) == coordinates).copied()
    }

    /// The table of numbers, with room for so many more.
    fn numbered(&self, n_more: usize) -> HashTable<u32> {
        let mut numbers = HashTable::with_capacity(self.n_points() + n_more);
        for point in self.points() {
            numbers.insert_unique(hash(self.point(point)), point, |other| hash(self.point(*other)));
        }
        numbers
    }

    /// Makes room for so many more rows, where it is known beforehand how many will come.
    pub(crate) fn reserve(&mut self, n_rows: usize) {
        self.coordinates.reserve(n_rows * self.n_dims);
        self.multiplicity.reserve(n_rows);
        let Self { n_dims, coordinates, numbers, .. } = self;
        match numbers.get_mut() {
            Some(numbers) => numbers.reserve(n_rows, |point| hash(point_of(coordinates, *n_dims, *point))),
            None => self.numbers = self.numbered(n_rows).into(),
        }
    }

    /// Adds a row: the point's number, and whether the point is new.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when no number is left.
    pub fn add(&mut self, coordinates: &[f64]) -> Result<(u32, bool)> {
        self.add_hashed(hash(coordinates), coordinates)
    }

    /// As [`PointStore::add`] for a row whose hash is known.
    pub(crate) fn add_hashed(&mut self, hash: u64, coordinates: &[f64]) -> Result<(u32, bool)> {
        debug_assert_eq!(coordinates.len(), self.n_dims);
        if let Some(point) = self.find_hashed(hash, coordinates) {
            self.n_rows += 1;
            self.multiplicity[point as usize] += 1;
            return Ok((point, false));
        }
        let point = self.new_slot(coordinates)?;
        self.n_rows += 1;
        self.link(hash, point);
        Ok((point, true))
    }

    /// The rows of a whole table, without negative zeros and with their hashes, as those of a store that has none: their
    /// points.
    pub(crate) fn adopt(&mut self, coordinates: Vec<f64>, hashes: &[u64]) -> Vec<u32> {
        debug_assert!(self.multiplicity.is_empty() && coordinates.iter().all(|x| *x != 0.0 || x.is_sign_positive()));
        let (n_dims, n_rows) = (self.n_dims, coordinates.len() / self.n_dims);
        let repeats = repeats(&coordinates, n_dims, (0..).zip(hashes.iter().copied()));
        (self.coordinates, self.n_rows, self.numbers) = (coordinates, n_rows, OnceLock::new());
        if repeats.is_empty() {
            self.multiplicity = vec![1; n_rows];
            return (0..n_rows as u32).collect();
        }
        let (mut repeats, mut points) = (repeats.into_iter().peekable(), Vec::with_capacity(n_rows));
        for row in 0..n_rows {
            if let Some((_, first)) = repeats.next_if(|(again, _)| *again as usize == row) {
                let point = points[first as usize];
                self.multiplicity[point as usize] += 1;
                points.push(point);
                continue;
            }
            // Rows move up to the place of the next point where points before them came again.
            let point = self.multiplicity.len();
            self.coordinates.copy_within(row * n_dims..(row + 1) * n_dims, point * n_dims);
            self.multiplicity.push(1);
            points.push(point as u32);
        }
        self.coordinates.truncate(self.multiplicity.len() * n_dims);
        self.coordinates.shrink_to_fit();
        points
    }

    /// Takes a point that is not there yet into the table, if there is one.
    fn link(&mut self, hash_of_point: u64, point: u32) {
        let Self { n_dims, coordinates, numbers, .. } = self;
        if let Some(numbers) = numbers.get_mut() {
            numbers.insert_unique(hash_of_point, point, |other| hash(point_of(coordinates, *n_dims, *other)));
        }
    }

    fn new_slot(&mut self, coordinates: &[f64]) -> Result<u32> {
        // Adding zero makes -0.0 and 0.0 one value.
        let clean = coordinates.iter().map(|x| x + 0.0);
        if let Some(point) = self.free.pop() {
            let start = point as usize * self.n_dims;
            self.coordinates[start..][..self.n_dims].iter_mut().zip(clean).for_each(|(slot, x)| *slot = x);
            self.multiplicity[point as usize] = 1;
            return Ok(point);
        }
        let limit = crate::tree::arena::node::MAX_NUMBER;
        if self.multiplicity.len() as u64 >= u64::from(limit) {
            return Err(Error::TooLarge {
                what: "distinct points",
                expected: self.multiplicity.len() as f64,
                limit: f64::from(limit),
            });
        }
        self.coordinates.extend(clean);
        self.multiplicity.push(1);
        Ok(self.multiplicity.len() as u32 - 1)
    }

    /// Takes one row of a point away; whether the point is gone with it.
    pub fn remove(&mut self, point: u32) -> bool {
        let left = &mut self.multiplicity[point as usize];
        *left -= 1;
        self.n_rows -= 1;
        if *left > 0 {
            return false;
        }
        let hash = hash(self.point(point));
        if let Some(numbers) = self.numbers.get_mut()
            && let Ok(entry) = numbers.find_entry(hash, |held| *held == point)
        {
            entry.remove();
        }
        self.free.push(point);
        true
    }

    /// The store of saved coordinates and multiplicities.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::NotFinite`], or [`Error::Incompatible`] where a point occurs twice.
    pub fn restored(n_dims: usize, coordinates: Vec<f64>, multiplicity: Vec<u32>) -> Result<Self> {
        if n_dims == 0 || Some(coordinates.len()) != multiplicity.len().checked_mul(n_dims) {
            return Err(Error::LengthMismatch {
                what: "stored coordinates",
                expected: multiplicity.len().saturating_mul(n_dims),
                found: coordinates.len(),
            });
        }
        if let Some(at) = first_not_finite(&coordinates) {
            let (row, column, value) = (at / n_dims, at % n_dims, coordinates[at]);
            return Err(Error::NotFinite { what: "stored coordinates", row, column, value });
        }
        let mut store = Self { n_dims, coordinates, multiplicity, ..Self::default() };
        store.free = (0..store.n_slots() as u32).filter(|point| store.multiplicity(*point) == 0).collect();
        store.n_rows = store.multiplicity.iter().map(|n| *n as usize).sum();
        let hashed = store.points().map(|point| (point, hash(store.point(point))));
        if !repeats(&store.coordinates, n_dims, hashed).is_empty() {
            return Err(Error::Incompatible { what: "stored points (one occurs twice)" });
        }
        Ok(store)
    }

    /// The multiplicities by slot, for storing.
    pub fn multiplicities(&self) -> &[u32] {
        &self.multiplicity
    }
}

#[inline]
fn point_of(coordinates: &[f64], n_dims: usize, point: u32) -> &[f64] {
    &coordinates[point as usize * n_dims..][..n_dims]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_adopted_as_its_rows_are_added() {
        let key = crate::process::NodeKey::root(3, 3);
        for (n_rows, n_dims, n_values) in [(0, 2, 1), (1, 3, 1), (200, 1, 7), (300, 2, 5), (300, 3, 1000)] {
            let value = |at: usize| (key.draw(at as u32).uniform() * f64::from(n_values)).floor();
            let table: Vec<f64> = (0..n_rows * n_dims).map(value).collect();
            let (mut adopted, mut added) = (PointStore::new(n_dims), PointStore::new(n_dims));
            let hashes: Vec<u64> = table.chunks_exact(n_dims).map(hash).collect();
            let points = adopted.adopt(table.clone(), &hashes);
            let one_by_one: Vec<u32> = table.chunks_exact(n_dims).map(|x| added.add(x).unwrap().0).collect();
            assert_eq!(points, one_by_one);
            assert_eq!(adopted.coordinates(), added.coordinates());
            assert_eq!((adopted.n_rows(), adopted.n_points()), (added.n_rows(), added.n_points()));
            assert!(added.points().all(|p| adopted.multiplicity(p) == added.multiplicity(p)));
            assert!(added.points().all(|p| adopted.find(added.point(p)) == Some(p)));
        }
    }

    #[test]
    fn rows_of_one_point_are_counted_and_forgotten() {
        let mut store = PointStore::new(2);
        let (a, _) = store.add(&[1.0, -0.0]).unwrap();
        assert_eq!(store.add(&[1.0, 0.0]).unwrap(), (a, false));
        let (b, new) = store.add(&[2.0, 0.0]).unwrap();
        assert!(new && a != b);
        assert_eq!((store.n_rows(), store.n_points(), store.multiplicity(a)), (3, 2, 2));
        assert!(!store.remove(a) && store.remove(a));
        assert_eq!(store.find(&[1.0, 0.0]), None);
        assert_eq!(store.add(&[5.0, 5.0]).unwrap(), (a, true), "the slot is used again");
        let again = PointStore::restored(2, store.coordinates().to_vec(), store.multiplicities().to_vec()).unwrap();
        assert_eq!(again.find(&[5.0, 5.0]), Some(a));
        assert!(PointStore::restored(1, vec![1.0, 1.0], vec![1, 1]).is_err());
    }
}
