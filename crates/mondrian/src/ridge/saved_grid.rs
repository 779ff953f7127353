//! Ridge regression on grid features as model files: the features and their coefficients, those of one target as a vector and
//! those of several as one row per target.

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::features::GridFeatures;
use crate::features::saved_grid::{finite, inconsistent};
use crate::linalg::Matrix;
use crate::model_file::{Archive, Saved};
use crate::ridge::grid::{GridSolution, Solver};

#[derive(Serialize, Deserialize)]
struct Numbers {
    alpha: f64,
    /// Of the first target.
    intercept: f64,
    solver: Solver,
    /// Of the other targets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    further_intercepts: Vec<f64>,
}

impl Saved for GridSolution {
    const KIND: &'static str = "grid.features";

    fn to_archive(&self) -> Result<Archive> {
        let mut archive = Archive::new(Self::KIND);
        self.features.write_to(&mut archive)?;
        let (intercept, further_intercepts) = (self.intercepts[0], self.intercepts[1..].to_vec());
        let numbers = Numbers { alpha: self.alpha, intercept, solver: self.solver, further_intercepts };
        archive.set_params("ridge", &numbers)?;
        let shape = [self.n_targets(), self.theta.n_rows()];
        let shape = if self.n_targets() == 1 { &shape[1..] } else { &shape };
        archive.insert("coefficients", shape, self.theta.as_slice().to_vec())?;
        Ok(archive)
    }

    fn from_archive(archive: &Archive) -> Result<Self> {
        let Numbers { alpha, intercept, solver, further_intercepts } = archive.params("ridge")?;
        let intercepts: Vec<f64> = [intercept].into_iter().chain(further_intercepts).collect();
        let features = GridFeatures::read_from(archive)?;
        let shape = [intercepts.len(), features.n_features];
        let shape = if intercepts.len() == 1 { &shape[1..] } else { &shape };
        let theta: &[f64] = archive.matrix_slice("coefficients", shape)?;
        if !(finite(theta) && alpha > 0.0 && alpha.is_finite() && finite(&intercepts)) {
            return Err(inconsistent());
        }
        let theta = Matrix::from_column_major(theta.to_vec(), features.n_features, intercepts.len())?;
        Ok(Self { features, theta, intercepts, alpha, solver })
    }
}
