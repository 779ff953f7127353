//! The inverse under many changes, applied in blocks (docs/design.md, "The path, exact at every cut").
//!
//! One change of P at a time is bound by memory bandwidth: it reads and writes all of P for two or four flops a number.
//! Here P = B + Σ ± w wᵀ with the last vectors w kept beside the base B. A column of P is a column of B, corrected
//! in O(n·k); when k vectors have gathered, B takes them all as one symmetric matrix product. Only B's lower
//! triangle is kept up to date, half the flops; the cost, one strided row per column read, is O(n).
//!
//! # The merge
//! With P = (ZᵀZ + δ²I)⁻¹ and u = P(e_i − e_j), P₁ = P − uuᵀ/(u_i − u_j) is the inverse under the constraint
//! θ_i = θ_j, that is of the merged matrix with 2δ² at (i, i); then with p = P₁e_i,
//! P' = P₁ + δ² ppᵀ/(1 − δ² p_i) takes the second δ² away. A solution θ = P b follows:
//! θ₁ = θ − u (θ_i − θ_j)/(u_i − u_j) and θ' = θ₁ + δ² p θ₁_i/(1 − δ² p_i), b_j having been added to b_i.

use crate::linalg::{Into, Matrix, Threads, axpy, dot, gemm, gemm_lower};
use crate::simd::vectorise;
use crate::{Error, Result};

/// One merge of two features: the vectors by which everything that depends on P changes.
#[derive(Debug)]
pub struct Merge<'a> {
    /// The feature that stays.
    pub i: usize,
    /// The feature that went into it; the last one has taken its place.
    pub j: usize,
    /// δ².
    pub delta2: f64,
    /// u = P(e_i − e_j), before any row moved.
    pub difference: &'a [f64],
    /// p = P₁e_i, before any row moved.
    pub merged: &'a [f64],
    /// u_i − u_j.
    pub gap: f64,
    /// 1 − δ² p_i.
    pub shrink: f64,
}

impl<'a> Merge<'a> {
    /// From u and P e_i, which turns into p.
    pub(crate) fn complete(
        i: usize,
        j: usize,
        delta2: f64,
        difference: &'a [f64],
        column: &'a mut [f64],
    ) -> Result<Self> {
        let gap = difference[i] - difference[j];
        if !(gap > 0.0) {
            return Err(Error::NotPositiveDefinite { row: j });
        }
        axpy(-difference[i] / gap, difference, column);
        let shrink = 1.0 - delta2 * column[i];
        if !(shrink > 0.0) {
            return Err(Error::NotPositiveDefinite { row: i });
        }
        Ok(Self { i, j, delta2, difference, merged: column, gap, shrink })
    }

    /// The vectors whose squares are taken from and added to P.
    pub(crate) fn squares(&self) -> (Vec<f64>, Vec<f64>) {
        let (down, up) = (1.0 / self.gap.sqrt(), (self.delta2 / self.shrink).sqrt());
        (self.difference.iter().map(|u| u * down).collect(), self.merged.iter().map(|p| p * up).collect())
    }

    /// Carries a solution θ = P b over: afterwards it solves the merged system, whose right-hand side has b_j added to
    /// b_i and the last entry in the place of j.
    ///
    /// # Panics
    /// If `theta` has not as many entries as there were features.
    pub fn apply(&self, theta: &mut Vec<f64>) {
        assert_eq!(theta.len(), self.difference.len(), "a solution of the unmerged system");
        axpy(-(theta[self.i] - theta[self.j]) / self.gap, self.difference, theta);
        let step = self.delta2 * theta[self.i] / self.shrink;
        axpy(step, self.merged, theta);
        theta.swap_remove(self.j);
    }
}

/// The inverse of a symmetric positive definite matrix, with its last changes pending.
///
/// ```
/// use mondrian::Matrix;
/// use mondrian::internals::linalg::{DeferredInverse, Threads};
/// // Z = [1 0; 0 1; 0 1] and δ² = 0.5: A = diag(1.5, 2.5). Merged: 3 rows in one cell, A = 3.5.
/// let p = Matrix::from_fn(2, 2, |i, j| if i != j { 0.0 } else { [1.0 / 1.5, 1.0 / 2.5][i] });
/// let mut inverse = DeferredInverse::new(p, 32, Threads::ONE)?;
/// let mut theta = vec![1.0 / 1.5, 4.0 / 2.5];        // Zᵀy = (1, 4)
/// inverse.merge(0, 1, 0.5)?.apply(&mut theta);
/// assert!((theta[0] - 5.0 / 3.5).abs() < 1e-15);
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct DeferredInverse {
    /// B, its lower triangle in the leading n × n block.
    base: Matrix,
    n: usize,
    /// The vectors w, one per column, and their signs.
    pending: Matrix,
    signs: Vec<f64>,
    threads: Threads,
    coefficients: Matrix,
    /// Two columns of scratch: what the last merge read.
    scratch: Matrix,
}

