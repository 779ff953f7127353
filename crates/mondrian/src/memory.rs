//! One budget of memory for everything whose size grows with the square of the data (docs/design.md, "One memory
//! budget").
//!
//! The library does not query the system: a front end sets the limit with [`set_max_memory`]. A computation that needs
//! more uses another algorithm if there is one, else it returns [`Error::TooLarge`] before anything is allocated.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Error, Result};

/// The largest number means no limit.
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// Sets how many bytes one matrix or table of a computation may take in this process; `None` for no limit.
///
/// Results depend on it only through the choice of the algorithm: which solver, which form of a path.
///
/// ```standalone_crate
/// use mondrian::{Error, LaplaceKernel, LaplaceRidge, Lifetime, Points};
/// let x: Vec<f64> = (0..40).map(f64::from).collect();
/// let params = LaplaceRidge::params(LaplaceKernel::new(Lifetime::new(0.5)?)?);
/// mondrian::set_max_memory(Some(10_000));                                   // a matrix of 40 × 40 numbers takes 12 800
/// assert!(matches!(params.fit(Points::row_major(&x, 1)?, &x), Err(Error::TooLarge { .. })));
/// mondrian::set_max_memory(None);
/// assert!(params.fit(Points::row_major(&x, 1)?, &x).is_ok());
/// # Ok::<(), Error>(())
/// ```
pub fn set_max_memory(bytes: Option<u64>) {
    LIMIT.store(bytes.unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// The limit in bytes, if there is one.
pub fn max_memory() -> Option<u64> {
    Some(LIMIT.load(Ordering::Relaxed)).filter(|limit| *limit != u64::MAX)
}

/// The limit in bytes; infinite if there is none.
pub(crate) fn limit() -> f64 {
    max_memory().map_or(f64::INFINITY, |limit| limit as f64)
}

/// Bytes of a table of numbers.
pub(crate) fn bytes_of(rows: usize, columns: usize) -> f64 {
    8.0 * rows as f64 * columns as f64
}

/// Refuses a size that is beyond the limit or cannot be reserved.
///
/// # Errors
/// [`Error::TooLarge`] with both numbers.
pub(crate) fn check(what: &'static str, bytes: f64) -> Result<()> {
    check_within(what, bytes, limit())
}

/// As [`check`], for a limit of the caller.
pub(crate) fn check_within(what: &'static str, bytes: f64, limit: f64) -> Result<()> {
    if bytes > limit {
        return Err(Error::TooLarge { what, expected: bytes, limit });
    }
    // An allocation that fails ends the process; a reservation that fails is an error. It is released immediately.
    let is_there = bytes < isize::MAX as f64 && Vec::<u8>::new().try_reserve_exact(bytes as usize).is_ok();
    if is_there { Ok(()) } else { Err(Error::TooLarge { what, expected: bytes, limit: limit.min(bytes / 2.0) }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_with_both_numbers() {
        assert_eq!(check_within("a table", 100.0, 100.0), Ok(()));
        let refused = Error::TooLarge { what: "a table", expected: 101.0, limit: 100.0 };
        assert_eq!(check_within("a table", 101.0, 100.0), Err(refused.clone()));
        assert_eq!(refused.to_string(), "a table: about 1.010e2 expected, more than the limit of 1.000e2");
        // More than any machine has.
        assert!(matches!(check_within("a table", 1e18, f64::INFINITY), Err(Error::TooLarge { .. })));
        assert!(check_within("a table", f64::INFINITY, f64::INFINITY).is_err());
    }
}
