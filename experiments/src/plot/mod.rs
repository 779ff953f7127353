//! Figures as data, and how they are drawn: charts of lines and bands, and a coloured surface with paths over it.
//!
//! A [`Figure`] is stored in the JSON of a run, so that pictures can be drawn again without computing anything. What is
//! drawn has its own white domain and plain colours: it reads the same on any page.

mod axis;
mod chart;
mod surface;

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

pub use axis::{Axis, Scale};
pub use chart::{Chart, Line, Style};
pub use surface::{Path, Surface};

/// Width of a panel.
const WIDTH: f64 = 480.0;
/// Height of a panel.
const HEIGHT: f64 = 330.0;

/// A picture of one or more panels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Name of the file, without its ending.
    pub file: String,
    /// What it shows: the caption on the page, filled from the numbers.
    pub caption: String,
    /// Side by side, at most two in a row.
    pub panels: Vec<Panel>,
}

/// One part of a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Panel {
    /// Lines over axes.
    Chart(Chart),
    /// Values on a lattice.
    Surface(Surface),
}

impl Panel {
    /// Lines over two axes.
    pub fn chart(title: &str, x: Axis, y: Axis, lines: Vec<Line>) -> Self {
        Self::Chart(Chart { title: title.to_owned(), x, y, lines })
    }
}

impl Figure {
    /// As an SVG document.
    pub fn to_svg(&self) -> String {
        let columns = self.panels.len().clamp(1, 2);
        let rows = self.panels.len().div_ceil(columns);
        let (width, height) = (WIDTH * columns as f64, HEIGHT * rows as f64);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\" fill=\"#222\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
        );
        for (k, panel) in self.panels.iter().enumerate() {
            let (x, y) = (WIDTH * (k % columns) as f64, HEIGHT * (k / columns) as f64);
            let drawn = match panel {
                Panel::Chart(chart) => chart.draw(k),
                Panel::Surface(surface) => surface.draw(),
            };
            let _ = writeln!(svg, "<g transform=\"translate({x} {y})\">\n{drawn}</g>");
        }
        svg.push_str("</svg>\n");
        svg
    }
}

/// Colours that are distinguishable with any colour vision (Okabe and Ito), without yellow, which is invisible on
/// white.
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#aa3f86", "#b8860b", "#000000", "#5aa9d6"];

fn colour(number: usize) -> &'static str {
    COLOURS[number % COLOURS.len()]
}

/// Text as XML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Names with samples of their lines, in rows above the drawing; gives the height they take.
fn legend(entries: &[(&str, String)], left: f64, top: f64, out: &mut String) -> f64 {
    let (mut x, mut y) = (left, top);
    for (name, sample) in entries {
        // Text has no width before it is drawn: six units a letter is a little more than the usual.
        let wide = 34.0 + 6.2 * name.chars().count() as f64;
        if x > left && x + wide > WIDTH {
            (x, y) = (left, y + 16.0);
        }
        let _ = writeln!(
            out,
            "<g transform=\"translate({x:.1} {y:.1})\">{sample}<text x=\"24\" y=\"4\">{}</text></g>",
            escape(name)
        );
        x += wide;
    }
    if entries.is_empty() { 0.0 } else { y - top + 16.0 }
}

/// Numbers with five significant digits, enough for a picture and short in a file.
mod rounded {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(values: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(|v| round(*v)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
        // JSON has no infinities and no NaN: they are written as null.
        let values = Vec::<Option<f64>>::deserialize(deserializer)?;
        Ok(values.into_iter().map(|v| v.unwrap_or(f64::NAN)).collect())
    }

    fn round(value: f64) -> f64 {
        format!("{value:.4e}").parse().unwrap_or(value)
    }
}
