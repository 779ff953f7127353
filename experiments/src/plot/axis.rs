//! Axes: ranges, ticks and where a value goes.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::{HEIGHT, WIDTH, escape};

const LEFT: f64 = 64.0;
const RIGHT: f64 = 18.0;
const BOTTOM: f64 = 50.0;

/// How distances on an axis are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Differences.
    #[default]
    Linear,
    /// Ratios; only positive values are shown.
    Log,
}

/// One axis of a chart.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Axis {
    /// What it measures.
    pub label: String,
    /// How.
    pub scale: Scale,
    /// Shown instead of the data's range: both ends, where given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<(f64, f64)>,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: &str) -> Self {
        Self { label: label.to_owned(), scale: Scale::Linear, range: None }
    }

    /// A logarithmic axis.
    pub fn log(label: &str) -> Self {
        Self { label: label.to_owned(), scale: Scale::Log, range: None }
    }

    /// The same showing this range only.
    #[must_use]
    pub fn within(self, low: f64, high: f64) -> Self {
        Self { range: Some((low, high)), ..self }
    }

    fn place(&self, value: f64) -> f64 {
        if self.scale == Scale::Log { value.log10() } else { value }
    }

    /// The ends in placed units, with a little air around the data.
    fn ends(&self, values: impl Iterator<Item = f64>, air: f64) -> (f64, f64) {
        if let Some((low, high)) = self.range {
            return (self.place(low), self.place(high));
        }
        let placed = values.map(|v| self.place(v)).filter(|v| v.is_finite());
        let (low, high) = placed.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), v| (lo.min(v), hi.max(v)));
        match (low.is_finite(), high > low) {
            (true, true) => (low - air * (high - low), high + air * (high - low)),
            (true, false) => (low - 0.5, low + 0.5),
            (false, _) => (0.0, 1.0),
        }
    }

    /// Ticks in placed units with their names.
    fn ticks(&self, (low, high): (f64, f64)) -> Vec<(f64, String)> {
        let step = nice((high - low) / 6.5);
        if self.scale == Scale::Linear || high - low < 0.7 {
            // Less than a factor of five: even a logarithmic axis reads best with round values.
            let (from, to) = if self.scale == Scale::Log { (10f64.powf(low), 10f64.powf(high)) } else { (low, high) };
            let step = if self.scale == Scale::Log { nice((to - from) / 6.5) } else { step };
            let ticks = (0..=12).map(|k| ((from / step).ceil() + f64::from(k)) * step).take_while(|v| *v <= to);
            return ticks.map(|v| (self.place(v), short(v))).collect();
        }
        let decades = high - low;
        let mantissas: &[f64] = match decades {
            d if d < 1.2 => &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
            d if d < 2.2 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let stride = (decades / 7.0).ceil().max(1.0) as usize;
        let powers = (low.floor() as i32..=high.ceil() as i32).step_by(stride);
        let values = powers.flat_map(|p| mantissas.iter().map(move |m| m * 10f64.powi(p)));
        values.map(|v| (v.log10(), short(v))).filter(|(at, _)| (low..=high).contains(at)).collect()
    }
}

/// 1, 2 or 5 times a power of ten, at least `step`.
fn nice(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let mantissa = [1.0, 2.0, 5.0, 10.0].into_iter().find(|m| m * power >= step * (1.0 - 1e-9));
    mantissa.unwrap_or(10.0) * power
}

/// A number as short as a label wants it.
pub(super) fn short(value: f64) -> String {
    if value.abs() < 1e-12 {
        return "0".to_owned();
    }
    if (1e-3..1e6).contains(&value.abs()) {
        let digits = (3 - value.abs().log10().floor() as i32).clamp(0, 6) as usize;
        let text = format!("{value:.digits$}");
        return if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text };
    }
    let text = format!("{value:.1e}");
    text.replace(".0e", "e")
}

/// The drawing area of a panel.
pub(super) struct Frame {
    x: (f64, f64),
    y: (f64, f64),
    top: f64,
    axes: (Axis, Axis),
}

