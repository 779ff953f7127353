//! Classification forests: learned batch by batch, with probabilities.

use mondrian::FitOptions;
use mondrian::internals::forest::BulkBuilder;
use mondrian::{ClassificationForest, ClassificationParams, LifetimeChoice};
use serde_json::json;

use super::{Facts, Training, forest};
use crate::args::ModelArgs;
use crate::failure::Outcome;
use crate::prepare::Preparation;
use crate::screen::Screen;
use crate::stages::Stage;

/// The parameters of the command line.
pub(crate) fn params(training: &Training<'_>, args: &ModelArgs) -> Outcome<ClassificationParams> {
    let (forest, gamma) = (forest::forest_params(training, args)?, forest::gamma(args));
    Ok(ClassificationParams { forest, gamma, ..ClassificationParams::default() })
}

/// The number of classes of the target.
pub(crate) fn n_classes(preparation: &Preparation) -> usize {
    preparation.target.as_ref().and_then(|t| t.classes.as_ref()).map_or(0, Vec::len)
}

pub(super) fn fit(training: &Training<'_>, args: &ModelArgs, screen: Screen) -> Outcome<ClassificationForest> {
    let params = params(training, args)?.n_classes(n_classes(training.preparation));
    let n_trees = params.forest.n_trees;
    let is_automatic = params.forest.lifetime == LifetimeChoice::Auto;
    let mut sample = is_automatic.then(|| forest::TuningSample::new(training));
    let mut sowing: Option<BulkBuilder<ClassificationForest>> = None;
    training.rows()?.feed(screen, |points, batch| {
        if sowing.is_none() {
            sowing = Some(BulkBuilder::classification(&params, points)?);
        }
        sample.iter_mut().for_each(|sample| sample.add(batch));
        Ok(sowing.iter_mut().try_for_each(|sowing| sowing.add(points, &batch.classes()))?)
    })?;
    let mut sowing = sowing.ok_or(mondrian::Error::NotFitted)?;
    if let Some(forest::TuningSample { rows, .. }) = sample {
        let _stage = Stage::new("choosing the lifetime");
        let points = rows.points(training.preparation)?;
        let labels = rows.classes();
        // From all rows, even if only some are kept.
        let params = params.clone().window(None).max_rows(None);
        let tuned = screen.watch("choosing", |progress| {
            params.fit_with(points, &labels, FitOptions::watched(progress.part(0.0, 1.0)))
        })?;
        sowing = sowing.to_lifetime(tuned.lifetime());
    }
    Ok(forest::growing(n_trees, screen, |progress| sowing.grow(progress))?)
}

pub(super) fn facts(model: &ClassificationForest, features: &[String]) -> Facts {
    Facts(vec![
        ("trees", json!(model.forest().n_trees())),
        ("classes", json!(model.n_classes())),
        ("lifetime", super::number(model.lifetime().get())),
        ("gamma", json!(model.gamma())),
        ("megabytes", json!((model.n_bytes() as f64 / 1e5).round() / 10.0)),
        ("relevance", super::relevance(&model.relevance(), features)),
    ])
}
