//! Densities, and the classifier made of one density per class.

use mondrian::FitOptions;
use mondrian::Lifetime;
use mondrian::{DensityClassifier, DensityForest, DensityParams, GammaChoice};
use pyo3::prelude::*;

use crate::arrays::{Labelled, NewTable, NewVector, Table, table};
use crate::errors::unknown;
use crate::model::{Grown, bound, grown_forest, with_trees};
use crate::path::PyPath;
use crate::threads::Work;
use crate::trees::TreeArguments;

/// A dictionary with these keys.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Arguments {
    trees: TreeArguments,
    /// `None` is automatic.
    gamma: Option<f64>,
    margin: f64,
}

impl Arguments {
    fn params(self, py: Python<'_>) -> PyResult<DensityParams> {
        let gamma = self.gamma.map_or(GammaChoice::Auto, GammaChoice::Value);
        Ok(DensityParams { forest: self.trees.params(py)?, gamma, margin: self.margin })
    }
}

bound!(
    /// A fitted density.
    PyDensityForest,
    "DensityForest",
    DensityForest
);
with_trees!(PyDensityForest);
grown_forest!(DensityForest);

#[pymethods]
impl PyDensityForest {
    #[staticmethod]
    fn fit<'py>(py: Python<'py>, x: Table<'py>, arguments: Arguments, work: Work<'py>) -> PyResult<Self> {
        let (params, points) = (arguments.params(py)?, x.points(py)?);
        work.run(py, |progress| params.fit_with(points, FitOptions::watched(progress))).map(Self::from)
    }

    fn learn<'py>(&self, py: Python<'py>, x: Table<'py>, work: Work<'py>) -> PyResult<()> {
        let points = x.points(py)?;
        self.model.learn(py, &work, points.n_rows(), |model, progress| {
            model.learn_with(points, FitOptions::watched(progress))
        })
    }

    fn forget<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> PyResult<()> {
        let points = x.points(py)?;
        self.model.change(py, n_threads, |model| model.forget(points))
    }

    fn merge(&self, py: Python<'_>, other: &Self, n_threads: usize) -> PyResult<()> {
        self.model.merge(py, n_threads, &other.model, DensityForest::merge)
    }

    /// A view at another lifetime, at most the one its trees are grown to.
    fn at(&self, py: Python<'_>, lifetime: f64) -> PyResult<Self> {
        let model = self.model.derived(py, |model| {
            let lifetime = model.at(Lifetime::new(lifetime)?)?.lifetime();
            let mut view = model.clone();
            view.set_lifetime(lifetime)?;
            Ok(view)
        })?;
        Ok(Self { model })
    }

    fn log_density<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> NewVector<'py> {
        self.model.vector_of(py, &x, n_threads, DensityForest::log_density)
    }

    fn leave_one_out_score(&self, py: Python<'_>, n_threads: usize) -> PyResult<f64> {
        self.model.query(py, n_threads, |model| Ok(model.leave_one_out_score()))
    }

    fn sample<'py>(&self, py: Python<'py>, n_rows: usize, seed: u64) -> NewTable<'py, f64> {
        let (rows, n_dims) =
            self.model.query(py, 1, |model| Ok((model.sample(n_rows, seed), model.forest().n_dims())))?;
        table(py, rows, n_dims)
    }

    /// The path, and the number of rows of each set outside the box.
    fn path<'py>(&self, py: Python<'py>, sets: Vec<Table<'py>>, work: Work<'py>) -> PyResult<(PyPath, Vec<usize>)> {
        let sets = sets.iter().map(|x| x.points(py)).collect::<PyResult<Vec<_>>>()?;
        let found = work.run(py, |mut progress| self.model.read().path(&sets, &mut progress))?;
        let n_outside = found.n_outside().to_vec();
        Ok((PyPath::new(found), n_outside))
    }

    fn gamma(&self, py: Python<'_>, n_threads: usize) -> PyResult<f64> {
        self.model.query(py, n_threads, |model| Ok(model.gamma()))
    }

    /// The corners of the box.
    #[getter]
    fn bounds(&self, py: Python<'_>) -> PyResult<(Vec<f64>, Vec<f64>)> {
        self.model.query(py, 1, |model| Ok((model.bounds().lower().to_vec(), model.bounds().upper().to_vec())))
    }
}

bound!(
    /// One density per class; classes are numbers from 0 on, names are kept in Python.
    PyDensityClassifier,
    "DensityClassifier",
    DensityClassifier
);

#[pymethods]
impl PyDensityClassifier {
    #[staticmethod]
    fn fit<'py>(
        py: Python<'py>,
        rows: Labelled<'py, u32>,
        prior: &str,
        arguments: Arguments,
        work: Work<'py>,
    ) -> PyResult<Self> {
        let classifier = match prior {
            "frequency" => DensityClassifier::params(),
            "equal" => DensityClassifier::params().equal_prior(),
            other => return Err(unknown("class_prior", other)),
        };
        let (params, points) = (arguments.params(py)?, rows.0.points(py)?);
        let labels: &[u32] = &rows.1;
        work.run(py, |progress| {
            classifier.clone().density(params.clone()).fit_with(points, labels, FitOptions::watched(progress))
        })
        .map(Self::from)
    }

    fn predict_proba<'py>(&self, py: Python<'py>, x: Table<'py>, n_threads: usize) -> NewTable<'py, f64> {
        self.model.table_of(py, &x, n_threads, |model, points| Ok((model.predict_proba(points)?, model.labels().len())))
    }

    /// Lifetimes of the classes' densities.
    #[getter]
    fn lifetimes(&self, py: Python<'_>) -> PyResult<Vec<f64>> {
        self.model.query(py, 1, |model| Ok(model.densities().map(|density| density.lifetime().get()).collect()))
    }

    fn gammas(&self, py: Python<'_>, n_threads: usize) -> PyResult<Vec<f64>> {
        self.model.query(py, n_threads, |model| Ok(model.densities().map(DensityForest::gamma).collect()))
    }

    #[getter]
    fn weights(&self, py: Python<'_>) -> PyResult<Option<Vec<f64>>> {
        self.model.query(py, 1, |model| Ok(model.densities().next().and_then(Grown::weights)))
    }

    #[getter]
    fn n_dims(&self, py: Python<'_>) -> PyResult<usize> {
        self.model.query(py, 1, |model| Ok(model.densities().next().map_or(0, |density| density.forest().n_dims())))
    }
}
