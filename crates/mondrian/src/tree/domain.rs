//! What all trees of a model stand on: the ladder of boxes, the lifetime, the seed.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::process::{Bounds, Cell, NodeKey};
use crate::{Lifetime, Result};

/// Which rules a model follows where they differ between versions of the model file. A model of an older file keeps its own, so
/// that it says what it said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rules {
    /// Version 1: the ladder of boxes takes a side of two neighbouring floats as it is; automatic priors and γ come from all
    /// rows.
    #[default]
    First,
    /// Version 2: such a side [counts as its unit](Bounds::widened); automatic values come from a keyed sample of the rows.
    Second,
}

impl Rules {
    /// Those of new models.
    pub const CURRENT: Self = Self::Second;
}

/// The root boxes and the lifetime of a model's trees.
#[derive(Debug, Clone, PartialEq)]
pub struct Domain {
    seed: u64,
    rules: Rules,
    /// Root boxes from the first to the current rung of the ladder.
    boxes: Arc<[Bounds]>,
    lifetime: Lifetime,
    /// Whether long runs of cuts with an empty side are kept as chains.
    is_chained: bool,
}

impl Domain {
    /// Trees under `seed` on the box `first`, in measure coordinates, cut until `lifetime`.
    ///
    /// The box is taken to start just below its lower corner: cells are half-open, (lower, upper], so that the
    /// smallest of the data lies inside one.
    ///
    /// # Errors
    /// [`crate::Error::TooLarge`] for more dimensions than a node can name, or sides whose sum overflows.
    pub fn new(seed: u64, first: &Bounds, lifetime: Lifetime) -> Result<Self> {
        if first.n_dims() >= crate::tree::arena::node::MAX_DIMS {
            return Err(crate::Error::TooLarge {
                what: "dimensions",
                expected: first.n_dims() as f64,
                limit: crate::tree::arena::node::MAX_DIMS as f64,
            });
        }
        let lower: Vec<f64> = first.lower().iter().map(|x| x.next_down()).collect();
        let boxes = Arc::from([with_rate(Bounds::new(&lower, first.upper())?)?]);
        Ok(Self { seed, rules: Rules::CURRENT, boxes, lifetime, is_chained: usually_chained() })
    }

    /// The same domain with its first box as it is stored, already starting just below its lower corner.
    ///
    /// # Errors
    /// [`crate::Error::TooLarge`] for a rung above the ladder, or sides whose sum overflows.
    pub fn restored(seed: u64, first: Bounds, rung: u32, lifetime: Lifetime) -> Result<Self> {
        Self::restored_under(Rules::CURRENT, seed, first, rung, lifetime)
    }

