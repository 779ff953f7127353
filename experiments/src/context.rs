//! The context of an experiment: the data folder, the seed, and whether it is the small version.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use mondrian_benches::Table;

/// Settings of a run.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// Folder of the real data.
    pub data: Option<PathBuf>,
    /// Added to every seed.
    pub seed: u64,
    /// A version of seconds, for tests.
    pub small: bool,
    /// Whether to print progress on standard error.
    pub verbose: bool,
}

impl Context {
    /// Reads a table.
    ///
    /// # Errors
    /// Without a data folder, or if the file is missing or broken.
    pub fn table(&self, name: &str) -> Result<Table> {
        let folder = self.data.as_ref().context("no data folder; name one with --data")?;
        Table::read_in(folder, name).with_context(|| format!("{name}.csv.gz in {}", folder.display()))
    }

    /// Whether the folder holds these tables.
    pub fn has(&self, tables: &[&str]) -> bool {
        let there = |name: &&str| self.data.as_ref().is_some_and(|d| d.join(format!("{name}.csv.gz")).is_file());
        tables.iter().all(there)
    }

    /// One number or the other.
    pub fn pick<T>(&self, full: T, small: T) -> T {
        if self.small { small } else { full }
    }

    /// So many seeds.
    pub fn seeds(&self, full: u64, small: u64) -> Vec<u64> {
        (0..self.pick(full, small)).map(|k| self.seed + k).collect()
    }

    /// Tells how far it is.
    pub fn log(&self, text: &str) {
        if self.verbose {
            eprintln!("    {text}");
        }
    }
}
