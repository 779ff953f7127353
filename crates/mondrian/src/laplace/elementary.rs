//! Exponentials, logarithms and powers in single precision, by vectors: what kernel entries are made of.
//!
//! Vectors are named through `simd`, so that the compiler cannot miss them; which multiplications and additions are fused is
//! written down, so the bits are the same everywhere.
#![expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]

use crate::simd::Simd;

/// Distances from here on, in units of ln 2, give the entry 0: numbers that the machine is slow at never arise.
pub(crate) const FAR: f32 = 30.0;

/// Adding it rounds to an integer, which is then found in the low bits, 127 more: as the exponent of a float has it.
const SHIFT: f32 = 12_582_912.0 + 127.0;

/// (2^f − 1)/f on |f| ≤ 1/2, highest power first; 2^f is within 2e-7 of it, and 1 at f = 0.
const POWER: [f32; 5] = [1.338_130_3e-3, 9.666_369e-3, 5.550_381e-2, 2.402_235e-1, std::f32::consts::LN_2];

/// A polynomial, highest power first: odd and even powers side by side, so that half as many operations wait for each
/// other.
#[inline(always)]
fn polynomial<S: Simd, const N: usize>(simd: S, coefficients: [f32; N], x: S::f32s) -> S::f32s {
    let square = simd.mul_f32s(x, x);
    let mut sums = [simd.splat_f32s(coefficients[0]), simd.splat_f32s(coefficients[1])];
    for k in 2..N {
        sums[k % 2] = simd.mul_add_f32s(sums[k % 2], square, simd.splat_f32s(coefficients[k]));
    }
    // The last coefficient is that of the power 0.
    simd.mul_add_f32s(sums[N % 2], x, sums[(N - 1) % 2])
}

/// 1 + x·(POWER at x), the polynomial's 2^x, times 2^whole: `shifted` holds the whole number in its low bits.
#[inline(always)]
pub(super) fn powers<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let shift = simd.splat_f32s(SHIFT);
    let shifted = simd.add_f32s(x, shift);
    let f = simd.sub_f32s(x, simd.sub_f32s(shifted, shift));
    let [a, b, c, d, e] = POWER;
    scaled(simd, polynomial(simd, [a, b, c, d, e, 1.0], f), shifted)
}

/// A number times 2^whole: `shifted` is whole + [`SHIFT`].
#[inline(always)]
fn scaled<S: Simd>(simd: S, x: S::f32s, shifted: S::f32s) -> S::f32s {
    let scale = simd.wrapping_dyn_shl_u32s(simd.transmute_u32s_f32s(shifted), simd.splat_u32s(23));
    simd.mul_f32s(x, simd.transmute_f32s_u32s(scale))
}

/// 2^(−d) for d ≥ 0; 0 from [`FAR`] on.
#[inline(always)]
pub(super) fn powers_minus<S: Simd>(simd: S, d: S::f32s) -> S::f32s {
    let shift = simd.splat_f32s(SHIFT);
    let shifted = simd.sub_f32s(shift, d);
    // −f, with the bits of f: odd powers change their sign instead of d. Beyond FAR this is no number that counts.
    let f = simd.add_f32s(d, simd.sub_f32s(shifted, shift));
    let [a, b, c, e, g] = POWER;
    let value = scaled(simd, polynomial(simd, [-a, b, -c, e, -g, 1.0], f), shifted);
    simd.select_f32s(simd.less_than_f32s(d, simd.splat_f32s(FAR)), value, simd.splat_f32s(0.0))
}

/// log₂(1 + t)/t for t from 0 to 1, highest power first; in single precision log₂ is within 5e-7 of it, which is less than
/// powers of numbers beyond 2⁸ are rounded by.
const LOGARITHM: [f32; 7] =
    [1.552_990_6e-2, -7.955_769e-2, 1.942_942_7e-1, -3.259_019_3e-1, 4.735_534e-1, -7.205_854_7e-1, 1.442_667_8];

