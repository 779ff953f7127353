//! The kernel path against refits, and its forms against each other.

use mondrian::LifetimesChoice;
use mondrian::Progress;
use mondrian::Saved;
use mondrian::Validation;
use mondrian::internals::laplace::{LaplaceKernelRidge, LaplaceKernelRidgeParams};
use mondrian::process::NodeKey;
use mondrian::{ClassificationParams, ForestParams, LeafModel, RegressionParams, WeightsChoice};
use mondrian::{Error, Lifetime, Points};
use mondrian::{KernelRidge, PathMethod};

struct Data {
    n_dims: usize,
    x: Vec<f64>,
    y: Vec<f64>,
}

fn data(n: usize, n_dims: usize, seed: u64) -> Data {
    let mut x = Vec::new();
    for row in 0..n as u64 {
        let from = if row % 6 == 5 { row - 1 } else { row };
        x.extend((0..n_dims as u64).map(|dim| NodeKey::root(seed, from).fork(dim).draw(0).uniform()));
    }
    let y = (0..n)
        .map(|r| 3.0 + (5.0 * x[r * n_dims]).sin() + 0.1 * NodeKey::root(seed, r as u64).draw(1).normal())
        .collect();
    Data { n_dims, x, y }
}

impl Data {
    fn points(&self) -> Points<'_> {
        Points::row_major(&self.x, self.n_dims).unwrap()
    }
}

fn model(train: &Data, n_trees: usize, lifetime: f64, alpha: f64, intercept: bool) -> KernelRidge {
    let trees = mondrian::ForestParams { weights: WeightsChoice::Raw, ..Default::default() };
    KernelRidge::params()
        .trees(trees)
        .n_trees(n_trees)
        .lifetime(Lifetime::new(lifetime).unwrap())
        .alpha(alpha)
        .fit_intercept(intercept)
        .fit(train.points(), &train.y)
        .unwrap()
}

fn rmse(model: &KernelRidge, data: &Data) -> f64 {
    let found = model.predict(data.points()).unwrap();
    let sum: f64 = data.y.iter().enumerate().map(|(r, y)| (found[(r, 0)] - y).powi(2)).sum();
    (sum / data.y.len() as f64).sqrt()
}

#[test]
fn every_form_of_the_path_equals_refits() {
    for (n_dims, n_trees, lifetime) in [(1, 1, 10.0), (2, 7, 4.0), (5, 12, 1.5), (2, 5, f64::INFINITY)] {
        for (alpha, intercept) in [(1e-6, true), (0.1, false), (10.0, true)] {
            let (train, mut held) = (data(40, n_dims, 3), data(25, n_dims, 4));
            held.x[0] = 1.8;
            let model = model(&train, n_trees, lifetime, alpha, intercept);
            let wide = model.widened_for(held.points()).unwrap();
            let sets = [(held.points(), held.y.as_slice())];
            let removal = model.path(&sets, &PathMethod::Removal, &mut Progress::none()).unwrap();
            assert!(removal.len() > 5);
            // Fit and evaluate at 0, at the end, at cuts and just before them.
            let step = (removal.len() / 10).max(1);
            for at in (0..removal.len()).step_by(step).chain([removal.len() - 1]) {
                for time in [removal.lifetimes()[at], removal.lifetimes()[at].next_down().max(0.0)] {
                    let time = Lifetime::new(time).unwrap();
                    let (index, refit) = (removal.index_at(time), wide.at(time).unwrap());
                    for (found, set) in [(removal.train()[index], &train), (removal.validation()[0][index], &held)] {
                        let expected = rmse(&refit, set);
                        assert!(
                            (found - expected).abs() < 1e-7 * removal.train()[0].max(1.0),
                            "D = {n_dims}, M = {n_trees}, α = {alpha}, λ = {time}: {found} instead of {expected}"
                        );
                    }
                }
            }
            for method in [PathMethod::Addition, PathMethod::Cholesky] {
                let other = model.path(&sets, &method, &mut Progress::none()).unwrap();
                assert_eq!(other.lifetimes(), removal.lifetimes(), "{method:?}");
                let both = [(other.train(), removal.train()), (&other.validation()[0], &removal.validation()[0])];
                for (a, b) in both {
                    let worst = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                    assert!(worst < 1e-7 * removal.train()[0].max(1.0), "{method:?}, α = {alpha}: {worst}");
                }
            }
            let lifetimes: Vec<f64> = removal.lifetimes().iter().step_by(step).copied().collect();
            let grid = PathMethod::ConjugateGradients { lifetimes: lifetimes.clone(), tolerance: 1e-12 };
            let grid = model.path(&sets, &grid, &mut Progress::none()).unwrap();
            assert_eq!(grid.lifetimes(), lifetimes);
            for (at, time) in lifetimes.iter().enumerate() {
                let index = removal.index_at(Lifetime::new(*time).unwrap());
                let pair = (grid.validation()[0][at], removal.validation()[0][index]);
                assert!((pair.0 - pair.1).abs() < 1e-6 * removal.train()[0].max(1.0), "α = {alpha}: {pair:?}");
            }
        }
    }
}

