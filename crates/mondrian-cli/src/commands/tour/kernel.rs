//! The kernel path: ridge on Mondrian features, exact at every cut.

use mondrian::FeatureMap;
use mondrian::Lifetime;
use mondrian::Progress;
use mondrian::{KernelRidge, PathMethod};

use super::{Data, Tour};
use crate::failure::Outcome;
use crate::report::Section;
use crate::report::parts::{CurveKind, path_block};

pub(super) fn chapter(tour: &mut Tour, data: &Data) -> Outcome<()> {
    let params = KernelRidge::params().n_trees(30).lifetime(Lifetime::new(2.0)?).alpha(0.1).seed(tour.seed);
    let model = params.fit(data.train.points()?, &data.train.y)?;
    let validation = [(data.held_out.points()?, data.held_out.y.as_slice())];
    let found = model.path(&validation, &PathMethod::default(), &mut Progress::none())?;
    let (path, best) = (&found, found.best_lifetime());
    let error = path.value_at(best);
    tour.report.sections.push(Section::new(
        "The kernel at every lifetime",
        &["Ridge regression on the cells of thirty trees approximates the Laplace kernel. Cuts are removed one after the other, and each is an exact rank-two update of the solution."],
        vec![path_block(path, CurveKind::Exact, None)],
    ));
    tour.message(
        "kernel path",
        format!(
            "{} features, {} lifetimes; RMSE {error:.3} at λ = {:.3}",
            model.features().n_columns(),
            path.len(),
            best.get()
        ),
    );
    tour.compared.push(("Mondrian kernel, one lifetime".to_owned(), error, format!("30 trees, λ = {:.3}", best.get())));
    tour.figures.insert("kernel_rmse".to_owned(), error.into());
    Ok(())
}
