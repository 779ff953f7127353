//! Models from table to predictions: what is written, what it says, what stays untouched.

use std::fmt::Write;

use crate::harness::Place;

/// A smooth target of two inputs, a third of noise and a category, all from a fixed recipe.
pub(crate) fn table(n: u32) -> String {
    let mut text = "x,y,noise,colour,target\n".to_owned();
    for i in 0..n {
        let (x, y) = (f64::from(i * 37 % 101) / 101.0, f64::from(i * 61 % 89) / 89.0);
        let noise = f64::from(i * 29 % 97) / 97.0;
        let colour = ["red", "blue", "yellow"][(i % 3) as usize];
        let lift = if colour == "red" { 0.5 } else { 0.0 };
        let _ = writeln!(text, "{x},{y},{noise},{colour},{}", (6.0 * x).sin() + y + lift);
    }
    text
}

#[test]
fn laplace_from_table_to_predictions() {
    let place = Place::new();
    place.write("t.csv", table(80));
    place.run("fit t.csv --target target --out m.mondrian").matches_but_for_fractions("fit-laplace");
    place
        .run("fit t.csv --target target --out n.mondrian --json --threads 2 --quiet")
        .matches_but_for_fractions("fit-laplace-json");
    let models = ["m.mondrian", "n.mondrian"].map(|name| std::fs::read(place.path(name)).unwrap());
    assert_eq!(models[0], models[1], "equal models are equal files, whatever the threads");
    let to_file = place.run("predict m.mondrian t.csv --out p.csv");
    to_file.matches("predict-laplace");
    let piped = place.run_with("predict m.mondrian - --quiet", Some(table(80).as_bytes()));
    assert_eq!(piped.succeeded().stdout, place.read("p.csv"));
    let worst = place
        .read("p.csv")
        .lines()
        .skip(1)
        .zip(table(80).lines().skip(1))
        .map(|(p, t)| {
            let number = |text: &str| text.parse::<f64>().unwrap();
            (number(p.split(',').next().unwrap()) - number(t.rsplit(',').next().unwrap())).abs()
        })
        .fold(0.0, f64::max);
    assert!(worst < 0.5, "a smooth target is followed, not {worst} away");
    place.run("inspect m.mondrian --json").succeeded();
}

#[test]
fn an_automatic_lifetime_is_judged_as_asked() {
    let place = Place::new();
    place.write("t.csv", table(60));
    for (model, how) in [("forest", "3"), ("kernel", "3"), ("density", "leave-one-out"), ("density", "2")] {
        let target = if model == "density" { "--columns x,y" } else { "--target target" };
        let fit = format!("fit t.csv {target} --model {model} --trees 5 --validation {how} --out m --quiet --json");
        assert!(place.run(&fit).succeeded().json()["lifetime"].as_f64().is_some(), "{model} by {how}");
    }
    let forest = "fit t.csv --target target --model forest --trees 5 --out m --validation";
    place.run(&format!("{forest} leave-one-out")).refused(2, &["leave-one-out", "folds"]);
    place.run(&format!("{forest} 1")).refused(2, &["folds"]);
}

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
fn a_fit_says_where_time_and_memory_went() {
    let place = Place::new();
    place.write("t.csv", table(60));
    let ran = place.run("fit t.csv --target target --model forest --trees 5 --lifetime 3 --out m --timings --json");
    for part in ["where it went", "looking", "reading", "growing", "saving"] {
        assert!(ran.succeeded().stderr.contains(part), "{part} in {}", ran.stderr);
    }
    let timings = &ran.json()["timings"];
    assert!(timings["growing_seconds"].as_f64().is_some_and(|s| s <= timings["fitting_seconds"].as_f64().unwrap()));
    let quiet = place.run("fit t.csv --target target --model forest --trees 5 --lifetime 3 --out m");
    assert!(!quiet.succeeded().stderr.contains("where it went"));
}