#[test]
fn three_forms_agree_along_many_features() {
    // The inverse in blocks, the Cholesky factor and fresh solves, along a few hundred features, δ² from 1e-6 to 10.
    let (train, held) = (data(120, 3, 8), data(40, 3, 9));
    for alpha in [1e-6, 1e-3, 10.0] {
        let model = model(&train, 10, 8.0, alpha, true);
        let sets = [(held.points(), held.y.as_slice())];
        let removal = model.path(&sets, &PathMethod::Removal, &mut Progress::none()).unwrap();
        let cholesky = model.path(&sets, &PathMethod::Cholesky, &mut Progress::none()).unwrap();
        assert!(model.features().forest().n_trees() == 10 && removal.len() > 200);
        let worst = removal.validation()[0]
            .iter()
            .zip(&cholesky.validation()[0])
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f64::max);
        assert!(worst < 1e-7 * removal.train()[0].max(1.0), "α = {alpha}: {worst}");
        assert!(removal.worst_residual() < 1e-6, "{}", removal.worst_residual());
    }
}

/// The path of the inverse form against fresh solves at eight lifetimes, and against every value of the Cholesky form if
/// asked. `rows` and `lifetime` for about so many features.
fn forms_agree(rows: usize, lifetime: f64, features: usize, alpha: f64, with_cholesky: bool) {
    let (train, held) = (data(rows, 3, 8), data(60, 3, 9));
    let model = model(&train, 20, lifetime, alpha, true);
    assert!(model.n_features().abs_diff(features) < features / 10, "C = {}", model.n_features());
    let sets = [(held.points(), held.y.as_slice())];
    let path = model.path(&sets, &PathMethod::Removal, &mut Progress::none()).unwrap();
    let allowed = 1e-7 * path.train()[0].max(1.0);
    let wide = model.widened_for(held.points()).unwrap();
    for eighth in 1..=8 {
        let index = eighth * (path.len() - 1) / 8;
        let refit = wide.at(Lifetime::new(path.lifetimes()[index]).unwrap()).unwrap();
        for (found, set) in [(path.train()[index], &train), (path.validation()[0][index], &held)] {
            let expected = rmse(&refit, set);
            assert!((found - expected).abs() < allowed, "α = {alpha}, value {index}: {found} instead of {expected}");
        }
    }
    if with_cholesky {
        let cholesky = model.path(&sets, &PathMethod::Cholesky, &mut Progress::none()).unwrap();
        assert_eq!(path.lifetimes(), cholesky.lifetimes());
        let pairs = [(path.train(), cholesky.train()), (&path.validation()[0], &cholesky.validation()[0])];
        for (a, b) in pairs {
            let worst = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(worst < allowed, "α = {alpha}: {worst}, residual {}", path.worst_residual());
        }
    }
}

#[test]
fn inverse_cholesky_and_fresh_solves_agree_along_800_features() {
    for alpha in [1e-6, 1e-2, 10.0] {
        forms_agree(60, 8.0, 800, alpha, true);
    }
}

