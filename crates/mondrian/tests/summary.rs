//! Forests trained in parts: summaries of chunks, merged in any order, give the forest of one fit, bit for bit.

use mondrian::internals::model_file::Archive;
use mondrian::process::{NodeKey, Weights};
use mondrian::{
    ClassificationForest, DensityForest, Error, ForestParams, LeafModel, Lifetime, Moments, Points, Prior,
    RegressionForest, RegressionParams, Saved, Summary, TrainingDomain, WeightsChoice,
};

fn uniform(k: u64) -> f64 {
    NodeKey::root(77, k).draw(0).uniform()
}

/// Rows in clusters, so that there are chains, every fifth of them repeated; targets and classes that depend on them.
struct Data {
    n_dims: usize,
    x: Vec<f64>,
    y: Vec<f64>,
    labels: Vec<u32>,
}

impl Data {
    fn new(n_rows: u64, n_dims: u64) -> Self {
        let place = |row: u64, dim: u64| {
            let row = if row % 5 == 4 { row - 1 } else { row };
            uniform(row % 6 * n_dims + dim) + 10_f64.powi(-((row % 3) as i32)) * uniform(1000 + row * n_dims + dim)
        };
        let x: Vec<f64> = (0..n_rows).flat_map(|row| (0..n_dims).map(move |dim| place(row, dim))).collect();
        let sum = |row: &[f64]| row.iter().sum::<f64>();
        let y = x.chunks(n_dims as usize).zip(0..).map(|(row, at)| 1e3 * sum(row) + uniform(9_000_000 + at)).collect();
        let labels = x.chunks(n_dims as usize).zip(0..).map(|(row, at)| (sum(row) * 1.7) as u32 % 3 + at % 2).collect();
        Self { n_dims: n_dims as usize, x, y, labels }
    }

    fn points(&self) -> Points<'_> {
        Points::row_major(&self.x, self.n_dims).unwrap()
    }

    /// Inside the box, on rows, and outside.
    fn queries(&self) -> Vec<f64> {
        let scale = |i: u64| if i.is_multiple_of(3) { 3.0 } else { 1.5 };
        let random = (0..300 * self.n_dims as u64).map(|i| scale(i / 7) * uniform(50_000 + i) - 0.2);
        self.x.iter().copied().take(60 * self.n_dims).chain(random).collect()
    }
}

fn lifetime(value: f64) -> Lifetime {
    Lifetime::new(value).unwrap()
}

fn params(value: f64) -> ForestParams {
    ForestParams::default().n_trees(6).seed(5).lifetime(lifetime(value))
}

fn bits(numbers: &[f64]) -> Vec<u64> {
    numbers.iter().map(|x| x.to_bits()).collect()
}

/// Chunks of a table: by size, in an order of their own.
fn chunkings(n_rows: usize) -> Vec<Vec<std::ops::Range<usize>>> {
    let by = |size: usize| (0..n_rows).step_by(size).map(|at| at..(at + size).min(n_rows)).collect::<Vec<_>>();
    let mut backwards = by(n_rows / 7 + 1);
    backwards.reverse();
    let mut shuffled = by(n_rows / 11 + 1);
    shuffled.sort_by_key(|range| NodeKey::root(1, range.start as u64).to_bits());
    vec![by(n_rows), by(n_rows / 2 + 1), backwards, shuffled]
}

/// The summary of chunks, merged as a list and as a tree.
fn merged(chunks: &[std::ops::Range<usize>], summarize: impl Fn(std::ops::Range<usize>) -> Summary) -> Summary {
    let parts: Vec<Summary> = chunks.iter().map(|range| summarize(range.clone())).collect();
    let mut list = parts[0].clone();
    parts[1..].iter().for_each(|part| list.merge(part).unwrap());
    let mut level = parts;
    while level.len() > 1 {
        level = level
            .chunks(2)
            .map(|pair| {
                let mut sum = Summary::from_bytes(&pair[pair.len() - 1].to_bytes().unwrap()).unwrap();
                if pair.len() == 2 {
                    sum.merge(&pair[0]).unwrap();
                }
                sum
            })
            .collect();
    }
    assert_eq!(list, level[0]);
    assert_eq!(list.to_bytes().unwrap(), level[0].to_bytes().unwrap());
    list
}

