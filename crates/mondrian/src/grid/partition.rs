//! The cells of a set of rows in all grids, while cuts are added and removed.
//!
//! A cell's identity is the exclusive or of one 128-bit hash per dimension, that of its interval, and one for its grid.
//! A new cut changes the identity of the cells above it in its interval, in one step each; removing it changes them
//! back, and a cell below with the same identity is the partner to merge with. So pairs are found by scanning the rows
//! of one interval, never all cells.
//!
//! Rows come in two kinds: training rows, the first `n_train`, and validation rows (*riders*), which only need
//! predictions. A cell with training rows has a feature.

use std::collections::HashMap;

use crate::grid::events::{Dimension, Event};
use crate::process::NodeKey;

/// No feature: a cell of validation rows only.
pub(crate) const NONE: u32 = u32::MAX;

#[derive(Debug, Clone)]
pub(crate) struct Cell {
    identity: u128,
    pub(crate) feature: u32,
    rows: u32,
    train: u32,
}

/// One cell that a cut would split, or two that its removal would merge.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// The cell (splitting), or the lower one (merging).
    pub(crate) below: u32,
    /// The upper cell when merging.
    pub(crate) above: u32,
    /// Rows on either side: training rows and riders.
    pub(crate) rows_below: Vec<u32>,
    pub(crate) rows_above: Vec<u32>,
    pub(crate) train_below: u32,
    pub(crate) train_above: u32,
}

/// The changes made by adding or removing a cut.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) dim: usize,
    pub(crate) event: Event,
    pub(crate) adds: bool,
    pub(crate) parts: Vec<Part>,
    /// Cells that lie entirely above the cut: only their identity changes.
    moved: Vec<u32>,
    /// The change of the identity of all cells above the cut.
    change: u128,
}

#[derive(Debug, Clone)]
pub(crate) struct Partition {
    n_rows: usize,
    n_train: usize,
    /// Cell of each row, grid by grid.
    row_cells: Vec<u32>,
    pub(crate) cells: Vec<Cell>,
    free: Vec<u32>,
    by_identity: HashMap<u128, u32>,
    /// Gaps with a cut, sorted; `grid * n_dims + dim`.
    active: Vec<Vec<u32>>,
    n_dims: usize,
}

fn interval_hash(dim: usize, gap: u32) -> u128 {
    NodeKey::root(dim as u64, u64::from(gap)).fork(0x696E_7476).to_bits()
}

impl Partition {
    /// One cell per grid, features 0, …, M−1.
    pub(crate) fn trivial(n_rows: usize, n_train: usize, n_grids: usize, n_dims: usize) -> Self {
        let start = (0..n_dims).fold(0, |hash, dim| hash ^ interval_hash(dim, 0));
        let identity = |grid: usize| start ^ NodeKey::root(grid as u64, 0).fork(0x6365_6C6C).to_bits();
        let cells: Vec<Cell> = (0..n_grids)
            .map(|m| Cell { identity: identity(m), feature: m as u32, rows: n_rows as u32, train: n_train as u32 })
            .collect();
        let by_identity = cells.iter().enumerate().map(|(at, cell)| (cell.identity, at as u32)).collect();
        let row_cells = (0..n_grids).flat_map(|m| std::iter::repeat_n(m as u32, n_rows)).collect();
        let active = vec![Vec::new(); n_grids * n_dims];
        Self { n_rows, n_train, row_cells, cells, free: Vec::new(), by_identity, active, n_dims }
    }

    pub(crate) fn n_grids(&self) -> usize {
        self.row_cells.len() / self.n_rows
    }

    /// The cells of all rows in one grid.
    pub(crate) fn grid_cells(&self, grid: usize) -> &[u32] {
        &self.row_cells[grid * self.n_rows..(grid + 1) * self.n_rows]
    }

    pub(crate) fn is_train(&self, row: u32) -> bool {
        (row as usize) < self.n_train
    }

    /// The feature of a row's cell in a grid.
    pub(crate) fn feature(&self, grid: usize, row: u32) -> u32 {
        self.cells[self.row_cells[grid * self.n_rows + row as usize] as usize].feature
    }

    /// Gaps with a cut next to `gap`: the one below (0 if none) and the one above.
    fn neighbours(&self, grid: u32, dim: usize, gap: u32) -> (u32, Option<u32>) {
        let active = &self.active[grid as usize * self.n_dims + dim];
        let at = active.partition_point(|&g| g < gap);
        let above = active[at..].iter().find(|&&g| g > gap).copied();
        (if at > 0 { active[at - 1] } else { 0 }, above)
    }

    /// The changes made by adding the cut of `event`.
    pub(crate) fn plan_split(&self, dim: usize, dimension: &Dimension, event: Event) -> Plan {
        let (below, above) = self.neighbours(event.grid, dim, event.gap);
        let cells = self.grid_cells(event.grid as usize);
        let mut touched = self.by_cell(cells, dimension.rows(event.gap, above), false);
        let mut moved = Vec::new();
        touched.retain(|part| {
            let whole = part.rows_above.len() == self.cells[part.below as usize].rows as usize;
            if whole {
                moved.push(part.below);
            }
            !whole
        });
        let at: HashMap<u32, usize> = touched.iter().enumerate().map(|(i, part)| (part.below, i)).collect();
        for &row in dimension.rows(below, Some(event.gap)) {
            if let Some(&i) = at.get(&cells[row as usize]) {
                touched[i].rows_below.push(row);
                touched[i].train_below += u32::from(self.is_train(row));
            }
        }
        let change = interval_hash(dim, below) ^ interval_hash(dim, event.gap);
        Plan { dim, event, adds: true, parts: touched, moved, change }
    }

