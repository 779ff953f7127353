//! Grid features as model files: the cuts and the cells that hold rows.
//!
//! Cuts could be drawn again from the seed, but a small file could then request fifty million of them.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::features::grid::OneGrid;
use crate::features::{GridFeatures, MondrianGrid};
use crate::model_file::{Archive, ModelFileError, Saved};
use crate::process::NodeKey;

#[derive(Serialize, Deserialize)]
struct Grids {
    seed: u64,
    n_grids: usize,
}

impl GridFeatures {
    pub(crate) fn write_to(&self, archive: &mut Archive) -> Result<()> {
        archive.set_params("grids", &Grids { seed: self.grid.seed(), n_grids: self.grid.n_grids() })?;
        // In order of their numbers, so that equal models are equal bytes.
        let mut keys = vec![0_u64; 2 * self.n_features];
        for (key, &number) in self.grids.iter().flat_map(|one| &one.cells) {
            keys[2 * number as usize] = (key.to_bits() >> 64) as u64;
            keys[2 * number as usize + 1] = key.to_bits() as u64;
        }
        archive.insert("cells", &[self.n_features, 2], keys)?;
        archive.insert_vec("cells_of_grid", self.grids.iter().map(|one| one.cells.len() as u64).collect())?;
        let cuts = || self.grids.iter().flat_map(|one| &one.cuts);
        archive.insert(
            "cuts_of_axis",
            &[self.grids.len(), self.lifetimes.len()],
            cuts().map(|c| c.len() as u64).collect(),
        )?;
        archive.insert_vec("cuts", cuts().flatten().copied().collect())?;
        archive.insert_vec("lifetimes", self.lifetimes.clone())?;
        archive.insert_vec("lower", self.ranges.iter().map(|range| range.0).collect())?;
        archive.insert_vec("upper", self.ranges.iter().map(|range| range.1).collect())
    }

    pub(crate) fn read_from(archive: &Archive) -> Result<Self> {
        let Grids { seed, n_grids } = archive.params("grids")?;
        let lifetimes: Vec<f64> = archive.vec("lifetimes")?;
        let lower: &[f64] = archive.matrix_slice("lower", &[lifetimes.len()])?;
        let upper: &[f64] = archive.matrix_slice("upper", &[lifetimes.len()])?;
        let counts: &[u64] = archive.matrix_slice("cells_of_grid", &[n_grids])?;
        let n_features =
            counts.iter().try_fold(0_u64, |sum, &count| sum.checked_add(count)).ok_or_else(inconsistent)?;
        let n_features = usize::try_from(n_features).map_err(|_| inconsistent())?;
        let keys: &[u64] = archive.matrix_slice("cells", &[n_features, 2])?;
        if lifetimes.is_empty()
            || !(finite(&lifetimes) && finite(lower) && finite(upper))
            || lower.iter().zip(upper).any(|(lower, upper)| lower > upper)
        {
            return Err(inconsistent());
        }
        let n_cuts: &[u64] = archive.matrix_slice("cuts_of_axis", &[n_grids, lifetimes.len()])?;
        let mut cuts: &[f64] = archive.slice("cuts")?;
        let mut next_axis = |n: &u64| {
            let (axis, rest) = cuts.split_at_checked(usize::try_from(*n).ok()?)?;
            cuts = rest;
            (finite(axis) && axis.is_sorted()).then(|| axis.to_vec())
        };
        let grid = MondrianGrid::new(n_grids, seed)?;
        let ranges: Vec<(f64, f64)> = lower.iter().copied().zip(upper.iter().copied()).collect();
        let mut grids = Vec::with_capacity(n_grids);
        let mut next = 0_u32;
        for (&count, n_cuts) in counts.iter().zip(n_cuts.chunks_exact(lifetimes.len())) {
            let cuts: Option<Vec<Vec<f64>>> = n_cuts.iter().map(&mut next_axis).collect();
            let mut one = OneGrid { cuts: cuts.ok_or_else(inconsistent)?, cells: HashMap::new() };
            for _ in 0..count {
                let pair = &keys[2 * next as usize..][..2];
                let key = NodeKey::from_bits(u128::from(pair[0]) << 64 | u128::from(pair[1]));
                if one.cells.insert(key, next).is_some() {
                    return Err(inconsistent());
                }
                next += 1;
            }
            grids.push(one);
        }
        if !cuts.is_empty() {
            return Err(inconsistent());
        }
        Ok(Self { grid, lifetimes, ranges, grids, n_features })
    }
}

pub(crate) fn finite(numbers: &[f64]) -> bool {
    numbers.iter().all(|x| x.is_finite())
}

impl Saved for GridFeatures {
    const KIND: &'static str = "features.grid";

    fn to_archive(&self) -> Result<Archive> {
        let mut archive = Archive::new(Self::KIND);
        self.write_to(&mut archive)?;
        Ok(archive)
    }

    fn from_archive(archive: &Archive) -> Result<Self> {
        Self::read_from(archive)
    }
}

pub(crate) fn inconsistent() -> crate::Error {
    ModelFileError::Inconsistent { what: "the numbers of a grid model" }.into()
}
