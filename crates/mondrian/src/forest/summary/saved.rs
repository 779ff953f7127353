//! Summaries and moments as bytes.

use std::collections::BTreeMap;

use crate::forest::sample::{CALIBRATED, ENOUGH, MOST};
use crate::forest::summary::cells::{CellData, TreeCells};
use crate::forest::summary::exact_sum::ExactSum;
use crate::forest::summary::moments::ColumnMoments;
use crate::forest::summary::part::Part;
use crate::forest::summary::sample::{AutomaticSample, BottomRows, SampledPoint};
use crate::forest::summary::{Moments, Summary, Task, TrainingDomain};
use crate::model_file::{Archive, Element, ModelFileError, Saved};
use crate::select::split::row_key;
use crate::tree::OccupiedCells;
use crate::{Points, Result};

fn wrong(what: &'static str) -> crate::Error {
    ModelFileError::Inconsistent { what }.into()
}

/// Wide integers as words, the lower first.
fn to_words(wide: impl Iterator<Item = u128>) -> Vec<u64> {
    wide.flat_map(|n| [n as u64, (n >> 64) as u64]).collect()
}

fn from_words(words: &[u64]) -> impl Iterator<Item = u128> + '_ {
    words.chunks_exact(2).map(|pair| u128::from(pair[0]) | u128::from(pair[1]) << 64)
}

/// Reads arrays piece by piece.
struct Pieces<'a, T>(&'a [T]);

impl<'a, T: Element> Pieces<'a, T> {
    fn of(archive: &'a Archive, name: &str) -> Result<Self> {
        Ok(Self(archive.slice(name)?))
    }

    fn take(&mut self, n: usize) -> Result<&'a [T]> {
        let (piece, rest) = self.0.split_at_checked(n).ok_or_else(|| wrong("lengths of the arrays of a summary"))?;
        self.0 = rest;
        Ok(piece)
    }

    fn end(&self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(wrong("lengths of the arrays of a summary")) }
    }
}

fn write_part(archive: &mut Archive, prefix: &str, part: &Part) -> Result<()> {
    let name = |what: &str| format!("{prefix}/{what}");
    archive.set_params(&name("rows"), &part.n_rows)?;
    archive.insert_vec(&name("totals"), to_words(part.totals.iter().map(|n| *n as u128)))?;
    let trees = &part.trees;
    archive.insert_vec(&name("n_codes"), trees.iter().map(|tree| tree.cells.n_codes() as u64).collect())?;
    archive
        .insert_vec(&name("codes"), trees.iter().flat_map(|tree| tree.cells.codes()).copied().collect::<Vec<u8>>())?;
    archive.insert_vec(&name("counts"), trees.iter().flat_map(|tree| &tree.counts).copied().collect::<Vec<u32>>())?;
    let (mut sums, mut ends, mut classes) = (Vec::new(), Vec::new(), Vec::new());
    for tree in trees {
        match &tree.data {
            CellData::None => {}
            CellData::Sums { sums: of_tree, .. } => sums.extend(to_words(of_tree.iter().map(|n| *n as u128))),
            CellData::Classes { ends: of_tree, entries } => {
                ends.extend_from_slice(of_tree);
                classes.extend(entries.iter().flat_map(|(class, n)| [*class, *n]));
            }
        }
    }
    archive.insert_vec(&name("sums"), sums)?;
    archive.insert_vec(&name("class_ends"), ends)?;
    archive.insert_vec(&name("classes"), classes)
}

