//! The trajectory of a search: every configuration evaluated, in order.

use serde::{Deserialize, Serialize};

use crate::progress::Step;

/// Every configuration a search has evaluated, in order.
///
/// ```
/// use mondrian::{Step, Trajectory};
/// let mut trajectory = Trajectory::default();
/// for (rows, error) in [(100, 1.0), (200, 3.0), (200, 2.0), (200, 2.5)] {
///     trajectory.push(Step { lifetimes: vec![0.5], alpha: 1.0, error, cost: 0.0, rows });
/// }
/// assert_eq!(trajectory.best().map(|step| step.error), Some(2.0));
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Trajectory {
    steps: Vec<Step>,
}

impl Trajectory {
    /// Adds an evaluation.
    pub fn push(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// All evaluations.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Number of evaluations.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether nothing has been evaluated.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The least error among the evaluations on as many rows as the last one; the first of equals.
    pub fn best(&self) -> Option<&Step> {
        let rows = self.steps.last()?.rows;
        let candidates = self.steps.iter().filter(|step| step.rows == rows);
        candidates.min_by(|a, b| a.error.total_cmp(&b.error))
    }

    /// Estimated floating-point operations of all of it.
    pub fn cost(&self) -> f64 {
        self.steps.last().map_or(0.0, |step| step.cost)
    }
}
