//! The Laplace kernel three ways: random Mondrian features, ridge regression on them, and the exact tuned kernel.

use mondrian::{FeatureMap, ForestParams, KernelRidge, LaplaceKernelRidge, Lifetime, MondrianFeatures, Points, Result};

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
    let exact = LaplaceKernelRidge::params().fit(points, &y)?;
    println!("sin 4.5 = {:.2}; features {at:.2}, tuned kernel ranks inputs {:?}", 4.5_f64.sin(), exact.ranking());
    assert!((at - 4.5_f64.sin()).abs() < 0.3);
    assert_eq!(exact.ranking()[0], 0);
    Ok(())
}
