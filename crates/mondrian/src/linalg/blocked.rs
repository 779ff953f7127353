//! The Cholesky factorisation of a large matrix, and the diagonal of its inverse, on several threads with the same bits
//! whatever their number: blocks of fixed size, each computed by one thread, in an order that does not matter.

use crate::parallel::prelude::*;
use faer::linalg::{matmul, triangular_solve};
use faer::{Accum, MatMut, MatRef, Par};

use crate::linalg::cholesky::factor_in_place;
use crate::linalg::{Matrix, Threads};
use crate::{Error, Result};

/// Columns of a block, and of one of a large matrix: by products of more columns at once less is moved.
const BLOCK: usize = 256;
const LARGE_BLOCK: usize = 512;
/// Rows from which on a matrix is large.
const LARGE: usize = 4096;
/// Rows of a panel solved by one task.
const PANEL: usize = 512;
/// Columns of a panel stored by one task: a cache line's worth.
const STORE: usize = 16;
/// Columns of the inverse solved for by one task, and of a large one.
const SOLVE: usize = 128;
const LARGE_SOLVE: usize = 256;

/// Numbers that matrices are factored in.
pub(crate) trait Real: faer::traits::RealField + Copy + Send + Sync + std::convert::Into<f64> {
    /// The nearest such number.
    fn near(x: f64) -> Self;
}

impl Real for f64 {
    fn near(x: f64) -> Self {
        x
    }
}

impl Real for f32 {
    fn near(x: f64) -> Self {
        x as f32
    }
}

/// Overwrites the lower triangle of `a` with L, LLᵀ = a.
///
/// # Errors
/// [`Error::NotPositiveDefinite`].
pub(crate) fn factor_blocks(a: &mut Matrix, threads: Threads) -> Result<()> {
    let n = a.n_rows();
    factor_columns(a.as_mut_slice(), n, threads)
}

/// The same for the columns of a matrix of n rows in either precision.
pub(crate) fn factor_columns<T: Real>(a: &mut [T], n: usize, threads: Threads) -> Result<()> {
    let size = if n < LARGE { BLOCK } else { LARGE_BLOCK };
    for first in (0..n).step_by(size) {
        let width = size.min(n - first);
        let end = first + width;
        let diagonal = factor_diagonal(a, n, first, width)?;
        if end == n {
            return Ok(());
        }
        let panel = solve_panel(a, n, &diagonal, first, threads);
        each(a[first * n..end * n].chunks_mut(n * STORE).enumerate().collect(), threads, |(k, columns)| {
            store(&panel, width, k * STORE, columns, n);
        });
        let panel: MatRef<'_, T> = MatRef::from_column_major_slice(&panel, width, n - end);
        let update = |(k, block): (usize, &mut [T])| {
            let start = end + k * size;
            let columns = block.len() / n;
            let out = MatMut::from_column_major_slice_with_stride_mut(&mut block[start..], n - start, columns, n);
            let rows = panel.subcols(start - end, n - start).transpose();
            let own = panel.subcols(start - end, columns);
            matmul::matmul(out, Accum::Add, rows, own, -T::one(), Par::Seq);
        };
        each(a[end * n..].chunks_mut(n * size).enumerate().collect(), threads, update);
    }
    Ok(())
}

/// Factors a block on the diagonal, in place and in a copy of its own.
fn factor_diagonal<T: Real>(a: &mut [T], n: usize, first: usize, width: usize) -> Result<Vec<T>> {
    let mut copy: Vec<T> = (0..width * width).map(|k| a[(first + k / width) * n + first + k % width]).collect();
    let block = MatMut::from_column_major_slice_mut(&mut copy, width, width);
    // A pivot that is NaN is not "≤ 0", so it passes faer's test.
    let bad = match factor_in_place(block, Par::Seq) {
        Err(row) => Some(row),
        Ok(()) => (0..width).find(|i| {
            let pivot: f64 = copy[i * width + i].into();
            !(pivot > 0.0 && pivot.is_finite())
        }),
    };
    if let Some(row) = bad {
        return Err(Error::NotPositiveDefinite { row: row + first });
    }
    for j in 0..width {
        a[(first + j) * n..][first + j..first + width].copy_from_slice(&copy[j * width..][j..width]);
    }
    Ok(copy)
}

/// The rows below a diagonal block times the inverse transpose of its factor, transposed: one column per row.
fn solve_panel<T: Real>(a: &[T], n: usize, diagonal: &[T], first: usize, threads: Threads) -> Vec<T> {
    let width = diagonal.len().isqrt();
    let end = first + width;
    let mut panel = vec![T::zero(); width * (n - end)];
    let diagonal: MatRef<'_, T> = MatRef::from_column_major_slice(diagonal, width, width);
    let solve = |(k, part): (usize, &mut [T])| {
        let start = end + k * PANEL;
        for j in 0..width {
            let column = &a[(first + j) * n + start..];
            part[j..].iter_mut().step_by(width).zip(column).for_each(|(out, x)| *out = *x);
        }
        let rows = part.len() / width;
        let right = MatMut::from_column_major_slice_mut(part, width, rows);
        triangular_solve::solve_lower_triangular_in_place(diagonal, right, Par::Seq);
    };
    each(panel.chunks_mut(width * PANEL).enumerate().collect(), threads, solve);
    panel
}

