//! Carrying rows down a tree and telling each its distribution over the classes, at one or many lifetimes at once.
//!
//! Rows go down together, partitioned by the cuts, so that a block's distribution is computed once for all of them. At
//! each block only the lifetimes that end inside it are looked at, so a whole grid of lifetimes costs one walk.

use crate::Lifetime;
use crate::forest::classification::masks::{ClassMasks, PointClasses};
use crate::forest::classification::stable::{discount, exit_into, inner_into, leaf_into, leaving_weights, survival};
use crate::forest::{Forest, Unseen};
use crate::process::Side;
use crate::tree::{Child, Kind, Landing, Locator, Tree};

/// Everything a prediction depends on.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) forest: &'a Forest<ClassMasks>,
    pub(crate) classes: &'a PointClasses,
    pub(crate) gamma: f64,
    pub(crate) unseen: Unseen,
}

/// Rows in measure coordinates, moved to the nearest point of the root box, and how far that was.
pub(crate) struct Rows {
    inside: Vec<f64>,
    outside_by: Vec<f64>,
    n_dims: usize,
}

impl Rows {
    pub(crate) fn new(forest: &Forest<ClassMasks>, coordinates: &[f64]) -> Self {
        let n_dims = forest.n_dims();
        let mut inside = coordinates.to_vec();
        let outside_by = inside.chunks_exact_mut(n_dims).map(|x| forest.domain().clamp(x)).collect();
        Self { inside, outside_by, n_dims }
    }

    fn point(&self, row: u32) -> &[f64] {
        &self.inside[row as usize * self.n_dims..][..self.n_dims]
    }
}

/// A block still to be walked: rows `start..end` of the order came to it at the time `birth`.
struct Task {
    child: Child,
    start: usize,
    end: usize,
    birth: f64,
    /// Where the parent's distribution lies on the stack.
    depth: usize,
}

/// A walk of rows down one tree; `add(row, number of the lifetime, weight, distribution)` receives what to sum up.
struct Walk<'a, F> {
    scene: Scene<'a>,
    tree: &'a Tree,
    masks: &'a ClassMasks,
    locator: Locator<'a>,
    rows: &'a Rows,
    lifetimes: &'a [f64],
    order: Vec<u32>,
    tasks: Vec<Task>,
    /// Distributions of the blocks on the way down, one after the other.
    above: Vec<f64>,
    block: Block,
    below_mask: Vec<u64>,
    above_mask: Vec<u64>,
    out: Vec<f64>,
    add: F,
}

/// What is known of the block the walk is in.
struct Block {
    child: Child,
    birth: f64,
    mask: Vec<u64>,
    /// Distributions of the block as a leaf at the lifetimes from number `first` on, as far as `known`.
    leaves: Vec<f64>,
    known: Vec<bool>,
    first: usize,
    counts: Vec<u32>,
    counted: bool,
    todo: Vec<Child>,
}

impl Scene<'_> {
    /// Walks rows down a tree, for ascending lifetimes, none above the domain's.
    pub(crate) fn walk(&self, tree: usize, rows: &Rows, lifetimes: &[f64], add: impl FnMut(usize, usize, f64, &[f64])) {
        let Some(&last) = lifetimes.last() else { return };
        let n_classes = self.classes.n_classes();
        let n_words = self.classes.n_words();
        let (tree, masks) = &self.forest.trees()[tree];
        let view = Lifetime::new(last).expect("lifetimes were checked");
        let mut walk = Walk {
            scene: *self,
            tree,
            masks,
            locator: Locator::new(tree, self.forest.domain(), self.forest.store(), view),
            rows,
            lifetimes,
            order: (0..rows.outside_by.len() as u32).collect(),
            tasks: Vec::new(),
            above: vec![1.0 / n_classes as f64; n_classes],
            block: Block {
                child: Child::EMPTY,
                birth: 0.0,
                mask: vec![0; n_words],
                leaves: Vec::new(),
                known: Vec::new(),
                first: 0,
                counts: vec![0; n_classes],
                counted: false,
                todo: Vec::new(),
            },
            below_mask: vec![0; n_words],
            above_mask: vec![0; n_words],
            out: vec![0.0; n_classes],
            add,
        };
        walk.run();
    }
}

