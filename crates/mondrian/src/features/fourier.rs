//! Random Fourier features (Rahimi and Recht 2007) for the Laplace kernel.

use crate::parallel::prelude::*;

use crate::features::FeatureMap;
use crate::features::Features;
use crate::kernel::LaplaceKernel;
use crate::linalg::Matrix;
use crate::memory;
use crate::process::NodeKey;
use crate::{Error, Points, Result};

/// Cosines and sines at random frequencies.
///
/// e^{−λ|t|} is the characteristic function of a Cauchy variable with scale λ. Each frequency gives a cosine and a
/// sine, which together have length exactly √(2/n); with an odd number of columns the last one is a cosine with a
/// random phase.
#[derive(Debug, Clone)]
pub struct RandomFourier {
    pub(crate) n_dims: usize,
    pub(crate) n_columns: usize,
    /// One frequency vector per pair of columns, one after the other.
    pub(crate) frequencies: Vec<f64>,
    /// Of the unpaired last column.
    pub(crate) phase: f64,
}

/// Makes these keys different from those of trees under the same seed.
const FREQUENCIES: u64 = 0x46_6F75_7269_6572;

impl RandomFourier {
    /// `n_columns` features for points of `n_dims` dimensions.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the kernel has another number of lifetimes, [`Error::Empty`] without columns.
    pub fn new(kernel: &LaplaceKernel, n_dims: usize, n_columns: usize, seed: u64) -> Result<Self> {
        if n_columns == 0 || n_dims == 0 {
            return Err(Error::Empty { what: "features", rows: n_columns, columns: n_dims });
        }
        let lifetimes = kernel.lifetimes(n_dims)?;
        memory::check("bytes of the frequencies", memory::bytes_of(n_columns.div_ceil(2), n_dims))?;
        let key = |pair: usize| NodeKey::root(seed, pair as u64).fork(FREQUENCIES);
        let frequency = |pair: usize, d: usize| {
            let angle = std::f64::consts::PI * (key(pair).fork(d as u64).draw(0).uniform() - 0.5);
            lifetimes[d] * libm::tan(angle)
        };
        let n_pairs = n_columns.div_ceil(2);
        let frequencies = (0..n_pairs).flat_map(|pair| (0..n_dims).map(move |d| (pair, d)));
        let frequencies = frequencies.map(|(pair, d)| frequency(pair, d)).collect();
        let phase = std::f64::consts::TAU * key(n_pairs).draw(1).uniform();
        Ok(Self { n_dims, n_columns, frequencies, phase })
    }

    fn angle(&self, pair: usize, point: &[f64]) -> f64 {
        self.frequencies[pair * self.n_dims..][..self.n_dims].iter().zip(point).map(|(w, x)| w * x).sum()
    }
}

impl FeatureMap for RandomFourier {
    fn n_dims(&self) -> usize {
        self.n_dims
    }

    fn n_columns(&self) -> usize {
        self.n_columns
    }

    fn learn(&mut self, points: Points<'_>) -> Result<Features> {
        self.transform(points)
    }

    fn transform(&self, points: Points<'_>) -> Result<Features> {
        points.check_width(self.n_dims)?;
        let n = points.n_rows();
        memory::check("bytes of the features", memory::bytes_of(n, self.n_columns))?;
        let mut out = Matrix::zeros(n, self.n_columns);
        if n == 0 {
            return Ok(out.into());
        }
        let rows = points.to_row_major();
        let scale = (2.0 / self.n_columns as f64).sqrt();
        out.as_mut_slice().par_chunks_mut(2 * n).enumerate().for_each(|(pair, columns)| {
            let (cosines, sines) = columns.split_at_mut(n);
            for (i, point) in rows.chunks_exact(self.n_dims).enumerate() {
                let angle = self.angle(pair, point);
                if let Some(sine) = sines.get_mut(i) {
                    let (s, c) = libm::sincos(angle);
                    (cosines[i], *sine) = (scale * c, scale * s);
                } else {
                    cosines[i] = scale * libm::cos(angle + self.phase);
                }
            }
        });
        if !out.as_slice().iter().all(|feature| feature.is_finite()) {
            return Err(Error::TooLarge {
                what: "a coordinate times its frequency",
                expected: f64::INFINITY,
                limit: f64::MAX,
            });
        }
        Ok(out.into())
    }
}
