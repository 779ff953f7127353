//! Matrix products, with the number of threads as an argument.

use std::num::NonZeroUsize;

use faer::linalg::matmul;
use faer::linalg::matmul::triangular::BlockStructure;
use faer::{Accum, Par};

use crate::linalg::{MatrixMut, MatrixRef, Operand};

/// How many threads one call may use.
///
/// One is the default and right inside parallel tasks, in tests and for anything small. More are right for one big
/// call from the top level: faer's threads spin while they wait, so with any other thread at work two are slower than
/// one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Threads(NonZeroUsize);

impl Threads {
    /// One thread.
    pub const ONE: Self = Self(NonZeroUsize::MIN);

    /// Up to `n` threads; 0 means one.
    pub fn up_to(n: usize) -> Self {
        Self(NonZeroUsize::new(n).unwrap_or(NonZeroUsize::MIN))
    }

    /// The number.
    pub fn get(self) -> usize {
        self.0.get()
    }

    pub(crate) fn par(self) -> Par {
        #[cfg(feature = "parallel")]
        if self != Self::ONE {
            return Par::Rayon(self.0);
        }
        Par::Seq
    }
}

impl Default for Threads {
    fn default() -> Self {
        Self::ONE
    }
}

/// What happens to the numbers that a product is written over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Into {
    /// They are lost.
    Replace,
    /// The product is added to them.
    Add,
}

impl Into {
    fn accum(self) -> Accum {
        match self {
            Self::Replace => Accum::Replace,
            Self::Add => Accum::Add,
        }
    }
}

/// `out` ← `alpha`·`a`·`b`, or added to `out`.
///
/// ```
/// use mondrian::Matrix;
/// use mondrian::internals::linalg::{Into, Threads, gemm};
/// let a = Matrix::from_fn(2, 3, |i, j| (i + j) as f64);
/// let mut g = Matrix::zeros(3, 3);
/// gemm(1.0, a.view().t(), &a, Into::Replace, g.view_mut(), Threads::ONE);
/// assert_eq!(g[(2, 1)], 1.0 * 2.0 + 2.0 * 3.0);
/// ```
///
/// # Panics
/// If the shapes do not fit together.
pub fn gemm<'a>(
    alpha: f64,
    a: impl std::convert::Into<Operand<'a>>,
    b: impl std::convert::Into<Operand<'a>>,
    into: Into,
    out: MatrixMut<'_>,
    threads: Threads,
) {
    matmul::matmul(out.faer(), into.accum(), a.into().faer(), b.into().faer(), alpha, threads.par());
}

/// The lower triangle of `out` ← `alpha`·`a`·`b`, or added to it; half the work of [`gemm`] for a symmetric product.
///
/// # Panics
/// If the shapes do not fit together.
pub fn gemm_lower<'a>(
    alpha: f64,
    a: impl std::convert::Into<Operand<'a>>,
    b: impl std::convert::Into<Operand<'a>>,
    into: Into,
    out: MatrixMut<'_>,
    threads: Threads,
) {
    matmul::triangular::matmul(
        out.faer(),
        BlockStructure::TriangularLower,
        into.accum(),
        a.into().faer(),
        BlockStructure::Rectangular,
        b.into().faer(),
        BlockStructure::Rectangular,
        alpha,
        threads.par(),
    );
}

/// The lower triangle of `out` ← `alpha`·`a`·`a`ᵀ, or added to it.
///
/// # Panics
/// If the shapes do not fit together.
pub fn syrk_lower<'a>(
    alpha: f64,
    a: impl std::convert::Into<Operand<'a>>,
    into: Into,
    out: MatrixMut<'_>,
    threads: Threads,
) {
    let a = a.into();
    gemm_lower(alpha, a, a.t(), into, out, threads);
}

/// `out` ← `alpha`·`a`·`x`, or added to `out`.
///
/// # Panics
/// If the shapes do not fit together.
pub fn gemv<'a>(alpha: f64, a: impl std::convert::Into<Operand<'a>>, x: &[f64], into: Into, out: &mut [f64]) {
    let (n_x, n_out) = (x.len(), out.len());
    let x = MatrixRef::new(x, n_x, 1).faer();
    matmul::matmul(MatrixMut::new(out, n_out, 1).faer(), into.accum(), a.into().faer(), x, alpha, Par::Seq);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Matrix;

    #[test]
    fn products_agree_with_the_definition() {
        let a = Matrix::from_fn(7, 5, |i, j| (i * i) as f64 - 2.0 * j as f64);
        let b = Matrix::from_fn(7, 4, |i, j| (i + 3 * j) as f64);
        let slow = Matrix::from_fn(5, 4, |i, j| 0.5 * (0..7).map(|k| a[(k, i)] * b[(k, j)]).sum::<f64>() + 1.0);
        for threads in [Threads::ONE, Threads::up_to(2)] {
            let mut out = Matrix::from_fn(5, 4, |_, _| 1.0);
            gemm(0.5, a.view().t(), &b, Into::Add, out.view_mut(), threads);
            assert_eq!(out, slow);
        }
        let mut low = Matrix::from_fn(5, 5, |_, _| 7.0);
        syrk_lower(2.0, a.view().t(), Into::Replace, low.view_mut(), Threads::ONE);
        for (i, j) in (0..5).flat_map(|i| (0..5).map(move |j| (i, j))) {
            let dot: f64 = (0..7).map(|k| a[(k, i)] * a[(k, j)]).sum();
            assert_eq!(low[(i, j)], if i >= j { 2.0 * dot } else { 7.0 });
        }
        let mut y = [1.0; 7];
        gemv(1.0, &a, &[1.0, 0.0, 0.0, 0.0, 2.0], Into::Add, &mut y);
        assert_eq!(y[3], 1.0 + 9.0 + 2.0 * 1.0);
    }

    #[test]
    fn empty_products_are_fine() {
        let a = Matrix::zeros(0, 3);
        let mut out = Matrix::from_fn(3, 3, |_, _| 1.0);
        gemm(1.0, a.view().t(), &a, Into::Replace, out.view_mut(), Threads::ONE);
        assert_eq!(out, Matrix::zeros(3, 3));
        let none = Matrix::zeros(4, 0);
        gemm(1.0, &none, none.view().t(), Into::Add, Matrix::zeros(4, 4).view_mut(), Threads::ONE);
    }
}
