//! Factors on the measure for forests and feature maps, from the tuning of the Laplace kernel: the more often a tree should
//! cut an input, the larger its lifetime (docs/design.md, "Forests in the same geometry").

use crate::forest::{ClassificationParams, ForestParams, LifetimeChoice, RegressionParams, WeightsChoice};
use crate::laplace::Cells;
use crate::laplace::columns::Measure;
use crate::laplace::model::KeyedRows;
use crate::laplace::objective::Loss;
use crate::laplace::search::{KernelTuning, Search, lifetimes_of_inputs};
use crate::laplace::target_choice::standardised;
use crate::laplace::values::Metric;
use crate::lifetime::Lifetime;
use crate::linalg::{Matrix, Threads};
use crate::process::Weights;
use crate::progress::Progress;
use crate::{Error, Points, Result};

/// Rows that are looked at, the last quarter of them to decide on.
const ROWS: usize = 2000;
/// Fewer rows say too little.
const FEWEST: usize = 60;
/// Steps of Adam, and rows of each.
const STEPS: usize = 40;
const STEP_ROWS: usize = 500;
/// Trees of the two forests that are compared.
const TREES: usize = 25;

/// What is predicted.
#[derive(Debug, Clone, Copy)]
pub enum Labels<'a> {
    /// Numbers, one column per target.
    Numbers(&'a Matrix),
    /// Classes below a number of them.
    Classes(&'a [u32], usize),
}

/// One factor per dimension for trees that predict these labels, or `None` where 1/standard deviation is as good.
///
/// The lifetimes of the Laplace kernel are tuned on at most 1500 rows; a forest with them must predict 500 others better than
/// one with 1/standard deviation. Their mean over the inputs, each times its deviation, is 1.
///
/// # Errors
/// [`Error::LengthMismatch`] unless there is one label per row; those of the tuning.
pub fn tuned_weights(points: Points<'_>, labels: Labels<'_>, seed: u64, threads: Threads) -> Result<Option<Weights>> {
    let n = points.n_rows();
    let n_labels = match labels {
        Labels::Numbers(targets) => targets.n_rows(),
        Labels::Classes(classes, _) => classes.len(),
    };
    if n_labels != n {
        return Err(Error::LengthMismatch { what: "labels", expected: n, found: n_labels });
    }
    let targets = match labels {
        Labels::Numbers(targets) => targets.clone(),
        Labels::Classes(classes, _) => Matrix::from_column(classes.iter().map(|c| f64::from(*c)).collect()),
    };
    let (mut copy, d) = (Vec::new(), points.n_columns());
    let cells = Cells::of_points(points, &mut copy)?;
    let order = KeyedRows::new(cells, &targets, None, seed).rows;
    if order.len() < FEWEST || d < 2 {
        return Ok(None);
    }
    let order = &order[..order.len().min(ROWS)];
    let (tuned_on, held_out) = order.split_at(order.len() * 3 / 4);
    let part = |rows: &[usize]| -> (Vec<f64>, Matrix) {
        let x = rows.iter().flat_map(|&i| cells.row(i).iter().copied()).collect();
        (x, Matrix::from_fn(rows.len(), targets.n_columns(), |i, c| targets[(rows[i], c)]))
    };
    let ((x, y), (held_x, held_y)) = (part(tuned_on), part(held_out));
    let Some(weights) = kernel_lifetimes(Cells::row_major(&x, d)?, &y, labels, seed, threads)? else {
        return Ok(None);
    };
    let judge = |choice: WeightsChoice| -> Result<f64> {
        let lifetime = LifetimeChoice::Value(Lifetime::INFINITE);
        let forest = ForestParams { n_trees: TREES, seed, lifetime, weights: choice, ..ForestParams::default() };
        let (train, test) = (Points::row_major(&x, d)?, Points::row_major(&held_x, d)?);
        match labels {
            Labels::Numbers(_) => {
                let mut error = 0.0;
                for c in 0..y.n_columns() {
                    let params = RegressionParams { forest: forest.clone(), ..RegressionParams::default() };
                    let predicted = params.fit(train, y.column(c))?.predict(test)?;
                    let scale = standardised(&y, &vec![1.0; y.n_rows()]).1[c];
                    let squares = predicted.iter().zip(held_y.column(c)).map(|(p, y)| ((p - y) / scale).powi(2));
                    error += squares.sum::<f64>();
                }
                Ok(error)
            }
            Labels::Classes(_, n_classes) => {
                let classes: Vec<u32> = y.column(0).iter().map(|c| *c as u32).collect();
                let params = ClassificationParams { forest, ..ClassificationParams::default() };
                let shares = params.n_classes(n_classes).fit(train, &classes)?.predict_proba(test)?;
                let rows = shares.chunks_exact(n_classes).zip(held_y.column(0));
                Ok(-rows.map(|(row, class)| row[*class as usize].max(1e-9).ln()).sum::<f64>())
            }
        }
    };
    let (plain, tuned) = (judge(WeightsChoice::Deviation)?, judge(WeightsChoice::Given(weights.clone()))?);
    Ok((tuned < plain).then_some(weights))
}

/// The tuned lifetimes of the axes alone; `None` where no input matters.
fn kernel_lifetimes(
    cells: Cells<'_>,
    y: &Matrix,
    labels: Labels<'_>,
    seed: u64,
    threads: Threads,
) -> Result<Option<Weights>> {
    let (n, d) = (cells.n_rows(), cells.n_columns());
    let (metric, measure) = (Metric::None, Measure::Uniform);
    let tuning =
        KernelTuning { metric, measure, steps: STEPS, rows: STEP_ROWS, seed, threads, ..KernelTuning::default() };
    let weights = vec![1.0; n];
    let (loss, targets) = match labels {
        Labels::Numbers(_) => (Loss::Squared, standardised(y, &weights).0),
        Labels::Classes(_, n_classes) => {
            let one_hot = |i: usize, c: usize| f64::from(u8::from(y[(i, 0)] as usize == c));
            (Loss::Log, Matrix::from_fn(n, n_classes, one_hot))
        }
    };
    let categorical = vec![false; d];
    let mut search = Search::new(&tuning, cells, &categorical, weights, loss, Progress::none())?;
    let rough = search.rough(&targets)?;
    let kernel = search.finish(rough, &targets)?;
    let lifetimes = lifetimes_of_inputs(&kernel.columns, &kernel.values);
    let deviation = |c: usize| {
        let mean = cells.column(c).sum::<f64>() / n as f64;
        (cells.column(c).map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64).sqrt()
    };
    let mean = lifetimes.iter().enumerate().map(|(c, l)| l * deviation(c)).sum::<f64>() / d as f64;
    if !(mean > 0.0 && mean.is_finite()) {
        return Ok(None);
    }
    Weights::new(lifetimes.into_iter().map(|l| l / mean).collect()).map(Some)
}
