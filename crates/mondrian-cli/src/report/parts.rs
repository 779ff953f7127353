//! Sections shared by several commands: the data, calibration, predictions, reproduction.

use std::path::Path;

use mondrian::internals::normal;
use mondrian::{Loss, RegularizationPath};
use serde_json::{Value, json};

use super::{Axis, Block, Column, Mark, Section, Series};
use crate::failure::Outcome;
use crate::prepare::{Inputs, Preparation, TableSummary};
use crate::table::date;

/// Points of a curve kept in a report.
const CURVE_POINTS: usize = 1500;
/// Rows drawn with their intervals.
const INTERVAL_ROWS: usize = 250;
/// Residuals drawn.
const RESIDUAL_ROWS: usize = 1000;
/// Rows, values and inputs of partial dependence.
const DEPENDENCE_ROWS: usize = 200;
const DEPENDENCE_VALUES: usize = 25;
const DEPENDENCE_INPUTS: usize = 4;
/// Bars of a column's small histogram.
const BINS: usize = 24;

/// The section about the table.
pub(crate) fn data_section(place: &str, format: &str, summary: &TableSummary, preparation: &Preparation) -> Section {
    let columns = summary
        .columns
        .iter()
        .map(|column| {
            let numeric = column.levels.is_empty();
            let levels = if column.count == 0 {
                Some("no value".to_owned())
            } else if !numeric {
                let shown: Vec<String> = column.levels.iter().take(6).map(|(name, n)| format!("{name} {n}")).collect();
                let more = column.levels.len().saturating_sub(6);
                Some(shown.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() })
            } else {
                column.date.then(|| format!("{} to {}", date::iso(column.min), date::iso(column.max)))
            };
            Column {
                name: column.name.clone(),
                kind: if column.date {
                    "date"
                } else if numeric {
                    "number"
                } else {
                    "category"
                }
                .to_owned(),
                min: column.min,
                mean: column.mean,
                max: column.max,
                missing: column.missing,
                histogram: if numeric { column.histogram(BINS) } else { column.levels.values().copied().collect() },
                levels,
            }
        })
        .collect();
    let dropped = summary.n_rows - summary.n_used;
    let place = file_name(place);
    let mut text = vec![format!("{place}: {format}. {} rows, {} inputs.", summary.n_rows, preparation.n_features())];
    if summary.columns.iter().any(|column| column.date) {
        text.push("Dates are days since 1970-01-01.".to_owned());
    }
    if summary.n_missing > 0 {
        text.push(format!("{} cells are missing; {dropped} rows were left out for it.", summary.n_missing));
    }
    Section { title: "The data".to_owned(), text, blocks: vec![Block::Columns { columns }] }
}

/// How a curve was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CurveKind {
    /// At every cut: constant between two values.
    Exact,
    /// At some lifetimes.
    Sampled,
}

/// The curve of a path, thinned for the page, with one chosen lifetime: that of the path, or the given one.
pub(crate) fn path_block(path: &RegularizationPath, kind: CurveKind, chosen: Option<f64>) -> Block {
    let thin = path.thinned(CURVE_POINTS);
    let lifetimes = thin.lifetimes().to_vec();
    let mut series = vec![Series::new("training", lifetimes.clone(), thin.train().to_vec())];
    for (i, values) in thin.validation().iter().enumerate() {
        let name = if i == 0 { "held out".to_owned() } else { format!("held out {}", i + 1) };
        series.push(Series::new(&name, lifetimes.clone(), values.clone()));
    }
    if let Some(values) = thin.leave_one_out() {
        series.push(Series::new("leave one out", lifetimes, values.to_vec()));
    }
    if kind == CurveKind::Sampled {
        series.iter_mut().for_each(|one| one.dots = one.x.len() <= 100);
    }
    let best = chosen.unwrap_or(path.best_lifetime().get());
    let careful = path.best_lifetime_1se().get();
    let mut marks = vec![Mark { x: best, label: "chosen λ =".to_owned(), minor: false }];
    if chosen.is_none() && careful > 0.0 && careful < best {
        marks.push(Mark { x: careful, label: "1 s.e. λ =".to_owned(), minor: true });
    }
    Block::Curve {
        heading: None,
        x_label: "lifetime λ".to_owned(),
        y_label: loss_label(path.loss()).to_owned(),
        x_short: "λ".to_owned(),
        log_x: true,
        steps: kind == CurveKind::Exact,
        plain: false,
        series,
        marks,
    }
}