#[test]
fn regression_in_parts_is_one_fit() {
    for (n_rows, n_dims, value) in
        [(1, 2, 4.0), (7, 1, 30.0), (700, 1, 8.0), (900, 3, 6.0), (400, 6, 0.0), (300, 20, 3.0)]
    {
        let data = Data::new(n_rows, n_dims);
        let queries = data.queries();
        let queries = Points::row_major(&queries, data.n_dims).unwrap();
        let moments = Moments::new(data.points(), &data.y).unwrap();
        for leaf_model in [LeafModel::Hierarchical, LeafModel::Independent] {
            let domain = moments.domain(&params(value)).unwrap().leaf_model(leaf_model);
            let fit = RegressionParams { forest: params(value), leaf_model, ..RegressionParams::default() };
            let whole = fit.fit(data.points(), &data.y).unwrap();
            // With the noise given, deviations are the trees' own, and the sample of rows serves no calibration.
            let prior = Prior { noise: Some(0.3), ..Prior::default() };
            let given = Summary::of_regression(&domain.clone().prior(prior), data.points(), &data.y).unwrap();
            let (ours, theirs) = (given.finish_regression().unwrap(), RegressionParams { prior, ..fit.clone() });
            let theirs = theirs.fit(data.points(), &data.y).unwrap();
            let std = |model: &RegressionForest| bits(&model.predict_with_std(queries).unwrap().std);
            let quantiles = |model: &RegressionForest| bits(&model.predict_quantiles(queries, &[0.1, 0.9]).unwrap());
            assert_eq!((std(&ours), quantiles(&ours)), (std(&theirs), quantiles(&theirs)));
            for chunks in chunkings(n_rows as usize) {
                let summary = merged(&chunks, |range| {
                    Summary::of_regression(&domain, data.points().rows(range.clone()), &data.y[range]).unwrap()
                });
                let model = summary.finish_regression().unwrap();
                assert_eq!(model.n_rows(), n_rows as usize);
                assert_eq!(model.gaussians(), whole.gaussians());
                assert_eq!(bits(model.noise_variances()), bits(whole.noise_variances()));
                for at in [value, value / 3.0] {
                    let (ours, theirs) = (model.at(lifetime(at)).unwrap(), whole.at(lifetime(at)).unwrap());
                    let (a, b) = (ours.predict_with_std(queries).unwrap(), theirs.predict_with_std(queries).unwrap());
                    assert_eq!((bits(&a.mean), bits(&a.std)), (bits(&b.mean), bits(&b.std)), "{n_rows} rows");
                    assert_eq!(quantiles(&ours), quantiles(&theirs), "{n_rows} rows");
                    assert_eq!(bits(&ours.relevance()), bits(&theirs.relevance()), "{n_rows} rows");
                    assert_eq!(ours.apply(queries).unwrap(), theirs.apply(queries).unwrap());
                }
            }
        }
    }
}

