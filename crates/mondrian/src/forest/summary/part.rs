//! The cells of a set of rows in every tree, and their sums.

use crate::forest::classification::PointClasses;
use crate::forest::regression::fixed::{Scale, weighted_square};
use crate::forest::sample::hashed_points;
use crate::forest::summary::cells::{PointData, TreeCells, too_large};
use crate::forest::summary::sample::{AutomaticSample, BottomRows, SampledPoint};
use crate::forest::summary::{Task, TrainingDomain};
use crate::parallel::prelude::*;
use crate::points::first_not_finite;
use crate::process::NodeKey;
use crate::select::split::row_key;
use crate::tree::{Codes, Domain, PointStore, Tree, hash};
use crate::{Error, Points, Result};

/// What rows are labelled with.
#[derive(Debug)]
pub(crate) enum RowLabels<'a> {
    None,
    /// Row-major.
    Targets(&'a [f64]),
    /// Class numbers, and how many classes there are.
    Classes(&'a [u32], usize),
}

/// Labelled rows inside the box of a domain.
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    pub(crate) domain: &'a TrainingDomain,
    pub(crate) task: Task,
    pub(crate) points: Points<'a>,
    pub(crate) labels: &'a RowLabels<'a>,
}

/// What a set of rows says about all trees.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    pub(crate) n_rows: usize,
    /// Σ y of each target, then Σ y², in fixed point.
    pub(crate) totals: Vec<i128>,
    pub(crate) trees: Vec<TreeCells>,
}

impl Part {
    /// That of the rows of both.
    pub(crate) fn merged(&self, other: &Self) -> Result<Self> {
        if self.trees.len() != other.trees.len() || self.totals.len() != other.totals.len() {
            return Err(Error::Incompatible { what: "domains" });
        }
        let n_rows = self.n_rows.checked_add(other.n_rows).ok_or_else(too_large)?;
        let totals = self.totals.iter().zip(&other.totals).map(|(a, b)| a.checked_add(*b).ok_or_else(too_large));
        let totals = totals.collect::<Result<_>>()?;
        let numbers: Vec<usize> = (0..self.trees.len()).collect();
        let trees: Vec<Result<TreeCells>> =
            numbers.par_iter().map(|at| self.trees[*at].merged(&other.trees[*at])).collect();
        Ok(Self { n_rows, totals, trees: trees.into_iter().collect::<Result<_>>()? })
    }
}

