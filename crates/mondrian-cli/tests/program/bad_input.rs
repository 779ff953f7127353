//! What cannot work: exit status as documented, one line that helps, no panic, files untouched.

use std::io::Read;
use std::process::Stdio;

use crate::harness::Place;

#[test]
fn tables_that_are_none() {
    let place = Place::new();
    std::fs::create_dir(place.path("folder")).unwrap();
    place.write("empty.csv", "");
    place.write("names.csv", "a,b\n");
    place.write("ragged.csv", "a,b\n1,2\n3\n");
    place.write("text.csv", "a,b\n1,2\n2,3\nthree,4\n");
    place.write("twice.csv", "a,a\n1,2\n");
    place.write("bytes.csv", [0_u8, 1, 2, 255, 0, 10]);
    place.write("broken.csv.gz", [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 75, 76]);
    place.write("short.parquet", "PAR1");
    let cases = [
        ("missing.csv", "there is no such file"),
        ("folder", "is a folder"),
        ("empty.csv", "is empty"),
        ("names.csv", "no rows"),
        ("ragged.csv", "line 3 has 1 cells where 2 are expected"),
        ("text.csv", "row 3, column \"a\": \"three\" is not a number"),
        ("twice.csv", "two columns are named \"a\""),
        ("bytes.csv", "is not a table"),
        ("broken.csv.gz", "cannot be decoded"),
        ("short.parquet", "is not a valid Parquet file"),
    ];
    for (name, what) in cases {
        place.run(&format!("describe {name}")).refused(2, &[name, what]);
    }
    let files = place.files();
    place.run("describe names.csv --delimiter abc").refused(2, &["--delimiter", "one plain character"]);
    let json = place.run("describe missing.csv --json");
    json.refused(2, &["missing.csv"]);
    assert_eq!(json.json()["error"]["exit_status"], 2);
    assert_eq!(place.files(), files, "nothing is left behind");
}

#[test]
fn arguments_that_are_none() {
    let place = Place::new();
    place.run("").matches("no-arguments");
    place.run("paint").refused(2, &["unrecognized subcommand 'paint'"]);
    place.run("describe").refused(2, &["<DATA>"]);
    place.run("describe --threads x t.csv").refused(2, &["--threads"]);
    place.run("describe --threads 0 t.csv").refused(2, &["--threads must be at least 1"]);
    place.run("describe --threads 1000000000000 t.csv").refused(2, &["t.csv"]);
}

#[test]
fn model_files_that_are_none() {
    let place = Place::new();
    std::fs::create_dir(place.path("folder")).unwrap();
    let mut archive = mondrian::internals::model_file::Archive::new("test");
    archive.insert_vec("numbers", vec![1.0, 2.0]).unwrap();
    let sound = archive.to_bytes().unwrap();
    place.write("sound.mondrian", &sound);
    place.run("inspect sound.mondrian").matches("inspect-container");
    place.write("cut.mondrian", &sound[..sound.len() - 3]);
    let mut flipped = sound.clone();
    *flipped.last_mut().unwrap() ^= 4;
    place.write("flipped.mondrian", flipped);
    let mut header = r#"{"__metadata__":{"format":"mondrian-model","version":"99"}}"#.to_owned();
    header.push_str(&" ".repeat(header.len().next_multiple_of(8) - header.len()));
    let mut future = (header.len() as u64).to_le_bytes().to_vec();
    future.extend_from_slice(header.as_bytes());
    place.write("future.mondrian", future);
    place.write("table.csv", "a,b\n1,2\n");
    let cases = [
        ("missing.mondrian", "there is no such file"),
        ("folder", "is a folder"),
        ("cut.mondrian", "truncated"),
        ("flipped.mondrian", "checksum of numbers"),
        ("future.mondrian", "format version 99"),
        ("table.csv", "not a mondrian model file"),
    ];
    for (name, what) in cases {
        place.run(&format!("inspect {name}")).refused(2, &[name, what]);
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let place = Place::new();
    let mut child =
        place.command(["completions", "zsh"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said_and_is_not_the_users_fault() {
    let place = Place::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = place.command(["completions", "bash"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: standard output cannot be written"));
}
