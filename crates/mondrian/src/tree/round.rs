//! The next cuts of several cells, drawn side by side.
//!
//! A draw is a chain of steps each of which waits for the one before: keys, logarithm, division, the way down the tree of
//! sums. So one kind of step is done for all cells before the next, with no branch in between that could be guessed wrong: a
//! machine then works at as many cells as it has room for.

#![expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]

use super::compare::Compare;
use super::lanes::Lanes;
use super::{Child, Codes, PointStore};
use crate::process::{Cut, Draw, Reduced};

/// Lanes that take part in a round. More would find no room in the machine, nor in the cache nearest to it.
pub(super) const ABREAST: usize = 8;

/// What a round finds out, by place in the order of the lanes. Masks are all bits or none.
#[derive(Debug)]
pub(super) struct Round {
    /// The current cell of each lane, and its points.
    cells: [usize; ABREAST],
    points: [u32; ABREAST],
    draws: [Draw; ABREAST],
    rates: [f64; ABREAST],
    births: [f64; ABREAST],
    /// Waiting times, with the arithmetic left.
    r: [f64; ABREAST],
    exponents: [f64; ABREAST],
    logs: [f64; ABREAST],
    /// The cells' next cuts.
    times: [f64; ABREAST],
    dims: [u32; ABREAST],
    locations: [f64; ABREAST],
    codes: [i16; ABREAST],
    /// The points on both sides of the cut.
    pub(super) sides: [[u32; ABREAST]; 2],
    /// The sides' children as far as they are known: the mark of a single point, or that of no points.
    pub(super) children: [[u32; ABREAST]; 2],
    /// Masks: a side has one point; several.
    pub(super) is_single: [[u32; ABREAST]; 2],
    pub(super) is_several: [[u32; ABREAST]; 2],
    /// Masks: both sides have points; several; neither has several.
    pub(super) separates: [u32; ABREAST],
    pub(super) parts: [u32; ABREAST],
    pub(super) ends: [u32; ABREAST],
    /// Numbers of points.
    pub(super) counts: [u32; ABREAST],
}

impl Default for Round {
    fn default() -> Self {
        Self {
            cells: [0; ABREAST],
            points: [0; ABREAST],
            draws: [Draw::default(); ABREAST],
            rates: [0.0; ABREAST],
            births: [0.0; ABREAST],
            r: [0.0; ABREAST],
            exponents: [0.0; ABREAST],
            logs: [0.0; ABREAST],
            times: [0.0; ABREAST],
            dims: [0; ABREAST],
            locations: [0.0; ABREAST],
            codes: [0; ABREAST],
            sides: [[0; ABREAST]; 2],
            children: [[0; ABREAST]; 2],
            is_single: [[0; ABREAST]; 2],
            is_several: [[0; ABREAST]; 2],
            separates: [0; ABREAST],
            parts: [0; ABREAST],
            ends: [0; ABREAST],
            counts: [0; ABREAST],
        }
    }
}

#[inline(always)]
fn mask(is: bool) -> u32 {
    u32::from(is).wrapping_neg()
}

impl Round {
    /// Lets the first `n` lanes go on to their cells and finds the cuts there.
    #[inline(always)]
    pub(super) fn run(&mut self, n: usize, lanes: &mut Lanes, by: impl Compare, codes: &Codes, store: &PointStore) {
        let n = n.min(ABREAST);
        for at in 0..n {
            self.cells[at] = lanes.enter(at);
        }
        for at in 0..n {
            let cell = &lanes.cells[self.cells[at]];
            self.draws[at] = cell.draw();
            self.rates[at] = cell.rate();
            self.births[at] = cell.birth();
        }
        for at in 0..n {
            Reduced { r: self.r[at], exponent: self.exponents[at], log: self.logs[at] } =
                self.draws[at].reduced_exponential();
        }
        // By vectors, whether all lanes are in use or not.
        for at in 0..ABREAST {
            let exponential = Reduced { r: self.r[at], exponent: self.exponents[at], log: self.logs[at] }.minus_log();
            self.times[at] = self.births[at] + exponential / self.rates[at];
        }
        for at in 0..n {
            let place = self.draws[at].uniform() * self.rates[at];
            let (dim, within) = lanes.cells[self.cells[at]].pick(place);
            (self.dims[at], self.locations[at]) = (dim as u32, within);
        }
        for at in 0..n {
            let dim = self.dims[at] as usize;
            self.locations[at] = lanes.cells[self.cells[at]].locate(dim, self.locations[at]);
            self.codes[at] = codes.signed(dim, self.locations[at]);
        }
        for at in 0..n {
            let lane = lanes.lane(at);
            let (mut below, is_same) = by.compare(lanes.codes_of(lane, self.dims[at]), self.codes[at]);
            if is_same {
                below = lanes.compare_exactly(lane, &self.cut(at), store);
            }
            self.points[at] = lane.points;
            self.sides[0][at] = below;
        }
        self.tell_apart();
    }

    /// The next cut of a lane's cell. Where none ever comes, its time is no number or infinite, and the rest means nothing.
    #[inline(always)]
    pub(super) fn cut(&self, at: usize) -> Cut {
        Cut { time: self.times[at], dim: self.dims[at], level: 0, location: self.locations[at] }
    }

    /// What the cuts make of the cells, all at once.
    #[inline(always)]
    fn tell_apart(&mut self) {
        for at in 0..ABREAST {
            let points = self.points[at];
            let sides = [points & self.sides[0][at], points & !self.sides[0][at]];
            let is_several = sides.map(|side| mask(side & side.wrapping_sub(1) != 0));
            let is_empty = sides.map(|side| mask(side == 0));
            for side in 0..2 {
                let is_single = !(is_several[side] | is_empty[side]);
                self.sides[side][at] = sides[side];
                self.is_several[side][at] = is_several[side];
                self.is_single[side][at] = is_single;
                self.children[side][at] =
                    Child::EMPTY.to_word() & is_empty[side] | Child::single(0).to_word() & is_single;
            }
            self.separates[at] = !(is_empty[0] | is_empty[1]);
            self.parts[at] = is_several[0] & is_several[1];
            self.ends[at] = !(is_several[0] | is_several[1]);
            self.counts[at] = points.count_ones();
        }
    }
}
