//! A sample of MP(λ, Θ): the partition of a box at a lifetime, with every cut that made it.

use serde::{Deserialize, Serialize};

use crate::process::sampling::{Child, StoredNode, Subtree};
use crate::process::tables::{CellTable, CutTable, PoissonPoint};
use crate::process::{Bounds, BuiltInMeasure, Measure, Mondrian, NodeKey, Side};
use crate::{Error, Lifetime, Points, Result};

/// The report's 6-tuple: a box that was cut.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Node {
    /// The birth time of the box.
    pub birth: f64,
    /// When it was cut.
    pub time: f64,
    /// The dimension of the cut.
    pub dim: usize,
    /// The location of the cut: x ≤ location lies below.
    pub location: f64,
    /// The side below the cut.
    pub below: Child,
    /// The side above the cut.
    pub above: Child,
}

/// A sample of MP(λ, Θ): a partition of a box into cells, with its history.
///
/// Cuts are numbered in depth-first order, the side below first, and cells in the order of the same traversal. The
/// sample stores the process it was drawn from, so it can be grown, restricted and extended. A saved sample consists of
/// the process and the lifetime; loading samples it again, since it is a pure function of those.
///
/// ```
/// use mondrian::{Lifetime, Points, process::Partition};
/// let sample = Partition::sample(&[0.0, 0.0], &[1.0, 1.0], Lifetime::new(3.0)?, 7)?;
/// let part = sample.restrict(&[0.2, 0.2], &[0.6, 0.6])?;
/// let whole = part.extend(&[0.0, 0.0], &[2.0, 1.0], None)?;
/// assert!(whole.restrict(&[0.2, 0.2], &[0.6, 0.6])?.is_same_sample(&part));
/// let cells = sample.cells();
/// assert!((cells.volumes().sum::<f64>() - 1.0).abs() < 1e-12);
/// let found = sample.cell_of(Points::row_major(&[0.5, 0.5], 2)?)?;
/// assert!(cells.bounds(found[0]).contains(&[0.5, 0.5]));
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    into = "SavedPartition<M>",
    try_from = "SavedPartition<M>",
    bound(serialize = "M: Measure + Clone + Serialize", deserialize = "M: Measure + Clone + Deserialize<'de>")
)]
pub struct Partition<M = BuiltInMeasure> {
    process: Mondrian<M>,
    lifetime: Lifetime,
    tree: Subtree,
}

impl Partition {
    /// A sample of MP(λ, Θ) on the box of these corners: tree 0 of `seed`.
    ///
    /// # Errors
    /// Those of [`Bounds::new`] and [`Mondrian::until`].
    pub fn sample(lower: &[f64], upper: &[f64], lifetime: Lifetime, seed: u64) -> Result<Self> {
        Mondrian::new(Bounds::new(lower, upper)?, NodeKey::root(seed, 0)).until(lifetime)
    }
}

impl<M: Measure + Clone> Partition<M> {
    pub(crate) fn from_parts(process: Mondrian<M>, lifetime: Lifetime, tree: Subtree) -> Self {
        Self { process, lifetime, tree }
    }

    /// The process that this is a sample of.
    pub fn process(&self) -> &Mondrian<M> {
        &self.process
    }

    /// The box.
    pub fn bounds(&self) -> &Bounds {
        self.process.bounds()
    }

    /// The measure of lengths.
    pub fn measure(&self) -> &M {
        self.process.measure()
    }

    /// The lifetime λ.
    pub fn lifetime(&self) -> Lifetime {
        self.lifetime
    }

    /// Number of dimensions D.
    pub fn n_dims(&self) -> usize {
        self.bounds().n_dims()
    }

    /// Number of cuts.
    pub fn n_cuts(&self) -> usize {
        self.tree.nodes.len()
    }

    /// Number of cells: one more than cuts.
    pub fn n_cells(&self) -> usize {
        self.tree.n_cells
    }

    /// The first cut, or the only cell.
    pub fn root(&self) -> Child {
        self.tree.root()
    }

