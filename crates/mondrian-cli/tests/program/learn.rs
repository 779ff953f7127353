//! Learning from a stream: predictions before learning, and no acknowledged row lost, however the process ends.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use crate::harness::Place;
use crate::models::table;

const NAMES: &str = "x,y,noise,colour,target";

/// A running `mondrian learn` with both its pipes.
struct Learning {
    child: Child,
    rows: Option<ChildStdin>,
    lines: BufReader<ChildStdout>,
}

impl Learning {
    fn start(place: &Place, arguments: &str) -> Self {
        let mut child = place
            .command(format!("learn m {arguments}").split_whitespace())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let (rows, lines) = (child.stdin.take(), BufReader::new(child.stdout.take().expect("piped")));
        Self { child, rows, lines }
    }

    fn send(&mut self, text: &str) {
        let rows = self.rows.as_mut().expect("an open pipe");
        // A killed process reads no more.
        let _ = rows.write_all(text.as_bytes()).and_then(|()| rows.flush());
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        (self.lines.read_line(&mut line).expect("readable") > 0).then(|| line.trim_end().to_owned())
    }

    /// Ends the stream; the exit status and what was said.
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.rows.take());
        while self.line().is_some() {}
        let output = self.child.wait_with_output().expect("the program ends");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// A place with a small forest `m` of the first rows, the rows after them, and `batch`: `m` with all of those in one go.
fn place_with_model(n_rest: u32, options: &str) -> (Place, Vec<String>) {
    let place = Place::new();
    let whole = table(40 + n_rest);
    let lines: Vec<&str> = whole.lines().collect();
    place.write("first.csv", format!("{}\n", lines[..41].join("\n")));
    place.write("rest.csv", format!("{NAMES}\n{}\n", lines[41..].join("\n")));
    place.run(&format!("fit first.csv {options} --trees 2 --seed 5 --out m --quiet")).succeeded();
    place.run("update m rest.csv --out batch --quiet").succeeded();
    (place, lines[41..].iter().map(|line| format!("{line}\n")).collect())
}

const FOREST: &str = "--target target --model forest --lifetime 4";

/// Rows of the model, those of its journal included.
fn rows_held(place: &Place) -> u64 {
    let found = place.run("inspect m --json").succeeded().json();
    let in_file = found["parameters"]["program"]["preparation"]["n_rows"].as_u64().expect("a number of rows");
    in_file + found["journal_rows"].as_u64().expect("rows in the journal")
}

fn bytes(place: &Place, name: &str) -> Vec<u8> {
    std::fs::read(place.path(name)).expect("a readable file")
}

/// A window over a stream: the forest of the last rows, also after a kill, and a number of rows that does not grow.
#[test]
fn a_window_holds_the_last_rows_of_a_stream() {
    for options in
        [FOREST, "--target colour --model forest --lifetime 4", "--model density --exclude target --lifetime 2"]
    {
        let (place, rest) = place_with_model(60, options);
        let mut learning = Learning::start(&place, "--window 30");
        learning.send(&format!("{NAMES}\n"));
        learning.line();
        for row in &rest[..50] {
            learning.send(row);
            learning.line().expect("a line per row");
        }
        learning.child.kill().unwrap();
        learning.child.wait().unwrap();
        // The journal's rows are learned by the model with the window, which the file knows.
        let mut learning = Learning::start(&place, "");
        learning.send(&format!("{NAMES}\n{}", rest[50..].concat()));
        let (status, said) = learning.end();
        assert_eq!(status, Some(0), "{said}");
        assert!(said.contains("learned 10 of 10 rows, 30 in all"), "{said}");
        assert_eq!(rows_held(&place), 30);
        // Twins: the same rows after the first, of which all but the last are forgotten, and a fit of a table with a window.
        place.write("older.csv", format!("{NAMES}\n{}", rest[..30].concat()));
        place.run("forget batch first.csv --quiet").succeeded();
        place.run("forget batch older.csv --quiet").succeeded();
        let said = |model: &str| place.run(&format!("predict {model} rest.csv --quiet")).succeeded().stdout.clone();
        assert_eq!(said("m"), said("batch"), "{options}");
        let found = place.run("inspect m --json").succeeded().json();
        assert!(found.to_string().contains("\"window\":30"), "{found}");
        place.run("update m first.csv --quiet").succeeded();
        assert_eq!(rows_held(&place), 30);
        let mut learning = Learning::start(&place, "--window all");
        learning.send(&format!("{NAMES}\n{}", rest.concat()));
        assert!(learning.end().1.contains("90 in all"));
    }
    let place = Place::new();
    place.write("t.csv", table(80));
    place.run("fit t.csv --target target --window 25 --lifetime 3 --trees 3 --out w --quiet").succeeded();
    place.run("fit t.csv --target target --max-rows 25 --lifetime 3 --trees 3 --out s --quiet").succeeded();
    for model in ["w", "s"] {
        let found = place.run(&format!("inspect {model} --json")).succeeded().json();
        assert_eq!(found["parameters"]["program"]["preparation"]["n_rows"], 25, "{found}");
    }
    place.run("fit t.csv --target target --model laplace --window 25 --out l").refused(2, &["--model forest"]);
    place.run("fit t.csv --target target --window 25 --max-rows 25 --out l").refused(2, &["--max-rows"]);
    place.run("fit t.csv --target target --window 0 --out l").refused(2, &["from 1 on"]);
}

