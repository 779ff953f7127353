//! The classification forest: its exact promises, its slow twin, its path and its refusals.

use mondrian::FitOptions;
use mondrian::GammaChoice;
use mondrian::Loss;
use mondrian::Progress;
use mondrian::Saved;
use mondrian::process::{NodeKey, Side};
use mondrian::{ClassificationForest, ClassificationParams, ForestParams, LifetimeChoice, Unseen, WeightsChoice};
use mondrian::{Error, Lifetime, Points};

/// Rows with classes: repeated points (with equal and with other classes), near-repeated ones, a constant column.
struct Data {
    x: Vec<f64>,
    labels: Vec<u32>,
    n_dims: usize,
    n_classes: usize,
}

impl Data {
    fn new(n: usize, n_dims: usize, n_classes: usize, seed: u64) -> Self {
        let draw = |row: usize, what: usize| NodeKey::root(seed, row as u64).fork(what as u64).draw(0).uniform();
        let (mut x, mut labels) = (Vec::new(), Vec::new());
        for row in 0..n {
            let (from, by) = match row % 7 {
                3 => (row - 1, 0.0),
                5 => (row / 2, 1e-7),
                _ => (row, 0.0),
            };
            let first = draw(from, 0);
            x.extend((0..n_dims).map(|d| if n_dims > 2 && d == 1 { 0.25 } else { draw(from, d) + by }));
            let noise = if row % 4 == 0 { draw(row, 1000) } else { first };
            labels.push((noise * n_classes as f64) as u32);
        }
        Self { x, labels, n_dims, n_classes }
    }

    fn points(&self) -> Points<'_> {
        Points::row_major(&self.x, self.n_dims).unwrap()
    }

    fn n(&self) -> usize {
        self.labels.len()
    }

    /// Some of the rows.
    fn rows(&self, keep: impl Fn(usize) -> bool) -> Self {
        let rows: Vec<usize> = (0..self.n()).filter(|r| keep(*r)).collect();
        let x = rows.iter().flat_map(|r| &self.x[r * self.n_dims..][..self.n_dims]).copied().collect();
        Self { x, labels: rows.iter().map(|r| self.labels[*r]).collect(), ..*self }
    }

    /// Points around the data, some of them outside its box.
    fn queries(&self) -> Vec<f64> {
        let mut queries = self.x.clone();
        for row in 0..40 {
            let draw = |d: usize| NodeKey::root(77, row).fork(d as u64).draw(0).uniform();
            queries.extend((0..self.n_dims).map(|d| if row % 2 == 0 { draw(d) } else { 3.0 * draw(d) - 1.0 }));
        }
        queries
    }
}

fn lifetime(value: f64) -> Lifetime {
    Lifetime::new(value).unwrap()
}

fn params(value: f64, n_trees: usize) -> ClassificationParams {
    let lifetime = LifetimeChoice::Value(lifetime(value));
    let forest = ForestParams { n_trees, lifetime, seed: 4, weights: WeightsChoice::Raw, ..ForestParams::default() };
    ClassificationParams { forest, gamma: GammaChoice::Value(3.0), ..ClassificationParams::default() }
}

fn fit(data: &Data, params: &ClassificationParams) -> ClassificationForest {
    params.clone().n_classes(data.n_classes).fit(data.points(), &data.labels).unwrap()
}

/// A model on the box of all of `data`, with no rows.
fn empty(data: &Data, params: &ClassificationParams) -> ClassificationForest {
    params.clone().n_classes(data.n_classes).unfitted(data.points()).unwrap()
}

fn learn(model: &mut ClassificationForest, data: &Data) {
    model.learn(data.points(), &data.labels).unwrap();
}

fn probabilities(model: &ClassificationForest, queries: &[f64]) -> Vec<u64> {
    let n_dims = model.forest().n_dims();
    let p = model.predict_proba(Points::row_major(queries, n_dims).unwrap()).unwrap();
    p.iter().map(|p| p.to_bits()).collect()
}

/// (rows, dimensions, classes); more than 64 classes need a second word of bits.
const CASES: [(usize, usize, usize); 5] = [(1, 1, 2), (60, 1, 3), (150, 5, 4), (90, 50, 2), (80, 2, 100)];

