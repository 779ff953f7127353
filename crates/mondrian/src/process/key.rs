//! Keys: the source of all randomness.
//!
//! A node of a tree has a 128-bit key, a function of the seed, the tree's number and the sides taken on the way
//! down. Its draws are a function of its key. Nothing else is random anywhere, so no thread, order of
//! arrival or earlier query can change a result (docs/design.md, "A tree is a function of its key").
//!
//! # The function, exactly
//! All arithmetic is modulo 2^128. `mix(x)` is the bijection
//! `x ^= x >> 64; x *= A; x ^= x >> 64; x *= B; x ^= x >> 64` with the odd constants [`A`] and [`B`], the
//! 128-bit analogue of the SplitMix64 finaliser. Then
//! `root(seed, index) = mix(mix(seed) ^ (index << 64 | ROOT))`, `child(side) = mix(key ^ side)` with constants for
//! below and above, and `draw(purpose) = mix(key ^ (purpose << 64 | DRAW))`, whose high half gives the
//! waiting time (−ln of it, by `logarithm.rs`) and whose low half gives the location (down the tree of `sides.rs`).
//! Reference vectors are in the tests: another
//! implementation that meets them grows the same trees.

use crate::process::logarithm::Reduced;
use serde::{Deserialize, Serialize};

/// First multiplier of the mixing function.
const A: u128 = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835;
/// Second multiplier of the mixing function.
const B: u128 = 0xDA94_2042_E4DD_58B5_94D0_49BB_1331_11EB;
const ROOT: u128 = 0x526F_6F74;
const BELOW: u128 = 0x4265_6C6F_7700_0000_0000_0000_0000_0000;
const ABOVE: u128 = 0x4162_6F76_6500_0000_0000_0000_0000_0000;
/// By side, from a table: a branch would be mispredicted half the time.
static SIDES: [u128; 2] = [BELOW, ABOVE];
const DRAW: u128 = 0x4472_6177;

#[inline]
fn mix(mut x: u128) -> u128 {
    x ^= x >> 64;
    x = x.wrapping_mul(A);
    x ^= x >> 64;
    x = x.wrapping_mul(B);
    x ^ (x >> 64)
}

/// The two sides of a cut: a coordinate x ≤ cut lies below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Side {
    /// x ≤ cut.
    Below,
    /// x > cut.
    Above,
}

impl Side {
    /// Both, in order.
    pub const BOTH: [Self; 2] = [Self::Below, Self::Above];

    /// Its place in an array of both.
    #[inline]
    pub fn index(self) -> usize {
        self as usize
    }

    /// The side with this bit for an index.
    #[inline]
    pub(crate) fn of_bit(bit: u32) -> Self {
        if bit & 1 == 0 { Self::Below } else { Self::Above }
    }

    /// The side of `x` at a cut.
    #[inline]
    pub fn of(x: f64, cut: f64) -> Self {
        if x <= cut { Self::Below } else { Self::Above }
    }

    /// The other side.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Below => Self::Above,
            Self::Above => Self::Below,
        }
    }
}

/// The key of a node; the exact function is described at the top of `key.rs`.
///
/// Stored as 32 hexadecimal digits, since most formats have no 128-bit number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NodeKey(u128);

impl NodeKey {
    /// The key of the root of tree `index` under `seed`.
    pub fn root(seed: u64, index: u64) -> Self {
        Self(mix(mix(u128::from(seed)) ^ (u128::from(index) << 64 | ROOT)))
    }

    /// The key of the child on `side`.
    #[inline]
    #[must_use]
    pub fn child(self, side: Side) -> Self {
        Self(mix(self.0 ^ SIDES[side as usize]))
    }

    /// An independent key for another use of the same node: a ladder level, an axis, a block of the real line.
    #[must_use]
    pub fn fork(self, number: u64) -> Self {
        Self(mix(self.0 ^ (u128::from(number) << 64 | 0x466F_726B)))
    }

    /// The draw of this node for a purpose. Distinct purposes are independent.
    #[inline]
    pub fn draw(self, purpose: u32) -> Draw {
        Draw(mix(self.0 ^ (u128::from(purpose) << 64 | DRAW)))
    }

    /// The raw bits, for storing.
    pub fn to_bits(self) -> u128 {
        self.0
    }

    /// A key from its raw bits.
    pub fn from_bits(bits: u128) -> Self {
        Self(bits)
    }
}

impl From<NodeKey> for String {
    fn from(key: NodeKey) -> Self {
        format!("{:032x}", key.0)
    }
}

impl TryFrom<String> for NodeKey {
    type Error = std::num::ParseIntError;

    fn try_from(digits: String) -> Result<Self, Self::Error> {
        u128::from_str_radix(&digits, 16).map(Self)
    }
}

/// 128 random bits: one waiting time and one place, or two uniform numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Draw(u128);

impl Draw {
    /// A standard exponential from the high half: −ln(u), u uniform on {1, …, 2^53}/2^53.
    ///
    /// The logarithm is the library's own, with the same bits on every platform.
    #[inline]
    pub fn exponential(self) -> f64 {
        self.reduced_exponential().minus_log()
    }

