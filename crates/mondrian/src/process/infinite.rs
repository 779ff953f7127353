//! The process on all of ℝ^D, computed where queried.
//!
//! It is the limit of the ladder of boxes (docs/design.md, "Extending the box"): the process on one rung, restricted to
//! the rung below, is the process there, so a result never depends on the rung it was computed from.

use serde::{Deserialize, Serialize};

use crate::process::mondrian::in_coordinates;
use crate::process::{Bounds, BuiltInMeasure, Cell, Measure, Mondrian, NodeKey, Partition, Side};
use crate::{Error, Lifetime, Points, Result};

/// A Mondrian process on all of ℝ^D up to a lifetime. Two windows agree where they overlap.
///
/// ```
/// use mondrian::{Lifetime, Points, process::InfiniteMondrian};
/// let plane = InfiniteMondrian::new(2, Lifetime::new(1.0)?, 3)?;
/// let near = plane.restrict(&[0.0, 0.0], &[2.0, 2.0])?;
/// let wide = plane.restrict(&[-50.0, -9.0], &[2.0, 70.0])?;
/// assert!(wide.restrict(&[0.0, 0.0], &[2.0, 2.0])?.is_same_sample(&near));
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InfiniteMondrian<M = BuiltInMeasure> {
    n_dims: usize,
    lifetime: Lifetime,
    key: NodeKey,
    measure: M,
}

impl InfiniteMondrian {
    /// The process on ℝ^`n_dims` under plain length.
    ///
    /// # Errors
    /// [`Error::Empty`] without dimensions.
    pub fn new(n_dims: usize, lifetime: Lifetime, seed: u64) -> Result<Self> {
        Self::with_measure(n_dims, lifetime, seed, BuiltInMeasure::Uniform)
    }
}

impl<M: Measure + Clone> InfiniteMondrian<M> {
    /// The process under a given measure.
    ///
    /// # Errors
    /// [`Error::Empty`] without dimensions, [`Error::LengthMismatch`] if the measure is for another number of them.
    pub fn with_measure(n_dims: usize, lifetime: Lifetime, seed: u64, measure: M) -> Result<Self> {
        if n_dims == 0 {
            return Err(Error::Empty { what: "the space", rows: 0, columns: 0 });
        }
        measure.check_dims(n_dims)?;
        Ok(Self { n_dims, lifetime, key: NodeKey::root(seed, 0), measure })
    }

    /// Number of dimensions D.
    pub fn n_dims(&self) -> usize {
        self.n_dims
    }

    /// The lifetime λ.
    pub fn lifetime(&self) -> Lifetime {
        self.lifetime
    }

    /// The process in a box, for all times.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], and [`Error::TooLarge`] beyond the highest rung of the ladder.
    pub fn process(&self, window: Bounds) -> Result<Mondrian<M>> {
        let boxes = self.ladder_holding(&in_coordinates(&self.measure, &window)?)?;
        Mondrian::seen_through(window, self.measure.clone(), boxes, self.key)
    }

    /// The restriction to a box: a sample of MP(λ, Θ).
    ///
    /// # Errors
    /// Those of [`Bounds::new`], [`InfiniteMondrian::process`] and [`Mondrian::until`].
    pub fn restrict(&self, lower: &[f64], upper: &[f64]) -> Result<Partition<M>> {
        self.process(Bounds::new(lower, upper)?)?.until(self.lifetime)
    }

    /// A name for each point's cell: equal names, equal cells, in every call.
    ///
    /// Names are 64 bits of the cell's key: among n cells two share one with probability n²/2^65.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] for the wrong width, [`Error::TooLarge`] beyond the highest rung.
    pub fn cell_of(&self, points: Points<'_>) -> Result<Vec<u64>> {
        points.check_width(self.n_dims)?;
        let Some(bounds) = Bounds::of_points(points) else { return Ok(Vec::new()) };
        let boxes = self.ladder_holding(&in_coordinates(&self.measure, &bounds)?)?;
        let mut cell = Cell::root(&boxes, self.key);
        let mut names = Vec::with_capacity(points.n_rows());
        for row in 0..points.n_rows() {
            while let Some(cut) = &cell.next_cut_until(self.lifetime.get()) {
                let dim = cut.dim as usize;
                let u = self.measure.coordinate(dim, points.get(row, dim));
                cell.enter(cut, Side::of(u, cut.location));
            }
            names.push((cell.innermost_key().to_bits() >> 64) as u64);
            while cell.depth() > 0 {
                cell.leave();
            }
        }
        Ok(names)
    }

    /// The ladder from the unit box, in measure coordinates, up to the first rung that holds `bounds`.
    fn ladder_holding(&self, bounds: &Bounds) -> Result<Vec<Bounds>> {
        // Before the unit box is made: a space may have more dimensions than a box fits into memory with.
        if bounds.n_dims() != self.n_dims {
            return Err(Error::LengthMismatch { what: "dimensions", expected: self.n_dims, found: bounds.n_dims() });
        }
        let first = Bounds::new(&vec![0.0; self.n_dims], &vec![1.0; self.n_dims])?;
        (0..=first.rung_holding(bounds)?).map(|rung| first.widened(rung)).collect()
    }
}
