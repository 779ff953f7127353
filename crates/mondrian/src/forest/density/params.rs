//! Parameters of densities.

use serde::{Deserialize, Serialize};

use crate::forest::density::DensityForest;
use crate::forest::retention::first_rows;
use crate::forest::warm_up::box_with_margins;
use crate::forest::{ForestParams, GammaChoice, LifetimeChoice, forest_builder};
use crate::process::Bounds;
use crate::progress::FitOptions;
use crate::select::split::gather;
use crate::{Error, Points, Result};

/// Parameters of a density; defaults in [`DensityParams::default`].
///
/// | name | default | meaning | range |
/// | --- | --- | --- | --- |
/// | `forest` | [`ForestParams::default`] | trees, lifetime and what it is chosen on, seed, box, measure | lifetime finite |
/// | `gamma` | automatic | weight of the prior on masses, in rows | 1e-30 to 1e30 |
/// | `margin` | 0.1 | without a given box: how far the box goes beyond the data on each side, in widths | ≥ 0 |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DensityParams {
    /// Trees, lifetime, seed, box and measure.
    pub forest: ForestParams,
    /// Weight of the prior on masses.
    pub gamma: GammaChoice,
    /// Margin around the data, as a share of their width.
    pub margin: f64,
}

impl Default for DensityParams {
    fn default() -> Self {
        Self { forest: ForestParams::default(), gamma: GammaChoice::Auto, margin: 0.1 }
    }
}

impl From<ForestParams> for DensityParams {
    fn from(forest: ForestParams) -> Self {
        Self { forest, ..Self::default() }
    }
}

forest_builder!(DensityParams, forest);

impl DensityParams {
    /// The weight γ of the prior, by value or [automatic](GammaChoice::Auto).
    #[must_use]
    pub fn gamma(self, gamma: impl Into<GammaChoice>) -> Self {
        Self { gamma: gamma.into(), ..self }
    }

    /// Margin around the data, as a share of their width, where no box is given.
    #[must_use]
    pub fn margin(self, margin: f64) -> Self {
        Self { margin, ..self }
    }

    /// Fits a density to rows.
    ///
    /// Without a given box, it is the data's widened by the margin. An automatic lifetime is chosen on all rows, here
    /// and now; learning and forgetting later keep it, and [`DensityForest::select_lifetime`] chooses anew. With a warm-up (for
    /// streams), box, scale and lifetime are those of the first rows, and the margin follows their tails.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for an infinite lifetime among others, [`Error::ZeroWidth`] for a box without
    /// volume, [`Error::OutsideBox`] naming the first row outside a given box, [`Error::Empty`] without rows and box.
    pub fn fit(&self, points: Points<'_>) -> Result<DensityForest> {
        self.fit_with(points, FitOptions::default())
    }

    /// As [`DensityParams::fit`], with a progress callback.
    ///
    /// # Errors
    /// As [`DensityParams::fit`], [`Error::NoWeights`] and [`Error::Cancelled`].
    pub fn fit_with(&self, points: Points<'_>, options: FitOptions<'_>) -> Result<DensityForest> {
        let mut progress = options.unweighted("a density forest")?;
        let held = first_rows(&self.forest, points, &[], None)?.map(|rows| gather(points, &[], &rows).0);
        let first = match &held {
            Some(x) => Points::row_major(x, points.n_columns())?,
            None => points,
        };
        let mut model = DensityForest::with_domain(self, first)?;
        model.learn_first(first, &mut progress)?;
        if self.forest.warm_up.is_some_and(|n_rows| points.n_rows() < n_rows) {
            model.start_warm_up(points)?;
        }
        Ok(model)
    }

    /// Checks what can be checked without data.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`].
    pub fn check(&self) -> Result<()> {
        self.forest.check()?;
        if let LifetimeChoice::Value(lifetime) = self.forest.lifetime
            && !lifetime.is_finite()
        {
            let expected = "finite for a density: cells without end have no volume";
            return Err(Error::InvalidParameter { name: "lifetime", value: lifetime.get(), expected });
        }
        if let GammaChoice::Value(gamma) = self.gamma {
            check_gamma(gamma)?;
        }
        if !(self.margin >= 0.0 && self.margin.is_finite()) {
            return Err(Error::InvalidParameter { name: "margin", value: self.margin, expected: "finite and ≥ 0" });
        }
        Ok(())
    }

    /// The root box in raw units that these parameters mean on the first data.
    ///
    /// # Errors
    /// [`Error::Empty`] without rows and without a given box, [`Error::ZeroWidth`].
    pub fn bounds_on(&self, points: Points<'_>) -> Result<Bounds> {
        let bounds = match &self.forest.bounds {
            Some(bounds) => bounds.clone(),
            None => self.around(points)?,
        };
        for (dim, (&lower, &upper)) in bounds.lower().iter().zip(bounds.upper()).enumerate() {
            if !(lower < upper) {
                return Err(Error::ZeroWidth { dim, value: lower });
            }
        }
        Ok(bounds)
    }

    /// The data's box with the margin on each side.
    fn around(&self, points: Points<'_>) -> Result<Bounds> {
        let empty = || Error::Empty { what: "X", rows: 0, columns: points.n_columns() };
        if self.forest.warm_up.is_some() {
            return box_with_margins(points).ok_or_else(empty);
        }
        let data = Bounds::of_points(points).ok_or_else(empty)?;
        let moved = |corner: &[f64], sign: f64| -> Vec<f64> {
            corner.iter().zip(data.lengths()).map(|(x, length)| x + sign * self.margin * length).collect()
        };
        Bounds::new(&moved(data.lower(), -1.0), &moved(data.upper(), 1.0))
    }
}

/// Refuses a weight that products of densities could not stand.
pub(crate) fn check_gamma(gamma: f64) -> Result<()> {
    if (1e-30..=1e30).contains(&gamma) {
        return Ok(());
    }
    Err(Error::InvalidParameter { name: "gamma", value: gamma, expected: "between 1e-30 and 1e30" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lifetime;

    #[test]
    fn the_box_is_widened_by_the_margin() {
        let data = [0.0, 5.0, 10.0, 6.0];
        let params = DensityParams::default();
        let bounds = params.bounds_on(Points::row_major(&data, 2).unwrap()).unwrap();
        assert_eq!(bounds, Bounds::new(&[-1.0, 4.9], &[11.0, 6.1]).unwrap());
    }

    #[test]
    fn refuses_what_has_no_volume() {
        let params = DensityParams::default();
        let constant = [0.0, 5.0, 10.0, 5.0];
        let refused = params.bounds_on(Points::row_major(&constant, 2).unwrap()).unwrap_err();
        assert_eq!(refused, Error::ZeroWidth { dim: 1, value: 5.0 });
        let lifetime = LifetimeChoice::Value(Lifetime::INFINITE);
        let endless = DensityParams::from(ForestParams { lifetime, ..ForestParams::default() });
        assert!(matches!(endless.check(), Err(Error::InvalidParameter { name: "lifetime", .. })));
        for gamma in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let params = DensityParams { gamma: GammaChoice::Value(gamma), ..DensityParams::default() };
            assert!(matches!(params.check(), Err(Error::InvalidParameter { name: "gamma", .. })), "{gamma}");
        }
    }
}
