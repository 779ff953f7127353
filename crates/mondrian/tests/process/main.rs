//! The Mondrian process: what must hold exactly, what must hold in law, and what must be refused.

mod exact;
mod pictures;
mod refused;
