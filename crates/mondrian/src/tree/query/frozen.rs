//! Cuts that a tree does not store, drawn again from the key: those of frozen cells, and those inside a chain.
//!
//! Rows that come to a frozen cell stay with its point until a cut parts them; rows that leave a chain stay with the
//! chain's last cell until then. Most such cells have a row or two, and a draw is a sequence of dependent steps. So cells
//! are put aside with the rows in them, and several are drawn from at a time: a classifier of letters predicts in 0.89
//! instead of 1.43 µs per row and tree (docs/benchmarks/tree.md, section d).

#![expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]

use crate::process::{Clock, Cut, NarrowBounds, NarrowCell, Side};
use crate::simd::partition::partition_by_swaps;
use crate::simd::vectorise;
use crate::tree::build::small::draws::{ABREAST, Cuts};
use crate::tree::query::traverse::{Exit, Split, Visitor};
use crate::tree::{Child, CodedRows};

/// Cells that wait at most.
pub(crate) const SLOTS: usize = 2 * ABREAST;

/// A cut that was drawn, the cell's interval in its dimension, and the point that the cell follows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drawn<'a> {
    pub(crate) cut: Cut,
    pub(crate) interval: (f64, f64),
    pub(crate) target: &'a [f64],
}

/// Rows in a cell whose cuts are drawn. The cell follows a target: a frozen cell its point.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resumed<S> {
    /// The part of the tree that has the rows.
    pub(crate) child: Child,
    /// Training rows in the cell.
    pub(crate) count: u32,
    /// Whether rows may lie at the target itself, from which they never part.
    pub(crate) is_point: bool,
    /// Where the rows are in the order of all rows.
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) state: S,
}

impl<S: Copy> Resumed<S> {
    /// Passes a cut: rows on the other side of it leave. The side of the target.
    #[inline(always)]
    pub(crate) fn pass<V: Visitor<State = S>>(
        &mut self,
        Drawn { cut, interval, target }: Drawn<'_>,
        rows: &CodedRows<'_>,
        order: &mut [u32],
        scratch: &mut Vec<u32>,
        visitor: &mut V,
    ) -> Side {
        let dim = cut.dim as usize;
        let side = Side::of(target[dim], cut.location);
        let exit = Exit { time: cut.time, parent: self.child };
        let Self { start, end, .. } = *self;
        if V::SEES_EVERY_CUT {
            let n_below = match &mut order[start..end] {
                [row] => usize::from(rows.is_below(*row, dim, cut.location)),
                order => rows.part(order, scratch, dim, cut.location, V::KEEPS_ORDER),
            };
            let mut counts = [0; 2];
            counts[side.index()] = self.count;
            let split = Split { cut, node: None, rows: &order[start..end], n_below, start, counts, interval };
            let [stays, leaves] = visitor.cut_off(&split, side, self.state);
            // By places in an array: which side it is cannot be predicted, so a branch would cost more.
            let (ends, at) = ([start, start + n_below, end], side.index());
            let left = ends[1 - at]..ends[2 - at];
            if !left.is_empty() {
                visitor.leave(&order[left], exit, leaves);
            }
            (self.start, self.end, self.state) = (ends[at], ends[at + 1], stays);
            return side;
        }
        let order = &mut order[start..end];
        let stays = |row: u32| rows.is_below(row, dim, cut.location) == (side == Side::Below);
        let n_left = partition_by_swaps(order, stays);
        if n_left < order.len() {
            visitor.leave(&order[n_left..], exit, self.state);
        }
        self.end = start + n_left;
        if n_left > 0 && std::mem::take(&mut self.is_point) {
            // After the first cut, since it takes most rows away: fewer rows are compared in all dimensions.
            let n_differing = partition_by_swaps(&mut order[..n_left], |row| rows.row(row) != &target[..rows.n_dims()]);
            if n_differing < n_left {
                visitor.land(&order[n_differing..n_left], self.child, self.state);
            }
            self.end = start + n_differing;
        }
        side
    }
}

