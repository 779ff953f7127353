//! How inputs become columns of the kernel (docs/design.md, "Columns").
//!
//! A continuous input enters twice, with two lifetimes: as x in units of its mean absolute deviation, and as 4·F(x), its
//! mid-rank: the measure λ_d·Lebesgue + μ_d·empirical, both parts tuned. A categorical input is one term ν·1\[x ≠ x'\]. A
//! missing cell is an indicator column of its own, and the median elsewhere.

use serde::{Deserialize, Serialize};

use crate::laplace::Cells;
use crate::linalg::Matrix;
use crate::normal;
use crate::{Error, Result};

/// Under which measure the kernel cuts a continuous input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// x and ranks, each with a lifetime of its own; x alone for more than 64 inputs.
    #[default]
    Auto,
    /// x alone.
    Uniform,
    /// Ranks alone.
    Quantile,
    /// Normal scores of the ranks alone.
    Normal,
    /// x and ranks.
    Both,
}

/// More inputs than this enter once by default: neighbouring pixels need no second measure, and it would double the cost.
pub const WIDE: usize = 64;
/// Axes of wide tables count from their least value, which is often the most frequent one, as the background of images: then most
/// coordinates are 0, and pairs of rows are compared in the others alone. Unless the median is further from it than so many
/// deviations: single precision would lose digits.
const NEAR_LEAST: f64 = 8.0;
/// Ranks are kept at so many values at most, and are linear between them.
const MOST_KNOTS: usize = 1000;
/// F(x) counts this many mean absolute deviations or so from end to end.
const RANK_SCALE: f64 = 4.0;
/// The code of a level that training has not seen.
const UNSEEN: u32 = (1 << 24) - 1;

/// Whether each input has a unit of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Units {
    /// Each input in units of its own spread.
    Each,
    /// All inputs in their common mean spread, as pixels are comparable as they stand.
    Common,
}

/// One number made of one input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Column {
    input: usize,
    map: Map,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Map {
    /// (x − centre)/unit, a missing cell filled.
    Linear { centre: f64, unit: f64, fill: f64 },
    /// Linear between knots, constant beyond; a missing cell filled.
    Knots { values: Vec<f64>, images: Vec<f64>, fill: f64 },
    /// 1 where the cell is missing.
    Missing,
}

impl Map {
    fn apply(&self, x: f64) -> f64 {
        match self {
            Self::Linear { centre, unit, fill } => (if x.is_nan() { *fill } else { x } - centre) / unit,
            Self::Knots { values, images, fill } => interpolate(values, images, if x.is_nan() { *fill } else { x }),
            Self::Missing => f64::from(u8::from(x.is_nan())),
        }
    }
}

fn interpolate(values: &[f64], images: &[f64], x: f64) -> f64 {
    let last = values.len() - 1;
    let above = values.partition_point(|v| *v <= x);
    if above == 0 {
        return images[0];
    }
    if above > last {
        return images[last];
    }
    let (a, b) = (values[above - 1], values[above]);
    images[above - 1] + (images[above] - images[above - 1]) * ((x - a) / (b - a))
}

/// The columns of a kernel, learned from training rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Columns {
    n_inputs: usize,
    axes: Vec<Column>,
    /// Inputs that are categorical, with their levels in ascending order; a missing cell is the level after them.
    levels: Vec<(usize, Vec<f64>)>,
    /// Categorical inputs with one level in training, which have no term.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    constant_levels: Vec<usize>,
    /// Categorical inputs with missing cells in training.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    missing_levels: Vec<usize>,
    /// Where the metric A acts.
    linear: Vec<Column>,
    /// Typical distance of two rows along each axis and each categorical input: the unit of its first lifetime.
    spreads: Vec<f64>,
    level_spreads: Vec<f64>,
}

/// Rows as columns of numbers, before lifetimes and metric.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Columned {
    pub(crate) axes: Matrix,
    /// Codes, column after column.
    pub(crate) levels: Vec<u32>,
    pub(crate) n_levels: usize,
    pub(crate) linear: Matrix,
}

impl Columned {
    pub(crate) fn n_rows(&self) -> usize {
        self.axes.n_rows()
    }

    /// The rows of these numbers.
    pub(crate) fn select(&self, rows: &[usize]) -> Self {
        let n = self.n_rows();
        let pick = |matrix: &Matrix| Matrix::from_fn(rows.len(), matrix.n_columns(), |i, j| matrix[(rows[i], j)]);
        let codes = |column: usize| rows.iter().map(move |&i| (column, i));
        let levels = (0..self.n_levels).flat_map(codes).map(|(c, i)| self.levels[c * n + i]).collect();
        Self { axes: pick(&self.axes), levels, n_levels: self.n_levels, linear: pick(&self.linear) }
    }
}

