//! A model at one lifetime: scores, predictions of the shown rows, calibration, and the surface in a plane.

use std::time::Instant;

use mondrian::internals::normal;
use mondrian::{Cells, Lifetime, Prediction};

use super::{Classified, Model, points, problem, rows_of, shown};
use crate::api::{PlaneRequest, Problem, Score, Surface, View};
use crate::tables::Data;

/// Nominal coverages in the calibration chart.
const LEVELS: [f64; 10] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95];
/// Number of shown rows that are predicted while the slider moves, if the path has the error over all of them and if
/// not.
const MOVING_ROWS: [usize; 2] = [250, 500];
/// Points of a surface per side, when the slider is stopped and while it moves.
const LATTICE: [usize; 2] = [40, 24];

/// Predictions for some rows.
pub(super) enum Predicted {
    Numbers { mean: Vec<f64>, std: Vec<f64> },
    Classes(Vec<f64>),
    LogDensity(Vec<f64>),
}

impl Predicted {
    /// Splits off the predictions after the first rows; without standard deviations.
    fn split_off(&mut self, n_rows: usize, n_classes: usize) -> Self {
        match self {
            Self::Numbers { mean, .. } => Self::Numbers { mean: mean.split_off(n_rows), std: Vec::new() },
            Self::Classes(p) => Self::Classes(p.split_off(n_rows * n_classes)),
            Self::LogDensity(logs) => Self::LogDensity(logs.split_off(n_rows)),
        }
    }
}

fn spread(p: Prediction) -> Predicted {
    Predicted::Numbers { mean: p.mean, std: p.std }
}

impl Model {
    /// Predictions for prepared rows at a lifetime (for models with a path); standard deviations only if requested.
    pub(super) fn predict(
        &self,
        x: &[f64],
        data: &Data,
        at: Option<Lifetime>,
        with_std: bool,
    ) -> Result<Predicted, Problem> {
        if let Self::Laplace(_) | Self::LaplaceClasses(_) = self {
            return self.say_of_cells(&data.encoder.cells(x), data, with_std).map_err(|e| problem(&e));
        }
        let points = points(x, data.width())?;
        let at = at.unwrap_or(Lifetime::INFINITE);
        let predicted = match self {
            Self::Laplace(_) | Self::LaplaceClasses(_) => unreachable!("these take cells"),
            Self::Forest { model, .. } => model.at(at).and_then(|model| {
                if with_std {
                    return model.predict_with_std(points).map(spread);
                }
                Ok(Predicted::Numbers { mean: model.predict(points)?, std: Vec::new() })
            }),
            Self::Classifier { model, .. } => {
                model.at(at).and_then(|m| m.predict_proba(points)).map(Predicted::Classes)
            }
            Self::Density { model, .. } => {
                model.at(at).and_then(|view| view.log_density(points)).map(Predicted::LogDensity)
            }
            Self::Axes(model) if with_std => model.predict_with_std(points).map(spread),
            Self::Axes(model) => model.predict(points).map(|mean| Predicted::Numbers { mean, std: Vec::new() }),
            Self::Grid(model) => model.predict(points).map(|mean| Predicted::Numbers { mean, std: Vec::new() }),
            Self::Kernel { model, .. } => model.at(at).and_then(|model| {
                let mean = model.predict(points)?.column(0).to_vec();
                let std = if with_std {
                    model.predict_variance(points)?.column(0).iter().map(|v| v.max(0.0).sqrt()).collect()
                } else {
                    Vec::new()
                };
                Ok(Predicted::Numbers { mean, std })
            }),
        };
        predicted.map_err(|e| problem(&e))
    }

