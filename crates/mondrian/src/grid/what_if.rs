//! The error of neighbouring configurations, without moving to them (docs/design.md, "The Mondrian grid").
//!
//! A removal needs K columns of P and O(K·C) more; an addition needs P times K new columns. Those of all candidates
//! are stacked, so P is read once for any number of candidates, and never written.

use crate::grid::partition::{NONE, Plan};
use crate::grid::{GridState, Move};
use crate::linalg::{Matrix, MatrixRef};
use crate::{Error, Result};

impl GridState {
    /// The validation error after each of these moves, made alone; `None` where there is no such cut.
    ///
    /// # Errors
    /// Those of [`GridState::apply`].
    pub fn what_if(&mut self, moves: &[Move]) -> Result<Vec<Option<f64>>> {
        let plans = moves.iter().map(|&step| self.plan(step)).collect::<Result<Vec<_>>>()?;
        let c = self.n_features();
        let splits: Vec<_> = plans.iter().flatten().filter(|plan| plan.adds).map(|plan| self.splits(plan)).collect();
        let widths: Vec<usize> = splits.iter().map(|s| s.features.len()).collect();
        let total: usize = widths.iter().sum();
        let stacked: Vec<f64> = splits.iter().flat_map(|s| s.borders.as_slice()).copied().collect();
        let images = self.solution.images(&Matrix::from_column_major(stacked, c, total)?);
        self.cost += 2.0 * (c * c * total) as f64;
        let mut additions = splits.iter().zip(&widths).scan(0, |start, (split, width)| {
            *start += width;
            Some((split, images.view().columns(*start - width..*start)))
        });
        let evaluate = |plan: &Plan, images: Option<(&crate::grid::solution::Splits, MatrixRef<'_>)>| {
            let theta = match images {
                Some((split, _)) if split.features.is_empty() => self.solution.theta.clone(),
                Some((split, images)) => self.solution.split_theta(split, images)?,
                None => self.solution.merge_theta(&self.pairs(plan))?,
            };
            Ok::<f64, Error>(self.error_after(plan, &theta))
        };
        plans
            .iter()
            .map(|plan| {
                let Some(plan) = plan else { return Ok(None) };
                let images = if plan.adds { additions.next() } else { None };
                evaluate(plan, images).map(Some)
            })
            .collect()
    }

    /// The error if the plan were carried out and θ were `theta` (new features last, merged-away ones meaningless).
    fn error_after(&self, plan: &Plan, theta: &[Vec<f64>]) -> f64 {
        let mut predictions = self.predictions_with(theta);
        for (t, theta) in theta.iter().enumerate() {
            self.follow(plan, theta, predictions.column_mut(t));
        }
        self.error_of(&predictions)
    }

    /// Updates one target's predictions from the current cells to those after the plan.
    fn follow(&self, plan: &Plan, theta: &[f64], predictions: &mut [f64]) {
        let n = self.n_train();
        let root = (self.partition.n_grids() as f64).sqrt();
        let mut next_new = self.n_features();
        let value = |feature: u32| if feature == NONE { 0.0 } else { theta[feature as usize] };
        for part in &plan.parts {
            let below = self.partition.cells[part.below as usize].feature;
            // The old and the new contributions to the rows below and above.
            let (given_below, given_above, right_below, right_above) = if plan.adds {
                let given = value(below);
                let (low, high) = match (part.train_below > 0, part.train_above > 0) {
                    (true, true) => {
                        next_new += 1;
                        (given, theta[next_new - 1])
                    }
                    (true, false) => (given, 0.0),
                    (false, _) => (0.0, given),
                };
                (given, given, low, high)
            } else {
                let above = self.partition.cells[part.above as usize].feature;
                let joined = value(if below == NONE { above } else { below });
                (value(below), value(above), joined, joined)
            };
            let changes =
                [(&part.rows_below, right_below - given_below), (&part.rows_above, right_above - given_above)];
            for (rows, change) in changes {
                if change != 0.0 {
                    let riders = rows.iter().filter(|&&row| row as usize >= n);
                    riders.for_each(|&row| predictions[row as usize - n] += change / root);
                }
            }
        }
    }
}
