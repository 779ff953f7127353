//! Regression forests: learned batch by batch, with uncertainty.

use std::ops::ControlFlow;

use mondrian::Lifetime;
use mondrian::internals::forest::BulkBuilder;
use mondrian::process::Bounds;
use mondrian::{FitOptions, Progress};
use mondrian::{
    ForestParams, GammaChoice, LeafModel, LifetimeChoice, RegressionForest, RegressionParams, WeightsChoice,
};
use serde_json::json;

use super::{Facts, Training};
use crate::args::{LeafModelArg, LifetimeArg, ModelArgs, NumberArg};
use crate::failure::Outcome;
use crate::prepare::Prepared;
use crate::screen::Screen;
use crate::stages::Stage;

/// Largest number of rows on which an automatic lifetime is chosen, at equal steps of the table.
const TUNING_ROWS: u64 = 40_000;

/// The parameters of the command line, on the box of the whole table: known before the first row is learned, so that
/// batches give the model of one fit.
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

/// γ of classes and densities.
pub(super) fn gamma(args: &ModelArgs) -> GammaChoice {
    match args.gamma {
        None | Some(NumberArg::Auto) => GammaChoice::Auto,
        Some(NumberArg::Value(gamma)) => GammaChoice::Value(gamma),
    }
}

/// Parameters shared by all forests. Inputs are scaled already, so the measure is plain length.
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
        validation: args.validation.0,
        window: args.window,
        max_rows: args.max_rows,
        ..ForestParams::default()
    })
}

pub(super) fn fit(training: &Training<'_>, args: &ModelArgs, screen: Screen) -> Outcome<RegressionForest> {
    let params = params(training, args)?;
    let n_trees = params.forest.n_trees;
    let (at_first, is_automatic) = match params.forest.lifetime {
        LifetimeChoice::Value(lifetime) => (lifetime, false),
        LifetimeChoice::Auto => (Lifetime::INFINITE, true),
    };
    let mut sample = is_automatic.then(|| TuningSample::new(training));
    let mut sowing: Option<BulkBuilder<RegressionForest>> = None;
    training.rows()?.feed(screen, |points, batch| {
        if sowing.is_none() {
            sowing = Some(BulkBuilder::regression(params.clone(), at_first, points, 1)?);
        }
        sample.iter_mut().for_each(|sample| sample.add(batch));
        Ok(sowing.iter_mut().try_for_each(|sowing| sowing.add(points, &batch.y, None))?)
    })?;
    let lifetime = match sample {
        Some(sample) => choose_lifetime(&params, &sample.rows, training, screen)?,
        None => at_first,
    };
    let sowing = sowing.ok_or(mondrian::Error::NotFitted)?.to_lifetime(lifetime);
    screen.message(format!("growing {n_trees} trees to lifetime {lifetime}"));
    Ok(growing(n_trees, screen, |progress| sowing.grow(progress))?)
}

/// Number of trees after which free memory is returned to the system.
const TREES_A_SWEEP: usize = 8;

/// Grows trees under a progress bar.
pub(super) fn growing<M>(
    n_trees: usize,
    screen: Screen,
    grow: impl FnOnce(&mut Progress<'_>) -> mondrian::Result<M>,
) -> mondrian::Result<M> {
    let _stage = Stage::new("growing");
    crate::system::give_back();
    let mut bar = screen.progress("growing", n_trees as u64);
    let mut given_back = 0;
    let model = grow(&mut Progress::new(&mut |report| {
        let n_grown = (report.fraction * n_trees as f64).round() as usize;
        if n_grown / TREES_A_SWEEP > given_back {
            given_back = n_grown / TREES_A_SWEEP;
            crate::system::give_back();
        }
        bar.set(n_grown as u64);
        ControlFlow::Continue(())
    }));
    bar.finish();
    model
}

/// The lifetime that the library chooses on a sample of the rows.
fn choose_lifetime(
    params: &RegressionParams,
    sample: &Prepared,
    training: &Training<'_>,
    screen: Screen,
) -> Outcome<Lifetime> {
    let _stage = Stage::new("choosing the lifetime");
    let points = sample.points(training.preparation)?;
    // From all rows, even if only some are kept.
    let params = params.clone().window(None).max_rows(None);
    let model = screen.watch("choosing", |progress| {
        params.fit_with(points, &sample.y, FitOptions::watched(progress.part(0.0, 1.0)))
    })?;
    Ok(model.lifetime())
}

/// Rows at equal steps of the table, at most [`TUNING_ROWS`], kept while all are read: a separate pass would read the
/// table once more.
pub(super) struct TuningSample {
    pub(super) rows: Prepared,
    stride: u64,
    width: usize,
    n_seen: u64,
}

impl TuningSample {
    pub(super) fn new(training: &Training<'_>) -> Self {
        let stride = training.summary.n_used.div_ceil(TUNING_ROWS).max(1);
        Self { rows: Prepared::default(), stride, width: training.preparation.n_features(), n_seen: 0 }
    }

    /// Keeps some of the rows that follow those seen so far.
    pub(super) fn add(&mut self, batch: &Prepared) {
        for (i, y) in batch.y.iter().enumerate() {
            if self.n_seen.is_multiple_of(self.stride) {
                self.rows.x.extend_from_slice(&batch.x[i * self.width..][..self.width]);
                self.rows.y.push(*y);
            }
            self.n_seen += 1;
        }
    }
}

pub(super) fn facts(model: &RegressionForest, features: &[String]) -> Facts {
    let gaussian = &model.gaussians()[0];
    Facts(vec![
        ("trees", json!(model.forest().n_trees())),
        ("lifetime", super::number(model.lifetime().get())),
        ("prior_mean", json!(gaussian.prior_mean)),
        ("noise_deviation", json!(model.noise_variances()[0].sqrt())),
        ("megabytes", json!((model.n_bytes() as f64 / 1e5).round() / 10.0)),
        ("relevance", super::relevance(&model.relevance(), features)),
    ])
}
