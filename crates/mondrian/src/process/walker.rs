//! Walking down any process: a keyed one, one seen through a window, one extended to a larger box.
//!
//! Restriction and extension are kept as operations, not as lists of cuts, and walked through. So a
//! restricted or extended sample is still the whole process: its lifetime can be raised later, and the
//! operations compose exactly (report, "Self-consistency" and "Conditional Mondrians").

use crate::process::gaps::{Gaps, whole};
use crate::process::{Bounds, Cell, Cut, NodeKey, Side, Sides};

/// The current cell of a walk, as for [`Cell`]: `enter` takes the cut that `next_cut` gave last in this cell.
#[derive(Debug, Clone)]
pub(crate) enum Walker {
    /// A keyed process on its own boxes.
    Keyed(Box<Cell>),
    /// A process restricted to a window.
    Restricted(Box<Restricted>),
    /// A process extended to a larger box.
    Extended(Box<Extended>),
}

impl Walker {
    pub(crate) fn restricted(inner: Self, window: Bounds) -> Self {
        Self::Restricted(Box::new(Restricted::new(inner, window)))
    }

    pub(crate) fn extended(inner: Self, outer: &Bounds, key: NodeKey, level: u32) -> Self {
        Self::Extended(Box::new(Extended::new(inner, outer, key, level)))
    }

    pub(crate) fn n_dims(&self) -> usize {
        match self {
            Self::Keyed(cell) => cell.lower().len(),
            Self::Restricted(restricted) => restricted.window.n_dims(),
            Self::Extended(extended) => extended.lower.len(),
        }
    }

    /// The cell's interval in one dimension.
    #[inline]
    pub(crate) fn interval(&self, dim: usize) -> (f64, f64) {
        match self {
            Self::Keyed(cell) => (cell.lower()[dim], cell.upper()[dim]),
            Self::Restricted(restricted) => restricted.interval(dim),
            Self::Extended(extended) => (extended.lower[dim], extended.upper[dim]),
        }
    }

    /// The cell's next cut if it comes by `limit`.
    #[inline]
    pub(crate) fn next_cut(&mut self, limit: f64) -> Option<Cut> {
        match self {
            Self::Keyed(cell) => cell.next_cut_until(limit),
            Self::Restricted(restricted) => restricted.next_cut(limit),
            Self::Extended(extended) => extended.next_cut(limit),
        }
    }

    /// Goes to one side of the cell's next cut.
    #[inline]
    pub(crate) fn enter(&mut self, cut: &Cut, side: Side) {
        match self {
            Self::Keyed(cell) => cell.enter(cut, side),
            Self::Restricted(restricted) => restricted.enter(cut, side),
            Self::Extended(extended) => extended.enter(cut, side),
        }
    }

    /// Goes back to the cell before the last `enter`.
    #[inline]
    pub(crate) fn leave(&mut self) {
        match self {
            Self::Keyed(cell) => cell.leave(),
            Self::Restricted(restricted) => restricted.leave(),
            Self::Extended(extended) => extended.leave(),
        }
    }
}

/// A process seen through a window: cuts that miss the window are walked past.
#[derive(Debug, Clone)]
pub(crate) struct Restricted {
    inner: Walker,
    window: Bounds,
    /// Dimensions in which the window's part of the cell has a positive length.
    n_open: usize,
    /// One entry per step down, and one for the root.
    steps: Vec<WindowStep>,
}

/// A step down of a [`Restricted`] walk that can be undone.
#[derive(Debug, Clone, Copy)]
struct WindowStep {
    /// Steps of the inner walk that it took, those past missing cuts included.
    n_inner: usize,
    n_open_before: usize,
}

impl Restricted {
    fn new(inner: Walker, window: Bounds) -> Self {
        let mut restricted = Self { inner, n_open: 0, steps: Vec::new(), window };
        restricted.n_open = (0..restricted.window.n_dims()).filter(|dim| restricted.is_open(*dim)).count();
        restricted.steps.push(WindowStep { n_inner: 0, n_open_before: restricted.n_open });
        restricted
    }

    #[inline]
    fn interval(&self, dim: usize) -> (f64, f64) {
        let (lo, hi) = self.inner.interval(dim);
        (lo.max(self.window.lower()[dim]), hi.min(self.window.upper()[dim]))
    }

    #[inline]
    fn is_open(&self, dim: usize) -> bool {
        let (lo, hi) = self.interval(dim);
        lo < hi
    }

    fn next_cut(&mut self, limit: f64) -> Option<Cut> {
        // A single point is never cut; without this the walk would follow the inner process to the end of time.
        while self.n_open > 0 {
            let cut = self.inner.next_cut(limit)?;
            let (lo, hi) = self.interval(cut.dim as usize);
            // Then both sides hold points of the window, since x ≤ cut lies below.
            if lo <= cut.location && cut.location < hi {
                return Some(cut);
            }
            self.inner.enter(&cut, Side::of(hi, cut.location));
            self.steps.last_mut().expect("the root's entry stays").n_inner += 1;
        }
        None
    }

    fn enter(&mut self, cut: &Cut, side: Side) {
        let dim = cut.dim as usize;
        self.steps.push(WindowStep { n_inner: 1, n_open_before: self.n_open });
        self.inner.enter(cut, side);
        // The window was open here, or the cut would have missed it.
        self.n_open -= usize::from(!self.is_open(dim));
    }

