//! The Mondrian grid, through public imports.

use std::collections::HashMap;
use std::ops::ControlFlow;

use mondrian::FitOptions;
use mondrian::GridFeatures;
use mondrian::Progress;
use mondrian::Saved;
use mondrian::SearchKind;
use mondrian::internals::features::MondrianGrid;
use mondrian::internals::features::UNSEEN;
use mondrian::internals::grid::search::SearchLimits;
use mondrian::internals::grid::search::{Outcome, Search};
use mondrian::internals::grid::{GridState, Move};
use mondrian::internals::process::Axis;
use mondrian::process::NodeKey;
use mondrian::{Error, Points, Result};
use mondrian::{GridRidge, GridRidgeParams, LifetimesChoice};

fn uniform(seed: u64, n: usize) -> Vec<f64> {
    (0..n).map(|k| NodeKey::root(seed, k as u64).draw(0).uniform()).collect()
}

/// n × d inputs, some on a coarse lattice so that coordinates repeat, and a target.
fn sample(n: usize, d: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let mut x = uniform(seed, n * d);
    x.iter_mut().step_by(3).for_each(|x| *x = (*x * 8.0).floor() / 8.0);
    let noise = uniform(seed + 9, n);
    let y = (0..n).map(|i| (5.0 * x[i * d]).sin() + x[i * d + d - 1] + 0.1 * noise[i]).collect();
    (x, y)
}

#[test]
fn looks_agree_wherever_and_however_long_one_looks() -> Result<()> {
    for (scale, shift) in [(1.0, 0.0), (1e-6, 3.0), (1e9, 1.7e9), (1.0, -500.0)] {
        let axis = Axis::new(NodeKey::root(4, 2));
        let (lower, upper, lifetime) = (shift, shift + 40.0 * scale, 2.0 / scale);
        let wide = axis.cuts(lower, upper, lifetime)?;
        assert!((40..140).contains(&wide.len()), "{}", wide.len());
        for (a, b, part) in [(0.0, 10.0, 1.0), (7.3, 7.4, 0.9), (20.0, 40.0, 0.01), (13.0, 13.0, 1.0)] {
            let (from, to) = (lower + a * scale, lower + b * scale);
            let inner = axis.cuts(from, to, part * lifetime)?;
            let expected: Vec<_> = wide
                .iter()
                .filter(|c| from <= c.location && c.location < to && c.time <= part * lifetime)
                .copied()
                .collect();
            assert_eq!(inner, expected);
            assert_eq!(axis.separates(to, from, part * lifetime)?, !inner.is_empty());
        }
    }
    assert!(matches!(
        Axis::new(NodeKey::root(0, 0)).cuts(0.0, 1.0, f64::INFINITY),
        Err(Error::InvalidParameter { .. })
    ));
    assert!(matches!(Axis::new(NodeKey::root(0, 0)).cuts(0.0, 1e9, 1e9), Err(Error::TooLarge { .. })));
    assert!(Axis::new(NodeKey::root(0, 0)).cuts(0.0, 1.0, 0.0)?.is_empty());
    Ok(())
}

#[test]
fn a_cut_is_found_however_far_the_other_end() -> Result<()> {
    let axis = Axis::new(NodeKey::root(4, 2));
    // At powers of two the last band has no cut in time at all: to look there first would take until the other end.
    for lifetime in [1.0, 1.0 + 1e-9, 0.25, 3.0, 1e-30, 1e6] {
        for far in [1e300, -1e300, f64::MAX, -f64::MAX] {
            assert!(axis.separates(0.5, far, lifetime)?, "{far} at {lifetime}");
        }
    }
    for other in [0.5, 2.0, -3.0, 40.0, -40.0] {
        let (lower, upper) = (0.5_f64.min(other), 0.5_f64.max(other));
        assert_eq!(axis.separates(0.5, other, 1.0)?, !axis.cuts(lower, upper, 1.0)?.is_empty());
        assert_eq!(axis.separates(0.5, other, 1.0)?, axis.separates(other, 0.5, 1.0)?);
    }
    assert!(!axis.separates(0.5, 1e300, 0.0)?);
    Ok(())
}

