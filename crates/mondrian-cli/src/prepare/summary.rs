//! One pass over the whole table: ranges, means, categories, missing cells.

use std::collections::BTreeMap;

use serde::Serialize;

use super::rows::gaps;
use super::{MOST_CLASSES, Missing, Rules, Scaling, Selection, Task};
use crate::failure::{Failure, Outcome};
use crate::screen::Screen;
use crate::table::{Cells, Kind, Source, batch_rows};

/// Values of a column kept for quantiles and histograms, at most and at least.
const SAMPLE: usize = 65_536;
const LEAST_SAMPLE: usize = 512;
/// Values kept of all columns together, about.
const SAMPLES: usize = 1 << 26;

/// Statistics of a table.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct TableSummary {
    /// All rows.
    pub(crate) n_rows: u64,
    /// Rows that are used.
    pub(crate) n_used: u64,
    pub(crate) n_missing: u64,
    pub(crate) columns: Vec<ColumnSummary>,
    /// Row and column of the first missing cell.
    #[serde(skip)]
    first_missing: Option<(u64, usize)>,
}

/// Statistics of a column.
#[derive(Debug, Clone, Serialize, Default)]
pub(crate) struct ColumnSummary {
    pub(crate) name: String,
    pub(crate) missing: u64,
    /// The first row without a value.
    #[serde(skip)]
    first_missing: Option<u64>,
    pub(crate) count: u64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) mean: f64,
    /// Standard deviation (over n).
    pub(crate) deviation: f64,
    /// Categories and how often each occurs.
    pub(crate) levels: BTreeMap<String, u64>,
    /// Whether there are more categories than the limit; those counted are the first ones read.
    pub(crate) more_levels: bool,
    /// Whether the numbers are days since 1970-01-01.
    pub(crate) date: bool,
    #[serde(skip)]
    pub(crate) sample: Vec<f64>,
    /// Largest size of the sample.
    #[serde(skip)]
    most_sampled: usize,
    /// Categories that are counted.
    #[serde(skip)]
    most_levels: usize,
    /// Stride: one of this many values is kept in the sample.
    #[serde(skip)]
    stride: u64,
    #[serde(skip)]
    squares: f64,
    /// Mean and squares again in units of [`LARGE`], whose squares do not overflow.
    #[serde(skip)]
    large: (f64, f64),
    /// Distinct numbers, for a numeric target of classes.
    #[serde(skip)]
    pub(super) distinct: BTreeMap<u64, f64>,
}

/// 2⁶⁰⁰: numbers up to the largest have squares in this unit.
const LARGE: f64 = f64::from_bits((1023 + 600) << 52);

impl ColumnSummary {
    fn number(&mut self, x: f64) {
        if self.count == 0 {
            (self.min, self.max) = (x, x);
        }
        (self.min, self.max) = (self.min.min(x), self.max.max(x));
        if self.count.is_multiple_of(self.stride) {
            self.sample.push(x);
            if self.sample.len() == self.most_sampled {
                // Double the stride and halve the sample: the result is the sample of the wider stride.
                self.sample = self.sample.iter().copied().step_by(2).collect();
                self.stride *= 2;
            }
        }
        self.count += 1;
        // Welford's update: one pass, no cancellation.
        let delta = x - self.mean;
        self.mean += delta / self.count as f64;
        self.squares += delta * (x - self.mean);
        let (x, (mean, squares)) = (x / LARGE, &mut self.large);
        let delta = x - *mean;
        *mean += delta / self.count as f64;
        *squares += delta * (x - *mean);
        if self.squares.is_finite() {
            self.deviation = (self.squares / self.count as f64).sqrt();
        } else {
            (self.mean, self.deviation) = (*mean * LARGE, (*squares / self.count as f64).sqrt() * LARGE);
        }
    }

    fn text(&mut self, text: &str) {
        self.count += 1;
        if let Some(n) = self.levels.get_mut(text) {
            *n += 1;
        } else if self.levels.len() <= self.most_levels {
            self.levels.insert(text.to_owned(), 1);
        } else {
            self.more_levels = true;
        }
    }

    /// Counts in `n` equal bins of the sample.
    pub(crate) fn histogram(&self, n: usize) -> Vec<u64> {
        let mut bins = vec![0; n];
        let width = (self.max - self.min) / n as f64;
        for x in &self.sample {
            let bin = if width > 0.0 { ((x - self.min) / width) as usize } else { 0 };
            bins[bin.min(n - 1)] += 1;
        }
        bins
    }
}

