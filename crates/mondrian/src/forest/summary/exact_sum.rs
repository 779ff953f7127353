//! Exact sums of any numbers and of their squares, which parts in any order add up to.

/// Bits of a bucket of an [`ExactSum`], and the exponent of its first unit: bucket k counts in 2^(32·k − 2150), so that a float and its
/// square are whole numbers of some bucket's units.
const EXACT_BITS: u32 = 32;
const EXACT_OFFSET: i32 = 2150;
const EXACT_BUCKETS: usize = 130;

/// Sums and sums of squares of any terms, exact and without a unit to agree on: one integer for each bucket of magnitude.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExactSum {
    buckets: Vec<i128>,
}

impl Default for ExactSum {
    fn default() -> Self {
        Self { buckets: vec![0; EXACT_BUCKETS] }
    }
}

/// Sign, integer below 2^53 and exponent of a float: term = ±integer·2^(exponent − 1075).
#[inline]
fn parts_of(term: f64) -> (bool, u64, u32) {
    let bits = term.to_bits();
    let (fraction, biased) = (bits & ((1 << 52) - 1), (bits >> 52 & 0x7FF) as u32);
    // Numbers too small for a leading one have the exponent of the smallest that have it.
    let integer = if biased == 0 { fraction } else { fraction | 1 << 52 };
    (bits >> 63 == 1, integer, biased.max(1))
}

impl ExactSum {
    /// Adds a term; 2^31 of them fit.
    #[inline]
    pub(crate) fn add(&mut self, term: f64) {
        let (is_negative, integer, exponent) = parts_of(term);
        let place = exponent + 1075;
        let units = i128::from(integer) << (place % EXACT_BITS);
        self.buckets[(place / EXACT_BITS) as usize] += if is_negative { -units } else { units };
    }

    /// Adds the square of a term, all of its bits.
    #[inline]
    pub(crate) fn add_square(&mut self, term: f64) {
        let (_, integer, exponent) = parts_of(term);
        let (place, square) = (2 * exponent, u128::from(integer) * u128::from(integer));
        let (bucket, shift) = ((place / EXACT_BITS) as usize, place % EXACT_BITS);
        self.buckets[bucket] += i128::from(square as u64) << shift;
        self.buckets[bucket + 2] += i128::from((square >> 64) as u64) << shift;
    }

    /// Adds another sum.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(own, sum)| *own = own.saturating_add(*sum));
    }

    /// The sum as two floats, the first of them the sum rounded.
    pub(crate) fn pair(&self) -> (f64, f64) {
        let (mut high, mut low) = (0.0_f64, 0.0_f64);
        for (bucket, sum) in self.buckets.iter().enumerate().rev().filter(|(_, sum)| **sum != 0) {
            let exponent = bucket as i32 * EXACT_BITS as i32 - EXACT_OFFSET;
            let rounded = *sum as f64;
            let rest = sum.saturating_sub(rounded as i128) as f64;
            for part in [rounded, rest].map(|part| libm::scalbn(part, exponent)) {
                let total = high + part;
                let back = total - high;
                low += (high - (total - back)) + (part - back);
                high = total;
            }
        }
        let total = high + low;
        if total.is_finite() { (total, low - (total - high)) } else { (high, 0.0) }
    }

    /// Buckets and their sums, those that are not zero.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (u32, i128)> + '_ {
        self.buckets.iter().enumerate().filter(|(_, sum)| **sum != 0).map(|(bucket, sum)| (bucket as u32, *sum))
    }

    /// The sum of saved parts; none where a bucket does not exist.
    pub(crate) fn of_parts(parts: impl Iterator<Item = (u32, i128)>) -> Option<Self> {
        let mut sum = Self::default();
        for (bucket, units) in parts {
            let slot = sum.buckets.get_mut(bucket as usize).filter(|slot| **slot == 0 && units != 0)?;
            *slot = units;
        }
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::NodeKey;

    #[test]
    fn exact_sums_do_not_depend_on_order_or_parts() {
        // From numbers that have no reciprocal to those whose squares overflow, of both signs.
        let term = |i: u64| (NodeKey::root(2, i).draw(0).uniform() - 0.4) * 10_f64.powi((i % 600) as i32 - 300);
        let terms: Vec<f64> = (0..3000).map(term).chain([0.0, -0.0, f64::MIN_POSITIVE / 64.0, f64::MAX]).collect();
        let sums = |terms: &mut dyn Iterator<Item = f64>| {
            let (mut sum, mut squares) = (ExactSum::default(), ExactSum::default());
            terms.for_each(|term| {
                sum.add(term);
                squares.add_square(term);
            });
            (sum, squares)
        };
        let whole = sums(&mut terms.iter().copied());
        let mut parts = (ExactSum::default(), ExactSum::default());
        for chunk in terms.rchunks(7) {
            let part = sums(&mut chunk.iter().rev().copied());
            parts.0.merge(&part.0);
            parts.1.merge(&part.1);
        }
        assert_eq!(parts, whole);
        assert_eq!(ExactSum::of_parts(whole.1.parts()).as_ref(), Some(&whole.1));
        assert!(ExactSum::of_parts([(999, 1)].into_iter()).is_none());
        let (small, squares) = sums(&mut [0.1, 1e20, 0.2, -1e20].into_iter());
        assert_eq!(small.pair().0, 0.1 + 0.2);
        assert_eq!(squares.pair().0, 2e40);
        // Numbers of which the squares are whole: the second float has what the first cannot hold.
        let (_, exact) = sums(&mut [94_906_267.0, 1.0].into_iter());
        assert_eq!(exact.pair(), (9_007_199_515_875_290.0, 0.0));
        let (_, wide) = sums(&mut [1e16, 1.0].into_iter());
        assert_eq!(wide.pair(), (1e32, 1.0 - 5_366_162_204_393_472.0));
    }
}
