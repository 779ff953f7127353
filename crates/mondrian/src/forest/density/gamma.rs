//! Automatic γ: the value with the least leave-one-out loss on a keyed sample of the points, found downhill from the middle
//! value where there are many points.
//!
//! A sample of k among n points changes once in n/k rows of a stream, and only then is γ found anew.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Result;
use crate::forest::density::automatic::{HELD_OUT, first_lifetime, turned};
use crate::forest::density::path::Curves;
use crate::forest::density::{DensityForest, GammaChoice};
use crate::forest::sample::SampleSize;
use crate::process::NodeKey;
use crate::progress::Progress;

/// Values of γ tried. The prior weighs γ(d+1)² rows and depths of tens are common: useful values are small.
const GAMMAS: [f64; 7] = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0];
/// Trees that γ is chosen on.
const TREES: usize = 8;
/// Distinct points that γ is chosen on.
const SAMPLE_SIZE: SampleSize = SampleSize { factor: 2, least: 128 };

/// What γ was found on.
#[derive(Debug, Clone, PartialEq)]
struct Sample {
    /// Hashes and numbers of rows of the points, ascending by hash.
    points: Vec<(u128, u32)>,
    rung: u32,
}

/// The γ that was found last, and on what.
#[derive(Debug, Default)]
pub(crate) struct FoundGamma(Mutex<Option<(Sample, f64)>>);

impl FoundGamma {
    fn lock(&self) -> MutexGuard<'_, Option<(Sample, f64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clone for FoundGamma {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.lock().clone()))
    }
}

/// The value of γ that [`DensityForest::gamma`] promises.
pub(crate) fn automatic_gamma(model: &DensityForest) -> f64 {
    let (forest, store) = (&model.forest, model.forest.store());
    if store.n_points() == 0 {
        return 1.0;
    }
    let n = SAMPLE_SIZE.of(forest.n_rows_in_all()).min(forest.n_points());
    let root = NodeKey::root(forest.domain().seed(), HELD_OUT);
    let (mut points, mut coordinates) = (Vec::with_capacity(n), Vec::with_capacity(n * forest.n_dims()));
    for (hash, point) in forest.sample_keyed(root).smallest(n) {
        points.push((hash, store.multiplicity(point)));
        coordinates.extend_from_slice(store.point(point));
    }
    let sample = Sample { points, rung: forest.domain().rung() };
    let mut found = model.found_gamma.lock();
    if let Some((of, gamma)) = &*found
        && *of == sample
    {
        return *gamma;
    }
    let rows: Vec<u32> = sample.points.iter().map(|(_, rows)| *rows).collect();
    // Nothing below can fail that did not fail before: the rows were learned once, and the call is not cancellable.
    let gamma = least(model, &coordinates, &rows).unwrap_or(1.0);
    *found = Some((sample, gamma));
    gamma
}

/// The value of γ with the least leave-one-out loss on these points. Of few points, whose losses may have several minima, all
/// values are tried; else the search goes downhill from the middle one, which takes half as long.
fn least(model: &DensityForest, coordinates: &[f64], rows: &[u32]) -> Result<f64> {
    let mut small = model.emptied(TREES, first_lifetime(model), 1.0)?;
    small.take_points(coordinates, rows)?;
    let mut loss = |at: usize| -> Result<f64> {
        small.params.gamma = GammaChoice::Value(GAMMAS[at]);
        let path = turned(&mut small, &[], Curves::LeaveOneOut, &mut Progress::none())?;
        Ok(path.selecting()[path.best_index()])
    };
    if rows.len() < SAMPLE_SIZE.least {
        let losses = (0..GAMMAS.len()).map(loss).collect::<Result<Vec<f64>>>()?;
        let best = (0..GAMMAS.len()).fold(0, |best, at| if losses[at] < losses[best] { at } else { best });
        return Ok(GAMMAS[best]);
    }
    let mut at = GAMMAS.len() / 2;
    let mut least = loss(at)?;
    // Down first; up only if that does not help.
    for step in [-1, 1] {
        let start = at;
        while let Some(next) = at.checked_add_signed(step).filter(|next| *next < GAMMAS.len()) {
            let found = loss(next)?;
            if found >= least {
                break;
            }
            (at, least) = (next, found);
        }
        if at != start {
            break;
        }
    }
    Ok(GAMMAS[at])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forest::density::DensityParams;
    use crate::forest::{ForestParams, LifetimeChoice};
    use crate::{Lifetime, Points};

    fn rows(from: u64, to: u64) -> Vec<f64> {
        (from..to).flat_map(|row| [0, 1].map(|dim| NodeKey::root(3, row).draw(dim).uniform().powi(2))).collect()
    }

    fn density(rows: &[f64]) -> DensityForest {
        let lifetime = LifetimeChoice::Value(Lifetime::new(3.0).unwrap());
        let forest = ForestParams { n_trees: 5, lifetime, ..ForestParams::default() };
        DensityParams::from(forest).fit(Points::row_major(rows, 2).unwrap()).unwrap()
    }

    #[test]
    fn gamma_is_found_anew_only_if_the_sample_changes() {
        let mut model = density(&rows(0, 400));
        let found = model.gamma();
        // A value that no search gives stands for what was found on the sample.
        let mark = |model: &DensityForest| model.found_gamma.lock().as_mut().unwrap().1 = 0.123;
        mark(&model);
        let mut n_anew = 0;
        for i in 400..600 {
            let row = rows(i, i + 1);
            model.learn(Points::row_major(&row, 2).unwrap()).unwrap();
            if model.gamma() != 0.123 {
                n_anew += 1;
                mark(&model);
            }
            model.resolved_gamma = std::sync::OnceLock::new();
        }
        // 128 of n points: a new row is one of them with probability 128/n, between 0.21 and 0.32: 52 are expected, with a
        // standard deviation of 6.2; a false alarm lies five of them away.
        assert!((21..=83).contains(&n_anew), "{n_anew}");
        model.forget(Points::row_major(&rows(400, 600), 2).unwrap()).unwrap();
        *model.found_gamma.lock() = None;
        assert_eq!(model.gamma(), found);
    }

    #[test]
    fn gamma_in_a_stream_is_that_of_the_rows_held() {
        let mut model = density(&rows(0, 50));
        for i in 50..500 {
            model.learn(Points::row_major(&rows(i, i + 1), 2).unwrap()).unwrap();
            if i >= 350 {
                model.forget(Points::row_major(&rows(i - 350, i - 349), 2).unwrap()).unwrap();
            }
            let gamma = model.gamma();
            if i % 37 == 0 {
                let mut batch = model.without_rows().unwrap();
                let first = if i >= 350 { i - 349 } else { 0 };
                batch.learn(Points::row_major(&rows(first, i + 1), 2).unwrap()).unwrap();
                assert_eq!(batch.gamma(), gamma, "row {i}");
            }
        }
    }
}
