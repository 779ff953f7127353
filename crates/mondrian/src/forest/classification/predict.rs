//! The distribution of each row over the classes, at one or many lifetimes at once.
//!
//! A block's distribution is computed once for all rows that come to it. At each block only the lifetimes that end inside
//! it are looked at, so a whole grid of lifetimes costs one traversal.

#![expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]

use crate::forest::classification::masks::{ClassMasks, PointClasses, counts_of_nodes};
use crate::forest::classification::stable::{
    InnerWeights, discount, exit_into, inner_into, leaf_into, leaving_weights, survival, tables_and_count,
};
use crate::forest::{Forest, Unseen};
use crate::process::Side;
use crate::tree::{Child, CodedRows, Exit, Exits, Kind, NodeId, SLOTS, Split, Traversal, Tree, Visitor};

/// The most numbers that the counts of all nodes of a tree may be.
const MOST_COUNTS: usize = 1 << 23;

/// Everything a prediction depends on.
#[derive(Clone, Copy)]
pub(crate) struct ClassModel<'a> {
    pub(crate) forest: &'a Forest<ClassMasks>,
    pub(crate) classes: &'a PointClasses,
    pub(crate) gamma: f64,
    pub(crate) unseen: Unseen,
}

/// Rows in measure coordinates, moved to the nearest point of the root box, and how far that was.
pub(crate) struct Rows {
    inside: Vec<f64>,
    outside_by: Vec<f64>,
    /// The rows inside the root box, and the others: those may leave at every cut, which costs a look at each of them.
    groups: [Vec<u32>; 2],
}

impl Rows {
    pub(crate) fn new(forest: &Forest<ClassMasks>, coordinates: &[f64]) -> Self {
        let mut inside = coordinates.to_vec();
        let outside_by: Vec<f64> = inside.chunks_exact_mut(forest.n_dims()).map(|x| forest.domain().clamp(x)).collect();
        let is_inside = |row: &u32| outside_by[*row as usize] == 0.0;
        let (within, beyond) = (0..outside_by.len() as u32).partition(is_inside);
        Self { inside, outside_by, groups: [within, beyond] }
    }
}

/// Where the distributions of rows are added up.
pub(crate) trait Sums {
    /// Adds a distribution, times a weight, to a row's at the lifetime of a number.
    fn add(&mut self, row: usize, number: usize, weight: f64, distribution: &[f64]);

    /// Asks for the memory of a row's sums.
    fn prefetch(&self, row: usize);
}

impl<T: Sums> Sums for &mut T {
    #[inline(always)]
    fn add(&mut self, row: usize, number: usize, weight: f64, distribution: &[f64]) {
        (**self).add(row, number, weight, distribution);
    }

    #[inline(always)]
    fn prefetch(&self, row: usize) {
        (**self).prefetch(row);
    }
}

impl ClassModel<'_> {
    /// Computes the distributions of rows in each tree in turn, for ascending lifetimes, none above the domain's;
    /// `sums` receives what to sum up.
    pub(crate) fn predict(&self, rows: &Rows, lifetimes: &[f64], sums: &mut impl Sums) {
        let Some(&lifetime) = lifetimes.last() else { return };
        let (domain, store) = (self.forest.domain(), self.forest.store());
        let coded = CodedRows::new(domain, &rows.inside);
        for (tree, masks) in self.forest.trees() {
            let traversal = Traversal { tree, domain, store, rows: &coded, lifetime, draws_cuts: true };
            let mut predictor = Predictor::new(*self, (tree, masks), (rows, &coded), lifetimes, &mut *sums);
            let root = BlockState { child: tree.root(), cut_by: None, birth: 0.0, parent: SLOTS as u32 };
            for (group, are_outside) in rows.groups.iter().zip([false, true]) {
                if group.is_empty() {
                    continue;
                }
                predictor.are_outside = are_outside;
                traversal.run(&mut group.clone(), root, &mut predictor);
            }
        }
    }
}

