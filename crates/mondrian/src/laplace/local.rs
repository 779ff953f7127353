//! Prediction from the nearest rows alone: kriging in a neighbourhood, simple and ordinary (docs/design.md, "The tuned
//! Laplace kernel").
//!
//! With A = K + α/w on the m rows nearest to a query, nearest first, A = LLᵀ, u = L⁻¹k, o = L⁻¹1 and v = L⁻¹t, simple
//! kriging predicts uᵀv and ordinary kriging uᵀv + (1 − oᵀu)·oᵀv/oᵀo. The first m' numbers of u, o and v belong to the m'
//! nearest rows, so that one factorisation gives the predictions of every smaller neighbourhood: that is how m is chosen.

use serde::{Deserialize, Serialize};

use crate::parallel::prelude::*;

use crate::laplace::objective::Loss;
use crate::laplace::solve::loss_of;
use crate::laplace::tiles::Tiles;
use crate::laplace::{KernelRows, PackedRows};
use crate::linalg::{Cholesky, Matrix, MatrixMut, Threads, dot};
use crate::process::NodeKey;
use crate::{Error, Result};

/// Which mean the neighbours are taken to vary about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kriging {
    /// The mean of all training rows.
    Simple,
    /// One of their own, unknown.
    Ordinary,
}

/// How a query is predicted from the rows nearest to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalSettings {
    /// m.
    pub n_neighbors: usize,
    /// Simple or ordinary.
    pub kriging: Kriging,
}

/// The sizes of a neighbourhood that are tried.
const SIZES: [usize; 7] = [16, 32, 64, 96, 128, 192, 256];
/// The largest factor from a doubling's gain to the next one's.
const MOST_FALLING: f64 = 0.7;
/// Queries whose neighbours are held at a time.
const QUERIES: usize = 4096;

/// Training rows with their centred targets, and the form in which near ones are found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalRows<'a> {
    pub(crate) rows: &'a KernelRows,
    pub(crate) packed: &'a PackedRows,
    /// One column per output, less its centre.
    pub(crate) targets: &'a Matrix,
    pub(crate) centre: &'a [f64],
    /// The noise of a row is α over its weight.
    pub(crate) weights: &'a [f64],
    pub(crate) alpha: f64,
    pub(crate) threads: Threads,
}

/// What leaving out some rows, one at a time, has shown.
pub(crate) struct LeftOut {
    pub(crate) settings: LocalSettings,
    /// Target less prediction, a row for each of the rows.
    pub(crate) residuals: Matrix,
    /// 1/(A⁻¹)_ii of each of the rows, A = K + α/w of all rows: what all rows would leave unexplained of it.
    pub(crate) variances: Vec<f64>,
}

/// What the neighbours of one query say: u, o and v of the module's text, one after the other.
struct System(Matrix);

impl System {
    fn predict(&self, output: usize, LocalSettings { n_neighbors: m, kriging }: LocalSettings) -> f64 {
        let (u, o, v) = (&self.0.column(0)[..m], &self.0.column(1)[..m], &self.0.column(2 + output)[..m]);
        let (mean, sum) = (dot(u, v), dot(o, o));
        if kriging == Kriging::Simple || !(sum > 0.0) { mean } else { mean + (1.0 - dot(o, u)) * dot(o, v) / sum }
    }

    /// 1 − uᵀu of a quarter, half and all of the nearest rows.
    fn unexplained(&self, m: usize) -> [f64; 3] {
        [m.div_ceil(4), m.div_ceil(2), m].map(|m| (1.0 - dot(&self.0.column(0)[..m], &self.0.column(0)[..m])).max(0.0))
    }
}

/// What all rows would leave unexplained of some, from what a quarter, half and all of their nearest rows do: gains per
/// doubling of the neighbourhood are taken to go on falling by the same factor, on average over the rows.
fn variances_of_all(unexplained: &[[f64; 3]], are_all: bool) -> Vec<f64> {
    let sum = |k: usize| unexplained.iter().map(|row| row[k]).sum::<f64>();
    let (quarter, half, whole) = (sum(0), sum(1), sum(2));
    let (first, second) = (quarter - half, half - whole);
    let is_falling = first > 0.0 && second > 0.0 && whole > 0.0 && !are_all;
    // Gains that hardly fall would go on for ever.
    let factor = if is_falling { (second / first).min(MOST_FALLING) } else { 0.0 };
    let share = if is_falling { (1.0 - second * factor / (1.0 - factor) / whole).max(0.5) } else { 1.0 };
    unexplained.iter().map(|row| share * row[2]).collect()
}

