//! One look at the whole table: ranges, means, categories, missing cells.

use std::collections::BTreeMap;

use serde::Serialize;

use super::scale::Map;
use super::{Encoding, Input, MOST_LEVELS, Missing, Preparation, Scaling, Selection, Target, Task};
use crate::failure::{Failure, Outcome};
use crate::screen::Screen;
use crate::table::{Cells, RawBatch, Source};

/// Rows a batch.
pub(crate) const BATCH: usize = 16_384;
/// Values of a column kept for quantiles and histograms.
const SAMPLE: usize = 65_536;
/// Classes a target may have at most.
const MOST_CLASSES: usize = 1000;

/// What a table holds.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct TableSummary {
    /// All rows.
    pub(crate) n_rows: u64,
    /// Rows that are used.
    pub(crate) n_used: u64,
    pub(crate) n_missing: u64,
    pub(crate) columns: Vec<ColumnSummary>,
}

/// What a column holds.
#[derive(Debug, Clone, Serialize, Default)]
pub(crate) struct ColumnSummary {
    pub(crate) name: String,
    pub(crate) missing: u64,
    pub(crate) count: u64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) mean: f64,
    /// Standard deviation (over n).
    pub(crate) deviation: f64,
    /// Categories and how often each occurs.
    pub(crate) levels: BTreeMap<String, u64>,
    #[serde(skip)]
    pub(crate) sample: Vec<f64>,
    /// Every so many values are kept in the sample.
    #[serde(skip)]
    stride: u64,
    #[serde(skip)]
    squares: f64,
    /// Distinct numbers, for a numeric target of classes.
    #[serde(skip)]
    distinct: BTreeMap<u64, f64>,
}

impl ColumnSummary {
    fn number(&mut self, x: f64) {
        if self.count == 0 {
            (self.min, self.max) = (x, x);
        }
        (self.min, self.max) = (self.min.min(x), self.max.max(x));
        if self.count.is_multiple_of(self.stride) {
            self.sample.push(x);
            if self.sample.len() == SAMPLE {
                // Twice the stride, half the sample: what stays is what the wider stride would have kept.
                self.sample = self.sample.iter().copied().step_by(2).collect();
                self.stride *= 2;
            }
        }
        self.count += 1;
        // Welford's update: one pass, no cancellation.
        let delta = x - self.mean;
        self.mean += delta / self.count as f64;
        self.squares += delta * (x - self.mean);
        self.deviation = (self.squares / self.count as f64).sqrt();
    }

