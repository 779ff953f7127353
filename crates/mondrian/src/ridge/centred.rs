//! Targets, checked and centred.

use crate::linalg::{Matrix, MatrixRef};
use crate::{Error, Result};

/// Targets minus their means; the means are zeros without an intercept.
#[derive(Debug, Clone)]
pub(crate) struct Centred {
    pub(crate) targets: Matrix,
    pub(crate) means: Vec<f64>,
}

impl Centred {
    /// Checks `targets` against the number of rows of X, and centres each column if there is an intercept.
    pub(crate) fn new(targets: MatrixRef<'_>, n_rows: usize, fit_intercept: bool) -> Result<Self> {
        if targets.n_rows() != n_rows {
            return Err(Error::LengthMismatch { what: "targets", expected: n_rows, found: targets.n_rows() });
        }
        if targets.n_columns() == 0 {
            return Err(Error::Empty { what: "y", rows: n_rows, columns: 0 });
        }
        let mut targets = targets.to_owned();
        if let Some(k) = targets.as_slice().iter().position(|y| !y.is_finite()) {
            let value = targets.as_slice()[k];
            return Err(Error::NotFinite { what: "y", row: k % n_rows, column: k / n_rows, value });
        }
        let means = (0..targets.n_columns())
            .map(|t| if fit_intercept { mean(targets.column(t)) } else { 0.0 })
            .collect::<Vec<_>>();
        for (t, mean) in means.iter().enumerate() {
            targets.column_mut(t).iter_mut().for_each(|y| *y -= mean);
        }
        Ok(Self { targets, means })
    }
}

/// In two passes, so that a large offset does not lose the low digits.
fn mean(y: &[f64]) -> f64 {
    let n = y.len() as f64;
    let first = y.iter().map(|y| y / n).sum::<f64>();
    first + y.iter().map(|y| y - first).sum::<f64>() / n
}

/// Refuses an α that is not a number ≥ 0, and 0 itself unless `zero_allowed`.
pub(crate) fn check_alpha(alpha: f64, zero_allowed: bool) -> Result<()> {
    let expected = if zero_allowed {
        "a finite number ≥ 0"
    } else {
        "a finite number > 0: the cells of several trees overlap, so without it the coefficients are not unique"
    };
    if alpha.is_finite() && (alpha > 0.0 || zero_allowed && alpha == 0.0) {
        Ok(())
    } else {
        Err(Error::InvalidParameter { name: "alpha", value: alpha, expected })
    }
}

/// Converts one row of S to that of S(I − 11ᵀ/n) + 11ᵀ/n.
pub(crate) fn intercept_smoother(weights: &mut [f64]) {
    let n = weights.len() as f64;
    let shift = (1.0 - weights.iter().sum::<f64>()) / n;
    weights.iter_mut().for_each(|w| *w += shift);
}
