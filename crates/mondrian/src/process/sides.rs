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
/// assert_eq!(sides.pick(1.25), (2, 0.25));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Sides {
    /// All levels in one array, lengths first, each padded with zeros to whole blocks.
    sums: Vec<f64>,
    /// Where each level starts; the last level is one block.
    starts: Vec<usize>,
    n_dims: usize,
    /// Whether the last level has at most [`FEW`] entries.
    is_topped_by_few: bool,
}

/// The partial sums of a block in one fixed order: entries 8 apart, then 4, then 2. Vector adds, all of it.
struct Partial {
    eighth: [f64; 8],
    quarter: [f64; 4],
    half: [f64; 2],
}

impl Partial {
    #[inline]
    fn of(block: &[f64; FAN]) -> Self {
        let eighth = std::array::from_fn(|i| block[i] + block[i + 8]);
        let [e0, e1, e2, e3, e4, e5, e6, e7]: [f64; 8] = eighth;
        let quarter = [e0 + e4, e1 + e5, e2 + e6, e3 + e7];
        let half = [quarter[0] + quarter[2], quarter[1] + quarter[3]];
        Self { eighth, quarter, half }
    }

    #[inline]
    fn total(&self) -> f64 {
        self.half[0] + self.half[1]
    }
}

/// Sum of a block.
#[inline]
fn block_sum(block: &[f64; FAN]) -> f64 {
    Partial::of(block).total()
}

/// Where one goes to the right of two lengths laid side by side: from the end of the left one on, or never if the right
/// one is zero.
#[inline]
fn border(left: f64, right: f64) -> f64 {
    if right > 0.0 { left } else { f64::INFINITY }
}

/// Whether `at` falls to the right of a border; it becomes the place there.
///
/// One comparison, whose mask takes what is subtracted: which way it goes is random, and a branch guessed wrong would cost
/// more than the rest of the step.
#[inline]
fn go_right(at: &mut f64, border: f64) -> usize {
    let is_right = *at >= border;
    *at -= if is_right { border } else { 0.0 };
    usize::from(is_right)
}

/// The entry of a block that `at` falls into, down the tree of its partial sums; `at` becomes the place within it.
#[inline]
fn pick_in(block: &[f64; FAN], at: &mut f64) -> usize {
    let Partial { eighth, quarter, half } = Partial::of(block);
    // All borders at once, in vectors, while the first ones are passed; those of step k from 2^k on.
    let mut borders = [border(half[0], half[1]); FAN];
    for i in 0..2 {
        borders[2 + i] = border(quarter[i], quarter[i + 2]);
    }
    for i in 0..4 {
        borders[4 + i] = border(eighth[i], eighth[i + 4]);
    }
    for i in 0..8 {
        borders[8 + i] = border(block[i], block[i + 8]);
    }
    // Hidden, since the compiler makes a branch of a number that is 0 or 1.
    let i = std::hint::black_box(go_right(at, borders[1])) & 1;
    let i = i + 2 * go_right(at, borders[2 + i]);
    let i = i + 4 * go_right(at, borders[4 + i]);
    i + 8 * go_right(at, borders[8 + i])
}

/// Entries of a block that is mostly empty: the first level of many cells, and the only one of small ones.
const FEW: usize = 4;

/// As [`block_sum`] where only the first [`FEW`] entries are not zero.
#[inline]
fn sum_of_few(block: &[f64; FAN]) -> f64 {
    (block[0] + block[2]) + (block[1] + block[3])
}

/// As [`pick_in`] where only the first [`FEW`] entries are not zero: its last two steps would go to the left.
#[inline]
fn pick_in_few(block: &[f64; FAN], at: &mut f64) -> usize {
    let borders = [border(block[0], block[2]), border(block[1], block[3])];
    let i = std::hint::black_box(go_right(at, border(block[0] + block[2], block[1] + block[3]))) & 1;
    i + 2 * go_right(at, borders[i])
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
        let is_topped_by_few = width <= FEW;
        let mut sides = Self { sums: vec![0.0; total], starts, n_dims: lengths.len(), is_topped_by_few };
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
                self.sums[here + block] = block_sum(self.block(below, block));
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
            let sum = block_sum(self.block(self.starts[level - 1], at));
            self.sums[self.starts[level] + at] = sum;
        }
    }

    /// The linear dimension: the sum of all lengths.
    #[inline]
    pub fn total(&self) -> f64 {
        let top = self.block(self.starts[self.starts.len() - 1], 0);
        if self.is_topped_by_few { sum_of_few(top) } else { block_sum(top) }
    }

    /// Where the place `at` ∈ [0, total) falls along the sides, laid out in the order of the sum tree's leaves: a
    /// dimension and the place within it.
    ///
    /// A side of length zero is never picked; where rounding falls off the end, the last side of positive length is.
    #[inline]
    pub fn pick(&self, mut at: f64) -> (usize, f64) {
        let (below, top) = self.starts.split_at(self.starts.len() - 1);
        let block = self.block(top[0], 0);
        let mut number = if self.is_topped_by_few { pick_in_few(block, &mut at) } else { pick_in(block, &mut at) };
        for &start in below.iter().rev() {
            number = number * FAN + pick_in(self.block(start, number), &mut at);
        }
        (number, at)
    }

    /// A block of the level that starts at `start`.
    #[inline]
    fn block(&self, start: usize, number: usize) -> &[f64; FAN] {
        self.sums[start + number * FAN..].first_chunk().expect("levels are whole blocks")
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
    fn few_entries_are_summed_and_picked_as_many_are() {
        for seed in 0..500 {
            let mut block = [0.0; FAN];
            for (i, x) in block.iter_mut().take(FEW).enumerate() {
                *x = if (seed >> i) % 3 == 0 { 0.0 } else { NodeKey::root(seed, i as u64).draw(0).uniform() };
            }
            assert_eq!(sum_of_few(&block).to_bits(), block_sum(&block).to_bits());
            for i in 0..20 {
                let at = block_sum(&block) * NodeKey::root(seed, 100 + i).draw(0).uniform() * 1.01;
                let (mut few, mut many) = (at, at);
                assert_eq!(pick_in_few(&block, &mut few), pick_in(&block, &mut many), "{block:?} at {at}");
                assert_eq!(few.to_bits(), many.to_bits());
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
