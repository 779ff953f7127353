//! Forests in model files.
//!
//! Trees are pure functions of key, box, measure and points, so a file holds those and no tree: it is small,
//! cannot hold a tree that is wrong, and the trees are grown again when it is read. [`TreeDigest`] says how they must come out.

use serde::{Deserialize, Serialize};

use crate::forest::retention::Held;
use crate::forest::warm_up::{FirstBox, WarmUp};
use crate::forest::{Forest, RegressionForest, Summary, TreeDigest};
use crate::model_file::{Archive, ModelFileError, Saved};
use crate::process::{Bounds, BuiltInMeasure};
use crate::tree::{Domain, PointStore, Rules};
use crate::{Lifetime, Result};

/// The part of an archive that holds a summary.
const SUMMARY: &str = "summary";

#[derive(Serialize, Deserialize)]
struct GroundParams {
    seed: u64,
    n_trees: usize,
    rung: u32,
    lifetime: Lifetime,
    measure: BuiltInMeasure,
    /// Files of version 1 do not say.
    #[serde(default)]
    rules: Rules,
}

impl<S: Default + Clone + Send + Sync + std::fmt::Debug> Forest<S> {
    /// Writes the forest's parts into a model's archive.
    ///
    /// # Errors
    /// [`ModelFileError`].
    pub fn write_to(&self, archive: &mut Archive) -> Result<()> {
        self.write_growth(archive)?;
        self.write_ground(archive)
    }

    /// Box, measure, seed and points, without a look at the trees.
    pub(crate) fn write_ground(&self, archive: &mut Archive) -> Result<()> {
        let domain = self.domain();
        archive.set_params(
            "ground",
            &GroundParams {
                seed: domain.seed(),
                n_trees: self.n_trees(),
                rung: domain.rung(),
                lifetime: domain.lifetime(),
                measure: self.measure().clone(),
                rules: domain.rules(),
            },
        )?;
        archive.insert_vec("root_lower", domain.first_box().lower().to_vec())?;
        archive.insert_vec("root_upper", domain.first_box().upper().to_vec())?;
        let store = self.store();
        archive.insert("points", &[store.n_slots(), store.n_dims()], store.coordinates().to_vec())?;
        archive.insert_vec("multiplicity", store.multiplicities().to_vec())?;
        self.held().map_or(Ok(()), |held| held.write_to(archive))?;
        self.first_box.as_ref().map_or(Ok(()), |first_box| first_box.write_to(archive))?;
        self.warm_up().map_or(Ok(()), |warm_up| warm_up.write_to(archive))
    }

    /// The forest of a model's archive, its trees still empty, and how they must come out: [`Forest::regrow_as_saved`]
    /// with the model's labels grows them.
    ///
    /// # Errors
    /// [`ModelFileError`] where parts are missing or do not fit together, and what the parts' own checks refuse.
    pub fn read_from(archive: &Archive) -> Result<(Self, TreeDigest)> {
        let params: GroundParams = archive.params("ground")?;
        // First of all: it bounds the number of trees by the size of the file.
        let growth = TreeDigest::read_from(archive, params.n_trees)?;
        let first = Bounds::new(archive.slice("root_lower")?, archive.slice("root_upper")?)?;
        let multiplicity: Vec<u32> = archive.vec("multiplicity")?;
        // Nodes count rows in 32 bits: more than that no learning could have given.
        if multiplicity.iter().map(|n| u64::from(*n)).sum::<u64>() > u64::from(u32::MAX) {
            return Err(ModelFileError::Inconsistent { what: "more rows than a forest can count" }.into());
        }
        let n_dims = first.n_dims();
        let points: Vec<f64> = archive.matrix_slice("points", &[multiplicity.len(), n_dims])?.to_vec();
        let store = PointStore::restored(n_dims, points, multiplicity)?;
        let domain = Domain::restored_under(params.rules, params.seed, first, params.rung, params.lifetime)?;
        let held = Held::read_from(archive, params.seed, &store)?;
        let mut forest = Self::from_parts(params.measure, domain, store, params.n_trees)?;
        forest.hold(held);
        forest.first_box = FirstBox::read_from(archive, forest.domain().first_box())?;
        forest.set_warm_up(WarmUp::read_from(archive, n_dims, forest.store().n_rows())?);
        let outside = forest.store().points().any(|p| !forest.domain().root_box().contains(forest.store().point(p)));
        if outside {
            return Err(ModelFileError::Inconsistent { what: "a stored point lies outside the root box" }.into());
        }
        Ok((forest, growth))
    }
}