impl LocalRows<'_> {
    fn n_outputs(&self) -> usize {
        self.targets.n_columns()
    }

    /// Leaves out each of `chosen` by its number and predicts it from its neighbours: the size of the neighbourhood, unless
    /// it is given, and the kind of kriging are those with the least loss.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] if α is far too small for the rows.
    pub(crate) fn leave_out(
        &self,
        chosen: &[usize],
        n_neighbors: Option<usize>,
        may_be_ordinary: bool,
        loss: Loss,
    ) -> Result<LeftOut> {
        let n_others = self.rows.n_rows() - 1;
        if n_others == 0 {
            let settings = LocalSettings { n_neighbors: 1, kriging: Kriging::Simple };
            let residuals = Matrix::zeros(chosen.len(), self.n_outputs());
            let variances = chosen.iter().map(|&i| 1.0 + self.alpha / self.weights[i]).collect();
            return Ok(LeftOut { settings, residuals, variances });
        }
        let most = n_neighbors.unwrap_or(SIZES[SIZES.len() - 1]).min(n_others);
        let sizes: Vec<usize> = match n_neighbors {
            Some(_) => vec![most],
            None => SIZES.iter().copied().filter(|m| *m < most).chain([most]).collect(),
        };
        let kinds: &[Kriging] =
            if may_be_ordinary { &[Kriging::Simple, Kriging::Ordinary] } else { &[Kriging::Simple] };
        let candidate = |kriging| sizes.iter().map(move |m| LocalSettings { n_neighbors: *m, kriging });
        let candidates: Vec<LocalSettings> = kinds.iter().flat_map(|kind| candidate(*kind)).collect();
        let own: Vec<u32> = chosen.iter().map(|&i| i as u32).collect();
        let queries = self.rows.select(chosen);
        let outputs = self.n_outputs();
        let per_row = self.each(&queries, most, Some(&own), |system| {
            let of = |settings: &LocalSettings| (0..outputs).map(|c| system.predict(c, *settings)).collect::<Vec<_>>();
            (candidates.iter().map(of).collect::<Vec<_>>(), system.unexplained(most))
        })?;
        let noise = |k: usize| self.alpha / self.weights[chosen[k]];
        let unexplained: Vec<[f64; 3]> =
            per_row.iter().enumerate().map(|(k, row)| row.1.map(|u| u + noise(k))).collect();
        let variances = variances_of_all(&unexplained, most == n_others);
        let weights: Vec<f64> = chosen.iter().map(|&i| self.weights[i]).collect();
        let targets = Matrix::from_fn(chosen.len(), outputs, |k, c| self.targets[(chosen[k], c)] + self.centre[c]);
        let residuals = |at: usize| {
            Matrix::from_fn(chosen.len(), outputs, |k, c| self.targets[(chosen[k], c)] - per_row[k].0[at][c])
        };
        let mut best: Option<(f64, usize)> = None;
        for at in 0..candidates.len() {
            let value = loss_of(loss, &residuals(at), &targets, &weights);
            if best.is_none_or(|(least, _)| value < least) {
                best = Some((value, at));
            }
        }
        let at = best.map_or(0, |(_, at)| at);
        let mut settings = candidates[at];
        if let Some(given) = n_neighbors {
            settings.n_neighbors = given.max(1);
        } else if settings.n_neighbors == n_others {
            // All others of a row are all rows of a query.
            settings.n_neighbors += 1;
        }
        Ok(LeftOut { settings, residuals: residuals(at), variances })
    }

    /// Predictions, one column per output, the centre included; row `own[i]`, where given, is left out for query i.
    ///
    /// # Errors
    /// [`Error::Incompatible`] if the queries have other columns, [`Error::NotPositiveDefinite`].
    pub(crate) fn predict(&self, queries: &KernelRows, own: Option<&[u32]>, settings: LocalSettings) -> Result<Matrix> {
        let m = settings.n_neighbors.min(self.rows.n_rows() - usize::from(own.is_some()));
        let (settings, outputs) = (LocalSettings { n_neighbors: m, ..settings }, self.n_outputs());
        let found = self.each(queries, m, own, |system| {
            (0..outputs).map(|c| self.centre[c] + system.predict(c, settings)).collect::<Vec<_>>()
        })?;
        Ok(Matrix::from_fn(found.len(), outputs, |i, c| found[i][c]))
    }

    /// The weights of all rows in the prediction of each query, row-major, without that of the centre.
    pub(crate) fn smoother(&self, queries: &KernelRows, settings: LocalSettings) -> Result<Vec<f64>> {
        let n = self.rows.n_rows();
        let m = settings.n_neighbors.min(n);
        let neighbors = self.packed.nearest(queries, m, None, self.threads)?;
        let mut out = vec![0.0; n * queries.n_rows()];
        for (q, out) in out.chunks_exact_mut(n).enumerate() {
            let numbers = numbers_of(neighbors.of(q));
            let (factor, mut both) = neighborhood(self.rows, queries, q, &numbers, |i| self.alpha / self.weights[i])?;
            both.resize(2 * m, 1.0);
            factor.solve_in_place(MatrixMut::new(&mut both, m, 2))?;
            let (w, ones) = both.split_at(m);
            let (rest, sum) = (1.0 - w.iter().sum::<f64>(), ones.iter().sum::<f64>());
            let share = if settings.kriging == Kriging::Ordinary && sum > 0.0 { rest / sum } else { 0.0 };
            for ((number, w), one) in numbers.iter().zip(w).zip(ones) {
                out[*number] = w + share * one;
            }
        }
        Ok(out)
    }

    /// Asks something of the system of every query.
    fn each<T: Send>(
        &self,
        queries: &KernelRows,
        m: usize,
        own: Option<&[u32]>,
        ask: impl Fn(&System) -> T + Sync,
    ) -> Result<Vec<T>> {
        let mut all = Vec::with_capacity(queries.n_rows());
        for first in (0..queries.n_rows()).step_by(QUERIES) {
            let part: Vec<usize> = (first..(first + QUERIES).min(queries.n_rows())).collect();
            let queries = queries.select(&part);
            let own = own.map(|own| &own[first..first + part.len()]);
            let neighbors = self.packed.nearest(&queries, m, own, self.threads)?;
            let one = |i: usize| -> Result<T> { Ok(ask(&self.system(&queries, i, &numbers_of(neighbors.of(i)))?)) };
            if self.threads == Threads::ONE {
                for i in 0..part.len() {
                    all.push(one(i)?);
                }
            } else {
                let found: Result<Vec<T>> = (0..part.len()).into_par_iter().with_min_len(8).map(one).collect();
                all.extend(found?);
            }
        }
        Ok(all)
    }

    fn system(&self, queries: &KernelRows, query: usize, numbers: &[usize]) -> Result<System> {
        let (factor, k) = neighborhood(self.rows, queries, query, numbers, |i| self.alpha / self.weights[i])?;
        // u, o and v in one triangular solve.
        let mut right = Matrix::from_fn(numbers.len(), 2 + self.n_outputs(), |i, c| match c {
            0 => k[i],
            1 => 1.0,
            _ => self.targets[(numbers[i], c - 2)],
        });
        factor.half_solve_in_place(right.view_mut())?;
        Ok(System(right))
    }
}

