//! Automatic γ: the value with the least leave-one-out loss on a few of the points.

use crate::Result;
use crate::forest::density::automatic::{first_lifetime, keyed_order, select, turned};
use crate::forest::density::path::Curves;
use crate::forest::density::{DensityForest, GammaChoice};
use crate::progress::Progress;

/// Values of γ tried. The prior weighs γ(d+1)² rows and depths of tens are common: useful values are small.
const GAMMAS: [f64; 7] = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0];
/// Trees and distinct points that γ is chosen on.
const GAMMA_TREES: usize = 16;
const GAMMA_POINTS: usize = 500;

/// The value of γ that [`DensityForest::gamma`] promises.
pub(crate) fn automatic_gamma(model: &DensityForest) -> f64 {
    let (rows, coordinates) = model.stored();
    if rows.is_empty() {
        return 1.0;
    }
    let n_dims = model.forest.n_dims();
    let order = keyed_order(&coordinates, n_dims, model.forest.domain().seed());
    let chosen = &order[..order.len().min(GAMMA_POINTS)];
    let (coordinates, rows) = select(&coordinates, &rows, chosen, n_dims);
    // Nothing below can fail that did not fail before: the rows were learned once, and the call is not cancellable.
    least(model, &coordinates, &rows).unwrap_or(1.0)
}

/// The value of γ with the least leave-one-out loss on these points.
fn least(model: &DensityForest, coordinates: &[f64], rows: &[u32]) -> Result<f64> {
    let mut small = model.emptied(GAMMA_TREES, first_lifetime(model), 1.0)?;
    small.take_points(coordinates, rows)?;
    let mut best = (f64::INFINITY, 1.0);
    for gamma in GAMMAS {
        small.params.gamma = GammaChoice::Value(gamma);
        let path = turned(&mut small, &[], Curves::LeaveOneOut, &mut Progress::none())?;
        let loss = path.selecting()[path.best_index()];
        if loss < best.0 {
            best = (loss, gamma);
        }
    }
    Ok(best.1)
}
