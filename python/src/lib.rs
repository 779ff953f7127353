//! The binding of the Python package `mondrian`: arguments in, library call without the interpreter's lock, arrays out.
//!
//! The parts of a scikit-learn estimator (parameters, validation, feature names) are in Python, in `mondrian/`; nothing
//! is computed here.

// Python's calling convention: arguments are extracted by value, there may be many, and results are tuples of arrays.
#![allow(clippy::needless_pass_by_value, clippy::too_many_arguments, clippy::type_complexity)]

mod arrays;
mod classification;
mod density;
mod errors;
mod features;
mod files;
mod grid;
mod grid_search;
mod kernel;
mod laplace;
mod memory;
mod model;
mod path;
mod process;
mod regression;
mod searched;
mod summary;
mod threads;
mod trees;
mod tuned;

#[pyo3::pymodule]
mod _mondrian {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::classification::{PyClassificationForest, PyClassificationPath};
    #[pymodule_export]
    use crate::density::{PyDensityClassifier, PyDensityForest};
    #[pymodule_export]
    use crate::features::PyFeatureMap;
    #[pymodule_export]
    use crate::files::read_model;
    #[pymodule_export]
    use crate::grid::PyGridRidge;
    #[pymodule_export]
    use crate::grid_search::PyGridSearch;
    #[pymodule_export]
    use crate::kernel::PyKernelRidge;
    #[pymodule_export]
    use crate::laplace::PyLaplaceKernelRidge;
    #[pymodule_export]
    use crate::memory::{max_memory, set_max_memory};
    #[pymodule_export]
    use crate::path::PyPath;
    #[pymodule_export]
    use crate::process::{PyInfiniteMondrian, PyPartition, py_poisson};
    #[pymodule_export]
    use crate::regression::PyRegressionForest;
    #[pymodule_export]
    use crate::summary::{PyDomain, PyMoments, PySummary};
    #[pymodule_export]
    use crate::trees::tuned_weights;
    #[pymodule_export]
    use crate::tuned::{PyLaplaceClassifier, PyLaplaceRegressor};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
