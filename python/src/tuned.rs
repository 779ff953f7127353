//! Regression and classification with the whole tuned Laplace kernel, on tables with missing cells and categories.

use std::borrow::Cow;

use mondrian::internals::laplace::KernelTuning;
use mondrian::internals::laplace::SolverChoice;
use mondrian::internals::linalg::Threads;
use mondrian::{
    Cells, FitOptions, KernelMeasure as Measure, KernelMetric as Metric, LaplaceClassifier, LaplaceRegressor,
    Prediction, Progress, TargetMap,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{Column, NewTable, NewVector, NewVectors, Table, columns, table, vector};
use crate::errors::unknown;
use crate::model::bound;
use crate::searched::{run_searching, trajectory_dict};
use crate::threads::Work;

/// A number of free rows, or the name of a form.
#[derive(FromPyObject)]
enum MetricArgument {
    Rank(usize),
    Form(String),
}

/// A dictionary with these keys; `None` is tuned.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Arguments {
    measure: String,
    metric: Option<MetricArgument>,
    exponent: Option<f64>,
    alpha: Option<f64>,
    lifetimes: Option<Vec<f64>>,
    categorical: Vec<bool>,
    fit_intercept: bool,
    max_seconds: Option<f64>,
    solver: String,
    max_exact_rows: usize,
    n_neighbors: Option<usize>,
    seed: u64,
}

impl Arguments {
    fn tuning(&self, n_threads: usize) -> PyResult<KernelTuning> {
        let measure = match self.measure.as_str() {
            "auto" => Measure::Auto,
            "uniform" => Measure::Uniform,
            "quantile" => Measure::Quantile,
            "normal" => Measure::Normal,
            "both" => Measure::Both,
            other => return Err(unknown("measure", other)),
        };
        let metric = match &self.metric {
            None => Metric::None,
            Some(MetricArgument::Rank(rank)) => Metric::Rank(*rank),
            Some(MetricArgument::Form(form)) => match form.as_str() {
                "auto" => Metric::Auto,
                "diagonal" => Metric::Diagonal,
                "full" => Metric::Full,
                other => return Err(unknown("metric", other)),
            },
        };
        let solver = match self.solver.as_str() {
            "auto" => SolverChoice::Auto,
            "exact" => SolverChoice::Exact,
            "cg" => SolverChoice::Cg,
            "local" => SolverChoice::Local,
            other => return Err(unknown("solver", other)),
        };
        Ok(KernelTuning {
            solver,
            max_exact_rows: self.max_exact_rows,
            n_neighbors: self.n_neighbors,
            measure,
            metric,
            exponent: self.exponent,
            alpha: self.alpha,
            lifetimes: self.lifetimes.clone(),
            fit_intercept: self.fit_intercept,
            max_seconds: self.max_seconds,
            seed: self.seed,
            threads: Threads::up_to(n_threads),
            ..KernelTuning::default()
        })
    }
}

/// Training rows as Python passes them: inputs, targets or classes, weights.
type Passed<'py, T = f64> = (Table<'py>, Column<'py, T>, Option<Column<'py>>);

/// Training rows as the library takes them.
struct Training<'a, T> {
    numbers: Cow<'a, [f64]>,
    width: usize,
    y: &'a [T],
    weights: Option<&'a [f64]>,
}

impl<'a, T: numpy::Element> Training<'a, T> {
    fn of((x, y, weights): &'a Passed<'_, T>) -> PyResult<Self> {
        let (numbers, width) = x.row_major()?;
        Ok(Self { numbers, width, y, weights: weights.as_deref() })
    }

    fn cells(&self) -> mondrian::Result<Cells<'_>> {
        Cells::row_major(&self.numbers, self.width)
    }

    fn options<'o>(&'o self, progress: &'o mut Progress<'_>) -> FitOptions<'o> {
        FitOptions { weights: self.weights, progress: progress.part(0.0, 1.0) }
    }

    fn without_progress(&self) -> FitOptions<'_> {
        FitOptions { weights: self.weights, ..FitOptions::default() }
    }
}