/// Numbers of neighbours.
pub(crate) fn numbers_of(neighbors: &[u32]) -> Vec<usize> {
    neighbors.iter().map(|&i| i as usize).collect()
}

/// The factor of K + noise on some rows, and the kernel between them and a query.
///
/// Rows that repeat with an α below rounding need a little more on the diagonal.
pub(crate) fn neighborhood(
    rows: &KernelRows,
    queries: &KernelRows,
    query: usize,
    numbers: &[usize],
    noise: impl Fn(usize) -> f64,
) -> Result<(Cholesky, Vec<f64>)> {
    let tiles = Tiles::new(&rows.select(numbers));
    let own = Tiles::new(&queries.select(&[query]));
    let mut k = vec![0.0; numbers.len()];
    tiles.fill_column(own.row(0), 0, &mut k);
    let noise: Vec<f64> = numbers.iter().map(|&i| noise(i)).collect();
    Ok((factor_with_jitter(&tiles.gram_lower(Threads::ONE), &noise)?, k))
}

/// The factor of a kernel matrix plus noise; more noise where that is not positive.
pub(crate) fn factor_with_jitter(gram: &Matrix, noise: &[f64]) -> Result<Cholesky> {
    let mut jitter = 0.0;
    loop {
        let mut a = gram.clone();
        for (i, noise) in noise.iter().enumerate() {
            a[(i, i)] = 1.0 + noise + jitter;
        }
        match Cholesky::new(a, Threads::ONE) {
            Err(Error::NotPositiveDefinite { .. }) if jitter < 1e-4 => jitter = (10.0 * jitter).max(1e-10),
            factor => return factor,
        }
    }
}

