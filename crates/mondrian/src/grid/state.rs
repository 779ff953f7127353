//! A grid model under moves: lifetimes are raised and lowered cut by cut, and the exact solution is updated.

use crate::features::MondrianGrid;
use crate::grid::GridSolution;
use crate::grid::events::{Dimension, Event};
use crate::grid::model::start;
use crate::grid::partition::{NONE, Partition, Plan};
use crate::grid::solution::{Solution, Splits};
use crate::linalg::{Matrix, Threads};
use crate::ridge::{CellArray, Design, by_column};
use crate::select::split::spreads;
use crate::{Error, Points, Result};

/// A move to a neighbouring configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// Add the next cut of this dimension.
    Raise(usize),
    /// Remove the last cut of this dimension.
    Lower(usize),
}

/// Largest number of features of a state: P has that number squared of entries.
const MOST_FEATURES: usize = 12_000;
/// Moves between two checks of the drift, and the residual above which P is recomputed.
const WATCH: usize = 64;
const DRIFT: f64 = 1e-9;
/// A move costs about this many times C² operations, all of them bound by memory.
const MOVE_COST: f64 = 60.0;

/// Ridge regression on the cells of M grids at one configuration of lifetimes, with predictions for validation rows.
///
/// The configuration changes by [`GridState::apply`], one cut at a time, or by [`GridState::jump`]. After any sequence
/// of moves the state equals one built from scratch at the same configuration: cells exactly, the solution up to
/// rounding.
///
/// ```
/// use mondrian::Points;
/// use mondrian::internals::features::MondrianGrid;
/// use mondrian::internals::grid::{GridState, Move};
/// let x: Vec<f64> = (0..40).map(|i| f64::from(i) / 10.0).collect();
/// let y: Vec<f64> = x.iter().map(|x| x.sin()).collect();
/// let (train, validation) = (Points::row_major(&x[..30], 1)?, Points::row_major(&x[30..], 1)?);
/// let mut state = GridState::new(MondrianGrid::new(10, 1)?, train, &y[..30], validation, &y[30..], 0.1, true)?;
/// let before = state.validation_error();
/// let promised = state.what_if(&[Move::Raise(0)])?[0].expect("there is a cut");
/// state.apply(Move::Raise(0))?;
/// assert!((state.validation_error() - promised).abs() < 1e-12 && state.lifetimes()[0] > 0.0);
/// state.apply(Move::Lower(0))?;
/// assert!((state.validation_error() - before).abs() < 1e-12);
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct GridState {
    grid: MondrianGrid,
    /// Training rows, then validation rows, row-major.
    x: Vec<f64>,
    /// One over D times the spread of the training rows.
    start: Vec<f64>,
    pub(crate) dimensions: Vec<Dimension>,
    pub(crate) partition: Partition,
    pub(crate) solution: Solution,
    /// Events that have happened, one number per dimension.
    counts: Vec<usize>,
    lifetimes: Vec<f64>,
    /// One column per target, centred if there is an intercept.
    y: Matrix,
    intercepts: Vec<f64>,
    y_validation: Matrix,
    alpha: f64,
    moves: usize,
    pub(crate) cost: f64,
}