fn for_all(check: impl Fn(&Data, &ClassificationParams)) {
    for (n, n_dims, n_classes) in CASES {
        let data = Data::new(n, n_dims, n_classes, 3);
        for lifetime in [0.0, 0.7, 4.0, 60.0, f64::INFINITY] {
            for unseen in [Unseen::Keyed, Unseen::Integrate] {
                check(&data, &ClassificationParams { unseen, ..params(lifetime, 3) });
            }
        }
    }
}

#[test]
fn probabilities_sum_to_one() {
    for_all(|data, params| {
        let model = fit(data, params);
        let p = model.predict_proba(Points::row_major(&data.queries(), data.n_dims).unwrap()).unwrap();
        for p in p.chunks_exact(data.n_classes) {
            assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12 && p.iter().all(|p| *p >= 0.0), "{p:?}");
        }
    });
}

#[test]
fn a_row_alone_is_the_row_among_others() {
    for_all(|data, params| {
        let model = fit(data, params);
        let queries = data.queries();
        let alone: Vec<u64> = queries.chunks(data.n_dims).flat_map(|x| probabilities(&model, x)).collect();
        assert_eq!(alone, probabilities(&model, &queries));
    });
}

#[test]
fn order_of_arrival_and_batches_change_nothing() {
    for_all(|data, params| {
        let expected = probabilities(&fit(data, params), &data.queries());
        for size in [1, 7, 33] {
            let mut model = empty(data, params);
            for batch in (0..data.n()).collect::<Vec<_>>().rchunks(size) {
                learn(&mut model, &data.rows(|r| batch.contains(&r)));
            }
            assert_eq!(probabilities(&model, &data.queries()), expected, "batches of {size}");
        }
    });
}

#[test]
fn merging_is_learning_all() {
    for_all(|data, params| {
        let (mut a, mut b) = (empty(data, params), empty(data, params));
        learn(&mut a, &data.rows(|r| r % 3 == 0));
        learn(&mut b, &data.rows(|r| r % 3 != 0));
        a.merge(&b).unwrap();
        assert_eq!(probabilities(&a, &data.queries()), probabilities(&fit(data, params), &data.queries()));
    });
}

#[test]
fn forgetting_gives_the_model_that_never_saw_the_rows() {
    for_all(|data, params| {
        let mut model = fit(data, params);
        let gone = data.rows(|r| r % 3 != 0);
        model.forget(gone.points(), &gone.labels).unwrap();
        let mut never = empty(data, params);
        learn(&mut never, &data.rows(|r| r % 3 == 0));
        assert_eq!(probabilities(&model, &data.queries()), probabilities(&never, &data.queries()));
        // Rows that were never learned, or too often asked for: nothing changes.
        let before = probabilities(&model, &data.queries());
        if gone.n() > 0 {
            assert!(matches!(model.forget(gone.points(), &gone.labels), Err(Error::UnknownRow { .. })));
        }
        let twice = [data.x[..data.n_dims].to_vec(), data.x[..data.n_dims].to_vec()].concat();
        let points = Points::row_major(&twice, data.n_dims).unwrap();
        let found = model.forget(points, &[data.labels[0], data.labels[0]]);
        assert_eq!(found, Err(Error::UnknownRow { row: 1 }));
        assert_eq!(probabilities(&model, &data.queries()), before);
        model.forget(data.rows(|r| r % 3 == 0).points(), &data.rows(|r| r % 3 == 0).labels).unwrap();
        assert_eq!(probabilities(&model, &data.queries()), probabilities(&empty(data, params), &data.queries()));
    });
}

#[test]
fn a_smaller_lifetime_is_a_view_and_a_larger_one_refines() {
    for (n, n_dims, n_classes) in CASES {
        let data = Data::new(n, n_dims, n_classes, 9);
        for gamma in [GammaChoice::Value(2.0), GammaChoice::Auto] {
            let full = fit(&data, &ClassificationParams { gamma, ..params(f64::INFINITY, 3) });
            let mut raised = fit(&data, &ClassificationParams { gamma, ..params(0.0, 3) });
            for value in [0.0, 0.7, 4.0, 60.0, f64::INFINITY] {
                let expected = fit(&data, &ClassificationParams { gamma, ..params(value, 3) });
                let bits = probabilities(&expected, &data.queries());
                assert_eq!(probabilities(&full.at(lifetime(value)).unwrap(), &data.queries()), bits, "view at {value}");
                raised.raise_lifetime(lifetime(value)).unwrap();
                assert_eq!(probabilities(&raised, &data.queries()), bits, "raised to {value}");
                assert_eq!(
                    raised.apply(data.points()).unwrap(),
                    full.at(lifetime(value)).unwrap().apply(data.points()).unwrap()
                );
            }
        }
    }
}