/// Writes some columns of a transposed panel, the first of them number `from`, below the diagonal block.
fn store<T: Real>(panel: &[T], width: usize, from: usize, columns: &mut [T], n: usize) {
    let (rows, count) = (panel.len() / width, columns.len() / n);
    for (i, row) in panel.chunks_exact(width).enumerate() {
        for (j, x) in row[from..from + count].iter().enumerate() {
            columns[j * n + n - rows + i] = *x;
        }
    }
}

/// Calls `work` with every part, on several threads if there are.
pub(crate) fn each<P: Send>(parts: Vec<P>, threads: Threads, work: impl Fn(P) + Sync + Send) {
    if threads == Threads::ONE {
        parts.into_iter().for_each(work);
    } else {
        parts.into_par_iter().for_each(work);
    }
}

/// The diagonal of (LLᵀ)⁻¹: squared lengths of the columns of L⁻¹, a block of which is one triangular solve.
///
/// Of the last `count` rows: those need the last rows of L alone, and the time of a matrix of their number.
pub(crate) fn inverse_diagonal(lower: &Matrix, count: usize, threads: Threads) -> Vec<f64> {
    diagonal_of_inverse(lower.as_slice(), lower.n_rows(), count, threads)
}

/// The same for the columns of L in either precision.
pub(crate) fn diagonal_of_inverse<T: Real>(lower: &[T], n: usize, count: usize, threads: Threads) -> Vec<f64> {
    let lower: MatRef<'_, T> = MatRef::from_column_major_slice(lower, n, n);
    let size = if count < LARGE { SOLVE } else { LARGE_SOLVE };
    let mut lengths = vec![0.0; count];
    let block = |(k, lengths): (usize, &mut [f64])| {
        let start = n - count + k * size;
        let rows = n - start;
        let mut x = vec![T::zero(); rows * lengths.len()];
        (0..lengths.len()).for_each(|j| x[j * rows + j] = T::one());
        let triangle = lower.submatrix(start, start, rows, rows);
        let right = MatMut::from_column_major_slice_mut(&mut x, rows, lengths.len());
        triangular_solve::solve_lower_triangular_in_place(triangle, right, Par::Seq);
        for (length, column) in lengths.iter_mut().zip(x.chunks_exact(rows)) {
            *length = square_of(column);
        }
    };
    each(lengths.chunks_mut(size).enumerate().collect(), threads, block);
    lengths
}

/// Σx² in double precision, in eight strands of fixed shape.
fn square_of<T: Real>(x: &[T]) -> f64 {
    let mut strands = [0.0; 8];
    let (groups, rest) = x.as_chunks::<8>();
    for group in groups.iter().map(<[_; 8]>::as_slice).chain([rest]) {
        for (strand, x) in strands.iter_mut().zip(group) {
            let x: f64 = (*x).into();
            *strand += x * x;
        }
    }
    strands.iter().sum()
}

/// (LLᵀ)⁻¹ in both triangles, column after column: blocks of columns of L⁻¹, then products of two of them each.
pub(crate) fn inverse_blocks<T: Real>(lower: &[T], n: usize, threads: Threads) -> Vec<T> {
    let lower: MatRef<'_, T> = MatRef::from_column_major_slice(lower, n, n);
    let columns = |k: usize| {
        let start = k * SOLVE;
        let (rows, width) = (n - start, SOLVE.min(n - start));
        let mut x = vec![T::zero(); rows * width];
        (0..width).for_each(|j| x[j * rows + j] = T::one());
        let triangle = lower.submatrix(start, start, rows, rows);
        let right = MatMut::from_column_major_slice_mut(&mut x, rows, width);
        triangular_solve::solve_lower_triangular_in_place(triangle, right, Par::Seq);
        x
    };
    let count = n.div_ceil(SOLVE);
    let parts: Vec<Vec<T>> = if threads == Threads::ONE {
        (0..count).map(columns).collect()
    } else {
        (0..count).into_par_iter().map(columns).collect()
    };
    let part = |k: usize| -> MatRef<'_, T> {
        let rows = n - k * SOLVE;
        MatRef::from_column_major_slice(&parts[k], rows, parts[k].len() / rows)
    };
    let mut out = vec![T::zero(); n * n];
    let products = |(k, strip): (usize, &mut [T])| {
        let own = part(k);
        for i in k..count {
            let (start, width, other) = (i * SOLVE, own.ncols(), part(i));
            let rows = own.subrows(start - k * SOLVE, n - start);
            let block = MatMut::from_column_major_slice_with_stride_mut(&mut strip[start..], other.ncols(), width, n);
            matmul::matmul(block, Accum::Replace, other.transpose(), rows, T::one(), Par::Seq);
        }
    };
    each(out.chunks_mut((n * SOLVE).max(1)).enumerate().collect(), threads, products);
    mirror(&mut out, n);
    out
}

/// Columns of a square that is mirrored at once.
const SQUARE: usize = 32;

