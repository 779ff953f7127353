//! Ridge regression on an array of cell numbers, by whichever system is smallest (design, section 4).

use serde::{Deserialize, Serialize};

use super::UNSEEN;
use crate::dense::{Cholesky, Matrix, Threads, dot};
use crate::{Error, Result};

/// The largest dense system that is factored.
const DENSE: usize = 6000;
/// Conjugate gradients end at this residual, relative to the right-hand side.
const RESIDUAL: f64 = 1e-10;
const MOST_ITERATIONS: usize = 2000;

/// How a ridge solution was found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Solver {
    /// Cholesky factorisation over the features.
    Primal,
    /// Cholesky factorisation over the rows, fewer than the features.
    Dual,
    /// Conjugate gradients, with the relative residual reached.
    ConjugateGradients {
        /// Iterations made.
        iterations: usize,
        /// ‖b − Aθ‖/‖b‖ at the end.
        residual: f64,
    },
}

/// θ = (ZᵀZ + αI)⁻¹Zᵀy for cells row-major, M a row, values 1/√M.
pub(crate) fn solve(
    cells: &[u32],
    n_grids: usize,
    n_features: usize,
    y: &[f64],
    alpha: f64,
    threads: Threads,
) -> Result<(Vec<f64>, Solver)> {
    let n = y.len();
    if n_features <= n.min(DENSE) {
        let mut gram = gram_lower(cells, n_grids, n_features);
        (0..n_features).for_each(|i| gram[(i, i)] += alpha);
        let theta = Cholesky::new(gram, threads)?.solve(&project(cells, n_grids, n_features, y))?;
        Ok((theta, Solver::Primal))
    } else if n <= DENSE {
        let mut kernel = kernel_lower(cells, n_grids, n);
        (0..n).for_each(|i| kernel[(i, i)] += alpha);
        let weights = Cholesky::new(kernel, threads)?.solve(y)?;
        Ok((project(cells, n_grids, n_features, &weights), Solver::Dual))
    } else {
        conjugate_gradients(cells, n_grids, n_features, y, alpha)
    }
}

/// Zᵀv.
pub(crate) fn project(cells: &[u32], n_grids: usize, n_features: usize, v: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; n_features];
    for (row, v) in cells.chunks_exact(n_grids).zip(v) {
        for &cell in row {
            out[cell as usize] += v;
        }
    }
    let root = (n_grids as f64).sqrt();
    out.iter_mut().for_each(|sum| *sum /= root);
    out
}

/// Zθ; unseen cells count nothing.
pub(crate) fn predict(cells: &[u32], n_grids: usize, theta: &[f64]) -> Vec<f64> {
    let root = (n_grids as f64).sqrt();
    let value = |&cell: &u32| if cell == UNSEEN { 0.0 } else { theta[cell as usize] };
    cells.chunks_exact(n_grids).map(|row| row.iter().map(value).sum::<f64>() / root).collect()
}

/// ZᵀZ, lower triangle.
pub(crate) fn gram_lower(cells: &[u32], n_grids: usize, n_features: usize) -> Matrix {
    let mut gram = Matrix::zeros(n_features, n_features);
    for row in cells.chunks_exact(n_grids) {
        for &j in row {
            let column = gram.column_mut(j as usize);
            row.iter().filter(|&&i| i >= j).for_each(|&i| column[i as usize] += 1.0);
        }
    }
    gram.as_mut_slice().iter_mut().for_each(|count| *count /= n_grids as f64);
    gram
}

/// ZZᵀ, lower triangle: the share of grids in which two rows meet.
fn kernel_lower(cells: &[u32], n_grids: usize, n: usize) -> Matrix {
    let mut kernel = Matrix::zeros(n, n);
    for m in 0..n_grids {
        let mut order: Vec<(u32, u32)> = (0..n).map(|row| (cells[row * n_grids + m], row as u32)).collect();
        order.sort_unstable();
        for block in order.chunk_by(|a, b| a.0 == b.0) {
            for (at, &(_, j)) in block.iter().enumerate() {
                let column = kernel.column_mut(j as usize);
                block[at..].iter().for_each(|&(_, i)| column[i as usize] += 1.0);
            }
        }
    }
    kernel.as_mut_slice().iter_mut().for_each(|count| *count /= n_grids as f64);
    kernel
}

