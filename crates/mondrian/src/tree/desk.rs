//! Where growing reads coordinates: columns of codes, the store, or a copy of a small cell's rows that lie side by side.
//!
//! Cells high up are read once a level, in order, as codes where there are any. Further down their points are scattered
//! over the whole store, and every look at one costs a trip to memory; there the rows of a cell are copied once, to
//! where the rest of its subtree finds them in cache.

use super::partition::partition;
use super::{Columns, PointStore};

/// A copy takes at most this much: a part of a core's own cache.
const MOST_BYTES: usize = 256 << 10;
/// Fewer points are not worth a copy.
const LEAST_POINTS: usize = 24;
/// Fewer points are not read as codes: a column is as far away as a row, of which pairs will be read in the end.
const LEAST_CODES: usize = 200;
/// Wider rows cost more to copy than they save: a subtree looks at some twenty coordinates a point.
const MOST_DIMS: usize = 64;

/// The rows that points are looked up in.
#[derive(Debug)]
pub(super) struct Desk<'a> {
    store: &'a PointStore,
    columns: Option<&'a Columns>,
    scratch: Vec<u32>,
    /// Copied rows, and the point each is of.
    rows: Vec<f64>,
    points: Vec<u32>,
    /// While it lies, tasks from this number on are of its points.
    base: Option<usize>,
    /// Cells of at most this many points are copied; 0 for none.
    most_points: usize,
}

impl<'a> Desk<'a> {
    pub(super) fn new(store: &'a PointStore, columns: Option<&'a Columns>) -> Self {
        let n_dims = store.n_dims().max(1);
        let most_points = MOST_BYTES / (n_dims * size_of::<f64>());
        // A store that is itself that small is near already.
        let is_worth = n_dims <= MOST_DIMS && store.n_slots() > 2 * most_points;
        Self {
            store,
            columns,
            scratch: Vec::new(),
            rows: Vec::new(),
            points: Vec::new(),
            base: None,
            most_points: if is_worth { most_points } else { 0 },
        }
    }

    /// Row-major coordinates; a point's number says which row.
    #[inline]
    fn coordinates(&self) -> &[f64] {
        if self.base.is_some() { &self.rows } else { self.store.coordinates() }
    }

    /// The codes to read a cell of so many points by.
    #[inline]
    fn codes_for(&self, n_points: usize) -> Option<&'a Columns> {
        self.columns.filter(|_| self.base.is_none() && n_points >= LEAST_CODES)
    }

    /// Moves the points below a cut to the front; how many there are.
    #[inline]
    pub(super) fn part(&mut self, points: &mut [u32], dim: usize, location: f64) -> usize {
        let n_dims = self.store.n_dims();
        let codes = self.codes_for(points.len());
        let rows = if self.base.is_some() { &self.rows } else { self.store.coordinates() };
        let coordinate = |p: u32| rows[p as usize * n_dims + dim];
        match codes {
            Some(codes) => partition(points, &mut self.scratch, codes.is_below(dim, location, coordinate)),
            None => partition(points, &mut self.scratch, |p| coordinate(p) <= location),
        }
    }

    /// Bounds of some points in one dimension.
    pub(super) fn range(&self, points: &[u32], dim: usize) -> (f64, f64) {
        if let Some(codes) = self.codes_for(points.len()) {
            return codes.range(points, dim);
        }
        let (rows, n_dims) = (self.coordinates(), self.store.n_dims());
        points
            .iter()
            .map(|p| rows[*p as usize * n_dims + dim])
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), x| (lo.min(x), hi.max(x)))
    }

    /// A row.
    #[inline]
    pub(super) fn row(&self, number: u32) -> &[f64] {
        let n_dims = self.store.n_dims();
        &self.coordinates()[number as usize * n_dims..][..n_dims]
    }

    /// The point that a number stands for.
    #[inline]
    pub(super) fn point(&self, number: u32) -> u32 {
        if self.base.is_some() { self.points[number as usize] } else { number }
    }

    /// Copies the rows of a cell's points if that helps, and numbers them anew from 0. `n_tasks` wait elsewhere.
    #[inline]
    pub(super) fn take(&mut self, points: &mut [u32], n_tasks: usize) {
        if self.base.is_none() && (LEAST_POINTS..=self.most_points).contains(&points.len()) {
            self.copy(points);
            self.base = Some(n_tasks);
        }
    }

    fn copy(&mut self, points: &mut [u32]) {
        self.points.clear();
        self.points.extend_from_slice(points);
        self.rows.clear();
        for (number, point) in points.iter_mut().enumerate() {
            self.rows.extend_from_slice(self.store.point(*point));
            *point = number as u32;
        }
    }

    /// Clears the desk if a task, with `n_tasks` before it, is not of the copied points.
    #[inline]
    pub(super) fn go_on(&mut self, n_tasks: usize) {
        if self.base.is_some_and(|base| n_tasks < base) {
            self.base = None;
        }
    }

    /// Clears the desk.
    pub(super) fn clear(&mut self) {
        self.base = None;
    }
}