    fn leave(&mut self) {
        let step = self.steps.pop().expect("leave follows enter");
        for _ in 0..step.n_inner {
            self.inner.leave();
        }
        self.n_open = step.n_open_before;
    }
}

/// A process extended to a larger box: its own cuts go through the whole cell, and between them a keyed clock makes
/// cuts that miss it.
///
/// Report, "Conditional Mondrians", with the sign and the branches of docs/corrections.md, items 1 and 2: the
/// clock's rate is LD(cell) − LD(its part in the inner box); if it rings after the inner process's next cut,
/// that cut goes through; if before, the cell is cut where the inner box is missed.
#[derive(Debug, Clone)]
pub(crate) struct Extended {
    inner: Walker,
    /// Whether the cell still meets the inner box.
    holds_inner: bool,
    lower: Vec<f64>,
    upper: Vec<f64>,
    /// The lengths along which a cut misses the inner box.
    gaps: Sides,
    key: NodeKey,
    birth: f64,
    /// The number of this clock: those of the inner process are smaller.
    level: u32,
    steps: Vec<OuterStep>,
}

/// A step down of an [`Extended`] walk that can be undone.
#[derive(Debug, Clone, Copy)]
struct OuterStep {
    dim: u32,
    side: Side,
    /// Whether the inner walk took the step too.
    is_inner: bool,
    held_inner: bool,
    bound: f64,
    birth: f64,
    key: NodeKey,
}

impl Extended {
    fn new(inner: Walker, outer: &Bounds, key: NodeKey, level: u32) -> Self {
        let mut extended = Self {
            inner,
            holds_inner: true,
            lower: outer.lower().to_vec(),
            upper: outer.upper().to_vec(),
            gaps: Sides::new(&vec![0.0; outer.n_dims()]),
            key,
            birth: 0.0,
            level,
            steps: Vec::new(),
        };
        extended.measure_all();
        extended
    }

    fn next_cut(&mut self, limit: f64) -> Option<Cut> {
        let rate = self.gaps.total();
        let draw = self.key.draw(0);
        let time = if rate > 0.0 { self.birth + draw.exponential() / rate } else { f64::INFINITY };
        if self.holds_inner
            && let Some(cut) = self.inner.next_cut(limit.min(time))
        {
            return Some(cut);
        }
        if time > limit || time == f64::INFINITY {
            return None;
        }
        let (dim, within) = self.gaps.pick(draw.uniform() * rate);
        let location = match self.inner_gaps(dim) {
            Some(gaps) => gaps.locate(within),
            None => crate::process::gaps::clamped(self.lower[dim], self.upper[dim], within),
        };
        Some(Cut { time, dim: dim as u32, level: self.level, location })
    }

    fn enter(&mut self, cut: &Cut, side: Side) {
        let dim = cut.dim as usize;
        let is_inner = cut.level < self.level;
        let held_inner = self.holds_inner;
        if is_inner {
            self.inner.enter(cut, side);
        } else if held_inner {
            // The cut misses the inner box, which so lies on the side of its upper bound.
            self.holds_inner = Side::of(self.inner.interval(dim).1, cut.location) == side;
        }
        let bound = match side {
            Side::Below => std::mem::replace(&mut self.upper[dim], cut.location),
            Side::Above => std::mem::replace(&mut self.lower[dim], cut.location),
        };
        let (birth, key) = (self.birth, self.key);
        self.steps.push(OuterStep { dim: cut.dim, side, is_inner, held_inner, bound, birth, key });
        self.birth = cut.time;
        self.key = key.child(side);
        self.measure(dim, held_inner);
    }

    fn leave(&mut self) {
        let step = self.steps.pop().expect("leave follows enter");
        if step.is_inner {
            self.inner.leave();
        }
        let dim = step.dim as usize;
        match step.side {
            Side::Below => self.upper[dim] = step.bound,
            Side::Above => self.lower[dim] = step.bound,
        }
        (self.birth, self.key) = (step.birth, step.key);
        let held_inner = std::mem::replace(&mut self.holds_inner, step.held_inner);
        self.measure(dim, held_inner);
    }

    /// The cell's interval around its part in the inner box, while it has one.
    #[inline]
    fn inner_gaps(&self, dim: usize) -> Option<Gaps> {
        let outer = (self.lower[dim], self.upper[dim]);
        self.holds_inner.then(|| Gaps { outer, inner: self.inner.interval(dim) })
    }

    #[inline]
    fn gap_length(&self, dim: usize) -> f64 {
        self.inner_gaps(dim).map_or_else(|| whole(self.lower[dim], self.upper[dim]), |gaps| gaps.length())
    }

    /// Recomputes the lengths after a step: one dimension's, or all if the inner box was lost or found.
    fn measure(&mut self, dim: usize, held_inner: bool) {
        if held_inner == self.holds_inner {
            self.gaps.set(dim, self.gap_length(dim));
        } else {
            self.measure_all();
        }
    }

    fn measure_all(&mut self) {
        let lengths: Vec<f64> = (0..self.lower.len()).map(|dim| self.gap_length(dim)).collect();
        self.gaps.set_all(&lengths);
    }
}
