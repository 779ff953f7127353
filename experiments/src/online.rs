//! Batch and online forests are one and the same tree by tree.

use anyhow::Result;
use mondrian::process::Bounds;
use mondrian::{ForestParams, LifetimeChoice, RegressionForest, RegressionParams, WeightsChoice};
use mondrian::{Lifetime, Points};
use mondrian_benches::{Standardised, rmse, timed};

use crate::context::Context;
use crate::plot::{Axis, Figure, Line, Panel, Style};
use crate::record::Record;

/// A moment of the stream.
struct Moment {
    rows: usize,
    online_error: f64,
    batch_error: f64,
    /// Trees that are the same, node by node.
    same_trees: usize,
    same_predictions: bool,
    online_seconds: f64,
    batch_seconds: f64,
}

/// The stream and what it is tested on.
struct Stream {
    split: Standardised,
    params: RegressionParams,
}

impl Stream {
    fn new(context: &Context, n_trees: usize) -> Result<Self> {
        let split = context.table("ccpp")?.split(context.seed as u32).first(usize::MAX, context.pick(1000, 200));
        // The box is part of a tree's key: given, or made by the first rows, which batch and online would see differently.
        let train = split.train()?;
        let forest = ForestParams {
            n_trees,
            seed: context.seed,
            bounds: Bounds::of_points(train),
            weights: WeightsChoice::Raw,
            lifetime: LifetimeChoice::Value(Lifetime::INFINITE),
            ..ForestParams::default()
        };
        Ok(Self { split, params: RegressionParams { forest, ..RegressionParams::default() } })
    }

    fn rows(&self, from: usize, to: usize) -> Result<(Points<'_>, &[f64])> {
        let d = self.split.n_columns;
        Ok((Points::row_major(&self.split.train_x[from * d..to * d], d)?, &self.split.train_y[from..to]))
    }

    fn fit(&self, from: usize, to: usize) -> Result<RegressionForest> {
        let (x, y) = self.rows(from, to)?;
        Ok(self.params.fit(x, y)?)
    }

    /// A batch of the first rows, last row first.
    fn backwards(&self, n: usize) -> Result<RegressionForest> {
        let d = self.split.n_columns;
        let (x, y): (Vec<&[f64]>, Vec<f64>) =
            self.split.train_x[..n * d].chunks_exact(d).zip(&self.split.train_y[..n]).rev().unzip();
        let x: Vec<f64> = x.concat();
        Ok(self.params.fit(Points::row_major(&x, d)?, &y)?)
    }

    fn predict(&self, model: &RegressionForest) -> Result<Vec<f64>> {
        Ok(model.predict(self.split.test()?)?)
    }
}

/// Trees of two models that are the same.
fn same_trees(a: &RegressionForest, b: &RegressionForest) -> usize {
    let (a, b) = (a.forest(), b.forest());
    a.trees().iter().zip(b.trees()).filter(|(t, u)| t.0.same_as(a.store(), &u.0, b.store())).count()
}