    /// Predictions of the tuned kernel, whose input is cells, some of which may be missing.
    fn say_of_cells(&self, cells: &[f64], data: &Data, with_std: bool) -> mondrian::Result<Predicted> {
        let cells = Cells::row_major(cells, data.inputs.len())?;
        match self {
            Self::Laplace(model) if with_std => model.predict_with_std(cells).map(spread),
            Self::Laplace(model) => model.predict(cells).map(|mean| Predicted::Numbers { mean, std: Vec::new() }),
            Self::LaplaceClasses(model) => model.predict_proba(cells).map(Predicted::Classes),
            _ => Ok(Predicted::Classes(Vec::new())),
        }
    }

    /// The model at a lifetime. `settled` adds results that are too slow to compute while the slider moves.
    pub(crate) fn view(
        &self,
        data: &Data,
        lifetime: Option<f64>,
        plane: Option<PlaneRequest>,
        settled: bool,
    ) -> Result<View, Problem> {
        let started = Instant::now();
        let at = self.lifetime(lifetime)?;
        let moving = if settled { None } else { self.deviations_at(at) };
        let which = shown(&data.held_out);
        let most = if settled { usize::MAX } else { MOVING_ROWS[usize::from(!self.knows_losses())] };
        let every = which.len().div_ceil(most).max(1);
        let which: Vec<usize> = which.into_iter().step_by(every).collect();
        let x = rows_of(&data.held_out, &which, data.width());
        let truth: Vec<f64> = which.iter().filter_map(|&row| data.held_out.y.get(row)).copied().collect();
        let lifetime = at.map(Lifetime::get).filter(|l| l.is_finite());
        let mut view = View { lifetime, every, ..View::default() };
        let n = LATTICE[usize::from(!settled)];
        let lattice = plane.map(|plane| self.lattice(data, plane, n)).transpose()?;
        let (predicted, of_lattice, micros) = self.say_both(&x, lattice.as_deref(), data, at, settled)?;
        match predicted.filter(|_| !which.is_empty()) {
            Some(Predicted::Numbers { mean, std }) => {
                let std: Vec<f64> = moving.map_or(std, |all| all.into_iter().step_by(every).collect());
                // Interpolated ones would differ from those of a stopped slider.
                let ends = if settled { self.intervals(&x, data, at, (&mean, &std), &LEVELS)? } else { Vec::new() };
                numbers(&mut view, &truth, mean, std, ends);
            }
            Some(Predicted::Classes(p)) => classes(&mut view, &truth, &p, Classified::of(data).n_classes),
            Some(Predicted::LogDensity(logs)) => {
                view.score.log_loss = Some(-logs.iter().filter(|l| l.is_finite()).sum::<f64>() / logs.len() as f64);
                view.predicted = logs;
            }
            None => {}
        }
        view.score.predict_micros = if which.is_empty() { 0.0 } else { micros };
        self.exact_losses(&mut view, data, at);
        view.surface = of_lattice.map(|predicted| surface(predicted, n, Classified::of(data).n_classes));
        view.millis = started.elapsed().as_secs_f64() * 1e3;
        Ok(view)
    }

    /// Predictions for the shown rows and for a lattice, with the microseconds per row: in one call if possible, since
    /// a kernel is solved again for each call and rows share the reads of nodes.
    fn say_both(
        &self,
        x: &[f64],
        lattice: Option<&[f64]>,
        data: &Data,
        at: Option<Lifetime>,
        with_std: bool,
    ) -> Result<(Option<Predicted>, Option<Predicted>, f64), Problem> {
        let started = Instant::now();
        let n_rows = x.len() / data.width();
        let micros = |n: usize| started.elapsed().as_secs_f64() * 1e6 / n.max(1) as f64;
        let (true, Some(lattice)) = (!with_std, lattice) else {
            let predicted = (n_rows > 0).then(|| self.predict(x, data, at, with_std)).transpose()?;
            let micros = micros(n_rows);
            let of_lattice = lattice.map(|lattice| self.predict(lattice, data, at, false)).transpose()?;
            return Ok((predicted, of_lattice, micros));
        };
        let all = [x, lattice].concat();
        let mut predicted = self.predict(&all, data, at, false)?;
        let micros = micros(all.len() / data.width());
        let of_lattice = predicted.split_off(n_rows, Classified::of(data).n_classes);
        Ok((Some(predicted), Some(of_lattice), micros))
    }

