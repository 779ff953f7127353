//! The ridge solution on grid features while features split and merge, K at a time.
//!
//! With P = (ZᵀZ + αI)⁻¹, b = Zᵀy and θ = Pb, let features i_1, …, i_K split into i_k and a new one each, the columns
//! obeying z_i = z_low + z_new. In the coordinates W = (sum, difference) of each pair the split matrix is the old one
//! with α added at each (i, i), bordered by the columns B = Zᵀ(z_low − z_new) with the diagonal
//! ‖z_low − z_new‖² + 2α. So with G = P[:, i], T = (α⁻¹I + G[i, :])⁻¹:
//!
//! P₁ = P − G T Gᵀ,  Q = P₁B,  S = D − BᵀQ,  and in these coordinates P' = [P₁ + Q S⁻¹Qᵀ, −Q S⁻¹; ·, S⁻¹].
//!
//! Merging runs the same steps backwards and reads K columns of P only. Either way P changes by one symmetric product
//! of 2K vectors, and θ by O(K·C) once the vectors are there: so θ of a candidate is computed without changing P
//! (docs/design.md, "The Mondrian grid"). The report deletes a feature and borders twice, K times over.
//!
//! P does not depend on the targets: each of several targets has its own b and θ.

use crate::Result;
use crate::linalg::{Cholesky, Into, Matrix, MatrixRef, Threads, gemm, gemv};

/// P, b and θ.
#[derive(Debug, Clone)]
pub(crate) struct Solution {
    /// P in the leading n × n block, both triangles.
    p: Matrix,
    n: usize,
    alpha: f64,
    /// One vector per target.
    b: Vec<Vec<f64>>,
    /// One vector per target.
    pub(crate) theta: Vec<Vec<f64>>,
}

/// K features that split.
#[derive(Debug, Clone)]
pub(crate) struct Splits {
    /// The features.
    pub(crate) features: Vec<usize>,
    /// B, one column per split.
    pub(crate) borders: Matrix,
    /// ‖z_low − z_new‖² + 2α.
    pub(crate) diagonal: Vec<f64>,
    /// The new features' entries of b, one vector per target.
    pub(crate) b_new: Vec<Vec<f64>>,
}

/// The vectors of a split: rows of X and Y with P₁ = P − XᵀX, P₁ + Q S⁻¹Qᵀ = P₁ + YᵀY.
struct SplitVectors {
    x: Matrix,
    x_factor: Cholesky,
    q: Matrix,
    s_factor: Cholesky,
}

/// The vectors of a merge.
struct MergeVectors {
    x: Matrix,
    x_factor: Cholesky,
    y: Matrix,
    y_factor: Cholesky,
}

impl MergeVectors {
    /// θ of one target after the merge.
    fn merge(&self, mut theta: Vec<f64>, pairs: &[(usize, usize)]) -> Result<Vec<f64>> {
        for &(i, j) in pairs {
            let (ti, tj) = (theta[i], theta[j]);
            theta[i] = 0.5 * (ti + tj);
            theta[j] = 0.5 * (ti - tj);
        }
        let mut short: Vec<f64> = pairs.iter().map(|&(_, j)| theta[j]).collect();
        half_solve(&self.x_factor, &mut short)?;
        gemv(-1.0, self.x.view().t(), &short, Into::Add, &mut theta);
        let mut short: Vec<f64> = pairs.iter().map(|&(i, _)| theta[i]).collect();
        half_solve(&self.y_factor, &mut short)?;
        gemv(1.0, self.y.view().t(), &short, Into::Add, &mut theta);
        Ok(theta)
    }
}

