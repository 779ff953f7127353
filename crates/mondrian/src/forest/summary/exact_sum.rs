//! Exact sums of any numbers and of their squares, which parts in any order add up to.
//!
//! Terms come in blocks. The terms of a block that fall into one bucket are added in pieces of some twenty bits, which vector
//! instructions do; a block whose magnitudes fall into many buckets goes term by term, to the same sums.

use crate::simd::vectorise;

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

/// Terms that are added together, so few that sums of pieces stay below 2^63, and buckets of one block above which terms are
/// added one by one.
const BLOCK: usize = 512;
const MOST_BUCKETS: u64 = 3;

/// Sign, integer below 2^53 and exponent of a float: term = ±integer·2^(exponent − 1075).
#[inline]
fn parts_of(term: f64) -> (bool, u64, u32) {
    let bits = term.to_bits();
    let (fraction, biased) = (bits & ((1 << 52) - 1), (bits >> 52 & 0x7FF) as u32);
    // Numbers too small for a leading one have the exponent of the smallest that have it.
    let integer = if biased == 0 { fraction } else { fraction | 1 << 52 };
    (bits >> 63 == 1, integer, biased.max(1))
}

/// The least and the greatest exponent of the terms, as [`parts_of`] gives them.
fn exponents(terms: &[f64]) -> (u64, u64) {
    let exponent = |term: &f64| (term.to_bits() >> 52 & 0x7FF).max(1);
    vectorise(
        #[inline(always)]
        || {
            terms
                .iter()
                .fold((u64::MAX, 0), |(least, most), term| (least.min(exponent(term)), most.max(exponent(term))))
        },
    )
}

/// The integer of a term, and its exponent, as [`parts_of`] gives them.
#[inline(always)]
fn integer_and_exponent(term: f64) -> (u64, u64) {
    const LEADING: u64 = 1 << 52;
    let bits = term.to_bits();
    let biased = bits >> 52 & 0x7FF;
    (bits & (LEADING - 1) | if biased == 0 { 0 } else { LEADING }, biased.max(1))
}

/// What the terms in a bucket add to it.
fn sum_in(bucket: u64, terms: &[f64]) -> i128 {
    let sums = vectorise(
        #[inline(always)]
        || {
            // The closure's own, so that they stay in registers.
            let mut sums = [0_i64; 3];
            for term in terms {
                let (integer, exponent) = integer_and_exponent(*term);
                let place = exponent + 1075;
                let integer = if place / u64::from(EXACT_BITS) == bucket { integer } else { 0 };
                let (sign, shift) = (term.to_bits() as i64 >> 63, place % u64::from(EXACT_BITS));
                let piece = |bit: u32| ((((integer >> bit) & 0x3_FFFF) << shift) as i64 ^ sign) - sign;
                sums[0] += piece(0);
                sums[1] += piece(18);
                sums[2] += piece(36);
            }
            sums
        },
    );
    let [a, b, c] = sums.map(i128::from);
    a + (b << 18) + (c << 36)
}

/// What the squares of the terms in a bucket add to it and to the second one after it.
fn squares_in(bucket: u64, terms: &[f64]) -> (i128, i128) {
    const HALF: u64 = (1 << 26) - 1;
    const PIECE: u64 = (1 << 22) - 1;
    let sums = vectorise(
        #[inline(always)]
        || {
            let mut sums = [0_u64; 5];
            for term in terms {
                let (integer, exponent) = integer_and_exponent(*term);
                let place = 2 * exponent;
                let integer = if place / u64::from(EXACT_BITS) == bucket { integer } else { 0 };
                let shift = place % u64::from(EXACT_BITS);
                // The square in 106 bits by halves of the integer, 26 and 27 bits: below 2^52, and in units of it.
                let (low, high) = (integer & HALF, integer >> 26 & (2 * HALF + 1));
                let first = low * low;
                let middle = 2 * (low * high) + (first >> 26);
                let above = high * high + (middle >> 26);
                let word = first & HALF | (middle & HALF) << 26 | above << 52;
                let upper = above >> 12;
                sums[0] += (word & PIECE) << shift;
                sums[1] += (word >> 22 & PIECE) << shift;
                sums[2] += (word >> 44) << shift;
                sums[3] += (upper & PIECE) << shift;
                sums[4] += (upper >> 22) << shift;
            }
            sums
        },
    );
    let [a, b, c, d, e] = sums.map(i128::from);
    (a + (b << 22) + (c << 44), d + (e << 22))
}