impl<S: Default + Clone + Send + Sync + std::fmt::Debug> Forest<S> {
    /// Writes the summary that a forest without rows was finished from; whether it is one. Nothing else is needed.
    pub(crate) fn write_summary(&self, archive: &mut Archive) -> Result<bool> {
        let Some(summary) = self.summary() else { return Ok(false) };
        archive.put(SUMMARY, summary.to_archive()?)?;
        Ok(true)
    }
}

/// The summary of a model's archive, if its forest has no rows.
pub(crate) fn read_summary(archive: &Archive) -> Result<Option<Summary>> {
    if !archive.metadata().contains_key(&format!("kind:{SUMMARY}")) {
        return Ok(None);
    }
    let part = archive.part(SUMMARY)?;
    part.check_kind(Summary::KIND)?;
    Summary::from_archive(&part).map(Some)
}

impl Saved for RegressionForest {
    const KIND: &'static str = "forest.regression";

    fn to_archive(&self) -> Result<Archive> {
        let mut archive = Archive::new(Self::KIND);
        if self.forest().write_summary(&mut archive)? {
            archive.set_params("regression", self.fitted_params())?;
            archive.set_params("lifetime", &self.lifetime())?;
            return Ok(archive);
        }
        self.forest().write_growth(&mut archive)?;
        self.write_rows(&mut archive)?;
        Ok(archive)
    }

    fn into_archive(mut self) -> Result<Archive> {
        if self.forest().summary().is_some() {
            return self.to_archive();
        }
        let mut archive = Archive::new(Self::KIND);
        self.forest().write_growth(&mut archive)?;
        self.drop_trees();
        self.write_rows(&mut archive)?;
        Ok(archive)
    }

    fn from_archive(archive: &Archive) -> Result<Self> {
        if let Some(summary) = read_summary(archive)? {
            return summary.grown_regression()?.at(archive.params("lifetime")?);
        }
        let points: Vec<u32> = archive.vec("row_points")?;
        let y = archive.array("row_targets")?;
        let n_targets = match y.shape() {
            [n, t] if *n == points.len() && *t > 0 => *t,
            _ => return Err(ModelFileError::Inconsistent { what: "rows and targets" }.into()),
        };
        let y: &[f64] = archive.matrix_slice("row_targets", &[points.len(), n_targets])?;
        let weights: &[f64] = archive.matrix_slice("row_weights", &[points.len()])?;
        let rows = Restored { points: &points, n_targets, y, weights };
        Self::restored(archive.params("regression")?, archive.params("lifetime")?, Forest::read_from(archive)?, &rows)
    }
}

impl RegressionForest {
    /// All that a file holds but how the trees came out.
    fn write_rows(&self, archive: &mut Archive) -> Result<()> {
        archive.set_params("regression", self.fitted_params())?;
        archive.set_params("lifetime", &self.lifetime())?;
        self.forest().write_ground(archive)?;
        let (mut points, mut y, mut weights) = (Vec::new(), Vec::new(), Vec::new());
        for (point, targets, weight) in self.targets().rows() {
            points.push(point);
            y.extend_from_slice(targets);
            weights.push(weight);
        }
        archive.insert("row_targets", &[points.len(), self.n_targets()], y)?;
        archive.insert_vec("row_points", points)?;
        archive.insert_vec("row_weights", weights)
    }
}

/// Rows read from a file.
pub(crate) struct Restored<'a> {
    pub(crate) points: &'a [u32],
    pub(crate) n_targets: usize,
    pub(crate) y: &'a [f64],
    pub(crate) weights: &'a [f64],
}

impl Restored<'_> {
    /// Refuses rows that contradict the points they belong to, or that no learning could have given.
    pub(crate) fn check(&self, store: &PointStore) -> Result<()> {
        let mut left: Vec<u32> = store.multiplicities().to_vec();
        let counted = self
            .points
            .iter()
            .all(|p| left.get_mut(*p as usize).and_then(|n| n.checked_sub(1).map(|less| *n = less)).is_some());
        if !counted || left.iter().any(|n| *n > 0) {
            return Err(ModelFileError::Inconsistent { what: "rows and their points" }.into());
        }
        if !self.y.iter().all(|y| y.is_finite()) || !self.weights.iter().all(|w| *w > 0.0 && w.is_finite()) {
            return Err(ModelFileError::Inconsistent { what: "a target or weight that is not finite" }.into());
        }
        Ok(())
    }
}
