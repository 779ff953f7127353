//! The test statistics: each refuses a correct sampler with probability below 1e-6 a comparison.

use mondrian::process::{Bounds, BuiltInMeasure, Measure, Mondrian, NodeKey, Partition, QuantileMeasure};
use mondrian::{Lifetime, Points};
use statrs::distribution::{ChiSquared, ContinuousCDF, Discrete, DiscreteCDF, Poisson};

/// |z| above which a mean or frequency is refused: probability 5.7e-7 for a normal z.
pub(crate) const LARGEST_Z: f64 = 5.0;

/// Checks a frequency against its probability by its z-score.
pub(crate) fn check_frequency(what: &str, successes: usize, n: usize, p: f64) {
    let z = (successes as f64 - n as f64 * p) / (n as f64 * p * (1.0 - p)).sqrt();
    assert!(z.abs() < LARGEST_Z, "{what}: {successes} of {n}, expected a share of {p:.4}: z = {z:.1}");
}

/// Checks a mean by its z-score, with the spread of the sample itself.
pub(crate) fn check_mean(what: &str, values: &[f64], expected: f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let z = (mean - expected) / (variance / n).sqrt();
    assert!(z.abs() < LARGEST_Z, "{what}: mean {mean:.4}, expected {expected:.4}: z = {z:.1}");
}

/// Kolmogorov–Smirnov: D·√n > 2.7 has probability 2·exp(−2·2.7²) = 9e-7.
pub(crate) fn check_distribution(what: &str, mut values: Vec<f64>, cdf: impl Fn(f64) -> f64) {
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let distance = values.iter().enumerate().fold(0.0_f64, |d, (i, x)| {
        let f = cdf(*x);
        d.max(f - i as f64 / n).max((i + 1) as f64 / n - f)
    });
    assert!(distance * n.sqrt() < 2.7, "{what}: D·√n = {:.2} from {n} values", distance * n.sqrt());
}

/// Checks counts of categories against their probabilities: χ² with p-value below 1e-6 is refused.
pub(crate) fn check_shares(what: &str, counts: &[usize], shares: &[f64]) {
    let n = counts.iter().sum::<usize>() as f64;
    let statistic: f64 = counts.iter().zip(shares).map(|(c, p)| (*c as f64 - n * p).powi(2) / (n * p)).sum();
    let tail = ChiSquared::new((counts.len() - 1) as f64).unwrap().sf(statistic);
    assert!(tail > 1e-6, "{what}: χ² = {statistic:.1}, p-value {tail:.1e}, counts {counts:?}");
}

/// Checks counts against a Poisson distribution, in the bins 0, 1, …, `last` and more.
pub(crate) fn check_poisson(what: &str, numbers: &[usize], mean: f64, last: usize) {
    let mut counts = vec![0; last + 1];
    for number in numbers {
        counts[(*number).min(last)] += 1;
    }
    let law = Poisson::new(mean).unwrap();
    let mut shares: Vec<f64> = (0..last as u64).map(|k| law.pmf(k)).collect();
    shares.push(law.sf(last as u64 - 1));
    check_shares(what, &counts, &shares);
}

/// The measures that every law is checked under: plain length, and the distribution of skewed data.
pub(crate) fn measures(n_dims: usize) -> [(&'static str, BuiltInMeasure); 2] {
    let table: Vec<f64> = (0..50 * n_dims as u64).map(|i| NodeKey::root(77, i).draw(0).uniform().powi(3)).collect();
    let quantile = QuantileMeasure::of_points(Points::row_major(&table, n_dims).unwrap(), None).unwrap();
    [("uniform", BuiltInMeasure::Uniform), ("quantile", BuiltInMeasure::Quantile(quantile))]
}

/// The lengths of a box under a measure.
pub(crate) fn lengths(measure: &BuiltInMeasure, bounds: &Bounds) -> Vec<f64> {
    (0..bounds.n_dims())
        .map(|dim| measure.coordinate(dim, bounds.upper()[dim]) - measure.coordinate(dim, bounds.lower()[dim]))
        .collect()
}

/// The distance ‖x − y‖₁ of two points under a measure.
pub(crate) fn distance(measure: &BuiltInMeasure, x: &[f64], y: &[f64]) -> f64 {
    (0..x.len()).map(|dim| (measure.coordinate(dim, x[dim]) - measure.coordinate(dim, y[dim])).abs()).sum()
}

/// Sample number `index` of seed 20 on a box.
pub(crate) fn sample(bounds: &Bounds, measure: &BuiltInMeasure, limit: f64, index: u64) -> Partition {
    let process = Mondrian::with_measure(bounds.clone(), measure.clone(), NodeKey::root(20, index)).unwrap();
    process.until(Lifetime::new(limit).unwrap()).unwrap()
}

/// Checks that pairs of points share a cell with probability exp(−λ‖x − y‖₁) in samples that `look` makes.
pub(crate) fn check_same_cell(
    what: &str,
    measure: &BuiltInMeasure,
    limit: f64,
    pairs: &[(Vec<f64>, Vec<f64>)],
    samples: &[Partition],
) {
    let n_dims = pairs[0].0.len();
    let points: Vec<f64> = pairs.iter().flat_map(|(x, y)| x.iter().chain(y).copied()).collect();
    let mut together = vec![0; pairs.len()];
    for partition in samples {
        let cells = partition.cell_of(Points::row_major(&points, n_dims).unwrap()).unwrap();
        for (count, pair) in together.iter_mut().zip(cells.chunks(2)) {
            *count += usize::from(pair[0] == pair[1]);
        }
    }
    for ((x, y), count) in pairs.iter().zip(together) {
        let p = (-limit * distance(measure, x, y)).exp();
        assert!((0.05..0.95).contains(&p), "{what}: a pair with p = {p:.3} has no power");
        check_frequency(&format!("{what}: {x:?} and {y:?} together"), count, samples.len(), p);
    }
}
