//! Densities: what they promise, against slow and obvious twins.

use mondrian::Progress;
use mondrian::Saved;
use mondrian::Validation;
use mondrian::internals::process::Cell;
use mondrian::process::{Bounds, Measure, NodeKey, Side, Weights};
use mondrian::{DensityClassifier, DensityForest, DensityParams, DensityView, GammaChoice};
use mondrian::{Error, Lifetime, Points};
use mondrian::{ForestParams, LifetimeChoice, MeasureChoice, WeightsChoice};

/// Rows in [0, 1)^D, denser towards the origin, every seventh a repetition of the one before.
fn cloud(n: usize, n_dims: usize, seed: u64) -> Vec<f64> {
    let mut data: Vec<f64> = Vec::new();
    for row in 0..n as u64 {
        for dim in 0..n_dims as u64 {
            let u = NodeKey::root(seed, row - u64::from(row % 7 == 1)).fork(dim).draw(0).uniform();
            data.push(u * u);
        }
    }
    data
}

fn points(data: &[f64], n_dims: usize) -> Points<'_> {
    Points::row_major(data, n_dims).unwrap()
}

fn params(n_trees: usize, lifetime: f64, gamma: f64) -> DensityParams {
    let lifetime = LifetimeChoice::Value(Lifetime::new(lifetime).unwrap());
    let forest = ForestParams { n_trees, lifetime, seed: 5, ..ForestParams::default() };
    DensityParams { gamma: GammaChoice::Value(gamma), ..DensityParams::from(forest) }
}

fn unit_box(params: &mut DensityParams, n_dims: usize) {
    params.forest.bounds = Some(Bounds::new(&vec![0.0; n_dims], &vec![1.0; n_dims]).unwrap());
}

/// The three measures, on a box larger than the data.
fn cases(n_dims: usize, lifetime: f64) -> Vec<DensityParams> {
    let plain = params(4, lifetime, 0.6);
    let mut weighted = plain.clone();
    weighted.forest.weights =
        WeightsChoice::Given(Weights::new((0..n_dims).map(|d| 0.5 + d as f64).collect()).unwrap());
    let mut quantile = plain.clone();
    quantile.forest.measure = MeasureChoice::Quantile;
    vec![plain, weighted, quantile]
}

/// Mass over volume in the cell of x, by counting rows at every cut from the root: nothing of the tree is used.
fn slow_density(model: &DensityForest, rows: &[f64], x: &[f64], lifetime: f64) -> f64 {
    let (forest, n_dims) = (model.forest(), x.len());
    let measure = forest.measure();
    let coordinates = |raw: &[f64]| -> Vec<f64> {
        raw.iter().enumerate().map(|(at, x)| measure.coordinate(at % n_dims, *x)).collect()
    };
    let (rows, x) = (coordinates(rows), coordinates(x));
    let mut sum = 0.0;
    for index in 0..forest.n_trees() {
        let mut cell: Cell = forest.domain().root_cell(forest.domain().tree_key(index));
        let mut held: Vec<&[f64]> = rows.chunks_exact(n_dims).collect();
        let (mut lower, mut upper) = (model.bounds().lower().to_vec(), model.bounds().upper().to_vec());
        let (mut mass, mut depth) = (1.0, 0.0);
        while let Some(cut) = cell.next_cut().filter(|cut| cut.time <= lifetime) {
            let dim = cut.dim as usize;
            let place = measure.place(dim, cut.location);
            let side = Side::of(x[dim], cut.location);
            let share = match side {
                Side::Below => (place - lower[dim]) / (upper[dim] - lower[dim]),
                Side::Above => (upper[dim] - place) / (upper[dim] - lower[dim]),
            };
            let n = held.len() as f64;
            held.retain(|row| Side::of(row[dim], cut.location) == side);
            let strength = model.gamma() * (depth + 1.0) * (depth + 1.0);
            mass *= (strength * share + held.len() as f64) / (strength + n);
            match side {
                Side::Below => upper[dim] = place,
                Side::Above => lower[dim] = place,
            }
            depth += 1.0;
            cell.enter(&cut, side);
        }
        let volume: f64 = lower.iter().zip(&upper).map(|(a, b)| b - a).product();
        sum += mass / volume;
    }
    sum / forest.n_trees() as f64
}

