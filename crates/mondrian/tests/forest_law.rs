//! What holds of forests in law: cells shared as the Laplace kernel says, whatever way the forest was grown, and the
//! equivalent kernel's limit as trees are added (report, appendix B).
//!
//! Seeds are fixed. A frequency over M independent trees with probability p is compared at 5 standard deviations: a false
//! alarm has probability 6e-7 a comparison, below 1e-4 for this file. With M = 4000 a probability that is off by 0.06
//! or more is found with probability above 0.99.

use mondrian::process::{Bounds, NodeKey};
use mondrian::{ForestParams, LeafModel, LifetimeChoice, Prior, RegressionForest, RegressionParams};
use mondrian::{Lifetime, Points};

const N_TREES: usize = 4000;
const LIFETIME: f64 = 1.3;

/// Independent leaves, prior mean 0, κ = 1/2: the report's smoother.
fn params(seed: u64, bounds: Option<Bounds>) -> RegressionParams {
    let lifetime = LifetimeChoice::Value(Lifetime::new(LIFETIME).unwrap());
    RegressionParams {
        forest: ForestParams { n_trees: N_TREES, lifetime, seed, bounds, ..ForestParams::default() },
        prior: Prior { mean: Some(0.0), variance: Some(2.0), noise: Some(1.0), ..Prior::default() },
        leaf_model: LeafModel::Independent,
        ..RegressionParams::default()
    }
}

fn fit(seed: u64, bounds: Option<Bounds>, rows: &[[f64; 2]]) -> RegressionForest {
    let x = rows.concat();
    let y: Vec<f64> = (0..rows.len()).map(|row| row as f64).collect();
    params(seed, bounds).fit(Points::row_major(&x, 2).unwrap(), &y).unwrap()
}

fn stays_with(a: &[f64; 2], b: &[f64; 2]) -> f64 {
    (-LIFETIME * ((a[0] - b[0]).abs() + (a[1] - b[1]).abs())).exp()
}

/// Whether the mean of M independent numbers in [0, scale] is `expected`, the mean of scale·{0, 1} with that probability.
fn assert_frequency(found: f64, probability: f64, scale: f64, what: &str) {
    let deviation = scale * (probability * (1.0 - probability) / N_TREES as f64).sqrt();
    let expected = scale * probability;
    assert!((found - expected).abs() <= 5.0 * deviation, "{what}: {found} for {expected} ± {deviation}");
}

/// How often each pair of learned points shares a cell: the Laplace kernel.
fn check_shared_cells(forest: &RegressionForest, rows: &[[f64; 2]], what: &str) {
    let cells = forest.apply(Points::row_major(&rows.concat(), 2).unwrap()).unwrap();
    assert!(cells.iter().all(|cell| *cell >= 0), "learned points lie in cells of their own");
    let of = |row: usize| &cells[row * N_TREES..][..N_TREES];
    for (i, a) in rows.iter().enumerate() {
        for (j, b) in rows.iter().enumerate().skip(i + 1) {
            let shared = of(i).iter().zip(of(j)).filter(|(a, b)| a == b).count();
            let share = shared as f64 / N_TREES as f64;
            assert_frequency(share, stays_with(a, b), 1.0, &format!("{what}, points {i} and {j}"));
        }
    }
}

/// Some points about the unit square, a few close together, the last ones far outside the box of the first ones.
fn rows() -> Vec<[f64; 2]> {
    let place = |i: u64| [0, 1].map(|dim| NodeKey::root(77, i).fork(dim).draw(0).uniform());
    let mut rows: Vec<[f64; 2]> = (0..8).map(place).collect();
    rows.extend([[0.5, 0.5], [0.52, 0.47], [1.6, -0.4], [2.1, 0.3], [-0.9, 1.4]]);
    rows
}

#[test]
fn learned_points_share_a_cell_as_often_as_the_kernel_says() {
    let rows = rows();
    check_shared_cells(&fit(1, None, &rows), &rows, "batch");
}

