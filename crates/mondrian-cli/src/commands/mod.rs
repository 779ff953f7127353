//! One file per command: a checked plan, then the run, then the output.

pub(crate) mod describe;
mod fit;
mod inspect;
mod learn;
mod path;
mod predict;
mod sample;
#[cfg(feature = "studio")]
mod studio;
mod summarize;
mod tour;
mod update;

use clap::CommandFactory;

use crate::args::{Cli, Command};
use crate::failure::{Failure, Outcome};
use crate::screen::{Screen, print};

/// Runs a command.
pub(crate) fn run(command: Command, screen: Screen) -> Outcome<()> {
    match command {
        Command::Evaluate(args) => predict::evaluate(&args, screen),
        Command::Learn(args) => learn::run(&args, screen),
        Command::Forget(args) => update::forget(&args, screen),
        Command::Update(args) => update::update(&args, screen),
        Command::Merge(args) => update::merge(&args, screen),
        Command::Summarize(args) => summarize::run(&args, screen),
        Command::Describe(args) => describe::run(&args, screen),
        Command::Tour(args) => tour::run(&args, screen),
        Command::Sample(args) => sample::run(&args, screen),
        Command::Fit(args) => fit::run(&args, screen),
        Command::Path(args) => path::run(&args, screen),
        Command::Predict(args) => predict::run(&args, screen),
        #[cfg(feature = "studio")]
        Command::Studio(args) => studio::run(&args, screen),
        Command::Inspect(args) => inspect::run(&args, screen),
        Command::Completions(args) => completions(args.shell),
        Command::Man(args) => man(args.command.as_deref()),
    }
}

fn completions(shell: clap_complete::Shell) -> Outcome<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "mondrian", &mut script);
    print(&script)
}

fn man(command: Option<&str>) -> Outcome<()> {
    let mut whole = Cli::command();
    // Fills in what commands inherit from the program.
    whole.build();
    let chosen = match command {
        None => whole,
        Some(name) => {
            let found = whole.find_subcommand(name).cloned();
            found.ok_or_else(|| Failure::input(format!("there is no command {name:?}"), "see mondrian --help"))?
        }
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(chosen).render(&mut page).map_err(|e| Failure::stdout(&e))?;
    print(&page)
}
