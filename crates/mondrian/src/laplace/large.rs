//! The solution for many rows: exact by conjugate gradients, local, or the mean of both, as rows left out decide.

use serde::{Deserialize, Serialize};

use crate::laplace::conjugate::{ConjugateOptions, bytes_needed, conjugate_solve};
use crate::laplace::local::{LeftOut, LocalRows, LocalSettings};
use crate::laplace::objective::{Loss, means};
use crate::laplace::solve::{Solution, loss_of};
use crate::laplace::tiles::Tiles;
use crate::laplace::{KernelRows, PackedRows};
use crate::linalg::{Matrix, Threads, dot};
use crate::memory;
use crate::parallel::prelude::*;
use crate::{Error, Result};

/// Which solver is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SolverChoice {
    /// Exact to `max_exact_rows`; beyond, what predicts rows left out best of what time and memory allow.
    #[default]
    Auto,
    /// One factorisation, whatever the number of rows.
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

/// How all rows were solved.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SolverReport {
    /// Which solver gave the solution.
    pub used: SolverUsed,
    /// How queries are predicted from their nearest rows, unless there was one factorisation.
    pub local: Option<LocalSettings>,
    /// What conjugate gradients reported, where they were used.
    pub conjugate: Option<ConjugateReport>,
    /// Losses on rows left out of conjugate gradients, nearest rows and their mean, where they were compared: ½ ln of the
    /// mean squared error, or the mean log loss.
    pub compared: Option<[f64; 3]>,
    /// Rows at the last tuning: more may have been appended.
    pub n_tuned: usize,
}

impl SolverReport {
    /// That of one factorisation.
    pub(crate) fn exact(n_rows: usize) -> Self {
        Self { used: SolverUsed::Exact, local: None, conjugate: None, compared: None, n_tuned: n_rows }
    }
}

/// How many rows are solved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LargeOptions {
    pub(crate) choice: SolverChoice,
    /// Whether predictions vary about the mean of the targets, or about 0.
    pub(crate) is_centred: bool,
    pub(crate) n_neighbors: Option<usize>,
    pub(crate) loss: Loss,
    /// Which rows are centres and held out.
    pub(crate) seed: u64,
    pub(crate) threads: Threads,
}

/// Rows that are left out, one at a time or together, to see what predictions are worth: the first ones.
pub(crate) const LEFT_OUT: usize = 2000;
/// The relative residual of the solution over the share that rows left out are off by. Even if all of it came back in the
/// predictions, their squared error would grow by a thousandth.
const ENOUGH: f64 = 0.03;
const LEAST_TOLERANCE: f64 = 1e-5;
const MOST_TOLERANCE: f64 = 1e-2;
/// Entries times columns up to which conjugate gradients are tried unasked: about a minute on two cores.
const MOST_WORK: f64 = 5e10;
/// Centres of the preconditioner, those that do where the noise is a tenth of the kernel or more and few directions stand out of
/// it, and the fewest that make sense.
const CENTRES: usize = 1000;
const CENTRES_IN_NOISE: usize = 500;
const NOISY: f64 = 0.1;
const FEWEST_CENTRES: usize = 100;

/// Rows to be solved, their targets centred.
pub(crate) struct ManyRows<'a> {
    rows: &'a KernelRows,
    packed: PackedRows,
    targets: Matrix,
    centre: Vec<f64>,
    weights: &'a [f64],
    alpha: f64,
    options: LargeOptions,
}

impl<'a> ManyRows<'a> {
    /// Rows with all their outputs, in a keyed order: the first are a sample.
    pub(crate) fn new(
        rows: &'a KernelRows,
        targets: &Matrix,
        weights: &'a [f64],
        alpha: f64,
        options: LargeOptions,
    ) -> Self {
        let centre = if options.is_centred { means(targets, weights) } else { vec![0.0; targets.n_columns()] };
        let targets = Matrix::from_fn(targets.n_rows(), centre.len(), |i, c| targets[(i, c)] - centre[c]);
        Self { packed: PackedRows::new(rows), rows, targets, centre, weights, alpha, options }
    }