impl DeferredInverse {
    /// Takes an inverse, of which the lower triangle counts, and gathers up to `block` vectors before it applies them.
    /// A merge brings two. Blocks of 32 to 128 are good from a thousand features on.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if it is not square.
    pub fn new(p: Matrix, block: usize, threads: Threads) -> Result<Self> {
        let (n, block) = (p.n_rows(), block.max(2));
        if p.n_columns() != n {
            return Err(Error::LengthMismatch {
                what: "columns of a square matrix",
                expected: n,
                found: p.n_columns(),
            });
        }
        Ok(Self {
            base: p,
            n,
            pending: Matrix::zeros(n, block),
            signs: Vec::with_capacity(block),
            threads,
            coefficients: Matrix::zeros(block, 2),
            scratch: Matrix::zeros(n, 2),
        })
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n
    }

    /// How many vectors are pending.
    pub fn n_pending(&self) -> usize {
        self.signs.len()
    }

    /// `out` ← P e_i.
    ///
    /// # Panics
    /// If `out` has not as many entries as there are rows.
    pub fn column(&self, i: usize, out: &mut [f64]) {
        assert_eq!(out.len(), self.n, "one entry per row");
        self.base_column(i, out);
        vectorise(
            #[inline(always)]
            || {
                for (k, sign) in self.signs.iter().enumerate() {
                    let w = &self.pending.column(k)[..self.n];
                    axpy(sign * w[i], w, out);
                }
            },
        );
    }

    /// P_ij.
    pub fn get(&self, i: usize, j: usize) -> f64 {
        let pending = self.signs.iter().enumerate().map(|(k, sign)| {
            let w = self.pending.column(k);
            sign * w[i] * w[j]
        });
        self.base[(i.max(j), i.min(j))] + pending.sum::<f64>()
    }

    /// `out` ← P`x`, one pass over the triangle.
    ///
    /// # Panics
    /// If `x` or `out` has not as many entries as there are rows.
    pub fn multiply(&self, x: &[f64], out: &mut [f64]) {
        let n = self.n;
        assert!(x.len() == n && out.len() == n, "one entry per row");
        out.fill(0.0);
        vectorise(
            #[inline(always)]
            || {
                for j in 0..n {
                    let column = &self.base.column(j)[j..n];
                    axpy(x[j], column, &mut out[j..]);
                    out[j] += dot(&column[1..], &x[j + 1..]);
                }
                for (k, sign) in self.signs.iter().enumerate() {
                    let w = &self.pending.column(k)[..n];
                    axpy(sign * dot(w, x), w, out);
                }
            },
        );
    }

    /// A ← A + `sigma`·`v``v`ᵀ.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] if A would not be any more, [`Error::LengthMismatch`].
    pub fn rank_one(&mut self, sigma: f64, v: &[f64]) -> Result<()> {
        if v.len() != self.n {
            return Err(Error::LengthMismatch { what: "length of the vector", expected: self.n, found: v.len() });
        }
        let mut image = vec![0.0; self.n];
        self.multiply(v, &mut image);
        let pivot = 1.0 + sigma * dot(v, &image);
        if !(pivot > 0.0) {
            return Err(Error::NotPositiveDefinite { row: 0 });
        }
        let scale = (sigma.abs() / pivot).sqrt();
        image.iter_mut().for_each(|x| *x *= scale);
        self.push(-sigma.signum(), &image);
        Ok(())
    }

    /// Deletes row and column `i` of A; the last one takes its place.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there is no such row.
    pub fn swap_remove(&mut self, i: usize) -> Result<()> {
        self.check_index(i)?;
        let mut column = vec![0.0; self.n];
        self.column(i, &mut column);
        let root = column[i].sqrt();
        column.iter_mut().for_each(|f| *f /= root);
        self.push(-1.0, &column);
        self.drop_row(i);
        Ok(())
    }

