//! Densities.

use mondrian::{DensityForest, DensityParams};
use mondrian::{Error, FitOptions, ForestParams, Points, Progress};
use serde_json::json;

use super::{Facts, Training, forest};
use crate::args::ModelArgs;
use crate::failure::{Failure, Outcome};
use crate::screen::Screen;

/// The parameters of the command line; the box is that of the data with a margin.
pub(crate) fn params(training: &Training<'_>, args: &ModelArgs) -> Outcome<DensityParams> {
    let forest = ForestParams { bounds: None, ..forest::forest_params(training, args)? };
    Ok(DensityParams { gamma: forest::gamma(args), ..DensityParams::from(forest) })
}

pub(super) fn fit(training: &Training<'_>, args: &ModelArgs, screen: Screen) -> Outcome<DensityForest> {
    let rows = training.rows()?.all()?;
    let (params, points) = (params(training, args)?, rows.points(training.preparation)?);
    fitted(training, &params, points, ("fitting", screen))
}

/// Fits with a labelled progress bar. The error for a column with only one value, which has no volume, names it.
pub(crate) fn fitted(
    training: &Training<'_>,
    params: &DensityParams,
    points: Points<'_>,
    (word, screen): (&'static str, Screen),
) -> Outcome<DensityForest> {
    let fit = |progress: &mut Progress<'_>| params.fit_with(points, FitOptions::watched(progress.part(0.0, 1.0)));
    screen.watch(word, fit).map_err(|error| match error {
        Error::ZeroWidth { dim, .. } => {
            let (place, name) = (training.source.place(), training.preparation.column_of(dim));
            Failure::input(
                format!("{place}: column {name:?} has only one value and therefore no density"),
                format!("leave it out: --exclude {name:?}"),
            )
        }
        error => error.into(),
    })
}

pub(super) fn facts(model: &DensityForest) -> Facts {
    Facts(vec![
        ("trees", json!(model.forest().n_trees())),
        ("lifetime", super::number(model.lifetime().get())),
        ("gamma", json!(model.gamma())),
        ("mean_leave_one_out_log_density", super::number(model.leave_one_out_score() / model.n_rows() as f64)),
    ])
}
