//! Chains: long runs of cuts with an empty side, kept as one edge and the sub-box that it ends in.
//!
//! Points ε apart need about D·ln(1/ε) cuts with an empty side before they part. All cells of such a run hold the same
//! points, so of [`LEAST_CUTS`] cuts and more only this is kept: how many they are, when the first and the last come, the
//! sides of the last cell that they moved, and the clocks of that cell, which say how it goes on. A row inside
//! the sub-box passes the run at once. For a row outside it, which left somewhere on the way, the cuts are made again
//! from the key of the cell that the run starts in ([`Replay`](crate::tree::Replay)).
//!
//! Whether a run is a chain depends on its length alone, so equal trees stay identical however they came about
//! (docs/design.md, "Canonical form and chains"): a point that leaves inside a run splits it, forgetting one joins
//! runs.

use crate::process::{Cell, Clock, Cut, Further, NarrowCell, NodeKey, Side};
use crate::simd::prefetch::prefetch;
use crate::tree::arena::id::ChainId;
use crate::tree::arena::node::Node;
use crate::tree::{Link, LinkKind};

/// A run of so many cuts with an empty side, or more, is kept as a chain; a shorter one as nodes.
pub(crate) const LEAST_CUTS: usize = 4;

/// A run of cuts with an empty side. In memory: 48 bytes, and about 9 for each side of the cell that it moved (12 from
/// 32 768 dimensions on), and 24 for each further box of an extended root box that the cell meets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chain {
    first_time: f64,
    last_time: f64,
    end: Link,
    n_cuts: u32,
}

impl Chain {
    /// What the run ends in: an inner node that separates points, or a leaf.
    #[inline]
    pub(crate) fn end(&self) -> Link {
        self.end
    }

    /// Number of cuts.
    pub fn n_cuts(&self) -> u32 {
        self.n_cuts
    }

    /// When the first cut comes.
    #[inline]
    pub fn first_time(&self) -> f64 {
        self.first_time
    }

    /// When the last cut comes.
    #[inline]
    pub fn last_time(&self) -> f64 {
        self.last_time
    }
}

/// A side that a cut with an empty side leaves to a cell: dimension, which side of the cut the cell is, and where.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bound {
    pub(crate) dim: usize,
    pub(crate) side: Side,
    pub(crate) location: f64,
}

impl Bound {
    #[inline]
    pub(crate) fn of(cut: &Cut, side: Side) -> Self {
        Self { dim: cut.dim as usize, side, location: cut.location }
    }

    /// Whether it still bounds a cell further down.
    #[inline]
    pub(crate) fn bounds(&self, lower: &[f64], upper: &[f64]) -> bool {
        [upper, lower][self.side.index()][self.dim] == self.location
    }

    /// Dimension and side as one number.
    fn axis(&self) -> u64 {
        (self.dim as u64) << 1 | u64::from(self.side == Side::Above)
    }
}

/// A run about to be kept, the sides that its cuts move aside.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) first_time: f64,
    pub(crate) last_time: f64,
    pub(crate) n_cuts: u32,
    pub(crate) end: Link,
}

/// The cell that a run ends in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End<'a> {
    upper: &'a [f64],
    lower: &'a [f64],
    clocks: &'a [Clock],
    lowest: u32,
}

impl<'a> From<&'a Cell> for End<'a> {
    fn from(cell: &'a Cell) -> Self {
        let (clocks, lowest) = cell.clocks();
        Self { upper: cell.upper(), lower: cell.lower(), clocks, lowest }
    }
}

impl<'a> From<&'a NarrowCell> for End<'a> {
    fn from(cell: &'a NarrowCell) -> Self {
        let (upper, lower) = cell.bounds().as_slices();
        Self { upper, lower, clocks: std::slice::from_ref(cell.clock()), lowest: 0 }
    }
}

