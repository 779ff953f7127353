//! The whole path against refitting at a hundred lifetimes: seconds, for three models.

use anyhow::Result;
use mondrian::FitOptions;
use mondrian::Lifetime;
use mondrian::Progress;
use mondrian::RegularizationPath;
use mondrian::{DensityParams, GammaChoice};
use mondrian::{KernelRidge, PathMethod};
use mondrian::{Prior, RegressionParams};
use mondrian_benches::{Standardised, rmse, timed};

use crate::context::Context;
use crate::plot::{Axis, Figure, Line, Panel, Style};
use crate::record::Record;
use crate::trees;

/// Lifetimes that are refitted.
const N_REFITS: usize = 100;

/// One model's times.
struct Race {
    name: &'static str,
    path_seconds: f64,
    refit_seconds: f64,
    values: usize,
    /// Largest relative difference between path and refits.
    difference: f64,
}

pub(crate) fn run(context: &Context) -> Result<Record> {
    let races = [forest(context)?, density(context)?, kernel(context)?];
    let n = N_REFITS;
    let mut record = Record::new(
        "path-time",
        "A path against refits",
        "The report has no figure of this, only its statement: the path has all lifetimes at essentially the cost of one fit and \
         evaluation at the largest.",
    );
    record.setting("forest", "ccpp, 4000 rows to learn, 1000 to validate, 20 trees, Λ = 16");
    record
        .setting("density", "inputs of ccpp, 2000 and 500 rows, 20 trees, Λ = 4, with leave-one-out on the path only");
    record.setting("kernel", "cpu_act, 1000 and 500 rows, 50 trees, Λ = 0.05, δ² = 0.01");
    record.setting(
        "refits",
        format!(
            "at {n} lifetimes evenly up to Λ, each with the errors of both sets; a path's time is the median of three"
        ),
    );
    record.seeds.push_str("one; times are wall-clock times and depend on other work on the machine, their ratio less");
    for race in &races {
        for (what, value) in [
            ("path", race.path_seconds),
            ("refits", race.refit_seconds),
            ("ratio", race.refit_seconds / race.path_seconds),
            ("even", race.path_seconds / (race.refit_seconds / n as f64)),
        ] {
            record.number(&format!("{}_{what}", race.name), value);
        }
    }
    let difference = races.iter().map(|r| r.difference).fold(0.0, f64::max);
    record.number("difference", difference);
    record.number("n", n as f64);
    record.see(
        "{n} refits of the forest take {forest_refits:.1} s, its path with every cut {forest_path:.2} s: {forest_ratio:.0} times as long. \
         For the density it is {density_ratio:.0} times, for the kernel {kernel_ratio:.0} times. The path costs as much as \
         {forest_even:.1}, {density_even:.1} and {kernel_even:.1} refits at lifetimes spread evenly (one at the largest lifetime costs more \
         than the mean of them).",
    );
    record.claim(
        "path is faster",
        races.iter().all(|r| r.path_seconds < r.refit_seconds),
        "each path takes less time than {n} refits",
    );
    record.claim(
        "path is refit",
        difference < 1e-7,
        "paths have the errors of the refits at their lifetimes (largest relative difference {difference})",
    );
    record.table(
        "Seconds",
        &["model", "refits", "path", "values on the path", "refits / path"],
        races.iter().map(|r| {
            vec![
                r.name.into(),
                r.refit_seconds.into(),
                r.path_seconds.into(),
                (r.values as f64).into(),
                (r.refit_seconds / r.path_seconds).into(),
            ]
        }),
    );
    record.figures.push(figure(&races, n));
    Ok(record)
}

fn figure(races: &[Race], n: usize) -> Figure {
    let mut lines = Vec::new();
    for (k, race) in races.iter().enumerate() {
        let each = race.refit_seconds / n as f64;
        lines.push(Line::new(&format!("{}, refits", race.name), k, [(1.0, each), (n as f64, each * n as f64)]));
        let path = [(1.0, race.path_seconds), (n as f64, race.path_seconds)];
        lines.push(Line::new(&format!("{}, path", race.name), k, path).style(Style::Dashed));
    }
    Figure {
        file: "path-time".to_owned(),
        caption: "Seconds for a number of lifetimes by refitting, against one path with all of them.".to_owned(),
        panels: vec![Panel::chart(
            "Where a path begins to pay",
            Axis::log("number of lifetimes"),
            Axis::log("seconds"),
            lines,
        )],
    }
}

