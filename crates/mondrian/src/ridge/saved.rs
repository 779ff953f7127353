//! [`KernelRidge`] as a model file: points, targets and parameters. Trees and coefficients are functions of them and are
//! computed again when it is read.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::features::MondrianFeatures;
use crate::forest::Forest;
use crate::linalg::MatrixRef;
use crate::model_file::{Archive, ModelFileError, Saved};
use crate::ridge::FeatureRidgeParams;
use crate::ridge::KernelRidge;
use crate::{Lifetime, Result};

#[derive(Serialize, Deserialize)]
struct Numbers {
    alpha: f64,
    fit_intercept: bool,
    lifetime: Lifetime,
    n_targets: usize,
}

impl Saved for KernelRidge {
    const KIND: &'static str = "kernel.regression";

    fn to_archive(&self) -> Result<Archive> {
        let mut archive = Archive::new(Self::KIND);
        let numbers = Numbers {
            alpha: self.model().alpha(),
            // A centred target whose mean is zero is the target itself, so nothing is lost.
            fit_intercept: self.model().intercepts().iter().any(|i| *i != 0.0),
            lifetime: self.features().lifetime(),
            n_targets: self.targets().n_columns(),
        };
        archive.set_params("kernel", &numbers)?;
        self.features().forest().write_to(&mut archive)?;
        archive.insert_vec("row_points", self.features().rows().to_vec())?;
        let targets: Vec<f64> = (0..numbers.n_targets).flat_map(|t| self.targets().column(t).to_vec()).collect();
        archive.insert("target_columns", &[numbers.n_targets, self.features().rows().len()], targets)?;
        Ok(archive)
    }

    fn from_archive(archive: &Archive) -> Result<Self> {
        let numbers: Numbers = archive.params("kernel")?;
        let rows: Vec<u32> = archive.vec("row_points")?;
        let targets: &[f64] = archive.matrix_slice("target_columns", &[numbers.n_targets, rows.len()])?;
        if rows.is_empty() || numbers.n_targets == 0 || !targets.iter().all(|y| y.is_finite()) {
            return Err(ModelFileError::Inconsistent { what: "the targets of a kernel model" }.into());
        }
        let (mut forest, growth) = Forest::read_from(archive)?;
        forest.regrow_as_saved(&(), &growth)?;
        let features = MondrianFeatures::of_forest(Arc::new(forest), rows, numbers.lifetime)?;
        let params = FeatureRidgeParams::default().alpha(numbers.alpha).fit_intercept(numbers.fit_intercept);
        let n_rows = features.rows().len();
        Self::solved(params, features, MatrixRef::new(targets, n_rows, numbers.n_targets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Points;

    #[test]
    fn a_kernel_model_survives() {
        let x: Vec<f64> = (0..80).map(|i| f64::from(i * 37 % 80) / 20.0).collect();
        let y: Vec<f64> = x.iter().map(|x| x.sin()).collect();
        let points = Points::row_major(&x, 1).unwrap();
        let params = KernelRidge::params().n_trees(20).lifetime(Lifetime::new(2.0).unwrap()).alpha(0.1);
        let model = params.fit(points, &y).unwrap();
        let bytes = model.to_bytes().unwrap();
        let back = KernelRidge::from_bytes(&bytes).unwrap();
        let (a, b) = (model.predict(points).unwrap(), back.predict(points).unwrap());
        for row in 0..80 {
            assert!((a[(row, 0)] - b[(row, 0)]).abs() < 1e-12);
        }
        assert_eq!(back.to_bytes().unwrap(), bytes);
    }
}
