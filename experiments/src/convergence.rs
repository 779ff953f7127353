//! Random features approach the exact Laplace kernel: error against the number of features.

use anyhow::Result;
use mondrian::FeatureRidge;
use mondrian::ForestParams;
use mondrian::process::NodeKey;
use mondrian::{FeatureMap, MondrianFeatures, RandomBinning, RandomFourier};
use mondrian::{LaplaceKernel, LaplaceRidge};
use mondrian::{Lifetime, Points};
use mondrian_benches::{Standardised, rmse};
use rayon::prelude::*;

use crate::context::Context;
use crate::plot::{Axis, Figure, Line, Panel, Style};
use crate::record::{Cell, Record, Spread};

const MAPS: [&str; 3] = ["Mondrian", "Random Binning", "random Fourier"];

/// One approximation with one seed.
#[derive(Clone, Copy)]
struct Fit {
    features: f64,
    error: f64,
    /// Over the exact kernel's error on the same rows.
    ratio: f64,
}

/// One data set.
struct Study {
    name: &'static str,
    lifetime: f64,
    alpha: f64,
    exact: Vec<f64>,
    /// By map, number of maps, seed.
    fits: [Vec<Vec<Fit>>; 3],
}

pub(crate) fn run(context: &Context) -> Result<Record> {
    let sizes: &[usize] = context.pick(&[1, 3, 10, 30, 100, 300, 1000], &[1, 3, 10, 30, 100, 300]);
    let studies = [("cpu_act", "cpu"), ("house_16h", "house")].map(|(table, name)| study(context, table, name, sizes));
    let mut record = Record::new(
        "kernel-convergence",
        "Convergence to the exact Laplace kernel",
        "With 3000 training rows of CPU and of Census, Mondrian features and Random Binning need about the same number of features \
         for the same validation error, which approaches the exact kernel's as their number grows; Random Binning is perhaps a \
         little more sensitive to randomness, in error and in the number of features.",
    );
    record.setting("training rows", context.pick(3000, 600));
    record
        .setting("data", "cpu_act, and house_16h in the place of Census, which was not available; inputs standardised");
    record.setting(
        "λ and δ²",
        "those of the least leave-one-out error of the exact kernel on 1500 rows, one pair per data set",
    );
    record.setting("numbers of maps M =", format!("{sizes:?}; two Fourier columns for each map"));
    record.seeds = format!(
        "{}, and {} for the largest M: other rows and other features; bands are one standard deviation",
        seeds(context, sizes[0]).len(),
        seeds(context, sizes[sizes.len() - 1]).len()
    );
    for study in studies {
        summarise(&mut record, &study?, sizes);
    }
    record.see(
        "On cpu_act (λ = {cpu_lifetime}, δ² = {cpu_alpha}) the exact kernel has RMSE {cpu_exact}; half of the way from one map's error to \
         it takes {cpu_half_0:.0} Mondrian features, {cpu_half_1:.0} of Random Binning and {cpu_half_2:.0} Fourier features. On house_16h \
         (λ = {house_lifetime}, δ² = {house_alpha}; exact {house_exact:.0}) it takes {house_half_0:.0}, {house_half_1:.0} and \
         {house_half_2:.0}. With the most features Mondrian is {cpu_excess_0:%} and {house_excess_0:%} above exact, Random Binning \
         {cpu_excess_1:%} and {house_excess_1:%}, Fourier {cpu_excess_2:%} and {house_excess_2:%}.",
    );
    let number = |name: &str| record.numbers[name];
    let ratios = ["cpu", "house"].map(|set| number(&format!("{set}_half_1")) / number(&format!("{set}_half_0")));
    let similar = ratios.iter().all(|r| (0.5..=2.0).contains(r));
    let nearer = ["cpu", "house"].iter().all(|set| number(&format!("{set}_approaches")) == 1.0);
    // Of both sets together: the geometric mean of the ratios of deviations, and how many standard errors its logarithm is
    // from 0. The logarithm of a ratio of two deviations over n runs each has variance 1/(n - 1), near enough.
    let variances: f64 = sizes.iter().map(|m| 1.0 / (seeds(context, *m).len() as f64 - 1.0)).sum();
    let standard_error = (0.5 * variances).sqrt() / sizes.len() as f64;
    let together = |what: &str| {
        let logs = ["cpu", "house"].map(|set| number(&format!("{set}_{what}")).ln());
        f64::midpoint(logs[0], logs[1])
    };
    let (errors_vary, counts_vary) = (together("wilder"), together("counts"));
    record.number("standard_error", standard_error.exp());
    record.number("wilder", errors_vary.exp());
    record.number("counts", counts_vary.exp());
    record.number("ratio_cpu", ratios[0]);
    record.number("ratio_house", ratios[1]);
    record.claim(
        "similar numbers",
        similar,
        "Random Binning and Mondrian need similar numbers of features, within a factor of 2: for half of the way {ratio_cpu:.2} times as many on \
         cpu_act (standard error: a factor {cpu_half_error:.2}), {ratio_house:.2} times on house_16h (a factor {house_half_error:.2})",
    );
    record.claim(
        "approaches exact",
        nearer,
        "the error approaches the exact kernel's: what Mondrian and Random Binning have above it shrinks to less than half from one map to \
         the most",
    );
    record.claim(
        "binning is wilder",
        errors_vary > 2.0 * standard_error,
        "Random Binning's error varies more from seed to seed, by more than two standard errors: its deviation is {cpu_wilder:.2} (cpu_act) \
         and {house_wilder:.2} (house_16h) times the Mondrian's, the geometric mean over M; {wilder:.2} times together, with a standard error \
         of a factor {standard_error:.2}",
    );
    record.claim(
        "binning's numbers are wilder",
        counts_vary > 2.0 * standard_error,
        "Random Binning's number of features varies more from seed to seed, by more than two standard errors: {cpu_counts:.2} and \
         {house_counts:.2} times as much, {counts:.2} together",
    );
    Ok(record)
}

