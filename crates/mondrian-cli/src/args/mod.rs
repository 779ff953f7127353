//! The command line: one definition for parsing, `--help`, completions and the man page.

mod data;
mod models;

pub(crate) use data::{DataArgs, MissingArgs, ReadArgs};
pub(crate) use models::{
    FiniteLifetime, LeafModelArg, LifetimeArg, ModelArgs, ModelKind, NumberArg, PathKind, PathMethodArg, SearchArg,
};

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueHint};

use crate::failure::Outcome;

/// The Mondrian process in machine learning: one fit, the whole curve of error against lifetime.
#[derive(Debug, Parser)]
#[command(name = "mondrian", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "Start with: mondrian tour\n\nExit status: 0 success, 2 invalid input, 1 any other error.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) global: Global,
}

/// Options of every command.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Print one JSON object on standard output
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
    /// Print nothing but errors
    #[arg(long, short, global = true, help_heading = "Global options")]
    pub(crate) quiet: bool,
    /// Threads to use, at most one per core; results never depend on it [default: one per core]
    #[arg(long, global = true, value_name = "N", help_heading = "Global options")]
    pub(crate) threads: Option<usize>,
    /// Memory limit of one matrix or table, such as 8GB [default: four fifths of the free memory]
    #[arg(long, global = true, value_name = "SIZE", value_parser = crate::memory::size, help_heading = "Global options")]
    pub(crate) max_memory: Option<u64>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Tour(TourArgs),
    Sample(SampleArgs),
    Fit(FitArgs),
    Path(PathArgs),
    Predict(PredictArgs),
    Evaluate(EvaluateArgs),
    Update(UpdateArgs),
    Learn(LearnArgs),
    Forget(ForgetArgs),
    Merge(MergeArgs),
    Summarize(SummarizeArgs),
    Describe(DescribeArgs),
    Inspect(InspectArgs),
    #[cfg(feature = "studio")]
    Studio(StudioArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// Demonstrate everything on embedded data and write a report
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  mondrian tour --out tour && xdg-open tour/report.html")]
pub(crate) struct TourArgs {
    /// The folder for report.html; created if it does not exist
    #[arg(long, short, default_value = "tour", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: PathBuf,
    /// Seed of all randomness
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
}

/// Sample a Mondrian process on a box and draw it
///
/// Boxes of more than two dimensions are drawn as a slice.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mondrian sample --lower 0,0 --upper 1,1 --lifetime 5 --seed 1 --out picture.svg
  mondrian sample --lower 0,0 --upper 3,2 --lifetime 3 --paint --out painting.png
  mondrian sample --lower 0,0,0 --upper 1,1,1 --lifetime 4 --axes 0,2 --through 0.5,0.2,0.5 --times --out slice.svg")]
pub(crate) struct SampleArgs {
    /// Lower corner of the box, one number per dimension
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', required = true, allow_negative_numbers = true)]
    pub(crate) lower: Vec<f64>,
    /// Upper corner of the box
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', required = true, allow_negative_numbers = true)]
    pub(crate) upper: Vec<f64>,
    /// Lifetime: how long the process runs
    #[arg(long, value_name = "λ", allow_negative_numbers = true)]
    pub(crate) lifetime: FiniteLifetime,
    /// Seed: the same seed and box give the same partition
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Factors on the lengths, one per dimension
    #[arg(long, value_name = "W,...", value_delimiter = ',')]
    pub(crate) weights: Option<Vec<f64>>,
    /// Output file of the drawing: .svg, .png, or - for SVG on standard output
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
    /// Paint the cells
    #[arg(long, help_heading = "Drawing")]
    pub(crate) paint: bool,
    /// Label every cut with its time
    #[arg(long, help_heading = "Drawing")]
    pub(crate) times: bool,
    /// The two dimensions to draw, horizontal and vertical, counted from 0 [default: the first two]
    #[arg(long, value_name = "I,J", value_parser = two_axes, help_heading = "Drawing")]
    pub(crate) axes: Option<[usize; 2]>,
    /// A point in the slice [default: the centre]
    #[arg(
        long,
        value_name = "A,B,...",
        value_delimiter = ',',
        allow_negative_numbers = true,
        help_heading = "Drawing"
    )]
    pub(crate) through: Option<Vec<f64>>,
    /// The longer side in pixels
    #[arg(long, default_value_t = 720.0, value_name = "PIXELS", help_heading = "Drawing")]
    pub(crate) size: f64,
}

fn two_axes(text: &str) -> Result<[usize; 2], String> {
    let numbers: Option<Vec<usize>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
    match numbers.as_deref() {
        Some(&[across, up]) => Ok([across, up]),
        _ => Err("give two dimensions such as 0,2".to_owned()),
    }
}

/// Fit a model to a table and save it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mondrian fit power.csv --target output --out power.mondrian
  zcat *.csv.gz | mondrian fit - --target delay --exclude id,name --missing drop --out delay.mondrian")]
