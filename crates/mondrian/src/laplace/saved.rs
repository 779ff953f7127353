//! [`LaplaceKernelRidge`] as a model file: rows, lifetimes and weights. The factor is made again when it is needed.

use serde::{Deserialize, Serialize};

use crate::laplace::{LaplaceKernel, LaplaceRidge};
use crate::laplace::{LaplaceKernelRidge, LaplaceSolution};
use crate::linalg::Matrix;
use crate::model_file::{Archive, ModelFileError, Saved};
use crate::ridge::grid::GridSolution;
use crate::select::Trajectory;
use crate::{Points, Result};

#[derive(Serialize, Deserialize)]
struct Numbers {
    n_rows: usize,
    n_dims: usize,
    alpha: f64,
    has_intercept: bool,
    intercept: f64,
    variance: f64,
}

impl Saved for LaplaceKernelRidge {
    const KIND: &'static str = "laplace.regression";

    fn to_archive(&self) -> Result<Archive> {
        let mut archive = Archive::new(Self::KIND);
        archive.set_params("trajectory", &self.trajectory)?;
        archive.insert_vec("spreads", self.spreads.clone())?;
        let exact = match &self.solution {
            LaplaceSolution::Exact(exact) => exact,
            LaplaceSolution::Features(features) => {
                archive.put("features", features.to_archive()?)?;
                return Ok(archive);
            }
        };
        let (n_rows, n_dims) = (exact.n_rows(), exact.n_dims());
        let numbers = Numbers {
            n_rows,
            n_dims,
            alpha: exact.alpha(),
            has_intercept: exact.fits_intercept(),
            intercept: exact.intercepts()[0],
            variance: exact.prior_variances()[0],
        };
        archive.set_params("laplace", &numbers)?;
        let columns = (0..n_dims).flat_map(|d| exact.points().column(d).collect::<Vec<_>>()).collect();
        archive.insert("points", &[n_dims, n_rows], columns)?;
        archive.insert_vec("weights", exact.dual_coefficients().column(0).to_vec())?;
        archive.insert_vec("lifetimes", exact.kernel().numbers().to_vec())?;
        Ok(archive)
    }

    fn from_archive(archive: &Archive) -> Result<Self> {
        if let Ok(part) = archive.part("features") {
            let features = GridSolution::from_archive(&part)?;
            let spreads = archive.matrix_slice("spreads", &[features.lifetimes().len()])?.to_vec();
            let trajectory = archive.params("trajectory")?;
            return Ok(Self { solution: LaplaceSolution::Features(features), spreads, trajectory });
        }
        let Numbers { n_rows, n_dims, alpha, has_intercept, intercept, variance } = archive.params("laplace")?;
        let trajectory: Trajectory = archive.params("trajectory")?;
        let points: &[f64] = archive.matrix_slice("points", &[n_dims, n_rows])?;
        let weights: Vec<f64> = archive.matrix_slice("weights", &[n_rows])?.to_vec();
        let lifetimes: Vec<f64> = archive.matrix_slice("lifetimes", &[n_dims])?.to_vec();
        let spreads: Vec<f64> = archive.matrix_slice("spreads", &[n_dims])?.to_vec();
        let finite = |numbers: &[f64]| numbers.iter().all(|x| x.is_finite());
        let positive = |numbers: &[f64]| numbers.iter().all(|x| x.is_finite() && *x >= 0.0);
        if n_rows == 0
            || n_dims == 0
            || !(finite(points) && finite(&weights) && positive(&lifetimes) && positive(&spreads))
            || !(alpha > 0.0 && alpha.is_finite() && intercept.is_finite() && variance >= 0.0 && variance.is_finite())
        {
            return Err(ModelFileError::Inconsistent { what: "the numbers of a Laplace kernel model" }.into());
        }
        let rows = Points::column_major(points, n_rows, n_dims)?.to_row_major();
        let params = LaplaceRidge::params(LaplaceKernel::of_numbers(&lifetimes)?);
        let params = params.alpha(alpha).fit_intercept(has_intercept);
        let dual = Matrix::from_column_major(weights, n_rows, 1)?;
        let solution = LaplaceRidge::from_parts(params, rows, n_dims, dual, vec![intercept], vec![variance]);
        Ok(Self { solution: LaplaceSolution::Exact(solution), spreads, trajectory })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laplace::LaplaceKernelRidgeParams;
    use crate::process::NodeKey;

    #[test]
    fn predictions_survive_with_their_bits() {
        let x: Vec<f64> = (0..120).map(|i| NodeKey::root(4, i).draw(0).uniform()).collect();
        let y: Vec<f64> = x.chunks(2).map(|row| (5.0 * row[0]).sin()).collect();
        let points = Points::row_major(&x, 2).unwrap();
        let model = LaplaceKernelRidgeParams::default().fit(points, &y).unwrap();
        let bytes = model.to_bytes().unwrap();
        let back = LaplaceKernelRidge::from_bytes(&bytes).unwrap();
        assert_eq!(back.predict_with_std(points).unwrap(), model.predict_with_std(points).unwrap());
        assert_eq!((back.importances(), back.trajectory()), (model.importances(), model.trajectory()));
        assert_eq!(back.to_bytes().unwrap(), bytes);
    }

    #[test]
    fn so_do_those_of_features() {
        let x: Vec<f64> = (0..120).map(|i| NodeKey::root(4, i).draw(0).uniform()).collect();
        let y: Vec<f64> = x.chunks(2).map(|row| (5.0 * row[0]).sin()).collect();
        let points = Points::row_major(&x, 2).unwrap();
        let params = LaplaceKernelRidgeParams { exact_rows: 10, n_grids: 20, ..LaplaceKernelRidgeParams::default() };
        let model = params.fit(points, &y).unwrap();
        let back = LaplaceKernelRidge::from_bytes(&model.to_bytes().unwrap()).unwrap();
        assert!(!back.is_exact());
        assert_eq!(back.predict(points).unwrap(), model.predict(points).unwrap());
    }

    #[test]
    fn numbers_that_cannot_be_are_refused() {
        let mut archive = Archive::new(LaplaceKernelRidge::KIND);
        let numbers = Numbers { n_rows: 1, n_dims: 1, alpha: -1.0, has_intercept: true, intercept: 0.0, variance: 1.0 };
        archive.set_params("laplace", &numbers).unwrap();
        archive.set_params("trajectory", &Trajectory::default()).unwrap();
        archive.insert("points", &[1, 1], vec![0.0]).unwrap();
        for name in ["weights", "lifetimes", "spreads"] {
            archive.insert_vec(name, vec![1.0]).unwrap();
        }
        assert!(LaplaceKernelRidge::from_archive(&archive).is_err());
    }
}
