//! The products with a feature matrix that solvers use.

use crate::features::CellArray;
use crate::linalg::{Into, Matrix, Threads, gemv, syrk_lower};

/// A feature matrix Z, N rows and C columns, given by its products.
pub trait Design {
    /// N.
    fn n_rows(&self) -> usize;
    /// C.
    fn n_columns(&self) -> usize;
    /// The number of stored numbers that a product reads.
    fn n_stored(&self) -> usize;
    /// `out` ← Zθ.
    fn multiply(&self, theta: &[f64], out: &mut [f64]);
    /// `out` ← Zᵀv.
    fn multiply_transposed(&self, v: &[f64], out: &mut [f64]);
    /// `out` ← ZᵀZθ.
    fn normal(&self, theta: &[f64], out: &mut [f64]) {
        let mut image = vec![0.0; self.n_rows()];
        self.multiply(theta, &mut image);
        self.multiply_transposed(&image, out);
    }
    /// The lower triangle of ZᵀZ.
    fn gram_lower(&self, threads: Threads) -> Matrix;
    /// The lower triangle of ZZᵀ.
    fn dual_gram_lower(&self, threads: Threads) -> Matrix;
    /// The diagonal of ZᵀZ.
    fn column_squares(&self) -> Vec<f64>;
    /// `out` ← row `row` of Z; columns beyond `out` are dropped.
    fn scatter_row(&self, row: usize, out: &mut [f64]);
}

/// A dense feature matrix, one column per feature.
impl Design for Matrix {
    fn n_rows(&self) -> usize {
        Matrix::n_rows(self)
    }

    fn n_columns(&self) -> usize {
        Matrix::n_columns(self)
    }

    fn n_stored(&self) -> usize {
        self.as_slice().len()
    }

    fn multiply(&self, theta: &[f64], out: &mut [f64]) {
        gemv(1.0, self, theta, Into::Replace, out);
    }

    fn multiply_transposed(&self, v: &[f64], out: &mut [f64]) {
        gemv(1.0, self.view().t(), v, Into::Replace, out);
    }

    fn gram_lower(&self, threads: Threads) -> Matrix {
        let c = Matrix::n_columns(self);
        let mut gram = Matrix::zeros(c, c);
        syrk_lower(1.0, self.view().t(), Into::Replace, gram.view_mut(), threads);
        gram
    }

    fn dual_gram_lower(&self, threads: Threads) -> Matrix {
        let n = Matrix::n_rows(self);
        let mut gram = Matrix::zeros(n, n);
        syrk_lower(1.0, self, Into::Replace, gram.view_mut(), threads);
        gram
    }

    fn column_squares(&self) -> Vec<f64> {
        (0..Matrix::n_columns(self)).map(|j| self.column(j).iter().map(|z| z * z).sum()).collect()
    }

    fn scatter_row(&self, row: usize, out: &mut [f64]) {
        out.iter_mut().enumerate().for_each(|(j, o)| *o = self[(row, j)]);
    }
}

/// The features of points.
#[derive(Debug, Clone, PartialEq)]
pub enum Features {
    /// Cells of partitions: Mondrian features, random binning.
    Cells(CellArray),
    /// Numbers: random Fourier features.
    Dense(Matrix),
}

impl Features {
    fn design(&self) -> &dyn Design {
        match self {
            Self::Cells(cells) => cells,
            Self::Dense(matrix) => matrix,
        }
    }
}

impl Design for Features {
    fn n_rows(&self) -> usize {
        self.design().n_rows()
    }

    fn n_columns(&self) -> usize {
        self.design().n_columns()
    }

    fn n_stored(&self) -> usize {
        self.design().n_stored()
    }

    fn multiply(&self, theta: &[f64], out: &mut [f64]) {
        self.design().multiply(theta, out);
    }

    fn multiply_transposed(&self, v: &[f64], out: &mut [f64]) {
        self.design().multiply_transposed(v, out);
    }

    fn normal(&self, theta: &[f64], out: &mut [f64]) {
        self.design().normal(theta, out);
    }

    fn gram_lower(&self, threads: Threads) -> Matrix {
        self.design().gram_lower(threads)
    }

    fn dual_gram_lower(&self, threads: Threads) -> Matrix {
        self.design().dual_gram_lower(threads)
    }

    fn column_squares(&self) -> Vec<f64> {
        self.design().column_squares()
    }

    fn scatter_row(&self, row: usize, out: &mut [f64]) {
        self.design().scatter_row(row, out);
    }
}

impl From<CellArray> for Features {
    fn from(cells: CellArray) -> Self {
        Self::Cells(cells)
    }
}

impl From<Matrix> for Features {
    fn from(matrix: Matrix) -> Self {
        Self::Dense(matrix)
    }
}