/// At most `count` of n numbers, by key, ascending.
pub(crate) fn some_rows(n: usize, count: usize, key: NodeKey) -> Vec<usize> {
    if n <= count {
        return (0..n).collect();
    }
    // A partial shuffle, which remembers only the places it has touched.
    let mut moved = std::collections::BTreeMap::new();
    let mut rows: Vec<usize> = (0..count)
        .map(|k| {
            let at = k + (key.fork(k as u64).draw(0).uniform() * (n - k) as f64) as usize;
            let at = at.min(n - 1);
            let own = moved.get(&k).copied().unwrap_or(k);
            moved.insert(at, own).unwrap_or(at)
        })
        .collect();
    rows.sort_unstable();
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{Into, gemm};

    fn draw(seed: u64, n: usize) -> Vec<f64> {
        (0..n).map(|i| NodeKey::root(seed, i as u64).draw(0).normal()).collect()
    }

    fn sample(n: usize) -> (KernelRows, Matrix) {
        let rows = KernelRows::of_axes(draw(1, 2 * n), 2).unwrap();
        let noise = draw(2, n);
        let y = |i: usize| (2.0 * rows.axes()[2 * i]).sin() + 0.1 * noise[i];
        let targets = Matrix::from_fn(n, 2, |i, c| if c == 0 { y(i) } else { -2.0 * y(i) });
        (rows, targets)
    }

    /// Asks something of local rows with weight 1 and centres 3 and −6.
    fn with_local<T>(rows: &KernelRows, targets: &Matrix, alpha: f64, ask: impl Fn(LocalRows<'_>) -> T) -> T {
        let (packed, weights) = (PackedRows::new(rows), vec![1.0; rows.n_rows()]);
        let (centre, threads) = (&[3.0, -6.0][..targets.n_columns()], Threads::ONE);
        ask(LocalRows { rows, packed: &packed, targets, centre, weights: &weights, alpha, threads })
    }

    /// Weights of neighbours by the textbook's formulas.
    fn textbook(rows: &KernelRows, numbers: &[usize], query: &KernelRows, alpha: f64, ordinary: bool) -> Vec<f64> {
        let m = numbers.len();
        let a = Matrix::from_fn(m, m, |i, j| rows.entry(numbers[i], numbers[j]) + if i == j { alpha } else { 0.0 });
        let inverse = Cholesky::new(a, Threads::ONE).unwrap().inverse();
        let k = Matrix::from_fn(m, 1, |i, _| (-query.distance_to(0, rows, numbers[i])).exp());
        let mut w = Matrix::zeros(m, 1);
        gemm(1.0, &inverse, &k, Into::Replace, w.view_mut(), Threads::ONE);
        let row_sums: Vec<f64> = (0..m).map(|i| inverse.column(i).iter().sum()).collect();
        let (total, rest) = (row_sums.iter().sum::<f64>(), 1.0 - w.as_slice().iter().sum::<f64>());
        let share = if ordinary { rest / total } else { 0.0 };
        w.into_vec().into_iter().zip(&row_sums).map(|(w, s)| w + share * s).collect()
    }

    #[test]
    fn predictions_are_those_of_the_textbook_for_every_size() {
        let (rows, targets) = sample(300);
        let query = KernelRows::of_axes(vec![0.1, -0.3], 2).unwrap();
        with_local(&rows, &targets, 0.05, |local| {
            for (m, kriging) in
                [(1, Kriging::Simple), (40, Kriging::Ordinary), (100, Kriging::Simple), (100, Kriging::Ordinary)]
            {
                let neighbors = local.packed.nearest(&query, m, None, Threads::ONE).unwrap();
                let numbers = numbers_of(neighbors.of(0));
                let w = textbook(&rows, &numbers, &query, 0.05, kriging == Kriging::Ordinary);
                let settings = LocalSettings { n_neighbors: m, kriging };
                let found = local.predict(&query, None, settings).unwrap();
                for output in 0..2 {
                    let mean: f64 = numbers.iter().zip(&w).map(|(&i, w)| w * targets[(i, output)]).sum();
                    assert!((found[(0, output)] - local.centre[output] - mean).abs() < 1e-10);
                }
                let smoother = local.smoother(&query, settings).unwrap();
                assert!(numbers.iter().zip(&w).all(|(&i, w)| (smoother[i] - w).abs() < 1e-10));
                assert_eq!(smoother.iter().filter(|w| **w != 0.0).count(), m);
            }
        });
    }

    #[test]
    fn with_all_rows_as_neighbours_it_is_the_exact_solution() {
        let (rows, targets) = sample(120);
        let a = Matrix::from_fn(120, 120, |i, j| rows.entry(i, j) + if i == j { 0.1 } else { 0.0 });
        let inverse = Cholesky::new(a, Threads::ONE).unwrap().inverse();
        let mut dual = Matrix::zeros(120, 2);
        gemm(1.0, &inverse, &targets, Into::Replace, dual.view_mut(), Threads::ONE);
        let queries = KernelRows::of_axes(draw(7, 20), 2).unwrap();
        let settings = LocalSettings { n_neighbors: 120, kriging: Kriging::Simple };
        with_local(&rows, &targets, 0.1, |local| {
            let found = local.predict(&queries, None, settings).unwrap();
            assert_eq!(
                LocalRows { threads: Threads::up_to(2), ..local }.predict(&queries, None, settings).unwrap(),
                found
            );
            for i in 0..10 {
                let exact: f64 = (0..120).map(|j| (-queries.distance_to(i, &rows, j)).exp() * dual[(j, 0)]).sum();
                assert!((found[(i, 0)] - 3.0 - exact).abs() < 1e-9 && (found[(i, 1)] + 6.0 + 2.0 * exact).abs() < 1e-9);
            }
            // Residuals of rows left out are those of the closed form.
            let left_out = local.leave_out(&[4, 70], Some(119), false, Loss::Squared).unwrap();
            for (k, i) in [4, 70].into_iter().enumerate() {
                assert!((left_out.residuals[(k, 0)] - dual[(i, 0)] / inverse[(i, i)]).abs() < 1e-9);
            }
        });
    }

    #[test]
    fn rows_that_repeat_and_single_rows_are_predicted() {
        let rows = KernelRows::of_axes(vec![0.5; 60], 2).unwrap();
        let targets = Matrix::from_fn(30, 1, |_, _| 2.0);
        with_local(&rows, &targets, 1e-18, |local| {
            let left_out = local.leave_out(&[0, 1, 2], None, true, Loss::Squared).unwrap();
            let found = local.predict(&rows.select(&[0]), None, left_out.settings).unwrap();
            assert!((found[(0, 0)] - 5.0).abs() < 1e-6);
        });
        let one = rows.select(&[0]);
        with_local(&one, &Matrix::from_column(vec![0.0]), 0.1, |local| {
            let left_out = local.leave_out(&[0], None, true, Loss::Squared).unwrap();
            assert_eq!(left_out.settings.n_neighbors, 1);
            assert_eq!(local.predict(&one, None, left_out.settings).unwrap()[(0, 0)], 3.0);
        });
    }

    #[test]
    fn some_rows_are_distinct() {
        let rows = some_rows(1000, 600, NodeKey::root(1, 2));
        assert!(rows.windows(2).all(|pair| pair[0] < pair[1]) && rows.len() == 600 && rows[599] < 1000);
        assert_eq!(some_rows(3, 9, NodeKey::root(1, 2)), [0, 1, 2]);
    }
}
