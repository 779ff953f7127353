//! The process itself: partitions, the process on all of space, and the Poisson process.

use mondrian::process::{
    Bounds, BuiltInMeasure, InfiniteMondrian, Mondrian, NodeKey, Partition, Picture, QuantileMeasure, Weights, poisson,
};
use mondrian::{Lifetime, Points, Result};
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{NewVectors, Table, table};
use crate::model::saved_as_json;
use crate::threads::run;

/// The measure given by Python: length, or the distribution of `data`, times one factor per dimension.
fn measure_of(data: Option<Points<'_>>, weights: Option<Vec<f64>>) -> Result<BuiltInMeasure> {
    let weights = weights.map(Weights::new).transpose()?;
    Ok(match (data, weights) {
        (Some(data), weights) => BuiltInMeasure::Quantile(QuantileMeasure::of_points(data, weights.as_ref())?),
        (None, Some(weights)) => BuiltInMeasure::Weighted(weights),
        (None, None) => BuiltInMeasure::Uniform,
    })
}

/// An immutable sample on a box.
#[pyclass(frozen, module = "mondrian._mondrian", name = "Partition")]
pub(crate) struct PyPartition {
    sample: Partition,
}

saved_as_json!(PyPartition, sample);

#[pymethods]
impl PyPartition {
    #[staticmethod]
    fn sample(
        py: Python<'_>,
        lower: Vec<f64>,
        upper: Vec<f64>,
        lifetime: f64,
        seed: u64,
        weights: Option<Vec<f64>>,
        data: Option<Table<'_>>,
    ) -> PyResult<Self> {
        let data = data.as_ref().map(|data| data.points(py)).transpose()?;
        let sample = run(py, 1, || {
            let bounds = Bounds::new(&lower, &upper)?;
            let process = Mondrian::with_measure(bounds, measure_of(data, weights)?, NodeKey::root(seed, 0))?;
            process.until(Lifetime::new(lifetime)?)
        })?;
        Ok(Self { sample })
    }

    #[getter]
    fn lower<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, self.sample.bounds().lower())
    }

    #[getter]
    fn upper<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, self.sample.bounds().upper())
    }

    #[getter]
    fn lifetime(&self) -> f64 {
        self.sample.lifetime().get()
    }

    #[getter]
    fn n_cuts(&self) -> usize {
        self.sample.n_cuts()
    }

    /// Arrays by name; the boxes that are cut as tables.
    fn cuts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let n_dims = self.sample.n_dims();
        let cuts = run(py, 1, || Ok(self.sample.cuts()))?;
        let dict = PyDict::new(py);
        dict.set_item("birth", PyArray1::from_slice(py, cuts.births()))?;
        dict.set_item("time", PyArray1::from_slice(py, cuts.times()))?;
        let dims: Vec<i64> = cuts.dims().iter().map(|dim| *dim as i64).collect();
        dict.set_item("dim", PyArray1::from_vec(py, dims))?;
        dict.set_item("location", PyArray1::from_slice(py, cuts.locations()))?;
        dict.set_item("lower", table(py, cuts.lower().to_vec(), n_dims)?)?;
        dict.set_item("upper", table(py, cuts.upper().to_vec(), n_dims)?)?;
        Ok(dict)
    }

    fn cells<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<f64>>)> {
        let n_dims = self.sample.n_dims();
        let cells = run(py, 1, || Ok(self.sample.cells()))?;
        Ok((table(py, cells.lower().to_vec(), n_dims)?, table(py, cells.upper().to_vec(), n_dims)?))
    }

    fn cell_of<'py>(&self, py: Python<'py>, x: Table<'py>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let points = x.points(py)?;
        let cells = run(py, 1, || self.sample.cell_of(points))?;
        Ok(PyArray1::from_vec(py, cells.into_iter().map(|cell| cell as i64).collect()))
    }

    /// Locations and times of the cuts that cross a line along `dim`.
    fn crossings<'py>(&self, py: Python<'py>, point: Vec<f64>, dim: usize) -> NewVectors<'py> {
        let found = run(py, 1, || self.sample.crossings(&point, dim))?;
        let (locations, times) = found.iter().map(|point| (point.location, point.time)).unzip();
        Ok((PyArray1::from_vec(py, locations), PyArray1::from_vec(py, times)))
    }

    /// The same sample at another lifetime, larger or smaller.
    fn grown(&self, py: Python<'_>, lifetime: f64, n_threads: usize) -> PyResult<Self> {
        Ok(Self { sample: run(py, n_threads, || self.sample.grown(Lifetime::new(lifetime)?))? })
    }

    fn at(&self, py: Python<'_>, time: f64) -> PyResult<Self> {
        Ok(Self { sample: run(py, 1, || self.sample.at(Lifetime::new(time)?))? })
    }

    fn restrict(&self, py: Python<'_>, lower: Vec<f64>, upper: Vec<f64>) -> PyResult<Self> {
        Ok(Self { sample: run(py, 1, || self.sample.restrict(&lower, &upper))? })
    }

    fn extend(&self, py: Python<'_>, lower: Vec<f64>, upper: Vec<f64>, seed: Option<u64>) -> PyResult<Self> {
        Ok(Self { sample: run(py, 1, || self.sample.extend(&lower, &upper, seed))? })
    }

    fn is_same_sample(&self, other: &Self) -> bool {
        self.sample.is_same_sample(&other.sample)
    }

    fn to_svg(&self, py: Python<'_>, paint: bool, times: bool, axes: Option<(usize, usize)>) -> PyResult<String> {
        run(py, 1, || {
            let picture = Picture::new().paint(paint).times(times);
            let picture = axes.map_or_else(|| picture.clone(), |(across, up)| picture.clone().axes(across, up));
            picture.svg(&self.sample)
        })
    }
}

