//! Measures of intervals of an axis (report, chapter 1, "Remarks").
//!
//! A measure without atoms on each axis is given by its distribution function F_d, up to a constant: the interval
//! [a, b] counts F_d(b) − F_d(a). Under F the process becomes the ordinary one, so everything inside this library
//! runs in *measure coordinates* u = F_d(x) with plain lengths, and a measure is just a pair of monotone maps.

use serde::{Deserialize, Serialize};

use crate::process::Bounds;
use crate::{Error, Points, Result};

/// A measure on each axis, as a map to coordinates in which it is plain length. Implement it for user-defined measures.
pub trait Measure {
    /// F_d(x): nondecreasing in x, finite for finite x. Equal values are never separated.
    fn coordinate(&self, dim: usize, x: f64) -> f64;

    /// An x with F_d(x) = u, for locations of cuts and borders of cells.
    fn place(&self, dim: usize, u: f64) -> f64;

    /// Refuses a number of dimensions that the measure is not made for.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`].
    fn check_dims(&self, n_dims: usize) -> Result<()>;
}

/// The measures that come with the library, and that a model can store.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BuiltInMeasure {
    /// Plain length on every axis.
    #[default]
    Uniform,
    /// Length times one factor per dimension: the same as one lifetime per dimension.
    Weighted(Weights),
    /// The distribution of the data on each axis.
    Quantile(QuantileMeasure),
}

impl BuiltInMeasure {
    /// The coordinates of rows of `n_dims` numbers, without negative zeros.
    pub(crate) fn coordinates(&self, rows: &[f64], n_dims: usize) -> Vec<f64> {
        let mut coordinates = Vec::with_capacity(rows.len());
        self.add_coordinates(rows, n_dims, &mut coordinates);
        coordinates
    }

    /// As [`BuiltInMeasure::coordinates`], added to others.
    pub(crate) fn add_coordinates(&self, rows: &[f64], n_dims: usize, coordinates: &mut Vec<f64>) {
        match self {
            Self::Uniform => coordinates.extend(rows.iter().map(|x| x + 0.0)),
            Self::Weighted(Weights(weights)) => {
                for row in rows.chunks_exact(n_dims) {
                    coordinates.extend(row.iter().zip(weights).map(|(x, weight)| weight * x + 0.0));
                }
            }
            Self::Quantile(_) => {
                for row in rows.chunks_exact(n_dims) {
                    coordinates.extend(row.iter().enumerate().map(|(dim, x)| self.coordinate(dim, *x) + 0.0));
                }
            }
        }
    }
}

impl Measure for BuiltInMeasure {
    #[inline]
    fn coordinate(&self, dim: usize, x: f64) -> f64 {
        match self {
            Self::Uniform => x,
            Self::Weighted(weights) => weights.0[dim] * x,
            Self::Quantile(quantile) => quantile.coordinate(dim, x),
        }
    }

    fn place(&self, dim: usize, u: f64) -> f64 {
        match self {
            Self::Uniform => u,
            Self::Weighted(weights) => weights.place(dim, u),
            Self::Quantile(quantile) => quantile.place(dim, u),
        }
    }

    fn check_dims(&self, n_dims: usize) -> Result<()> {
        let expected = match self {
            Self::Uniform => return Ok(()),
            Self::Weighted(weights) => weights.0.len(),
            Self::Quantile(quantile) => quantile.axes.len(),
        };
        if expected == n_dims {
            Ok(())
        } else {
            Err(Error::LengthMismatch { what: "dimensions of the measure", expected, found: n_dims })
        }
    }
}

/// One factor ≥ 0 per dimension. A dimension with factor zero is never cut.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<f64>", into = "Vec<f64>")]
pub struct Weights(Vec<f64>);

