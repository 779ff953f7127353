//! The nearest rows in the kernel's distance, exactly: those with the largest entries.
//!
//! Two ways to the same bits. [`PackedRows::nearest_by_scan`] looks at all rows and is the twin of
//! [`PackedRows::nearest`], which leaves out the blocks whose box is farther away than enough rows already seen. Equal
//! distances are settled by the number of the row.

use crate::parallel::prelude::*;

use crate::laplace::KernelRows;
use crate::laplace::entries::{BlockBounds, BlockDistances};
use crate::laplace::packed::{BLOCK, GROUPS, LANES, Lanes, PackedRows};
use crate::linalg::Threads;
use crate::simd::with_vectors;
use crate::{Error, Result};

/// The nearest rows of some queries, nearest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Neighbors {
    rows: Vec<u32>,
    n_neighbors: usize,
}

impl Neighbors {
    /// How many of each query.
    pub fn n_neighbors(&self) -> usize {
        self.n_neighbors
    }

    /// The numbers of the rows nearest to a query, nearest first.
    pub fn of(&self, query: usize) -> &[u32] {
        &self.rows[query * self.n_neighbors..][..self.n_neighbors]
    }
}

/// A row's distance and number as one number that sorts like the pair: distances are not negative.
fn key(distance: f32, row: u32) -> u64 {
    u64::from(distance.to_bits()) << 32 | u64::from(row)
}

/// The m nearest rows of those shown so far, and often a few more.
struct Nearest {
    m: usize,
    /// The row to leave out.
    own: Option<u32>,
    keys: Vec<u64>,
    /// No row with a key from here on is among the m nearest.
    limit: u64,
}

impl Nearest {
    fn new(m: usize) -> Self {
        Self { m, own: None, keys: Vec::with_capacity(2 * m + 6 * BLOCK), limit: u64::MAX }
    }

    fn restart(&mut self, own: Option<u32>) {
        self.keys.clear();
        (self.own, self.limit) = (own, u64::MAX);
    }

    /// The distance from which on (exclusive) rows need not be shown.
    fn reach(&self) -> f32 {
        f32::from_bits((self.limit >> 32) as u32)
    }

    /// Shows the rows of a block.
    fn show(&mut self, packed: &PackedRows, block: usize, row: &[[f32; 1]]) {
        let numbers = &packed.order()[block * BLOCK..][..packed.rows_of_block(block)];
        let mut found = [[0.0; LANES]; GROUPS];
        with_vectors(BlockDistances { packed, block, row, out: &mut found });
        // All bits set would be no number.
        let reach = if self.limit == u64::MAX { f32::INFINITY } else { self.reach() };
        for (found, numbers) in found.iter().zip(numbers.chunks(LANES)) {
            if found.iter().map(|d| u32::from(*d <= reach)).sum::<u32>() > 0 {
                for (&d, &number) in found.iter().zip(numbers) {
                    let key = key(d, number);
                    if d <= reach && key < self.limit && self.own != Some(number) {
                        self.keys.push(key);
                    }
                }
            }
        }
        if self.keys.len() > 2 * self.m + 4 * BLOCK {
            self.shrink();
        }
    }

    fn shrink(&mut self) {
        if self.keys.len() > self.m {
            self.keys.select_nth_unstable(self.m - 1);
            self.keys.truncate(self.m);
            self.limit = self.keys[self.m - 1] + 1;
        }
    }

    fn write(&mut self, out: &mut [u32]) {
        self.shrink();
        self.keys.sort_unstable();
        for (out, key) in out.iter_mut().zip(&self.keys) {
            *out = *key as u32;
        }
    }
}

impl PackedRows {
    /// The `m` nearest rows of each query, `skip[i]`, where given, left out for query i.
    ///
    /// # Errors
    /// [`Error::Incompatible`] if the queries have other columns, [`Error::LengthMismatch`] if there are fewer than `m`
    /// rows besides the one left out, or not one number to skip per query.
    pub fn nearest(&self, queries: &KernelRows, m: usize, skip: Option<&[u32]>, threads: Threads) -> Result<Neighbors> {
        let queries = self.packed_queries(queries)?;
        let row = |i: usize, query: &mut Vec<[f32; 1]>| query.extend(queries.row(i).map(|x| [x]));
        self.nearest_by_index(queries.n_rows(), row, m, skip, threads)
    }

