//! Regression with the whole tuned kernel: the model to try first on a table of numbers.

use serde::{Deserialize, Serialize};

use crate::laplace::large::SolverReport;
use crate::laplace::model::{Forms, KernelModel, KeyedRows, checked_weights};
use crate::laplace::objective::Loss;
use crate::laplace::search::{Search, TunedKernel};
use crate::laplace::solve::Solution;
use crate::laplace::target::{TargetMap, residual_quantiles};
use crate::laplace::target_choice::{best_of_first, mapped, maps_for, solve_with_map, standardised};
use crate::laplace::uncertainty::{Calibration, near_scales};
use crate::laplace::{Cells, LaplaceRegressorParams};
use crate::linalg::{Matrix, Threads};
use crate::memory;
use crate::model_file::{Archive, ModelFileError, Saved};
use crate::process::NodeKey;
use crate::progress::{FitOptions, Progress, Step};
use crate::ridge::by_column;
use crate::{Error, Prediction, Result};

/// What a fitted regression is worth by leave-one-out on all rows, or a sample of 20 000 (2000 without one factorisation), in the
/// target's units.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LeaveOneOut {
    /// The root mean squared error.
    pub rmse: f64,
    /// The mean absolute error.
    pub mae: f64,
    /// The root mean squared error of predicting the mean.
    pub rmse_of_mean: f64,
}

impl LeaveOneOut {
    /// 1 − squared error over that of the mean; 0 for a constant target.
    pub fn r2(&self) -> f64 {
        if self.rmse_of_mean > 0.0 { 1.0 - (self.rmse / self.rmse_of_mean).powi(2) } else { 0.0 }
    }
}

/// Ridge regression with k(x, x') = exp(−Σ λ|u| − Σ ν·1\[u ≠ 0\] − ‖Au‖^p), everything tuned by leave-one-out.
///
/// ```
/// use mondrian::{Cells, LaplaceRegressor};
/// let x: Vec<f64> = (0..60).flat_map(|i| [f64::from(i) / 60.0, f64::from(i * 37 % 60) / 60.0]).collect();
/// let y: Vec<f64> = x.chunks(2).map(|row| (9.0 * row[0]).sin()).collect();
/// let cells = Cells::row_major(&x, 2)?;
/// let model = LaplaceRegressor::params().fit(cells, &y)?;
/// assert_eq!(model.importances()[0], 1.0);
/// let mean = model.predict(Cells::row_major(&[0.5, f64::NAN], 2)?)?;
/// assert!((mean[0] - 4.5_f64.sin()).abs() < 0.2);
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LaplaceRegressor {
    model: KernelModel,
    map: TargetMap,
    /// 41 quantiles of the leave-one-out residuals of the mapped target.
    smear: Vec<f64>,
    calibrations: Vec<Calibration>,
    /// What not knowing an input adds to the variance of each mapped target, input by input: half of the squared error that
    /// permuting it adds, since a permuted cell is off twice, by what it is and by what it should be. Empty in models from older
    /// files.
    of_unknown: Vec<f64>,
    worth: Vec<LeaveOneOut>,
}

impl LaplaceRegressor {
    /// Starts from the default parameters.
    pub fn params() -> LaplaceRegressorParams {
        LaplaceRegressorParams::default()
    }

