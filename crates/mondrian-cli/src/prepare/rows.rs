//! Prepared rows, batch by batch: the input of the models.

use std::collections::{BTreeSet, HashMap};

use mondrian::Points;

use super::{Encoding, Missing, Preparation};
use crate::failure::{Failure, Outcome};
use crate::screen::Screen;
use crate::stages::Stage;
use crate::table::{Cells, Column, Kind, RawBatch, RowReader, Source, Wanted, batch_rows};

/// Some rows, ready for a model.
#[derive(Debug, Default, Clone)]
pub(crate) struct Prepared {
    /// Row-major inputs.
    pub(crate) x: Vec<f64>,
    /// The target's numbers, or the classes' indices. NaN is an unknown target, where that is allowed.
    pub(crate) y: Vec<f64>,
    /// The rows' numbers in the file, counted from 1.
    pub(crate) rows: Vec<u64>,
    /// Number of rows read from the file, including dropped ones.
    pub(crate) n_read: usize,
    pub(crate) unseen: Unseen,
    /// Classes known so far, new ones included.
    pub(crate) n_classes: usize,
    /// The unchanged cells of columns that are passed through: row-major, of all rows that were read.
    pub(crate) kept: Vec<Option<Box<str>>>,
}

impl Prepared {
    /// The classes' indices.
    pub(crate) fn classes(&self) -> Vec<u32> {
        self.y.iter().map(|&y| y as u32).collect()
    }

    /// The inputs, for models that need a number in every cell.
    pub(crate) fn points(&self, preparation: &Preparation) -> Outcome<Points<'_>> {
        self.inputs(preparation).points()
    }

    /// The inputs.
    pub(crate) fn inputs(&self, preparation: &Preparation) -> Inputs<'_> {
        Inputs { x: &self.x, width: preparation.n_features() }
    }

    fn append(&mut self, mut other: Self) {
        self.x.append(&mut other.x);
        self.y.append(&mut other.y);
        self.rows.append(&mut other.rows);
        self.kept.append(&mut other.kept);
        self.n_read += other.n_read;
        self.unseen.append(&other.unseen);
        self.n_classes = self.n_classes.max(other.n_classes);
    }
}

/// Cells with a category that the model has never seen: their number and columns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unseen {
    pub(crate) n_cells: u64,
    columns: BTreeSet<String>,
}

impl Unseen {
    fn add(&mut self, column: &str) {
        self.n_cells += 1;
        if !self.columns.contains(column) {
            self.columns.insert(column.to_owned());
        }
    }

    /// Adds those of other rows.
    pub(crate) fn append(&mut self, other: &Self) {
        self.n_cells += other.n_cells;
        self.columns.extend(other.columns.iter().cloned());
    }

    /// Prints a note if there are any.
    pub(crate) fn warn(&self, screen: Screen) {
        if self.n_cells > 0 {
            let columns = crate::table::listed(self.columns.iter().map(String::as_str));
            screen.message(format!("{} cells have a category the model has never seen, in {columns}", self.n_cells));
        }
    }
}

/// Prepared inputs of some rows; NaN is a missing cell, where that is allowed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inputs<'a> {
    x: &'a [f64],
    width: usize,
}

impl<'a> Inputs<'a> {
    /// Rows of this many inputs, one after the other.
    pub(crate) fn new(x: &'a [f64], width: usize) -> Self {
        Self { x, width }
    }

    /// For models that need every cell.
    pub(crate) fn points(self) -> Outcome<Points<'a>> {
        Ok(Points::row_major(self.x, self.width)?)
    }

    /// For the tuned Laplace kernel.
    pub(crate) fn cells(self) -> Outcome<mondrian::Cells<'a>> {
        Ok(mondrian::Cells::row_major(self.x, self.width)?)
    }

    /// The rows.
    pub(crate) fn rows(self) -> std::slice::ChunksExact<'a, f64> {
        self.x.chunks_exact(self.width)
    }

    /// The number of inputs.
    pub(crate) fn width(self) -> usize {
        self.width
    }
}

