//! The dialect of a CSV file: its separator, its decimal marks, and whether its first row is a header.

use super::{Column, Kind, date, is_missing, number_with};
use crate::failure::{Failure, Outcome};

/// Candidate separators.
pub(super) const SEPARATORS: [u8; 4] = [b',', b';', b'\t', b'|'];
/// Lines used to detect the separator.
const LINES: usize = 50;
/// Largest number of rows used to detect the type of a column.
const ROWS: usize = 1000;
/// Approximate number of cells used for it; at least two rows.
const CELLS: usize = 1 << 21;

/// The user's options.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DialectOptions {
    pub(crate) separator: Option<u8>,
    pub(crate) header: Option<bool>,
    /// The decimal mark, a point or a comma.
    pub(crate) decimal: Option<u8>,
}

/// The detected or given dialect.
#[derive(Debug, Clone)]
pub(super) struct Dialect {
    pub(super) separator: u8,
    pub(super) header: bool,
}

/// Whether the start of a file is long enough: it contains a row after the first.
pub(super) fn is_enough(start: &[u8], separator: Option<u8>) -> bool {
    let start = whole_lines(start);
    !start.is_empty() && first_rows(start, separator.unwrap_or_else(|| find_separator(start)), 3).len() >= 3
}

fn whole_lines(start: &[u8]) -> &[u8] {
    &start[..start.iter().rposition(|&b| b == b'\n' || b == b'\r').unwrap_or(0)]
}

/// Detects dialect and columns from the start of a file. `whole` means that the start is the whole file.
pub(super) fn detect(
    start: &[u8],
    whole: bool,
    options: DialectOptions,
    place: &str,
) -> Outcome<(Dialect, Vec<Column>)> {
    let start = if whole { start } else { whole_lines(start) };
    let separator = options.separator.unwrap_or_else(|| find_separator(start));
    let rows = first_rows(start, separator, ROWS + 1);
    let Some(first) = rows.first() else {
        return Err(Failure::input(format!("{place} is empty"), "give a table with a row of names and rows of cells"));
    };
    let header = options.header.unwrap_or_else(|| first.iter().all(|cell| !is_value(cell, separator, options.decimal)));
    let data = &rows[usize::from(header)..];
    if data.is_empty() {
        return Err(Failure::input(format!("{place} has names but no rows"), "give at least one row of cells"));
    }
    let decimals = decimals(data, first.len(), separator, options.decimal);
    let columns = (0..first.len())
        .map(|i| {
            let name = column_name(header.then(|| first[i].as_str()), i);
            Column { name, kind: column_kind(data, i, decimals[i]), decimal: decimals[i] }
        })
        .collect();
    Ok((Dialect { separator, header }, columns))
}

/// A number or a date: not the name of a column.
fn is_value(cell: &str, separator: u8, decimal: Option<u8>) -> bool {
    let comma = decimal == Some(b',') || (decimal.is_none() && separator != b',');
    number_with(cell, b'.').is_some() || (comma && number_with(cell, b',').is_some()) || date::days(cell).is_some()
}

fn column_name(cell: Option<&str>, index: usize) -> String {
    cell.filter(|c| !c.is_empty()).map_or_else(|| format!("column{}", index + 1), str::to_owned)
}

fn present(rows: &[Vec<String>], index: usize) -> impl Iterator<Item = &String> {
    rows.iter().filter_map(move |row| row.get(index)).filter(|cell| !is_missing(cell))
}

/// The decimal mark of every column: a comma if the cells are not separated by commas and all cells of some column are
/// numbers only with decimal commas. A column with decimal points keeps them.
fn decimals(rows: &[Vec<String>], n_columns: usize, separator: u8, given: Option<u8>) -> Vec<u8> {
    let given = if separator == b',' { given.or(Some(b'.')) } else { given };
    if let Some(mark) = given {
        return vec![mark; n_columns];
    }
    let has_commas = |i: usize| {
        present(rows, i).any(|cell| cell.contains(',')) && present(rows, i).all(|c| number_with(c, b',').is_some())
    };
    if !(0..n_columns).any(has_commas) {
        return vec![b'.'; n_columns];
    }
    let has_points = |i: usize| {
        present(rows, i).any(|cell| cell.contains('.')) && present(rows, i).all(|c| number_with(c, b'.').is_some())
    };
    (0..n_columns).map(|i| if has_points(i) { b'.' } else { b',' }).collect()
}

