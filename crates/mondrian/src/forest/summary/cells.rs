//! The cells of one tree that hold rows, with what is known of the rows of each.

use crate::forest::classification::PointClasses;
use crate::tree::{Domain, NO_CELL, OccupiedCells, PointStore, Tree};
use crate::{Error, Result};

/// What is known of rows beyond where they lie, point by point.
#[derive(Debug)]
pub(crate) enum PointData {
    /// Nothing.
    None,
    /// Σ y in fixed point, by point, then target.
    Sums { n_targets: usize, sums: Vec<i128> },
    /// Rows of each class.
    Classes(PointClasses),
}

/// The same cell by cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CellData {
    None,
    /// By cell, then target.
    Sums {
        n_targets: usize,
        sums: Vec<i128>,
    },
    /// Class and count, ascending by class; `ends` is where the entries of each cell end.
    Classes {
        ends: Vec<u32>,
        entries: Vec<(u32, u32)>,
    },
}

impl CellData {
    /// No cells yet, of the same kind as points.
    fn like(points: &PointData) -> Self {
        match points {
            PointData::None => Self::None,
            PointData::Sums { n_targets, .. } => Self::Sums { n_targets: *n_targets, sums: Vec::new() },
            PointData::Classes(_) => Self::Classes { ends: Vec::new(), entries: Vec::new() },
        }
    }

    /// Adds a cell that holds some points. `counts` is room of zeros, one per class.
    fn push(&mut self, data: &PointData, points: &[u32], counts: &mut [u32]) {
        match (self, data) {
            (Self::Sums { sums, .. }, PointData::Sums { n_targets, sums: of_points }) => {
                let of_point = |point: u32, target: usize| of_points[point as usize * n_targets + target];
                sums.extend((0..*n_targets).map(|t| points.iter().map(|point| of_point(*point, t)).sum::<i128>()));
            }
            (Self::Classes { ends, entries }, PointData::Classes(classes)) => {
                let first = entries.len();
                for (class, n) in points.iter().flat_map(|point| classes.of(*point)) {
                    if counts[*class as usize] == 0 {
                        entries.push((*class, 0));
                    }
                    counts[*class as usize] += n;
                }
                entries[first..].sort_unstable();
                for (class, n) in &mut entries[first..] {
                    *n = std::mem::take(&mut counts[*class as usize]);
                }
                ends.push(entries.len() as u32);
            }
            _ => {}
        }
    }

    /// The entries of a cell.
    pub(crate) fn classes_of(&self, cell: usize) -> &[(u32, u32)] {
        let Self::Classes { ends, entries } = self else { return &[] };
        let start = if cell == 0 { 0 } else { ends[cell - 1] };
        &entries[start as usize..ends[cell] as usize]
    }

    /// The data of cells that are one of each of two, or of one only.
    fn merged(&self, other: &Self, numbers: &[[u32; 2]]) -> Result<Self> {
        match (self, other) {
            (Self::None, Self::None) => Ok(Self::None),
            (Self::Sums { n_targets, sums: a }, Self::Sums { n_targets: same, sums: b }) if n_targets == same => {
                let sum = |[i, j]: &[u32; 2], t: usize| {
                    let term = |sums: &[i128], cell: u32| {
                        if cell == NO_CELL { 0 } else { sums[cell as usize * n_targets + t] }
                    };
                    term(a, *i).checked_add(term(b, *j)).ok_or_else(too_large)
                };
                let sums = numbers.iter().flat_map(|both| (0..*n_targets).map(move |t| sum(both, t)));
                Ok(Self::Sums { n_targets: *n_targets, sums: sums.collect::<Result<_>>()? })
            }
            (Self::Classes { .. }, Self::Classes { .. }) => {
                let (mut ends, mut all) = (Vec::with_capacity(numbers.len()), Vec::new());
                for [i, j] in numbers {
                    let of = |data: &'_ Self, cell: u32| {
                        if cell == NO_CELL { Vec::new() } else { data.classes_of(cell as usize).to_vec() }
                    };
                    add_classes(&of(self, *i), &of(other, *j), &mut all)?;
                    ends.push(u32::try_from(all.len()).map_err(|_| too_large())?);
                }
                Ok(Self::Classes { ends, entries: all })
            }
            _ => Err(Error::Incompatible { what: "tasks or numbers of targets" }),
        }
    }
}

/// Adds two lists of (class, count), ascending by class.
pub(crate) fn add_classes(a: &[(u32, u32)], b: &[(u32, u32)], sum: &mut Vec<(u32, u32)>) -> Result<()> {
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        let (x, y) = (a.get(i), b.get(j));
        sum.push(match (x, y) {
            (Some(x), Some(y)) if x.0 == y.0 => (x.0, x.1.checked_add(y.1).ok_or_else(too_large)?),
            (Some(x), Some(y)) if x.0 < y.0 => *x,
            (_, Some(y)) => *y,
            (Some(x), None) => *x,
            (None, None) => unreachable!("one of them is not at its end"),
        });
        let class = sum[sum.len() - 1].0;
        i += usize::from(x.is_some_and(|x| x.0 == class));
        j += usize::from(y.is_some_and(|y| y.0 == class));
    }
    Ok(())
}

/// More than the trees can count.
pub(crate) fn too_large() -> Error {
    let limit = f64::from(u32::MAX);
    Error::TooLarge { what: "rows of a summary", expected: 2.0 * limit, limit }
}

/// The cells of one tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeCells {
    pub(crate) cells: OccupiedCells,
    /// Rows of each cell.
    pub(crate) counts: Vec<u32>,
    pub(crate) data: CellData,
}

impl TreeCells {
    /// The cells of a tree grown from points.
    pub(crate) fn of(tree: &Tree, domain: &Domain, store: &PointStore, data: &PointData) -> Self {
        let (mut counts, mut cell_data) = (Vec::new(), CellData::like(data));
        let n_classes = if let PointData::Classes(classes) = data { classes.n_classes() } else { 0 };
        let mut room = vec![0; n_classes];
        let cells = OccupiedCells::of(tree, domain, store, |points| {
            counts.push(points.iter().map(|point| store.multiplicity(*point)).sum());
            cell_data.push(data, points, &mut room);
        });
        Self { cells, counts, data: cell_data }
    }

    /// The cells of the rows of both.
    ///
    /// # Errors
    /// [`Error::Incompatible`], [`Error::TooLarge`].
    pub(crate) fn merged(&self, other: &Self) -> Result<Self> {
        let (cells, numbers) = self.cells.merged(&other.cells)?;
        let count = |counts: &[u32], cell: u32| if cell == NO_CELL { 0 } else { counts[cell as usize] };
        let sum =
            |[i, j]: &[u32; 2]| count(&self.counts, *i).checked_add(count(&other.counts, *j)).ok_or_else(too_large);
        let counts = numbers.iter().map(sum).collect::<Result<_>>()?;
        Ok(Self { data: self.data.merged(&other.data, &numbers)?, cells, counts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_classes_add_up() {
        let mut sum = Vec::new();
        add_classes(&[(1, 2), (3, 1)], &[(0, 5), (1, 1), (7, 9)], &mut sum).unwrap();
        assert_eq!(sum, [(0, 5), (1, 3), (3, 1), (7, 9)]);
        assert!(matches!(add_classes(&[(0, u32::MAX)], &[(0, 1)], &mut sum), Err(Error::TooLarge { .. })));
    }
}
