//! Ridge regression on grid features as model files: the features and their coefficients.

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::features::GridFeatures;
use crate::features::saved_grid::{finite, inconsistent};
use crate::model_file::{Archive, Saved};
use crate::ridge::grid::{GridSolution, Solver};

#[derive(Serialize, Deserialize)]
struct Numbers {
    alpha: f64,
    intercept: f64,
    solver: Solver,
}

impl Saved for GridSolution {
    const KIND: &'static str = "grid.features";

    fn to_archive(&self) -> Result<Archive> {
        let mut archive = Archive::new(Self::KIND);
        self.features.write_to(&mut archive)?;
        let numbers = Numbers { alpha: self.alpha, intercept: self.intercept, solver: self.solver };
        archive.set_params("ridge", &numbers)?;
        archive.insert_vec("coefficients", self.theta.clone())?;
        Ok(archive)
    }

    fn from_archive(archive: &Archive) -> Result<Self> {
        let Numbers { alpha, intercept, solver } = archive.params("ridge")?;
        let features = GridFeatures::read_from(archive)?;
        let theta: &[f64] = archive.matrix_slice("coefficients", &[features.n_features])?;
        if !(finite(theta) && alpha > 0.0 && alpha.is_finite() && intercept.is_finite()) {
            return Err(inconsistent());
        }
        Ok(Self { features, theta: theta.to_vec(), intercept, alpha, solver })
    }
}
