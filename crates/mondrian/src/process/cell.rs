//! The cell a walk down a tree is in: its bounds, its clocks, and its next cut.
//!
//! A cell of a process on nested boxes Θ₀ ⊂ Θ₁ ⊂ … ⊂ Θ_k has one exponential clock per box (report, "Conditional
//! Mondrians", with the signs of docs/corrections.md, items 1 and 2): clock j cuts the part of the cell that lies in
//! Θ_j but outside Θ_{j−1}, at a rate equal to the linear dimension of that part. The first clock to ring cuts the
//! cell. A cut by clock j misses Θ_{j−1}, so it leaves the clocks below j as they were; the clocks from j on
//! are started anew from child keys. So what happens inside Θ_j never depends on the boxes around it.
//!
//! Of those clocks few can ever ring. What lies inside Θ_j is never cut by a clock beyond j, and what lies outside Θ_j never by
//! a clock up to j, so only the clocks in between are kept; with one left the cell is that of a process on one box.
//!
//! A cell is walked, not copied: [`Cell::enter`] goes to a side of a cut and [`Cell::leave`] goes back, restoring
//! every number from a log. The linear dimension is a pure function of the bounds, whatever the walk was.

mod nested;

use std::sync::Arc;

use crate::process::gaps::{Gaps, clamped, whole};
use crate::process::{Bounds, Draw, NodeKey, Side, Sides};
use nested::Sunk;

/// A cut: when, across which dimension, where, and by which clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cut {
    /// Absolute time at which it appears.
    pub time: f64,
    /// The dimension it cuts.
    pub dim: u32,
    /// The box whose clock rang: 0 unless the root box was extended.
    pub level: u32,
    /// Its location: x ≤ location lies below.
    pub location: f64,
}

/// What one clock is started with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Clock {
    pub(crate) key: NodeKey,
    /// When the clock was started: the last cut of this cell's part of the box.
    pub(crate) birth: f64,
}

/// A cell further down, as what changes on the way to it.
pub(crate) struct Further<S, C> {
    /// Dimension, side and place of cuts that bound it and do not bound the cell above.
    pub(crate) sides: S,
    /// Its clocks, the innermost first.
    pub(crate) clocks: C,
    /// The innermost box that it still meets: the level of the first clock.
    pub(crate) lowest: u32,
}

/// A step down that can be undone: what it replaced.
#[derive(Debug, Clone, Copy)]
struct Step {
    bound: f64,
    /// The length that the outermost live clock cut along.
    length: f64,
    /// The outermost live clock; those inside it, if any, are in [`Cell::saved_clocks`].
    clock: Clock,
    dim: u32,
    lowest: u8,
    top: u8,
    side: Side,
}

/// The current cell of a walk; see the module.
#[derive(Debug, Clone)]
pub struct Cell {
    /// Upper bounds, which a cut moves for those below it, then lower ones: which of them moves is random, so a place in one
    /// array is computed where a choice between two would be guessed wrong half the time.
    bounds: Vec<f64>,
    n_dims: usize,
    /// The nested boxes, the outermost last. It never clips a cell.
    boxes: Arc<[Bounds]>,
    clocks: Vec<Clock>,
    /// For each clock the lengths it cuts along.
    parts: Vec<Sides>,
    /// When each clock rings and the draw that says so, where several are live and this is known: a cut leaves the clocks inside its
    /// own as they were.
    rings: Vec<(f64, Draw)>,
    are_rings_known: bool,
    /// The innermost box that the cell still meets.
    lowest: usize,
    /// The innermost box, from there on, that holds the whole cell: clocks further out never ring.
    top: usize,
    /// For each box, from the innermost that the cell meets to the one before `top`, how many of the cell's bounds lie
    /// outside it.
    outside: Vec<u32>,
    steps: Vec<Step>,
    saved_clocks: Vec<Clock>,
    /// What clocks and counts have still to follow.
    sunk: Sunk,
}

impl Cell {
    /// The whole of the outermost of `boxes`, each of which holds the one before it; tree `key`, time 0.
    ///
    /// # Panics
    /// Without boxes, or if their numbers of dimensions differ.
    pub fn root(boxes: &[Bounds], key: NodeKey) -> Self {
        Self::of_shared(&Arc::from(boxes), key)
    }

