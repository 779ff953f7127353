//! Errors of reading a model file.

/// Why bytes are not a valid model file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelFileError {
    /// There are fewer bytes than announced.
    #[error("the model file is truncated: expected {expected} bytes, found {found}")]
    Truncated {
        /// How many bytes there should be at least.
        expected: u64,
        /// How many there are.
        found: u64,
    },
    /// Not a mondrian model file.
    #[error("not a mondrian model file")]
    NotAModel,
    /// A file from a later version of this library.
    #[error("the model file has format version {found}; this version reads up to {supported}: use a newer one")]
    NewerVersion {
        /// The file's version.
        found: u32,
        /// The newest version that can be read.
        supported: u32,
    },
    /// The header is not the JSON it should be.
    #[error("the model file's header is damaged at byte {at}: {what}")]
    Header {
        /// Where in the file, counted from zero.
        at: u64,
        /// What was expected or found there.
        what: String,
    },
    /// The checksum of a part does not match: the file was damaged after it was written.
    #[error("the model file is damaged: the checksum of {part} is {found:08x}, not {expected:08x}")]
    Checksum {
        /// The array's name, or `the header`.
        part: String,
        /// The checksum that was stored.
        expected: u32,
        /// The checksum of what was read.
        found: u32,
    },
    /// Another kind of model than expected.
    #[error("the file contains a {found} model, not a {expected} model")]
    WrongKind {
        /// The expected kind.
        expected: String,
        /// The kind found.
        found: String,
    },
    /// An array or parameter set is missing.
    #[error("the model file has no {what} {name:?}")]
    Missing {
        /// `"array"` or `"parameters"`.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// A name is given twice, is empty or too long.
    #[error("the model file's name {name:?} is repeated or not allowed")]
    Name {
        /// The name.
        name: String,
    },
    /// An array of another type than expected.
    #[error("the model file's array {name:?} holds {found}, not {expected}")]
    WrongType {
        /// The array's name.
        name: String,
        /// The expected type.
        expected: &'static str,
        /// The type found.
        found: &'static str,
    },
    /// An array whose shape is not what is expected, or does not match its bytes.
    #[error("the model file's array {name:?} has shape {found:?}, not {expected:?}")]
    WrongShape {
        /// The array's name.
        name: String,
        /// The shape expected.
        expected: Vec<usize>,
        /// The shape found.
        found: Vec<usize>,
    },
    /// A parameter set that cannot be parsed.
    #[error("the model file's parameters {name:?} cannot be read: {why}")]
    Parameters {
        /// The name of the set.
        name: String,
        /// The message of the JSON reader.
        why: String,
    },
    /// Inconsistent parts: an index out of range, lengths that differ.
    #[error("the model file is inconsistent: {what}")]
    Inconsistent {
        /// The inconsistency.
        what: &'static str,
    },
}
