//! A density viewed at a lifetime.

use crate::forest::density::DensityForest;
use crate::forest::density::evaluate::{Counting, log_growth};
use crate::forest::density::polya::Polya;
use crate::{Error, Lifetime, Points, Result};

/// The log-likelihood of a set of rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DensityScore {
    /// Number of rows.
    pub n_rows: usize,
    /// How many of them lie outside the box, where the density is zero.
    pub n_outside: usize,
    /// The sum of the log densities of the rows inside.
    pub inside: f64,
}

impl DensityScore {
    /// The log-likelihood of all rows: minus infinity if one lies outside the box.
    pub fn total(&self) -> f64 {
        if self.n_outside > 0 { f64::NEG_INFINITY } else { self.inside }
    }

    /// The mean log density of the rows inside; zero without any.
    pub fn mean_inside(&self) -> f64 {
        self.inside / (self.n_rows - self.n_outside).max(1) as f64
    }
}

/// A [`DensityForest`] at a lifetime: the model that would have been fitted with it.
#[derive(Debug, Clone, Copy)]
pub struct DensityView<'a> {
    pub(crate) model: &'a DensityForest,
    pub(crate) lifetime: Lifetime,
}

impl DensityView<'_> {
    /// The lifetime looked with.
    pub fn lifetime(&self) -> Lifetime {
        self.lifetime
    }

    /// The log density at each row: minus infinity outside the box.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] for rows of the wrong width.
    pub fn log_density(&self, points: Points<'_>) -> Result<Vec<f64>> {
        let (inside, coordinates) = self.model.inside(points)?;
        let mut logs = vec![f64::NEG_INFINITY; points.n_rows()];
        let found = self.logs(&coordinates, Counting::Present);
        for (row, log) in inside.into_iter().zip(found) {
            logs[row] = log;
        }
        Ok(logs)
    }

    /// The log-likelihood of rows, and how many of them lie outside the box. Errors as [`DensityView::log_density`].
    pub fn score(&self, points: Points<'_>) -> Result<DensityScore> {
        let (inside, coordinates) = self.model.inside(points)?;
        let n_rows = points.n_rows();
        let sum = self.logs(&coordinates, Counting::Present).iter().sum();
        Ok(DensityScore { n_rows, n_outside: n_rows - inside.len(), inside: sum })
    }

    /// The log density at each of the given learned rows of the model that was fitted without it (box and γ fixed).
    ///
    /// # Errors
    /// [`Error::UnknownRow`] for a row that was not learned, [`Error::LengthMismatch`], [`Error::WithoutRows`].
    pub fn leave_one_out(&self, points: Points<'_>) -> Result<Vec<f64>> {
        self.model.forest().check_rows("leaving rows out")?;
        let store = self.model.forest().store();
        let coordinates = self.model.forest().coordinates(points)?;
        for (row, x) in coordinates.chunks_exact(store.n_dims()).enumerate() {
            if store.find(x).is_none() {
                return Err(Error::UnknownRow { row });
            }
        }
        Ok(self.logs(&coordinates, Counting::LeftOut))
    }

    /// The sum of the leave-one-out log densities of all learned rows; zero without any, and NaN for a density that was finished
    /// from a summary and does not hold them.
    pub fn leave_one_out_score(&self) -> f64 {
        if self.model.forest().summary().is_some() {
            return f64::NAN;
        }
        let (points, coordinates) = self.model.stored();
        let logs = self.logs(&coordinates, Counting::LeftOut);
        logs.iter().zip(points).map(|(log, rows)| log * f64::from(rows)).sum()
    }

    /// Log densities of rows in measure coordinates inside the box.
    pub(crate) fn logs(&self, coordinates: &[f64], counting: Counting) -> Vec<f64> {
        let polya = Polya { gamma: self.model.gamma() };
        let mut logs = log_growth(self.model.forest(), coordinates, self.lifetime, polya, counting);
        let log_volume = self.model.log_volume();
        logs.iter_mut().for_each(|log| *log -= log_volume);
        logs
    }
}