bound!(
    /// A fitted regression.
    PyLaplaceRegressor,
    "LaplaceRegressor",
    LaplaceRegressor
);
bound!(
    /// A fitted classifier.
    PyLaplaceClassifier,
    "LaplaceClassifier",
    LaplaceClassifier
);

/// Methods of both.
macro_rules! with_kernel {
    ($class:ty) => {
        #[pymethods]
        impl $class {
            #[getter]
            fn lifetimes<'py>(&self, py: Python<'py>) -> NewVector<'py> {
                self.model.vector(py, 1, |model| Ok(model.lifetimes()))
            }

            #[getter]
            fn n_dims(&self, py: Python<'_>) -> PyResult<usize> {
                self.model.query(py, 1, |model| Ok(model.n_inputs()))
            }

            #[getter]
            fn n_rows(&self, py: Python<'_>) -> PyResult<usize> {
                self.model.query(py, 1, |model| Ok(model.n_rows()))
            }

            #[getter]
            fn alpha(&self, py: Python<'_>) -> PyResult<f64> {
                self.model.query(py, 1, |model| Ok(model.alpha()))
            }

            #[getter]
            fn exponent(&self, py: Python<'_>) -> PyResult<f64> {
                self.model.query(py, 1, |model| Ok(model.exponent()))
            }

            /// A, or `None` without a metric.
            #[getter]
            fn metric<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, numpy::PyArray2<f64>>>> {
                let metric = self.model.query(py, 1, |model| Ok(model.metric()))?;
                let n_rows = metric.n_rows();
                if n_rows == 0 { Ok(None) } else { columns(py, metric.into_vec(), n_rows).map(Some) }
            }

            fn importances<'py>(&self, py: Python<'py>) -> NewVector<'py> {
                self.model.vector(py, 1, |model| Ok(model.importances().to_vec()))
            }

            /// How all rows were solved.
            #[getter]
            fn solver<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
                let report = self.model.query(py, 1, |model| Ok(*model.solver()))?;
                let dict = PyDict::new(py);
                dict.set_item("used", report.used.name())?;
                dict.set_item("n_neighbors", report.local.map(|local| local.n_neighbors))?;
                dict.set_item("products", report.conjugate.map(|cg| cg.products))?;
                dict.set_item("residual", report.conjugate.map(|cg| cg.residual))?;
                dict.set_item("compared", report.compared)?;
                dict.set_item("n_tuned", report.n_tuned)?;
                Ok(dict)
            }

            /// All evaluations as a dictionary of arrays.
            fn trajectory<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
                let trajectory = self.model.query(py, 1, |model| Ok(model.trajectory().to_vec()))?;
                trajectory_dict(py, &trajectory)
            }

            fn transform<'py>(
                &self,
                py: Python<'py>,
                x: Table<'py>,
                n_directions: usize,
                seed: u64,
                n_threads: usize,
            ) -> NewTable<'py, f64> {
                let (numbers, width) = x.row_major()?;
                let (numbers, width) = self.model.query(py, n_threads, |model| {
                    model.transform(Cells::row_major(&numbers, width)?, n_directions, seed)
                })?;
                table(py, numbers, width)
            }
        }
    };
}

with_kernel!(PyLaplaceRegressor);
with_kernel!(PyLaplaceClassifier);

/// Targets column by column as a matrix.
fn map_named(name: Option<&str>) -> PyResult<Option<TargetMap>> {
    Ok(match name {
        None => None,
        Some("identity") => Some(TargetMap::Identity),
        Some("sqrt") => Some(TargetMap::Sqrt),
        Some("log") => Some(TargetMap::Log),
        Some(other) => return Err(unknown("target_transform", other)),
    })
}

