//! A table of inputs in which a cell may be missing.

use crate::{Error, Points, Result};

/// A borrowed table of inputs, one row per point; NaN is a missing cell.
///
/// ```
/// use mondrian::Cells;
/// let cells = Cells::row_major(&[0.0, f64::NAN, 2.0, 3.0], 2)?;
/// assert!(cells.get(0, 1).is_nan());
/// assert!(Cells::row_major(&[0.0, f64::INFINITY], 2).is_err());
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Cells<'a> {
    data: &'a [f64],
    n_columns: usize,
}

impl<'a> Cells<'a> {
    /// Rows of `n_columns` cells, one after the other.
    ///
    /// # Errors
    /// [`Error::Empty`] without columns, [`Error::LengthMismatch`] if the last row is incomplete, [`Error::NotFinite`]
    /// for an infinite cell.
    pub fn row_major(data: &'a [f64], n_columns: usize) -> Result<Self> {
        if n_columns == 0 {
            return Err(Error::Empty { what: "X", rows: data.len(), columns: 0 });
        }
        if !data.len().is_multiple_of(n_columns) {
            let expected = data.len() / n_columns * n_columns;
            return Err(Error::LengthMismatch { what: "numbers in X", expected, found: data.len() });
        }
        match data.iter().position(|x| x.is_infinite()) {
            Some(k) => Err(Error::NotFinite { what: "X", row: k / n_columns, column: k % n_columns, value: data[k] }),
            None => Ok(Self { data, n_columns }),
        }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.data.len() / self.n_columns
    }

    /// Number of columns.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// One cell.
    ///
    /// # Panics
    /// If row or column is out of range.
    pub fn get(&self, row: usize, column: usize) -> f64 {
        assert!(column < self.n_columns, "column within the table");
        self.data[row * self.n_columns + column]
    }

    /// The cells of one row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> &'a [f64] {
        &self.data[row * self.n_columns..][..self.n_columns]
    }

    /// The cells of one column.
    pub fn column(&self, column: usize) -> impl ExactSizeIterator<Item = f64> + 'a {
        let (data, width) = (self.data, self.n_columns);
        (0..data.len() / width).map(move |row| data[row * width + column])
    }

    pub(crate) fn check_width(&self, expected: usize) -> Result<()> {
        if self.n_columns == expected {
            Ok(())
        } else {
            Err(Error::LengthMismatch { what: "columns of X", expected, found: self.n_columns })
        }
    }

    /// The cells of points whose numbers lie row by row.
    ///
    /// # Errors
    /// Those of [`Cells::row_major`].
    pub fn of_points(points: Points<'a>, copy: &'a mut Vec<f64>) -> Result<Self> {
        *copy = points.to_row_major();
        Self::row_major(copy, points.n_columns())
    }
}
