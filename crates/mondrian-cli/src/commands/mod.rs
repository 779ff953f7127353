//! One file a command: a checked plan, then the run, then the output.

pub(crate) mod describe;
mod fit;
mod inspect;
mod path;
mod predict;
mod sample;
mod tour;
mod update;

pub(crate) use fit::learn_all;

use std::path::Path;

use clap::CommandFactory;

use crate::args::{Cli, Command};
use crate::failure::{Failure, Outcome};
use crate::screen::Screen;

/// Runs a command.
pub(crate) fn run(command: Command, screen: Screen) -> Outcome<()> {
    match command {
        Command::Update(args) => update::update(&args, screen),
        Command::Merge(args) => update::merge(&args, screen),
        Command::Describe(args) => describe::run(&args, screen),
        Command::Tour(args) => tour::run(&args, screen),
        Command::Sample(args) => sample::run(&args, screen),
        Command::Fit(args) => fit::run(&args, screen),
        Command::Path(args) => path::run(&args, screen),
        Command::Predict(args) => predict::run(&args, screen),
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

fn print(bytes: &[u8]) -> Outcome<()> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|e| Failure::stdout(&e))
}

/// A file's bytes.
pub(crate) fn read_file(path: &Path) -> Outcome<Vec<u8>> {
    if path.is_dir() {
        return Err(Failure::reading(path, &std::io::Error::from(std::io::ErrorKind::IsADirectory)));
    }
    std::fs::read(path).map_err(|e| Failure::reading(path, &e))
}
