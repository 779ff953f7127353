//! The command line: one definition for parsing, `--help`, completions and the man page.

mod data;

pub(crate) use data::ReadArgs;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueHint};

/// The Mondrian process in machine learning: one fit, the whole curve of error against lifetime.
#[derive(Debug, Parser)]
#[command(name = "mondrian", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "Start with: mondrian tour\n\nExit status: 0 success, 2 the input is wrong, 1 anything else.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) global: Global,
}

/// What every command takes.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Print one JSON object on standard output
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub(crate) json: bool,
    /// Say nothing but errors
    #[arg(long, short, global = true, help_heading = "Everywhere")]
    pub(crate) quiet: bool,
    /// Threads to use; results never depend on it [default: one a core]
    #[arg(long, global = true, value_name = "N", help_heading = "Everywhere")]
    pub(crate) threads: Option<usize>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Describe(DescribeArgs),
    Inspect(InspectArgs),
    Completions(CompletionsArgs),
    /// Print the man page (roff)
    #[command(after_help = "Example:\n  mondrian man > mondrian.1 && man ./mondrian.1")]
    Man,
}

/// Show how a table is understood: its columns, ranges, categories and missing cells
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  mondrian describe power.csv.gz")]
pub(crate) struct DescribeArgs {
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

/// Show what is in a model file
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  mondrian inspect power.mondrian")]
pub(crate) struct InspectArgs {
    /// A model file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,
}

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  mondrian completions bash > ~/.local/share/bash-completion/completions/mondrian")]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}
