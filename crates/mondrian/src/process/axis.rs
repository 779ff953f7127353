//! The Poisson process of one axis, over the whole real line and all times, computed where queried.
//!
//! The cuts of an axis are a Poisson process of unit intensity on (location, time) ∈ ℝ × (0, ∞); the axis at lifetime λ
//! shows those with time ≤ λ (report, chapter 1, "Mondrian process in 1D"). It is laid out in bands and blocks: band j
//! holds the times from 2^j up to 2^(j+1), in blocks of width 2^−j, so that every block has area one and, on average,
//! one cut. The cuts of a block are a function of the axis's key, the band and the block's number. So locations can be
//! queried in any order, a larger lifetime only adds cuts, and no unit of length is preferred: few blocks are computed
//! whether inputs are measured in nanometres or in seconds since 1970 (one fixed width for all times would make small
//! lifetimes scan many blocks). The lowest band contains all times below 2^−128, so that no cut is lost.

use crate::process::NodeKey;
use crate::{Error, Result};

/// Below 2^LOWEST all times are one band.
const LOWEST: i32 = -128;
/// More cuts than this in one query are refused.
const LIMIT: f64 = 5e7;
/// Beyond this, numbers of blocks are not exact any more.
const FAR: f64 = 9e15;

/// One cut of an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AxisCut {
    /// When it appears.
    pub time: f64,
    /// Where: coordinates x ≤ location lie below.
    pub location: f64,
}

/// The process of one axis.
///
/// ```
/// use mondrian::internals::process::Axis;
/// use mondrian::process::NodeKey;
/// let axis = Axis::new(NodeKey::root(7, 0));
/// let (wide, narrow) = (axis.cuts(-10.0, 10.0, 2.0)?, axis.cuts(0.0, 3.0, 1.0)?);
/// assert!(narrow.iter().all(|cut| wide.contains(cut)));
/// assert_eq!(axis.separates(0.0, 3.0, 1.0)?, !narrow.is_empty());
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    key: NodeKey,
}

impl Axis {
    /// The axis of a key.
    pub fn new(key: NodeKey) -> Self {
        Self { key }
    }

    /// The cuts that separate coordinates of [`lower`, `upper`] until `lifetime`, by location.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] if the lifetime is negative, infinite or NaN; [`Error::TooLarge`] if more than
    /// fifty million cuts are to be expected, or the place is so far out that floats do not distinguish blocks.
    pub fn cuts(&self, lower: f64, upper: f64, lifetime: f64) -> Result<Vec<AxisCut>> {
        check(lower, upper, lifetime)?;
        let mut cuts = Vec::new();
        for band in bands(lifetime) {
            let (first, last) = blocks(band, lower, upper);
            for block in first..=last {
                self.for_block(band, block, |cut| {
                    if cut.time <= lifetime && lower <= cut.location && cut.location < upper {
                        cuts.push(cut);
                    }
                });
            }
        }
        cuts.sort_unstable_by(|a, b| a.location.total_cmp(&b.location).then(a.time.total_cmp(&b.time)));
        Ok(cuts)
    }

    /// Whether a cut until `lifetime` lies between two coordinates. A distant `y` is fast: the search proceeds from `x`
    /// and ends at the first cut.
    ///
    /// # Errors
    /// As for [`Axis::cuts`] of `x` alone; [`Error::TooLarge`] too if the lifetime is so small that the nearest cut cannot
    /// be found.
    pub fn separates(&self, x: f64, y: f64, lifetime: f64) -> Result<bool> {
        check(x, x, lifetime)?;
        let (lower, upper) = (x.min(y), x.max(y));
        if lower == upper {
            return Ok(false);
        }
        // Bands that end before the lifetime have a cut in most of their blocks, and the latest has the narrowest: a
        // distant pair is separated by a few of them. The last band may hold hardly any cut until the lifetime, so it
        // is searched last, when the others have not separated the pair.
        let bands = bands(lifetime);
        for band in bands.clone().rev().skip(1).chain(bands.last()) {
            let (first, last) = blocks(band, lower, upper);
            let n_blocks = last.abs_diff(first);
            if self.has_cut(band, if x < y { first } else { last }, x < y, n_blocks.min(LIMIT as u64), |cut| {
                cut.time <= lifetime && lower <= cut.location && cut.location < upper
            }) {
                return Ok(true);
            }
            if n_blocks > LIMIT as u64 {
                return Err(Error::TooLarge { what: "blocks of an axis", expected: n_blocks as f64, limit: LIMIT });
            }
        }
        Ok(false)
    }

    /// Whether a block has a cut like that, or one of the `n_more` blocks above or below it.
    fn has_cut(&self, band: i32, block: i64, up: bool, n_more: u64, is_such: impl Fn(AxisCut) -> bool) -> bool {
        (0..=n_more as i64).any(|away| {
            let mut found = false;
            self.for_block(band, if up { block + away } else { block - away }, |cut| found |= is_such(cut));
            found
        })
    }

    fn for_block(&self, band: i32, block: i64, mut see: impl FnMut(AxisCut)) {
        let key = self.key.fork(band as u64).fork(block as u64);
        let (base, height) = extent(band);
        let mut elapsed = 0.0;
        for number in 0.. {
            let draw = key.draw(number);
            elapsed += draw.exponential();
            if elapsed > 1.0 {
                return;
            }
            see(AxisCut { time: base + elapsed * height, location: (block as f64 + draw.uniform()) / height });
        }
    }
}

/// First time and height of a band; its blocks are one over the height wide.
fn extent(band: i32) -> (f64, f64) {
    if band < LOWEST { (0.0, 2.0_f64.powi(LOWEST)) } else { (2.0_f64.powi(band), 2.0_f64.powi(band)) }
}

/// The bands with times up to `lifetime`.
fn bands(lifetime: f64) -> std::ops::Range<i32> {
    let exponent = ((lifetime.to_bits() >> 52) & 0x7FF) as i32 - 1023;
    let end = if lifetime > 0.0 { exponent.max(LOWEST - 1) + 1 } else { LOWEST - 1 };
    LOWEST - 1..end
}

fn blocks(band: i32, lower: f64, upper: f64) -> (i64, i64) {
    let (_, height) = extent(band);
    ((lower * height).floor() as i64, (upper * height).floor() as i64)
}

fn check(lower: f64, upper: f64, lifetime: f64) -> Result<()> {
    if !(lifetime >= 0.0 && lifetime.is_finite()) {
        return Err(Error::InvalidParameter { name: "lifetime", value: lifetime, expected: "a finite number ≥ 0" });
    }
    let expected = (upper - lower) * lifetime;
    if expected > LIMIT {
        return Err(Error::TooLarge { what: "cuts of an axis", expected, limit: LIMIT });
    }
    let farthest = lower.abs().max(upper.abs()) * lifetime;
    if farthest > FAR {
        return Err(Error::TooLarge { what: "coordinate times lifetime", expected: farthest, limit: FAR });
    }
    // The lowest band's blocks are 2^128 wide; coordinates that need millions of them are not realistic data.
    let widest = (upper - lower) * 2.0_f64.powi(LOWEST);
    if widest > LIMIT {
        return Err(Error::TooLarge {
            what: "width of the data",
            expected: upper - lower,
            limit: 2.0_f64.powi(-LOWEST),
        });
    }
    Ok(())
}
