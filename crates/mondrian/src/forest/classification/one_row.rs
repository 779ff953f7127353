//! The distribution of a single row, as a stream asks for it: down all trees in turns, without room for other rows.
//!
//! The numbers are those of many rows together ([`predict`](super::predict)), bit for bit. A row outside the root box, and cuts
//! that are integrated over, are left to that.

#![expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]

use std::cell::RefCell;

use crate::forest::Unseen;
use crate::forest::classification::masks::ClassMasks;
use crate::forest::classification::predict::ClassModel;
use crate::forest::classification::stable::{
    FEW_CLASSES, InnerWeights, discount, discount_all, exit_into, inner_into, inner_of_few, leaf_into, tables_and_count,
};
use crate::simd::vectorise;
use crate::tree::{Child, Found, NodeId, Place, Tree};

/// Room for a row, kept by each thread so that the next one allocates little.
#[derive(Default)]
struct Room {
    blocks: Blocks,
    /// The distribution of the block that the row is in, and room for the next.
    parent: Vec<f64>,
    out: Vec<f64>,
    mask: Vec<u64>,
    counts: Vec<u32>,
    todo: Vec<Child>,
}

/// A block that a row comes through, but the last in its tree.
#[derive(Debug, Clone, Copy)]
struct Block {
    /// The node whose cut ends it, and the classes on both sides of that if a word holds them.
    ended_by: NodeId,
    sides: [u64; 2],
    duration: f64,
}

/// The blocks that a row comes through in all trees, tree by tree.
#[derive(Default)]
struct Blocks {
    all: Vec<Block>,
    /// By block: the discount, then what the distribution takes from the parent's.
    scales: Vec<f64>,
    /// How many classes it has, then what a class gets that one child has.
    once: Vec<f64>,
    /// How many if a class of both children counts twice, then what a class gets more if both have it.
    again: Vec<f64>,
    /// By tree: where its blocks end, and when its last one begins, which no cut ends.
    ends: Vec<(usize, f64)>,
}

impl Blocks {
    fn clear(&mut self) {
        self.all.clear();
        self.ends.clear();
    }

    /// Appends the blocks of a tree.
    #[inline(always)]
    fn push(&mut self, tree: &Tree, masks: &ClassMasks, nodes: &[NodeId]) {
        let (mut n, mut birth) = (self.all.len(), 0.0);
        let Some(any) = nodes.first() else { return self.ends.push((n, birth)) };
        self.all.resize(n + nodes.len(), Block { ended_by: *any, sides: [0; 2], duration: 0.0 });
        for id in nodes {
            // Written whether it counts or not: which nodes separate training points cannot be predicted.
            let (node, sides) = (tree.node(*id), masks.words_of_sides(*id));
            self.all[n] = Block { ended_by: *id, sides, duration: node.time() - birth };
            n += usize::from(node.separates());
            birth = if node.separates() { node.time() } else { birth };
        }
        self.all.truncate(n);
        self.ends.push((n, birth));
    }

    /// Finds the [weights](InnerWeights) of all blocks, several at a time.
    #[inline(always)]
    fn weigh(&mut self, gamma: f64, trees: &[(Tree, ClassMasks)], n_words: usize) {
        let n = self.all.len();
        for numbers in [&mut self.scales, &mut self.once, &mut self.again] {
            numbers.resize(n, 0.0);
        }
        let (scales, once, again) = (&mut self.scales[..n], &mut self.once[..n], &mut self.again[..n]);
        scales.iter_mut().zip(&self.all).for_each(|(scale, block)| *scale = block.duration);
        if n_words == 1 {
            for (at, Block { sides: [below, above], .. }) in self.all.iter().enumerate() {
                (once[at], again[at]) = tables_and_count(&[*below], &[*above]);
            }
        } else {
            let mut first = 0;
            for ((_, masks), (end, _)) in trees.iter().zip(&self.ends) {
                for at in first..*end {
                    let [below, above] = masks.of_sides(self.all[at].ended_by);
                    (once[at], again[at]) = tables_and_count(below, above);
                }
                first = *end;
            }
        }
        discount_all(gamma, scales);
        for at in 0..n {
            let weights = InnerWeights::new(scales[at], once[at], again[at]);
            (scales[at], once[at], again[at]) = (weights.scale, weights.once, weights.again);
        }
    }