    /// Tunes and solves, from a tuned kernel on if there is one, with one target per column.
    pub(crate) fn fit_columns(
        from: Option<&KernelModel>,
        cells: Cells<'_>,
        categorical: &[bool],
        targets: &Matrix,
        params: &LaplaceRegressorParams,
        options: FitOptions<'_>,
    ) -> Result<Self> {
        let FitOptions { weights, progress } = options;
        check_targets(cells, targets)?;
        checked_weights(weights, cells.n_rows())?;
        let tuning = params.tuned_by();
        let KeyedRows { rows: order, weights, unit, places } = KeyedRows::new(cells, targets, weights, tuning.seed);
        let is_exact = tuning.is_exact(order.len());
        if is_exact {
            memory::check("bytes of the kernel matrix", memory::bytes_of(order.len(), order.len()))?;
        }
        let table: Vec<f64> = order.iter().flat_map(|&i| cells.row(i).iter().copied()).collect();
        let cells = Cells::row_major(&table, cells.n_columns())?;
        let (n, c) = (order.len(), targets.n_columns());
        let targets = Matrix::from_fn(n, c, |i, k| targets[(order[i], k)]);
        let mut search = Search::new(tuning, cells, categorical, weights.clone(), Loss::Squared, progress)?;
        let identity = standardised(&targets, &weights);
        search.scale = identity.1[0];
        let maps = maps_for(params.target_map, &targets)?;
        let rough = match from {
            Some(model) => search.resume(model)?,
            None if maps == [TargetMap::Identity] => search.rough(&identity.0)?,
            None => search.rough(&standardised(&mapped(&targets, maps[0]), &weights).0)?,
        };
        let map = best_of_first(&rough, &targets, &weights, &maps, tuning)?;
        let (fitted, scales) = standardised(&mapped(&targets, map), &weights);
        search.scale = scales[0];
        let TunedKernel { columns, values } = search.finish(rough, &fitted)?;
        let trajectory = std::mem::take(&mut search.trajectory);
        drop(search);
        let rows = values.rows(&columns.apply(cells)?)?;
        let (map, solution) = solve_with_map(&rows, &targets, &weights, values.alpha, &maps, map, tuning)?;
        let key = NodeKey::root(tuning.seed, 0).fork(0x696D_706F);
        let (fitted, scales) = standardised(&mapped(&targets, map), &weights);
        let smear = if c == 1 { residual_quantiles(solution.residuals.column(0)) } else { Vec::new() };
        let worth = (0..c).map(|k| worth(map, &targets, &weights, solution.residuals.column(k), k, &smear)).collect();
        let Solution { dual, targets, centre, residuals, report } = solution;
        let mut model = KernelModel {
            columns,
            values,
            rows,
            weights,
            weight_unit: unit,
            places,
            is_centred: tuning.fit_intercept,
            centre,
            dual,
            targets,
            report,
            table,
            importances: Vec::new(),
            trajectory,
            forms: Forms::default(),
        };
        let relevance = model.relevance_of_inputs(&fitted, Loss::Squared, key)?;
        model.importances = relevance.shares;
        // Fitted targets are in units of their scales.
        let of_unknown = relevance.squares.iter().enumerate().map(|(at, square)| 0.5 * square * scales[at % c].powi(2));
        let of_unknown = of_unknown.collect();
        let calibrate = |k: usize| Calibration::learn(&model, residuals.column(k), k);
        let calibrations = (0..c).map(calibrate).collect::<Result<Vec<_>>>()?;
        Ok(Self { model, map, smear, calibrations, of_unknown, worth })
    }

    /// How all rows were solved.
    pub fn solver(&self) -> &SolverReport {
        &self.model.report
    }

    /// Learns more rows online; everything tuned stays as it is, and predictions come from nearest rows from then on.
    /// [`LaplaceRegressor::solver`] says how many rows the tuning has seen, and [`LaplaceRegressor::tuned_again`] tunes on
    /// all.
    ///
    /// # Errors
    /// [`Error::NotLocal`] for a model from a file without its rows' cells, [`Error::LengthMismatch`],
    /// [`Error::NotFinite`], [`Error::InvalidParameter`] for targets outside the target map's domain. Nothing is changed
    /// then.
    pub fn learn(&mut self, cells: Cells<'_>, targets: &[f64]) -> Result<()> {
        self.learn_with(cells, targets, FitOptions::default())
    }

    /// As [`LaplaceRegressor::learn`], with weights of the rows.
    ///
    /// # Errors
    /// As [`LaplaceRegressor::learn`].
    #[expect(clippy::needless_pass_by_value, reason = "options are passed by value to every model")]
    pub fn learn_with(&mut self, cells: Cells<'_>, targets: &[f64], options: FitOptions<'_>) -> Result<()> {
        let (n, weights) = (cells.n_rows(), options.weights);
        let (expected, found) = (n * self.n_targets(), targets.len());
        if found != expected {
            return Err(Error::LengthMismatch { what: "targets", expected, found });
        }
        if n == 0 || weights.is_some_and(|w| w.iter().all(|w| *w == 0.0) && w.len() == n) {
            return Ok(());
        }
        let targets = by_column(n, targets)?;
        check_targets(cells, &targets)?;
        checked_weights(weights, n)?;
        maps_for(Some(self.map), &targets)?;
        self.model.append(cells, &mapped(&targets, self.map), weights, Loss::Squared)
    }

