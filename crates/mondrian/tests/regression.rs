//! Regression forests: the exact promises, the laws, and the path against refits.

use mondrian::FitOptions;
use mondrian::Progress;
use mondrian::process::NodeKey;
use mondrian::{Error, Lifetime, Points};
use mondrian::{
    ForestParams, LeafModel, LifetimeChoice, MeasureChoice, Prior, RegressionForest, RegressionParams, Unseen,
};

struct Data {
    n_dims: usize,
    x: Vec<f64>,
    y: Vec<f64>,
}

/// A smooth function of the first coordinate plus noise, with duplicates and a constant column.
fn data(n: usize, n_dims: usize, seed: u64) -> Data {
    let mut x = Vec::new();
    for row in 0..n as u64 {
        // Every fifth row repeats the point before it.
        let from = if row % 5 == 4 { row - 1 } else { row };
        for dim in 0..n_dims as u64 {
            let value = NodeKey::root(seed, from).fork(dim).draw(0).uniform();
            x.push(if dim == 1 { 2.0 } else { value });
        }
    }
    let y = (0..n)
        .map(|row| (6.0 * x[row * n_dims]).sin() + 0.1 * NodeKey::root(seed, row as u64).draw(1).normal())
        .collect();
    Data { n_dims, x, y }
}

impl Data {
    fn points(&self) -> Points<'_> {
        Points::row_major(&self.x, self.n_dims).unwrap()
    }

    fn rows(&self, rows: impl Iterator<Item = usize>) -> Self {
        let rows: Vec<usize> = rows.collect();
        let x = rows.iter().flat_map(|r| self.x[r * self.n_dims..][..self.n_dims].to_vec()).collect();
        Self { n_dims: self.n_dims, x, y: rows.iter().map(|r| self.y[*r]).collect() }
    }
}

fn params(lifetime: f64, leaf_model: LeafModel) -> RegressionParams {
    let lifetime = LifetimeChoice::Value(Lifetime::new(lifetime).unwrap());
    RegressionParams {
        forest: ForestParams { n_trees: 6, lifetime, seed: 4, ..ForestParams::default() },
        leaf_model,
        ..RegressionParams::default()
    }
}

fn fit(params: &RegressionParams, data: &Data) -> RegressionForest {
    params.fit(data.points(), &data.y).unwrap()
}

/// Equality of everything that can be asked: trees, prior, predictions and deviations, to the bit.
fn assert_same(a: &RegressionForest, b: &RegressionForest, queries: Points<'_>, what: &str) {
    let trees = a.forest().trees().iter().zip(b.forest().trees());
    for ((x, _), (y, _)) in trees {
        assert!(x.same_as(a.forest().store(), y, b.forest().store()), "{what}: trees differ");
    }
    assert_eq!(a.gaussians(), b.gaussians(), "{what}");
    let (p, q) = (a.predict_with_std(queries).unwrap(), b.predict_with_std(queries).unwrap());
    assert_eq!(p, q, "{what}");
    assert_eq!(a.apply(queries).unwrap(), b.apply(queries).unwrap(), "{what}");
}

const LIFETIMES: [f64; 4] = [0.0, 2.0, 20.0, f64::INFINITY];

fn for_all(check: impl Fn(&RegressionParams, &Data)) {
    for n_dims in [1, 5, 50] {
        let data = data(60, n_dims, 7);
        for lifetime in LIFETIMES {
            for leaf_model in [LeafModel::Hierarchical, LeafModel::Independent] {
                check(&params(lifetime, leaf_model), &data);
            }
        }
    }
}

