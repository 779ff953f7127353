//! Options of the models.

use std::str::FromStr;

use clap::{Args, ValueEnum};
use mondrian::{Lifetime, PathMethod, Validation};

use crate::failure::{Failure, Outcome};
use crate::prepare::{Preparation, Task};

/// The kinds of model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelKind {
    /// The Laplace kernel, tuned: the most accurate
    Laplace,
    /// A Mondrian forest: learns online, gives uncertainties
    Forest,
    /// Ridge regression on Mondrian features
    Kernel,
    /// Ridge regression on a Mondrian grid, one searched lifetime per input
    Grid,
    /// A density: likelihoods of rows; needs no target
    Density,
}

/// The kinds of model that have a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PathKind {
    /// The exact Laplace kernel: its error against a common factor on its tuned lifetimes
    Laplace,
    /// A Mondrian forest
    Forest,
    /// Ridge regression on Mondrian features
    Kernel,
    /// A density
    Density,
    /// Ridge regression on a Mondrian grid: the trajectory of the search for its lifetimes
    Grid,
}

impl PathKind {
    /// The kind of model.
    pub(crate) fn kind(self) -> ModelKind {
        match self {
            Self::Laplace => ModelKind::Laplace,
            Self::Forest => ModelKind::Forest,
            Self::Kernel => ModelKind::Kernel,
            Self::Density => ModelKind::Density,
            Self::Grid => ModelKind::Grid,
        }
    }
}

/// How a path of Mondrian features is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PathMethodArg {
    /// At every cut by merging features; at 64 lifetimes by conjugate gradients if that needs too much memory
    Auto,
    /// At every cut by splitting features, updating the inverse
    Addition,
    /// At every cut by splitting features, updating the Cholesky factor
    Cholesky,
    /// At 64 lifetimes by conjugate gradients: needs no matrix
    Cg,
}

impl PathMethodArg {
    /// The library's type.
    pub(crate) fn method(self) -> PathMethod {
        match self {
            Self::Auto => PathMethod::Removal,
            Self::Addition => PathMethod::Addition,
            Self::Cholesky => PathMethod::Cholesky,
            Self::Cg => PathMethod::conjugate_gradients(Vec::new()),
        }
    }
}

/// A forest's leaf model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LeafModelArg {
    /// Means of cells are shrunk towards those of their parents
    Hierarchical,
    /// Cells are independent
    Independent,
}

impl ModelKind {
    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Laplace => "laplace",
            Self::Forest => "forest",
            Self::Kernel => "kernel",
            Self::Grid => "grid",
            Self::Density => "density",
        }
    }
}

/// A finite lifetime, as needed for a drawing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FiniteLifetime(pub(crate) Lifetime);

impl FromStr for FiniteLifetime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lifetime = text.parse().ok().and_then(|value: f64| Lifetime::new(value).ok());
        lifetime.filter(|l| l.is_finite()).map(Self).ok_or_else(|| "give a finite number ≥ 0".to_owned())
    }
}

/// A lifetime, or `auto`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum LifetimeArg {
    Auto,
    Fixed(Lifetime),
}

impl FromStr for LifetimeArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        text.parse()
            .ok()
            .and_then(|value: f64| Lifetime::new(value).ok())
            .map(Self::Fixed)
            .ok_or_else(|| "give a number ≥ 0, inf, or auto".to_owned())
    }
}

/// How an automatic lifetime is validated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ValidationArg(pub(crate) Validation);

impl FromStr for ValidationArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "hold-out" => Ok(Self(Validation::HoldOut)),
            "leave-one-out" => Ok(Self(Validation::LeaveOneOut)),
            folds => folds
                .parse()
                .ok()
                .filter(|k| *k >= 2)
                .map(|k| Self(Validation::KFold(k)))
                .ok_or_else(|| "give hold-out, leave-one-out, or a number of folds from 2 on".to_owned()),
        }
    }
}

/// A positive number, or `auto`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum NumberArg {
    Auto,
    Value(f64),
}

impl FromStr for NumberArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        text.parse().ok().map(Self::Value).ok_or_else(|| "give a number or auto".to_owned())
    }
}

/// How the lifetimes of a grid are searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SearchArg {
    /// The gradient
    Auto,
    /// Always add the best next cut
    Greedy,
    /// Add or remove the best cut while that lowers the error; may stop far from the best lifetimes
    GreedyBoth,
    /// Several cuts in one direction before deciding
    Lookahead,
    /// One lifetime after the other, multiplied by factors
    Coordinate,
    /// Gradient descent on the exact kernel, with one factorisation per evaluation; then a common factor on the grid
    Gradient,
    /// Simultaneous perturbation
    Spsa,
    /// Expected improvement of a Gaussian process
    Bayes,
}

