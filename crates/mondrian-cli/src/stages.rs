//! Timings: the duration of the stages of a command, and its peak memory.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use serde_json::{Map, Value, json};

/// Stages in the order in which they ended, with their seconds. One command runs in a process, so one list is enough.
static DONE: Mutex<Vec<(&str, f64)>> = Mutex::new(Vec::new());

/// Number of passes over a table.
static TABLE_READS: AtomicU64 = AtomicU64::new(0);

/// Counts a pass over a table.
pub(crate) fn count_table_read() {
    TABLE_READS.fetch_add(1, Ordering::Relaxed);
}

/// A running stage; it ends when this is dropped.
#[must_use]
pub(crate) struct Stage {
    name: &'static str,
    started: Instant,
}

impl Stage {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, started: Instant::now() }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Ok(mut done) = DONE.lock() {
            done.push((self.name, self.started.elapsed().as_secs_f64()));
        }
    }
}

/// The seconds of every stage, and the peak memory if the system reports it.
pub(crate) fn timings() -> Value {
    let mut object = Map::new();
    for (name, seconds) in DONE.lock().map(|done| done.clone()).unwrap_or_default() {
        let name = format!("{}_seconds", name.replace(' ', "_"));
        let before = object.get(&name).and_then(Value::as_f64).unwrap_or(0.0);
        object.insert(name, json!(before + (seconds * 1e3).round() / 1e3));
    }
    object.insert("table_reads".to_owned(), json!(TABLE_READS.load(Ordering::Relaxed)));
    object.insert("peak_megabytes".to_owned(), peak_megabytes().map_or(Value::Null, |mb| json!(mb)));
    Value::Object(object)
}

/// Peak resident memory in millions of bytes; Linux only.
fn peak_megabytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some((kibibytes * 1.024e-2).round() / 10.0)
}