#[test]
fn missing_cells_are_refused_dropped_or_filled() {
    let place = Place::new();
    let gap = table(40).replacen("red", "", 1).replacen("\n0.3663366336633663,", "\n,", 1);
    place.write("gap.csv", &gap);
    place.write("t.csv", table(40));
    place.run("fit gap.csv --target target --out m").refused(2, &["row 1, column \"colour\"", "--missing drop"]);
    assert!(!place.path("m").exists());
    place.run("fit gap.csv --target target --missing drop --out dropped --quiet").succeeded();
    place.run("fit gap.csv --target target --missing mean --out filled --quiet").succeeded();
    place.run("predict dropped gap.csv --out p.csv").succeeded();
    let lines: Vec<String> = place.read("p.csv").lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 41, "one line per row");
    assert_eq!(lines[1], ",,,");
    place.run("predict filled gap.csv --out p.csv").succeeded();
    assert!(place.read("p.csv").lines().all(|line| !line.starts_with(',')));
    place.run("fit t.csv --target target --out m --quiet").succeeded();
    place.run("predict m gap.csv").refused(2, &["row 1, column \"colour\""]);
    place.write("hole.csv", table(40) + "0.5,0.5,0.5,red,\n");
    place.run("fit hole.csv --target target --missing mean --out m").refused(2, &["target", "--missing drop"]);
}

