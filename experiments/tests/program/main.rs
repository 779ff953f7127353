//! The program `experiments` as a user calls it: exit codes, messages and files.

use std::path::Path;
use std::process::{Command, Output};

use mondrian_experiments::Record;
use mondrian_experiments::catalogue::EXPERIMENTS;

/// Runs the program in an empty folder, without the data that this machine may have.
fn experiments(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_experiments"))
        .args(arguments)
        .current_dir(folder)
        .env("MONDRIAN_DATA", folder.join("nowhere"))
        .output()
        .expect("the program starts")
}

/// Exit code and standard error.
fn refused(arguments: &[&str]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let output = experiments(folder.path(), arguments);
    assert!(output.stdout.is_empty() && !folder.path().join("docs").exists(), "nothing is done");
    (output.status.code(), String::from_utf8(output.stderr).expect("text"))
}

/// The record that a run of the small version leaves, with its times and threads blotted out.
fn record(name: &str, arguments: &[&str]) -> Record {
    let folder = tempfile::tempdir().expect("a folder");
    let output = experiments(folder.path(), &[&[name, "--small", "--out", "out"], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let record = Record::read(&folder.path().join("out").join(format!("{name}.json"))).expect("JSON");
    Record { seconds: 0.0, processor_seconds: None, threads: 0, ..record }
}

#[test]
fn list_names_every_experiment() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = experiments(folder.path(), &["list"]);
    let text = String::from_utf8(output.stdout).expect("text");
    let names: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, EXPERIMENTS.iter().map(|e| e.name).collect::<Vec<_>>());
    assert!(output.status.success() && output.stderr.is_empty());
}

#[test]
fn mistakes_are_told_before_anything_runs() {
    let cases: &[(&[&str], &str)] = &[
        (&[], "required arguments"),
        (&["digit"], "no experiment \"digit\"; `experiments list` names them"),
        (&["online", "list"], "`list` stands alone"),
        (&["far-from-data", "online"], "online needs real data; name its folder with --data or MONDRIAN_DATA"),
        (&["all", "--data", "missing"], "no data folder missing"),
        (&["all", "--data", "."], "setosa-density needs iris.csv.gz, which is not in ."),
        (&["draw"], "docs/experiments holds no JSON of an experiment; name another folder with --out"),
        (&["online", "--threads", "0"], "0 is not in 1..=65535"),
        (&["online", "--seed", "one"], "invalid digit"),
        (&["online", "--fast"], "unexpected argument"),
    ];
    for (arguments, message) in cases {
        let (code, error) = refused(arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {error}");
        assert!(error.contains(message), "{arguments:?}: {error}");
    }
}

#[test]
fn a_broken_table_is_a_failure_of_the_work() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("ccpp.csv.gz"), "not packed").expect("a file");
    let output = experiments(folder.path(), &["online", "--data", ".", "--out", "out"]);
    let error = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("experiment online: ccpp.csv.gz in ."), "{error}");
}

#[test]
fn the_seed_changes_the_numbers_and_threads_do_not() {
    let one = record("grid-irrelevant", &["--threads", "1"]);
    assert_eq!(record("grid-irrelevant", &["--threads", "3"]), one);
    let other = record("grid-irrelevant", &["--seed", "5"]);
    assert_eq!((one.first_seed, other.first_seed), (0, 5));
    assert_ne!(other.numbers, one.numbers);
}

#[test]
fn a_run_leaves_json_figure_page_and_index() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| {
        let output = experiments(folder.path(), arguments);
        assert!(output.status.success() && output.stdout.is_empty());
        String::from_utf8(output.stderr).expect("text")
    };
    let messages = run(&["far-from-data", "--small", "--threads", "2", "--out", "out"]);
    assert!(messages.contains("[1/1] far-from-data") && messages.contains("    holds: "), "{messages}");
    let read = |file: &str| std::fs::read_to_string(folder.path().join("out").join(file)).expect(file);
    let (page, figure) = (read("beyond.md"), read("far-from-data.svg"));
    assert!(page.contains("on 2 threads") && page.contains("the first is 0.") && page.contains("far-from-data.svg"));
    assert!(read("README.md").contains("beyond.md#uncertainty-far-from-the-data"));
    // Drawn again from the JSON alone, all is as it was.
    for file in ["beyond.md", "far-from-data.svg", "README.md"] {
        std::fs::remove_file(folder.path().join("out").join(file)).expect(file);
    }
    run(&["draw", "--out", "out"]);
    assert_eq!((read("beyond.md"), read("far-from-data.svg")), (page, figure));
}