/// The process on all of space.
#[pyclass(frozen, module = "mondrian._mondrian", name = "InfiniteMondrian")]
pub(crate) struct PyInfiniteMondrian {
    process: InfiniteMondrian,
}

#[pymethods]
impl PyInfiniteMondrian {
    #[new]
    fn new(
        py: Python<'_>,
        n_dims: usize,
        lifetime: f64,
        seed: u64,
        weights: Option<Vec<f64>>,
        data: Option<Table<'_>>,
    ) -> PyResult<Self> {
        let data = data.as_ref().map(|data| data.points(py)).transpose()?;
        let process = run(py, 1, || {
            InfiniteMondrian::with_measure(n_dims, Lifetime::new(lifetime)?, seed, measure_of(data, weights)?)
        })?;
        Ok(Self { process })
    }

    fn restrict(&self, py: Python<'_>, lower: Vec<f64>, upper: Vec<f64>) -> PyResult<PyPartition> {
        Ok(PyPartition { sample: run(py, 1, || self.process.restrict(&lower, &upper))? })
    }

    fn cell_of<'py>(&self, py: Python<'py>, x: Table<'py>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let points = x.points(py)?;
        Ok(PyArray1::from_vec(py, run(py, 1, || self.process.cell_of(points))?))
    }
}

/// Locations and times of a Poisson process on an interval; `data` gives the measure; the default is plain length.
#[pyfunction]
#[pyo3(name = "poisson")]
pub(crate) fn py_poisson(
    py: Python<'_>,
    a: f64,
    b: f64,
    intensity: f64,
    seed: u64,
    data: Option<Vec<f64>>,
) -> PyResult<(Bound<'_, PyArray1<f64>>, Bound<'_, PyArray1<f64>>)> {
    let points = run(py, 1, || {
        let data = data.as_ref().map(|data| Points::row_major(data, 1)).transpose()?;
        poisson(a, b, Lifetime::new(intensity)?, seed, measure_of(data, None)?)
    })?;
    let (locations, times) = points.iter().map(|point| (point.location, point.time)).unzip();
    Ok((PyArray1::from_vec(py, locations), PyArray1::from_vec(py, times)))
}
