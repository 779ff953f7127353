//! Errors of the program: the cause, whether the input is at fault, and the remedy. One line each.

use std::fmt;
use std::io;
use std::path::Path;

/// Why a command stopped.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The user's input is wrong: exit status 2.
    Input {
        /// The problem and its location.
        what: String,
        /// The remedy.
        hint: String,
    },
    /// Anything else: exit status 1.
    Other(String),
    /// The reader of the output has closed it: not an error.
    ClosedPipe,
}

/// An error in the text of a table, detected while its bytes are read.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub(crate) struct TableError {
    pub(crate) what: String,
    /// The remedy.
    pub(crate) hint: &'static str,
}

/// A result of the program.
pub(crate) type Outcome<T> = Result<T, Failure>;

impl Failure {
    /// An error in the user's input.
    pub(crate) fn input(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Input { what: what.into(), hint: hint.into() }
    }

    /// A file that cannot be opened or read.
    pub(crate) fn reading(path: &Path, error: &io::Error) -> Self {
        let place = path.display();
        if let Some(TableError { what, hint }) = error.get_ref().and_then(|cause| cause.downcast_ref()) {
            return Self::input(format!("{place}: {what}"), *hint);
        }
        match error.kind() {
            io::ErrorKind::NotFound => {
                Self::input(format!("{place}: there is no such file"), "check the name and the folder")
            }
            io::ErrorKind::PermissionDenied => {
                Self::input(format!("{place}: permission to read is denied"), "check the file's permissions")
            }
            io::ErrorKind::IsADirectory => Self::input(format!("{place} is a folder"), "give a file inside it"),
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => Self::input(
                format!("{place} cannot be decoded: {error}"),
                "check that the file is complete and has the format of its name",
            ),
            _ => Self::Other(format!("{place} cannot be read: {error}")),
        }
    }

    /// A file that cannot be written.
    pub(crate) fn writing(path: &Path, error: &io::Error) -> Self {
        let place = path.display();
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::input(
                format!("{place}: its folder does not exist"),
                "create the folder first or choose another --out",
            ),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::input(format!("{place}: permission to write is denied"), "choose another --out")
            }
            io::ErrorKind::IsADirectory => Self::input(format!("{place} is a folder"), "give a file name with --out"),
            io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::Other(format!("{place} cannot be written: {error}; nothing there was changed")),
        }
    }

    /// Standard output that cannot be written.
    pub(crate) fn stdout(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::ClosedPipe
        } else {
            Self::Other(format!("standard output cannot be written: {error}"))
        }
    }

    /// The exit status.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Self::Input { .. } => 2,
            Self::Other(_) => 1,
            Self::ClosedPipe => 0,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input { what, hint } => write!(f, "{what}; {hint}"),
            Self::Other(what) => f.write_str(what),
            Self::ClosedPipe => f.write_str("the output was closed"),
        }
    }
}

/// The program's own files, including temporary ones.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Other(error.to_string())
    }
}

/// The library validates the user's input, so most of its errors are errors of input.
impl From<mondrian::Error> for Failure {
    fn from(error: mondrian::Error) -> Self {
        use mondrian::Error as E;
        // The library counts from 0, the program and its users from 1.
        if let E::NotFinite { row, column, value, .. } = error {
            let what = format!("row {}, input {}: {value} is not a finite number", row + 1, column + 1);
            return Self::input(what, "correct it, or leave such rows out with --missing drop");
        }
        let hint = match &error {
            E::Empty { .. } => "give at least one row and one input column",
            E::InvalidParameter { .. } => "see the command's --help for the range",
            E::ZeroWidth { .. } => "leave that constant column out with --exclude",
            E::OutsideBox { .. } => "fit a new model on all the data",
            E::InvertedBox { .. } | E::NotInside { .. } => "check --lower and --upper",
            E::NoLeaveOneOut => "give --validation hold-out or a number of folds",
            E::TooLarge { what, .. } if *what == "bytes of the trees" => {
                "use fewer trees, a smaller lifetime or --max-rows, or a larger --max-memory"
            }
            E::TooLarge { what, .. } if what.starts_with("bytes") => {
                "use a larger --max-memory, or fewer rows or columns"
            }
            E::TooLarge { what, .. } if what.starts_with("widenings") => {
                "correct a value that is far from all before, or leave its row out"
            }
            E::TooLarge { .. } => "use a smaller lifetime or fewer trees",
            E::Incompatible { .. } => "merge models fitted with the same seed, columns, box and parameters",
            E::UnknownRow { .. } => "give rows that were learned, with the targets they were learned with",
            E::WithoutRows { .. } => "or summarize the new rows too and merge the summaries",
            E::NotPositiveDefinite { .. } => "raise --alpha",
            E::ModelFile(_) => "give a complete model file written by `mondrian fit`",
            _ => return Self::Other(error.to_string()),
        };
        Self::input(error.to_string(), hint)
    }
}
