//! Kernel values between rows, column by column.

use rayon::prelude::*;

use crate::Points;
use crate::dense::{Matrix, Threads, vectorise};

/// exp(−Σ_d λ_d |x_id − x_jd|) in the lower triangle; `columns` holds the points, one slice a dimension.
pub(super) fn gram_lower(columns: &[Vec<f64>], lifetimes: &[f64], threads: Threads) -> Matrix {
    let n = columns.first().map_or(0, Vec::len);
    let scaled = scale(columns, lifetimes);
    let mut gram = Matrix::zeros(n, n);
    let fill = |(j, out): (usize, &mut [f64])| {
        let from = |column: &Vec<f64>| column[j];
        kernel_values(&scaled, j, &scaled.iter().map(from).collect::<Vec<_>>(), &mut out[j..]);
    };
    if threads == Threads::ONE {
        gram.as_mut_slice().chunks_mut(n.max(1)).enumerate().for_each(fill);
    } else {
        gram.as_mut_slice().par_chunks_mut(n.max(1)).enumerate().for_each(fill);
    }
    gram
}

/// Kernel values of all training rows (rows of the result) against each query (columns).
pub(super) fn gram_against(columns: &[Vec<f64>], lifetimes: &[f64], queries: Points<'_>, threads: Threads) -> Matrix {
    let n = columns.first().map_or(0, Vec::len);
    let scaled = scale(columns, lifetimes);
    let used: Vec<usize> = (0..lifetimes.len()).filter(|&d| lifetimes[d] > 0.0).collect();
    let mut gram = Matrix::zeros(n, queries.n_rows());
    let fill = |(row, out): (usize, &mut [f64])| {
        let query: Vec<f64> = used.iter().map(|&d| queries.get(row, d) * lifetimes[d]).collect();
        kernel_values(&scaled, 0, &query, out);
    };
    if threads == Threads::ONE {
        gram.as_mut_slice().chunks_mut(n.max(1)).enumerate().for_each(fill);
    } else {
        gram.as_mut_slice().par_chunks_mut(n.max(1)).enumerate().for_each(fill);
    }
    gram
}

/// The columns with a lifetime, in units in which it is one.
fn scale(columns: &[Vec<f64>], lifetimes: &[f64]) -> Vec<Vec<f64>> {
    let used = columns.iter().zip(lifetimes).filter(|(_, lifetime)| **lifetime > 0.0);
    used.map(|(column, lifetime)| column.iter().map(|x| x * lifetime).collect()).collect()
}

/// exp(−‖x_i − query‖₁) for the rows from `first` on, into `out`, which holds zeros.
fn kernel_values(scaled: &[Vec<f64>], first: usize, query: &[f64], out: &mut [f64]) {
    vectorise(
        #[inline(always)]
        || {
            for (column, &q) in scaled.iter().zip(query) {
                for (out, x) in out.iter_mut().zip(&column[first..]) {
                    *out += (x - q).abs();
                }
            }
        },
    );
    out.iter_mut().for_each(|k| *k = (-*k).exp());
}
