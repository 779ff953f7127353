//! The regression forest at every lifetime: forward, cut by cut over all trees (report, chapter 4).
//!
//! As time passes, a cut changes the predictions of the rows in its cell and of no others: O(rows in the cell) per cut.
//! Every tree keeps a frontier of cells that are not cut yet. Time is taken in windows: within one, all
//! trees list their cuts at once, the lists are merged by time and applied, so that memory stays bounded
//! however many cuts there are.

mod cells;
mod sweep;

use crate::parallel::prelude::*;

use crate::forest::regression::path::sweep::{Event, Set, TreeSweep};
use crate::forest::regression::posterior::Gaussian;
use crate::forest::regression::targets::Targets;
use crate::forest::regression::{RegressionForest, Rows};
use crate::path::{Loss, PathBuilder, RegularizationPath, standard_error_of_rmse};
use crate::progress::Progress;
use crate::{Error, Lifetime, Points, Result};

/// Cuts per window, about, and cuts that are sampled to place the ends of windows.
const WINDOW: usize = 1 << 18;
const SAMPLE: usize = 1 << 16;
/// Trees and changes of predictions between two looks at whether the call was cancelled: a small part of a second.
const TREES_AT_ONCE: usize = 16;
const CHANGES_AT_ONCE: u32 = 1 << 20;

/// A validation set: points and their targets, row-major.
pub type ValidationSet<'a> = (Points<'a>, &'a [f64]);

impl RegressionForest {
    /// Root mean squared errors on the training rows and on each validation set at every lifetime up to the model's.
    ///
    /// The root box is first widened to hold all rows, so that the path is piecewise constant; it equals a refit on
    /// that box, evaluated at each lifetime. Prior and noise are those of the model. Unseen cuts are taken from the key.
    ///
    /// A forest that was finished from a summary does not know its errors on the training rows: they are NaN. It cannot widen
    /// its box either.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::NotFinite`], [`Error::TooLarge`], [`Error::Cancelled`], [`Error::WithoutRows`].
    pub fn path(&self, validation: &[ValidationSet<'_>], progress: &mut Progress<'_>) -> Result<RegularizationPath> {
        if validation.is_empty() {
            self.core.forest.check_rows("a path without validation rows")?;
        }
        let mut sets = Vec::new();
        for (points, y) in validation {
            let rows = Rows::checked(*points, y, None)?;
            points.check_width(self.n_dims())?;
            if rows.n_rows == 0 {
                return Err(Error::Empty { what: "X_val", rows: 0, columns: points.n_columns() });
            }
            if rows.n_targets != self.n_targets() {
                let (expected, found) = (self.n_targets(), rows.n_targets);
                return Err(Error::LengthMismatch { what: "targets per row", expected, found });
            }
            sets.push(Set { x: self.core.forest.coordinates(*points)?, y: rows.y.into_owned() });
        }
        let all: Vec<&[f64]> = sets.iter().map(|set| &set.x[..]).collect();
        let model = self.widened_to(&all, &mut progress.part(0.0, 0.2))?;
        let path = Mover::new(&model, sets).run(&mut progress.part(0.2, 1.0))?;
        let error = match validation.first() {
            Some((points, y)) => Some(model.at(path.best_lifetime())?.standard_error(*points, y)?),
            None => None,
        };
        Ok(path.finish_with(error))
    }

    /// Standard error of the RMSE over the rows of a set, by the delta method.
    fn standard_error(&self, points: Points<'_>, y: &[f64]) -> Result<f64> {
        let mean = self.predict(points)?;
        let n = points.n_rows() as f64;
        let t = self.n_targets();
        let squares: Vec<f64> = mean
            .chunks_exact(t)
            .zip(y.chunks_exact(t))
            .map(|(m, y)| m.iter().zip(y).map(|(m, y)| (m - y).powi(2)).sum::<f64>() / t as f64)
            .collect();
        let mse = squares.iter().sum::<f64>() / n;
        let deviations = squares.iter().map(|s| (s - mse).powi(2)).sum::<f64>();
        Ok(standard_error_of_rmse(mse, deviations, n))
    }
}

/// All trees, and the errors of all rows.
struct Mover<'a> {
    model: &'a RegressionForest,
    targets: &'a Targets,
    gaussians: &'a [Gaussian],
    sets: Vec<Set>,
    sweeps: Vec<TreeSweep<'a>>,
    /// Prediction less target, by set, row-major.
    errors: Vec<Vec<f64>>,
    /// Cuts a window, about.
    window: usize,
}