fn read_part(archive: &Archive, prefix: &str, task: Task, n_trees: usize) -> Result<Part> {
    let name = |what: &str| format!("{prefix}/{what}");
    let n_rows: usize = archive.params(&name("rows"))?;
    let totals: Vec<i128> = from_words(archive.slice(&name("totals"))?).map(|n| n as i128).collect();
    if totals.len() != 2 * task.n_targets() || u32::try_from(n_rows).is_err() {
        return Err(wrong("the totals of a summary"));
    }
    let n_codes: &[u64] = archive.matrix_slice(&name("n_codes"), &[n_trees])?;
    let mut codes = Pieces::<u8>::of(archive, &name("codes"))?;
    let mut counts = Pieces::<u32>::of(archive, &name("counts"))?;
    let mut sums = Pieces::<u64>::of(archive, &name("sums"))?;
    let mut ends = Pieces::<u32>::of(archive, &name("class_ends"))?;
    let mut classes = Pieces::<u32>::of(archive, &name("classes"))?;
    let mut trees = Vec::with_capacity(n_trees);
    for n_codes in n_codes {
        let n_codes = usize::try_from(*n_codes).map_err(|_| wrong("the codes of a tree's cells"))?;
        let cells = OccupiedCells::restored(codes.take(OccupiedCells::n_bytes(n_codes))?.to_vec(), n_codes)?;
        let counts = counts.take(cells.len())?.to_vec();
        if counts.contains(&0) || counts.iter().map(|n| u64::from(*n)).sum::<u64>() != n_rows as u64 {
            return Err(wrong("the rows of a tree's cells"));
        }
        let data = match task {
            Task::Density => CellData::None,
            Task::Regression { n_targets } => {
                let words = n_targets.checked_mul(2 * cells.len()).ok_or_else(|| wrong("the sums of cells"))?;
                CellData::Sums { n_targets, sums: from_words(sums.take(words)?).map(|n| n as i128).collect() }
            }
            Task::Classification { n_classes } => {
                let ends = ends.take(cells.len())?.to_vec();
                let n_entries = ends.last().map_or(0, |end| *end as usize);
                let pairs = classes.take(2 * n_entries)?.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
                checked_classes(ends, pairs, &counts, n_classes)?
            }
        };
        trees.push(TreeCells { cells, counts, data });
    }
    codes.end()?;
    counts.end()?;
    sums.end()?;
    ends.end()?;
    classes.end()?;
    Ok(Part { n_rows, totals, trees })
}

/// Class counts that ascend and add up to the rows of their cells.
fn checked_classes(ends: Vec<u32>, entries: Vec<(u32, u32)>, counts: &[u32], n_classes: usize) -> Result<CellData> {
    let mut start = 0;
    for (end, count) in ends.iter().zip(counts) {
        let cell = entries.get(start..*end as usize).unwrap_or(&[]);
        let sum: u64 = cell.iter().map(|(_, n)| u64::from(*n)).sum();
        let ascends = cell.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if !ascends || sum != u64::from(*count) || cell.iter().any(|(k, n)| *k as usize >= n_classes || *n == 0) {
            return Err(wrong("the classes of a tree's cells"));
        }
        start = *end as usize;
    }
    Ok(CellData::Classes { ends, entries })
}

fn write_sample(archive: &mut Archive, sample: &AutomaticSample) -> Result<()> {
    archive.set_params("sample", &sample.hashes.is_some())?;
    archive.set_params("sample/most", &sample.most)?;
    archive.insert_vec("sample/hashes", to_words(sample.hashes.iter().flatten().copied()))?;
    archive.insert_vec("sample/keys", to_words(sample.points.keys().copied()))?;
    let points = || sample.points.values();
    archive.insert_vec("sample/x", points().flat_map(|point| &point.x).copied().collect::<Vec<f64>>())?;
    archive.insert_vec("sample/rows", points().map(|point| point.n_rows).collect())?;
    archive.insert_vec("sample/targets", points().flat_map(|point| &point.targets).copied().collect::<Vec<f64>>())?;
    archive.insert_vec("sample/n_classes", points().map(|point| point.classes.len() as u32).collect())?;
    let classes = points().flat_map(|point| &point.classes).flat_map(|(class, n)| [*class, *n]).collect::<Vec<u32>>();
    archive.insert_vec("sample/classes", classes)
}

