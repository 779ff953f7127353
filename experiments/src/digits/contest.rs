//! The two classifiers against each other: hyperparameters by cross-validation, errors on the test images.

use anyhow::Result;
use mondrian::{DensityClassifier, DensityParams, GammaChoice};
use mondrian::{ForestParams, LifetimeChoice};
use mondrian::{Lifetime, Points};
use rayon::prelude::*;

use super::images::{Images, Labelled};
use super::kde::{self, N_BANDWIDTHS, bandwidth};
use crate::context::Context;
use crate::record::Spread;

pub(super) const LIFETIMES: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
const GAMMAS: [f64; 3] = [1e-3, 1e-2, 0.1];

/// Shares of images wrong by number of components and choice.
type Errors = Vec<Vec<f64>>;

/// Errors against the number of components.
pub(super) struct Curves {
    pub(super) kde: Vec<f64>,
    pub(super) mondrian: Vec<Spread>,
    /// For each number of components, what Mondrian errs more on each image: mean over seeds of 1 where only it is wrong, −1
    /// where only the kernel is.
    pub(super) differences: Vec<Vec<f64>>,
    /// What was chosen: bandwidth, lifetime and γ for each number of components.
    pub(super) chosen: Vec<(f64, f64, f64)>,
}

/// All that one number of training images gives.
pub(super) struct Contest {
    pub(super) n_train: usize,
    pub(super) n_test: usize,
    /// One choice for all numbers of components.
    pub(super) constant: Curves,
    /// A choice for each.
    pub(super) tuned: Curves,
    /// Test errors by bandwidth and number of components.
    pub(super) by_bandwidth: Vec<Vec<f64>>,
    /// Test errors by lifetime and number of components, with the constant γ and one seed.
    pub(super) by_lifetime: Vec<Vec<f64>>,
}

pub(super) fn n_trees(context: &Context) -> usize {
    context.pick(50, 30)
}

pub(super) fn n_folds(context: &Context) -> usize {
    context.pick(5, 2)
}

/// The first index of the least value.
fn least(n: usize, value: impl Fn(usize) -> f64) -> usize {
    (0..n).fold(0, |best, k| if value(k) < value(best) { k } else { best })
}

/// Lifetime and γ by number.
fn choice(number: usize) -> (f64, f64) {
    (LIFETIMES[number % LIFETIMES.len()], GAMMAS[number / LIFETIMES.len()])
}

impl Contest {
    pub(super) fn new(context: &Context, images: &Images) -> Result<Self> {
        let Images { train, test } = images;
        let d = train.n_columns;
        let (kde_errors, mondrian_errors) = validate(context, train)?;
        context.log(&format!("{} images: validated", train.len()));
        // One value for all numbers of components: the one with the least mean validation error.
        let constant = |errors: &[Vec<f64>]| vec![least(errors[0].len(), |k| errors.iter().map(|e| e[k]).sum()); d];
        let tuned = |errors: &[Vec<f64>]| errors.iter().map(|e| least(e.len(), |k| e[k])).collect::<Vec<usize>>();
        let answers = kde::classify(train, test);
        let curves = |h: Vec<usize>, m: Vec<usize>| curves(context, images, &answers, &h, &m);
        let by_bandwidth = |h: usize| answers.iter().map(|a| test.share_wrong(&a[h])).collect();
        let (_, gamma) = choice(constant(&mondrian_errors)[0]);
        let views: Vec<Vec<f64>> =
            (1..=d).into_par_iter().map(|c| views(train, test, c, (n_trees(context), gamma))).collect::<Result<_>>()?;
        let contest = Self {
            n_train: train.len(),
            n_test: test.len(),
            constant: curves(constant(&kde_errors), constant(&mondrian_errors))?,
            tuned: curves(tuned(&kde_errors), tuned(&mondrian_errors))?,
            by_bandwidth: (0..N_BANDWIDTHS).map(by_bandwidth).collect(),
            by_lifetime: (0..LIFETIMES.len()).map(|l| views.iter().map(|v| v[l]).collect()).collect(),
        };
        context.log(&format!("{} images: tested", train.len()));
        Ok(contest)
    }
}

