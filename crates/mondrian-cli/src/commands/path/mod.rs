//! `mondrian path`: a model's error against its lifetime, and a page about it; the same page for `mondrian fit --report`.

mod grid;
mod laplace;
mod models;
mod tree;

use std::path::Path;

use mondrian::{PathMethod, RegularizationPath};
use serde_json::{Map, Value, json};

use super::describe::short;
use super::tour::is_held_out;
use crate::args::{LifetimeArg, ModelArgs, ModelKind, PathArgs, PathMethodArg};
use crate::failure::{Failure, Outcome};
use crate::model::{Opened, Training, number};
use crate::prepare::{Prepared, Task};
use crate::report::parts::{CurveKind, count, data_section, figure, file_name, path_block, repeat_section};
use crate::report::{Block, Report, Section};
use crate::screen::Screen;

/// Values of a curve in the JSON object, at most.
const JSON_POINTS: usize = 2000;

/// Training rows and held-out rows.
struct Split {
    train: Prepared,
    held_out: Prepared,
}

/// A curve of errors, for the page, for JSON and as text.
struct Curve {
    block: Block,
    /// The text of its section.
    text: Vec<String>,
    /// "lifetime", "factor on the lifetimes", or "configuration" of a search.
    what: &'static str,
    loss: &'static str,
    /// The position of the model of the page, and how it was chosen.
    chosen: f64,
    tried: String,
    value: f64,
    n_values: usize,
    object: Map<String, Value>,
    /// A larger lifetime to try, if the error has not turned.
    further: Option<f64>,
}

