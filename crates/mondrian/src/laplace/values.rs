//! The numbers of a kernel, and how a vector of free parameters stands for them.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::laplace::KernelRows;
use crate::laplace::columns::Columned;
use crate::linalg::{Into, Matrix, Threads, gemm};
use crate::process::NodeKey;
use crate::{Error, Result};

/// Which metric A the kernel's second term has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// None below 300 rows, full to 40 inputs, above them diagonal with 16 free directions.
    #[default]
    Auto,
    /// No second term: the report's kernel.
    None,
    /// Diagonal.
    Diagonal,
    /// A full matrix.
    Full,
    /// A diagonal matrix above so many free rows.
    Rank(usize),
}

/// The most inputs for which an automatic metric is a full matrix.
pub const MOST_FULL: usize = 40;
/// The fewest rows for which an automatic metric is learned. On 100 rows of a smooth function of 3 inputs it made the error on
/// fresh rows a fifth larger (0.075 instead of 0.063) and intervals too narrow (38 % at 50 %); on 300 it made no difference.
pub(crate) const FEWEST_ROWS: usize = 300;
/// The free rows of an automatic metric of more inputs.
pub const AUTO_RANK: usize = 16;

impl Metric {
    /// The form for so many inputs and rows: never `Auto`, and `None` without inputs.
    pub(crate) fn resolved(self, n_inputs: usize, n_rows: usize) -> Self {
        match self {
            _ if n_inputs == 0 => Self::None,
            Self::Auto if n_rows < FEWEST_ROWS => Self::None,
            Self::Auto if n_inputs <= MOST_FULL => Self::Full,
            Self::Auto => Self::Rank(AUTO_RANK),
            Self::Rank(rank) if rank >= n_inputs => Self::Full,
            other => other,
        }
    }

    /// Free rows for so many inputs.
    fn free_rows(self, n_inputs: usize) -> usize {
        match self {
            Self::Full => n_inputs,
            Self::Rank(rank) => rank,
            Self::Auto | Self::None | Self::Diagonal => 0,
        }
    }
}

/// Lifetimes, weights of categories, metric, exponent and α.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Values {
    pub(crate) lifetimes: Vec<f64>,
    pub(crate) level_weights: Vec<f64>,
    /// A, one row per direction; empty without a metric.
    pub(crate) metric: Matrix,
    pub(crate) exponent: f64,
    pub(crate) alpha: f64,
}

/// The rows of the diagonal matrix at the top of a metric: as many as there are columns, or none.
fn diagonal_rows(metric: &Matrix) -> usize {
    let d = metric.n_columns();
    let is_diagonal = |j: usize| metric.column(j)[..d].iter().enumerate().all(|(i, a)| i == j || *a == 0.0);
    if metric.n_rows() >= d && (0..d).all(is_diagonal) { d } else { 0 }
}

impl Values {
    /// Rows as this kernel sees them.
    pub(crate) fn rows(&self, columned: &Columned) -> Result<KernelRows> {
        let n = columned.n_rows();
        let (q, c) = (self.lifetimes.len(), self.level_weights.len());
        let mut rows = KernelRows::without_columns(n);
        if q > 0 {
            let mut axes = vec![0.0; n * q];
            for (d, lifetime) in self.lifetimes.iter().enumerate() {
                for (i, x) in columned.axes.column(d).iter().enumerate() {
                    axes[i * q + d] = lifetime * x;
                }
            }
            rows = rows.with_axes(axes, q)?;
        }
        if c > 0 {
            let levels = (0..n * c).map(|k| columned.levels[k % c * n + k / c]).collect();
            rows = rows.with_levels(levels, self.level_weights.clone())?;
        }
        let r = self.metric.n_rows();
        if r > 0 {
            rows = rows.with_directions(self.directions(&columned.linear).into_vec(), r, self.exponent)?;
        }
        Ok(rows)
    }

    /// A·x of every row. Column-major r × n is row-major n × r.
    fn directions(&self, linear: &Matrix) -> Matrix {
        let (metric, r, n) = (&self.metric, self.metric.n_rows(), linear.n_rows());
        let diagonal = diagonal_rows(metric);
        let mut directions = Matrix::zeros(r, n);
        if diagonal == 0 {
            gemm(1.0, metric, linear.view().t(), Into::Replace, directions.view_mut(), Threads::ONE);
            return directions;
        }
        // Most rows of a diagonal with few free rows are products of two numbers.
        let free = Matrix::from_fn(r - diagonal, diagonal, |i, j| metric[(diagonal + i, j)]);
        let mut along = Matrix::zeros(r - diagonal, n);
        if r > diagonal {
            gemm(1.0, &free, linear.view().t(), Into::Replace, along.view_mut(), Threads::ONE);
        }
        for k in 0..diagonal {
            let scale = metric[(k, k)];
            linear.column(k).iter().enumerate().for_each(|(i, x)| directions[(k, i)] = scale * x);
        }
        for i in 0..n {
            directions.column_mut(i)[diagonal..].copy_from_slice(along.column(i));
        }
        directions
    }

