//! The JSON types of the interface, version 1, exchanged by server, page, program and tests.
//!
//! Numbers that JSON cannot hold (an infinite lifetime) are `null`. Fields are added freely, never renamed within a
//! version; `docs/studio.md` describes every request.

use serde::{Deserialize, Serialize};

/// The version in every address of the interface.
pub const VERSION: u32 = 1;

/// The problem, its location and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The problem and its location.
    pub message: String,
    /// The remedy.
    pub hint: Option<String>,
    /// The column that it is about.
    pub column: Option<String>,
}

impl Problem {
    /// A problem without a hint.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, column: None }
    }

    /// A problem and its remedy.
    pub fn with_hint(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: Some(hint.into()), column: None }
    }
}

/// The interpretation of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableInfo {
    /// The file's name.
    pub name: String,
    /// CSV or Parquet, separator, names.
    pub format: String,
    /// Rows of the file.
    pub rows: u64,
    /// In the file's order.
    pub columns: Vec<ColumnInfo>,
}

/// One column of a table.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ColumnInfo {
    /// Its name in the file.
    pub name: String,
    /// Whether its cells are texts.
    pub is_category: bool,
    /// Missing cells.
    pub missing: u64,
    /// Smallest number.
    pub min: f64,
    /// Largest number.
    pub max: f64,
    /// Mean of the numbers.
    pub mean: f64,
    /// Their standard deviation.
    pub deviation: f64,
    /// Counts in equal bins from the smallest to the largest.
    pub histogram: Vec<u64>,
    /// Categories with their counts, at most a few.
    pub levels: Vec<(String, u64)>,
    /// How many categories there are.
    pub n_levels: usize,
    /// Distinct values of a column of few whole numbers: perhaps classes.
    pub few_values: Option<usize>,
    /// Why it cannot be used.
    pub problem: Option<Problem>,
}

/// Whether the target is a number or a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// A number.
    Regression,
    /// A class.
    Classification,
}

/// Treatment of missing cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Missing {
    /// Stop at the first.
    #[default]
    Refuse,
    /// Skip its row.
    Drop,
    /// Fill in the column's mean.
    Mean,
}

/// The input columns and the target.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Choice {
    /// The column to predict; none for densities alone.
    pub target: Option<String>,
    /// From the column's type if not given.
    pub task: Option<Task>,
    /// Columns that are not inputs.
    pub exclude: Vec<String>,
    /// Columns to treat as categories.
    pub categorical: Vec<String>,
    /// Treatment of missing cells.
    pub missing: Missing,
}

/// The kinds of model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The Laplace kernel, one lifetime per input.
    Laplace,
    /// A forest, for numbers or classes.
    Forest,
    /// Ridge regression on Mondrian features.
    Kernel,
    /// Ridge regression on a Mondrian grid.
    Grid,
    /// A density; needs no target.
    Density,
}

impl Kind {
    /// Its name in requests and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Laplace => "laplace",
            Self::Forest => "forest",
            Self::Kernel => "kernel",
            Self::Grid => "grid",
            Self::Density => "density",
        }
    }
}

/// A model to fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitRequest {
    /// Which kind.
    pub kind: Kind,
    /// Number of trees or grids; default: that of the kind.
    #[serde(default)]
    pub trees: Option<usize>,
    /// Seed of all randomness.
    #[serde(default)]
    pub seed: u64,
    /// One lifetime per input instead of the tuned ones (laplace and grid).
    #[serde(default)]
    pub lifetimes: Option<Vec<f64>>,
}

/// A model file that was opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileInfo {
    /// The file's name.
    pub name: String,
    /// Which kind.
    pub kind: Kind,
    /// The column that it predicts.
    pub target: Option<String>,
    /// Rows that it has learned.
    pub rows: u64,
    /// The table that it was fitted on.
    pub fitted_on: String,
    /// Other facts: name and value.
    pub facts: Vec<(String, String)>,
}

/// The content of an uploaded file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opened {
    /// A table; also if the file was a model and a table is open as well.
    pub table: Option<TableInfo>,
    /// A model; also if the file was a table and a model is open as well.
    pub file: Option<FileInfo>,
}

