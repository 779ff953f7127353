//! The likelihood at every lifetime (report, chapter 4), for the price of one walk down each tree.
//!
//! A cut changes one tree's density for the points of its cell, all by the same factor on each side. So the walk makes
//! a list of cuts with ranges of points; in order of time, each exchanges the old density for the new one in the
//! points' sums over trees: O(points in the cell) per cut. Points are the distinct training points, whose left-out
//! densities are followed beside their own, and the rows of the validation sets.
//!
//! A hundred trees on a million rows have 10⁸ cuts. They are made window by window of time: walking to a larger lifetime
//! keeps the order of points that the last walk made, so every walk finds the same ranges.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::parallel::prelude::*;

use crate::forest::density::descent::{Descent, Follower, SplitRange};
use crate::forest::density::evaluate::Counting;
use crate::forest::density::polya::{Polya, Split};
use crate::forest::density::wide::{DoubleDouble, Wide, WideSum};
use crate::forest::density::{DensityForest, DensityView};
use crate::path::{Loss, PathBuilder, RegularizationPath};
use crate::progress::Progress;
use crate::{Error, Lifetime, Result};

/// Which curves are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Curves {
    /// Training, validation and leave-one-out.
    All,
    /// Leave-one-out alone; the training curve is then a copy of it. Frozen cells of one row change nothing.
    LeaveOneOut,
    /// Validation alone; the training curve is then a copy of the first. Cells without validation rows are passed by.
    Validation,
}

/// Cuts held at once.
const WINDOW: usize = 1 << 20;

/// Density as it is, and without one row of the cell.
type Pair = [Wide; 2];

/// A cut of one tree.
struct Event {
    time: f64,
    tree: u32,
    range: SplitRange,
    before: Pair,
    /// Factors by side, of the density as it is and without one row.
    growth: [[f64; 2]; 2],
}

/// Collects the cuts of one tree in a window of time, as long as there is room.
struct Collector<'a> {
    polya: Polya,
    tree: u32,
    after: f64,
    curves: Curves,
    events: Vec<Event>,
    n_all: &'a AtomicUsize,
    limit: usize,
}

impl Follower for Collector<'_> {
    type Value = Pair;

    // Windows of time: the next descent finds the same ranges, and sums over them run in the same order.
    const KEEPS_ORDER: bool = true;

    fn split(&mut self, split: &Split, range: SplitRange, before: Pair) -> [Pair; 2] {
        let growth = [self.polya.growth(split), self.polya.growth_without_one(split)];
        let quiet = self.curves == Curves::LeaveOneOut && growth[1] == [1.0, 1.0];
        if split.time > self.after && !quiet && self.n_all.fetch_add(1, Ordering::Relaxed) < self.limit {
            self.events.push(Event { time: split.time, tree: self.tree, range, before, growth });
        }
        [0, 1].map(|side| [before[0].times(growth[0][side]), before[1].times(growth[1][side])])
    }

    fn rest(&mut self, _: Pair, _: &[u32]) {}
}

/// A set of rows whose mean is followed.
#[derive(Debug, Clone, Copy)]
struct Curve {
    total: DoubleDouble,
    n_rows: f64,
}

/// One point: its sums over trees and their logarithms, as it is and left out.
#[derive(Debug, Clone, Copy)]
struct TracedPoint {
    sums: [WideSum; 2],
    logs: [f64; 2],
    rows: f64,
    /// 0 for training points, from 1 on for validation sets.
    set: u32,
}

/// A path on its way.
pub(crate) struct Trace<'v> {
    curves: Curves,
    validation: &'v [Vec<f64>],
    coordinates: Vec<f64>,
    /// The points of each tree in the order that its cells are ranges of.
    orders: Vec<Vec<u32>>,
    points: Vec<TracedPoint>,
    /// Training, each validation set, leave-one-out.
    sets: Vec<Curve>,
    /// log V + log M: what a mean log sum lies above the mean log density.
    offset: f64,
    builder: PathBuilder,
    /// The lifetime up to which cuts have been made.
    reached: f64,
    window: usize,
    /// Whether the model holds the rows that it learned.
    has_rows: bool,
}

/// The path of a model over validation rows given in measure coordinates inside its box.
pub(crate) fn trace(
    model: &DensityForest,
    validation: &[Vec<f64>],
    progress: &mut Progress<'_>,
) -> Result<RegularizationPath> {
    let curves = if model.forest.summary().is_some() { Curves::Validation } else { Curves::All };
    let mut trace = Trace::new(model, validation, curves)?;
    trace.extend(model, progress)?;
    Ok(trace.path(model))
}

