//! Convergence to the exact Laplace kernel (report, chapter 3, "Empirical evaluation"): test error against the number of
//! features on 3000 training rows of real data.
//!
//! `kernel_convergence [NAME...]`, by default cpu_act and house_16h. Inputs in standard units; the lifetime and α are
//! those of the smallest leave-one-out error of the exact kernel on a grid, so no test row is used to choose them.

use mondrian::forest::ForestParams;
use mondrian::kernel::{FeatureMap, LaplaceKernel, LaplaceRidge, MondrianFeatures, RandomBinning, RandomFourier};
use mondrian::ridge::FeatureRidge;
use mondrian::{Lifetime, Points, Result};
use mondrian_benches::{Standardised, Table, rmse};

const TRAIN: usize = 3000;
const SEEDS: u64 = 5;
const MAPS: [usize; 7] = [1, 3, 10, 30, 100, 300, 1000];

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    if names.is_empty() {
        names = vec!["cpu_act".into(), "house_16h".into()];
    }
    for name in &names {
        let mut split = Table::read(name)?.split(0);
        split.train_x.truncate(TRAIN * split.n_columns);
        split.train_y.truncate(TRAIN);
        table(name, &split)?;
    }
    Ok(())
}

fn table(name: &str, split: &Standardised) -> Result<()> {
    let train = Points::row_major(&split.train_x, split.n_columns)?;
    let test = Points::row_major(&split.test_x, split.n_columns)?;
    let (lifetime, alpha) = choose(train, &split.train_y)?;
    let kernel = LaplaceKernel::new(Lifetime::new(lifetime)?)?;
    let exact = LaplaceRidge::params(kernel.clone()).alpha(alpha).fit(train, &split.train_y)?;
    let error = rmse(exact.predict(test)?.as_slice(), &split.test_y);
    println!("\n{name}: λ = {lifetime}, α = {alpha}; exact kernel: RMSE {error:.4}\n");
    println!("| M | Mondrian features | RMSE | binning features | RMSE | Fourier features | RMSE |");
    println!("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for m in MAPS {
        let params = |seed| ForestParams { n_trees: m, seed, ..ForestParams::default() };
        let life = Lifetime::new(lifetime)?;
        let cell = |make: &dyn Fn(u64) -> Result<Box<dyn FeatureMap>>| -> Result<String> {
            let runs: Vec<(f64, f64)> =
                (0..SEEDS).map(|seed| run(&mut *make(seed)?, train, test, split, alpha)).collect::<Result<_>>()?;
            let (columns, _) = spread(runs.iter().map(|r| r.0));
            let (error, deviation) = spread(runs.iter().map(|r| r.1));
            Ok(format!("{columns:.0} | {error:.4} ± {deviation:.4}"))
        };
        let mondrian = cell(&|seed| Ok(Box::new(MondrianFeatures::on(&params(seed), train, life)?)))?;
        let binning = cell(&|seed| Ok(Box::new(RandomBinning::new(&kernel, split.n_columns, m, seed)?)))?;
        let fourier = cell(&|seed| Ok(Box::new(RandomFourier::new(&kernel, split.n_columns, 2 * m, seed)?)))?;
        println!("| {m} | {mondrian} | {binning} | {fourier} |");
    }
    Ok(())
}

/// The pair with the smallest leave-one-out error of the exact kernel.
fn choose(train: Points<'_>, targets: &[f64]) -> Result<(f64, f64)> {
    let mut best = (f64::INFINITY, 0.0, 0.0);
    for lifetime in [0.003, 0.01, 0.03, 0.1] {
        for alpha in [1e-3, 1e-2, 1e-1] {
            let kernel = LaplaceKernel::new(Lifetime::new(lifetime)?)?;
            let error = LaplaceRidge::params(kernel).alpha(alpha).fit(train, targets)?.leave_one_out_rmse()?[0];
            if error < best.0 {
                best = (error, lifetime, alpha);
            }
        }
    }
    Ok((best.1, best.2))
}

fn run(
    map: &mut dyn FeatureMap,
    train: Points<'_>,
    test: Points<'_>,
    split: &Standardised,
    alpha: f64,
) -> Result<(f64, f64)> {
    let z = map.learn(train)?;
    let model = FeatureRidge::params().alpha(alpha).fit(z, &split.train_y)?;
    let predicted = model.predict(&map.transform(test)?)?;
    Ok((map.n_columns() as f64, rmse(predicted.as_slice(), &split.test_y)))
}

/// Mean and standard deviation.
fn spread(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let n = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / n;
    (mean, (values.map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0)).sqrt())
}
