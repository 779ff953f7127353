//! Ridge on all rows: one factorisation, all outputs, leave-one-out residuals in closed form.

use crate::laplace::KernelRows;
use crate::laplace::conjugate::descend;
use crate::laplace::large::SolverReport;
use crate::laplace::objective::{Batch, Loss, best_temperature, means, softmax};
use crate::laplace::tiles::Tiles;
use crate::laplace::values::Values;
use crate::linalg::{Matrix, SingleFactor, Threads, dot, factor_blocks, inverse_diagonal, solve_blocks};
use crate::{Error, Result};

/// A solution: weights of the rows and what leaving each out would have cost.
pub(crate) struct Solution {
    /// (K + α/w)⁻¹ times the centred targets.
    pub(crate) dual: Matrix,
    /// The centred targets.
    pub(crate) targets: Matrix,
    pub(crate) centre: Vec<f64>,
    /// Each target less what the model fitted without its row predicts, the intercept fitted anew too. Of the first rows
    /// only, where there are many.
    pub(crate) residuals: Matrix,
    pub(crate) report: SolverReport,
}

/// The factor of K + α/w.
pub(crate) fn factor(rows: &KernelRows, weights: &[f64], alpha: f64, threads: Threads) -> Result<Matrix> {
    let mut a = Tiles::new(rows).gram_lower(threads);
    for (i, w) in weights.iter().enumerate() {
        a[(i, i)] = 1.0 + alpha / w;
    }
    factor_blocks(&mut a, threads)?;
    Ok(a)
}

/// Rows from which on the factorisation is in single precision, if the noise allows it: below, double costs a second at most.
const SINGLE_ROWS: usize = 3000;
/// The least noise for single precision. Leave-one-out residuals are off by at most about √n·6e-8/α, relative to themselves: n
/// roundings at random over the least eigenvalue. For 1500 rows and α = 0.3 it was 3e-6.
const LEAST_NOISE: f64 = 1e-4;
/// Residuals in double precision, relative to the right-hand sides, that a factor in single precision is refined to: what
/// predictions are off by.
const REFINED: f64 = 1e-7;
/// The most products with the kernel. Each gains three digits or more, so that two or three are the rule.
const MOST_PRODUCTS: usize = 8;

/// The most rows that are left out, one at a time, of the solution by one factorisation.
///
/// Rows are in a keyed order, so that the first are a sample. All rows would take as long as the factorisation; on up to 20 000,
/// all that are factorised unasked, that is a few seconds.
const LEFT_OUT_OF_ALL: usize = 20_000;

/// The solution for some right-hand sides, and the diagonal of (K + α/w)⁻¹ of the first rows.
fn solve_all(
    rows: &KernelRows,
    right: Matrix,
    weights: &[f64],
    alpha: f64,
    threads: Threads,
) -> Result<(Matrix, Vec<f64>)> {
    let n = rows.n_rows();
    if n <= LEFT_OUT_OF_ALL {
        return solve_last(rows, right, weights, alpha, n, threads);
    }
    // The first rows come last: what the last rows of a factor say about their inverse is cheap.
    let order: Vec<usize> = (0..n).rev().collect();
    let turned = |matrix: &Matrix| Matrix::from_fn(n, matrix.n_columns(), |i, k| matrix[(n - 1 - i, k)]);
    let turned_weights: Vec<f64> = weights.iter().rev().copied().collect();
    let (dual, mut diagonal) =
        solve_last(&rows.select(&order), turned(&right), &turned_weights, alpha, LEFT_OUT_OF_ALL, threads)?;
    diagonal.reverse();
    Ok((turned(&dual), diagonal))
}

/// The same with the diagonal of the last `count` rows.
fn solve_last(
    rows: &KernelRows,
    right: Matrix,
    weights: &[f64],
    alpha: f64,
    count: usize,
    threads: Threads,
) -> Result<(Matrix, Vec<f64>)> {
    let largest = weights.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    if rows.n_rows() >= SINGLE_ROWS && alpha / largest >= LEAST_NOISE {
        let noise: Vec<f64> = weights.iter().map(|w| alpha / w).collect();
        match refined(rows, &noise, &right, count, threads) {
            Err(Error::NotPositiveDefinite { .. }) => {}
            other => return other,
        }
    }
    let lower = factor(rows, weights, alpha, threads)?;
    let mut dual = right;
    solve_blocks(&lower, &mut dual);
    Ok((dual, inverse_diagonal(&lower, count, threads)))
}

/// The same by a factor in single precision, and conjugate gradients in double that it preconditions.
///
/// # Errors
/// [`Error::NotPositiveDefinite`] if single precision does not do.
fn refined(
    rows: &KernelRows,
    noise: &[f64],
    right: &Matrix,
    count: usize,
    threads: Threads,
) -> Result<(Matrix, Vec<f64>)> {
    let (n, tiles) = (rows.n_rows(), Tiles::new(rows));
    let mut gram = tiles.gram_lower_single(threads);
    for (i, noise) in noise.iter().enumerate() {
        gram[i * n + i] = (1.0 + noise) as f32;
    }
    let factor = SingleFactor::new(gram, n, threads)?;
    let norms: Vec<f64> = (0..right.n_columns()).map(|c| dot(right.column(c), right.column(c)).sqrt()).collect();
    let multiply = |x: &Matrix| {
        let mut product = tiles.product(x, threads);
        for c in 0..x.n_columns() {
            let column = product.column_mut(c).iter_mut().zip(x.column(c)).zip(noise);
            column.for_each(|((p, x), noise)| *p += noise * x);
        }
        Ok(product)
    };
    let mut dual = Matrix::zeros(n, right.n_columns());
    let precondition = |x: &Matrix| Ok(factor.solve(x));
    let (_, is_solved) = descend(multiply, precondition, &mut dual, right.clone(), &norms, REFINED, MOST_PRODUCTS)?;
    if !is_solved {
        return Err(Error::NotPositiveDefinite { row: 0 });
    }
    Ok((dual, factor.inverse_diagonal(count)))
}

