//! `mondrian path`: one fit, the whole curve of error against lifetime, and a page about it.

use std::path::Path;

use mondrian::FitOptions;
use mondrian::LifetimeChoice;
use mondrian::PathMethod;
use mondrian::RegularizationPath;
use mondrian::process::{Bounds, Mondrian, NodeKey};
use mondrian::{Lifetime, Points};
use serde_json::{Value, json};

use super::describe::short;
use super::fit::Opened;
use super::tour::is_held_out;
use crate::args::{LifetimeArg, PathArgs, PathKind};
use crate::failure::{Failure, Outcome};
use crate::model::{Training, classifier, density, forest, kernel, number, ranked};
use crate::prepare::{Preparation, Prepared, Task};
use crate::report::partition::{Drawn, partition_block};
use crate::report::parts::{
    axis, confusion_block, count, coverage, data_section, figure, path_block, prediction_sections, reliability_block,
    repeat_section, rmse,
};
use crate::report::{Block, Report, Section};
use crate::screen::Screen;

/// Values of a curve in the JSON object, at most.
const JSON_POINTS: usize = 2000;

/// Rows to learn from and rows to judge by.
struct Split {
    train: Prepared,
    held_out: Prepared,
}

/// What a path found: the curve, the page's own sections, and figures for machines.
struct Found {
    path: RegularizationPath,
    sections: Vec<Section>,
    headline: Vec<(&'static str, String, String)>,
    figures: Vec<(&'static str, Value)>,
    n_trees: usize,
}

pub(crate) fn run(args: &PathArgs, screen: Screen) -> Outcome<()> {
    crate::save::check_place(&args.out)?;
    let opened = Opened::new(&args.data, screen)?;
    let training = opened.training(args.data.missing());
    let split = Split::new(&training, args.params.seed)?;
    let found = match (args.model, opened.preparation.task()) {
        (PathKind::Density, _) => density_path(args, &training, &split, screen)?,
        (PathKind::Forest, Some(Task::Regression)) => forest_path(args, &training, &split, screen)?,
        (PathKind::Kernel, Some(_)) => kernel_path(args, &training, &split, screen)?,
        (_, None) => return Err(Failure::input("--target is missing", "name the column to predict")),
        (PathKind::Forest, Some(Task::Classification)) => classifier_path(args, &training, &split, screen)?,
    };
    let report = page(args, &opened, &split, &found);
    crate::save::write_file(&args.out, report.to_html()?.as_bytes())?;
    let best = found.path.best_lifetime();
    screen.say(format!(
        "{}: best held-out {} {} at lifetime {}",
        args.model.name(),
        found.path.loss().name(),
        short(found.path.value_at(best)),
        short(best.get())
    ));
    if let Some(further) = further(&found.path, args) {
        screen.say(format!(
            "the error has not turned at the end of the curve: --lifetime {} looks further",
            short(further)
        ));
    }
    screen.say(format!("wrote {}", args.out.display()));
    let thin = found.path.thinned(JSON_POINTS);
    let mut object = json!({
        "model": args.model.name(),
        "loss": thin.loss().name(),
        "lifetimes": thin.lifetimes(),
        "train": thin.train(),
        "validation": thin.validation().first(),
        "leave_one_out": thin.leave_one_out(),
        "best_lifetime": number(best.get()),
        "best_lifetime_1se": number(found.path.best_lifetime_1se().get()),
        "best_validation": found.path.value_at(best),
        "rows": { "train": split.train.rows.len(), "held_out": split.held_out.rows.len() },
        "seed": args.params.seed,
        "report": args.out,
    });
    for (name, value) in found.figures {
        object[name] = value;
    }
    screen.result(&args.out.display().to_string(), &object)
}

/// Where to end a curve whose error has not turned. A forest's own end is where all rows are parted: nothing follows it.
fn further(path: &RegularizationPath, args: &PathArgs) -> Option<f64> {
    let end = match args.params.lifetime {
        LifetimeArg::Auto if args.model == PathKind::Forest => return None,
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

fn forest_path(args: &PathArgs, training: &Training<'_>, split: &Split, screen: Screen) -> Outcome<Found> {
    let preparation = training.preparation;
    let mut params = forest::params(training, &args.params)?;
    if params.forest.lifetime == LifetimeChoice::Auto {
        params.forest.lifetime = LifetimeChoice::Value(Lifetime::INFINITE);
    }
    let (train, held_out) = (split.train.points(preparation)?, split.held_out.points(preparation)?);
    let model = screen.watch("growing", |progress| {
        params.fit_with(train, &split.train.y, FitOptions::watched(progress.part(0.0, 1.0)))
    })?;
    let path = screen.watch("path", |progress| model.path(&[(held_out, split.held_out.y.as_slice())], progress))?;
    let model = model.at(path.best_lifetime())?;
    let prediction = model.predict_with_std(held_out)?;
    let truth = &split.held_out.y;
    let relevance = model.relevance();
    let mut sections = vec![tree_section(
        preparation,
        model.forest().domain().first_box(),
        train,
        Some(&split.train.y),
        &relevance,
        path.best_lifetime(),
        args.params.seed,
    )?];
    sections.extend(prediction_sections(truth, &prediction.mean, &prediction.std));
    sections.push(relevance_section(preparation, &relevance));
    let held = coverage(truth, &prediction.mean, &prediction.std, 0.9);
    let error = rmse(truth, &prediction.mean);
    let names = preparation.features();
    let figures = vec![
        ("coverage_90", json!(held)),
        (
            "relevance",
            json!(
                ranked(&relevance)
                    .iter()
                    .map(|&d| json!({"input": names[d], "relevance": relevance[d]}))
                    .collect::<Vec<_>>()
            ),
        ),
    ];
    let headline = vec![
        ("Error held out", figure(error), "root mean squared".to_owned()),
        ("Coverage", format!("{:.1} %", 100.0 * held), "of 90 % intervals".to_owned()),
    ];
    Ok(Found { path, sections, headline, figures, n_trees: model.forest().n_trees() })
}

fn classifier_path(args: &PathArgs, training: &Training<'_>, split: &Split, screen: Screen) -> Outcome<Found> {
    let preparation = training.preparation;
    let classes = preparation.target.as_ref().and_then(|t| t.classes.clone()).unwrap_or_default();
    let mut params = classifier::params(training, &args.params)?;
    if params.forest.lifetime == LifetimeChoice::Auto {
        params.forest.lifetime = LifetimeChoice::Value(Lifetime::INFINITE);
    }
    let (train, held_out) = (split.train.points(preparation)?, split.held_out.points(preparation)?);
    let (labels, truth) = (split.train.classes(), split.held_out.classes());
    let model = screen.watch("growing", |progress| {
        params.n_classes(classes.len()).fit_with(train, &labels, FitOptions::watched(progress.part(0.0, 1.0)))
    })?;
    let found = screen.watch("path", |progress| model.path(&[(held_out, truth.as_slice())], None, progress))?;
    let path = found.log_loss().clone();
    let model = found.at(path.best_lifetime())?;
    let probabilities = model.predict_proba(held_out)?;
    let predicted = model.predict(held_out)?;
    let right: Vec<bool> = predicted.iter().zip(&truth).map(|(p, t)| p == t).collect();
    let confidence: Vec<f64> =
        probabilities.chunks(classes.len()).zip(&predicted).map(|(row, p)| row[*p as usize]).collect();
    let relevance = model.relevance();
    let bounds = model.forest().domain().first_box();
    let lifetime = path.best_lifetime();
    let sections = vec![
        Section::new(
            "Share of wrong classes",
            &["The same models judged by the class they call most probable."],
            vec![path_block(found.error(), None)],
        ),
        tree_section(preparation, bounds, train, Some(&split.train.y), &relevance, lifetime, args.params.seed)?,
        Section::new(
            "Truth and prediction",
            &["Held-out rows by their class and the one predicted."],
            vec![confusion_block(&classes, &truth, &predicted)],
        ),
        Section::new(
            "Calibration",
            &["Rows grouped by how sure the forest was, against how often it was right."],
            vec![reliability_block(&confidence, &right)],
        ),
        relevance_section(preparation, &relevance),
    ];
    let wrong = right.iter().filter(|r| !**r).count() as f64 / right.len().max(1) as f64;
    let headline = vec![("Wrong on held-out rows", format!("{:.1} %", 100.0 * wrong), "at that lifetime".to_owned())];
    Ok(Found {
        path,
        sections,
        headline,
        figures: vec![("error_rate", json!(wrong))],
        n_trees: model.forest().n_trees(),
    })
}

/// How much each input goes with the target: the size of their correlation, for models that have no measure of their own.
fn correlations(points: Points<'_>, y: &[f64]) -> Vec<f64> {
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

/// Tree 0 of the model itself, in the plane of its two most relevant inputs, coloured by the target where there is one.
fn tree_section(
    preparation: &Preparation,
    bounds: &Bounds,
    points: Points<'_>,
    y: Option<&[f64]>,
    relevance: &[f64],
    lifetime: Lifetime,
    seed: u64,
) -> Outcome<Section> {
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
    let process = Mondrian::new(bounds.clone(), NodeKey::root(seed, 0));
    let target = preparation.target.as_ref().filter(|_| y.is_some());
    let name = target.map(|t| t.name.clone()).unwrap_or_default();
    let classes = target.and_then(|t| t.classes.clone());
    let colours = match (target, &classes) {
        (None, _) => "The closer together training rows lie above a cell, the darker it is.",
        (Some(_), None) => "Colours are means of the training rows that lie above a cell.",
        (Some(_), Some(_)) => "Colours are the classes of most training rows above a cell.",
    };
    let plane = if target.is_some() {
        "The first tree in the plane of the two inputs that matter most, all others held at their medians."
    } else {
        "The first tree in the plane of the first two inputs, all others held at their medians."
    };
    let same = vec![0.0; if y.is_none() { points.n_rows() } else { 0 }];
    let drawn = Drawn { points, values: y.unwrap_or(&same), name, classes };
    let block = partition_block(&process, axes, dims, &middle, lifetime.get(), Some(drawn))?;
    let text = [plane, colours, "Move the slider: a longer lifetime only refines."];
    Ok(Section::new("One tree of the model", &text, vec![block]))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn relevance_section(preparation: &Preparation, relevance: &[f64]) -> Section {
    let names = preparation.features();
    let order: Vec<usize> = ranked(relevance).into_iter().take(20).collect();
    Section::new(
        "Which inputs matter",
        &["The share of error that the cuts of each input remove, over all trees."],
        vec![Block::Bars {
            names: order.iter().map(|&d| names[d].clone()).collect(),
            values: order.iter().map(|&d| relevance[d]).collect(),
            threshold: 0.0,
        }],
    )
}

fn kernel_path(args: &PathArgs, training: &Training<'_>, split: &Split, screen: Screen) -> Outcome<Found> {
    let preparation = training.preparation;
    let (train, held_out) = (split.train.points(preparation)?, split.held_out.points(preparation)?);
    let terminal = kernel::terminal(training, &args.params, train)?;
    let model = kernel::params(training, &args.params)?.lifetime(terminal).fit(train, &split.train.y)?;
    let validation = [(held_out, split.held_out.y.as_slice())];
    let found = screen.watch("path", |progress| model.path(&validation, &PathMethod::default(), progress))?;
    let path = found.path;
    let model = model.at(path.best_lifetime())?;
    let mean = model.predict(held_out)?.column(0).to_vec();
    let std: Vec<f64> = model.predict_variance(held_out)?.column(0).iter().map(|v| v.max(0.0).sqrt()).collect();
    let truth = &split.held_out.y;
    let held = coverage(truth, &mean, &std, 0.9);
    let headline = vec![
        ("Error held out", figure(rmse(truth, &mean)), "root mean squared".to_owned()),
        ("Coverage", format!("{:.1} %", 100.0 * held), "of 90 % intervals".to_owned()),
    ];
    let figures = vec![("coverage_90", json!(held)), ("worst_residual", json!(found.drift.worst_residual))];
    let relevance = correlations(train, &split.train.y);
    let bounds = model.features().forest().domain().first_box();
    let lifetime = path.best_lifetime();
    let mut sections =
        vec![tree_section(preparation, bounds, train, Some(&split.train.y), &relevance, lifetime, args.params.seed)?];
    sections.extend(prediction_sections(truth, &mean, &std));
    Ok(Found { path, sections, headline, figures, n_trees: model.features().n_trees() })
}

fn density_path(args: &PathArgs, training: &Training<'_>, split: &Split, screen: Screen) -> Outcome<Found> {
    let preparation = training.preparation;
    let params = density::params(training, &args.params)?;
    let (train, held_out) = (split.train.points(preparation)?, split.held_out.points(preparation)?);
    let mut model =
        screen.watch("choosing", |progress| params.fit_with(train, FitOptions::watched(progress.part(0.0, 1.0))))?;
    if args.params.lifetime == LifetimeArg::Auto {
        // The chosen lifetime in the middle of the curve, not at its end.
        let chosen = model.lifetime().get();
        model.set_lifetime(Lifetime::new(if chosen > 0.0 { 4.0 * chosen } else { 1.0 })?)?;
    }
    let found = screen.watch("path", |progress| model.path(&[held_out], progress))?;
    let path = found.path;
    let outside = found.n_outside.first().copied().unwrap_or(0);
    let headline = vec![("Held-out rows outside the box", outside.to_string(), "their density is zero".to_owned())];
    let figures = vec![("outside_the_box", json!(outside)), ("gamma", json!(model.gamma()))];
    // No input matters more than another to a density: the first two are shown, shaded by how close together rows lie.
    let relevance = vec![1.0; train.n_columns()];
    let bounds = model.forest().domain().first_box();
    let section = tree_section(preparation, bounds, train, None, &relevance, path.best_lifetime(), args.params.seed)?;
    Ok(Found { path, sections: vec![section], headline, figures, n_trees: model.forest().n_trees() })
}

fn page(args: &PathArgs, opened: &Opened, split: &Split, found: &Found) -> Report {
    let target = opened.preparation.target.as_ref().map(|t| t.name.clone());
    let title = match (&target, args.model) {
        (Some(target), PathKind::Forest | PathKind::Kernel) => format!("{target}, at every lifetime"),
        _ => "A density at every lifetime".to_owned(),
    };
    let best = found.path.best_lifetime();
    let mut report = Report {
        title,
        kicker: format!("mondrian path · {}", args.model.name()),
        lead: format!(
            "{}: {} rows to learn from, {} held out, {} inputs. One fit, looked at with every lifetime.",
            file_name(opened.source.place()),
            count(split.train.rows.len() as u64),
            count(split.held_out.rows.len() as u64),
            opened.preparation.n_features()
        ),
        headline: Vec::new(),
        sections: Vec::new(),
    };
    let last = found.path.lifetimes().last().copied().unwrap_or(0.0);
    let tried = format!("of {} from 0 to {}", count(found.path.len() as u64), figure(last));
    report.headline("Chosen lifetime", figure(best.get()), tried);
    for (label, value, note) in &found.headline {
        report.headline(label, value.clone(), note.clone());
    }
    let held_out = count(split.held_out.rows.len() as u64);
    report.headline("Rows", count(opened.summary.n_used), format!("{held_out} held out"));
    report.sections.push(Section::new(
        "Error against lifetime",
        &[
            "One fit gives the whole curve, exactly: the value at a lifetime is that of a model fitted with it.",
            "Marked: the lifetime with the least error on the held-out rows, and the smallest one within a standard error of it.",
        ],
        vec![path_block(&found.path, None)],
    ));
    report.sections.extend(found.sections.iter().cloned());
    report.sections.push(data_section(
        opened.source.place(),
        &opened.source.describe(),
        &opened.summary,
        &opened.preparation,
    ));
    let items = vec![
        ("model".to_owned(), json!(args.model.name())),
        ("trees".to_owned(), json!(found.n_trees)),
        ("seed".to_owned(), json!(args.params.seed)),
        ("scaling of inputs".to_owned(), json!(opened.preparation.scaling)),
        ("missing cells".to_owned(), json!(opened.preparation.missing)),
        ("cuts in the curve".to_owned(), json!(found.path.len())),
    ];
    report.sections.push(repeat_section(vec![command_line()], items));
    report
}

/// The last part of a path: what a reader knows a table by.
fn file_name(place: &str) -> &str {
    Path::new(place).file_name().and_then(|name| name.to_str()).unwrap_or(place)
}

/// The command as it was given.
fn command_line() -> String {
    let mut words = vec!["mondrian".to_owned()];
    for word in std::env::args().skip(1) {
        let plain = word.chars().all(|c| c.is_alphanumeric() || "-_./=,:+@%".contains(c));
        words.push(if plain { word } else { format!("'{}'", word.replace('\'', "'\\''")) });
    }
    words.join(" ")
}
