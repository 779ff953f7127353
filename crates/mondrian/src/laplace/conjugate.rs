//! The exact solution for many rows: preconditioned conjugate gradients, kernel entries made on the fly
//! (docs/design.md, "More than about 20 000 rows").
//!
//! The preconditioner is FFᵀ + B: F = K_nC·L_C⁻ᵀ carries what some rows, the centres, explain of all others, and B what is
//! left between rows of one leaf of a k-d tree, with the noise. Its inverse is by the Woodbury formula. All of it is in
//! double precision: in single, the largest eigenvectors alone would be off by more than α.

use crate::parallel::prelude::*;

use crate::laplace::KernelRows;
use crate::laplace::local::some_rows;
use crate::laplace::packed::{BLOCK, PackedRows, near_order};
use crate::laplace::tiles::Tiles;
use crate::linalg::{Cholesky, Into, Matrix, MatrixMut, MatrixRef, Threads, dot, gemm, gemm_lower};
use crate::process::NodeKey;
use crate::{Error, Result};

/// How the system is solved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConjugateOptions {
    /// Stop when every residual is at most this share of its right-hand side.
    pub tolerance: f64,
    /// The most products with the kernel.
    pub max_products: usize,
    /// Centres of the preconditioner.
    pub n_centres: usize,
    /// Which rows are centres.
    pub seed: u64,
    /// Threads; results do not depend on them.
    pub threads: Threads,
}