#[test]
fn counts_of_cuts_are_poisson_at_every_scale() -> Result<()> {
    // Counts in [0.3, 1.3]·s until λ/s: Poisson with mean λ for every s. 4000 axes: the mean has standard error
    // √(λ/4000), the variance about √((λ + 2λ²)/4000); reject beyond 5 of them. 2 × 6 × 3 tests at 5.7e-7: false alarm
    // 2e-5. Power: a mean 20 % off at λ = 0.5 is 9 standard errors.
    for scale in [1.0, 1e-3, 1024.0] {
        for (number, lambda) in [0.5, 1.0, 1.4, 3.0, 0.01, 7.9].into_iter().enumerate() {
            let n = 4000;
            let counts: Vec<f64> = (0..n)
                .map(|seed| {
                    let axis = Axis::new(NodeKey::root(seed, number as u64 + 17));
                    axis.cuts(0.3 * scale, 1.3 * scale, lambda / scale).map(|cuts| cuts.len() as f64)
                })
                .collect::<Result<_>>()?;
            let mean = counts.iter().sum::<f64>() / n as f64;
            let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / n as f64;
            assert!((mean - lambda).abs() < 5.0 * (lambda / n as f64).sqrt(), "{lambda} at {scale}: {mean}");
            let spread = ((lambda + 2.0 * lambda * lambda) / n as f64).sqrt();
            assert!((variance - lambda).abs() < 5.0 * spread, "{lambda} at {scale}: {variance}");
        }
    }
    Ok(())
}

#[test]
fn unseen_points_between_and_beyond_training_coordinates_follow_the_kernel() -> Result<()> {
    // Training rows 0 and 1 in each dimension; queries inside that gap and outside it. The share of grids in which a
    // query meets row 0 is binomial with p = exp(−Σ λ|x|). A grid that only knew the first cut time between training
    // coordinates could not tell where inside the gap it lies. 20 000 grids, 12 tests, reject |z| > 5.2: false alarm
    // 12 × 2e-7 < 3e-6. Power: taking the cut to lie in the middle of the gap shows at x = 0.25 as z > 30.
    let (n_grids, lifetimes) = (20_000, [1.5, 0.4]);
    for seed in [1, 2] {
        let train = [0.0, 0.0, 1.0, 1.0];
        let features = GridFeatures::fit(n_grids, seed, Points::row_major(&train, 2)?, &lifetimes)?;
        let home = features.transform(Points::row_major(&train[..2], 2)?)?;
        for query in [[0.25, 0.0], [0.5, 0.5], [0.9, 0.1], [-0.3, 0.0], [0.2, -0.7], [0.0, 1.8]] {
            let found = features.transform(Points::row_major(&query, 2)?)?;
            let met = found.iter().zip(&home).filter(|(a, b)| a == b && **a != UNSEEN).count() as f64;
            let p = (-(lifetimes[0] * f64::abs(query[0]) + lifetimes[1] * f64::abs(query[1]))).exp();
            let z = (met - n_grids as f64 * p) / (n_grids as f64 * p * (1.0 - p)).sqrt();
            assert!(z.abs() < 5.2, "{query:?}: {met} of {n_grids}, p = {p}, z = {z}");
        }
    }
    Ok(())
}

#[test]
fn features_do_not_depend_on_what_else_is_looked_up() -> Result<()> {
    let (x, _) = sample(50, 3, 3);
    let lifetimes = [2.0, 0.5, 3.0];
    let whole = GridFeatures::fit(8, 5, Points::row_major(&x, 3)?, &lifetimes)?;
    let half = GridFeatures::fit(8, 5, Points::row_major(&x[..75], 3)?, &lifetimes)?;
    let all = whole.transform(Points::row_major(&x, 3)?)?;
    assert!(all.iter().all(|&c| (c as usize) < whole.n_features()));
    let seen = half.transform(Points::row_major(&x, 3)?)?;
    // Rows that share a cell in one map share it in the other, and rows apart stay apart.
    for m in 0..8 {
        for (a, b) in (0..50).flat_map(|a| (0..25).map(move |b| (a, b))) {
            let together = all[a * 8 + m] == all[b * 8 + m];
            assert_eq!(seen[a * 8 + m] == seen[b * 8 + m], together, "rows {a}, {b}, grid {m}");
        }
    }
    Ok(())
}