#[test]
fn extended_boxes_keep_every_promise() {
    for (n, n_dims, n_classes) in CASES {
        let data = Data::new(n, n_dims, n_classes, 21);
        // The first box is that of two rows shrunk about the middle; the rest sticks out.
        let first: Vec<f64> = data.x.iter().take(2 * n_dims).map(|x| 0.45 + 0.1 * x).collect();
        let first = Points::row_major(&first, n_dims).unwrap();
        let start = || params(20.0, 3).n_classes(n_classes).unfitted(first).unwrap();
        let (mut batch, mut online) = (start(), start());
        learn(&mut batch, &data);
        (0..n).for_each(|row| learn(&mut online, &data.rows(|r| r == row)));
        assert_eq!(probabilities(&online, &data.queries()), probabilities(&batch, &data.queries()));
        let all = data.rows(|_| true);
        online.forget(all.points(), &all.labels).unwrap();
        assert_eq!(online.forest().domain().rung(), 0);
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let data = Data::new(300, 4, 5, 8);
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let auto = ClassificationParams { gamma: GammaChoice::Auto, ..params(f64::INFINITY, 9) };
            let model = fit(&data, &auto);
            let path = model.path(&[(data.points(), &data.labels)], None, &mut Progress::none()).unwrap();
            (probabilities(&model, &data.queries()), path.log_loss().clone())
        })
    };
    let one = run(1);
    assert!(run(2) == one && run(7) == one);
}

/// The rule of the stable process, as it stands in docs/design.md, "Classification".
fn rule(counts: &[f64], d: f64, parent: &[f64]) -> Vec<f64> {
    let tables: f64 = counts.iter().map(|c| c.min(1.0)).sum();
    let total: f64 = counts.iter().sum();
    counts.iter().zip(parent).map(|(c, p)| (c - d * c.min(1.0) + d * tables * p) / total).collect()
}

/// One tree's answer for a point of the box that leaves its path at a given time, from the process itself: no tree is
/// stored, the cuts of the point's cells are drawn one after the other and all rows are looked at each time.
fn twin(model: &ClassificationForest, data: &Data, tree: usize, x: &[f64], leaves: f64) -> Vec<f64> {
    let (domain, gamma, end) = (model.forest().domain(), model.gamma(), model.lifetime().get());
    let coordinates = model.forest().coordinates(data.points()).unwrap();
    let row = |r: usize| &coordinates[r * data.n_dims..][..data.n_dims];
    let count = |rows: &[usize]| {
        let mut counts: Vec<f64> = vec![0.0; data.n_classes];
        rows.iter().for_each(|r| counts[data.labels[*r] as usize] += 1.0);
        counts
    };
    let present = |rows: &[usize]| -> Vec<f64> { count(rows).iter().map(|c| c.min(1.0)).collect() };
    let mut cell = domain.root_cell(domain.tree_key(tree));
    let mut rows: Vec<usize> = (0..data.n()).collect();
    let (mut parent, mut birth) = (vec![1.0 / data.n_classes as f64; data.n_classes], 0.0);
    loop {
        let cut = cell.next_cut().filter(|cut| cut.time <= end && !rows.iter().all(|r| row(*r) == x));
        let time = cut.map_or(end, |cut| cut.time);
        if leaves < time {
            return rule(&present(&rows), (-gamma * (leaves - birth)).exp(), &parent);
        }
        let Some(cut) = cut else { return rule(&count(&rows), (-gamma * (end - birth)).exp(), &parent) };
        let side = |x: &[f64]| Side::of(x[cut.dim as usize], cut.location);
        let (with, without): (Vec<usize>, Vec<usize>) = rows.iter().partition(|r| side(row(**r)) == side(x));
        let d = (-gamma * (time - birth)).exp();
        if with.is_empty() {
            return rule(&present(&rows), d, &parent);
        }
        if !without.is_empty() {
            let counts: Vec<f64> = present(&with).iter().zip(present(&without)).map(|(a, b)| a + b).collect();
            (parent, birth) = (rule(&counts, d, &parent), time);
        }
        rows = with;
        cell.enter(&cut, side(x));
    }
}

