//! The tuned kernel as a whole: what is promised to the bit, what leaving out means, and input that no table should hold.

use mondrian::internals::laplace::KernelTuning;
use mondrian::internals::linalg::Threads;
use mondrian::{
    Cells, Error, FitOptions, KernelMetric, LaplaceClassifier, LaplaceRegressor, LaplaceRegressorParams, Progress,
    Saved, TargetMap,
};

/// Rows with a smooth target of the first two inputs; the third is noise.
fn table(n: usize) -> (Vec<f64>, Vec<f64>) {
    let draw = |i: usize, k: u32| mondrian::process::NodeKey::root(11, i as u64).draw(k).uniform();
    let x: Vec<f64> = (0..n).flat_map(|i| [draw(i, 0), draw(i, 1), draw(i, 2)]).collect();
    let y = x.chunks(3).enumerate().map(|(i, r)| (5.0 * r[0]).sin() + r[1] * r[1] + 2.0 + 0.05 * draw(i, 3)).collect();
    (x, y)
}

fn quick(threads: usize) -> KernelTuning {
    KernelTuning { steps: 12, rows: 60, deciding_rows: 60, threads: Threads::up_to(threads), ..KernelTuning::default() }
}

fn params(threads: usize) -> LaplaceRegressorParams {
    LaplaceRegressor::params().tuning(quick(threads))
}

fn cells(x: &[f64]) -> Cells<'_> {
    Cells::row_major(x, 3).unwrap()
}

#[test]
fn threads_and_the_order_of_rows_do_not_change_bits() {
    let (x, y) = table(150);
    let one = params(1).fit(cells(&x), &y).unwrap();
    let two = params(2).fit(cells(&x), &y).unwrap();
    let back: Vec<f64> = x.chunks(3).rev().flatten().copied().collect();
    let y_back: Vec<f64> = y.iter().rev().copied().collect();
    let reversed = params(1).fit(cells(&back), &y_back).unwrap();
    let (queries, _) = table(40);
    let expected = one.predict_with_std(cells(&queries)).unwrap();
    assert_eq!(two.predict_with_std(cells(&queries)).unwrap(), expected);
    assert_eq!(reversed.predict_with_std(cells(&queries)).unwrap(), expected);
    assert_eq!(one.importances(), reversed.importances());
    assert_eq!(one.trajectory(), two.trajectory());
    // One query at a time, too.
    let single: Vec<f64> = queries.chunks(3).flat_map(|q| one.predict(cells(q)).unwrap()).collect();
    assert_eq!(single, expected.mean);
}

#[test]
fn leaving_out_is_refitting() {
    let (x, y) = table(40);
    let lifetimes = Some(vec![2.0, 1.0, 0.3]);
    let tuning = KernelTuning { lifetimes, alpha: Some(0.05), ..quick(1) };
    let params = LaplaceRegressor::params().target_map(TargetMap::Identity);
    let weights: Vec<f64> = (0..40).map(|i| 1.0 + f64::from(i % 3)).collect();
    let whole = params.clone().tuning(tuning.clone()).fit_with(cells(&x), &y, FitOptions::weighted(&weights)).unwrap();
    let (mut square, mut total) = (0.0, 0.0);
    let mean = weights.iter().sum::<f64>() / 40.0;
    for left_out in 0..40 {
        let keep = |i: &usize| *i != left_out;
        let x_rest: Vec<f64> = (0..40).filter(keep).flat_map(|i| x[3 * i..3 * i + 3].to_vec()).collect();
        let y_rest: Vec<f64> = (0..40).filter(keep).map(|i| y[i]).collect();
        let w_rest: Vec<f64> = (0..40).filter(keep).map(|i| weights[i]).collect();
        // Weights are relative to their mean, so α is brought back to what it was.
        let rest_mean = w_rest.iter().sum::<f64>() / 39.0;
        let tuning = KernelTuning { alpha: Some(0.05 * mean / rest_mean), ..tuning.clone() };
        let params = params.clone().tuning(tuning);
        let rest = params.fit_with(cells(&x_rest), &y_rest, FitOptions::weighted(&w_rest)).unwrap();
        let off = rest.predict(cells(&x[3 * left_out..3 * left_out + 3])).unwrap()[0] - y[left_out];
        square += weights[left_out] * off * off;
        total += weights[left_out];
    }
    let refitted = (square / total).sqrt();
    let closed = whole.leave_one_out()[0].rmse;
    assert!((refitted - closed).abs() < 1e-9 * closed, "{refitted} {closed}");
}

