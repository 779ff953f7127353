//! The events of a path and their times: merges of cells, and validation rows separated from the training rows.

use crate::parallel::prelude::*;

use crate::forest::Forest;
use crate::linalg::Matrix;
use crate::ridge::KernelRidge;
use crate::ridge::UNSEEN;
use crate::ridge::path::ValidationSet;
use crate::tree::{Child, Kind, Landing, Locator, NodeId, Tree};
use crate::{Error, Result};

/// A cut that separates training rows, in terms of the cells of the terminal lifetime.
///
/// Cells are numbered depth first, tree after tree, so every node is a range of cells; each side of its cut is named by
/// the first number of its range.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Merge {
    pub(crate) time: f64,
    /// First cell below the cut: the name of the merged cell.
    pub(crate) keep: u32,
    /// First cell above the cut: the name that is removed.
    pub(crate) gone: u32,
    /// One past the last cell above the cut.
    pub(crate) end: u32,
}

/// A validation row that is in no training cell from a time on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Separation {
    pub(crate) time: f64,
    pub(crate) set: u32,
    pub(crate) row: u32,
    pub(crate) tree: u32,
    /// The cell that contained it before.
    pub(crate) cell: u32,
}

/// Rows of one set: their cells at the terminal lifetime, by tree then row, and their targets minus the intercept.
#[derive(Debug, Clone)]
pub(crate) struct Set {
    pub(crate) n_rows: usize,
    pub(crate) cells: Vec<u32>,
    /// One column per target.
    pub(crate) targets: Matrix,
}

/// The input of a path.
#[derive(Debug)]
pub(crate) struct Schedule {
    pub(crate) n_trees: usize,
    pub(crate) n_cells: usize,
    pub(crate) alpha: f64,
    pub(crate) threads: crate::linalg::Threads,
    /// Training rows first.
    pub(crate) sets: Vec<Set>,
    /// In descending order of time.
    pub(crate) merges: Vec<Merge>,
    pub(crate) separations: Vec<Separation>,
    /// First cell of each tree.
    pub(crate) roots: Vec<u32>,
}

/// One tree's part of the schedule, its cells numbered from zero.
struct TreePart {
    n_cells: u32,
    merges: Vec<Merge>,
    cell_of_point: Vec<u32>,
    /// The first cell under each node.
    first_of_node: Vec<u32>,
    first_of_leaf: Vec<u32>,
}

impl Schedule {
    pub(crate) fn new(model: &KernelRidge, validation: &[ValidationSet<'_>]) -> Result<Self> {
        let features = model.features();
        let forest: &Forest = features.forest();
        let n_targets = model.targets().n_columns();
        let mut coordinates = Vec::new();
        for (points, y) in validation {
            if points.n_rows() == 0 {
                return Err(Error::Empty { what: "X_val", rows: 0, columns: points.n_columns() });
            }
            if y.len() != points.n_rows() * n_targets {
                let (expected, found) = (points.n_rows() * n_targets, y.len());
                return Err(Error::LengthMismatch { what: "y_val", expected, found });
            }
            if let Some(at) = y.iter().position(|v| !v.is_finite()) {
                let (row, column) = (at / n_targets, at % n_targets);
                return Err(Error::NotFinite { what: "y_val", row, column, value: y[at] });
            }
            coordinates.push(forest.coordinates(*points)?);
        }
        let wide = forest.widened_for(&(), &coordinates.iter().map(|x| &x[..]).collect::<Vec<_>>())?;
        let forest = wide.as_ref().unwrap_or(forest);
        let lifetime = features.lifetime();
        let n_slots = forest.store().n_slots();
        let parts: Vec<TreePart> =
            forest.trees().par_iter().map(|(tree, ())| TreePart::new(tree, lifetime.get(), n_slots)).collect();
        let mut roots = Vec::new();
        let mut n_cells = 0;
        for part in &parts {
            roots.push(n_cells);
            n_cells += part.n_cells;
        }
        let mut merges: Vec<Merge> = parts
            .iter()
            .zip(&roots)
            .flat_map(|(part, root)| {
                part.merges.iter().map(move |m| Merge {
                    keep: m.keep + root,
                    gone: m.gone + root,
                    end: m.end + root,
                    ..*m
                })
            })
            .collect();
        merges.sort_by(|a, b| b.time.total_cmp(&a.time).then(a.keep.cmp(&b.keep)));
        let intercepts = model.model().intercepts();
        let rows = features.rows();
        let cells = parts
            .iter()
            .zip(&roots)
            .flat_map(|(part, root)| rows.iter().map(move |p| part.cell_of_point[*p as usize] + root))
            .collect();
        let centred = |n: usize, y: &dyn Fn(usize, usize) -> f64| {
            Matrix::from_fn(n, n_targets, |row, t| y(row, t) - intercepts[t])
        };
        let train = centred(rows.len(), &|row, t| model.targets()[(row, t)]);
        let mut sets = vec![Set { n_rows: rows.len(), cells, targets: train }];
        let mut separations = Vec::new();
        for (at, (x, (points, y))) in coordinates.iter().zip(validation).enumerate() {
            let per_tree: Vec<(Vec<u32>, Vec<Separation>)> = (0..parts.len())
                .into_par_iter()
                .map(|tree| parts[tree].locate(forest, tree, x, lifetime, roots[tree], at + 1))
                .collect();
            let mut cells = Vec::new();
            for (tree_cells, tree_partings) in per_tree {
                cells.extend(tree_cells);
                separations.extend(tree_partings);
            }
            let targets = centred(points.n_rows(), &|row, t| y[row * n_targets + t]);
            sets.push(Set { n_rows: points.n_rows(), cells, targets });
        }
        separations.sort_by(|a, b| b.time.total_cmp(&a.time).then((a.tree, a.set, a.row).cmp(&(b.tree, b.set, b.row))));
        let (alpha, threads) = (model.model().alpha(), model.threads());
        let n_trees = parts.len();
        Ok(Self { n_trees, n_cells: n_cells as usize, alpha, threads, sets, merges, separations, roots })
    }

    /// Value of a feature: 1/√M.
    pub(crate) fn scale(&self) -> f64 {
        1.0 / (self.n_trees as f64).sqrt()
    }
}

impl TreePart {
    /// Numbers the cells at `lifetime` depth first, and lists the cuts that separate training points.
    fn new(tree: &Tree, lifetime: f64, n_slots: usize) -> Self {
        let mut part = Self {
            n_cells: 0,
            merges: Vec::new(),
            cell_of_point: vec![UNSEEN; n_slots],
            first_of_node: vec![UNSEEN; tree.n_nodes()],
            first_of_leaf: vec![UNSEEN; tree.n_leaves()],
        };
        // A child to visit with the cell it lies in (if a cell above is whole), or a node whose two sides are done.
        let mut todo = vec![Visit::Enter(tree.root(), None)];
        while let Some(visit) = todo.pop() {
            match visit {
                Visit::Enter(child, cell) => part.enter(tree, child, cell, lifetime, &mut todo),
                Visit::Middle(id) => {
                    let middle = part.n_cells;
                    todo.insert_after(Visit::Done(id, middle));
                }
                Visit::Done(id, gone) => {
                    let node = tree.node(id);
                    if node.separates() {
                        let keep = part.first_of_node[id.index()];
                        part.merges.push(Merge { time: node.time(), keep, gone, end: part.n_cells });
                    }
                }
            }
        }
        part
    }

