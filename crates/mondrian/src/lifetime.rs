//! The lifetime λ: how long a Mondrian process runs, and so how fine its partition is.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// A lifetime λ: a number ≥ 0, possibly infinite, never NaN.
///
/// ```
/// use mondrian::Lifetime;
/// assert!(Lifetime::new(2.0)? < Lifetime::INFINITE);
/// assert!(Lifetime::new(f64::NAN).is_err());
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "Wide", into = "Wide")]
pub struct Lifetime(f64);

/// The serialised form of a lifetime: JSON has no infinity.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Wide(#[serde(with = "crate::model_file::wide_float")] f64);

impl TryFrom<Wide> for Lifetime {
    type Error = Error;

    fn try_from(wide: Wide) -> Result<Self> {
        Self::new(wide.0)
    }
}

impl From<Lifetime> for Wide {
    fn from(lifetime: Lifetime) -> Self {
        Self(lifetime.0)
    }
}

impl Lifetime {
    /// Infinite: every two distinct points are separated.
    pub const INFINITE: Self = Self(f64::INFINITY);
    /// The trivial partition.
    pub const ZERO: Self = Self(0.0);

    /// Checks that `value` is a lifetime.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] if it is negative or NaN.
    pub fn new(value: f64) -> Result<Self> {
        // Written so that NaN fails; adding zero turns -0.0 into 0.0.
        if value >= 0.0 {
            Ok(Self(value + 0.0))
        } else {
            Err(Error::InvalidParameter { name: "lifetime", value, expected: "a number ≥ 0" })
        }
    }

    /// The number itself.
    pub fn get(self) -> f64 {
        self.0
    }

    /// Whether it is finite.
    pub fn is_finite(self) -> bool {
        self.0.is_finite()
    }

    /// The smaller of two lifetimes.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }
}

impl TryFrom<f64> for Lifetime {
    type Error = Error;

    fn try_from(value: f64) -> Result<Self> {
        Self::new(value)
    }
}

impl From<Lifetime> for f64 {
    fn from(lifetime: Lifetime) -> Self {
        lifetime.0
    }
}

impl std::fmt::Display for Lifetime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_is_no_lifetime() {
        for value in [-1.0, f64::NEG_INFINITY, f64::NAN] {
            assert!(matches!(Lifetime::new(value), Err(Error::InvalidParameter { name: "lifetime", .. })));
        }
        assert_eq!(Lifetime::new(-0.0).unwrap().get().to_bits(), 0.0_f64.to_bits());
        assert!(!Lifetime::new(f64::INFINITY).unwrap().is_finite());
    }

    #[test]
    fn survives_json_with_its_bits() {
        for lifetime in [Lifetime::ZERO, Lifetime(0.1 + 0.2), Lifetime(1e-300), Lifetime::INFINITE] {
            let json = serde_json::to_string(&lifetime).unwrap();
            assert_eq!(serde_json::from_str::<Lifetime>(&json).unwrap(), lifetime, "{json}");
        }
        assert!(serde_json::from_str::<Lifetime>("-1").is_err());
        assert!(serde_json::from_str::<Lifetime>("\"NaN\"").is_err());
    }
}
