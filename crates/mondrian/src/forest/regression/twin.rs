//! Models whose trees have chains against their slow, obvious twins whose trees keep every cut as a node: everything they
//! say is the same, bit for bit.

use crate::features::{FeatureMap, MondrianFeatures};
use crate::forest::classification::GammaChoice;
use crate::forest::*;
use crate::model_file::Saved;
use crate::process::NodeKey;
use crate::progress::Progress;
use crate::ridge::{KernelRidge, PathMethod};
use crate::tree::{Tree, all_without_chains};
use crate::{Lifetime, Points};

/// Tight clusters of rows, with repeated rows and a constant column; targets and classes to match.
struct Data {
    x: Vec<f64>,
    y: Vec<f64>,
    labels: Vec<u32>,
    n_dims: usize,
}

fn uniform(seed: u64, a: u64, b: u64) -> f64 {
    NodeKey::root(seed, a).fork(b).draw(0).uniform()
}

impl Data {
    fn new(n: u64, n_dims: usize, seed: u64) -> Self {
        let mut x = Vec::new();
        for row in 0..n {
            // Every seventh row is one that came before.
            let same_as = if row % 7 == 5 { row - 5 } else { row };
            let cluster = same_as % (n / 6).max(1);
            x.extend((0..n_dims as u64).map(|dim| {
                let centre = uniform(seed, cluster, dim);
                let spread = [1e-3, 1e-6, 1e-10][cluster as usize % 3];
                if n_dims > 2 && dim == 1 { 0.25 } else { centre + spread * uniform(seed + 1, same_as, dim) }
            }));
        }
        let y = (0..n).map(|row| uniform(seed + 2, row, 0) + x[row as usize * n_dims]).collect();
        let labels = (0..n).map(|row| (3.0 * uniform(seed + 3, row % 11, 0)) as u32).collect();
        Self { x, y, labels, n_dims }
    }

    fn points(&self) -> Points<'_> {
        Points::row_major(&self.x, self.n_dims).unwrap()
    }

    fn n(&self) -> usize {
        self.y.len()
    }

    /// One row, with its target and class.
    fn row(&self, row: usize) -> (Points<'_>, &[f64], &[u32]) {
        let x = Points::row_major(&self.x[row * self.n_dims..][..self.n_dims], self.n_dims).unwrap();
        (x, &self.y[row..=row], &self.labels[row..=row])
    }

    /// Rows of the data, rows ever further from them, rows anywhere, rows outside the box.
    fn queries(&self) -> Vec<f64> {
        let mut queries = Vec::new();
        for at in 0..60 {
            let from = at * 5 % self.n();
            queries.extend((0..self.n_dims).map(|dim| {
                let (x, u) = (self.x[from * self.n_dims + dim], uniform(99, at as u64, dim as u64));
                match at % 6 {
                    0 => x,
                    1 => x + 1e-9 * u,
                    2 => x + 1e-5 * u,
                    3 => x + 0.05 * u,
                    4 => u,
                    _ => 4.0 * u - 1.5,
                }
            }));
        }
        queries
    }
}

/// Lifetimes, some of which end inside a chain.
fn views<'a>(trees: impl Iterator<Item = &'a Tree>) -> Vec<Lifetime> {
    let mut views = vec![0.0, 1.0, 30.0, f64::INFINITY];
    let mut n_chains = 0;
    for tree in trees.filter(|tree| tree.n_chains() > 0) {
        n_chains += tree.n_chains();
        // That of the root, if it is one, comes first.
        let middles = tree.chains().map(|(_, chain)| f64::midpoint(chain.first_time(), chain.last_time()));
        views.extend(middles.step_by(tree.n_chains().div_ceil(2)));
    }
    assert!(n_chains > 0, "the data make chains");
    views.into_iter().map(|view| Lifetime::new(view).unwrap()).collect()
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|v| v.to_bits()).collect()
}

const CASES: [(u64, usize); 3] = [(40, 1), (90, 5), (60, 50)];
const LIFETIMES: [f64; 2] = [500.0, f64::INFINITY];

fn forest_params(lifetime: f64) -> ForestParams {
    let lifetime = LifetimeChoice::Value(Lifetime::new(lifetime).unwrap());
    ForestParams { n_trees: 3, lifetime, seed: 5, weights: WeightsChoice::Raw, ..ForestParams::default() }
}

