//! How a CSV file is written: what separates its cells, and whether its first row holds names.

use super::{Column, Kind, is_missing, number};
use crate::failure::{Failure, Outcome};

/// Separators looked for.
const SEPARATORS: [u8; 4] = [b',', b';', b'\t', b'|'];
/// Lines looked at to find the separator.
const LINES: usize = 50;
/// Rows looked at to find what a column holds.
const ROWS: usize = 1000;

/// What was found (or told).
#[derive(Debug, Clone)]
pub(super) struct Dialect {
    pub(super) separator: u8,
    pub(super) header: bool,
}

/// Finds dialect and columns from the start of a file. `whole` says that the start is all there is.
pub(super) fn detect(
    start: &[u8],
    whole: bool,
    separator: Option<u8>,
    header: Option<bool>,
    place: &str,
) -> Outcome<(Dialect, Vec<Column>)> {
    let start = if whole { start } else { &start[..start.iter().rposition(|&b| b == b'\n').unwrap_or(start.len())] };
    let separator = separator.unwrap_or_else(|| find_separator(start));
    let rows = first_rows(start, separator);
    let Some(first) = rows.first() else {
        return Err(Failure::input(format!("{place} is empty"), "give a table with a row of names and rows of cells"));
    };
    let header = header.unwrap_or_else(|| first.iter().all(|cell| number(cell).is_none()));
    let data = &rows[usize::from(header)..];
    if data.is_empty() {
        return Err(Failure::input(format!("{place} has names but no rows"), "give at least one row of cells"));
    }
    let columns = (0..first.len())
        .map(|i| Column { name: column_name(header.then(|| first[i].as_str()), i), kind: column_kind(data, i) })
        .collect();
    Ok((Dialect { separator, header }, columns))
}

fn column_name(cell: Option<&str>, index: usize) -> String {
    cell.filter(|c| !c.is_empty()).map_or_else(|| format!("column{}", index + 1), str::to_owned)
}

/// Texts only where no cell is a number: one text among numbers is more likely a mistake than a category.
fn column_kind(rows: &[Vec<String>], index: usize) -> Kind {
    let mut present = rows.iter().filter_map(|row| row.get(index)).filter(|cell| !is_missing(cell)).peekable();
    if present.peek().is_some() && present.all(|cell| number(cell).is_none()) { Kind::Text } else { Kind::Number }
}

/// The separator that cuts the lines into equally many cells, most cells first.
fn find_separator(start: &[u8]) -> u8 {
    let lines: Vec<&[u8]> = start.split(|&b| b == b'\n').filter(|l| !l.trim_ascii().is_empty()).take(LINES).collect();
    let score = |separator: u8| {
        let counts: Vec<usize> = lines.iter().map(|line| count_outside_quotes(line, separator)).collect();
        let first = counts.first().copied().unwrap_or(0);
        let agreeing = counts.iter().filter(|&&c| c == first).count();
        if first == 0 { (0, 0) } else { (agreeing, first) }
    };
    // The first of equals: `max_by_key` would take the last.
    let mut best = (b',', (0, 0));
    for separator in SEPARATORS {
        let found = score(separator);
        if found > best.1 {
            best = (separator, found);
        }
    }
    best.0
}

fn count_outside_quotes(line: &[u8], separator: u8) -> usize {
    let mut quoted = false;
    line.iter()
        .filter(|&&b| {
            quoted ^= b == b'"';
            b == separator && !quoted
        })
        .count()
}

fn first_rows(start: &[u8], separator: u8) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(separator)
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(start);
    let mut rows = Vec::new();
    let mut record = csv::ByteRecord::new();
    while rows.len() <= ROWS && reader.read_byte_record(&mut record).unwrap_or(false) {
        rows.push(record.iter().map(|cell| String::from_utf8_lossy(cell).into_owned()).collect());
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> (u8, bool, Vec<(String, Kind)>) {
        let (dialect, columns) = detect(text.as_bytes(), true, None, None, "t").unwrap();
        (dialect.separator, dialect.header, columns.into_iter().map(|c| (c.name, c.kind)).collect())
    }

    #[test]
    fn separators_and_headers_are_found() {
        for (text, separator, header) in [
            ("a,b\n1,2\n3,4\n", b',', true),
            ("1,2\n3,4", b',', false),
            ("a;b;c\n1,5;2;3\n2,5;2;4\n", b';', true),
            ("a\tb\n1\t2\n", b'\t', true),
            ("a|b\n\"x|y\"|2\n", b'|', true),
            ("\"a, or b\",c\n1,2\n", b',', true),
            ("lonely\n1\n2\n", b',', true),
            ("7\n8\n", b',', false),
        ] {
            let (s, h, _) = found(text);
            assert_eq!((s as char, h), (separator as char, header), "{text:?}");
        }
    }

    #[test]
    fn names_and_kinds_are_found() {
        let (_, _, columns) = found("id,,colour,mixed,void\n1,2,red,3,NA\n2,?,blue,x,\n");
        let expected = [
            ("id", Kind::Number),
            ("column2", Kind::Number),
            ("colour", Kind::Text),
            ("mixed", Kind::Number),
            ("void", Kind::Number),
        ];
        assert_eq!(columns, expected.map(|(n, k)| (n.to_owned(), k)));
    }

    #[test]
    fn nothing_to_read_is_the_users_to_mend() {
        for text in ["", "\n\n", "a,b\n"] {
            assert_eq!(detect(text.as_bytes(), true, None, None, "t").unwrap_err().status(), 2, "{text:?}");
        }
    }
}
