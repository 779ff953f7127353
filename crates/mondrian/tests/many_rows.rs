//! The tuned kernel on more rows than are factorised at once: every solver, appended rows, files, and bits.

use mondrian::internals::laplace::KernelTuning;
use mondrian::internals::laplace::{SolverChoice, SolverUsed};
use mondrian::internals::linalg::Threads;
use mondrian::process::NodeKey;
use mondrian::{
    Cells, Error, FitOptions, KernelMetric, LaplaceClassifier, LaplaceRegressor, LaplaceRegressorParams, Prediction,
    Progress, Saved, TargetMap,
};

/// Rows with a target of two inputs; the third is noise, with a missing cell now and then, the fourth a category.
fn table(n: usize) -> (Vec<f64>, Vec<f64>) {
    let draw = |i: usize, k: u32| NodeKey::root(11, i as u64).draw(k).uniform();
    let third = |i: usize| if i % 11 == 3 { f64::NAN } else { draw(i, 2) };
    let x: Vec<f64> = (0..n).flat_map(|i| [draw(i, 0), draw(i, 1), third(i), (i % 3) as f64]).collect();
    let y = |(i, r): (usize, &[f64])| (5.0 * r[0]).sin() + r[1] * r[1] + 2.0 + 0.3 * r[3] + 0.05 * draw(i, 3);
    let y = x.chunks(4).enumerate().map(y).collect();
    (x, y)
}

const CATEGORICAL: [bool; 4] = [false, false, false, true];

fn tuning(solver: SolverChoice, threads: usize) -> KernelTuning {
    KernelTuning {
        steps: 6,
        rows: 60,
        deciding_rows: 60,
        solver,
        max_exact_rows: 100,
        metric: KernelMetric::Full,
        n_neighbors: Some(40),
        threads: Threads::up_to(threads),
        ..KernelTuning::default()
    }
}

fn params(solver: SolverChoice, threads: usize) -> LaplaceRegressorParams {
    LaplaceRegressor::params().tuning(tuning(solver, threads))
}

fn cells(x: &[f64]) -> Cells<'_> {
    Cells::row_major(x, 4).unwrap()
}

fn fit(x: &[f64], y: &[f64], params: &LaplaceRegressorParams) -> LaplaceRegressor {
    params.clone().categorical(CATEGORICAL).fit(cells(x), y).unwrap()
}

fn rmse(found: &[f64], y: &[f64]) -> f64 {
    (found.iter().zip(y).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / y.len() as f64).sqrt()
}

/// Trained on the first rows, asked about the rest.
fn split(n: usize, n_queries: usize) -> (Vec<f64>, Vec<f64>, Vec<f64>, Vec<f64>) {
    let (mut x, mut y) = table(n + n_queries);
    let (queries, answers) = (x.split_off(4 * n), y.split_off(n));
    (x, y, queries, answers)
}

#[test]
fn every_solver_predicts_fresh_rows_and_says_which_it_was() {
    let (x, y, queries, answers) = split(600, 200);
    let used = |solver| {
        // A size of the neighbourhood is chosen once here. With 40 rows instead of 120 the variance of a row left out of the
        // exact solution would be taken for larger than it is.
        let n_neighbors = (solver != SolverChoice::Auto).then_some(120);
        // Fewer rows per step than this would be learned by heart: leave-one-out would promise too much.
        let tuning = KernelTuning { n_neighbors, rows: 200, ..tuning(solver, 1) };
        let model = fit(&x, &y, &LaplaceRegressor::params().tuning(tuning));
        let Prediction { mean, std } = model.predict_with_std(cells(&queries)).unwrap();
        assert_eq!(model.predict(cells(&queries)).unwrap(), mean);
        let error = rmse(&mean, &answers);
        assert!(error < 0.15 && std.iter().all(|s| *s > 0.0 && *s < 1.0), "{solver:?} {error}");
        let own = model.leave_one_out()[0].rmse;
        assert!((own / error - 1.0).abs() < 0.4, "{solver:?}: {own} by leave-one-out, {error} on fresh rows");
        let (low, high) = model.predict_interval(cells(&queries), 0.8).unwrap();
        let within = (0..200).filter(|&i| low[i] <= answers[i] && answers[i] <= high[i]).count();
        // 200 rows at 80 %: a deviation of 2.8 %, so that a calibrated model fails one time in 10⁵.
        assert!((132..=188).contains(&within), "{solver:?}: {within} of 200");
        // Which input is noise.
        let importances = model.importances();
        assert!(importances[2] < 0.1 && importances[0] > 0.1, "{importances:?}");
        (model.solver().used, model)
    };
    let (exact, reference) = used(SolverChoice::Exact);
    let (cg, by_gradients) = used(SolverChoice::Cg);
    let (local, _) = used(SolverChoice::Local);
    assert_eq!([exact, cg, local], [SolverUsed::Exact, SolverUsed::Cg, SolverUsed::Local]);
    assert!(by_gradients.solver().conjugate.unwrap().residual <= 1e-2 && reference.solver().local.is_none());
    let (auto, _) = used(SolverChoice::Auto);
    assert_ne!(auto, SolverUsed::Exact);
}

