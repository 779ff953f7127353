//! `numpy.random.default_rng(seed).permutation(n)`, so that our splits are the ones others report on.
//!
//! NumPy's default generator is PCG64 (XSL-RR output), seeded through its `SeedSequence`, and a permutation of
//! integers is a Fisher–Yates shuffle from the back with 32-bit draws, masked and rejected.

/// The permutation of 0, …, n−1 that NumPy's default generator gives for `seed`.
///
/// ```
/// assert_eq!(mondrian_benches::numpy::permutation(0, 20)[..6], [4, 19, 6, 2, 13, 16]);
/// ```
pub fn permutation(seed: u32, n: usize) -> Vec<usize> {
    let mut generator = Pcg64::new(seed);
    let mut order: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        order.swap(i, generator.below_or_at(i as u32) as usize);
    }
    order
}

struct Pcg64 {
    state: u128,
    increment: u128,
    /// The upper half of the last 64 bits, handed out by the next 32-bit draw.
    spare: Option<u32>,
}

impl Pcg64 {
    const MULTIPLIER: u128 = 0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645;

    fn new(seed: u32) -> Self {
        let [a, b, c, d] = seed_words(seed).map(u128::from);
        let mut generator = Self { state: 0, increment: (c << 64 | d) << 1 | 1, spare: None };
        generator.step();
        generator.state = generator.state.wrapping_add(a << 64 | b);
        generator.step();
        generator
    }

    fn step(&mut self) {
        self.state = self.state.wrapping_mul(Self::MULTIPLIER).wrapping_add(self.increment);
    }

    fn next_u64(&mut self) -> u64 {
        self.step();
        let folded = (self.state >> 64) as u64 ^ self.state as u64;
        folded.rotate_right((self.state >> 122) as u32)
    }

    fn next_u32(&mut self) -> u32 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let bits = self.next_u64();
        self.spare = Some((bits >> 32) as u32);
        bits as u32
    }

    /// A uniform integer of 0, …, `top`, both included: low bits, draws above `top` rejected.
    fn below_or_at(&mut self, top: u32) -> u32 {
        let mask = u32::MAX >> top.leading_zeros();
        loop {
            let candidate = self.next_u32() & mask;
            if candidate <= top {
                return candidate;
            }
        }
    }
}

/// NumPy's `SeedSequence(seed).generate_state(4, uint64)`.
fn seed_words(seed: u32) -> [u64; 4] {
    let mut hash_constant = 0x43B0_D7E5_u32;
    let mut hash = |value: u32| {
        let mut value = value ^ hash_constant;
        hash_constant = hash_constant.wrapping_mul(0x931E_8875);
        value = value.wrapping_mul(hash_constant);
        value ^ value >> 16
    };
    let mix = |x: u32, y: u32| {
        let mixed = x.wrapping_mul(0xCA01_F9DD).wrapping_sub(y.wrapping_mul(0x4973_F715));
        mixed ^ mixed >> 16
    };
    let mut pool = [seed, 0, 0, 0].map(&mut hash);
    for source in 0..4 {
        for target in 0..4 {
            if source != target {
                pool[target] = mix(pool[target], hash(pool[source]));
            }
        }
    }
    let mut output_constant = 0x8B51_F9DD_u32;
    let words: Vec<u32> = (0..8)
        .map(|i| {
            let mut value = pool[i % 4] ^ output_constant;
            output_constant = output_constant.wrapping_mul(0x58F3_8DED);
            value = value.wrapping_mul(output_constant);
            value ^ value >> 16
        })
        .collect();
    std::array::from_fn(|i| u64::from(words[2 * i + 1]) << 32 | u64::from(words[2 * i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_numpy() {
        let seeds = [
            15_793_235_383_387_715_774,
            12_390_638_538_380_655_177,
            2_361_836_109_651_742_017,
            3_188_717_715_514_472_916,
        ];
        assert_eq!(seed_words(0), seeds);
        assert_eq!(permutation(0, 20), [4, 19, 6, 2, 13, 16, 3, 11, 10, 8, 0, 12, 7, 5, 18, 17, 14, 9, 1, 15]);
        assert_eq!(permutation(0, 9568)[..8], [6201, 2926, 4452, 4732, 2475, 4599, 5758, 3685]);
    }
}
