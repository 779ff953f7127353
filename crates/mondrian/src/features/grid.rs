//! The grid as a feature map: the cell of a point in each grid, for any lifetimes and any point.

use std::collections::HashMap;

use crate::parallel::prelude::*;

use crate::features::{CellArray, UNSEEN};
use crate::process::Axis;
use crate::process::NodeKey;
use crate::{Error, Points, Result};

/// M grids of D keyed Poisson processes each: a pure function of the seed, with no root box (report, chapter 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MondrianGrid {
    seed: u64,
    n_grids: usize,
}

impl MondrianGrid {
    /// `n_grids` grids.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] without grids.
    pub fn new(n_grids: usize, seed: u64) -> Result<Self> {
        if n_grids == 0 {
            return Err(Error::InvalidParameter { name: "n_grids", value: 0.0, expected: "at least 1" });
        }
        Ok(Self { seed, n_grids })
    }

    /// Number of grids.
    pub fn n_grids(&self) -> usize {
        self.n_grids
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The process of one dimension of one grid.
    pub fn axis(&self, grid: usize, dim: usize) -> Axis {
        Axis::new(NodeKey::root(self.seed, grid as u64).fork(0x6772_6964).fork(dim as u64))
    }

    /// A drawing of one grid in two of its dimensions, as an SVG document: on a box, at a lifetime of each dimension (report,
    /// chapter 5, figure 1). The longer side has `size` pixels.
    ///
    /// ```
    /// use mondrian::internals::features::MondrianGrid;
    /// let svg = MondrianGrid::new(1, 7)?.svg(0, [0, 1], [0.0, 0.0], [1.0, 1.0], [8.0, 3.0], 300.0)?;
    /// assert!(svg.starts_with("<svg"));
    /// # Ok::<(), mondrian::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for a box without extent, lifetimes that are not finite and ≥ 0, or a size that is not between
    /// 16 and 100000; [`Error::TooLarge`] for too many cuts.
    pub fn svg(
        &self,
        grid: usize,
        dims: [usize; 2],
        lower: [f64; 2],
        upper: [f64; 2],
        lifetimes: [f64; 2],
        size: f64,
    ) -> Result<String> {
        if !(16.0..=100_000.0).contains(&size) {
            let expected = "between 16 and 100000 pixels";
            return Err(Error::InvalidParameter { name: "size", value: size, expected });
        }
        let cuts = |axis: usize| {
            let length = upper[axis] - lower[axis];
            if !(length > 0.0 && length.is_finite()) {
                return Err(Error::InvalidParameter {
                    name: "upper",
                    value: upper[axis],
                    expected: "above lower, and finite",
                });
            }
            self.axis(grid, dims[axis]).cuts(lower[axis], upper[axis], lifetimes[axis])
        };
        let cuts = [cuts(0)?, cuts(1)?];
        Ok(crate::process::picture::grid::draw(size, lower, upper, &cuts, lifetimes).to_svg())
    }
}

/// Indicator features of the cells that contain training rows, one lifetime per dimension.
///
/// With values 1/√M the inner product of two points' features has the general Laplace kernel as its expectation,
/// wherever the points lie.
///
/// ```
/// use mondrian::Points;
/// use mondrian::GridFeatures;
/// use mondrian::internals::features::UNSEEN;
/// let x = [0.0, 0.0, 0.1, 0.0, 5.0, 3.0];
/// let features = GridFeatures::fit(50, 1, Points::row_major(&x, 2)?, &[1.0, 0.0])?;
/// let cells = features.transform(Points::row_major(&[0.1, 70.0, 1e6, 0.0], 2)?)?;
/// // The second dimension has lifetime 0, so 70 is as good as 0; and a million is far from every row.
/// assert!(cells[..50].iter().all(|&c| c != UNSEEN) && cells[50..].iter().all(|&c| c == UNSEEN));
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct GridFeatures {
    pub(crate) grid: MondrianGrid,
    pub(crate) lifetimes: Vec<f64>,
    /// Range of the training rows, one pair per dimension.
    pub(crate) ranges: Vec<(f64, f64)>,
    pub(crate) grids: Vec<OneGrid>,
    pub(crate) n_features: usize,
}

/// The cuts within the training rows' range and the cells that hold rows.
#[derive(Debug, Clone)]
pub(crate) struct OneGrid {
    /// One sorted list per dimension.
    pub(crate) cuts: Vec<Vec<f64>>,
    pub(crate) cells: HashMap<NodeKey, u32>,
}

impl OneGrid {
    /// The cuts of grid `m` within the ranges.
    fn without_cells(grid: MondrianGrid, m: usize, ranges: &[(f64, f64)], lifetimes: &[f64]) -> Result<Self> {
        let locations = |(d, range): (usize, &(f64, f64))| -> Result<Vec<f64>> {
            let cuts = grid.axis(m, d).cuts(range.0, range.1, lifetimes[d])?;
            Ok(cuts.into_iter().map(|cut| cut.location).collect())
        };
        let cuts = ranges.iter().enumerate().map(locations).collect::<Result<Vec<_>>>()?;
        Ok(Self { cuts, cells: HashMap::new() })
    }

