//! Z as an array of cell numbers.

use crate::features::Design;
use crate::linalg::{Matrix, Threads};
use crate::{Error, Result};

/// The cell number of a point in a cell that holds no training point: it has no column and contributes nothing.
pub const UNSEEN: u32 = u32::MAX;

/// The feature matrix of M partitions: one cell number per row and tree, all values 1/√M.
///
/// Points outside the root box carry a factor e^{−λΔ} on their values (docs/design.md, "Points outside the root box").
/// Cell numbers count columns across all trees; a column belongs to one tree.
///
/// ```
/// use mondrian::internals::features::{CellArray, Design, UNSEEN};
/// // Three rows, two trees, given tree by tree; the last row is in no known cell of the second tree.
/// let z = CellArray::new(vec![0, 0, 1, 2, 3, UNSEEN], 3, 2, 4)?;
/// let mut out = [0.0; 3];
/// z.multiply(&[1.0, 2.0, 3.0, 4.0], &mut out);
/// assert!((out[2] - 2.0 / 2.0_f64.sqrt()).abs() < 1e-15);
/// assert_eq!(z.to_csr().indptr, [0, 2, 4, 5]);
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct CellArray {
    /// Tree by tree: within a tree the cells of neighbouring rows are few, so the data they index stay in cache.
    cells: Vec<u32>,
    /// Factors on 1/√M, in the same order; none if all are 1.
    factors: Option<Vec<f64>>,
    n_rows: usize,
    n_trees: usize,
    n_cells: usize,
}

/// The three arrays of a compressed sparse row matrix.
#[derive(Debug, Clone, PartialEq)]
pub struct Csr {
    /// Where each row starts, and the end.
    pub indptr: Vec<u64>,
    /// Columns, ascending within a row.
    pub indices: Vec<u32>,
    /// Values.
    pub data: Vec<f64>,
    /// Number of columns.
    pub n_columns: usize,
}

/// Rows worked on at once: their sums stay in the first-level cache.
const ROW_BLOCK: usize = 1024;

impl CellArray {
    /// Cell numbers tree by tree: `cells[tree * n_rows + row]`, below `n_cells` or [`UNSEEN`].
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the length is not `n_rows` × `n_trees`, [`Error::Empty`] without trees,
    /// [`Error::InvalidParameter`] for a number that is no cell.
    pub fn new(cells: Vec<u32>, n_rows: usize, n_trees: usize, n_cells: usize) -> Result<Self> {
        if n_trees == 0 {
            return Err(Error::Empty { what: "trees", rows: n_rows, columns: 0 });
        }
        if cells.len() != n_rows * n_trees {
            return Err(Error::LengthMismatch { what: "cell numbers", expected: n_rows * n_trees, found: cells.len() });
        }
        match cells.iter().find(|&&c| c != UNSEEN && c as usize >= n_cells) {
            Some(&c) => Err(Error::InvalidParameter {
                name: "cell number",
                value: f64::from(c),
                expected: "below the number of cells",
            }),
            None => Ok(Self { cells, factors: None, n_rows, n_trees, n_cells }),
        }
    }

    /// The same from numbers row by row: `cells[row * n_trees + tree]`. Errors as for [`CellArray::new`].
    pub fn from_row_major(cells: &[u32], n_trees: usize, n_cells: usize) -> Result<Self> {
        let n_rows = cells.len() / n_trees.max(1);
        let tree_major = (0..n_trees).flat_map(|m| (0..n_rows).map(move |i| cells[i * n_trees + m])).collect();
        Self::new(tree_major, n_rows, n_trees, n_cells)
    }

    /// The same with a factor on every value, in the order of the cell numbers.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::NotFinite`].
    pub fn with_factors(self, factors: Vec<f64>) -> Result<Self> {
        if factors.len() != self.cells.len() {
            return Err(Error::LengthMismatch { what: "factors", expected: self.cells.len(), found: factors.len() });
        }
        if let Some(k) = factors.iter().position(|f| !f.is_finite()) {
            let (row, column) = (k % self.n_rows, k / self.n_rows);
            return Err(Error::NotFinite { what: "factors", row, column, value: factors[k] });
        }
        let plain = factors.iter().all(|&f| f == 1.0);
        Ok(Self { factors: (!plain).then_some(factors), ..self })
    }

