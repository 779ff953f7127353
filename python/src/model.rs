//! The base of all bound models: a lock, bytes for pickle and files, and queries of trees.

use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use mondrian::Progress;
use mondrian::internals::tree::Domain;
use mondrian::process::BuiltInMeasure;
use mondrian::{Points, Result};
use pyo3::prelude::*;

use crate::arrays::{NewTable, NewVector, NewVectors, Table, table, vector};
use crate::threads::{Work, run, run_interruptibly};

/// A model that many Python threads may query and one may change.
///
/// The lock is only taken without the interpreter's own, inside [`crate::threads::run`]: neither waits for the other.
#[derive(Debug)]
pub(crate) struct Shared<M>(RwLock<M>);

impl<M: Send + Sync> Shared<M> {
    pub(crate) fn new(model: M) -> Self {
        Self(RwLock::new(model))
    }

    /// Locks the model for queries.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, M> {
        self.0.read().expect("an earlier mistake has left the model half changed: fit it again")
    }

    /// Locks the model for changes.
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, M> {
        self.0.write().expect("an earlier mistake has left the model half changed: fit it again")
    }

    /// Queries on some threads.
    pub(crate) fn query<T: Send>(
        &self,
        py: Python<'_>,
        n_threads: usize,
        method: impl FnOnce(&M) -> Result<T> + Send,
    ) -> PyResult<T> {
        run(py, n_threads, || method(&self.read()))
    }

    /// Changes on some threads.
    pub(crate) fn change(
        &self,
        py: Python<'_>,
        n_threads: usize,
        change: impl FnOnce(&mut M) -> Result<()> + Send,
    ) -> PyResult<()> {
        run(py, n_threads, || change(&mut self.write()))
    }

    /// A model of the same kind with another view or numbering.
    pub(crate) fn derived(&self, py: Python<'_>, make: impl FnOnce(&M) -> Result<M> + Send) -> PyResult<Self> {
        self.query(py, 1, make).map(Self::new)
    }

    /// Merges another model. It is copied first (cheaply), so that a model can be merged with itself.
    pub(crate) fn merge(
        &self,
        py: Python<'_>,
        n_threads: usize,
        other: &Self,
        merge: impl FnOnce(&mut M, &M) -> Result<()> + Send,
    ) -> PyResult<()>
    where
        M: Clone,
    {
        run(py, n_threads, || {
            let theirs = other.read().clone();
            merge(&mut self.write(), &theirs)
        })
    }

    /// Learns rows: directly, or with progress if there is a callback or it takes long.
    pub(crate) fn learn(
        &self,
        py: Python<'_>,
        work: &Work<'_>,
        n_rows: usize,
        learn: impl FnOnce(&mut M, Progress<'_>) -> Result<()> + Send,
    ) -> PyResult<()>
    where
        M: Grown,
    {
        // A further call per row would be measurable.
        let is_long = n_rows > 100 && self.query(py, 1, |model| Ok(model.is_long(n_rows)))?;
        if is_long || work.has_callback() {
            return work.run(py, |progress| learn(&mut self.write(), progress));
        }
        self.change(py, work.n_threads(), |model| learn(model, Progress::none()))
    }

    /// Numbers for Python.
    pub(crate) fn vector<'py>(
        &self,
        py: Python<'py>,
        n_threads: usize,
        method: impl FnOnce(&M) -> Result<Vec<f64>> + Send,
    ) -> NewVector<'py> {
        Ok(vector(py, self.query(py, n_threads, method)?))
    }

    /// Numbers about rows.
    pub(crate) fn vector_of<'py>(
        &self,
        py: Python<'py>,
        x: &Table<'_>,
        n_threads: usize,
        method: impl Fn(&M, Points<'_>) -> Result<Vec<f64>> + Send + Sync,
    ) -> NewVector<'py> {
        let points = x.points(py)?;
        let parts = self.query_in_batches(py, points, n_threads, method)?;
        Ok(vector(py, joined(parts)))
    }

    /// Two runs of numbers about rows.
    pub(crate) fn vectors_of<'py>(
        &self,
        py: Python<'py>,
        x: &Table<'_>,
        n_threads: usize,
        method: impl Fn(&M, Points<'_>) -> Result<(Vec<f64>, Vec<f64>)> + Send + Sync,
    ) -> NewVectors<'py> {
        let points = x.points(py)?;
        let (first, second) = self.query_in_batches(py, points, n_threads, method)?.into_iter().unzip();
        Ok((vector(py, joined(first)), vector(py, joined(second))))
    }

    /// A table about rows, row-major, and its number of columns.
    pub(crate) fn table_of<'py, T: numpy::Element + Send>(
        &self,
        py: Python<'py>,
        x: &Table<'_>,
        n_threads: usize,
        method: impl Fn(&M, Points<'_>) -> Result<(Vec<T>, usize)> + Send + Sync,
    ) -> NewTable<'py, T> {
        let points = x.points(py)?;
        let (numbers, n_columns): (Vec<_>, Vec<usize>) =
            self.query_in_batches(py, points, n_threads, method)?.into_iter().unzip();
        table(py, joined(numbers), n_columns.first().copied().unwrap_or(0))
    }

    /// Queries rows; many rows are split into batches, with a check for Ctrl-C between them. All batches use the same
    /// model.
    ///
    /// Rows traversed together share the reads of nodes, so batches should be large: each is four times the previous
    /// one until a batch takes a quarter of a second. 200 000 rows in batches of 8192 took 2.5 times as long.
    fn query_in_batches<T: Send>(
        &self,
        py: Python<'_>,
        points: Points<'_>,
        n_threads: usize,
        method: impl Fn(&M, Points<'_>) -> Result<T> + Send + Sync,
    ) -> PyResult<Vec<T>> {
        /// Rows of the first batch: hundreds of trees process these within a second.
        const FIRST: usize = 1 << 14;
        const LONG: Duration = Duration::from_millis(250);
        let n_rows = points.n_rows();
        if n_rows <= FIRST {
            return Ok(vec![self.query(py, n_threads, |model| method(model, points))?]);
        }
        run_interruptibly(py, n_threads, |go_on| {
            let model = self.read();
            let (mut parts, mut start, mut size) = (Vec::new(), 0, FIRST);
            while start < n_rows {
                go_on()?;
                let (end, begun) = ((start + size).min(n_rows), Instant::now());
                parts.push(method(&model, points.rows(start..end))?);
                start = end;
                if 4 * begun.elapsed() < LONG {
                    size *= 4;
                }
            }
            Ok(parts)
        })
    }
}

