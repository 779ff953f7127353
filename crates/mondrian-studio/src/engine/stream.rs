//! Rows fed one by one into a forest: predicted first, then learned.

use mondrian::{
    ClassificationForest, ClassificationParams, Lifetime, LifetimeChoice, Points, RegressionForest, RegressionParams,
};

use super::fit::forest_params;
use super::{Classified, problem};
use crate::api::{FitRequest, Kind, Problem, StreamInfo, Task};
use crate::tables::Data;

/// Rows are taken singly at first; later blocks are this share of the rows learned so far.
const SINGLY: usize = 200;
/// Seed of the streamed forest.
pub(super) const SEED: u64 = 0;
/// Trees of the streamed forest.
const TREES: usize = 50;

/// A forest that learns the table's rows in their order.
pub(crate) struct Stream {
    model: Option<Online>,
    info: StreamInfo,
    loss: f64,
    baseline: f64,
    /// Sum of the targets, or counts of the classes so far.
    sums: Vec<f64>,
}

enum Online {
    Numbers(Box<RegressionForest>),
    Classes(Box<ClassificationForest>),
}

impl Stream {
    /// Nothing learned yet.
    pub(crate) fn new(data: &Data) -> Self {
        let sums = vec![0.0; Classified::of(data).n_classes.max(1)];
        let info = StreamInfo { of: data.train.rows.len(), ..StreamInfo::default() };
        Self { model: None, info, loss: 0.0, baseline: 0.0, sums }
    }

    /// Its state.
    pub(crate) fn info(&self) -> &StreamInfo {
        &self.info
    }

    /// Learns the next rows: one at first, then about a hundredth of the rows learned so far. False at the end.
    pub(crate) fn step(&mut self, data: &Data) -> Result<bool, Problem> {
        let (from, width) = (self.info.seen, data.width());
        let block = if from < SINGLY { 1 } else { from / 100 };
        let to = (from + block).min(self.info.of);
        if from == to || data.task.is_none() {
            return Ok(false);
        }
        let x = &data.train.x[from * width..to * width];
        let y = &data.train.y[from..to];
        let points = Points::row_major(x, width).map_err(|e| problem(&e))?;
        self.judge(points, y, from)?;
        self.learn(data, points, y)?;
        self.info.seen = to;
        let n = to as f64;
        let root = |sum: f64| if self.sums.len() == 1 { (sum / n).sqrt() } else { sum / n };
        let (error, baseline) = (root(self.loss), root(self.baseline));
        self.info.at.push(n);
        self.info.error.push(error);
        self.info.baseline.push(baseline);
        Ok(to < self.info.of)
    }

    fn judge(&mut self, points: Points<'_>, y: &[f64], seen: usize) -> Result<(), Problem> {
        let predicted: Vec<f64> = match &self.model {
            None => vec![0.0; y.len()],
            Some(Online::Numbers(model)) => model.predict(points).map_err(|e| problem(&e))?,
            Some(Online::Classes(model)) => {
                model.predict(points).map_err(|e| problem(&e))?.into_iter().map(f64::from).collect()
            }
        };
        for (&p, &y) in predicted.iter().zip(y) {
            if self.sums.len() == 1 {
                let mean = if seen == 0 { 0.0 } else { self.sums[0] / seen as f64 };
                self.loss += (p - y) * (p - y);
                self.baseline += (mean - y) * (mean - y);
            } else {
                let frequent = (0..self.sums.len()).fold(0, |b, k| if self.sums[k] > self.sums[b] { k } else { b });
                self.loss += f64::from(u8::from(p != y));
                self.baseline += f64::from(u8::from(frequent as f64 != y));
            }
        }
        Ok(())
    }

    fn learn(&mut self, data: &Data, points: Points<'_>, y: &[f64]) -> Result<(), Problem> {
        let classes = || -> Vec<u32> { y.iter().map(|y| *y as u32).collect() };
        for &y in y {
            if self.sums.len() == 1 { self.sums[0] += y } else { self.sums[y as usize] += 1.0 }
        }
        let done = match &mut self.model {
            Some(Online::Numbers(model)) => model.learn(points, y),
            Some(Online::Classes(model)) => model.learn(points, &classes()),
            None => {
                let request = FitRequest { kind: Kind::Forest, trees: Some(TREES), seed: SEED, lifetimes: None };
                let forest = forest_params(data, &request, LifetimeChoice::Value(Lifetime::INFINITE));
                forest.and_then(|forest| {
                    self.model = Some(if data.task == Some(Task::Classification) {
                        let params = ClassificationParams { forest, ..ClassificationParams::default() };
                        let n = self.sums.len();
                        Online::Classes(Box::new(params.n_classes(n).fit(points, &classes())?))
                    } else {
                        let params = RegressionParams { forest, ..RegressionParams::default() };
                        Online::Numbers(Box::new(params.fit(points, y)?))
                    });
                    Ok(())
                })
            }
        };
        done.map_err(|e| problem(&e))
    }

    /// Forgets a learned row: the forest becomes the one that never learned it.
    pub(crate) fn forget(&mut self, data: &Data, position: usize) -> Result<(), Problem> {
        if position >= self.info.seen || self.info.forgotten.contains(&position) {
            return Err(Problem::with_hint("that row is not in the forest", "choose one that was learned"));
        }
        let width = data.width();
        let points = Points::row_major(&data.train.x[position * width..][..width], width).map_err(|e| problem(&e))?;
        let y = &data.train.y[position..=position];
        let done = match &mut self.model {
            Some(Online::Numbers(model)) => model.forget(points, y),
            Some(Online::Classes(model)) => model.forget(points, &[y[0] as u32]),
            None => Ok(()),
        };
        done.map_err(|e| problem(&e))?;
        self.info.forgotten.push(position);
        Ok(())
    }
}
