//! Pages about the whole tuned Laplace kernel: its error against a common factor on its lifetimes, held-out rows, inputs, and
//! which inputs its metric combines.

use mondrian::Matrix;
use serde_json::json;

use super::models::{FACTOR_ROWS, Factors, Judged, factor_curve_of, factors, judged_by};
use super::tree::relevance_section;
use super::{Curve, ModelReport, Plan};
use crate::failure::Outcome;
use crate::model::{Answer, laplace as laplace_model, ranked};
use crate::prepare::Inputs;
use crate::report::parts::{
    confusion_block, dependence_section, interval_sections, nominal_coverages, reliability_block, rmse, share_held,
};
use crate::report::{Block, Figure, Section};
use crate::scores::{Scores, most_probable};

const RELEVANCE: &str = "What permuting an input does to the leave-one-out error, as a share of the largest. A lifetime is \
                         something else: how rough the target is along the input.";
/// Largest number of inputs of a metric that is drawn.
const MOST_DRAWN: usize = 60;

/// The page of a regression.
pub(super) fn numbers(plan: &Plan<'_>) -> Outcome<ModelReport> {
    let preparation = plan.training.preparation;
    let split = &plan.split;
    let (train, held_out) = (split.train.inputs(preparation), split.held_out.inputs(preparation));
    let model = laplace_model::numbers(&plan.training, &split.train, plan.params, plan.screen)?;
    let truth = &split.held_out.y;
    let nominal = nominal_coverages();
    let (found, intervals) = model.predict_with_intervals(held_out.cells()?, &nominal)?;
    let held = nominal.iter().position(|c| *c == 0.9).map_or(0.0, |k| share_held(truth, &intervals[k]));
    let sections = interval_sections(truth, &found.mean, &intervals);
    let Judged { mut headline, mut figures, mut sections } = judged_by(truth, &found.mean, Some(held), sections);
    let names = preparation.features();
    if let Some(leave_one_out) = model.leave_one_out().first() {
        let note = format!("RMSE on all {} training rows", split.train.rows.len());
        headline.push(("Leave-one-out error", crate::report::parts::figure(leave_one_out.rmse), note));
        figures.push(("leave_one_out_rmse", json!(leave_one_out.rmse)));
    }
    let (lifetimes, ranks) = (model.lifetimes(), model.rank_lifetimes());
    figures.push(("inputs", laplace_model::inputs(model.importances(), &lifetimes, &ranks, &names)));
    figures.push(("alpha", json!(model.alpha())));
    figures.push(("exponent", json!(model.exponent())));
    sections.push(relevance_section(preparation, model.importances(), RELEVANCE));
    sections.extend(metric_section(&model.metric(), &names));
    let predict = |rows: Inputs<'_>| -> Outcome<Vec<f64>> { Ok(model.predict(rows.cells()?)?) };
    sections.extend(dependence_section(preparation, train, &ranked(model.importances()), predict)?);
    let errors = |factor: f64| -> Outcome<(f64, f64)> {
        let scaled = model.at_factor(factor, FACTOR_ROWS, laplace_model::threads())?;
        let left_out = scaled.leave_one_out().first().map_or(f64::NAN, |leave_one_out| leave_one_out.rmse);
        Ok((left_out, rmse(truth, &scaled.predict(held_out.cells()?)?)))
    };
    let curve = curve(plan, "rmse", model.n_rows(), errors)?;
    Ok(ModelReport { curve, sections, headline, figures, n_trees: None })
}

/// The page of a classifier.
pub(super) fn classes(plan: &Plan<'_>) -> Outcome<ModelReport> {
    let preparation = plan.training.preparation;
    let classes = preparation.target.as_ref().and_then(|t| t.classes.clone()).unwrap_or_default();
    let split = &plan.split;
    let held_out = split.held_out.inputs(preparation);
    let model = laplace_model::classes(&plan.training, &split.train, plan.params, plan.screen)?;
    let probabilities = model.predict_proba(held_out.cells()?)?;
    let truth = split.held_out.classes();
    let rows = probabilities.chunks(classes.len().max(1));
    let predicted: Vec<u32> = rows.clone().map(|row| most_probable(row) as u32).collect();
    let confidence: Vec<f64> = rows.zip(&predicted).map(|(row, p)| row[*p as usize]).collect();
    let right: Vec<bool> = predicted.iter().zip(&truth).map(|(p, t)| p == t).collect();
    let names = preparation.features();
    let mut sections = vec![
        Section::new(
            "Truth and prediction",
            &["Held-out rows by class and predicted class; darker cells are larger shares of the class."],
            vec![confusion_block(&classes, &truth, &predicted)],
        ),
        Section::new(
            "Calibration",
            &["Rows grouped by the confidence of the model, against its accuracy."],
            vec![reliability_block(&confidence, &right)],
        ),
        relevance_section(preparation, model.importances(), RELEVANCE),
    ];
    sections.extend(metric_section(&model.metric(), &names));
    let mut scores = Scores::default();
    scores.add(&Answer::Classes(probabilities), &split.held_out.y, false);
    let (wrong, most_frequent) = (1.0 - scores.accuracy(), 1.0 - scores.majority());
    let leave_one_out = model.leave_one_out();
    let headline = vec![
        (
            "Wrong on held-out rows",
            format!("{:.1} %", 100.0 * wrong),
            format!("always the most frequent class: {:.1} %", 100.0 * most_frequent),
        ),
        (
            "Leave-one-out log loss",
            crate::report::parts::figure(leave_one_out.log_loss),
            format!("predicting shares: {}", crate::report::parts::figure(leave_one_out.log_loss_of_shares)),
        ),
    ];
    let (lifetimes, ranks) = (model.lifetimes(), model.rank_lifetimes());
    let figures = vec![
        ("error_rate", json!(wrong)),
        ("baseline_error_rate", json!(most_frequent)),
        ("leave_one_out_log_loss", json!(leave_one_out.log_loss)),
        ("inputs", laplace_model::inputs(model.importances(), &lifetimes, &ranks, &names)),
    ];
    let errors = |factor: f64| -> Outcome<(f64, f64)> {
        let scaled = model.at_factor(factor, FACTOR_ROWS, laplace_model::threads())?;
        Ok((scaled.leave_one_out().log_loss, log_loss(&scaled.predict_proba(held_out.cells()?)?, &truth)))
    };
    let curve = curve(plan, "log_loss", model.n_rows(), errors)?;
    Ok(ModelReport { curve, sections, headline, figures, n_trees: None })
}

