//! Options about tables, the same in every command that reads one.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::models::{ModelArgs, ModelKind};
use crate::failure::{Failure, Outcome};
use crate::prepare::{Categories, ColumnChoice, Missing, Rules, Scaling, Task};
use crate::table::{DialectOptions, ReadOptions, Source};

/// A table and how to read it.
#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// A table: CSV (plain or gzip), Parquet, or - for standard input
    #[arg(value_name = "DATA", value_hint = ValueHint::FilePath)]
    pub(crate) data: PathBuf,
    /// Separator of cells: one character, or "tab" [default: detected]
    #[arg(long, value_name = "CHAR", help_heading = "Table")]
    delimiter: Option<String>,
    /// Whether the first row is a header [default: detected]
    #[arg(long, value_name = "YES|NO", value_parser = ["yes", "no"], help_heading = "Table")]
    header: Option<String>,
    /// Decimal mark of numbers: . or , [default: detected]
    #[arg(long, value_name = "MARK", value_parser = [".", ","], help_heading = "Table")]
    decimal: Option<String>,
}

impl ReadArgs {
    /// Opens the table.
    pub(crate) fn open(&self) -> Outcome<Source> {
        self.open_for(false)
    }

    fn open_for(&self, selectable: bool) -> Outcome<Source> {
        let separator = separator(self.delimiter.as_deref())?;
        let header = self.header.as_deref().map(|h| h == "yes");
        let decimal = self.decimal.as_deref().and_then(|mark| mark.bytes().next());
        let dialect = DialectOptions { separator, header, decimal };
        Source::open(&self.data, ReadOptions { dialect, selectable })
    }
}

/// The separator given by `--delimiter`.
pub(super) fn separator(delimiter: Option<&str>) -> Outcome<Option<u8>> {
    Ok(match delimiter {
        None => None,
        Some("tab" | "\\t") => Some(b'\t'),
        Some(text) => match text.as_bytes() {
            [one] if one.is_ascii() && !b"\"\r\n".contains(one) => Some(*one),
            _ => {
                let what = format!("--delimiter {text:?} is not one plain character");
                return Err(Failure::input(what, "give one such as ';', or tab"));
            }
        },
    })
}

/// Treatment of missing cells.
#[derive(Debug, Args)]
pub(crate) struct MissingArgs {
    /// Missing cells: refuse them, drop their rows, fill in the column's mean, or model them (laplace) [default: model for laplace, else refuse]
    #[arg(long, value_enum, help_heading = "Table")]
    pub(crate) missing: Option<Missing>,
}

/// A table to learn from.
#[derive(Debug, Args)]
pub(crate) struct DataArgs {
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    #[command(flatten)]
    pub(crate) missing: MissingArgs,
    /// The column to predict
    #[arg(long, short, value_name = "COL")]
    pub(crate) target: Option<String>,
    /// Whether the target is a number or a class [default: from the column's type]
    #[arg(long, value_enum)]
    pub(crate) task: Option<Task>,
    /// Use only these columns as inputs
    #[arg(long, value_name = "COL,...", value_delimiter = ',', help_heading = "Table")]
    columns: Vec<String>,
    /// Do not use these columns as inputs
    #[arg(long, value_name = "COL,...", value_delimiter = ',', help_heading = "Table")]
    exclude: Vec<String>,
    /// Treat these columns as categories, whatever they contain
    #[arg(long, value_name = "COL,...", value_delimiter = ',', help_heading = "Table")]
    categorical: Vec<String>,
    /// How numeric inputs are scaled; stored in the model [default: none for laplace, which tunes its own units, else standard]
    #[arg(long, value_enum, help_heading = "Table")]
    scale: Option<Scaling>,
}

impl DataArgs {
    /// Opens the table.
    pub(crate) fn open(&self) -> Outcome<Source> {
        self.read.open_for(true)
    }

    /// The choice of columns.
    pub(crate) fn choice(&self) -> ColumnChoice {
        ColumnChoice {
            target: self.target.clone(),
            columns: self.columns.clone(),
            exclude: self.exclude.clone(),
            categorical: self.categorical.clone(),
            task: self.task,
        }
    }

    /// How columns are prepared for a kind of model: the tuned Laplace kernel uses unscaled columns.
    pub(crate) fn rules(&self, kind: ModelKind, params: &ModelArgs) -> Outcome<Rules> {
        let is_whole = kind == ModelKind::Laplace && params.tunes_whole_kernel();
        let (missing, scaling, categories) = if is_whole {
            (Missing::Model, Scaling::None, Categories::Codes)
        } else {
            (Missing::Refuse, Scaling::Standard, Categories::Indicators)
        };
        let missing = self.missing.missing.unwrap_or(missing);
        if missing == Missing::Model && !is_whole {
            return Err(Failure::input(
                "--missing model is for the tuned Laplace kernel alone",
                "use --missing drop or --missing mean",
            ));
        }
        Ok(Rules { missing, scaling: self.scale.unwrap_or(scaling), categories })
    }
}
