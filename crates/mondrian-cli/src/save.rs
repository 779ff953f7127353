//! Atomic writes: an output file is complete or not written at all, and never overwrites an input.

use std::fs::{File, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::lock;

/// Longest part of the target's name in the name of its temporary file, in bytes.
const NAME_BYTES: usize = 160;

/// Random characters at the end of that name.
const RANDOM: usize = 6;

/// A temporary file in the folder of its target; [`AtomicFile::commit`] renames it.
///
/// After a crash, an error, a signal or on a full disk the old file is unchanged. The temporary file is locked while it
/// is written: one that another process can lock was left by a killed process, and the next writer of the same target
/// removes it.
pub(crate) struct AtomicFile {
    writer: Option<BufWriter<Destination>>,
    target: PathBuf,
    temporary: Option<PathBuf>,
}

/// The destination of bytes until the file is complete.
enum Destination {
    /// A file in the folder of the target, which will replace it.
    Beside(NamedTempFile),
    /// The target itself: a pipe or a device must not be replaced by a file.
    Itself(File),
    /// Standard output.
    Standard(io::Stdout),
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Beside(file) => file.write(bytes),
            Self::Itself(file) => file.write(bytes),
            Self::Standard(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Beside(file) => file.flush(),
            Self::Itself(file) => file.flush(),
            Self::Standard(out) => out.flush(),
        }
    }
}

/// Whether a path means standard input or output.
pub(crate) fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

/// Refuses a path that cannot be written to, before work is done that would be lost.
pub(crate) fn check_place(target: &Path) -> Outcome<()> {
    if is_standard(target) {
        return crate::screen::check_stdout();
    }
    let kind = if target.is_dir() {
        io::ErrorKind::IsADirectory
    } else if !folder(target).is_dir() {
        io::ErrorKind::NotFound
    } else {
        return Ok(());
    };
    Err(Failure::writing(target, &io::Error::from(kind)))
}

/// Refuses to write over a file that the same command reads, by whatever path or link it is named.
pub(crate) fn check_not_input(target: &Path, inputs: &[&Path]) -> Outcome<()> {
    match inputs.iter().find(|input| is_same_file(target, input)) {
        None => Ok(()),
        Some(input) => Err(Failure::input(
            format!("the output {} is also an input, {}", shown(target, "output"), shown(input, "input")),
            "choose another --out",
        )),
    }
}

fn shown(path: &Path, which: &str) -> String {
    if is_standard(path) { format!("standard {which}") } else { path.display().to_string() }
}

/// Whether both paths name the same regular file.
fn is_same_file(output: &Path, input: &Path) -> bool {
    let output = if is_standard(output) { Path::new("/dev/stdout") } else { output };
    let input = if is_standard(input) { Path::new("/dev/stdin") } else { input };
    let (Ok(a), Ok(b)) = (std::fs::metadata(output), std::fs::metadata(input)) else { return false };
    if !a.is_file() || !b.is_file() {
        return false;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        (a.dev(), a.ino()) == (b.dev(), b.ino())
    }
    #[cfg(not(unix))]
    {
        match (std::fs::canonicalize(output), std::fs::canonicalize(input)) {
            (Ok(a), Ok(b)) => a == b,
            _ => false,
        }
    }
}

impl AtomicFile {
    /// Starts a file that is to replace `target`; `-` is standard output.
    pub(crate) fn create(target: &Path) -> Outcome<Self> {
        let fail = |e: &io::Error| Failure::writing(target, e);
        check_place(target)?;
        if is_standard(target) {
            return Ok(Self::over(Destination::Standard(io::stdout()), target));
        }
        // Resolve links, so that the file is replaced and not the link.
        let target = &std::fs::canonicalize(target).unwrap_or_else(|_| target.to_path_buf());
        if std::fs::metadata(target).is_ok_and(|there| !there.is_file()) {
            let file = File::options().write(true).open(target).map_err(|e| fail(&e))?;
            return Ok(Self::over(Destination::Itself(file), target));
        }
        remove_abandoned(target);
        let file = temporary(target).map_err(|e| fail(&e))?;
        Ok(Self::over(Destination::Beside(file), target))
    }

