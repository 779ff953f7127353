//! A density: log densities, leave-one-out without refitting, and new samples.

use mondrian::{DensityForest, Points, Result};

pub(crate) fn main() -> Result<()> {
    let x: Vec<[f64; 1]> = (0..80).map(|i| [f64::from(i % 20) + 0.3 * f64::from(i % 7)]).collect();
    let density = DensityForest::params().n_trees(20).fit(Points::of_rows(&x)?)?;
    let logs = density.log_density(Points::of_rows(&[[10.0], [1000.0]])?)?;
    println!("log density {:.2} inside, {} outside the box", logs[0], logs[1]);
    println!("leave-one-out {:.1}, samples {:.1?}", density.leave_one_out_score(), density.sample(3, 1));
    assert!(logs[0].is_finite() && logs[1] == f64::NEG_INFINITY);
    Ok(())
}
