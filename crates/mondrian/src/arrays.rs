//! Views of `ndarray` in, arrays out.

use ndarray::{Array2, ArrayView2};

use crate::linalg::Matrix;
use crate::{Error, Points, Prediction, Result};

/// Points of a view in standard (row-major) or Fortran (column-major) layout, without a copy.
///
/// ```
/// use mondrian::Points;
/// use ndarray::array;
/// let rows = array![[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]];
/// assert_eq!(Points::try_from(rows.view())?.get(2, 0), 4.0);
/// assert_eq!(Points::try_from(rows.t())?.get(0, 2), 4.0);
/// # Ok::<(), mondrian::Error>(())
/// ```
///
/// # Errors
/// As for [`Points::row_major`], and [`Error::Incompatible`] for a view with gaps: copy it first.
impl<'a> TryFrom<ArrayView2<'a, f64>> for Points<'a> {
    type Error = Error;

    fn try_from(view: ArrayView2<'a, f64>) -> Result<Self> {
        let (n_rows, n_columns) = view.dim();
        if let Some(numbers) = view.to_slice() {
            return Self::row_major(numbers, n_columns);
        }
        match view.reversed_axes().to_slice() {
            Some(numbers) => Self::column_major(numbers, n_rows, n_columns),
            None => Err(Error::Incompatible { what: "layouts of the array and of points (copy the view)" }),
        }
    }
}

impl From<&Matrix> for Array2<f64> {
    fn from(matrix: &Matrix) -> Self {
        Self::from_shape_fn((matrix.n_rows(), matrix.n_columns()), |at| matrix[at])
    }
}

impl Prediction {
    /// Means and standard deviations as arrays of one row per point and one column per target.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the predictions are not a whole number of rows.
    pub fn to_arrays(&self, n_targets: usize) -> Result<(Array2<f64>, Array2<f64>)> {
        let n_rows = self.mean.len() / n_targets.max(1);
        let array = |numbers: &Vec<f64>| {
            Array2::from_shape_vec((n_rows, n_targets), numbers.clone()).map_err(|_| Error::LengthMismatch {
                what: "predictions",
                expected: n_rows * n_targets,
                found: numbers.len(),
            })
        };
        Ok((array(&self.mean)?, array(&self.std)?))
    }
}
