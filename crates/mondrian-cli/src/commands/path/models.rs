//! The page of each kind of model: its curve, its predictions of held-out rows, its inputs.

use mondrian::internals::laplace::LaplaceKernelRidge;
use mondrian::{FitOptions, LifetimeChoice, Prediction};
use mondrian::{Lifetime, Points};
use serde_json::{Map, Value, json};

use super::tree::{correlations, relevance_section, tree_section};
use super::{Curve, ModelReport, Plan};
use crate::args::LifetimeArg;
use crate::failure::Outcome;
use crate::model::{Answer, classifier as class_model, density as density_model, forest as forest_model};
use crate::model::{axes as axes_model, kernel as kernel_model, ranked};
use crate::prepare::Inputs;
use crate::report::parts::{
    CurveKind, confusion_block, coverage, dependence_section, figure, path_block, prediction_sections,
    reliability_block, residual_section, rmse,
};
use crate::report::{Block, Mark, Section, Series};
use crate::scores::Scores;

/// Training rows on which the errors at factors of the lifetimes are computed, at most: each factor needs a separate
/// solve.
pub(super) const FACTOR_ROWS: usize = 2000;
/// Halves of a power of two on both sides of the chosen lifetimes.
const FACTOR_STEPS: i32 = 10;

const RELEVANCE: &str = "The share of error that the cuts of each input remove, over all trees.";