    /// All nodes in order; the number of a node is its place.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = Node> + '_ {
        self.tree.nodes.iter().map(|node| self.show(node))
    }

    /// Whether box, lifetime and every cut agree bit for bit, independent of how the two samples were made.
    pub fn is_same_sample<N: Measure + Clone>(&self, other: &Partition<N>) -> bool {
        self.bounds() == other.bounds() && self.lifetime == other.lifetime && self.tree == other.tree
    }

    /// The partition at an earlier time, as [`Mondrian::until`] gives it for that lifetime.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for a time after the lifetime; use [`Partition::grown`] for that.
    pub fn at(&self, time: Lifetime) -> Result<Self> {
        if time > self.lifetime {
            let expected = "no larger than the sample's lifetime; grow the sample first";
            return Err(Error::InvalidParameter { name: "time", value: time.get(), expected });
        }
        Ok(Self { process: self.process.clone(), lifetime: time, tree: self.tree.at(time.get()) })
    }

    /// The same sample at another lifetime, larger or smaller: a larger one refines it.
    ///
    /// # Errors
    /// [`Error::TooLarge`] as for [`Mondrian::until`].
    pub fn grown(&self, lifetime: Lifetime) -> Result<Self> {
        if lifetime <= self.lifetime { self.at(lifetime) } else { self.process.until(lifetime) }
    }

    /// The restriction to a smaller box, a slice if it has a side of length zero; see [`Mondrian::restrict`].
    ///
    /// # Errors
    /// Those of [`Bounds::new`] and [`Mondrian::restrict`].
    pub fn restrict(&self, lower: &[f64], upper: &[f64]) -> Result<Self> {
        self.process.restrict(Bounds::new(lower, upper)?)?.until(self.lifetime)
    }

    /// An extension to a larger box; see [`Mondrian::extend`].
    ///
    /// # Errors
    /// Those of [`Bounds::new`], [`Mondrian::extend`] and [`Mondrian::until`].
    pub fn extend(&self, lower: &[f64], upper: &[f64], seed: Option<u64>) -> Result<Self> {
        self.process.extend(Bounds::new(lower, upper)?, seed)?.until(self.lifetime)
    }

    /// All cells with their boxes.
    pub fn cells(&self) -> CellTable {
        let mut table = CellTable::new(self.n_dims());
        self.walk(|visit, lower, upper| {
            if let Visit::Cell = visit {
                table.push(lower, upper);
            }
        });
        table
    }

    /// All cuts with the boxes they cut, ordered by time.
    pub fn cuts(&self) -> CutTable {
        let mut table = CutTable::new(self.n_dims());
        self.walk(|visit, lower, upper| {
            if let Visit::Cut(node) = visit {
                table.push(&node, lower, upper);
            }
        });
        table.sorted_by_time()
    }

    /// The number of each point's cell.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] for the wrong width, [`Error::NotInside`] for a point outside the box.
    pub fn cell_of(&self, points: Points<'_>) -> Result<Vec<usize>> {
        points.check_width(self.n_dims())?;
        (0..points.n_rows()).map(|row| self.find(|dim| points.get(row, dim))).collect()
    }

    fn find(&self, coordinate: impl Fn(usize) -> f64) -> Result<usize> {
        for dim in 0..self.n_dims() {
            self.check_inside(dim, coordinate(dim))?;
        }
        let mut child = self.root();
        loop {
            match child {
                Child::Cell(number) => return Ok(number),
                Child::Cut(number) => {
                    let node = &self.tree.nodes[number];
                    child = self.side_of(node, coordinate(node.dim as usize));
                }
            }
        }
    }

    /// The cuts that cross the line through `point` along `dim`, in order of location. Their locations are a Poisson
    /// process of intensity λ along the line (report, "Mondrian slices").
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::NotInside`], and [`Error::InvalidParameter`] for a dimension that the box
    /// does not have.
    pub fn crossings(&self, point: &[f64], dim: usize) -> Result<Vec<PoissonPoint>> {
        if point.len() != self.n_dims() {
            let (expected, found) = (self.n_dims(), point.len());
            return Err(Error::LengthMismatch { what: "coordinates of the point", expected, found });
        }
        if dim >= self.n_dims() {
            let expected = "less than the number of dimensions";
            return Err(Error::InvalidParameter { name: "dim", value: dim as f64, expected });
        }
        for other in (0..self.n_dims()).filter(|other| *other != dim) {
            self.check_inside(other, point[other])?;
        }
        let mut found = Vec::new();
        let mut todo = vec![self.root()];
        while let Some(child) = todo.pop() {
            let Child::Cut(number) = child else { continue };
            let node = &self.tree.nodes[number];
            if node.dim as usize == dim {
                found.push(PoissonPoint { location: self.location(node), time: node.time });
                todo.extend([node.below.child(), node.above.child()]);
            } else {
                todo.push(self.side_of(node, point[node.dim as usize]));
            }
        }
        found.sort_by(|a, b| a.location.total_cmp(&b.location));
        Ok(found)
    }

    #[inline]
    fn side_of(&self, node: &StoredNode, x: f64) -> Child {
        match Side::of(self.measure().coordinate(node.dim as usize, x), node.location) {
            Side::Below => node.below.child(),
            Side::Above => node.above.child(),
        }
    }

    fn check_inside(&self, dim: usize, x: f64) -> Result<()> {
        let (outer_lower, outer_upper) = (self.bounds().lower()[dim], self.bounds().upper()[dim]);
        // Written so that NaN is refused.
        if outer_lower <= x && x <= outer_upper {
            return Ok(());
        }
        Err(Error::NotInside { dim, inner_lower: x, inner_upper: x, outer_lower, outer_upper })
    }

    fn show(&self, node: &StoredNode) -> Node {
        let (below, above) = (node.below.child(), node.above.child());
        let location = self.location(node);
        Node { birth: node.birth, time: node.time, dim: node.dim as usize, location, below, above }
    }

    /// Where a cut lies on its axis: the largest x that is below it, as far as a few floats' correction finds it, so that
    /// boxes and [`Partition::cell_of`] agree although the measure's two maps round.
    fn location(&self, node: &StoredNode) -> f64 {
        const STEPS: usize = 8;
        let (dim, u, measure) = (node.dim as usize, node.location, self.measure());
        let mut x = measure.place(dim, u);
        for _ in 0..STEPS {
            if measure.coordinate(dim, x) <= u {
                break;
            }
            x = x.next_down();
        }
        for _ in 0..STEPS {
            if measure.coordinate(dim, x.next_up()) > u {
                break;
            }
            x = x.next_up();
        }
        x.clamp(self.bounds().lower()[dim], self.bounds().upper()[dim])
    }

    /// Visits every cut and every cell with its box, in order.
    pub(crate) fn walk(&self, mut visit: impl FnMut(Visit, &[f64], &[f64])) {
        let (mut lower, mut upper) = (self.bounds().lower().to_vec(), self.bounds().upper().to_vec());
        let mut todo = vec![Walk::Arrive(self.root())];
        while let Some(step) = todo.pop() {
            match step {
                Walk::Arrive(Child::Cell(_)) => visit(Visit::Cell, &lower, &upper),
                Walk::Arrive(Child::Cut(number)) => {
                    let node = self.show(&self.tree.nodes[number]);
                    visit(Visit::Cut(node), &lower, &upper);
                    let (dim, lo, hi) = (node.dim, lower[node.dim], upper[node.dim]);
                    todo.extend([
                        Walk::SetLower(dim, lo),
                        Walk::Arrive(node.above),
                        Walk::SetLower(dim, node.location),
                        Walk::SetUpper(dim, hi),
                        Walk::Arrive(node.below),
                        Walk::SetUpper(dim, node.location),
                    ]);
                }
                Walk::SetLower(dim, bound) => lower[dim] = bound,
                Walk::SetUpper(dim, bound) => upper[dim] = bound,
            }
        }
    }
}

/// What [`Partition::walk`] has come to.
pub(crate) enum Visit {
    Cut(Node),
    Cell,
}

/// A pending step of a walk.
enum Walk {
    Arrive(Child),
    SetLower(usize, f64),
    SetUpper(usize, f64),
}

/// A partition as saved: its source, and its lifetime.
#[derive(Serialize, Deserialize)]
struct SavedPartition<M> {
    process: Mondrian<M>,
    /// `None` is infinite, which JSON cannot represent.
    lifetime: Option<f64>,
}

impl<M> From<Partition<M>> for SavedPartition<M> {
    fn from(partition: Partition<M>) -> Self {
        let lifetime = Some(partition.lifetime.get()).filter(|lifetime| lifetime.is_finite());
        Self { process: partition.process, lifetime }
    }
}

impl<M: Measure + Clone> TryFrom<SavedPartition<M>> for Partition<M> {
    type Error = Error;

    fn try_from(saved: SavedPartition<M>) -> Result<Self> {
        saved.process.check()?;
        saved.process.until(Lifetime::new(saved.lifetime.unwrap_or(f64::INFINITY))?)
    }
}
