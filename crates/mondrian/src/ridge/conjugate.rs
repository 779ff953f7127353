//! Preconditioned conjugate gradients on the normal equations.

use crate::Result;
use crate::linalg::dot;
use crate::progress::Progress;
use crate::ridge::Design;

/// When conjugate gradients stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CgOptions {
    /// Stop at ‖b − Aθ‖ ≤ `tolerance`·‖b‖.
    pub tolerance: f64,
    /// Largest number of steps.
    pub max_steps: usize,
}

impl Default for CgOptions {
    fn default() -> Self {
        Self { tolerance: 1e-10, max_steps: 10_000 }
    }
}

/// The result of conjugate gradients.
#[derive(Debug, Clone, PartialEq)]
pub struct CgResult {
    /// θ.
    pub solution: Vec<f64>,
    /// Number of products with ZᵀZ + αI.
    pub steps: usize,
    /// ‖b − Aθ‖/‖b‖, as computed by the recursion.
    pub residual: f64,
}

/// Solves (ZᵀZ + αI)θ = b from `start` (zero if none), with the diagonal as preconditioner.
///
/// The diagonal balances cells of different size, the main cause of ill-conditioning: scaled by it,
/// ZᵀZ of M trees has no eigenvalue above M.
///
/// # Panics
/// If `b` or `start` has not one entry per column.
pub fn conjugate_gradients(
    design: &(impl Design + ?Sized),
    alpha: f64,
    b: &[f64],
    start: Option<&[f64]>,
    options: CgOptions,
) -> CgResult {
    conjugate_gradients_with_progress(design, alpha, b, start, options, &mut Progress::none()).expect("never cancelled")
}

/// As [`conjugate_gradients`], with a report after every step: the share of the requested digits reached so far.
pub(crate) fn conjugate_gradients_with_progress(
    design: &(impl Design + ?Sized),
    alpha: f64,
    b: &[f64],
    start: Option<&[f64]>,
    options: CgOptions,
    progress: &mut Progress<'_>,
) -> Result<CgResult> {
    let c = design.n_columns();
    assert_eq!(b.len(), c, "one entry per column");
    let inverse_diagonal: Vec<f64> = design.column_squares().iter().map(|d| 1.0 / (d + alpha)).collect();
    let mut theta = start.map_or_else(|| vec![0.0; c], <[f64]>::to_vec);
    let mut image = vec![0.0; c];
    let mut residual = b.to_vec();
    if start.is_some() {
        apply(design, alpha, &theta, &mut image);
        residual.iter_mut().zip(&image).for_each(|(r, q)| *r -= q);
    }
    let goal = options.tolerance * dot(b, b).sqrt();
    let norm = dot(b, b).sqrt();
    let relative = |squares: f64| if norm > 0.0 { squares.sqrt() / norm } else { squares.sqrt() };
    let mut direction: Vec<f64> = residual.iter().zip(&inverse_diagonal).map(|(r, d)| r * d).collect();
    let mut energy = dot(&residual, &direction);
    let mut squares = dot(&residual, &residual);
    let (mut steps, mut share) = (0, 0.0_f64);
    while squares.sqrt() > goal && steps < options.max_steps && energy > 0.0 {
        apply(design, alpha, &direction, &mut image);
        let step = energy / dot(&direction, &image);
        let mut next_energy = 0.0;
        squares = 0.0;
        for k in 0..c {
            theta[k] += step * direction[k];
            residual[k] -= step * image[k];
            next_energy += residual[k] * residual[k] * inverse_diagonal[k];
            squares += residual[k] * residual[k];
        }
        let turn = next_energy / energy;
        energy = next_energy;
        for k in 0..c {
            direction[k] = residual[k] * inverse_diagonal[k] + turn * direction[k];
        }
        steps += 1;
        // The residual is not monotone.
        share = share.max(libm::log(relative(squares).min(1.0)) / libm::log(options.tolerance)).min(1.0);
        progress.report(share)?;
    }
    Ok(CgResult { solution: theta, steps, residual: relative(squares) })
}

fn apply(design: &(impl Design + ?Sized), alpha: f64, theta: &[f64], out: &mut [f64]) {
    design.normal(theta, out);
    out.iter_mut().zip(theta).for_each(|(o, t)| *o += alpha * t);
}
