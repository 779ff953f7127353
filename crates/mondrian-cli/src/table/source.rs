//! One table to read: its location, its compression and its columns.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::rc::Rc;

use flate2::read::MultiGzDecoder;

use super::csv_file::{Counters, CsvRows};
use super::dialect::{self, Dialect, DialectOptions};
use super::parquet_file::{self, ParquetRows};
use super::quotes::{MOST_ROW_BYTES, QuoteGuard};
use super::{Column, Kind, RowReader, Wanted};
use crate::failure::{Failure, Outcome};

/// Bytes of a CSV file used to detect its dialect; more if they do not contain the first rows.
const START: u64 = 1 << 18;

/// The user's options for the file.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReadOptions {
    pub(crate) dialect: DialectOptions,
    /// Whether the command has `--exclude` and `--categorical`.
    pub(crate) selectable: bool,
}

/// A table that can be read repeatedly.
#[derive(Debug)]
pub(crate) struct Source {
    place: String,
    file: File,
    n_bytes: u64,
    packing: Packing,
    columns: Vec<Column>,
    /// Column numbers by name.
    numbers: HashMap<String, usize>,
    selectable: bool,
}

#[derive(Debug)]
enum Packing {
    Csv { gzip: bool, dialect: Dialect },
    Parquet,
}

impl Source {
    /// Opens a file, or standard input for `-`, and reads its start.
    pub(crate) fn open(path: &Path, options: ReadOptions) -> Outcome<Self> {
        let (place, file) = if path == Path::new("-") {
            ("standard input".to_owned(), spool(path, io::stdin().lock())?)
        } else {
            (path.display().to_string(), open_seekable(path)?)
        };
        Self::from_file(place, file, options)
    }

    /// A table embedded in the program.
    pub(crate) fn embedded(place: &str, text: &str) -> Outcome<Self> {
        Self::from_file(place.to_owned(), spool(Path::new(place), text.as_bytes())?, ReadOptions::default())
    }

    fn from_file(place: String, file: File, options: ReadOptions) -> Outcome<Self> {
        let fail = |e: &io::Error| Failure::reading(Path::new(&place), e);
        let n_bytes = file.metadata().map_err(|e| fail(&e))?.len();
        let mut magic = Vec::new();
        rewound(&file).and_then(|f| f.take(4).read_to_end(&mut magic)).map_err(|e| fail(&e))?;
        if magic == b"PAR1" {
            let columns = parquet_file::columns(&file, &place)?;
            return Self::new(place, file, n_bytes, Packing::Parquet, columns, options.selectable);
        }
        let gzip = magic.starts_with(&[0x1f, 0x8b]);
        let (start, whole) = start_of(&file, gzip, options.dialect.separator, &place)?;
        let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&start);
        let (dialect, columns) = dialect::detect(text, whole, options.dialect, &place)?;
        Self::new(place, file, n_bytes, Packing::Csv { gzip, dialect }, columns, options.selectable)
    }

    fn new(
        place: String,
        file: File,
        n_bytes: u64,
        packing: Packing,
        columns: Vec<Column>,
        selectable: bool,
    ) -> Outcome<Self> {
        let mut numbers = HashMap::with_capacity(columns.len());
        for (i, column) in columns.iter().enumerate() {
            if numbers.insert(column.name.clone(), i).is_some() {
                let what = format!("{place}: two columns are named {:?}", column.name);
                return Err(Failure::input(what, "rename one of them"));
            }
        }
        Ok(Self { place, file, n_bytes, packing, columns, numbers, selectable })
    }

    /// The file's name, for messages.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Size of the (possibly compressed) file, for progress.
    pub(crate) fn n_bytes(&self) -> u64 {
        self.n_bytes
    }

    /// All columns, in the file's order.
    pub(crate) fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// A description of the detected format.
    pub(crate) fn describe(&self) -> String {
        match &self.packing {
            Packing::Parquet => "Parquet".to_owned(),
            Packing::Csv { gzip, dialect } => format!(
                "CSV{}, separated by {}, {}{} row of names",
                if *gzip { " (gzip)" } else { "" },
                match dialect.separator {
                    b',' => "commas".to_owned(),
                    b';' => "semicolons".to_owned(),
                    b'\t' => "tabs".to_owned(),
                    other => format!("{:?}", char::from(other)),
                },
                if self.has_decimal_commas() { "decimal commas, " } else { "" },
                if dialect.header { "with a" } else { "without a" }
            ),
        }
    }

    fn has_decimal_commas(&self) -> bool {
        self.columns.iter().any(|column| column.decimal == b',' && column.kind == Kind::Number)
    }

    /// The index of the column of this name.
    pub(crate) fn find(&self, name: &str) -> Outcome<usize> {
        self.numbers.get(name).copied().ok_or_else(|| {
            let near = nearest(name, self.columns.iter().map(|c| c.name.as_str()));
            let hint = match near {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("it has {}", listed(self.columns.iter().map(|c| c.name.as_str()))),
            };
            Failure::input(format!("{} has no column {name:?}", self.place), hint)
        })
    }

    /// Starts reading from the first row.
    pub(crate) fn read(&self, wanted: &[Wanted]) -> Outcome<Box<dyn RowReader>> {
        crate::stages::count_table_read();
        match &self.packing {
            Packing::Parquet => {
                Ok(Box::new(ParquetRows::new(&self.file, &self.place, &self.columns, wanted, self.selectable)?))
            }
            Packing::Csv { gzip, dialect } => {
                let counters = Counters::default();
                let reader = decoded(&self.file, *gzip, Rc::clone(&counters.position))
                    .map_err(|e| Failure::reading(Path::new(&self.place), &e))?;
                let reader = QuoteGuard::new(reader, Some(dialect.separator), Rc::clone(&counters.in_row));
                Ok(Box::new(CsvRows::new(
                    Box::new(reader),
                    dialect,
                    &self.place,
                    &self.columns,
                    wanted,
                    self.selectable,
                    counters,
                )))
            }
        }
    }
}