/// The label of a loss.
pub(crate) fn loss_label(loss: Loss) -> &'static str {
    match loss {
        Loss::Rmse => "RMSE",
        Loss::LogLoss => "log loss",
        Loss::Error => "share wrong",
        Loss::NegLogDensity => "negative log density",
    }
}

/// A figure for the top of the page: four digits, and counts in groups of three digits.
pub(crate) fn figure(x: f64) -> String {
    if x.is_infinite() {
        return if x > 0.0 { "∞" } else { "−∞" }.to_owned();
    }
    if x.fract() == 0.0 && x.abs() < 1e15 {
        return format!("{}{}", if x < 0.0 { "−" } else { "" }, count(x.abs() as u64));
    }
    let magnitude = x.abs().log10().floor();
    if !(-4.0..6.0).contains(&magnitude) {
        return format!("{x:.2e}");
    }
    let text = format!("{x:.*}", (3.0 - magnitude).max(0.0) as usize);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    text.replace('-', "−")
}

/// A count in groups of three digits, from ten thousand on.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    if n < 10_000 {
        return digits;
    }
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// Coverages of the intervals on a page.
pub(crate) fn nominal_coverages() -> Vec<f64> {
    (1..20).map(|k| f64::from(k) / 20.0).collect()
}

/// Predictions of held-out rows with normal intervals, and the coverage of the intervals.
pub(crate) fn prediction_sections(truth: &[f64], mean: &[f64], std: &[f64]) -> Vec<Section> {
    let ends = |share: f64| {
        let half = normal::quantile(0.5 + share / 2.0);
        mean.iter().zip(std).map(|(m, s)| (m - half * s, m + half * s)).collect()
    };
    let intervals: Vec<Vec<(f64, f64)>> = nominal_coverages().into_iter().map(ends).collect();
    interval_sections(truth, mean, &intervals)
}

/// The same with given intervals, one list for each of [`nominal_coverages`].
pub(crate) fn interval_sections(truth: &[f64], mean: &[f64], intervals: &[Vec<(f64, f64)>]) -> Vec<Section> {
    const COVERAGE: f64 = 0.9;
    let stride = truth.len().div_ceil(INTERVAL_ROWS).max(1);
    let nominal = nominal_coverages();
    let shown = nominal.iter().position(|share| *share == COVERAGE).unwrap_or(0);
    let rows = (0..truth.len())
        .step_by(stride)
        .map(|i| [truth[i], mean[i], intervals[shown][i].0, intervals[shown][i].1])
        .collect();
    let observed: Vec<f64> = intervals.iter().map(|ends| share_held(truth, ends)).collect();
    let mut seen = Series::new("observed", nominal.clone(), observed);
    seen.dots = true;
    let mut ideal = Series::new("ideal", nominal.clone(), nominal);
    ideal.muted = true;
    vec![
        Section::new(
            "Predictions",
            &["Held-out rows, each with its 90 % interval, which includes noise and model uncertainty."],
            vec![Block::Intervals { rows, coverage: COVERAGE }],
        ),
        Section::new(
            "Calibration",
            &[
                "How often the interval of a given coverage contains the target of a held-out row. The dashed line is perfect calibration.",
            ],
            vec![Block::Curve {
                heading: None,
                x_label: "nominal coverage".to_owned(),
                y_label: "observed coverage".to_owned(),
                x_short: "nominal".to_owned(),
                log_x: false,
                steps: false,
                plain: true,
                series: vec![seen, ideal],
                marks: Vec::new(),
            }],
        ),
    ]
}

/// The share of targets within their intervals.
pub(crate) fn share_held(truth: &[f64], intervals: &[(f64, f64)]) -> f64 {
    let held = truth.iter().zip(intervals).filter(|(y, ends)| ends.0 <= **y && **y <= ends.1).count();
    held as f64 / truth.len().max(1) as f64
}

/// The share of targets within the central normal interval of this coverage.
pub(crate) fn coverage(truth: &[f64], mean: &[f64], std: &[f64], share: f64) -> f64 {
    let half = normal::quantile(0.5 + share / 2.0);
    let held = (0..truth.len()).filter(|&i| (truth[i] - mean[i]).abs() <= half * std[i]).count();
    held as f64 / truth.len().max(1) as f64
}

