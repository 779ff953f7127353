//! Prefetching of memory before it is read.
//!
//! A descent of a tree waits for memory at every node, and its next step depends on the value read there, so the
//! processor cannot look ahead. Several descents that are interleaved, each prefetching its next node before the next
//! descent continues, hardly wait at all.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "there is no safe prefetch function; it reads nothing and cannot fail")
)]

/// Prefetches up to 16 numbers that start at an index. They may begin anywhere in a cache line, so the last one is prefetched too.
#[inline]
pub(crate) fn prefetch_row(numbers: &[f64], start: usize, n: usize) {
    for at in [0, 8, n.clamp(1, 16) - 1] {
        prefetch(numbers, start + at);
    }
}

/// Prefetches an item; the first one if the index is out of range.
#[inline]
pub(crate) fn prefetch<T>(items: &[T], at: usize) {
    // Without a branch: the indices are unpredictable.
    let at = if at < items.len() { at } else { 0 };
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint about an address, which is never read through; the place is at most one past the end of the items.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(items.as_ptr().add(at).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
