//! Cells that hold several points and are not cut within the lifetime.

/// The points of a cell that holds several and is not cut within the lifetime.
#[derive(Debug, Clone, Default)]
pub struct Leaf {
    pub(super) points: PointList,
    pub(super) count: u32,
}

impl Leaf {
    /// The numbers of its points, in no particular order.
    #[inline]
    pub fn points(&self) -> &[u32] {
        self.points.as_slice()
    }

    /// Number of rows in the cell.
    pub fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn n_bytes(&self) -> usize {
        let outside = if let PointList::Many(points) = &self.points { size_of_val(points.as_slice()) } else { 0 };
        size_of::<Self>() + outside
    }
}

/// How many points stand in the leaf itself: what fits beside a vector's tag.
const FEW: usize = 3;

/// Numbers of points. Most leaves hold two or three, which need no memory of their own.
#[derive(Debug, Clone)]
pub(super) enum PointList {
    Few { len: u32, points: [u32; FEW] },
    Many(Vec<u32>),
}

impl Default for PointList {
    fn default() -> Self {
        Self::Few { len: 0, points: [0; FEW] }
    }
}

impl PointList {
    #[inline]
    pub(super) fn of(points: impl ExactSizeIterator<Item = u32>) -> Self {
        let len = points.len();
        if len > FEW {
            return Self::Many(points.collect());
        }
        let mut few = [0; FEW];
        few.iter_mut().zip(points).for_each(|(slot, point)| *slot = point);
        Self::Few { len: len as u32, points: few }
    }

    #[inline]
    pub(super) fn as_slice(&self) -> &[u32] {
        match self {
            Self::Few { len, points } => &points[..*len as usize],
            Self::Many(points) => points,
        }
    }

    pub(super) fn extend(&mut self, more: &[u32]) {
        if let Self::Many(points) = self {
            points.extend_from_slice(more);
        } else {
            *self = Self::of([self.as_slice(), more].concat().into_iter());
        }
    }

    /// Takes a point out; the order of the others may change.
    ///
    /// # Panics
    /// If it is not there.
    pub(super) fn remove(&mut self, point: u32) {
        let at = self.as_slice().iter().position(|p| *p == point).expect("the leaf holds its point");
        match self {
            Self::Few { len, points } => {
                *len -= 1;
                points.swap(at, *len as usize);
            }
            Self::Many(points) => {
                points.swap_remove(at);
                if points.len() <= FEW {
                    *self = Self::of(std::mem::take(points).into_iter());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_come_and_go_in_and_out_of_line() {
        assert_eq!(size_of::<Leaf>(), 32);
        for n in 0..8 {
            let mut list = PointList::default();
            (0..n).for_each(|p| list.extend(&[p]));
            assert_eq!(list.as_slice(), (0..n).collect::<Vec<_>>());
            for gone in 0..n {
                list.remove(gone);
                let mut left = list.as_slice().to_vec();
                left.sort_unstable();
                assert_eq!(left, (gone + 1..n).collect::<Vec<_>>());
                assert_eq!(matches!(list, PointList::Many(_)), left.len() > FEW);
            }
        }
    }
}
