//! The Cholesky factorisation of a large matrix, and the diagonal of its inverse, on several threads with the same bits
//! whatever their number: blocks of fixed size, each computed by one thread, in an order that does not matter.

use crate::parallel::prelude::*;
use faer::linalg::{matmul, triangular_solve};
use faer::{Accum, MatMut, MatRef, Par};

use crate::linalg::cholesky::factor_in_place;
use crate::linalg::{Matrix, Threads};
use crate::{Error, Result};

/// Columns of a block.
const BLOCK: usize = 256;
/// Rows of a panel solved by one task.
const PANEL: usize = 512;
/// Columns of the inverse solved for by one task.
const SOLVE: usize = 128;

/// Overwrites the lower triangle of `a` with L, LLᵀ = a.
///
/// # Errors
/// [`Error::NotPositiveDefinite`].
pub(crate) fn factor_blocks(a: &mut Matrix, threads: Threads) -> Result<()> {
    let n = a.n_rows();
    for first in (0..n).step_by(BLOCK) {
        let width = BLOCK.min(n - first);
        let end = first + width;
        let mut diagonal = Matrix::from_fn(width, width, |i, j| a[(first + i, first + j)]);
        factor_in_place(diagonal.view_mut(), Threads::ONE).map_err(|error| match error {
            Error::NotPositiveDefinite { row } => Error::NotPositiveDefinite { row: row + first },
            other => other,
        })?;
        // A pivot that is NaN is not "≤ 0", so it passes faer's test.
        if let Some(row) = (0..width).find(|&i| !(diagonal[(i, i)] > 0.0 && diagonal[(i, i)].is_finite())) {
            return Err(Error::NotPositiveDefinite { row: row + first });
        }
        for j in 0..width {
            a.column_mut(first + j)[first + j..end].copy_from_slice(&diagonal.column(j)[j..]);
        }
        if end == n {
            return Ok(());
        }
        let panel = solve_panel(a, &diagonal, first, threads);
        for j in 0..width {
            a.column_mut(first + j)[end..].copy_from_slice(panel.column(j));
        }
        let update = |(k, block): (usize, &mut [f64])| {
            let start = end + k * BLOCK;
            let columns = block.len() / n;
            let out = MatMut::from_column_major_slice_with_stride_mut(&mut block[start..], n - start, columns, n);
            let rows = panel.view().faer().subrows(start - end, n - start);
            let own = rows.subrows(0, columns).transpose();
            matmul::matmul(out, Accum::Add, rows, own, -1.0, Par::Seq);
        };
        let rest = &mut a.as_mut_slice()[end * n..];
        if threads == Threads::ONE {
            rest.chunks_mut(n * BLOCK).enumerate().for_each(update);
        } else {
            rest.par_chunks_mut(n * BLOCK).enumerate().for_each(update);
        }
    }
    Ok(())
}

/// The rows below a diagonal block times the inverse transpose of its factor.
fn solve_panel(a: &Matrix, diagonal: &Matrix, first: usize, threads: Threads) -> Matrix {
    let (n, width) = (a.n_rows(), diagonal.n_rows());
    let end = first + width;
    let solve = |k: usize| {
        let start = end + k * PANEL;
        let rows = PANEL.min(n - start);
        // Transposed, so that the triangle is solved from the left.
        let mut part = Matrix::from_fn(width, rows, |j, i| a[(start + i, first + j)]);
        let right = part.view_mut().faer();
        triangular_solve::solve_lower_triangular_in_place(diagonal.view().faer(), right, Par::Seq);
        part
    };
    let count = (n - end).div_ceil(PANEL);
    let parts: Vec<Matrix> = if threads == Threads::ONE {
        (0..count).map(solve).collect()
    } else {
        (0..count).into_par_iter().map(solve).collect()
    };
    let mut panel = Matrix::zeros(n - end, width);
    for (k, part) in parts.iter().enumerate() {
        for j in 0..width {
            for (i, out) in panel.column_mut(j)[k * PANEL..].iter_mut().take(part.n_columns()).enumerate() {
                *out = part[(j, i)];
            }
        }
    }
    panel
}

/// The diagonal of (LLᵀ)⁻¹: squared lengths of the columns of L⁻¹, a block of which is one triangular solve.
pub(crate) fn inverse_diagonal(lower: &Matrix, threads: Threads) -> Vec<f64> {
    let n = lower.n_rows();
    let lengths = |k: usize| {
        let start = k * SOLVE;
        let columns = SOLVE.min(n - start);
        let mut x = Matrix::from_fn(n - start, columns, |i, j| f64::from(u8::from(i == j)));
        let triangle: MatRef<'_, f64> = lower.view().faer().submatrix(start, start, n - start, n - start);
        triangular_solve::solve_lower_triangular_in_place(triangle, x.view_mut().faer(), Par::Seq);
        (0..columns).map(|j| crate::linalg::dot(x.column(j), x.column(j))).collect::<Vec<f64>>()
    };
    let count = n.div_ceil(SOLVE);
    let parts: Vec<Vec<f64>> = if threads == Threads::ONE {
        (0..count).map(lengths).collect()
    } else {
        (0..count).into_par_iter().map(lengths).collect()
    };
    parts.concat()
}

