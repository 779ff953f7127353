//! The JSON types of the interface, version 1: what server, page, program and tests exchange.
//!
//! Numbers that JSON cannot hold (an infinite lifetime) are `null`. Fields are added freely, never renamed within a
//! version; `docs/studio.md` describes every request.

use serde::{Deserialize, Serialize};

/// The version in every address of the interface.
pub const VERSION: u32 = 1;

/// What is wrong, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// What is wrong and where.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The column that it is about.
    pub column: Option<String>,
}

impl Problem {
    /// A problem without a hint.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, column: None }
    }

    /// A problem and what to do about it.
    pub fn with_hint(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: Some(hint.into()), column: None }
    }
}

/// A table as it was understood.
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
    /// Why it cannot be used as it is.
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

/// What to do about missing cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Missing {
    /// Stop at the first.
    #[default]
    Refuse,
    /// Leave its row out.
    Drop,
    /// Fill in the column's mean.
    Mean,
}

/// Which columns to learn from, and what to learn.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Choice {
    /// The column to predict; none for densities alone.
    pub target: Option<String>,
    /// From the column's type if not given.
    pub task: Option<Task>,
    /// Columns that are no inputs.
    pub exclude: Vec<String>,
    /// Columns to take as categories.
    pub categorical: Vec<String>,
    /// What to do about missing cells.
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
    /// Trees, or grids; the kind's own default if not given.
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
    /// What else is worth saying: name and value.
    pub facts: Vec<(String, String)>,
}

/// What an uploaded file turned out to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opened {
    /// A table; also where the file was a model and a table is open besides.
    pub table: Option<TableInfo>,
    /// A model; also where the file was a table and a model is open besides.
    pub file: Option<FileInfo>,
}

/// What the rows are after preparation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataInfo {
    /// The choice that led here.
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
    /// Rows learned from.
    pub n_train: usize,
    /// Rows that judge.
    pub n_held_out: usize,
    /// The rows that judge in the charts, at most a thousand: their number in the file and their target.
    pub shown_rows: Vec<u64>,
    /// The targets of those rows.
    pub observed: Vec<f64>,
    /// Kinds of model that can be fitted to them; none where a model file is judged.
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

/// Where a fit stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// At work.
    Running,
    /// Ready to be asked.
    Ready,
    /// Not to be had: see the problem.
    Failed,
    /// Ended by the user.
    Cancelled,
}

/// A model of the session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// Its number.
    pub id: u64,
    /// What was asked for.
    pub request: FitRequest,
    /// Where it stands.
    pub status: Status,
    /// What it is doing.
    pub stage: String,
    /// How far, from 0 to 1; none where the end is not known.
    pub progress: Option<f64>,
    /// Seconds used so far.
    pub seconds: f64,
    /// Why it failed.
    pub problem: Option<Problem>,
    /// How it did on the held-out rows.
    pub score: Option<Score>,
    /// The model file that it was read from, where it was not fitted here.
    pub file: Option<String>,
}

/// How a model does on the held-out rows, at its best lifetime.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Score {
    /// Root mean squared error.
    pub rmse: Option<f64>,
    /// Share of variance explained.
    pub r2: Option<f64>,
    /// Mean negative log probability (classes) or log density (numbers, densities) of the held-out rows.
    pub log_loss: Option<f64>,
    /// Share of rows of a wrong class.
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
    /// On the rows learned from.
    pub train: Vec<f64>,
    /// On the held-out rows; empty where there are none.
    pub held_out: Vec<f64>,
    /// Where the held-out loss is least; the model's own lifetime without held-out rows.
    pub best: f64,
    /// The smallest lifetime within one standard error of it.
    pub best_1se: f64,
    /// The slider's smallest lifetime above 0.
    pub from: f64,
    /// The slider's largest.
    pub to: f64,
}

/// Two inputs to look at, and the tree.
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

/// A tree in the plane of two inputs, the others held at their medians.
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

/// A model seen at one lifetime.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct View {
    /// The lifetime that was asked for.
    pub lifetime: Option<f64>,
    /// On the rows learned from, from the path.
    pub train_loss: Option<f64>,
    /// On the held-out rows.
    pub score: Score,
    /// Of the shown rows one in so many is predicted: all of them at rest, fewer while the slider moves.
    pub every: usize,
    /// Predictions of the shown rows: means, or the probability of the predicted class.
    pub predicted: Vec<f64>,
    /// Standard deviations of the shown rows' targets, where the model has them.
    pub std: Vec<f64>,
    /// The intervals that hold 90 % of their targets, at rest.
    pub interval: Vec<[f64; 2]>,
    /// The classes predicted for the shown rows.
    pub classes: Vec<u32>,
    /// Nominal against observed: coverage of intervals, or confidence against how often right.
    pub calibration: Vec<[f64; 2]>,
    /// The model in the plane asked for.
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
    /// The lifetime to look at; the best if not given.
    #[serde(default)]
    pub lifetime: Option<f64>,
    /// A number or a text per input column.
    pub cells: serde_json::Map<String, serde_json::Value>,
}

/// What a model says about a row.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RowAnswer {
    /// The mean, or the log density.
    pub mean: Option<f64>,
    /// Standard deviation of a new target.
    pub std: Option<f64>,
    /// The interval that holds 90 % of new targets.
    pub interval: Option<[f64; 2]>,
    /// The probability of each class.
    pub probabilities: Vec<f64>,
    /// Whether the row lies outside the box of the training rows.
    pub outside: bool,
    /// The training rows with the greatest weights.
    pub neighbours: Vec<Neighbour>,
    /// How many training rows have a weight above a thousandth.
    pub n_neighbours: usize,
    /// The sum of all weights; what is missing to 1 comes from the prior.
    pub total_weight: Option<f64>,
}

/// A training row that speaks for a prediction.
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

/// Inputs with their lifetimes, and what moving one would do.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Inputs {
    /// Names, one per dimension.
    pub names: Vec<String>,
    /// The share of error that an input removes, or its importance; empty where the model has none.
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

/// What to take away, fitted on all rows.
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

/// Words that give the same model again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lines {
    /// The command.
    pub command: String,
    /// Python.
    pub python: String,
}

/// The whole session, as every tab sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// [`VERSION`].
    pub version: u32,
    /// Rises with every change of table or choice.
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

/// How a stream of rows is going.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StreamInfo {
    /// Rows learned so far.
    pub seen: usize,
    /// Rows there are.
    pub of: usize,
    /// Whether rows are being fed.
    pub playing: bool,
    /// Rows learned, where errors were noted.
    pub at: Vec<f64>,
    /// Test-then-train error over the rows up to there: root mean squared, or the share of wrong classes.
    pub error: Vec<f64>,
    /// The same of always predicting the mean (or most frequent class) so far.
    pub baseline: Vec<f64>,
    /// Positions (in the order of arrival) of rows that were forgotten.
    pub forgotten: Vec<usize>,
    /// Why it stopped.
    pub problem: Option<Problem>,
}
