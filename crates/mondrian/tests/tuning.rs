//! Tuning of the exact Laplace kernel, through public imports.

use mondrian::FitOptions;
use mondrian::Matrix;
use mondrian::Progress;
use mondrian::internals::linalg::{Cholesky, Threads};
use mondrian::process::NodeKey;
use std::ops::ControlFlow;

use mondrian::internals::laplace::{Criterion, Method, Objective, Tuned, tune};
use mondrian::internals::laplace::{LaplaceKernelRidgeParams, TuningParams};
use mondrian::{Error, Points, Result};
use mondrian::{Lifetime, LifetimesChoice, Prediction};

/// n × d uniform inputs, and a target that uses the first two.
fn sample(n: usize, d: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let x: Vec<f64> = (0..n * d).map(|k| NodeKey::root(seed, k as u64).draw(0).uniform()).collect();
    let target = |i: usize| {
        let noise = NodeKey::root(seed + 1, i as u64).draw(0).normal();
        (6.0 * x[i * d]).sin() + if d > 1 { x[i * d + 1] } else { 0.0 } + 0.1 * noise
    };
    let y = (0..n).map(target).collect();
    (x, y)
}

#[test]
fn leave_one_out_is_what_refitting_without_the_row_gives() -> Result<()> {
    let (n, d) = (25, 2);
    let (x, y) = sample(n, d, 1);
    let logs = [1.0, 0.3, -2.0];
    let objective = Objective::new(Points::row_major(&x, d)?, &y, false, Criterion::LeaveOneOut, Threads::ONE)?;
    let k = |i: usize, j: usize| {
        (-(0..d).map(|c| f64::exp(logs[c]) * (x[i * d + c] - x[j * d + c]).abs()).sum::<f64>()).exp()
    };
    let mut sum = 0.0;
    for left in 0..n {
        let rows: Vec<usize> = (0..n).filter(|&r| r != left).collect();
        let a =
            Matrix::from_fn(n - 1, n - 1, |i, j| k(rows[i], rows[j]) + if i == j { f64::exp(logs[2]) } else { 0.0 });
        let others: Vec<f64> = rows.iter().map(|&r| y[r]).collect();
        let weights = Cholesky::new(a, Threads::ONE)?.solve(&others)?;
        let prediction: f64 = rows.iter().zip(&weights).map(|(&r, w)| k(left, r) * w).sum();
        sum += (y[left] - prediction).powi(2);
    }
    let expected = 0.5 * (sum / n as f64).ln();
    assert!((objective.value(&logs)? - expected).abs() < 1e-12);
    Ok(())
}

