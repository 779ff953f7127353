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

    /// For queries.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, M> {
        self.0.read().expect("an earlier mistake has left the model half changed: fit it again")
    }

    /// To change.
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, M> {
        self.0.write().expect("an earlier mistake has left the model half changed: fit it again")
    }

    /// Queries on some threads.
    pub(crate) fn ask<T: Send>(
        &self,
        py: Python<'_>,
        n_threads: usize,
        question: impl FnOnce(&M) -> Result<T> + Send,
    ) -> PyResult<T> {
        run(py, n_threads, || question(&self.read()))
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

    /// A model of the same kind, looked at or numbered differently.
    pub(crate) fn derived(&self, py: Python<'_>, make: impl FnOnce(&M) -> Result<M> + Send) -> PyResult<Self> {
        self.ask(py, 1, make).map(Self::new)
    }

    /// Takes in what another model knows. It is copied first (cheaply), so that a model can be merged with itself.
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

    /// Learns rows: at once, or with progress if there is a callback or it takes long.
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
        // Row by row a question more would show.
        let is_long = n_rows > 100 && self.ask(py, 1, |model| Ok(model.is_long(n_rows)))?;
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
        question: impl FnOnce(&M) -> Result<Vec<f64>> + Send,
    ) -> NewVector<'py> {
        Ok(vector(py, self.ask(py, n_threads, question)?))
    }

    /// Numbers about rows.
    pub(crate) fn vector_of<'py>(
        &self,
        py: Python<'py>,
        x: &Table<'_>,
        n_threads: usize,
        question: impl Fn(&M, Points<'_>) -> Result<Vec<f64>> + Send + Sync,
    ) -> NewVector<'py> {
        let points = x.points(py)?;
        let parts = self.ask_in_parts(py, points, n_threads, question)?;
        Ok(vector(py, joined(parts)))
    }

    /// Two runs of numbers about rows.
    pub(crate) fn vectors_of<'py>(
        &self,
        py: Python<'py>,
        x: &Table<'_>,
        n_threads: usize,
        question: impl Fn(&M, Points<'_>) -> Result<(Vec<f64>, Vec<f64>)> + Send + Sync,
    ) -> NewVectors<'py> {
        let points = x.points(py)?;
        let (first, second) = self.ask_in_parts(py, points, n_threads, question)?.into_iter().unzip();
        Ok((vector(py, joined(first)), vector(py, joined(second))))
    }

    /// A table about rows, row-major, and its number of columns.
    pub(crate) fn table_of<'py, T: numpy::Element + Send>(
        &self,
        py: Python<'py>,
        x: &Table<'_>,
        n_threads: usize,
        question: impl Fn(&M, Points<'_>) -> Result<(Vec<T>, usize)> + Send + Sync,
    ) -> NewTable<'py, T> {
        let points = x.points(py)?;
        let (numbers, n_columns): (Vec<_>, Vec<usize>) =
            self.ask_in_parts(py, points, n_threads, question)?.into_iter().unzip();
        table(py, joined(numbers), n_columns.first().copied().unwrap_or(0))
    }

    /// Asks about rows, many of them in parts between which Ctrl-C is noticed. All parts see the same model.
    ///
    /// Rows that go down a tree together share its nodes, so a part is as large as a quarter of a second allows: each is four times the one before
    /// while they take less. 200 000 rows in parts of 8192 took 2.5 times as long.
    fn ask_in_parts<T: Send>(
        &self,
        py: Python<'_>,
        points: Points<'_>,
        n_threads: usize,
        question: impl Fn(&M, Points<'_>) -> Result<T> + Send + Sync,
    ) -> PyResult<Vec<T>> {
        /// Rows of the first part: hundreds of trees look these up within a second.
        const FIRST: usize = 1 << 14;
        const LONG: Duration = Duration::from_millis(250);
        let n_rows = points.n_rows();
        if n_rows <= FIRST {
            return Ok(vec![self.ask(py, n_threads, |model| question(model, points))?]);
        }
        run_interruptibly(py, n_threads, |go_on| {
            let model = self.read();
            let (mut parts, mut start, mut size) = (Vec::new(), 0, FIRST);
            while start < n_rows {
                go_on()?;
                let (end, begun) = ((start + size).min(n_rows), Instant::now());
                parts.push(question(&model, points.rows(start..end))?);
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

/// Texts by name that a front end keeps in a model file.
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
                let bytes = self.model.ask(py, 1, |model| {
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

/// The functions that pickle needs, for a class that holds a value which JSON can hold, in the field named.
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

    /// Factors of the measure, one per dimension; `None` where it is no matter of factors.
    fn weights(&self) -> Option<Vec<f64>> {
        let (measure, domain) = self.domain();
        match measure {
            BuiltInMeasure::Uniform => Some(vec![1.0; domain.n_dims()]),
            BuiltInMeasure::Weighted(weights) => Some(weights.factors().to_vec()),
            BuiltInMeasure::Quantile(_) => None,
        }
    }

    /// Whether learning so many rows takes long enough, and weighs enough beside what is there, to be worth a copy that
    /// can be thrown away.
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
                self.model.ask(py, 1, |model| Ok($crate::model::Grown::view(model)))
            }

            /// The lifetime that the trees are grown to.
            #[getter]
            fn grown(&self, py: pyo3::Python<'_>) -> pyo3::PyResult<f64> {
                self.model.ask(py, 1, |model| Ok($crate::model::Grown::domain(model).1.lifetime().get()))
            }

            #[getter]
            fn n_rows(&self, py: pyo3::Python<'_>) -> pyo3::PyResult<usize> {
                self.model.ask(py, 1, |model| Ok($crate::model::Grown::size(model).1))
            }

            #[getter]
            fn n_dims(&self, py: pyo3::Python<'_>) -> pyo3::PyResult<usize> {
                self.model.ask(py, 1, |model| Ok($crate::model::Grown::domain(model).1.n_dims()))
            }

            /// One factor per dimension, or `None` under the quantile measure.
            #[getter]
            fn weights(&self, py: pyo3::Python<'_>) -> pyo3::PyResult<Option<Vec<f64>>> {
                self.model.ask(py, 1, |model| Ok($crate::model::Grown::weights(model)))
            }
        }
    };
}

pub(crate) use with_trees;