/// A block: what it holds, the node and side whose cut begins it and when, and the place of its parent's distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
struct BlockState {
    child: Child,
    cut_by: Option<(NodeId, Side)>,
    birth: f64,
    parent: u32,
}

impl BlockState {
    /// The classes of the rows that it holds.
    #[inline]
    fn classes<'a>(self, masks: &'a ClassMasks, of_root: &'a [u64]) -> &'a [u64] {
        self.cut_by.map_or(of_root, |(node, side)| masks.of_sides(node)[side.index()])
    }
}

/// Adds up the distributions of one tree.
struct Predictor<'a, F> {
    model: ClassModel<'a>,
    tree: &'a Tree,
    masks: &'a ClassMasks,
    rows: &'a Rows,
    coded: &'a CodedRows<'a>,
    /// Whether the rows on their way lie outside the root box.
    are_outside: bool,
    lifetimes: &'a [f64],
    /// Distributions by place: those that cells put aside wait with, then those of the blocks on the way down.
    above: Vec<f64>,
    leaf: LeafCache,
    /// By node and class, for a path: blocks are then leaves at many lifetimes.
    counts: Option<Vec<u32>>,
    root_classes: Vec<u64>,
    out: Vec<f64>,
    sums: F,
}

/// Distributions of one block as a leaf at the lifetimes from number `first` on, as far as `known`.
struct LeafCache {
    block: Option<BlockState>,
    distributions: Vec<f64>,
    known: Vec<bool>,
    first: usize,
    counts: Vec<u32>,
    todo: Vec<Child>,
}