    /// Some of the blocks with their weights.
    #[inline(always)]
    fn weighed(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = (&Block, InnerWeights)> {
        let numbers = self.scales[range.clone()].iter().zip(&self.once[range.clone()]).zip(&self.again[range.clone()]);
        let weights = numbers.map(|((scale, once), again)| InnerWeights { scale: *scale, once: *once, again: *again });
        self.all[range].iter().zip(weights)
    }
}

thread_local! {
    static ROOM: RefCell<Room> = RefCell::default();
}

impl ClassModel<'_> {
    /// Adds up the distributions of all trees at a lifetime for a row of the root box, in the order of the trees. Whether this
    /// can be done.
    pub(crate) fn add_one_row(&self, x: &[f64], lifetime: f64, sums: &mut [f64]) -> bool {
        let root = self.forest.domain().root_box();
        // Cells are half-open: the lower corner lies outside.
        let is_inside = x.iter().zip(root.lower().iter().zip(root.upper())).all(|(x, (lo, hi))| lo < x && x <= hi);
        if self.unseen != Unseen::Keyed || !is_inside {
            return false;
        }
        let (trees, domain) = (self.forest.trees(), self.forest.domain());
        let tree = |number: usize| &trees[number].0;
        ROOM.with_borrow_mut(|room| {
            self.forest.with_places(|places| {
                places.descend(tree, trees.len(), (x, lifetime), |number, way, _| trees[number].1.prefetch(way));
                places.part(tree, domain, self.forest.store(), x);
                vectorise(
                    #[inline(always)]
                    || {
                        room.blocks.clear();
                        for ((tree, masks), place) in trees.iter().zip(&places.trees) {
                            room.blocks.push(tree, masks, &place.nodes);
                        }
                        room.blocks.weigh(self.gamma, trees, self.classes.n_words());
                        for (number, place) in places.trees.iter().enumerate() {
                            self.distribute(number, (x, lifetime), place, room);
                            sums.iter_mut().zip(&room.out).for_each(|(sum, p)| *sum += p);
                        }
                    },
                );
                places.ask(x, lifetime, Found::Partings);
            });
        });
        let scale = 1.0 / self.forest.n_trees() as f64;
        sums.iter_mut().for_each(|sum| *sum *= scale);
        true
    }

    /// The distribution of a row in one tree, written to `room.out`.
    #[inline(always)]
    fn distribute(&self, number: usize, (x, lifetime): (&[f64], f64), place: &Place, room: &mut Room) {
        let (tree, masks) = &self.forest.trees()[number];
        let (n_classes, n_words) = (self.classes.n_classes(), self.classes.n_words());
        let Room { blocks, parent, out, mask, counts, todo } = room;
        for distribution in [&mut *parent, &mut *out] {
            distribution.clear();
            distribution.resize(n_classes, 1.0 / n_classes as f64);
        }
        let first = number.checked_sub(1).map_or(0, |before| blocks.ends[before].0);
        let (end, birth) = blocks.ends[number];
        if n_classes <= FEW_CLASSES {
            let mut distribution = [1.0 / n_classes as f64; FEW_CLASSES];
            for (Block { sides: [below, above], .. }, weights) in blocks.weighed(first..end) {
                inner_of_few(*below, *above, weights, &mut distribution);
            }
            parent.copy_from_slice(&distribution[..n_classes]);
        } else {
            for (block, weights) in blocks.weighed(first..end) {
                let [below, above] = masks.of_sides(block.ended_by);
                inner_into(below, above, weights, parent, out);
                std::mem::swap(parent, out);
            }
        }
        let last = blocks.all[first..end].last().map(|block| (block.ended_by, tree.node(block.ended_by).side_of(x)));
        let block = last.map_or(tree.root(), |(id, side)| tree.child(tree.node(id), side));
        if block == Child::EMPTY {
            return;
        }
        if let Some(time) = place.time_of_leaving() {
            let d = discount(self.gamma, time - birth);
            if let Some((id, side)) = last {
                exit_into(masks.of_sides(id)[side.index()], d, parent, out);
                return;
            }
            mask.clear();
            mask.resize(n_words, 0);
            masks.mark(self.classes, block, mask);
            exit_into(mask, d, parent, out);
            return;
        }
        counts.clear();
        counts.resize(n_classes, 0);
        masks.count_below(tree, self.classes, block, counts, todo);
        leaf_into(counts, discount(self.gamma, lifetime - birth), parent, out);
    }
}

#[cfg(test)]
mod tests {
    use crate::forest::{ClassificationForest, ClassificationParams, ForestParams, LifetimeChoice};
    use crate::process::NodeKey;
    use crate::{Lifetime, Points};

    /// Whether two models have the same trees and classes.
    fn are_same(a: &ClassificationForest, b: &ClassificationForest) -> bool {
        let (a, b) = (a.forest(), b.forest());
        a.trees().iter().zip(b.trees()).all(|((x, _), (y, _))| x.same_as(a.store(), y, b.store()))
    }

