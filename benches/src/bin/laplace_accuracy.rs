//! The tuned Laplace kernel on real tables: test error, leave-one-out error, seconds of tuning and of the whole fit.
//!
//! `laplace_accuracy [SET...]`; classes are recognised by the name of the set. Splits as in
//! python/benches/laplace_table.py: the standard one where there is one, else 80/20 by
//! `numpy.random.default_rng(0).permutation`. `LAPLACE_MEASURE`, `LAPLACE_METRIC`, `LAPLACE_EXPONENT`, `LAPLACE_SEED`,
//! `LAPLACE_STEPS`, `LAPLACE_ROWS` and `LAPLACE_DECIDING` set the parameters of these names. Tuning ends with its last
//! step; after it come the solve on all rows, leave-one-out, importances and calibration.

use std::ops::ControlFlow;
use std::time::Instant;

use mondrian::internals::laplace::KernelTuning;
use mondrian::internals::linalg::Threads;
use mondrian::{
    Cells, FitOptions, KernelMeasure as Measure, KernelMetric as Metric, LaplaceClassifier, LaplaceRegressor, Progress,
    Report,
};
use mondrian_benches::{Table, rmse};

/// Sets of classes with their number of training rows; 0 for the 80/20 split.
const CLASSES: [(&str, usize); 5] =
    [("letter", 16_000), ("satimage", 4435), ("usps", 7291), ("dna", 2000), ("mnist_0_9", 11_872)];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    for name in names {
        let table = Table::read(&name)?;
        match CLASSES.iter().find(|(set, _)| *set == name) {
            Some((_, n_train)) => classify(&name, &table, *n_train)?,
            None => regress(&name, &table)?,
        }
    }
    Ok(())
}

fn tuning() -> KernelTuning {
    let text = |name: &str| std::env::var(name).unwrap_or_default();
    let measure = match text("LAPLACE_MEASURE").as_str() {
        "uniform" => Measure::Uniform,
        "quantile" => Measure::Quantile,
        "normal" => Measure::Normal,
        "both" => Measure::Both,
        _ => Measure::Auto,
    };
    let metric = match text("LAPLACE_METRIC").as_str() {
        "none" => Metric::None,
        "diagonal" => Metric::Diagonal,
        "full" => Metric::Full,
        number => number.parse().map_or(Metric::Auto, Metric::Rank),
    };
    let exponent = text("LAPLACE_EXPONENT").parse().ok();
    let number = |name: &str, default: usize| text(name).parse().unwrap_or(default);
    let default = KernelTuning::default();
    KernelTuning {
        measure,
        metric,
        exponent,
        seed: number("LAPLACE_SEED", 0) as u64,
        steps: number("LAPLACE_STEPS", default.steps),
        rows: number("LAPLACE_ROWS", default.rows),
        deciding_rows: number("LAPLACE_DECIDING", default.deciding_rows),
        threads: Threads::up_to(2),
        ..default
    }
}

/// Seconds until the last step, and of all of `work`.
fn stages<T>(work: impl FnOnce(Progress<'_>) -> T) -> (T, f64, f64) {
    let start = Instant::now();
    let mut last = 0.0;
    let mut listen = |report: Report<'_>| {
        if report.step.is_some() {
            last = start.elapsed().as_secs_f64();
        }
        ControlFlow::Continue(())
    };
    let out = work(Progress::new(&mut listen));
    (out, last, start.elapsed().as_secs_f64())
}

fn rows(table: &Table, order: &[usize]) -> (Vec<f64>, Vec<f64>) {
    let x = order.iter().flat_map(|&i| table.x[i * table.n_columns..][..table.n_columns].to_vec()).collect();
    (x, order.iter().map(|&i| table.y[i]).collect())
}

fn regress(name: &str, table: &Table) -> Result<(), Box<dyn std::error::Error>> {
    let order = mondrian_benches::numpy::permutation(0, table.y.len());
    let (train, test) = order.split_at(table.y.len() * 4 / 5);
    let ((x, y), (qx, qy)) = (rows(table, train), rows(table, test));
    let params = LaplaceRegressor::params().tuning(tuning());
    let cells = Cells::row_major(&x, table.n_columns)?;
    let (model, tuned, wall) = stages(|progress| params.fit_with(cells, &y, FitOptions::watched(progress)));
    let model = model?;
    let predicted = model.predict(Cells::row_major(&qx, table.n_columns)?)?;
    println!(
        "{name}: test {:.5}, leave-one-out {:.5}, p {:.2}, alpha {:.2e}, map {:?}, tuning {tuned:.1} s, fit {wall:.1} s",
        rmse(&predicted, &qy),
        model.leave_one_out()[0].rmse,
        model.exponent(),
        model.alpha(),
        model.target_map(),
    );
    for coverage in [0.5, 0.8, 0.9, 0.95] {
        let (low, high) = model.predict_interval(Cells::row_major(&qx, table.n_columns)?, coverage)?;
        let held = qy.iter().zip(low.iter().zip(&high)).filter(|(y, (l, h))| *l <= y && y <= h).count();
        print!("  {coverage}: {:.3}", held as f64 / qy.len() as f64);
    }
    println!("  importances {:.3?}", model.importances());
    Ok(())
}

fn classify(name: &str, table: &Table, n_train: usize) -> Result<(), Box<dyn std::error::Error>> {
    let order: Vec<usize> = (0..table.y.len()).collect();
    let (train, test) = order.split_at(n_train);
    let ((x, y), (qx, qy)) = (rows(table, train), rows(table, test));
    let mut labels: Vec<i64> = y.iter().map(|y| *y as i64).collect();
    labels.sort_unstable();
    labels.dedup();
    let number = |y: f64| labels.iter().position(|l| *l == y as i64).unwrap_or(0);
    let classes: Vec<u32> = y.iter().map(|y| number(*y) as u32).collect();
    let cells = Cells::row_major(&x, table.n_columns)?;
    let params = LaplaceClassifier::params().tuning(tuning()).n_classes(labels.len());
    let (model, tuned, wall) = stages(|progress| params.fit_with(cells, &classes, FitOptions::watched(progress)));
    let model = model?;
    let probabilities = model.predict_proba(Cells::row_major(&qx, table.n_columns)?)?;
    let (mut right, mut loss) = (0.0, 0.0);
    // How far the probability of the predicted class is from how often it is right, in 15 bins.
    let mut bins = [0.0; 15];
    for (row, y) in probabilities.chunks(labels.len()).zip(&qy) {
        let best = (0..row.len()).fold(0, |best, k| if row[k] > row[best] { k } else { best });
        let is_right = f64::from(u8::from(best == number(*y)));
        right += is_right;
        bins[((15.0 * row[best]) as usize).min(14)] += row[best] - is_right;
        loss -= row[number(*y)].ln();
    }
    let n = qy.len() as f64;
    let scores = model.leave_one_out();
    println!(
        "{name}: test {:.4} / {:.4}, calibration error {:.4}, leave-one-out {:.4} / {:.4}, p {:.2}, alpha {:.2e}, tuning {tuned:.1} s, fit {wall:.1} s",
        right / n,
        loss / n,
        bins.iter().map(|off: &f64| off.abs()).sum::<f64>() / n,
        scores.accuracy,
        scores.log_loss,
        model.exponent(),
        model.alpha(),
    );
    Ok(())
}
