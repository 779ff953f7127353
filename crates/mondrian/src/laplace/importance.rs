//! Relevance of inputs: what permuting one does to the leave-one-out error (docs/design.md, "Relevance"). A
//! lifetime is a roughness, which is something else.

use crate::parallel::prelude::*;

use crate::Result;
use crate::laplace::Cells;
use crate::laplace::columns::Columns;
use crate::laplace::local::{LocalRows, LocalSettings};
use crate::laplace::objective::{Loss, best_temperature, means, softmax};
use crate::laplace::tiles::Tiles;
use crate::laplace::values::Values;
use crate::linalg::{Cholesky, Into, Matrix, Threads, gemm};
use crate::process::NodeKey;

/// Rows looked at: fewer for many inputs, since each input costs a pass over all pairs.
fn n_rows_for(n_inputs: usize) -> usize {
    match n_inputs {
        0..=40 => 1000,
        41..=100 => 500,
        101..=300 => 300,
        _ => 120,
    }
}

/// What permuting inputs does.
pub(crate) struct Relevance {
    /// The growth of the leave-one-out loss by permuting each input, as a share of the largest; 0 where it does not grow.
    pub(crate) shares: Vec<f64>,
    /// The growth of the mean squared error of each output, input by input; empty for log losses.
    pub(crate) squares: Vec<f64>,
}

impl Relevance {
    fn none(n_inputs: usize) -> Self {
        Self { shares: vec![0.0; n_inputs], squares: Vec::new() }
    }

    /// From the errors of the rows as they are and with each input permuted: one per output, weighted sums.
    fn of(loss: Loss, base: &[f64], permuted: &[Vec<f64>], weights: &[f64]) -> Self {
        let growth = |errors: &Vec<f64>| (errors.iter().sum::<f64>() - base.iter().sum::<f64>()).max(0.0);
        let grown: Vec<f64> = permuted.iter().map(growth).collect();
        let largest = grown.iter().fold(0.0_f64, |m, g| m.max(*g));
        let shares = grown.into_iter().map(|g| if largest > 0.0 { g / largest } else { 0.0 }).collect();
        let total: f64 = weights.iter().sum();
        let squares = match loss {
            Loss::Squared => {
                let mean = |errors: &Vec<f64>| -> Vec<f64> {
                    errors.iter().zip(base).map(|(error, base)| ((error - base) / total).max(0.0)).collect()
                };
                permuted.iter().flat_map(mean).collect()
            }
            Loss::Log => Vec::new(),
        };
        Self { shares, squares }
    }
}

/// What permuting each input does to the leave-one-out loss.
///
/// `targets` are as they are fitted. Rows come in keyed order; the first are looked at.
#[expect(clippy::too_many_arguments, reason = "the parts of a model that is being put together")]
pub(crate) fn importances(
    columns: &Columns,
    values: &Values,
    cells: Cells<'_>,
    targets: &Matrix,
    weights: &[f64],
    loss: Loss,
    is_centred: bool,
    key: NodeKey,
) -> Result<Relevance> {
    let n_inputs = cells.n_columns();
    let n = cells.n_rows().min(n_rows_for(n_inputs));
    if n < 3 {
        return Ok(Relevance::none(n_inputs));
    }
    let c = targets.n_columns();
    let table: Vec<f64> = (0..n).flat_map(|i| cells.row(i).to_vec()).collect();
    let weights = &weights[..n];
    let own = Matrix::from_fn(n, c, |i, k| targets[(i, k)]);
    let tiles = Tiles::new(&values.rows(&columns.apply(Cells::row_major(&table, n_inputs)?)?)?);
    let mut a = tiles.gram_lower(Threads::ONE);
    for (i, w) in weights.iter().enumerate() {
        a[(i, i)] = 1.0 + values.alpha / w;
    }
    let p = Cholesky::new(a, Threads::ONE)?.inverse();
    let centre = if is_centred { means(&own, weights) } else { vec![0.0; c] };
    let y = Matrix::from_fn(n, c, |i, k| own[(i, k)] - centre[k]);
    let mut dual = Matrix::zeros(n, c);
    gemm(1.0, &p, &y, Into::Replace, dual.view_mut(), Threads::ONE);
    // Predictions of each row, as `rows` sees it, from the others.
    let predict = |rows: &Tiles| {
        let mut out = Matrix::zeros(n, c);
        let mut kernel = vec![0.0; n];
        for i in 0..n {
            tiles.fill_column(rows.row(i), 0, &mut kernel);
            kernel[i] = 0.0;
            let through: f64 = kernel.iter().zip(p.column(i)).map(|(k, p)| k * p).sum::<f64>() / p[(i, i)];
            for k in 0..c {
                let direct: f64 = kernel.iter().zip(dual.column(k)).map(|(x, a)| x * a).sum();
                out[(i, k)] = centre[k] + direct - through * dual[(i, k)];
            }
        }
        out
    };
    let predicted = predict(&tiles);
    let temperature = if loss == Loss::Log { best_temperature(&predicted, &own, weights) } else { 1.0 };
    let errors = |predicted: &Matrix| losses_at(loss, temperature, predicted, &own, weights);
    let base = errors(&predicted);
    let of_permuted = |input: usize| -> Result<Vec<f64>> {
        let permuted = permuted(&table, n_inputs, input, key);
        let rows = values.rows(&columns.apply(Cells::row_major(&permuted, n_inputs)?)?)?;
        Ok(errors(&predict(&Tiles::new(&rows))))
    };
    let found: Vec<Vec<f64>> = (0..n_inputs).into_par_iter().map(of_permuted).collect::<Result<_>>()?;
    Ok(Relevance::of(loss, &base, &found, weights))
}

