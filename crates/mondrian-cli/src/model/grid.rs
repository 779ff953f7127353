//! Ridge regression on a Mondrian grid: one lifetime an input, searched for.

use mondrian::LifetimesChoice;
use mondrian::{FitOptions, Progress};
use mondrian::{GridRidge, GridRidgeParams};
use serde_json::json;

use super::{Facts, Training, ranked};
use crate::args::{LifetimeArg, ModelArgs};
use crate::failure::{Failure, Outcome};
use crate::prepare::Task;
use crate::screen::Screen;

pub(super) fn fit(training: &Training<'_>, args: &ModelArgs, screen: Screen) -> Outcome<GridRidge> {
    if training.preparation.task() != Some(Task::Regression) {
        return Err(Failure::input("the grid model predicts numbers, not classes", "use --model forest"));
    }
    let default = GridRidgeParams::default();
    let params = GridRidgeParams {
        n_grids: args.trees.unwrap_or(default.n_grids),
        lifetimes: match args.lifetime {
            LifetimeArg::Auto => LifetimesChoice::Auto,
            LifetimeArg::Fixed(lifetime) => LifetimesChoice::Common(lifetime),
        },
        alpha: args.alpha.or(default.alpha),
        seed: args.seed,
        ..default
    };
    let rows = training.rows()?.all()?;
    let mut progress = screen.progress("searching", params.limits.budget as u64);
    let points = rows.points(training.preparation)?;
    let model = {
        let mut counting = progress.counting();
        params.fit_with(points, &rows.y, FitOptions::watched(Progress::new(&mut counting)))?
    };
    progress.finish();
    Ok(model)
}

pub(super) fn facts(model: &GridRidge, features: &[String]) -> Facts {
    let best = model.trajectory().best();
    let lifetimes = model.lifetimes();
    let inputs: Vec<_> =
        ranked(lifetimes).into_iter().map(|d| json!({ "input": features[d], "lifetime": lifetimes[d] })).collect();
    Facts(vec![
        ("alpha", json!(model.alpha())),
        ("held_out_rmse", json!(best.map(|step| step.error))),
        ("evaluations", json!(model.trajectory().len())),
        ("relevance", json!(inputs)),
    ])
}
