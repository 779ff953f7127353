//! Direct samples and restrictions have the law of the definition (report, chapter 1).
//!
//! Every comparison refuses a correct sampler with probability below 1e-6 (see `statistic.rs`); there are fewer
//! than 150 in this area, so the false-alarm rate is below 1.5e-4 for a new seed, and nil for the fixed ones.

use mondrian::process::{Bounds, InfiniteMondrian, Measure, poisson};
use mondrian::{Lifetime, Points};

use crate::statistic::{
    check_distribution, check_frequency, check_mean, check_poisson, check_same_cell, check_shares, distance, lengths,
    measures, sample,
};

#[test]
fn cuts_of_a_line_are_a_poisson_process() {
    // 20 000 samples of about 4 points. Power: an intensity 4 % off shifts χ² by 20 000·0.04²·4 = 128, where 60 is
    // refused; 80 000 locations whose distribution function is off by 0.015 give D·√n = 4.
    for (name, measure) in measures(1) {
        let (a, b) = (0.05, 0.8);
        let length = measure.coordinate(0, b) - measure.coordinate(0, a);
        let intensity = Lifetime::new(4.0 / length).unwrap();
        let samples: Vec<_> =
            (0..20_000).map(|seed| poisson(a, b, intensity, seed, measure.clone()).unwrap()).collect();
        let numbers: Vec<usize> = samples.iter().map(Vec::len).collect();
        check_poisson(&format!("number of points, {name}"), &numbers, 4.0, 12);
        let share = |x: f64| (measure.coordinate(0, x) - measure.coordinate(0, a)) / length;
        let points = || samples.iter().flatten();
        check_distribution(&format!("locations, {name}"), points().map(|p| share(p.location)).collect(), |u| u);
        // While the intensity grows, points come at a constant rate.
        check_distribution(&format!("times, {name}"), points().map(|p| p.time / intensity.get()).collect(), |u| u);
        // Disjoint parts are independent: the numbers in two halves have no covariance.
        let halves: Vec<f64> = samples
            .iter()
            .map(|s| {
                let left = s.iter().filter(|p| share(p.location) <= 0.5).count() as f64;
                (left - 2.0) * (s.len() as f64 - left - 2.0)
            })
            .collect();
        check_mean(&format!("covariance of halves, {name}"), &halves, 0.0);
    }
}

#[test]
fn the_first_cut_is_uniform_on_the_linear_dimension() {
    // 20 000 samples. Power: a rate 5 % off gives D·√n = 0.05/e·√20000 = 2.6 in the mean, 10 % gives 5.2; a share
    // off by 0.02 gives χ² above 40, where 28 is refused.
    for (name, measure) in measures(3) {
        let bounds = Bounds::new(&[0.0, 0.1, 0.0], &[1.0, 0.4, 0.6]).unwrap();
        let sides = lengths(&measure, &bounds);
        let total: f64 = sides.iter().sum();
        let (mut times, mut counts, mut places) = (Vec::new(), [0; 3], Vec::new());
        for index in 0..20_000 {
            let mut limit = 1.0;
            let cut = loop {
                // Without a cut yet, look further: it is the same sample.
                if let Some(cut) = sample(&bounds, &measure, limit, index).nodes().next() {
                    break cut;
                }
                limit *= 2.0;
            };
            times.push(cut.time);
            counts[cut.dim] += 1;
            let from = measure.coordinate(cut.dim, bounds.lower()[cut.dim]);
            places.push((measure.coordinate(cut.dim, cut.location) - from) / sides[cut.dim]);
        }
        check_distribution(&format!("time of the first cut, {name}"), times, |t| 1.0 - (-total * t).exp());
        let shares: Vec<f64> = sides.iter().map(|side| side / total).collect();
        check_shares(&format!("dimension of the first cut, {name}"), &counts, &shares);
        check_distribution(&format!("place of the first cut, {name}"), places, |u| u);
    }
}

/// Ten pairs in a box, most of them near enough to be together at times.
fn pairs(n_dims: usize, seed: u64) -> Vec<(Vec<f64>, Vec<f64>)> {
    let draw = |i: u64| mondrian::process::NodeKey::root(seed, 9).fork(i).draw(0).uniform();
    (0..10_u64)
        .map(|pair| {
            let x: Vec<f64> = (0..n_dims as u64).map(|d| 0.1 + 0.5 * draw(100 * pair + 2 * d)).collect();
            let step = 0.3 / n_dims as f64;
            let y = (0..n_dims as u64).map(|d| x[d as usize] + step * (0.3 + draw(100 * pair + 2 * d + 1))).collect();
            (x, y)
        })
        .collect()
}

