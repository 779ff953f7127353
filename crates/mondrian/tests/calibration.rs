//! Forests that know what they do not know: coverage of intervals from both sides, the noise found, the relevance of noise.

mod table;

use mondrian::process::NodeKey;
use mondrian::{ClassificationForest, Points, RegressionForest, RegressionParams};
use table::Split;

const SHARES: [f64; 4] = [0.5, 0.8, 0.9, 0.95];

/// Share of test rows inside the intervals of each size.
fn coverage(model: &RegressionForest, split: &Split) -> [f64; 4] {
    SHARES.map(|share| {
        let ends = model.predict_quantiles(split.test(), &[0.5 - share / 2.0, 0.5 + share / 2.0]).unwrap();
        let inside = ends.chunks(2).zip(&split.test_y).filter(|(e, y)| e[0] <= **y && **y <= e[1]).count();
        inside as f64 / split.test_y.len() as f64
    })
}

/// Within 3 points of what the intervals say, from above and below, on average over three splits. With 4096 rows left out and more than 1500 test
/// rows the standard deviation of one split's coverage is 1.5 points at 50 % and 0.7 at 95 % if intervals are right, so at most one
/// table in a thousand fails by chance; the widths of the normal model miss by 4 to 17 points on these tables.
fn assert_covered(name: &str, params: &RegressionParams, rows: &[Vec<f64>]) {
    let (mut covered, mut square, mut variance) = ([0.0; 4], 0.0, 0.0);
    for seed in [77, 78, 79] {
        let split = Split::of(rows, seed);
        let model = params.fit(split.train(), &split.train_y).unwrap();
        let found = coverage(&model, &split);
        covered.iter_mut().zip(found).for_each(|(sum, found)| *sum += found / 3.0);
        let predicted = model.predict_with_std(split.test()).unwrap();
        for ((mean, std), y) in predicted.mean.iter().zip(&predicted.std).zip(&split.test_y) {
            square += (y - mean).powi(2);
            variance += std * std;
        }
        println!("{name}: {found:.3?}");
    }
    println!("{name}: {covered:.3?}, errors over deviations {:.3}", (square / variance).sqrt());
    for (share, found) in SHARES.iter().zip(covered) {
        assert!((found - share).abs() <= 0.03, "{name}: {found} at {share}");
    }
    // A few rows of cpu_act are off by fifty deviations: squares say nothing there.
    let ratio = (square / variance).sqrt();
    assert!(name == "cpu_act" || (0.9..1.1).contains(&ratio), "{name}: deviations are as large as errors");
}

fn quick() -> RegressionParams {
    RegressionForest::params().n_trees(25)
}

/// Uniform inputs, and a function of them with noise.
fn planted(n: u64, n_dims: u64, seed: u64, target: impl Fn(&[f64], f64) -> f64) -> Vec<Vec<f64>> {
    let row = |i: u64| {
        let key = NodeKey::root(seed, i);
        let mut row: Vec<f64> = (0..n_dims).map(|d| key.fork(d).draw(0).uniform()).collect();
        row.push(target(&row, key.draw(1).normal()));
        row
    };
    (0..n).map(row).collect()
}

#[test]
fn intervals_hold_what_they_say_on_ccpp() {
    let Some(rows) = Split::read("ccpp") else { return };
    assert_covered("ccpp", &quick(), &rows);
}

#[test]
fn intervals_hold_what_they_say_on_cpu_act() {
    let Some(rows) = Split::read("cpu_act") else { return };
    assert_covered("cpu_act", &quick(), &rows);
}

#[test]
fn intervals_hold_what_they_say_on_house_8l() {
    let Some(rows) = Split::read("house_8l") else { return };
    assert_covered("house_8l", &quick(), &rows[..10_000]);
}

#[test]
fn intervals_hold_what_they_say_on_planted_noise() {
    let wave = planted(8000, 3, 1, |x, e| (6.0 * x[0]).sin() + x[1] + 0.3 * e);
    assert_covered("wave", &quick(), &wave);
    // Noise that is skewed, with long tails, and grows with an input.
    let skewed = planted(8000, 2, 2, |x, e| 3.0 * x[0] + (0.1 + x[1]) * (0.8 * e).exp());
    assert_covered("skewed", &quick(), &skewed);
}

#[test]
fn the_noise_found_is_the_noise_planted() {
    let sets = [
        ("one of six", 0.3, planted(1000, 6, 3, |x, e| (6.0 * x[0]).sin() + 0.3 * e)),
        ("a wave", 0.3, planted(1000, 1, 4, |x, e| (6.0 * x[0]).sin() + 0.3 * e)),
        ("a product", 0.1, planted(2000, 2, 5, |x, e| (6.0 * x[0]).sin() * x[1] + 0.1 * e)),
        ("noise alone", 2.0, planted(500, 3, 6, |_, e| 100.0 + 2.0 * e)),
        ("Friedman's", 1.0, planted(5000, 7, 7, |x, e| friedman(x) + e)),
    ];
    for (name, noise, rows) in sets {
        let split = Split::of(&rows, 77);
        let model = quick().fit(split.train(), &split.train_y).unwrap();
        let found = model.noise_variances()[0].sqrt();
        println!("{name}: {found:.3} of {noise}; relevance {:.3?}", model.relevance());
        assert!((found / noise - 1.0).abs() <= 0.15, "{name}: {found} where {noise} was planted");
        let given = mondrian::Prior { noise: Some(0.5), ..Default::default() };
        let model = RegressionParams { prior: given, ..quick() }.fit(split.train(), &split.train_y).unwrap();
        assert_eq!(model.noise_variances(), [0.5]);
    }
}