fn assert_same_regression(chained: &RegressionForest, plain: &RegressionForest, data: &Data) {
    assert!(plain.forest().trees().iter().all(|(tree, _)| tree.n_chains() == 0));
    assert_eq!(chained.gaussians(), plain.gaussians());
    assert_eq!(chained.to_archive().unwrap(), plain.to_archive().unwrap());
    let queries = data.queries();
    let points = Points::row_major(&queries, data.n_dims).unwrap();
    let few = Points::row_major(&queries[..14 * data.n_dims], data.n_dims).unwrap();
    for view in views(chained.forest().trees().iter().map(|(tree, _)| tree)) {
        let view = view.min(chained.forest().domain().lifetime());
        let (a, b) = (chained.at(view).unwrap(), plain.at(view).unwrap());
        for points in [points, few] {
            let (x, y) = (a.predict_with_std(points).unwrap(), b.predict_with_std(points).unwrap());
            assert_eq!(bits(&x.mean), bits(&y.mean), "lifetime {view:?}");
            assert_eq!(bits(&x.std), bits(&y.std));
        }
        let quantiles = |model: &RegressionForest| model.predict_quantiles(few, &[0.1, 0.5]).unwrap();
        assert_eq!(bits(&quantiles(&a)), bits(&quantiles(&b)));
        assert_eq!(bits(&a.equivalent_kernel(few).unwrap()), bits(&b.equivalent_kernel(few).unwrap()));
        assert_eq!(bits(&a.relevance()), bits(&b.relevance()));
        assert_eq!(a.apply(points).unwrap(), b.apply(points).unwrap());
    }
    let zeros = vec![0.5; points.n_rows()];
    let path = |model: &RegressionForest| model.path(&[(points, &zeros)], &mut Progress::none()).unwrap();
    assert_eq!(path(chained), path(plain));
}

#[test]
fn regression_says_the_same_with_and_without_chains() {
    for (n, n_dims) in CASES {
        let data = Data::new(n, n_dims, 3);
        for lifetime in LIFETIMES {
            for (leaf_model, unseen) in [
                (LeafModel::Hierarchical, Unseen::Keyed),
                (LeafModel::Independent, Unseen::Keyed),
                (LeafModel::Independent, Unseen::Integrate),
            ] {
                let params =
                    RegressionParams { forest: forest_params(lifetime), leaf_model, unseen, ..Default::default() };
                let fit = || params.fit(data.points(), &data.y).unwrap();
                assert_same_regression(&fit(), &all_without_chains(fit), &data);
            }
        }
    }
}

#[test]
fn learning_and_forgetting_keep_statistics_right_where_chains_split_and_join() {
    for (n, n_dims) in CASES {
        let data = Data::new(n, n_dims, 8);
        let params = RegressionParams { forest: forest_params(f64::INFINITY), ..Default::default() };
        // Two rows fix a box that others leave: it is extended on the path.
        let grow = || {
            let first = Points::row_major(&data.x[..2 * n_dims], n_dims).unwrap();
            let mut model = params.fit(first, &data.y[..2]).unwrap();
            for row in 2..data.n() {
                let (x, y, _) = data.row(row);
                model.learn(x, y).unwrap();
            }
            for row in (0..data.n()).filter(|row| row % 3 != 0) {
                let (x, y, _) = data.row(row);
                model.forget(x, y).unwrap();
            }
            // Back again, in one batch.
            let back: Vec<usize> = (0..data.n()).filter(|row| row % 3 == 1).collect();
            let x: Vec<f64> = back.iter().flat_map(|r| &data.x[r * n_dims..][..n_dims]).copied().collect();
            let y: Vec<f64> = back.iter().map(|r| data.y[*r]).collect();
            model.learn(Points::row_major(&x, n_dims).unwrap(), &y).unwrap();
            model
        };
        assert_same_regression(&grow(), &all_without_chains(grow), &data);
    }
}

