//! Streams without a box and with everything automatic: whatever was learned, asked, forgotten and merged, and in whatever order, the
//! model is the one that a batch of the same rows on the same box gives, bit for bit.

use mondrian::Saved;
use mondrian::process::{Bounds, NodeKey};
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

const WARM_UP: usize = 64;

/// Learns the given rows one by one from the first on, predicting each before it is learned, and forgets every fifth again. Calls
/// `fixed` with the rows held when box and scale have been fixed. The rows held at the end.
fn warm_stream(n: u64, mut each: impl FnMut(Step, &[f64; D]), mut fixed: impl FnMut(&[[f64; D]])) -> Vec<[f64; D]> {
    let mut held: Vec<[f64; D]> = vec![row(1, 0)];
    for i in 1..n {
        let x = row(1, i);
        each(Step::Ask, &x);
        each(Step::Learn, &x);
        held.push(x);
        if i as usize + 1 == WARM_UP {
            fixed(&held);
        }
        if i % 5 == 0 {
            let x = held.remove((i / 7) as usize % held.len());
            each(Step::Forget, &x);
        }
    }
    held
}

#[test]
fn a_regression_stream_is_the_batch_on_the_box_of_its_warm_up() {
    let params = RegressionParams { forest: forest(), ..RegressionParams::default() };
    let warm = params.clone().warm_up(WARM_UP);
    let y = |rows: &[[f64; D]]| rows.iter().map(target).collect::<Vec<_>>();
    for window in [None, Some(40), Some(100)] {
        let first = row(1, 0);
        let mut model = warm.clone().window(window).fit(points(&first), &[target(&first)]).unwrap();
        let (mut at_fix, mut n_learned) = (Vec::new(), 1);
        let held = warm_stream(
            300,
            |step, x| match step {
                Step::Ask => assert!(model.predict(points(x)).unwrap()[0].is_finite()),
                Step::Learn => {
                    n_learned += 1;
                    model.learn(points(x), &[target(x)]).unwrap();
                    if n_learned == 50 {
                        // A loaded model goes on with its warm-up.
                        model = RegressionForest::from_bytes(&model.to_bytes().unwrap()).unwrap();
                    }
                }
                Step::Forget if window.is_none() => model.forget(points(x), &[target(x)]).unwrap(),
                Step::Forget => {}
            },
            |held| at_fix = held.to_vec(),
        );
        // One batch of the rows that fixed box and scale, then all others at once.
        let (at_fix, held) = match window {
            None => (at_fix, held),
            Some(window) => {
                let all: Vec<_> = (0..300).map(|i| row(1, i)).collect();
                (all[WARM_UP - window.min(WARM_UP)..WARM_UP].to_vec(), all[300 - window..].to_vec())
            }
        };
        let at_once = params.clone().warm_up(1);
        let mut batch = at_once.fit(points(at_fix.as_flattened()), &y(&at_fix)).unwrap();
        batch.forget(points(at_fix.as_flattened()), &y(&at_fix)).unwrap();
        batch.learn(points(held.as_flattened()), &y(&held)).unwrap();
        assert_eq!(model.n_rows(), batch.n_rows());
        let queries: Vec<f64> = (0..60).flat_map(|i| row(9, i)).collect();
        let said = |model: &RegressionForest| {
            let found = model.predict_with_std(points(&queries)).unwrap();
            (format!("{:?}", model.gaussians()), bits(&found.mean), bits(&found.std))
        };
        assert_eq!(said(&model), said(&batch), "window {window:?}");
        assert!(
            params.fit(points(&first), &[0.0]).unwrap().forest().domain().first_box()
                != model.forest().domain().first_box()
        );
    }
}

#[test]
fn a_class_stream_is_the_batch_on_the_box_of_its_warm_up() {
    let label = |x: &[f64; D]| u32::from(target(x) > 0.5) + u32::from(x[0] > 0.8);
    let labels = |rows: &[[f64; D]]| rows.iter().map(label).collect::<Vec<_>>();
    let params = ClassificationParams { forest: forest(), ..ClassificationParams::default() };
    let first = row(1, 0);
    let mut model = params.clone().warm_up(WARM_UP).fit(points(&first), &[label(&first)]).unwrap();
    let (mut at_fix, mut n_learned) = (Vec::new(), 1);
    let held = warm_stream(
        300,
        |step, x| match step {
            Step::Ask => assert!(model.predict_proba(points(x)).unwrap().iter().all(|p| p.is_finite())),
            Step::Learn => {
                n_learned += 1;
                model.learn(points(x), &[label(x)]).unwrap();
                if n_learned == 50 {
                    model = ClassificationForest::from_bytes(&model.to_bytes().unwrap()).unwrap();
                }
            }
            Step::Forget => model.forget(points(x), &[label(x)]).unwrap(),
        },
        |held| at_fix = held.to_vec(),
    );
    let mut batch = params.warm_up(1).n_classes(3).fit(points(at_fix.as_flattened()), &labels(&at_fix)).unwrap();
    batch.forget(points(at_fix.as_flattened()), &labels(&at_fix)).unwrap();
    batch.learn(points(held.as_flattened()), &labels(&held)).unwrap();
    let queries: Vec<f64> = (0..60).flat_map(|i| row(9, i)).collect();
    let said =
        |model: &ClassificationForest| (model.gamma().to_bits(), bits(&model.predict_proba(points(&queries)).unwrap()));
    assert_eq!(said(&model), said(&batch));
}