    /// Number of trees M.
    pub fn n_trees(&self) -> usize {
        self.n_trees
    }

    /// The cells of all rows in one tree.
    pub fn tree(&self, tree: usize) -> &[u32] {
        &self.cells[tree * self.n_rows..][..self.n_rows]
    }

    /// The factors on 1/√M of all rows in one tree, if any differs from 1 anywhere.
    pub fn factors(&self, tree: usize) -> Option<&[f64]> {
        self.factors.as_ref().map(|f| &f[tree * self.n_rows..][..self.n_rows])
    }

    /// 1/√M, the value of an entry without a factor.
    pub fn scale(&self) -> f64 {
        1.0 / (self.n_trees as f64).sqrt()
    }

    /// The cell numbers in row-major order.
    pub fn to_row_major(&self) -> Vec<u32> {
        (0..self.n_rows).flat_map(|i| (0..self.n_trees).map(move |m| self.cells[m * self.n_rows + i])).collect()
    }

    /// As compressed sparse rows; unseen cells are omitted.
    pub fn to_csr(&self) -> Csr {
        let (mut indptr, mut indices, mut data) = (vec![0], Vec::new(), Vec::new());
        let mut row: Vec<(u32, f64)> = Vec::with_capacity(self.n_trees);
        for i in 0..self.n_rows {
            row.clear();
            row.extend(self.row(i));
            row.sort_unstable_by_key(|entry| entry.0);
            indices.extend(row.iter().map(|entry| entry.0));
            data.extend(row.iter().map(|entry| entry.1));
            indptr.push(indices.len() as u64);
        }
        Csr { indptr, indices, data, n_columns: self.n_cells }
    }

    /// The seen cells of one row with their values.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (u32, f64)> + '_ {
        assert!(row < self.n_rows, "row within the array");
        let scale = self.scale();
        (0..self.n_trees).map(move |m| m * self.n_rows + row).filter_map(move |k| {
            let factor = self.factors.as_ref().map_or(1.0, |f| f[k]);
            (self.cells[k] != UNSEEN).then(|| (self.cells[k], scale * factor))
        })
    }

    /// `sums` ← M^½·(Zθ) of the rows from `first` on. A cell beyond θ (unseen, or newer than θ) adds nothing.
    #[inline]
    fn gather(&self, theta: &[f64], first: usize, sums: &mut [f64]) {
        sums.fill(0.0);
        for m in 0..self.n_trees {
            let cells = &self.tree(m)[first..][..sums.len()];
            match self.factors(m) {
                None => {
                    for (s, &c) in sums.iter_mut().zip(cells) {
                        *s += theta.get(c as usize).copied().unwrap_or(0.0);
                    }
                }
                Some(factors) => {
                    for ((s, &c), f) in sums.iter_mut().zip(cells).zip(&factors[first..]) {
                        *s += f * theta.get(c as usize).copied().unwrap_or(0.0);
                    }
                }
            }
        }
    }

    /// `out` ← `out` + M^½·Zᵀv for the rows from `first` on.
    #[inline]
    fn scatter(&self, v: &[f64], first: usize, out: &mut [f64]) {
        for m in 0..self.n_trees {
            let cells = &self.tree(m)[first..][..v.len()];
            match self.factors(m) {
                None => {
                    for (v, &c) in v.iter().zip(cells) {
                        if let Some(o) = out.get_mut(c as usize) {
                            *o += v;
                        }
                    }
                }
                Some(factors) => {
                    for ((v, &c), f) in v.iter().zip(cells).zip(&factors[first..]) {
                        if let Some(o) = out.get_mut(c as usize) {
                            *o += f * v;
                        }
                    }
                }
            }
        }
    }

    fn blocks(&self) -> impl Iterator<Item = std::ops::Range<usize>> + use<> {
        let n = self.n_rows;
        (0..n).step_by(ROW_BLOCK).map(move |first| first..(first + ROW_BLOCK).min(n))
    }

    /// Rows by cell of one tree: (cell, row, factor), sorted.
    fn members(&self, tree: usize) -> Vec<(u32, u32, f64)> {
        let factors = self.factors(tree);
        let mut members: Vec<(u32, u32, f64)> = self
            .tree(tree)
            .iter()
            .enumerate()
            .filter(|(_, c)| **c != UNSEEN)
            .map(|(i, &c)| (c, i as u32, factors.map_or(1.0, |f| f[i])))
            .collect();
        members.sort_unstable_by_key(|&(c, i, _)| (c, i));
        members
    }
}

