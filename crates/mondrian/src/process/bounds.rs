//! Axis-aligned boxes with finite sides, and the ladder of ever larger ones.

use serde::{Deserialize, Serialize};

use crate::simd::vectorise;
use crate::{Error, Points, Result};

/// The highest rung of the [ladder](Bounds::widened): beyond it a box would be 2^64 times the first.
pub const MAX_RUNG: u32 = 64;

/// The unit of a side that holds one value, as a share of that value.
const UNIT_SHARE: f64 = 1.0 / 1024.0;

/// A box Θ = [a₁, b₁] × … × [a_D, b_D] with finite bounds, a_d ≤ b_d.
///
/// ```
/// use mondrian::process::Bounds;
/// let bounds = Bounds::new(&[0.0, -1.0], &[1.0, 2.0])?;
/// assert_eq!(bounds.linear_dimension(), 4.0);
/// assert!(bounds.contains(&[0.5, 2.0]));
/// assert!(Bounds::new(&[1.0], &[0.0]).is_err());
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "(Vec<f64>, Vec<f64>)", into = "(Vec<f64>, Vec<f64>)")]
pub struct Bounds {
    lower: Vec<f64>,
    upper: Vec<f64>,
}

impl Bounds {
    /// Checks that `lower` and `upper` are the corners of a box.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::Empty`] without dimensions, [`Error::NotFinite`], [`Error::InvertedBox`].
    pub fn new(lower: &[f64], upper: &[f64]) -> Result<Self> {
        if lower.len() != upper.len() {
            return Err(Error::LengthMismatch { what: "upper bounds", expected: lower.len(), found: upper.len() });
        }
        if lower.is_empty() {
            return Err(Error::Empty { what: "the box", rows: 0, columns: 0 });
        }
        for (dim, (&a, &b)) in lower.iter().zip(upper).enumerate() {
            for (what, value) in [("lower", a), ("upper", b)] {
                if !value.is_finite() {
                    return Err(Error::NotFinite { what, row: 0, column: dim, value });
                }
            }
            if a > b {
                return Err(Error::InvertedBox { dim, lower: a, upper: b });
            }
            if !(b - a).is_finite() {
                return Err(Error::TooLarge { what: "the length of a side", expected: f64::INFINITY, limit: f64::MAX });
            }
        }
        Ok(Self { lower: lower.to_vec(), upper: upper.to_vec() })
    }

    /// The smallest box that holds all points; `None` without points.
    pub fn of_points(points: Points<'_>) -> Option<Self> {
        if points.n_rows() == 0 {
            return None;
        }
        let n_dims = points.n_columns();
        let (mut lower, mut upper) = (vec![f64::INFINITY; n_dims], vec![f64::NEG_INFINITY; n_dims]);
        for row in 0..points.n_rows() {
            // Row by row: a wide table would be read from memory once a column otherwise.
            let Some(x) = points.row_slice(row) else {
                return Some(Self::of_columns(points));
            };
            for (dim, x) in x.iter().enumerate() {
                lower[dim] = lower[dim].min(*x);
                upper[dim] = upper[dim].max(*x);
            }
        }
        Some(Self { lower, upper })
    }

    fn of_columns(points: Points<'_>) -> Self {
        let fold = |f: fn(f64, f64) -> f64, start: f64| -> Vec<f64> {
            (0..points.n_columns()).map(|dim| points.column(dim).fold(start, f)).collect()
        };
        Self { lower: fold(f64::min, f64::INFINITY), upper: fold(f64::max, f64::NEG_INFINITY) }
    }

    /// Lower bounds a_d.
    pub fn lower(&self) -> &[f64] {
        &self.lower
    }

    /// Upper bounds b_d.
    pub fn upper(&self) -> &[f64] {
        &self.upper
    }

    /// Number of dimensions D.
    pub fn n_dims(&self) -> usize {
        self.lower.len()
    }

