//! Conjugate gradients on the cell array: nanoseconds a stored index and step, one thread.
//!
//! `kernel_cg [ROWS] [TREES] [LIFETIME]`, by default 400 000, 50, 20: points uniform on the unit square, their cells by
//! Mondrian features, then ridge (α = 1) to a relative residual of 1e-6. One pass that only reads the
//! numbers is timed too, as the lower limit set by memory. Processor time, if the system reports it.

use std::hint::black_box;

use mondrian::ForestParams;
use mondrian::internals::features::Design;
use mondrian::internals::ridge::CgOptions;
use mondrian::internals::ridge::conjugate_gradients;
use mondrian::process::NodeKey;
use mondrian::{FeatureMap, MondrianFeatures};
use mondrian::{Lifetime, Points};
use mondrian_benches::{timed, timed_on_processor};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let argument = |k: usize, default: f64| std::env::args().nth(k).map_or(Ok(default), |a| a.parse());
    let (n, m, lifetime) = (argument(1, 4e5)? as usize, argument(2, 50.0)? as usize, argument(3, 20.0)?);
    let x: Vec<f64> = (0..2 * n as u64).map(|k| NodeKey::root(1, k).draw(0).uniform()).collect();
    let y: Vec<f64> = x.chunks(2).map(|x| (9.0 * x[0]).sin() * (7.0 * x[1]).cos()).collect();
    let mean = y.iter().sum::<f64>() / n as f64;
    let centred: Vec<f64> = y.iter().map(|y| y - mean).collect();
    let points = Points::row_major(&x, 2)?;
    let params = ForestParams { n_trees: m, ..ForestParams::default() };
    let mut map = MondrianFeatures::on(&params, points, Lifetime::new(lifetime)?)?;
    let (learned, seconds) = timed(|| map.learn(points));
    learned?;
    let z = map.training()?;
    println!("kernel_cg/n={n}/trees={m}/columns={}: learned in {seconds:.2} s", z.n_columns());
    let (_, floor) =
        timed_on_processor(|| black_box((0..m).map(|t| z.tree(t).iter().fold(0, |a, b| a ^ b)).fold(0, |a, b| a ^ b)));
    let mut b = vec![0.0; z.n_columns()];
    z.multiply_transposed(&centred, &mut b);
    let options = CgOptions { tolerance: 1e-6, max_steps: 2000 };
    let (found, seconds) = timed_on_processor(|| conjugate_gradients(&z, 1.0, &b, None, options));
    let per_index = |seconds: f64| 1e9 * seconds / (n * m) as f64;
    println!(
        "  {} steps to {:.1e} in {seconds:.2} s: {:.2} ns an index and step (reading alone {:.2})",
        found.steps,
        found.residual,
        per_index(seconds) / found.steps as f64,
        per_index(floor)
    );
    Ok(())
}
