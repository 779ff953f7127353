//! Values that never change: samples kept under `testdata/process`, for every front end to compare with.
//!
//! New values are a breaking change (CHANGELOG, "Values changed"). Then, and only then,
//! `cargo test -p mondrian --test process -- --ignored rewrite_the_kept_samples` writes them anew; read the difference.

use std::path::PathBuf;

use mondrian::process::{BuiltInMeasure, InfiniteMondrian, Partition, poisson};
use mondrian::{Lifetime, Result};
use serde_json::{Value, json};

fn file() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "testdata", "process", "samples.json"].iter().collect()
}

/// The cuts of a partition by time, numbers in full precision.
fn cuts(partition: &Partition) -> Value {
    let table = partition.cuts();
    json!({ "time": table.times(), "dim": table.dims(), "location": table.locations() })
}

fn samples() -> Result<Value> {
    let square = Partition::sample(&[0.0, 0.0], &[1.0, 1.0], Lifetime::new(3.0)?, 0)?;
    let window = square.restrict(&[0.25, 0.25], &[0.75, 1.0])?;
    let followed = square.at(Lifetime::new(1.5)?)?.extend(&[-1.0, 0.0], &[1.0, 2.0], None)?;
    let seeded = square.at(Lifetime::new(1.5)?)?.extend(&[-1.0, 0.0], &[1.0, 2.0], Some(7))?;
    let many = Partition::sample(&[0.0; 40], &[0.1; 40], Lifetime::new(1.0)?, 123_456_789)?;
    let plane = InfiniteMondrian::new(2, Lifetime::new(1.0)?, 5)?.restrict(&[10.0, -20.0], &[12.0, -17.0])?;
    let line = poisson(0.0, 5.0, Lifetime::new(2.0)?, 3, BuiltInMeasure::Uniform)?;
    Ok(json!({
        "sample([0,0], [1,1], 3, seed=0)": cuts(&square),
        "the same, restrict([0.25,0.25], [0.75,1])": cuts(&window),
        "the same, at(1.5).extend([-1,0], [1,2])": cuts(&followed),
        "the same, at(1.5).extend([-1,0], [1,2], seed=7)": cuts(&seeded),
        "sample([0]*40, [0.1]*40, 1, seed=123456789)": cuts(&many),
        "InfiniteMondrian(2, 1, seed=5).restrict([10,-20], [12,-17])": cuts(&plane),
        "poisson(0, 5, 2, seed=3)": {
            "location": line.iter().map(|point| point.location).collect::<Vec<_>>(),
            "time": line.iter().map(|point| point.time).collect::<Vec<_>>(),
        },
    }))
}

#[test]
fn samples_are_the_ones_that_were_kept() {
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(file()).unwrap()).unwrap();
    let found = samples().unwrap();
    for (name, sample) in kept.as_object().unwrap() {
        assert!(!sample["time"].as_array().unwrap().is_empty(), "{name}: nothing to compare");
        assert_eq!(&found[name], sample, "{name}");
    }
    assert_eq!(found.as_object().unwrap().len(), kept.as_object().unwrap().len());
}

#[test]
#[ignore = "rewrites the kept samples"]
fn rewrite_the_kept_samples() {
    let text = serde_json::to_string_pretty(&samples().unwrap()).unwrap();
    std::fs::write(file(), text + "\n").unwrap();
}