    fn local(&self) -> LocalRows<'_> {
        LocalRows {
            rows: self.rows,
            packed: &self.packed,
            targets: &self.targets,
            centre: &self.centre,
            weights: self.weights,
            alpha: self.alpha,
            threads: self.options.threads,
        }
    }

    /// The first rows predicted from their neighbours.
    pub(crate) fn leave_out(&self) -> Result<LeftOut> {
        let first: Vec<usize> = (0..self.rows.n_rows().min(LEFT_OUT)).collect();
        let LargeOptions { n_neighbors, is_centred, loss, .. } = self.options;
        self.local().leave_out(&first, n_neighbors, is_centred, loss)
    }

    /// The same rows with one of their outputs.
    pub(crate) fn with_output(self, output: usize) -> Self {
        let targets = Matrix::from_column(self.targets.column(output).to_vec());
        Self { targets, centre: vec![self.centre[output]], ..self }
    }

    /// Solves for all outputs.
    ///
    /// # Errors
    /// Those of [`conjugate_solve`]; [`Error::TooLarge`] if conjugate gradients are asked for and need more memory than there
    /// may be.
    pub(crate) fn solve(self) -> Result<Solution> {
        let (n, outputs, options) = (self.rows.n_rows(), self.targets.n_columns(), self.options);
        let most = if self.alpha < NOISY { CENTRES } else { CENTRES_IN_NOISE };
        let centres = centres_within(most, n, outputs, memory::limit());
        let width = (self.rows.n_axes() + self.rows.n_levels() + self.rows.n_directions() + 8 + 2 * outputs) as f64;
        let wants_cg = match options.choice {
            SolverChoice::Local => false,
            SolverChoice::Cg | SolverChoice::Exact => true,
            SolverChoice::Auto => centres.is_some() && 0.5 * (n as f64).powi(2) * width <= MOST_WORK,
        };
        let left_out = self.leave_out()?;
        let local = Some(left_out.settings);
        let mut report = SolverReport { used: SolverUsed::Local, local, conjugate: None, compared: None, n_tuned: n };
        if !wants_cg {
            return Ok(self.solution(Matrix::zeros(n, 0), left_out.residuals, report));
        }
        let Some(n_centres) = centres else {
            let expected = bytes_needed(n, FEWEST_CENTRES, outputs);
            return Err(Error::TooLarge { what: "bytes of conjugate gradients", expected, limit: memory::limit() });
        };
        let LargeOptions { seed, threads, .. } = options;
        let tolerance = (ENOUGH * self.share_off(&left_out.residuals)).clamp(LEAST_TOLERANCE, MOST_TOLERANCE);
        let cg = ConjugateOptions { tolerance, n_centres, seed, threads, ..ConjugateOptions::default() };
        let noise: Vec<f64> = self.weights.iter().map(|w| self.alpha / w).collect();
        let found = conjugate_solve(self.rows, &noise, &self.targets, None, cg)?;
        report.used = SolverUsed::Cg;
        report.conjugate = Some(ConjugateReport { products: found.products, residual: found.residual });
        let Compared { losses, residuals: [exact, near, mean] } = self.compare(&left_out, &found.dual);
        if options.choice == SolverChoice::Auto {
            report.compared = Some(losses);
            // What has not converged (α tiny, p near 2) says nothing about rows left out.
            let is_solved = found.residual <= 2.0 * tolerance;
            report.used = if is_solved { chosen(losses) } else { SolverUsed::Local };
        }
        let residuals = match report.used {
            SolverUsed::Local => {
                report.conjugate = None;
                return Ok(self.solution(Matrix::zeros(n, 0), near, report));
            }
            SolverUsed::Mean => mean,
            SolverUsed::Cg | SolverUsed::Exact => exact,
        };
        Ok(self.solution(found.dual, residuals, report))
    }

    /// How far off rows left out are, as a share of their targets: the least of all outputs.
    fn share_off(&self, residuals: &Matrix) -> f64 {
        let square = |column: &[f64]| column.iter().map(|x| x * x).sum::<f64>();
        let share = |c: usize| {
            let whole = square(&self.targets.column(c)[..residuals.n_rows()]);
            if whole > 0.0 { (square(residuals.column(c)) / whole).sqrt() } else { 1.0 }
        };
        (0..residuals.n_columns()).map(share).fold(1.0, f64::min)
    }

    fn solution(self, dual: Matrix, residuals: Matrix, report: SolverReport) -> Solution {
        Solution { dual, targets: self.targets, centre: self.centre, residuals, report }
    }

    /// Compares what both solvers say about the first rows, each left out.
    ///
    /// That of the exact solution is dual_i/(A⁻¹)_ii; the diagonal comes from each row's neighbours (`LeftOut::variances`), so
    /// that nothing has to be solved a second time without these rows.
    fn compare(&self, left_out: &LeftOut, dual: &Matrix) -> Compared {
        let (n, outputs) = (left_out.variances.len(), self.targets.n_columns());
        let near = left_out.residuals.clone();
        let exact = Matrix::from_fn(n, outputs, |k, c| dual[(k, c)] * left_out.variances[k]);
        let mean = Matrix::from_fn(n, outputs, |k, c| 0.5 * (exact[(k, c)] + near[(k, c)]));
        let whole = Matrix::from_fn(n, outputs, |k, c| self.targets[(k, c)] + self.centre[c]);
        let loss = |residuals: &Matrix| loss_of(self.options.loss, residuals, &whole, &self.weights[..n]);
        Compared { losses: [loss(&exact), loss(&near), loss(&mean)], residuals: [exact, near, mean] }
    }
}

