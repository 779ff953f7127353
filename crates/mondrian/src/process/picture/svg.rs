//! Writing SVG: the few shapes that the pictures need, with short numbers.

use std::fmt::Write;

use super::{PAPER, lettering};

/// A drawing under way; y grows downwards.
pub(super) struct Svg {
    body: String,
    width: f64,
    height: f64,
}

/// Where a text stands relative to its anchor.
#[derive(Clone, Copy)]
pub(super) enum Align {
    Left,
    Middle,
    Right,
}

/// A coordinate to a hundredth of a pixel.
fn px(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

impl Svg {
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self { body: String::new(), width, height }
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        self.body.write_fmt(element).expect("writing to a string");
        self.body.push('\n');
    }

    /// A rectangle given by two corners.
    pub(super) fn rect(&mut self, (x0, y0): (f64, f64), (x1, y1): (f64, f64), fill: &str) {
        let (x, y, w, h) = (px(x0.min(x1)), px(y0.min(y1)), px((x1 - x0).abs()), px((y1 - y0).abs()));
        self.push(format_args!(r#"<rect x="{x}" y="{y}" width="{w}" height="{h}" fill="{fill}"/>"#));
    }

    /// The outline of a rectangle.
    pub(super) fn frame(&mut self, (x0, y0): (f64, f64), (x1, y1): (f64, f64), stroke: &str, width: f64) {
        let (x, y, w, h) = (px(x0.min(x1)), px(y0.min(y1)), px((x1 - x0).abs()), px((y1 - y0).abs()));
        let line = px(width);
        self.push(format_args!(
            r#"<rect x="{x}" y="{y}" width="{w}" height="{h}" fill="none" stroke="{stroke}" stroke-width="{line}"/>"#
        ));
    }

    /// A straight line with square ends.
    pub(super) fn line(&mut self, (x0, y0): (f64, f64), (x1, y1): (f64, f64), stroke: &str, width: f64) {
        let (x0, y0, x1, y1, line) = (px(x0), px(y0), px(x1), px(y1), px(width));
        self.push(format_args!(
            r#"<line x1="{x0}" y1="{y0}" x2="{x1}" y2="{y1}" stroke="{stroke}" stroke-width="{line}"/>"#
        ));
    }

    pub(super) fn dot(&mut self, (x, y): (f64, f64), radius: f64, fill: &str) {
        let (x, y, r) = (px(x), px(y), px(radius));
        self.push(format_args!(r#"<circle cx="{x}" cy="{y}" r="{r}" fill="{fill}"/>"#));
    }

    /// A text of strokes, centred vertically on y, readable to machines by its label. A halo of paper keeps it
    /// readable across lines.
    pub(super) fn text(&mut self, (x, y): (f64, f64), text: &str, size: f64, align: Align, stroke: &str) {
        let shift = match align {
            Align::Left => 0.0,
            Align::Middle => 0.5,
            Align::Right => 1.0,
        };
        let left = x - shift * lettering::width(text, size);
        self.push(format_args!(
            r#"<g role="img" aria-label="{text}" fill="none" stroke-linecap="round" stroke-linejoin="round">"#
        ));
        for (stroke, weight) in [(PAPER, 0.5), (stroke, 0.13)] {
            for (path, offset) in lettering::strokes(text, size) {
                let (x, y, size) = (px(left + offset), px(y - size / 2.0), px(size));
                // The letter is scaled, so the weight of its strokes is relative to its size.
                self.push(format_args!(
                    r#"<path transform="translate({x} {y}) scale({size})" stroke="{stroke}" stroke-width="{weight}" d="{path}"/>"#
                ));
            }
        }
        self.push(format_args!("</g>"));
    }

    /// The whole document.
    pub(super) fn finish(self, title: &str) -> String {
        let (w, h) = (px(self.width), px(self.height));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" role=\"img\">\n\
             <title>{title}</title>\n{}</svg>\n",
            self.body
        )
    }
}
