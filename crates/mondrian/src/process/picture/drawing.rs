//! A drawing: the few shapes used by pictures, for output as SVG or as pixels.

use std::fmt::{self, Write};

use crate::process::picture::lettering::{self, PathStep};

/// A colour: red, green, blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }
}

/// One shape of a [`Drawing`], in its pixels.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Shape {
    /// A filled rectangle: left, top, width, height.
    Rect {
        /// Left, top, width, height.
        place: [f64; 4],
        /// The fill colour.
        fill: Colour,
    },
    /// The outline of a rectangle.
    Frame {
        /// Left, top, width, height.
        place: [f64; 4],
        /// The line's colour.
        stroke: Colour,
        /// The line's width.
        width: f64,
    },
    /// A straight line with flat ends.
    Line {
        /// One end.
        from: (f64, f64),
        /// The other end.
        to: (f64, f64),
        /// The line's colour.
        stroke: Colour,
        /// The line's width.
        width: f64,
    },
    /// A filled circle.
    Dot {
        /// Its centre.
        centre: (f64, f64),
        /// Its radius.
        radius: f64,
        /// The fill colour.
        fill: Colour,
    },
    /// A line of letters.
    Text(Text),
}

/// A line of letters, drawn as strokes with round ends and joins: first all of them in the colour and width of the
/// halo, which keeps the text readable across lines, then in its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Text {
    text: String,
    left: f64,
    top: f64,
    size: f64,
    stroke: Colour,
    halo: Colour,
}

/// Widths of a letter's strokes, in heights of a capital.
const HALO: f64 = 0.5;
const STROKE: f64 = 0.13;

impl Text {
    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The two layers in the order in which they are drawn: colour and width of the strokes.
    pub fn layers(&self) -> [(Colour, f64); 2] {
        [(self.halo, HALO * self.size), (self.stroke, STROKE * self.size)]
    }

    /// The strokes, one path per letter.
    pub fn strokes(&self) -> impl Iterator<Item = Vec<PathStep>> + '_ {
        let place = move |offset: f64| move |(x, y)| (self.left + offset + self.size * x, self.top + self.size * y);
        lettering::strokes(&self.text, self.size).map(move |(path, offset)| {
            lettering::path_steps(path).into_iter().map(|s| s.moved(place(offset))).collect()
        })
    }
}

/// A picture as shapes; y grows downwards. [`Drawing::to_svg`] writes it, a front end may paint it in pixels.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawing {
    width: f64,
    height: f64,
    title: String,
    shapes: Vec<Shape>,
}

/// Where a text is placed relative to its anchor.
#[derive(Clone, Copy)]
pub(crate) enum Align {
    Left,
    Middle,
    Right,
}

/// Occupied rectangles, so that labels do not overlap: left, top, right, bottom.
#[derive(Default)]
pub(crate) struct Taken(Vec<[f64; 4]>);

impl Taken {
    /// Occupies a rectangle, if it is free.
    pub(crate) fn take(&mut self, place: [f64; 4]) -> bool {
        let apart = |other: &[f64; 4]| {
            place[0] >= other[2] || place[2] <= other[0] || place[1] >= other[3] || place[3] <= other[1]
        };
        let free = self.0.iter().all(apart);
        if free {
            self.0.push(place);
        }
        free
    }

    /// Occupies a rectangle, free or not.
    pub(crate) fn block(&mut self, place: [f64; 4]) {
        self.0.push(place);
    }
}