fn friedman(x: &[f64]) -> f64 {
    10.0 * (std::f64::consts::PI * x[0] * x[1]).sin() + 20.0 * (x[2] - 0.5).powi(2) + 10.0 * x[3] + 5.0 * x[4]
}

#[test]
fn inputs_of_noise_have_no_relevance() {
    for seed in 0..5 {
        let rows = planted(1000, 6, 20 + seed, |x, e| (6.0 * x[2]).sin() + 0.3 * e);
        let split = Split::of(&rows, 77);
        let relevance = quick().fit(split.train(), &split.train_y).unwrap().relevance();
        println!("{relevance:.4?}");
        assert!((relevance.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        for (d, share) in relevance.iter().enumerate() {
            assert!(if d == 2 { *share >= 0.9 } else { *share <= 0.02 }, "{relevance:?}");
        }
        let split = Split::of(&planted(2000, 7, 40 + seed, |x, e| friedman(x) + e), 77);
        let relevance = quick().fit(split.train(), &split.train_y).unwrap().relevance();
        println!("{relevance:.4?}");
        assert!(relevance[..5].iter().all(|share| *share > 0.02), "{relevance:?}");
        assert!(relevance[5..].iter().all(|share| *share <= 0.02), "{relevance:?}");
    }
}

#[test]
fn inputs_of_noise_have_no_relevance_for_classes() {
    for seed in 0..5 {
        // One in ten labels is wrong.
        let rows = planted(1000, 6, 60 + seed, |x, e| {
            let class = if e > 1.28 { x[3] } else { x[2] };
            f64::from(u8::from(class > 0.5) + u8::from(x[1] > 0.7))
        });
        let split = Split::of(&rows, 77);
        let labels: Vec<u32> = split.train_y.iter().map(|y| *y as u32).collect();
        let model = ClassificationForest::params().n_trees(25).fit(split.train(), &labels).unwrap();
        let relevance = model.relevance();
        println!("{relevance:.4?}");
        assert!(relevance[2] > 0.3 && relevance[1] > 0.3, "{relevance:?}");
        assert!([0, 4, 5].iter().all(|d| relevance[*d] <= 0.02), "{relevance:?}");
    }
}

#[test]
fn a_calibration_is_held_until_rows_change() {
    let rows = planted(300, 2, 9, |x, e| x[0] + 0.2 * e);
    let x: Vec<f64> = rows.iter().flat_map(|row| row[..2].to_vec()).collect();
    let y: Vec<f64> = rows.iter().map(|row| row[2]).collect();
    let points = |from: usize, to: usize| Points::row_major(&x[2 * from..2 * to], 2).unwrap();
    let mut model = quick().fit(points(0, 200), &y[..200]).unwrap();
    let early = model.calibration();
    model.learn(points(200, 300), &y[200..]).unwrap();
    let (fresh, late) = (model.predict_with_std(points(0, 5)).unwrap(), model.calibration());
    model.hold_calibration(&early);
    let held = model.predict_with_std(points(0, 5)).unwrap();
    assert_eq!(held.mean, fresh.mean);
    assert_ne!(held.std, fresh.std);
    model.hold_calibration(&late);
    assert_eq!(model.predict_with_std(points(0, 5)).unwrap().std, fresh.std);
    model.hold_calibration(&early);
    model.learn(points(0, 1), &y[..1]).unwrap();
    model.forget(points(0, 1), &y[..1]).unwrap();
    assert_eq!(model.predict_with_std(points(0, 5)).unwrap().std, fresh.std, "rows have changed");
}

#[test]
fn calibration_depends_on_the_rows_alone() {
    let rows = planted(600, 2, 9, |x, e| x[0] + 0.2 * e);
    let x: Vec<f64> = rows.iter().flat_map(|row| row[..2].to_vec()).collect();
    let y: Vec<f64> = rows.iter().map(|row| row[2]).collect();
    let points = |from: usize, to: usize| Points::row_major(&x[2 * from..2 * to], 2).unwrap();
    let all = quick().fit(points(0, 600), &y).unwrap();
    let mut some = all.clone();
    let before = all.predict_quantiles(points(0, 9), &[0.1, 0.7]).unwrap();
    some.forget(points(300, 600), &y[300..]).unwrap();
    assert_ne!(some.predict_quantiles(points(0, 9), &[0.1, 0.7]).unwrap(), before);
    assert_ne!(some.noise_variances(), all.noise_variances());
    for row in (300..600).rev() {
        some.learn(points(row, row + 1), &y[row..=row]).unwrap();
    }
    assert_eq!(some.predict_quantiles(points(0, 9), &[0.1, 0.7]).unwrap(), before);
    assert_eq!(some.noise_variances(), all.noise_variances());
    assert_eq!(some.relevance(), all.relevance());
    let view = |model: &RegressionForest| {
        model.at(mondrian::Lifetime::new(1.0).unwrap()).unwrap().predict_with_std(points(0, 9)).unwrap().std
    };
    assert_eq!(view(&some), view(&all));
    assert_ne!(view(&some), some.predict_with_std(points(0, 9)).unwrap().std);
}
