//! Prefetching of memory before it is read.
//!
//! A descent of a tree waits for memory at every node, and its next step depends on the value read there, so the
//! processor cannot look ahead. Several descents that are interleaved, each prefetching its next node before the next
//! descent continues, hardly wait at all.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "there is no safe prefetch function; it reads nothing and cannot fail")
)]

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
