//! Riders going down a tree, all at once: the walk that densities, leave-one-out values and paths share.
//!
//! Riders are points that the walk follows: queries, training points, or both. At each cut of a cell that holds
//! training rows they are partitioned, and the visitor is told of the cut. Nothing is stored in the tree: a frozen
//! cell, one point's, is cut on from its key as long as riders are with the point and the lifetime has not ended. A
//! query usually parts from the point after a handful of cuts; a training point is followed to the end, about D·log λ
//! cuts. Keeping those chains would cost more memory than the tree and go stale with every point learned; made anew
//! they are exact whatever happened before.
//!
//! Elsewhere long runs of cuts with an empty side are kept as [chains](crate::tree::Chain). Not here: each of them is a
//! level of the Pólya tree, so that every walk would make all of them again, several times slower than reading them.

use crate::Lifetime;
use crate::forest::Forest;
use crate::forest::density::polya::Split;
use crate::forest::density::way::{Way, index_of};
use crate::process::{BuiltInMeasure, Cut, Side};
use crate::tree::{Child, Kind, PointStore, Tree};

/// Places of riders in their order: `start..end` are in a cell, `start..middle` of them below its cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parted {
    pub(crate) start: u32,
    pub(crate) middle: u32,
    pub(crate) end: u32,
}

/// Who hears of the cuts; `Value` is what it knows of a cell.
pub(crate) trait Follower {
    type Value: Copy;

    /// A cut of a cell that holds riders and training rows: the values of both sides.
    fn split(&mut self, split: &Split, parted: Parted, value: Self::Value) -> [Self::Value; 2];

    /// The riders of a cell that nothing happens to any more.
    fn rest(&mut self, value: Self::Value, riders: &[u32]);
}

/// A walk down one tree.
#[derive(Debug)]
pub(crate) struct Descent<'a> {
    tree: &'a Tree,
    store: &'a PointStore,
    measure: &'a BuiltInMeasure,
    coordinates: &'a [f64],
    lifetime: f64,
    resume_above: u32,
    way: Way,
    scratch: Vec<u32>,
}

#[derive(Debug)]
struct Task<V> {
    child: Child,
    step: Option<(Cut, Side)>,
    depth: usize,
    start: usize,
    end: usize,
    value: V,
}

impl<'a> Descent<'a> {
    /// A walk down tree `index` with a lifetime of at most the domain's, for riders that are rows of `coordinates`.
    pub(crate) fn new(forest: &'a Forest, index: usize, lifetime: Lifetime, coordinates: &'a [f64]) -> Self {
        let domain = forest.domain();
        let tree = &forest.trees()[index].0;
        Self {
            tree,
            store: forest.store(),
            measure: forest.measure(),
            coordinates,
            lifetime: lifetime.min(domain.lifetime()).get(),
            resume_above: 0,
            way: Way::new(domain.root_cell(tree.key())),
            scratch: Vec::new(),
        }
    }

    /// Leaves frozen cells of at most `rows` rows as they are.
    #[must_use]
    pub(crate) fn resume_above(mut self, rows: u32) -> Self {
        self.resume_above = rows;
        self
    }

    /// Takes `riders` down the tree. They end up in an order in which every cell holds a range; a walk to a larger
    /// lifetime keeps the ranges that a walk to a smaller one made.
    pub(crate) fn follow<F: Follower>(&mut self, riders: &mut [u32], value: F::Value, follower: &mut F) {
        self.scratch.resize(riders.len(), 0);
        let root = Task { child: self.tree.root(), step: None, depth: 0, start: 0, end: riders.len(), value };
        let mut tasks = vec![root];
        while let Some(task) = tasks.pop() {
            if task.start == task.end {
                continue;
            }
            self.way.return_to(task.depth);
            if let Some((cut, side)) = task.step {
                self.way.enter(cut, side);
            }
            match task.child.kind() {
                Kind::Inner(id) if self.tree.node(id).time() <= self.lifetime => {
                    tasks.extend(self.pass(id, &task, riders, follower));
                }
                Kind::Chain(_) => unreachable!("densities keep every cut as a node"),
                Kind::Single(point) if self.store.multiplicity(point) > self.resume_above => {
                    self.resume(point, &task, riders, follower);
                }
                _ => follower.rest(task.value, &riders[task.start..task.end]),
            }
        }
        self.way.return_to(0);
    }

    /// Past a node: what there is to do on its sides, the lower one last.
    fn pass<F: Follower>(
        &mut self,
        id: u32,
        task: &Task<F::Value>,
        riders: &mut [u32],
        follower: &mut F,
    ) -> [Task<F::Value>; 2] {
        let node = self.tree.node(id);
        let cut = node.cut();
        let rows = [Side::Below, Side::Above].map(|side| self.tree.rows_of(node.child(side), self.store));
        let split = self.way.split(self.measure, &cut, rows);
        let (start, end) = (task.start, task.end);
        let middle = self.part(&mut riders[start..end], &cut) + start;
        let values = follower.split(&split, parted(start, middle, end), task.value);
        let depth = self.way.depth();
        let to = |side: Side, start, end| {
            let (child, value) = (node.child(side), values[index_of(side)]);
            Task { child, step: Some((cut, side)), depth, start, end, value }
        };
        [to(Side::Above, middle, end), to(Side::Below, start, middle)]
    }

    /// Cuts the frozen cell of `point` on while riders stay with it.
    fn resume<F: Follower>(&mut self, point: u32, task: &Task<F::Value>, riders: &mut [u32], follower: &mut F) {
        let frozen = self.store.point(point);
        let mut rows = [0; 2];
        let mut cell = self.way.cell();
        let Task { mut start, mut end, mut value, .. } = *task;
        while start < end {
            let Some(cut) = cell.next_cut_until(self.lifetime) else {
                return follower.rest(value, &riders[start..end]);
            };
            let side = Side::of(frozen[cut.dim as usize], cut.location);
            rows[index_of(side)] = self.store.multiplicity(point);
            rows[index_of(side.other())] = 0;
            let split = self.way.split(self.measure, &cut, rows);
            let middle = self.part(&mut riders[start..end], &cut) + start;
            let values = follower.split(&split, parted(start, middle, end), value);
            let left_behind = match side {
                Side::Below => middle..std::mem::replace(&mut end, middle),
                Side::Above => std::mem::replace(&mut start, middle)..middle,
            };
            // Who left the point is in a cell without rows: nothing happens there any more.
            if !left_behind.is_empty() {
                follower.rest(values[index_of(side.other())], &riders[left_behind]);
            }
            value = values[index_of(side)];
            cell.enter(&cut, side);
            self.way.enter(cut, side);
        }
    }

    /// Parts riders, stably: those below the cut first. How many they are.
    fn part(&mut self, riders: &mut [u32], cut: &Cut) -> usize {
        let (n_dims, dim) = (self.way.lower().len(), cut.dim as usize);
        let (mut n_below, mut n_above) = (0, 0);
        for i in 0..riders.len() {
            let rider = riders[i];
            let below = usize::from(self.coordinates[rider as usize * n_dims + dim] <= cut.location);
            riders[n_below] = rider;
            self.scratch[n_above] = rider;
            n_below += below;
            n_above += 1 - below;
        }
        riders[n_below..].copy_from_slice(&self.scratch[..n_above]);
        n_below
    }
}

fn parted(start: usize, middle: usize, end: usize) -> Parted {
    Parted { start: start as u32, middle: middle as u32, end: end as u32 }
}