#[test]
fn log_densities_are_mass_over_volume() {
    for (n_dims, lifetime) in [(1, 12.0), (2, 5.0), (5, 2.0)] {
        let data = cloud(40, n_dims, 3);
        let queries: Vec<f64> = cloud(30, n_dims, 4).into_iter().chain(data.iter().copied()).collect();
        for params in cases(n_dims, lifetime) {
            let model = params.fit(points(&data, n_dims)).unwrap();
            for at in [0.0, 0.3 * lifetime, lifetime] {
                let view = model.at(Lifetime::new(at).unwrap()).unwrap();
                let found = view.log_density(points(&queries, n_dims)).unwrap();
                for (x, log) in queries.chunks_exact(n_dims).zip(found) {
                    if !model.bounds().contains(x) {
                        assert_eq!(log, f64::NEG_INFINITY);
                        continue;
                    }
                    let expected = slow_density(&model, &data, x, at).ln();
                    assert!((log - expected).abs() < 1e-9, "D = {n_dims}, λ = {at}, {x:?}: {log} {expected}");
                }
            }
        }
    }
}

#[test]
fn masses_sum_to_one_and_cells_fill_the_box() {
    for n_dims in [1, 2, 4] {
        let data = cloud(50, n_dims, 8);
        for params in cases(n_dims, 4.0) {
            let model = params.fit(points(&data, n_dims)).unwrap();
            for tree in 0..model.forest().n_trees() {
                let cells = model.cells(tree).unwrap();
                let mass: f64 = cells.iter().map(|cell| cell.mass).sum();
                let volume =
                    |lower: &[f64], upper: &[f64]| lower.iter().zip(upper).map(|(a, b)| b - a).product::<f64>();
                let filled: f64 = cells.iter().map(|cell| volume(&cell.lower, &cell.upper)).sum();
                let whole = volume(model.bounds().lower(), model.bounds().upper());
                let rows: u32 = cells.iter().map(|cell| cell.n_rows).sum();
                assert!((mass - 1.0).abs() < 1e-12, "{mass}");
                assert!((filled / whole - 1.0).abs() < 1e-10, "{filled} {whole}");
                assert_eq!(rows, 50);
            }
        }
    }
}

#[test]
fn densities_integrate_to_one() {
    // Midpoint rule. The density is piecewise constant: with h the width of a step, each of the K cut places a tree has
    // along a line is misplaced by at most h/2, so the error stays below K · h · (largest jump).
    let data = cloud(40, 1, 8);
    for params in cases(1, 10.0) {
        let model = params.fit(points(&data, 1)).unwrap();
        let (a, b) = (model.bounds().lower()[0], model.bounds().upper()[0]);
        let n = 200_000;
        let h = (b - a) / f64::from(n);
        let grid: Vec<f64> = (0..n).map(|i| a + (f64::from(i) + 0.5) * h).collect();
        let sum: f64 = model.log_density(points(&grid, 1)).unwrap().iter().map(|log| log.exp()).sum::<f64>() * h;
        assert!((sum - 1.0).abs() < 1e-3, "{sum}");
    }
    let data = cloud(40, 2, 9);
    for params in cases(2, 5.0) {
        let model = params.fit(points(&data, 2)).unwrap();
        let (lower, upper) = (model.bounds().lower(), model.bounds().upper());
        let n = 500;
        let h: Vec<f64> = (0..2).map(|d| (upper[d] - lower[d]) / f64::from(n)).collect();
        let place = |d: usize, i: i32| lower[d] + (f64::from(i) + 0.5) * h[d];
        let grid: Vec<f64> = (0..n * n).flat_map(|at| [place(0, at % n), place(1, at / n)]).collect();
        let sum: f64 = model.log_density(points(&grid, 2)).unwrap().iter().map(|log| log.exp()).sum();
        assert!((sum * h[0] * h[1] - 1.0).abs() < 1e-2, "{sum}");
    }
}

