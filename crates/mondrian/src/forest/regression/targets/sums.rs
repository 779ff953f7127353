//! The sums that a regression forest keeps at every node and leaf.

use super::Targets;
use crate::forest::NodeStatistics;
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
    /// Zeros follow, for what is no node.
    node: Vec<f64>,
    /// Exact sums, rounded once.
    leaf: Vec<f64>,
}

impl Sums {
    /// Asks for the memory of a node's sums, if a way down has come to one, where there is one channel.
    #[inline]
    pub(super) fn prefetch(&self, way: &Descent) {
        prefetch(&self.node, way.number());
    }

    /// Bytes taken.
    pub(crate) fn n_bytes(&self) -> usize {
        size_of_val(self.node.as_slice()) + size_of_val(self.leaf.as_slice())
    }
}

impl Targets {
    #[inline]
    fn sum(&self, sums: &Sums, child: Child, channel: usize) -> f64 {
        let channels = self.n_channels();
        match child.kind() {
            Kind::Inner(id) => sums.node[id.index() * channels + channel],
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

    /// The sums of a node whose children have theirs, of so many channels or [`ANY`].
    #[inline]
    fn sum_node<const CHANNELS: usize>(&self, tree: &Tree, id: NodeId, sums: &mut Sums) {
        let channels = if CHANNELS == ANY { self.n_channels() } else { CHANNELS };
        let (no_point, no_node) = (self.last_row.len() as u32, tree.no_node());
        let [below, above] = tree.children(tree.node(id));
        for channel in 0..channels {
            let end = |child: Child| match child.kind() {
                Kind::Leaf(leaf) => sums.leaf[leaf.index() * channels + channel],
                _ => self.point_floats[child.single_or(no_point) as usize * channels + channel],
            };
            let node = |child: Child| sums.node[child.inner_or(no_node).index() * channels + channel];
            // At most two of the four are not zero.
            let sum = ((end(below) + end(above)) + node(below)) + node(above);
            sums.node[id.index() * channels + channel] = sum;
        }
    }

    /// As [`Targets::sum_node`] for all nodes.
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
                    let [below, above] =
                        children.map(|child| sums.node[child.inner_or(no_node).index() * channels + channel]);
                    // At most two of the four are not zero.
                    sums.node[id.index() * channels + channel] = ((ends[0] + ends[1]) + below) + above;
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
        sums.node = vec![0.0; (tree.n_nodes() + 1) * channels];
        sums.leaf = vec![0.0; tree.n_leaves() * channels];
        self.sum_leaves(tree, sums);
        match channels {
            1 => self.sum_nodes::<1>(tree, sums),
            _ => self.sum_nodes::<ANY>(tree, sums),
        }
    }

    fn update(&self, tree: &Tree, touched: &Touched, sums: &mut Sums) {
        let channels = self.n_channels();
        sums.node.resize((tree.n_nodes() + 1) * channels, 0.0);
        sums.node[tree.n_nodes() * channels..].fill(0.0);
        sums.leaf.resize(tree.n_leaves() * channels, 0.0);
        for leaf in &touched.leaves {
            let points = tree.leaf(*leaf).points();
            for channel in 0..channels {
                let float = |k: usize| self.point_floats[points[k] as usize * channels + channel];
                sums.leaf[leaf.index() * channels + channel] = self.sum_leaf(points, channel, float);
            }
        }
        let nodes = touched.nodes.iter().rev();
        match channels {
            1 => nodes.for_each(|id| self.sum_node::<1>(tree, *id, sums)),
            _ => nodes.for_each(|id| self.sum_node::<ANY>(tree, *id, sums)),
        }
    }

    /// What lies beside the way: every node's sums are made of those of both its sides.
    fn prefetch(&self, tree: &Tree, touched: &Touched, sums: &Sums) {
        let (channels, no_point) = (self.n_channels(), self.last_row.len() as u32);
        for id in &touched.nodes {
            for link in tree.node(*id).links() {
                tree.prefetch_chain(link);
                prefetch(&sums.node, link.to_word() as usize * channels);
                prefetch(&self.point_floats, Child::unresolved(link).single_or(no_point) as usize * channels);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forest::{ForestParams, LifetimeChoice, RegressionParams};
    use crate::process::NodeKey;
    use crate::{Lifetime, Points};

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
            assert_eq!((bits(&sums.leaf), bits(&sums.node)), (bits(&twin.leaf), bits(&twin.node)));
        }
    }
}