    /// As [`Cell::root`], without copying the boxes.
    ///
    /// # Panics
    /// Without boxes, or if their numbers of dimensions differ.
    pub fn of_shared(boxes: &Arc<[Bounds]>, key: NodeKey) -> Self {
        let n_dims = boxes.last().expect("at least one box").n_dims();
        assert!(boxes.iter().all(|b| b.n_dims() == n_dims), "boxes of one number of dimensions");
        let mut cell = Self {
            bounds: vec![0.0; 2 * n_dims],
            n_dims,
            boxes: Arc::clone(boxes),
            clocks: vec![Clock { key, birth: 0.0 }; boxes.len()],
            parts: vec![Sides::new(&vec![0.0; n_dims]); boxes.len()],
            rings: vec![(f64::INFINITY, Draw::default()); boxes.len()],
            are_rings_known: false,
            lowest: 0,
            top: boxes.len() - 1,
            outside: vec![0; boxes.len()],
            steps: Vec::new(),
            saved_clocks: Vec::new(),
            sunk: Sunk::default(),
        };
        cell.restart(key);
        cell.settle();
        cell
    }

    /// Whether the walk is on these very boxes, so that [`Cell::restart`] serves another tree on them.
    pub fn is_on(&self, boxes: &Arc<[Bounds]>) -> bool {
        Arc::ptr_eq(&self.boxes, boxes)
    }

    /// Goes to the root of tree `key` on the same boxes. Before [`Cell::next_cut`] the walk must [settle](Cell::settle).
    #[inline]
    pub fn restart(&mut self, key: NodeKey) {
        let outermost = &self.boxes[self.boxes.len() - 1];
        let (upper, lower) = self.bounds.split_at_mut(self.n_dims);
        upper.copy_from_slice(outermost.upper());
        lower.copy_from_slice(outermost.lower());
        self.lowest = 0;
        self.top = self.boxes.len() - 1;
        if self.top == 0 {
            self.clocks[0] = Clock { key, birth: 0.0 };
        } else {
            self.sunk.restart(Some(key));
        }
        self.steps.clear();
        self.saved_clocks.clear();
    }

    /// Goes to one side of `cut` for good: cheaper than [`Cell::enter`], but it cannot be left, and before
    /// [`Cell::next_cut`] the walk must [settle](Cell::settle).
    #[inline]
    pub fn sink(&mut self, cut: &Cut, side: Side) {
        if self.boxes.len() > 1 {
            return self.sink_in_boxes(cut, side);
        }
        self.move_bound(cut.dim as usize, side, cut.location);
        let clock = &mut self.clocks[0];
        *clock = Clock { key: clock.key.child(side), birth: cut.time };
    }

    /// As [`Cell::sink`] along cuts one after the other.
    #[inline]
    pub(crate) fn sink_all(&mut self, way: impl Iterator<Item = (Cut, Side)>) {
        if self.boxes.len() > 1 {
            way.for_each(|(cut, side)| self.sink_in_boxes(&cut, side));
            return;
        }
        let mut clock = self.clocks[0];
        for (cut, side) in way {
            self.move_bound(cut.dim as usize, side, cut.location);
            clock = Clock { key: clock.key.child(side), birth: cut.time };
        }
        self.clocks[0] = clock;
    }

    /// Whether a single clock is left.
    #[inline]
    fn has_one_clock(&self) -> bool {
        self.lowest == self.top
    }

    /// Computes the lengths of all sides, which [`Cell::restart`] and [`Cell::sink`] leave aside.
    pub fn settle(&mut self) {
        self.wind();
        self.refresh_all();
        self.are_rings_known = false;
        self.find_rings(self.lowest);
    }

    /// Lower bounds of the cell.
    pub fn lower(&self) -> &[f64] {
        &self.bounds[self.n_dims..]
    }

    /// Upper bounds of the cell.
    pub fn upper(&self) -> &[f64] {
        &self.bounds[..self.n_dims]
    }

    /// The key of the innermost clock that the cell still has: a name that stays the same when boxes are added around.
    ///
    /// Two cells of one tree never share it: a cut by this clock or one inside it gave them different keys, and a cut
    /// by one outside it left only one of them with this clock.
    pub fn innermost_key(&self) -> NodeKey {
        self.clocks[self.lowest].key
    }

    /// How many steps down from the root the cell is.
    pub fn depth(&self) -> usize {
        self.steps.len()
    }