#[test]
fn agrees_with_the_process_itself() {
    for (n, n_dims, n_classes) in CASES {
        let data = Data::new(n, n_dims, n_classes, 13);
        for value in [0.0, 0.7, 4.0, 60.0, f64::INFINITY] {
            let model = fit(&data, &params(value, 3));
            let queries = data.queries();
            let found = model.predict_proba(Points::row_major(&queries, n_dims).unwrap()).unwrap();
            for (x, found) in queries.chunks_exact(n_dims).zip(found.chunks_exact(n_classes)) {
                let mut inside = x.to_vec();
                if model.forest().domain().clamp(&mut inside) > 0.0 {
                    continue;
                }
                let trees: Vec<Vec<f64>> = (0..3).map(|t| twin(&model, &data, t, &inside, f64::INFINITY)).collect();
                for k in 0..n_classes {
                    let mean = trees.iter().map(|t| t[k]).sum::<f64>() / 3.0;
                    assert!((found[k] - mean).abs() < 1e-12, "λ = {value}, x = {x:?}, class {k}: {} {mean}", found[k]);
                }
            }
        }
    }
}

#[test]
fn a_row_outside_the_box_leaves_its_path_at_a_rate() {
    // Against the twin, averaged over the quantiles of the leaving time: the integrand is piecewise smooth with steps at
    // the cuts, so 4000 quantiles leave an error of a few thousandths of its range, below 1.
    let data = Data::new(40, 2, 3, 2);
    let model = fit(&data, &params(6.0, 1));
    for x in [[1.3, 0.5], [-0.4, 1.7], [1.02, 0.9]] {
        let mut inside = x.to_vec();
        let rate = model.forest().domain().clamp(&mut inside);
        assert!(rate > 0.0);
        let n = 4000;
        let mut expected = vec![0.0; 3];
        for i in 0..n {
            let leaves = -((f64::from(i) + 0.5) / f64::from(n)).ln() / rate;
            let p = twin(&model, &data, 0, &inside, leaves);
            expected.iter_mut().zip(p).for_each(|(e, p)| *e += p / f64::from(n));
        }
        let found = model.predict_proba(Points::row_major(&x, 2).unwrap()).unwrap();
        for (a, b) in found.iter().zip(&expected) {
            assert!((a - b).abs() < 2e-3, "{x:?}: {found:?} {expected:?}");
        }
    }
}

#[test]
fn integrating_unseen_cuts_is_the_mean_of_keyed_ones() {
    // Both answers have the same mean over trees. 2000 trees, the mean difference in each of 12 answers rejected beyond
    // 5 standard errors: false alarm below 12 × 6e-7. A discount integrated with half the rate is off by more than 10.
    let data = Data::new(12, 2, 2, 6);
    let queries: Vec<f64> = (0..12).map(|i| NodeKey::root(1, i).draw(0).uniform()).collect();
    let points = Points::row_major(&queries, 2).unwrap();
    let n = 2000;
    let mut differences = vec![(0.0, 0.0); 6];
    for seed in 0..n {
        let answer = |unseen| {
            let mut params = ClassificationParams { unseen, ..params(5.0, 1) };
            params.forest.seed = seed;
            fit(&data, &params).predict_proba(points).unwrap()
        };
        let (keyed, integrated) = (answer(Unseen::Keyed), answer(Unseen::Integrate));
        for (row, (sum, squares)) in differences.iter_mut().enumerate() {
            let d = keyed[2 * row] - integrated[2 * row];
            *sum += d;
            *squares += d * d;
        }
    }
    for (sum, squares) in differences {
        let n = n as f64;
        let z = sum / (squares - sum * sum / n).max(1e-300).sqrt();
        assert!(z.abs() < 5.0 && squares > 0.0, "z = {z}");
    }
}

#[test]
fn new_classes_come_later_and_all_stay() {
    let data = Data::new(60, 3, 70, 5);
    let early = Data { n_classes: 2, ..data.rows(|r| data.labels[r] < 2) };
    let late = data.rows(|r| data.labels[r] >= 2);
    let mut model = params(9.0, 2).n_classes(2).unfitted(data.points()).unwrap();
    learn(&mut model, &early);
    assert_eq!(model.n_classes(), 2);
    learn(&mut model, &late);
    // The last class has no rows.
    assert_eq!(model.n_classes(), 69);
    model.grow_classes(70).unwrap();
    assert_eq!(model.n_classes(), 70);
    assert_eq!(probabilities(&model, &data.queries()), probabilities(&fit(&data, &params(9.0, 2)), &data.queries()));
    model.forget(late.points(), &late.labels).unwrap();
    assert_eq!(model.n_classes(), 70);
}

