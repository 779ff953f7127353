//! The cuts of one dimension that separate rows of a given set, in order of time.
//!
//! Between two neighbouring coordinates only the first cut of a grid changes a partition of the rows (report, chapter
//! 5, "Initialization"). So an event is the first cut of one grid in one gap between neighbours. Events are drawn from
//! the [axes](crate::process::Axis) themselves, so that cells of unseen points are defined too, and only as far as a
//! search needs them.

use crate::features::MondrianGrid;
use crate::{Points, Result};

/// Limit on the number of cuts per grid and distinct coordinate: coordinates that are not separated by then are so
/// close together that finding the cut between them would mean sampling millions of others.
const MOST_CUTS: f64 = 64.0;

/// The first cut of a grid in a gap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Event {
    pub(crate) time: f64,
    pub(crate) grid: u32,
    /// The cut lies between the distinct coordinates `gap − 1` and `gap`, counted by size.
    pub(crate) gap: u32,
}

/// One dimension of a set of rows.
#[derive(Debug, Clone)]
pub(crate) struct Dimension {
    dim: usize,
    grid: MondrianGrid,
    coordinates: Vec<f64>,
    /// Rows by coordinate.
    order: Vec<u32>,
    /// Where in `order` each distinct coordinate starts; one more at the end.
    starts: Vec<u32>,
    events: Vec<Event>,
    horizon: f64,
    /// One flag per grid and gap: whether its first cut is among the events.
    cut: Vec<bool>,
    n_uncut: usize,
}

impl Dimension {
    pub(crate) fn new(grid: MondrianGrid, dim: usize, points: Points<'_>) -> Self {
        let column: Vec<f64> = points.column(dim).collect();
        let mut order: Vec<u32> = (0..column.len() as u32).collect();
        order.sort_by(|&a, &b| column[a as usize].total_cmp(&column[b as usize]).then(a.cmp(&b)));
        let (mut coordinates, mut starts): (Vec<f64>, Vec<u32>) = (Vec::new(), Vec::new());
        for (at, &row) in order.iter().enumerate() {
            let x = column[row as usize];
            if coordinates.last() != Some(&x) {
                coordinates.push(x);
                starts.push(at as u32);
            }
        }
        starts.push(order.len() as u32);
        let n_gaps = coordinates.len().saturating_sub(1) * grid.n_grids();
        let cut = vec![false; coordinates.len() * grid.n_grids()];
        Self { dim, grid, coordinates, order, starts, events: Vec::new(), horizon: 0.0, cut, n_uncut: n_gaps }
    }

    /// The rows from one gap (0 for the lowest coordinate) up to another (none for the highest), by coordinate.
    pub(crate) fn rows(&self, from: u32, to: Option<u32>) -> &[u32] {
        let end = to.map_or(self.order.len(), |gap| self.starts[gap as usize] as usize);
        &self.order[self.starts[from as usize] as usize..end]
    }

    /// Event number `index` in order of time, if the limit on cuts is not reached before it.
    pub(crate) fn event(&mut self, index: usize) -> Result<Option<Event>> {
        while index >= self.events.len() && self.n_uncut > 0 {
            let width = self.coordinates[self.coordinates.len() - 1] - self.coordinates[0];
            if self.horizon * width > MOST_CUTS * self.coordinates.len() as f64 {
                return Ok(None);
            }
            // Doubling, from the lifetime at which a grid is expected to have its first few cuts.
            self.extend(if self.horizon > 0.0 { 2.0 * self.horizon } else { 1.0 / width })?;
        }
        Ok(self.events.get(index).copied())
    }

    /// The number of events until `lifetime`.
    pub(crate) fn count_until(&mut self, lifetime: f64) -> Result<usize> {
        if self.n_uncut > 0 && lifetime > self.horizon {
            self.extend(lifetime)?;
        }
        Ok(self.events.partition_point(|event| event.time <= lifetime))
    }

    /// The events known so far.
    pub(crate) fn known(&self) -> &[Event] {
        &self.events
    }

    fn extend(&mut self, horizon: f64) -> Result<()> {
        let mut fresh = Vec::new();
        let n = self.coordinates.len();
        for m in 0..self.grid.n_grids() {
            for cut in self.grid.axis(m, self.dim).cuts(self.coordinates[0], self.coordinates[n - 1], horizon)? {
                let gap = self.coordinates.partition_point(|&x| x <= cut.location);
                if cut.time > self.horizon && !self.cut[m * n + gap] {
                    fresh.push(Event { time: cut.time, grid: m as u32, gap: gap as u32 });
                }
            }
        }
        fresh.sort_by(|a, b| a.time.total_cmp(&b.time).then((a.grid, a.gap).cmp(&(b.grid, b.gap))));
        for event in fresh {
            let flag = &mut self.cut[event.grid as usize * n + event.gap as usize];
            if !*flag {
                *flag = true;
                self.n_uncut -= 1;
                self.events.push(event);
            }
        }
        self.horizon = horizon;
        Ok(())
    }
}
