//! The path of ridge regression on Mondrian features: CPU, 50 trees.

use anyhow::Result;
use mondrian::Lifetime;
use mondrian::Progress;
use mondrian::RegularizationPath;
use mondrian::{KernelRidge, PathMethod};
use mondrian::{LaplaceKernel, LaplaceRidge};
use mondrian_benches::{Standardised, rmse};
use rayon::prelude::*;

use crate::context::Context;
use crate::plot::{Axis, Figure, Line, Panel, Style};
use crate::record::{Record, Spread};
use crate::trees;

const N_TREES: usize = 50;
const ALPHA: f64 = 0.01;
const LARGEST: f64 = 0.08;

/// One path.
struct Run {
    path: RegularizationPath,
    features: usize,
    /// Largest relative difference from refits.
    difference: f64,
}

pub(crate) fn run(context: &Context) -> Result<Record> {
    let table = context.table("cpu_act")?;
    let (n_train, n_validation) = context.pick((2000, 1000), (200, 200));
    let split = table.split(context.seed as u32).first(n_train, n_validation);
    let seeds = context.seeds(5, 3);
    let runs: Vec<Run> = seeds.par_iter().map(|seed| one(context, &split, *seed)).collect::<Result<_>>()?;
    let exact = exact(&split)?;
    let mut record = Record::new(
        "kernel-path",
        "Path of the Laplace kernel's approximation",
        "The validation error of ridge regression on M = 50 Mondrian trees against the lifetime, on a random subset of CPU, is \
         piecewise constant and sensitive to randomness: large jumps occur where a particularly well placed cut appears.",
    );
    record.setting("trees M =", N_TREES);
    record
        .setting("rows", format!("{} to learn, {} to validate, standardised", split.train_y.len(), split.test_y.len()));
    record.setting("δ² =", ALPHA);
    record.setting("terminal lifetime Λ =", LARGEST);
    record.seeds = format!("{}: other trees on the same rows", seeds.len());
    summarise(&mut record, &runs, &exact);
    Ok(record)
}

fn one(context: &Context, split: &Standardised, seed: u64) -> Result<Run> {
    let (train, validation) = (split.train()?, split.test()?);
    let trees = trees::around(split, N_TREES, LARGEST, seed)?;
    let params = KernelRidge::params().trees(trees).alpha(ALPHA);
    let model = params.fit(train, &split.train_y)?;
    let path = model.path(&[(validation, &split.test_y)], &PathMethod::Removal, &mut Progress::none())?;
    let mut difference = 0.0_f64;
    for share in context.pick(vec![0.0, 0.05, 0.2, 0.5, 1.0], vec![0.0, 0.1, 0.5, 1.0]) {
        let lifetime = Lifetime::new(LARGEST * share)?;
        let refit = params.clone().lifetime(lifetime).fit(train, &split.train_y)?;
        let error = rmse(refit.predict(validation)?.as_slice(), &split.test_y);
        difference = difference.max((path.value_at(lifetime) / error - 1.0).abs());
    }
    Ok(Run { features: model.model().coefficients().n_rows(), path, difference })
}

/// The exact kernel at a few lifetimes, for comparison.
fn exact(split: &Standardised) -> Result<Vec<(f64, f64)>> {
    let (train, validation) = (split.train()?, split.test()?);
    let error = |share: &f64| -> Result<(f64, f64)> {
        let lifetime = LARGEST * share;
        let kernel = LaplaceKernel::new(Lifetime::new(lifetime)?)?;
        let model = LaplaceRidge::params(kernel).alpha(ALPHA).fit(train, &split.train_y)?;
        Ok((lifetime, rmse(model.predict(validation)?.as_slice(), &split.test_y)))
    };
    [0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0].par_iter().map(error).collect()
}

fn summarise(record: &mut Record, runs: &[Run], exact: &[(f64, f64)]) {
    let validation = |run: &Run| run.path.validation()[0].clone();
    let least = |run: &Run| run.path.validation()[0][run.path.best_index()];
    // How much of the descent the ten cuts that help most make.
    let by_ten = |run: &Run| {
        let curve = validation(run);
        let mut drops: Vec<f64> = curve.windows(2).map(|w| w[0] - w[1]).collect();
        drops.sort_by(|a, b| b.total_cmp(a));
        drops.iter().take(10).sum::<f64>() / (curve[0] - least(run))
    };
    let largest = |run: &Run| validation(run).windows(2).map(|w| (w[0] - w[1]) / w[0]).fold(0.0, f64::max);
    let spread = |of: &dyn Fn(&Run) -> f64| Spread::of(runs.iter().map(of));
    let difference = runs.iter().map(|run| run.difference).fold(0.0, f64::max);
    let best_exact = exact.iter().map(|e| e.1).fold(f64::INFINITY, f64::min);
    let best = spread(&|run| run.path.best_lifetime().get());
    for (name, value) in [
        ("start", spread(&|run| run.path.validation()[0][0]).mean),
        ("least", spread(&least).mean),
        ("least_deviation", spread(&least).deviation),
        ("best", best.mean),
        ("best_deviation", best.deviation),
        ("by_ten", spread(&by_ten).mean),
        ("largest", spread(&largest).mean),
        ("cuts", spread(&|run| run.path.len() as f64 - 1.0).mean),
        ("features", spread(&|run| run.features as f64).mean),
        ("difference", difference),
        ("best_exact", best_exact),
    ] {
        record.number(name, value);
    }
    record.see(
        "Over about {cuts:.0} values of one path ({features:.0} features at Λ) the error falls from {start:.2} to {least:.2} ± \
         {least_deviation:.2} at λ = {best:.3} ± {best_deviation:.3}. The ten most helpful cuts make {by_ten:%} of the descent, the largest \
         one lowers the error by {largest:%} at once. The exact kernel's least error on these rows is {best_exact:.2}: fifty trees \
         are far from it.",
    );
    record.claim(
        "sensitive to randomness",
        runs.iter().all(|run| by_ten(run) > 0.5),
        "large jumps: ten cuts make more than half of the whole descent, with every seed",
    );
    record.claim(
        "path is refit",
        difference < 1e-7,
        "the path and refits coincide (largest relative difference {difference})",
    );
    record.table(
        "Each seed",
        &["seed", "least validation RMSE", "at λ", "features at Λ"],
        runs.iter().enumerate().map(|(k, run)| {
            vec![
                (k as f64).into(),
                least(run).into(),
                run.path.best_lifetime().get().into(),
                (run.features as f64).into(),
            ]
        }),
    );
    let line = |(k, run): (usize, &Run)| {
        Line::new(
            &format!("seed {k}"),
            [0, 1, 2, 6, 4][k % 5],
            run.path.lifetimes().iter().copied().zip(validation(run)),
        )
        .style(Style::Steps)
    };
    let mut lines: Vec<Line> = runs.iter().enumerate().map(line).collect();
    lines.push(Line::new("exact kernel", 5, exact.iter().copied()).style(Style::Dots));
    let few = lines.clone();
    record.figures.push(Figure {
        file: "kernel-path".to_owned(),
        caption: "Validation error at every lifetime for several seeds, and of the exact kernel at some. Right: the first part."
            .to_owned(),
        panels: vec![
            Panel::chart("CPU, M = 50", Axis::linear("lifetime λ, 1/deviation of an input"), Axis::linear("validation RMSE, % of time"), lines),
            Panel::chart("Small lifetimes", Axis::linear("lifetime λ, 1/deviation of an input").within(0.0, LARGEST / 8.0), Axis::linear("validation RMSE, % of time"), few),
        ],
    });
}
