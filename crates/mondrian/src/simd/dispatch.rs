//! Run-time dispatch: loops compiled for several instruction sets, chosen by the processor at hand.
//!
//! pulp picks the instruction set at run time and compiles the closure for each; the code stays safe and plain. No
//! fused multiply-add is formed from separate operations, so the bits do not depend on the choice.

pub(crate) use pulp::{Simd, WithSimd};

/// Runs `work` compiled for the widest vectors the machine has. Everything hot in it must be inlined.
#[inline]
pub(crate) fn vectorise<R>(work: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(work)
}

/// As [`vectorise`], for work that names vectors itself: their type is an argument of [`WithSimd::with_simd`].
#[inline]
pub(crate) fn with_vectors<W: WithSimd>(work: W) -> W::Output {
    pulp::Arch::new().dispatch(work)
}

/// `y` ← `y` + `a`·`x`.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]
pub(crate) fn axpy(a: f64, x: &[f64], y: &mut [f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

/// xᵀy in eight strands of fixed shape, so that it vectorises and is the same everywhere.
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
