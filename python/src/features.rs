//! Feature maps: Mondrian, random binning, random Fourier, Mondrian grid.

use mondrian::dense::Matrix;
use mondrian::grid::{GridFeatures, MondrianGrid, UNSEEN};
use mondrian::kernel::{FeatureMap, LaplaceKernel, MondrianFeatures, RandomBinning, RandomFourier};
use mondrian::ridge::{Csr, Features};
use mondrian::{Lifetime, Points, Result};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arrays::{Table, table};
use crate::errors::to_python;
use crate::threads::run;
use crate::trees::{TreeArguments, weights};

enum Map {
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

/// Cells of grids as sparse rows; cells without training rows are left out.
fn grid_rows(map: &GridFeatures, points: Points<'_>) -> Result<Csr> {
    let n_grids = map.grid().n_grids();
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

/// A fitted map. It is a pure function of how it was made, so a pickle holds that: arguments and training rows.
#[pyclass(frozen, module = "mondrian._mondrian", name = "FeatureMap")]
pub(crate) struct PyFeatureMap {
    map: Map,
    recipe: Py<PyTuple>,
}

#[pymethods]
impl PyFeatureMap {
    /// `kind` is "mondrian" (`arguments` of trees), "binning", "fourier" or "grid" (n, lifetimes, seed).
    #[staticmethod]
    fn fit<'py>(
        py: Python<'py>,
        kind: &str,
        x: Bound<'py, PyArray2<f64>>,
        arguments: Bound<'py, PyDict>,
        n_threads: usize,
    ) -> PyResult<Self> {
        // The caller may change its array later; the recipe must not change with it.
        let kept = x.call_method1("copy", ("K",))?;
        let recipe = (kind, kept, &arguments, n_threads).into_pyobject(py)?.unbind();
        let rows: Table<'_> = x.extract()?;
        let points = rows.points().map_err(|error| to_python(py, &error))?;
        let map = match kind {
            "mondrian" => {
                let params = arguments.extract::<TreeArguments>()?.params()?.map_err(|error| to_python(py, &error))?;
                let lifetime: f64 = required(&arguments, "lifetime")?;
                run(py, n_threads, || {
                    let mut map = MondrianFeatures::on(&params, points, Lifetime::new(lifetime)?)?;
                    map.learn(points)?;
                    Ok(Map::Mondrian(map))
                })?
            }
            "binning" | "fourier" | "grid" => {
                let n: usize = required(&arguments, "n")?;
                let lifetimes: Vec<f64> = required(&arguments, "lifetimes")?;
                let seed: u64 = required(&arguments, "seed")?;
                run(py, n_threads, || other_map(kind, points, n, &lifetimes, seed))?
            }
            other => return Err(PyValueError::new_err(format!("{other:?} is no kind of features"))),
        };
        Ok(Self { map, recipe })
    }

    /// Sparse rows as (data, indices, indptr), or a dense table.
    fn transform<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> PyResult<Bound<'py, PyAny>> {
        let points = x.points().map_err(|error| to_python(py, &error))?;
        match run(py, n_threads, || self.map.transform(points))? {
            Transformed::Sparse(csr) => sparse(py, csr),
            Transformed::Dense(matrix) => {
                let n_rows = matrix.n_rows();
                // Column-major: the transposed view of a row-major table of columns.
                Ok(table(py, matrix.into_vec(), n_rows)?.transpose()?.into_any())
            }
        }
    }

    #[getter]
    fn n_columns(&self) -> usize {
        self.map.n_columns()
    }

    /// One factor a dimension; `None` where the map has no measure of that kind.
    #[getter]
    fn weights(&self) -> Option<Vec<f64>> {
        match &self.map {
            Map::Mondrian(map) => weights(map.forest().measure(), map.n_dims()),
            _ => None,
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Py<PyTuple>)> {
        Ok((slf.get_type().getattr("fit")?, slf.get().recipe.clone_ref(slf.py())))
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
        return Ok(Map::Grid(GridFeatures::fit(MondrianGrid::new(n, seed)?, points, lifetimes)?));
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

/// Arrays as scipy takes them without a copy: both index arrays of one type, 32 bits where that is enough.
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