struct Walk {
    grid: MondrianGrid,
    x: Vec<f64>,
    y: Vec<f64>,
    n: usize,
    d: usize,
}

impl Walk {
    fn new(n: usize, riders: usize, d: usize, n_grids: usize, seed: u64) -> Result<Self> {
        let (x, y) = sample(n + riders, d, seed);
        Ok(Self { grid: MondrianGrid::new(n_grids, seed)?, x, y, n, d })
    }

    fn state(&self, alpha: f64) -> Result<GridState> {
        let (n, d) = (self.n, self.d);
        let train = Points::row_major(&self.x[..n * d], d)?;
        let riders = Points::row_major(&self.x[n * d..], d)?;
        GridState::new(self.grid, train, &self.y[..n], riders, &self.y[n..], alpha, true)
    }

    /// The slow twin: features by hashing, one dense solve.
    fn reference(&self, lifetimes: &[f64], alpha: f64) -> Result<(Vec<u32>, Vec<f64>)> {
        let (n, d, m) = (self.n, self.d, self.grid.n_grids());
        let train = Points::row_major(&self.x[..n * d], d)?;
        let features = GridFeatures::fit(self.grid.n_grids(), self.grid.seed(), train, lifetimes)?;
        let cells = features.transform(train)?;
        let riders = features.transform(Points::row_major(&self.x[n * d..], d)?)?;
        let share = |a: &[u32], b: &[u32]| a.iter().zip(b).filter(|(a, b)| a == b).count() as f64 / m as f64;
        let row = |i: usize| &cells[i * m..(i + 1) * m];
        let kernel = mondrian::Matrix::from_fn(n, n, |i, j| share(row(i), row(j)) + if i == j { alpha } else { 0.0 });
        let mean = self.y[..n].iter().sum::<f64>() / n as f64;
        let centred: Vec<f64> = self.y[..n].iter().map(|y| y - mean).collect();
        let factor = mondrian::internals::linalg::Cholesky::new(kernel, mondrian::internals::linalg::Threads::ONE)?;
        let weights = factor.solve(&centred)?;
        let predict = |rider: &[u32]| mean + (0..n).map(|i| weights[i] * share(rider, row(i))).sum::<f64>();
        let predictions = riders.chunks(m).map(predict).collect();
        Ok((cells.clone(), predictions))
    }

    fn check(&self, state: &GridState) -> Result<()> {
        let (cells, predictions) = self.reference(state.lifetimes(), state.alpha())?;
        let found = state.train_cells();
        let (mut there, mut back) = (HashMap::new(), HashMap::new());
        for (at, (a, b)) in cells.iter().zip(&found).enumerate() {
            assert_eq!(there.entry(a).or_insert(b), &b, "entry {at}");
            assert_eq!(back.entry(b).or_insert(a), &a, "entry {at}");
        }
        assert_eq!(there.len(), state.n_features());
        for (a, b) in predictions.iter().zip(state.validation_predictions()) {
            assert!((a - b).abs() < 1e-7, "{a} {b}");
        }
        Ok(())
    }
}

#[test]
fn after_any_walk_the_state_is_what_a_fresh_build_gives_and_what_if_told_the_truth() -> Result<()> {
    for (n, riders, d, n_grids, alpha) in [(40, 15, 2, 4, 0.3), (30, 30, 3, 3, 0.01), (25, 5, 1, 6, 2.0)] {
        let walk = Walk::new(n, riders, d, n_grids, 11 + d as u64)?;
        let mut state = walk.state(alpha)?;
        let all: Vec<Move> = (0..d).flat_map(|dim| [Move::Raise(dim), Move::Lower(dim)]).collect();
        walk.check(&state)?;
        for step in 0..150_u64 {
            let draw = NodeKey::root(step, d as u64).draw(0);
            // Up at first, down in the end, so that all sizes are visited.
            let up = draw.uniform() < if step < 75 { 0.75 } else { 0.3 };
            let dim = (draw.second_uniform() * d as f64) as usize;
            let chosen = if up { Move::Raise(dim) } else { Move::Lower(dim) };
            let promised = state.what_if(&all)?;
            let promise = promised[all.iter().position(|m| *m == chosen).expect("listed")];
            assert_eq!(state.apply(chosen)?, promise.is_some());
            if let Some(promise) = promise {
                assert!((state.validation_error() - promise).abs() < 1e-8, "step {step}: {chosen:?}");
            }
            if step % 10 == 9 {
                walk.check(&state)?;
            }
        }
        assert!(state.residual() < 1e-7);
    }
    Ok(())
}

