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

/// Rows of the table from one number to another, with its names.
fn unseen(from: u32, to: u32) -> String {
    let text = table(to);
    let lines = text.lines().enumerate().filter(|(at, _)| *at == 0 || *at > from as usize);
    lines.flat_map(|(_, line)| [line, "\n"]).collect()
}

fn column(text: &str, which: usize) -> Vec<f64> {
    text.lines().skip(1).map(|line| line.split(',').nth(which).unwrap().parse().unwrap()).collect()
}

fn last_column(text: &str) -> Vec<f64> {
    text.lines().skip(1).map(|line| line.rsplit(',').next().unwrap().parse().unwrap()).collect()
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
    to_file.matches_but_for_fractions("predict-laplace");
    let piped = place.run_with("predict m.mondrian - --quiet", Some(table(80).as_bytes()));
    assert_eq!(piped.succeeded().stdout, place.read("p.csv"));
    // Rows that it has not seen: a smooth target is followed.
    place.write("new.csv", unseen(80, 200));
    place.run("predict m.mondrian new.csv --out new-p.csv").succeeded();
    let (told, truth) = (column(&place.read("new-p.csv"), 0), last_column(&unseen(80, 200)));
    let mean = truth.iter().sum::<f64>() / truth.len() as f64;
    let squares = |f: &dyn Fn(usize) -> f64| (0..truth.len()).map(|row| (truth[row] - f(row)).powi(2)).sum::<f64>();
    let r2 = 1.0 - squares(&|row| told[row]) / squares(&|_| mean);
    assert!(told.len() == 120 && r2 > 0.9, "R² of {r2} on {} new rows", told.len());
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

#[test]
fn lifetimes_per_input_are_taken_as_given() {
    let place = Place::new();
    place.write("t.csv", table(60));
    let fit = "fit t.csv --target target --exclude colour --out m --quiet --json --model";
    for (model, name) in [("laplace", "roughness"), ("grid --trees 5", "lifetime")] {
        let fitted = place.run(&format!("{fit} {model} --lifetimes 1.5,0.25,0")).succeeded().json();
        for (input, lifetime) in [("x", 1.5), ("y", 0.25), ("noise", 0.0)] {
            let found = fitted["relevance"].as_array().into_iter().flatten().find(|r| r["input"] == input);
            let found = found.and_then(|r| r[name].as_f64()).expect("a lifetime per input");
            assert!((found - lifetime).abs() < 1e-12, "{model}, {input}: {found}");
        }
    }
    place.run(&format!("{fit} grid --lifetimes 1,2")).refused(2, &["3 finite numbers", "x, y, noise"]);
    place.run(&format!("{fit} laplace --lifetimes=1,2,-3")).refused(2, &["≥ 0"]);
    place.run(&format!("{fit} forest --lifetimes 1,2,3")).refused(2, &["laplace or grid"]);
    place.run(&format!("{fit} grid --lifetimes 1,2,3 --lifetime 2")).refused(2, &["--lifetime"]);
}

#[test]
fn a_fit_says_where_time_and_memory_went() {
    let place = Place::new();
    place.write("t.csv", table(60));
    let ran = place.run("fit t.csv --target target --model forest --trees 5 --lifetime 3 --out m --timings --json");
    for part in ["time and memory", "looking", "reading", "growing", "saving"] {
        assert!(ran.succeeded().stderr.contains(part), "{part} in {}", ran.stderr);
    }
    for options in ["--trees 5", "--trees 5 --task classification --target colour", "--trees 5 --lifetime 3"] {
        let target = if options.contains("--target") { "" } else { "--target target" };
        let automatic = place.run(&format!("fit t.csv {target} --model forest {options} --out a --json --quiet"));
        assert_eq!(automatic.succeeded().json()["timings"]["table_reads"], 2, "{options}");
    }
    let timings = &ran.json()["timings"];
    assert!(timings["growing_seconds"].as_f64().is_some_and(|s| s <= timings["fitting_seconds"].as_f64().unwrap()));
    let quiet = place.run("fit t.csv --target target --model forest --trees 5 --lifetime 3 --out m");
    assert!(!quiet.succeeded().stderr.contains("time and memory"));
}

#[test]
fn missing_cells_are_refused_dropped_or_filled() {
    let place = Place::new();
    let gap = table(40).replacen("red", "", 1).replacen("\n0.3663366336633663,", "\n,", 1);
    place.write("gap.csv", &gap);
    place.write("t.csv", table(40));
    let forest = "--target target --model forest --trees 3 --lifetime 3";
    place.run(&format!("fit gap.csv {forest} --out m")).refused(2, &["row 1, column \"colour\"", "--missing drop"]);
    assert!(!place.path("m").exists());
    place.run(&format!("fit gap.csv {forest} --missing model --out m")).refused(2, &["Laplace kernel alone"]);
    place.run(&format!("fit gap.csv {forest} --missing drop --out dropped --quiet")).succeeded();
    place.run(&format!("fit gap.csv {forest} --missing mean --out filled --quiet")).succeeded();
    place.run("predict dropped gap.csv --out p.csv").succeeded();
    let lines: Vec<String> = place.read("p.csv").lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 41, "one line per row");
    assert_eq!(lines[1], ",,,");
    place.run("predict filled gap.csv --out p.csv").succeeded();
    assert!(place.read("p.csv").lines().all(|line| !line.starts_with(',')));
    place.run(&format!("fit t.csv {forest} --out m --quiet")).succeeded();
    place.run("predict m gap.csv").refused(2, &["row 1, column \"colour\""]);
    place.write("hole.csv", table(40) + "0.5,0.5,0.5,red,\n");
    place.run("fit hole.csv --target target --missing mean --out m").refused(2, &["target", "--missing drop"]);
}