impl Solution {
    /// All rows in one cell in each of M grids (docs/design.md, "The Mondrian grid"): P = (I − (N/M)·11ᵀ/(α + N))/α.
    pub(crate) fn trivial(n_grids: usize, y: &Matrix, alpha: f64) -> Self {
        let (n, m) = (y.n_rows() as f64, n_grids as f64);
        let p = Matrix::from_fn(n_grids, n_grids, |i, j| (f64::from(u8::from(i == j)) - n / m / (alpha + n)) / alpha);
        let b_of = |t: usize| vec![y.column(t).iter().sum::<f64>() / m.sqrt(); n_grids];
        let b = (0..y.n_columns()).map(b_of).collect();
        let mut solution = Self { p, n: n_grids, alpha, b, theta: Vec::new() };
        solution.refresh_theta();
        solution
    }

    /// From the lower triangle of ZᵀZ and one Zᵀy per target.
    pub(crate) fn fresh(mut gram: Matrix, b: Vec<Vec<f64>>, alpha: f64) -> Result<Self> {
        let n = gram.n_rows();
        (0..n).for_each(|i| gram[(i, i)] += alpha);
        let factor = Cholesky::new(gram, Threads::ONE)?;
        let theta = b.iter().map(|b| factor.solve(b)).collect::<Result<_>>()?;
        Ok(Self { p: factor.inverse(), n, alpha, b, theta })
    }

    pub(crate) fn n_features(&self) -> usize {
        self.n
    }

