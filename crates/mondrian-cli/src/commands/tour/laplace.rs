//! The tuned Laplace kernel: one lifetime an input, found by derivatives of the leave-one-out error.

use mondrian::tuning::{LaplaceKernelRidge, LaplaceKernelRidgeParams, TuningParams};

use super::{Data, Tour};
use crate::failure::Outcome;
use crate::report::parts::{coverage, prediction_sections, rmse};
use crate::report::{Block, Section};

pub(super) fn chapter(tour: &mut Tour, data: &Data) -> Outcome<()> {
    let tuning = TuningParams { seed: tour.seed, ..TuningParams::default() };
    let params = LaplaceKernelRidgeParams { tuning, ..LaplaceKernelRidgeParams::default() };
    let model = LaplaceKernelRidge::fit(data.train.points()?, &data.train.y, &params)?;
    let (mean, std) = model.predict_with_std(data.held_out.points()?)?;
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
    tour.figures.insert("laplace_rmse".to_owned(), error.into());
    tour.figures.insert("laplace_coverage".to_owned(), held.into());
    Ok(())
}