#[pymethods]
impl PyLaplaceRegressor {
    /// Tunes and solves; targets row by row.
    #[staticmethod]
    fn fit<'py>(
        py: Python<'py>,
        rows: Passed<'py>,
        target_map: Option<String>,
        arguments: Arguments,
        work: Work<'py>,
    ) -> PyResult<Self> {
        let target_map = map_named(target_map.as_deref())?;
        let params = LaplaceRegressor::params()
            .tuning(arguments.tuning(work.n_threads())?)
            .categorical(arguments.categorical.clone())
            .target_map(target_map);
        let rows = Training::of(&rows)?;
        run_searching(py, &work, |mut progress: Progress<'_>| {
            params.fit_with(rows.cells()?, rows.y, rows.options(&mut progress))
        })
        .map(Self::from)
    }

    /// Resumes tuning from this model's kernel; targets row by row.
    fn resumed<'py>(
        &self,
        py: Python<'py>,
        rows: Passed<'py>,
        target_map: Option<String>,
        arguments: Arguments,
        work: Work<'py>,
    ) -> PyResult<Self> {
        let tuning = arguments.tuning(work.n_threads())?;
        let params = LaplaceRegressor::params().tuning(tuning).target_map(map_named(target_map.as_deref())?);
        let rows = Training::of(&rows)?;
        run_searching(py, &work, |mut progress: Progress<'_>| {
            let model = self.model.read().clone();
            model.resumed(rows.cells()?, rows.y, &params, rows.options(&mut progress))
        })
        .map(Self::from)
    }

    /// Appends rows; targets row by row.
    fn append<'py>(&self, py: Python<'py>, rows: Passed<'py>, n_threads: usize) -> PyResult<()> {
        let rows = Training::of(&rows)?;
        self.model.change(py, n_threads, |model| model.learn_with(rows.cells()?, rows.y, rows.without_progress()))
    }

    /// The model tuned again on all its rows and these.
    fn tuned_again<'py>(
        &self,
        py: Python<'py>,
        rows: Passed<'py>,
        target_map: Option<String>,
        arguments: Arguments,
        work: Work<'py>,
    ) -> PyResult<Self> {
        let tuning = arguments.tuning(work.n_threads())?;
        let params = LaplaceRegressor::params().tuning(tuning).target_map(map_named(target_map.as_deref())?);
        let rows = Training::of(&rows)?;
        run_searching(py, &work, |progress: Progress<'_>| {
            let mut copy = self.model.read().clone();
            copy.learn_with(rows.cells()?, rows.y, rows.without_progress())?;
            copy.tuned_again(&params, progress)
        })
        .map(Self::from)
    }

    /// Row by row, one number per target.
    fn predict<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> NewVector<'py> {
        let (numbers, width) = x.row_major()?;
        self.model.vector(py, n_threads, |model| model.predict(Cells::row_major(&numbers, width)?))
    }

    fn predict_with_std<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> NewVectors<'py> {
        let (numbers, width) = x.row_major()?;
        let Prediction { mean, std } =
            self.model.query(py, n_threads, |model| model.predict_with_std(Cells::row_major(&numbers, width)?))?;
        Ok((vector(py, mean), vector(py, std)))
    }

    fn predict_interval<'py>(
        &self,
        py: Python<'py>,
        x: Table<'py>,
        coverage: f64,
        n_threads: usize,
    ) -> NewVectors<'py> {
        let (numbers, width) = x.row_major()?;
        let (low, high) = self
            .model
            .query(py, n_threads, |model| model.predict_interval(Cells::row_major(&numbers, width)?, coverage))?;
        Ok((vector(py, low), vector(py, high)))
    }

    fn equivalent_kernel<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> NewTable<'py, f64> {
        let (numbers, width) = x.row_major()?;
        let n_queries = numbers.len() / width.max(1);
        let smoothing = self.model.query(py, n_threads, |model| {
            model.equivalent_kernel(Cells::row_major(&numbers, width)?, Threads::up_to(n_threads))
        })?;
        let n_columns = smoothing.len() / n_queries.max(1);
        table(py, smoothing, n_columns)
    }

    #[getter]
    fn target_map(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.model.query(py, 1, |model| {
            Ok(match model.target_map() {
                TargetMap::Identity => "identity",
                TargetMap::Sqrt => "sqrt",
                TargetMap::Log => "log",
            })
        })
    }

    #[getter]
    fn n_targets(&self, py: Python<'_>) -> PyResult<usize> {
        self.model.query(py, 1, |model| Ok(model.n_targets()))
    }

    /// Weights of the training rows and the centre, for one target; `None` if predictions use nearest rows.
    fn solution<'py>(
        &self,
        py: Python<'py>,
        target: usize,
    ) -> PyResult<Option<(Bound<'py, numpy::PyArray1<f64>>, f64)>> {
        let found = self.model.query(py, 1, |model| Ok(model.solution(target)))?;
        Ok(found.map(|(weights, centre)| (vector(py, weights), centre)))
    }

    /// Root mean squared error, mean absolute error and error of the mean, for one target.
    fn leave_one_out(&self, py: Python<'_>, target: usize) -> PyResult<(f64, f64, f64)> {
        self.model.query(py, 1, |model| {
            let scores = model.leave_one_out()[target];
            Ok((scores.rmse, scores.mae, scores.rmse_of_mean))
        })
    }
}

