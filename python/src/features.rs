//! Feature maps: Mondrian, random binning, random Fourier, Mondrian grid.

use mondrian::Features;
use mondrian::GridFeatures;
use mondrian::LaplaceKernel;
use mondrian::Matrix;
use mondrian::Saved;
use mondrian::internals::features::Csr;
use mondrian::internals::features::UNSEEN;
use mondrian::internals::model_file::Archive;
use mondrian::{Error, Lifetime, Points, Result};
use mondrian::{FeatureMap, MondrianFeatures, RandomBinning, RandomFourier};
use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{Table, columns};
use crate::errors::unknown;
use crate::model::{Grown, bound, grown_forest};
use crate::threads::{Work, run};
use crate::trees::TreeArguments;

pub(crate) enum Map {
    Mondrian(MondrianFeatures),
    Binning(RandomBinning),
    Fourier(RandomFourier),
    Grid(GridFeatures),
}

impl Map {
    fn n_columns(&self) -> usize {
        match self {
            Self::Mondrian(map) => map.n_columns(),
            Self::Binning(map) => map.n_columns(),
            Self::Fourier(map) => map.n_columns(),
            Self::Grid(map) => map.n_features(),
        }
    }

    fn n_dims(&self) -> usize {
        match self {
            Self::Mondrian(map) => map.n_dims(),
            Self::Binning(map) => map.n_dims(),
            Self::Fourier(map) => map.n_dims(),
            Self::Grid(map) => map.lifetimes().len(),
        }
    }

    fn transform(&self, points: Points<'_>) -> Result<Transformed> {
        let features = match self {
            Self::Mondrian(map) => map.transform(points)?,
            Self::Binning(map) => map.transform(points)?,
            Self::Fourier(map) => map.transform(points)?,
            Self::Grid(map) => return Ok(Transformed::Sparse(grid_rows(map, points)?)),
        };
        Ok(match features {
            Features::Cells(cells) => Transformed::Sparse(cells.to_csr()),
            Features::Dense(matrix) => Transformed::Dense(matrix),
        })
    }
}

enum Transformed {
    Sparse(Csr),
    Dense(Matrix),
}

/// Cells of grids as sparse rows; cells without training rows are omitted.
fn grid_rows(map: &GridFeatures, points: Points<'_>) -> Result<Csr> {
    let n_grids = map.n_grids();
    let cells = map.transform(points)?;
    let (mut indptr, mut indices) = (vec![0], Vec::with_capacity(cells.len()));
    for row in cells.chunks_exact(n_grids) {
        // Cells of a grid are numbered after those of the grids before it, so a row is sorted as it is.
        indices.extend(row.iter().filter(|cell| **cell != UNSEEN));
        indptr.push(indices.len() as u64);
    }
    let data = vec![1.0 / (n_grids as f64).sqrt(); indices.len()];
    Ok(Csr { indptr, indices, data, n_columns: map.n_features() })
}

impl Map {
    /// The map of an archive; `None` if it holds another kind of model.
    pub(crate) fn of(archive: &Archive) -> Result<Option<Self>> {
        Ok(Some(match archive.kind() {
            MondrianFeatures::KIND => Self::Mondrian(MondrianFeatures::from_archive(archive)?),
            RandomBinning::KIND => Self::Binning(RandomBinning::from_archive(archive)?),
            RandomFourier::KIND => Self::Fourier(RandomFourier::from_archive(archive)?),
            GridFeatures::KIND => Self::Grid(GridFeatures::from_archive(archive)?),
            _ => return Ok(None),
        }))
    }
}

impl Saved for Map {
    /// The kind named in the error for a file without a map; a map is saved with its own kind.
    const KIND: &'static str = "features";

    fn to_archive(&self) -> Result<Archive> {
        match self {
            Self::Mondrian(map) => map.to_archive(),
            Self::Binning(map) => map.to_archive(),
            Self::Fourier(map) => map.to_archive(),
            Self::Grid(map) => map.to_archive(),
        }
    }

    fn from_archive(archive: &Archive) -> Result<Self> {
        match Self::of(archive)? {
            Some(map) => Ok(map),
            None => Err(archive.check_kind(Self::KIND).expect_err("no map is of that kind")),
        }
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::from_archive(&Archive::from_bytes(bytes)?)
    }
}

bound!(
    /// A fitted map.
    PyFeatureMap,
    "FeatureMap",
    Map
);

