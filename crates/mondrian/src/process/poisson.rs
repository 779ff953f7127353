//! The process in one dimension: a Poisson process (report, "Mondrian process in 1D").

use crate::process::tables::PoissonPoint;
use crate::process::{Bounds, Measure, Mondrian, NodeKey};
use crate::{Lifetime, Result};

/// A Poisson process on [a, b] of intensity `intensity` times the measure, in order of location, each point with the
/// time at which it appears while the intensity grows: those with time ≤ λ are the process of intensity λ.
///
/// The cuts of the one-dimensional Mondrian process of the same seed and measure, so a smaller intensity gives a subset.
///
/// ```
/// use mondrian::{Lifetime, process::{BuiltInMeasure, poisson}};
/// let points = poisson(0.0, 10.0, Lifetime::new(2.0)?, 1, BuiltInMeasure::Uniform)?;
/// let fewer = poisson(0.0, 10.0, Lifetime::new(1.0)?, 1, BuiltInMeasure::Uniform)?;
/// assert!(fewer.iter().eq(points.iter().filter(|point| point.time <= 1.0)));
/// # Ok::<(), mondrian::Error>(())
/// ```
///
/// # Errors
/// Those of [`Bounds::new`] and [`Mondrian::until`].
pub fn poisson<M: Measure + Clone>(
    a: f64,
    b: f64,
    intensity: Lifetime,
    seed: u64,
    measure: M,
) -> Result<Vec<PoissonPoint>> {
    let process = Mondrian::with_measure(Bounds::new(&[a], &[b])?, measure, NodeKey::root(seed, 0))?;
    process.until(intensity)?.crossings(&[a], 0)
}
