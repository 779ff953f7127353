//! Choosing values from data: splits of the rows, validation, and the record of a search.

pub(crate) mod automatic;
pub(crate) mod split;
mod trajectory;
mod validation;

pub use trajectory::Trajectory;
pub(crate) use validation::Rounds;
pub use validation::Validation;