impl Columns {
    /// Learns the columns of these rows. `categorical` says which inputs are, one per input.
    ///
    /// # Errors
    /// [`Error::Empty`] without rows, [`Error::LengthMismatch`].
    pub(crate) fn learn(cells: Cells<'_>, categorical: &[bool], measure: Measure, units: Units) -> Result<Self> {
        let (n, n_inputs) = (cells.n_rows(), cells.n_columns());
        if n == 0 {
            return Err(Error::Empty { what: "X", rows: 0, columns: n_inputs });
        }
        if categorical.len() != n_inputs {
            let found = categorical.len();
            return Err(Error::LengthMismatch { what: "marks of categorical inputs", expected: n_inputs, found });
        }
        let is_wide = n_inputs > WIDE;
        let measure = match measure {
            Measure::Auto if is_wide => Measure::Uniform,
            Measure::Auto => Measure::Both,
            other => other,
        };
        let numbers: Vec<Option<Numbers>> =
            (0..n_inputs).map(|d| (!categorical[d]).then(|| Numbers::of(cells.column(d)))).collect();
        let mean_of = |value: fn(&Numbers) -> f64| {
            let values: Vec<f64> =
                numbers.iter().flatten().filter(|numbers| numbers.values.len() > 1).map(value).collect();
            values.iter().sum::<f64>() / values.len().max(1) as f64
        };
        let common = (mean_of(|numbers| numbers.deviation), mean_of(|numbers| numbers.standard));
        let mut columns = Self {
            n_inputs,
            axes: Vec::new(),
            levels: Vec::new(),
            constant_levels: Vec::new(),
            missing_levels: Vec::new(),
            linear: Vec::new(),
            spreads: Vec::new(),
            level_spreads: Vec::new(),
        };
        for (input, numbers) in numbers.into_iter().enumerate() {
            match numbers {
                Some(numbers) => columns.add_numbers(input, &numbers, measure, units, common),
                None => columns.add_levels(input, cells.column(input)),
            }
        }
        Ok(columns)
    }

    fn add_numbers(&mut self, input: usize, numbers: &Numbers, measure: Measure, units: Units, common: (f64, f64)) {
        let Numbers { mean, deviation, standard, median, missing, .. } = *numbers;
        let n_values = numbers.values.len();
        if n_values > 1 {
            let (unit, metric_unit) = match units {
                Units::Each => (deviation, standard),
                Units::Common => common,
            };
            let linear = |centre, unit| Map::Linear { centre, unit, fill: median };
            let least = numbers.values[0];
            let is_near = self.n_inputs > WIDE && median - least <= NEAR_LEAST * deviation;
            let axis_centre = if is_near { least } else { mean };
            let knots = |image: fn(f64) -> f64| {
                let images = numbers.ranks.iter().map(|rank| image(*rank)).collect();
                Map::Knots { values: numbers.values.clone(), images, fill: median }
            };
            let is_ranked = n_values > 2;
            let mut push = |map: Map, spread: f64| {
                self.axes.push(Column { input, map });
                self.spreads.push(spread);
            };
            if !is_ranked || matches!(measure, Measure::Uniform | Measure::Both) {
                push(linear(axis_centre, unit), deviation / unit);
            }
            if is_ranked && matches!(measure, Measure::Quantile | Measure::Both) {
                push(knots(|rank| RANK_SCALE * rank), 1.0);
            }
            if is_ranked && measure == Measure::Normal {
                push(knots(normal::quantile), 0.8);
            }
            let map = match measure {
                Measure::Quantile if is_ranked => knots(|rank| 12.0_f64.sqrt() * (rank - 0.5)),
                Measure::Normal if is_ranked => knots(normal::quantile),
                _ => linear(mean, metric_unit),
            };
            self.linear.push(Column { input, map });
        }
        if missing > 0.0 && missing < 1.0 {
            self.axes.push(Column { input, map: Map::Missing });
            self.spreads.push((2.0 * missing * (1.0 - missing)).max(1e-3));
        }
    }