#[test]
fn leaving_one_out_is_forgetting_it() {
    for (n_dims, lifetime) in [(1, 15.0), (3, 6.0)] {
        let data = cloud(30, n_dims, 21);
        for params in cases(n_dims, lifetime) {
            let model = params.fit(points(&data, n_dims)).unwrap();
            let half = Lifetime::new(lifetime / 2.0).unwrap();
            for view in [model.view(), model.at(half).unwrap()] {
                let found = view.leave_one_out(points(&data, n_dims)).unwrap();
                for (x, log) in data.chunks_exact(n_dims).zip(&found) {
                    let mut without = model.clone();
                    without.forget(points(x, n_dims)).unwrap();
                    let expected = without.at(view.lifetime()).unwrap().log_density(points(x, n_dims)).unwrap()[0];
                    assert!((log - expected).abs() < 1e-11, "{x:?}: {log} {expected}");
                }
                let total: f64 = found.iter().sum();
                assert!((view.leave_one_out_score() - total).abs() < 1e-9);
            }
        }
    }
}

/// The bits of all log densities on a set of queries.
fn bits(view: DensityView<'_>, queries: &[f64], n_dims: usize) -> Vec<u64> {
    view.log_density(points(queries, n_dims)).unwrap().iter().map(|log| log.to_bits()).collect()
}

#[test]
fn order_batches_merging_forgetting_lifetime_and_threads_change_no_bit() {
    for n_dims in [1, 5] {
        let data = cloud(60, n_dims, 2);
        let queries: Vec<f64> = cloud(50, n_dims, 3).into_iter().chain(data.iter().copied()).collect();
        let mut params = params(6, 5.0, 0.4);
        unit_box(&mut params, n_dims);
        let model = params.fit(points(&data, n_dims)).unwrap();
        let expected = bits(model.view(), &queries, n_dims);

        let mut one_by_one = params.fit(points(&data[data.len() - n_dims..], n_dims)).unwrap();
        for x in data[..data.len() - n_dims].chunks_exact(n_dims).rev() {
            one_by_one.learn(points(x, n_dims)).unwrap();
        }
        assert_eq!(bits(one_by_one.view(), &queries, n_dims), expected);

        let (left, right) = data.split_at(20 * n_dims);
        let mut merged = params.fit(points(left, n_dims)).unwrap();
        merged.merge(&params.fit(points(right, n_dims)).unwrap()).unwrap();
        assert_eq!(bits(merged.view(), &queries, n_dims), expected);

        merged.learn(points(&queries[..30 * n_dims], n_dims)).unwrap();
        merged.forget(points(&queries[..30 * n_dims], n_dims)).unwrap();
        assert_eq!(bits(merged.view(), &queries, n_dims), expected);

        let mut longer = params.clone();
        longer.forest.lifetime = LifetimeChoice::Value(Lifetime::new(30.0).unwrap());
        let longer = longer.fit(points(&data, n_dims)).unwrap();
        assert_eq!(bits(longer.at(Lifetime::new(5.0).unwrap()).unwrap(), &queries, n_dims), expected);
        let mut raised = model.clone();
        raised.set_lifetime(Lifetime::new(30.0).unwrap()).unwrap();
        assert_eq!(bits(raised.view(), &queries, n_dims), bits(longer.view(), &queries, n_dims));
        assert_eq!(bits(raised.at(model.lifetime()).unwrap(), &queries, n_dims), expected);

        for n_threads in [1, 2, 7] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            let found = pool.install(|| bits(params.fit(points(&data, n_dims)).unwrap().view(), &queries, n_dims));
            assert_eq!(found, expected, "{n_threads} threads");
        }
    }
}

#[test]
fn without_rows_it_is_uniform() {
    let mut params = params(3, 5.0, 1.0);
    params.forest.bounds = Some(Bounds::new(&[0.0, 0.0], &[2.0, 4.0]).unwrap());
    let data = cloud(5, 2, 1);
    let mut model = params.fit(points(&data, 2)).unwrap();
    model.forget(points(&data, 2)).unwrap();
    let logs = model.log_density(points(&[0.1, 3.9, 2.0, 4.0, 0.0, 0.0, 2.1, 1.0], 2)).unwrap();
    assert_eq!(logs, [-(8.0_f64.ln()), -(8.0_f64.ln()), -(8.0_f64.ln()), f64::NEG_INFINITY]);
    assert_eq!(model.leave_one_out_score(), 0.0);
    assert_eq!(model.path(&[], &mut Progress::none()).unwrap_err(), Error::NotFitted);
}

