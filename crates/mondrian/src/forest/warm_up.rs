//! The first rows of a stream, which fix the root box and the scale of the inputs.
//!
//! A stream that starts with one row has neither. So its first rows are kept in raw units, and whenever their number has doubled
//! the forest is fitted again to all of them, on their box and in their scale. After `warm_up` rows the scale is fixed. The fits cost
//! together about as much as one fit of all these rows.
//!
//! The box is that of the rows with a margin, put around all of them again where later ones leave it ([`FirstBox`]). A wider box
//! changes nothing inside (docs/design.md, "Extending the box"), but every cell that reaches beyond the first box has several clocks,
//! which cost more than a few cuts in the margin.

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

/// The room, in lengths of the rows' box, on a side where they have moved on: a column that grows with time leaves its box once while
/// the number of rows grows to 2.5 times as many. Each time costs a fit of all rows, about a fifth of learning them one by one; more
/// room costs cuts that separate nothing. On flights2001, nycflights13 and made tables, 1, 2 and 3 were no better.
const ROOM: f64 = 1.5;

/// The box around fewer rows has room for the next ones.
const FEW_ROWS: usize = 1000;

/// The first box of a stream is put around all rows again once there is one row more for so many that it was put around before.
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

/// The first box of a stream: what rows it was put around.
///
/// A wider rung of the ladder makes every row learned afterwards cost more, since most cells reach beyond the first box. So where rows
/// come from outside, as those of a stream in order of time do, the first box is put around all of them instead.
#[derive(Debug, Clone)]
pub(crate) struct FirstBox {
    /// How many rows it was put around.
    n_rows: usize,
    /// Those rows' box [with margins](box_with_margins), in measure coordinates: sides that later rows are beyond have moved.
    margins: Bounds,
}

impl FirstBox {
    /// The box that was put around so many first rows, whose box with margins is given.
    pub(crate) fn of(n_rows: usize, margins: Bounds) -> Self {
        Self { n_rows, margins }
    }

    /// Whether it is put around all of so many rows if one of them lies outside.
    pub(crate) fn is_due(&self, n_rows: usize) -> bool {
        n_rows >= self.n_rows.saturating_add(self.n_rows.div_ceil(MORE_ROWS))
    }

    /// The box around so many rows at these points, with room on the sides that have moved since it was put around rows last; none where
    /// it overflows.
    pub(crate) fn around(&self, n_rows: usize, points: Points<'_>) -> Option<(Bounds, Self)> {
        let margins = box_with_margins(points)?;
        let bounds = with_room(points, &margins, |dim, tight| moved(tight, &self.margins, dim))?;
        Some((bounds, Self { n_rows, margins }))
    }

    /// Writes it into a model's archive.
    ///
    /// # Errors
    /// [`ModelFileError`].
    pub(crate) fn write_to(&self, archive: &mut Archive) -> Result<()> {
        archive.set_params("first_box", &RowsOfFirstBox { n_rows: self.n_rows })?;
        archive.insert_vec("first_box/lower", self.margins.lower().to_vec())?;
        archive.insert_vec("first_box/upper", self.margins.upper().to_vec())
    }

    /// Reads it for a forest whose first box is this; none if the archive has none. Files of before there were margins have that box for them.
    ///
    /// # Errors
    /// [`ModelFileError`] where its parts do not fit together.
    pub(crate) fn read_from(archive: &Archive, first_box: &Bounds) -> Result<Option<Self>> {
        if !archive.has_params("first_box") {
            return Ok(None);
        }
        let RowsOfFirstBox { n_rows } = archive.params("first_box")?;
        let margins = match archive.array("first_box/lower") {
            Ok(_) => Bounds::new(archive.slice("first_box/lower")?, archive.slice("first_box/upper")?)?,
            Err(_) => first_box.clone(),
        };
        if margins.n_dims() != first_box.n_dims() {
            return Err(ModelFileError::Inconsistent { what: "the first box of a stream" }.into());
        }
        Ok(Some(Self { n_rows, margins }))
    }
}