impl Weights {
    /// Checks the factors.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for one that is negative, infinite or NaN, [`Error::Empty`] without any.
    pub fn new(factors: Vec<f64>) -> Result<Self> {
        if factors.is_empty() {
            return Err(Error::Empty { what: "weights", rows: 0, columns: 0 });
        }
        match factors.iter().find(|w| !(**w >= 0.0 && w.is_finite())) {
            None => Ok(Self(factors)),
            Some(&value) => Err(Error::InvalidParameter { name: "weights", value, expected: "finite and ≥ 0" }),
        }
    }

    /// 1/standard deviation of each column; 1 for a constant column.
    ///
    /// # Errors
    /// [`Error::Empty`] without rows.
    pub fn inverse_deviation(points: Points<'_>) -> Result<Self> {
        let n = points.n_rows();
        if n == 0 {
            return Err(Error::Empty { what: "X", rows: 0, columns: points.n_columns() });
        }
        let factor = |dim| {
            let scale = points.column(dim).fold(0.0_f64, |m, x| m.max(x.abs()));
            if scale == 0.0 {
                return 1.0;
            }
            // Both sums are of scaled numbers, so that nothing overflows, and free of the rows' order.
            let mean = order_free_mean(points.column(dim).map(|x| x / scale)) * scale;
            let largest = points.column(dim).fold(0.0_f64, |m, x| m.max((x - mean).abs()));
            if largest == 0.0 {
                return 1.0;
            }
            let variance = order_free_mean(points.column(dim).map(|x| ((x - mean) / largest).powi(2)));
            let deviation = variance.sqrt() * largest;
            let weight = 1.0 / deviation;
            // A deviation at the level of rounding is a constant column.
            if deviation / scale > 1e-14 && weight.is_finite() && weight > 0.0 { weight } else { 1.0 }
        };
        Self::new((0..points.n_columns()).map(factor).collect())
    }

    /// The factors.
    pub fn factors(&self) -> &[f64] {
        &self.0
    }

    fn place(&self, dim: usize, u: f64) -> f64 {
        let w = self.0[dim];
        if w > 0.0 { u / w } else { 0.0 }
    }
}

/// The mean of numbers between −1 and 1, the same bits in any order: added up as integers of 2⁻⁶² each.
fn order_free_mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    const UNIT: f64 = (1_u64 << 62) as f64;
    let n = values.len() as f64;
    let sum: i128 = values.map(|x| (x * UNIT) as i128).sum();
    sum as f64 / UNIT / n
}

impl TryFrom<Vec<f64>> for Weights {
    type Error = Error;

    fn try_from(factors: Vec<f64>) -> Result<Self> {
        Self::new(factors)
    }
}

impl From<Weights> for Vec<f64> {
    fn from(weights: Weights) -> Self {
        weights.0
    }
}

/// The empirical distribution of each column: mid-ranks at distinct values, linear between, and beyond the data a slope
/// of total mass over range, so that far points still separate (docs/design.md, "Measures"). Or a user-defined table
/// ([`QuantileMeasure::of_knots`], [`QuantileMeasure::of_measure`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<QuantileAxis>", into = "Vec<QuantileAxis>")]
pub struct QuantileMeasure {
    axes: Vec<QuantileAxis>,
}

/// One axis of a [`QuantileMeasure`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuantileAxis {
    /// Distinct values, ascending.
    values: Vec<f64>,
    /// The measure's coordinate at each.
    coordinates: Vec<f64>,
    /// Mass per unit of length outside the data.
    slope: f64,
}

impl QuantileMeasure {
    /// The distribution of the rows of `points`, each axis times its weight.
    ///
    /// # Errors
    /// [`Error::Empty`] without rows, [`Error::LengthMismatch`] for the wrong number of weights.
    pub fn of_points(points: Points<'_>, weights: Option<&Weights>) -> Result<Self> {
        if points.n_rows() == 0 {
            return Err(Error::Empty { what: "X", rows: 0, columns: points.n_columns() });
        }
        if let Some(w) = weights {
            BuiltInMeasure::Weighted(w.clone()).check_dims(points.n_columns())?;
        }
        let axis = |dim| {
            let mut column: Vec<f64> = points.column(dim).collect();
            column.sort_unstable_by(f64::total_cmp);
            QuantileAxis::of_sorted(&column, weights.map_or(1.0, |w| w.0[dim]))
        };
        Ok(Self { axes: (0..points.n_columns()).map(axis).collect() })
    }

