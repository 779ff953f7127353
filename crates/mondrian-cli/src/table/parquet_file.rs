//! Rows of a Parquet file, by typed column readers: numbers, truth values, dates and texts; nothing nested.

use std::fs::File;

use parquet::basic::{Compression, ConvertedType, LogicalType, TimeUnit, Type};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use super::date::{self, SECONDS_PER_DAY};
use super::{Cells, Column, Kind, RawBatch, RowReader, Wanted, is_missing};
use crate::failure::{Failure, Outcome};

/// The columns of a file.
pub(super) fn columns(file: &File, place: &str) -> Outcome<Vec<Column>> {
    let reader = open(file, place)?;
    let schema = reader.metadata().file_metadata().schema_descr();
    if reader.metadata().file_metadata().num_rows() <= 0 {
        return Err(Failure::input(format!("{place} has no rows"), "give at least one row"));
    }
    check_compression(&reader, place)?;
    Ok(schema.columns().iter().map(|column| Column::new(column.path().string(), kind(column))).collect())
}

/// Refuses unsupported compression; the file itself may be valid.
fn check_compression(reader: &SerializedFileReader<File>, place: &str) -> Outcome<()> {
    for group in reader.metadata().row_groups() {
        for column in group.columns() {
            let name = match column.compression() {
                Compression::BROTLI(_) => "Brotli",
                Compression::LZO => "LZO",
                _ => continue,
            };
            return Err(Failure::input(
                format!("{place} is compressed with {name}, which cannot be read"),
                "write it again with zstd, snappy, gzip or lz4",
            ));
        }
    }
    Ok(())
}

fn open(file: &File, place: &str) -> Outcome<SerializedFileReader<File>> {
    let file = file.try_clone().map_err(|e| Failure::reading(std::path::Path::new(place), &e))?;
    SerializedFileReader::new(file).map_err(|e| damaged(place, &e))
}

fn damaged(place: &str, error: &ParquetError) -> Failure {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    Failure::input(format!("{place} is not a valid Parquet file: {first}"), "write it again")
}

fn kind(column: &ColumnDescriptor) -> Kind {
    if column.max_rep_level() > 0 {
        return Kind::Unreadable("lists");
    }
    if per_day(column).is_some() {
        return Kind::Date;
    }
    let decimal = column.converted_type() == ConvertedType::DECIMAL
        || matches!(column.logical_type_ref(), Some(LogicalType::Decimal { .. }));
    match column.physical_type() {
        _ if decimal => Kind::Unreadable("decimals"),
        Type::BOOLEAN | Type::INT32 | Type::INT64 | Type::FLOAT | Type::DOUBLE => Kind::Number,
        Type::BYTE_ARRAY => Kind::Text,
        Type::INT96 => Kind::Unreadable("times of the old 96-bit kind"),
        Type::FIXED_LEN_BYTE_ARRAY => Kind::Unreadable("raw bytes"),
    }
}

/// The units per day of a column of dates or of moments.
fn per_day(column: &ColumnDescriptor) -> Option<f64> {
    match (column.physical_type(), column.logical_type_ref(), column.converted_type()) {
        (Type::INT32, Some(LogicalType::Date), _) | (Type::INT32, None, ConvertedType::DATE) => Some(1.0),
        (Type::INT64, Some(LogicalType::Timestamp(moment)), _) => Some(match moment.unit {
            TimeUnit::MILLIS => 1e3 * SECONDS_PER_DAY,
            TimeUnit::MICROS => 1e6 * SECONDS_PER_DAY,
            TimeUnit::NANOS => 1e9 * SECONDS_PER_DAY,
        }),
        (Type::INT64, None, ConvertedType::TIMESTAMP_MILLIS) => Some(1e3 * SECONDS_PER_DAY),
        (Type::INT64, None, ConvertedType::TIMESTAMP_MICROS) => Some(1e6 * SECONDS_PER_DAY),
        _ => None,
    }
}

/// A reader of a Parquet file.
pub(super) struct ParquetRows {
    file: SerializedFileReader<File>,
    place: String,
    wanted: Vec<(Wanted, String)>,
    /// Whether a column may have missing cells: its definition level, if present.
    levels: Vec<i16>,
    /// Units per day, for columns of dates.
    per_day: Vec<Option<f64>>,
    group: usize,
    /// Readers of the requested columns of the current group, and the number of remaining rows.
    readers: Vec<ColumnReader>,
    left: usize,
    row: u64,
    position: u64,
}

impl ParquetRows {
    pub(super) fn new(
        file: &File,
        place: &str,
        columns: &[Column],
        wanted: &[Wanted],
        selectable: bool,
    ) -> Outcome<Self> {
        let file = open(file, place)?;
        let schema = file.metadata().file_metadata().schema_descr();
        for w in wanted {
            let Column { name, kind, .. } = &columns[w.column];
            if w.kind != *kind && (w.kind != Kind::Text || matches!(kind, Kind::Unreadable(_))) {
                let hint = if selectable {
                    format!("leave it out with --exclude {name:?} or take it as categories with --categorical {name:?}")
                } else {
                    format!("give a table in which it holds {}", w.kind)
                };
                return Err(Failure::input(format!("{place}: column {name:?} holds {kind}, not {}", w.kind), hint));
            }
        }
        let per_day = wanted.iter().map(|w| per_day(&schema.column(w.column))).collect();
        let levels = wanted.iter().map(|w| schema.column(w.column).max_def_level()).collect();
        let wanted = wanted.iter().map(|&w| (w, columns[w.column].name.clone())).collect();
        let place = place.to_owned();
        Ok(Self { file, place, wanted, levels, per_day, group: 0, readers: Vec::new(), left: 0, row: 0, position: 0 })
    }