/// Parameters of the models; each kind of model uses some of them.
#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// Number of trees [default: 100; kernel and grid: 50]
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub(crate) trees: Option<usize>,
    /// How cells of a regression forest are modelled
    #[arg(long, value_enum, default_value = "hierarchical", help_heading = "Model")]
    pub(crate) leaf_model: LeafModelArg,
    /// Lifetime: a number, inf, or auto to tune it
    #[arg(long, default_value = "auto", value_name = "λ", allow_negative_numbers = true, help_heading = "Model")]
    pub(crate) lifetime: LifetimeArg,
    /// One lifetime per input instead of tuned ones, in the model's scale (laplace: the table's units; grid: see --scale)
    #[arg(long, value_name = "λ,...", value_delimiter = ',', conflicts_with_all = ["lifetime", "search"], help_heading = "Model")]
    pub(crate) lifetimes: Option<Vec<f64>>,
    /// How an automatic lifetime of trees is validated: hold-out (a fifth), a number of folds, or leave-one-out (densities)
    #[arg(long, default_value = "hold-out", value_name = "HOW", help_heading = "Model")]
    pub(crate) validation: ValidationArg,
    /// Ridge parameter δ² of the kernel models: a number, or auto [default: 1; laplace: auto]
    #[arg(long, value_name = "δ²", allow_negative_numbers = true, help_heading = "Model")]
    pub(crate) alpha: Option<NumberArg>,
    /// Prior weight γ of classes and densities: a number, or auto [default: auto]
    #[arg(long, value_name = "γ", allow_negative_numbers = true, help_heading = "Model")]
    pub(crate) gamma: Option<NumberArg>,
    /// How the grid model searches for its lifetimes; laplace: auto tunes the whole kernel, gradient and coordinate the report's
    #[arg(long, value_enum, default_value = "auto", help_heading = "Model")]
    pub(crate) search: SearchArg,
    /// Largest number of evaluations of the error in the search
    #[arg(long, value_name = "N", default_value_t = 400, help_heading = "Model")]
    pub(crate) budget: usize,
    /// Steps without a smaller error after which the search ends
    #[arg(long, value_name = "N", default_value_t = 50, help_heading = "Model")]
    pub(crate) patience: usize,
    /// Number of rows that a forest or density keeps, the last ones; `learn` and `update` forget older ones [default: all]
    #[arg(long, value_name = "N", conflicts_with = "max_rows", value_parser = at_least_one, help_heading = "Model")]
    pub(crate) window: Option<usize>,
    /// Number of rows that a forest or density keeps, a random sample that does not depend on their order [default: all]
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Model")]
    pub(crate) max_rows: Option<usize>,
    /// Seed of all randomness: the same seed and data give the same model
    #[arg(long, default_value_t = 0, help_heading = "Model")]
    pub(crate) seed: u64,
}

/// A number of rows.
pub(crate) fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "give a whole number from 1 on".to_owned())
}

impl ModelArgs {
    /// Whether a laplace model is the whole tuned kernel, not the report's kernel with only lifetimes tuned.
    pub(crate) fn tunes_whole_kernel(&self) -> bool {
        self.lifetime == LifetimeArg::Auto && self.search == SearchArg::Auto
    }

    /// Refuses a limit on rows for a model that always keeps all rows.
    pub(crate) fn check_rows_held(&self, kind: ModelKind) -> Outcome<()> {
        let is_given = self.window.is_some() || self.max_rows.is_some();
        if is_given && !matches!(kind, ModelKind::Forest | ModelKind::Density) {
            let problem =
                format!("--window and --max-rows are options of forests and densities, not of a {} model", kind.name());
            return Err(Failure::input(problem, "add --model forest"));
        }
        Ok(())
    }

    /// Refuses lifetimes per input for models without them.
    pub(crate) fn check_lifetimes(&self, kind: ModelKind, preparation: &Preparation) -> Outcome<()> {
        let Some(lifetimes) = &self.lifetimes else { return Ok(()) };
        let of_numbers = preparation.task() == Some(Task::Regression);
        if !of_numbers || !matches!(kind, ModelKind::Laplace | ModelKind::Grid) {
            return Err(Failure::input(
                "--lifetimes are those of a laplace or grid model that predicts numbers",
                "leave them out",
            ));
        }
        let n_inputs = preparation.n_features();
        if lifetimes.len() != n_inputs || lifetimes.iter().any(|l| !(*l >= 0.0 && l.is_finite())) {
            let names = preparation.features().join(", ");
            return Err(Failure::input(
                format!("--lifetimes needs {n_inputs} finite numbers ≥ 0, found {}", lifetimes.len()),
                format!("give one per input, in this order: {names}"),
            ));
        }
        Ok(())
    }
}
