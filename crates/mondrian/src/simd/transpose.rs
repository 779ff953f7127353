//! Transposes codes of points to one row per dimension.

/// Number of points, and of dimensions, that are transposed at once.
pub(crate) const EIGHT: usize = 8;

/// Eight codes of eight points, point by point, dimension by dimension.
#[inline]
pub(crate) fn transposed(points: [[u16; EIGHT]; EIGHT]) -> [[u16; EIGHT]; EIGHT] {
    #[cfg(target_arch = "x86_64")]
    if let Some(v1) = crate::simd::dispatch::v1() {
        return by_vectors(v1, points);
    }
    one_by_one(points)
}

/// 8×8 transpose by three unpack passes.
#[cfg(target_arch = "x86_64")]
#[inline]
fn by_vectors(v1: pulp::x86::V1, points: [[u16; EIGHT]; EIGHT]) -> [[u16; EIGHT]; EIGHT] {
    let mut rows: [std::arch::x86_64::__m128i; EIGHT] = pulp::cast(points);
    for _ in 0..3 {
        let before = rows;
        for at in 0..EIGHT / 2 {
            let (a, b) = (before[at], before[at + EIGHT / 2]);
            rows[2 * at] = v1.sse2._mm_unpacklo_epi16(a, b);
            rows[2 * at + 1] = v1.sse2._mm_unpackhi_epi16(a, b);
        }
    }
    pulp::cast(rows)
}

fn one_by_one(points: [[u16; EIGHT]; EIGHT]) -> [[u16; EIGHT]; EIGHT] {
    std::array::from_fn(|dim| std::array::from_fn(|point| points[point][dim]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_turn_codes_the_same_way() {
        let points = std::array::from_fn(|k| std::array::from_fn(|dim| (1000 * k + dim) as u16));
        assert_eq!(transposed(points), one_by_one(points));
        assert_eq!(crate::simd::portably(|| transposed(points)), one_by_one(points));
    }
}
