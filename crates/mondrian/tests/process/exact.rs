//! Equalities, bit for bit (docs/design.md, "Exact promises").

use mondrian::internals::process::Child;
use mondrian::process::{
    Bounds, BuiltInMeasure, InfiniteMondrian, Measure, Mondrian, NodeKey, Partition, QuantileMeasure, Weights, poisson,
};
use mondrian::{Error, Lifetime, Points, Result};
use proptest::prelude::*;

fn lifetime(value: f64) -> Lifetime {
    Lifetime::new(value).unwrap()
}

/// The unit box under a measure, as far as `limit`.
fn sample(n_dims: usize, measure: BuiltInMeasure, limit: f64, seed: u64) -> Partition {
    let bounds = Bounds::new(&vec![0.0; n_dims], &vec![1.0; n_dims]).unwrap();
    let process = Mondrian::with_measure(bounds, measure, NodeKey::root(seed, 0)).unwrap();
    process.until(lifetime(limit)).unwrap()
}

/// Uniform, weighted and quantile measures whose mass on the unit box is about one per dimension.
fn measures(n_dims: usize) -> [BuiltInMeasure; 3] {
    let table: Vec<f64> = (0..40 * n_dims as u64).map(|i| NodeKey::root(77, i).draw(0).uniform().powi(2)).collect();
    let quantile = QuantileMeasure::of_points(Points::row_major(&table, n_dims).unwrap(), None).unwrap();
    let weights = Weights::new((0..n_dims).map(|dim| 0.7 + 0.3 * dim as f64).collect()).unwrap();
    [BuiltInMeasure::Uniform, BuiltInMeasure::Weighted(weights), BuiltInMeasure::Quantile(quantile)]
}

