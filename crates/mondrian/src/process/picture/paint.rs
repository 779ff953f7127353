//! A partition in the style of Piet Mondrian: mostly white, black lines of varied weight, and few, well-placed colours.

use crate::process::picture::drawing::{Colour, Drawing};
use crate::process::picture::plane::{Plane, Rect, Segment};
use crate::process::{Measure, NodeKey, Partition};

const RED: Colour = Colour(0xc8, 0x20, 0x1c);
const BLUE: Colour = Colour(0x1c, 0x45, 0x96);
const YELLOW: Colour = Colour(0xf2, 0xc3, 0x18);
const GREY: Colour = Colour(0xd3, 0xd3, 0xcd);
const BLACK: Colour = Colour(0x14, 0x14, 0x12);
/// In the order in which they are used: primaries first.
const COLOURS: [Colour; 8] = [RED, BLUE, YELLOW, GREY, BLUE, YELLOW, GREY, BLACK];
const WHITES: [Colour; 3] = [Colour(0xf6, 0xf3, 0xea), Colour(0xf2, 0xef, 0xe6), Colour(0xf8, 0xf6, 0xef)];

/// The painting of a plane.
pub(crate) fn draw<M: Measure + Clone>(plane: &Plane, partition: &Partition<M>) -> Drawing {
    let key = partition.process().key().fork(0x0050_6169_6E74);
    let fills = choose_colours(&plane.cells, plane.width * plane.height, key);
    let mut drawing = Drawing::new(plane.width, plane.height, plane.title());
    for (cell, fill) in plane.cells.iter().zip(&fills) {
        // Half a pixel larger, so that there are no gaps between neighbours.
        drawing.rect((cell.left - 0.5, cell.top - 0.5), (cell.right + 0.5, cell.bottom + 0.5), *fill);
    }
    // The oldest on top: younger, thinner lines end inside them.
    for (number, cut) in plane.cuts.iter().enumerate().rev() {
        drawing.line(cut.from, cut.to, BLACK, weight(plane, cut, key.fork(number as u64)));
    }
    drawing
}

/// Older lines are heavier, with random variation, and never fill the adjacent cell.
fn weight(plane: &Plane, cut: &Segment, key: NodeKey) -> f64 {
    let unit = plane.width.max(plane.height) / 720.0;
    let age = plane.age(cut);
    let natural = (4.5 + 11.0 * age * age) * (0.8 + 0.45 * key.draw(0).uniform());
    (natural * unit).min(0.9 * cut.room).max(1.2 * unit)
}

/// A colour for every cell: one large cell, then smaller ones.
fn choose_colours(cells: &[Rect], area: f64, key: NodeKey) -> Vec<Colour> {
    let draw = |cell: usize| key.fork(cell as u64).draw(1);
    let mut fills: Vec<Colour> = (0..cells.len()).map(|cell| WHITES[(3.0 * draw(cell).uniform()) as usize]).collect();
    // Slivers stay white: a colour there would be a line.
    let mut candidates: Vec<usize> = (0..cells.len()).filter(|i| cells[*i].short_side() > 0.02 * area.sqrt()).collect();
    candidates.sort_by(|a, b| cells[*b].area().total_cmp(&cells[*a].area()).then(a.cmp(b)));
    let mut palette = Palette { key, cells, fills: &mut fills, coloured: Vec::new() };
    let n = candidates.len();
    if n == 0 {
        return fills;
    }
    // The first: one of the three largest, in a primary colour, preferably red.
    let first = [0, 0, 1, 2][palette.chance(1, 4)];
    let tone = palette.pick(&candidates[..n.min(3)], 0);
    palette.lay(tone, first);
    // About every sixth cell has a colour, spread over all sizes; the two other primaries come first.
    let n_colours = (n / 6).clamp(usize::from(n > 1) * 2, 40);
    for step in 0..n_colours {
        let from = n * step / (n_colours + 1);
        let to = (n * (step + 2) / (n_colours + 1)).clamp(from + 1, n);
        let cell = palette.pick(&candidates[from..to], 2 + step as u64);
        palette.lay(cell, if step < 2 { (first + 1 + step) % 3 } else { step + 1 });
    }
    fills
}

/// The assignment of colours to cells.
struct Palette<'a> {
    key: NodeKey,
    cells: &'a [Rect],
    fills: &'a mut Vec<Colour>,
    coloured: Vec<usize>,
}

impl Palette<'_> {
    /// A random number below `n`.
    fn chance(&self, purpose: u32, n: usize) -> usize {
        (n as f64 * self.key.draw(100 + purpose).uniform()) as usize
    }

    /// One of the cells, preferably one without a coloured neighbour.
    fn pick(&self, among: &[usize], purpose: u64) -> usize {
        let score = |cell: usize| {
            let touches = self.coloured.iter().filter(|other| touch(&self.cells[cell], &self.cells[**other])).count();
            let taken = usize::from(self.coloured.contains(&cell));
            (taken, touches, self.key.fork(purpose).fork(cell as u64).to_bits())
        };
        among.iter().copied().min_by_key(|cell| score(*cell)).expect("cells to choose from")
    }

    /// Assigns the colour of this number, or the next one that no neighbour has: adjacent cells of one colour would
    /// look like one.
    fn lay(&mut self, cell: usize, number: usize) {
        if self.coloured.contains(&cell) {
            return;
        }
        let beside = |colour: Colour| {
            self.coloured.iter().any(|c| self.fills[*c] == colour && touch(&self.cells[*c], &self.cells[cell]))
        };
        let colour = (number..number + COLOURS.len()).map(|i| COLOURS[i % COLOURS.len()]).find(|c| !beside(*c));
        if let Some(colour) = colour {
            self.fills[cell] = colour;
            self.coloured.push(cell);
        }
    }
}

/// Whether two cells share a piece of border.
fn touch(a: &Rect, b: &Rect) -> bool {
    let slack = 0.01;
    a.left <= b.right + slack && b.left <= a.right + slack && a.top <= b.bottom + slack && b.top <= a.bottom + slack
}
