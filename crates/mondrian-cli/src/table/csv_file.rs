//! Rows of a CSV file.

use std::cell::Cell;
use std::io::{self, Read};
use std::path::Path;
use std::rc::Rc;

use super::dialect::Dialect;
use super::{Cells, Column, Kind, RawBatch, RowReader, Wanted, is_missing, number};
use crate::failure::{Failure, Outcome};

/// A running read of a CSV file.
pub(super) struct CsvRows {
    reader: csv::Reader<Box<dyn Read>>,
    place: String,
    /// Column number, kind and name of what is wanted.
    wanted: Vec<(Wanted, String)>,
    /// Rows read so far.
    row: u64,
    position: Rc<Cell<u64>>,
    record: csv::ByteRecord,
}

impl CsvRows {
    pub(super) fn new(
        reader: Box<dyn Read>,
        dialect: &Dialect,
        place: &str,
        columns: &[Column],
        wanted: &[Wanted],
        position: Rc<Cell<u64>>,
    ) -> Self {
        let reader = csv::ReaderBuilder::new()
            .delimiter(dialect.separator)
            .has_headers(dialect.header)
            .buffer_capacity(1 << 16)
            .from_reader(reader);
        let wanted = wanted.iter().map(|&w| (w, columns[w.column].name.clone())).collect();
        Self { reader, place: place.to_owned(), wanted, row: 0, position, record: csv::ByteRecord::new() }
    }

    fn failure(&self, error: &csv::Error) -> Failure {
        match error.kind() {
            csv::ErrorKind::Io(e) => Failure::reading(Path::new(&self.place), e),
            csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
                let line = pos.as_ref().map_or(self.row + 1, csv::Position::line);
                Failure::input(
                    format!("{}: line {line} has {len} cells where {expected_len} are expected", self.place),
                    "hint that line, or give --delimiter if the cells were cut wrongly",
                )
            }
            _ => Failure::input(format!("{}: row {}: {error}", self.place, self.row + 1), "hint that row"),
        }
    }

    fn not_a_number(&self, name: &str, text: &str) -> Failure {
        let shown: String = text.chars().take(40).collect();
        Failure::input(
            format!("{}: row {}, column {name:?}: {shown:?} is not a number", self.place, self.row),
            format!(
                "correct it, leave the column out with --exclude {name:?}, or take it as categories with --categorical {name:?}"
            ),
        )
    }
}

impl RowReader for CsvRows {
    fn next_batch(&mut self, max_rows: usize) -> Outcome<Option<RawBatch>> {
        let first_row = self.row + 1;
        let mut columns: Vec<Cells> = self.wanted.iter().map(|(w, _)| Cells::new(w.kind)).collect();
        let mut n_rows = 0;
        let mut record = std::mem::take(&mut self.record);
        while n_rows < max_rows {
            match self.reader.read_byte_record(&mut record) {
                Ok(false) => break,
                Ok(true) => {}
                Err(e) => return Err(self.failure(&e)),
            }
            self.row += 1;
            n_rows += 1;
            for ((wanted, name), cells) in self.wanted.iter().zip(&mut columns) {
                let cell = record.get(wanted.column).unwrap_or_default().trim_ascii();
                match cells {
                    Cells::Numbers(numbers) => {
                        let text = std::str::from_utf8(cell).unwrap_or("\u{fffd}");
                        numbers.push(match number(text) {
                            Some(x) => x,
                            None if is_missing(text) => f64::NAN,
                            None => return Err(self.not_a_number(name, &String::from_utf8_lossy(cell))),
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
        self.position.get()
    }
}

/// Names for [`Kind`] in messages.
impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Number => "numbers",
            Self::Text => "texts",
        })
    }
}

/// Errors of reading that are the file's fault reach the user as such.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Other(error.to_string())
    }
}
