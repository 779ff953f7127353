//! Tables from files: CSV (plain, gzip, standard input) and Parquet, read in batches, as often as needed.

mod csv_file;
pub(crate) mod date;
mod dialect;
mod parquet_file;
mod quotes;
mod source;
mod stream;

pub(crate) use dialect::DialectOptions;
pub(crate) use source::{ReadOptions, Source, listed};
pub(crate) use stream::{RowStream, TextRow, raw_row};

use crate::failure::Outcome;

/// Approximate number of cells read at a time.
const BATCH_CELLS: usize = 1 << 22;
/// Largest number of rows read at a time.
const BATCH_ROWS: usize = 16_384;

/// Rows to read at a time for this many columns.
pub(crate) fn batch_rows(n_columns: usize) -> usize {
    (BATCH_CELLS / n_columns.max(1)).clamp(1, BATCH_ROWS)
}

/// The type of the cells of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Numbers; any other cell is an error.
    Number,
    /// Dates, which become numbers: days since 1970-01-01.
    Date,
    /// Texts: categories.
    Text,
    /// An unsupported type, with its name.
    Unreadable(&'static str),
}

/// A column of a file.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// The decimal mark of its numbers.
    decimal: u8,
}

impl Column {
    fn new(name: String, kind: Kind) -> Self {
        Self { name, kind, decimal: b'.' }
    }

    /// A cell as a number, in the format of this column.
    pub(crate) fn value(&self, text: &str) -> Option<f64> {
        if self.kind == Kind::Date { date::days(text) } else { number_with(text, self.decimal) }
    }
}

/// A column to read, and its type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) column: usize,
    pub(crate) kind: Kind,
}

/// The cells of one requested column in one batch.
#[derive(Debug)]
pub(crate) enum Cells {
    /// NaN is a missing cell; infinities are kept and checked later.
    Numbers(Vec<f64>),
    /// `None` is a missing cell.
    Texts(Vec<Option<Box<str>>>),
}

impl Cells {
    pub(crate) fn new(kind: Kind) -> Self {
        match kind {
            Kind::Number | Kind::Date => Self::Numbers(Vec::new()),
            Kind::Text | Kind::Unreadable(_) => Self::Texts(Vec::new()),
        }
    }
}

/// Some rows of a file.
#[derive(Debug)]
pub(crate) struct RawBatch {
    /// The number of the first row, counted from 1 after the header.
    pub(crate) first_row: u64,
    pub(crate) n_rows: usize,
    /// The requested columns, in order.
    pub(crate) columns: Vec<Cells>,
}

/// A reader of a table.
pub(crate) trait RowReader {
    /// The next rows, at most `max_rows`; none at the end.
    fn next_batch(&mut self, max_rows: usize) -> Outcome<Option<RawBatch>>;

    /// The position in the file, in bytes.
    fn position(&self) -> u64;
}

/// Texts that mean a missing cell.
const MISSING: [&str; 10] = ["", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "?"];

pub(crate) fn is_missing(text: &str) -> bool {
    MISSING.contains(&text)
}

/// The number of a text; `None` for anything else. Texts for missing cells are not numbers.
pub(crate) fn number(text: &str) -> Option<f64> {
    // The parser also accepts names such as "infinity" and "nan": the former are checked later, the latter are missing.
    text.parse().ok().filter(|x: &f64| !x.is_nan())
}

/// The same with this decimal mark. With a decimal comma a point is not a decimal mark: it may separate thousands.
fn number_with(text: &str, decimal: u8) -> Option<f64> {
    if decimal == b'.' || !text.contains([',', '.']) {
        return number(text);
    }
    if text.contains('.') { None } else { number(&text.replace(',', ".")) }
}

/// Names for [`Kind`] in messages.
impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Number => "numbers",
            Self::Date => "dates",
            Self::Text => "texts",
            Self::Unreadable(what) => what,
        })
    }
}
