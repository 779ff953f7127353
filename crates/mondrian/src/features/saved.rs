//! Feature maps as model files: the identities of their columns. Trees are grown again; bins and frequencies are
//! stored.

use serde::{Deserialize, Serialize};

use crate::features::numbering::Numbering;
use crate::features::{FeatureMap, MondrianFeatures, RandomBinning, RandomFourier};
use crate::forest::Forest;
use crate::model_file::{Archive, ModelFileError, Saved};
use crate::process::NodeKey;
use crate::{Lifetime, Result};

/// More features than this are refused: a file may announce any number.
const MOST_COLUMNS: usize = 1 << 24;

impl Saved for MondrianFeatures {
    const KIND: &'static str = "features.mondrian";

    fn to_archive(&self) -> Result<Archive> {
        let mut archive = Archive::new(Self::KIND);
        archive.set_params("lifetime", &self.lifetime())?;
        self.forest().write_to(&mut archive)?;
        archive.insert_vec("row_points", self.rows().to_vec())?;
        archive.insert("columns", &[self.n_trees(), self.forest().store().n_slots()], self.columns_of_points())?;
        Ok(archive)
    }

    fn from_archive(archive: &Archive) -> Result<Self> {
        let lifetime: Lifetime = archive.params("lifetime")?;
        let (mut forest, growth): (Forest, _) = Forest::read_from(archive)?;
        let columns = archive.matrix_slice("columns", &[forest.n_trees(), forest.store().n_slots()])?;
        forest.regrow_as_saved(&(), &growth)?;
        Self::restored(forest, archive.vec("row_points")?, lifetime, columns)
    }
}

impl Saved for RandomBinning {
    const KIND: &'static str = "features.binning";

    fn to_archive(&self) -> Result<Archive> {
        let mut archive = Archive::new(Self::KIND);
        let halves = |bits: u128| [(bits >> 64) as u64, bits as u64];
        let named = self.numbering.named();
        archive.insert_vec("lifetimes", self.lifetimes.clone())?;
        let roots = self.roots.iter().flat_map(|root| halves(root.to_bits())).collect();
        archive.insert::<u64>("roots", &[self.roots.len(), 2], roots)?;
        archive.insert_vec("bin_grids", named.iter().map(|(grid, _)| *grid).collect())?;
        archive.insert("bins", &[named.len(), 2], named.iter().flat_map(|(_, name)| halves(*name)).collect())?;
        Ok(archive)
    }

    fn from_archive(archive: &Archive) -> Result<Self> {
        let whole = |pair: &[u64]| u128::from(pair[0]) << 64 | u128::from(pair[1]);
        let lifetimes: Vec<f64> = archive.vec("lifetimes")?;
        let n_grids = archive.array("roots")?.shape().first().copied().unwrap_or(0);
        let roots: &[u64] = archive.matrix_slice("roots", &[n_grids, 2])?;
        let grids: &[u32] = archive.slice("bin_grids")?;
        let bins: &[u64] = archive.matrix_slice("bins", &[grids.len(), 2])?;
        let named = grids.iter().copied().zip(bins.chunks_exact(2).map(whole));
        let numbering = Numbering::of(n_grids, named).filter(|_| n_grids > 0 && are_lifetimes(&lifetimes));
        let numbering = numbering.ok_or(ModelFileError::Inconsistent { what: "the bins of a feature map" })?;
        let roots = roots.chunks_exact(2).map(|pair| NodeKey::from_bits(whole(pair))).collect();
        Ok(Self { lifetimes, roots, numbering })
    }
}

fn are_lifetimes(numbers: &[f64]) -> bool {
    !numbers.is_empty() && numbers.iter().all(|x| *x >= 0.0 && x.is_finite())
}

#[derive(Serialize, Deserialize)]
struct Waves {
    n_columns: usize,
    n_dims: usize,
    phase: f64,
}

impl Saved for RandomFourier {
    const KIND: &'static str = "features.fourier";

