//! Cells and cuts as plain columns, the form in which other languages take them.

use crate::process::Bounds;
use crate::process::partition::Node;

/// A point of a one-dimensional process: where, and from which time on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PoissonPoint {
    /// Its location.
    pub location: f64,
    /// The time at which it appears.
    pub time: f64,
}

/// Boxes, one per row.
#[derive(Debug, Clone, PartialEq)]
struct Boxes {
    n_dims: usize,
    lower: Vec<f64>,
    upper: Vec<f64>,
}

impl Boxes {
    fn new(n_dims: usize) -> Self {
        Self { n_dims, lower: Vec::new(), upper: Vec::new() }
    }

    fn push(&mut self, lower: &[f64], upper: &[f64]) {
        self.lower.extend_from_slice(lower);
        self.upper.extend_from_slice(upper);
    }

    fn row(&self, row: usize) -> (&[f64], &[f64]) {
        (&self.lower[row * self.n_dims..][..self.n_dims], &self.upper[row * self.n_dims..][..self.n_dims])
    }
}

/// The cells of a partition with their boxes, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct CellTable {
    boxes: Boxes,
}

impl CellTable {
    pub(crate) fn new(n_dims: usize) -> Self {
        Self { boxes: Boxes::new(n_dims) }
    }

    pub(crate) fn push(&mut self, lower: &[f64], upper: &[f64]) {
        self.boxes.push(lower, upper);
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.boxes.lower.len() / self.boxes.n_dims
    }

    /// Never: a partition has at least one cell.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Lower bounds, D numbers per cell.
    pub fn lower(&self) -> &[f64] {
        &self.boxes.lower
    }

    /// Upper bounds, D numbers per cell.
    pub fn upper(&self) -> &[f64] {
        &self.boxes.upper
    }

    /// The box of one cell. Its lower border belongs to the neighbour, except at the border of the whole box.
    ///
    /// # Panics
    /// If there is no such cell.
    pub fn bounds(&self, cell: usize) -> Bounds {
        let (lower, upper) = self.boxes.row(cell);
        Bounds::new(lower, upper).expect("cells of a box are boxes")
    }

    /// The volume of each cell.
    pub fn volumes(&self) -> impl ExactSizeIterator<Item = f64> + '_ {
        (0..self.len()).map(|cell| {
            let (lower, upper) = self.boxes.row(cell);
            lower.iter().zip(upper).map(|(a, b)| b - a).product()
        })
    }
}

/// The cuts of a partition with the boxes they cut.
#[derive(Debug, Clone, PartialEq)]
pub struct CutTable {
    times: Vec<f64>,
    births: Vec<f64>,
    dims: Vec<usize>,
    locations: Vec<f64>,
    boxes: Boxes,
}

impl CutTable {
    pub(crate) fn new(n_dims: usize) -> Self {
        let (times, births, dims, locations) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { times, births, dims, locations, boxes: Boxes::new(n_dims) }
    }

    pub(crate) fn push(&mut self, node: &Node, lower: &[f64], upper: &[f64]) {
        self.times.push(node.time);
        self.births.push(node.birth);
        self.dims.push(node.dim);
        self.locations.push(node.location);
        self.boxes.push(lower, upper);
    }

    /// The same cuts by time; cuts of one time keep their order.
    pub(crate) fn sorted_by_time(&self) -> Self {
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by(|a, b| self.times[*a].total_cmp(&self.times[*b]));
        let mut boxes = Boxes::new(self.boxes.n_dims);
        for row in &order {
            let (lower, upper) = self.boxes.row(*row);
            boxes.push(lower, upper);
        }
        let pick = |column: &[f64]| order.iter().map(|row| column[*row]).collect();
        Self {
            times: pick(&self.times),
            births: pick(&self.births),
            dims: order.iter().map(|row| self.dims[*row]).collect(),
            locations: pick(&self.locations),
            boxes,
        }
    }

    /// Number of cuts.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether the partition is trivial.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// When each cut was made, ascending.
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// When the box that each cut splits came to be.
    pub fn births(&self) -> &[f64] {
        &self.births
    }

    /// The dimension of each cut.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// The location of each cut.
    pub fn locations(&self) -> &[f64] {
        &self.locations
    }

    /// Lower bounds of the boxes cut, D numbers per cut.
    pub fn lower(&self) -> &[f64] {
        &self.boxes.lower
    }

    /// Upper bounds of the boxes cut, D numbers per cut.
    pub fn upper(&self) -> &[f64] {
        &self.boxes.upper
    }
}
