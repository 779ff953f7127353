//! The hierarchical normalized stable process, with the interpolated Kneser–Ney approximation of its posterior
//! (docs/design.md, "Classification"; Lakshminarayanan, Roy, Teh 2014).
//!
//! Only cuts that separate training points are levels. A block is what lies between two of them: it begins at the time
//! of the cut above it (or 0) and ends at its own cut, or at the lifetime if it is a leaf. With d the block's discount
//! exp(−γ·duration), c_k its counts, c their sum, t_k = min(c_k, 1) and t their sum,
//! `G_k = (c_k − d·t_k + d·t·G_parent,k)/c`. Each function below is this rule for one kind of block.

#![expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]

/// exp(−γ·duration), the same bits on every platform; 0 for an infinite duration.
#[inline]
pub(crate) fn discount(gamma: f64, duration: f64) -> f64 {
    exp_of_negative(-gamma * duration)
}

/// The probability that nothing happened over a duration at a rate; an infinite duration at rate 0 included.
#[inline]
pub(crate) fn survival(rate: f64, duration: f64) -> f64 {
    if rate == 0.0 { 1.0 } else { exp_of_negative(-rate * duration) }
}

/// Replaces durations by their [discounts](discount), several at a time.
#[inline(always)]
pub(crate) fn discount_all(gamma: f64, durations: &mut [f64]) {
    let are_usual = durations.iter().fold(true, |all, duration| all & is_usual(-gamma * duration));
    if are_usual {
        durations.iter_mut().for_each(|duration| *duration = exp_of_usual(-gamma * *duration));
    } else {
        durations.iter_mut().for_each(|duration| *duration = discount(gamma, *duration));
    }
}

/// e^x for x ≤ 0: the steps of [`libm::exp`], and so its bits, without its branches, most of which are mispredicted here.
#[inline]
pub(crate) fn exp_of_negative(x: f64) -> f64 {
    if is_usual(x) { exp_of_usual(x) } else { libm::exp(x) }
}

/// Not where results are no normal numbers, nor where e^x is 1 + x.
#[inline(always)]
fn is_usual(x: f64) -> bool {
    x > -708.0 && x < -1e-8
}

#[inline(always)]
fn exp_of_usual(x: f64) -> f64 {
    const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    const P: [f64; 5] = [
        1.666_666_666_666_660_2e-1,
        -2.777_777_777_701_559_3e-3,
        6.613_756_321_437_934e-5,
        -1.653_390_220_546_525_2e-6,
        4.138_136_797_057_238_5e-8,
    ];
    // x is reduced if it is below −ln(2)/2, by the upper half of its bits.
    let is_reduced = (x.to_bits() >> 32) as u32 & 0x7FFF_FFFF > 0x3FD6_2E42;
    let k = if is_reduced { (std::f64::consts::LOG2_E * x - 0.5) as i32 } else { 0 };
    let (high, low) = (x - f64::from(k) * LN2_HIGH, f64::from(k) * LN2_LOW);
    let x = high - low;
    let xx = x * x;
    let c = x - xx * (P[0] + xx * (P[1] + xx * (P[2] + xx * (P[3] + xx * P[4]))));
    let y = 1.0 + (x * c / (2.0 - c) - low + high);
    // The product with a power of two is exact.
    y * f64::from_bits(((1023 + k) as u64) << 52)
}

/// Number of classes in a mask.
#[inline(always)]
pub(crate) fn n_set(mask: &[u64]) -> u32 {
    mask.iter().map(|word| word.count_ones()).sum()
}

/// Calls `each` with the numbers of the classes in a mask, ascending.
#[inline(always)]
pub(crate) fn for_each_class(mask: &[u64], mut each: impl FnMut(usize)) {
    for (at, word) in mask.iter().enumerate() {
        let mut rest = *word;
        while rest != 0 {
            each(at * 64 + rest.trailing_zeros() as usize);
            rest &= rest - 1;
        }
    }
}

/// Up to so many classes are all looked at, without a branch; of more, those that a mask has.
pub(crate) const FEW_CLASSES: usize = 8;

/// A number where a class is in a mask of up to 64, and 0 where not.
#[inline(always)]
fn where_set(mask: u64, class: usize, number: f64) -> f64 {
    f64::from_bits(number.to_bits() & 0_u64.wrapping_sub(mask >> class & 1))
}