    fn to_archive(&self) -> Result<Archive> {
        let mut archive = Archive::new(Self::KIND);
        let waves = Waves { n_columns: self.n_columns(), n_dims: self.n_dims(), phase: self.phase };
        archive.set_params("waves", &waves)?;
        let shape = [self.frequencies.len() / waves.n_dims, waves.n_dims];
        archive.insert("frequencies", &shape, self.frequencies.clone())?;
        Ok(archive)
    }

    fn from_archive(archive: &Archive) -> Result<Self> {
        let Waves { n_columns, n_dims, phase } = archive.params("waves")?;
        let frequencies: &[f64] = archive.matrix_slice("frequencies", &[n_columns.div_ceil(2), n_dims])?;
        let sound = n_dims > 0 && (1..=MOST_COLUMNS).contains(&n_columns) && phase.is_finite();
        if !sound || !frequencies.iter().all(|x| x.is_finite()) {
            return Err(ModelFileError::Inconsistent { what: "the frequencies of a feature map" }.into());
        }
        Ok(Self { n_dims, n_columns, frequencies: frequencies.to_vec(), phase })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Points;
    use crate::forest::ForestParams;
    use crate::kernel::LaplaceKernel;

    /// Learns in two batches (so that columns are not in the order of one), saves, loads and compares.
    fn survives<M: FeatureMap + Saved>(mut map: M) {
        let x: Vec<f64> = (0..80).map(|i| NodeKey::root(4, i).draw(0).uniform()).collect();
        map.learn(Points::row_major(&x[..30], 2).unwrap()).unwrap();
        map.learn(Points::row_major(&x[30..], 2).unwrap()).unwrap();
        let bytes = map.to_bytes().unwrap();
        let mut back = M::from_bytes(&bytes).unwrap();
        assert_eq!(back.to_bytes().unwrap(), bytes);
        let queries: Vec<f64> = x.iter().map(|x| 1.5 * x - 0.2).collect();
        for points in [Points::row_major(&x, 2).unwrap(), Points::row_major(&queries, 2).unwrap()] {
            assert_eq!(back.transform(points).unwrap(), map.transform(points).unwrap());
        }
        let more = Points::row_major(&queries, 2).unwrap();
        assert_eq!(back.learn(more).unwrap(), map.learn(more).unwrap());
        for at in (0..bytes.len()).step_by(7) {
            let mut torn = bytes.clone();
            torn[at] ^= 1;
            assert!(M::from_bytes(&torn).is_err() && M::from_bytes(&bytes[..at]).is_err());
        }
    }

    #[test]
    fn maps_survive_with_their_columns() {
        let kernel = LaplaceKernel::per_dimension(&[Lifetime::new(2.0).unwrap(), Lifetime::new(5.0).unwrap()]).unwrap();
        let corners = Points::row_major(&[0.0, 0.0, 1.0, 1.0], 2).unwrap();
        let params = ForestParams { n_trees: 7, ..ForestParams::default() };
        survives(MondrianFeatures::on(&params, corners, Lifetime::new(3.0).unwrap()).unwrap());
        survives(RandomBinning::new(&kernel, 2, 6, 1).unwrap());
        survives(RandomFourier::new(&kernel, 2, 9, 1).unwrap());
    }

    #[test]
    fn columns_that_cannot_be_are_refused() {
        let x = [0.1, 0.9, 0.4, 0.7];
        let points = Points::row_major(&x, 1).unwrap();
        let params = ForestParams { n_trees: 3, ..ForestParams::default() };
        let mut map = MondrianFeatures::on(&params, points, Lifetime::new(9.0).unwrap()).unwrap();
        map.learn(points).unwrap();
        let sound = map.to_archive().unwrap();
        for (at, column) in [(0, 1), (0, u32::MAX), (0, 400), (5, 0)] {
            let mut archive = Archive::new(MondrianFeatures::KIND);
            archive.set_params("lifetime", &map.lifetime()).unwrap();
            map.forest().write_to(&mut archive).unwrap();
            archive.insert_vec("row_points", map.rows().to_vec()).unwrap();
            let mut columns = sound.matrix_slice::<u32>("columns", &[3, 4]).unwrap().to_vec();
            columns[at] = column;
            archive.insert("columns", &[3, 4], columns).unwrap();
            assert!(MondrianFeatures::from_archive(&archive).is_err());
        }
    }
}
