//! One fit, every lifetime: the validation error along the path, and the model at its minimum without retraining.

use mondrian::{Lifetime, Points, Progress, RegressionForest, Result};

pub(crate) fn main() -> Result<()> {
    let row = |i: u32| [f64::from(i * 7919 % 1000) / 1000.0];
    let noisy = |i: u32| (9.0 * row(i)[0]).sin() + f64::from(i * 31 % 17) / 34.0;
    let (x, x_held): (Vec<_>, Vec<_>) = ((0..300).map(row).collect(), (300..400).map(row).collect());
    let (y, y_held): (Vec<_>, Vec<_>) = ((0..300).map(noisy).collect(), (300..400).map(noisy).collect());
    let params = RegressionForest::params().n_trees(20).lifetime(Lifetime::INFINITE);
    let forest = params.fit(Points::of_rows(&x)?, &y)?;
    let held_out = (Points::of_rows(&x_held)?, &y_held[..]);
    let path = forest.path(&[held_out], &mut Progress::none())?;
    let best = forest.at(path.best_lifetime())?;
    println!("{} lifetimes; the best is {:.2}", path.len(), best.lifetime());
    assert!(path.len() > 1000 && best.lifetime() < Lifetime::INFINITE);
    Ok(())
}
