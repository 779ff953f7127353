//! AVX2 gather of eight u16 codes, bounds-checked: the only unsafe code of this crate.
//!
//! The gather instruction takes a pointer, so no safe function wraps it. With scalar loads, partitioning points takes
//! 1.5 times as long (docs/benchmarks/tree.md).
#![expect(unsafe_code, reason = "nothing safe looks up several places at once; measured, see above")]
#![expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]

use std::arch::x86_64::__m256i;

use pulp::x86::V3;

/// The codes at eight places, each followed by another one in the upper half: all places but the last.
///
/// # Panics
/// If a place is not among them.
#[inline(always)]
pub(crate) fn gather(v3: V3, codes: &[u16], places: __m256i) -> __m256i {
    let n_places = codes.len().saturating_sub(1).min(i32::MAX as usize);
    let last = v3.avx._mm256_set1_epi32((n_places as i32) - 1);
    let is_place = v3.avx2._mm256_cmpeq_epi32(v3.avx2._mm256_min_epu32(places, last), places);
    assert!(n_places > 0 && v3.avx2._mm256_movemask_epi8(is_place) == -1, "a point without a code");
    // SAFETY: a place p is a number that is not negative with p + 1 < codes.len(), so that the four bytes from code p on are
    // those of two codes. An instruction set of type V3 is one that this machine has.
    unsafe { v3.avx2._mm256_i32gather_epi32::<2>(codes.as_ptr().cast(), places) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(codes: &[u16], places: [u32; 8]) -> Option<[u16; 8]> {
        let v3 = V3::try_new()?;
        let found: [u32; 8] = pulp::cast(v3.vectorize(|| gather(v3, codes, pulp::cast(places))));
        Some(found.map(|code| code as u16))
    }

    #[test]
    fn codes_are_those_at_their_places() {
        let codes: Vec<u16> = (0..100).map(|k| 65_535 - 641 * k).collect();
        let places = [0, 98, 7, 7, 50, 1, 97, 64];
        if let Some(found) = gathered(&codes, places) {
            assert_eq!(found, places.map(|place| codes[place as usize]));
        }
    }

    #[test]
    fn other_places_are_refused() {
        if V3::try_new().is_none() {
            return;
        }
        for (n_codes, place) in [(0, 0), (1, 0), (2, 1), (100, 99), (100, u32::MAX), (100, 1 << 31)] {
            let mut places = [0; 8];
            places[5] = place;
            let outcome = std::panic::catch_unwind(|| gathered(&vec![0; n_codes], places));
            assert!(outcome.is_err(), "place {place} of {n_codes}");
        }
    }
}
