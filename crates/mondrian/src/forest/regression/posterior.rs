//! The Gaussian model of a cell and of a chain of blocks (report, chapter 2; docs/design.md, "Regression").

use serde::{Deserialize, Serialize};

use crate::forest::regression::targets::{Sums, Targets};
use crate::tree::{Child, Locator, Tree};

/// Prior and noise of one target, resolved to numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Gaussian {
    /// Mean of the prior.
    pub prior_mean: f64,
    /// Variance σ²_prior of the prior.
    pub prior_variance: f64,
    /// Variance σ²_noise of an observation about its cell's mean.
    pub noise_variance: f64,
    /// How many observations the parent's mean counts as: σ²_noise/σ²_prior where both were given.
    pub kappa: f64,
}

/// Mean and variance of a cell's value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Posterior {
    pub(crate) mean: f64,
    pub(crate) variance: f64,
}

impl Posterior {
    pub(crate) fn prior(gaussian: &Gaussian) -> Self {
        Self { mean: gaussian.prior_mean, variance: gaussian.prior_variance }
    }

    /// The posterior given a cell's rows, with the parent's posterior as prior.
    ///
    /// Independent leaves have the prior for a parent (report, Example "Gaussian prediction model", with v_parent
    /// replaced by the closed form); in the hierarchy v = 0 above the root and κ shrinks towards the parent's mean.
    #[inline]
    pub(crate) fn after(parent: Self, sum: f64, weight: f64, gaussian: &Gaussian) -> Self {
        let kappa = gaussian.kappa;
        let total = weight + kappa;
        if total <= 0.0 {
            return parent;
        }
        let shrink = kappa / total;
        Self {
            mean: (sum + kappa * parent.mean) / total,
            variance: gaussian.noise_variance / total + shrink * shrink * parent.variance,
        }
    }

    /// The state above the root of the hierarchy.
    pub(crate) fn above_root(gaussian: &Gaussian) -> Self {
        Self { mean: gaussian.prior_mean, variance: 0.0 }
    }
}

/// A block on a point's path down: what lies between two cuts that separate training points.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    pub(crate) child: Child,
    /// When the cut above the block was made.
    pub(crate) birth: f64,
}

/// A point's path through the blocks of a tree, at a lifetime.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlockPath {
    pub(crate) blocks: Vec<Block>,
    /// Whether the point left the training points through a cut with an empty side; else it stayed in the last block.
    pub(crate) has_left: bool,
}

impl BlockPath {
    /// The path of `x`, a point of the root box.
    #[inline]
    pub(crate) fn follow(&mut self, locator: &mut Locator<'_>, x: &[f64]) {
        self.blocks.clear();
        self.blocks.push(Block { child: locator.tree().root(), birth: 0.0 });
        self.has_left = locator.follow(x, |node, child| {
            if node.separates() {
                self.blocks.push(Block { child, birth: node.time() });
            }
        });
    }
}

/// Evaluates posteriors along a path, for one target.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) sums: &'a Sums,
    pub(crate) targets: &'a Targets,
}

impl Reader<'_> {
    #[inline]
    pub(crate) fn weight(&self, child: Child) -> f64 {
        self.targets.weight_sum(self.tree, self.sums, child)
    }

    #[inline]
    pub(crate) fn sum(&self, child: Child, target: usize) -> f64 {
        self.targets.target_sum(self.sums, child, target)
    }

    /// The prediction at the end of a path. `distance` is how far the point lies outside the root box, in the
    /// measure: it leaves its path at that rate (docs/design.md, "Points outside the root box").
    pub(crate) fn hierarchical(
        &self,
        path: &BlockPath,
        distance: f64,
        lifetime: f64,
        target: usize,
        gaussian: &Gaussian,
    ) -> Posterior {
        if path.blocks[0].child == Child::EMPTY {
            return Posterior::prior(gaussian);
        }
        let mut posterior = Posterior::above_root(gaussian);
        if distance == 0.0 {
            for block in &path.blocks {
                let weight = self.weight(block.child);
                posterior = Posterior::after(posterior, self.sum(block.child, target), weight, gaussian);
            }
            let left_root = path.has_left && path.blocks.len() == 1;
            return if left_root { Posterior::prior(gaussian) } else { posterior };
        }
        let stays = |t: f64| if t == 0.0 { 1.0 } else { (-distance * t).exp() };
        let mut mixture = Mixture::about(gaussian.prior_mean);
        for (at, block) in path.blocks.iter().enumerate() {
            posterior = Posterior::after(posterior, self.sum(block.child, target), self.weight(block.child), gaussian);
            let end = path.blocks.get(at + 1).map(|b| stays(b.birth));
            let leaving = if at == 0 { Posterior::prior(gaussian) } else { posterior };
            match end {
                Some(end) => mixture.add(stays(block.birth) - end, leaving),
                // The last block: a point that left it through an empty side gets the same as one that leaves at rate
                // Δ, and below the root's so does one that stays.
                None if path.has_left || at > 0 => mixture.add(stays(block.birth), leaving),
                None => {
                    mixture.add(stays(block.birth) - stays(lifetime), leaving);
                    mixture.add(stays(lifetime), posterior);
                }
            }
        }
        mixture.posterior()
    }

    /// The posterior of a cell with these training rows, independent of its parent.
    pub(crate) fn independent(&self, child: Child, target: usize, gaussian: &Gaussian) -> Posterior {
        let above = Posterior::above_root(gaussian);
        Posterior::after(above, self.sum(child, target), self.weight(child), gaussian)
    }
}

/// The first two moments of a mixture, taken about a given place so that a large mean costs no digits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mixture {
    about: f64,
    mean: f64,
    square: f64,
}

impl Mixture {
    pub(crate) fn about(about: f64) -> Self {
        Self { about, mean: 0.0, square: 0.0 }
    }

    pub(crate) fn add(&mut self, weight: f64, posterior: Posterior) {
        let offset = posterior.mean - self.about;
        self.mean += weight * offset;
        self.square += weight * (posterior.variance + offset * offset);
    }

    /// Mean and variance of the mixture; its weights must sum to one.
    pub(crate) fn posterior(&self) -> Posterior {
        Posterior { mean: self.about + self.mean, variance: (self.square - self.mean * self.mean).max(0.0) }
    }
}
