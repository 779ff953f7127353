//! The error type: each variant carries the invalid values.

mod model_file;

pub use model_file::ModelFileError;

/// An error, with the invalid values.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A coordinate, target or weight is NaN or infinite.
    #[error("{what}: row {row}, column {column} is {value}, not a finite number")]
    NotFinite {
        /// Which table it was found in, such as `"X"` or `"y"`.
        what: &'static str,
        /// Row, counted from zero.
        row: usize,
        /// Column, counted from zero.
        column: usize,
        /// The value found.
        value: f64,
    },
    /// A table without rows or without columns where at least one is needed.
    #[error("{what} is empty: {rows} rows, {columns} columns")]
    Empty {
        /// Which table.
        what: &'static str,
        /// Its number of rows.
        rows: usize,
        /// Its number of columns.
        columns: usize,
    },
    /// Two lengths that must be equal differ.
    #[error("{what}: expected {expected}, found {found}")]
    LengthMismatch {
        /// What was counted.
        what: &'static str,
        /// The length expected.
        expected: usize,
        /// The length found.
        found: usize,
    },
    /// A parameter outside its range.
    #[error("{name} is {value}, but must be {expected}")]
    InvalidParameter {
        /// The parameter's name.
        name: &'static str,
        /// Its value.
        value: f64,
        /// What would be valid.
        expected: &'static str,
    },
    /// A box with a lower bound above its upper bound.
    #[error("dimension {dim}: lower bound {lower} is above upper bound {upper}")]
    InvertedBox {
        /// The dimension.
        dim: usize,
        /// Its lower bound.
        lower: f64,
        /// Its upper bound.
        upper: f64,
    },
    /// A box that should lie inside another does not.
    #[error("dimension {dim}: [{inner_lower}, {inner_upper}] is not inside [{outer_lower}, {outer_upper}]")]
    NotInside {
        /// The dimension.
        dim: usize,
        /// Lower bound of the box that should lie inside.
        inner_lower: f64,
        /// Upper bound of the box that should lie inside.
        inner_upper: f64,
        /// Lower bound of the containing box.
        outer_lower: f64,
        /// Upper bound of the containing box.
        outer_upper: f64,
    },
    /// A request beyond a limit, refused before it starts.
    #[error("{what}: about {expected:.3e} expected, more than the limit of {limit:.3e}")]
    TooLarge {
        /// What would be too many.
        what: &'static str,
        /// The expected number.
        expected: f64,
        /// The limit.
        limit: f64,
    },
    /// Two models or samples that cannot be combined.
    #[error("cannot combine: {what} differ")]
    Incompatible {
        /// What differs.
        what: &'static str,
    },
    /// A row to forget that was never learned.
    #[error("row {row} was never learned, or was already forgotten; the model is unchanged")]
    UnknownRow {
        /// The row of the request, counted from zero.
        row: usize,
    },
    /// A query of a model that has learned no rows.
    #[error("the model is not fitted: it has learned no rows")]
    NotFitted,
    /// The caller's progress callback cancelled the call.
    #[error("cancelled")]
    Cancelled,
    /// Sample weights were given to a model that does not support them.
    #[error("{model} does not support sample weights: omit them")]
    NoWeights {
        /// The model.
        model: &'static str,
    },
    /// A matrix that should be positive definite is not, to working precision.
    #[error("the matrix is not positive definite at row {row}; use a larger alpha")]
    NotPositiveDefinite {
        /// The row at which the factorisation broke down.
        row: usize,
    },
    /// A box without volume where a density needs one.
    #[error(
        "column {dim} has width 0 at {value}: a density needs a box with volume; give bounds or exclude the column"
    )]
    ZeroWidth {
        /// The column.
        dim: usize,
        /// Where both bounds lie.
        value: f64,
    },
    /// A row to learn lies outside the box of a density, which is fixed at the first fit.
    #[error("row {row}, column {column} is {value}, outside the box [{lower}, {upper}]; fit with wider bounds")]
    OutsideBox {
        /// The row, counted from zero.
        row: usize,
        /// The first column in which it lies outside.
        column: usize,
        /// The value there.
        value: f64,
        /// The box's lower bound there.
        lower: f64,
        /// The box's upper bound there.
        upper: f64,
    },
    /// Bytes that are not a valid model file.
    #[error(transparent)]
    ModelFile(#[from] ModelFileError),
    /// A model could not be written or read.
    #[error("{what} ({kind})")]
    Io {
        /// The kind of the error.
        kind: std::io::ErrorKind,
        /// The message of the system.
        what: String,
    },
    /// A query that needs an exact solution, on a model with random features.
    #[error("standard deviations and the equivalent kernel need an exact solution; this model uses random features")]
    NotExact,
    /// An operation that needs the training rows, on a forest finished from summaries.
    #[error(
        "{what} needs the training rows, which a forest finished from a summary does not contain: fit a forest on the rows"
    )]
    WithoutRows {
        /// The operation.
        what: &'static str,
    },
    /// An attempt to append rows to a kernel model from a file that does not contain the cells of the training rows.
    #[error(
        "a model solved by one factorisation cannot learn more rows after loading: fit it with the solver \"local\""
    )]
    NotLocal,
    /// Leave-one-out validation of a lifetime for a model without a closed form of it.
    #[error("leave-one-out is available for densities only; use hold-out or k folds")]
    NoLeaveOneOut,
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Io { kind: error.kind(), what: error.to_string() }
    }
}

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
