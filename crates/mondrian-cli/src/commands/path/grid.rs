//! The page of a Mondrian grid: the search for its lifetimes, held-out rows, inputs.

use mondrian::GridRidge;
use serde_json::{Map, Value, json};

use super::models::{Judged, judged_by};
use super::tree::relevance_section;
use super::{Curve, ModelReport, Plan};
use crate::failure::Outcome;
use crate::model::grid as grid_model;
use crate::prepare::Inputs;
use crate::report::parts::{count, dependence_section, figure, rmse, truth_section};
use crate::report::{Block, Mark, Series};

const RELEVANCE: &str = "The lifetime of each input times its mean absolute deviation: how many cuts a typical distance along it meets. \
                         A search cut by cut may leave an irrelevant input a small lifetime.";

pub(super) fn numbers(plan: &Plan<'_>) -> Outcome<ModelReport> {
    let preparation = plan.training.preparation;
    let split = &plan.split;
    let (train, held_out) = (split.train.points(preparation)?, split.held_out.points(preparation)?);
    let model = grid_model::fit_rows(&plan.training, train, &split.train.y, plan.params, plan.screen)?;
    let truth = &split.held_out.y;
    let mean = model.predict(held_out)?;
    let Judged { headline, mut figures, mut sections } =
        judged_by(truth, &mean, None, vec![truth_section(truth, &mean)]);
    let names = preparation.features();
    let (order, lifetimes) = (model.ranking(), model.lifetimes());
    let inputs: Vec<Value> = order.iter().map(|&d| json!({ "input": names[d], "lifetime": lifetimes[d] })).collect();
    figures.push(("inputs", json!(inputs)));
    figures.push(("alpha", json!(model.alpha())));
    sections.push(relevance_section(preparation, &model.relevance(), RELEVANCE));
    let predict = |rows: Inputs<'_>| -> Outcome<Vec<f64>> { Ok(model.predict(rows.points()?)?) };
    sections.extend(dependence_section(preparation, split.train.inputs(preparation), &order, predict)?);
    let curve = search_curve(&model, rmse(truth, &mean));
    Ok(ModelReport {
        curve,
        sections,
        headline,
        figures,
        n_trees: Some(plan.params.trees.unwrap_or(mondrian::GridRidgeParams::default().n_grids)),
    })
}

/// The error of every configuration recorded by the search, and the smallest so far.
fn search_curve(model: &GridRidge, held_out: f64) -> Curve {
    let steps = model.trajectory();
    let errors: Vec<f64> = steps.iter().map(|step| step.error).collect();
    let numbers: Vec<f64> = (1..=errors.len()).map(|number| number as f64).collect();
    let least: Vec<f64> = errors
        .iter()
        .scan(f64::INFINITY, |least, error| {
            *least = least.min(*error);
            Some(*least)
        })
        .collect();
    let best = (0..errors.len()).min_by(|&a, &b| errors[a].total_cmp(&errors[b]));
    let chosen = best.map_or(0.0, |at| numbers[at]);
    let mut object = Map::new();
    object.insert("search".to_owned(), json!(errors));
    object.insert("best_evaluation".to_owned(), json!(best.map(|at| at + 1)));
    object.insert("best_validation".to_owned(), json!(best.map(|at| errors[at])));
    let text = if steps.is_empty() {
        vec!["The lifetimes were given: there was no search.".to_owned()]
    } else {
        vec![
            format!(
                "One lifetime per input, searched for on a fifth of at most 3000 training rows that the search held out. Shown is the \
                 error on those at each of {} configurations, one after the other, and the least so far.",
                count(steps.len() as u64)
            ),
            "Marked: the chosen configuration, fitted to all training rows.".to_owned(),
        ]
    };
    Curve {
        block: Block::Curve {
            heading: None,
            x_label: "configuration".to_owned(),
            y_label: "RMSE".to_owned(),
            x_short: "configuration".to_owned(),
            log_x: false,
            steps: false,
            plain: false,
            series: vec![
                Series { dots: true, ..Series::new("tried", numbers.clone(), errors) },
                Series { muted: true, ..Series::new("least so far", numbers, least) },
            ],
            marks: best.map(|_| Mark { x: chosen, label: "taken:".to_owned(), minor: false }).into_iter().collect(),
        },
        text,
        what: "configuration",
        loss: "rmse",
        chosen,
        tried: if steps.is_empty() {
            "lifetimes as given".to_owned()
        } else {
            format!("of {}", figure(steps.len() as f64))
        },
        value: held_out,
        n_values: steps.len(),
        object,
        further: None,
    }
}
