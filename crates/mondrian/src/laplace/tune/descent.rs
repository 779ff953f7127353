//! Descent of a smooth function in a box: limited-memory BFGS with projection.
//!
//! Small on purpose: a few dozen evaluations of an expensive function of tens of variables, each within bounds.
//! Variables at a bound that the gradient pushes outwards are held; the others move along the two-loop direction; the
//! step is halved (by interpolation) until the value falls enough, every trial point clamped into the box.

use std::collections::VecDeque;

use crate::laplace::Slope;
use crate::{Error, Result};

/// How a descent ends and how far it may go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DescentLimits {
    /// Evaluations of the function.
    pub evaluations: usize,
    /// Ends when a step lowers the value by less.
    pub least_gain: f64,
    /// The longest step in any one variable.
    pub longest_step: f64,
}

/// What a descent found.
#[derive(Debug, Clone, PartialEq)]
pub struct Descent {
    /// The best point.
    pub point: Vec<f64>,
    /// Its value and derivatives.
    pub slope: Slope,
    /// Evaluations spent.
    pub evaluations: usize,
}

/// Pairs of steps and gradient differences remembered.
const MEMORY: usize = 12;
/// The fraction of the predicted fall that a step must bring (Armijo's condition).
const SUFFICIENT: f64 = 1e-4;

/// Descends from `start`, clamped into `lower ≤ point ≤ upper`.
///
/// A function that cannot be evaluated somewhere ([`Error::NotPositiveDefinite`]) is taken as infinite there, except at
/// the start.
///
/// ```
/// use mondrian::internals::laplace::{DescentLimits, Slope, descend};
/// // Rosenbrock's valley, whose minimum (1, 1) the box excludes.
/// let valley = |p: &[f64]| {
///     let (a, b) = (p[0], p[1]);
///     let gradient = vec![-2.0 * (1.0 - a) - 400.0 * a * (b - a * a), 200.0 * (b - a * a)];
///     Ok(Slope { value: (1.0 - a).powi(2) + 100.0 * (b - a * a).powi(2), gradient })
/// };
/// let limits = DescentLimits { evaluations: 200, least_gain: 1e-14, longest_step: 1.0 };
/// let found = descend(valley, &[-1.2, 1.0], &[-2.0, -2.0], &[0.5, 2.0], limits)?;
/// assert!((found.point[0] - 0.5).abs() < 1e-6 && (found.point[1] - 0.25).abs() < 1e-6);
/// # Ok::<(), mondrian::Error>(())
/// ```
///
/// # Errors
/// The function's own, at the start, and any other than [`Error::NotPositiveDefinite`] anywhere.
pub fn descend(
    mut function: impl FnMut(&[f64]) -> Result<Slope>,
    start: &[f64],
    lower: &[f64],
    upper: &[f64],
    limits: DescentLimits,
) -> Result<Descent> {
    let clamp = |point: &mut [f64]| {
        for (i, x) in point.iter_mut().enumerate() {
            *x = x.max(lower[i]).min(upper[i]);
        }
    };
    let mut point = start.to_vec();
    clamp(&mut point);
    let mut slope = function(&point)?;
    let mut evaluations = 1;
    let mut memory: VecDeque<(Vec<f64>, Vec<f64>)> = VecDeque::new();
    'steps: while evaluations < limits.evaluations {
        let free: Vec<bool> = (0..point.len())
            .map(|i| {
                let g = slope.gradient[i];
                !(point[i] <= lower[i] && g > 0.0 || point[i] >= upper[i] && g < 0.0)
            })
            .collect();
        let mut direction = quasi_newton(&slope.gradient, &free, &memory);
        if inner(&direction, &slope.gradient) >= 0.0 {
            memory.clear();
            direction = quasi_newton(&slope.gradient, &free, &memory);
        }
        let length = direction.iter().fold(0.0_f64, |m, d| m.max(d.abs()));
        if length == 0.0 || !length.is_finite() {
            break;
        }
        // Without memory the direction has the gradient's length, which is arbitrary: half the longest step then.
        let longest = limits.longest_step / length;
        let mut step = if memory.is_empty() { 0.5 * longest } else { longest.min(1.0) };
        loop {
            let mut trial: Vec<f64> = point.iter().zip(&direction).map(|(x, d)| x + step * d).collect();
            clamp(&mut trial);
            let moved: Vec<f64> = trial.iter().zip(&point).map(|(t, x)| t - x).collect();
            let predicted = inner(&moved, &slope.gradient);
            if predicted >= 0.0 || moved.iter().all(|m| m.abs() < 1e-10) {
                break 'steps;
            }
            evaluations += 1;
            let found = match function(&trial) {
                Err(Error::NotPositiveDefinite { .. }) => Slope { value: f64::INFINITY, gradient: Vec::new() },
                other => other?,
            };
            if found.value <= slope.value + SUFFICIENT * predicted {
                let turned: Vec<f64> = found.gradient.iter().zip(&slope.gradient).map(|(a, b)| a - b).collect();
                remember(&mut memory, moved, turned);
                let gain = slope.value - found.value;
                (point, slope) = (trial, found);
                if gain < limits.least_gain {
                    break 'steps;
                }
                break;
            }
            if evaluations >= limits.evaluations {
                break 'steps;
            }
            // The minimum of the parabola through value, slope and trial value, within a tenth and a half of the step.
            let excess = found.value - slope.value - predicted;
            let shrink = if excess.is_finite() { (-0.5 * predicted / excess).clamp(0.1, 0.5) } else { 0.2 };
            step *= shrink;
        }
    }
    Ok(Descent { point, slope, evaluations })
}

fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Keeps a pair if its curvature is positive, which is what keeps directions downhill.
fn remember(memory: &mut VecDeque<(Vec<f64>, Vec<f64>)>, moved: Vec<f64>, turned: Vec<f64>) {
    let curvature = inner(&moved, &turned);
    if curvature > 1e-10 * inner(&moved, &moved).sqrt() * inner(&turned, &turned).sqrt() {
        if memory.len() == MEMORY {
            memory.pop_front();
        }
        memory.push_back((moved, turned));
    }
}

/// −H·gradient by the two-loop recursion, in the free variables only.
fn quasi_newton(gradient: &[f64], free: &[bool], memory: &VecDeque<(Vec<f64>, Vec<f64>)>) -> Vec<f64> {
    let mask = |v: &[f64]| -> Vec<f64> { v.iter().zip(free).map(|(v, &f)| if f { *v } else { 0.0 }).collect() };
    let pairs: Vec<(Vec<f64>, Vec<f64>, f64)> = memory
        .iter()
        .map(|(s, y)| (mask(s), mask(y)))
        .map(|(s, y)| {
            let curvature = inner(&s, &y);
            (s, y, curvature)
        })
        .filter(|(_, _, curvature)| *curvature > 0.0)
        .collect();
    let mut q = mask(gradient);
    let mut coefficients = Vec::with_capacity(pairs.len());
    for (s, y, curvature) in pairs.iter().rev() {
        let c = inner(s, &q) / curvature;
        q.iter_mut().zip(y).for_each(|(q, y)| *q -= c * y);
        coefficients.push(c);
    }
    if let Some((_, y, curvature)) = pairs.last() {
        let scale = curvature / inner(y, y);
        q.iter_mut().for_each(|q| *q *= scale);
    }
    for ((s, y, curvature), c) in pairs.iter().zip(coefficients.into_iter().rev()) {
        let b = inner(y, &q) / curvature;
        q.iter_mut().zip(s).for_each(|(q, s)| *q += (c - b) * s);
    }
    q.iter_mut().for_each(|q| *q = -*q);
    q
}
