//! A coloured surface over a lattice, with paths over it.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::axis::{Axis, Frame, short};
use super::{colour, legend, rounded};

/// A walk over the lattice, in its steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Path {
    /// What it shows.
    pub name: String,
    /// Number of its colour.
    pub colour: usize,
    /// Column of each node.
    #[serde(with = "rounded")]
    pub x: Vec<f64>,
    /// Row of each node.
    #[serde(with = "rounded")]
    pub y: Vec<f64>,
    /// Whether nodes are joined; else they are dots, and a single one a ring.
    pub joined: bool,
}

/// Values on a lattice; dark is low.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Surface {
    /// Above it.
    pub title: String,
    /// Below the horizontal axis.
    pub x: String,
    /// Beside the vertical axis.
    pub y: String,
    /// What the values are.
    pub z: String,
    /// Number of columns.
    pub n_columns: usize,
    /// Values row by row, the lowest row first.
    #[serde(with = "rounded")]
    pub values: Vec<f64>,
    /// Walks over it.
    pub paths: Vec<Path>,
}

/// Number of distinguishable shades.
const SHADES: usize = 28;

/// From dark violet over green to pale yellow.
fn shade(number: usize) -> String {
    const STOPS: [[f64; 3]; 5] =
        [[59.0, 28.0, 92.0], [52.0, 84.0, 140.0], [34.0, 143.0, 139.0], [122.0, 200.0, 112.0], [248.0, 240.0, 170.0]];
    let at = number as f64 / (SHADES - 1) as f64 * (STOPS.len() - 1) as f64;
    let (below, part) = ((at as usize).min(STOPS.len() - 2), at - at.floor());
    let part = if at as usize >= STOPS.len() - 1 { 1.0 } else { part };
    let mix = |k: usize| STOPS[below][k] + part * (STOPS[below + 1][k] - STOPS[below][k]);
    format!("rgb({:.0},{:.0},{:.0})", mix(0), mix(1), mix(2))
}

impl Surface {
    pub(super) fn draw(&self) -> String {
        let n_rows = self.values.len() / self.n_columns;
        let mut out = String::new();
        let top = 32.0 + self.keys(&mut out);
        let ends = |n: usize| (-0.5, n as f64 - 0.5);
        let axes = (Axis::linear(&self.x), Axis::linear(&self.y));
        let frame = Frame::exactly(axes, ends(self.n_columns), ends(n_rows), top);
        self.cells(&frame, &mut out);
        out.push_str(&frame.draw(&self.title, false));
        for path in &self.paths {
            draw_path(&frame, path, &mut out);
        }
        out
    }

    /// The scale of shades and the names of the paths.
    fn keys(&self, out: &mut String) -> f64 {
        let (low, high) = self.range();
        let mut ramp = String::new();
        for k in 0..SHADES {
            let x = k * 20 / SHADES;
            let _ = write!(ramp, "<rect x=\"{x}\" y=\"-5\" width=\"1.2\" height=\"10\" fill=\"{}\"/>", shade(k));
        }
        let scale = format!("{} from {} to {}", self.z, short(low), short(high));
        let mut entries = vec![(scale.as_str(), ramp)];
        for path in &self.paths {
            entries.push((&path.name, if path.joined { joined("0,0 20,0", path) } else { dot(10.0, 0.0, path) }));
        }
        legend(&entries, Frame::LEFT, 36.0, out)
    }

    fn range(&self) -> (f64, f64) {
        self.values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), v| (lo.min(*v), hi.max(*v)))
    }

    /// Cells of one shade beside each other are one rectangle.
    fn cells(&self, frame: &Frame, out: &mut String) {
        let (low, high) = self.range();
        // Square roots spread the low values, which are what one looks for.
        let of = |v: f64| (((v - low) / (high - low).max(1e-300)).sqrt() * (SHADES - 1) as f64).round() as usize;
        out.push_str("<g shape-rendering=\"crispEdges\">\n");
        for (row, line) in self.values.chunks(self.n_columns).enumerate() {
            let mut from = 0;
            while from < line.len() {
                let to = (from..line.len()).find(|c| of(line[*c]) != of(line[from])).unwrap_or(line.len());
                let (x, y) = frame.at(from as f64 - 0.5, row as f64 + 0.5);
                let (x1, y1) = frame.at(to as f64 - 0.5, row as f64 - 0.5);
                let _ = writeln!(
                    out,
                    "<path d=\"M{x:.1} {y:.1}H{x1:.1}V{y1:.1}H{x:.1}\" fill=\"{0}\"/>",
                    shade(of(line[from]))
                );
                from = to;
            }
        }
        out.push_str("</g>\n");
    }
}

/// Over dark shades the usual colours are lost.
fn colour_of(path: &Path) -> &'static str {
    ["#ffffff", "#ff8c00", "#ff9ecb"].get(path.colour).copied().unwrap_or_else(|| colour(path.colour))
}

/// A line with dark edges, so that it is seen on every shade and on the white domain of the names.
fn joined(points: &str, path: &Path) -> String {
    let line = |colour: &str, width: f64| {
        format!(
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" stroke-linejoin=\"round\"/>"
        )
    };
    line("#000", 3.6) + &line(colour_of(path), 2.0)
}

fn dot(x: f64, y: f64, path: &Path) -> String {
    let colour = colour_of(path);
    if path.x.len() == 1 {
        let ring = |colour: &str, width: f64| {
            format!(
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"/>"
            )
        };
        return ring("#000", 4.0) + &ring(colour, 2.4);
    }
    format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2\" fill=\"{colour}\" stroke=\"#000\" stroke-width=\"0.5\"/>")
}

fn draw_path(frame: &Frame, path: &Path, out: &mut String) {
    let places = path.x.iter().zip(&path.y).map(|(x, y)| frame.at(*x, *y));
    if path.joined {
        let points: Vec<String> = places.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(out, "{}", joined(&points.join(" "), path));
    } else {
        places.for_each(|(x, y)| {
            let _ = writeln!(out, "{}", dot(x, y, path));
        });
    }
}