    /// As [`PackedRows::nearest`], for the rows at these places, each left out of its own neighbours. Errors are the same.
    pub(crate) fn nearest_of_places(&self, places: &[usize], m: usize, threads: Threads) -> Result<Neighbors> {
        let own: Vec<u32> = places.iter().map(|&place| self.order()[place]).collect();
        let row = |i: usize, query: &mut Vec<[f32; 1]>| query.extend(self.row(places[i]).map(|x| [x]));
        self.nearest_by_index(places.len(), row, m, Some(&own), threads)
    }

    fn nearest_by_index(
        &self,
        n_queries: usize,
        row: impl Fn(usize, &mut Vec<[f32; 1]>) + Sync,
        m: usize,
        skip: Option<&[u32]>,
        threads: Threads,
    ) -> Result<Neighbors> {
        let least = m.div_ceil(BLOCK) + 1;
        self.nearest_by(n_queries, row, m, skip, threads, |query, nearest, limits| {
            with_vectors(BlockBounds { packed: self, row: query, out: limits });
            let limits = &limits.as_flattened()[..self.n_blocks()];
            // The rows around the nearest block tell how far away a block can matter.
            let mut first = 0;
            for (b, limit) in limits.iter().enumerate() {
                first = if *limit < limits[first] { b } else { first };
            }
            let start = first.saturating_sub(least / 2).min(self.n_blocks().saturating_sub(least));
            let seen = start..(start + least).min(self.n_blocks());
            seen.clone().for_each(|b| nearest.show(self, b, query));
            nearest.shrink();
            let reach = nearest.reach();
            let open = |b: &usize| limits[*b] <= reach && !seen.contains(b);
            let mut order: Vec<u64> = (0..limits.len()).filter(open).map(|b| key(limits[b], b as u32)).collect();
            order.sort_unstable();
            for bound in order {
                if f32::from_bits((bound >> 32) as u32) > nearest.reach() {
                    break;
                }
                nearest.show(self, bound as u32 as usize, query);
            }
        })
    }

    /// As [`PackedRows::nearest`], by looking at all rows. Errors are the same.
    pub fn nearest_by_scan(
        &self,
        queries: &KernelRows,
        m: usize,
        skip: Option<&[u32]>,
        threads: Threads,
    ) -> Result<Neighbors> {
        let queries = self.packed_queries(queries)?;
        let row = |i: usize, query: &mut Vec<[f32; 1]>| query.extend(queries.row(i).map(|x| [x]));
        self.nearest_by(queries.n_rows(), row, m, skip, threads, |query, nearest, _| {
            (0..self.n_blocks()).for_each(|b| nearest.show(self, b, query));
        })
    }

    fn packed_queries(&self, queries: &KernelRows) -> Result<Self> {
        let queries = self.pack_queries(queries);
        let what = "the columns of queries and rows";
        if queries.shape == self.shape { Ok(queries) } else { Err(Error::Incompatible { what }) }
    }

    fn nearest_by(
        &self,
        n_queries: usize,
        row: impl Fn(usize, &mut Vec<[f32; 1]>) + Sync,
        m: usize,
        skip: Option<&[u32]>,
        threads: Threads,
        find: impl Fn(&[[f32; 1]], &mut Nearest, &mut Vec<Lanes>) + Sync,
    ) -> Result<Neighbors> {
        let n = self.n_rows();
        if m > n - usize::from(skip.is_some()).min(n) {
            return Err(Error::LengthMismatch { what: "rows to be neighbours of a query", expected: m, found: n });
        }
        if let Some(skip) = skip.filter(|skip| skip.len() != n_queries) {
            let (expected, found) = (n_queries, skip.len());
            return Err(Error::LengthMismatch { what: "rows to leave out", expected, found });
        }
        let mut rows = vec![0; n_queries * m];
        let chunk = |(k, out): (usize, &mut [u32])| {
            let (mut nearest, mut limits, mut query) = (Nearest::new(m), Vec::new(), Vec::new());
            for (i, out) in (k * CHUNK..).zip(out.chunks_exact_mut(m)) {
                nearest.restart(skip.map(|skip| skip[i]));
                query.clear();
                row(i, &mut query);
                find(&query, &mut nearest, &mut limits);
                nearest.write(out);
            }
        };
        if m > 0 && threads == Threads::ONE {
            rows.chunks_mut(m * CHUNK).enumerate().for_each(chunk);
        } else if m > 0 {
            rows.par_chunks_mut(m * CHUNK).enumerate().for_each(chunk);
        }
        Ok(Neighbors { rows, n_neighbors: m })
    }
}

