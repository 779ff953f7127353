//! One dimension: time to the right, location upwards, and a line starting at every cut (report, "Mondrian process in
//! 1D").

use crate::process::picture::drawing::{Align, Colour, Drawing, Taken};
use crate::process::picture::lettering::{self, number};
use crate::process::picture::{INK, PAPER, Picture};
use crate::process::tables::PoissonPoint;
use crate::process::{Measure, Partition};

const GREY: Colour = Colour(0x8a, 0x8f, 0x98);
const ACCENT: Colour = Colour(0xc8, 0x10, 0x2e);

/// The page: the positions of time and location on it.
struct Page {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    lifetime: f64,
    lo: f64,
    hi: f64,
}

impl Page {
    fn x(&self, time: f64) -> f64 {
        let share = if self.lifetime > 0.0 && self.lifetime.is_finite() { time / self.lifetime } else { 0.0 };
        self.left + share * self.width
    }

    fn y(&self, location: f64) -> f64 {
        let share = if self.hi > self.lo { (location - self.lo) / (self.hi - self.lo) } else { 0.5 };
        self.top + (1.0 - share) * self.height
    }

    fn right(&self) -> f64 {
        self.left + self.width
    }
}

pub(crate) fn draw<M: Measure + Clone>(picture: &Picture, partition: &Partition<M>, dim: usize) -> Drawing {
    let bounds = partition.bounds();
    let (lo, hi) = (bounds.lower()[dim], bounds.upper()[dim]);
    let cuts = partition.crossings(bounds.lower(), dim).expect("the corner of the box lies in it");
    let labels = [number(lo), number(hi)];
    let margin = 26.0 + labels.iter().map(|text| lettering::width(text, 10.0)).fold(24.0, f64::max);
    let (width, height) = (picture.size - margin - 50.0, 0.55 * picture.size);
    let page = Page { left: margin, top: 30.0, width, height, lifetime: partition.lifetime().get(), lo, hi };
    let title = format!("One-dimensional Mondrian process, lifetime {}, {} cuts", number(page.lifetime), cuts.len());
    let mut drawing = Drawing::new(picture.size, height + 80.0, title);
    drawing.rect((0.0, 0.0), (picture.size, height + 80.0), PAPER);
    draw_axes(&mut drawing, &page);
    draw_cuts(&mut drawing, &page, &cuts, picture.times);
    label_axes(&mut drawing, &page, &cuts);
    drawing
}

fn draw_axes(drawing: &mut Drawing, page: &Page) {
    let (top, bottom) = (page.y(page.hi), page.y(page.lo));
    drawing.line((page.left, top), (page.right(), top), INK, 2.0);
    drawing.line((page.left, bottom), (page.right() + 18.0, bottom), INK, 2.0);
    drawing.line((page.left, top - 6.0), (page.left, bottom + 6.0), INK, 2.0);
    // The arrow of time.
    let tip = page.right() + 24.0;
    drawing.line((tip - 8.0, bottom - 5.0), (tip, bottom), INK, 2.0);
    drawing.line((tip - 8.0, bottom + 5.0), (tip, bottom), INK, 2.0);
}

fn draw_cuts(drawing: &mut Drawing, page: &Page, cuts: &[PoissonPoint], times: bool) {
    // Many cuts need finer lines than few.
    let weight = (60.0 / cuts.len() as f64).clamp(0.5, 1.6);
    for cut in cuts {
        let y = page.y(cut.location);
        drawing.line((page.x(cut.time), y), (page.right(), y), INK, weight);
        drawing.line((page.left - 5.0, y), (page.left, y), INK, 1.0);
    }
    for cut in cuts {
        drawing.dot((page.x(cut.time), page.y(cut.location)), 1.6 + 1.4 * weight, ACCENT);
    }
    if times && cuts.len() <= 60 {
        label_cuts(drawing, page, cuts);
    }
}

/// Times beside the cuts' dots, where no line, dot or other label is.
fn label_cuts(drawing: &mut Drawing, page: &Page, cuts: &[PoissonPoint]) {
    const SIZE: f64 = 7.5;
    let mut taken = Taken::default();
    // The frame, and every line with its dot.
    taken.block([0.0, 0.0, page.left + 2.0, f64::INFINITY]);
    for y in [page.y(page.lo), page.y(page.hi)] {
        taken.block([0.0, y - 1.0, page.right(), y + 1.0]);
    }
    for cut in cuts {
        let (x, y) = (page.x(cut.time), page.y(cut.location));
        taken.block([x, y - 1.0, page.right(), y + 1.0]);
        taken.block([x - 3.0, y - 3.0, x + 3.0, y + 3.0]);
    }
    for cut in cuts {
        let (x, y) = (page.x(cut.time), page.y(cut.location));
        let text = number(cut.time);
        let width = lettering::width(&text, SIZE);
        // Left of the dot, then above and below it.
        let places =
            [(x - 7.0 - width, y), (x - width / 2.0, y - 10.0), (x - width / 2.0, y + 10.0), (x + 2.0, y - 10.0)];
        let free = |(left, y): &(f64, f64)| {
            taken.take([left - 1.0, y - SIZE / 2.0 - 1.0, left + width + 1.0, y + SIZE / 2.0 + 1.0])
        };
        if let Some((left, y)) = places.into_iter().find(free) {
            drawing.text((left, y), &text, SIZE, Align::Left, GREY);
        }
    }
}

fn label_axes(drawing: &mut Drawing, page: &Page, cuts: &[PoissonPoint]) {
    let (top, bottom) = (page.y(page.hi), page.y(page.lo));
    let end = page.left - 11.0;
    drawing.text((end, bottom), &number(page.lo), 10.0, Align::Right, INK);
    drawing.text((end, top), &number(page.hi), 10.0, Align::Right, INK);
    // Locations whose label would overlap a neighbour have only a tick.
    let mut last = bottom;
    for cut in cuts {
        let y = page.y(cut.location);
        if last - y > 14.0 && y - top > 14.0 {
            drawing.text((end, y), &number(cut.location), 8.0, Align::Right, GREY);
            last = y;
        }
    }
    drawing.text((page.left, bottom + 24.0), "0", 10.0, Align::Middle, INK);
    drawing.text((page.right(), bottom + 24.0), &format!("λ = {}", number(page.lifetime)), 10.0, Align::Middle, INK);
    drawing.text((page.left + page.width / 2.0, bottom + 24.0), "time", 11.0, Align::Middle, INK);
    drawing.text((page.left - 5.0, top - 18.0), "location", 11.0, Align::Left, INK);
}
