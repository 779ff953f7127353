//! `mondrian summarize`: domains and summaries of forests that are trained in parts, and their merging.

use std::path::Path;

use mondrian::internals::model_file::Archive;
use mondrian::{Moments, Points, Saved, Summary, TrainingDomain};
use serde_json::json;

use crate::args::{MergeArgs, ModelKind, SummarizeArgs};
use crate::failure::{Failure, Outcome};
use crate::model::{Fitted, Model, Opened, Record, classifier, density, forest};
use crate::prepare::{Besides, Prepared, PreparedRows, Task};
use crate::save::{check_not_input, check_place, write_file};
use crate::screen::Screen;

/// The note of a domain with the preparation of rows.
const NOTE: &str = "program";
/// Rows that are summarized at once: the more, the fewer summaries are merged.
const ROWS_AT_ONCE: usize = 1 << 18;

pub(crate) fn run(args: &SummarizeArgs, screen: Screen) -> Outcome<()> {
    check_place(&args.out)?;
    let inputs: Vec<&Path> = std::iter::once(args.data.read.data.as_path()).chain(args.domain.as_deref()).collect();
    check_not_input(&args.out, &inputs)?;
    match &args.domain {
        Some(domain) => part(args, domain, screen),
        None => make_domain(args, screen),
    }
}

/// A domain of all rows of a table.
fn make_domain(args: &SummarizeArgs, screen: Screen) -> Outcome<()> {
    let kind = if args.data.target.is_some() { ModelKind::Forest } else { ModelKind::Density };
    let opened = Opened::new(&args.data, Some(kind), &args.params, screen)?;
    let training = opened.training();
    let task = opened.preparation.task();
    let mut moments: Option<Moments> = None;
    training.rows()?.feed(screen, |points, batch| {
        let targets: &[f64] = if task == Some(Task::Regression) { &batch.y } else { &[] };
        let part = Moments::new(points, targets)?;
        match &mut moments {
            Some(moments) => moments.merge(&part)?,
            None => moments = Some(part),
        }
        Ok(())
    })?;
    let moments = moments.ok_or(mondrian::Error::NotFitted)?;
    let mut params = forest::forest_params(&training, &args.params)?;
    let margin = density::params(&training, &args.params)?.margin;
    if task.is_none() {
        params.bounds = Some(moments.bounds(margin)?);
    }
    let mut domain = moments.domain(&params)?.leaf_model(forest::params(&training, &args.params)?.leaf_model);
    domain = domain.gamma(classifier::params(&training, &args.params)?.gamma);
    let data = opened.source.place().to_owned();
    let record = Record { preparation: opened.preparation, seed: args.params.seed, data };
    let text = serde_json::to_string(&record).map_err(|error| Failure::Other(error.to_string()))?;
    let domain = domain.note(NOTE, &text);
    let json = domain.to_json()?;
    // Check that the written domain can be read.
    TrainingDomain::from_json(&json)?;
    write_file(&args.out, json.as_bytes())?;
    let lifetime = domain.lifetime().get();
    screen.message(format!("{} rows, lifetime {lifetime}; wrote {}", moments.n_rows(), args.out.display()));
    screen.result("", &json!({ "rows": moments.n_rows(), "lifetime": lifetime, "out": args.out }))
}

