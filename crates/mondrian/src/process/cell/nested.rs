//! Cells of a process on several nested boxes: the clocks that can still ring, and how they follow a walk.
//!
//! With one box, or where one clock is left, none of this is used; see the parent module for the law.

use super::{Cell, Clock, Cut, Step};
use crate::process::gaps::{Gaps, whole};
use crate::process::{Bounds, Draw, NodeKey, Side, Sides};

/// The way that a walk on several boxes has [sunk](Cell::sink) since its clocks were known. Of those that are live on the way few
/// are at its end, so they are wound there; until then `top` may be too large and the counts of bounds outside are old.
#[derive(Debug, Clone, Default)]
pub(super) struct Sunk {
    /// The tree's key, if the way starts at its root.
    pub(super) root: Option<NodeKey>,
    pub(super) cuts: Vec<(u32, Side, f64)>,
    /// Whether there is anything to follow.
    pub(super) is_behind: bool,
}

impl Sunk {
    /// Starts anew at a cell whose clocks are known, or are those of the root of a tree.
    pub(super) fn restart(&mut self, root: Option<NodeKey>) {
        self.cuts.clear();
        (self.root, self.is_behind) = (root, true);
    }
}

impl Cell {
    /// The rest of a step down for good where there are several boxes.
    #[inline]
    pub(super) fn sink_in_boxes(&mut self, cut: &Cut, side: Side) {
        if self.loses_inner(cut, side) {
            self.lowest = cut.level as usize;
        }
        self.move_bound(cut.dim as usize, side, cut.location);
        self.sunk.cuts.push((cut.level, side, cut.time));
        self.sunk.is_behind = true;
    }

    /// Brings clocks and counts up to date with a way that was sunk.
    pub(crate) fn wind(&mut self) {
        if !self.sunk.is_behind {
            return;
        }
        self.sunk.is_behind = false;
        self.count_bounds();
        let live = self.lowest..=self.top;
        if let Some(key) = self.sunk.root.take() {
            for level in live.clone() {
                self.clocks[level] = Clock { key: level_key(key, level), birth: 0.0 };
            }
        }
        for (level, side, time) in self.sunk.cuts.drain(..) {
            // All live clocks at once: none waits for another.
            let restarted = self.clocks.get_mut(self.lowest.max(level as usize)..=self.top);
            for clock in restarted.into_iter().flatten() {
                *clock = Clock { key: clock.key.child(side), birth: time };
            }
        }
    }

    /// Counts the bounds outside each box, up to the first that holds the whole cell.
    pub(super) fn count_bounds(&mut self) {
        let (upper, lower) = self.bounds.split_at(self.n_dims);
        for level in self.lowest..self.top {
            let bounds = &self.boxes[level];
            let above: u32 = upper.iter().zip(bounds.upper()).map(|(x, most)| u32::from(x > most)).sum();
            let below: u32 = lower.iter().zip(bounds.lower()).map(|(x, least)| u32::from(x < least)).sum();
            self.outside[level] = above + below;
            if above + below == 0 {
                self.top = level;
                return;
            }
        }
    }

    /// Takes note of a bound that has moved: which boxes it lies outside of no more.
    pub(super) fn count_bound(&mut self, dim: usize, side: Side, from: f64, to: f64) {
        for level in (self.lowest..self.top).rev() {
            let is_outside = outside_of(&self.boxes[level], dim, side);
            if is_outside(to) {
                return;
            }
            self.outside[level] -= u32::from(is_outside(from));
        }
    }

    /// Undoes [`Cell::count_bound`].
    pub(super) fn uncount_bound(&mut self, dim: usize, side: Side, from: f64, to: f64) {
        for level in (self.lowest..self.top).rev() {
            let is_outside = outside_of(&self.boxes[level], dim, side);
            if is_outside(to) {
                return;
            }
            self.outside[level] += u32::from(is_outside(from));
        }
    }

    /// Lets the clocks go that never ring any more.
    pub(super) fn drop_outer_clocks(&mut self) {
        while self.top > self.lowest && self.outside[self.top - 1] == 0 {
            self.top -= 1;
        }
    }

    /// Finds when the clocks from one on ring, and all of them where that was not known.
    #[inline]
    pub(super) fn find_rings(&mut self, first: usize) {
        if self.has_one_clock() {
            return;
        }
        let first = if self.are_rings_known { self.lowest.max(first) } else { self.lowest };
        for level in first..=self.top {
            self.rings[level] = self.ring(level).unwrap_or((f64::INFINITY, Draw::default()));
        }
        self.are_rings_known = true;
    }

    pub(super) fn first_of_clocks(&self, lifetime: f64) -> Option<Cut> {
        if self.are_rings_known {
            let live = &self.rings[self.lowest..=self.top];
            let earlier = |best: usize, at: usize| if live[at].0 < live[best].0 { at } else { best };
            let first = (1..live.len()).fold(0, earlier);
            let (time, draw) = live[first];
            // A clock that never rings does so at infinity.
            let rings = time <= lifetime && time < f64::INFINITY;
            return rings.then(|| self.cut_at(self.lowest + first, time, draw));
        }
        let mut first: Option<Cut> = None;
        for level in self.lowest..=self.top {
            let is_first = |time| time <= lifetime && first.is_none_or(|cut| time < cut.time);
            first = self.cut_by(level, is_first).or(first);
        }
        first
    }

