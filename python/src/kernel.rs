//! Ridge regression on Mondrian features.

use mondrian::dense::Threads;
use mondrian::kernel::{FeatureMap, KernelRidge, PathMethod};
use mondrian::ridge::{CgOptions, FeatureRidge, Solver};
use mondrian::{Lifetime, Points};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{Column, Table, table};
use crate::errors::to_python;
use crate::model::{Shared, saved_as_bytes};
use crate::path::PyPath;
use crate::threads::{run, run_watched};
use crate::trees::{TreeArguments, weights};

/// A fitted model.
#[pyclass(frozen, module = "mondrian._mondrian", name = "KernelRidge")]
pub(crate) struct PyKernelRidge {
    model: Shared<KernelRidge>,
}

saved_as_bytes!(PyKernelRidge, KernelRidge);

#[pymethods]
impl PyKernelRidge {
    /// Fits at the trees' lifetime, which is chosen if it is `None`.
    #[staticmethod]
    fn fit<'py>(
        py: Python<'py>,
        x: Table<'py>,
        y: Column<'py>,
        trees: TreeArguments,
        alpha: f64,
        solver: &str,
        fit_intercept: bool,
        n_threads: usize,
    ) -> PyResult<Self> {
        let method = match solver {
            "auto" => Solver::Auto,
            "primal" => Solver::Primal,
            "dual" => Solver::Dual,
            "cg" => Solver::ConjugateGradients(CgOptions::default()),
            other => return Err(PyValueError::new_err(format!("solver is {other:?}, not a known one"))),
        };
        let points = x.points().map_err(|error| to_python(py, &error))?;
        let trees = trees.params()?.map_err(|error| to_python(py, &error))?;
        let threads = Threads::up_to(n_threads);
        let ridge = FeatureRidge::params().alpha(alpha).fit_intercept(fit_intercept).solver(method).threads(threads);
        let targets: &[f64] = &y;
        let params = KernelRidge::params().trees(trees).ridge(ridge);
        let model = run(py, n_threads, || params.fit(points, targets))?;
        Ok(Self { model: Shared::new(model) })
    }

    fn predict<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let points = x.points().map_err(|error| to_python(py, &error))?;
        Ok(PyArray1::from_vec(py, run(py, n_threads, || self.model.read().predict(points))?.into_vec()))
    }

    fn predict_variance<'py>(
        &self,
        py: Python<'py>,
        x: Table<'py>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let points = x.points().map_err(|error| to_python(py, &error))?;
        Ok(PyArray1::from_vec(py, run(py, n_threads, || self.model.read().predict_variance(points))?.into_vec()))
    }

    fn equivalent_kernel<'py>(
        &self,
        py: Python<'py>,
        x: Table<'py>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let points = x.points().map_err(|error| to_python(py, &error))?;
        let smoothing = run(py, n_threads, || self.model.read().equivalent_kernel(points))?;
        let n_rows = smoothing.n_rows();
        // Column-major: the transposed view of a row-major table of columns.
        table(py, smoothing.into_vec(), n_rows)?.transpose()
    }

    fn at(&self, py: Python<'_>, lifetime: f64) -> PyResult<Self> {
        let model = run(py, 1, || self.model.read().at(Lifetime::new(lifetime)?))?;
        Ok(Self { model: Shared::new(model) })
    }

    fn path<'py>(
        &self,
        py: Python<'py>,
        sets: Vec<(Table<'py>, Column<'py>)>,
        n_threads: usize,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(PyPath, f64)> {
        let mut validation: Vec<(Points<'_>, &[f64])> = Vec::new();
        for (x, y) in &sets {
            validation.push((x.points().map_err(|error| to_python(py, &error))?, y));
        }
        let hear = |py: Python<'_>, share: f64| match &progress {
            None => py.check_signals(),
            Some(progress) => progress.call1((share,)).map(drop),
        };
        let found = run_watched(py, n_threads, hear, |watch| {
            self.model.read().path(&validation, &PathMethod::default(), &mut |share| watch.tell(share))
        })?;
        Ok((PyPath::new(found.path), found.drift.worst_residual))
    }

    #[getter]
    fn lifetime(&self, py: Python<'_>) -> PyResult<f64> {
        run(py, 1, || Ok(self.model.read().features().lifetime().get()))
    }

    /// The lifetime that the trees are grown to.
    #[getter]
    fn grown(&self, py: Python<'_>) -> PyResult<f64> {
        run(py, 1, || Ok(self.model.read().features().forest().ground().lifetime().get()))
    }

    #[getter]
    fn intercept(&self, py: Python<'_>) -> PyResult<f64> {
        run(py, 1, || Ok(self.model.read().model().intercepts().first().copied().unwrap_or(0.0)))
    }

    /// Which solver was used, its steps and its relative residual.
    #[getter]
    fn report(&self, py: Python<'_>) -> PyResult<(&'static str, usize, f64)> {
        run(py, 1, || {
            let model = self.model.read();
            let report = model.report();
            let solver = match report.solver {
                Solver::Primal => "primal",
                Solver::Dual => "dual",
                Solver::ConjugateGradients(_) => "cg",
                Solver::Auto => "auto",
            };
            Ok((solver, report.steps, report.residuals.iter().copied().fold(0.0, f64::max)))
        })
    }

    #[getter]
    fn weights(&self, py: Python<'_>) -> PyResult<Option<Vec<f64>>> {
        run(py, 1, || {
            let model = self.model.read();
            Ok(weights(model.features().forest().measure(), model.features().n_dims()))
        })
    }
}