    /// Opens the next row group with rows; false at the end.
    fn next_group(&mut self) -> Outcome<bool> {
        while self.left == 0 {
            if self.group == self.file.num_row_groups() {
                return Ok(false);
            }
            let fail = |e: ParquetError| damaged(&self.place, &e);
            let group = self.file.get_row_group(self.group).map_err(fail)?;
            self.left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            self.position += u64::try_from(group.metadata().compressed_size()).unwrap_or(0);
            self.readers = self
                .wanted
                .iter()
                .map(|(w, _)| group.get_column_reader(w.column).map_err(fail))
                .collect::<Outcome<_>>()?;
            self.group += 1;
        }
        Ok(true)
    }
}

impl RowReader for ParquetRows {
    fn next_batch(&mut self, max_rows: usize) -> Outcome<Option<RawBatch>> {
        if !self.next_group()? {
            return Ok(None);
        }
        let n_rows = self.left.min(max_rows);
        let mut columns = Vec::with_capacity(self.wanted.len());
        for (i, (wanted, _)) in self.wanted.iter().enumerate() {
            let cells = read_cells(&mut self.readers[i], self.levels[i], n_rows, wanted.kind, self.per_day[i]);
            columns.push(cells.map_err(|e| damaged(&self.place, &e))?);
        }
        let first_row = self.row + 1;
        self.left -= n_rows;
        self.row += n_rows as u64;
        Ok(Some(RawBatch { first_row, n_rows, columns }))
    }

    fn position(&self) -> u64 {
        self.position
    }
}

fn read_cells(
    reader: &mut ColumnReader,
    level: i16,
    n: usize,
    kind: Kind,
    per_day: Option<f64>,
) -> Result<Cells, ParquetError> {
    use ColumnReader as R;
    let numbers: Vec<Option<f64>> = match reader {
        R::BoolColumnReader(r) => optional(r, level, n)?.into_iter().map(|x| x.map(f64::from)).collect(),
        R::Int32ColumnReader(r) => optional(r, level, n)?.into_iter().map(|x| x.map(f64::from)).collect(),
        R::Int64ColumnReader(r) => optional(r, level, n)?.into_iter().map(|x| x.map(|x| x as f64)).collect(),
        R::FloatColumnReader(r) => optional(r, level, n)?.into_iter().map(|x| x.map(f64::from)).collect(),
        R::DoubleColumnReader(r) => optional(r, level, n)?,
        R::ByteArrayColumnReader(r) => {
            let texts = optional(r, level, n)?.into_iter().map(|x| x.as_ref().and_then(text)).collect();
            return Ok(Cells::Texts(texts));
        }
        R::Int96ColumnReader(_) | R::FixedLenByteArrayColumnReader(_) => {
            return Err(ParquetError::NYI("raw bytes".into()));
        }
    };
    let numbers: Vec<Option<f64>> = match per_day {
        None => numbers,
        Some(units) => numbers.into_iter().map(|x| x.map(|x| x / units)).collect(),
    };
    Ok(match kind {
        Kind::Number | Kind::Date => Cells::Numbers(numbers.into_iter().map(|x| x.unwrap_or(f64::NAN)).collect()),
        Kind::Text | Kind::Unreadable(_) if per_day.is_some() => {
            Cells::Texts(numbers.into_iter().map(|x| x.map(|x| date::iso(x).into_boxed_str())).collect())
        }
        Kind::Text | Kind::Unreadable(_) => {
            Cells::Texts(numbers.into_iter().map(|x| x.map(|x| x.to_string().into_boxed_str())).collect())
        }
    })
}

fn text(bytes: &ByteArray) -> Option<Box<str>> {
    let text = String::from_utf8_lossy(bytes.data());
    let text = text.trim();
    (!is_missing(text)).then(|| text.into())
}

/// Exactly `n` cells, missing ones as `None`.
fn optional<T: DataType>(
    reader: &mut parquet::column::reader::ColumnReaderImpl<T>,
    level: i16,
    n: usize,
) -> Result<Vec<Option<T::T>>, ParquetError> {
    let mut cells = Vec::new();
    while cells.len() < n {
        let (mut levels, mut values) = (Vec::new(), Vec::new());
        let (records, _, _) =
            reader.read_records(n - cells.len(), (level > 0).then_some(&mut levels), None, &mut values)?;
        if records == 0 {
            return Err(ParquetError::EOF("a column ends before its rows do".into()));
        }
        let mut values = values.into_iter();
        if level > 0 {
            cells.extend(levels.iter().map(|&l| if l == level { values.next() } else { None }));
        } else {
            cells.extend(values.map(Some));
        }
    }
    Ok(cells)
}