/// Queries of one task.
const CHUNK: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::NodeKey;

    fn sample(seed: u64, n: usize, (q, c, r): (usize, usize, usize)) -> KernelRows {
        // Few different values, so that distances tie.
        let draw = |k: u64, i: usize| (8.0 * NodeKey::root(seed + k, i as u64).draw(0).normal()).round() / 8.0;
        let rows = KernelRows::without_columns(n).with_axes((0..n * q).map(|i| draw(0, i)).collect(), q).unwrap();
        let levels = (0..n * c).map(|i| draw(1, i).abs() as u32).collect();
        let rows = rows.with_levels(levels, vec![0.4; c]).unwrap();
        rows.with_directions((0..n * r).map(|i| draw(2, i)).collect(), r, 1.3).unwrap()
    }

    #[test]
    fn both_ways_find_the_nearest_rows() {
        for (n, m, shape) in [(1, 1, (1, 0, 0)), (900, 40, (2, 0, 0)), (1300, 200, (3, 1, 2)), (700, 5, (0, 2, 1))] {
            let (rows, queries) = (sample(1, n, shape), sample(9, 30, shape));
            let packed = PackedRows::new(&rows);
            let scan = packed.nearest_by_scan(&queries, m, None, Threads::ONE).unwrap();
            assert_eq!(packed.nearest(&queries, m, None, Threads::ONE).unwrap(), scan);
            assert_eq!(packed.nearest(&queries, m, None, Threads::up_to(2)).unwrap(), scan);
            for i in 0..30 {
                let mut exact: Vec<f64> = (0..n).map(|j| queries.distance_to(i, &rows, j)).collect();
                exact.sort_by(f64::total_cmp);
                for (row, expected) in scan.of(i).iter().zip(&exact) {
                    let found = queries.distance_to(i, &rows, *row as usize);
                    assert!((found - expected).abs() < 1e-5 * (1.0 + expected), "{found} {expected}");
                }
            }
        }
    }

    /// Squares beyond single precision make distances infinite: such rows are still found, the lowest numbers first.
    #[test]
    fn rows_infinitely_far_away_are_neighbours_too() {
        for exponent in [1.3, 1.99, 2.0] {
            let far = |i: usize| if i.is_multiple_of(2) { -3e19 } else { 3e19 };
            let rows = KernelRows::without_columns(400);
            let rows = rows.with_directions((0..800).map(far).collect(), 2, exponent).unwrap();
            let queries = KernelRows::without_columns(1).with_directions(vec![-3e19, 3e19], 2, exponent).unwrap();
            let packed = PackedRows::new(&rows);
            let found = packed.nearest(&queries, 300, None, Threads::ONE).unwrap();
            assert_eq!(packed.nearest_by_scan(&queries, 300, None, Threads::ONE).unwrap(), found);
            let other = rows.with_directions((0..800).map(|i| far(i / 2)).collect(), 2, exponent).unwrap();
            let packed = PackedRows::new(&other);
            let found = packed.nearest(&queries, 300, None, Threads::ONE).unwrap();
            assert_eq!(packed.nearest_by_scan(&queries, 300, None, Threads::ONE).unwrap(), found);
            let mut numbers = found.of(0).to_vec();
            numbers.sort_unstable();
            assert!(numbers.iter().enumerate().all(|(k, number)| k == *number as usize), "{exponent}");
        }
    }

    #[test]
    fn a_row_can_be_left_out_of_its_own_neighbours() {
        let rows = sample(1, 500, (2, 0, 0));
        let packed = PackedRows::new(&rows);
        let own: Vec<u32> = (0..500).collect();
        let found = packed.nearest(&rows, 499, Some(&own), Threads::ONE).unwrap();
        for i in 0..500 {
            let mut all = found.of(i).to_vec();
            all.push(i as u32);
            all.sort_unstable();
            assert_eq!(all, own);
        }
        assert!(matches!(packed.nearest(&rows, 500, Some(&own), Threads::ONE), Err(Error::LengthMismatch { .. })));
        let other = sample(1, 5, (1, 1, 0));
        assert!(matches!(packed.nearest(&other, 5, None, Threads::ONE), Err(Error::Incompatible { .. })));
    }
}