#[test]
fn inverse_and_fresh_solves_agree_along_3000_features() {
    for alpha in [1e-6, 1e-2, 10.0] {
        forms_agree(250, 12.0, 3000, alpha, false);
    }
}

/// One update of the whole factor at a time: minutes.
#[test]
#[ignore = "takes minutes; run with --release -- --ignored"]
fn inverse_cholesky_and_fresh_solves_agree_along_3000_features() {
    for alpha in [1e-6, 1e-2, 10.0] {
        forms_agree(250, 12.0, 3000, alpha, true);
    }
}

#[test]
fn a_path_can_be_cancelled_and_refuses_wrong_targets() {
    let (train, held) = (data(60, 2, 1), data(10, 2, 2));
    let model = model(&train, 10, 5.0, 0.1, true);
    let mut stop = |_: mondrian::Report<'_>| std::ops::ControlFlow::Break(());
    let sets = [(held.points(), held.y.as_slice())];
    assert_eq!(
        model.path(&sets, &PathMethod::Removal, &mut Progress::new(&mut stop)).unwrap_err(),
        mondrian::Error::Cancelled
    );
    let short = [(held.points(), &held.y[1..])];
    assert!(model.path(&short, &PathMethod::Removal, &mut Progress::none()).is_err());
}

#[test]
fn an_automatic_lifetime_is_good_on_unseen_rows_in_any_units() {
    let (mut train, mut held) = (data(300, 2, 11), data(200, 2, 12));
    for set in [&mut train, &mut held] {
        set.x.iter_mut().for_each(|x| *x *= 1e4);
    }
    let auto = KernelRidge::params().n_trees(40).alpha(0.1).fit(train.points(), &train.y).unwrap();
    // Noise 0.1; the function's own deviation is about 0.7.
    let error = rmse(&auto, &held);
    assert!(error < 0.25, "λ = {}: {error}", auto.features().lifetime());
    for n in [1, 3] {
        let few = data(n, 2, 13);
        KernelRidge::params().n_trees(3).fit(few.points(), &few.y).unwrap();
    }
}

/// The rows backwards.
fn reversed(data: &Data) -> Data {
    let x = data.x.chunks_exact(data.n_dims).rev().flatten().copied().collect();
    Data { n_dims: data.n_dims, x, y: data.y.iter().rev().copied().collect() }
}

#[test]
fn folds_and_an_automatic_alpha_choose_well_and_whatever_the_order() {
    let (train, held) = (data(200, 2, 21), data(200, 2, 22));
    let mut errors = Vec::new();
    for validation in [Validation::HoldOut, Validation::KFold(4)] {
        let params = KernelRidge::params().n_trees(30).auto_alpha().validation(validation);
        let model = params.fit(train.points(), &train.y).unwrap();
        let back = reversed(&train);
        let other = params.fit(back.points(), &back.y).unwrap();
        let chosen = |m: &KernelRidge| (m.features().lifetime(), m.model().alpha());
        assert_eq!(chosen(&model), chosen(&other), "{validation:?}");
        errors.push(rmse(&model, &held));
        // α at a given lifetime is that of the candidates whose fit predicts best: not the largest here.
        let at = params.lifetime(Lifetime::new(3.0).unwrap()).fit(train.points(), &train.y).unwrap();
        assert!(at.model().alpha() < 10.0 && at.features().lifetime().get() == 3.0);
    }
    // Noise 0.1. With α = 1 throughout the error is larger.
    let fixed = KernelRidge::params().n_trees(30).alpha(10.0).fit(train.points(), &train.y).unwrap();
    assert!(errors.iter().all(|e| *e < 0.2 && *e < rmse(&fixed, &held)), "{errors:?} {}", rmse(&fixed, &held));
    let none = KernelRidge::params().validation(Validation::LeaveOneOut).fit(train.points(), &train.y);
    assert_eq!(none.unwrap_err(), Error::NoLeaveOneOut);
}

