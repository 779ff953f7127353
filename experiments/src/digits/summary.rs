//! What the contests show, as numbers, claims, tables and a figure.

use super::contest::{Contest, Curves, LIFETIMES};
use super::kde::bandwidth;
use crate::plot::{Axis, Figure, Line, Panel, Style};
use crate::record::{Cell, Record, Spread};

/// Up to this many components count as few.
const FEW: usize = 3;

/// Mean over numbers of components.
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Mean over numbers of components of what Mondrian errs more, with its standard error over images.
fn paired(differences: &[Vec<f64>]) -> Spread {
    let n_images = differences[0].len();
    let of_image = |image: usize| mean(&differences.iter().map(|d| d[image]).collect::<Vec<f64>>());
    let all = Spread::of((0..n_images).map(of_image));
    Spread { deviation: all.deviation / (n_images as f64).sqrt(), ..all }
}

/// Numbers of one pair of curves, under names that begin with `name`.
fn numbers(record: &mut Record, name: &str, curves: &Curves) {
    let mondrian: Vec<f64> = curves.mondrian.iter().map(|s| s.mean).collect();
    let wins = mondrian.iter().zip(&curves.kde).filter(|(m, k)| m < k).count();
    record.number(&format!("{name}_wins"), wins as f64);
    for (part, range) in [("few", 0..FEW), ("many", FEW..curves.kde.len())] {
        let more = paired(&curves.differences[range.clone()]);
        for (what, value) in [
            ("m", mean(&mondrian[range.clone()])),
            ("k", mean(&curves.kde[range.clone()])),
            ("more", more.mean),
            ("error", more.deviation),
        ] {
            record.number(&format!("{name}_{what}_{part}"), value);
        }
    }
}

pub(super) fn write(record: &mut Record, many: &Contest, few: &Contest) {
    numbers(record, "constant", &many.constant);
    numbers(record, "tuned", &many.tuned);
    numbers(record, "less", &few.constant);
    numbers(record, "less_tuned", &few.tuned);
    let (h, lifetime, gamma) = many.constant.chosen[0];
    let (less_h, less_lifetime, less_gamma) = few.constant.chosen[0];
    // Numbers of bandwidths go by factors of √2.
    let wide = many.by_bandwidth.iter().map(|e| mean(e)).enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
    let wide = wide.map_or(0, |(best, _)| best.saturating_sub(2));
    // The best that any constant value would have done in few dimensions, in hindsight.
    let hindsight = |errors: &[Vec<f64>]| errors.iter().map(|e| mean(&e[..FEW])).fold(f64::INFINITY, f64::min);
    for (name, value) in [
        ("n", many.constant.kde.len() as f64),
        ("few", FEW as f64),
        ("h", h),
        ("lifetime", lifetime),
        ("gamma", gamma),
        ("less_h", less_h),
        ("less_lifetime", less_lifetime),
        ("less_gamma", less_gamma),
        ("images", many.n_train as f64),
        ("less_images", few.n_train as f64),
        ("wide_h", bandwidth(wide)),
        ("wide_few", mean(&many.by_bandwidth[wide][..FEW])),
        ("wide_many", mean(&many.by_bandwidth[wide][FEW..])),
        ("hindsight_k", hindsight(&many.by_bandwidth)),
        ("hindsight_m", hindsight(&many.by_lifetime)),
        ("less_hindsight_k", hindsight(&few.by_bandwidth)),
        ("less_hindsight_m", hindsight(&few.by_lifetime)),
    ] {
        record.number(name, value);
    }
    see(record);
    claims(record);
    record.figures.push(figure(many, few));
    errors(record, many);
    other_values(record, many, few);
}

fn see(record: &mut Record) {
    record.see(
        "Held constant (bandwidth {h:.2}; λ = {lifetime}, γ = {gamma}) with {images} images to learn, the Mondrian classifier errs on \
         {constant_m_few:%} of the test images on average over 1 to {few} components and kernel density estimation on {constant_k_few:%}; over \
         the others {constant_m_many:%} and {constant_k_many:%}. Mondrian has the lower error for {constant_wins} of {n} numbers of components. \
         The difference on the same images, Mondrian less kernel, is {constant_more_few:%} ± {constant_error_few:%} in few and \
         {constant_more_many:%} ± {constant_error_many:%} in many dimensions (mean and standard error over images). Chosen for each number of \
         components, the errors are {tuned_m_few:%} and {tuned_k_few:%}, then {tuned_m_many:%} and {tuned_k_many:%}.",
    );
    record.see(
        "With {less_images} images to learn (bandwidth {less_h:.2}; λ = {less_lifetime}, γ = {less_gamma}) they are {less_m_few:%} and \
         {less_k_few:%}, then {less_m_many:%} and {less_k_many:%}; the difference is {less_more_few:%} ± {less_error_few:%} in few and \
         {less_more_many:%} ± {less_error_many:%} in many. The comparison depends on the constants: the last table has \
         others. In hindsight the \
         best ones for few dimensions would have given {hindsight_m:%} (Mondrian) and {hindsight_k:%} (kernel) with the more images, \
         {less_hindsight_m:%} and {less_hindsight_k:%} with the fewer; a kernel twice as wide as is best over all ({wide_h:.2}) would have erred \
         on {wide_few:%} in few and {wide_many:%} in many dimensions.",
    );
}

