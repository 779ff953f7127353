//! Principal components by subspace iteration: a few of many, through the library's dense products alone.

use anyhow::Result;
use mondrian::Matrix;
use mondrian::Points;
use mondrian::internals::linalg::{Into, Threads, gemm, syrk_lower};
use mondrian::process::NodeKey;

/// Directions of greatest variance about a mean.
pub(super) struct Components {
    mean: Vec<f64>,
    /// One direction a column, by falling variance.
    directions: Matrix,
}

/// Steps of the iteration; with twice the requested number of directions, the error of the kept ones falls by their
/// eigenvalues' ratio to one far behind in each.
const STEPS: usize = 120;

impl Components {
    /// The first `n` components of rows.
    pub(super) fn new(rows: Points<'_>, n: usize) -> Self {
        let (n_rows, d) = (rows.n_rows(), rows.n_columns());
        let mean: Vec<f64> = (0..d).map(|c| rows.column(c).sum::<f64>() / n_rows as f64).collect();
        let centred = Matrix::from_fn(d, n_rows, |c, r| rows.get(r, c) - mean[c]);
        let mut covariance = Matrix::zeros(d, d);
        syrk_lower(1.0 / n_rows as f64, &centred, Into::Replace, covariance.view_mut(), Threads::ONE);
        covariance.mirror_lower();
        let wide = (2 * n + 4).min(d);
        let mut basis = Matrix::from_fn(d, wide, |r, c| NodeKey::root(r as u64, c as u64).draw(0).normal());
        let mut next = Matrix::zeros(d, wide);
        for _ in 0..STEPS {
            orthonormalise(&mut basis);
            gemm(1.0, &covariance, &basis, Into::Replace, next.view_mut(), Threads::ONE);
            std::mem::swap(&mut basis, &mut next);
        }
        orthonormalise(&mut basis);
        let directions = Matrix::from_column_major(basis.as_slice()[..d * n.min(wide)].to_vec(), d, n.min(wide));
        Self { mean, directions: directions.expect("as many numbers as rows and columns") }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.directions.n_columns()
    }

    /// Rows in the coordinates of the components, row-major.
    pub(super) fn project(&self, rows: Points<'_>) -> Result<Vec<f64>> {
        rows.check_width(self.mean.len())?;
        let n = self.directions.n_columns();
        let mut out = Vec::with_capacity(rows.n_rows() * n);
        for r in 0..rows.n_rows() {
            let row: Vec<f64> = rows.row(r).zip(&self.mean).map(|(x, m)| x - m).collect();
            out.extend((0..n).map(|k| row.iter().zip(self.directions.column(k)).map(|(a, b)| a * b).sum::<f64>()));
        }
        Ok(out)
    }
}

/// Gram–Schmidt, twice for the sake of rounding: powers keep the columns in the order of their eigenvalues.
fn orthonormalise(basis: &mut Matrix) {
    let d = basis.n_rows();
    for k in 0..basis.n_columns() {
        let (before, rest) = basis.as_mut_slice().split_at_mut(k * d);
        let column = &mut rest[..d];
        for _ in 0..2 {
            for other in before.chunks_exact(d) {
                let along: f64 = column.iter().zip(other).map(|(a, b)| a * b).sum();
                column.iter_mut().zip(other).for_each(|(a, b)| *a -= along * b);
            }
        }
        let norm = column.iter().map(|a| a * a).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
        column.iter_mut().for_each(|a| *a /= norm);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows with deviations 5, 3, 1, 0.5, … along a rotated frame: the components find the frame.
    #[test]
    fn finds_a_hidden_frame() {
        const D: usize = 8;
        let mut frame = Matrix::from_fn(D, D, |r, c| NodeKey::root(r as u64, c as u64).draw(1).normal());
        orthonormalise(&mut frame);
        let widths = [5.0, 3.0, 1.0, 0.5, 0.3, 0.2, 0.1, 0.05];
        let mut rows = Vec::new();
        for r in 0..400_u64 {
            let along: Vec<f64> = (0..D).map(|k| widths[k] * NodeKey::root(r, k as u64).draw(2).normal()).collect();
            rows.extend((0..D).map(|c| 7.0 + (0..D).map(|k| along[k] * frame[(c, k)]).sum::<f64>()));
        }
        let points = Points::row_major(&rows, D).unwrap();
        let found = Components::new(points, 2);
        for k in 0..2 {
            let cosine: f64 = found.directions.column(k).iter().zip(frame.column(k)).map(|(a, b)| a * b).sum();
            // 400 rows tilt the sample's axes by a few hundredths.
            assert!(cosine.abs() > 0.98, "{k}: {cosine}");
        }
        let projected = found.project(points).unwrap();
        let moment = |a: usize, b: usize| projected.chunks(2).map(|r| r[a] * r[b]).sum::<f64>() / 400.0;
        // Components of one sample are uncorrelated exactly.
        assert!(moment(0, 1).abs() < 1e-6 * moment(0, 0) && moment(0, 0) > moment(1, 1));
    }
}