/// All chains of a tree, in one pool of words: reading a chain touches a few consecutive words.
///
/// A record is: first time; last time; end and number of cuts; a [`Layout`]; the keys of the live clocks, the innermost first;
/// their births, but for the outermost where the last cut started it; the sides' axes, several per word; their
/// locations. It starts at an even word, and half its place is the chain's number.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chains {
    words: Vec<u64>,
    n_chains: usize,
    /// Chains that nothing leads to any more, with their lengths: the next ones are written over them.
    free: Vec<(ChainId, usize)>,
    /// Words of no chain.
    n_dead: usize,
    /// Room for the sides of a chain that is being written.
    kept: Vec<Bound>,
}

/// How long the parts of a record are.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Layout {
    n_sides: usize,
    /// Two to this power are the bits of an axis.
    log_bits: u32,
    n_clocks: usize,
    /// Births that are kept: all, or all but that of the outermost clock where it is the last time.
    n_births: usize,
    /// The innermost box that the cell at the end still meets.
    lowest: u32,
}

/// Words before the clocks.
const HEAD: usize = 4;

impl Layout {
    fn packed(self) -> u64 {
        let Self { n_sides, log_bits, n_clocks, n_births, lowest } = self;
        let n_less = (n_clocks - n_births) as u64;
        (n_sides as u64) << 32 | n_less << 24 | u64::from(log_bits) << 16 | (n_clocks as u64) << 8 | u64::from(lowest)
    }

    #[inline]
    fn of(word: u64) -> Self {
        let n_clocks = (word >> 8) as usize & 0xFF;
        Self {
            n_sides: (word >> 32) as usize,
            log_bits: (word >> 16) as u32 & 0xFF,
            n_clocks,
            n_births: n_clocks.wrapping_sub((word >> 24) as usize & 0xFF),
            lowest: word as u32 & 0xFF,
        }
    }

    /// Where the births start, the axes, the locations, and where the record ends.
    #[inline]
    fn places(self) -> [usize; 4] {
        let births = HEAD + 2 * self.n_clocks;
        let axes = births + self.n_births;
        let locations = axes + self.n_sides.div_ceil(64 >> self.log_bits);
        [births, axes, locations, (locations + self.n_sides).next_multiple_of(2)]
    }
}

/// See [`Chains::sides`].
#[derive(Debug, Clone)]
struct SidesOf<'a> {
    axes: std::slice::Iter<'a, u64>,
    locations: std::slice::Iter<'a, u64>,
    /// What is left of the current word of axes, and how many bits.
    word: u64,
    n_left: u32,
    n_bits: u32,
}

impl Iterator for SidesOf<'_> {
    type Item = (u64, f64);

    #[inline]
    fn next(&mut self) -> Option<(u64, f64)> {
        let location = *self.locations.next()?;
        if self.n_left == 0 {
            (self.word, self.n_left) = (*self.axes.next()?, 64);
        }
        let axis = self.word & ((1 << self.n_bits) - 1);
        self.word >>= self.n_bits;
        self.n_left -= self.n_bits;
        Some((axis, f64::from_bits(location)))
    }
}