/// The tuned kernel takes a table as it is: missing cells, categories of any number, dates.
#[test]
fn the_tuned_kernel_takes_a_table_as_it_is() {
    let place = Place::new();
    let mut text = "when,x,city,y\n".to_owned();
    for i in 0..150_u32 {
        let x = f64::from(i * 37 % 101) / 101.0;
        let cell = if i % 7 == 0 { String::new() } else { x.to_string() };
        let y = (5.0 * x).sin() + f64::from(i % 3) + if i % 7 == 0 { 3.0 } else { 0.0 };
        let _ = writeln!(text, "2024-{:02}-{:02},{cell},city {},{y}", 1 + i % 12, 1 + i % 28, i % 120);
    }
    place.write("t.csv", &text);
    let ran = place.run("fit t.csv --target y --out m --json");
    assert!(ran.succeeded().stderr.contains("days since 1970-01-01: when"), "{}", ran.stderr);
    let told = ran.json();
    assert_eq!(told["inputs"].to_string(), r#"["when","x","city"]"#, "120 categories are one input");
    assert!(told["leave_one_out_rmse"].as_f64().unwrap() < told["rmse_of_predicting_the_mean"].as_f64().unwrap());
    assert!(told["leave_one_out_r2"].as_f64().is_some() && told["leave_one_out_mae"].as_f64().is_some());
    assert!(told["relevance"][0]["roughness"].as_f64().is_some());
    place.run("predict m t.csv --out p.csv --quiet").succeeded();
    let lines = place.read("p.csv");
    assert!(lines.lines().skip(1).all(|line| line.split(',').all(|cell| cell.parse::<f64>().is_ok())), "{lines}");
    place.write("new.csv", "when,x,city\n2025-01-01,,city 7\n,0.5,nowhere\n");
    assert!(place.run("predict m new.csv").succeeded().stderr.contains("1 cells have a category"));
    place.run("predict m new.csv --missing refuse").refused(2, &["row 1, column \"x\""]);
    // What is missing in the target cannot be modelled.
    place.write("hole.csv", text + "2024-01-01,0.5,city 1,\n");
    place.run("fit hole.csv --target y --out h").refused(2, &["target \"y\" is missing in 1 rows"]);
    let told = place.run("path t.csv --target y --out r.html --json --quiet").succeeded().json();
    assert!(told["rmse"].as_f64().is_some_and(|e| e > 0.0));
}

/// Classes by the tuned kernel, from a table to a page.
#[test]
fn classes_by_the_tuned_kernel() {
    let place = Place::new();
    let mut text = "x,y,kind\n".to_owned();
    for i in 0..120_u32 {
        let (x, y) = (f64::from(i * 37 % 101) / 101.0, f64::from(i * 61 % 89) / 89.0);
        let kind = if x + y < 0.7 {
            "low"
        } else if x > y {
            "right"
        } else {
            "left"
        };
        let _ = writeln!(text, "{x},{y},{kind}");
    }
    place.write("t.csv", &text);
    let told = place.run("fit t.csv --target kind --out m --json --quiet --report r.html").succeeded().json();
    assert_eq!((&told["model"], &told["classes"]), (&"laplace".into(), &3.into()));
    assert!(told["leave_one_out_accuracy"].as_f64().unwrap() > 0.8);
    assert!(told["leave_one_out_log_loss"].as_f64().unwrap() < told["log_loss_of_predicting_shares"].as_f64().unwrap());
    let page = place.read("r.html");
    for part in ["Error against lifetimes", "Truth and prediction", "Calibration", "Which inputs matter"] {
        assert!(page.contains(part), "{part}");
    }
    place.run("predict m t.csv --out p.csv --quiet").succeeded();
    assert!(place.read("p.csv").starts_with("prediction,p_left,p_low,p_right\n"));
    let found = place.run("evaluate m t.csv --json").succeeded().json();
    assert!(found["accuracy"].as_f64().unwrap() > 0.9 && found["log_loss"].as_f64().unwrap() < 0.5);
    place.run("update m t.csv").refused(2, &["laplace model cannot learn more rows"]);
    place.run("fit t.csv --target kind --model laplace --lifetime 2 --out x").refused(2, &["not classes"]);
    place.run("fit t.csv --target kind --alpha 0.5 --out a --json --quiet").succeeded();
    let models = ["1", "2"].map(|threads| {
        place.run(&format!("fit t.csv --target kind --out n{threads} --threads {threads} --quiet")).succeeded();
        std::fs::read(place.path(&format!("n{threads}"))).unwrap()
    });
    assert_eq!(models[0], models[1], "equal models are equal files, whatever the threads");
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
    assert_eq!(inputs("--columns colour"), r#"["colour"]"#);
    assert_eq!(inputs("--columns colour --search gradient"), r#"["colour=blue","colour=red","colour=yellow"]"#);
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
    place.run("fit all.csv --target colour --model laplace --search gradient --out x").refused(2, &["not classes"]);
}

#[test]
fn forests_choose_their_lifetime_and_know_their_uncertainty() {
    let place = Place::new();
    place.write("t.csv", table(600));
    place.write("new.csv", unseen(600, 1200));
    place.run("fit t.csv --target target --model forest --trees 10 --out m --quiet").succeeded();
    place.run("predict m new.csv --out new-p.csv --coverage 0.9").succeeded();
    let told = place.read("new-p.csv");
    let (lower, upper, truth) = (column(&told, 2), column(&told, 3), last_column(&unseen(600, 1200)));
    let held = (0..truth.len()).filter(|row| lower[*row] <= truth[*row] && truth[*row] <= upper[*row]).count();
    // 600 rows left out and 600 new ones: three standard deviations of the share are 5 points.
    assert!((510..=570).contains(&held), "90 % intervals hold {held} of 600 new targets");
    place.run("predict m t.csv --out p.csv --coverage 0.9").succeeded();
    place.run("predict m t.csv --mean-only --out mean.csv").succeeded();
    let first = |name: &str| -> Vec<String> {
        place.read(name).lines().map(|l| l.split(',').next().unwrap().to_owned()).collect()
    };
    assert_eq!(first("mean.csv"), first("p.csv"));
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
    // The box came from the table, so it widens.
    place.run("update d.mondrian far.csv").succeeded();
    let found = place.run("predict d.mondrian far.csv").succeeded().stdout.clone();
    assert!(found.lines().nth(1).unwrap().parse::<f64>().unwrap().is_finite(), "{found}");
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
    let page = place.read("r.html");
    assert!(page.contains("Truth and prediction") && page.contains("\"type\":\"confusion\""));
    // Classes' curves are computed at some lifetimes, and the page says so; both its curves mark one lifetime.
    assert!(!page.contains("whole curve, exactly") && page.contains("viewed at"));
    assert_eq!(told.json()["exact"], false);
    let data = page.split_once("id=\"report-data\">").unwrap().1.split_once("</script>").unwrap().0;
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    let blocks = data["sections"].as_array().unwrap().iter().flat_map(|s| s["blocks"].as_array().unwrap());
    let chosen: Vec<f64> = blocks
        .flat_map(|block| block["marks"].as_array().cloned().unwrap_or_default())
        .filter(|mark| mark["label"] == "chosen λ =")
        .map(|mark| mark["x"].as_f64().unwrap())
        .collect();
    assert!(chosen.len() == 2 && chosen[0] == chosen[1], "{chosen:?}");
    place.write("new.csv", "x,y,noise,colour,kind\n0.1,0.2,0.3,red,unheard-of\n");
    place.run("update c.mondrian new.csv").refused(2, &["unheard-of", "not one the model was fitted with"]);
    place.run("fit t.csv --target kind --task regression --out x").refused(2, &["contains text"]);
    place.write("digits.csv", "x,label\n1,0\n2,1\n3,0\n4,1\n5,0\n6,1\n");
    let asked = place.run("fit digits.csv --target label --task classification --trees 2 --out d --json --quiet");
    assert_eq!(asked.succeeded().json()["classes"], 2);
    assert!(place.run("fit digits.csv --target label --out d").stderr.contains("--task classification"));
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

#[test]
fn update_counts_unseen_categories_as_predict_does() {
    let place = Place::new();
    place.write("t.csv", table(40));
    place.run("fit t.csv --target target --model forest --trees 3 --lifetime 2 --out m --quiet").succeeded();
    place.write("new.csv", "x,y,noise,colour,target\n0.1,0.2,0.3,green,1\n0.1,0.2,0.3,red,1\n0.4,0.2,0.3,pink,1\n");
    let ran = place.run("update m new.csv --json");
    assert!(
        ran.succeeded().stderr.contains("2 cells have a category the model has never seen, in colour"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.json()["unseen_categories"], 2);
    for command in ["predict m new.csv", "evaluate m new.csv"] {
        assert!(
            place
                .run(command)
                .succeeded()
                .stderr
                .contains("2 cells have a category the model has never seen, in colour")
        );
    }
}

#[test]
fn a_target_of_one_value_or_of_none_is_named() {
    let place = Place::new();
    let rows: Vec<String> = (0..30).map(|i| format!("{},7,,{}", f64::from(i) / 3.0, i % 2)).collect();
    place.write("t.csv", format!("x,same,none,few\n{}\n", rows.join("\n")));
    let ran = place.run("fit t.csv --target same --model forest --missing mean --exclude none --out m");
    assert!(ran.succeeded().stderr.contains("the target same has only one value, 7"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("classification"), "{}", ran.stderr);
    let ran = place.run("fit t.csv --target few --model forest --missing mean --exclude none --out m");
    assert!(ran.succeeded().stderr.contains("the target few has only 2 whole numbers"), "{}", ran.stderr);
    for model in ["forest --missing mean", "laplace"] {
        let command = format!("fit t.csv --target none --model {model} --out m");
        place.run(&command).refused(2, &["the target \"none\" has no value", "choose another column"]);
    }
}

#[test]
fn new_classes_are_refused_or_learned_and_forgotten_rows_leave_nothing() {
    let place = Place::new();
    place.write("t.csv", table(60));
    place.run("fit t.csv --target colour --trees 3 --lifetime 3 --out m --quiet").succeeded();
    let before = std::fs::read(place.path("m")).unwrap();
    place.write("new.csv", "x,y,noise,target,colour\n0.1,0.2,0.3,1,green\n0.2,0.2,0.3,1,green\n");
    place.run("update m new.csv").refused(2, &["row 1: the class \"green\"", "--new-classes"]);
    assert_eq!(std::fs::read(place.path("m")).unwrap(), before);
    let ran = place.run("update m new.csv --new-classes");
    assert!(ran.succeeded().stderr.contains("1 new classes"), "{}", ran.stderr);
    let predicted = place.run("predict m new.csv --quiet").succeeded().stdout.clone();
    assert!(predicted.starts_with("prediction,p_blue,p_red,p_yellow,p_green\ngreen,"), "{predicted}");
    place.run("forget m new.csv --quiet").succeeded();
    place.run("forget m new.csv").refused(2, &["learned"]);
    let forest = "fit t.csv --target target --model forest --trees 3 --lifetime 3 --out";
    place.run(&format!("{forest} f --quiet")).succeeded();
    let whole = std::fs::read(place.path("f")).unwrap();
    place.write("more.csv", "x,y,noise,target,colour\n0.1,0.2,0.3,1,red\n0.2,0.2,0.3,1,blue\n");
    place.run("update f more.csv --quiet").succeeded();
    assert_ne!(std::fs::read(place.path("f")).unwrap(), whole);
    place.run("forget f more.csv --quiet").succeeded();
    place.run("predict f t.csv --out after.csv --quiet").succeeded();
    place.write("f", &whole);
    place.run("predict f t.csv --out before.csv --quiet").succeeded();
    assert_eq!(place.read("after.csv"), place.read("before.csv"), "as if they had never been learned");
}

/// More rows than the budget holds: one line, status 2 and no file.
#[test]
fn rows_that_do_not_fit_the_memory_are_refused() {
    let place = Place::new();
    place.write("t.csv", table(3000));
    place
        .run("fit t.csv --target target --out m --max-memory 500kB --quiet")
        .refused(2, &["bytes of the rows in the kernel's coordinates", "--max-memory"]);
    place
        .run("fit t.csv --target target --model forest --lifetime inf --out m --max-memory 500kB --quiet")
        .refused(2, &["bytes of the trees", "--max-rows"]);
    assert!(!place.path("m").exists());
}

#[test]
fn searches_and_priors_are_chosen_as_asked() {
    let place = Place::new();
    place.write("t.csv", table(60));
    let fit = "fit t.csv --target target --out m --json --quiet";
    for search in ["greedy", "greedy-both", "lookahead", "coordinate", "spsa", "bayes", "gradient"] {
        let told = place.run(&format!("{fit} --model grid --trees 5 --search {search} --budget 20")).succeeded().json();
        assert!(told["held_out_rmse"].as_f64().is_some_and(|e| e > 0.0), "{search}");
    }
    let few = place.run(&format!("{fit} --model grid --trees 5 --search greedy --budget 5")).succeeded().json();
    let many = place.run(&format!("{fit} --model grid --trees 5 --search greedy --budget 60")).succeeded().json();
    assert!(few["evaluations"].as_u64() < many["evaluations"].as_u64(), "the budget is obeyed");
    let kernel = place.run(&format!("{fit} --model kernel --trees 5 --lifetime 1 --alpha 0.25")).succeeded().json();
    assert_eq!(kernel["alpha"], 0.25);
    place.run(&format!("{fit} --model kernel --trees 5 --alpha auto")).succeeded();
    place.run(&format!("{fit} --alpha auto")).succeeded();
    assert_eq!(place.run(&format!("{fit} --alpha 0.25")).succeeded().json()["alpha"], 0.25);
    // The report's kernel: lifetimes alone, along derivatives or one at a time, or given.
    for options in ["--search gradient", "--search coordinate", "--lifetime 2"] {
        let told = place.run(&format!("{fit} --model laplace {options}")).succeeded().json();
        assert!(told["relevance"][0]["lifetime"].as_f64().is_some(), "{options}: {told}");
    }
    place.run(&format!("{fit} --model laplace --search spsa")).refused(2, &["does not support this --search"]);
    place.run(&format!("{fit} --alpha some")).refused(2, &["give a number or auto"]);
    let classes = "fit t.csv --target colour --trees 3 --lifetime 2 --out c --json --quiet --gamma";
    assert_eq!(place.run(&format!("{classes} 1.5")).succeeded().json()["gamma"], 1.5);
    place.run(&format!("{classes} auto")).succeeded();
    place.run(&format!("{classes} -1")).refused(2, &["gamma"]);
    let density = "fit t.csv --columns x,y --model density --trees 3 --lifetime 2 --out d --json --quiet --gamma 2";
    assert_eq!(place.run(density).succeeded().json()["gamma"], 2.0);
}