/// Predictions of the held-out rows: figures at the top, for JSON, and the sections about them.
pub(super) struct Judged {
    pub(super) headline: Vec<(&'static str, String, String)>,
    pub(super) figures: Vec<(&'static str, Value)>,
    pub(super) sections: Vec<Section>,
}

fn judged(truth: &[f64], mean: &[f64], std: &[f64]) -> Judged {
    judged_by(truth, mean, Some(coverage(truth, mean, std, 0.9)), prediction_sections(truth, mean, std))
}

/// The same for intervals that have been evaluated already: the coverage of the 90 % intervals, if the model has any,
/// and the sections about them, or about the predictions alone.
pub(super) fn judged_by(truth: &[f64], mean: &[f64], held: Option<f64>, mut sections: Vec<Section>) -> Judged {
    let mut scores = Scores::default();
    scores.add(&Answer::Mean(mean.to_vec()), truth, false);
    let r2 = scores.r2();
    let mut headline = vec![
        ("Error held out", figure(scores.rmse()), format!("RMSE; predicting the mean: {}", figure(scores.baseline()))),
        ("R²", r2.map_or("–".to_owned(), figure), "share of variance explained".to_owned()),
        ("Mean absolute error", figure(scores.mae()), "held out".to_owned()),
    ];
    headline.extend(held.map(|held| ("Coverage", format!("{:.1} %", 100.0 * held), "of 90 % intervals".to_owned())));
    let figures = vec![
        ("coverage_90", json!(held)),
        ("rmse", json!(scores.rmse())),
        ("mae", json!(scores.mae())),
        ("r2", json!(r2)),
        ("baseline_rmse", json!(scores.baseline())),
    ];
    sections.insert(1, residual_section(truth, mean));
    Judged { headline, figures, sections }
}

pub(super) fn forest(plan: &Plan<'_>) -> Outcome<ModelReport> {
    let preparation = plan.training.preparation;
    let mut params = forest_model::params(&plan.training, plan.params)?;
    if params.forest.lifetime == LifetimeChoice::Auto {
        params.forest.lifetime = LifetimeChoice::Value(Lifetime::INFINITE);
    }
    let split = &plan.split;
    let (train, held_out) = (split.train.points(preparation)?, split.held_out.points(preparation)?);
    let model = plan.screen.watch("growing", |progress| {
        params.fit_with(train, &split.train.y, FitOptions::watched(progress.part(0.0, 1.0)))
    })?;
    let truth = &split.held_out.y;
    let path = plan.screen.watch("path", |progress| model.path(&[(held_out, truth.as_slice())], progress))?;
    let model = model.at(path.best_lifetime())?;
    let prediction = model.predict_with_std(held_out)?;
    let relevance = model.relevance();
    let order = ranked(&relevance);
    let bounds = model.forest().domain().first_box();
    let tree = tree_section(plan, bounds, train, Some(&split.train.y), &relevance, path.best_lifetime())?;
    let Judged { headline, mut figures, sections: predictions } = judged(truth, &prediction.mean, &prediction.std);
    let names = preparation.features();
    let ranking: Vec<Value> = order.iter().map(|&d| json!({ "input": names[d], "relevance": relevance[d] })).collect();
    figures.push(("relevance", json!(ranking)));
    let mut sections = vec![tree];
    sections.extend(predictions);
    sections.push(relevance_section(preparation, &relevance, RELEVANCE));
    let predict = |rows: Inputs<'_>| -> Outcome<Vec<f64>> { Ok(model.predict(rows.points()?)?) };
    sections.extend(dependence_section(preparation, split.train.inputs(preparation), &order, predict)?);
    let curve = Curve::of_path(&path, CurveKind::Exact, plan);
    Ok(ModelReport { curve, sections, headline, figures, n_trees: Some(model.forest().n_trees()) })
}

pub(super) fn classifier(plan: &Plan<'_>) -> Outcome<ModelReport> {
    let preparation = plan.training.preparation;
    let classes = preparation.target.as_ref().and_then(|t| t.classes.clone()).unwrap_or_default();
    let mut params = class_model::params(&plan.training, plan.params)?;
    if params.forest.lifetime == LifetimeChoice::Auto {
        params.forest.lifetime = LifetimeChoice::Value(Lifetime::INFINITE);
    }
    let split = &plan.split;
    let (train, held_out) = (split.train.points(preparation)?, split.held_out.points(preparation)?);
    let (labels, truth) = (split.train.classes(), split.held_out.classes());
    let model = plan.screen.watch("growing", |progress| {
        params.n_classes(classes.len()).fit_with(train, &labels, FitOptions::watched(progress.part(0.0, 1.0)))
    })?;
    let found = plan.screen.watch("path", |progress| model.path(&[(held_out, truth.as_slice())], None, progress))?;
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
            &["The same models evaluated by their most probable class. Marked: the lifetime chosen by log loss."],
            vec![path_block(found.error(), CurveKind::Sampled, Some(lifetime.get()))],
        ),
        tree_section(plan, bounds, train, Some(&split.train.y), &relevance, lifetime)?,
        Section::new(
            "Truth and prediction",
            &["Held-out rows by class and predicted class; darker cells are larger shares of the class."],
            vec![confusion_block(&classes, &truth, &predicted)],
        ),
        Section::new(
            "Calibration",
            &["Rows grouped by the confidence of the forest, against its accuracy."],
            vec![reliability_block(&confidence, &right)],
        ),
        relevance_section(preparation, &relevance, RELEVANCE),
    ];
    let mut scores = Scores::default();
    scores.add(&Answer::Classes(probabilities), &split.held_out.y, false);
    let wrong = 1.0 - scores.accuracy();
    let most_frequent = 1.0 - scores.majority();
    let headline = vec![(
        "Wrong on held-out rows",
        format!("{:.1} %", 100.0 * wrong),
        format!("always the most frequent class: {:.1} %", 100.0 * most_frequent),
    )];
    let figures = vec![("error_rate", json!(wrong)), ("baseline_error_rate", json!(most_frequent))];
    let curve = Curve::of_path(&path, CurveKind::Sampled, plan);
    Ok(ModelReport { curve, sections, headline, figures, n_trees: Some(model.forest().n_trees()) })
}

pub(super) fn kernel(plan: &Plan<'_>) -> Outcome<ModelReport> {
    let preparation = plan.training.preparation;
    let split = &plan.split;
    let (train, held_out) = (split.train.points(preparation)?, split.held_out.points(preparation)?);
    let terminal = kernel_model::terminal(&plan.training, plan.params, train)?;
    let model = kernel_model::params(&plan.training, plan.params)?.lifetime(terminal).fit(train, &split.train.y)?;
    let truth = &split.held_out.y;
    let validation = [(held_out, truth.as_slice())];
    let path = plan.screen.watch("path", |progress| model.path(&validation, &plan.method, progress))?;
    let kind = if path.is_at_some_lifetimes() { CurveKind::Sampled } else { CurveKind::Exact };
    let model = model.at(path.best_lifetime())?;
    let mean = model.predict(held_out)?.column(0).to_vec();
    let std: Vec<f64> = model.predict_variance(held_out)?.column(0).iter().map(|v| v.max(0.0).sqrt()).collect();
    let Judged { headline, mut figures, sections: predictions } = judged(truth, &mean, &std);
    figures.push(("worst_residual", json!(path.worst_residual())));
    let relevance = correlations(train, &split.train.y);
    let bounds = model.features().forest().domain().first_box();
    let mut sections = vec![tree_section(plan, bounds, train, Some(&split.train.y), &relevance, path.best_lifetime())?];
    sections.extend(predictions);
    let predict = |rows: Inputs<'_>| -> Outcome<Vec<f64>> { Ok(model.predict(rows.points()?)?.column(0).to_vec()) };
    sections.extend(dependence_section(preparation, split.train.inputs(preparation), &ranked(&relevance), predict)?);
    let curve = Curve::of_path(&path, kind, plan);
    Ok(ModelReport { curve, sections, headline, figures, n_trees: Some(model.features().n_trees()) })
}

