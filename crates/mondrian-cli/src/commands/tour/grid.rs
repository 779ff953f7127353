//! A grid search that finds out which input is a coin.

use mondrian::GridRidgeParams;

use super::{Data, Tour};
use crate::failure::Outcome;
use crate::report::parts::rmse;
use crate::report::{Block, Section, Series};

pub(super) fn chapter(tour: &mut Tour, data: &Data) -> Outcome<()> {
    let params = GridRidgeParams { seed: tour.seed, alpha: Some(0.1), ..GridRidgeParams::default() };
    let model = params.fit(data.train.points()?, &data.train.y)?;
    let error = rmse(&data.held_out.y, &model.predict(data.held_out.points()?)?);
    let names = data.preparation.features();
    let steps = model.trajectory().steps();
    let numbers: Vec<f64> = (1..=steps.len()).map(|i| i as f64).collect();
    let series = names
        .iter()
        .enumerate()
        .map(|(d, name)| {
            let lifetimes = steps.iter().map(|s| s.lifetimes[d]).collect();
            Series { dots: true, ..Series::new(name, numbers.clone(), lifetimes) }
        })
        .collect();
    let order = model.ranking();
    tour.report.sections.push(Section::new(
        "A grid with a lifetime for every input",
        &[
            "Ridge regression on a Mondrian grid; the search tries what a longer or shorter lifetime of each input would do, without refitting. The coin's lifetime stays low.",
        ],
        vec![
            Block::Bars {
                names: order.iter().map(|&d| names[d].clone()).collect(),
                values: order.iter().map(|&d| model.lifetimes()[d]).collect(),
                threshold: 0.01,
            },
            Block::Curve {
                heading: Some("The search".to_owned()),
                x_label: "evaluation".to_owned(),
                y_label: "lifetime".to_owned(),
                x_short: "evaluation".to_owned(),
                log_x: false,
                steps: false,
                plain: true,
                series,
                marks: Vec::new(),
            },
        ],
    ));
    let shown: Vec<String> = order.iter().map(|&d| format!("{} {:.3}", names[d], model.lifetimes()[d])).collect();
    tour.say("grid search", format!("{} evaluations; lifetimes {}; RMSE {error:.3}", steps.len(), shown.join(", ")));
    tour.compared.push(("Mondrian grid, searched".to_owned(), error, format!("{} evaluations", steps.len())));
    tour.figures.insert("grid_rmse".to_owned(), error.into());
    Ok(())
}