#[test]
fn points_stay_together_with_the_laplace_probability() {
    // 10 pairs a setting. Power: λ off by 10 % at λ‖x−y‖ = 1 and 5 000 samples shows as z = 0.1·0.37/0.0068 = 5.4,
    // in most of the ten pairs of each of six settings.
    for (n_dims, limit, n) in [(1, 2.5, 10_000), (2, 2.5, 8_000), (5, 1.5, 5_000)] {
        for (name, measure) in measures(n_dims) {
            let bounds = Bounds::new(&vec![0.0; n_dims], &vec![1.0; n_dims]).unwrap();
            let samples: Vec<_> = (0..n).map(|index| sample(&bounds, &measure, limit, index)).collect();
            check_same_cell(&format!("D = {n_dims}, {name}"), &measure, limit, &pairs(n_dims, 1), &samples);
        }
    }
}

#[test]
fn the_number_of_cells_is_the_product_in_the_mean() {
    // The relative spread of the number of cells is about 0.8 in these settings: 5 000 samples give the mean to 1.1 %,
    // so an error of 8 % is refused with certainty.
    for (n_dims, limit) in [(1, 10.0), (2, 4.0), (3, 2.0)] {
        for (name, measure) in measures(n_dims) {
            let bounds = Bounds::new(&vec![0.0; n_dims], &vec![1.0; n_dims]).unwrap();
            let expected: f64 = lengths(&measure, &bounds).iter().map(|side| 1.0 + limit * side).product();
            let samples: Vec<_> = (0..5_000).map(|index| sample(&bounds, &measure, limit, index)).collect();
            assert!((samples[0].process().expected_cells(samples[0].lifetime()) / expected - 1.0).abs() < 1e-12);
            let cells: Vec<f64> = samples.iter().map(|partition| partition.n_cells() as f64).collect();
            check_mean(&format!("cells, D = {n_dims}, {name}"), &cells, expected);
        }
    }
}

#[test]
fn restrictions_have_the_law_of_direct_samples() {
    // 6 000 samples; power as above. The slice is a process in the other dimensions, the line a Poisson process.
    let limit = 3.0;
    for (name, measure) in measures(3) {
        let bounds = Bounds::new(&[0.0; 3], &[1.0; 3]).unwrap();
        let wholes: Vec<_> = (0..6_000).map(|index| sample(&bounds, &measure, limit, index)).collect();
        for (kind, window) in [
            ("box", Bounds::new(&[0.1, 0.2, 0.0], &[0.9, 0.8, 0.5]).unwrap()),
            ("slice", Bounds::new(&[0.1, 0.3, 0.0], &[0.9, 0.3, 0.5]).unwrap()),
        ] {
            let sides = lengths(&measure, &window);
            let parts: Vec<_> =
                wholes.iter().map(|whole| whole.restrict(window.lower(), window.upper()).unwrap()).collect();
            let cells: Vec<f64> = parts.iter().map(|part| part.n_cells() as f64).collect();
            let expected = sides.iter().map(|side| 1.0 + limit * side).product();
            check_mean(&format!("cells of a {kind}, {name}"), &cells, expected);
            let trivial = parts.iter().filter(|part| part.n_cuts() == 0).count();
            let rate: f64 = sides.iter().sum();
            check_frequency(&format!("trivial {kind}, {name}"), trivial, parts.len(), (-limit * rate).exp());
            let firsts = parts.iter().filter_map(|part| part.nodes().next()).map(|node| node.time).collect();
            let within = 1.0 - (-limit * rate).exp();
            let cdf = |t: f64| (1.0 - (-rate * t).exp()) / within;
            check_distribution(&format!("first cut of a {kind}, {name}"), firsts, cdf);
        }
        let crossings: Vec<usize> =
            wholes.iter().map(|whole| whole.crossings(&[0.3, 0.6, 0.9], 2).unwrap().len()).collect();
        let mean = limit * lengths(&measure, &bounds)[2];
        check_poisson(&format!("cuts that cross a line, {name}"), &crossings, mean, 8);
    }
}

#[test]
fn the_infinite_process_has_the_law_everywhere() {
    // Windows far from the first box, and across its border; 4 000 seeds. Power as for pairs of points above.
    let limit = 1.0;
    for (x, y) in [([0.4, 0.4], [0.7, 0.6]), ([-0.2, 0.5], [0.1, 0.9]), ([700.0, -3.0], [700.4, -3.3])] {
        let (mut together, n) = (0, 4_000);
        for seed in 0..n {
            let plane = InfiniteMondrian::new(2, Lifetime::new(limit).unwrap(), seed).unwrap();
            let names = plane.cell_of(Points::row_major(&[x[0], x[1], y[0], y[1]], 2).unwrap()).unwrap();
            together += usize::from(names[0] == names[1]);
        }
        let p = (-limit * distance(&measures(2)[0].1, &x, &y)).exp();
        check_frequency(&format!("{x:?} and {y:?} together"), together, n as usize, p);
        let cells: Vec<f64> = (0..n)
            .map(|seed| {
                let plane = InfiniteMondrian::new(2, Lifetime::new(limit).unwrap(), seed).unwrap();
                plane.restrict(&[x[0] - 0.5, x[1] - 0.5], &[x[0] + 1.5, x[1] + 0.5]).unwrap().n_cells() as f64
            })
            .collect();
        check_mean(&format!("cells around {x:?}"), &cells, 3.0 * 2.0);
    }
}