/// The prepared rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataInfo {
    /// The choice of columns.
    pub choice: Choice,
    /// Number or class; none without a target.
    pub task: Option<Task>,
    /// The classes, sorted.
    pub classes: Option<Vec<String>>,
    /// The model's inputs, one per dimension.
    pub features: Vec<String>,
    /// Those of them that a plane can be cut along, counted from 0.
    pub axes: Vec<usize>,
    /// The columns that make them.
    pub inputs: Vec<InputInfo>,
    /// Number of training rows.
    pub n_train: usize,
    /// Number of held-out rows.
    pub n_held_out: usize,
    /// The held-out rows in the charts, at most a thousand: their numbers in the file.
    pub shown_rows: Vec<u64>,
    /// The targets of those rows.
    pub observed: Vec<f64>,
    /// Kinds of model that can be fitted to them; none if a model file is evaluated.
    pub kinds: Vec<Kind>,
}

/// A column of inputs, for the editor of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputInfo {
    /// The column's name.
    pub name: String,
    /// Smallest number of the column.
    pub min: f64,
    /// Largest number of the column.
    pub max: f64,
    /// Its median number.
    pub median: f64,
    /// Categories; none for numbers.
    pub levels: Option<Vec<String>>,
}

/// State of a fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Running.
    Running,
    /// Ready for queries.
    Ready,
    /// Failed: see the problem.
    Failed,
    /// Cancelled by the user.
    Cancelled,
}

/// A model of the session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// Its number.
    pub id: u64,
    /// The request.
    pub request: FitRequest,
    /// Its state.
    pub status: Status,
    /// The current stage.
    pub stage: String,
    /// The share done, from 0 to 1; none if it is unknown.
    pub progress: Option<f64>,
    /// Seconds used so far.
    pub seconds: f64,
    /// Why it failed.
    pub problem: Option<Problem>,
    /// Its scores on the held-out rows.
    pub score: Option<Score>,
    /// The model file that it was read from, if it was not fitted here.
    pub file: Option<String>,
}

/// Scores of a model on the held-out rows, at its best lifetime.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Score {
    /// Root mean squared error.
    pub rmse: Option<f64>,
    /// Share of variance explained.
    pub r2: Option<f64>,
    /// Mean negative log probability (classes) or log density (numbers, densities) of the held-out rows.
    pub log_loss: Option<f64>,
    /// Share of misclassified rows.
    pub error_rate: Option<f64>,
    /// Share of held-out targets in the intervals of 90 %.
    pub coverage: Option<f64>,
    /// The best lifetime of its path.
    pub lifetime: Option<f64>,
    /// Microseconds per predicted row.
    pub predict_micros: f64,
}

/// Losses at every lifetime.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// `rmse`, `log_loss` or `neg_log_density`.
    pub loss: String,
    /// Ascending from 0: value i holds from here up to the next.
    pub lifetimes: Vec<f64>,
    /// On the training rows.
    pub train: Vec<f64>,
    /// On the held-out rows; empty if there are none.
    pub held_out: Vec<f64>,
    /// The lifetime of smallest held-out loss; the model's own lifetime without held-out rows.
    pub best: f64,
    /// The smallest lifetime within one standard error of it.
    pub best_1se: f64,
    /// The slider's smallest lifetime above 0.
    pub from: f64,
    /// The slider's largest.
    pub to: f64,
}

/// The two inputs of a plane, and the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaneRequest {
    /// The dimension across.
    pub x: usize,
    /// The dimension up.
    pub y: usize,
    /// The tree, counted from 0.
    #[serde(default)]
    pub tree: usize,
}

/// One side of a plane.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// The input.
    pub name: String,
    /// In the model's scale.
    pub min: f64,
    /// In the model's scale.
    pub max: f64,
    /// In the file's units; none for categories.
    pub low: Option<f64>,
    /// In the file's units.
    pub high: Option<f64>,
}

/// A cut: time, axis (0 across, 1 up), location, and the numbers of the cuts below and above it (−1: none).
pub type Cut = (f64, u8, f64, i64, i64);

/// A tree in the plane of two inputs, with the others at their medians.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plane {
    /// Across.
    pub x: Side,
    /// Up.
    pub y: Side,
    /// The cuts, parents before children.
    pub nodes: Vec<Cut>,
    /// The largest lifetime that the cuts are complete for.
    pub complete_to: f64,
    /// Training rows: across, up, target; at most a few thousand.
    pub points: Vec<[f64; 3]>,
}

