//! A forest and its whole path.

use mondrian::FitOptions;
use mondrian::Lifetime;
use mondrian::Progress;
use mondrian::process::{Bounds, Mondrian, NodeKey};
use mondrian::{ForestParams, RegressionParams, WeightsChoice};

use super::{Data, Tour};
use crate::failure::Outcome;
use crate::model::ranked;
use crate::report::Section;
use crate::report::partition::{Drawn, partition_block};
use crate::report::parts::{CurveKind, axis, count, path_block, rmse};

pub(super) fn chapter(tour: &mut Tour, data: &Data) -> Outcome<()> {
    let (lower, upper) = data.preparation.bounds(&data.summary);
    let bounds = Bounds::new(&lower, &upper)?;
    let forest = ForestParams {
        seed: tour.seed,
        bounds: Some(bounds.clone()),
        weights: WeightsChoice::Raw,
        ..ForestParams::default()
    };
    let params = RegressionParams { forest, ..RegressionParams::default() };
    let (train, held_out) = (data.train.points()?, data.held_out.points()?);
    let model = params.fit_at(Lifetime::INFINITE, train, &data.train.y, FitOptions::default())?;
    let path = model.path(&[(held_out, data.held_out.y.as_slice())], &mut Progress::none())?;
    let best = path.best_lifetime();
    let model = model.at(best)?;
    let error = rmse(&data.held_out.y, &model.predict(held_out)?);
    let relevance = model.relevance();
    let order = ranked(&relevance);
    let dims = [order[0], order[1]];
    let axes = dims.map(|d| axis(&data.preparation, d, lower[d], upper[d]));
    let middle = vec![0.0; lower.len()];
    let drawn = Drawn { points: train, values: &data.train.y, name: "height".to_owned(), classes: None };
    let process = Mondrian::new(bounds, NodeKey::root(tour.seed, 0));
    let tree = partition_block(&process, axes, dims, &middle, best.get().min(3.0), Some(drawn))?;
    tour.report.sections.push(Section::new(
        "A forest at every lifetime",
        &[
            "A hundred trees, grown once. The errors are updated cut by cut over all trees: the curve is exact at every lifetime, not sampled.",
        ],
        vec![path_block(&path, CurveKind::Exact, None)],
    ));
    tour.report.sections.push(Section::new(
        "One tree of the forest",
        &["The first tree in the plane of the two most relevant inputs. Colours are means of the training rows projected onto a cell."],
        vec![tree.block],
    ));
    tour.message(
        "forest path",
        format!("{} lifetimes from one fit; RMSE {error:.3} at the best, λ = {:.3}", path.len(), best.get()),
    );
    tour.report.headline(
        "Forest, chosen lifetime",
        format!("{:.2}", best.get()),
        format!("of {} tried exactly", count(path.len() as u64)),
    );
    tour.compared.push(("Mondrian forest".to_owned(), error, format!("100 trees, λ = {:.3}", best.get())));
    tour.figures.insert("forest_rmse".to_owned(), error.into());
    tour.figures.insert("forest_lifetime".to_owned(), crate::model::number(best.get()));
    Ok(())
}
