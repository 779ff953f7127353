//! Regression forests on real data: test error, coverage of intervals, and the cost of the path.
//!
//! `forest_regression [NAME...]`, by default ccpp. Split: `default_rng(0).permutation(n)`, first 80 % for training,
//! inputs standardised, 100 trees.

use mondrian::Progress;
use mondrian::process::NodeKey;
use mondrian::{
    ForestParams, LeafModel, LifetimeChoice, MeasureChoice, RegressionForest, RegressionParams, WeightsChoice,
};
use mondrian::{Lifetime, Points};
use mondrian_benches::{Standardised, Table, rmse, timed};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    if names.is_empty() {
        names = vec!["ccpp".into()];
    }
    println!("| data | leaf model | measure | lifetime | fit s | test RMSE | coverage of 50 % | of 90 % |");
    println!("| --- | --- | --- | --- | ---: | ---: | ---: | ---: |");
    for name in &names {
        let split = Table::read(name)?.split(0);
        for leaf_model in [LeafModel::Hierarchical, LeafModel::Independent] {
            for measure in [MeasureChoice::Uniform, MeasureChoice::Quantile] {
                for lifetime in [LifetimeChoice::Auto, LifetimeChoice::Value(Lifetime::INFINITE)] {
                    if leaf_model == LeafModel::Hierarchical || lifetime == LifetimeChoice::Auto {
                        accuracy(name, &split, leaf_model, &measure, lifetime)?;
                    }
                }
            }
        }
    }
    path_cost()?;
    Ok(())
}

fn accuracy(
    name: &str,
    split: &Standardised,
    leaf_model: LeafModel,
    measure: &MeasureChoice,
    lifetime: LifetimeChoice,
) -> mondrian::Result<()> {
    let (train, test) =
        (Points::row_major(&split.train_x, split.n_columns)?, Points::row_major(&split.test_x, split.n_columns)?);
    let params = RegressionParams {
        forest: ForestParams { measure: measure.clone(), lifetime, ..ForestParams::default() },
        leaf_model,
        ..RegressionParams::default()
    };
    let (model, seconds) = timed(|| params.fit(train, &split.train_y));
    let model = model?;
    let error = rmse(&model.predict(test)?, &split.test_y);
    let coverage = |share: f64| -> mondrian::Result<f64> {
        let edges = model.predict_quantiles(test, &[0.5 - share / 2.0, 0.5 + share / 2.0])?;
        let inside = edges.chunks(2).zip(&split.test_y).filter(|(e, y)| e[0] <= **y && **y <= e[1]).count();
        Ok(inside as f64 / split.test_y.len() as f64)
    };
    println!(
        "| {name} | {leaf_model:?} | {measure:?} | {:.4} | {seconds:.2} | {error:.4} | {:.3} | {:.3} |",
        model.lifetime(),
        coverage(0.5)?,
        coverage(0.9)?
    );
    Ok(())
}

/// The path over fit and predict of both sets: 7000 + 2568 rows × 4, 50 trees, lifetime 16 on the unit box.
fn path_cost() -> mondrian::Result<()> {
    let uniform = |n: u64, seed| -> Vec<f64> { (0..n).map(|i| NodeKey::root(seed, i).draw(0).uniform()).collect() };
    let (x, held) = (uniform(7000 * 4, 1), uniform(2568 * 4, 2));
    let target = |x: &[f64]| -> Vec<f64> { x.chunks(4).map(|x| (5.0 * x[0]).sin() + x[1] * x[2]).collect() };
    let (y, y_held) = (target(&x), target(&held));
    let params = RegressionParams {
        forest: ForestParams {
            n_trees: 50,
            lifetime: LifetimeChoice::Value(Lifetime::new(16.0)?),
            weights: WeightsChoice::Raw,
            ..ForestParams::default()
        },
        ..RegressionParams::default()
    };
    let (points, rows) = (Points::row_major(&x, 4)?, Points::row_major(&held, 4)?);
    let (mut fits, mut paths, mut n_cuts) = (f64::INFINITY, f64::INFINITY, 0);
    for _ in 0..7 {
        let (model, fit) = timed(|| -> mondrian::Result<RegressionForest> {
            let model = params.fit(points, &y)?;
            model.predict(points)?;
            model.predict(rows)?;
            Ok(model)
        });
        let model = model?;
        let (path, seconds) = timed(|| model.path(&[(rows, &y_held)], &mut Progress::none()));
        n_cuts = path?.len() - 1;
        fits = fits.min(fit);
        paths = paths.min(seconds);
    }
    println!("path of {n_cuts} cuts {paths:.3} s, fit and predict {fits:.3} s: ratio {:.2}", paths / fits);
    Ok(())
}
