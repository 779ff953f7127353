//! Vector instructions: the only module with `cfg(target_arch)` and with `unsafe` code.
//!
//! Everything here has a portable twin that gives the same result. The tests run both on every machine:
//! `portably` selects the portable one.

pub(crate) mod compare;
mod dispatch;
pub(crate) mod partition;
#[cfg(target_arch = "x86_64")]
mod partition_avx2;
pub(crate) mod prefetch;
pub(crate) mod transpose;

pub(crate) use dispatch::{Simd, WithSimd, axpy, dot, vectorise, with_vectors};
#[cfg(test)]
pub(crate) use dispatch::{portably, with_256_bits};
