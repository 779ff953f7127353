//! What regression and classification with a tuned kernel share: columns, kernel, rows and their weights.

use std::sync::OnceLock;

use crate::parallel::prelude::*;
use serde::{Deserialize, Serialize};

use crate::laplace::columns::Columns;
use crate::laplace::search::{lifetimes_of_inputs, rank_lifetimes_of_inputs};
use crate::laplace::solve::{factor, solve};
use crate::laplace::tiles::Tiles;
use crate::laplace::values::Values;
use crate::laplace::{Cells, KernelRows};
use crate::linalg::{Matrix, Threads, dot, solve_blocks};
use crate::model_file::{Archive, ModelFileError};
use crate::process::NodeKey;
use crate::select::Trajectory;
use crate::{Error, Result};

/// A fitted kernel. Rows are kept in their keyed order.
#[derive(Debug, Clone)]
pub(crate) struct KernelModel {
    pub(crate) columns: Columns,
    pub(crate) values: Values,
    pub(crate) rows: KernelRows,
    /// Weights of the rows, their mean 1.
    pub(crate) weights: Vec<f64>,
    /// Where each row given is among the rows, and its share of the weight there.
    pub(crate) places: Vec<(u32, f64)>,
    pub(crate) is_centred: bool,
    pub(crate) centre: Vec<f64>,
    pub(crate) dual: Matrix,
    /// The centred targets.
    pub(crate) targets: Matrix,
    pub(crate) importances: Vec<f64>,
    pub(crate) trajectory: Trajectory,
    tiles: OnceLock<std::sync::Arc<Tiles>>,
}

/// Queries looked up by one task.
const QUERIES: usize = 16;

impl KernelModel {
    #[expect(clippy::too_many_arguments, reason = "the parts of a model")]
    pub(crate) fn new(
        columns: Columns,
        values: Values,
        rows: KernelRows,
        weights: Vec<f64>,
        places: Vec<(u32, f64)>,
        is_centred: bool,
        solution: (Vec<f64>, Matrix, Matrix),
        importances: Vec<f64>,
        trajectory: Trajectory,
    ) -> Self {
        let (centre, dual, targets) = solution;
        let tiles = OnceLock::new();
        Self {
            columns,
            values,
            rows,
            weights,
            places,
            is_centred,
            centre,
            dual,
            targets,
            importances,
            trajectory,
            tiles,
        }
    }

    pub(crate) fn tiles(&self) -> &Tiles {
        self.tiles.get_or_init(|| std::sync::Arc::new(Tiles::new(&self.rows)))
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.rows.n_rows()
    }

    pub(crate) fn n_outputs(&self) -> usize {
        self.dual.n_columns()
    }

    pub(crate) fn lifetimes(&self) -> Vec<f64> {
        lifetimes_of_inputs(&self.columns, &self.values)
    }

    pub(crate) fn rank_lifetimes(&self) -> Vec<f64> {
        rank_lifetimes_of_inputs(&self.columns, &self.values)
    }

