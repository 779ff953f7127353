//! What commands write: predictions, scores, and outputs that cannot be written.

use crate::harness::Place;
use crate::models::table;

/// As root, a rename over `/dev/full` or a named pipe would succeed and destroy it.
#[cfg(unix)]
#[test]
fn pipes_and_devices_are_written_to_and_not_replaced() {
    use std::os::unix::fs::FileTypeExt;
    let place = Place::new();
    place.write("t.csv", table(40));
    place.run("fit t.csv --target target --out m --quiet").succeeded();
    let pipe = place.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).expect("a readable pipe")
    });
    place.run("predict m t.csv --out pipe --quiet").succeeded();
    assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo(), "the pipe is still there");
    assert_eq!(reader.join().unwrap().lines().count(), 41);
    let full = std::path::Path::new("/dev/full");
    if std::fs::metadata(full).is_ok_and(|there| there.file_type().is_char_device()) {
        place.run("predict m t.csv --out /dev/full --quiet").refused(1, &["/dev/full"]);
        place.run("fit t.csv --target target --out /dev/full --quiet").refused(1, &["/dev/full"]);
        assert!(std::fs::metadata(full).unwrap().file_type().is_char_device());
    }
}

#[test]
fn outputs_that_cannot_be_written_leave_everything_as_it_was() {
    let place = Place::new();
    place.write("t.csv", table(30));
    std::fs::create_dir(place.path("folder")).unwrap();
    place.run("fit t.csv --target target --out folder").refused(2, &["is a folder"]);
    place.run("fit t.csv --target target --out nowhere/m").refused(2, &["folder does not exist"]);
    // Before anything is read: the work would be lost.
    for command in
        ["fit absent.csv --target t", "path absent.csv --target t", "update absent t.csv", "merge absent absent"]
    {
        place.run(&format!("{command} --out nowhere/m")).refused(2, &["folder does not exist"]);
    }
    place.run("fit t.csv --target target --lifetime -3 --out m").refused(2, &["give a number ≥ 0"]);
    place.run("fit t.csv --target target --out m --quiet").succeeded();
    let before = std::fs::read(place.path("m")).unwrap();
    // A fit that fails on its way leaves the old model alone.
    place.write("bad.csv", "x,target\n1,2\n2,\n");
    place.run("fit bad.csv --target target --out m").refused(2, &["row 2"]);
    place.run("predict m t.csv --out nowhere/p.csv").refused(2, &["folder does not exist"]);
    place.run("predict m t.csv --coverage 2").refused(2, &["--coverage 2"]);
    place.run("predict m t.csv --json").refused(2, &["standard output"]);
    assert_eq!(std::fs::read(place.path("m")).unwrap(), before);
    assert_eq!(place.files(), ["bad.csv", "folder", "m", "t.csv"], "no temporary file is left");
}

/// A disk that is full while the model is written: a limit on file size stands in for it.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_keeps_the_old_model() {
    let place = Place::new();
    place.write("t.csv", table(30));
    place.run("fit t.csv --target target --out m --quiet").succeeded();
    let before = std::fs::read(place.path("m")).unwrap();
    place.write("longer.csv", table(90));
    // 1 block of 512 or 1024 bytes: less than any model. SIGXFSZ is ignored, so that write() fails instead.
    let script = format!(
        "trap '' XFSZ; ulimit -f 1; exec {} fit longer.csv --target target --out m --quiet",
        env!("CARGO_BIN_EXE_mondrian")
    );
    let output =
        std::process::Command::new("sh").args(["-c", &script]).current_dir(place.path(".")).output().expect("a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("error: ") && said.contains("cannot be written"), "{said}");
    assert_eq!(std::fs::read(place.path("m")).unwrap(), before, "the old model is whole");
    assert_eq!(place.files(), ["longer.csv", "m", "t.csv"]);
}

