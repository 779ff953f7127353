//! Powers and logarithms of many numbers at once: plain arithmetic that vectorises, the same bits everywhere.

use crate::kernel::exp::{LN2_HIGH, LN2_LOW, SHIFT, TAYLOR};

/// 2^52: a small whole number added to it stands in its low bits.
const BIG: f64 = 4_503_599_627_370_496.0;
/// 1/(2k + 1), highest first: with |s| ≤ 0.172 the series of artanh ends below rounding.
const ARTANH: [f64; 12] = [
    1.0 / 23.0,
    1.0 / 21.0,
    1.0 / 19.0,
    1.0 / 17.0,
    1.0 / 15.0,
    1.0 / 13.0,
    1.0 / 11.0,
    1.0 / 9.0,
    1.0 / 7.0,
    1.0 / 5.0,
    1.0 / 3.0,
    1.0,
];

/// ln x for a positive normal x, within 2 units in the last place of |ln x| + 0.1.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]
pub(crate) fn log(x: f64) -> f64 {
    // x = 2^e·z with z from √½ to √2.
    let bits = x.to_bits().wrapping_sub(0x3FE6_A09E_667F_3BCD);
    let exponent = bits >> 52;
    // Exponents below zero wrap around within 12 bits: moved up by 1024 they do not.
    let e = f64::from_bits((exponent.wrapping_add(1024) & 0xFFF) | BIG.to_bits()) - BIG - 1024.0;
    let z = f64::from_bits((bits & 0x000F_FFFF_FFFF_FFFF).wrapping_add(0x3FE6_A09E_667F_3BCD));
    let s = (z - 1.0) / (z + 1.0);
    e * std::f64::consts::LN_2 + 2.0 * s * polynomial(ARTANH, s * s)
}

/// A polynomial of an even number of coefficients, highest power first: odd and even powers side by side, so that half as
/// many operations wait for each other.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]
fn polynomial<const N: usize>(coefficients: [f64; N], x: f64) -> f64 {
    let square = x * x;
    let (mut odd, mut even) = (coefficients[0], coefficients[1]);
    for k in 1..N / 2 {
        odd = odd * square + coefficients[2 * k];
        even = even * square + coefficients[2 * k + 1];
    }
    odd * x + even
}

/// e^t for |t| < 708.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]
fn exp(t: f64) -> f64 {
    let shifted = t * std::f64::consts::LOG2_E + SHIFT;
    let k = shifted - SHIFT;
    let r = (t - k * LN2_HIGH) - k * LN2_LOW;
    // 2^k, its exponent taken from the low bits of `shifted`.
    polynomial(TAYLOR, r) * f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52)
}

/// s^h for s ≥ 0 and 0 < h ≤ 1; 0 for an s below the normal numbers.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]
pub(crate) fn power(s: f64, h: f64) -> f64 {
    // At most 710·h: beyond that a power is as good as infinite, and below 1e-307 as good as 0.
    let value = exp((h * log(s.max(f64::MIN_POSITIVE))).clamp(-707.0, 707.0));
    if s < f64::MIN_POSITIVE { 0.0 } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agree_with_the_standard_library() {
        for i in 0..200_000_u32 {
            let x = (f64::from(i) * 1e-3 - 100.0).exp2();
            assert!((log(x) - x.ln()).abs() <= 4e-16 * (x.ln().abs() + 0.1), "{x}: {} {}", log(x), x.ln());
            let p = x.powf(0.7);
            assert!((power(x, 0.7) / p - 1.0).abs() < 2e-14, "{x}");
        }
        for x in [f64::MIN_POSITIVE, 1e-300, 1.0, 1e300, f64::MAX] {
            assert!((log(x) - x.ln()).abs() <= 3e-16 * x.ln().abs(), "{x}");
        }
        assert_eq!((power(0.0, 0.5), power(1.0, 0.5), log(1.0)), (0.0, 1.0, 0.0));
    }
}
