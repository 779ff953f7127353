//! Ridge regression on Mondrian features.

use mondrian::FeatureRidge;
use mondrian::FitOptions;
use mondrian::internals::linalg::Threads;
use mondrian::internals::ridge::Solver;
use mondrian::internals::tree::Domain;
use mondrian::process::BuiltInMeasure;
use mondrian::{KernelRidge, KernelRidgeParams, PathMethod};
use mondrian::{Lifetime, Matrix};
use pyo3::prelude::*;

use crate::arrays::{Labelled, NewTable, NewVector, NewVectors, Table, all_points, columns};
use crate::errors::unknown;
use crate::model::{Grown, bound, with_trees};
use crate::path::PyPath;
use crate::threads::Work;
use crate::trees::TreeArguments;

/// A dictionary with these keys.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Arguments {
    trees: TreeArguments,
    /// `None` is automatic.
    alpha: Option<f64>,
    solver: String,
    fit_intercept: bool,
}

impl Arguments {
    fn params(self, py: Python<'_>, n_threads: usize) -> PyResult<KernelRidgeParams> {
        let solver = match self.solver.as_str() {
            "auto" => Solver::Auto,
            "primal" => Solver::Primal,
            "dual" => Solver::Dual,
            "cg" => Solver::ConjugateGradients,
            other => return Err(unknown("solver", other)),
        };
        let threads = Threads::up_to(n_threads);
        let ridge = FeatureRidge::params().fit_intercept(self.fit_intercept).solver(solver).threads(threads);
        let params = KernelRidge::params().trees(self.trees.params(py)?).ridge(ridge);
        Ok(match self.alpha {
            None => params.auto_alpha(),
            Some(alpha) => params.alpha(alpha),
        })
    }
}

bound!(
    /// A fitted model.
    PyKernelRidge,
    "KernelRidge",
    KernelRidge
);
with_trees!(PyKernelRidge);

impl Grown for KernelRidge {
    fn domain(&self) -> (&BuiltInMeasure, &Domain) {
        (self.features().forest().measure(), self.features().forest().domain())
    }

    fn view(&self) -> f64 {
        self.features().lifetime().get()
    }

    fn size(&self) -> (usize, usize) {
        (self.features().n_trees(), self.features().rows().len())
    }
}

#[pymethods]
impl PyKernelRidge {
    /// Fits at the trees' lifetime and alpha, which are chosen if they are `None`.
    #[staticmethod]
    fn fit<'py>(py: Python<'py>, rows: Labelled<'py>, arguments: Arguments, work: Work<'py>) -> PyResult<Self> {
        let (x, y) = &rows;
        let (params, points) = (arguments.params(py, work.n_threads())?, x.points(py)?);
        let targets: &[f64] = y;
        work.run(py, |progress| params.fit_with(points, targets, FitOptions::watched(progress))).map(Self::from)
    }

    fn predict<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> NewVector<'py> {
        self.model.vector_of(py, &x, n_threads, |model, points| Ok(by_row(&model.predict(points)?)))
    }

    fn predict_with_std<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> NewVectors<'py> {
        self.model.vectors_of(py, &x, n_threads, |model, points| {
            let (mean, variance) = (model.predict(points)?, model.predict_variance(points)?);
            Ok((by_row(&mean), by_row(&variance).into_iter().map(f64::sqrt).collect()))
        })
    }

    fn equivalent_kernel<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> NewTable<'py, f64> {
        let points = x.points(py)?;
        let smoothing = self.model.query(py, n_threads, |model| model.equivalent_kernel(points))?;
        let n_rows = smoothing.n_rows();
        columns(py, smoothing.into_vec(), n_rows)
    }

    fn at(&self, py: Python<'_>, lifetime: f64) -> PyResult<Self> {
        Ok(Self { model: self.model.derived(py, |model| model.at(Lifetime::new(lifetime)?))? })
    }

    /// The path by a named method, at these lifetimes by conjugate gradients, and the accuracy of the solution.
    fn path<'py>(
        &self,
        py: Python<'py>,
        sets: Vec<Labelled<'py>>,
        method: &str,
        lifetimes: Vec<f64>,
        work: Work<'py>,
    ) -> PyResult<(PyPath, f64)> {
        let sets = all_points(py, &sets)?;
        let method = match method {
            "auto" => PathMethod::default(),
            "addition" => PathMethod::Addition,
            "cholesky" => PathMethod::Cholesky,
            "cg" => PathMethod::conjugate_gradients(lifetimes),
            other => return Err(unknown("method", other)),
        };
        let found = work.run(py, |mut progress| self.model.read().path(&sets, &method, &mut progress))?;
        let worst = found.worst_residual();
        Ok((PyPath::new(found), worst))
    }

    #[getter]
    fn alpha(&self, py: Python<'_>) -> PyResult<f64> {
        self.model.query(py, 1, |model| Ok(model.model().alpha()))
    }

    /// One number per target.
    #[getter]
    fn intercepts(&self, py: Python<'_>) -> PyResult<Vec<f64>> {
        self.model.query(py, 1, |model| Ok(model.model().intercepts().to_vec()))
    }

    #[getter]
    fn n_targets(&self, py: Python<'_>) -> PyResult<usize> {
        self.model.query(py, 1, |model| Ok(model.model().n_targets()))
    }

    fn degrees_of_freedom(&self, py: Python<'_>, n_threads: usize) -> PyResult<f64> {
        self.model.query(py, n_threads, |model| model.model().degrees_of_freedom())
    }

    /// The solver used, its steps and its relative residual.
    #[getter]
    fn report(&self, py: Python<'_>) -> PyResult<(&'static str, usize, f64)> {
        self.model.query(py, 1, |model| {
            let report = model.report();
            let solver = match report.solver {
                Solver::Primal => "primal",
                Solver::Dual => "dual",
                Solver::ConjugateGradients => "cg",
                Solver::Auto => "auto",
            };
            Ok((solver, report.steps, report.residuals.iter().copied().fold(0.0, f64::max)))
        })
    }
}

/// Numbers by row, then target.
fn by_row(matrix: &Matrix) -> Vec<f64> {
    (0..matrix.n_rows()).flat_map(|row| (0..matrix.n_columns()).map(move |column| matrix[(row, column)])).collect()
}
