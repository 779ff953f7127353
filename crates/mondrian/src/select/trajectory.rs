//! The trajectory of a search: every configuration evaluated, in order.

use serde::{Deserialize, Serialize};

use crate::progress::Step;

/// Every configuration a search has evaluated, in order.
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

    /// The smallest error among the evaluations on as many rows as the last one; the first of equals.
    pub fn best(&self) -> Option<&Step> {
        Step::best(&self.steps)
    }

    /// Estimated floating-point operations in total.
    pub fn cost(&self) -> f64 {
        self.steps.last().map_or(0.0, |step| step.cost)
    }
}
