//! The report's Laplace kernel, with only one lifetime per input: `--lifetime λ`, `--search gradient` or `coordinate`.

use mondrian::LifetimesChoice;
use mondrian::internals::laplace::Method;
use mondrian::internals::laplace::{LaplaceKernelRidge, LaplaceKernelRidgeParams, TuningParams};
use mondrian::{FitOptions, Progress};
use mondrian::{Lifetime, Points};
use serde_json::json;

use super::{Facts, Training};
use crate::args::{LifetimeArg, ModelArgs, NumberArg, SearchArg};
use crate::failure::{Failure, Outcome};
use crate::prepare::Task;
use crate::screen::Screen;

pub(super) fn fit(training: &Training<'_>, args: &ModelArgs, screen: Screen) -> Outcome<LaplaceKernelRidge> {
    check(training)?;
    let rows = training.rows()?.all()?;
    fit_rows(training, rows.points(training.preparation)?, &rows.y, args, screen)
}

/// Refuses tables that the exact kernel cannot fit, before rows are read.
fn check(training: &Training<'_>) -> Outcome<()> {
    if training.preparation.task() != Some(Task::Regression) {
        return Err(Failure::input(
            "--lifetime and --search of a laplace model are for numbers, not classes",
            "leave them out, or use --model forest",
        ));
    }
    let most = LaplaceKernelRidgeParams::default().exact_rows;
    if training.summary.n_used > most as u64 {
        return Err(Failure::input(
            format!("{} rows exceed the limit of {most} for an exact solve", training.summary.n_used),
            "use --model forest",
        ));
    }
    Ok(())
}

/// Fits to these rows, which need not be all of the table's.
pub(crate) fn fit_rows(
    training: &Training<'_>,
    points: Points<'_>,
    y: &[f64],
    args: &ModelArgs,
    screen: Screen,
) -> Outcome<LaplaceKernelRidge> {
    check(training)?;
    let lifetime = match args.lifetime {
        LifetimeArg::Auto => LifetimesChoice::Auto,
        LifetimeArg::Fixed(lifetime) => LifetimesChoice::Common(lifetime),
    };
    let method = match args.search {
        SearchArg::Auto | SearchArg::Gradient => Method::Gradient,
        SearchArg::Coordinate => Method::Coordinate,
        _ => {
            return Err(Failure::input(
                "a laplace model does not support this --search",
                "use auto (the whole kernel), gradient or coordinate (lifetimes alone)",
            ));
        }
    };
    let tuning = TuningParams { seed: args.seed, method, ..TuningParams::default() };
    let params = LaplaceKernelRidgeParams { lifetime, alpha: fixed_alpha(args), tuning, ..Default::default() };
    let mut progress = screen.progress("tuning", 0);
    let model = {
        let mut counting = progress.counting();
        params.fit_with(points, y, FitOptions::watched(Progress::new(&mut counting)))?
    };
    progress.finish();
    Ok(model)
}

/// The kernel with these lifetimes and this α, nothing tuned.
pub(crate) fn fit_at(
    points: Points<'_>,
    y: &[f64],
    lifetimes: Vec<Lifetime>,
    alpha: f64,
    seed: u64,
) -> Outcome<LaplaceKernelRidge> {
    let tuning = TuningParams { seed, ..TuningParams::default() };
    let lifetime = LifetimesChoice::Each(lifetimes);
    let params = LaplaceKernelRidgeParams { lifetime, alpha: Some(alpha), tuning, ..Default::default() };
    Ok(params.fit(points, y)?)
}

/// The given α; `None` if it is tuned.
fn fixed_alpha(args: &ModelArgs) -> Option<f64> {
    match args.alpha {
        None | Some(NumberArg::Auto) => None,
        Some(NumberArg::Value(alpha)) => Some(alpha),
    }
}

pub(super) fn facts(model: &LaplaceKernelRidge, features: &[String]) -> Facts {
    let relevance: Vec<_> = model
        .ranking()
        .into_iter()
        .map(
            |d| json!({ "input": features[d], "lifetime": model.lifetimes()[d], "importance": model.importances()[d] }),
        )
        .collect();
    let best = mondrian::Step::best(model.trajectory());
    Facts(vec![
        ("alpha", json!(model.alpha())),
        ("leave_one_out_rmse", json!(best.map(|step| step.error))),
        ("tuned_on_rows", json!(best.map(|step| step.rows))),
        ("evaluations", json!(model.trajectory().len())),
        ("relevance", json!(relevance)),
    ])
}
