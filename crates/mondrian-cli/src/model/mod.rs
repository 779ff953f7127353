//! One interface to all models: fit, save, load, predict.

pub(crate) mod axes;
pub(crate) mod classifier;
pub(crate) mod density;
pub(crate) mod forest;
pub(crate) mod grid;
pub(crate) mod kernel;
pub(crate) mod laplace;
mod training;

pub(crate) use training::{Opened, Training};

use std::path::Path;

use mondrian::DensityForest;
use mondrian::FeatureMap;
use mondrian::FitOptions;
use mondrian::GridRidge;
use mondrian::KernelRidge;
use mondrian::Points;
use mondrian::Saved;
use mondrian::internals::laplace::LaplaceKernelRidge;
use mondrian::internals::model_file::Archive;
use mondrian::internals::normal;
use mondrian::{ClassificationForest, ForestParams, RegressionForest};
use mondrian::{LaplaceClassifier, LaplaceRegressor, Prediction};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::args::{ModelArgs, ModelKind};
use crate::failure::{Failure, Outcome};
use crate::journal::{self, Entry, Identified, Identity};
use crate::prepare::{Inputs, Preparation, Prepared, Task};
use crate::save::{AtomicFile, is_standard};
use crate::screen::Screen;

/// How often a model file may change while it is read with its journal.
const ATTEMPTS: usize = 20;

/// A fitted model of any kind.
#[derive(Debug)]
pub(crate) enum Model {
    Laplace(Box<LaplaceRegressor>),
    LaplaceClasses(Box<LaplaceClassifier>),
    /// The report's kernel: only lifetimes tuned.
    Axes(LaplaceKernelRidge),
    Forest(RegressionForest),
    Classifier(ClassificationForest),
    Grid(GridRidge),
    Kernel(Box<KernelRidge>),
    Density(Box<DensityForest>),
}

/// The program's record in the model file: enough to predict from raw rows and to fit again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) preparation: Preparation,
    pub(crate) seed: u64,
    /// The file it was fitted on.
    pub(crate) data: String,
}

/// A model and how its rows are prepared.
#[derive(Debug)]
pub(crate) struct Fitted {
    pub(crate) model: Model,
    pub(crate) record: Record,
}

/// Predictions for some rows.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// One number: the mean, or a log density.
    Mean(Vec<f64>),
    /// The mean, the deviation of a new target, and the ends of an interval for it.
    Regression { mean: Vec<f64>, std: Vec<f64>, lower: Vec<f64>, upper: Vec<f64> },
    /// The probability of each class, row-major.
    Classes(Vec<f64>),
}

