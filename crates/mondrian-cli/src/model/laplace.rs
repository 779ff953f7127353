//! The whole tuned Laplace kernel, for numbers and classes: the default model.

use mondrian::internals::laplace::KernelTuning;
use mondrian::internals::laplace::SolverReport;
use mondrian::internals::linalg::Threads;
use mondrian::{FitOptions, KernelMeasure, KernelMetric, LaplaceClassifier, LaplaceRegressor, Matrix, TargetMap};
use serde_json::{Value, json};

use super::{Facts, Training, classifier, ranked};
use crate::args::{ModelArgs, NumberArg};
use crate::failure::{Failure, Outcome};
use crate::prepare::Prepared;
use crate::screen::Screen;

/// All threads of the pool.
pub(crate) fn threads() -> Threads {
    Threads::up_to(rayon::current_num_threads())
}

fn tuning(args: &ModelArgs) -> KernelTuning {
    let alpha = match args.alpha {
        None | Some(NumberArg::Auto) => None,
        Some(NumberArg::Value(alpha)) => Some(alpha),
    };
    let tuned = KernelTuning { alpha, seed: args.seed, threads: threads(), ..KernelTuning::default() };
    let Some(lifetimes) = args.lifetimes.clone() else { return tuned };
    // The report's kernel: only lifetimes and α tuned.
    let (metric, measure) = (KernelMetric::None, KernelMeasure::Uniform);
    KernelTuning { lifetimes: Some(lifetimes), metric, measure, ..tuned }
}

pub(super) fn fit_numbers(training: &Training<'_>, args: &ModelArgs, screen: Screen) -> Outcome<LaplaceRegressor> {
    numbers(training, &training.rows()?.all()?, args, screen)
}

/// Fits to these rows, which need not be all of the table's.
pub(crate) fn numbers(
    training: &Training<'_>,
    rows: &Prepared,
    args: &ModelArgs,
    screen: Screen,
) -> Outcome<LaplaceRegressor> {
    let cells = rows.inputs(training.preparation).cells()?;
    let params = LaplaceRegressor::params().tuning(tuning(args)).categorical(training.preparation.is_code());
    Ok(screen
        .watch("tuning", |progress| params.fit_with(cells, &rows.y, FitOptions::watched(progress.part(0.0, 1.0))))?)
}

pub(super) fn fit_classes(training: &Training<'_>, args: &ModelArgs, screen: Screen) -> Outcome<LaplaceClassifier> {
    classes(training, &training.rows()?.all()?, args, screen)
}

/// Fits to these rows, which need not be all of the table's.
pub(crate) fn classes(
    training: &Training<'_>,
    rows: &Prepared,
    args: &ModelArgs,
    screen: Screen,
) -> Outcome<LaplaceClassifier> {
    if !args.tunes_whole_kernel() {
        return Err(Failure::input(
            "--lifetime and --search of a laplace model are for numbers, not classes",
            "leave them out, or use --model forest",
        ));
    }
    let cells = rows.inputs(training.preparation).cells()?;
    let labels: Vec<u32> = rows.y.iter().map(|class| *class as u32).collect();
    let (n_classes, codes) = (classifier::n_classes(training.preparation), training.preparation.is_code());
    let params = LaplaceClassifier::params().tuning(tuning(args)).n_classes(n_classes).categorical(codes);
    Ok(screen
        .watch("tuning", |progress| params.fit_with(cells, &labels, FitOptions::watched(progress.part(0.0, 1.0))))?)
}

/// Inputs by importance. A lifetime is a roughness: how fast the target changes along the input, not how much it matters.
pub(crate) fn inputs(importances: &[f64], lifetimes: &[f64], ranks: &[f64], features: &[String]) -> Value {
    let one = |d: usize| {
        let (importance, roughness) = (importances[d], lifetimes[d]);
        json!({ "input": features[d], "importance": importance, "roughness": roughness, "rank_roughness": ranks[d] })
    };
    json!(ranked(importances).into_iter().map(one).collect::<Vec<_>>())
}

/// The solver, if not one factorisation.
fn solver(report: &SolverReport) -> Vec<(&'static str, Value)> {
    let Some(local) = report.local else { return Vec::new() };
    vec![("solver", json!(report.used.name())), ("neighbours", json!(local.n_neighbors))]
}

pub(super) fn facts_of_numbers(model: &LaplaceRegressor, features: &[String]) -> Facts {
    let mut facts = Vec::new();
    if let Some(leave_one_out) = model.leave_one_out().first() {
        facts.extend([
            ("leave_one_out_rmse", json!(leave_one_out.rmse)),
            ("rmse_of_predicting_the_mean", json!(leave_one_out.rmse_of_mean)),
            ("leave_one_out_mae", json!(leave_one_out.mae)),
            ("leave_one_out_r2", json!(leave_one_out.r2())),
        ]);
    }
    facts.extend(solver(model.solver()));
    facts.extend([
        ("target_map", map_name(model.target_map())),
        ("alpha", json!(model.alpha())),
        ("exponent", exponent(model.exponent(), &model.metric())),
        ("evaluations", json!(model.trajectory().len())),
        ("relevance", inputs(model.importances(), &model.lifetimes(), &model.rank_lifetimes(), features)),
    ]);
    Facts(facts)
}

pub(super) fn facts_of_classes(model: &LaplaceClassifier, features: &[String]) -> Facts {
    let leave_one_out = model.leave_one_out();
    Facts(vec![
        ("classes", json!(model.n_classes())),
        ("leave_one_out_accuracy", json!(leave_one_out.accuracy)),
        ("leave_one_out_log_loss", json!(leave_one_out.log_loss)),
        ("log_loss_of_predicting_shares", json!(leave_one_out.log_loss_of_shares)),
        ("alpha", json!(model.alpha())),
        ("exponent", exponent(model.exponent(), &model.metric())),
        ("evaluations", json!(model.trajectory().len())),
        ("relevance", inputs(model.importances(), &model.lifetimes(), &model.rank_lifetimes(), features)),
    ])
}

/// The exponent of the metric's term, if there is one.
fn exponent(exponent: f64, metric: &Matrix) -> Value {
    if metric.n_rows() == 0 { Value::Null } else { json!(exponent) }
}

fn map_name(map: TargetMap) -> Value {
    match map {
        TargetMap::Identity => Value::Null,
        TargetMap::Sqrt => json!("square root"),
        TargetMap::Log => json!("logarithm"),
    }
}