#[test]
fn jumps_land_where_walks_do() -> Result<()> {
    let walk = Walk::new(60, 20, 3, 5, 31)?;
    let mut state = walk.state(0.1)?;
    for lifetimes in [[3.0, 0.0, 1.0], [3.0, 0.1, 1.0], [0.0, 0.0, 0.0], [8.0, 8.0, 8.0], [8.0, 7.9, 8.0]] {
        state.jump(&lifetimes)?;
        assert_eq!(state.lifetimes(), lifetimes);
        walk.check(&state)?;
    }
    assert!(matches!(state.jump(&[1.0]), Err(Error::LengthMismatch { .. })));
    assert!(matches!(state.jump(&[1.0, -1.0, 0.0]), Err(Error::InvalidParameter { .. })));
    Ok(())
}

#[test]
fn moves_end_where_no_cut_is_left() -> Result<()> {
    let walk = Walk::new(6, 2, 1, 2, 41)?;
    let mut state = walk.state(0.1)?;
    assert!(!state.apply(Move::Lower(0))?);
    let mut moves = 0;
    while state.apply(Move::Raise(0))? {
        moves += 1;
        assert!(moves < 100);
    }
    assert_eq!(state.what_if(&[Move::Raise(0)])?, [None]);
    walk.check(&state)?;
    while state.apply(Move::Lower(0))? {}
    assert_eq!((state.n_features(), state.lifetimes()), (2, &[0.0][..]));
    assert!(state.apply(Move::Raise(7)).is_err());
    Ok(())
}

const KINDS: [SearchKind; 7] = [
    SearchKind::Greedy,
    SearchKind::GreedyBoth,
    SearchKind::Lookahead,
    SearchKind::Coordinate,
    SearchKind::Gradient,
    SearchKind::Spsa,
    SearchKind::Bayes,
];

#[test]
fn every_search_finds_something_keeps_its_budget_and_goes_on_where_it_was() -> Result<()> {
    let walk = Walk::new(120, 40, 2, 6, 51)?;
    let limits = |budget| SearchLimits { budget, patience: 1000 };
    for kind in KINDS {
        let mut whole = Search::new(walk.state(0.05)?, kind.optimizer(3));
        whole.run(limits(160), &mut Progress::none())?;
        let steps = whole.trajectory().steps();
        let (first, best) = (steps[0].error, whole.best().expect("ran").error);
        assert!(best < 0.8 * first, "{kind:?}: {first} to {best} in {}", whole.evaluations());
        // A step of a greedy search evaluates 2·D candidates at once, one of look-ahead up to eight.
        assert!(whole.evaluations() <= 160 + 8, "{kind:?}: {}", whole.evaluations());
        assert!(steps.windows(2).all(|pair| pair[0].cost <= pair[1].cost));
        // Stopped by the callback after three steps and resumed: the same trajectory.
        let mut parts = Search::new(walk.state(0.05)?, kind.optimizer(3));
        let mut seen = 0;
        let mut stop = |_: mondrian::Report<'_>| {
            seen += 1;
            if seen == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let outcome = parts.run(limits(160), &mut Progress::new(&mut stop))?;
        assert_eq!(outcome, Outcome::Stopped, "{kind:?}");
        parts.run(limits(160), &mut Progress::none())?;
        assert_eq!(parts.trajectory(), whole.trajectory(), "{kind:?}");
    }
    Ok(())
}

