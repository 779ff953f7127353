//! The cells of a tree that hold rows at its lifetime, without the rows.
//!
//! Cuts follow from the key, so of a tree only this is kept: for every cut of a cell with rows which of its sides have rows, in
//! two bits, depth first, and where a cell is not cut any more. Trees of the same key on two sets of rows have the same cuts
//! wherever both have rows. So the cells of the union are found bit by bit, without drawing a cut, and the tree grows from
//! them again (docs/many-machines.md).

use crate::process::{Cell, NodeKey, Side};
use crate::tree::arena::chain::LEAST_CUTS;
use crate::tree::{Arena, Domain, Link, LinkKind, Node, NodeId, PointStore, Tree};
use crate::{Error, ModelFileError, Result};

/// A cell that is not cut within the lifetime.
const END: u8 = 0;
/// A cut with rows below only, above only, and on both sides.
const BELOW: u8 = 1;
const ABOVE: u8 = 2;
const BOTH: u8 = 3;
/// Codes of two bits in a byte.
const PER_BYTE: usize = 4;
/// No cell.
pub(crate) const NONE: u32 = u32::MAX;

/// Which cells of a tree hold rows, each cut until the lifetime. Cells are numbered depth first, those below a cut first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OccupiedCells {
    codes: Vec<u8>,
    n_codes: usize,
    n_cells: usize,
}

/// Reads codes in turn.
struct Reader<'a> {
    cells: &'a OccupiedCells,
    at: usize,
    /// Cells passed so far.
    n_cells: u32,
}

impl Reader<'_> {
    #[inline]
    fn next(&mut self) -> Option<u8> {
        let cells = self.cells;
        if self.at == cells.n_codes {
            return None;
        }
        let code = cells.codes[self.at / PER_BYTE] >> (self.at % PER_BYTE * 2) & 3;
        self.at += 1;
        self.n_cells += u32::from(code == END);
        Some(code)
    }
}

impl OccupiedCells {
    /// Number of cells with rows.
    pub(crate) fn len(&self) -> usize {
        self.n_cells
    }

    /// Number of codes: cuts with rows, and cells.
    pub(crate) fn n_codes(&self) -> usize {
        self.n_codes
    }

    /// The codes, four per byte.
    pub(crate) fn codes(&self) -> &[u8] {
        &self.codes
    }

    /// Bytes of so many codes.
    pub(crate) fn n_bytes(n_codes: usize) -> usize {
        n_codes.div_ceil(PER_BYTE)
    }

    /// Cells of saved codes.
    ///
    /// # Errors
    /// [`ModelFileError::Inconsistent`] where they are not those of one tree.
    pub(crate) fn restored(codes: Vec<u8>, n_codes: usize) -> Result<Self> {
        let wrong = || Err(ModelFileError::Inconsistent { what: "the codes of a tree's cells" }.into());
        if codes.len() != Self::n_bytes(n_codes) {
            return wrong();
        }
        let mut cells = Self { codes, n_codes, n_cells: 0 };
        let mut reader = cells.reader();
        let mut n_open = usize::from(n_codes > 0);
        while n_open > 0 {
            match reader.next() {
                Some(END) => n_open -= 1,
                Some(BOTH) => n_open += 1,
                Some(_) => {}
                None => return wrong(),
            }
        }
        let (is_all_read, n_cells) = (reader.at == n_codes, reader.n_cells);
        // Bits behind the last code are zero, so that equal cells are equal bytes.
        let rest = n_codes % PER_BYTE * 2;
        let is_clean = rest == 0 || cells.codes.last().is_none_or(|last| last >> rest == 0);
        cells.n_cells = n_cells as usize;
        if is_all_read && is_clean { Ok(cells) } else { wrong() }
    }