impl GridState {
    /// All lifetimes zero: one cell per grid. Targets are row-major, with the same number of them for every row.
    ///
    /// # Errors
    /// [`Error::Empty`] without training or validation rows, [`Error::LengthMismatch`], [`Error::InvalidParameter`]
    /// if α is not positive.
    pub fn new(
        grid: MondrianGrid,
        train: Points<'_>,
        y: &[f64],
        validation: Points<'_>,
        y_validation: &[f64],
        alpha: f64,
        fit_intercept: bool,
    ) -> Result<Self> {
        for points in [train, validation] {
            points.check_width(train.n_columns())?;
            if points.n_rows() == 0 {
                return Err(Error::Empty { what: "X", rows: 0, columns: train.n_columns() });
            }
        }
        let (mut y, y_validation) = (by_column(train.n_rows(), y)?, by_column(validation.n_rows(), y_validation)?);
        let (expected, found) = (y.n_columns(), y_validation.n_columns());
        if expected != found {
            return Err(Error::LengthMismatch { what: "targets per row", expected, found });
        }
        if !(alpha > 0.0 && alpha.is_finite()) {
            return Err(Error::InvalidParameter { name: "alpha", value: alpha, expected: "a finite number > 0" });
        }
        let (n, d) = (train.n_rows(), train.n_columns());
        let all: Vec<f64> = train.to_row_major().into_iter().chain(validation.to_row_major()).collect();
        let points = Points::row_major(&all, d)?;
        let mean = |t: usize| if fit_intercept { y.column(t).iter().sum::<f64>() / n as f64 } else { 0.0 };
        let intercepts: Vec<f64> = (0..y.n_columns()).map(mean).collect();
        for (t, intercept) in intercepts.iter().enumerate() {
            y.column_mut(t).iter_mut().for_each(|y| *y -= intercept);
        }
        Ok(Self {
            grid,
            start: start(&spreads(train)),
            dimensions: (0..d).map(|dim| Dimension::new(grid, dim, points)).collect(),
            partition: Partition::trivial(points.n_rows(), n, grid.n_grids(), d),
            solution: Solution::trivial(grid.n_grids(), &y, alpha),
            counts: vec![0; d],
            lifetimes: vec![0.0; d],
            y,
            intercepts,
            y_validation,
            alpha,
            moves: 0,
            cost: 0.0,
            x: all,
        })
    }

    /// The starting point of searches that need a scale: equal in units of the inputs' spreads, with one expected cut
    /// over a typical distance.
    pub fn start(&self) -> Vec<f64> {
        self.start.clone()
    }

    /// The training rows and their targets, row-major.
    pub(crate) fn training_rows(&self) -> (Points<'_>, Vec<f64>) {
        let n = self.n_train() * self.n_dims();
        let points = Points::row_major(&self.x[..n], self.n_dims()).expect("checked when the state was made");
        let whole = |row: usize| self.intercepts.iter().enumerate().map(move |(t, mean)| self.y[(row, t)] + mean);
        (points, (0..self.n_train()).flat_map(whole).collect())
    }

    /// The validation error at any configuration: by moving there if it is near, else by a fresh solve that does not
    /// change the state.
    ///
    /// # Errors
    /// As for [`GridState::jump`].
    pub fn error_at(&mut self, lifetimes: &[f64]) -> Result<f64> {
        let target = self.targets(lifetimes)?;
        let distance: usize = target.iter().zip(&self.counts).map(|(a, b)| a.abs_diff(*b)).sum();
        let (c, n) = (self.n_features() as f64, self.n_train() as f64);
        if MOVE_COST * distance as f64 * c * c < n * n * n / 3.0 {
            self.jump(lifetimes)?;
            return Ok(self.validation_error());
        }
        let at = self.n_train() * self.n_dims();
        let (train, validation) =
            (Points::row_major(&self.x[..at], self.n_dims())?, Points::row_major(&self.x[at..], self.n_dims())?);
        // The targets are centred already.
        let model = GridSolution::solved(self.grid, train, self.y.view(), lifetimes, self.alpha)?;
        let (c, m) = (model.features().n_features() as f64, self.grid.n_grids() as f64);
        self.cost += c.min(n).powi(3) / 3.0 + n * m * m;
        let mut predictions = model.predict_columns(validation)?;
        for (t, intercept) in self.intercepts.iter().enumerate() {
            predictions.column_mut(t).iter_mut().for_each(|p| *p += intercept);
        }
        Ok(self.error_of(&predictions))
    }

    /// The configuration.
    pub fn lifetimes(&self) -> &[f64] {
        &self.lifetimes
    }

    /// α.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// Number of dimensions.
    pub fn n_dims(&self) -> usize {
        self.lifetimes.len()
    }

    /// Number of training rows.
    pub fn n_train(&self) -> usize {
        self.y.n_rows()
    }

    /// Targets per row.
    pub fn n_targets(&self) -> usize {
        self.y.n_columns()
    }

    /// Cells with training rows in all grids.
    pub fn n_features(&self) -> usize {
        self.solution.n_features()
    }

    /// Cuts that separate rows, one number per dimension.
    pub fn n_cuts(&self) -> &[usize] {
        &self.counts
    }

    /// Estimated floating-point operations spent so far.
    pub fn cost(&self) -> f64 {
        self.cost
    }

