//! A column-major matrix, and borrowed blocks of one.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// A matrix of `f64`, its columns one after the other.
///
/// ```
/// use mondrian::Matrix;
/// let a = Matrix::from_fn(2, 3, |i, j| (10 * i + j) as f64);
/// assert_eq!(a.column(2), [2.0, 12.0]);
/// assert_eq!(a[(1, 0)], 10.0);
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Matrix {
    data: Vec<f64>,
    n_rows: usize,
    n_columns: usize,
}

impl Matrix {
    /// All zeros.
    pub fn zeros(n_rows: usize, n_columns: usize) -> Self {
        Self { data: vec![0.0; n_rows * n_columns], n_rows, n_columns }
    }

    /// The identity.
    pub fn identity(n: usize) -> Self {
        Self::from_fn(n, n, |i, j| f64::from(u8::from(i == j)))
    }

    /// Entry by entry, down the columns.
    pub fn from_fn(n_rows: usize, n_columns: usize, mut entry: impl FnMut(usize, usize) -> f64) -> Self {
        let mut data = Vec::with_capacity(n_rows * n_columns);
        for j in 0..n_columns {
            data.extend((0..n_rows).map(|i| entry(i, j)));
        }
        Self { data, n_rows, n_columns }
    }

    /// Takes columns that lie one after the other.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the length is not `n_rows` × `n_columns`.
    pub fn from_column_major(data: Vec<f64>, n_rows: usize, n_columns: usize) -> Result<Self> {
        if data.len() == n_rows * n_columns {
            Ok(Self { data, n_rows, n_columns })
        } else {
            Err(Error::LengthMismatch { what: "numbers in a matrix", expected: n_rows * n_columns, found: data.len() })
        }
    }

    /// One column.
    pub fn from_column(column: Vec<f64>) -> Self {
        Self { n_rows: column.len(), n_columns: 1, data: column }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of columns.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// One column.
    pub fn column(&self, j: usize) -> &[f64] {
        &self.data[j * self.n_rows..][..self.n_rows]
    }

    /// One column, to change.
    pub fn column_mut(&mut self, j: usize) -> &mut [f64] {
        &mut self.data[j * self.n_rows..][..self.n_rows]
    }

    /// All numbers, column after column.
    pub fn as_slice(&self) -> &[f64] {
        &self.data
    }

    /// All numbers, to change.
    pub fn as_mut_slice(&mut self) -> &mut [f64] {
        &mut self.data
    }

    /// The numbers themselves, column after column.
    pub fn into_vec(self) -> Vec<f64> {
        self.data
    }

    /// The whole, borrowed.
    pub fn view(&self) -> MatrixRef<'_> {
        self.block(self.n_rows, self.n_columns)
    }

    /// The first `n_rows` rows of the first `n_columns` columns.
    ///
    /// # Panics
    /// If the block is larger than the matrix.
    pub fn block(&self, n_rows: usize, n_columns: usize) -> MatrixRef<'_> {
        assert!(n_rows <= self.n_rows && n_columns <= self.n_columns, "block within the matrix");
        MatrixRef { data: &self.data[..self.n_rows * n_columns], n_rows, n_columns, stride: self.n_rows }
    }

    /// The whole, borrowed to change.
    pub fn view_mut(&mut self) -> MatrixMut<'_> {
        let (n_rows, n_columns) = (self.n_rows, self.n_columns);
        self.block_mut(n_rows, n_columns)
    }

    /// The first `n_rows` rows of the first `n_columns` columns, to change.
    ///
    /// # Panics
    /// If the block is larger than the matrix.
    pub fn block_mut(&mut self, n_rows: usize, n_columns: usize) -> MatrixMut<'_> {
        assert!(n_rows <= self.n_rows && n_columns <= self.n_columns, "block within the matrix");
        MatrixMut { stride: self.n_rows, data: &mut self.data[..self.n_rows * n_columns], n_rows, n_columns }
    }

    /// The transpose, copied in tiles that stay in cache.
    #[must_use]
    pub fn transposed(&self) -> Self {
        const TILE: usize = 32;
        let mut out = Self::zeros(self.n_columns, self.n_rows);
        for j0 in (0..self.n_columns).step_by(TILE) {
            for i0 in (0..self.n_rows).step_by(TILE) {
                for i in i0..(i0 + TILE).min(self.n_rows) {
                    for j in j0..(j0 + TILE).min(self.n_columns) {
                        out.data[i * self.n_columns + j] = self.data[j * self.n_rows + i];
                    }
                }
            }
        }
        out
    }

    /// Copies the lower triangle of a square matrix onto the upper one, in tiles.
    ///
    /// # Panics
    /// If the matrix is not square.
    pub fn mirror_lower(&mut self) {
        const TILE: usize = 32;
        assert_eq!(self.n_rows, self.n_columns, "a square matrix");
        let n = self.n_rows;
        for j0 in (0..n).step_by(TILE) {
            for i0 in (j0..n).step_by(TILE) {
                for i in i0..(i0 + TILE).min(n) {
                    for j in j0..(j0 + TILE).min(i) {
                        self.data[i * n + j] = self.data[j * n + i];
                    }
                }
            }
        }
    }
}

