//! A checked view of a table of points, in row-major or column-major order.

use std::borrow::Cow;

use crate::simd::vectorise;
use crate::{Error, Result};

/// A borrowed table of finite numbers, one point per row.
///
/// Row-major and column-major memory are both supported, so NumPy arrays of either order need no copy.
///
/// ```
/// use mondrian::Points;
/// let points = Points::row_major(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], 2)?;
/// assert_eq!((points.n_rows(), points.get(2, 1)), (3, 5.0));
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Points<'a> {
    data: &'a [f64],
    n_rows: usize,
    n_columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a> Points<'a> {
    /// Rows of `n_columns` numbers, one after the other.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `data` is not a whole number of rows, [`Error::Empty`] without columns,
    /// [`Error::NotFinite`] with the place of the first NaN or infinity. No rows at all is fine.
    pub fn row_major(data: &'a [f64], n_columns: usize) -> Result<Self> {
        if n_columns == 0 {
            return Err(Error::Empty { what: "X", rows: data.len(), columns: 0 });
        }
        let n_rows = data.len() / n_columns;
        Self::strided(data, n_rows, n_columns, n_columns, 1)
    }

    /// Columns of `n_rows` numbers, one after the other. Errors as for [`Points::row_major`].
    pub fn column_major(data: &'a [f64], n_rows: usize, n_columns: usize) -> Result<Self> {
        if n_columns == 0 {
            return Err(Error::Empty { what: "X", rows: n_rows, columns: 0 });
        }
        Self::strided(data, n_rows, n_columns, 1, n_rows)
    }

    /// Rows of D numbers each. Errors as for [`Points::row_major`].
    ///
    /// ```
    /// use mondrian::Points;
    /// let points = Points::of_rows(&[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])?;
    /// assert_eq!((points.n_rows(), points.get(2, 1)), (3, 5.0));
    /// # Ok::<(), mondrian::Error>(())
    /// ```
    pub fn of_rows<const D: usize>(rows: &'a [[f64; D]]) -> Result<Self> {
        Self::row_major(rows.as_flattened(), D)
    }

    /// Collects rows of equal length from an iterator into `room`, and views them there.
    ///
    /// ```
    /// use mondrian::Points;
    /// let mut room = Vec::new();
    /// let points = Points::collect((0..3).map(|i| [f64::from(i), 1.0]), &mut room)?;
    /// assert_eq!((points.n_rows(), points.n_columns()), (3, 2));
    /// # Ok::<(), mondrian::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Points::row_major`], [`Error::LengthMismatch`] for a row of another length than the first.
    pub fn collect<R: AsRef<[f64]>>(rows: impl IntoIterator<Item = R>, room: &'a mut Vec<f64>) -> Result<Self> {
        room.clear();
        let mut n_columns = None;
        for row in rows {
            let row = row.as_ref();
            let expected = *n_columns.get_or_insert(row.len());
            if row.len() != expected {
                return Err(Error::LengthMismatch { what: "columns of a row of X", expected, found: row.len() });
            }
            room.extend_from_slice(row);
        }
        Self::row_major(room, n_columns.unwrap_or(0))
    }

    fn strided(
        data: &'a [f64],
        n_rows: usize,
        n_columns: usize,
        row_stride: usize,
        column_stride: usize,
    ) -> Result<Self> {
        if data.len() != n_rows * n_columns {
            return Err(Error::LengthMismatch {
                what: "numbers in X",
                expected: n_rows * n_columns,
                found: data.len(),
            });
        }
        let points = Self { data, n_rows, n_columns, row_stride, column_stride };
        match first_not_finite(data) {
            None => Ok(points),
            Some(at) => {
                let (row, column) =
                    if column_stride == 1 { (at / n_columns, at % n_columns) } else { (at % n_rows, at / n_rows) };
                Err(Error::NotFinite { what: "X", row, column, value: data[at] })
            }
        }
    }

    /// Number of points.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of dimensions.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// One coordinate of one point.
    ///
    /// # Panics
    /// If row or column is out of range.
    #[inline]
    pub fn get(&self, row: usize, column: usize) -> f64 {
        assert!(column < self.n_columns, "column within the table");
        self.data[row * self.row_stride + column * self.column_stride]
    }

    /// The coordinates of one point.
    pub fn row(&self, row: usize) -> impl ExactSizeIterator<Item = f64> + 'a {
        let (data, stride, start) = (self.data, self.column_stride, row * self.row_stride);
        (0..self.n_columns).map(move |column| data[start + column * stride])
    }

    /// One coordinate of all points.
    pub fn column(&self, column: usize) -> impl ExactSizeIterator<Item = f64> + 'a {
        let (data, stride, start) = (self.data, self.row_stride, column * self.column_stride);
        (0..self.n_rows).map(move |row| data[start + row * stride])
    }

    /// The point as a slice, if it is contiguous in memory.
    pub fn row_slice(&self, row: usize) -> Option<&'a [f64]> {
        (self.column_stride == 1).then(|| &self.data[row * self.row_stride..][..self.n_columns])
    }

    /// Some of the points, by row number, without a copy.
    ///
    /// # Panics
    /// If the range does not lie within the table.
    #[must_use]
    pub fn rows(&self, range: std::ops::Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.n_rows, "rows within the table");
        let data = if self.column_stride == 1 {
            &self.data[range.start * self.row_stride..range.end * self.row_stride]
        } else {
            &self.data[range.start..]
        };
        Self { data, n_rows: range.len(), ..*self }
    }

    /// A row-major copy.
    pub fn to_row_major(&self) -> Vec<f64> {
        self.as_row_major().into_owned()
    }

    /// The numbers in row-major order, copied only if they are stored in another order.
    pub fn as_row_major(&self) -> Cow<'a, [f64]> {
        if self.column_stride == 1 {
            return Cow::Borrowed(self.data);
        }
        Cow::Owned((0..self.n_rows).flat_map(|row| self.row(row)).collect())
    }

    /// Rows that are known to be finite.
    pub(crate) fn of_checked(data: &'a [f64], n_columns: usize) -> Self {
        debug_assert!(data.len().is_multiple_of(n_columns) && first_not_finite(data).is_none());
        Self { data, n_rows: data.len() / n_columns, n_columns, row_stride: n_columns, column_stride: 1 }
    }

    /// Refuses a table whose width is not `expected`.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`].
    pub fn check_width(&self, expected: usize) -> Result<()> {
        if self.n_columns == expected {
            Ok(())
        } else {
            Err(Error::LengthMismatch { what: "columns of X", expected, found: self.n_columns })
        }
    }
}

