//! The tuned Laplace kernel on real tables: test error, leave-one-out error, processor seconds.
//!
//! `laplace_accuracy [SET...]`; classes are recognised by the name of the set. Splits as in python/benches/laplace_table.py:
//! the standard one where there is one, else 80/20 by `numpy.random.default_rng(0).permutation`.
//! `LAPLACE_MEASURE`, `LAPLACE_METRIC`, `LAPLACE_EXPONENT` and `LAPLACE_SEED` change what their names say.

use std::time::Instant;

use mondrian::internals::linalg::Threads;
use mondrian::{
    Cells, KernelMeasure as Measure, KernelMetric as Metric, KernelTuning, LaplaceClassifier, LaplaceRegressor,
};
use mondrian_benches::{Table, rmse, timed_on_processor};

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
    let seed = text("LAPLACE_SEED").parse().unwrap_or(0);
    KernelTuning { measure, metric, exponent, seed, threads: Threads::up_to(2), ..KernelTuning::default() }
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
    let start = Instant::now();
    let (model, seconds) = timed_on_processor(|| params.fit(cells, &y));
    let (model, wall) = (model?, start.elapsed().as_secs_f64());
    let predicted = model.predict(Cells::row_major(&qx, table.n_columns)?)?;
    println!(
        "{name}: test {:.5}, leave-one-out {:.5}, p {:.2}, alpha {:.2e}, map {:?}, fit {seconds:.1} s of processor, {wall:.1} s",
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
    let start = Instant::now();
    let params = LaplaceClassifier::params().tuning(tuning()).n_classes(labels.len());
    let (model, seconds) = timed_on_processor(|| params.fit(cells, &classes));
    let (model, wall) = (model?, start.elapsed().as_secs_f64());
    let probabilities = model.predict_proba(Cells::row_major(&qx, table.n_columns)?)?;
    let (mut right, mut loss) = (0.0, 0.0);
    for (row, y) in probabilities.chunks(labels.len()).zip(&qy) {
        let best = (0..row.len()).fold(0, |best, k| if row[k] > row[best] { k } else { best });
        right += f64::from(u8::from(best == number(*y)));
        loss -= row[number(*y)].ln();
    }
    let n = qy.len() as f64;
    let worth = model.leave_one_out();
    println!(
        "{name}: test {:.4} / {:.4}, leave-one-out {:.4} / {:.4}, p {:.2}, alpha {:.2e}, fit {seconds:.1} s of processor, {wall:.1} s",
        right / n,
        loss / n,
        worth.accuracy,
        worth.log_loss,
        model.exponent(),
        model.alpha(),
    );
    Ok(())
}
