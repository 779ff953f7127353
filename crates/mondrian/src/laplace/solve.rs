//! Ridge on all rows: one factorisation, all outputs, leave-one-out residuals in closed form.

use crate::Result;
use crate::laplace::KernelRows;
use crate::laplace::large::SolverReport;
use crate::laplace::objective::{Batch, Loss, best_temperature, means, softmax};
use crate::laplace::tiles::Tiles;
use crate::laplace::values::Values;
use crate::linalg::{Matrix, Threads, factor_blocks, inverse_diagonal, solve_blocks};

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
    let lower = factor(rows, weights, alpha, threads)?;
    let centre = if is_centred { means(targets, weights) } else { vec![0.0; c] };
    let centred = Matrix::from_fn(n, c, |i, k| targets[(i, k)] - centre[k]);
    // The last column is for the intercept: leaving out a row moves the mean of the others.
    let mut dual = Matrix::from_fn(n, c + 1, |i, k| if k < c { centred[(i, k)] } else { 1.0 });
    solve_blocks(&lower, &mut dual);
    let diagonal = inverse_diagonal(&lower, threads);
    drop(lower);
    let total: f64 = weights.iter().sum();
    let residuals = Matrix::from_fn(n, c, |i, k| {
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
