//! Charts: lines, points and bands over axes.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::axis::{Axis, Frame};
use super::{colour, legend, rounded};

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// Straight from point to point.
    #[default]
    Line,
    /// The same with a dot at each point.
    Dotted,
    /// A value holds until the next point.
    Steps,
    /// Dots alone.
    Dots,
    /// Straight, in dashes.
    Dashed,
    /// Straight and thin, for what stands in the background.
    Faint,
}

/// One curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// What it shows.
    pub name: String,
    /// How.
    pub style: Style,
    /// Number of its colour.
    pub colour: usize,
    /// Where.
    #[serde(with = "rounded")]
    pub x: Vec<f64>,
    /// What.
    #[serde(with = "rounded")]
    pub y: Vec<f64>,
    /// Half the height of a band around it, or nothing.
    #[serde(with = "rounded", default, skip_serializing_if = "Vec::is_empty")]
    pub band: Vec<f64>,
}

/// Most points that are kept of a curve.
const KEPT: usize = 500;

impl Line {
    /// A line through points.
    pub fn new(name: &str, colour: usize, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let (x, y): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
        let (x, y) = thinned(&x, &y);
        Self { name: name.to_owned(), style: Style::Line, colour, x, y, band: Vec::new() }
    }

    /// A line through means with a band of as many deviations.
    pub fn banded(name: &str, colour: usize, points: impl IntoIterator<Item = (f64, f64, f64)>) -> Self {
        let mut line = Self::new(name, colour, []);
        for (x, y, deviation) in points {
            line.x.push(x);
            line.y.push(y);
            line.band.push(deviation);
        }
        line
    }

    /// Drawn otherwise.
    #[must_use]
    pub fn style(self, style: Style) -> Self {
        Self { style, ..self }
    }
}

/// Thousands of points are kept as the least and the greatest of each stretch, so that no jump is lost.
fn thinned(x: &[f64], y: &[f64]) -> (Vec<f64>, Vec<f64>) {
    if x.len() <= KEPT {
        return (x.to_vec(), y.to_vec());
    }
    let (low, high) = (x[0], x[x.len() - 1]);
    let bucket = |at: usize| (((x[at] - low) / (high - low)) * (KEPT / 2) as f64) as usize;
    let mut kept = vec![0];
    let mut from = 0;
    while from < x.len() {
        let to = (from..x.len()).find(|at| bucket(*at) != bucket(from)).unwrap_or(x.len());
        let by = |a: &usize, b: &usize| y[*a].total_cmp(&y[*b]);
        kept.extend((from..to).min_by(by));
        kept.extend((from..to).max_by(by));
        from = to;
    }
    kept.push(x.len() - 1);
    kept.sort_unstable();
    kept.dedup();
    kept.iter().map(|at| (x[*at], y[*at])).unzip()
}

/// Curves over two axes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chart {
    /// Above it.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves.
    pub lines: Vec<Line>,
}

impl Chart {
    /// `number` is that of the panel: names of clips must differ within one document.
    pub(super) fn draw(&self, number: usize) -> String {
        let mut out = String::new();
        let sample = |line: &Line| {
            let colour = colour(line.colour);
            let dot = format!("<circle cx=\"10\" r=\"3\" fill=\"{colour}\"/>");
            match line.style {
                Style::Dots => dot,
                Style::Dashed => {
                    format!("<path d=\"M0 0h20\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"5 3\"/>")
                }
                Style::Dotted => format!("<path d=\"M0 0h20\" stroke=\"{colour}\" stroke-width=\"2\"/>{dot}"),
                Style::Faint => format!("<path d=\"M0 0h20\" stroke=\"{colour}\"/>"),
                Style::Line | Style::Steps => format!("<path d=\"M0 0h20\" stroke=\"{colour}\" stroke-width=\"2\"/>"),
            }
        };
        let named: Vec<(&str, String)> =
            self.lines.iter().filter(|l| !l.name.is_empty()).map(|l| (l.name.as_str(), sample(l))).collect();
        let top = 32.0 + legend(&named, Frame::LEFT, 36.0, &mut out);
        let frame = Frame::new((self.x.clone(), self.y.clone()), self.xs(), self.ys(), top);
        out.insert_str(0, &frame.draw(&self.title, true));
        let id = format!("panel{number}");
        out.push_str(&frame.clip(&id));
        let _ = writeln!(out, "<g clip-path=\"url(#{id})\">");
        self.lines.iter().for_each(|line| band(&frame, line, &mut out));
        self.lines.iter().for_each(|line| curve(&frame, line, &mut out));
        out.push_str("</g>\n");
        out
    }