/// More points than a summary keeps rows of: deviations and quantiles are calibrated on those of smallest hash, which it has, as a
/// fit's are. Noise and relevance look at all rows in a fit, and at the sample here.
#[test]
fn deviations_of_many_rows_are_those_of_one_fit() {
    let n_rows = 9000;
    let x: Vec<f64> = (0..2 * n_rows).map(uniform).collect();
    let y: Vec<f64> = x.chunks(2).zip(1_000_000..).map(|(x, at)| (5.0 * x[0]).sin() + uniform(at)).collect();
    let points = Points::row_major(&x, 2).unwrap();
    let domain = Moments::new(points, &y).unwrap().domain(&params(9.0)).unwrap();
    let whole = RegressionParams { forest: params(9.0), ..RegressionParams::default() }.fit(points, &y).unwrap();
    let summary = merged(&chunkings(n_rows as usize)[3], |range| {
        Summary::of_regression(&domain, points.rows(range.clone()), &y[range]).unwrap()
    });
    let model = summary.finish_regression().unwrap();
    let fresh: Vec<f64> = (5_000_000..5_002_000).map(uniform).collect();
    let queries = Points::row_major(&fresh, 2).unwrap();
    let seen = |model: &RegressionForest| {
        let (std, quantiles) =
            (model.predict_with_std(queries), model.predict_quantiles(queries, &[0.05, 0.25, 0.75, 0.95]));
        (bits(&std.unwrap().std), bits(&quantiles.unwrap()))
    };
    assert_eq!(seen(&model), seen(&whole));
    let restored = RegressionForest::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(seen(&restored), seen(&whole));
    assert_eq!(seen(&model.at(lifetime(2.0)).unwrap()), seen(&whole.at(lifetime(2.0)).unwrap()));
    // The noise is uniform, of variance 1/12; the second input has nothing to do with the targets.
    let (noise, relevance) = (12.0 * model.noise_variances()[0], model.relevance());
    assert!((noise - 1.0).abs() < 0.15 && relevance[1] < 0.02, "{noise} {relevance:?}");
}

#[test]
fn weights_and_several_targets_are_one_fit_too() {
    let data = Data::new(500, 2);
    let both: Vec<f64> = data.y.iter().zip(&data.labels).flat_map(|(y, k)| [*y, 1e-9 * f64::from(*k)]).collect();
    let weights = WeightsChoice::Given(Weights::new(vec![0.3, 4.0]).unwrap());
    let params = params(5.0).measure_weights(weights);
    let domain = Moments::new(data.points(), &both).unwrap().domain(&params).unwrap();
    let whole = RegressionParams { forest: params, ..RegressionParams::default() }.fit(data.points(), &both).unwrap();
    let summary = merged(&chunkings(500)[2], |range| {
        let targets = &both[2 * range.start..2 * range.end];
        Summary::of_regression(&domain, data.points().rows(range), targets).unwrap()
    });
    let model = summary.finish_regression().unwrap();
    assert_eq!(bits(&model.predict(data.points()).unwrap()), bits(&whole.predict(data.points()).unwrap()));
}

/// One point, once or often, in a box that is cut.
#[test]
fn one_point_is_one_fit_too() {
    let bounds = mondrian::process::Bounds::new(&[0.0, 0.0], &[1.0, 1.0]).unwrap();
    let params = params(9.0).bounds(bounds);
    let queries: Vec<f64> = (0..80).map(|i| 1.4 * uniform(i) - 0.2).chain([0.3, 0.6]).collect();
    let queries = Points::row_major(&queries, 2).unwrap();
    for n in [1, 3] {
        let (x, y, labels) = ([0.3, 0.6].repeat(n), vec![4.0; n], vec![1; n]);
        let points = Points::row_major(&x, 2).unwrap();
        let domain = Moments::new(points, &y).unwrap().domain(&params).unwrap();
        for leaf_model in [LeafModel::Hierarchical, LeafModel::Independent] {
            let fit = RegressionParams { forest: params.clone(), leaf_model, ..RegressionParams::default() };
            let whole = fit.fit(points, &y).unwrap();
            let summary = Summary::of_regression(&domain.clone().leaf_model(leaf_model), points, &y).unwrap();
            let model = summary.finish_regression().unwrap();
            assert_eq!(bits(&model.predict(queries).unwrap()), bits(&whole.predict(queries).unwrap()));
            assert_eq!(model.apply(queries).unwrap(), whole.apply(queries).unwrap());
        }
        let fit = ClassificationForest::params().n_classes(3).seed(5).n_trees(6).lifetime(lifetime(9.0));
        let whole = fit.bounds(params.bounds.clone()).fit(points, &labels).unwrap();
        let model = Summary::of_classification(&domain, points, &labels, 3).unwrap().finish_classification().unwrap();
        assert_eq!(bits(&model.predict_proba(queries).unwrap()), bits(&whole.predict_proba(queries).unwrap()));
        let fit = DensityForest::params().seed(5).n_trees(6).lifetime(lifetime(9.0)).bounds(params.bounds.clone());
        let model = Summary::of_density(&domain, points).unwrap().finish_density().unwrap();
        let logs = fit.fit(points).unwrap().log_density(queries).unwrap();
        assert_eq!(bits(&model.log_density(queries).unwrap()), bits(&logs));
    }
}

