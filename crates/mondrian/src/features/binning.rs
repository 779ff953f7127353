//! Random binning (Rahimi and Recht 2007) for the Laplace kernel.

use crate::parallel::prelude::*;

use crate::features::FeatureMap;
use crate::features::Features;
use crate::features::numbering::Numbering;
use crate::kernel::LaplaceKernel;
use crate::process::NodeKey;
use crate::{Error, Points, Result};

/// Cells of M random grids.
///
/// A grid's pitch δ in dimension d has the density λ²δe^{−λδ} (Gamma, shape 2), its shift is uniform: two
/// coordinates share a bin with probability max(0, 1 − |x − x'|/δ), which averages to e^{−λ|x − x'|} over δ.
///
/// ```
/// use mondrian::{FeatureMap, RandomBinning};
/// use mondrian::LaplaceKernel;
/// use mondrian::internals::features::Design;
/// use mondrian::{Lifetime, Points};
/// let mut map = RandomBinning::new(&LaplaceKernel::new(Lifetime::new(1.0)?)?, 2, 100, 7)?;
/// let z = map.learn(Points::row_major(&[0.0, 0.0, 0.1, 0.2], 2)?)?;
/// assert_eq!(z.n_columns(), map.n_columns());
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct RandomBinning {
    pub(crate) lifetimes: Vec<f64>,
    pub(crate) roots: Vec<NodeKey>,
    pub(crate) numbering: Numbering,
}

/// Makes the keys of grids different from those of trees under the same seed.
const GRIDS: u64 = 0x42_696E_6E69_6E67;

impl RandomBinning {
    /// `n_grids` grids for points of `n_dims` dimensions.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the kernel has another number of lifetimes, [`Error::Empty`] without grids.
    pub fn new(kernel: &LaplaceKernel, n_dims: usize, n_grids: usize, seed: u64) -> Result<Self> {
        if n_grids == 0 || n_dims == 0 {
            return Err(Error::Empty { what: "grids", rows: n_grids, columns: n_dims });
        }
        Ok(Self {
            lifetimes: kernel.lifetimes(n_dims)?,
            roots: (0..n_grids as u64).map(|grid| NodeKey::root(seed, grid).fork(GRIDS)).collect(),
            numbering: Numbering::new(n_grids),
        })
    }

    /// The names of the points' cells, grid by grid.
    fn names(&self, points: Points<'_>) -> Result<Vec<Vec<u128>>> {
        points.check_width(self.n_dims())?;
        Ok(self.roots.par_iter().map(|root| self.names_in_grid(*root, points)).collect())
    }

    /// Dimension by dimension: the bin number is mixed into the name.
    fn names_in_grid(&self, root: NodeKey, points: Points<'_>) -> Vec<u128> {
        let mut names = vec![root; points.n_rows()];
        for (d, &lifetime) in self.lifetimes.iter().enumerate() {
            if lifetime == 0.0 {
                // An infinite pitch: all in one bin.
                continue;
            }
            let (offset, pitch) = grid_axis(root, d, lifetime);
            for (name, x) in names.iter_mut().zip(points.column(d)) {
                *name = name.fork(((x - offset) / pitch).floor() as i64 as u64);
            }
        }
        names.into_iter().map(NodeKey::to_bits).collect()
    }
}

/// Offset and pitch of one dimension.
fn grid_axis(root: NodeKey, dim: usize, lifetime: f64) -> (f64, f64) {
    let key = root.fork(dim as u64);
    let (first, second) = (key.draw(0), key.draw(1));
    // A sum of two exponentials is Gamma with shape 2.
    let pitch = (first.exponential() + second.exponential()) / lifetime;
    (pitch * first.uniform(), pitch)
}

impl FeatureMap for RandomBinning {
    fn n_dims(&self) -> usize {
        self.lifetimes.len()
    }

    fn n_columns(&self) -> usize {
        self.numbering.n_columns()
    }

    fn learn(&mut self, points: Points<'_>) -> Result<Features> {
        let names = self.names(points)?;
        Ok(self.numbering.learn(&names)?.into())
    }

    fn transform(&self, points: Points<'_>) -> Result<Features> {
        Ok(self.numbering.look_up(&self.names(points)?)?.into())
    }
}