    fn add_levels(&mut self, input: usize, cells: impl ExactSizeIterator<Item = f64>) {
        let n = cells.len() as f64;
        let mut sorted: Vec<f64> = cells.map(|x| x + 0.0).collect();
        sorted.sort_by(f64::total_cmp);
        let mut levels: Vec<f64> = Vec::new();
        let mut agreement = 0.0;
        for run in sorted.chunk_by(|a, b| a == b || a.is_nan() && b.is_nan()) {
            agreement += (run.len() as f64 / n).powi(2);
            if !run[0].is_nan() && levels.len() < UNSEEN as usize - 1 {
                levels.push(run[0]);
            }
        }
        if sorted.iter().any(|x| x.is_nan()) {
            self.missing_levels.push(input);
        }
        if agreement < 1.0 {
            self.levels.push((input, levels));
            self.level_spreads.push((1.0 - agreement).max(1e-3));
        } else {
            self.constant_levels.push(input);
        }
    }

    /// Adds the levels of further training rows to those known; whether there are new ones. They change the codes of all rows.
    pub(crate) fn add_levels_of(&mut self, cells: Cells<'_>) -> Result<bool> {
        cells.check_width(self.n_inputs)?;
        let mut is_new = false;
        for (input, known) in &mut self.levels {
            let n_before = known.len();
            known.extend(cells.column(*input).filter(|x| !x.is_nan()).map(|x| x + 0.0));
            known.sort_by(f64::total_cmp);
            known.dedup();
            known.truncate(UNSEEN as usize - 1);
            is_new |= known.len() > n_before;
            if cells.column(*input).any(f64::is_nan) && !self.missing_levels.contains(input) {
                self.missing_levels.push(*input);
            }
        }
        Ok(is_new)
    }

    /// Marks of the categorical inputs.
    pub(crate) fn categorical(&self) -> Vec<bool> {
        let mut marks = vec![false; self.n_inputs];
        let inputs = self.levels.iter().map(|(input, _)| input).chain(&self.constant_levels);
        inputs.for_each(|input| marks[*input] = true);
        marks
    }

    /// The inputs of a row with a cell of a kind that training has not seen: a level that is not known, or a missing cell where none
    /// was missing. The kernel takes the median there, or a level unlike all others.
    pub(crate) fn unknown_inputs(&self, row: &[f64]) -> Vec<usize> {
        let is_filled = |input: &usize| {
            let mut maps = self.axes.iter().filter(|axis| axis.input == *input).map(|axis| &axis.map).peekable();
            maps.peek().is_some() && maps.all(|map| !matches!(map, Map::Missing))
        };
        let missing = (0..self.n_inputs).filter(|input| row[*input].is_nan());
        let mut inputs: Vec<usize> = missing.filter(is_filled).collect();
        let is_unknown = |(input, known): &&(usize, Vec<f64>)| {
            let x = row[*input];
            if x.is_nan() { !self.missing_levels.contains(input) } else { code(known, x) == UNSEEN }
        };
        inputs.extend(self.levels.iter().filter(is_unknown).map(|(input, _)| *input));
        inputs
    }

    /// How much further a new level of a categorical input is from the mean of the K known ones than those are, squared, if all are
    /// drawn alike: (K + 1)/(K − 1). 1 for other inputs.
    pub(crate) fn spread_of_new_level(&self, input: usize) -> f64 {
        let known = self.levels.iter().find(|(own, _)| *own == input).map(|(_, known)| known.len() as f64);
        known.filter(|k| *k > 1.0).map_or(1.0, |k| (k + 1.0) / (k - 1.0))
    }

    /// Number of inputs.
    pub fn n_inputs(&self) -> usize {
        self.n_inputs
    }

    /// The input behind each axis.
    pub fn axis_inputs(&self) -> Vec<usize> {
        self.axes.iter().map(|column| column.input).collect()
    }

    /// The input behind each categorical term.
    pub fn level_inputs(&self) -> Vec<usize> {
        self.levels.iter().map(|(input, _)| *input).collect()
    }

    /// The input behind each column of the metric.
    pub fn metric_inputs(&self) -> Vec<usize> {
        self.linear.iter().map(|column| column.input).collect()
    }

    /// The unit of each column of the metric: A acts on x over this (or on ranks, whose unit is 1).
    pub(crate) fn metric_units(&self) -> Vec<f64> {
        let unit = |column: &Column| match column.map {
            Map::Linear { unit, .. } => unit,
            _ => 1.0,
        };
        self.linear.iter().map(unit).collect()
    }

    /// For each axis its input and the unit of x, or `None` where the axis holds ranks or an indicator.
    pub(crate) fn axis_units(&self) -> Vec<(usize, Option<f64>)> {
        let unit = |column: &Column| match column.map {
            Map::Linear { unit, .. } => (column.input, Some(unit)),
            _ => (column.input, None),
        };
        self.axes.iter().map(unit).collect()
    }