    /// Cell numbers of the training rows, M per row, in the internal numbering.
    pub fn train_cells(&self) -> Vec<u32> {
        self.features(0..self.n_train() as u32)
    }

    fn features(&self, rows: std::ops::Range<u32>) -> Vec<u32> {
        let n_grids = self.partition.n_grids();
        rows.flat_map(|row| (0..n_grids).map(move |m| (m, row)))
            .map(|(m, row)| self.partition.feature(m, row))
            .collect()
    }

    /// Predictions for the validation rows, row-major.
    pub fn validation_predictions(&self) -> Vec<f64> {
        self.predictions_with(&self.solution.theta).transposed().into_vec()
    }

    /// Predictions for the validation rows, one column per target.
    pub(crate) fn predictions_with(&self, theta: &[Vec<f64>]) -> Matrix {
        let mut predictions = Matrix::zeros(self.y_validation.n_rows(), theta.len());
        let (n, root) = (self.n_train(), (self.partition.n_grids() as f64).sqrt());
        for (t, (theta, intercept)) in theta.iter().zip(&self.intercepts).enumerate() {
            let sums = predictions.column_mut(t);
            for m in 0..self.partition.n_grids() {
                let cells = &self.partition.grid_cells(m)[n..];
                for (sum, &cell) in sums.iter_mut().zip(cells) {
                    let feature = self.partition.cells[cell as usize].feature;
                    *sum += if feature == NONE { 0.0 } else { theta[feature as usize] };
                }
            }
            sums.iter_mut().for_each(|sum| *sum = *sum / root + intercept);
        }
        predictions
    }

    /// Root mean squared error on the validation rows, over all targets.
    pub fn validation_error(&self) -> f64 {
        self.error_of(&self.predictions_with(&self.solution.theta))
    }

    pub(crate) fn error_of(&self, predictions: &Matrix) -> f64 {
        let (predictions, y) = (predictions.as_slice(), self.y_validation.as_slice());
        let sum: f64 = predictions.iter().zip(y).map(|(p, y)| (p - y) * (p - y)).sum();
        (sum / predictions.len() as f64).sqrt()
    }

    /// The changes made by a move; `None` if there is no such cut.
    pub(crate) fn plan(&mut self, step: Move) -> Result<Option<Plan>> {
        Ok(match step {
            Move::Raise(dim) => {
                let next = self.counts.get(dim).copied().unwrap_or(0);
                let event = self.dimension(dim)?.event(next)?;
                event.map(|event| self.partition.plan_split(dim, &self.dimensions[dim], event))
            }
            Move::Lower(dim) => {
                self.dimension(dim)?;
                let event = self.counts[dim].checked_sub(1).map(|at| self.dimensions[dim].known()[at]);
                event.map(|event| self.partition.plan_merge(dim, &self.dimensions[dim], event))
            }
        })
    }

    fn dimension(&mut self, dim: usize) -> Result<&mut Dimension> {
        let found = self.dimensions.len();
        self.dimensions.get_mut(dim).ok_or(Error::LengthMismatch { what: "dimensions", expected: dim + 1, found })
    }

    /// Makes a move; false if there is no such cut.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the features would be too many, [`Error::NotPositiveDefinite`] if α is too small; the
    /// state is then as before.
    pub fn apply(&mut self, step: Move) -> Result<bool> {
        let Some(plan) = self.plan(step)? else { return Ok(false) };
        self.carry_out(&plan)?;
        let dim = plan.dim;
        let count = &mut self.counts[dim];
        *count = if plan.adds { *count + 1 } else { *count - 1 };
        self.lifetimes[dim] = count.checked_sub(1).map_or(0.0, |at| self.dimensions[dim].known()[at].time);
        self.moves += 1;
        if self.moves.is_multiple_of(WATCH) && self.residual() > DRIFT {
            self.refresh()?;
        }
        Ok(true)
    }

