//! Uncertainty far from the data, in one dimension.

use anyhow::Result;
use mondrian::process::NodeKey;
use mondrian::{ForestParams, LeafModel, RegressionParams};
use mondrian::{LaplaceKernel, LaplaceRidge};
use mondrian::{Lifetime, Points};

use crate::context::Context;
use crate::plot::{Axis, Figure, Line, Panel, Style};
use crate::record::Record;

const NOISE: f64 = 0.15;
/// A normal variable is within this many standard deviations of its mean with probability 0.9.
const NINETY: f64 = 1.645;
/// Inside, in the gap, near and far outside.
const PLACES: [f64; 4] = [0.5, 1.5, 2.6, 8.0];

/// Means and deviations over the queries, and far away.
struct Bands {
    name: &'static str,
    mean: Vec<f64>,
    deviation: Vec<f64>,
    /// At [`PLACES`].
    at: Vec<(f64, f64)>,
    /// Mean and deviation of a prediction without any data.
    prior: (f64, f64),
}

/// Points on [0, 1] and [2, 2.4] with a curve in them.
fn sample(seed: u64, n: usize) -> (Vec<f64>, Vec<f64>) {
    let key = NodeKey::root(seed, 0);
    let x: Vec<f64> = (0..n)
        .map(|k| {
            let u = key.fork(k as u64).draw(0).uniform();
            if u < 0.7 { u / 0.7 } else { 2.0 + (u - 0.7) / 0.75 }
        })
        .collect();
    let y =
        x.iter().enumerate().map(|(k, x)| (5.0 * x).sin() + x + NOISE * key.fork(k as u64).draw(1).normal()).collect();
    (x, y)
}

pub(crate) fn run(context: &Context) -> Result<Record> {
    let (x, y) = sample(context.seed, 120);
    let queries: Vec<f64> = (0..=240).map(|k| -2.0 + 7.0 * f64::from(k) / 240.0).collect();
    let n_trees = context.pick(300, 100);
    let bands = [
        forest(&x, &y, &queries, LeafModel::Hierarchical, "Hierarchical leaves", n_trees)?,
        forest(&x, &y, &queries, LeafModel::Independent, "Independent leaves", n_trees)?,
        kernel(&x, &y, &queries)?,
    ];
    let mut record = Record::new(
        "far-from-data",
        "Uncertainty far from the data",
        "No figure; the report says that far from all training rows a cut separates a point with high probability and the \
         prediction is close to the prior, so that forests are not overconfident there.",
    );
    record.setting("data", "120 rows on [0, 1] and [2, 2.4], y = sin 5x + x with noise 0.15");
    record.setting("trees M =", n_trees);
    record
        .setting("lifetimes", "automatic for the forests, by leave-one-out for the exact kernel (a Gaussian process)");
    record.seeds.push_str("one");
    summarise(&mut record, &bands, &queries, (&x, &y));
    Ok(record)
}

fn forest(
    x: &[f64],
    y: &[f64],
    queries: &[f64],
    leaf_model: LeafModel,
    name: &'static str,
    n_trees: usize,
) -> Result<Bands> {
    let forest = ForestParams { n_trees, ..ForestParams::default() };
    let params = RegressionParams { forest, leaf_model, ..RegressionParams::default() };
    let model = params.fit(Points::row_major(x, 1)?, y)?;
    let found = model.predict_with_std(Points::row_major(queries, 1)?)?;
    let at = model.predict_with_std(Points::row_major(&PLACES, 1)?)?;
    let gaussian = model.gaussians()[0];
    let prior = (gaussian.prior_mean, (gaussian.prior_variance + gaussian.noise_variance).sqrt());
    let at = at.mean.into_iter().zip(at.std).collect();
    Ok(Bands { name, mean: found.mean, deviation: found.std, at, prior })
}

