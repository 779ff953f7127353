//! The exact Laplace kernel, tuned: the default for regression.

use mondrian::{FitOptions, Progress};
use mondrian::{LaplaceKernelRidge, LaplaceKernelRidgeParams, LifetimesChoice, TuningParams};
use serde_json::json;

use super::{Facts, Training};
use crate::args::{LifetimeArg, ModelArgs};
use crate::failure::{Failure, Outcome};
use crate::prepare::Task;
use crate::screen::Screen;

pub(super) fn fit(training: &Training<'_>, args: &ModelArgs, screen: Screen) -> Outcome<LaplaceKernelRidge> {
    let preparation = training.preparation;
    if preparation.task() != Some(Task::Regression) {
        return Err(Failure::input("the laplace model predicts numbers, not classes", "use --model forest"));
    }
    let lifetime = match args.lifetime {
        LifetimeArg::Auto => LifetimesChoice::Auto,
        LifetimeArg::Fixed(lifetime) => LifetimesChoice::Common(lifetime),
    };
    let tuning = TuningParams { seed: args.seed, ..TuningParams::default() };
    let params = LaplaceKernelRidgeParams { lifetime, alpha: args.alpha, tuning, ..Default::default() };
    if training.summary.n_used > params.exact_rows as u64 {
        return Err(Failure::input(
            format!("{} rows are more than the {} of an exact solve", training.summary.n_used, params.exact_rows),
            "use --model forest",
        ));
    }
    let rows = training.rows()?.all()?;
    let mut progress = screen.progress("tuning", 0);
    let points = rows.points(preparation)?;
    let model = {
        let mut counting = progress.counting();
        params.fit_with(points, &rows.y, FitOptions::watched(Progress::new(&mut counting)))?
    };
    progress.finish();
    Ok(model)
}

pub(super) fn facts(model: &LaplaceKernelRidge, features: &[String]) -> Facts {
    let relevance: Vec<_> = model
        .ranking()
        .into_iter()
        .map(
            |d| json!({ "input": features[d], "lifetime": model.lifetimes()[d], "importance": model.importances()[d] }),
        )
        .collect();
    let best = model.trajectory().best();
    Facts(vec![
        ("alpha", json!(model.alpha())),
        ("leave_one_out_rmse", json!(best.map(|step| step.error))),
        ("tuned_on_rows", json!(best.map(|step| step.rows))),
        ("evaluations", json!(model.trajectory().len())),
        ("relevance", json!(relevance)),
    ])
}
