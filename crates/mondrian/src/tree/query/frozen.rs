//! Frozen cells, cut on side by side.
//!
//! Rows that come to a frozen cell stay with its point until a cut parts them, and most such cells have a row or two: a walk
//! would wait for one draw after the other. So cells are put aside with the rows that stand in them, and several are cut on
//! at a time.

#![expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]

use crate::process::{Cell, NarrowCell};
use crate::simd::partition::partition_by_swaps;
use crate::simd::vectorise;
use crate::tree::build::small::draws::{ABREAST, Cuts};
use crate::tree::{Child, CodedRows, Landing, PointStore};

/// Cells put aside, those that wait for their turn included.
const MOST: usize = 2 * ABREAST;

/// Rows in a frozen cell.
#[derive(Debug, Clone, Copy)]
struct Standing {
    /// The frozen cell and its point.
    child: Child,
    point: u32,
    /// Where the rows stand in the order of all rows. Those from `end` on have landed.
    start: usize,
    end: usize,
    is_first: bool,
    cell: usize,
}

/// Frozen cells that are cut on. Those in use come first.
#[derive(Debug)]
pub(crate) struct Resume {
    standing: [Standing; MOST],
    n_used: usize,
    cells: Vec<NarrowCell>,
    cuts: Cuts,
    /// Whether each cell's point and its first row lie below the cut: trips to memory that none should wait for another.
    are_below: [[bool; 2]; ABREAST],
}

/// Where rows land, and what they land in.
pub(crate) struct Landed<'a, F> {
    pub(crate) store: &'a PointStore,
    pub(crate) rows: &'a CodedRows<'a>,
    pub(crate) lifetime: f64,
    pub(crate) land: F,
}

impl Resume {
    /// For walks like this one, if they [can be](NarrowCell::can_be) cut side by side.
    pub(crate) fn of(cell: &Cell) -> Option<Self> {
        let none = |k| Standing { child: Child::EMPTY, point: 0, start: 0, end: 0, is_first: true, cell: k };
        NarrowCell::can_be(cell).then(|| Self {
            standing: std::array::from_fn(none),
            n_used: 0,
            cells: vec![NarrowCell::default(); MOST],
            cuts: Cuts::default(),
            are_below: [[false; 2]; ABREAST],
        })
    }

    pub(crate) fn is_full(&self) -> bool {
        self.n_used == MOST
    }

    /// Puts a frozen cell aside that the walk stands in, with rows.
    pub(crate) fn put(&mut self, walk: &Cell, child: Child, point: u32, (start, end): (usize, usize)) {
        let cell = self.standing[self.n_used].cell;
        self.standing[self.n_used] = Standing { child, point, start, end, is_first: true, cell };
        self.cells[cell].set(walk);
        self.n_used += 1;
    }

    /// Cuts cells on until there are too few to go on side by side, or all of them, and tells where their rows land.
    pub(crate) fn run(&mut self, order: &mut [u32], mut landed: Landed<'_, impl FnMut(&[u32], Landing)>, all: bool) {
        vectorise(
            #[inline(always)]
            || {
                while self.n_used >= if all { 1 } else { ABREAST } {
                    let n = self.n_used.min(ABREAST);
                    for at in 0..n {
                        self.cuts.cells[at] = self.standing[at].cell;
                    }
                    self.cuts.find(n, &self.cells);
                    for at in 0..n {
                        let (standing, cut) = (&self.standing[at], self.cuts.cut(at));
                        let is_row_below = landed.rows.is_below(order[standing.start], cut.dim as usize, cut.location);
                        let is_point_below = landed.store.point(standing.point)[cut.dim as usize] <= cut.location;
                        self.are_below[at] = [is_point_below, is_row_below];
                    }
                    // From behind: a cell that is done changes places with one that has had its turn or does not take part.
                    for at in (0..n).rev() {
                        if self.step(at, order, &mut landed) {
                            self.n_used -= 1;
                            self.standing.swap(at, self.n_used);
                        }
                    }
                }
            },
        );
    }

    /// Cuts a cell once; whether all its rows have landed.
    #[inline(always)]
    fn step(&mut self, at: usize, order: &mut [u32], landed: &mut Landed<'_, impl FnMut(&[u32], Landing)>) -> bool {
        let (standing, cut) = (&mut self.standing[at], self.cuts.cut(at));
        let Standing { child, point, start, end, .. } = *standing;
        let order = &mut order[start..end];
        if !(cut.time <= landed.lifetime && cut.time < f64::INFINITY) {
            (landed.land)(order, Landing::Seen(child));
            return true;
        }
        let (rows, [is_below, is_first_below]) = (landed.rows, self.are_below[at]);
        let stays = |row: u32| rows.is_below(row, cut.dim as usize, cut.location) == is_below;
        let n_left =
            if order.len() == 1 { usize::from(is_first_below == is_below) } else { partition_by_swaps(order, stays) };
        (landed.land)(&order[n_left..], Landing::Unseen { time: cut.time, parent: child });
        standing.end = start + n_left;
        if n_left == 0 {
            return true;
        }
        self.cells[standing.cell].enter(&cut, usize::from(!is_below));
        if std::mem::take(&mut standing.is_first) {
            // Rows at the point itself never part from it. Most others have by now, which saves a look at all of them.
            let frozen = landed.store.point(point);
            let n_differing = partition_by_swaps(&mut order[..n_left], |row| rows.row(row) != frozen);
            (landed.land)(&order[n_differing..n_left], Landing::Seen(child));
            standing.end = start + n_differing;
        }
        standing.start == standing.end
    }
}