    /// For each axis its input, and whether the axis holds ranks or their normal scores.
    pub(crate) fn rank_axes(&self) -> Vec<(usize, bool)> {
        self.axes.iter().map(|column| (column.input, matches!(column.map, Map::Knots { .. }))).collect()
    }

    /// ln λ of each axis, then ln ν of each categorical term, for lifetimes of the inputs in their own units.
    pub(crate) fn logarithms(&self, lifetimes: &[f64]) -> Vec<f64> {
        let axis = |column: &Column| match column.map {
            Map::Linear { unit, .. } => (lifetimes[column.input] * unit).ln(),
            _ => lifetimes[column.input].ln(),
        };
        self.axes.iter().map(axis).chain(self.levels.iter().map(|(input, _)| lifetimes[*input].ln())).collect()
    }

    /// Typical distances along axes and categorical terms.
    pub(crate) fn spreads(&self) -> (&[f64], &[f64]) {
        (&self.spreads, &self.level_spreads)
    }

    /// The columns of rows.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the width differs.
    pub(crate) fn apply(&self, cells: Cells<'_>) -> Result<Columned> {
        cells.check_width(self.n_inputs)?;
        let n = cells.n_rows();
        let table = |columns: &[Column]| {
            let mut data = Vec::with_capacity(n * columns.len());
            for column in columns {
                data.extend(cells.column(column.input).map(|x| column.map.apply(x)));
            }
            Matrix::from_column_major(data, n, columns.len())
        };
        let mut levels = Vec::with_capacity(n * self.levels.len());
        for (input, known) in &self.levels {
            levels.extend(cells.column(*input).map(|x| code(known, x)));
        }
        Ok(Columned { axes: table(&self.axes)?, levels, n_levels: self.levels.len(), linear: table(&self.linear)? })
    }

    /// Whether numbers from a file can be what `learn` makes.
    pub(crate) fn is_sound(&self) -> bool {
        let finite = |numbers: &[f64]| numbers.iter().all(|x| x.is_finite());
        let sound = |column: &Column| {
            column.input < self.n_inputs
                && match &column.map {
                    Map::Linear { centre, unit, fill } => {
                        centre.is_finite() && fill.is_finite() && *unit > 0.0 && unit.is_finite()
                    }
                    Map::Knots { values, images, fill } => {
                        !values.is_empty()
                            && values.len() == images.len()
                            && values.windows(2).all(|pair| pair[0] < pair[1])
                            && finite(values)
                            && finite(images)
                            && fill.is_finite()
                    }
                    Map::Missing => true,
                }
        };
        let known = |(input, levels): &(usize, Vec<f64>)| {
            *input < self.n_inputs && finite(levels) && levels.windows(2).all(|pair| pair[0] < pair[1])
        };
        self.axes.iter().chain(&self.linear).all(sound)
            && self.levels.iter().all(known)
            && self.constant_levels.iter().chain(&self.missing_levels).all(|input| *input < self.n_inputs)
            && self.spreads.len() == self.axes.len()
            && self.level_spreads.len() == self.levels.len()
    }
}

fn code(known: &[f64], x: f64) -> u32 {
    if x.is_nan() {
        return known.len() as u32;
    }
    known.binary_search_by(|level| level.total_cmp(&(x + 0.0))).map_or(UNSEEN, |found| found as u32)
}

/// What is known of the numbers of one input.
struct Numbers {
    mean: f64,
    /// Mean absolute deviation from the mean.
    deviation: f64,
    standard: f64,
    median: f64,
    /// The share of missing cells.
    missing: f64,
    /// Distinct values, at most [`MOST_KNOTS`] or so, and their mid-ranks as shares.
    values: Vec<f64>,
    ranks: Vec<f64>,
}