    /// Merges features `i` and `j` of A = ZᵀZ + `delta2`·I into `i`; the last one takes the place of `j`. See the
    /// module's description and [`crate::linalg::Inverse::merge`].
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] if `i` = `j`, [`Error::LengthMismatch`] if there is no such row,
    /// [`Error::NotPositiveDefinite`] if A is not of that form or P has drifted too far; nothing is changed then.
    pub fn merge(&mut self, i: usize, j: usize, delta2: f64) -> Result<Merge<'_>> {
        self.check_index(i)?;
        self.check_index(j)?;
        if i == j {
            return Err(Error::InvalidParameter { name: "j", value: j as f64, expected: "another feature than i" });
        }
        self.read_pair(i, j);
        let n = self.n;
        let (left, right) = self.scratch.as_mut_slice().split_at_mut(n);
        let merge = Merge::complete(i, j, delta2, left, &mut right[..n])?;
        let (gap, shrink) = (merge.gap, merge.shrink);
        let (down, up) = merge.squares();
        if self.signs.len() + 2 > self.pending.n_columns() {
            self.flush();
        }
        self.push(-1.0, &down);
        self.push(1.0, &up);
        self.drop_row(j);
        let (difference, merged) = self.scratch.as_slice().split_at(n);
        Ok(Merge { i, j, delta2, difference, merged: &merged[..n], gap, shrink })
    }

    /// Applies what is pending to the base, as one symmetric matrix product.
    pub fn flush(&mut self) {
        let (n, k) = (self.n, self.signs.len());
        if k == 0 {
            return;
        }
        let mut signed = self.pending.block(n, k).to_owned();
        for (j, sign) in self.signs.iter().enumerate() {
            if *sign < 0.0 {
                signed.column_mut(j).iter_mut().for_each(|w| *w = -*w);
            }
        }
        let w = self.pending.block(n, k);
        gemm_lower(1.0, w, signed.view().t(), Into::Add, self.base.block_mut(n, n), self.threads);
        self.signs.clear();
    }

    /// The whole inverse, both triangles.
    pub fn to_matrix(&mut self) -> Matrix {
        self.flush();
        let mut out = self.base.block(self.n, self.n).to_owned();
        out.mirror_lower();
        out
    }

    /// Replaces P by one computed anew; its lower triangle counts.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if its size is another.
    pub fn refresh(&mut self, p: Matrix) -> Result<()> {
        if p.n_rows() != self.n {
            return Err(Error::LengthMismatch { what: "rows of the inverse", expected: self.n, found: p.n_rows() });
        }
        *self = Self::new(p, self.pending.n_columns(), self.threads)?;
        Ok(())
    }

    /// ‖AP − I‖ in the Frobenius norm, estimated by two random ±1 vectors; A is given by its products. Compare it with
    /// n·ε·cond(A), and [`refresh`](Self::refresh) when it is larger.
    pub fn residual(&self, mut multiply_a: impl FnMut(&[f64], &mut [f64])) -> f64 {
        let mut image = vec![0.0; self.n];
        crate::linalg::drift::probe(self.n, self.n as u64, |v, out| {
            self.multiply(v, &mut image);
            multiply_a(&image, out);
            out.iter_mut().zip(v).for_each(|(o, v)| *o -= v);
        })
    }

    fn base_column(&self, i: usize, out: &mut [f64]) {
        let rows = self.base.n_rows();
        let numbers = self.base.as_slice();
        for (r, out) in out.iter_mut().enumerate().take(i) {
            *out = numbers[r * rows + i];
        }
        out[i..].copy_from_slice(&self.base.column(i)[i..self.n]);
    }

    /// The scratch columns ← P(e_i − e_j) and P e_i, correcting both in one pass over the pending vectors.
    fn read_pair(&mut self, i: usize, j: usize) {
        let (n, k) = (self.n, self.signs.len());
        // The scratch follows n, so that its columns lie one after the other.
        let mut scratch = std::mem::take(&mut self.scratch).into_vec();
        scratch.resize(2 * n, 0.0);
        let (left, right) = scratch.split_at_mut(n);
        self.base_column(j, left);
        self.base_column(i, right);
        left.iter_mut().zip(&*right).for_each(|(l, r)| *l = r - *l);
        for (c, sign) in self.signs.iter().enumerate() {
            let w = self.pending.column(c);
            self.coefficients[(c, 0)] = sign * (w[i] - w[j]);
            self.coefficients[(c, 1)] = sign * w[i];
        }
        let mut scratch = Matrix::from_column_major(scratch, n, 2).expect("two columns were just sized");
        let coefficients = self.coefficients.block(k, 2);
        gemm(1.0, self.pending.block(n, k), coefficients, Into::Add, scratch.view_mut(), Threads::ONE);
        self.scratch = scratch;
    }

    fn push(&mut self, sign: f64, w: &[f64]) {
        if self.signs.len() == self.pending.n_columns() {
            self.flush();
        }
        self.pending.column_mut(self.signs.len())[..self.n].copy_from_slice(w);
        self.signs.push(sign);
    }

    /// Forgets row and column `i` of P; the last one takes its place.
    fn drop_row(&mut self, i: usize) {
        let last = self.n - 1;
        for r in 0..i {
            self.base[(i, r)] = self.base[(last, r)];
        }
        for r in i + 1..last {
            self.base[(r, i)] = self.base[(last, r)];
        }
        self.base[(i, i)] = self.base[(last, last)];
        for k in 0..self.signs.len() {
            self.pending[(i, k)] = self.pending[(last, k)];
        }
        self.n = last;
    }

    fn check_index(&self, i: usize) -> Result<()> {
        if i < self.n {
            Ok(())
        } else {
            Err(Error::LengthMismatch { what: "rows of the matrix", expected: i + 1, found: self.n })
        }
    }
}
