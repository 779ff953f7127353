//! The tuned Laplace kernel on many rows: test error, seconds of tuning, solving and predicting, and the peak of memory.
//!
//! `laplace_scale SET [ROWS]`: the split of the accuracy tables (`numpy.random.default_rng(0).permutation`, 80/20), of
//! its training rows the first ROWS, of its test rows the first 20 000 (10 000 of flights2001). `LAPLACE_SOLVER` (auto,
//! exact, cg, local), `LAPLACE_METRIC` (none, full), `LAPLACE_EXPONENT`, `LAPLACE_SEED`, `LAPLACE_STEPS`,
//! `LAPLACE_NEIGHBORS` and `LAPLACE_EXACT_ROWS` (`max_exact_rows`) set the parameters of these names. `uniform9` is a
//! table of 50 000 rows of nine uniform inputs, `uniform2m` one of a million rows of two.

use std::ops::ControlFlow;
use std::time::Instant;

use mondrian::internals::laplace::KernelTuning;
use mondrian::internals::laplace::SolverChoice;
use mondrian::internals::linalg::Threads;
use mondrian::process::NodeKey;
use mondrian::{Cells, FitOptions, KernelMetric as Metric, LaplaceRegressor, Progress, Report};
use mondrian_benches::{Table, rmse};

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn tuning() -> KernelTuning {
    let default = KernelTuning::default();
    KernelTuning {
        metric: match variable("LAPLACE_METRIC").as_str() {
            "none" => Metric::None,
            "diagonal" => Metric::Diagonal,
            "full" => Metric::Full,
            number => number.parse().map_or(Metric::Auto, Metric::Rank),
        },
        solver: match variable("LAPLACE_SOLVER").as_str() {
            "exact" => SolverChoice::Exact,
            "cg" => SolverChoice::Cg,
            "local" => SolverChoice::Local,
            _ => SolverChoice::Auto,
        },
        exponent: variable("LAPLACE_EXPONENT").parse().ok(),
        seed: variable("LAPLACE_SEED").parse().unwrap_or(0),
        steps: variable("LAPLACE_STEPS").parse().unwrap_or(default.steps),
        n_neighbors: variable("LAPLACE_NEIGHBORS").parse().ok(),
        max_exact_rows: variable("LAPLACE_EXACT_ROWS").parse().unwrap_or(default.max_exact_rows),
        threads: Threads::up_to(2),
        ..default
    }
}

/// A smooth function of nine (or two) uniform inputs with noise.
fn made(n: usize, width: usize) -> Table {
    let draw = |i: usize, k: usize| NodeKey::root(5, i as u64).draw(k as u32).uniform();
    let x: Vec<f64> = (0..n * width).map(|k| draw(k / width, k % width)).collect();
    let noise = |i: usize| 0.1 * NodeKey::root(6, i as u64).draw(0).normal();
    let f = |r: &[f64]| (6.0 * r[0]).sin() + (9.0 * r[0] * r[1]).cos() + r[width - 1];
    let y = x.chunks(width).enumerate().map(|(i, r)| f(r) + noise(i)).collect();
    Table { x, y, n_columns: width }
}

/// The peak resident set so far, in megabytes, if the system reports it.
fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1000.0
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "protein".to_owned());
    let table = match name.as_str() {
        "uniform9" => made(62_500, 9),
        "uniform2m" => made(1_250_000, 2),
        name => Table::read(name)?,
    };
    let width = table.n_columns;
    let order = mondrian_benches::numpy::permutation(0, table.y.len());
    let (train, test) = order.split_at(table.y.len() * 4 / 5);
    let most: usize = std::env::args().nth(2).and_then(|n| n.parse().ok()).unwrap_or(usize::MAX);
    let train = &train[..train.len().min(most)];
    let test = &test[..test.len().min(if name == "flights2001" { 10_000 } else { 20_000 })];
    let rows = |order: &[usize]| -> (Vec<f64>, Vec<f64>) {
        let x = order.iter().flat_map(|&i| table.x[i * width..][..width].to_vec()).collect();
        (x, order.iter().map(|&i| table.y[i]).collect())
    };
    let ((x, y), (qx, qy)) = (rows(train), rows(test));
    drop(table);
    let before = peak();
    let tuning = tuning();
    let params = LaplaceRegressor::params().tuning(tuning);
    let start = Instant::now();
    let mut tuned = 0.0;
    let mut callback = |_: Report<'_>| {
        tuned = start.elapsed().as_secs_f64();
        ControlFlow::Continue(())
    };
    let progress = Progress::new(&mut callback);
    let model = params.fit_with(Cells::row_major(&x, width)?, &y, FitOptions::watched(progress))?;
    let fitted = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let predicted = model.predict(Cells::row_major(&qx, width)?)?;
    let seconds = start.elapsed().as_secs_f64();
    let mean = y.iter().sum::<f64>() / y.len() as f64;
    let deviation = (y.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / y.len() as f64).sqrt();
    let report = model.solver();
    println!(
        "{name}: {} rows x {width}, RMSE/sd {:.5} (leave-one-out {:.5}); tuned in {tuned:.1} s, all \
         {fitted:.1} s; {} queries {seconds:.2} s; {:.0} MB beyond the data's {before:.0}",
        y.len(),
        rmse(&predicted, &qy) / deviation,
        model.leave_one_out()[0].rmse / deviation,
        qy.len(),
        peak() - before,
    );
    let local = report.local.map(|local| (local.n_neighbors, local.kriging));
    println!(
        "  solver {}, neighbours {local:?}, {:?}, losses {:?}, map {:?}, p {:.2}, alpha {:.2e}",
        report.used.name(),
        report.conjugate,
        report.compared,
        model.target_map(),
        model.exponent(),
        model.alpha(),
    );
    // The uncertainty of a root mean squared error on as few rows as leave-one-out uses.
    let squares: Vec<f64> = predicted.iter().zip(&qy).map(|(a, b)| (a - b).powi(2)).collect();
    let mean = squares.iter().sum::<f64>() / squares.len() as f64;
    let spread = (squares.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / squares.len() as f64).sqrt();
    let pieces = squares.chunks_exact(2000).map(|part| (part.iter().sum::<f64>() / 2000.0).sqrt() / deviation);
    println!(
        "  on pieces of 2000 test rows {:.3?}; standard error on 2000 rows {:.1} %",
        pieces.collect::<Vec<f64>>(),
        50.0 * spread / mean / 2000.0_f64.sqrt()
    );
    println!("  lifetimes {:.3?}, importances {:.3?}", model.lifetimes(), model.importances());
    Ok(())
}
