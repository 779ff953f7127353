//! The path of a density forest on iris setosa, with the leave-one-out likelihood.

use anyhow::Result;
use mondrian::Progress;
use mondrian::RegularizationPath;
use mondrian::{Lifetime, Points};
use rayon::prelude::*;

use crate::context::Context;
use crate::plot::{Axis, Figure, Line, Panel, Style};
use crate::record::{Record, Spread};
use crate::setosa::{D, Fold, GAMMA, N_TREES};

const LARGEST: f64 = 50.0;
/// Where leave-one-out is compared with forgetting each row.
const CHECKED: f64 = 10.0;

/// One fold's path.
struct Run {
    path: RegularizationPath,
    /// Largest difference of a row's leave-one-out log density from a fit without the row.
    difference: f64,
}

pub(crate) fn run(context: &Context) -> Result<Record> {
    let n_trees = context.pick(N_TREES, 30);
    let folds = context.pick(5, 2);
    let one = |fold: usize| -> Result<Run> {
        let data = Fold::new(context, fold)?;
        let model = data.fit(n_trees, LARGEST, context.seed + fold as u64)?;
        let path = model.path(&[data.test()?], &mut Progress::none())?;
        // The slow twin: forget a row, evaluate it, learn it again.
        let view = model.at(Lifetime::new(CHECKED)?)?;
        let fast = view.leave_one_out(data.train()?)?;
        let mut without = data.fit(n_trees, CHECKED, context.seed + fold as u64)?;
        let mut difference = 0.0_f64;
        for (row, fast) in data.train.chunks_exact(D).zip(fast) {
            let row = Points::row_major(row, D)?;
            without.forget(row)?;
            difference = difference.max((without.log_density(row)?[0] - fast).abs());
            without.learn(row)?;
        }
        Ok(Run { path, difference })
    };
    let runs: Vec<Run> = (0..folds).into_par_iter().map(one).collect::<Result<_>>()?;
    let mut record = Record::new(
        "density-path",
        "Path of a density forest, with leave-one-out",
        "The path of density estimation on iris setosa is computed as for regression, together with the leave-one-out \
         likelihood. As \
         expected the validation and the leave-one-out likelihood (all normalised by the number of rows) peak and then fall as the \
         more flexible model overfits the training rows.",
    );
    record.setting("trees M =", n_trees);
    record.setting("γ =", format!("{GAMMA} (the automatic choice on all 50 rows)"));
    record.setting("rows", "40 to learn, 10 to validate");
    record.setting("box", "around all 50 rows, those held out too, so that none lies outside it");
    record.seeds = format!("{folds}: each holds out another fifth and has other trees; drawn: the first and the mean");
    summarise(&mut record, &runs)?;
    Ok(record)
}

/// A curve as log densities.
fn curve(run: &Run, which: usize) -> Vec<f64> {
    let losses = match which {
        0 => run.path.train(),
        1 => &run.path.validation()[0],
        _ => run.path.leave_one_out().unwrap_or(&[]),
    };
    losses.iter().map(|l| -l).collect()
}

fn summarise(record: &mut Record, runs: &[Run]) -> Result<()> {
    const NAMES: [&str; 3] = ["training", "validation", "leave-one-out"];
    let lifetimes: Vec<f64> = (0..=100).map(|k| LARGEST * f64::from(k) / 100.0).collect();
    let mut means: Vec<Vec<f64>> = Vec::new();
    for which in 0..3 {
        let curves: Vec<Vec<f64>> = runs.iter().map(|run| curve(run, which)).collect();
        let mut mean = Vec::new();
        for lifetime in &lifetimes {
            let lifetime = Lifetime::new(*lifetime)?;
            mean.push(Spread::of(runs.iter().zip(&curves).map(|(run, c)| c[run.path.index_at(lifetime)])).mean);
        }
        let peak = (0..mean.len()).max_by(|a, b| mean[*a].total_cmp(&mean[*b])).unwrap_or(0);
        let name = ["train", "validation", "left_out"][which];
        record.number(&format!("{name}_peak"), mean[peak]);
        record.number(&format!("{name}_at"), lifetimes[peak]);
        record.number(&format!("{name}_end"), mean[mean.len() - 1]);
        means.push(mean);
    }
    let difference = runs.iter().map(|run| run.difference).fold(0.0, f64::max);
    record.number("difference", difference);
    record.number("cuts", runs[0].path.len() as f64 - 1.0);
    record.number("checked", CHECKED);
    record.see(
        "On average over the folds the validation likelihood peaks at {validation_peak:.3} near λ = {validation_at:.1} and falls to \
         {validation_end:.3}; leave-one-out peaks at {left_out_peak:.3} near λ = {left_out_at:.1} and falls to {left_out_end:.3}; training \
         rises to {train_end:.2}. One path has {cuts:.0} jumps.",
    );
    let peaks = |name: &str| {
        let at = record.numbers[&format!("{name}_at")];
        at > 0.0 && at < LARGEST && record.numbers[&format!("{name}_end")] < record.numbers[&format!("{name}_peak")]
    };
    let (validation, left_out) = (peaks("validation"), peaks("left_out"));
    record.claim(
        "training rises",
        means[0].windows(2).all(|w| w[0] < w[1]),
        "the mean training likelihood rises throughout",
    );
    record.claim("validation peaks", validation, "the mean validation likelihood peaks inside the range and falls");
    record.claim("leave-one-out peaks", left_out, "the mean leave-one-out likelihood peaks inside the range and falls");
    record.claim(
        "leave-one-out is exact",
        difference < 1e-9,
        "leave-one-out equals forgetting each row, at λ = {checked} (largest difference {difference})",
    );
    let first = |which: usize| {
        Line::new(NAMES[which], [1, 2, 0][which], runs[0].path.lifetimes().iter().copied().zip(curve(&runs[0], which)))
            .style(Style::Steps)
    };
    let mean = |which: usize| {
        Line::new(NAMES[which], [1, 2, 0][which], lifetimes.iter().copied().zip(means[which].iter().copied()))
    };
    let chart =
        |title: &str, lines: Vec<Line>, y: Axis| Panel::chart(title, Axis::linear("lifetime λ, 1/cm"), y, lines);
    let top = record.numbers["validation_peak"].max(record.numbers["left_out_peak"]);
    record.figures.push(Figure {
        file: "density-path".to_owned(),
        caption:
            "Mean log density of training rows, held-out rows and left-out rows at every lifetime. Left: one path \
        with all its jumps; right: the mean over the folds, near the peaks."
                .to_owned(),
        panels: vec![
            chart("One path", (0..3).map(first).collect(), Axis::linear("mean log density, nats")),
            chart(
                "Mean over folds, near the peaks",
                (0..3).map(mean).collect(),
                Axis::linear("mean log density, nats").within(top - 0.5, top + 0.2),
            ),
        ],
    });
    Ok(())
}
