//! Grid models as model files: the solution and the trajectory of the search.

use crate::Result;
use crate::grid::{GridRidge, GridSolution};
use crate::model_file::{Archive, Saved};

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
        let ridge = GridSolution::from_archive(&archive.part("ridge")?)?;
        let spreads: &[f64] = archive.matrix_slice("spreads", &[ridge.lifetimes().len()])?;
        Ok(Self { ridge, trajectory: archive.params("trajectory")?, spreads: spreads.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Points;
    use crate::grid::GridRidgeParams;
    use crate::process::NodeKey;

    #[test]
    fn predictions_survive_with_their_bits() {
        let x: Vec<f64> = (0..120).map(|i| NodeKey::root(4, i).draw(0).uniform()).collect();
        let y: Vec<f64> = x.chunks(2).map(|row| (5.0 * row[0]).sin()).collect();
        let points = Points::row_major(&x, 2).unwrap();
        let model = GridRidgeParams::default().fit(points, &y).unwrap();
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