    pub(crate) fn is_sound(&self, n_axes: usize, n_levels: usize, n_linear: usize) -> bool {
        let good = |numbers: &[f64]| numbers.iter().all(|x| *x >= 0.0 && x.is_finite());
        good(&self.lifetimes)
            && good(&self.level_weights)
            && self.lifetimes.len() == n_axes
            && self.level_weights.len() == n_levels
            && (self.metric.n_rows() == 0 || self.metric.n_columns() == n_linear)
            && self.metric.as_slice().iter().all(|x| x.is_finite())
            && self.exponent > 0.0
            && self.exponent <= 2.0
            && self.alpha > 0.0
            && self.alpha.is_finite()
    }
}

/// Where the free parameters of a kernel stand in one vector: ln λ, ln ν, the metric's logarithmic scales t, its free rows
/// R (A = R·diag(eᵗ), below the identity for a rank), logit(p/2) and ln α.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Layout {
    pub(crate) n_axes: usize,
    pub(crate) n_levels: usize,
    pub(crate) n_linear: usize,
    pub(crate) metric: Metric,
    /// A fixed exponent, or `None` for a tuned one.
    pub(crate) exponent: Option<f64>,
    /// A fixed α.
    pub(crate) alpha: Option<f64>,
    /// Whether lifetimes are given and stay.
    pub(crate) has_fixed_axes: bool,
}

impl Layout {
    fn n_scales(&self) -> usize {
        if self.metric == Metric::None { 0 } else { self.n_linear }
    }

    pub(crate) fn free_rows(&self) -> usize {
        self.metric.free_rows(self.n_linear)
    }

    /// ln λ and ln ν.
    pub(crate) fn axes(&self) -> Range<usize> {
        0..self.n_axes + self.n_levels
    }

    /// t.
    pub(crate) fn scales(&self) -> Range<usize> {
        let start = self.axes().end;
        start..start + self.n_scales()
    }

    /// R, row by row.
    pub(crate) fn rotation(&self) -> Range<usize> {
        let start = self.scales().end;
        start..start + self.free_rows() * self.n_linear
    }

    pub(crate) fn exponent_at(&self) -> usize {
        self.rotation().end
    }

    pub(crate) fn alpha_at(&self) -> usize {
        self.rotation().end + 1
    }

    pub(crate) fn n_parameters(&self) -> usize {
        self.rotation().end + 2
    }

    /// What R is drawn to by the prior.
    pub(crate) fn rotation_centre(&self, k: usize) -> f64 {
        let (row, column) = (k / self.n_linear, k % self.n_linear);
        f64::from(u8::from(self.metric == Metric::Full && row == column))
    }

    /// Parameters with R at its start: the identity, or small keyed noise for a rank.
    pub(crate) fn start(&self, key: NodeKey) -> Vec<f64> {
        let mut theta = vec![0.0; self.n_parameters()];
        let scale = 0.3 / (self.free_rows().max(1) as f64).sqrt();
        for (k, at) in self.rotation().enumerate() {
            theta[at] = match self.metric {
                Metric::Rank(_) => scale * key.fork(k as u64).draw(0).normal(),
                _ => self.rotation_centre(k),
            };
        }
        if let Some(p) = self.exponent {
            theta[self.exponent_at()] = (0.5 * p).ln() - (1.0 - 0.5 * p).max(1e-12).ln();
        }
        theta[self.alpha_at()] = self.alpha.map_or(-3.0, f64::ln);
        theta
    }

