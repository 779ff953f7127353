//! A density of the map's points, tuned by leave-one-out.

use mondrian::DensityParams;
use mondrian::ForestParams;
use mondrian::Progress;
use mondrian::Validation;
use mondrian::{Lifetime, Points};

use super::{Data, Part, Tour};
use crate::failure::Outcome;
use crate::report::Section;
use crate::report::parts::{CurveKind, path_block};

pub(super) fn chapter(tour: &mut Tour, data: &Data) -> Outcome<()> {
    let (train, held_out) = (plane(&data.train), plane(&data.held_out));
    let (train, held_out) = (Points::row_major(&train, 2)?, Points::row_major(&held_out, 2)?);
    let forest = ForestParams { n_trees: 50, seed: tour.seed, ..ForestParams::default() };
    let params = DensityParams::from(ForestParams { validation: Validation::LeaveOneOut, ..forest });
    let mut model = params.fit(train)?;
    model.set_lifetime(Lifetime::new(4.0 * model.lifetime().get().max(0.25))?)?;
    let found = model.path(&[held_out], &mut Progress::none())?;
    let best = found.best_lifetime();
    tour.report.sections.push(Section::new(
        "A density, left out one by one",
        &[
            "The density of the rows on the map. Leave-one-out densities have no extra cost, so no rows have to be held out to choose the lifetime: compare the two curves.",
        ],
        vec![path_block(&found, CurveKind::Exact, None)],
    ));
    tour.message(
        "density path",
        format!(
            "{} lifetimes; best λ = {:.3}, γ = {}; {} held-out rows outside the box",
            found.len(),
            best.get(),
            model.gamma(),
            found.n_outside().first().copied().unwrap_or(0)
        ),
    );
    tour.figures.insert("density_lifetime".to_owned(), crate::model::number(best.get()));
    Ok(())
}

/// East and north alone.
fn plane(part: &Part) -> Vec<f64> {
    part.x.chunks(part.n_columns).flat_map(|row| [row[0], row[1]]).collect()
}
