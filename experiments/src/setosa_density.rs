//! Iris setosa: training and test likelihood against the lifetime, by a refit at each lifetime and by the path.

use anyhow::Result;
use mondrian::Lifetime;
use mondrian::Progress;
use rayon::prelude::*;

use crate::context::Context;
use crate::plot::{Axis, Figure, Line, Panel, Style};
use crate::record::{Record, Spread};
use crate::setosa::{Fold, GAMMA, N_TREES};

/// Mean log densities at one lifetime.
#[derive(Clone, Copy)]
struct Likelihood {
    train: f64,
    test: f64,
}

/// One fold: at each lifetime the refit with the path's seed, the path, and a refit with a seed of its own.
struct Curves {
    refit: Vec<Likelihood>,
    path: Vec<Likelihood>,
    fresh: Vec<Likelihood>,
}

pub(crate) fn run(context: &Context) -> Result<Record> {
    let lifetimes: Vec<f64> = (0..=context.pick(25, 6)).map(|k| context.pick(2.0, 5.0) * f64::from(k)).collect();
    let n_trees = context.pick(N_TREES, 30);
    let folds = context.pick(5, 3);
    let curves: Vec<Curves> = (0..folds)
        .into_par_iter()
        .map(|fold| curves(&Fold::new(context, fold)?, n_trees, context.seed + fold as u64, &lifetimes))
        .collect::<Result<_>>()?;
    let mut record = Record::new(
        "setosa-density",
        "Iris setosa: likelihood against lifetime",
        "A forest of M = 200 trees, retrained at each of several lifetimes: the likelihood of the training rows goes up with \
         the lifetime, that of the test rows peaks and then falls as the model fits noise. The lifetime sets the complexity.",
    );
    record.setting("trees M =", n_trees);
    record.setting("γ =", format!("{GAMMA} (the automatic choice on all 50 rows)"));
    record.setting("rows", "40 to learn, 10 to test (the report states no split, and no γ)");
    record.setting("box", "around all 50 rows, those held out too, so that none lies outside it");
    record.seeds = format!("{folds}: each holds out another fifth of the flowers and has other trees");
    summarise(&mut record, &lifetimes, &curves);
    Ok(record)
}

fn curves(fold: &Fold, n_trees: usize, seed: u64, lifetimes: &[f64]) -> Result<Curves> {
    let at = |seed: u64, lifetime: f64| -> Result<Likelihood> {
        let model = fold.fit(n_trees, lifetime, seed)?;
        let [train, test] = [fold.train()?, fold.test()?].map(|points| model.score(points));
        Ok(Likelihood { train: train?.mean_inside(), test: test?.mean_inside() })
    };
    let largest = fold.fit(n_trees, lifetimes[lifetimes.len() - 1], seed)?;
    let path = largest.path(&[fold.test()?], &mut Progress::none())?;
    let read = |lifetime: &f64| -> Result<Likelihood> {
        let i = path.index_at(Lifetime::new(*lifetime)?);
        Ok(Likelihood { train: -path.train()[i], test: -path.validation()[0][i] })
    };
    // Seeds beyond those of the folds, another for each lifetime: as the report did it.
    let fresh = |(k, lifetime): (usize, &f64)| at(1000 * (seed + 1) + k as u64, *lifetime);
    Ok(Curves {
        refit: lifetimes.iter().map(|l| at(seed, *l)).collect::<Result<_>>()?,
        path: lifetimes.iter().map(read).collect::<Result<_>>()?,
        fresh: lifetimes.iter().enumerate().map(fresh).collect::<Result<_>>()?,
    })
}