/// Cuts as (time, dimension, location) bits, each once, by time: what two samples share wherever both look.
fn cut_set(partition: &Partition) -> Vec<(u64, usize, u64)> {
    let mut cuts: Vec<_> = partition.nodes().map(|n| (n.time.to_bits(), n.dim, n.location.to_bits())).collect();
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

/// The slow twin of restriction: clip the box of every cut and keep those whose clipped box is split.
fn clipped_cuts(partition: &Partition, window: &Bounds) -> Vec<(u64, usize, u64)> {
    let (cuts, n) = (partition.cuts(), partition.n_dims());
    let mut kept = Vec::new();
    for row in 0..cuts.len() {
        let interval = |dim: usize| {
            let (lo, hi) = (cuts.lower()[row * n + dim], cuts.upper()[row * n + dim]);
            (lo.max(window.lower()[dim]), hi.min(window.upper()[dim]))
        };
        let meets = (0..n).all(|dim| {
            let (lo, hi) = interval(dim);
            // A cell is (lo, hi], so a slice at its lower border is not in it, unless that is the border of all.
            lo < hi || (lo == hi && (cuts.lower()[row * n + dim] < lo || lo == partition.bounds().lower()[dim]))
        });
        let (lo, hi) = interval(cuts.dims()[row]);
        if meets && lo <= cuts.locations()[row] && cuts.locations()[row] < hi {
            kept.push((cuts.times()[row].to_bits(), cuts.dims()[row], cuts.locations()[row].to_bits()));
        }
    }
    kept.sort_unstable();
    kept.dedup();
    kept
}

/// A box inside the unit box; every third side has length zero if `slices`.
fn window(n_dims: usize, seed: u64, slices: bool) -> Bounds {
    let corner = |dim: usize| {
        let draw = NodeKey::root(seed, 1).fork(dim as u64).draw(0);
        let (a, b) = (draw.uniform(), draw.second_uniform());
        if slices && dim % 3 == 1 { (a, a) } else { (a.min(b), a.max(b)) }
    };
    let (lower, upper): (Vec<f64>, Vec<f64>) = (0..n_dims).map(corner).unzip();
    Bounds::new(&lower, &upper).unwrap()
}

fn limit_for(n_dims: usize) -> f64 {
    [30.0, 6.0, 3.0, 2.0, 1.5][n_dims - 1]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_earlier_view_is_an_earlier_sample(seed: u64, n_dims in 1_usize..=5, share in 0.0_f64..1.0, kind in 0_usize..3) {
        let measure = measures(n_dims)[kind].clone();
        let late = sample(n_dims, measure.clone(), limit_for(n_dims), seed);
        let early = sample(n_dims, measure, share * limit_for(n_dims), seed);
        prop_assert_eq!(&late.at(early.lifetime()).unwrap(), &early);
        prop_assert_eq!(&early.grown(late.lifetime()).unwrap(), &late);
        // Views nest: every cut of the earlier one is in the later one.
        let (few, many) = (cut_set(&early), cut_set(&late));
        prop_assert!(few.iter().all(|cut| many.binary_search(cut).is_ok()));
        prop_assert!(early.nodes().all(|node| node.birth <= node.time && node.time <= early.lifetime().get()));
    }

    #[test]
    fn cells_tile_the_box_and_every_point_has_one(seed: u64, n_dims in 1_usize..=5, kind in 0_usize..3) {
        let partition = sample(n_dims, measures(n_dims)[kind].clone(), limit_for(n_dims), seed);
        let cells = partition.cells();
        prop_assert_eq!(cells.len(), partition.n_cuts() + 1);
        prop_assert!((cells.volumes().sum::<f64>() - 1.0).abs() < 1e-12);
        let points: Vec<f64> = (0..20 * n_dims as u64).map(|i| NodeKey::root(seed, 2).fork(i).draw(0).uniform()).collect();
        let points = Points::row_major(&points, n_dims).unwrap();
        for (row, cell) in partition.cell_of(points).unwrap().into_iter().enumerate() {
            // Cells are (lower, upper], so exactly one holds the point.
            let holds = |cell: usize| {
                let bounds = cells.bounds(cell);
                points.row(row).enumerate().all(|(d, x)| (bounds.lower()[d] < x || x == 0.0) && x <= bounds.upper()[d])
            };
            prop_assert!(holds(cell));
            prop_assert_eq!((0..cells.len()).filter(|other| holds(*other)).count(), 1);
        }
    }

    #[test]
    fn restriction_keeps_times_and_locations(seed: u64, n_dims in 1_usize..=5, slices: bool, kind in 0_usize..3) {
        let partition = sample(n_dims, measures(n_dims)[kind].clone(), limit_for(n_dims), seed);
        let window = window(n_dims, seed, slices);
        let part = partition.restrict(window.lower(), window.upper()).unwrap();
        prop_assert_eq!(cut_set(&part), clipped_cuts(&partition, &window));
        // Points of the window are together in the one exactly if they are in the other.
        let points: Vec<f64> = (0..30 * n_dims).map(|i| {
            let dim = i % n_dims;
            let share = NodeKey::root(seed, 3).fork(i as u64).draw(0).uniform();
            let (lo, hi) = (window.lower()[dim], window.upper()[dim]);
            (lo + share * (hi - lo)).clamp(lo, hi)
        }).collect();
        let points = Points::row_major(&points, n_dims).unwrap();
        let (inside, outside) = (part.cell_of(points).unwrap(), partition.cell_of(points).unwrap());
        for i in 0..30 {
            for j in 0..i {
                prop_assert_eq!(inside[i] == inside[j], outside[i] == outside[j]);
            }
        }
    }

    #[test]
    fn restricting_an_extension_gives_back_the_sample(
        seed: u64, other: Option<u64>, n_dims in 1_usize..=4, slices: bool, kind in 0_usize..3,
    ) {
        let limit = limit_for(n_dims);
        let inner = window(n_dims, seed, slices);
        let process = Mondrian::with_measure(inner.clone(), measures(n_dims)[kind].clone(), NodeKey::root(seed, 0)).unwrap();
        let part = process.until(lifetime(limit)).unwrap();
        let whole = part.extend(&vec![-0.1; n_dims], &vec![1.2; n_dims], other).unwrap();
        prop_assert!(whole.restrict(inner.lower(), inner.upper()).unwrap().is_same_sample(&part));
        prop_assert_eq!(clipped_cuts(&whole, &inner), cut_set(&part));
    }

    #[test]
    fn operations_compose_and_the_lifetime_can_be_raised_after(seed: u64, n_dims in 1_usize..=3, kind in 0_usize..3) {
        let limit = limit_for(n_dims);
        let (a, b) = (window(n_dims, seed, false), window(n_dims, seed ^ 1, false));
        let low = |x: &Bounds, y: &Bounds| x.lower().iter().zip(y.lower()).map(|(x, y)| x.min(*y)).collect::<Vec<_>>();
        let high = |x: &Bounds, y: &Bounds| x.upper().iter().zip(y.upper()).map(|(x, y)| x.max(*y)).collect::<Vec<_>>();
        // Restrict, extend elsewhere, extend again, restrict: early and grown, or late at once.
        let steps = |start: &Partition| -> Result<Partition> {
            let part = start.restrict(a.lower(), a.upper())?;
            let both = part.extend(&low(&a, &b), &high(&a, &b), Some(4))?;
            both.extend(&vec![-0.5; n_dims], &vec![1.0; n_dims], None)?.restrict(b.lower(), b.upper())
        };
        let start = sample(n_dims, measures(n_dims)[kind].clone(), limit, seed);
        let late = steps(&start).unwrap();
        let early = steps(&start.at(lifetime(limit / 3.0)).unwrap()).unwrap();
        prop_assert!(early.grown(start.lifetime()).unwrap().is_same_sample(&late));
        prop_assert!(late.at(early.lifetime()).unwrap().is_same_sample(&early));
    }

    #[test]
    fn looks_at_the_infinite_process_agree(seed: u64, n_dims in 1_usize..=3, x in -40.0_f64..40.0, y in -3.0_f64..3.0) {
        let space = InfiniteMondrian::new(n_dims, lifetime(1.0), seed).unwrap();
        let (lower, upper) = (vec![x - 1.0; n_dims], vec![x + 1.5; n_dims]);
        let near = space.restrict(&lower, &upper).unwrap();
        let shifted = space.restrict(&vec![x + y - 2.0; n_dims], &vec![x + y + 2.0; n_dims]).unwrap();
        let overlap = |from: &[f64], to: &[f64]| from.iter().zip(to).map(|(a, b)| a.max(*b)).collect::<Vec<_>>();
        let lo = overlap(&lower, shifted.bounds().lower());
        let hi: Vec<f64> = upper.iter().zip(shifted.bounds().upper()).map(|(a, b)| a.min(*b)).collect();
        if lo.iter().zip(&hi).all(|(a, b)| a <= b) {
            prop_assert!(near.restrict(&lo, &hi).unwrap().is_same_sample(&shifted.restrict(&lo, &hi).unwrap()));
        }
        // Names of cells do not depend on what else was asked for.
        let points: Vec<f64> = (0..20 * n_dims as u64).map(|i| x + 2.5 * NodeKey::root(seed, 5).fork(i).draw(0).uniform() - 1.0).collect();
        let names = space.cell_of(Points::row_major(&points, n_dims).unwrap()).unwrap();
        let mut more = points.clone();
        more.extend(vec![1e4; n_dims]);
        prop_assert_eq!(&names[..], &space.cell_of(Points::row_major(&more, n_dims).unwrap()).unwrap()[..20]);
        let cells = near.cell_of(Points::row_major(&points, n_dims).unwrap()).unwrap();
        for i in 0..20 {
            for j in 0..i {
                prop_assert_eq!(names[i] == names[j], cells[i] == cells[j]);
            }
        }
    }

    #[test]
    fn saving_and_loading_give_back_the_sample(seed: u64, n_dims in 1_usize..=3, kind in 0_usize..3) {
        let start = sample(n_dims, measures(n_dims)[kind].clone(), limit_for(n_dims), seed);
        let window = window(n_dims, seed, true);
        let part = start.restrict(window.lower(), window.upper()).unwrap();
        let whole = part.extend(&vec![-0.5; n_dims], &vec![1.0; n_dims], None).unwrap();
        for partition in [start, part, whole] {
            let saved = serde_json::to_string(&partition).unwrap();
            prop_assert_eq!(serde_json::from_str::<Partition>(&saved).unwrap(), partition);
        }
    }
}

#[test]
fn any_number_of_threads_gives_the_same_sample() {
    let bounds = Bounds::new(&[0.0, -1.0, 5.0], &[3.0, 1.0, 5.5]).unwrap();
    let base = Mondrian::new(bounds, NodeKey::root(3, 0));
    let through = base.restrict(Bounds::new(&[0.5, -1.0, 5.0], &[3.0, 0.9, 5.5]).unwrap()).unwrap();
    let around = through.extend(Bounds::new(&[0.0, -1.0, 5.0], &[3.0, 1.0, 6.0]).unwrap(), None).unwrap();
    for process in [base, through, around] {
        let look = |n_threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            pool.install(|| process.until(lifetime(25.0)).unwrap())
        };
        let one = look(1);
        assert!(one.n_cells() > 20_000, "{} cells are too few to be shared out", one.n_cells());
        assert_eq!(look(2), one);
        assert_eq!(look(7), one);
        assert_eq!(one.at(lifetime(4.0)).unwrap(), process.until(lifetime(4.0)).unwrap());
    }
}

