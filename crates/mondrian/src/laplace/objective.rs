//! What tuning of the whole kernel minimises: the leave-one-out loss of ridge on a batch of rows, with its derivatives in
//! all parameters (docs/design.md, "The tuned Laplace kernel", Objective and gradient).
//!
//! P = (K + αN)⁻¹ with N = diag(1/w), a = PY, leave-one-out residuals R = a/diag P. For a loss f(R) with H = ∂f/∂R,
//! W = H/diag P and v = Σ_c W∘R, df = ⟨G, d(K + αN)⟩ with G = P diag(v) P − ½(P W aᵀ + a Wᵀ P). Everything else is one
//! pass over the entries: ∂f/∂ln λ_d = −λ_d Σ G∘K∘|Δ_d|, and for the metric two products with the m × m matrix
//! G∘K∘q^{p/2−1}.

use crate::laplace::Slope;
use crate::laplace::columns::Columned;
use crate::laplace::tiles::{Tiles, metric_weights};
use crate::laplace::values::{Layout, Metric};
use crate::linalg::{
    Cholesky, Into, Matrix, Threads, each, factor_blocks, gemm, gemm_lower, inverse_blocks, product_lower,
};
use crate::{Error, Result};

/// What is minimised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// ½ ln of the mean squared leave-one-out residual.
    Squared,
    /// The mean of −ln softmax(β·score) of the true class, targets one-hot, β at its best.
    Log,
}

/// Rows that one evaluation looks at.
pub(crate) struct Batch {
    pub(crate) columned: Columned,
    /// One column per output, as they are; one-hot for classes.
    pub(crate) targets: Matrix,
    /// Relative weights of the rows, their mean about 1.
    pub(crate) weights: Vec<f64>,
    pub(crate) is_centred: bool,
}

impl Batch {
    pub(crate) fn select(&self, rows: &[usize]) -> Self {
        let targets = Matrix::from_fn(rows.len(), self.targets.n_columns(), |i, c| self.targets[(rows[i], c)]);
        let weights = rows.iter().map(|&i| self.weights[i]).collect();
        Self { columned: self.columned.select(rows), targets, weights, is_centred: self.is_centred }
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.weights.len()
    }
}

/// Weighted means of columns.
pub(crate) fn means(targets: &Matrix, weights: &[f64]) -> Vec<f64> {
    let total: f64 = weights.iter().sum();
    let mean = |c| targets.column(c).iter().zip(weights).map(|(y, w)| y * w).sum::<f64>() / total;
    (0..targets.n_columns()).map(mean).collect()
}

/// Rows from which on the algebra is done in blocks, which several threads can share. The path does not depend on the threads.
const BLOCKED: usize = 512;

/// The value at these parameters and its derivatives; the same bits for any number of threads.
///
/// # Errors
/// [`Error::NotPositiveDefinite`] if α is too small for the rows.
pub(crate) fn slope(layout: &Layout, theta: &[f64], batch: &Batch, loss: Loss, threads: Threads) -> Result<Slope> {
    let n = batch.n_rows();
    let values = layout.values(theta);
    let tiles = Tiles::new(&values.rows(&batch.columned)?);
    let (mut kernel, squares, powers) = tiles.parts_on(threads);
    let mut a = kernel.clone();
    for (i, w) in batch.weights.iter().enumerate() {
        kernel[(i, i)] = 1.0;
        a[(i, i)] = 1.0 + values.alpha / w;
    }
    let mut p = if n < BLOCKED {
        Cholesky::new(a, Threads::ONE)?.inverse_lower()
    } else {
        factor_blocks(&mut a, threads)?;
        inverse_blocks(&a, threads)
    };
    p.mirror_lower();
    let centre =
        if batch.is_centred { means(&batch.targets, &batch.weights) } else { vec![0.0; batch.targets.n_columns()] };
    let y = Matrix::from_fn(n, centre.len(), |i, c| batch.targets[(i, c)] - centre[c]);
    let mut dual = Matrix::zeros(n, centre.len());
    gemm(1.0, &p, &y, Into::Replace, dual.view_mut(), Threads::ONE);
    let diagonal: Vec<f64> = (0..n).map(|i| p[(i, i)]).collect();
    let residuals = Matrix::from_fn(n, centre.len(), |i, c| dual[(i, c)] / diagonal[i]);
    let (value, slopes) = match loss {
        Loss::Squared => squared(&residuals, &batch.weights),
        Loss::Log => log_loss(&residuals, &batch.targets, &batch.weights),
    };
    if !value.is_finite() {
        return Err(Error::NotPositiveDefinite { row: 0 });
    }
    let mut g = gradient_matrix(&p, &dual, &residuals, &slopes, &diagonal, threads);
    let mut gradient = vec![0.0; layout.n_parameters()];
    if layout.alpha.is_none() {
        gradient[layout.alpha_at()] = values.alpha * (0..n).map(|i| g[(i, i)] / batch.weights[i]).sum::<f64>();
    }
    let entries = g.as_mut_slice().chunks_mut(n).zip(kernel.as_slice().chunks(n)).collect();
    each(entries, threads, |(g, k): (&mut [f64], &[f64])| g.iter_mut().zip(k).for_each(|(g, k)| *g *= k));
    // Only one triangle is summed over.
    if !layout.has_fixed_axes {
        for (at, sum) in tiles.contract_on(&g, threads).into_iter().enumerate() {
            gradient[at] = -2.0 * sum;
        }
    }
    if layout.metric != Metric::None {
        metric_gradient(layout, theta, &values.metric, batch, g, &squares, &powers, &mut gradient, threads);
    }
    Ok(Slope { value, gradient })
}

