//! The cell a walk down a tree is in: its bounds, its clocks, and its next cut.
//!
//! A cell of a process on nested boxes Θ₀ ⊂ Θ₁ ⊂ … ⊂ Θ_k has one exponential clock per box (report, "Conditional
//! Mondrians", with the signs of docs/corrections.md, items 1 and 2): clock j cuts the part of the cell that lies in
//! Θ_j but outside Θ_{j−1}, at a rate equal to the linear dimension of that part. The first clock to ring cuts the
//! cell. A cut by clock j misses Θ_{j−1}, so it leaves the clocks below j as they were; the clocks from j on
//! are wound anew from child keys. So what happens inside Θ_j never depends on the boxes around it.
//!
//! A cell is walked, not copied: [`Cell::enter`] goes to a side of a cut and [`Cell::leave`] goes back, restoring
//! every number from a log. The linear dimension is a pure function of the bounds, whatever the walk was.

use crate::process::gaps::{Gaps, clamped, whole};
use std::sync::Arc;

use crate::process::{Bounds, NodeKey, Side, Sides};

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

/// What one clock is wound with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Clock {
    pub(crate) key: NodeKey,
    /// When the clock was wound: the last cut of this cell's part of the box.
    pub(crate) birth: f64,
}

/// A cell further down, as what changes on the way to it.
pub(crate) struct Further<S, C> {
    /// Dimension, side and place of cuts that bound it and do not bound the cell above.
    pub(crate) sides: S,
    /// Its clocks, the innermost first.
    pub(crate) clocks: C,
    /// The innermost box that it still meets.
    pub(crate) lowest: u32,
}