impl<F: FnMut(usize, usize, f64, &[f64])> Walk<'_, F> {
    fn run(&mut self) {
        let end = self.order.len();
        if self.tree.root() == Child::EMPTY {
            // No training points: the distribution above the root.
            for row in 0..end {
                (0..self.lifetimes.len()).for_each(|number| (self.add)(row, number, 1.0, &self.above));
            }
            return;
        }
        self.tasks.push(Task { child: self.tree.root(), start: 0, end, birth: 0.0, depth: 0 });
        while let Some(task) = self.tasks.pop() {
            self.open(&task);
            self.walk_block(&task);
        }
    }

    /// Begins a block.
    fn open(&mut self, task: &Task) {
        let block = &mut self.block;
        block.child = task.child;
        block.birth = task.birth;
        block.mask.fill(0);
        self.masks.mark(self.tree, self.scene.classes, task.child, &mut block.mask);
        block.first = self.lifetimes.partition_point(|lifetime| *lifetime < task.birth);
        block.known.clear();
        block.counted = false;
    }

    /// Follows the cuts with an empty side until the block's own cut or its end.
    fn walk_block(&mut self, task: &Task) {
        let (mut start, mut child) = (task.start, task.child);
        let last = self.lifetimes[self.lifetimes.len() - 1];
        loop {
            match child.kind() {
                Kind::Chain(id) => {
                    start = self.pass_chain(task, start, id, last);
                    if start == task.end {
                        return;
                    }
                    child = self.tree.chain(id).end();
                }
                Kind::Inner(id) if self.tree.node(id).time() <= last => {
                    let node = *self.tree.node(id);
                    if node.separates() {
                        return self.part(task, start, &node);
                    }
                    let empty = if node.child(Side::Below) == Child::EMPTY { Side::Below } else { Side::Above };
                    // Rows that leave go to the front of the range.
                    let stay = start + self.split(start, task.end, |x| node.side_of(x) == empty);
                    for at in start..stay {
                        let (row, parent) = (self.order[at], task.depth);
                        let rate = self.rows.outside_by[row as usize];
                        self.end_row(row, rate, Some(node.time()), parent);
                    }
                    if stay == task.end {
                        return;
                    }
                    start = stay;
                    child = node.child(empty.other());
                }
                Kind::Inner(_) | Kind::Leaf(_) => {
                    for at in start..task.end {
                        let row = self.order[at];
                        self.end_row(row, self.rows.outside_by[row as usize], None, task.depth);
                    }
                    return;
                }
                Kind::Single(point) => {
                    for at in start..task.end {
                        let row = self.order[at];
                        let (rate, exit) = self.resume(row, point);
                        self.end_row(row, rate, exit, task.depth);
                    }
                    return;
                }
                Kind::Empty => unreachable!("a block holds points"),
            }
        }
    }

    /// Lets the rows that leave a chain do so, each at its time. They go to the front of the range; where the others start.
    fn pass_chain(&mut self, task: &Task, mut start: usize, id: u32, last: f64) -> usize {
        let tree = self.tree;
        let outside = start + self.split(start, task.end, |x| !tree.chain_holds(id, x));
        if outside == start || tree.chain(id).first_time() > last {
            return start;
        }
        self.locator.start(self.rows.point(self.order[start]), id);
        while start < outside {
            let Some((cut, side)) = self.locator.next_cut().filter(|(cut, _)| cut.time <= last) else { break };
            let gone = start + self.split(start, outside, |x| Side::of(x[cut.dim as usize], cut.location) != side);
            for at in start..gone {
                let row = self.order[at];
                self.end_row(row, self.rows.outside_by[row as usize], Some(cut.time), task.depth);
            }
            start = gone;
        }
        start
    }

    /// At a frozen cell: the rate at which a row leaves it over the unseen cuts, and when it leaves by a keyed one.
    fn resume(&mut self, row: u32, point: u32) -> (f64, Option<f64>) {
        let x = self.rows.point(row);
        let outside_by = self.rows.outside_by[row as usize];
        match self.scene.unseen {
            Unseen::Keyed => match self.locator.locate(x) {
                Landing::Seen(_) => (outside_by, None),
                Landing::Unseen { time, .. } => (outside_by, Some(time)),
            },
            Unseen::Integrate => {
                // The nearest point of the box lies between the row and every point of the box, in each coordinate.
                let frozen = self.scene.forest.store().point(point);
                let apart: f64 = x.iter().zip(frozen).map(|(a, b)| (a - b).abs()).sum();
                (outside_by + apart, None)
            }
        }
    }

    /// A row that does not leave the block alive: it leaves at `exit`, or stays; in between at a rate.
    fn end_row(&mut self, row: u32, rate: f64, exit: Option<f64>, parent: usize) {
        let birth = self.block.birth;
        let until = exit.unwrap_or(f64::INFINITY);
        let arrives = survival(self.rows.outside_by[row as usize], birth);
        // Without an exit the row is seen at an infinite lifetime too.
        let is_before = |lifetime: &f64| exit.is_none_or(|time| *lifetime < time);
        let seen = self.lifetimes.partition_point(is_before);
        for number in self.block.first..seen {
            self.add_leaf(row, number, arrives, rate, parent);
        }
        if exit.is_none() {
            return;
        }
        let n_classes = self.out.len();
        let parent_is = &self.above[parent * n_classes..][..n_classes];
        exit_into(&self.block.mask, discount(self.scene.gamma, until - birth), parent_is, &mut self.out);
        let weight = arrives * survival(rate, until - birth);
        for number in seen..self.lifetimes.len() {
            (self.add)(row as usize, number, weight, &self.out);
        }
        self.add_leaving(row, seen..self.lifetimes.len(), arrives, rate, until, parent);
    }

    /// The block as a leaf at one lifetime, and what leaves it before.
    fn add_leaf(&mut self, row: u32, number: usize, arrives: f64, rate: f64, parent: usize) {
        let duration = self.lifetimes[number] - self.block.birth;
        let n_classes = self.out.len();
        self.learn_leaf(number, parent);
        let leaf = &self.block.leaves[(number - self.block.first) * n_classes..][..n_classes];
        (self.add)(row as usize, number, arrives * survival(rate, duration), leaf);
        self.add_leaving(row, number..number + 1, arrives, rate, self.lifetimes[number], parent);
    }

    /// What a row gets that leaves the block at a rate before the time `until`.
    fn add_leaving(
        &mut self,
        row: u32,
        numbers: std::ops::Range<usize>,
        arrives: f64,
        rate: f64,
        until: f64,
        parent: usize,
    ) {
        if rate == 0.0 || numbers.is_empty() {
            return;
        }
        let (to_parent, to_classes) = leaving_weights(rate, self.scene.gamma, until - self.block.birth);
        let n_classes = self.out.len();
        let parent_is = &self.above[parent * n_classes..][..n_classes];
        exit_into(&self.block.mask, 0.0, parent_is, &mut self.out);
        for number in numbers {
            (self.add)(row as usize, number, arrives * to_parent, parent_is);
            (self.add)(row as usize, number, arrives * to_classes, &self.out);
        }
    }

    /// Computes the block's distribution as a leaf at a lifetime, once.
    fn learn_leaf(&mut self, number: usize, parent: usize) {
        let (block, n_classes) = (&mut self.block, self.out.len());
        let at = number - block.first;
        if block.known.get(at) == Some(&true) {
            return;
        }
        if block.known.len() <= at {
            block.known.resize(at + 1, false);
            block.leaves.resize(block.leaves.len().max((at + 1) * n_classes), 0.0);
        }
        if !block.counted {
            block.counts.fill(0);
            self.masks.count_below(self.tree, self.scene.classes, block.child, &mut block.counts, &mut block.todo);
            block.counted = true;
        }
        let d = discount(self.scene.gamma, self.lifetimes[number] - block.birth);
        let parent = &self.above[parent * n_classes..][..n_classes];
        leaf_into(&block.counts, d, parent, &mut block.leaves[at * n_classes..][..n_classes]);
        block.known[at] = true;
    }

    /// The block is cut and its points part: its rows go to two new blocks.
    fn part(&mut self, task: &Task, start: usize, node: &crate::tree::Node) {
        let (time, n_classes) = (node.time(), self.out.len());
        let seen = self.lifetimes.partition_point(|lifetime| *lifetime < time);
        for at in start..task.end {
            let row = self.order[at];
            let rate = self.rows.outside_by[row as usize];
            let arrives = survival(rate, task.birth);
            for number in self.block.first..seen {
                self.add_leaf(row, number, arrives, rate, task.depth);
            }
            self.add_leaving(row, seen..self.lifetimes.len(), arrives, rate, time, task.depth);
        }
        for (mask, side) in [(&mut self.below_mask, Side::Below), (&mut self.above_mask, Side::Above)] {
            mask.fill(0);
            self.masks.mark(self.tree, self.scene.classes, node.child(side), mask);
        }
        let d = discount(self.scene.gamma, time - task.birth);
        let parent = &self.above[task.depth * n_classes..][..n_classes];
        inner_into(&self.below_mask, &self.above_mask, d, parent, &mut self.out);
        self.above.truncate((task.depth + 1) * n_classes);
        self.above.extend_from_slice(&self.out);
        let middle = start + self.split(start, task.end, |x| node.side_of(x) == Side::Below);
        let depth = task.depth + 1;
        for (start, end, side) in [(middle, task.end, Side::Above), (start, middle, Side::Below)] {
            if start < end {
                self.tasks.push(Task { child: node.child(side), start, end, birth: time, depth });
            }
        }
    }

    /// Moves the rows that `is_first` picks to the front of a range; how many there are.
    fn split(&mut self, start: usize, end: usize, is_first: impl Fn(&[f64]) -> bool) -> usize {
        let rows = self.rows;
        let range = &mut self.order[start..end];
        let mut n_first = 0;
        for at in 0..range.len() {
            if is_first(rows.point(range[at])) {
                range.swap(at, n_first);
                n_first += 1;
            }
        }
        n_first
    }
}
