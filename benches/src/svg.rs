//! Small charts as SVG text: lines over axes, and a coloured surface.

use std::fmt::Write;

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 52.0;
const BOTTOM: f64 = 40.0;
const TOP: f64 = 26.0;
const RIGHT: f64 = 12.0;
/// Colours that people with any colour vision tell apart.
const COLOURS: [&str; 5] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00"];

/// One line of a chart.
pub struct Line {
    /// What it shows.
    pub name: String,
    /// Points.
    pub points: Vec<(f64, f64)>,
}

/// A chart of lines.
pub struct Chart {
    /// Above it.
    pub title: String,
    /// Below the horizontal axis.
    pub x_label: String,
    /// Beside the vertical axis.
    pub y_label: String,
    /// The lines.
    pub lines: Vec<Line>,
}

/// Values on a lattice with a path over it.
pub struct Surface {
    /// Above it.
    pub title: String,
    /// Below the horizontal axis.
    pub x_label: String,
    /// Beside the vertical axis.
    pub y_label: String,
    /// Rows of values, the lowest first.
    pub values: Vec<Vec<f64>>,
    /// Paths in steps of the lattice, with names.
    pub paths: Vec<Line>,
}

/// Several panels side by side as one file.
pub fn page(panels: &[String]) -> String {
    let total = WIDTH * panels.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {total} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"{total}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    for (k, panel) in panels.iter().enumerate() {
        let _ = writeln!(svg, "<g transform=\"translate({} 0)\">\n{panel}</g>", WIDTH * k as f64);
    }
    svg.push_str("</svg>\n");
    svg
}

struct Frame {
    x: (f64, f64),
    y: (f64, f64),
}

impl Frame {
    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let share = |v: f64, (lo, hi): (f64, f64)| if hi > lo { (v - lo) / (hi - lo) } else { 0.5 };
        (LEFT + share(x, self.x) * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - share(y, self.y) * (HEIGHT - BOTTOM - TOP))
    }

    fn axes(&self, title: &str, x_label: &str, y_label: &str) -> String {
        let (x0, y0) = self.at((self.x.0, self.y.0));
        let (x1, y1) = self.at((self.x.1, self.y.1));
        let mut out = format!("<path d=\"M{x0:.1} {y1:.1}V{y0:.1}H{x1:.1}\" fill=\"none\" stroke=\"#444\"/>\n");
        let _ = writeln!(out, "<text x=\"{LEFT}\" y=\"16\" font-weight=\"bold\">{title}</text>");
        let _ = writeln!(
            out,
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{x_label}</text>",
            f64::midpoint(x0, x1),
            HEIGHT - 8.0
        );
        let middle = f64::midpoint(y0, y1);
        let _ = writeln!(
            out,
            "<text transform=\"translate(12 {middle:.0}) rotate(-90)\" text-anchor=\"middle\">{y_label}</text>"
        );
        for k in 0..=4 {
            let share = f64::from(k) / 4.0;
            let (x, y) = (self.x.0 + share * (self.x.1 - self.x.0), self.y.0 + share * (self.y.1 - self.y.0));
            let ((px, _), (_, py)) = (self.at((x, self.y.0)), self.at((self.x.0, y)));
            let _ =
                writeln!(out, "<text x=\"{px:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>", y0 + 13.0, short(x));
            let _ = writeln!(
                out,
                "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{}</text>",
                x0 - 4.0,
                py + 4.0,
                short(y)
            );
        }
        out
    }

    fn line(&self, line: &Line, number: usize) -> String {
        let colour = COLOURS[number % COLOURS.len()];
        let place = |&point: &(f64, f64)| {
            let (x, y) = self.at(point);
            format!("{x:.1} {y:.1}")
        };
        let path: Vec<String> = line.points.iter().map(place).collect();
        let mut out = format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\"/>\n",
            path.join(" ")
        );
        let _ = writeln!(
            out,
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\" fill=\"{colour}\">{}</text>",
            WIDTH - RIGHT - 4.0,
            TOP + 12.0 + 14.0 * number as f64,
            line.name
        );
        out
    }
}

fn short(v: f64) -> String {
    if v == 0.0 || (0.01..1e5).contains(&v.abs()) {
        let text = format!("{v:.3}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        format!("{v:.1e}")
    }
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), v| (lo.min(v), hi.max(v)))
}

/// Every point that matters: at most 400 a line.
fn thinned(line: &Line) -> Line {
    let stride = line.points.len().div_ceil(400).max(1);
    Line { name: line.name.clone(), points: line.points.iter().step_by(stride).copied().collect() }
}

impl Chart {
    /// As SVG, one panel wide.
    pub fn to_panel(&self) -> String {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let frame = Frame { x: range(points().map(|p| p.0)), y: range(points().map(|p| p.1)) };
        let mut out = frame.axes(&self.title, &self.x_label, &self.y_label);
        for (number, line) in self.lines.iter().enumerate() {
            out.push_str(&frame.line(&thinned(line), number));
        }
        out
    }
}

impl Surface {
    /// As SVG, one panel wide: dark is low.
    pub fn to_panel(&self) -> String {
        let (rows, columns) = (self.values.len(), self.values[0].len());
        let frame = Frame { x: (0.0, columns as f64), y: (0.0, rows as f64) };
        let (low, high) = range(self.values.iter().flatten().copied());
        let mut out = String::new();
        for (r, row) in self.values.iter().enumerate() {
            for (c, &value) in row.iter().enumerate() {
                let (x, y) = frame.at((c as f64, r as f64 + 1.0));
                let (x1, y1) = frame.at((c as f64 + 1.0, r as f64));
                let grey = 60.0 + 190.0 * ((value - low) / (high - low).max(1e-300)).sqrt();
                let _ = writeln!(
                    out,
                    "<path d=\"M{x:.1} {y:.1}H{x1:.1}V{y1:.1}H{x:.1}\" fill=\"rgb({0:.0} {0:.0} {1:.0})\"/>",
                    grey,
                    (grey + 25.0).min(255.0)
                );
            }
        }
        out.push_str(&frame.axes(&self.title, &self.x_label, &self.y_label));
        let mid = |line: &Line| Line {
            name: line.name.clone(),
            points: line.points.iter().map(|p| (p.0 + 0.5, p.1 + 0.5)).collect(),
        };
        for (number, path) in self.paths.iter().enumerate() {
            out.push_str(&frame.line(&mid(path), number + 1));
        }
        out
    }
}
