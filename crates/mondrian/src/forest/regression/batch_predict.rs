//! Predictions of the hierarchical model for many rows at once.
//!
//! Gives what [`Reader::hierarchical`] gives for each row inside the root box, bit for bit. The posterior of a block is
//! computed once for all rows that come to it.

use crate::forest::regression::posterior::{Gaussian, Posterior, Reader};
use crate::tree::{Child, Exit, Exits, Split, Traversal, Visitor};

/// The posteriors of all rows, filled in on the way down a tree.
pub(crate) struct BatchPredictor<'a> {
    reader: &'a Reader<'a>,
    gaussians: &'a [Gaussian],
    /// By row, then target; the prior where a row left the root block.
    posteriors: &'a mut [Posterior],
    /// By [place](Place), then target: the blocks between the root and the current one, and their siblings.
    blocks: Vec<Posterior>,
}

/// The place of a block: 0 for the root's, then two for each level, for the sides of a cut.
type Place = u32;

impl<'a> BatchPredictor<'a> {
    /// Predicts all rows of a traversal, which draws no cuts: rows that leave a block below the root's are predicted as
    /// those that stay.
    pub(crate) fn predict(
        reader: &'a Reader<'a>,
        gaussians: &'a [Gaussian],
        traversal: &Traversal<'_>,
        posteriors: &'a mut Vec<Posterior>,
    ) {
        let n_rows = traversal.rows.n_rows();
        posteriors.clear();
        posteriors.extend((0..n_rows).flat_map(|_| gaussians).map(Posterior::prior));
        let root = reader.tree.root();
        if root == Child::EMPTY {
            return;
        }
        let mut predictor = Self { reader, gaussians, posteriors, blocks: Vec::new() };
        predictor.blocks.extend(gaussians.iter().map(Posterior::above_root));
        predictor.update(0, 0, root);
        let mut order: Vec<u32> = (0..n_rows as u32).collect();
        traversal.run(&mut order, 0, &mut predictor);
    }

    /// Computes the posterior of a block from that of its parent.
    #[inline]
    fn update(&mut self, parent: Place, place: Place, child: Child) {
        let n_targets = self.gaussians.len();
        let (parent, place) = (parent as usize * n_targets, place as usize * n_targets);
        let weight = self.reader.weight(child);
        for (target, gaussian) in self.gaussians.iter().enumerate() {
            let above = self.blocks[parent + target];
            self.blocks[place + target] = Posterior::after(above, self.reader.sum(child, target), weight, gaussian);
        }
    }

    fn set(&mut self, rows: &[u32], place: Place) {
        let n_targets = self.gaussians.len();
        let block = &self.blocks[place as usize * n_targets..][..n_targets];
        for row in rows {
            self.posteriors[*row as usize * n_targets..][..n_targets].copy_from_slice(block);
        }
    }
}

impl Visitor for BatchPredictor<'_> {
    type State = Place;

    fn exits(&self, block: Place) -> Exits {
        if block == 0 { Exits::Untimed } else { Exits::Ignored }
    }

    #[inline]
    fn cut(&mut self, split: &Split<'_>, block: Place) -> [Place; 2] {
        // From 0 to 1 and 2, from those to 3 and 4.
        let first = block.next_multiple_of(2) + 1;
        let n_blocks = (first as usize + 2) * self.gaussians.len();
        if self.blocks.len() < n_blocks {
            let filler = self.blocks[0];
            self.blocks.resize(2 * n_blocks, filler);
        }
        for side in [0, 1] {
            if split.has_rows()[side] {
                self.update(block, first + side as u32, split.children[side]);
            }
        }
        [first, first + 1]
    }

    #[inline]
    fn leave(&mut self, rows: &[u32], _: Exit, block: Place) {
        if block != 0 {
            self.set(rows, block);
        }
    }

    #[inline]
    fn land(&mut self, rows: &[u32], _: Child, block: Place) {
        self.set(rows, block);
    }

    fn resumes(&self, _: u32) -> bool {
        false
    }
}