/// The content of the page about a model: the curve, the other sections, and figures.
struct ModelReport {
    curve: Curve,
    sections: Vec<Section>,
    headline: Vec<(&'static str, String, String)>,
    figures: Vec<(&'static str, Value)>,
    n_trees: Option<usize>,
}

/// The input of a page.
struct Plan<'a> {
    kind: ModelKind,
    params: &'a ModelArgs,
    training: Training<'a>,
    split: Split,
    method: PathMethod,
    screen: Screen,
}

pub(crate) fn run(args: &PathArgs, screen: Screen) -> Outcome<()> {
    crate::save::check_place(&args.out)?;
    crate::save::check_not_input(&args.out, &[&args.data.read.data])?;
    let opened = Opened::new(&args.data, args.model.map(crate::args::PathKind::kind), &args.params, screen)?;
    if args.method.is_some() && opened.kind != ModelKind::Kernel {
        let what = format!("--method is for --model kernel, but the model is {}", opened.kind.name());
        return Err(Failure::input(what, "leave it out, or add --model kernel"));
    }
    let method = args.method.map(PathMethodArg::method).unwrap_or_default();
    let object = write_report(&args.params, &opened, method, &args.out, screen)?;
    screen.result(&args.out.display().to_string(), &object)
}

/// Fits a model of the table's kind to three quarters of the rows, evaluates it on the rest, and writes a page about
/// it.
pub(crate) fn write_report(
    params: &ModelArgs,
    opened: &Opened,
    method: PathMethod,
    out: &Path,
    screen: Screen,
) -> Outcome<Value> {
    let kind = opened.kind;
    let training = opened.training();
    let split = Split::new(&training, params.seed)?;
    let plan = Plan { kind, params, training, split, method, screen };
    let model_report = match (kind, opened.preparation.task()) {
        (ModelKind::Grid, _) => grid::numbers(&plan)?,
        (ModelKind::Density, _) => models::density(&plan)?,
        (ModelKind::Laplace, Some(Task::Classification)) => laplace::classes(&plan)?,
        (ModelKind::Laplace, _) if params.tunes_whole_kernel() => laplace::numbers(&plan)?,
        (ModelKind::Laplace, _) => models::laplace(&plan)?,
        (ModelKind::Kernel, _) => models::kernel(&plan)?,
        (ModelKind::Forest, Some(Task::Classification)) => models::classifier(&plan)?,
        (ModelKind::Forest, _) => models::forest(&plan)?,
    };
    crate::save::write_file(out, page(&plan, opened, &model_report).to_html()?.as_bytes())?;
    let curve = &model_report.curve;
    screen.message(format!(
        "{}: held-out {} {} at {} {}",
        kind.name(),
        curve.loss,
        short(curve.value),
        curve.what,
        short(curve.chosen)
    ));
    if let Some(further) = curve.further {
        let further = short(further);
        screen.message(format!("the error has no minimum before the end of the curve: try --lifetime {further}"));
    }
    screen.message(format!("wrote {}", out.display()));
    let mut object = json!({
        "model": kind.name(),
        "loss": curve.loss,
        "rows": { "train": plan.split.train.rows.len(), "held_out": plan.split.held_out.rows.len() },
        "seed": params.seed,
        "report": out,
    });
    for (name, value) in curve.object.clone() {
        object[name] = value;
    }
    for (name, value) in model_report.figures {
        object[name] = value;
    }
    Ok(object)
}

impl Curve {
    /// The curve of a path over lifetimes.
    fn of_path(path: &RegularizationPath, kind: CurveKind, plan: &Plan<'_>) -> Self {
        let best = path.best_lifetime();
        let last = path.lifetimes().last().copied().unwrap_or(0.0);
        let thin = path.thinned(JSON_POINTS);
        let object = json!({
            "lifetimes": thin.lifetimes(),
            "train": thin.train(),
            "validation": thin.validation().first(),
            "leave_one_out": thin.leave_one_out(),
            "best_lifetime": number(best.get()),
            "best_lifetime_1se": number(path.best_lifetime_1se().get()),
            "best_validation": path.value_at(best),
            "exact": kind == CurveKind::Exact,
        });
        let text = match kind {
            CurveKind::Exact => {
                "One fit gives the whole curve, exactly: the value at a lifetime is that of a model fitted with it."
                    .to_owned()
            }
            CurveKind::Sampled => format!(
                "One fit, viewed at {} lifetimes; at each of them the value is that of a model fitted with it. Between \
                 them the curve is drawn straight.",
                path.len()
            ),
        };
        Self {
            block: path_block(path, kind, None),
            text: vec![
                text,
                "Marked: the lifetime with the least error on the held-out rows, and the smallest one within a \
                 standard error of it."
                    .to_owned(),
            ],
            what: "lifetime",
            loss: path.loss().name(),
            chosen: best.get(),
            tried: format!("of {} from 0 to {}", count(path.len() as u64), figure(last)),
            value: path.value_at(best),
            n_values: path.len(),
            object: object.as_object().cloned().unwrap_or_default(),
            further: further(path, plan),
        }
    }
}

/// The end of a curve whose error has not turned. The curve of a forest ends where all rows are separated: nothing
/// changes after it.
fn further(path: &RegularizationPath, plan: &Plan<'_>) -> Option<f64> {
    let end = match plan.params.lifetime {
        LifetimeArg::Auto if plan.kind == ModelKind::Forest => return None,
        LifetimeArg::Auto => path.lifetimes().last().copied()?,
        LifetimeArg::Fixed(lifetime) => lifetime.get(),
    };
    let ends_lowest = path.best_index() + 1 == path.len();
    (end.is_finite() && (ends_lowest || !path.has_turned())).then_some(2.0 * end)
}

impl Split {
    fn new(training: &Training<'_>, seed: u64) -> Outcome<Self> {
        let all = training.rows()?.all()?;
        let width = training.preparation.n_features();
        let (mut train, mut held_out) = (Prepared::default(), Prepared::default());
        for (i, row) in all.x.chunks(width).enumerate() {
            let part = if is_held_out(seed, all.rows[i]) { &mut held_out } else { &mut train };
            part.x.extend_from_slice(row);
            part.y.extend(all.y.get(i));
            part.rows.push(all.rows[i]);
        }
        if train.rows.is_empty() || held_out.rows.is_empty() {
            return Err(Failure::input("too few rows to hold some out", "give at least a dozen"));
        }
        Ok(Self { train, held_out })
    }
}

fn page(plan: &Plan<'_>, opened: &Opened, model_report: &ModelReport) -> Report {
    let ModelReport { curve, .. } = model_report;
    let target = opened.preparation.target.as_ref().map(|t| t.name.clone());
    let title = match (&target, plan.kind) {
        (_, ModelKind::Density) | (None, _) => "A density at every lifetime".to_owned(),
        (Some(target), ModelKind::Laplace) => format!("{target}, by the Laplace kernel"),
        (Some(target), ModelKind::Grid) => format!("{target}, by a Mondrian grid"),
        (Some(target), _) => format!("{target}, at every lifetime"),
    };
    let mut report = Report {
        title,
        kicker: format!("mondrian · {}", plan.kind.name()),
        lead: format!(
            "{}: {} rows to learn from, {} held out, {} inputs.",
            file_name(opened.source.place()),
            count(plan.split.train.rows.len() as u64),
            count(plan.split.held_out.rows.len() as u64),
            opened.preparation.n_features()
        ),
        headline: Vec::new(),
        sections: Vec::new(),
    };
    report.headline(&format!("Chosen {}", curve.what), figure(curve.chosen), curve.tried.clone());
    for (label, value, note) in &model_report.headline {
        report.headline(label, value.clone(), note.clone());
    }
    let held_out = count(plan.split.held_out.rows.len() as u64);
    report.headline("Rows", count(opened.summary.n_used), format!("{held_out} held out"));
    report.sections.push(Section {
        title: match curve.what {
            "lifetime" => "Error against lifetime",
            "configuration" => "The search for lifetimes",
            _ => "Error against lifetimes",
        }
        .to_owned(),
        text: curve.text.clone(),
        blocks: vec![curve.block.clone()],
    });
    report.sections.extend(model_report.sections.iter().cloned());
    report.sections.push(data_section(
        opened.source.place(),
        &opened.source.describe(),
        &opened.summary,
        &opened.preparation,
    ));
    let mut items = vec![("model".to_owned(), json!(plan.kind.name()))];
    items.extend(model_report.n_trees.map(|n| ("trees".to_owned(), json!(n))));
    items.extend([
        ("seed".to_owned(), json!(plan.params.seed)),
        ("scaling of inputs".to_owned(), json!(opened.preparation.scaling)),
        ("missing cells".to_owned(), json!(opened.preparation.missing)),
        ("values on the curve".to_owned(), json!(curve.n_values)),
    ]);
    report.sections.push(repeat_section(vec![command_line()], items));
    report
}

/// The command as given, without the folders of absolute paths: a shared page should not disclose them.
fn command_line() -> String {
    let mut words = vec!["mondrian".to_owned()];
    for word in std::env::args().skip(1) {
        let word = if Path::new(&word).is_absolute() { file_name(&word).to_owned() } else { word };
        let plain = word.chars().all(|c| c.is_alphanumeric() || "-_./=,:+@%".contains(c));
        words.push(if plain { word } else { format!("'{}'", word.replace('\'', "'\\''")) });
    }
    words.join(" ")
}