    /// A user-defined measure as a table: at least two knots (x, F(x)) per axis, x ascending and F not descending,
    /// linear in between. Beyond the knots F continues with its mean slope.
    ///
    /// ```
    /// use mondrian::process::QuantileMeasure;
    /// use mondrian::{Lifetime, MeasureChoice, Points, RegressionForest};
    /// // Cuts fall ten times as densely below 0.2 as above.
    /// let measure = QuantileMeasure::of_knots(&[vec![(0.0, 0.0), (0.2, 2.0), (1.0, 2.8)]])?;
    /// let x: Vec<f64> = (0..50).map(|i| f64::from(i) / 50.0).collect();
    /// let params = RegressionForest::params().lifetime(Lifetime::new(5.0)?).measure(MeasureChoice::Given(measure));
    /// let forest = params.fit(Points::row_major(&x, 1)?, &x)?;
    /// assert_eq!(forest.n_rows(), 50);
    /// # Ok::<(), mondrian::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Empty`] without an axis, [`Error::Incompatible`] for knots that are not such a table.
    pub fn of_knots(axes: &[Vec<(f64, f64)>]) -> Result<Self> {
        if axes.is_empty() {
            return Err(Error::Empty { what: "axes of the measure", rows: 0, columns: 0 });
        }
        let axis = |knots: &Vec<(f64, f64)>| {
            let (values, coordinates): (Vec<f64>, Vec<f64>) = knots.iter().map(|(x, f)| (x + 0.0, f + 0.0)).unzip();
            let ascends = values.len() >= 2 && values.windows(2).all(|pair| pair[0] < pair[1]);
            if !ascends {
                return Err(Error::Incompatible {
                    what: "knots of the measure (each axis needs at least two, with x finite and ascending), which",
                });
            }
            let last = values.len() - 1;
            let slope = (coordinates[last] - coordinates[0]) / (values[last] - values[0]);
            Ok(QuantileAxis { values, coordinates, slope })
        };
        Self::try_from(axes.iter().map(axis).collect::<Result<Vec<_>>>()?).map_err(|_| Error::Incompatible {
            what: "knots of the measure (x must be finite and ascend, F must be finite and must not descend), which",
        })
    }

    /// A table of any [`Measure`], with this many equidistant knots on each axis of a box: with it a model can use and
    /// store a measure given as a function.
    ///
    /// # Errors
    /// As [`QuantileMeasure::of_knots`], and [`Error::LengthMismatch`] for a measure of other dimensions.
    pub fn of_measure(measure: &dyn Measure, bounds: &Bounds, n_knots: usize) -> Result<Self> {
        measure.check_dims(bounds.n_dims())?;
        let last = n_knots.max(2) - 1;
        let axis = |dim: usize| {
            let (lower, upper) = (bounds.lower()[dim], bounds.upper()[dim]);
            // An axis without length is not cut anyway.
            let upper = if upper > lower { upper } else { lower + lower.abs().max(1.0) };
            let place = |at: usize| {
                let share = at as f64 / last as f64;
                if at == last { upper } else { lower * (1.0 - share) + upper * share }
            };
            (0..=last).map(|at| (place(at), measure.coordinate(dim, place(at)))).collect()
        };
        Self::of_knots(&(0..bounds.n_dims()).map(axis).collect::<Vec<_>>())
    }

