//! One table to read: where it is, how it is packed, which columns it has.

use std::cell::Cell;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::rc::Rc;

use flate2::read::MultiGzDecoder;

use super::csv_file::CsvRows;
use super::dialect::{self, Dialect};
use super::parquet_file::{self, ParquetRows};
use super::{Column, RowReader, Wanted};
use crate::failure::{Failure, Outcome};

/// How much of a CSV file is looked at to find its dialect.
const START: u64 = 1 << 18;

/// What the user said about the file.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReadOptions {
    pub(crate) separator: Option<u8>,
    pub(crate) header: Option<bool>,
}

/// A table that can be read again and again.
#[derive(Debug)]
pub(crate) struct Source {
    place: String,
    file: File,
    n_bytes: u64,
    packing: Packing,
    columns: Vec<Column>,
}

#[derive(Debug)]
enum Packing {
    Csv { gzip: bool, dialect: Dialect },
    Parquet,
}

impl Source {
    /// Opens a file, or standard input for `-`, and looks at its start.
    pub(crate) fn open(path: &Path, options: ReadOptions) -> Outcome<Self> {
        let (place, file) = if path == Path::new("-") {
            ("standard input".to_owned(), spool(path, io::stdin().lock())?)
        } else {
            (path.display().to_string(), open_seekable(path)?)
        };
        Self::from_file(place, file, options)
    }

    /// A table that is part of the program.
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
            return Self { place, file, n_bytes, packing: Packing::Parquet, columns }.checked();
        }
        let gzip = magic.starts_with(&[0x1f, 0x8b]);
        let mut start = Vec::new();
        decoded(&file, gzip, Rc::default())
            .and_then(|reader| reader.take(START).read_to_end(&mut start))
            .map_err(|e| fail(&e))?;
        let whole = (start.len() as u64) < START;
        if start.contains(&0) {
            return Err(Failure::input(format!("{place} is not a table"), "give CSV (plain or gzip) or Parquet"));
        }
        let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&start);
        let (dialect, columns) = dialect::detect(text, whole, options.separator, options.header, &place)?;
        Self { place, file, n_bytes, packing: Packing::Csv { gzip, dialect }, columns }.checked()
    }

    fn checked(self) -> Outcome<Self> {
        let mut seen = HashSet::new();
        match self.columns.iter().find(|c| !seen.insert(c.name.as_str())) {
            None => Ok(self),
            Some(twice) => Err(Failure::input(
                format!("{}: two columns are named {:?}", self.place, twice.name),
                "rename one of them",
            )),
        }
    }

    /// The file's name, for messages.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Size of the file as it lies there, for progress.
    pub(crate) fn n_bytes(&self) -> u64 {
        self.n_bytes
    }

    /// All columns, in the file's order.
    pub(crate) fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// How the file was understood, for people.
    pub(crate) fn describe(&self) -> String {
        match &self.packing {
            Packing::Parquet => "Parquet".to_owned(),
            Packing::Csv { gzip, dialect } => format!(
                "CSV{}, separated by {}, {} row of names",
                if *gzip { " (gzip)" } else { "" },
                match dialect.separator {
                    b',' => "commas".to_owned(),
                    b';' => "semicolons".to_owned(),
                    b'\t' => "tabs".to_owned(),
                    other => format!("{:?}", char::from(other)),
                },
                if dialect.header { "with a" } else { "without a" }
            ),
        }
    }

    /// The index of the column of this name.
    pub(crate) fn find(&self, name: &str) -> Outcome<usize> {
        self.columns.iter().position(|c| c.name == name).ok_or_else(|| {
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
        match &self.packing {
            Packing::Parquet => Ok(Box::new(ParquetRows::new(&self.file, &self.place, &self.columns, wanted)?)),
            Packing::Csv { gzip, dialect } => {
                let position = Rc::<Cell<u64>>::default();
                let reader = decoded(&self.file, *gzip, Rc::clone(&position))
                    .map_err(|e| Failure::reading(Path::new(&self.place), &e))?;
                Ok(Box::new(CsvRows::new(reader, dialect, &self.place, &self.columns, wanted, position)))
            }
        }
    }
}

/// Opens a file that can be read twice: pipes and the like are copied to a temporary file first.
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

/// The file's text from the start, unpacked; `position` follows the packed bytes.
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

/// The name that is nearly this one: equal but for case, or one or two edits away.
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
