//! What tuning of the whole kernel minimises: the leave-one-out loss of ridge on a batch of rows, with its derivatives in
//! all parameters (docs/design.md, "Objective and gradient").
//!
//! P = (K + αN)⁻¹ with N = diag(1/w), a = PY, leave-one-out residuals R = a/diag P. For a loss f(R) with H = ∂f/∂R,
//! W = H/diag P and v = Σ_c W∘R, df = ⟨G, d(K + αN)⟩ with G = P diag(v) P − ½(P W aᵀ + a Wᵀ P). Everything else is one
//! pass over the entries: ∂f/∂ln λ_d = −λ_d Σ G∘K∘|Δ_d|, and for the metric two products with the m × m matrix
//! G∘K∘q^{p/2−1}.

use crate::laplace::Slope;
use crate::laplace::columns::{Columned, WIDE};
use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::BlockStructure;
use faer::{Accum, MatMut, MatRef, Par};

use crate::laplace::singles::Singles;
use crate::laplace::tiles::{Pairs, Tiles};
use crate::laplace::values::{Layout, Metric};
use crate::laplace::wide_singles::WideSingles;
use crate::linalg::{Into, Matrix, Real, Threads, each, factor_columns, gemm, inverse_blocks, mirror, product_lower};
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

/// The fewest rows for steps in single precision: fewer are quick anyway.
const BLOCKED: usize = 512;

/// The least α, over the largest weight, for steps in single precision: the inverse is off by about √n·6e-8/α of itself, a fiftieth
/// for 1000 rows. The rows that a step happens to see matter far more.
pub(crate) const LEAST_NOISE: f64 = 1e-4;

/// The value at these parameters and its derivatives, as a step of Adam needs them: in single precision where noise allows it.
///
/// # Errors
/// [`Error::NotPositiveDefinite`] if α is too small for the rows.
pub(crate) fn rough_slope(
    layout: &Layout,
    theta: &[f64],
    batch: &Batch,
    loss: Loss,
    threads: Threads,
) -> Result<Slope> {
    let largest = batch.weights.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    if batch.n_rows() >= BLOCKED && layout.values(theta).alpha / largest >= LEAST_NOISE {
        let is_wide = layout.n_linear > WIDE && layout.n_levels == 0;
        let of_pairs = if is_wide { slope_in::<WideSingles> } else { slope_in::<Singles> };
        match of_pairs(layout, theta, batch, loss, threads) {
            Err(Error::NotPositiveDefinite { .. }) => {}
            other => return other,
        }
    }
    slope(layout, theta, batch, loss, threads)
}

/// The value at these parameters and its derivatives; the same bits for any number of threads.
///
/// # Errors
/// [`Error::NotPositiveDefinite`] if α is too small for the rows.
pub(crate) fn slope(layout: &Layout, theta: &[f64], batch: &Batch, loss: Loss, threads: Threads) -> Result<Slope> {
    slope_in::<Tiles>(layout, theta, batch, loss, threads)
}

/// The same in one precision or the other.
fn slope_in<P: Pairs>(layout: &Layout, theta: &[f64], batch: &Batch, loss: Loss, threads: Threads) -> Result<Slope> {
    let n = batch.n_rows();
    let values = layout.values(theta);
    let pairs = P::new(&values.rows(&batch.columned)?);
    let mut parts = pairs.parts(threads);
    let mut a = parts.kernel.clone();
    for (i, w) in batch.weights.iter().enumerate() {
        parts.kernel[i * n + i] = P::Number::near(1.0);
        a[i * n + i] = P::Number::near(1.0 + values.alpha / w);
    }
    factor_columns(&mut a, n, threads)?;
    let p = inverse_blocks(&a, n, threads);
    drop(a);
    let centre =
        if batch.is_centred { means(&batch.targets, &batch.weights) } else { vec![0.0; batch.targets.n_columns()] };
    let y = Matrix::from_fn(n, centre.len(), |i, c| batch.targets[(i, c)] - centre[c]);
    let dual = times(&p, &y);
    let diagonal: Vec<f64> = (0..n).map(|i| p[i * n + i].into()).collect();
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
        let noise = |i: usize| std::convert::Into::<f64>::into(g[i * n + i]) / batch.weights[i];
        gradient[layout.alpha_at()] = values.alpha * (0..n).map(noise).sum::<f64>();
    }
    let entries = g.chunks_mut(n).zip(parts.kernel.chunks(n)).collect();
    each(entries, threads, |(g, k): (&mut [P::Number], &[P::Number])| {
        g.iter_mut().zip(k).for_each(|(g, k)| *g *= *k);
    });
    // Only one triangle is summed over.
    if !layout.has_fixed_axes {
        for (at, sum) in pairs.contract(&g, threads).into_iter().enumerate() {
            gradient[at] = -2.0 * sum;
        }
    }
    if layout.metric != Metric::None {
        let logarithmic = pairs.metric_weights(&mut g, &parts, threads);
        metric_gradient(layout, theta, &values.metric, &batch.columned, g, logarithmic, &mut gradient);
    }
    Ok(Slope { value, gradient })
}

