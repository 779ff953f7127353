//! `mondrian fit`: a table in, a model file out.

use std::fmt::Write;

use mondrian::Points;
use serde_json::{Value, json};

use crate::args::{DataArgs, FitArgs, ModelKind};
use crate::commands::describe::short;
use crate::failure::{Failure, Outcome};
use crate::model::{Facts, Fitted, Model, Record, Training};
use crate::prepare::{Missing, Preparation, Prepared, PreparedRows, Selection, TableSummary, Task, summarise};
use crate::screen::Screen;
use crate::stages::{self, Stage};
use crate::table::{Kind, Source};

/// Distinct whole numbers below which a numeric target might be meant as classes.
const FEW: usize = 12;

/// A table looked at once, ready to be learned from.
pub(crate) struct Opened {
    pub(crate) source: Source,
    pub(crate) summary: TableSummary,
    pub(crate) preparation: Preparation,
}

impl Opened {
    /// Opens a table and looks at all of it.
    pub(crate) fn new(args: &DataArgs, screen: Screen) -> Outcome<Self> {
        let source = args.read.open()?;
        let selection = Selection::new(&source, &args.choice())?;
        let stage = Stage::new("looking");
        let summary = summarise(&source, &selection, args.missing(), screen)?;
        let preparation = Preparation::new(&selection, &summary, args.missing(), args.scale)?;
        drop(stage);
        screen.say(format!(
            "{}: {}; {} of {} rows, {} inputs{}",
            source.place(),
            source.describe(),
            summary.n_used,
            summary.n_rows,
            preparation.n_features(),
            preparation.target.as_ref().map_or(String::new(), |t| format!(", target {}", t.name)),
        ));
        hint_at_classes(&selection, &summary, args, screen);
        Ok(Self { source, summary, preparation })
    }

    /// What models are fitted to.
    pub(crate) fn training(&self, missing: Missing) -> Training<'_> {
        Training { source: &self.source, summary: &self.summary, preparation: &self.preparation, missing }
    }
}

/// A target of a few whole numbers may be classes: say how to ask for that.
fn hint_at_classes(selection: &Selection, summary: &TableSummary, args: &DataArgs, screen: Screen) {
    let Some((name, wanted, Task::Regression)) = &selection.target else { return };
    let column = &summary.columns[selection.inputs.len()];
    if args.task.is_some() || wanted.kind != Kind::Number || column.sample.iter().any(|x| x.fract() != 0.0) {
        return;
    }
    let mut values = column.sample.clone();
    values.sort_unstable_by(f64::total_cmp);
    values.dedup();
    if values.len() <= FEW {
        screen.say(format!(
            "the target {name} has only {} whole numbers; if they are classes, say --task classification",
            values.len()
        ));
    }
}

pub(crate) fn run(args: &FitArgs, screen: Screen) -> Outcome<()> {
    crate::save::check_place(&args.out)?;
    let fitted = match &args.like {
        Some(like) => alike(args, like, screen)?,
        None => anew(args, screen)?,
    };
    let features = fitted.record.preparation.features();
    let Facts(facts) = fitted.model.facts(&features);
    let text = described(&fitted, &facts);
    let mut object = json!({
        "model": fitted.model.kind().name(),
        "rows": fitted.record.preparation.n_rows,
        "inputs": features,
        "target": fitted.record.preparation.target.as_ref().map(|t| &t.name),
        "seed": fitted.record.seed,
        "out": args.out,
    });
    for (name, value) in facts {
        object[name] = value;
    }
    let stage = Stage::new("saving");
    fitted.save(&args.out)?;
    drop(stage);
    screen.say(text);
    screen.say(format!("wrote {}", args.out.display()));
    object["timings"] = stages::timings();
    if args.timings {
        screen.say(timings_text(&object["timings"]));
    }
    screen.result("", &object)
}

/// Where the time went, a line a stage.
fn timings_text(timings: &Value) -> String {
    let lines: Vec<String> = timings
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| {
            let (what, unit) = name.rsplit_once('_')?;
            let unit = if unit == "seconds" { "s" } else { "MB" };
            Some(format!("  {:<24} {:.1} {unit}", what.replace('_', " "), value.as_f64()?))
        })
        .collect();
    format!("where it went\n{}", lines.join("\n"))
}