/// Root mean squared error.
pub(crate) fn rmse(truth: &[f64], mean: &[f64]) -> f64 {
    let sum: f64 = truth.iter().zip(mean).map(|(t, m)| (t - m) * (t - m)).sum();
    (sum / truth.len().max(1) as f64).sqrt()
}

/// Classes counted against predicted classes.
pub(crate) fn confusion_block(classes: &[String], truth: &[u32], predicted: &[u32]) -> Block {
    let mut counts = vec![vec![0_u64; classes.len()]; classes.len()];
    for (&t, &p) in truth.iter().zip(predicted) {
        counts[t as usize][p as usize] += 1;
    }
    Block::Confusion { classes: classes.to_vec(), counts }
}

/// Truth against prediction, for a model without intervals.
pub(crate) fn truth_section(truth: &[f64], mean: &[f64]) -> Section {
    let stride = truth.len().div_ceil(RESIDUAL_ROWS).max(1);
    let rows = (0..truth.len()).step_by(stride).map(|i| [mean[i], truth[i]]).collect();
    let (x_label, y_label) = ("prediction".to_owned(), "truth".to_owned());
    let text = ["Held-out rows. The model has no intervals."];
    Section::new("Predictions", &text, vec![Block::Scatter { x_label, y_label, rows, zero: false }])
}

/// Residuals against predictions: there should be no pattern.
pub(crate) fn residual_section(truth: &[f64], mean: &[f64]) -> Section {
    let stride = truth.len().div_ceil(RESIDUAL_ROWS).max(1);
    let rows = (0..truth.len()).step_by(stride).map(|i| [mean[i], truth[i] - mean[i]]).collect();
    let (x_label, y_label) = ("prediction".to_owned(), "truth − prediction".to_owned());
    Section::new(
        "Residuals",
        &[
            "Residuals of held-out rows against predictions. A trend or a funnel shows structure that the model has missed.",
        ],
        vec![Block::Scatter { x_label, y_label, rows, zero: true }],
    )
}

