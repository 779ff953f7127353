//! Streams: test-then-train with nothing given, learning with and without a box, and forgetting.
//!
//! `streams [--quick]`. One thread, 10 trees, one row at a time; microseconds of processor time per row.

use mondrian::process::{Bounds, NodeKey};
use mondrian::{ClassificationParams, ForestParams, Lifetime, LifetimeChoice, Points, RegressionParams};
use mondrian_benches::{Table, timed_on_thread};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    pool.install(|| -> mondrian::Result<()> {
        let places: &[usize] = if is_quick { &[1000, 10_000] } else { &[1000, 100_000] };
        test_then_train(places)?;
        with_and_without_a_box(if is_quick { 5000 } else { 20_000 })?;
        forgetting(if is_quick { &[1000, 5000] } else { &[1000, 10_000, 50_000] })
    })?;
    Ok(())
}

/// A standard normal number, by the sum of twelve uniforms less six.
fn normal(row: usize, dim: usize) -> f64 {
    let key = NodeKey::root(row as u64, dim as u64);
    (0..12).map(|i| key.draw(i).uniform()).sum::<f64>() - 6.0
}

/// Rows and targets, Gaussian or uniform.
fn rows(n: usize, n_dims: usize, is_gaussian: bool) -> (Vec<f64>, Vec<f64>) {
    let value = |row: usize, dim: usize| {
        if is_gaussian { normal(row, dim) } else { NodeKey::root(row as u64, dim as u64).draw(0).uniform() }
    };
    let x: Vec<f64> = (0..n * n_dims).map(|at| value(at / n_dims, at % n_dims)).collect();
    let y = x.chunks_exact(n_dims).map(|x| x[0].sin() + x[1] * x[2]).collect();
    (x, y)
}

fn forest(bounds: Option<Bounds>) -> ForestParams {
    let lifetime = LifetimeChoice::Value(Lifetime::INFINITE);
    ForestParams { n_trees: 10, lifetime, bounds, ..ForestParams::default() }
}

fn regression(bounds: Option<Bounds>) -> RegressionParams {
    RegressionParams { forest: forest(bounds), ..RegressionParams::default() }
}

fn test_then_train(places: &[usize]) -> mondrian::Result<()> {
    const STEPS: usize = 1000;
    let d = 10;
    let (x, y) = rows(places[places.len() - 1] + STEPS, d, true);
    let classes: Vec<u32> = y.iter().map(|y| u32::from(*y > 0.0) + u32::from(*y > 1.0)).collect();
    let table = |from: usize, to: usize| Points::row_major(&x[from * d..to * d], d);
    for place in places.iter().copied() {
        let mut model = regression(None).fit(table(0, 1)?, &y[..1])?;
        model.learn(table(1, place)?, &y[1..place])?;
        model.predict(table(0, 1)?)?;
        let (outcome, seconds) = timed_on_thread(|| -> mondrian::Result<()> {
            for i in place..place + STEPS {
                model.predict(table(i, i + 1)?)?;
                model.learn(table(i, i + 1)?, &y[i..=i])?;
            }
            Ok(())
        });
        outcome?;
        println!("regression/row={place}: {:.1} us per row", 1e6 * seconds / STEPS as f64);
        let params =
            ClassificationParams { forest: forest(None), n_classes: Some(3), ..ClassificationParams::default() };
        let mut model = params.fit(table(0, 1)?, &classes[..1])?;
        model.learn(table(1, place)?, &classes[1..place])?;
        model.predict_proba(table(0, 1)?)?;
        let (outcome, seconds) = timed_on_thread(|| -> mondrian::Result<()> {
            for i in place..place + STEPS {
                model.predict_proba(table(i, i + 1)?)?;
                model.learn(table(i, i + 1)?, &classes[i..=i])?;
            }
            Ok(())
        });
        outcome?;
        println!("classification/row={place}: {:.1} us per row", 1e6 * seconds / STEPS as f64);
    }
    Ok(())
}

/// Learns all rows one by one; seconds and bytes.
fn learned(x: &[f64], y: &[f64], d: usize, bounds: Option<Bounds>) -> mondrian::Result<(f64, usize)> {
    let mut model = regression(bounds).fit(Points::row_major(&x[..d], d)?, &y[..1])?;
    let (outcome, seconds) = timed_on_thread(|| -> mondrian::Result<()> {
        for (x, y) in x.chunks_exact(d).zip(y).skip(1) {
            model.learn(Points::row_major(x, d)?, std::slice::from_ref(y))?;
        }
        Ok(())
    });
    outcome?;
    Ok((seconds, model.forest().n_bytes()))
}

fn with_and_without_a_box(n: usize) -> mondrian::Result<()> {
    let mut sets: Vec<(String, Vec<f64>, Vec<f64>, usize)> = Vec::new();
    for d in [5, 10, 20] {
        for (name, is_gaussian) in [("uniform", false), ("gaussian", true)] {
            let (x, y) = rows(n, d, is_gaussian);
            sets.push((name.to_owned(), x, y, d));
        }
    }
    match Table::read("flights2001") {
        Ok(Table { x, y, n_columns }) => {
            sets.push(("flights2001".into(), x[..n * n_columns].to_vec(), y[..n].to_vec(), n_columns));
        }
        Err(error) => println!("skipped: flights2001 ({error})"),
    }
    for (name, x, y, d) in sets {
        let bounds = Bounds::of_points(Points::row_major(&x, d)?);
        let (with, bytes) = learned(&x, &y, d, bounds)?;
        let (without, more) = learned(&x, &y, d, None)?;
        println!(
            "learn/{name}/d={d}/n={n}: box {:.1} us per row, {:.1} MB; no box {:.1} us, {:.1} MB; ratios {:.2}, {:.2}",
            1e6 * with / n as f64,
            bytes as f64 / 1e6,
            1e6 * without / n as f64,
            more as f64 / 1e6,
            without / with,
            more as f64 / bytes as f64
        );
    }
    Ok(())
}

fn forgetting(windows: &[usize]) -> mondrian::Result<()> {
    const STEPS: usize = 2000;
    let d = 10;
    let (x, y) = rows(windows[windows.len() - 1] + STEPS, d, true);
    for window in windows.iter().copied() {
        let row = |i: usize| Points::row_major(&x[i * d..(i + 1) * d], d);
        let mut model = regression(None).fit(row(0)?, &y[..1])?;
        model.learn(Points::row_major(&x[d..window * d], d)?, &y[1..window])?;
        let (mut learning, mut forgetting) = (0.0, 0.0);
        for first in (0..STEPS).step_by(500) {
            let (outcome, seconds) = timed_on_thread(|| -> mondrian::Result<()> {
                (first..first + 500).try_for_each(|i| model.learn(row(window + i)?, &y[window + i..=window + i]))
            });
            outcome?;
            learning += seconds;
            let (outcome, seconds) = timed_on_thread(|| -> mondrian::Result<()> {
                (first..first + 500).try_for_each(|i| model.forget(row(i)?, &y[i..=i]))
            });
            outcome?;
            forgetting += seconds;
        }
        let us = 1e6 / STEPS as f64;
        println!("forget/window={window}: learn {:.1} us, forget {:.1} us", us * learning, us * forgetting);
    }
    Ok(())
}
