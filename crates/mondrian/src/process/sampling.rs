//! Sampling all cuts of a process up to a lifetime, on one thread or many, into one canonical order.

use std::collections::BinaryHeap;

use crate::parallel::prelude::*;

use crate::process::walker::Walker;
use crate::process::{Cut, Side};
use crate::{Error, Result};

/// Below this many expected cells one thread is as fast.
const PARALLEL_FROM: f64 = 20_000.0;
/// Parts to cut the work into: enough that uneven ones do not matter.
const N_PARTS: usize = 128;
/// The tag bit of a [`Child`] limits how many nodes there can be.
const MAX_NODES: usize = 1 << 31;

/// The child on one side of a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Child {
    /// Another cut, by its number.
    Cut(usize),
    /// A cell, by its number.
    Cell(usize),
}

/// A [`Child`] in one word: the highest bit distinguishes the two kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link(u32);

impl Link {
    const CELL: u32 = 1 << 31;

    fn cut(number: usize) -> Self {
        Self(number as u32)
    }

    fn cell(number: usize) -> Self {
        Self(number as u32 | Self::CELL)
    }

    #[inline]
    pub(crate) fn child(self) -> Child {
        if self.0 & Self::CELL == 0 {
            Child::Cut(self.0 as usize)
        } else {
            Child::Cell((self.0 & !Self::CELL) as usize)
        }
    }

    /// The same child after everything before it got longer.
    fn shifted(self, n_cuts: usize, n_cells: usize) -> Self {
        match self.child() {
            Child::Cut(number) => Self::cut(number + n_cuts),
            Child::Cell(number) => Self::cell(number + n_cells),
        }
    }
}

/// The report's 6-tuple, in measure coordinates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct StoredNode {
    pub(crate) birth: f64,
    pub(crate) time: f64,
    pub(crate) location: f64,
    pub(crate) dim: u32,
    pub(crate) below: Link,
    pub(crate) above: Link,
}

impl StoredNode {
    fn new(cut: &Cut, birth: f64) -> Self {
        // Both links are set when the walk comes back from that side.
        let unset = Link::cell(0);
        Self { birth, time: cut.time, location: cut.location, dim: cut.dim, below: unset, above: unset }
    }

    fn set(&mut self, side: Side, link: Link) {
        match side {
            Side::Below => self.below = link,
            Side::Above => self.above = link,
        }
    }
}

/// Cuts in depth-first order, the side below first; cells in the order of the same traversal.
///
/// The order is a function of the partition alone, so equal partitions have equal arrays.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Subtree {
    pub(crate) nodes: Vec<StoredNode>,
    pub(crate) n_cells: usize,
}

impl Subtree {
    /// The root: the first cut, or the only cell.
    pub(crate) fn root(&self) -> Child {
        if self.nodes.is_empty() { Child::Cell(0) } else { Child::Cut(0) }
    }

    fn new_cell(&mut self) -> Link {
        self.n_cells += 1;
        Link::cell(self.n_cells - 1)
    }

    fn new_cut(&mut self, cut: &Cut, birth: f64) -> Result<usize> {
        check_size(self.nodes.len() + 1)?;
        self.nodes.push(StoredNode::new(cut, birth));
        Ok(self.nodes.len() - 1)
    }

    /// Appends another subtree and gives the link to its top.
    fn append(&mut self, part: &Self) -> Link {
        let (n_cuts, n_cells) = (self.nodes.len(), self.n_cells);
        self.nodes.extend(part.nodes.iter().map(|node| StoredNode {
            below: node.below.shifted(n_cuts, n_cells),
            above: node.above.shifted(n_cuts, n_cells),
            ..*node
        }));
        self.n_cells += part.n_cells;
        if part.nodes.is_empty() { Link::cell(n_cells) } else { Link::cut(n_cuts) }
    }

    /// The part of it that exists at `time`.
    pub(crate) fn at(&self, time: f64) -> Self {
        let mut view = Self::default();
        // (cut, the node and side of the view that it hangs on)
        let mut todo = vec![(self.root(), None)];
        while let Some((child, parent)) = todo.pop() {
            let link = match child {
                Child::Cut(number) if self.nodes[number].time <= time => {
                    let node = &self.nodes[number];
                    let here = view.nodes.len();
                    view.nodes.push(*node);
                    todo.push((node.above.child(), Some((here, Side::Above))));
                    todo.push((node.below.child(), Some((here, Side::Below))));
                    Link::cut(here)
                }
                _ => view.new_cell(),
            };
            if let Some((node, side)) = parent {
                let node: &mut StoredNode = &mut view.nodes[node];
                node.set(side, link);
            }
        }
        view
    }
}

/// All cuts of the process up to `limit`.
pub(crate) fn sample(mut walker: Walker, limit: f64, expected_cells: f64) -> Result<Subtree> {
    if expected_cells < PARALLEL_FROM || crate::parallel::current_num_threads() == 1 {
        return grow(&mut walker, 0.0, limit);
    }
    let (top, parts) = split(walker, limit);
    let parts = parts.into_par_iter().map(|mut part| grow(&mut part.walker, part.birth, limit));
    let parts: Vec<Subtree> = parts.collect::<Result<_>>()?;
    join(&top, &parts)
}