pub(crate) struct FitArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// The kind of model [default: laplace]
    #[arg(long, short, value_enum)]
    pub(crate) model: Option<ModelKind>,
    /// Take columns, scaling, box, seed and parameters from this forest, so that the two can be merged
    #[arg(long, value_name = "MODEL", value_hint = ValueHint::FilePath)]
    pub(crate) like: Option<PathBuf>,
    /// Output file of the model, or - for standard output
    #[arg(long, short, value_name = "MODEL", value_hint = ValueHint::FilePath)]
    pub(crate) out: PathBuf,
    /// Also write a report: the same model fitted to three quarters of the rows and evaluated on the rest
    #[arg(long, value_name = "HTML", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
    /// Report time and memory per stage (--json always does)
    #[arg(long)]
    pub(crate) timings: bool,
    #[command(flatten)]
    pub(crate) params: ModelArgs,
}

/// Compute a model's error against its lifetime and write a report
///
/// A quarter of the rows is held out. For a forest, a density and Mondrian features one fit gives the whole curve, exactly;
/// the classes' curve is computed at some lifetimes, the Laplace kernel's at some factors on its lifetimes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mondrian path power.csv --target output --out report.html
  mondrian path points.csv --model density --out report.html --json
  mondrian path power.csv --target output --model kernel --method cg")]
pub(crate) struct PathArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// The kind of model, as for fit [default: laplace]
    #[arg(long, short, value_enum)]
    pub(crate) model: Option<PathKind>,
    /// How the curve of --model kernel is computed [default: auto]
    #[arg(long, value_enum)]
    pub(crate) method: Option<PathMethodArg>,
    /// Output file of the report
    #[arg(long, short, default_value = "report.html", value_name = "HTML", value_hint = ValueHint::FilePath)]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) params: ModelArgs,
}

/// Predict the target for the rows of a table
///
/// One line per row, in the table's order: the mean, the standard deviation of a new target, and the ends of an
/// interval.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mondrian predict power.mondrian new.csv --out predictions.csv
  cat new.csv | mondrian predict power.mondrian - | head")]
pub(crate) struct PredictArgs {
    #[command(flatten)]
    pub(crate) given: ModelAndTable,
    /// Output file of the predictions (CSV), or - for standard output
    #[arg(long, short, default_value = "-", value_name = "CSV", value_hint = ValueHint::FilePath)]
    pub(crate) out: PathBuf,
    /// Predict only the means: faster for the kernel models
    #[arg(long)]
    pub(crate) mean_only: bool,
    /// Coverage of the interval: the share of targets inside it
    #[arg(long, default_value_t = 0.9, value_name = "SHARE")]
    pub(crate) coverage: f64,
    /// Columns of the table to pass through, such as identifiers: the first columns of the output
    #[arg(long, value_name = "COL,...", value_delimiter = ',')]
    pub(crate) keep: Vec<String>,
}

/// Compare a model's predictions with the targets of a table
///
/// Numbers: RMSE, mean absolute error, R² and the coverage of intervals. Classes: accuracy and log loss.
/// Densities: the mean log density.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  mondrian evaluate power.mondrian test.csv --json")]
pub(crate) struct EvaluateArgs {
    #[command(flatten)]
    pub(crate) given: ModelAndTable,
    /// Coverage of an interval to evaluate, besides 0.5, 0.8, 0.9 and 0.95
    #[arg(long, default_value_t = 0.9, value_name = "SHARE")]
    pub(crate) coverage: f64,
}

/// A saved model, and a table for it.
#[derive(Debug, Args)]
pub(crate) struct ModelAndTable {
    /// A model file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    #[command(flatten)]
    pub(crate) missing: MissingArgs,
}

/// Learn more rows into a saved forest
///
/// The result equals a fit on all rows with the same box. The file is replaced atomically.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  mondrian update delay.mondrian tuesday.csv")]
pub(crate) struct UpdateArgs {
    #[command(flatten)]
    pub(crate) given: ModelAndTable,
    /// Output file of the updated model [default: the model's own file]
    #[arg(long, short, value_name = "MODEL", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
    /// Learn classes that the model was not fitted with, instead of refusing them
    #[arg(long)]
    pub(crate) new_classes: bool,
}

