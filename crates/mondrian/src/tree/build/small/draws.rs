//! The next cuts of several cells, drawn together.
//!
//! A draw is a chain of steps each of which waits for the one before: keys, logarithm, division, the way down the tree of
//! sums. So one kind of step is done for all cells before the next, with no branch in between that could be
//! mispredicted: a machine then works at as many cells as it has room for.

#![expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]

use crate::process::{Cut, Draw, NarrowCell, Reduced};

/// Cells that are cut at a time. More would find no room in the machine, nor in the cache nearest to it.
pub(crate) const ABREAST: usize = 8;

/// The next cuts of up to [`ABREAST`] cells.
#[derive(Debug)]
pub(crate) struct Cuts {
    /// Where the cells lie.
    pub(crate) cells: [usize; ABREAST],
    draws: [Draw; ABREAST],
    rates: [f64; ABREAST],
    births: [f64; ABREAST],
    /// Waiting times, with the arithmetic left.
    r: [f64; ABREAST],
    exponents: [f64; ABREAST],
    logs: [f64; ABREAST],
    times: [f64; ABREAST],
    dims: [u32; ABREAST],
    locations: [f64; ABREAST],
}

impl Default for Cuts {
    fn default() -> Self {
        Self {
            cells: [0; ABREAST],
            draws: [Draw::default(); ABREAST],
            rates: [0.0; ABREAST],
            births: [0.0; ABREAST],
            r: [0.0; ABREAST],
            exponents: [0.0; ABREAST],
            logs: [0.0; ABREAST],
            times: [0.0; ABREAST],
            dims: [0; ABREAST],
            locations: [0.0; ABREAST],
        }
    }
}

impl Cuts {
    /// Finds the next cuts of the first `n` cells.
    #[inline(always)]
    pub(crate) fn find(&mut self, n: usize, cells: &[NarrowCell]) {
        self.find_places(n, cells);
        self.find_times();
    }

    /// Finds where the first `n` cells are cut, and all that [`Cuts::find_times`] needs.
    #[inline(always)]
    pub(crate) fn find_places(&mut self, n: usize, cells: &[NarrowCell]) {
        let n = n.min(ABREAST);
        for at in 0..n {
            let cell = &cells[self.cells[at]];
            self.draws[at] = cell.draw();
            self.rates[at] = cell.rate();
            self.births[at] = cell.birth();
        }
        for at in 0..n {
            Reduced { r: self.r[at], exponent: self.exponents[at], log: self.logs[at] } =
                self.draws[at].reduced_exponential();
        }
        for at in 0..n {
            let place = self.draws[at].uniform() * self.rates[at];
            let (dim, within) = cells[self.cells[at]].pick(place);
            (self.dims[at], self.locations[at]) = (dim as u32, within);
        }
        for at in 0..n {
            self.locations[at] = cells[self.cells[at]].locate(self.dims[at] as usize, self.locations[at]);
        }
    }

    /// Finds when. By vectors, whether there are as many cells or not, and not right after numbers were written one by one,
    /// for which a vector would have to wait.
    #[inline(always)]
    pub(crate) fn find_times(&mut self) {
        for at in 0..ABREAST {
            let exponential = Reduced { r: self.r[at], exponent: self.exponents[at], log: self.logs[at] }.minus_log();
            self.times[at] = self.births[at] + exponential / self.rates[at];
        }
    }

    /// The next cut of a cell. Where none ever comes, its time is no number or infinite, and the rest means nothing.
    #[inline(always)]
    pub(crate) fn cut(&self, at: usize) -> Cut {
        Cut { time: self.times[at], dim: self.dims[at], level: 0, location: self.locations[at] }
    }
}