    /// 128 bits mixed with every interval number: two different tuples never collide in practice.
    fn key(&self, point: impl Iterator<Item = f64>) -> NodeKey {
        let intervals = point.enumerate().map(|(dim, x)| self.interval(dim, x));
        intervals.fold(NodeKey::from_bits(0), NodeKey::fork)
    }

    fn interval(&self, dim: usize, x: f64) -> u64 {
        self.cuts[dim].partition_point(|&cut| cut < x) as u64
    }
}

impl GridFeatures {
    /// The cells of these rows in `n_grids` grids.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] without grids, [`Error::LengthMismatch`] unless there is one lifetime per dimension,
    /// [`Error::Empty`] without rows, and [`Error::TooLarge`] where too many cuts are expected.
    pub fn fit(n_grids: usize, seed: u64, points: Points<'_>, lifetimes: &[f64]) -> Result<Self> {
        Self::on(MondrianGrid::new(n_grids, seed)?, points, lifetimes)
    }

    /// The cells of these rows.
    pub(crate) fn on(grid: MondrianGrid, points: Points<'_>, lifetimes: &[f64]) -> Result<Self> {
        points.check_width(lifetimes.len())?;
        if points.n_rows() == 0 {
            return Err(Error::Empty { what: "X", rows: 0, columns: points.n_columns() });
        }
        let range =
            |d: usize| points.column(d).fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), x| (lo.min(x), hi.max(x)));
        let ranges: Vec<(f64, f64)> = (0..lifetimes.len()).map(range).collect();
        let build = |m: usize| {
            let mut one = OneGrid::without_cells(grid, m, &ranges, lifetimes)?;
            for row in 0..points.n_rows() {
                let key = one.key(points.row(row));
                let number = one.cells.len() as u32;
                one.cells.entry(key).or_insert(number);
            }
            Ok(one)
        };
        let mut grids = (0..grid.n_grids()).into_par_iter().map(build).collect::<Result<Vec<OneGrid>>>()?;
        let mut n_features = 0;
        for one in &mut grids {
            let first = n_features as u32;
            n_features += one.cells.len();
            one.cells.values_mut().for_each(|number| *number += first);
        }
        if n_features >= UNSEEN as usize {
            return Err(Error::TooLarge { what: "cells", expected: n_features as f64, limit: f64::from(UNSEEN) });
        }
        Ok(Self { grid, lifetimes: lifetimes.to_vec(), ranges, grids, n_features })
    }

    /// Cells of all grids together.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// Number of grids.
    pub fn n_grids(&self) -> usize {
        self.grid.n_grids()
    }

    /// The lifetimes.
    pub fn lifetimes(&self) -> &[f64] {
        &self.lifetimes
    }

    /// The cell numbers of these points, one row of M numbers per point, `u32::MAX` where no training row lies.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the width differs; [`Error::TooLarge`] where too many cuts are expected.
    pub fn transform(&self, points: Points<'_>) -> Result<Vec<u32>> {
        points.check_width(self.lifetimes.len())?;
        let n_grids = self.grids.len();
        let mut cells = vec![UNSEEN; points.n_rows() * n_grids];
        cells.par_chunks_mut(n_grids).enumerate().try_for_each(|(row, out)| {
            let point: Vec<f64> = points.row(row).collect();
            for (m, cell) in out.iter_mut().enumerate() {
                *cell = self.cell(m, &point)?;
            }
            Ok::<(), Error>(())
        })?;
        Ok(cells)
    }

    /// The same as a feature matrix for ridge regression.
    ///
    /// # Errors
    /// As for [`GridFeatures::transform`].
    pub fn cells(&self, points: Points<'_>) -> Result<CellArray> {
        CellArray::from_row_major(&self.transform(points)?, self.grids.len(), self.n_features)
    }

    fn cell(&self, m: usize, point: &[f64]) -> Result<u32> {
        let one = &self.grids[m];
        for (d, &x) in point.iter().enumerate() {
            // Beyond the range of the training rows a point is in the outermost interval unless a cut lies in between.
            let nearest = x.clamp(self.ranges[d].0, self.ranges[d].1);
            if nearest != x && self.grid.axis(m, d).separates(nearest, x, self.lifetimes[d])? {
                return Ok(UNSEEN);
            }
        }
        let key = one.key(point.iter().copied());
        Ok(one.cells.get(&key).copied().unwrap_or(UNSEEN))
    }
}
