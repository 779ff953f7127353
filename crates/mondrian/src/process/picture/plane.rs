//! A two-dimensional partition on the page: positions of its cells and cuts, and the line drawing.

use crate::process::picture::drawing::{Align, Colour, Drawing, Taken};
use crate::process::picture::lettering::{self, number};
use crate::process::picture::{INK, PAPER};
use crate::process::{Bounds, Measure, Partition};

/// A box in two chosen dimensions, laid out on the page.
pub(crate) struct Plane {
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// Cells in order.
    pub(crate) cells: Vec<Rect>,
    /// Cuts by time.
    pub(crate) cuts: Vec<Segment>,
    pub(crate) lifetime: f64,
    bounds: Bounds,
    across: usize,
    up: usize,
}

/// A cell on the page: left, top, right, bottom.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rect {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
}

impl Rect {
    pub(crate) fn area(&self) -> f64 {
        (self.right - self.left) * (self.bottom - self.top)
    }

    pub(crate) fn short_side(&self) -> f64 {
        (self.right - self.left).min(self.bottom - self.top)
    }
}

/// A cut on the page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) from: (f64, f64),
    pub(crate) to: (f64, f64),
    pub(crate) time: f64,
    /// Distance to the nearer border of the box that it cuts.
    pub(crate) room: f64,
}

impl Segment {
    fn length(&self) -> f64 {
        (self.to.0 - self.from.0).abs() + (self.to.1 - self.from.1).abs()
    }

    fn is_level(&self) -> bool {
        self.from.1 == self.to.1
    }
}

/// A picture is at most this many times longer than wide; longer boxes are drawn out of proportion.
const MAX_ASPECT: f64 = 3.0;

impl Plane {
    pub(crate) fn new<M: Measure + Clone>(partition: &Partition<M>, across: usize, up: usize, size: f64) -> Self {
        let bounds = partition.bounds().clone();
        let side = |dim: usize| bounds.upper()[dim] - bounds.lower()[dim];
        let (a, b) = (side(across), side(up));
        let ratio = if a > 0.0 && b > 0.0 { (a / b).clamp(1.0 / MAX_ASPECT, MAX_ASPECT) } else { 1.0 };
        let (width, height) = if ratio >= 1.0 { (size, size / ratio) } else { (size * ratio, size) };
        let lifetime = partition.lifetime().get();
        let mut plane = Self { width, height, cells: Vec::new(), cuts: Vec::new(), lifetime, bounds, across, up };
        plane.lay_out(partition);
        plane
    }

    fn lay_out<M: Measure + Clone>(&mut self, partition: &Partition<M>) {
        let n = partition.n_dims();
        let (cells, cuts) = (partition.cells(), partition.cuts());
        let row = |all: &[f64], i: usize| (all[i * n + self.across], all[i * n + self.up]);
        let rect = |lower: &[f64], upper: &[f64], i: usize| {
            let ((left, bottom), (right, top)) = (self.page(row(lower, i)), self.page(row(upper, i)));
            Rect { left, top, right, bottom }
        };
        let cells: Vec<Rect> = (0..cells.len()).map(|i| rect(cells.lower(), cells.upper(), i)).collect();
        let segment = |i: usize| {
            let cell = rect(cuts.lower(), cuts.upper(), i);
            let place = cuts.locations()[i];
            let (from, to, room) = if cuts.dims()[i] == self.across {
                let x = self.page((place, 0.0)).0;
                ((x, cell.top), (x, cell.bottom), (x - cell.left).min(cell.right - x))
            } else {
                let y = self.page((0.0, place)).1;
                ((cell.left, y), (cell.right, y), (y - cell.top).min(cell.bottom - y))
            };
            Segment { from, to, time: cuts.times()[i], room }
        };
        let cuts = (0..cuts.len()).map(segment).collect();
        (self.cells, self.cuts) = (cells, cuts);
    }

    /// A point of the plane on the page, whose y grows downwards.
    fn page(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let share = |dim: usize, x: f64| {
            let (lo, hi) = (self.bounds.lower()[dim], self.bounds.upper()[dim]);
            if hi > lo { (x - lo) / (hi - lo) } else { 0.5 }
        };
        (share(self.across, x) * self.width, (1.0 - share(self.up, y)) * self.height)
    }

