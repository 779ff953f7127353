//! How many trees: forest and kernel approximation against their number.

use anyhow::Result;
use mondrian::KernelRidge;
use mondrian::Lifetime;
use mondrian::{ForestParams, LifetimeChoice, Prior, RegressionForest, RegressionParams};
use mondrian::{LaplaceKernel, LaplaceRidge};
use mondrian_benches::{Standardised, rmse};
use rayon::prelude::*;

use crate::context::Context;
use crate::plot::{Axis, Figure, Line, Panel, Style};
use crate::record::{Record, Spread};

const LIFETIME: f64 = 0.3;
const ALPHA: f64 = 0.01;

pub(crate) fn run(context: &Context) -> Result<Record> {
    let sizes: &[usize] =
        context.pick(&[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000], &[1, 2, 5, 10, 20, 50, 100, 200, 500]);
    let (n_train, n_test) = context.pick((2000, 1000), (300, 200));
    let split = context.table("ccpp")?.split(context.seed as u32).first(n_train, n_test);
    let exact = exact(&split)?;
    let seeds = context.seeds(10, 8);
    let (mut forests, mut kernels, mut features) = (Vec::new(), Vec::new(), Vec::new());
    // An automatic κ is another for few trees than for many: averaging does part of its work. Trees of one law have one.
    let prior = prior_of_many(&split, context.seed)?;
    for &m in sizes {
        context.log(&format!("{m} trees"));
        // The error of one tree varies most, and costs least.
        let n_seeds = seeds.len() as u64 * (20 / m as u64).max(1);
        let more = (0..n_seeds).into_par_iter().map(|k| forest(&split, m, context.seed + k, prior));
        let errors = more.collect::<Result<Vec<f64>>>()?;
        forests.push(Spread::of(errors));
        let fits = seeds.par_iter().map(|seed| kernel(&split, m, *seed)).collect::<Result<Vec<(f64, f64)>>>()?;
        kernels.push(Spread::of(fits.iter().map(|fit| fit.0)));
        features.push(Spread::of(fits.iter().map(|fit| fit.1)));
    }
    let mut record = Record::new(
        "tree-count",
        "How many trees",
        "No figure; the report says that averaging trees reduces bias. It reduces the variance (docs/corrections.md): \
         the expected squared error of M independent trees is a + b/M.",
    );
    record.setting("data", format!("ccpp, {} rows to learn, {} to test", split.train_y.len(), split.test_y.len()));
    record.setting("forest", "hierarchical leaves, infinite lifetime; prior, noise and κ as 100 trees find them");
    record.setting("kernel", format!("λ = {LIFETIME}, δ² = {ALPHA}"));
    record.seeds = format!("{}, and more for fewer than 20 trees: other trees on the same rows", seeds.len());
    record.number("rows", split.train_y.len() as f64);
    summarise(&mut record, sizes, &[forests, kernels, features], exact);
    Ok(record)
}

fn fitted(split: &Standardised, n_trees: usize, seed: u64, prior: Prior) -> Result<RegressionForest> {
    let lifetime = LifetimeChoice::Value(Lifetime::INFINITE);
    let forest = ForestParams { n_trees, seed, lifetime, ..ForestParams::default() };
    let params = RegressionParams { forest, prior, ..RegressionParams::default() };
    Ok(params.fit(split.train()?, &split.train_y)?)
}

fn forest(split: &Standardised, n_trees: usize, seed: u64, prior: Prior) -> Result<f64> {
    let model = fitted(split, n_trees, seed, prior)?;
    Ok(rmse(&model.predict(split.test()?)?, &split.test_y))
}

/// The prior, noise and κ that a forest of many trees finds.
fn prior_of_many(split: &Standardised, seed: u64) -> Result<Prior> {
    let found = fitted(split, 100, seed, Prior::default())?.gaussians()[0];
    Ok(Prior {
        mean: Some(found.prior_mean),
        variance: Some(found.prior_variance),
        noise: Some(found.noise_variance),
        kappa: Some(found.kappa),
    })
}

/// Error and number of features.
fn kernel(split: &Standardised, n_trees: usize, seed: u64) -> Result<(f64, f64)> {
    let params = KernelRidge::params().n_trees(n_trees).seed(seed).lifetime(Lifetime::new(LIFETIME)?).alpha(ALPHA);
    let model = params.fit(split.train()?, &split.train_y)?;
    let error = rmse(model.predict(split.test()?)?.as_slice(), &split.test_y);
    Ok((error, model.model().coefficients().n_rows() as f64))
}

