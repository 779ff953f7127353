//! Sums that do not depend on the order of their terms: fixed point in 128 bits.
//!
//! A running float sum remembers the order of arrival and leaves residue after forgetting; integers do neither. The
//! unit is a power of two set by the largest term, so at least 64 bits of every term within 2^-32 of the largest
//! survive (a float has 53), and 2^31 terms fit.

/// Terms up to 2^(32·bucket) in magnitude share a bucket.
const BUCKET_BITS: i32 = 32;
/// Bits kept below the largest term's bucket.
const FRACTION_BITS: i32 = 96;
const LOWEST: i32 = -34;
const N_BUCKETS: usize = 68;

/// The unit of a channel of sums: a function of the multiset of its terms.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scale {
    /// How many terms lie in each bucket of magnitude.
    counts: Vec<u32>,
    /// The highest bucket that holds a term.
    top: usize,
    /// Two powers of two whose product turns a term into units, and two that turn units into a float: a single one may
    /// overflow. Multiplying by a power of two is exact.
    to_units: [f64; 2],
    from_units: [f64; 2],
}

impl Default for Scale {
    fn default() -> Self {
        let mut scale = Self { counts: vec![0; N_BUCKETS], top: 0, to_units: [0.0; 2], from_units: [0.0; 2] };
        scale.set_top(0);
        scale
    }
}

/// The bucket of a term: the least b with |term| < 2^(32·(b + LOWEST)).
fn bucket(term: f64) -> usize {
    // All but the smallest numbers have it among their bits.
    let exponent = match (term.to_bits() >> 52 & 0x7FF) as i32 {
        0 => libm::frexp(term).1,
        biased => biased - 1022,
    };
    let b = exponent.div_euclid(BUCKET_BITS) + 1 - LOWEST;
    if term == 0.0 { 0 } else { b.clamp(0, N_BUCKETS as i32 - 1) as usize }
}

impl Scale {
    /// The unit of terms of which this is the largest in magnitude; none of them is counted.
    pub(crate) fn of_largest(largest: f64) -> Self {
        let mut scale = Self::default();
        scale.set_top(bucket(largest));
        scale
    }

    /// Counts a term.
    #[cfg(test)]
    fn add(&mut self, term: f64) -> bool {
        self.add_all(std::iter::once(term))
    }

    /// Counts terms; whether the unit changed, so that sums must be gathered anew.
    pub(crate) fn add_all(&mut self, terms: impl Iterator<Item = f64>) -> bool {
        let (top, mut run, mut n) = (self.top, 0, 0);
        // Most are in the bucket of the one before.
        for b in terms.map(bucket) {
            if b != run {
                self.counts[run] += std::mem::take(&mut n);
                run = b;
            }
            n += 1;
            self.top = self.top.max(b);
        }
        self.counts[run] += n;
        if self.top > top {
            self.set_top(self.top);
        }
        self.top > top
    }

    /// Takes a term back; whether the unit changed.
    pub(crate) fn remove(&mut self, term: f64) -> bool {
        self.counts[bucket(term)] -= 1;
        let mut top = self.top;
        while top > 0 && self.counts[top] == 0 {
            top -= 1;
        }
        let changed = top != self.top;
        if changed {
            self.set_top(top);
        }
        changed
    }

    fn set_top(&mut self, top: usize) {
        self.top = top;
        let shift = FRACTION_BITS - BUCKET_BITS * (top as i32 + LOWEST);
        let halves = [shift / 2, shift - shift / 2];
        self.to_units = halves.map(|half| libm::exp2(f64::from(half)));
        self.from_units = halves.map(|half| libm::exp2(f64::from(-half)));
    }

    /// A term as an integer multiple of the unit, below 2^96 in magnitude, and without negative zero: a float as it is, which
    /// may become an [`i128`].
    #[inline]
    pub(crate) fn units(&self, term: f64) -> f64 {
        libm::rint(term * self.to_units[0] * self.to_units[1]) + 0.0
    }

    /// The units of a float that [`Scale::of_units`] gave, as an integer. In two halves, which machines turn into integers
    /// by themselves.
    #[inline]
    pub(crate) fn integer(&self, float: f64) -> i128 {
        const HALF_BITS: i32 = FRACTION_BITS / 2;
        const HALF: f64 = (1_u64 << HALF_BITS) as f64;
        let units = float * self.to_units[0] * self.to_units[1];
        let high = (units / HALF) as i64;
        let low = (units - high as f64 * HALF) as i64;
        (i128::from(high) << HALF_BITS) + i128::from(low)
    }

    /// A sum as a float, correctly rounded.
    #[inline]
    pub(crate) fn float(&self, sum: i128) -> f64 {
        self.of_units(sum as f64)
    }

    /// A sum as two floats, the first of them the sum rounded.
    pub(crate) fn pair(&self, sum: i128) -> (f64, f64) {
        let rounded = sum as f64;
        // Only the largest sum of all rounds to what no integer of that width holds.
        let rest = sum.saturating_sub(rounded as i128);
        (self.of_units(rounded), self.of_units(rest as f64))
    }

    /// As [`Scale::float`], of a sum that is a float.
    #[inline]
    pub(crate) fn of_units(&self, units: f64) -> f64 {
        units * self.from_units[0] * self.from_units[1]
    }
}

