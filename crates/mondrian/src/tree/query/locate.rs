//! Where a point lies in a tree at a lifetime: exactly, frozen cells included.

use crate::process::{Cut, Side};
use crate::tree::arena::node::LinkKind;
use crate::tree::query::replay::Replay;
use crate::tree::{ChainId, Child, Domain, Link, Node, PointStore, Tree};

/// The cell a point lies in at some lifetime.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Landing {
    /// A cell that holds training points: all those under this child.
    Seen(Child),
    /// A cell without training points, which the point came to at `time`, below the cell of `parent`.
    Unseen {
        /// The time of the cut that took the point away from the training points.
        time: f64,
        /// The smallest part of the tree that still had the point.
        parent: Child,
    },
}

/// Finds cells of points, one after the other; keeps what it needs to make cuts that are not stored.
#[derive(Debug)]
pub struct Locator<'a> {
    tree: &'a Tree,
    store: &'a PointStore,
    domain: &'a Domain,
    lifetime: f64,
    /// Draws cuts that are not stored, once that was needed.
    replay: Option<Box<Replay>>,
}

/// Where the stored tree leaves a point.
enum Stop {
    /// In a cell that holds all training points under a child.
    Seen(Child),
    /// In a frozen cell, which came to be at a time.
    Frozen { point: u32, birth: f64 },
    /// In a cell without points, below the cell of `parent`.
    Empty { time: f64, parent: Child },
    /// On the way through a chain, within the lifetime.
    Chain(ChainId),
}

impl<'a> Locator<'a> {
    /// Looks at `tree` with a lifetime of at most the domain's.
    pub fn new(tree: &'a Tree, domain: &'a Domain, store: &'a PointStore, lifetime: crate::Lifetime) -> Self {
        let lifetime = lifetime.min(domain.lifetime()).get();
        Self { tree, store, domain, lifetime, replay: None }
    }

    /// The cell of a point of the root box.
    ///
    /// # Panics
    /// For a point of another number of dimensions, and for one outside the root box that leaves a run of cuts on a side
    /// that none of them has.
    pub fn locate(&mut self, x: &[f64]) -> Landing {
        match self.descend(x, |_, _| {}) {
            Stop::Seen(child) => Landing::Seen(child),
            Stop::Frozen { point, .. } => self.resume(x, point),
            Stop::Empty { time, parent } => Landing::Unseen { time, parent },
            Stop::Chain(id) => {
                let time = self.time_of_leaving(x, id).expect("a point outside the sub-box leaves");
                Landing::Unseen { time, parent: Child::of(self.tree.chain(id).end()) }
            }
        }
    }

    /// The training points that share the cell of a point of the root box, as the child they are under, if there are any:
    /// what [`Locator::locate`] has seen, without asking when the point left the others.
    pub fn cell_of(&mut self, x: &[f64]) -> Option<Child> {
        let landing = match self.descend(x, |_, _| {}) {
            Stop::Seen(child) => return Some(child),
            Stop::Frozen { point, .. } => self.resume(x, point),
            Stop::Empty { .. } | Stop::Chain(_) => return None,
        };
        if let Landing::Seen(child) = landing { Some(child) } else { None }
    }

    /// The training cell that a point of the root box may share, and with what probability it does: cuts of frozen
    /// cells, which were never instantiated, are integrated over (docs/design.md, "Freezing"). An empty child where it
    /// shares none.
    pub fn locate_in_law(&mut self, x: &[f64]) -> (Child, f64) {
        match self.descend(x, |_, _| {}) {
            Stop::Seen(child) => (child, 1.0),
            Stop::Frozen { point, birth } => {
                let distance: f64 = x.iter().zip(self.store.point(point)).map(|(a, b)| (a - b).abs()).sum();
                let stays = if distance == 0.0 { 1.0 } else { (-(self.lifetime - birth) * distance).exp() };
                (Child::single(point), stays)
            }
            Stop::Empty { .. } | Stop::Chain(_) => (Child::EMPTY, 1.0),
        }
    }

