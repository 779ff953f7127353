//! The solution for many rows: exact by conjugate gradients, local, or the mean of both, as held-out rows decide.

use serde::{Deserialize, Serialize};

use crate::laplace::conjugate::{ConjugateOptions, bytes_needed, conjugate_solve};
use crate::laplace::local::{LocalModel, LocalOptions, means, some_rows};
use crate::laplace::{KernelRows, PackedRows};
use crate::linalg::{Matrix, Threads};
use crate::process::NodeKey;
use crate::{Error, Result};

/// Which solver is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SolverChoice {
    /// Exact to `max_exact_rows`; beyond, what predicts held-out rows best of what time and memory allow.
    #[default]
    Auto,
    /// One factorisation.
    Exact,
    /// The exact solution by conjugate gradients.
    Cg,
    /// Each query from its nearest rows.
    Local,
}

/// Which solver gave the solution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SolverUsed {
    /// One factorisation.
    Exact,
    /// Conjugate gradients.
    Cg,
    /// Nearest rows.
    Local,
    /// The mean of conjugate gradients and nearest rows.
    Mean,
}

impl SolverUsed {
    /// Its name, as parameters have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Cg => "cg",
            Self::Local => "local",
            Self::Mean => "mean",
        }
    }
}

/// What conjugate gradients reported.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ConjugateReport {
    /// Products with the kernel.
    pub products: usize,
    /// The largest relative residual.
    pub residual: f64,
}

/// How many rows are solved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LargeOptions {
    /// Which solver.
    pub choice: SolverChoice,
    /// Whether predictions vary about the mean of the targets, or about 0.
    pub is_centred: bool,
    /// Bytes that may be allocated beyond the rows.
    pub max_memory: f64,
    /// Which rows are centres, chosen on and held out.
    pub seed: u64,
    /// Threads; results do not depend on them.
    pub threads: Threads,
}

/// A solution for many rows. The rows, targets and weights are those of the local model.
#[derive(Debug, Clone)]
pub struct LargeSolution {
    pub(crate) local: LocalModel,
    /// Weights of the rows by conjugate gradients, and the rows in the form their products need.
    pub(crate) dual: Option<(Matrix, PackedRows)>,
    pub(crate) centre: Vec<f64>,
    pub(crate) used: SolverUsed,
    pub(crate) report: Option<ConjugateReport>,
    /// Mean squared error on held-out rows, of exact, local and their mean, where they were compared.
    pub(crate) compared: Option<[f64; 3]>,
}

/// Rows held out for the choice.
const HELD_OUT: usize = 2000;
/// Entries times columns up to which conjugate gradients are tried unasked: about a minute on two cores.
const MOST_WORK: f64 = 2.5e10;
/// Centres of the preconditioner, and the fewest that make sense.
const CENTRES: usize = 1000;
const FEWEST_CENTRES: usize = 100;

/// Solves for every column of `targets`.
///
/// # Errors
/// Those of [`LocalModel::fit`] and of [`conjugate_solve`]; [`Error::TooLarge`] if conjugate gradients are asked for and
/// need more memory than there may be.
pub fn solve_large(
    rows: KernelRows,
    targets: Matrix,
    weights: Vec<f64>,
    alpha: f64,
    options: LargeOptions,
) -> Result<LargeSolution> {
    let n = rows.n_rows();
    let local_options = LocalOptions {
        fit_intercept: options.is_centred,
        n_neighbors: None,
        seed: options.seed,
        threads: options.threads,
    };
    let centres = centres_within(n, targets.n_columns(), options.max_memory);
    let width = (rows.n_axes() + rows.n_levels() + rows.n_directions() + 8) as f64;
    let wants_cg = match options.choice {
        SolverChoice::Local => false,
        SolverChoice::Cg | SolverChoice::Exact => true,
        SolverChoice::Auto => centres.is_some() && 0.5 * (n as f64).powi(2) * width <= MOST_WORK,
    };
    if !wants_cg {
        let local = LocalModel::fit(rows, targets, weights, alpha, local_options)?;
        let centre = local.settings.centres.clone();
        return Ok(LargeSolution { local, dual: None, centre, used: SolverUsed::Local, report: None, compared: None });
    }
    let Some(n_centres) = centres else {
        let expected = bytes_needed(n, FEWEST_CENTRES, targets.n_columns());
        return Err(Error::TooLarge { what: "bytes of conjugate gradients", expected, limit: options.max_memory });
    };
    let cg =
        ConjugateOptions { n_centres, seed: options.seed, threads: options.threads, ..ConjugateOptions::default() };
    let (mut compared, mut start) = (None, None);
    if options.choice == SolverChoice::Auto && n > 4 * HELD_OUT {
        let (errors, dual) = compare(&rows, &targets, &weights, alpha, local_options, cg)?;
        (compared, start) = (Some(errors), Some(dual));
    }
    let used = match compared {
        Some([_, local, mean]) if local < mean.min(compared.map_or(local, |c| c[0])) => SolverUsed::Local,
        Some([exact, _, mean]) if mean < exact => SolverUsed::Mean,
        _ => SolverUsed::Cg,
    };
    let local = LocalModel::fit(rows, targets, weights, alpha, local_options)?;
    let centre = local.settings.centres.clone();
    if used == SolverUsed::Local {
        return Ok(LargeSolution { local, dual: None, centre, used, report: None, compared });
    }
    let (right, noise) = system(local.targets(), local.weights(), &centre, alpha);
    let found = conjugate_solve(local.rows(), &noise, &right, start.as_ref(), cg)?;
    let report = Some(ConjugateReport { products: found.products, residual: found.residual });
    let packed = PackedRows::new(local.rows());
    Ok(LargeSolution { local, dual: Some((found.dual, packed)), centre, used, report, compared })
}

