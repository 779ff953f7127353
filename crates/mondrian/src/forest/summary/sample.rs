//! Rows of smallest keyed hash, which travel with a summary: a function of the set of rows, whatever parts they came in.

use std::collections::BTreeMap;

use crate::forest::sample::{CALIBRATED, ENOUGH, MOST, sample_root};
use crate::forest::summary::cells::{add_classes, too_large};
use crate::process::NodeKey;
use crate::{Error, Result};

/// Rows that the points of a sample may have, all repetitions counted: automatic values look at each.
pub(crate) const MOST_REPEATED: f64 = (1 << 24) as f64;

/// All that is known of a sampled point: where it lies, in measure coordinates, and all of its rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SampledPoint {
    pub(crate) x: Vec<f64>,
    pub(crate) n_rows: u32,
    /// Targets, row by row, ascending.
    pub(crate) targets: Vec<f64>,
    /// Class and count, ascending by class.
    pub(crate) classes: Vec<(u32, u32)>,
}

impl SampledPoint {
    /// Takes the rows that another part has of the same point.
    fn add(&mut self, other: &Self, n_targets: usize) -> Result<()> {
        self.n_rows = self.n_rows.checked_add(other.n_rows).ok_or_else(too_large)?;
        self.targets.extend_from_slice(&other.targets);
        self.sort(n_targets);
        let mut classes = Vec::new();
        add_classes(&self.classes, &other.classes, &mut classes)?;
        self.classes = classes;
        Ok(())
    }

    /// Brings the rows into an order of their own.
    pub(crate) fn sort(&mut self, n_targets: usize) {
        if n_targets == 0 {
            return;
        }
        let mut rows: Vec<&[f64]> = self.targets.chunks_exact(n_targets).collect();
        let ascending = |a: &&[f64], b: &&[f64]| {
            a.iter().zip(*b).map(|(a, b)| a.total_cmp(b)).find(|o| o.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
        };
        rows.sort_unstable_by(ascending);
        self.targets = rows.concat();
    }
}

/// The points that automatic values come from (see [`crate::forest::sample`]), with all of their rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AutomaticSample {
    pub(crate) n_targets: usize,
    /// Points kept, at most.
    pub(crate) most: usize,
    /// The hashes of all points, ascending, as long as they are few: how many points there are decides how large the sample is.
    pub(crate) hashes: Option<Vec<u128>>,
    pub(crate) points: BTreeMap<u128, SampledPoint>,
}

impl AutomaticSample {
    /// One without points yet. Deviations of regression are calibrated on more points than automatic values need.
    pub(crate) fn new(n_targets: usize) -> Self {
        let most = if n_targets > 0 { CALIBRATED } else { MOST };
        Self { n_targets, most, hashes: Some(Vec::new()), points: BTreeMap::new() }
    }

    /// The key that the hashes of points begin with; a density has one of its own.
    pub(crate) fn root(seed: u64, is_density: bool) -> NodeKey {
        if is_density { NodeKey::root(seed, crate::forest::density::HELD_OUT) } else { sample_root(seed) }
    }

    /// How many points there are; where they are many, only that.
    pub(crate) fn n_points(&self) -> usize {
        self.hashes.as_ref().map_or(ENOUGH, Vec::len)
    }

    /// The points that automatic values and calibration look at: fewer where they repeat so often that looking at every row would
    /// take long.
    pub(crate) fn looked_at(&self) -> impl Iterator<Item = &SampledPoint> {
        let n_rows: f64 = self.points.values().map(|point| f64::from(point.n_rows)).sum();
        self.points.values().take(if n_rows > MOST_REPEATED { MOST } else { self.most })
    }

    /// Takes the hashes of all points of a part, which are different points.
    pub(crate) fn take_hashes(&mut self, hashes: impl ExactSizeIterator<Item = u128>) {
        let Some(mut own) = self.hashes.take() else { return };
        if hashes.len() >= ENOUGH {
            return;
        }
        own.extend(hashes);
        own.sort_unstable();
        own.dedup();
        self.hashes = Some(own).filter(|own| own.len() < ENOUGH);
    }

    /// Keeps the first points only.
    pub(crate) fn truncate(&mut self) {
        while self.points.len() > self.most {
            self.points.pop_last();
        }
    }

    /// Takes another part's.
    pub(crate) fn merge(&mut self, other: &Self) -> Result<()> {
        if self.n_targets != other.n_targets {
            return Err(Error::Incompatible { what: "tasks or numbers of targets" });
        }
        match &other.hashes {
            Some(hashes) => self.take_hashes(hashes.iter().copied()),
            None => self.hashes = None,
        }
        // Files of summaries written before deviations were calibrated have fewer points, and with them the sum has.
        self.most = self.most.min(other.most);
        for (hash, point) in &other.points {
            match self.points.get_mut(hash) {
                Some(own) => own.add(point, self.n_targets)?,
                None => drop(self.points.insert(*hash, point.clone())),
            }
        }
        self.truncate();
        Ok(())
    }
}

/// Distinct rows of smallest keyed hash, each a run of numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BottomRows {
    pub(crate) most: usize,
    pub(crate) rows: BTreeMap<u128, Vec<f64>>,
}

impl BottomRows {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, rows: BTreeMap::new() }
    }

    /// The hash that a row must be below to be kept; none where there is room.
    pub(crate) fn bound(&self) -> Option<u128> {
        if self.rows.len() < self.most { None } else { self.rows.last_key_value().map(|(last, _)| *last) }
    }

    /// Takes a row with its hash; `make` gives its numbers if they are kept.
    #[inline]
    pub(crate) fn add(&mut self, hash: u128, make: impl FnOnce() -> Vec<f64>) {
        if self.rows.len() >= self.most && self.rows.last_key_value().is_none_or(|(last, _)| *last <= hash) {
            return;
        }
        self.rows.entry(hash).or_insert_with(make);
        if self.rows.len() > self.most {
            self.rows.pop_last();
        }
    }

    /// Takes another part's.
    pub(crate) fn merge(&mut self, other: &Self) -> Result<()> {
        if self.most != other.most {
            return Err(Error::Incompatible { what: "sizes of the samples" });
        }
        other.rows.iter().for_each(|(hash, row)| self.add(*hash, || row.clone()));
        Ok(())
    }

    /// The numbers of all rows, one row after the other, some columns of each.
    pub(crate) fn columns(&self, columns: std::ops::Range<usize>) -> Vec<f64> {
        self.rows.values().flat_map(|row| row[columns.clone()].iter().copied()).collect()
    }
}