impl std::ops::Index<(usize, usize)> for Matrix {
    type Output = f64;

    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        assert!(i < self.n_rows, "row within the matrix");
        &self.data[j * self.n_rows + i]
    }
}

impl std::ops::IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut f64 {
        assert!(i < self.n_rows, "row within the matrix");
        &mut self.data[j * self.n_rows + i]
    }
}

/// A borrowed block of a column-major matrix.
#[derive(Debug, Clone, Copy)]
pub struct MatrixRef<'a> {
    data: &'a [f64],
    n_rows: usize,
    n_columns: usize,
    stride: usize,
}

impl<'a> MatrixRef<'a> {
    /// Columns of `n_rows` numbers, one after the other.
    ///
    /// # Panics
    /// If the length is not `n_rows` × `n_columns`.
    pub fn new(data: &'a [f64], n_rows: usize, n_columns: usize) -> Self {
        assert_eq!(data.len(), n_rows * n_columns, "a whole matrix");
        Self { data, n_rows, n_columns, stride: n_rows }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of columns.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// One column.
    pub fn column(&self, j: usize) -> &'a [f64] {
        &self.data[j * self.stride..][..self.n_rows]
    }

    /// One entry.
    pub fn get(&self, i: usize, j: usize) -> f64 {
        self.column(j)[i]
    }

    /// The columns of a range.
    #[must_use]
    pub fn columns(&self, range: std::ops::Range<usize>) -> Self {
        let data = &self.data[(range.start * self.stride).min(self.data.len())..];
        let n_columns = range.len();
        Self { data: &data[..(n_columns * self.stride).min(data.len())], n_columns, ..*self }
    }

    /// The rows from `first` on.
    #[must_use]
    pub(crate) fn rows_from(&self, first: usize) -> Self {
        Self { data: &self.data[first.min(self.data.len())..], n_rows: self.n_rows - first, ..*self }
    }

    /// The transpose, for a product; nothing is moved.
    pub fn t(self) -> Operand<'a> {
        Operand { view: self, transposed: true }
    }

    /// A copy.
    pub fn to_owned(&self) -> Matrix {
        let mut data = Vec::with_capacity(self.n_rows * self.n_columns);
        (0..self.n_columns).for_each(|j| data.extend_from_slice(self.column(j)));
        Matrix { data, n_rows: self.n_rows, n_columns: self.n_columns }
    }

    pub(crate) fn faer(self) -> faer::MatRef<'a, f64> {
        // An empty block may lie in an empty slice, which a stride would overrun.
        let stride = if self.n_columns == 0 { self.n_rows } else { self.stride };
        faer::MatRef::from_column_major_slice_with_stride(self.data, self.n_rows, self.n_columns, stride)
    }
}

/// A borrowed block of a column-major matrix, to change.
#[derive(Debug)]
pub struct MatrixMut<'a> {
    data: &'a mut [f64],
    n_rows: usize,
    n_columns: usize,
    stride: usize,
}

impl<'a> MatrixMut<'a> {
    /// Columns of `n_rows` numbers, one after the other.
    ///
    /// # Panics
    /// If the length is not `n_rows` × `n_columns`.
    pub fn new(data: &'a mut [f64], n_rows: usize, n_columns: usize) -> Self {
        assert_eq!(data.len(), n_rows * n_columns, "a whole matrix");
        Self { data, n_rows, n_columns, stride: n_rows }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of columns.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    pub(crate) fn faer(self) -> faer::MatMut<'a, f64> {
        let stride = if self.n_columns == 0 { self.n_rows } else { self.stride };
        faer::MatMut::from_column_major_slice_with_stride_mut(self.data, self.n_rows, self.n_columns, stride)
    }
}

/// A matrix in a product, as it is or transposed.
#[derive(Debug, Clone, Copy)]
pub struct Operand<'a> {
    view: MatrixRef<'a>,
    transposed: bool,
}

impl<'a> Operand<'a> {
    pub(crate) fn faer(self) -> faer::MatRef<'a, f64> {
        if self.transposed { self.view.faer().transpose() } else { self.view.faer() }
    }

    /// The other way round.
    #[must_use]
    pub fn t(self) -> Self {
        Self { transposed: !self.transposed, ..self }
    }
}

impl<'a> From<MatrixRef<'a>> for Operand<'a> {
    fn from(view: MatrixRef<'a>) -> Self {
        Self { view, transposed: false }
    }
}

impl<'a> From<&'a Matrix> for Operand<'a> {
    fn from(matrix: &'a Matrix) -> Self {
        matrix.view().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposes_and_mirrors_across_tile_borders() {
        let a = Matrix::from_fn(70, 33, |i, j| (100 * i + j) as f64);
        let t = a.transposed();
        assert!((0..70).all(|i| (0..33).all(|j| t[(j, i)] == a[(i, j)])));
        let mut s = Matrix::from_fn(67, 67, |i, j| if i >= j { (100 * i + j) as f64 } else { f64::NAN });
        s.mirror_lower();
        assert!((0..67).all(|i| (0..67).all(|j| s[(i, j)] == (100 * i.max(j) + i.min(j)) as f64)));
    }

    #[test]
    fn refuses_a_wrong_length() {
        assert!(matches!(Matrix::from_column_major(vec![0.0; 5], 2, 3), Err(Error::LengthMismatch { .. })));
    }
}