#[test]
fn classes_can_be_numbered_anew() {
    let data = Data::new(50, 2, 3, 5);
    let model = fit(&data, &params(9.0, 2)).renumbered(&[4, 0, 2], 5).unwrap();
    let labels = data.labels.iter().map(|k| [4, 0, 2][*k as usize]).collect();
    let other = Data { labels, n_classes: 5, x: data.x.clone(), n_dims: 2 };
    assert_eq!(probabilities(&model, &data.queries()), probabilities(&fit(&other, &params(9.0, 2)), &data.queries()));
    assert!(model.renumbered(&[0, 0, 1, 2, 3], 5).is_err());
}

#[test]
fn weights_are_repetitions() {
    let data = Data::new(30, 2, 3, 5);
    let weights: Vec<f64> = (0..30).map(|r| f64::from(r % 4)).collect();
    let weighted =
        params(9.0, 2).n_classes(3).fit_with(data.points(), &data.labels, FitOptions::weighted(&weights)).unwrap();
    let rows: Vec<usize> = (0..30).flat_map(|r| vec![r; r % 4]).collect();
    let x = rows.iter().flat_map(|r| &data.x[r * 2..][..2]).copied().collect();
    let again = Data { x, labels: rows.iter().map(|r| data.labels[*r]).collect(), ..data };
    assert_eq!(
        probabilities(&weighted, &data.queries()),
        probabilities(&fit(&again, &params(9.0, 2)), &data.queries())
    );
    let half = vec![0.5; 30];
    let refused = params(9.0, 2).n_classes(3).fit_with(data.points(), &data.labels, FitOptions::weighted(&half));
    assert!(matches!(refused, Err(Error::InvalidParameter { name: "sample weight", .. })));
}

#[test]
fn the_path_is_what_views_say() {
    let data = Data::new(120, 3, 4, 31);
    let (train, held_out) = (data.rows(|r| r % 3 != 0), data.rows(|r| r % 3 == 0));
    for unseen in [Unseen::Keyed, Unseen::Integrate] {
        for (value, n_trees) in [(8.0, 5), (f64::INFINITY, 1)] {
            let model = fit(&train, &ClassificationParams { unseen, ..params(value, n_trees) });
            let path = model.path(&[(held_out.points(), &held_out.labels)], None, &mut Progress::none()).unwrap();
            let lifetimes = path.log_loss().lifetimes().to_vec();
            assert!(lifetimes[0] == 0.0 && *lifetimes.last().unwrap() == value && lifetimes.len() > 20);
            let check = |at: f64, set: &Data, error: f64, log_loss: f64| {
                let p = path.at(lifetime(at)).unwrap().predict_proba(set.points()).unwrap();
                let (mut wrong, mut loss) = (0.0, 0.0);
                for (p, y) in p.chunks_exact(4).zip(&set.labels) {
                    let best = (0..4).fold(0, |best, k| if p[k] > p[best] { k } else { best });
                    wrong += f64::from(best != *y as usize);
                    loss -= p[*y as usize].max(f64::EPSILON).ln();
                }
                let n = set.n() as f64;
                assert!((wrong / n - error).abs() < 1e-12 && (loss / n - log_loss).abs() < 1e-9, "λ = {at}");
            };
            for (i, at) in lifetimes.iter().enumerate() {
                check(*at, &train, path.error().train()[i], path.log_loss().train()[i]);
                check(*at, &held_out, path.error().validation()[0][i], path.log_loss().validation()[0][i]);
            }
            for at in [0.01, 0.5, 3.3] {
                let value = |loss| path.value_at(loss, lifetime(at)).unwrap();
                check(at, &held_out, value(Loss::Error), value(Loss::LogLoss));
            }
        }
    }
    let model = fit(&train, &params(8.0, 2));
    let grid = [lifetime(2.0), lifetime(1.0)];
    let path = model.path(&[], Some(&grid), &mut Progress::none()).unwrap();
    assert_eq!(path.error().lifetimes(), [0.0, 1.0, 2.0]);
    assert!(model.path(&[], Some(&[lifetime(9.0)]), &mut Progress::none()).is_err());
    let cancelled = model.path(&[], None, &mut Progress::new(&mut |_| std::ops::ControlFlow::Break(())));
    assert_eq!(cancelled.unwrap_err(), Error::Cancelled);
}