/// The rows of a table with one input's cells permuted, by key.
fn permuted(table: &[f64], n_inputs: usize, input: usize, key: NodeKey) -> Vec<f64> {
    let n = table.len() / n_inputs;
    let mut keyed: Vec<(NodeKey, usize)> = (0..n).map(|i| (key.fork(input as u64).fork(i as u64), i)).collect();
    keyed.sort_unstable();
    let mut permuted = table.to_vec();
    for (i, (_, from)) in keyed.iter().enumerate() {
        permuted[i * n_inputs + input] = table[from * n_inputs + input];
    }
    permuted
}

/// Rows looked at among many, and the most neighbours each is predicted from.
const NEAR_ROWS: usize = 500;
const NEAR: usize = 64;

/// As [`importances`], each row predicted from its nearest among all others.
pub(crate) fn importances_by_neighbors(
    columns: &Columns,
    values: &Values,
    cells: Cells<'_>,
    local: LocalRows<'_>,
    settings: LocalSettings,
    loss: Loss,
    key: NodeKey,
) -> Result<Relevance> {
    let (n_inputs, c) = (cells.n_columns(), local.centre.len());
    let n = cells.n_rows().min(n_rows_for(n_inputs).min(NEAR_ROWS));
    if n < 3 {
        return Ok(Relevance::none(n_inputs));
    }
    let table: Vec<f64> = (0..n).flat_map(|i| cells.row(i).to_vec()).collect();
    let (weights, own) = (&local.weights[..n], (0..n as u32).collect::<Vec<_>>());
    let targets = Matrix::from_fn(n, c, |i, k| local.targets[(i, k)] + local.centre[k]);
    let settings = LocalSettings { n_neighbors: settings.n_neighbors.min(NEAR), ..settings };
    let predict = |table: &[f64]| {
        let queries = values.rows(&columns.apply(Cells::row_major(table, n_inputs)?)?)?;
        local.predict(&queries, Some(&own), settings)
    };
    let predicted = predict(&table)?;
    let temperature = if loss == Loss::Log { best_temperature(&predicted, &targets, weights) } else { 1.0 };
    let base = losses_at(loss, temperature, &predicted, &targets, weights);
    let of_permuted = |input: usize| -> Result<Vec<f64>> {
        let predicted = predict(&permuted(&table, n_inputs, input, key))?;
        Ok(losses_at(loss, temperature, &predicted, &targets, weights))
    };
    let found: Vec<Vec<f64>> = (0..n_inputs).map(of_permuted).collect::<Result<_>>()?;
    Ok(Relevance::of(loss, &base, &found, weights))
}

/// Weighted sums of squared errors, one per output, or of the log loss at a temperature.
fn losses_at(loss: Loss, temperature: f64, predicted: &Matrix, targets: &Matrix, weights: &[f64]) -> Vec<f64> {
    let (n, c) = (predicted.n_rows(), predicted.n_columns());
    match loss {
        Loss::Squared => {
            let square =
                |k: usize| (0..n).map(|i| weights[i] * (targets[(i, k)] - predicted[(i, k)]).powi(2)).sum::<f64>();
            (0..c).map(square).collect()
        }
        Loss::Log => {
            let mut probabilities = vec![0.0; c];
            let mut sum = 0.0;
            for i in 0..n {
                softmax((0..c).map(|k| temperature * predicted[(i, k)]), &mut probabilities);
                let true_one: f64 = (0..c).map(|k| probabilities[k] * targets[(i, k)]).sum();
                sum -= weights[i] * true_one.max(1e-300).ln();
            }
            vec![sum]
        }
    }
}
