//! Benchmarks of densities: the effect of γ, held-out likelihoods compared with a kernel estimate, and the time of a
//! path.
//!
//! `cargo run --release -p mondrian-benches --bin density [gamma | path]`; both without an argument.

use mondrian::Progress;
use mondrian::process::NodeKey;
use mondrian::{DensityForest, DensityParams, GammaChoice};
use mondrian::{ForestParams, LifetimeChoice};
use mondrian::{Lifetime, Points};
use mondrian_benches::{Table, timed};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let what = std::env::args().nth(1);
    let wanted = |name: &str| what.as_deref().is_none_or(|w| w == name);
    if wanted("gamma") {
        gamma()?;
    }
    if wanted("path") {
        path_time()?;
    }
    Ok(())
}

fn params(n_trees: usize, lifetime: f64, gamma: f64) -> mondrian::Result<DensityParams> {
    let lifetime = LifetimeChoice::Value(Lifetime::new(lifetime)?);
    let forest = ForestParams { n_trees, lifetime, ..ForestParams::default() };
    Ok(DensityParams { gamma: GammaChoice::Value(gamma), ..DensityParams::from(forest) })
}

/// Rows to learn and rows to test, row-major.
struct Sets {
    name: &'static str,
    train: Vec<f64>,
    test: Vec<f64>,
    n_dims: usize,
}

/// Mean log density of held-out rows for each γ at its automatic lifetime, for the automatic γ, and for a kernel estimate.
fn gamma() -> Result<(), Box<dyn std::error::Error>> {
    println!("held-out mean log density (rows in the box), 50 trees, automatic lifetime");
    print!("{:>22}", "γ");
    ["1e-6", "1e-5", "1e-4", "1e-3", "0.01", "0.1", "1"].iter().for_each(|gamma| print!(" {gamma:>7}"));
    println!(" {:>16} {:>7}", "auto", "kernel");
    for sets in data_sets()? {
        let train = Points::row_major(&sets.train, sets.n_dims)?;
        let test = Points::row_major(&sets.test, sets.n_dims)?;
        let score = |gamma: GammaChoice| -> mondrian::Result<(f64, DensityForest)> {
            let forest = ForestParams { n_trees: 50, ..ForestParams::default() };
            let model = DensityParams { gamma, ..DensityParams::from(forest) }.fit(train)?;
            Ok((model.score(test)?.mean_inside(), model))
        };
        print!("{:>22}", sets.name);
        for gamma in [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0] {
            print!(" {:7.3}", score(GammaChoice::Value(gamma))?.0);
        }
        let (best, model) = score(GammaChoice::Auto)?;
        // The kernel is evaluated on the same rows: those in the box.
        let n_all = sets.test.len() / sets.n_dims;
        let inside = |x: &&[f64]| model.bounds().contains(x);
        let test: Vec<f64> = sets.test.chunks_exact(sets.n_dims).filter(inside).flatten().copied().collect();
        let n_outside = n_all - test.len() / sets.n_dims;
        let kernel = kernel_estimate(&Sets { test, ..sets });
        println!(" {best:7.3} ({:6}) {kernel:7.3}   {n_outside} of {n_all} rows outside", model.gamma());
    }
    Ok(())
}