#[test]
fn the_path_equals_a_refit_at_every_lifetime() {
    for (n_trees, n_dims, lifetime) in [(1, 1, 30.0), (7, 2, 12.0), (5, 6, 3.0)] {
        let data = cloud(45, n_dims, 31);
        let mut near = cloud(20, n_dims, 32);
        near.extend_from_slice(&data[..3 * n_dims]);
        // Two rows outside the box: counted, and left out of the mean.
        let outside = vec![1e6; 2 * n_dims];
        let far: Vec<f64> = outside.iter().chain(&near[..4 * n_dims]).copied().collect();
        let mut params = params(n_trees, lifetime, 0.3);
        unit_box(&mut params, n_dims);
        let model = params.fit(points(&data, n_dims)).unwrap();
        let sets = [points(&near, n_dims), points(&far, n_dims)];
        let found = model.path(&sets, &mut Progress::none()).unwrap();
        assert_eq!(found.n_outside(), [0, 2]);
        let path = &found;
        assert!(path.len() > 20);
        assert_eq!(path.lifetimes()[0], 0.0);
        let mut lifetimes = vec![0.0, lifetime, 0.37 * lifetime];
        for index in (1..path.len()).step_by(path.len() / 6) {
            lifetimes.extend([path.lifetimes()[index], path.lifetimes()[index].next_down()]);
        }
        // All values at lifetime 0 are the log volume of the unit box, zero: errors are relative to 1 instead.
        for at in lifetimes {
            let at = Lifetime::new(at).unwrap();
            params.forest.lifetime = LifetimeChoice::Value(at);
            let refit = params.fit(points(&data, n_dims)).unwrap();
            let index = path.index_at(at);
            let mean = |set: Points<'_>| -refit.score(set).unwrap().mean_inside();
            let pairs = [
                (path.train()[index], mean(points(&data, n_dims))),
                (path.validation()[0][index], mean(sets[0])),
                (path.validation()[1][index], mean(sets[1])),
                (path.leave_one_out().unwrap()[index], -refit.leave_one_out_score() / 45.0),
            ];
            for (curve, (value, expected)) in pairs.into_iter().enumerate() {
                assert!((value - expected).abs() < 1e-9, "curve {curve} at {at}: {value} {expected}");
            }
        }
        let best = path.best_lifetime();
        assert!((path.value_at(best) - path.selecting()[path.best_index()]).abs() == 0.0);
    }
}

#[test]
fn a_path_can_be_cancelled() {
    let data = cloud(45, 2, 31);
    let model = params(5, 4.0, 0.3).fit(points(&data, 2)).unwrap();
    let refused = model.path(&[], &mut Progress::new(&mut |_| std::ops::ControlFlow::Break(()))).unwrap_err();
    assert_eq!(refused, Error::Cancelled);
}

#[test]
fn samples_follow_the_masses() {
    // One tree: the number of 20 000 samples in each of its cells of mass p is Binomial. |z| > 5 has probability 5.7e-7 for
    // a normal, and with at least 30 expected samples a cell stays below 5e-6 for a binomial; with under 200 such cells and
    // 3 measures the false alarm is below 3e-3. A mass off by a tenth in the largest cells (p > 0.05) shows as z > 3.2 each.
    let data = cloud(25, 2, 6);
    for mut params in cases(2, 3.0) {
        params.forest.n_trees = 1;
        let model = params.fit(points(&data, 2)).unwrap();
        let n = 20_000;
        let samples = model.sample(n, 12);
        assert_eq!(samples, model.sample(n, 12));
        assert_ne!(samples[..10], model.sample(5, 13)[..]);
        for cell in model.cells(0).unwrap() {
            let inside = |x: &[f64]| (0..2).all(|d| cell.lower[d] < x[d] && x[d] <= cell.upper[d]);
            let count = samples.chunks_exact(2).filter(|x| inside(x)).count() as f64;
            let expected = cell.mass * n as f64;
            if expected >= 30.0 {
                let z = (count - expected) / (expected * (1.0 - cell.mass)).sqrt();
                assert!(z.abs() < 5.0, "{cell:?}: {count} of {expected}");
            }
        }
    }
}