#[test]
fn the_approximation_chooses_the_lifetime_of_the_exact_kernel() {
    // In other units in each column: one lifetime in units of deviations is two numbers whose ratio is theirs.
    let (mut train, mut held) = (data(300, 2, 31), data(200, 2, 32));
    for set in [&mut train, &mut held] {
        set.x.iter_mut().step_by(2).for_each(|x| *x *= 1000.0);
    }
    for validation in [Validation::HoldOut, Validation::KFold(3)] {
        let lifetime = LifetimesChoice::Path(validation);
        let params = LaplaceKernelRidgeParams { lifetime, ..LaplaceKernelRidgeParams::default() };
        let model = params.fit(train.points(), &train.y).unwrap();
        assert!(model.is_exact() && model.trajectory().len() == 1);
        let ratio = model.lifetimes()[1] / model.lifetimes()[0];
        assert!((900.0..1100.0).contains(&ratio), "{ratio}");
        let found = model.predict(held.points()).unwrap();
        let error = (found.iter().zip(&held.y).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / 200.0).sqrt();
        assert!(error < 0.2, "{error}");
        // Too few rows to hold any out: still a model, and one that can be saved.
        let few = data(4, 2, 33);
        let small = params.fit(few.points(), &few.y).unwrap();
        assert!(small.trajectory().is_empty());
        let again = LaplaceKernelRidge::from_bytes(&small.to_bytes().unwrap()).unwrap();
        assert_eq!(again.predict(few.points()).unwrap(), small.predict(few.points()).unwrap());
        let fixed = LaplaceKernelRidgeParams { alpha: Some(0.5), ..params };
        assert_eq!(fixed.fit(train.points(), &train.y).unwrap().alpha(), 0.5);
    }
}

#[test]
fn forests_choose_their_lifetime_by_folds_too() {
    let (train, held) = (data(400, 2, 41), data(200, 2, 42));
    let back = reversed(&train);
    let class = |y: &f64| u32::from(*y > 3.0);
    let (labels, back_labels): (Vec<u32>, Vec<u32>) =
        (train.y.iter().map(class).collect(), back.y.iter().map(class).collect());
    for validation in [Validation::HoldOut, Validation::KFold(3), Validation::KFold(2)] {
        let forest = ForestParams { n_trees: 20, validation, ..ForestParams::default() };
        let params = RegressionParams {
            forest: forest.clone(),
            leaf_model: LeafModel::Independent,
            ..RegressionParams::default()
        };
        let fit = |data: &Data| params.fit(data.points(), &data.y).unwrap();
        let model = fit(&train);
        assert_eq!(model.lifetime(), fit(&back).lifetime(), "{validation:?}");
        let found = model.predict(held.points()).unwrap();
        let error = (found.iter().zip(&held.y).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / 200.0).sqrt();
        // Independent leaves need a finite lifetime.
        assert!(model.lifetime().is_finite() && error < 0.4, "{validation:?}: {} {error}", model.lifetime());
        let params = ClassificationParams { forest, ..ClassificationParams::default() };
        let fit = |data: &Data, labels: &[u32]| params.clone().n_classes(2).fit(data.points(), labels).unwrap();
        assert_eq!(fit(&train, &labels).lifetime(), fit(&back, &back_labels).lifetime(), "{validation:?}");
    }
    for (validation, refused) in [
        (Validation::LeaveOneOut, Error::NoLeaveOneOut),
        (
            Validation::KFold(1),
            Error::InvalidParameter { name: "validation", value: 1.0, expected: "at least 2 folds" },
        ),
    ] {
        let forest = ForestParams { validation, ..ForestParams::default() };
        let params = RegressionParams { forest: forest.clone(), ..RegressionParams::default() };
        assert_eq!(params.fit(train.points(), &train.y).unwrap_err(), refused);
        let params = ClassificationParams { forest, ..ClassificationParams::default() };
        assert_eq!(params.n_classes(2).fit(train.points(), &labels).unwrap_err(), refused);
    }
}