    /// The next cut of this cell, `None` if it will never be cut.
    ///
    /// Report, "Mondrian process definition", lines 2 to 4, for each clock; the first to ring wins.
    #[inline]
    pub fn next_cut(&self) -> Option<Cut> {
        self.next_cut_until(f64::INFINITY)
    }

    /// The next cut of this cell if it comes at `lifetime` or before.
    ///
    /// Best used in place: a copy reads at once what was written number by number, and that has to wait for the cache.
    #[inline]
    pub fn next_cut_until(&self, lifetime: f64) -> Option<Cut> {
        if self.has_one_clock() {
            return self.cut_by(self.top, |time| time <= lifetime);
        }
        // Taken apart, so that the usual way above keeps its cut in registers.
        let Cut { time, dim, level, location } = self.first_of_clocks(lifetime)?;
        Some(Cut { time, dim, level, location })
    }

    /// When a clock rings, and the draw that says so; none if it never does.
    #[inline]
    fn ring(&self, level: usize) -> Option<(f64, Draw)> {
        let rate = self.parts[level].total();
        // Rate 0 means never; a rate so small that the waiting time overflows means the same.
        if rate <= 0.0 {
            return None;
        }
        let clock = &self.clocks[level];
        let draw = clock.key.draw(0);
        let time = clock.birth + draw.exponential() / rate;
        (time != f64::INFINITY).then_some((time, draw))
    }

    /// The cut of one clock, if the time it rings at is in time.
    #[inline]
    fn cut_by(&self, level: usize, is_in_time: impl Fn(f64) -> bool) -> Option<Cut> {
        let (time, draw) = self.ring(level)?;
        is_in_time(time).then(|| self.cut_at(level, time, draw))
    }

    /// The cut that a clock makes when it rings.
    #[inline]
    fn cut_at(&self, level: usize, time: f64, draw: Draw) -> Cut {
        let part = &self.parts[level];
        let (dim, within) = part.pick(draw.uniform() * part.total());
        let location = self.locate(level, dim, within);
        Cut { time, dim: dim as u32, level: level as u32, location }
    }

    /// The place `within` along the part of `dim` that clock `level` cuts.
    #[inline]
    fn locate(&self, level: usize, dim: usize, within: f64) -> f64 {
        let (lo, hi) = self.clipped(level, dim);
        if level == self.lowest {
            clamped(lo, hi, within)
        } else {
            Gaps { outer: (lo, hi), inner: self.clipped(level - 1, dim) }.locate(within)
        }
    }

    /// The cell's interval in dimension `dim` within box `level`.
    #[inline]
    fn clipped(&self, level: usize, dim: usize) -> (f64, f64) {
        if level >= self.top {
            return self.interval(dim);
        }
        let bounds = &self.boxes[level];
        let (lo, hi) = self.interval(dim);
        (lo.max(bounds.lower()[dim]), hi.min(bounds.upper()[dim]))
    }

    /// The cell's interval in dimension `dim`.
    #[inline]
    fn interval(&self, dim: usize) -> (f64, f64) {
        (self.bounds[self.n_dims + dim], self.bounds[dim])
    }

    /// Sets the bound that a cut in dimension `dim` gives to those on one side of it; what it was.
    #[inline]
    fn move_bound(&mut self, dim: usize, side: Side, location: f64) -> f64 {
        std::mem::replace(&mut self.bounds[side as usize * self.n_dims + dim], location)
    }

    /// The length that clock `level` cuts along in dimension `dim`.
    #[inline]
    fn part_length(&self, level: usize, dim: usize) -> f64 {
        let (lo, hi) = self.clipped(level, dim);
        if level == self.lowest {
            whole(lo, hi)
        } else {
            Gaps { outer: (lo, hi), inner: self.clipped(level - 1, dim) }.length()
        }
    }

    /// Goes to one side of `cut`, which must be this cell's next cut.
    #[inline]
    pub fn enter(&mut self, cut: &Cut, side: Side) {
        let dim = cut.dim as usize;
        if !self.has_one_clock() {
            return self.enter_with_clocks(cut, side);
        }
        let bound = self.move_bound(dim, side, cut.location);
        self.push_step(dim, side, bound);
        let clock = &mut self.clocks[self.top];
        *clock = Clock { key: clock.key.child(side), birth: cut.time };
        let length = self.part_length(self.top, dim);
        self.parts[self.top].set(dim, length);
    }