/// A step down that can be undone: what it replaced.
#[derive(Debug, Clone, Copy)]
struct Step {
    bound: f64,
    /// The length that the outermost clock cut along.
    length: f64,
    /// The outermost clock; those inside it, if any, are in [`Cell::saved_clocks`].
    clock: Clock,
    dim: u32,
    lowest: u32,
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
    /// The innermost box that the cell still meets.
    lowest: usize,
    steps: Vec<Step>,
    saved_clocks: Vec<Clock>,
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
            lowest: 0,
            steps: Vec::new(),
            saved_clocks: Vec::new(),
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
        for (level, clock) in self.clocks.iter_mut().enumerate() {
            *clock = Clock { key: level_key(key, level), birth: 0.0 };
        }
        self.lowest = 0;
        self.steps.clear();
        self.saved_clocks.clear();
    }

    /// Goes to one side of `cut` for good: cheaper than [`Cell::enter`], but it cannot be left, and before
    /// [`Cell::next_cut`] the walk must [settle](Cell::settle).
    #[inline]
    pub fn sink(&mut self, cut: &Cut, side: Side) {
        let (dim, level) = (cut.dim as usize, cut.level as usize);
        if self.clocks.len() > 1 && self.loses_inner(cut, side) {
            self.lowest = level;
        }
        self.move_bound(dim, side, cut.location);
        if let [clock] = &mut self.clocks[..] {
            *clock = Clock { key: clock.key.child(side), birth: cut.time };
            return;
        }
        for clock in &mut self.clocks[level..] {
            *clock = Clock { key: clock.key.child(side), birth: cut.time };
        }
    }

    /// Computes the lengths of all sides, which [`Cell::restart`] and [`Cell::sink`] leave aside.
    pub fn settle(&mut self) {
        for level in self.lowest..self.clocks.len() {
            self.refresh_level(level);
        }
    }

    /// Lower bounds of the cell.
    pub fn lower(&self) -> &[f64] {
        &self.bounds[self.n_dims..]
    }

    /// Upper bounds of the cell.
    pub fn upper(&self) -> &[f64] {
        &self.bounds[..self.n_dims]
    }

    /// When the cell came to be: the time of the cut that made it.
    pub fn birth(&self) -> f64 {
        // The outermost clock is wound anew by every cut.
        self.clocks[self.clocks.len() - 1].birth
    }

    /// The key of the outermost clock: a name for the cell that no other cell of the tree has.
    pub fn key(&self) -> NodeKey {
        self.clocks[self.clocks.len() - 1].key
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
        if self.clocks.len() == 1 {
            return self.cut_by(0, |time| time <= lifetime);
        }
        // Taken apart, so that the usual way above keeps its cut in registers.
        let Cut { time, dim, level, location } = self.first_of_clocks(lifetime)?;
        Some(Cut { time, dim, level, location })
    }

    #[cold]
    fn first_of_clocks(&self, lifetime: f64) -> Option<Cut> {
        let mut first: Option<Cut> = None;
        for level in self.lowest..self.clocks.len() {
            let is_first = |time| time <= lifetime && first.is_none_or(|cut| time < cut.time);
            first = self.cut_by(level, is_first).or(first);
        }
        first
    }

    /// The cut of one clock, if the time it rings at is in time.
    #[inline]
    fn cut_by(&self, level: usize, is_in_time: impl Fn(f64) -> bool) -> Option<Cut> {
        let part = &self.parts[level];
        let rate = part.total();
        // Rate 0 means never; a rate so small that the waiting time overflows means the same.
        if rate <= 0.0 {
            return None;
        }
        let clock = &self.clocks[level];
        let draw = clock.key.draw(0);
        let time = clock.birth + draw.exponential() / rate;
        if !is_in_time(time) || time == f64::INFINITY {
            return None;
        }
        let (dim, within) = part.pick(draw.uniform() * rate);
        let location = self.locate(level, dim, within);
        Some(Cut { time, dim: dim as u32, level: level as u32, location })
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
        if level + 1 == self.boxes.len() {
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

    /// Whether that side of a cut by an outer clock lies outside the boxes within.
    #[inline]
    fn loses_inner(&self, cut: &Cut, side: Side) -> bool {
        let level = cut.level as usize;
        // Such a cut misses the boxes inside: they lie on the side of their upper bound.
        level > self.lowest && Side::of(self.clipped(level - 1, cut.dim as usize).1, cut.location) != side
    }

    /// Goes to one side of `cut`, which must be this cell's next cut.
    #[inline]
    pub fn enter(&mut self, cut: &Cut, side: Side) {
        let (dim, outermost) = (cut.dim as usize, self.clocks.len() - 1);
        let loses_inner = outermost > 0 && self.loses_inner(cut, side);
        let bound = self.move_bound(dim, side, cut.location);
        let clock = self.clocks[outermost];
        let length = self.parts[outermost].get(dim);
        self.steps.push(Step { bound, length, clock, dim: cut.dim, lowest: self.lowest as u32, side });
        if outermost == 0 {
            self.clocks[0] = Clock { key: clock.key.child(side), birth: cut.time };
            let length = self.part_length(0, dim);
            self.parts[0].set(dim, length);
            return;
        }
        self.wind_clocks(cut, side, loses_inner);
    }

    /// The rest of a step down where the root box was extended.
    fn wind_clocks(&mut self, cut: &Cut, side: Side, loses_inner: bool) {
        let (level, outermost) = (cut.level as usize, self.clocks.len() - 1);
        self.saved_clocks.extend_from_slice(&self.clocks[..outermost]);
        for clock in &mut self.clocks[level..] {
            *clock = Clock { key: clock.key.child(side), birth: cut.time };
        }
        if loses_inner {
            self.lowest = level;
            self.refresh_level(level);
        }
        self.refresh_dim(cut.dim as usize);
    }

    /// Goes back to the cell before the last step down.
    ///
    /// # Panics
    /// At the root.
    #[inline]
    pub fn leave(&mut self) {
        let step = self.steps.pop().expect("leave follows enter");
        let (dim, outermost) = (step.dim as usize, self.clocks.len() - 1);
        self.move_bound(dim, step.side, step.bound);
        self.clocks[outermost] = step.clock;
        if outermost == 0 {
            self.parts[0].set(dim, step.length);
            return;
        }
        self.rewind_clocks(&step);
    }

    /// The rest of a step back where the root box was extended.
    fn rewind_clocks(&mut self, step: &Step) {
        let outermost = self.clocks.len() - 1;
        let start = self.saved_clocks.len() - outermost;
        self.clocks[..outermost].copy_from_slice(&self.saved_clocks[start..]);
        self.saved_clocks.truncate(start);
        let lowest = std::mem::replace(&mut self.lowest, step.lowest as usize);
        if lowest != self.lowest {
            self.refresh_level(lowest);
        }
        self.refresh_dim(step.dim as usize);
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

    /// The clocks, the innermost first, and the innermost box that the cell still meets. With its bounds they say how the
    /// cell goes on.
    pub(crate) fn clocks(&self) -> (&[Clock], u32) {
        (&self.clocks, self.lowest as u32)
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
    }

    /// As [`Cell::enter`] along all cuts on the way to a cell further down: a step for each side that changes, of which
    /// there is at least one.
    pub(crate) fn enter_far<S, C>(&mut self, further: Further<S, C>)
    where
        S: Iterator<Item = (usize, Side, f64)>,
        C: Iterator<Item = Clock>,
    {
        let outermost = self.clocks.len() - 1;
        // All steps hold the clocks above, so that the last one undone restores them.
        let (clock, lowest) = (self.clocks[outermost], self.lowest as u32);
        for (dim, side, location) in further.sides {
            let bound = self.move_bound(dim, side, location);
            let length = self.parts[outermost].get(dim);
            self.steps.push(Step { bound, length, clock, dim: dim as u32, lowest, side });
            self.saved_clocks.extend_from_slice(&self.clocks[..outermost]);
            if outermost == 0 {
                let length = self.part_length(0, dim);
                self.parts[0].set(dim, length);
            }
        }
        self.wind_to(further.clocks, further.lowest);
        if outermost > 0 {
            self.settle();
        }
    }

    fn wind_to(&mut self, clocks: impl Iterator<Item = Clock>, lowest: u32) {
        self.clocks.iter_mut().zip(clocks).for_each(|(clock, new)| *clock = new);
        self.lowest = lowest as usize;
    }

    /// Recomputes the lengths of all live clocks in one dimension.
    #[inline]
    fn refresh_dim(&mut self, dim: usize) {
        for level in self.lowest..self.clocks.len() {
            let length = self.part_length(level, dim);
            self.parts[level].set(dim, length);
        }
    }

    /// Recomputes all lengths of one clock: what is inside it has changed.
    fn refresh_level(&mut self, level: usize) {
        if let [part] = &mut self.parts[..] {
            let (upper, lower) = self.bounds.split_at(self.n_dims);
            part.fill_with(|dim| whole(lower[dim], upper[dim]));
            return;
        }
        let mut part = std::mem::take(&mut self.parts[level]);
        part.fill_with(|dim| self.part_length(level, dim));
        self.parts[level] = part;
    }
}

/// The root key of a box of the ladder; the first box has the tree's own.
fn level_key(key: NodeKey, level: usize) -> NodeKey {
    if level == 0 { key } else { key.fork(level as u64) }
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
            before.push((cell.lower().to_vec(), cell.upper().to_vec(), cell.key(), cell.birth(), cut));
            cell.enter(&cut, if step % 3 == 0 { Side::Below } else { Side::Above });
        }
        assert!(before.len() > 100);
        while let Some((lower, upper, key, birth, cut)) = before.pop() {
            cell.leave();
            assert_eq!((cell.lower(), cell.upper()), (&lower[..], &upper[..]));
            assert_eq!((cell.key(), cell.birth(), cell.next_cut()), (key, birth, Some(cut)));
        }
    }

    #[test]
    fn a_box_of_one_point_is_never_cut() {
        let point = Bounds::new(&[3.0, 4.0], &[3.0, 4.0]).unwrap();
        assert_eq!(Cell::root(&[point], NodeKey::root(0, 0)).next_cut(), None);
        // One float wide, at a large offset: cannot be parted either.
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