/// A model at one lifetime.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct View {
    /// The requested lifetime.
    pub lifetime: Option<f64>,
    /// On the rows learned from, from the path.
    pub train_loss: Option<f64>,
    /// On the held-out rows.
    pub score: Score,
    /// One of this many shown rows is predicted: all of them when the slider is stopped, fewer while it moves.
    pub every: usize,
    /// Predictions of the shown rows: means, or the probability of the predicted class.
    pub predicted: Vec<f64>,
    /// Standard deviations of the shown rows' targets, if the model has them.
    pub std: Vec<f64>,
    /// The 90 % intervals, when the slider is stopped.
    pub interval: Vec<[f64; 2]>,
    /// The classes predicted for the shown rows.
    pub classes: Vec<u32>,
    /// Nominal against observed: coverage of intervals, or confidence against how often right.
    pub calibration: Vec<[f64; 2]>,
    /// The model in the requested plane.
    pub surface: Option<Surface>,
    /// Milliseconds in the library.
    pub millis: f64,
}

/// A model on a lattice of a plane, row by row from below.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Surface {
    /// Columns and rows.
    pub n: usize,
    /// Means, log densities, or the probability of the class.
    pub values: Vec<f64>,
    /// The most probable classes.
    pub classes: Vec<u32>,
}

/// A row to predict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowRequest {
    /// The lifetime; default: the best.
    #[serde(default)]
    pub lifetime: Option<f64>,
    /// A number or a text per input column.
    pub cells: serde_json::Map<String, serde_json::Value>,
}

/// The prediction for a row.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RowAnswer {
    /// The mean, or the log density.
    pub mean: Option<f64>,
    /// Standard deviation of a new target.
    pub std: Option<f64>,
    /// The 90 % interval of a new target.
    pub interval: Option<[f64; 2]>,
    /// The probability of each class.
    pub probabilities: Vec<f64>,
    /// Whether the row lies outside the box of the training rows.
    pub outside: bool,
    /// The training rows with the greatest weights.
    pub neighbours: Vec<Neighbour>,
    /// How many training rows have a weight above a thousandth.
    pub n_neighbours: usize,
    /// The sum of all weights; the rest to 1 is the weight of the prior.
    pub total_weight: Option<f64>,
}

/// A training row with its weight in a prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Neighbour {
    /// Its number in the file.
    pub row: u64,
    /// Its weight in the prediction.
    pub weight: f64,
    /// Its target.
    pub target: f64,
    /// Its inputs, one per dimension, in the file's units where they are numbers.
    pub inputs: Vec<f64>,
}

/// Inputs with their lifetimes, and the errors after changing one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Inputs {
    /// Names, one per dimension.
    pub names: Vec<String>,
    /// The share of error that an input removes, or its importance; empty if the model has none.
    pub relevance: Vec<f64>,
    /// One lifetime per input, per unit of its standard deviation (laplace and grid).
    pub lifetimes: Vec<f64>,
    /// The held-out error now.
    pub error: Option<f64>,
    /// The held-out error with this input's lifetime halved.
    pub halved: Vec<Option<f64>>,
    /// The held-out error with this input's lifetime doubled.
    pub doubled: Vec<Option<f64>>,
}

/// A model or report to download, fitted on all rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// Which kind.
    pub kind: Kind,
    /// A lifetime; tuned if not given.
    pub lifetime: Option<f64>,
    /// One lifetime per input instead of tuned ones, as in a [`FitRequest`].
    #[serde(default)]
    pub lifetimes: Option<Vec<f64>>,
    /// Trees, or grids.
    pub trees: Option<usize>,
    /// Seed of all randomness.
    pub seed: u64,
}

/// Code that reproduces the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lines {
    /// The command.
    pub command: String,
    /// Python.
    pub python: String,
}

/// The whole session, shared by all tabs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// [`VERSION`].
    pub version: u32,
    /// Incremented with every change of table or choice.
    pub generation: u64,
    /// The table that was opened.
    pub table: Option<TableInfo>,
    /// The model file that was opened.
    pub file: Option<FileInfo>,
    /// The rows, prepared.
    pub data: Option<DataInfo>,
    /// Models, oldest first.
    pub models: Vec<ModelInfo>,
    /// Largest upload in bytes.
    pub max_upload: u64,
    /// Most models at a time.
    pub max_models: usize,
}

/// The state of a stream of rows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StreamInfo {
    /// Rows learned so far.
    pub seen: usize,
    /// Total number of rows.
    pub of: usize,
    /// Whether rows are being fed.
    pub playing: bool,
    /// Numbers of learned rows at which errors were recorded.
    pub at: Vec<f64>,
    /// Test-then-train error up to each of these: root mean squared, or the share of wrong classes.
    pub error: Vec<f64>,
    /// The same of always predicting the mean (or most frequent class) so far.
    pub baseline: Vec<f64>,
    /// Positions (in the order of arrival) of rows that were forgotten.
    pub forgotten: Vec<usize>,
    /// Why it stopped.
    pub problem: Option<Problem>,
}
