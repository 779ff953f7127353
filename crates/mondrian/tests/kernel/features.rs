//! Feature maps: their inner products average to the kernel, and they are views of the same trees.

use mondrian::KernelRidge;
use mondrian::internals::features::{CellArray, Design, UNSEEN};
use mondrian::process::Bounds;
use mondrian::{Error, Lifetime, Points};
use mondrian::{FeatureMap, MondrianFeatures, RandomBinning, RandomFourier};
use mondrian::{FeatureRidge, Features};
use mondrian::{ForestParams, LeafModel, LifetimeChoice, Prior, RegressionParams, WeightsChoice};
use mondrian::{LaplaceKernel, LaplaceRidge};

use super::{normals, points, uniforms, worst};

fn lifetime(value: f64) -> Lifetime {
    Lifetime::new(value).unwrap()
}

fn mondrian(n_trees: usize, seed: u64, data: &[f64], n_dims: usize, at: f64) -> MondrianFeatures {
    let params = ForestParams { n_trees, seed, ..ForestParams::default() };
    MondrianFeatures::on(&params, points(data, n_dims), lifetime(at)).unwrap()
}

fn cells(features: &Features) -> &CellArray {
    match features {
        Features::Cells(cells) => cells,
        Features::Dense(_) => panic!("cells expected"),
    }
}

/// z(x)ᵀz(x') of rows i and j.
fn inner(z: &Features, i: usize, j: usize) -> f64 {
    let (mut a, mut b) = (vec![0.0; z.n_columns()], vec![0.0; z.n_columns()]);
    z.scatter_row(i, &mut a);
    z.scatter_row(j, &mut b);
    a.iter().zip(&b).map(|(a, b)| a * b).sum()
}

/// Pairs of the sample below, two dimensions: distances from 0.05 to 1.1.
const SAMPLE: [f64; 16] = [0.0, 0.0, 1.0, 1.0, 0.1, 0.0, 0.3, 0.4, 0.5, 0.55, 0.52, 0.6, 0.9, 0.1, 0.75, 0.2];

fn value(i: usize, j: usize, lifetimes: [f64; 2]) -> f64 {
    let (a, b) = (&SAMPLE[2 * i..], &SAMPLE[2 * j..]);
    (-lifetimes[0] * (a[0] - b[0]).abs() - lifetimes[1] * (a[1] - b[1]).abs()).exp()
}

fn pairs() -> impl Iterator<Item = (usize, usize)> {
    (0..8).flat_map(|i| (0..i).map(move |j| (i, j)))
}

#[test]
fn inner_products_average_to_the_kernel() {
    // 28 pairs a map, M = 20 000. An inner product is a mean of M variables within [−1, 1] (Fourier: cos of a
    // difference) or {0, 1} with p = k: its deviation is at most √(k(1 − k)/M), or 1/√M for Fourier, whose variance is
    // (1 + k(2Δ))/2 − k² ≤ 1. Reject beyond 5 deviations: false alarm 28 · 3 · 6e-7 < 6e-5 for a correct map. Power: 10 %
    // in λ moves k by 0.1·λd·k, at λd = 1 by 0.037 = 10 deviations of the cells, 5 of Fourier.
    let m = 20_000;
    let lifetimes = [1.5, 0.7];
    let kernel = LaplaceKernel::per_dimension(&lifetimes.map(lifetime)).unwrap();
    let sample = points(&SAMPLE, 2);
    let binning = RandomBinning::new(&kernel, 2, m, 1).unwrap().learn(sample).unwrap();
    let fourier = RandomFourier::new(&kernel, 2, 2 * m, 1).unwrap().learn(sample).unwrap();
    let weights = mondrian::process::Weights::new(lifetimes.to_vec()).unwrap();
    let params =
        ForestParams { n_trees: m, seed: 1, weights: WeightsChoice::Given(weights), ..ForestParams::default() };
    let trees = MondrianFeatures::on(&params, sample, lifetime(1.0)).unwrap().learn(sample).unwrap();
    for (i, j) in pairs() {
        let k = value(i, j, lifetimes);
        let deviation = (k * (1.0 - k) / m as f64).sqrt();
        for (name, z, deviation) in [
            ("binning", &binning, deviation),
            ("trees", &trees, deviation),
            ("fourier", &fourier, (m as f64).powf(-0.5)),
        ] {
            let found = inner(z, i, j);
            assert!((found - k).abs() < 5.0 * deviation, "{name}, pair {i} {j}: {found} for {k}");
        }
    }
    assert!((inner(&fourier, 3, 3) - 1.0).abs() < 1e-12 && (inner(&trees, 3, 3) - 1.0).abs() < 1e-12);
}

