//! Which map of the target: the one with the least leave-one-out error in the target's own units.

use crate::laplace::KernelRows;
use crate::laplace::large::ManyRows;
use crate::laplace::objective::Loss;
use crate::laplace::search::KernelTuning;
use crate::laplace::solve::{Solution, solve};
use crate::laplace::starts::Rough;
use crate::laplace::target::{TargetMap, residual_quantiles};
use crate::linalg::Matrix;
use crate::{Error, Result};

/// A map must lower the error on the first rows by this factor to be tuned for.
const WORTHWHILE: f64 = 0.99;

/// The maps to choose from; a given one must take the targets.
pub(super) fn maps_for(given: Option<TargetMap>, targets: &Matrix) -> Result<Vec<TargetMap>> {
    if let Some(map) = given {
        if map != TargetMap::Identity && targets.n_columns() > 1 {
            let value = targets.n_columns() as f64;
            return Err(Error::InvalidParameter { name: "targets with a target map", value, expected: "1" });
        }
        if let Some(&value) = targets.as_slice().iter().find(|y| !map.takes(&[**y])) {
            return Err(Error::InvalidParameter {
                name: "a target",
                value,
                expected: "within the target map's domain",
            });
        }
        return Ok(vec![map]);
    }
    let mut maps = vec![TargetMap::Identity];
    if targets.n_columns() == 1 {
        maps.extend([TargetMap::Sqrt, TargetMap::Log].into_iter().filter(|map| map.takes(targets.as_slice())));
    }
    Ok(maps)
}

pub(super) fn mapped(targets: &Matrix, map: TargetMap) -> Matrix {
    Matrix::from_fn(targets.n_rows(), targets.n_columns(), |i, c| map.apply(targets[(i, c)]))
}

/// Each column over its standard deviation (1 for a constant one), and those deviations.
pub(crate) fn standardised(targets: &Matrix, weights: &[f64]) -> (Matrix, Vec<f64>) {
    let total: f64 = weights.iter().sum();
    let scale = |c: usize| {
        let column = targets.column(c);
        let mean = column.iter().zip(weights).map(|(y, w)| y * (w / total)).sum::<f64>();
        let largest = column.iter().fold(0.0_f64, |m, y| m.max((y - mean).abs()));
        if !(largest > 0.0 && largest.is_finite()) {
            return 1.0;
        }
        let square = column.iter().zip(weights).map(|(y, w)| w / total * ((y - mean) / largest).powi(2)).sum::<f64>();
        largest * square.sqrt()
    };
    let scales: Vec<f64> = (0..targets.n_columns()).map(scale).collect();
    (Matrix::from_fn(targets.n_rows(), targets.n_columns(), |i, c| targets[(i, c)] / scales[c]), scales)
}

/// The map with the least leave-one-out error of the rough kernel on the first rows.
pub(super) fn best_of_first(
    rough: &Rough,
    targets: &Matrix,
    weights: &[f64],
    maps: &[TargetMap],
    tuning: &KernelTuning,
) -> Result<TargetMap> {
    if let [only] = maps {
        return Ok(*only);
    }
    let n = targets.n_rows().min(2 * tuning.rows);
    let rows: Vec<usize> = (0..n).collect();
    let columned = rough.columned.select(&rows);
    let some = Matrix::from_fn(n, 1, |i, _| targets[(i, 0)]);
    let columns: Vec<f64> = maps.iter().flat_map(|map| mapped(&some, *map).into_vec()).collect();
    let outputs = Matrix::from_column_major(columns, n, maps.len())?;
    let kernel = rough.values.rows(&columned)?;
    let solution = solve(&kernel, &outputs, &weights[..n], tuning.fit_intercept, rough.values.alpha, tuning.threads)?;
    let errors = map_errors(maps, &some, &weights[..n], &solution.residuals);
    let mut best = 0;
    for k in 1..maps.len() {
        if errors[k] < errors[best] * (WORTHWHILE * WORTHWHILE) {
            best = k;
        }
    }
    Ok(maps[best])
}

/// Solves on all rows: for one target with every map, of which the best is kept; for several with the map given.
pub(super) fn solve_with_map(
    rows: &KernelRows,
    targets: &Matrix,
    weights: &[f64],
    alpha: f64,
    maps: &[TargetMap],
    map: TargetMap,
    tuning: &KernelTuning,
) -> Result<(TargetMap, Solution)> {
    let (n, c) = (targets.n_rows(), targets.n_columns());
    let outputs = if c == 1 {
        let columns: Vec<f64> = maps.iter().flat_map(|m| mapped(targets, *m).into_vec()).collect();
        Matrix::from_column_major(columns, n, maps.len())?
    } else {
        targets.clone()
    };
    if tuning.is_exact(n) {
        let solution = solve(rows, &outputs, weights, tuning.fit_intercept, alpha, tuning.threads)?;
        return Ok(if c == 1 { best_map(maps, targets, weights, &solution) } else { (map, solution) });
    }
    let many = ManyRows::new(rows, &outputs, weights, alpha, tuning.large_options(Loss::Squared));
    if c > 1 {
        return Ok((map, many.solve()?));
    }
    let best = if maps.len() > 1 { best_at(maps, targets, weights, &many.leave_out()?.residuals) } else { 0 };
    Ok((maps[best], many.with_output(best).solve()?))
}

/// Mean squared leave-one-out errors in the target's units, one per map.
fn map_errors(maps: &[TargetMap], targets: &Matrix, weights: &[f64], residuals: &Matrix) -> Vec<f64> {
    let total: f64 = weights[..residuals.n_rows()].iter().sum();
    let error = |(k, map): (usize, &TargetMap)| {
        let residuals = residuals.column(k);
        let smear = residual_quantiles(residuals);
        let square = |i: usize| {
            let y = targets[(i, 0)];
            weights[i] / total * (y - map.smear(map.apply(y) - residuals[i], &smear)).powi(2)
        };
        (0..residuals.len()).map(square).sum::<f64>()
    };
    maps.iter().enumerate().map(error).collect()
}

/// The number of the best map.
fn best_at(maps: &[TargetMap], targets: &Matrix, weights: &[f64], residuals: &Matrix) -> usize {
    let errors = map_errors(maps, targets, weights, residuals);
    (0..maps.len()).fold(0, |best, k| if errors[k] < errors[best] { k } else { best })
}

/// The best map on all rows, and its column of the solution.
fn best_map(maps: &[TargetMap], targets: &Matrix, weights: &[f64], solution: &Solution) -> (TargetMap, Solution) {
    let best = best_at(maps, targets, weights, &solution.residuals);
    let one = |matrix: &Matrix| Matrix::from_column(matrix.column(best).to_vec());
    let Solution { dual, targets, centre, residuals, report } = solution;
    let (dual, targets, residuals) = (one(dual), one(targets), one(residuals));
    (maps[best], Solution { dual, targets, centre: vec![centre[best]], residuals, report: *report })
}
