//! Run-time dispatch: loops compiled for several instruction sets, selected for the current processor.
//!
//! pulp picks the instruction set at run time (vectors of 512 or 256 bits, or none) and compiles the closure for each; the
//! code stays safe and plain. No fused multiply-add is formed from separate operations, so the bits do not depend on the choice.

pub(crate) use pulp::{Simd, WithSimd};

/// Runs `work` compiled for the widest vectors of the machine. All hot code in it must be inlined.
#[inline]
pub(crate) fn vectorise<R>(work: impl FnOnce() -> R) -> R {
    if is_portable() { work() } else { pulp::Arch::new().dispatch(work) }
}

/// The vectors of 256 bits, if the machine has them.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn v3() -> Option<pulp::x86::V3> {
    if is_portable() { None } else { pulp::x86::V3::try_new() }
}

/// The vectors of 128 bits, if the machine has them.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn v1() -> Option<pulp::x86::V1> {
    if is_portable() { None } else { pulp::x86::V1::try_new() }
}

/// Whether vector instructions are disabled on this thread: only in the tests, see [`portably`].
#[cfg(not(test))]
#[inline]
const fn is_portable() -> bool {
    false
}

#[cfg(test)]
thread_local! {
    static IS_PORTABLE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

#[cfg(test)]
fn is_portable() -> bool {
    IS_PORTABLE.get()
}

/// Runs `work` on this thread as on a machine without vector instructions that we name: the portable twin.
#[cfg(test)]
pub(crate) fn portably<R>(work: impl FnOnce() -> R) -> R {
    let before = IS_PORTABLE.replace(true);
    let result = work();
    IS_PORTABLE.set(before);
    result
}

/// As [`vectorise`], for work that uses vector types itself: their type is an argument of [`WithSimd::with_simd`].
#[inline]
pub(crate) fn with_vectors<W: WithSimd>(work: W) -> W::Output {
    pulp::Arch::new().dispatch(work)
}

/// As [`with_vectors`], with vectors of 256 bits even if wider ones are available: the tests compare both.
#[cfg(test)]
pub(crate) fn with_256_bits<W: WithSimd>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(v3) = pulp::x86::V3::try_new() {
        return Simd::vectorize(v3, work);
    }
    with_vectors(work)
}

/// `y` ← `y` + `a`·`x`.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]
pub(crate) fn axpy(a: f64, x: &[f64], y: &mut [f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

/// xᵀy as eight partial sums in a fixed order, so that it vectorises and gives the same bits everywhere.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]
pub(crate) fn dot(x: &[f64], y: &[f64]) -> f64 {
    let mut strands = [0.0; 8];
    let (xs, x_rest) = x.as_chunks::<8>();
    let (ys, y_rest) = y.as_chunks::<8>();
    for (x, y) in xs.iter().zip(ys) {
        for k in 0..8 {
            strands[k] += x[k] * y[k];
        }
    }
    let rest: f64 = x_rest.iter().zip(y_rest).map(|(x, y)| x * y).sum();
    strands.iter().sum::<f64>() + rest
}
