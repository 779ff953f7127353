//! Paths over the lifetime, and reports: what they say and what they leave out.

use crate::harness::Place;
use crate::models::table;

#[test]
fn paths_write_a_report_and_tell_the_curve() {
    let place = Place::new();
    place.write("t.csv", table(150));
    let ran = place.run("path t.csv --target target --model forest --trees 10 --json --out report.html");
    ran.succeeded();
    let told = ran.json();
    let list = |name: &str| told[name].as_array().cloned().unwrap_or_default();
    assert_eq!((list("lifetimes")[0].as_f64(), list("train").len()), (Some(0.0), list("lifetimes").len()));
    assert_eq!(list("validation").len(), list("lifetimes").len());
    let least = list("validation").iter().filter_map(serde_json::Value::as_f64).fold(f64::INFINITY, f64::min);
    assert_eq!(told["best_validation"].as_f64(), Some(least), "the best lifetime has the least error");
    assert_eq!(told["rows"]["train"].as_u64().unwrap() + told["rows"]["held_out"].as_u64().unwrap(), 150);
    let page = place.read("report.html");
    for part in [
        "Error against lifetime",
        "One tree of the model",
        "Calibration",
        "Residuals",
        "Which inputs matter",
        "Predictions against inputs",
        "gives the whole curve, exactly",
    ] {
        assert!(page.contains(part), "{part}");
    }
    place
        .run("path t.csv --target target --model forest --trees 10 --out again.html --quiet --json --threads 1")
        .succeeded();
    let told = place.run("path t.csv --model density --exclude colour --trees 10 --json --out density.html");
    assert_eq!(told.succeeded().json()["loss"], "neg_log_density");
    assert!(place.read("density.html").contains("One tree of the model"));
    place.run("path t.csv --target target --model kernel --trees 5 --out kernel.html --quiet").succeeded();
    assert!(place.read("kernel.html").contains("One tree of the model"));
    assert!(told.json()["leave_one_out"].as_array().is_some_and(|v| !v.is_empty()));
    place.run("path t.csv --out r.html").refused(2, &["--target is missing"]);
    place.run("path t.csv --target target --out nowhere/r.html --trees 2").refused(2, &["folder does not exist"]);
}

