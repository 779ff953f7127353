//! Kernel density estimation with the squared exponential kernel, for classification: written plainly, O(rows · queries).

use rayon::prelude::*;

/// Training rows of two classes, with many columns of which the first few are used.
pub(crate) struct Kde<'a> {
    /// Row-major.
    pub(crate) rows: &'a [f64],
    /// Which class each row is of: 0 or 1.
    pub(crate) classes: &'a [u32],
    /// Columns a row.
    pub(crate) n_columns: usize,
}

impl Kde<'_> {
    /// The class of highest density at each query, for every number of leading columns from 1 on (outer) and every
    /// bandwidth (inner): `out[columns - 1][bandwidth][query]`. The densities share h and so the kernel's constant.
    pub(crate) fn classify(&self, queries: &[f64], bandwidths: &[f64]) -> Vec<Vec<Vec<u32>>> {
        let d = self.n_columns;
        let answers: Vec<Vec<u32>> = queries.par_chunks(d).map(|query| self.answers(query, bandwidths)).collect();
        let of = |columns: usize, h: usize| answers.iter().map(|a| a[columns * bandwidths.len() + h]).collect();
        (0..d).map(|columns| (0..bandwidths.len()).map(|h| of(columns, h)).collect()).collect()
    }

    fn answers(&self, query: &[f64], bandwidths: &[f64]) -> Vec<u32> {
        let d = self.n_columns;
        let of_class = |class: u32| -> Vec<&[f64]> {
            let rows = self.rows.chunks_exact(d).zip(self.classes).filter(|(_, c)| **c == class);
            rows.map(|(row, _)| row).collect()
        };
        let rows = [of_class(0), of_class(1)];
        let mut squares = [vec![0.0; rows[0].len()], vec![0.0; rows[1].len()]];
        let mut answers = Vec::with_capacity(d * bandwidths.len());
        for column in 0..d {
            // Distances in one more dimension: one more term.
            for (rows, squares) in rows.iter().zip(&mut squares) {
                rows.iter().zip(squares).for_each(|(row, square)| *square += (row[column] - query[column]).powi(2));
            }
            for h in bandwidths {
                let [zero, one] = [&squares[0], &squares[1]].map(|squares| log_density(squares, -0.5 / (h * h)));
                answers.push(u32::from(one > zero));
            }
        }
        answers
    }
}

/// Log of the mean of exp(scale · square), relative to the nearest row so that the sum cannot vanish.
fn log_density(squares: &[f64], scale: f64) -> f64 {
    let nearest = squares.iter().copied().fold(f64::INFINITY, f64::min);
    // Terms below e⁻⁴⁰ of the largest are lost in rounding; leaving them out spares most exponentials.
    let terms = squares.iter().map(|square| scale * (square - nearest)).filter(|term| *term > -40.0);
    scale * nearest + (terms.map(f64::exp).sum::<f64>() / squares.len() as f64).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_denser_class_wins() {
        // Class 0 around 0 in both columns, class 1 around 1 in the first and 0 in the second.
        let rows = [0.0, 0.0, 0.1, 0.1, 1.0, 0.0, 1.1, -0.1, 0.9, 0.1];
        let kde = Kde { rows: &rows, classes: &[0, 0, 1, 1, 1], n_columns: 2 };
        let found = kde.classify(&[0.2, 0.0, 0.8, 0.0, 1e6, 0.0], &[0.1, 1.0]);
        assert_eq!(found.len(), 2);
        for columns in found {
            for answers in columns {
                assert_eq!(answers, [0, 1, 1]);
            }
        }
    }
}