/// Learn rows as they arrive, predicting each before it is learned
///
/// Rows are CSV with a header line, or one JSON object per line. One line is printed per row: the prediction made before the row
/// was learned, its target, and the error so far. A row whose line was printed is never lost: it is in a journal
/// beside the model until the model file contains it. A row without a target is only predicted.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tail -F flights.csv | mondrian learn delay.mondrian - > predicted.csv")]
pub(crate) struct LearnArgs {
    /// A forest's or density's model file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,
    /// Source of the rows: a file or pipe, or - for standard input
    #[arg(value_name = "ROWS", default_value = "-", value_hint = ValueHint::FilePath)]
    pub(crate) rows: PathBuf,
    /// Separator of cells: one character, or "tab" [default: detected from the first line]
    #[arg(long, value_name = "CHAR", help_heading = "Table")]
    delimiter: Option<String>,
    #[command(flatten)]
    pub(crate) missing: MissingArgs,
    /// Learn classes that the model was not fitted with, instead of stopping at them
    #[arg(long)]
    pub(crate) new_classes: bool,
    /// Also print the standard deviation and the ends of an interval (numbers)
    #[arg(long)]
    pub(crate) intervals: bool,
    /// Coverage of the interval: the share of targets inside it
    #[arg(long, default_value_t = 0.9, value_name = "SHARE")]
    pub(crate) coverage: f64,
    /// Keep the last N rows from now on and forget older ones, or keep all rows again: a number, or all [default: as in the model]
    #[arg(long, value_name = "N", value_parser = window)]
    pub(crate) window: Option<Window>,
    /// Write the model file after this many rows
    #[arg(long, default_value_t = 100_000, value_name = "N")]
    pub(crate) checkpoint_rows: u64,
    /// Write the model file after this many seconds, if there are new rows
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pub(crate) checkpoint_seconds: u64,
}

/// The number of rows that a model keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Window {
    All,
    Last(usize),
}

fn window(text: &str) -> Result<Window, String> {
    if text == "all" {
        return Ok(Window::All);
    }
    models::at_least_one(text).map(Window::Last).map_err(|hint| format!("{hint}, or all"))
}

impl LearnArgs {
    /// The given separator.
    pub(crate) fn separator(&self) -> Outcome<Option<u8>> {
        data::separator(self.delimiter.as_deref())
    }
}

/// Remove rows that a saved forest has learned
///
/// The result equals the forest that never learned them. Every row must have been learned, with that target.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  mondrian forget delay.mondrian withdrawn.csv")]
pub(crate) struct ForgetArgs {
    #[command(flatten)]
    pub(crate) given: ModelAndTable,
    /// Output file of the changed model [default: the model's own file]
    #[arg(long, short, value_name = "MODEL", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
}

/// Merge forests with equal settings, or summaries of parts, into one of all rows
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mondrian fit monday.csv --target delay --model forest --lifetime inf --out monday.mondrian
  mondrian fit tuesday.csv --like monday.mondrian --out tuesday.mondrian
  mondrian merge monday.mondrian tuesday.mondrian --out both.mondrian
  mondrian merge part*.summary --finish --out forest.mondrian")]
pub(crate) struct MergeArgs {
    /// Model files, all fitted --like the first, or summaries on one domain
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// Make a model of the merged summaries
    #[arg(long)]
    pub(crate) finish: bool,
    /// Output file of the merged model or summary
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: PathBuf,
}

/// Summarize a part of the rows for a forest that is trained in parts
///
/// First make a domain from a table of all rows: columns, scaling, box, seed, trees and lifetime. Then summarize every part
/// with it, on any machine. The summaries, merged in any order and finished, give the forest of all rows.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  cat part*.csv | mondrian summarize - --target delay --lifetime 3 --make-domain --out delay.domain
  mondrian summarize part1.csv --domain delay.domain --out part1.summary
  mondrian summarize part2.csv --domain delay.domain --out part2.summary
  mondrian merge part1.summary part2.summary --finish --out delay.mondrian")]
pub(crate) struct SummarizeArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// The domain, made by --make-domain; it includes the options for columns and models
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "make_domain")]
    pub(crate) domain: Option<PathBuf>,
    /// Make the domain of this table instead; without a target, that of a density
    #[arg(long, required_unless_present = "domain")]
    pub(crate) make_domain: bool,
    /// Output file of the summary or the domain
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) params: ModelArgs,
}

/// Show how a table is interpreted: its columns, ranges, categories and missing cells
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  mondrian describe power.csv.gz")]
pub(crate) struct DescribeArgs {
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

/// Show the contents of a model file
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  mondrian inspect power.mondrian")]
pub(crate) struct InspectArgs {
    /// A model file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,
}

/// Open a local page to fit models side by side and drag their lifetime
///
/// The page is served on this machine only, at a random address, until Ctrl-C.
#[cfg(feature = "studio")]
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mondrian studio\n  mondrian studio power.csv --port 8123 --no-open\n  mondrian studio power.mondrian new.csv"
)]
pub(crate) struct StudioArgs {
    /// Files to open at once: a table (CSV, plain or gzip, or Parquet), a model file, or a model and a table to evaluate it on
    #[arg(value_name = "DATA | MODEL", num_args = 0..=2, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// The port [default: any free port]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,
    /// Only print the address; do not open a browser
    #[arg(long)]
    pub(crate) no_open: bool,
}

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  mondrian completions bash > ~/.local/share/bash-completion/completions/mondrian")]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// Print the man page of the program or of one command (roff)
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  mondrian man fit > mondrian-fit.1 && man ./mondrian-fit.1")]
pub(crate) struct ManArgs {
    /// A command
    pub(crate) command: Option<String>,
}