/// Solves for every column of `targets`.
///
/// # Errors
/// [`crate::Error::NotPositiveDefinite`] if α is too small.
pub(crate) fn solve(
    rows: &KernelRows,
    targets: &Matrix,
    weights: &[f64],
    is_centred: bool,
    alpha: f64,
    threads: Threads,
) -> Result<Solution> {
    let (n, c) = (targets.n_rows(), targets.n_columns());
    let centre = if is_centred { means(targets, weights) } else { vec![0.0; c] };
    let centred = Matrix::from_fn(n, c, |i, k| targets[(i, k)] - centre[k]);
    // The last column is for the intercept: leaving out a row moves the mean of the others.
    let right = Matrix::from_fn(n, c + 1, |i, k| if k < c { centred[(i, k)] } else { 1.0 });
    let (dual, diagonal) = solve_all(rows, right, weights, alpha, threads)?;
    let total: f64 = weights.iter().sum();
    let residuals = Matrix::from_fn(diagonal.len(), c, |i, k| {
        let shift = if is_centred && n > 1 { weights[i] * centred[(i, k)] / (total - weights[i]) } else { 0.0 };
        (dual[(i, k)] + shift * dual[(i, c)]) / diagonal[i]
    });
    let dual = Matrix::from_fn(n, c, |i, k| dual[(i, k)]);
    Ok(Solution { dual, targets: centred, centre, residuals, report: SolverReport::exact(n) })
}

/// The leave-one-out loss of a kernel on these rows: ½ ln of the mean square, or the mean log loss.
pub(crate) fn judge(values: &Values, batch: &Batch, loss: Loss, threads: Threads) -> Result<f64> {
    let rows = values.rows(&batch.columned)?;
    let solution = solve(&rows, &batch.targets, &batch.weights, batch.is_centred, values.alpha, threads)?;
    Ok(loss_of(loss, &solution.residuals, &batch.targets, &batch.weights))
}

/// The loss of rows whose targets less predictions are these residuals: ½ ln of the mean square, or the mean log loss.
pub(crate) fn loss_of(loss: Loss, residuals: &Matrix, targets: &Matrix, weights: &[f64]) -> f64 {
    let (n, c) = (residuals.n_rows(), residuals.n_columns());
    let whole: f64 = weights.iter().sum();
    match loss {
        Loss::Squared => {
            let square = |k: usize| residuals.column(k).iter().zip(weights).map(|(r, w)| w * r * r).sum::<f64>();
            let total: f64 = (0..c).map(square).sum();
            0.5 * (total / (whole * c as f64)).max(f64::MIN_POSITIVE).ln()
        }
        Loss::Log => {
            let scores = Matrix::from_fn(n, c, |i, k| targets[(i, k)] - residuals[(i, k)]);
            let beta = best_temperature(&scores, targets, weights);
            let mut probabilities = vec![0.0; c];
            let mut sum = 0.0;
            for i in 0..n {
                softmax((0..c).map(|k| beta * scores[(i, k)]), &mut probabilities);
                let own: f64 = (0..c).map(|k| probabilities[k] * targets[(i, k)]).sum();
                sum -= weights[i] / whole * own.max(1e-300).ln();
            }
            sum
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::NodeKey;

    /// Double precision is the slow twin of single precision, refined: predictions agree to 1e-6, leave-one-out residuals to what
    /// rounding explains.
    #[test]
    fn a_refined_solution_is_that_of_double_precision() {
        let n = 1500;
        let draw = |k: u64, i: usize| NodeKey::root(k, i as u64).draw(0).normal();
        let rows = KernelRows::of_axes((0..3 * n).map(|i| 0.4 * draw(1, i)).collect(), 3).unwrap();
        let target = |i: usize, c: usize| (2.0 * rows.axes()[3 * i + c]).sin() + 0.1 * draw(2, i);
        let right = Matrix::from_fn(n, 3, |i, c| if c < 2 { target(i, c) } else { 1.0 });
        let weights: Vec<f64> = (0..n).map(|i| 0.5 + f64::from(i as u32 % 3) / 2.0).collect();
        for alpha in [0.3, 0.01, 2.0 * LEAST_NOISE] {
            let noise: Vec<f64> = weights.iter().map(|w| alpha / w).collect();
            // n roundings of a sum, at random, over the least eigenvalue, which is at least the least noise.
            let near = (n as f64).sqrt() * 0.5 * f64::from(f32::EPSILON) / noise.iter().copied().fold(1.0, f64::min);
            let (dual, diagonal) = refined(&rows, &noise, &right, n, Threads::ONE).unwrap();
            let again = refined(&rows, &noise, &right, n, Threads::up_to(2)).unwrap();
            assert_eq!((&dual, &diagonal), (&again.0, &again.1));
            let (slow, inverse) = solve_all(&rows, right.clone(), &weights, alpha, Threads::ONE).unwrap();
            let apart = diagonal.iter().zip(&inverse).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max);
            assert!(apart < near, "alpha {alpha}: {apart}");
            let tiles = Tiles::new(&rows);
            let (found, expected) = (tiles.product(&dual, Threads::ONE), tiles.product(&slow, Threads::ONE));
            let off = found.as_slice().iter().zip(expected.as_slice()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(off < 1e-6, "alpha {alpha}: {off}");
        }
    }
}