/// y² times a weight as the sum of two numbers, exactly but for what no number can hold.
pub(crate) fn weighted_square(y: f64, weight: f64) -> (f64, f64) {
    let term = weight * y;
    let square = (term * y).min(f64::MAX);
    let mut rest = libm::fma(term, y, -square);
    if weight != 1.0 {
        rest += libm::fma(weight, y, -term) * y;
    }
    (square, if rest.is_finite() { rest } else { 0.0 })
}

/// Σ w·y/Σ w and Σ w·(y − mean)²/Σ w of Σ w, Σ w·y and Σ w·y², each given as two floats: the squares may cancel all but a
/// few bits of a float.
pub(crate) fn mean_and_variance(weight: (f64, f64), sum: (f64, f64), squares: (f64, f64)) -> (f64, f64) {
    let mean = (sum.0 + sum.1) / (weight.0 + weight.1);
    // Σ w·(y − m)² = (Σ w·y² − m·Σ w·y) − m·(Σ w·y − m·Σ w).
    let by_mean = |(high, low): (f64, f64)| {
        let product = mean * high;
        (product, libm::fma(mean, high, -product) + mean * low)
    };
    let less = |a: (f64, f64), b: (f64, f64)| {
        let difference = a.0 - b.0;
        let part = difference - a.0;
        let lost = (a.0 - (difference - part)) - (b.0 + part);
        difference + (lost + (a.1 - b.1))
    };
    let total = less(squares, by_mean(sum)) - mean * less(sum, by_mean(weight));
    let variance = total / (weight.0 + weight.1);
    (mean, if variance.is_finite() { variance.max(0.0) } else { f64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::NodeKey;

    #[test]
    fn sums_do_not_depend_on_order_and_leave_no_residue() {
        for magnitude in [1e-300, 1e-9, 1.0, 1e9, 1e300] {
            // Most are far smaller than the largest, and lose bits.
            let spread = |i: u64| magnitude * 0.5_f64.powi((i % 150) as i32);
            let terms: Vec<f64> =
                (0..1000).map(|i| (NodeKey::root(1, i).draw(0).uniform() - 0.3) * spread(i)).collect();
            let mut scale = Scale::default();
            for term in &terms {
                scale.add(*term);
            }
            let forward: i128 = terms.iter().map(|t| scale.units(*t) as i128).sum();
            let backward: i128 = terms.iter().rev().map(|t| scale.units(*t) as i128).sum();
            assert_eq!(forward, backward);
            let plain: f64 = terms.iter().sum();
            assert!((scale.float(forward) - plain).abs() <= 1e-12 * terms.iter().map(|t| t.abs()).sum::<f64>());
            assert_eq!(scale.float(scale.units(terms[3]) as i128), terms[3]);
            // Floats of single terms are exact, and so is the way back; two of them add up to what is rounded once.
            let floats: Vec<f64> = terms.iter().map(|t| scale.of_units(scale.units(*t))).collect();
            assert!(terms.iter().zip(&floats).all(|(t, float)| scale.integer(*float) == scale.units(*t) as i128));
            for pair in floats.windows(2) {
                let exact = scale.integer(pair[0]) + scale.integer(pair[1]);
                assert_eq!((pair[0] + pair[1]).to_bits(), scale.float(exact).to_bits());
            }
            // Powers of two multiply exactly.
            let shift = FRACTION_BITS - BUCKET_BITS * (scale.top as i32 + LOWEST);
            let by_exponent = |x: f64, n: i32| libm::scalbn(libm::scalbn(x, n / 2), n - n / 2);
            assert_eq!(scale.float(forward).to_bits(), by_exponent(forward as f64, -shift).to_bits());
            assert!(terms.iter().all(|t| scale.units(*t) as i128 == libm::rint(by_exponent(*t, shift)) as i128));
            for term in &terms {
                scale.remove(*term);
            }
            assert_eq!(scale, Scale::default());
        }
    }

    #[test]
    fn variances_survive_large_means() {
        for (mean, deviation) in [(0.0, 1.0), (3.0, 2.0), (1.7e9, 1.0), (-1e6, 1e-2), (1e150, 1e149), (1e-90, 1e-95)] {
            let y: Vec<f64> = (0..100).map(|i| mean + deviation * f64::from(i % 2 * 2 - 1)).collect();
            let (mut sums, mut squares) = (Scale::default(), Scale::default());
            sums.add_all(y.iter().copied());
            squares.add_all(y.iter().map(|y| y * y));
            let sum: i128 = y.iter().map(|y| sums.units(*y) as i128).sum();
            let exact = |y: &f64| squares.units(y * y) as i128 + squares.units(libm::fma(*y, *y, -(y * y))) as i128;
            let square: i128 = y.iter().map(exact).sum();
            let found = mean_and_variance((100.0, 0.0), sums.pair(sum), squares.pair(square));
            assert!((found.0 - mean).abs() <= 1e-12 * (mean.abs() + deviation), "{found:?}");
            let variance = y.iter().map(|y| (y - found.0).powi(2)).sum::<f64>() / 100.0;
            assert!((found.1 / variance - 1.0).abs() < 1e-6, "{mean} {deviation}: {found:?} {variance}");
        }
    }

    #[test]
    fn the_unit_follows_the_largest_term() {
        let mut scale = Scale::default();
        assert!(scale.add(1.0));
        assert!(!scale.add(0.0) && !scale.add(-0.5));
        assert!(scale.add(1e40));
        assert!(scale.remove(1e40));
        assert_eq!(scale.float(scale.units(-0.5) as i128), -0.5);
    }
}
