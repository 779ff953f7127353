//! Side lengths of a cell and their sum, the linear dimension, with a dimension picked in O(log D).
//!
//! The sum is a tree of fixed shape, so it is a pure function of the lengths: in whatever order they were set, the bits
//! agree (docs/design.md, "Exact promises"). Setting one costs an addition per level, picking one a comparison.
//!
//! The tree lies in blocks of sixteen entries, each with the sums above them: a descent touches few cache lines, and
//! all numbers are written and read one by one, which avoids store-forwarding stalls.

/// Entries of a block.
pub(crate) const FAN: usize = 16;
/// Steps from a block's sum to an entry.
pub(crate) const STEPS: usize = 4;
/// Steps where there are at most [`FEW`] entries: the first level of many cells, and the only one of small ones.
const FEW_STEPS: usize = 2;
const FEW: usize = 1 << FEW_STEPS;
/// Numbers of a block: its sum at 1, two halves from 2 on, and so on to the entries from [`FAN`] on. Step k goes from place
/// j to j or j + 2^k.
pub(crate) const SIZE: usize = 2 * FAN;

/// The lengths of a box's sides, summed.
///
/// ```
/// use mondrian::internals::process::Sides;
/// let mut sides = Sides::new(&[1.0, 2.0, 3.0]);
/// sides.set(1, 0.5);
/// assert_eq!(sides.total(), 4.5);
/// assert_eq!(sides.pick(1.25), (2, 0.25));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Sides {
    /// All levels of blocks, that of the lengths first; the last is one block.
    blocks: Vec<[f64; SIZE]>,
    /// The first block of each level but the last.
    starts: Vec<usize>,
    n_dims: usize,
    /// Whether the last block is only [`FEW`] wide.
    is_topped_by_few: bool,
}

/// Replaces an entry of a block, which has entries for so many steps, and the sums above it; the block's sum.
#[inline]
pub(crate) fn replace<const STEPS: usize>(block: &mut [f64; SIZE], at: usize, entry: f64) -> f64 {
    let mut sum = entry;
    for step in (0..STEPS).rev() {
        let (width, place) = (1 << step, at % (2 << step));
        block[2 * width + place] = sum;
        sum += block[2 * width + (place ^ width)];
    }
    block[1] = sum;
    sum
}

/// Sums all entries of a block.
#[inline]
pub(crate) fn sum_up(block: &mut [f64; SIZE]) -> f64 {
    for step in (0..STEPS).rev() {
        let width = 1 << step;
        for place in 0..width {
            block[width + place] = block[2 * width + place] + block[3 * width + place];
        }
    }
    block[1]
}

/// The entry of a block that `at` falls into; `at` becomes the place within it.
#[inline]
pub(crate) fn pick_in<const STEPS: usize>(block: &[f64; SIZE], at: &mut f64) -> usize {
    let mut place = 0;
    for step in 0..STEPS {
        let width = 1 << step;
        place %= width;
        place += go_right(at, block[2 * width + place], block[3 * width + place]) << step;
    }
    place
}

/// Whether `at` falls into the second of two adjacent lengths; it becomes the place there. That is from the end of
/// the left one on, unless the right one is zero.
///
/// By sign bits, not comparisons, which the compiler would turn into branches: the direction is random, and a
/// mispredicted branch costs more than the rest of the step. Lengths and zero have the sign bit clear.
#[inline]
fn go_right(at: &mut f64, left: f64, right: f64) -> usize {
    let past = *at - left;
    let is_left = past.to_bits() | right.to_bits().wrapping_sub(1);
    let mask = ((is_left as i64) >> 63) as u64;
    *at = f64::from_bits(at.to_bits() & mask | past.to_bits() & !mask);
    usize::from(mask == 0)
}

impl Sides {
    /// The lengths of all sides, positive or (positive) zero.
    pub fn new(lengths: &[f64]) -> Self {
        let (mut starts, mut n_blocks) = (Vec::new(), 0);
        let mut width = lengths.len().max(1);
        while width > FAN {
            starts.push(n_blocks);
            width = width.div_ceil(FAN);
            n_blocks += width;
        }
        let (blocks, is_topped_by_few) = (vec![[0.0; SIZE]; n_blocks + 1], width <= FEW);
        let mut sides = Self { blocks, starts, n_dims: lengths.len(), is_topped_by_few };
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
        for dim in 0..self.n_dims {
            self.put(dim, length(dim));
        }
        self.sum_all();
    }

    /// Changes one length of several; the sums are wrong until [`Sides::sum_all`].
    #[inline]
    pub(crate) fn put(&mut self, dim: usize, length: f64) {
        self.blocks[dim / FAN][FAN + dim % FAN] = length;
    }