pub(crate) fn run(context: &Context) -> Result<Record> {
    let n_trees = context.pick(20, 5);
    let stream = Stream::new(context, n_trees)?;
    let n = stream.split.train_y.len().min(context.pick(5000, 400));
    let checkpoints: Vec<usize> = [50, 100, 200, 400, 1000, 2000, 3000, 5000].into_iter().filter(|c| *c <= n).collect();
    let (moments, mut model) = learn(context, &stream, &checkpoints)?;
    let last = checkpoints[checkpoints.len() - 1];
    // Forgetting the second half, and merging two halves.
    let half = last / 2;
    let (x, y) = stream.rows(half, last)?;
    model.forget(x, y)?;
    let without = stream.fit(0, half)?;
    let forgotten = same_trees(&model, &without);
    let mut merged = stream.fit(0, half)?;
    merged.merge(&stream.fit(half, last)?)?;
    let together = same_trees(&merged, &stream.backwards(last)?);
    let mut record = Record::new(
        "online",
        "Online is batch",
        "No figure; the report says that conditional Mondrians let a tree be extended as rows arrive. Here every draw is \
         a function of its node's key, so a tree grown row by row is identical to that of a batch, bit for bit.",
    );
    record.setting("data", "ccpp, standardised, infinite lifetime, hierarchical leaves, automatic prior and noise");
    record.setting("trees M =", n_trees);
    record.setting("online", "a row at a time; batch: the same rows at once, last row first");
    record.seeds.push_str("one: equality is exact or it is not");
    let checks = moments.len() * n_trees;
    let same: usize = moments.iter().map(|m| m.same_trees).sum();
    let end = &moments[moments.len() - 1];
    let all_batches: f64 = moments.iter().map(|m| m.batch_seconds).sum();
    for (name, value) in [
        ("checks", checks as f64),
        ("same", same as f64),
        ("rows", last as f64),
        ("first_error", moments[0].online_error),
        ("last_error", end.online_error),
        ("forgotten", forgotten as f64),
        ("together", together as f64),
        ("trees", n_trees as f64),
        ("per_row", 1e6 * end.online_seconds / last as f64),
        ("batch_seconds", end.batch_seconds),
        ("all_batches", all_batches),
        ("online_seconds", end.online_seconds),
    ] {
        record.number(name, value);
    }
    record.see(
        "At {checks} comparisons (trees × moments) {same} trees are the same node by node. After {rows} rows the test error has gone from \
         {first_error:.2} to {last_error:.2} MW; learning took {per_row:.0} µs per row for {trees} trees, {online_seconds:.2} s in all, one batch \
         {batch_seconds:.2} s. After forgetting the second half, {forgotten} of {trees} trees are those of the first half; two halves merged \
         give {together} of {trees} trees of the whole.",
    );
    let exact = same == checks && moments.iter().all(|m| m.same_predictions);
    record.claim(
        "same trees",
        exact,
        "all trees are the same and all predictions equal to the last bit, at every moment",
    );
    record.claim("forget", forgotten == n_trees, "forgetting rows gives the trees that never learned them");
    record.claim("merge", together == n_trees, "merging two halves gives the trees of the whole");
    record.table(
        "The stream",
        &["rows", "online RMSE", "batch RMSE", "same trees", "online seconds so far", "batch seconds"],
        moments.iter().map(|m| {
            let numbers =
                [m.rows as f64, m.online_error, m.batch_error, m.same_trees as f64, m.online_seconds, m.batch_seconds];
            numbers.map(Into::into).to_vec()
        }),
    );
    let points = |of: &dyn Fn(&Moment) -> f64| moments.iter().map(|m| (m.rows as f64, of(m))).collect::<Vec<_>>();
    record.figures.push(Figure {
        file: "online".to_owned(),
        caption: "Test error of the forest that learns row by row, and of a batch at each checkpoint (dots on the line); seconds."
            .to_owned(),
        panels: vec![
            Panel::chart("The same forest", Axis::log("rows learned"), Axis::linear("test RMSE, MW"), vec![
                    Line::new("online", 0, points(&|m| m.online_error)),
                    Line::new("batch", 1, points(&|m| m.batch_error)).style(Style::Dots),
                ]),
            Panel::chart("What it costs", Axis::log("rows learned"), Axis::log("seconds"), vec![
                    Line::new("online, all rows so far", 0, points(&|m| m.online_seconds)).style(Style::Dotted),
                    Line::new("one batch", 1, points(&|m| m.batch_seconds)).style(Style::Dotted),
                ]),
        ],
    });
    Ok(record)
}

fn learn(context: &Context, stream: &Stream, checkpoints: &[usize]) -> Result<(Vec<Moment>, RegressionForest)> {
    let mut model = stream.fit(0, 1)?;
    let (mut done, mut seconds) = (1, 0.0);
    let mut moments = Vec::new();
    for &rows in checkpoints {
        context.log(&format!("{rows} rows"));
        let (learned, took) = timed(|| -> Result<()> {
            for row in done..rows {
                let (x, y) = stream.rows(row, row + 1)?;
                model.learn(x, y)?;
            }
            Ok(())
        });
        learned?;
        (done, seconds) = (rows, seconds + took);
        let (batch, batch_seconds) = timed(|| stream.backwards(rows));
        let batch = batch?;
        let (online, at_once) = (stream.predict(&model)?, stream.predict(&batch)?);
        moments.push(Moment {
            rows,
            online_error: rmse(&online, &stream.split.test_y),
            batch_error: rmse(&at_once, &stream.split.test_y),
            same_trees: same_trees(&model, &batch),
            same_predictions: online == at_once,
            online_seconds: seconds,
            batch_seconds,
        });
    }
    Ok((moments, model))
}
