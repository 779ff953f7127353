//! Comparison of one code with many.

#![expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]

/// Number of codes that are compared at once: one bit of a word for each.
pub(crate) const MOST: usize = u32::BITS as usize;

/// An implementation of the comparison.
pub(crate) trait Compare: Copy {
    /// The codes smaller than the given one as a bit set (bit k for the kth), and whether any is equal.
    fn compare(self, codes: &[i16; MOST], with: i16) -> (u32, bool);
}

/// Work that compares codes.
pub(crate) trait WithCompare {
    fn call(self, by: impl Compare);
}

/// Runs work with the fastest comparison of the machine. All hot code in it must be inlined.
#[inline]
pub(crate) fn dispatch(work: impl WithCompare) {
    #[cfg(target_arch = "x86_64")]
    if let Some(v3) = crate::simd::dispatch::v3() {
        return v3.vectorize(
            #[inline(always)]
            || work.call(v3),
        );
    }
    work.call(Scalar);
}

/// On any machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scalar;

impl Compare for Scalar {
    #[inline(always)]
    fn compare(self, codes: &[i16; MOST], with: i16) -> (u32, bool) {
        let (mut is_less, mut is_same) = ([0; MOST], 0);
        for (less, code) in is_less.iter_mut().zip(codes) {
            *less = u8::from(*code < with);
            is_same |= -i16::from(*code == with);
        }
        // Without this the compiler would extract the bits one by one.
        let is_less = std::hint::black_box(is_less);
        let (eights, _) = is_less.as_chunks::<8>();
        let bits = eights.iter().rev().fold(0, |bits, eight| {
            // The factor brings the lowest bit of byte k to place k of the highest byte.
            bits << 8 | (u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
        });
        (bits, is_same != 0)
    }
}

/// With vectors of 256 bits.
#[cfg(target_arch = "x86_64")]
impl Compare for pulp::x86::V3 {
    #[inline(always)]
    fn compare(self, codes: &[i16; MOST], with: i16) -> (u32, bool) {
        let Self { avx, avx2, .. } = self;
        let with = avx._mm256_set1_epi16(with);
        let halves: [std::arch::x86_64::__m256i; 2] = pulp::cast(*codes);
        let [a, b] = halves.map(|half| avx2._mm256_cmpgt_epi16(with, half));
        let [c, d] = halves.map(|half| avx2._mm256_cmpeq_epi16(with, half));
        // Packing takes half of each at a time.
        let is_less = avx2._mm256_permute4x64_epi64::<0b11_01_10_00>(avx2._mm256_packs_epi16(a, b));
        let is_same = avx2._mm256_movemask_epi8(avx2._mm256_or_si256(c, d)) != 0;
        (avx2._mm256_movemask_epi8(is_less).cast_unsigned(), is_same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::NodeKey;

    fn one_by_one(codes: &[i16; MOST], with: i16) -> (u32, bool) {
        let bits = (0..MOST).map(|k| u32::from(codes[k] < with) << k).sum();
        (bits, codes.contains(&with))
    }

    #[test]
    fn all_ways_find_what_is_found_one_by_one() {
        for i in 0..500 {
            let draw = |k: u64| (NodeKey::root(i, k).draw(0).to_bits() >> (i % 16)) as i16;
            let mut codes: [i16; MOST] = std::array::from_fn(|k| draw(k as u64));
            (codes[3], codes[9], codes[30]) = (i16::MIN, i16::MAX, 0);
            for with in [i16::MIN, -1, 0, 1, i16::MAX, codes[0], codes[15], codes[16], codes[31], draw(99)] {
                let expected = one_by_one(&codes, with);
                assert_eq!(Scalar.compare(&codes, with), expected);
                #[cfg(target_arch = "x86_64")]
                if let Some(v3) = pulp::x86::V3::try_new() {
                    assert_eq!(v3.compare(&codes, with), expected);
                }
            }
        }
    }
}
