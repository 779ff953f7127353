//! A classification forest: probabilities of classes, and a class that arrives later.

use mondrian::{ClassificationForest, Points, Result};

pub(crate) fn main() -> Result<()> {
    let x: Vec<[f64; 1]> = (0..40).map(|i| [f64::from(i) / 40.0]).collect();
    let labels: Vec<u32> = (0..40).map(|i| u32::from(i >= 20)).collect();
    let mut forest = ClassificationForest::params().n_trees(30).fit(Points::of_rows(&x)?, &labels)?;
    let query = Points::of_rows(&[[0.1], [0.9]])?;
    println!("probabilities {:.2?}", forest.predict_proba(query)?);
    assert_eq!(forest.predict(query)?, [0, 1]);
    forest.learn(Points::of_rows(&[[2.0], [2.1], [2.2]])?, &[2, 2, 2])?;
    assert_eq!(forest.predict(Points::of_rows(&[[2.05]])?)?, [2]);
    Ok(())
}