fn kernel(x: &[f64], y: &[f64], queries: &[f64]) -> Result<Bands> {
    let points = Points::row_major(x, 1)?;
    let mut best: Option<(f64, LaplaceRidge)> = None;
    for lifetime in [0.03, 0.1, 0.3, 1.0, 3.0, 10.0] {
        for alpha in [1e-3, 1e-2, 0.1, 1.0] {
            let kernel = LaplaceKernel::new(Lifetime::new(lifetime)?)?;
            let model = LaplaceRidge::params(kernel).alpha(alpha).fit(points, y)?;
            let error = model.leave_one_out_rmse()?[0];
            if best.as_ref().is_none_or(|(least, _)| error < *least) {
                best = Some((error, model));
            }
        }
    }
    let (_, model) = best.expect("at least one pair was tried");
    let predict = |queries: &[f64]| -> Result<(Vec<f64>, Vec<f64>)> {
        let queries = Points::row_major(queries, 1)?;
        let variance = model.predict_variance(queries)?;
        Ok((model.predict(queries)?.into_vec(), variance.into_vec().into_iter().map(f64::sqrt).collect()))
    };
    let (mean, deviation) = predict(queries)?;
    let (at_mean, at_deviation) = predict(&PLACES)?;
    let prior = (model.intercepts()[0], (model.prior_variances()[0] + model.noise_variances()[0]).sqrt());
    Ok(Bands {
        name: "Exact Laplace kernel",
        mean,
        deviation,
        at: at_mean.into_iter().zip(at_deviation).collect(),
        prior,
    })
}

fn summarise(record: &mut Record, bands: &[Bands; 3], queries: &[f64], (x, y): (&[f64], &[f64])) {
    for (k, band) in bands.iter().enumerate() {
        let far = band.at[3];
        for (what, value) in [
            ("inside", band.at[0].1),
            ("gap", band.at[1].1),
            ("far", far.1),
            ("prior", band.prior.1),
            ("off", (far.0 - band.prior.0).abs() / band.prior.1),
        ] {
            record.number(&format!("{what}_{k}"), value);
        }
    }
    record.see(
        "Predictive deviations of the forest with hierarchical leaves: {inside_0:.2} among the rows, {gap_0:.2} in the gap, {far_0:.2} at \
         x = 8, where the prior's is {prior_0:.2}. With independent leaves {inside_1:.2}, {gap_1:.2}, {far_1:.2} (prior {prior_1:.2}); of the \
         exact kernel {inside_2:.2}, {gap_2:.2}, {far_2:.2} (prior {prior_2:.2}).",
    );
    let near_prior = |band: &Bands| {
        let far = band.at[3];
        (far.1 / band.prior.1 - 1.0).abs() < 0.15 && (far.0 - band.prior.0).abs() < 0.25 * band.prior.1
    };
    record.claim(
        "far is prior",
        bands[..2].iter().all(near_prior),
        "far away both forests predict the prior: deviation within 15 %, mean within a quarter of a deviation",
    );
    record.claim(
        "not overconfident",
        bands[..2].iter().all(|band| band.at[3].1 > 2.0 * band.at[0].1 && band.at[1].1 > band.at[0].1),
        "both forests are less certain in the gap, and far away at most half as certain as among the rows",
    );
    record.table(
        "Predictive mean ± deviation",
        &["model", "x = 0.5", "x = 1.5", "x = 2.6", "x = 8", "prior"],
        bands.iter().map(|band| {
            let cell = |(mean, deviation): (f64, f64)| crate::record::Cell::Spread([mean, deviation]);
            let places = band.at.iter().map(|p| cell(*p));
            std::iter::once(band.name.into()).chain(places).chain([cell(band.prior)]).collect()
        }),
    );
    let panel = |(k, band): (usize, &Bands)| {
        let points = queries.iter().zip(&band.mean).zip(&band.deviation).map(|((x, m), s)| (*x, *m, NINETY * s));
        let edge = |sign: f64| {
            Line::new("", 6, [-2.0, 5.0].map(|x| (x, band.prior.0 + sign * NINETY * band.prior.1))).style(Style::Dashed)
        };
        let mut upper = edge(1.0);
        upper.name.push_str("prior, 90 %");
        Panel::chart(
            band.name,
            Axis::linear("x").within(-2.0, 5.0),
            Axis::linear("y").within(-2.5, 4.0),
            vec![
                Line::banded("prediction, 90 %", [0, 2, 3][k], points),
                Line::new("rows", 5, x.iter().copied().zip(y.iter().copied())).style(Style::Dots),
                upper,
                edge(-1.0),
            ],
        )
    };
    record.figures.push(Figure {
        file: "far-from-data".to_owned(),
        caption: "Predictions with bands of 90 % (1.645 deviations) among the rows, in the gap and outside; the prior's band is dashed."
            .to_owned(),
        panels: bands.iter().enumerate().map(panel).collect(),
    });
}
