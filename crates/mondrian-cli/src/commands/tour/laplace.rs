//! The tuned Laplace kernel: one lifetime an input, found by derivatives of the leave-one-out error.

use mondrian::{LaplaceKernelRidge, LaplaceKernelRidgeParams, LifetimesChoice, TuningParams};
use mondrian::{Lifetime, Prediction};

use super::{Data, Tour};
use crate::failure::Outcome;
use crate::report::parts::{coverage, prediction_sections, rmse};
use crate::report::{Block, Section};

pub(super) fn chapter(tour: &mut Tour, data: &Data) -> Outcome<()> {
    let one = one_lifetime(tour, data)?;
    let tuning = TuningParams { seed: tour.seed, ..TuningParams::default() };
    let params = LaplaceKernelRidgeParams { tuning, ..LaplaceKernelRidgeParams::default() };
    let model = params.fit(data.train.points()?, &data.train.y)?;
    let Prediction { mean, std } = model.predict_with_std(data.held_out.points()?)?;
    let truth = &data.held_out.y;
    let error = rmse(truth, &mean);
    let names = data.preparation.features();
    let order = model.ranking();
    tour.report.sections.push(Section::new(
        "Which inputs matter",
        &[
            "The exact Laplace kernel with one lifetime an input. All lifetimes and the ridge parameter follow from derivatives of the leave-one-out error; an input whose lifetime goes to zero is ignored.",
        ],
        vec![Block::Bars {
            names: order.iter().map(|&d| names[d].clone()).collect(),
            values: order.iter().map(|&d| model.importances()[d]).collect(),
            threshold: 0.0,
        }],
    ));
    tour.report.sections.extend(prediction_sections(truth, &mean, &std));
    let held = coverage(truth, &mean, &std, 0.9);
    tour.say(
        "tuned Laplace kernel",
        format!(
            "RMSE {error:.3}; 90 % intervals hold {:.0} %; most relevant: {}",
            100.0 * held,
            order.iter().take(2).map(|&d| names[d].as_str()).collect::<Vec<_>>().join(", ")
        ),
    );
    tour.report.headline("Coverage of 90 % intervals", format!("{:.0} %", 100.0 * held), "tuned Laplace kernel");
    let evaluations = model.trajectory().len();
    tour.compared.push(("Laplace kernel, tuned".to_owned(), error, format!("{evaluations} evaluations of the error")));
    tour.compared.push(("Laplace kernel, one lifetime".to_owned(), one.0, format!("λ = {:.3} for all inputs", one.1)));
    tour.figures.insert("laplace_rmse".to_owned(), error.into());
    tour.figures.insert("laplace_coverage".to_owned(), held.into());
    Ok(())
}

/// The same kernel with one lifetime for all inputs, the best of a ladder by leave-one-out.
fn one_lifetime(tour: &Tour, data: &Data) -> Outcome<(f64, f64)> {
    let mut best: Option<(f64, f64, LaplaceKernelRidge)> = None;
    for step in -8..=6 {
        let lifetime = 2.0_f64.powi(step);
        let tuning = TuningParams { seed: tour.seed, ..TuningParams::default() };
        let params = LaplaceKernelRidgeParams {
            lifetime: LifetimesChoice::Common(Lifetime::new(lifetime)?),
            tuning,
            ..Default::default()
        };
        let model = params.fit(data.train.points()?, &data.train.y)?;
        let error = model.trajectory().best().map_or(f64::INFINITY, |s| s.error);
        if best.as_ref().is_none_or(|(least, ..)| error < *least) {
            best = Some((error, lifetime, model));
        }
    }
    let (_, lifetime, model) = best.ok_or(mondrian::Error::NotFitted)?;
    Ok((rmse(&data.held_out.y, &model.predict(data.held_out.points()?)?), lifetime))
}