#[test]
fn automatic_values_are_functions_of_the_rows() {
    let data = Data::new(400, 2, 3, 41);
    let forest = ForestParams { n_trees: 10, ..ForestParams::default() };
    let params = ClassificationParams { forest, ..ClassificationParams::default() };
    let model = fit(&data, &params);
    let backwards: Vec<usize> = (0..data.n()).rev().collect();
    let x = backwards.iter().flat_map(|r| &data.x[r * 2..][..2]).copied().collect();
    let other = fit(&Data { x, labels: backwards.iter().map(|r| data.labels[*r]).collect(), ..data }, &params);
    assert_eq!((model.gamma(), model.lifetime()), (other.gamma(), other.lifetime()));
    assert!(model.lifetime() > Lifetime::ZERO);
    assert_eq!(fit(&data.rows(|r| r < 5), &params).lifetime(), Lifetime::INFINITE, "too few rows to choose from");
    // Three bands along the first input, a quarter of the labels drawn at random: three quarters and a third of the rest.
    let fresh = Data::new(300, 2, 3, 42);
    let right = model.predict(fresh.points()).unwrap().iter().zip(&fresh.labels).filter(|(a, b)| a == b).count();
    assert!(right as f64 > 0.7 * 300.0, "{right} of 300");
    let relevance = model.relevance();
    assert!((relevance.iter().sum::<f64>() - 1.0).abs() < 1e-12 && relevance[0] > relevance[1], "{relevance:?}");
}

#[test]
fn saved_and_read_again_it_is_the_same() {
    for_all(|data, params| {
        let model = fit(data, params);
        let again = ClassificationForest::from_bytes(&model.to_bytes().unwrap()).unwrap();
        assert_eq!(probabilities(&again, &data.queries()), probabilities(&model, &data.queries()));
        assert_eq!(again.to_bytes().unwrap(), model.to_bytes().unwrap());
    });
    let data = Data::new(20, 2, 3, 1);
    let model = fit(&data, &ClassificationParams::default()).at(lifetime(2.0)).unwrap();
    let mut archive = model.to_archive().unwrap();
    assert_eq!(ClassificationForest::from_archive(&archive).unwrap().lifetime(), lifetime(2.0));
    assert!(archive.insert_vec("labels/class", vec![0_u32]).is_err(), "names are given once");
}

#[test]
fn bad_input_is_refused_with_its_values() {
    let data = Data::new(20, 2, 3, 1);
    let fit = |labels: &[u32], n_classes, params: ClassificationParams| {
        params.n_classes(n_classes).fit(data.points(), labels).map(|_| ())
    };
    let good = params(1.0, 2);
    assert!(matches!(fit(&data.labels[1..], 3, good.clone()), Err(Error::LengthMismatch { found: 19, .. })));
    assert!(matches!(fit(&data.labels, 2, good.clone()), Err(Error::InvalidParameter { name: "label", .. })));
    for gamma in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let bad = ClassificationParams { gamma: GammaChoice::Value(gamma), ..good.clone() };
        assert!(matches!(fit(&data.labels, 3, bad), Err(Error::InvalidParameter { name: "gamma", .. })));
    }
    let none = Points::row_major(&[], 2).unwrap();
    assert!(matches!(good.clone().n_classes(3).fit(none, &[]), Err(Error::Empty { .. })));
    let mut model = good.clone().n_classes(3).fit(data.points(), &data.labels).unwrap();
    let before = probabilities(&model, &data.queries());
    let wide = Points::row_major(&[0.0; 3], 3).unwrap();
    assert!(model.predict_proba(wide).is_err() && model.learn(wide, &[0]).is_err());
    assert!(matches!(model.learn(data.points(), &[u32::MAX; 20]), Err(Error::TooLarge { what: "classes", .. })));
    let mut other = ClassificationParams { gamma: GammaChoice::Value(4.0), ..good.clone() };
    let stranger = |params: ClassificationParams| params.n_classes(3).fit(data.points(), &data.labels).unwrap();
    assert!(matches!(model.merge(&stranger(other.clone())), Err(Error::Incompatible { .. })));
    other.gamma = good.gamma;
    other.forest.seed = 99;
    assert_eq!(model.merge(&stranger(other)), Err(Error::Incompatible { what: "seeds" }));
    assert_eq!(probabilities(&model, &data.queries()), before);
    assert_eq!(model.predict_proba(none).unwrap(), Vec::<f64>::new());
}
