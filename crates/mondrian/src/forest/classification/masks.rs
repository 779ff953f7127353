//! Which classes each point has, and which classes each node of a tree has below it.
//!
//! In the hierarchical model an inner block's count of a class is the number of its children that have the class
//! (docs/design.md, "Classification"). So a node keeps one bit per class, not one count, and the counts of a leaf come
//! from its points.

use std::collections::BTreeMap;

use crate::forest::NodeStatistics;
use crate::forest::sample::{PointLabels, SampleSize};
use crate::simd::prefetch::prefetch;
use crate::tree::{Child, Descent, Kind, LeafId, NodeId, Touched, Tree};
use crate::{Error, Result};

/// More classes than this are refused: every node keeps a bit for each.
pub(crate) const MAX_CLASSES: usize = 1 << 16;

/// Stands for the class of a point that has several.
const MIXED: u32 = u32::MAX;

/// How many rows of each class each point has. Points are those of a store, shared by all trees.
#[derive(Debug, Clone, Default)]
pub(crate) struct PointClasses {
    n_classes: usize,
    /// Class and count by slot; [`MIXED`] where the point has several classes, count 0 where it has none.
    pure: Vec<(u32, u32)>,
    /// The points with several classes: (class, count), ascending by class.
    mixed: BTreeMap<u32, Vec<(u32, u32)>>,
}

impl PointClasses {
    pub(crate) fn new(n_classes: usize) -> Self {
        Self { n_classes, ..Self::default() }
    }

    pub(crate) fn n_classes(&self) -> usize {
        self.n_classes
    }

    /// Words of a mask.
    pub(crate) fn n_words(&self) -> usize {
        self.n_classes.div_ceil(64)
    }

    pub(crate) fn set_n_classes(&mut self, n_classes: usize) {
        self.n_classes = n_classes;
    }

    /// (class, count) of a point, ascending by class.
    #[inline]
    pub(crate) fn of(&self, point: u32) -> &[(u32, u32)] {
        match self.pure.get(point as usize) {
            None | Some((_, 0)) => &[],
            Some((MIXED, _)) => &self.mixed[&point],
            Some(only) => std::slice::from_ref(only),
        }
    }

    /// How many rows of a class a point has.
    pub(crate) fn count(&self, point: u32, class: u32) -> u32 {
        self.of(point).iter().find(|(k, _)| *k == class).map_or(0, |(_, n)| *n)
    }

    /// One more row of a class at a point.
    pub(crate) fn add(&mut self, point: u32, class: u32) {
        self.add_rows(point, class, 1);
    }

    /// More rows, at least one, of a class at a point.
    pub(crate) fn add_rows(&mut self, point: u32, class: u32, rows: u32) {
        let at = point as usize;
        if self.pure.len() <= at {
            self.pure.resize(at + 1, (0, 0));
        }
        match &mut self.pure[at] {
            empty @ (_, 0) => *empty = (class, rows),
            (MIXED, _) => {
                let counts = self.mixed.get_mut(&point).expect("a mixed point has its counts");
                match counts.binary_search_by_key(&class, |(k, _)| *k) {
                    Ok(i) => counts[i].1 += rows,
                    Err(i) => counts.insert(i, (class, rows)),
                }
            }
            (held, count) if *held == class => *count += rows,
            only => {
                let mut counts = vec![*only, (class, rows)];
                counts.sort_unstable();
                self.mixed.insert(point, counts);
                *only = (MIXED, 1);
            }
        }
    }

    /// One row less of a class at a point that has it.
    pub(crate) fn remove(&mut self, point: u32, class: u32) {
        if self.pure[point as usize].0 != MIXED {
            self.pure[point as usize].1 -= 1;
            return;
        }
        let counts = self.mixed.get_mut(&point).expect("a mixed point has its counts");
        let at = counts.iter().position(|(k, _)| *k == class).expect("the point has the class");
        counts[at].1 -= 1;
        if counts[at].1 == 0 {
            counts.remove(at);
        }
        if let [only] = counts[..] {
            self.pure[point as usize] = only;
            self.mixed.remove(&point);
        }
    }

    /// Adds a point's rows to dense counts.
    fn add_to(&self, point: u32, counts: &mut [u32]) {
        self.of(point).iter().for_each(|(k, n)| counts[*k as usize] += n);
    }

    /// Sets the bits of a point's classes.
    #[inline]
    pub(crate) fn mark(&self, point: u32, mask: &mut [u64]) {
        for (class, _) in self.of(point) {
            mask[*class as usize / 64] |= 1 << (class % 64);
        }
    }
}

/// The classes on both sides of each node and in each leaf of one tree, one bit per class.
///
/// A node keeps the classes of its children, so that they are read where the node is and not wherever in memory the children are.
#[derive(Debug, Clone, Default)]
pub struct ClassMasks {
    n_words: usize,
    /// By node: the classes below its cut, then those above.
    nodes: Vec<u64>,
    leaves: Vec<u64>,
}