impl ExactSum {
    /// Adds terms; 2^31 of them fit.
    pub(crate) fn add_all(&mut self, terms: &[f64]) {
        for block in terms.chunks(BLOCK) {
            let (least, most) = exponents(block);
            let buckets = (least + 1075) / u64::from(EXACT_BITS)..=(most + 1075) / u64::from(EXACT_BITS);
            if buckets.end() - buckets.start() < MOST_BUCKETS {
                buckets.for_each(|bucket| self.buckets[bucket as usize] += sum_in(bucket, block));
            } else {
                block.iter().for_each(|term| self.add(*term));
            }
        }
    }

    /// Adds the squares of terms, all of their bits.
    pub(crate) fn add_squares(&mut self, terms: &[f64]) {
        for block in terms.chunks(BLOCK) {
            let (least, most) = exponents(block);
            let buckets = 2 * least / u64::from(EXACT_BITS)..=2 * most / u64::from(EXACT_BITS);
            if buckets.end() - buckets.start() < MOST_BUCKETS {
                for bucket in buckets {
                    let (own, upper) = squares_in(bucket, block);
                    self.buckets[bucket as usize] += own;
                    self.buckets[bucket as usize + 2] += upper;
                }
            } else {
                block.iter().for_each(|term| self.add_square(*term));
            }
        }
    }

    /// Adds a term.
    #[inline]
    fn add(&mut self, term: f64) {
        let (is_negative, integer, exponent) = parts_of(term);
        let place = exponent + 1075;
        let units = i128::from(integer) << (place % EXACT_BITS);
        self.buckets[(place / EXACT_BITS) as usize] += if is_negative { -units } else { units };
    }

    /// Adds the square of a term, all of its bits.
    #[inline]
    fn add_square(&mut self, term: f64) {
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
    /// Blocks by vectors, by their portable twins and term by term have the same buckets, whatever the magnitudes.
    #[test]
    fn blocks_add_up_as_their_terms() {
        let uniform = |i: u64| NodeKey::root(3, i).draw(0).uniform() - 0.4;
        let odd = [0.0, -0.0, f64::MIN_POSITIVE / 64.0, f64::MAX, -f64::MAX, f64::MIN_POSITIVE, 5e-324];
        let kinds: [&dyn Fn(u64) -> f64; 5] = [
            &|i| uniform(i),
            &|i| NodeKey::root(4, i).draw(0).normal() * 3.0,
            &|i| uniform(i) * 10_f64.powi((i % 40) as i32 - 20),
            &|i| uniform(i) * 10_f64.powi((i % 600) as i32 - 300),
            // The largest integers there are: all bits of every piece.
            &|i| (2.0 - f64::EPSILON) * if i % 3 == 0 { -1.0 } else { 1.0 } * 2_f64.powi((i % 16) as i32),
        ];
        for (kind, term) in kinds.iter().enumerate() {
            for n in [1, 7, BLOCK, 3 * BLOCK + 5] {
                let mut terms: Vec<f64> = (0..n as u64).map(term).collect();
                if kind == 2 {
                    terms.extend(odd);
                }
                let mut twin = (ExactSum::default(), ExactSum::default());
                for term in &terms {
                    twin.0.add(*term);
                    twin.1.add_square(*term);
                }
                let blocks = || {
                    let mut sums = (ExactSum::default(), ExactSum::default());
                    sums.0.add_all(&terms);
                    sums.1.add_squares(&terms);
                    sums
                };
                assert_eq!(blocks(), twin, "{n} terms of kind {kind}");
                assert_eq!(crate::simd::portably(blocks), twin, "{n} terms of kind {kind}");
            }
        }
    }
}
