//! Stand-ins for the real tables, for machines that do not have them: the same columns, made-up rows.

use std::fs::File;
use std::io::{Result, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use mondrian::process::NodeKey;

/// Writes a table of this name into a folder.
pub(crate) fn write(name: &str, folder: &Path) -> Result<()> {
    let rows = match name {
        "iris" => flowers(),
        "ccpp" => curved(3000, 4, 1.0),
        "cpu_act" => steep(1000, 21),
        "house_16h" => steep(1000, 16),
        "gebco_altitude" | "road3d_head" => curved(3000, 2, 0.3),
        _ => panic!("no stand-in for {name}"),
    };
    let mut file = GzEncoder::new(File::create(folder.join(format!("{name}.csv.gz")))?, Compression::fast());
    let heads: Vec<String> = (0..rows[0].len()).map(|k| format!("x{k}")).collect();
    writeln!(file, "{}", heads.join(","))?;
    for row in rows {
        let cells: Vec<String> = row.iter().map(f64::to_string).collect();
        writeln!(file, "{}", cells.join(","))?;
    }
    file.finish()?;
    Ok(())
}

fn normal(row: usize, column: usize) -> f64 {
    NodeKey::root(11, row as u64).fork(column as u64).draw(0).normal()
}

/// Fifty flowers whose measures go together, in centimetres.
fn flowers() -> Vec<Vec<f64>> {
    let flower = |row: usize| {
        let size = normal(row, 9);
        let measure = |column: usize, middle: f64, width: f64| {
            let value = middle + width * (0.8 * size + 0.6 * normal(row, column));
            (value * 100.0).round() / 100.0
        };
        vec![measure(0, 5.0, 0.35), measure(1, 3.4, 0.38), measure(2, 1.5, 0.17), measure(3, 0.25, 0.1), 0.0]
    };
    (0..50).map(flower).collect()
}

/// Inputs that go together; a target that is a curve in two of them with a step.
fn curved(n_rows: usize, n_inputs: usize, noise: f64) -> Vec<Vec<f64>> {
    let row = |row: usize| {
        let shared = normal(row, 100);
        let mut values: Vec<f64> = (0..n_inputs).map(|k| 0.4 * shared + 0.9 * normal(row, k)).collect();
        let (a, b) = (values[0], values[1]);
        let step = if a > -1.0 { 8.0 } else { -25.0 };
        values.push(50.0 + step + 6.0 * (1.5 * a).sin() + 5.0 * (a - b).tanh() + noise * normal(row, 101));
        values
    };
    (0..n_rows).map(row).collect()
}

/// Many inputs that go together, and a target that rises steeply along what they share.
fn steep(n_rows: usize, n_inputs: usize) -> Vec<Vec<f64>> {
    let row = |row: usize| {
        let shared = normal(row, 100);
        let mut values: Vec<f64> = (0..n_inputs).map(|k| shared + 0.5 * normal(row, k)).collect();
        values.push(50.0 + 20.0 * (3.0 * shared).tanh() + 0.5 * normal(row, 101));
        values
    };
    (0..n_rows).map(row).collect()
}