    #[test]
    fn a_row_that_was_asked_for_is_learned_as_any_other() {
        let draw = |i: usize| NodeKey::root(12, i as u64).draw(0).uniform();
        for (n, n_dims) in [(60, 1), (80, 3), (70, 12)] {
            // Clusters, so that there are chains to leave and to split; some rows are repeated, and some lie far outside.
            let place = |row: usize, dim: usize| {
                let far = if row % 19 == 18 { 3.0 } else { 1.0 };
                far * draw(row % 5 * 20 + dim) + 1e-3 * draw(1000 + row * 3 / 4 * 20 + dim)
            };
            let x: Vec<f64> = (0..n * n_dims).map(|at| place(at / n_dims, at % n_dims)).collect();
            let row = |i: usize| Points::row_major(&x[i * n_dims..(i + 1) * n_dims], n_dims).unwrap();
            let class = |i: usize| [(draw(5000 + i) * 4.0) as u32];
            for lifetime in [0.7, 40.0, f64::INFINITY] {
                let lifetime = LifetimeChoice::Value(Lifetime::new(lifetime).unwrap());
                let forest = ForestParams { n_trees: 5, lifetime, ..ForestParams::default() };
                let params = ClassificationParams { forest, n_classes: Some(4), ..ClassificationParams::default() };
                let mut silent = params.fit(row(0), &class(0)).unwrap();
                let mut asked = silent.clone();
                for i in 1..n {
                    silent.learn(row(i), &class(i)).unwrap();
                    // The row itself, or first that and then another, or at a smaller lifetime last.
                    if i % 4 != 3 {
                        asked.predict_proba(row(i)).unwrap();
                    }
                    if i % 4 == 1 {
                        asked.predict_proba(row((i + 7) % n)).unwrap();
                    }
                    if i % 4 == 2 {
                        asked.at(Lifetime::new(0.2).unwrap()).unwrap().predict_proba(row(i)).unwrap();
                    }
                    // A change in between.
                    if i % 9 == 5 {
                        asked.forget(row(i - 1), &class(i - 1)).unwrap();
                        asked.learn(row(i - 1), &class(i - 1)).unwrap();
                    }
                    if i % 9 == 6 {
                        asked.predict_proba(row(i)).unwrap();
                        asked.forget(row(i - 1), &class(i - 1)).unwrap();
                        asked.learn(row(i), &class(i)).unwrap();
                        asked.learn(row(i - 1), &class(i - 1)).unwrap();
                    } else {
                        asked.learn(row(i), &class(i)).unwrap();
                    }
                    assert!(are_same(&silent, &asked), "D = {n_dims}, row {i}, {lifetime:?}");
                }
                let all = Points::row_major(&x, n_dims).unwrap();
                assert_eq!(silent.predict_proba(all).unwrap(), asked.predict_proba(all).unwrap());
                for i in 0..n {
                    let alone = asked.predict_proba(row(i)).unwrap();
                    let together = asked.predict_proba(Points::row_major(&x, n_dims).unwrap()).unwrap();
                    assert_eq!(alone, together[i * 4..][..4], "D = {n_dims}, row {i}, {lifetime:?}");
                }
            }
        }
    }

    #[test]
    fn a_row_on_its_own_says_what_it_says_among_others_however_many_classes() {
        let draw = |i: usize| NodeKey::root(31, i as u64).draw(0).uniform();
        let (n, n_dims) = (400, 3);
        let x: Vec<f64> = (0..n * n_dims).map(draw).collect();
        let queries: Vec<f64> =
            (0..60 * n_dims).map(|at| 0.05 + 0.9 * draw(9000 + at)).chain(x[..90].to_vec()).collect();
        // One vector, one word, and two and three words of classes, with the last class of each.
        for n_classes in [1, 2, 7, 8, 9, 63, 64, 65, 128, 150] {
            let labels: Vec<u32> = (0..n).map(|i| (draw(4000 + i) * n_classes as f64) as u32).collect();
            for lifetime in [3.0, f64::INFINITY] {
                let lifetime = LifetimeChoice::Value(Lifetime::new(lifetime).unwrap());
                let forest = ForestParams { n_trees: 4, lifetime, ..ForestParams::default() };
                let params = ClassificationParams { forest, ..ClassificationParams::default() }.n_classes(n_classes);
                let model = params.fit(Points::row_major(&x, n_dims).unwrap(), &labels).unwrap();
                let together = model.predict_proba(Points::row_major(&queries, n_dims).unwrap()).unwrap();
                for (row, expected) in queries.chunks_exact(n_dims).zip(together.chunks_exact(n_classes)) {
                    let row = Points::row_major(row, n_dims).unwrap();
                    let alone = model.predict_proba(row).unwrap();
                    let portable = crate::simd::portably(|| model.predict_proba(row).unwrap());
                    let bits = |shares: &[f64]| shares.iter().map(|p| p.to_bits()).collect::<Vec<_>>();
                    assert_eq!(bits(&alone), bits(expected), "{n_classes} classes, {lifetime:?}");
                    assert_eq!(bits(&portable), bits(expected), "{n_classes} classes, {lifetime:?}, without vectors");
                }
            }
        }
    }
}
