//! Long work can be watched and cancelled at any report, and then nothing has changed.

use std::ops::ControlFlow;

use mondrian::ClassificationParams;
use mondrian::FeatureRidge;
use mondrian::FitOptions;
use mondrian::KernelRidge;
use mondrian::Progress;
use mondrian::Saved;
use mondrian::internals::forest::Forest;
use mondrian::internals::ridge::Solver;
use mondrian::process::NodeKey;
use mondrian::{DensityClassifier, DensityParams};
use mondrian::{Error, Lifetime, Points, Result};
use mondrian::{FeatureMap, MondrianFeatures};
use mondrian::{ForestParams, LifetimeChoice, RegressionParams};

fn rows(n: usize, seed: u64) -> Vec<f64> {
    (0..2 * n as u64).map(|i| NodeKey::root(seed, i).draw(0).uniform()).collect()
}

fn points(x: &[f64]) -> Points<'_> {
    Points::row_major(x, 2).unwrap()
}

/// Lets `work` run, then cancels it at every one of its reports in turn. Returns what the whole run gave.
fn cancelled_everywhere<T: std::fmt::Debug>(mut work: impl FnMut(&mut Progress<'_>) -> Result<T>) -> T {
    let mut heard = Vec::new();
    let whole = work(&mut Progress::new(&mut |report| {
        heard.push(report.fraction);
        ControlFlow::Continue(())
    }));
    assert!(heard.len() > 2 && heard.is_sorted() && heard.iter().all(|f| (0.0..=1.0).contains(f)), "{heard:?}");
    for stop in 0..heard.len() {
        let mut n_heard = 0;
        let cancelled = work(&mut Progress::new(&mut |_| {
            n_heard += 1;
            if n_heard > stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }));
        assert_eq!((cancelled.unwrap_err(), n_heard), (Error::Cancelled, stop + 1));
    }
    whole.unwrap()
}

fn trees(lifetime: Option<f64>) -> ForestParams {
    let lifetime = lifetime.map_or(LifetimeChoice::Auto, |t| LifetimeChoice::Value(Lifetime::new(t).unwrap()));
    ForestParams { n_trees: 30, lifetime, ..ForestParams::default() }
}

#[test]
fn a_regression_forest() {
    let (x, more) = (rows(60, 1), rows(90, 2));
    let y: Vec<f64> = x.chunks(2).map(|row| row[0]).collect();
    let more_y: Vec<f64> = more.chunks(2).map(|row| row[0]).collect();
    for lifetime in [None, Some(4.0)] {
        let params = RegressionParams { forest: trees(lifetime), ..RegressionParams::default() };
        let fit =
            |progress: &mut Progress<'_>| params.fit_with(points(&x), &y, FitOptions::watched(progress.part(0.0, 1.0)));
        let model = cancelled_everywhere(fit);
        let plain = params.fit(points(&x), &y).unwrap();
        assert_eq!(model.to_bytes().unwrap(), plain.to_bytes().unwrap());
        // A batch that is inserted, and one for which the trees are trained anew.
        for n in [20, 90] {
            let batch = (points(&more[..2 * n]), &more_y[..n]);
            let mut learned = plain.clone();
            learned.learn(batch.0, batch.1).unwrap();
            let mut watched = plain.clone();
            cancelled_everywhere(|progress| {
                let mut model = plain.clone();
                let outcome = model.learn_with(batch.0, batch.1, FitOptions::watched(progress.part(0.0, 1.0)));
                let expected = if outcome.is_ok() { &learned } else { &plain };
                assert_eq!(model.to_bytes().unwrap(), expected.to_bytes().unwrap());
                assert_eq!(model.predict(points(&x)).unwrap(), expected.predict(points(&x)).unwrap());
                watched = model;
                outcome
            });
        }
    }
}

#[test]
fn a_classification_forest() {
    let x = rows(300, 1);
    let labels: Vec<u32> = x.chunks(2).map(|row| u32::from(row[0] > 0.4)).collect();
    let params = ClassificationParams { forest: trees(None), ..ClassificationParams::default() };
    let fit = |progress: &mut Progress<'_>| {
        params.clone().n_classes(2).fit_with(points(&x), &labels, FitOptions::watched(progress.part(0.0, 1.0)))
    };
    let model = cancelled_everywhere(fit);
    let plain = params.clone().n_classes(2).fit(points(&x), &labels).unwrap();
    assert_eq!(model.to_bytes().unwrap(), plain.to_bytes().unwrap());
    let stopped = model.find_lifetime(&mut Progress::new(&mut |_| ControlFlow::Break(())));
    assert_eq!(stopped.unwrap_err(), Error::Cancelled);
    assert_eq!(model.lifetime(), plain.lifetime());
    let more = rows(100, 2);
    cancelled_everywhere(|progress| {
        let mut model = plain.clone();
        let outcome = model.learn_with(points(&more), &[2; 100], FitOptions::watched(progress.part(0.0, 1.0)));
        assert_eq!(model.n_classes(), if outcome.is_ok() { 3 } else { 2 });
        assert_eq!(model.to_bytes().unwrap() == plain.to_bytes().unwrap(), outcome.is_err());
        outcome
    });
}

