//! What the program asks of the system beyond the standard library, and its only unsafe code.
#![cfg_attr(all(target_os = "linux", target_env = "gnu"), expect(unsafe_code, reason = "calls of the C library"))]

/// Gives memory that is free back to the system, where the allocator would keep it.
///
/// Choosing a lifetime fits trees to a sample and lets them go again, and growing leaves arrays behind that became too small. The
/// GNU allocator keeps what was freed, in pieces that the large arrays grown next do not fit into: on flights2001 the
/// peak was 280 MB above the model with them, 100 without (docs/program.md).
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `malloc_trim` may be called at any time, from any thread; it touches no memory that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Whether standard output was closed when the process started (`>&-`).
///
/// The standard library opens `/dev/null` in its place before `main`, so that writing succeeds and nothing arrives: this has to
/// be asked earlier.
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

    /// Runs before the standard library looks at the descriptors.
    // SAFETY: the section holds functions of this type, which the loader calls once, before `main`.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static LOOK: extern "C" fn() = look;

    extern "C" fn look() {
        // SAFETY: asks for the flags of a descriptor, open or not; touches no memory.
        let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
        STDOUT_WAS_CLOSED.store(flags == -1, Ordering::Relaxed);
    }
}
