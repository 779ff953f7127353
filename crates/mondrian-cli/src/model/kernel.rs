//! Ridge regression on Mondrian features: the Laplace kernel in time linear in the rows.

use mondrian::ForestParams;
use mondrian::{FeatureMap, MondrianFeatures};
use mondrian::{FitOptions, Progress};
use mondrian::{KernelRidge, KernelRidgeParams};
use mondrian::{Lifetime, Points};
use serde_json::json;

use super::{Facts, Training, forest};
use crate::args::{LifetimeArg, ModelArgs, NumberArg};
use crate::failure::{Failure, Outcome};
use crate::prepare::Task;
use crate::screen::Screen;

/// Number of features at which the path of an automatic lifetime stops: the limit of a path over all cuts.
const MOST_FEATURES: usize = 2000;

/// The shortest lifetime that a path may end at is 4 halved half as often.
const MOST_HALVINGS: i32 = 44;

/// The parameters of the command line; an automatic lifetime is chosen by the library.
pub(crate) fn params(training: &Training<'_>, args: &ModelArgs) -> Outcome<KernelRidgeParams> {
    if training.preparation.task() != Some(Task::Regression) {
        return Err(Failure::input("the kernel model predicts numbers, not classes", "use --model forest"));
    }
    let params = KernelRidge::params().trees(trees(training, args)?);
    Ok(match args.alpha {
        None => params.alpha(1.0),
        Some(NumberArg::Auto) => params.auto_alpha(),
        Some(NumberArg::Value(alpha)) => params.alpha(alpha),
    })
}

/// Trees to make features of: fewer than a forest has by default, since each of its cells is a feature.
fn trees(training: &Training<'_>, args: &ModelArgs) -> Outcome<ForestParams> {
    Ok(ForestParams { n_trees: args.trees.unwrap_or(50), ..forest::forest_params(training, args)? })
}

/// The end of a path: the requested lifetime, or the largest power of √2 whose number of features is within the limit.
pub(crate) fn terminal(training: &Training<'_>, args: &ModelArgs, points: Points<'_>) -> Outcome<Lifetime> {
    if let LifetimeArg::Fixed(lifetime) = args.lifetime {
        return Ok(lifetime);
    }
    let trees = trees(training, args)?;
    let lifetime = |halvings: i32| {
        let half = if halvings % 2 == 1 { std::f64::consts::FRAC_1_SQRT_2 } else { 1.0 };
        Lifetime::new(4.0 * 0.5_f64.powi(halvings / 2) * half)
    };
    // The number of features grows with the lifetime, so the limit is found by bisection.
    let (mut too_many, mut affordable) = (-1, MOST_HALVINGS);
    while affordable - too_many > 1 {
        let middle = i32::midpoint(too_many, affordable);
        let mut features = MondrianFeatures::on(&trees, points, lifetime(middle)?)?;
        features.learn(points)?;
        *(if features.n_columns() <= MOST_FEATURES { &mut affordable } else { &mut too_many }) = middle;
    }
    Ok(lifetime(affordable)?)
}

pub(super) fn fit(training: &Training<'_>, args: &ModelArgs, screen: Screen) -> Outcome<KernelRidge> {
    let rows = training.rows()?.all()?;
    let (params, points) = (params(training, args)?, rows.points(training.preparation)?);
    let fit =
        |progress: &mut Progress<'_>| params.fit_with(points, &rows.y, FitOptions::watched(progress.part(0.0, 1.0)));
    Ok(screen.watch("fitting", fit)?)
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
