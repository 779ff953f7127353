//! What a classification forest is told.

use serde::{Deserialize, Serialize};

use crate::forest::{ForestParams, GammaChoice, LifetimeChoice, Unseen};
use crate::{Error, Result};

/// Parameters of a classification forest.
///
/// | name | default | meaning | range |
/// | --- | --- | --- | --- |
/// | `forest` | [`ForestParams::default`] | trees, lifetime, box, measure | |
/// | `gamma` | automatic | a block of duration s keeps e^{−γs} of its parent's opinion | > 0 |
/// | `unseen` | keyed | what happens in frozen cells | |
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ClassificationParams {
    /// Trees, lifetime, box, measure.
    pub forest: ForestParams,
    /// γ.
    pub gamma: GammaChoice,
    /// How cuts are treated that no training point has made anybody look at.
    pub unseen: Unseen,
}

impl ClassificationParams {
    /// Checks what can be checked without data.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`].
    pub fn check(&self) -> Result<()> {
        if let GammaChoice::Value(value) = self.gamma
            && !(value > 0.0 && value.is_finite())
        {
            return Err(Error::InvalidParameter { name: "gamma", value, expected: "a finite number > 0" });
        }
        if self.forest.lifetime == LifetimeChoice::Auto {
            self.forest.validation.rounds()?;
        }
        self.forest.check()
    }
}
