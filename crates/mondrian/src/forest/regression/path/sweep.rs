//! Sweeps one tree over the lifetime: the cells not yet cut, with the rows in them, and what each cut changes.
//!
//! Rows of the training set lie depth first, so that every cell is a range of them. Others ride along without being learned,
//! and are partitioned at each cut.

use crate::forest::regression::path::cells::{CellPool, Holding};
use crate::forest::regression::posterior::{Gaussian, Posterior, Reader};
use crate::forest::regression::targets::{Sums, Targets};
use crate::forest::regression::{LeafModel, RegressionForest};
use crate::process::{Cut, Side};
use crate::tree::{Child, FrontierCut, Kind, Landing, Locator, NextCut, Tree};

/// Rows riding along without being learned.
pub(crate) struct Set {
    pub(crate) x: Vec<f64>,
    pub(crate) y: Vec<f64>,
}

/// A cell on a tree's frontier.
#[derive(Debug, Clone)]
struct Frontier {
    next: NextCut,
    /// Whether no cut so far separated training rows.
    is_root_block: bool,
    /// Where its rows and posteriors are kept.
    place: u32,
}

/// A change of the predictions of a range of rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change {
    pub(crate) set: u32,
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Where the deltas of its targets start.
    pub(crate) delta: u32,
}

/// A cut (or the separation of a row from a frozen point) that changes predictions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    pub(crate) time: f64,
    pub(crate) changes: (u32, u32),
}

/// Room for one cut, used again: what the cell holds, where its rows divide, and what a side holds.
#[derive(Debug, Default)]
struct Room {
    cell: Holding,
    middles: Vec<u32>,
    side: Holding,
}

/// The events of one tree, in order of time.
pub(crate) struct TreeSweep<'a> {
    pub(crate) tree: &'a Tree,
    sums: &'a Sums,
    frontier: Vec<Frontier>,
    pool: CellPool,
    room: Room,
    /// Partings of single rows from frozen points, of the independent model.
    separations: Vec<(f64, u32, u32, Vec<f64>)>,
    pub(crate) permutations: Vec<Vec<u32>>,
    pub(crate) events: Vec<Event>,
    pub(crate) changes: Vec<Change>,
    pub(crate) deltas: Vec<f64>,
}

impl<'a> TreeSweep<'a> {
    pub(crate) fn new(
        tree: &'a Tree,
        sums: &'a Sums,
        targets: &Targets,
        gaussians: &[Gaussian],
        sizes: &[usize],
        rows_of_point: &[Vec<u32>],
    ) -> Self {
        let mut permutations: Vec<Vec<u32>> = sizes.iter().map(|n| (0..*n as u32).collect()).collect();
        permutations[0] = depth_first_rows(tree, rows_of_point);
        let mut sweep = Self {
            tree,
            sums,
            frontier: Vec::new(),
            pool: CellPool::new(sizes.len(), gaussians.len()),
            room: Room::default(),
            separations: Vec::new(),
            permutations,
            events: Vec::new(),
            changes: Vec::new(),
            deltas: Vec::new(),
        };
        if let Some(next) = NextCut::of_root(tree) {
            let posteriors = gaussians.iter().enumerate().map(|(t, g)| sweep.root_posterior(targets, g, t)).collect();
            let root = Holding { ranges: sizes.iter().map(|n| (0, *n as u32)).collect(), posteriors };
            let place = sweep.pool.keep(&root);
            sweep.frontier.push(Frontier { next, is_root_block: true, place });
        }
        sweep
    }

    pub(crate) fn root_posterior(&self, targets: &Targets, gaussian: &Gaussian, target: usize) -> Posterior {
        let reader = Reader { tree: self.tree, sums: self.sums, targets };
        reader.independent(self.tree.root(), target, gaussian)
    }

