//! Forests in model files.
//!
//! Trees are pure functions of key, box, measure and points, so a file holds those and no tree: it is small,
//! cannot hold a tree that is wrong, and the trees are grown again when it is read.

use serde::{Deserialize, Serialize};

use super::Forest;
use crate::model_file::{Archive, ModelFileError};
use crate::process::{Bounds, BuiltInMeasure};
use crate::tree::{Ground, PointStore};
use crate::{Lifetime, Result};

#[derive(Serialize, Deserialize)]
struct GroundParams {
    seed: u64,
    n_trees: usize,
    rung: u32,
    lifetime: Lifetime,
    measure: BuiltInMeasure,
}

impl<S: Default + Clone + Send + Sync + std::fmt::Debug> Forest<S> {
    /// Writes the forest's parts into a model's archive.
    ///
    /// # Errors
    /// [`ModelFileError`].
    pub fn write_to(&self, archive: &mut Archive) -> Result<()> {
        let ground = self.ground();
        archive.set_params(
            "ground",
            &GroundParams {
                seed: ground.seed(),
                n_trees: self.n_trees(),
                rung: ground.rung(),
                lifetime: ground.lifetime(),
                measure: self.measure().clone(),
            },
        )?;
        archive.insert_vec("root_lower", ground.first_box().lower().to_vec())?;
        archive.insert_vec("root_upper", ground.first_box().upper().to_vec())?;
        let store = self.store();
        archive.insert("points", &[store.n_slots(), store.n_dims()], store.coordinates().to_vec())?;
        archive.insert_vec("multiplicity", store.multiplicities().to_vec())
    }

    /// The forest of a model's archive, its trees still empty: [`Forest::regrow`] with the model's labels grows them.
    ///
    /// # Errors
    /// [`ModelFileError`] where parts are missing or do not fit together, and what the parts' own checks refuse.
    pub fn read_from(archive: &Archive) -> Result<Self> {
        let params: GroundParams = archive.params("ground")?;
        let first = Bounds::new(archive.slice("root_lower")?, archive.slice("root_upper")?)?;
        let multiplicity: Vec<u32> = archive.vec("multiplicity")?;
        let n_dims = first.n_dims();
        let points: Vec<f64> = archive.matrix_slice("points", &[multiplicity.len(), n_dims])?.to_vec();
        let store = PointStore::restored(n_dims, points, multiplicity)?;
        let ground = Ground::restored(params.seed, first, params.rung, params.lifetime)?;
        let forest = Self::replanted(params.measure, ground, store, params.n_trees)?;
        let outside = forest.store().points().any(|p| !forest.ground().root_box().contains(forest.store().point(p)));
        if outside {
            return Err(ModelFileError::Inconsistent { what: "a stored point lies outside the root box" }.into());
        }
        Ok(forest)
    }
}
