//! The Cholesky factorisation of a large matrix in single precision: half the time and memory of double.
//!
//! With entries of at most 1 + α each is off by about 6e-8, so the inverse is off by about 6e-8/α relative to itself:
//! enough for its diagonal, and for a preconditioner after which two or three steps of conjugate gradients in double
//! precision reach rounding.

use faer::dyn_stack::MemStack;
use faer::linalg::cholesky::llt;
use faer::{MatMut, MatRef, Par};

use crate::Result;
use crate::linalg::blocked::{diagonal_of_inverse, each, factor_columns};
use crate::linalg::{Matrix, Threads, dot};

/// L with LLᵀ = A, in the lower triangle.
#[derive(Debug)]
pub(crate) struct SingleFactor {
    lower: Vec<f32>,
    n: usize,
    threads: Threads,
}

/// Right-hand sides solved for by one task.
const COLUMNS: usize = 8;

impl SingleFactor {
    /// Factors a matrix of n rows, column after column, in its own memory; only its lower triangle is read.
    ///
    /// # Errors
    /// [`crate::Error::NotPositiveDefinite`].
    pub(crate) fn new(mut a: Vec<f32>, n: usize, threads: Threads) -> Result<Self> {
        factor_columns(&mut a, n, threads)?;
        Ok(Self { lower: a, n, threads })
    }

    /// About A⁻¹b, each column in units of its own length.
    pub(crate) fn solve(&self, b: &Matrix) -> Matrix {
        let (n, lower) = (self.n, MatRef::from_column_major_slice(&self.lower, self.n, self.n));
        let mut out = b.clone();
        let solve = |columns: &mut [f64]| {
            let lengths: Vec<f64> = columns.chunks_exact(n).map(|x| dot(x, x).sqrt().max(f64::MIN_POSITIVE)).collect();
            let mut right: Vec<f32> = columns
                .chunks_exact(n)
                .zip(&lengths)
                .flat_map(|(x, l)| x.iter().map(move |x| (x / l) as f32))
                .collect();
            let view = MatMut::from_column_major_slice_mut(&mut right, n, lengths.len());
            llt::solve::solve_in_place(lower, view, Par::Seq, MemStack::new(&mut []));
            for ((out, x), l) in columns.chunks_exact_mut(n).zip(right.chunks_exact(n)).zip(&lengths) {
                out.iter_mut().zip(x).for_each(|(out, x)| *out = l * f64::from(*x));
            }
        };
        each(out.as_mut_slice().chunks_mut(n * COLUMNS).collect(), self.threads, solve);
        out
    }

    /// The diagonal of A⁻¹, of the last `count` rows.
    pub(crate) fn inverse_diagonal(&self, count: usize) -> Vec<f64> {
        diagonal_of_inverse(&self.lower, self.n, count, self.threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Cholesky;

    #[test]
    fn is_near_the_factor_in_double_precision() {
        for n in [1, 257, 700] {
            let a = Matrix::from_fn(n, n, |i, j| (-0.3 * i.abs_diff(j) as f64).exp() + if i == j { 0.1 } else { 0.0 });
            let whole = Cholesky::new(a.clone(), Threads::ONE).unwrap();
            let single = |threads| {
                let numbers = a.as_slice().iter().map(|x| *x as f32).collect();
                SingleFactor::new(numbers, n, Threads::up_to(threads)).unwrap()
            };
            let (one, two) = (single(1), single(2));
            let b = Matrix::from_fn(n, 11, |i, j| 1e30 * ((i * (j + 2)) as f64).sin() * f64::from(u8::from(j != 3)));
            let found = one.solve(&b);
            assert_eq!(found, two.solve(&b));
            for j in 0..11 {
                let expected = whole.solve(b.column(j)).unwrap();
                let off: Vec<f64> = found.column(j).iter().zip(&expected).map(|(a, b)| a - b).collect();
                assert!(dot(&off, &off) <= 1e-10 * dot(&expected, &expected), "{n} {j}");
            }
            let (diagonal, inverse) = (one.inverse_diagonal(n), whole.inverse());
            assert_eq!(diagonal, two.inverse_diagonal(n));
            assert!((0..n).all(|i| (diagonal[i] / inverse[(i, i)] - 1.0).abs() < 1e-5));
        }
        assert!(SingleFactor::new(vec![-1.0], 1, Threads::ONE).is_err());
    }
}