/// Columns that are read besides the inputs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Besides {
    pub(crate) target: TargetUse,
    /// Columns that are passed through unchanged.
    pub(crate) keep: Vec<String>,
    /// Whether classes that the model was not fitted with are added, not refused.
    pub(crate) new_classes: bool,
}

/// The use of the target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum TargetUse {
    /// It is not read.
    #[default]
    None,
    /// For comparison, if the table has it; rows whose target is missing or unknown are still predicted.
    Compare,
    /// For learning: every row must have it.
    Learn,
}

impl Besides {
    /// Rows to learn from.
    pub(crate) fn learning() -> Self {
        Self { target: TargetUse::Learn, ..Self::default() }
    }
}

/// Turns raw rows into prepared ones.
pub(crate) struct RowPreparer<'a> {
    preparation: &'a Preparation,
    missing: Missing,
    place: String,
    target: TargetUse,
    targets: TargetMap,
    /// The numbers of the categories of each column that is coded.
    codes: Vec<HashMap<&'a str, usize>>,
    n_kept: usize,
    new_classes: bool,
}

/// How cells of the target become numbers.
enum TargetMap {
    Number,
    /// Classes by name.
    Texts(Vec<String>),
    /// Classes that are all numbers are compared as numbers: 1 and 1.0 are the same class.
    Numbers(Vec<f64>),
}

impl<'a> RowPreparer<'a> {
    /// A preparer of rows whose target is read as `target_kind`.
    pub(crate) fn new(
        preparation: &'a Preparation,
        missing: Missing,
        besides: &Besides,
        target_kind: Kind,
        place: &str,
    ) -> Self {
        let classes = preparation.target.as_ref().and_then(|target| target.classes.as_ref());
        let numbers = classes.and_then(|classes| classes.iter().map(|c| c.parse().ok()).collect());
        let targets = match (classes, numbers) {
            (None, _) => TargetMap::Number,
            (Some(_), Some(numbers)) if target_kind == Kind::Number => TargetMap::Numbers(numbers),
            (Some(classes), _) => TargetMap::Texts(classes.clone()),
        };
        let target = if preparation.target.is_some() { besides.target } else { TargetUse::None };
        let (n_kept, new_classes) = (besides.keep.len(), besides.new_classes);
        let codes = preparation.inputs.iter().map(|input| match &input.encoding {
            Encoding::Level { levels } => levels.iter().enumerate().map(|(code, name)| (name.as_str(), code)).collect(),
            _ => HashMap::new(),
        });
        let codes = codes.collect();
        Self { preparation, missing, place: place.to_owned(), target, targets, codes, n_kept, new_classes }
    }

    /// The columns that raw rows must have, by name: the inputs with their kinds, as prepared.
    pub(crate) fn input_kinds(preparation: &Preparation) -> impl Iterator<Item = (&str, Kind)> {
        preparation.inputs.iter().map(|input| {
            let kind = match &input.encoding {
                Encoding::Number { .. } if input.date => Kind::Date,
                Encoding::Number { .. } => Kind::Number,
                Encoding::Category { .. } | Encoding::Level { .. } => Kind::Text,
            };
            (input.name.as_str(), kind)
        })
    }

    /// The classes known so far, by name: those of the model first.
    pub(crate) fn classes(&self) -> Option<Vec<String>> {
        match &self.targets {
            TargetMap::Number => None,
            TargetMap::Texts(classes) => Some(classes.clone()),
            TargetMap::Numbers(numbers) => {
                let known = self.preparation.target.as_ref().and_then(|t| t.classes.clone()).unwrap_or_default();
                let new = numbers.iter().skip(known.len()).map(f64::to_string).collect::<Vec<_>>();
                Some(known.into_iter().chain(new).collect())
            }
        }
    }

