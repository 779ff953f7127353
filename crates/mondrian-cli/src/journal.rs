//! The journal of `mondrian learn`: rows that are not yet in the model file, in a file beside it.
//!
//! A row is written here before its line is printed, so a process that is killed loses no row whose line was printed: a
//! model consists of its file and its journal, and loading the model replays the journal. Data written before a process
//! is killed are kept by the operating system; if the machine itself crashes, rows since the last checkpoint may be
//! lost, because the file is not synced per row.
//!
//! The format: a header, then records, each with its length and checksum, so that a truncated record is detected and
//! ends the journal. The header identifies the model file that the rows were added to, by length and checksum; a
//! checkpoint is recorded with those of the new model file *before* that file replaces the old one. Hence the journal
//! and the model file determine which rows are already in the file, whenever the process was killed.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Outcome};

/// The first bytes of a journal; the last is its version.
const MAGIC: &[u8; 8] = b"MONDJNL\x01";

/// Kinds of record.
const ROW: u8 = 1;
const CLASS: u8 = 2;
const CHECKPOINT: u8 = 3;

/// A model file's length and checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) length: u64,
    pub(crate) checksum: u32,
}

impl Identity {
    /// Of a file's bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut crc = flate2::Crc::new();
        crc.update(bytes);
        Self { length: bytes.len() as u64, checksum: crc.sum() }
    }

    fn to_bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (length, checksum) = bytes.split_at_checked(8)?;
        Some(Self {
            length: u64::from_le_bytes(length.try_into().ok()?),
            checksum: u32::from_le_bytes(checksum.try_into().ok()?),
        })
    }
}

/// A writer that computes the identity of the bytes written through it.
pub(crate) struct Identified<W> {
    pub(crate) inner: W,
    crc: flate2::Crc,
    length: u64,
}

impl<W: Write> Identified<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, crc: flate2::Crc::new(), length: 0 }
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity { length: self.length, checksum: self.crc.sum() }
    }
}

impl<W: Write> Write for Identified<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.inner.write(bytes)?;
        self.crc.update(&bytes[..n]);
        self.length += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// One event after the model file was written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Entry {
    /// Prepared inputs and the target (or the class's number).
    Row { x: Vec<f64>, y: f64 },
    /// A class that is new to the model, by name: it gets the next number.
    Class(String),
    /// The model file that contains all rows so far.
    Checkpoint(Identity),
}

impl Entry {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Self::Row { x, y } => {
                bytes.push(ROW);
                bytes.extend(y.to_le_bytes());
                x.iter().for_each(|x| bytes.extend(x.to_le_bytes()));
            }
            Self::Class(name) => {
                bytes.push(CLASS);
                bytes.extend(name.as_bytes());
            }
            Self::Checkpoint(identity) => {
                bytes.push(CHECKPOINT);
                bytes.extend(identity.to_bytes());
            }
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        match *kind {
            ROW if rest.len().is_multiple_of(8) => {
                let mut numbers = rest.chunks(8).filter_map(|b| Some(f64::from_le_bytes(b.try_into().ok()?)));
                let y = numbers.next()?;
                Some(Self::Row { x: numbers.collect(), y })
            }
            CLASS => Some(Self::Class(String::from_utf8(rest.to_vec()).ok()?)),
            CHECKPOINT => Some(Self::Checkpoint(Identity::from_bytes(rest)?)),
            _ => None,
        }
    }
}

/// Where the journal of a model is.
pub(crate) fn path_of(model: &Path) -> PathBuf {
    // Through a link, as the model itself is written.
    let model = std::fs::canonicalize(model).unwrap_or_else(|_| model.to_path_buf());
    let mut name = OsString::from(model.as_os_str());
    name.push(".journal");
    PathBuf::from(name)
}

/// Records in the journal of a model, if there is one, that the file about to replace the model contains all of its
/// rows.
pub(crate) fn settle(model: &Path, identity: Identity) -> Outcome<()> {
    if !is_there(model) {
        return Ok(());
    }
    let mut journal = Journal::open(model, identity)?;
    journal.add(&Entry::Checkpoint(identity));
    journal.flush()?;
    journal.sync()
}