    /// Each axis times its factor.
    pub(crate) fn weighted(&self, weights: &Weights) -> Result<Self> {
        BuiltInMeasure::Weighted(weights.clone()).check_dims(self.axes.len())?;
        let axis = |(axis, weight): (&QuantileAxis, &f64)| QuantileAxis {
            values: axis.values.clone(),
            coordinates: axis.coordinates.iter().map(|f| weight * f).collect(),
            slope: weight * axis.slope,
        };
        Ok(Self { axes: self.axes.iter().zip(weights.factors()).map(axis).collect() })
    }

    fn coordinate(&self, dim: usize, x: f64) -> f64 {
        self.axes[dim].coordinate(x)
    }

    fn place(&self, dim: usize, u: f64) -> f64 {
        self.axes[dim].place(u)
    }
}

impl TryFrom<Vec<QuantileAxis>> for QuantileMeasure {
    type Error = Error;

    fn try_from(axes: Vec<QuantileAxis>) -> Result<Self> {
        // A tampered file must not give a map that is not monotone.
        let ascending = |v: &[f64]| v.iter().all(|x| x.is_finite()) && v.windows(2).all(|p| p[0] <= p[1]);
        for axis in &axes {
            let sound = !axis.values.is_empty()
                && axis.values.len() == axis.coordinates.len()
                && ascending(&axis.values)
                && ascending(&axis.coordinates)
                && axis.slope >= 0.0
                && axis.slope.is_finite();
            if !sound {
                return Err(Error::Incompatible { what: "values and coordinates of a quantile axis" });
            }
        }
        Ok(Self { axes })
    }
}

impl From<QuantileMeasure> for Vec<QuantileAxis> {
    fn from(measure: QuantileMeasure) -> Self {
        measure.axes
    }
}

impl QuantileAxis {
    fn of_sorted(column: &[f64], weight: f64) -> Self {
        let n = column.len() as f64;
        let (mut values, mut coordinates) = (Vec::new(), Vec::new());
        let mut start = 0;
        while start < column.len() {
            let mut end = start + 1;
            // -0.0 and 0.0 are one value.
            while end < column.len() && column[end] == column[start] {
                end += 1;
            }
            values.push(column[start] + 0.0);
            coordinates.push(weight * ((start + end) as f64 / 2.0) / n);
            start = end;
        }
        let (range, mass) = (values[values.len() - 1] - values[0], coordinates[coordinates.len() - 1] - coordinates[0]);
        let slope = if range > 0.0 { mass / range } else { weight };
        Self { values, coordinates, slope }
    }

    fn coordinate(&self, x: f64) -> f64 {
        let last = self.values.len() - 1;
        let at = self.values.partition_point(|v| *v <= x);
        if at == 0 {
            self.coordinates[0] - (self.values[0] - x) * self.slope
        } else if at > last {
            self.coordinates[last] + (x - self.values[last]) * self.slope
        } else {
            between(x, &self.values[at - 1..=at], &self.coordinates[at - 1..=at])
        }
    }

    fn place(&self, u: f64) -> f64 {
        let last = self.values.len() - 1;
        let at = self.coordinates.partition_point(|c| *c <= u);
        let beyond = |d: f64| if self.slope > 0.0 { d / self.slope } else { 0.0 };
        if at == 0 {
            self.values[0] - beyond(self.coordinates[0] - u)
        } else if at > last {
            self.values[last] + beyond(u - self.coordinates[last])
        } else {
            between(u, &self.coordinates[at - 1..=at], &self.values[at - 1..=at])
        }
    }
}