    /// The model with λ, ν and the metric's term multiplied by one factor, solved again on the first rows of the keyed
    /// order, which are a sample; and its leave-one-out residuals. Importances and trajectory stay.
    pub(crate) fn scaled(&self, factor: f64, most_rows: usize, threads: Threads) -> Result<(Self, Matrix)> {
        if !(factor > 0.0 && factor.is_finite()) {
            return Err(Error::InvalidParameter { name: "factor", value: factor, expected: "a finite number above 0" });
        }
        let n = self.n_rows().min(most_rows.max(1));
        let first: Vec<usize> = (0..n).collect();
        let times = |numbers: &[f64], by: f64| numbers.iter().map(|x| by * x).collect::<Vec<f64>>();
        let inside = factor.powf(1.0 / self.values.exponent);
        let metric = &self.values.metric;
        let values = Values {
            lifetimes: times(&self.values.lifetimes, factor),
            level_weights: times(&self.values.level_weights, factor),
            metric: Matrix::from_fn(metric.n_rows(), metric.n_columns(), |i, j| inside * metric[(i, j)]),
            ..self.values.clone()
        };
        let own = self.rows.select(&first);
        let mut rows = KernelRows::without_columns(n);
        if own.n_axes() > 0 {
            rows = rows.with_axes(times(own.axes(), factor), own.n_axes())?;
        }
        if own.n_levels() > 0 {
            rows = rows.with_levels(own.levels().to_vec(), values.level_weights.clone())?;
        }
        if own.n_directions() > 0 {
            rows = rows.with_directions(times(own.directions(), inside), own.n_directions(), values.exponent)?;
        }
        let weights = self.weights[..n].to_vec();
        let targets = Matrix::from_fn(n, self.n_outputs(), |i, c| self.targets[(i, c)] + self.centre[c]);
        let solution = solve(&rows, &targets, &weights, self.is_centred, values.alpha, threads)?;
        let places = if n == self.n_rows() { self.places.clone() } else { (0..n as u32).map(|i| (i, 1.0)).collect() };
        let parts = (solution.centre, solution.dual, solution.targets);
        let (importances, trajectory) = (self.importances.clone(), self.trajectory.clone());
        let model = Self::new(
            self.columns.clone(),
            values,
            rows,
            weights,
            places,
            self.is_centred,
            parts,
            importances,
            trajectory,
        );
        Ok((model, solution.residuals))
    }

    /// Rows as the kernel sees them.
    pub(crate) fn query(&self, cells: Cells<'_>) -> Result<Tiles> {
        Ok(Tiles::new(&self.values.rows(&self.columns.apply(cells)?)?))
    }

    /// Calls `work` with each query's number and its kernel values against all rows; results in the queries' order.
    pub(crate) fn for_each<T: Send>(
        &self,
        queries: &Tiles,
        work: impl Fn(usize, &mut [f64]) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let (tiles, n) = (self.tiles(), queries.n_rows());
        let block = |first: usize| -> Result<Vec<T>> {
            let mut kernel = vec![0.0; tiles.n_rows()];
            let one = |q: usize, kernel: &mut [f64]| {
                tiles.fill_column(queries.row(q), 0, kernel);
                work(q, kernel)
            };
            (first..(first + QUERIES).min(n)).map(|q| one(q, &mut kernel)).collect()
        };
        let starts: Vec<usize> = (0..n).step_by(QUERIES).collect();
        let parts: Vec<Result<Vec<T>>> = if starts.len() < 2 {
            starts.into_iter().map(block).collect()
        } else {
            starts.into_par_iter().map(block).collect()
        };
        let mut all = Vec::with_capacity(n);
        for part in parts {
            all.extend(part?);
        }
        Ok(all)
    }

    /// The prediction from kernel values.
    pub(crate) fn score(&self, kernel: &[f64], output: usize) -> f64 {
        self.centre[output] + dot(kernel, self.dual.column(output))
    }

    /// Predictions of the outputs as they were fitted, row-major.
    pub(crate) fn scores(&self, cells: Cells<'_>) -> Result<Vec<f64>> {
        let queries = self.query(cells)?;
        let rows = self.for_each(&queries, |_, kernel| {
            Ok((0..self.n_outputs()).map(|c| self.score(kernel, c)).collect::<Vec<f64>>())
        })?;
        Ok(rows.concat())
    }

    /// The smoothing matrix in the order of the rows given, row-major.
    pub(crate) fn equivalent_kernel(&self, cells: Cells<'_>, threads: Threads) -> Result<Vec<f64>> {
        let n = self.n_rows();
        let lower = factor(&self.rows, &self.weights, self.values.alpha, threads)?;
        let queries = self.query(cells)?;
        let total: f64 = self.weights.iter().sum();
        let n_given = self.places.len();
        let mut out = vec![0.0; queries.n_rows() * n_given];
        let mut column = Matrix::zeros(n, 1);
        for (q, out) in (0..queries.n_rows()).zip(out.chunks_exact_mut(n_given)) {
            self.tiles().fill_column(queries.row(q), 0, column.as_mut_slice());
            solve_blocks(&lower, &mut column);
            let rest = if self.is_centred { 1.0 - column.as_slice().iter().sum::<f64>() } else { 0.0 };
            for (out, (at, share)) in out.iter_mut().zip(&self.places) {
                let at = *at as usize;
                *out = share * (column[(at, 0)] + rest * self.weights[at] / total);
            }
        }
        Ok(out)
    }