#[test]
fn a_weight_is_a_row_given_as_often() {
    let (x, y) = table(30);
    let weights: Vec<f64> = (0..30).map(|i| f64::from(i % 3)).collect();
    let repeat = |i: usize| vec![i; weights[i] as usize];
    let rows: Vec<usize> = (0..30).flat_map(repeat).collect();
    let x_twice: Vec<f64> = rows.iter().flat_map(|&i| x[3 * i..3 * i + 3].to_vec()).collect();
    let y_twice: Vec<f64> = rows.iter().map(|&i| y[i]).collect();
    let weighted = params(1).fit_with(cells(&x), &y, FitOptions::weighted(&weights)).unwrap();
    let repeated = params(1).fit(cells(&x_twice), &y_twice).unwrap();
    assert_eq!(weighted.predict(cells(&x)).unwrap(), repeated.predict(cells(&x)).unwrap());
}

#[test]
fn predictions_are_the_equivalent_kernel_and_survive_a_file() {
    let (x, y) = table(50);
    let mut holes = x.clone();
    holes[4] = f64::NAN;
    holes[31] = f64::NAN;
    let params = params(1).target_map(TargetMap::Identity);
    let model = params.clone().categorical([false, false, true]).fit(cells(&holes), &y).unwrap();
    let smoothing = model.equivalent_kernel(cells(&x[..30]), Threads::ONE).unwrap();
    let predicted = model.predict(cells(&x[..30])).unwrap();
    for (row, predicted) in smoothing.chunks(50).zip(&predicted) {
        let sum: f64 = row.iter().zip(&y).map(|(s, y)| s * y).sum();
        assert!((sum - predicted).abs() < 1e-9, "{sum} {predicted}");
        assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }
    let bytes = model.to_bytes().unwrap();
    let back = LaplaceRegressor::from_bytes(&bytes).unwrap();
    assert_eq!(back.predict_with_std(cells(&x)).unwrap(), model.predict_with_std(cells(&x)).unwrap());
    assert_eq!(back.predict_interval(cells(&x), 0.8).unwrap(), model.predict_interval(cells(&x), 0.8).unwrap());
    assert_eq!(back.to_bytes().unwrap(), bytes);
}

#[test]
fn several_targets_are_fitted_together() {
    let (x, y) = table(60);
    let both: Vec<f64> = y.iter().flat_map(|y| [*y, -3.0 * y + 1.0]).collect();
    let model = params(1).fit(cells(&x), &both).unwrap();
    for row in model.predict(cells(&x)).unwrap().chunks(2) {
        assert!((row[1] - (1.0 - 3.0 * row[0])).abs() < 1e-6);
    }
}

#[test]
fn probabilities_are_distributions_for_any_input() {
    let (x, y) = table(90);
    let classes: Vec<u32> = y.iter().map(|y| (*y - 1.0).clamp(0.0, 2.9) as u32).collect();
    let model = LaplaceClassifier::params().tuning(quick(1)).n_classes(4).fit(cells(&x), &classes).unwrap();
    let far = [1e300, -1e300, 0.0, f64::NAN, f64::NAN, f64::NAN, 0.5, 0.5, 0.5];
    for row in model.predict_proba(cells(&far)).unwrap().chunks(4) {
        assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12 && row.iter().all(|p| p.is_finite() && *p > 0.0));
    }
    assert!(model.leave_one_out().log_loss < 0.8 * model.leave_one_out().log_loss_of_shares);
    let back = LaplaceClassifier::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(back.predict_proba(cells(&x)).unwrap(), model.predict_proba(cells(&x)).unwrap());
    let two = LaplaceClassifier::params().tuning(quick(2)).n_classes(4).fit(cells(&x), &classes).unwrap();
    assert_eq!(two.predict_proba(cells(&x)).unwrap(), model.predict_proba(cells(&x)).unwrap());
}

