//! The program `mondrian`: arguments, then a checked plan, then a run, then output. No numerics here.
//!
//! A library only so that its readers can be fuzzed and tested: nothing here is meant for other programs.

mod args;
mod commands;
mod failure;
pub mod fuzz;
mod interrupt;
mod journal;
mod lock;
mod memory;
mod model;
mod pixels;
mod prepare;
mod report;
mod save;
mod scores;
mod screen;
mod stages;
mod system;
mod table;

use std::io::Write;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use args::Cli;
use failure::{Failure, Outcome};
use screen::Screen;

/// The whole program.
pub fn main() -> ExitCode {
    let json = std::env::args_os().any(|a| a == "--json");
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_understood(&error, json),
    };
    let screen = Screen { json: cli.global.json, quiet: cli.global.quiet };
    // A panic, in this program or in a library that reads a malicious file, ends in a one-line error too.
    panic::set_hook(Box::new(|_| {}));
    interrupt::listen();
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| run(cli, screen))).unwrap_or_else(|cause| {
        let text = cause.downcast_ref::<String>().map(String::as_str).or(cause.downcast_ref::<&str>().copied());
        Err(Failure::Other(format!("internal error (please report): {}", text.unwrap_or("unknown"))))
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => report(&failure, json),
    }
}

fn run(cli: Cli, screen: Screen) -> Outcome<()> {
    if let Some(n) = cli.global.threads {
        if n == 0 {
            return Err(Failure::input(
                "--threads must be at least 1",
                "give 1 or more, or leave it out for all cores",
            ));
        }
        // More threads than cores gain nothing, and a million take minutes to start.
        let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
        rayon::ThreadPoolBuilder::new()
            .num_threads(n.min(n_cores))
            .build_global()
            .map_err(|e| Failure::Other(format!("the threads cannot be started: {e}")))?;
    }
    mondrian::set_max_memory(cli.global.max_memory.or_else(memory::share_of_free));
    commands::run(cli.command, screen)
}

/// One line on standard error, and the object under `--json`.
fn report(failure: &Failure, json: bool) -> ExitCode {
    if !matches!(failure, Failure::ClosedPipe) {
        let _ = writeln!(std::io::stderr().lock(), "error: {failure}");
        if json {
            let (message, hint) = match failure {
                Failure::Input { what, hint } => (what.clone(), Some(hint.clone())),
                other => (other.to_string(), None),
            };
            let error = serde_json::json!({ "message": message, "hint": hint, "exit_status": failure.status() });
            let _ = screen::print_line(&serde_json::json!({ "error": error }).to_string());
        }
    }
    ExitCode::from(failure.status())
}

/// Arguments that cannot be parsed: clap's message in one line. Help and version are not errors.
fn not_understood(error: &clap::Error, json: bool) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return match error.print() {
            Ok(()) => ExitCode::SUCCESS,
            Err(e) => report(&Failure::stdout(&e), json),
        };
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return ExitCode::from(2);
    }
    let text = error.render().to_string();
    let what: Vec<&str> = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .filter(|line| !line.is_empty())
        .collect();
    let what = what.join(" ");
    let what = what.strip_prefix("error: ").unwrap_or(&what).to_owned();
    report(&Failure::input(what, "see --help"), json)
}
