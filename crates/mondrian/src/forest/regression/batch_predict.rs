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
    /// By depth, then target: the block that rows are in, and those above it. The root's is the second.
    blocks: Vec<Posterior>,
}

/// How many blocks lie above: 1 for the root's.
type Depth = u32;

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
        predictor.enter(root, 1);
        let mut order: Vec<u32> = (0..n_rows as u32).collect();
        traversal.run(&mut order, 1, &mut predictor);
    }

    fn set(&mut self, rows: &[u32], depth: Depth) {
        let n_targets = self.gaussians.len();
        let block = &self.blocks[depth as usize * n_targets..][..n_targets];
        for row in rows {
            self.posteriors[*row as usize * n_targets..][..n_targets].copy_from_slice(block);
        }
    }
}

impl Visitor for BatchPredictor<'_> {
    type State = Depth;

    fn exits(&self, depth: Depth) -> Exits {
        if depth == 1 { Exits::Untimed } else { Exits::Ignored }
    }

    #[inline]
    fn cut(&mut self, _: &Split<'_>, depth: Depth) -> [Depth; 2] {
        [depth + 1; 2]
    }

    /// Computes the posterior of a block from that of its parent.
    #[inline]
    fn enter(&mut self, child: Child, depth: Depth) -> Depth {
        let n_targets = self.gaussians.len();
        let place = depth as usize * n_targets;
        if self.blocks.len() < place + n_targets {
            self.blocks.extend(self.gaussians.iter().map(Posterior::above_root));
        }
        let weight = self.reader.weight(child);
        for (target, gaussian) in self.gaussians.iter().enumerate() {
            let above = self.blocks[place - n_targets + target];
            self.blocks[place + target] = Posterior::after(above, self.reader.sum(child, target), weight, gaussian);
        }
        depth
    }

    #[inline]
    fn leave(&mut self, rows: &[u32], _: Exit, depth: Depth) {
        if depth != 1 {
            self.set(rows, depth);
        }
    }

    #[inline]
    fn land(&mut self, rows: &[u32], _: Child, depth: Depth) {
        self.set(rows, depth);
    }

    fn resumes(&self, _: u32) -> bool {
        false
    }
}
