//! Beliefs of many rows at once, in the hierarchical model: they go down a tree together and part at each cut.
//!
//! Gives what [`Reader::hierarchical`] gives for each row inside the root box, bit for bit. The belief of a block is
//! computed once for all rows that come to it, and every node is read once.

use crate::forest::regression::posterior::{Belief, Gaussian, Reader};
use crate::process::Side;
use crate::simd::partition;
use crate::tree::{Child, CodedRows, Domain, Kind, Replay};

/// Rows that wait in a cell.
#[derive(Clone, Copy)]
struct Task {
    child: Child,
    start: usize,
    end: usize,
    /// Whether the child starts a block of its own.
    is_new_block: bool,
    is_in_root_block: bool,
}

pub(crate) struct BatchPredictor<'a> {
    reader: &'a Reader<'a>,
    gaussians: &'a [Gaussian],
    domain: &'a Domain,
    rows: &'a CodedRows<'a>,
    lifetime: f64,
    order: Vec<u32>,
    scratch: Vec<u32>,
    tasks: Vec<Task>,
    /// For each task what the block above its child believes, a number for each target.
    waiting: Vec<Belief>,
    /// What the current block believes.
    current: Vec<Belief>,
}

impl<'a> BatchPredictor<'a> {
    pub(crate) fn new(
        reader: &'a Reader<'a>,
        gaussians: &'a [Gaussian],
        domain: &'a Domain,
        rows: &'a CodedRows<'a>,
        lifetime: f64,
    ) -> Self {
        Self {
            reader,
            gaussians,
            domain,
            rows,
            lifetime,
            order: (0..rows.n_rows() as u32).collect(),
            scratch: Vec::new(),
            tasks: Vec::new(),
            waiting: Vec::new(),
            current: gaussians.iter().map(Belief::above_root).collect(),
        }
    }

    /// What each row believes at the end of its way, by row, then target.
    pub(crate) fn believe(mut self, beliefs: &mut Vec<Belief>) {
        beliefs.clear();
        beliefs.extend(self.order.iter().flat_map(|_| self.gaussians).map(Belief::prior));
        let root = self.reader.tree.root();
        if root == Child::EMPTY {
            return;
        }
        self.enter_block(root);
        self.descend(
            Task { child: root, start: 0, end: self.order.len(), is_new_block: false, is_in_root_block: true },
            beliefs,
        );
        while let Some(task) = self.tasks.pop() {
            let start = self.waiting.len() - self.gaussians.len();
            self.current.copy_from_slice(&self.waiting[start..]);
            self.waiting.truncate(start);
            if task.is_new_block {
                self.enter_block(task.child);
            }
            self.descend(task, beliefs);
        }
    }

    /// From what a block's parent believes to what it believes itself.
    fn enter_block(&mut self, child: Child) {
        let weight = self.reader.weight(child);
        for (target, (belief, gaussian)) in self.current.iter_mut().zip(self.gaussians).enumerate() {
            *belief = Belief::after(*belief, self.reader.sum(child, target), weight, gaussian);
        }
    }

    /// Takes rows that stand in a cell down, those below each cut first.
    fn descend(&mut self, task: Task, beliefs: &mut [Belief]) {
        let Task { mut child, mut start, mut end, mut is_in_root_block, .. } = task;
        while start < end {
            let node = match child.kind() {
                Kind::Inner(id) => self.reader.tree.node(id),
                Kind::Chain(id) => {
                    let middle = self.pass_chain(id, (start, end), is_in_root_block);
                    self.leave((middle, end), is_in_root_block, beliefs);
                    (child, end) = (self.reader.tree.chain(id).end(), middle);
                    continue;
                }
                Kind::Single(_) | Kind::Leaf(_) | Kind::Empty => break,
            };
            if node.time() > self.lifetime {
                break;
            }
            let order = &mut self.order[start..end];
            let middle = start + self.rows.part(order, &mut self.scratch, node.dim(), node.location());
            let (below, above) = (node.child(Side::Below), node.child(Side::Above));
            if node.separates() {
                is_in_root_block = false;
                if middle < end {
                    self.wait(Task { child: above, start: middle, end, is_new_block: true, is_in_root_block });
                }
                (child, end) = (below, middle);
                if start < end {
                    self.enter_block(child);
                }
            } else if below == Child::EMPTY {
                self.leave((start, middle), is_in_root_block, beliefs);
                (child, start) = (above, middle);
            } else {
                self.leave((middle, end), is_in_root_block, beliefs);
                (child, end) = (below, middle);
            }
        }
        self.land((start, end), beliefs);
    }

    /// Parts rows that come to a chain: those that have not left it within the lifetime first, up to what is returned.
    ///
    /// A lifetime that ends inside the run leaves some there. Outside the root block they believe the same as those
    /// that have left, so only in the root block is looked when each row leaves.
    fn pass_chain(&mut self, id: u32, (start, end): (usize, usize), is_in_root_block: bool) -> usize {
        let (tree, rows) = (self.reader.tree, self.rows);
        let x = |row: u32| rows.row(row);
        let order = &mut self.order[start..end];
        let chain = tree.chain(id);
        if chain.last_time() <= self.lifetime || !is_in_root_block {
            return start + partition(order, &mut self.scratch, |row| tree.chain_holds(id, x(row)));
        }
        if chain.first_time() > self.lifetime {
            return end;
        }
        let mut middle = order.len();
        let mut replay = Replay::on(self.domain.root_cell(tree.key()));
        replay.start(tree, x(order[0]), id);
        while let Some((cut, side)) = replay.next().filter(|(cut, _)| cut.time <= self.lifetime) {
            let stays = |row: u32| Side::of(x(row)[cut.dim as usize], cut.location) == side;
            middle = partition(&mut order[..middle], &mut self.scratch, stays);
        }
        start + middle
    }

    fn wait(&mut self, task: Task) {
        self.waiting.extend_from_slice(&self.current);
        self.tasks.push(task);
    }

    /// Rows that leave a block through a side without training points believe what it believes; the root's, the prior.
    fn leave(&self, rows: (usize, usize), is_in_root_block: bool, beliefs: &mut [Belief]) {
        if !is_in_root_block {
            self.land(rows, beliefs);
        }
    }

    fn land(&self, (start, end): (usize, usize), beliefs: &mut [Belief]) {
        let t = self.gaussians.len();
        for row in &self.order[start..end] {
            beliefs[*row as usize * t..][..t].copy_from_slice(&self.current);
        }
    }
}