    /// Goes on tuning from this model's kernel, on these rows, the same or others: columns and form of the metric stay, the
    /// trajectory continues, and the kernel stays too unless another has a smaller leave-one-out error on the deciding rows.
    /// `max_seconds` counts from now.
    ///
    /// # Errors
    /// Those of a fit; this model is not changed.
    pub fn resumed(
        &self,
        cells: Cells<'_>,
        targets: &[f64],
        params: &LaplaceRegressorParams,
        options: FitOptions<'_>,
    ) -> Result<Self> {
        let targets = by_column(cells.n_rows(), targets)?;
        Self::fit_columns(Some(&self.model), cells, &self.model.columns.categorical(), &targets, params, options)
    }

    /// The model tuned and solved anew on all its rows, appended ones included.
    ///
    /// # Errors
    /// [`Error::NotLocal`] for a model that does not keep its rows, and those of a fit.
    pub fn tuned_again(&self, params: &LaplaceRegressorParams, mut progress: Progress<'_>) -> Result<Self> {
        let (cells, categorical) = self.model.cells()?;
        let (model, map) = (&self.model, self.map);
        let target = |i: usize, c: usize| map.invert(model.targets[(i, c)] + model.centre[c]);
        let targets = Matrix::from_fn(model.n_rows(), model.n_outputs(), target);
        let weights: Vec<f64> = model.weights.iter().map(|w| w * model.weight_unit).collect();
        let options = FitOptions { weights: Some(&weights), progress: progress.part(0.0, 1.0) };
        let mut again = Self::fit_columns(None, cells, &categorical, &targets, params, options)?;
        again.model.places = model.places_after(&again.model);
        Ok(again)
    }

    /// The lifetime of x of each input, in its own units; ν for a categorical one. A roughness, no relevance.
    pub fn lifetimes(&self) -> Vec<f64> {
        self.model.lifetimes()
    }

    /// The lifetime of the ranks of each input (of 4·F(x), or of normal scores), 0 where ranks are not used.
    pub fn rank_lifetimes(&self) -> Vec<f64> {
        self.model.rank_lifetimes()
    }

    /// α.
    pub fn alpha(&self) -> f64 {
        self.model.values.alpha
    }

    /// p.
    pub fn exponent(&self) -> f64 {
        self.model.values.exponent
    }

    /// A in the inputs' own units, one row per direction and one column per input; no rows without a metric.
    pub fn metric(&self) -> Matrix {
        metric_of_inputs(&self.model)
    }

    /// The map of the target.
    pub fn target_map(&self) -> TargetMap {
        self.map
    }

    /// What permuting each input does to the leave-one-out error, as a share of the largest.
    pub fn importances(&self) -> &[f64] {
        &self.model.importances
    }

    /// Every step of the tuning.
    pub fn trajectory(&self) -> &[Step] {
        self.model.trajectory.steps()
    }

    /// What the model is worth, for each target.
    pub fn leave_one_out(&self) -> &[LeaveOneOut] {
        &self.worth
    }

    /// Number of inputs.
    pub fn n_inputs(&self) -> usize {
        self.model.columns.n_inputs()
    }

    /// Number of training rows.
    pub fn n_rows(&self) -> usize {
        self.model.n_rows()
    }

    /// Number of targets.
    pub fn n_targets(&self) -> usize {
        self.model.n_outputs()
    }

    /// Weights of the training rows for one target, in the order given, and its centre; `None` where nearest rows predict.
    pub fn solution(&self, target: usize) -> Option<(Vec<f64>, f64)> {
        self.model.dual_in_order(target).map(|dual| (dual, self.model.centre[target]))
    }

