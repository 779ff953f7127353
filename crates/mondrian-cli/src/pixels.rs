//! A drawing in pixels, as PNG.
//!
//! The shapes of [`Drawing`] are few and its letters are strokes, so a rasteriser of paths is enough; a renderer of SVG
//! took longer to build than the rest of the program.

use std::fmt::Display;

use mondrian::internals::process::{Colour, Drawing, PathStep, Shape};
use tiny_skia::{Color, FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, Rect, Stroke, Transform};

use crate::failure::{Failure, Outcome};

/// The most pixels a picture may have: a gigabyte of them while it is drawn.
const MAX_PIXELS: f64 = 256.0 * 1024.0 * 1024.0;

/// The drawing as a PNG file whose longer side has `size` pixels.
pub(crate) fn png(drawing: &Drawing, size: f64) -> Outcome<Vec<u8>> {
    let scale = size / drawing.width().max(drawing.height());
    let side = |length: f64| (length * scale).round().max(1.0);
    let (width, height) = (side(drawing.width()), side(drawing.height()));
    if width * height > MAX_PIXELS {
        return Err(Failure::input(
            format!("{width} by {height} pixels are too many"),
            "give a smaller --size, or write SVG",
        ));
    }
    let fail = |what: &dyn Display| Failure::Other(format!("the drawing cannot be turned into pixels: {what}"));
    let pixmap = Pixmap::new(width as u32, height as u32).ok_or_else(|| fail(&"there is no room for them"))?;
    let mut canvas = Canvas { pixmap, transform: Transform::from_scale(scale as f32, scale as f32) };
    canvas.pixmap.fill(Color::WHITE);
    for shape in drawing.shapes() {
        canvas.draw(shape);
    }
    canvas.pixmap.encode_png().map_err(|e| fail(&e))
}

struct Canvas {
    pixmap: Pixmap,
    transform: Transform,
}

impl Canvas {
    /// A shape without extent, or beyond the range of a path, is not drawn, as in a viewer of SVG.
    fn draw(&mut self, shape: &Shape) {
        match shape {
            Shape::Rect { place, fill } => {
                if let Some(rect) = rect(place) {
                    self.pixmap.fill_rect(rect, &paint(*fill), self.transform, None);
                }
            }
            Shape::Frame { place, stroke, width } => {
                let path = rect(place).map(PathBuilder::from_rect);
                self.stroke(path, *stroke, &Stroke { width: *width as f32, ..Stroke::default() });
            }
            Shape::Line { from, to, stroke, width } => {
                let path = trace(&[PathStep::Move(*from), PathStep::Line(*to)]);
                self.stroke(path, *stroke, &Stroke { width: *width as f32, ..Stroke::default() });
            }
            Shape::Dot { centre, radius, fill } => {
                if let Some(path) = PathBuilder::from_circle(centre.0 as f32, centre.1 as f32, *radius as f32) {
                    self.pixmap.fill_path(&path, &paint(*fill), FillRule::Winding, self.transform, None);
                }
            }
            Shape::Text(text) => {
                for (colour, width) in text.layers() {
                    for letter in text.strokes() {
                        let pen = Stroke {
                            width: width as f32,
                            line_cap: LineCap::Round,
                            line_join: LineJoin::Round,
                            ..Stroke::default()
                        };
                        self.stroke(trace(&letter), colour, &pen);
                    }
                }
            }
            _ => {}
        }
    }

    fn stroke(&mut self, path: Option<Path>, colour: Colour, pen: &Stroke) {
        if let Some(path) = path {
            self.pixmap.stroke_path(&path, &paint(colour), pen, self.transform, None);
        }
    }
}

fn paint(Colour(red, green, blue): Colour) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color_rgba8(red, green, blue, 255);
    paint
}

fn rect(place: &[f64; 4]) -> Option<Rect> {
    let [x, y, w, h] = place.map(|value| value as f32);
    Rect::from_xywh(x, y, w, h)
}

fn trace(steps: &[PathStep]) -> Option<Path> {
    let mut path = PathBuilder::new();
    for step in steps {
        match *step {
            PathStep::Move((x, y)) => path.move_to(x as f32, y as f32),
            PathStep::Line((x, y)) => path.line_to(x as f32, y as f32),
            PathStep::Cubic(a, b, to) => {
                path.cubic_to(a.0 as f32, a.1 as f32, b.0 as f32, b.1 as f32, to.0 as f32, to.1 as f32);
            }
            PathStep::Close => path.close(),
        }
    }
    path.finish()
}