/// A box that came from the data widens for rows outside it; the density is that of all rows on the same first box, and
/// forgetting the far rows gives the one before, bit for bit.
#[test]
fn rows_outside_widen_a_box_that_was_not_given() {
    let data = cloud(40, 2, 3);
    let far = [3.0, 0.2, -40.0, 0.5, 0.1, 7.0, 3.0, 0.2];
    let all: Vec<f64> = [&data[..], &far[..]].concat();
    for params in cases(2, 3.0) {
        let first = params.fit(points(&data, 2)).unwrap();
        let mut model = first.clone();
        for row in far.chunks_exact(2) {
            assert_eq!(
                model.log_density(points(row, 2)).unwrap()[0] == f64::NEG_INFINITY,
                !model.bounds().contains(row)
            );
            model.learn(points(row, 2)).unwrap();
            assert!(model.log_density(points(row, 2)).unwrap()[0].is_finite());
        }
        let mut batch = first.without_rows().unwrap();
        assert_eq!((batch.n_rows(), batch.bounds()), (0, first.bounds()));
        batch.learn(points(&all, 2)).unwrap();
        assert_eq!(bits(model.view(), &all, 2), bits(batch.view(), &all, 2));
        let mut merged = first.clone();
        let mut others = first.without_rows().unwrap();
        others.learn(points(&far, 2)).unwrap();
        merged.merge(&others).unwrap();
        assert_eq!(bits(merged.view(), &all, 2), bits(batch.view(), &all, 2));
        let loaded = DensityForest::from_bytes(&model.to_bytes().unwrap()).unwrap();
        assert_eq!((bits(loaded.view(), &all, 2), loaded.bounds()), (bits(batch.view(), &all, 2), model.bounds()));
        // By counting, on the wide box.
        for x in all.chunks_exact(2).chain([[-20.0, 5.0].as_slice()]) {
            let found = model.log_density(points(x, 2)).unwrap()[0];
            let expected = slow_density(&model, &all, x, 3.0).ln();
            assert!((found - expected).abs() < 1e-9, "{x:?}: {found} {expected}");
        }
        for tree in 0..4 {
            let cells = model.cells(tree).unwrap();
            let mass: f64 = cells.iter().map(|cell| cell.mass).sum();
            let size = |lower: &[f64], upper: &[f64]| lower.iter().zip(upper).map(|(a, b)| b - a).product::<f64>();
            let volume: f64 = cells.iter().map(|cell| size(&cell.lower, &cell.upper)).sum();
            assert!((mass - 1.0).abs() < 1e-12 && (volume.ln() - model.log_volume()).abs() < 1e-9);
        }
        assert!(model.sample(200, 1).chunks_exact(2).all(|x| model.bounds().contains(x)));
        model.forget(points(&far, 2)).unwrap();
        assert_eq!((bits(model.view(), &data, 2), model.bounds()), (bits(first.view(), &data, 2), first.bounds()));
        let before = bits(model.view(), &data, 2);
        assert!(matches!(
            model.learn(points(&[1e308, -1e308], 2)),
            Err(Error::TooLarge { .. } | Error::NotFinite { .. })
        ));
        assert_eq!(bits(model.view(), &data, 2), before);
    }
    // A dimension of weight zero has no ladder.
    let mut flat = params(3, 4.0, 1.0);
    flat.forest.weights = WeightsChoice::Given(Weights::new(vec![1.0, 0.0]).unwrap());
    let mut model = flat.fit(points(&data, 2)).unwrap();
    model.learn(points(&[5.0, 0.5], 2)).unwrap();
    assert!(matches!(model.learn(points(&[0.5, 5.0], 2)), Err(Error::OutsideBox { column: 1, .. })));
}

