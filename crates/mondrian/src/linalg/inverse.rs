//! The inverse of a symmetric positive definite matrix under change (report, appendix A, "Updating matrix inverses").

use crate::linalg::drift::Watch;
use crate::linalg::{Cholesky, Drift, Into, Matrix, MatrixRef, Merge, Symmetric, Threads, dot, gemm, gemv};
use crate::{Error, Result};

/// A symmetric positive definite matrix A and its inverse P, updated together in O(n²) a change.
///
/// A failed change leaves both as they were.
///
/// ```
/// use mondrian::Matrix;
/// use mondrian::internals::linalg::{Inverse, Threads};
/// let mut inverse = Inverse::new(Matrix::identity(3), Threads::ONE)?;
/// inverse.rank_one(1.0, &[1.0, 0.0, 0.0])?;      // A[0][0] = 2
/// assert!((inverse.column(0)[0] - 0.5).abs() < 1e-15);
/// inverse.swap_remove(1)?;
/// inverse.border(&[0.0, 0.0], 4.0)?;
/// assert_eq!(inverse.column(2), [0.0, 0.0, 0.25]);
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Inverse {
    a: Symmetric,
    p: Symmetric,
    watch: Watch,
    threads: Threads,
    /// Scratch of the last merge: u and p of the module documentation of `deferred`.
    difference: Vec<f64>,
    merged: Vec<f64>,
}

/// Below this, a pivot 1 + σvᵀPv has lost most of its digits: the new matrix is factored instead.
const LOST_PIVOT: f64 = 1e-7;

impl Inverse {
    /// Inverts `a`, of which the lower triangle counts.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`]; [`Error::LengthMismatch`] if it is not square.
    pub fn new(a: Matrix, threads: Threads) -> Result<Self> {
        let a = Symmetric::new(a)?;
        let p = invert(&a, threads)?;
        Ok(Self { a, p, watch: Watch::default(), threads, difference: Vec::new(), merged: Vec::new() })
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.a.n_rows()
    }

    /// P e_i.
    pub fn column(&self, i: usize) -> &[f64] {
        self.p.column(i)
    }

