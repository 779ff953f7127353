//! Mondrian features: the cells of M trees at a lifetime (report, chapter 3).

use std::sync::Arc;

use crate::parallel::prelude::*;

use crate::features::FeatureMap;
use crate::features::{CellArray, Features, UNSEEN};
use crate::forest::{Forest, ForestParams};
use crate::kernel::exp::exp_minus;
use crate::model_file::ModelFileError;
use crate::progress::Progress;
use crate::tree::{Child, CodedRows, Frozen, Kind, Tree};
use crate::{Error, Lifetime, Points, Result};

/// The cells of points in each of M Mondrian trees, viewed at one lifetime.
///
/// The trees are grown to a terminal lifetime once; [`MondrianFeatures::at`] views them at any smaller one. A cell
/// keeps its column when more points are learned. A point outside the root box gets the cell of the nearest point of
/// the box, with its value multiplied by e^{−λΔ}, Δ the distance in the measure (docs/design.md, "Points outside the
/// root box").
///
/// ```
/// use mondrian::ForestParams;
/// use mondrian::{FeatureMap, MondrianFeatures};
/// use mondrian::internals::features::Design;
/// use mondrian::{Lifetime, Points};
/// let x = [0.0, 0.0, 0.5, 0.1, 1.0, 1.0];
/// let points = Points::row_major(&x, 2)?;
/// let params = ForestParams { n_trees: 50, ..ForestParams::default() };
/// let mut map = MondrianFeatures::on(&params, points, Lifetime::new(2.0)?)?;
/// let z = map.learn(points)?;
/// assert_eq!(map.transform(points)?, z);
/// let coarse = map.at(Lifetime::ZERO)?;
/// assert_eq!(coarse.n_columns(), 50);                // one cell a tree
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct MondrianFeatures {
    /// Shared between views; copied on learning.
    forest: Arc<Forest>,
    lifetime: Lifetime,
    /// The point of each row learned, in order.
    rows: Vec<u32>,
    columns: Vec<TreeColumns>,
    n_columns: usize,
}

/// The columns of one tree's cells, by the cell that a query returns.
#[derive(Debug, Clone, Default)]
struct TreeColumns {
    inner: Vec<u32>,
    leaf: Vec<u32>,
    /// The column of every stored point's cell; that of a frozen cell among them.
    point: Vec<u32>,
}

impl TreeColumns {
    fn of(&self, child: Child) -> u32 {
        match child.kind() {
            Kind::Inner(id) => self.inner[id.index()],
            Kind::Leaf(id) => self.leaf[id.index()],
            Kind::Single(point) => self.point[point as usize],
            Kind::Empty => UNSEEN,
        }
    }
}

/// The cells of one tree at a lifetime, with the cell of every point.
struct Census {
    cells: Vec<Child>,
    cell_of_point: Vec<u32>,
}

impl MondrianFeatures {
    /// Trees on the box and measure given by `params` and the first data, without points. The `lifetime` given here is
    /// used, not that of `params`; automatic weights are those of a lifetime given by value.
    ///
    /// # Errors
    /// [`Error::Empty`] without rows if box or measure must be derived from them, and those of the parameters.
    pub fn on(params: &ForestParams, first: Points<'_>, lifetime: Lifetime) -> Result<Self> {
        let params = ForestParams { lifetime: crate::forest::LifetimeChoice::Value(lifetime), ..params.clone() };
        params.check_holds_all()?;
        let forest = Forest::with_domain(&params, first, lifetime)?;
        let columns = vec![TreeColumns::default(); forest.n_trees()];
        Ok(Self { forest: Arc::new(forest), lifetime, rows: Vec::new(), columns, n_columns: 0 })
    }

    /// A view of a forest that has learned points already; `rows` gives the point of each training row.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] if the lifetime is above the forest's, or a row names no stored point.
    pub fn of_forest(forest: Arc<Forest>, rows: Vec<u32>, lifetime: Lifetime) -> Result<Self> {
        let stored = |&p: &u32| (p as usize) < forest.store().n_slots() && forest.store().multiplicity(p) > 0;
        if let Some(p) = rows.iter().find(|p| !stored(p)) {
            return Err(Error::InvalidParameter {
                name: "point",
                value: f64::from(*p),
                expected: "a point the forest has learned",
            });
        }
        let columns = vec![TreeColumns::default(); forest.n_trees()];
        Self { forest, lifetime, rows: Vec::new(), columns, n_columns: 0 }.seen_at(rows, lifetime)
    }

