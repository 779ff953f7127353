//! The sums that a regression forest keeps at every node and leaf.

use super::Targets;
use crate::forest::NodeStatistics;
use crate::process::Side;
use crate::simd::prefetch::prefetch;
use crate::tree::{Child, Descent, Kind, LeafId, NodeId, Touched, Tree, bits};

/// Nodes or leaves of a whole tree whose sums are made together: so many words with a bit for each.
const AT_ONCE: usize = WORD * N_WORDS;
const WORD: usize = 64;
const N_WORDS: usize = 4;
/// A number of channels that is not known beforehand.
const ANY: usize = 0;

/// Sums of one tree, by node and by leaf.
#[derive(Debug, Clone, Default)]
pub struct Sums {
    /// By node and channel, the sums of both sides: a row changes one of them, and the child on the other need not be looked up again.
    /// Zeros follow the last node, for what is no node.
    sides: Vec<[f64; 2]>,
    /// Exact sums, rounded once.
    leaf: Vec<f64>,
}

impl Sums {
    /// Asks for the memory of a node's sums, if a way down has come to one, where there is one channel.
    #[inline]
    pub(super) fn prefetch(&self, way: &Descent) {
        prefetch(&self.sides, way.number());
    }

    /// The sum of a node in a channel; `at` is its place in `sides`.
    #[inline]
    fn node(&self, at: usize) -> f64 {
        let [below, above] = self.sides[at];
        below + above
    }

    /// Bytes taken.
    pub(crate) fn n_bytes(&self) -> usize {
        size_of_val(self.sides.as_slice()) + size_of_val(self.leaf.as_slice())
    }
}

impl Targets {
    #[inline]
    fn sum(&self, sums: &Sums, child: Child, channel: usize) -> f64 {
        let channels = self.n_channels();
        match child.kind() {
            Kind::Inner(id) => sums.node(id.index() * channels + channel),
            Kind::Single(point) => self.point_floats[point as usize * channels + channel],
            Kind::Leaf(id) => sums.leaf[id.index() * channels + channel],
            Kind::Empty => 0.0,
        }
    }

    /// Σ w·y of a target over the rows of a cell.
    #[inline]
    pub fn target_sum(&self, sums: &Sums, child: Child, target: usize) -> f64 {
        self.sum(sums, child, target)
    }

    /// Σ w over the rows of a cell: their number where no weights were given.
    #[inline]
    pub fn weight_sum(&self, tree: &Tree, sums: &Sums, child: Child) -> f64 {
        if self.is_weighted {
            return self.sum(sums, child, self.n_targets);
        }
        f64::from(match child.kind() {
            Kind::Inner(id) => tree.node(id).count(),
            Kind::Single(point) => self.multiplicity[point as usize],
            Kind::Leaf(id) => tree.leaf(id).count(),
            Kind::Empty => 0,
        })
    }

    /// The sum of a leaf's points in one channel, given where to find each as a float; rounded once, so that it is the same
    /// whatever their order.
    #[inline]
    fn sum_leaf(&self, points: &[u32], channel: usize, float: impl Fn(usize) -> f64) -> f64 {
        let (channels, scale) = (self.n_channels(), &self.scales[channel]);
        let exact = |point: &u32| self.point_sums[*point as usize * channels + channel];
        match points.len() {
            _ if !self.point_sums.is_empty() => scale.float(points.iter().map(exact).sum()),
            // Adding two floats rounds once too.
            2 => float(0) + float(1),
            n => scale.float((0..n).map(|k| scale.integer(float(k))).sum()),
        }
    }