/// Every figure computed again here, from the predictions that `predict` writes.
#[test]
fn evaluate_says_what_predictions_are_worth() {
    let place = Place::new();
    let whole = table(160);
    let lines: Vec<&str> = whole.lines().collect();
    let part = |rows: &[&str]| format!("{}\n{}\n", lines[0], rows.join("\n"));
    place.write("train.csv", part(&lines[1..120]));
    place.write("test.csv", part(&lines[120..]));
    for (model, rest) in [("forest", "--trees 10 --lifetime 5"), ("laplace", ""), ("grid", "--trees 5")] {
        place.run(&format!("fit train.csv --target target --model {model} {rest} --out m --quiet")).succeeded();
        let found = place.run("evaluate m test.csv --json").succeeded().json();
        place.run("predict m test.csv --out p.csv --quiet").succeeded();
        let predicted: Vec<Vec<f64>> = place
            .read("p.csv")
            .lines()
            .skip(1)
            .map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect())
            .collect();
        let truth: Vec<f64> = lines[120..].iter().map(|l| l.rsplit(',').next().unwrap().parse().unwrap()).collect();
        let n = truth.len() as f64;
        let mean = truth.iter().sum::<f64>() / n;
        let sum = |f: &dyn Fn(usize) -> f64| (0..truth.len()).map(f).sum::<f64>();
        let squared = sum(&|i| (truth[i] - predicted[i][0]).powi(2));
        let total = sum(&|i| (truth[i] - mean).powi(2));
        let near = |name: &str, expected: f64| {
            let value = found[name].as_f64().unwrap_or(f64::NAN);
            assert!((value - expected).abs() < 1e-9 * expected.abs().max(1.0), "{model} {name}: {value}, {expected}");
        };
        assert_eq!(found["rows"].as_u64(), Some(truth.len() as u64));
        near("rmse", (squared / n).sqrt());
        near("mae", sum(&|i| (truth[i] - predicted[i][0]).abs()) / n);
        near("r2", 1.0 - squared / total);
        near("baseline_rmse", (total / n).sqrt());
        if model == "grid" {
            assert!(found["coverage"].is_null());
        } else {
            let held = |i: usize| f64::from(u8::from(predicted[i][2] <= truth[i] && truth[i] <= predicted[i][3]));
            near("coverage", sum(&held) / n);
            assert_eq!(found["coverages"].as_array().map(Vec::len), Some(4));
        }
        // Out of sample, better than the mean by a wide margin.
        assert!(found["r2"].as_f64().unwrap() > 0.6, "{model}: {found}");
    }
    let said = place.run("predict m test.csv --out p.csv").stderr;
    assert!(said.contains("40 rows: RMSE") || said.contains("41 rows: RMSE"), "{said}");
    place.run("fit train.csv --target colour --trees 5 --lifetime 3 --out c --quiet").succeeded();
    let found = place.run("evaluate c test.csv --json").succeeded().json();
    let confusion = found["confusion"].as_array().unwrap();
    let right: u64 = (0..3).map(|i| confusion[i][i].as_u64().unwrap()).sum();
    assert_eq!(found["accuracy"].as_f64(), Some(right as f64 / found["rows"].as_f64().unwrap()));
    assert!(found["log_loss"].as_f64().is_some_and(|loss| loss > 0.0));
    place.run("fit train.csv --columns x,y --model density --trees 5 --lifetime 2 --out d --quiet").succeeded();
    assert!(place.run("evaluate d test.csv --json").succeeded().json()["mean_log_density"].as_f64().is_some());
    place.write("bare.csv", "x,y,noise,colour\n0.1,0.2,0.3,red\n");
    place.run("evaluate m bare.csv").refused(2, &["no column \"target\""]);
    assert!(!place.run("predict m bare.csv").succeeded().stderr.contains("RMSE"));
}

#[test]
fn identifiers_pass_through_predictions() {
    let place = Place::new();
    place.write("t.csv", table(30));
    place
        .run("fit t.csv --target target --model forest --trees 3 --lifetime 2 --missing drop --out m --quiet")
        .succeeded();
    place.write("new.csv", "id,x,y,noise,colour,when\n007,0.1,0.2,0.3,red,\"a, b\"\nb,,0.2,0.3,red,2024-01-02\n");
    let lines: Vec<String> =
        place.run("predict m new.csv --keep id,when --quiet").succeeded().stdout.lines().map(str::to_owned).collect();
    assert_eq!(lines[0], "id,when,prediction,std,lower,upper");
    assert!(lines[1].starts_with("007,\"a, b\",") && lines[1].matches(',').count() == 6, "{}", lines[1]);
    assert_eq!(lines[2], "b,2024-01-02,,,,");
    place.run("predict m new.csv --keep nothing").refused(2, &["no column \"nothing\""]);
    // A text where a number is expected: the hint names only what `predict` has.
    place.write("text.csv", "x,y,noise,colour\n0.1,0.2,0.3,red\nlow,0.2,0.3,red\n");
    let ran = place.run("predict m text.csv");
    ran.refused(2, &["row 2, column \"x\": \"low\" is not a number"]);
    assert!(!ran.stderr.contains("--exclude"), "{}", ran.stderr);
}
