//! The program `mondrian`; all of it is in the library beside.

use std::process::ExitCode;

fn main() -> ExitCode {
    mondrian_cli::main()
}
