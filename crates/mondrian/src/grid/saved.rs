//! Grid models as model files: the cells that hold rows and their coefficients. Cuts are drawn again from the seed.

use serde::{Deserialize, Serialize};

use super::features::OneGrid;
use super::{FeatureRidge, GridFeatures, GridRidge, MondrianGrid, Solver};
use crate::Result;
use crate::model_file::{Archive, ModelFileError, Saved};
use crate::process::NodeKey;

#[derive(Serialize, Deserialize)]
struct Numbers {
    seed: u64,
    n_grids: usize,
    alpha: f64,
    intercept: f64,
    solver: Solver,
}

impl Saved for FeatureRidge {
    const KIND: &'static str = "grid.features";

    fn to_archive(&self) -> Result<Archive> {
        let features = &self.features;
        let (seed, n_grids) = (features.grid.seed(), features.grid.n_grids());
        let mut archive = Archive::new(Self::KIND);
        let numbers = Numbers { seed, n_grids, alpha: self.alpha, intercept: self.intercept, solver: self.solver };
        archive.set_params("grid", &numbers)?;
        // In order of their numbers, so that equal models are equal bytes.
        let mut keys = vec![0_u64; 2 * features.n_features];
        for (key, &number) in features.grids.iter().flat_map(|one| &one.cells) {
            keys[2 * number as usize] = (key.to_bits() >> 64) as u64;
            keys[2 * number as usize + 1] = key.to_bits() as u64;
        }
        archive.insert("cells", &[features.n_features, 2], keys)?;
        archive.insert_vec("cells_of_grid", features.grids.iter().map(|one| one.cells.len() as u64).collect())?;
        archive.insert_vec("coefficients", self.theta.clone())?;
        archive.insert_vec("lifetimes", features.lifetimes.clone())?;
        archive.insert_vec("lower", features.ranges.iter().map(|range| range.0).collect())?;
        archive.insert_vec("upper", features.ranges.iter().map(|range| range.1).collect())?;
        Ok(archive)
    }

    fn from_archive(archive: &Archive) -> Result<Self> {
        let Numbers { seed, n_grids, alpha, intercept, solver } = archive.params("grid")?;
        let theta: Vec<f64> = archive.vec("coefficients")?;
        let lifetimes: Vec<f64> = archive.vec("lifetimes")?;
        let lower: &[f64] = archive.matrix_slice("lower", &[lifetimes.len()])?;
        let upper: &[f64] = archive.matrix_slice("upper", &[lifetimes.len()])?;
        let keys: &[u64] = archive.matrix_slice("cells", &[theta.len(), 2])?;
        let counts: &[u64] = archive.matrix_slice("cells_of_grid", &[n_grids])?;
        let finite = |numbers: &[f64]| numbers.iter().all(|x| x.is_finite());
        let total = counts.iter().try_fold(0_u64, |sum, &count| sum.checked_add(count));
        if lifetimes.is_empty()
            || !(finite(&theta) && finite(&lifetimes) && finite(lower) && finite(upper))
            || lower.iter().zip(upper).any(|(lower, upper)| lower > upper)
            || !(alpha > 0.0 && alpha.is_finite() && intercept.is_finite())
            || total != Some(theta.len() as u64)
        {
            return Err(inconsistent());
        }
        let grid = MondrianGrid::new(n_grids, seed)?;
        let ranges: Vec<(f64, f64)> = lower.iter().copied().zip(upper.iter().copied()).collect();
        let mut grids = Vec::with_capacity(n_grids);
        let mut next = 0_u32;
        for (m, &count) in counts.iter().enumerate() {
            let mut one = OneGrid::without_cells(grid, m, &ranges, &lifetimes)?;
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
        let features = GridFeatures { grid, lifetimes, ranges, grids, n_features: theta.len() };
        Ok(Self { features, theta, intercept, alpha, solver })
    }
}

fn inconsistent() -> crate::Error {
    ModelFileError::Inconsistent { what: "the numbers of a grid model" }.into()
}

impl Saved for GridRidge {
    const KIND: &'static str = "grid.regression";

    fn to_archive(&self) -> Result<Archive> {
        let mut archive = Archive::new(Self::KIND);
        archive.set_params("trajectory", &self.trajectory)?;
        archive.insert_vec("spreads", self.spreads.clone())?;
        archive.put("ridge", self.ridge.to_archive()?)?;
        Ok(archive)
    }

    fn from_archive(archive: &Archive) -> Result<Self> {
        let ridge = FeatureRidge::from_archive(&archive.part("ridge")?)?;
        let spreads: &[f64] = archive.matrix_slice("spreads", &[ridge.lifetimes().len()])?;
        Ok(Self { ridge, trajectory: archive.params("trajectory")?, spreads: spreads.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Points;
    use crate::grid::GridRidgeParams;

    #[test]
    fn predictions_survive_with_their_bits() {
        let x: Vec<f64> = (0..120).map(|i| NodeKey::root(4, i).draw(0).uniform()).collect();
        let y: Vec<f64> = x.chunks(2).map(|row| (5.0 * row[0]).sin()).collect();
        let points = Points::row_major(&x, 2).unwrap();
        let model = GridRidge::fit(points, &y, &GridRidgeParams::default()).unwrap();
        let bytes = model.to_bytes().unwrap();
        let back = GridRidge::from_bytes(&bytes).unwrap();
        let far = [0.5, 0.5, 40.0, -1.0];
        for queries in [points, Points::row_major(&far, 2).unwrap()] {
            assert_eq!(back.predict(queries).unwrap(), model.predict(queries).unwrap());
        }
        assert_eq!((back.ranking(), back.trajectory()), (model.ranking(), model.trajectory()));
        assert_eq!(back.to_bytes().unwrap(), bytes);
    }
}
