//! The accuracy table of the classification forest: standard splits, 100 trees, standardised inputs.
//!
//! `classification_accuracy [NAME...]`, by default letter, satimage, usps and dna. `TREES`, `GAMMA` and `LIFETIME` in the
//! environment replace the defaults (100, automatic, infinite and automatic).

use mondrian::GammaChoice;
use mondrian::{ClassificationParams, ForestParams, LifetimeChoice, MeasureChoice, Unseen, WeightsChoice};
use mondrian::{Lifetime, Points};
use mondrian_benches::{Standardised, Table, timed};

/// Training rows of the standard splits.
const SPLITS: [(&str, usize); 4] = [("letter", 15_000), ("satimage", 4435), ("usps", 7291), ("dna", 2000)];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    println!("| data | measure | unseen | λ | γ | accuracy | log loss | fit s | γ and λ s | predict s | MB |");
    println!("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (name, n_train) in SPLITS {
        if !names.is_empty() && !names.iter().any(|n| n == name) {
            continue;
        }
        let split = Table::read(name)?.split_at(n_train);
        let lifetimes = match number("LIFETIME") {
            Some(value) => vec![LifetimeChoice::Value(Lifetime::new(value)?)],
            None => vec![LifetimeChoice::Value(Lifetime::INFINITE), LifetimeChoice::Auto],
        };
        for lifetime in lifetimes {
            for measure in [MeasureChoice::Uniform, MeasureChoice::Quantile] {
                run(name, &split, &measure, Unseen::Keyed, lifetime)?;
            }
        }
        run(name, &split, &MeasureChoice::Uniform, Unseen::Integrate, LifetimeChoice::Value(Lifetime::INFINITE))?;
    }
    Ok(())
}

fn number(name: &str) -> Option<f64> {
    std::env::var(name).ok()?.parse().ok()
}

fn run(
    name: &str,
    split: &Standardised,
    measure: &MeasureChoice,
    unseen: Unseen,
    lifetime: LifetimeChoice,
) -> mondrian::Result<()> {
    let labels = |y: &[f64]| -> Vec<u32> { y.iter().map(|v| *v as u32).collect() };
    let (train, test) = (labels(&split.train_y), labels(&split.test_y));
    let n_classes = 1 + train.iter().chain(&test).max().copied().unwrap_or(0) as usize;
    let n_trees = number("TREES").map_or(100, |n| n as usize);
    let forest = ForestParams {
        n_trees,
        lifetime,
        measure: measure.clone(),
        weights: WeightsChoice::Raw,
        ..ForestParams::default()
    };
    let gamma = number("GAMMA").map_or(GammaChoice::Auto, GammaChoice::Value);
    let params = ClassificationParams { forest, gamma, unseen, n_classes: None };
    let points = Points::row_major(&split.train_x, split.n_columns)?;
    let (model, fit) = timed(|| params.n_classes(n_classes).fit(points, &train));
    let model = model?;
    let ((gamma, view), resolve) = timed(|| (model.gamma(), model.lifetime()));
    let test_points = Points::row_major(&split.test_x, split.n_columns)?;
    let (probabilities, predict) = timed(|| model.predict_proba(test_points));
    let probabilities = probabilities?;
    let (mut right, mut log_loss) = (0, 0.0);
    for (p, &y) in probabilities.chunks_exact(n_classes).zip(&test) {
        let best = (0..n_classes).fold(0, |best, k| if p[k] > p[best] { k } else { best });
        right += usize::from(best == y as usize);
        log_loss -= p[y as usize].max(f64::EPSILON).ln();
    }
    let (n, megabytes) = (test.len() as f64, model.n_bytes() as f64 / 1e6);
    println!(
        "| {name} | {measure:?} | {unseen:?} | {view:.3} | {gamma:.2} | {:.4} | {:.4} | {fit:.2} | {resolve:.2} | {predict:.2} | {megabytes:.0} |",
        right as f64 / n,
        log_loss / n
    );
    Ok(())
}
