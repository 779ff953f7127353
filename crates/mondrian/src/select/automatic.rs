//! The automatic lifetime: the limits of every model's choice, and the rows it is validated on.
//!
//! All models choose the lifetime of smallest loss along a path over held-out rows. They differ in their path (every
//! cut for regression and kernel ridge, a grid for classification, doublings for densities) and in the limits on the
//! work, which are in the table below.

use crate::Result;
use crate::select::Validation;

/// Bounds on the work of an automatic lifetime.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caps {
    /// Largest number of rows used; those of largest keyed hash are not used.
    pub(crate) rows: usize,
    /// Largest number of trees used.
    pub(crate) trees: usize,
    /// With fewer rows than this (classification and densities: fewer held-out points), nothing is held out.
    pub(crate) fewest: usize,
    /// How often the terminal lifetime is doubled, if it is not infinite from the start.
    pub(crate) doublings: u32,
}

/// Regression forests: the path of a forest of infinite lifetime.
pub(crate) const REGRESSION: Caps = Caps { rows: 40_000, trees: 40, fewest: 10, doublings: 0 };
/// Classification forests: log losses on a grid of lifetimes; all points are used.
pub(crate) const CLASSIFICATION: Caps = Caps { rows: usize::MAX, trees: 32, fewest: 20, doublings: 0 };
/// Kernel ridge: exact paths, cubic in the number of features.
pub(crate) const KERNEL: Caps = Caps { rows: 3000, trees: 50, fewest: 10, doublings: 14 };
/// Densities: all points and trees; few points are left out one by one instead.
pub(crate) const DENSITY: Caps = Caps { rows: usize::MAX, trees: usize::MAX, fewest: 25, doublings: 12 };

impl Caps {
    /// The training and validation rows of each round, for rows given with their keyed hashes; none if there are too
    /// few.
    ///
    /// # Errors
    /// [`crate::Error::NoLeaveOneOut`], and those of [`Validation::check`].
    pub(crate) fn rounds(
        &self,
        validation: Validation,
        mut hashed: Vec<(u64, usize)>,
    ) -> Result<Vec<(Vec<usize>, Vec<usize>)>> {
        // By the value of the hash, so that the order of the rows does not matter.
        hashed.sort_unstable_by_key(|row| row.0);
        hashed.truncate(self.rows);
        let rounds = validation.rounds()?.split(&hashed);
        Ok(if hashed.len() < self.fewest { Vec::new() } else { rounds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_largest_hash_are_left_out() {
        let caps = Caps { rows: 6, fewest: 3, ..REGRESSION };
        let hashed: Vec<(u64, usize)> = (0..10).map(|i| (100 - i, i as usize)).collect();
        let rounds = caps.rounds(Validation::KFold(2), hashed.clone()).unwrap();
        assert_eq!(rounds.len(), 2);
        let mut rows: Vec<usize> = rounds.iter().flat_map(|(_, held)| held.clone()).collect();
        rows.sort_unstable();
        assert_eq!(rows, [4, 5, 6, 7, 8, 9]);
        assert!(caps.rounds(Validation::HoldOut, hashed[..2].to_vec()).unwrap().is_empty());
        assert!(caps.rounds(Validation::LeaveOneOut, hashed).is_err());
    }
}
