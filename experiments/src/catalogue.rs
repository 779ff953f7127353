//! All experiments, in the order of the pages.

use anyhow::Result;

use crate::context::Context;
use crate::record::Record;
use crate::setosa_density;

/// One page.
#[derive(Debug, PartialEq, Eq)]
pub struct Group {
    /// Name of its file.
    pub name: &'static str,
    /// Heading.
    pub title: &'static str,
    /// What belongs to it.
    pub about: &'static str,
}

/// One experiment.
#[derive(Debug)]
pub struct Experiment {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// Name of its page.
    pub group: &'static str,
    /// Real tables that it reads.
    pub tables: &'static [&'static str],
    /// Runs it.
    pub run: fn(&Context) -> Result<Record>,
}

/// The pages.
pub const GROUPS: &[Group] = &[Group {
    name: "density",
    title: "Density against lifetime",
    about: "Report, chapter 2, \"Empirical evaluation\", first figure.",
}];

/// The experiments.
pub const EXPERIMENTS: &[Experiment] = &[Experiment {
    name: "setosa-density",
    about: "likelihood of iris setosa against the lifetime: refits and the path",
    group: "density",
    tables: &["iris"],
    run: setosa_density::run,
}];
