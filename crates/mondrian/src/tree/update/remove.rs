//! Forgetting points: the tree becomes the one that never saw them.

use crate::process::Side;
use crate::tree::arena::node::LinkKind;
use crate::tree::update::insert::Touched;
use crate::tree::{Arena, ChainId, Domain, Kind, Link, NodeId, PointStore, Tree};

/// A step on the way down to a point.
#[derive(Clone, Copy)]
enum Step {
    Node(NodeId, Side),
    Chain(ChainId),
}

impl Step {
    fn child(self) -> Link {
        match self {
            Self::Node(id, _) => Link::inner(id),
            Self::Chain(id) => Link::chain(id),
        }
    }
}

impl Tree {
    /// Takes one row of `point` away; `gone` says that it was the point's last.
    ///
    /// The store must still have the point's coordinates. An inner node holds at least two points, so what is left
    /// with one collapses upward to the highest such cell, and where a cut separates nothing any more the runs above
    /// and below it join (canonical form; docs/design.md, "Canonical form and chains"). `touched` receives the nodes
    /// left on the way, parents before children.
    ///
    /// # Panics
    /// If the tree does not hold the point.
    pub fn forget(&mut self, domain: &Domain, x: &[f64], point: u32, gone: bool, touched: &mut Touched) {
        touched.clear();
        let mut child = self.root;
        let mut way: Vec<Step> = Vec::new();
        loop {
            match child.kind() {
                LinkKind::Inner(id) => {
                    let node = &mut self.arena.nodes[id.index()];
                    node.count -= 1;
                    let side = node.side_of(x);
                    way.push(Step::Node(id, side));
                    child = node.link(side);
                }
                LinkKind::Chain(id) => {
                    way.push(Step::Chain(id));
                    child = self.chain(id).end();
                }
                LinkKind::Single(_) | LinkKind::Leaf(_) | LinkKind::Empty => break,
            }
        }
        let mut left = child;
        match child.kind() {
            LinkKind::Leaf(id) => {
                let leaves = &mut self.arena.leaves;
                leaves.discount_row(id);
                if gone {
                    leaves.remove(id, point);
                }
                if let [last] = *leaves.leaf(id).points() {
                    left = Link::single(last);
                    leaves.end(id);
                    self.n_dead += 1;
                } else {
                    touched.leaves.push(id);
                }
            }
            LinkKind::Single(held) => {
                assert_eq!(held, point, "the cell holds its point");
                if gone {
                    left = Link::EMPTY;
                }
            }
            LinkKind::Inner(_) | LinkKind::Chain(_) | LinkKind::Empty => unreachable!("the way ends at the point"),
        }
        if self.collapse(&mut way, left) && domain.is_chained() {
            self.join_above(domain, x, &mut way, touched);
        }
        for step in &way {
            if let Step::Node(id, side) = *step {
                touched.nodes.push(id);
                touched.sides.push(side);
            }
        }
    }

    /// Hangs `child` at the end of the way, taking out nodes that no longer hold two points. Whether the last node on what
    /// is left of the way has lost all points of one side.
    fn collapse(&mut self, way: &mut Vec<Step>, mut child: Link) -> bool {
        while let Some(step) = way.pop() {
            let alone = match step {
                Step::Node(id, side) => {
                    let other = self.node(id).link(side.other());
                    match (child.kind(), other.kind()) {
                        (LinkKind::Empty, LinkKind::Single(_) | LinkKind::Empty) => Some(other),
                        (LinkKind::Single(_), LinkKind::Empty) => Some(child),
                        _ => None,
                    }
                }
                Step::Chain(_) => matches!(child.kind(), LinkKind::Single(_) | LinkKind::Empty).then_some(child),
            };
            match (alone, step) {
                (Some(rest), Step::Node(..)) => {
                    child = rest;
                    self.n_dead += 1;
                }
                (Some(_), Step::Chain(id)) => self.arena.chains.free(id),
                (None, step) => {
                    if let Step::Node(id, side) = step {
                        *self.arena.nodes[id.index()].link_mut(side) = child;
                    }
                    way.push(step);
                    return child.is_empty();
                }
            }
        }
        self.root = child;
        false
    }

    /// Joins the run that the last node on the way of `x` is now part of.
    fn join_above(&mut self, domain: &Domain, x: &[f64], way: &mut Vec<Step>, touched: &mut Touched) {
        let is_in_run = |step: &Step| match *step {
            Step::Node(id, _) => !self.node(id).separates(),
            Step::Chain(_) => true,
        };
        let first = way.iter().rposition(|step| !is_in_run(step)).map_or(0, |at| at + 1);
        let top = way[first].child();
        let mut walk = touched.walk_from_root(domain, self.key);
        self.sink_to(&mut walk.cell, x, top);
        let joined = self.join_run(top, &mut walk.cell);
        touched.walk = Some(walk);
        let Some(joined) = joined else { return };
        way.truncate(first);
        let parent = way.last().map(|step| match *step {
            Step::Node(id, side) => (id, side),
            Step::Chain(_) => unreachable!("a chain is part of the run below it"),
        });
        self.hang(parent, joined);
    }

    /// Whether enough is dead that [`Tree::compact`] is worth it.
    pub fn needs_compaction(&self) -> bool {
        let Arena { nodes, leaves, chains } = &self.arena;
        (self.n_dead > 64 && self.n_dead * 2 > nodes.len() + leaves.len()) || chains.needs_compaction()
    }

    /// Writes nodes, leaves and chains anew, depth first, without the dead; numbers change.
    pub fn compact(&mut self, _store: &PointStore) {
        let old = std::mem::take(&mut self.arena);
        let mut todo = vec![(self.root, None::<(NodeId, Side)>)];
        while let Some((child, parent)) = todo.pop() {
            let moved = match old.end_of(child).kind() {
                Kind::Inner(id) => {
                    let node = old.nodes[id.index()];
                    let new = NodeId::next_of(&self.arena.nodes);
                    self.arena.nodes.push(node);
                    todo.push((node.above, Some((new, Side::Above))));
                    todo.push((node.below, Some((new, Side::Below))));
                    Link::inner(new)
                }
                Kind::Leaf(id) => Link::leaf(self.arena.leaves.copy(old.leaves.leaf(id))),
                Kind::Single(_) | Kind::Empty => child,
            };
            let moved = match child.kind() {
                LinkKind::Chain(id) => self.arena.chains.take(&old.chains, id, moved),
                _ => moved,
            };
            self.hang(parent, moved);
        }
        self.n_dead = 0;
        self.is_in_order = true;
    }
}
