//! Where growing reads coordinates: codes, the store, or a copy of a small cell's codes that lie side by side.
//!
//! Cells high up are read once a level, in order. Further down their points are scattered over the whole store, and every
//! look at one costs a trip to memory; there the codes of a cell are copied once, to where the rest of its subtree finds
//! them in cache.

use super::partition::partition;
use super::{Codes, PointStore};
use crate::process::Side;

/// A copy takes at most this much: a part of a core's own cache.
const MOST_BYTES: usize = 256 << 10;
/// Fewer points are not worth a copy.
const LEAST_POINTS: usize = 24;

/// What points are looked up in.
#[derive(Debug)]
pub(super) struct Desk<'a> {
    store: &'a PointStore,
    codes: Option<&'a Codes>,
    scratch: Vec<u32>,
    /// Copied codes, a row a point, and the point that each is of.
    rows: Vec<u16>,
    points: Vec<u32>,
    /// While it lies, tasks from this number on are of its points.
    base: Option<usize>,
    /// Cells of at most this many points are copied; 0 for none.
    most_points: usize,
}

impl<'a> Desk<'a> {
    pub(super) fn new(store: &'a PointStore, codes: Option<&'a Codes>) -> Self {
        let most_points = MOST_BYTES / (store.n_dims().max(1) * size_of::<u16>());
        // A store that is itself that small is near already.
        let is_worth = codes.is_some_and(Codes::are_narrow) && store.n_slots() > 2 * most_points;
        Self {
            store,
            codes,
            scratch: Vec::new(),
            rows: Vec::new(),
            points: Vec::new(),
            base: None,
            most_points: if is_worth { most_points } else { 0 },
        }
    }

    /// The codes by which the copied points are read, while there are any.
    #[inline]
    fn copied(&self) -> Option<&'a Codes> {
        self.codes.filter(|_| self.base.is_some())
    }

    /// Moves the points below a cut to the front; how many there are.
    #[inline]
    pub(super) fn part(&mut self, numbers: &mut [u32], dim: usize, location: f64) -> usize {
        let (rows, copies, n_dims, store) = (&self.rows, &self.points, self.store.n_dims(), self.store);
        let exact = |point: u32| store.coordinates()[point as usize * n_dims + dim] <= location;
        if let Some(codes) = self.copied() {
            let cut = codes.of(dim, location);
            return partition(numbers, &mut self.scratch, |number| {
                let code = rows[number as usize * n_dims + dim];
                if code == cut { exact(copies[number as usize]) } else { code < cut }
            });
        }
        match self.codes {
            Some(codes) => codes.part(numbers, &mut self.scratch, (dim, location), exact),
            None => partition(numbers, &mut self.scratch, exact),
        }
    }

    /// The side of a cut that a point is on.
    #[inline]
    pub(super) fn side(&self, number: u32, dim: usize, location: f64) -> Side {
        if let Some(codes) = self.codes {
            let row = if self.base.is_some() { self.copied_row(number) } else { codes.of_point(number) };
            let (code, cut) = (row[dim], codes.of(dim, location));
            if code != cut {
                return if code < cut { Side::Below } else { Side::Above };
            }
        }
        Side::of(self.store.point(self.point(number))[dim], location)
    }

    /// Bounds of some points in one dimension, not always the closest ones.
    pub(super) fn range(&self, numbers: &[u32], dim: usize) -> (f64, f64) {
        let n_dims = self.store.n_dims();
        if let Some(codes) = self.copied() {
            let (least, most) = ends(numbers.iter().map(|number| self.rows[*number as usize * n_dims + dim]));
            return codes.bounds(dim, least, most);
        }
        if let Some(codes) = self.codes {
            let code_of = codes.in_dim(dim, numbers.len());
            let (least, most) = ends(numbers.iter().map(|point| code_of(*point)));
            return codes.bounds(dim, least, most);
        }
        numbers
            .iter()
            .map(|point| self.store.coordinates()[*point as usize * n_dims + dim])
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), x| (lo.min(x), hi.max(x)))
    }

    #[inline]
    fn copied_row(&self, number: u32) -> &[u16] {
        let n_dims = self.store.n_dims();
        &self.rows[number as usize * n_dims..][..n_dims]
    }

    /// The point that a number stands for.
    #[inline]
    pub(super) fn point(&self, number: u32) -> u32 {
        if self.base.is_some() { self.points[number as usize] } else { number }
    }

    /// Copies the codes of a cell's points if that helps, and numbers them anew from 0. `n_tasks` wait elsewhere.
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
        let Some(codes) = self.codes else { return };
        for (number, point) in points.iter_mut().enumerate() {
            self.rows.extend_from_slice(codes.of_point(*point));
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

/// The least and the most of some codes.
fn ends(codes: impl Iterator<Item = u16>) -> (u16, u16) {
    codes.fold((u16::MAX, 0), |(least, most), code| (least.min(code), most.max(code)))
}