    /// Rows of the kernel's own geometry: each λ-weighted axis, then A·x through keyed Gaussian directions.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the width differs.
    pub fn transform(&self, cells: Cells<'_>, n_directions: usize, seed: u64) -> Result<(Vec<f64>, usize)> {
        transform(&self.model, cells, n_directions, seed)
    }

    /// Predictions, row-major: one column per target.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the width differs.
    pub fn predict(&self, cells: Cells<'_>) -> Result<Vec<f64>> {
        let scores = self.model.scores(cells)?;
        Ok(scores.into_iter().map(|z| self.map.smear(z, &self.smear)).collect())
    }

    /// Predictions and standard deviations of new targets, row-major.
    ///
    /// # Errors
    /// Those of [`LaplaceRegressor::predict`].
    pub fn predict_with_std(&self, cells: Cells<'_>) -> Result<Prediction> {
        let pairs =
            self.with_deviations(cells, |z, deviation, calibration| self.mean_and_std(z, deviation, calibration))?;
        let (mean, std) = pairs.into_iter().unzip();
        Ok(Prediction { mean, std })
    }

    /// Intervals that hold a new target with this probability, row-major.
    ///
    /// # Errors
    /// Those of [`LaplaceRegressor::predict`], and [`Error::InvalidParameter`] unless the coverage lies within 0 and 1.
    pub fn predict_interval(&self, cells: Cells<'_>, coverage: f64) -> Result<(Vec<f64>, Vec<f64>)> {
        check_coverage(coverage)?;
        let pairs =
            self.with_deviations(cells, |z, deviation, calibration| self.ends(z, deviation, calibration, coverage))?;
        Ok(pairs.into_iter().unzip())
    }

    /// Predictions, standard deviations, and intervals of several coverages, all from one pass over the rows. Row-major; one
    /// table of lower and upper ends per coverage.
    ///
    /// # Errors
    /// Those of [`LaplaceRegressor::predict_interval`].
    #[expect(clippy::type_complexity, reason = "one list of ends per coverage")]
    pub fn predict_with_intervals(
        &self,
        cells: Cells<'_>,
        coverages: &[f64],
    ) -> Result<(Prediction, Vec<Vec<(f64, f64)>>)> {
        coverages.iter().try_for_each(|coverage| check_coverage(*coverage))?;
        let rows = self.with_deviations(cells, |z, deviation, calibration| {
            let (mean, std) = self.mean_and_std(z, deviation, calibration);
            let ends: Vec<(f64, f64)> = coverages.iter().map(|c| self.ends(z, deviation, calibration, *c)).collect();
            (mean, std, ends)
        })?;
        let end = |k: usize| rows.iter().map(|(_, _, ends)| ends[k]).collect();
        let intervals = (0..coverages.len()).map(end).collect();
        let (mean, std) = rows.iter().map(|row| (row.0, row.1)).unzip();
        Ok((Prediction { mean, std }, intervals))
    }

    /// The model with all lifetimes multiplied by one factor (λ, μ, ν and the metric's term), solved again on at most so many
    /// of its rows, a random sample. Nothing is tuned; importances and trajectory are this model's.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for a factor that is not above 0, and those of the solve.
    pub fn at_factor(&self, factor: f64, most_rows: usize, threads: Threads) -> Result<Self> {
        let (model, residuals) = self.model.scaled(factor, most_rows, threads)?;
        let c = self.n_targets();
        let targets =
            Matrix::from_fn(model.n_rows(), c, |i, k| self.map.invert(model.targets[(i, k)] + model.centre[k]));
        let smear = if c == 1 { residual_quantiles(residuals.column(0)) } else { Vec::new() };
        let worth = (0..c).map(|k| worth(self.map, &targets, &model.weights, residuals.column(k), k, &smear)).collect();
        let calibrate = |k: usize| Calibration::learn(&model, residuals.column(k), k);
        let calibrations = (0..c).map(calibrate).collect::<Result<Vec<_>>>()?;
        Ok(Self { map: self.map, smear, calibrations, of_unknown: self.of_unknown.clone(), worth, model })
    }

    fn mean_and_std(&self, z: f64, deviation: f64, calibration: &Calibration) -> (f64, f64) {
        let values: Vec<f64> = calibration.shape.iter().map(|e| self.map.invert(z + deviation * e)).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64;
        (self.map.smear(z, &self.smear), variance.sqrt())
    }

