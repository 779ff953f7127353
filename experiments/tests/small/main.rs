//! Small versions of all experiments: the report's qualitative claims hold, or are known not to.
//!
//! They read the real tables where those are at hand, else generated ones of the same shape.

mod generated;

use std::path::PathBuf;

use mondrian_experiments::catalogue::EXPERIMENTS;
use mondrian_experiments::{Context, Record, publish};

/// What a small version says about the claims of its experiment.
#[derive(Default)]
struct Expected {
    /// Claims that come out otherwise: findings, which the page lists as such. Asserted not to hold on real data.
    findings: &'static [&'static str],
    /// Claims about the real tables that generated ones need not bear out.
    real_only: &'static [&'static str],
    /// Claims that a small version cannot decide.
    open: &'static [&'static str],
}

/// Runs the small version of an experiment, makes its figures and pages in a folder of its own, and asserts its claims.
fn check(name: &str, expected: &Expected) {
    let experiment = EXPERIMENTS.iter().find(|e| e.name == name).expect("a known experiment");
    let folder = tempfile::tempdir().expect("a folder");
    let (data, is_real) = data(experiment.tables, folder.path());
    let context = Context { data: Some(data), small: true, ..Context::default() };
    let out = folder.path().join("out");
    let record = publish::run(experiment, &context, &out).expect("it runs");
    publish::draw(&out).expect("pages and figures are made of the record");
    assert_eq!(Record::read(&out.join(format!("{name}.json"))).expect("JSON").claims, record.claims);
    for figure in &record.figures {
        let svg = std::fs::read_to_string(out.join(format!("{}.svg", figure.file))).expect("a figure");
        assert!(svg.starts_with("<svg") && !svg.contains("NaN") && !svg.contains("inf "), "{}", figure.file);
    }
    let page = std::fs::read_to_string(out.join(format!("{}.md", experiment.group))).expect("a page");
    for named in expected.findings.iter().chain(expected.real_only).chain(expected.open) {
        assert!(record.holds(named).is_some(), "no claim {named:?}");
    }
    for claim in &record.claims {
        let text = record.fill(&claim.text).expect("numbers");
        assert!(page.contains(&format!("{}: {text}", if claim.holds { "- holds" } else { "- **does not hold**" })));
        let named = |list: &[&str]| list.contains(&claim.name.as_str());
        let is_finding = named(expected.findings);
        if named(expected.open) || (!is_real && (is_finding || named(expected.real_only))) {
            continue;
        }
        assert_eq!(claim.holds, !is_finding, "{}: {text}", claim.name);
    }
}

/// The folder of the tables, and whether they are the real ones.
fn data(tables: &[&str], folder: &std::path::Path) -> (PathBuf, bool) {
    let real = Context { data: mondrian_benches::data_folder(), ..Context::default() };
    if let Some(found) = real.data.clone().filter(|_| real.has(tables)) {
        return (found, true);
    }
    for table in tables {
        generated::write(table, folder).expect("a generated table");
    }
    (folder.to_owned(), false)
}

/// Tests of experiments that all claims of which hold.
macro_rules! all_claims_hold {
    ($($test:ident: $experiment:literal,)*) => {
        $(
            #[test]
            fn $test() {
                check($experiment, &Expected::default());
            }
        )*
    };
}

all_claims_hold! {
    training_likelihood_rises_and_test_likelihood_peaks: "setosa-density",
    forest_path_is_the_refit_and_turns: "forest-path",
    density_path_peaks_and_leave_one_out_is_exact: "density-path",
    kernel_path_is_the_refit_and_jumps: "kernel-path",
    greedy_walks_down_a_surface_and_may_meet_the_minimum: "grid-surface",
    greedy_ignores_the_irrelevant_input: "grid-irrelevant",
    greedy_both_ways_gets_stuck: "grid-both-ways",
    greedy_comes_down_on_altitudes: "grid-altitude",
    paths_have_the_errors_of_refits_in_less_time: "path-time",
    online_and_batch_forests_are_the_same: "online",
    far_from_the_data_forests_predict_the_prior: "far-from-data",
    choosing_the_lifetime_pays_as_rows_come: "learning-curve",
}

#[test]
fn mondrian_densities_are_level_with_kernels_in_few_dimensions_and_behind_in_many() {
    let real = Context { data: mondrian_benches::data_folder(), ..Context::default() };
    if !real.has(&["mnist_0_9"]) {
        eprintln!("skipped: a claim about real digits, and they are not at hand");
        return;
    }
    // Half as many folds and a quarter of the test images find other constants for a thousand images, and err by too much.
    let open = &["not worse in few dimensions, fewer images"];
    check("digits", &Expected { findings: &["better in few dimensions"], open, ..Expected::default() });
}

#[test]
fn random_binning_and_mondrian_need_similar_numbers_of_features() {
    // Half of the way is a noisy place: with 8 seeds and 1000 rows Random Binning came out at 2.1 times as many on cpu_act.
    // Random Binning's errors vary no more than the Mondrian's, with ten seeds and 3000 rows either; its numbers of features do.
    check("kernel-convergence", &Expected { findings: &["binning is wilder"], ..Expected::default() });
}

#[test]
fn averaging_trees_reduces_the_variance() {
    // Ridge regression fits noise most easily where features are as many as rows: its error rises there.
    // The generated table is nearly without noise: nothing to fit.
    let real_only = &["rises where features are as many as rows"];
    check("tree-count", &Expected { findings: &["kernel falls"], real_only, ..Expected::default() });
}
