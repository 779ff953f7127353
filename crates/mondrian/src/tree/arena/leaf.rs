//! Cells that hold several points and are not cut within the lifetime.

use crate::tree::arena::id::LeafId;

/// The points of a cell that holds several and is not cut within the lifetime.
#[derive(Debug, Clone, Copy)]
pub struct Leaf<'a> {
    points: &'a [u32],
    count: u32,
}

impl<'a> Leaf<'a> {
    /// The numbers of its points, in no particular order.
    #[inline]
    pub fn points(self) -> &'a [u32] {
        self.points
    }

    /// Number of rows in the cell.
    #[inline]
    pub fn count(self) -> u32 {
        self.count
    }
}

/// The range of a leaf's points in [`Leaves::points`], and how many rows they have.
#[derive(Debug, Clone, Copy, Default)]
struct Record {
    start: u32,
    len: u32,
    /// Places from `start` on that are the leaf's; those after `len` are free.
    room: u32,
    count: u32,
}

impl Record {
    fn range(self) -> std::ops::Range<usize> {
        self.start as usize..(self.start + self.len) as usize
    }
}

/// All leaves of a tree: 16 bytes each, and their points in one array, so that growing a tree allocates nothing per
/// leaf.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leaves {
    records: Vec<Record>,
    points: Vec<u32>,
    /// Places of `points` that leaves left behind when they moved or ended.
    n_left: usize,
}