pub(super) fn density(plan: &Plan<'_>) -> Outcome<ModelReport> {
    let preparation = plan.training.preparation;
    let params = density_model::params(&plan.training, plan.params)?;
    let split = &plan.split;
    let (train, held_out) = (split.train.points(preparation)?, split.held_out.points(preparation)?);
    let mut model = density_model::fitted(&plan.training, &params, train, ("choosing", plan.screen))?;
    if plan.params.lifetime == LifetimeArg::Auto {
        // The chosen lifetime in the middle of the curve, not at its end.
        let chosen = model.lifetime().get();
        model.set_lifetime(Lifetime::new(if chosen > 0.0 { 4.0 * chosen } else { 1.0 })?)?;
    }
    let path = plan.screen.watch("path", |progress| model.path(&[held_out], progress))?;
    let outside = path.n_outside().first().copied().unwrap_or(0);
    let headline = vec![("Held-out rows outside the box", outside.to_string(), "their density is zero".to_owned())];
    let figures = vec![("outside_the_box", json!(outside)), ("gamma", json!(model.gamma()))];
    // A density has no relevance of inputs: the first two are shown, shaded by the density of rows.
    let relevance = vec![1.0; train.n_columns()];
    let bounds = model.forest().domain().first_box();
    let section = tree_section(plan, bounds, train, None, &relevance, path.best_lifetime())?;
    let curve = Curve::of_path(&path, CurveKind::Exact, plan);
    Ok(ModelReport { curve, sections: vec![section], headline, figures, n_trees: Some(model.forest().n_trees()) })
}

pub(super) fn laplace(plan: &Plan<'_>) -> Outcome<ModelReport> {
    let preparation = plan.training.preparation;
    let split = &plan.split;
    let (train, held_out) = (split.train.points(preparation)?, split.held_out.points(preparation)?);
    let model = axes_model::fit_rows(&plan.training, train, &split.train.y, plan.params, plan.screen)?;
    let truth = &split.held_out.y;
    let Prediction { mean, std } = model.predict_with_std(held_out)?;
    let Judged { headline, mut figures, sections: predictions } = judged(truth, &mean, &std);
    let names = preparation.features();
    let (order, importances) = (model.ranking(), model.importances());
    let inputs: Vec<Value> = order
        .iter()
        .map(|&d| json!({ "input": names[d], "lifetime": model.lifetimes()[d], "importance": importances[d] }))
        .collect();
    figures.push(("inputs", json!(inputs)));
    figures.push(("alpha", json!(model.alpha())));
    let mut sections = predictions;
    sections.push(relevance_section(
        preparation,
        &importances,
        "The importance of each input in the fitted kernel; an input whose lifetime is zero is ignored.",
    ));
    let predict = |rows: Inputs<'_>| -> Outcome<Vec<f64>> { Ok(model.predict(rows.points()?)?) };
    sections.extend(dependence_section(preparation, split.train.inputs(preparation), &order, predict)?);
    let curve = factor_curve(plan, &model, train, held_out)?;
    Ok(ModelReport { curve, sections, headline, figures, n_trees: None })
}

