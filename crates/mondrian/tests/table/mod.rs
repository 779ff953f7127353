//! Real tables for tests: read where the data folder is there, split by a keyed hash, standardised by the training rows.

use std::path::PathBuf;

use mondrian::Points;
use mondrian::process::NodeKey;

/// A table split in two; the response is the last column.
pub(crate) struct Split {
    pub(crate) n_columns: usize,
    pub(crate) train_x: Vec<f64>,
    pub(crate) train_y: Vec<f64>,
    pub(crate) test_x: Vec<f64>,
    pub(crate) test_y: Vec<f64>,
}

impl Split {
    /// The rows of `NAME.csv.gz`; says so and gives none without the data folder.
    pub(crate) fn read(name: &str) -> Option<Vec<Vec<f64>>> {
        let folder = std::env::var_os("MONDRIAN_DATA")
            .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")), PathBuf::from);
        let Ok(file) = std::fs::File::open(folder.join(format!("{name}.csv.gz"))) else {
            println!("skipped: {name} is not in the folder of real data (MONDRIAN_DATA)");
            return None;
        };
        let text = std::io::read_to_string(flate2::read::GzDecoder::new(file)).expect("a sound gzip file");
        let row = |line: &str| line.split(',').map(|field| field.parse().expect("a number")).collect();
        Some(text.lines().skip(1).map(row).collect())
    }

    /// Takes a fifth of the rows for testing. Their last column is the response.
    pub(crate) fn of(rows: &[Vec<f64>], seed: u64) -> Self {
        let n_columns = rows[0].len() - 1;
        let mut split =
            Self { n_columns, train_x: Vec::new(), train_y: Vec::new(), test_x: Vec::new(), test_y: Vec::new() };
        for (at, row) in rows.iter().enumerate() {
            let is_test = NodeKey::root(seed, at as u64).draw(0).uniform() < 0.2;
            let (x, y) =
                if is_test { (&mut split.test_x, &mut split.test_y) } else { (&mut split.train_x, &mut split.train_y) };
            x.extend_from_slice(&row[..n_columns]);
            y.push(row[n_columns]);
        }
        split.standardise();
        split
    }

    fn standardise(&mut self) {
        let n = self.train_y.len() as f64;
        for column in 0..self.n_columns {
            let values = || self.train_x.iter().skip(column).step_by(self.n_columns);
            let mean = values().sum::<f64>() / n;
            let deviation = (values().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
            let scale = if deviation > 0.0 { 1.0 / deviation } else { 1.0 };
            for x in [&mut self.train_x, &mut self.test_x] {
                x.iter_mut().skip(column).step_by(self.n_columns).for_each(|x| *x = (*x - mean) * scale);
            }
        }
    }

    pub(crate) fn train(&self) -> Points<'_> {
        Points::row_major(&self.train_x, self.n_columns).unwrap()
    }

    pub(crate) fn test(&self) -> Points<'_> {
        Points::row_major(&self.test_x, self.n_columns).unwrap()
    }
}