/// The gradient's evaluations of the exact kernel are evaluations too: counted, reported, and ended by budget and callback.
#[test]
fn the_default_search_keeps_a_small_budget_and_reports_every_evaluation() -> Result<()> {
    let walk = Walk::new(120, 40, 2, 6, 51)?;
    for budget in [3, 10, 25] {
        let mut search = Search::new(walk.state(0.05)?, SearchKind::Auto.optimizer(3));
        let mut reported = 0;
        let mut count = |_: mondrian::Report<'_>| {
            reported += 1;
            ControlFlow::Continue(())
        };
        search.run(SearchLimits { budget, patience: 1000 }, &mut Progress::new(&mut count))?;
        assert!(search.evaluations() <= budget + 1, "{} evaluations of {budget}", search.evaluations());
        assert_eq!(reported, search.evaluations(), "every evaluation is reported");
    }
    let mut search = Search::new(walk.state(0.05)?, SearchKind::Auto.optimizer(3));
    search.run(SearchLimits { budget: 400, patience: 1 }, &mut Progress::none())?;
    let mut longer = Search::new(walk.state(0.05)?, SearchKind::Auto.optimizer(3));
    longer.run(SearchLimits { budget: 400, patience: 50 }, &mut Progress::none())?;
    assert!(search.evaluations() < longer.evaluations(), "patience ends it earlier");
    Ok(())
}

/// A line per cut of either axis, across the whole box: a grid, not a guillotine partition.
#[test]
fn a_grid_is_drawn_with_its_cuts() -> Result<()> {
    let grid = MondrianGrid::new(3, 5)?;
    let svg = |lifetimes| grid.svg(2, [0, 1], [0.0, -1.0], [2.0, 1.0], lifetimes, 200.0);
    let lines = |svg: &str| svg.matches("<line").count() + svg.matches("<path").count();
    let n_cuts = grid.axis(2, 0).cuts(0.0, 2.0, 6.0)?.len() + grid.axis(2, 1).cuts(-1.0, 1.0, 3.0)?.len();
    assert!(n_cuts > 8);
    assert_eq!(lines(&svg([6.0, 3.0])?) - lines(&svg([0.0, 0.0])?), n_cuts);
    assert!(svg([6.0, 3.0])?.contains(&format!(
        "{} cells",
        (grid.axis(2, 0).cuts(0.0, 2.0, 6.0)?.len() + 1) * (grid.axis(2, 1).cuts(-1.0, 1.0, 3.0)?.len() + 1)
    )));
    assert!(svg([f64::INFINITY, 1.0]).is_err() && grid.svg(0, [0, 1], [0.0; 2], [0.0, 1.0], [1.0; 2], 200.0).is_err());
    Ok(())
}

/// Steered by hand: what-ifs promise what moves give, and a run goes on from there.
#[test]
fn a_search_is_steered_by_hand() -> Result<()> {
    let walk = Walk::new(60, 20, 2, 4, 61)?;
    let mut search = Search::new(walk.state(0.5)?, SearchKind::Greedy.optimizer(0));
    search.run(SearchLimits { budget: 9, patience: 10 }, &mut Progress::none())?;
    let promised = search.what_if(&[Move::Raise(1), Move::Lower(0)])?;
    let made = search.make(Move::Raise(1))?;
    assert!((made.expect("a cut") - promised[0].expect("a cut")).abs() < 1e-9);
    let far = search.jump(&[2.0, 1.0])?;
    assert_eq!((search.state().lifetimes(), search.state().validation_error()), (&[2.0, 1.0][..], far));
    let steps = search.trajectory().len();
    search.run(SearchLimits { budget: search.evaluations() + 8, patience: 1000 }, &mut Progress::none())?;
    let next = &search.trajectory().steps()[steps];
    assert!(next.lifetimes.iter().zip([2.0, 1.0]).all(|(a, b)| *a >= b), "it went on from there: {next:?}");
    Ok(())
}