#[test]
fn threads_and_the_order_of_rows_do_not_change_bits() {
    let (x, y, queries, _) = split(240, 30);
    let back: Vec<f64> = x.chunks(4).rev().flatten().copied().collect();
    let y_back: Vec<f64> = y.iter().rev().copied().collect();
    for solver in [SolverChoice::Auto, SolverChoice::Cg, SolverChoice::Local] {
        let one = fit(&x, &y, &params(solver, 1));
        let expected = one.predict_with_std(cells(&queries)).unwrap();
        for threads in [2, 3] {
            let other = fit(&x, &y, &params(solver, threads));
            assert_eq!(other.predict_with_std(cells(&queries)).unwrap(), expected, "{solver:?} {threads}");
            assert_eq!((other.trajectory(), other.solver()), (one.trajectory(), one.solver()));
            assert_eq!(other.importances(), one.importances());
        }
        let reversed = fit(&back, &y_back, &params(solver, 1));
        assert_eq!(reversed.predict_with_std(cells(&queries)).unwrap(), expected);
        // One query at a time, and from a file, too.
        let single: Vec<f64> = queries.chunks(4).flat_map(|q| one.predict(cells(q)).unwrap()).collect();
        assert_eq!(single, expected.mean);
        let bytes = one.to_bytes().unwrap();
        let read = LaplaceRegressor::from_bytes(&bytes).unwrap();
        assert_eq!(read.predict_with_std(cells(&queries)).unwrap(), expected);
        assert_eq!((read.to_bytes().unwrap(), read.solver()), (bytes, one.solver()));
    }
}

#[test]
fn rows_are_appended() {
    let (x, y, queries, answers) = split(300, 150);
    let first = 100;
    let mut model = fit(&x[..4 * first], &y[..first], &params(SolverChoice::Local, 1));
    let before = rmse(&model.predict(cells(&queries)).unwrap(), &answers);
    let rest = &y[first..];
    let old = model.predict(cells(&queries)).unwrap();
    // What cannot be appended changes nothing.
    let few = [1.0];
    assert!(matches!(model.learn(cells(&x[4 * first..]), &few), Err(Error::LengthMismatch { .. })));
    let mut nan = rest.to_vec();
    nan[3] = f64::NAN;
    assert!(matches!(model.learn(cells(&x[4 * first..]), &nan), Err(Error::NotFinite { .. })));
    assert_eq!(model.predict(cells(&queries)).unwrap(), old);
    // In one piece or in several.
    let mut pieces = model.clone();
    model.learn(cells(&x[4 * first..]), rest).unwrap();
    for (x, y) in x[4 * first..].chunks(4 * 50).zip(y[first..].chunks(50)) {
        pieces.learn(cells(x), y).unwrap();
    }
    let found = model.predict_with_std(cells(&queries)).unwrap();
    assert_eq!(pieces.predict_with_std(cells(&queries)).unwrap(), found);
    assert_eq!((model.n_rows(), model.solver().n_tuned), (300, 100));
    assert!(rmse(&found.mean, &answers) < before);
    let read = LaplaceRegressor::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(read.predict(cells(&queries)).unwrap(), found.mean);
    // Tuned again it is the model of all rows.
    let again = model.tuned_again(&params(SolverChoice::Local, 1), Progress::none()).unwrap();
    let whole = fit(&x, &y, &params(SolverChoice::Local, 1));
    assert_eq!(again.n_rows(), 300);
    let (a, b) = (again.predict(cells(&queries)).unwrap(), whole.predict(cells(&queries)).unwrap());
    assert!(rmse(&a, &b) < 0.1 * rmse(&a, &answers));
    // A model solved at once becomes a local one; its file does not know the cells.
    let mut exact = fit(&x[..400], &y[..100], &params(SolverChoice::Exact, 1));
    let mut read = LaplaceRegressor::from_bytes(&exact.to_bytes().unwrap()).unwrap();
    exact.learn(cells(&x[400..]), &y[100..]).unwrap();
    assert_eq!((exact.solver().used, exact.n_rows()), (SolverUsed::Local, 300));
    assert!(rmse(&exact.predict(cells(&queries)).unwrap(), &answers) < before);
    assert_eq!(read.learn(cells(&x[400..404]), &few), Err(Error::NotLocal));
    assert!(matches!(read.tuned_again(&params(SolverChoice::Local, 1), Progress::none()), Err(Error::NotLocal)));
}