#[test]
fn nodes_are_the_reports_tuples() {
    let partition = sample(2, BuiltInMeasure::Uniform, 5.0, 1);
    let nodes: Vec<_> = partition.nodes().collect();
    let mut seen = vec![false; partition.n_cells()];
    for node in &nodes {
        for child in [node.below, node.above] {
            match child {
                Child::Cut(number) => assert_eq!(nodes[number].birth, node.time),
                Child::Cell(number) => assert!(!std::mem::replace(&mut seen[number], true)),
            }
        }
    }
    assert!(seen.into_iter().all(|seen| seen));
    assert_eq!(nodes[0].birth, 0.0);
}

#[test]
fn crossings_are_a_slice_and_a_poisson_process_is_a_line() {
    let partition = sample(3, BuiltInMeasure::Uniform, 6.0, 8);
    let crossings = partition.crossings(&[0.3, 0.9, 0.5], 1).unwrap();
    let slice = partition.restrict(&[0.3, 0.0, 0.5], &[0.3, 1.0, 0.5]).unwrap();
    let mut locations: Vec<f64> = slice.nodes().map(|node| node.location).collect();
    locations.sort_by(f64::total_cmp);
    assert!(locations.len() > 1 && slice.nodes().all(|node| node.dim == 1));
    assert_eq!(crossings.iter().map(|point| point.location).collect::<Vec<_>>(), locations);
    let line = poisson(0.0, 1.0, lifetime(40.0), 2, BuiltInMeasure::Uniform).unwrap();
    assert!(line.is_sorted_by(|a, b| a.location < b.location));
    assert_eq!(line.len(), sample(1, BuiltInMeasure::Uniform, 40.0, 2).n_cuts());
}

