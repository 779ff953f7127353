//! The automatic lifetime: the path on held-out points, a keyed fifth of them or all in k folds.

use crate::forest::classification::path::{automatic_grid, held_out_losses};
use crate::forest::classification::{ClassificationForest, GammaChoice, subset};
use crate::progress::Progress;
use crate::select::automatic::CLASSIFICATION;
use crate::{Lifetime, Result};

/// The lifetime of smallest log loss on the held-out points; infinite where there are too few of them.
pub(crate) fn lifetime(model: &ClassificationForest, progress: &mut Progress<'_>) -> Result<Lifetime> {
    let store = model.trained.forest.store();
    let rounds = model.params.forest.validation.rounds()?;
    let part = |(hash, point): (u128, u32)| ((hash % u128::from(rounds.parts)) as u64, point);
    let rounds = rounds.split(&subset::hashed(store).into_iter().map(part).collect::<Vec<_>>());
    if rounds.iter().map(|(_, held)| held.len()).sum::<usize>() < CLASSIFICATION.fewest {
        return Ok(Lifetime::INFINITE);
    }
    let mut params = model.params.clone();
    params.gamma = GammaChoice::Value(model.gamma());
    // One grid of lifetimes for all rounds, so that their losses add up.
    let mut grid: Option<Vec<f64>> = None;
    let mut sums: Vec<f64> = Vec::new();
    let share = 1.0 / rounds.len() as f64;
    for (round, (kept, held_out)) in rounds.into_iter().enumerate() {
        let progress = &mut progress.part(round as f64 * share, (round + 1) as f64 * share);
        let trained = model.trained.with_points(&kept, CLASSIFICATION.trees)?;
        let view = Some(Lifetime::INFINITE);
        let part = ClassificationForest::of_parts(params.clone(), trained, view);
        let (mut coordinates, mut truth) = (Vec::new(), Vec::new());
        for point in held_out {
            for class_and_count in model.trained.classes.of(point) {
                coordinates.extend_from_slice(store.point(point));
                truth.push(*class_and_count);
            }
        }
        let grid = match &mut grid {
            Some(grid) => grid,
            none => none.insert(automatic_grid(&part)?),
        };
        sums.resize(grid.len(), 0.0);
        let rows: f64 = truth.iter().map(|(_, count)| f64::from(*count)).sum();
        let losses = held_out_losses(&part, &coordinates, &truth, grid, progress)?;
        sums.iter_mut().zip(losses).for_each(|(sum, loss)| *sum += rows * loss);
    }
    // From the largest lifetime down, so that of equals the finest wins: it costs nothing and says most.
    let path: Vec<(f64, f64)> = grid.into_iter().flatten().zip(sums).collect();
    let best =
        path.iter().rev().fold((f64::INFINITY, f64::INFINITY), |best, at| if at.1 < best.1 { *at } else { best });
    Ok(Lifetime::new(best.0).unwrap_or(Lifetime::INFINITE))
}
