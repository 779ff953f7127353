//! The rows used for tuning: the first ones in an order that depends on the rows alone.

use crate::Points;
use crate::process::NodeKey;

/// Rows in the order of a keyed hash of their coordinates: the same whatever order they came in
/// (docs/design.md, "Automatic values"). The first k are a sample without replacement; equal rows stay together.
pub(crate) fn keyed_order(points: Points<'_>, key: NodeKey) -> Vec<usize> {
    let hash = |row: usize| points.row(row).fold(key, |key, x| key.fork((x + 0.0).to_bits()));
    let mut order: Vec<(NodeKey, usize)> = (0..points.n_rows()).map(|row| (hash(row), row)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, row)| row).collect()
}

/// The given rows, row-major, with their targets.
pub(crate) fn gather(points: Points<'_>, targets: &[f64], rows: &[usize]) -> (Vec<f64>, Vec<f64>) {
    (rows.iter().flat_map(|&row| points.row(row)).collect(), rows.iter().map(|&row| targets[row]).collect())
}

/// The mean absolute deviation of each column from its mean: the unit that makes lifetimes of different inputs
/// comparable. Zero for a constant column.
pub(crate) fn spreads(points: Points<'_>) -> Vec<f64> {
    let n = points.n_rows().max(1) as f64;
    let spread = |d: usize| {
        let first = points.column(d).next().unwrap_or(0.0);
        if points.column(d).all(|x| x == first) {
            return 0.0;
        }
        let mean = points.column(d).sum::<f64>() / n;
        points.column(d).map(|x| (x - mean).abs()).sum::<f64>() / n
    };
    (0..points.n_columns()).map(spread).collect()
}