/// A measure of one's own: all mass spread as exp(x).
#[derive(Debug, Clone)]
struct Exponential;

impl Measure for Exponential {
    fn coordinate(&self, _dim: usize, x: f64) -> f64 {
        x.exp()
    }

    fn place(&self, _dim: usize, u: f64) -> f64 {
        u.ln()
    }

    fn check_dims(&self, _n_dims: usize) -> Result<()> {
        Ok(())
    }
}

#[test]
fn a_measure_of_ones_own_is_the_ordinary_process_in_its_coordinates() {
    let bounds = Bounds::new(&[0.0, 1.0], &[2.0, 2.0]).unwrap();
    let own = Mondrian::with_measure(bounds, Exponential, NodeKey::root(5, 0)).unwrap().until(lifetime(1.0)).unwrap();
    let images = Bounds::new(&[0.0_f64.exp(), 1.0_f64.exp()], &[2.0_f64.exp(), 2.0_f64.exp()]).unwrap();
    let plain = Mondrian::new(images, NodeKey::root(5, 0)).until(lifetime(1.0)).unwrap();
    assert!(own.n_cuts() > 5);
    assert!(
        own.nodes()
            .zip(plain.nodes())
            .all(|(a, b)| a.time == b.time && (a.location.exp() / b.location - 1.0).abs() < 1e-12)
    );
    assert!((own.cells().volumes().sum::<f64>() - 2.0).abs() < 1e-12);
}

#[test]
fn points_a_billionth_apart_have_cells_of_their_own_at_the_end_of_time() {
    // In 300 dimensions that takes thousands of cuts, on an explicit stack.
    let space = InfiniteMondrian::new(300, Lifetime::INFINITE, 1).unwrap();
    let place = |row: usize| (0..300).map(move |d| d as f64 / 300.0 + if d == row { 1e-9 } else { 0.0 });
    let points: Vec<f64> = [300, 0, 150, 299, 300].into_iter().flat_map(place).collect();
    let names = space.cell_of(Points::row_major(&points, 300).unwrap()).unwrap();
    assert_eq!(names[0], names[4], "the same place");
    for (a, b) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
        assert_ne!(names[a], names[b], "{a} {b}");
    }
}

#[test]
fn a_box_without_extent_is_a_valid_trivial_sample() {
    let point = Partition::sample(&[1.0, 2.0], &[1.0, 2.0], Lifetime::INFINITE, 0).unwrap();
    assert_eq!((point.n_cuts(), point.n_cells()), (0, 1));
    let saved = serde_json::to_string(&point).unwrap();
    assert_eq!(serde_json::from_str::<Partition>(&saved).unwrap(), point);
    let never = Partition::sample(&[0.0], &[1.0], Lifetime::ZERO, 0).unwrap();
    assert_eq!((never.n_cuts(), never.cells().len()), (0, 1));
    let grown = point.at(lifetime(2.0)).unwrap().extend(&[0.0, 0.0], &[3.0, 3.0], None).unwrap();
    assert!(grown.n_cuts() > 0);
    assert_eq!(
        point.extend(&[0.0, 0.0], &[3.0, 3.0], None).unwrap_err(),
        Error::TooLarge { what: "cells of the partition", expected: f64::INFINITY, limit: 5e7 }
    );
}
