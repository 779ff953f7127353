//! Rows as the kernel sees them: everything that tuning decides is already in their coordinates.

use crate::points::first_not_finite;
use crate::{Error, Result};

/// Rows of the kernel
///
/// k(x, x') = exp(−Σ_k |a_k − a'_k| − Σ_k ν_k·1\[c_k ≠ c'_k\] − ‖b − b'‖₂^p)
///
/// with `axes` a = λ∘x (coordinates times lifetimes), `levels` c (codes of categories, of weight ν each) and
/// `directions` b = A·x. Each of the three kinds of columns may be missing, not all of them.
///
/// ```
/// use mondrian::internals::laplace::KernelRows;
/// let rows = KernelRows::of_axes(vec![0.0, 0.0, 1.0, 0.5], 2)?;
/// assert_eq!(rows.entry(0, 1), (-1.5_f64).exp());
/// let rows = rows.with_levels(vec![7, 7], vec![2.0])?.with_directions(vec![0.0, 0.0, 3.0, 4.0], 2, 1.0)?;
/// assert_eq!(rows.entry(0, 1), (-1.5_f64 - 5.0).exp());
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct KernelRows {
    n_rows: usize,
    n_axes: usize,
    n_directions: usize,
    axes: Vec<f64>,
    levels: Vec<u32>,
    level_weights: Vec<f64>,
    directions: Vec<f64>,
    exponent: f64,
}

/// Codes of categories are below this, so that single precision holds them exactly.
pub const MOST_LEVELS: u32 = 1 << 24;

impl KernelRows {
    /// Rows of axes alone, row-major: coordinates times their lifetimes.
    ///
    /// # Errors
    /// [`Error::Empty`] without columns, [`Error::LengthMismatch`] if a row is incomplete, [`Error::NotFinite`].
    pub fn of_axes(axes: Vec<f64>, n_axes: usize) -> Result<Self> {
        if n_axes == 0 {
            return Err(Error::Empty { what: "axes", rows: 0, columns: 0 });
        }
        let n_rows = axes.len() / n_axes;
        Self::without_columns(n_rows).with_axes(axes, n_axes)
    }

    /// So many rows without any column yet: their kernel is 1.
    pub fn without_columns(n_rows: usize) -> Self {
        Self {
            n_rows,
            n_axes: 0,
            n_directions: 0,
            axes: Vec::new(),
            levels: Vec::new(),
            level_weights: Vec::new(),
            directions: Vec::new(),
            exponent: 1.0,
        }
    }

    /// The same rows with these axes, row-major, instead of their own.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] unless there is one row each, [`Error::NotFinite`].
    pub fn with_axes(self, axes: Vec<f64>, n_axes: usize) -> Result<Self> {
        self.check_table("axes", &axes, n_axes)?;
        Ok(Self { n_axes, axes, ..self })
    }

    /// The same rows with these codes of categories, row-major, and the weight ν ≥ 0 of each of their columns.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] unless there is one row each, [`Error::InvalidParameter`] for a weight that is negative
    /// or not finite or a code from 2²⁴ on.
    pub fn with_levels(self, levels: Vec<u32>, level_weights: Vec<f64>) -> Result<Self> {
        check_length("codes of categories", self.n_rows * level_weights.len(), levels.len())?;
        if let Some(&value) = level_weights.iter().find(|w| !(w.is_finite() && **w >= 0.0)) {
            return Err(Error::InvalidParameter { name: "the weight of a category", value, expected: "at least 0" });
        }
        if let Some(&code) = levels.iter().find(|code| **code >= MOST_LEVELS) {
            let value = f64::from(code);
            return Err(Error::InvalidParameter { name: "the code of a category", value, expected: "less than 2^24" });
        }
        Ok(Self { levels, level_weights, ..self })
    }

    /// The same rows with these directions A·x, row-major, and the exponent 0 < p ≤ 2 of their distance.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] unless there is one row each, [`Error::NotFinite`], [`Error::InvalidParameter`].
    pub fn with_directions(self, directions: Vec<f64>, n_directions: usize, exponent: f64) -> Result<Self> {
        self.check_table("directions", &directions, n_directions)?;
        if !(exponent > 0.0 && exponent <= 2.0) {
            return Err(Error::InvalidParameter {
                name: "exponent",
                value: exponent,
                expected: "above 0 and at most 2",
            });
        }
        Ok(Self { n_directions, directions, exponent, ..self })
    }