    fn over(destination: Destination, target: &Path) -> Self {
        let temporary = match &destination {
            Destination::Beside(file) => Some(file.path().to_path_buf()),
            _ => None,
        };
        let writer = Some(BufWriter::with_capacity(1 << 16, destination));
        Self { writer, target: target.to_path_buf(), temporary }
    }

    /// Replaces the target: flush, sync, rename, sync the folder. The new file is still locked.
    pub(crate) fn commit(mut self) -> Outcome<Option<File>> {
        let target = self.target.clone();
        let fail = |e: &io::Error| Failure::writing(&target, e);
        let Some(writer) = self.writer.take() else { return Ok(None) };
        let file = match writer.into_inner().map_err(|e| fail(e.error()))? {
            Destination::Itself(_) => return Ok(None),
            Destination::Standard(mut out) => return out.flush().map(|()| None).map_err(|e| Failure::stdout(&e)),
            Destination::Beside(file) => file,
        };
        file.as_file().sync_all().map_err(|e| fail(&e))?;
        let file = file.persist(&target).map_err(|e| fail(&e.error))?;
        sync_folder(&target);
        Ok(Some(file))
    }

    /// The failure for an error while writing this file.
    pub(crate) fn failure(&self, error: &io::Error) -> Failure {
        if is_standard(&self.target) { Failure::stdout(error) } else { Failure::writing(&self.target, error) }
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        // Remove the file first: as long as it exists, a signal must find it in the list.
        drop(self.writer.take());
        if let Some(path) = &self.temporary {
            interrupt::temporary_files().forget(path);
        }
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.as_mut().map_or(Err(io::ErrorKind::NotConnected.into()), |writer| writer.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.as_mut().map_or(Ok(()), Write::flush)
    }
}

/// Writes a whole file at once.
pub(crate) fn write_file(target: &Path, bytes: &[u8]) -> Outcome<()> {
    let mut file = AtomicFile::create(target)?;
    file.write_all(bytes).map_err(|e| file.failure(&e))?;
    file.commit().map(drop)
}

/// Not every file system can sync a folder; the rename has been done in any case.
pub(crate) fn sync_folder(target: &Path) {
    if let Ok(folder) = File::open(folder(target)) {
        let _ = folder.sync_all();
    }
}

/// A new temporary file for this target: locked and registered with the signal handler.
fn temporary(target: &Path) -> io::Result<NamedTempFile> {
    let prefix = temporary_prefix(target);
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).rand_bytes(RANDOM);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Permissions 666 with the process's mask, as for any new file, or those of the old file if there is one.
        let mode = std::fs::metadata(target).map_or(0o666, |m| m.permissions().mode());
        builder.permissions(std::fs::Permissions::from_mode(mode));
    }
    let mut files = interrupt::temporary_files();
    loop {
        let file = builder.tempfile_in(folder(target))?;
        // Another process may clean up abandoned files between the two calls and remove this one.
        match file.as_file().try_lock() {
            Err(TryLockError::WouldBlock) => continue,
            Ok(()) if !lock::is_at(file.as_file(), file.path()) => continue,
            // On a file system without locks only the removal of abandoned files is lost.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        files.add(file.path());
        return Ok(file);
    }
}

/// The prefix of the names of this target's temporary files.
fn temporary_prefix(target: &Path) -> String {
    let name = target.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let end = (0..=NAME_BYTES.min(name.len())).rev().find(|&end| name.is_char_boundary(end)).unwrap_or(0);
    format!(".{}.mondrian-", &name[..end])
}

/// Removes temporary files of this target whose writer has ended: those that no process has locked.
pub(crate) fn remove_abandoned(target: &Path) {
    let prefix = temporary_prefix(target);
    let Ok(entries) = std::fs::read_dir(folder(target)) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let random = name.to_str().and_then(|name| name.strip_prefix(&prefix)).unwrap_or_default();
        if random.len() == RANDOM
            && entry.file_type().is_ok_and(|kind| kind.is_file())
            && let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn folder(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
