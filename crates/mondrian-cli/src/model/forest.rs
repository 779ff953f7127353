//! Regression forests: learned batch by batch, with uncertainty.

use mondrian::Lifetime;
use mondrian::forest::{ForestParams, LeafModel, LifetimeChoice, RegressionForest, RegressionParams, WeightsChoice};
use mondrian::process::Bounds;
use serde_json::json;

use super::{Facts, Training};
use crate::args::{LeafModelArg, LifetimeArg, ModelArgs};
use crate::commands::learn_all;
use crate::failure::Outcome;
use crate::prepare::Prepared;
use crate::screen::Screen;

/// Rows on which an automatic lifetime is chosen, at most: every so many rows of the table.
const TUNING_ROWS: u64 = 40_000;

/// The parameters that the command line asks for, on the box of the whole table: known before the first row is learned,
/// so that batches give the model of one big fit.
pub(crate) fn params(training: &Training<'_>, args: &ModelArgs) -> Outcome<RegressionParams> {
    Ok(RegressionParams {
        forest: forest_params(training, args)?,
        leaf_model: match args.leaf_model {
            LeafModelArg::Hierarchical => LeafModel::Hierarchical,
            LeafModelArg::Independent => LeafModel::Independent,
        },
        ..RegressionParams::default()
    })
}

/// What all forests share. Inputs are scaled already, so the measure is plain length.
pub(crate) fn forest_params(training: &Training<'_>, args: &ModelArgs) -> Outcome<ForestParams> {
    let (lower, upper) = training.preparation.bounds(training.summary);
    Ok(ForestParams {
        n_trees: args.trees.unwrap_or(100),
        lifetime: match args.lifetime {
            LifetimeArg::Auto => LifetimeChoice::Auto,
            LifetimeArg::Fixed(lifetime) => LifetimeChoice::Value(lifetime),
        },
        seed: args.seed,
        bounds: Some(Bounds::new(&lower, &upper)?),
        weights: WeightsChoice::Raw,
        ..ForestParams::default()
    })
}

pub(super) fn fit(training: &Training<'_>, args: &ModelArgs, screen: Screen) -> Outcome<RegressionForest> {
    let params = params(training, args)?;
    let lifetime = match params.forest.lifetime {
        LifetimeChoice::Value(lifetime) => lifetime,
        LifetimeChoice::Auto => choose_lifetime(&params, training)?,
    };
    screen.say(format!("growing {} trees to lifetime {lifetime}", params.forest.n_trees));
    let mut model: Option<RegressionForest> = None;
    let Training { source, preparation, missing, .. } = training;
    learn_all(source, preparation, *missing, screen, |points, batch| {
        if let Some(model) = &mut model {
            return Ok(model.learn(points, &batch.y, None)?);
        }
        model = Some(RegressionForest::fit_at(params.clone(), lifetime, points, &batch.y, None)?);
        Ok(())
    })?;
    Ok(model.ok_or(mondrian::Error::NotFitted)?)
}

/// The lifetime that the library chooses on a sample of the rows.
fn choose_lifetime(params: &RegressionParams, training: &Training<'_>) -> Outcome<Lifetime> {
    let sample = sampled(training)?;
    let model = RegressionForest::fit(params.clone(), sample.points(training.preparation)?, &sample.y, None)?;
    Ok(model.lifetime())
}

/// Every so many rows of the table, at most [`TUNING_ROWS`].
pub(crate) fn sampled(training: &Training<'_>) -> Outcome<Prepared> {
    let stride = training.summary.n_used.div_ceil(TUNING_ROWS).max(1);
    let width = training.preparation.n_features();
    let mut rows = training.rows()?;
    let (mut sample, mut number) = (Prepared::default(), 0_u64);
    while let Some(batch) = rows.next_batch()? {
        for (i, y) in batch.y.iter().enumerate() {
            if number.is_multiple_of(stride) {
                sample.x.extend_from_slice(&batch.x[i * width..][..width]);
                sample.y.push(*y);
            }
            number += 1;
        }
    }
    Ok(sample)
}

pub(super) fn facts(model: &RegressionForest, features: &[String]) -> Facts {
    let gaussian = &model.gaussians()[0];
    Facts(vec![
        ("trees", json!(model.forest().n_trees())),
        ("lifetime", super::number(model.lifetime().get())),
        ("prior_mean", json!(gaussian.prior_mean)),
        ("noise_deviation", json!(gaussian.noise_variance.sqrt())),
        ("megabytes", json!((model.forest().n_bytes() as f64 / 1e5).round() / 10.0)),
        ("relevance", super::relevance(&model.relevance(), features)),
    ])
}
