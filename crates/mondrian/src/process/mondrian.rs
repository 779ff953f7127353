//! The process MP(Θ) itself: nothing is sampled until it is queried.

use serde::{Deserialize, Serialize};

use crate::process::sampling::{Subtree, sample};
use crate::process::source::Source;
use crate::process::{Bounds, BuiltInMeasure, Measure, NodeKey, Partition};
use crate::{Error, Lifetime, Result};

/// The expected number of cells above which a full sample is refused: about 2 GB of them.
pub const MAX_EXPECTED_CELLS: f64 = 5e7;

/// A Mondrian process on a box, for all times (report, chapter 1). [`Mondrian::until`] samples it up to a lifetime.
///
/// A pure function of its key, box and measure, and of the restrictions and extensions made since: all queries, in any
/// order and on any number of threads, are parts of the same sample.
///
/// ```
/// use mondrian::{Lifetime, process::{Bounds, Mondrian, NodeKey}};
/// let process = Mondrian::new(Bounds::new(&[0.0, 0.0], &[1.0, 1.0])?, NodeKey::root(1, 0));
/// let (coarse, fine) = (process.until(Lifetime::new(2.0)?)?, process.until(Lifetime::new(5.0)?)?);
/// assert_eq!(fine.at(Lifetime::new(2.0)?)?, coarse);
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mondrian<M = BuiltInMeasure> {
    /// The box as the user gave it.
    bounds: Bounds,
    measure: M,
    /// The process in measure coordinates.
    source: Source,
}

impl Mondrian {
    /// The process on `bounds` under plain length.
    pub fn new(bounds: Bounds, key: NodeKey) -> Self {
        let source = Source::keyed(vec![bounds.clone()], key);
        Self { bounds, measure: BuiltInMeasure::Uniform, source }
    }
}

impl<M: Measure + Clone> Mondrian<M> {
    /// The process on `bounds` under a given measure.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the measure is for another number of dimensions; the errors of [`Bounds::new`] for
    /// the box in measure coordinates.
    pub fn with_measure(bounds: Bounds, measure: M, key: NodeKey) -> Result<Self> {
        let source = Source::keyed(vec![in_coordinates(&measure, &bounds)?], key);
        Ok(Self { bounds, measure, source })
    }

    /// The part of a process on nested boxes, in measure coordinates, that lies in `window`.
    pub(crate) fn seen_through(window: Bounds, measure: M, boxes: Vec<Bounds>, key: NodeKey) -> Result<Self> {
        let source = Source::keyed(boxes, key).restrict(in_coordinates(&measure, &window)?)?;
        Ok(Self { bounds: window, measure, source })
    }

    /// The box Θ.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// The measure of lengths.
    pub fn measure(&self) -> &M {
        &self.measure
    }

    /// The key that determines it.
    pub fn key(&self) -> NodeKey {
        self.source.key()
    }

    /// The linear dimension of the box under the measure: the rate of the first cut.
    pub fn linear_dimension(&self) -> f64 {
        self.source.bounds().linear_dimension()
    }

    /// The expected number of cells at `lifetime`: Π(1 + λℓ_d).
    pub fn expected_cells(&self, lifetime: Lifetime) -> f64 {
        // A side of length zero counts 1 even if the lifetime is infinite.
        let factor = |length: f64| if length > 0.0 { 1.0 + lifetime.get() * length } else { 1.0 };
        self.source.bounds().lengths().map(factor).product()
    }

    /// The partition at `lifetime`, all of it: a sample of MP(λ, Θ).
    ///
    /// Runs on the current rayon threads; the result does not depend on their number.
    ///
    /// # Errors
    /// [`Error::TooLarge`] with the expected number of cells if that is above 5·10⁷.
    pub fn until(&self, lifetime: Lifetime) -> Result<Partition<M>> {
        let expected = self.expected_cells(lifetime);
        if expected > MAX_EXPECTED_CELLS {
            return Err(Error::TooLarge { what: "cells of the partition", expected, limit: MAX_EXPECTED_CELLS });
        }
        let tree: Subtree = sample(self.source.walker(), lifetime.get(), expected)?;
        Ok(Partition::from_parts(self.clone(), lifetime, tree))
    }

    /// The restriction to a smaller box: the cuts that cross it, at the same times.
    ///
    /// A side of length zero makes it a slice, a process in the other dimensions (report, "Mondrian slices").
    ///
    /// # Errors
    /// [`Error::NotInside`], [`Error::LengthMismatch`].
    pub fn restrict(&self, window: Bounds) -> Result<Self> {
        self.bounds.check_holds(&window)?;
        let source = self.source.clone().restrict(in_coordinates(&self.measure, &window)?)?;
        Ok(Self { bounds: window, measure: self.measure.clone(), source })
    }

    /// The slice in some dimensions through a point, with the other coordinates of the point fixed, inside the box: by
    /// self-consistency a process in those dimensions.
    ///
    /// ```
    /// use mondrian::{Lifetime, process::{Bounds, Mondrian, NodeKey}};
    /// let process = Mondrian::new(Bounds::new(&[0.0; 3], &[1.0; 3])?, NodeKey::root(1, 0));
    /// let slice = process.slice(&[0, 2], &[0.0, 0.3, 0.0])?.until(Lifetime::new(4.0)?)?;
    /// assert!(slice.n_cuts() > 0 && slice.nodes().all(|node| node.dim != 1));
    /// # Ok::<(), mondrian::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the point has another number of dimensions, [`Error::NotFinite`].
    pub fn slice(&self, dims: &[usize], through: &[f64]) -> Result<Self> {
        let (lower, upper) = (self.bounds.lower(), self.bounds.upper());
        if through.len() != lower.len() {
            let (expected, found) = (lower.len(), through.len());
            return Err(Error::LengthMismatch { what: "coordinates of the point", expected, found });
        }
        let flat = |side: &[f64]| -> Vec<f64> {
            let held = |d: usize| through[d].clamp(lower[d], upper[d]);
            (0..side.len()).map(|d| if dims.contains(&d) { side[d] } else { held(d) }).collect()
        };
        self.restrict(Bounds::new(&flat(lower), &flat(upper))?)
    }

    /// An extension to a larger box: a process on `outer`, conditioned on this process. Restricting it gives back this
    /// one exactly. Each seed gives another extension; without a seed it is derived from the key of this process.
    ///
    /// # Errors
    /// [`Error::NotInside`] if `outer` does not contain the box, [`Error::LengthMismatch`], and [`Error::TooLarge`]
    /// after 64 extensions.
    pub fn extend(&self, outer: Bounds, seed: Option<u64>) -> Result<Self> {
        outer.check_holds(&self.bounds)?;
        let source = self.source.clone().extend(in_coordinates(&self.measure, &outer)?, seed)?;
        Ok(Self { bounds: outer, measure: self.measure.clone(), source })
    }

    /// Refuses a process read from a file whose box is not the one its measure and source give.
    pub(crate) fn check(&self) -> Result<()> {
        if in_coordinates(&self.measure, &self.bounds)? == *self.source.bounds() {
            Ok(())
        } else {
            Err(Error::Incompatible { what: "the box and its measure coordinates" })
        }
    }
}

/// A box in measure coordinates.
pub(crate) fn in_coordinates<M: Measure>(measure: &M, bounds: &Bounds) -> Result<Bounds> {
    measure.check_dims(bounds.n_dims())?;
    let map = |corner: &[f64]| -> Vec<f64> {
        corner.iter().enumerate().map(|(dim, x)| measure.coordinate(dim, *x)).collect()
    };
    Bounds::new(&map(bounds.lower()), &map(bounds.upper()))
}