/// Each line against a model that has learned the rows before it and no other.
#[test]
fn every_prediction_is_made_before_its_row_is_learned() {
    let (place, rest) = place_with_model(8, FOREST);
    let mut learning = Learning::start(&place, "--intervals");
    learning.send(&format!("{NAMES}\n"));
    assert_eq!(learning.line().as_deref(), Some("prediction,std,lower,upper,target,rmse"));
    std::fs::copy(place.path("m"), place.path("twin")).unwrap();
    let mut squares = 0.0;
    for (i, row) in rest.iter().enumerate() {
        learning.send(row);
        let line = learning.line().expect("a line per row, at once");
        place.write("one.csv", format!("{NAMES}\n{row}"));
        let expected = place.run("predict twin one.csv --quiet").succeeded().stdout.clone();
        let cells: Vec<&str> = line.split(',').collect();
        let expected = expected.lines().nth(1).unwrap();
        assert_eq!(cells[0], expected.split(',').next().unwrap(), "row {i}");
        // Intervals are calibrated anew at the first row and then when the rows have grown by a twentieth.
        if i == 0 {
            assert_eq!(cells[..4].join(","), expected);
        }
        assert_eq!(cells[4], row.trim_end().rsplit(',').next().unwrap());
        squares += (cells[0].parse::<f64>().unwrap() - cells[4].parse::<f64>().unwrap()).powi(2);
        let error = (squares / (i + 1) as f64).sqrt();
        assert!((cells[5].parse::<f64>().unwrap() - error).abs() < 1e-12, "row {i}: {line}");
        place.run("update twin one.csv --quiet").succeeded();
    }
    let (status, said) = learning.end();
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("learned 8 of 8 rows, 48 in all"), "{said}");
    assert_eq!(bytes(&place, "m"), bytes(&place, "batch"), "the model of one batch, bit for bit");
    assert!(!place.path("m.journal").exists());
}