/// Few maps are cheap and vary most: they have more seeds.
fn seeds(context: &Context, m: usize) -> Vec<u64> {
    context.seeds(if m > 100 { 5 } else { 10 }, 16)
}

fn study(context: &Context, table: &str, name: &'static str, sizes: &[usize]) -> Result<Study> {
    let all = seeds(context, sizes[0]);
    let table = context.table(table)?;
    let (n_train, n_test) = context.pick((3000, 1500), (600, 400));
    let splits: Vec<Standardised> = all.iter().map(|s| table.split(*s as u32).first(n_train, n_test)).collect();
    let (lifetime, alpha) = choose(&splits[0], context.pick(1500, 600))?;
    context.log(&format!("{name}: λ = {lifetime}, δ² = {alpha}"));
    let exact: Vec<f64> = splits.par_iter().map(|split| exact(split, lifetime, alpha)).collect::<Result<_>>()?;
    let of_map = |map: usize| -> Result<Vec<Vec<Fit>>> {
        let mut by_size = Vec::new();
        for &m in sizes {
            context.log(&format!("{name}: {} × {m}", MAPS[map]));
            let seeds = seeds(context, m);
            let fit = |k: usize| fit(&splits[k], map, m, seeds[k], (lifetime, alpha), exact[k]);
            by_size.push((0..seeds.len()).into_par_iter().map(fit).collect::<Result<Vec<Fit>>>()?);
        }
        Ok(by_size)
    };
    let fits = [of_map(0)?, of_map(1)?, of_map(2)?];
    Ok(Study { name, lifetime, alpha, exact, fits })
}