impl Rows<'_> {
    /// Adds some rows, with their labels as numbers, to a sample.
    pub(crate) fn add_to(&self, rows: &[usize], sample: &mut BottomRows) {
        let root = NodeKey::root(self.domain.seed, u64::from_le_bytes(*b"held row"));
        for &row in rows {
            let numbers = || self.points.row(row).chain(self.label_of(row));
            sample.add(row_key(root, numbers()).to_bits(), || numbers().map(|x| x + 0.0).collect());
        }
    }

    fn label_of(&self, row: usize) -> impl Iterator<Item = f64> + '_ {
        (0..self.task.n_labels()).map(move |at| match self.labels {
            RowLabels::Targets(y) => y[row * self.task.n_labels() + at],
            RowLabels::Classes(labels, _) => f64::from(labels[row]),
            RowLabels::None => 0.0,
        })
    }

    /// The summary of some of the rows; the sample takes their points.
    pub(crate) fn part(&self, rows: &[usize], sample: &mut AutomaticSample) -> Result<Part> {
        let (domain, n_dims) = (self.domain, self.domain.n_dims());
        // Every cut is looked at once: drawing those of chains again would cost more than to keep them.
        let tree_domain = domain.tree_domain()?.storing_every_cut();
        let is_all = rows.len() == self.points.n_rows();
        let raw: std::borrow::Cow<'_, [f64]> = if is_all {
            self.points.as_row_major()
        } else {
            rows.iter().flat_map(|row| self.points.row(*row)).collect()
        };
        let coordinates = domain.measure.coordinates(&raw, n_dims);
        drop(raw);
        if let Some(at) = first_not_finite(&coordinates) {
            let (row, column, value) = (rows[at / n_dims], at % n_dims, coordinates[at]);
            return Err(Error::NotFinite { what: "X in measure coordinates", row, column, value });
        }
        let hashes: Vec<u64> = coordinates.chunks_exact(n_dims).map(hash).collect();
        let mut store = PointStore::new(n_dims);
        let points = store.adopt(coordinates, &hashes);
        drop(hashes);
        self.sample(rows, &points, &store, sample);
        let (data, totals) = self.data(rows, &points, store.n_slots());
        Ok(Part { n_rows: rows.len(), totals, trees: trees(domain, &tree_domain, &store, &data) })
    }

    /// The data of each point, and the totals.
    fn data(&self, rows: &[usize], points: &[u32], n_points: usize) -> (PointData, Vec<i128>) {
        match self.labels {
            RowLabels::None => (PointData::None, Vec::new()),
            RowLabels::Classes(labels, n_classes) => {
                let mut classes = PointClasses::new(*n_classes);
                points.iter().zip(rows).for_each(|(point, row)| classes.add(*point, labels[*row]));
                (PointData::Classes(classes), Vec::new())
            }
            RowLabels::Targets(y) => {
                let largest = &self.domain.largest_targets;
                let n_targets = largest.len();
                let (mut sums, mut totals) = (vec![0_i128; n_points * n_targets], vec![0_i128; 2 * n_targets]);
                for (target, largest) in largest.iter().enumerate() {
                    let scale = Scale::of_largest(*largest);
                    let square_scale = Scale::of_largest(weighted_square(*largest, 1.0).0);
                    for (point, row) in points.iter().zip(rows) {
                        let y = y[row * n_targets + target];
                        let units = scale.units(y) as i128;
                        sums[*point as usize * n_targets + target] += units;
                        totals[target] += units;
                        let (square, rest) = weighted_square(y, 1.0);
                        totals[n_targets + target] +=
                            square_scale.units(square) as i128 + square_scale.units(rest) as i128;
                    }
                }
                (PointData::Sums { n_targets, sums }, totals)
            }
        }
    }

    /// Adds the points of smallest hash to a sample.
    fn sample(&self, rows: &[usize], points: &[u32], store: &PointStore, sample: &mut AutomaticSample) {
        let is_density = self.task == Task::Density;
        let seed = self.domain.seed;
        let mut hashed = hashed_points(store, AutomaticSample::root(seed, is_density));
        sample.take_hashes(hashed.iter().map(|(hash, _)| *hash));
        if hashed.len() > sample.most {
            hashed.select_nth_unstable(sample.most);
            hashed.truncate(sample.most);
        }
        let mut chosen: std::collections::BTreeMap<u32, (u128, SampledPoint)> = hashed
            .into_iter()
            .map(|(hash, point)| {
                let (x, n_rows) = (store.point(point).to_vec(), store.multiplicity(point));
                (point, (hash, SampledPoint { x, n_rows, ..SampledPoint::default() }))
            })
            .collect();
        let is_chosen = {
            let mut is_chosen = vec![false; store.n_slots()];
            chosen.keys().for_each(|point| is_chosen[*point as usize] = true);
            is_chosen
        };
        let t = self.task.n_targets();
        for (point, row) in points.iter().zip(rows).filter(|(point, _)| is_chosen[**point as usize]) {
            let Some((_, sampled)) = chosen.get_mut(point) else { continue };
            match self.labels {
                RowLabels::None => {}
                RowLabels::Targets(y) => sampled.targets.extend_from_slice(&y[row * t..][..t]),
                RowLabels::Classes(labels, _) => {
                    let class = labels[*row];
                    match sampled.classes.binary_search_by_key(&class, |(k, _)| *k) {
                        Ok(at) => sampled.classes[at].1 += 1,
                        Err(at) => sampled.classes.insert(at, (class, 1)),
                    }
                }
            }
        }
        // Points with the same coordinates are held out together or not at all: none is in the sample yet.
        sample.points.extend(chosen.into_values().map(|(hash, mut point)| {
            point.sort(t);
            (hash, point)
        }));
        sample.truncate();
    }
}

/// The cells of each tree, which is let go before the next.
fn trees(domain: &TrainingDomain, on: &Domain, store: &PointStore, data: &PointData) -> Vec<TreeCells> {
    let indices: Vec<usize> = domain.trees().collect();
    let codes = Codes::if_worth(on, store, indices.len());
    // Few large trees keep all threads busy only if each is grown by several.
    let grown =
        if indices.len() < crate::parallel::current_num_threads() { Tree::grown_in_parts } else { Tree::grown_by };
    let cells = |index: &usize| {
        let tree = grown(on, on.tree_key(*index), store, codes.as_ref());
        TreeCells::of(&tree, on, store, data)
    };
    indices.par_iter().map(cells).collect()
}