/// Partial dependence: the mean prediction over rows with one input set to each of some values.
///
/// For the first inputs of `order`; categories are skipped.
pub(crate) fn dependence_section(
    preparation: &Preparation,
    inputs: Inputs<'_>,
    order: &[usize],
    predict: impl Fn(Inputs<'_>) -> Outcome<Vec<f64>>,
) -> Outcome<Option<Section>> {
    let stride = inputs.rows().len().div_ceil(DEPENDENCE_ROWS).max(1);
    let width = inputs.width();
    let rows: Vec<f64> = inputs.rows().step_by(stride).flatten().copied().collect();
    let names = preparation.features();
    let mut blocks = Vec::new();
    for &dim in order.iter().filter(|&&d| preparation.in_units(d, 0.0).is_some()).take(DEPENDENCE_INPUTS) {
        let mut values: Vec<f64> = inputs.rows().map(|row| row[dim]).filter(|x| !x.is_nan()).collect();
        if values.is_empty() {
            continue;
        }
        values.sort_unstable_by(f64::total_cmp);
        values.dedup();
        // At quantiles of the rows. A column of few values is shown at each of them.
        let n = values.len().min(DEPENDENCE_VALUES);
        let at: Vec<f64> = (0..n).map(|i| values[i * (values.len() - 1) / (n - 1).max(1)]).collect();
        let (mut x, mut y) = (Vec::new(), Vec::new());
        let mut set = rows.clone();
        for value in at {
            set.iter_mut().skip(dim).step_by(width).for_each(|cell| *cell = value);
            let means = predict(Inputs::new(&set, width))?;
            x.push(preparation.in_units(dim, value).unwrap_or(value));
            y.push(means.iter().sum::<f64>() / means.len().max(1) as f64);
        }
        let mut series = Series::new("mean prediction", x, y);
        series.dots = true;
        blocks.push(Block::Curve {
            heading: Some(names[dim].clone()),
            x_label: names[dim].clone(),
            y_label: "mean prediction".to_owned(),
            x_short: names[dim].clone(),
            log_x: false,
            steps: false,
            plain: true,
            series: vec![series],
            marks: Vec::new(),
        });
    }
    let text =
        ["Partial dependence: the mean prediction as a function of one input, with the other inputs as in the rows."];
    Ok((!blocks.is_empty()).then(|| Section::new("Predictions against inputs", &text, blocks)))
}

/// Confidence of the model against its accuracy, in ten bins.
pub(crate) fn reliability_block(confidence: &[f64], right: &[bool]) -> Block {
    let (mut sure, mut hits) = (vec![Vec::new(); 10], vec![0.0; 10]);
    for (&c, &r) in confidence.iter().zip(right) {
        let bin = ((c * 10.0) as usize).min(9);
        sure[bin].push(c);
        hits[bin] += f64::from(u8::from(r));
    }
    let filled: Vec<usize> = (0..10).filter(|&bin| !sure[bin].is_empty()).collect();
    let x: Vec<f64> = filled.iter().map(|&b| sure[b].iter().sum::<f64>() / sure[b].len() as f64).collect();
    let y: Vec<f64> = filled.iter().map(|&b| hits[b] / sure[b].len() as f64).collect();
    let mut observed = Series::new("how often right", x.clone(), y);
    observed.dots = true;
    let mut ideal = Series::new("ideal", x.clone(), x);
    ideal.muted = true;
    Block::Curve {
        heading: None,
        x_label: "probability of the predicted class".to_owned(),
        y_label: "share right".to_owned(),
        x_short: "probability".to_owned(),
        log_x: false,
        steps: false,
        plain: true,
        series: vec![observed, ideal],
        marks: Vec::new(),
    }
}

/// The side of a partition that shows one input: in the model's scale, labelled in the file's units.
pub(crate) fn axis(preparation: &Preparation, feature: usize, min: f64, max: f64) -> Axis {
    let (low, high) = (preparation.in_units(feature, min), preparation.in_units(feature, max));
    let [min, max] = rounded([min, max]);
    let units = low.zip(high).map(|(low, high)| rounded([low, high]));
    let name = preparation.features().get(feature).cloned().unwrap_or_default();
    Axis { name, min, max, low: units.map(|ends| ends[0]), high: units.map(|ends| ends[1]) }
}

/// The ends of a range, with rounding errors of scaling and the minimal margin of a box removed at zero, which would
/// otherwise dominate the label.
fn rounded(ends: [f64; 2]) -> [f64; 2] {
    let span = (ends[1] - ends[0]).abs();
    ends.map(|x| if span > 0.0 && x.abs() < 1e-9 * span { 0.0 } else { x })
}

/// The last component of a path: a shared report should not disclose the location of files.
pub(crate) fn file_name(place: &str) -> &str {
    Path::new(place).file_name().and_then(|name| name.to_str()).unwrap_or(place)
}

/// The section on reproducing the report.
pub(crate) fn repeat_section(commands: Vec<String>, mut items: Vec<(String, Value)>) -> Section {
    items.push(("version".to_owned(), json!(concat!("mondrian ", env!("CARGO_PKG_VERSION")))));
    Section::new(
        "How to repeat it",
        &["The same data, seed and version give the same report, byte for byte, on any number of threads."],
        vec![Block::Repeat { commands, items }],
    )
}

#[cfg(test)]
mod tests {
    use super::{count, figure, rounded};

    #[test]
    fn ranges_end_at_zero_and_not_beside_it() {
        // The box of a category's indicator begins just below zero.
        assert_eq!(rounded([0.0_f64.next_down(), 1.0]), [0.0, 1.0]);
        assert_eq!(rounded([-8.88e-16, 9.85]), [0.0, 9.85]);
        assert_eq!(rounded([-3.0, 1e-16]), [-3.0, 0.0]);
        assert_eq!(rounded([1e-16, 2e-16]), [1e-16, 2e-16]);
    }

    #[test]
    fn figures_are_short_and_counts_whole() {
        let found = [17.038_84, 774.938, 0.0, 9568.0, 717_201.0, -3.489_12, 0.000_123_456, f64::INFINITY].map(figure);
        assert_eq!(found, ["17.04", "774.9", "0", "9568", "717\u{202f}201", "−3.489", "0.0001235", "∞"]);
        assert_eq!([count(9_999), count(1_000_000)], ["9999", "1\u{202f}000\u{202f}000"]);
    }
}
