//! How far off a prediction may be: from the nearest rows alone, calibrated on leave-one-out residuals, so that no
//! factorisation of all rows is ever needed (docs/design.md, "Uncertainty").
//!
//! With k and A = K + α/w among the m nearest rows, v = s²·(1 + α − kᵀA⁻¹k), where the local scale s² = tᵀA⁻¹t/m of their
//! targets is drawn towards the mean of all local scales. Residuals r over √v of rows that were left out say how wide an
//! interval must be.

use std::ops::Range;

use crate::parallel::current_num_threads;
use crate::parallel::prelude::*;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::laplace::KernelRows;
use crate::laplace::local::{factor_with_jitter, numbers_of};
use crate::laplace::model::KernelModel;
use crate::laplace::target::{quantile, residual_quantiles, sorted};
use crate::linalg::{Matrix, Threads, dot};

/// Nearest rows.
const NEIGHBOURS: usize = 50;
/// The mean local scale counts as much as so many rows.
const SHRINKAGE: f64 = 25.0;
/// Rows that are left out for calibration.
const ROWS: usize = 1000;
/// Quantiles kept of |r|/√v.
const LEVELS: usize = 401;

/// What calibration found, for one output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Calibration {
    /// The mean local scale.
    pub(crate) scale: f64,
    /// Quantiles of |r|/√v at 0, 1/400, …, 1.
    pub(crate) widths: Vec<f64>,
    /// 41 quantiles of r/√v.
    pub(crate) shape: Vec<f64>,
}

impl Calibration {
    pub(crate) fn is_sound(&self) -> bool {
        let finite = |numbers: &[f64]| !numbers.is_empty() && numbers.iter().all(|x| x.is_finite());
        self.scale >= 0.0 && self.scale.is_finite() && finite(&self.widths) && finite(&self.shape)
    }

    /// Leaves out rows one at a time: the first, whose residuals are given.
    pub(crate) fn learn(model: &KernelModel, residuals: &[f64], output: usize) -> Result<Self> {
        let n = residuals.len().min(ROWS);
        let found: Vec<(f64, f64)> = if model.is_exact() {
            let tiles = model.tiles();
            let one = |i: usize| -> Result<(f64, f64)> {
                let mut kernel = vec![0.0; tiles.n_rows()];
                tiles.fill_column(tiles.row(i), 0, &mut kernel);
                // Left out by its number: an equal row is a neighbour like any other.
                kernel[i] = f64::NEG_INFINITY;
                local(model, &kernel, output)
            };
            (0..n).into_par_iter().map(one).collect::<Result<_>>()?
        } else {
            let own: Vec<u32> = (0..n as u32).collect();
            let queries = model.rows.select(&(0..n).collect::<Vec<_>>());
            near_scales(model, &queries, Some(&own))?.into_iter().map(|row| row[output]).collect()
        };
        let scale = found.iter().map(|(s, _)| s).sum::<f64>() / n.max(1) as f64;
        let over: Vec<f64> = found
            .iter()
            .zip(residuals)
            .map(|((s, v), r)| {
                let variance = variance(*s, *v, scale, model.n_rows());
                if variance > 0.0 { r / variance.sqrt() } else { 0.0 }
            })
            .collect();
        let absolute = sorted(&over.iter().map(|z| z.abs()).collect::<Vec<_>>());
        let widths = (0..LEVELS).map(|k| quantile(&absolute, k as f64 / (LEVELS - 1) as f64)).collect();
        Ok(Self { scale, widths, shape: residual_quantiles(&over) })
    }

    /// √v at a query with these kernel values.
    pub(crate) fn deviation(&self, model: &KernelModel, kernel: &[f64], output: usize) -> Result<f64> {
        Ok(self.deviation_of(local(model, kernel, output)?, model.n_rows()))
    }

    /// √v of a local scale and its share.
    pub(crate) fn deviation_of(&self, (scale, share): (f64, f64), n_rows: usize) -> f64 {
        variance(scale, share, self.scale, n_rows).max(0.0).sqrt()
    }

