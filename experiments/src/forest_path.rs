//! The regularization path of a regression forest on the power plant, under both models of a leaf.

use anyhow::Result;
use mondrian::FitOptions;
use mondrian::Lifetime;
use mondrian::Progress;
use mondrian::RegularizationPath;
use mondrian::{LeafModel, Prior, RegressionParams};
use mondrian_benches::{Standardised, rmse};
use rayon::prelude::*;

use crate::context::Context;
use crate::plot::{Axis, Figure, Line, Panel, Style};
use crate::record::{Record, Spread};
use crate::trees;

const LARGEST: f64 = 200.0;
const MODELS: [(LeafModel, &str); 2] =
    [(LeafModel::Independent, "independent"), (LeafModel::Hierarchical, "hierarchical")];

/// One path.
struct Run {
    path: RegularizationPath,
    /// Largest difference from refits at some lifetimes.
    difference: f64,
}

pub(crate) fn run(context: &Context) -> Result<Record> {
    let seeds = context.seeds(5, 2);
    let table = context.table("ccpp")?;
    let (n_train, n_validation) = context.pick((usize::MAX, usize::MAX), (800, 300));
    let split = |seed: u64| table.split(seed as u32).first(n_train, n_validation);
    let runs = |model: LeafModel| -> Result<Vec<Run>> {
        seeds.par_iter().map(|seed| one(context, &split(*seed), model, *seed)).collect()
    };
    let (independent, hierarchical) = (runs(LeafModel::Independent)?, runs(LeafModel::Hierarchical)?);
    let mut record = Record::new(
        "forest-path",
        "Path of a regression forest",
        "On the Combined Cycle Power Plant set the training error falls as the lifetime grows, the validation error reaches a \
         minimum and then rises as the model fits noise. Both curves are piecewise constant, with a jump at every cut of a tree.",
    );
    record.setting("trees M =", context.pick(50, 10));
    record.setting("rows", "80 % to learn, 20 % to validate, standardised");
    record.setting("κ = σ²_noise/σ²_prior", "by leave-one-out on the training rows (the report states none of these)");
    record.setting("lifetimes up to", LARGEST);
    record.seeds = format!("{}: other splits and other trees; drawn: the first", seeds.len());
    summarise(&mut record, &[&independent, &hierarchical]);
    Ok(record)
}

fn one(context: &Context, split: &Standardised, leaf_model: LeafModel, seed: u64) -> Result<Run> {
    let (train, validation, train_y, validation_y) = (split.train()?, split.test()?, &split.train_y, &split.test_y);
    let forest = trees::around(split, context.pick(50, 10), LARGEST, seed)?;
    let mut params = RegressionParams { forest, leaf_model, ..RegressionParams::default() };
    // Prior and noise are found once and then given, so that a refit at another lifetime has the same.
    let found = params.fit(train, train_y)?.gaussians()[0];
    let (mean, variance, noise) = (found.prior_mean, found.prior_variance, found.kappa * found.prior_variance);
    params.prior = Prior { mean: Some(mean), variance: Some(variance), noise: Some(noise), ..Prior::default() };
    let model = params.fit(train, train_y)?;
    let path = model.path(&[(validation, validation_y)], &mut Progress::none())?;
    let mut difference = 0.0_f64;
    for lifetime in [0.0, 0.1, 0.5, 2.0, 10.0, 50.0, LARGEST] {
        let lifetime = Lifetime::new(lifetime)?;
        let refit = params.fit_at(lifetime, train, train_y, FitOptions::default())?;
        let at = path.index_at(lifetime);
        let [a, b] = [rmse(&refit.predict(train)?, train_y), rmse(&refit.predict(validation)?, validation_y)];
        difference = difference.max((path.train()[at] - a).abs()).max((path.validation()[0][at] - b).abs());
    }
    Ok(Run { path, difference })
}

