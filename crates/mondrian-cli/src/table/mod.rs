//! Tables from files: CSV (plain, gzip, standard input) and Parquet, read in batches, as often as needed.

mod csv_file;
mod dialect;
mod parquet_file;
mod source;

pub(crate) use source::{ReadOptions, Source, listed};

use crate::failure::Outcome;

/// What the cells of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Numbers; a cell that is none is an error.
    Number,
    /// Texts: categories.
    Text,
}

/// A column of a file.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// A column to read, and as what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) column: usize,
    pub(crate) kind: Kind,
}

/// The cells of one wanted column in one batch.
#[derive(Debug)]
pub(crate) enum Cells {
    /// NaN is a missing cell; infinities are kept, and judged later.
    Numbers(Vec<f64>),
    /// `None` is a missing cell.
    Texts(Vec<Option<Box<str>>>),
}

impl Cells {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Number => Self::Numbers(Vec::new()),
            Kind::Text => Self::Texts(Vec::new()),
        }
    }
}

/// Some rows of a file.
#[derive(Debug)]
pub(crate) struct RawBatch {
    /// The number of the first row, counted from 1 after the header.
    pub(crate) first_row: u64,
    pub(crate) n_rows: usize,
    /// As many as were wanted, in that order.
    pub(crate) columns: Vec<Cells>,
}

/// A running read.
pub(crate) trait RowReader {
    /// The next rows, at most `max_rows`; none at the end.
    fn next_batch(&mut self, max_rows: usize) -> Outcome<Option<RawBatch>>;

    /// How far into the file, in bytes.
    fn position(&self) -> u64;
}

/// Texts that stand for a missing cell.
const MISSING: [&str; 10] = ["", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "?"];

fn is_missing(text: &str) -> bool {
    MISSING.contains(&text)
}

/// A number as people write it in tables; `None` for anything else. Missing texts are not numbers.
fn number(text: &str) -> Option<f64> {
    // The parser also takes names such as "infinity" and "nan": the first are judged later, the last are missing.
    text.parse().ok().filter(|x: &f64| !x.is_nan())
}