impl<'a> Mover<'a> {
    /// Everything at lifetime 0: each tree is one leaf with all training rows (docs/corrections.md, item 3).
    fn new(model: &'a RegressionForest, validation: Vec<Set>) -> Self {
        let core = &model.core;
        let (targets, gaussians) = (&core.targets, model.gaussians());
        let train = Set { x: Vec::new(), y: targets.rows().flat_map(|(_, y, _)| y.iter().copied()).collect() };
        let mut sets = vec![train];
        sets.extend(validation);
        let t = targets.n_targets();
        let sizes: Vec<usize> = sets.iter().map(|set| set.y.len() / t).collect();
        let rows_of_point = rows_by_point(targets, targets.n_slots());
        let sweeps: Vec<TreeSweep<'a>> = core
            .forest
            .trees()
            .par_iter()
            .map(|(tree, sums)| TreeSweep::new(tree, sums, targets, gaussians, &sizes, &rows_of_point))
            .collect();
        let m = sweeps.len() as f64;
        let start: Vec<f64> = (0..t)
            .map(|target| {
                let roots = sweeps.iter().map(|tr| tr.root_posterior(targets, &gaussians[target], target).mean);
                roots.sum::<f64>() / m
            })
            .collect();
        let errors = sets.iter().map(|set| set.y.iter().enumerate().map(|(i, y)| start[i % t] - y).collect()).collect();
        Self { model, targets, gaussians, sets, sweeps, errors, window: WINDOW }
    }

    fn run(mut self, progress: &mut Progress<'_>) -> Result<UnfinishedPath> {
        let lifetime = self.model.view.get();
        let mut builder = PathBuilder::new(Loss::Rmse, self.sets.len() - 1);
        let mut losses = self.losses();
        builder.push(0.0, losses[0].rmse(), &losses[1..].iter().map(SumOfSquares::rmse).collect::<Vec<f64>>());
        let bounds = self.windows(lifetime);
        for (at, end) in bounds.iter().enumerate() {
            let mut progress = progress.part(at as f64 / bounds.len() as f64, (at + 1) as f64 / bounds.len() as f64);
            let (model, sets, targets, gaussians) = (self.model, &self.sets, self.targets, self.gaussians);
            let n_trees = self.sweeps.len();
            for (chunk, sweeps) in self.sweeps.chunks_mut(TREES_AT_ONCE).enumerate() {
                progress.report(0.5 * (chunk * TREES_AT_ONCE) as f64 / n_trees as f64)?;
                sweeps.par_iter_mut().for_each(|tr| tr.advance(*end, model, sets, targets, gaussians));
            }
            // Sums kept by adding and taking away are made anew once a window.
            losses = self.losses();
            self.apply(&mut losses, &mut builder, &mut progress.part(0.5, 1.0))?;
        }
        progress.report(1.0)?;
        Ok(UnfinishedPath(builder))
    }

    /// Ends of windows of time that hold about so many cuts each; the last is the lifetime.
    fn windows(&self, lifetime: f64) -> Vec<f64> {
        let n_nodes: usize = self.sweeps.iter().map(|tr| tr.tree.n_nodes()).sum();
        let stride = n_nodes.div_ceil(SAMPLE).max(1);
        let mut times: Vec<f64> = self
            .sweeps
            .iter()
            .flat_map(|tr| tr.tree.node_ids().step_by(stride).map(|id| tr.tree.node(id).time()))
            .filter(|t| *t <= lifetime)
            .collect();
        times.sort_unstable_by(f64::total_cmp);
        let mut ends: Vec<f64> = times.chunks((self.window / stride).max(1)).skip(1).map(|chunk| chunk[0]).collect();
        ends.dedup();
        ends.push(lifetime);
        ends
    }