/// The most centres for which conjugate gradients stay within the memory; none if too few do.
fn centres_within(n: usize, n_outputs: usize, max_memory: f64) -> Option<usize> {
    let fits = |r: &usize| bytes_needed(n, *r, n_outputs) <= max_memory;
    [CENTRES, 700, 500, 300, 200, FEWEST_CENTRES].into_iter().find(fits)
}

/// Centred targets, and the noise of each row.
fn system(targets: &Matrix, weights: &[f64], centre: &[f64], alpha: f64) -> (Matrix, Vec<f64>) {
    let right = Matrix::from_fn(targets.n_rows(), targets.n_columns(), |i, c| targets[(i, c)] - centre[c]);
    (right, weights.iter().map(|w| alpha / w).collect())
}

/// Mean squared errors on held-out rows of exact, local and their mean; and the exact solution without those rows, zero on
/// them.
fn compare(
    rows: &KernelRows,
    targets: &Matrix,
    weights: &[f64],
    alpha: f64,
    local_options: LocalOptions,
    cg: ConjugateOptions,
) -> Result<([f64; 3], Matrix)> {
    let (n, outputs) = (rows.n_rows(), targets.n_columns());
    let held_out = some_rows(n, HELD_OUT, NodeKey::root(cg.seed, 0).fork(0x6865_6C64));
    let mut is_held_out = vec![false; n];
    held_out.iter().for_each(|&i| is_held_out[i] = true);
    let kept: Vec<usize> = (0..n).filter(|&i| !is_held_out[i]).collect();
    let part = rows.select(&kept);
    let part_targets = Matrix::from_fn(kept.len(), outputs, |i, c| targets[(kept[i], c)]);
    let part_weights: Vec<f64> = kept.iter().map(|&i| weights[i]).collect();
    let centre = if local_options.fit_intercept { means(&part_targets, &part_weights) } else { vec![0.0; outputs] };
    let (right, noise) = system(&part_targets, &part_weights, &centre, alpha);
    let found = conjugate_solve(&part, &noise, &right, None, cg)?;
    let queries = rows.select(&held_out);
    let mut exact = PackedRows::new(&part).cross_product(&queries, &found.dual, cg.threads)?;
    for (c, centre) in centre.iter().enumerate() {
        exact.column_mut(c).iter_mut().for_each(|p| *p += centre);
    }
    let local = LocalModel::fit(part, part_targets, part_weights, alpha, local_options)?;
    let local = local.predict(&queries, cg.threads)?;
    let error = |predict: &dyn Fn(usize, usize) -> f64| -> f64 {
        let of = |k: usize, c: usize| weights[held_out[k]] * (targets[(held_out[k], c)] - predict(k, c)).powi(2);
        let sum: f64 = (0..held_out.len()).map(|k| (0..outputs).map(|c| of(k, c)).sum::<f64>()).sum();
        sum / held_out.len() as f64
    };
    let errors = [
        error(&|k, c| exact[(k, c)]),
        error(&|k, c| local[(k, c)]),
        error(&|k, c| 0.5 * (exact[(k, c)] + local[(k, c)])),
    ];
    let mut dual = Matrix::zeros(n, outputs);
    for c in 0..outputs {
        for (&row, x) in kept.iter().zip(found.dual.column(c)) {
            dual[(row, c)] = *x;
        }
    }
    Ok((errors, dual))
}