#[test]
fn classification_in_parts_is_one_fit() {
    for (n_rows, n_dims, value) in [(1, 2, 4.0), (800, 2, 6.0), (300, 5, 2.0)] {
        let data = Data::new(n_rows, n_dims);
        let queries = data.queries();
        let queries = Points::row_major(&queries, data.n_dims).unwrap();
        let domain = Moments::new(data.points(), &[]).unwrap().domain(&params(value)).unwrap();
        let fit = ClassificationForest::params().n_classes(5).seed(5).n_trees(6).lifetime(lifetime(value));
        let whole = fit.fit(data.points(), &data.labels).unwrap();
        for chunks in chunkings(n_rows as usize) {
            let summary = merged(&chunks, |range| {
                let labels = &data.labels[range.clone()];
                Summary::of_classification(&domain, data.points().rows(range), labels, 5).unwrap()
            });
            let model = summary.finish_classification().unwrap();
            assert_eq!((model.gamma(), model.n_rows()), (whole.gamma(), n_rows as usize));
            for at in [value, value / 3.0] {
                let (ours, theirs) = (model.at(lifetime(at)).unwrap(), whole.at(lifetime(at)).unwrap());
                let probabilities = |model: &ClassificationForest| model.predict_proba(queries).unwrap();
                assert_eq!(bits(&probabilities(&ours)), bits(&probabilities(&theirs)), "{n_rows} rows at {at}");
                assert_eq!(ours.apply(queries).unwrap(), theirs.apply(queries).unwrap());
                for (a, b) in ours.relevance().iter().zip(theirs.relevance()) {
                    assert!((a - b).abs() < 1e-12, "sums in another order");
                }
            }
        }
    }
}

#[test]
fn densities_in_parts_are_one_fit() {
    for (n_rows, n_dims, value) in [(2, 1, 4.0), (600, 2, 6.0), (200, 4, 3.0)] {
        let data = Data::new(n_rows, n_dims);
        let queries = data.queries();
        let queries = Points::row_major(&queries, data.n_dims).unwrap();
        let moments = Moments::new(data.points(), &[]).unwrap();
        let placed = params(value).bounds(moments.bounds(0.1).unwrap());
        let domain = moments.domain(&placed).unwrap();
        let whole = DensityForest::params().seed(5).n_trees(6).lifetime(lifetime(value)).fit(data.points()).unwrap();
        for chunks in chunkings(n_rows as usize) {
            let summary = merged(&chunks, |range| Summary::of_density(&domain, data.points().rows(range)).unwrap());
            let model = summary.finish_density().unwrap();
            assert_eq!((model.gamma(), model.n_rows()), (whole.gamma(), n_rows as usize));
            for at in [value, value / 3.0] {
                let logs = |model: &DensityForest| model.at(lifetime(at)).unwrap().log_density(queries).unwrap();
                assert_eq!(bits(&logs(&model)), bits(&logs(&whole)));
            }
            assert_eq!(bits(&model.sample(20, 3)), bits(&whole.sample(20, 3)));
            assert!(model.leave_one_out_score().is_nan());
        }
    }
}