/// Opens a file that can be read twice: pipes and similar inputs are copied to a temporary file first.
fn open_seekable(path: &Path) -> Outcome<File> {
    let fail = |e: &io::Error| Failure::reading(path, e);
    let file = File::open(path).map_err(|e| fail(&e))?;
    let metadata = file.metadata().map_err(|e| fail(&e))?;
    if metadata.is_dir() {
        return Err(fail(&io::Error::from(io::ErrorKind::IsADirectory)));
    }
    if metadata.is_file() { Ok(file) } else { spool(path, file) }
}

fn spool(path: &Path, mut from: impl Read) -> Outcome<File> {
    let mut copy = tempfile::tempfile().map_err(|e| Failure::Other(format!("no temporary file can be made: {e}")))?;
    io::copy(&mut from, &mut copy).map_err(|e| Failure::reading(path, &e))?;
    Ok(copy)
}

fn rewound(file: &File) -> io::Result<File> {
    let mut file = file.try_clone()?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

/// The start of a text, long enough to contain its first rows, and whether it is the whole text.
fn start_of(file: &File, gzip: bool, separator: Option<u8>, place: &str) -> Outcome<(Vec<u8>, bool)> {
    let fail = |e: &io::Error| Failure::reading(Path::new(place), e);
    let mut reader = decoded(file, gzip, Rc::default()).map_err(|e| fail(&e))?;
    let mut start = Vec::new();
    let mut length = START;
    loop {
        let missing = length - start.len() as u64;
        reader.by_ref().take(missing).read_to_end(&mut start).map_err(|e| fail(&e))?;
        check_text(&start, place)?;
        let whole = (start.len() as u64) < length;
        if whole || length > MOST_ROW_BYTES || dialect::is_enough(&start, separator) {
            break;
        }
        length *= 2;
    }
    let whole = (start.len() as u64) < length;
    // Unclosed quotes would turn all of it into one cell.
    let mut guard = QuoteGuard::new(start.as_slice(), separator, Rc::default());
    match io::copy(&mut guard, &mut io::sink()) {
        Err(e) if whole || length > MOST_ROW_BYTES => Err(fail(&e)),
        _ if length > MOST_ROW_BYTES && !dialect::is_enough(&start, separator) => Err(Failure::input(
            format!("{place}: the first rows are longer than {} MiB", MOST_ROW_BYTES >> 20),
            "is it a table? rows end with a line break",
        )),
        _ => Ok((start, whole)),
    }
}

/// Refuses bytes that are not text in UTF-8 or a similar encoding.
fn check_text(start: &[u8], place: &str) -> Outcome<()> {
    let odd_zeros = |from: usize| start.iter().skip(from).step_by(2).take(64).filter(|b| **b == 0).count();
    let utf_16 = start.starts_with(&[0xff, 0xfe])
        || start.starts_with(&[0xfe, 0xff])
        || (start.len() >= 8
            && odd_zeros(0).max(odd_zeros(1)) >= start.len().min(128) / 2 - 2
            && odd_zeros(0).min(odd_zeros(1)) == 0);
    if utf_16 {
        return Err(Failure::input(
            format!("{place} is text in UTF-16"),
            "write it as UTF-8, for instance with iconv -f UTF-16 -t UTF-8",
        ));
    }
    if start.contains(&0) {
        return Err(Failure::input(format!("{place} is not a table"), "give CSV (plain or gzip) or Parquet"));
    }
    Ok(())
}

/// The decompressed text of the file; `position` counts the compressed bytes.
fn decoded(file: &File, gzip: bool, position: Rc<Cell<u64>>) -> io::Result<Box<dyn Read>> {
    let counted = Counted { inner: rewound(file)?, position };
    let buffered = BufReader::with_capacity(1 << 16, counted);
    Ok(if gzip { Box::new(MultiGzDecoder::new(buffered)) } else { Box::new(buffered) })
}

struct Counted<R> {
    inner: R,
    position: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(into)?;
        self.position.set(self.position.get() + n as u64);
        Ok(n)
    }
}

/// At most eight names, for a message.
pub(crate) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let shown = names.iter().take(8).copied().collect::<Vec<_>>().join(", ");
    if names.len() > 8 { format!("{shown} and {} more", names.len() - 8) } else { shown }
}

/// A similar name: equal except for case, or one or two edits away.
fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names
        .map(|other| (edits(&name.to_lowercase(), &other.to_lowercase()), other))
        .filter(|&(distance, _)| distance <= 2 && 3 * distance <= name.chars().count())
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, other)| other)
}

/// Levenshtein's distance.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, &to) in b.iter().enumerate() {
            let replaced = corner + usize::from(from != to);
            corner = row[j + 1];
            row[j + 1] = replaced.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_offered() {
        let names = ["temperature", "vacuum", "AT"];
        assert_eq!(nearest("temprature", names.into_iter()), Some("temperature"));
        assert_eq!(nearest("Vacuum", names.into_iter()), Some("vacuum"));
        assert_eq!(nearest("pressure", names.into_iter()), None);
        assert_eq!(edits("kitten", "sitting"), 3);
    }
}
