//! Prepared rows, batch by batch: what the models see.

use super::summary::{BATCH, gaps};
use super::{Encoding, Missing, Preparation};
use crate::failure::{Failure, Outcome};
use crate::table::{Cells, Kind, RawBatch, RowReader, Source, Wanted};

/// Some rows, ready for a model.
#[derive(Debug, Default, Clone)]
pub(crate) struct Prepared {
    /// Row-major inputs.
    pub(crate) x: Vec<f64>,
    /// The target's numbers, or the classes' indices.
    pub(crate) y: Vec<f64>,
    /// The rows' numbers in the file, counted from 1.
    pub(crate) rows: Vec<u64>,
    /// How many rows the file had there, dropped ones included.
    pub(crate) n_read: usize,
    /// Cells with a category the model has never seen.
    pub(crate) n_unseen: u64,
}

impl Prepared {
    /// The classes' indices.
    pub(crate) fn classes(&self) -> Vec<u32> {
        self.y.iter().map(|&y| y as u32).collect()
    }

    fn append(&mut self, mut other: Self) {
        self.x.append(&mut other.x);
        self.y.append(&mut other.y);
        self.rows.append(&mut other.rows);
        self.n_read += other.n_read;
        self.n_unseen += other.n_unseen;
    }
}

/// A running read of prepared rows.
pub(crate) struct PreparedRows<'a> {
    preparation: &'a Preparation,
    missing: Missing,
    reader: Box<dyn RowReader>,
    place: String,
    with_target: bool,
    targets: TargetMap,
}

enum TargetMap {
    Number,
    Texts(Vec<String>),
    Numbers(Vec<f64>),
}

impl<'a> PreparedRows<'a> {
    /// Starts reading `source`, whose columns are found by name.
    pub(crate) fn new(
        source: &Source,
        preparation: &'a Preparation,
        missing: Missing,
        with_target: bool,
    ) -> Outcome<Self> {
        let mut wanted = Vec::new();
        for input in &preparation.inputs {
            let kind = match &input.encoding {
                Encoding::Number { .. } => Kind::Number,
                Encoding::Category { .. } => Kind::Text,
            };
            wanted.push(Wanted { column: source.find(&input.name)?, kind });
        }
        let mut targets = TargetMap::Number;
        if let (true, Some(target)) = (with_target, &preparation.target) {
            let column = source.find(&target.name)?;
            let mut kind = Kind::Number;
            if let Some(classes) = &target.classes {
                // Classes that are all numbers are compared as numbers: 1 and 1.0 are the same class.
                let numbers: Option<Vec<f64>> = classes.iter().map(|c| c.parse().ok()).collect();
                (kind, targets) = match numbers {
                    Some(numbers) if source.columns()[column].kind == Kind::Number => {
                        (Kind::Number, TargetMap::Numbers(numbers))
                    }
                    _ => (Kind::Text, TargetMap::Texts(classes.clone())),
                };
            }
            wanted.push(Wanted { column, kind });
        }
        let reader = source.read(&wanted)?;
        Ok(Self { preparation, missing, reader, place: source.place().to_owned(), with_target, targets })
    }

    /// How far into the file, in bytes.
    pub(crate) fn position(&self) -> u64 {
        self.reader.position()
    }

    /// The next rows; none at the end.
    pub(crate) fn next_batch(&mut self) -> Outcome<Option<Prepared>> {
        match self.reader.next_batch(BATCH)? {
            None => Ok(None),
            Some(batch) => self.prepare(&batch).map(Some),
        }
    }

    /// All rows at once.
    pub(crate) fn all(mut self) -> Outcome<Prepared> {
        let mut all = Prepared::default();
        let rows = usize::try_from(self.preparation.n_rows).unwrap_or(0).min(1 << 28);
        if self.with_target {
            all.x.reserve_exact(rows * self.preparation.n_features());
            all.y.reserve_exact(rows);
        }
        while let Some(batch) = self.next_batch()? {
            all.append(batch);
        }
        Ok(all)
    }

    fn prepare(&self, batch: &RawBatch) -> Outcome<Prepared> {
        let gaps = gaps(batch);
        let mut prepared = Prepared { n_read: batch.n_rows, ..Prepared::default() };
        prepared.x.reserve(batch.n_rows * self.preparation.n_features());
        for (row, &gap) in gaps.iter().enumerate() {
            if gap {
                match self.missing {
                    Missing::Refuse => return Err(self.refuse(batch, row)),
                    Missing::Drop => continue,
                    Missing::Mean => {}
                }
            }
            for (input, cells) in self.preparation.inputs.iter().zip(&batch.columns) {
                match (&input.encoding, cells) {
                    (Encoding::Number { fill, map }, Cells::Numbers(x)) => {
                        let present = Some(x[row]).filter(|x| x.is_finite());
                        let number = present.or(*fill).ok_or_else(|| self.refuse(batch, row))?;
                        prepared.x.push(map.apply(number));
                    }
                    (Encoding::Category { levels }, Cells::Texts(texts)) => {
                        let text = texts[row].as_deref();
                        let seen = text.and_then(|t| levels.binary_search_by(|l| l.as_str().cmp(t)).ok());
                        prepared.n_unseen += u64::from(text.is_some() && seen.is_none());
                        prepared.x.extend((0..levels.len()).map(|i| f64::from(u8::from(Some(i) == seen))));
                    }
                    _ => unreachable!("columns are read as the encoding asks"),
                }
            }
            if self.with_target && self.preparation.target.is_some() {
                prepared.y.push(self.target(batch, row)?);
            }
            prepared.rows.push(batch.first_row + row as u64);
        }
        Ok(prepared)
    }

    fn target(&self, batch: &RawBatch, row: usize) -> Outcome<f64> {
        let cells = batch.columns.last().expect("the target is read last");
        let known = |index: Option<usize>, shown: String| {
            index.map(|i| i as f64).ok_or_else(|| {
                let row = batch.first_row + row as u64;
                Failure::input(
                    format!("{}: row {row}: the class {shown:?} is not one the model was fitted with", self.place),
                    "fit a new model on all the data",
                )
            })
        };
        match (&self.targets, cells) {
            (TargetMap::Numbers(classes), Cells::Numbers(x)) if x[row].is_finite() => {
                known(classes.iter().position(|c| *c == x[row]), x[row].to_string())
            }
            (TargetMap::Texts(classes), Cells::Texts(t)) if t[row].is_some() => {
                let text = t[row].as_deref().unwrap_or_default();
                known(classes.iter().position(|c| c == text), text.to_owned())
            }
            (TargetMap::Number, Cells::Numbers(x)) if x[row].is_finite() => Ok(x[row]),
            _ => Err(self.refuse(batch, row)),
        }
    }

    fn refuse(&self, batch: &RawBatch, row: usize) -> Failure {
        let column = batch.columns.iter().position(|cells| match cells {
            Cells::Numbers(x) => !x[row].is_finite(),
            Cells::Texts(t) => t[row].is_none(),
        });
        let name = column
            .and_then(|i| self.preparation.inputs.get(i))
            .map(|input| input.name.as_str())
            .or(self.preparation.target.as_ref().map(|t| t.name.as_str()))
            .unwrap_or("?");
        Failure::input(
            format!("{}: row {}, column {name:?} is missing or not finite", self.place, batch.first_row + row as u64),
            "correct it, or choose --missing drop or --missing mean",
        )
    }
}
