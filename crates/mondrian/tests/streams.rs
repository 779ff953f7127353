//! Streams without a box and with everything automatic: whatever was learned, asked, forgotten and merged, and in whatever order, the
//! model is the one that a batch of the same rows on the same box gives, bit for bit.

use mondrian::process::NodeKey;
use mondrian::{
    ClassificationForest, ClassificationParams, ForestParams, Lifetime, LifetimeChoice, Points, RegressionForest,
    RegressionParams,
};

const D: usize = 3;

/// A row of a stream whose columns have different scales, the second of them constant for a while.
fn row(seed: u64, i: u64) -> [f64; D] {
    let draw = |dim: u64| NodeKey::root(seed, i).fork(dim).draw(0).uniform();
    [draw(0), if i < 20 { 7.0 } else { 7.0 + 1e6 * draw(1) }, 1e-3 * draw(2)]
}

fn target(x: &[f64; D]) -> f64 {
    x[0] + 1e-6 * x[1] * x[0]
}

fn forest() -> ForestParams {
    ForestParams { n_trees: 5, lifetime: LifetimeChoice::Value(Lifetime::INFINITE), ..ForestParams::default() }
}

fn bits(numbers: &[f64]) -> Vec<u64> {
    numbers.iter().map(|x| x.to_bits()).collect()
}

fn points(x: &[f64]) -> Points<'_> {
    Points::row_major(x, D).unwrap()
}

/// The rows that are left of a stream, with what was done: in turns rows are learned, asked about, and some forgotten.
fn stream(n: u64, mut each: impl FnMut(Step, &[f64; D])) -> Vec<[f64; D]> {
    let mut held: Vec<[f64; D]> = vec![row(1, 0)];
    for i in 1..n {
        // Some rows come again.
        let x = row(1, if i % 11 == 0 { i / 2 } else { i });
        each(Step::Ask, &x);
        each(Step::Learn, &x);
        held.push(x);
        if i % 3 == 0 {
            let at = (NodeKey::root(2, i).draw(0).uniform() * held.len() as f64) as usize;
            let x = held.swap_remove(at);
            each(Step::Forget, &x);
        }
    }
    held
}

#[derive(Clone, Copy, PartialEq)]
enum Step {
    Ask,
    Learn,
    Forget,
}

#[test]
fn regression_is_that_of_a_batch_after_any_stream() {
    let params = RegressionParams { forest: forest(), ..RegressionParams::default() };
    let first = row(1, 0);
    let mut model = params.fit(points(&first), &[target(&first)]).unwrap();
    let mut other: Option<RegressionForest> = None;
    let mut asked = 0.0;
    let held = stream(900, |step, x| match step {
        Step::Ask => asked += model.predict(points(x)).unwrap()[0],
        Step::Learn => model.learn(points(x), &[target(x)]).unwrap(),
        Step::Forget => model.forget(points(x), &[target(x)]).unwrap(),
    });
    assert!(asked.is_finite());
    // The same rows at once, in another order, on the same first box; and in two parts that are merged.
    let mut batch = params.fit(points(&first), &[target(&first)]).unwrap();
    let mut sorted = held.clone();
    sorted.sort_by(|a, b| a.partial_cmp(b).unwrap());
    batch.learn(points(sorted.as_flattened()), &sorted.iter().map(target).collect::<Vec<_>>()).unwrap();
    batch.forget(points(&first), &[target(&first)]).unwrap();
    for half in [&held[..held.len() / 2], &held[held.len() / 2..]] {
        let mut part = params.fit(points(&first), &[target(&first)]).unwrap();
        part.learn(points(half.as_flattened()), &half.iter().map(target).collect::<Vec<_>>()).unwrap();
        part.forget(points(&first), &[target(&first)]).unwrap();
        part.gaussians();
        match &mut other {
            None => other = Some(part),
            Some(other) => other.merge(&part).unwrap(),
        }
    }
    let queries: Vec<f64> = (0..60).flat_map(|i| row(9, i)).collect();
    let said = |model: &RegressionForest| {
        let found = model.predict_with_std(points(&queries)).unwrap();
        (format!("{:?}", model.gaussians()), bits(&found.mean), bits(&found.std))
    };
    let expected = said(&batch);
    assert_eq!(said(&model), expected);
    assert_eq!(said(&other.unwrap()), expected);
}

#[test]
fn classification_is_that_of_a_batch_after_any_stream() {
    let label = |x: &[f64; D]| u32::from(target(x) > 0.5) + u32::from(x[0] > 0.8);
    let params = ClassificationParams { forest: forest(), n_classes: Some(3), ..ClassificationParams::default() };
    let first = row(1, 0);
    let mut model = params.fit(points(&first), &[label(&first)]).unwrap();
    let held = stream(700, |step, x| match step {
        Step::Ask => assert!(model.predict_proba(points(x)).unwrap().iter().all(|p| p.is_finite())),
        Step::Learn => model.learn(points(x), &[label(x)]).unwrap(),
        Step::Forget => model.forget(points(x), &[label(x)]).unwrap(),
    });
    let mut batch = params.fit(points(&first), &[label(&first)]).unwrap();
    let mut sorted = held;
    sorted.sort_by(|a, b| a.partial_cmp(b).unwrap());
    batch.learn(points(sorted.as_flattened()), &sorted.iter().map(label).collect::<Vec<_>>()).unwrap();
    batch.forget(points(&first), &[label(&first)]).unwrap();
    let queries: Vec<f64> = (0..60).flat_map(|i| row(9, i)).collect();
    let said =
        |model: &ClassificationForest| (model.gamma().to_bits(), bits(&model.predict_proba(points(&queries)).unwrap()));
    assert_eq!(said(&model), said(&batch));
}

#[test]
fn a_first_row_and_constant_columns_do_not_end_the_ladder() {
    for far in [1.0, 1e3, 1e12, -1e15] {
        let params = RegressionParams { forest: forest(), ..RegressionParams::default() };
        let mut model = params.fit(points(&[0.0, 5.0, -3e4]), &[1.0]).unwrap();
        model.learn(points(&[0.0, 5.0, -3e4 + far, far, 5.0, 0.0]), &[2.0, 3.0]).unwrap();
        assert_eq!(model.n_rows(), 3);
    }
    // A table with a column that is constant but for two far rows, everything automatic.
    let x: Vec<f64> = (0..300).flat_map(|i| [f64::from(i), if i % 149 == 7 { 1e9 } else { 0.0 }]).collect();
    let y: Vec<f64> = (0..300).map(|i| f64::from(i % 50)).collect();
    RegressionForest::params().fit(Points::row_major(&x, 2).unwrap(), &y).unwrap();
}