    /// The layout and the parameters of a kernel that was tuned: what [`Layout::values`] makes of them is that kernel, up to
    /// rounding. A full metric's scales are the lengths of its columns.
    pub(crate) fn of(values: &Values, n_linear: usize, exponent: Option<f64>, alpha: Option<f64>) -> (Self, Vec<f64>) {
        let a = &values.metric;
        let is_diagonal = || (0..a.n_columns()).all(|j| (0..a.n_rows()).all(|i| i == j || a[(i, j)] == 0.0));
        let metric = match a.n_rows() {
            0 => Metric::None,
            n if n == n_linear && is_diagonal() => Metric::Diagonal,
            n if n == n_linear => Metric::Full,
            n => Metric::Rank(n - n_linear),
        };
        let (n_axes, n_levels) = (values.lifetimes.len(), values.level_weights.len());
        let layout = Self { n_axes, n_levels, n_linear, metric, exponent, alpha, has_fixed_axes: false };
        let mut theta = vec![0.0; layout.n_parameters()];
        let logarithm = |x: f64| x.max(f64::MIN_POSITIVE).ln();
        let lifetimes = values.lifetimes.iter().chain(&values.level_weights);
        theta.iter_mut().zip(lifetimes).for_each(|(t, lifetime)| *t = logarithm(*lifetime));
        let identity = if metric == Metric::Full { 0 } else { n_linear };
        for (j, at) in layout.scales().enumerate() {
            let length = a.column(j).iter().map(|x| x * x).sum::<f64>().sqrt();
            theta[at] = logarithm(if metric == Metric::Full { length } else { a[(j, j)] });
        }
        for (k, at) in layout.rotation().enumerate() {
            let (row, column) = (identity + k / n_linear, k % n_linear);
            theta[at] = a[(row, column)] / theta[layout.scales().start + column].exp();
        }
        let half = 0.5 * exponent.unwrap_or(values.exponent);
        theta[layout.exponent_at()] = half.ln() - (1.0 - half).max(1e-12).ln();
        theta[layout.alpha_at()] = alpha.unwrap_or(values.alpha).ln();
        (layout, theta)
    }

    pub(crate) fn exponent_of(&self, theta: &[f64]) -> f64 {
        self.exponent.unwrap_or_else(|| 2.0 / (1.0 + (-theta[self.exponent_at()]).exp()))
    }

    /// The kernel that parameters stand for.
    pub(crate) fn values(&self, theta: &[f64]) -> Values {
        let exponentials = |range: Range<usize>| theta[range].iter().map(|t| t.exp()).collect::<Vec<f64>>();
        let d = self.n_linear;
        let metric = if self.metric == Metric::None {
            Matrix::zeros(0, 0)
        } else {
            let (scales, rotation) = (exponentials(self.scales()), &theta[self.rotation()]);
            let identity = if self.metric == Metric::Full { 0 } else { d };
            Matrix::from_fn(identity + self.free_rows(), d, |i, j| {
                if i < identity {
                    f64::from(u8::from(i == j)) * scales[j]
                } else {
                    rotation[(i - identity) * d + j] * scales[j]
                }
            })
        };
        Values {
            lifetimes: exponentials(0..self.n_axes),
            level_weights: exponentials(self.n_axes..self.n_axes + self.n_levels),
            metric,
            exponent: self.exponent_of(theta),
            alpha: self.alpha.unwrap_or_else(|| theta[self.alpha_at()].exp()),
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        if let Some(value) = self.exponent.filter(|p| !(*p > 0.0 && *p <= 2.0)) {
            return Err(Error::InvalidParameter { name: "exponent", value, expected: "above 0 and at most 2" });
        }
        if let Some(value) = self.alpha.filter(|a| !(*a > 0.0 && a.is_finite())) {
            return Err(Error::InvalidParameter { name: "alpha", value, expected: "a finite number > 0" });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel's parameters give the kernel back.
    #[test]
    fn parameters_of_a_kernel_stand_for_it() {
        for metric in [Metric::None, Metric::Diagonal, Metric::Full, Metric::Rank(2)] {
            let layout = Layout {
                n_axes: 3,
                n_levels: 1,
                n_linear: 3,
                metric,
                exponent: None,
                alpha: None,
                has_fixed_axes: false,
            };
            let mut theta = layout.start(NodeKey::root(1, 1));
            for (k, t) in theta.iter_mut().enumerate() {
                *t += 0.4 * NodeKey::root(3, k as u64).draw(0).normal();
            }
            let values = layout.values(&theta);
            let (found, again) = Layout::of(&values, 3, None, None);
            assert_eq!(found, layout);
            let other = found.values(&again);
            let near = |a: &[f64], b: &[f64]| {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-12 * a.abs().max(1.0))
            };
            assert!(near(&values.lifetimes, &other.lifetimes) && near(&values.level_weights, &other.level_weights));
            assert!(near(values.metric.as_slice(), other.metric.as_slice()));
            assert!(near(&[values.exponent, values.alpha], &[other.exponent, other.alpha]));
            // Given numbers take the place of those that were tuned.
            assert_eq!(Layout::of(&values, 3, Some(1.0), Some(0.5)).0.values(&again).alpha, 0.5);
        }
    }
}