    /// The map from a file: the column of every stored point's cell, one run of points per tree.
    pub(crate) fn restored(forest: Forest, rows: Vec<u32>, lifetime: Lifetime, columns: &[u32]) -> Result<Self> {
        let mut map = Self::of_forest(Arc::new(forest), rows, lifetime)?;
        let n_slots = map.forest.store().n_slots();
        let unfit = || ModelFileError::Inconsistent { what: "the columns of a feature map" }.into();
        // Columns differ from those of one large batch only in their order: their number is the same, each of one cell.
        let mut owners = vec![UNSEEN; map.n_columns];
        for (tree, saved) in map.columns.iter_mut().zip(columns.chunks_exact(n_slots.max(1))) {
            for (own, saved) in tree.point.iter().zip(saved) {
                if (*own == UNSEEN) != (*saved == UNSEEN) {
                    return Err(unfit());
                }
                if *saved != UNSEEN {
                    let owner = owners.get_mut(*saved as usize).ok_or_else(unfit)?;
                    if *owner != UNSEEN && *owner != *own {
                        return Err(unfit());
                    }
                    *owner = *own;
                }
            }
            tree.point = saved.to_vec();
        }
        owners.sort_unstable();
        if owners.iter().enumerate().any(|(at, own)| *own != at as u32) {
            return Err(unfit());
        }
        map.number(&[]);
        Ok(map)
    }

    /// The column of every stored point's cell, one run of points per tree.
    pub(crate) fn columns_of_points(&self) -> Vec<u32> {
        self.columns.iter().flat_map(|tree| tree.point.iter().copied()).collect()
    }

    /// The same trees at a smaller lifetime: identical to trees grown to it.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] if it is above the terminal lifetime.
    pub fn at(&self, lifetime: Lifetime) -> Result<Self> {
        let columns = vec![TreeColumns::default(); self.forest.n_trees()];
        Self { forest: self.forest.clone(), lifetime, rows: Vec::new(), columns, n_columns: 0 }
            .seen_at(self.rows.clone(), lifetime)
    }

    fn seen_at(mut self, rows: Vec<u32>, lifetime: Lifetime) -> Result<Self> {
        let terminal = self.forest.domain().lifetime();
        if lifetime > terminal {
            return Err(Error::InvalidParameter {
                name: "lifetime",
                value: lifetime.get(),
                expected: "at most the one the trees were grown to",
            });
        }
        self.check_room(rows.len())?;
        self.number(&rows);
        self.rows = rows;
        Ok(self)
    }

    /// The lifetime of this view.
    pub fn lifetime(&self) -> Lifetime {
        self.lifetime
    }

    /// The trees.
    pub fn forest(&self) -> &Arc<Forest> {
        &self.forest
    }

    /// Number of trees M.
    pub fn n_trees(&self) -> usize {
        self.forest.n_trees()
    }

    /// The point of each training row, in the order they were learned.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// The features of all training rows, in the order they were learned.
    ///
    /// # Errors
    /// None in practice: the columns are valid by construction.
    pub fn training(&self) -> Result<CellArray> {
        self.cells_of(&self.rows)
    }

    fn cells_of(&self, points: &[u32]) -> Result<CellArray> {
        let cells = self.columns.iter().flat_map(|tree| points.iter().map(|&p| tree.point[p as usize])).collect();
        CellArray::new(cells, points.len(), self.n_trees(), self.n_columns)
    }

    /// The cells of points, in the compact form.
    ///
    /// # Errors
    /// As for [`FeatureMap::transform`].
    pub fn cells(&self, points: Points<'_>) -> Result<CellArray> {
        let coordinates = self.forest.coordinates(points)?;
        let n_dims = self.n_dims();
        let (mut inside, mut factors) = (coordinates, Vec::with_capacity(points.n_rows()));
        for x in inside.chunks_exact_mut(n_dims) {
            let distance = self.forest.domain().clamp(x);
            factors.push(if distance > 0.0 { exp_minus(self.lifetime.get() * distance) } else { 1.0 });
        }
        let rows = CodedRows::new(self.forest.domain(), &inside);
        let per_tree: Vec<Vec<u32>> =
            (0..self.n_trees()).into_par_iter().map(|tree| self.look_up(tree, &rows)).collect();
        let cells = CellArray::new(per_tree.concat(), points.n_rows(), self.n_trees(), self.n_columns)?;
        if factors.iter().all(|&f| f == 1.0) {
            return Ok(cells);
        }
        cells.with_factors(factors.repeat(self.n_trees()))
    }

    fn look_up(&self, tree: usize, rows: &CodedRows<'_>) -> Vec<u32> {
        let columns = &self.columns[tree];
        let (forest, tree) = (&self.forest, &self.forest.trees()[tree].0);
        let cells = tree.cells(forest.domain(), forest.store(), rows, self.lifetime, Frozen::Resumed);
        cells.into_iter().map(|child| if child == Child::EMPTY { UNSEEN } else { columns.of(child) }).collect()
    }