    /// Rows for a model: inputs first, then the target if it is read, then the columns that are passed through.
    pub(crate) fn prepare(&mut self, batch: &RawBatch) -> Outcome<Prepared> {
        let n_inputs = self.preparation.inputs.len();
        let n_needed = n_inputs + usize::from(self.target == TargetUse::Learn);
        let gaps = gaps(&batch.columns[..n_needed], batch.n_rows);
        let mut prepared = Prepared { n_read: batch.n_rows, ..Prepared::default() };
        prepared.x.reserve(batch.n_rows * self.preparation.n_features());
        for (row, &gap) in gaps.iter().enumerate() {
            if self.n_kept > 0 {
                let kept = batch.columns[batch.columns.len() - self.n_kept..].iter();
                prepared.kept.extend(kept.map(|cells| match cells {
                    Cells::Texts(texts) => texts[row].clone(),
                    Cells::Numbers(_) => None,
                }));
            }
            if gap {
                match self.missing {
                    Missing::Refuse => return Err(self.refuse(batch, row)),
                    Missing::Drop => continue,
                    Missing::Mean | Missing::Model => {}
                }
            }
            self.encode(batch, row, &mut prepared)?;
            match self.target {
                TargetUse::None => {}
                TargetUse::Learn => {
                    let y = self.target(batch, row)?;
                    prepared.y.push(y);
                }
                TargetUse::Compare => prepared.y.push(self.known_target(&batch.columns[n_inputs], row)),
            }
            prepared.rows.push(batch.first_row + row as u64);
        }
        prepared.n_classes = match &self.targets {
            TargetMap::Number => 0,
            TargetMap::Texts(classes) => classes.len(),
            TargetMap::Numbers(classes) => classes.len(),
        };
        Ok(prepared)
    }

    fn encode(&self, batch: &RawBatch, row: usize, prepared: &mut Prepared) -> Outcome<()> {
        for ((input, codes), cells) in self.preparation.inputs.iter().zip(&self.codes).zip(&batch.columns) {
            match (&input.encoding, cells) {
                (Encoding::Number { .. }, Cells::Numbers(x))
                    if self.missing == Missing::Model && !x[row].is_finite() =>
                {
                    prepared.x.push(f64::NAN);
                }
                (Encoding::Level { levels }, Cells::Texts(texts)) => {
                    let code = |text: &str| codes.get(text).copied().unwrap_or(levels.len());
                    let code = texts[row].as_deref().map(code);
                    if code == Some(levels.len()) {
                        prepared.unseen.add(&input.name);
                    }
                    prepared.x.push(code.map_or(f64::NAN, |code| code as f64));
                }
                (Encoding::Number { fill, map }, Cells::Numbers(x)) => {
                    let present = Some(x[row]).filter(|x| x.is_finite());
                    let number = present.or(*fill).ok_or_else(|| self.refuse(batch, row))?;
                    let scaled = map.apply(number);
                    if !scaled.is_finite() {
                        return Err(Failure::input(
                            format!(
                                "{}: row {}, column {:?}: {number:e} is too large to be scaled",
                                self.place,
                                batch.first_row + row as u64,
                                input.name
                            ),
                            "correct it, or divide the column by a constant and fit again",
                        ));
                    }
                    prepared.x.push(scaled);
                }
                (Encoding::Category { levels }, Cells::Texts(texts)) => {
                    let text = texts[row].as_deref();
                    let seen = text.and_then(|t| levels.binary_search_by(|l| l.as_str().cmp(t)).ok());
                    if text.is_some() && seen.is_none() {
                        prepared.unseen.add(&input.name);
                    }
                    prepared.x.extend((0..levels.len()).map(|i| f64::from(u8::from(Some(i) == seen))));
                }
                _ => unreachable!("columns are read as the encoding requires"),
            }
        }
        Ok(())
    }