    fn carry_out(&mut self, plan: &Plan) -> Result<()> {
        let c = self.n_features() as f64;
        if plan.adds {
            let splits = self.splits(plan);
            let next = self.n_features() + splits.features.len();
            if next > MOST_FEATURES {
                let (expected, limit) = (next as f64, MOST_FEATURES as f64);
                return Err(Error::TooLarge { what: "features of a grid state", expected, limit });
            }
            let mut number = self.n_features() as u32;
            self.cost += 6.0 * c * c * splits.features.len() as f64;
            self.solution.split(&splits)?;
            self.partition.apply(plan, || {
                number += 1;
                number - 1
            });
        } else {
            let pairs = self.pairs(plan);
            self.cost += 4.0 * c * c * pairs.len() as f64;
            let renamed = self.solution.merge(&pairs)?;
            self.partition.apply(plan, || NONE);
            if !renamed.is_empty() {
                // Final positions: a moved feature may have been moved again.
                let mut occupants: Vec<u32> = (0..c as u32).collect();
                for (from, to) in renamed {
                    occupants[to] = occupants[from];
                }
                let mut table = vec![NONE; occupants.len()];
                for (place, &occupant) in occupants[..self.n_features()].iter().enumerate() {
                    table[occupant as usize] = place as u32;
                }
                self.partition.rename_features(|feature| table[feature as usize]);
            }
        }
        Ok(())
    }

    /// The features that a plan splits because both sides hold training rows.
    pub(crate) fn splits(&self, plan: &Plan) -> Splits {
        let n_grids = self.partition.n_grids();
        let share = 1.0 / n_grids as f64;
        let parts: Vec<_> = plan.parts.iter().filter(|p| p.train_below > 0 && p.train_above > 0).collect();
        let mut borders = Matrix::zeros(self.n_features(), parts.len());
        let mut splits = Splits {
            features: Vec::with_capacity(parts.len()),
            borders: Matrix::zeros(0, 0),
            diagonal: Vec::with_capacity(parts.len()),
            b_new: vec![Vec::with_capacity(parts.len()); self.n_targets()],
        };
        for (k, part) in parts.iter().enumerate() {
            let column = borders.column_mut(k);
            for (rows, sign) in [(&part.rows_below, share), (&part.rows_above, -share)] {
                for &row in rows.iter().filter(|&&row| self.partition.is_train(row)) {
                    (0..n_grids).for_each(|m| column[self.partition.feature(m, row) as usize] += sign);
                }
            }
            splits.features.push(self.partition.cells[part.below as usize].feature as usize);
            splits.diagonal.push(f64::from(part.train_below + part.train_above) * share + 2.0 * self.alpha);
            for (t, b_new) in splits.b_new.iter_mut().enumerate() {
                let y = self.y.column(t);
                let sum: f64 = part.rows_above.iter().filter_map(|&row| y.get(row as usize)).sum();
                b_new.push(sum * share.sqrt());
            }
        }
        splits.borders = borders;
        splits
    }

    /// The pairs of features that a plan merges.
    pub(crate) fn pairs(&self, plan: &Plan) -> Vec<(usize, usize)> {
        let feature = |cell: u32| self.partition.cells[cell as usize].feature;
        let pairs = plan.parts.iter().map(|part| (feature(part.below), feature(part.above)));
        pairs.filter(|&(i, j)| i != NONE && j != NONE).map(|(i, j)| (i as usize, j as usize)).collect()
    }

    /// Moves to any configuration, by single moves or by a fresh solve, whichever is cheaper.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::InvalidParameter`] for a lifetime out of range, [`Error::TooLarge`] if the
    /// features would be too many; the state is then at an intermediate configuration or unchanged.
    pub fn jump(&mut self, lifetimes: &[f64]) -> Result<()> {
        let target = self.targets(lifetimes)?;
        let distance: usize = target.iter().zip(&self.counts).map(|(a, b)| a.abs_diff(*b)).sum();
        let c = self.n_features() as f64;
        // A fresh solve costs C³ flops and the counting of ZᵀZ.
        let n_grids = self.partition.n_grids() as f64;
        let fresh = c * c * c + self.n_train() as f64 * n_grids * n_grids;
        if distance as f64 * MOVE_COST * c * c > fresh {
            self.rebuild(&target)?;
        } else {
            for (dim, &count) in target.iter().enumerate() {
                while self.counts[dim] > count {
                    self.apply(Move::Lower(dim))?;
                }
                while self.counts[dim] < count {
                    self.apply(Move::Raise(dim))?;
                }
            }
        }
        self.lifetimes.copy_from_slice(lifetimes);
        Ok(())
    }