/// Parts one after the other; a single one is not copied.
fn joined<T>(mut parts: Vec<Vec<T>>) -> Vec<T> {
    if parts.len() == 1 { parts.swap_remove(0) } else { parts.into_iter().flatten().collect() }
}

/// Texts by name that a front end stores in a model file.
pub(crate) type Notes = Vec<(String, String)>;

/// A class of Python for a model of the library: behind a lock, and with the functions that pickle and files need.
macro_rules! bound {
    ($(#[$about:meta])* $class:ident, $name:literal, $model:ty) => {
        $(#[$about])*
        #[pyo3::pyclass(frozen, module = "mondrian._mondrian", name = $name)]
        pub(crate) struct $class {
            model: $crate::model::Shared<$model>,
        }

        impl From<$model> for $class {
            fn from(model: $model) -> Self {
                Self { model: $crate::model::Shared::new(model) }
            }
        }

        #[pyo3::pymethods]
        impl $class {
            /// The bytes of a model file, with more texts in its metadata.
            #[pyo3(signature = (notes = Vec::new()))]
            fn to_bytes<'py>(
                &self,
                py: pyo3::Python<'py>,
                notes: $crate::model::Notes,
            ) -> pyo3::PyResult<pyo3::Bound<'py, pyo3::types::PyBytes>> {
                use mondrian::Saved;
                let bytes = self.model.query(py, 1, |model| {
                    let mut archive = model.to_archive()?;
                    notes.iter().try_for_each(|(name, text)| archive.set_metadata(name, text))?;
                    archive.to_bytes()
                })?;
                Ok(pyo3::types::PyBytes::new(py, &bytes))
            }

            /// The model of a model file's bytes.
            #[staticmethod]
            fn from_bytes(py: pyo3::Python<'_>, bytes: &[u8]) -> pyo3::PyResult<Self> {
                use mondrian::Saved;
                Ok($crate::threads::run(py, 1, || <$model>::from_bytes(bytes))?.into())
            }

            fn __reduce__<'py>(
                slf: &pyo3::Bound<'py, Self>,
            ) -> pyo3::PyResult<(pyo3::Bound<'py, pyo3::PyAny>, (pyo3::Bound<'py, pyo3::types::PyBytes>,))> {
                use pyo3::types::PyAnyMethods;
                Ok((slf.get_type().getattr("from_bytes")?, (slf.get().to_bytes(slf.py(), Vec::new())?,)))
            }
        }
    };
}

pub(crate) use bound;

