//! Quantiles of the mixture over trees: each tree predicts a normal distribution, the forest their average.

use crate::normal;

/// A normal component: mean and standard deviation.
pub(crate) type Normal = (f64, f64);

fn cdf(components: &[Normal], x: f64) -> f64 {
    let each = components.iter().map(|(mean, sd)| match *sd {
        sd if sd > 0.0 => normal::cdf((x - mean) / sd),
        _ => f64::from(u8::from(x >= *mean)),
    });
    each.sum::<f64>() / components.len() as f64
}

/// The x at which the equal mixture's distribution function reaches `p`, by bisection to the last bit that matters.
pub(crate) fn quantile(components: &[Normal], p: f64) -> f64 {
    let reach = 40.0;
    let mut low = components.iter().map(|(m, s)| m - reach * s).fold(f64::INFINITY, f64::min);
    let mut high = components.iter().map(|(m, s)| m + reach * s).fold(f64::NEG_INFINITY, f64::max);
    for _ in 0..200 {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            break;
        }
        if cdf(components, middle) < p {
            low = middle;
        } else {
            high = middle;
        }
        if (high - low) <= 1e-13 * (low.abs() + high.abs()) {
            break;
        }
    }
    low + (high - low) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_invert_the_distribution() {
        let mixture = [(0.0, 1.0), (5.0, 0.5), (5.0, 0.0)];
        for p in [0.01, 0.2, 0.5, 0.9, 0.99] {
            let x = quantile(&mixture, p);
            assert!(cdf(&mixture, x - 1e-9) <= p + 1e-9 && cdf(&mixture, x + 1e-9) >= p - 1e-9, "{p}: {x}");
        }
        assert!((quantile(&[(2.0, 3.0)], 0.975) - (2.0 + 3.0 * 1.959_963_984_540_054)).abs() < 1e-9);
        assert_eq!(quantile(&[(2.0, 0.0)], 0.3), 2.0);
    }
}