/// α is a move too: from a bad one the search finds a better one, and the model takes it.
#[test]
fn alpha_is_moved_with_the_lifetimes() -> Result<()> {
    let walk = Walk::new(60, 20, 2, 4, 61)?;
    let mut search = Search::new(walk.state(300.0)?, SearchKind::Greedy.optimizer(0));
    search.run(SearchLimits { budget: 60, patience: 1000 }, &mut Progress::none())?;
    let (before, evaluations) = (search.best().expect("ran").error, search.evaluations());
    search.tune_alpha(SearchLimits { budget: evaluations + 20, patience: 1000 }, &mut Progress::none())?;
    let best = search.best().expect("ran").clone();
    assert!(best.error < 0.9 * before && best.alpha < 100.0, "{before} to {best:?}");
    assert_eq!(search.state().alpha(), best.alpha);
    assert!((search.state().validation_error() - best.error).abs() < 1e-12);
    let mut fresh = walk.state(best.alpha)?;
    fresh.jump(&best.lifetimes)?;
    assert!((fresh.validation_error() - best.error).abs() < 1e-8);
    let (x, e) = (uniform(81, 400), uniform(82, 200));
    let y: Vec<f64> = x.chunks(2).zip(e).map(|(row, e)| (7.0 * row[0]).sin() + e).collect();
    let params = GridRidgeParams { alpha: None, n_grids: 10, search: SearchKind::Greedy, ..GridRidgeParams::default() };
    let model = params.fit(Points::row_major(&x, 2)?, &y)?;
    let steps = model.trajectory();
    assert_eq!(model.alpha(), mondrian::Step::best(steps).expect("searched").alpha);
    assert!(steps.iter().any(|step| step.alpha != steps[0].alpha));
    Ok(())
}

#[test]
fn patience_ends_a_search() -> Result<()> {
    let walk = Walk::new(60, 20, 2, 4, 61)?;
    let mut search = Search::new(walk.state(0.5)?, SearchKind::Greedy.optimizer(0));
    let outcome = search.run(SearchLimits { budget: 100_000, patience: 10 }, &mut Progress::none())?;
    assert_eq!(outcome, Outcome::Patience);
    let steps = search.trajectory().steps();
    let best = search.best().expect("ran").error;
    assert!(steps[steps.len() - 10..].iter().all(|step| step.error > best));
    Ok(())
}

#[test]
fn the_model_ranks_inputs_and_survives_odd_data() -> Result<()> {
    let n = 300;
    let x = uniform(71, n * 4);
    let y: Vec<f64> = x.chunks(4).map(|row| (7.0 * row[2]).sin()).collect();
    let points = Points::row_major(&x, 4)?;
    let baseline = (y.iter().map(|y| y * y).sum::<f64>() / n as f64).sqrt();
    for search in [SearchKind::Auto, SearchKind::Greedy, SearchKind::Coordinate] {
        let params = GridRidgeParams { search, alpha: Some(0.1), n_grids: 20, ..GridRidgeParams::default() };
        let model = params.fit(points, &y)?;
        assert_eq!(model.ranking()[0], 2, "{search:?}: {:?}", model.lifetimes());
        let error: f64 = model.predict(points)?.iter().zip(&y).map(|(p, y)| (p - y).powi(2)).sum();
        assert!((error / n as f64).sqrt() < 0.5 * baseline);
    }
    let cancelled = GridRidgeParams::default().fit_with(
        points,
        &y,
        FitOptions::watched(Progress::new(&mut |_| ControlFlow::Break(()))),
    );
    assert_eq!(cancelled.unwrap_err(), Error::Cancelled);
    for (x, y) in [(vec![1.0], vec![2.0]), (vec![3.0; 20], vec![1.0; 20]), (vec![1.7e9, 1.7e9 + 1.0], vec![0.0, 1.0])] {
        let model = GridRidgeParams::default().fit(Points::row_major(&x, 1)?, &y)?;
        assert!(model.predict(Points::row_major(&x, 1)?)?.iter().all(|p| p.is_finite()));
    }
    assert_eq!(SearchKind::from_name("greedy-both"), Some(SearchKind::GreedyBoth));
    assert_eq!(SearchKind::from_name("no such search"), None);
    Ok(())
}

