//! What all bound models share: a lock of their own, and bytes for pickle.

use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A model that many threads of Python may ask and one may change.
///
/// The lock is only taken without the interpreter's own, inside [`crate::threads::run`]: neither waits for the other.
#[derive(Debug)]
pub(crate) struct Shared<M>(RwLock<M>);

impl<M> Shared<M> {
    pub(crate) fn new(model: M) -> Self {
        Self(RwLock::new(model))
    }

    /// To ask.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, M> {
        self.0.read().expect("an earlier mistake has left the model half changed: fit it again")
    }

    /// To change.
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, M> {
        self.0.write().expect("an earlier mistake has left the model half changed: fit it again")
    }
}

/// The functions that pickle and model files need, for a class whose field `model` is a [`Shared`] of a saved model.
macro_rules! saved_as_bytes {
    ($class:ty, $model:ty) => {
        #[pyo3::pymethods]
        impl $class {
            /// The bytes of a model file.
            fn to_bytes<'py>(&self, py: pyo3::Python<'py>) -> pyo3::PyResult<pyo3::Bound<'py, pyo3::types::PyBytes>> {
                use mondrian::model_file::Saved;
                let bytes = $crate::threads::run(py, 1, || self.model.read().to_bytes())?;
                Ok(pyo3::types::PyBytes::new(py, &bytes))
            }

            /// The model of a model file's bytes.
            #[staticmethod]
            fn from_bytes(py: pyo3::Python<'_>, bytes: &[u8]) -> pyo3::PyResult<Self> {
                use mondrian::model_file::Saved;
                let model = $crate::threads::run(py, 1, || <$model>::from_bytes(bytes))?;
                Ok(Self { model: $crate::model::Shared::new(model) })
            }

            fn __reduce__<'py>(
                slf: &pyo3::Bound<'py, Self>,
            ) -> pyo3::PyResult<(pyo3::Bound<'py, pyo3::PyAny>, (pyo3::Bound<'py, pyo3::types::PyBytes>,))> {
                use pyo3::types::PyAnyMethods;
                Ok((slf.get_type().getattr("from_bytes")?, (slf.get().to_bytes(slf.py())?,)))
            }
        }
    };
}

pub(crate) use saved_as_bytes;
