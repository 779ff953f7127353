//! Fits on the training rows, with their path over the held-out rows.

use std::ops::ControlFlow;

use mondrian::internals::laplace::KernelTuning;
use mondrian::internals::linalg::Threads;
use mondrian::process::Bounds;
use mondrian::{
    Cells, ClassificationParams, DensityParams, Error, FeatureMap, FitOptions, ForestParams, GridRidgeParams,
    KernelMeasure, KernelMetric, KernelRidge, LaplaceClassifier, LaplaceRegressor, Lifetime, LifetimeChoice,
    LifetimesChoice, MondrianFeatures, PathMethod, Points, Progress, RegressionParams, Result, WeightsChoice,
};

use super::{Model, points, problem};
use crate::api::{FitRequest, Kind, Problem, Task};
use crate::tables::Data;

/// Features at which a kernel's path ends.
const MOST_FEATURES: usize = 1200;

/// Stage and fraction (none if unknown); `Break` cancels.
pub(crate) type Watch<'a> = &'a mut dyn FnMut(&'static str, Option<f64>) -> ControlFlow<()>;

/// Fits a model to the training rows.
pub(crate) fn fit(data: &Data, request: &FitRequest, watch: Watch<'_>) -> std::result::Result<Model, Problem> {
    check(data, request)?;
    let train = points(&data.train.x, data.width())?;
    let held_out = points(&data.held_out.x, data.width())?;
    let found = match (request.kind, data.task) {
        (Kind::Laplace, Some(Task::Classification)) => laplace_classes(data, request, watch),
        (Kind::Laplace, _) => laplace(data, request, watch),
        (Kind::Grid, _) => grid(data, request, train, watch),
        (Kind::Kernel, _) => kernel(data, request, train, held_out, watch),
        (Kind::Density, _) => density(data, request, train, held_out, watch),
        (Kind::Forest, Some(Task::Classification)) => classifier(data, request, train, held_out, watch),
        (Kind::Forest, _) => forest(data, request, train, held_out, watch),
    };
    found.map_err(|e| problem(&e))
}

fn check(data: &Data, request: &FitRequest) -> std::result::Result<(), Problem> {
    let name = request.kind.name();
    if request.kind != Kind::Density && data.task.is_none() {
        return Err(Problem::with_hint(format!("a {name} model needs a target"), "choose the column to predict"));
    }
    if data.task == Some(Task::Classification) && !matches!(request.kind, Kind::Laplace | Kind::Forest | Kind::Density)
    {
        return Err(Problem::with_hint(format!("the {name} model predicts numbers, not classes"), "fit a forest"));
    }
    if let Some(lifetimes) = &request.lifetimes {
        let n_inputs = if request.kind == Kind::Laplace { data.inputs.len() } else { data.width() };
        let is_class = data.task == Some(Task::Classification);
        if !matches!(request.kind, Kind::Laplace | Kind::Grid) || lifetimes.len() != n_inputs || is_class {
            return Err(Problem::new("lifetimes are one number per input of a laplace or grid model for numbers"));
        }
        if lifetimes.iter().any(|l| !(*l >= 0.0 && l.is_finite())) {
            return Err(Problem::new("every lifetime is a finite number ≥ 0"));
        }
    }
    match request.trees {
        Some(0) => Err(Problem::with_hint("0 trees predict nothing", "give at least 1")),
        Some(n) if n > 10_000 => Err(Problem::with_hint(format!("{n} trees are too many"), "give at most 10000")),
        _ => Ok(()),
    }
}

/// The parameters that `mondrian fit` takes for the same table.
pub(crate) fn forest_params(data: &Data, request: &FitRequest, lifetime: LifetimeChoice) -> Result<ForestParams> {
    Ok(ForestParams {
        n_trees: request.trees.unwrap_or(100),
        lifetime,
        seed: request.seed,
        bounds: Some(Bounds::new(&data.lower, &data.upper)?),
        weights: WeightsChoice::Raw,
        ..ForestParams::default()
    })
}

/// One stage of a fit, with progress.
pub(super) fn staged<T>(
    watch: &mut Watch<'_>,
    name: &'static str,
    work: impl FnOnce(&mut Progress<'_>) -> Result<T>,
) -> Result<T> {
    work(&mut Progress::new(&mut |report| watch(name, Some(report.fraction))))
}

/// Options of a fit with progress.
fn watched<'a>(progress: &'a mut Progress<'_>) -> FitOptions<'a> {
    FitOptions::watched(progress.part(0.0, 1.0))
}

fn forest(
    data: &Data,
    request: &FitRequest,
    train: Points<'_>,
    held_out: Points<'_>,
    mut watch: Watch<'_>,
) -> Result<Model> {
    let forest = forest_params(data, request, LifetimeChoice::Value(Lifetime::INFINITE))?;
    let params = RegressionParams { forest, ..RegressionParams::default() };
    let model = staged(&mut watch, "growing trees", |p| params.fit_with(train, &data.train.y, watched(p)))?;
    let path = staged(&mut watch, "path", |p| model.path(&[(held_out, data.held_out.y.as_slice())], p))?;
    Ok(Model::forest(model, path))
}

/// Targets as class numbers.
pub(crate) struct Classified {
    pub(crate) train: Vec<u32>,
    pub(crate) held_out: Vec<u32>,
    pub(crate) n_classes: usize,
}

impl Classified {
    pub(crate) fn of(data: &Data) -> Self {
        let numbers = |y: &[f64]| y.iter().map(|y| *y as u32).collect();
        let n_classes = data.classes.as_ref().map_or(0, Vec::len);
        Self { train: numbers(&data.train.y), held_out: numbers(&data.held_out.y), n_classes }
    }
}

fn classifier(
    data: &Data,
    request: &FitRequest,
    train: Points<'_>,
    held_out: Points<'_>,
    mut watch: Watch<'_>,
) -> Result<Model> {
    let forest = forest_params(data, request, LifetimeChoice::Value(Lifetime::INFINITE))?;
    let params = ClassificationParams { forest, ..ClassificationParams::default() };
    let labels = Classified::of(data);
    let params = params.n_classes(labels.n_classes);
    let model = staged(&mut watch, "growing trees", |p| params.fit_with(train, &labels.train, watched(p)))?;
    let path = staged(&mut watch, "path", |p| model.path(&[(held_out, labels.held_out.as_slice())], None, p))?;
    Ok(Model::Classifier { model: Box::new(model), path: Box::new(path) })
}

fn kernel(
    data: &Data,
    request: &FitRequest,
    train: Points<'_>,
    held_out: Points<'_>,
    mut watch: Watch<'_>,
) -> Result<Model> {
    let trees = FitRequest { trees: Some(request.trees.unwrap_or(50)), ..request.clone() };
    let trees = forest_params(data, &trees, LifetimeChoice::Auto)?;
    let lifetime = affordable(&trees, train, &mut watch)?;
    let params = KernelRidge::params().trees(trees).alpha(1.0).lifetime(lifetime);
    let model = staged(&mut watch, "solving", |p| params.fit_with(train, &data.train.y, watched(p)))?;
    let validation = [(held_out, data.held_out.y.as_slice())];
    let found = staged(&mut watch, "path", |p| model.path(&validation, &PathMethod::default(), p))?;
    Ok(Model::Kernel { model: Box::new(model), path: found })
}

/// The largest power of √2 whose number of features is within the limit of a path.
fn affordable(trees: &ForestParams, train: Points<'_>, watch: &mut Watch<'_>) -> Result<Lifetime> {
    let lifetime = |halvings: i32| Lifetime::new(4.0 * 0.5_f64.powf(f64::from(halvings) / 2.0));
    let (mut too_many, mut enough) = (-1, 44);
    while enough - too_many > 1 {
        if watch("choosing how far", None).is_break() {
            return Err(Error::Cancelled);
        }
        let middle = i32::midpoint(too_many, enough);
        let mut features = MondrianFeatures::on(trees, train, lifetime(middle)?)?;
        features.learn(train)?;
        *(if features.n_columns() <= MOST_FEATURES { &mut enough } else { &mut too_many }) = middle;
    }
    lifetime(enough)
}

/// The given lifetimes, or `Auto`.
pub(super) fn lifetimes(lifetimes: Option<&[f64]>) -> Result<LifetimesChoice> {
    let Some(lifetimes) = lifetimes else { return Ok(LifetimesChoice::Auto) };
    lifetimes.iter().map(|l| Lifetime::new(*l)).collect::<Result<_>>().map(LifetimesChoice::Each)
}

/// All threads of this machine.
fn threads() -> Threads {
    Threads::up_to(std::thread::available_parallelism().map_or(1, usize::from))
}

/// The parameters that `mondrian fit` takes; with lifetimes, the report's kernel with those and nothing else tuned but α.
pub(super) fn tuning(seed: u64, lifetimes: Option<Vec<f64>>, alpha: Option<f64>) -> KernelTuning {
    let common = KernelTuning { seed, alpha, threads: threads(), ..KernelTuning::default() };
    if lifetimes.is_none() {
        return common;
    }
    KernelTuning { lifetimes, metric: KernelMetric::None, measure: KernelMeasure::Uniform, ..common }
}

fn laplace(data: &Data, request: &FitRequest, mut watch: Watch<'_>) -> Result<Model> {
    let (cells, codes) = (data.encoder.cells(&data.train.x), data.encoder.codes());
    let cells = Cells::row_major(&cells, codes.len())?;
    let lifetimes = request.lifetimes.as_ref().map(|scaled| data.in_file_units(scaled));
    let tuning = tuning(request.seed, lifetimes, None);
    let params = LaplaceRegressor::params().tuning(tuning).categorical(codes);
    let model = staged(&mut watch, "tuning", |p| params.fit_with(cells, &data.train.y, watched(p)))?;
    Ok(Model::Laplace(Box::new(model)))
}

fn laplace_classes(data: &Data, request: &FitRequest, mut watch: Watch<'_>) -> Result<Model> {
    let (cells, codes) = (data.encoder.cells(&data.train.x), data.encoder.codes());
    let cells = Cells::row_major(&cells, codes.len())?;
    let labels: Vec<u32> = data.train.y.iter().map(|class| *class as u32).collect();
    let n_classes = data.classes.as_ref().map_or(0, Vec::len);
    let params =
        LaplaceClassifier::params().tuning(tuning(request.seed, None, None)).n_classes(n_classes).categorical(codes);
    let model = staged(&mut watch, "tuning", |p| params.fit_with(cells, &labels, watched(p)))?;
    Ok(Model::LaplaceClasses(Box::new(model)))
}

fn grid(data: &Data, request: &FitRequest, train: Points<'_>, mut watch: Watch<'_>) -> Result<Model> {
    let default = GridRidgeParams::default();
    let params = GridRidgeParams {
        n_grids: request.trees.unwrap_or(default.n_grids),
        lifetimes: lifetimes(request.lifetimes.as_deref())?,
        seed: request.seed,
        ..default
    };
    let model = staged(&mut watch, "searching", |p| params.fit_with(train, &data.train.y, watched(p)))?;
    Ok(Model::Grid(Box::new(model)))
}

/// A density grown to some times its chosen lifetime, so that the choice lies in the middle of the curve.
fn density(
    data: &Data,
    request: &FitRequest,
    train: Points<'_>,
    held_out: Points<'_>,
    mut watch: Watch<'_>,
) -> Result<Model> {
    let forest = forest_params(data, request, LifetimeChoice::Auto)?;
    let params = DensityParams::from(ForestParams { bounds: None, ..forest });
    let mut model = staged(&mut watch, "choosing", |p| params.fit_with(train, watched(p)))?;
    let chosen = model.lifetime().get();
    model.set_lifetime(Lifetime::new(if chosen > 0.0 { 4.0 * chosen } else { 1.0 })?)?;
    let found = staged(&mut watch, "path", |p| model.path(&[held_out], p))?;
    Ok(Model::Density { model: Box::new(model), path: found })
}