/// Cross-validated errors by number of components and choice: of the bandwidth, and of lifetime and γ.
fn validate(context: &Context, train: &Labelled) -> Result<(Errors, Errors)> {
    let d = train.n_columns;
    let mut kde_errors = vec![vec![0.0; N_BANDWIDTHS]; d];
    let mut mondrian_errors = vec![vec![0.0; LIFETIMES.len() * GAMMAS.len()]; d];
    for fold in 0..n_folds(context) {
        let [fit, held_out] = train.fold(fold);
        for (sums, found) in kde_errors.iter_mut().zip(kde::classify(&fit, &held_out)) {
            sums.iter_mut().zip(&found).for_each(|(sum, answers)| *sum += held_out.share_wrong(answers));
        }
        let of_columns = |columns: usize| -> Result<Vec<f64>> {
            let of_gamma = |gamma: &f64| views(&fit, &held_out, columns, (context.pick(15, 10), *gamma));
            Ok(GAMMAS.iter().map(of_gamma).collect::<Result<Vec<_>>>()?.concat())
        };
        let errors: Vec<Vec<f64>> = (1..=d).into_par_iter().map(of_columns).collect::<Result<_>>()?;
        for (sums, errors) in mondrian_errors.iter_mut().zip(errors) {
            sums.iter_mut().zip(errors).for_each(|(sum, error)| *sum += error);
        }
    }
    Ok((kde_errors, mondrian_errors))
}

/// Errors of one forest with each lifetime: one fit at the largest, viewed at all of them.
fn views(train: &Labelled, test: &Labelled, columns: usize, (n_trees, gamma): (usize, f64)) -> Result<Vec<f64>> {
    let rows = test.leading(columns);
    let rows = Points::row_major(&rows, columns)?;
    let model = fit(train, columns, n_trees, (LIFETIMES[LIFETIMES.len() - 1], gamma), 99)?;
    let error = |lifetime: f64| -> Result<f64> {
        let mut logs = Vec::new();
        for density in model.densities() {
            logs.push(density.at(Lifetime::new(lifetime)?)?.log_density(rows)?);
        }
        let found: Vec<u32> = logs[1].iter().zip(&logs[0]).map(|(one, zero)| u32::from(one > zero)).collect();
        Ok(test.share_wrong(&found))
    };
    LIFETIMES.into_iter().map(error).collect()
}

fn fit(
    train: &Labelled,
    columns: usize,
    n_trees: usize,
    (lifetime, gamma): (f64, f64),
    seed: u64,
) -> Result<DensityClassifier> {
    let lifetime = LifetimeChoice::Value(Lifetime::new(lifetime)?);
    let forest = ForestParams { n_trees, lifetime, seed, ..ForestParams::default() };
    let params = DensityParams { gamma: GammaChoice::Value(gamma), ..DensityParams::from(forest) };
    let rows = train.leading(columns);
    Ok(DensityClassifier::params()
        .density(params.clone())
        .equal_prior()
        .fit(Points::row_major(&rows, columns)?, &train.classes)?)
}

/// Test errors with these choices for each number of components; `answers` are the kernel's with every bandwidth.
fn curves(
    context: &Context,
    Images { train, test }: &Images,
    answers: &[Vec<Vec<u32>>],
    bandwidths: &[usize],
    choices: &[usize],
) -> Result<Curves> {
    let kde: Vec<&Vec<u32>> = answers.iter().zip(bandwidths).map(|(found, h)| &found[*h]).collect();
    let seeds = context.seeds(3, 2);
    let of_columns = |columns: usize| -> Result<Vec<Vec<u32>>> {
        let rows = test.leading(columns);
        let predict = |seed: &u64| -> Result<Vec<u32>> {
            let model = fit(train, columns, n_trees(context), choice(choices[columns - 1]), *seed)?;
            Ok(model.predict(Points::row_major(&rows, columns)?)?)
        };
        seeds.iter().map(predict).collect()
    };
    let forests: Vec<Vec<Vec<u32>>> = (1..=train.n_columns).into_par_iter().map(of_columns).collect::<Result<_>>()?;
    let wrong = |answer: u32, image: usize| f64::from(u8::from(answer != test.classes[image]));
    let difference = |columns: usize, image: usize| {
        let forests = forests[columns].iter().map(|f| wrong(f[image], image)).sum::<f64>() / seeds.len() as f64;
        forests - wrong(kde[columns][image], image)
    };
    let chosen = |(h, m): (&usize, &usize)| (bandwidth(*h), choice(*m).0, choice(*m).1);
    Ok(Curves {
        kde: kde.iter().map(|a| test.share_wrong(a)).collect(),
        mondrian: forests.iter().map(|f| Spread::of(f.iter().map(|f| test.share_wrong(f)))).collect(),
        differences: (0..train.n_columns)
            .map(|c| (0..test.len()).map(|image| difference(c, image)).collect())
            .collect(),
        chosen: bandwidths.iter().zip(choices).map(chosen).collect(),
    })
}
