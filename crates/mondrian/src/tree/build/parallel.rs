//! Growing one large tree on several threads: its top first, then the parts below it side by side.
//!
//! A part is a pure function of its cell's key and its points, so who grows it makes no difference. For forests with
//! fewer trees than threads; elsewhere a thread a tree is better.

use crate::parallel::prelude::*;

use crate::process::{Cell, NodeKey, Side};
use crate::tree::build::Grower;
use crate::tree::{Arena, ChainId, Codes, Domain, Link, LinkKind, NodeId, PointStore, Tree};

/// Fewer points are grown by one thread: cutting them up would take longer.
const LEAST_POINTS: usize = 1 << 15;
/// Parts a thread, so that uneven ones even out.
const PARTS_A_THREAD: usize = 8;

/// A cell that waits to be grown: where it hangs, its points, and the walk that stands in it.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) parent: Option<(NodeId, Side)>,
    pub(crate) points: Vec<u32>,
    pub(crate) cell: Cell,
}

/// What was grown of a part.
struct Grown {
    parent: Option<(NodeId, Side)>,
    root: Link,
    arena: Arena,
}

impl Tree {
    /// As [`Tree::grown_by`], on all threads.
    pub fn grown_in_parts(domain: &Domain, key: NodeKey, store: &PointStore, codes: Option<&Codes>) -> Self {
        let n_parts = PARTS_A_THREAD * crate::parallel::current_num_threads();
        if store.n_points() < LEAST_POINTS || crate::parallel::current_num_threads() == 1 {
            return Self::grown_by(domain, key, store, codes);
        }
        let (mut cell, mut arena) = (domain.root_cell(key), Arena::default());
        let mut top = Grower::reading(store, codes, domain, &mut cell, &mut arena);
        let mut points = store.all_points();
        top.aside_from = points.len().div_ceil(n_parts);
        let root = top.grow(&mut points);
        let parts = std::mem::take(&mut top.aside);
        let grown: Vec<Grown> = parts.into_par_iter().map(|part| part.grow(domain, store, codes)).collect();
        top.arena.nodes.reserve_exact(grown.iter().map(|part| part.arena.nodes.len()).sum());
        for part in grown {
            part.hang(&mut top);
        }
        top.count_rows(0);
        top.arena.leaves.shrink_to_fit();
        top.arena.chains.shrink_to_fit();
        Self::from_arena(key, root, arena)
    }
}

impl Part {
    fn grow(mut self, domain: &Domain, store: &PointStore, codes: Option<&Codes>) -> Grown {
        let mut arena = Arena::default();
        let root = Grower::reading(store, codes, domain, &mut self.cell, &mut arena).grow(&mut self.points);
        Grown { parent: self.parent, root, arena }
    }
}

impl Grown {
    /// Appends what the part is built of to the whole, numbered on.
    fn hang(self, whole: &mut Grower<'_>) {
        let Arena { nodes, leaves, chains } = &mut *whole.arena;
        let (first_node, first_leaf) = (nodes.len() as u32, leaves.len() as u32);
        let first_chain = chains.take_all(&self.arena.chains);
        let moved = |child: Link| match child.kind() {
            LinkKind::Inner(id) => Link::inner(id.plus(first_node)),
            LinkKind::Leaf(id) => Link::leaf(id.plus(first_leaf)),
            LinkKind::Chain(id) => Link::chain(id.plus(first_chain)),
            LinkKind::Single(_) | LinkKind::Empty => child,
        };
        chains.rename_ends(ChainId::new(first_chain), moved);
        leaves.append(&self.arena.leaves);
        nodes.extend(self.arena.nodes.into_iter().map(|node| node.renamed(moved)));
        let (node, side) = self.parent.expect("a part is smaller than the whole");
        *nodes[node.index()].link_mut(side) = moved(self.root);
    }
}