/// A curve that ends before its error has turned says so; a forest's whole path cannot go on.
#[test]
fn a_path_says_when_it_ends_too_soon() {
    let place = Place::new();
    place.write("t.csv", table(150));
    let path = "path t.csv --target target --model forest --trees 10 --out r.html --lifetime";
    assert!(place.run(&format!("{path} 0.01")).succeeded().stderr.contains("has no minimum before the end"));
    for whole in ["auto", "inf"] {
        assert!(
            !place.run(&format!("{path} {whole}")).succeeded().stderr.contains("has no minimum before the end"),
            "{whole}"
        );
    }
    place.run("path t.csv --target target --model kernel --lifetime 0.1 --out k.html").succeeded();
    assert!(place.read("k.html").contains(r#"["trees",50]"#), "the page tells the number of trees there are");
}

/// One default for both commands, and reports of it.
#[test]
fn path_and_fit_have_one_default_model_and_fit_writes_its_report() {
    let place = Place::new();
    place.write("t.csv", table(100));
    let fitted = place.run("fit t.csv --target target --out m --json --quiet --report fit.html").succeeded().json();
    let told = place.run("path t.csv --target target --out path.html --json --quiet").succeeded().json();
    assert_eq!((&fitted["model"], &told["model"]), (&"laplace".into(), &"laplace".into()));
    let list = |name: &str| told[name].as_array().cloned().unwrap_or_default();
    assert_eq!((list("factors").len(), list("validation").len()), (21, 21));
    assert_eq!(list("factors")[10], 1.0);
    // At factor 1 the curve is the fitted model itself: all training rows fit into it here.
    let (at_one, error) = (list("validation")[10].as_f64().unwrap(), told["rmse"].as_f64().unwrap());
    assert!((at_one - error).abs() < 1e-9 * error, "{at_one}, {error}");
    assert!(told["r2"].as_f64().unwrap() > 0.5 && told["mae"].as_f64().unwrap() < error * 1.001);
    for name in ["fit.html", "path.html"] {
        let page = place.read(name);
        for part in
            ["Error against lifetimes", "factor on all lifetimes", "Residuals", "Predictions against inputs", "R²"]
        {
            assert!(page.contains(part), "{part} in {name}");
        }
    }
    for model in ["forest", "kernel"] {
        let fit = format!(
            "fit t.csv --target target --model {model} --trees 5 --lifetime 1 --out m --quiet --report {model}.html"
        );
        place.run(&fit).succeeded();
        assert!(place.read(&format!("{model}.html")).contains("Residuals"));
    }
    for command in ["fit t.csv --out g --report", "path t.csv --json --out"] {
        for options in ["--search greedy --budget 40", "--lifetime 2"] {
            place
                .run(&format!("{command} g.html --target target --model grid --trees 5 {options} --quiet"))
                .succeeded();
            let page = place.read("g.html");
            for part in ["The search for lifetimes", "by a Mondrian grid", "Residuals", "Which inputs matter", "R²"] {
                assert!(page.contains(part), "{part} of {command} {options}");
            }
            assert_eq!(page.contains("there was no search"), options.contains("--lifetime"));
        }
    }
    place.run("fit t.csv --target target --out m --report t.csv").refused(2, &["is also an input"]);
}

/// A page that is passed on does not tell where files are kept.
#[test]
fn reports_hold_no_absolute_path() {
    let place = Place::new();
    let table = place.write("t.csv", table(60));
    let report = place.path("r.html");
    let arguments =
        ["path", table.to_str().unwrap(), "--target", "target", "--model", "forest", "--trees", "3", "--quiet"];
    let output = place.command(arguments).arg("--out").arg(&report).output().unwrap();
    assert!(output.status.success());
    let page = place.read("r.html");
    let folder = place.path("");
    assert!(page.contains("t.csv") && !page.contains(folder.to_str().unwrap().trim_end_matches('/')), "only names");
}

/// Three ways to a curve at every cut agree; a curve at some lifetimes lies on it; each says which it is.
#[test]
fn the_method_of_a_kernel_path_is_chosen_as_asked() {
    let place = Place::new();
    place.write("t.csv", table(80));
    let path = "path t.csv --target target --model kernel --trees 6 --lifetime 1 --out r.html --json --quiet";
    let curve = |method: &str| place.run(&format!("{path} --method {method}")).succeeded().json();
    let numbers = |told: &serde_json::Value, name: &str| -> Vec<f64> {
        told[name].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
    };
    let exact = curve("auto");
    assert_eq!(exact["exact"], true);
    let (lifetimes, losses) = (numbers(&exact, "lifetimes"), numbers(&exact, "validation"));
    for method in ["addition", "cholesky"] {
        let other = curve(method);
        assert_eq!(numbers(&other, "lifetimes"), lifetimes, "{method}");
        let worst = numbers(&other, "validation").iter().zip(&losses).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst < 1e-8, "{method}: {worst}");
    }
    let some = curve("cg");
    assert_eq!(some["exact"], false);
    assert!(place.read("r.html").contains("One fit, viewed at"));
    for (lifetime, loss) in numbers(&some, "lifetimes").iter().zip(numbers(&some, "validation")) {
        let at = lifetimes.partition_point(|l| l <= lifetime) - 1;
        assert!((loss - losses[at]).abs() < 1e-6, "{lifetime}: {loss} {}", losses[at]);
    }
    // What does not fit is computed by conjugate gradients unasked, and refused where a method is named.
    let large = "path t.csv --target target --model kernel --trees 60 --lifetime inf --out r.html --json --quiet";
    let small = format!("{large} --max-memory 20MB");
    assert_eq!(place.run(&small).succeeded().json()["exact"], false);
    place.run(&format!("{small} --method cholesky")).refused(2, &["bytes of the path's matrices"]);
    place
        .run("path t.csv --target target --model forest --method cg")
        .refused(2, &["--method is for --model kernel", "forest"]);
}