/// Removes the journal of a model whose file contains all rows.
pub(crate) fn remove(model: &Path) {
    if is_there(model) {
        let _ = std::fs::remove_file(path_of(model));
    }
}

/// Whether there is a journal; another file of that name does not count.
fn is_there(model: &Path) -> bool {
    let mut start = [0; MAGIC.len()];
    File::open(path_of(model)).and_then(|mut file| file.read_exact(&mut start)).is_ok_and(|()| start == *MAGIC)
}

/// The rows that are not yet in a model file; none without a journal.
///
/// # Errors
/// If the journal belongs to another model file: its rows would be lost, or learned by the wrong model.
pub(crate) fn pending(model: &Path, identity: Identity) -> Outcome<Vec<Entry>> {
    let path = path_of(model);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Failure::reading(&path, &e)),
    };
    let Some((base, entries, _)) = read(&bytes) else {
        // Killed while the header was written: no row was acknowledged yet.
        if bytes.len() < MAGIC.len() + 12 && MAGIC.starts_with(&bytes[..bytes.len().min(MAGIC.len())]) {
            return Ok(Vec::new());
        }
        return Err(Failure::input(
            format!("{} is not a journal of this version", path.display()),
            "delete it if its rows are not needed",
        ));
    };
    let start = entries.iter().rposition(|entry| *entry == Entry::Checkpoint(identity)).map(|at| at + 1);
    match start {
        Some(start) => Ok(entries.into_iter().skip(start).filter(|e| !matches!(e, Entry::Checkpoint(_))).collect()),
        None if base == identity => Ok(entries.into_iter().filter(|e| !matches!(e, Entry::Checkpoint(_))).collect()),
        None => Err(Failure::input(
            format!("{} contains rows for another version of {}", path.display(), model.display()),
            "restore the model file that it belongs to, or delete the journal if its rows are not needed",
        )),
    }
}

/// The header's identity, the whole records, and how many bytes those are.
fn read(bytes: &[u8]) -> Option<(Identity, Vec<Entry>, usize)> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let base = Identity::from_bytes(rest.get(..12)?)?;
    let mut at = MAGIC.len() + 12;
    let mut entries = Vec::new();
    while let Some(head) = bytes.get(at..at + 8) {
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let checksum = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        let Some(body) = bytes.get(at + 8..at + 8 + length) else { break };
        if Identity::of(body).checksum != checksum {
            break;
        }
        let Some(entry) = Entry::from_bytes(body) else { break };
        entries.push(entry);
        at += 8 + length;
    }
    Some((base, entries, at))
}

/// A journal open for writing. The model's lock is held meanwhile.
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    /// Rows since the header or the last checkpoint.
    n_rows: u64,
}