#[test]
fn a_warm_up_keeps_what_was_given_and_fails_whole() {
    let params = RegressionParams { forest: forest(), ..RegressionParams::default() };
    assert!(params.clone().warm_up(0).fit(points(&row(1, 0)), &[0.0]).is_err());
    // Nothing is left to fix: a box and weights are given.
    let bounds = Bounds::new(&[0.0, 0.0, 0.0], &[1.0, 1e7, 1.0]).unwrap();
    let given = params.clone().bounds(bounds).measure_weights(mondrian::WeightsChoice::Raw);
    let rows: Vec<f64> = (0..100).flat_map(|i| row(1, i)).collect();
    let y: Vec<f64> = rows.chunks_exact(D).map(|x| target(x.try_into().unwrap())).collect();
    let mut model = given.clone().warm_up(WARM_UP).fit(points(&rows[..D]), &y[..1]).unwrap();
    (1..100).for_each(|i| model.learn(points(&rows[i * D..][..D]), &y[i..=i]).unwrap());
    let batch = given.fit(points(&rows), &y).unwrap();
    assert_eq!(bits(&model.predict(points(&rows)).unwrap()), bits(&batch.predict(points(&rows)).unwrap()));
    // A call that fails leaves the warm-up as it was, so that the same rows give the same model.
    let (mut one, mut other) = (params.clone().warm_up(WARM_UP), params.warm_up(WARM_UP));
    (one, other) = (one.n_trees(3), other.n_trees(3));
    let mut one = one.fit(points(&rows[..D]), &y[..1]).unwrap();
    let mut other = other.fit(points(&rows[..D]), &y[..1]).unwrap();
    for i in 1..100 {
        assert!(one.learn(points(&rows[i * D..][..D]), &[f64::NAN]).is_err());
        assert!(one.forget(points(&[1e3, 1e3, 1e3]), &[1.0]).is_err());
        one.learn(points(&rows[i * D..][..D]), &y[i..=i]).unwrap();
    }
    other.learn(points(&rows[D..32 * D]), &y[1..32]).unwrap();
    other.learn(points(&rows[32 * D..64 * D]), &y[32..64]).unwrap();
    other.learn(points(&rows[64 * D..]), &y[64..]).unwrap();
    assert_eq!(bits(&one.predict(points(&rows)).unwrap()), bits(&other.predict(points(&rows)).unwrap()));
}

/// A row of a stream in order of time: its first column grows, its second has hours that come again.
fn timed_row(i: u64) -> [f64; D] {
    let [x, _, z] = row(3, i);
    [i as f64, (i % 97) as f64 + x, z]
}

/// Learns 700 rows in order of time with a warm-up of 16 rows, asking in between, and forgets some again. Calls `boxed` after each
/// row with how many are held. The rows held at the end.
fn timed_stream(mut each: impl FnMut(Step, &[f64; D]), mut boxed: impl FnMut(usize)) -> Vec<[f64; D]> {
    let mut held = vec![timed_row(0)];
    for i in 1..700 {
        let x = timed_row(i);
        each(Step::Ask, &x);
        each(Step::Learn, &x);
        held.push(x);
        boxed(held.len());
        if i % 9 == 0 {
            let x = held.remove((i / 2) as usize % held.len());
            each(Step::Forget, &x);
        }
    }
    held
}

/// The first box as it was asked for: a domain's starts just below its lower corner.
fn as_asked(first_box: &Bounds) -> Bounds {
    let lower: Vec<f64> = first_box.lower().iter().map(|x| x.next_up()).collect();
    Bounds::new(&lower, first_box.upper()).unwrap()
}

/// The numbers of rows at which the box was another one than before.
fn changes(boxes: &[(usize, Bounds)]) -> Vec<usize> {
    boxes.windows(2).filter(|pair| pair[0].1 != pair[1].1).map(|pair| pair[1].0).collect()
}

