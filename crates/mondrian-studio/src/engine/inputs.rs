//! Lifetimes per input, and the held-out error after changing one (report, chapter 5).

use mondrian::{Cells, GridRidgeParams, LaplaceRegressor, Points, Result, TargetMap};

use super::{Model, fit, problem, rows_of};
use crate::api::{Inputs, Problem};
use crate::tables::{Data, Part};

/// Largest number of rows that a what-if is fitted to, at equal steps of the training rows.
const TRIAL_ROWS: usize = 700;
/// Largest number of inputs with a what-if, the most relevant ones.
const TRIAL_INPUTS: usize = 16;
/// How much 4·F(x) changes over one standard deviation in the middle of a normal distribution.
const RANK_UNITS: f64 = 1.4;

impl Model {
    /// Relevance and lifetimes of the inputs, with the what-ifs of models that have one lifetime per input.
    pub(crate) fn inputs(&self, data: &Data, cancelled: &dyn Fn() -> bool) -> std::result::Result<Inputs, Problem> {
        let mut found = Inputs { names: data.features.clone(), ..Inputs::default() };
        match self {
            Self::Forest { model, path, .. } => {
                let best = if path.validation().is_empty() { model.lifetime() } else { path.best_lifetime() };
                found.relevance = model.at(best).map_err(|e| problem(&e))?.relevance();
            }
            Self::Classifier { path, .. } => {
                let best = path.at(path.log_loss().best_lifetime()).map_err(|e| problem(&e))?;
                found.relevance = best.relevance();
            }
            Self::Laplace(model) => {
                found.names = input_names(data);
                found.relevance = model.importances().to_vec();
                // Ranks count four units from end to end, so about 1.4 per standard deviation in the middle.
                let ranks = model.rank_lifetimes();
                let per_deviation = |((l, deviation), rank): ((&f64, f64), &f64)| l * deviation + RANK_UNITS * rank;
                let lifetimes = model.lifetimes();
                found.lifetimes = lifetimes.iter().zip(data.deviations()).zip(&ranks).map(per_deviation).collect();
            }
            Self::LaplaceClasses(model) => {
                found.names = input_names(data);
                found.relevance = model.importances().to_vec();
            }
            Self::Axes(model) => {
                found.relevance = model.importances();
                found.lifetimes = model.lifetimes().to_vec();
            }
            Self::Grid(model) => {
                let lifetimes = model.lifetimes();
                let largest = lifetimes.iter().fold(f64::MIN_POSITIVE, |m, &l| m.max(l));
                found.relevance = lifetimes.iter().map(|l| l / largest).collect();
                found.lifetimes = lifetimes.to_vec();
            }
            Self::Kernel { .. } | Self::Density { .. } => {}
        }
        // What-if errors need training rows and held-out rows.
        if !found.lifetimes.is_empty() && !data.train.rows.is_empty() && !data.held_out.rows.is_empty() {
            self.what_if(data, &mut found, cancelled).map_err(|e| problem(&e))?;
        }
        Ok(found)
    }

    fn what_if(&self, data: &Data, found: &mut Inputs, cancelled: &dyn Fn() -> bool) -> Result<()> {
        let (train, held_out) = (sample(&data.train, data.width()), sample(&data.held_out, data.width()));
        let error = |lifetimes: &[f64]| self.error_with(lifetimes, data, &train, &held_out);
        found.error = Some(error(&found.lifetimes)?);
        let n = found.lifetimes.len();
        (found.halved, found.doubled) = (vec![None; n], vec![None; n]);
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&a, &b| found.relevance[b].total_cmp(&found.relevance[a]));
        for d in order.into_iter().take(TRIAL_INPUTS) {
            if cancelled() {
                break;
            }
            let moved = |factor: f64| {
                let mut lifetimes = found.lifetimes.clone();
                lifetimes[d] *= factor;
                lifetimes
            };
            let (halved, doubled) = (moved(0.5), moved(2.0));
            found.halved[d] = Some(error(&halved)?);
            found.doubled[d] = Some(error(&doubled)?);
        }
        Ok(())
    }

    /// The held-out error of a model like this one with these lifetimes, on a sample of the rows.
    fn error_with(&self, lifetimes: &[f64], data: &Data, train: &Part, held_out: &Part) -> Result<f64> {
        let width = data.width();
        let points = Points::row_major(&train.x, width)?;
        let judge = Points::row_major(&held_out.x, width)?;
        let mean = match self {
            Self::Grid(model) => {
                let params = GridRidgeParams {
                    lifetimes: fit::lifetimes(Some(lifetimes))?,
                    alpha: Some(model.alpha()),
                    ..GridRidgeParams::default()
                };
                params.fit(points, &train.y)?.predict(judge)?
            }
            Self::Laplace(model) => {
                let tuning = fit::tuning(0, Some(data.in_file_units(lifetimes)), Some(model.alpha()));
                let params = LaplaceRegressor::params().tuning(tuning).target_map(TargetMap::Identity);
                let codes = data.encoder.codes();
                let width = codes.len();
                let (cells, judged) = (data.encoder.cells(&train.x), data.encoder.cells(&held_out.x));
                let cells = Cells::row_major(&cells, width)?;
                let fitted = params.categorical(codes).fit(cells, &train.y)?;
                fitted.predict(Cells::row_major(&judged, width)?)?
            }
            _ => Vec::new(),
        };
        let squares: f64 = mean.iter().zip(&held_out.y).map(|(m, y)| (m - y) * (m - y)).sum();
        Ok((squares / mean.len().max(1) as f64).sqrt())
    }
}

fn input_names(data: &Data) -> Vec<String> {
    data.inputs.iter().map(|input| input.name.clone()).collect()
}

fn sample(part: &Part, width: usize) -> Part {
    let stride = part.rows.len().div_ceil(TRIAL_ROWS).max(1);
    let which: Vec<usize> = (0..part.rows.len()).step_by(stride).collect();
    Part {
        x: rows_of(part, &which, width),
        y: which.iter().map(|&row| part.y[row]).collect(),
        rows: which.iter().map(|&row| part.rows[row]).collect(),
    }
}