#[test]
fn refuses_with_reasons_and_changes_nothing() {
    let data = cloud(30, 2, 1);
    let mut on_box = params(3, 4.0, 1.0);
    unit_box(&mut on_box, 2);
    let mut model = on_box.fit(points(&data, 2)).unwrap();
    let before = bits(model.view(), &data, 2);
    let far = [0.5, 0.5, 0.5, 9.0];
    let refused = model.learn(points(&far, 2)).unwrap_err();
    assert!(matches!(refused, Error::OutsideBox { row: 1, column: 1, value: 9.0, .. }), "{refused}");
    let unknown = [data[0], data[1], 0.123, 0.456];
    assert_eq!(model.forget(points(&unknown, 2)).unwrap_err(), Error::UnknownRow { row: 1 });
    let twice: Vec<f64> = [&data[..2], &data[..2], &data[..2]].concat();
    assert_eq!(model.forget(points(&twice, 2)).unwrap_err(), Error::UnknownRow { row: 2 }, "held twice");
    assert_eq!(model.leave_one_out(points(&unknown, 2)).unwrap_err(), Error::UnknownRow { row: 1 });
    assert!(matches!(model.log_density(points(&data, 3)), Err(Error::LengthMismatch { .. })));
    assert!(matches!(model.at(Lifetime::new(5.0).unwrap()), Err(Error::InvalidParameter { name: "lifetime", .. })));
    assert!(model.set_lifetime(Lifetime::INFINITE).is_err());
    assert!(matches!(model.cells(3), Err(Error::InvalidParameter { name: "tree", .. })));
    assert!(matches!(model.path(&[points(&far[2..], 2)], &mut Progress::none()), Err(Error::Empty { .. })));
    for (what, change) in [("seeds", 0), ("numbers of trees", 1), ("values of gamma", 2)] {
        let mut other = on_box.clone();
        match change {
            0 => other.forest.seed = 6,
            1 => other.forest.n_trees = 4,
            _ => other.gamma = GammaChoice::Value(2.0),
        }
        let other = other.fit(points(&data, 2)).unwrap();
        assert_eq!(model.merge(&other).unwrap_err(), Error::Incompatible { what });
    }
    assert_eq!(bits(model.view(), &data, 2), before);

    let fit = |data: &[f64], params: &DensityParams| params.fit(points(data, 2)).unwrap_err();
    assert_eq!(fit(&[1.0, 2.0, 1.0, 3.0], &params(3, 4.0, 1.0)), Error::ZeroWidth { dim: 0, value: 1.0 });
    assert!(matches!(fit(&[], &params(3, 4.0, 1.0)), Error::Empty { .. }));
    assert!(matches!(fit(&data, &params(3, f64::INFINITY, 1.0)), Error::InvalidParameter { name: "lifetime", .. }));
    let mut small = params(3, 4.0, 1.0);
    small.forest.bounds = Some(Bounds::new(&[0.0, 0.0], &[0.5, 1.0]).unwrap());
    assert!(matches!(fit(&data, &small), Error::OutsideBox { column: 0, .. }));
}

#[test]
fn survives_a_file_with_its_bits() {
    let data = cloud(40, 3, 1);
    for mut params in cases(3, 4.0) {
        params.gamma = GammaChoice::Auto;
        let mut model = params.fit(points(&data, 3)).unwrap();
        model.forget(points(&data[..9], 3)).unwrap();
        let bytes = model.to_bytes().unwrap();
        let again = DensityForest::from_bytes(&bytes).unwrap();
        assert_eq!(bits(again.view(), &data, 3), bits(model.view(), &data, 3));
        assert_eq!(again.sample(4, 1), model.sample(4, 1));
        assert_eq!(again.to_bytes().unwrap(), bytes);
        let broken = bytes.len() / 2;
        assert!(DensityForest::from_bytes(&bytes[..broken]).is_err());
    }
    let labels: Vec<u32> = (0..40).map(|i| i % 3).collect();
    let model = DensityClassifier::params()
        .density(params(4, 3.0, 1.0).clone())
        .equal_prior()
        .fit(points(&data, 3), &labels)
        .unwrap();
    let again = DensityClassifier::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(again.predict_proba(points(&data, 3)).unwrap(), model.predict_proba(points(&data, 3)).unwrap());
}

#[test]
fn automatic_values_follow_the_rows_alone() {
    let data = cloud(80, 2, 14);
    for validation in [Validation::HoldOut, Validation::LeaveOneOut, Validation::KFold(4)] {
        let forest = ForestParams { n_trees: 20, validation, ..ForestParams::default() };
        let params = DensityParams::from(forest);
        let model = params.fit(points(&data, 2)).unwrap();
        let reversed: Vec<f64> = data.chunks_exact(2).rev().flatten().copied().collect();
        let other = params.fit(points(&reversed, 2)).unwrap();
        assert_eq!((model.lifetime(), model.gamma()), (other.lifetime(), other.gamma()));
        assert!(model.lifetime() > Lifetime::ZERO);
        // The data are far from uniform: the chosen density says so, by an eighth a row and more.
        let uniform = -model.log_volume() * 80.0;
        assert!(model.leave_one_out_score() > uniform + 10.0, "{} {uniform}", model.leave_one_out_score());
        let mut forgetful = model.clone();
        forgetful.learn(points(&data[..20], 2)).unwrap();
        forgetful.forget(points(&data[..20], 2)).unwrap();
        assert_eq!(forgetful.gamma(), model.gamma());
    }
}

