//! Kernel density estimation with the squared exponential kernel, for classification: every row against every query.

use rayon::prelude::*;

use super::images::Labelled;

/// Bandwidths that are tried: each is the one before divided by √2, so that its kernel is that of the one before, squared.
pub(super) const N_BANDWIDTHS: usize = 11;

/// The bandwidth of a number: 1, 0.71, 0.5, 0.35, …
pub(super) fn bandwidth(number: usize) -> f64 {
    0.5_f64.powf(number as f64 / 2.0)
}

/// The class of highest density at each query, for every number of leading columns from 1 on (outer) and every
/// bandwidth (inner): `out[columns - 1][bandwidth][query]`. The densities share h and so the kernel's constant.
pub(super) fn classify(train: &Labelled, queries: &Labelled) -> Vec<Vec<Vec<u32>>> {
    let d = train.n_columns;
    let classes = [0, 1].map(|class| columns_of(train, class));
    let answers: Vec<Vec<u32>> = queries.rows.par_chunks(d).map(|query| answers(&classes, query)).collect();
    let of = |columns: usize, h: usize| answers.iter().map(|a| a[columns * N_BANDWIDTHS + h]).collect();
    (0..d).map(|columns| (0..N_BANDWIDTHS).map(|h| of(columns, h)).collect()).collect()
}

/// The rows of a class, column by column.
fn columns_of(train: &Labelled, class: u32) -> Vec<Vec<f64>> {
    let d = train.n_columns;
    let rows: Vec<&[f64]> =
        train.rows.chunks_exact(d).zip(&train.classes).filter(|(_, c)| **c == class).map(|(row, _)| row).collect();
    (0..d).map(|column| rows.iter().map(|row| row[column]).collect()).collect()
}

fn answers(classes: &[Vec<Vec<f64>>; 2], query: &[f64]) -> Vec<u32> {
    let mut squares = [0, 1].map(|class: usize| vec![0.0; classes[class][0].len()]);
    let mut answers = Vec::with_capacity(query.len() * N_BANDWIDTHS);
    for (column, x) in query.iter().enumerate() {
        // Distances in one more dimension: one more term.
        for (class, squares) in classes.iter().zip(&mut squares) {
            class[column].iter().zip(squares).for_each(|(row, square)| *square += (row - x) * (row - x));
        }
        let [zero, one] = [&squares[0], &squares[1]].map(|squares| log_densities(squares));
        answers.extend(zero.iter().zip(&one).map(|(zero, one)| u32::from(one > zero)));
    }
    answers
}

/// Logs of the mean kernel for each bandwidth, relative to the nearest row so that the sum cannot vanish. One exponential a
/// row serves all bandwidths: exp(−s/2(h/√2)²) = exp(−s/2h²)².
fn log_densities(squares: &[f64]) -> [f64; N_BANDWIDTHS] {
    let nearest = squares.iter().copied().fold(f64::INFINITY, f64::min);
    let mut terms: Vec<f64> = squares.iter().map(|square| (-0.5 * (square - nearest)).exp()).collect();
    let mut scale = -0.5;
    [(); N_BANDWIDTHS].map(|()| {
        let log = scale * nearest + (terms.iter().sum::<f64>() / squares.len() as f64).ln();
        terms.iter_mut().for_each(|term| *term *= *term);
        scale *= 2.0;
        log
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_denser_class_wins() {
        // Class 0 around 0 in both columns, class 1 around 1 in the first and 0 in the second.
        let rows = vec![0.0, 0.0, 0.1, 0.1, 1.0, 0.0, 1.1, -0.1, 0.9, 0.1];
        let train = Labelled { n_columns: 2, rows, classes: vec![0, 0, 1, 1, 1] };
        let queries = Labelled { n_columns: 2, rows: vec![0.2, 0.0, 0.8, 0.0, 1e6, 0.0], classes: vec![0; 3] };
        let found = classify(&train, &queries);
        assert_eq!(found.len(), 2);
        // The widest kernels reach over both groups: the difference is a prior, and there is none.
        assert!(found.iter().flat_map(|columns| &columns[3..]).all(|answers| *answers == [0, 1, 1]));
    }

    /// Squaring gives what the kernel's formula gives at each bandwidth.
    #[test]
    fn squared_kernels_are_narrower_kernels() {
        let squares = [0.3, 0.01, 2.5, 0.7];
        for (k, log) in log_densities(&squares).into_iter().enumerate() {
            let h = bandwidth(k);
            let plain = squares.iter().map(|s| (-0.5 * s / (h * h)).exp()).sum::<f64>() / 4.0;
            assert!((log - plain.ln()).abs() < 1e-12 * plain.ln().abs().max(1.0), "{h}");
        }
    }
}
