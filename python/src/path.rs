//! Regularization paths.

use mondrian::Lifetime;
use mondrian::RegularizationPath;
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::errors::to_python;
use crate::model::saved_as_json;

/// An immutable path.
#[pyclass(frozen, module = "mondrian._mondrian", name = "RegularizationPath")]
pub(crate) struct PyPath {
    path: RegularizationPath,
}

impl PyPath {
    pub(crate) fn new(path: RegularizationPath) -> Self {
        Self { path }
    }
}

saved_as_json!(PyPath, path);

#[pymethods]
impl PyPath {
    #[getter]
    fn loss(&self) -> &'static str {
        self.path.loss().name()
    }

    #[getter]
    fn lifetimes<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, self.path.lifetimes())
    }

    #[getter]
    fn train<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, self.path.train())
    }

    /// One array per validation set.
    #[getter]
    fn validation<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyArray1<f64>>> {
        self.path.validation().iter().map(|curve| PyArray1::from_slice(py, curve)).collect()
    }

    #[getter]
    fn leave_one_out<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        self.path.leave_one_out().map(|curve| PyArray1::from_slice(py, curve))
    }

    #[getter]
    fn best_lifetime(&self) -> f64 {
        self.path.best_lifetime().get()
    }

    #[getter]
    fn best_lifetime_1se(&self) -> f64 {
        self.path.best_lifetime_1se().get()
    }

    #[getter]
    fn standard_error(&self) -> Option<f64> {
        self.path.standard_error()
    }

    #[getter]
    fn is_thinned(&self) -> bool {
        self.path.is_thinned()
    }

    fn value_at(&self, py: Python<'_>, lifetime: f64) -> PyResult<f64> {
        let lifetime = Lifetime::new(lifetime).map_err(|error| to_python(py, &error))?;
        Ok(self.path.value_at(lifetime))
    }

    fn thinned(&self, cap: usize) -> Self {
        Self { path: self.path.thinned(cap) }
    }

    fn to_svg(&self) -> String {
        self.path.to_svg()
    }
}
