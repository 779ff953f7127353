//! One row after the other down trees in a single pass, cuts that no node stores included.

use crate::process::Side;
use crate::tree::arena::node::LinkKind;
use crate::tree::query::replay::Replay;
use crate::tree::{Child, Domain, Landing, Node, PointStore, Tree};

/// Room for single rows: kept from row to row and from tree to tree, so that the next one allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Tracer(Option<Box<Replay>>);

impl Tracer {
    /// Where a point of the root box lands at a lifetime of at most the domain's: what [`crate::tree::Locator::locate`] says. Calls
    /// `pass` with each node whose cut it passes towards training points, and what lies on its side.
    pub(crate) fn trace(
        &mut self,
        (tree, domain, store): (&Tree, &Domain, &PointStore),
        x: &[f64],
        lifetime: f64,
        mut pass: impl FnMut(&Node, Child),
    ) -> Landing {
        let walk = self.0.get_or_insert_with(|| Box::new(Replay::on(domain.root_cell(tree.key()))));
        domain.restart(&mut walk.cell, tree.key());
        let (mut link, mut above) = (tree.root, Child::EMPTY);
        let mut time = 0.0;
        loop {
            match link.kind() {
                LinkKind::Inner(id) => {
                    let node = tree.node(id);
                    if node.time > lifetime {
                        return Landing::Seen(Child::of(link));
                    }
                    let side = node.side_of(x);
                    (above, time) = (Child::of(link), node.time);
                    link = node.link(side);
                    if !link.is_empty() {
                        walk.cell.sink(&node.cut(), side);
                        pass(node, tree.end_of(link));
                    }
                }
                LinkKind::Chain(id) if tree.chain_holds(id, x) => {
                    link = tree.chain(id).end();
                    if tree.chain(id).last_time() > lifetime {
                        return Landing::Seen(Child::of(link));
                    }
                    walk.cell.sink_far(tree.arena.chains.further(id));
                }
                LinkKind::Chain(id) => {
                    let (chain, parent) = (tree.chain(id), Child::of(tree.chain(id).end()));
                    if chain.first_time() <= lifetime {
                        walk.cell.settle();
                        walk.start_here(tree, id);
                        if let Some(time) = walk.time_of_leaving(x, lifetime) {
                            return Landing::Unseen { time, parent };
                        }
                    }
                    return Landing::Seen(parent);
                }
                LinkKind::Single(point) => {
                    let (frozen, child) = (store.point(point), Child::of(link));
                    let left = if frozen == x { None } else { time_of_parting(walk, x, frozen, lifetime) };
                    return left.map_or(Landing::Seen(child), |time| Landing::Unseen { time, parent: child });
                }
                LinkKind::Leaf(_) => return Landing::Seen(Child::of(link)),
                LinkKind::Empty => return Landing::Unseen { time, parent: above },
            }
        }
    }
}

/// When the cuts of a frozen cell, which the walk has come to, part a row from its point; none within the lifetime.
fn time_of_parting(walk: &mut Replay, x: &[f64], frozen: &[f64], lifetime: f64) -> Option<f64> {
    let cell = &mut walk.cell;
    cell.settle();
    while let Some(cut) = cell.next_cut_until(lifetime) {
        let dim = cut.dim as usize;
        let side = Side::of(x[dim], cut.location);
        if side != Side::of(frozen[dim], cut.location) {
            return Some(cut.time);
        }
        cell.enter(&cut, side);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lifetime;
    use crate::process::{Bounds, NodeKey};
    use crate::tree::Locator;

    #[test]
    fn one_pass_lands_where_the_locator_does() {
        let mut tracer = Tracer::default();
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
                        let landing = tracer.trace((&tree, &domain, &store), &query, lifetime, |node, child| {
                            passed.push((node.time(), child));
                        });
                        assert_eq!(landing, locator.locate(&query));
                        locator.follow(&query, |node, child| expected.push((node.time(), child)));
                        expected.retain(|(_, child)| *child != Child::EMPTY);
                        assert_eq!(passed, expected);
                    }
                }
            }
        }
    }
}
