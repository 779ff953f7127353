//! Array conversion: NumPy tables of either order are read in place.

use std::borrow::Cow;

use mondrian::{Points, Result};
use numpy::{Element, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::errors::to_python;

/// A table of numbers from Python: read in place if it is `float64`, in C or Fortran order and aligned; otherwise NumPy
/// makes a copy first.
pub(crate) struct Table<'py>(PyReadonlyArray2<'py, f64>);

impl<'a, 'py> FromPyObject<'a, 'py> for Table<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(array) = object.cast::<PyArray2<f64>>() {
            let array = array.try_readonly()?;
            if array.as_slice().is_ok() {
                return Ok(Self(array));
            }
            let copy = object.call_method1("copy", ("C",))?;
            return Ok(Self(copy.cast::<PyArray2<f64>>()?.try_readonly()?));
        }
        if object.cast::<PyArray2<f32>>().is_ok() {
            let copy = object.call_method1("astype", ("float64", "C"))?;
            return Ok(Self(copy.cast::<PyArray2<f64>>()?.try_readonly()?));
        }
        Err(PyTypeError::new_err("a two-dimensional array of float64 or float32 is expected"))
    }
}

impl Table<'_> {
    /// The checked view for the library. Large tables are checked without the interpreter's lock.
    pub(crate) fn points(&self, py: Python<'_>) -> PyResult<Points<'_>> {
        /// Releasing the lock takes as long as checking some hundred numbers.
        const LARGE: usize = 1 << 12;
        let Self(array) = self;
        let numbers = array.as_slice().map_err(|error| PyTypeError::new_err(error.to_string()))?;
        let (n_rows, n_columns, is_row_major) = (array.shape()[0], array.shape()[1], array.is_c_contiguous());
        let check = || {
            if is_row_major {
                Points::row_major(numbers, n_columns)
            } else {
                Points::column_major(numbers, n_rows, n_columns)
            }
        };
        let checked: Result<Points<'_>> = if numbers.len() < LARGE { check() } else { py.detach(check) };
        checked.map_err(|error| to_python(py, &error))
    }

    /// The numbers in row-major order, copied only if they are stored in another order, and the number of columns. They
    /// may be NaN.
    pub(crate) fn row_major(&self) -> PyResult<(Cow<'_, [f64]>, usize)> {
        let Self(array) = self;
        let numbers = array.as_slice().map_err(|error| PyTypeError::new_err(error.to_string()))?;
        let (n_rows, n_columns) = (array.shape()[0], array.shape()[1]);
        if array.is_c_contiguous() {
            return Ok((Cow::Borrowed(numbers), n_columns));
        }
        let by_row = (0..n_rows).flat_map(|i| (0..n_columns).map(move |j| numbers[j * n_rows + i])).collect();
        Ok((Cow::Owned(by_row), n_columns))
    }
}

/// A vector from Python, read in place if it is contiguous and aligned; otherwise NumPy makes a copy first.
pub(crate) struct Column<'py, T: Element = f64>(PyReadonlyArray1<'py, T>);

impl<'a, 'py, T: Element> FromPyObject<'a, 'py> for Column<'py, T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let array = object.cast::<PyArray1<T>>()?.try_readonly()?;
        if array.as_slice().is_ok() {
            return Ok(Self(array));
        }
        let copy = object.call_method1("copy", ("C",))?;
        let array = copy.cast::<PyArray1<T>>()?.try_readonly()?;
        array.as_slice().map_err(|error| PyTypeError::new_err(error.to_string()))?;
        Ok(Self(array))
    }
}

impl<T: Element> std::ops::Deref for Column<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.0.as_slice().expect("checked in the constructor")
    }
}

/// Rows from Python, with the targets of each.
pub(crate) type Labelled<'py, T = f64> = (Table<'py>, Column<'py, T>);

/// The same with the weight of each row.
pub(crate) type Weighted<'py, T = f64> = (Table<'py>, Column<'py, T>, Option<Column<'py>>);

/// Checked views of weighted rows.
pub(crate) fn views<'a, T: Element>(
    py: Python<'_>,
    (x, y, weights): &'a Weighted<'_, T>,
) -> PyResult<(Points<'a>, &'a [T], Option<&'a [f64]>)> {
    Ok((x.points(py)?, y, weights.as_deref()))
}

/// Checked views of several sets of rows.
pub(crate) fn all_points<'a, T: Element>(
    py: Python<'_>,
    sets: &'a [Labelled<'_, T>],
) -> PyResult<Vec<(Points<'a>, &'a [T])>> {
    sets.iter().map(|(x, y)| Ok((x.points(py)?, &**y))).collect()
}

/// Numbers for Python.
pub(crate) type NewVector<'py> = PyResult<Bound<'py, PyArray1<f64>>>;

/// Two arrays of numbers for Python.
pub(crate) type NewVectors<'py> = PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>)>;

/// A table for Python.
pub(crate) type NewTable<'py, T> = PyResult<Bound<'py, PyArray2<T>>>;

/// Numbers for Python.
pub(crate) fn vector(py: Python<'_>, numbers: Vec<f64>) -> Bound<'_, PyArray1<f64>> {
    PyArray1::from_vec(py, numbers)
}

/// A column-major table for Python: the transposed view of a row-major table of columns.
pub(crate) fn columns(py: Python<'_>, numbers: Vec<f64>, n_rows: usize) -> NewTable<'_, f64> {
    table(py, numbers, n_rows)?.transpose()
}

/// A row-major table for Python.
pub(crate) fn table<T: Element>(py: Python<'_>, numbers: Vec<T>, n_columns: usize) -> NewTable<'_, T> {
    let n_rows = numbers.len().checked_div(n_columns).unwrap_or(0);
    PyArray1::from_vec(py, numbers).reshape([n_rows, n_columns])
}