impl Journal {
    /// Opens the journal of a model, or creates one. A partial record that a killed process left at its end is
    /// truncated.
    pub(crate) fn open(model: &Path, identity: Identity) -> Outcome<Self> {
        let path = path_of(model);
        let fail = |e: &io::Error| Failure::writing(&path, e);
        crate::save::remove_abandoned(&path);
        let mut file =
            File::options().read(true).write(true).create(true).truncate(false).open(&path).map_err(|e| fail(&e))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|e| fail(&e))?;
        let whole = if let Some((_, _, whole)) = read(&bytes) {
            whole
        } else {
            let header: Vec<u8> = MAGIC.iter().copied().chain(identity.to_bytes()).collect();
            file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(&header)).map_err(|e| fail(&e))?;
            header.len()
        };
        file.set_len(whole as u64).and_then(|()| file.seek(SeekFrom::End(0))).map_err(|e| fail(&e))?;
        crate::save::sync_folder(&path);
        Ok(Self { path, file, buffer: Vec::new(), n_rows: 0 })
    }

    /// Appends an entry; it is durable after [`Journal::flush`].
    pub(crate) fn add(&mut self, entry: &Entry) {
        let body = entry.to_bytes();
        self.buffer.extend((body.len() as u32).to_le_bytes());
        self.buffer.extend(Identity::of(&body).checksum.to_le_bytes());
        self.buffer.extend(body);
        self.n_rows += u64::from(matches!(entry, Entry::Row { .. }));
    }

    /// Rows since the last checkpoint.
    pub(crate) fn n_rows(&self) -> u64 {
        self.n_rows
    }

    /// Writes the appended entries to the operating system, in one call.
    pub(crate) fn flush(&mut self) -> Outcome<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.file.write_all(&self.buffer).map_err(|e| Failure::writing(&self.path, &e))?;
        self.buffer.clear();
        Ok(())
    }

    /// Syncs the journal to disk.
    pub(crate) fn sync(&self) -> Outcome<()> {
        self.file.sync_data().map_err(|e| Failure::writing(&self.path, &e))
    }

    /// Starts a new journal after the model file with all rows has been replaced.
    pub(crate) fn restart(self, model: &Path, identity: Identity) -> Outcome<Self> {
        // The old journal ends with this checkpoint, so it is valid until the new one has replaced it.
        let header: Vec<u8> = MAGIC.iter().copied().chain(identity.to_bytes()).collect();
        crate::save::write_file(&self.path, &header)?;
        Self::open(model, identity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_cut_anywhere_gives_its_first_entries() {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("m");
        std::fs::write(&model, "a model").unwrap();
        let (base, next) = (Identity::of(b"a model"), Identity::of(b"another"));
        let rows: Vec<Entry> = (0..3).map(|i| Entry::Row { x: vec![f64::from(i), 0.5], y: -1.0 }).collect();
        let entries = [
            rows[0].clone(),
            Entry::Class("rötlich".into()),
            Entry::Checkpoint(next),
            rows[1].clone(),
            rows[2].clone(),
        ];
        let mut journal = Journal::open(&model, base).unwrap();
        let mut ends = vec![std::fs::metadata(path_of(&model)).unwrap().len() as usize];
        for entry in &entries {
            journal.add(entry);
            journal.flush().unwrap();
            ends.push(std::fs::metadata(path_of(&model)).unwrap().len() as usize);
        }
        let whole = std::fs::read(path_of(&model)).unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(path_of(&model), &whole[..cut]).unwrap();
            let n = ends.iter().filter(|end| **end <= cut).count().saturating_sub(1);
            let expected: Vec<Entry> =
                entries[..n].iter().filter(|e| !matches!(e, Entry::Checkpoint(_))).cloned().collect();
            assert_eq!(pending(&model, base).unwrap(), expected, "cut at {cut}");
            if n >= 3 {
                assert_eq!(pending(&model, next).unwrap(), entries[3..n.max(3)], "cut at {cut}");
            } else if cut >= ends[0] {
                assert_eq!(pending(&model, next).unwrap_err().status(), 2, "another model's rows");
            }
            // Reopening after the truncation keeps complete entries and drops the rest.
            let mut journal = Journal::open(&model, base).unwrap();
            journal.add(&rows[2]);
            journal.flush().unwrap();
            assert_eq!(pending(&model, base).unwrap().len(), expected.len() + 1);
        }
    }

    #[test]
    fn a_flipped_bit_ends_the_journal_there() {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("m");
        let base = Identity::of(b"x");
        let mut journal = Journal::open(&model, base).unwrap();
        (0..4).for_each(|i| journal.add(&Entry::Row { x: vec![1.0], y: f64::from(i) }));
        journal.flush().unwrap();
        let mut bytes = std::fs::read(path_of(&model)).unwrap();
        let middle = MAGIC.len() + 12 + 2 * (8 + 17) + 12;
        bytes[middle] ^= 1;
        std::fs::write(path_of(&model), bytes).unwrap();
        assert_eq!(pending(&model, base).unwrap().len(), 2);
    }
}