/// G in its lower triangle.
fn gradient_matrix(
    p: &Matrix,
    dual: &Matrix,
    residuals: &Matrix,
    slopes: &Matrix,
    diagonal: &[f64],
    threads: Threads,
) -> Matrix {
    let (n, c) = (p.n_rows(), dual.n_columns());
    let w = Matrix::from_fn(n, c, |i, c| slopes[(i, c)] / diagonal[i]);
    let mut pw = Matrix::zeros(n, c);
    gemm(1.0, p, &w, Into::Replace, pw.view_mut(), Threads::ONE);
    let v: Vec<f64> = (0..n).map(|j| (0..c).map(|c| w[(j, c)] * residuals[(j, c)]).sum()).collect();
    let mut g = if n < BLOCKED {
        let scaled = Matrix::from_fn(n, n, |i, j| p[(i, j)] * v[j]);
        let mut g = Matrix::zeros(n, n);
        gemm_lower(1.0, &scaled, p, Into::Replace, g.view_mut(), Threads::ONE);
        g
    } else {
        product_lower(p, &v, p, threads)
    };
    gemm_lower(-0.5, &pw, dual.view().t(), Into::Add, g.view_mut(), Threads::ONE);
    gemm_lower(-0.5, dual, pw.view().t(), Into::Add, g.view_mut(), Threads::ONE);
    g
}

#[expect(clippy::too_many_arguments, reason = "the parts of one formula")]
pub(crate) fn metric_gradient(
    layout: &Layout,
    theta: &[f64],
    metric: &Matrix,
    batch: &Batch,
    mut weights: Matrix,
    squares: &Matrix,
    powers: &Matrix,
    gradient: &mut [f64],
    threads: Threads,
) {
    let (n, d) = (batch.n_rows(), layout.n_linear);
    let p = layout.exponent_of(theta);
    let logarithmic = metric_weights(&mut weights, squares, powers, threads);
    if layout.exponent.is_none() {
        gradient[layout.exponent_at()] = -logarithmic * p * (1.0 - 0.5 * p);
    }
    for i in 0..n {
        weights[(i, i)] = 0.0;
    }
    weights.mirror_lower();
    let x = &batch.columned.linear;
    // diag(W·1)·X − W·X, then Xᵀ from the left: half of Σ W u uᵀ.
    let mut right = Matrix::zeros(n, d);
    gemm(-1.0, &weights, x, Into::Replace, right.view_mut(), Threads::ONE);
    let sums: Vec<f64> = (0..n).map(|j| weights.column(j).iter().sum()).collect();
    for k in 0..d {
        let column = right.column_mut(k).iter_mut().zip(x.column(k)).zip(&sums);
        column.for_each(|((r, x), sum)| *r += sum * x);
    }
    let mut middle = Matrix::zeros(d, d);
    gemm(1.0, x.view().t(), &right, Into::Replace, middle.view_mut(), Threads::ONE);
    let mut slopes = Matrix::zeros(metric.n_rows(), d);
    gemm(-2.0 * p, metric, &middle, Into::Replace, slopes.view_mut(), Threads::ONE);
    for (k, at) in layout.scales().enumerate() {
        gradient[at] = slopes.column(k).iter().zip(metric.column(k)).map(|(s, a)| s * a).sum();
    }
    let identity = metric.n_rows() - layout.free_rows();
    let scales: Vec<f64> = theta[layout.scales()].iter().map(|t| t.exp()).collect();
    for (k, at) in layout.rotation().enumerate() {
        gradient[at] = slopes[(identity + k / d, k % d)] * scales[k % d];
    }
}

