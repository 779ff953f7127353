//! The first rows of a stream, which fix the root box and the scale of the inputs.
//!
//! A stream that starts with one row has neither. So its first rows are kept in raw units, and whenever their number has doubled
//! the forest is fitted again to all of them, on their box and in their scale. After `warm_up` rows both are fixed. The fits cost
//! together about as much as one fit of all these rows.
//!
//! The box is that of the rows with a margin. A wider box changes nothing inside (docs/design.md, "Extending the box"), but every
//! cell that reaches beyond the first box has several clocks, which cost more than a few cuts in the margin.

use serde::{Deserialize, Serialize};

use crate::forest::retention::first_rows;
use crate::forest::{ForestParams, LifetimeChoice, MeasureChoice, WeightsChoice};
use crate::model_file::{Archive, ModelFileError};
use crate::process::Bounds;
use crate::select::split::gather;
use crate::{Points, Result};

/// The margin on a side, over the distance from the outermost value to the one that [`TAIL`] of the rows lie beyond. One and a half
/// is 2.5 standard deviations beyond the outermost of 1024 Gaussian numbers, and a tenth of the range of uniform ones; wider margins cost
/// cuts that separate nothing, 2.0 about 3 % of the time per row.
const MARGIN: f64 = 1.5;

/// One row in so many lies in the tail that a margin is measured by.
const TAIL: usize = 16;

/// The box around fewer rows has room for the next ones.
const FEW_ROWS: usize = 1000;

/// The first box of a stream is put around all rows again until there are so many times the rows of the warm-up.
const OPEN_FOR: usize = 16;

/// And once there is one row more for so many that it was put around before.
const MORE_ROWS: usize = 4;

/// Rows to append to a warm-up.
pub(crate) struct FirstRows<'a> {
    /// Inputs, raw units.
    pub(crate) points: Points<'a>,
    /// Targets or classes, row-major.
    pub(crate) values: &'a [f64],
    /// Weights, if they have any.
    pub(crate) weights: Option<&'a [f64]>,
    /// Whether `max_rows` hashes the values with the inputs.
    pub(crate) are_values_hashed: bool,
}

/// The rows of a stream until box and scale are fixed.
#[derive(Debug, Clone)]
pub(crate) struct WarmUp {
    /// How many rows fix box and scale.
    limit: usize,
    n_dims: usize,
    /// Rows learned, those included that the forest holds no more.
    n_learned: usize,
    /// Inputs of the rows held, row-major in raw units.
    x: Vec<f64>,
    /// Their targets or classes, row-major.
    values: Vec<f64>,
    /// Their weights, if they have any.
    weights: Option<Vec<f64>>,
}

impl WarmUp {
    /// The warm-up that parameters ask for, without rows yet; none where nothing is left to fix.
    pub(crate) fn of(params: &ForestParams, n_dims: usize) -> Option<Self> {
        let is_scaled = match params.weights {
            WeightsChoice::Given(_) | WeightsChoice::Raw => false,
            WeightsChoice::Deviation => true,
            WeightsChoice::Auto => !matches!(params.lifetime, LifetimeChoice::Value(lifetime) if lifetime.is_finite()),
        };
        let limit = params.warm_up?;
        if params.bounds.is_some() && !is_scaled && params.measure != MeasureChoice::Quantile {
            return None;
        }
        Some(Self { limit, n_dims, n_learned: 0, x: Vec::new(), values: Vec::new(), weights: None })
    }

    /// Whether so many more rows at least double the number of rows, or end the warm-up.
    pub(crate) fn is_due(&self, n_more: usize) -> bool {
        let n_learned = self.n_learned + n_more;
        n_learned >= self.limit || n_learned.checked_ilog2() > self.n_learned.checked_ilog2()
    }