fn log_loss(probabilities: &[f64], truth: &[u32]) -> f64 {
    let n_classes = probabilities.len() / truth.len().max(1);
    let rows = probabilities.chunks(n_classes.max(1)).zip(truth);
    rows.map(|(row, t)| -row[*t as usize].ln()).sum::<f64>() / truth.len().max(1) as f64
}

/// Leave-one-out and held-out errors at factors on all lifetimes.
fn curve(
    plan: &Plan<'_>,
    loss: &'static str,
    n_rows: usize,
    errors: impl Fn(f64) -> Outcome<(f64, f64)>,
) -> Outcome<Curve> {
    let factors = factors();
    let mut progress = plan.screen.progress("factors", factors.len() as u64);
    let (mut left_out, mut held) = (Vec::new(), Vec::new());
    for (done, factor) in factors.iter().enumerate() {
        let (a, b) = errors(*factor)?;
        left_out.push(a);
        held.push(b);
        progress.set(done as u64);
    }
    progress.finish();
    let first = ("leave one out", "leave_one_out", left_out);
    let rows = n_rows.min(FACTOR_ROWS);
    Ok(factor_curve_of(Factors { factors, first, held, rows, loss }, n_rows))
}

/// Which inputs the metric combines: AᵀA with its inputs scaled to equal diagonal, red for the same sign, blue for opposite.
fn metric_section(metric: &Matrix, names: &[String]) -> Option<Section> {
    let inputs: Vec<usize> =
        (0..metric.n_columns()).filter(|&d| metric.column(d).iter().any(|x| *x != 0.0)).take(MOST_DRAWN).collect();
    if metric.n_rows() == 0 || inputs.len() < 2 {
        return None;
    }
    let product = |a: usize, b: usize| metric.column(a).iter().zip(metric.column(b)).map(|(x, y)| x * y).sum::<f64>();
    let shares: Vec<Vec<f64>> = inputs
        .iter()
        .map(|&a| inputs.iter().map(|&b| product(a, b) / (product(a, a) * product(b, b)).sqrt()).collect())
        .collect();
    let labels: Vec<&str> = inputs.iter().map(|&d| names[d].as_str()).collect();
    let text = [
        "The kernel measures distance along each input and, besides, by a learned matrix A. Shown is AᵀA with inputs scaled \
         to one another: dark cells off the diagonal are inputs that act together, red in the same direction, blue in \
         opposite ones.",
    ];
    let figure = Figure { svg: matrix_svg(&shares, &labels), caption: "AᵀA".to_owned() };
    Some(Section::new("Which inputs combine", &text, vec![Block::Figures { figures: vec![figure] }]))
}

/// Numbers from −1 to 1 as a square of cells.
fn matrix_svg(cells: &[Vec<f64>], labels: &[&str]) -> String {
    use std::fmt::Write;
    let n = cells.len();
    let (size, left) = ((640 / n.max(1)).clamp(8, 40), 150);
    let side = left + size * n;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {side} {side}\" width=\"{side}\" role=\"img\" aria-label=\"A\">"
    );
    for (i, row) in cells.iter().enumerate() {
        let name = escaped(labels[i]);
        let (middle, end) = (left + size * i + size / 2 + 4, left - 6);
        let _ = write!(
            svg,
            "<text x=\"{end}\" y=\"{middle}\" text-anchor=\"end\" font-size=\"11\" fill=\"currentColor\">{name}</text>\
             <text transform=\"translate({middle} {end}) rotate(-90)\" font-size=\"11\" fill=\"currentColor\">{name}</text>"
        );
        for (j, value) in row.iter().enumerate() {
            let colour = if *value >= 0.0 { "#c8321f" } else { "#1f5fa8" };
            let (x, y, side) = (left + size * j, left + size * i, size - 1);
            let _ = write!(
                svg,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{side}\" height=\"{side}\" fill=\"{colour}\" fill-opacity=\"{:.2}\"><title>{} and {name}: {value:.2}</title></rect>",
                0.04 + 0.96 * value.abs().min(1.0),
                escaped(labels[j]),
            );
        }
    }
    svg.push_str("</svg>");
    svg
}

/// A name inside a drawing, cut to what fits.
fn escaped(name: &str) -> String {
    let short: String =
        if name.chars().count() > 20 { name.chars().take(19).chain(['…']).collect() } else { name.to_owned() };
    short.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
