//! Models of a file: their path over the rows of a table, or over their own rows alone.

use mondrian::{PathMethod, Result};

use super::fit::{Classified, Watch, staged};
use super::{Model, points, problem};
use crate::api::Problem;
use crate::tables::{Data, SavedModel};

/// Trees or grids of a model.
pub(crate) fn n_trees(model: &SavedModel) -> Option<usize> {
    match model {
        SavedModel::Forest(model) => Some(model.forest().n_trees()),
        SavedModel::Classifier(model) => Some(model.forest().n_trees()),
        SavedModel::Density(model) => Some(model.forest().n_trees()),
        SavedModel::Kernel(model) => Some(model.features().forest().n_trees()),
        SavedModel::Laplace(_) | SavedModel::LaplaceClasses(_) | SavedModel::Axes(_) | SavedModel::Grid(_) => None,
    }
}

/// A model of a file, ready for queries at every lifetime of its trees.
pub(crate) fn open(saved: SavedModel, data: &Data, mut watch: Watch<'_>) -> std::result::Result<Model, Problem> {
    // The tuned kernel has no path, and its cells may be missing.
    let takes_cells = matches!(saved, SavedModel::Laplace(_) | SavedModel::LaplaceClasses(_));
    let is_judged = !takes_cells && !data.held_out.rows.is_empty();
    let x = is_judged.then(|| points(&data.held_out.x, data.width())).transpose()?;
    let y = data.held_out.y.as_slice();
    let sets: Vec<_> = x.iter().map(|x| (*x, y)).collect();
    let found: Result<Model> = match saved {
        SavedModel::Laplace(model) => Ok(Model::Laplace(model)),
        SavedModel::LaplaceClasses(model) => Ok(Model::LaplaceClasses(model)),
        SavedModel::Axes(model) => Ok(Model::Axes(model)),
        SavedModel::Grid(model) => Ok(Model::Grid(model)),
        SavedModel::Forest(model) => {
            staged(&mut watch, "path", |p| model.path(&sets, p)).map(|path| Model::forest(*model, path))
        }
        SavedModel::Classifier(model) => {
            let classes = Classified::of(data).held_out;
            let sets: Vec<_> = x.iter().map(|x| (*x, classes.as_slice())).collect();
            let path = staged(&mut watch, "path", |p| model.path(&sets, None, p));
            path.map(|path| Model::Classifier { model, path: Box::new(path) })
        }
        SavedModel::Kernel(model) => {
            let path = staged(&mut watch, "path", |p| model.path(&sets, &PathMethod::default(), p));
            path.map(|found| Model::Kernel { model, path: found })
        }
        SavedModel::Density(model) => {
            let sets: Vec<_> = x.into_iter().collect();
            let path = staged(&mut watch, "path", |p| model.path(&sets, p));
            path.map(|found| Model::Density { model, path: found })
        }
    };
    found.map_err(|e| problem(&e))
}