/// The rows of each class below every node, node by node, from the leaves up: for those who ask about many nodes.
pub(crate) fn counts_of_nodes(tree: &Tree, classes: &PointClasses) -> Vec<u32> {
    let n_classes = classes.n_classes();
    let mut counts = vec![0; tree.n_nodes() * n_classes];
    for id in tree.children_first() {
        let at = id.index() * n_classes;
        for child in tree.children(tree.node(id)) {
            match child.kind() {
                Kind::Inner(child) => {
                    let from = child.index() * n_classes;
                    for k in 0..n_classes {
                        counts[at + k] += counts[from + k];
                    }
                }
                Kind::Leaf(leaf) => {
                    let counts = &mut counts[at..at + n_classes];
                    tree.leaf(leaf).points().iter().for_each(|point| classes.add_to(*point, counts));
                }
                Kind::Single(point) => classes.add_to(point, &mut counts[at..at + n_classes]),
                Kind::Empty => {}
            }
        }
    }
    counts
}

impl ClassMasks {
    /// The classes below and above a node's cut.
    #[inline]
    pub(crate) fn of_sides(&self, id: NodeId) -> [&[u64]; 2] {
        let (below, above) = self.nodes[2 * id.index() * self.n_words..][..2 * self.n_words].split_at(self.n_words);
        [below, above]
    }

    /// The same as words, if all classes are in one; else the first two words below the cut.
    #[inline]
    pub(crate) fn words_of_sides(&self, id: NodeId) -> [u64; 2] {
        let start = 2 * id.index() * self.n_words;
        [self.nodes[start], self.nodes[start + 1]]
    }

    /// Asks for the memory of what a node says, if a way down has come to one.
    #[inline]
    pub(crate) fn prefetch(&self, way: &Descent) {
        prefetch(&self.nodes, 2 * way.number() * self.n_words);
    }

    /// Sets the bits of all classes below a child.
    #[inline]
    pub(crate) fn mark(&self, classes: &PointClasses, child: Child, mask: &mut [u64]) {
        mask.iter_mut().enumerate().for_each(|(at, word)| *word |= self.word_below(classes, child, at));
    }

    /// Adds the rows of all points below a child to dense counts.
    ///
    /// What has one class only is not looked into: deep down that is nearly everything.
    pub(crate) fn count_below(
        &self,
        tree: &Tree,
        classes: &PointClasses,
        child: Child,
        counts: &mut [u32],
        todo: &mut Vec<Child>,
    ) {
        todo.push(child);
        while let Some(child) = todo.pop() {
            match child.kind() {
                Kind::Inner(id) => match self.only_class(self.of_sides(id)) {
                    Some(class) => counts[class] += tree.node(id).count(),
                    None => todo.extend(tree.children(tree.node(id))),
                },
                Kind::Leaf(id) => match self.only_class([self.of_leaf(id); 2]) {
                    Some(class) => counts[class] += tree.leaf(id).count(),
                    None => tree.leaf(id).points().iter().for_each(|p| classes.add_to(*p, counts)),
                },
                Kind::Single(point) => classes.add_to(point, counts),
                Kind::Empty => {}
            }
        }
    }

    #[inline]
    fn of_leaf(&self, id: LeafId) -> &[u64] {
        &self.leaves[id.index() * self.n_words..][..self.n_words]
    }

    /// The class of two masks that have no other.
    #[inline]
    fn only_class(&self, [below, above]: [&[u64]; 2]) -> Option<usize> {
        let mut found = None;
        for at in 0..self.n_words {
            let word = below[at] | above[at];
            if word != 0 {
                if found.is_some() || !word.is_power_of_two() {
                    return None;
                }
                found = Some(at * 64 + word.trailing_zeros() as usize);
            }
        }
        found
    }

    /// Bytes taken.
    pub(crate) fn n_bytes(&self) -> usize {
        size_of_val(self.nodes.as_slice()) + size_of_val(self.leaves.as_slice())
    }

    fn fit_to(&mut self, tree: &Tree) {
        self.nodes.resize(2 * tree.n_nodes() * self.n_words, 0);
        self.leaves.resize(tree.n_leaves() * self.n_words, 0);
    }

    fn update_leaf(&mut self, tree: &Tree, classes: &PointClasses, id: LeafId) {
        let mask = &mut self.leaves[id.index() * self.n_words..][..self.n_words];
        mask.fill(0);
        tree.leaf(id).points().iter().for_each(|p| classes.mark(*p, mask));
    }

    /// A word of the classes below a child.
    #[inline]
    fn word_below(&self, classes: &PointClasses, child: Child, at: usize) -> u64 {
        match child.kind() {
            Kind::Inner(id) => {
                let start = 2 * id.index() * self.n_words + at;
                self.nodes[start] | self.nodes[start + self.n_words]
            }
            Kind::Leaf(id) => self.leaves[id.index() * self.n_words + at],
            Kind::Single(point) => {
                let of_word = classes.of(point).iter().filter(|(class, _)| *class as usize / 64 == at);
                of_word.fold(0, |word, (class, _)| word | 1 << (class % 64))
            }
            Kind::Empty => 0,
        }
    }

