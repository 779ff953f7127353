//! What regression and classification with a tuned kernel share: columns, kernel, rows and their weights.

use std::sync::{Arc, OnceLock};

use crate::parallel::current_num_threads;
use crate::parallel::prelude::*;
use serde::{Deserialize, Serialize};

use crate::laplace::columns::Columns;
use crate::laplace::conjugate::{ConjugateOptions, conjugate_solve};
use crate::laplace::importance::{Relevance, importances, importances_by_neighbors};
use crate::laplace::large::{LEFT_OUT, SolverReport, SolverUsed, cross_product};
use crate::laplace::local::LocalRows;
use crate::laplace::objective::Loss;
use crate::laplace::search::{lifetimes_of_inputs, rank_lifetimes_of_inputs};
use crate::laplace::solve::{Solution, factor, solve};
use crate::laplace::tiles::Tiles;
use crate::laplace::values::Values;
use crate::laplace::{Cells, KernelRows, PackedRows};
use crate::linalg::{Matrix, Threads, dot, solve_blocks};
use crate::memory;
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
    /// Weights of the rows, their mean 1 when they were tuned on.
    pub(crate) weights: Vec<f64>,
    /// What the weights given were divided by.
    pub(crate) weight_unit: f64,
    /// Where each row given is among the rows, and its share of the weight there.
    pub(crate) places: Vec<(u32, f64)>,
    pub(crate) is_centred: bool,
    pub(crate) centre: Vec<f64>,
    /// Without columns where neighbours alone predict.
    pub(crate) dual: Matrix,
    /// The centred targets.
    pub(crate) targets: Matrix,
    pub(crate) report: SolverReport,
    /// The rows' cells as they were given, row-major. A file of a model with one factorisation does not hold them.
    pub(crate) table: Vec<f64>,
    pub(crate) importances: Vec<f64>,
    pub(crate) trajectory: Trajectory,
    pub(crate) forms: Forms,
}

/// Rows in the forms that queries need, made when one comes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Forms {
    tiles: OnceLock<Arc<Tiles>>,
    packed: OnceLock<Arc<PackedRows>>,
}

/// Queries looked up by one task.
const QUERIES: usize = 16;

impl KernelModel {
    pub(crate) fn tiles(&self) -> &Tiles {
        self.forms.tiles.get_or_init(|| Arc::new(Tiles::new(&self.rows)))
    }

    pub(crate) fn packed(&self) -> &PackedRows {
        self.forms.packed.get_or_init(|| Arc::new(PackedRows::new(&self.rows)))
    }

    /// Whether all rows were solved by one factorisation.
    pub(crate) fn is_exact(&self) -> bool {
        self.report.used == SolverUsed::Exact
    }