#[test]
fn order_merge_and_forgetting_give_the_batch_model() {
    for_all(|params, data| {
        let queries = data.points();
        let batch = fit(params, data);
        // The box must be the same: it is fixed at the first call.
        let mut params = params.clone();
        params.forest.bounds = mondrian::process::Bounds::of_points(data.points());
        params.forest.weights = mondrian::WeightsChoice::Raw;
        let batch = if params.forest.bounds.is_some() { fit(&params, data) } else { batch };
        let n = data.y.len();
        let (odd, even) = (data.rows((0..n).filter(|r| r % 2 == 1)), data.rows((0..n).filter(|r| r % 2 == 0)));

        let mut online = fit(&params, &odd);
        for row in (0..n).rev().filter(|r| r % 2 == 0) {
            let one = data.rows(std::iter::once(row));
            online.learn(one.points(), &one.y).unwrap();
        }
        assert_same(&online, &batch, queries, "order");

        let mut merged = fit(&params, &even);
        merged.merge(&fit(&params, &odd)).unwrap();
        assert_same(&merged, &batch, queries, "merge");

        merged.forget(odd.points(), &odd.y).unwrap();
        assert_same(&merged, &fit(&params, &even), queries, "forget");

        let before = merged.clone();
        assert!(matches!(merged.forget(odd.points(), &odd.y), Err(Error::UnknownRow { row: 0 })));
        assert_same(&merged, &before, queries, "a failed call");
    });
}

#[test]
fn threads_change_nothing() {
    let data = data(200, 3, 1);
    let fits: Vec<RegressionForest> = [1, 2, 7]
        .iter()
        .map(|n| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(*n).build().unwrap();
            pool.install(|| fit(&params(30.0, LeafModel::Hierarchical), &data))
        })
        .collect();
    assert_same(&fits[0], &fits[1], data.points(), "two threads");
    assert_same(&fits[0], &fits[2], data.points(), "seven threads");
}

#[test]
fn a_view_is_the_model_of_its_lifetime() {
    for_all(|params, data| {
        let mut full = params.clone();
        full.forest.lifetime = LifetimeChoice::Value(Lifetime::new(1000.0).unwrap());
        full.forest.weights = mondrian::WeightsChoice::Raw;
        full.prior = Prior { mean: Some(0.1), variance: Some(2.0), noise: Some(0.3), ..Prior::default() };
        let big = fit(&full, data);
        for lifetime in [0.0, 0.5, 3.0, 30.0] {
            let lifetime = Lifetime::new(lifetime).unwrap();
            let mut small = full.clone();
            small.forest.lifetime = LifetimeChoice::Value(lifetime);
            let small = fit(&small, data);
            let view = big.at(lifetime).unwrap();
            assert_eq!(view.apply(data.points()).unwrap(), small.apply(data.points()).unwrap());
            let pairs = view.predict(data.points()).unwrap().into_iter().zip(small.predict(data.points()).unwrap());
            for (a, b) in pairs {
                assert!((a - b).abs() <= 1e-12 * data.y.iter().map(|y| y.abs()).sum::<f64>(), "{a} {b}");
            }
        }
    });
}

#[test]
fn far_away_the_prior_returns() {
    for leaf_model in [LeafModel::Hierarchical, LeafModel::Independent] {
        let data = data(100, 2, 3);
        let mut params = params(10.0, leaf_model);
        params.prior = Prior { mean: Some(-3.0), variance: Some(4.0), noise: Some(0.25), ..Prior::default() };
        let far = [1e6, 1e6];
        let prediction = fit(&params, &data).predict_with_std(Points::row_major(&far, 2).unwrap()).unwrap();
        assert!((prediction.mean[0] + 3.0).abs() < 1e-9, "{:?}", prediction.mean);
        assert!((prediction.std[0] - 4.25_f64.sqrt()).abs() < 1e-9);
    }
}

#[test]
fn the_equivalent_kernel_times_the_targets_is_the_prediction() {
    for_all(|params, data| {
        for unseen in [Unseen::Keyed, Unseen::Integrate] {
            let mut params = params.clone();
            params.unseen = unseen;
            params.prior = Prior { mean: Some(0.0), variance: Some(1.0), noise: Some(0.2), ..Prior::default() };
            let forest = fit(&params, data);
            // Inside, on the border and outside the root box.
            let queries: Vec<f64> = (0..4 * data.n_dims).map(|i| -0.4 + 0.37 * i as f64 % 2.0).collect();
            let queries = Points::row_major(&queries, data.n_dims).unwrap();
            let kernel = forest.equivalent_kernel(queries).unwrap();
            let found = forest.predict(queries).unwrap();
            for (row, mean) in found.iter().enumerate() {
                let sum: f64 =
                    kernel[row * data.y.len()..][..data.y.len()].iter().zip(&data.y).map(|(k, y)| k * y).sum();
                assert!((sum - mean).abs() < 1e-10, "{sum} {mean}");
            }
        }
    });
}