#[test]
fn a_forest_grown_through_extensions_has_the_law_of_a_batch() {
    let rows = rows();
    // The first box holds two points; the box is then widened again and again.
    let mut online = fit(2, None, &rows[8..10]);
    let order = [0, 1, 2, 3, 10, 4, 5, 12, 6, 7, 11];
    for (step, row) in order.into_iter().enumerate() {
        online.learn(Points::row_major(&rows[row], 2).unwrap(), &[step as f64]).unwrap();
    }
    assert!(online.forest().domain().rung() >= 3, "the box was widened {} times", online.forest().domain().rung());
    check_shared_cells(&online, &rows, "online");
    // And the number of cells, against a batch with other draws: means over 4000 trees each, 5 standard deviations.
    let batch = fit(3, None, &rows);
    let moments = |forest: &RegressionForest| {
        let cells = forest.apply(Points::row_major(&rows.concat(), 2).unwrap()).unwrap();
        let counts: Vec<f64> = (0..N_TREES)
            .map(|tree| cells.iter().skip(tree).step_by(N_TREES).collect::<std::collections::HashSet<_>>().len() as f64)
            .collect();
        let mean = counts.iter().sum::<f64>() / N_TREES as f64;
        (mean, counts.iter().map(|c| (c - mean) * (c - mean)).sum::<f64>() / (N_TREES - 1) as f64)
    };
    let ((a, va), (b, vb)) = (moments(&online), moments(&batch));
    let deviation = ((va + vb) / N_TREES as f64).sqrt();
    assert!((a - b).abs() < 5.0 * deviation, "{a} cells online, {b} in a batch, ± {deviation}");
}

#[test]
fn the_equivalent_kernel_of_one_point_tends_to_the_laplace_kernel() {
    // One point, learned once or several times over: weight 1{shared}/(n + κ) a row, so e^{−λd}/(n + κ) in the limit. It
    // falls with distance, and with crowding.
    let bounds = Bounds::new(&[-2.0, -2.0], &[2.0, 2.0]).unwrap();
    let queries = [[0.1, 0.0], [0.3, -0.2], [0.5, 0.6], [1.0, 1.0]];
    let mut before = vec![f64::INFINITY; queries.len()];
    for n in [1, 2, 5] {
        let forest = fit(4, Some(bounds.clone()), &vec![[0.0, 0.0]; n]);
        let kernel = forest.equivalent_kernel(Points::row_major(&queries.concat(), 2).unwrap()).unwrap();
        for (row, query) in queries.iter().enumerate() {
            let weights = &kernel[row * n..][..n];
            assert!(weights.iter().all(|w| *w == weights[0]), "rows of one point weigh the same");
            let scale = 1.0 / (n as f64 + 0.5);
            assert_frequency(weights[0], stays_with(query, &[0.0, 0.0]), scale, &format!("{n} rows, query {row}"));
            assert!(weights[0] < before[row], "crowding takes weight away");
            before[row] = weights[0];
        }
        let weights: Vec<f64> = (0..queries.len()).map(|row| kernel[row * n]).collect();
        assert!(weights.is_sorted_by(|a, b| a > b), "weight falls with distance: {weights:?}");
    }
}

#[test]
fn neighbours_crowd_a_point_out_and_more_trees_settle_its_weight() {
    let bounds = Bounds::new(&[-2.0, -2.0], &[2.0, 2.0]).unwrap();
    let query = [0.0, 0.0];
    let point = [0.4, 0.0];
    let weight = |seed: u64, neighbours: &[[f64; 2]]| {
        let rows = [&[point], neighbours].concat();
        let forest = fit(seed, Some(bounds.clone()), &rows);
        forest.equivalent_kernel(Points::row_major(&query, 2).unwrap()).unwrap()[0]
    };
    let near = [[0.45, 0.1], [0.35, -0.1], [0.4, 0.15], [0.3, 0.05]];
    let far = near.map(|[a, b]| [a - 2.0, b + 1.5]);
    let (alone, crowded, elsewhere) = (weight(5, &[]), weight(5, &near), weight(5, &far));
    // The standard deviation of each is below 1/(2·1.5·√M) = 0.0053; the neighbours take 0.15 and more.
    assert!(crowded < alone - 0.1, "{crowded} of {alone}");
    assert!(elsewhere > alone - 0.05, "points elsewhere have no effect: {elsewhere} of {alone}");
    // Forests of other draws tend to the same weight: two means of M trees, 5 standard deviations of their difference.
    let other = weight(6, &near);
    assert!((crowded - other).abs() < 5.0 * 0.0053 * 2.0_f64.sqrt(), "{crowded} and {other}");
}