    /// Appends rows, and drops those that the window or the sample of the parameters does not hold.
    ///
    /// # Errors
    /// [`crate::Error::NoWeights`] with weights where there is such a rule.
    pub(crate) fn push(&mut self, params: &ForestParams, rows: &FirstRows<'_>) -> Result<()> {
        let n_before = self.n_rows();
        self.x.extend_from_slice(&rows.points.as_row_major());
        self.values.extend_from_slice(rows.values);
        if rows.weights.is_some() || self.weights.is_some() {
            let all = self.weights.get_or_insert_with(|| vec![1.0; n_before]);
            all.extend_from_slice(rows.weights.unwrap_or_default());
            all.resize(n_before + rows.points.n_rows(), 1.0);
        }
        self.n_learned += rows.points.n_rows();
        let hashed = if rows.are_values_hashed { &self.values[..] } else { &[] };
        if let Some(held) = first_rows(params, self.points(), hashed, self.weights())? {
            (self.x, self.values) = gather(self.points(), &self.values, &held);
        }
        Ok(())
    }

    /// Whether box and scale are fixed.
    pub(crate) fn is_over(&self) -> bool {
        self.n_learned >= self.limit
    }

    fn n_rows(&self) -> usize {
        self.x.len() / self.n_dims
    }

    /// The inputs of the rows held.
    pub(crate) fn points(&self) -> Points<'_> {
        Points::of_checked(&self.x, self.n_dims)
    }

    /// Their targets or classes.
    pub(crate) fn values(&self) -> &[f64] {
        &self.values
    }

    /// How many values a row has; 0 without rows.
    pub(crate) fn n_values(&self) -> usize {
        self.values.len() / self.n_rows().max(1)
    }

    /// Their weights, if they have any.
    pub(crate) fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    /// Removes the last row with these inputs and values, if there is one.
    pub(crate) fn remove(&mut self, x: &[f64], values: &[f64]) {
        let (d, t) = (self.n_dims, values.len());
        let is_same = |row: &usize| self.x[row * d..][..d] == *x && self.values[row * t..][..t] == *values;
        let Some(row) = (0..self.n_rows()).rev().find(is_same) else { return };
        self.x.drain(row * d..(row + 1) * d);
        self.values.drain(row * t..(row + 1) * t);
        if let Some(weights) = &mut self.weights {
            weights.remove(row);
        }
    }

    /// Replaces every value.
    pub(crate) fn map_values(&mut self, map: impl Fn(f64) -> f64) {
        self.values.iter_mut().for_each(|value| *value = map(*value));
    }

    /// Writes the rows into a model's archive.
    ///
    /// # Errors
    /// [`ModelFileError`].
    pub(crate) fn write_to(&self, archive: &mut Archive) -> Result<()> {
        archive.set_params("warm_up", &(self.limit, self.n_learned))?;
        archive.insert("warm_up/rows", &[self.n_rows(), self.n_dims], self.x.clone())?;
        archive.insert("warm_up/values", &[self.n_rows(), self.n_values()], self.values.clone())?;
        archive.insert_vec("warm_up/weights", self.weights.clone().unwrap_or_default())
    }

    /// Reads them for a forest of so many rows; none if the archive has no warm-up.
    ///
    /// # Errors
    /// [`ModelFileError`] where they do not fit together.
    pub(crate) fn read_from(archive: &Archive, n_dims: usize, n_rows: usize) -> Result<Option<Self>> {
        if !archive.has_params("warm_up") {
            return Ok(None);
        }
        let inconsistent = || ModelFileError::Inconsistent { what: "the first rows of a stream" };
        let (limit, n_learned): (usize, usize) = archive.params("warm_up")?;
        let [n, n_values] = *archive.array("warm_up/values")?.shape() else { return Err(inconsistent().into()) };
        let x = archive.matrix_slice::<f64>("warm_up/rows", &[n_rows, n_dims])?.to_vec();
        let values = archive.matrix_slice::<f64>("warm_up/values", &[n_rows, n_values])?.to_vec();
        let weights: Vec<f64> = archive.vec("warm_up/weights")?;
        let are_weights = weights.is_empty() || weights.len() == n && weights.iter().all(|w| *w > 0.0 && w.is_finite());
        let is_finite = x.iter().chain(&values).all(|x| x.is_finite());
        if !are_weights || !is_finite || n > n_learned || n_learned >= limit {
            return Err(inconsistent().into());
        }
        let weights = (!weights.is_empty()).then_some(weights);
        Ok(Some(Self { limit, n_dims, n_learned, x, values, weights }))
    }
}

