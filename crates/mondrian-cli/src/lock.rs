//! One writer per model: a lock of the operating system on the model file itself.
//!
//! A file is replaced by renaming a new one over it, so a lock may be on a file that has been replaced; then the new
//! one is locked instead. The operating system releases the lock when the process ends.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Outcome};

/// How often a file may be replaced while we try to lock it.
const ATTEMPTS: usize = 100;

/// The right to replace a model file, for as long as this lives.
#[derive(Debug)]
pub(crate) struct ModelLock {
    path: PathBuf,
    /// None if there is no file yet.
    file: Option<File>,
}

impl ModelLock {
    /// Locks an existing file; a path without a regular file needs no lock.
    pub(crate) fn take(path: &Path) -> Outcome<Self> {
        let fail = |e: &std::io::Error| Failure::Other(format!("{} cannot be locked: {e}", path.display()));
        for _ in 0..ATTEMPTS {
            let file = match File::open(path) {
                Ok(file) if file.metadata().is_ok_and(|there| there.is_file()) => file,
                _ => return Ok(Self { path: path.to_path_buf(), file: None }),
            };
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(in_use(path)),
                Err(TryLockError::Error(e)) => return Err(fail(&e)),
            }
            if is_at(&file, path) {
                return Ok(Self { path: path.to_path_buf(), file: Some(file) });
            }
        }
        Err(in_use(path))
    }

    /// The locked file's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Continues with the file that has replaced the locked one and is locked too.
    pub(crate) fn passes_to(&mut self, file: Option<File>) {
        if file.is_some() {
            self.file = file;
        }
    }
}

fn in_use(path: &Path) -> Failure {
    Failure::input(
        format!("{}: another process is writing this model", path.display()),
        "wait until it has ended, then try again",
    )
}

/// Whether this open file is the one at the path.
#[cfg(unix)]
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(open), Ok(there)) => (open.dev(), open.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
pub(crate) fn is_at(_file: &File, path: &Path) -> bool {
    path.exists()
}
