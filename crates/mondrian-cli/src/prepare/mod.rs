//! From a file's columns to a model's inputs: which columns, how encoded, how filled, how scaled.
//!
//! A [`Preparation`] has everything needed to prepare new rows in the same way; it is stored in the model.

mod rows;
mod scale;
mod select;
mod summary;

pub(crate) use rows::{Besides, Fed, Inputs, Prepared, PreparedRows, RowPreparer, TargetUse, Unseen};
pub(crate) use scale::Scaling;
pub(crate) use select::{ColumnChoice, Selection};
pub(crate) use summary::{ColumnSummary, TableSummary, summarise};

use serde::{Deserialize, Serialize};

use scale::Map;

use crate::failure::{Failure, Outcome};
use crate::screen::Screen;
use crate::table::Kind;

/// Largest number of categories of a column that is one-hot encoded.
pub(crate) const MOST_LEVELS: usize = 100;
/// Largest number of categories of a column that is one input: codes of the library are below 2²⁴.
pub(crate) const MOST_CODES: usize = (1 << 24) - 2;
/// Largest number of classes of a target.
pub(crate) const MOST_CLASSES: usize = 1000;

/// Treatment of missing cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Missing {
    /// Stop with the location of the first one.
    Refuse,
    /// Skip rows with a missing cell.
    Drop,
    /// Replace a missing number by the mean of the column; a missing category counts as no category.
    Mean,
    /// Keep them missing: the tuned Laplace kernel models missing cells.
    Model,
}

/// Encoding of a column of categories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Categories {
    /// One input per category, of 0 and 1.
    Indicators,
    /// One input: the number of the category.
    Codes,
}

/// How columns are prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) missing: Missing,
    pub(crate) scaling: Scaling,
    pub(crate) categories: Categories,
}

impl Rules {
    /// Largest number of categories of a column.
    fn most_levels(self) -> usize {
        match self.categories {
            Categories::Indicators => MOST_LEVELS,
            Categories::Codes => MOST_CODES,
        }
    }
}

/// Regression or classification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Task {
    /// The target is a number.
    Regression,
    /// The target is a class.
    Classification,
}

/// How a file's rows become a model's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Preparation {
    pub(crate) inputs: Vec<Input>,
    pub(crate) target: Option<Target>,
    pub(crate) missing: Missing,
    pub(crate) scaling: Scaling,
    /// Rows learned so far.
    pub(crate) n_rows: u64,
}

/// One column that is an input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) encoding: Encoding,
    /// Whether the column holds dates: its numbers are days since 1970-01-01.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) date: bool,
}

/// How a column's cells become numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Encoding {
    /// A number, scaled; `fill` replaces a missing one. A model from Python has no means of its columns.
    Number { fill: Option<f64>, map: Map },
    /// One input per category, sorted: 1 for the cell's category, 0 for all others; all 0 for an unseen category.
    Category { levels: Vec<String> },
    /// One input: the index of the cell's category in this list, or the list's length for an unseen category. A missing
    /// cell is NaN.
    Level { levels: Vec<String> },
}

/// The column to be predicted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    /// The classes, sorted; none for a number.
    pub(crate) classes: Option<Vec<String>>,
}

impl Preparation {
    /// The preparation of rows of this table, and of new rows.
    pub(crate) fn new(selection: &Selection, summary: &TableSummary, rules: Rules) -> Outcome<Self> {
        let Rules { missing, scaling, categories } = rules;
        let inputs = summary
            .columns
            .iter()
            .zip(&selection.inputs)
            .map(|(column, (name, wanted))| {
                let encoding = match wanted.kind {
                    Kind::Number | Kind::Date => Encoding::Number {
                        fill: Some(column.mean),
                        map: Map::new(scaling, column.mean, column.deviation, &column.sample),
                    },
                    Kind::Text | Kind::Unreadable(_) => {
                        let levels = column.levels.keys().cloned().collect();
                        match categories {
                            Categories::Indicators => Encoding::Category { levels },
                            Categories::Codes => Encoding::Level { levels },
                        }
                    }
                };
                Input { name: name.clone(), encoding, date: wanted.kind == Kind::Date }
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

    /// Prints notes about unexpected properties of the target.
    pub(crate) fn warn(&self, screen: Screen) {
        let Some(Target { name, classes: Some(classes) }) = &self.target else { return };
        if classes.len() > FEW_CLASSES && classes.len() * ROWS_PER_CLASS > self.n_rows as usize {
            let n_rows = self.n_rows;
            screen.message(format!(
                "the target {name:?} has {} classes in {n_rows} rows; if it is an identifier or a count, use another --target or --task regression",
                classes.len()
            ));
        }
    }

    /// The box of the prepared inputs, computed from the ranges: every scaling is increasing.
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
                Encoding::Level { levels } => {
                    lower.push(0.0);
                    upper.push(levels.len() as f64);
                }
            }
        }
        (lower, upper)
    }

