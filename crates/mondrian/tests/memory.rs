//! The budget of memory: what does not fit is computed another way, or refused with the numbers.
//!
//! The budget holds for the process, so this is one test in a program of its own.

use mondrian::internals::linalg::Threads;
use mondrian::internals::memory::max_memory;
use mondrian::process::NodeKey;
use mondrian::{
    Cells, ClassificationForest, Error, FeatureMap, FeatureRidge, ForestParams, KernelRidge, LaplaceClassifier,
    LaplaceKernel, LaplaceRegressor, Lifetime, LifetimeChoice, PathMethod, Points, Progress, RandomFourier,
    RegressionForest, RegressionParams, Saved, Solver, set_max_memory,
};

fn rows(n: usize) -> (Vec<f64>, Vec<f64>) {
    let x: Vec<f64> = (0..2 * n).map(|i| NodeKey::root(1, i as u64).draw(0).uniform()).collect();
    let y = x.chunks(2).map(|row| (5.0 * row[0]).sin()).collect();
    (x, y)
}

fn is_refused<T>(what: &str, result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::TooLarge { what: found, expected, limit }) if found.contains(what) && expected > limit)
}

#[test]
fn what_does_not_fit_is_computed_another_way_or_refused() {
    let (x, y) = rows(60);
    let points = Points::row_major(&x, 2).unwrap();
    let params = KernelRidge::params().n_trees(30).lifetime(Lifetime::INFINITE).alpha(0.1);
    let model = params.fit(points, &y).unwrap();
    let exact = model.path(&[(points, &y)], &PathMethod::Removal, &mut Progress::none()).unwrap();

    // About 1800 cells: a matrix of 26 MB.
    set_max_memory(Some(5_000_000));
    assert_eq!(max_memory(), Some(5_000_000));
    let path = model.path(&[(points, &y)], &PathMethod::Removal, &mut Progress::none()).unwrap();
    assert!(path.lifetimes().len() > 10 && path.lifetimes().len() < exact.lifetimes().len());
    for (lifetime, loss) in path.lifetimes().iter().zip(path.train()) {
        let at = exact.lifetimes().partition_point(|l| l <= lifetime) - 1;
        assert!((loss - exact.train()[at]).abs() < 1e-6, "{lifetime}: {loss} {}", exact.train()[at]);
    }
    assert!(is_refused("path", &model.path(&[(points, &y)], &PathMethod::Cholesky, &mut Progress::none())));
    assert!(is_refused("primal", &params.clone().ridge(FeatureRidge::params().solver(Solver::Primal)).fit(points, &y)));

    let (many, targets) = rows(900);
    let table = Points::row_major(&many, 2).unwrap();
    assert!(is_refused("kernel", &LaplaceKernel::new(Lifetime::new(1.0).unwrap()).unwrap().gram(table, Threads::ONE)));
    let trees = ForestParams { n_trees: 2, ..ForestParams::default() };
    let params = RegressionParams { forest: trees, ..RegressionParams::default() };
    let forest = params.fit(table, &targets);
    assert!(is_refused("smoothing", &forest.unwrap().equivalent_kernel(table)));
    let kernel = LaplaceKernel::new(Lifetime::new(1.0).unwrap()).unwrap();
    assert!(is_refused("frequencies", &RandomFourier::new(&kernel, 2, 1 << 24, 0)));
    let fourier = RandomFourier::new(&kernel, 2, 1 << 12, 0).unwrap();
    assert!(is_refused("features", &fourier.transform(table)));
    // Rows alone, tuned by their neighbours, take more than twice the budget.
    let (rows, targets) = rows(30_000);
    let cells = Cells::row_major(&rows, 2).unwrap();
    assert!(is_refused("rows", &LaplaceRegressor::params().fit(cells, &targets)));
    let labels: Vec<u32> = targets.iter().map(|y| u32::from(*y > 0.0)).collect();
    assert!(is_refused("rows", &LaplaceClassifier::params().fit(cells, &labels)));
    // After the first trees it is known what all will take; a file of such a forest is not read either.
    let large = RegressionForest::params().n_trees(40).lifetime(Lifetime::INFINITE);
    let table = Points::row_major(&rows, 2).unwrap();
    assert!(is_refused("bytes of the trees", &large.fit(table, &targets)));
    assert!(is_refused(
        "bytes of the trees",
        &large.clone().n_trees(400).lifetime(LifetimeChoice::Auto).fit(table, &targets)
    ));
    let classes = ClassificationForest::params().n_trees(40).lifetime(Lifetime::INFINITE);
    assert!(is_refused("bytes of the trees", &classes.fit(table, &labels)));
    set_max_memory(None);
    let bytes = large.fit(table, &targets).unwrap().to_bytes().unwrap();
    set_max_memory(Some(5_000_000));
    assert!(is_refused("bytes of the trees", &RegressionForest::from_bytes(&bytes)));
    set_max_memory(None);
    assert!(fourier.transform(table).is_ok());
}