#[test]
fn inner_products_average_to_the_kernel_across_the_border() {
    // Root box [0.25, 0.75]²; five of eight points lie outside. Each tree gives e^{−λΔ} times an indicator, so the
    // deviation of the mean is at most that of the indicator. 5 deviations, false alarm 15 · 6e-7 < 1e-5; pairs
    // of points both outside are not covered by the construction and are left out. Power as above.
    let (m, at) = (20_000, 1.0);
    let bounds = Bounds::new(&[0.25, 0.25], &[0.75, 0.75]).unwrap();
    let params = ForestParams { n_trees: m, seed: 2, bounds: Some(bounds), ..ForestParams::default() };
    let within = |i: usize| SAMPLE[2 * i..2 * i + 2].iter().all(|x| (0.25..=0.75).contains(x));
    let inside: Vec<usize> = (0..8).filter(|i| within(*i)).collect();
    assert_eq!(inside.len(), 3);
    let rows: Vec<f64> = inside.iter().flat_map(|&i| SAMPLE[2 * i..2 * i + 2].to_vec()).collect();
    let mut map = MondrianFeatures::on(&params, points(&rows, 2), lifetime(at)).unwrap();
    map.learn(points(&rows, 2)).unwrap();
    let z = map.transform(points(&SAMPLE, 2)).unwrap();
    for &i in &inside {
        for j in (0..8).filter(|j| !within(*j)) {
            let (k, found) = (value(i, j, [at; 2]), inner(&z, i, j));
            let deviation = (k * (1.0 - k) / m as f64).sqrt();
            assert!((found - k).abs() < 5.0 * deviation, "pair {i} {j}: {found} for {k}");
        }
    }
}

type Make = fn(&LaplaceKernel, &[f64], usize, u64) -> Features;

#[test]
fn the_deviation_falls_with_the_root_of_the_number_of_trees() {
    // One pair at k = e^{−0.6}; 400 replications of M = 10 and of M = 160. The ratio of the two sample deviations
    // estimates 4 with a relative error of √(2 · 1/(2·400)) = 5 %; a band of ±25 % is five of them (false alarm
    // 6e-7 a map). Power: a rate of M^{−1/4} gives 2, M^{−1} gives 16.
    let kernel = LaplaceKernel::new(lifetime(1.0)).unwrap();
    let sample = [0.0, 0.0, 0.4, 0.2];
    let deviation = |products: Vec<f64>| {
        let mean = products.iter().sum::<f64>() / products.len() as f64;
        (products.iter().map(|p| (p - mean).powi(2)).sum::<f64>() / products.len() as f64).sqrt()
    };
    let maps: [(&str, Make); 3] = [
        ("binning", |k, x, m, seed| RandomBinning::new(k, 2, m, seed).unwrap().learn(points(x, 2)).unwrap()),
        ("fourier", |k, x, m, seed| RandomFourier::new(k, 2, m, seed).unwrap().learn(points(x, 2)).unwrap()),
        ("trees", |_, x, m, seed| mondrian(m, seed, x, 2, 1.0).learn(points(x, 2)).unwrap()),
    ];
    for (name, make) in maps {
        let spread = |m: usize| deviation((0..400).map(|s| inner(&make(&kernel, &sample, m, s), 0, 1)).collect());
        let ratio = spread(10) / spread(160);
        assert!((ratio / 4.0 - 1.0).abs() < 0.25, "{name}: {ratio}");
    }
}

