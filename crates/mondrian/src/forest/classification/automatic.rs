//! The automatic lifetime: the path on a keyed fifth of the points.

use std::sync::OnceLock;

use super::path::held_out_path;
use super::{ClassificationForest, GammaChoice, subset};
use crate::path::Progress;
use crate::{Lifetime, Result};

/// Trees of the forest that the lifetime is chosen with.
const TREES: usize = 32;
/// Fewer held-out points than this say nothing.
const ENOUGH: usize = 20;

/// The lifetime of smallest log loss on the held-out fifth; infinite where there are too few points for it.
pub(super) fn lifetime(model: &ClassificationForest, progress: Progress<'_>) -> Result<Lifetime> {
    let store = model.planted.forest.store();
    let (mut kept, mut held_out) = (Vec::new(), Vec::new());
    for (hash, point) in subset::hashed(store) {
        if hash % 5 == 0 { held_out.push(point) } else { kept.push(point) }
    }
    if held_out.len() < ENOUGH {
        return Ok(Lifetime::INFINITE);
    }
    let planted = model.planted.with_points(&kept, TREES)?;
    let mut params = model.params.clone();
    params.gamma = GammaChoice::Value(model.gamma());
    let (gamma, lifetime) = (OnceLock::new(), OnceLock::new());
    let part = ClassificationForest { params, planted, view: Some(Lifetime::INFINITE), gamma, lifetime };
    let (mut coordinates, mut truth) = (Vec::new(), Vec::new());
    for point in held_out {
        for class_and_count in model.planted.classes.of(point) {
            coordinates.extend_from_slice(store.point(point));
            truth.push(*class_and_count);
        }
    }
    let path = held_out_path(&part, &coordinates, &truth, progress)?;
    // From the largest lifetime down, so that of equals the finest wins: it costs nothing and says most.
    let best =
        path.iter().rev().fold((f64::INFINITY, f64::INFINITY), |best, at| if at.1 < best.1 { *at } else { best });
    Ok(Lifetime::new(best.0).unwrap_or(Lifetime::INFINITE))
}