    /// The rows as neighbours of queries, on the threads of the caller.
    fn local(&self, threads: Threads) -> LocalRows<'_> {
        LocalRows {
            rows: &self.rows,
            packed: self.packed(),
            targets: &self.targets,
            centre: &self.centre,
            weights: &self.weights,
            alpha: self.values.alpha,
            threads,
        }
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.rows.n_rows()
    }

    pub(crate) fn n_outputs(&self) -> usize {
        self.targets.n_columns()
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
        let places = if n == self.n_rows() { self.places.clone() } else { (0..n as u32).map(|i| (i, 1.0)).collect() };
        let Solution { dual, targets, centre, residuals, report } =
            solve(&rows, &targets, &weights, self.is_centred, values.alpha, threads)?;
        let model = Self {
            columns: self.columns.clone(),
            values,
            rows,
            weights,
            weight_unit: self.weight_unit,
            places,
            is_centred: self.is_centred,
            centre,
            dual,
            targets,
            report,
            table: Vec::new(),
            importances: self.importances.clone(),
            trajectory: self.trajectory.clone(),
            forms: Forms::default(),
        };
        Ok((model, residuals))
    }

    /// Rows as the kernel sees them.
    pub(crate) fn query_rows(&self, cells: Cells<'_>) -> Result<KernelRows> {
        self.values.rows(&self.columns.apply(cells)?)
    }

    /// The same in tiles.
    pub(crate) fn query(&self, cells: Cells<'_>) -> Result<Tiles> {
        Ok(Tiles::new(&self.query_rows(cells)?))
    }

    /// Calls `work` with each query's number and its kernel values against all rows; results in the queries' order.
    pub(crate) fn for_each<T: Send>(
        &self,
        queries: &Tiles,
        work: impl Fn(usize, &mut [f64]) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let (tiles, n) = (self.tiles(), queries.n_rows());
        let block = |first: usize| -> Result<Vec<T>> {
            let numbers = first..(first + QUERIES).min(n);
            let mut kernels = vec![0.0; tiles.n_rows() * numbers.len()];
            tiles.fill_columns(&queries.rows_of(numbers.clone()), 0, &mut kernels);
            numbers.zip(kernels.chunks_exact_mut(tiles.n_rows())).map(|(q, kernel)| work(q, kernel)).collect()
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
        if !self.is_exact() {
            return Ok(self.scores_of_many(&self.query_rows(cells)?)?.transposed().into_vec());
        }
        let queries = self.query(cells)?;
        let rows = self.for_each(&queries, |_, kernel| {
            Ok((0..self.n_outputs()).map(|c| self.score(kernel, c)).collect::<Vec<f64>>())
        })?;
        Ok(rows.concat())
    }

    /// Predictions of a model of many rows, one column per output.
    pub(crate) fn scores_of_many(&self, queries: &KernelRows) -> Result<Matrix> {
        let threads = Threads::up_to(current_num_threads());
        let local = match (self.report.used, self.report.local) {
            (SolverUsed::Local | SolverUsed::Mean, Some(settings)) => {
                Some(self.local(threads).predict(queries, None, settings)?)
            }
            _ => None,
        };
        if self.dual.n_columns() == 0 {
            return local.ok_or(Error::NotFitted);
        }
        let mut exact = cross_product(&self.rows, self.packed(), queries, &self.dual, &self.targets, threads)?;
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

    /// The smoothing matrix in the order of the rows given, row-major.
    pub(crate) fn equivalent_kernel(&self, cells: Cells<'_>, threads: Threads) -> Result<Vec<f64>> {
        let n_given = self.places.len();
        let bytes = memory::bytes_of(cells.n_rows(), n_given);
        memory::check("bytes of the smoothing matrix", bytes)?;
        let mut out = vec![0.0; cells.n_rows() * n_given];
        let total: f64 = self.weights.iter().sum();
        // One query's weights of the rows kept, handed on to the rows given.
        let hand_on = |weights: &[f64], out: &mut [f64]| {
            let rest = if self.is_centred { 1.0 - weights.iter().sum::<f64>() } else { 0.0 };
            for (out, (at, share)) in out.iter_mut().zip(&self.places) {
                let at = *at as usize;
                *out = share * (weights[at] + rest * self.weights[at] / total);
            }
        };
        if self.is_exact() {
            memory::check("bytes of the kernel matrix", memory::bytes_of(self.n_rows(), self.n_rows()))?;
            let lower = factor(&self.rows, &self.weights, self.values.alpha, threads)?;
            let queries = self.query(cells)?;
            let mut column = Matrix::zeros(self.n_rows(), 1);
            for (q, out) in (0..queries.n_rows()).zip(out.chunks_exact_mut(n_given)) {
                self.tiles().fill_column(queries.row(q), 0, column.as_mut_slice());
                solve_blocks(&lower, &mut column);
                hand_on(column.as_slice(), out);
            }
            return Ok(out);
        }
        let smoother = self.smoother_of_many(&self.query_rows(cells)?, threads)?;
        for (weights, out) in smoother.chunks_exact(self.n_rows()).zip(out.chunks_exact_mut(n_given)) {
            hand_on(weights, out);
        }
        Ok(out)
    }

    /// Weights of the rows kept in predictions by a model of many rows, one query after the other.
    fn smoother_of_many(&self, queries: &KernelRows, threads: Threads) -> Result<Vec<f64>> {
        let n = self.n_rows();
        memory::check("bytes of the smoothing matrix", 4.0 * memory::bytes_of(queries.n_rows(), n))?;
        let local = match self.report.local {
            Some(settings) if self.report.used != SolverUsed::Cg => self.local(threads).smoother(queries, settings)?,
            _ => Vec::new(),
        };
        if self.report.used == SolverUsed::Local {
            return Ok(local);
        }
        let (tiles, others) = (self.tiles(), Tiles::new(queries));
        let mut right = Matrix::zeros(n, queries.n_rows());
        (0..queries.n_rows()).for_each(|q| tiles.fill_column(others.row(q), 0, right.column_mut(q)));
        let noise: Vec<f64> = self.weights.iter().map(|w| self.values.alpha / w).collect();
        let options = ConjugateOptions { tolerance: 1e-5, threads, ..ConjugateOptions::default() };
        let mut exact = conjugate_solve(&self.rows, &noise, &right, None, options)?.dual.into_vec();
        exact.iter_mut().zip(&local).for_each(|(e, l)| *e = 0.5 * (*e + l));
        Ok(exact)
    }

    /// The weight of each row given, in their order; rows of weight zero have none. `None` where neighbours alone predict.
    pub(crate) fn dual_in_order(&self, output: usize) -> Option<Vec<f64>> {
        if self.dual.n_columns() == 0 {
            return None;
        }
        let dual = self.dual.column(output);
        Some(self.places.iter().map(|(at, share)| share * dual[*at as usize]).collect())
    }

    /// Appends rows; lifetimes, columns and settings stay as they are. A model with a solution of all rows becomes one that
    /// predicts from nearest rows.
    ///
    /// # Errors
    /// [`Error::NotLocal`] for a model that does not know its rows' cells, [`Error::LengthMismatch`]; nothing is changed then.
    pub(crate) fn append(
        &mut self,
        cells: Cells<'_>,
        targets: &Matrix,
        weights: Option<&[f64]>,
        loss: Loss,
    ) -> Result<()> {
        if self.table.is_empty() {
            return Err(Error::NotLocal);
        }
        if targets.n_columns() != self.n_outputs() {
            let (expected, found) = (self.n_outputs(), targets.n_columns());
            return Err(Error::LengthMismatch { what: "targets per row", expected, found });
        }
        let settings = if let Some(settings) = self.report.local {
            settings
        } else {
            let first: Vec<usize> = (0..self.n_rows().min(LEFT_OUT)).collect();
            let threads = Threads::up_to(current_num_threads());
            self.local(threads).leave_out(&first, None, self.is_centred, loss)?.settings
        };
        let weight = |i: usize| weights.map_or(1.0, |w| w[i]) / self.weight_unit;
        let kept: Vec<usize> = (0..cells.n_rows()).filter(|&i| weight(i) > 0.0).collect();
        let old = self.n_rows();
        // New levels of a categorical input change the codes of all rows.
        let mut columns = self.columns.clone();
        let recoded = if columns.add_levels_of(cells)? {
            let own = Cells::row_major(&self.table, columns.n_inputs())?;
            Some(self.values.rows(&columns.apply(own)?)?)
        } else {
            None
        };
        let added = self.values.rows(&columns.apply(cells)?)?.select(&kept);
        let mut place = vec![(0, 0.0); cells.n_rows()];
        kept.iter().enumerate().for_each(|(k, &i)| place[i] = ((old + k) as u32, 1.0));
        let whole = Matrix::from_fn(old + kept.len(), self.n_outputs(), |i, c| {
            if i < old { self.targets[(i, c)] } else { targets[(kept[i - old], c)] - self.centre[c] }
        });
        let added_weights: Vec<f64> = kept.iter().map(|&i| weight(i)).collect();
        if let Some(rows) = recoded {
            self.rows = rows;
        }
        self.rows.append(&added)?;
        self.columns = columns;
        self.targets = whole;
        self.weights.extend(added_weights);
        self.places.extend(place);
        kept.iter().for_each(|&i| self.table.extend_from_slice(cells.row(i)));
        self.dual = Matrix::zeros(self.n_rows(), 0);
        self.forms = Forms::default();
        self.report = SolverReport {
            used: SolverUsed::Local,
            local: Some(settings),
            conjugate: None,
            compared: None,
            ..self.report
        };
        Ok(())
    }

    /// Where the rows once given to this model are in another, fitted on the rows of this one.
    pub(crate) fn places_after(&self, again: &Self) -> Vec<(u32, f64)> {
        let place = |(at, share): &(u32, f64)| {
            let (place, of_it) = again.places[*at as usize];
            (place, share * of_it)
        };
        self.places.iter().map(place).collect()
    }

    /// What permuting each input does to the loss of rows left out. `fitted` are the targets of this model.
    pub(crate) fn relevance_of_inputs(&self, fitted: &Matrix, loss: Loss, key: NodeKey) -> Result<Relevance> {
        let (columns, values) = (&self.columns, &self.values);
        let cells = Cells::row_major(&self.table, columns.n_inputs())?;
        match self.report.local {
            None => importances(columns, values, cells, fitted, &self.weights, loss, self.is_centred, key),
            Some(settings) => {
                let local = self.local(Threads::up_to(current_num_threads()));
                importances_by_neighbors(columns, values, cells, local, settings, loss, key)
            }
        }
    }

    /// The rows' cells, where they are kept, with marks of the categorical inputs.
    ///
    /// # Errors
    /// [`Error::NotLocal`] where they are not.
    pub(crate) fn cells(&self) -> Result<(Cells<'_>, Vec<bool>)> {
        if self.table.is_empty() {
            return Err(Error::NotLocal);
        }
        Ok((Cells::row_major(&self.table, self.columns.n_inputs())?, self.columns.categorical()))
    }
}

/// Rows in an order that only their numbers decide, by a keyed hash of inputs and targets. Equal rows are one of the sum of
/// their weights, so that a weight of two is a row given twice; rows of weight zero are left out.
pub(crate) struct KeyedRows {
    /// One row given for each that is kept.
    pub(crate) rows: Vec<usize>,
    /// Weights of those kept, over their mean.
    pub(crate) weights: Vec<f64>,
    /// That mean.
    pub(crate) unit: f64,
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
        Self { rows, weights: kept, unit: mean, places }
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

/// Kept of models of many rows.
#[derive(Serialize, Deserialize)]
struct Solver {
    report: SolverReport,
    weight_unit: f64,
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
        if self.is_exact() {
            archive.insert_vec("axes", rows.axes().to_vec())?;
            archive.insert_vec("levels", rows.levels().to_vec())?;
            archive.insert_vec("directions", rows.directions().to_vec())?;
        } else {
            archive.set_params("solver", &Solver { report: self.report, weight_unit: self.weight_unit })?;
            archive.insert_vec("cells", self.table.clone())?;
        }
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
        let solver = archive.params::<Solver>("solver").ok();
        let (mut rows, mut table) = (KernelRows::without_columns(n_rows), Vec::new());
        if solver.is_some() {
            table = archive.vec("cells")?;
            let cells = Cells::row_major(&table, columns.n_inputs()).map_err(|_| wrong())?;
            rows = values.rows(&columns.apply(cells)?).map_err(|_| wrong())?;
            if rows.n_rows() != n_rows || rows.n_directions() != n_directions {
                return Err(wrong());
            }
        } else {
            if n_axes > 0 {
                rows = rows.with_axes(numbers("axes")?, n_axes).map_err(|_| wrong())?;
            }
            if n_levels > 0 {
                rows = rows.with_levels(archive.vec("levels")?, level_weights).map_err(|_| wrong())?;
            }
            if n_directions > 0 {
                rows = rows.with_directions(numbers("directions")?, n_directions, exponent).map_err(|_| wrong())?;
            }
        }
        let Solver { report, weight_unit } =
            solver.unwrap_or(Solver { report: SolverReport::exact(n_rows), weight_unit: 1.0 });
        let (weights, shares): (Vec<f64>, Vec<f64>) = (numbers("weights")?, numbers("shares")?);
        let places: Vec<u32> = archive.vec("places")?;
        let matrix = |name: &str, n_columns: usize| {
            Matrix::from_column_major(numbers(name)?, n_rows, n_columns).map_err(|_| wrong())
        };
        let n_dual = if report.used == SolverUsed::Local { 0 } else { n_outputs };
        let (dual, targets) = (matrix("dual", n_dual)?, matrix("targets", n_outputs)?);
        let (centre, importances) = (numbers("centre")?, numbers("importances")?);
        let fits = weights.len() == n_rows
            && places.len() == shares.len()
            && places.iter().all(|i| (*i as usize) < n_rows)
            && weights.iter().all(|w| *w > 0.0)
            && centre.len() == n_outputs
            && importances.len() == columns.n_inputs()
            && weight_unit > 0.0
            && weight_unit.is_finite()
            && (report.used == SolverUsed::Exact) == table.is_empty()
            && (report.used == SolverUsed::Exact || report.local.is_some_and(|local| local.n_neighbors > 0));
        if !fits {
            return Err(wrong());
        }
        let places = places.into_iter().zip(shares).collect();
        let forms = Forms::default();
        Ok(Self {
            columns,
            values,
            rows,
            weights,
            weight_unit,
            places,
            is_centred,
            centre,
            dual,
            targets,
            report,
            table,
            importances,
            trajectory,
            forms,
        })
    }
}
