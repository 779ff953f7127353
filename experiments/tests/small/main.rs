//! Small versions of all experiments: the report's qualitative claims hold.
//!
//! They read the real tables where those are at hand, else generated ones of the same shape.

mod generated;

use std::path::PathBuf;

use mondrian_experiments::catalogue::EXPERIMENTS;
use mondrian_experiments::{Context, Record, publish};

/// Runs the small version of an experiment, makes its figures and pages in a folder of its own, and asserts its claims
/// except those named.
fn check(name: &str, not_in_small: &[&str]) -> Record {
    let experiment = EXPERIMENTS.iter().find(|e| e.name == name).expect("a known experiment");
    let folder = tempfile::tempdir().expect("a folder");
    let context = Context { data: Some(data(experiment.tables, folder.path())), small: true, ..Context::default() };
    let out = folder.path().join("out");
    let record = publish::run(experiment, &context, &out).expect("it runs");
    publish::draw(&out).expect("pages and figures are made of the record");
    assert_eq!(Record::read(&out.join(format!("{name}.json"))).expect("JSON").claims, record.claims);
    for figure in &record.figures {
        let svg = std::fs::read_to_string(out.join(format!("{}.svg", figure.file))).expect("a figure");
        assert!(svg.starts_with("<svg") && !svg.contains("NaN") && !svg.contains("inf "), "{}", figure.file);
    }
    for claim in record.claims.iter().filter(|c| !not_in_small.contains(&c.name.as_str())) {
        assert!(claim.holds, "{}: {}", claim.name, record.fill(&claim.text).expect("numbers"));
    }
    record
}

fn data(tables: &[&str], folder: &std::path::Path) -> PathBuf {
    let real = Context { data: mondrian_benches::data_folder(), ..Context::default() };
    if let Some(found) = real.data.clone().filter(|_| real.has(tables)) {
        return found;
    }
    for table in tables {
        generated::write(table, folder).expect("a generated table");
    }
    folder.to_owned()
}

#[test]
fn training_likelihood_rises_and_test_likelihood_peaks() {
    check("setosa-density", &[]);
}

#[test]
fn mondrian_densities_tell_digits_apart_in_few_dimensions() {
    let real = Context { data: mondrian_benches::data_folder(), ..Context::default() };
    if !real.has(&["mnist_0_9"]) {
        eprintln!("skipped: a claim about real digits, and they are not at hand");
        return;
    }
    // With a thousand images to learn Mondrian is ahead in more dimensions too.
    check("digits", &["more competitive in few dimensions"]);
}

#[test]
fn random_binning_and_mondrian_need_similar_numbers_of_features() {
    // Which of the two varies more takes more than three seeds to tell.
    check("kernel-convergence", &["binning is wilder"]);
}

#[test]
fn forest_path_is_the_refit_and_turns() {
    check("forest-path", &[]);
}

#[test]
fn density_path_peaks_and_leave_one_out_is_exact() {
    check("density-path", &[]);
}

#[test]
fn kernel_path_is_the_refit_and_jumps() {
    check("kernel-path", &[]);
}

#[test]
fn greedy_walks_down_a_surface() {
    // Four seeds rarely meet the very minimum.
    check("grid-surface", &["the very minimum"]);
}

#[test]
fn greedy_ignores_the_irrelevant_input() {
    check("grid-irrelevant", &[]);
}

#[test]
fn greedy_both_ways_gets_stuck() {
    check("grid-both-ways", &[]);
}

#[test]
fn greedy_comes_down_on_altitudes() {
    // A few hundred rows and steps do not halve it yet.
    let record = check("grid-altitude", &["comes down"]);
    for set in ["gebco", "road"] {
        assert!(record.numbers[&format!("{set}_least")] < 0.75 * record.numbers[&format!("{set}_start")], "{set}");
    }
}

#[test]
fn paths_have_the_errors_of_refits() {
    // Times of milliseconds on a busy machine say nothing.
    check("path-time", &["path is faster"]);
}

#[test]
fn averaging_trees_reduces_the_variance() {
    // Fifty trees are few for the kernel, and where features are as many as rows its error need not fall. The automatic κ
    // depends a little on the trees, most of all when there are few, so that the forest's errors keep to a + b/M less well.
    let record = check("tree-count", &["kernel falls", "kernel approaches exact", "forest is a + b/M"]);
    assert!(record.numbers["off"] < 0.2, "{}", record.numbers["off"]);
}

#[test]
fn online_and_batch_forests_are_the_same() {
    check("online", &[]);
}

#[test]
fn far_from_the_data_forests_predict_the_prior() {
    check("far-from-data", &[]);
}

#[test]
fn choosing_the_lifetime_pays_as_rows_come() {
    // Two seeds: the chosen lifetimes still scatter, and with them single steps of the error.
    check("learning-curve", &["lifetime grows", "error falls"]);
}