    /// The changes made by removing the cut of `event`.
    pub(crate) fn plan_merge(&self, dim: usize, dimension: &Dimension, event: Event) -> Plan {
        let (below, above) = self.neighbours(event.grid, dim, event.gap);
        let change = interval_hash(dim, below) ^ interval_hash(dim, event.gap);
        let cells = self.grid_cells(event.grid as usize);
        let mut parts = self.by_cell(cells, dimension.rows(event.gap, above), true);
        let mut moved = Vec::new();
        parts.retain_mut(|part| {
            let identity = self.cells[part.above as usize].identity ^ change;
            let partner = self.by_identity.get(&identity).copied();
            if let Some(partner) = partner {
                part.below = partner;
                part.train_below = self.cells[partner as usize].train;
            } else {
                moved.push(part.above);
            }
            partner.is_some()
        });
        let at: HashMap<u32, usize> = parts.iter().enumerate().map(|(i, part)| (part.below, i)).collect();
        for &row in dimension.rows(below, Some(event.gap)) {
            if let Some(&i) = at.get(&cells[row as usize]) {
                parts[i].rows_below.push(row);
            }
        }
        Plan { dim, event, adds: false, parts, moved, change }
    }

    /// The rows grouped by cell, in order of first appearance, as rows above.
    fn by_cell(&self, cells: &[u32], rows: &[u32], merging: bool) -> Vec<Part> {
        let mut at: HashMap<u32, usize> = HashMap::new();
        let mut parts: Vec<Part> = Vec::new();
        for &row in rows {
            let cell = cells[row as usize];
            let i = *at.entry(cell).or_insert_with(|| {
                let (below, above) = if merging { (NONE, cell) } else { (cell, NONE) };
                parts.push(Part {
                    below,
                    above,
                    rows_below: Vec::new(),
                    rows_above: Vec::new(),
                    train_below: 0,
                    train_above: 0,
                });
                parts.len() - 1
            });
            parts[i].rows_above.push(row);
            parts[i].train_above += u32::from(self.is_train(row));
        }
        parts
    }

    /// Executes a plan. `new_feature` gives the features of upper cells if both sides hold training rows, part by part.
    /// The caller removes the features of merged upper cells.
    pub(crate) fn apply(&mut self, plan: &Plan, mut new_feature: impl FnMut() -> u32) {
        let list = &mut self.active[plan.event.grid as usize * self.n_dims + plan.dim];
        let at = list.partition_point(|&g| g < plan.event.gap);
        if plan.adds {
            list.insert(at, plan.event.gap);
        } else {
            list.remove(at);
        }
        // All old identities are removed before new ones are inserted: the new identity of a cell may be the old one of
        // another.
        for &cell in &plan.moved {
            self.by_identity.remove(&self.cells[cell as usize].identity);
        }
        for &cell in &plan.moved {
            let cell_mut = &mut self.cells[cell as usize];
            cell_mut.identity ^= plan.change;
            self.by_identity.insert(cell_mut.identity, cell);
        }
        for part in &plan.parts {
            if plan.adds {
                self.split(plan, part, &mut new_feature);
            } else {
                self.merge(plan, part);
            }
        }
    }

    fn split(&mut self, plan: &Plan, part: &Part, new_feature: &mut impl FnMut() -> u32) {
        let lower = &mut self.cells[part.below as usize];
        lower.rows -= part.rows_above.len() as u32;
        lower.train -= part.train_above;
        let feature = match (lower.train > 0, part.train_above > 0) {
            (true, true) => new_feature(),
            // The feature belongs to the side with training rows.
            (false, _) => std::mem::replace(&mut lower.feature, NONE),
            (true, false) => NONE,
        };
        let upper = Cell {
            identity: lower.identity ^ plan.change,
            feature,
            rows: part.rows_above.len() as u32,
            train: part.train_above,
        };
        let identity = upper.identity;
        let number = self.free.pop().unwrap_or(self.cells.len() as u32);
        if number as usize == self.cells.len() {
            self.cells.push(upper);
        } else {
            self.cells[number as usize] = upper;
        }
        self.by_identity.insert(identity, number);
        self.assign(plan.event.grid, &part.rows_above, number);
    }

    fn merge(&mut self, plan: &Plan, part: &Part) {
        let upper = self.cells[part.above as usize].clone();
        self.by_identity.remove(&upper.identity);
        let lower = &mut self.cells[part.below as usize];
        lower.rows += upper.rows;
        lower.train += upper.train;
        if lower.feature == NONE {
            lower.feature = upper.feature;
        }
        self.free.push(part.above);
        self.cells[part.above as usize].rows = 0;
        self.assign(plan.event.grid, &part.rows_above, part.below);
    }

    fn assign(&mut self, grid: u32, rows: &[u32], cell: u32) {
        let start = grid as usize * self.n_rows;
        rows.iter().for_each(|&row| self.row_cells[start + row as usize] = cell);
    }

    /// Renumbers a feature.
    pub(crate) fn rename_features(&mut self, rename: impl Fn(u32) -> u32) {
        for cell in self.cells.iter_mut().filter(|cell| cell.rows > 0 && cell.feature != NONE) {
            cell.feature = rename(cell.feature);
        }
    }
}
