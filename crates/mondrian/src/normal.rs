//! The standard normal distribution, for intervals: the same bits on every platform.

/// P(Z ≤ z).
///
/// ```
/// assert_eq!(mondrian::internals::normal::cdf(0.0), 0.5);
/// assert!((mondrian::internals::normal::cdf(1.959964) - 0.975).abs() < 1e-7);
/// ```
pub fn cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2)
}

/// The z with P(Z ≤ z) = `probability`; ∓∞ at 0 and 1, NaN outside.
///
/// ```
/// assert!((mondrian::internals::normal::quantile(0.95) - 1.6448536269514722).abs() < 1e-12);
/// ```
pub fn quantile(probability: f64) -> f64 {
    if probability > 0.5 {
        // By symmetry the small tail is solved for, where the distribution function keeps its digits.
        return -quantile(1.0 - probability);
    }
    if probability == 0.0 {
        return f64::NEG_INFINITY;
    }
    // The comparison is written so that NaN fails.
    if !(probability > 0.0 && probability <= 0.5) {
        return f64::NAN;
    }
    // Bisection of a monotone function: about sixty steps to the last bit, no constants to get wrong.
    let (mut low, mut high) = (-40.0, 0.0);
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return high;
        }
        if cdf(middle) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::distribution::{ContinuousCDF, Normal};

    #[test]
    fn agrees_with_a_reference() {
        let normal = Normal::new(0.0, 1.0).unwrap();
        for probability in [1e-12, 1e-4, 0.01, 0.05, 0.25, 0.5, 0.6, 0.9, 0.975, 0.999_9] {
            let z = quantile(probability);
            assert!((z - normal.inverse_cdf(probability)).abs() < 1e-7, "{probability}: {z}");
            assert!((cdf(z) - probability).abs() < 1e-14, "{probability}: {z}");
        }
        assert_eq!((quantile(0.0), quantile(1.0)), (f64::NEG_INFINITY, f64::INFINITY));
        assert!([-0.1, 1.1, f64::NAN].into_iter().all(|p| quantile(p).is_nan()));
    }
}
