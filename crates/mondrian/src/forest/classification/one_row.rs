//! The distribution of a single row, as a stream asks for it: down all trees in turns, without room for other rows.
//!
//! The numbers are those of many rows together ([`predict`](super::predict)), bit for bit. A row outside the root box, and cuts
//! that are integrated over, are left to that.

use std::cell::RefCell;

use crate::forest::Unseen;
use crate::forest::classification::predict::ClassModel;
use crate::forest::classification::stable::{discount, exit_into, inner_into, leaf_into};
use crate::tree::{Child, Descent, DescentStep, Tracer};

/// Room for a row, kept by each thread so that the next one allocates little.
#[derive(Default)]
struct Room {
    tracer: Tracer,
    blocks: Vec<Blocks>,
    /// The distribution of the block that the row is in, and room for the next.
    parent: Vec<f64>,
    out: Vec<f64>,
    mask: Vec<u64>,
    counts: Vec<u32>,
    todo: Vec<Child>,
}

/// The blocks that a row comes through in one tree.
#[derive(Default)]
struct Blocks {
    /// When each ends but the last.
    times: Vec<f64>,
    /// The classes below and above each such cut, so many words each.
    masks: Vec<u64>,
    last: Option<Child>,
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
        ROOM.with_borrow_mut(|room| {
            room.blocks.resize_with(self.forest.n_trees(), Blocks::default);
            let ways = self.descend(x, lifetime, &mut room.blocks);
            for (tree, way) in ways.iter().enumerate() {
                self.distribute(tree, x, lifetime, way, room);
                sums.iter_mut().zip(&room.out).for_each(|(sum, p)| *sum += p);
            }
        });
        let scale = 1.0 / self.forest.n_trees() as f64;
        sums.iter_mut().for_each(|sum| *sum *= scale);
        true
    }

    /// The ways of a row down all trees, gone in turns: at every node one waits for memory, and meanwhile the others go on.
    fn descend(&self, x: &[f64], lifetime: f64, blocks: &mut [Blocks]) -> Vec<Descent<'_>> {
        let (trees, n_words) = (self.forest.trees(), self.classes.n_words());
        let mut ways: Vec<Descent<'_>> = trees.iter().map(|(tree, _)| Descent::new(tree, lifetime)).collect();
        for (blocks, (tree, _)) in blocks.iter_mut().zip(trees) {
            blocks.times.clear();
            blocks.masks.clear();
            blocks.last = Some(tree.root());
        }
        let mut going: Vec<u32> = (0..ways.len() as u32).collect();
        while !going.is_empty() {
            let mut at = 0;
            while at < going.len() {
                let number = going[at] as usize;
                match ways[number].step(x) {
                    DescentStep::Block(node, child) => {
                        let ((tree, masks), blocks) = (&trees[number], &mut blocks[number]);
                        blocks.times.push(node.time());
                        for side in tree.children(node) {
                            let start = blocks.masks.len();
                            blocks.masks.resize(start + n_words, 0);
                            masks.mark(self.classes, side, &mut blocks.masks[start..]);
                        }
                        blocks.last = Some(child);
                        at += 1;
                    }
                    DescentStep::Passed => at += 1,
                    DescentStep::Left | DescentStep::Stayed | DescentStep::Unclear => {
                        going.swap_remove(at);
                    }
                }
            }
        }
        ways
    }

    /// The distribution of a row in one tree, written to `room.out`.
    fn distribute(&self, tree: usize, x: &[f64], lifetime: f64, way: &Descent<'_>, room: &mut Room) {
        let ((tree, masks), blocks) = (&self.forest.trees()[tree], &room.blocks[tree]);
        let (n_classes, n_words) = (self.classes.n_classes(), self.classes.n_words());
        let Room { tracer, parent, out, mask, counts, todo, .. } = room;
        for distribution in [&mut *parent, &mut *out] {
            distribution.clear();
            distribution.resize(n_classes, 1.0 / n_classes as f64);
        }
        let Some(last) = blocks.last.filter(|last| *last != Child::EMPTY) else { return };
        let mut birth = 0.0;
        for (time, sides) in blocks.times.iter().zip(blocks.masks.chunks_exact(2 * n_words)) {
            let (below, above) = sides.split_at(n_words);
            inner_into(below, above, discount(self.gamma, time - birth), parent, out);
            std::mem::swap(parent, out);
            birth = *time;
        }
        let parts = (tree, self.forest.domain(), self.forest.store());
        if let Some(time) = tracer.time_of_leaving(parts, x, lifetime, way) {
            mask.clear();
            mask.resize(n_words, 0);
            masks.mark(self.classes, last, mask);
            exit_into(mask, discount(self.gamma, time - birth), parent, out);
            return;
        }
        counts.clear();
        counts.resize(n_classes, 0);
        masks.count_below(tree, self.classes, last, counts, todo);
        leaf_into(counts, discount(self.gamma, lifetime - birth), parent, out);
    }
}