impl Chains {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.n_chains
    }

    #[inline]
    fn record(&self, id: ChainId) -> &[u64] {
        &self.words[2 * id.index()..]
    }

    fn layout(&self, id: ChainId) -> Layout {
        Layout::of(self.record(id)[3])
    }

    fn n_words(&self, id: ChainId) -> usize {
        self.layout(id).places()[3]
    }

    /// Asks for the memory of a chain, if a link is one: its head and what follows, as far as chains usually go.
    #[inline]
    pub(crate) fn prefetch(&self, link: Link) {
        let place = link.as_chain_number().map_or(usize::MAX / 2, |number| 2 * number as usize);
        for line in 0..4 {
            prefetch(&self.words, place + 8 * line);
        }
    }

    #[inline]
    pub(crate) fn get(&self, id: ChainId) -> Chain {
        let [first_time, last_time, end, _] = *self.record(id).first_chunk().expect("a record has a head");
        Chain {
            first_time: f64::from_bits(first_time),
            last_time: f64::from_bits(last_time),
            end: Link::from_word((end >> 32) as u32),
            n_cuts: end as u32,
        }
    }

    #[inline]
    pub(crate) fn end_of(&self, id: ChainId) -> Link {
        Link::from_word((self.words[2 * id.index() + 2] >> 32) as u32)
    }

    /// Says what a chain ends in.
    pub(crate) fn set_end(&mut self, id: ChainId, end: Link) {
        let word = &mut self.words[2 * id.index() + 2];
        *word = u64::from(end.to_word()) << 32 | *word & u64::from(u32::MAX);
    }

    /// Keeps a run as a chain. `cell` stands at its end; `bounds` are those of its cuts, in order, of which only the last
    /// of each side counts.
    pub(crate) fn add<'a>(&mut self, run: Run, bounds: impl Iterator<Item = Bound>, cell: impl Into<End<'a>>) -> Link {
        let End { upper, lower, clocks, lowest } = cell.into();
        let mut kept = std::mem::take(&mut self.kept);
        // Which sides are left is hard to foresee: each bound is written, and the next one over it where it bounds nothing any more.
        kept.clear();
        kept.resize(run.n_cuts as usize, Bound { dim: 0, side: Side::Below, location: 0.0 });
        let mut n_sides = 0;
        for bound in bounds {
            kept[n_sides] = bound;
            n_sides += usize::from(bound.bounds(lower, upper));
        }
        kept.truncate(n_sides);
        let log_bits = match lower.len() {
            0..=128 => 3,
            129..=32_768 => 4,
            _ => 5,
        };
        let is_last_time = clocks[clocks.len() - 1].birth == run.last_time;
        let n_births = clocks.len() - usize::from(is_last_time);
        let layout = Layout { n_sides: kept.len(), log_bits, n_clocks: clocks.len(), n_births, lowest };
        let chain = self.write(run, layout, clocks, &kept);
        self.kept = kept;
        chain
    }

    /// Keeps a run of nodes, each with one empty side, as a chain that ends in `end`, where `cell` stands.
    pub(crate) fn add_nodes<'a>(&mut self, nodes: &[Node], end: Link, cell: impl Into<End<'a>>) -> Link {
        let (first_time, last_time) = (nodes[0].time, nodes[nodes.len() - 1].time);
        let run = Run { first_time, last_time, n_cuts: nodes.len() as u32, end };
        self.add(run, nodes.iter().map(|node| Bound::of(&node.cut(), node.full_side())), cell)
    }

    /// Takes cuts off the front of a chain, given how many sides they moved for good and when the next cut comes.
    pub(crate) fn shorten(&mut self, id: ChainId, n_cuts: u32, n_sides: usize, first_time: f64) {
        let layout = self.layout(id);
        let rest = Layout { n_sides: layout.n_sides - n_sides, ..layout };
        let ([_, axes, from, _], [_, _, to, _]) = (layout.places(), rest.places());
        let start = 2 * id.index();
        let record = &mut self.words[start..];
        record[0] = first_time.to_bits();
        record[2] -= u64::from(n_cuts);
        record[3] = rest.packed();
        let per_word = 64_usize >> layout.log_bits;
        let mask = (1_u64 << (1 << layout.log_bits)) - 1;
        let shift = |at: usize| (at % per_word) << layout.log_bits;
        // Front to back: what is written was read before.
        for at in 0..rest.n_sides {
            let axis = record[axes + (at + n_sides) / per_word] >> shift(at + n_sides) & mask;
            let word = &mut record[axes + at / per_word];
            *word = *word & !(mask << shift(at)) | axis << shift(at);
        }
        // What is left of the last word counts when records are compared.
        if !rest.n_sides.is_multiple_of(per_word) {
            record[axes + rest.n_sides / per_word] &= (1 << shift(rest.n_sides)) - 1;
        }
        record.copy_within(from + n_sides..from + layout.n_sides, to);
        let end = to + rest.n_sides;
        record[end..end.next_multiple_of(2)].fill(0);
        self.n_dead += layout.places()[3] - rest.places()[3];
    }

    fn write(&mut self, run: Run, layout: Layout, clocks: &[Clock], bounds: &[Bound]) -> Link {
        let [births, axes, locations, end] = layout.places();
        let start = self.make_room(end);
        let record = &mut self.words[start..];
        let end = u64::from(run.end.to_word()) << 32 | u64::from(run.n_cuts);
        record[..HEAD].copy_from_slice(&[run.first_time.to_bits(), run.last_time.to_bits(), end, layout.packed()]);
        for (at, clock) in clocks.iter().enumerate() {
            let bits = clock.key.to_bits();
            (record[HEAD + 2 * at], record[HEAD + 2 * at + 1]) = (bits as u64, (bits >> 64) as u64);
        }
        for (slot, clock) in record[births..axes].iter_mut().zip(clocks) {
            *slot = clock.birth.to_bits();
        }
        let per_word = 64_usize >> layout.log_bits;
        for (at, bound) in bounds.iter().enumerate() {
            record[axes + at / per_word] |= bound.axis() << ((at % per_word) << layout.log_bits);
            record[locations + at] = bound.location.to_bits();
        }
        self.n_chains += 1;
        Link::chain(ChainId::new((start / 2) as u32))
    }

    /// Where a record of so many words goes; they are zero there. Of dead chains only the last is looked at: chains that come
    /// and go all the time are short and much alike.
    fn make_room(&mut self, n_words: usize) -> usize {
        if let Some((id, _)) = self.free.pop_if(|(_, n)| *n >= n_words) {
            let start = 2 * id.index();
            self.words[start..start + n_words].fill(0);
            self.n_dead -= n_words;
            return start;
        }
        let start = self.words.len();
        self.words.resize(start + n_words, 0);
        start
    }

    /// A chain that nothing leads to any more.
    pub(crate) fn free(&mut self, id: ChainId) {
        let n_words = self.n_words(id);
        self.free.push((id, n_words));
        self.n_dead += n_words;
        self.n_chains -= 1;
    }

    pub(crate) fn needs_compaction(&self) -> bool {
        self.n_dead > 2048 && self.n_dead * 2 > self.words.len()
    }

    /// Axes and locations of the sides that the run moved.
    #[inline]
    fn sides(&self, id: ChainId) -> SidesOf<'_> {
        let record = self.record(id);
        let layout = Layout::of(record[3]);
        let [_, axes, locations, _] = layout.places();
        let n_bits = 1 << layout.log_bits;
        SidesOf {
            axes: record[axes..locations].iter(),
            locations: record[locations..][..layout.n_sides].iter(),
            word: 0,
            n_left: 0,
            n_bits,
        }
    }

    /// The sides of the last cell that the run moved, in the order of their cuts.
    pub(crate) fn bounds(&self, id: ChainId) -> impl Iterator<Item = Bound> + Clone + '_ {
        self.sides(id).map(|(axis, location)| {
            let side = if axis & 1 == 0 { Side::Below } else { Side::Above };
            Bound { dim: (axis >> 1) as usize, side, location }
        })
    }

    /// Moves the upper corner of the cell that the run starts in to that of the cell it ends in.
    pub(crate) fn move_corner(&self, id: ChainId, upper: &mut [f64]) {
        for bound in self.bounds(id).filter(|bound| bound.side == Side::Below) {
            upper[bound.dim] = bound.location;
        }
    }

    /// Whether a point of the cell that the run starts in is still there at its end.
    #[inline]
    pub(crate) fn holds(&self, id: ChainId, x: &[f64]) -> bool {
        let mut sides = self.sides(id);
        sides.all(|(axis, location)| (x[(axis >> 1) as usize] <= location) == (axis & 1 == 0))
    }

    /// The outermost clock of the cell at the end, the only one where the root box was not extended.
    pub(crate) fn last_clock(&self, id: ChainId) -> Clock {
        let record = self.record(id);
        let at = HEAD + 2 * (Layout::of(record[3]).n_clocks - 1);
        let key = NodeKey::from_bits(u128::from(record[at]) | u128::from(record[at + 1]) << 64);
        Clock { key, birth: f64::from_bits(record[1]) }
    }

    /// The cell at the end, for a walk that stands at the start.
    pub(crate) fn further(
        &self,
        id: ChainId,
    ) -> Further<impl Iterator<Item = (usize, Side, f64)> + '_, impl Iterator<Item = Clock> + '_> {
        let record = self.record(id);
        let layout = Layout::of(record[3]);
        let [births, axes, _, _] = layout.places();
        let all_births = record[births..axes].iter().chain([&record[1]]);
        let clocks = record[HEAD..births].chunks_exact(2).zip(all_births).map(|(key, birth)| Clock {
            key: NodeKey::from_bits(u128::from(key[0]) | u128::from(key[1]) << 64),
            birth: f64::from_bits(*birth),
        });
        let sides = self.bounds(id).map(|bound| (bound.dim, bound.side, bound.location));
        Further { sides, clocks, lowest: layout.lowest }
    }

    /// Takes a chain over from others, ending in `end` here.
    pub(crate) fn take(&mut self, others: &Self, id: ChainId, end: Link) -> Link {
        let start = self.words.len();
        self.words.extend_from_slice(&others.record(id)[..others.n_words(id)]);
        self.words[start + 2] = u64::from(end.to_word()) << 32 | self.words[start + 2] & u64::from(u32::MAX);
        self.n_chains += 1;
        Link::chain(ChainId::new((start / 2) as u32))
    }

    /// Takes all chains over from others; how much is to be added to their numbers. What they end in is as before.
    pub(crate) fn take_all(&mut self, others: &Self) -> u32 {
        let first = (self.words.len() / 2) as u32;
        self.words.extend_from_slice(&others.words);
        self.n_chains += others.n_chains;
        first
    }

    /// Renames what the chains from a number on end in, of which none was ever shortened or freed.
    pub(crate) fn rename_ends(&mut self, first: ChainId, renamed: impl Fn(Link) -> Link) {
        let mut id = first;
        while (2 * id.index()) < self.words.len() {
            let end = renamed(self.end_of(id));
            let word = &mut self.words[2 * id.index() + 2];
            *word = u64::from(end.to_word()) << 32 | *word & u64::from(u32::MAX);
            id = id.plus((self.n_words(id) / 2) as u32);
        }
    }

    /// Whether a chain is the same as another, what they end in aside.
    pub(crate) fn is_same(&self, id: ChainId, others: &Self, other: ChainId) -> bool {
        let (a, b) = (&self.record(id)[..self.n_words(id)], &others.record(other)[..others.n_words(other)]);
        a.len() == b.len() && a[2] as u32 == b[2] as u32 && a[..2] == b[..2] && a[3..] == b[3..]
    }

    /// Whether a chain has everything that a chain has; for untrusted trees.
    pub(crate) fn is_well_formed(&self, id: ChainId, n_dims: usize) -> bool {
        let place = 2 * id.index();
        place + HEAD <= self.words.len()
            && self.layout(id).n_clocks > 0
            && self.layout(id).n_clocks - self.layout(id).n_births.min(self.layout(id).n_clocks) <= 1
            && place + self.n_words(id) <= self.words.len()
            && self.get(id).n_cuts as usize >= LEAST_CUTS
            && self.layout(id).n_sides > 0
            && matches!(self.get(id).end.kind(), LinkKind::Inner(_) | LinkKind::Leaf(_))
            && self.get(id).first_time <= self.get(id).last_time
            && self.bounds(id).all(|bound| bound.dim < n_dims)
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.words.shrink_to_fit();
    }

    pub(crate) fn n_bytes(&self) -> usize {
        size_of_val(self.words.as_slice())
    }
}