#[test]
fn weights_are_repeated_rows_for_every_solver() {
    let (x, y, queries, _) = split(200, 40);
    let weights: Vec<f64> = (0..200).map(|i| if i % 4 == 0 { 2.0 } else { 1.0 }).collect();
    let twice = || (0..200).flat_map(|i| std::iter::repeat_n(i, if i % 4 == 0 { 2 } else { 1 }));
    let x_twice: Vec<f64> = twice().flat_map(|i| x[4 * i..][..4].to_vec()).collect();
    let y_twice: Vec<f64> = twice().map(|i| y[i]).collect();
    for solver in [SolverChoice::Cg, SolverChoice::Local] {
        let params = params(solver, 1);
        let weighted =
            params.clone().categorical(CATEGORICAL).fit_with(cells(&x), &y, FitOptions::weighted(&weights)).unwrap();
        let repeated = fit(&x_twice, &y_twice, &params);
        assert_eq!(weighted.predict(cells(&queries)).unwrap(), repeated.predict(cells(&queries)).unwrap());
    }
}

#[test]
fn several_targets_maps_and_smoothers() {
    let (x, y, queries, answers) = split(200, 60);
    let both: Vec<f64> = y.iter().flat_map(|y| [*y, -3.0 * y]).collect();
    for solver in [SolverChoice::Cg, SolverChoice::Local] {
        let two = params(solver, 1);
        let model = two.clone().categorical(CATEGORICAL).fit(cells(&x), &both).unwrap();
        let found = model.predict(cells(&queries)).unwrap();
        let apart = (0..60).map(|i| (found[2 * i + 1] + 3.0 * found[2 * i]).abs()).fold(0.0, f64::max);
        assert!(apart < 0.01, "{solver:?} {apart}");
        // Predictions are the smoother times targets.
        let plain = params(solver, 1).target_map(TargetMap::Identity);
        let model = fit(&x, &y, &plain);
        let smoother = model.equivalent_kernel(cells(&queries), Threads::ONE).unwrap();
        for (row, p) in smoother.chunks(200).zip(model.predict(cells(&queries)).unwrap()) {
            let sum: f64 = row.iter().zip(&y).map(|(s, y)| s * y).sum();
            assert!((sum - p).abs() < 0.01, "{solver:?} {sum} {p}");
        }
        let logarithm = params(solver, 1).target_map(Some(TargetMap::Log));
        let model = fit(&x, &y, &logarithm);
        assert_eq!(model.target_map(), TargetMap::Log);
        assert!(rmse(&model.predict(cells(&queries)).unwrap(), &answers) < 0.2);
        assert_eq!(model.solution(0).is_some(), solver == SolverChoice::Cg);
    }
}

