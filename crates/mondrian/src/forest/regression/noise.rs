//! The variance of the noise: what planes through near rows leave over.
//!
//! The errors of a forest hold noise and what the forest itself misses. A plane through the nearest rows misses only what bends between
//! them, so its residuals over their degrees of freedom are nearly the noise alone. Near is measured in the inputs that have
//! [relevance](super::relevance), each by its share.

use std::cmp::Ordering;

use crate::forest::Forest;
use crate::forest::regression::targets::{Sums, Targets};
use crate::forest::sample;
use crate::parallel::prelude::*;

/// Inputs of a plane, at most.
const MOST_INPUTS: usize = 8;
/// Inputs with a smaller share of the relevance are left out.
const LEAST_SHARE: f64 = 0.005;
/// Planes, at most.
const PLANES: usize = 384;
/// Points that are looked through for near ones, at most: those of smallest keyed hash.
const MOST_POINTS: usize = 1 << 16;

/// The noise variance of each target; none where no two rows say anything.
pub(crate) fn noise_variances(forest: &Forest<Sums>, targets: &Targets, relevance: &[f64]) -> Vec<Option<f64>> {
    let near = Near::of(forest, relevance);
    // Without inputs there is one plane, through all rows.
    let n_planes = if near.n_inputs == 0 { 1 } else { PLANES };
    let planes: Vec<Vec<(f64, f64)>> = (0..near.n_points().min(n_planes))
        .into_par_iter()
        .map(|centre| {
            let points = near.around(centre);
            (0..targets.n_targets()).map(|target| near.plane(centre, &points, targets, target)).collect()
        })
        .collect();
    let of_target = |target: usize| {
        let (squares, freedom) =
            planes.iter().fold((0.0, 0.0), |(s, f), plane| (s + plane[target].0, f + plane[target].1));
        (freedom > 0.0).then_some(squares / freedom)
    };
    (0..targets.n_targets()).map(of_target).collect()
}

/// Points in the inputs that count, in the order of their hashes, which no order of arrival changes.
struct Near {
    points: Vec<u32>,
    n_inputs: usize,
    /// By point, then input: in deviations times the root of the relevance.
    scaled: Vec<f64>,
}

impl Near {
    fn of(forest: &Forest<Sums>, relevance: &[f64]) -> Self {
        let store = forest.store();
        let points = sample::smallest_hashes(store, forest.domain().seed(), MOST_POINTS);
        let mut inputs: Vec<usize> = (0..relevance.len()).filter(|d| relevance[*d] >= LEAST_SHARE).collect();
        inputs.sort_by(|a, b| relevance[*b].partial_cmp(&relevance[*a]).unwrap_or(Ordering::Equal));
        // A plane needs twice as many points as it has coefficients, and these should not be all there are.
        inputs.truncate(MOST_INPUTS.min((points.len() / 4).saturating_sub(1)));
        let scale = |d: &usize| {
            let column = || points.iter().map(|point| store.point(*point)[*d]);
            let mean = column().sum::<f64>() / points.len() as f64;
            let variance = column().map(|x| (x - mean).powi(2)).sum::<f64>() / points.len() as f64;
            if variance > 0.0 { (relevance[*d] / variance).sqrt() } else { 0.0 }
        };
        let scales: Vec<f64> = inputs.iter().map(scale).collect();
        let row = |point: &u32| {
            let x = store.point(*point);
            inputs.iter().zip(&scales).map(|(d, scale)| x[*d] * scale).collect::<Vec<_>>()
        };
        Self { scaled: points.iter().flat_map(row).collect(), n_inputs: inputs.len(), points }
    }

    fn n_points(&self) -> usize {
        self.points.len()
    }

    fn row(&self, at: usize) -> &[f64] {
        &self.scaled[at * self.n_inputs..][..self.n_inputs]
    }

    /// The nearest points to one of them, itself among them: twice as many as a plane has coefficients.
    fn around(&self, centre: usize) -> Vec<usize> {
        if self.n_inputs == 0 {
            return (0..self.n_points()).collect();
        }
        let here = self.row(centre);
        let distance = |at: usize| self.row(at).iter().zip(here).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
        let mut near: Vec<(f64, usize)> = (0..self.n_points()).map(|at| (distance(at), at)).collect();
        let n = (2 * (self.n_inputs + 1)).min(near.len());
        let order = |a: &(f64, usize), b: &(f64, usize)| a.partial_cmp(b).unwrap_or(Ordering::Equal);
        if n < near.len() {
            near.select_nth_unstable_by(n - 1, order);
            near.truncate(n);
        }
        near.sort_unstable_by(order);
        near.into_iter().map(|(_, at)| at).collect()
    }

    /// Sum of squared residuals of the plane through the rows of some points, and its degrees of freedom.
    fn plane(&self, centre: usize, near: &[usize], targets: &Targets, target: usize) -> (f64, f64) {
        let rows: Vec<(usize, f64)> = near
            .iter()
            .flat_map(|at| targets.values_of(self.points[*at], target).into_iter().map(move |(y, _)| (*at, y)))
            .collect();
        let here = self.row(centre);
        let mut columns = vec![vec![1.0; rows.len()]];
        columns.extend((0..self.n_inputs).map(|d| rows.iter().map(|(at, _)| self.row(*at)[d] - here[d]).collect()));
        // About the first target, so that a large mean costs no digits.
        let residuals = rows.iter().map(|(_, y)| y - rows[0].1).collect();
        without_columns(columns, residuals)
    }
}

/// Squares of what is left of a vector without its part in the span of some columns, and the dimension of what is left.
fn without_columns(mut columns: Vec<Vec<f64>>, mut rest: Vec<f64>) -> (f64, f64) {
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let subtract = |from: &mut [f64], column: &[f64], square: f64| {
        let share = product(from, column) / square;
        from.iter_mut().zip(column).for_each(|(f, c)| *f -= share * c);
    };
    let mut freedom = rest.len() as f64;
    for at in 0..columns.len() {
        let whole = product(&columns[at], &columns[at]);
        let (before, from) = columns.split_at_mut(at);
        for column in before.iter().filter(|column| !column.is_empty()) {
            subtract(&mut from[0], column, product(column, column));
        }
        let square = product(&from[0], &from[0]);
        if square <= 1e-12 * whole {
            // The columns before hold this one.
            from[0].clear();
            continue;
        }
        subtract(&mut rest, &from[0], square);
        freedom -= 1.0;
    }
    if freedom > 0.0 { (product(&rest, &rest), freedom) } else { (0.0, 0.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_columns_explain_is_taken_away() {
        let columns = vec![vec![1.0; 4], vec![0.0, 1.0, 2.0, 3.0], vec![2.0; 4]];
        let y = |bump: f64| vec![5.0, 7.0, 9.0 + bump, 11.0];
        let (squares, freedom) = without_columns(columns.clone(), y(0.0));
        assert!(squares < 1e-24 && freedom == 2.0, "a plane leaves nothing, and the third column says nothing new");
        let (squares, freedom) = without_columns(columns, y(1.0));
        assert!((squares - 0.7).abs() < 1e-12 && freedom == 2.0, "{squares}");
        assert_eq!(without_columns(vec![vec![1.0]], vec![3.0]), (0.0, 0.0));
    }
}