    fn target(&mut self, batch: &RawBatch, row: usize) -> Outcome<f64> {
        let cells = &batch.columns[self.preparation.inputs.len()];
        let (found, shown) = match (&self.targets, cells) {
            (TargetMap::Numbers(classes), Cells::Numbers(x)) if x[row].is_finite() => {
                (classes.iter().position(|c| *c == x[row]), x[row].to_string())
            }
            (TargetMap::Texts(classes), Cells::Texts(t)) if t[row].is_some() => {
                let text = t[row].as_deref().unwrap_or_default();
                (classes.iter().position(|c| c == text), text.to_owned())
            }
            (TargetMap::Number, Cells::Numbers(x)) if x[row].is_finite() => return Ok(x[row]),
            _ => return Err(self.refuse(batch, row)),
        };
        if let Some(class) = found {
            return Ok(class as f64);
        }
        if !self.new_classes {
            let row = batch.first_row + row as u64;
            return Err(Failure::input(
                format!("{}: row {row}: the class {shown:?} is not one the model was fitted with", self.place),
                "add it with --new-classes (update and learn), or fit a new model on all the data",
            ));
        }
        Ok(match (&mut self.targets, cells) {
            (TargetMap::Numbers(classes), Cells::Numbers(x)) => {
                classes.push(x[row]);
                classes.len() - 1
            }
            (TargetMap::Texts(classes), _) => {
                classes.push(shown);
                classes.len() - 1
            }
            _ => unreachable!("classes are compared as they are read"),
        } as f64)
    }

    /// The target of a row, read as text; NaN if it is missing or unknown to the model.
    fn known_target(&self, cells: &Cells, row: usize) -> f64 {
        let Cells::Texts(texts) = cells else { return f64::NAN };
        let Some(text) = texts[row].as_deref() else { return f64::NAN };
        let found = match &self.targets {
            TargetMap::Number => return crate::table::number(text).filter(|y| y.is_finite()).unwrap_or(f64::NAN),
            TargetMap::Texts(classes) => classes.iter().position(|c| c == text),
            TargetMap::Numbers(classes) => {
                crate::table::number(text).and_then(|y| classes.iter().position(|c| *c == y))
            }
        };
        found.map_or(f64::NAN, |class| class as f64)
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

/// Which rows have a missing cell.
pub(super) fn gaps(columns: &[Cells], n_rows: usize) -> Vec<bool> {
    let mut gaps = vec![false; n_rows];
    for cells in columns {
        match cells {
            Cells::Numbers(x) => gaps.iter_mut().zip(x).for_each(|(g, x)| *g |= !x.is_finite()),
            Cells::Texts(t) => gaps.iter_mut().zip(t).for_each(|(g, t)| *g |= t.is_none()),
        }
    }
    gaps
}

/// A reader of prepared rows.
pub(crate) struct PreparedRows<'a> {
    preparer: RowPreparer<'a>,
    reader: Box<dyn RowReader>,
    batch_rows: usize,
    n_bytes: u64,
    /// The conversion of target texts to numbers, if the target is compared.
    compared: Option<Column>,
}

/// Counts of the rows given to a model.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fed {
    pub(crate) n_rows: u64,
    /// Rows skipped because of a missing cell.
    pub(crate) n_dropped: u64,
    pub(crate) unseen: Unseen,
    /// All classes, for classification.
    pub(crate) classes: Option<Vec<String>>,
}

impl Fed {
    /// Prints notes about skipped rows and unseen categories.
    pub(crate) fn warn(&self, screen: Screen) {
        if self.n_dropped > 0 {
            screen.message(format!("{} rows with missing cells were skipped", self.n_dropped));
        }
        self.unseen.warn(screen);
    }
}