#[test]
fn derivatives_agree_with_finite_differences() -> Result<()> {
    let (x, y) = sample(80, 5, 2);
    let three: Vec<f64> = y.iter().zip(x.chunks(5)).flat_map(|(&y, row)| [y, 3.0 * row[2], y * row[4]]).collect();
    let logs = [1.2, 0.1, -0.7, -3.0, 0.4, -2.0];
    for criterion in [Criterion::LeaveOneOut, Criterion::Likelihood] {
        for (y, threads) in [(&y, Threads::ONE), (&y, Threads::up_to(2)), (&three, Threads::ONE)] {
            let objective = Objective::new(Points::row_major(&x, 5)?, y, true, criterion, threads)?;
            let slope = objective.slope(&logs)?;
            assert_eq!(slope.value, objective.value(&logs)?);
            for i in 0..logs.len() {
                let h = 1e-5;
                let at = |step: f64| {
                    let mut moved = logs;
                    moved[i] += step;
                    objective.value(&moved)
                };
                let difference = (at(h)? - at(-h)?) / (2.0 * h);
                assert!((slope.gradient[i] - difference).abs() < 1e-8, "{criterion:?} {i}: {difference} {slope:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn squared_errors_of_several_targets_are_added() -> Result<()> {
    let (x, y) = sample(40, 2, 3);
    let other: Vec<f64> = x.chunks(2).map(|row| (3.0 * row[1]).cos()).collect();
    let both: Vec<f64> = y.iter().zip(&other).flat_map(|(&a, &b)| [a, b]).collect();
    let points = Points::row_major(&x, 2)?;
    let value = |targets: &[f64]| {
        Objective::new(points, targets, true, Criterion::LeaveOneOut, Threads::ONE)?.value(&[0.7, 0.2, -3.0])
    };
    let mean = f64::midpoint(value(&y)?.exp().powi(2), value(&other)?.exp().powi(2));
    assert!((value(&both)? - 0.5 * mean.ln()).abs() < 1e-12);
    let ragged = tune(points, &both[1..], &TuningParams::default(), &mut Progress::none());
    assert!(matches!(ragged, Err(Error::LengthMismatch { .. })), "{ragged:?}");
    Ok(())
}

fn run(x: &[f64], d: usize, y: &[f64], params: &TuningParams) -> Result<Tuned> {
    tune(Points::row_major(x, d)?, y, params, &mut Progress::none())
}

#[test]
fn tuning_ends_where_no_derivative_is_left_and_drops_useless_inputs() -> Result<()> {
    let (x, y) = sample(200, 4, 3);
    let params = TuningParams { rows: vec![200], least_gain: 1e-9, evaluations: 200, ..TuningParams::default() };
    let tuned = run(&x, 4, &y, &params)?;
    assert!(tuned.finished && tuned.lifetimes[0] > 0.0 && tuned.lifetimes[1] > 0.0);
    assert_eq!(tuned.lifetimes[2..], [0.0, 0.0], "{tuned:?}");
    let objective = Objective::new(Points::row_major(&x, 4)?, &y, true, Criterion::LeaveOneOut, Threads::ONE)?;
    let logs: Vec<f64> = tuned.lifetimes.iter().chain([&tuned.alpha]).map(|v| v.ln()).collect();
    let slope = objective.slope(&logs)?;
    // Pruning moved the optimum of the rest a little after the descent.
    assert!(slope.gradient.iter().all(|g| g.abs() < 5e-3), "{slope:?}");
    // By finite differences too, so that the optimum does not rest on the derivatives that found it.
    for i in [0, 1, 4] {
        let at = |step: f64| {
            let mut moved = logs.clone();
            moved[i] += step;
            objective.value(&moved)
        };
        assert!(((at(1e-4)? - at(-1e-4)?) / 2e-4 - slope.gradient[i]).abs() < 1e-6);
    }
    Ok(())
}

#[test]
fn every_way_beats_the_common_lifetime() -> Result<()> {
    let (x, y) = sample(150, 3, 4);
    let ways = [(Criterion::LeaveOneOut, Method::Gradient), (Criterion::LeaveOneOut, Method::Coordinate)];
    let common = LifetimesChoice::Common(Lifetime::new(3.0)?);
    let fixed = LaplaceKernelRidgeParams { lifetime: common, ..LaplaceKernelRidgeParams::default() };
    let points = Points::row_major(&x, 3)?;
    let baseline = fixed.fit(points, &y)?;
    assert_eq!(baseline.lifetimes(), [3.0; 3]);
    let least = mondrian::Step::best(baseline.trajectory()).expect("α was tuned").error;
    for (criterion, method) in ways {
        let tuned = run(&x, 3, &y, &TuningParams { criterion, method, ..TuningParams::default() })?;
        let best = tuned.trajectory.best().expect("evaluated").error;
        assert!(best < 0.97 * least, "{method:?}: {best} against {least}");
        assert!(tuned.trajectory.steps().windows(2).all(|pair| pair[0].cost < pair[1].cost));
    }
    Ok(())
}

#[test]
fn the_rows_decide_not_their_order_nor_their_units() -> Result<()> {
    let (x, y) = sample(300, 3, 5);
    let params = TuningParams { rows: vec![60, 150], ..TuningParams::default() };
    let tuned = run(&x, 3, &y, &params)?;
    let backwards: Vec<f64> = x.chunks(3).rev().flatten().copied().collect();
    let y_backwards: Vec<f64> = y.iter().rev().copied().collect();
    let other = run(&backwards, 3, &y_backwards, &params)?;
    assert_eq!(tuned.trajectory.len(), other.trajectory.len());
    for (a, b) in tuned.lifetimes.iter().zip(&other.lifetimes) {
        assert!((a - b).abs() <= 1e-6 * a.abs(), "{a} {b}");
    }
    // In other units the lifetimes are the same but for the unit (the rows chosen are others: all are used here).
    let all = TuningParams { rows: vec![300], ..TuningParams::default() };
    let scaled: Vec<f64> = x.iter().enumerate().map(|(k, x)| if k % 3 == 0 { 1024.0 * x } else { *x }).collect();
    let (plain, rescaled) = (run(&x, 3, &y, &all)?, run(&scaled, 3, &y, &all)?);
    assert!((plain.lifetimes[0] - 1024.0 * rescaled.lifetimes[0]).abs() < 1e-3 * plain.lifetimes[0]);
    Ok(())
}

#[test]
fn a_stopped_search_goes_on_where_it_was() -> Result<()> {
    let (x, y) = sample(120, 3, 6);
    let points = Points::row_major(&x, 3)?;
    let whole = run(&x, 3, &y, &TuningParams::default())?;
    let mut seen = 0;
    let mut stop = |_: mondrian::Report<'_>| {
        seen += 1;
        if seen == 12 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let half = tune(points, &y, &TuningParams::default(), &mut Progress::new(&mut stop))?;
    assert!(!half.finished && half.trajectory.len() == 12);
    let start = Some((half.lifetimes.clone(), half.alpha));
    let rest = run(&x, 3, &y, &TuningParams { start, ..TuningParams::default() })?;
    let best = |trajectory: &mondrian::internals::select::Trajectory| trajectory.best().expect("ran").error;
    let first = &rest.trajectory.steps()[0];
    assert_eq!((&first.lifetimes, first.alpha), (&half.lifetimes, half.alpha), "it begins where the other ended");
    assert!((first.error - best(&half.trajectory)).abs() <= 1e-9 * first.error);
    assert!(best(&rest.trajectory) < first.error, "and goes on from there");
    let (a, b) = (best(&whole.trajectory), best(&rest.trajectory));
    assert!((a - b).abs() < 1e-3 * a, "{a} {b}");
    let cancelled = LaplaceKernelRidgeParams::default().fit_with(
        points,
        &y,
        FitOptions::watched(Progress::new(&mut |_| ControlFlow::Break(()))),
    );
    assert_eq!(cancelled.unwrap_err(), Error::Cancelled);
    Ok(())
}

#[test]
fn predictions_deviations_and_equivalent_kernel_are_the_formulas() -> Result<()> {
    let (n, d) = (30, 2);
    let (x, y) = sample(n, d, 7);
    let (queries, _) = sample(5, d, 8);
    let (lifetimes, alpha) = ([2.0, 0.5], 0.1);
    for fit_intercept in [false, true] {
        let points = Points::row_major(&x, d)?;
        let params = LaplaceKernelRidgeParams {
            lifetime: LifetimesChoice::Each(vec![Lifetime::new(lifetimes[0])?, Lifetime::new(lifetimes[1])?]),
            alpha: Some(alpha),
            tuning: TuningParams { fit_intercept, ..TuningParams::default() },
            ..LaplaceKernelRidgeParams::default()
        };
        let model = params.fit(points, &y)?;
        let k = |a: &[f64], b: &[f64]| (-(2.0 * (a[0] - b[0]).abs() + 0.5 * (a[1] - b[1]).abs())).exp();
        let a = Matrix::from_fn(n, n, |i, j| {
            k(&x[2 * i..2 * i + 2], &x[2 * j..2 * j + 2]) + if i == j { alpha } else { 0.0 }
        });
        let factor = Cholesky::new(a, Threads::ONE)?;
        let mean = if fit_intercept { y.iter().sum::<f64>() / n as f64 } else { 0.0 };
        let centred: Vec<f64> = y.iter().map(|y| y - mean).collect();
        let weights = factor.solve(&centred)?;
        let variance = centred.iter().zip(&weights).map(|(y, w)| y * w).sum::<f64>() / n as f64;
        let query_points = Points::row_major(&queries, d)?;
        let Prediction { mean: means, std: deviations } = model.predict_with_std(query_points)?;
        let smoother = model.equivalent_kernel(query_points)?;
        for q in 0..5 {
            let row: Vec<f64> = (0..n).map(|i| k(&queries[2 * q..2 * q + 2], &x[2 * i..2 * i + 2])).collect();
            let expected = mean + row.iter().zip(&weights).map(|(k, w)| k * w).sum::<f64>();
            assert!((means[q] - expected).abs() < 1e-12);
            let explained: f64 = factor.solve(&row)?.iter().zip(&row).map(|(s, k)| s * k).sum();
            assert!((deviations[q].powi(2) - variance * (1.0 + alpha - explained)).abs() < 1e-12);
            let smoothed: f64 = smoother[q * n..(q + 1) * n].iter().zip(&y).map(|(s, y)| s * y).sum();
            assert!((smoothed - expected).abs() < 1e-12);
        }
    }
    Ok(())
}

#[test]
fn odd_data_neither_panic_nor_fail() -> Result<()> {
    let fit = |x: &[f64], d: usize, y: &[f64]| LaplaceKernelRidgeParams::default().fit(Points::row_major(x, d)?, y);
    // One row, two equal rows, constant inputs, constant targets, a raw timestamp, far too large a value.
    assert_eq!(fit(&[1.0], 1, &[2.0])?.predict(Points::row_major(&[5.0], 1)?)?, [2.0]);
    assert!((fit(&[1.0, 1.0], 1, &[2.0, 4.0])?.predict(Points::row_major(&[1.0], 1)?)?[0] - 3.0).abs() < 1e-9);
    assert!((fit(&[3.0; 10], 1, &[1.0; 10])?.predict(Points::row_major(&[3.0], 1)?)?[0] - 1.0).abs() < 1e-9);
    let stamps: Vec<f64> = (0..40).flat_map(|i| [1.7e9 + f64::from(i), 1e-300 * f64::from(i), 7.0]).collect();
    let y: Vec<f64> = (0..40).map(|i| f64::from(i % 7)).collect();
    assert!(fit(&stamps, 3, &y)?.predict(Points::row_major(&stamps, 3)?)?.iter().all(|p| p.is_finite()));
    let x = [0.0, 1.0, 2.0];
    assert!(matches!(fit(&x, 1, &[0.0, f64::NAN, 1.0]), Err(Error::NotFinite { what: "y", row: 1, .. })));
    assert!(matches!(fit(&x, 1, &[0.0; 2]), Err(Error::LengthMismatch { .. })));
    assert!(matches!(fit(&[], 1, &[]), Err(Error::Empty { .. })));
    let bad = LaplaceKernelRidgeParams { alpha: Some(-1.0), ..LaplaceKernelRidgeParams::default() };
    let found = bad.fit(Points::row_major(&x, 1)?, &x);
    assert!(matches!(found, Err(Error::InvalidParameter { name: "alpha", .. })));
    let narrow = fit(&x, 1, &x)?.predict(Points::row_major(&[1.0, 2.0], 2)?);
    assert!(matches!(narrow, Err(Error::LengthMismatch { .. })));
    Ok(())
}

#[test]
fn beyond_an_exact_solve_it_goes_on_with_features_and_says_so() -> Result<()> {
    let (x, y) = sample(300, 2, 9);
    let points = Points::row_major(&x, 2)?;
    let exact = LaplaceKernelRidgeParams::default().fit(points, &y)?;
    let few = LaplaceKernelRidgeParams { exact_rows: 299, n_grids: 400, ..LaplaceKernelRidgeParams::default() };
    let features = few.fit(points, &y)?;
    assert!(exact.is_exact() && !features.is_exact());
    // One common factor on all lifetimes and α, a power of two.
    let factor = features.alpha() / exact.alpha();
    assert!(factor >= 1.0 && factor.log2().fract() == 0.0);
    assert!(exact.lifetimes().iter().zip(features.lifetimes()).all(|(a, b)| a * factor == *b));
    assert_eq!(features.predict_with_std(points).unwrap_err(), Error::NotExact);
    assert_eq!(features.equivalent_kernel(points).unwrap_err(), Error::NotExact);
    let (a, b) = (exact.predict(points)?, features.predict(points)?);
    let difference = (a.iter().zip(&b).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / 300.0).sqrt();
    assert!(difference < 0.1, "{difference}");
    Ok(())
}

#[test]
fn targets_whose_squares_overflow_are_refused() -> Result<()> {
    let (x, _) = sample(4, 2, 1);
    let points = Points::row_major(&x, 2)?;
    for (y, limit) in [([1e308, -1e308, 0.0, 1.7e308], true), ([1e150, -1e150, 0.0, 1e150], false)] {
        let fitted = LaplaceKernelRidgeParams::default().fit(points, &y);
        match fitted {
            Err(Error::TooLarge { what: "the targets", .. }) => assert!(limit),
            other => assert!(!limit && other?.predict(points)?.iter().all(|y| y.is_finite())),
        }
    }
    Ok(())
}
