//! The memory limit, set by `mondrian.set_config`.

use pyo3::prelude::*;

/// Sets how many bytes a matrix or table may take; `None` for no limit.
#[pyfunction]
#[pyo3(signature = (bytes))]
pub(crate) fn set_max_memory(bytes: Option<u64>) {
    mondrian::set_max_memory(bytes);
}

/// The limit in bytes, if there is one.
#[pyfunction]
pub(crate) fn max_memory() -> Option<u64> {
    mondrian::internals::memory::max_memory()
}