/// The first box of a stream that is not fixed for good: what rows it was put around.
///
/// A wider rung of the ladder makes every row learned afterwards cost more, since most cells reach beyond the first box. So while rows
/// are few and come from outside, as those of a stream in order of time do, the first box is put around all of them instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FirstBox {
    /// How many rows it was put around.
    n_rows: usize,
    /// How many rows fix it.
    limit: usize,
}

impl FirstBox {
    /// The box that is put around so many first rows; none where it was given or there is no warm-up.
    pub(crate) fn of(params: &ForestParams, n_rows: usize) -> Option<Self> {
        let limit = params.warm_up?.saturating_mul(OPEN_FOR);
        params.bounds.is_none().then_some(Self { n_rows, limit })
    }

    /// Whether it is put around all of so many rows if one of them lies outside.
    pub(crate) fn is_due(self, n_rows: usize) -> bool {
        n_rows <= self.limit && n_rows >= self.n_rows.saturating_add(self.n_rows.div_ceil(MORE_ROWS))
    }

    /// The box that was put around so many rows.
    pub(crate) fn around(self, n_rows: usize) -> Self {
        Self { n_rows, ..self }
    }
}

/// The root box of the first rows of a stream: theirs, with a margin that follows their tails; none without rows.
///
/// A column with one value gets its unit on both sides, as the [ladder](Bounds::widened) would give it.
pub(crate) fn box_with_margins(points: Points<'_>) -> Option<Bounds> {
    let tight = Bounds::of_points(points)?;
    let n = points.n_rows();
    let (mut lower, mut upper) = (Vec::new(), Vec::new());
    for (dim, (&a, &b)) in tight.lower().iter().zip(tight.upper()).enumerate() {
        let (below, above) = if a < b {
            let mut values: Vec<f64> = points.column(dim).collect();
            let mut ranked = |rank: usize| *values.select_nth_unstable_by(rank, f64::total_cmp).1;
            let tail = n.div_ceil(TAIL).min(n - 1);
            (MARGIN * (ranked(tail) - a), MARGIN * (b - ranked(n - 1 - tail)))
        } else {
            (Bounds::unit(a), Bounds::unit(b))
        };
        lower.push(a - below);
        upper.push(b + above);
    }
    Some(Bounds::new(&lower, &upper).unwrap_or(tight))
}

/// The box of the first rows of a stream, in their order: [wider](wider_box) where the second half has left the box of the first.
///
/// Around fewer than [`FEW_ROWS`] it has room for half as much again on each side: a box for so few rows is soon replaced, and the
/// next rows would leave it in some of many dimensions, which costs more than cuts that separate nothing.
pub(crate) fn stream_box(points: Points<'_>) -> Option<Bounds> {
    if points.n_rows() < FEW_ROWS {
        return box_with_room(points, |_, _| [0.5; 2]);
    }
    wider_box(points, &box_with_margins(points.rows(0..points.n_rows() / 2))?)
}

/// The box of the rows of a stream that have left a box: [with margins](box_with_margins), and with room for as much again on the
/// sides where they have left, so that a column that grows with time leaves it once while the number of rows doubles.
pub(crate) fn wider_box(points: Points<'_>, left: &Bounds) -> Option<Bounds> {
    box_with_room(points, |dim, tight| {
        let has_left = [tight.lower()[dim] <= left.lower()[dim], tight.upper()[dim] > left.upper()[dim]];
        has_left.map(|has_left| if has_left { 1.0 } else { 0.0 })
    })
}

