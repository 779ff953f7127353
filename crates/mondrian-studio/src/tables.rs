//! The interface to the program: tables are read and prepared, and models fitted, as by its commands.

use std::path::Path;
use std::sync::Arc;

use mondrian::internals::laplace::LaplaceKernelRidge;
use mondrian::{
    ClassificationForest, DensityForest, GridRidge, KernelRidge, LaplaceClassifier, LaplaceRegressor, RegressionForest,
};
use serde_json::{Map, Value};

use crate::api::{Choice, FileInfo, InputInfo, Kind, Lines, Problem, Recipe, TableInfo, Task};

/// Opens tables and model files. The program implements it, so that the studio reads what its commands read.
pub trait Tables: Send + Sync + 'static {
    /// Opens a table at a path of this machine that the server chose or the command line named.
    ///
    /// # Errors
    /// An error in the file.
    fn open(&self, path: &Path) -> Result<Box<dyn Table>, Problem>;

    /// Opens a model file; none if the file is something else.
    ///
    /// # Errors
    /// An error in the model.
    fn open_model(&self, path: &Path) -> Result<Option<ModelFile>, Problem> {
        let _ = path;
        Ok(None)
    }

    /// Name and text of the table of `mondrian tour`.
    fn tour(&self) -> (&'static str, &'static str);

    /// Stops running work when the studio closes.
    fn stop(&self);
}

/// Reads the rows of a table.
pub type ReadRows = dyn Fn(&Path) -> Result<Part, Problem> + Send;

/// An open model file.
pub struct ModelFile {
    /// Facts about the model.
    pub info: FileInfo,
    /// Seed of all its randomness.
    pub seed: u64,
    /// The model.
    pub model: SavedModel,
    /// Its inputs, and the rows that it contains; nothing is held out.
    pub data: Data,
    /// The rows of a table, prepared like those of the model, to evaluate it on.
    pub rows: Box<ReadRows>,
}

/// The model of a file.
pub enum SavedModel {
    /// The tuned kernel, for numbers.
    Laplace(Box<LaplaceRegressor>),
    /// The tuned kernel, for classes.
    LaplaceClasses(Box<LaplaceClassifier>),
    /// The report's kernel: only lifetimes tuned.
    Axes(Box<LaplaceKernelRidge>),
    /// A forest, for numbers.
    Forest(Box<RegressionForest>),
    /// A forest, for classes.
    Classifier(Box<ClassificationForest>),
    /// Ridge regression on Mondrian features.
    Kernel(Box<KernelRidge>),
    /// Ridge regression on a Mondrian grid.
    Grid(Box<GridRidge>),
    /// A density.
    Density(Box<DensityForest>),
}

/// An open table.
pub trait Table: Send + Sync {
    /// Its interpretation; a column that cannot be read has a problem.
    ///
    /// # Errors
    /// A problem of the whole file.
    fn describe(&self) -> Result<TableInfo, Problem>;

    /// The rows, encoded, scaled and split into training and held-out rows.
    ///
    /// # Errors
    /// An error in the choice or in a cell.
    fn prepare(&self, choice: &Choice) -> Result<Data, Problem>;

    /// The bytes of the model file that `mondrian fit` writes.
    ///
    /// # Errors
    /// As the command's.
    fn model_file(&self, choice: &Choice, recipe: &Recipe) -> Result<Vec<u8>, Problem>;

    /// The page that `mondrian path` writes.
    ///
    /// # Errors
    /// As the command's.
    fn report(&self, choice: &Choice, recipe: &Recipe) -> Result<Vec<u8>, Problem>;

    /// The command, and the Python lines, that give the same model, bit for bit.
    fn lines(&self, choice: &Choice, recipe: &Recipe) -> Lines;
}

/// How rows become numbers, and numbers the file's units.
pub trait Encoder: Send + Sync {
    /// The dimensions of a row given as column name → cell.
    ///
    /// # Errors
    /// Which cell is not usable.
    fn encode(&self, cells: &Map<String, Value>) -> Result<Vec<f64>, Problem>;

    /// Prepared rows as the tuned Laplace kernel takes them: one cell per input column, numbers in the file's units,
    /// categories by number.
    fn cells(&self, x: &[f64]) -> Vec<f64>;

    /// Which input columns are categories.
    fn codes(&self) -> Vec<bool>;

    /// A dimension's value in the file's units; none for categories.
    fn in_units(&self, feature: usize, scaled: f64) -> Option<f64>;
}

/// Some rows, ready for a model.
#[derive(Debug, Clone, Default)]
pub struct Part {
    /// Inputs, row-major.
    pub x: Vec<f64>,
    /// Targets: numbers, or the classes' numbers.
    pub y: Vec<f64>,
    /// The rows' numbers in the file, counted from 1.
    pub rows: Vec<u64>,
}

/// A prepared table.
#[derive(Clone)]
pub struct Data {
    /// Names, one per dimension.
    pub features: Vec<String>,
    /// The dimensions that a plane can be cut along: all but numbers of categories.
    pub axes: Vec<usize>,
    /// The columns behind them.
    pub inputs: Vec<InputInfo>,
    /// The target's name.
    pub target: Option<String>,
    /// Number or class.
    pub task: Option<Task>,
    /// The classes, sorted.
    pub classes: Option<Vec<String>>,
    /// Lower corner of the box of all rows.
    pub lower: Vec<f64>,
    /// Upper corner.
    pub upper: Vec<f64>,
    /// Training rows.
    pub train: Part,
    /// Held-out rows.
    pub held_out: Part,
    /// The median of every dimension over the training rows.
    pub middle: Vec<f64>,
    /// How they were made.
    pub encoder: Arc<dyn Encoder>,
}

impl Data {
    /// Number of dimensions.
    pub fn width(&self) -> usize {
        self.features.len()
    }

    /// Standard deviations of the input columns over the rows to learn from, as cells; 1 for categories and constants.
    pub(crate) fn deviations(&self) -> Vec<f64> {
        let (cells, codes) = (self.encoder.cells(&self.train.x), self.encoder.codes());
        let n = self.train.rows.len().max(1) as f64;
        let one = |(d, is_code): (usize, &bool)| {
            let column = || cells.iter().skip(d).step_by(codes.len().max(1));
            let mean = column().sum::<f64>() / n;
            let deviation = (column().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n).sqrt();
            if *is_code || !(deviation > 0.0) { 1.0 } else { deviation }
        };
        codes.iter().enumerate().map(one).collect()
    }

    /// Lifetimes per standard deviation of an input column, per unit of the file.
    pub(crate) fn in_file_units(&self, lifetimes: &[f64]) -> Vec<f64> {
        lifetimes.iter().zip(self.deviations()).map(|(lifetime, deviation)| lifetime / deviation).collect()
    }

    /// A recipe with its lifetimes in the units that the program's `--lifetimes` takes.
    pub(crate) fn in_units_of(&self, recipe: Recipe) -> Recipe {
        let Some(lifetimes) = recipe.lifetimes.as_ref().filter(|_| recipe.kind == Kind::Laplace) else { return recipe };
        Recipe { lifetimes: Some(self.in_file_units(lifetimes)), ..recipe }
    }

    /// The medians of some rows, dimension by dimension.
    pub fn medians(x: &[f64], width: usize) -> Vec<f64> {
        (0..width)
            .map(|d| {
                let mut column: Vec<f64> = x.iter().skip(d).step_by(width).copied().collect();
                column.sort_unstable_by(f64::total_cmp);
                column.get(column.len() / 2).copied().unwrap_or(0.0)
            })
            .collect()
    }
}