/// A coordinate to a hundredth of a pixel.
fn px(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Left, top, width and height of the rectangle with these corners.
fn place((x0, y0): (f64, f64), (x1, y1): (f64, f64)) -> [f64; 4] {
    [x0.min(x1), y0.min(y1), (x1 - x0).abs(), (y1 - y0).abs()]
}

impl Drawing {
    pub(crate) fn new(width: f64, height: f64, title: String) -> Self {
        Self { width, height, title, shapes: Vec::new() }
    }

    /// Pixels across.
    pub fn width(&self) -> f64 {
        self.width
    }

    /// Pixels down.
    pub fn height(&self) -> f64 {
        self.height
    }

    /// A description in one line.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The shapes, later ones above earlier ones.
    pub fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    /// A rectangle given by two corners.
    pub(crate) fn rect(&mut self, from: (f64, f64), to: (f64, f64), fill: Colour) {
        self.shapes.push(Shape::Rect { place: place(from, to), fill });
    }

    /// The outline of a rectangle.
    pub(crate) fn frame(&mut self, from: (f64, f64), to: (f64, f64), stroke: Colour, width: f64) {
        self.shapes.push(Shape::Frame { place: place(from, to), stroke, width });
    }

    /// A straight line with flat ends.
    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: Colour, width: f64) {
        self.shapes.push(Shape::Line { from, to, stroke, width });
    }

    pub(crate) fn dot(&mut self, centre: (f64, f64), radius: f64, fill: Colour) {
        self.shapes.push(Shape::Dot { centre, radius, fill });
    }

    /// A text of strokes, centred vertically on y.
    pub(crate) fn text(&mut self, (x, y): (f64, f64), text: &str, size: f64, align: Align, stroke: Colour) {
        let shift = match align {
            Align::Left => 0.0,
            Align::Middle => 0.5,
            Align::Right => 1.0,
        };
        let (left, top) = (x - shift * lettering::width(text, size), y - size / 2.0);
        self.shapes.push(Shape::Text(Text {
            text: text.to_owned(),
            left,
            top,
            size,
            stroke,
            halo: crate::process::picture::PAPER,
        }));
    }

    /// The drawing as an SVG document.
    pub fn to_svg(&self) -> String {
        let (w, h, title) = (px(self.width), px(self.height), &self.title);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" role=\"img\">\n\
             <title>{title}</title>\n{}</svg>\n",
            self.svg_body()
        )
    }

    fn svg_body(&self) -> String {
        let mut svg = String::new();
        for shape in &self.shapes {
            shape.write_svg(&mut svg).expect("writing to a string");
        }
        svg
    }
}

impl Shape {
    fn write_svg(&self, svg: &mut String) -> fmt::Result {
        match self {
            Self::Rect { place, fill } => {
                let [x, y, w, h] = place.map(px);
                writeln!(svg, r#"<rect x="{x}" y="{y}" width="{w}" height="{h}" fill="{fill}"/>"#)
            }
            Self::Frame { place, stroke, width } => {
                let ([x, y, w, h], line) = (place.map(px), px(*width));
                writeln!(
                    svg,
                    r#"<rect x="{x}" y="{y}" width="{w}" height="{h}" fill="none" stroke="{stroke}" stroke-width="{line}"/>"#
                )
            }
            Self::Line { from, to, stroke, width } => {
                let (x0, y0, x1, y1, line) = (px(from.0), px(from.1), px(to.0), px(to.1), px(*width));
                writeln!(
                    svg,
                    r#"<line x1="{x0}" y1="{y0}" x2="{x1}" y2="{y1}" stroke="{stroke}" stroke-width="{line}"/>"#
                )
            }
            Self::Dot { centre, radius, fill } => {
                let (x, y, r) = (px(centre.0), px(centre.1), px(*radius));
                writeln!(svg, r#"<circle cx="{x}" cy="{y}" r="{r}" fill="{fill}"/>"#)
            }
            Self::Text(text) => text.write_svg(svg),
        }
    }
}

impl Text {
    /// Readable to machines by its label.
    fn write_svg(&self, svg: &mut String) -> fmt::Result {
        let label = &self.text;
        writeln!(
            svg,
            r#"<g role="img" aria-label="{label}" fill="none" stroke-linecap="round" stroke-linejoin="round">"#
        )?;
        for (stroke, weight) in [(self.halo, HALO), (self.stroke, STROKE)] {
            for (path, offset) in lettering::strokes(label, self.size) {
                let (x, y, size) = (px(self.left + offset), px(self.top), px(self.size));
                // The letter is scaled, so the weight of its strokes is relative to its size.
                writeln!(
                    svg,
                    r#"<path transform="translate({x} {y}) scale({size})" stroke="{stroke}" stroke-width="{weight}" d="{path}"/>"#
                )?;
            }
        }
        writeln!(svg, "</g>")
    }
}