    /// Notes what a step replaces that has moved a bound and nothing else yet.
    #[inline]
    fn push_step(&mut self, dim: usize, side: Side, bound: f64) {
        let (lowest, top) = (self.lowest, self.top);
        let (clock, length) = (self.clocks[top], self.parts[top].get(dim));
        self.steps.push(Step { bound, length, clock, dim: dim as u32, lowest: lowest as u8, top: top as u8, side });
        if lowest < top {
            self.saved_clocks.extend_from_slice(&self.clocks[lowest..top]);
        }
    }

    /// Goes back to the cell before the last step down.
    ///
    /// # Panics
    /// At the root.
    #[inline]
    pub fn leave(&mut self) {
        let step = self.steps.pop().expect("leave follows enter");
        let (dim, top) = (step.dim as usize, step.top as usize);
        let bound = self.move_bound(dim, step.side, step.bound);
        self.clocks[top] = step.clock;
        if step.lowest == step.top {
            self.parts[top].set(dim, step.length);
            return;
        }
        self.rewind_clocks(&step, bound);
    }

    /// Goes down a way of cuts and sides at once, cheaper than one [`Cell::enter`] after the other. It cannot be left.
    pub fn jump(&mut self, way: &[(Cut, Side)]) {
        for (cut, side) in way {
            self.sink(cut, *side);
        }
        self.settle();
        self.steps.clear();
        self.saved_clocks.clear();
    }

    /// The lengths that the outermost clock cuts along.
    pub(crate) fn outermost_part(&self) -> &Sides {
        &self.parts[self.parts.len() - 1]
    }

    /// The live clocks, the innermost first, and the level of that one. With its bounds they say how the cell goes on.
    pub(crate) fn clocks(&self) -> (&[Clock], u32) {
        debug_assert!(!self.sunk.is_behind, "a walk that has sunk is wound first");
        (&self.clocks[self.lowest..=self.top], self.lowest as u32)
    }

    /// Whether it is a cell of a process on one box.
    pub(crate) fn is_on_one_box(&self) -> bool {
        self.boxes.len() == 1
    }

    /// As [`Cell::sink`] along all cuts on the way to a cell further down.
    pub(crate) fn sink_far<S, C>(&mut self, further: Further<S, C>)
    where
        S: Iterator<Item = (usize, Side, f64)>,
        C: Iterator<Item = Clock>,
    {
        for (dim, side, location) in further.sides {
            self.move_bound(dim, side, location);
        }
        self.wind_to(further.clocks, further.lowest);
        if self.boxes.len() > 1 {
            self.sunk.restart(None);
        }
    }