    fn enter(&mut self, tree: &Tree, child: Child, cell: Option<u32>, lifetime: f64, todo: &mut Vec<Visit>) {
        match child.kind() {
            Kind::Inner(id) => {
                let node = tree.node(id);
                let [below, above] = tree.children(node);
                self.first_of_node[id.index()] = cell.unwrap_or(self.n_cells);
                if cell.is_none() && node.time() <= lifetime {
                    todo.extend([Visit::Enter(above, None), Visit::Middle(id), Visit::Enter(below, None)]);
                } else {
                    // Not cut within the lifetime: one cell with the whole subtree.
                    let cell = cell.unwrap_or_else(|| self.new_cell());
                    todo.extend([Visit::Enter(above, Some(cell)), Visit::Enter(below, Some(cell))]);
                }
            }
            Kind::Leaf(id) => {
                let cell = cell.unwrap_or_else(|| self.new_cell());
                self.first_of_leaf[id.index()] = cell;
                tree.leaf(id).points().iter().for_each(|p| self.cell_of_point[*p as usize] = cell);
            }
            Kind::Single(point) => self.cell_of_point[point as usize] = cell.unwrap_or_else(|| self.new_cell()),
            Kind::Empty => {}
        }
    }

    fn new_cell(&mut self) -> u32 {
        self.n_cells += 1;
        self.n_cells - 1
    }

    /// The cells of validation rows in a tree, and the times at which the others were separated from the training rows.
    fn locate(
        &self,
        forest: &Forest,
        tree: usize,
        x: &[f64],
        lifetime: crate::Lifetime,
        root: u32,
        set: usize,
    ) -> (Vec<u32>, Vec<Separation>) {
        let mut locator = Locator::new(&forest.trees()[tree].0, forest.domain(), forest.store(), lifetime);
        let mut separations = Vec::new();
        let cells = x
            .chunks_exact(forest.n_dims())
            .enumerate()
            .map(|(row, x)| match locator.locate(x) {
                Landing::Seen(child) => self.first(child) + root,
                Landing::Unseen { time, parent } => {
                    let cell = self.first(parent) + root;
                    separations.push(Separation { time, set: set as u32, row: row as u32, tree: tree as u32, cell });
                    UNSEEN
                }
            })
            .collect();
        (cells, separations)
    }

    /// The first cell under a child that holds points.
    fn first(&self, child: Child) -> u32 {
        match child.kind() {
            Kind::Inner(id) => self.first_of_node[id.index()],
            Kind::Leaf(id) => self.first_of_leaf[id.index()],
            Kind::Single(point) => self.cell_of_point[point as usize],
            Kind::Empty => unreachable!("a landing names a child with points"),
        }
    }
}

/// A step of the depth-first walk.
#[derive(Debug, Clone, Copy)]
enum Visit {
    Enter(Child, Option<u32>),
    /// Between the two sides of a node.
    Middle(NodeId),
    /// After both sides; the first cell above the cut.
    Done(NodeId, u32),
}

/// Inserts a visit below the top of the stack, so that it is executed after the top and its whole subtree.
trait InsertAfter {
    fn insert_after(&mut self, visit: Visit);
}

impl InsertAfter for Vec<Visit> {
    fn insert_after(&mut self, visit: Visit) {
        let at = self.len() - 1;
        self.insert(at, visit);
    }
}