fn claims(record: &mut Record) {
    let value = |name: &str| record.numbers[name];
    let relative = |name: &str| {
        let ratio = |part: &str| value(&format!("{name}_m_{part}")) / value(&format!("{name}_k_{part}"));
        ratio("few") < ratio("many")
    };
    let significantly =
        |name: &str, sign: f64| sign * value(&format!("{name}_more_few")) > 2.0 * value(&format!("{name}_error_few"));
    let (relative, worse, better) =
        (relative("constant"), significantly("constant", 1.0), significantly("constant", -1.0));
    let less_worse = significantly("less", 1.0);
    record.claim(
        "more competitive in few dimensions",
        relative,
        "with constant hyperparameters Mondrian compares better with kernel density estimation in 1 to {few} dimensions than in more, \
         the report's claim",
    );
    record.claim(
        "not worse in few dimensions",
        !worse,
        "with constant hyperparameters Mondrian is not worse in 1 to {few} dimensions by more than two standard errors ({constant_more_few:%} ± \
         {constant_error_few:%})",
    );
    record.claim(
        "better in few dimensions",
        better,
        "with constant hyperparameters Mondrian is better than kernel density estimation in 1 to {few} dimensions by more than two \
         standard errors ({constant_more_few:%} ± {constant_error_few:%})",
    );
    record.claim(
        "not worse in few dimensions, fewer images",
        !less_worse,
        "with {less_images} images to learn Mondrian is not worse in 1 to {few} dimensions either ({less_more_few:%} ± {less_error_few:%})",
    );
}

fn chart(title: &str, curves: &Curves) -> Panel {
    let at = |k: usize| k as f64 + 1.0;
    let mondrian = curves.mondrian.iter().enumerate().map(|(k, s)| (at(k), 100.0 * s.mean, 100.0 * s.deviation));
    let kde = curves.kde.iter().enumerate().map(|(k, e)| (at(k), 100.0 * e));
    Panel::chart(
        title,
        Axis::linear("principal components"),
        Axis::log("test images wrong, %"),
        vec![
            Line::banded("Mondrian", 0, mondrian).style(Style::Dotted),
            Line::new("kernel density estimation", 1, kde).style(Style::Dotted),
        ],
    )
}

fn figure(many: &Contest, few: &Contest) -> Figure {
    let title = |what: &str, contest: &Contest| format!("{what}, {} images to learn", contest.n_train);
    Figure {
        file: "digits".to_owned(),
        caption: "Error in classifying digits 0 and 9 against the number of principal components: hyperparameters the \
        same for all \
                  numbers (left, as in the report), and chosen by cross-validation for each (right); above with {images} images to \
                  learn, below with {less_images}. Bands are one standard deviation over forests."
            .to_owned(),
        panels: [many, few]
            .into_iter()
            .flat_map(|c| [chart(&title("Constant", c), &c.constant), chart(&title("Chosen for each", c), &c.tuned)])
            .collect(),
    }
}

fn errors(record: &mut Record, contest: &Contest) {
    let Contest { constant, tuned, .. } = contest;
    let row = |k: usize| -> Vec<Cell> {
        let (h, lifetime, gamma) = tuned.chosen[k];
        let percent = |s: Spread| Cell::from(Spread { mean: 100.0 * s.mean, deviation: 100.0 * s.deviation });
        vec![
            (k as f64 + 1.0).into(),
            percent(constant.mondrian[k]),
            (100.0 * constant.kde[k]).into(),
            percent(tuned.mondrian[k]),
            (100.0 * tuned.kde[k]).into(),
            h.into(),
            lifetime.into(),
            gamma.into(),
        ]
    };
    let caption = format!(
        "Per cent of test images wrong with {} to learn; on the right with the hyperparameters chosen for each number of components",
        contest.n_train
    );
    let columns = ["components", "Mondrian", "kernel", "Mondrian, chosen", "kernel, chosen", "bandwidth", "λ", "γ"];
    record.table(&caption, &columns, (0..constant.kde.len()).map(row));
}

/// What other constant values would have given: the comparison should not hang on them.
fn other_values(record: &mut Record, many: &Contest, few: &Contest) {
    let parts = |errors: &[f64]| [mean(&errors[..FEW]), mean(&errors[FEW..])].map(|e| Cell::from(100.0 * e));
    let row = |name: String, [a, b]: [&[f64]; 2]| -> Vec<Cell> {
        std::iter::once(Cell::Word(name)).chain(parts(a)).chain(parts(b)).collect()
    };
    let kernels = (0..many.by_bandwidth.len())
        .map(|h| row(format!("kernel, h = {:.3}", bandwidth(h)), [&many.by_bandwidth[h], &few.by_bandwidth[h]]));
    let forests = LIFETIMES.iter().enumerate();
    let forests = forests
        .map(|(l, lifetime)| row(format!("Mondrian, λ = {lifetime}"), [&many.by_lifetime[l], &few.by_lifetime[l]]));
    let heads = [(many, "few"), (many, "many"), (few, "few"), (few, "many")]
        .map(|(contest, which)| format!("{} images, {which} components", contest.n_train));
    let columns: Vec<&str> = std::iter::once("constant value").chain(heads.iter().map(String::as_str)).collect();
    record.table(
        "Per cent of test images wrong with other constant values, the means over few and over many components (Mondrian: γ as \
         chosen, one forest)",
        &columns,
        kernels.chain(forests),
    );
}
