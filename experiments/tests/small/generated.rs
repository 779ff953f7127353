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

/// Fifty flowers whose measures go together, in millimetres.
fn flowers() -> Vec<Vec<f64>> {
    let flower = |row: usize| {
        let size = normal(row, 9);
        let measure = |column: usize, middle: f64, width: f64| {
            let value = middle + width * (0.8 * size + 0.6 * normal(row, column));
            (value * 10.0).round() / 10.0
        };
        vec![measure(0, 5.0, 0.35), measure(1, 3.4, 0.38), measure(2, 1.5, 0.17), measure(3, 0.25, 0.1), 0.0]
    };
    (0..50).map(flower).collect()
}
