//! The data of the measurements, all by key, and what the library needs to grow a tree on them.

use mondrian::internals::tree::{Domain, PointStore};
use mondrian::process::{Bounds, NodeKey};
use mondrian::{Lifetime, Points, Result};
use mondrian_benches::Table;

/// Rows of numbers, row-major.
pub(crate) struct Rows {
    pub(crate) x: Vec<f64>,
    pub(crate) n_dims: usize,
}

impl Rows {
    pub(crate) fn n_rows(&self) -> usize {
        self.x.len() / self.n_dims
    }

    pub(crate) fn row(&self, row: usize) -> &[f64] {
        &self.x[row * self.n_dims..][..self.n_dims]
    }

    /// The same numbers, column-major.
    pub(crate) fn columns(&self) -> Vec<f64> {
        let (n, d) = (self.n_rows(), self.n_dims);
        (0..n * d).map(|at| self.x[at % n * d + at / n]).collect()
    }

    /// Uniform on [0, 1]^D.
    pub(crate) fn uniform(n: usize, n_dims: usize, seed: u64) -> Self {
        let key = NodeKey::root(seed, 0);
        let x = (0..(n * n_dims) as u64).map(|i| key.fork(i).draw(0).uniform()).collect();
        Self { x, n_dims }
    }

    /// Standard normal.
    pub(crate) fn gaussian(n: usize, n_dims: usize, seed: u64) -> Self {
        let key = NodeKey::root(seed, 1);
        Self { x: (0..(n * n_dims) as u64).map(|i| key.fork(i).draw(0).normal()).collect(), n_dims }
    }

    /// Clusters of `size` points, uniform centres in [0, 1]^D, standard deviation `sigma` within; shuffled.
    pub(crate) fn clustered(n: usize, n_dims: usize, size: usize, sigma: f64, seed: u64) -> Self {
        let (key, centres) = (NodeKey::root(seed, 2), NodeKey::root(seed, 3));
        let n_clusters = (n / size).max(1) as u64;
        let mut x = Vec::with_capacity(n * n_dims);
        for row in 0..n as u64 {
            // Every cluster once in turn: neighbours in time are not neighbours in space.
            let cluster = row % n_clusters;
            for dim in 0..n_dims as u64 {
                let centre = centres.fork(cluster * n_dims as u64 + dim).draw(0).uniform();
                x.push(centre + sigma * key.fork(row * n_dims as u64 + dim).draw(0).normal());
            }
        }
        Self { x, n_dims }
    }

    /// A real table, inputs in standard units.
    pub(crate) fn real(name: &str) -> std::io::Result<Self> {
        let table = Table::read(name)?;
        let mut rows = Self { x: table.x, n_dims: table.n_columns };
        for dim in 0..rows.n_dims {
            rows.standardise(dim);
        }
        Ok(rows)
    }

    fn standardise(&mut self, dim: usize) {
        let n = self.n_rows() as f64;
        let column = || self.x.iter().skip(dim).step_by(self.n_dims);
        let mean = column().sum::<f64>() / n;
        let deviation = (column().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n).sqrt();
        let scale = if deviation > 0.0 { deviation } else { 1.0 };
        self.x.iter_mut().skip(dim).step_by(self.n_dims).for_each(|v| *v = (*v - mean) / scale);
    }

    /// The store of all rows.
    pub(crate) fn store(&self) -> Result<PointStore> {
        let mut store = PointStore::new(self.n_dims);
        for row in 0..self.n_rows() {
            store.add(self.row(row))?;
        }
        Ok(store)
    }

    /// Trees on the box of all rows.
    pub(crate) fn domain(&self, lifetime: f64) -> Result<Domain> {
        let bounds = Bounds::of_points(Points::row_major(&self.x, self.n_dims)?).expect("there are rows");
        Domain::new(1, &bounds, Lifetime::new(lifetime)?)
    }
}