#[test]
fn classes_are_predicted_and_appended() {
    let (x, y, queries, answers) = split(300, 200);
    let class = |y: &f64| u32::from(*y > 2.6) + u32::from(*y > 3.4);
    let (classes, answers): (Vec<u32>, Vec<u32>) = (y.iter().map(class).collect(), answers.iter().map(class).collect());
    for solver in [SolverChoice::Auto, SolverChoice::Cg, SolverChoice::Local] {
        let fit = |threads| {
            LaplaceClassifier::params()
                .tuning(tuning(solver, threads))
                .n_classes(3)
                .categorical(CATEGORICAL)
                .fit(cells(&x), &classes)
                .unwrap()
        };
        let model = fit(1);
        let p = model.predict_proba(cells(&queries)).unwrap();
        assert_eq!(fit(3).predict_proba(cells(&queries)).unwrap(), p);
        let right = |p: &[f64]| {
            let own = |i: usize| {
                p[3 * i + answers[i] as usize] >= p[3 * i..3 * i + 3].iter().fold(0.0, |a: f64, b| a.max(*b))
            };
            (0..200).filter(|&i| own(i)).count()
        };
        assert!(right(&p) > 155, "{solver:?} {}", right(&p));
        assert!((model.leave_one_out().accuracy - right(&p) as f64 / 200.0).abs() < 0.1);
        let read = LaplaceClassifier::from_bytes(&model.to_bytes().unwrap()).unwrap();
        assert_eq!(read.predict_proba(cells(&queries)).unwrap(), p);
    }
    let mut model = LaplaceClassifier::params()
        .tuning(tuning(SolverChoice::Local, 1))
        .n_classes(3)
        .categorical(CATEGORICAL)
        .fit(cells(&x[..400]), &classes[..100])
        .unwrap();
    model.learn(cells(&x[400..]), &classes[100..]).unwrap();
    assert!(model.learn(cells(&x[..4]), &[3]).is_err());
    assert_eq!((model.n_rows(), model.solver().n_tuned), (300, 100));
    let again = model
        .tuned_again(&LaplaceClassifier::params().tuning(tuning(SolverChoice::Local, 1)), Progress::none())
        .unwrap();
    assert_eq!((again.n_rows(), again.n_classes(), again.solver().n_tuned), (300, 3, 300));
}

#[test]
fn rows_without_anything_to_tell_them_apart_are_solved() {
    for solver in [SolverChoice::Auto, SolverChoice::Cg, SolverChoice::Local] {
        for metric in [KernelMetric::Auto, KernelMetric::None] {
            let tuning = KernelTuning { metric, max_exact_rows: 2, ..tuning(solver, 1) };
            let params = LaplaceRegressor::params().tuning(tuning);
            // Constant inputs, one row, and rows that are all equal.
            for (n, y) in [(1, [2.0; 40]), (40, [2.0; 40]), (40, std::array::from_fn(|i| (i % 5) as f64))] {
                let x = vec![0.5; 4 * n];
                let model = params.fit(cells(&x), &y[..n]).unwrap();
                assert!((model.predict(cells(&x[..4])).unwrap()[0] - 2.0).abs() < 1e-6, "{solver:?} {n}");
            }
        }
    }
}