#[test]
fn a_chosen_lifetime_does_not_depend_on_the_parts() {
    let data = Data::new(1500, 2);
    let params = ForestParams::default().n_trees(6).seed(5);
    let domain = Moments::new(data.points(), &data.y).unwrap().domain(&params).unwrap();
    let summary = |chunks: &[std::ops::Range<usize>]| {
        merged(chunks, |range| {
            Summary::of_regression(&domain, data.points().rows(range.clone()), &data.y[range]).unwrap()
        })
    };
    let models: Vec<RegressionForest> =
        chunkings(1500).iter().map(|chunks| summary(chunks).finish_regression().unwrap()).collect();
    let chosen = models[0].lifetime();
    assert!(chosen > Lifetime::ZERO && chosen <= domain.lifetime());
    for model in &models {
        assert_eq!(model.lifetime(), chosen);
        assert_eq!(bits(&model.predict(data.points()).unwrap()), bits(&models[0].predict(data.points()).unwrap()));
    }
    // The model of all rows at that lifetime, whatever was held out.
    let fixed = domain.to_json().unwrap().replace("\"chooses_lifetime\":true", "\"chooses_lifetime\":false");
    let fixed = TrainingDomain::from_json(&fixed).unwrap();
    let whole = Summary::of_regression(&fixed, data.points(), &data.y).unwrap().finish_regression().unwrap();
    let at = whole.at(chosen).unwrap();
    assert_eq!(bits(&at.predict(data.points()).unwrap()), bits(&models[0].predict(data.points()).unwrap()));
    let labels = Summary::of_classification(&domain, data.points(), &data.labels, 5).unwrap();
    assert!(labels.finish_classification().unwrap().lifetime() <= domain.lifetime());
}

#[test]
fn threads_change_nothing() {
    let data = Data::new(600, 3);
    let domain = Moments::new(data.points(), &data.y).unwrap().domain(&params(5.0)).unwrap();
    let on = |n_threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| {
            let summary = Summary::of_regression(&domain, data.points(), &data.y).unwrap();
            let predicted = summary.finish_regression().unwrap().predict(data.points()).unwrap();
            (summary.to_bytes().unwrap(), bits(&predicted))
        })
    };
    assert_eq!(on(1), on(3));
    assert_eq!(on(1), on(9));
}

#[test]
fn shards_are_joined_to_all_trees() {
    let data = Data::new(300, 2);
    let domain = Moments::new(data.points(), &data.y).unwrap().domain(&params(5.0)).unwrap();
    let of = |domain: &TrainingDomain| Summary::of_regression(domain, data.points(), &data.y).unwrap();
    let whole = of(&domain);
    let mut joined = of(&domain.clone().shard(0..1));
    assert!(matches!(joined.finish_regression(), Err(Error::Incompatible { .. })));
    assert!(joined.join(&of(&domain.clone().shard(2..6))).is_err(), "a tree is missing");
    joined.join(&of(&domain.clone().shard(1..4))).unwrap();
    joined.join(&of(&domain.clone().shard(4..6))).unwrap();
    assert_eq!(joined, whole);
    let other = Summary::of_regression(&domain.clone().shard(1..6), data.points().rows(0..9), &data.y[..9]).unwrap();
    assert!(of(&domain.clone().shard(0..1)).join(&other).is_err(), "other rows");
    assert!(domain.clone().shard(3..3).to_json().is_ok_and(|json| TrainingDomain::from_json(&json).is_err()));
}