#[test]
fn transforming_training_points_gives_their_features() {
    let x = uniforms(20, 300);
    let kernel = LaplaceKernel::new(lifetime(3.0)).unwrap();
    let mut maps: Vec<Box<dyn FeatureMap>> = vec![
        Box::new(RandomBinning::new(&kernel, 3, 30, 5).unwrap()),
        Box::new(RandomFourier::new(&kernel, 3, 31, 5).unwrap()),
        Box::new(mondrian(30, 5, &x, 3, 3.0)),
    ];
    for map in &mut maps {
        let learned = map.learn(points(&x, 3)).unwrap();
        assert_eq!(map.transform(points(&x, 3)).unwrap(), learned);
        assert_eq!(map.n_columns(), learned.n_columns());
        assert!(matches!(map.transform(points(&x, 2)), Err(Error::LengthMismatch { expected: 3, found: 2, .. })));
        assert_eq!(map.transform(Points::row_major(&[], 3).unwrap()).unwrap().n_rows(), 0);
    }
}

#[test]
fn learning_more_only_adds_columns() {
    // The second half reaches beyond the first box, so the box is widened on the way.
    let (mut x, later) = (uniforms(21, 200), uniforms(22, 200));
    let later: Vec<f64> = later.iter().map(|x| 1.6 * x - 0.3).collect();
    let kernel = LaplaceKernel::new(lifetime(4.0)).unwrap();
    let bounds = Bounds::new(&[0.0, 0.0], &[1.0, 1.0]).unwrap();
    let params = ForestParams { n_trees: 20, seed: 3, bounds: Some(bounds), ..ForestParams::default() };
    let mut trees = MondrianFeatures::on(&params, points(&x, 2), lifetime(4.0)).unwrap();
    let mut binning = RandomBinning::new(&kernel, 2, 20, 3).unwrap();
    let maps: [&mut dyn FeatureMap; 2] = [&mut trees, &mut binning];
    for map in maps {
        let before = map.learn(points(&x, 2)).unwrap();
        for chunk in later.chunks(14) {
            let learned = map.learn(points(chunk, 2)).unwrap();
            assert!(cells(&learned).to_row_major().iter().all(|c| *c != UNSEEN));
        }
        assert!(map.n_columns() > before.n_columns());
        let again = map.transform(points(&x, 2)).unwrap();
        assert_eq!(cells(&again).to_row_major(), cells(&before).to_row_major());
    }
    // Learned one after the other or at once: the same cells under other numbers.
    x.extend(&later);
    let mut at_once = MondrianFeatures::on(&params, points(&x, 2), lifetime(4.0)).unwrap();
    let z = at_once.learn(points(&x, 2)).unwrap();
    assert_eq!(at_once.n_columns(), trees.n_columns());
    same_partition(cells(&z), &trees.training().unwrap());
}

fn same_partition(a: &CellArray, b: &CellArray) {
    assert_eq!((a.n_rows(), a.n_trees()), (b.n_rows(), b.n_trees()));
    for m in 0..a.n_trees() {
        let (a, b) = (a.tree(m), b.tree(m));
        for i in 0..a.len() {
            let first_a = a.iter().position(|c| *c == a[i]);
            let first_b = b.iter().position(|c| *c == b[i]);
            assert_eq!(first_a, first_b, "tree {m}, row {i}");
        }
    }
}

#[test]
fn a_view_is_the_map_grown_to_that_lifetime() {
    let (x, q) = (uniforms(23, 150), uniforms(24, 300));
    let mut terminal = mondrian(15, 9, &x, 3, 6.0);
    terminal.learn(points(&x, 3)).unwrap();
    for at in [0.0, 0.5, 2.0, 5.9, 6.0] {
        let view = terminal.at(lifetime(at)).unwrap();
        let mut grown = mondrian(15, 9, &x, 3, at);
        let z = grown.learn(points(&x, 3)).unwrap();
        assert_eq!(&view.training().unwrap(), cells(&z), "lifetime {at}");
        assert_eq!(view.transform(points(&q, 3)).unwrap(), grown.transform(points(&q, 3)).unwrap(), "lifetime {at}");
    }
    assert!(matches!(terminal.at(lifetime(6.1)), Err(Error::InvalidParameter { name: "lifetime", .. })));
}