/// Linear interpolation that stays between its ends, so that the map is monotone whatever the rounding.
fn between(x: f64, from: &[f64], to: &[f64]) -> f64 {
    let share = (x - from[0]) / (from[1] - from[0]);
    (to[0] + share * (to[1] - to[0])).clamp(to[0], to[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_mid_ranks_and_extend_linearly() {
        let data = [0.0, 1.0, 1.0, 4.0];
        let measure = QuantileMeasure::of_points(Points::row_major(&data, 1).unwrap(), None).unwrap();
        let found: Vec<f64> = [0.0, 1.0, 2.5, 4.0].iter().map(|x| measure.coordinate(0, *x)).collect();
        assert_eq!(found, [0.125, 0.5, 0.6875, 0.875]);
        assert_eq!(measure.coordinate(0, 8.0), 0.875 + 0.75);
        assert_eq!(measure.coordinate(0, -4.0), 0.125 - 0.75);
        for u in [-3.0, 0.125, 0.2, 0.5, 0.6, 0.875, 7.0] {
            assert!((measure.coordinate(0, measure.place(0, u)) - u).abs() < 1e-12);
        }
    }

    #[test]
    fn weights_follow_the_deviation_whatever_the_units() {
        let data = [1e300, 5.0, 1.0, -1e300, 5.0, 3.0];
        let weights = Weights::inverse_deviation(Points::row_major(&data, 3).unwrap()).unwrap();
        assert_eq!(weights.factors(), [1e-300, 1.0, 1.0]);
        assert!(matches!(Weights::new(vec![f64::NAN]), Err(Error::InvalidParameter { .. })));
        assert!(Weights::new(vec![]).is_err());
        let column: Vec<f64> = (0..97).map(|i| 1.7e9 + f64::from(i * i) / 7.0).collect();
        let reversed: Vec<f64> = column.iter().rev().copied().collect();
        let of = |data: &[f64]| Weights::inverse_deviation(Points::row_major(data, 1).unwrap()).unwrap();
        assert_eq!(of(&column), of(&reversed));
        let plain = (0..97).map(|i| f64::from(i * i) / 7.0);
        let mean = plain.clone().sum::<f64>() / 97.0;
        let deviation = (plain.map(|x| (x - mean).powi(2)).sum::<f64>() / 97.0).sqrt();
        assert!((of(&column).factors()[0] * deviation - 1.0).abs() < 1e-6);
    }

    #[test]
    fn a_table_is_the_function_that_it_was_made_from() {
        struct Squares;
        impl Measure for Squares {
            fn coordinate(&self, _: usize, x: f64) -> f64 {
                x.max(0.0) * x
            }
            fn place(&self, _: usize, u: f64) -> f64 {
                u.sqrt()
            }
            fn check_dims(&self, _: usize) -> Result<()> {
                Ok(())
            }
        }
        let bounds = Bounds::new(&[0.0, 2.0], &[4.0, 2.0]).unwrap();
        let table = QuantileMeasure::of_measure(&Squares, &bounds, 4001).unwrap();
        for x in [0.0, 0.5, 1.2345, 4.0] {
            assert!((table.coordinate(0, x) - x * x).abs() < 1e-6, "{x}");
            assert!((table.place(0, x * x) - x).abs() < 1e-3, "{x}");
        }
        assert_eq!(table.coordinate(0, 5.0), 20.0, "the mean slope beyond the knots");
        assert_eq!(table.weighted(&Weights::new(vec![0.5, 1.0]).unwrap()).unwrap().coordinate(0, 4.0), 8.0);
        let knots = |knots: &[(f64, f64)]| QuantileMeasure::of_knots(&[knots.to_vec()]);
        assert!(knots(&[(0.0, 1.0), (1.0, 1.0)]).is_ok());
        for bad in
            [&[(0.0, 1.0)][..], &[(0.0, 1.0), (0.0, 2.0)], &[(0.0, 1.0), (1.0, 0.5)], &[(0.0, 1.0), (f64::NAN, 2.0)]]
        {
            assert!(matches!(knots(bad), Err(Error::Incompatible { .. })), "{bad:?}");
        }
        assert!(QuantileMeasure::of_knots(&[]).is_err());
    }

    #[test]
    fn a_tampered_axis_is_refused() {
        let bad = r#"[{"values":[1.0,0.0],"coordinates":[0.0,1.0],"slope":1.0}]"#;
        assert!(serde_json::from_str::<QuantileMeasure>(bad).is_err());
    }
}