    /// Whether that side of a cut by an outer clock lies outside the boxes within.
    #[inline]
    pub(super) fn loses_inner(&self, cut: &Cut, side: Side) -> bool {
        let level = cut.level as usize;
        // Such a cut misses the boxes inside: they lie on the side of their upper bound.
        let upper = || self.bounds[cut.dim as usize].min(self.boxes[level - 1].upper()[cut.dim as usize]);
        level > self.lowest && Side::of(upper(), cut.location) != side
    }

    /// A step down where several clocks are left.
    pub(super) fn enter_with_clocks(&mut self, cut: &Cut, side: Side) {
        let (dim, level) = (cut.dim as usize, cut.level as usize);
        let loses_inner = self.loses_inner(cut, side);
        let bound = self.move_bound(dim, side, cut.location);
        self.push_step(dim, side, bound);
        self.count_bound(dim, side, bound, cut.location);
        self.drop_outer_clocks();
        for clock in &mut self.clocks[level..=self.top.max(level)] {
            *clock = Clock { key: clock.key.child(side), birth: cut.time };
        }
        if loses_inner {
            self.lowest = level;
            self.refresh_level(level);
        }
        // Such a cut misses the boxes inside.
        self.refresh_dim(dim, level);
        self.find_rings(level);
    }

    /// The rest of a step back where there were several clocks; `bound` is what it took back.
    pub(super) fn rewind_clocks(&mut self, step: &Step, bound: f64) {
        let (dim, before) = (step.dim as usize, self.lowest);
        (self.lowest, self.top) = (step.lowest as usize, step.top as usize);
        let start = self.saved_clocks.len() - (self.top - self.lowest);
        self.clocks[self.lowest..self.top].copy_from_slice(&self.saved_clocks[start..]);
        self.saved_clocks.truncate(start);
        self.uncount_bound(dim, step.side, step.bound, bound);
        if before != self.lowest {
            self.refresh_level(before);
        }
        self.refresh_dim(dim, 0);
        self.are_rings_known = false;
    }

    pub(super) fn wind_to(&mut self, clocks: impl Iterator<Item = Clock>, lowest: u32) {
        self.lowest = lowest as usize;
        let mut n_clocks = 0;
        for (clock, new) in self.clocks[self.lowest..].iter_mut().zip(clocks) {
            *clock = new;
            n_clocks += 1;
        }
        self.top = self.lowest + n_clocks - 1;
    }

    /// Recomputes the lengths of the live clocks from one on in one dimension.
    #[inline]
    pub(super) fn refresh_dim(&mut self, dim: usize, first: usize) {
        let first = self.lowest.max(first);
        let mut inner = (first > self.lowest).then(|| self.clipped(first - 1, dim));
        for level in first..=self.top {
            let outer = self.clipped(level, dim);
            self.parts[level].set(dim, length_around(inner, outer));
            inner = Some(outer);
        }
    }

    /// Recomputes the lengths of all live clocks.
    pub(super) fn refresh_all(&mut self) {
        let Self { bounds, boxes, parts, n_dims, lowest, top, .. } = self;
        let (upper, lower) = bounds.split_at(*n_dims);
        if lowest == top {
            return parts[*top].fill_with(|dim| whole(lower[dim], upper[dim]));
        }
        for (dim, (lower, upper)) in lower.iter().zip(upper).enumerate() {
            let mut inner = None;
            for (part, bounds) in parts[*lowest..*top].iter_mut().zip(&boxes[*lowest..*top]) {
                let outer = (lower.max(bounds.lower()[dim]), upper.min(bounds.upper()[dim]));
                part.put(dim, length_around(inner, outer));
                inner = Some(outer);
            }
            parts[*top].put(dim, length_around(inner, (*lower, *upper)));
        }
        parts[*lowest..=*top].iter_mut().for_each(Sides::sum_all);
    }

    /// Recomputes all lengths of one clock: what is inside it has changed.
    pub(super) fn refresh_level(&mut self, level: usize) {
        if self.has_one_clock() {
            let (upper, lower) = self.bounds.split_at(self.n_dims);
            self.parts[level].fill_with(|dim| whole(lower[dim], upper[dim]));
            return;
        }
        let (upper, lower) = self.bounds.split_at(self.n_dims);
        let clip =
            |bounds: &Bounds, dim: usize| (lower[dim].max(bounds.lower()[dim]), upper[dim].min(bounds.upper()[dim]));
        let outer_box = (level < self.top).then(|| &self.boxes[level]);
        let outer = |dim: usize| outer_box.map_or((lower[dim], upper[dim]), |bounds| clip(bounds, dim));
        if level == self.lowest {
            self.parts[level].fill_with(|dim| whole(outer(dim).0, outer(dim).1));
            return;
        }
        let inner = &self.boxes[level - 1];
        self.parts[level].fill_with(|dim| Gaps { outer: outer(dim), inner: clip(inner, dim) }.length());
    }
}

/// The length of an interval around an inner one, or the whole of it without.
#[inline]
fn length_around(inner: Option<(f64, f64)>, outer: (f64, f64)) -> f64 {
    match inner {
        None => whole(outer.0, outer.1),
        Some(inner) => Gaps { outer, inner }.length(),
    }
}

/// Whether a bound on a side of a cell lies outside a box. What lies below a cut has it for its upper bound.
#[inline]
fn outside_of(bounds: &Bounds, dim: usize, side: Side) -> impl Fn(f64) -> bool {
    let (lower, upper) = (bounds.lower()[dim], bounds.upper()[dim]);
    move |bound| match side {
        Side::Below => bound > upper,
        Side::Above => bound < lower,
    }
}

/// The root key of a box of the ladder; the first box has the tree's own.
fn level_key(key: NodeKey, level: usize) -> NodeKey {
    if level == 0 { key } else { key.fork(level as u64) }
}