    /// Sums the lengths anew.
    #[inline]
    pub(crate) fn sum_all(&mut self) {
        let top = self.blocks.len() - 1;
        for (level, start) in self.starts.iter().enumerate() {
            let end = *self.starts.get(level + 1).unwrap_or(&top);
            for at in 0..end - start {
                let sum = sum_up(&mut self.blocks[start + at]);
                self.blocks[end + at / FAN][FAN + at % FAN] = sum;
            }
        }
        sum_up(&mut self.blocks[top]);
    }

    /// The block of all entries and sums, where there is one with room for [`FAN`].
    #[inline]
    pub(crate) fn only_block(&self) -> Option<&[f64; SIZE]> {
        match &self.blocks[..] {
            [block] if !self.is_topped_by_few => Some(block),
            _ => None,
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
        let is_few = self.is_topped_by_few && self.starts.is_empty();
        self.blocks[dim / FAN][if is_few { FEW } else { FAN } + dim % FAN]
    }

    /// Changes one length.
    #[inline]
    pub fn set(&mut self, dim: usize, length: f64) {
        debug_assert!(dim < self.n_dims && length.is_sign_positive());
        let (mut at, mut entry) = (dim, length);
        for start in &self.starts {
            entry = replace::<STEPS>(&mut self.blocks[start + at / FAN], at % FAN, entry);
            at /= FAN;
        }
        let top = self.blocks.len() - 1;
        let block = &mut self.blocks[top];
        if self.is_topped_by_few {
            replace::<FEW_STEPS>(block, at, entry);
        } else {
            replace::<STEPS>(block, at, entry);
        }
    }

    /// The linear dimension: the sum of all lengths.
    #[inline]
    pub fn total(&self) -> f64 {
        self.blocks[self.blocks.len() - 1][1]
    }

    /// Where the place `at` ∈ [0, total) falls along the sides, laid out in the order of the sum tree's leaves: a
    /// dimension and the place within it.
    ///
    /// A side of length zero is never picked; where rounding falls off the end, the last side of positive length is.
    #[inline]
    pub fn pick(&self, mut at: f64) -> (usize, f64) {
        let block = &self.blocks[self.blocks.len() - 1];
        let mut number =
            if self.is_topped_by_few { pick_in::<FEW_STEPS>(block, &mut at) } else { pick_in::<STEPS>(block, &mut at) };
        for start in self.starts.iter().rev() {
            number = number * FAN + pick_in::<STEPS>(&self.blocks[start + number], &mut at);
        }
        (number, at)
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

    /// The tree of sums that the bits are those of, spelled out: entries 8 apart, then 4, then 2.
    fn slow_total(lengths: &[f64]) -> f64 {
        let mut sums = lengths.to_vec();
        while sums.len() > 1 {
            sums.resize(sums.len().next_multiple_of(FAN), 0.0);
            sums = sums
                .chunks(FAN)
                .map(|block| {
                    let eighth: Vec<f64> = (0..8).map(|i| block[i] + block[i + 8]).collect();
                    let quarter: Vec<f64> = (0..4).map(|i| eighth[i] + eighth[i + 4]).collect();
                    (quarter[0] + quarter[2]) + (quarter[1] + quarter[3])
                })
                .collect();
        }
        sums[0]
    }

    #[test]
    fn total_is_the_sum_in_one_order() {
        for n in [1, 2, 3, 4, 5, 16, 17, 64, 65, 784, 5000] {
            let mut x = lengths(n, n as u64);
            let mut sides = Sides::new(&x);
            assert_eq!(sides.total().to_bits(), slow_total(&x).to_bits());
            for i in 0..200 {
                let (dim, draw) = (i * 37 % n, NodeKey::root(5, i as u64).draw(0).uniform());
                x[dim] = if i % 5 == 0 { 0.0 } else { draw };
                sides.set(dim, x[dim]);
                assert_eq!(sides.total().to_bits(), slow_total(&x).to_bits(), "n = {n}, step {i}");
                assert!((0..n).all(|dim| sides.get(dim) == x[dim]));
            }
        }
    }

    /// Dimensions as the leaves of the sum tree lie: within a block by their bits reversed.
    fn in_order(n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        let place = |dim: usize| {
            let mut digits = Vec::new();
            let mut rest = dim;
            for _ in 0..4 {
                digits.push(((rest % FAN) as u8).reverse_bits() >> 4);
                rest /= FAN;
            }
            digits.reverse();
            digits
        };
        order.sort_by_key(|dim| place(*dim));
        order
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
                let order = in_order(n);
                let before: f64 = order.iter().take_while(|d| **d != dim).map(|d| x[*d]).sum();
                assert!(x[dim] > 0.0, "a side of length zero was picked");
                assert!((before + within - at).abs() < 1e-9, "n = {n}, at = {at}: {dim} {within}");
            }
            let (dim, _) = sides.pick(sides.total() * (1.0 + 1e-12));
            let last = in_order(n).into_iter().rfind(|d| x[*d] > 0.0);
            assert_eq!(Some(dim), last, "falls off to the last positive side");
        }
    }
}