    /// As [`Draw::exponential`], with the arithmetic left.
    #[inline]
    pub(crate) fn reduced_exponential(self) -> Reduced {
        Reduced::of_unit((((self.0 >> 64) as u64) >> 11) + 1)
    }

    /// A uniform number of [0, 1) from the low half, a multiple of 2^−53.
    #[inline]
    pub fn uniform(self) -> f64 {
        ((self.0 as u64) >> 11) as f64 * UNIT
    }

    /// A second uniform number of [0, 1), from the half that [`Draw::exponential`] uses.
    #[inline]
    pub fn second_uniform(self) -> f64 {
        (((self.0 >> 64) as u64) >> 11) as f64 * UNIT
    }

    /// A standard normal number, by the Box–Muller transform of both halves.
    pub fn normal(self) -> f64 {
        libm::sqrt(2.0 * self.exponential()) * libm::cos(std::f64::consts::TAU * self.uniform())
    }

    /// The raw bits.
    pub fn to_bits(self) -> u128 {
        self.0
    }
}

/// 2^−53.
const UNIT: f64 = 1.0 / (1_u64 << 53) as f64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_vectors() {
        let root = NodeKey::root(0, 0);
        let other = NodeKey::root(7, 3).child(Side::Below).child(Side::Above);
        let found = [
            root.to_bits(),
            root.child(Side::Below).to_bits(),
            root.child(Side::Above).to_bits(),
            root.fork(1).to_bits(),
            root.draw(0).to_bits(),
            other.to_bits(),
            other.draw(2).to_bits(),
        ];
        let expected: [u128; 7] = REFERENCE;
        assert_eq!(found, expected, "{found:#034x?}");
        assert_eq!(root.draw(0).exponential().to_bits(), REFERENCE_EXPONENTIAL, "{:?}", root.draw(0).exponential());
        assert_eq!(root.draw(0).uniform().to_bits(), REFERENCE_UNIFORM, "{:?}", root.draw(0).uniform());
    }

    const REFERENCE: [u128; 7] = [
        0xBA38_3811_6452_4656_25C5_9AD6_BF1D_4E19,
        0x9021_A888_279A_1A71_8B37_A5E7_5AE6_841A,
        0x3065_26A2_9DBF_3DC7_A2A3_11EC_D076_C83B,
        0x0755_4F17_C8F3_5FED_3CCA_D756_C553_902D,
        0x6829_BA5F_4036_3031_A517_294F_224E_FB17,
        0x582D_B7A7_174C_E1E7_B339_878C_B748_C81D,
        0x7A18_6418_7A3C_AE62_E2DB_ED24_2686_5F6E,
    ];
    const REFERENCE_EXPONENTIAL: u64 = 0x3FEC_C669_FE97_F1B8;
    const REFERENCE_UNIFORM: u64 = 0x3FE4_A2E5_29E4_49DF;

    #[test]
    fn every_bit_of_seed_and_index_reaches_every_bit_of_the_draw() {
        // Flip one input bit: each of the 128 output bits should flip half the time. 2000 samples a bit pair would
        // take |frequency − ½| > 0.07 with probability 4e-10 each; 128 × 128 pairs give a false alarm below 1e-5.
        let n = 2000_u64;
        for bit in 0..128 {
            let mut flips = [0_u32; 128];
            for i in 0..n {
                let (seed, index) = (i.wrapping_mul(0x9E37_79B9_7F4A_7C15), i % 17);
                let a = NodeKey::root(seed, index).draw(0).to_bits();
                let b = if bit < 64 {
                    NodeKey::root(seed ^ 1 << bit, index)
                } else {
                    NodeKey::root(seed, index ^ 1 << (bit - 64))
                };
                let changed = a ^ b.draw(0).to_bits();
                for (k, count) in flips.iter_mut().enumerate() {
                    *count += u32::from(changed >> k & 1 == 1);
                }
            }
            for count in flips {
                let frequency = f64::from(count) / n as f64;
                assert!((frequency - 0.5).abs() < 0.07, "input bit {bit}: {frequency}");
            }
        }
    }

    #[test]
    fn a_key_is_stored_as_its_digits() {
        let key = NodeKey::root(0, 0);
        let stored = serde_json::to_string(&key).unwrap();
        assert_eq!(stored, "\"ba3838116452465625c59ad6bf1d4e19\"");
        assert_eq!(serde_json::from_str::<NodeKey>(&stored).unwrap(), key);
        assert!(serde_json::from_str::<NodeKey>("\"no key\"").is_err());
    }

    #[test]
    fn draws_stay_in_range() {
        let ends = [Draw(0), Draw(u128::MAX)];
        assert!(ends.iter().all(|d| d.exponential() >= 0.0 && d.exponential().is_finite()));
        assert!(ends.iter().all(|d| (0.0..1.0).contains(&d.uniform()) && (0.0..1.0).contains(&d.second_uniform())));
    }
}