/// The sample of an archive. Hashes must be those of the points: they decide which rows are kept.
fn read_sample(archive: &Archive, domain: &TrainingDomain, task: Task) -> Result<AutomaticSample> {
    let (is_few, n_dims, t) = (archive.params::<bool>("sample")?, domain.n_dims(), task.n_targets());
    let hashes: Vec<u128> = from_words(archive.slice("sample/hashes")?).collect();
    let ascend = |hashes: &[u128]| hashes.windows(2).all(|pair| pair[0] < pair[1]);
    let keys: Vec<u128> = from_words(archive.slice("sample/keys")?).collect();
    let all = hashes.len();
    let most =
        if archive.metadata().contains_key("params:sample/most") { archive.params("sample/most")? } else { MOST };
    if !ascend(&hashes)
        || !ascend(&keys)
        || keys.len() > most
        || most > CALIBRATED
        || all >= ENOUGH
        || (!is_few && all > 0)
    {
        return Err(wrong("the order of the sampled points"));
    }
    let n_rows: &[u32] = archive.matrix_slice("sample/rows", &[keys.len()])?;
    let n_classes: &[u32] = archive.matrix_slice("sample/n_classes", &[keys.len()])?;
    let mut x = Pieces::<f64>::of(archive, "sample/x")?;
    let mut targets = Pieces::<f64>::of(archive, "sample/targets")?;
    let mut classes = Pieces::<u32>::of(archive, "sample/classes")?;
    let mut points = BTreeMap::new();
    for ((key, n_rows), n_entries) in keys.iter().zip(n_rows).zip(n_classes) {
        let x = x.take(n_dims)?.to_vec();
        let targets = targets.take((*n_rows as usize).saturating_mul(t))?.to_vec();
        let pairs = classes.take(2 * *n_entries as usize)?.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        let classes = match task {
            Task::Classification { n_classes } => {
                match checked_classes(vec![*n_entries], pairs, &[*n_rows], n_classes)? {
                    CellData::Classes { entries, .. } => entries,
                    _ => Vec::new(),
                }
            }
            _ => Vec::new(),
        };
        let is_finite = x.iter().chain(&targets).all(|number| number.is_finite());
        let root = AutomaticSample::root(domain.seed, task == Task::Density);
        let is_key = row_key(root, x.iter().copied()).to_bits() == *key;
        if *n_rows == 0
            || !is_finite
            || !is_key
            || domain.check_targets(&targets, t.max(domain.largest_targets.len())).is_err()
        {
            return Err(wrong("a sampled point"));
        }
        let mut point = SampledPoint { x, n_rows: *n_rows, targets, classes };
        point.sort(t);
        points.insert(*key, point);
    }
    x.end()?;
    targets.end()?;
    classes.end()?;
    Ok(AutomaticSample { n_targets: t, most, hashes: is_few.then_some(hashes), points })
}

fn write_rows(archive: &mut Archive, name: &str, sample: &BottomRows) -> Result<()> {
    archive.set_params(name, &sample.most)?;
    archive.insert_vec(&format!("{name}/keys"), to_words(sample.rows.keys().copied()))?;
    archive.insert_vec(&format!("{name}/numbers"), sample.rows.values().flatten().copied().collect::<Vec<f64>>())
}

fn read_rows(archive: &Archive, name: &str, width: usize) -> Result<BottomRows> {
    let most: usize = archive.params(name)?;
    let keys: Vec<u128> = from_words(archive.slice(&format!("{name}/keys"))?).collect();
    let mut numbers = Pieces::<f64>::of(archive, &format!("{name}/numbers"))?;
    if keys.len() > most || keys.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err(wrong("the order of the sampled rows"));
    }
    let mut rows = BTreeMap::new();
    for key in keys {
        let row = numbers.take(width)?;
        if row.iter().any(|number| !number.is_finite()) {
            return Err(wrong("a sampled row"));
        }
        rows.insert(key, row.to_vec());
    }
    numbers.end()?;
    Ok(BottomRows { most, rows })
}

impl Saved for Summary {
    const KIND: &'static str = "forest.summary";

    fn to_archive(&self) -> Result<Archive> {
        let mut archive = Archive::new(Self::KIND);
        archive.set_params("domain", &self.domain)?;
        archive.set_params("task", &self.task)?;
        write_part(&mut archive, "kept", &self.kept)?;
        if let Some(held) = &self.held {
            write_part(&mut archive, "held", held)?;
        }
        write_rows(&mut archive, "held_rows", &self.held_rows)?;
        write_sample(&mut archive, &self.sample)?;
        Ok(archive)
    }

