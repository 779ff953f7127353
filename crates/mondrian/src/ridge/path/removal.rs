//! In decreasing order from the terminal lifetime: each removed cut merges two features, with deferred updates of the
//! inverse.
//!
//! A block of cuts is processed together: their solutions θ are stored contiguously per cell, so that the
//! predictions of all rows for all of them are one pass over the cells with contiguous reads.

use crate::linalg::{Cholesky, DeferredInverse, Matrix};
use crate::path::{PathDrift, RegularizationPath};
use crate::progress::Progress;
use crate::ridge::path::schedule::{Schedule, Set};
use crate::ridge::path::{Collector, Measured};
use crate::ridge::{CellArray, Design, UNSEEN};
use crate::{Error, Result};

/// Cuts per block.
const BLOCK: usize = 32;
/// Update vectors buffered before they are applied; a cut adds two.
const PENDING: usize = 96;
/// A solution whose residual is above this is refined, and recomputed if that is not enough.
const REFINE_ABOVE: f64 = 1e-12;
const REFRESH_ABOVE: f64 = 1e-10;

/// An event of the path.
#[derive(Debug, Clone, Copy)]
enum Event {
    Merge { keep: u32, gone: u32 },
    Return { set: u32, row: u32, tree: u32, cell: u32 },
}

/// The current model: solution and inverse by position, positions by cell.
struct State {
    schedule: Schedule,
    inverse: DeferredInverse,
    /// θ and Zᵀy, one vector per target, by position.
    theta: Vec<Vec<f64>>,
    moment: Vec<Vec<f64>>,
    position: Vec<u32>,
    cell_at: Vec<u32>,
    /// The cell that a cell was merged into, or itself if it was not merged.
    successor: Vec<u32>,
    drift: PathDrift,
    scale: f64,
}

pub(crate) fn run(schedule: Schedule, progress: &mut Progress<'_>) -> Result<RegularizationPath> {
    let events = events(&schedule);
    let mut state = State::new(schedule)?;
    let n_sets = state.schedule.sets.len();
    // Values from the terminal lifetime down: value k holds from the time of event k on.
    let mut found: Vec<(f64, Vec<Measured>)> = Vec::with_capacity(events.len() + 1);
    let n_blocks = events.len().div_ceil(BLOCK).max(1);
    for (at, block) in events.chunks(BLOCK).enumerate() {
        progress.report(at as f64 / n_blocks as f64)?;
        let losses = state.run_block(block)?;
        found.extend(block.iter().map(|(time, _)| *time).zip(losses));
        state.update()?;
    }
    found.push((0.0, state.losses_now()));
    let mut builder = Collector::new(n_sets);
    for (time, losses) in found.into_iter().rev() {
        builder.push(time, &losses);
    }
    progress.report(1.0)?;
    Ok(builder.finish().with_drift(state.drift, true))
}

/// Merges of cells and returns of validation rows (*riders*), in descending order of time.
fn events(schedule: &Schedule) -> Vec<(f64, Event)> {
    let mut events: Vec<(f64, Event)> = Vec::with_capacity(schedule.merges.len() + schedule.separations.len());
    events.extend(schedule.merges.iter().map(|m| (m.time, Event::Merge { keep: m.keep, gone: m.gone })));
    events.extend(
        schedule
            .separations
            .iter()
            .map(|p| (p.time, Event::Return { set: p.set, row: p.row, tree: p.tree, cell: p.cell })),
    );
    // Stable: at one time (a cut that separates rows never has an empty side) the order does not matter.
    events.sort_by(|a, b| b.0.total_cmp(&a.0));
    events
}

impl State {
    fn new(schedule: Schedule) -> Result<Self> {
        let (n_cells, scale) = (schedule.n_cells, schedule.scale());
        let position: Vec<u32> = (0..n_cells as u32).collect();
        let moment = moments(&schedule.sets[0], n_cells, scale);
        let mut state = Self {
            inverse: DeferredInverse::new(Matrix::zeros(0, 0), PENDING, schedule.threads)?,
            theta: Vec::new(),
            moment,
            cell_at: position.clone(),
            successor: position.clone(),
            position,
            drift: PathDrift::default(),
            scale,
            schedule,
        };
        state.solve()?;
        Ok(state)
    }