#[test]
fn densities() {
    let x = rows(80, 1);
    let labels: Vec<u32> = x.chunks(2).map(|row| u32::from(row[0] > 0.4)).collect();
    for lifetime in [None, Some(3.0)] {
        let params = DensityParams::from(trees(lifetime));
        let model =
            cancelled_everywhere(|progress| params.fit_with(points(&x), FitOptions::watched(progress.part(0.0, 1.0))));
        let plain = params.fit(points(&x)).unwrap();
        assert_eq!(model.to_bytes().unwrap(), plain.to_bytes().unwrap());
        cancelled_everywhere(|progress| {
            let mut model = plain.clone();
            let outcome = model.learn_with(points(&x), FitOptions::watched(progress.part(0.0, 1.0)));
            assert_eq!(model.n_rows(), if outcome.is_ok() { 160 } else { 80 });
            outcome
        });
        let both = |progress: &mut Progress<'_>| {
            DensityClassifier::params().density(params.clone()).equal_prior().fit_with(
                points(&x),
                &labels,
                FitOptions::watched(progress.part(0.0, 1.0)),
            )
        };
        cancelled_everywhere(both);
    }
}

#[test]
fn kernel_ridge() {
    let x = rows(60, 1);
    let y: Vec<f64> = x.chunks(2).map(|row| (5.0 * row[0]).sin()).collect();
    let steps = FeatureRidge::params().solver(Solver::ConjugateGradients);
    for (lifetime, ridge) in [(None, FeatureRidge::params()), (Some(2.0), steps)] {
        let params = KernelRidge::params().trees(trees(lifetime)).ridge(ridge);
        let fit =
            |progress: &mut Progress<'_>| params.fit_with(points(&x), &y, FitOptions::watched(progress.part(0.0, 1.0)));
        let model = cancelled_everywhere(fit);
        let plain = params.fit(points(&x), &y).unwrap();
        assert_eq!(model.predict(points(&x)).unwrap(), plain.predict(points(&x)).unwrap());
    }
}

#[test]
fn mondrian_features_and_the_forest_below_them() {
    let (x, more) = (rows(200, 1), rows(150, 2));
    let mut map = MondrianFeatures::on(&trees(None), points(&x), Lifetime::new(3.0).unwrap()).unwrap();
    map.learn(points(&x)).unwrap();
    let (before, n_columns) = (map.transform(points(&more)).unwrap(), map.n_columns());
    cancelled_everywhere(|progress| {
        let mut next = map.clone();
        let outcome = next.learn_with_progress(points(&more), progress);
        let is_cancelled = outcome.is_err();
        assert_eq!(next.transform(points(&more)).unwrap() == before, is_cancelled);
        assert_eq!((next.n_columns(), next.rows().len()) == (n_columns, 200), is_cancelled);
        if is_cancelled {
            // Still usable: what it learns now is what it would have learned.
            next.learn(points(&more)).unwrap();
            let mut plain = map.clone();
            plain.learn(points(&more)).unwrap();
            assert_eq!(next.to_bytes().unwrap(), plain.to_bytes().unwrap());
        }
        outcome
    });
    let first = map.forest().as_ref().clone();
    cancelled_everywhere(|progress| {
        let mut forest = first.clone();
        let batch = forest.row_batch(points(&more)).unwrap();
        let outcome = forest.learn(batch, (), &mut (), progress);
        assert_eq!(forest.store().n_rows(), if outcome.is_ok() { 350 } else { 200 });
        let sizes = |forest: &Forest| forest.trees().iter().map(|(tree, ())| tree.n_nodes()).collect::<Vec<_>>();
        assert_eq!(sizes(&forest) == sizes(&first), outcome.is_err());
        outcome
    });
}
