//! A grid search that finds out which input is a coin.

use mondrian::internals::features::MondrianGrid;
use mondrian::{GridRidgeParams, SearchKind};

use super::{Data, Tour};
use crate::failure::Outcome;
use crate::report::parts::rmse;
use crate::report::{Block, Figure, Section, Series};

/// Evaluations that the searches of chapter 5 may take here.
const BUDGET: usize = 240;

/// The least error so far of each search, step by step.
fn searches(data: &Data, params: &GridRidgeParams) -> Outcome<Vec<Series>> {
    let kinds = [("default", SearchKind::Auto), ("greedy", SearchKind::Greedy), ("look-ahead", SearchKind::Lookahead)];
    let mut series = Vec::new();
    for (name, search) in kinds {
        let params = GridRidgeParams { search, budget: BUDGET, ..params.clone() };
        let model = params.fit(data.train.points()?, &data.train.y)?;
        let mut least = f64::INFINITY;
        let errors: Vec<f64> = model
            .trajectory()
            .iter()
            .map(|step| {
                least = least.min(step.error);
                least
            })
            .collect();
        series.push(Series::new(name, (1..=errors.len()).map(|i| i as f64).collect(), errors));
    }
    Ok(series)
}

/// The first grid in the two inputs of largest lifetime, at a third of the lifetimes found and at these.
fn drawings(seed: u64, data: &Data, lifetimes: &[f64], order: &[usize]) -> Outcome<Vec<Figure>> {
    let &[across, up, ..] = order else { return Ok(Vec::new()) };
    let (grid, names) = (MondrianGrid::new(1, seed)?, data.preparation.features());
    let columns: Vec<Vec<f64>> =
        [across, up].iter().map(|&d| data.train.x.iter().skip(d).step_by(lifetimes.len()).copied().collect()).collect();
    let least = |axis: usize| columns[axis].iter().copied().fold(f64::INFINITY, f64::min);
    let most = |axis: usize| columns[axis].iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (lower, upper) = ([least(0), least(1)], [most(0), most(1)]);
    let figure = |factor: f64, what: &str| -> Outcome<Figure> {
        let at = [factor * lifetimes[across], factor * lifetimes[up]];
        let caption =
            format!("One grid in {} and {}, {what}: every cut crosses the whole box.", names[across], names[up]);
        Ok(Figure { svg: grid.svg(0, [across, up], lower, upper, at, 300.0)?, caption })
    };
    Ok(vec![figure(1.0 / 3.0, "at a third of the lifetimes")?, figure(1.0, "at the lifetimes found")?])
}

pub(super) fn chapter(tour: &mut Tour, data: &Data) -> Outcome<()> {
    let params = GridRidgeParams { seed: tour.seed, alpha: Some(0.1), ..GridRidgeParams::default() };
    let model = params.fit(data.train.points()?, &data.train.y)?;
    let error = rmse(&data.held_out.y, &model.predict(data.held_out.points()?)?);
    let names = data.preparation.features();
    let steps = model.trajectory();
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
            "Ridge regression on a Mondrian grid, one lifetime per input. The lifetimes shown are those of the default search, which tunes the exact kernel, with one factorisation per evaluation, and then tries common factors on the grid. The coin's lifetime stays low.",
            "The greedy searches add one cut at a time: the error after the next cut of each input is computed from the current solution, without a refit, and the best cut is added. Look-ahead tries several cuts in one direction before it decides. All errors below are on the same held-out fifth of the training rows.",
        ],
        vec![
            Block::Bars {
                names: order.iter().map(|&d| names[d].clone()).collect(),
                values: order.iter().map(|&d| model.lifetimes()[d]).collect(),
                threshold: 0.01,
            },
            Block::Figures { figures: drawings(tour.seed, data, model.lifetimes(), &order)? },
            Block::Curve {
                heading: Some("The default search: lifetimes on the grid".to_owned()),
                x_label: "step".to_owned(),
                y_label: "lifetime".to_owned(),
                x_short: "step".to_owned(),
                log_x: false,
                steps: false,
                plain: true,
                series,
                marks: Vec::new(),
            },
            Block::Curve {
                heading: Some("Least error so far, step by step".to_owned()),
                x_label: "step".to_owned(),
                y_label: "RMSE".to_owned(),
                x_short: "step".to_owned(),
                log_x: false,
                steps: true,
                plain: true,
                series: searches(data, &params)?,
                marks: Vec::new(),
            },
        ],
    ));
    let shown: Vec<String> = order.iter().map(|&d| format!("{} {:.3}", names[d], model.lifetimes()[d])).collect();
    tour.message(
        "grid search",
        format!("{} evaluations; lifetimes {}; RMSE {error:.3}", steps.len(), shown.join(", ")),
    );
    tour.compared.push(("Mondrian grid, searched".to_owned(), error, format!("{} evaluations", steps.len())));
    tour.figures.insert("grid_rmse".to_owned(), error.into());
    Ok(())
}
