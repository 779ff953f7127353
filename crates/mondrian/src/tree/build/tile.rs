//! Where growing reads coordinates: codes, the store, or a contiguous copy of a small cell's codes.
//!
//! Cells high up are read once a level, in order. Further down their points are scattered over the whole store, and every
//! look at one costs a trip to memory; there the codes of a cell are copied once, to where the rest of its subtree finds
//! them in cache. Without it a tree of a million points of ten dimensions takes 10 % longer, of 200 000 points 2 to
//! 3 % (docs/benchmarks/tree.md, section a).

use crate::simd::partition::{Column, partition, partition_by_codes};
use crate::tree::{Codes, PointStore};

/// A copy takes at most this much: a part of a core's own cache.
const MOST_BYTES: usize = 512 << 10;
/// Fewer points are not worth a copy.
const LEAST_POINTS: usize = 24;

/// Where coordinates of points are read.
#[derive(Debug)]
pub(crate) struct CodeTile<'a> {
    store: &'a PointStore,
    codes: Option<&'a Codes>,
    scratch: Vec<u32>,
    /// Copied codes, a row per point, and one more (see [`Column`]); and the point that each row is of.
    rows: Vec<u16>,
    points: Vec<u32>,
    /// The stack depth at which the tile was loaded: tasks from this number on are of its points.
    base: Option<usize>,
    /// Cells of at most this many points are copied; 0 for none.
    most_points: usize,
}

impl<'a> CodeTile<'a> {
    pub(crate) fn new(store: &'a PointStore, codes: Option<&'a Codes>) -> Self {
        let most_points = MOST_BYTES / (store.n_dims().max(1) * size_of::<u16>());
        // A store that is itself that small is in cache already.
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

    /// The codes of so many points in one dimension.
    #[inline]
    fn column<'b>(&'b self, codes: &'b Codes, dim: usize, n_points: usize) -> Column<'b> {
        if self.base.is_some() {
            Column { codes: &self.rows, stride: self.store.n_dims(), first: dim }
        } else {
            codes.in_dim(dim, n_points)
        }
    }

    /// Moves the points below a cut to the front; how many there are.
    #[inline]
    pub(crate) fn part(&mut self, numbers: &mut [u32], dim: usize, location: f64) -> usize {
        let mut scratch = std::mem::take(&mut self.scratch);
        let exact = |number: u32| self.store.point(self.point(number))[dim] <= location;
        let n_below = match self.codes {
            Some(codes) => {
                let column = self.column(codes, dim, numbers.len());
                partition_by_codes(numbers, &mut scratch, column, codes.code(dim, location), exact)
            }
            None => partition(numbers, &mut scratch, exact),
        };
        self.scratch = scratch;
        n_below
    }

    /// Whether a point is below a cut.
    #[inline]
    pub(crate) fn is_below(&self, number: u32, dim: usize, location: f64) -> bool {
        let exact = |number: u32| self.store.point(self.point(number))[dim] <= location;
        let Some(codes) = self.codes else { return exact(number) };
        self.column(codes, dim, 1).below(codes.code(dim, location), exact)(number)
    }

    /// Bounds of some points in one dimension, not always the closest ones.
    pub(crate) fn range(&self, numbers: &[u32], dim: usize) -> (f64, f64) {
        match self.codes {
            Some(codes) => {
                let column = self.column(codes, dim, numbers.len());
                codes.range(dim, numbers.iter().map(|number| column.code_of(*number)))
            }
            None => numbers
                .iter()
                .map(|point| self.store.point(*point)[dim])
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), x| (lo.min(x), hi.max(x))),
        }
    }

    /// All codes of a point.
    #[inline]
    pub(crate) fn codes_of<'b>(&'b self, codes: &'b Codes, number: u32) -> &'b [u16] {
        let n_dims = self.store.n_dims();
        if self.base.is_some() { &self.rows[number as usize * n_dims..][..n_dims] } else { codes.of_point(number) }
    }

    /// The point that a number stands for.
    #[inline]
    pub(crate) fn point(&self, number: u32) -> u32 {
        if self.base.is_some() { self.points[number as usize] } else { number }
    }

    /// Copies the codes of a cell's points if that helps, and numbers them anew from 0. `n_tasks` wait elsewhere.
    #[inline]
    pub(crate) fn take(&mut self, points: &mut [u32], n_tasks: usize) {
        if self.base.is_none() && (LEAST_POINTS..=self.most_points).contains(&points.len()) {
            self.copy(points);
            self.base = Some(n_tasks);
        }
    }

    /// On its own, as [`Lanes::put`](crate::tree::build::small::Lanes::put) is.
    #[inline(never)]
    fn copy(&mut self, points: &mut [u32]) {
        self.points.clear();
        self.points.extend_from_slice(points);
        let (Some(codes), n_dims) = (self.codes, self.store.n_dims()) else { return };
        // All that is ever needed: what grows with the cells is filled with zeros, and moved, again and again.
        if self.rows.is_empty() {
            self.rows = vec![0; self.most_points * n_dims + 1];
        }
        for (number, (point, row)) in points.iter_mut().zip(self.rows.chunks_exact_mut(n_dims)).enumerate() {
            copy_codes(row, codes.of_point(*point));
            *point = number as u32;
        }
    }

    /// Clears the tile if a task, with `n_tasks` before it, is not of the copied points.
    #[inline]
    pub(crate) fn go_on(&mut self, n_tasks: usize) {
        if self.base.is_some_and(|base| n_tasks < base) {
            self.base = None;
        }
    }

    /// Clears the tile.
    pub(crate) fn clear(&mut self) {
        self.base = None;
    }
}

/// Copies the codes of a point: twice eight or four make any usual number of them, without a call.
#[inline]
fn copy_codes(to: &mut [u16], from: &[u16]) {
    match from.len() {
        8..=16 => copy_ends::<8>(to, from),
        4..=7 => copy_ends::<4>(to, from),
        _ => to.copy_from_slice(from),
    }
}

/// Copies the first and the last N, which are all.
#[inline]
fn copy_ends<const N: usize>(to: &mut [u16], from: &[u16]) {
    if let (Some(to), Some(from)) = (to.first_chunk_mut::<N>(), from.first_chunk()) {
        *to = *from;
    }
    if let (Some(to), Some(from)) = (to.last_chunk_mut::<N>(), from.last_chunk()) {
        *to = *from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_codes_is_copied() {
        for n in 0..40 {
            let from: Vec<u16> = (1..=n).collect();
            let mut to = vec![0; from.len()];
            copy_codes(&mut to, &from);
            assert_eq!(to, from);
        }
    }
}