#[test]
fn input_that_no_table_should_hold_is_answered_or_refused() {
    let (x, y) = table(25);
    // One class, and a class with one row.
    let one = LaplaceClassifier::params().tuning(quick(1)).n_classes(1).fit(cells(&x), &[0; 25]).unwrap();
    assert!(one.predict_proba(cells(&x)).unwrap().iter().all(|p| *p == 1.0));
    let mut classes = vec![0; 25];
    classes[7] = 1;
    let rare = LaplaceClassifier::params().tuning(quick(1)).n_classes(2).fit(cells(&x), &classes).unwrap();
    assert!(rare.predict_proba(cells(&x)).unwrap().iter().all(|p| p.is_finite()));
    // A label that is no number of a class, but of something else.
    let huge = LaplaceClassifier::params().tuning(quick(1)).fit(cells(&x), &[u32::MAX; 25]);
    assert!(matches!(huge, Err(Error::TooLarge { .. })));
    // A constant target, constant inputs, a column without numbers.
    let constant = params(1).fit(cells(&x), &[7.0; 25]).unwrap();
    assert!(constant.predict(cells(&x)).unwrap().iter().all(|p| (p - 7.0).abs() < 1e-9));
    let same = vec![1.0; 75];
    let flat = params(1).fit(cells(&same), &y).unwrap();
    let mean = y.iter().sum::<f64>() / 25.0;
    assert!((flat.predict(cells(&same)).unwrap()[0] - mean).abs() < 0.1);
    let mut missing = x.clone();
    missing.chunks_mut(3).for_each(|row| row[1] = f64::NAN);
    let holes = params(1).fit(cells(&missing), &y).unwrap();
    assert!(holes.predict(cells(&x)).unwrap().iter().all(|p| p.is_finite()));
    // As many categories as rows, one row, more columns than rows.
    let codes: Vec<f64> = (0..25).map(f64::from).collect();
    let many = params(1).categorical([true]).fit(Cells::row_major(&codes, 1).unwrap(), &y).unwrap();
    assert!(many.predict(Cells::row_major(&[99.0], 1).unwrap()).unwrap()[0].is_finite());
    let single = params(1).fit(cells(&x[..3]), &y[..1]).unwrap();
    assert!((single.predict(cells(&x[..3])).unwrap()[0] - y[0]).abs() < 1e-9);
    let wide = Cells::row_major(&x, 25).unwrap();
    let wide = params(1).fit(wide, &y[..3]).unwrap();
    assert!(wide.predict(Cells::row_major(&x[..25], 25).unwrap()).unwrap()[0].is_finite());
    // Refused.
    let nan = params(1).fit(cells(&x), &[f64::NAN; 25]);
    assert!(matches!(nan, Err(Error::NotFinite { what: "y", .. })));
    let none = params(1).fit(cells(&[]), &[]);
    assert!(matches!(none, Err(Error::Empty { .. })));
    let negative = params(1).fit_with(cells(&x), &y, FitOptions::weighted(&[-1.0; 25]));
    assert!(matches!(negative, Err(Error::InvalidParameter { name: "sample_weight", .. })));
    let exponent = KernelTuning { exponent: Some(3.0), ..quick(1) };
    let refused = LaplaceClassifier::params().tuning(exponent).n_classes(2).fit(cells(&x), &classes);
    assert!(matches!(refused, Err(Error::InvalidParameter { name: "exponent", .. })));
}

#[test]
fn every_metric_is_fitted_and_a_callback_stops_it() {
    let (x, y) = table(60);
    for metric in [KernelMetric::None, KernelMetric::Diagonal, KernelMetric::Full, KernelMetric::Rank(1)] {
        let tuning = KernelTuning { metric, ..quick(1) };
        let params = LaplaceRegressor::params().tuning(tuning);
        let model = params.fit(cells(&x), &y).unwrap();
        assert!(model.leave_one_out()[0].r2() > 0.8, "{metric:?} {}", model.leave_one_out()[0].r2());
        assert!(model.importances()[0] == 1.0 && model.importances()[2] < 0.05, "{:?}", model.importances());
    }
    let mut steps = 0;
    let mut stop = |_: mondrian::Report<'_>| {
        steps += 1;
        if steps == 5 { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
    };
    let stopped = params(1).fit_with(cells(&x), &y, FitOptions::watched(Progress::new(&mut stop)));
    assert_eq!(stopped.unwrap_err(), Error::Cancelled);
}

/// One pass over the rows says what the single questions say, bit for bit.
#[test]
fn intervals_from_one_pass_are_those_asked_for_one_by_one() {
    let (x, y) = table(80);
    let model = params(1).fit(cells(&x), &y).unwrap();
    let (found, intervals) = model.predict_with_intervals(cells(&x), &[0.5, 0.9]).unwrap();
    assert_eq!(found, model.predict_with_std(cells(&x)).unwrap());
    for (ends, coverage) in intervals.iter().zip([0.5, 0.9]) {
        let (lower, upper) = model.predict_interval(cells(&x), coverage).unwrap();
        assert_eq!(*ends, lower.into_iter().zip(upper).collect::<Vec<_>>());
    }
    assert!(model.predict_with_intervals(cells(&x), &[1.0]).is_err());
}

