//! The cost of tuning the whole Laplace kernel: the sums Σ h∘|Δ_d| of its gradient in nanoseconds per entry and
//! dimension, and the seconds of a whole tuning.
//!
//! `laplace_tuning [ROWS [INPUTS]]`, 10 000 × 20 by default. Tuning ends with its last step; after it come the solve on all
//! rows, importances and calibration.

use std::ops::ControlFlow;
use std::time::Instant;

use mondrian::internals::laplace::KernelTuning;
use mondrian::internals::laplace::{KernelRows, contract};
use mondrian::internals::linalg::{Matrix, Threads};
use mondrian::process::NodeKey;
use mondrian::{Cells, FitOptions, LaplaceRegressor, Progress};
use mondrian_benches::timed_on_thread;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).filter_map(|text| text.parse::<usize>().ok());
    let (n, dims) = (numbers.next().unwrap_or(10_000), numbers.next().unwrap_or(20));
    for axes in [dims, 2 * dims] {
        sums(1000, axes)?;
        sums(2000, axes)?;
    }
    let draw = |i: usize| NodeKey::root(3, i as u64).draw(0).normal();
    let x: Vec<f64> = (0..n * dims).map(draw).collect();
    let target = |row: &[f64]| (2.0 * row[0]).sin() + row[1] * row[2 % dims] + 0.3 * row[3 % dims].abs();
    let y: Vec<f64> = x.chunks(dims).enumerate().map(|(i, row)| target(row) + 0.1 * draw(n * dims + i)).collect();
    let tuning = KernelTuning { threads: Threads::up_to(2), ..KernelTuning::default() };
    let params = LaplaceRegressor::params().tuning(tuning);
    let start = Instant::now();
    let mut last = 0.0;
    let mut listen = |report: mondrian::Report<'_>| {
        if report.step.is_some() {
            last = start.elapsed().as_secs_f64();
        }
        ControlFlow::Continue(())
    };
    let cells = Cells::row_major(&x, dims)?;
    let progress = Progress::new(&mut listen);
    let model = params.fit_with(cells, &y, FitOptions::watched(progress))?;
    let whole = start.elapsed().as_secs_f64();
    println!(
        "{n} × {dims}: tuning {last:.1} s on two threads ({} evaluations), the whole fit {whole:.1} s",
        model.trajectory().len()
    );
    Ok(())
}

fn sums(n: usize, axes: usize) -> Result<(), Box<dyn std::error::Error>> {
    let numbers = (0..n * axes).map(|i| NodeKey::root(1, i as u64).draw(0).normal()).collect();
    let rows = KernelRows::of_axes(numbers, axes)?;
    let h = Matrix::from_fn(n, n, |i, j| ((i * 31 + j * 17) as f64).cos());
    let (found, seconds) = timed_on_thread(|| (0..20).map(|_| contract(&rows, &h)[0]).sum::<f64>());
    std::hint::black_box(found);
    let entries = 20.0 * (n * n) as f64 / 2.0;
    println!("{n} rows, {axes} axes: {:.3} core-ns per entry and dimension", seconds * 1e9 / entries / axes as f64);
    Ok(())
}