/// Facts about a fitted model, for text and JSON.
pub(crate) struct Facts(pub(crate) Vec<(&'static str, Value)>);

impl Facts {
    /// With the number of rows that the model keeps, if it is limited.
    fn rows_held(mut self, params: &ForestParams) -> Self {
        for (name, n_rows) in [("window", params.window), ("max_rows", params.max_rows)] {
            self.0.extend(n_rows.map(|n_rows| (name, json!(n_rows))));
        }
        self
    }
}

impl Model {
    /// Fits a model of this kind.
    pub(crate) fn fit(kind: ModelKind, training: &Training<'_>, args: &ModelArgs, screen: Screen) -> Outcome<Self> {
        args.check_lifetimes(kind, training.preparation)?;
        match (kind, training.preparation.task()) {
            (ModelKind::Laplace, Some(Task::Classification)) => {
                laplace::fit_classes(training, args, screen).map(|model| Self::LaplaceClasses(Box::new(model)))
            }
            (ModelKind::Laplace, _) if args.tunes_whole_kernel() => {
                laplace::fit_numbers(training, args, screen).map(|model| Self::Laplace(Box::new(model)))
            }
            (ModelKind::Laplace, _) => axes::fit(training, args, screen).map(Self::Axes),
            (ModelKind::Kernel, _) => kernel::fit(training, args, screen).map(|model| Self::Kernel(Box::new(model))),
            (ModelKind::Grid, _) => grid::fit(training, args, screen).map(Self::Grid),
            (ModelKind::Density, _) => density::fit(training, args, screen).map(|model| Self::Density(Box::new(model))),
            (ModelKind::Forest, Some(Task::Regression)) => forest::fit(training, args, screen).map(Self::Forest),
            (ModelKind::Forest, _) => classifier::fit(training, args, screen).map(Self::Classifier),
        }
    }

    /// Predictions for prepared rows; intervals of this coverage, or only the means without one.
    pub(crate) fn predict(&self, rows: Inputs<'_>, coverage: Option<f64>) -> Outcome<Answer> {
        match (self, coverage) {
            (Self::Laplace(model), None) => Ok(Answer::Mean(model.predict(rows.cells()?)?)),
            (Self::Laplace(model), Some(coverage)) => {
                let (found, ends) = model.predict_with_intervals(rows.cells()?, &[coverage])?;
                Ok(interval_answer(&found, &ends[0]))
            }
            (Self::LaplaceClasses(model), _) => Ok(Answer::Classes(model.predict_proba(rows.cells()?)?)),
            _ => self.predict_points(rows.points()?, coverage),
        }
    }

    fn predict_points(&self, points: Points<'_>, coverage: Option<f64>) -> Outcome<Answer> {
        match (self, coverage) {
            (Self::Laplace(_) | Self::LaplaceClasses(_), _) => unreachable!("these take cells"),
            (Self::Axes(model), None) => Ok(Answer::Mean(model.predict(points)?)),
            (Self::Axes(model), Some(coverage)) => {
                let predicted = model.predict_with_std(points)?;
                Ok(normal_answer(predicted.mean, predicted.std, coverage))
            }
            (Self::Kernel(model), None) => Ok(Answer::Mean(model.predict(points)?.column(0).to_vec())),
            (Self::Kernel(model), Some(coverage)) => {
                let mean = model.predict(points)?.column(0).to_vec();
                let std = model.predict_variance(points)?.column(0).iter().map(|v| v.max(0.0).sqrt()).collect();
                Ok(normal_answer(mean, std, coverage))
            }
            (Self::Grid(model), _) => Ok(Answer::Mean(model.predict(points)?)),
            (Self::Density(model), _) => Ok(Answer::Mean(model.log_density(points)?)),
            (Self::Classifier(model), _) => Ok(Answer::Classes(model.predict_proba(points)?)),
            (Self::Forest(model), None) => Ok(Answer::Mean(model.predict(points)?)),
            (Self::Forest(model), Some(coverage)) => {
                let prediction = model.predict_with_std(points)?;
                let ends = model.predict_quantiles(points, &[0.5 - coverage / 2.0, 0.5 + coverage / 2.0])?;
                let end = |which: usize| ends.chunks(2).map(|pair| pair[which]).collect();
                let (lower, upper) = (end(0), end(1));
                Ok(Answer::Regression { mean: prediction.mean, std: prediction.std, lower, upper })
            }
        }
    }

    /// Predictions with intervals of several coverages, if it has intervals.
    pub(crate) fn predict_at(&self, rows: Inputs<'_>, coverages: &[f64]) -> Outcome<Vec<Answer>> {
        let model = match self {
            Self::Forest(model) => model,
            Self::Laplace(model) => {
                let (found, ends) = model.predict_with_intervals(rows.cells()?, coverages)?;
                return Ok(ends.iter().map(|ends| interval_answer(&found, ends)).collect());
            }
            _ => {
                let first = self.predict(rows, Some(coverages.first().copied().unwrap_or(0.9)))?;
                let widened = |&coverage: &f64| match &first {
                    Answer::Regression { mean, std, .. } => normal_answer(mean.clone(), std.clone(), coverage),
                    other => other.clone(),
                };
                return Ok(coverages.iter().map(widened).collect());
            }
        };
        let points = rows.points()?;
        let prediction = model.predict_with_std(points)?;
        let levels: Vec<f64> = coverages.iter().flat_map(|c| [0.5 - c / 2.0, 0.5 + c / 2.0]).collect();
        let ends = model.predict_quantiles(points, &levels)?;
        let end = |which: usize| ends.chunks(levels.len()).map(|row| row[which]).collect::<Vec<f64>>();
        let answer = |i: usize| {
            let (mean, std) = (prediction.mean.clone(), prediction.std.clone());
            Answer::Regression { mean, std, lower: end(2 * i), upper: end(2 * i + 1) }
        };
        Ok((0..coverages.len()).map(answer).collect())
    }

    /// The header of its predictions.
    pub(crate) fn header(&self, classes: &[String], mean_only: bool) -> String {
        match self {
            Self::Density(_) => "log_density".to_owned(),
            _ if mean_only || matches!(self, Self::Grid(_)) => "prediction".to_owned(),
            Self::Laplace(_) | Self::Axes(_) | Self::Forest(_) | Self::Kernel(_) | Self::Grid(_) => {
                "prediction,std,lower,upper".to_owned()
            }
            Self::Classifier(_) | Self::LaplaceClasses(_) => {
                let names = classes.iter().map(|class| quoted(&format!("p_{class}")));
                std::iter::once("prediction".to_owned()).chain(names).collect::<Vec<_>>().join(",")
            }
        }
    }

    /// Learns one more batch.
    pub(crate) fn learn(&mut self, points: Points<'_>, rows: &Prepared) -> Outcome<()> {
        match self {
            Self::Forest(model) => Ok(model.learn(points, &rows.y)?),
            Self::Classifier(model) => Ok(model.learn(points, &rows.classes())?),
            Self::Density(model) => Ok(model.learn(points)?),
            Self::Laplace(_) | Self::LaplaceClasses(_) | Self::Axes(_) | Self::Kernel(_) | Self::Grid(_) => {
                Err(self.not_online("learn more rows"))
            }
        }
    }

    /// Forgets rows that it has learned.
    pub(crate) fn forget(&mut self, points: Points<'_>, rows: &Prepared) -> Outcome<()> {
        match self {
            Self::Forest(model) => Ok(model.forget(points, &rows.y)?),
            Self::Classifier(model) => Ok(model.forget(points, &rows.classes())?),
            Self::Density(model) => Ok(model.forget(points)?),
            Self::Laplace(_) | Self::LaplaceClasses(_) | Self::Axes(_) | Self::Kernel(_) | Self::Grid(_) => {
                Err(self.not_online("forget rows"))
            }
        }
    }

    /// Merges another model.
    pub(crate) fn merge(&mut self, other: &Self) -> Outcome<()> {
        match (&mut *self, other) {
            (Self::Forest(model), Self::Forest(other)) => Ok(model.merge(other)?),
            (Self::Classifier(model), Self::Classifier(other)) => Ok(model.merge(other)?),
            (Self::Density(model), Self::Density(other)) => Ok(model.merge(other)?),
            (Self::Laplace(_) | Self::LaplaceClasses(_) | Self::Axes(_) | Self::Kernel(_) | Self::Grid(_), _) => {
                Err(self.not_online("be merged"))
            }
            _ => {
                Err(Failure::input("two models of different kinds cannot be merged", "fit the second --like the first"))
            }
        }
    }

    /// An empty model with this one's parameters and box, grown on the first batch.
    pub(crate) fn like(&self, points: Points<'_>, rows: &Prepared) -> Outcome<Self> {
        match self {
            Self::Forest(model) => {
                let lifetime = model.forest().domain().lifetime();
                let fresh = model.fitted_params().fit_at(lifetime, points, &rows.y, FitOptions::default())?;
                Ok(Self::Forest(fresh))
            }
            Self::Classifier(model) => {
                let fresh = model.fitted_params().clone().n_classes(model.n_classes()).fit(points, &rows.classes())?;
                Ok(Self::Classifier(fresh))
            }
            Self::Density(model) => {
                let mut fresh = model.without_rows()?;
                fresh.learn(points)?;
                Ok(Self::Density(Box::new(fresh)))
            }
            Self::Laplace(_) | Self::LaplaceClasses(_) | Self::Axes(_) | Self::Kernel(_) | Self::Grid(_) => {
                Err(self.not_online("be used with --like"))
            }
        }
    }

    /// Keeps the last rows from now on and forgets older ones, or keeps all rows.
    pub(crate) fn set_window(&mut self, window: Option<usize>) -> Outcome<()> {
        match self {
            Self::Forest(model) => Ok(model.set_window(window)?),
            Self::Classifier(model) => Ok(model.set_window(window)?),
            Self::Density(model) => Ok(model.set_window(window)?),
            Self::Laplace(_) | Self::LaplaceClasses(_) | Self::Axes(_) | Self::Kernel(_) | Self::Grid(_) => {
                Err(self.not_online("keep a window of rows"))
            }
        }
    }

    /// The number of rows it keeps, if not all.
    fn n_held(&self) -> Option<usize> {
        let (params, n_rows) = match self {
            Self::Forest(model) => (&model.fitted_params().forest, model.n_rows()),
            Self::Classifier(model) => (&model.fitted_params().forest, model.n_rows()),
            Self::Density(model) => (&model.fitted_params().forest, model.n_rows()),
            Self::Laplace(_) | Self::LaplaceClasses(_) | Self::Axes(_) | Self::Kernel(_) | Self::Grid(_) => {
                return None;
            }
        };
        (params.window.is_some() || params.max_rows.is_some()).then_some(n_rows)
    }

    /// Refuses a model that cannot learn more rows.
    pub(crate) fn check_online(&self) -> Outcome<()> {
        self.check_online_for("learn more rows")
    }

    /// Refuses a model that cannot do this without being fitted again.
    pub(crate) fn check_online_for(&self, what: &str) -> Outcome<()> {
        match self {
            Self::Forest(_) | Self::Classifier(_) | Self::Density(_) => Ok(()),
            Self::Laplace(_) | Self::LaplaceClasses(_) | Self::Axes(_) | Self::Kernel(_) | Self::Grid(_) => {
                Err(self.not_online(what))
            }
        }
    }

    fn not_online(&self, what: &str) -> Failure {
        Failure::input(format!("a {} model cannot {what}", self.kind().name()), "fit a forest instead: --model forest")
    }

    /// The kind's name.
    pub(crate) fn kind(&self) -> ModelKind {
        match self {
            Self::Laplace(_) | Self::LaplaceClasses(_) | Self::Axes(_) => ModelKind::Laplace,
            Self::Forest(_) | Self::Classifier(_) => ModelKind::Forest,
            Self::Grid(_) => ModelKind::Grid,
            Self::Kernel(_) => ModelKind::Kernel,
            Self::Density(_) => ModelKind::Density,
        }
    }

    /// Facts about it.
    pub(crate) fn facts(&self, features: &[String]) -> Facts {
        match self {
            Self::Laplace(model) => laplace::facts_of_numbers(model, features),
            Self::LaplaceClasses(model) => laplace::facts_of_classes(model, features),
            Self::Axes(model) => axes::facts(model, features),
            Self::Forest(model) => forest::facts(model, features).rows_held(&model.fitted_params().forest),
            Self::Classifier(model) => classifier::facts(model, features).rows_held(&model.fitted_params().forest),
            Self::Grid(model) => grid::facts(model, features),
            Self::Kernel(model) => kernel::facts(model),
            Self::Density(model) => density::facts(model).rows_held(&model.fitted_params().forest),
        }
    }

    fn n_inputs(&self) -> usize {
        match self {
            Self::Laplace(model) => model.n_inputs(),
            Self::LaplaceClasses(model) => model.n_inputs(),
            Self::Axes(model) => model.lifetimes().len(),
            Self::Forest(model) => model.forest().n_dims(),
            Self::Classifier(model) => model.forest().n_dims(),
            Self::Grid(model) => model.lifetimes().len(),
            Self::Kernel(model) => model.features().n_dims(),
            Self::Density(model) => model.forest().n_dims(),
        }
    }

    /// Whether its number of classes equals the number of names.
    fn has_classes(&self, preparation: &Preparation) -> bool {
        match self {
            Self::Classifier(model) => model.n_classes() == classifier::n_classes(preparation),
            Self::LaplaceClasses(model) => model.n_classes() == classifier::n_classes(preparation),
            Self::Laplace(model) if model.n_targets() > 1 => false,
            Self::Forest(model) if model.n_targets() > 1 => false,
            Self::Grid(model) if model.n_targets() > 1 => false,
            Self::Kernel(model) if model.model().n_targets() > 1 => false,
            _ => preparation.task() != Some(Task::Classification),
        }
    }

    fn to_archive(&self) -> mondrian::Result<Archive> {
        match self {
            Self::Laplace(model) => model.to_archive(),
            Self::LaplaceClasses(model) => model.to_archive(),
            Self::Axes(model) => model.to_archive(),
            Self::Forest(model) => model.to_archive(),
            Self::Classifier(model) => model.to_archive(),
            Self::Grid(model) => model.to_archive(),
            Self::Kernel(model) => model.to_archive(),
            Self::Density(model) => model.to_archive(),
        }
    }

    fn into_archive(self) -> mondrian::Result<Archive> {
        match self {
            Self::Forest(model) => model.into_archive(),
            other => other.to_archive(),
        }
    }

    fn from_archive(archive: &Archive) -> mondrian::Result<Option<Self>> {
        Ok(Some(match archive.kind() {
            LaplaceRegressor::KIND => Self::Laplace(Box::new(LaplaceRegressor::from_archive(archive)?)),
            LaplaceClassifier::KIND => Self::LaplaceClasses(Box::new(LaplaceClassifier::from_archive(archive)?)),
            LaplaceKernelRidge::KIND => Self::Axes(LaplaceKernelRidge::from_archive(archive)?),
            ClassificationForest::KIND => Self::Classifier(ClassificationForest::from_archive(archive)?),
            KernelRidge::KIND => Self::Kernel(Box::new(KernelRidge::from_archive(archive)?)),
            GridRidge::KIND => Self::Grid(GridRidge::from_archive(archive)?),
            DensityForest::KIND => Self::Density(Box::new(DensityForest::from_archive(archive)?)),
            RegressionForest::KIND => Self::Forest(RegressionForest::from_archive(archive)?),
            _ => return Ok(None),
        }))
    }
}

impl Fitted {
    fn to_archive(&self) -> Outcome<Archive> {
        let mut archive = self.model.to_archive()?;
        archive.set_params("program", &self.record)?;
        Ok(archive)
    }

    /// The bytes of the model file.
    pub(crate) fn to_bytes(&self) -> Outcome<Vec<u8>> {
        Ok(self.to_archive()?.to_bytes()?)
    }

    /// Writes the model file atomically. The model is dropped while it is written, to reduce peak memory.
    pub(crate) fn save(self, path: &Path) -> Outcome<()> {
        let mut archive = self.model.into_archive()?;
        archive.set_params("program", &self.record)?;
        let (file, identity) = write_beside(&archive, path)?;
        if is_standard(path) {
            return file.commit().map(drop);
        }
        journal::settle(path, identity)?;
        file.commit()?;
        journal::remove(path);
        Ok(())
    }

    /// Writes the model into a file that only needs to be committed, and returns its identity.
    pub(crate) fn write_beside(&self, path: &Path) -> Outcome<(AtomicFile, Identity)> {
        write_beside(&self.to_archive()?, path)
    }

    /// Reads a model file, and learns the rows of its journal if there is one.
    pub(crate) fn load(path: &Path) -> Outcome<Self> {
        Self::load_with_identity(path).map(|(fitted, _)| fitted)
    }

    /// The same, with the identity of the file.
    pub(crate) fn load_with_identity(path: &Path) -> Outcome<(Self, Identity)> {
        let in_file = |failure| match failure {
            Failure::Input { what, hint } => Failure::input(format!("{}: {what}", path.display()), hint),
            other => other,
        };
        let mut bytes = read_file(path)?;
        let mut attempts = 0;
        let entries = loop {
            match journal::pending(path, Identity::of(&bytes)) {
                Ok(entries) => break entries,
                Err(failure) => {
                    // Another process may have replaced the file between the two reads.
                    let again = read_file(path)?;
                    if attempts == ATTEMPTS || again == bytes {
                        return Err(failure);
                    }
                    (bytes, attempts) = (again, attempts + 1);
                }
            }
        };
        let identity = Identity::of(&bytes);
        let mut fitted = Self::from_bytes(&bytes).map_err(in_file)?;
        fitted.replay(&entries).map_err(in_file)?;
        Ok((fitted, identity))
    }

    /// Learns the rows of a journal.
    fn replay(&mut self, entries: &[Entry]) -> Outcome<()> {
        let width = self.record.preparation.n_features();
        let mut rows = Prepared::default();
        for entry in entries {
            match entry {
                Entry::Row { x, y } if x.len() == width => {
                    rows.x.extend_from_slice(x);
                    rows.y.push(*y);
                }
                Entry::Row { .. } => {
                    return Err(Failure::input(
                        "the rows of its journal have another number of inputs",
                        "move the journal away",
                    ));
                }
                Entry::Class(name) => {
                    if let Some(classes) = self.record.preparation.target.as_mut().and_then(|t| t.classes.as_mut()) {
                        classes.push(name.clone());
                    }
                }
                Entry::Checkpoint(_) => {}
            }
        }
        if rows.y.is_empty() {
            return Ok(());
        }
        rows.n_classes = classifier::n_classes(&self.record.preparation);
        let points = Points::row_major(&rows.x, width)?;
        self.model.learn(points, &rows)?;
        self.count(rows.y.len() as u64);
        Ok(())
    }

    /// Records the number of learned rows.
    pub(crate) fn count(&mut self, n_learned: u64) {
        let n_rows = &mut self.record.preparation.n_rows;
        *n_rows = self.model.n_held().map_or(*n_rows + n_learned, |n| n as u64);
    }

    /// The model of a file's untrusted bytes.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Outcome<Self> {
        let archive = Archive::from_bytes(bytes)?;
        let record: Record = archive.params("program").map_err(|_| {
            Failure::input(
                "the model was not written by `mondrian fit`: it has no preparation of rows",
                "use it from Python or Rust, or fit it again here",
            )
        })?;
        record.preparation.check()?;
        let Some(model) = Model::from_archive(&archive)? else {
            return Err(Failure::input(
                format!("unknown kind of model: {:?}", archive.kind()),
                "use the program that wrote it",
            ));
        };
        if model.n_inputs() != record.preparation.n_features() || !model.has_classes(&record.preparation) {
            return Err(Failure::input(
                "the model and its preparation of rows are inconsistent",
                "fit the model again",
            ));
        }
        Ok(Self { model, record })
    }
}

fn write_beside(archive: &Archive, path: &Path) -> Outcome<(AtomicFile, Identity)> {
    let mut file = Identified::new(AtomicFile::create(path)?);
    archive.write_to(&mut file)?.map_err(|e| file.inner.failure(&e))?;
    let identity = file.identity();
    Ok((file.inner, identity))
}

/// The intervals of one of several coverages.
fn interval_answer(found: &Prediction, ends: &[(f64, f64)]) -> Answer {
    let (lower, upper) = ends.iter().copied().unzip();
    Answer::Regression { mean: found.mean.clone(), std: found.std.clone(), lower, upper }
}

/// Means and deviations with the ends of a normal interval.
fn normal_answer(mean: Vec<f64>, std: Vec<f64>, coverage: f64) -> Answer {
    let half = normal::quantile(0.5 + coverage / 2.0);
    let end = |sign: f64| mean.iter().zip(&std).map(|(m, s)| m + sign * half * s).collect();
    Answer::Regression { lower: end(-1.0), upper: end(1.0), mean, std }
}

/// Inputs by relevance, greatest first.
fn relevance(values: &[f64], features: &[String]) -> Value {
    let order = ranked(values);
    json!(order.iter().map(|&d| json!({ "input": features[d], "relevance": values[d] })).collect::<Vec<_>>())
}

/// Indices by value, greatest first.
pub(crate) fn ranked(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
    order
}

/// A number for JSON, which has no infinity.
pub(crate) fn number(x: f64) -> Value {
    if x.is_finite() { json!(x) } else { json!(x.to_string()) }
}

/// A cell of a CSV file.
pub(crate) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// A file's bytes.
pub(crate) fn read_file(path: &Path) -> Outcome<Vec<u8>> {
    if path.is_dir() {
        return Err(Failure::reading(path, &std::io::Error::from(std::io::ErrorKind::IsADirectory)));
    }
    std::fs::read(path).map_err(|e| Failure::reading(path, &e))
}
