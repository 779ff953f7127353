//! Partitioning an array of numbers at a cut, in place.

#![expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]

/// Codes of numbered points in one dimension: that of point k is at `first` + k · `stride`, followed by another code,
/// because a gather reads four bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column<'a> {
    pub(crate) codes: &'a [u16],
    pub(crate) stride: usize,
    pub(crate) first: usize,
}

impl Column<'_> {
    #[inline]
    pub(crate) fn code_of(self, number: u32) -> u16 {
        self.codes[number as usize * self.stride + self.first]
    }

    /// Whether the point of a number is below a cut with this code; if the codes are equal, `exact` decides.
    #[inline]
    pub(crate) fn below(self, cut: u16, exact: impl Fn(u32) -> bool) -> impl Fn(u32) -> bool {
        move |number| match self.code_of(number) {
            code if code == cut => exact(number),
            code => code < cut,
        }
    }
}

/// Smaller arrays are partitioned by swaps, which is faster than a call to move memory.
const SWAP_BELOW: usize = 32;

/// Moves the numbers that satisfy `is_below` to the front and returns their count. Large arrays keep their order, so
/// that memory indexed by them is read in order too. `scratch` is a reusable buffer.
#[inline]
pub(crate) fn partition(numbers: &mut [u32], scratch: &mut Vec<u32>, is_below: impl Fn(u32) -> bool) -> usize {
    if numbers.len() < SWAP_BELOW {
        return partition_by_swaps(numbers, is_below);
    }
    finish(numbers, room(scratch, numbers.len()), 0, 0, is_below)
}

/// As [`partition`], keeping the order of small arrays too.
#[inline]
pub(crate) fn partition_stable(numbers: &mut [u32], scratch: &mut Vec<u32>, is_below: impl Fn(u32) -> bool) -> usize {
    finish(numbers, room(scratch, numbers.len()), 0, 0, is_below)
}

/// As [`partition`] by the codes in a column that are below the code of a cut; if they are equal, `exact` decides.
#[inline]
pub(crate) fn partition_by_codes(
    numbers: &mut [u32],
    scratch: &mut Vec<u32>,
    column: Column<'_>,
    cut: u16,
    exact: impl Fn(u32) -> bool,
) -> usize {
    #[cfg(target_arch = "x86_64")]
    if numbers.len() >= SWAP_BELOW
        && crate::simd::partition_avx2::can_gather(column)
        && let Some(v3) = crate::simd::dispatch::v3()
    {
        let scratch = room(scratch, numbers.len());
        return v3.vectorize(
            #[inline(always)]
            || crate::simd::partition_avx2::partition_avx2(v3, numbers, scratch, column, cut, exact),
        );
    }
    partition(numbers, scratch, column.below(cut, exact))
}

/// The part of `scratch` needed for this many numbers.
fn room(scratch: &mut Vec<u32>, n: usize) -> &mut [u32] {
    if scratch.len() < n {
        scratch.resize(n, 0);
    }
    &mut scratch[..n]
}

/// Partitions the numbers from `start` on. Of the earlier ones, `n_below` are at the front and the others in `scratch`.
#[inline(always)]
pub(crate) fn finish(
    numbers: &mut [u32],
    scratch: &mut [u32],
    start: usize,
    n_below: usize,
    is_below: impl Fn(u32) -> bool,
) -> usize {
    let (mut n_below, mut n_above) = (n_below, start - n_below);
    for i in start..numbers.len() {
        let number = numbers[i];
        let below = usize::from(is_below(number));
        numbers[n_below] = number;
        scratch[n_above] = number;
        n_below += below;
        n_above += 1 - below;
    }
    numbers[n_below..].copy_from_slice(&scratch[..n_above]);
    n_below
}

/// As [`partition`], without a buffer and without branches; the order changes.
#[inline]
pub(crate) fn partition_by_swaps(numbers: &mut [u32], is_below: impl Fn(u32) -> bool) -> usize {
    let mut n_below = 0;
    for i in 0..numbers.len() {
        let number = numbers[i];
        numbers.swap(i, n_below);
        n_below += usize::from(is_below(number));
    }
    n_below
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::NodeKey;
    use crate::simd::portably;
    use std::cmp::Ordering;

    #[test]
    fn parts_as_a_filter_does() {
        let mut scratch = Vec::new();
        for n in [0, 1, 5, 31, 32, 100] {
            for divisor in [1, 2, 3, 1000] {
                let mut numbers: Vec<u32> = (1..=n).collect();
                let is_below = |p: u32| p.is_multiple_of(divisor);
                let n_below = partition(&mut numbers, &mut scratch, is_below);
                assert!(numbers[..n_below].iter().all(|p| is_below(*p)));
                assert!(numbers[n_below..].iter().all(|p| !is_below(*p)));
                numbers.sort_unstable();
                assert_eq!(numbers, (1..=n).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_stable_partition_keeps_the_order_of_both_parts() {
        let mut scratch = Vec::new();
        for n in [0, 1, 2, 7, 31, 32, 100] {
            let mut numbers: Vec<u32> = (0..n).map(|k| k * 7919 % 101).collect();
            let (below, above): (Vec<u32>, Vec<u32>) = numbers.iter().partition(|p| **p % 3 == 1);
            assert_eq!(partition_stable(&mut numbers, &mut scratch, |p| p % 3 == 1), below.len());
            assert_eq!(numbers, [below, above].concat());
        }
    }

    #[test]
    fn parts_by_codes_as_one_by_one() {
        let mut scratch = Vec::new();
        for (n, stride, n_codes) in
            [(0, 1, 9), (7, 3, 9), (32, 10, 65_536), (333, 10, 4), (1000, 16, 65_536), (800, 1, 1)]
        {
            let draw = |k: u64| NodeKey::root(4, k).draw(0).uniform();
            let codes: Vec<u16> = (0..=n * stride).map(|k| (draw(k) * f64::from(n_codes)) as u16).collect();
            // In no order, and some twice.
            let order: Vec<u32> = (0..n).map(|k| (draw(n * stride + k) * n as f64) as u32).collect();
            for first in 0..stride as usize {
                let column = Column { codes: &codes, stride: stride as usize, first };
                for cut in [0, 1, 2, 20_000, u16::MAX] {
                    let exact = |number: u32| number % 3 == 1;
                    let is_below = |number: u32| match column.code_of(number).cmp(&cut) {
                        Ordering::Equal => exact(number),
                        order => order == Ordering::Less,
                    };
                    let (mut found, mut expected) = (order.clone(), order.clone());
                    let n_below = partition_by_codes(&mut found, &mut scratch, column, cut, exact);
                    assert_eq!(n_below, partition(&mut expected, &mut scratch, is_below));
                    assert_eq!(found, expected, "{n} numbers, cut {cut} in column {first}");
                    let mut portable = order.clone();
                    let n_portable = portably(|| partition_by_codes(&mut portable, &mut scratch, column, cut, exact));
                    assert_eq!((n_portable, &portable), (n_below, &expected));
                }
            }
        }
    }
}
