//! Shared by the benchmarks: real data, the standard split, and timers.
//!
//! Each measurement is a program under `src/bin`, run as `cargo run --release -p mondrian-benches --bin NAME`.

pub mod numpy;
mod table;

pub use table::{Standardised, Table, data_folder, rmse};

/// Processor seconds of this thread, if the system reports them; coarse (a few milliseconds).
fn thread_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split_whitespace().next()?.parse::<f64>().ok()? * 1e-9)
}

/// Runs single-threaded `work` and gives its result with the processor seconds it took, so that other work on the
/// machine has as little effect as possible. Work of less than 200 ms is timed by the clock: the processor's seconds
/// come in ticks of 4 ms.
pub fn timed_on_thread<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let before = thread_seconds();
    let (result, by_clock) = timed(work);
    let after = thread_seconds();
    let on_thread = before.zip(after).map(|(before, after)| after - before);
    (result, on_thread.filter(|_| by_clock > 0.2).map_or(by_clock, |seconds| seconds.min(by_clock)))
}

/// Runs `work` and gives its result with the seconds it took.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = std::time::Instant::now();
    let result = work();
    (result, start.elapsed().as_secs_f64())
}

/// Runs `work` and returns its result with the processor seconds of this thread if the system reports them (Linux),
/// else wall-clock seconds. On a shared machine only the former are meaningful.
pub fn timed_on_processor<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let before = processor_seconds();
    let (result, passed) = timed(work);
    (result, before.zip(processor_seconds()).map_or(passed, |(before, after)| after - before))
}

fn processor_seconds() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    status.split_whitespace().next()?.parse::<f64>().ok().map(|nanoseconds| 1e-9 * nanoseconds)
}