    /// Lists the changes up to a time, moving the frontier.
    pub(crate) fn advance(
        &mut self,
        end: f64,
        model: &RegressionForest,
        sets: &[Set],
        targets: &Targets,
        gaussians: &[Gaussian],
    ) {
        self.events.clear();
        self.changes.clear();
        self.deltas.clear();
        self.part_rows(end);
        let (mut later, mut locator) = (Vec::new(), None);
        while let Some(cell) = self.frontier.pop() {
            if cell.next.time(self.tree) > end {
                later.push(cell);
            } else if cell.next.is_unknown() {
                let Frontier { next, is_root_block, place } = cell;
                match self.known(next, place, model, sets, &mut locator) {
                    Some(next) => self.frontier.push(Frontier { next, is_root_block, place }),
                    None => self.pool.free(place),
                }
            } else {
                self.cut(cell, model, sets, targets, gaussians);
            }
        }
        self.frontier = later;
        // Cells cut in this window may have let rows part in it too.
        self.part_rows(end);
    }

    /// How a cell is cut next whose next cuts are not stored. Where all its rows stay with the training rows, nothing
    /// changes until a cut that is.
    fn known<'b>(
        &self,
        next: NextCut,
        place: u32,
        model: &'b RegressionForest,
        sets: &[Set],
        locator: &mut Option<Locator<'b>>,
    ) -> Option<NextCut>
    where
        'a: 'b,
    {
        let forest = &model.core.forest;
        let row = |set: usize, at: u32| {
            let row = self.permutations[set][at as usize] as usize;
            &sets[set].x[row * forest.n_dims()..][..forest.n_dims()]
        };
        let ranges = self.pool.ranges(place).iter().enumerate().skip(1);
        let rows = ranges.flat_map(|(set, (start, end))| (*start..*end).map(move |at| row(set, at)));
        let new = || Locator::new(self.tree, forest.domain(), forest.store(), model.view);
        next.skip_or_draw(self.tree, rows, locator, new)
    }

    /// One cut: what it changes, and what lies on its two sides.
    fn cut(
        &mut self,
        cell: Frontier,
        model: &RegressionForest,
        sets: &[Set],
        targets: &Targets,
        gaussians: &[Gaussian],
    ) {
        let Frontier { next, is_root_block, place } = cell;
        let mut room = std::mem::take(&mut self.room);
        self.pool.take(place, &mut room.cell);
        let FrontierCut { cut, children, next } = next.take(self.tree);
        let separates = children.iter().all(|child| *child != Child::EMPTY);
        let is_independent = model.core.params.leaf_model == LeafModel::Independent;
        self.split(&mut room, &cut, children[0], model, sets);
        let first_change = self.changes.len() as u32;
        for ((side, child), next) in Side::BOTH.into_iter().zip(children).zip(next) {
            let Room { cell, middles, side: new } = &mut room;
            new.ranges.clear();
            new.ranges.extend(cell.ranges.iter().zip(middles).map(|((start, end), middle)| match side {
                Side::Below => (*start, *middle),
                Side::Above => (*middle, *end),
            }));
            if child == Child::EMPTY {
                // Rows that leave: to the prior from the root block and with independent cells, else nothing changes.
                if is_independent || is_root_block {
                    new.posteriors.clear();
                    new.posteriors.extend(gaussians.iter().map(Posterior::prior));
                    self.change(&cell.posteriors, new);
                }
                continue;
            }
            new.posteriors.clone_from(&cell.posteriors);
            if separates {
                let reader = Reader { tree: self.tree, sums: self.sums, targets };
                let weight = reader.weight(child);
                for (target, (to, gaussian)) in new.posteriors.iter_mut().zip(gaussians).enumerate() {
                    let parent = if is_independent { Posterior::above_root(gaussian) } else { *to };
                    *to = Posterior::after(parent, reader.sum(child, target), weight, gaussian);
                }
                self.change(&cell.posteriors, new);
            }
            let is_root_block = is_root_block && !separates;
            if let Some(next) = next {
                let place = self.pool.keep(new);
                self.frontier.push(Frontier { next, is_root_block, place });
            } else if is_independent && matches!(child.kind(), Kind::Single(_)) {
                self.plan_separations(new, model, sets, gaussians);
            }
        }
        self.room = room;
        let last_change = self.changes.len() as u32;
        if last_change > first_change {
            self.events.push(Event { time: cut.time, changes: (first_change, last_change) });
        }
    }

    /// Where each set's rows divide: training rows lie depth first already, the others are partitioned.
    fn split(&mut self, room: &mut Room, cut: &Cut, below: Child, model: &RegressionForest, sets: &[Set]) {
        let Room { cell: Holding { ranges, .. }, middles, .. } = room;
        let has_rows = model.core.forest.summary().is_none();
        let below = if has_rows { self.tree.rows_of(below, model.core.forest.store()) } else { 0 };
        middles.clear();
        middles.push(ranges[0].0 + below);
        let (dim, location) = (cut.dim as usize, cut.location);
        for (set, (start, end)) in ranges.iter().enumerate().skip(1) {
            let x = &sets[set].x;
            let n_dims = x.len() / self.permutations[set].len().max(1);
            let rows = &mut self.permutations[set][*start as usize..*end as usize];
            let mut n_below = 0;
            for i in 0..rows.len() {
                if x[rows[i] as usize * n_dims + dim] <= location {
                    rows.swap(i, n_below);
                    n_below += 1;
                }
            }
            middles.push(*start + n_below as u32);
        }
    }

    /// Changes the predictions of rows.
    fn change(&mut self, from: &[Posterior], to: &Holding) {
        let delta = self.deltas.len() as u32;
        let changes = to.ranges.iter().enumerate().filter(|(_, (start, end))| start < end);
        let before = self.changes.len();
        self.changes.extend(changes.map(|(set, (start, end))| Change {
            set: set as u32,
            start: *start,
            end: *end,
            delta,
        }));
        if self.changes.len() > before {
            self.deltas.extend(from.iter().zip(&to.posteriors).map(|(a, b)| b.mean - a.mean));
        }
    }

    /// When each row in a frozen cell separates from its point: from then on it predicts the prior.
    fn plan_separations(&mut self, frozen: &Holding, model: &RegressionForest, sets: &[Set], gaussians: &[Gaussian]) {
        let forest = &model.core.forest;
        let n_dims = forest.n_dims();
        let deltas: Vec<f64> = frozen.posteriors.iter().zip(gaussians).map(|(b, g)| g.prior_mean - b.mean).collect();
        let mut locator = Locator::new(self.tree, forest.domain(), forest.store(), model.view);
        for (set, (start, end)) in frozen.ranges.iter().enumerate().skip(1) {
            for at in *start..*end {
                let row = self.permutations[set][at as usize] as usize;
                if let Landing::Unseen { time, .. } = locator.locate(&sets[set].x[row * n_dims..][..n_dims]) {
                    self.separations.push((time, set as u32, at, deltas.clone()));
                }
            }
        }
    }

    /// Turns separations that are due into events.
    fn part_rows(&mut self, end: f64) {
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.separations).into_iter().partition(|p| p.0 <= end);
        self.separations = later;
        for (time, set, at, deltas) in due {
            let (delta, change) = (self.deltas.len() as u32, self.changes.len() as u32);
            self.deltas.extend(deltas);
            self.changes.push(Change { set, start: at, end: at + 1, delta });
            self.events.push(Event { time, changes: (change, change + 1) });
        }
    }
}

/// Training rows in the order of a depth-first walk: every cell is a range.
fn depth_first_rows(tree: &Tree, rows_of_point: &[Vec<u32>]) -> Vec<u32> {
    let mut rows = Vec::new();
    let mut todo = vec![tree.root()];
    while let Some(child) = todo.pop() {
        match child.kind() {
            Kind::Inner(id) => {
                let [below, above] = tree.children(tree.node(id));
                todo.extend([above, below]);
            }
            Kind::Single(point) => rows.extend_from_slice(&rows_of_point[point as usize]),
            Kind::Leaf(id) => {
                tree.leaf(id).points().iter().for_each(|p| rows.extend_from_slice(&rows_of_point[*p as usize]));
            }
            Kind::Empty => {}
        }
    }
    rows
}
