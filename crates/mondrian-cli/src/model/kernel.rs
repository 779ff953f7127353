//! Ridge regression on Mondrian features: the Laplace kernel in time linear in the rows.

use mondrian::forest::ForestParams;
use mondrian::kernel::{FeatureMap, KernelRidge, KernelRidgeParams, MondrianFeatures};
use mondrian::{Lifetime, Points};
use serde_json::json;

use super::{Facts, Training, forest};
use crate::args::{LifetimeArg, ModelArgs};
use crate::failure::{Failure, Outcome};
use crate::prepare::Task;

/// Features at which the path of an automatic lifetime stops: what a path over all cuts can afford.
const MOST_FEATURES: usize = 2000;

/// The parameters that the command line asks for; an automatic lifetime is the library's choice.
pub(crate) fn params(training: &Training<'_>, args: &ModelArgs) -> Outcome<KernelRidgeParams> {
    if training.preparation.task() != Some(Task::Regression) {
        return Err(Failure::input("the kernel model predicts numbers, not classes", "use --model forest"));
    }
    let trees = ForestParams { n_trees: args.trees.unwrap_or(50), ..forest::forest_params(training, args)? };
    Ok(KernelRidge::params().trees(trees).alpha(args.alpha.unwrap_or(1.0)))
}

/// How far a path goes: to the lifetime asked for, or the largest power of √2 whose features it can afford.
pub(crate) fn terminal(training: &Training<'_>, args: &ModelArgs, points: Points<'_>) -> Outcome<Lifetime> {
    if let LifetimeArg::Fixed(lifetime) = args.lifetime {
        return Ok(lifetime);
    }
    let trees = ForestParams { n_trees: args.trees.unwrap_or(50), ..forest::forest_params(training, args)? };
    let mut lifetime = Lifetime::new(4.0)?;
    loop {
        let mut features = MondrianFeatures::on(&trees, points, lifetime)?;
        features.learn(points)?;
        if features.n_columns() <= MOST_FEATURES || lifetime.get() < 1e-6 {
            return Ok(lifetime);
        }
        lifetime = Lifetime::new(lifetime.get() * std::f64::consts::FRAC_1_SQRT_2)?;
    }
}

pub(super) fn fit(training: &Training<'_>, args: &ModelArgs) -> Outcome<KernelRidge> {
    let rows = training.rows()?.all()?;
    Ok(params(training, args)?.fit(rows.points(training.preparation)?, &rows.y)?)
}

pub(super) fn facts(model: &KernelRidge) -> Facts {
    Facts(vec![
        ("trees", json!(model.features().n_trees())),
        ("features", json!(model.features().n_columns())),
        ("lifetime", super::number(model.features().lifetime().get())),
        ("alpha", json!(model.model().alpha())),
        ("solver", json!(format!("{:?}", model.report().solver).to_lowercase())),
    ])
}
