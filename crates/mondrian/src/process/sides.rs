//! Side lengths of a cell and their sum, the linear dimension, with a dimension picked in O(log D).
//!
//! The sum is a tree of fixed shape with sixteen children a node, so it is a pure function of the lengths: in
//! whatever order they were set, the bits agree (design, section 1). Setting one costs one block a level.

/// Children a node of the sum tree; a block is two cache lines.
const FAN: usize = 16;

/// The lengths of a box's sides, summed.
///
/// ```
/// use mondrian::process::Sides;
/// let mut sides = Sides::new(&[1.0, 2.0, 3.0]);
/// sides.set(1, 0.5);
/// assert_eq!(sides.total(), 4.5);
/// assert_eq!(sides.pick(1.25), (1, 0.25));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Sides {
    /// All levels in one array, lengths first, each padded with zeros to whole blocks.
    sums: Vec<f64>,
    /// Where each level starts; the last level is one block.
    starts: Vec<usize>,
    n_dims: usize,
}

/// Sum of a block in one fixed order (pairs 8 apart, 4 apart, …), which a compiler can turn into vector adds.
#[inline]
fn block_sum(block: &[f64]) -> f64 {
    let block: &[f64; FAN] = block.try_into().expect("a block has FAN entries");
    let mut half = [0.0; 8];
    for i in 0..8 {
        half[i] = block[i] + block[i + 8];
    }
    let a = [half[0] + half[4], half[1] + half[5], half[2] + half[6], half[3] + half[7]];
    (a[0] + a[2]) + (a[1] + a[3])
}

impl Sides {
    /// The lengths of all sides.
    pub fn new(lengths: &[f64]) -> Self {
        let mut starts = vec![0];
        let mut width = lengths.len().max(1);
        let mut total = width.next_multiple_of(FAN);
        while width > FAN {
            width = width.div_ceil(FAN);
            starts.push(total);
            total += width.next_multiple_of(FAN);
        }
        let mut sides = Self { sums: vec![0.0; total], starts, n_dims: lengths.len() };
        sides.set_all(lengths);
        sides
    }

    /// Replaces all lengths.
    ///
    /// # Panics
    /// If their number changes.
    pub fn set_all(&mut self, lengths: &[f64]) {
        assert_eq!(lengths.len(), self.n_dims, "as many lengths as dimensions");
        self.fill_with(|dim| lengths[dim]);
    }

    /// Replaces all lengths by a function of the dimension.
    pub fn fill_with(&mut self, length: impl Fn(usize) -> f64) {
        for (dim, slot) in self.sums[..self.n_dims].iter_mut().enumerate() {
            *slot = length(dim);
        }
        for level in 1..self.starts.len() {
            let (below, here) = (self.starts[level - 1], self.starts[level]);
            for block in 0..(here - below) / FAN {
                self.sums[here + block] = block_sum(&self.sums[below + block * FAN..][..FAN]);
            }
        }
    }

    /// Number of dimensions.
    pub fn n_dims(&self) -> usize {
        self.n_dims
    }

    /// One length.
    #[inline]
    pub fn get(&self, dim: usize) -> f64 {
        debug_assert!(dim < self.n_dims);
        self.sums[dim]
    }

    /// Changes one length.
    #[inline]
    pub fn set(&mut self, dim: usize, length: f64) {
        debug_assert!(dim < self.n_dims);
        self.sums[dim] = length;
        let mut at = dim;
        for level in 1..self.starts.len() {
            at /= FAN;
            let sum = block_sum(&self.sums[self.starts[level - 1] + at * FAN..][..FAN]);
            self.sums[self.starts[level] + at] = sum;
        }
    }

    /// The linear dimension: the sum of all lengths.
    #[inline]
    pub fn total(&self) -> f64 {
        block_sum(&self.sums[self.starts[self.starts.len() - 1]..][..FAN])
    }

    /// Where the place `at` ∈ [0, total) along the laid-out sides falls: a dimension and the place within it.
    ///
    /// A side of length zero is never picked; where rounding falls off the end, the last side of positive length is.
    #[inline]
    pub fn pick(&self, mut at: f64) -> (usize, f64) {
        let mut block = 0;
        for &start in self.starts.iter().rev() {
            let entries = &self.sums[start + block * FAN..][..FAN];
            let mut chosen = 0;
            let mut rest = at;
            for (i, &length) in entries.iter().enumerate() {
                if length > 0.0 {
                    chosen = i;
                    rest = at;
                    if at < length {
                        break;
                    }
                    at -= length;
                }
            }
            at = rest;
            block = block * FAN + chosen;
        }
        (block, at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::NodeKey;

    fn lengths(n: usize, seed: u64) -> Vec<f64> {
        (0..n as u64).map(|i| NodeKey::root(seed, i).draw(0).uniform()).collect()
    }

    #[test]
    fn total_is_a_function_of_the_lengths_alone() {
        for n in [1, 2, 15, 16, 17, 255, 256, 257, 1000, 5000] {
            let (from, to) = (lengths(n, 1), lengths(n, 2));
            let direct = Sides::new(&to);
            let mut walked = Sides::new(&from);
            for i in (0..n).rev().chain(0..n) {
                walked.set(i, if i % 3 == 0 { 0.0 } else { from[i] });
                walked.set(i, to[i]);
            }
            assert_eq!(walked.total().to_bits(), direct.total().to_bits());
            assert!((direct.total() - to.iter().sum::<f64>()).abs() < 1e-12 * n as f64);
        }
    }

    #[test]
    fn pick_finds_the_side_a_scan_finds() {
        for n in [1, 3, 16, 40, 300, 1000] {
            let mut x = lengths(n, 3);
            for i in (0..n).step_by(2) {
                if n > 1 {
                    x[i] = 0.0;
                }
            }
            let sides = Sides::new(&x);
            for i in 0..200 {
                let at = sides.total() * NodeKey::root(9, i).draw(0).uniform();
                let (dim, within) = sides.pick(at);
                let before: f64 = x[..dim].iter().sum();
                assert!(x[dim] > 0.0, "a side of length zero was picked");
                assert!((before + within - at).abs() < 1e-9, "n = {n}, at = {at}: {dim} {within}");
            }
            let (dim, _) = sides.pick(sides.total() * (1.0 + 1e-12));
            assert!(x[dim] > 0.0 && x[dim + 1..].iter().all(|&l| l == 0.0), "falls off to the last positive side");
        }
    }
}
