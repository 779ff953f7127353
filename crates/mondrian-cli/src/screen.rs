//! What people and machines see: talk and bars on standard error, data on standard output.

use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::failure::{Failure, Outcome};

/// Work shorter than this shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// How the command was asked to speak.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    /// One JSON object on standard output.
    pub(crate) json: bool,
    /// No talk.
    pub(crate) quiet: bool,
}

impl Screen {
    /// A line for people.
    pub(crate) fn say(self, line: impl AsRef<str>) {
        if !self.quiet {
            // A closed standard error is no reason to stop.
            let _ = writeln!(io::stderr().lock(), "{}", line.as_ref());
        }
    }

    /// The command's result: the object under `--json`, else the text.
    pub(crate) fn result(self, text: &str, object: &serde_json::Value) -> Outcome<()> {
        if self.json {
            print_line(&object.to_string())
        } else if text.is_empty() {
            Ok(())
        } else {
            print_line(text)
        }
    }

    /// Does work of the library under a bar that shows how far it is.
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

/// A progress bar that short work never shows.
pub(crate) struct Progress {
    what: &'static str,
    total: u64,
    started: Instant,
    bar: Option<ProgressBar>,
    silent: bool,
}

impl Progress {
    /// So many steps are done.
    pub(crate) fn set(&mut self, done: u64) {
        if self.silent || (self.bar.is_none() && self.started.elapsed() < PATIENCE) {
            return;
        }
        let (what, total, elapsed) = (self.what, self.total, self.started.elapsed());
        self.bar.get_or_insert_with(|| new_bar(what, total, elapsed)).set_position(done);
    }

    /// Counts the steps of a search as they are told.
    pub(crate) fn counting(&mut self) -> impl FnMut(mondrian::Report<'_>) -> ControlFlow<()> {
        let mut done = 0;
        move |report| {
            done += u64::from(report.step.is_some());
            self.set(done);
            ControlFlow::Continue(())
        }
    }

    /// The work is over: the bar goes away.
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

/// Refuses a standard output that was closed before the program started: what is written there would be lost without an error.
pub(crate) fn check_stdout() -> Outcome<()> {
    if crate::system::stdout_was_closed() {
        return Err(Failure::Other("standard output is closed".to_owned()));
    }
    Ok(())
}

/// One line on standard output, right away.
pub(crate) fn print_line(line: &str) -> Outcome<()> {
    print(format!("{line}\n").as_bytes())
}

/// Bytes on standard output, right away.
pub(crate) fn print(bytes: &[u8]) -> Outcome<()> {
    check_stdout()?;
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|e| Failure::stdout(&e))
}
