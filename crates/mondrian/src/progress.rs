//! Progress and cancellation of long calls.

use std::ops::ControlFlow;

/// A callback that receives the share of work done, from 0 to 1. Called from one thread; answer [`ControlFlow::Break`]
/// to cancel.
pub type Progress<'a> = &'a mut dyn FnMut(f64) -> ControlFlow<()>;

/// A progress callback that never cancels.
pub fn no_progress() -> impl FnMut(f64) -> ControlFlow<()> {
    |_| ControlFlow::Continue(())
}

/// Progress through one part of a longer run, from one fraction of the whole to another.
pub fn part_of(progress: Progress<'_>, from: f64, to: f64) -> impl FnMut(f64) -> ControlFlow<()> {
    move |fraction| progress(from + (to - from) * fraction)
}

/// Reports progress, as an error if the callback cancels.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn report(progress: Progress<'_>, fraction: f64) -> crate::Result<()> {
    match progress(fraction) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(crate::Error::Cancelled),
    }
}