impl<'a, F: Sums> Predictor<'a, F> {
    fn new(
        model: ClassModel<'a>,
        (tree, masks): (&'a Tree, &'a ClassMasks),
        (rows, coded): (&'a Rows, &'a CodedRows<'a>),
        lifetimes: &'a [f64],
        sums: F,
    ) -> Self {
        let (n_classes, n_words) = (model.classes.n_classes(), model.classes.n_words());
        let mut root_classes = vec![0; n_words];
        masks.mark(model.classes, tree.root(), &mut root_classes);
        let leaf = LeafCache {
            block: None,
            distributions: Vec::new(),
            known: Vec::new(),
            first: 0,
            counts: vec![0; n_classes],
            todo: Vec::new(),
        };
        let is_path = lifetimes.len() > 1 && tree.n_nodes() * n_classes <= MOST_COUNTS;
        Self {
            counts: is_path.then(|| counts_of_nodes(tree, model.classes)),
            model,
            tree,
            masks,
            rows,
            coded,
            are_outside: false,
            lifetimes,
            above: vec![1.0 / n_classes as f64; (SLOTS + 1) * n_classes],
            leaf,
            root_classes,
            out: vec![0.0; n_classes],
            sums,
        }
    }

    /// The number of the first lifetime at or after a time.
    #[inline]
    fn number_from(&self, time: f64) -> usize {
        match self.lifetimes {
            [only] => usize::from(*only < time),
            all => all.partition_point(|lifetime| *lifetime < time),
        }
    }

    #[inline]
    fn outside_by(&self, row: u32) -> f64 {
        if self.are_outside { self.rows.outside_by[row as usize] } else { 0.0 }
    }

    /// A row that does not come to the end of the block: it leaves at `exit` if not before, at a rate.
    #[inline(always)]
    fn leave_row(&mut self, row: u32, exit: f64, block: BlockState) {
        let rate = self.outside_by(row);
        let (first, seen) = (self.number_from(block.birth), self.number_from(exit));
        let arrives = survival(rate, block.birth);
        for number in first..seen {
            self.add_leaf(row, number, arrives, rate, block);
        }
        if seen == self.lifetimes.len() {
            return;
        }
        let n_classes = self.out.len();
        let parent = &self.above[block.parent as usize * n_classes..][..n_classes];
        let classes = block.classes(self.masks, &self.root_classes);
        exit_into(classes, discount(self.model.gamma, exit - block.birth), parent, &mut self.out);
        let weight = arrives * survival(rate, exit - block.birth);
        for number in seen..self.lifetimes.len() {
            self.sums.add(row as usize, number, weight, &self.out);
        }
        self.add_leaving(row, seen..self.lifetimes.len(), arrives, rate, exit, block);
    }

    /// The block as a leaf at one lifetime, and what leaves it before.
    fn add_leaf(&mut self, row: u32, number: usize, arrives: f64, rate: f64, block: BlockState) {
        let n_classes = self.out.len();
        self.compute_leaf(number, block);
        let leaf = &self.leaf.distributions[(number - self.leaf.first) * n_classes..][..n_classes];
        let until = self.lifetimes[number];
        self.sums.add(row as usize, number, arrives * survival(rate, until - block.birth), leaf);
        self.add_leaving(row, number..number + 1, arrives, rate, until, block);
    }

    /// What a row gets that leaves the block at a rate before the time `until`.
    #[inline]
    fn add_leaving(
        &mut self,
        row: u32,
        numbers: std::ops::Range<usize>,
        arrives: f64,
        rate: f64,
        until: f64,
        block: BlockState,
    ) {
        if rate == 0.0 || numbers.is_empty() {
            return;
        }
        let (to_parent, to_classes) = leaving_weights(rate, self.model.gamma, until - block.birth);
        let n_classes = self.out.len();
        let parent = &self.above[block.parent as usize * n_classes..][..n_classes];
        exit_into(block.classes(self.masks, &self.root_classes), 0.0, parent, &mut self.out);
        for number in numbers {
            self.sums.add(row as usize, number, arrives * to_parent, parent);
            self.sums.add(row as usize, number, arrives * to_classes, &self.out);
        }
    }

    /// Computes a block's distribution as a leaf at a lifetime, once while no other block comes in between.
    fn compute_leaf(&mut self, number: usize, block: BlockState) {
        let n_classes = self.out.len();
        if self.leaf.block != Some(block) {
            self.leaf.first = self.number_from(block.birth);
            let cache = &mut self.leaf;
            cache.block = Some(block);
            cache.known.clear();
            if let (Some(counts), Kind::Inner(id)) = (&self.counts, block.child.kind()) {
                cache.counts.copy_from_slice(&counts[id.index() * n_classes..][..n_classes]);
            } else {
                cache.counts.fill(0);
                let (tree, classes) = (self.tree, self.model.classes);
                self.masks.count_below(tree, classes, block.child, &mut cache.counts, &mut cache.todo);
            }
        }
        let at = number - self.leaf.first;
        let cache = &mut self.leaf;
        if cache.known.get(at) == Some(&true) {
            return;
        }
        if cache.known.len() <= at {
            cache.known.resize(at + 1, false);
            cache.distributions.resize(cache.distributions.len().max((at + 1) * n_classes), 0.0);
        }
        let d = discount(self.model.gamma, self.lifetimes[number] - block.birth);
        let parent = &self.above[block.parent as usize * n_classes..][..n_classes];
        leaf_into(&cache.counts, d, parent, &mut cache.distributions[at * n_classes..][..n_classes]);
        cache.known[at] = true;
    }

    /// Rows at a cut that separates training points: the lifetimes that end in the block above it, and what leaves it.
    fn end_block(&mut self, rows: &[u32], time: f64, block: BlockState) {
        let (first, seen) = (self.number_from(block.birth), self.number_from(time));
        if first == seen && !self.are_outside {
            return;
        }
        for row in rows {
            let rate = self.outside_by(*row);
            let arrives = survival(rate, block.birth);
            for number in first..seen {
                self.add_leaf(*row, number, arrives, rate, block);
            }
            self.add_leaving(*row, seen..self.lifetimes.len(), arrives, rate, time, block);
        }
    }
}

impl<F: Sums> Visitor for Predictor<'_, F> {
    type State = BlockState;