/// Text only if no cell is a number: a text among numbers is more likely an error than a category.
fn column_kind(rows: &[Vec<String>], index: usize, decimal: u8) -> Kind {
    if present(rows, index).next().is_none() || present(rows, index).any(|cell| number_with(cell, decimal).is_some()) {
        Kind::Number
    } else if present(rows, index).all(|cell| date::days(cell).is_some()) {
        Kind::Date
    } else {
        Kind::Text
    }
}

/// Whether the texts of a column would be numbers if commas were decimal marks.
pub(super) fn looks_like_decimal_commas(text: &str) -> bool {
    text.contains(',') && number_with(text, b',').is_some()
}

/// The separator that splits the lines into equal numbers of cells, preferring more cells.
fn find_separator(start: &[u8]) -> u8 {
    let lines: Vec<&[u8]> =
        start.split(|&b| b == b'\n' || b == b'\r').filter(|l| !l.trim_ascii().is_empty()).take(LINES).collect();
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

fn first_rows(start: &[u8], separator: u8, most: usize) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(separator)
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(start);
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut n_cells = 0;
    let mut record = csv::ByteRecord::new();
    while rows.len() < most
        && (rows.len() < 3 || n_cells < CELLS)
        && reader.read_byte_record(&mut record).unwrap_or(false)
    {
        n_cells += record.len();
        rows.push(record.iter().map(|cell| String::from_utf8_lossy(cell).into_owned()).collect());
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> (u8, bool, Vec<(String, Kind)>) {
        let (dialect, columns) = detect(text.as_bytes(), true, DialectOptions::default(), "t").unwrap();
        (dialect.separator, dialect.header, columns.into_iter().map(|c| (c.name, c.kind)).collect())
    }

    #[test]
    fn separators_and_headers_are_found() {
        for (text, separator, header) in [
            ("a,b\n1,2\n3,4\n", b',', true),
            ("1,2\n3,4", b',', false),
            ("a;b;c\n1,5;2;3\n2,5;2;4\n", b';', true),
            ("1,5;2;x\n2,5;3;y\n", b';', false),
            ("2024-01-01,x\n2024-01-02,y\n", b',', false),
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
        let (_, _, columns) = found("id,,colour,mixed,void,day\n1,2,red,3,NA,2024-01-31\n2,?,blue,x,,NA\n");
        let expected = [
            ("id", Kind::Number),
            ("column2", Kind::Number),
            ("colour", Kind::Text),
            ("mixed", Kind::Number),
            ("void", Kind::Number),
            ("day", Kind::Date),
        ];
        assert_eq!(columns, expected.map(|(n, k)| (n.to_owned(), k)));
    }

    #[test]
    fn decimal_commas_are_found_where_cells_are_not_separated_by_them() {
        let kinds = |text: &str| found(text).2.into_iter().map(|(_, kind)| kind).collect::<Vec<_>>();
        assert_eq!(kinds("a;b;c\n1,5;2;x\n2,5;3;1,2,3\n"), [Kind::Number, Kind::Number, Kind::Text]);
        assert_eq!(kinds("a;b\n1,5;2.5\n2,5;3\n"), [Kind::Number, Kind::Number]);
        assert_eq!(kinds("a,b\n\"1,5\",2\n\"2,5\",3\n"), [Kind::Text, Kind::Number]);
    }

    #[test]
    fn a_table_without_rows_is_refused() {
        for text in ["", "\n\n", "a,b\n"] {
            let found = detect(text.as_bytes(), true, DialectOptions::default(), "t");
            assert_eq!(found.unwrap_err().status(), 2, "{text:?}");
        }
    }
}