impl<'v> Trace<'v> {
    /// A path at lifetime 0.
    pub(crate) fn new(model: &DensityForest, validation: &'v [Vec<f64>], curves: Curves) -> Result<Self> {
        if model.n_rows() == 0 {
            return Err(Error::NotFitted);
        }
        let n_dims = model.forest.n_dims();
        if validation.iter().any(Vec::is_empty) {
            let what = "the part of a validation set inside the box";
            return Err(Error::Empty { what, rows: 0, columns: n_dims });
        }
        let n_trees = model.forest.n_trees();
        let log_trees = libm::log(n_trees as f64);
        let point = |rows: u32, set: usize| TracedPoint {
            sums: [WideSum::of_ones(n_trees); 2],
            logs: [log_trees; 2],
            rows: f64::from(rows),
            set: set as u32,
        };
        let (multiplicities, mut coordinates) =
            if curves == Curves::Validation { (Vec::new(), Vec::new()) } else { model.stored() };
        let mut points: Vec<TracedPoint> = multiplicities.iter().map(|rows| point(*rows, 0)).collect();
        for (set, rows) in validation.iter().enumerate() {
            points.extend((0..rows.len() / n_dims).map(|_| point(1, set + 1)));
            coordinates.extend_from_slice(rows);
        }
        let curve = |n_rows: usize| {
            let mut total = DoubleDouble::default();
            total.add(log_trees * n_rows as f64);
            Curve { total, n_rows: n_rows as f64 }
        };
        let mut sets = vec![curve(model.n_rows())];
        sets.extend(validation.iter().map(|rows| curve(rows.len() / n_dims)));
        sets.push(curve(model.n_rows()));
        let order: Vec<u32> = (0..points.len() as u32).collect();
        let mut trace = Self {
            curves,
            validation,
            coordinates,
            orders: vec![order; n_trees],
            points,
            sets,
            offset: model.log_volume() + log_trees,
            builder: PathBuilder::new(Loss::NegLogDensity, validation.len()),
            reached: 0.0,
            window: WINDOW,
            has_rows: model.forest.summary().is_none(),
        };
        trace.push(0.0);
        Ok(trace)
    }

    /// Goes on to the lifetime that the model's trees are grown to; only this may have changed since the start.
    pub(crate) fn extend(&mut self, model: &DensityForest, progress: &mut Progress<'_>) -> Result<()> {
        let end = model.forest.domain().lifetime().get();
        let mut stop = end;
        while self.reached < end {
            match self.collect(model, self.reached, stop) {
                Some(events) => {
                    events.iter().for_each(|event| self.apply(event));
                    let width = stop - self.reached;
                    self.reached = stop;
                    stop = (stop + 1.5 * width).min(end);
                    progress.report(self.reached / end)?;
                }
                None => stop = self.reached + (stop - self.reached) / 2.0,
            }
        }
        Ok(())
    }

    /// The cuts of all trees after `after` until `until`, in order; none if they are too many to hold.
    fn collect(&mut self, model: &DensityForest, after: f64, until: f64) -> Option<Vec<Event>> {
        // A window that can hardly be halved is taken as it is.
        let limit = if until - after > until * 1e-12 { self.window } else { usize::MAX };
        let n_all = AtomicUsize::new(0);
        let Self { curves, coordinates, orders, .. } = self;
        let lifetime = Lifetime::new(until).expect("a window ends at a lifetime");
        let polya = Polya { gamma: model.gamma() };
        let resume_above = u32::from(*curves == Curves::LeaveOneOut);
        let descent = Descent::new(&model.forest, lifetime, coordinates).resume_above(resume_above);
        let found: Vec<Vec<Event>> = orders
            .par_iter_mut()
            .enumerate()
            .map(|(tree, order)| {
                let (curves, number, n_all) = (*curves, tree as u32, &n_all);
                let mut collector = Collector { polya, tree: number, after, curves, events: Vec::new(), n_all, limit };
                descent.follow(tree, order, [Wide::ONE; 2], &mut collector);
                collector.events
            })
            .collect();
        if n_all.into_inner() > limit {
            return None;
        }
        let mut events: Vec<Event> = found.into_iter().flatten().collect();
        // Stable: cuts of one tree at one time stay in the order of the walk, parents first.
        events.sort_by(|a, b| a.time.total_cmp(&b.time).then(a.tree.cmp(&b.tree)));
        Some(events)
    }

    fn apply(&mut self, event: &Event) {
        let SplitRange { start, middle, end } = event.range;
        for (side, range) in [start..middle, middle..end].into_iter().enumerate() {
            let after = [0, 1].map(|kind| event.before[kind].times(event.growth[kind][side]));
            for place in range {
                let number = self.orders[event.tree as usize][place as usize];
                self.exchange(number, event.before, after);
            }
        }
        self.push(event.time);
    }

    fn exchange(&mut self, number: u32, before: Pair, after: Pair) {
        let point = &mut self.points[number as usize];
        let last = self.sets.len() - 1;
        for (kind, set) in [(0, point.set as usize), (1, last)] {
            let wanted = if kind == 0 { self.curves != Curves::LeaveOneOut } else { point.set == 0 };
            if wanted && before[kind] != after[kind] {
                point.sums[kind].exchange(before[kind], after[kind]);
                let log = point.sums[kind].log();
                self.sets[set].total.add(point.rows * (log - point.logs[kind]));
                point.logs[kind] = log;
            }
        }
    }

