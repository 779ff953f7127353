//! The place of one row in a tree that does not hold it: the way down, and the cut by which it parts from the points that it comes to.
//!
//! A stream asks about a row and learns it next. Where the answer takes the time at which the row leaves the training points, the cuts that
//! part them have been drawn by then, and learning the row adds them to the tree without drawing them again.

#![expect(clippy::inline_always, reason = "a call per node would cost a fifth of the step")]

use crate::process::{Cut, Side};
use crate::tree::arena::node::LinkKind;
use crate::tree::query::replay::Replay;
use crate::tree::{ChainId, Child, Descent, DescentStep, Domain, NodeId, PointStore, Tree};

/// The cut that parts a row from points which all cuts before it leave on one side together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parting {
    pub(crate) cut: Cut,
    /// The side of the points.
    pub(crate) side: Side,
    /// Of the cuts of a chain up to this one, how many bound the cell at its end.
    pub(crate) n_final: usize,
}

/// Where a row is on its way down a tree, or where the way has ended.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// Follows once the way has ended, if a cut is drawn there; kept from row to row.
    walk: Option<Box<Replay>>,
    pub(crate) way: Descent,
    /// The nodes on the way.
    pub(crate) nodes: Vec<NodeId>,
    /// The chains on the way, each with the number of nodes before it.
    chains: Vec<(usize, ChainId)>,
    /// The cut that parts the row from those at the end of the way, once it was looked for.
    parting: Option<Parting>,
    /// Whether it is still looked for.
    is_parting: bool,
}

impl Place {
    /// Goes to the root of a tree, looked at with a lifetime of at most its domain's.
    pub(crate) fn restart(&mut self, tree: &Tree, lifetime: f64) {
        self.way = Descent::new(tree, lifetime);
        self.nodes.clear();
        self.chains.clear();
        self.parting = None;
    }

    /// As [`Place::restart`], with a walk that another place has used.
    pub(crate) fn with_walk(walk: Option<Box<Replay>>) -> Self {
        Self { walk, ..Self::default() }
    }

    /// Lets the walk go to where it is used next.
    pub(crate) fn into_walk(self) -> Option<Box<Replay>> {
        self.walk
    }

    /// The walk, and the parting, for who adds to the tree a row that [was parted](Place::part) from others.
    pub(crate) fn parts(&mut self) -> (&mut Replay, Option<Parting>) {
        (self.walk.as_mut().expect("the walk has followed to where cuts were drawn"), self.parting)
    }

    /// Goes on by a node, or a chain that the row stays in.
    #[inline(always)]
    pub(crate) fn step(&mut self, tree: &Tree, x: &[f64]) -> DescentStep {
        let step = self.way.step(tree, x);
        match step {
            DescentStep::Block(id) | DescentStep::PassedNode(id) => self.nodes.push(id),
            DescentStep::PassedChain(id) => self.chains.push((self.nodes.len(), id)),
            DescentStep::Left | DescentStep::Stayed | DescentStep::Unclear => {}
        }
        step
    }

    /// Takes the walk to where the way has ended, settled.
    ///
    /// In one go: while nodes are looked for in memory, keys would only be in the way.
    fn follow(&mut self, tree: &Tree, domain: &Domain, x: &[f64]) -> &mut Replay {
        let walk = match &mut self.walk {
            Some(walk) => {
                domain.restart(&mut walk.cell, tree.key());
                walk
            }
            none => none.insert(Box::new(Replay::on(domain.root_cell(tree.key())))),
        };
        let steps = |from: usize, to: usize| {
            self.nodes[from..to].iter().map(|id| {
                let node = tree.node(*id);
                (node.cut(), node.side_of(x))
            })
        };
        let mut n_passed = 0;
        for (n_before, chain) in &self.chains {
            walk.cell.sink_all(steps(n_passed, *n_before));
            walk.cell.sink_far(tree.arena.chains.further(*chain));
            n_passed = *n_before;
        }
        walk.cell.sink_all(steps(n_passed, self.nodes.len()));
        walk.cell.settle();
        walk
    }