    fn reader(&self) -> Reader<'_> {
        Reader { cells: self, at: 0, n_cells: 0 }
    }

    #[inline]
    fn push(&mut self, code: u8) {
        let shift = self.n_codes % PER_BYTE * 2;
        if shift == 0 {
            self.codes.push(code);
        } else if let Some(last) = self.codes.last_mut() {
            *last |= code << shift;
        }
        self.n_codes += 1;
        self.n_cells += usize::from(code == END);
    }

    /// The cells of a tree; `visit` is given the points of each in turn.
    pub(crate) fn of(tree: &Tree, domain: &Domain, store: &PointStore, mut visit: impl FnMut(&[u32])) -> Self {
        let (mut cells, mut cell) = (Self::default(), domain.root_cell(tree.key()));
        if tree.root.is_empty() {
            return cells;
        }
        let lifetime = domain.lifetime().get();
        // Nodes whose upper side is still to come, and the depth of the walk there.
        let mut todo: Vec<(NodeId, usize)> = Vec::new();
        let mut link = tree.root;
        loop {
            match link.kind() {
                LinkKind::Inner(id) => {
                    let node = tree.node(id);
                    let side = if node.separates() {
                        cells.push(BOTH);
                        todo.push((id, cell.depth()));
                        Side::Below
                    } else {
                        cells.push(one_sided(node.full_side()));
                        node.full_side()
                    };
                    cell.enter(&node.cut(), side);
                    link = node.link(side);
                    continue;
                }
                LinkKind::Chain(id) => {
                    // The chain follows the upper corner of its last cell: cells are half-open.
                    let mut corner = cell.upper().to_vec();
                    tree.arena.chains.move_corner(id, &mut corner);
                    let n_cuts = tree.chain(id).n_cuts();
                    cells.follow(&mut cell, &corner, f64::INFINITY, n_cuts);
                    link = tree.chain(id).end();
                    continue;
                }
                LinkKind::Single(point) => {
                    cells.follow(&mut cell, store.point(point), lifetime, u32::MAX);
                    cells.push(END);
                    visit(&[point]);
                }
                LinkKind::Leaf(id) => {
                    cells.push(END);
                    visit(tree.leaf(id).points());
                }
                LinkKind::Empty => unreachable!("the sides of a node that are followed hold points"),
            }
            let Some((id, depth)) = todo.pop() else { return cells };
            while cell.depth() > depth {
                cell.leave();
            }
            let node = tree.node(id);
            cell.enter(&node.cut(), Side::Above);
            link = node.above;
        }
    }

    /// The cuts of a cell whose rows all lie where `target` does, until a lifetime, so many at most.
    fn follow(&mut self, cell: &mut Cell, target: &[f64], lifetime: f64, most: u32) {
        for _ in 0..most {
            let Some(cut) = cell.next_cut_until(lifetime) else { return };
            let side = Side::of(target[cut.dim as usize], cut.location);
            self.push(one_sided(side));
            cell.enter(&cut, side);
        }
    }

    /// The cells of the rows of two trees of the same key, and for each its number in both, or [`NONE`].
    ///
    /// # Errors
    /// [`Error::Incompatible`] where their cuts differ: those of other keys, boxes or lifetimes.
    pub(crate) fn merged(&self, other: &Self) -> Result<(Self, Vec<[u32; 2]>)> {
        let mut merged = Self { codes: Vec::with_capacity(self.codes.len().max(other.codes.len())), ..Self::default() };
        let mut numbers = Vec::with_capacity(self.n_cells.max(other.n_cells));
        let mut readers = [self.reader(), other.reader()];
        // What is still to come, the next last: a cell of both, or of one of them.
        let mut todo = match (self.n_codes > 0, other.n_codes > 0) {
            (true, true) => vec![BOTH],
            (true, false) => vec![BELOW],
            (false, true) => vec![ABOVE],
            (false, false) => vec![],
        };
        let differ = Error::Incompatible { what: "cuts of the cells" };
        while let Some(whose) = todo.pop() {
            if whose != BOTH {
                merged.copy(&mut readers, usize::from(whose == ABOVE), &mut numbers).ok_or(differ.clone())?;
                continue;
            }
            let [Some(a), Some(b)] = readers.each_mut().map(Reader::next) else { return Err(differ) };
            if (a == END) != (b == END) {
                return Err(differ);
            }
            merged.push(a | b);
            if a == END {
                numbers.push(readers.each_ref().map(|reader| reader.n_cells - 1));
                continue;
            }
            for side in [ABOVE, BELOW] {
                let (has_a, has_b) = (a & side != 0, b & side != 0);
                if has_a || has_b {
                    todo.push(u8::from(has_a) | u8::from(has_b) << 1);
                }
            }
        }
        let is_all_read = readers.iter().all(|reader| reader.at == reader.cells.n_codes);
        if is_all_read { Ok((merged, numbers)) } else { Err(differ) }
    }

    /// Copies all cells below the next cell of one of two.
    fn copy(&mut self, readers: &mut [Reader<'_>; 2], which: usize, numbers: &mut Vec<[u32; 2]>) -> Option<()> {
        let mut n_open = 1_usize;
        while n_open > 0 {
            let code = readers[which].next()?;
            self.push(code);
            match code {
                END => {
                    let mut both = [NONE; 2];
                    both[which] = readers[which].n_cells - 1;
                    numbers.push(both);
                    n_open -= 1;
                }
                BOTH => n_open += 1,
                _ => {}
            }
        }
        Some(())
    }

    /// The tree of a key that has these cells with so many rows in each. All of them are leaves; the one point of each is
    /// `first` and those after it, which no store needs to have.
    ///
    /// # Errors
    /// [`ModelFileError::Inconsistent`] if the key's cuts are others.
    pub(crate) fn grown(&self, domain: &Domain, key: NodeKey, counts: &[u32], first: u32) -> Result<Tree> {
        let differ = || ModelFileError::Inconsistent { what: "a tree's cells and the cuts of its key" };
        let (mut arena, mut root) = (Arena::default(), Link::EMPTY);
        let (mut cell, lifetime) = (domain.root_cell(key), domain.lifetime().get());
        let mut todo: Vec<(NodeId, usize)> = Vec::new();
        // The side of a node that comes next, and the first node of the current run of cuts with an empty side.
        let (mut parent, mut run) = (None, 0);
        let mut reader = self.reader();
        while let Some(code) = reader.next() {
            let cut = cell.next_cut_until(lifetime);
            let (cut, side) = match (code, cut) {
                (END, None) => {
                    let number = reader.n_cells - 1;
                    let count = *counts.get(number as usize).ok_or_else(differ)?;
                    let leaf = Link::leaf(arena.leaves.push(std::iter::once(first + number), |_| count));
                    let link = close_run(&mut arena, domain, run, Some(leaf), &cell);
                    attach(&mut arena, &mut root, parent, link);
                    let Some((node, depth)) = todo.pop() else { break };
                    while cell.depth() > depth {
                        cell.leave();
                    }
                    cell.enter(&arena.nodes[node.index()].cut(), Side::Above);
                    (parent, run) = (Some((node, Side::Above)), arena.nodes.len());
                    continue;
                }
                (BOTH, Some(cut)) => {
                    let link = close_run(&mut arena, domain, run, None, &cell);
                    attach(&mut arena, &mut root, parent, link);
                    let node = NodeId::next_of(&arena.nodes);
                    arena.nodes.push(Node::new(&cut));
                    todo.push((node, cell.depth()));
                    (parent, run) = (Some((node, Side::Below)), arena.nodes.len());
                    (cut, Side::Below)
                }
                (BELOW | ABOVE, Some(cut)) => {
                    let side = if code == BELOW { Side::Below } else { Side::Above };
                    let next = Link::inner(NodeId::next_of(&arena.nodes).plus(1));
                    arena.nodes.push(Node::one_sided(&cut, side, next));
                    (cut, side)
                }
                _ => return Err(differ().into()),
            };
            cell.enter(&cut, side);
        }
        if reader.at != self.n_codes || counts.len() != self.n_cells {
            return Err(differ().into());
        }
        Ok(Tree::of_leaves(key, root, arena))
    }
}

