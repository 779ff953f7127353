//! Model files of any kind.

use std::collections::BTreeMap;

use mondrian::GridRidge;
use mondrian::KernelRidge;
use mondrian::Result;
use mondrian::Saved;
use mondrian::internals::laplace::LaplaceKernelRidge;
use mondrian::internals::model_file::Archive;
use mondrian::{ClassificationForest, RegressionForest};
use mondrian::{DensityClassifier, DensityForest};
use mondrian::{LaplaceClassifier, LaplaceRegressor};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::classification::PyClassificationForest;
use crate::density::{PyDensityClassifier, PyDensityForest};
use crate::features::{Map, PyFeatureMap};
use crate::grid::PyGridRidge;
use crate::kernel::PyKernelRidge;
use crate::laplace::PyLaplaceKernelRidge;
use crate::regression::PyRegressionForest;
use crate::threads::run;
use crate::tuned::{PyLaplaceClassifier, PyLaplaceRegressor};

/// A fitted model of any kind.
#[derive(IntoPyObject)]
enum AnyModel {
    Regression(PyRegressionForest),
    Classification(PyClassificationForest),
    Density(PyDensityForest),
    DensityClassifier(PyDensityClassifier),
    Laplace(PyLaplaceKernelRidge),
    LaplaceRegressor(PyLaplaceRegressor),
    LaplaceClassifier(PyLaplaceClassifier),
    Kernel(PyKernelRidge),
    Grid(PyGridRidge),
    Features(PyFeatureMap),
}

impl AnyModel {
    /// The model of an archive; `None` for an unknown kind.
    fn of(archive: &Archive) -> Result<Option<Self>> {
        Ok(Some(match archive.kind() {
            RegressionForest::KIND => Self::Regression(RegressionForest::from_archive(archive)?.into()),
            ClassificationForest::KIND => Self::Classification(ClassificationForest::from_archive(archive)?.into()),
            DensityForest::KIND => Self::Density(DensityForest::from_archive(archive)?.into()),
            DensityClassifier::KIND => Self::DensityClassifier(DensityClassifier::from_archive(archive)?.into()),
            LaplaceKernelRidge::KIND => Self::Laplace(LaplaceKernelRidge::from_archive(archive)?.into()),
            LaplaceRegressor::KIND => Self::LaplaceRegressor(LaplaceRegressor::from_archive(archive)?.into()),
            LaplaceClassifier::KIND => Self::LaplaceClassifier(LaplaceClassifier::from_archive(archive)?.into()),
            KernelRidge::KIND => Self::Kernel(KernelRidge::from_archive(archive)?.into()),
            GridRidge::KIND => Self::Grid(GridRidge::from_archive(archive)?.into()),
            _ => return Ok(Map::of(archive)?.map(|map| Self::Features(map.into()))),
        }))
    }
}

/// The model of a file's bytes, its kind, and the file's metadata.
#[pyfunction]
pub(crate) fn read_model<'py>(
    py: Python<'py>,
    bytes: &[u8],
    n_threads: usize,
) -> PyResult<(Bound<'py, PyAny>, String, BTreeMap<String, String>)> {
    let (model, archive) = run(py, n_threads, || {
        let archive = Archive::from_bytes(bytes)?;
        Ok((AnyModel::of(&archive)?, archive))
    })?;
    let kind = archive.kind().to_owned();
    let Some(model) = model else {
        return Err(PyValueError::new_err(format!("unknown kind of model: {kind:?}")));
    };
    Ok((model.into_pyobject(py)?.into_any(), kind, archive.metadata().clone()))
}