    /// When a row whose way has ended left the training points, within the lifetime: by the cut with an empty side that it came to
    /// last, or by one that no node stores, which is found here. None if it did not.
    pub(crate) fn part(&mut self, tree: &Tree, domain: &Domain, store: &PointStore, x: &[f64]) -> Option<f64> {
        self.is_parting = self.start_parting(tree, domain, store, x);
        while self.is_parting {
            self.is_parting = self.draw(store, x);
        }
        self.time_of_leaving()
    }

    /// When a row left the training points, within the lifetime, once all cuts were drawn that say so: by the cut with an empty side that
    /// it came to last, or by one that no node stores. None if it did not.
    pub(crate) fn time_of_leaving(&self) -> Option<f64> {
        match self.way.link.kind() {
            LinkKind::Empty => Some(self.way.time),
            _ => self.parting.map(|parting| parting.cut.time),
        }
    }

    /// Goes to the first cut that may part a row whose way has ended from those that it is with; whether there may be one.
    fn start_parting(&mut self, tree: &Tree, domain: &Domain, store: &PointStore, x: &[f64]) -> bool {
        let walk = match self.way.link.kind() {
            LinkKind::Empty | LinkKind::Leaf(_) | LinkKind::Inner(_) => return false,
            LinkKind::Chain(id) => {
                if tree.chain(id).first_time() > self.way.lifetime || tree.chain_holds(id, x) {
                    return false;
                }
                let walk = self.follow(tree, domain, x);
                walk.start_here(tree, id);
                walk
            }
            LinkKind::Single(point) => {
                if store.point(point) == x {
                    return false;
                }
                self.follow(tree, domain, x)
            }
        };
        walk.made.clear();
        true
    }

    /// Draws the next cut that may part the row, and stays in front of it if it does; those passed are in `made`. Whether there may be
    /// more.
    #[inline]
    fn draw(&mut self, store: &PointStore, x: &[f64]) -> bool {
        let (walk, lifetime) = (self.walk.as_mut().expect("it has followed"), self.way.lifetime);
        if let LinkKind::Single(point) = self.way.link.kind() {
            let Some(cut) = walk.cell.next_cut_until(lifetime) else { return false };
            let side = Side::of(store.point(point)[cut.dim as usize], cut.location);
            if is_beside(x, &cut, side) {
                self.parting = Some(Parting { cut, side, n_final: 0 });
                return false;
            }
            walk.cell.enter(&cut, side);
            walk.made.push((cut, side));
            return true;
        }
        let Some((cut, side)) = walk.peek().filter(|(cut, _)| cut.time <= lifetime) else { return false };
        self.parting = walk.pass_or_part(cut, side, is_beside(x, &cut, side));
        self.parting.is_none()
    }
}

/// Whether a point lies on the other side of a cut.
pub(crate) fn is_beside(x: &[f64], cut: &Cut, side: Side) -> bool {
    Side::of(x[cut.dim as usize], cut.location) != side
}

/// The place of the row that was asked for last in each of several trees.
#[derive(Debug, Default)]
pub(crate) struct Places {
    pub(crate) trees: Vec<Place>,
    asked: Vec<f64>,
    /// How far its places are known, and the lifetime that they were found at, if the trees are as they were then.
    found: Option<(Found, f64)>,
    /// Trees that are not done.
    going: Vec<u32>,
}

/// How far the place of a row is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Found {
    /// Where its ways down the trees end.
    Ends,
    /// The cuts too that part it from those that it is with there.
    Partings,
}

impl Places {
    /// How far the places of a row at a lifetime are known, in trees that have not changed since.
    pub(crate) fn found(&self, x: &[f64], lifetime: f64) -> Option<Found> {
        self.found.filter(|(_, at)| *at == lifetime && self.asked == x).map(|(found, _)| found)
    }

    /// Says that the trees change.
    pub(crate) fn forget(&mut self) {
        self.found = None;
    }

    /// Says that a row was asked for, and how far its places are known.
    pub(crate) fn ask(&mut self, x: &[f64], lifetime: f64, found: Found) {
        self.asked.clear();
        self.asked.extend_from_slice(x);
        self.found = Some((found, lifetime));
    }