    /// Follows a point of the root box down the stored tree: calls `pass` with each node whose cut it passes and what lies
    /// on its side. Whether it left the training points through a cut with an empty side.
    #[inline]
    pub(crate) fn follow(&mut self, x: &[f64], pass: impl FnMut(&Node, Child)) -> bool {
        matches!(self.descend(x, pass), Stop::Empty { .. } | Stop::Chain(_)) && !self.tree.root.is_empty()
    }

    /// The tree that points are located in.
    pub(crate) fn tree(&self) -> &'a Tree {
        self.tree
    }

    #[inline]
    fn descend(&mut self, x: &[f64], mut pass: impl FnMut(&Node, Child)) -> Stop {
        let tree = self.tree;
        let mut child = tree.root;
        let (mut above, mut time) = (Child::EMPTY, 0.0);
        loop {
            match child.kind() {
                LinkKind::Inner(id) => {
                    let node = tree.node(id);
                    if node.time > self.lifetime {
                        return Stop::Seen(Child::of(child));
                    }
                    (above, time) = (Child::of(child), node.time);
                    child = node.link(node.side_of(x));
                    pass(node, tree.end_of(child));
                }
                LinkKind::Chain(id) => {
                    let chain = tree.chain(id);
                    if tree.chain_holds(id, x) {
                        child = chain.end();
                        if chain.last_time() > self.lifetime {
                            return Stop::Seen(Child::of(child));
                        }
                        continue;
                    }
                    // A lifetime that ends inside the run: the point may not have left yet.
                    let is_left = chain.last_time() <= self.lifetime
                        || chain.first_time() <= self.lifetime && self.time_of_leaving(x, id).is_some();
                    return if is_left { Stop::Chain(id) } else { Stop::Seen(Child::of(chain.end())) };
                }
                LinkKind::Leaf(_) => return Stop::Seen(Child::of(child)),
                LinkKind::Single(point) => return Stop::Frozen { point, birth: time },
                LinkKind::Empty => return Stop::Empty { time, parent: above },
            }
        }
    }

    /// When a point that comes to a chain leaves it, if it does within the lifetime.
    fn time_of_leaving(&mut self, x: &[f64], chain: ChainId) -> Option<f64> {
        let (tree, lifetime) = (self.tree, self.lifetime);
        let replay = self.replay();
        replay.start(tree, x, chain);
        replay.time_of_leaving(x, lifetime)
    }

    fn replay(&mut self) -> &mut Replay {
        let (domain, tree) = (self.domain, self.tree);
        self.replay.get_or_insert_with(|| Box::new(Replay::on(domain.root_cell(tree.key()))))
    }

    /// The cuts of a chain that a point comes to, and the sides that it goes on at.
    pub(crate) fn cuts_of_chain(&mut self, x: &[f64], chain: ChainId) -> impl Iterator<Item = (Cut, Side)> {
        let tree = self.tree;
        let replay = self.replay();
        replay.start(tree, x, chain);
        replay
    }

    /// Cuts a frozen cell on until `x` and its point part or the lifetime ends. Stores nothing.
    fn resume(&mut self, x: &[f64], point: u32) -> Landing {
        let (frozen, child) = (self.store.point(point), Child::single(point));
        let (tree, lifetime) = (self.tree, self.lifetime);
        if frozen == x {
            return Landing::Seen(child);
        }
        let cell = &mut self.replay().cell;
        cell.restart(tree.key());
        tree.sink_to(cell, x, Link::single(point));
        cell.settle();
        while let Some(cut) = &cell.next_cut_until(lifetime) {
            let dim = cut.dim as usize;
            let side = Side::of(x[dim], cut.location);
            if side != Side::of(frozen[dim], cut.location) {
                return Landing::Unseen { time: cut.time, parent: child };
            }
            cell.enter(cut, side);
        }
        Landing::Seen(child)
    }
}