fn summarise(record: &mut Record, lifetimes: &[f64], curves: &[Curves]) {
    type Reader = fn(&Curves) -> &[Likelihood];
    let spread = |of: Reader, what: fn(&Likelihood) -> f64| -> Vec<Spread> {
        (0..lifetimes.len()).map(|k| Spread::of(curves.iter().map(|c| what(&of(c)[k])))).collect()
    };
    let train = spread(|c| &c.path, |l| l.train);
    let test = spread(|c| &c.path, |l| l.test);
    let fresh_train = spread(|c| &c.fresh, |l| l.train);
    let fresh_test = spread(|c| &c.fresh, |l| l.test);
    let difference = curves
        .iter()
        .flat_map(|c| c.path.iter().zip(&c.refit))
        .map(|(a, b)| (a.train - b.train).abs().max((a.test - b.test).abs()))
        .fold(0.0, f64::max);
    let last = lifetimes.len() - 1;
    let peak = (0..=last).max_by(|a, b| test[*a].mean.total_cmp(&test[*b].mean)).unwrap_or(0);
    let fresh_noise = fresh_test.iter().zip(&test).map(|(a, b)| (a.mean - b.mean).abs()).fold(0.0, f64::max);
    for (name, value) in [
        ("difference", difference),
        ("train_start", train[0].mean),
        ("train_end", train[last].mean),
        ("test_start", test[0].mean),
        ("test_peak", test[peak].mean),
        ("peak_lifetime", lifetimes[peak]),
        ("test_end", test[last].mean),
        ("last_lifetime", lifetimes[last]),
        ("fresh_noise", fresh_noise),
    ] {
        record.number(name, value);
    }
    record.see(
        "From λ = 0 to {last_lifetime} the mean log density of the training rows goes from {train_start:.2} to {train_end:.2}; \
         that of the test rows from {test_start:.2} up to {test_peak:.2} near λ = {peak_lifetime} and down to {test_end:.2}. \
         Trees that are new at every lifetime (dots) move the mean test curve by at most {fresh_noise:.2}.",
    );
    record.claim(
        "training rises",
        train.windows(2).all(|w| w[0].mean < w[1].mean),
        "the training likelihood rises from each lifetime to the next",
    );
    record.claim(
        "test peaks",
        peak > 0 && peak < last && test[last].mean < test[peak].mean,
        "the test likelihood peaks inside the range and then falls ({test_peak:.3} to {test_end:.3})",
    );
    record.claim(
        "path is refit",
        difference < 1e-9,
        "the path and a refit at each lifetime coincide (largest difference {difference})",
    );
    let line = |name: &str, colour: usize, values: &[Spread]| {
        Line::banded(name, colour, lifetimes.iter().zip(values).map(|(l, s)| (*l, s.mean, s.deviation)))
    };
    let dots = |name: &str, colour: usize, values: &[Spread]| {
        Line::new(name, colour, lifetimes.iter().zip(values).map(|(l, s)| (*l, s.mean))).style(Style::Dots)
    };
    record.figures.push(Figure {
        file: "setosa-density".to_owned(),
        caption: "Mean log density over the folds (line: the path; band: one standard deviation over folds; dots: a new forest \
                  for each lifetime). Left: as in the report; right: the test rows alone."
            .to_owned(),
        panels: vec![
            Panel::chart("Iris setosa", Axis::linear("lifetime λ, 1/cm"), Axis::linear("mean log density, nats"), vec![
                    line("training", 1, &train),
                    line("test", 2, &test),
                    dots("training, refitted", 1, &fresh_train),
                    dots("test, refitted", 2, &fresh_test),
                ]),
            Panel::chart("Test rows alone, around the peak", Axis::linear("lifetime λ, 1/cm"), Axis::linear("mean log density, nats").within(test[peak].mean - 0.45, test[peak].mean + 0.15), vec![
                    Line::new("test, path", 2, lifetimes.iter().zip(&test).map(|(l, s)| (*l, s.mean))),
                    dots("test, refitted", 2, &fresh_test),
                ]),
        ],
    });
    record.table(
        "Mean log density, mean ± standard deviation over folds",
        &["lifetime", "training", "test"],
        (0..=last).map(|k| vec![lifetimes[k].into(), train[k].into(), test[k].into()]),
    );
}