/// A block cut in two, by what its two children have: how much of its parent's distribution it keeps, and what a class gets that one child
/// has, and what it gets more if both have it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InnerWeights {
    pub(crate) scale: f64,
    pub(crate) once: f64,
    pub(crate) again: f64,
}

impl InnerWeights {
    /// From the discount, how many classes there are, and how many if one that both children have counts twice.
    #[inline(always)]
    pub(crate) fn new(d: f64, tables: f64, count: f64) -> Self {
        Self { scale: d * tables / count, once: (1.0 - d) / count, again: 1.0 / count }
    }

    /// The probability of one of up to 64 classes, from the parent's and the classes of both children.
    #[inline(always)]
    fn of_class(self, below: u64, above: u64, class: usize, parent: f64) -> f64 {
        parent * self.scale + where_set(below | above, class, self.once) + where_set(below & above, class, self.again)
    }
}

/// The classes of both sides of a cut: how many there are, and how many if one on both sides counts twice.
#[inline(always)]
pub(crate) fn tables_and_count(below: &[u64], above: &[u64]) -> (f64, f64) {
    let union: u32 = below.iter().zip(above).map(|(b, a)| (b | a).count_ones()).sum();
    (f64::from(union), f64::from(n_set(below) + n_set(above)))
}

/// A block cut in two, from the classes of its two children: a class counts once for each child that has it.
#[inline(always)]
pub(crate) fn inner_into(below: &[u64], above: &[u64], weights: InnerWeights, parent: &[f64], out: &mut [f64]) {
    if let ([below], [above], 0..=FEW_CLASSES) = (below, above, out.len()) {
        let of_class = |(k, (g, p)): (usize, (&mut f64, &f64))| *g = weights.of_class(*below, *above, k, *p);
        return out.iter_mut().zip(parent).enumerate().for_each(of_class);
    }
    let InnerWeights { scale, once, again } = weights;
    out.iter_mut().zip(parent).for_each(|(g, p)| *g = p * scale);
    for (at, (b, a)) in below.iter().zip(above).enumerate() {
        for_each_class(&[b | a], |k| out[at * 64 + k] += once);
        for_each_class(&[b & a], |k| out[at * 64 + k] += again);
    }
}

/// As [`inner_into`], in the place of the parent's distribution over few classes: one vector. What lies beyond the last class means nothing.
#[inline(always)]
pub(crate) fn inner_of_few(below: u64, above: u64, weights: InnerWeights, distribution: &mut [f64; FEW_CLASSES]) {
    distribution.iter_mut().enumerate().for_each(|(k, g)| *g = weights.of_class(below, above, k, *g));
}

/// A block that is not cut within the lifetime, from its row counts.
pub(crate) fn leaf_into(counts: &[u32], d: f64, parent: &[f64], out: &mut [f64]) {
    let (mut count, mut tables) = (0_u64, 0_u32);
    for n in counts {
        count += u64::from(*n);
        tables += u32::from(*n > 0);
    }
    let count = count as f64;
    let scale = d * f64::from(tables) / count;
    for (g, (p, n)) in out.iter_mut().zip(parent.iter().zip(counts)) {
        *g = p * scale + if *n > 0 { (f64::from(*n) - d) / count } else { 0.0 };
    }
}

/// What a point sees that left the data on the edge above a block with these classes: a node with one count per class.
#[inline(always)]
pub(crate) fn exit_into(classes: &[u64], d: f64, parent: &[f64], out: &mut [f64]) {
    let share = (1.0 - d) / f64::from(n_set(classes));
    if let ([classes], 0..=FEW_CLASSES) = (classes, out.len()) {
        out.iter_mut().zip(parent).enumerate().for_each(|(k, (g, p))| *g = p * d + where_set(*classes, k, share));
        return;
    }
    out.iter_mut().zip(parent).for_each(|(g, p)| *g = p * d);
    for_each_class(classes, |k| out[k] += share);
}

