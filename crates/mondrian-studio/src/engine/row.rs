//! One row: its prediction, and the training rows with the largest weights in it.

use mondrian::internals::linalg::Threads;
use mondrian::{Cells, Error};

use super::view::Predicted;
use super::{Model, points, problem};
use crate::api::{Neighbour, Problem, RowAnswer, RowRequest};
use crate::tables::Data;

/// Training rows listed at most.
const MOST_NEIGHBOURS: usize = 12;
/// The smallest weight that is counted.
const WORTH: f64 = 1e-3;

impl Model {
    /// Prediction, interval and equivalent kernel of a row.
    pub(crate) fn row(&self, data: &Data, request: &RowRequest) -> Result<RowAnswer, Problem> {
        let x = data.encoder.encode(&request.cells)?;
        let at = self.lifetime(request.lifetime)?;
        let mut answer = RowAnswer {
            outside: x.iter().zip(data.lower.iter().zip(&data.upper)).any(|(x, (low, high))| x < low || x > high),
            ..RowAnswer::default()
        };
        match self.predict(&x, data, at, true)? {
            Predicted::Numbers { mean, std } => {
                answer.mean = mean.first().copied();
                answer.std = std.first().copied();
                let ends = self.intervals(&x, data, at, (&mean, &std), &[0.9])?;
                answer.interval = ends.first().and_then(|of_rows| of_rows.first()).copied();
            }
            Predicted::Classes(p) => answer.probabilities = p,
            Predicted::LogDensity(logs) => answer.mean = logs.first().copied().filter(|l| l.is_finite()),
        }
        // A file need not contain the rows that its model was fitted to.
        if let Some(weights) = self.weights(data, &x, at)?.filter(|w| w.len() == data.train.rows.len()) {
            answer.total_weight = Some(weights.iter().sum());
            answer.n_neighbours = weights.iter().filter(|w| w.abs() > WORTH).count();
            let mut order: Vec<usize> = (0..weights.len()).collect();
            order.sort_by(|&a, &b| weights[b].abs().total_cmp(&weights[a].abs()));
            answer.neighbours =
                order.iter().take(MOST_NEIGHBOURS).map(|&row| neighbour(data, row, weights[row])).collect();
        }
        Ok(answer)
    }

    /// The weight of every training row in a prediction, if the model is a linear smoother.
    fn weights(&self, data: &Data, x: &[f64], at: Option<mondrian::Lifetime>) -> Result<Option<Vec<f64>>, Problem> {
        let points = || points(x, data.width());
        let found: Result<Option<Vec<f64>>, Error> = match (self, at) {
            (Self::Forest { model, .. }, Some(at)) => {
                let points = points()?;
                model.at(at).and_then(|m| m.equivalent_kernel(points)).map(Some)
            }
            (Self::Axes(model), _) => model.equivalent_kernel(points()?).map(Some).or(Ok(None)),
            (Self::Laplace(model), _) => {
                let cells = data.encoder.cells(x);
                let kernel = Cells::row_major(&cells, data.inputs.len())
                    .and_then(|cells| model.equivalent_kernel(cells, Threads::ONE));
                // A model of many rows predicts from its nearest rows and has no such matrix.
                Ok(kernel.ok())
            }
            (Self::Kernel { model, .. }, Some(at)) => {
                let points = points()?;
                model.at(at).and_then(|model| Ok(Some(model.equivalent_kernel(points)?.into_vec())))
            }
            _ => Ok(None),
        };
        found.map_err(|e| problem(&e))
    }
}

fn neighbour(data: &Data, row: usize, weight: f64) -> Neighbour {
    let width = data.width();
    let inputs = data.train.x[row * width..][..width]
        .iter()
        .enumerate()
        .map(|(d, &x)| data.encoder.in_units(d, x).unwrap_or(x))
        .collect();
    let target = data.train.y.get(row).copied().unwrap_or(0.0);
    Neighbour { row: data.train.rows[row], weight, target, inputs }
}