fn exact(split: &Standardised) -> Result<f64> {
    let kernel = LaplaceKernel::new(Lifetime::new(LIFETIME)?)?;
    let train = split.train()?;
    let model = LaplaceRidge::params(kernel).alpha(ALPHA).fit(train, &split.train_y)?;
    Ok(rmse(model.predict(split.test()?)?.as_slice(), &split.test_y))
}

fn summarise(record: &mut Record, sizes: &[usize], [forest, kernel, features]: &[Vec<Spread>; 3], exact: f64) {
    let last = sizes.len() - 1;
    // The mean of squares, not the square of the mean.
    let square = |s: &Spread| s.mean * s.mean + s.deviation * s.deviation;
    // a + b/M through the first and the last size, and its error at the other sizes.
    let (one, many, n) = (square(&forest[0]), square(&forest[last]), sizes[last] as f64);
    let b = (one - many) / (1.0 - 1.0 / n);
    let a = one - b;
    let off = (0..=last).map(|k| (square(&forest[k]) / (a + b / sizes[k] as f64) - 1.0).abs()).fold(0.0, f64::max);
    // Steps where the kernel's error rises, by how many features for a row there are in the middle of the step.
    let rises: Vec<f64> = (0..last)
        .filter(|k| kernel[k + 1].mean >= kernel[*k].mean)
        .map(|k| (features[k].mean * features[k + 1].mean).sqrt() / record.numbers["rows"])
        .collect();
    let above = |k: usize| kernel[k].mean / exact - 1.0;
    for (name, value) in [
        ("forest_one", forest[0].mean),
        ("forest_many", forest[last].mean),
        ("forest_limit", a.max(0.0).sqrt()),
        ("off", off),
        ("kernel_one", kernel[0].mean),
        ("kernel_many", kernel[last].mean),
        ("exact", exact),
        ("above", above(last)),
        ("many", n),
        ("rises", rises.len() as f64),
    ] {
        record.number(name, value);
    }
    record.see(
        "From one tree to {many} the forest goes from {forest_one:.2} to {forest_many:.3} MW; a + b/M through the two ends is never more \
         than {off:%} off the mean squared error between them, and puts the limit at {forest_limit:.3}. The kernel's approximation goes \
         from {kernel_one:.2} to {kernel_many:.3}, {above:%} above the exact kernel's {exact:.3}: ridge regression on few trees is worse \
         than averaging them. On its way it rises in {rises} steps, where its features become as many as the {rows} rows (see the \
         table): with so small a δ² that is where ridge regression fits noise most easily.",
    );
    let falls = |curve: &[Spread]| curve.windows(2).all(|w| w[1].mean < w[0].mean);
    record.claim("forest falls", falls(forest), "the forest's mean error falls with every step in M");
    record.claim("kernel falls", falls(kernel), "the kernel's mean error falls with every step in M");
    record.claim(
        "rises where features are as many as rows",
        !rises.is_empty() && rises.iter().all(|share| (0.4..=2.5).contains(share)),
        "the kernel's error rises where features become as many as rows, within a factor of 2.5 of them, and nowhere else",
    );
    record.claim("forest is a + b/M", off < 0.05, "the forest's mean squared error is a + b/M within 5 %");
    record.claim(
        "kernel approaches exact",
        above(last) < 0.1,
        "with {many} trees the kernel's approximation is within 10 % of the exact kernel ({above:%} above)",
    );
    record.table(
        &format!("Test RMSE in MW; exact kernel {exact:.3}"),
        &["trees M", "forest", "kernel", "features"],
        (0..=last).map(|k| {
            vec![(sizes[k] as f64).into(), forest[k].into(), kernel[k].into(), features[k].mean.round().into()]
        }),
    );
    let line = |name: &str, colour: usize, curve: &[Spread]| {
        let points = sizes.iter().zip(curve).map(|(m, s)| (*m as f64, s.mean, s.deviation));
        Line::banded(name, colour, points).style(Style::Dotted)
    };
    record.figures.push(Figure {
        file: "tree-count".to_owned(),
        caption: "Test error against the number of trees; bands are one standard deviation over seeds.".to_owned(),
        panels: vec![Panel::chart(
            "Power plant",
            Axis::log("trees M"),
            Axis::log("test RMSE, MW"),
            vec![
                line("forest", 0, forest),
                line("kernel ridge on Mondrian features", 1, kernel),
                Line::new("exact Laplace kernel", 5, [(1.0, exact), (n, exact)]).style(Style::Dashed),
            ],
        )],
    });
}