/// A stream that starts with one row: after its warm-up it is the batch of its rows on the box and with the lifetime of the first.
#[test]
fn a_warm_up_fixes_box_and_lifetime_of_a_stream() {
    let data = cloud(90, 2, 21);
    let forest = ForestParams { n_trees: 6, warm_up: Some(64), ..ForestParams::default() };
    let mut stream = DensityParams::from(forest).fit(points(&data[..2], 2)).unwrap();
    let mut fitted = Vec::new();
    for row in 1..90 {
        if row == 40 {
            // A file in the middle of the warm-up continues it.
            stream = DensityForest::from_bytes(&stream.to_bytes().unwrap()).unwrap();
        }
        let before = stream.bounds().clone();
        let wrong = stream.learn(points(&[0.5, 0.5, 0.5], 3)).unwrap_err();
        assert!(matches!(wrong, Error::LengthMismatch { .. }));
        stream.learn(points(&data[2 * row..2 * row + 2], 2)).unwrap();
        assert!(stream.log_density(points(&data[2 * row..2 * row + 2], 2)).unwrap()[0].is_finite());
        if *stream.bounds() != before && stream.forest().domain().rung() == 0 {
            fitted.push(row + 1);
        }
    }
    // The second row repeats the first, so that the fit to both has the same box.
    assert_eq!((fitted, stream.n_rows()), (vec![4, 8, 16, 32, 64], 90));
    assert!(stream.lifetime() > Lifetime::ZERO);
    let forest = ForestParams { n_trees: 6, warm_up: Some(64), ..ForestParams::default() };
    let mut batch = DensityParams::from(forest).fit(points(&data[..128], 2)).unwrap();
    assert_eq!((batch.lifetime(), batch.bounds()), (stream.lifetime(), stream.bounds()));
    batch.learn(points(&data[128..], 2)).unwrap();
    assert_eq!(bits(batch.view(), &data, 2), bits(stream.view(), &data, 2));

    // Forgetting in the warm-up, rows with one value, and a lifetime of one's own.
    let forest = ForestParams { n_trees: 3, warm_up: Some(50), ..ForestParams::default() };
    let mut flat = DensityParams::from(forest).fit(points(&[1.0, 7.0], 2)).unwrap();
    flat.learn(points(&[2.0, 7.0, 3.0, 7.0], 2)).unwrap();
    flat.forget(points(&[2.0, 7.0], 2)).unwrap();
    flat.learn(points(&[4.0, 7.0, 5.0, 7.0], 2)).unwrap();
    assert_eq!((flat.n_rows(), flat.bounds().lower()[1], flat.bounds().upper()[1]), (4, 6.0, 8.0));
    assert_eq!(flat.forget(points(&[2.0, 7.0], 2)).unwrap_err(), Error::UnknownRow { row: 0 });
    flat.set_lifetime(Lifetime::new(0.7).unwrap()).unwrap();
    let bounds = flat.bounds().clone();
    flat.learn(points(&cloud(60, 2, 2), 2)).unwrap();
    assert_eq!((flat.lifetime().get(), flat.n_rows()), (0.7, 64));
    assert!(flat.bounds().lower()[1] < bounds.lower()[1], "from then on the box is widened along the ladder");
}

#[test]
fn tiny_sets_have_automatic_values_too() {
    for n in [2, 3, 10] {
        let data = cloud(n * 2, 1, 77);
        let model = DensityParams::default().fit(points(&data, 1)).unwrap();
        assert!(model.score(points(&data, 1)).unwrap().total().is_finite());
    }
}