    /// The ends of the intervals that the program's `predict` gives, by level and row; none without deviations.
    pub(super) fn intervals(
        &self,
        x: &[f64],
        data: &Data,
        at: Option<Lifetime>,
        (mean, std): (&[f64], &[f64]),
        levels: &[f64],
    ) -> Result<Vec<Vec<[f64; 2]>>, Problem> {
        let found = match self {
            Self::Laplace(model) => {
                let cells = data.encoder.cells(x);
                Cells::row_major(&cells, data.inputs.len())
                    .and_then(|rows| model.predict_with_intervals(rows, levels))
                    .map(|(_, ends)| {
                        ends.into_iter().map(|all| all.into_iter().map(<[f64; 2]>::from).collect()).collect()
                    })
            }
            Self::Forest { model, .. } => {
                let quantiles: Vec<f64> =
                    levels.iter().flat_map(|level| [0.5 - level / 2.0, 0.5 + level / 2.0]).collect();
                let rows = points(x, data.width())?;
                let found =
                    model.at(at.unwrap_or(Lifetime::INFINITE)).and_then(|m| m.predict_quantiles(rows, &quantiles));
                found.map(|all| {
                    let of_level =
                        |k: usize| all.chunks_exact(quantiles.len()).map(|row| [row[2 * k], row[2 * k + 1]]).collect();
                    (0..levels.len()).map(of_level).collect()
                })
            }
            _ if std.is_empty() => Ok(Vec::new()),
            _ => {
                let of_level = |level: &f64| {
                    let half = normal::quantile(0.5 + level / 2.0);
                    mean.iter().zip(std).map(|(m, s)| [m - half * s, m + half * s]).collect()
                };
                Ok(levels.iter().map(of_level).collect())
            }
        };
        found.map_err(|e| problem(&e))
    }

    /// Whether the path has the error over all held-out rows at any lifetime.
    fn knows_losses(&self) -> bool {
        let has_curve = self.path().is_some_and(|path| !path.validation().is_empty());
        has_curve && matches!(self, Self::Forest { .. } | Self::Kernel { .. } | Self::Density { .. })
    }

    /// The exact scores of the path, over all held-out rows.
    fn exact_losses(&self, view: &mut View, data: &Data, at: Option<Lifetime>) {
        let (Some(path), Some(at)) = (self.path(), at) else { return };
        view.score.lifetime = Some(at.get()).filter(|l| l.is_finite());
        view.train_loss = Some(path.train()[path.index_at(at)]);
        if path.validation().is_empty() {
            return;
        }
        let value = path.value_at(at);
        match self {
            Self::Forest { .. } | Self::Kernel { .. } => {
                view.score.rmse = Some(value);
                view.score.r2 = Some(1.0 - value * value / variance(&data.held_out.y).max(f64::MIN_POSITIVE));
            }
            Self::Density { .. } => view.score.log_loss = Some(value),
            // The path of classes is computed at some lifetimes only; at this one the shown rows are used.
            Self::Classifier { .. } | Self::Laplace(_) | Self::LaplaceClasses(_) | Self::Axes(_) | Self::Grid(_) => {}
        }
    }

    /// The points of a surface: a lattice of the plane, all other inputs at their medians.
    fn lattice(&self, data: &Data, plane: PlaneRequest, n: usize) -> Result<Vec<f64>, Problem> {
        let (x, y) = self.sides(data, plane)?;
        let mut lattice = Vec::with_capacity(n * n * data.width());
        let place = |i: usize, (low, high): (f64, f64)| low + (i as f64 + 0.5) / n as f64 * (high - low);
        for j in 0..n {
            for i in 0..n {
                let start = lattice.len();
                lattice.extend_from_slice(&data.middle);
                lattice[start + plane.x] = place(i, x);
                lattice[start + plane.y] = place(j, y);
            }
        }
        Ok(lattice)
    }

