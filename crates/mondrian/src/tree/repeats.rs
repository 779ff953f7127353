//! Rows of a table that are the same as rows before.
//!
//! Nearly always there are none, and to see that most rows are like no other a few bits of memory each are enough, which stay
//! in cache. The hash table of rows is searched only for the others.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// Bits of memory a row, at least, and at most twice as many: of a hundred rows that are like no other, 3 to 6 share their bit.
const BITS_A_ROW: usize = 16;

/// Those of some rows, given with their hashes, that equal an earlier one, each with the first that it equals, in order.
///
/// # Panics
/// If there is no such row in the table.
pub(crate) fn repeats(
    coordinates: &[f64],
    n_dims: usize,
    rows: impl Iterator<Item = (u32, u64)> + Clone,
) -> Vec<(u32, u32)> {
    let row = |number: u32| &coordinates[number as usize * n_dims..][..n_dims];
    let n_rows = coordinates.len() / n_dims;
    let (mut seen, mut again) = (Bits::for_rows(n_rows), Bits::for_rows(n_rows));
    for (_, hash) in rows.clone() {
        if seen.set(hash) {
            again.set(hash);
        }
    }
    let (mut firsts, mut repeats) = (HashTable::<(u64, u32)>::new(), Vec::new());
    for (number, hash) in rows.filter(|(_, hash)| again.has(*hash)) {
        match firsts.entry(hash, |(_, first)| row(*first) == row(number), |(hash, _)| *hash) {
            Entry::Occupied(first) => repeats.push((number, first.get().1)),
            Entry::Vacant(place) => {
                place.insert((hash, number));
            }
        }
    }
    repeats
}

/// A bit for each value that the first bits of a hash can have.
struct Bits {
    words: Vec<u64>,
    shift: u32,
}

impl Bits {
    fn for_rows(n_rows: usize) -> Self {
        let n_bits = (n_rows.max(4) * BITS_A_ROW).next_power_of_two();
        Self { words: vec![0; n_bits / 64], shift: 64 - n_bits.ilog2() }
    }

    fn place(&self, hash: u64) -> (usize, u64) {
        let bit = hash >> self.shift;
        ((bit / 64) as usize, 1 << (bit % 64))
    }

    fn has(&self, hash: u64) -> bool {
        let (word, bit) = self.place(hash);
        self.words[word] & bit != 0
    }

    /// Whether it was set before.
    fn set(&mut self, hash: u64) -> bool {
        let (word, bit) = self.place(hash);
        let was = self.words[word] & bit != 0;
        self.words[word] |= bit;
        was
    }
}

/// A hash of coordinates: equal points have equal hashes, -0.0 counting as 0.0. Each step folds a full product.
pub(crate) fn hash(coordinates: &[f64]) -> u64 {
    const FACTOR: u128 = 0x9E37_79B9_7F4A_7C15;
    let fold = |h: u64| {
        let product = u128::from(h) * FACTOR;
        product as u64 ^ (product >> 64) as u64
    };
    // The steps' own number keeps coordinates that make a product vanish from hiding those before them. Two chains of steps,
    // for which a machine need not wait one after the other.
    let (pairs, last) = coordinates.as_chunks::<2>();
    let step = |h: u64, x: f64, step: u64| fold(h ^ (x + 0.0).to_bits()).wrapping_add(step);
    let (mut a, mut b) = (0x2D35_8DCC_AA6C_78A5, 0x8BB8_4B93_962E_ACC9);
    for ([x, y], at) in pairs.iter().zip(1_u64..) {
        (a, b) = (step(a, *x, at), step(b, *y, at));
    }
    for x in last {
        a = step(a, *x, 0);
    }
    fold(a ^ b.rotate_left(32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::NodeKey;

    #[test]
    fn repeats_are_those_that_a_look_at_all_rows_before_finds() {
        let key = NodeKey::root(5, 5);
        for (n_rows, n_dims, n_values) in
            [(0, 1, 1.0), (1, 2, 1.0), (50, 3, 1.0), (400, 1, 40.0), (600, 2, 9.0), (500, 3, 1e6)]
        {
            // Zeros of both signs are one value.
            let value = |at: usize| {
                (key.draw(at as u32).uniform() * n_values).floor() * if at.is_multiple_of(2) { 1.0 } else { -1.0 }
            };
            let table: Vec<f64> = (0..n_rows * n_dims).map(value).collect();
            let row = |number: u32| &table[number as usize * n_dims..][..n_dims];
            for step in [1, 2] {
                let some = (0..n_rows as u32).step_by(step);
                let twin = |number: u32| some.clone().take_while(|r| *r < number).find(|r| row(*r) == row(number));
                let expected: Vec<(u32, u32)> = some.clone().filter_map(|r| twin(r).map(|first| (r, first))).collect();
                assert_eq!(repeats(&table, n_dims, some.map(|r| (r, hash(row(r))))), expected);
            }
        }
    }

    #[test]
    fn few_rows_that_differ_are_taken_for_repeats_at_first() {
        let n = 4096;
        let hashes: Vec<u64> = (0..n).map(|i| hash(&[NodeKey::root(6, i).draw(0).uniform()])).collect();
        let mut bits = Bits::for_rows(hashes.len());
        let n_seen = hashes.iter().filter(|hash| bits.set(**hash)).count();
        // 4096 rows in 65 536 bits: 126 in the mean, with a standard deviation of 11. Less than one alarm in a million.
        assert!((70..182).contains(&n_seen), "{n_seen}");
        assert!(hashes.iter().all(|hash| bits.has(*hash)));
    }
}