/// The pair with the smallest leave-one-out error of the exact kernel.
fn choose(split: &Standardised, n_rows: usize) -> Result<(f64, f64)> {
    let n_rows = n_rows.min(split.train_y.len());
    let points = Points::row_major(&split.train_x[..n_rows * split.n_columns], split.n_columns)?;
    let pairs: Vec<(f64, f64)> = [0.003, 0.01, 0.03, 0.1, 0.3]
        .into_iter()
        .flat_map(|lifetime| [1e-3, 1e-2, 0.1, 1.0].map(|alpha| (lifetime, alpha)))
        .collect();
    let error = |pair: &(f64, f64)| -> Result<f64> {
        let kernel = LaplaceKernel::new(Lifetime::new(pair.0)?)?;
        let model = LaplaceRidge::params(kernel).alpha(pair.1).fit(points, &split.train_y[..n_rows])?;
        Ok(model.leave_one_out_rmse()?[0])
    };
    let errors: Vec<f64> = pairs.par_iter().map(error).collect::<Result<_>>()?;
    let best = (0..pairs.len()).min_by(|a, b| errors[*a].total_cmp(&errors[*b])).unwrap_or(0);
    Ok(pairs[best])
}

fn exact(split: &Standardised, lifetime: f64, alpha: f64) -> Result<f64> {
    let (train, test) = (split.train()?, split.test()?);
    let kernel = LaplaceKernel::new(Lifetime::new(lifetime)?)?;
    let model = LaplaceRidge::params(kernel).alpha(alpha).fit(train, &split.train_y)?;
    Ok(rmse(model.predict(test)?.as_slice(), &split.test_y))
}

fn fit(
    split: &Standardised,
    map: usize,
    m: usize,
    seed: u64,
    (lifetime, alpha): (f64, f64),
    exact: f64,
) -> Result<Fit> {
    let (train, test) = (split.train()?, split.test()?);
    let lifetime = Lifetime::new(lifetime)?;
    let kernel = LaplaceKernel::new(lifetime)?;
    let mut map: Box<dyn FeatureMap> = match map {
        0 => {
            let params = ForestParams { n_trees: m, seed, ..ForestParams::default() };
            Box::new(MondrianFeatures::on(&params, train, lifetime)?)
        }
        1 => Box::new(RandomBinning::new(&kernel, split.n_columns, m, seed)?),
        _ => Box::new(RandomFourier::new(&kernel, split.n_columns, 2 * m, seed)?),
    };
    let z = map.learn(train)?;
    let model = FeatureRidge::params().alpha(alpha).fit(z, &split.train_y)?;
    let error = rmse(model.predict(&map.transform(test)?)?.as_slice(), &split.test_y);
    Ok(Fit { features: map.n_columns() as f64, error, ratio: error / exact })
}

fn spread(fits: &[Fit], of: fn(&Fit) -> f64) -> Spread {
    Spread::of(fits.iter().map(of))
}

/// Features at which the mean error has come half of the way from `start` to `end`, between two sizes by logarithms.
fn half_way(fits: &[Vec<Fit>], start: f64, end: f64) -> f64 {
    let wanted = f64::midpoint(start, end);
    let points: Vec<(f64, f64)> =
        fits.iter().map(|f| (spread(f, |f| f.features).mean.ln(), spread(f, |f| f.error).mean)).collect();
    for pair in points.windows(2) {
        if pair[0].1 >= wanted && pair[1].1 < wanted {
            let share = (pair[0].1 - wanted) / (pair[0].1 - pair[1].1);
            return (pair[0].0 + share * (pair[1].0 - pair[0].0)).exp();
        }
    }
    f64::NAN
}

/// Standard deviation of the logarithm of how many times as many features Random Binning needs for half of the way, over
/// 200 samples of the seeds with replacement: single lucky cuts move the number a great deal. Samples in which a map does
/// not come half of the way are left out.
fn half_way_uncertainty(study: &Study) -> f64 {
    let sample = |number: u64, fits: &[Vec<Fit>]| -> Vec<Vec<Fit>> {
        // The same seeds for every size and map, since those share their rows.
        let draw = |k: usize| NodeKey::root(number, 0).fork(k as u64).draw(0).uniform();
        let of_size = |f: &Vec<Fit>| (0..f.len()).map(|k| f[(draw(k) * f.len() as f64) as usize]).collect();
        fits.iter().map(of_size).collect()
    };
    let exact = Spread::of(study.exact.iter().copied()).mean;
    let logs = (0..200).filter_map(|number| {
        let [mondrian, binning] = [0, 1].map(|map: usize| sample(number, &study.fits[map]));
        let start = spread(&mondrian[0], |f| f.error).mean;
        let log = (half_way(&binning, start, exact) / half_way(&mondrian, start, exact)).ln();
        log.is_finite().then_some(log)
    });
    Spread::of(logs).deviation
}

