//! Files appear whole or not at all.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::failure::{Failure, Outcome};

/// A file being written beside its final place; it gets there with [`AtomicFile::commit`] only.
///
/// After a crash, an error or on a full disk the old file is still there, whole.
pub(crate) struct AtomicFile {
    writer: BufWriter<Destination>,
    target: PathBuf,
}

/// Where bytes go until the file is whole.
enum Destination {
    /// A file beside the target, which will take its place.
    Beside(NamedTempFile),
    /// The target itself: a pipe or a device must not be replaced by a file.
    Itself(File),
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Beside(file) => file.write(bytes),
            Self::Itself(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Beside(file) => file.flush(),
            Self::Itself(file) => file.flush(),
        }
    }
}

/// Refuses a place that no file can be written to, before work is done that would be lost.
pub(crate) fn check_place(target: &Path) -> Outcome<()> {
    let kind = if target.is_dir() {
        io::ErrorKind::IsADirectory
    } else if !folder(target).is_dir() {
        io::ErrorKind::NotFound
    } else {
        return Ok(());
    };
    Err(Failure::writing(target, &io::Error::from(kind)))
}

impl AtomicFile {
    /// Starts a file that is to replace `target`.
    pub(crate) fn create(target: &Path) -> Outcome<Self> {
        let fail = |e: &io::Error| Failure::writing(target, e);
        check_place(target)?;
        // Through a link, so that the file it points to is replaced and not the link.
        let target = &std::fs::canonicalize(target).unwrap_or_else(|_| target.to_path_buf());
        if std::fs::metadata(target).is_ok_and(|there| !there.is_file()) {
            let file = File::options().write(true).open(target).map_err(|e| fail(&e))?;
            let writer = BufWriter::with_capacity(1 << 16, Destination::Itself(file));
            return Ok(Self { writer, target: target.clone() });
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(".mondrian-");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // What the process's mask leaves of 666, as for any other new file; the old file's where there is one.
            let mode = std::fs::metadata(target).map_or(0o666, |m| m.permissions().mode());
            builder.permissions(std::fs::Permissions::from_mode(mode));
        }
        let file = builder.tempfile_in(folder(target)).map_err(|e| fail(&e))?;
        Ok(Self { writer: BufWriter::with_capacity(1 << 16, Destination::Beside(file)), target: target.clone() })
    }

    /// Puts the file in its place: flush, sync, rename, sync the folder.
    pub(crate) fn commit(self) -> Outcome<()> {
        let fail = |e: &io::Error| Failure::writing(&self.target, e);
        let file = match self.writer.into_inner().map_err(|e| fail(e.error()))? {
            Destination::Itself(_) => return Ok(()),
            Destination::Beside(file) => file,
        };
        file.as_file().sync_all().map_err(|e| fail(&e))?;
        file.persist(&self.target).map_err(|e| fail(&e.error))?;
        // Not every file system lets a folder be opened and synced; the rename itself has happened.
        if let Ok(folder) = File::open(folder(&self.target)) {
            let _ = folder.sync_all();
        }
        Ok(())
    }

    /// What an error of writing means for this file.
    pub(crate) fn failure(&self, error: &io::Error) -> Failure {
        Failure::writing(&self.target, error)
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Writes a whole file at once.
pub(crate) fn write_file(target: &Path, bytes: &[u8]) -> Outcome<()> {
    let mut file = AtomicFile::create(target)?;
    file.write_all(bytes).map_err(|e| file.failure(&e))?;
    file.commit()
}

fn folder(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