/// Preconditioned by the diagonal; two passes over the cell array a step.
fn conjugate_gradients(
    cells: &[u32],
    n_grids: usize,
    n_features: usize,
    y: &[f64],
    alpha: f64,
) -> Result<(Vec<f64>, Solver)> {
    let counts = project(cells, n_grids, n_features, &vec![1.0; y.len()]);
    let root = (n_grids as f64).sqrt();
    let inverse: Vec<f64> = counts.iter().map(|count| 1.0 / (count / root + alpha)).collect();
    let multiply = |v: &[f64]| {
        let mut out = project(cells, n_grids, n_features, &predict(cells, n_grids, v));
        out.iter_mut().zip(v).for_each(|(o, v)| *o += alpha * v);
        out
    };
    let b = project(cells, n_grids, n_features, y);
    let norm = dot(&b, &b).sqrt().max(f64::MIN_POSITIVE);
    let mut theta = vec![0.0; n_features];
    let mut r = b;
    let mut z: Vec<f64> = r.iter().zip(&inverse).map(|(r, i)| r * i).collect();
    let mut direction = z.clone();
    let mut product = dot(&r, &z);
    let mut iterations = 0;
    while dot(&r, &r).sqrt() > RESIDUAL * norm && iterations < MOST_ITERATIONS {
        let image = multiply(&direction);
        let curvature = dot(&direction, &image);
        if !(curvature > 0.0) {
            return Err(Error::NotPositiveDefinite { row: iterations });
        }
        let step = product / curvature;
        theta.iter_mut().zip(&direction).for_each(|(t, d)| *t += step * d);
        r.iter_mut().zip(&image).for_each(|(r, i)| *r -= step * i);
        z.iter_mut().zip(r.iter().zip(&inverse)).for_each(|(z, (r, i))| *z = r * i);
        let next = dot(&r, &z);
        let keep = next / product;
        direction.iter_mut().zip(&z).for_each(|(d, z)| *d = z + keep * *d);
        product = next;
        iterations += 1;
    }
    let residual = dot(&r, &r).sqrt() / norm;
    Ok((theta, Solver::ConjugateGradients { iterations, residual }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Points;
    use crate::grid::{GridFeatures, MondrianGrid};
    use crate::process::NodeKey;

    #[test]
    fn all_solvers_agree() {
        let (n, d, n_grids) = (60, 2, 5);
        let x: Vec<f64> = (0..n * d).map(|k| NodeKey::root(1, k as u64).draw(0).uniform()).collect();
        let y: Vec<f64> = x.chunks(d).map(|row| row[0] - 2.0 * row[1]).collect();
        let points = Points::row_major(&x, d).unwrap();
        let features = GridFeatures::fit(MondrianGrid::new(n_grids, 3).unwrap(), points, &[2.0, 1.0]).unwrap();
        let (cells, c) = (features.transform(points).unwrap(), features.n_features());
        assert!(c < n);
        let (primal, solver) = solve(&cells, n_grids, c, &y, 0.3, Threads::ONE).unwrap();
        assert_eq!(solver, Solver::Primal);
        let mut kernel = kernel_lower(&cells, n_grids, n);
        (0..n).for_each(|i| kernel[(i, i)] += 0.3);
        let weights = Cholesky::new(kernel, Threads::ONE).unwrap().solve(&y).unwrap();
        let dual = project(&cells, n_grids, c, &weights);
        let (iterated, _) = conjugate_gradients(&cells, n_grids, c, &y, 0.3).unwrap();
        for i in 0..c {
            assert!((primal[i] - dual[i]).abs() < 1e-10 && (primal[i] - iterated[i]).abs() < 1e-8);
        }
    }
}