/// log₂ s for a normal s > 0.
#[inline(always)]
pub(super) fn logarithms<S: Simd>(simd: S, s: S::f32s) -> S::f32s {
    // s = 2^whole·(1 + t).
    let bits = simd.transmute_u32s_f32s(s);
    let whole = simd.wrapping_dyn_shr_u32s(bits, simd.splat_u32s(23));
    // A number below 2²³ in the low bits of 2²³ is that number more.
    let whole = simd.transmute_f32s_u32s(simd.or_u32s(whole, simd.splat_u32s(0x4B00_0000)));
    let whole = simd.sub_f32s(whole, simd.splat_f32s(8_388_608.0 + 127.0));
    let mantissa = simd.or_u32s(simd.and_u32s(bits, simd.splat_u32s(0x007F_FFFF)), simd.splat_u32s(0x3F80_0000));
    let t = simd.sub_f32s(simd.transmute_f32s_u32s(mantissa), simd.splat_f32s(1.0));
    let sum = polynomial(simd, LOGARITHM, t);
    simd.mul_add_f32s(sum, t, whole)
}

/// s^(p/2) for s ≥ 0.
#[inline(always)]
pub(super) fn half_powers<S: Simd>(simd: S, s: S::f32s, exponent: f32) -> S::f32s {
    if exponent == 1.0 {
        return simd.sqrt_f32s(s);
    }
    if exponent == 2.0 {
        return s;
    }
    let x = simd.mul_f32s(simd.splat_f32s(0.5 * exponent), logarithms(simd, s));
    // From −127, the logarithm of no bits at all, to 128, that of infinity, times p/2: a power may be infinite.
    let is_there = simd.less_than_f32s(simd.splat_f32s(f32::MIN_POSITIVE), s);
    simd.select_f32s(is_there, powers(simd, x), simd.splat_f32s(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laplace::packed::{LANES, Lanes};
    use crate::simd::{WithSimd, with_256_bits, with_vectors};

    /// Kernel entries (or powers p/2) of many numbers, by vectors of the machine or one by one.
    struct Powers<'a> {
        numbers: &'a mut [Lanes],
        exponent: Option<f32>,
    }

    impl WithSimd for Powers<'_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            for x in self.numbers.iter_mut().flat_map(|lanes| S::as_mut_simd_f32s(lanes).0) {
                *x = self.exponent.map_or_else(|| powers_minus(simd, *x), |p| half_powers(simd, *x, p));
            }
        }
    }

    fn powers_of(numbers: &[f32], exponent: Option<f32>) -> Vec<f32> {
        let mut fast: Vec<Lanes> = numbers.as_chunks::<LANES>().0.to_vec();
        let (mut slow, mut middle) = (fast.clone(), fast.clone());
        with_vectors(Powers { numbers: &mut fast, exponent });
        with_256_bits(Powers { numbers: &mut middle, exponent });
        Powers { numbers: &mut slow, exponent }.with_simd(pulp::Scalar);
        assert!(fast == slow && fast == middle);
        fast.concat()
    }

    #[test]
    fn powers_are_those_of_double_precision_whatever_the_vectors() {
        let mut d: Vec<f32> = (0..32_000).map(|k| k as f32 / 1000.0).collect();
        (d[31_998], d[31_999]) = (FAR, f32::MAX);
        for (d, found) in d.iter().zip(powers_of(&d, None)) {
            let exact = 2.0_f64.powf(-f64::from(*d));
            let is_right = if *d < FAR { (f64::from(found) / exact - 1.0).abs() < 4e-7 } else { found == 0.0 };
            assert!(is_right, "{d}: {found}");
        }
        assert_eq!(powers_of(&d, None)[0], 1.0);
        let mut s: Vec<f32> = (-60..68).map(|k| 1.37_f32.powi(k)).collect();
        s[0] = 0.0;
        for exponent in [0.3, 1.0, 1.37, 2.0] {
            for (s, found) in s.iter().zip(powers_of(&s, Some(exponent))) {
                let exact = f64::from(*s).powf(0.5 * f64::from(exponent));
                let is_right = if *s > 0.0 { (f64::from(found) / exact - 1.0).abs() < 3e-6 } else { found == 0.0 };
                assert!(is_right, "{s}^({exponent}/2): {found}");
            }
        }
        let ends: Vec<f32> = [0.0, f32::MIN_POSITIVE, f32::MAX, f32::INFINITY].repeat(4);
        for exponent in [0.3, 1.0, 1.37, 1.999, 2.0] {
            let found = powers_of(&ends, Some(exponent));
            assert!(found[0] == 0.0 && found[1] < 2e-6 && found[2] > 3e5 && found[3] >= found[2], "{found:?}");
        }
    }
}