#[test]
fn a_classifier_has_a_density_a_class() {
    let n = 150;
    let mut data = cloud(n, 2, 3);
    let labels: Vec<u32> = (0..n as u32).map(|row| if row % 3 == 0 { 7 } else { 2 }).collect();
    for row in (0..n).step_by(3) {
        data[2 * row] += 0.8;
    }
    let classifier =
        DensityClassifier::params().density(params(20, 6.0, 0.5).clone()).fit(points(&data, 2), &labels).unwrap();
    assert_eq!(classifier.labels(), [2, 7]);
    let probabilities = classifier.predict_proba(points(&data, 2)).unwrap();
    let logs: Vec<Vec<f64>> = classifier.densities().map(|d| d.log_density(points(&data, 2)).unwrap()).collect();
    for (row, p) in probabilities.chunks_exact(2).enumerate() {
        let joint = [logs[0][row].exp() * 2.0 / 3.0, logs[1][row].exp() / 3.0];
        assert!((p[0] - joint[0] / (joint[0] + joint[1])).abs() < 1e-12 && (p[0] + p[1] - 1.0).abs() < 1e-15);
    }
    let predicted = classifier.predict(points(&data, 2)).unwrap();
    let right = predicted.iter().zip(&labels).filter(|(a, b)| a == b).count();
    assert!(right >= 135, "{right} of 150");
    // Outside the box nothing is known but the prior.
    let far = classifier.predict_proba(points(&[1e9, 0.0], 2)).unwrap();
    assert!((far[0] - 2.0 / 3.0).abs() < 1e-12);
    // A class seen later; a batch that is refused changes nothing.
    let mut more = classifier.clone();
    more.learn(points(&data[..4], 2), &[5, 2]).unwrap();
    assert_eq!(more.labels(), [2, 5, 7]);
    assert!(matches!(more.learn(points(&[1e9, 0.0], 2), &[9]), Err(Error::OutsideBox { .. })));
    assert!(matches!(more.learn(points(&data[..4], 2), &[9]), Err(Error::LengthMismatch { .. })));
    assert_eq!(more.labels(), [2, 5, 7]);
}

/// The setosa class of iris: the first 50 rows; `None` where the data folder is absent.
fn setosa() -> Option<Vec<f64>> {
    let folder = std::env::var_os("MONDRIAN_DATA").map_or_else(
        || std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")),
        std::path::PathBuf::from,
    );
    let Ok(file) = std::fs::File::open(folder.join("iris.csv.gz")) else {
        println!("skipped: iris is not in the folder of real data (MONDRIAN_DATA)");
        return None;
    };
    let text = std::io::read_to_string(flate2::read::GzDecoder::new(file)).expect("a sound gzip file");
    let row = |line: &str| -> Vec<f64> { line.split(',').take(4).map(|field| field.parse().unwrap()).collect() };
    Some(text.lines().skip(1).take(50).flat_map(row).collect())
}

/// The report's figures on iris setosa (chapters 2 and 4): 200 trees; the training likelihood rises with the lifetime,
/// those of unseen rows and of rows left out peak and fall.
#[test]
fn iris_setosa_overfits_as_the_report_shows() {
    let Some(data) = setosa() else { return };
    // Every fifth row is test data, the box holds all.
    let part = |test: bool| -> Vec<f64> {
        data.chunks_exact(4)
            .enumerate()
            .filter(|(row, _)| (row % 5 == 0) == test)
            .flat_map(|(_, x)| x.to_vec())
            .collect()
    };
    let (train, test) = (part(false), part(true));
    let mut params = params(200, 40.0, 1e-3);
    params.forest.bounds = Some(DensityParams::default().bounds_on(points(&data, 4)).unwrap());
    let model = params.fit(points(&train, 4)).unwrap();
    let path = model.path(&[points(&test, 4)], &mut Progress::none()).unwrap();
    let at = |curve: &[f64], lifetime: f64| -curve[path.index_at(Lifetime::new(lifetime).unwrap())];
    let mut before = f64::NEG_INFINITY;
    for lifetime in [0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0] {
        let now = at(path.train(), lifetime);
        assert!(now > before, "training likelihood at {lifetime}: {now} after {before}");
        before = now;
    }
    for curve in [&path.validation()[0][..], path.leave_one_out().unwrap()] {
        let best = curve.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(-best > at(curve, 0.0) + 0.5 && -best > at(curve, 40.0) + 0.1, "{best}");
    }
}