    /// The √v whose targets have so much more variance.
    pub(crate) fn with_variance(&self, deviation: f64, more: Option<&f64>) -> f64 {
        let Some(more) = more.filter(|more| **more > 0.0) else { return deviation };
        let square = self.shape.iter().map(|e| e * e).sum::<f64>() / self.shape.len() as f64;
        if square > 0.0 { (deviation * deviation + more / square).sqrt() } else { deviation }
    }

    /// How many √v an interval of this coverage reaches to each side.
    pub(crate) fn width(&self, coverage: f64) -> f64 {
        let at = coverage.clamp(0.0, 1.0) * (self.widths.len() - 1) as f64;
        let below = at.floor() as usize;
        let above = (below + 1).min(self.widths.len() - 1);
        self.widths[below] + (self.widths[above] - self.widths[below]) * (at - below as f64)
    }
}

fn variance(local_scale: f64, share: f64, scale: f64, n_rows: usize) -> f64 {
    let m = NEIGHBOURS.min(n_rows) as f64;
    (m * local_scale + SHRINKAGE * scale) / (m + SHRINKAGE) * share
}

/// The local scale and 1 + α − kᵀA⁻¹k among the nearest rows.
fn local(model: &KernelModel, kernel: &[f64], output: usize) -> Result<(f64, f64)> {
    let mut nearest: Vec<usize> = (0..kernel.len()).filter(|&i| kernel[i] >= 0.0).collect();
    let m = NEIGHBOURS.min(nearest.len());
    let alpha = model.values.alpha;
    if m == 0 {
        return Ok((0.0, 1.0 + alpha));
    }
    let nearer = |a: &usize, b: &usize| kernel[*b].total_cmp(&kernel[*a]).then(a.cmp(b));
    if m < nearest.len() {
        nearest.select_nth_unstable_by(m - 1, nearer);
        nearest.truncate(m);
    }
    nearest.sort_unstable();
    let kernel: Vec<f64> = nearest.iter().map(|&i| kernel[i]).collect();
    Ok(scales_of(model, &nearest, &kernel, output..output + 1)?[0])
}

/// The local scale and 1 + α − kᵀA⁻¹k of some outputs among these rows with these kernel values.
fn scales_of(model: &KernelModel, nearest: &[usize], kernel: &[f64], outputs: Range<usize>) -> Result<Vec<(f64, f64)>> {
    let (m, alpha) = (nearest.len(), model.values.alpha);
    let rows = model.rows.select(nearest);
    let a = Matrix::from_fn(m, m, |i, j| if i >= j { rows.entry(i, j) } else { 0.0 });
    let noise: Vec<f64> = nearest.iter().map(|&i| alpha / model.weights[i]).collect();
    let factor = factor_with_jitter(&a, &noise)?;
    let one = |output: usize| {
        let mut both =
            Matrix::from_fn(m, 2, |i, k| if k == 0 { kernel[i] } else { model.targets[(nearest[i], output)] });
        factor.half_solve_in_place(both.view_mut())?;
        let explained = dot(both.column(0), both.column(0));
        let scale = dot(both.column(1), both.column(1)) / m as f64;
        Ok((scale, (1.0 - explained).max(0.0) + alpha))
    };
    outputs.map(one).collect()
}

/// The same for every query and all outputs of a model of many rows; row `own[i]` is left out for query i.
pub(crate) fn near_scales(
    model: &KernelModel,
    queries: &KernelRows,
    own: Option<&[u32]>,
) -> Result<Vec<Vec<(f64, f64)>>> {
    let (n_outputs, threads) = (model.n_outputs(), Threads::up_to(current_num_threads()));
    let m = NEIGHBOURS.min(model.n_rows() - usize::from(own.is_some()));
    if m == 0 {
        return Ok(vec![vec![(0.0, 1.0 + model.values.alpha); n_outputs]; queries.n_rows()]);
    }
    let neighbors = model.packed().nearest(queries, m, own, threads)?;
    let one = |q: usize| {
        let mut nearest = numbers_of(neighbors.of(q));
        nearest.sort_unstable();
        let kernel: Vec<f64> = nearest.iter().map(|&i| (-queries.distance_to(q, &model.rows, i)).exp()).collect();
        scales_of(model, &nearest, &kernel, 0..n_outputs)
    };
    (0..queries.n_rows()).into_par_iter().map(one).collect()
}