/// `params:first_box` of a model file.
#[derive(Serialize, Deserialize)]
struct RowsOfFirstBox {
    n_rows: usize,
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

/// The box of the first rows of a stream, in their order, and their box [with margins](box_with_margins): with room where the second
/// half has moved on from the first.
///
/// Around fewer than [`FEW_ROWS`] it has room for half as much again on each side: a box for so few rows is soon replaced, and the
/// next rows would leave it in some of many dimensions, which costs more than cuts that separate nothing.
pub(crate) fn stream_box(points: Points<'_>) -> Option<(Bounds, Bounds)> {
    let margins = box_with_margins(points)?;
    let found = if points.n_rows() < FEW_ROWS {
        with_room(points, &margins, |_, _| [0.5; 2])
    } else {
        let before = box_with_margins(points.rows(0..points.n_rows() / 2))?;
        with_room(points, &margins, |dim, tight| moved(tight, &before, dim))
    };
    Some((found.unwrap_or_else(|| margins.clone()), margins))
}

/// The room below and above rows that have moved on from a box with margins in a dimension.
fn moved(tight: &Bounds, before: &Bounds, dim: usize) -> [f64; 2] {
    let has_moved = [tight.lower()[dim] < before.lower()[dim], tight.upper()[dim] > before.upper()[dim]];
    has_moved.map(|has_moved| if has_moved { ROOM } else { 0.0 })
}

/// A box of rows with margins, and with room on both sides of a dimension, in units of the length of the rows' box, if that is more.
/// None where it overflows.
fn with_room(points: Points<'_>, margins: &Bounds, room: impl Fn(usize, &Bounds) -> [f64; 2]) -> Option<Bounds> {
    let tight = Bounds::of_points(points)?;
    let (mut lower, mut upper) = (margins.lower().to_vec(), margins.upper().to_vec());
    for (dim, length) in tight.lengths().enumerate() {
        let [below, above] = room(dim, &tight);
        lower[dim] = lower[dim].min(tight.lower()[dim] - below * length);
        upper[dim] = upper[dim].max(tight.upper()[dim] + above * length);
    }
    Bounds::new(&lower, &upper).ok()
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
        let (found, _) = stream_box(Points::row_major(&few, 2).unwrap()).unwrap();
        assert_eq!((found.lower(), found.upper()), (&[-49.5, -24.5][..], &[148.5, 73.5][..]));
        // Many: their range one and a half times above in the first column, where the second half has moved on, and else the margins of all.
        let many = rows(2000);
        let points = Points::row_major(&many, 2).unwrap();
        let (found, margins) = stream_box(points).unwrap();
        assert_eq!(margins, box_with_margins(points).unwrap());
        assert_eq!(found.upper(), [2.5 * 1999.0, margins.upper()[1]]);
        assert_eq!(found.lower(), margins.lower());
        assert!(stream_box(Points::row_major(&[], 2).unwrap()).is_none());
    }

    #[test]
    fn a_first_box_has_room_where_rows_have_moved_since() {
        let rows = |n: u32| -> Vec<f64> { (0..n).flat_map(|i| [f64::from(i), -f64::from(i.min(1500))]).collect() };
        let (few, many, most) = (rows(1000), rows(2000), rows(4000));
        let [few, many, most] = [&few, &many, &most].map(|x| Points::row_major(x, 2).unwrap());
        let first = FirstBox::of(1000, box_with_margins(few).unwrap());
        assert_eq!([1000, 1249, 1250, 100_000].map(|n| first.is_due(n)), [false, false, true, true]);
        // Both columns have moved on, though the second no more since row 1500.
        let (found, second) = first.around(2000, many).unwrap();
        assert_eq!((found.lower()[1], found.upper()[0]), (-2.5 * 1500.0, 2.5 * 1999.0));
        // Of 4000 rows most have the second column's least value: no margin there, and no room, for it has not moved since.
        let (found, third) = second.around(4000, most).unwrap();
        assert_eq!((found.lower()[1], found.upper()[0]), (-1500.0, 2.5 * 3999.0));
        assert_eq!((third.n_rows, third.is_due(4999), third.is_due(5000)), (4000, false, true));
        // A box that overflows.
        let far = [-1e308, 0.0, 7e307, 0.0];
        let around = first.around(2, Points::row_major(&far, 2).unwrap());
        assert!(around.is_none_or(|(found, _)| found.lengths().all(f64::is_finite)));
    }

    #[test]
    fn a_first_box_is_saved_whole() {
        let margins = Bounds::new(&[-0.5, 0.1], &[2.5, 0.3]).unwrap();
        let mut archive = Archive::new("test");
        FirstBox::of(40, margins.clone()).write_to(&mut archive).unwrap();
        let wide = Bounds::new(&[-9.0; 2], &[9.0; 2]).unwrap();
        let read = FirstBox::read_from(&archive, &wide).unwrap().unwrap();
        assert_eq!((read.n_rows, read.margins), (40, margins));
        assert!(FirstBox::read_from(&archive, &Bounds::new(&[0.0], &[1.0]).unwrap()).is_err());
        // A file of before there were margins, and one without a stream.
        let mut old = Archive::new("test");
        assert!(FirstBox::read_from(&old, &wide).unwrap().is_none());
        old.set_params("first_box", &serde_json::json!({ "n_rows": 40, "limit": 640 })).unwrap();
        let read = FirstBox::read_from(&old, &wide).unwrap().unwrap();
        assert_eq!((read.n_rows, read.margins), (40, wide));
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