impl Leaves {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    #[inline]
    pub(crate) fn leaf(&self, id: LeafId) -> Leaf<'_> {
        let record = self.records[id.index()];
        Leaf { points: &self.points[record.range()], count: record.count }
    }

    /// As [`Leaves::leaf`], for untrusted ids.
    pub(crate) fn get(&self, id: LeafId) -> Option<Leaf<'_>> {
        (id.index() < self.len()).then(|| self.leaf(id))
    }

    /// A new leaf; its number.
    #[inline]
    pub(crate) fn push(&mut self, points: impl Iterator<Item = u32>, rows_of: impl FnOnce(&[u32]) -> u32) -> LeafId {
        let start = self.points.len();
        self.points.extend(points);
        let (len, count) = ((self.points.len() - start) as u32, rows_of(&self.points[start..]));
        self.records.push(Record { start: start as u32, len, room: len, count });
        LeafId::new(self.len() as u32 - 1)
    }

    /// More points in a leaf, and their rows.
    pub(crate) fn extend(&mut self, id: LeafId, more: &[u32], rows: u32) {
        let needed = self.records[id.index()].len + more.len() as u32;
        if needed > self.records[id.index()].room {
            self.give_room(id, needed);
        }
        let record = &mut self.records[id.index()];
        let end = record.range().end;
        self.points[end..end + more.len()].copy_from_slice(more);
        record.len = needed;
        record.count += rows;
    }

    /// Moves a leaf to the end of the array, where it has room to double.
    fn give_room(&mut self, id: LeafId, needed: u32) {
        if self.n_left > 64 && self.n_left * 2 > self.points.len() {
            self.compact();
        }
        let from = self.records[id.index()].range();
        self.leave(self.records[id.index()].room);
        let record = &mut self.records[id.index()];
        (record.start, record.room) = (self.points.len() as u32, needed.next_power_of_two());
        self.points.extend_from_within(from);
        self.points.resize((record.start + record.room) as usize, 0);
    }

    fn leave(&mut self, n_places: u32) {
        self.n_left += n_places as usize;
    }

    /// Compacts the array of points. Leaves keep their numbers.
    fn compact(&mut self) {
        let old = std::mem::take(&mut self.points);
        for record in &mut self.records {
            let points = &old[record.range()];
            record.start = self.points.len() as u32;
            record.room = record.len;
            self.points.extend_from_slice(points);
        }
        self.n_left = 0;
    }

    /// Takes a point out of a leaf; the order of the others may change.
    ///
    /// # Panics
    /// If it is not there.
    pub(crate) fn remove(&mut self, id: LeafId, point: u32) {
        let record = &mut self.records[id.index()];
        let points = &mut self.points[record.range()];
        let at = points.iter().position(|p| *p == point).expect("the leaf holds its point");
        points.swap(at, record.len as usize - 1);
        record.len -= 1;
    }

    /// One more row of points that are there.
    pub(crate) fn count_row(&mut self, id: LeafId) {
        self.records[id.index()].count += 1;
    }

    /// One row fewer.
    pub(crate) fn discount_row(&mut self, id: LeafId) {
        self.records[id.index()].count -= 1;
    }

    /// The leaf is no more; its points. Its number stays taken.
    pub(crate) fn end(&mut self, id: LeafId) -> Vec<u32> {
        let points = self.leaf(id).points().to_vec();
        let room = std::mem::take(&mut self.records[id.index()]).room;
        self.leave(room);
        points
    }

    /// Appends another tree's leaves, numbered on.
    pub(crate) fn append(&mut self, other: &Self) {
        for id in 0..other.len() as u32 {
            self.copy(other.leaf(LeafId::new(id)));
        }
    }

    /// A new leaf with what another holds; its number.
    pub(crate) fn copy(&mut self, leaf: Leaf<'_>) -> LeafId {
        self.push(leaf.points.iter().copied(), |_| leaf.count)
    }

    /// Gives back memory that further leaves would have taken.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.records.shrink_to_fit();
        self.points.shrink_to_fit();
    }

    pub(crate) fn n_bytes(&self) -> usize {
        size_of_val(self.records.as_slice()) + size_of_val(self.points.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(leaves: &Leaves, id: LeafId) -> Vec<u32> {
        let mut points = leaves.leaf(id).points().to_vec();
        points.sort_unstable();
        points
    }

    #[test]
    fn points_come_and_go_as_in_a_vector_for_each_leaf() {
        assert_eq!(size_of::<Record>(), 16);
        let mut leaves = Leaves::default();
        let mut twin: Vec<Vec<u32>> = Vec::new();
        let mut state = 1_u32;
        let mut random = |n: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % n
        };
        for step in 0..4000 {
            match random(4) {
                0 if twin.len() < 40 => {
                    let points = [2 * step, 2 * step + 1];
                    assert_eq!(leaves.push(points.into_iter(), |p| p.len() as u32).index(), twin.len());
                    twin.push(points.to_vec());
                }
                _ if twin.is_empty() => {}
                0 => {
                    let id = LeafId::new(random(twin.len() as u32));
                    assert_eq!(leaves.end(id).len(), twin[id.index()].len());
                    twin[id.index()].clear();
                }
                1 if !twin[step as usize % twin.len()].is_empty() => {
                    let id = step as usize % twin.len();
                    let gone = random(twin[id].len() as u32) as usize;
                    leaves.remove(LeafId::new(id as u32), twin[id].swap_remove(gone));
                    leaves.discount_row(LeafId::new(id as u32));
                }
                _ => {
                    let (id, more) = (LeafId::new(random(twin.len() as u32)), [10_000 + 2 * step, 10_001 + 2 * step]);
                    leaves.extend(id, &more[..=step as usize % 2], 1 + step % 2);
                    twin[id.index()].extend(&more[..=step as usize % 2]);
                }
            }
            for (id, expected) in twin.iter_mut().enumerate() {
                expected.sort_unstable();
                assert_eq!(sorted(&leaves, LeafId::new(id as u32)), *expected);
                assert_eq!(leaves.leaf(LeafId::new(id as u32)).count() as usize, expected.len());
            }
            let held: usize = twin.iter().map(Vec::len).sum();
            assert!(leaves.points.len() <= 4 * held + 256, "{} places for {held} points", leaves.points.len());
        }
    }
}