impl Default for ConjugateOptions {
    fn default() -> Self {
        Self { tolerance: 1e-3, max_products: 100, n_centres: 1000, seed: 0, threads: Threads::ONE }
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct ConjugateSolution {
    /// (K + α/w)⁻¹ times the right-hand sides.
    pub dual: Matrix,
    /// Products with the kernel.
    pub products: usize,
    /// The largest ‖b − Ax‖/‖b‖ of all right-hand sides, from a product of its own.
    pub residual: f64,
    /// Centres used: none if they explain too little.
    pub n_centres: usize,
}

/// Rows of a leaf of the preconditioner.
const LEAF: usize = 4 * BLOCK;
/// Groups of leaves whose sums are added up one after the other, whatever the number of threads.
const SUMS: usize = 4;
/// What is added to α on the diagonal of the preconditioner's leaves.
const JITTER: f64 = 2e-5;

/// Bytes that solving n rows with so many centres and right-hand sides needs beyond the rows.
pub(crate) fn bytes_needed(n: usize, n_centres: usize, n_outputs: usize) -> f64 {
    let (n, r, c) = (n as f64, n_centres as f64, n_outputs as f64);
    8.0 * (n * r + n * LEAF as f64 + (SUMS as f64 + 3.0) * r * r + 8.0 * n * c)
}

/// Solves (K + diag(`noise`))·X = `right`, from `start` if there is one.
///
/// # Errors
/// [`Error::LengthMismatch`], [`Error::NotPositiveDefinite`] if the noise is too small for the centres.
pub fn conjugate_solve(
    rows: &KernelRows,
    noise: &[f64],
    right: &Matrix,
    start: Option<&Matrix>,
    options: ConjugateOptions,
) -> Result<ConjugateSolution> {
    let (n, outputs) = (rows.n_rows(), right.n_columns());
    let lengths = [("right-hand sides", right.n_rows()), ("noise", noise.len())];
    let lengths = lengths.into_iter().chain(start.map(|start| ("starting values", start.n_rows())));
    for (what, found) in lengths {
        if found != n {
            return Err(Error::LengthMismatch { what, expected: n, found });
        }
    }
    // From here on everything is in the order of the leaves.
    let order: Vec<usize> = near_order(rows).into_iter().map(|i| i as usize).collect();
    let sorted = |matrix: &Matrix| Matrix::from_fn(n, outputs, |i, c| matrix[(order[i], c)]);
    let system = System::new(rows.select(&order), order.iter().map(|&i| noise[i]).collect(), options.threads);
    let preconditioner = Preconditioner::new(&system, options)?;
    let right = sorted(right);
    let norms: Vec<f64> = (0..outputs).map(|c| dot(right.column(c), right.column(c)).sqrt()).collect();
    let mut x = start.map_or_else(|| Matrix::zeros(n, outputs), sorted);
    let (mut rest, mut products) = (right.clone(), 0);
    if start.is_some() {
        system.subtract_product(&x, &mut rest)?;
        products += 1;
    }
    let largest = |rest: &Matrix| {
        let share = |c: usize| {
            let square = dot(rest.column(c), rest.column(c));
            if norms[c] > 0.0 { square.sqrt() / norms[c] } else { square.sqrt() }
        };
        (0..outputs).map(share).fold(0.0, f64::max)
    };
    // What single precision lost is in the true residual, from which a further run starts.
    let mut residual = largest(&rest);
    while residual > options.tolerance && products < options.max_products {
        let before = residual;
        // A little beyond the goal, so that the true residual is within it.
        let (goal, most) = (0.7 * options.tolerance, options.max_products - products - 1);
        let (multiply, precondition) = (|x: &Matrix| system.product(x), |x: &Matrix| preconditioner.apply(x));
        products += descend(multiply, precondition, &mut x, rest, &norms, goal, most)?.0;
        rest = right.clone();
        system.subtract_product(&x, &mut rest)?;
        products += 1;
        residual = largest(&rest);
        if residual > 0.9 * before {
            break;
        }
    }
    let mut dual = Matrix::zeros(n, outputs);
    for c in 0..outputs {
        for (&row, x) in order.iter().zip(x.column(c)) {
            dual[(row, c)] = *x;
        }
    }
    Ok(ConjugateSolution { dual, products, residual, n_centres: preconditioner.n_centres() })
}

/// One run of conjugate gradients on a residual, all right-hand sides side by side, until each residual is at most `goal` of
/// its norm or after `most` products; gives the number of products and whether the goal was reached.
pub(crate) fn descend(
    multiply: impl Fn(&Matrix) -> Result<Matrix>,
    precondition: impl Fn(&Matrix) -> Result<Matrix>,
    x: &mut Matrix,
    mut rest: Matrix,
    norms: &[f64],
    goal: f64,
    most: usize,
) -> Result<(usize, bool)> {
    let outputs = rest.n_columns();
    let mut direction = precondition(&rest)?;
    let mut energy: Vec<f64> = (0..outputs).map(|c| dot(rest.column(c), direction.column(c))).collect();
    for products in 1..=most {
        let image = multiply(&direction)?;
        for (c, energy) in energy.iter().enumerate() {
            let curvature = dot(direction.column(c), image.column(c));
            if !(curvature > 0.0 && *energy > 0.0) {
                continue;
            }
            let step = energy / curvature;
            x.column_mut(c).iter_mut().zip(direction.column(c)).for_each(|(x, d)| *x += step * d);
            rest.column_mut(c).iter_mut().zip(image.column(c)).for_each(|(r, q)| *r -= step * q);
        }
        if (0..outputs).all(|c| dot(rest.column(c), rest.column(c)).sqrt() <= goal * norms[c]) {
            return Ok((products, true));
        }
        let mut next = precondition(&rest)?;
        for (c, energy) in energy.iter_mut().enumerate() {
            let new = dot(rest.column(c), next.column(c));
            let turn = if *energy > 0.0 { new / *energy } else { 0.0 };
            next.column_mut(c).iter_mut().zip(direction.column(c)).for_each(|(n, d)| *n += turn * d);
            *energy = new;
        }
        direction = next;
    }
    Ok((most, false))
}

/// K + diag(noise), rows in the order of the leaves.
struct System {
    rows: KernelRows,
    packed: PackedRows,
    noise: Vec<f64>,
    threads: Threads,
}

impl System {
    fn new(rows: KernelRows, noise: Vec<f64>, threads: Threads) -> Self {
        let order = (0..rows.n_rows() as u32).collect();
        Self { packed: PackedRows::in_order(&rows, order), rows, noise, threads }
    }

    fn product(&self, x: &Matrix) -> Result<Matrix> {
        let mut out = self.packed.product(x, self.threads)?;
        for c in 0..x.n_columns() {
            let column = out.column_mut(c).iter_mut().zip(x.column(c)).zip(&self.noise);
            column.for_each(|((o, x), noise)| *o += noise * x);
        }
        Ok(out)
    }

    fn subtract_product(&self, x: &Matrix, from: &mut Matrix) -> Result<()> {
        let product = self.product(x)?;
        from.as_mut_slice().iter_mut().zip(product.as_slice()).for_each(|(f, p)| *f -= p);
        Ok(())
    }
}

/// (FFᵀ + B)⁻¹.
struct Preconditioner {
    /// Fᵀ: one column per row of the system; no rows without centres.
    f: Matrix,
    leaves: Vec<Cholesky>,
    /// The factor of I + FᵀB⁻¹F.
    inner: Option<Cholesky>,
    threads: Threads,
}

impl Preconditioner {
    fn new(system: &System, options: ConjugateOptions) -> Result<Self> {
        let n = system.rows.n_rows();
        let centres = some_rows(n, options.n_centres.min(n / 2), NodeKey::root(options.seed, 0).fork(0x6365_6E74));
        let mut f = factor_of_centres(system, &centres)?;
        // Where rows are far from all centres, the leaves alone do better.
        let explained = |i: &usize| dot(f.column(*i), f.column(*i));
        let sample: Vec<usize> = (0..n).step_by(n.div_ceil(2000).max(1)).collect();
        if sample.iter().map(explained).sum::<f64>() < 0.1 * sample.len() as f64 {
            f = Matrix::zeros(0, n);
        }
        let r = f.n_rows();
        let starts: Vec<usize> = (0..n).step_by(LEAF).collect();
        let group = |starts: &[usize]| -> Result<(Vec<Cholesky>, Matrix)> {
            let mut sum = Matrix::zeros(r, r);
            let mut leaves = Vec::new();
            for &first in starts {
                let own = first..(first + LEAF).min(n);
                let factor = leaf(system, f.view().columns(own.clone()), own.clone())?;
                if r > 0 {
                    let mut half = f.view().columns(own).to_owned().transposed();
                    factor.half_solve_in_place(half.view_mut())?;
                    gemm_lower(1.0, half.view().t(), &half, Into::Add, sum.view_mut(), Threads::ONE);
                }
                leaves.push(factor);
            }
            Ok((leaves, sum))
        };
        let chunks = starts.chunks(starts.len().div_ceil(SUMS).max(1));
        let groups: Vec<Result<(Vec<Cholesky>, Matrix)>> = if options.threads == Threads::ONE {
            chunks.map(group).collect()
        } else {
            chunks.collect::<Vec<_>>().into_par_iter().map(group).collect()
        };
        let mut inner = Matrix::identity(r);
        let mut leaves = Vec::new();
        for part in groups {
            let (own, sum) = part?;
            leaves.extend(own);
            inner.as_mut_slice().iter_mut().zip(sum.as_slice()).for_each(|(i, s)| *i += s);
        }
        let inner = if r > 0 { Some(Cholesky::new(inner, Threads::ONE)?) } else { None };
        Ok(Self { f, leaves, inner, threads: options.threads })
    }

    fn n_centres(&self) -> usize {
        self.f.n_rows()
    }

    /// B⁻¹v.
    fn solve_leaves(&self, v: &Matrix) -> Result<Matrix> {
        let (n, outputs) = (v.n_rows(), v.n_columns());
        let one = |(k, factor): (usize, &Cholesky)| {
            let m = factor.n_rows();
            let mut part = Matrix::from_fn(m, outputs, |i, c| v[(k * LEAF + i, c)]);
            factor.solve_in_place(part.view_mut()).map(|()| part)
        };
        let parts: Vec<Result<Matrix>> = if self.threads == Threads::ONE {
            self.leaves.iter().enumerate().map(one).collect()
        } else {
            self.leaves.par_iter().enumerate().map(one).collect()
        };
        let mut out = Matrix::zeros(n, outputs);
        for (k, part) in parts.into_iter().enumerate() {
            let part = part?;
            for c in 0..outputs {
                out.column_mut(c)[k * LEAF..][..part.n_rows()].copy_from_slice(part.column(c));
            }
        }
        Ok(out)
    }

    fn apply(&self, v: &Matrix) -> Result<Matrix> {
        let mut out = self.solve_leaves(v)?;
        let Some(inner) = &self.inner else { return Ok(out) };
        let (n, outputs, r) = (v.n_rows(), v.n_columns(), self.f.n_rows());
        // Fᵀu by groups of columns, added up in their order.
        let width = n.div_ceil(SUMS).max(1);
        let ranges: Vec<_> = (0..n).step_by(width).map(|first| first..(first + width).min(n)).collect();
        let down = |range: &std::ops::Range<usize>| {
            let part = Matrix::from_fn(range.len(), outputs, |i, c| out[(range.start + i, c)]);
            let mut sums = Matrix::zeros(r, outputs);
            gemm(1.0, self.f.view().columns(range.clone()), &part, Into::Replace, sums.view_mut(), Threads::ONE);
            sums
        };
        let up = |range: &std::ops::Range<usize>, inside: &Matrix| {
            let mut part = Matrix::zeros(range.len(), outputs);
            gemm(1.0, self.f.view().columns(range.clone()).t(), inside, Into::Replace, part.view_mut(), Threads::ONE);
            part
        };
        let is_one = self.threads == Threads::ONE;
        let sums: Vec<Matrix> =
            if is_one { ranges.iter().map(down).collect() } else { ranges.par_iter().map(down).collect() };
        let mut inside = Matrix::zeros(r, outputs);
        for sum in &sums {
            inside.as_mut_slice().iter_mut().zip(sum.as_slice()).for_each(|(i, s)| *i += s);
        }
        inner.solve_in_place(inside.view_mut())?;
        let parts: Vec<Matrix> = if is_one {
            ranges.iter().map(|range| up(range, &inside)).collect()
        } else {
            ranges.par_iter().map(|range| up(range, &inside)).collect()
        };
        let mut back = Matrix::zeros(n, outputs);
        for (range, part) in ranges.iter().zip(&parts) {
            for c in 0..outputs {
                back.column_mut(c)[range.clone()].copy_from_slice(part.column(c));
            }
        }
        let back = self.solve_leaves(&back)?;
        out.as_mut_slice().iter_mut().zip(back.as_slice()).for_each(|(o, b)| *o -= b);
        Ok(out)
    }
}

/// Rows of one task when the centres are met.
const CHUNK: usize = 256;

/// Fᵀ = L_C⁻¹·K_Cn.
fn factor_of_centres(system: &System, centres: &[usize]) -> Result<Matrix> {
    let (n, r) = (system.rows.n_rows(), centres.len());
    if r == 0 {
        return Ok(Matrix::zeros(0, n));
    }
    let centres = Tiles::new(&system.rows.select(centres));
    let mut gram = centres.gram_lower(system.threads);
    for i in 0..r {
        gram[(i, i)] += 1e-5;
    }
    let factor = Cholesky::new(gram, Threads::ONE)?;
    let mut f = Matrix::zeros(r, n);
    let chunk = |(k, out): (usize, &mut [f64])| -> Result<()> {
        let columns = out.len() / r;
        let numbers: Vec<usize> = (k * CHUNK..k * CHUNK + columns).collect();
        let others = Tiles::new(&system.rows.select(&numbers));
        for (j, column) in out.chunks_exact_mut(r).enumerate() {
            centres.fill_column(others.row(j), 0, column);
        }
        factor.half_solve_in_place(MatrixMut::new(out, r, columns))
    };
    if system.threads == Threads::ONE {
        f.as_mut_slice().chunks_mut(r * CHUNK).enumerate().try_for_each(chunk)?;
    } else {
        f.as_mut_slice().par_chunks_mut(r * CHUNK).enumerate().try_for_each(chunk)?;
    }
    Ok(f)
}

/// The factor of K − FFᵀ + noise on the rows of a leaf. A preconditioner may be off, but must be positive.
fn leaf(system: &System, f: MatrixRef<'_>, own: std::ops::Range<usize>) -> Result<Cholesky> {
    let numbers: Vec<usize> = own.clone().collect();
    let mut gram = Tiles::new(&system.rows.select(&numbers)).gram_lower(Threads::ONE);
    if f.n_rows() > 0 {
        gemm_lower(-1.0, f.t(), f, Into::Add, gram.view_mut(), Threads::ONE);
    }
    let mut jitter = JITTER;
    loop {
        let mut a = gram.clone();
        for (i, noise) in system.noise[own.clone()].iter().enumerate() {
            a[(i, i)] += noise + jitter;
        }
        match Cholesky::new(a, Threads::ONE) {
            Err(Error::NotPositiveDefinite { .. }) if jitter < 1.0 => jitter *= 10.0,
            factor => return factor,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(seed: u64, n: usize) -> Vec<f64> {
        (0..n).map(|i| NodeKey::root(seed, i as u64).draw(0).normal()).collect()
    }

    fn sample(n: usize) -> (KernelRows, Matrix) {
        let rows = KernelRows::of_axes(draw(1, 3 * n).iter().map(|x| 0.5 * x).collect(), 3).unwrap();
        let noise = draw(2, 2 * n);
        let right = Matrix::from_fn(n, 2, |i, c| (4.0 * rows.axes()[3 * i + c]).sin() + 0.2 * noise[2 * i + c]);
        (rows, right)
    }

    fn by_cholesky(rows: &KernelRows, noise: &[f64], right: &Matrix) -> Matrix {
        let mut a = Tiles::new(rows).gram_lower(Threads::ONE);
        noise.iter().enumerate().for_each(|(i, noise)| a[(i, i)] += noise);
        let mut x = right.clone();
        Cholesky::new(a, Threads::ONE).unwrap().solve_in_place(x.view_mut()).unwrap();
        x
    }

    #[test]
    fn solutions_predict_as_those_of_cholesky() {
        let (rows, right) = sample(1300);
        let noise: Vec<f64> = (0..1300).map(|i| 0.05 / (1.0 + f64::from(i % 3))).collect();
        let exact = by_cholesky(&rows, &noise, &right);
        let options = ConjugateOptions { n_centres: 100, tolerance: 1e-5, ..ConjugateOptions::default() };
        let found = conjugate_solve(&rows, &noise, &right, None, options).unwrap();
        assert!(found.residual <= 1e-5 && found.products < 60, "{} {}", found.residual, found.products);
        let packed = PackedRows::new(&rows);
        let queries = KernelRows::of_axes(draw(5, 300).iter().map(|x| 0.5 * x).collect(), 3).unwrap();
        let predict = |dual: &Matrix| packed.cross_product(&queries, dual, Threads::ONE).unwrap();
        let (a, b) = (predict(&found.dual), predict(&exact));
        let worst = a.as_slice().iter().zip(b.as_slice()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst < 1e-3, "{worst}");
        // The same bits for any number of threads.
        let options = ConjugateOptions { threads: Threads::up_to(2), ..options };
        assert_eq!(conjugate_solve(&rows, &noise, &right, None, options).unwrap(), found);
        // A start at the solution needs one product.
        let again = conjugate_solve(&rows, &noise, &right, Some(&found.dual), options).unwrap();
        assert_eq!((again.products, again.n_centres), (1, 100));
    }

    #[test]
    fn centres_that_explain_nothing_are_left_out() {
        let (rows, right) = sample(700);
        let far = KernelRows::of_axes(rows.axes().iter().map(|x| 300.0 * x).collect(), 3).unwrap();
        let options = ConjugateOptions { n_centres: 20, ..ConjugateOptions::default() };
        let found = conjugate_solve(&far, &[0.1; 700], &right, None, options).unwrap();
        assert_eq!(found.n_centres, 0);
        assert!(found.residual <= 1e-3);
        assert!(conjugate_solve(&far, &[0.1; 3], &right, None, options).is_err());
        let tiny = conjugate_solve(&rows.select(&[4]), &[0.5], &Matrix::from_column(vec![3.0]), None, options).unwrap();
        assert!((tiny.dual[(0, 0)] - 2.0).abs() < 1e-3);
    }
}