#[test]
fn what_needs_rows_is_refused() {
    let data = Data::new(200, 2);
    let domain = Moments::new(data.points(), &data.y).unwrap().domain(&params(5.0)).unwrap();
    let summary = Summary::of_regression(&domain, data.points(), &data.y).unwrap();
    let mut model = summary.finish_regression().unwrap();
    let whole = RegressionParams { forest: params(5.0), ..RegressionParams::default() };
    let whole = whole.fit(data.points(), &data.y).unwrap();
    let refused = |result: Result<(), Error>| assert!(matches!(result, Err(Error::WithoutRows { .. })), "{result:?}");
    refused(model.learn(data.points(), &data.y));
    refused(model.forget(data.points(), &data.y));
    refused(model.merge(&whole.clone()));
    refused(whole.clone().merge(&model));
    refused(model.raise_lifetime(lifetime(9.0)));
    refused(model.equivalent_kernel(data.points()).map(|_| ()));
    refused(model.degrees_of_freedom().map(|_| ()));
    refused(model.path(&[], &mut mondrian::Progress::none()).map(|_| ()));
    let far = Points::row_major(&[99.0, 99.0], 2).unwrap();
    refused(model.path(&[(far, &[1.0])], &mut mondrian::Progress::none()).map(|_| ()));
    // A path over rows inside the box is that of the whole forest.
    let of = |model: &RegressionForest| model.path(&[(data.points(), &data.y[..])], &mut mondrian::Progress::none());
    let (ours, theirs) = (of(&model).unwrap(), of(&whole).unwrap());
    assert_eq!(ours.best_lifetime(), theirs.best_lifetime());
    for (lifetime, value) in ours.lifetimes().iter().zip(&ours.validation()[0]) {
        let at = theirs.index_at(Lifetime::new(*lifetime).unwrap());
        assert!((theirs.validation()[0][at] - value).abs() < 1e-9);
    }
    assert!(ours.train().iter().all(|error| error.is_nan()));
    // The same of classes and densities.
    let labelled = Summary::of_classification(&domain, data.points(), &data.labels, 5).unwrap();
    let mut model = labelled.finish_classification().unwrap();
    refused(model.learn(data.points(), &data.labels));
    refused(model.forget(data.points(), &data.labels));
    refused(model.raise_lifetime(lifetime(9.0)));
    let mut density = Summary::of_density(&domain, data.points()).unwrap().finish_density().unwrap();
    refused(density.learn(data.points()));
    refused(density.forget(data.points()));
    refused(density.set_lifetime(lifetime(9.0)));
    refused(density.select_lifetime().map(|_| ()));
    let path = density.path(&[data.points()], &mut mondrian::Progress::none()).unwrap();
    assert!(path.train().iter().all(|loss| loss.is_nan()) && path.validation()[0].iter().all(|loss| loss.is_finite()));
}

#[test]
fn finished_forests_have_files() {
    let data = Data::new(300, 2);
    let domain = Moments::new(data.points(), &data.y).unwrap().domain(&params(5.0)).unwrap();
    let model = Summary::of_regression(&domain, data.points(), &data.y).unwrap().finish_regression().unwrap();
    let view = model.at(lifetime(2.0)).unwrap();
    let again = RegressionForest::from_bytes(&view.to_bytes().unwrap()).unwrap();
    assert_eq!(again.lifetime(), lifetime(2.0));
    assert_eq!(bits(&again.predict(data.points()).unwrap()), bits(&view.predict(data.points()).unwrap()));
    assert_eq!(again.at(lifetime(5.0)).unwrap().predict(data.points()), model.predict(data.points()));
    let model = Summary::of_classification(&domain, data.points(), &data.labels, 5).unwrap();
    let model = model.finish_classification().unwrap();
    let again = ClassificationForest::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(again.predict_proba(data.points()), model.predict_proba(data.points()));
    let model = Summary::of_density(&domain, data.points()).unwrap().finish_density().unwrap();
    let again = DensityForest::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(again.log_density(data.points()), model.log_density(data.points()));
    let moments = Moments::new(data.points(), &data.y).unwrap();
    assert_eq!(Moments::from_bytes(&moments.to_bytes().unwrap()).unwrap(), moments);
}

