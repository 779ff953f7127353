//! Files that must not be lost or spoiled: locks, outputs that are inputs, signals, leftovers.

use std::fs::File;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::harness::Place;
use crate::models::table;

const FOREST: &str = "--target target --model forest --trees 4 --lifetime 4";

fn start(place: &Place, arguments: &str) -> Child {
    place
        .command(arguments.split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts")
}

/// A table without its names.
#[cfg(unix)]
fn rows_of(table: &str) -> &str {
    &table[table.find('\n').unwrap() + 1..]
}

fn rows_in(place: &Place, model: &str) -> u64 {
    place.run(&format!("inspect {model} --json")).succeeded().json()["parameters"]["program"]["preparation"]["n_rows"]
        .as_u64()
        .expect("a number of rows")
}

#[test]
fn a_model_that_another_process_holds_is_refused() {
    let place = Place::new();
    place.write("t.csv", table(40));
    place.run(&format!("fit t.csv {FOREST} --out m --quiet")).succeeded();
    let before = std::fs::read(place.path("m")).unwrap();
    let held = File::open(place.path("m")).unwrap();
    held.lock().unwrap();
    for command in ["update m t.csv", "forget m t.csv", &format!("fit t.csv {FOREST} --out m")] {
        place.run(command).refused(2, &["another process is writing this model"]);
    }
    assert_eq!(std::fs::read(place.path("m")).unwrap(), before);
    // Reading needs no lock, nor does writing elsewhere.
    place.run("predict m t.csv --quiet").succeeded();
    place.run("update m t.csv --out n --quiet").succeeded();
    drop(held);
    place.run("update m t.csv --quiet").succeeded();
    assert_eq!(rows_in(&place, "m"), 80);
}

#[test]
fn updates_at_once_never_lose_a_batch() {
    let place = Place::new();
    place.write("t.csv", table(40));
    place.run(&format!("fit t.csv {FOREST} --out m --quiet")).succeeded();
    let mut expected = 40;
    for _ in 0..6 {
        let all: Vec<Child> = (0..3).map(|_| start(&place, "update m t.csv --quiet")).collect();
        for mut child in all {
            match child.wait().unwrap().code() {
                Some(0) => expected += 40,
                Some(2) => {}
                other => panic!("exit status {other:?}"),
            }
        }
        assert_eq!(rows_in(&place, "m"), expected, "every update that said it succeeded is in the model");
    }
    assert!(expected > 40, "at least one update succeeds");
    assert_eq!(place.files(), ["m", "t.csv"], "no lock file is left");
}

#[test]
fn an_output_that_is_an_input_is_refused() {
    let place = Place::new();
    let text = table(40);
    place.write("t.csv", &text);
    place.run(&format!("fit t.csv {FOREST} --out m --quiet")).succeeded();
    place.run("fit t.csv --like m --out n --quiet").succeeded();
    let models = ["m", "n"].map(|name| std::fs::read(place.path(name)).unwrap());
    std::fs::hard_link(place.path("t.csv"), place.path("hard.csv")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("t.csv", place.path("soft.csv")).unwrap();
    std::fs::create_dir(place.path("folder")).unwrap();
    let mut names = vec!["t.csv", "./t.csv", "folder/../t.csv", "hard.csv"];
    if cfg!(unix) {
        names.push("soft.csv");
    }
    for name in names {
        for command in [
            &format!("fit t.csv {FOREST} --out {name}"),
            &format!("fit t.csv --like m --out {name}"),
            &format!("predict m t.csv --out {name}"),
            &format!("path t.csv --target target --out {name}"),
            &format!("update m t.csv --out {name}"),
        ] {
            place.run(command).refused(2, &["is also an input", "choose another --out"]);
        }
    }
    for command in ["predict m t.csv --out m", "merge m n --out n", "merge m n --out m", "fit t.csv --like m --out m"] {
        place.run(command).refused(2, &["is also an input"]);
    }
    assert_eq!(place.read("t.csv"), text);
    assert_eq!(["m", "n"].map(|name| std::fs::read(place.path(name)).unwrap()), models);
}

#[cfg(unix)]
#[test]
fn an_input_on_standard_input_or_output_is_recognised() {
    let place = Place::new();
    let text = table(40);
    place.write("t.csv", &text);
    place.run(&format!("fit t.csv {FOREST} --out m --quiet")).succeeded();
    let input = File::open(place.path("t.csv")).unwrap();
    let output = place.command(["predict", "m", "-", "--out", "t.csv"]).stdin(input).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    let out = File::options().append(true).open(place.path("t.csv")).unwrap();
    let output = place.command(["predict", "m", "t.csv"]).stdout(out).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(place.read("t.csv"), text);
}

/// Waits until there is a temporary file in the folder.
#[cfg(unix)]
fn wait_for_temporary(place: &Place, child: &mut Child) -> bool {
    let deadline = Instant::now() + Duration::from_secs(20);
    while Instant::now() < deadline && child.try_wait().unwrap().is_none() {
        if place.files().iter().any(|name| name.contains(".mondrian-")) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    false
}

#[cfg(unix)]
fn signal(child: &Child, name: &str) {
    let status = std::process::Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(status.unwrap().success());
}

#[cfg(unix)]
#[test]
fn signals_remove_temporary_files_and_the_next_run_those_of_killed_processes() {
    use std::os::unix::process::ExitStatusExt;
    let place = Place::new();
    place.write("t.csv", table(60));
    place.run(&format!("fit t.csv {FOREST} --out m --quiet")).succeeded();
    place.write("p.csv", "kept");
    let long = rows_of(&table(60)).repeat(4000);
    place.write("long.csv", format!("x,y,noise,colour,target\n{long}"));
    for (name, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        let mut child = start(&place, "predict m long.csv --out p.csv --quiet");
        assert!(wait_for_temporary(&place, &mut child), "a temporary file while predictions are written");
        signal(&child, name);
        assert_eq!(child.wait().unwrap().signal(), Some(number), "ended by the signal itself");
        assert_eq!(place.files(), ["long.csv", "m", "p.csv", "t.csv"], "nothing is left after SIG{name}");
        assert_eq!(place.read("p.csv"), "kept");
    }
    let mut child = start(&place, "predict m long.csv --out p.csv --quiet");
    assert!(wait_for_temporary(&place, &mut child));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(place.files().len(), 5, "kill -9 leaves the temporary file");
    // Somebody else's output in the same folder is not touched while it is written.
    let mut other = start(&place, "predict m long.csv --out p.csv --quiet");
    assert!(wait_for_temporary(&place, &mut other));
    place.run("predict m t.csv --out q.csv --quiet").succeeded();
    place.run("predict m t.csv --out p.csv --quiet").succeeded();
    assert!(place.read("p.csv").starts_with("prediction,"));
    let left = place.files().iter().filter(|name| name.contains(".mondrian-")).count();
    assert_eq!(left, usize::from(other.try_wait().unwrap().is_none()), "only what is being written is left");
    other.kill().unwrap();
    other.wait().unwrap();
    place.run("predict m t.csv --out p.csv --quiet").succeeded();
    assert_eq!(place.files(), ["long.csv", "m", "p.csv", "q.csv", "t.csv"]);
}

/// `learn` has a test of its own, with 120 kills.
#[test]
fn killed_at_any_moment_a_file_is_the_old_or_the_new_one() {
    const KILLS: u32 = 14;
    let place = Place::new();
    place.write("t.csv", table(300));
    place.write("more.csv", format!("x,y,noise,colour,target\n{}", rows_of(&table(300)).repeat(4)));
    place.run(&format!("fit t.csv {FOREST} --out m --quiet")).succeeded();
    place.write("p.csv", "kept");
    let mut n_old = 0;
    for (command, output) in [
        (format!("fit more.csv {FOREST} --seed 2 --out m --quiet"), "m"),
        ("update m more.csv --quiet".to_owned(), "m"),
        ("predict m more.csv --out p.csv --quiet".to_owned(), "p.csv"),
    ] {
        let bytes = || std::fs::read(place.path(output)).unwrap();
        let (old, files, begun) = (bytes(), place.files(), Instant::now());
        place.run(&command).succeeded();
        let (new, whole) = (bytes(), begun.elapsed());
        assert!(old != new && place.files() == files, "{command}");
        for kill in 1..=KILLS {
            place.write(output, &old);
            let mut child = start(&place, &command);
            std::thread::sleep(whole * kill / KILLS);
            child.kill().unwrap();
            child.wait().unwrap();
            let now = bytes();
            assert!(now == old || now == new, "{command}, kill {kill}: {} bytes", now.len());
            n_old += usize::from(now == old);
        }
        place.write(output, &old);
        place.run(&command).succeeded();
        assert_eq!(bytes(), new, "{command}");
        assert_eq!(place.files(), files, "no file of a killed process is left");
    }
    assert!(n_old > KILLS as usize, "only {n_old} processes were killed in time");
}

#[cfg(target_os = "linux")]
#[test]
fn nohup_is_respected() {
    let place = Place::new();
    place.write("t.csv", table(60));
    place.run(&format!("fit t.csv {FOREST} --out m --quiet")).succeeded();
    let long = rows_of(&table(60)).repeat(1000);
    place.write("long.csv", format!("x,y,noise,colour,target\n{long}"));
    let script = format!("trap '' HUP; exec {} predict m long.csv --out p.csv --quiet", env!("CARGO_BIN_EXE_mondrian"));
    let mut child =
        std::process::Command::new("sh").args(["-c", &script]).current_dir(place.path(".")).spawn().unwrap();
    assert!(wait_for_temporary(&place, &mut child));
    signal(&child, "HUP");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(place.read("p.csv").lines().count(), 60_001);
}

#[cfg(target_os = "linux")]
#[test]
fn a_closed_standard_output_is_an_error() {
    let place = Place::new();
    place.write("t.csv", table(40));
    place.run(&format!("fit t.csv {FOREST} --out m --quiet")).succeeded();
    let run = |arguments: &str, redirect: &str| {
        let script = format!("exec {} {arguments} {redirect}", env!("CARGO_BIN_EXE_mondrian"));
        std::process::Command::new("sh").args(["-c", &script]).current_dir(place.path(".")).output().unwrap()
    };
    for arguments in ["predict m t.csv --quiet", "describe t.csv", "man", "fit t.csv --like m --out - --quiet"] {
        let output = run(arguments, ">&-");
        assert_eq!(output.status.code(), Some(1), "{arguments}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("standard output is closed"), "{arguments}");
        assert_eq!(run(arguments, ">/dev/null").status.code(), Some(0), "{arguments}");
    }
    assert_eq!(run("predict m t.csv --out p.csv --quiet", ">&-").status.code(), Some(0), "nothing is written there");
}

#[test]
fn a_model_goes_to_standard_output_as_predictions_do() {
    let place = Place::new();
    place.write("t.csv", table(40));
    place.run(&format!("fit t.csv {FOREST} --out m --quiet")).succeeded();
    let command = format!("fit t.csv {FOREST} --out - --quiet");
    let output = place.command(command.split_whitespace()).output().unwrap();
    assert_eq!(output.stdout, std::fs::read(place.path("m")).unwrap());
    assert_eq!(place.files(), ["m", "t.csv"], "no file is called -");
    place.run(&format!("fit t.csv {FOREST} --out - --json")).refused(2, &["standard output"]);
}

/// `fit`, `update` and `predict` killed at random moments: every file is the old one or the new one, and the next run leaves no
/// other. (`learn` has its own 120 kills.)
#[test]
fn kills_at_random_moments_damage_nothing() {
    let place = Place::new();
    place.write("t.csv", table(60));
    place.run(&format!("fit t.csv {FOREST} --out m --quiet")).succeeded();
    place.run("predict m t.csv --out p.csv --quiet").succeeded();
    let fit = format!("fit t.csv {FOREST} --seed 1 --out f --quiet");
    place.run(&fit).succeeded();
    let (fitted, mut expected) = (std::fs::read(place.path("f")).unwrap(), rows_in(&place, "m"));
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for i in 0..60 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let command = [fit.as_str(), "update m t.csv --quiet", "predict m t.csv --out p.csv --quiet"][i % 3];
        let mut child = start(&place, command);
        std::thread::sleep(Duration::from_micros((random >> 33) % 25_000));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(std::fs::read(place.path("f")).unwrap(), fitted, "equal models are equal files");
        let rows = rows_in(&place, "m");
        assert!(rows == expected || rows == expected + 60, "a whole update or none: {rows} after {expected}");
        expected = rows;
        assert_eq!(place.read("p.csv").lines().count(), 61);
    }
    for command in [fit.as_str(), "update m t.csv --quiet", "predict m t.csv --out p.csv --quiet"] {
        place.run(command).succeeded();
    }
    assert_eq!(place.files(), ["f", "m", "p.csv", "t.csv"], "no leftover of any killed process");
}
