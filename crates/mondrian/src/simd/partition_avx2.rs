//! Stable partition of point ids by their codes with AVX2, eight at a time.

#![expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]

use pulp::x86::V3;

use crate::simd::gather::gather;
use crate::simd::partition::finish;
use crate::tree::build::quantize::Column;

/// For each set of eight lanes those in it, in order.
static LANES: [[u8; 8]; 256] = lanes();

const fn lanes() -> [[u8; 8]; 256] {
    let mut lanes = [[0; 8]; 256];
    let mut set = 0;
    while set < 256 {
        let (mut lane, mut n) = (0, 0);
        while lane < 8 {
            if set >> lane & 1 == 1 {
                lanes[set][n] = lane;
                n += 1;
            }
            lane += 1;
        }
        set += 1;
    }
    lanes
}

/// As [`crate::tree::partition`] by codes below a cut's, in a column that [is short](Column::is_short); where they agree, `exact`
/// decides.
#[inline(always)]
pub(crate) fn partition_avx2(
    v3: V3,
    numbers: &mut [u32],
    scratch: &mut [u32],
    column: Column<'_>,
    cut: u16,
    exact: impl Fn(u32) -> bool,
) -> usize {
    let V3 { avx, avx2, .. } = v3;
    let all = |x: u32| avx._mm256_set1_epi32(x.cast_signed());
    let (stride, first, with, low) =
        (all(column.stride as u32), all(column.first as u32), all(cut.into()), all(0xFFFF));
    let bits = |is| avx._mm256_movemask_ps(avx._mm256_castsi256_ps(is)).cast_unsigned();
    let (mut n_below, mut n_above) = (0, 0);
    let whole = numbers.len() / 8 * 8;
    for at in (0..whole).step_by(8) {
        let Some(eight) = numbers[at..].first_chunk::<8>().copied() else { break };
        let lanes = pulp::cast(eight);
        let places = avx2._mm256_add_epi32(avx2._mm256_mullo_epi32(lanes, stride), first);
        let codes = avx2._mm256_and_si256(gather(v3, column.codes, places), low);
        let mut below = bits(avx2._mm256_cmpgt_epi32(with, codes));
        let same = bits(avx2._mm256_cmpeq_epi32(with, codes));
        if same != 0 {
            below |= decide(eight, same, &exact);
        }
        let picked = |set: u32| -> [u32; 8] {
            let order = avx2._mm256_cvtepu8_epi32(pulp::cast([u64::from_le_bytes(LANES[set as usize % 256]), 0]));
            pulp::cast(avx2._mm256_permutevar8x32_epi32(lanes, order))
        };
        // What follows the picked ones is overwritten, or was read already.
        numbers[n_below..n_below + 8].copy_from_slice(&picked(below));
        scratch[n_above..n_above + 8].copy_from_slice(&picked(!below));
        n_below += below.count_ones() as usize;
        n_above = at + 8 - n_below;
    }
    finish(numbers, scratch, whole, n_below, column.below(cut, exact))
}

/// Those of a set that lie below.
#[cold]
fn decide(eight: [u32; 8], set: u32, exact: impl Fn(u32) -> bool) -> u32 {
    (0..8).filter(|lane| set >> lane & 1 == 1).map(|lane| u32::from(exact(eight[lane])) << lane).sum()
}
