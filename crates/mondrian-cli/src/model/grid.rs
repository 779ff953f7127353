//! Ridge regression on a Mondrian grid: one lifetime per input, searched for.

use mondrian::{FitOptions, Progress};
use mondrian::{GridRidge, GridRidgeParams, SearchKind};
use mondrian::{Lifetime, LifetimesChoice, Points};
use serde_json::json;

use super::{Facts, Training, ranked};
use crate::args::{LifetimeArg, ModelArgs, NumberArg, SearchArg};
use crate::failure::{Failure, Outcome};
use crate::prepare::Task;
use crate::screen::Screen;

pub(super) fn fit(training: &Training<'_>, args: &ModelArgs, screen: Screen) -> Outcome<GridRidge> {
    let rows = training.rows()?.all()?;
    fit_rows(training, rows.points(training.preparation)?, &rows.y, args, screen)
}

/// The same on some rows.
pub(crate) fn fit_rows(
    training: &Training<'_>,
    points: Points<'_>,
    targets: &[f64],
    args: &ModelArgs,
    screen: Screen,
) -> Outcome<GridRidge> {
    if training.preparation.task() != Some(Task::Regression) {
        return Err(Failure::input("the grid model predicts numbers, not classes", "use --model forest"));
    }
    let default = GridRidgeParams::default();
    let params = GridRidgeParams {
        n_grids: args.trees.unwrap_or(default.n_grids),
        lifetimes: match (&args.lifetimes, args.lifetime) {
            (Some(each), _) => {
                LifetimesChoice::Each(each.iter().map(|l| Lifetime::new(*l)).collect::<mondrian::Result<_>>()?)
            }
            (None, LifetimeArg::Auto) => LifetimesChoice::Auto,
            (None, LifetimeArg::Fixed(lifetime)) => LifetimesChoice::Common(lifetime),
        },
        alpha: match args.alpha {
            None => default.alpha,
            Some(NumberArg::Auto) => None,
            Some(NumberArg::Value(alpha)) => Some(alpha),
        },
        search: search_kind(args.search),
        budget: args.budget,
        patience: args.patience,
        seed: args.seed,
        ..default
    };
    let mut progress = screen.progress("searching", params.budget as u64);
    let model = {
        let mut counting = progress.counting();
        params.fit_with(points, targets, FitOptions::watched(Progress::new(&mut counting)))?
    };
    progress.finish();
    Ok(model)
}

fn search_kind(search: SearchArg) -> SearchKind {
    match search {
        SearchArg::Auto => SearchKind::Auto,
        SearchArg::Greedy => SearchKind::Greedy,
        SearchArg::GreedyBoth => SearchKind::GreedyBoth,
        SearchArg::Lookahead => SearchKind::Lookahead,
        SearchArg::Coordinate => SearchKind::Coordinate,
        SearchArg::Gradient => SearchKind::Gradient,
        SearchArg::Spsa => SearchKind::Spsa,
        SearchArg::Bayes => SearchKind::Bayes,
    }
}

pub(super) fn facts(model: &GridRidge, features: &[String]) -> Facts {
    let best = mondrian::Step::best(model.trajectory());
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