/// A point that leaves an edge at a rate, over a duration from its beginning: the expected weight, over the leaving
/// times within it, of the parent's distribution, and of the uniform one over the block's classes.
///
/// With T exponential these are E[e^{−γT}; T < s] = ρ/(ρ+γ)·(1 − e^{−(ρ+γ)s}) and what is left of P(T < s).
pub(crate) fn leaving_weights(rate: f64, gamma: f64, duration: f64) -> (f64, f64) {
    if rate == 0.0 {
        return (0.0, 0.0);
    }
    let left = -libm::expm1(-rate * duration);
    let parent = rate / (rate + gamma) * -libm::expm1(-(rate + gamma) * duration);
    (parent, (left - parent).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_block_sums_to_one() {
        let parent = [0.1, 0.2, 0.3, 0.4];
        let mut out = [0.0; 4];
        for d in [0.0, 0.3, 1.0] {
            let (tables, count) = tables_and_count(&[0b0011], &[0b0110]);
            let weights = InnerWeights::new(d, tables, count);
            inner_into(&[0b0011], &[0b0110], weights, &parent, &mut out);
            let mut few = [0.1, 0.2, 0.3, 0.4, 7.0, 7.0, 7.0, 7.0];
            inner_of_few(0b0011, 0b0110, weights, &mut few);
            assert_eq!(out, few[..4]);
            assert!((out.iter().sum::<f64>() - 1.0).abs() < 1e-15);
            // The rule itself: c = (1, 2, 1, 0).
            let c: [f64; 4] = [1.0, 2.0, 1.0, 0.0];
            for k in 0..4 {
                let rule = (c[k] - d * c[k].min(1.0) + d * 3.0 * parent[k]) / 4.0;
                assert!((out[k] - rule).abs() < 1e-15);
            }
            leaf_into(&[5, 0, 1, 0], d, &parent, &mut out);
            assert!((out.iter().sum::<f64>() - 1.0).abs() < 1e-15);
            exit_into(&[0b1001], d, &parent, &mut out);
            assert!((out.iter().sum::<f64>() - 1.0).abs() < 1e-15);
        }
        assert_eq!(discount(2.0, f64::INFINITY), 0.0);
        assert_eq!((survival(0.0, f64::INFINITY), survival(1.0, f64::INFINITY)), (1.0, 0.0));
    }

    #[test]
    fn exponentials_have_the_bits_of_libm() {
        let draw = |i: u64| crate::process::NodeKey::root(5, i).draw(0);
        // All magnitudes, the range that is used most, and the places where a different power of two is taken.
        let magnitudes = (0..300_000).map(|i| -libm::exp(draw(i).uniform() * 60.0 - 50.0));
        let common = (0..300_000).map(|i| -draw(i).exponential() * 4.0);
        let seams = (0..2000_u64).flat_map(|i| {
            let x = f64::from(i as u32) * 0.5 * std::f64::consts::LN_2;
            (0..8).map(move |step| -f64::from_bits(x.to_bits().saturating_sub(4) + step))
        });
        let upper_half = (0..64_u64).map(|i| -f64::from_bits((0x3FD6_2E42_u64 << 32) + (i << 27)));
        let ends = [0.0, -0.0, -1e-8, -1e-300, -707.99, -708.0, -720.0, -745.2, -1e9, f64::NEG_INFINITY];
        for x in magnitudes.chain(common).chain(seams).chain(upper_half).chain(ends) {
            assert_eq!(exp_of_negative(x).to_bits(), libm::exp(x).to_bits(), "{x}");
        }
    }

    #[test]
    fn leaving_weights_integrate_the_discount() {
        for (rate, gamma, duration) in [(0.3, 2.0, 1.5), (4.0, 0.1, 0.2), (1.0, 1.0, 30.0)] {
            // The midpoint rule with 20 000 steps: an error of about (duration/20 000)²/24 times a second derivative ≤ 100.
            let (n, mut parent, mut classes) = (20_000, 0.0, 0.0);
            for i in 0..n {
                let t = (f64::from(i) + 0.5) / f64::from(n) * duration;
                let density = rate * (-rate * t).exp() * duration / f64::from(n);
                parent += density * (-gamma * t).exp();
                classes += density * (1.0 - (-gamma * t).exp());
            }
            let found = leaving_weights(rate, gamma, duration);
            assert!(
                (found.0 - parent).abs() < 1e-5 && (found.1 - classes).abs() < 1e-5,
                "{found:?} {parent} {classes}"
            );
            // docs/design.md, "Classification": E[e^{−γT} | T < s].
            let s = duration;
            let given = rate / (rate + gamma) * (1.0 - (-(rate + gamma) * s).exp()) / (1.0 - (-rate * s).exp());
            assert!((found.0 / (found.0 + found.1) - given).abs() < 1e-12);
        }
        assert_eq!(leaving_weights(2.0, 6.0, f64::INFINITY), (0.25, 0.75));
    }
}
