//! Densities in model files: parameters, box, points; the trees follow from them.

use serde::{Deserialize, Serialize};

use crate::forest::Forest;
use crate::forest::density::{ClassPrior, DensityClassifier, DensityForest, DensityParams};
use crate::model_file::{Archive, ModelFileError, Saved};
use crate::process::{Bounds, Measure};
use crate::{Lifetime, Result};

#[derive(Serialize, Deserialize)]
struct State {
    params: DensityParams,
    lifetime: Lifetime,
}

impl Saved for DensityForest {
    const KIND: &'static str = "density.forest";

    fn to_archive(&self) -> Result<Archive> {
        let mut archive = Archive::new(Self::KIND);
        archive.set_params("density", &State { params: self.params.clone(), lifetime: self.lifetime })?;
        if self.forest.write_summary(&mut archive)? {
            return Ok(archive);
        }
        self.forest.write_to(&mut archive)?;
        archive.insert_vec("box_lower", self.first_bounds.lower().to_vec())?;
        archive.insert_vec("box_upper", self.first_bounds.upper().to_vec())?;
        Ok(archive)
    }

    fn from_archive(archive: &Archive) -> Result<Self> {
        let State { params, lifetime } = archive.params("density")?;
        if let Some(summary) = crate::forest::saved::read_summary(archive)? {
            let mut model = summary.grown_density()?;
            model.set_lifetime(lifetime)?;
            return Ok(model);
        }
        params.check()?;
        let bounds = Bounds::new(archive.slice("box_lower")?, archive.slice("box_upper")?)?;
        let (forest, growth): (Forest, _) = Forest::read_from(archive)?;
        let mut forest = forest.storing_every_cut();
        check_ground(&forest, &bounds, lifetime, params.forest.bounds.is_some())?;
        forest.regrow_as_saved(&(), &growth)?;
        Self::on_first_box(params, bounds, forest, lifetime)
    }
}

/// Refuses a box that is not the trees' first root box, one that was given and is widened, or a lifetime beyond the trees'.
fn check_ground(forest: &Forest, bounds: &Bounds, lifetime: Lifetime, is_given: bool) -> Result<()> {
    let domain = forest.domain();
    let wrong = |what| Err(ModelFileError::Inconsistent { what }.into());
    if is_given && domain.rung() != 0 || bounds.n_dims() != domain.n_dims() {
        return wrong("a density's box and its trees' root box");
    }
    if !domain.lifetime().is_finite() || lifetime > domain.lifetime() {
        return wrong("a density's lifetime and its trees'");
    }
    for (dim, (&lower, &upper)) in bounds.lower().iter().zip(bounds.upper()).enumerate() {
        let root = domain.first_box();
        let same = (forest.measure().coordinate(dim, lower) + 0.0).next_down() == root.lower()[dim]
            && forest.measure().coordinate(dim, upper) + 0.0 == root.upper()[dim];
        if !(lower < upper) || !same {
            return wrong("a density's box and its trees' root box");
        }
    }
    Ok(())
}

impl Saved for DensityClassifier {
    const KIND: &'static str = "density.classifier";

    fn to_archive(&self) -> Result<Archive> {
        let mut archive = Archive::new(Self::KIND);
        archive.set_params("prior", &self.prior)?;
        archive.insert_vec("labels", self.labels())?;
        archive.put("ground", self.domain.to_archive()?)?;
        for (class, density) in self.densities().enumerate() {
            archive.put(&format!("class{class}"), density.to_archive()?)?;
        }
        Ok(archive)
    }

    fn from_archive(archive: &Archive) -> Result<Self> {
        let prior: ClassPrior = archive.params("prior")?;
        let labels: Vec<u32> = archive.vec("labels")?;
        if !labels.is_sorted_by(|a, b| a < b) {
            return Err(ModelFileError::Inconsistent { what: "the order of a classifier's labels" }.into());
        }
        let domain = part(archive, "ground")?;
        let mut classes = Vec::with_capacity(labels.len());
        for (class, label) in labels.into_iter().enumerate() {
            let density = part(archive, &format!("class{class}"))?;
            density.forest.check_mergeable(&domain.forest)?;
            classes.push((label, density));
        }
        Ok(Self { prior, domain, classes })
    }
}

fn part(archive: &Archive, name: &str) -> Result<DensityForest> {
    let part = archive.part(name)?;
    part.check_kind(DensityForest::KIND)?;
    DensityForest::from_archive(&part)
}