    /// The weight of each row given, in their order; rows of weight zero have none.
    pub(crate) fn dual_in_order(&self, output: usize) -> Vec<f64> {
        let dual = self.dual.column(output);
        self.places.iter().map(|(at, share)| share * dual[*at as usize]).collect()
    }
}

/// Rows in an order that only their numbers decide, by a keyed hash of inputs and targets. Equal rows are one of the sum of
/// their weights, so that a weight of two is a row given twice; rows of weight zero are left out.
pub(crate) struct KeyedRows {
    /// One row given for each that is kept.
    pub(crate) rows: Vec<usize>,
    /// Weights of those kept, over their mean.
    pub(crate) weights: Vec<f64>,
    /// Where each row given is among those kept, and its share of the weight there.
    pub(crate) places: Vec<(u32, f64)>,
}

impl KeyedRows {
    pub(crate) fn new(cells: Cells<'_>, targets: &Matrix, weights: Option<&[f64]>, seed: u64) -> Self {
        let key = NodeKey::root(seed, 0).fork(0x726F_7773);
        let weight = |i: usize| weights.map_or(1.0, |w| w[i]);
        let number = |x: f64| if x.is_nan() { u64::MAX } else { (x + 0.0).to_bits() };
        let hash = |i: usize| {
            let inputs = cells.row(i).iter().fold(key, |key, x| key.fork(number(*x)));
            (0..targets.n_columns()).fold(inputs, |key, c| key.fork(number(targets[(i, c)])))
        };
        let mut order: Vec<(NodeKey, usize)> =
            (0..cells.n_rows()).filter(|i| weight(*i) > 0.0).map(|i| (hash(i), i)).collect();
        order.sort_unstable();
        let (mut rows, mut kept) = (Vec::new(), Vec::new());
        let mut places = vec![(0, 0.0); cells.n_rows()];
        for group in order.chunk_by(|a, b| a.0 == b.0) {
            // Ascending, so that the sum does not depend on the order of the rows.
            let mut parts: Vec<f64> = group.iter().map(|(_, i)| weight(*i)).collect();
            parts.sort_by(f64::total_cmp);
            let sum: f64 = parts.iter().sum();
            group.iter().for_each(|(_, i)| places[*i] = (rows.len() as u32, weight(*i) / sum));
            rows.push(group[0].1);
            kept.push(sum);
        }
        let mean = kept.iter().map(|w| w / kept.len() as f64).sum::<f64>();
        kept.iter_mut().for_each(|w| *w /= mean);
        Self { rows, weights: kept, places }
    }
}

/// Refuses weights that are negative or not finite, and none above zero.
pub(crate) fn checked_weights(weights: Option<&[f64]>, n_rows: usize) -> Result<()> {
    let Some(weights) = weights else { return Ok(()) };
    if weights.len() != n_rows {
        return Err(Error::LengthMismatch { what: "weights", expected: n_rows, found: weights.len() });
    }
    if let Some(&value) = weights.iter().find(|w| !(**w >= 0.0 && w.is_finite())) {
        return Err(Error::InvalidParameter { name: "sample_weight", value, expected: "a finite number ≥ 0" });
    }
    if weights.iter().all(|w| *w == 0.0) {
        return Err(Error::InvalidParameter { name: "sample_weight", value: 0.0, expected: "above 0 somewhere" });
    }
    Ok(())
}

#[derive(Serialize, Deserialize)]
struct Numbers {
    n_rows: usize,
    n_axes: usize,
    n_levels: usize,
    n_directions: usize,
    n_outputs: usize,
    exponent: f64,
    alpha: f64,
    is_centred: bool,
}