#[test]
fn columns_are_chosen_by_name() {
    let place = Place::new();
    place.write("t.csv", table(40));
    let inputs = |options: &str| {
        let ran = place.run(&format!("fit t.csv --target target --out m --json --quiet {options}"));
        ran.succeeded().json()["inputs"].to_string()
    };
    assert_eq!(inputs("--columns y,x"), r#"["y","x"]"#);
    assert_eq!(inputs("--exclude noise,colour"), r#"["x","y"]"#);
    assert_eq!(inputs("--columns colour"), r#"["colour=blue","colour=red","colour=yellow"]"#);
    place.run("fit t.csv --target targt --out m").refused(2, &["no column \"targt\"", "did you mean \"target\"?"]);
    place.run("fit t.csv --target target --exclude q --out m").refused(2, &["no column \"q\"", "it has x, y"]);
    place.run("fit t.csv --target target --columns target --out m").refused(2, &["no input columns"]);
    place.run("fit t.csv --out m").refused(2, &["--target is missing"]);
    place.write("no-y.csv", "x,noise,colour\n1,2,red\n");
    place.run("fit t.csv --target target --out m --quiet").succeeded();
    place.run("predict m no-y.csv").refused(2, &["no column \"y\""]);
    place.write("new.csv", "x,y,noise,colour\n0.1,0.2,0.3,green\n");
    assert!(place.run("predict m new.csv").succeeded().stderr.contains("1 cells have a category"));
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

#[test]
fn forests_learn_in_any_pieces() {
    let place = Place::new();
    let whole = table(90);
    let lines: Vec<&str> = whole.lines().collect();
    let part = |rows: &[&str]| format!("{}\n{}\n", lines[0], rows.join("\n"));
    place.write("all.csv", &whole);
    place.write("first.csv", part(&lines[1..50]));
    place.write("second.csv", part(&lines[50..]));
    let options = "--target target --model forest --trees 8 --lifetime 4 --seed 3";
    place.run(&format!("fit first.csv {options} --out a.mondrian")).matches_but_for_fractions("fit-forest");
    place.run("fit second.csv --like a.mondrian --out b.mondrian --quiet").succeeded();
    place.run("merge a.mondrian b.mondrian --out merged.mondrian").matches("merge");
    std::fs::copy(place.path("a.mondrian"), place.path("updated.mondrian")).unwrap();
    place.run("update updated.mondrian second.csv").matches("update");
    place.run("predict merged.mondrian all.csv --out merged.csv").succeeded();
    place.run("predict updated.mondrian all.csv --out updated.csv").succeeded();
    assert_eq!(place.read("merged.csv"), place.read("updated.csv"), "merging is learning");
    place.run(&format!("fit all.csv {options} --out other.mondrian --quiet")).succeeded();
    place.run("merge a.mondrian other.mondrian --out x").refused(2, &["prepare rows differently", "--like"]);
    place.run("fit all.csv --target target --out laplace.mondrian --quiet").succeeded();
    place.run("update laplace.mondrian all.csv").refused(2, &["laplace model cannot learn more rows"]);
    assert!(!place.path("x").exists());
    // A batch that fails on its way leaves the saved model as it was.
    let before = std::fs::read(place.path("updated.mondrian")).unwrap();
    place.write("bad.csv", part(&["0.1,0.2,0.3,red,1", "0.1,0.2,0.3,red,"]));
    place.run("update updated.mondrian bad.csv").refused(2, &["row 2", "target"]);
    assert_eq!(std::fs::read(place.path("updated.mondrian")).unwrap(), before);
    place.run("fit all.csv --target colour --model laplace --out x").refused(2, &["numbers, not classes"]);
}

#[test]
fn forests_choose_their_lifetime_and_know_their_uncertainty() {
    let place = Place::new();
    place.write("t.csv", table(120));
    place.run("fit t.csv --target target --model forest --trees 10 --out m --quiet").succeeded();
    place.run("predict m t.csv --out p.csv --coverage 0.9").succeeded();
    let held = place
        .read("p.csv")
        .lines()
        .skip(1)
        .zip(table(120).lines().skip(1))
        .filter(|(p, t)| {
            let p: Vec<f64> = p.split(',').map(|cell| cell.parse().unwrap()).collect();
            let truth: f64 = t.rsplit(',').next().unwrap().parse().unwrap();
            p[2] <= truth && truth <= p[3]
        })
        .count();
    assert!(held >= 100, "90 % intervals hold {held} of 120 training targets");
    place.run("predict m t.csv --mean-only --out mean.csv").succeeded();
    let first = |name: &str| -> Vec<String> {
        place.read(name).lines().map(|l| l.split(',').next().unwrap().to_owned()).collect()
    };
    assert_eq!(first("mean.csv"), first("p.csv"));
}

#[test]
fn paths_write_a_report_and_tell_the_curve() {
    let place = Place::new();
    place.write("t.csv", table(150));
    let ran = place.run("path t.csv --target target --trees 10 --json --out report.html");
    ran.succeeded();
    let told = ran.json();
    let list = |name: &str| told[name].as_array().cloned().unwrap_or_default();
    assert_eq!((list("lifetimes")[0].as_f64(), list("train").len()), (Some(0.0), list("lifetimes").len()));
    assert_eq!(list("validation").len(), list("lifetimes").len());
    let least = list("validation").iter().filter_map(serde_json::Value::as_f64).fold(f64::INFINITY, f64::min);
    assert_eq!(told["best_validation"].as_f64(), Some(least), "the best lifetime has the least error");
    assert_eq!(told["rows"]["train"].as_u64().unwrap() + told["rows"]["held_out"].as_u64().unwrap(), 150);
    let page = place.read("report.html");
    for part in ["Error against lifetime", "One tree of the model", "Calibration", "Which inputs matter", "path t.csv"]
    {
        assert!(page.contains(part), "{part}");
    }
    place.run("path t.csv --target target --trees 10 --out again.html --quiet --json --threads 1").succeeded();
    let told = place.run("path t.csv --model density --exclude colour --trees 10 --json --out density.html");
    assert_eq!(told.succeeded().json()["loss"], "neg_log_density");
    assert!(place.read("density.html").contains("One tree of the model"));
    place.run("path t.csv --target target --model kernel --trees 5 --out kernel.html --quiet").succeeded();
    assert!(place.read("kernel.html").contains("One tree of the model"));
    assert!(told.json()["leave_one_out"].as_array().is_some_and(|v| !v.is_empty()));
    place.run("path t.csv --out r.html").refused(2, &["--target is missing"]);
    place.run("path t.csv --target target --out nowhere/r.html --trees 2").refused(2, &["folder does not exist"]);
}

#[test]
fn densities_and_grids_from_table_to_predictions() {
    let place = Place::new();
    place.write("t.csv", table(100));
    let density = "fit t.csv --model density --columns x,y --trees 8 --lifetime 2 --out d.mondrian";
    place.run(density).matches_but_for_fractions("fit-density");
    place.run("predict d.mondrian t.csv --out d.csv").succeeded();
    assert!(place.read("d.csv").starts_with("log_density\n"));
    place.write("far.csv", "x,y\n1e6,1e6\n");
    assert_eq!(place.run("predict d.mondrian far.csv").succeeded().stdout, "log_density\n-inf\n");
    place.run("update d.mondrian far.csv").refused(2, &["box"]);
    place.run("fit t.csv --model density --columns x --lifetime inf --out x").refused(2, &["finite for a density"]);
    place
        .run("fit t.csv --target target --model grid --trees 20 --out g.mondrian")
        .matches_but_for_fractions("fit-grid");
    place.run("predict g.mondrian t.csv --out g.csv").succeeded();
    assert_eq!(place.read("g.csv").lines().count(), 101);
}

#[test]
fn classes_from_table_to_predictions() {
    let place = Place::new();
    let text: String = table(120).lines().map(|line| line.rsplit_once(',').unwrap().0.to_owned() + "\n").collect();
    // The class follows from x alone, with an awkward name.
    let text: String = text
        .lines()
        .enumerate()
        .map(|(i, line)| match (i, line.split(',').next().unwrap().parse::<f64>()) {
            (0, _) => format!("{line},kind\n"),
            (_, Ok(x)) if x > 0.5 => format!("{line},\"big, very\"\n"),
            _ => format!("{line},small\n"),
        })
        .collect();
    place.write("t.csv", &text);
    place
        .run("fit t.csv --target kind --trees 10 --lifetime 3 --out c.mondrian")
        .matches_but_for_fractions("fit-classes");
    place.run("predict c.mondrian t.csv --out p.csv").succeeded();
    let predictions = place.read("p.csv");
    assert!(predictions.starts_with("prediction,\"p_big, very\",p_small\n"));
    let right = predictions
        .lines()
        .skip(1)
        .zip(text.lines().skip(1))
        .filter(|(p, t)| p.starts_with("small") == t.ends_with("small"))
        .count();
    assert!(right > 110, "{right} of 120");
    let told = place.run("path t.csv --target kind --trees 10 --json --out r.html");
    assert_eq!(told.succeeded().json()["loss"], "log_loss");
    assert!(place.read("r.html").contains("Truth and prediction"));
    place.write("new.csv", "x,y,noise,colour,kind\n0.1,0.2,0.3,red,unheard-of\n");
    place.run("update c.mondrian new.csv").refused(2, &["unheard-of", "not one the model was fitted with"]);
    place.run("fit t.csv --target kind --task regression --out x").refused(2, &["holds texts"]);
    place.write("digits.csv", "x,label\n1,0\n2,1\n3,0\n4,1\n5,0\n6,1\n");
    let asked = place.run("fit digits.csv --target label --task classification --trees 2 --out d --json --quiet");
    assert_eq!(asked.succeeded().json()["classes"], 2);
    assert!(place.run("fit digits.csv --target label --out d").stderr.contains("--task classification"));
}

/// A curve that ends before its error has turned says so; a forest's whole path cannot go on.
#[test]
fn a_path_says_when_it_ends_too_soon() {
    let place = Place::new();
    place.write("t.csv", table(150));
    let path = "path t.csv --target target --trees 10 --out r.html --lifetime";
    assert!(place.run(&format!("{path} 0.01")).succeeded().stderr.contains("has not turned"));
    for whole in ["auto", "inf"] {
        assert!(!place.run(&format!("{path} {whole}")).succeeded().stderr.contains("has not turned"), "{whole}");
    }
    place.run("path t.csv --target target --model kernel --lifetime 0.1 --out k.html").succeeded();
    assert!(place.read("k.html").contains(r#"["trees",50]"#), "the page tells the number of trees there are");
}

#[test]
fn kernels_from_table_to_predictions() {
    let place = Place::new();
    place.write("t.csv", table(80));
    let fit = "fit t.csv --target target --model kernel --trees 10 --lifetime 1 --alpha 0.1 --out k.mondrian";
    place.run(fit).matches_but_for_fractions("fit-kernel");
    place.run("predict k.mondrian t.csv --out p.csv").succeeded();
    assert!(place.read("p.csv").starts_with("prediction,std,lower,upper\n"));
    let told = place.run("path t.csv --target target --model kernel --trees 10 --alpha 0.1 --json --out r.html");
    assert_eq!(told.succeeded().json()["loss"], "rmse");
    assert!(told.json()["worst_residual"].as_f64().unwrap() < 1e-6);
    place.run("fit t.csv --target colour --model kernel --out x").refused(2, &["numbers, not classes"]);
}
