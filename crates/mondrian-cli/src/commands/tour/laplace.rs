//! The tuned Laplace kernel as `mondrian fit` fits it, beside the report's kernel with one lifetime for all inputs.

use mondrian::LifetimesChoice;
use mondrian::internals::laplace::KernelTuning;
use mondrian::internals::laplace::{LaplaceKernelRidge, LaplaceKernelRidgeParams, TuningParams};
use mondrian::{Cells, LaplaceRegressor, Lifetime};

use super::{Data, Part, Tour};
use crate::failure::Outcome;
use crate::model::{laplace as laplace_model, ranked};
use crate::report::parts::{interval_sections, nominal_coverages, rmse, share_held};
use crate::report::{Block, Section};

fn cells(part: &Part) -> Outcome<Cells<'_>> {
    Ok(Cells::row_major(&part.x, part.n_columns)?)
}

pub(super) fn chapter(tour: &mut Tour, data: &Data) -> Outcome<()> {
    let one = one_lifetime(tour, data)?;
    let tuning = KernelTuning { seed: tour.seed, threads: laplace_model::threads(), ..KernelTuning::default() };
    let model = LaplaceRegressor::params().tuning(tuning).fit(cells(&data.train)?, &data.train.y)?;
    let nominal = nominal_coverages();
    let (found, intervals) = model.predict_with_intervals(cells(&data.held_out)?, &nominal)?;
    let truth = &data.held_out.y;
    let error = rmse(truth, &found.mean);
    let names = data.preparation.features();
    let order = ranked(model.importances());
    tour.report.sections.push(Section::new(
        "Which inputs matter",
        &[
            "The tuned Laplace kernel: each input by its value and by its rank, with separate lifetimes, and a learned metric. All parameters are tuned by gradients of the exact leave-one-out error. The bars show the increase of that error when an input is permuted.",
        ],
        vec![Block::Bars {
            names: order.iter().map(|&d| names[d].clone()).collect(),
            values: order.iter().map(|&d| model.importances()[d]).collect(),
            threshold: 0.0,
        }],
    ));
    tour.report.sections.extend(interval_sections(truth, &found.mean, &intervals));
    let held = nominal.iter().position(|c| *c == 0.9).map_or(0.0, |k| share_held(truth, &intervals[k]));
    tour.message(
        "tuned Laplace kernel",
        format!(
            "RMSE {error:.3}; 90 % intervals cover {:.1} %; most relevant: {}",
            100.0 * held,
            order.iter().take(2).map(|&d| names[d].as_str()).collect::<Vec<_>>().join(", ")
        ),
    );
    tour.report.headline("Coverage of 90 % intervals", format!("{:.0} %", 100.0 * held), "tuned Laplace kernel");
    let left_out = model.leave_one_out().first().map_or(f64::NAN, |worth| worth.rmse);
    tour.compared.push(("Laplace kernel, tuned".to_owned(), error, format!("leave-one-out error {left_out:.3}")));
    tour.compared.push(("Laplace kernel, one lifetime".to_owned(), one.0, format!("λ = {:.3} for all inputs", one.1)));
    tour.figures.insert("laplace_rmse".to_owned(), error.into());
    tour.figures.insert("laplace_leave_one_out_rmse".to_owned(), left_out.into());
    tour.figures.insert("laplace_coverage".to_owned(), held.into());
    Ok(())
}

/// The report's kernel with one lifetime for all inputs, the best of a ladder by leave-one-out.
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
        let error = mondrian::Step::best(model.trajectory()).map_or(f64::INFINITY, |s| s.error);
        if best.as_ref().is_none_or(|(least, ..)| error < *least) {
            best = Some((error, lifetime, model));
        }
    }
    let (_, lifetime, model) = best.ok_or(mondrian::Error::NotFitted)?;
    Ok((rmse(&data.held_out.y, &model.predict(data.held_out.points()?)?), lifetime))
}