    fn ends(&self, z: f64, deviation: f64, calibration: &Calibration, coverage: f64) -> (f64, f64) {
        let reach = calibration.width(coverage) * deviation;
        (self.map.invert(z - reach), self.map.invert(z + reach))
    }

    fn with_deviations<T: Send>(
        &self,
        cells: Cells<'_>,
        make: impl Fn(f64, f64, &Calibration) -> T + Sync,
    ) -> Result<Vec<T>> {
        if !self.model.is_exact() {
            let queries = self.model.query_rows(cells)?;
            let (scores, near) = (self.model.scores_of_many(&queries)?, near_scales(&self.model, &queries, None)?);
            let row = |q: usize| {
                let (unknown, scores, near) = (self.unknown_variances(cells.row(q)), &scores, &near);
                let one = move |c: usize| {
                    let calibration = &self.calibrations[c];
                    let deviation = calibration.deviation_of(near[q][c], self.n_rows());
                    (scores[(q, c)], calibration.with_variance(deviation, unknown.get(c)), calibration)
                };
                (0..self.n_targets()).map(one)
            };
            return Ok((0..near.len()).flat_map(row).map(|(z, deviation, of)| make(z, deviation, of)).collect());
        }
        let queries = self.model.query(cells)?;
        let rows = self.model.for_each(&queries, |q, kernel| {
            let unknown = self.unknown_variances(cells.row(q));
            let one = |c: usize| {
                let calibration = &self.calibrations[c];
                let deviation = calibration.deviation(&self.model, kernel, c)?;
                Ok(make(self.model.score(kernel, c), calibration.with_variance(deviation, unknown.get(c)), calibration))
            };
            (0..self.n_targets()).map(one).collect::<Result<Vec<_>>>()
        })?;
        Ok(rows.into_iter().flatten().collect())
    }

    /// What the unknown cells of a row add to the variance of each mapped target; empty where all are known.
    fn unknown_variances(&self, row: &[f64]) -> Vec<f64> {
        let unknown = self.model.columns.unknown_inputs(row);
        if unknown.is_empty() || self.of_unknown.is_empty() {
            return Vec::new();
        }
        let c = self.n_targets();
        let factor = |input: usize| self.model.columns.spread_of_new_level(input);
        (0..c).map(|k| unknown.iter().map(|&input| factor(input) * self.of_unknown[input * c + k]).sum()).collect()
    }

    /// The smoothing matrix of the (mapped) target, row-major, one row per query and one column per row given.
    ///
    /// # Errors
    /// Those of [`LaplaceRegressor::predict`].
    pub fn equivalent_kernel(&self, cells: Cells<'_>, threads: Threads) -> Result<Vec<f64>> {
        self.model.equivalent_kernel(cells, threads)
    }
}

fn check_coverage(coverage: f64) -> Result<()> {
    if coverage > 0.0 && coverage < 1.0 {
        return Ok(());
    }
    Err(Error::InvalidParameter { name: "coverage", value: coverage, expected: "between 0 and 1" })
}

fn check_targets(cells: Cells<'_>, targets: &Matrix) -> Result<()> {
    let n = cells.n_rows();
    if targets.n_rows() != n {
        return Err(Error::LengthMismatch { what: "targets", expected: n, found: targets.n_rows() });
    }
    if n == 0 || targets.n_columns() == 0 {
        return Err(Error::Empty { what: "X", rows: n, columns: cells.n_columns() });
    }
    for column in 0..targets.n_columns() {
        if let Some(row) = targets.column(column).iter().position(|y| !y.is_finite()) {
            return Err(Error::NotFinite { what: "y", row, column, value: targets[(row, column)] });
        }
    }
    Ok(())
}

