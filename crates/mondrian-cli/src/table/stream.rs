//! Rows of a stream: CSV with a header, or one JSON object per line, from a pipe that may never end.

use std::cell::Cell;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::rc::Rc;

use serde_json::Value;

use super::dialect::SEPARATORS;
use super::quotes::{MOST_ROW_BYTES, QuoteGuard};
use super::{Cells, Kind, RawBatch, date, is_missing, number};
use crate::failure::{Failure, Outcome};

/// The texts of the requested cells of one row; `None` is a missing cell.
pub(crate) type TextRow = Vec<Option<Box<str>>>;

/// A reader of a stream.
pub(crate) struct RowStream<R: Read> {
    place: String,
    wanted: Vec<String>,
    lines: Lines<R>,
    /// Rows read so far.
    row: u64,
}

enum Lines<R: Read> {
    Csv { reader: Box<csv::Reader<QuoteGuard<Chained<R>>>>, columns: Vec<usize>, in_row: Rc<Cell<u64>> },
    Json(BufReader<R>, Option<Vec<u8>>),
    Empty,
}

/// The first line, which was already read, and the rest.
type Chained<R> = std::io::Chain<std::io::Cursor<Vec<u8>>, BufReader<R>>;

impl<R: Read> RowStream<R> {
    /// Starts reading; the first byte that is not a space distinguishes JSON from CSV.
    pub(crate) fn open(from: R, wanted: Vec<String>, separator: Option<u8>, place: &str) -> Outcome<Self> {
        let mut reader = BufReader::with_capacity(1 << 16, from);
        let mut first = Vec::new();
        while first.trim_ascii().is_empty() {
            first.clear();
            if read_line(&mut reader, &mut first, place)? == 0 {
                return Ok(Self { place: place.to_owned(), wanted, lines: Lines::Empty, row: 0 });
            }
        }
        let first = first.strip_prefix(b"\xef\xbb\xbf").map(<[u8]>::to_vec).unwrap_or(first);
        if first.trim_ascii_start().starts_with(b"{") {
            return Ok(Self { place: place.to_owned(), wanted, lines: Lines::Json(reader, Some(first)), row: 0 });
        }
        let count = |separator: &u8| first.split(|b| b == separator).count();
        let found = SEPARATORS.into_iter().rev().max_by_key(count).unwrap_or(b',');
        let separator = separator.unwrap_or(found);
        let in_row = Rc::<Cell<u64>>::default();
        let chained = std::io::Cursor::new(first).chain(reader);
        let guard = QuoteGuard::new(chained, Some(separator), Rc::clone(&in_row));
        // A row must be returned as soon as its line has ended. This holds, since a read from a pipe returns the
        // available bytes.
        let reader = csv::ReaderBuilder::new().delimiter(separator).has_headers(true).from_reader(guard);
        let mut stream = Self { place: place.to_owned(), wanted, lines: Lines::Empty, row: 0 };
        let mut reader = Box::new(reader);
        let names = reader.byte_headers().map_err(|e| stream.failure(&e))?.clone();
        let names: Vec<String> = names.iter().map(|n| String::from_utf8_lossy(n.trim_ascii()).into_owned()).collect();
        let mut columns = Vec::new();
        for name in &stream.wanted {
            columns.push(names.iter().position(|n| n == name).ok_or_else(|| {
                Failure::input(
                    format!("{place} has no column {name:?}"),
                    format!(
                        "the first line must name the columns; it has {}",
                        super::listed(names.iter().map(String::as_str))
                    ),
                )
            })?);
        }
        in_row.set(0);
        stream.lines = Lines::Csv { reader, columns, in_row };
        Ok(stream)
    }

    /// The next row; none at the end.
    pub(crate) fn next_row(&mut self) -> Outcome<Option<TextRow>> {
        let text = |cell: &[u8]| {
            let text = String::from_utf8_lossy(cell.trim_ascii());
            (!is_missing(&text)).then(|| text.into_owned().into_boxed_str())
        };
        match &mut self.lines {
            Lines::Empty => Ok(None),
            Lines::Csv { reader, columns, in_row } => {
                let mut record = csv::ByteRecord::new();
                match reader.read_byte_record(&mut record) {
                    Ok(false) => return Ok(None),
                    Ok(true) => {}
                    Err(e) => return Err(self.failure(&e)),
                }
                in_row.set(0);
                self.row += 1;
                Ok(Some(columns.iter().map(|&i| record.get(i).and_then(text)).collect()))
            }
            Lines::Json(reader, first) => {
                let mut line = first.take().unwrap_or_default();
                while line.trim_ascii().is_empty() {
                    line.clear();
                    if read_line(reader, &mut line, &self.place)? == 0 {
                        return Ok(None);
                    }
                }
                self.row += 1;
                self.object(&line).map(Some)
            }
        }
    }

