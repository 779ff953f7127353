//! Online, exactly: learning row by row, forgetting and merging give the model of one batch, bit for bit.

use mondrian::process::Bounds;
use mondrian::{Lifetime, Points, RegressionForest, Result};

pub(crate) fn main() -> Result<()> {
    let x: Vec<[f64; 2]> = (0..60).map(|i| [f64::from(i * 37 % 60) / 60.0, f64::from(i) / 60.0]).collect();
    let y: Vec<f64> = x.iter().map(|[a, b]| a + b).collect();
    let bounds = Bounds::new(&[0.0, 0.0], &[1.0, 1.0])?;
    let params = RegressionForest::params().n_trees(10).lifetime(Lifetime::new(8.0)?).bounds(bounds);
    let whole = params.fit(Points::of_rows(&x)?, &y)?;

    let mut online = params.fit(Points::of_rows(&x[..20])?, &y[..20])?;
    for (x, y) in x[20..40].iter().zip(&y[20..40]) {
        online.learn(Points::of_rows(std::slice::from_ref(x))?, std::slice::from_ref(y))?;
    }
    let elsewhere = params.fit(Points::of_rows(&x[40..])?, &y[40..])?;
    online.merge(&elsewhere)?;
    online.learn(Points::of_rows(&[[0.5, 0.5]])?, &[1000.0])?;
    online.forget(Points::of_rows(&[[0.5, 0.5]])?, &[1000.0])?;

    let queries = Points::of_rows(&x)?;
    assert_eq!(online.predict(queries)?, whole.predict(queries)?);
    println!("20 rows at once, 20 one by one, 20 merged, one forgotten: the same model");
    Ok(())
}
