//! The distribution of a single row, as a stream asks for it: down each tree on its own, without room for others.
//!
//! The numbers are those of many rows together ([`predict`](super::predict)), bit for bit. A row outside the root box, and cuts
//! that are integrated over, are left to that.

use std::cell::RefCell;

use crate::forest::Unseen;
use crate::forest::classification::predict::ClassModel;
use crate::forest::classification::stable::{discount, exit_into, inner_into, leaf_into};
use crate::tree::{Child, Landing, Tracer};

/// Room for a row, kept by each thread so that the next one allocates nothing.
#[derive(Default)]
struct Room {
    tracer: Tracer,
    /// The distribution of the block that the row is in, and room for the next.
    parent: Vec<f64>,
    out: Vec<f64>,
    below: Vec<u64>,
    above: Vec<u64>,
    counts: Vec<u32>,
    todo: Vec<Child>,
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
            for tree in 0..self.forest.n_trees() {
                self.follow(tree, x, lifetime, room);
                sums.iter_mut().zip(&room.out).for_each(|(sum, p)| *sum += p);
            }
        });
        let scale = 1.0 / self.forest.n_trees() as f64;
        sums.iter_mut().for_each(|sum| *sum *= scale);
        true
    }

    /// The distribution of a row in one tree, written to `room.out`.
    fn follow(&self, tree: usize, x: &[f64], lifetime: f64, room: &mut Room) {
        let (tree, masks) = &self.forest.trees()[tree];
        let (n_classes, n_words) = (self.classes.n_classes(), self.classes.n_words());
        let Room { tracer, parent, out, below, above, counts, todo } = room;
        for distribution in [&mut *parent, &mut *out] {
            distribution.clear();
            distribution.resize(n_classes, 1.0 / n_classes as f64);
        }
        if tree.root() == Child::EMPTY {
            return;
        }
        for mask in [&mut *below, &mut *above] {
            mask.clear();
            mask.resize(n_words, 0);
        }
        let mark = |mask: &mut [u64], child: Child| {
            mask.fill(0);
            masks.mark(self.classes, child, mask);
        };
        let (mut block, mut birth) = (tree.root(), 0.0);
        let parts = (tree, self.forest.domain(), self.forest.store());
        let landing = tracer.trace(parts, x, lifetime, |node, child| {
            if node.separates() {
                let sides = tree.children(node);
                mark(below, sides[0]);
                mark(above, sides[1]);
                inner_into(below, above, discount(self.gamma, node.time() - birth), parent, out);
                std::mem::swap(parent, out);
                (block, birth) = (child, node.time());
            }
        });
        if let Landing::Unseen { time, .. } = landing {
            mark(below, block);
            exit_into(below, discount(self.gamma, time - birth), parent, out);
            return;
        }
        counts.clear();
        counts.resize(n_classes, 0);
        masks.count_below(tree, self.classes, block, counts, todo);
        leaf_into(counts, discount(self.gamma, lifetime - birth), parent, out);
    }
}
