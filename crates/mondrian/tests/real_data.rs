//! Accuracy on real tables, where the data folder is there: a change that makes forests worse must not pass.

mod table;

use mondrian::internals::laplace::KernelTuning;
use mondrian::{
    Cells, ClassificationForest, ForestParams, LaplaceRegressor, MeasureChoice, RegressionForest, RegressionParams,
    Saved,
};
use table::Split;

fn rmse(model: &RegressionForest, split: &Split) -> f64 {
    let found = model.predict(split.test()).unwrap();
    let square: f64 = found.iter().zip(&split.test_y).map(|(a, b)| (a - b).powi(2)).sum();
    (square / found.len() as f64).sqrt()
}

/// With 100 trees 3.2 under length and 3.1 under quantiles on other splits (docs/benchmarks/accuracy.md); a split moves that by 0.1.
#[test]
fn forests_predict_ccpp() {
    let Some(rows) = Split::read("ccpp") else { return };
    let split = Split::of(&rows, 77);
    for (measure, most) in [(MeasureChoice::Uniform, 3.45), (MeasureChoice::Quantile, 3.35)] {
        let forest = ForestParams { n_trees: 30, measure: measure.clone(), ..ForestParams::default() };
        let params = RegressionParams { forest, ..RegressionParams::default() };
        let error = rmse(&params.fit(split.train(), &split.train_y).unwrap(), &split);
        println!("ccpp, {measure:?}: {error:.3}");
        assert!(error < most && error > 2.5, "{measure:?}: {error}");
    }
}

fn accuracy(name: &str, n_trees: usize, n_rows: usize) -> Option<f64> {
    let rows = Split::read(name)?;
    let split = Split::of(&rows[..n_rows.min(rows.len())], 77);
    let least = split.train_y.iter().copied().fold(f64::INFINITY, f64::min);
    let labels = |y: &[f64]| -> Vec<u32> { y.iter().map(|y| (y - least) as u32).collect() };
    let params = ClassificationForest::params().n_trees(n_trees).lifetime(mondrian::Lifetime::INFINITE);
    let model = params.fit(split.train(), &labels(&split.train_y)).unwrap();
    let found = model.predict(split.test()).unwrap();
    let right = found.iter().zip(labels(&split.test_y)).filter(|(a, b)| **a == *b).count();
    let share = right as f64 / found.len() as f64;
    println!("{name}: {share:.4} of {} rows", found.len());
    Some(share)
}

/// With 100 trees 0.959, 0.900 and 0.923 on the standard splits; here with fewer trees and rows.
#[test]
fn forests_tell_letters_satellite_images_and_digits_apart() {
    for (name, n_trees, n_rows, least) in
        [("letter", 25, 20_000, 0.93), ("satimage", 40, 6435, 0.885), ("usps", 25, 5000, 0.88)]
    {
        if let Some(share) = accuracy(name, n_trees, n_rows) {
            assert!(share >= least, "{name}: {share}");
        }
    }
}

/// Intervals need no factorisation, which takes seconds here: 5 rows within a tenth of a second, a loaded model's first call
/// included. How well the kernel is tuned does not matter for that, so it is tuned for a moment only.
#[test]
#[ignore = "solves for 7654 rows: .ci/nightly"]
fn first_intervals_on_ccpp_come_at_once() {
    let Some(rows) = Split::read("ccpp") else { return };
    let split = Split::of(&rows, 77);
    let tuning = KernelTuning { steps: 4, rows: 300, deciding_rows: 300, ..KernelTuning::default() };
    let cells = Cells::row_major(&split.train_x, 4).unwrap();
    let model = LaplaceRegressor::params().tuning(tuning).fit(cells, &split.train_y).unwrap();
    let loaded = LaplaceRegressor::from_bytes(&model.to_bytes().unwrap()).unwrap();
    for (name, model) in [("fitted", model), ("loaded", loaded)] {
        let start = std::time::Instant::now();
        let ends = model.predict_interval(Cells::row_major(&split.test_x[..20], 4).unwrap(), 0.9).unwrap();
        let seconds = start.elapsed().as_secs_f64();
        println!("ccpp, {name}: {seconds:.4} s");
        assert!(ends.0.iter().zip(&ends.1).all(|(low, high)| low < high) && ends.0.len() == 5);
        assert!(seconds < 0.1, "{name}: {seconds}");
    }
}
