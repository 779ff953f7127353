//! The next cut of a cell, for walks through a tree in the order of time.

use crate::process::{Cut, Side};
use crate::tree::{ChainId, Child, Link, LinkKind, Locator, NodeId, Tree};

/// How a cell that holds training points is cut next.
#[derive(Debug, Clone)]
pub(crate) struct NextCut(Next);

#[derive(Debug, Clone)]
enum Next {
    Node(NodeId),
    Chain(ChainId),
    /// The cuts of a chain drawn again, with the side of each that holds points, the first last; and what it ends in.
    Run(Vec<(Cut, Side)>, Link),
}

/// A cut, what lies on its sides, and how those are cut next.
#[derive(Debug)]
pub(crate) struct FrontierCut {
    pub(crate) cut: Cut,
    pub(crate) children: [Child; 2],
    pub(crate) next: [Option<NextCut>; 2],
}

impl NextCut {
    /// The first cut of a tree.
    pub(crate) fn of_root(tree: &Tree) -> Option<Self> {
        Self::of(tree.root)
    }

    fn of(link: Link) -> Option<Self> {
        match link.kind() {
            LinkKind::Inner(id) => Some(Self(Next::Node(id))),
            LinkKind::Chain(id) => Some(Self(Next::Chain(id))),
            LinkKind::Single(_) | LinkKind::Leaf(_) | LinkKind::Empty => None,
        }
    }

    /// When.
    pub(crate) fn time(&self, tree: &Tree) -> f64 {
        match &self.0 {
            Next::Node(id) => tree.node(*id).time,
            Next::Chain(id) => tree.chain(*id).first_time(),
            Next::Run(cuts, _) => cuts.last().map_or(f64::INFINITY, |(cut, _)| cut.time),
        }
    }

    /// Whether cuts come first that no node stores: [`NextCut::skip_or_draw`] is to be called.
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self.0, Next::Chain(_))
    }

    /// Passes cuts that no node stores where all `rows` of the cell stay with the training points, or else draws them.
    pub(crate) fn skip_or_draw<'x, 'a>(
        self,
        tree: &Tree,
        mut rows: impl Iterator<Item = &'x [f64]>,
        locator: &mut Option<Locator<'a>>,
        new_locator: impl FnOnce() -> Locator<'a>,
    ) -> Option<Self> {
        let Next::Chain(id) = self.0 else { return Some(self) };
        let end = tree.chain(id).end();
        let Some(leaver) = rows.find(|x| !tree.chain_holds(id, x)) else { return Self::of(end) };
        let mut cuts: Vec<(Cut, Side)> = locator.get_or_insert_with(new_locator).cuts_of_chain(leaver, id).collect();
        cuts.reverse();
        Some(Self(Next::Run(cuts, end)))
    }

    /// The cut.
    ///
    /// # Panics
    /// If it is [unknown](NextCut::is_unknown).
    pub(crate) fn take(self, tree: &Tree) -> FrontierCut {
        match self.0 {
            Next::Node(id) => {
                let node = tree.node(id);
                FrontierCut { cut: node.cut(), children: tree.children(node), next: node.links().map(Self::of) }
            }
            Next::Run(mut cuts, end) => {
                let (cut, side) = cuts.pop().expect("a run with no cuts left is at its end");
                let rest = if cuts.is_empty() { Self::of(end) } else { Some(Self(Next::Run(cuts, end))) };
                let (mut children, mut next) = ([Child::EMPTY; 2], [None, None]);
                (children[side.index()], next[side.index()]) = (Child::of(end), rest);
                FrontierCut { cut, children, next }
            }
            Next::Chain(_) => unreachable!("cuts that no node stores are drawn first"),
        }
    }
}