    /// As [`Domain::restored`], under the rules of the file it comes from.
    ///
    /// # Errors
    /// As for [`Domain::restored`].
    pub fn restored_under(rules: Rules, seed: u64, first: Bounds, rung: u32, lifetime: Lifetime) -> Result<Self> {
        let boxes = Arc::from([with_rate(first)?]);
        let mut domain = Self { seed, rules, boxes, lifetime, is_chained: usually_chained() };
        domain.set_rung(rung)?;
        Ok(domain)
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The rules it follows.
    pub fn rules(&self) -> Rules {
        self.rules
    }

    /// The key of tree `index`.
    pub fn tree_key(&self, index: usize) -> NodeKey {
        NodeKey::root(self.seed, index as u64)
    }

    /// Number of dimensions.
    pub fn n_dims(&self) -> usize {
        self.boxes[0].n_dims()
    }

    /// The first root box.
    pub fn first_box(&self) -> &Bounds {
        &self.boxes[0]
    }

    /// The current root box.
    pub fn root_box(&self) -> &Bounds {
        &self.boxes[self.boxes.len() - 1]
    }

    /// How often the first box was widened.
    pub fn rung(&self) -> u32 {
        self.boxes.len() as u32 - 1
    }

    /// The lifetime up to which trees are cut.
    pub fn lifetime(&self) -> Lifetime {
        self.lifetime
    }

    /// The same domain with another lifetime.
    #[must_use]
    pub fn with_lifetime(&self, lifetime: Lifetime) -> Self {
        Self { lifetime, ..self.clone() }
    }

    /// The same domain on another first box, not widened.
    ///
    /// # Errors
    /// As for [`Domain::new`].
    pub(crate) fn on_first_box(&self, first: &Bounds) -> Result<Self> {
        let Self { boxes, .. } = Self::new(self.seed, first, self.lifetime)?;
        Ok(Self { boxes, ..self.clone() })
    }

    /// The same domain, with trees that keep every cut as a node and never make a [chain](crate::tree::Chain).
    ///
    /// For who looks at every cut whatever it parts, as densities do, and to compare: the cuts are the same.
    #[must_use]
    pub fn storing_every_cut(&self) -> Self {
        Self { is_chained: false, ..self.clone() }
    }

    pub(crate) fn is_chained(&self) -> bool {
        self.is_chained
    }

    /// The lowest rung that holds a box.
    ///
    /// # Errors
    /// As [`Bounds::rung_holding`].
    pub fn rung_holding(&self, bounds: &Bounds) -> Result<u32> {
        bounds.lowest_rung(|rung| self.widened(rung))
    }

    /// The lowest rung that holds a point of the root box.
    pub(crate) fn rung_of(&self, x: &[f64]) -> u32 {
        let holds = |bounds: &Bounds| bounds.contains(x);
        self.boxes.iter().position(holds).map_or_else(|| self.rung(), |rung| rung as u32)
    }

    /// A rung of the ladder.
    fn widened(&self, rung: u32) -> Result<Bounds> {
        match self.rules {
            Rules::First => self.boxes[0].widened_in_version_1(rung),
            Rules::Second => self.boxes[0].widened(rung),
        }
    }

    /// Widens (or narrows) the root box to a rung of the ladder.
    ///
    /// # Errors
    /// [`crate::Error::TooLarge`]; the domain is then as before.
    pub fn set_rung(&mut self, rung: u32) -> Result<()> {
        if rung == self.rung() {
            return Ok(());
        }
        self.boxes = (0..=rung).map(|r| with_rate(self.widened(r)?)).collect::<Result<_>>()?;
        Ok(())
    }

    /// A walk at the root of a tree.
    pub fn root_cell(&self, key: NodeKey) -> Cell {
        Cell::of_shared(&self.boxes, key)
    }

    /// Takes a walk back to the root of a tree, settled or not; it may have been on another domain.
    pub(crate) fn restart(&self, cell: &mut Cell, key: NodeKey) {
        if cell.is_on(&self.boxes) {
            cell.restart(key);
        } else {
            *cell = self.root_cell(key);
        }
    }

    /// The point of the root box nearest to `point`, written over it, and how far that was in sum of coordinates.
    pub fn clamp(&self, point: &mut [f64]) -> f64 {
        let root = self.root_box();
        let mut distance = 0.0;
        for (x, (&lo, &hi)) in point.iter_mut().zip(root.lower().iter().zip(root.upper())) {
            // Cells are half-open: the lowest point inside is the float above the lower corner.
            let lo = lo.next_up().min(hi);
            let nearest = x.clamp(lo, hi);
            distance += (*x - nearest).abs();
            *x = nearest;
        }
        distance
    }
}

/// A cell is cut at the rate of its linear dimension: the sum of the sides must be a number like each of them.
fn with_rate(bounds: Bounds) -> Result<Bounds> {
    if bounds.linear_dimension().is_finite() {
        return Ok(bounds);
    }
    Err(crate::Error::TooLarge { what: "the sum of the sides", expected: f64::INFINITY, limit: f64::MAX })
}

#[cfg(not(test))]
fn usually_chained() -> bool {
    true
}

#[cfg(test)]
thread_local! {
    static IS_CHAINED: std::cell::Cell<bool> = const { std::cell::Cell::new(true) };
}

#[cfg(test)]
fn usually_chained() -> bool {
    IS_CHAINED.get()
}

/// Runs something on this thread with grounds [without chains](Domain::without_chains): the slow twin of whole models.
#[cfg(test)]
pub(crate) fn all_without_chains<T>(work: impl FnOnce() -> T) -> T {
    IS_CHAINED.set(false);
    let result = work();
    IS_CHAINED.set(true);
    result
}
