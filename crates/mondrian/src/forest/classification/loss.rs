//! Error rate and log loss of distributions over classes.

use crate::parallel::prelude::*;

use crate::forest::classification::predict::{ClassModel, Rows};
use crate::forest::classification::{rows_per_chunk, sum_over_trees};

/// Probabilities below this count as this in the log loss, so that one row cannot make it infinite.
const SMALLEST: f64 = f64::EPSILON;

/// The class of largest probability, the first of equals.
pub(crate) fn most_probable(distribution: &[f64]) -> usize {
    (0..distribution.len()).fold(0, |best, k| if distribution[k] > distribution[best] { k } else { best })
}

/// Chunks of rows between two reports of progress.
const WINDOW: usize = 16;

/// −ln of a probability, bounded.
pub(crate) fn log_loss(probability: f64) -> f64 {
    -libm::log(probability.max(SMALLEST))
}

/// Sums over rows, from which mean losses and their standard errors follow.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Losses {
    n_rows: f64,
    errors: f64,
    log_loss: f64,
    log_loss_squared: f64,
}

impl Losses {
    fn take(&mut self, distribution: &[f64], truth: &[(u32, u32)]) {
        let predicted = most_probable(distribution) as u32;
        for (class, count) in truth {
            let (loss, count) = (log_loss(distribution[*class as usize]), f64::from(*count));
            self.n_rows += count;
            self.errors += if *class == predicted { 0.0 } else { count };
            self.log_loss += count * loss;
            self.log_loss_squared += count * loss * loss;
        }
    }

    fn join(&mut self, other: &Self) {
        self.n_rows += other.n_rows;
        self.errors += other.errors;
        self.log_loss += other.log_loss;
        self.log_loss_squared += other.log_loss_squared;
    }

    /// Whether no row was looked at.
    pub(crate) fn is_empty(&self) -> bool {
        self.n_rows == 0.0
    }

    /// Share of rows put into a wrong class; 0 without rows.
    pub(crate) fn error(&self) -> f64 {
        self.errors / self.n_rows.max(1.0)
    }

    /// Mean log loss; 0 without rows.
    pub(crate) fn log_loss(&self) -> f64 {
        self.log_loss / self.n_rows.max(1.0)
    }

    /// Standard errors of error rate and log loss.
    pub(crate) fn standard_errors(&self) -> (f64, f64) {
        let n = self.n_rows.max(1.0);
        let variance = (self.log_loss_squared / n - self.log_loss() * self.log_loss()).max(0.0);
        ((self.error() * (1.0 - self.error()) / n).sqrt(), (variance / n).sqrt())
    }
}

/// The losses at each of ascending lifetimes, of rows in measure coordinates with the (class, count) of each.
pub(crate) fn losses<'t>(
    model: &ClassModel<'_>,
    coordinates: &[f64],
    truth: impl Fn(usize) -> &'t [(u32, u32)] + Sync,
    lifetimes: &[f64],
    advance: &mut dyn FnMut(usize) -> crate::Result<()>,
) -> crate::Result<Vec<Losses>> {
    let (n_dims, n_classes) = (model.forest.n_dims(), model.classes.n_classes());
    let n_rows = coordinates.len() / n_dims;
    let chunk = rows_per_chunk(n_rows, n_classes * lifetimes.len());
    let of_chunk = |first: usize, part: &[f64]| {
        let mut sums = vec![0.0; part.len() / n_dims * lifetimes.len() * n_classes];
        sum_over_trees(model, &Rows::new(model.forest, part), lifetimes, &mut sums);
        let mut losses = vec![Losses::default(); lifetimes.len()];
        for (at, distribution) in sums.chunks_exact(n_classes).enumerate() {
            losses[at % lifetimes.len()].take(distribution, truth(first + at / lifetimes.len()));
        }
        losses
    };
    let mut total = vec![Losses::default(); lifetimes.len()];
    // In windows: progress is reported and cancellation checked between them.
    for (window, rows) in coordinates.chunks(WINDOW * chunk * n_dims).enumerate() {
        let parts: Vec<Vec<Losses>> = rows
            .par_chunks(chunk * n_dims)
            .enumerate()
            .map(|(at, part)| of_chunk((window * WINDOW + at) * chunk, part))
            .collect();
        for part in &parts {
            total.iter_mut().zip(part).for_each(|(t, p)| t.join(p));
        }
        advance(rows.len() / n_dims)?;
    }
    Ok(total)
}