/// At factor 1 the model is itself; a factor on all lifetimes is the kernel to that power.
#[test]
fn a_factor_on_all_lifetimes_is_a_power_of_the_kernel() {
    let (x, y) = table(70);
    let tuning = KernelTuning { metric: KernelMetric::Full, ..quick(1) };
    let params = LaplaceRegressor::params().tuning(tuning).target_map(TargetMap::Identity);
    let model = params.fit(cells(&x), &y).unwrap();
    let same = model.at_factor(1.0, usize::MAX, Threads::ONE).unwrap();
    let (a, b) = (model.predict(cells(&x)).unwrap(), same.predict(cells(&x)).unwrap());
    assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-9));
    assert!((model.leave_one_out()[0].rmse - same.leave_one_out()[0].rmse).abs() < 1e-9);
    let twice = model.at_factor(2.0, usize::MAX, Threads::ONE).unwrap();
    assert!(twice.lifetimes().iter().zip(model.lifetimes()).all(|(a, b)| (a - 2.0 * b).abs() <= 1e-12 * b));
    assert!(twice.leave_one_out()[0].rmse != same.leave_one_out()[0].rmse);
    assert!(model.at_factor(0.0, 10, Threads::ONE).is_err());
    let classes: Vec<u32> = y.iter().map(|y| u32::from(*y > 2.5)).collect();
    let classifier = LaplaceClassifier::params().tuning(quick(1)).n_classes(2).fit(cells(&x), &classes).unwrap();
    let same = classifier.at_factor(1.0, usize::MAX, Threads::ONE).unwrap();
    assert!((classifier.leave_one_out().log_loss - same.leave_one_out().log_loss).abs() < 1e-4);
}

/// Tuning goes on from a model, or from its file: the trajectory continues and the error does not grow; nothing depends on
/// threads, and a model whose resumption is broken off stays as it was.
#[test]
fn tuning_is_resumed() {
    let (x, y) = table(400);
    let params = |threads: usize, max_seconds: Option<f64>| {
        let tuning = KernelTuning { steps: 30, rows: 120, deciding_rows: 400, max_seconds, ..quick(threads) };
        LaplaceRegressor::params().tuning(tuning).target_map(TargetMap::Identity)
    };
    let resume = |model: &LaplaceRegressor, threads: usize| {
        model.resumed(cells(&x), &y, &params(threads, None), FitOptions::default()).unwrap()
    };
    // No time at all: the start alone. Then further, twice.
    let short = params(1, Some(0.0)).fit(cells(&x), &y).unwrap();
    let longer = resume(&short, 1);
    let longest = resume(&longer, 1);
    let steps = |model: &LaplaceRegressor| model.trajectory().to_vec();
    for (before, after) in [(&short, &longer), (&longer, &longest)] {
        assert!(steps(after).len() > steps(before).len());
        assert_eq!(steps(after)[..steps(before).len()], steps(before));
        assert!(after.leave_one_out()[0].rmse <= before.leave_one_out()[0].rmse * (1.0 + 1e-9));
    }
    assert!(longer.leave_one_out()[0].rmse < 0.99 * short.leave_one_out()[0].rmse);
    let from_file = LaplaceRegressor::from_bytes(&short.to_bytes().unwrap()).unwrap();
    for again in [resume(&short, 2), resume(&from_file, 1)] {
        assert_eq!(again.predict(cells(&x)).unwrap(), longer.predict(cells(&x)).unwrap());
    }
    // Broken off by a callback; no time; rows of another width.
    let before = short.to_bytes().unwrap();
    let mut stop = |_: mondrian::Report<'_>| std::ops::ControlFlow::Break(());
    let watched = FitOptions::watched(Progress::new(&mut stop));
    assert_eq!(short.resumed(cells(&x), &y, &params(1, None), watched).unwrap_err(), Error::Cancelled);
    let none = short.resumed(cells(&x), &y, &params(1, Some(0.0)), FitOptions::default()).unwrap();
    assert_eq!(steps(&none), steps(&short));
    let narrow = Cells::row_major(&x, 2).unwrap();
    assert!(short.resumed(narrow, &vec![1.0; 600], &params(1, None), FitOptions::default()).is_err());
    assert_eq!(short.to_bytes().unwrap(), before);
    // Classes.
    let classes: Vec<u32> = y.iter().map(|y| u32::from(*y > 2.5)).collect();
    let params =
        |max_seconds| LaplaceClassifier::params().tuning(KernelTuning { deciding_rows: 400, max_seconds, ..quick(1) });
    let first = params(Some(0.0)).fit(cells(&x), &classes).unwrap();
    let second = first.resumed(cells(&x), &classes, &params(None), FitOptions::default()).unwrap();
    assert!(second.leave_one_out().log_loss <= first.leave_one_out().log_loss + 1e-6);
    assert!(second.trajectory().len() > first.trajectory().len());
}