    /// The current cell that contains a cell. Rows are renamed at the end of each block, so the chain is short.
    fn living(&self, mut cell: u32) -> u32 {
        while self.successor[cell as usize] != cell {
            cell = self.successor[cell as usize];
        }
        cell
    }

    /// Z of the training rows, columns by position.
    fn design(&self) -> Result<CellArray> {
        let train = &self.schedule.sets[0];
        let cells = train.cells.iter().map(|c| self.position[self.living(*c) as usize]).collect();
        CellArray::new(cells, train.n_rows, self.schedule.n_trees, self.cell_at.len())
    }

    /// Inverse and solution from scratch.
    fn solve(&mut self) -> Result<()> {
        let mut gram = self.design()?.gram_lower(self.schedule.threads);
        (0..gram.n_rows()).for_each(|i| gram[(i, i)] += self.schedule.alpha);
        let factor = Cholesky::new(gram, self.schedule.threads)?;
        self.theta = self.moment.iter().map(|b| factor.solve(b)).collect::<Result<_>>()?;
        self.inverse = DeferredInverse::new(factor.inverse_lower(), PENDING, self.schedule.threads)?;
        Ok(())
    }

    /// Runs a block of events: the losses before each of them, by set.
    fn run_block(&mut self, block: &[(f64, Event)]) -> Result<Vec<Vec<Measured>>> {
        let (k, n_targets) = (block.len(), self.theta.len());
        let n_sets = self.schedule.sets.len();
        let mut squares = vec![vec![(0.0, 0.0); k]; n_sets];
        // θ by cell, then by event; one table per target.
        let mut tables = vec![vec![0.0; self.schedule.n_cells * k]; n_targets];
        for (at, (_, event)) in block.iter().enumerate() {
            for (table, theta) in tables.iter_mut().zip(&self.theta) {
                for (cell, value) in self.cell_at.iter().zip(theta) {
                    table[*cell as usize * k + at] = *value;
                }
            }
            if let Event::Merge { keep, gone } = event {
                self.merge(*keep, *gone)?;
            }
        }
        for table in &mut tables {
            alias(table, block);
        }
        for (set, sums) in squares.iter_mut().enumerate() {
            self.predict_block(set, block, &tables, sums);
        }
        self.settle(block);
        let n = |set: &Set| (set.n_rows * n_targets) as f64;
        Ok((0..k)
            .map(|at| {
                let sets = self.schedule.sets.iter().zip(&squares);
                sets.map(|(set, s)| Measured::new(s[at].0, s[at].1, n(set))).collect()
            })
            .collect())
    }

    /// Adds the squared errors of a set's rows, and their squares, at each event of the block.
    fn predict_block(&self, set: usize, block: &[(f64, Event)], tables: &[Vec<f64>], sums: &mut [(f64, f64)]) {
        let k = block.len();
        let rows = &self.schedule.sets[set];
        let mut sum = vec![0.0; rows.n_rows * k];
        for (target, table) in tables.iter().enumerate() {
            sum.fill(0.0);
            for cells in rows.cells.chunks_exact(rows.n_rows) {
                for (cell, sum) in cells.iter().zip(sum.chunks_exact_mut(k)) {
                    if *cell != UNSEEN {
                        let theta = &table[*cell as usize * k..][..k];
                        sum.iter_mut().zip(theta).for_each(|(s, t)| *s += t);
                    }
                }
            }
            for (at, (_, event)) in block.iter().enumerate() {
                if let Event::Return { set: of, row, cell, .. } = event
                    && *of as usize == set
                {
                    let (sum, theta) = (&mut sum[*row as usize * k..][..k], &table[*cell as usize * k..][..k]);
                    sum[at + 1..].iter_mut().zip(&theta[at + 1..]).for_each(|(s, t)| *s += t);
                }
            }
            for (y, sum) in rows.targets.column(target).iter().zip(sum.chunks_exact(k)) {
                for (total, s) in sums.iter_mut().zip(sum) {
                    let square = (s * self.scale - y).powi(2);
                    total.0 += square;
                    total.1 += square * square;
                }
            }
        }
    }

    /// Brings all rows' cells up to date with a block.
    fn settle(&mut self, block: &[(f64, Event)]) {
        for (_, event) in block {
            if let Event::Return { set, row, tree, cell } = event {
                let rows = &mut self.schedule.sets[*set as usize];
                rows.cells[*tree as usize * rows.n_rows + *row as usize] = *cell;
            }
        }
        let mut sets = std::mem::take(&mut self.schedule.sets);
        for cell in sets.iter_mut().flat_map(|set| &mut set.cells).filter(|c| **c != UNSEEN) {
            *cell = self.living(*cell);
        }
        self.schedule.sets = sets;
    }