/// (LLᵀ)⁻¹ in the lower triangle, zeros above it: blocks of columns of L⁻¹, then products of two of them each.
pub(crate) fn inverse_blocks(lower: &Matrix, threads: Threads) -> Matrix {
    let n = lower.n_rows();
    let columns = |k: usize| {
        let start = k * SOLVE;
        let mut x = Matrix::from_fn(n - start, SOLVE.min(n - start), |i, j| f64::from(u8::from(i == j)));
        let triangle: MatRef<'_, f64> = lower.view().faer().submatrix(start, start, n - start, n - start);
        triangular_solve::solve_lower_triangular_in_place(triangle, x.view_mut().faer(), Par::Seq);
        x
    };
    let count = n.div_ceil(SOLVE);
    let parts: Vec<Matrix> = if threads == Threads::ONE {
        (0..count).map(columns).collect()
    } else {
        (0..count).into_par_iter().map(columns).collect()
    };
    let mut out = Matrix::zeros(n, n);
    let products = |(k, strip): (usize, &mut [f64])| {
        let own = parts[k].view().faer();
        for (i, other) in parts.iter().enumerate().skip(k) {
            let (start, width) = (i * SOLVE, own.ncols());
            let rows = own.subrows(start - k * SOLVE, n - start);
            let height = other.n_columns();
            let block = MatMut::from_column_major_slice_with_stride_mut(&mut strip[start..], height, width, n);
            matmul::matmul(block, Accum::Replace, other.view().faer().transpose(), rows, 1.0, Par::Seq);
        }
    };
    strips(&mut out, SOLVE, threads, products);
    for j in 0..n {
        out.column_mut(j)[..j].fill(0.0);
    }
    out
}

/// a·b in the lower triangle (a little of the upper one too), a strip of columns at a time.
pub(crate) fn product_lower(a: &Matrix, b: &Matrix, threads: Threads) -> Matrix {
    let n = a.n_rows();
    let mut out = Matrix::zeros(n, n);
    let (a, b) = (a.view().faer(), b.view().faer());
    strips(&mut out, SOLVE, threads, |(k, strip)| {
        let (start, width) = (k * SOLVE, strip.len() / n);
        let block = MatMut::from_column_major_slice_with_stride_mut(&mut strip[start..], n - start, width, n);
        matmul::matmul(block, Accum::Replace, a.subrows(start, n - start), b.subcols(start, width), 1.0, Par::Seq);
    });
    out
}

/// Calls `work` with the number and the columns of each strip of so many columns.
fn strips(out: &mut Matrix, width: usize, threads: Threads, work: impl Fn((usize, &mut [f64])) + Sync + Send) {
    let size = (out.n_rows() * width).max(1);
    if threads == Threads::ONE {
        out.as_mut_slice().chunks_mut(size).enumerate().for_each(work);
    } else {
        out.as_mut_slice().par_chunks_mut(size).enumerate().for_each(work);
    }
}

/// `b` ← (LLᵀ)⁻¹`b`, one column after the other on one thread each.
pub(crate) fn solve_blocks(lower: &Matrix, b: &mut Matrix) {
    let view = b.view_mut().faer();
    faer::linalg::cholesky::llt::solve::solve_in_place(
        lower.view().faer(),
        view,
        Par::Seq,
        faer::dyn_stack::MemStack::new(&mut []),
    );
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
            let diagonal = inverse_diagonal(&one, Threads::ONE);
            assert_eq!(diagonal, inverse_diagonal(&one, Threads::up_to(2)));
            let inverse = whole.inverse();
            assert!((0..n).all(|i| (diagonal[i] - inverse[(i, i)]).abs() < 1e-11));
            let whole_inverse = inverse_blocks(&one, Threads::ONE);
            assert_eq!(whole_inverse, inverse_blocks(&one, Threads::up_to(2)));
            assert!((0..n).all(|j| (j..n).all(|i| (whole_inverse[(i, j)] - inverse[(i, j)]).abs() < 1e-11)));
            let product = product_lower(&inverse, &a, Threads::ONE);
            assert_eq!(product, product_lower(&inverse, &a, Threads::up_to(2)));
            let identity = |i: usize, j: usize| f64::from(u8::from(i == j));
            assert!((0..n).all(|j| (j..n).all(|i| (product[(i, j)] - identity(i, j)).abs() < 1e-10)));
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