    /// As [`Targets::sum_leaf`] for all leaves. Their points lie anywhere, and those of many leaves are looked up in one go.
    fn sum_leaves(&self, tree: &Tree, sums: &mut Sums) {
        let (channels, all, mut floats) = (self.n_channels(), tree.n_leaves(), Vec::new());
        for first in (0..all).step_by(AT_ONCE) {
            let leaves =
                || (first..all.min(first + AT_ONCE)).map(|leaf| (leaf, tree.leaf(LeafId::new(leaf as u32)).points()));
            for channel in 0..channels {
                floats.clear();
                for (_, points) in leaves() {
                    floats.extend(points.iter().map(|point| self.point_floats[*point as usize * channels + channel]));
                }
                let mut start = 0;
                for (leaf, points) in leaves() {
                    sums.leaf[leaf * channels + channel] = self.sum_leaf(points, channel, |k| floats[start + k]);
                    start += points.len();
                }
            }
        }
    }

    /// The sums of a side of a node, where the child there has its own, of so many channels or [`ANY`].
    #[inline]
    fn sum_side<const CHANNELS: usize>(&self, tree: &Tree, id: NodeId, side: Side, sums: &mut Sums) {
        let channels = if CHANNELS == ANY { self.n_channels() } else { CHANNELS };
        let (no_point, no_node) = (self.last_row.len() as u32, tree.no_node());
        let child = tree.end_of(tree.node(id).link(side));
        for channel in 0..channels {
            let end = match child.kind() {
                Kind::Leaf(leaf) => sums.leaf[leaf.index() * channels + channel],
                _ => self.point_floats[child.single_or(no_point) as usize * channels + channel],
            };
            // At most one of the two is not zero.
            let sum = end + sums.node(child.inner_or(no_node).index() * channels + channel);
            sums.sides[id.index() * channels + channel][side.index()] = sum;
        }
    }

    /// The sums of what a change touched, whose leaves have theirs.
    fn sum_touched<const CHANNELS: usize>(&self, tree: &Tree, touched: &Touched, sums: &mut Sums) {
        let (way, new) = touched.nodes.split_at(touched.sides.len());
        for id in new.iter().rev() {
            Side::BOTH.into_iter().for_each(|side| self.sum_side::<CHANNELS>(tree, *id, side, sums));
        }
        for (id, side) in way.iter().zip(&touched.sides).rev() {
            self.sum_side::<CHANNELS>(tree, *id, *side, sums);
        }
    }

    /// As [`Targets::sum_side`] for both sides of all nodes.
    ///
    /// The points of frozen cells lie anywhere. They are looked up for many nodes in one go, with nothing in between that
    /// could be guessed wrong, so that a look need not wait for the one before.
    fn sum_nodes<const CHANNELS: usize>(&self, tree: &Tree, sums: &mut Sums) {
        let channels = if CHANNELS == ANY { self.n_channels() } else { CHANNELS };
        let (no_node, no_point) = (tree.no_node(), self.last_row.len() as u32);
        let (mut ids, mut some) = (tree.children_first(), [NodeId::new(0); AT_ONCE]);
        let (mut sides, mut ends) = ([[Child::EMPTY; 2]; AT_ONCE], [[0.0; 2]; AT_ONCE]);
        loop {
            let n = ids.by_ref().zip(&mut some).map(|(id, slot)| *slot = id).count();
            if n == 0 {
                return;
            }
            let others = sides_of(tree, &some[..n], &mut sides);
            for channel in 0..channels {
                // For both sides the sum of the frozen cell or leaf that they are or lead to, zero for others.
                for (ends, children) in ends.iter_mut().zip(&sides[..n]) {
                    *ends = children
                        .map(|child| self.point_floats[child.single_or(no_point) as usize * channels + channel]);
                }
                for (at, side) in places(&others) {
                    if let Kind::Leaf(leaf) = sides[at][side].kind() {
                        ends[at][side] = sums.leaf[leaf.index() * channels + channel];
                    }
                }
                for ((id, ends), children) in some[..n].iter().zip(&ends).zip(&sides) {
                    let node = |child: Child| sums.node(child.inner_or(no_node).index() * channels + channel);
                    // Of each side at most one of the two is not zero.
                    let both = [ends[0] + node(children[0]), ends[1] + node(children[1])];
                    sums.sides[id.index() * channels + channel] = both;
                }
            }
        }
    }
}

