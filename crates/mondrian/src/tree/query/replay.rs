//! The cuts of a chain, made again from the key of the cell that it starts in.

use crate::process::{Cell, Cut, Side};
use crate::tree::arena::chain::Bound;
use crate::tree::query::place::Parting;
use crate::tree::{ChainId, Link, LinkKind, Tree};

/// A walk down a tree that can make the cuts of a chain again; stores nothing in the tree.
#[derive(Debug, Clone)]
pub(crate) struct Replay {
    pub(crate) cell: Cell,
    /// Bounds of the cell at the end of the chain.
    lower: Vec<f64>,
    upper: Vec<f64>,
    /// Cuts still to come.
    n_left: u32,
    /// Of those looked at, how many move a side of the last cell for good.
    n_final: usize,
    /// Room for cuts that were made.
    pub(crate) made: Vec<(Cut, Side)>,
}

impl Replay {
    /// A walk on the domain of `cell`.
    pub(crate) fn on(cell: Cell) -> Self {
        Self { cell, lower: Vec::new(), upper: Vec::new(), n_left: 0, n_final: 0, made: Vec::new() }
    }

    /// Goes to the start of a chain that a point comes to.
    pub(crate) fn start(&mut self, tree: &Tree, x: &[f64], chain: ChainId) {
        self.cell.restart(tree.key());
        tree.sink_to(&mut self.cell, x, Link::chain(chain));
        self.cell.settle();
        self.start_here(tree, chain);
    }

    /// As [`Replay::start`], with the walk at the start of the chain, settled.
    pub(crate) fn start_here(&mut self, tree: &Tree, chain: ChainId) {
        self.lower.clear();
        self.lower.extend_from_slice(self.cell.lower());
        self.upper.clear();
        self.upper.extend_from_slice(self.cell.upper());
        for Bound { dim, side, location } in tree.arena.chains.bounds(chain) {
            match side {
                Side::Below => self.upper[dim] = location,
                Side::Above => self.lower[dim] = location,
            }
        }
        (self.n_left, self.n_final) = (tree.chain(chain).n_cuts(), 0);
    }

    /// The upper corner of the cell at the end of the chain, which the chain follows: cells are half-open, so that what
    /// lies below a cut has its upper bound at or below it.
    pub(crate) fn upper_corner(&self) -> &[f64] {
        &self.upper
    }

    /// How many cuts are still to come.
    pub(crate) fn n_left(&self) -> u32 {
        self.n_left
    }

    /// The next cut and the side of it that the chain goes on at; none at its end.
    pub(crate) fn peek(&self) -> Option<(Cut, Side)> {
        if self.n_left == 0 {
            return None;
        }
        let cut = self.cell.next_cut().expect("a chain ends after its last cut");
        // Cells are half-open: what lies below a cut has its upper bound at or below it.
        Some((cut, Side::of(self.upper[cut.dim as usize], cut.location)))
    }

    /// Goes on past the cut that [`Replay::peek`] gave.
    pub(crate) fn pass(&mut self, cut: &Cut, side: Side) {
        self.cell.enter(cut, side);
        self.n_left -= 1;
    }

    /// Goes on past the cut that [`Replay::peek`] gave, unless something leaves the chain there.
    #[inline]
    pub(crate) fn pass_or_part(&mut self, cut: Cut, side: Side, leaves: bool) -> Option<Parting> {
        self.n_final += usize::from(self.is_final(&cut, side));
        if leaves {
            return Some(Parting { cut, side, n_final: self.n_final });
        }
        self.pass(&cut, side);
        self.made.push((cut, side));
        None
    }

    /// Whether a cut moves a side of the last cell for good.
    fn is_final(&self, cut: &Cut, side: Side) -> bool {
        Bound::of(cut, side).bounds(&self.lower, &self.upper)
    }

    /// The time of the cut that takes `x` out of the chain; none if that comes after `lifetime` or never.
    pub(crate) fn time_of_leaving(&mut self, x: &[f64], lifetime: f64) -> Option<f64> {
        while let Some((cut, side)) = self.next().filter(|(cut, _)| cut.time <= lifetime) {
            if Side::of(x[cut.dim as usize], cut.location) != side {
                return Some(cut.time);
            }
        }
        None
    }
}

impl Iterator for Replay {
    type Item = (Cut, Side);

    /// The cuts of the chain, with the side of each that the chain goes on at.
    fn next(&mut self) -> Option<(Cut, Side)> {
        let (cut, side) = self.peek()?;
        self.pass(&cut, side);
        Some((cut, side))
    }
}

impl Tree {
    /// Sinks a walk from the root along the way of `x` to a child on it.
    pub(crate) fn sink_to(&self, cell: &mut Cell, x: &[f64], target: Link) {
        let mut child = self.root;
        while child != target {
            match child.kind() {
                LinkKind::Inner(id) => {
                    let node = self.node(id);
                    let side = node.side_of(x);
                    cell.sink(&node.cut(), side);
                    child = node.link(side);
                }
                LinkKind::Chain(id) => {
                    cell.sink_far(self.arena.chains.further(id));
                    child = self.chain(id).end();
                }
                LinkKind::Single(_) | LinkKind::Leaf(_) | LinkKind::Empty => unreachable!("the target lies on the way"),
            }
        }
    }
}
