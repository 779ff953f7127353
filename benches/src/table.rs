//! Real tables: read, split as NumPy splits, standardised by the training rows.

use std::fs::File;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use mondrian::Points;

/// The folder of real data: `MONDRIAN_DATA`, else `../shared/data` beside the repository; `None` if absent.
pub fn data_folder() -> Option<PathBuf> {
    let folder = std::env::var_os("MONDRIAN_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data"), PathBuf::from);
    folder.is_dir().then_some(folder)
}

/// Root mean squared difference.
pub fn rmse(found: &[f64], expected: &[f64]) -> f64 {
    let sum: f64 = found.iter().zip(expected).map(|(a, b)| (a - b) * (a - b)).sum();
    (sum / found.len() as f64).sqrt()
}

/// A table of numbers, the response in the last column of the file.
pub struct Table {
    /// Inputs, row-major.
    pub x: Vec<f64>,
    /// Responses.
    pub y: Vec<f64>,
    /// Number of inputs.
    pub n_columns: usize,
}

impl Table {
    /// Reads `NAME.csv.gz` of the [data folder](data_folder).
    ///
    /// # Errors
    /// If the file is missing or holds something else than numbers.
    pub fn read(name: &str) -> std::io::Result<Self> {
        let folder = data_folder().ok_or_else(|| Error::new(ErrorKind::NotFound, "no data folder"))?;
        Self::read_in(&folder, name)
    }

    /// Reads `NAME.csv.gz` of this folder.
    ///
    /// # Errors
    /// If the file is missing or holds something else than numbers.
    pub fn read_in(folder: &Path, name: &str) -> std::io::Result<Self> {
        let file = File::open(folder.join(format!("{name}.csv.gz")))?;
        let mut reader = csv::Reader::from_reader(GzDecoder::new(file));
        let n_columns = reader.headers()?.len() - 1;
        let (mut x, mut y) = (Vec::new(), Vec::new());
        for record in reader.records() {
            for (column, field) in record?.iter().enumerate() {
                let value = field.parse::<f64>().map_err(|e| Error::new(ErrorKind::InvalidData, e))?;
                if column < n_columns { x.push(value) } else { y.push(value) }
            }
        }
        Ok(Self { x, y, n_columns })
    }

    /// The split of the accuracy tables: `default_rng(seed).permutation(n)`, the first 80 % for training, inputs
    /// scaled to mean 0 and standard deviation 1 over the training rows.
    pub fn split(&self, seed: u32) -> Standardised {
        let order = crate::numpy::permutation(seed, self.y.len());
        self.split_in_order(&order, self.y.len() * 4 / 5)
    }

    /// The split that the order of the file carries: the first `n_train` rows for training, the rest for testing.
    pub fn split_at(&self, n_train: usize) -> Standardised {
        let order: Vec<usize> = (0..self.y.len()).collect();
        self.split_in_order(&order, n_train)
    }

    fn split_in_order(&self, order: &[usize], n_train: usize) -> Standardised {
        let rows = |rows: &[usize]| {
            let x = rows.iter().flat_map(|&r| &self.x[r * self.n_columns..(r + 1) * self.n_columns]).copied().collect();
            (x, rows.iter().map(|&r| self.y[r]).collect())
        };
        let (train_x, train_y) = rows(&order[..n_train]);
        let (test_x, test_y) = rows(&order[n_train..]);
        let mut split = Standardised { train_x, train_y, test_x, test_y, n_columns: self.n_columns };
        for column in 0..self.n_columns {
            split.standardise(column);
        }
        split
    }
}

/// Training and test rows with inputs in standard units.
pub struct Standardised {
    /// Training inputs, row-major.
    pub train_x: Vec<f64>,
    /// Training responses.
    pub train_y: Vec<f64>,
    /// Test inputs, row-major.
    pub test_x: Vec<f64>,
    /// Test responses.
    pub test_y: Vec<f64>,
    /// Number of inputs.
    pub n_columns: usize,
}

impl Standardised {
    /// The first rows of each part, at most as many as requested.
    #[must_use]
    pub fn first(mut self, n_train: usize, n_test: usize) -> Self {
        let (n_train, n_test) = (n_train.min(self.train_y.len()), n_test.min(self.test_y.len()));
        self.train_x.truncate(n_train * self.n_columns);
        self.train_y.truncate(n_train);
        self.test_x.truncate(n_test * self.n_columns);
        self.test_y.truncate(n_test);
        self
    }

    /// The training inputs.
    ///
    /// # Errors
    /// For numbers that are not finite.
    pub fn train(&self) -> mondrian::Result<Points<'_>> {
        Points::row_major(&self.train_x, self.n_columns)
    }

    /// The test inputs.
    ///
    /// # Errors
    /// For numbers that are not finite.
    pub fn test(&self) -> mondrian::Result<Points<'_>> {
        Points::row_major(&self.test_x, self.n_columns)
    }

    fn standardise(&mut self, column: usize) {
        let n = self.train_y.len() as f64;
        let values = || self.train_x.iter().skip(column).step_by(self.n_columns);
        let mean = values().sum::<f64>() / n;
        let variance = values().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
        let scale = if variance > 0.0 { variance.sqrt() } else { 1.0 };
        for x in [&mut self.train_x, &mut self.test_x] {
            for value in x.iter_mut().skip(column).step_by(self.n_columns) {
                *value = (*value - mean) / scale;
            }
        }
    }
}