impl KernelModel {
    pub(crate) fn store(&self, archive: &mut Archive) -> Result<()> {
        let rows = &self.rows;
        let numbers = Numbers {
            n_rows: rows.n_rows(),
            n_axes: rows.n_axes(),
            n_levels: rows.n_levels(),
            n_directions: rows.n_directions(),
            n_outputs: self.n_outputs(),
            exponent: self.values.exponent,
            alpha: self.values.alpha,
            is_centred: self.is_centred,
        };
        archive.set_params("kernel", &numbers)?;
        archive.set_params("columns", &self.columns)?;
        archive.set_params("trajectory", &self.trajectory)?;
        archive.insert_vec("axes", rows.axes().to_vec())?;
        archive.insert_vec("levels", rows.levels().to_vec())?;
        archive.insert_vec("directions", rows.directions().to_vec())?;
        archive.insert_vec("lifetimes", self.values.lifetimes.clone())?;
        archive.insert_vec("level_weights", self.values.level_weights.clone())?;
        archive.insert_vec("metric", self.values.metric.as_slice().to_vec())?;
        archive.insert_vec("weights", self.weights.clone())?;
        let (places, shares): (Vec<u32>, Vec<f64>) = self.places.iter().copied().unzip();
        archive.insert_vec("places", places)?;
        archive.insert_vec("shares", shares)?;
        archive.insert_vec("centre", self.centre.clone())?;
        archive.insert_vec("dual", self.dual.as_slice().to_vec())?;
        archive.insert_vec("targets", self.targets.as_slice().to_vec())?;
        archive.insert_vec("importances", self.importances.clone())
    }

    pub(crate) fn restore(archive: &Archive) -> Result<Self> {
        let wrong = || Error::from(ModelFileError::Inconsistent { what: "the numbers of a tuned kernel" });
        let Numbers { n_rows, n_axes, n_levels, n_directions, n_outputs, exponent, alpha, is_centred } =
            archive.params("kernel")?;
        let columns: Columns = archive.params("columns")?;
        let trajectory = archive.params("trajectory")?;
        let numbers = |name: &str| -> Result<Vec<f64>> {
            let numbers: Vec<f64> = archive.vec(name)?;
            if numbers.iter().all(|x| x.is_finite()) { Ok(numbers) } else { Err(wrong()) }
        };
        let metric = numbers("metric")?;
        let n_linear = columns.metric_inputs().len();
        let metric = if n_directions == 0 {
            Matrix::zeros(0, 0)
        } else {
            Matrix::from_column_major(metric, n_directions, n_linear).map_err(|_| wrong())?
        };
        let (lifetimes, level_weights) = (numbers("lifetimes")?, numbers("level_weights")?);
        let values = Values { lifetimes, level_weights: level_weights.clone(), metric, exponent, alpha };
        let sound = columns.is_sound()
            && columns.axis_inputs().len() == n_axes
            && columns.level_inputs().len() == n_levels
            && values.is_sound(n_axes, n_levels, n_linear);
        if !sound || n_rows == 0 || n_outputs == 0 {
            return Err(wrong());
        }
        let mut rows = KernelRows::without_columns(n_rows);
        if n_axes > 0 {
            rows = rows.with_axes(numbers("axes")?, n_axes).map_err(|_| wrong())?;
        }
        if n_levels > 0 {
            rows = rows.with_levels(archive.vec("levels")?, level_weights).map_err(|_| wrong())?;
        }
        if n_directions > 0 {
            rows = rows.with_directions(numbers("directions")?, n_directions, exponent).map_err(|_| wrong())?;
        }
        let (weights, shares): (Vec<f64>, Vec<f64>) = (numbers("weights")?, numbers("shares")?);
        let places: Vec<u32> = archive.vec("places")?;
        let table = |name: &str| Matrix::from_column_major(numbers(name)?, n_rows, n_outputs).map_err(|_| wrong());
        let (dual, targets) = (table("dual")?, table("targets")?);
        let (centre, importances) = (numbers("centre")?, numbers("importances")?);
        let fits = weights.len() == n_rows
            && places.len() == shares.len()
            && places.iter().all(|i| (*i as usize) < n_rows)
            && weights.iter().all(|w| *w > 0.0)
            && centre.len() == n_outputs
            && importances.len() == columns.n_inputs();
        if !fits {
            return Err(wrong());
        }
        let solution = (centre, dual, targets);
        let places = places.into_iter().zip(shares).collect();
        Ok(Self::new(columns, values, rows, weights, places, is_centred, solution, importances, trajectory))
    }
}
