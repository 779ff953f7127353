//! The parameters of all models with trees, as given by Python: checked there, converted here.

use mondrian::Validation;
use mondrian::internals::laplace::{Labels, tuned_weights as weights_for};
use mondrian::internals::linalg::Threads;
use mondrian::process::{Bounds, QuantileMeasure, Weights};
use mondrian::{ForestParams, LifetimeChoice, Matrix, MeasureChoice, Unseen, WeightsChoice};
use mondrian::{Lifetime, Result};
use pyo3::prelude::*;

use crate::arrays::{Column, Table};
use crate::errors::{to_python, unknown};
use crate::threads::run;

/// A dictionary with these keys.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct TreeArguments {
    n_trees: usize,
    /// `None` is automatic.
    lifetime: Option<f64>,
    seed: u64,
    lower: Option<Vec<f64>>,
    upper: Option<Vec<f64>>,
    measure: MeasureArgument,
    weights: WeightsArgument,
    validation: ValidationArgument,
    window: Option<usize>,
    max_rows: Option<usize>,
    /// For a stream: how many rows fix box and weights.
    warm_up: Option<usize>,
}

/// "hold-out", "leave-one-out", or a number of folds.
#[derive(FromPyObject)]
pub(crate) enum ValidationArgument {
    Folds(u32),
    Word(String),
}

impl ValidationArgument {
    pub(crate) fn choice(&self) -> PyResult<Validation> {
        match self {
            Self::Folds(k) => Ok(Validation::KFold(*k)),
            Self::Word(word) => match word.as_str() {
                "hold-out" => Ok(Validation::HoldOut),
                "leave-one-out" => Ok(Validation::LeaveOneOut),
                other => Err(unknown("validation", other)),
            },
        }
    }
}

/// "uniform", "quantile", or knots (x, F(x)) of every axis.
#[derive(FromPyObject)]
enum MeasureArgument {
    Word(String),
    Given(Vec<Vec<(f64, f64)>>),
}

/// "auto", "std", "raw", or one factor per dimension.
#[derive(FromPyObject)]
enum WeightsArgument {
    Word(String),
    Given(Vec<f64>),
}

impl TreeArguments {
    pub(crate) fn params(self, py: Python<'_>) -> PyResult<ForestParams> {
        self.checked()?.map_err(|error| to_python(py, &error))
    }

    fn checked(self) -> PyResult<Result<ForestParams>> {
        let measure = match self.measure {
            MeasureArgument::Given(axes) => QuantileMeasure::of_knots(&axes).map(MeasureChoice::Given),
            MeasureArgument::Word(word) => match word.as_str() {
                "uniform" => Ok(MeasureChoice::Uniform),
                "quantile" => Ok(MeasureChoice::Quantile),
                other => return Err(unknown("measure", other)),
            },
        };
        let weights = match self.weights {
            WeightsArgument::Given(factors) => Weights::new(factors).map(WeightsChoice::Given),
            WeightsArgument::Word(word) => match word.as_str() {
                "auto" => Ok(WeightsChoice::Auto),
                "std" => Ok(WeightsChoice::Deviation),
                "raw" => Ok(WeightsChoice::Raw),
                other => return Err(unknown("weights", other)),
            },
        };
        let lifetime =
            self.lifetime.map_or(Ok(LifetimeChoice::Auto), |value| Lifetime::new(value).map(LifetimeChoice::Value));
        let bounds = match (&self.lower, &self.upper) {
            (Some(lower), Some(upper)) => Bounds::new(lower, upper).map(Some),
            _ => Ok(None),
        };
        let Self { n_trees, seed, window, max_rows, warm_up, .. } = self;
        let validation = self.validation.choice()?;
        let build = || {
            let (lifetime, bounds, weights, measure) = (lifetime?, bounds?, weights?, measure?);
            Ok(ForestParams {
                n_trees,
                lifetime,
                seed,
                bounds,
                measure,
                weights,
                validation,
                window,
                max_rows,
                warm_up,
            })
        };
        Ok(build())
    }
}

/// Factors on the measure for trees that predict these targets (column by column) or classes; `None` if 1/standard
/// deviation is as good.
#[pyfunction]
pub(crate) fn tuned_weights<'py>(
    py: Python<'py>,
    rows: (Table<'py>, Column<'py>),
    n_classes: Option<usize>,
    seed: u64,
    n_threads: usize,
) -> PyResult<Option<Vec<f64>>> {
    let (points, numbers): (_, &[f64]) = (rows.0.points(py)?, &rows.1);
    let found = run(py, n_threads, || {
        let threads = Threads::up_to(n_threads);
        if let Some(n_classes) = n_classes {
            let classes: Vec<u32> = numbers.iter().map(|class| *class as u32).collect();
            return weights_for(points, Labels::Classes(&classes, n_classes), seed, threads);
        }
        let n = points.n_rows();
        let targets = Matrix::from_column_major(numbers.to_vec(), n, numbers.len() / n.max(1))?;
        weights_for(points, Labels::Numbers(&targets), seed, threads)
    })?;
    Ok(found.map(|weights| weights.factors().to_vec()))
}

/// How unseen cuts are treated.
pub(crate) fn unseen(word: &str) -> PyResult<Unseen> {
    match word {
        "keyed" => Ok(Unseen::Keyed),
        "integrate" => Ok(Unseen::Integrate),
        other => Err(unknown("unseen", other)),
    }
}