    /// Finds the classes of a node; whether they are others than before.
    #[inline]
    fn update_node(&mut self, tree: &Tree, classes: &PointClasses, id: NodeId) -> bool {
        let mut has_changed = false;
        for (side, child) in tree.children(tree.node(id)).into_iter().enumerate() {
            for at in 0..self.n_words {
                let word = self.word_below(classes, child, at);
                let held = &mut self.nodes[(2 * id.index() + side) * self.n_words + at];
                has_changed |= std::mem::replace(held, word) != word;
            }
        }
        has_changed
    }
}

impl PointLabels for PointClasses {
    const SAMPLE_SIZE: SampleSize = SampleSize { factor: 2, least: 64 };

    fn emptied(&self) -> Self {
        Self::new(self.n_classes)
    }

    fn copy_point(&mut self, from: &Self, theirs: u32, ours: u32) {
        from.of(theirs).iter().for_each(|(class, rows)| self.add_rows(ours, *class, *rows));
    }

    fn clear_point(&mut self, point: u32) {
        self.mixed.remove(&point);
        self.pure[point as usize] = (0, 0);
    }

    fn take_change(&mut self) -> bool {
        false
    }

    fn adapt(&mut self, others: &Self) -> bool {
        std::mem::replace(&mut self.n_classes, others.n_classes) != others.n_classes
    }
}

impl NodeStatistics for PointClasses {
    type Stats = ClassMasks;
    /// A class per row, and how many classes are known.
    type Rows<'a> = (&'a [u32], usize);

    fn take(&mut self, points: &[u32], (labels, n_classes): Self::Rows<'_>) -> bool {
        let n_words = self.n_words();
        self.set_n_classes(n_classes);
        points.iter().zip(labels).for_each(|(point, class)| self.add(*point, *class));
        self.n_words() != n_words
    }

    fn gather(&self, tree: &Tree, stats: &mut ClassMasks) {
        stats.n_words = self.n_words();
        stats.fit_to(tree);
        tree.leaf_ids().for_each(|id| stats.update_leaf(tree, self, id));
        for id in tree.children_first() {
            stats.update_node(tree, self, id);
        }
    }

    fn update(&self, tree: &Tree, touched: &Touched, stats: &mut ClassMasks) {
        if stats.n_words != self.n_words() {
            return self.gather(tree, stats);
        }
        stats.fit_to(tree);
        touched.leaves.iter().for_each(|id| stats.update_leaf(tree, self, *id));
        for id in touched.nodes.iter().rev() {
            // A new node had no classes, so this is one that was there before; and a class is rarely new far down.
            if !stats.update_node(tree, self, *id) && touched.is_path {
                return;
            }
        }
    }
}

/// Refuses labels that are no class numbers below `n_classes`, or not one per row.
pub(crate) fn check_labels(n_rows: usize, labels: &[u32], n_classes: usize) -> Result<()> {
    if labels.len() != n_rows {
        return Err(Error::LengthMismatch { what: "labels", expected: n_rows, found: labels.len() });
    }
    if n_classes == 0 {
        return Err(Error::InvalidParameter { name: "n_classes", value: 0.0, expected: "at least 1" });
    }
    if n_classes > MAX_CLASSES {
        return Err(Error::TooLarge { what: "classes", expected: n_classes as f64, limit: MAX_CLASSES as f64 });
    }
    match labels.iter().find(|k| **k as usize >= n_classes) {
        None => Ok(()),
        Some(label) => Err(Error::InvalidParameter {
            name: "label",
            value: f64::from(*label),
            expected: "a class number below n_classes",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_come_and_go() {
        let mut classes = PointClasses::new(5);
        for class in [3, 1, 3] {
            classes.add(2, class);
        }
        assert_eq!(classes.of(2), [(1, 1), (3, 2)]);
        assert_eq!((classes.count(2, 3), classes.count(2, 0), classes.of(0)), (2, 0, &[][..]));
        classes.remove(2, 1);
        assert_eq!(classes.of(2), [(3, 2)]);
        assert!(classes.mixed.is_empty());
        classes.remove(2, 3);
        classes.remove(2, 3);
        assert!(classes.of(2).is_empty());
        classes.add(2, 4);
        assert_eq!(classes.of(2), [(4, 1)]);
    }

    #[test]
    fn refuses_what_is_no_class() {
        assert!(check_labels(2, &[0, 1], 2).is_ok());
        assert!(matches!(check_labels(2, &[0], 2), Err(Error::LengthMismatch { .. })));
        assert!(matches!(check_labels(1, &[2], 2), Err(Error::InvalidParameter { name: "label", .. })));
        assert!(matches!(check_labels(0, &[], 0), Err(Error::InvalidParameter { name: "n_classes", .. })));
        assert!(matches!(check_labels(0, &[], usize::MAX), Err(Error::TooLarge { .. })));
    }
}