/// The error where all lifetimes are multiplied by a common factor: the kernel's own path, through the tuned lifetimes.
fn factor_curve(
    plan: &Plan<'_>,
    model: &LaplaceKernelRidge,
    train: Points<'_>,
    held_out: Points<'_>,
) -> Outcome<Curve> {
    let (y, truth) = (&plan.split.train.y, &plan.split.held_out.y);
    let stride = train.n_rows().div_ceil(FACTOR_ROWS).max(1);
    let width = train.n_columns();
    let rows: Vec<usize> = (0..train.n_rows()).step_by(stride).collect();
    let x: Vec<f64> = rows.iter().flat_map(|&row| (0..width).map(move |d| train.get(row, d))).collect();
    let targets: Vec<f64> = rows.iter().map(|&row| y[row]).collect();
    let some = Points::row_major(&x, width)?;
    let (mut factors, mut fitted, mut held) = (Vec::new(), Vec::new(), Vec::new());
    let mut progress = plan.screen.progress("factors", 2 * FACTOR_STEPS as u64 + 1);
    for (done, factor) in self::factors().into_iter().enumerate() {
        let scaled = model.lifetimes().iter().map(|lifetime| Lifetime::new(lifetime * factor));
        let lifetimes = scaled.collect::<mondrian::Result<Vec<_>>>()?;
        let scaled = axes_model::fit_at(some, &targets, lifetimes, model.alpha(), plan.params.seed)?;
        factors.push(factor);
        fitted.push(rmse(&targets, &scaled.predict(some)?));
        held.push(rmse(truth, &scaled.predict(held_out)?));
        progress.set(done as u64);
    }
    progress.finish();
    Ok(factor_curve_of(
        Factors { factors, first: ("training", "train", fitted), held, rows: rows.len(), loss: "rmse" },
        train.n_rows(),
    ))
}

/// Errors at factors on all lifetimes.
pub(super) struct Factors {
    pub(super) factors: Vec<f64>,
    /// A second curve besides the held-out one: its name on the page and in JSON.
    pub(super) first: (&'static str, &'static str, Vec<f64>),
    pub(super) held: Vec<f64>,
    /// Training rows of each solve.
    pub(super) rows: usize,
    pub(super) loss: &'static str,
}

/// The evaluated factors.
pub(super) fn factors() -> Vec<f64> {
    (-FACTOR_STEPS..=FACTOR_STEPS).map(|step| 2.0_f64.powf(f64::from(step) / 2.0)).collect()
}

/// The curve of errors at factors, through the fitted lifetimes at factor 1.
pub(super) fn factor_curve_of(found: Factors, n_train: usize) -> Curve {
    let Factors { factors, first: (name, key, values), held, rows, loss } = found;
    let at_one = FACTOR_STEPS as usize;
    let best = (0..held.len()).min_by(|&a, &b| held[a].total_cmp(&held[b])).unwrap_or(at_one);
    let mut object = Map::new();
    object.insert("factors".to_owned(), json!(factors));
    object.insert(key.to_owned(), json!(values));
    object.insert("validation".to_owned(), json!(held));
    object.insert("best_factor".to_owned(), json!(factors[best]));
    object.insert("rows_of_the_curve".to_owned(), json!(rows));
    let dots = |series: Series| Series { dots: true, ..series };
    let series = vec![
        dots(Series::new(name, factors.clone(), values)),
        dots(Series::new("held out", factors.clone(), held.clone())),
    ];
    let mut text = vec![
        "All lifetimes of the fitted kernel multiplied by one factor, α as fitted. Each value needs a separate solve."
            .to_owned(),
        format!("Marked: factor 1, the fitted lifetimes. The smallest held-out error is at {}.", figure(factors[best])),
    ];
    if rows < n_train {
        text.push(format!("The curve is computed on {rows} of the {n_train} distinct training rows."));
    }
    let n_values = factors.len();
    let y_label = if loss == "rmse" { "RMSE" } else { "log loss" };
    Curve {
        block: Block::Curve {
            heading: None,
            x_label: "factor on all lifetimes".to_owned(),
            y_label: y_label.to_owned(),
            x_short: "factor".to_owned(),
            log_x: true,
            steps: false,
            plain: false,
            series,
            marks: vec![Mark { x: 1.0, label: "fitted: factor".to_owned(), minor: false }],
        },
        text,
        what: "factor on the lifetimes",
        loss,
        chosen: 1.0,
        tried: "lifetimes as tuned".to_owned(),
        value: held[at_one],
        n_values,
        object,
        further: None,
    }
}