#[test]
fn an_unseen_cell_is_one_that_no_training_point_shares() {
    // Against a map that has learned the query too: there it shares a cell with a training row, or has its own.
    let (x, q) = (uniforms(25, 60), uniforms(26, 60));
    let bounds = Bounds::new(&[0.0, 0.0], &[1.0, 1.0]).unwrap();
    let params = ForestParams { n_trees: 25, seed: 4, bounds: Some(bounds), ..ForestParams::default() };
    let mut small = MondrianFeatures::on(&params, points(&x, 2), lifetime(5.0)).unwrap();
    small.learn(points(&x, 2)).unwrap();
    let found = small.cells(points(&q, 2)).unwrap();
    let mut large = small.clone();
    let known = small.n_columns() as u32;
    large.learn(points(&q, 2)).unwrap();
    let expected = large.cells(points(&q, 2)).unwrap();
    let expected: Vec<u32> = expected.to_row_major().into_iter().map(|c| if c < known { c } else { UNSEEN }).collect();
    assert_eq!(found.to_row_major(), expected);
    assert!(expected.contains(&UNSEEN) && expected.iter().any(|c| *c != UNSEEN));
}

#[test]
fn rows_transformed_together_have_the_cells_of_each_alone() {
    let (train, queries) = (uniforms(3, 200), uniforms(4, 2 * 700));
    let mut map = mondrian(20, 5, &train, 2, 4.0);
    map.learn(points(&train, 2)).unwrap();
    let queries: Vec<f64> = queries.iter().map(|x| 1.2 * x).collect();
    let all = map.cells(points(&queries, 2)).unwrap();
    for (first, x) in queries.chunks(2 * 7).enumerate() {
        let some = map.cells(points(x, 2)).unwrap();
        for row in 0..7 {
            assert!(some.row(row).eq(all.row(7 * first + row)), "row {row} of {first}");
        }
    }
}

#[test]
fn far_outside_the_box_the_prediction_is_the_mean_and_the_variance_the_priors() {
    let (x, y) = (uniforms(27, 100), normals(28, 50));
    let model = KernelRidge::params().n_trees(40).lifetime(lifetime(2.0)).alpha(0.5).seed(1);
    let model = model.fit(points(&x, 2), &y).unwrap();
    let far = [1e4, -1e4];
    let mean = y.iter().sum::<f64>() / 50.0;
    assert!((model.predict(points(&far, 2)).unwrap()[(0, 0)] - mean).abs() < 1e-12);
    let prior = model.model().prior_variances()[0];
    assert!((model.predict_variance(points(&far, 2)).unwrap()[(0, 0)] - 1.5 * prior).abs() < 1e-12 * prior);
}

#[test]
fn the_model_at_a_lifetime_is_the_model_fitted_there() {
    let (x, y, q) = (uniforms(29, 240), normals(30, 120), uniforms(31, 60));
    let params = KernelRidge::params().n_trees(20).seed(2).alpha(0.3);
    let full = params.clone().lifetime(lifetime(8.0)).fit(points(&x, 2), &y).unwrap();
    for at in [0.0, 1.0, 7.0] {
        let fitted = params.clone().lifetime(lifetime(at)).fit(points(&x, 2), &y).unwrap();
        let view = full.at(lifetime(at)).unwrap();
        assert_eq!(view.predict(points(&q, 2)).unwrap(), fitted.predict(points(&q, 2)).unwrap());
    }
    let smoother = full.equivalent_kernel(points(&q, 2)).unwrap();
    let slow: Vec<f64> = (0..30).map(|i| (0..120).map(|j| smoother[(i, j)] * y[j]).sum()).collect();
    assert!(worst(&slow, full.predict(points(&q, 2)).unwrap().as_slice()) < 1e-9);
}