/// The code of a cut with rows on one side.
fn one_sided(side: Side) -> u8 {
    match side {
        Side::Below => BELOW,
        Side::Above => ABOVE,
    }
}

/// Ends the run of nodes from `run` on with a leaf or the node that comes next, as growing a tree from points does.
fn close_run(arena: &mut Arena, domain: &Domain, run: usize, leaf: Option<Link>, cell: &Cell) -> Link {
    let Arena { nodes, chains, .. } = arena;
    let first = Link::inner(NodeId::new(run as u32));
    if nodes.len() - run >= LEAST_CUTS && domain.is_chained() {
        let chain = chains.add_nodes(&nodes[run..], leaf.unwrap_or(first), cell);
        nodes.truncate(run);
        return chain;
    }
    let Some(leaf) = leaf else { return first };
    let Some(last) = nodes[run..].last_mut() else { return leaf };
    *last.link_mut(last.full_side()) = leaf;
    first
}

fn attach(arena: &mut Arena, root: &mut Link, parent: Option<(NodeId, Side)>, link: Link) {
    match parent {
        Some((node, side)) => *arena.nodes[node.index()].link_mut(side) = link,
        None => *root = link,
    }
}

impl Tree {
    /// A tree whose cells are all leaves: no node has its rows counted yet.
    fn of_leaves(key: NodeKey, root: Link, mut arena: Arena) -> Self {
        for id in (0..arena.nodes.len()).rev() {
            let node = arena.nodes[id];
            // Sums of the leaves' counts, which were checked to fit together.
            let rows = node.links().map(|link| match arena.end_of(link).kind() {
                crate::tree::Kind::Inner(id) => arena.nodes[id.index()].count,
                crate::tree::Kind::Leaf(id) => arena.leaves.leaf(id).count(),
                crate::tree::Kind::Single(_) | crate::tree::Kind::Empty => 0,
            });
            arena.nodes[id].count = rows[0].saturating_add(rows[1]);
        }
        arena.nodes.shrink_to_fit();
        arena.leaves.shrink_to_fit();
        arena.chains.shrink_to_fit();
        Self::from_arena(key, root, arena)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lifetime;
    use crate::process::Bounds;

    fn uniform(k: u64) -> f64 {
        NodeKey::root(23, k).draw(0).uniform()
    }

    /// Rows in clusters, so that there are chains, with repeats.
    fn store(n_rows: u64, n_dims: u64, part: impl Fn(u64) -> bool) -> PointStore {
        let mut store = PointStore::new(n_dims as usize);
        for row in (0..n_rows).filter(|row| part(*row)) {
            let place = |dim: u64| uniform(row % 5 * n_dims + dim) + 1e-3 * uniform(1000 + row % 40 * n_dims + dim);
            store.add(&(0..n_dims).map(place).collect::<Vec<_>>()).unwrap();
        }
        store
    }

    fn domain(n_dims: usize, lifetime: f64) -> Domain {
        let bounds = Bounds::new(&vec![0.0; n_dims], &vec![1.001; n_dims]).unwrap();
        Domain::new(3, &bounds, Lifetime::new(lifetime).unwrap()).unwrap()
    }

    #[test]
    fn cells_of_parts_are_merged_to_those_of_all_rows() {
        for (n_rows, n_dims, lifetime) in [(0, 1, 3.0), (1, 2, 9.0), (60, 1, 0.0), (60, 2, 30.0), (90, 3, 2e3)] {
            for domain in [domain(n_dims as usize, lifetime), domain(n_dims as usize, lifetime).storing_every_cut()] {
                let key = domain.tree_key(7);
                let cells = |store: &PointStore| {
                    let tree = Tree::grown(&domain, key, store);
                    let (mut counts, mut n_points) = (Vec::new(), 0);
                    let cells = OccupiedCells::of(&tree, &domain, store, |points| {
                        n_points += points.len();
                        counts.push(points.iter().map(|p| store.multiplicity(*p)).sum::<u32>());
                    });
                    assert_eq!((n_points, counts.len()), (store.n_points(), cells.len()));
                    (cells, counts)
                };
                let (all, counts) = cells(&store(n_rows, n_dims, |_| true));
                for modulus in [2, 3, 7] {
                    let (mut sum, mut sum_counts) = (OccupiedCells::default(), Vec::new());
                    for part in 0..modulus {
                        let (part, part_counts) = cells(&store(n_rows, n_dims, |row| row % modulus == part));
                        let (merged, numbers) = part.merged(&sum).unwrap();
                        let count = |counts: &[u32], number| counts.get(number as usize).copied().unwrap_or(0);
                        sum_counts =
                            numbers.iter().map(|[a, b]| count(&part_counts, *a) + count(&sum_counts, *b)).collect();
                        sum = merged;
                    }
                    assert_eq!((&sum, &sum_counts), (&all, &counts));
                }
                let tree = all.grown(&domain, key, &counts, 0).unwrap();
                let again = OccupiedCells::of(&tree, &domain, &PointStore::new(n_dims as usize), |_| ());
                assert_eq!(again, all);
                let restored = OccupiedCells::restored(all.codes().to_vec(), all.n_codes()).unwrap();
                assert_eq!(restored, all);
                if all.len() > 1 {
                    assert!(all.grown(&domain, domain.tree_key(8), &counts, 0).is_err(), "the cuts of another key");
                }
            }
        }
    }

    #[test]
    fn codes_of_no_tree_are_refused() {
        for (codes, n_codes) in
            [(vec![], 1), (vec![BOTH], 1), (vec![BELOW], 1), (vec![0], 2), (vec![0, 0], 1), (vec![0b100], 1)]
        {
            assert!(OccupiedCells::restored(codes, n_codes).is_err());
        }
        let (one, two) = (OccupiedCells::restored(vec![0], 1).unwrap(), OccupiedCells::restored(vec![1], 2).unwrap());
        assert!(one.merged(&two).is_err() && one.merged(&one).is_ok());
    }
}
