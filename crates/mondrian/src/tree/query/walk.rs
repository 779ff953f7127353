//! The cell that a traversal is in, kept so that cuts which no node stores can be drawn there.
//!
//! Most traversals pass far more nodes than they draw cuts, so a step down moves one bound and writes a line of a log;
//! keys are computed where a cut is drawn, for the steps since the last one. Cells of many dimensions, and those of a
//! root box that was extended, keep the sums of [`Cell`] up to date instead: computing them anew costs a pass over all
//! dimensions.

use crate::process::{Cell, Clock, Cut, NarrowBounds, NarrowCell, NodeKey, Side};
use crate::tree::arena::chain::Bound;
use crate::tree::{Arena, ChainId};

/// Where a traversal is, as far as it has to know.
#[derive(Debug)]
pub(crate) enum Walk {
    /// Nothing is drawn.
    Unknown,
    /// Few dimensions, one box.
    Narrow(Box<NarrowWalk>),
    /// Any cell.
    Wide(Box<Cell>),
}

impl Walk {
    /// A walk at the root of tree `key`, where `root` stands.
    pub(crate) fn new(root: Cell, key: NodeKey) -> Self {
        if NarrowCell::can_be(&root) {
            Self::Narrow(Box::new(NarrowWalk::new(&root, key)))
        } else {
            Self::Wide(Box::new(root))
        }
    }

    /// Steps down so far, for [`Walk::return_to`].
    #[inline]
    pub(crate) fn depth(&self) -> usize {
        match self {
            Self::Unknown => 0,
            Self::Narrow(walk) => walk.steps.len(),
            Self::Wide(cell) => cell.depth(),
        }
    }

    /// Goes to one side of the current cell's cut.
    #[inline]
    pub(crate) fn enter(&mut self, cut: &Cut, side: Side) {
        match self {
            Self::Unknown => {}
            Self::Narrow(walk) => walk.enter(cut, side),
            Self::Wide(cell) => cell.enter(cut, side),
        }
    }

    /// Goes to the end of a chain that starts in the current cell.
    pub(crate) fn enter_chain(&mut self, arena: &Arena, chain: ChainId) {
        match self {
            Self::Unknown => {}
            Self::Narrow(walk) => walk.enter_chain(arena, chain),
            Self::Wide(cell) => cell.enter_far(arena.chains.further(chain)),
        }
    }

    /// Goes back up to a depth.
    #[inline]
    pub(crate) fn return_to(&mut self, depth: usize) {
        match self {
            Self::Unknown => {}
            Self::Narrow(walk) => walk.return_to(depth),
            Self::Wide(cell) => {
                while cell.depth() > depth {
                    cell.leave();
                }
            }
        }
    }

    /// The interval of the current cell in one dimension; of no use where nothing is known.
    #[inline]
    pub(crate) fn interval(&self, dim: usize) -> (f64, f64) {
        match self {
            Self::Unknown => (f64::NEG_INFINITY, f64::INFINITY),
            Self::Narrow(walk) => walk.bounds.interval(dim),
            Self::Wide(cell) => (cell.lower()[dim], cell.upper()[dim]),
        }
    }
}

/// A step down: what it replaced, and what the clock of the cell below it is started with.
#[derive(Debug, Clone, Copy)]
struct Step {
    bound: f64,
    time: f64,
    dim: u32,
    side: Side,
    clock: ClockSource,
}

/// Where the clock of the cell below a step comes from.
#[derive(Debug, Clone, Copy)]
enum ClockSource {
    /// The side of a cut at the step's time.
    Cut,
    /// The record of the chain whose last bound the step moved.
    Chain(ChainId),
    /// The clock above: another step moves the chain's last bound.
    Above,
}

/// A walk through cells that [`NarrowCell`] can stand for.
#[derive(Debug)]
pub(crate) struct NarrowWalk {
    bounds: NarrowBounds,
    steps: Vec<Step>,
    /// The clocks of the root and of the cells below the first steps, as far as they were asked for.
    clocks: Vec<Clock>,
}

impl NarrowWalk {
    fn new(root: &Cell, key: NodeKey) -> Self {
        let bounds = NarrowBounds::new(root.lower(), root.upper());
        Self { bounds, steps: Vec::new(), clocks: vec![Clock { key, birth: 0.0 }] }
    }

    #[inline]
    fn enter(&mut self, cut: &Cut, side: Side) {
        let bound = self.bounds.replace(cut.dim as usize, side, cut.location);
        self.steps.push(Step { bound, time: cut.time, dim: cut.dim, side, clock: ClockSource::Cut });
    }

    fn enter_chain(&mut self, arena: &Arena, chain: ChainId) {
        for Bound { dim, side, location } in arena.chains.bounds(chain) {
            let bound = self.bounds.replace(dim, side, location);
            self.steps.push(Step { bound, time: 0.0, dim: dim as u32, side, clock: ClockSource::Above });
        }
        if let Some(last) = self.steps.last_mut() {
            last.clock = ClockSource::Chain(chain);
        }
    }

    #[inline]
    fn return_to(&mut self, depth: usize) {
        for step in self.steps.drain(depth..).rev() {
            self.bounds.replace(step.dim as usize, step.side, step.bound);
        }
        self.clocks.truncate(depth + 1);
    }

    /// Upper and lower bounds, with zeros where there is no dimension.
    pub(crate) fn bounds(&self) -> &NarrowBounds {
        &self.bounds
    }

    /// The clock of the current cell.
    pub(crate) fn clock(&mut self, arena: &Arena) -> Clock {
        let mut clock = self.clocks[self.clocks.len() - 1];
        for step in &self.steps[self.clocks.len() - 1..] {
            clock = match step.clock {
                ClockSource::Cut => Clock { key: clock.key.child(step.side), birth: step.time },
                ClockSource::Chain(id) => arena.chains.last_clock(id),
                ClockSource::Above => clock,
            };
            self.clocks.push(clock);
        }
        clock
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lifetime;
    use crate::process::Bounds;
    use crate::tree::Domain;

    /// Goes down to cells at random, drawing cuts now and then, and back.
    #[test]
    fn a_narrow_walk_draws_the_cuts_of_a_cell() {
        for n_dims in [1, 3, 16] {
            let root = Bounds::new(&vec![-1.0; n_dims], &vec![2.0; n_dims]).unwrap();
            let domain = Domain::new(5, &root, Lifetime::INFINITE).unwrap();
            let key = domain.tree_key(3);
            let (mut cell, arena) = (domain.root_cell(key), Arena::default());
            let mut walk = NarrowWalk::new(&cell, key);
            let mut narrow = NarrowCell::default();
            for step in 0..500 {
                let draw = NodeKey::root(7, step).draw(0);
                let cut = cell.next_cut().unwrap();
                let side = if draw.uniform() < 0.5 { Side::Below } else { Side::Above };
                cell.enter(&cut, side);
                walk.enter(&cut, side);
                if draw.second_uniform() < 0.3 {
                    let depth = cell.depth() * 2 / 3;
                    while cell.depth() > depth {
                        cell.leave();
                    }
                    walk.return_to(depth);
                }
                if draw.second_uniform() > 0.5 {
                    let clock = walk.clock(&arena);
                    narrow.set_to(walk.bounds(), clock);
                    narrow.sum_lengths();
                    let mut same = NarrowCell::default();
                    same.set(&cell);
                    assert_eq!(format!("{narrow:?}"), format!("{same:?}"));
                }
            }
        }
    }
}
