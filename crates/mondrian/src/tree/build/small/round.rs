//! The next cuts of several small cells and what they make of them, computed together.

#![expect(clippy::inline_always, reason = "must be compiled for the caller's instruction set")]

use crate::simd::compare::Compare;
use crate::tree::build::small::Lanes;
use crate::tree::build::small::draws::{ABREAST, Cuts};
use crate::tree::{Codes, Link, PointStore};

/// What a round finds out, by place in the order of the lanes. Masks are all bits or none.
#[derive(Debug, Default)]
pub(crate) struct Round {
    /// The next cuts of the lanes' cells.
    pub(crate) cuts: Cuts,
    codes: [i16; ABREAST],
    points: [u32; ABREAST],
    /// The points on both sides of the cut.
    pub(crate) sides: [[u32; ABREAST]; 2],
    /// The sides' children as far as they are known: the mark of a single point, or that of no points.
    pub(crate) children: [[u32; ABREAST]; 2],
    /// Masks: a side has one point; several.
    pub(crate) is_single: [[u32; ABREAST]; 2],
    pub(crate) is_several: [[u32; ABREAST]; 2],
    /// Masks: both sides have points; several; neither has several.
    pub(crate) separates: [u32; ABREAST],
    pub(crate) parts: [u32; ABREAST],
    pub(crate) ends: [u32; ABREAST],
    /// Numbers of points.
    pub(crate) counts: [u32; ABREAST],
}

#[inline(always)]
fn mask(is: bool) -> u32 {
    u32::from(is).wrapping_neg()
}

impl Round {
    /// Lets the first `n` lanes go on to their cells and finds out about the cuts there.
    #[inline(always)]
    pub(crate) fn run(&mut self, n: usize, lanes: &mut Lanes, by: impl Compare, codes: &Codes, store: &PointStore) {
        for at in 0..n {
            self.cuts.cells[at] = lanes.enter(at);
        }
        self.cuts.find_places(n, &lanes.cells[..]);
        for at in 0..n {
            let cut = self.cuts.cut(at);
            self.codes[at] = codes.signed(cut.dim as usize, cut.location);
        }
        for at in 0..n {
            let (lane, cut) = (lanes.lane(at), self.cuts.cut(at));
            let (mut below, is_same) = by.compare(lanes.codes_of(lane, cut.dim), self.codes[at]);
            if is_same {
                below = lanes.compare_exactly(lane, &cut, store);
            }
            self.points[at] = lane.points;
            self.sides[0][at] = below;
        }
        self.cuts.find_times();
        self.tell_apart();
    }

    /// What the cuts make of the cells, all at once.
    #[inline(always)]
    fn tell_apart(&mut self) {
        for at in 0..ABREAST {
            let points = self.points[at];
            let sides = [points & self.sides[0][at], points & !self.sides[0][at]];
            let is_several = sides.map(|side| mask(side & side.wrapping_sub(1) != 0));
            let is_empty = sides.map(|side| mask(side == 0));
            for side in 0..2 {
                let is_single = !(is_several[side] | is_empty[side]);
                self.sides[side][at] = sides[side];
                self.is_several[side][at] = is_several[side];
                self.is_single[side][at] = is_single;
                self.children[side][at] =
                    Link::EMPTY.to_word() & is_empty[side] | Link::single(0).to_word() & is_single;
            }
            self.separates[at] = !(is_empty[0] | is_empty[1]);
            self.parts[at] = is_several[0] & is_several[1];
            self.ends[at] = !(is_several[0] | is_several[1]);
            self.counts[at] = points.count_ones();
        }
    }
}