/// What lies on both sides of nodes; and which of those may be leaves: a bit for each node, below and above.
#[inline]
fn sides_of(tree: &Tree, nodes: &[NodeId], sides: &mut [[Child; 2]; AT_ONCE]) -> [[u64; 2]; N_WORDS] {
    let mut others = [[0; 2]; N_WORDS];
    for ((nodes, sides), others) in nodes.chunks(WORD).zip(sides.chunks_mut(WORD)).zip(&mut others) {
        *others = tree.children_of(nodes, sides);
    }
    others
}

/// The nodes and sides that have a bit.
#[inline]
fn places(words: &[[u64; 2]; N_WORDS]) -> impl Iterator<Item = (usize, usize)> {
    let words = words.as_flattened().iter().enumerate();
    words.flat_map(|(k, word)| bits(*word).map(move |at| (at + k / 2 * WORD, k % 2)))
}

impl NodeStatistics for Targets {
    type Stats = Sums;
    /// Targets, row-major, and weights.
    type Rows<'a> = (&'a [f64], Option<&'a [f64]>);

    fn take(&mut self, points: &[u32], (y, weights): Self::Rows<'_>) -> bool {
        self.add(points, y, weights)
    }

    fn gather(&self, tree: &Tree, sums: &mut Sums) {
        let channels = self.n_channels();
        sums.sides = vec![[0.0; 2]; (tree.n_nodes() + 1) * channels];
        sums.leaf = vec![0.0; tree.n_leaves() * channels];
        self.sum_leaves(tree, sums);
        match channels {
            1 => self.sum_nodes::<1>(tree, sums),
            _ => self.sum_nodes::<ANY>(tree, sums),
        }
    }

    fn update(&self, tree: &Tree, touched: &Touched, sums: &mut Sums) {
        let channels = self.n_channels();
        sums.sides.resize((tree.n_nodes() + 1) * channels, [0.0; 2]);
        sums.sides[tree.n_nodes() * channels..].fill([0.0; 2]);
        sums.leaf.resize(tree.n_leaves() * channels, 0.0);
        for leaf in &touched.leaves {
            let points = tree.leaf(*leaf).points();
            for channel in 0..channels {
                let float = |k: usize| self.point_floats[points[k] as usize * channels + channel];
                sums.leaf[leaf.index() * channels + channel] = self.sum_leaf(points, channel, float);
            }
        }
        match channels {
            1 => self.sum_touched::<1>(tree, touched, sums),
            _ => self.sum_touched::<ANY>(tree, touched, sums),
        }
    }