    fn object(&self, line: &[u8]) -> Outcome<TextRow> {
        let wrong = |what: String| {
            Failure::input(format!("{}: row {}: {what}", self.place, self.row), "give one JSON object per line")
        };
        let value: Value = serde_json::from_slice(line).map_err(|e| wrong(format!("not JSON: {e}")))?;
        let Value::Object(object) = value else { return Err(wrong("not a JSON object".to_owned())) };
        let cell = |name: &String| match object.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok((!is_missing(text.trim())).then(|| text.trim().into())),
            Some(Value::Number(x)) => Ok(Some(x.to_string().into_boxed_str())),
            Some(Value::Bool(b)) => Ok(Some(if *b { "1".into() } else { "0".into() })),
            Some(_) => Err(wrong(format!("{name:?} is neither a number nor a text"))),
        };
        self.wanted.iter().map(cell).collect()
    }

    fn failure(&self, error: &csv::Error) -> Failure {
        match error.kind() {
            csv::ErrorKind::Io(e) => Failure::reading(Path::new(&self.place), e),
            csv::ErrorKind::UnequalLengths { expected_len, len, .. } => Failure::input(
                format!("{}: row {} has {len} cells where {expected_len} are expected", self.place, self.row + 1),
                "correct that row, or give --delimiter if the cells were cut wrongly",
            ),
            _ => Failure::input(format!("{}: row {}: {error}", self.place, self.row + 1), "correct that row"),
        }
    }
}

/// A line with its end, of at most this many bytes; 0 at the end of the stream.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>, place: &str) -> Outcome<usize> {
    let n = reader
        .by_ref()
        .take(MOST_ROW_BYTES)
        .read_until(b'\n', line)
        .map_err(|e| Failure::reading(Path::new(place), &e))?;
    if n as u64 == MOST_ROW_BYTES {
        let what = format!("{place}: a line is longer than {} MiB", MOST_ROW_BYTES >> 20);
        return Err(Failure::input(what, "is it a table? rows end with a line break"));
    }
    Ok(n)
}

/// One row of a stream in the form of raw rows of a file, by the types of its cells.
pub(crate) fn raw_row(
    cells: &TextRow,
    kinds: &[Kind],
    names: &[String],
    number_of_row: u64,
    place: &str,
) -> Outcome<RawBatch> {
    let mut columns = Vec::with_capacity(cells.len());
    for ((cell, kind), name) in cells.iter().zip(kinds).zip(names) {
        let value = |parsed: fn(&str) -> Option<f64>, what: &str| match cell.as_deref() {
            None => Ok(Cells::Numbers(vec![f64::NAN])),
            Some(text) => match parsed(text) {
                Some(x) => Ok(Cells::Numbers(vec![x])),
                None => Err(Failure::input(
                    format!("{place}: row {number_of_row}, column {name:?}: {text:?} is not a {what}"),
                    "correct it",
                )),
            },
        };
        columns.push(match kind {
            Kind::Number => value(number, "number")?,
            Kind::Date => value(date::days, "date such as 2024-01-31")?,
            Kind::Text | Kind::Unreadable(_) => Cells::Texts(vec![cell.clone()]),
        });
    }
    Ok(RawBatch { first_row: number_of_row, n_rows: 1, columns })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Outcome<Vec<Vec<Option<String>>>> {
        let wanted = vec!["y".to_owned(), "x".to_owned()];
        let mut stream = RowStream::open(text.as_bytes(), wanted, None, "a stream")?;
        let mut out = Vec::new();
        while let Some(row) = stream.next_row()? {
            out.push(row.into_iter().map(|cell| cell.map(String::from)).collect());
        }
        Ok(out)
    }

    #[test]
    fn csv_and_json_lines_are_told_apart() {
        let expected = vec![vec![Some("a, b".to_owned()), Some("1".to_owned())], vec![None, Some("2.5".to_owned())]];
        assert_eq!(rows("x,z,y\n1,0,\"a, b\"\n2.5,0,NA\n").unwrap(), expected);
        assert_eq!(rows("x;z;y\r\n1;0;\"a, b\"\r\n2.5;0;").unwrap(), expected);
        assert_eq!(rows("\n{\"x\": 1, \"y\": \"a, b\"}\n\n{\"y\": null, \"x\": 2.5, \"q\": [1]}").unwrap(), expected);
        assert_eq!(rows("").unwrap(), Vec::<Vec<Option<String>>>::new());
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, part) in [
            ("a,b\n1,2\n", "no column \"y\""),
            ("x,y\n1,2\n3\n", "row 2 has 1 cells"),
            ("x,y\n1,\"2\n3,4\n", "quote opened at line 2 is never closed"),
            ("{\"x\": 1}\n[1]\n", "row 2: not a JSON object"),
            ("{\"x\": 1}\n{\n", "row 2: not JSON"),
            ("{\"x\": [1]}\n", "\"x\" is neither"),
        ] {
            let failure = rows(text).unwrap_err();
            assert_eq!(failure.status(), 2);
            assert!(failure.to_string().contains(part), "{text:?}: {failure}");
        }
    }
}