impl LargeSolution {
    /// Which solver gave it.
    pub fn used(&self) -> SolverUsed {
        self.used
    }

    /// The rows, their targets, and how they predict their neighbours.
    pub fn local(&self) -> &LocalModel {
        &self.local
    }

    /// What conjugate gradients reported, where they were used.
    pub fn report(&self) -> Option<ConjugateReport> {
        self.report
    }

    /// Mean squared errors on held-out rows of exact, local and their mean, where they were compared.
    pub fn compared(&self) -> Option<[f64; 3]> {
        self.compared
    }

    /// Predictions, one column per output.
    pub fn predict(&self, queries: &KernelRows, threads: Threads) -> Result<Matrix> {
        let Some((dual, packed)) = &self.dual else { return self.local.predict(queries, threads) };
        let mut exact = packed.cross_product(queries, dual, threads)?;
        let local = if self.used == SolverUsed::Mean { Some(self.local.predict(queries, threads)?) } else { None };
        for (c, centre) in self.centre.iter().enumerate() {
            for (i, p) in exact.column_mut(c).iter_mut().enumerate() {
                *p += centre;
                if let Some(local) = &local {
                    *p = 0.5 * (*p + local[(i, c)]);
                }
            }
        }
        Ok(exact)
    }

    /// Predictions and variances of a new target, noise included: the neighbours give the variance of every solver.
    pub fn predict_with_variance(&self, queries: &KernelRows, threads: Threads) -> Result<(Matrix, Matrix)> {
        let (local, variance) = self.local.predict_with_variance(queries, threads)?;
        if self.used == SolverUsed::Local {
            Ok((local, variance))
        } else {
            Ok((self.predict(queries, threads)?, variance))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(n: usize) -> (KernelRows, Matrix) {
        let draw = |k: u64, i: usize| NodeKey::root(k, i as u64).draw(0).normal();
        let rows = KernelRows::of_axes((0..2 * n).map(|i| draw(1, i)).collect(), 2).unwrap();
        let target = |i: usize| 1.0 + (2.0 * rows.axes()[2 * i]).sin() + 0.1 * draw(2, i);
        let targets = Matrix::from_fn(n, 1, |i, _| target(i));
        (rows, targets)
    }

    fn options(choice: SolverChoice) -> LargeOptions {
        LargeOptions { choice, is_centred: true, max_memory: 1e9, seed: 3, threads: Threads::ONE }
    }

    #[test]
    fn every_solver_predicts_and_says_which_it_was() {
        let (rows, targets) = sample(900);
        let queries = rows.select(&[0, 5, 9]);
        let solve = |options| solve_large(rows.clone(), targets.clone(), vec![1.0; 900], 0.02, options);
        let cg = solve(options(SolverChoice::Cg)).unwrap();
        let local = solve(options(SolverChoice::Local)).unwrap();
        assert_eq!((cg.used.name(), local.used.name()), ("cg", "local"));
        assert!(cg.report.unwrap().residual < 1e-3 && local.report.is_none());
        let (a, b) = (cg.predict(&queries, Threads::ONE).unwrap(), local.predict(&queries, Threads::ONE).unwrap());
        for i in 0..3 {
            assert!((a[(i, 0)] - b[(i, 0)]).abs() < 0.1);
        }
        let small = LargeOptions { max_memory: 1e4, ..options(SolverChoice::Cg) };
        assert!(matches!(solve(small), Err(Error::TooLarge { .. })));
        let automatic = solve(LargeOptions { max_memory: 1e4, ..options(SolverChoice::Auto) }).unwrap();
        assert_eq!(automatic.used, SolverUsed::Local);
    }

    #[test]
    fn held_out_rows_are_predicted_by_all_three() {
        let (rows, targets) = sample(2600);
        let cg = ConjugateOptions { n_centres: 50, seed: 3, ..ConjugateOptions::default() };
        let local = LocalOptions { fit_intercept: true, n_neighbors: Some(20), seed: 3, threads: Threads::ONE };
        let ([exact, near, mean], dual) = compare(&rows, &targets, &vec![1.0; 2600], 0.02, local, cg).unwrap();
        assert!(exact < 0.2 && near < 0.3 && mean <= exact.max(near));
        assert_eq!(dual.column(0).iter().filter(|x| **x == 0.0).count(), HELD_OUT);
    }
}
