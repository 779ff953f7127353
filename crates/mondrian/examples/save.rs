//! Models as files: to any writer and back, with the same bits.

use mondrian::{Points, RegressionForest, Result, Saved};

pub(crate) fn main() -> Result<()> {
    let points = Points::of_rows(&[[0.0], [1.0], [2.0], [3.0]])?;
    let forest = RegressionForest::params().n_trees(5).fit(points, &[0.0, 1.0, 4.0, 9.0])?;
    let mut file = Vec::new();
    forest.save(&mut file)?;
    let again = RegressionForest::load(&file[..])?;
    assert_eq!(again.predict(points)?, forest.predict(points)?);
    println!("{} bytes", file.len());
    Ok(())
}