    /// Whether there are fewer cuts between rows than grids at these lifetimes.
    pub(crate) fn is_sparse(&mut self, lifetimes: &[f64]) -> Result<bool> {
        Ok(self.targets(lifetimes)?.iter().sum::<usize>() < self.partition.n_grids())
    }

    fn targets(&mut self, lifetimes: &[f64]) -> Result<Vec<usize>> {
        let (expected, found) = (self.n_dims(), lifetimes.len());
        if expected != found {
            return Err(Error::LengthMismatch { what: "lifetimes", expected, found });
        }
        if let Some(&value) = lifetimes.iter().find(|&&l| !(l >= 0.0 && l.is_finite())) {
            return Err(Error::InvalidParameter { name: "lifetime", value, expected: "a finite number ≥ 0" });
        }
        self.dimensions.iter_mut().zip(lifetimes).map(|(dimension, &l)| dimension.count_until(l)).collect()
    }

    fn rebuild(&mut self, target: &[usize]) -> Result<()> {
        let (n_rows, n_train) = (self.n_train() + self.y_validation.n_rows(), self.n_train());
        let n_grids = self.partition.n_grids();
        let mut partition = Partition::trivial(n_rows, n_train, n_grids, self.n_dims());
        let mut n_features = n_grids as u32;
        for (dim, &count) in target.iter().enumerate() {
            let events: Vec<Event> = self.dimensions[dim].known()[..count].to_vec();
            for event in events {
                let plan = partition.plan_split(dim, &self.dimensions[dim], event);
                partition.apply(&plan, || {
                    n_features += 1;
                    n_features - 1
                });
                if n_features as usize > MOST_FEATURES {
                    let (expected, limit) = (f64::from(n_features), MOST_FEATURES as f64);
                    return Err(Error::TooLarge { what: "features of a grid state", expected, limit });
                }
            }
        }
        let before = std::mem::replace(&mut self.partition, partition);
        if let Err(error) = self.solve_afresh(n_features as usize) {
            self.partition = before;
            return Err(error);
        }
        self.counts.copy_from_slice(target);
        Ok(())
    }

    fn solve_afresh(&mut self, n_features: usize) -> Result<()> {
        let n_grids = self.partition.n_grids();
        let design = CellArray::from_row_major(&self.train_cells(), n_grids, n_features)?;
        let c = n_features as f64;
        self.cost += 2.0 * c * c * c + (self.n_train() * n_grids * n_grids) as f64;
        let b_of = |t: usize| {
            let mut b = vec![0.0; n_features];
            design.multiply_transposed(self.y.column(t), &mut b);
            b
        };
        let b = (0..self.n_targets()).map(b_of).collect();
        self.solution = Solution::fresh(design.gram_lower(Threads::ONE), b, self.alpha)?;
        Ok(())
    }

    /// Solves from scratch at the present configuration.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] if α is too small.
    pub fn refresh(&mut self) -> Result<()> {
        self.solve_afresh(self.n_features())
    }

    /// Another α at the present configuration, by a solve from scratch.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] if it is not positive, [`Error::NotPositiveDefinite`] if it is too small; nothing has changed then.
    pub fn set_alpha(&mut self, alpha: f64) -> Result<()> {
        if !(alpha > 0.0 && alpha.is_finite()) {
            return Err(Error::InvalidParameter { name: "alpha", value: alpha, expected: "a finite number > 0" });
        }
        let before = std::mem::replace(&mut self.alpha, alpha);
        self.refresh().inspect_err(|_| self.alpha = before)
    }

    /// The drift of the inverse: ‖A P v − v‖∞ for a vector of ±1.
    #[expect(clippy::missing_panics_doc, reason = "the cells are the state's own")]
    pub fn residual(&self) -> f64 {
        let cells = CellArray::from_row_major(&self.train_cells(), self.partition.n_grids(), self.n_features());
        let design = cells.expect("cells of the state are below its number of features");
        self.solution.residual(|v| {
            let mut out = vec![0.0; v.len()];
            design.normal(v, &mut out);
            out.iter_mut().zip(v).for_each(|(o, v)| *o += self.alpha * v);
            out
        })
    }
}