    fn push(&mut self, lifetime: f64) {
        let losses: Vec<f64> = self.sets.iter().map(|set| self.offset - set.total.get() / set.n_rows).collect();
        let (validation, leave_one_out) = (&losses[1..losses.len() - 1], losses[losses.len() - 1]);
        match self.curves {
            Curves::All => self.builder.push_leave_one_out(lifetime, losses[0], validation, leave_one_out),
            Curves::LeaveOneOut => {
                self.builder.push_leave_one_out(lifetime, leave_one_out, validation, leave_one_out);
            }
            // The curve of the learned rows is not asked for.
            Curves::Validation if self.has_rows => self.builder.push(lifetime, losses[1], validation),
            Curves::Validation => self.builder.push(lifetime, f64::NAN, validation),
        }
    }

    /// The path so far, with the standard error of the selecting mean where it is smallest.
    pub(crate) fn path(&self, model: &DensityForest) -> RegularizationPath {
        let view = DensityView { model, lifetime: self.builder.so_far().best_lifetime() };
        let (logs, rows) = if let Some(coordinates) = self.validation.first() {
            let logs = view.logs(coordinates, Counting::Present);
            let rows = vec![1; logs.len()];
            (logs, rows)
        } else {
            let (rows, coordinates) = model.stored();
            (view.logs(&coordinates, Counting::LeftOut), rows)
        };
        self.builder.clone().finish(Some(standard_error(&logs, &rows)))
    }
}

/// The standard error of a mean over rows, each value counted so many times.
fn standard_error(values: &[f64], rows: &[u32]) -> f64 {
    let n: f64 = rows.iter().map(|r| f64::from(*r)).sum();
    let weighted = |f: &dyn Fn(f64) -> f64| values.iter().zip(rows).map(|(v, r)| f(*v) * f64::from(*r)).sum::<f64>();
    let mean = weighted(&|v| v) / n;
    let spread = weighted(&|v| (v - mean) * (v - mean));
    (spread / (n - 1.0).max(1.0) / n).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Points;
    use crate::forest::density::{DensityParams, GammaChoice};
    use crate::forest::{ForestParams, LifetimeChoice};
    use crate::process::NodeKey;
    use crate::progress::Progress;

    #[test]
    fn windows_of_time_change_nothing() {
        let uniform = |row: u64| NodeKey::root(8, row).draw(0).uniform();
        let data: Vec<f64> = (0..120).map(|i| uniform(i / 3 * 2 + i % 2)).collect();
        let lifetime = LifetimeChoice::Value(Lifetime::new(20.0).unwrap());
        let forest = ForestParams { n_trees: 5, lifetime, ..ForestParams::default() };
        let params = DensityParams { gamma: GammaChoice::Value(0.5), ..DensityParams::from(forest) };
        let model = params.fit(Points::row_major(&data[..80], 2).unwrap()).unwrap();
        let (_, validation) = model.inside(Points::row_major(&data[80..], 2).unwrap()).unwrap();
        let sets = [validation];
        let path = |curves, window| {
            let mut trace = Trace { window, ..Trace::new(&model, &sets, curves).unwrap() };
            trace.extend(&model, &mut Progress::none()).unwrap();
            trace.path(&model)
        };
        for curves in [Curves::All, Curves::LeaveOneOut, Curves::Validation] {
            let whole = path(curves, WINDOW);
            assert!(whole.len() > 60);
            assert_eq!(whole, path(curves, 16));
        }
        // The curves that are left out change nothing about the others.
        let (all, alone) = (path(Curves::All, WINDOW), path(Curves::Validation, WINDOW));
        for (lifetime, value) in alone.lifetimes().iter().zip(&alone.validation()[0]) {
            let at = all.index_at(Lifetime::new(*lifetime).unwrap());
            assert!((all.validation()[0][at] - value).abs() < 1e-12);
        }
    }

    #[test]
    fn a_path_goes_on_where_it_stopped() {
        let data: Vec<f64> = (0..60).map(|i| NodeKey::root(9, i).draw(0).uniform()).collect();
        let of = |lifetime: f64| {
            let lifetime = LifetimeChoice::Value(Lifetime::new(lifetime).unwrap());
            let forest = ForestParams { n_trees: 5, lifetime, ..ForestParams::default() };
            let params = DensityParams { gamma: GammaChoice::Value(0.5), ..DensityParams::from(forest) };
            params.fit(Points::row_major(&data, 2).unwrap()).unwrap()
        };
        let mut model = of(5.0);
        let mut stepwise = Trace::new(&model, &[], Curves::All).unwrap();
        stepwise.extend(&model, &mut Progress::none()).unwrap();
        model.set_lifetime(Lifetime::new(20.0).unwrap()).unwrap();
        stepwise.extend(&model, &mut Progress::none()).unwrap();
        assert_eq!(stepwise.path(&model), trace(&of(20.0), &[], &mut Progress::none()).unwrap());
    }

    #[test]
    fn the_standard_error_counts_rows() {
        let (values, rows) = ([1.0, 2.0], [1, 3]);
        // Rows 1, 2, 2, 2: mean 1.75, variance (0.5625 + 3 · 0.0625)/3 = 0.25, of the mean 0.0625.
        assert!((standard_error(&values, &rows) - 0.25).abs() < 1e-15);
    }
}