    /// The column that a feature comes from.
    pub(crate) fn column_of(&self, feature: usize) -> &str {
        let widths = self.inputs.iter().scan(0, |end, input| {
            *end += match &input.encoding {
                Encoding::Number { .. } | Encoding::Level { .. } => 1,
                Encoding::Category { levels } => levels.len(),
            };
            Some((*end, &input.name))
        });
        widths.into_iter().find(|(end, _)| feature < *end).map_or("", |(_, name)| name)
    }

    /// The names of the model's inputs, one per dimension.
    pub(crate) fn features(&self) -> Vec<String> {
        let mut names = Vec::new();
        for input in &self.inputs {
            match &input.encoding {
                Encoding::Number { .. } | Encoding::Level { .. } => names.push(input.name.clone()),
                Encoding::Category { levels } => names.extend(levels.iter().map(|l| format!("{}={l}", input.name))),
            }
        }
        names
    }

    /// Whether it is valid: files are untrusted.
    pub(crate) fn check(&self) -> Outcome<()> {
        let sound = self.inputs.iter().all(|input| match &input.encoding {
            Encoding::Number { fill, map } => fill.is_none_or(f64::is_finite) && map.is_sound(),
            Encoding::Category { levels } => levels.len() <= MOST_LEVELS && levels.is_sorted(),
            Encoding::Level { levels } => levels.len() <= MOST_CODES,
        });
        if sound && !self.inputs.is_empty() {
            return Ok(());
        }
        Err(Failure::input("the preparation of rows in the model file is inconsistent", "fit the model again"))
    }

    /// Which of the model's inputs are numbers of categories.
    pub(crate) fn is_code(&self) -> Vec<bool> {
        let one = |input: &Input| vec![matches!(input.encoding, Encoding::Level { .. }); input.width()];
        self.inputs.iter().flat_map(one).collect()
    }

    /// The number of dimensions.
    pub(crate) fn n_features(&self) -> usize {
        self.inputs.iter().map(Input::width).sum()
    }

    /// The task, if there is a target.
    pub(crate) fn task(&self) -> Option<Task> {
        self.target.as_ref().map(|t| if t.classes.is_some() { Task::Classification } else { Task::Regression })
    }

    /// The dimension's value in the file's units, and the slope there: `None` for categories.
    pub(crate) fn in_units(&self, feature: usize, scaled: f64) -> Option<f64> {
        let mut at = 0;
        for input in &self.inputs {
            if feature < at + input.width() {
                return match &input.encoding {
                    Encoding::Number { map, .. } => Some(map.undo(scaled)),
                    Encoding::Category { .. } | Encoding::Level { .. } => None,
                };
            }
            at += input.width();
        }
        None
    }
}

impl Input {
    pub(crate) fn width(&self) -> usize {
        match &self.encoding {
            Encoding::Number { .. } | Encoding::Level { .. } => 1,
            Encoding::Category { levels } => levels.len(),
        }
    }
}

/// A note is printed for more classes than this, with fewer rows per class than that.
const FEW_CLASSES: usize = 20;
const ROWS_PER_CLASS: usize = 5;

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
            "if it is a number, use --task regression",
        ));
    }
    Ok(classes)
}
