//! The Mondrian process: what must hold exactly, what must hold in law, and what must be refused.

mod exact;
mod law;
mod law_of_extensions;
mod pictures;
mod refused;
mod stable;
mod statistic;