/// A side of a cut on the way down of [`grow`].
struct Frame {
    cut: Cut,
    node: usize,
    side: Side,
}

/// Walks the whole subtree below the walker's cell. Explicit stack: depth may reach tens of thousands.
fn grow(walker: &mut Walker, birth: f64, limit: f64) -> Result<Subtree> {
    let mut tree = Subtree::default();
    let mut path: Vec<Frame> = Vec::new();
    let mut born = birth;
    loop {
        if let Some(cut) = &walker.next_cut(limit) {
            let node = tree.new_cut(cut, born)?;
            walker.enter(cut, Side::Below);
            born = cut.time;
            if let Some(parent) = path.last() {
                tree.nodes[parent.node].set(parent.side, Link::cut(node));
            }
            path.push(Frame { cut: *cut, node, side: Side::Below });
            continue;
        }
        let cell = tree.new_cell();
        if let Some(parent) = path.last() {
            tree.nodes[parent.node].set(parent.side, cell);
        }
        // Up to the nearest cut whose other side is still to be walked.
        loop {
            let Some(frame) = path.last_mut() else { return Ok(tree) };
            walker.leave();
            if frame.side == Side::Below {
                frame.side = Side::Above;
                walker.enter(&frame.cut, Side::Above);
                born = frame.cut.time;
                break;
            }
            path.pop();
        }
    }
}

/// A subtree still to be grown.
struct Part {
    walker: Walker,
    birth: f64,
    /// Its place in the list of parts.
    number: usize,
    /// Logarithm of the expected number of cells: the larger parts are split first.
    weight: f64,
}

impl PartialEq for Part {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Part {}

impl PartialOrd for Part {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Part {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.weight.total_cmp(&other.weight).then(other.number.cmp(&self.number))
    }
}

impl Part {
    fn new(walker: Walker, birth: f64, number: usize, limit: f64) -> Self {
        let length = |dim| {
            let (lo, hi) = walker.interval(dim);
            hi - lo
        };
        let weight = (0..walker.n_dims()).map(|dim| ((limit - birth) * length(dim)).ln_1p()).sum();
        Self { walker, birth, number, weight }
    }
}

/// The top of a tree whose subtrees are grown separately.
enum Top {
    /// A cut made while splitting, with the parts that its sides became.
    Split { cut: Cut, birth: f64, below: usize, above: usize },
    /// Grown as one, by its place among the parts grown.
    Grown(usize),
}

/// Splits the work into about [`N_PARTS`] parts. The split does not affect the result.
fn split(walker: Walker, limit: f64) -> (Vec<Top>, Vec<Part>) {
    let mut top = vec![Top::Grown(0)];
    let mut open = BinaryHeap::from([Part::new(walker, 0.0, 0, limit)]);
    let mut closed = Vec::new();
    while open.len() + closed.len() < N_PARTS
        && let Some(mut part) = open.pop()
    {
        let Some(cut) = part.walker.next_cut(limit) else {
            closed.push(part);
            continue;
        };
        let (below, above) = (top.len(), top.len() + 1);
        top[part.number] = Top::Split { cut, birth: part.birth, below, above };
        top.extend([Top::Grown(0), Top::Grown(0)]);
        let mut other = part.walker.clone();
        part.walker.enter(&cut, Side::Below);
        other.enter(&cut, Side::Above);
        open.push(Part::new(part.walker, cut.time, below, limit));
        open.push(Part::new(other, cut.time, above, limit));
    }
    closed.extend(open);
    for (place, part) in closed.iter().enumerate() {
        top[part.number] = Top::Grown(place);
    }
    (top, closed)
}

/// Puts top and parts together in canonical order.
fn join(top: &[Top], parts: &[Subtree]) -> Result<Subtree> {
    let mut tree = Subtree::default();
    let n_nodes = top.len() + parts.iter().map(|part| part.nodes.len()).sum::<usize>();
    check_size(n_nodes)?;
    tree.nodes.reserve(n_nodes);
    let mut todo: Vec<(usize, Option<(usize, Side)>)> = vec![(0, None)];
    while let Some((entry, parent)) = todo.pop() {
        let link = match &top[entry] {
            Top::Grown(place) => tree.append(&parts[*place]),
            Top::Split { cut, birth, below, above } => {
                let here = tree.nodes.len();
                tree.nodes.push(StoredNode::new(cut, *birth));
                todo.push((*above, Some((here, Side::Above))));
                todo.push((*below, Some((here, Side::Below))));
                Link::cut(here)
            }
        };
        if let Some((node, side)) = parent {
            tree.nodes[node].set(side, link);
        }
    }
    Ok(tree)
}

/// Refuses more nodes than links can name; the expected number was checked before, this is for the unlucky sample.
fn check_size(n_nodes: usize) -> Result<()> {
    if n_nodes < MAX_NODES {
        return Ok(());
    }
    Err(Error::TooLarge { what: "cuts of the partition", expected: n_nodes as f64, limit: MAX_NODES as f64 })
}