#[test]
fn one_tree_is_a_forest_of_one_tree() {
    // Report, appendix B: with M = 1 ridge predicts each cell's sum over (count + δ²), as a Mondrian forest on the same
    // tree with independent leaves, prior mean 0 and σ²_noise/σ²_prior = δ² does; an unseen cell predicts 0. No
    // intercept. Several lifetimes and seeds; queries in and out of the box.
    let (x, y) = (uniforms(32, 200), normals(33, 100));
    let q: Vec<f64> = uniforms(34, 400).into_iter().map(|u| 1.6 * u - 0.3).collect();
    for (seed, time, alpha) in [(0, 3.0, 0.7), (1, 0.0, 0.1), (2, 12.0, 1e-3), (3, 1.0, 20.0)] {
        let forest = ForestParams {
            n_trees: 1,
            seed,
            lifetime: LifetimeChoice::Value(lifetime(time)),
            ..ForestParams::default()
        };
        let ridge = KernelRidge::params().trees(forest.clone()).alpha(alpha).fit_intercept(false);
        let ridge = ridge.fit(points(&x, 2), &y).unwrap();
        // Twice δ² over twice: only the ratio may count.
        let prior = Prior { mean: Some(0.0), variance: Some(2.0), noise: Some(2.0 * alpha), ..Prior::default() };
        let params = RegressionParams { forest, prior, leaf_model: LeafModel::Independent, ..Default::default() };
        let leaves = params.fit(points(&x, 2), &y).unwrap();
        let by_ridge = ridge.predict(points(&q, 2)).unwrap();
        let by_forest = leaves.predict(points(&q, 2)).unwrap();
        let error = worst(by_ridge.as_slice(), &by_forest);
        assert!(error < 1e-12, "seed {seed}, λ = {time}, δ² = {alpha}: {error}");
        assert!(time < 10.0 || by_forest.contains(&0.0), "queries in unseen cells");
        // And the smoothing matrices, which do not know the targets.
        let smoother = ridge.equivalent_kernel(points(&q, 2)).unwrap();
        let other = leaves.equivalent_kernel(points(&q, 2)).unwrap();
        let rows: Vec<f64> = smoother.transposed().into_vec();
        assert!(worst(&rows, &other) < 1e-12, "seed {seed}, λ = {time}, δ² = {alpha}");
    }
}

#[test]
fn many_trees_approach_the_exact_kernel() {
    let (x, q) = (uniforms(35, 300), uniforms(36, 90));
    let y: Vec<f64> = x.chunks(3).map(|x| (5.0 * x[0]).sin() + x[1] * x[2]).collect();
    let kernel = LaplaceKernel::new(lifetime(1.0)).unwrap();
    let exact = LaplaceRidge::params(kernel.clone()).alpha(0.1).fit(points(&x, 3), &y).unwrap();
    let exact = exact.predict(points(&q, 3)).unwrap();
    let error = |predicted: Vec<f64>| {
        (predicted.iter().zip(exact.as_slice()).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / 30.0).sqrt()
    };
    let by_trees = |m: usize| {
        let model = KernelRidge::params().n_trees(m).lifetime(lifetime(1.0)).alpha(0.1).fit(points(&x, 3), &y).unwrap();
        error(model.predict(points(&q, 3)).unwrap().into_vec())
    };
    let by_bins = |m: usize| {
        let mut map = RandomBinning::new(&kernel, 3, m, 0).unwrap();
        let z = map.learn(points(&x, 3)).unwrap();
        let model = FeatureRidge::params().alpha(0.1).fit(z, &y).unwrap();
        error(model.predict(&map.transform(points(&q, 3)).unwrap()).unwrap().into_vec())
    };
    for approach in [&by_trees as &dyn Fn(usize) -> f64, &by_bins] {
        // 64 times the trees: about an eighth of the distance.
        let (few, many) = (approach(30), approach(1920));
        assert!(many < few / 4.0 && many < 0.03, "{few} {many}");
    }
}

#[test]
fn angles_beyond_doubles_are_refused() {
    let map = RandomFourier::new(&LaplaceKernel::per_dimension(&[lifetime(1.0); 2]).unwrap(), 2, 40, 1).unwrap();
    assert!(matches!(map.transform(points(&[1.7e308, 1.7e308], 2)), Err(Error::TooLarge { .. })));
    assert!(map.transform(points(&[1e200, -1e200], 2)).is_ok());
}