/// Runs the path, then the refits, and compares their errors.
fn race(
    context: &Context,
    name: &'static str,
    largest: f64,
    path: impl Fn() -> Result<RegularizationPath>,
    refit: impl Fn(Lifetime) -> Result<[f64; 2]>,
) -> Result<Race> {
    context.log(name);
    // The median of three: refits are many and their noise averages out, a single path's does not.
    let mut seconds = Vec::new();
    let mut found = None;
    for _ in 0..3 {
        let (path, took) = timed(&path);
        seconds.push(took);
        found = Some(path?);
    }
    seconds.sort_by(f64::total_cmp);
    let (path, path_seconds) = (found.expect("it ran three times"), seconds[1]);
    let n = N_REFITS;
    let (differences, refit_seconds) = timed(|| -> Result<Vec<f64>> {
        let mut differences = Vec::new();
        for k in 1..=n {
            let lifetime = Lifetime::new(largest * k as f64 / n as f64)?;
            let at = path.index_at(lifetime);
            let values = refit(lifetime)?;
            for (a, b) in [path.train()[at], path.validation()[0][at]].into_iter().zip(values) {
                differences.push((a - b).abs() / b.abs().max(1e-3));
            }
        }
        Ok(differences)
    });
    let difference = differences?.into_iter().fold(0.0, f64::max);
    Ok(Race { name, path_seconds, refit_seconds, values: path.len(), difference })
}

fn first(context: &Context, table: &str, n_train: usize, n_test: usize) -> Result<Standardised> {
    Ok(context.table(table)?.split(context.seed as u32).first(n_train, n_test))
}

fn forest(context: &Context) -> Result<Race> {
    let split = first(context, "ccpp", context.pick(4000, 600), context.pick(1000, 200))?;
    let (train, test) = (split.train()?, split.test()?);
    let params = RegressionParams {
        forest: trees::around(&split, context.pick(20, 5), 16.0, context.seed)?,
        prior: Prior { mean: Some(454.0), variance: Some(290.0), noise: Some(30.0), ..Prior::default() },
        ..RegressionParams::default()
    };
    let path = || -> Result<RegularizationPath> {
        let model = params.fit(train, &split.train_y)?;
        Ok(model.path(&[(test, &split.test_y)], &mut Progress::none())?)
    };
    race(context, "forest", 16.0, path, |lifetime| {
        let model = params.fit_at(lifetime, train, &split.train_y, FitOptions::default())?;
        Ok([rmse(&model.predict(train)?, &split.train_y), rmse(&model.predict(test)?, &split.test_y)])
    })
}

fn density(context: &Context) -> Result<Race> {
    let split = first(context, "ccpp", context.pick(2000, 300), context.pick(500, 100))?;
    let (train, test) = (split.train()?, split.test()?);
    let params = |lifetime: Lifetime| -> Result<DensityParams> {
        let forest = trees::around(&split, context.pick(20, 5), lifetime.get(), context.seed)?;
        Ok(DensityParams { gamma: GammaChoice::Value(1e-3), ..DensityParams::from(forest) })
    };
    let path = || -> Result<RegularizationPath> {
        Ok(params(Lifetime::new(4.0)?)?.fit(train)?.path(&[test], &mut Progress::none())?)
    };
    race(context, "density", 4.0, path, |lifetime| {
        let model = params(lifetime)?.fit(train)?;
        Ok([-model.score(train)?.mean_inside(), -model.score(test)?.mean_inside()])
    })
}

fn kernel(context: &Context) -> Result<Race> {
    let split = first(context, "cpu_act", context.pick(1000, 200), context.pick(500, 100))?;
    let (train, test) = (split.train()?, split.test()?);
    let params =
        KernelRidge::params().trees(trees::around(&split, context.pick(50, 10), 0.05, context.seed)?).alpha(0.01);
    let path = || -> Result<RegularizationPath> {
        let model = params.fit(train, &split.train_y)?;
        Ok(model.path(&[(test, &split.test_y)], &PathMethod::Removal, &mut Progress::none())?)
    };
    race(context, "kernel", 0.05, path, |lifetime| {
        let model = params.clone().lifetime(lifetime).fit(train, &split.train_y)?;
        let error = |points, y: &[f64]| -> Result<f64> { Ok(rmse(model.predict(points)?.as_slice(), y)) };
        Ok([error(train, &split.train_y)?, error(test, &split.test_y)?])
    })
}