#[pymethods]
impl PyLaplaceClassifier {
    /// Tunes and solves; classes are numbers.
    #[staticmethod]
    fn fit<'py>(
        py: Python<'py>,
        rows: Passed<'py, u32>,
        n_classes: usize,
        arguments: Arguments,
        work: Work<'py>,
    ) -> PyResult<Self> {
        let tuning = arguments.tuning(work.n_threads())?;
        let params =
            LaplaceClassifier::params().tuning(tuning).n_classes(n_classes).categorical(arguments.categorical.clone());
        let rows = Training::of(&rows)?;
        run_searching(py, &work, |mut progress: Progress<'_>| {
            params.fit_with(rows.cells()?, rows.y, rows.options(&mut progress))
        })
        .map(Self::from)
    }

    /// Resumes tuning from this model's kernel.
    fn resumed<'py>(
        &self,
        py: Python<'py>,
        rows: Passed<'py, u32>,
        arguments: Arguments,
        work: Work<'py>,
    ) -> PyResult<Self> {
        let params = LaplaceClassifier::params().tuning(arguments.tuning(work.n_threads())?);
        let rows = Training::of(&rows)?;
        run_searching(py, &work, |mut progress: Progress<'_>| {
            let model = self.model.read().clone();
            model.resumed(rows.cells()?, rows.y, &params, rows.options(&mut progress))
        })
        .map(Self::from)
    }

    /// Appends rows of known classes.
    fn append<'py>(&self, py: Python<'py>, rows: Passed<'py, u32>, n_threads: usize) -> PyResult<()> {
        let rows = Training::of(&rows)?;
        self.model.change(py, n_threads, |model| model.learn_with(rows.cells()?, rows.y, rows.without_progress()))
    }

    /// The model tuned again on all its rows and these.
    fn tuned_again<'py>(
        &self,
        py: Python<'py>,
        rows: Passed<'py, u32>,
        arguments: Arguments,
        work: Work<'py>,
    ) -> PyResult<Self> {
        let params = LaplaceClassifier::params().tuning(arguments.tuning(work.n_threads())?);
        let rows = Training::of(&rows)?;
        run_searching(py, &work, |progress: Progress<'_>| {
            let mut copy = self.model.read().clone();
            copy.learn_with(rows.cells()?, rows.y, rows.without_progress())?;
            copy.tuned_again(&params, progress)
        })
        .map(Self::from)
    }

    fn predict_proba<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> NewTable<'py, f64> {
        let (numbers, width) = x.row_major()?;
        let (numbers, n_classes) = self.model.query(py, n_threads, |model| {
            Ok((model.predict_proba(Cells::row_major(&numbers, width)?)?, model.n_classes()))
        })?;
        table(py, numbers, n_classes)
    }

    #[getter]
    fn n_classes(&self, py: Python<'_>) -> PyResult<usize> {
        self.model.query(py, 1, |model| Ok(model.n_classes()))
    }

    /// Log loss, accuracy and the log loss of the class frequencies.
    fn leave_one_out(&self, py: Python<'_>) -> PyResult<(f64, f64, f64)> {
        self.model.query(py, 1, |model| {
            let scores = model.leave_one_out();
            Ok((scores.log_loss, scores.accuracy, scores.log_loss_of_shares))
        })
    }
}