/// P·x in double precision, sums in that of P.
fn times<T: Real>(p: &[T], x: &Matrix) -> Matrix {
    let (n, c) = (x.n_rows(), x.n_columns());
    let right: Vec<T> = x.as_slice().iter().map(|x| T::near(*x)).collect();
    let mut out = vec![T::near(0.0); n * c];
    multiply(&mut out, (n, c), p, &right, false);
    Matrix::from_fn(n, c, |i, k| out[k * n + i].into())
}

/// `out` ← a·b (or aᵀ·b) of so many rows and columns.
fn multiply<T: Real>(out: &mut [T], (rows, columns): (usize, usize), a: &[T], b: &[T], is_transposed: bool) {
    let inner = b.len() / columns.max(1);
    let a: MatRef<'_, T> = if is_transposed {
        MatRef::from_column_major_slice(a, inner, rows).transpose()
    } else {
        MatRef::from_column_major_slice(a, rows, inner)
    };
    let out = MatMut::from_column_major_slice_mut(out, rows, columns);
    matmul(out, Accum::Replace, a, MatRef::from_column_major_slice(b, inner, columns), T::near(1.0), Par::Seq);
}

/// G in its lower triangle.
fn gradient_matrix<T: Real>(
    p: &[T],
    dual: &Matrix,
    residuals: &Matrix,
    slopes: &Matrix,
    diagonal: &[f64],
    threads: Threads,
) -> Vec<T> {
    let (n, c) = (dual.n_rows(), dual.n_columns());
    let w = Matrix::from_fn(n, c, |i, c| slopes[(i, c)] / diagonal[i]);
    let pw = times(p, &w);
    let v: Vec<T> = (0..n).map(|j| T::near((0..c).map(|c| w[(j, c)] * residuals[(j, c)]).sum())).collect();
    let mut g = product_lower(p, &v, p, threads);
    // −½(P W aᵀ + a Wᵀ P) as one product of 2·C columns.
    let left: Vec<T> = pw.as_slice().iter().chain(dual.as_slice()).map(|x| T::near(-0.5 * x)).collect();
    let right: Vec<T> = dual.as_slice().iter().chain(pw.as_slice()).map(|x| T::near(*x)).collect();
    faer::linalg::matmul::triangular::matmul(
        MatMut::from_column_major_slice_mut(&mut g, n, n),
        BlockStructure::TriangularLower,
        Accum::Add,
        MatRef::from_column_major_slice(&left, n, 2 * c),
        BlockStructure::Rectangular,
        MatRef::from_column_major_slice(&right, n, 2 * c).transpose(),
        BlockStructure::Rectangular,
        T::near(1.0),
        Par::Seq,
    );
    g
}

/// The derivatives in metric and exponent, of G∘K∘r/s below the diagonal and Σ G∘K∘r·ln s.
pub(crate) fn metric_gradient<T: Real>(
    layout: &Layout,
    theta: &[f64],
    metric: &Matrix,
    columned: &Columned,
    mut weights: Vec<T>,
    logarithmic: f64,
    gradient: &mut [f64],
) {
    let (n, d) = (columned.n_rows(), layout.n_linear);
    let p = layout.exponent_of(theta);
    if layout.exponent.is_none() {
        gradient[layout.exponent_at()] = -logarithmic * p * (1.0 - 0.5 * p);
    }
    for i in 0..n {
        weights[i * n + i] = T::near(0.0);
    }
    mirror(&mut weights, n);
    let x: Vec<T> = columned.linear.as_slice().iter().map(|x| T::near(*x)).collect();
    // diag(W·1)·X − W·X, then Xᵀ from the left: half of Σ W u uᵀ.
    let mut right = vec![T::near(0.0); n * d];
    multiply(&mut right, (n, d), &weights, &x, false);
    let sums: Vec<T> = weights
        .chunks_exact(n)
        .map(|column| T::near(column.iter().map(|w| std::convert::Into::<f64>::into(*w)).sum()))
        .collect();
    for (right, x) in right.chunks_exact_mut(n).zip(x.chunks_exact(n)) {
        right.iter_mut().zip(x).zip(&sums).for_each(|((r, x), sum)| *r = *sum * *x - *r);
    }
    let identity = metric.n_rows() - layout.free_rows();
    let scales: Vec<f64> = theta[layout.scales()].iter().map(|t| t.exp()).collect();
    let slopes = free_slopes(metric, identity, &x, &right, n, -2.0 * p);
    for (k, at) in layout.scales().enumerate() {
        let free = slopes.column(k).iter().zip(&metric.column(k)[identity..]);
        gradient[at] = free.map(|(s, a)| s * a).sum();
        // A row of the diagonal has one number.
        if identity > 0 {
            let pairs = right[k * n..][..n].iter().zip(&x[k * n..][..n]);
            let sum: f64 =
                pairs.map(|(r, x)| std::convert::Into::<f64>::into(*r) * std::convert::Into::<f64>::into(*x)).sum();
            gradient[at] -= 2.0 * p * metric[(k, k)] * metric[(k, k)] * sum;
        }
    }
    for (k, at) in layout.rotation().enumerate() {
        gradient[at] = slopes[(k / d, k % d)] * scales[k % d];
    }
}