fn summarise(record: &mut Record, study: &Study, sizes: &[usize]) {
    let name = study.name;
    let exact = Spread::of(study.exact.iter().copied());
    let start = spread(&study.fits[0][0], |f| f.error).mean;
    record.number(&format!("{name}_lifetime"), study.lifetime);
    record.number(&format!("{name}_alpha"), study.alpha);
    record.number(&format!("{name}_exact"), exact.mean);
    record.number(&format!("{name}_half_error"), half_way_uncertainty(study).exp());
    let mut approaches = true;
    for (k, fits) in study.fits.iter().enumerate() {
        let excess = |size: usize| spread(&fits[size], |f| f.ratio).mean - 1.0;
        // The report compares the first two.
        approaches &= k == 2 || excess(sizes.len() - 1) < 0.5 * excess(0);
        record.number(&format!("{name}_half_{k}"), half_way(fits, start, exact.mean));
        record.number(&format!("{name}_excess_{k}"), excess(sizes.len() - 1));
    }
    record.number(&format!("{name}_approaches"), f64::from(u8::from(approaches)));
    let deviation = |map: usize, of: fn(&Fit) -> f64| -> f64 {
        study.fits[map].iter().map(|f| spread(f, of).deviation.ln()).sum::<f64>() / sizes.len() as f64
    };
    record.number(&format!("{name}_wilder"), (deviation(1, |f| f.ratio) - deviation(0, |f| f.ratio)).exp());
    record.number(&format!("{name}_counts"), (deviation(1, |f| f.features) - deviation(0, |f| f.features)).exp());
    let row = |k: usize| -> Vec<Cell> {
        let of_map = |fits: &Vec<Vec<Fit>>| -> [Cell; 2] {
            [spread(&fits[k], |f| f.features).into(), spread(&fits[k], |f| f.error).into()]
        };
        std::iter::once(Cell::from(sizes[k] as f64)).chain(study.fits.iter().flat_map(of_map)).collect()
    };
    let columns = ["M", "Mondrian features", "RMSE", "binning features", "RMSE", "Fourier features", "RMSE"];
    record.table(
        &format!(
            "{name}: λ = {}, δ² = {}; exact kernel {:.4} ± {:.4}",
            study.lifetime, study.alpha, exact.mean, exact.deviation
        ),
        &columns,
        (0..sizes.len()).map(row),
    );
    let panel = chart(study, exact);
    if let Some(figure) = record.figures.first_mut() {
        figure.panels.push(panel);
    } else {
        record.figures.push(Figure {
            file: "kernel-convergence".to_owned(),
            caption: "Test error against the number of features C. The black line is the exact kernel, its band as the others' one \
                      standard deviation over seeds."
                .to_owned(),
            panels: vec![panel],
        });
    }
}

fn chart(study: &Study, exact: Spread) -> Panel {
    let features = |f: &Vec<Fit>| spread(f, |f| f.features).mean;
    let ends =
        study.fits.iter().flatten().map(features).fold((f64::INFINITY, 0.0_f64), |(l, h), c| (l.min(c), h.max(c)));
    let mut lines = vec![
        Line::banded("exact kernel", 5, [ends.0, ends.1].map(|c| (c, exact.mean, exact.deviation)))
            .style(Style::Dashed),
    ];
    for (k, fits) in study.fits.iter().enumerate() {
        let points = fits.iter().map(|f| {
            let error = spread(f, |f| f.error);
            (features(f), error.mean, error.deviation)
        });
        lines.push(Line::banded(MAPS[k], k, points).style(Style::Dotted));
    }
    let (title, y) = if study.name == "cpu" {
        ("CPU (cpu_act)", Axis::log("test RMSE, % of time"))
    } else {
        ("In the place of Census: house_16h", Axis::linear("test RMSE, dollars"))
    };
    Panel::chart(title, Axis::log("number of features C"), y, lines)
}
