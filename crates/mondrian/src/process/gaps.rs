//! The parts of an interval outside an inner interval: the locations of cuts that miss the inner one.
//!
//! Cells are half-open, (lo, hi]: x ≤ cut lies below. So a cut misses (inner_lo, inner_hi] if it falls in
//! [lo, inner_lo) or in [inner_hi, hi); at inner_lo itself it would separate a point of a closed inner box.

/// The two parts of an interval outside an inner one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gaps {
    pub(crate) outer: (f64, f64),
    pub(crate) inner: (f64, f64),
}

impl Gaps {
    /// Length below the inner interval. Without a float strictly between, no cut could separate anything there, and
    /// counting it would cut the cell for ever (docs/design.md, "Numerical care").
    #[inline]
    fn below(&self) -> f64 {
        let length = self.inner.0 - self.outer.0;
        // Mostly there is nothing below, or more than rounding can hide: see `whole`.
        let is_clear = length > self.inner.0.abs() * 1e-15 + f64::MIN_POSITIVE;
        if length > 0.0 && (is_clear || self.outer.0.next_up() < self.inner.0) { length } else { 0.0 }
    }

    #[inline]
    fn above(&self) -> f64 {
        self.outer.1 - self.inner.1
    }

    /// Length of both parts.
    #[inline]
    pub(crate) fn length(&self) -> f64 {
        self.below() + self.above()
    }

    /// The location `within` ∈ [0, length) along both parts, the lower one first.
    #[inline]
    pub(crate) fn locate(&self, within: f64) -> f64 {
        let (below, above) = (self.below(), self.above());
        if below > 0.0 && (within < below || above <= 0.0) {
            (self.outer.0 + within).clamp(self.outer.0, self.inner.0.next_down())
        } else {
            clamped(self.inner.1, self.outer.1, within - below)
        }
    }
}

/// The length of a whole interval: zero if it holds a single float, which cannot be cut further.
#[inline]
pub(crate) fn whole(lo: f64, hi: f64) -> f64 {
    let length = hi - lo;
    // Four units in the last place or more: the exact test, which is slower than all the rest, is not needed. By the
    // upper end: a lower one is often the float below 0, and products with such numbers take ten times as long.
    if length > hi.abs() * 1e-15 + f64::MIN_POSITIVE || lo.next_up() < hi { length } else { 0.0 }
}

/// lo + within, kept in [lo, hi) so that neither side of the cut is without its border.
#[inline]
pub(crate) fn clamped(lo: f64, hi: f64, within: f64) -> f64 {
    let place = lo + within;
    if place < hi { place.max(lo) } else { hi.next_down().max(lo) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_in_a_gap_misses_what_is_inside() {
        let gaps = Gaps { outer: (0.0, 4.0), inner: (1.0, 3.0) };
        assert_eq!(gaps.length(), 2.0);
        assert_eq!([0.25, 1.0, 1.5].map(|within| gaps.locate(within)), [0.25, 3.0, 3.5]);
        // Rounded up to the border, it stays out; off the end, it stays in.
        assert!(gaps.locate(1.0_f64.next_down()) < 1.0);
        assert!(gaps.locate(2.0) < 4.0);
        let below_only = Gaps { outer: (0.0, 3.0), inner: (1.0, 3.0) };
        assert!(below_only.locate(1.0) < 1.0);
    }

    #[test]
    fn a_gap_without_floats_counts_nothing() {
        let a = 1.7e9_f64;
        assert_eq!(Gaps { outer: (a.next_down(), a), inner: (a, a) }.length(), 0.0);
        assert_eq!(whole(a, a.next_up()), 0.0);
        assert_eq!(whole(0.0, 2.0), 2.0);
    }

    #[test]
    fn an_interval_counts_if_a_float_lies_within() {
        // Around powers of two, where neighbours are unevenly apart, on both sides of 0, and among the smallest floats.
        let ends = [0.0, 5e-324, f64::MIN_POSITIVE, 1e-290, 0.5, 1.0, 2.0, 1.7e9, 1e300];
        let starts = ends.iter().flat_map(|x| [-*x, *x]).flat_map(|x| [x.next_down(), x, x.next_up()]);
        for lo in starts {
            let mut hi = lo;
            for step in 0..12 {
                let expected = if step >= 2 { hi - lo } else { 0.0 };
                assert_eq!(whole(lo, hi), expected, "{lo:e} and {step} floats on");
                hi = hi.next_up();
            }
        }
    }
}
