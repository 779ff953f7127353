//! The path of the Laplace kernel's Mondrian approximation: ridge regression at every lifetime, exact at every cut
//! (report, chapter 4; docs/design.md, "The path, exact at every cut").
//!
//! Removing a cut merges two features. From the terminal lifetime down, [`removal`] merges them one by one with
//! deferred updates of the inverse; [`addition`] proceeds in increasing order, splitting features, with either the
//! inverse or the Cholesky factor of appendix D; [`grid`] solves by warm-started conjugate gradients at chosen
//! lifetimes, where C² numbers would not fit.

mod addition;
mod lifetimes;
mod removal;
mod schedule;

use crate::linalg::Matrix;
use crate::memory;
use crate::path::{Loss, PathBuilder, RegularizationPath, standard_error_of_rmse};
use crate::progress::Progress;
use crate::ridge::KernelRidge;
use crate::ridge::{CellArray, CgOptions, Design, UNSEEN};
use crate::{Error, Points, Result};

/// How a kernel path is computed.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum PathMethod {
    /// From the terminal lifetime down by merging features, updates of the inverse applied in blocks: the fastest
    /// method. If its matrices exceed the memory limit, conjugate gradients at some lifetimes.
    #[default]
    Removal,
    /// From lifetime 0 up by splitting features, updating the inverse one at a time.
    Addition,
    /// From lifetime 0 up, updating the Cholesky factor (appendix D).
    Cholesky,
    /// Conjugate gradients at these lifetimes, ascending, each started from the solution before it.
    ConjugateGradients {
        /// The lifetimes to solve at; lifetime 0 is always added. An empty list means quantiles of the times at which
        /// features split.
        lifetimes: Vec<f64>,
        /// Each solve stops at ‖b − Aθ‖ ≤ `tolerance`·‖b‖.
        tolerance: f64,
    },
}

impl PathMethod {
    /// [`PathMethod::ConjugateGradients`] with the tolerance of a fit.
    pub fn conjugate_gradients(lifetimes: Vec<f64>) -> Self {
        Self::ConjugateGradients { lifetimes, tolerance: CgOptions::default().tolerance }
    }
}

/// A validation set: points, and targets with one number per row and target, row-major.
pub type ValidationSet<'a> = (Points<'a>, &'a [f64]);