fn summarise(record: &mut Record, runs: &[&[Run]; 2]) {
    let least = |run: &Run| run.path.validation()[0][run.path.best_index()];
    let end = |run: &Run| run.path.validation()[0][run.path.len() - 1];
    for ((_, name), runs) in MODELS.iter().zip(runs) {
        let mean = |of: &dyn Fn(&Run) -> f64| Spread::of(runs.iter().map(of)).mean;
        for (what, value) in [
            ("least", mean(&least)),
            ("end", mean(&end)),
            ("best", mean(&|run| run.path.best_lifetime().get())),
            ("train_start", mean(&|run| run.path.train()[0])),
            ("train_end", mean(&|run| run.path.train()[run.path.len() - 1])),
            ("cuts", runs[0].path.len() as f64 - 1.0),
        ] {
            record.number(&format!("{name}_{what}"), value);
        }
    }
    let difference = runs.iter().flat_map(|r| r.iter()).map(|run| run.difference).fold(0.0, f64::max);
    record.number("difference", difference);
    record.number("rise", record.numbers["hierarchical_end"] / record.numbers["hierarchical_least"] - 1.0);
    record.see(
        "With the report's independent leaves the training error goes from {independent_train_start:.2} to \
         {independent_train_end:.2} MW and the validation error to {independent_least:.2} at λ = {independent_best:.2} and back up to \
         {independent_end:.2}: at large lifetimes more and more rows are in cells without training rows, where the \
         prediction is the prior. With hierarchical leaves (the default) it decreases to {hierarchical_least:.2} at λ = \
         {hierarchical_best:.2} and ends at \
         {hierarchical_end:.2}, {rise:%} above: such a forest hardly overfits, and has a lower error. The drawn path has \
         {independent_cuts:.0} jumps.",
    );
    let falls = |run: &Run| run.path.train()[run.path.len() - 1] < 0.5 * run.path.train()[0];
    record.claim("training falls", runs[0].iter().all(falls), "the training error falls");
    record.claim(
        "validation turns",
        runs[0].iter().all(|run| end(run) > 1.05 * least(run) && run.path.has_turned()),
        "with independent leaves the validation error has a minimum inside the range and then rises, with every seed",
    );
    record.claim(
        "hierarchical is better",
        runs[0].iter().zip(runs[1].iter()).all(|(a, b)| least(b) < least(a)),
        "hierarchical leaves reach a lower validation error, with every seed",
    );
    record.claim(
        "path is refit",
        difference < 1e-9,
        "the path and refits at seven lifetimes coincide (largest difference {difference})",
    );
    record.table(
        "Validation RMSE in MW over seeds",
        &["leaves", "least", "at λ", "at the largest λ"],
        MODELS.iter().zip(runs).map(|((_, name), runs)| {
            let spread = |of: &dyn Fn(&Run) -> f64| Spread::of(runs.iter().map(of));
            vec![
                (*name).into(),
                spread(&least).into(),
                spread(&|run| run.path.best_lifetime().get()).into(),
                spread(&end).into(),
            ]
        }),
    );
    let chart = |title: &str, run: &Run| {
        let curve = |name: &str, colour: usize, values: &[f64]| {
            let points =
                run.path.lifetimes().iter().zip(values).filter(|(l, _)| **l >= 0.01).map(|(l, v)| (l.ln(), *v));
            let mut line = Line::new(name, colour, points).style(Style::Steps);
            line.x.iter_mut().for_each(|x| *x = x.exp());
            line
        };
        Panel::chart(
            title,
            Axis::log("lifetime λ, 1/deviation of an input"),
            Axis::linear("RMSE, MW"),
            vec![curve("training", 1, run.path.train()), curve("validation", 2, &run.path.validation()[0])],
        )
    };
    record.figures.push(Figure {
        file: "forest-path".to_owned(),
        caption:
            "Training and validation error of a forest at every lifetime, from one fit: with independent leaves, as \
        in the report, and with hierarchical leaves. The smallest and largest value of each of 250 intervals are drawn."
                .to_owned(),
        panels: vec![chart("Independent leaves", &runs[0][0]), chart("Hierarchical leaves", &runs[1][0])],
    });
}