    /// The lengths of the sides.
    pub fn lengths(&self) -> impl ExactSizeIterator<Item = f64> + '_ {
        self.lower.iter().zip(&self.upper).map(|(a, b)| b - a)
    }

    /// The linear dimension: the sum of the sides (report, chapter 1).
    pub fn linear_dimension(&self) -> f64 {
        self.lengths().sum()
    }

    /// The volume: the product of the sides.
    pub fn volume(&self) -> f64 {
        self.lengths().product()
    }

    /// Whether a point lies in the box, borders included.
    pub fn contains(&self, point: &[f64]) -> bool {
        point.len() == self.n_dims()
            && point.iter().zip(self.lower.iter().zip(&self.upper)).all(|(x, (a, b))| a <= x && x <= b)
    }

    /// Whether it holds all points of a row-major table of finite numbers.
    pub(crate) fn contains_all(&self, points: &[f64]) -> bool {
        let is_outside = |points: &[f64]| {
            let sides = points.iter().zip(self.lower.iter().zip(&self.upper));
            // Words as wide as the numbers, so that vectors of both go together.
            sides.fold(0, |out, (x, (a, b))| out | u64::from(x < a) | u64::from(x > b))
        };
        let is_one_outside = vectorise(
            #[inline(always)]
            || points.chunks_exact(self.n_dims()).fold(0, |any, x| any | is_outside(x)) != 0,
        );
        points.len().is_multiple_of(self.n_dims()) && !is_one_outside
    }

    /// Refuses a box that does not lie inside this one.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] or [`Error::NotInside`] with the first offending dimension.
    pub fn check_holds(&self, inner: &Self) -> Result<()> {
        if inner.n_dims() != self.n_dims() {
            return Err(Error::LengthMismatch { what: "dimensions", expected: self.n_dims(), found: inner.n_dims() });
        }
        for dim in 0..self.n_dims() {
            if inner.lower[dim] < self.lower[dim] || inner.upper[dim] > self.upper[dim] {
                return Err(Error::NotInside {
                    dim,
                    inner_lower: inner.lower[dim],
                    inner_upper: inner.upper[dim],
                    outer_lower: self.lower[dim],
                    outer_upper: self.upper[dim],
                });
            }
        }
        Ok(())
    }

    /// Rung `rung` of the ladder: this box widened 2^rung times about its centre.
    ///
    /// A side that holds one value, or two that are neighbours among the floats, has no length to widen and counts as one
    /// of its unit: 1, or 2^-10 of its magnitude where that is more.
    ///
    /// Rung 0 is the box itself. Every rung holds the one before it (docs/design.md, "Extending the box").
    ///
    /// # Errors
    /// [`Error::TooLarge`] above rung 64 or where a bound would overflow.
    pub fn widened(&self, rung: u32) -> Result<Self> {
        self.widened_by(rung, |a, b| if a.next_up() < b { b - a } else { Self::unit(a.abs().max(b.abs())) })
    }

    /// The unit of a side that holds one value: 1, or 2^-10 of its magnitude where that is more.
    pub(crate) fn unit(value: f64) -> f64 {
        (value.abs() * UNIT_SHARE).max(1.0)
    }

    /// The same as model files of version 1 had it: a side of two neighbouring floats is as long as it is.
    pub(crate) fn widened_in_version_1(&self, rung: u32) -> Result<Self> {
        self.widened_by(rung, |a, b| if b > a { b - a } else { 1.0 })
    }

    fn widened_by(&self, rung: u32, length: impl Fn(f64, f64) -> f64) -> Result<Self> {
        if rung == 0 {
            return Ok(self.clone());
        }
        let too_large = Error::TooLarge {
            what: "widenings of the root box, each to twice its size, for a row far outside",
            expected: f64::from(rung),
            limit: f64::from(MAX_RUNG),
        };
        if rung > MAX_RUNG {
            return Err(too_large);
        }
        let factor = libm::ldexp(1.0, rung as i32);
        let (mut lower, mut upper) = (Vec::new(), Vec::new());
        for (&a, &b) in self.lower.iter().zip(&self.upper) {
            let margin = length(a, b) / 2.0 * (factor - 1.0);
            // `min` and `max` keep the nesting where the margin is lost to rounding.
            let (x, y) = ((a - margin).min(a), (b + margin).max(b));
            if !(y - x).is_finite() {
                return Err(too_large);
            }
            lower.push(x);
            upper.push(y);
        }
        Ok(Self { lower, upper })
    }

    /// The lowest rung of the ladder that holds the box `other`.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if none does, [`Error::LengthMismatch`] for another number of dimensions.
    pub fn rung_holding(&self, other: &Self) -> Result<u32> {
        other.lowest_rung(|rung| self.widened(rung))
    }

    /// The lowest rung of a ladder that holds this box.
    pub(crate) fn lowest_rung(&self, widened: impl Fn(u32) -> Result<Self>) -> Result<u32> {
        let mut rung = 0;
        loop {
            match widened(rung)?.check_holds(self) {
                Ok(()) => return Ok(rung),
                Err(Error::NotInside { .. }) => rung += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

impl TryFrom<(Vec<f64>, Vec<f64>)> for Bounds {
    type Error = Error;

    fn try_from((lower, upper): (Vec<f64>, Vec<f64>)) -> Result<Self> {
        Self::new(&lower, &upper)
    }
}

impl From<Bounds> for (Vec<f64>, Vec<f64>) {
    fn from(bounds: Bounds) -> Self {
        (bounds.lower, bounds.upper)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_is_no_box() {
        assert_eq!(
            Bounds::new(&[0.0, 2.0], &[1.0, 1.0]).unwrap_err(),
            Error::InvertedBox { dim: 1, lower: 2.0, upper: 1.0 }
        );
        assert!(matches!(Bounds::new(&[f64::NAN], &[1.0]), Err(Error::NotFinite { what: "lower", .. })));
        assert!(matches!(Bounds::new(&[0.0], &[f64::INFINITY]), Err(Error::NotFinite { what: "upper", .. })));
        assert!(matches!(Bounds::new(&[f64::MIN], &[f64::MAX]), Err(Error::TooLarge { .. })));
        assert!(matches!(Bounds::new(&[0.0], &[]), Err(Error::LengthMismatch { .. })));
        assert!(matches!(Bounds::new(&[], &[]), Err(Error::Empty { .. })));
        assert!(Bounds::new(&[1.0], &[1.0]).is_ok());
        assert!(serde_json::from_str::<Bounds>("[[1.0],[0.0]]").is_err());
        assert_eq!(serde_json::from_str::<Bounds>("[[0.0],[1.0]]").unwrap(), Bounds::new(&[0.0], &[1.0]).unwrap());
    }

    #[test]
    fn rungs_nest_and_reach() {
        let first = Bounds::new(&[0.0, 5.0], &[1.0, 5.0]).unwrap();
        assert_eq!(first.widened(1).unwrap(), Bounds::new(&[-0.5, 4.5], &[1.5, 5.5]).unwrap());
        for rung in 0..20 {
            first.widened(rung + 1).unwrap().check_holds(&first.widened(rung).unwrap()).unwrap();
        }
        // One float wide, as the root of rows that share a value is: its unit counts, which is larger where floats are rare.
        for (value, unit) in [(0.0, 1.0), (5.0, 1.0), (-4096.0, 4.0), (1e300, 1e300 / 1024.0)] {
            let thin = Bounds::new(&[f64::next_down(value)], &[value]).unwrap();
            let wide = thin.widened(1).unwrap();
            assert!((wide.linear_dimension() / unit - 1.0).abs() < 1e-9, "{value}");
            assert!(thin.widened_in_version_1(1).unwrap().linear_dimension() < 1e-9 * unit);
        }
        let far = Bounds::new(&[0.0, -100.0], &[40.0, 5.0]).unwrap();
        let rung = first.rung_holding(&far).unwrap();
        assert!(first.widened(rung - 1).unwrap().check_holds(&far).is_err());
        let absurd = Bounds::new(&[0.0, 0.0], &[1e300, 1.0]).unwrap();
        assert!(matches!(first.rung_holding(&absurd), Err(Error::TooLarge { .. })));
    }
}
