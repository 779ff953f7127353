//! In increasing order from lifetime 0: each cut splits a feature into two, by plain updates of the inverse or of the
//! factor.
//!
//! One O(C²) update at a time, as in the report: slower than removal in blocks, and its simple twin in the tests.

use crate::Result;
use crate::linalg::{Factor, Inverse, Matrix, Threads};
use crate::path::{PathDrift, RegularizationPath};
use crate::progress::Progress;
use crate::ridge::path::schedule::Schedule;
use crate::ridge::path::{Collector, Measured};
use crate::ridge::{CellArray, UNSEEN};

/// A matrix A = ZᵀZ + δ²I with removal and insertion of features, and a solver.
pub(crate) trait Updatable {
    /// Removes feature `i`; `swaps` gives the feature that moved into its position, counted from zero.
    fn remove(&mut self, i: usize) -> Result<()>;
    /// Whether the last feature moves into the position of a removed one (else all later ones shift).
    fn swaps(&self) -> bool;
    /// Appends a feature: its products with the others, and its own square with δ².
    fn append(&mut self, b: &[f64], d: f64) -> Result<()>;
    /// A⁻¹b.
    fn solve(&self, b: &[f64]) -> Result<Vec<f64>>;
    /// How often it was recomputed.
    fn refreshes(&self) -> usize;
}

impl Updatable for Inverse {
    fn remove(&mut self, i: usize) -> Result<()> {
        self.swap_remove(i)
    }

    fn swaps(&self) -> bool {
        true
    }

    fn append(&mut self, b: &[f64], d: f64) -> Result<()> {
        self.border(b, d)
    }

    fn solve(&self, b: &[f64]) -> Result<Vec<f64>> {
        Inverse::solve(self, b)
    }

    fn refreshes(&self) -> usize {
        self.drift().refreshes
    }
}

impl Updatable for Factor {
    fn remove(&mut self, i: usize) -> Result<()> {
        Factor::remove(self, i)
    }

    fn swaps(&self) -> bool {
        false
    }

    fn append(&mut self, b: &[f64], d: f64) -> Result<()> {
        Factor::append(self, b, d)
    }

    fn solve(&self, b: &[f64]) -> Result<Vec<f64>> {
        Factor::solve(self, b)
    }

    fn refreshes(&self) -> usize {
        self.drift().refreshes
    }
}

pub(crate) fn by_inverse(a: Matrix, threads: Threads) -> Result<Box<dyn Updatable>> {
    Ok(Box::new(Inverse::new(a, threads)?))
}

pub(crate) fn by_factor(a: Matrix, threads: Threads) -> Result<Box<dyn Updatable>> {
    Ok(Box::new(Factor::new(a, threads)?))
}

/// The growing model: which cells of the terminal lifetime make up each feature.
struct State {
    schedule: Schedule,
    matrix: Box<dyn Updatable>,
    /// The feature in each place, by the name of its cell.
    names: Vec<u32>,
    place: Vec<u32>,
    /// Current cell names of all rows, by set.
    cells: Vec<Vec<u32>>,
    theta: Vec<Vec<f64>>,
}

pub(crate) fn run(
    schedule: Schedule,
    start: impl Fn(Matrix, Threads) -> Result<Box<dyn Updatable>>,
    progress: &mut Progress<'_>,
) -> Result<RegularizationPath> {
    let mut state = State::new(schedule, start)?;
    let mut builder = Collector::new(state.schedule.sets.len());
    state.push(0.0, &mut builder);
    let mut merges = state.schedule.merges.clone();
    let mut separations = state.schedule.separations.clone();
    let n = merges.len() + separations.len();
    let mut drift = PathDrift::default();
    for done in 0..n {
        if done % 32 == 0 {
            progress.report(done as f64 / n as f64)?;
        }
        // Both lists descend in time: the next event is at the end of one of them.
        let cut_first = match (merges.last(), separations.last()) {
            (Some(merge), Some(separation)) => merge.time < separation.time,
            (merge, _) => merge.is_some(),
        };
        let time = if cut_first {
            let merge = merges.pop().expect("it was just looked at");
            state.split(merge.keep, merge.gone, merge.end)?;
            drift.worst_residual = drift.worst_residual.max(state.residual()?);
            merge.time
        } else {
            let separation = separations.pop().expect("one list is not empty");
            let set = separation.set as usize;
            let at = separation.tree as usize * state.schedule.sets[set].n_rows + separation.row as usize;
            state.cells[set][at] = UNSEEN;
            separation.time
        };
        state.push(time, &mut builder);
    }
    progress.report(1.0)?;
    drift.refreshes = state.matrix.refreshes();
    Ok(builder.finish().with_drift(drift, true))
}