impl KernelRidge {
    /// Root mean squared errors on training and validation rows at every lifetime up to the model's.
    ///
    /// The root box is first widened to contain all rows; the path equals a refit on that box at every lifetime.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::NotFinite`], [`Error::TooLarge`], [`Error::Cancelled`],
    /// [`Error::NotPositiveDefinite`] when α is lost in rounding.
    pub fn path(
        &self,
        validation: &[ValidationSet<'_>],
        method: &PathMethod,
        progress: &mut Progress<'_>,
    ) -> Result<RegularizationPath> {
        self.path_with(self.model().alpha(), validation, method, progress)
    }

    /// The same for another α: the features do not depend on it.
    pub(crate) fn path_with(
        &self,
        alpha: f64,
        validation: &[ValidationSet<'_>],
        method: &PathMethod,
        progress: &mut Progress<'_>,
    ) -> Result<RegularizationPath> {
        let schedule = schedule::Schedule { alpha, ..schedule::Schedule::new(self, validation)? };
        let c = schedule.n_cells;
        // The matrix, its factor and its inverse.
        let bytes = 3.0 * memory::bytes_of(c, c);
        match method {
            PathMethod::Removal if bytes > memory::limit().min(MOST_BYTES) => {
                let lifetimes = some_lifetimes(&schedule);
                lifetimes::run(&schedule, &lifetimes, CgOptions::default(), progress)
            }
            PathMethod::Removal => removal::run(schedule, progress),
            PathMethod::Addition | PathMethod::Cholesky if bytes > memory::limit().min(MOST_BYTES) => {
                let limit = memory::limit().min(MOST_BYTES);
                Err(Error::TooLarge { what: "bytes of the path's matrices", expected: bytes, limit })
            }
            PathMethod::Addition => addition::run(schedule, addition::by_inverse, progress),
            PathMethod::Cholesky => addition::run(schedule, addition::by_factor, progress),
            PathMethod::ConjugateGradients { lifetimes, tolerance } => {
                let mut lifetimes = if lifetimes.is_empty() { some_lifetimes(&schedule) } else { lifetimes.clone() };
                if let Some(&value) = lifetimes.iter().find(|l| !(**l >= 0.0)) {
                    return Err(Error::InvalidParameter { name: "lifetimes", value, expected: "numbers ≥ 0" });
                }
                lifetimes.push(0.0);
                lifetimes.sort_unstable_by(f64::total_cmp);
                lifetimes.dedup();
                let options = CgOptions { tolerance: *tolerance, ..CgOptions::default() };
                lifetimes::run(&schedule, &lifetimes, options, progress)
            }
        }
    }
}

/// Beyond this number of features no path stores its matrices, for any memory limit.
const MOST_BYTES: f64 = 16e9;
/// Number of lifetimes at which a path is solved if its matrices do not fit.
const SOME_LIFETIMES: usize = 64;

/// Lifetime 0, and quantiles of the times at which features split.
fn some_lifetimes(schedule: &schedule::Schedule) -> Vec<f64> {
    let mut times: Vec<f64> = schedule.merges.iter().map(|merge| merge.time).collect();
    times.sort_unstable_by(f64::total_cmp);
    let last = times.len().saturating_sub(1);
    let mut lifetimes = vec![0.0];
    if !times.is_empty() {
        lifetimes.extend((0..SOME_LIFETIMES).map(|k| times[k * last / (SOME_LIFETIMES - 1)]));
    }
    lifetimes.dedup();
    lifetimes
}

/// ‖b − (ZᵀZ + αI)θ‖/‖y‖, the largest over targets. Not over ‖b‖: b = Zᵀy vanishes as centred targets share one cell.
fn residual(design: &CellArray, alpha: f64, theta: &[Vec<f64>], moments: &[Vec<f64>], targets: &Matrix) -> f64 {
    let mut worst = 0.0_f64;
    let mut image = vec![0.0; design.n_columns()];
    for (target, (theta, b)) in theta.iter().zip(moments).enumerate() {
        design.normal(theta, &mut image);
        let errors = image.iter().zip(theta).zip(b).map(|((z, t), b)| b - z - alpha * t);
        let error: f64 = errors.map(|e| e * e).sum();
        let norm: f64 = targets.column(target).iter().map(|y| y * y).sum();
        if norm > 0.0 {
            worst = worst.max((error / norm).sqrt());
        }
    }
    worst
}

/// A loss with its standard error.
#[derive(Debug, Clone, Copy, Default)]
struct Measured {
    rmse: f64,
    standard_error: f64,
}

impl Measured {
    /// From the sums of squared errors and of their squares, by the delta method.
    fn new(squares: f64, fourths: f64, n: f64) -> Self {
        let mse = squares / n;
        let standard_error = standard_error_of_rmse(mse, (fourths - n * mse * mse).max(0.0), n);
        Self { rmse: mse.sqrt(), standard_error }
    }
}

/// Collects a path, and the standard error of the selecting loss at its minimum.
#[derive(Debug)]
struct Collector {
    builder: PathBuilder,
    best: Option<Measured>,
}

impl Collector {
    fn new(n_sets: usize) -> Self {
        Self { builder: PathBuilder::new(Loss::Rmse, n_sets - 1), best: None }
    }

    fn push(&mut self, lifetime: f64, losses: &[Measured]) {
        let rmse: Vec<f64> = losses.iter().map(|l| l.rmse).collect();
        self.builder.push(lifetime, rmse[0], &rmse[1..]);
        if let Some(loss) = losses.get(1)
            && self.best.is_none_or(|best| loss.rmse < best.rmse)
        {
            self.best = Some(*loss);
        }
    }

    fn finish(self) -> RegularizationPath {
        self.builder.finish(self.best.map(|best| best.standard_error))
    }
}

/// Loss of a set whose cells are indices into θ.
fn loss(set: &schedule::Set, places: &[u32], theta: &[Vec<f64>], scale: f64) -> Measured {
    let (mut squares, mut fourths) = (0.0, 0.0);
    for (target, theta) in theta.iter().enumerate() {
        let mut sum = vec![0.0; set.n_rows];
        for cells in places.chunks_exact(set.n_rows) {
            for (sum, place) in sum.iter_mut().zip(cells).filter(|(_, place)| **place != UNSEEN) {
                *sum += theta[*place as usize];
            }
        }
        for (s, y) in sum.iter().zip(set.targets.column(target)) {
            let square = (s * scale - y).powi(2);
            squares += square;
            fourths += square * square;
        }
    }
    Measured::new(squares, fourths, (set.n_rows * theta.len()) as f64)
}
