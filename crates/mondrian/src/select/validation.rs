//! Validation of an automatic lifetime, and the combination of the curves of several rounds.

use serde::{Deserialize, Serialize};

use crate::path::RegularizationPath;
use crate::{Error, Result};

/// How an automatic lifetime is validated. Rows are assigned by a keyed hash of their coordinates, so neither their
/// order nor repetition matters (docs/design.md, "Automatic values").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Validation {
    /// A fifth of the rows, held out.
    #[default]
    HoldOut,
    /// This many rounds, at least two: each holds out a different part of the rows, and the losses are pooled.
    KFold(u32),
    /// Every row predicted from all others, in closed form along the path: densities only.
    LeaveOneOut,
}

impl Validation {
    /// Refuses fewer than two folds.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`].
    pub fn check(self) -> Result<()> {
        match self {
            Self::KFold(k) if k < 2 => {
                let expected = "at least 2 folds";
                Err(Error::InvalidParameter { name: "validation", value: f64::from(k), expected })
            }
            _ => Ok(()),
        }
    }

    /// The number of parts of the rows, and how many of them are held out in turn. Leave-one-out has no
    /// rounds; callers that support leave-one-out must not call this.
    ///
    /// # Errors
    /// [`Error::NoLeaveOneOut`], and those of [`Validation::check`].
    pub(crate) fn rounds(self) -> Result<Rounds> {
        self.check()?;
        match self {
            Self::HoldOut => Ok(Rounds { parts: 5, held: 1 }),
            Self::KFold(k) => Ok(Rounds { parts: u64::from(k), held: u64::from(k) }),
            Self::LeaveOneOut => Err(Error::NoLeaveOneOut),
        }
    }

    /// For files: the default is not written.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Rows are divided into `parts` by their hash; the first `held` parts are held out in turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rounds {
    pub(crate) parts: u64,
    pub(crate) held: u64,
}

impl Rounds {
    /// The rows to train on and those held out, round by round, given by their hashes; rounds without either are
    /// skipped.
    pub(crate) fn split<T: Copy>(self, rows: &[(u64, T)]) -> Vec<(Vec<T>, Vec<T>)> {
        let split = |round: u64| {
            let part = |held: bool| {
                rows.iter().filter(|row| (row.0 % self.parts == round) == held).map(|row| row.1).collect::<Vec<T>>()
            };
            (part(false), part(true))
        };
        (0..self.held).map(split).filter(|(train, held)| !train.is_empty() && !held.is_empty()).collect()
    }
}

impl RegularizationPath {
    /// The path of several rounds together, each with as many held-out rows as it counts for: the loss over all of their
    /// rows at once, at every lifetime at which any of them changes. `None` without rounds.
    pub(crate) fn pooled(rounds: &[(Self, f64)]) -> Option<Self> {
        let (first, _) = rounds.first()?;
        if rounds.len() == 1 {
            return Some(first.clone());
        }
        let whole: f64 = rounds.iter().map(|(_, rows)| rows).sum();
        // The squares of root mean squared errors are additive.
        let squares = first.loss == crate::path::Loss::Rmse;
        let up = |value: f64| if squares { value * value } else { value };
        let down = |value: f64| if squares { value.max(0.0).sqrt() } else { value };
        let mut events: Vec<(f64, usize, usize)> = rounds
            .iter()
            .enumerate()
            .flat_map(|(round, (path, _))| path.lifetimes.iter().enumerate().map(move |(i, t)| (*t, round, i)))
            .collect();
        events.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut at = vec![0; rounds.len()];
        let pool = |at: &[usize], curve: fn(&Self) -> &[f64]| {
            let parts = rounds.iter().zip(at).map(|((path, rows), i)| rows * up(curve(path)[*i]));
            down(parts.sum::<f64>() / whole)
        };
        let mut path = crate::path::PathBuilder::new(first.loss, 1);
        for (k, (time, round, i)) in events.iter().enumerate() {
            at[*round] = *i;
            if events.get(k + 1).is_none_or(|next| next.0 > *time) {
                path.push(*time, pool(&at, Self::train), &[pool(&at, Self::selecting)]);
            }
        }
        let spread = |(path, rows): &(Self, f64)| path.standard_error.map(|error| (rows * error).powi(2));
        let spreads: Option<Vec<f64>> = rounds.iter().map(spread).collect();
        Some(path.finish(spreads.map(|squares| squares.iter().sum::<f64>().sqrt() / whole)))
    }

    /// The values up to a lifetime.
    #[must_use]
    pub(crate) fn until(&self, lifetime: crate::Lifetime) -> Self {
        let keep: Vec<usize> = (0..=self.index_at(lifetime)).collect();
        Self { is_thinned: self.is_thinned, ..self.kept(&keep) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lifetime;
    use crate::path::{Loss, PathBuilder};

    #[test]
    fn pooling_is_the_loss_over_all_rows() {
        let path = |values: &[(f64, f64)]| {
            let mut path = PathBuilder::new(Loss::Rmse, 1);
            values.iter().for_each(|(t, v)| path.push(*t, *v, &[*v]));
            path.finish(Some(0.5))
        };
        let (a, b) = (path(&[(0.0, 3.0), (1.0, 1.0)]), path(&[(0.0, 5.0), (0.5, 2.0), (1.0, 4.0)]));
        let pooled = RegularizationPath::pooled(&[(a.clone(), 2.0), (b, 6.0)]).unwrap();
        assert_eq!(pooled.lifetimes(), [0.0, 0.5, 1.0]);
        let expected =
            [(2.0 * 9.0 + 6.0 * 25.0), (2.0 * 9.0 + 6.0 * 4.0), (2.0 + 6.0 * 16.0)].map(|s: f64| (s / 8.0).sqrt());
        assert!(pooled.selecting().iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12));
        assert_eq!(RegularizationPath::pooled(&[(a.clone(), 2.0)]).as_ref(), Some(&a));
        assert_eq!(pooled.until(Lifetime::new(0.7).unwrap()).lifetimes(), [0.0, 0.5]);
        assert!(RegularizationPath::pooled(&[]).is_none());
    }

    #[test]
    fn every_row_is_held_out_once() {
        let rows: Vec<(u64, usize)> = (0..40).map(|i| (i * 7919 % 101, i as usize)).collect();
        let rounds = Validation::KFold(4).rounds().unwrap().split(&rows);
        let mut held: Vec<usize> = rounds.iter().flat_map(|(_, held)| held.clone()).collect();
        held.sort_unstable();
        assert_eq!(held, (0..40).collect::<Vec<_>>());
        assert!(rounds.iter().all(|(train, held)| train.len() + held.len() == 40));
        assert_eq!(Validation::HoldOut.rounds().unwrap().split(&rows).len(), 1);
        assert_eq!(Validation::LeaveOneOut.rounds().unwrap_err(), Error::NoLeaveOneOut);
        assert!(matches!(Validation::KFold(1).check(), Err(Error::InvalidParameter { name: "validation", .. })));
    }
}