#[pymethods]
impl PyFeatureMap {
    /// `kind` is "mondrian" (`arguments` of trees), "binning", "fourier" or "grid" (n, lifetimes, seed).
    #[staticmethod]
    fn fit<'py>(
        py: Python<'py>,
        kind: &str,
        x: Table<'py>,
        arguments: Bound<'py, PyDict>,
        work: Work<'py>,
    ) -> PyResult<Self> {
        let points = x.points(py)?;
        let map = match kind {
            "mondrian" => {
                let params = arguments.extract::<TreeArguments>()?.params(py)?;
                let lifetime: f64 = required(&arguments, "lifetime")?;
                work.run(py, |mut progress| {
                    let mut map = MondrianFeatures::on(&params, points, Lifetime::new(lifetime)?)?;
                    map.learn_with_progress(points, &mut progress)?;
                    Ok(Map::Mondrian(map))
                })?
            }
            "binning" | "fourier" | "grid" => {
                let n: usize = required(&arguments, "n")?;
                let lifetimes: Vec<f64> = required(&arguments, "lifetimes")?;
                let seed: u64 = required(&arguments, "seed")?;
                run(py, work.n_threads(), || other_map(kind, points, n, &lifetimes, seed))?
            }
            other => return Err(unknown("kind", other)),
        };
        Ok(map.into())
    }

    /// The map of Mondrian trees with more rows; this one is unchanged.
    fn learned<'py>(&self, py: Python<'py>, x: Table<'py>, work: Work<'py>) -> PyResult<Self> {
        let points = x.points(py)?;
        let map = work.run(py, |mut progress| {
            let mut map = mondrian_map(&self.model.read())?.clone();
            map.learn_with_progress(points, &mut progress)?;
            Ok(Map::Mondrian(map))
        })?;
        Ok(map.into())
    }

    /// The map at a smaller lifetime.
    fn at(&self, py: Python<'_>, lifetime: f64) -> PyResult<Self> {
        let at = |map: &Map| Ok(Map::Mondrian(mondrian_map(map)?.at(Lifetime::new(lifetime)?)?));
        Ok(Self { model: self.model.derived(py, at)? })
    }

    #[getter]
    fn lifetime(&self, py: Python<'_>) -> PyResult<f64> {
        self.model.query(py, 1, |map| Ok(mondrian_map(map)?.lifetime().get()))
    }

    /// Sparse rows as (data, indices, indptr), or a dense table.
    fn transform<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> PyResult<Bound<'py, PyAny>> {
        let points = x.points(py)?;
        match self.model.query(py, n_threads, |map| map.transform(points))? {
            Transformed::Sparse(csr) => sparse(py, csr),
            Transformed::Dense(matrix) => {
                let n_rows = matrix.n_rows();
                Ok(columns(py, matrix.into_vec(), n_rows)?.into_any())
            }
        }
    }

    #[getter]
    fn n_columns(&self, py: Python<'_>) -> PyResult<usize> {
        self.model.query(py, 1, |map| Ok(map.n_columns()))
    }

    #[getter]
    fn n_dims(&self, py: Python<'_>) -> PyResult<usize> {
        self.model.query(py, 1, |map| Ok(map.n_dims()))
    }

    /// One factor per dimension; `None` if the map has no measure of that kind.
    #[getter]
    fn weights(&self, py: Python<'_>) -> PyResult<Option<Vec<f64>>> {
        self.model.query(py, 1, |map| Ok(if let Map::Mondrian(map) = map { map.weights() } else { None }))
    }
}

grown_forest!(MondrianFeatures);

fn mondrian_map(map: &Map) -> Result<&MondrianFeatures> {
    match map {
        Map::Mondrian(map) => Ok(map),
        _ => Err(Error::Incompatible { what: "kinds of features" }),
    }
}

fn required<'py, T: for<'a> FromPyObject<'a, 'py, Error = PyErr>>(
    arguments: &Bound<'py, PyDict>,
    name: &str,
) -> PyResult<T> {
    let found = arguments.get_item(name)?.ok_or_else(|| PyValueError::new_err(format!("{name} is missing")))?;
    found.extract()
}

fn other_map(kind: &str, points: Points<'_>, n: usize, lifetimes: &[f64], seed: u64) -> Result<Map> {
    if kind == "grid" {
        return Ok(Map::Grid(GridFeatures::fit(n, seed, points, lifetimes)?));
    }
    let lifetimes = lifetimes.iter().map(|value| Lifetime::new(*value)).collect::<Result<Vec<_>>>()?;
    let kernel = LaplaceKernel::per_dimension(&lifetimes)?;
    if kind == "fourier" {
        return Ok(Map::Fourier(RandomFourier::new(&kernel, points.n_columns(), n, seed)?));
    }
    let mut map = RandomBinning::new(&kernel, points.n_columns(), n, seed)?;
    map.learn(points)?;
    Ok(Map::Binning(map))
}

/// Arrays that scipy accepts without a copy: both index arrays of one type, 32 bits if that is enough.
fn sparse(py: Python<'_>, csr: Csr) -> PyResult<Bound<'_, PyAny>> {
    let data = PyArray1::from_vec(py, csr.data);
    let largest = csr.indices.len().max(csr.n_columns);
    if i32::try_from(largest).is_ok() {
        let indices: Vec<i32> = csr.indices.into_iter().map(|i| i as i32).collect();
        let indptr: Vec<i32> = csr.indptr.into_iter().map(|i| i as i32).collect();
        return Ok((data, PyArray1::from_vec(py, indices), PyArray1::from_vec(py, indptr))
            .into_pyobject(py)?
            .into_any());
    }
    let indices: Vec<i64> = csr.indices.into_iter().map(i64::from).collect();
    let indptr: Vec<i64> = csr.indptr.into_iter().map(|i| i as i64).collect();
    Ok((data, PyArray1::from_vec(py, indices), PyArray1::from_vec(py, indptr)).into_pyobject(py)?.into_any())
}