#[test]
fn raising_the_lifetime_through_a_chain_keeps_statistics_right() {
    let data = Data::new(90, 5, 4);
    let params = RegressionParams { forest: forest_params(0.5), ..Default::default() };
    let grow = || {
        let mut model = params.fit(data.points(), &data.y).unwrap();
        for lifetime in [5.0, 40.0, 1e4, f64::INFINITY] {
            model.raise_lifetime(Lifetime::new(lifetime).unwrap()).unwrap();
        }
        model
    };
    assert_same_regression(&grow(), &all_without_chains(grow), &data);
}

fn assert_same_classification(chained: &ClassificationForest, plain: &ClassificationForest, data: &Data) {
    assert!(plain.forest().trees().iter().all(|(tree, _)| tree.n_chains() == 0));
    assert_eq!(chained.gamma().to_bits(), plain.gamma().to_bits());
    let queries = data.queries();
    let points = Points::row_major(&queries, data.n_dims).unwrap();
    let mut lifetimes = views(chained.forest().trees().iter().map(|(tree, _)| tree));
    lifetimes.retain(|view| *view <= chained.terminal_lifetime());
    for view in &lifetimes {
        let (a, b) = (chained.at(*view).unwrap(), plain.at(*view).unwrap());
        assert_eq!(bits(&a.predict_proba(points).unwrap()), bits(&b.predict_proba(points).unwrap()));
        assert_eq!(bits(&a.relevance()), bits(&b.relevance()));
        assert_eq!(a.apply(points).unwrap(), b.apply(points).unwrap());
    }
    let truth = vec![1; points.n_rows()];
    for grid in [None, Some(&lifetimes[..])] {
        let path = |model: &ClassificationForest| model.path(&[(points, &truth)], grid, &mut Progress::none()).unwrap();
        let (a, b) = (path(chained), path(plain));
        assert_eq!((a.error(), a.log_loss()), (b.error(), b.log_loss()));
    }
}

#[test]
fn classification_says_the_same_with_and_without_chains() {
    for (n, n_dims) in CASES {
        let data = Data::new(n, n_dims, 6);
        for lifetime in LIFETIMES {
            for (unseen, gamma) in [(Unseen::Keyed, GammaChoice::Auto), (Unseen::Integrate, GammaChoice::Value(2.0))] {
                let params =
                    ClassificationParams { forest: forest_params(lifetime), gamma, unseen, ..Default::default() };
                let fit = || {
                    let mut model = params.clone().n_classes(3).fit(data.points(), &data.labels).unwrap();
                    for row in (0..data.n()).filter(|row| row % 4 == 1) {
                        let (x, _, label) = data.row(row);
                        model.forget(x, label).unwrap();
                    }
                    for row in (0..data.n()).filter(|row| row % 8 == 1) {
                        let (x, _, label) = data.row(row);
                        model.learn(x, label).unwrap();
                    }
                    model
                };
                assert_same_classification(&fit(), &all_without_chains(fit), &data);
            }
        }
    }
}

#[test]
fn features_and_kernel_paths_are_the_same_with_and_without_chains() {
    for (n, n_dims) in CASES {
        let data = Data::new(n, n_dims, 7);
        let queries = data.queries();
        let points = Points::row_major(&queries, n_dims).unwrap();
        let lifetime = Lifetime::new(300.0).unwrap();
        let learn = || {
            let mut map = MondrianFeatures::on(&forest_params(1.0), data.points(), lifetime).unwrap();
            for row in 0..data.n() {
                map.learn(data.row(row).0).unwrap();
            }
            map
        };
        let (chained, plain) = (learn(), all_without_chains(learn));
        for view in views(chained.forest().trees().iter().map(|(tree, ())| tree)) {
            if view <= lifetime {
                let (a, b) = (chained.at(view).unwrap(), plain.at(view).unwrap());
                assert_eq!(a.training().unwrap(), b.training().unwrap());
                assert_eq!(a.transform(points).unwrap(), b.transform(points).unwrap());
            }
        }
        let params = KernelRidge::params().trees(forest_params(1.0)).lifetime(lifetime).alpha(0.1);
        let fit = || params.fit(data.points(), &data.y).unwrap();
        let (chained, plain) = (fit(), all_without_chains(fit));
        let truth = vec![0.5; points.n_rows()];
        let path =
            |model: &KernelRidge| model.path(&[(points, &truth)], &PathMethod::Removal, &mut Progress::none()).unwrap();
        assert_eq!(path(&chained), path(&plain));
    }
}