    /// The inverse.
    pub fn view(&self) -> MatrixRef<'_> {
        self.p.view()
    }

    /// The matrix itself.
    pub fn matrix(&self) -> &Symmetric {
        &self.a
    }

    /// What drift control has seen.
    pub fn drift(&self) -> Drift {
        self.watch.drift()
    }

    /// `out` ← P`x`.
    pub fn multiply(&self, x: &[f64], out: &mut [f64]) {
        self.p.multiply(x, out);
    }

    /// A⁻¹b: Pb and one step of iterative refinement with A, which takes the drift out of the answer.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`].
    pub fn solve(&self, b: &[f64]) -> Result<Vec<f64>> {
        self.check_length(b)?;
        let n = self.n_rows();
        let (mut x, mut residual) = (vec![0.0; n], b.to_vec());
        self.p.multiply(b, &mut x);
        gemv(-1.0, self.a.view(), &x, Into::Add, &mut residual);
        gemv(1.0, self.p.view(), &residual, Into::Add, &mut x);
        Ok(x)
    }

    /// A ← A + `sigma`·`v``v`ᵀ (Sherman and Morrison).
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] if A would not be any more, [`Error::LengthMismatch`].
    pub fn rank_one(&mut self, sigma: f64, v: &[f64]) -> Result<()> {
        self.check_length(v)?;
        let mut image = vec![0.0; v.len()];
        self.p.multiply(v, &mut image);
        let pivot = 1.0 + sigma * dot(v, &image);
        let (sign, root) = (sigma.signum(), sigma.abs().sqrt());
        let step: Vec<f64> = v.iter().map(|v| v * root).collect();
        if !(pivot > LOST_PIVOT) {
            return self.replace(|a| a.add_square(sign, &step));
        }
        let scale = root / pivot.sqrt();
        image.iter_mut().for_each(|x| *x *= scale);
        self.a.add_square(sign, &step);
        self.p.add_square(-sign, &image);
        self.keep_watch(pivot)
    }

    /// A ← A + V diag(σ) Vᵀ for the columns of `v` (Woodbury).
    ///
    /// Positive weights first, then the negative ones: with |σ|½ taken into V each half needs the Cholesky factor of
    /// the small matrix I ± VᵀPV, which exists exactly if the result is positive definite.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] if A would not be any more, [`Error::LengthMismatch`].
    pub fn rank_k(&mut self, sigma: &[f64], v: MatrixRef<'_>) -> Result<()> {
        let n = self.n_rows();
        if v.n_rows() != n {
            return Err(Error::LengthMismatch { what: "rows of the update", expected: n, found: v.n_rows() });
        }
        if sigma.len() != v.n_columns() {
            return Err(Error::LengthMismatch {
                what: "weights of the update",
                expected: v.n_columns(),
                found: sigma.len(),
            });
        }
        let part = |keep: fn(f64) -> bool| {
            let columns: Vec<usize> = (0..sigma.len()).filter(|&k| keep(sigma[k])).collect();
            Matrix::from_fn(n, columns.len(), |i, k| v.get(i, columns[k]) * sigma[columns[k]].abs().sqrt())
        };
        let (up, down) = (part(|s| s > 0.0), part(|s| s < 0.0));
        let before = (up.n_columns() > 0 && down.n_columns() > 0).then(|| (self.a.clone(), self.p.clone()));
        let done = self.half_rank_k(1.0, &up).and_then(|()| self.half_rank_k(-1.0, &down));
        if let (Err(_), Some((a, p))) = (&done, before) {
            (self.a, self.p) = (a, p);
        }
        done
    }

    fn half_rank_k(&mut self, sign: f64, v: &Matrix) -> Result<()> {
        let (n, k) = (self.n_rows(), v.n_columns());
        if k == 0 {
            return Ok(());
        }
        let mut image = Matrix::zeros(n, k);
        gemm(1.0, self.p.view(), v, Into::Replace, image.view_mut(), self.threads);
        let mut small = Matrix::identity(k);
        gemm(sign, v.view().t(), &image, Into::Add, small.view_mut(), Threads::ONE);
        let weakest = |small: &Cholesky| (0..k).map(|i| small.lower()[(i, i)].powi(2)).fold(f64::INFINITY, f64::min);
        let small = Cholesky::new(small, Threads::ONE).ok().filter(|small| weakest(small) > LOST_PIVOT);
        let Some(small) = small else {
            let threads = self.threads;
            return self.replace(|a| a.add_squares(sign, v.view(), threads));
        };
        // P V (I ± VᵀPV)⁻¹ VᵀP is the square of L⁻¹VᵀP.
        let mut half = image.transposed();
        small.half_solve_in_place(half.view_mut())?;
        let half = half.transposed();
        self.a.add_squares(sign, v.view(), self.threads);
        self.p.add_squares(-sign, half.view(), self.threads);
        self.keep_watch(weakest(&small))
    }

    /// Deletes row and column `i` of A; the last one takes its place, as in `Vec::swap_remove`.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there is no such row.
    pub fn swap_remove(&mut self, i: usize) -> Result<()> {
        self.check_index(i)?;
        let root = self.p.column(i)[i].sqrt();
        let step: Vec<f64> = self.p.column(i).iter().map(|f| f / root).collect();
        self.p.add_square(-1.0, &step);
        self.p.swap_remove(i);
        self.a.swap_remove(i);
        // The determinant changes by h = P_ii; it weakens nothing.
        self.keep_watch(1.0)
    }

    /// Appends the row and column `b` with `d` on the diagonal.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] if the Schur complement is not positive, [`Error::LengthMismatch`].
    pub fn border(&mut self, b: &[f64], d: f64) -> Result<()> {
        self.check_length(b)?;
        let mut column = vec![0.0; b.len()];
        self.p.multiply(b, &mut column);
        let schur = d - dot(b, &column);
        let mut border = b.to_vec();
        border.push(d);
        if !(schur > LOST_PIVOT * d) {
            return self.replace(|a| a.push(&border));
        }
        let root = schur.sqrt();
        column.iter_mut().for_each(|x| *x /= root);
        self.p.add_square(1.0, &column);
        column.iter_mut().for_each(|x| *x /= -root);
        column.push(1.0 / schur);
        self.p.push(&column);
        self.a.push(&border);
        self.keep_watch(schur / d)
    }

    /// Merges features `i` and `j` of A = ZᵀZ + `delta2`·I into feature `i`: their columns of Z add up, so A's rows and
    /// columns do, with one `delta2` too many on the diagonal. The last feature takes the place of `j`.
    ///
    /// One symmetric rank-two update of P (docs/design.md, "The path, exact at every cut"). The answer carries
    /// solutions θ = P b along.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] if `i` = `j`, [`Error::LengthMismatch`] if there is no such row,
    /// [`Error::NotPositiveDefinite`] if A is not of that form.
    pub fn merge(&mut self, i: usize, j: usize, delta2: f64) -> Result<Merge<'_>> {
        self.check_index(i)?;
        self.check_index(j)?;
        if i == j {
            return Err(Error::InvalidParameter { name: "j", value: j as f64, expected: "another feature than i" });
        }
        self.difference.clear();
        self.difference.extend(self.p.column(i).iter().zip(self.p.column(j)).map(|(a, b)| a - b));
        self.merged.clear();
        self.merged.extend_from_slice(self.p.column(i));
        let merge = Merge::complete(i, j, delta2, &self.difference, &mut self.merged)?;
        let (gap, shrink) = (merge.gap, merge.shrink);
        let (down, up) = merge.squares();
        self.p.exchange_square(&down, &up);
        self.p.swap_remove(j);
        self.a.merge(i, j, -delta2);
        self.keep_watch(shrink)?;
        Ok(Merge { i, j, delta2, difference: &self.difference, merged: &self.merged, gap, shrink })
    }

    /// Computes P anew from A, counted in [`Drift::refreshes`].
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] if A is not, to working precision.
    pub fn refresh(&mut self) -> Result<()> {
        self.p = invert(&self.a, self.threads)?;
        self.watch.refreshed();
        Ok(())
    }

    /// Changes A and factors the result; what a change does when updating P would lose too many digits.
    fn replace(&mut self, change: impl FnOnce(&mut Symmetric)) -> Result<()> {
        let mut a = self.a.clone();
        change(&mut a);
        self.p = invert(&a, self.threads)?;
        self.a = a;
        self.watch.refreshed();
        Ok(())
    }

    fn keep_watch(&mut self, pivot: f64) -> Result<()> {
        let n = self.n_rows();
        if !self.watch.note(pivot, n) {
            return Ok(());
        }
        let (a, p) = (&self.a, &self.p);
        let mut image = vec![0.0; n];
        let exceeded = self.watch.exceeded(n, a.norm_estimate() * p.norm_estimate(), |v, out| {
            p.multiply(v, &mut image);
            out.copy_from_slice(v);
            gemv(1.0, a.view(), &image, Into::Add, out);
            // out = v + APv so far.
            out.iter_mut().zip(v).for_each(|(o, v)| *o -= 2.0 * v);
        });
        if exceeded { self.refresh() } else { Ok(()) }
    }

    fn check_length(&self, v: &[f64]) -> Result<()> {
        if v.len() == self.n_rows() {
            Ok(())
        } else {
            Err(Error::LengthMismatch { what: "length of the vector", expected: self.n_rows(), found: v.len() })
        }
    }

    fn check_index(&self, i: usize) -> Result<()> {
        if i < self.n_rows() {
            Ok(())
        } else {
            Err(Error::LengthMismatch { what: "rows of the matrix", expected: i + 1, found: self.n_rows() })
        }
    }
}

fn invert(a: &Symmetric, threads: Threads) -> Result<Symmetric> {
    Symmetric::new(Cholesky::new(a.view().to_owned(), threads)?.inverse())
}