    fn check_table(&self, what: &'static str, table: &[f64], n_columns: usize) -> Result<()> {
        check_length(what, self.n_rows * n_columns, table.len())?;
        match first_not_finite(table) {
            Some(k) => Err(Error::NotFinite { what, row: k / n_columns, column: k % n_columns, value: table[k] }),
            None => Ok(()),
        }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of axes.
    pub fn n_axes(&self) -> usize {
        self.n_axes
    }

    /// Number of columns of categories.
    pub fn n_levels(&self) -> usize {
        self.level_weights.len()
    }

    /// Number of directions.
    pub fn n_directions(&self) -> usize {
        self.n_directions
    }

    /// The axes, row-major.
    pub fn axes(&self) -> &[f64] {
        &self.axes
    }

    /// The codes of categories, row-major.
    pub fn levels(&self) -> &[u32] {
        &self.levels
    }

    /// ν, one per column of categories.
    pub fn level_weights(&self) -> &[f64] {
        &self.level_weights
    }

    /// The directions, row-major.
    pub fn directions(&self) -> &[f64] {
        &self.directions
    }

    /// p.
    pub fn exponent(&self) -> f64 {
        self.exponent
    }

    /// The rows of these numbers, in their order.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        fn table<T: Copy>(table: &[T], n: usize, rows: &[usize]) -> Vec<T> {
            let mut out = Vec::with_capacity(rows.len() * n);
            rows.iter().for_each(|&i| out.extend_from_slice(&table[i * n..][..n]));
            out
        }
        Self {
            n_rows: rows.len(),
            axes: table(&self.axes, self.n_axes, rows),
            levels: table(&self.levels, self.n_levels(), rows),
            directions: table(&self.directions, self.n_directions, rows),
            level_weights: self.level_weights.clone(),
            ..*self
        }
    }

    /// Appends rows of the same kernel.
    ///
    /// # Errors
    /// [`Error::Incompatible`] if they have other columns.
    pub fn append(&mut self, other: &Self) -> Result<()> {
        self.check_same_columns(other)?;
        self.axes.extend_from_slice(&other.axes);
        self.levels.extend_from_slice(&other.levels);
        self.directions.extend_from_slice(&other.directions);
        self.n_rows += other.n_rows;
        Ok(())
    }

    /// Whether rows of another table are of the same kernel.
    pub(crate) fn check_same_columns(&self, other: &Self) -> Result<()> {
        let shape = |rows: &Self| (rows.n_axes, rows.n_levels(), rows.n_directions);
        if shape(self) == shape(other) && self.exponent == other.exponent && self.level_weights == other.level_weights {
            Ok(())
        } else {
            Err(Error::Incompatible { what: "the columns of two tables of kernel rows" })
        }
    }

    /// −ln k of row i and row j of another table, slowly: the definition that fast code is checked against.
    ///
    /// # Panics
    /// If there is no such row, or the tables have different columns.
    pub fn distance_to(&self, i: usize, other: &Self, j: usize) -> f64 {
        let (q, c, r) = (self.n_axes, self.n_levels(), self.n_directions);
        assert!(q == other.n_axes && c == other.n_levels() && r == other.n_directions, "the same columns");
        let axes = self.axes[i * q..][..q].iter().zip(&other.axes[j * q..][..q]);
        let codes = self.levels[i * c..][..c].iter().zip(&other.levels[j * c..][..c]);
        let directions = self.directions[i * r..][..r].iter().zip(&other.directions[j * r..][..r]);
        let along_axes: f64 = axes.map(|(a, b)| (a - b).abs()).sum();
        let between_levels: f64 =
            codes.zip(&self.level_weights).map(|((a, b), weight)| if a == b { 0.0 } else { *weight }).sum();
        let squares: f64 = directions.map(|(a, b)| (a - b) * (a - b)).sum();
        along_axes + between_levels + squares.powf(0.5 * self.exponent)
    }

    /// The kernel of rows i and j, slowly. Panics as [`KernelRows::distance_to`].
    pub fn entry(&self, i: usize, j: usize) -> f64 {
        (-self.distance_to(i, self, j)).exp()
    }
}

fn check_length(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::LengthMismatch { what, expected, found }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mixed() -> KernelRows {
        let rows = KernelRows::of_axes(vec![0.0, 1.0, 3.0, 2.0, 5.0, 5.0], 2).unwrap();
        let rows = rows.with_levels(vec![1, 2, 1, 3, 4, 3], vec![0.5, 0.25]).unwrap();
        rows.with_directions(vec![0.0, 2.0, 4.0], 1, 1.5).unwrap()
    }

    #[test]
    fn entries_are_the_kernel() {
        let rows = mixed();
        let expected = 3.0 + 1.0 + 0.25 + 2.0_f64.powf(1.5);
        assert!((rows.entry(0, 1) - (-expected).exp()).abs() < 1e-15);
        assert_eq!(rows.entry(2, 2), 1.0);
        assert_eq!(KernelRows::without_columns(2).entry(0, 1), 1.0);
    }

    #[test]
    fn rows_are_selected_and_appended() {
        let rows = mixed();
        let mut two = rows.select(&[2, 0]);
        assert_eq!(two.entry(0, 1), rows.entry(2, 0));
        two.append(&rows.select(&[1])).unwrap();
        assert_eq!((two.n_rows(), two.entry(1, 2)), (3, rows.entry(0, 1)));
        let other = KernelRows::of_axes(vec![0.0, 1.0], 2).unwrap();
        assert!(matches!(two.append(&other), Err(Error::Incompatible { .. })));
    }

    #[test]
    fn tables_that_do_not_fit_are_refused() {
        assert!(matches!(KernelRows::of_axes(vec![], 0), Err(Error::Empty { .. })));
        assert!(matches!(KernelRows::of_axes(vec![0.0; 3], 2), Err(Error::LengthMismatch { .. })));
        let nan = KernelRows::of_axes(vec![0.0, 0.0, 0.0, f64::NAN], 2);
        assert!(matches!(nan, Err(Error::NotFinite { row: 1, column: 1, .. })));
        let rows = KernelRows::of_axes(vec![0.0; 4], 2).unwrap();
        assert!(rows.clone().with_levels(vec![1, 2, 3], vec![1.0]).is_err());
        assert!(rows.clone().with_levels(vec![1, 2], vec![-1.0]).is_err());
        assert!(rows.clone().with_levels(vec![1, MOST_LEVELS], vec![1.0]).is_err());
        assert!(rows.clone().with_directions(vec![1.0; 3], 1, 1.0).is_err());
        assert!(rows.with_directions(vec![1.0; 2], 1, 2.5).is_err());
    }
}
