//! `mondrian fit`: a table in, a model file out.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::args::FitArgs;
use crate::commands::describe::short;
use crate::failure::{Failure, Outcome};
use crate::lock::ModelLock;
use crate::model::{Facts, Fitted, Model, Opened, Record};
use crate::prepare::{Besides, PreparedRows};
use crate::save::{check_not_input, check_place, is_standard};
use crate::screen::Screen;
use crate::stages::{self, Stage};

pub(crate) fn run(args: &FitArgs, screen: Screen) -> Outcome<()> {
    check_place(&args.out)?;
    check_not_input(&args.out, &inputs(args))?;
    if is_standard(&args.out) && screen.json {
        return Err(Failure::input("--json and the model cannot both go to standard output", "give --out a file name"));
    }
    if let Some(report) = &args.report {
        check_place(report)?;
        check_not_input(report, &inputs(args))?;
        if args.like.is_some() || is_standard(report) {
            return Err(Failure::input(
                "--report needs a file name and cannot be combined with --like",
                "use mondrian path",
            ));
        }
    }
    let _lock = ModelLock::take(&args.out)?;
    let fitted = match &args.like {
        Some(like) => alike(args, like, screen)?,
        None => fit_new(args, screen)?,
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
    screen.message(text);
    if !is_standard(&args.out) {
        screen.message(format!("wrote {}", args.out.display()));
    }
    object["timings"] = stages::timings();
    if args.timings {
        screen.message(timings_text(&object["timings"]));
    }
    screen.result("", &object)
}

/// The files that are read.
fn inputs(args: &FitArgs) -> Vec<&std::path::Path> {
    std::iter::once(args.data.read.data.as_path()).chain(args.like.as_deref()).collect()
}

/// Time and memory, one line per stage.
fn timings_text(timings: &Value) -> String {
    let lines: Vec<String> = timings
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| {
            let (what, unit) = name.rsplit_once('_')?;
            if name == "table_reads" {
                return Some(format!("  {:<24} {value}", "reads of the table"));
            }
            let unit = if unit == "seconds" { "s" } else { "MB" };
            Some(format!("  {:<24} {:.1} {unit}", what.replace('_', " "), value.as_f64()?))
        })
        .collect();
    format!("time and memory\n{}", lines.join("\n"))
}

/// A new model with a new preparation.
fn fit_new(args: &FitArgs, screen: Screen) -> Outcome<Fitted> {
    let opened = Opened::new(&args.data, args.model, &args.params, screen)?;
    if let Some(out) = &args.report {
        let _stage = Stage::new("reporting");
        super::path::write_report(&args.params, &opened, mondrian::PathMethod::default(), out, screen)?;
    }
    opened.preparation.warn(screen);
    let stage = Stage::new("fitting");
    let model = Model::fit(opened.kind, &opened.training(), &args.params, screen)?;
    drop(stage);
    let data = opened.source.place().to_owned();
    let mut fitted = Fitted { model, record: Record { preparation: opened.preparation, seed: args.params.seed, data } };
    fitted.count(0);
    Ok(fitted)
}

/// A model with the preparation, box, seed and parameters of another, on other rows: the two can be merged.
fn alike(args: &FitArgs, like: &std::path::Path, screen: Screen) -> Outcome<Fitted> {
    let Fitted { model: pattern, mut record } = Fitted::load(like)?;
    let source = args.data.read.open()?;
    let missing = args.data.missing.missing.unwrap_or(record.preparation.missing);
    let mut model: Option<Model> = None;
    let rows = PreparedRows::new(&source, &record.preparation, missing, &Besides::learning())?;
    let fed = rows.feed(screen, |points, rows| {
        match &mut model {
            Some(model) => model.learn(points, rows)?,
            None => model = Some(pattern.like(points, rows)?),
        }
        Ok(())
    })?;
    fed.warn(screen);
    source.place().clone_into(&mut record.data);
    let model = model
        .ok_or_else(|| Failure::input(format!("{}: no rows to learn", source.place()), "give at least one row"))?;
    record.preparation.n_rows = 0;
    let mut fitted = Fitted { model, record };
    fitted.count(fed.n_rows);
    Ok(fitted)
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
                        .map(|(key, v)| format!("{} {}", key.replace('_', " "), value_text(v)))
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