/// The summary of a table on a domain.
fn part(args: &SummarizeArgs, place: &Path, screen: Screen) -> Outcome<()> {
    let (domain, record) = read_domain(place)?;
    let source = args.data.read.open()?;
    let missing = args.data.missing.missing.unwrap_or(record.preparation.missing);
    let task = record.preparation.task();
    let besides = if task.is_some() { Besides::learning() } else { Besides::default() };
    let rows = PreparedRows::new(&source, &record.preparation, missing, &besides)?;
    let n_classes = classifier::n_classes(&record.preparation);
    let (mut summary, mut waiting): (Option<Summary>, Prepared) = (None, Prepared::default());
    let mut take = |waiting: &mut Prepared| -> Outcome<()> {
        let points = Points::row_major(&waiting.x, record.preparation.n_features())?;
        let part = match task {
            Some(Task::Regression) => Summary::of_regression(&domain, points, &waiting.y),
            Some(Task::Classification) => Summary::of_classification(&domain, points, &waiting.classes(), n_classes),
            None => Summary::of_density(&domain, points),
        };
        let part = part.map_err(|error| match error {
            mondrian::Error::OutsideBox { .. } | mondrian::Error::InvalidParameter { .. } => {
                Failure::input(format!("{}: {error}", source.place()), "make the domain of a table that has all rows")
            }
            other => other.into(),
        })?;
        match &mut summary {
            Some(summary) => summary.merge(&part)?,
            None => summary = Some(part),
        }
        *waiting = Prepared::default();
        Ok(())
    };
    let fed = rows.feed(screen, |points, batch| {
        waiting.x.extend_from_slice(&batch.x);
        waiting.y.extend_from_slice(&batch.y);
        waiting.n_read += points.n_rows();
        if waiting.n_read >= ROWS_AT_ONCE { take(&mut waiting) } else { Ok(()) }
    })?;
    if waiting.n_read > 0 {
        take(&mut waiting)?;
    }
    fed.warn(screen);
    let summary = summary
        .ok_or_else(|| Failure::input(format!("{}: no rows to summarize", source.place()), "give at least one row"))?;
    let bytes = summary.to_bytes()?;
    write_file(&args.out, &bytes)?;
    let (n_rows, n_cells) = (summary.n_rows(), summary.n_cells());
    screen.message(format!("{n_rows} rows, {n_cells} cells, {} bytes; wrote {}", bytes.len(), args.out.display()));
    screen.result("", &json!({ "rows": n_rows, "cells": n_cells, "bytes": bytes.len(), "out": args.out }))
}

fn read_domain(place: &Path) -> Outcome<(TrainingDomain, Record)> {
    let text = std::fs::read_to_string(place).map_err(|error| Failure::reading(place, &error))?;
    let domain = TrainingDomain::from_json(&text).map_err(|error| {
        Failure::input(format!("{}: {error}", place.display()), "make it with mondrian summarize --make-domain")
    })?;
    let record = record_of(&domain)?;
    Ok((domain, record))
}

/// The preparation of the rows of a domain.
fn record_of(domain: &TrainingDomain) -> Outcome<Record> {
    let note = domain.notes().get(NOTE).and_then(|text| serde_json::from_str::<Record>(text).ok());
    let hint = "make the domain with mondrian summarize --make-domain";
    let record = note.ok_or_else(|| Failure::input("the domain has no preparation of rows", hint))?;
    record.preparation.check()?;
    if record.preparation.n_features() != domain.n_dims() {
        return Err(Failure::input("the domain and its preparation of rows are inconsistent", hint));
    }
    Ok(record)
}

/// Whether a file contains a summary.
pub(super) fn is_summary(path: &Path) -> Outcome<bool> {
    let bytes = std::fs::read(path).map_err(|error| Failure::reading(path, &error))?;
    Ok(Archive::from_bytes(&bytes).is_ok_and(|archive| archive.kind() == Summary::KIND))
}

/// The merged summary of several, or its finished forest.
pub(super) fn merge(args: &MergeArgs, screen: Screen) -> Outcome<()> {
    let mut all: Option<Summary> = None;
    for path in &args.files {
        let bytes = std::fs::read(path).map_err(|error| Failure::reading(path, &error))?;
        let in_file = |error: mondrian::Error| {
            let hint = "give summaries that were made on one domain";
            Failure::input(format!("{}: {error}", path.display()), hint)
        };
        let part = Summary::from_bytes(&bytes).map_err(in_file)?;
        match &mut all {
            Some(all) => all.merge(&part).map_err(in_file)?,
            None => all = Some(part),
        }
    }
    let summary = all.ok_or(mondrian::Error::NotFitted)?;
    let (n_rows, n_cells) = (summary.n_rows(), summary.n_cells());
    if args.finish {
        let mut record = record_of(summary.domain())?;
        record.preparation.n_rows = n_rows as u64;
        let model = match summary.task() {
            "regression" => Model::Forest(summary.finish_regression()?),
            "classification" => Model::Classifier(summary.finish_classification()?),
            _ => Model::Density(Box::new(summary.finish_density()?)),
        };
        Fitted { model, record }.save(&args.out)?;
    } else {
        write_file(&args.out, &summary.to_bytes()?)?;
    }
    screen.message(format!("{n_rows} rows in all; wrote {}", args.out.display()));
    screen.result("", &json!({ "rows": n_rows, "cells": n_cells, "out": args.out }))
}
