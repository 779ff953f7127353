//! What the measurements share: real data, the split everybody compares on, and a stopwatch.
//!
//! Each measurement is a program under `src/bin`, run as `cargo run --release -p mondrian-benches --bin NAME`.

pub mod numpy;
mod table;

pub use table::{Standardised, Table, data_folder, rmse};

/// Runs `work` and gives its result with the seconds it took.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = std::time::Instant::now();
    let result = work();
    (result, start.elapsed().as_secs_f64())
}