impl Numbers {
    fn of(cells: impl ExactSizeIterator<Item = f64>) -> Self {
        let n_cells = cells.len() as f64;
        let mut sorted: Vec<f64> = cells.filter(|x| !x.is_nan()).map(|x| x + 0.0).collect();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len() as f64;
        let missing = 1.0 - n / n_cells;
        let Some(&first) = sorted.first() else {
            let (values, ranks) = (Vec::new(), Vec::new());
            return Self { mean: 0.0, deviation: 0.0, standard: 0.0, median: 0.0, missing, values, ranks };
        };
        // Sums about the first value, halves first, so that neither a far offset nor the largest numbers spoil them.
        let mean = first + sorted.iter().map(|x| (0.5 * x - 0.5 * first) / n).sum::<f64>() * 2.0;
        let deviation = sorted.iter().map(|x| (x - mean).abs() / n).sum::<f64>();
        let scale = if deviation > 0.0 && deviation.is_finite() { deviation } else { 1.0 };
        let standard = scale * (sorted.iter().map(|x| ((x - mean) / scale).powi(2) / n).sum::<f64>()).sqrt();
        let median = sorted[(sorted.len() - 1) / 2];
        let (mut values, mut ranks, mut below) = (Vec::new(), Vec::new(), 0);
        for run in sorted.chunk_by(|a, b| a == b) {
            values.push(run[0]);
            ranks.push((below as f64 + 0.5 * run.len() as f64) / n);
            below += run.len();
        }
        // A spread that rounds to nothing, or overflows, tells no rows apart.
        if !(deviation > f64::MIN_POSITIVE && standard.is_finite() && (values[values.len() - 1] - first).is_finite()) {
            values.truncate(1);
            ranks.truncate(1);
        }
        let (values, ranks) = thinned(values, ranks);
        Self { mean, deviation, standard, median, missing, values, ranks }
    }
}

/// Every so many-th knot, the ends included.
fn thinned(values: Vec<f64>, ranks: Vec<f64>) -> (Vec<f64>, Vec<f64>) {
    if values.len() <= MOST_KNOTS {
        return (values, ranks);
    }
    let last = values.len() - 1;
    let keep = (0..MOST_KNOTS).map(|k| k * last / (MOST_KNOTS - 1));
    keep.map(|k| (values[k], ranks[k])).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learn(data: &[f64], width: usize, categorical: &[bool], measure: Measure) -> (Columns, Columned) {
        let cells = Cells::row_major(data, width).unwrap();
        let columns = Columns::learn(cells, categorical, measure, Units::Each).unwrap();
        let columned = columns.apply(cells).unwrap();
        (columns, columned)
    }

    #[test]
    fn a_continuous_input_enters_twice_and_two_levels_once() {
        let data = [1.0, 0.0, 2.0, 1.0, 4.0, 1.0, 9.0, 0.0];
        let (columns, rows) = learn(&data, 2, &[false, false], Measure::Auto);
        assert_eq!(columns.axis_inputs(), [0, 0, 1]);
        assert_eq!(rows.axes.column(1), [0.5, 1.5, 2.5, 3.5]);
        // The mean is 4, the mean absolute deviation 2.5.
        assert_eq!(rows.axes.column(0), [-1.2, -0.8, 0.0, 2.0]);
        assert_eq!(columns.metric_inputs(), [0, 1]);
        for (measure, axes) in [(Measure::Uniform, 2), (Measure::Quantile, 2), (Measure::Normal, 2), (Measure::Both, 3)]
        {
            assert_eq!(learn(&data, 2, &[false, false], measure).1.axes.n_columns(), axes);
        }
    }

    #[test]
    fn missing_cells_and_levels_have_columns_of_their_own() {
        let data = [1.0, 7.0, f64::NAN, 5.0, 3.0, f64::NAN, 2.0, 7.0];
        let (columns, rows) = learn(&data, 2, &[false, true], Measure::Uniform);
        assert_eq!(rows.axes.column(1), [0.0, 1.0, 0.0, 0.0]);
        assert_eq!(rows.axes.column(0)[1], rows.axes.column(0)[3], "the median, 2, fills the cell");
        assert_eq!(rows.levels, [1, 0, 2, 1]);
        let unseen = columns.apply(Cells::row_major(&[1.0, 6.0], 2).unwrap()).unwrap();
        assert_eq!(unseen.levels, [UNSEEN]);
        let (columns, rows) = learn(&[f64::NAN, 1.0, f64::NAN, 2.0], 2, &[false, false], Measure::Auto);
        assert_eq!(
            (columns.axis_inputs(), rows.axes.n_columns()),
            (vec![1], 1),
            "a column without numbers is left out"
        );
    }

    /// A million categories, each of one row but the last two.
    #[test]
    fn a_million_categories_are_a_million_codes() {
        let n = 1_000_000_u32;
        let data: Vec<f64> = (0..n).map(|i| f64::from((u64::from(i) * 7919 % u64::from(n)).max(1) as u32)).collect();
        let (columns, rows) = learn(&data, 1, &[true], Measure::Auto);
        assert_eq!(columns.level_inputs(), [0]);
        let mut codes = rows.levels.clone();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!((codes.len(), codes[0], codes[codes.len() - 1]), (n as usize - 1, 0, n - 2));
        let unseen = columns.apply(Cells::row_major(&[0.5], 1).unwrap()).unwrap();
        assert_eq!(unseen.levels, [UNSEEN]);
    }
}