#[test]
fn a_stream_in_order_of_time_outgrows_its_box_few_times_and_is_a_batch_on_the_last() {
    let params = RegressionParams { forest: forest(), ..RegressionParams::default() };
    let params = params.measure_weights(mondrian::WeightsChoice::Raw);
    let label = |x: &[f64; D]| (x[1] - x[2]).sin();
    let y = |rows: &[[f64; D]]| rows.iter().map(label).collect::<Vec<_>>();
    let first = timed_row(0);
    let mut unsaved = params.clone().warm_up(16).fit(points(&first), &[label(&first)]).unwrap();
    let (model, mut boxes) = (std::cell::RefCell::new(unsaved.clone()), Vec::new());
    let mut n_learned = 1;
    let held = timed_stream(
        |step, x| {
            let mut model = model.borrow_mut();
            match step {
                Step::Ask => assert!(model.predict(points(x)).unwrap()[0].is_finite()),
                Step::Learn => {
                    n_learned += 1;
                    model.learn(points(x), &[label(x)]).unwrap();
                    unsaved.learn(points(x), &[label(x)]).unwrap();
                    if n_learned % 30 == 0 {
                        *model = RegressionForest::from_bytes(&model.to_bytes().unwrap()).unwrap();
                    }
                }
                Step::Forget => {
                    model.forget(points(x), &[label(x)]).unwrap();
                    unsaved.forget(points(x), &[label(x)]).unwrap();
                }
            }
        },
        |n| boxes.push((n, model.borrow().forest().domain().first_box().clone())),
    );
    let model = model.into_inner();
    let changed: Vec<usize> = changes(&boxes).into_iter().filter(|n| *n > 16).collect();
    // A column that grows leaves a box once while rows grow to 2.5 times as many: 600 is 16 of the warm-up times 2.5 four times.
    assert!((2..=4).contains(&changed.len()), "{changed:?}");
    assert!(changed.windows(2).all(|pair| pair[1] >= 2 * pair[0]), "{changed:?}");
    // A model that was saved and loaded continues as one that was not, and order does not matter.
    let domain = model.forest().domain();
    assert_eq!((domain.first_box(), domain.rung()), (unsaved.forest().domain().first_box(), 0));
    let on_box = params.bounds(as_asked(domain.first_box()));
    let mut batch = on_box.fit(points(held[0].as_slice()), &[label(&held[0])]).unwrap();
    let mut rest = held[1..].to_vec();
    rest.reverse();
    batch.learn(points(rest.as_flattened()), &y(&rest)).unwrap();
    let queries: Vec<f64> = (0..60).flat_map(|i| timed_row(7 * i)).collect();
    let said = |model: &RegressionForest| {
        let found = model.predict_with_std(points(&queries)).unwrap();
        (format!("{:?}", model.gaussians()), bits(&found.mean), bits(&found.std))
    };
    assert_eq!(said(&model), said(&batch));
    assert_eq!(said(&model), said(&unsaved));
}

/// During a warm-up of 64 rows that has fitted 16: a row outside the box climbs the ladder as the 19th, and refits all rows as the 20th.
#[test]
fn a_row_outside_during_the_warm_up_has_the_box_put_around_all_rows() {
    let near = |i: u64| [i as f64 / 32.0, 1.0 - i as f64 / 32.0, (i % 5) as f64];
    let far = |i: u64| near(i).map(|x| 1e3 * x);
    let rows = |ids: std::ops::Range<u64>| ids.map(near).collect::<Vec<_>>();
    let params = RegressionParams { forest: forest(), ..RegressionParams::default() };
    let y = |rows: &[[f64; D]]| rows.iter().map(|x| x[0]).collect::<Vec<_>>();
    let first = rows(0..16);
    let model = params.clone().warm_up(64).fit(points(first.as_flattened()), &y(&first)).unwrap();
    // 19 rows are not a quarter more than 16: the ladder is climbed. With the 20th the box is put around all.
    let mut early = model.clone();
    for i in 16..18 {
        early.learn(points(&near(i)), &[0.0]).unwrap();
    }
    early.learn(points(&far(18)), &[0.0]).unwrap();
    assert!(
        early.forest().domain().rung() > 0
            && early.forest().domain().first_box() == model.forest().domain().first_box()
    );
    early.learn(points(&near(19)), &[0.0]).unwrap();
    assert_eq!(early.forest().domain().rung(), 0);
    // With a quarter more no rung is climbed, and the model is the batch of all rows.
    let mut late = model.clone();
    let more = rows(16..20);
    late.learn(points(more[..3].as_flattened()), &y(&more[..3])).unwrap();
    assert_eq!(late.forest().domain().first_box(), model.forest().domain().first_box());
    late.learn(points(&far(19)), &[7.0]).unwrap();
    assert_eq!(late.forest().domain().rung(), 0);
    let all: Vec<_> = rows(0..19).into_iter().chain([far(19)]).collect();
    let targets: Vec<f64> = y(&all[..19]).into_iter().chain([7.0]).collect();
    let batch = params.warm_up(64).fit(points(all.as_flattened()), &targets).unwrap();
    assert_eq!(
        bits(&late.predict(points(all.as_flattened())).unwrap()),
        bits(&batch.predict(points(all.as_flattened())).unwrap())
    );
    // Classes do the same; rows that are wrong are refused all the same.
    let labels = |n: usize| (0..n as u32).map(|i| i % 2).collect::<Vec<_>>();
    let params = ClassificationParams { forest: forest(), n_classes: Some(2), ..ClassificationParams::default() };
    let mut model = params.warm_up(64).fit(points(first.as_flattened()), &labels(16)).unwrap();
    model.learn(points(more.as_flattened()), &labels(4)).unwrap();
    assert!(model.learn(points(&far(20)), &[1, 1]).is_err());
    assert!(model.learn(Points::row_major(&[1e6; 2], 2).unwrap(), &[1]).is_err());
    assert_eq!(model.n_rows(), 20);
    model.learn(points(&far(20)), &[1]).unwrap();
    assert_eq!((model.n_rows(), model.forest().domain().rung()), (21, 0));
}