/// Copies the lower triangle of a matrix of n columns to the upper one.
pub(crate) fn mirror<T: Copy>(a: &mut [T], n: usize) {
    for first in (0..n).step_by(SQUARE) {
        for start in (first..n).step_by(SQUARE) {
            for j in first..(first + SQUARE).min(n) {
                for i in start.max(j + 1)..(start + SQUARE).min(n) {
                    a[i * n + j] = a[j * n + i];
                }
            }
        }
    }
}

/// a·diag(v)·b in the lower triangle (a little of the upper one too), column after column, a strip of columns at a time.
pub(crate) fn product_lower<T: Real>(a: &[T], v: &[T], b: &[T], threads: Threads) -> Vec<T> {
    let n = v.len();
    let mut out = vec![T::zero(); n * n];
    let a: MatRef<'_, T> = MatRef::from_column_major_slice(a, n, n);
    let strip = |(k, strip): (usize, &mut [T])| {
        let (start, width) = (k * SOLVE, strip.len() / n);
        let mut right = b[start * n..][..strip.len()].to_vec();
        for column in right.chunks_exact_mut(n) {
            column.iter_mut().zip(v).for_each(|(x, v)| *x *= *v);
        }
        let block = MatMut::from_column_major_slice_with_stride_mut(&mut strip[start..], n - start, width, n);
        let right: MatRef<'_, T> = MatRef::from_column_major_slice(&right, n, width);
        matmul::matmul(block, Accum::Replace, a.subrows(start, n - start), right, T::one(), Par::Seq);
    };
    each(out.chunks_mut((n * SOLVE).max(1)).enumerate().collect(), threads, strip);
    out
}

/// `b` ← (LLᵀ)⁻¹`b`, one column after the other on one thread each.
pub(crate) fn solve_blocks(lower: &Matrix, b: &mut Matrix) {
    solve_columns(lower.as_slice(), lower.n_rows(), b.as_mut_slice());
}

/// The same for columns in either precision.
pub(crate) fn solve_columns<T: Real>(lower: &[T], n: usize, b: &mut [T]) {
    let columns = b.len() / n.max(1);
    let lower: MatRef<'_, T> = MatRef::from_column_major_slice(lower, n, n);
    let b = MatMut::from_column_major_slice_mut(b, n, columns);
    faer::linalg::cholesky::llt::solve::solve_in_place(lower, b, Par::Seq, faer::dyn_stack::MemStack::new(&mut []));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Cholesky;

    #[test]
    fn agrees_with_one_block_and_with_any_threads() {
        for n in [1, 255, 256, 257, 900] {
            let a = Matrix::from_fn(n, n, |i, j| (-0.3 * i.abs_diff(j) as f64).exp() + if i == j { 0.1 } else { 0.0 });
            let whole = Cholesky::new(a.clone(), Threads::ONE).unwrap();
            let (mut one, mut two) = (a.clone(), a.clone());
            factor_blocks(&mut one, Threads::ONE).unwrap();
            factor_blocks(&mut two, Threads::up_to(2)).unwrap();
            assert_eq!(one, two);
            assert!((0..n).all(|j| (j..n).all(|i| (one[(i, j)] - whole.lower()[(i, j)]).abs() < 1e-12)));
            let diagonal = inverse_diagonal(&one, n, Threads::ONE);
            assert_eq!(diagonal, inverse_diagonal(&one, n, Threads::up_to(2)));
            let last = inverse_diagonal(&one, n.div_ceil(3), Threads::ONE);
            assert!(last.iter().rev().zip(diagonal.iter().rev()).all(|(a, b)| (a - b).abs() < 1e-12));
            let inverse = whole.inverse();
            assert!((0..n).all(|i| (diagonal[i] - inverse[(i, i)]).abs() < 1e-11));
            let whole_inverse = inverse_blocks(one.as_slice(), n, Threads::ONE);
            assert_eq!(whole_inverse, inverse_blocks(one.as_slice(), n, Threads::up_to(2)));
            assert!((0..n).all(|j| (0..n).all(|i| (whole_inverse[j * n + i] - inverse[(i, j)]).abs() < 1e-11)));
            let halves = vec![0.5; n];
            let product = product_lower(inverse.as_slice(), &halves, a.as_slice(), Threads::ONE);
            assert_eq!(product, product_lower(inverse.as_slice(), &halves, a.as_slice(), Threads::up_to(2)));
            let identity = |i: usize, j: usize| 0.5 * f64::from(u8::from(i == j));
            assert!((0..n).all(|j| (j..n).all(|i| (product[j * n + i] - identity(i, j)).abs() < 1e-10)));
            let mut b = Matrix::from_fn(n, 2, |i, j| (i + j) as f64);
            let expected = whole.solve(b.column(1)).unwrap();
            solve_blocks(&one, &mut b);
            assert!(b.column(1).iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-9 * n as f64));
        }
        let mut a = Matrix::identity(300);
        a[(290, 290)] = -1.0;
        assert_eq!(factor_blocks(&mut a, Threads::ONE).unwrap_err(), Error::NotPositiveDefinite { row: 290 });
    }
}