#[test]
fn wrong_rows_and_other_domains_are_refused() {
    let data = Data::new(100, 2);
    let moments = Moments::new(data.points().rows(0..50), &data.y[..50]).unwrap();
    let domain = moments.domain(&params(5.0)).unwrap();
    let far = Points::row_major(&[0.5, 99.0], 2).unwrap();
    let refused = Summary::of_regression(&domain, far, &[0.0]).unwrap_err();
    assert!(matches!(refused, Error::OutsideBox { row: 0, column: 1, .. }), "{refused}");
    let inside = data.points().rows(0..1);
    let refused = Summary::of_regression(&domain, inside, &[1e9]).unwrap_err();
    assert!(matches!(refused, Error::InvalidParameter { name: "a target", .. }));
    assert!(matches!(Summary::of_regression(&domain, inside, &[f64::NAN]), Err(Error::NotFinite { .. })));
    assert!(matches!(Summary::of_regression(&domain, inside, &[]), Err(Error::LengthMismatch { .. })));
    assert!(matches!(Summary::of_classification(&domain, inside, &[7], 3), Err(Error::InvalidParameter { .. })));
    let mut summary = Summary::of_regression(&domain, inside, &[1.0]).unwrap();
    let before = summary.clone();
    let other = moments.domain(&params(6.0)).unwrap();
    assert!(summary.merge(&Summary::of_regression(&other, inside, &[1.0]).unwrap()).is_err());
    assert!(summary.merge(&Summary::of_density(&domain, inside).unwrap()).is_err());
    let given = domain.clone().prior(Prior { noise: Some(2.0), ..Prior::default() });
    assert!(summary.merge(&Summary::of_regression(&given, inside, &[1.0]).unwrap()).is_err());
    assert_eq!(summary, before);
    let none = Summary::of_regression(&domain, data.points().rows(0..0), &[]).unwrap();
    assert_eq!(none.finish_regression().unwrap_err(), Error::NotFitted);
    summary.merge(&none).unwrap();
    assert_eq!(summary, before);
}

/// The archive with the numbers of each array changed in turn: every checksum is right, the numbers are not.
#[test]
fn hostile_bytes_are_an_error_or_a_sound_forest() {
    let data = Data::new(60, 2);
    let moments = Moments::new(data.points(), &data.y).unwrap();
    let domain = moments.domain(&params(5.0)).unwrap();
    let choosing = moments.domain(&ForestParams::default().n_trees(2)).unwrap();
    let sound = [
        Summary::of_regression(&domain, data.points(), &data.y).unwrap(),
        Summary::of_classification(&choosing, data.points(), &data.labels, 5).unwrap(),
        Summary::of_density(&domain, data.points()).unwrap(),
    ];
    let (mut n_refused, mut n_read) = (0, 0);
    for summary in &sound {
        let archive = summary.to_archive().unwrap();
        for hit in 0..200_u64 {
            let names: Vec<&String> = archive.arrays().keys().collect();
            let name = names[(uniform(hit) * names.len() as f64) as usize];
            let mut hostile = Archive::new(archive.kind());
            archive.metadata().iter().for_each(|(key, value)| hostile.set_metadata(key, value).unwrap());
            for (other, array) in archive.arrays() {
                let change = other == name;
                let at = (uniform(1000 + hit) * array.len() as f64) as usize;
                let noise = NodeKey::root(3, hit).to_bits() as u64;
                macro_rules! changed {
                    ($t:ty, $value:expr) => {
                        if let Some(numbers) = array.slice::<$t>() {
                            let mut numbers = numbers.to_vec();
                            match hit % 3 {
                                _ if !change => {}
                                0 if !numbers.is_empty() => numbers[at] = $value,
                                1 if !numbers.is_empty() => drop(numbers.pop()),
                                _ => numbers.push($value),
                            }
                            hostile.insert_vec(other, numbers).unwrap();
                        }
                    };
                }
                changed!(u8, noise as u8);
                changed!(u32, noise as u32);
                changed!(u64, noise);
                changed!(f64, f64::from_bits(noise));
            }
            match Summary::from_bytes(&hostile.to_bytes().unwrap()) {
                Err(_) => n_refused += 1,
                Ok(read) => {
                    n_read += 1;
                    let mut sum = summary.clone();
                    drop(sum.merge(&read));
                    drop(read.finish_regression().map(|model| model.predict(data.points())));
                    drop(read.finish_classification().map(|model| model.predict_proba(data.points())));
                    drop(read.finish_density().map(|model| model.log_density(data.points())));
                }
            }
        }
    }
    assert!(n_refused > 300 && n_read > 5, "{n_refused} {n_read}");
    let bytes = sound[0].to_bytes().unwrap();
    assert!((0..bytes.len()).step_by(97).all(|end| Summary::from_bytes(&bytes[..end]).is_err()));
}
