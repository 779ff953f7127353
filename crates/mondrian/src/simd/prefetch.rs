//! Asking for memory some time before it is read.
//!
//! A way down a tree waits at every node for memory, and what it does next depends on what it reads there, so that the processor cannot
//! look ahead. Several ways that go on in turns, each asking for its next node before it is another's turn, hardly wait at all.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "no safe function asks for memory; it reads nothing and cannot fail")
)]

/// Asks for up to 16 numbers from a place on. They start anywhere in a line of memory, so the last is asked for too.
#[inline]
pub(crate) fn prefetch_row(numbers: &[f64], start: usize, n: usize) {
    for at in [0, 8, n.clamp(1, 16) - 1] {
        prefetch(numbers, start + at);
    }
}

/// Asks for an item; for the first where there is no such item.
#[inline]
pub(crate) fn prefetch<T>(items: &[T], at: usize) {
    // Without a branch: which items are asked for cannot be predicted.
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