    /// The line drawing: older cuts are heavier and darker.
    pub(crate) fn draw(&self, times: bool) -> Drawing {
        let margin = 46.0;
        let shift = |(x, y): (f64, f64)| (x + margin, y + margin / 2.0);
        let mut drawing = Drawing::new(self.width + 1.5 * margin, self.height + 1.5 * margin, self.title());
        drawing.rect((0.0, 0.0), (self.width + 1.5 * margin, self.height + 1.5 * margin), PAPER);
        for cut in self.cuts.iter().rev() {
            let age = self.age(cut);
            drawing.line(shift(cut.from), shift(cut.to), shade(age), (0.7 + 2.3 * age).min(0.7 + cut.room));
        }
        drawing.frame(shift((0.0, 0.0)), shift((self.width, self.height)), INK, 3.0);
        if times {
            let mut taken = Taken::default();
            for cut in &self.cuts {
                label(&mut drawing, cut, shift, &mut taken);
            }
        }
        self.label_corners(&mut drawing, shift);
        drawing
    }

    /// 1 for a cut at time 0, 0 for one at the lifetime.
    pub(crate) fn age(&self, cut: &Segment) -> f64 {
        if self.lifetime.is_finite() && self.lifetime > 0.0 { 1.0 - cut.time / self.lifetime } else { 1.0 }
    }

    pub(crate) fn title(&self) -> String {
        format!("Mondrian partition, lifetime {}, {} cuts", number(self.lifetime), self.cuts.len())
    }

    fn label_corners(&self, drawing: &mut Drawing, shift: impl Fn((f64, f64)) -> (f64, f64)) {
        let (size, gap) = (10.0, 13.0);
        let (lower, upper) = (self.bounds.lower(), self.bounds.upper());
        let (left, bottom) = shift((0.0, self.height));
        let (right, top) = shift((self.width, 0.0));
        drawing.text((left, bottom + gap), &number(lower[self.across]), size, Align::Left, INK);
        drawing.text((right, bottom + gap), &number(upper[self.across]), size, Align::Right, INK);
        drawing.text((left - gap / 1.5, bottom - size / 2.0), &number(lower[self.up]), size, Align::Right, INK);
        drawing.text((left - gap / 1.5, top + size / 2.0), &number(upper[self.up]), size, Align::Right, INK);
    }
}

/// Ink that fades towards the lifetime, never to white.
fn shade(age: f64) -> Colour {
    let mix = |dark: f64, light: f64| (dark + (light - dark) * (1.0 - age).clamp(0.0, 1.0) * 0.75) as u8;
    Colour(mix(27.0, 120.0), mix(26.0, 128.0), mix(23.0, 140.0))
}

/// Positions of a label along its cut, the preferred one first.
const PLACES: [f64; 7] = [0.5, 0.38, 0.62, 0.26, 0.74, 0.14, 0.86];

/// The time of a cut as a label near its middle, where there is space.
fn label(drawing: &mut Drawing, cut: &Segment, shift: impl Fn((f64, f64)) -> (f64, f64), taken: &mut Taken) {
    let text = number(cut.time);
    let natural: f64 = 9.0;
    let along = if cut.is_level() { lettering::width(&text, 1.0) } else { 1.0 };
    let across = if cut.is_level() { 1.0 } else { lettering::width(&text, 1.0) };
    // Room along the cut, and to both sides of it; smaller letters before none.
    let size = natural.min(0.6 * cut.length() / along).min(1.7 * cut.room / across);
    if size < 4.0 {
        return;
    }
    let (w, h) = (lettering::width(&text, size) / 2.0 + 0.35 * size, 0.8 * size);
    for share in PLACES {
        let between = |from: f64, to: f64| from + share * (to - from);
        let (x, y) = shift((between(cut.from.0, cut.to.0), between(cut.from.1, cut.to.1)));
        if taken.take([x - w, y - h, x + w, y + h]) {
            drawing.rect((x - w, y - h), (x + w, y + h), PAPER);
            return drawing.text((x, y), &text, size, Align::Middle, INK);
        }
    }
}