    /// Goes the ways of a row of the root box down all trees, in turns: at every node one waits for memory and for the next key, and
    /// meanwhile the others go on. Calls `visit` with the number of the tree, where its way has come to, and each step.
    pub(crate) fn descend<'a>(
        &mut self,
        trees: impl Fn(usize) -> &'a Tree,
        n_trees: usize,
        (x, lifetime): (&[f64], f64),
        mut visit: impl FnMut(usize, &Descent, DescentStep),
    ) {
        self.forget();
        self.trees.resize_with(n_trees, Place::default);
        for (number, place) in self.trees.iter_mut().enumerate() {
            place.restart(trees(number), lifetime);
        }
        self.in_turns(|number, place| {
            let step = place.step(trees(number), x);
            visit(number, &place.way, step);
            step.goes_on()
        });
    }

    /// Finds the cuts that part a row whose ways have ended from those that it is with, in turns too, so that one tree's arithmetic need not
    /// wait for another's.
    pub(crate) fn part<'a>(
        &mut self,
        trees: impl Fn(usize) -> &'a Tree,
        domain: &Domain,
        store: &PointStore,
        x: &[f64],
    ) {
        for place in &self.trees {
            store.prefetch(Child::unresolved(place.way.link));
        }
        for (number, place) in self.trees.iter_mut().enumerate() {
            place.is_parting = place.start_parting(trees(number), domain, store, x);
        }
        self.in_turns(|_, place| {
            place.is_parting = place.is_parting && place.draw(store, x);
            place.is_parting
        });
    }

    /// Works on all places in turns, until `work` says of each that it is done.
    fn in_turns(&mut self, mut work: impl FnMut(usize, &mut Place) -> bool) {
        self.going.clear();
        self.going.extend(0..self.trees.len() as u32);
        while !self.going.is_empty() {
            let mut at = 0;
            while at < self.going.len() {
                let number = self.going[at] as usize;
                if work(number, &mut self.trees[number]) {
                    at += 1;
                } else {
                    self.going.swap_remove(at);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lifetime;
    use crate::process::{Bounds, NodeKey};
    use crate::tree::{Landing, Locator};

    #[test]
    fn ways_end_where_the_locator_ends() {
        let mut place = Place::default();
        for (n_points, n_dims, close) in [(1, 1, 1.0), (60, 2, 1.0), (80, 3, 1e-4), (40, 12, 1e-3)] {
            let draw = |what: u64, at: usize| NodeKey::root(11, what).draw(at as u32).uniform();
            // Pairs of close points, so that there are long runs of cuts with an empty side.
            let x = |what: u64, point: usize| -> Vec<f64> {
                (0..n_dims)
                    .map(|d| draw(what, point / 2 * n_dims + d) + close * draw(what + 1, point * n_dims + d))
                    .collect()
            };
            let bounds = Bounds::new(&vec![-1.0; n_dims], &vec![3.0; n_dims]).unwrap();
            let domain = Domain::new(3, &bounds, Lifetime::INFINITE).unwrap();
            let mut store = PointStore::new(n_dims);
            (0..n_points).for_each(|point| {
                store.add(&x(0, point)).unwrap();
            });
            for number in 0..3 {
                let tree = Tree::grown(&domain, domain.tree_key(number), &store);
                for lifetime in [0.3, 4.0, f64::INFINITY] {
                    let mut locator = Locator::new(&tree, &domain, &store, Lifetime::new(lifetime).unwrap());
                    // Queries, and the points themselves.
                    for query in (0..60).map(|at| x(7, at)).chain((0..n_points).map(|at| x(0, at))) {
                        let (mut passed, mut expected) = (Vec::new(), Vec::new());
                        place.restart(&tree, lifetime);
                        loop {
                            match place.step(&tree, &query) {
                                DescentStep::Block(id) => {
                                    passed.push((tree.node(id).time(), tree.end_of(place.way.link)));
                                }
                                step if step.goes_on() => {}
                                _ => break,
                            }
                        }
                        let left = place.part(&tree, &domain, &store, &query);
                        let expected_time = match locator.locate(&query) {
                            Landing::Seen(_) => None,
                            Landing::Unseen { time, .. } => Some(time),
                        };
                        assert_eq!(left, expected_time);
                        locator.follow(&query, |node, child| {
                            if node.separates() {
                                expected.push((node.time(), child));
                            }
                        });
                        assert_eq!(passed, expected);
                    }
                }
            }
        }
    }
}
