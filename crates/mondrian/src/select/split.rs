//! The rows used for tuning: the first ones in an order that depends on the rows alone.

use crate::Points;
use crate::process::NodeKey;

/// The hash of a row under a key: it orders, samples and splits rows independently of their order and repetition. Zeros
/// of either sign are equal.
pub(crate) fn row_key(key: NodeKey, row: impl IntoIterator<Item = f64>) -> NodeKey {
    row.into_iter().fold(key, |key, x| key.fork((x + 0.0).to_bits()))
}

/// The keys of row-major rows, each as [`row_key`] gives it. Several rows are hashed together, because each step of a
/// hash depends on the one before.
pub(crate) fn row_keys(key: NodeKey, rows: &[f64], n_columns: usize) -> Vec<NodeKey> {
    const TOGETHER: usize = 8;
    let mut keys = vec![key; rows.len() / n_columns];
    for (keys, rows) in keys.chunks_mut(TOGETHER).zip(rows.chunks(TOGETHER * n_columns)) {
        for column in 0..n_columns {
            let cells = rows.iter().skip(column).step_by(n_columns);
            keys.iter_mut().zip(cells).for_each(|(key, x)| *key = row_key(*key, [*x]));
        }
    }
    keys
}

/// The hash that holds rows out, of which [`crate::select::automatic::Caps::rounds`] makes rounds.
pub(crate) fn keyed_hash(seed: u64, row: impl IntoIterator<Item = f64>) -> u64 {
    row_key(NodeKey::root(seed, u64::from_le_bytes(*b"held out")), row).to_bits() as u64
}

/// Rows in the order of a keyed hash of their coordinates: independent of their original order
/// (docs/design.md, "Automatic values"). The first k are a sample without replacement; equal rows stay together.
pub(crate) fn keyed_order(points: Points<'_>, key: NodeKey) -> Vec<usize> {
    order_of((0..points.n_rows()).map(|row| row_key(key, points.row(row))))
}

/// Indices in the order of their keys.
pub(crate) fn order_of(keys: impl Iterator<Item = NodeKey>) -> Vec<usize> {
    let mut order: Vec<(NodeKey, usize)> = keys.enumerate().map(|(place, key)| (key, place)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, place)| place).collect()
}

/// The given rows, row-major, with their targets, one or several per row.
pub(crate) fn gather(points: Points<'_>, targets: &[f64], rows: &[usize]) -> (Vec<f64>, Vec<f64>) {
    let n_targets = targets.len() / points.n_rows().max(1);
    let targets_of = |&row: &usize| targets[row * n_targets..][..n_targets].iter().copied();
    (rows.iter().flat_map(|&row| points.row(row)).collect(), rows.iter().flat_map(targets_of).collect())
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