#[test]
fn searches_in_all_dimensions_escape_where_greedy_both_ways_sticks() -> Result<()> {
    // A chessboard of four fields: no cut in one dimension alone tells anything about the target.
    let n = 300;
    let x = uniform(81, 2 * n);
    let y: Vec<f64> = x.chunks(2).map(|r| if (r[0] < 0.5) == (r[1] < 0.5) { 1.0 } else { -1.0 }).collect();
    let state = || {
        let (train, riders) = (Points::row_major(&x[..400], 2)?, Points::row_major(&x[400..], 2)?);
        GridState::new(MondrianGrid::new(10, 8)?, train, &y[..200], riders, &y[200..], 0.1, true)
    };
    let best = |kind: SearchKind| -> Result<f64> {
        let mut search = Search::new(state()?, kind.optimizer(1));
        search.run(SearchLimits { budget: 200, patience: 200 }, &mut Progress::none())?;
        Ok(search.best().expect("ran").error)
    };
    let stuck = best(SearchKind::GreedyBoth)?;
    assert!(stuck > 0.85, "{stuck}");
    for kind in [SearchKind::Spsa, SearchKind::Bayes] {
        let escaped = best(kind)?;
        assert!(escaped < 0.75, "{kind:?}: {escaped}");
    }
    Ok(())
}

/// Two targets of a walk's rows, row-major: its own and another.
fn two_targets(walk: &Walk) -> Vec<f64> {
    let other = walk.x.chunks(walk.d).map(|row| (4.0 * row[walk.d - 1]).cos());
    walk.y.iter().zip(other).flat_map(|(&y, other)| [y, other]).collect()
}

#[test]
fn several_targets_are_each_solved_as_alone_and_judged_together() -> Result<()> {
    let walk = Walk::new(40, 15, 2, 4, 91)?;
    let (n, d, y) = (walk.n, walk.d, two_targets(&walk));
    let points = (Points::row_major(&walk.x[..n * d], d)?, Points::row_major(&walk.x[n * d..], d)?);
    let state = |y: &[f64], per_row: usize| {
        let (train, validation) = y.split_at(n * per_row);
        GridState::new(walk.grid, points.0, train, points.1, validation, 0.3, true)
    };
    let alone = |target: usize| state(&y.iter().skip(target).step_by(2).copied().collect::<Vec<_>>(), 1);
    let (mut both, mut one, mut other) = (state(&y, 2)?, alone(0)?, alone(1)?);
    let all: Vec<Move> = (0..d).flat_map(|dim| [Move::Raise(dim), Move::Lower(dim)]).collect();
    for step in 0..80_u64 {
        let draw = NodeKey::root(step, 5).draw(0);
        let dim = (draw.second_uniform() * d as f64) as usize;
        let chosen = if draw.uniform() < 0.7 { Move::Raise(dim) } else { Move::Lower(dim) };
        let promised = both.what_if(&all)?[all.iter().position(|m| *m == chosen).expect("listed")];
        for state in [&mut both, &mut one, &mut other] {
            assert_eq!(state.apply(chosen)?, promised.is_some());
        }
        if let Some(promised) = promised {
            assert!((both.validation_error() - promised).abs() < 1e-8, "step {step}: {chosen:?}");
        }
        let apart = one.validation_predictions().into_iter().zip(other.validation_predictions());
        for (pair, (a, b)) in both.validation_predictions().chunks(2).zip(apart) {
            assert!((pair[0] - a).abs() < 1e-9 && (pair[1] - b).abs() < 1e-9, "step {step}");
        }
        let together = f64::midpoint(one.validation_error().powi(2), other.validation_error().powi(2)).sqrt();
        assert!((both.validation_error() - together).abs() < 1e-9);
    }
    // A fresh solve far away, and one of the same configuration by moves.
    let far = [9.0, 9.0];
    let fresh = both.error_at(&far)?;
    both.jump(&far)?;
    assert!((both.validation_error() - fresh).abs() < 1e-7);
    assert!(matches!(state(&y[..y.len() - 1], 2), Err(Error::LengthMismatch { .. })));
    Ok(())
}