/// What a cell follows that is put aside.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target<'a, 'c> {
    /// A training point, whose memory was asked for.
    Point(&'a [f64]),
    /// A corner of the cell that a chain ends in.
    Corner(&'c [f64]),
}

/// Cells that wait for their cuts to be drawn together.
#[derive(Debug)]
pub(crate) struct Waiting<'a, S> {
    resumed: Vec<(usize, Resumed<S>)>,
    /// Slots of no cell.
    free: Vec<usize>,
    /// Slots of cells from which no cut was drawn yet, with the points that are still to be read.
    new: Vec<(usize, Option<&'a [f64]>)>,
    /// By slot: the cells, and what they follow.
    cells: Vec<NarrowCell>,
    targets: Vec<[f64; NarrowCell::MOST_DIMS]>,
    cuts: Cuts,
    scratch: Vec<u32>,
}

impl<'a, S: Copy> Waiting<'a, S> {
    pub(crate) fn new() -> Self {
        Self {
            resumed: Vec::with_capacity(SLOTS),
            free: (0..SLOTS).collect(),
            new: Vec::with_capacity(SLOTS),
            cells: vec![NarrowCell::default(); SLOTS],
            targets: vec![[0.0; NarrowCell::MOST_DIMS]; SLOTS],
            cuts: Cuts::default(),
            scratch: Vec::new(),
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// Puts a cell aside, with its rows and what it follows. A point is read later, when its memory has come.
    ///
    /// # Panics
    /// If it [is full](Waiting::is_full).
    #[inline]
    pub(crate) fn put<V: Visitor<State = S>>(
        &mut self,
        bounds: &NarrowBounds,
        clock: Clock,
        (mut resumed, rows): (Resumed<S>, &[u32]),
        target: Target<'a, '_>,
        visitor: &mut V,
    ) {
        let slot = self.free.pop().expect("a full set is drawn from before more is put");
        self.cells[slot].set_to(bounds, clock);
        let point = match target {
            Target::Point(point) => Some(point),
            Target::Corner(corner) => {
                self.targets[slot][..corner.len()].copy_from_slice(corner);
                None
            }
        };
        self.new.push((slot, point));
        resumed.state = visitor.put_aside(rows, resumed.state, slot);
        self.resumed.push((slot, resumed));
    }

    /// Completes the cells that were put aside.
    #[inline(always)]
    fn complete_new(&mut self) {
        for (slot, point) in self.new.drain(..) {
            self.cells[slot].sum_lengths();
            if let Some(point) = point {
                self.targets[slot][..point.len()].copy_from_slice(point);
            }
        }
    }

    /// Draws cuts until fewer cells are left than are drawn from at a time, or none.
    pub(crate) fn run<V: Visitor<State = S>>(
        &mut self,
        rows: &CodedRows<'_>,
        lifetime: f64,
        order: &mut [u32],
        visitor: &mut V,
        all: bool,
    ) {
        vectorise(
            #[inline(always)]
            || {
                self.complete_new();
                while self.resumed.len() >= if all { 1 } else { ABREAST } {
                    let n = self.resumed.len().min(ABREAST);
                    for at in 0..n {
                        self.cuts.cells[at] = self.resumed[at].0;
                    }
                    self.cuts.find(n, &self.cells);
                    // Backwards, so that removal by a swap with the last is safe.
                    for at in (0..n).rev() {
                        self.step(at, rows, lifetime, order, visitor);
                    }
                }
            },
        );
    }

    /// Passes the cut of one cell, and removes the cell if it has no rows left.
    #[inline(always)]
    fn step<V: Visitor<State = S>>(
        &mut self,
        at: usize,
        rows: &CodedRows<'_>,
        lifetime: f64,
        order: &mut [u32],
        visitor: &mut V,
    ) {
        let ((slot, resumed), cut) = (&mut self.resumed[at], self.cuts.cut(at));
        let slot = *slot;
        if cut.time <= lifetime && cut.time < f64::INFINITY {
            let cell = &mut self.cells[slot];
            let interval = cell.bounds().interval(cut.dim as usize);
            let drawn = Drawn { cut, interval, target: &self.targets[slot] };
            let side = resumed.pass(drawn, rows, order, &mut self.scratch, visitor);
            if resumed.start < resumed.end {
                return cell.enter(&cut, side);
            }
        } else {
            visitor.land(&order[resumed.start..resumed.end], resumed.child, resumed.state);
        }
        self.resumed.swap_remove(at);
        self.free.push(slot);
    }
}
