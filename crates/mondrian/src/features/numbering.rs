//! Columns of cells, in the order of their first occurrence.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::features::{CellArray, UNSEEN};
use crate::{Error, Result};

/// One map per tree from a cell's 128-bit name to its column. Two cells share a name with probability 2^−128 per pair.
#[derive(Debug, Clone, Default)]
pub(crate) struct Numbering {
    trees: Vec<HashMap<u128, u32, BuildHasherDefault<NameHasher>>>,
    n_columns: usize,
}

impl Numbering {
    pub(crate) fn new(n_trees: usize) -> Self {
        Self { trees: vec![HashMap::default(); n_trees], n_columns: 0 }
    }

    /// The grid and the name of every column, in the columns' order.
    pub(crate) fn named(&self) -> Vec<(u32, u128)> {
        let mut named = vec![(0, 0); self.n_columns];
        for (tree, cells) in self.trees.iter().enumerate() {
            cells.iter().for_each(|(name, column)| named[*column as usize] = (tree as u32, *name));
        }
        named
    }

    /// The numbering in which column i has the i-th tree and name; `None` if a tree or a name is invalid.
    pub(crate) fn of(n_trees: usize, named: impl ExactSizeIterator<Item = (u32, u128)>) -> Option<Self> {
        let mut numbering = Self::new(n_trees);
        numbering.n_columns = named.len();
        for (column, (tree, name)) in named.enumerate() {
            let column = u32::try_from(column).ok().filter(|column| *column != UNSEEN)?;
            if numbering.trees.get_mut(tree as usize)?.insert(name, column).is_some() {
                return None;
            }
        }
        Some(numbering)
    }

    pub(crate) fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// The columns of cells given tree by tree; new cells are numbered.
    pub(crate) fn learn(&mut self, names: &[Vec<u128>]) -> Result<CellArray> {
        let n_rows = names.first().map_or(0, Vec::len);
        let most = self.n_columns + names.iter().map(Vec::len).sum::<usize>();
        if most >= UNSEEN as usize {
            // Refused before anything is changed; the true number may be smaller.
            let (expected, limit) = (most as f64, f64::from(UNSEEN));
            return Err(Error::TooLarge { what: "cells", expected, limit });
        }
        let mut cells = Vec::with_capacity(n_rows * names.len());
        for (tree, names) in self.trees.iter_mut().zip(names) {
            for name in names {
                cells.push(*tree.entry(*name).or_insert_with(|| {
                    self.n_columns += 1;
                    self.n_columns as u32 - 1
                }));
            }
        }
        CellArray::new(cells, n_rows, names.len(), self.n_columns)
    }

    /// The columns of known cells, [`UNSEEN`] for others.
    pub(crate) fn look_up(&self, names: &[Vec<u128>]) -> Result<CellArray> {
        let n_rows = names.first().map_or(0, Vec::len);
        let cells = self
            .trees
            .iter()
            .zip(names)
            .flat_map(|(tree, names)| names.iter().map(|name| tree.get(name).copied().unwrap_or(UNSEEN)))
            .collect();
        CellArray::new(cells, n_rows, names.len(), self.n_columns)
    }
}

/// Names are mixed already: their low half is a hash.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NameHasher(u64);

impl Hasher for NameHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Only reached for keys that are not u128.
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, name: u128) {
        self.0 = name as u64;
    }
}