#[test]
fn a_class_stream_in_order_of_time_is_a_batch_on_its_last_box() {
    let params = ClassificationParams { forest: forest(), ..ClassificationParams::default() };
    let params = params.measure_weights(mondrian::WeightsChoice::Raw);
    let label = |x: &[f64; D]| u32::from(x[1].sin() > 0.0) + u32::from(x[2] > 5e-4);
    let labels = |rows: &[[f64; D]]| rows.iter().map(label).collect::<Vec<_>>();
    let first = timed_row(0);
    let mut model = params.clone().n_classes(3).warm_up(16).fit(points(&first), &[label(&first)]).unwrap();
    let held = timed_stream(
        |step, x| match step {
            Step::Ask => assert!(model.predict_proba(points(x)).unwrap().iter().all(|p| p.is_finite())),
            Step::Learn => model.learn(points(x), &[label(x)]).unwrap(),
            Step::Forget => model.forget(points(x), &[label(x)]).unwrap(),
        },
        |_| {},
    );
    let on_box = params.bounds(as_asked(model.forest().domain().first_box()));
    let mut batch = on_box.n_classes(3).fit(points(held[0].as_slice()), &[label(&held[0])]).unwrap();
    batch.learn(points(held[1..].as_flattened()), &labels(&held[1..])).unwrap();
    let queries: Vec<f64> = (0..60).flat_map(|i| timed_row(7 * i)).collect();
    let said =
        |model: &ClassificationForest| (model.gamma().to_bits(), bits(&model.predict_proba(points(&queries)).unwrap()));
    assert_eq!(said(&model), said(&batch));
}

#[test]
fn a_row_too_far_for_the_ladder_waits_for_a_quarter_more_rows() {
    let params = RegressionParams { forest: forest(), ..RegressionParams::default() };
    let rows: Vec<f64> = (0..64).flat_map(timed_row).collect();
    let y: Vec<f64> = (0..64).map(|i| f64::from(i % 7)).collect();
    let mut model = params.warm_up(16).fit(points(&rows[..40 * D]), &y[..40]).unwrap();
    let far = [1e150, 0.0, 0.0];
    let before = bits(&model.predict(points(&rows)).unwrap());
    let refused = model.learn(points(&far), &[1.0]);
    assert!(refused.is_err_and(|error| error.to_string().contains("widenings of the root box")));
    assert_eq!(before, bits(&model.predict(points(&rows)).unwrap()));
    model.learn(points(&rows[40 * D..50 * D]), &y[40..50]).unwrap();
    model.learn(points(&far), &[1.0]).unwrap();
    assert_eq!((model.n_rows(), model.forest().domain().rung()), (51, 0));
    assert!(model.predict(points(&rows)).unwrap().iter().all(|y| y.is_finite()));
}

#[test]
fn a_merged_or_given_box_stays() {
    let params = RegressionParams { forest: forest(), ..RegressionParams::default() };
    let rows: Vec<f64> = (0..200).flat_map(timed_row).collect();
    let y: Vec<f64> = (0..200).map(|i| f64::from(i % 7)).collect();
    let mut model = params.clone().warm_up(16).fit(points(&rows[..20 * D]), &y[..20]).unwrap();
    let other = model.clone();
    model.merge(&other).unwrap();
    let bounds = model.forest().domain().first_box().clone();
    model.learn(points(&rows[20 * D..]), &y[20..]).unwrap();
    assert!(*model.forest().domain().first_box() == bounds && model.forest().domain().rung() > 0);
}
