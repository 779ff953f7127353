//! Classification forests: learned batch by batch, with probabilities.

use mondrian::forest::{ClassificationForest, ClassificationParams, LifetimeChoice};
use serde_json::json;

use super::{Facts, Training, forest};
use crate::args::ModelArgs;
use crate::commands::learn_all;
use crate::failure::Outcome;
use crate::prepare::Preparation;
use crate::screen::Screen;

/// The parameters that the command line asks for.
pub(crate) fn params(training: &Training<'_>, args: &ModelArgs) -> Outcome<ClassificationParams> {
    Ok(ClassificationParams { forest: forest::forest_params(training, args)?, ..ClassificationParams::default() })
}

/// How many classes the target has.
pub(crate) fn n_classes(preparation: &Preparation) -> usize {
    preparation.target.as_ref().and_then(|t| t.classes.as_ref()).map_or(0, Vec::len)
}

pub(super) fn fit(training: &Training<'_>, args: &ModelArgs, screen: Screen) -> Outcome<ClassificationForest> {
    let mut params = params(training, args)?;
    let n_classes = n_classes(training.preparation);
    if params.forest.lifetime == LifetimeChoice::Auto {
        let sample = forest::sampled(training)?;
        let points = sample.points(training.preparation)?;
        let tuned = ClassificationForest::fit(params.clone(), points, &sample.classes(), n_classes, None)?;
        params.forest.lifetime = LifetimeChoice::Value(tuned.lifetime());
    }
    let mut model: Option<ClassificationForest> = None;
    let Training { source, preparation, missing, .. } = training;
    learn_all(source, preparation, *missing, screen, |points, batch| {
        if let Some(model) = &mut model {
            return Ok(model.learn(points, &batch.classes(), n_classes, None)?);
        }
        model = Some(ClassificationForest::fit(params.clone(), points, &batch.classes(), n_classes, None)?);
        Ok(())
    })?;
    Ok(model.ok_or(mondrian::Error::NotFitted)?)
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
