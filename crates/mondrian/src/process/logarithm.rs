//! −ln of a uniform number, from additions, multiplications and a table: the same bits on every platform.
//!
//! With u = z·2^e, z ∈ [0.6875, 1.375), and c a number near z from the table, −ln u = −(e·ln 2 + ln c + ln(1 + r)) where
//! r = (z − c)/c is at most 2^−7 and z − c is exact. Around 1 the table has c = 1, so that small results keep their
//! relative accuracy. The last sum is taken from the largest term down. Within 2 units in the last place.

/// Table entries: the top bits of z choose one.
const N: usize = 128;
/// Where z starts: the bits of 0.6875.
const OFFSET: u64 = 0x3FE6_0000_0000_0000;
/// ln 2 in two parts, the first with 21 zero bits at its end: times an exponent it is exact.
const LN2_HIGH: f64 = f64::from_bits(0x3FE6_2E42_FEE0_0000);
const LN2_LOW: f64 = f64::from_bits(0x3DEA_39EF_3579_3C76);

/// 2^52: its last bit is 1.
const BIG: f64 = 4_503_599_627_370_496.0;

/// 1/c and ln c by the top bits of z.
static TABLE: [Entry; N] = table();

#[derive(Clone, Copy)]
struct Entry {
    centre: f64,
    inverse: f64,
    log: f64,
}

const fn table() -> [Entry; N] {
    let mut entries = [Entry { centre: 1.0, inverse: 1.0, log: 0.0 }; N];
    let mut i = 0;
    while i < N {
        // The interval of entry i starts at OFFSET + i·2^45 as bits; its middle is half a step on.
        let start = f64::from_bits(OFFSET + ((i as u64) << 45));
        let centre = f64::from_bits(OFFSET + ((i as u64) << 45) + (1 << 44));
        let end = f64::from_bits(OFFSET + ((i as u64 + 1) << 45));
        if start != 1.0 && end != 1.0 {
            entries[i] = Entry { centre, inverse: 1.0 / centre, log: log_by_series(centre) };
        }
        i += 1;
    }
    entries
}

/// ln c = 2·artanh((c − 1)/(c + 1)), summed from the smallest term up; |s| < 0.2, so 20 terms are plenty.
const fn log_by_series(c: f64) -> f64 {
    let s = (c - 1.0) / (c + 1.0);
    let mut sum = 0.0;
    let mut k = 20;
    while k > 0 {
        k -= 1;
        sum = sum * (s * s) + 1.0 / (2 * k + 1) as f64;
    }
    2.0 * s * sum
}

/// A logarithm after the table lookup: the rest is arithmetic, the same for every number.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reduced {
    /// (z − c)/c.
    pub(crate) r: f64,
    pub(crate) exponent: f64,
    /// ln c.
    pub(crate) log: f64,
}

impl Reduced {
    /// Of n/2^53 for n ∈ {1, …, 2^53}.
    #[inline]
    pub(crate) fn of_unit(n: u64) -> Self {
        debug_assert!((1..=1 << 53).contains(&n));
        let bits = (n as f64).to_bits();
        let from_start = bits.wrapping_sub(OFFSET);
        let entry = &TABLE[(from_start >> 45) as usize % N];
        let exponent = (from_start as i64) >> 52;
        let z = f64::from_bits(bits.wrapping_sub((exponent as u64) << 52));
        // As the last bits of a float: a conversion would depend on the previous contents of its register.
        let exponent = f64::from_bits(BIG.to_bits() | (exponent - 53 + 1024) as u64) - (BIG + 1024.0);
        Self { r: (z - entry.centre) * entry.inverse, exponent, log: entry.log }
    }

    /// −ln of the number.
    #[inline]
    pub(crate) fn minus_log(self) -> f64 {
        let Self { r, exponent, log } = self;
        let r2 = r * r;
        let low = (-0.5 + r * (1.0 / 3.0)) + r2 * (-0.25 + r * 0.2);
        let high = (-1.0 / 6.0 + r * (1.0 / 7.0)) + r2 * (-0.125);
        let tail = r2 * (low + (r2 * r2) * high);
        -((exponent * LN2_HIGH + log) + (r + (tail + exponent * LN2_LOW)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::NodeKey;

    fn minus_log_of_unit(n: u64) -> f64 {
        Reduced::of_unit(n).minus_log()
    }

    #[test]
    fn agrees_with_the_logarithm_everywhere() {
        let top = 1_u64 << 53;
        let ends = (0..200).flat_map(|i| [1 + i, top - i, (1 << (i % 54)), (top as f64 * 0.6875) as u64 + i - 100]);
        let between = (0..200_000).map(|i| {
            let draw = NodeKey::root(3, i).draw(0).to_bits();
            (((draw >> 75) as u64 + 1) >> (draw as u64 % 53)).max(1)
        });
        for n in ends.chain(between) {
            let (ours, theirs) = (minus_log_of_unit(n), -libm::log(n as f64 / top as f64));
            let apart = (ours - theirs).abs();
            assert!(apart <= 2.0 * f64::EPSILON * theirs, "{n}: {ours:e} {theirs:e}");
        }
        assert_eq!(minus_log_of_unit(top), 0.0);
    }

    #[test]
    fn falls_as_its_argument_rises() {
        // At the seams of the table and everywhere around.
        for i in 0..2 * N as u64 {
            let seam = (f64::from_bits(OFFSET + (i << 45)) * (1_u64 << 52) as f64) as u64;
            for n in seam - 50..(seam + 50).min(1 << 53) {
                assert!(minus_log_of_unit(n + 1) <= minus_log_of_unit(n), "at {n}");
            }
        }
    }
}