    /// Brings the columns up to date with the trees: a cell with a known point keeps that point's column, others get
    /// new ones, tree by tree in the order of the rows.
    fn number(&mut self, new_rows: &[u32]) {
        let lifetime = self.lifetime.get();
        let n_slots = self.forest.store().n_slots();
        let census: Vec<Census> =
            self.forest.trees().par_iter().map(|(tree, ())| Census::of(tree, lifetime, n_slots)).collect();
        for ((columns, census), (tree, ())) in self.columns.iter_mut().zip(&census).zip(self.forest.trees()) {
            let mut of_cell = vec![UNSEEN; census.cells.len()];
            for (&column, &cell) in columns.point.iter().zip(&census.cell_of_point) {
                if column != UNSEEN && cell != UNSEEN {
                    of_cell[cell as usize] = column;
                }
            }
            for &point in new_rows {
                let column = &mut of_cell[census.cell_of_point[point as usize] as usize];
                if *column == UNSEEN {
                    *column = self.n_columns as u32;
                    self.n_columns += 1;
                }
            }
            columns.refill(tree, census, &of_cell);
        }
    }

    /// Refuses rows whose cells might exceed the range of column numbers, before anything is changed.
    fn check_room(&self, n_rows: usize) -> Result<()> {
        let most = self.n_columns + n_rows * self.n_trees();
        if most < UNSEEN as usize {
            Ok(())
        } else {
            Err(Error::TooLarge { what: "cells", expected: most as f64, limit: f64::from(UNSEEN) })
        }
    }
}

impl TreeColumns {
    fn refill(&mut self, tree: &Tree, census: &Census, of_cell: &[u32]) {
        self.inner = vec![UNSEEN; tree.n_nodes()];
        self.leaf = vec![UNSEEN; tree.n_leaves()];
        self.point = census
            .cell_of_point
            .iter()
            .map(|&cell| if cell == UNSEEN { UNSEEN } else { of_cell[cell as usize] })
            .collect();
        for (child, &column) in census.cells.iter().zip(of_cell) {
            match child.kind() {
                Kind::Inner(id) => self.inner[id.index()] = column,
                Kind::Leaf(id) => self.leaf[id.index()] = column,
                Kind::Single(_) | Kind::Empty => {}
            }
        }
    }
}

impl Census {
    /// Descends to the cells at `lifetime`, then traverses the subtree of each. Uses an explicit stack: trees are deep.
    fn of(tree: &Tree, lifetime: f64, n_slots: usize) -> Self {
        let mut census = Self { cells: Vec::new(), cell_of_point: vec![UNSEEN; n_slots] };
        // A side to visit, and its cell once it is known.
        let mut todo = vec![(tree.root(), UNSEEN)];
        while let Some((child, cell)) = todo.pop() {
            match child.kind() {
                Kind::Inner(id) => {
                    let node = tree.node(id);
                    let cell = if cell == UNSEEN && node.time() > lifetime { census.enter(child) } else { cell };
                    todo.extend(tree.children(node).map(|child| (child, cell)));
                }
                Kind::Leaf(id) => {
                    let cell = if cell == UNSEEN { census.enter(child) } else { cell };
                    tree.leaf(id).points().iter().for_each(|&p| census.cell_of_point[p as usize] = cell);
                }
                Kind::Single(point) => {
                    let cell = if cell == UNSEEN { census.enter(child) } else { cell };
                    census.cell_of_point[point as usize] = cell;
                }
                Kind::Empty => {}
            }
        }
        census
    }

    fn enter(&mut self, child: Child) -> u32 {
        self.cells.push(child);
        self.cells.len() as u32 - 1
    }
}

impl FeatureMap for MondrianFeatures {
    fn n_dims(&self) -> usize {
        self.forest.n_dims()
    }

    fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// Inserts these points into the trees. If the root box must be widened for them, cells inside it do not change.
    fn learn(&mut self, points: Points<'_>) -> Result<Features> {
        self.learn_with_progress(points, &mut Progress::none())
    }

    fn transform(&self, points: Points<'_>) -> Result<Features> {
        Ok(self.cells(points)?.into())
    }
}

impl MondrianFeatures {
    /// As [`FeatureMap::learn`], with progress and cancellation.
    ///
    /// # Errors
    /// As [`FeatureMap::learn`], and [`Error::Cancelled`]; nothing has changed then.
    pub fn learn_with_progress(&mut self, points: Points<'_>, progress: &mut Progress<'_>) -> Result<Features> {
        let row_batch = self.forest.row_batch(points)?;
        self.check_room(points.n_rows())?;
        let learned = Arc::make_mut(&mut self.forest).learn(row_batch, (), &mut (), progress)?;
        self.number(&learned);
        self.rows.extend_from_slice(&learned);
        Ok(self.cells_of(&learned)?.into())
    }
}
