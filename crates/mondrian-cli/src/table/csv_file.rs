//! Rows of a CSV file.

use std::cell::Cell;
use std::io::Read;
use std::path::Path;
use std::rc::Rc;

use super::dialect::{Dialect, looks_like_decimal_commas};
use super::{Cells, Column, Kind, RawBatch, RowReader, Wanted, date, is_missing, number_with};
use crate::failure::{Failure, Outcome};

/// A requested column.
struct WantedColumn {
    column: usize,
    kind: Kind,
    name: String,
    decimal: u8,
}

/// A reader of a CSV file.
pub(super) struct CsvRows {
    reader: csv::Reader<Box<dyn Read>>,
    place: String,
    wanted: Vec<WantedColumn>,
    /// Whether the command has options to exclude columns or treat them as categories.
    selectable: bool,
    /// Rows read so far.
    row: u64,
    counters: Counters,
    record: csv::ByteRecord,
}

/// Bytes read so far, shared with the readers below.
#[derive(Debug, Clone, Default)]
pub(super) struct Counters {
    /// Of the (possibly compressed) file.
    pub(super) position: Rc<Cell<u64>>,
    /// Of the text since the last finished row.
    pub(super) in_row: Rc<Cell<u64>>,
}

impl CsvRows {
    pub(super) fn new(
        reader: Box<dyn Read>,
        dialect: &Dialect,
        place: &str,
        columns: &[Column],
        wanted: &[Wanted],
        selectable: bool,
        counters: Counters,
    ) -> Self {
        let reader = csv::ReaderBuilder::new()
            .delimiter(dialect.separator)
            .has_headers(dialect.header)
            .buffer_capacity(1 << 16)
            .from_reader(reader);
        let wanted = wanted
            .iter()
            .map(|w| {
                let column = &columns[w.column];
                WantedColumn { column: w.column, kind: w.kind, name: column.name.clone(), decimal: column.decimal }
            })
            .collect();
        Self { reader, place: place.to_owned(), wanted, selectable, row: 0, counters, record: csv::ByteRecord::new() }
    }

    fn failure(&self, error: &csv::Error) -> Failure {
        match error.kind() {
            csv::ErrorKind::Io(e) => Failure::reading(Path::new(&self.place), e),
            csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
                let line = pos.as_ref().map_or(self.row + 1, csv::Position::line);
                Failure::input(
                    format!("{}: line {line} has {len} cells where {expected_len} are expected", self.place),
                    "correct that line, or give --delimiter if the cells were cut wrongly",
                )
            }
            _ => Failure::input(format!("{}: row {}: {error}", self.place, self.row + 1), "correct that row"),
        }
    }

    fn not_of_its_kind(&self, wanted: &WantedColumn, text: &str) -> Failure {
        let name = &wanted.name;
        let shown: String = text.chars().take(40).collect();
        let kind = if wanted.kind == Kind::Date { "date such as 2024-01-31" } else { "number" };
        let comma = wanted.kind == Kind::Number && wanted.decimal == b'.' && looks_like_decimal_commas(text);
        let mut hint = if comma { "give --decimal , if commas are decimal marks" } else { "correct it" }.to_owned();
        if self.selectable {
            hint = format!(
                "{hint}, leave the column out with --exclude {name:?}, or take it as categories with --categorical {name:?}"
            );
        }
        Failure::input(format!("{}: row {}, column {name:?}: {shown:?} is not a {kind}", self.place, self.row), hint)
    }
}

impl RowReader for CsvRows {
    fn next_batch(&mut self, max_rows: usize) -> Outcome<Option<RawBatch>> {
        let first_row = self.row + 1;
        let mut columns: Vec<Cells> = self.wanted.iter().map(|w| Cells::new(w.kind)).collect();
        let mut n_rows = 0;
        let mut record = std::mem::take(&mut self.record);
        while n_rows < max_rows {
            match self.reader.read_byte_record(&mut record) {
                Ok(false) => break,
                Ok(true) => {}
                Err(e) => return Err(self.failure(&e)),
            }
            self.counters.in_row.set(0);
            self.row += 1;
            n_rows += 1;
            for (wanted, cells) in self.wanted.iter().zip(&mut columns) {
                let cell = record.get(wanted.column).unwrap_or_default().trim_ascii();
                match cells {
                    Cells::Numbers(numbers) => {
                        let text = std::str::from_utf8(cell).unwrap_or("\u{fffd}");
                        let value = match wanted.kind {
                            Kind::Date => date::days(text),
                            _ => number_with(text, wanted.decimal),
                        };
                        numbers.push(match value {
                            Some(x) => x,
                            None if is_missing(text) => f64::NAN,
                            None => return Err(self.not_of_its_kind(wanted, &String::from_utf8_lossy(cell))),
                        });
                    }
                    Cells::Texts(texts) => {
                        let text = String::from_utf8_lossy(cell);
                        texts.push((!is_missing(&text)).then(|| text.into_owned().into_boxed_str()));
                    }
                }
            }
        }
        self.record = record;
        Ok((n_rows > 0).then_some(RawBatch { first_row, n_rows, columns }))
    }

    fn position(&self) -> u64 {
        self.counters.position.get()
    }
}
