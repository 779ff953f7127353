//! Prediction of the three forests on the same rows: nanoseconds per row and tree, one thread.
//!
//! `predict_models [auto | LIFETIME ...]`, by default `auto inf`. Letter (15 000 rows learned, 5000 predicted), or
//! uniform rows of the same shape without the data folder. 100 trees and defaults otherwise; `TREES`, `RUNS` (7) and
//! `MODELS` (for example `density,regression`) in the environment. Times are the minimum processor time over the runs.

use std::hint::black_box;

use mondrian::process::NodeKey;
use mondrian::{ClassificationParams, DensityParams, ForestParams, Lifetime, LifetimeChoice, Points, RegressionParams};
use mondrian_benches::{Table, timed_on_thread};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

const N_DIMS: usize = 16;
const N_CLASSES: usize = 26;
const N_TRAIN: usize = 15_000;
const N_TEST: usize = 5000;

/// Rows to learn with their letters, and rows to predict.
struct Data {
    train: Vec<f64>,
    letters: Vec<f64>,
    test: Vec<f64>,
}

fn main() -> Outcome {
    rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global()?;
    let mut lifetimes: Vec<String> = std::env::args().skip(1).collect();
    if lifetimes.is_empty() {
        lifetimes = vec!["auto".into(), "inf".into()];
    }
    let data = data();
    println!("| model | requested λ | λ | nodes per tree | ns per row and tree | over regression |");
    println!("| --- | --- | ---: | ---: | ---: | ---: |");
    for name in &lifetimes {
        let lifetime = match name.as_str() {
            "auto" => LifetimeChoice::Auto,
            value => LifetimeChoice::Value(Lifetime::new(value.parse()?)?),
        };
        compare(&data, name, ForestParams { n_trees: number("TREES", 100), lifetime, ..ForestParams::default() })?;
    }
    Ok(())
}

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

fn data() -> Data {
    if let Ok(table) = Table::read("letter") {
        let split = table.split_at(N_TRAIN);
        return Data { train: split.train_x, letters: split.train_y, test: split.test_x };
    }
    println!("no data folder: uniform rows of the shape of letter");
    let uniform = |n: usize, seed| -> Vec<f64> {
        (0..n as u64).map(|i| (NodeKey::root(seed, i).draw(0).uniform() * 16.0).floor()).collect()
    };
    let (train, test) = (uniform(N_TRAIN * N_DIMS, 1), uniform(N_TEST * N_DIMS, 2));
    let letter = |x: &[f64]| (x[0] + x[1] + x[2]).min(N_CLASSES as f64 - 1.0);
    Data { letters: train.chunks(N_DIMS).map(letter).collect(), train, test }
}

fn compare(data: &Data, requested: &str, forest: ForestParams) -> Outcome {
    let (train, test) = (Points::row_major(&data.train, N_DIMS)?, Points::row_major(&data.test, N_DIMS)?);
    let n_trees = forest.n_trees;
    let least = |work: &dyn Fn()| {
        let times = (0..number("RUNS", 7)).map(|_| timed_on_thread(work).1);
        times.fold(f64::INFINITY, f64::min) * 1e9 / (test.n_rows() * n_trees) as f64
    };
    let models = std::env::var("MODELS").unwrap_or_default();
    let is_asked = |name: &str| models.is_empty() || models.split(',').any(|model| model == name);
    let mut regression = f64::NAN;
    let mut report = |model: &str, lifetime: Lifetime, n_nodes: usize, time: f64| {
        if model == "regression" {
            regression = time;
        }
        println!(
            "| {model} | {requested} | {lifetime} | {} | {time:.0} | {:.2} |",
            n_nodes / n_trees,
            time / regression
        );
    };
    if is_asked("regression") {
        let params = RegressionParams { forest: forest.clone(), ..RegressionParams::default() };
        let model = params.fit(train, &data.letters)?;
        let n_nodes = model.forest().trees().iter().map(|(tree, _)| tree.n_nodes()).sum();
        let time = least(&|| drop(black_box(model.predict(test))));
        report("regression", model.lifetime(), n_nodes, time);
    }
    if is_asked("classification") {
        let params = ClassificationParams { forest: forest.clone(), ..ClassificationParams::default() };
        let letters: Vec<u32> = data.letters.iter().map(|letter| *letter as u32).collect();
        let model = params.n_classes(N_CLASSES).fit(train, &letters)?;
        let n_nodes = model.forest().trees().iter().map(|(tree, _)| tree.n_nodes()).sum();
        let time = least(&|| drop(black_box(model.predict_proba(test))));
        report("classification", model.lifetime(), n_nodes, time);
    }
    if is_asked("density") {
        let model = DensityParams::from(forest).fit(train)?;
        let n_nodes = model.forest().trees().iter().map(|(tree, ())| tree.n_nodes()).sum();
        let time = least(&|| drop(black_box(model.score(test))));
        report("density", model.lifetime(), n_nodes, time);
    }
    Ok(())
}