impl<'a, const D: usize> TryFrom<&'a [[f64; D]]> for Points<'a> {
    type Error = Error;

    fn try_from(rows: &'a [[f64; D]]) -> Result<Self> {
        Self::of_rows(rows)
    }
}

/// Where the first NaN or infinity is. One vectorised pass tests all numbers before the position is searched for.
pub(crate) fn first_not_finite(numbers: &[f64]) -> Option<usize> {
    // Integers as wide as the numbers, so that both fit the same vectors.
    let is_one_not = vectorise(
        #[inline(always)]
        || numbers.iter().fold(0, |any, x| any | u64::from(!x.is_finite())) != 0,
    );
    if is_one_not { numbers.iter().position(|x| !x.is_finite()) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_orders_show_the_same_table() {
        let rows = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let columns = [1.0, 4.0, 2.0, 5.0, 3.0, 6.0];
        let a = Points::row_major(&rows, 3).unwrap();
        let b = Points::column_major(&columns, 2, 3).unwrap();
        assert_eq!(a.to_row_major(), b.to_row_major());
        assert_eq!(b.column(1).collect::<Vec<_>>(), [2.0, 5.0]);
        assert_eq!(b.get(1, 0), 4.0);
        assert_eq!(a.row_slice(1), Some(&rows[3..]));
        assert_eq!(b.row_slice(1), None);
        for points in [a, b] {
            assert_eq!(points.rows(1..2).to_row_major(), [4.0, 5.0, 6.0]);
            assert_eq!(points.rows(1..2).column(2).collect::<Vec<_>>(), [6.0]);
            assert_eq!((points.rows(0..2).n_rows(), points.rows(2..2).to_row_major().len()), (2, 0));
        }
    }

    #[test]
    fn says_where_a_number_is_not_finite() {
        let bad = [0.0, 1.0, 2.0, f64::NAN, 4.0, 5.0];
        assert!(matches!(Points::row_major(&bad, 2), Err(Error::NotFinite { row: 1, column: 1, .. })));
        assert!(matches!(Points::column_major(&bad, 3, 2), Err(Error::NotFinite { row: 0, column: 1, .. })));
        assert_eq!(
            Points::row_major(&[0.0; 5], 2).unwrap_err(),
            Error::LengthMismatch { what: "numbers in X", expected: 4, found: 5 }
        );
        assert!(matches!(Points::row_major(&[], 0), Err(Error::Empty { .. })));
        assert_eq!(Points::row_major(&[], 2).unwrap().n_rows(), 0);
    }
}
