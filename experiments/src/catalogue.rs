//! All experiments, in the order of the pages.

use anyhow::Result;

use crate::context::Context;
use crate::record::Record;
use crate::{
    convergence, density_path, digits, far_from_data, forest_path, grid_altitude, grid_both_ways, grid_greedy,
    kernel_path, learning_curve, online, path_time, setosa_density, tree_count,
};

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
pub const GROUPS: &[Group] = &[
    Group {
        name: "density",
        title: "Density against lifetime",
        about: "Report, chapter 2, \"Empirical evaluation\", first figure.",
    },
    Group {
        name: "digits",
        title: "Classification by densities",
        about: "Report, chapter 2, \"Empirical evaluation\", second figure.",
    },
    Group {
        name: "convergence",
        title: "Random features against the exact kernel",
        about: "Report, chapter 3, \"Empirical evaluation\".",
    },
    Group {
        name: "paths",
        title: "Regularization paths",
        about: "Report, chapter 4: a model's error at every lifetime at the cost of one fit. [How paths work](../paths.md).",
    },
    Group {
        name: "grid",
        title: "The Mondrian grid",
        about: "Report, chapter 5, \"Lifetime configuration exploration\": one lifetime per dimension, found by greedy steps.",
    },
    Group {
        name: "beyond",
        title: "Beyond the report",
        about: "Statements of the report without a figure, and open questions.",
    },
];

/// The experiments.
pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "setosa-density",
        about: "likelihood of iris setosa against the lifetime: refits and the path",
        group: "density",
        tables: &["iris"],
        run: setosa_density::run,
    },
    Experiment {
        name: "digits",
        about: "MNIST 0 against 9 by densities: Mondrian forests and kernel density estimation",
        group: "digits",
        tables: &["mnist_0_9"],
        run: digits::run,
    },
    Experiment {
        name: "kernel-convergence",
        about: "Mondrian, binning and Fourier features against the exact Laplace kernel",
        group: "convergence",
        tables: &["cpu_act", "house_16h"],
        run: convergence::run,
    },
    Experiment {
        name: "forest-path",
        about: "path of a regression forest on the power plant",
        group: "paths",
        tables: &["ccpp"],
        run: forest_path::run,
    },
    Experiment {
        name: "density-path",
        about: "path of a density forest on iris setosa, with leave-one-out",
        group: "paths",
        tables: &["iris"],
        run: density_path::run,
    },
    Experiment {
        name: "kernel-path",
        about: "path of ridge regression on 50 Mondrian trees, CPU",
        group: "paths",
        tables: &["cpu_act"],
        run: kernel_path::run,
    },
    Experiment {
        name: "grid-surface",
        about: "all configurations of a toy grid, and the greedy path over them",
        group: "grid",
        tables: &[],
        run: grid_greedy::surface,
    },
    Experiment {
        name: "grid-irrelevant",
        about: "greedy lifetimes when the second input is irrelevant",
        group: "grid",
        tables: &[],
        run: grid_greedy::irrelevant,
    },
    Experiment {
        name: "grid-both-ways",
        about: "greedy both ways gets stuck; other searches",
        group: "grid",
        tables: &[],
        run: grid_both_ways::run,
    },
    Experiment {
        name: "grid-altitude",
        about: "greedy lifetimes on altitudes, 10 000 training rows",
        group: "grid",
        tables: &["gebco_altitude", "road3d_head"],
        run: grid_altitude::run,
    },
    Experiment {
        name: "path-time",
        about: "seconds of a path against refits at a hundred lifetimes",
        group: "beyond",
        tables: &["ccpp", "cpu_act"],
        run: path_time::run,
    },
    Experiment {
        name: "tree-count",
        about: "forest and kernel against the number of trees",
        group: "beyond",
        tables: &["ccpp"],
        run: tree_count::run,
    },
    Experiment {
        name: "online",
        about: "batch and online forests are the same trees",
        group: "beyond",
        tables: &["ccpp"],
        run: online::run,
    },
    Experiment {
        name: "far-from-data",
        about: "uncertainty far from the data, in one dimension",
        group: "beyond",
        tables: &[],
        run: far_from_data::run,
    },
    Experiment {
        name: "learning-curve",
        about: "forest error against training rows, the lifetime chosen by path",
        group: "beyond",
        tables: &["ccpp", "gebco_altitude"],
        run: learning_curve::run,
    },
];