    fn exits(&self, _: BlockState) -> Exits {
        Exits::Timed
    }

    #[inline]
    fn cut(&mut self, split: &Split<'_>, block: BlockState) -> [BlockState; 2] {
        let time = split.cut.time;
        self.end_block(split.rows, time, block);
        let node = split.node.expect("only cuts that separate training points are seen, and those are stored");
        let [below, above_cut] = self.masks.of_sides(node);
        let (n_classes, place) = (self.out.len(), block.parent as usize + 1);
        if self.above.len() < (place + 1) * n_classes {
            self.above.resize(2 * (place + 1) * n_classes, 0.0);
        }
        let (above, out) = self.above.split_at_mut(place * n_classes);
        let parent = &above[(place - 1) * n_classes..];
        let (tables, count) = tables_and_count(below, above_cut);
        let weights = InnerWeights::new(discount(self.model.gamma, time - block.birth), tables, count);
        inner_into(below, above_cut, weights, parent, &mut out[..n_classes]);
        Side::BOTH.map(|side| BlockState {
            child: Child::EMPTY,
            cut_by: Some((node, side)),
            birth: time,
            parent: place as u32,
        })
    }

    #[inline]
    fn enter(&mut self, child: Child, block: BlockState) -> BlockState {
        BlockState { child, ..block }
    }

    #[inline(always)]
    fn leave(&mut self, rows: &[u32], exit: Exit, block: BlockState) {
        if block.child == Child::EMPTY {
            // No training points: the distribution above the root.
            let n_classes = self.out.len();
            for row in rows {
                for number in 0..self.lifetimes.len() {
                    self.sums.add(*row as usize, number, 1.0, &self.above[..n_classes]);
                }
            }
            return;
        }
        let seen = self.number_from(exit.time);
        if self.are_outside || self.number_from(block.birth) < seen {
            rows.iter().for_each(|row| self.leave_row(*row, exit.time, block));
            return;
        }
        // All rows have the same distribution, at all lifetimes.
        let n_classes = self.out.len();
        let parent = &self.above[block.parent as usize * n_classes..][..n_classes];
        let classes = block.classes(self.masks, &self.root_classes);
        exit_into(classes, discount(self.model.gamma, exit.time - block.birth), parent, &mut self.out);
        for row in rows {
            for number in seen..self.lifetimes.len() {
                self.sums.add(*row as usize, number, 1.0, &self.out);
            }
        }
    }

    fn land(&mut self, rows: &[u32], child: Child, block: BlockState) {
        let first = self.number_from(block.birth);
        for row in rows {
            let outside_by = self.outside_by(*row);
            let rate = match (self.model.unseen, child.kind()) {
                (Unseen::Integrate, Kind::Single(point)) => {
                    // The nearest point of the box lies between the row and every point of the box, in each coordinate.
                    let frozen = self.model.forest.store().point(point);
                    let apart: f64 = self.coded.row(*row).iter().zip(frozen).map(|(a, b)| (a - b).abs()).sum();
                    outside_by + apart
                }
                _ => outside_by,
            };
            let arrives = survival(outside_by, block.birth);
            for number in first..self.lifetimes.len() {
                self.add_leaf(*row, number, arrives, rate, block);
            }
        }
    }

    fn resumes(&self, _: u32) -> bool {
        self.model.unseen == Unseen::Keyed
    }

    #[inline]
    fn put_aside(&mut self, rows: &[u32], block: BlockState, slot: usize) -> BlockState {
        self.sums.prefetch(rows[0] as usize);
        let n_classes = self.out.len();
        let from = block.parent as usize * n_classes;
        self.above.copy_within(from..from + n_classes, slot * n_classes);
        BlockState { parent: slot as u32, ..block }
    }
}
