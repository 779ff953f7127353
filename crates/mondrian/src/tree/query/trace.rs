//! Where one row after the other leaves the training points, by cuts that no node stores included.

use crate::process::Side;
use crate::tree::arena::node::LinkKind;
use crate::tree::query::replay::Replay;
use crate::tree::{Descent, Domain, Link, PointStore, Tree};

/// Room for single rows: kept from row to row and from tree to tree, so that the next one allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Tracer(Option<Box<Replay>>);

impl Tracer {
    /// When a point of the root box left the training points, within the lifetime of a way down that has ended: by the cut with an
    /// empty side that it came to last, or by one that no node stores. None if it did not.
    pub(crate) fn time_of_leaving(
        &mut self,
        (tree, domain, store): (&Tree, &Domain, &PointStore),
        x: &[f64],
        lifetime: f64,
        way: &Descent<'_>,
    ) -> Option<f64> {
        match way.link.kind() {
            LinkKind::Empty => Some(way.time),
            LinkKind::Leaf(_) | LinkKind::Inner(_) => None,
            LinkKind::Chain(id) => {
                if tree.chain(id).first_time() > lifetime || tree.chain_holds(id, x) {
                    return None;
                }
                let walk = self.walk_to(tree, domain, x, way.link);
                walk.start_here(tree, id);
                walk.time_of_leaving(x, lifetime)
            }
            LinkKind::Single(point) => {
                let frozen = store.point(point);
                if frozen == x {
                    return None;
                }
                time_of_parting(self.walk_to(tree, domain, x, way.link), x, frozen, lifetime)
            }
        }
    }

    /// A walk that has come to what a link on the way of a point leads to, settled.
    fn walk_to(&mut self, tree: &Tree, domain: &Domain, x: &[f64], link: Link) -> &mut Replay {
        let walk = self.0.get_or_insert_with(|| Box::new(Replay::on(domain.root_cell(tree.key()))));
        domain.restart(&mut walk.cell, tree.key());
        tree.sink_to(&mut walk.cell, x, link);
        walk.cell.settle();
        walk
    }
}

/// When the cuts of a frozen cell, which the walk has come to, part a row from its point; none within the lifetime.
fn time_of_parting(walk: &mut Replay, x: &[f64], frozen: &[f64], lifetime: f64) -> Option<f64> {
    let cell = &mut walk.cell;
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
    use crate::tree::{DescentStep, Landing, Locator};

    #[test]
    fn ways_end_where_the_locator_ends() {
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
                        let mut way = Descent::new(&tree, lifetime);
                        loop {
                            match way.step(&query) {
                                DescentStep::Block(node, child) => passed.push((node.time(), child)),
                                DescentStep::Passed => {}
                                DescentStep::Left | DescentStep::Stayed | DescentStep::Unclear => break,
                            }
                        }
                        let left = tracer.time_of_leaving((&tree, &domain, &store), &query, lifetime, &way);
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
