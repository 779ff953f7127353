//! Products and sums of densities without overflow.
//!
//! A density is a product of a factor per cut, and in tens of dimensions it leaves the range of a float in both
//! directions. Logarithms would do, but a forest averages densities: every sum would cost an exponential a tree. So
//! numbers here carry a second exponent and are multiplied and added as they are; a logarithm is taken once, at the end.

/// log 2^256.
const LOG_UNIT: f64 = 256.0 * std::f64::consts::LN_2;
/// 2^256 and its inverse: a mantissa stays between them.
const UNIT: f64 = f64::from_bits((1023 + 256) << 52);
const INVERSE_UNIT: f64 = f64::from_bits((1023 - 256) << 52);

/// A positive number `mantissa` · 2^(256 · `exponent`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Wide {
    mantissa: f64,
    exponent: i32,
}

impl Wide {
    pub(crate) const ONE: Self = Self { mantissa: 1.0, exponent: 0 };

    /// The product with a factor between 2^−500 and 2^500.
    #[inline]
    pub(crate) fn times(self, factor: f64) -> Self {
        let (mut mantissa, mut exponent) = (self.mantissa * factor, self.exponent);
        while mantissa >= UNIT {
            mantissa *= INVERSE_UNIT;
            exponent += 1;
        }
        while mantissa < INVERSE_UNIT {
            mantissa *= UNIT;
            exponent -= 1;
        }
        Self { mantissa, exponent }
    }

    /// The logarithm of the mean, added up in the order given; minus infinity for none.
    pub(crate) fn log_mean(values: &[Self]) -> f64 {
        let Some(exponent) = values.iter().map(|v| v.exponent).max() else { return f64::NEG_INFINITY };
        let sum: f64 = values.iter().map(|v| v.at_scale(exponent)).sum();
        libm::log(sum / values.len() as f64) + f64::from(exponent) * LOG_UNIT
    }

    /// The number over 2^(256 · `exponent`), which is at least its own: exact, or zero where it is lost anyway.
    #[inline]
    fn at_scale(self, exponent: i32) -> f64 {
        match exponent - self.exponent {
            0 => self.mantissa,
            1 => self.mantissa * INVERSE_UNIT,
            2 => self.mantissa * INVERSE_UNIT * INVERSE_UNIT,
            _ => 0.0,
        }
    }
}

/// A sum of [`Wide`] numbers in which one after the other is exchanged.
///
/// It is kept to twice the precision of a float: an exchanged number may be far larger than what is left, and 10⁵
/// exchanges must not show in the ninth digit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WideSum {
    sum: DoubleDouble,
    exponent: i32,
}

impl WideSum {
    /// `n` times one.
    pub(crate) fn of_ones(n: usize) -> Self {
        Self { sum: DoubleDouble { high: n as f64, low: 0.0 }, exponent: 0 }
    }

    /// Puts `new` in the place of `old`.
    #[inline]
    pub(crate) fn exchange(&mut self, old: Wide, new: Wide) {
        while new.exponent > self.exponent {
            self.sum.high *= INVERSE_UNIT;
            self.sum.low *= INVERSE_UNIT;
            self.exponent += 1;
        }
        self.sum.add(new.at_scale(self.exponent));
        self.sum.add(-old.at_scale(self.exponent));
    }

    /// The natural logarithm.
    pub(crate) fn log(&self) -> f64 {
        libm::log(self.sum.high) + f64::from(self.exponent) * LOG_UNIT
    }
}

/// An unevaluated sum of two floats, for running sums that must not drift.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DoubleDouble {
    high: f64,
    low: f64,
}

impl DoubleDouble {
    /// Adds a float (Knuth's two-sum, then renormalised).
    #[inline]
    pub(crate) fn add(&mut self, x: f64) {
        let sum = self.high + x;
        let part = sum - self.high;
        let error = (self.high - (sum - part)) + (x - part);
        let low = self.low + error;
        self.high = sum + low;
        self.low = low - (self.high - sum);
    }

    pub(crate) fn get(self) -> f64 {
        self.high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_far_beyond_a_float() {
        let mut x = Wide::ONE;
        for _ in 0..1000 {
            x = x.times(1e100);
        }
        assert!((Wide::log_mean(&[x]) / (1e5 * std::f64::consts::LN_10) - 1.0).abs() < 1e-14);
        for _ in 0..2000 {
            x = x.times(1e-100);
        }
        assert!((Wide::log_mean(&[x]) / (-1e5 * std::f64::consts::LN_10) - 1.0).abs() < 1e-14);
    }

    #[test]
    fn means_follow_the_largest() {
        let (small, large) = (Wide::ONE.times(1e-90), Wide::ONE.times(1e150).times(1e150));
        let expected = 300.0 * std::f64::consts::LN_10 - std::f64::consts::LN_2;
        assert!((Wide::log_mean(&[small, large]) - expected).abs() < 1e-11);
        assert!((Wide::log_mean(&[small, small]) - Wide::log_mean(&[small])).abs() < 1e-12);
        assert_eq!(Wide::log_mean(&[]), f64::NEG_INFINITY);
    }

    #[test]
    fn exchanging_leaves_no_residue() {
        let mut sum = WideSum::of_ones(2);
        let large = Wide::ONE.times(1e9);
        let mut old = Wide::ONE;
        for i in 0..10_000_u32 {
            let new = large.times(1.0 + f64::from(i) / 7.0);
            sum.exchange(old, new);
            old = new;
        }
        sum.exchange(old, Wide::ONE.times(1e-3));
        // What is left is 1 + 0.001, beside which 1e12 stood ten thousand times before: plain sums would lose all digits
        // but four.
        assert!((sum.log() - 1.001_f64.ln()).abs() < 1e-13, "{}", sum.log());
    }
}