/// The functions that pickle needs, for a class with a JSON-serialisable value in the given field.
macro_rules! saved_as_json {
    ($class:ty, $field:ident) => {
        #[pyo3::pymethods]
        impl $class {
            fn to_json<'py>(&self, py: pyo3::Python<'py>) -> pyo3::PyResult<pyo3::Bound<'py, pyo3::types::PyBytes>> {
                let json = serde_json::to_vec(&self.$field).map_err($crate::errors::from_json)?;
                Ok(pyo3::types::PyBytes::new(py, &json))
            }

            #[staticmethod]
            fn from_json(py: pyo3::Python<'_>, json: &[u8]) -> pyo3::PyResult<Self> {
                let read = $crate::threads::run(py, 1, || Ok(serde_json::from_slice(json)))?;
                Ok(Self { $field: read.map_err($crate::errors::from_json)? })
            }

            fn __reduce__<'py>(
                slf: &pyo3::Bound<'py, Self>,
            ) -> pyo3::PyResult<(pyo3::Bound<'py, pyo3::PyAny>, (pyo3::Bound<'py, pyo3::types::PyBytes>,))> {
                use pyo3::types::PyAnyMethods;
                Ok((slf.get_type().getattr("from_json")?, (slf.get().to_json(slf.py())?,)))
            }
        }
    };
}

pub(crate) use saved_as_json;

/// A model with trees.
pub(crate) trait Grown {
    /// The domain of its trees.
    fn domain(&self) -> (&BuiltInMeasure, &Domain);

    /// The lifetime of the view.
    fn view(&self) -> f64;

    /// Trees and rows.
    fn size(&self) -> (usize, usize);

    /// Factors of the measure, one per dimension; `None` if it has no factors.
    fn weights(&self) -> Option<Vec<f64>> {
        let (measure, domain) = self.domain();
        match measure {
            BuiltInMeasure::Uniform => Some(vec![1.0; domain.n_dims()]),
            BuiltInMeasure::Weighted(weights) => Some(weights.factors().to_vec()),
            BuiltInMeasure::Quantile(_) => None,
        }
    }

    /// Whether learning this many rows takes so long, relative to the size of the model, that it should run on a copy
    /// and be cancellable.
    fn is_long(&self, n_rows: usize) -> bool {
        /// Insertions that take a fifth of a second or more.
        const LONG: usize = 1 << 18;
        let (n_trees, held) = self.size();
        n_rows.saturating_mul(n_trees) >= LONG && n_rows.saturating_mul(8) >= held
    }
}

/// [`Grown`] for a model that holds a forest and counts its rows.
macro_rules! grown_forest {
    ($model:ty) => {
        impl $crate::model::Grown for $model {
            fn domain(&self) -> (&mondrian::process::BuiltInMeasure, &mondrian::internals::tree::Domain) {
                (self.forest().measure(), self.forest().domain())
            }

            fn view(&self) -> f64 {
                self.lifetime().get()
            }

            fn size(&self) -> (usize, usize) {
                (self.forest().n_trees(), self.forest().n_rows())
            }
        }
    };
}

pub(crate) use grown_forest;

/// The getters of a class whose field `model` is a [`Shared`] of a [`Grown`] model.
macro_rules! with_trees {
    ($class:ty) => {
        #[pyo3::pymethods]
        impl $class {
            #[getter]
            fn lifetime(&self, py: pyo3::Python<'_>) -> pyo3::PyResult<f64> {
                self.model.query(py, 1, |model| Ok($crate::model::Grown::view(model)))
            }

            /// The lifetime that the trees are grown to.
            #[getter]
            fn grown(&self, py: pyo3::Python<'_>) -> pyo3::PyResult<f64> {
                self.model.query(py, 1, |model| Ok($crate::model::Grown::domain(model).1.lifetime().get()))
            }

            #[getter]
            fn n_rows(&self, py: pyo3::Python<'_>) -> pyo3::PyResult<usize> {
                self.model.query(py, 1, |model| Ok($crate::model::Grown::size(model).1))
            }

            #[getter]
            fn n_dims(&self, py: pyo3::Python<'_>) -> pyo3::PyResult<usize> {
                self.model.query(py, 1, |model| Ok($crate::model::Grown::domain(model).1.n_dims()))
            }

            /// One factor per dimension, or `None` under the quantile measure.
            #[getter]
            fn weights(&self, py: pyo3::Python<'_>) -> pyo3::PyResult<Option<Vec<f64>>> {
                self.model.query(py, 1, |model| Ok($crate::model::Grown::weights(model)))
            }
        }
    };
}

pub(crate) use with_trees;
