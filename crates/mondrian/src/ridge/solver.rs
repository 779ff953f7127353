//! Choice of the solver by estimated time and memory.

use crate::ridge::{CellArray, CgOptions, Design, Features, UNSEEN};

/// How the ridge problem is solved.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Solver {
    /// The cheapest of the others by estimated cost, among those that fit into memory.
    #[default]
    Auto,
    /// The Cholesky factor of ZᵀZ + αI, C × C.
    Primal,
    /// The Cholesky factor of ZZᵀ + αI, N × N.
    Dual,
    /// Conjugate gradients on (ZᵀZ + αI)θ = Zᵀy.
    ConjugateGradients,
}

/// Report of a solve.
#[derive(Debug, Clone, PartialEq)]
pub struct SolveReport {
    /// The solver used, never [`Solver::Auto`].
    pub solver: Solver,
    /// ‖Zᵀ(y − Zθ) − αθ‖/‖Zᵀy‖ of each target, computed from θ after the solve.
    pub residuals: Vec<f64>,
    /// Steps of conjugate gradients, summed over targets; 0 otherwise.
    pub steps: usize,
    /// The estimated costs of each solver.
    pub costs: Costs,
}

/// Estimated seconds and bytes of each solver. Rates are of one core of a 2020s server; only ratios matter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// Seconds of [`Solver::Primal`].
    pub primal_seconds: f64,
    /// Bytes of [`Solver::Primal`].
    pub primal_bytes: f64,
    /// Seconds of [`Solver::Dual`].
    pub dual_seconds: f64,
    /// Bytes of [`Solver::Dual`].
    pub dual_bytes: f64,
    /// Seconds of [`Solver::ConjugateGradients`].
    pub cg_seconds: f64,
}

/// Flops per second of a factorisation, seconds per stored index of one step, seconds per scattered addition.
const FACTOR_RATE: f64 = 4e10;
const STEP_SECONDS: f64 = 2e-9;
const SCATTER_SECONDS: f64 = 1.5e-9;

impl Costs {
    /// Estimates for a design, `alpha` and a number of targets.
    pub fn estimate(design: &Features, alpha: f64, n_targets: usize, options: CgOptions) -> Self {
        let (n, c) = (design.n_rows() as f64, design.n_columns() as f64);
        let (primal_products, dual_products) = match design {
            Features::Dense(_) => (n * c * c / FACTOR_RATE, n * n * c / FACTOR_RATE),
            Features::Cells(cells) => {
                let m = cells.n_trees() as f64;
                (n * m * m / 2.0 * SCATTER_SECONDS, pairs(cells) * SCATTER_SECONDS)
            }
        };
        let steps = expected_steps(design, alpha, options);
        Self {
            primal_seconds: primal_products + c * c * c / 3.0 / FACTOR_RATE,
            primal_bytes: 8.0 * c * c,
            dual_seconds: dual_products + n * n * n / 3.0 / FACTOR_RATE,
            dual_bytes: 8.0 * n * n,
            cg_seconds: n_targets as f64 * steps * design.n_stored() as f64 * STEP_SECONDS,
        }
    }

    /// The cheapest solver that needs no more than `limit` bytes; conjugate gradients always fit.
    pub fn choose(&self, limit: f64) -> Solver {
        let candidates = [
            (Solver::Primal, self.primal_seconds, self.primal_bytes),
            (Solver::Dual, self.dual_seconds, self.dual_bytes),
            (Solver::ConjugateGradients, self.cg_seconds, 0.0),
        ];
        candidates
            .into_iter()
            .filter(|(_, _, bytes)| *bytes <= limit)
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .map_or(Solver::ConjugateGradients, |(solver, _, _)| solver)
    }
}

/// Half the pairs of rows that share a cell, summed over trees.
fn pairs(cells: &CellArray) -> f64 {
    let mut counts = vec![0_u32; cells.n_columns()];
    for m in 0..cells.n_trees() {
        cells.tree(m).iter().filter(|c| **c != UNSEEN).for_each(|&c| counts[c as usize] += 1);
    }
    counts.iter().map(|&k| f64::from(k) * f64::from(k) / 2.0).sum()
}

/// ½·√cond·ln(2/tolerance), with cond ≤ (M·mean cell weight + α)/α after scaling by the diagonal; never more than the
/// number of distinct eigenvalues.
fn expected_steps(design: &Features, alpha: f64, options: CgOptions) -> f64 {
    let (n, c) = (design.n_rows() as f64, design.n_columns() as f64);
    let cond = 1.0 + design.n_stored() as f64 / c.max(1.0) / alpha;
    let steps = 0.5 * cond.sqrt() * (2.0 / options.tolerance.max(1e-300)).ln();
    steps.min(n.min(c) + 1.0).min(options.max_steps as f64).max(1.0)
}
