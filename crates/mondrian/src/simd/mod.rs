//! Vector instructions: the only module with `cfg(target_arch)` and with `unsafe` code.
//!
//! Everything here has a portable twin that gives the same result; the tests run both.

pub(crate) mod compare;
mod dispatch;
#[cfg(target_arch = "x86_64")]
pub(crate) mod gather;
pub(crate) mod partition;
#[cfg(target_arch = "x86_64")]
pub(crate) mod partition_avx2;
pub(crate) mod transpose;

pub(crate) use dispatch::{Simd, WithSimd, axpy, dot, vectorise, with_vectors};