    /// As [`Cell::enter`] along all cuts on the way to a cell further down: a step for each side that changes, of which
    /// there is at least one.
    pub(crate) fn enter_far<S, C>(&mut self, further: Further<S, C>)
    where
        S: Iterator<Item = (usize, Side, f64)>,
        C: Iterator<Item = Clock>,
    {
        let has_one_clock = self.has_one_clock();
        for (dim, side, location) in further.sides {
            let bound = self.move_bound(dim, side, location);
            // All steps hold the clocks above, so that the last one undone restores them.
            self.push_step(dim, side, bound);
            if has_one_clock {
                let length = self.part_length(self.top, dim);
                self.parts[self.top].set(dim, length);
            } else {
                self.count_bound(dim, side, bound, location);
            }
        }
        self.wind_to(further.clocks, further.lowest);
        if !has_one_clock {
            self.settle();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(n_dims: usize) -> Bounds {
        Bounds::new(&vec![0.0; n_dims], &vec![1.0; n_dims]).unwrap()
    }

    fn ladder(first: &Bounds, rungs: u32) -> Vec<Bounds> {
        (0..=rungs).map(|rung| first.widened(rung).unwrap()).collect()
    }

    /// All cuts of the tree that lie in `window`, as (time, dim, location) bits in walk order, until `lifetime`.
    fn cuts_within(boxes: &[Bounds], key: NodeKey, window: &Bounds, lifetime: f64) -> Vec<(u64, u32, u64)> {
        let mut cell = Cell::root(boxes, key);
        let mut found = Vec::new();
        // None: leave. Some: enter that side.
        let mut todo: Vec<Option<(Cut, Side)>> = Vec::new();
        let mut arrived = true;
        loop {
            if arrived && let Some(cut) = cell.next_cut().filter(|cut| cut.time <= lifetime) {
                let dim = cut.dim as usize;
                let meets = (0..window.n_dims())
                    .all(|d| cell.lower()[d] < window.upper()[d] && cell.upper()[d] > window.lower()[d]);
                if meets && window.lower()[dim] < cut.location && cut.location < window.upper()[dim] {
                    found.push((cut.time.to_bits(), cut.dim, cut.location.to_bits()));
                }
                todo.extend([None, Some((cut, Side::Above)), None, Some((cut, Side::Below))]);
            }
            match todo.pop() {
                None => return found,
                Some(None) => {
                    cell.leave();
                    arrived = false;
                }
                Some(Some((cut, side))) => {
                    cell.enter(&cut, side);
                    arrived = true;
                }
            }
        }
    }

    #[test]
    fn boxes_outside_change_nothing_inside() {
        for (n_dims, lifetime) in [(1, 20.0), (2, 4.0), (3, 1.5)] {
            for index in 0..20 {
                let key = NodeKey::root(5, index);
                let first = unit(n_dims);
                let mut inner = cuts_within(&ladder(&first, 0), key, &first, lifetime);
                inner.sort_unstable();
                for rungs in 1..4 {
                    let boxes = ladder(&first, rungs);
                    let mut outer = cuts_within(&boxes, key, &first, lifetime);
                    outer.sort_unstable();
                    // A cut of the inner cell appears once for each piece the outer cuts left it in.
                    outer.dedup();
                    let mut unique = inner.clone();
                    unique.dedup();
                    assert_eq!(outer, unique, "D = {n_dims}, tree {index}, {rungs} rungs");
                }
            }
        }
    }

    #[test]
    fn leaving_restores_every_number() {
        let boxes = ladder(&unit(20), 3);
        let mut cell = Cell::root(&boxes, NodeKey::root(1, 2));
        let mut before = Vec::new();
        for step in 0..200 {
            let Some(cut) = cell.next_cut() else { break };
            before.push((cell.lower().to_vec(), cell.upper().to_vec(), cell.clocks().0.to_vec(), cell.clocks().1, cut));
            cell.enter(&cut, if step % 3 == 0 { Side::Below } else { Side::Above });
        }
        assert!(before.len() > 100);
        while let Some((lower, upper, clocks, lowest, cut)) = before.pop() {
            cell.leave();
            assert_eq!((cell.lower(), cell.upper()), (&lower[..], &upper[..]));
            assert_eq!((cell.clocks(), cell.next_cut()), ((&clocks[..], lowest), Some(cut)));
        }
    }

    #[test]
    fn a_box_of_one_point_is_never_cut() {
        let point = Bounds::new(&[3.0, 4.0], &[3.0, 4.0]).unwrap();
        assert_eq!(Cell::root(&[point], NodeKey::root(0, 0)).next_cut(), None);
        // One float wide, at a large offset: cannot be cut either.
        let thin = Bounds::new(&[1.7e9_f64.next_down()], &[1.7e9]).unwrap();
        assert_eq!(Cell::root(&[thin], NodeKey::root(0, 0)).next_cut(), None);
    }

    #[test]
    fn first_cut_has_the_law_of_the_definition() {
        // Box 1 × 2 × 5, 20 000 trees: E[time] = 1/8, so the mean has standard deviation (1/8)/√20000; the share of
        // dimension 2 is 5/8. Both rejected beyond 5 deviations: false alarm below 1.2e-6. A rate off by 5 % shows as z = 7.
        let bounds = Bounds::new(&[0.0; 3], &[1.0, 2.0, 5.0]).unwrap();
        let n = 20_000;
        let cuts: Vec<Cut> = (0..n)
            .map(|i| Cell::root(std::slice::from_ref(&bounds), NodeKey::root(11, i)).next_cut().unwrap())
            .collect();
        let mean = cuts.iter().map(|c| c.time).sum::<f64>() / n as f64;
        assert!((mean * 8.0 - 1.0).abs() < 5.0 / (n as f64).sqrt(), "{mean}");
        let share = cuts.iter().filter(|c| c.dim == 2).count() as f64 / n as f64;
        assert!((share - 0.625).abs() < 5.0 * (0.625 * 0.375 / n as f64).sqrt(), "{share}");
        let middle = cuts.iter().filter(|c| c.dim == 2).map(|c| c.location).sum::<f64>() / (share * n as f64);
        assert!((middle - 2.5).abs() < 5.0 * (25.0 / 12.0 / (share * n as f64)).sqrt(), "{middle}");
    }
}
