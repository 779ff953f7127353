//! Dense linear algebra: the only module that names faer.
//!
//! A plain column-major [`Matrix`], products, [`Cholesky`], and the factorisations that follow a symmetric positive
//! definite matrix while it changes, each change in O(n²) (report, appendices A and D; docs/design.md, "The path, exact
//! at every cut"):
//!
//! | type | keeps | changes |
//! | --- | --- | --- |
//! | [`Inverse`] | A and P = A⁻¹ | rank one, rank k (Woodbury), remove, border, merge of two features |
//! | [`Factor`] | A and L with LLᵀ = A | append, remove (Givens rotations), rank-one up and downdate |
//! | [`DeferredInverse`] | P and pending update vectors | rank one, remove, merge; applied in blocks as one matrix product |
//!
//! The first two watch ‖AP − I‖ (‖LLᵀ − A‖) against the error of a fresh factorisation and are computed anew
//! when it is exceeded; see [`Drift`].
//!
//! Threads are an argument ([`Threads`]), never a global: faer's threads wait by spinning, so more than one pays only
//! for one large call from the top level while no other thread works.

mod blocked;
mod cholesky;
mod deferred;
mod drift;
mod factor;
mod inverse;
mod matrix;
mod product;
mod single;
mod symmetric;

pub(crate) use crate::simd::{axpy, dot};
pub(crate) use blocked::{
    Real, each, factor_blocks, factor_columns, inverse_blocks, inverse_diagonal, mirror, product_lower, solve_blocks,
    solve_columns,
};
pub use cholesky::Cholesky;
pub use deferred::{DeferredInverse, Merge};
pub use drift::Drift;
pub use factor::Factor;
pub use inverse::Inverse;
pub use matrix::{Matrix, MatrixMut, MatrixRef, Operand};
pub use product::{Into, Threads, gemm, gemm_lower, gemv, syrk_lower};
pub(crate) use single::SingleFactor;
pub use symmetric::Symmetric;