impl Frame {
    /// A frame around data, its upper edge at `top`.
    pub(super) fn new(
        axes: (Axis, Axis),
        xs: impl Iterator<Item = f64>,
        ys: impl Iterator<Item = f64>,
        top: f64,
    ) -> Self {
        let (x, y) = (axes.0.ends(xs, 0.02), axes.1.ends(ys, 0.05));
        Self { x, y, top, axes }
    }

    /// A frame whose ends are exactly these.
    pub(super) fn exactly(axes: (Axis, Axis), x: (f64, f64), y: (f64, f64), top: f64) -> Self {
        Self { x, y, top, axes }
    }

    pub(super) const LEFT: f64 = LEFT;

    pub(super) fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let share = |v: f64, (lo, hi): (f64, f64)| (v - lo) / (hi - lo);
        let (x, y) = (self.axes.0.place(x), self.axes.1.place(y));
        let right = LEFT + share(x, self.x) * (WIDTH - LEFT - RIGHT);
        (right, HEIGHT - BOTTOM - share(y, self.y) * (HEIGHT - BOTTOM - self.top))
    }

    /// A clip around the area, so that a chosen range cuts curves at its edge.
    pub(super) fn clip(&self, id: &str) -> String {
        format!(
            "<clipPath id=\"{id}\"><rect x=\"{LEFT}\" y=\"{}\" width=\"{}\" height=\"{}\"/></clipPath>\n",
            self.top,
            WIDTH - LEFT - RIGHT,
            HEIGHT - BOTTOM - self.top
        )
    }

    /// Grid lines, ticks, labels and title.
    pub(super) fn draw(&self, title: &str, grid: bool) -> String {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let mut out = String::new();
        let _ =
            writeln!(out, "<text x=\"{LEFT}\" y=\"18\" font-weight=\"bold\" font-size=\"13\">{}</text>", escape(title));
        let length = if grid { right - LEFT } else { 0.0 };
        for (at, name) in self.axes.1.ticks(self.y) {
            let y = bottom - (at - self.y.0) / (self.y.1 - self.y.0) * (bottom - self.top);
            let _ = writeln!(
                out,
                "<path d=\"M{LEFT} {y:.1}h{length:.0}\" stroke=\"#ddd\"/><path d=\"M{:.0} {y:.1}h4\" stroke=\"#444\"/>\
                 <text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>",
                LEFT - 4.0,
                LEFT - 7.0,
                y + 4.0
            );
        }
        for (at, name) in self.axes.0.ticks(self.x) {
            let x = LEFT + (at - self.x.0) / (self.x.1 - self.x.0) * (right - LEFT);
            let _ = writeln!(
                out,
                "<path d=\"M{x:.1} {bottom}v4\" stroke=\"#444\"/>\
                 <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{name}</text>",
                bottom + 17.0
            );
        }
        let _ = writeln!(out, "<path d=\"M{LEFT} {:.1}V{bottom}H{right}\" fill=\"none\" stroke=\"#444\"/>", self.top);
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(LEFT, right),
            HEIGHT - 14.0,
            escape(&self.axes.0.label)
        );
        let _ = writeln!(
            out,
            "<text transform=\"translate(15 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(self.top, bottom),
            escape(&self.axes.1.label)
        );
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let names = |axis: &Axis, low: f64, high: f64| -> Vec<String> {
            let ends = (axis.place(low), axis.place(high));
            axis.ticks(ends).into_iter().map(|(at, name)| (assert!((ends.0..=ends.1).contains(&at)), name).1).collect()
        };
        assert_eq!(names(&Axis::linear(""), 0.0, 10.0), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(names(&Axis::linear(""), 0.31, 0.33), ["0.31", "0.315", "0.32", "0.325", "0.33"]);
        assert_eq!(names(&Axis::log(""), 1.0, 1000.0), ["1", "10", "100", "1000"]);
        assert_eq!(names(&Axis::log(""), 3.0, 30.0), ["3", "5", "7", "10", "15", "20", "30"]);
        assert_eq!(names(&Axis::log(""), 3.0, 90.0), ["5", "10", "20", "50"]);
    }

    #[test]
    fn labels_are_short() {
        let cases = [(0.0, "0"), (2.5, "2.5"), (12_000.0, "12000"), (1e-5, "1e-5"), (3.25e7, "3.2e7"), (-0.5, "-0.5")];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
    }
}