    /// Its scores on the held-out rows at its best lifetime.
    pub(crate) fn score(&self, data: &Data) -> Result<Score, Problem> {
        Ok(self.view(data, None, None, true)?.score)
    }
}

/// The model on a lattice of the plane.
fn surface(predicted: Predicted, n: usize, n_classes: usize) -> Surface {
    let mut surface = Surface { n, ..Surface::default() };
    match predicted {
        Predicted::Numbers { mean, .. } => surface.values = mean,
        Predicted::LogDensity(logs) => surface.values = logs.into_iter().map(|l| l.max(-1e6)).collect(),
        Predicted::Classes(p) => {
            for row in p.chunks(n_classes.max(1)) {
                let best = most_probable(row);
                surface.classes.push(best as u32);
                surface.values.push(row[best]);
            }
        }
    }
    surface
}

fn numbers(view: &mut View, truth: &[f64], mean: Vec<f64>, std: Vec<f64>, ends: Vec<Vec<[f64; 2]>>) {
    let n = truth.len() as f64;
    let squares: f64 = truth.iter().zip(&mean).map(|(t, m)| (t - m) * (t - m)).sum();
    view.score.rmse = Some((squares / n).sqrt());
    view.score.r2 = Some(1.0 - squares / n / variance(truth).max(f64::MIN_POSITIVE));
    for (level, ends) in LEVELS.into_iter().zip(ends) {
        let held = truth.iter().zip(&ends).filter(|(t, [lower, upper])| lower <= t && *t <= upper).count() as f64 / n;
        view.calibration.push([level, held]);
        if level == 0.9 {
            view.score.coverage = Some(held);
            view.interval = ends;
        }
    }
    if !std.is_empty() {
        let log_loss: f64 = truth
            .iter()
            .zip(&mean)
            .zip(&std)
            .map(|((t, m), s)| {
                let z = (t - m) / s;
                0.5 * z * z + s.ln() + 0.5 * (2.0 * std::f64::consts::PI).ln()
            })
            .sum();
        view.score.log_loss = Some(log_loss / n).filter(|l| l.is_finite());
    }
    (view.predicted, view.std) = (mean, std);
}

fn classes(view: &mut View, truth: &[f64], p: &[f64], n_classes: usize) {
    let (mut sure, mut right, mut count) = ([0.0; 10], [0.0; 10], [0.0_f64; 10]);
    let (mut wrong, mut log_loss) = (0.0, 0.0);
    for (row, &truth) in p.chunks(n_classes.max(1)).zip(truth) {
        let best = most_probable(row);
        let hit = best == truth as usize;
        let bin = ((row[best] * 10.0) as usize).min(9);
        sure[bin] += row[best];
        right[bin] += f64::from(u8::from(hit));
        count[bin] += 1.0;
        wrong += f64::from(u8::from(!hit));
        log_loss -= row.get(truth as usize).copied().unwrap_or(0.0).max(f64::EPSILON).ln();
        view.classes.push(best as u32);
        view.predicted.push(row[best]);
    }
    let n = truth.len() as f64;
    view.score.error_rate = Some(wrong / n);
    view.score.log_loss = Some(log_loss / n);
    let filled = (0..10).filter(|&bin| count[bin] > 0.0);
    view.calibration = filled.map(|bin| [sure[bin] / count[bin], right[bin] / count[bin]]).collect();
}

fn most_probable(row: &[f64]) -> usize {
    (0..row.len()).fold(0, |best, k| if row[k] > row[best] { k } else { best })
}

fn variance(y: &[f64]) -> f64 {
    let n = y.len().max(1) as f64;
    let mean = y.iter().sum::<f64>() / n;
    y.iter().map(|y| (y - mean) * (y - mean)).sum::<f64>() / n
}