/// ½ ln of the weighted mean square, and ∂/∂R.
fn squared(residuals: &Matrix, weights: &[f64]) -> (f64, Matrix) {
    let (n, c) = (residuals.n_rows(), residuals.n_columns());
    let squares = |c: usize| residuals.column(c).iter().zip(weights).map(|(r, w)| w * r * r).sum::<f64>();
    let total = (0..c).map(squares).sum::<f64>().max(f64::MIN_POSITIVE);
    let whole = c as f64 * weights.iter().sum::<f64>();
    (0.5 * (total / whole).ln(), Matrix::from_fn(n, c, |i, c| weights[i] * residuals[(i, c)] / total))
}

/// The weighted mean log loss of softmax(β(T − R)), β at its best, and ∂/∂R. β needs no derivative of its own there.
fn log_loss(residuals: &Matrix, targets: &Matrix, weights: &[f64]) -> (f64, Matrix) {
    let (n, c) = (residuals.n_rows(), residuals.n_columns());
    let scores = Matrix::from_fn(n, c, |i, c| targets[(i, c)] - residuals[(i, c)]);
    let beta = best_temperature(&scores, targets, weights);
    let whole: f64 = weights.iter().sum();
    let mut slopes = Matrix::zeros(n, c);
    let mut probabilities = vec![0.0; c];
    let mut sum = 0.0;
    for i in 0..n {
        softmax((0..c).map(|k| beta * scores[(i, k)]), &mut probabilities);
        let share = weights[i] / whole;
        for k in 0..c {
            sum -= share * targets[(i, k)] * probabilities[k].max(1e-300).ln();
            slopes[(i, k)] = -beta * share * (probabilities[k] - targets[(i, k)]);
        }
    }
    (sum, slopes)
}

/// Probabilities of logarithms up to a constant.
pub(crate) fn softmax(logits: impl Iterator<Item = f64>, out: &mut [f64]) {
    let mut largest = f64::NEG_INFINITY;
    for (o, z) in out.iter_mut().zip(logits) {
        *o = z;
        largest = largest.max(z);
    }
    out.iter_mut().for_each(|o| *o = (*o - largest).exp());
    let sum: f64 = out.iter().sum();
    out.iter_mut().for_each(|o| *o /= sum);
}

