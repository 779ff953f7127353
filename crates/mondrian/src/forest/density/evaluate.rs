//! Log densities of many rows at once: the forest's average, tree by tree.

#![expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]

use crate::parallel::prelude::*;

use crate::Lifetime;
use crate::forest::Forest;
use crate::forest::density::descent::{Descent, Follower, SplitRange};
use crate::forest::density::polya::{CutOff, Polya, Split};
use crate::forest::density::wide::Wide;

/// Rows evaluated at once: the more, the fewer nodes a row has to itself. Their values in all trees are held.
const BLOCK: usize = 8192;

/// Whether the rows asked about count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counting {
    /// The density as it is.
    Present,
    /// Without one row of the point itself, which must have been learned.
    LeftOut,
}

/// Writes the value of each point down where it comes to rest.
struct Values<'a> {
    polya: Polya,
    counting: Counting,
    out: &'a mut [Wide],
}

impl Follower for Values<'_> {
    type Value = Wide;

    #[inline]
    fn split(&mut self, split: &Split, _: SplitRange, value: Wide) -> [Wide; 2] {
        let [below, above] = match self.counting {
            Counting::Present => self.polya.growth(split),
            Counting::LeftOut => self.polya.growth_without_one(split),
        };
        [value.times(below), value.times(above)]
    }

    #[inline(always)]
    fn cut_off(&mut self, cut: CutOff, value: Wide) -> Option<[Wide; 2]> {
        let [stays, leaves] = match self.counting {
            Counting::Present => self.polya.growth_of_cut_off(cut),
            Counting::LeftOut => return None,
        };
        Some([value.times(stays), value.times(leaves)])
    }

    #[inline]
    fn rest(&mut self, value: Wide, points: &[u32]) {
        for point in points {
            self.out[*point as usize] = value;
        }
    }
}

/// The log of the forest's density times the root's volume, for rows in measure coordinates inside the root box.
pub(crate) fn log_growth(
    forest: &Forest,
    coordinates: &[f64],
    lifetime: Lifetime,
    polya: Polya,
    counting: Counting,
) -> Vec<f64> {
    let n_dims = forest.n_dims();
    let mut logs = Vec::with_capacity(coordinates.len() / n_dims);
    // A frozen cell of one row holds none when that row is left out: nothing changes in it.
    let alone = u32::from(counting == Counting::LeftOut);
    for block in coordinates.chunks(BLOCK * n_dims) {
        let n = block.len() / n_dims;
        let descent = Descent::new(forest, lifetime, block).resume_above(alone);
        let per_tree: Vec<Vec<Wide>> = (0..forest.n_trees())
            .into_par_iter()
            .map(|tree| {
                let mut out = vec![Wide::ONE; n];
                let mut points: Vec<u32> = (0..n as u32).collect();
                descent.follow(tree, &mut points, Wide::ONE, &mut Values { polya, counting, out: &mut out });
                out
            })
            .collect();
        let mut of_row = vec![Wide::ONE; forest.n_trees()];
        for row in 0..n {
            of_row.iter_mut().zip(&per_tree).for_each(|(value, values)| *value = values[row]);
            logs.push(Wide::log_mean(&of_row));
        }
    }
    logs
}