#[test]
fn degrees_of_freedom_are_the_trace_of_the_equivalent_kernel() {
    for_all(|params, data| {
        let forest = fit(params, data);
        let (kernel, n) = (forest.equivalent_kernel(data.points()).unwrap(), data.y.len());
        let trace: f64 = (0..n).map(|row| kernel[row * n + row]).sum();
        let found = forest.degrees_of_freedom().unwrap();
        assert!((found - trace).abs() < 1e-9 * trace && found > 0.0 && found <= n as f64, "{found} {trace}");
    });
    // One cell: the mean of all rows, shrunk towards the prior as κ further rows would.
    let data = data(40, 2, 5);
    let mut params = params(0.0, LeafModel::Hierarchical);
    params.prior.kappa = Some(2.0);
    let found = fit(&params, &data).degrees_of_freedom().unwrap();
    assert!((found - 40.0 / 42.0).abs() < 1e-12, "{found}");
}

#[test]
fn quantiles_are_ordered_and_match_the_mean_of_a_single_tree() {
    let data = data(80, 2, 11);
    let forest = fit(&params(5.0, LeafModel::Hierarchical), &data);
    let q = forest.predict_quantiles(data.points(), &[0.05, 0.5, 0.95]).unwrap();
    assert!(q.chunks(3).all(|q| q[0] < q[1] && q[1] < q[2]));
    assert!(forest.predict_quantiles(data.points(), &[0.0]).is_err());
    // With the noise given, the distribution is the mixture over trees.
    let mut single = params(5.0, LeafModel::Hierarchical);
    single.forest.n_trees = 1;
    single.prior.noise = Some(0.01);
    let forest = fit(&single, &data);
    let (median, mean) =
        (forest.predict_quantiles(data.points(), &[0.5]).unwrap(), forest.predict(data.points()).unwrap());
    assert!(median.iter().zip(&mean).all(|(a, b)| (a - b).abs() < 1e-9));
}

