//! A regression forest with uncertainty: the standard deviation grows far from the data.

use mondrian::{Points, RegressionForest, Result};

pub(crate) fn main() -> Result<()> {
    let x: Vec<[f64; 1]> = (0..200).map(|i| [f64::from(i) / 50.0]).collect();
    let y: Vec<f64> = x.iter().map(|[x]| x.sin()).collect();
    let forest = RegressionForest::params().n_trees(30).seed(1).fit(Points::of_rows(&x)?, &y)?;
    let predicted = forest.predict_with_std(Points::of_rows(&[[1.0], [100.0]])?)?;
    println!("near: {:.2} ± {:.2}", predicted.mean[0], predicted.std[0]);
    println!("far:  {:.2} ± {:.2}", predicted.mean[1], predicted.std[1]);
    assert!(predicted.std[1] > 3.0 * predicted.std[0]);
    Ok(())
}