/// The box of rows [with margins](box_with_margins), and with room on both sides of a dimension, in units of the length of the rows' box, if
/// that is more. None without rows.
fn box_with_room(points: Points<'_>, room: impl Fn(usize, &Bounds) -> [f64; 2]) -> Option<Bounds> {
    let (tight, wide) = (Bounds::of_points(points)?, box_with_margins(points)?);
    let (mut lower, mut upper) = (wide.lower().to_vec(), wide.upper().to_vec());
    for (dim, length) in tight.lengths().enumerate() {
        let [below, above] = room(dim, &tight);
        lower[dim] = lower[dim].min(tight.lower()[dim] - below * length);
        upper[dim] = upper[dim].max(tight.upper()[dim] + above * length);
    }
    Some(Bounds::new(&lower, &upper).unwrap_or(wide))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margins_follow_the_tails() {
        // Column 0: 0, 1, …, 99, where seven of a hundred lie beyond 92; column 1: one value.
        let x: Vec<f64> = (0..100).flat_map(|i| [f64::from(i), 2048.0]).collect();
        let found = box_with_margins(Points::row_major(&x, 2).unwrap()).unwrap();
        assert_eq!((found.lower(), found.upper()), (&[-10.5, 2046.0][..], &[109.5, 2050.0][..]));
        let far = [-1e308, 1e308, 0.0];
        let found = box_with_margins(Points::row_major(&far[..2], 1).unwrap());
        assert!(found.is_none() || found.unwrap().contains(&[1e307]));
        assert_eq!(box_with_margins(Points::row_major(&far[2..], 1).unwrap()).unwrap().upper(), [1.0]);
        assert!(box_with_margins(Points::row_major(&[], 1).unwrap()).is_none());
    }

    #[test]
    fn a_stream_has_room_where_it_goes() {
        let rows = |n: u32| -> Vec<f64> { (0..n).flat_map(|i| [f64::from(i), f64::from(i % 50)]).collect() };
        // Few rows: half their range on each side. The first column grows, the second comes again.
        let few = rows(100);
        let found = stream_box(Points::row_major(&few, 2).unwrap()).unwrap();
        assert_eq!((found.lower(), found.upper()), (&[-49.5, -24.5][..], &[148.5, 73.5][..]));
        // Many: their whole range above in the first column, which the second half has left, and else the margins of all.
        let many = rows(2000);
        let points = Points::row_major(&many, 2).unwrap();
        let (found, margins) = (stream_box(points).unwrap(), box_with_margins(points).unwrap());
        assert_eq!(found.upper(), [2.0 * 1999.0, margins.upper()[1]]);
        assert_eq!(found.lower(), margins.lower());
        // A box that overflows is left out.
        let far = [-1e308, 0.0, 7e307, 0.0];
        let found = wider_box(Points::row_major(&far, 2).unwrap(), &Bounds::new(&[0.0; 2], &[1.0; 2]).unwrap());
        assert!(found.is_none_or(|found| found.lengths().all(f64::is_finite)));
        assert!(stream_box(Points::row_major(&[], 2).unwrap()).is_none());
    }

    /// Rows whose target is their input.
    fn rows(x: &[f64]) -> FirstRows<'_> {
        FirstRows { points: Points::row_major(x, 1).unwrap(), values: x, weights: None, are_values_hashed: true }
    }

    #[test]
    fn a_fit_is_due_when_rows_have_doubled() {
        let params = ForestParams { warm_up: Some(20), ..ForestParams::default() };
        let mut warm_up = WarmUp::of(&params, 1).unwrap();
        let mut due = Vec::new();
        for i in 0..20 {
            if warm_up.is_due(1) {
                due.push(i + 1);
            }
            warm_up.push(&params, &rows(&[f64::from(i)])).unwrap();
        }
        assert_eq!(due, [1, 2, 4, 8, 16, 20]);
        assert!(warm_up.is_over());
        let windowed = ForestParams { window: Some(3), ..params };
        let x: Vec<f64> = (0..10).map(f64::from).collect();
        let mut held = WarmUp::of(&windowed, 1).unwrap();
        held.push(&windowed, &rows(&x)).unwrap();
        assert_eq!((held.values(), held.n_learned), (&[7.0, 8.0, 9.0][..], 10));
        held.remove(&[8.0], &[8.0]);
        held.remove(&[0.0], &[0.0]);
        assert_eq!(held.values(), [7.0, 9.0]);
    }
}
