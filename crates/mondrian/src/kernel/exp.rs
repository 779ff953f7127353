//! e^{−x} for many x at once.
//!
//! The C library's `exp` is one call per number and differs between platforms. This one is plain arithmetic that
//! vectorises, and gives the same bits everywhere.

/// ln 2 in two parts, the first with enough trailing zeros that k·`LN2_HIGH` is exact for |k| < 2^11.
pub(crate) const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
pub(crate) const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// Adding it rounds to an integer, which is then in the low bits.
pub(crate) const SHIFT: f64 = 6_755_399_441_055_744.0;
/// Beyond it the result is below the normal numbers and is set to zero.
const LARGEST: f64 = 708.0;

/// 1/k!, highest first: on |r| ≤ ln(2)/2 the polynomial's error is 4e-18, well below rounding.
pub(crate) const TAYLOR: [f64; 14] = [
    1.0 / 6_227_020_800.0,
    1.0 / 479_001_600.0,
    1.0 / 39_916_800.0,
    1.0 / 3_628_800.0,
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    0.5,
    1.0,
    1.0,
];

/// e^{−x} for x ≥ 0, within 1.5 units in the last place; 0 from x = 708 on.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]
pub(crate) fn exp_minus(x: f64) -> f64 {
    let t = -x.min(LARGEST);
    let shifted = t * std::f64::consts::LOG2_E + SHIFT;
    let k = shifted - SHIFT;
    let r = (t - k * LN2_HIGH) - k * LN2_LOW;
    let mut sum = TAYLOR[0];
    for c in &TAYLOR[1..] {
        sum = sum * r + c;
    }
    // 2^k, its exponent taken from the low bits of `shifted`.
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    if x < LARGEST { sum * power } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_within_an_ulp_and_a_half() {
        // Two million points, dense near zero, where kernel arguments lie, and at the ends of the reduced range,
        // against the standard library, itself within an ulp. Units in the last place as differences of bit patterns.
        let spread = (0..1_000_000_u32).map(|i| f64::from(i) * 7.07e-4);
        let near = (0..1_000_000_u32).map(|i| (f64::from(i) * 1e-6).powi(3) * 3.0);
        let mut different = 0;
        for x in spread.chain(near).chain([0.0, 1e-300, 1e-17, 0.346_573_590_279_972_6, 707.999_999]) {
            let (found, expected) = (exp_minus(x), (-x).exp());
            let apart = found.to_bits().abs_diff(expected.to_bits());
            assert!(apart <= 1, "{x}: {found} instead of {expected}");
            different += apart;
        }
        // Rounded to the same number in nearly all cases.
        assert!(different < 400_000, "{different}");
        assert_eq!((exp_minus(0.0), exp_minus(708.0), exp_minus(f64::INFINITY)), (1.0, 0.0, 0.0));
    }
}