    fn text(&mut self, text: &str) {
        self.count += 1;
        if let Some(n) = self.levels.get_mut(text) {
            *n += 1;
        } else if self.levels.len() <= MOST_CLASSES {
            self.levels.insert(text.to_owned(), 1);
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

/// Reads the whole table once.
pub(crate) fn summarise(
    source: &Source,
    selection: &Selection,
    missing: Missing,
    screen: Screen,
) -> Outcome<TableSummary> {
    let wanted = selection.wanted();
    let names = selection.names();
    let is_class =
        |i: usize| i == selection.inputs.len() && matches!(&selection.target, Some((_, _, Task::Classification)));
    let mut columns: Vec<ColumnSummary> =
        names.iter().map(|n| ColumnSummary { name: (*n).to_owned(), stride: 1, ..Default::default() }).collect();
    let mut found = TableSummary { n_rows: 0, n_used: 0, n_missing: 0, columns: Vec::new() };
    let mut first_missing = None;
    let mut reader = source.read(&wanted)?;
    let mut progress = screen.progress("reading", source.n_bytes());
    while let Some(batch) = reader.next_batch(BATCH)? {
        found.n_rows += batch.n_rows as u64;
        let gaps = gaps(&batch);
        for (i, (cells, column)) in batch.columns.iter().zip(&mut columns).enumerate() {
            for (row, &gap) in gaps.iter().enumerate() {
                let dropped = gap && missing == Missing::Drop;
                let present = match cells {
                    Cells::Numbers(x) => x[row].is_finite(),
                    Cells::Texts(t) => t[row].is_some(),
                };
                if !present {
                    column.missing += 1;
                    found.n_missing += 1;
                    let at = (batch.first_row + row as u64, i);
                    first_missing = Some(first_missing.map_or(at, |first| std::cmp::min(first, at)));
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
    check(source, selection, missing, &found, first_missing)?;
    Ok(found)
}

/// Which rows have a missing cell.
pub(super) fn gaps(batch: &RawBatch) -> Vec<bool> {
    let mut gaps = vec![false; batch.n_rows];
    for cells in &batch.columns {
        match cells {
            Cells::Numbers(x) => gaps.iter_mut().zip(x).for_each(|(g, x)| *g |= !x.is_finite()),
            Cells::Texts(t) => gaps.iter_mut().zip(t).for_each(|(g, t)| *g |= t.is_none()),
        }
    }
    gaps
}

fn check(
    source: &Source,
    selection: &Selection,
    missing: Missing,
    found: &TableSummary,
    first_missing: Option<(u64, usize)>,
) -> Outcome<()> {
    let place = source.place();
    if let (Missing::Refuse, Some((row, column))) = (missing, first_missing) {
        let name = &found.columns[column].name;
        let cells = if found.n_missing == 1 { "the only one".into() } else { format!("one of {}", found.n_missing) };
        return Err(Failure::input(
            format!("{place}: row {row}, column {name:?} is missing or not finite ({cells})"),
            "correct it, or choose --missing drop or --missing mean",
        ));
    }
    if let (Missing::Mean, Some((name, ..)), Some(target)) =
        (missing, &selection.target, found.columns.get(selection.inputs.len()))
        && target.missing > 0
    {
        return Err(Failure::input(
            format!(
                "{place}: the target {name:?} is missing in {} rows, and a target cannot be filled in",
                target.missing
            ),
            "drop those rows with --missing drop",
        ));
    }
    if found.n_used == 0 {
        return Err(Failure::input(format!("{place}: every row has a missing cell"), "choose --missing mean"));
    }
    for (column, (name, _)) in found.columns.iter().zip(&selection.inputs) {
        if column.levels.len() > MOST_LEVELS {
            return Err(Failure::input(
                format!("{place}: column {name:?} has more than {MOST_LEVELS} categories"),
                format!("leave it out with --exclude {name:?} or group its values"),
            ));
        }
    }
    Ok(())
}

impl Preparation {
    /// What to do to rows of this table, and to new ones.
    pub(crate) fn new(
        selection: &Selection,
        summary: &TableSummary,
        missing: Missing,
        scaling: Scaling,
    ) -> Outcome<Self> {
        let inputs = summary
            .columns
            .iter()
            .zip(&selection.inputs)
            .map(|(column, (name, wanted))| {
                let encoding = match wanted.kind {
                    crate::table::Kind::Number => Encoding::Number {
                        fill: Some(column.mean),
                        map: Map::new(scaling, column.mean, column.deviation, &column.sample),
                    },
                    crate::table::Kind::Text => Encoding::Category { levels: column.levels.keys().cloned().collect() },
                };
                Input { name: name.clone(), encoding }
            })
            .collect();
        let target = selection
            .target
            .as_ref()
            .map(|(name, _, task)| {
                let column = &summary.columns[selection.inputs.len()];
                let classes = (*task == Task::Classification).then(|| classes(name, column)).transpose()?;
                Outcome::Ok(Target { name: name.clone(), classes })
            })
            .transpose()?;
        Ok(Self { inputs, target, missing, scaling, n_rows: summary.n_used })
    }

    /// The box of the prepared inputs: it follows from the ranges, since every scaling is increasing.
    pub(crate) fn bounds(&self, summary: &TableSummary) -> (Vec<f64>, Vec<f64>) {
        let (mut lower, mut upper) = (Vec::new(), Vec::new());
        for (input, column) in self.inputs.iter().zip(&summary.columns) {
            match &input.encoding {
                Encoding::Number { map, .. } => {
                    lower.push(map.apply(column.min));
                    upper.push(map.apply(column.max));
                }
                Encoding::Category { levels } => {
                    lower.extend(levels.iter().map(|_| 0.0));
                    upper.extend(levels.iter().map(|_| 1.0));
                }
            }
        }
        (lower, upper)
    }
}

/// The classes, in order: numbers by size, texts by name.
fn classes(name: &str, column: &ColumnSummary) -> Outcome<Vec<String>> {
    let classes: Vec<String> = if column.levels.is_empty() {
        let mut numbers: Vec<f64> = column.distinct.values().copied().collect();
        numbers.sort_unstable_by(f64::total_cmp);
        numbers.dedup();
        numbers.iter().map(f64::to_string).collect()
    } else {
        column.levels.keys().cloned().collect()
    };
    if classes.len() > MOST_CLASSES {
        return Err(Failure::input(
            format!("the target {name:?} has more than {MOST_CLASSES} classes"),
            "is it a number? then use --task regression",
        ));
    }
    Ok(classes)
}