    fn merge(&mut self, keep: u32, gone: u32) -> Result<()> {
        let (i, j) = (self.position[keep as usize] as usize, self.position[gone as usize] as usize);
        let alpha = self.schedule.alpha;
        let merged = match self.inverse.merge(i, j, alpha) {
            Ok(merge) => {
                self.theta.iter_mut().for_each(|theta| merge.apply(theta));
                true
            }
            // The inverse is no longer positive definite because of rounding: recompute it from the matrix after this
            // cut.
            Err(Error::NotPositiveDefinite { .. }) => false,
            Err(error) => return Err(error),
        };
        for moment in &mut self.moment {
            moment[i] += moment[j];
            moment.swap_remove(j);
        }
        let moved = self.cell_at[self.cell_at.len() - 1];
        self.cell_at.swap_remove(j);
        self.position[moved as usize] = j as u32;
        self.successor[gone as usize] = keep;
        if !merged {
            self.drift.refreshes += 1;
            self.solve()?;
        }
        Ok(())
    }

    /// Measures the residual of the solution; refines or recomputes it.
    fn update(&mut self) -> Result<()> {
        let design = self.design()?;
        let residual = self.residual(&design);
        self.drift.worst_residual = self.drift.worst_residual.max(residual);
        if residual <= REFINE_ABOVE {
            return Ok(());
        }
        let n = self.cell_at.len();
        for (theta, b) in self.theta.iter_mut().zip(&self.moment) {
            let mut rest = vec![0.0; n];
            design.normal(theta, &mut rest);
            for ((r, t), b) in rest.iter_mut().zip(&*theta).zip(b) {
                *r = b - *r - self.schedule.alpha * t;
            }
            let mut step = vec![0.0; n];
            self.inverse.multiply(&rest, &mut step);
            theta.iter_mut().zip(&step).for_each(|(t, s)| *t += s);
        }
        if self.residual(&design) > REFRESH_ABOVE {
            self.drift.refreshes += 1;
            self.solve()?;
        }
        Ok(())
    }

    fn residual(&self, design: &CellArray) -> f64 {
        crate::ridge::path::residual(
            design,
            self.schedule.alpha,
            &self.theta,
            &self.moment,
            &self.schedule.sets[0].targets,
        )
    }

    /// The losses of the current state, by set.
    fn losses_now(&self) -> Vec<Measured> {
        let table = |theta: &Vec<f64>| {
            let mut table = vec![0.0; self.schedule.n_cells];
            self.cell_at.iter().zip(theta).for_each(|(cell, value)| table[*cell as usize] = *value);
            table
        };
        let tables: Vec<Vec<f64>> = self.theta.iter().map(table).collect();
        let nothing = [(0.0, Event::Merge { keep: 0, gone: 0 })];
        let loss = |set: usize| {
            let mut sums = [(0.0, 0.0)];
            self.predict_block(set, &nothing, &tables, &mut sums);
            let n = self.schedule.sets[set].n_rows * self.theta.len();
            Measured::new(sums[0].0, sums[0].1, n as f64)
        };
        (0..self.schedule.sets.len()).map(loss).collect()
    }
}

/// Fills in the solution of cells that were merged during a block: from then on it is that of their successor.
fn alias(table: &mut [f64], block: &[(f64, Event)]) {
    let k = block.len();
    for (at, (_, event)) in block.iter().enumerate().rev() {
        if let Event::Merge { keep, gone } = event {
            let (keep, gone) = (*keep as usize * k, *gone as usize * k);
            for later in at + 1..k {
                table[gone + later] = table[keep + later];
            }
        }
    }
}

/// Zᵀy by cell, one vector per target.
pub(crate) fn moments(train: &Set, n_cells: usize, scale: f64) -> Vec<Vec<f64>> {
    (0..train.targets.n_columns())
        .map(|target| {
            let mut moment = vec![0.0; n_cells];
            for cells in train.cells.chunks_exact(train.n_rows) {
                for (cell, y) in cells.iter().zip(train.targets.column(target)) {
                    moment[*cell as usize] += scale * y;
                }
            }
            moment
        })
        .collect()
}