impl State {
    /// One feature per tree. Validation rows (*riders*) are in it too, until a cut separates them from the training
    /// rows.
    fn new(schedule: Schedule, start: impl Fn(Matrix, Threads) -> Result<Box<dyn Updatable>>) -> Result<Self> {
        let m = schedule.n_trees;
        let n = schedule.sets[0].n_rows as f64;
        // (N/M)·11ᵀ + δ²I (report, chapter 5, initialization).
        let a = Matrix::from_fn(m, m, |i, j| n / m as f64 + if i == j { schedule.alpha } else { 0.0 });
        let matrix = start(a, schedule.threads)?;
        let cells = schedule
            .sets
            .iter()
            .map(|set| schedule.roots.iter().flat_map(|root| std::iter::repeat_n(*root, set.n_rows)).collect())
            .collect();
        let mut place = vec![UNSEEN; schedule.n_cells];
        schedule.roots.iter().enumerate().for_each(|(at, root)| place[*root as usize] = at as u32);
        let names = schedule.roots.clone();
        let mut state = Self { schedule, matrix, names, place, cells, theta: Vec::new() };
        state.solve()?;
        Ok(state)
    }

    fn split(&mut self, keep: u32, gone: u32, end: u32) -> Result<()> {
        // Riders separated before the terminal lifetime have no cell there: they are renamed with the training rows of
        // the cell they were separated from.
        let split = &self.schedule;
        let goes = |terminal: u32| gone <= terminal && terminal < end;
        let mut follow: Vec<Vec<(usize, u32)>> = Vec::new();
        for (set, cells) in self.cells.iter().enumerate() {
            let mut moved = Vec::new();
            for (at, cell) in cells.iter().enumerate().filter(|(_, cell)| **cell == keep) {
                let mut terminal = split.sets[set].cells[at];
                if terminal == UNSEEN {
                    let (tree, row) = (at / split.sets[set].n_rows, at % split.sets[set].n_rows);
                    let key = (tree as u32, row as u32);
                    let parts =
                        |p: &&crate::ridge::path::schedule::Separation| p.set as usize == set && (p.tree, p.row) == key;
                    terminal = split.separations.iter().find(parts).map_or(*cell, |p| p.cell);
                }
                if goes(terminal) {
                    moved.push((at, gone));
                }
            }
            follow.push(moved);
        }
        for (cells, moved) in self.cells.iter_mut().zip(follow) {
            moved.into_iter().for_each(|(at, name)| cells[at] = name);
        }
        self.remove(keep)?;
        self.append(keep)?;
        self.append(gone)?;
        self.solve()
    }

    fn remove(&mut self, name: u32) -> Result<()> {
        let at = self.place[name as usize] as usize;
        self.matrix.remove(at)?;
        if self.matrix.swaps() {
            self.names.swap_remove(at);
        } else {
            self.names.remove(at);
        }
        self.place[name as usize] = UNSEEN;
        for (at, name) in self.names.iter().enumerate().skip(at) {
            self.place[*name as usize] = at as u32;
        }
        Ok(())
    }

    /// Appends a feature with its co-occurrence counts.
    fn append(&mut self, name: u32) -> Result<()> {
        let (m, n) = (self.schedule.n_trees, self.schedule.sets[0].n_rows);
        let cells = &self.cells[0];
        let mut counts = vec![0.0; self.names.len()];
        let mut own = 0.0;
        for (row, _) in rows_of(cells, n, name) {
            own += 1.0;
            for tree in 0..m {
                let place = self.place[cells[tree * n + row] as usize];
                if place != UNSEEN {
                    counts[place as usize] += 1.0;
                }
            }
        }
        let scale = 1.0 / m as f64;
        counts.iter_mut().for_each(|c| *c *= scale);
        self.matrix.append(&counts, own * scale + self.schedule.alpha)?;
        self.place[name as usize] = self.names.len() as u32;
        self.names.push(name);
        Ok(())
    }

    fn moments(&self) -> Vec<Vec<f64>> {
        let set = &self.schedule.sets[0];
        let train = crate::ridge::path::schedule::Set {
            n_rows: set.n_rows,
            cells: self.cells[0].iter().map(|c| self.place[*c as usize]).collect(),
            targets: set.targets.clone(),
        };
        crate::ridge::path::removal::moments(&train, self.names.len(), self.schedule.scale())
    }

    fn solve(&mut self) -> Result<()> {
        self.theta = self.moments().iter().map(|b| self.matrix.solve(b)).collect::<Result<_>>()?;
        Ok(())
    }

    fn residual(&self) -> Result<f64> {
        let train = &self.schedule.sets[0];
        let cells = self.cells[0].iter().map(|c| self.place[*c as usize]).collect();
        let design = CellArray::new(cells, train.n_rows, self.schedule.n_trees, self.names.len())?;
        Ok(crate::ridge::path::residual(&design, self.schedule.alpha, &self.theta, &self.moments(), &train.targets))
    }

    fn push(&self, time: f64, builder: &mut Collector) {
        let places = |set: usize| -> Vec<u32> {
            self.cells[set].iter().map(|c| if *c == UNSEEN { UNSEEN } else { self.place[*c as usize] }).collect()
        };
        let sets = self.schedule.sets.iter().enumerate();
        let losses: Vec<Measured> = sets
            .map(|(at, set)| crate::ridge::path::loss(set, &places(at), &self.theta, self.schedule.scale()))
            .collect();
        builder.push(time, &losses);
    }
}

/// Rows in the cell with a name; a name belongs to one tree.
fn rows_of(cells: &[u32], n_rows: usize, name: u32) -> impl Iterator<Item = (usize, usize)> + '_ {
    cells.iter().enumerate().filter(move |(_, c)| **c == name).map(move |(at, _)| (at % n_rows, at / n_rows))
}
