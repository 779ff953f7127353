//! A Mondrian grid in two dimensions: the Poisson cuts of both axes, each across the whole box (report, chapter 5, figure 1).

use crate::process::axis::AxisCut;
use crate::process::picture::drawing::{Align, Colour, Drawing};
use crate::process::picture::lettering::number;
use crate::process::picture::{INK, PAPER};

const MARGIN: f64 = 46.0;
const GREY: Colour = Colour(0x8a, 0x87, 0x80);

/// Cuts of the axis across and of the one up, on a box; older cuts are heavier. Sides longer than thrice the other are drawn shorter.
pub(crate) fn draw(
    size: f64,
    lower: [f64; 2],
    upper: [f64; 2],
    cuts: &[Vec<AxisCut>; 2],
    lifetimes: [f64; 2],
) -> Drawing {
    let ratio = ((upper[0] - lower[0]) / (upper[1] - lower[1])).clamp(1.0 / 3.0, 3.0);
    let (width, height) = if ratio >= 1.0 { (size, size / ratio) } else { (size * ratio, size) };
    let share = |axis: usize, x: f64| (x - lower[axis]) / (upper[axis] - lower[axis]);
    let x = |place: f64| MARGIN + share(0, place) * width;
    let y = |place: f64| MARGIN / 2.0 + (1.0 - share(1, place)) * height;
    let n_cells = (cuts[0].len() + 1) * (cuts[1].len() + 1);
    let [across, up] = lifetimes.map(number);
    let title = format!("A Mondrian grid, lifetimes {across} across and {up} up, {n_cells} cells");
    let mut drawing = Drawing::new(width + 1.5 * MARGIN, height + 1.5 * MARGIN, title);
    drawing.rect((0.0, 0.0), (width + 1.5 * MARGIN, height + 1.5 * MARGIN), PAPER);
    let weight = |cut: &AxisCut, lifetime: f64| 0.7 + 2.3 * (1.0 - cut.time / lifetime);
    for cut in &cuts[0] {
        drawing.line((x(cut.location), y(lower[1])), (x(cut.location), y(upper[1])), INK, weight(cut, lifetimes[0]));
    }
    for cut in &cuts[1] {
        drawing.line((x(lower[0]), y(cut.location)), (x(upper[0]), y(cut.location)), INK, weight(cut, lifetimes[1]));
    }
    drawing.frame((x(lower[0]), y(upper[1])), (x(upper[0]), y(lower[1])), INK, 2.0);
    for (place, align) in [(lower[0], Align::Left), (upper[0], Align::Right)] {
        drawing.text((x(place), y(lower[1]) + 16.0), &number(place), 10.0, align, GREY);
    }
    for place in [lower[1], upper[1]] {
        drawing.text((MARGIN - 8.0, y(place)), &number(place), 10.0, Align::Right, GREY);
    }
    drawing
}
