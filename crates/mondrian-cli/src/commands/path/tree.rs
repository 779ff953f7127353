//! The sections of a page that draw a tree and rank inputs.

use mondrian::process::{Bounds, Mondrian, NodeKey};
use mondrian::{Lifetime, Points};

use super::Plan;
use crate::failure::{Failure, Outcome};
use crate::model::ranked;
use crate::prepare::Preparation;
use crate::report::partition::{Drawn, partition_block};
use crate::report::parts::axis;
use crate::report::{Block, Section};

/// Tree 0 of the model itself, in the plane of its two most relevant inputs, coloured by the target where there is one.
pub(super) fn tree_section(
    plan: &Plan<'_>,
    bounds: &Bounds,
    points: Points<'_>,
    y: Option<&[f64]>,
    relevance: &[f64],
    lifetime: Lifetime,
) -> Outcome<Section> {
    let preparation = plan.training.preparation;
    let order = ranked(relevance);
    let dims = match order.as_slice() {
        [] => return Err(Failure::Other("a forest without inputs".to_owned())),
        [only] => [*only, *only],
        [first, second, ..] => [*first, *second],
    };
    if dims[0] == dims[1] {
        let text = ["One input only: the tree cuts a line."];
        return Ok(Section::new("One tree of the model", &text, Vec::new()));
    }
    let axes = dims.map(|d| axis(preparation, d, bounds.lower()[d], bounds.upper()[d]));
    let middle: Vec<f64> = (0..points.n_columns()).map(|d| median(points.column(d).collect())).collect();
    let process = Mondrian::new(bounds.clone(), NodeKey::root(plan.params.seed, 0));
    let target = preparation.target.as_ref().filter(|_| y.is_some());
    let name = target.map(|t| t.name.clone()).unwrap_or_default();
    let classes = target.and_then(|t| t.classes.clone());
    let colours = match (target, &classes) {
        (None, _) => "Darker cells have a higher density of training rows.",
        (Some(_), None) => "Colours are means of the training rows projected onto a cell.",
        (Some(_), Some(_)) => "Colours are the most frequent classes of the training rows projected onto a cell.",
    };
    let plane = if target.is_some() {
        "The first tree in the plane of the two most relevant inputs, with all others at their medians."
    } else {
        "The first tree in the plane of the first two inputs, with all others at their medians."
    };
    let same = vec![0.0; if y.is_none() { points.n_rows() } else { 0 }];
    let drawn = Drawn { points, values: y.unwrap_or(&same), name, classes };
    let tree = partition_block(&process, axes, dims, &middle, lifetime.get(), Some(drawn))?;
    let text = [plane, colours, "Move the slider: a longer lifetime only refines the cells."];
    let mut section = Section::new("One tree of the model", &text, vec![tree.block]);
    section.text.extend(tree.note);
    Ok(section)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// The inputs by relevance; `text` explains its meaning for this model.
pub(super) fn relevance_section(preparation: &Preparation, relevance: &[f64], text: &str) -> Section {
    let names = preparation.features();
    let order: Vec<usize> = ranked(relevance).into_iter().take(20).collect();
    let bars = Block::Bars {
        names: order.iter().map(|&d| names[d].clone()).collect(),
        values: order.iter().map(|&d| relevance[d]).collect(),
        threshold: 0.0,
    };
    Section::new("Which inputs matter", &[text], vec![bars])
}

/// The absolute correlation of each input with the target, for models without a measure of relevance.
pub(super) fn correlations(points: Points<'_>, y: &[f64]) -> Vec<f64> {
    let n = y.len().max(1) as f64;
    let centred = |values: Vec<f64>| -> Vec<f64> {
        let mean = values.iter().sum::<f64>() / n;
        values.into_iter().map(|x| x - mean).collect()
    };
    let squares = |values: &[f64]| values.iter().map(|x| x * x).sum::<f64>();
    let y = centred(y.to_vec());
    let size = |dim: usize| {
        let x = centred(points.column(dim).collect());
        let joint: f64 = x.iter().zip(&y).map(|(x, y)| x * y).sum();
        (joint / (squares(&x) * squares(&y)).sqrt().max(f64::MIN_POSITIVE)).abs()
    };
    (0..points.n_columns()).map(size).collect()
}
