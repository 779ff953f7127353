//! The effect of tuned lifetimes as weights of the measure in other models.
//!
//! `grid_carry_over [NAME...]`, by default cpu_act and house_16h: test error of a regression forest of 30 trees at an
//! infinite lifetime and of ridge on Mondrian features (200 trees, lifetime and α chosen on a held-out fifth of the training
//! rows), under 1/standard deviation and under the tuned lifetimes of the exact Laplace kernel.

use mondrian::KernelRidge;
use mondrian::Progress;
use mondrian::internals::laplace::TuningParams;
use mondrian::internals::laplace::tune;
use mondrian::process::Weights;
use mondrian::{ForestParams, LifetimeChoice, RegressionParams, WeightsChoice};
use mondrian::{Lifetime, Points};
use mondrian_benches::{Table, rmse, timed};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    if names.is_empty() {
        names = vec!["cpu_act".into(), "house_16h".into()];
    }
    println!("| data | model | weights | lifetime | α | fit s | test RMSE |");
    println!("| --- | --- | --- | ---: | ---: | ---: | ---: |");
    for name in &names {
        let split = Table::read(name)?.split(0);
        let train = Points::row_major(&split.train_x, split.n_columns)?;
        let test = Points::row_major(&split.test_x, split.n_columns)?;
        let tuned = tune(train, &split.train_y, &TuningParams::default(), &mut Progress::none())?;
        let ways = [
            ("1/standard deviation", WeightsChoice::Deviation),
            ("tuned lifetimes", WeightsChoice::Given(Weights::new(tuned.lifetimes)?)),
        ];
        for (way, weights) in &ways {
            let lifetime = LifetimeChoice::Value(Lifetime::INFINITE);
            let forest = ForestParams { n_trees: 30, lifetime, weights: weights.clone(), ..ForestParams::default() };
            let params = RegressionParams { forest, ..RegressionParams::default() };
            let (model, seconds) = timed(|| params.fit(train, &split.train_y));
            let error = rmse(&model?.predict(test)?, &split.test_y);
            println!("| {name} | forest, 30 trees | {way} | ∞ | – | {seconds:.1} | {error:.4} |");
        }
        for (way, weights) in ways {
            let trees = ForestParams { n_trees: 200, weights, ..ForestParams::default() };
            let params = KernelRidge::params().trees(trees).auto_alpha();
            let (model, seconds) = timed(|| params.fit(train, &split.train_y));
            let model = model?;
            let error = rmse(&model.predict(test)?.into_vec(), &split.test_y);
            let (lifetime, alpha) = (model.features().lifetime(), model.model().alpha());
            println!("| {name} | features, 200 trees | {way} | {lifetime} | {alpha} | {seconds:.1} | {error:.4} |");
        }
    }
    Ok(())
}