impl Design for CellArray {
    fn n_rows(&self) -> usize {
        self.n_rows
    }

    fn n_columns(&self) -> usize {
        self.n_cells
    }

    fn n_stored(&self) -> usize {
        self.cells.len()
    }

    fn multiply(&self, theta: &[f64], out: &mut [f64]) {
        let scale = self.scale();
        for rows in self.blocks() {
            let block = &mut out[rows.clone()];
            self.gather(theta, rows.start, block);
            block.iter_mut().for_each(|o| *o *= scale);
        }
    }

    fn multiply_transposed(&self, v: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        for rows in self.blocks() {
            self.scatter(&v[rows.clone()], rows.start, out);
        }
        let scale = self.scale();
        out.iter_mut().for_each(|o| *o *= scale);
    }

    /// Row block by row block, so that the cell numbers are read from memory once and the sums stay in cache.
    fn normal(&self, theta: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        let mut sums = [0.0; ROW_BLOCK];
        for rows in self.blocks() {
            let sums = &mut sums[..rows.len()];
            self.gather(theta, rows.start, sums);
            self.scatter(sums, rows.start, out);
        }
        let scale = 1.0 / self.n_trees as f64;
        out.iter_mut().for_each(|o| *o *= scale);
    }

    /// Co-occurrence counts, one pair of trees at a time: their block of the matrix stays in cache.
    fn gram_lower(&self, _threads: Threads) -> Matrix {
        let mut gram = Matrix::zeros(self.n_cells, self.n_cells);
        let unit = 1.0 / self.n_trees as f64;
        for a in 0..self.n_trees {
            for b in 0..=a {
                let (left, right) = (self.tree(a), self.tree(b));
                let (f, g) = (self.factors(a), self.factors(b));
                for (i, (&c, &d)) in left.iter().zip(right).enumerate() {
                    if c != UNSEEN && d != UNSEEN {
                        let weight = f.map_or(1.0, |f| f[i]) * g.map_or(1.0, |g| g[i]);
                        gram[(c.max(d) as usize, c.min(d) as usize)] += weight;
                    }
                }
            }
        }
        gram.as_mut_slice().iter_mut().for_each(|g| *g *= unit);
        gram
    }

    /// Pairs of rows within each cell: Σ over cells of (rows in it)², N²·M only if one cell holds all rows.
    fn dual_gram_lower(&self, _threads: Threads) -> Matrix {
        let mut gram = Matrix::zeros(self.n_rows, self.n_rows);
        for m in 0..self.n_trees {
            for cell in self.members(m).chunk_by(|a, b| a.0 == b.0) {
                for (k, &(_, j, f)) in cell.iter().enumerate() {
                    let column = gram.column_mut(j as usize);
                    cell[k..].iter().for_each(|&(_, i, g)| column[i as usize] += f * g);
                }
            }
        }
        let unit = 1.0 / self.n_trees as f64;
        gram.as_mut_slice().iter_mut().for_each(|g| *g *= unit);
        gram
    }

    fn column_squares(&self) -> Vec<f64> {
        let mut out = vec![0.0; self.n_cells];
        let unit = 1.0 / self.n_trees as f64;
        for m in 0..self.n_trees {
            let factors = self.factors(m);
            for (i, &c) in self.tree(m).iter().enumerate() {
                if let Some(o) = out.get_mut(c as usize) {
                    *o += unit * factors.map_or(1.0, |f| f[i] * f[i]);
                }
            }
        }
        out
    }

    fn scatter_row(&self, row: usize, out: &mut [f64]) {
        out.fill(0.0);
        for (cell, value) in self.row(row) {
            if let Some(o) = out.get_mut(cell as usize) {
                *o += value;
            }
        }
    }
}