    fn xs(&self) -> impl Iterator<Item = f64> {
        self.lines.iter().flat_map(|l| l.x.iter().copied())
    }

    fn ys(&self) -> impl Iterator<Item = f64> {
        self.lines.iter().flat_map(|l| {
            let band = |at: usize| l.band.get(at).copied().unwrap_or(0.0);
            l.y.iter().enumerate().flat_map(move |(at, y)| [y - band(at), y + band(at)])
        })
    }
}

fn band(frame: &Frame, line: &Line, out: &mut String) {
    if line.band.is_empty() {
        return;
    }
    let edge = |sign: f64| {
        line.x.iter().zip(&line.y).zip(&line.band).filter_map(move |((x, y), half)| {
            let (x, y) = frame.at(*x, y + sign * half);
            // On a logarithmic axis a band may reach below zero: it then goes to the lower edge of the picture.
            x.is_finite().then(|| format!("{x:.1} {:.1}", if y.is_finite() { y } else { super::HEIGHT }))
        })
    };
    let upper: Vec<String> = edge(1.0).collect();
    let mut lower: Vec<String> = edge(-1.0).collect();
    lower.reverse();
    let colour = colour(line.colour);
    let _ = writeln!(
        out,
        "<polygon points=\"{} {}\" fill=\"{colour}\" fill-opacity=\"0.16\"/>",
        upper.join(" "),
        lower.join(" ")
    );
}

fn curve(frame: &Frame, line: &Line, out: &mut String) {
    let colour = colour(line.colour);
    let places: Vec<(f64, f64)> = line
        .x
        .iter()
        .zip(&line.y)
        .map(|(x, y)| frame.at(*x, *y))
        .filter(|(x, y)| x.is_finite() && y.is_finite())
        .collect();
    if line.style != Style::Dots {
        let mut path = String::new();
        for (k, (x, y)) in places.iter().enumerate() {
            let _ = match (k, line.style) {
                (0, _) => write!(path, "M{x:.1} {y:.1}"),
                (_, Style::Steps) => write!(path, "H{x:.1}V{y:.1}"),
                _ => write!(path, "L{x:.1} {y:.1}"),
            };
        }
        let width = if line.style == Style::Faint { 0.9 } else { 1.8 };
        let dashes = if line.style == Style::Dashed { " stroke-dasharray=\"5 3\"" } else { "" };
        let _ = writeln!(
            out,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" stroke-linejoin=\"round\"{dashes}/>"
        );
    }
    if matches!(line.style, Style::Dots | Style::Dotted) {
        for (x, y) in places {
            let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\" fill=\"{colour}\"/>");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_ends_and_jumps() {
        let x: Vec<f64> = (0..10_000).map(f64::from).collect();
        let y: Vec<f64> = (0..10_000).map(|i| if i == 7777 { 5.0 } else { f64::from(i) * 1e-4 }).collect();
        let (x, y) = thinned(&x, &y);
        assert!(x.len() <= KEPT + 4 && x[0] == 0.0 && x[x.len() - 1] == 9999.0);
        assert!(x.iter().zip(&y).any(|(x, y)| *x == 7777.0 && *y == 5.0));
        assert!(x.windows(2).all(|w| w[0] < w[1]));
    }

    #[test]
    fn a_logarithmic_chart_leaves_out_what_has_no_logarithm() {
        let line = Line::banded("a", 0, [(0.0, 1.0, 0.5), (1.0, 1.0, 2.0), (10.0, 2.0, 0.1)]).style(Style::Dotted);
        let chart = Chart { title: "<&".to_owned(), x: Axis::log("x"), y: Axis::log("y"), lines: vec![line] };
        let svg = chart.draw(0);
        assert!(!svg.contains("NaN") && !svg.contains("inf") && svg.contains("&lt;&amp;"));
        assert_eq!(svg.matches("<circle").count(), 2 + 1);
    }
}
