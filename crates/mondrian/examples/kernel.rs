//! The Laplace kernel three ways: random Mondrian features, ridge regression on them, and the exact tuned kernel.

use mondrian::{
    Cells, FeatureMap, ForestParams, KernelRidge, LaplaceRegressor, Lifetime, MondrianFeatures, Points, Result,
};

pub(crate) fn main() -> Result<()> {
    let x: Vec<[f64; 2]> = (0..80).map(|i| [f64::from(i) / 80.0, f64::from(i * 37 % 80) / 80.0]).collect();
    let y: Vec<f64> = x.iter().map(|[a, _]| (9.0 * a).sin()).collect();
    let points = Points::of_rows(&x)?;

    let trees = ForestParams::default().n_trees(50);
    let mut features = MondrianFeatures::on(&trees, points, Lifetime::new(2.0)?)?;
    features.learn(points)?;
    println!("{} features of the Laplace kernel", features.n_columns());

    let ridge = KernelRidge::params().n_trees(50).lifetime(Lifetime::new(6.0)?).alpha(0.01).fit(points, &y)?;
    let at = ridge.predict(Points::of_rows(&[[0.5, 0.5]])?)?[(0, 0)];
    let exact = LaplaceRegressor::params().seed(1).fit(Cells::row_major(x.as_flattened(), 2)?, &y)?;
    println!(
        "sin 4.5 = {:.2}; features {at:.2}, importances by the tuned kernel {:?}",
        4.5_f64.sin(),
        exact.importances()
    );
    assert!((at - 4.5_f64.sin()).abs() < 0.3);
    assert_eq!(exact.importances()[0], 1.0);
    Ok(())
}