/// The β that minimises the mean log loss of softmax(β·scores), by Newton's steps in ln β.
pub(crate) fn best_temperature(scores: &Matrix, targets: &Matrix, weights: &[f64]) -> f64 {
    let (n, c) = (scores.n_rows(), scores.n_columns());
    let whole: f64 = weights.iter().sum();
    let mut log = 5.0_f64.ln();
    let mut probabilities = vec![0.0; c];
    for _ in 0..30 {
        let beta = log.exp();
        let (mut slope, mut curvature) = (0.0, 0.0);
        for i in 0..n {
            softmax((0..c).map(|k| beta * scores[(i, k)]), &mut probabilities);
            let (mut mean, mut square, mut own) = (0.0, 0.0, 0.0);
            for k in 0..c {
                let s = scores[(i, k)];
                mean += probabilities[k] * s;
                square += probabilities[k] * s * s;
                own += targets[(i, k)] * s;
            }
            slope += weights[i] / whole * (mean - own);
            curvature += weights[i] / whole * (square - mean * mean);
        }
        let (slope, curvature) = (beta * slope, beta * beta * curvature);
        let step = (-slope / (curvature + slope.abs() + 1e-12)).clamp(-1.0, 1.0);
        log = (log + step).clamp(-3.0, 7.0);
        if step.abs() < 1e-10 {
            break;
        }
    }
    log.exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laplace::Cells;
    use crate::laplace::columns::{Columns, Measure, Units};
    use crate::process::NodeKey;

    /// Sixty rows with a missing cell now and then and a categorical column.
    fn batch(outputs: usize, loss: Loss) -> Batch {
        let n = 60;
        let draw = |i: usize, k: u32| NodeKey::root(7, i as u64).draw(k).normal();
        let mut cells = Vec::new();
        for i in 0..n {
            cells.extend([draw(i, 0), draw(i, 1), if i % 7 == 0 { f64::NAN } else { draw(i, 2) }, (i % 3) as f64]);
        }
        let table = Cells::row_major(&cells, 4).unwrap();
        let columns = Columns::learn(table, &[false, false, false, true], Measure::Both, Units::Each).unwrap();
        let targets = match loss {
            Loss::Squared => Matrix::from_fn(n, outputs, |i, c| draw(i, c as u32) * draw(i, 1) + 0.1 * draw(i, 9)),
            Loss::Log => {
                let class = |i: usize| (draw(i, 0).abs() * 1.5 + 0.3 * draw(i, 8).abs()) as usize % outputs;
                Matrix::from_fn(n, outputs, |i, c| f64::from(u8::from(class(i) == c)))
            }
        };
        let weights = (0..n).map(|i| 0.5 + f64::from(i as u32 % 4) / 3.0).collect();
        Batch { columned: columns.apply(table).unwrap(), targets, weights, is_centred: true }
    }

    #[test]
    fn gradients_agree_with_differences() {
        for (loss, outputs) in [(Loss::Squared, 1), (Loss::Squared, 2), (Loss::Log, 2), (Loss::Log, 3)] {
            let batch = batch(outputs, loss);
            for metric in [Metric::None, Metric::Diagonal, Metric::Full, Metric::Rank(2)] {
                let (n_axes, n_linear) = (batch.columned.axes.n_columns(), batch.columned.linear.n_columns());
                let layout = Layout {
                    n_axes,
                    n_levels: 1,
                    n_linear,
                    metric,
                    exponent: None,
                    alpha: None,
                    has_fixed_axes: false,
                };
                let mut theta = layout.start(NodeKey::root(1, 1));
                for (k, t) in theta.iter_mut().enumerate() {
                    *t += 0.2 * NodeKey::root(3, k as u64).draw(0).normal();
                }
                theta[..=n_axes].iter_mut().for_each(|t| *t -= 1.5);
                let found = slope(&layout, &theta, &batch, loss, Threads::ONE).unwrap();
                let largest = found.gradient.iter().fold(0.0_f64, |m, g| m.max(g.abs()));
                for at in 0..theta.len() {
                    if metric == Metric::None && at == layout.exponent_at() {
                        continue;
                    }
                    // A fourth-order difference, so that a step of 1e-3 suffices.
                    let value = |step: f64| {
                        let mut moved = theta.clone();
                        moved[at] += step;
                        slope(&layout, &moved, &batch, loss, Threads::ONE).unwrap().value
                    };
                    let h = 1e-3;
                    let slow = (8.0 * (value(h) - value(-h)) - (value(2.0 * h) - value(-2.0 * h))) / (12.0 * h);
                    let off = (found.gradient[at] - slow).abs();
                    assert!(off <= 1e-6 * largest, "{loss:?} {metric:?} {at}: {} {slow}", found.gradient[at]);
                }
            }
        }
    }

    /// Blocks are used from 512 rows on; the sequential algebra is their slow twin.
    #[test]
    fn blocks_and_threads_change_nothing() {
        let small = batch(2, Loss::Squared);
        let rows: Vec<usize> = (0..600).map(|i| i % 60).collect();
        let mut large = small.select(&rows);
        // Equal rows ten times over, moved apart.
        for c in 0..large.columned.axes.n_columns() {
            for (i, x) in large.columned.axes.column_mut(c).iter_mut().enumerate() {
                *x += 0.3 * NodeKey::root(11, (i * 7 + c) as u64).draw(0).normal();
            }
        }
        let (n_axes, n_linear) = (large.columned.axes.n_columns(), large.columned.linear.n_columns());
        let (metric, exponent, alpha) = (Metric::Full, None, None);
        let layout = Layout { n_axes, n_levels: 1, n_linear, metric, exponent, alpha, has_fixed_axes: false };
        let theta = layout.start(NodeKey::root(1, 1));
        let found = [1, 2, 3].map(|n| slope(&layout, &theta, &large, Loss::Squared, Threads::up_to(n)).unwrap());
        assert!(found.iter().all(|f| f.value == found[0].value && f.gradient == found[0].gradient));
        let values = layout.values(&theta);
        let slow = crate::laplace::solve::judge(&values, &large, Loss::Squared, Threads::ONE).unwrap();
        assert!((slow - found[0].value).abs() < 0.01, "the same error but for the intercept left out: {slow}");
    }
}