fn data_sets() -> Result<Vec<Sets>, Box<dyn std::error::Error>> {
    let mut sets = Vec::new();
    for (name, n_rows) in [("ccpp", 2000), ("house_8l", 2000), ("iris", 150)] {
        let split = Table::read(name)?.split(1);
        let d = split.n_columns;
        let n_train = (n_rows * d).min(split.train_x.len());
        let n_test = (2000 * d).min(split.test_x.len());
        let (train, test) = (split.train_x[..n_train].to_vec(), split.test_x[..n_test].to_vec());
        sets.push(Sets { name, train, test, n_dims: d });
    }
    // Two Gaussians, the second ten times narrower.
    let mixture = |n: u64, seed: u64| -> Vec<f64> {
        let one = |row: u64, dim: u64| {
            let key = NodeKey::root(seed, row).fork(dim);
            if row.is_multiple_of(2) { key.draw(0).normal() } else { 3.0 + 0.1 * key.draw(0).normal() }
        };
        (0..n).flat_map(|row| [one(row, 0), one(row, 1)]).collect()
    };
    sets.push(Sets { name: "two Gaussians, n 100", train: mixture(100, 1), test: mixture(2000, 2), n_dims: 2 });
    sets.push(Sets { name: "two Gaussians, n 2000", train: mixture(2000, 1), test: mixture(2000, 2), n_dims: 2 });
    Ok(sets)
}

/// Mean held-out log density of a product Gaussian kernel, its width (a factor on Scott's rule) by leave-one-out.
fn kernel_estimate(sets: &Sets) -> f64 {
    let d = sets.n_dims;
    let n = sets.train.len() / d;
    let scott = (n as f64).powf(-1.0 / (d as f64 + 4.0));
    let deviation: Vec<f64> = (0..d)
        .map(|dim| {
            let column: Vec<f64> = sets.train.iter().skip(dim).step_by(d).copied().collect();
            let mean = column.iter().sum::<f64>() / n as f64;
            (column.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64).sqrt()
        })
        .collect();
    let log_density = |x: &[f64], width: f64, left_out: Option<usize>| {
        let exponent =
            |row: &[f64]| -> f64 { (0..d).map(|k| -0.5 * ((x[k] - row[k]) / (deviation[k] * width)).powi(2)).sum() };
        let rows = sets.train.chunks_exact(d).enumerate().filter(|(row, _)| Some(*row) != left_out);
        let terms: Vec<f64> = rows.map(|(_, row)| exponent(row)).collect();
        let most = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = terms.iter().map(|t| (t - most).exp()).sum();
        let norm: f64 = deviation.iter().map(|s| (s * width).ln() + 0.5 * std::f64::consts::TAU.ln()).sum();
        most + (sum / terms.len() as f64).ln() - norm
    };
    let left_out = |width: f64| -> f64 {
        sets.train.chunks_exact(d).take(300).enumerate().map(|(row, x)| log_density(x, width, Some(row))).sum()
    };
    let widths = [0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0].map(|factor| factor * scott);
    let best = widths.into_iter().max_by(|a, b| left_out(*a).total_cmp(&left_out(*b))).unwrap_or(scott);
    let n_test = sets.test.len() / d;
    sets.test.chunks_exact(d).map(|x| log_density(x, best, None)).sum::<f64>() / n_test as f64
}

/// The whole path over one fit with the likelihoods of both sets.
fn path_time() -> Result<(), Box<dyn std::error::Error>> {
    let split = Table::read("ccpp")?.split(1);
    let train = Points::row_major(&split.train_x[..4000 * 4], 4)?;
    let test = Points::row_major(&split.test_x[..1000 * 4], 4)?;
    let params = params(50, 4.0, 1.0)?;
    let mut ratios = Vec::new();
    let mut shown = String::new();
    for _ in 0..7 {
        let (model, fit) = timed(|| -> mondrian::Result<DensityForest> {
            let model = params.fit(train)?;
            model.score(train)?;
            model.score(test)?;
            Ok(model)
        });
        let model = model?;
        let (path, whole) = timed(|| model.path(&[test], &mut Progress::none()));
        let path = path?;
        ratios.push(whole / fit);
        shown = format!("fit and score {fit:.2} s, path {whole:.2} s, {} lifetimes kept", path.len());
    }
    ratios.sort_by(f64::total_cmp);
    println!("ccpp 4000 + 1000 rows, 50 trees, λ = 4 (training, test and leave-one-out): {shown}");
    println!("path over fit and score: least {:.2}, median {:.2} of 7", ratios[0], ratios[3]);
    Ok(())
}
