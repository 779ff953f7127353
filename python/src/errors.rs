//! Errors of the library as Python exceptions: the one place where they are translated.

use mondrian::Error;
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// The exception for an error, with the library's own message.
pub(crate) fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    match error {
        Error::NotFitted => not_fitted(py, &error.to_string()),
        Error::Cancelled => PyKeyboardInterrupt::new_err(error.to_string()),
        Error::TooLarge { what, .. } if what.starts_with("bytes of") => PyMemoryError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}

/// A value that is none of the choices.
pub(crate) fn unknown(name: &str, word: &str) -> PyErr {
    PyValueError::new_err(format!("{name} is {word:?}, not a known one"))
}

/// JSON that cannot be written or read.
pub(crate) fn from_json(error: serde_json::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// scikit-learn's own exception, so that existing handlers catch it.
fn not_fitted(py: Python<'_>, message: &str) -> PyErr {
    let made = py
        .import("sklearn.exceptions")
        .and_then(|module| module.getattr("NotFittedError"))
        .and_then(|class| class.call1((message,)));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(_) => PyValueError::new_err(message.to_owned()),
    }
}

/// A panic is a bug of the library. It becomes an ordinary exception, which `except Exception` can catch.
pub(crate) fn from_panic(payload: &(dyn std::any::Any + Send)) -> PyErr {
    let what = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    PyRuntimeError::new_err(format!("a mistake inside mondrian, please report it: {what}"))
}
