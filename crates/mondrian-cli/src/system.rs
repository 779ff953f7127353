//! Calls of the system beyond the standard library, and the program's only unsafe code.
#![cfg_attr(all(target_os = "linux", target_env = "gnu"), expect(unsafe_code, reason = "calls of the C library"))]

/// Returns free memory of the allocator to the system.
///
/// Choosing a lifetime fits trees to a sample and drops them, and growing reallocates arrays. The GNU allocator keeps
/// freed memory in fragments that are too small for later large arrays: on flights2001 the peak was 280 MB above the
/// model without this call, 100 MB with it (docs/benchmarks/program.md).
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `malloc_trim` may be called at any time, from any thread; it touches no memory that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Whether standard output was closed when the process started (`>&-`).
///
/// The standard library opens `/dev/null` in its place before `main`, so that writing succeeds but the output is lost:
/// this has to be checked earlier.
pub(crate) fn stdout_was_closed() -> bool {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    return startup::STDOUT_WAS_CLOSED.load(std::sync::atomic::Ordering::Relaxed);
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    return false;
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod startup {
    use std::sync::atomic::{AtomicBool, Ordering};

    pub(super) static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

    /// Runs before the standard library checks the descriptors.
    // SAFETY: the section holds functions of this type, which the loader calls once, before `main`.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static CHECK: extern "C" fn() = check;

    extern "C" fn check() {
        // SAFETY: reads the flags of a descriptor, open or not; accesses no memory.
        let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
        STDOUT_WAS_CLOSED.store(flags == -1, Ordering::Relaxed);
    }
}