    /// The sums on the way, and what lies on both sides of new nodes.
    fn prefetch(&self, tree: &Tree, touched: &Touched, sums: &Sums) {
        let (channels, no_point) = (self.n_channels(), self.last_row.len() as u32);
        let (way, new) = touched.nodes.split_at(touched.sides.len());
        way.iter().for_each(|id| prefetch(&sums.sides, id.index() * channels));
        for link in new.iter().flat_map(|id| tree.node(*id).links()) {
            prefetch(&sums.sides, link.to_word() as usize * channels);
            prefetch(&self.point_floats, Child::unresolved(link).single_or(no_point) as usize * channels);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forest::{ForestParams, LifetimeChoice, RegressionParams};
    use crate::process::NodeKey;
    use crate::{FitOptions, Lifetime, Points};

    #[test]
    fn sums_of_floats_are_the_exact_ones_rounded_once() {
        let key = NodeKey::root(8, 8);
        let x: Vec<f64> = (0..4000).map(|i| key.draw(i).uniform()).collect();
        // Terms of very different size, so that plain sums would depend on the order.
        let y: Vec<f64> =
            (0..2000).map(|i| (key.draw(5000 + i).uniform() - 0.4) * 0.1_f64.powi(i as i32 % 40)).collect();
        let lifetime = LifetimeChoice::Value(Lifetime::new(10.0).unwrap());
        let params = RegressionParams {
            forest: ForestParams { lifetime, ..ForestParams::default() },
            ..RegressionParams::default()
        };
        let model = params.fit(Points::row_major(&x, 2).unwrap(), &y).unwrap();
        let targets = &model.core.targets;
        assert!(targets.point_sums.is_empty());
        let mut exact = targets.clone();
        exact.point_sums = y.iter().map(|y| targets.scales[0].units(*y) as i128).collect();
        for (tree, sums) in model.core.forest.trees() {
            let sizes = || tree.leaf_ids().map(|leaf| tree.leaf(leaf).points().len());
            assert!(sizes().any(|n| n == 2) && sizes().any(|n| n > 2));
            let mut twin = Sums::default();
            exact.gather(tree, &mut twin);
            let bits = |floats: &[f64]| floats.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            let sides = |sums: &Sums| bits(sums.sides.as_flattened());
            assert_eq!((bits(&sums.leaf), sides(sums)), (bits(&twin.leaf), sides(&twin)));
        }
    }

    #[test]
    fn sums_of_both_sides_are_those_gathered_anew_after_any_change() {
        let key = NodeKey::root(9, 9);
        let draw = |i: usize| key.draw(i as u32).uniform();
        for (n_targets, is_weighted, lifetime) in [(1, false, f64::INFINITY), (1, true, 6.0), (2, false, 6.0)] {
            // A lattice, so that rows come again, and pairs of close points, so that there are chains.
            let row = |i: usize| {
                [(draw(3 * i) * 9.0).floor() + 1e-3 * draw(3 * i + 1).round(), (draw(3 * i + 2) * 9.0).floor()]
            };
            let y = |i: usize| (0..n_targets).map(|t| draw(7000 + 2 * i + t) - 0.5).collect::<Vec<_>>();
            let lifetime = LifetimeChoice::Value(Lifetime::new(lifetime).unwrap());
            let forest = ForestParams { lifetime, n_trees: 3, ..ForestParams::default() };
            let params = RegressionParams { forest, ..RegressionParams::default() };
            let mut model =
                params.fit(Points::row_major(&[0.0, 0.0, 9.0, 9.0], 2).unwrap(), &vec![1.0; 2 * n_targets]).unwrap();
            let mut held: Vec<usize> = Vec::new();
            for step in 0..400 {
                if step % 3 == 2 {
                    let i = held.swap_remove((draw(20_000 + step) * held.len() as f64) as usize);
                    model.forget(Points::row_major(&row(i), 2).unwrap(), &y(i)).unwrap();
                } else {
                    // One row, or several at once.
                    let ids: Vec<usize> = (0..if step % 20 == 0 { 5 } else { 1 }).map(|k| 10 * step + k).collect();
                    let x: Vec<f64> = ids.iter().flat_map(|i| row(*i)).collect();
                    let targets: Vec<f64> = ids.iter().flat_map(|i| y(*i)).collect();
                    let weights = vec![1.5; ids.len()];
                    let options = FitOptions { weights: is_weighted.then_some(&weights[..]), ..FitOptions::default() };
                    model.learn_with(Points::row_major(&x, 2).unwrap(), &targets, options).unwrap();
                    held.extend(ids);
                }
                let targets = &model.core.targets;
                for (tree, sums) in model.core.forest.trees() {
                    let mut anew = Sums::default();
                    targets.gather(tree, &mut anew);
                    // The nodes that are still there.
                    let mut todo = vec![tree.root()];
                    while let Some(child) = todo.pop() {
                        let Kind::Inner(id) = child.kind() else { continue };
                        todo.extend(tree.children(tree.node(id)));
                        let places = id.index() * targets.n_channels()..(id.index() + 1) * targets.n_channels();
                        let bits = |sums: &Sums| {
                            sums.sides[places.clone()].as_flattened().iter().map(|x| x.to_bits()).collect::<Vec<_>>()
                        };
                        assert_eq!(bits(sums), bits(&anew), "step {step}, {id:?}");
                    }
                }
            }
        }
    }
}
