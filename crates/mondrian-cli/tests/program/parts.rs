//! Forests trained in parts: `summarize --make-domain`, `summarize --domain`, `merge --finish`.

use std::fmt::Write as _;

use crate::harness::Place;

/// A table of `n` rows from a number on: a number, a category, a target of numbers and one of classes.
fn table(from: usize, n: usize) -> String {
    let mut text = "size,colour,price,kind\n".to_owned();
    for i in from..from + n {
        let (size, colour) = ((i * 37 % 101) as f64 / 10.0, ["red", "green", "blue"][i % 3]);
        let price = size * size + 10.0 * (i % 3) as f64 + (i * 7 % 5) as f64;
        let kind = if size > 5.0 { "large" } else { "small" };
        let _ = writeln!(text, "{size},{colour},{price},{kind}");
    }
    text
}

fn place() -> Place {
    let place = Place::new();
    place.write("all.csv", table(0, 300));
    for (part, rows) in [(0, 120), (120, 150), (270, 30)].into_iter().enumerate() {
        place.write(&format!("part{part}.csv"), table(rows.0, rows.1));
    }
    place
}

#[test]
fn parts_are_merged_to_the_forest_of_one_fit() {
    let place = place();
    for target in ["--target price --exclude kind", "--target kind --exclude price", ""] {
        let density = target.is_empty();
        let columns = if density { "--columns size" } else { target };
        let options = format!("{columns} --lifetime 2 --trees 12 --seed 3");
        let made = place.run(&format!("summarize all.csv {options} --make-domain --out the.domain --json"));
        assert_eq!(made.succeeded().json()["rows"], 300);
        for part in [2, 0, 1] {
            let summarize = format!("summarize part{part}.csv --domain the.domain --out part{part}.summary");
            place.run(&summarize).succeeded();
        }
        place.run("merge part1.summary part2.summary --out some.summary").succeeded();
        let merged = place.run("merge part0.summary some.summary --finish --out parts.mondrian --json");
        assert_eq!(merged.succeeded().json()["rows"], 300);
        let kind = if density { "density" } else { "forest" };
        place.run(&format!("fit all.csv {options} --model {kind} --out whole.mondrian")).succeeded();
        for model in ["parts", "whole"] {
            place.run(&format!("predict {model}.mondrian all.csv --out {model}.csv")).succeeded();
        }
        // A finished forest of numbers has no rows to calibrate deviations on: its means are those of the fit.
        let compared = |name: &str| -> Vec<String> {
            let is_numbers = target.contains("price --exclude");
            let cell =
                |line: &str| if is_numbers { line.split(',').next().unwrap().to_owned() } else { line.to_owned() };
            place.read(name).lines().map(cell).collect()
        };
        assert_eq!(compared("parts.csv"), compared("whole.csv"), "{target}");
        place.run("inspect parts.mondrian").succeeded();
        place.run("update parts.mondrian part0.csv").refused(2, &["needs the training rows"]);
    }
}

#[test]
fn wrong_parts_are_refused() {
    let place = place();
    place.run("summarize all.csv --target price --out x").refused(2, &["--make-domain"]);
    place.run("summarize all.csv --target price --lifetime inf --make-domain --out x").refused(2, &["finite"]);
    place.write("no.domain", "{}");
    place.run("summarize all.csv --domain no.domain --out x").refused(2, &["no.domain", "--make-domain"]);
    place.run("summarize all.csv --domain absent --out x").refused(2, &["absent"]);
    let options = "--target price --lifetime 2 --trees 3 --make-domain";
    place.run(&format!("summarize part0.csv {options} --out a.domain")).succeeded();
    place.run(&format!("summarize all.csv {options} --out b.domain")).succeeded();
    place.write("far.csv", "size,colour,price,kind\n1e6,red,1,small\n");
    place.run("summarize far.csv --domain a.domain --out x").refused(2, &["outside the box"]);
    place.run("summarize part0.csv --domain a.domain --out a.summary").succeeded();
    place.run("summarize part0.csv --domain b.domain --out b.summary").succeeded();
    place.run("merge a.summary b.summary --out x").refused(2, &["b.summary", "domains differ"]);
    place.run("merge a.summary part0.csv --out x").refused(2, &["part0.csv"]);
    assert!(!place.files().contains(&"x".to_owned()));
}