/// `factor`·F·Xᵀ·`right` for the rows F of the metric below its diagonal.
fn free_slopes<T: Real>(metric: &Matrix, diagonal: usize, x: &[T], right: &[T], n: usize, factor: f64) -> Matrix {
    let (d, rank) = (metric.n_columns(), metric.n_rows() - diagonal);
    let mut slopes = Matrix::zeros(rank, d);
    if rank == 0 {
        return slopes;
    }
    let free = Matrix::from_fn(rank, d, |i, j| metric[(diagonal + i, j)]);
    if diagonal == 0 {
        let mut middle = vec![T::near(0.0); d * d];
        multiply(&mut middle, (d, d), x, right, true);
        let middle = Matrix::from_fn(d, d, |i, j| middle[j * d + i].into());
        gemm(factor, &free, &middle, Into::Replace, slopes.view_mut(), Threads::ONE);
        return slopes;
    }
    // X·Fᵀ first, of few columns.
    let turned: Vec<T> = (0..rank * d).map(|k| T::near(free[(k / d, k % d)])).collect();
    let mut along = vec![T::near(0.0); n * rank];
    multiply(&mut along, (n, rank), x, &turned, false);
    let mut out = vec![T::near(0.0); rank * d];
    multiply(&mut out, (rank, d), &along, right, true);
    slopes.as_mut_slice().iter_mut().zip(&out).for_each(|(s, o)| *s = factor * std::convert::Into::<f64>::into(*o));
    slopes
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

    /// Double precision is the slow twin of steps in single precision.
    #[test]
    fn single_precision_leads_the_same_way() {
        for (loss, outputs) in [(Loss::Squared, 1), (Loss::Log, 3)] {
            let large = spread(&batch(outputs, loss));
            for metric in [Metric::None, Metric::Full, Metric::Rank(2)] {
                let (n_axes, n_linear) = (large.columned.axes.n_columns(), large.columned.linear.n_columns());
                let (exponent, has_fixed_axes) = (None, false);
                let layout = Layout { n_axes, n_levels: 1, n_linear, metric, exponent, alpha: None, has_fixed_axes };
                let mut theta = layout.start(NodeKey::root(1, 1));
                theta.iter_mut().enumerate().for_each(|(k, t)| *t += 0.2 * NodeKey::root(3, k as u64).draw(0).normal());
                for (alpha, near) in [(0.1_f64, 1e-4), (2e-3, 3e-3), (2.0 * LEAST_NOISE, 3e-2)] {
                    theta[layout.alpha_at()] = alpha.ln();
                    let slow = slope(&layout, &theta, &large, loss, Threads::ONE).unwrap();
                    let found = rough_slope(&layout, &theta, &large, loss, Threads::ONE).unwrap();
                    assert_ne!(found, slow);
                    assert_eq!(found, rough_slope(&layout, &theta, &large, loss, Threads::up_to(2)).unwrap());
                    assert!((found.value - slow.value).abs() < near, "{} {}", found.value, slow.value);
                    let largest = slow.gradient.iter().fold(0.0_f64, |m, g| m.max(g.abs()));
                    for (at, (a, b)) in found.gradient.iter().zip(&slow.gradient).enumerate() {
                        assert!((a - b).abs() < near * largest, "{loss:?} {metric:?} {alpha} {at}: {a} {b}");
                    }
                }
                // With less noise the steps are in double precision.
                theta[layout.alpha_at()] = (0.2 * LEAST_NOISE).ln();
                let slow = slope(&layout, &theta, &large, loss, Threads::ONE).unwrap();
                assert_eq!(rough_slope(&layout, &theta, &large, loss, Threads::ONE).unwrap(), slow);
            }
        }
    }

    /// Rows ten times over, moved apart.
    fn spread(small: &Batch) -> Batch {
        let rows: Vec<usize> = (0..600).map(|i| i % 60).collect();
        let mut large = small.select(&rows);
        for c in 0..large.columned.axes.n_columns() {
            for (i, x) in large.columned.axes.column_mut(c).iter_mut().enumerate() {
                *x += 0.3 * NodeKey::root(11, (i * 7 + c) as u64).draw(0).normal();
            }
        }
        large
    }

    #[test]
    fn blocks_and_threads_change_nothing() {
        let large = spread(&batch(2, Loss::Squared));
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