/// 120 processes killed at random moments, checkpoints among them. A producer goes on after what the model holds.
#[test]
fn no_acknowledged_row_is_lost_at_any_kill() {
    let (place, rest) = place_with_model(700, FOREST);
    let mut random = 88_172_645_463_325_252_u64;
    let mut draw = move |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let (mut held, mut kills, mut after_checkpoint) = (40, 0, 0);
    while kills < 120 {
        let start = usize::try_from(held - 40).unwrap();
        let mut learning = Learning::start(&place, "--checkpoint-rows 3");
        let sent = (start + 1 + draw(8) as usize).min(rest.len());
        learning.send(&format!("{NAMES}\n{}", rest[start..sent].concat()));
        let wanted = draw((sent - start + 1) as u64);
        let mut acknowledged = 0;
        let mut header = false;
        while acknowledged < wanted {
            match learning.line() {
                Some(_) if header => acknowledged += 1,
                Some(_) => header = true,
                None => break,
            }
        }
        std::thread::sleep(Duration::from_micros(draw(4000)));
        learning.child.kill().unwrap();
        // Lines that were printed before the kill count too.
        while let Some(line) = learning.line() {
            acknowledged +=
                u64::from(header && line.split(',').all(|cell| !cell.is_empty()) && line.matches(',').count() == 2);
            header = true;
        }
        learning.child.wait().unwrap();
        kills += 1;
        let now = rows_held(&place);
        assert!(now >= held + acknowledged, "kill {kills}: {acknowledged} rows acknowledged after {held}, {now} held");
        assert!(now <= 40 + sent as u64, "kill {kills}: no row twice");
        after_checkpoint += u64::from(now >= held + 3);
        held = now;
        if held as usize - 40 == rest.len() {
            break;
        }
    }
    assert!(kills >= 100, "only {kills} kills before all rows were learned");
    assert!(after_checkpoint > 5, "kills after checkpoints: {after_checkpoint}");
    let mut learning = Learning::start(&place, "");
    learning.send(&format!("{NAMES}\n{}", rest[usize::try_from(held - 40).unwrap()..].concat()));
    let (status, said) = learning.end();
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(bytes(&place, "m"), bytes(&place, "batch"), "the model of one batch, bit for bit");
    let left: Vec<String> = place.files().into_iter().filter(|name| name.contains("journal")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_model_is_its_file_and_its_journal() {
    let (place, rest) = place_with_model(6, FOREST);
    let mut learning = Learning::start(&place, "");
    learning.send(&format!("{NAMES}\n{}", rest.concat()));
    for _ in 0..=rest.len() {
        learning.line().expect("a line");
    }
    // While it runs, a reader sees all rows, and no other writer is let in.
    place.run("predict m first.csv --out p.csv --quiet").succeeded();
    place.run("predict batch first.csv --out q.csv --quiet").succeeded();
    assert_eq!(place.read("p.csv"), place.read("q.csv"));
    for command in ["learn m first.csv", "update m first.csv", &format!("fit first.csv {FOREST} --out m")] {
        place.run(command).refused(2, &["another process is writing this model"]);
    }
    learning.child.kill().unwrap();
    learning.child.wait().unwrap();
    assert!(place.path("m.journal").exists());
    place.run("predict m first.csv --out p.csv --quiet").succeeded();
    assert_eq!(place.read("p.csv"), place.read("q.csv"), "after a kill too");
    // Any command that writes the model takes the journal's rows in.
    place.write("none.csv", format!("{NAMES}\n{}", rest[0]));
    place.run("update m none.csv --quiet").succeeded();
    assert!(!place.path("m.journal").exists());
    place.run("forget m none.csv --quiet").succeeded();
    assert_eq!(rows_held(&place), 46);
    // A journal of another model is neither learned nor thrown away.
    place.write("m.journal", [b"MONDJNL\x01".as_slice(), &[7; 12]].concat());
    place.run("predict m first.csv").refused(2, &["m.journal", "another version"]);
    place.write("m.journal", "my own notes");
    place.run("learn m first.csv").refused(2, &["is not a journal"]);
    assert_eq!(place.read("m.journal"), "my own notes");
}

#[cfg(unix)]
#[test]
fn a_row_too_far_away_stops_it_with_what_to_do() {
    let (place, rest) = place_with_model(5, FOREST);
    let before = rows_held(&place);
    let mut learning = Learning::start(&place, "-");
    learning.send(&format!("{NAMES}\n{}1e300,0,0,red,1\n{}", rest[0], rest[1]));
    let (status, said) = learning.end();
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("widenings of the root box") && said.contains("leave its row out"), "{said}");
    // The row before it was learned.
    assert_eq!(rows_held(&place), before + 1);
}

#[test]
fn signals_and_closed_pipes_stop_it_cleanly() {
    for (how, arguments) in [("TERM", ""), ("INT", "--json"), ("HUP", ""), ("a closed pipe", "")] {
        let (place, rest) = place_with_model(5, FOREST);
        let mut learning = Learning::start(&place, arguments);
        learning.send(&format!("{NAMES}\n{}", rest.concat()));
        let header = usize::from(arguments.is_empty());
        for _ in 0..rest.len() + header {
            learning.line().expect("a line");
        }
        if how == "a closed pipe" {
            drop(std::mem::replace(&mut learning.lines, BufReader::new(empty_pipe())));
            learning.send(&rest[0]);
        } else {
            let status = std::process::Command::new("kill")
                .args([&format!("-{how}"), &learning.child.id().to_string()])
                .status();
            assert!(status.unwrap().success());
        }
        let status = learning.child.wait().unwrap();
        assert_eq!(status.code(), Some(0), "{how}");
        assert!(!place.path("m.journal").exists(), "{how}");
        if how != "a closed pipe" {
            assert_eq!(bytes(&place, "m"), bytes(&place, "batch"), "{how}");
        }
    }
}

/// The reading end of a pipe of a process that has ended.
#[cfg(unix)]
fn empty_pipe() -> ChildStdout {
    let mut child = std::process::Command::new("true").stdout(Stdio::piped()).spawn().unwrap();
    let out = child.stdout.take().unwrap();
    child.wait().unwrap();
    out
}

#[test]
fn json_lines_classes_densities_and_rows_without_a_target() {
    let (place, rest) = place_with_model(5, FOREST);
    let mut objects = String::new();
    for row in &rest {
        let cells: Vec<&str> = row.trim_end().split(',').collect();
        let [x, y, noise, colour, target] = cells[..] else { panic!("five cells") };
        let _ = writeln!(
            objects,
            "{{\"target\": {target}, \"x\": {x}, \"y\": {y}, \"noise\": {noise}, \"colour\": \"{colour}\", \"more\": null}}"
        );
    }
    let ran = place.run_with("learn m --json --quiet", Some(objects.as_bytes()));
    let told: Vec<serde_json::Value> =
        ran.succeeded().stdout.lines().map(|line| serde_json::from_str(line).expect("an object per line")).collect();
    assert_eq!((told.len(), told[5]["learned"].as_u64()), (6, Some(5)));
    assert!(told[4]["prediction"].is_f64() && told[4]["rmse"].is_f64());
    assert_eq!(bytes(&place, "m"), bytes(&place, "batch"), "JSON lines are learned as CSV is");

    let (place, rest) = place_with_model(5, "--target colour --lifetime 3");
    let text = format!("{NAMES}\n{}0.1,0.2,0.3,,0.5\n", rest.concat());
    let ran = place.run_with("learn m", Some(text.as_bytes()));
    let lines: Vec<&str> = ran.succeeded().stdout.lines().collect();
    assert_eq!((lines[0], lines.len()), ("prediction,probability,target,error_rate", 7));
    assert!(
        ran.stderr.contains("learned 5 of 6 rows, 45 in all"),
        "a row without its target is not learned: {}",
        ran.stderr
    );
    assert_eq!(lines[6].split(',').nth(2), Some(""));
    assert_eq!(bytes(&place, "m"), bytes(&place, "batch"));
    let new = format!("{NAMES}\n0.1,0.2,0.3,green,0.5\n");
    place.run_with("learn m", Some(new.as_bytes())).refused(2, &["\"green\"", "--new-classes"]);
    place.run_with("learn m --new-classes", Some(new.as_bytes())).succeeded();
    assert!(
        place.run("predict m first.csv").succeeded().stdout.starts_with("prediction,p_blue,p_red,p_yellow,p_green")
    );

    let (place, rest) = place_with_model(5, "--columns x,y --model density --lifetime 2");
    let ran = place.run_with("learn m", Some(format!("{NAMES}\n{}", rest.concat()).as_bytes()));
    assert!(ran.succeeded().stdout.starts_with("log_density,mean_log_density\n"));
    assert_eq!(bytes(&place, "m"), bytes(&place, "batch"));

    place.run("fit first.csv --target target --out laplace --quiet").succeeded();
    place.run("learn laplace").refused(2, &["laplace model cannot learn more rows"]);
    let wrong = format!("{NAMES}\n0.1,0.2,0.3,red,0.5\nlow,0.2,0.3,red,0.5\n");
    let ran = place.run_with("learn m", Some(wrong.as_bytes()));
    ran.refused(2, &["row 2, column \"x\": \"low\" is not a number"]);
    assert_eq!(rows_held(&place), 46, "rows before the wrong one are kept");
}