/// A new model with its own preparation.
fn anew(args: &FitArgs, screen: Screen) -> Outcome<Fitted> {
    let opened = Opened::new(&args.data, screen)?;
    let kind = model_kind(args.model, &opened)?;
    let stage = Stage::new("fitting");
    let model = Model::fit(kind, &opened.training(args.data.missing()), &args.params, screen)?;
    drop(stage);
    let data = opened.source.place().to_owned();
    Ok(Fitted { model, record: Record { preparation: opened.preparation, seed: args.params.seed, data } })
}

/// A model with the preparation, box, seed and parameters of another, on other rows: the two can be merged.
fn alike(args: &FitArgs, like: &std::path::Path, screen: Screen) -> Outcome<Fitted> {
    let Fitted { model: pattern, mut record } = Fitted::load(like)?;
    let source = args.data.read.open()?;
    let missing = args.data.missing.missing.unwrap_or(record.preparation.missing);
    let mut model: Option<Model> = None;
    let n_rows = learn_all(&source, &record.preparation, missing, screen, |points, rows| {
        match &mut model {
            Some(model) => model.learn(points, rows)?,
            None => model = Some(pattern.like(points, rows)?),
        }
        Ok(())
    })?;
    record.preparation.n_rows = n_rows;
    source.place().clone_into(&mut record.data);
    let model = model.ok_or_else(|| Failure::input(format!("{}: no rows to learn", source.place()), "give some"))?;
    Ok(Fitted { model, record })
}

/// Hands all rows of a table to `learn`, batch by batch.
pub(crate) fn learn_all(
    source: &Source,
    preparation: &Preparation,
    missing: Missing,
    screen: Screen,
    mut learn: impl FnMut(Points<'_>, &Prepared) -> Outcome<()>,
) -> Outcome<u64> {
    let _stage = Stage::new("reading");
    let mut rows = PreparedRows::new(source, preparation, missing, true)?;
    let mut progress = screen.progress("reading", source.n_bytes());
    let mut n_rows = 0;
    while let Some(batch) = rows.next_batch()? {
        if !batch.rows.is_empty() {
            learn(batch.points(preparation)?, &batch)?;
        }
        n_rows += batch.rows.len() as u64;
        progress.set(rows.position());
    }
    progress.finish();
    Ok(n_rows)
}

/// The kind asked for, or the default for the task.
fn model_kind(asked: Option<ModelKind>, opened: &Opened) -> Outcome<ModelKind> {
    match (asked, opened.preparation.task()) {
        (Some(ModelKind::Density), _) => Ok(ModelKind::Density),
        (_, None) => Err(Failure::input(
            "--target is missing",
            format!(
                "name the column to predict, one of {}",
                crate::table::listed(opened.source.columns().iter().map(|c| c.name.as_str()))
            ),
        )),
        (Some(kind), _) => Ok(kind),
        (None, Some(Task::Regression)) => Ok(ModelKind::Laplace),
        (None, Some(Task::Classification)) => Ok(ModelKind::Forest),
    }
}

/// The facts as lines.
fn described(fitted: &Fitted, facts: &[(&'static str, Value)]) -> String {
    let mut text = format!("fitted a {} model", fitted.model.kind().name());
    for (name, value) in facts {
        match value {
            Value::Array(list) => {
                for entry in list.iter().take(10) {
                    let input = entry["input"].as_str().unwrap_or_default();
                    let parts: Vec<String> = entry
                        .as_object()
                        .into_iter()
                        .flatten()
                        .filter(|(key, _)| *key != "input")
                        .map(|(key, v)| format!("{key} {}", value_text(v)))
                        .collect();
                    let _ = write!(text, "\n  {input:<24} {}", parts.join(", "));
                }
            }
            Value::Null => {}
            other => {
                let _ = write!(text, "\n  {:<24} {}", name.replace('_', " "), value_text(other));
            }
        }
    }
    text
}

fn value_text(value: &Value) -> String {
    match value {
        Value::Number(n) => n.as_f64().map_or_else(|| n.to_string(), short),
        Value::String(s) => s.clone(),
        other => other.to_string(),
    }
}
