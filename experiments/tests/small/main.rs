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
