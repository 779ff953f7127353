//! Output: messages and progress bars on standard error, data on standard output.

use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::failure::{Failure, Outcome};

/// Work shorter than this shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// Output options of the command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    /// One JSON object on standard output.
    pub(crate) json: bool,
    /// No messages.
    pub(crate) quiet: bool,
}

impl Screen {
    /// Prints a message.
    pub(crate) fn message(self, line: impl AsRef<str>) {
        if !self.quiet {
            // A closed standard error is ignored.
            let _ = writeln!(io::stderr().lock(), "{}", line.as_ref());
        }
    }

    /// Prints the command's result: the object under `--json`, else the text.
    pub(crate) fn result(self, text: &str, object: &serde_json::Value) -> Outcome<()> {
        if self.json {
            print_line(&object.to_string())
        } else if text.is_empty() {
            Ok(())
        } else {
            print_line(text)
        }
    }

    /// Runs work of the library with a progress bar.
    pub(crate) fn watch<T>(
        self,
        what: &'static str,
        work: impl FnOnce(&mut mondrian::Progress<'_>) -> mondrian::Result<T>,
    ) -> mondrian::Result<T> {
        let mut bar = self.progress(what, 1000);
        let outcome = work(&mut mondrian::Progress::new(&mut |report| {
            bar.set((report.fraction * 1000.0) as u64);
            ControlFlow::Continue(())
        }));
        bar.finish();
        outcome
    }

    /// A bar over `total` steps (0: unknown), drawn once the work has taken a second.
    pub(crate) fn progress(self, what: &'static str, total: u64) -> Progress {
        Progress { what, total, started: Instant::now(), bar: None, silent: self.quiet || !io::stderr().is_terminal() }
    }
}

/// A progress bar, shown only for long work.
pub(crate) struct Progress {
    what: &'static str,
    total: u64,
    started: Instant,
    bar: Option<ProgressBar>,
    silent: bool,
}

impl Progress {
    /// Sets the number of completed steps.
    pub(crate) fn set(&mut self, done: u64) {
        if self.silent || (self.bar.is_none() && self.started.elapsed() < PATIENCE) {
            return;
        }
        let (what, total, elapsed) = (self.what, self.total, self.started.elapsed());
        self.bar.get_or_insert_with(|| new_bar(what, total, elapsed)).set_position(done);
    }

    /// Counts the reported steps of a search.
    pub(crate) fn counting(&mut self) -> impl FnMut(mondrian::Report<'_>) -> ControlFlow<()> {
        let mut done = 0;
        move |report| {
            done += u64::from(report.step.is_some());
            self.set(done);
            ControlFlow::Continue(())
        }
    }

    /// Removes the bar at the end of the work.
    pub(crate) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

fn new_bar(what: &'static str, total: u64, elapsed: Duration) -> ProgressBar {
    let length = (total > 0).then_some(total);
    let bar =
        ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr()).with_message(what).with_elapsed(elapsed);
    let pattern = if total > 0 {
        "{msg:<10} {bar:32.red/white} {human_pos}/{human_len}  {per_sec:.dim}  {eta} left"
    } else {
        "{msg:<10} {spinner:.red} {human_pos}  {per_sec:.dim}"
    };
    if let Ok(style) = ProgressStyle::with_template(pattern) {
        bar.set_style(style.progress_chars("━━─"));
    }
    bar
}

/// Refuses a standard output that was closed before the program started: output would be lost without an error.
pub(crate) fn check_stdout() -> Outcome<()> {
    if crate::system::stdout_was_closed() {
        return Err(Failure::Other("standard output is closed".to_owned()));
    }
    Ok(())
}

/// Prints one line on standard output and flushes it.
pub(crate) fn print_line(line: &str) -> Outcome<()> {
    print(format!("{line}\n").as_bytes())
}

/// Writes bytes to standard output and flushes them.
pub(crate) fn print(bytes: &[u8]) -> Outcome<()> {
    check_stdout()?;
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|e| Failure::stdout(&e))
}