    /// Applies the window's events of all trees in order of time, a value per cut.
    fn apply(
        &mut self,
        losses: &mut [SumOfSquares],
        builder: &mut PathBuilder,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let mut order: Vec<(Event, u32)> = Vec::new();
        for (index, tr) in self.sweeps.iter().enumerate() {
            order.extend(tr.events.iter().map(|event| (*event, index as u32)));
        }
        order
            .par_sort_unstable_by(|(a, i), (b, j)| a.time.total_cmp(&b.time).then((i, a.changes).cmp(&(j, b.changes))));
        let (t, m) = (self.targets.n_targets(), self.sweeps.len() as f64);
        let (mut validation, mut steps) = (vec![0.0; losses.len() - 1], vec![0.0; t]);
        let (n_events, mut n_changes) = (order.len(), 0);
        for (at, (Event { time, changes: (from, to) }, index)) in order.into_iter().enumerate() {
            if n_changes > CHANGES_AT_ONCE {
                progress.report(at as f64 / n_events as f64)?;
                n_changes = 0;
            }
            let tr = &self.sweeps[index as usize];
            for change in &tr.changes[from as usize..to as usize] {
                let set = change.set as usize;
                n_changes += change.end - change.start;
                let (errors, loss) = (&mut self.errors[set], &mut losses[set]);
                let deltas = &tr.deltas[change.delta as usize..][..t];
                steps.iter_mut().zip(deltas).for_each(|(step, delta)| *step = delta / m);
                for row in &tr.permutations[set][change.start as usize..change.end as usize] {
                    for (error, step) in errors[*row as usize * t..][..t].iter_mut().zip(&steps) {
                        let before = *error;
                        *error += step;
                        loss.sum += (*error - before) * (*error + before);
                    }
                }
            }
            validation.iter_mut().zip(&losses[1..]).for_each(|(value, loss)| *value = loss.rmse());
            builder.push(time, losses[0].rmse(), &validation);
        }
        Ok(())
    }

    fn losses(&self) -> Vec<SumOfSquares> {
        let of = |errors: &Vec<f64>| SumOfSquares { sum: errors.iter().map(|e| e * e).sum(), n: errors.len() as f64 };
        self.errors.iter().map(of).collect()
    }
}

struct SumOfSquares {
    sum: f64,
    n: f64,
}

impl SumOfSquares {
    fn rmse(&self) -> f64 {
        // Without rows there is no error.
        if self.n == 0.0 { f64::NAN } else { (self.sum / self.n).max(0.0).sqrt() }
    }
}

/// A path without its standard error yet.
struct UnfinishedPath(PathBuilder);

impl UnfinishedPath {
    fn best_lifetime(&self) -> Lifetime {
        self.0.so_far().best_lifetime()
    }

    fn finish_with(self, standard_error: Option<f64>) -> RegularizationPath {
        self.0.finish(standard_error)
    }
}

fn rows_by_point(targets: &Targets, n_slots: usize) -> Vec<Vec<u32>> {
    let mut rows = vec![Vec::new(); n_slots];
    for (row, (point, _, _)) in targets.rows().enumerate() {
        rows[point as usize].push(row as u32);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forest::regression::RegressionParams;
    use crate::forest::{ForestParams, LifetimeChoice};
    use crate::process::NodeKey;

    /// Windows merge the events of all trees by time: many small ones give the path of a single large one.
    #[test]
    fn windows_of_time_change_nothing() {
        let draw = |row: u64| NodeKey::root(8, row).draw(0).uniform();
        let x: Vec<f64> = (0..400).map(draw).collect();
        let y: Vec<f64> = x.chunks(2).map(|x| (6.0 * x[0]).sin() + x[1]).collect();
        let forest =
            ForestParams { n_trees: 5, lifetime: LifetimeChoice::Value(Lifetime::INFINITE), ..ForestParams::default() };
        let params = RegressionParams { forest, ..RegressionParams::default() };
        let model = params.fit(Points::row_major(&x[..200], 2).unwrap(), &y[..100]).unwrap();
        let held = || {
            vec![Set {
                x: model.core.forest.coordinates(Points::row_major(&x[200..], 2).unwrap()).unwrap(),
                y: y[100..].to_vec(),
            }]
        };
        let model = model.widened_to(&[&held()[0].x], &mut Progress::none()).unwrap();
        let path = |window: usize| {
            let mover = Mover { window, ..Mover::new(&model, held()) };
            let n_windows = mover.windows(f64::INFINITY).len();
            (mover.run(&mut Progress::none()).unwrap().finish_with(None), n_windows)
        };
        let ((whole, one), (parts, many)) = (path(WINDOW), path(16));
        assert!(one == 1 && many > 20 && whole.len() > 300, "{one} {many} {}", whole.len());
        assert_eq!(whole.lifetimes(), parts.lifetimes());
        for (a, b) in [(whole.train(), parts.train()), (&whole.validation()[0], &parts.validation()[0])] {
            assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-12 * (1.0 + a)), "sums are made anew more often");
        }
    }
}
