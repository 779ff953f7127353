//! Model files of every released version: `predict` must say what it said then.
//!
//! `testdata/models/VERSION/program/NAME.mondrian` holds the file, `NAME.csv` its predictions for `queries.csv`.
//! `MONDRIAN_KEEP_MODELS=1 cargo test -p mondrian-cli --test program kept` writes those of the current version that are not
//! there yet (CONTRIBUTING.md, "Releasing"); files that are there are never written again.

use std::path::{Path, PathBuf};

use crate::harness::Place;
use crate::models::table;

/// A file of each kind, and what fits it.
const RECIPES: [(&str, &str); 8] = [
    ("tuned", "--target target"),
    ("tuned-classes", "--target colour --exclude target"),
    ("laplace", "--target target --search gradient"),
    ("forest", "--target target --model forest --trees 4 --lifetime inf"),
    ("classes", "--target colour --trees 4 --lifetime 3 --scale quantile"),
    ("kernel", "--target target --model kernel --trees 6 --lifetime 1"),
    ("grid", "--target target --model grid --trees 6 --scale none"),
    ("density", "--columns x,y --model density --trees 4 --lifetime 2"),
];

const QUERIES: &str = "x,y,noise,colour,target\n0.1,0.9,0.5,red,0.2\n0.55,0.2,0.1,blue,0.1\n0.8,0.4,0.9,yellow,-1\n\
                       1.4,-0.3,0.5,green,0\n0.3,0.3,0.3,red,1\n";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models")
}

fn keep_those_of_this_version(place: &Place) {
    let here = folder().join(env!("CARGO_PKG_VERSION")).join("program");
    std::fs::create_dir_all(&here).expect("a folder");
    place.write("t.csv", table(24));
    for (name, options) in RECIPES {
        let path = here.join(format!("{name}.mondrian"));
        if !path.exists() {
            place.run(&format!("fit t.csv {options} --out {name} --quiet")).succeeded();
            place.run(&format!("predict {name} queries.csv --out {name}.csv --quiet")).succeeded();
            std::fs::copy(place.path(name), &path).expect("a kept model");
            std::fs::copy(place.path(&format!("{name}.csv")), path.with_extension("csv")).expect("kept predictions");
        }
    }
}

#[test]
fn every_kept_file_predicts_what_it_predicted() {
    let place = Place::new();
    place.write("queries.csv", QUERIES);
    if std::env::var_os("MONDRIAN_KEEP_MODELS").is_some() {
        keep_those_of_this_version(&place);
    }
    let mut n_files = 0;
    for version in std::fs::read_dir(folder()).expect("kept models") {
        let version = version.expect("an entry").path().join("program");
        for file in std::fs::read_dir(&version).expect("a folder of a version") {
            let file = file.expect("an entry").path();
            if file.extension().is_none_or(|e| e != "mondrian") {
                continue;
            }
            n_files += 1;
            std::fs::copy(&file, place.path("m")).expect("a copy");
            let found = place.run("predict m queries.csv --quiet").succeeded().stdout.clone();
            let kept = std::fs::read_to_string(file.with_extension("csv")).expect("kept predictions");
            assert!(agree(&found, &kept), "{}:\n{found}was\n{kept}", file.display());
            place.run("inspect m").succeeded();
        }
    }
    assert!(n_files >= RECIPES.len(), "a file of each kind, not {n_files}");
}

/// The same texts, and numbers that differ only by rounding: dense algebra depends on the machine's vector units.
fn agree(found: &str, kept: &str) -> bool {
    let cells = |text: &str| -> Vec<String> { text.split([',', '\n']).map(str::to_owned).collect() };
    let (found, kept) = (cells(found), cells(kept));
    let near = |a: &str, b: &str| match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => a == b || (a - b).abs() <= 1e-9 * (1.0 + b.abs()),
        _ => a == b,
    };
    found.len() == kept.len() && found.iter().zip(&kept).all(|(a, b)| near(a, b))
}