    fn from_archive(archive: &Archive) -> Result<Self> {
        let domain: TrainingDomain = archive.params("domain")?;
        domain.check()?;
        let task: Task = archive.params("task")?;
        match task {
            Task::Regression { n_targets } if n_targets == 0 || n_targets != domain.largest_targets.len() => {
                return Err(wrong("the targets of a summary and of its domain"));
            }
            Task::Classification { n_classes } => crate::forest::classification::check_labels(0, &[], n_classes)?,
            _ => {}
        }
        let n_trees = domain.trees().len();
        let kept = read_part(archive, "kept", task, n_trees)?;
        let held = if domain.chooses_lifetime { Some(read_part(archive, "held", task, n_trees)?) } else { None };
        let held_rows = read_rows(archive, "held_rows", domain.n_dims() + task.n_labels())?;
        check_held_rows(&held_rows, &domain, task)?;
        let sample = read_sample(archive, &domain, task)?;
        Ok(Self { domain, task, kept, held, held_rows, sample })
    }
}

/// Held-out rows must lie in the box, and classes must be classes.
fn check_held_rows(rows: &BottomRows, domain: &TrainingDomain, task: Task) -> Result<()> {
    if !rows.rows.is_empty() {
        let x = rows.columns(0..domain.n_dims());
        domain.check_inside(Points::row_major(&x, domain.n_dims())?)?;
    }
    if let Task::Classification { n_classes } = task {
        let is_class = |label: &f64| *label >= 0.0 && *label < n_classes as f64 && label.fract() == 0.0;
        if !rows.columns(domain.n_dims()..domain.n_dims() + 1).iter().all(is_class) {
            return Err(wrong("the class of a held-out row"));
        }
    }
    Ok(())
}

impl Saved for Moments {
    const KIND: &'static str = "forest.moments";

    fn to_archive(&self) -> Result<Archive> {
        let mut archive = Archive::new(Self::KIND);
        archive.set_params("rows", &self.n_rows)?;
        archive.set_params("columns", &(self.inputs.len(), self.targets.len()))?;
        let columns = || self.inputs.iter().chain(&self.targets);
        archive.insert_vec("ranges", columns().flat_map(|column| [column.min, column.max]).collect())?;
        let sums = || columns().flat_map(|column| [&column.sum, &column.squares]);
        archive.insert_vec("n_parts", sums().map(|sum| sum.parts().count() as u32).collect())?;
        archive.insert_vec("buckets", sums().flat_map(|sum| sum.parts().map(|(bucket, _)| bucket)).collect())?;
        archive.insert_vec("sums", to_words(sums().flat_map(|sum| sum.parts().map(|(_, n)| n as u128))))?;
        write_rows(&mut archive, "sample", &self.sample)?;
        Ok(archive)
    }

    fn from_archive(archive: &Archive) -> Result<Self> {
        let n_rows: u64 = archive.params("rows")?;
        let (n_inputs, n_targets): (usize, usize) = archive.params("columns")?;
        let ranges: &[f64] = archive.slice("ranges")?;
        let n_columns =
            n_inputs.checked_add(n_targets).filter(|n| n_inputs > 0 && n.checked_mul(2) == Some(ranges.len()));
        let n_columns = n_columns.ok_or_else(|| wrong("the columns of moments"))?;
        let n_parts: &[u32] = archive.matrix_slice("n_parts", &[2 * n_columns])?;
        let mut buckets = Pieces::<u32>::of(archive, "buckets")?;
        let mut words = Pieces::<u64>::of(archive, "sums")?;
        let mut sums = Vec::with_capacity(n_parts.len());
        for n in n_parts {
            let (buckets, words) = (buckets.take(*n as usize)?, words.take(2 * *n as usize)?);
            let parts = buckets.iter().copied().zip(from_words(words).map(|n| n as i128));
            sums.push(ExactSum::of_parts(parts).ok_or_else(|| wrong("the sums of moments"))?);
        }
        buckets.end()?;
        words.end()?;
        if n_rows == 0
            || ranges
                .chunks_exact(2)
                .any(|range| !(range[0] <= range[1] && range[0].is_finite() && range[1].is_finite()))
        {
            return Err(wrong("the ranges of moments"));
        }
        let mut sums = sums.into_iter();
        let mut column = |range: &[f64]| {
            let (sum, squares) = (sums.next().unwrap_or_default(), sums.next().unwrap_or_default());
            ColumnMoments { min: range[0], max: range[1], sum, squares }
        };
        let mut columns: Vec<ColumnMoments> = ranges.chunks_exact(2).map(&mut column).collect();
        let targets = columns.split_off(n_inputs);
        let sample = read_rows(archive, "sample", n_columns)?;
        Ok(Self { n_rows, inputs: columns, targets, sample })
    }
}