    fn view(&self) -> MatrixRef<'_> {
        self.p.block(self.n, self.n)
    }

    /// P times the columns of `borders`, for all candidates at once.
    pub(crate) fn images(&self, borders: &Matrix) -> Matrix {
        let mut images = Matrix::zeros(self.n, borders.n_columns());
        gemm(1.0, self.view(), borders, Into::Replace, images.view_mut(), Threads::ONE);
        images
    }

    fn refresh_theta(&mut self) {
        let theta_of = |b: &Vec<f64>| {
            let mut theta = vec![0.0; self.n];
            gemv(1.0, self.view(), b, Into::Replace, &mut theta);
            theta
        };
        self.theta = self.b.iter().map(theta_of).collect();
    }

    fn split_vectors(&self, splits: &Splits, images: MatrixRef<'_>) -> Result<SplitVectors> {
        let k = splits.features.len();
        let small = Matrix::from_fn(k, k, |i, j| {
            self.p[(splits.features[i], splits.features[j])] + if i == j { 1.0 / self.alpha } else { 0.0 }
        });
        let x_factor = Cholesky::new(small, Threads::ONE)?;
        let mut x = Matrix::from_fn(k, self.n, |i, j| self.p[(j, splits.features[i])]);
        x_factor.half_solve_in_place(x.view_mut())?;
        let mut xb = Matrix::zeros(k, k);
        gemm(1.0, &x, &splits.borders, Into::Replace, xb.view_mut(), Threads::ONE);
        let mut q = images.to_owned();
        gemm(-1.0, x.view().t(), &xb, Into::Add, q.view_mut(), Threads::ONE);
        let mut s = Matrix::from_fn(k, k, |i, j| if i == j { splits.diagonal[i] } else { 0.0 });
        gemm(-1.0, splits.borders.view().t(), &q, Into::Add, s.view_mut(), Threads::ONE);
        Ok(SplitVectors { x, x_factor, q, s_factor: Cholesky::new(s, Threads::ONE)? })
    }

    /// θ after the splits, the new features at the end; P is not changed. `images` is P·B.
    pub(crate) fn split_theta(&self, splits: &Splits, images: MatrixRef<'_>) -> Result<Vec<Vec<f64>>> {
        let vectors = self.split_vectors(splits, images)?;
        (0..self.theta.len()).map(|target| self.split_one(target, splits, &vectors)).collect()
    }

    fn split_one(&self, target: usize, splits: &Splits, vectors: &SplitVectors) -> Result<Vec<f64>> {
        let (b, b_new, mut theta) = (&self.b[target], &splits.b_new[target], self.theta[target].clone());
        let mut short: Vec<f64> = splits.features.iter().map(|&i| theta[i]).collect();
        half_solve(&vectors.x_factor, &mut short)?;
        gemv(-1.0, vectors.x.view().t(), &short, Into::Add, &mut theta);
        // Vᵀb = b_low − b_new, and b_low = b_i − b_new.
        let mut rest: Vec<f64> = splits.features.iter().zip(b_new).map(|(&i, b_new)| b[i] - 2.0 * b_new).collect();
        gemv(-1.0, splits.borders.view().t(), &theta, Into::Add, &mut rest);
        let difference = vectors.s_factor.solve(&rest)?;
        gemv(-1.0, &vectors.q, &difference, Into::Add, &mut theta);
        for (&i, difference) in splits.features.iter().zip(&difference) {
            theta.push(theta[i] - difference);
        }
        for (&i, difference) in splits.features.iter().zip(&difference) {
            theta[i] += difference;
        }
        Ok(theta)
    }

    /// Executes the splits; the new features come last.
    pub(crate) fn split(&mut self, splits: &Splits) -> Result<()> {
        let (n, k) = (self.n, splits.features.len());
        if k == 0 {
            return Ok(());
        }
        let images = self.images(&splits.borders);
        let vectors = self.split_vectors(splits, images.view())?;
        let mut y = vectors.q.transposed();
        vectors.s_factor.half_solve_in_place(y.view_mut())?;
        let mut cross = vectors.q.transposed();
        vectors.s_factor.solve_in_place(cross.view_mut())?;
        let corner = vectors.s_factor.inverse();
        self.reserve(n + k);
        self.add_squares(&vectors.x, &y);
        for a in 0..k {
            for c in 0..n {
                self.p[(c, n + a)] = -cross[(a, c)];
                self.p[(n + a, c)] = -cross[(a, c)];
            }
            for c in 0..k {
                self.p[(n + c, n + a)] = corner[(c, a)];
            }
        }
        self.n = n + k;
        for (a, &i) in splits.features.iter().enumerate() {
            self.turn(i, n + a, 1.0);
            for (b, b_new) in self.b.iter_mut().zip(&splits.b_new) {
                b[i] -= b_new[a];
                b.push(b_new[a]);
            }
        }
        self.refresh_theta();
        Ok(())
    }

    fn merge_vectors(&self, pairs: &[(usize, usize)]) -> Result<MergeVectors> {
        let k = pairs.len();
        // One row per pair: half the sum and half the difference of two columns of P, then the same for their entries.
        let half = |sign: f64| {
            let mut rows = Matrix::from_fn(k, self.n, |a, c| {
                let (i, j) = pairs[a];
                0.5 * (self.p[(c, i)] + sign * self.p[(c, j)])
            });
            for a in 0..k {
                for &(i, j) in pairs {
                    let (vi, vj) = (rows[(a, i)], rows[(a, j)]);
                    rows[(a, i)] = 0.5 * (vi + vj);
                    rows[(a, j)] = 0.5 * (vi - vj);
                }
            }
            rows
        };
        let (mut x, mut y) = (half(-1.0), half(1.0));
        let x_factor = Cholesky::new(Matrix::from_fn(k, k, |a, c| x[(a, pairs[c].1)]), Threads::ONE)?;
        x_factor.half_solve_in_place(x.view_mut())?;
        let at = Matrix::from_fn(k, k, |a, c| x[(a, pairs[c].0)]);
        gemm(-1.0, at.view().t(), &x, Into::Add, y.view_mut(), Threads::ONE);
        let small = Matrix::from_fn(k, k, |a, c| f64::from(u8::from(a == c)) / self.alpha - y[(a, pairs[c].0)]);
        let y_factor = Cholesky::new(small, Threads::ONE)?;
        y_factor.half_solve_in_place(y.view_mut())?;
        Ok(MergeVectors { x, x_factor, y, y_factor })
    }

    /// θ after feature j of each pair (i, j) was merged into feature i; entries j are meaningless. P is not changed.
    pub(crate) fn merge_theta(&self, pairs: &[(usize, usize)]) -> Result<Vec<Vec<f64>>> {
        if pairs.is_empty() {
            return Ok(self.theta.clone());
        }
        let vectors = self.merge_vectors(pairs)?;
        self.theta.iter().map(|theta| vectors.merge(theta.clone(), pairs)).collect()
    }

    /// Merges feature j of each pair into i and removes it. Returns (from, to) for every feature that moved into the
    /// position of a removed one, in order.
    pub(crate) fn merge(&mut self, pairs: &[(usize, usize)]) -> Result<Vec<(usize, usize)>> {
        if pairs.is_empty() {
            return Ok(Vec::new());
        }
        let vectors = self.merge_vectors(pairs)?;
        for &(i, j) in pairs {
            self.turn(i, j, 0.5);
            self.b.iter_mut().for_each(|b| b[i] += b[j]);
        }
        self.add_squares(&vectors.x, &vectors.y);
        let mut holes: Vec<usize> = pairs.iter().map(|&(_, j)| j).collect();
        // In descending order, so that the feature moved into a free position is never one to be removed.
        holes.sort_unstable_by(|a, b| b.cmp(a));
        let mut renamed = Vec::new();
        for hole in holes {
            let last = self.n - 1;
            if hole != last {
                for c in 0..self.n {
                    self.p[(c, hole)] = self.p[(c, last)];
                }
                for c in 0..self.n {
                    self.p[(hole, c)] = self.p[(last, c)];
                }
                renamed.push((last, hole));
            }
            self.b.iter_mut().for_each(|b| {
                b.swap_remove(hole);
            });
            self.n = last;
        }
        self.refresh_theta();
        Ok(renamed)
    }

    /// Columns and rows i, j ← `scale`·(i + j), `scale`·(i − j).
    fn turn(&mut self, i: usize, j: usize, scale: f64) {
        for c in 0..self.n {
            let (a, b) = (self.p[(c, i)], self.p[(c, j)]);
            self.p[(c, i)] = scale * (a + b);
            self.p[(c, j)] = scale * (a - b);
        }
        for c in 0..self.n {
            let (a, b) = (self.p[(i, c)], self.p[(j, c)]);
            self.p[(i, c)] = scale * (a + b);
            self.p[(j, c)] = scale * (a - b);
        }
    }

    /// P ← P − XᵀX + YᵀY as one product.
    fn add_squares(&mut self, x: &Matrix, y: &Matrix) {
        let (k, n) = (x.n_rows(), self.n);
        let stacked =
            |sign: f64| Matrix::from_fn(2 * k, n, |a, c| if a < k { sign * x[(a, c)] } else { y[(a - k, c)] });
        let (left, right) = (stacked(-1.0), stacked(1.0));
        gemm(1.0, left.view().t(), &right, Into::Add, self.p.block_mut(n, n), Threads::ONE);
    }

    fn reserve(&mut self, n: usize) {
        if n > self.p.n_rows() {
            let capacity = n.max(self.p.n_rows() * 3 / 2);
            let mut grown = Matrix::zeros(capacity, capacity);
            for c in 0..self.n {
                grown.column_mut(c)[..self.n].copy_from_slice(&self.p.column(c)[..self.n]);
            }
            self.p = grown;
        }
    }

    /// The error of P as the inverse: ‖A(Pv) − v‖∞ for one vector of ±1, A given as a product.
    pub(crate) fn residual(&self, multiply: impl FnOnce(&[f64]) -> Vec<f64>) -> f64 {
        let v: Vec<f64> = (0..self.n).map(|i| if (i * 0x9E37) >> 3 & 1 == 0 { 1.0 } else { -1.0 }).collect();
        let mut image = vec![0.0; self.n];
        gemv(1.0, self.view(), &v, Into::Replace, &mut image);
        multiply(&image).iter().zip(&v).fold(0.0, |worst, (a, v)| worst.max((a - v).abs()))
    }
}

fn half_solve(factor: &Cholesky, v: &mut [f64]) -> Result<()> {
    let n = v.len();
    factor.half_solve_in_place(crate::linalg::MatrixMut::new(v, n, 1))
}