/// What leaving out rows has shown, of conjugate gradients, nearest rows and their mean.
struct Compared {
    losses: [f64; 3],
    residuals: [Matrix; 3],
}

/// K(queries, rows)·dual. With weights so large that single precision would show, in double precision.
pub(crate) fn cross_product(
    rows: &KernelRows,
    packed: &PackedRows,
    queries: &KernelRows,
    dual: &Matrix,
    targets: &Matrix,
    threads: Threads,
) -> Result<Matrix> {
    let shows = |c: usize| {
        let size: f64 = dual.column(c).iter().map(|a| a * a).sum();
        let scale: f64 = targets.column(c).iter().map(|y| y * y).sum();
        // Rounding errors of single precision, independent of each other, over a thousandth of a typical target.
        f64::from(f32::EPSILON).powi(2) * size > 1e-6 * scale / rows.n_rows() as f64
    };
    if !(0..dual.n_columns()).any(shows) {
        return packed.cross_product(queries, dual, threads);
    }
    let (tiles, others) = (Tiles::new(rows), Tiles::new(queries));
    let one = |q: usize| {
        let mut kernel = vec![0.0; rows.n_rows()];
        tiles.fill_column(others.row(q), 0, &mut kernel);
        (0..dual.n_columns()).map(|c| dot(&kernel, dual.column(c))).collect::<Vec<f64>>()
    };
    let found: Vec<Vec<f64>> = if threads == Threads::ONE {
        (0..queries.n_rows()).map(one).collect()
    } else {
        (0..queries.n_rows()).into_par_iter().map(one).collect()
    };
    Ok(Matrix::from_fn(queries.n_rows(), dual.n_columns(), |q, c| found[q][c]))
}

/// The solver with the least loss of conjugate gradients, nearest rows and their mean; of equals the simplest to query.
fn chosen([exact, local, mean]: [f64; 3]) -> SolverUsed {
    if !(exact < local || mean < local) {
        SolverUsed::Local
    } else if mean < exact {
        SolverUsed::Mean
    } else {
        SolverUsed::Cg
    }
}

