//! A grid of lifetimes by conjugate gradients, each solve started from the one before it.

use crate::Result;
use crate::path::{PathDrift, RegularizationPath};
use crate::progress::Progress;
use crate::ridge::path::schedule::Schedule;
use crate::ridge::path::{Collector, Measured};
use crate::ridge::{CellArray, CgOptions, UNSEEN, conjugate_gradients};

pub(crate) fn run(
    schedule: &Schedule,
    lifetimes: &[f64],
    options: CgOptions,
    progress: &mut Progress<'_>,
) -> Result<RegularizationPath> {
    let mut builder = Collector::new(schedule.sets.len());
    let mut drift = PathDrift::default();
    let n_targets = schedule.sets[0].targets.n_columns();
    // The previous solution, by terminal cell: cells of a finer partition start from the value of the cell that
    // contained them.
    let mut before: Vec<Vec<f64>> = vec![vec![0.0; schedule.n_cells]; n_targets];
    for (at, lifetime) in lifetimes.iter().enumerate() {
        progress.report(at as f64 / lifetimes.len() as f64)?;
        let names = names_at(schedule, *lifetime);
        let (columns, n_columns) = number(&names);
        let column = |cell: u32| if cell == UNSEEN { UNSEEN } else { columns[names[cell as usize] as usize] };
        let sets = schedule.sets.iter().enumerate();
        let cells: Vec<Vec<u32>> = sets
            .map(|(index, set)| {
                let mut cells = set.cells.clone();
                // Validation rows separated later than this lifetime are still in their cell.
                for p in schedule.separations.iter().filter(|p| p.set as usize == index && p.time > *lifetime) {
                    cells[p.tree as usize * set.n_rows + p.row as usize] = p.cell;
                }
                cells.into_iter().map(column).collect()
            })
            .collect();
        let train = &schedule.sets[0];
        let design = CellArray::new(cells[0].clone(), train.n_rows, schedule.n_trees, n_columns)?;
        let placed = crate::ridge::path::schedule::Set { cells: cells[0].clone(), ..train.clone() };
        let moments = crate::ridge::path::removal::moments(&placed, n_columns, schedule.scale());
        let mut theta = Vec::with_capacity(n_targets);
        for (b, before) in moments.iter().zip(&before) {
            let mut start = vec![0.0; n_columns];
            for (cell, value) in before.iter().enumerate() {
                start[column(cell as u32) as usize] = *value;
            }
            let found = conjugate_gradients(&design, schedule.alpha, b, Some(&start), options);
            drift.worst_residual = drift.worst_residual.max(found.residual);
            theta.push(found.solution);
        }
        for (before, theta) in before.iter_mut().zip(&theta) {
            for (cell, value) in before.iter_mut().enumerate() {
                *value = theta[column(cell as u32) as usize];
            }
        }
        let losses: Vec<Measured> = schedule
            .sets
            .iter()
            .zip(&cells)
            .map(|(set, cells)| crate::ridge::path::loss(set, cells, &theta, schedule.scale()))
            .collect();
        builder.push(*lifetime, &losses);
    }
    progress.report(1.0)?;
    Ok(builder.finish().with_drift(drift, false))
}

/// The name at a lifetime of every terminal cell: merges above it are done.
fn names_at(schedule: &Schedule, lifetime: f64) -> Vec<u32> {
    let mut names: Vec<u32> = (0..schedule.n_cells as u32).collect();
    // In increasing order of time: a cell's successor has its final name before it is needed.
    for merge in schedule.merges.iter().filter(|m| m.time > lifetime).rev() {
        names[merge.gone as usize] = names[merge.keep as usize];
    }
    names
}

/// Consecutive columns for the names that are in use.
fn number(names: &[u32]) -> (Vec<u32>, usize) {
    let mut columns = vec![UNSEEN; names.len()];
    let mut n = 0;
    for (cell, name) in names.iter().enumerate() {
        if cell as u32 == *name {
            columns[cell] = n;
            n += 1;
        }
    }
    (columns, n as usize)
}