fn worth(map: TargetMap, targets: &Matrix, weights: &[f64], residuals: &[f64], k: usize, smear: &[f64]) -> LeaveOneOut {
    let n = residuals.len();
    let total: f64 = weights[..n].iter().sum();
    let mean = (0..n).map(|i| weights[i] / total * targets[(i, k)]).sum::<f64>();
    let (mut square, mut absolute, mut spread) = (0.0, 0.0, 0.0);
    for i in 0..n {
        let (y, share) = (targets[(i, k)], weights[i] / total);
        let off = y - map.smear(map.apply(y) - residuals[i], smear);
        square += share * off * off;
        absolute += share * off.abs();
        // The mean of the others, as leaving out has it.
        let others = if n > 1 { 1.0 / (1.0 - share) } else { 1.0 };
        spread += share * ((y - mean) * others).powi(2);
    }
    LeaveOneOut { rmse: square.sqrt(), mae: absolute, rmse_of_mean: spread.sqrt() }
}

/// A with one column per input, in the inputs' own units.
pub(crate) fn metric_of_inputs(model: &KernelModel) -> Matrix {
    let metric = &model.values.metric;
    let (inputs, units) = (model.columns.metric_inputs(), model.columns.metric_units());
    let mut out = Matrix::zeros(metric.n_rows(), if metric.n_rows() == 0 { 0 } else { model.columns.n_inputs() });
    if metric.n_rows() > 0 {
        for (k, (input, unit)) in inputs.into_iter().zip(units).enumerate() {
            for i in 0..metric.n_rows() {
                out[(i, input)] = metric[(i, k)] / unit;
            }
        }
    }
    out
}

/// Axes times lifetimes, then keyed Gaussian directions of A·x: columns in which distance is relevance.
pub(crate) fn transform(
    model: &KernelModel,
    cells: Cells<'_>,
    n_directions: usize,
    seed: u64,
) -> Result<(Vec<f64>, usize)> {
    let rows = model.values.rows(&model.columns.apply(cells)?)?;
    let (q, r) = (rows.n_axes(), rows.n_directions());
    let n_directions = if r == 0 { 0 } else { n_directions };
    let key = NodeKey::root(seed, 0).fork(0x6469_7265);
    let scale = 1.0 / (n_directions.max(1) as f64).sqrt();
    let gaussian: Vec<f64> = (0..n_directions * r).map(|k| scale * key.fork(k as u64).draw(0).normal()).collect();
    let width = q + n_directions;
    let mut out = Vec::with_capacity(rows.n_rows() * width);
    for i in 0..rows.n_rows() {
        out.extend_from_slice(&rows.axes()[i * q..][..q]);
        let own = &rows.directions()[i * r..][..r];
        out.extend(gaussian.chunks_exact(r.max(1)).map(|g| g.iter().zip(own).map(|(g, b)| g * b).sum::<f64>()));
    }
    Ok((out, width))
}

#[derive(Serialize, Deserialize)]
struct Kept {
    map: TargetMap,
    smear: Vec<f64>,
    calibrations: Vec<Calibration>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    of_unknown: Vec<f64>,
    worth: Vec<LeaveOneOut>,
}

impl Saved for LaplaceRegressor {
    const KIND: &'static str = "laplace.regressor";

    fn to_archive(&self) -> Result<Archive> {
        let mut archive = Archive::new(Self::KIND);
        self.model.store(&mut archive)?;
        let (smear, calibrations, worth) = (self.smear.clone(), self.calibrations.clone(), self.worth.clone());
        let of_unknown = self.of_unknown.clone();
        archive.set_params("regressor", &Kept { map: self.map, smear, calibrations, of_unknown, worth })?;
        Ok(archive)
    }

    fn from_archive(archive: &Archive) -> Result<Self> {
        let model = KernelModel::restore(archive)?;
        let Kept { map, smear, calibrations, of_unknown, worth } = archive.params("regressor")?;
        let sound = calibrations.len() == model.n_outputs()
            && calibrations.iter().all(Calibration::is_sound)
            && worth.len() == model.n_outputs()
            && (of_unknown.is_empty() || of_unknown.len() == model.columns.n_inputs() * model.n_outputs())
            && of_unknown.iter().all(|v| *v >= 0.0 && v.is_finite())
            && smear.iter().all(|x| x.is_finite());
        if !sound {
            return Err(ModelFileError::Inconsistent { what: "the numbers of a Laplace regressor" }.into());
        }
        Ok(Self { model, map, smear, calibrations, of_unknown, worth })
    }
}