#[test]
fn a_model_of_several_targets_searches_for_all_of_them_and_survives_a_file() -> Result<()> {
    let n = 240;
    let x = uniform(101, n * 3);
    // Each target uses an input of its own.
    let y: Vec<f64> = x.chunks(3).flat_map(|row| [(7.0 * row[0]).sin(), (7.0 * row[2]).sin()]).collect();
    let points = Points::row_major(&x, 3)?;
    let params = GridRidgeParams { n_grids: 20, alpha: Some(0.1), ..GridRidgeParams::default() };
    for search in KINDS {
        let model = GridRidgeParams { search, ..params.clone() }.fit(points, &y)?;
        let lifetimes = model.lifetimes();
        // Greedy both ways sticks where one of them is known; the last two are not precise in a few steps.
        if !matches!(search, SearchKind::GreedyBoth | SearchKind::Spsa | SearchKind::Bayes) {
            assert!(lifetimes[1] < 0.5 * lifetimes[0].min(lifetimes[2]), "{search:?}: {lifetimes:?}");
        }
        assert_eq!((model.n_targets(), model.predict(points)?.len()), (2, 2 * n));
    }
    let lifetimes = [3.0, 0.0, 3.0].map(|l| mondrian::Lifetime::new(l).expect("finite")).to_vec();
    let given = GridRidgeParams { lifetimes: LifetimesChoice::Each(lifetimes), ..params };
    let both = given.fit(points, &y)?;
    for target in 0..2 {
        let alone = given.fit(points, &y.iter().skip(target).step_by(2).copied().collect::<Vec<_>>())?;
        let found = both.predict(points)?.into_iter().skip(target).step_by(2);
        for (a, b) in found.zip(alone.predict(points)?) {
            assert!((a - b).abs() < 1e-9);
        }
    }
    let bytes = both.to_bytes()?;
    let back = GridRidge::from_bytes(&bytes)?;
    assert_eq!((back.predict(points)?, back.to_bytes()?), (both.predict(points)?, bytes));
    assert!(matches!(given.fit(points, &y[1..]), Err(Error::LengthMismatch { .. })));
    Ok(())
}

/// A line without noise: the exact kernel is best nearly constant, with lifetimes at which no grid has a cut.
#[test]
fn a_straight_line_is_found_with_an_automatic_alpha() -> Result<()> {
    let x = uniform(0, 400);
    let y: Vec<f64> = x.chunks(2).map(|row| row[1]).collect();
    let points = Points::row_major(&x, 2)?;
    let model = GridRidgeParams { n_grids: 20, alpha: None, ..GridRidgeParams::default() }.fit(points, &y)?;
    let squares: f64 = model.predict(points)?.iter().zip(&y).map(|(p, y)| (p - y).powi(2)).sum();
    assert!(model.lifetimes()[1] > 0.0 && (squares / 200.0).sqrt() < 0.05, "{:?}: {squares}", model.lifetimes());
    // Nothing to find: one value, or no input that varies.
    for (x, y) in [(&x[..], vec![3.0; 200]), (&[1.0; 400][..], y)] {
        let model = GridRidgeParams { n_grids: 5, alpha: None, ..GridRidgeParams::default() };
        assert!(model.fit(Points::row_major(x, 2)?, &y)?.predict(points)?.iter().all(|p| p.is_finite()));
    }
    Ok(())
}

/// Planes without noise: the exact kernel is tuned to lifetimes at which few grids have a cut, and a few cuts may be worse than none.
#[test]
fn several_planes_are_found_with_an_automatic_alpha() -> Result<()> {
    for seed in 0..6 {
        let x = uniform(seed, 900);
        let y: Vec<f64> = x.chunks(3).flat_map(|row| [row[0], row[1] - row[0], row[0] + row[1] + row[2]]).collect();
        let points = Points::row_major(&x, 3)?;
        let params = GridRidgeParams { n_grids: 20, alpha: None, seed, ..GridRidgeParams::default() };
        let model = params.fit(points, &y)?;
        let squares: f64 = model.predict(points)?.iter().zip(&y).map(|(p, y)| (p - y).powi(2)).sum();
        let mean = |target: usize| y.iter().skip(target).step_by(3).sum::<f64>() / 300.0;
        let means = [mean(0), mean(1), mean(2)];
        let total: f64 = y.iter().enumerate().map(|(at, y)| (y - means[at % 3]).powi(2)).sum();
        assert!(1.0 - squares / total > 0.95, "seed {seed}: R² {}", 1.0 - squares / total);
    }
    Ok(())
}