#[test]
fn the_path_equals_a_refit_at_every_lifetime() {
    for n_dims in [1, 5, 50] {
        for leaf_model in [LeafModel::Hierarchical, LeafModel::Independent] {
            for (n_trees, lifetime) in [(1, 8.0), (5, 40.0), (4, f64::INFINITY)] {
                let (train, mut held) = (data(50, n_dims, 21), data(30, n_dims, 22));
                // Points outside the training box: the path extends it.
                held.x[0] = 1.7;
                held.x[n_dims] = -0.9;
                let mut params = params(lifetime, leaf_model);
                params.forest.n_trees = n_trees;
                params.forest.weights = mondrian::WeightsChoice::Raw;
                let model = fit(&params, &train);
                let path = model.path(&[(held.points(), &held.y)], &mut Progress::none()).unwrap();
                assert!(path.lifetimes().windows(2).all(|w| w[0] < w[1]));
                assert_eq!(path.lifetimes()[0], 0.0);
                // A model on the wider box, with the same prior, at and just before cuts.
                let wide = model.widened_for(held.points()).unwrap();
                let step = (path.len() / 12).max(1);
                for at in (0..path.len()).step_by(step).chain([path.len() - 1]) {
                    for time in [path.lifetimes()[at], path.lifetimes()[at].next_down().max(0.0)] {
                        let view = wide.at(Lifetime::new(time).unwrap()).unwrap();
                        let index = path.index_at(Lifetime::new(time).unwrap());
                        for (found, set) in [(path.train()[index], &train), (path.validation()[0][index], &held)] {
                            let mean = view.predict(set.points()).unwrap();
                            let mse: f64 = mean.iter().zip(&set.y).map(|(m, y)| (m - y).powi(2)).sum::<f64>();
                            let expected = (mse / set.y.len() as f64).sqrt();
                            assert!(
                                (found - expected).abs() < 1e-9 * path.train()[0],
                                "D = {n_dims}, {leaf_model:?}, λ = {time}: {found} instead of {expected}"
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn sample_weights_count_rows_and_zero_drops_them() {
    let data = data(40, 2, 31);
    let mut params = params(6.0, LeafModel::Hierarchical);
    params.forest.bounds = mondrian::process::Bounds::of_points(data.points());
    params.prior = Prior { mean: Some(0.0), variance: Some(1.0), noise: Some(0.1), ..Prior::default() };
    let weights: Vec<f64> = (0..40).map(|i| f64::from(i % 3)).collect();
    let weighted = params.fit_with(data.points(), &data.y, FitOptions::weighted(&weights)).unwrap();
    let repeated = data.rows((0..40).flat_map(|i| std::iter::repeat_n(i, i % 3)));
    let counted = fit(&params, &repeated);
    let pairs = weighted.predict(data.points()).unwrap().into_iter().zip(counted.predict(data.points()).unwrap());
    for (a, b) in pairs {
        assert!((a - b).abs() < 1e-12, "{a} {b}");
    }
}

#[test]
fn several_targets_are_predicted_as_if_alone() {
    let data = data(50, 3, 41);
    let both: Vec<f64> = data.y.iter().flat_map(|y| [*y, 5.0 - 2.0 * y]).collect();
    let params = params(12.0, LeafModel::Hierarchical);
    let joint = params.fit(data.points(), &both).unwrap();
    let found = joint.predict(data.points()).unwrap();
    let alone = fit(&params, &data).predict(data.points()).unwrap();
    assert!(found.chunks(2).zip(&alone).all(|(f, a)| f[0] == *a));
    assert_eq!(joint.n_targets(), 2);
}

#[test]
fn hostile_input_is_refused_and_changes_nothing() {
    let data = data(30, 2, 51);
    let mut forest = fit(&params(5.0, LeafModel::Hierarchical), &data);
    let before = forest.predict(data.points()).unwrap();
    let one = [0.5, 0.5];
    let point = Points::row_major(&one, 2).unwrap();
    assert!(matches!(forest.learn(point, &[f64::NAN]), Err(Error::NotFinite { what: "y", .. })));
    assert!(matches!(forest.learn(point, &[1.0, 2.0]), Err(Error::LengthMismatch { .. })));
    assert!(matches!(
        forest.learn_with(point, &[1.0], FitOptions::weighted(&[-1.0])),
        Err(Error::InvalidParameter { .. })
    ));
    let far = [1e300, 0.0];
    assert!(matches!(forest.learn(Points::row_major(&far, 2).unwrap(), &[1.0]), Err(Error::TooLarge { .. })));
    let wide = [0.0; 3];
    assert!(forest.predict(Points::row_major(&wide, 3).unwrap()).is_err());
    assert_eq!(forest.predict(data.points()).unwrap(), before);
    let infinite = RegressionParams {
        prior: Prior { variance: Some(f64::INFINITY), ..Prior::default() },
        ..params(5.0, LeafModel::Independent)
    };
    assert!(infinite.fit(data.points(), &data.y).is_err());
}

#[test]
fn automatic_everything_fits_small_and_degenerate_tables() {
    for (x, y) in [
        (vec![1.0], vec![2.0]),
        (vec![1.0, 1.0, 1.0], vec![2.0, 2.0, 2.0]),
        (vec![1.0, 2.0], vec![3.0, 3.0]),
        ((0..60).map(f64::from).collect(), vec![0.0; 60]),
        ((0..60).map(|i| 1.7e9 + f64::from(i)).collect(), (0..60).map(f64::from).collect()),
    ] {
        for measure in [MeasureChoice::Uniform, MeasureChoice::Quantile] {
            let mut params = RegressionParams::default();
            params.forest.n_trees = 5;
            params.forest.measure = measure;
            let points = Points::row_major(&x, 1).unwrap();
            let forest = params.fit(points, &y).unwrap();
            let prediction = forest.predict_with_std(points).unwrap();
            assert!(prediction.mean.iter().chain(&prediction.std).all(|v| v.is_finite()));
        }
    }
}

#[test]
fn saving_and_loading_gives_the_same_model() {
    use mondrian::Saved;
    for_all(|params, data| {
        let whole = fit(params, data);
        let model = whole.at(Lifetime::new(3.0).unwrap().min(whole.lifetime())).unwrap();
        let bytes = model.to_bytes().unwrap();
        let mut again = RegressionForest::from_bytes(&bytes).unwrap();
        assert_same(&model, &again, data.points(), "save and load");
        assert_eq!(again.to_bytes().unwrap(), bytes);
        let mut learned = model.clone();
        learned.learn(data.points(), &data.y).unwrap();
        again.learn(data.points(), &data.y).unwrap();
        assert_same(&learned, &again, data.points(), "learning after loading");
    });
}

#[test]
fn clones_do_not_see_what_others_learn() {
    let data = data(30, 2, 61);
    let mut model = fit(&params(5.0, LeafModel::Hierarchical), &data);
    let snapshot = model.clone();
    let before = snapshot.predict(data.points()).unwrap();
    model.learn(data.points(), &vec![100.0; 30]).unwrap();
    assert_eq!(snapshot.predict(data.points()).unwrap(), before);
}

#[test]
fn rows_predicted_together_get_what_each_gets_alone() {
    let (train, far) = (data(400, 3, 8), data(300, 3, 9));
    // Two targets and weights; every third query lies outside the root box.
    let targets: Vec<f64> = train.y.iter().flat_map(|y| [*y, 3.0 - y * y]).collect();
    let weights: Vec<f64> = (0..400).map(|row| 1.0 + f64::from(row % 3)).collect();
    let x: Vec<f64> = far.x.iter().enumerate().map(|(at, x)| if at / 3 % 3 == 0 { 1.7 * x } else { *x }).collect();
    for leaf_model in [LeafModel::Hierarchical, LeafModel::Independent] {
        for unseen in [Unseen::Keyed, Unseen::Integrate] {
            let params = RegressionParams { unseen, ..params(30.0, leaf_model) };
            let forest = params.fit_with(train.points(), &targets, FitOptions::weighted(&weights)).unwrap();
            for lifetime in [0.0, 2.0, 30.0] {
                let view = forest.at(Lifetime::new(lifetime).unwrap()).unwrap();
                let together = view.predict_with_std(Points::row_major(&x, 3).unwrap()).unwrap();
                for (row, x) in x.chunks_exact(3).enumerate() {
                    let alone = view.predict_with_std(Points::row_major(x, 3).unwrap()).unwrap();
                    assert_eq!(alone.mean, together.mean[2 * row..][..2], "{leaf_model:?} {lifetime} row {row}");
                    assert_eq!(alone.std, together.std[2 * row..][..2]);
                }
            }
        }
    }
}

#[test]
fn a_great_many_rows_get_what_a_few_get() {
    // More than a megabyte on one thread is read by codes, a thousand rows are not.
    let (train, queries) = (data(3000, 3, 18), data(50_000, 3, 19));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    for leaf_model in [LeafModel::Hierarchical, LeafModel::Independent] {
        let model = fit(&params(30.0, leaf_model), &train);
        let all = pool.install(|| model.predict_with_std(queries.points()).unwrap());
        for (at, x) in queries.x.chunks(3000).enumerate() {
            let some = model.predict_with_std(Points::row_major(x, 3).unwrap()).unwrap();
            assert_eq!(some.mean, all.mean[1000 * at..][..1000], "{leaf_model:?}");
            assert_eq!(some.std, all.std[1000 * at..][..1000], "{leaf_model:?}");
        }
    }
}