/// The most centres for which conjugate gradients stay within the memory; none if too few do.
fn centres_within(most: usize, n: usize, n_outputs: usize, max_memory: f64) -> Option<usize> {
    let fits = |r: &usize| *r <= most && bytes_needed(n, *r, n_outputs) <= max_memory;
    [CENTRES, 700, 500, 300, 200, FEWEST_CENTRES].into_iter().find(fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::NodeKey;

    fn sample(n: usize) -> (KernelRows, Matrix) {
        let draw = |k: u64, i: usize| NodeKey::root(k, i as u64).draw(0).normal();
        let rows = KernelRows::of_axes((0..2 * n).map(|i| draw(1, i)).collect(), 2).unwrap();
        let target = |i: usize| 1.0 + (2.0 * rows.axes()[2 * i]).sin() + 0.1 * draw(2, i);
        let targets = Matrix::from_fn(n, 1, |i, _| target(i));
        (rows, targets)
    }

    fn options(choice: SolverChoice) -> LargeOptions {
        let (n_neighbors, loss, threads) = (None, Loss::Squared, Threads::ONE);
        LargeOptions { choice, is_centred: true, n_neighbors, loss, seed: 3, threads }
    }

    #[test]
    fn every_solver_says_which_it_was_and_what_rows_left_out_cost() {
        let (rows, targets) = sample(900);
        let weights = vec![1.0; 900];
        let solve = |choice| ManyRows::new(&rows, &targets, &weights, 0.02, options(choice)).solve().unwrap();
        let (cg, local) = (solve(SolverChoice::Cg), solve(SolverChoice::Local));
        assert_eq!((cg.report.used.name(), local.report.used.name()), ("cg", "local"));
        assert!(cg.report.conjugate.unwrap().residual <= MOST_TOLERANCE && local.report.conjugate.is_none());
        assert_eq!((cg.dual.n_columns(), local.dual.n_columns()), (1, 0));
        // Their residuals are those of one factorisation, nearly.
        let exact = crate::laplace::solve::solve(&rows, &targets, &weights, true, 0.02, Threads::ONE).unwrap();
        let apart = |found: &Matrix| {
            let square = |i: usize| (found[(i, 0)] - exact.residuals[(i, 0)]).powi(2);
            (0..found.n_rows()).map(square).sum::<f64>().sqrt() / (found.n_rows() as f64).sqrt()
        };
        assert_eq!((cg.residuals.n_rows(), local.residuals.n_rows()), (900, 900));
        assert!(apart(&cg.residuals) < 0.05 && apart(&local.residuals) < 0.05);
    }

    /// With 900 rows and neighbourhoods of 256 the diagonal of the inverse is found within a hundredth, and what leaving out
    /// a row does to the exact solution with it.
    #[test]
    fn rows_left_out_of_the_exact_solution_are_known_from_their_neighbours() {
        let (rows, targets) = sample(900);
        let weights: Vec<f64> = (0..900).map(|i| 0.5 + f64::from(i % 3) * 0.5).collect();
        let exact = crate::laplace::solve::solve(&rows, &targets, &weights, true, 0.02, Threads::ONE).unwrap();
        let many = ManyRows::new(&rows, &targets, &weights, 0.02, options(SolverChoice::Auto));
        let left_out = many.leave_out().unwrap();
        let Compared { losses, residuals } = many.compare(&left_out, &exact.dual);
        let square = |column: &[f64]| column.iter().map(|x| x * x).sum::<f64>();
        let apart: Vec<f64> =
            residuals[0].column(0).iter().zip(exact.residuals.column(0)).map(|(a, b)| a - b).collect();
        let share = (square(&apart) / square(exact.residuals.column(0))).sqrt();
        assert!(share < 0.01, "{share}");
        let whole = loss_of(Loss::Squared, &exact.residuals, &targets, &weights);
        assert!((losses[0] - whole).abs() < 0.005 && losses[2] <= losses[0].max(losses[1]), "{losses:?} {whole}");
    }

    /// The twin of one factorisation: errors of predictions within 0.3 %.
    #[test]
    fn conjugate_gradients_predict_as_one_factorisation_does() {
        let (all, y) = sample(2400);
        let (kept, fresh): (Vec<usize>, Vec<usize>) = (0..2400).partition(|i| i % 4 != 0);
        let (rows, queries) = (all.select(&kept), all.select(&fresh));
        let targets = Matrix::from_fn(kept.len(), 1, |i, _| y[(kept[i], 0)]);
        let weights = vec![1.0; kept.len()];
        for alpha in [0.2, 0.02, 1e-3] {
            let exact = crate::laplace::solve::solve(&rows, &targets, &weights, true, alpha, Threads::ONE).unwrap();
            let found = ManyRows::new(&rows, &targets, &weights, alpha, options(SolverChoice::Cg)).solve().unwrap();
            let packed = PackedRows::new(&rows);
            let error = |solution: &Solution| {
                let (dual, targets) = (&solution.dual, &solution.targets);
                let predicted = cross_product(&rows, &packed, &queries, dual, targets, Threads::ONE).unwrap();
                let off = |k: usize| predicted[(k, 0)] + solution.centre[0] - y[(fresh[k], 0)];
                ((0..fresh.len()).map(|k| off(k).powi(2)).sum::<f64>() / fresh.len() as f64).sqrt()
            };
            let (a, b) = (error(&found), error(&exact));
            assert!((a / b - 1.0).abs() < 3e-3, "alpha {alpha}: {a} {b}");
        }
    }

    #[test]
    fn large_weights_are_multiplied_in_double_precision() {
        let (rows, targets) = sample(300);
        let packed = PackedRows::new(&rows);
        let queries = rows.select(&[3, 4, 250]);
        for size in [1.0, 1e6] {
            let dual = Matrix::from_fn(300, 1, |i, _| size * (f64::from(u8::from(i % 2 == 0)) - 0.5));
            let found = cross_product(&rows, &packed, &queries, &dual, &targets, Threads::ONE).unwrap();
            for (q, i) in [3, 4, 250].into_iter().enumerate() {
                let exact: f64 = (0..300).map(|j| rows.entry(i, j) * dual[(j, 0)]).sum();
                assert!((found[(q, 0)] - exact).abs() < 1e-4, "{size}");
            }
        }
    }

    #[test]
    fn the_least_loss_is_chosen_and_memory_limits_centres() {
        assert_eq!(chosen([1.0, 1.0, 1.0]), SolverUsed::Local);
        assert_eq!(chosen([0.9, 1.0, 0.8]), SolverUsed::Mean);
        assert_eq!(chosen([0.9, 1.0, 0.95]), SolverUsed::Cg);
        assert_eq!(centres_within(CENTRES, 30_000, 1, f64::INFINITY), Some(CENTRES));
        assert_eq!(centres_within(CENTRES, 30_000, 1, 3e8), Some(500));
        assert_eq!(centres_within(CENTRES, 30_000, 1, 1e6), None);
        assert_eq!(centres_within(CENTRES_IN_NOISE, 30_000, 1, f64::INFINITY), Some(CENTRES_IN_NOISE));
    }
}