/// Cells of a kind that training rows do not have: intervals widen by what not knowing the input costs.
#[test]
fn intervals_of_rows_with_unknown_cells_hold_what_they_say() {
    // Inputs 0 and 3 matter; no cell is missing. The category has 36 levels, rows of the last twelve are not trained on.
    let n = 1200;
    let draw = |i: usize, k: u32| NodeKey::root(23, i as u64).draw(k).uniform();
    let x: Vec<f64> = (0..n).flat_map(|i| [draw(i, 0), draw(i, 1), draw(i, 2), (36.0 * draw(i, 3)).floor()]).collect();
    let level = |code: f64| draw(code as usize, 9);
    let y: Vec<f64> = x.chunks(4).map(|r| (5.0 * r[0]).sin() + 2.0 * level(r[3]) + 0.1 * r[1]).collect();
    let (known, unknown): (Vec<usize>, Vec<usize>) = (0..n).partition(|i| x[4 * i + 3] < 24.0);
    let (train, test) = known.split_at(known.len() - 200);
    let pick = |rows: &[usize]| -> (Vec<f64>, Vec<f64>) {
        (rows.iter().flat_map(|i| x[4 * i..4 * i + 4].to_vec()).collect(), rows.iter().map(|i| y[*i]).collect())
    };
    let ((train_x, train_y), (test_x, test_y), (new_x, new_y)) = (pick(train), pick(test), pick(&unknown));
    let mut missing = test_x.clone();
    missing.chunks_mut(4).for_each(|row| row[0] = f64::NAN);
    let held = |model: &LaplaceRegressor, x: &[f64], y: &[f64]| {
        let (lower, upper) = model.predict_interval(cells(x), 0.9).unwrap();
        let inside = |i: &usize| (lower[*i]..=upper[*i]).contains(&y[*i]);
        (0..y.len()).filter(inside).count() as f64 / y.len() as f64
    };
    for solver in [SolverChoice::Exact, SolverChoice::Local] {
        let model = fit(&train_x, &train_y, &params(solver, 1));
        let std = |x: &[f64]| model.predict_with_std(cells(x)).unwrap().std;
        let mean = |numbers: &[f64]| numbers.iter().sum::<f64>() / numbers.len() as f64;
        // Without what is added, intervals as narrow as those of known rows hold a fifth of these.
        assert!(mean(&std(&missing)) > 3.0 * mean(&std(&test_x)), "{solver:?}");
        assert!(mean(&std(&new_x)) > 3.0 * mean(&std(&test_x)), "{solver:?}");
        for (what, share) in [
            ("known", held(&model, &test_x, &test_y)),
            ("missing", held(&model, &missing, &test_y)),
            ("new level", held(&model, &new_x, &new_y)),
        ] {
            assert!(share > 0.78, "{solver:?}: intervals of 90 % hold {share} of rows: {what}");
        }
        let again = LaplaceRegressor::from_bytes(&model.to_bytes().unwrap()).unwrap();
        assert_eq!(again.predict_with_std(cells(&new_x)).unwrap().std, std(&new_x));
    }
}

/// Appended rows bring levels of a category that were not there: from then on they are levels like any other.
#[test]
fn appended_levels_are_known() {
    let (x, y) = table(400);
    let mut model = fit(&x, &y, &params(SolverChoice::Local, 1));
    let of_level =
        |code: f64| -> Vec<f64> { x.chunks(4).take(120).flat_map(|row| [row[0], row[1], row[2], code]).collect() };
    // Between known levels and beyond them, each with its own height.
    for (code, height) in [(0.5, 3.0), (7.0, -2.0)] {
        let added = of_level(code);
        let targets: Vec<f64> = added.chunks(4).map(|r| (5.0 * r[0]).sin() + r[1] * r[1] + 2.0 + height).collect();
        let (before, old) = (model.predict(cells(&added)).unwrap(), model.predict(cells(&x)).unwrap());
        assert!(rmse(&before, &targets) > 1.5, "level {code}");
        model.learn(cells(&added), &targets).unwrap();
        assert!(rmse(&model.predict(cells(&added)).unwrap(), &targets) < 0.3, "level {code}");
        // Rows of other levels keep their predictions: their neighbours are nearer than those of another level.
        assert!(rmse(&model.predict(cells(&x)).unwrap(), &old) < 0.1, "level {code}");
    }
}

/// A category that had one level in the rows of the first fit is one still when the model is tuned on further levels.
#[test]
fn a_constant_category_stays_a_category() {
    let (mut x, y) = table(150);
    x.chunks_mut(4).for_each(|row| row[3] = 4.0);
    let mut model = fit(&x, &y, &params(SolverChoice::Local, 1));
    assert_eq!((model.lifetimes()[3], model.rank_lifetimes()[3]), (0.0, 0.0));
    let (more, targets) = table(300);
    model.learn(cells(&more), &targets).unwrap();
    let again = model.tuned_again(&params(SolverChoice::Local, 1), Progress::none()).unwrap();
    assert!(again.lifetimes()[3] > 0.0);
    // Numbers with four values would have ranks.
    assert_eq!(again.rank_lifetimes()[3], 0.0);
}