impl<'a> PreparedRows<'a> {
    /// Starts reading `source`, whose columns are found by name.
    pub(crate) fn new(
        source: &Source,
        preparation: &'a Preparation,
        missing: Missing,
        besides: &Besides,
    ) -> Outcome<Self> {
        let mut wanted = Vec::new();
        for (name, kind) in RowPreparer::input_kinds(preparation) {
            wanted.push(Wanted { column: source.find(name)?, kind });
        }
        let mut besides = besides.clone();
        let (mut target_kind, mut compared) = (Kind::Text, None);
        match (besides.target, &preparation.target) {
            (TargetUse::Learn, Some(target)) => {
                let column = source.find(&target.name)?;
                let numeric = matches!(source.columns()[column].kind, Kind::Number | Kind::Date);
                let numbers = target.classes.as_ref().is_none_or(|c| c.iter().all(|c| c.parse::<f64>().is_ok()));
                target_kind = match source.columns()[column].kind {
                    Kind::Date if target.classes.is_none() => Kind::Date,
                    _ if target.classes.is_none() || (numeric && numbers) => Kind::Number,
                    _ => Kind::Text,
                };
                wanted.push(Wanted { column, kind: target_kind });
            }
            (TargetUse::Compare, Some(target)) => match source.find(&target.name) {
                Ok(column) if !matches!(source.columns()[column].kind, Kind::Unreadable(_)) => {
                    target_kind = Kind::Number;
                    compared = Some(source.columns()[column].clone());
                    wanted.push(Wanted { column, kind: Kind::Text });
                }
                _ => besides.target = TargetUse::None,
            },
            _ => {}
        }
        for name in &besides.keep {
            wanted.push(Wanted { column: source.find(name)?, kind: Kind::Text });
        }
        let reader = source.read(&wanted)?;
        let preparer = RowPreparer::new(preparation, missing, &besides, target_kind, source.place());
        Ok(Self { preparer, reader, batch_rows: batch_rows(wanted.len()), n_bytes: source.n_bytes(), compared })
    }

    /// Whether the target is read.
    pub(crate) fn has_target(&self) -> bool {
        self.preparer.target != TargetUse::None
    }

    /// The position in the file, in bytes.
    pub(crate) fn position(&self) -> u64 {
        self.reader.position()
    }

    /// The next rows; none at the end.
    pub(crate) fn next_batch(&mut self) -> Outcome<Option<Prepared>> {
        let Some(mut batch) = self.reader.next_batch(self.batch_rows)? else { return Ok(None) };
        if let (Some(column), TargetMap::Number) = (&self.compared, &self.preparer.targets)
            && let Cells::Texts(texts) = &mut batch.columns[self.preparer.preparation.inputs.len()]
        {
            // In the format of the column: with decimal commas, or as dates.
            for text in texts.iter_mut() {
                *text = text.as_deref().and_then(|t| column.value(t)).map(|y| y.to_string().into_boxed_str());
            }
        }
        self.preparer.prepare(&batch).map(Some)
    }

    /// All rows at once.
    pub(crate) fn all(mut self) -> Outcome<Prepared> {
        let mut all = Prepared::default();
        let rows = usize::try_from(self.preparer.preparation.n_rows).unwrap_or(0).min(1 << 28);
        if self.preparer.target == TargetUse::Learn {
            all.x.reserve_exact(rows.saturating_mul(self.preparer.preparation.n_features()).min(1 << 32));
            all.y.reserve_exact(rows);
        }
        while let Some(batch) = self.next_batch()? {
            all.append(batch);
        }
        Ok(all)
    }

    /// Calls `learn` with all rows, batch by batch.
    pub(crate) fn feed(
        mut self,
        screen: Screen,
        mut learn: impl FnMut(Points<'_>, &Prepared) -> Outcome<()>,
    ) -> Outcome<Fed> {
        let _stage = Stage::new("reading");
        let mut progress = screen.progress("reading", self.n_bytes);
        let mut fed = Fed::default();
        while let Some(batch) = self.next_batch()? {
            if !batch.rows.is_empty() {
                learn(batch.points(self.preparer.preparation)?, &batch)?;
            }
            fed.n_rows += batch.rows.len() as u64;
            fed.n_dropped += (batch.n_read - batch.rows.len()) as u64;
            fed.unseen.append(&batch.unseen);
            progress.set(self.position());
        }
        progress.finish();
        fed.classes = self.preparer.classes();
        Ok(fed)
    }
}