/// Reads the whole table once, counting at most this many categories per input. Nothing is refused here; see
/// [`TableSummary::check`].
pub(crate) fn summarise(
    source: &Source,
    selection: &Selection,
    missing: Missing,
    most_levels: usize,
    screen: Screen,
) -> Outcome<TableSummary> {
    let wanted = selection.wanted();
    let names = selection.names();
    let is_class =
        |i: usize| i == selection.inputs.len() && matches!(&selection.target, Some((_, _, Task::Classification)));
    let most_sampled = (SAMPLES / names.len().max(1)).clamp(LEAST_SAMPLE, SAMPLE);
    let new = |(name, wanted): (&&str, &crate::table::Wanted)| ColumnSummary {
        name: (*name).to_owned(),
        date: wanted.kind == Kind::Date,
        stride: 1,
        most_sampled,
        ..Default::default()
    };
    let mut columns: Vec<ColumnSummary> = names.iter().zip(&wanted).map(new).collect();
    let n_inputs = selection.inputs.len();
    for (i, column) in columns.iter_mut().enumerate() {
        column.most_levels = if i < n_inputs { most_levels.max(MOST_CLASSES) } else { MOST_CLASSES };
    }
    let mut found = TableSummary { n_rows: 0, n_used: 0, n_missing: 0, columns: Vec::new(), first_missing: None };
    let mut reader = source.read(&wanted)?;
    let mut progress = screen.progress("reading", source.n_bytes());
    while let Some(batch) = reader.next_batch(batch_rows(wanted.len()))? {
        found.n_rows += batch.n_rows as u64;
        let gaps = gaps(&batch.columns, batch.n_rows);
        for (i, (cells, column)) in batch.columns.iter().zip(&mut columns).enumerate() {
            for (row, &gap) in gaps.iter().enumerate() {
                let dropped = gap && missing == Missing::Drop;
                let present = match cells {
                    Cells::Numbers(x) => x[row].is_finite(),
                    Cells::Texts(t) => t[row].is_some(),
                };
                if !present {
                    column.missing += 1;
                    column.first_missing.get_or_insert(batch.first_row + row as u64);
                    found.n_missing += 1;
                    let at = (batch.first_row + row as u64, i);
                    found.first_missing = Some(found.first_missing.map_or(at, |first| std::cmp::min(first, at)));
                } else if !dropped {
                    match cells {
                        Cells::Numbers(x) => {
                            column.number(x[row]);
                            if is_class(i) && column.distinct.len() <= MOST_CLASSES {
                                column.distinct.insert(x[row].to_bits(), x[row]);
                            }
                        }
                        Cells::Texts(t) => column.text(t[row].as_deref().unwrap_or_default()),
                    }
                }
            }
        }
        let dropped = if missing == Missing::Drop { gaps.iter().filter(|&&g| g).count() } else { 0 };
        found.n_used += (batch.n_rows - dropped) as u64;
        progress.set(reader.position());
    }
    progress.finish();
    found.columns = columns;
    Ok(found)
}

impl TableSummary {
    /// Refuses a table that no model can be fitted to.
    pub(crate) fn check(&self, place: &str, selection: &Selection, rules: Rules) -> Outcome<()> {
        let Rules { missing, scaling, .. } = rules;
        if let (Missing::Refuse, Some((row, column))) = (missing, self.first_missing) {
            let name = &self.columns[column].name;
            let cells = if self.n_missing == 1 { "the only one".into() } else { format!("one of {}", self.n_missing) };
            return Err(Failure::input(
                format!("{place}: row {row}, column {name:?} is missing or not finite ({cells})"),
                "correct it, or choose --missing drop or --missing mean",
            ));
        }
        if let (Missing::Mean | Missing::Model, Some((name, ..)), Some(target)) =
            (missing, &selection.target, self.columns.get(selection.inputs.len()))
            && target.missing > 0
        {
            if target.missing == self.n_rows {
                let message = format!("{place}: the target {name:?} has no value");
                return Err(Failure::input(message, "choose another column with --target"));
            }
            return Err(Failure::input(
                format!(
                    "{place}: the target {name:?} is missing in {} rows, first in row {}, and a target cannot be filled in",
                    target.missing,
                    target.first_missing.unwrap_or(1)
                ),
                "leave those rows out, or every row with a missing cell: --missing drop",
            ));
        }
        if self.n_used == 0 {
            let mut empty =
                self.columns.iter().filter(|c| c.missing == self.n_rows).map(|c| c.name.as_str()).peekable();
            if self.n_rows > 0 && empty.peek().is_some() {
                return Err(Failure::input(
                    format!("{place}: every cell is missing in {}", crate::table::listed(empty)),
                    "leave that out with --exclude, or choose --missing mean",
                ));
            }
            return Err(Failure::input(format!("{place}: every row has a missing cell"), "choose --missing mean"));
        }
        for (i, column) in self.columns.iter().enumerate() {
            let is_input = i < selection.inputs.len();
            if is_input && column.levels.len() > rules.most_levels() {
                return Err(Failure::input(
                    format!("{place}: column {:?} has more than {} categories", column.name, rules.most_levels()),
                    format!("leave it out with --exclude {:?} or group its values", column.name),
                ));
            }
            column.check_size(place, !is_input || scaling == Scaling::Standard)?;
        }
        Ok(())
    }
}

impl ColumnSummary {
    /// Refuses numbers so large that their range, or their variance if it is needed, overflows.
    fn check_size(&self, place: &str, needs_variance: bool) -> Outcome<()> {
        let largest = self.max.abs().max(self.min.abs());
        let fits = (self.max - self.min).is_finite() && self.mean.is_finite();
        if fits && (self.squares.is_finite() || !needs_variance) {
            return Ok(());
        }
        Err(Failure::input(
            format!("{place}: column {:?} has numbers as large as {largest:e}, too large for its variance", self.name),
            "divide the column by a constant, correct the cell, or leave the column out with --exclude",
        ))
    }
}
