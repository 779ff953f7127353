//! SIGINT, SIGTERM and SIGHUP: temporary files are removed, then the process ends by that signal.
//!
//! A command that must complete its current work (`learn`) registers a callback with [`on_stop`] instead; a second
//! signal then ends it like any other command.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Files to remove when the process is interrupted.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// The callback, called once instead of ending the process.
static STOP: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);

/// The list of temporary files, locked: while this is held no signal ends the process, so every created file is in the
/// list.
pub(crate) fn temporary_files() -> TemporaryFiles {
    TemporaryFiles(TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner))
}

/// See [`temporary_files`].
pub(crate) struct TemporaryFiles(MutexGuard<'static, Vec<PathBuf>>);

impl TemporaryFiles {
    pub(crate) fn add(&mut self, path: &Path) {
        self.0.push(path.to_path_buf());
    }

    pub(crate) fn forget(&mut self, path: &Path) {
        self.0.retain(|other| other != path);
    }
}

/// Calls `stop` at the first signal instead of ending the process.
pub(crate) fn on_stop(stop: impl FnOnce() + Send + 'static) {
    *STOP.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(stop));
}

/// Installs the signal handlers. Signals that the parent process has set to be ignored (`nohup`) stay ignored.
#[cfg(unix)]
pub(crate) fn listen() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let ignored = ignored_signals();
    let wanted: Vec<i32> =
        [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0).collect();
    let Ok(mut signals) = signal_hook::iterator::Signals::new(wanted) else { return };
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let stop = STOP.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(stop) = stop {
                stop();
                continue;
            }
            // Held until the end, so that no new file is created.
            let files = temporary_files();
            for path in files.0.iter() {
                let _ = std::fs::remove_file(path);
            }
            let _ = signal_hook::low_level::emulate_default_handler(signal);
            std::process::exit(128 + signal);
        }
    });
}

#[cfg(not(unix))]
pub(crate) fn listen() {}

/// The mask of ignored signals; 0 if it is not available.
#[cfg(unix)]
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
