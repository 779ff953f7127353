//! The one thing that the program asks of the system's allocator, and its only unsafe code.
//!
//! Choosing a lifetime fits trees to a sample and lets them go again, and growing leaves arrays behind that became too small. The
//! GNU allocator keeps what was freed, in pieces that the large arrays grown next do not fit into: on flights2001 the
//! peak was 280 MB above the model with them, 100 without (docs/program.md).
#![cfg_attr(all(target_os = "linux", target_env = "gnu"), expect(unsafe_code, reason = "the system's allocator"))]

/// Gives memory that is free back to the system, where the allocator would keep it.
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `malloc_trim` may be called at any time, from any thread; it touches no memory that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}
